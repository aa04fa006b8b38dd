"""Records with named fields for kernels: numba reads them at constant offsets."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["record"]


def record(integers: str = "", floats: str = "") -> np.dtype[Any]:
    """A record of 8-byte fields.

    Args:
        integers: Names of its integer fields, with spaces between them.
        floats: Names of its float fields, which come after those.
    """
    fields = [(name, np.int64) for name in integers.split()]
    return np.dtype([*fields, *((name, np.float64) for name in floats.split())], align=True)
