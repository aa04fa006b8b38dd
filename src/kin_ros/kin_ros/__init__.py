"""What the kinstack nodes share: the lifecycle node and all that stands around it."""

import importlib.metadata

__version__ = importlib.metadata.version(__name__)
