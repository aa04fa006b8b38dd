"""What the kinstack libraries share; nothing here imports ROS."""

import importlib.metadata

__version__ = importlib.metadata.version(__name__)
