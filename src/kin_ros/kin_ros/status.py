"""From what a library raised to what an answer says."""

from __future__ import annotations

import math

from kin_interfaces.msg import SolveStatus

from kin_core.errors import KinError, StatusCode
from kin_core.texts import shortened

__all__ = ["fill_status"]


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
