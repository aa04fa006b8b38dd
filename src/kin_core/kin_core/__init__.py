"""What the kinstack libraries share; nothing here imports ROS."""

from kin_core.versions import version_of

__all__ = [
    "checks",
    "errors",
    "inertia",
    "interrupts",
    "kernels",
    "loop",
    "mailbox",
    "rotations",
    "task",
    "texts",
    "threads",
    "urdf",
    "versions",
    "yamls",
]

__version__ = version_of(__name__)
