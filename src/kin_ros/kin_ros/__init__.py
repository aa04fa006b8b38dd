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
    "lifecycle",
    "markers",
    "messages",
    "node",
    "parameter_service",
    "parameters",
    "poses",
    "qos",
    "requests",
    "run",
    "status",
    "worker",
]

__version__ = version_of(__name__)
