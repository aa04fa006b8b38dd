"""The node that knows whether the stack is ready, and how it knows."""
