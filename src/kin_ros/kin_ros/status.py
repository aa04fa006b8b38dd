"""From what a library raised to what an answer says, and back to what a person reads."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from kin_interfaces.msg import SolveStatus

from kin_core.errors import KinError, StatusCode
from kin_core.texts import shortened

__all__ = ["Outcome", "fill_status", "outcome_of"]


class Outcome(NamedTuple):
    """What an answer says of itself.

    Attributes:
        good: Whether it is what was asked for.
        name: Of its code; "answered" if it has none.
        message: Its sentence.
    """

    good: bool
    name: str
    message: str


def outcome_of(answer: Any) -> Outcome:
    """Read the answer of a service or an action: ours, MoveIt's, a controller's, any other."""
    status: Any = getattr(answer, "status", None)
    if hasattr(status, "code"):
        codes = {int(code): code.name for code in StatusCode}
        name = codes.get(status.code, f"code {status.code}")
        return Outcome(status.code == StatusCode.SUCCESS, name, status.message)
    error: Any = getattr(answer, "error_code", None)
    if hasattr(error, "val"):
        return Outcome(error.val == error.SUCCESS, _constant(error, error.val), error.message)
    if isinstance(error, int):  # of FollowJointTrajectory
        name = _constant(answer, error)
        return Outcome(error == 0, name, getattr(answer, "error_string", ""))
    return Outcome(True, "answered", "")


def _constant(message: Any, value: int) -> str:
    """The name of a constant of a message; a number is its own name."""
    constants = {k: v for k, v in vars(type(type(message))).items() if k.isupper()}
    names = [name for name in constants if getattr(message, name, None) == value]
    return names[0] if names else f"code {value}"


def fill_status(status: SolveStatus, error: BaseException) -> None:
    """Write an error into an answer's status."""
    if isinstance(error, KinError):
        status.code = int(error.code)
        status.message = shortened(str(error))
        status.residual = float(error.residual)
        status.iterations = max(0, int(error.iterations))
        return
    status.code = int(StatusCode.INTERNAL_ERROR)
    status.message = shortened(f"{type(error).__name__}: {error}")
    status.residual = math.nan
