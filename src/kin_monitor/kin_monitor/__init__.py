"""The node that knows whether the stack is ready, and how it knows."""

__version__ = "0.1.0"
