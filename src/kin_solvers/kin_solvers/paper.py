"""The paper's method as a search: boxes of the scalars y, z (rotations) and x (translations)."""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kin_solvers import paper_kernels
from kin_solvers.boxes import Boxes, Counters, Outcome
from kin_solvers.errors import SizeError
from kin_solvers.mechanism import Mechanism
from kin_solvers.search import OneStage, with_known
from kin_solvers.system import System
from kin_solvers.turns import turned

__all__ = ["PaperSearch"]

Array = NDArray[np.float64]

#: Largest number of scalars of a loop: 2^16 corners.
MAX_SCALARS = 16
_TWO_PI = 2.0 * math.pi


class PaperSearch(OneStage):
    """Fig. 2 and Fig. 3 of the paper on a mechanism.

    Args:
        mechanism: The mechanism.
        system: Its normal form.
        sigma: Longest side of a solution box, over the scalars.
        rho: Volume ratio above which a box is split.
        naive: Enumerate corners one by one, as the figure stands.
        pipelined: Run the three units of the paper's pipeline in three threads.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        system: System,
        sigma: float,
        rho: float,
        *,
        naive: bool = False,
        pipelined: bool = False,
    ) -> None:
        self.mechanism = mechanism
        self.system = system
        self.sigma = sigma
        self.rho = rho
        self.naive = naive
        self.pipelined = pipelined
        sizes = np.where(system.translation, 1, 2)
        self.first = np.concatenate([[0], np.cumsum(sizes)])
        self.scalars = int(self.first[-1])
        self.factor_scalar = self.first[system.factor_variable].astype(np.int64)
        self.factor_translation = system.translation[system.factor_variable]
        for a, b in zip(system.offsets[:-1], system.offsets[1:], strict=True):
            bits = int(sizes[system.factor_variable[a:b]].sum())
            if bits > MAX_SCALARS:
                raise SizeError(
                    f"method: a loop of {bits} scalars has 2^{bits} corners, more than the 2^"
                    f"{MAX_SCALARS} that the paper's method takes on here; use the fast method"
                )
        corners = float((4.0 ** np.diff(system.offsets)).sum())
        self.chunk = int(np.clip(100_000 / corners, 4, 800))
        # Constants with the leading one of a point closure in front: C_0 Z_1 C_1 ... = I.
        self.constants = system.C[:, :12].copy()
        self.offset = system.C_first

    def initial(self) -> Boxes:
        """The rectangle around the arc of each rotation."""
        return self.resumed(self.system.lower[None], self.system.upper[None], np.ones(1), raw=True)

    def resumed(self, lower: Array, upper: Array, share: Array, *, raw: bool = False) -> Boxes:
        """Boxes of configurations as boxes of scalars, shape (N, S)."""
        unit = 1.0 if raw else self.system.unit
        lower, upper = lower * unit, upper * unit
        low, high = np.empty((len(lower), self.scalars)), np.empty((len(lower), self.scalars))
        for k, s in enumerate(self.first[:-1]):
            a, b = lower[:, k], upper[:, k]
            if self.system.translation[k]:
                low[:, s], high[:, s] = a, b
                continue
            low[:, s], high[:, s] = _range(np.cos, a, b, 0.0)
            low[:, s + 1], high[:, s + 1] = _range(np.sin, a, b, 0.5 * math.pi)
        return Boxes(low, high, share.copy())

    def run(self, boxes: Boxes, limit: int, flag: NDArray[np.int64]) -> Outcome:
        """Process at most ``limit`` boxes."""
        if self.pipelined:
            return _Pipeline(self).run(boxes, limit, flag)
        n = len(boxes)
        capacity = n + min(limit, 64 * self.scalars) + 2
        stack = np.empty((capacity, self.scalars, 2))
        share = np.empty(capacity)
        stack[:n, :, 0], stack[:n, :, 1] = boxes.lower[::-1], boxes.upper[::-1]
        share[:n] = boxes.share[::-1]
        found = np.empty((min(limit, 100_000) + 1, self.scalars, 2))
        counters = np.zeros(6)
        left, count = paper_kernels.search(
            *self.arguments, self.naive, stack, share, n, self.sigma, self.rho, limit, flag, found,
            counters,
        )  # fmt: skip
        rest = Boxes(
            stack[:left, :, 0][::-1].copy(),
            stack[:left, :, 1][::-1].copy(),
            share[:left][::-1].copy(),
        )
        return Outcome(
            found[:count, :, 0].copy(),
            found[:count, :, 1].copy(),
            rest,
            Counters(*(int(c) for c in counters[:4])),
            float(counters[4]),
        )

    @property
    def numbers(self) -> int:
        """Numbers that a box holds."""
        return self.scalars

    def go_on(self, boxes: Boxes, limit: int, known: Boxes, flag: NDArray[np.int64]) -> Outcome:
        """The same after others."""
        return with_known(self.run(boxes, limit, flag), known)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The system as the kernels take it."""
        s = self.system
        return (
            s.offsets,
            self.constants,
            self.factor_translation,
            self.factor_scalar,
            s.point,
            s.C_first,
            s.delta_full,
        )

    def unfinished(self, boxes: Boxes) -> Boxes:
        """Boxes that are left, as boxes of configurations."""
        lower, upper, parent = self._turned(boxes.lower, boxes.upper)
        parts = np.bincount(parent, minlength=len(boxes))
        share = (boxes.share / np.maximum(parts, 1))[parent]
        return Boxes(lower, upper, share)

    def to_angles(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Boxes of scalars as boxes of configurations in the mechanism's units.

        A box may become several: a rectangle says nothing about whole turns, and a range of nearly
        a turn may be met at both of its ends.
        """
        low, high, _ = self._turned(lower, upper)
        return low, high

    def _turned(self, lower: Array, upper: Array) -> tuple[Array, Array, NDArray[np.int64]]:
        """The same, and the box that each comes from, shape (M,)."""
        n, size = len(lower), self.system.size
        low, high = np.empty((n, size)), np.empty((n, size))
        for k, s in enumerate(self.first[:-1]):
            if self.system.translation[k]:
                low[:, k], high[:, k] = lower[:, s], upper[:, s]
                continue
            low[:, k], high[:, k] = _seen_angle(
                lower[:, s], upper[:, s], lower[:, s + 1], upper[:, s + 1]
            )
        parts = [turned(low[i], high[i], self.system) for i in range(n)]
        boxes = [box for part in parts for box in part]
        unit = self.system.unit
        return (
            np.array([a for a, _ in boxes]).reshape(-1, size) / unit,
            np.array([b for _, b in boxes]).reshape(-1, size) / unit,
            np.repeat(np.arange(n), [len(part) for part in parts]),
        )


def _range(
    function: Callable[[Array], Array], a: Array, b: Array, top: float
) -> tuple[Array, Array]:
    """Range over [a, b] of the cosine or the sine, which is 1 at ``top``."""
    x, y = function(a), function(b)
    low, high = np.minimum(x, y) - 1e-15, np.maximum(x, y) + 1e-15
    slack = 1e-12 + 4e-15 * (np.abs(a) + np.abs(b))

    def passes(place: float) -> NDArray[np.bool_]:
        turn = np.floor((b - place + slack) / _TWO_PI) >= np.ceil((a - place - slack) / _TWO_PI)
        return np.asarray(turn)

    return (
        np.maximum(-1.0, np.where(passes(top + math.pi), -1.0, low)),
        np.minimum(1.0, np.where(passes(top), 1.0, high)),
    )


def _seen_angle(y0: Array, y1: Array, z0: Array, z1: Array) -> tuple[Array, Array]:
    """Angles under which rectangles are seen from the origin; a whole turn if they hold it."""
    middle = np.arctan2(0.5 * (z0 + z1), 0.5 * (y0 + y1))
    corners = np.stack([np.arctan2(z, y) for y in (y0, y1) for z in (z0, z1)])
    offset = np.remainder(corners - middle + math.pi, _TWO_PI) - math.pi
    low, high = middle + offset.min(axis=0) - 1e-14, middle + offset.max(axis=0) + 1e-14
    holds = (y0 <= 1e-12) & (y1 >= -1e-12) & (z0 <= 1e-12) & (z1 >= -1e-12)
    return np.where(holds, -math.pi, low), np.where(holds, math.pi, high)


class _Pipeline:
    """The paper's Fig. 5: corner products, projections and clippings in three threads.

    The calling thread plays the RISC processor: it keeps the list of boxes, clips, splits, and has
    several batches under way. What happens to a box does not depend on the others, so the counters
    are those of the sequential run.
    """

    BATCH = 8
    UNDER_WAY = 3

    def __init__(self, search: PaperSearch) -> None:
        self.search = search

    def run(self, boxes: Boxes, limit: int, flag: NDArray[np.int64]) -> Outcome:
        """Process at most ``limit`` boxes."""
        s = self.search
        waiting = [
            (np.stack([boxes.lower[i], boxes.upper[i]], axis=1), float(boxes.share[i]))
            for i in reversed(range(len(boxes)))
        ]
        found: list[Array] = []
        totals = np.zeros(6)
        to_products: queue.SimpleQueue[Any] = queue.SimpleQueue()
        to_projection: queue.SimpleQueue[Any] = queue.SimpleQueue()
        to_clipping: queue.SimpleQueue[Any] = queue.SimpleQueue()
        units = [
            threading.Thread(target=self._products, args=(to_products, to_projection)),
            threading.Thread(target=self._projections, args=(to_projection, to_clipping)),
        ]
        for unit in units:
            unit.start()
        under_way = 0
        active: list[_Job] = []
        try:
            while True:
                while (
                    waiting
                    and len(active) + under_way * self.BATCH < self.BATCH * self.UNDER_WAY
                    and totals[0] < limit
                    and flag[0] == 0
                ):
                    box, share = waiting.pop()
                    totals[0] += 1
                    active.append(_Job(box, share))
                while active and under_way < self.UNDER_WAY:
                    to_products.put(active[: self.BATCH])
                    del active[: self.BATCH]
                    under_way += 1
                if under_way == 0:
                    break
                batch = to_clipping.get()
                under_way -= 1
                if isinstance(batch, BaseException):
                    raise batch
                for job in batch:
                    self._clip(job, active, waiting, found, totals)
        finally:
            to_products.put(None)
            for unit in units:
                unit.join()
        stack = np.array([b for b, _ in reversed(waiting)]).reshape(-1, s.scalars, 2)
        result = np.array(found).reshape(-1, s.scalars, 2)
        return Outcome(
            result[:, :, 0],
            result[:, :, 1],
            Boxes(
                stack[:, :, 0].copy(),
                stack[:, :, 1].copy(),
                np.array([w for _, w in reversed(waiting)]),
            ),
            Counters(*(int(c) for c in totals[:4])),
            float(totals[4]),
        )

    def _products(self, source: Any, target: Any) -> None:
        """VU0."""
        offsets, C, translation, scalar, _point, _first, _delta = self.search.arguments
        while True:
            batch = source.get()
            if batch is None:
                target.put(None)
                return
            for job in batch:
                first = int(offsets[job.loop])
                n = int(offsets[job.loop + 1]) - first
                job.bits = self._bits(first, n)
                corners = 1 << job.bits
                job.side, spare = np.empty((corners, 12)), np.empty((corners, 12))
                paper_kernels.corner_products(
                    C, translation, scalar, job.box, first, n, np.empty((4, 16)), job.side, spare
                )
            target.put(batch)

    def _projections(self, source: Any, target: Any) -> None:
        """VU1."""
        offsets, _C, translation, _scalar, _point, _first, _delta = self.search.arguments
        while True:
            batch = source.get()
            if batch is None:
                return
            for job in batch:
                first = int(offsets[job.loop])
                n = int(offsets[job.loop + 1]) - first
                job.low = np.empty((job.bits, 2, 12))
                job.high = np.empty((job.bits, 2, 12))
                folds = np.empty((2, 1 << job.bits, 12))
                blocks = np.empty((2, 4, 12))
                paper_kernels.project(
                    job.side, translation, first, n, job.bits, folds, blocks, job.low, job.high
                )
            target.put(batch)

    def _bits(self, first: int, n: int) -> int:
        return int(np.where(self.search.factor_translation[first : first + n], 1, 2).sum())

    def _clip(
        self,
        job: _Job,
        active: list[_Job],
        waiting: list[tuple[Array, float]],
        found: list[Array],
        totals: Array,
    ) -> None:
        """The RISC processor: one loop's clippings of one box, and what becomes of the box."""
        s = self.search
        offsets, _C, translation, scalar, point, first_inverse, delta = s.arguments
        first = int(offsets[job.loop])
        n = int(offsets[job.loop + 1]) - first
        alive = paper_kernels.clip_loop(
            translation, scalar, first, n, job.loop, point, first_inverse, delta, job.low,
            job.high, job.box, np.empty((s.scalars, 2)),
        )  # fmt: skip
        job.loop += 1
        if alive and job.loop < len(point):
            active.append(job)
            return
        totals[1] += 1
        job.loop = 0
        if not alive:
            totals[3] += 1
            totals[4] += job.share
            return
        longest, volume = paper_kernels.box_sizes(job.box)
        if longest <= s.sigma:
            totals[2] += 1
            totals[4] += job.share
            found.append(job.box)
        elif volume > s.rho * job.volume:
            one, two = np.empty_like(job.box), np.empty_like(job.box)
            paper_kernels.split(job.box, one, two)
            waiting += [(one, 0.5 * job.share), (two, 0.5 * job.share)]
        else:
            job.volume = volume
            active.append(job)


class _Job:
    """One box under way through the pipeline."""

    def __init__(self, box: Array, share: float) -> None:
        self.box = np.ascontiguousarray(box)
        self.share = share
        self.loop = 0
        self.bits = 0
        self.volume = float(paper_kernels.box_sizes(self.box)[1])
        self.side = self.low = self.high = np.empty(0)
