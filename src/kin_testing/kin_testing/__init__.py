"""What the kinstack tests share. No node and no library imports this package."""

__version__ = "0.1.0"
