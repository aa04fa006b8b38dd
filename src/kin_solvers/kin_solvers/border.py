"""Checks of what callers hand to the library: every refusal is an error of this package.

The checks of ``kin_core`` say what is wrong; here they become this package's errors, which name
the field.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kin_core import checks
from kin_core.checks import shown
from kin_solvers.errors import CuikError, RequestError, SettingsError, own_errors

Array = NDArray[np.float64]
Refusal = Callable[[str, str], CuikError]
T = TypeVar("T")


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


def choice(field: str, value: Any, allowed: Sequence[str], refusal: Refusal = SettingsError) -> str:
    """One of some words."""
    if not isinstance(value, str) or value not in allowed:
        words = " or ".join(repr(word) for word in allowed)
        raise refusal(field, f"must be {words}, got {shown(value)}")
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
