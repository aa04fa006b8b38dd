"""Lists of boxes, and what a stretch of work on them gives and counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Boxes", "Counters", "Outcome"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Boxes:
    """Boxes to go on from (system units).

    Attributes:
        lower: Lower ends, shape (N, ...).
        upper: Upper ends, shape (N, ...).
        share: Share of the search volume of each, shape (N,).
    """

    lower: Array
    upper: Array
    share: Array

    def __len__(self) -> int:
        return len(self.share)

    def part(self, index: slice) -> Boxes:
        """Some of the boxes."""
        return Boxes(self.lower[index], self.upper[index], self.share[index])

    @classmethod
    def none(cls, size: int) -> Boxes:
        """No boxes, of so many numbers each."""
        return cls(np.empty((0, size)), np.empty((0, size)), np.empty(0))

    @classmethod
    def settled(cls, lower: Array, upper: Array) -> Boxes:
        """Boxes whose share of the search volume has been counted."""
        return cls(lower, upper, np.zeros(len(lower)))

    @classmethod
    def joined(cls, parts: Sequence[Boxes], size: int) -> Boxes:
        """Boxes of several lists, in order."""
        filled = [p for p in parts if len(p)]
        if len(filled) == 1:
            return filled[0]
        if not filled:
            return cls.none(size)
        return cls(
            np.concatenate([p.lower for p in filled]),
            np.concatenate([p.upper for p in filled]),
            np.concatenate([p.share for p in filled]),
        )


@dataclass(frozen=True)
class Counters:
    """What the paper counts.

    Attributes:
        processed: Boxes taken from the list.
        reductions: Applications of Reduce_Box.
        solutions: Boxes that became solutions, before neighbours were merged.
        empty: Boxes proven empty.
    """

    processed: int = 0
    reductions: int = 0
    solutions: int = 0
    empty: int = 0

    def __add__(self, other: Counters) -> Counters:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Counters(*(a + b for a, b in pairs))


@dataclass(frozen=True)
class Outcome:
    """What one stretch of work gave: found boxes, boxes left, counters, settled share."""

    found_lower: Array
    found_upper: Array
    left: Boxes
    counters: Counters
    settled: float
