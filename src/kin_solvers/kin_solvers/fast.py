"""The fast method: boxes of the mechanism's own variables, loops cut in halves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kin_solvers import fast_kernels
from kin_solvers.boxes import Boxes, Outcome
from kin_solvers.driver import Goal, Tuning, run
from kin_solvers.search import Flag, Search, with_known
from kin_solvers.system import System
from kin_solvers.turns import without_turns

__all__ = ["CHUNK_BOXES", "FastSearch"]

Array = NDArray[np.float64]

#: Boxes that a chunk processes at most before its leftovers are shared out again.
CHUNK_BOXES = 800
#: Work of a chunk (boxes times rows times vertices): some 50 ms, so that progress flows.
CHUNK_WORK = 200_000
TUNING = Tuning(raw_above=0.8, sums_below=0.8, regularisation=0.02, stuck=0.9, stuck_below=0.5)


class FastSearch(Search):
    """The fast method on a system."""

    def __init__(self, system: System, sigma: float, rho: float) -> None:
        self.system = system
        self.tables = system.tables
        self.sigma = sigma * system.unit
        self.rho = rho
        motions = np.diff(system.offsets)
        vertices = float((3.0 ** (motions // 2) + 3.0 ** (motions - motions // 2)).sum())
        self.chunk = int(np.clip(CHUNK_WORK / (system.size * vertices), 4, CHUNK_BOXES))

    def initial(self) -> Boxes:
        """The whole search space."""
        s = self.system
        return Boxes(s.lower[None].copy(), s.upper[None].copy(), np.ones(1))

    def resumed(self, lower: Array, upper: Array, share: Array) -> Boxes:
        """Boxes of configurations as boxes of the system."""
        return Boxes(lower * self.system.unit, upper * self.system.unit, share.copy())

    @property
    def numbers(self) -> int:
        """Numbers that a box holds."""
        return self.system.size

    def run(self, boxes: Boxes, limit: int, flag: Flag, last: Boxes | None = None) -> Outcome:
        """Process at most ``limit`` boxes, depth first.

        Args:
            boxes: The boxes, first one first.
            limit: Boxes to process at most.
            flag: Stop when flag[0] is not 0.
            last: The box that was found last, with which the next one may be merged.
        """
        goal = Goal(self.sigma, self.rho, limit, True, flag, TUNING)
        return run(fast_kernels.search, self.tables, boxes, goal, last)

    def go_on(self, boxes: Boxes, limit: int, known: Boxes, flag: Flag) -> Outcome:
        """The same after others, of which the last found box may grow."""
        outcome = self.run(boxes, limit, flag, known.part(slice(-1, None)))
        return with_known(outcome, known.part(slice(None, -1)))

    def to_angles(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Boxes in the mechanism's units, cyclic angles with their middle in [-pi, pi]."""
        unit = self.system.unit
        return without_turns(lower / unit, upper / unit, self.system.cyclic)

    def unfinished(self, boxes: Boxes) -> Boxes:
        """The same for boxes that are left."""
        return Boxes(*self.to_angles(boxes.lower, boxes.upper), boxes.share)
