"""Checks of what callers hand to the library: every refusal is an error of this package.

The checks of ``kin_core`` say what is wrong; here they become this package's errors, which name
the field.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kin_core import checks
from kin_core.checks import shown
from kin_core.errors import InvalidInput, LimitExceeded
from kin_solvers.errors import CuikError, RequestError, SettingsError, SizeError
from kin_solvers.mechanism import MAX_MAGNITUDE, Mechanism

__all__ = [
    "array",
    "at_least",
    "boxes",
    "choice",
    "index",
    "instance",
    "number",
    "own_errors",
    "text",
    "whole",
]

Array = NDArray[np.float64]
Refusal = Callable[[str, str], CuikError]
T = TypeVar("T")

_TWO_PI = 2.0 * math.pi


@contextmanager
def own_errors(refusal: Refusal = RequestError) -> Iterator[None]:
    """Turn the errors of the common checks into those of this package."""
    try:
        yield
    except CuikError:
        raise
    except InvalidInput as error:
        raise refusal(error.field, error.problem) from None
    except LimitExceeded as error:
        raise SizeError(str(error)) from None


def instance(field: str, value: Any, kind: type[T]) -> T:
    """The value, which must be of this class."""
    if not isinstance(value, kind):
        raise RequestError(field, f"must be a {kind.__name__}, got {shown(value)}")
    return value


def number(field: str, value: Any, refusal: Refusal = RequestError) -> float:
    """A finite number."""
    with own_errors(refusal):
        return checks.number(field, value)


def at_least(field: str, value: Any, least: float) -> float:
    """A finite number that is not too small."""
    result = number(field, value)
    if result < least:
        raise RequestError(field, f"must be at least {least:g}, got {result:g}")
    return result


def whole(
    field: str,
    value: Any,
    least: int,
    most: int = (1 << 63) - 1,
    refusal: Refusal = SettingsError,
) -> int:
    """A whole number within limits."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise refusal(field, f"must be a whole number, got {shown(value)}")
    if not least <= value <= most:
        limits = f"at least {least}" if value < least else f"at most {most}"
        raise refusal(field, f"must be {limits}, got {shown(value)}")
    return int(value)


def index(field: str, value: Any, count: int) -> int:
    """The number of one of ``count`` things."""
    if count == 0:
        raise RequestError(field, "there is none")
    return whole(field, value, 0, count - 1, RequestError)


def choice(field: str, value: Any, allowed: Sequence[str]) -> str:
    """A setting that is one of some words."""
    if not isinstance(value, str) or value not in allowed:
        words = " or ".join(repr(word) for word in allowed)
        raise SettingsError(field, f"must be {words}, got {shown(value)}")
    return value


def text(field: str, value: Any, refusal: Refusal = RequestError) -> str:
    """A text of bounded length."""
    with own_errors(refusal):
        return checks.text(field, value)


def array(
    field: str, values: Any, shape: Sequence[int | None], refusal: Refusal = RequestError
) -> Array:
    """Finite numbers of a shape; None stands for any length."""
    with own_errors(refusal):
        return checks.shape(field, values, shape)


def boxes(mechanism: Mechanism, given: Any) -> tuple[Array, Array]:
    """Given boxes, checked and cut to the ranges of the mechanism.

    Args:
        mechanism: The mechanism.
        given: Lower and upper ends, each of shape (N, V) or (V,) [rad, m].

    Returns:
        Lower and upper ends, shape (M, V); boxes outside the ranges are left out.
    """
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise RequestError("boxes", f"must be a pair (lower, upper), got {shown(given)}")
    size = len(mechanism.variables)
    ends = []
    for part, values in zip(("lower", "upper"), given, strict=True):
        with own_errors():
            rows = np.atleast_2d(checks.finite(f"boxes.{part}", values))
        if rows.ndim != 2 or rows.shape[1] != size:
            if rows.size == 0:
                raise RequestError("boxes", "there are none")
            raise RequestError(
                f"boxes.{part}", f"must have the shape (any, {size}), got {np.shape(values)}"
            )
        ends.append(rows.astype(np.float64, copy=True))
    lower, upper = ends
    if lower.shape != upper.shape:
        raise RequestError("boxes", f"lower has {len(lower)} rows, upper {len(upper)}")
    if len(lower) == 0:
        raise RequestError("boxes", "there are none")
    if np.any(lower > upper):
        row = int(np.argmax(np.any(lower > upper, axis=1)))
        raise RequestError(f"boxes[{row}]", "a lower end lies above its upper end")
    keep = np.ones(len(lower), dtype=bool)
    for k, variable in enumerate(mechanism.variables):
        if variable.cyclic:
            lower[:, k], upper[:, k] = _turned(f"boxes.{variable.name}", lower[:, k], upper[:, k])
            continue
        lower[:, k] = np.maximum(lower[:, k], variable.lower)
        upper[:, k] = np.minimum(upper[:, k], variable.upper)
        keep &= lower[:, k] <= upper[:, k]
    if not keep.any():
        raise RequestError("boxes", "none of them lies within the ranges")
    return lower[keep], upper[keep]


def _turned(field: str, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Intervals of an angle on the full circle: at most a turn, with the middle in [-pi, pi]."""
    wide = ~(upper - lower < _TWO_PI)  # so written that an overflow counts as wide
    far = ~wide & (np.maximum(np.abs(lower), np.abs(upper)) > MAX_MAGNITUDE)
    if far.any():
        raise RequestError(field, f"reaches beyond {MAX_MAGNITUDE:g}")
    # The width of a wide one may have overflowed: leave it out before turns are counted.
    low, high = np.where(wide, 0.0, lower), np.where(wide, 0.0, upper)
    turns = np.round(0.5 * (low + high) / _TWO_PI)
    pad = np.where(turns == 0.0, 0.0, 1e-15 * (1.0 + np.abs(turns) * _TWO_PI))
    low, high = low - turns * _TWO_PI - pad, high - turns * _TWO_PI + pad
    return np.where(wide, -math.pi, low), np.where(wide, math.pi, high)
