"""Iterations over the tables of one compiled linkage: towards its tasks, level by level."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hier_ik.closures import residuals
from hier_ik.compile import Compiled
from hier_ik.fallback import FallbackComponent, Step
from hier_ik.iteration import relax, run
from hier_ik.kinematics import all_kinematics
from hier_ik.steps import DAMPING_START
from hier_ik.tables import FALLBACK, Array, Ints
from kin_core import checks
from kin_core.task import Task

__all__ = ["Descent", "Effort"]


#: Sizes of the random steps out of a posture at rest [rad, or units of length].
STEPS_OUT = (0.01, 0.1, 0.1, 0.3, 0.3, 0.6)


@dataclass
class Effort:
    """What one solve may take, and what it took.

    Attributes:
        tolerance: Residual at which a task counts as met [m or rad].
        limit: Iterations allowed.
        flag: Its first number is other than zero when the solve is to stop.
        task: For timeout and progress.
        history: Residual before each iteration, lengths in units of the linkage's own.
    """

    tolerance: float
    limit: int
    flag: Ints = field(default_factory=lambda: np.zeros(1, np.int64))
    task: Task | None = None
    history: list[float] = field(default_factory=list)


class Descent:
    """Moves the posture in the tables; knows rows, levels and limits, but no names.

    Attributes:
        compiled: The linkage.
        tables: Its tables.
        q: Coordinates of the freedoms, lengths in the linkage's own unit; a view.
        rest: Share of the way to the rest posture per iteration, 0 to leave it alone.
        patience: Iterations without progress after which a descent ends.
    """

    def __init__(
        self, compiled: Compiled, method: type[Step], *, rest: float, patience: int
    ) -> None:
        """Take up the posture in the tables; ``method`` solves what is too large for the kernel."""
        self._method, self.rest, self.patience = method, rest, patience
        self._take(compiled)
        self.box(None)
        self.kinematics()

    def _take(self, compiled: Compiled) -> None:
        """Work on these tables."""
        self.compiled, self.tables = compiled, compiled.tables
        self.q: Array = self.tables.freedoms["q"]
        self._kernel = self.tables.as_tuple()
        self._fallback = {
            int(k): FallbackComponent(self.tables, int(k), self._method)
            for k in np.flatnonzero(self.tables.components["kind"] == FALLBACK)
        }
        self._go, self._one, self._rows = np.zeros(1, np.int64), np.zeros(1), np.zeros(6)

    def copy(self) -> Descent:
        """Another one at the same posture, in tables of its own."""
        other = copy.copy(self)
        other._take(replace(self.compiled, tables=self.tables.copy()))
        return other

    def kinematics(self) -> None:
        """Bring every pose up to date."""
        all_kinematics(self.tables.bodies, self.tables.freedoms)

    def descend(self, effort: Effort) -> bool:
        """Iterate until all is met or nothing gets better; whether the posture is at rest."""
        self.kinematics()
        self.tables.components["damping"] = DAMPING_START
        tolerance, history, task = effort.tolerance, effort.history, effort.task
        inside = min(tolerance, tolerance / self.compiled.bodies.length)
        best, since = math.inf, 0
        while len(history) < effort.limit and not effort.flag[0]:
            size = min(10, effort.limit - len(history))
            if task is not None and task.stopped:
                return False
            made, moved, worst = self._some(size, inside, effort.flag, history)
            if task is not None:
                task.progress(
                    _fraction(history, inside),
                    "",
                    iteration=len(history),
                    residual=worst,
                    closure_residual=self._worst_closure(),
                )
            if (not self.rest or moved < 1e-6) and self.met(tolerance):
                return True
            if moved < 1e-12:
                return True
            better = worst < best * (1.0 - 1e-6) or (self.rest and worst <= inside)
            since = 0 if better else since + made
            best = min(best, worst)
            if since >= self.patience:
                return True
        return False

    def box(self, step_time: float | None) -> None:
        """Limits for what follows; the posture is brought inside them, but for locked joints."""
        c, freedoms = self.compiled.bodies, self.tables.freedoms
        low, high, q = freedoms["low"], freedoms["high"], freedoms["q"]
        lower, upper = c.lower / c.unit, c.upper / c.unit
        low[:], high[:] = lower, upper
        if step_time is not None:
            reach = c.velocity / c.unit * checks.positive("step_time", step_time)
            low[:] = np.maximum(lower, q - reach)
            high[:] = np.minimum(upper, q + reach)
            above, below = q - reach > upper, q + reach < lower
            low[above] = high[above] = (q - reach)[above]
            low[below] = high[below] = (q + reach)[below]
        low[c.locked] = high[c.locked] = q[c.locked]
        np.clip(q, low, high, out=q)

    def iterate(self) -> float:
        """One iteration over all rounds; the largest residual of a component before it."""
        rounds = self.tables.rounds
        if not self._fallback:
            return self._pass(0, len(rounds))
        worst = 0.0
        for r in range(len(rounds)):
            worst = max(worst, self._pass(r, r + 1))
            for k in range(rounds["component_begin"][r], rounds["component_end"][r]):
                if k in self._fallback:
                    worst = max(worst, math.sqrt(self._fallback[k].step()))
        if self.rest and len(rounds) > 1:
            relax(self.tables.freedoms, self.rest)
        return worst

    def _pass(self, begin: int, end: int) -> float:
        """The same over some rounds, in the kernel alone."""
        run(self._kernel, self.rest, begin, end, 1, 0.0, self._go, self._one)
        return float(self._one[0])

    def _some(
        self, size: int, tolerance: float, flag: Any, history: list[float]
    ) -> tuple[int, float, float]:
        """Up to ``size`` iterations; how many were made, the last step, the best residual."""
        if not self._fallback:
            seen = np.zeros(size)
            rounds = len(self.tables.rounds)
            made = int(run(self._kernel, self.rest, 0, rounds, size, tolerance, flag, seen))
            history += seen[:made].tolist()
        else:
            made = 0
            for _ in range(size):
                if flag[0]:
                    break
                history.append(self.iterate())
                made += 1
                if history[-1] <= tolerance or self.moved() < 1e-13:
                    break
        worst = min(history[-made:], default=math.inf) if made else math.inf
        return made, self.moved(), worst

    def moved(self) -> float:
        """The largest step of the last iteration, as a share of what is allowed."""
        return float(self.tables.components["step"].max(initial=0.0))

    def sizes(self) -> Array:
        """Per closure and goal the norms of its position [m] and rotation rows [rad], (n, 2)."""
        self.kinematics()
        out = np.zeros((len(self.compiled.closure_of), 2))
        residuals(self.tables.bodies, self.tables.closures, self._rows, out)
        out[:, 0] *= self.compiled.bodies.length
        return out

    def met(self, tolerance: float) -> bool:
        """Whether every task is met."""
        return bool(self.sizes().max(initial=0.0) <= tolerance)

    def _worst_closure(self) -> float:
        """The largest residual of a closure; goals do not count."""
        out = self.sizes()
        out[self.compiled.goals] = 0.0
        return float(out.max(initial=0.0))

    def by_level(self) -> list[float]:
        """The largest residual of each level [m or rad], first level first."""
        sizes = self.sizes().max(axis=1)
        levels = self.tables.closures["level"]
        return [float(sizes[levels == l].max()) for l in np.unique(levels)]

    def hold_levels(self, start: Array, tolerance: float, limit: int) -> None:
        """Let each level have the last word over those below it.

        Level by level, the lower ones are left out while those down to it are met again: from where
        the solve ended or, where that does not succeed, from its start. So a level that can be met
        alone is met in the answer, whatever the lower ones ask for. Bounded, and so done for
        answers that were cancelled or timed out too.
        """
        levels = self.tables.closures["level"]
        for n, level in enumerate(np.unique(levels)[:-1]):
            if max(self.by_level()[: n + 1]) <= 1e-3 * tolerance:
                continue
            best = self._closed_from(self.q.copy(), levels > level, n + 1, tolerance, limit)
            if max(best[0]) > tolerance:
                other = self._closed_from(start, levels > level, n + 1, tolerance, limit)
                if _is_better(other[0], best[0], tolerance):
                    best = other
            self.q[:] = best[1]
            if max(best[0]) > tolerance:
                break
        self.kinematics()

    def _closed_from(
        self, begin: Array, left_out: NDArray[np.bool_], first: int, tolerance: float, limit: int
    ) -> tuple[list[float], Array]:
        """Meet the first levels from a posture, without the rows left out.

        Returns the largest residual of each of these levels, and the posture; that is the one given
        if nothing better was found.
        """
        weight = self.tables.closures["weight"]
        kept = weight.copy()
        self.q[:] = begin
        before = self.by_level()[:first]
        weight[left_out] = 0.0
        self._close(tolerance, max(limit, 60))
        weight[:] = kept
        after = self.by_level()[:first]
        met = max(after) <= tolerance and max(after) < max(before)
        if met or _is_better(after, before, tolerance):
            return after, self.q.copy()
        return before, begin

    def _close(self, tolerance: float, limit: int) -> None:
        """Iterate until the rows that are left in are met to a thousandth of the tolerance."""
        wanted = 1e-3 * min(tolerance, tolerance / self.compiled.bodies.length)
        self.tables.components["damping"] = DAMPING_START
        self.kinematics()
        best, since = math.inf, 0
        rest, self.rest = self.rest, 0.0
        try:
            for _ in range(limit):
                worst = self.iterate()
                if worst <= wanted or self.moved() < 1e-13:
                    break
                since = 0 if worst < best * (1.0 - 1e-6) else since + 1
                best = min(best, worst)
                if since >= 5:
                    break
        finally:
            self.rest = rest

    def step_out(self, effort: Effort) -> None:
        """Leave a posture at rest by small random steps, if something better is near.

        In a singular posture the step towards a goal vanishes although the goal is not met (an arm
        stretched towards a goal in its own line).
        """
        tolerance = effort.tolerance
        moves = ~self.compiled.bodies.locked
        low, high = self.tables.freedoms["low"], self.tables.freedoms["high"]
        best, levels = self.q.copy(), self.by_level()
        for k, size in enumerate(STEPS_OUT):
            if len(effort.history) >= effort.limit or effort.flag[0]:
                break
            step = np.random.default_rng(k).normal(scale=size, size=len(best))
            self.q[moves] = np.clip(best + step, low, high)[moves]
            self.descend(effort)
            if not self.met(tolerance):
                self.hold_levels(best, tolerance, 60)
            now = self.by_level()
            if _is_better(now, levels, tolerance):
                best, levels = self.q.copy(), now
                if max(now) <= tolerance:
                    return
        self.q[:] = best
        self.kinematics()


def _fraction(history: list[float], tolerance: float) -> float:
    """Progress to the tolerance on a logarithmic scale."""
    if not history or history[-1] <= tolerance:
        return 1.0
    start = math.log(max(history[0], tolerance * 10) / tolerance)
    return max(0.0, 1.0 - math.log(history[-1] / tolerance) / start)


def _is_better(now: list[float], before: list[float], tolerance: float) -> bool:
    """Whether the residuals by level are clearly smaller, the first level that differs decides."""
    for a, b in zip(now, before, strict=True):
        if a <= tolerance and b <= tolerance:
            continue
        return a < (1.0 - 1e-6) * b
    return False
