"""Intervals of angles that are known up to whole turns, within the ranges of a mechanism."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from kin_solvers.system import System

__all__ = ["turned", "without_turns"]

Array = NDArray[np.float64]

_TWO_PI = 2.0 * math.pi
_PAD = 4e-15
#: Boxes that one box may become, whole turns apart.
_MAX_BOXES = 4096


def turned(lower: Array, upper: Array, system: System) -> list[tuple[Array, Array]]:
    """The parts of a box that lie in the ranges, whole turns apart.

    Args:
        lower: Lower ends, shape (V,); angles may be off by whole turns.
        upper: Upper ends.
        system: Whose ranges (system units).

    Returns:
        Boxes (lower, upper) that hold every configuration of the box that lies in the ranges.
    """
    choices = [_choices(float(lower[k]), float(upper[k]), k, system) for k in range(system.size)]
    if math.prod(len(c) for c in choices) > _MAX_BOXES:
        return [(system.lower.copy(), system.upper.copy())]
    return [
        (np.array([c[0] for c in box]), np.array([c[1] for c in box]))
        for box in itertools.product(*choices)
    ]


def _choices(a: float, b: float, k: int, system: System) -> list[tuple[float, float]]:
    """The same for one variable."""
    lowest, highest = float(system.lower[k]), float(system.upper[k])
    if system.translation[k]:
        low, high = max(a, lowest), min(b, highest)
        return [(low, high)] if low <= high else []
    if b - a >= _TWO_PI:
        return [(lowest, highest)]
    if system.cyclic[k]:
        return [(a, b)]
    # A turn is not a double: n of them are off by as much as the last place of the angle.
    pad = _PAD * (1.0 + abs(lowest) + abs(highest) + abs(a) + abs(b))
    parts = []
    for n in range(
        math.ceil((lowest - b - pad) / _TWO_PI - 1e-14),
        math.floor((highest - a + pad) / _TWO_PI + 1e-14) + 1,
    ):
        slack = pad if n else 0.0
        low = min(max(a + _TWO_PI * n - slack, lowest), highest)
        high = max(min(b + _TWO_PI * n + slack, highest), lowest)
        if low <= high:
            parts.append((low, high))
    return parts


def without_turns(lower: Array, upper: Array, cyclic: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Boxes with the middle of each cyclic angle in [-pi, pi], shapes (N, V).

    Boxes that are turned are padded: a turn is not a double.
    """
    turns = np.where(cyclic, np.round(0.5 * (lower + upper) / _TWO_PI), 0.0)
    pad = np.where(turns != 0.0, 8.0 * 2.0**-53 * (1.0 + np.abs(lower) + np.abs(upper)), 0.0)
    return lower - turns * _TWO_PI - pad, upper - turns * _TWO_PI + pad
