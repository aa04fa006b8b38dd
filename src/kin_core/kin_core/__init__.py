"""What the kinstack libraries share; nothing here imports ROS."""

import importlib.metadata

__all__ = [
    "checks",
    "errors",
    "inertia",
    "interrupts",
    "loop",
    "mailbox",
    "rotations",
    "task",
    "texts",
    "threads",
    "urdf",
    "yamls",
]

__version__ = importlib.metadata.version(__name__)
