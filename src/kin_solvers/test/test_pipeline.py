"""The paper's Fig. 5: corner products, projections and clippings in three threads.

Nothing but these tests runs the pipeline; it states that the three units are what the paper's are.
"""

import math
import queue
import threading
from collections.abc import Callable

import numpy as np
import pytest

from kin_solvers import library, paper_kernels
from kin_solvers.boxes import Boxes, Counters, Outcome
from kin_solvers.compiled import Array
from kin_solvers.paper import PaperSearch
from kin_solvers.search import Flag
from kin_solvers.system import System

#: Boxes that go through the pipeline together, and how many such batches are under way.
BATCH, UNDER_WAY = 8, 3


class _Job:
    """One box under way through the pipeline."""

    def __init__(self, search: PaperSearch, box: Array, share: float) -> None:
        self.room = paper_kernels.make_room(search.tables, search.scalars)
        self.box = self.room.box
        self.box[:] = box
        self.share = share
        self.loop = 0
        self.volume = _volume(self.box)


#: What one unit hands to the next: boxes, what went wrong, or the end.
_Queue = queue.SimpleQueue[list[_Job] | BaseException | None]


def _volume(box: Array) -> float:
    return math.prod(max(float(side), 1e-20) for side in box[:, 1] - box[:, 0])


def _unit(work: Callable[[_Job], None], source: _Queue, target: _Queue) -> None:
    """A unit of the pipeline: does its part of the work on the boxes that come."""
    while True:
        batch = source.get()
        if isinstance(batch, list):
            try:
                for job in batch:
                    work(job)
            except Exception as error:
                batch = error
        target.put(batch)
        if batch is None:
            return


def run_pipelined(search: PaperSearch, boxes: Boxes, limit: int, flag: Flag) -> Outcome:
    """Process at most ``limit`` boxes with the three units of the paper's pipeline.

    The calling thread plays the RISC processor: it keeps the list of boxes, clips, splits, and has
    several batches under way. What happens to a box does not depend on the others, so the counters
    are those of the sequential run.
    """
    tables = search.tables
    to_products, to_projection, to_clipping = _Queue(), _Queue(), _Queue()

    def products(job: _Job) -> None:
        paper_kernels.corner_products(tables, job.room, job.loop)

    def projections(job: _Job) -> None:
        paper_kernels.project(tables, job.room, job.loop)

    units = [
        threading.Thread(target=_unit, args=(products, to_products, to_projection)),
        threading.Thread(target=_unit, args=(projections, to_projection, to_clipping)),
    ]
    for unit in units:
        unit.start()
    processor = _Processor(search, boxes)
    under_way = 0
    try:
        while True:
            processor.take(BATCH * (UNDER_WAY - under_way), limit if flag[0] == 0 else 0)
            while processor.active and under_way < UNDER_WAY:
                to_products.put(processor.active[:BATCH])
                del processor.active[:BATCH]
                under_way += 1
            if under_way == 0:
                return processor.outcome()
            batch = to_clipping.get()
            under_way -= 1
            if isinstance(batch, BaseException):
                raise batch
            for job in batch or []:
                processor.clip(job)
    finally:
        to_products.put(None)
        for unit in units:
            unit.join()


class _Processor:
    """The RISC processor: keeps the list of boxes, clips and splits."""

    def __init__(self, search: PaperSearch, boxes: Boxes) -> None:
        self.search = search
        self.active: list[_Job] = []
        self.counters = Counters()
        self._settled = 0.0
        self._found: list[Array] = []
        self._waiting = [
            (np.stack([boxes.lower[i], boxes.upper[i]], axis=1), float(boxes.share[i]))
            for i in reversed(range(len(boxes)))
        ]

    def take(self, room: int, limit: int) -> None:
        """Take boxes from the list, as long as there is room for them in the pipeline."""
        while self._waiting and len(self.active) < room and self.counters.processed < limit:
            box, share = self._waiting.pop()
            self.counters += Counters(processed=1)
            self.active.append(_Job(self.search, box, share))

    def clip(self, job: _Job) -> None:
        """One loop's clippings of one box, and what becomes of the box."""
        tables = self.search.tables
        alive = paper_kernels.clip_loop(tables, job.room, job.loop)
        job.loop += 1
        if alive and job.loop < len(tables.point):
            self.active.append(job)
            return
        job.loop = 0
        self.counters += Counters(reductions=1)
        sides = job.box[:, 1] - job.box[:, 0]
        volume = _volume(job.box)
        if not alive:
            self.counters += Counters(empty=1)
            self._settled += job.share
        elif sides.max() <= self.search.sigma:
            self.counters += Counters(solutions=1)
            self._settled += job.share
            self._found.append(job.box)
        elif volume > self.search.rho * job.volume:
            widest = int(sides.argmax())
            one, two = job.box.copy(), job.box.copy()
            one[widest, 0] = two[widest, 1] = 0.5 * (job.box[widest, 0] + job.box[widest, 1])
            self._waiting += [(one, 0.5 * job.share), (two, 0.5 * job.share)]
        else:
            job.volume = volume
            self.active.append(job)

    def outcome(self) -> Outcome:
        """What was found and what is left."""
        shape = (-1, self.search.scalars, 2)
        left = np.array([box for box, _ in reversed(self._waiting)]).reshape(shape)
        found = np.array(self._found).reshape(shape)
        share = np.array([share for _, share in reversed(self._waiting)])
        rest = Boxes(left[:, :, 0].copy(), left[:, :, 1].copy(), share)
        return Outcome(found[:, :, 0], found[:, :, 1], rest, self.counters, self._settled)


def test_paper_method_naive_folded_and_pipelined_agree_to_the_last_bit():
    mechanism = library.get("bennett")
    system = System.of(mechanism)
    answers = []
    go = np.zeros(1, dtype=np.int64)
    naive, shared = (PaperSearch(mechanism, system, 0.3, 0.9, naive=n) for n in (True, False))
    for outcome in (
        naive.run(naive.initial(), 10**6, go),
        shared.run(shared.initial(), 10**6, go),
        run_pipelined(shared, shared.initial(), 10**6, go),
    ):
        order = np.lexsort(outcome.found_lower.T)
        answers.append((outcome.counters, outcome.found_lower[order], outcome.found_upper[order]))
    for other in answers[1:]:
        assert other[0] == answers[0][0]
        np.testing.assert_array_equal(other[1], answers[0][1])
        np.testing.assert_array_equal(other[2], answers[0][2])


@pytest.mark.parametrize("unit", ["corner_products", "project", "clip_loop"])
def test_a_unit_that_fails_ends_the_pipeline(unit, monkeypatch):
    def fail(*_):
        raise RuntimeError("broken unit")

    search = PaperSearch(library.get("bennett"), System.of(library.get("bennett")), 0.3, 0.9)
    monkeypatch.setattr(paper_kernels, unit, fail)
    with pytest.raises(RuntimeError, match="broken unit"):
        run_pipelined(search, search.initial(), 10, np.zeros(1, dtype=np.int64))


def test_a_limit_leaves_the_rest():
    search = PaperSearch(library.get("bennett"), System.of(library.get("bennett")), 0.3, 0.9)
    part = run_pipelined(search, search.initial(), 20, np.zeros(1, dtype=np.int64))
    assert part.counters.processed == 20
    assert part.settled + part.left.share.sum() == pytest.approx(1.0)
