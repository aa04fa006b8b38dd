"""Checks of outside data. Each raises an error that names the field and says what is wrong."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kin_core.errors import InvalidInput, LimitExceeded
from kin_core.texts import did_you_mean

__all__ = [
    "LONGEST_NAME",
    "UNIT_TOLERANCE",
    "count",
    "finite",
    "number",
    "one_of",
    "positive",
    "quaternion",
    "shape",
    "shown",
    "text",
    "title",
    "within",
]

#: Longest name of a robot, link, joint, goal or file [characters].
LONGEST_NAME = 1000
#: Largest distance of a quaternion's norm from 1: what three decimals of each component leave.
UNIT_TOLERANCE = 1e-3
#: Longest picture of a wrong value in an error [characters].
_MAX_SHOWN = 80


_PICTURE = reprlib.Repr()
_PICTURE.maxstring = _PICTURE.maxother = _PICTURE.maxlong = _MAX_SHOWN


def shown(value: Any) -> str:
    """A value as errors show it: in one line, never long, whatever it is."""
    try:
        if isinstance(value, np.ndarray):
            return f"an array of shape {value.shape}"
        picture = " ".join(_PICTURE.repr(value).split())
    except Exception:  # a number of too many digits, or an object that has no picture
        return f"a value of type {type(value).__name__}"
    return picture if len(picture) <= 2 * _MAX_SHOWN else picture[: 2 * _MAX_SHOWN] + "..."


def text(field: str, value: Any, longest: int = LONGEST_NAME) -> str:
    """Return ``value`` if it is a text of bounded length, perhaps empty."""
    if not isinstance(value, str):
        raise InvalidInput(field, f"must be a text, got {shown(value)}")
    if len(value) > longest:
        raise InvalidInput(
            field, f"is a text of {len(value)} characters, more than the limit of {longest}"
        )
    return value


def title(field: str, value: Any, longest: int = LONGEST_NAME) -> str:
    """Return ``value`` if it is a text of bounded length that is not empty."""
    if not text(field, value, longest):
        raise InvalidInput(field, "is empty")
    return str(value)


def finite(field: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return ``values`` as a float64 array, refusing what is no number, NaN or infinite."""
    try:
        raw = np.asarray(values)
        if raw.dtype.kind in "SUcMm":
            raise InvalidInput(field, f"must hold numbers, got {shown(values)}")
        array = raw.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput(field, f"must hold numbers ({error})") from None
    except OverflowError:
        raise InvalidInput(field, "must be finite, got a whole number of too many digits") from None
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


def quaternion(field: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return a quaternion (x, y, z, w), shape (4,), scaled to norm 1; it must be near that."""
    q = shape(field, values, (4,))
    norm = math.hypot(*q.tolist())
    if not abs(norm - 1.0) <= UNIT_TOLERANCE:
        raise InvalidInput(field, f"must be a quaternion of norm 1, got norm {norm:.7g}")
    return q / norm


def number(field: str, value: Any) -> float:
    """Return ``value`` as a finite float; booleans and text are no numbers."""
    several = isinstance(value, np.ndarray) and value.ndim > 0
    if several or isinstance(value, (bool, np.bool_, str, bytes, bytearray)) or value is None:
        raise InvalidInput(field, f"must be a number, got {shown(value)}")
    try:
        result = float(value)
    except (TypeError, ValueError):
        raise InvalidInput(field, f"must be a number, got {shown(value)}") from None
    except OverflowError:
        raise InvalidInput(field, "must be finite, got a whole number of too many digits") from None
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
    if not isinstance(value, str):
        raise InvalidInput(field, f"must be a text, got {shown(value)}")
    if value in allowed:
        return value
    names = sorted(allowed)
    hint = did_you_mean(value, names) or "."
    listing = ", ".join(names[:40]) + (", ..." if len(names) > 40 else "") if names else "none"
    raise InvalidInput(field, f"{shown(value)} is not known{hint} Known: {listing}")


def count(field: str, size: int, limit: int) -> int:
    """Return ``size`` if it is within the limit."""
    if size > limit:
        raise LimitExceeded(f"{field}: {size} is more than the limit of {limit}")
    return size
