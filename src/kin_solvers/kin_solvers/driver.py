"""The compiled searches, called from Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kin_solvers.boxes import Boxes, Counters, Outcome
from kin_solvers.fast_kernels import MOST_PIECES

__all__ = ["run"]

Array = NDArray[np.float64]


def run(
    kernel: Callable[..., tuple[int, int]],
    tables: tuple[Any, ...],
    boxes: Boxes,
    limit: int,
    flag: NDArray[np.int64],
    sigma: Array,
    rho: float,
    tuning: Array,
    last: Boxes | None = None,
) -> Outcome:
    """Give a compiled search its stack and take what it leaves.

    With the box that was found last, the result begins with this box, which may have grown.
    """
    n, size = boxes.lower.shape
    capacity = n + min(limit, 64 * size) * MOST_PIECES + 2
    stack_lower, stack_upper = np.empty((capacity, size)), np.empty((capacity, size))
    share = np.empty(capacity)
    # The first box is taken first: the kernel pops from the end.
    stack_lower[:n], stack_upper[:n] = boxes.lower[::-1], boxes.upper[::-1]
    share[:n] = boxes.share[::-1]
    known = 0 if last is None else len(last)
    room = min(limit, 100_000) + 1 + known
    found_lower, found_upper = np.empty((room, size)), np.empty((room, size))
    counters = np.zeros(6)
    if last is not None and known:
        found_lower[:known], found_upper[:known] = last.lower, last.upper
        counters[5] = known
    left, found = kernel(
        tables, stack_lower, stack_upper, share, n, sigma, rho, limit, tuning, flag, found_lower,
        found_upper, counters,
    )  # fmt: skip
    rest = Boxes(
        stack_lower[:left][::-1].copy(),
        stack_upper[:left][::-1].copy(),
        share[:left][::-1].copy(),
    )
    return Outcome(
        found_lower[:found].copy(),
        found_upper[:found].copy(),
        rest,
        Counters(*(int(c) for c in counters[:4])),
        float(counters[4]),
    )
