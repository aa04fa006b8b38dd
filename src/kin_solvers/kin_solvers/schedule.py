"""Where a search stands, and how it goes on.

A search goes in rounds. Each round shares the open boxes out in chunks; a chunk processes as many
boxes as its quota says, and its leftovers are shared out again in the next round. Quotas and shares
depend on the boxes and on the number of the round only, never on budgets, threads or machines. A
budget pauses chunks wherever they are, and a chunk that goes on does what it would have done
without the pause. So many small stretches of work give the bits of one long stretch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kin_core.task import STOP_CANCELLED, Task
from kin_solvers.boxes import Boxes, Counters
from kin_solvers.mechanism import Mechanism
from kin_solvers.search import Chunk, Search, Step, begin

Array = NDArray[np.float64]
#: What is searched and how: the mechanism, the method, sigma and rho.
Question = tuple[Mechanism, str, float, float]

#: Boxes that are processed before work is shared out.
FIRST_BOXES = 400
#: Chunks per round; a constant, so that the answer does not depend on the number of threads.
CHUNKS = 16
#: Quotas double with each round up to so many times the first: long work needs fewer rounds.
MOST_DOUBLINGS = 3
#: Largest number of boxes that one box can become.
PIECES = 4


@dataclass(frozen=True)
class Frontier:
    """A search between two stretches of work.

    Attributes:
        question: What is searched and how; a frontier goes on with the same question only.
        chunks: The chunks of the round under way.
        round: Number of the round.
        found: Boxes found in the rounds before, in parts (lower, upper) of shape (N, V) [rad, m]:
            joined once, at the end.
        counters: What all stretches have counted.
    """

    question: Question
    chunks: tuple[Chunk, ...]
    round: int
    found: tuple[tuple[Array, Array], ...]
    counters: Counters = Counters()  # noqa: RUF009 (frozen)

    def solutions(self, search: Search) -> tuple[Array, Array]:
        """All boxes found so far, in the mechanism's units."""
        parts = [*self.found, *(search.solutions(chunk) for chunk in self.chunks)]
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def unfinished(self, search: Search) -> Boxes:
        """All boxes that are open, in the mechanism's units."""
        return Boxes.joined([search.open_boxes(c) for c in self.chunks], self.found[0][0].shape[1])

    @property
    def count(self) -> int:
        """Boxes found in the rounds before."""
        return sum(len(part[0]) for part in self.found)

    def held(self) -> int:
        """Boxes in memory."""
        return self.count + sum(len(c) for c in self.chunks)


@dataclass(frozen=True)
class Paused:
    """What an answer keeps to go on from.

    Attributes:
        frontier: Where the search stands.
        lower: Boxes that were found, before any was certified or dropped, shape (N, V) [rad, m].
        upper: Their upper ends.
        examined: Whether certificates were looked for in them.
    """

    frontier: Frontier
    lower: Array
    upper: Array
    examined: bool = False

    def found(self, boxes: tuple[Array, Array]) -> bool:
        """Whether these are the boxes that were found."""
        return np.array_equal(self.lower, boxes[0]) and np.array_equal(self.upper, boxes[1])


def start(question: Question, chunks: Iterable[Chunk], size: int) -> Frontier:
    """A frontier before its first round.

    Args:
        question: What is searched and how.
        chunks: The work.
        size: Number of variables of the mechanism.
    """
    none = np.empty((0, size))
    return Frontier(question, tuple(chunks), 0, ((none, none),))


#: A chunk and the boxes that it may process now.
Work = tuple[Chunk, int]


class Runner(Protocol):
    """Where chunks are advanced: here, in threads, or on a cluster.

    Attributes:
        slice: Boxes that a chunk is given at most before budgets are looked at, as a multiple of
            the chunk of the search.
    """

    slice: int

    def __call__(self, works: Sequence[Work]) -> Iterable[Step]:
        """Advance the chunks; results in the same order."""


class Local:
    """Runs chunks in this process, in one thread or several."""

    slice = 4

    def __init__(self, search: Search, task: Task, threads: int) -> None:
        self._search = search
        self._task = task
        self._pool = ThreadPoolExecutor(max_workers=threads) if threads > 1 else None

    def __enter__(self) -> Local:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def __call__(self, works: Sequence[Work]) -> Iterable[Step]:
        """Advance the chunks."""
        return (map if self._pool is None else self._pool.map)(self._one, works)

    def _one(self, work: Work) -> Step:
        return self._search.advance(work[0], work[1], self._task.flag)


def run_rounds(
    search: Search,
    frontier: Frontier,
    runner: Runner,
    task: Task,
    *,
    max_boxes: int,
    max_bytes: int,
) -> tuple[Frontier, str]:
    """Advance a frontier until it is done or a budget is used up.

    At least one box is processed unless the task is stopped before.

    Returns:
        The frontier, and why it stopped: "", "boxes", "memory", "time" or "cancelled".
    """
    per_box = 8 * (2 * search.numbers + 1)
    processed = 0
    report = _Report(task, frontier)
    while True:
        frontier = _next_round(search, frontier)
        if not frontier.chunks:
            return frontier, ""
        if task.stopped:
            return frontier, "cancelled" if task.flag[0] == STOP_CANCELLED else "time"
        budget = max_boxes - processed
        if budget <= 0:
            return frontier, "boxes"
        # A processed box leaves at most PIECES.
        room = (max_bytes // per_box - frontier.held()) // PIECES
        if room <= 0:
            if processed:
                return frontier, "memory"
            room = 1
        works = _allot(frontier.chunks, min(budget, room), runner.slice * search.chunk)
        report.finished = frontier.count
        report.tell(frontier.chunks)
        chunks = list(frontier.chunks)
        counters = frontier.counters
        for number, step in zip(works, runner(list(works.values())), strict=True):
            chunks[number] = step.chunk
            counters += step.counters
            processed += step.counters.processed
            report.add(step, chunks)
        frontier = replace(frontier, chunks=tuple(chunks), counters=counters)


def _allot(chunks: Sequence[Chunk], grant: int, most: int) -> dict[int, Work]:
    """Share a grant of boxes among the chunks that are not done, by number of the chunk."""
    busy = [number for number, chunk in enumerate(chunks) if not chunk.done]
    works = {}
    for position, number in enumerate(busy):
        part = min(most, -(-grant // (len(busy) - position)))
        if part <= 0:
            break
        works[number] = (chunks[number], part)
        grant -= part
    return works


def _next_round(search: Search, frontier: Frontier) -> Frontier:
    """The same frontier, or the next round if the chunks of this one are done."""
    if not all(chunk.done for chunk in frontier.chunks):
        return frontier
    found = (*frontier.found, *(search.solutions(c) for c in frontier.chunks))
    parts = [c.left for c in frontier.chunks if len(c.left)]
    chunks: tuple[Chunk, ...] = ()
    if parts:
        pending = Boxes.joined(parts, 0)
        count = min(CHUNKS, len(pending))
        quota = search.chunk << min(frontier.round, MOST_DOUBLINGS)
        chunks = tuple(begin(pending.part(slice(i, None, count)), quota) for i in range(count))
    return replace(frontier, chunks=chunks, round=frontier.round + 1, found=found)


class _Report:
    """Tells the task how far the search is."""

    def __init__(self, task: Task, frontier: Frontier) -> None:
        self.task = task
        self.finished = frontier.count
        self.processed = frontier.counters.processed
        self.settled = 1.0 - sum(
            float(c.open.share.sum()) + float(c.left.share.sum()) for c in frontier.chunks
        )

    def add(self, step: Step, chunks: Sequence[Chunk]) -> None:
        """Count a piece of work, and report it."""
        self.settled += step.settled
        self.processed += step.counters.processed
        self.tell(chunks)

    def tell(self, chunks: Sequence[Chunk]) -> None:
        """Report where the search stands."""
        queued = sum(len(c.open) + len(c.left) + len(c.kept) for c in chunks)
        found = self.finished + sum(len(c.found) for c in chunks)
        self.task.progress(
            self.settled,
            f"{found} solution boxes, {queued} boxes queued",
            queued=float(queued),
            solutions=float(found),
            processed=float(self.processed),
        )
