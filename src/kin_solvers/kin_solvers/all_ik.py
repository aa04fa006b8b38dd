"""All inverse kinematics solutions of a serial arm, sorted by nearness to a seed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kin_core import checks
from kin_core.task import Task
from kin_solvers import border
from kin_solvers.errors import RequestError, SettingsError, own_errors
from kin_solvers.manifold import Manifold
from kin_solvers.mechanism import MAX_MAGNITUDE, Mechanism
from kin_solvers.settings import Settings
from kin_solvers.solve import solve

__all__ = ["AllIK", "solve_all_ik"]

Array = NDArray[np.float64]

_TWO_PI = 2.0 * math.pi
#: Largest number of answers, turns of joints with wide ranges included.
MAX_ANSWERS = 100_000
#: Points along a self-motion curve.
SELF_MOTION_POINTS = 200


@dataclass(frozen=True)
class AllIK:
    """All joint configurations of an arm at a pose.

    Attributes:
        positions: Joint positions within the ranges, nearest to the seed first, shape (N, V)
            [rad, m]. With self-motion: samples of every component.
        distances: Euclidean distance to the seed, shape (N,).
        certified: Whether existence and uniqueness are proven, shape (N,).
        components: Component of each answer, shape (N,): its number in ``manifold.components``.
        dimension: 0 for isolated solutions, else the largest dimension of a self-motion.
        manifold: The cover that it comes from.
    """

    positions: Array
    distances: Array
    certified: NDArray[np.bool_]
    components: NDArray[np.int64]
    dimension: int
    manifold: Manifold

    @property
    def separated(self) -> bool:
        """Whether each isolated solution is proven to be alone; see ``Manifold.separated``."""
        return self.manifold.separated

    @property
    def complete(self) -> bool:
        """Whether the list is complete: no solution apart from it, and none in it twice."""
        return self.separated

    @property
    def postures(self) -> int:
        """Number of isolated solutions, turns not counted."""
        points = self._numbers(0)
        return int(np.isin(points, self.components).sum())

    @property
    def message(self) -> str:
        """One sentence for people: postures, turns, curves."""
        if self.manifold.complete and len(self.manifold.lower) == 0:
            return "proven: no configuration within the ranges reaches the pose"
        curve, more = " (self-motion of dimension 1)", f" of dimension {self.dimension}"
        parts = [
            self._postures(),
            self._self_motions(1, f"a curve{curve}", f"curves{curve}"),
            self._self_motions(2, f"a self-motion{more}", f"self-motions{more}"),
        ]
        text = ", and ".join(p for p in parts if p) or "no configuration found"
        if not self.manifold.complete:
            return f"{text}; {self.manifold.message}"
        return text if self.separated else f"{text}; {self._doubt()}"

    def _numbers(self, dimension: int) -> NDArray[np.int64]:
        """Components of a dimension; 2: or more."""
        found = [min(c.dimension, 2) for c in self.manifold.components]
        return np.flatnonzero(np.array(found, dtype=np.int64) == dimension)

    def _postures(self) -> str:
        mine = np.isin(self.components, self._numbers(0))
        count = self.postures
        if count == 0:
            return ""
        text = f"{count} posture{'s' if count > 1 else ''}"
        turns = np.unique(np.unique(self.components[mine], return_counts=True)[1])
        answers = int(mine.sum())
        if answers > count:
            each = f" x {turns[0]} turns" if len(turns) == 1 else " with their turns"
            text += f"{each} = {answers} solutions"
        sure = int(self.certified[mine].sum())
        return f"{text}, {'all' if sure == answers else sure} certified"

    def _self_motions(self, dimension: int, one: str, several: str) -> str:
        """Curves, or larger sets, and how many samples stand for them."""
        numbers = self._numbers(dimension)
        if len(numbers) == 0:
            return ""
        samples = int(np.isin(self.components, numbers).sum())
        what = one if len(numbers) == 1 else f"{len(numbers)} {several}"
        return f"{what}, {samples} sample{'s' * (samples != 1)}"

    def _doubt(self) -> str:
        """What is not proven."""
        found = self.manifold
        guessed = sum(not found.as_expected(c) for c in found.components)
        parts = []
        if guessed:
            parts.append(f"{guessed} of unproven dimension")
        if found.unresolved:
            parts.append(f"{len(found.unresolved)} regions without a solution that was found")
        return "not all separated, near a singularity: " + ", ".join(parts)


def solve_all_ik(
    arm: Mechanism,
    seed: ArrayLike | None = None,
    settings: Settings | None = None,
    *,
    task: Task | None = None,
) -> AllIK:
    """All configurations of an arm (closed at its target) sorted by distance to a seed.

    A joint whose range is wider than a turn appears at each of its turns within the range.

    Args:
        arm: The arm.
        seed: Joint positions, shape (V,) [rad, m]; zeros if None.
        settings: How to solve.
        task: Cancel, time budget and progress.
    """
    n = len(border.instance("arm", arm, Mechanism).variables)
    start = np.zeros(n) if seed is None else border.array("seed", seed, (n,), SettingsError)
    if np.abs(start).max() > MAX_MAGNITUDE:
        raise SettingsError("seed", f"reaches beyond {MAX_MAGNITUDE:g}")
    manifold = solve(arm, Settings(sigma=0.1) if settings is None else settings, task=task)
    points, labels, certified, dimension = _points(arm, manifold)
    positions, parents = _turns(arm, points)
    distances = np.linalg.norm(positions - start, axis=1)
    order = np.argsort(distances, kind="stable")
    return AllIK(
        positions=positions[order],
        distances=distances[order],
        certified=certified[parents][order],
        components=labels[parents][order],
        dimension=dimension,
        manifold=manifold,
    )


def _points(
    arm: Mechanism, manifold: Manifold
) -> tuple[Array, NDArray[np.int64], NDArray[np.bool_], int]:
    """One configuration per isolated solution, many along a self-motion."""
    samples: list[Array] = []
    for component in manifold.components:
        if component.dimension == 1:
            rows = []
            for curve in component.curves:
                step = -(-len(curve) // SELF_MOTION_POINTS)
                rows += [curve[::step], curve[-1:] if (len(curve) - 1) % step else curve[:0]]
            samples.append(np.concatenate(rows))
        else:
            samples.append(component.point[None])
    counts = [len(rows) for rows in samples]
    sure = [
        c.dimension == 0 and bool(manifold.certified[c.boxes].any()) for c in manifold.components
    ]
    points = np.concatenate([np.empty((0, len(arm.variables))), *samples])
    turned = np.remainder(points + math.pi, _TWO_PI) - math.pi
    return (
        np.where(manifold.cyclic, turned, points),
        np.repeat(np.arange(len(samples)), counts),
        np.repeat(np.array(sure, dtype=bool), counts),
        max((c.dimension for c in manifold.components), default=0),
    )


def _turns(arm: Mechanism, points: Array) -> tuple[Array, NDArray[np.int64]]:
    """Every representative of each point within the ranges, and the point it comes from."""
    lower = np.array([v.lower for v in arm.variables])
    upper = np.array([v.upper for v in arm.variables])
    moves = np.array([v.kind == "translation" for v in arm.variables])
    first = np.where(moves, 0.0, np.ceil((lower - 1e-9 - points) / _TWO_PI))
    last = np.floor((upper + 1e-9 - points) / _TWO_PI)
    # Both ends of one turn are one configuration.
    last = np.where(upper - lower < _TWO_PI + 1e-8, np.minimum(first, last), last)
    inside = (lower - 1e-9 <= points) & (points <= upper + 1e-9)
    last = np.where(moves, np.where(inside, 0.0, -1.0), last)
    counts = np.maximum(last - first + 1.0, 0.0)
    totals = counts.prod(axis=1)
    with own_errors(RequestError):
        checks.count("solutions with all turns", int(totals.sum()), MAX_ANSWERS)
    parents = np.repeat(np.arange(len(points)), totals.astype(np.int64))
    # The number of a row among those of its point, in digits of the numbers of turns.
    number = np.arange(len(parents)) - np.repeat(
        np.cumsum(totals) - totals, totals.astype(np.int64)
    )
    weights = np.ones_like(counts)
    weights[:, :-1] = np.cumprod(counts[:, :0:-1], axis=1)[:, ::-1]
    turns = np.floor(number[:, None] / weights[parents]) % counts[parents] + first[parents]
    return np.clip(points[parents] + _TWO_PI * turns, lower, upper), parents
