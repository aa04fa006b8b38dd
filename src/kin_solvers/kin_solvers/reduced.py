"""The fast method on fewer unknowns than variables, then on all variables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kin_solvers.boxes import Boxes, Counters, Outcome
from kin_solvers.driver import Goal, Kernel, run
from kin_solvers.fast import CHUNK_BOXES, FastSearch
from kin_solvers.planar import PlanarSystem
from kin_solvers.platform import PlatformSystem
from kin_solvers.schedule import CHUNKS
from kin_solvers.search import (
    DONE,
    SEARCH,
    Chunk,
    Flag,
    Search,
    Step,
    advance_one_stage,
    begin,
    with_known,
)

__all__ = ["Reduced", "ReducedSearch"]

Array = NDArray[np.float64]

#: Times that boxes of unknowns are made smaller before the other variables are looked for.
REFINEMENTS = 6
#: The stage after them, and boxes that are brought to it at a time.
FINISH, BATCH = REFINEMENTS + 1, 32
#: What a stage without a quota may process.
NO_QUOTA = 1 << 62
#: Boxes that ``run`` may process in all stages, for each of the search.
FINISH_FACTOR = 8


#: A mechanism with fewer unknowns than variables: absolute angles, or a platform's pose.
Reduced = PlanarSystem | PlatformSystem


class ReducedSearch(Search):
    """The fast method on fewer unknowns, then on all variables.

    Found boxes of unknowns are made smaller as long as their number does not grow, brought to all
    variables, where they may be wider than sigma, and finished there by the general method. The
    stages of a chunk: ``SEARCH``, one for each refinement, ``FINISH``.
    """

    def __init__(self, reduced: Reduced, sigma: float, rho: float) -> None:
        self.reduced = reduced
        self.finish = FastSearch(reduced.system, sigma, rho)
        unit = np.where(reduced.tables.arcs["translation"], reduced.system.length, 1.0)
        self.sigma = min(sigma, reduced.coarsest) * unit
        self.rho = rho
        self.chunk = CHUNK_BOXES

    @property
    def numbers(self) -> int:
        """Numbers that a box holds at most."""
        return max(self.reduced.size, self.reduced.system.size)

    def initial(self) -> Boxes:
        """The whole search space."""
        return Boxes(self.reduced.lower[None].copy(), self.reduced.upper[None].copy(), np.ones(1))

    def resumed(self, lower: Array, upper: Array, share: Array) -> Boxes:
        """Boxes of configurations as boxes of unknowns, which may hold more."""
        unit = self.reduced.system.unit
        return Boxes(*self.reduced.from_joints(lower * unit, upper * unit), share.copy())

    def given(self, lower: Array, upper: Array, share: Array, quota: int) -> list[Chunk]:
        """Chunks that search boxes of configurations and nothing beyond them.

        Where the unknowns are some of the variables, a box that leaves the others free begins with
        them. Any other would grow on the way to the unknowns and back, and a search that is given
        back its own open boxes might never end: it is searched in all variables.
        """
        system = self.reduced.system
        unit = system.unit
        whole = np.zeros(len(lower), dtype=bool)
        chunks = []
        if self.reduced.selects:
            boxes = self.resumed(lower, upper, share)
            low, high, _ = self.reduced.to_joints(boxes.lower, boxes.upper)
            slack = 1e-12 * (1.0 + np.abs(low) + np.abs(high))
            whole = np.all((low >= lower * unit - slack) & (high <= upper * unit + slack), axis=1)
            if whole.any():
                chunks = [begin(Boxes(boxes.lower[whole], boxes.upper[whole], share[whole]), quota)]
        rest = Boxes(lower[~whole] * unit, upper[~whole] * unit, share[~whole])
        none = Boxes.none(self.reduced.size)
        count = min(CHUNKS, len(rest))
        for i in range(count):
            part = rest.part(slice(i, None, count))
            found = Boxes.none(self.reduced.system.size)
            chunks.append(Chunk(FINISH, part, NO_QUOTA, found, none, none))
        return chunks

    def run(self, boxes: Boxes, limit: int, flag: Flag) -> Outcome:
        """Process at most ``limit`` boxes, depth first, and finish what was found for a while."""
        step = self.advance(begin(boxes, limit), FINISH_FACTOR * (limit + 100), flag)
        chunk = step.chunk
        none = Boxes.none(self.finish.system.size)
        found = chunk.found if chunk.stage in (FINISH, DONE) else none
        left = [chunk.left, *self._of_unknowns(chunk)]
        if chunk.stage == FINISH:
            back = self.reduced.from_joints(chunk.open.lower, chunk.open.upper)
            left.append(Boxes(*back, chunk.open.share))
        rest = Boxes.joined(left, self.reduced.size)
        return Outcome(found.lower, found.upper, rest, step.counters, step.settled)

    def advance(self, chunk: Chunk, limit: int, flag: Flag) -> Step:
        """Go on with a chunk, through its stages, for at most ``limit`` boxes."""
        counters, settled = Counters(), 0.0
        while True:
            step = advance_one_stage(
                lambda boxes, most, held: self._go_on(boxes, most, held, flag),
                chunk,
                limit - counters.processed,
                flag,
            )
            counters, settled = counters + step.counters, settled + step.settled
            chunk = step.chunk
            if len(chunk.open) and chunk.quota:
                return Step(chunk, counters, settled)
            chunk = self._next_stage(chunk)
            if chunk.done:
                return Step(chunk, counters, settled)

    def _go_on(self, boxes: Boxes, most: int, held: Chunk, flag: Flag) -> Outcome:
        """Process boxes of the stage that a chunk is in."""
        if held.stage == FINISH:
            return self.finish.go_on(boxes, most, held.found, flag)
        sigma, tuning = self.sigma * 0.25**held.stage, self.reduced.tuning
        goal = Goal(sigma, self.rho, most, False, flag, tuning)
        kernel: Kernel[Any] = self.reduced.kernel
        outcome = run(kernel, self.reduced.tables, boxes, goal)
        # A box of unknowns is no solution yet.
        outcome = replace(outcome, counters=replace(outcome.counters, solutions=0))
        return with_known(outcome, held.found)

    def _next_stage(self, chunk: Chunk) -> Chunk:
        """What follows when a stage has come to its end."""
        none = Boxes.none(self.reduced.size)
        if chunk.stage == FINISH:
            return self._waiting(chunk)
        if chunk.stage == SEARCH:
            chunk = replace(chunk, left=chunk.open, kept=chunk.found)
        elif len(chunk.open) or len(chunk.found) > 1.5 * len(chunk.kept) + 4:
            return self._finished(chunk)  # a curve: smaller boxes would only be more boxes
        else:
            chunk = replace(chunk, kept=chunk.found)
        n, stage = len(chunk.kept), chunk.stage + 1
        if n == 0 or stage > REFINEMENTS or float(self.sigma.min()) * 0.25**stage < 1e-9:
            return self._finished(chunk)
        return replace(chunk, stage=stage, open=chunk.kept, found=none, quota=4 * n + 40)

    def _finished(self, chunk: Chunk) -> Chunk:
        """The chunk with its kept boxes waiting for the last stage."""
        none = Boxes.none(self.finish.system.size)
        return self._waiting(replace(chunk, stage=FINISH, open=none, found=none))

    def _waiting(self, chunk: Chunk) -> Chunk:
        """Bring the next boxes that wait to all variables, a few at a time."""
        while len(chunk.kept):
            now, later = chunk.kept.part(slice(BATCH)), chunk.kept.part(slice(BATCH, None))
            lower, upper, _ = self.reduced.to_joints(now.lower, now.upper)
            chunk = replace(chunk, kept=later)
            if len(lower):
                return replace(chunk, open=Boxes.settled(lower, upper), quota=NO_QUOTA)
        return replace(chunk, stage=DONE, open=Boxes.none(self.finish.system.size))

    def _of_unknowns(self, chunk: Chunk) -> list[Boxes]:
        """Boxes of unknowns that a chunk has yet to bring to their end, without its leftovers."""
        if chunk.stage == DONE:
            return []
        return [chunk.kept] if chunk.stage == FINISH else [chunk.open, chunk.found]

    def to_angles(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Found boxes in the mechanism's units."""
        return self.finish.to_angles(lower, upper)

    def solutions(self, chunk: Chunk) -> tuple[Array, Array]:
        """What a chunk has found, in the mechanism's units."""
        if chunk.stage in (FINISH, DONE):
            return self.to_angles(chunk.found.lower, chunk.found.upper)
        none = np.empty((0, self.finish.system.size))
        return none, none

    def open_boxes(self, chunk: Chunk) -> Boxes:
        """What a chunk has left open, as boxes of all variables in the mechanism's units."""
        boxes = Boxes.joined([*self._of_unknowns(chunk), chunk.left], self.reduced.size)
        parts = [self.unfinished(boxes)] if len(boxes) else []
        if chunk.stage == FINISH:
            parts.append(self.finish.unfinished(chunk.open))
        return Boxes.joined(parts, self.finish.system.size)

    def unfinished(self, boxes: Boxes) -> Boxes:
        """Boxes of unknowns as boxes of all variables."""
        lower, upper, parent = self.reduced.to_joints(boxes.lower, boxes.upper)
        parts = np.bincount(parent, minlength=len(boxes))
        share = (boxes.share / np.maximum(parts, 1))[parent]
        return Boxes(*self.finish.to_angles(lower, upper), share)
