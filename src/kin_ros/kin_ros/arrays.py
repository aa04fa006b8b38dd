"""Arrays in messages, without copying element by element.

rclpy keeps an unbounded numeric field as ``array.array``. Handing it a list or an ndarray converts
each element in Python (9 to 13 ms for 200,000 doubles); a buffer copy takes 0.07 ms.
"""

from __future__ import annotations

import array
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from kin_core.errors import InvalidInput

__all__ = ["from_field", "to_field"]

#: The ``array`` type code of each ROS element type.
_TYPECODES = {
    "float64": "d",
    "float32": "f",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
}


def _name(dtype: DTypeLike) -> str:
    name = np.dtype(dtype).name
    # ROS booleans and bytes are carried as uint8.
    name = "uint8" if name == "bool" else name
    if name not in _TYPECODES:
        raise InvalidInput("dtype", f"{name} has no ROS array type; known: {', '.join(_TYPECODES)}")
    return name


def to_field(values: ArrayLike, dtype: DTypeLike = "float64") -> array.array[Any]:
    """Return ``values``, flattened in C order, as the array that a message field takes.

    Args:
        values: Array of any shape.
        dtype: Element type of the field, such as "float64"; values are cast to it.
    """
    name = _name(dtype)
    flat = np.ascontiguousarray(values, dtype=name).reshape(-1)
    field: array.array[Any] = array.array(_TYPECODES[name])
    if flat.size:
        field.frombytes(memoryview(flat.view(np.uint8)))  # type: ignore[arg-type]
    return field


def from_field(field: Any, dtype: DTypeLike | None = None) -> NDArray[Any]:
    """Return a message's array field as a flat ndarray, a view on the message where it can be.

    Args:
        field: ``array.array``, ndarray, bytes, or a sequence of numbers.
        dtype: Element type wanted; None for the field's own. Another type than the field's own
            makes a copy.
    """
    if isinstance(field, array.array):
        own = np.dtype(field.typecode)
        result: NDArray[Any] = (
            np.frombuffer(field, dtype=own) if len(field) else np.empty(0, dtype=own)
        )
    elif isinstance(field, (bytes, bytearray)):
        result = np.frombuffer(field, dtype=np.uint8)
    else:
        result = np.asarray(field).reshape(-1)
    return result if dtype is None else result.astype(np.dtype(dtype), copy=False)
