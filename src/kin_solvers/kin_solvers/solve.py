"""Solving a mechanism: from a question to its answer."""

from __future__ import annotations

import math
import os
import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kin_core import checks
from kin_core.checks import shown
from kin_core.task import Task
from kin_solvers import border
from kin_solvers.boxes import Counters
from kin_solvers.errors import RequestError, own_errors
from kin_solvers.manifold import Manifold
from kin_solvers.mechanism import MAX_MAGNITUDE, Mechanism
from kin_solvers.methods import make_search
from kin_solvers.schedule import FIRST_BOXES, Frontier, Local, Paused, Question, run_rounds, start
from kin_solvers.search import Search, begin
from kin_solvers.separate import separate
from kin_solvers.settings import Settings
from kin_solvers.system import System

__all__ = ["solve"]

Array = NDArray[np.float64]

_TWO_PI = 2.0 * math.pi
#: Boxes that the separation of solutions may process whatever the budget of the search.
LEAST_SEPARATION = 10_000


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
        keep = _within(system, lower, upper)
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
            parts = separate(system, lower, upper, settings, budget, task)
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


def _same(a: Question, b: Question) -> bool:
    """Whether two questions are one: a frontier goes on with the same question only."""
    return a[1:] == b[1:] and a[0].fingerprint == b[0].fingerprint


def _start(
    search: Search,
    mechanism: Mechanism,
    settings: Settings,
    resume: Manifold | None,
    boxes: tuple[ArrayLike, ArrayLike] | None,
) -> tuple[Frontier, str]:
    """Where to begin, and whether the question is about the ranges or about given boxes."""
    question = (mechanism, settings.method, settings.sigma, settings.rho)
    size = len(mechanism.variables)
    quota = min(FIRST_BOXES, search.chunk)
    if resume is None and boxes is None:
        return start(question, [begin(search.initial(), quota)], size), "ranges"
    if resume is None:
        lower, upper = _given_boxes(mechanism, boxes)
        share = np.full(len(lower), 1.0 / len(lower))
        return start(question, search.given(lower, upper, share, quota), size), "boxes"
    if boxes is not None:
        raise RequestError("boxes", "cannot be given together with resume")
    resume = border.instance("resume", resume, Manifold)
    if resume.mechanism.fingerprint != mechanism.fingerprint:
        raise RequestError("resume", "belongs to another mechanism, target or range")
    paused = resume.paused
    if paused is not None and _same(paused.frontier.question, question):
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
    return replace(frontier, found=(found,), counters=resume.counters), resume.asked


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


def _examined(resume: Manifold, found: tuple[Array, Array]) -> bool:
    """Whether certificates were looked for in these boxes before, and no box has come since."""
    return resume.paused is not None and resume.paused.examined and resume.paused.found(found)


def _within(system: System, lower: Array, upper: Array) -> NDArray[np.bool_]:
    """Boxes that meet the ranges (the hull of an arc may stick out)."""
    unit = system.unit
    reaches = (upper >= system.lower / unit - 1e-12) & (lower <= system.upper / unit + 1e-12)
    return np.asarray((system.cyclic | reaches).all(axis=1))


def _given_boxes(mechanism: Mechanism, given: Any) -> tuple[Array, Array]:
    """Given boxes, checked and cut to the ranges of the mechanism.

    Args:
        mechanism: The mechanism.
        given: Lower and upper ends, each of shape (N, V) or (V,) [rad, m].

    Returns:
        Lower and upper ends, shape (M, V); boxes outside the ranges are left out.
    """
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise RequestError("boxes", f"must be a pair (lower, upper), got {shown(given)}")
    size = len(mechanism.variables)
    ends = []
    for part, values in zip(("lower", "upper"), given, strict=True):
        with own_errors(RequestError):
            rows = np.atleast_2d(checks.finite(f"boxes.{part}", values))
        if rows.ndim != 2 or rows.shape[1] != size:
            if rows.size == 0:
                raise RequestError("boxes", "there are none")
            raise RequestError(
                f"boxes.{part}", f"must have the shape (any, {size}), got {np.shape(values)}"
            )
        ends.append(rows.astype(np.float64, copy=True))
    lower, upper = ends
    if lower.shape != upper.shape:
        raise RequestError("boxes", f"lower has {len(lower)} rows, upper {len(upper)}")
    if len(lower) == 0:
        raise RequestError("boxes", "there are none")
    if np.any(lower > upper):
        row = int(np.argmax(np.any(lower > upper, axis=1)))
        raise RequestError(f"boxes[{row}]", "a lower end lies above its upper end")
    keep = np.ones(len(lower), dtype=bool)
    for k, variable in enumerate(mechanism.variables):
        if variable.cyclic:
            lower[:, k], upper[:, k] = _turned(f"boxes.{variable.name}", lower[:, k], upper[:, k])
            continue
        lower[:, k] = np.maximum(lower[:, k], variable.lower)
        upper[:, k] = np.minimum(upper[:, k], variable.upper)
        keep &= lower[:, k] <= upper[:, k]
    if not keep.any():
        raise RequestError("boxes", "none of them lies within the ranges")
    return lower[keep], upper[keep]


def _turned(field: str, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Intervals of an angle on the full circle: at most a turn, with the middle in [-pi, pi]."""
    wide = ~(upper - lower < _TWO_PI)  # so written that an overflow counts as wide
    far = ~wide & (np.maximum(np.abs(lower), np.abs(upper)) > MAX_MAGNITUDE)
    if far.any():
        raise RequestError(field, f"reaches beyond {MAX_MAGNITUDE:g}")
    # The width of a wide one may have overflowed: leave it out before turns are counted.
    low, high = np.where(wide, 0.0, lower), np.where(wide, 0.0, upper)
    turns = np.round(0.5 * (low + high) / _TWO_PI)
    pad = np.where(turns == 0.0, 0.0, 1e-15 * (1.0 + np.abs(turns) * _TWO_PI))
    low, high = low - turns * _TWO_PI - pad, high - turns * _TWO_PI + pad
    return np.where(wide, -math.pi, low), np.where(wide, math.pi, high)
