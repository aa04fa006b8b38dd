"""Arrays, and records with named fields for kernels: numba reads them at constant offsets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Flags", "Record", "Records", "Words", "record"]

Array = NDArray[np.float64]
Words = NDArray[np.int64]
Flags = NDArray[np.bool_]
Records = NDArray[np.void]
Record = Any
"""One of the records, as kernels see it."""


def record(integers: str = "", floats: str = "") -> np.dtype[Any]:
    """A record of 8-byte fields.

    Args:
        integers: Names of its integer fields, with spaces between them.
        floats: Names of its float fields, which come after those.
    """
    fields = [(name, np.int64) for name in integers.split()]
    return np.dtype([*fields, *((name, np.float64) for name in floats.split())], align=True)
