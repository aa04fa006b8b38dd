"""What a search is: a method that works on chunks of boxes until they are settled."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kin_solvers.boxes import Boxes, Counters, Outcome

Array = NDArray[np.float64]
#: Work stops when its first number is not 0.
Flag = NDArray[np.int64]

#: Stages of a chunk. A search in several stages numbers its own from 1 on.
SEARCH, DONE = 0, -1


@dataclass(frozen=True)
class Chunk:
    """Work that is shared out as one, wherever it stands.

    Attributes:
        stage: ``SEARCH``, a stage of the method, or ``DONE``.
        open: Boxes that this stage has yet to process, next one first.
        quota: Boxes that this stage may still process.
        found: Boxes that this stage has found; of the last stage: the solutions.
        kept: Boxes that wait for a later stage.
        left: Boxes beyond the quota of the search, for the next round.
    """

    stage: int
    open: Boxes
    quota: int
    found: Boxes
    kept: Boxes
    left: Boxes

    @property
    def done(self) -> bool:
        """Whether nothing is left to do in this round."""
        return self.stage == DONE

    def __len__(self) -> int:
        """Boxes that are held."""
        return len(self.open) + len(self.found) + len(self.kept) + len(self.left)


@dataclass(frozen=True)
class Step:
    """What one stretch of work made of a chunk: the chunk, counters, settled share."""

    chunk: Chunk
    counters: Counters
    settled: float


class Search(ABC):
    """One method: works on boxes until they are settled or a limit is reached.

    A method of one stage, the search itself, defines ``go_on``; one of several overrides what deals
    with chunks.

    Attributes:
        chunk: Boxes that make a chunk of work; depends on the mechanism only.
    """

    chunk: int

    @property
    @abstractmethod
    def numbers(self) -> int:
        """Numbers that a box holds at most."""

    @abstractmethod
    def initial(self) -> Boxes:
        """The whole search space."""

    @abstractmethod
    def resumed(self, lower: Array, upper: Array, share: Array) -> Boxes:
        """Boxes of configurations as boxes of this method."""

    @abstractmethod
    def run(self, boxes: Boxes, limit: int, flag: Flag) -> Outcome:
        """Process at most ``limit`` boxes, depth first."""

    @abstractmethod
    def to_angles(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Found boxes as boxes of configurations in the mechanism's units."""

    @abstractmethod
    def unfinished(self, boxes: Boxes) -> Boxes:
        """The same for boxes that are left."""

    def go_on(self, boxes: Boxes, limit: int, known: Boxes, flag: Flag) -> Outcome:
        """Process at most ``limit`` boxes; the found boxes begin with the known ones."""
        return with_known(self.run(boxes, limit, flag), known)

    def given(self, lower: Array, upper: Array, share: Array, quota: int) -> list[Chunk]:
        """Chunks that search boxes of configurations."""
        return [begin(self.resumed(lower, upper, share), quota)]

    def advance(self, chunk: Chunk, limit: int, flag: Flag) -> Step:
        """Go on with a chunk for at most ``limit`` boxes."""
        step = advance_one_stage(
            lambda boxes, most, held: self.go_on(boxes, most, held.found, flag), chunk, limit, flag
        )
        chunk = step.chunk
        if len(chunk.open) and chunk.quota:
            return step
        none = Boxes.none(chunk.open.lower.shape[1])
        return replace(step, chunk=replace(chunk, stage=DONE, left=chunk.open, open=none))

    def solutions(self, chunk: Chunk) -> tuple[Array, Array]:
        """What a chunk has found, as boxes of configurations in the mechanism's units."""
        return self.to_angles(chunk.found.lower, chunk.found.upper)

    def open_boxes(self, chunk: Chunk) -> Boxes:
        """What a chunk has left open, as boxes of configurations in the mechanism's units."""
        size = chunk.open.lower.shape[1]
        return self.unfinished(Boxes.joined([chunk.open, chunk.left], size))


def begin(boxes: Boxes, quota: int) -> Chunk:
    """A chunk that has not begun."""
    none = Boxes.none(boxes.lower.shape[1])
    return Chunk(SEARCH, boxes, quota, none, none, none)


def advance_one_stage(
    run: Callable[[Boxes, int, Chunk], Outcome], chunk: Chunk, limit: int, flag: Flag
) -> Step:
    """Process boxes of the stage that a chunk is in, until limit, quota or boxes come to an end.

    Args:
        run: Processes at most so many boxes of a chunk; the found boxes begin with those that the
            chunk has found before.
        chunk: The chunk.
        limit: Boxes to process at most.
        flag: Stop when flag[0] is not 0.
    """
    counters, settled = Counters(), 0.0
    size = chunk.open.lower.shape[1]
    while True:
        most = min(limit - counters.processed, chunk.quota)
        if most <= 0 or not len(chunk.open) or flag[0] != 0:
            return Step(chunk, counters, settled)
        # Depth first: boxes beyond the limit cannot be reached.
        outcome = run(chunk.open.part(slice(None, most)), most, chunk)
        counters += outcome.counters
        settled += outcome.settled
        chunk = replace(
            chunk,
            open=Boxes.joined([outcome.left, chunk.open.part(slice(most, None))], size),
            quota=chunk.quota - outcome.counters.processed,
            found=Boxes.settled(outcome.found_lower, outcome.found_upper),
        )


def with_known(outcome: Outcome, known: Boxes) -> Outcome:
    """An outcome whose found boxes come after others."""
    if not len(known):
        return outcome
    return replace(
        outcome,
        found_lower=np.concatenate([known.lower, outcome.found_lower]),
        found_upper=np.concatenate([known.upper, outcome.found_upper]),
    )
