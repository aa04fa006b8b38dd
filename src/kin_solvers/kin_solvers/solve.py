"""Solving a mechanism: settings, budgets, threads, certificates."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kin_common.errors import InvalidInput
from kin_common.task import STOP_CANCELLED, Task
from kin_solvers import fast_kernels, planar_kernels, platform_kernels
from kin_solvers.certificate import Certifier
from kin_solvers.errors import SettingsError
from kin_solvers.manifold import Counters, Manifold, connect
from kin_solvers.mechanism import Mechanism
from kin_solvers.paper import PaperSearch
from kin_solvers.planar import PlanarSystem
from kin_solvers.platform import PlatformSystem
from kin_solvers.system import System
from kin_solvers.turns import without_turns

__all__ = ["Boxes", "Settings", "solve"]

Array = NDArray[np.float64]

_TWO_PI = 2.0 * math.pi
_TURN_PAD = 1e-15
#: Boxes that are processed before work is handed to threads.
FIRST_BOXES = 400
#: Boxes that a chunk processes at most before its leftovers are shared out again.
CHUNK_BOXES = 800
#: Work of a chunk (boxes times rows times vertices): some 50 ms, so that progress flows.
CHUNK_WORK = 200_000
#: Chunks per round; a constant, so that the answer does not depend on the number of threads.
CHUNKS = 16
#: Tuning of the fast method: raw rows above this half-width, preconditioned rows up to this one,
#: factor of the regularisation, ratio of the longest side above which a box is split, sigmas from
#: which on that holds.
TUNING = np.array([0.8, 0.8, 0.02, 0.9, 0.5])
#: Clusters of boxes up to this size are searched again at a smaller sigma: they may be empty.
SMALL_CLUSTER = 32
#: Boxes, and clusters, from which on this is not worth the time.
MAX_CLUSTERED, MAX_CLUSTERS = 50_000, 200
#: Times that boxes of unknowns are made smaller before the other variables are looked for.
REFINEMENTS = 6
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
        if not (math.isfinite(self.sigma) and self.sigma > 0.0):
            raise SettingsError("sigma", f"must be greater than zero, got {self.sigma}")
        if self.sigma < 1e-9:
            raise SettingsError("sigma", f"must be at least 1e-9, got {self.sigma}")
        if not (math.isfinite(self.rho) and 0.0 < self.rho < 1.0):
            raise SettingsError("rho", f"must be between 0 and 1, got {self.rho}")
        if self.method not in ("fast", "paper"):
            raise SettingsError("method", f"must be 'fast' or 'paper', got {self.method!r}")
        if self.engine not in ("local", "dask"):
            raise SettingsError("engine", f"must be 'local' or 'dask', got {self.engine!r}")
        if not 0 <= self.threads <= 256:
            raise SettingsError("threads", f"must be between 0 and 256, got {self.threads}")
        if self.max_boxes < 1:
            raise SettingsError("max_boxes", f"must be at least 1, got {self.max_boxes}")
        if self.max_bytes < 1 << 12:
            raise SettingsError("max_bytes", f"must be at least 4096, got {self.max_bytes}")


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
    def joined(cls, parts: list[Boxes], size: int) -> Boxes:
        """Boxes of several lists, in order."""
        if not parts:
            return cls(np.empty((0, size)), np.empty((0, size)), np.empty(0))
        return cls(
            np.concatenate([p.lower for p in parts]),
            np.concatenate([p.upper for p in parts]),
            np.concatenate([p.share for p in parts]),
        )


@dataclass(frozen=True)
class Outcome:
    """What one chunk of work gave: found boxes, boxes left, counters, settled share."""

    found_lower: Array
    found_upper: Array
    left: Boxes
    counters: Counters
    settled: float


class Search(Protocol):
    """One method: works on boxes until they are settled or a limit is reached.

    Attributes:
        chunk: Boxes that make a chunk of work; depends on the mechanism only.
    """

    chunk: int

    def initial(self) -> Boxes:
        """The whole search space."""

    def resumed(self, lower: Array, upper: Array, share: Array) -> Boxes:
        """Boxes of configurations as boxes of this method."""

    def run(self, boxes: Boxes, limit: int, flag: NDArray[np.int64]) -> Outcome:
        """Process at most ``limit`` boxes."""

    def to_angles(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Found boxes as boxes of configurations in the mechanism's units."""

    def unfinished(self, boxes: Boxes) -> Boxes:
        """Boxes that are left, as boxes of configurations in the mechanism's units."""


class FastSearch:
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

    def run(self, boxes: Boxes, limit: int, flag: NDArray[np.int64]) -> Outcome:
        """Process at most ``limit`` boxes, depth first."""
        return _run_kernel(
            fast_kernels.search, self.tables, boxes, limit, flag, self.sigma, self.rho, TUNING
        )

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
        size: Number of unknowns.
        lower: Lower ends of the unknowns, shape (U,).
        upper: Upper ends.
        tables: What the kernel takes; the first says which unknowns are translations.
    """

    @property
    def system(self) -> System: ...
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

    Found boxes of unknowns are brought to all variables, where they may be wider than sigma, and
    finished there by the general method.
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

    def initial(self) -> Boxes:
        """The whole search space."""
        return Boxes(self.reduced.lower[None].copy(), self.reduced.upper[None].copy(), np.ones(1))

    def resumed(self, lower: Array, upper: Array, share: Array) -> Boxes:
        """Boxes of configurations as boxes of unknowns."""
        unit = self.reduced.system.unit
        return Boxes(*self.reduced.from_joints(lower * unit, upper * unit), share.copy())

    def run(self, boxes: Boxes, limit: int, flag: NDArray[np.int64]) -> Outcome:
        """Process at most ``limit`` boxes, depth first, and finish what was found."""
        first = _run_kernel(
            self.kernel, self.reduced.tables, boxes, limit, flag, self.sigma, self.rho, self.tuning
        )  # fmt: skip
        first = self._refined(first, flag)
        lower, upper, _ = self.reduced.to_joints(first.found_lower, first.found_upper)
        n = len(lower)
        if n == 0:
            return replace(first, found_lower=lower, found_upper=upper)
        left, found_lower, found_upper = Boxes(lower, upper, np.zeros(n)), [], []
        counters = first.counters
        while len(left) and flag[0] == 0:
            last = self.finish.run(left, 1_000_000, flag)
            found_lower.append(last.found_lower)
            found_upper.append(last.found_upper)
            counters = replace(counters, reductions=counters.reductions + last.counters.reductions)
            left = last.left
        back = Boxes(*self.reduced.from_joints(left.lower, left.upper), left.share)
        none = [np.empty((0, lower.shape[1]))]
        return Outcome(
            np.concatenate(found_lower or none),
            np.concatenate(found_upper or none),
            Boxes.joined([first.left, back], self.reduced.size),
            counters,
            first.settled,
        )

    def _refined(self, outcome: Outcome, flag: NDArray[np.int64]) -> Outcome:
        """Smaller boxes around isolated solutions: as long as sigma shrinks and their number not.

        The other variables are easily found if the unknowns are known well.
        """
        sigma = self.sigma
        for _ in range(REFINEMENTS):
            n = len(outcome.found_lower)
            boxes = Boxes(outcome.found_lower, outcome.found_upper, np.zeros(n))
            sigma = 0.25 * sigma
            if n == 0 or float(sigma.min()) < 1e-9:
                break
            finer = _run_kernel(
                self.kernel, self.reduced.tables, boxes, 4 * n + 40, flag, sigma, self.rho,
                self.tuning,
            )  # fmt: skip
            if len(finer.left) or len(finer.found_lower) > 1.5 * n + 4:
                break
            outcome = replace(
                outcome,
                found_lower=finer.found_lower,
                found_upper=finer.found_upper,
                counters=replace(
                    outcome.counters,
                    reductions=outcome.counters.reductions + finer.counters.reductions,
                ),
            )
        return outcome

    def to_angles(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Found boxes in the mechanism's units."""
        return self.finish.to_angles(lower, upper)

    def unfinished(self, boxes: Boxes) -> Boxes:
        """Boxes that are left, as boxes of all variables."""
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
) -> Outcome:
    """Give a compiled search its stack and take what it leaves."""
    n, size = boxes.lower.shape
    capacity = n + min(limit, 64 * size) * fast_kernels.MOST_PIECES + 2
    stack_lower, stack_upper = np.empty((capacity, size)), np.empty((capacity, size))
    share = np.empty(capacity)
    # The first box is taken first: the kernel pops from the end.
    stack_lower[:n], stack_upper[:n] = boxes.lower[::-1], boxes.upper[::-1]
    share[:n] = boxes.share[::-1]
    room = min(limit, 100_000) + 1
    found_lower, found_upper = np.empty((room, size)), np.empty((room, size))
    counters = np.zeros(6)
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
        resume: An incomplete answer to go on from; its boxes are part of the new answer.
        boxes: Boxes (lower, upper), each of shape (N, V) [rad, m], to search instead of the ranges.

    Returns:
        The cover, complete, or with its unfinished boxes when a budget ended the search.
    """
    settings = settings or Settings()
    task = task or Task()
    started = time.perf_counter()
    system = System.of(mechanism)
    search = make_search(mechanism, system, settings)
    pending = _start(search, mechanism, resume, boxes)
    with task:
        if settings.engine == "dask":
            from kin_solvers.dask_engine import run_on_cluster

            outcome, stopped = run_on_cluster(search, mechanism, pending, settings, task)
        else:
            outcome, stopped = _run_local(search, pending, settings, task)
        lower, upper = search.to_angles(outcome.found_lower, outcome.found_upper)
        keep = _within(mechanism, lower, upper)
        lower, upper = lower[keep], upper[keep]
        certified = np.zeros(len(lower), dtype=bool)
        if settings.certify and len(lower) and task.flag[0] == 0:
            lower, upper, certified, extra = _certify(
                mechanism, system, lower, upper, settings, task
            )
            outcome = replace(outcome, counters=outcome.counters + extra)
            if not isinstance(search, ReducedSearch):
                keep = _not_phantoms(system, lower, upper, certified, settings, task)
                lower, upper, certified = lower[keep], upper[keep], certified[keep]
    left = search.unfinished(outcome.left)
    if resume is not None:
        lower = np.concatenate([resume.lower, lower])
        upper = np.concatenate([resume.upper, upper])
        certified = np.concatenate([resume.certified, certified])
    order = np.lexsort(np.concatenate([upper, lower], axis=1).T[::-1])
    total = outcome.counters if resume is None else outcome.counters + resume.counters
    return Manifold(
        mechanism=mechanism,
        sigma=settings.sigma,
        lower=lower[order],
        upper=upper[order],
        certified=certified[order],
        unfinished_lower=left.lower,
        unfinished_upper=left.upper,
        unfinished_share=left.share,
        counters=total,
        stopped=stopped,
        settled=1.0 if len(left) == 0 else max(0.0, 1.0 - float(left.share.sum())),
        solve_time=time.perf_counter() - started,
    )


def _start(
    search: Search,
    mechanism: Mechanism,
    resume: Manifold | None,
    boxes: tuple[ArrayLike, ArrayLike] | None,
) -> Boxes:
    """The boxes to begin with."""
    size = len(mechanism.variables)
    if resume is not None:
        if resume.mechanism.names != mechanism.names:
            raise InvalidInput("resume", "belongs to another mechanism")
        return search.resumed(
            resume.unfinished_lower, resume.unfinished_upper, resume.unfinished_share
        )
    if boxes is None:
        return search.initial()
    lower = np.asarray(boxes[0], dtype=np.float64).reshape(-1, size)
    upper = np.asarray(boxes[1], dtype=np.float64).reshape(-1, size)
    if lower.shape != upper.shape or not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        raise InvalidInput("boxes", "lower and upper must be finite and of one shape")
    if np.any(lower > upper):
        raise InvalidInput("boxes", "a lower end lies above its upper end")
    n = len(lower)
    return search.resumed(lower, upper, np.full(n, 1.0 / max(n, 1)))


def _within(mechanism: Mechanism, lower: Array, upper: Array) -> NDArray[np.bool_]:
    """Boxes that meet the ranges (the hull of an arc may stick out)."""
    keep = np.ones(len(lower), dtype=bool)
    for k, v in enumerate(mechanism.variables):
        if not v.cyclic:
            keep &= (upper[:, k] >= v.lower - 1e-12) & (lower[:, k] <= v.upper + 1e-12)
    return keep


class _Tally:
    """Sums up outcomes and reports progress."""

    def __init__(self, size: int, task: Task, open_share: float) -> None:
        self.lower: list[Array] = []
        self.upper: list[Array] = []
        self.counters = Counters()
        self.found = 0
        self.size = size
        self.task = task
        self.base = 1.0 - open_share
        self.settled = 0.0

    def add(self, outcome: Outcome) -> None:
        """Take in the outcome of a chunk."""
        self.lower.append(outcome.found_lower)
        self.upper.append(outcome.found_upper)
        self.found += len(outcome.found_lower)
        self.counters += outcome.counters
        self.settled += outcome.settled

    def report(self, queued: int) -> None:
        """Tell the task how far it is."""
        self.task.progress(
            self.base + self.settled,
            f"{self.found} solution boxes, {queued} boxes queued",
            queued=float(queued),
            solutions=float(self.found),
            processed=float(self.counters.processed),
        )

    def outcome(self, left: Boxes) -> Outcome:
        """Everything together."""
        empty = [np.empty((0, *left.lower.shape[1:]))]
        return Outcome(
            np.concatenate(self.lower or empty),
            np.concatenate(self.upper or empty),
            left,
            self.counters,
            self.settled,
        )


Runner = Callable[[list[Boxes], int], Iterable[Outcome]]


def _run_local(
    search: Search, pending: Boxes, settings: Settings, task: Task
) -> tuple[Outcome, str]:
    """Solve in this process: a first stretch in one thread, then rounds of chunks in threads."""
    threads = settings.threads or os.cpu_count() or 1
    with ThreadPoolExecutor(max_workers=threads) if threads > 1 else _Inline() as pool:

        def runner(chunks: list[Boxes], limit: int) -> Iterable[Outcome]:
            return pool.map(lambda chunk: search.run(chunk, limit, task.flag), chunks)

        return run_rounds(search, pending, settings, task, runner)


class _Inline:
    """The interface of a pool, in the calling thread."""

    def __enter__(self) -> _Inline:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def map(self, function: Callable[[Boxes], Outcome], chunks: list[Boxes]) -> Iterable[Outcome]:
        """Run one after the other."""
        return (function(chunk) for chunk in chunks)


def run_rounds(
    search: Search, pending: Boxes, settings: Settings, task: Task, runner: Runner
) -> tuple[Outcome, str]:
    """Rounds of chunks: share out, run, gather the leftovers, until done or out of budget.

    How boxes are shared out depends on the boxes only, so the answer does not depend on the runner.
    """
    size = pending.lower.shape[1:]
    per_box = 16 * int(np.prod(size)) + 8
    tally = _Tally(int(np.prod(size)), task, float(pending.share.sum()))
    most = min(FIRST_BOXES, search.chunk, settings.max_boxes)
    first = search.run(pending, most, task.flag)
    tally.add(first)
    pending = first.left
    stopped = ""
    while len(pending):
        if task.stopped:
            stopped = "cancelled" if task.flag[0] == STOP_CANCELLED else "time"
            break
        budget = settings.max_boxes - tally.counters.processed
        if budget <= 0:
            stopped = "boxes"
            break
        if (len(pending) + tally.found) * per_box > settings.max_bytes:
            stopped = "memory"
            break
        tally.report(len(pending))
        count = min(CHUNKS, len(pending), budget)
        limit = max(1, min(search.chunk, budget // count))
        chunks = [pending.part(slice(i, None, count)) for i in range(count)]
        rest: list[Boxes] = []
        for outcome in runner(chunks, limit):
            tally.add(outcome)
            rest.append(outcome.left)
            waiting = sum(len(r) for r in rest) + sum(len(c) for c in chunks[len(rest) :])
            tally.report(waiting)
        pending = Boxes(
            np.concatenate([r.lower for r in rest]),
            np.concatenate([r.upper for r in rest]),
            np.concatenate([r.share for r in rest]),
        )
    tally.report(len(pending))
    return tally.outcome(pending), stopped


def _certify(
    mechanism: Mechanism,
    system: System,
    lower: Array,
    upper: Array,
    settings: Settings,
    task: Task,
) -> tuple[Array, Array, NDArray[np.bool_], Counters]:
    """Certify isolated solutions; refine boxes that resist, for a while.

    A box inside the region where a certified solution is the only one is dropped: it can hold no
    other. Boxes that resist are searched again at a smaller sigma; if that settles them they are
    replaced, else they stay as they were.
    """
    certifier = Certifier(system)
    extra = Counters()
    none = np.zeros(len(lower), dtype=bool)
    if not certifier.square or len(lower) > 2000:
        return lower, upper, none, extra
    unit = system.unit
    proofs: list[tuple[Array, Array, Array, Array]] = []
    open_lower, open_upper = lower * unit, upper * unit
    sigma = settings.sigma
    for _ in range(8):
        open_lower, open_upper = _prove(certifier, system, open_lower, open_upper, proofs, task)
        if len(open_lower) == 0 or task.stopped:
            break
        if len(proofs) == 0 and len(open_lower) > 200:
            break  # no isolated solutions: a curve or a surface
        sigma = max(0.25 * sigma, 1e-9)
        finer = make_search(mechanism, system, replace(settings, method="fast", sigma=sigma))
        limit = 200 + 20 * len(open_lower)
        outcome = finer.run(
            finer.resumed(open_lower / unit, open_upper / unit, np.ones(len(open_lower))),
            limit,
            task.flag,
        )
        extra += outcome.counters
        if len(outcome.left) or len(outcome.found_lower) > 2 * len(open_lower) + 16:
            break
        open_lower, open_upper = outcome.found_lower, outcome.found_upper
    tight = [p for p in proofs if _in_ranges(system, p)]
    straddling = [p for p in tight if not _inside_ranges(system, p)]
    lower = np.array([*(p[0] for p in tight), *open_lower]).reshape(-1, system.size) / unit
    upper = np.array([*(p[1] for p in tight), *open_upper]).reshape(-1, system.size) / unit
    certified = np.array(
        [not any(p is s for s in straddling) for p in tight] + [False] * len(open_lower), dtype=bool
    )
    return *without_turns(lower, upper, system.cyclic), certified, extra


def _prove(
    certifier: Certifier,
    system: System,
    lower: Array,
    upper: Array,
    proofs: list[tuple[Array, Array, Array, Array]],
    task: Task,
) -> tuple[Array, Array]:
    """Certify what can be certified; return the boxes that are still open."""
    still = np.ones(len(lower), dtype=bool)
    for proof in proofs:
        still &= ~_held(system, proof, lower, upper)
    for i in range(len(lower)):
        if task.stopped:
            break
        if not still[i]:
            continue
        found = certifier.certify(lower[i], upper[i])
        if found is None:
            continue
        tight_lower, tight_upper = found[0][None], found[1][None]
        if not any(_held(system, known, tight_lower, tight_upper)[0] for known in proofs):
            proofs.append(found)
        still &= ~_held(system, found, lower, upper)
    return lower[still], upper[still]


def _held(
    system: System, proof: tuple[Array, Array, Array, Array], lower: Array, upper: Array
) -> NDArray[np.bool_]:
    """Which boxes lie in the region of uniqueness of a proof, whole turns apart; shape (N,)."""
    region_lower, region_upper = proof[2], proof[3]
    gap = 0.5 * (region_lower + region_upper) - 0.5 * (lower + upper)
    turns = np.where(system.cyclic, np.round(gap / _TWO_PI) * _TWO_PI, 0.0)
    # A turn is not a double: a box that is turned must lie inside by more than that.
    pad = np.where(turns != 0.0, _TURN_PAD * (1.0 + np.abs(lower) + np.abs(upper)), 0.0)
    inside = (lower + turns - pad >= region_lower) & (upper + turns + pad <= region_upper)
    return np.asarray(inside.all(axis=1))


def _not_phantoms(
    system: System,
    lower: Array,
    upper: Array,
    certified: NDArray[np.bool_],
    settings: Settings,
    task: Task,
) -> NDArray[np.bool_]:
    """Boxes without small clusters that a search at a smaller sigma proves to be empty."""
    keep = np.ones(len(lower), dtype=bool)
    if len(lower) > MAX_CLUSTERED:
        return keep
    labels = connect(lower, upper, system.cyclic)
    counts = np.bincount(labels, minlength=1)
    if len(counts) > MAX_CLUSTERS:
        return keep
    finer = FastSearch(system, max(settings.sigma / 8.0, 1e-9), settings.rho)
    for label in np.flatnonzero(counts <= SMALL_CLUSTER):
        members = np.flatnonzero(labels == label)
        if certified[members].any() or task.stopped:
            continue
        boxes = finer.resumed(lower[members], upper[members], np.ones(len(members)))
        outcome = finer.run(boxes, 20 + 20 * len(members), task.flag)
        if len(outcome.left) == 0 and len(outcome.found_lower) == 0:
            keep[members] = False
    return keep


def _in_ranges(system: System, proof: tuple[Array, Array, Array, Array]) -> bool:
    """Whether the solution may lie within the ranges."""
    free = system.cyclic
    return bool(np.all(free | ((proof[1] >= system.lower) & (proof[0] <= system.upper))))


def _inside_ranges(system: System, proof: tuple[Array, Array, Array, Array]) -> bool:
    """Whether the solution certainly lies within the ranges."""
    free = system.cyclic
    return bool(np.all(free | ((proof[0] >= system.lower) & (proof[1] <= system.upper))))
