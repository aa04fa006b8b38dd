"""What the kinstack nodes share: the lifecycle node and all that stands around it."""

from kin_core.versions import version_of

__all__ = [
    "answers",
    "arrays",
    "bets",
    "bounds",
    "client",
    "diagnostics",
    "entry",
    "executor",
    "failures",
    "frames",
    "lifecycle",
    "markers",
    "messages",
    "moveit",
    "node",
    "parameter_service",
    "parameters",
    "poses",
    "qos",
    "requests",
    "robot_state",
    "robot_state_node",
    "run",
    "status",
    "worker",
]

__version__ = version_of(__name__)
