"""The answer of the solver: a cover of boxes, its certificates, and what can be read from it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kin_solvers import border
from kin_solvers.boxes import Counters
from kin_solvers.clusters import clusters_of, connect
from kin_solvers.components import Component, Finder
from kin_solvers.curves import trace
from kin_solvers.equations import Equations
from kin_solvers.errors import RequestError
from kin_solvers.mechanism import Mechanism
from kin_solvers.schedule import Paused
from kin_solvers.system import System

__all__ = ["Component", "Counters", "Manifold"]

Array = NDArray[np.float64]

_TWO_PI = 2.0 * math.pi
#: Shortest step along a curve [rad, m].
MIN_STEP = 1e-6
#: Points that may be asked for.
MAX_REFINED = 1_000_000


@dataclass(frozen=True)
class Manifold:
    """All solutions of a mechanism: no solution lies outside the boxes and the unfinished boxes.

    Attributes:
        mechanism: The mechanism.
        sigma: Side at which a box counted as solution [rad, m].
        lower: Lower ends of the boxes, shape (N, V) [rad, m].
        upper: Upper ends, shape (N, V).
        certified: Whether each box is proven to hold exactly one solution, shape (N,).
        isolated: Whether each box is proven to hold at most one solution, and to be the only box
            around it, shape (N,).
        unfinished_lower: Lower ends of the boxes that were left open, shape (U, V).
        unfinished_upper: Upper ends, shape (U, V).
        unfinished_share: Share of the search volume of each unfinished box, shape (U,).
        counters: What the paper counts.
        stopped: Why it is not complete: "", "boxes", "memory", "time" or "cancelled".
        settled: Share of the search volume that is settled, 0 to 1.
        solve_time: Time spent [s].
        asked: What was searched: the "ranges" of the mechanism, or given "boxes" within them.
        paused: What a resumed search goes on from.
    """

    mechanism: Mechanism
    sigma: float
    lower: Array = field(repr=False)
    upper: Array = field(repr=False)
    certified: NDArray[np.bool_] = field(repr=False)
    isolated: NDArray[np.bool_] = field(repr=False)
    unfinished_lower: Array = field(repr=False)
    unfinished_upper: Array = field(repr=False)
    unfinished_share: Array = field(repr=False)
    counters: Counters
    stopped: str = ""
    settled: float = 1.0
    solve_time: float = 0.0
    asked: str = "ranges"
    paused: Paused | None = field(default=None, repr=False, compare=False)

    @property
    def complete(self) -> bool:
        """Whether nothing was left unfinished."""
        return len(self.unfinished_lower) == 0

    @property
    def message(self) -> str:
        """One sentence for people."""
        n, sure = len(self.lower), int(self.certified.sum())
        if not self.complete:
            reason = {
                "boxes": "the box budget is used up",
                "memory": "the memory budget is used up",
                "time": "the time is over",
                "cancelled": "it was cancelled",
            }.get(self.stopped, "it was stopped")
            return (
                f"incomplete, {reason}: {n} boxes so far, {len(self.unfinished_lower)} unfinished, "
                f"{100.0 * self.settled:.4g} % of the search volume settled"
            )
        if n == 0:
            where = "the given boxes" if self.asked == "boxes" else "the ranges"
            return f"proven: the mechanism has no configuration within {where}"
        what = "all solutions of the given boxes" if self.asked == "boxes" else "all solutions"
        return f"{n} boxes cover {what}, {sure} of them certified to hold exactly one"

    @property
    def summary(self) -> str:
        """What the solution set is, for people: isolated solutions, curves, surfaces."""
        counts = np.bincount([min(c.dimension, 2) for c in self.components], minlength=3)
        closed = sum(c.closed_curve for c in self.components)
        words = [_counted(int(counts[0]), "isolated solution")]
        if counts[1]:
            how = "closed" if closed == counts[1] else f"{closed} of them closed"
            words.append(f"{_counted(int(counts[1]), 'curve')} ({how})")
        words.append(_counted(int(counts[2]), "surface"))
        if self.unresolved:
            words.append(_counted(len(self.unresolved), "unresolved cluster"))
        return ", ".join(w for w in words if w) or "nothing"

    @cached_property
    def cyclic(self) -> NDArray[np.bool_]:
        """Which variables are angles on the full circle, shape (V,)."""
        return np.array([v.cyclic for v in self.mechanism.variables])

    @cached_property
    def clusters(self) -> NDArray[np.int64]:
        """Cluster of each box, shape (N,): boxes that touch, with wrap at +-pi.

        A box proven to hold at most one solution, alone in its region, is a cluster of its own.
        """
        labels = np.empty(len(self.lower), dtype=np.int64)
        rest = ~self.isolated
        labels[rest] = connect(self.lower[rest], self.upper[rest], self.cyclic)
        first = int(labels[rest].max(initial=-1)) + 1
        labels[self.isolated] = first + np.arange(int(self.isolated.sum()))
        return labels

    @cached_property
    def _analysis(self) -> tuple[tuple[Component, ...], tuple[NDArray[np.int64], ...]]:
        """The components, and the clusters in which no solution was found."""
        system = System.of(self.mechanism)
        unit = system.unit
        lower, upper = self.lower * unit, self.upper * unit
        known = 0.5 * (lower + upper)[self.isolated]
        finder = Finder(system, lower, upper, self.sigma, known)
        found = finder.isolated(np.flatnonzero(self.isolated))
        if len(found) == len(lower):
            return tuple(found), ()
        without: list[NDArray[np.int64]] = []
        for boxes in clusters_of(self.clusters):
            if self.isolated[boxes[0]]:
                continue
            parts = finder.components(boxes)
            found += parts
            if not parts:
                without.append(boxes)
        if any(c.curves for c in found):
            found = finder.merged(found)
        found.sort(key=lambda c: int(c.boxes.min(initial=len(self.lower))))
        return tuple(found), tuple(without)

    @property
    def components(self) -> tuple[Component, ...]:
        """The connected components of the solution set that were found, with their dimension."""
        return self._analysis[0]

    @property
    def unresolved(self) -> tuple[NDArray[np.int64], ...]:
        """Clusters in which no solution was found and none excluded, as indices of boxes."""
        return self._analysis[1]

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """Component of each box, shape (N,); -1 where no solution was found near it."""
        labels = np.full(len(self.lower), -1, dtype=np.int64)
        for number, component in enumerate(self.components):
            labels[component.boxes] = number
        return labels

    @property
    def separated(self) -> bool:
        """Whether every isolated solution is known to be alone, and each is a component.

        That is: the cover is complete, every component is either proven to be isolated or of the
        dimension that the number of equations lets expect, and no cluster is unresolved.
        """
        return (
            self.complete
            and not self.unresolved
            and all(self.as_expected(c) for c in self.components)
        )

    def as_expected(self, component: Component) -> bool:
        """Whether a component is a proven isolated solution, or as large as can be expected."""
        return component.proven or 0 < component.dimension == self.expected_dimension

    @cached_property
    def expected_dimension(self) -> int:
        """Unknowns less independent equations; 0 where there are at least as many of these."""
        equations = Equations.of(System.of(self.mechanism))
        return max(0, len(self.mechanism.variables) - len(equations.independent))

    def _near(self, q: Array, box: int) -> bool:
        """Whether a point is in a box or within its size, or half of sigma, of it."""
        middle = 0.5 * (self.lower[box] + self.upper[box])
        size = np.maximum(self.upper[box] - self.lower[box], 0.5 * self.sigma)
        return bool(np.all(np.abs(q - middle) <= 1.5 * size + 1e-6))

    def curve(self, component: int, step: float | None = None) -> tuple[Array, bool]:
        """Ordered points along a one-dimensional component.

        Args:
            component: Index of the component.
            step: Longest distance between neighbours [rad, m]; sigma, but 0.02 to 0.2, if None.

        Returns:
            Points, shape (P, V) [rad, m], and whether the curve is closed. Neighbours are near each
            other: angles run on over +-pi.
        """
        component = border.index("component", component, len(self.components))
        step = None if step is None else border.at_least("step", step, MIN_STEP)
        found = self.components[component]
        if step is None and len(found.curves) == 1:
            return found.curves[0], found.closed_curve
        system = System.of(self.mechanism)
        finder = Finder(system, self.lower * system.unit, self.upper * system.unit, self.sigma)
        curve = trace(
            finder.equations,
            found.point * system.unit,
            step=finder.step if step is None else step,
            limits=finder.limits,
        )
        return curve.points / system.unit, curve.closed

    def refine(self, count: int) -> tuple[Array, NDArray[np.int64]]:
        """Points on the solution set, from Newton steps that start in the boxes.

        Args:
            count: Points wanted; they are spread evenly over the boxes.

        Returns:
            Points, shape (P, V) [rad, m], and the component of each, shape (P,). P is smaller than
            count where Newton finds no solution near a box.
        """
        count = border.whole("count", count, 0, MAX_REFINED, RequestError)
        n = len(self.lower)
        size = len(self.mechanism.variables)
        system = System.of(self.mechanism)
        equations = Equations.of(system)
        unit = system.unit
        points, labels = [], []
        rng = np.random.default_rng(n)
        for turn in range(count if n else 0):
            i = (turn * n) // count if count <= n else turn % n
            blend = 0.5 if turn < n else rng.uniform(size=size)
            q = equations.newton(((1.0 - blend) * self.lower[i] + blend * self.upper[i]) * unit)
            if q is not None and self._near(q / unit, i) and self._in_range(q / unit):
                points.append(q / unit)
                labels.append(self.labels[i])
        return np.array(points).reshape(-1, size), np.array(labels, dtype=np.int64)

    def _in_range(self, q: Array) -> bool:
        return all(
            v.cyclic or v.lower - 1e-9 <= x <= v.upper + 1e-9
            for v, x in zip(self.mechanism.variables, q, strict=True)
        )

    def contains(self, q: ArrayLike, slack: float = 1e-12) -> bool:
        """Whether a configuration, shape (V,) [rad, m], lies in a box or an unfinished box."""
        point = border.array("q", q, (len(self.mechanism.variables),))
        slack = border.number("slack", slack)
        for lower, upper in (
            (self.lower, self.upper),
            (self.unfinished_lower, self.unfinished_upper),
        ):
            middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
            gap = np.abs(point - middle)
            turned = np.abs(np.remainder(point - middle + math.pi, _TWO_PI) - math.pi)
            gap = np.where(self.cyclic, np.minimum(gap, turned), gap)
            if bool((gap <= half + slack).all(axis=1).any()):
                return True
        return False

    def distances(self, seed: ArrayLike) -> Array:
        """Euclidean distance of every box from a configuration, shape (N,) [rad, m]."""
        point = border.array("seed", seed, (len(self.mechanism.variables),))
        middle, half = 0.5 * (self.lower + self.upper), 0.5 * (self.upper - self.lower)
        gap = middle - point
        gap = np.abs(np.where(self.cyclic, np.remainder(gap + math.pi, _TWO_PI) - math.pi, gap))
        return np.linalg.norm(np.maximum(0.0, gap - half), axis=1)

    def sorted_by(self, seed: ArrayLike) -> Manifold:
        """The same manifold with its boxes sorted by nearness to a configuration, shape (V,)."""
        order = np.argsort(self.distances(seed), kind="stable")
        return replace(
            self,
            lower=self.lower[order],
            upper=self.upper[order],
            certified=self.certified[order],
            isolated=self.isolated[order],
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "mechanism": self.mechanism.name,
            "variables": list(self.mechanism.names),
            "kinds": [v.kind for v in self.mechanism.variables],
            "sigma": self.sigma,
            "complete": self.complete,
            "stopped": self.stopped,
            "message": self.message,
            "settled": self.settled,
            "solve_time": self.solve_time,
            "counters": dict(vars(self.counters)),
            "lower": self.lower.tolist(),
            "upper": self.upper.tolist(),
            "certified": self.certified.tolist(),
            "separated": self.separated,
            "unresolved": len(self.unresolved),
            "component_of_box": self.labels.tolist(),
            "components": [
                {
                    "boxes": len(c.boxes),
                    "dimension": c.dimension,
                    "proven": c.proven,
                    "closed_curve": c.closed_curve,
                    "point": c.point.tolist(),
                }
                for c in self.components
            ],
            "unfinished_lower": self.unfinished_lower.tolist(),
            "unfinished_upper": self.unfinished_upper.tolist(),
            "unfinished_share": self.unfinished_share.tolist(),
        }


def _counted(count: int, word: str) -> str:
    """A number with its word in the plural, or nothing for none."""
    return f"{count} {word}{'s' if count != 1 else ''}" if count else ""
