"""Errors of the fault-tolerant controller, under one root."""

from __future__ import annotations

from kin_core.errors import InvalidInput, KinError, LimitExceeded, Unreachable

__all__ = ["ArmError", "FtError", "GoalError", "ReplicaError", "ScheduleError", "TooLarge"]


class FtError(KinError):
    """Root of all errors of this package."""


class ArmError(FtError, InvalidInput):
    """An arm, a trajectory or a limit that makes no sense; names the field."""


class ScheduleError(FtError, InvalidInput):
    """A fault or a fault schedule that makes no sense; names the entry and the field."""


class GoalError(FtError, Unreachable):
    """A goal that the arm cannot reach within its limits; ``residual`` is what is left [m]."""


class TooLarge(FtError, LimitExceeded):
    """More joints, processors or points than this package is built for."""


class ReplicaError(FtError):
    """The processors could not be started, or have all gone."""
