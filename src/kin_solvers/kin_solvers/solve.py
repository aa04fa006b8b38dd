"""Solving a mechanism: settings, budgets, threads, certificates."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kin_core.checks import shown
from kin_core.task import Task
from kin_solvers import border, fast_kernels, planar_kernels, platform_kernels
from kin_solvers.boxes import Boxes, Outcome
from kin_solvers.errors import RequestError, SettingsError
from kin_solvers.frontier import (
    CHUNKS,
    DONE,
    FIRST_BOXES,
    SEARCH,
    Chunk,
    Frontier,
    Local,
    OneStage,
    Paused,
    Search,
    Step,
    advance_one_stage,
    begin,
    run_rounds,
    start,
    with_known,
)
from kin_solvers.manifold import Counters, Manifold
from kin_solvers.mechanism import Mechanism
from kin_solvers.paper import PaperSearch
from kin_solvers.planar import PlanarSystem
from kin_solvers.platform import PlatformSystem
from kin_solvers.separate import FinerBoxes, Separated, separate
from kin_solvers.system import System
from kin_solvers.turns import without_turns

__all__ = ["Boxes", "Settings", "solve"]

Array = NDArray[np.float64]

_TWO_PI = 2.0 * math.pi
_TURN_PAD = 1e-15
#: Boxes that a chunk processes at most before its leftovers are shared out again.
CHUNK_BOXES = 800
#: Work of a chunk (boxes times rows times vertices): some 50 ms, so that progress flows.
CHUNK_WORK = 200_000
#: Tuning of the fast method: raw rows above this half-width, preconditioned rows up to this one,
#: factor of the regularisation, ratio of the longest side above which a box is split, sigmas from
#: which on that holds.
TUNING = np.array([0.8, 0.8, 0.02, 0.9, 0.5])
#: Times that boxes of unknowns are made smaller before the other variables are looked for.
REFINEMENTS = 6
#: The stage after them, and boxes that are brought to it at a time.
FINISH, BATCH = REFINEMENTS + 1, 32
#: Boxes that the separation of solutions may process whatever the budget of the search.
LEAST_SEPARATION = 10_000
#: What a stage without a quota may process.
NO_QUOTA = 1 << 62
#: Boxes that ``run`` may process in all stages, for each of the search.
FINISH_FACTOR = 8
#: The same for planar mechanisms, and for platforms.
PLANAR_TUNING = np.array([0.5, 1.6, 0.05, 0.95, 0.0])
#: Largest box of a platform's pose from which the many angles of its legs are looked for [rad, m].
PLATFORM_SIGMA = 0.02
PLATFORM_TUNING = np.array([0.5, 1.6, 0.05, 0.95, 0.0])


@dataclass(frozen=True)
class Settings:
    """How to solve.

    Attributes:
        sigma: Side at which a box counts as solution [rad, m].
        rho: Volume ratio above which a box is split instead of reduced again.
        method: "fast" or "paper".
        threads: Worker threads; 0: as many as there are processors.
        max_boxes: Budget of boxes to process.
        max_bytes: Budget of memory for boxes [bytes].
        certify: Whether to certify isolated solutions.
        engine: "local", or "dask" for a cluster.
        scheduler: Address of the dask scheduler.
    """

    sigma: float = 0.1
    rho: float = 0.8
    method: str = "fast"
    threads: int = 1
    max_boxes: int = 50_000_000
    max_bytes: int = 1 << 30
    certify: bool = True
    engine: str = "local"
    scheduler: str = ""

    def __post_init__(self) -> None:
        sigma = border.number("sigma", self.sigma, SettingsError)
        if sigma <= 0.0:
            raise SettingsError("sigma", f"must be greater than zero, got {sigma}")
        if sigma < 1e-9:
            raise SettingsError("sigma", f"must be at least 1e-9, got {sigma}")
        rho = border.number("rho", self.rho, SettingsError)
        if not 0.0 < rho < 1.0:
            raise SettingsError("rho", f"must be between 0 and 1, got {rho}")
        border.choice("method", self.method, ("fast", "paper"))
        border.choice("engine", self.engine, ("local", "dask"))
        border.text("scheduler", self.scheduler, SettingsError)
        if not isinstance(self.certify, (bool, np.bool_)):
            raise SettingsError("certify", f"must be true or false, got {shown(self.certify)}")
        whole = {
            "threads": border.whole("threads", self.threads, 0, 256),
            "max_boxes": border.whole("max_boxes", self.max_boxes, 1),
            "max_bytes": border.whole("max_bytes", self.max_bytes, 1 << 12),
        }
        for name, value in {"sigma": sigma, "rho": rho, **whole}.items():
            object.__setattr__(self, name, value)  # numpy's numbers become Python's


class FastSearch(OneStage):
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

    def run(
        self, boxes: Boxes, limit: int, flag: NDArray[np.int64], last: Boxes | None = None
    ) -> Outcome:
        """Process at most ``limit`` boxes, depth first.

        Args:
            boxes: The boxes, first one first.
            limit: Boxes to process at most.
            flag: Stop when flag[0] is not 0.
            last: The box that was found last, with which the next one may be merged.
        """
        return _run_kernel(
            fast_kernels.search, self.tables, boxes, limit, flag, self.sigma, self.rho, TUNING, last
        )

    def go_on(self, boxes: Boxes, limit: int, known: Boxes, flag: NDArray[np.int64]) -> Outcome:
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


class Reduced(Protocol):
    """A mechanism with fewer unknowns than variables: absolute angles, or a platform's pose.

    Attributes:
        system: The mechanism in normal form.
        selects: Whether the unknowns are some of the variables.
        size: Number of unknowns.
        lower: Lower ends of the unknowns, shape (U,).
        upper: Upper ends.
        tables: What the kernel takes; the first says which unknowns are translations.
    """

    @property
    def system(self) -> System: ...
    @property
    def selects(self) -> bool: ...
    @property
    def size(self) -> int: ...
    @property
    def lower(self) -> Array: ...
    @property
    def upper(self) -> Array: ...
    @property
    def tables(self) -> tuple[Any, ...]: ...

    def to_joints(self, lower: Array, upper: Array) -> tuple[Array, Array, NDArray[np.int64]]:
        """Boxes of all variables that hold what boxes of unknowns hold, and whose each is."""

    def from_joints(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Boxes of unknowns that hold what boxes of all variables hold."""


class ReducedSearch:
    """The fast method on fewer unknowns, then on all variables.

    Found boxes of unknowns are made smaller as long as their number does not grow, brought to all
    variables, where they may be wider than sigma, and finished there by the general method. The
    stages of a chunk: ``SEARCH``, one for each refinement, ``FINISH``.
    """

    def __init__(
        self,
        reduced: Reduced,
        kernel: Callable[..., tuple[int, int]],
        tuning: Array,
        sigma: float,
        rho: float,
        coarsest: float = math.inf,
    ) -> None:
        self.reduced = reduced
        self.kernel = kernel
        self.tuning = tuning
        self.finish = FastSearch(reduced.system, sigma, rho)
        translation = np.asarray(reduced.tables[0], dtype=bool)
        self.sigma = min(sigma, coarsest) * np.where(translation, reduced.system.length, 1.0)
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

    def run(self, boxes: Boxes, limit: int, flag: NDArray[np.int64]) -> Outcome:
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

    def advance(self, chunk: Chunk, limit: int, flag: NDArray[np.int64]) -> Step:
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

    def _go_on(self, boxes: Boxes, most: int, held: Chunk, flag: NDArray[np.int64]) -> Outcome:
        """Process boxes of the stage that a chunk is in."""
        if held.stage == FINISH:
            return self.finish.go_on(boxes, most, held.found, flag)
        sigma = self.sigma * 0.25**held.stage
        outcome = _run_kernel(
            self.kernel, self.reduced.tables, boxes, most, flag, sigma, self.rho, self.tuning
        )
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


def _run_kernel(
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
    capacity = n + min(limit, 64 * size) * fast_kernels.MOST_PIECES + 2
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


def make_search(mechanism: Mechanism, system: System, settings: Settings) -> Search:
    """The search that fits a mechanism and its settings."""
    if settings.method == "paper":
        return PaperSearch(mechanism, system, settings.sigma, settings.rho)
    planar = PlanarSystem.of(system)
    if planar is not None:
        return ReducedSearch(
            planar, planar_kernels.search, PLANAR_TUNING, settings.sigma, settings.rho
        )
    platform = PlatformSystem.of(system)
    if platform is not None:
        return ReducedSearch(
            platform,
            platform_kernels.search,
            PLATFORM_TUNING,
            settings.sigma,
            settings.rho,
            PLATFORM_SIGMA,
        )
    return FastSearch(system, settings.sigma, settings.rho)


def solve(
    mechanism: Mechanism,
    settings: Settings | None = None,
    *,
    task: Task | None = None,
    resume: Manifold | None = None,
    boxes: tuple[ArrayLike, ArrayLike] | None = None,
) -> Manifold:
    """All configurations of a mechanism within its ranges.

    Args:
        mechanism: What to solve.
        settings: How; the defaults if None.
        task: Cancel, time budget and progress.
        resume: An incomplete answer of the same mechanism to go on from; its boxes are part of the
            new answer. With the same method, sigma and rho the complete answer has the bits of one
            that was never interrupted, unless time or cancel interrupted it.
        boxes: Boxes (lower, upper), each of shape (N, V) [rad, m], to search instead of the ranges;
            what reaches beyond the ranges is cut off.

    Returns:
        The cover, complete, or with its unfinished boxes when a budget ended the search.

    Raises:
        CuikError: An argument is refused; the error names it.
    """
    mechanism = border.instance("mechanism", mechanism, Mechanism)
    settings = Settings() if settings is None else border.instance("settings", settings, Settings)
    task = Task() if task is None else border.instance("task", task, Task)
    started = time.perf_counter()
    system = System.of(mechanism)
    search = make_search(mechanism, system, settings)
    frontier, asked = _start(search, mechanism, settings, resume, boxes)
    with task:
        frontier, stopped = _advance(search, mechanism, frontier, settings, task)
        lower, upper = frontier.solutions(search)
        keep = _within(mechanism, lower, upper)
        lower, upper = lower[keep], upper[keep]
        raw = (lower, upper)
        left = frontier.unfinished(search)
        certified, extra = np.zeros(len(lower), dtype=bool), Counters()
        isolated = certified
        examine = settings.certify and task.flag[0] == 0
        if examine and len(left) and resume is not None and _examined(resume, raw):
            lower, upper = resume.lower, resume.upper
            certified, isolated = resume.certified, resume.isolated
        elif examine and len(lower):
            # Boxes that are left may touch these ones: no finer search before all are there.
            budget = 0 if len(left) else max(settings.max_boxes, LEAST_SEPARATION)
            parts = _separate(system, lower, upper, settings, budget, task)
            lower, upper = parts.lower, parts.upper
            certified, isolated = parts.certified, parts.isolated
            extra = Counters(processed=parts.processed, reductions=parts.reductions)
    order = np.lexsort(np.concatenate([upper, lower], axis=1).T[::-1])
    return Manifold(
        mechanism=mechanism,
        sigma=settings.sigma,
        lower=lower[order],
        upper=upper[order],
        certified=certified[order],
        isolated=isolated[order],
        unfinished_lower=left.lower,
        unfinished_upper=left.upper,
        unfinished_share=left.share,
        # What certificates take is counted once, when the search is done: they are made anew then.
        counters=frontier.counters if len(left) else frontier.counters + extra,
        stopped=stopped,
        settled=1.0 if len(left) == 0 else max(0.0, 1.0 - float(left.share.sum())),
        solve_time=time.perf_counter() - started,
        asked=asked,
        paused=Paused(frontier, *raw, examined=examine),
    )


def _examined(resume: Manifold, found: tuple[Array, Array]) -> bool:
    """Whether certificates were looked for in these boxes before, and no box has come since."""
    return resume.paused is not None and resume.paused.examined and resume.paused.found(found)


def _question(mechanism: Mechanism, settings: Settings) -> str:
    """What is searched and how: a frontier goes on with the same question only."""
    return f"{mechanism.fingerprint} {settings.method} {settings.sigma!r} {settings.rho!r}"


def _start(
    search: Search,
    mechanism: Mechanism,
    settings: Settings,
    resume: Manifold | None,
    boxes: tuple[ArrayLike, ArrayLike] | None,
) -> tuple[Frontier, str]:
    """Where to begin, and whether the question is about the ranges or about given boxes."""
    question = _question(mechanism, settings)
    size = len(mechanism.variables)
    quota = min(FIRST_BOXES, search.chunk)
    if resume is None and boxes is None:
        return start(question, [begin(search.initial(), quota)], size), "ranges"
    if resume is None:
        lower, upper = border.boxes(mechanism, boxes)
        share = np.full(len(lower), 1.0 / len(lower))
        return start(question, search.given(lower, upper, share, quota), size), "boxes"
    if boxes is not None:
        raise RequestError("boxes", "cannot be given together with resume")
    resume = border.instance("resume", resume, Manifold)
    if resume.mechanism.fingerprint != mechanism.fingerprint:
        raise RequestError("resume", "belongs to another mechanism, target or range")
    paused = resume.paused
    if paused is not None and paused.frontier.question == question:
        return paused.frontier, resume.asked
    # Another method or sigma: the open boxes are searched anew, what was found stays found.
    share = resume.unfinished_share
    frontier = start(
        question,
        search.given(resume.unfinished_lower, resume.unfinished_upper, share, quota)
        if len(share)
        else [],
        size,
    )
    found = (resume.lower, resume.upper) if paused is None else (paused.lower, paused.upper)
    return (
        replace(frontier, lower=found[0], upper=found[1], counters=resume.counters),
        resume.asked,
    )


def _advance(
    search: Search, mechanism: Mechanism, frontier: Frontier, settings: Settings, task: Task
) -> tuple[Frontier, str]:
    """Go on within the budgets, here or on a cluster."""
    if settings.engine == "dask":
        from kin_solvers.dask_engine import advance_on_cluster

        return advance_on_cluster(search, mechanism, frontier, settings, task)
    threads = settings.threads or os.cpu_count() or 1
    with Local(search, task, threads) as runner:
        return run_rounds(
            search,
            frontier,
            runner,
            task,
            max_boxes=settings.max_boxes,
            max_bytes=settings.max_bytes,
        )


def _within(mechanism: Mechanism, lower: Array, upper: Array) -> NDArray[np.bool_]:
    """Boxes that meet the ranges (the hull of an arc may stick out)."""
    keep = np.ones(len(lower), dtype=bool)
    for k, v in enumerate(mechanism.variables):
        if not v.cyclic:
            keep &= (upper[:, k] >= v.lower - 1e-12) & (lower[:, k] <= v.upper + 1e-12)
    return keep


def _separate(
    system: System,
    lower: Array,
    upper: Array,
    settings: Settings,
    budget: int,
    task: Task,
) -> Separated:
    """Proofs, finer searches of clusters that resist, and empty clusters (mechanism's units)."""
    unit = system.unit

    def finer(low: Array, high: Array, sigma: float, limit: int) -> FinerBoxes:
        boxes = Boxes(low, high, np.zeros(len(low)))
        outcome = FastSearch(system, sigma, settings.rho).run(boxes, limit, task.flag)
        return FinerBoxes(
            outcome.found_lower,
            outcome.found_upper,
            outcome.left.lower,
            outcome.left.upper,
            outcome.counters.processed,
            outcome.counters.reductions,
        )

    parts = separate(system, lower * unit, upper * unit, settings.sigma, finer, budget, task)
    low, high = without_turns(parts.lower / unit, parts.upper / unit, system.cyclic)
    return replace(parts, lower=low, upper=high)
