"""Checks of outside data. Each raises an error that names the field and says what is wrong."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kin_common.errors import InvalidInput, LimitExceeded
from kin_common.texts import shortened

__all__ = ["count", "finite", "name", "number", "one_of", "positive", "shape", "within"]

#: Longest name of a robot, link, joint, goal or file [characters].
LONGEST_NAME = 1000


def finite(field: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return ``values`` as a float64 array, refusing what is no number, NaN or infinite."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(field, f"must hold numbers ({error})") from None
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        at = "" if array.ndim == 0 else " at " + str(list(where) if len(where) > 1 else where[0])
        raise InvalidInput(field, f"must be finite, got {array[where]}{at}")
    return array


def shape(field: str, values: ArrayLike, expected: Sequence[int | None]) -> NDArray[np.float64]:
    """Return ``values`` as a finite array of the expected shape; None stands for any length."""
    array = finite(field, values)
    fits = array.ndim == len(expected) and all(
        want is None or have == want for have, want in zip(array.shape, expected, strict=True)
    )
    if not fits:
        want = "(" + ", ".join("any" if n is None else str(n) for n in expected) + ")"
        raise InvalidInput(field, f"must have the shape {want}, got {array.shape}")
    return array


def number(field: str, value: Any) -> float:
    """Return ``value`` as a finite float; booleans and text are no numbers."""
    if isinstance(value, (bool, str)) or value is None:
        raise InvalidInput(field, f"must be a number, got {shortened(repr(value), 200)}")
    try:
        result = float(value)
    except (TypeError, ValueError):
        raise InvalidInput(field, f"must be a number, got {shortened(repr(value), 200)}") from None
    except OverflowError:
        raise InvalidInput(field, "is too large for a number") from None
    if not math.isfinite(result):
        raise InvalidInput(field, f"must be finite, got {result}")
    return result


def positive(field: str, value: Any) -> float:
    """Return ``value`` as a float greater than zero."""
    result = number(field, value)
    if result <= 0.0:
        raise InvalidInput(field, f"must be greater than zero, got {result:g}")
    return result


def within(field: str, value: Any, low: float, high: float) -> float:
    """Return ``value`` as a float in [low, high]."""
    result = number(field, value)
    if not low <= result <= high:
        raise InvalidInput(field, f"must be between {low:g} and {high:g}, got {result:g}")
    return result


def one_of(field: str, value: str, allowed: Collection[str]) -> str:
    """Return ``value`` if it is one of the allowed names; the error lists them and the nearest."""
    if value in allowed:
        return value
    names = sorted(allowed)
    near = difflib.get_close_matches(str(value)[:200], names, n=1)  # its time grows as the square
    hint = f"; did you mean {near[0]!r}?" if near else "."
    listing = ", ".join(names[:40]) + (", ..." if len(names) > 40 else "") if names else "none"
    raise InvalidInput(field, f"{shortened(repr(value), 200)} is not known{hint} Known: {listing}")


def name(field: str, value: Any, limit: int = LONGEST_NAME) -> str:
    """Return ``value`` if it is a text that is short enough to be a name."""
    if not isinstance(value, str):
        raise InvalidInput(field, f"must be a text, got {shortened(repr(value), 200)}")
    if len(value) > limit:
        raise LimitExceeded(f"{field}: a name of {len(value)} characters; at most {limit} are taken")
    return value


def count(field: str, size: int, limit: int) -> int:
    """Return ``size`` if it is within the limit."""
    if size > limit:
        raise LimitExceeded(f"{field}: {size} is more than the limit of {limit}")
    return size
