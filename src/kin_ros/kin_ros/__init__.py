"""What the kinstack nodes share: the lifecycle node and all that stands around it."""

__version__ = "0.1.0"
