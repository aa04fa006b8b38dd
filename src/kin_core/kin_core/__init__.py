"""What the kinstack libraries share; nothing here imports ROS."""

__version__ = "0.1.0"
