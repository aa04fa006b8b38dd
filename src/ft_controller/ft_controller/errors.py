"""Errors of the fault-tolerant controller, under one root."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from kin_core.errors import InvalidInput, KinError, LimitExceeded, NotConverged, Unreachable

__all__ = [
    "ArmError",
    "FtError",
    "GoalError",
    "MotionError",
    "ReplicaError",
    "ScheduleError",
    "TooLarge",
    "raising",
]


class FtError(KinError):
    """Root of all errors of this package."""


class ArmError(FtError, InvalidInput):
    """An arm, a trajectory or a limit that makes no sense; names the field."""


class ScheduleError(FtError, InvalidInput):
    """A fault or a fault schedule that makes no sense; names the entry and the field."""


class GoalError(FtError, Unreachable):
    """A goal that the arm cannot reach within its limits; ``residual`` is what is left [m]."""


class MotionError(FtError, NotConverged):
    """A motion that ended before its goal: it was stopped, replaced, or left its path."""


class TooLarge(FtError, LimitExceeded):
    """More joints, processors or points than this package is built for."""


class ReplicaError(FtError):
    """The processors could not be started, or have all gone."""


@contextlib.contextmanager
def raising(kind: type[ArmError | ScheduleError], where: str = "") -> Iterator[None]:
    """Make what is wrong with an input an error of this package; ``where`` precedes its field."""
    try:
        yield
    except InvalidInput as error:
        raise kind(where + error.field, error.problem) from None
