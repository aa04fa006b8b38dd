"""One root error, and one subclass for each way in which a request can end badly.

Every error maps to exactly one code of ``kin_interfaces/SolveStatus``, so a library raises what
happened and the node need not know why.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = [
    "Cancelled",
    "InvalidInput",
    "KinError",
    "LimitExceeded",
    "NotConverged",
    "SolveTimeout",
    "StatusCode",
    "Unreachable",
]


class StatusCode(IntEnum):
    """How a request ended; the numbers are those of ``kin_interfaces/SolveStatus``."""

    SUCCESS = 0
    INVALID_INPUT = 1
    UNREACHABLE = 2
    NOT_CONVERGED = 3
    TIMEOUT = 4
    CANCELLED = 5
    LIMIT_EXCEEDED = 6
    INTERNAL_ERROR = 7


class KinError(Exception):
    """Root of all kinstack errors.

    Attributes:
        code: The status code that the error becomes in an answer.
        residual: The residual that was reached, in the solver's own unit; NaN if there is none.
        iterations: The iterations spent.
    """

    code: StatusCode = StatusCode.INTERNAL_ERROR

    def __init__(
        self, message: str = "", *, residual: float = float("nan"), iterations: int = 0
    ) -> None:
        super().__init__(message)
        self.residual = residual
        self.iterations = iterations


class InvalidInput(KinError):
    """A request that cannot be understood; it names the field that is wrong."""

    code = StatusCode.INVALID_INPUT

    def __init__(
        self,
        field: str,
        problem: str,
        *,
        residual: float = float("nan"),
        iterations: int = 0,
    ) -> None:
        super().__init__(
            f"{field}: {problem}" if field else problem, residual=residual, iterations=iterations
        )
        self.field = field
        self.problem = problem


class Unreachable(KinError):
    """The mechanism cannot do what was asked."""

    code = StatusCode.UNREACHABLE


class NotConverged(KinError):
    """The solver stopped short of the tolerance."""

    code = StatusCode.NOT_CONVERGED


class SolveTimeout(KinError):
    """The time that the caller allowed is over."""

    code = StatusCode.TIMEOUT


class Cancelled(KinError):
    """The caller asked to stop."""

    code = StatusCode.CANCELLED


class LimitExceeded(KinError):
    """A budget (sizes, boxes, memory, queue) does not allow the request."""

    code = StatusCode.LIMIT_EXCEEDED
