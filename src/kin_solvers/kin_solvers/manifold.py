"""The answer of the solver: a cover of boxes, its certificates, and what can be read from it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from kin_solvers import border
from kin_solvers.curves import trace
from kin_solvers.equations import Equations
from kin_solvers.errors import RequestError
from kin_solvers.mechanism import Mechanism
from kin_solvers.system import System

if TYPE_CHECKING:
    from kin_solvers.frontier import Paused

__all__ = ["Component", "Counters", "Manifold", "connect"]

Array = NDArray[np.float64]

_TWO_PI = 2.0 * math.pi
#: Shortest step along a curve [rad, m].
MIN_STEP = 1e-6
#: Points that may be asked for.
MAX_REFINED = 1_000_000
#: Boxes of a component that are looked at to estimate its dimension.
_SAMPLES = 5


@dataclass(frozen=True)
class Counters:
    """What the paper counts.

    Attributes:
        processed: Boxes taken from the list.
        reductions: Applications of Reduce_Box.
        solutions: Boxes that became solutions, before neighbours were merged.
        empty: Boxes proven empty.
    """

    processed: int = 0
    reductions: int = 0
    solutions: int = 0
    empty: int = 0

    def __add__(self, other: Counters) -> Counters:
        return Counters(
            self.processed + other.processed,
            self.reductions + other.reductions,
            self.solutions + other.solutions,
            self.empty + other.empty,
        )


@dataclass(frozen=True)
class Component:
    """One connected component of the box cover.

    Attributes:
        boxes: Indices of its boxes.
        dimension: Estimated dimension; 0 for an isolated solution.
        closed_curve: Whether it is one closed curve.
        point: A configuration on it, shape (V,) [rad, m]; None if Newton found none.
    """

    boxes: NDArray[np.int64]
    dimension: int
    closed_curve: bool
    point: Array | None = field(repr=False)


@dataclass(frozen=True)
class Manifold:
    """All solutions of a mechanism: no solution lies outside the boxes and the unfinished boxes.

    Attributes:
        mechanism: The mechanism.
        sigma: Side at which a box counted as solution [rad, m].
        lower: Lower ends of the boxes, shape (N, V) [rad, m].
        upper: Upper ends, shape (N, V).
        certified: Whether each box is proven to hold exactly one solution, shape (N,).
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

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """Component of each box, shape (N,): boxes that touch, with wrap at +-pi."""
        return connect(
            self.lower, self.upper, np.array([v.cyclic for v in self.mechanism.variables])
        )

    @cached_property
    def components(self) -> tuple[Component, ...]:
        """The connected components with their dimension."""
        system = System.of(self.mechanism)
        equations = Equations(system)
        result = []
        labels = self.labels
        order = np.argsort(labels, kind="stable")
        starts = np.searchsorted(labels[order], np.arange(labels.max(initial=-1) + 2))
        for a, b in pairwise(starts):
            result.append(self._component(order[a:b], system, equations))
        return tuple(result)

    def _component(
        self, boxes: NDArray[np.int64], system: System, equations: Equations
    ) -> Component:
        unit = system.unit
        ranks, start = [], None
        picks = boxes[np.linspace(0, len(boxes) - 1, min(_SAMPLES, len(boxes))).astype(int)]
        for i in picks:
            q = equations.newton(0.5 * (self.lower[i] + self.upper[i]) * unit)
            if q is None or not self._near(q / unit, int(i)):
                continue
            values = np.linalg.svd(equations(q)[1], compute_uv=False)
            rank = int((values > 1e-7 * max(values[0], 1e-300)).sum())
            if start is None or rank > max(ranks, default=0):
                start = q
            ranks.append(rank)
        if start is None:
            return Component(boxes, 0 if len(boxes) == 1 else 1, False, None)
        dimension = system.size - max(ranks)
        closed = False
        if dimension == 1:
            curve, closed = trace(
                equations, start, step=0.5 * self.sigma, limits=self._limits(system)
            )
            closed = closed and self._covers(curve / unit, boxes)
        return Component(boxes, dimension, closed, start / unit)

    def _near(self, q: Array, box: int) -> bool:
        """Whether a point is in a box or within its size, or half of sigma, of it."""
        middle = 0.5 * (self.lower[box] + self.upper[box])
        size = np.maximum(self.upper[box] - self.lower[box], 0.5 * self.sigma)
        return bool(np.all(np.abs(q - middle) <= 1.5 * size + 1e-6))

    def _limits(self, system: System) -> tuple[Array, Array]:
        """Ranges for tracing (system units), infinite for whole turns."""
        lower = np.where(system.cyclic, -np.inf, system.lower)
        upper = np.where(system.cyclic, np.inf, system.upper)
        return lower, upper

    def _covers(self, curve: Array, boxes: NDArray[np.int64]) -> bool:
        """Whether a traced curve comes near every box of a component."""
        middle = 0.5 * (self.lower[boxes] + self.upper[boxes])
        cyclic = np.array([v.cyclic for v in self.mechanism.variables])
        period = np.where(cyclic, _TWO_PI, 0.0)
        tree = cKDTree(_wrapped(curve, cyclic), boxsize=period)
        distance, _ = tree.query(_wrapped(middle, cyclic), p=np.inf)
        return bool(np.all(distance <= 2.0 * self.sigma))

    def curve(self, component: int, step: float | None = None) -> tuple[Array, bool]:
        """Ordered points along a one-dimensional component.

        Args:
            component: Index of the component.
            step: Distance between neighbours [rad, m]; sigma if None.

        Returns:
            Points, shape (P, V) [rad, m], and whether the curve is closed. Neighbours are near each
            other: angles run on over +-pi.
        """
        component = border.index("component", component, len(self.components))
        step = None if step is None else border.at_least("step", step, MIN_STEP)
        system = System.of(self.mechanism)
        start = self.components[component].point
        if start is None:
            return np.empty((0, system.size)), False
        points, closed = trace(
            Equations(system),
            start * system.unit,
            step=self.sigma if step is None else step,
            limits=self._limits(system),
        )
        return points / system.unit, closed

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
        if n == 0 or count <= 0:
            return np.empty((0, size)), np.empty(0, dtype=np.int64)
        system = System.of(self.mechanism)
        equations = Equations(system)
        unit = system.unit
        points, labels = [], []
        rng = np.random.default_rng(n)
        for turn in range(count):
            i = (turn * n) // count if count <= n else turn % n
            blend = 0.5 if turn < n else rng.uniform(size=size)
            q = equations.newton(((1.0 - blend) * self.lower[i] + blend * self.upper[i]) * unit)
            if q is not None and self._near(q / unit, i) and self._in_range(q / unit):
                points.append(q / unit)
                labels.append(self.labels[i])
        if not points:
            return np.empty((0, size)), np.empty(0, dtype=np.int64)
        return np.array(points), np.array(labels, dtype=np.int64)

    def _in_range(self, q: Array) -> bool:
        return all(
            v.cyclic or v.lower - 1e-9 <= x <= v.upper + 1e-9
            for v, x in zip(self.mechanism.variables, q, strict=True)
        )

    def contains(self, q: ArrayLike, slack: float = 1e-12) -> bool:
        """Whether a configuration, shape (V,) [rad, m], lies in a box or an unfinished box."""
        point = border.array("q", q, (len(self.mechanism.variables),))
        slack = border.number("slack", slack)
        cyclic = np.array([v.cyclic for v in self.mechanism.variables])
        for lower, upper in (
            (self.lower, self.upper),
            (self.unfinished_lower, self.unfinished_upper),
        ):
            middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
            gap = np.abs(point - middle)
            turned = np.abs(np.remainder(point - middle + math.pi, _TWO_PI) - math.pi)
            gap = np.where(cyclic, np.minimum(gap, turned), gap)
            if bool((gap <= half + slack).all(axis=1).any()):
                return True
        return False

    def distances(self, seed: ArrayLike) -> Array:
        """Euclidean distance of every box from a configuration, shape (N,) [rad, m]."""
        point = border.array("seed", seed, (len(self.mechanism.variables),))
        cyclic = np.array([v.cyclic for v in self.mechanism.variables])
        middle, half = 0.5 * (self.lower + self.upper), 0.5 * (self.upper - self.lower)
        gap = middle - point
        gap = np.abs(np.where(cyclic, np.remainder(gap + math.pi, _TWO_PI) - math.pi, gap))
        return np.linalg.norm(np.maximum(0.0, gap - half), axis=1)

    def sorted_by(self, seed: ArrayLike) -> Manifold:
        """The same manifold with its boxes sorted by nearness to a configuration, shape (V,)."""
        order = np.argsort(self.distances(seed), kind="stable")
        values = dict(self.__dict__)
        for name in ("labels", "components"):
            values.pop(name, None)
        values.update(
            lower=self.lower[order], upper=self.upper[order], certified=self.certified[order]
        )
        return Manifold(**values)

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
            "component_of_box": self.labels.tolist(),
            "components": [
                {
                    "boxes": len(c.boxes),
                    "dimension": c.dimension,
                    "closed_curve": c.closed_curve,
                    "point": None if c.point is None else c.point.tolist(),
                }
                for c in self.components
            ],
            "unfinished_lower": self.unfinished_lower.tolist(),
            "unfinished_upper": self.unfinished_upper.tolist(),
            "unfinished_share": self.unfinished_share.tolist(),
        }


def _wrapped(points: Array, cyclic: NDArray[np.bool_]) -> Array:
    """Cyclic coordinates brought to [0, 2 pi), as a periodic tree wants them."""
    turned = np.remainder(points, _TWO_PI)
    turned[turned >= _TWO_PI] = 0.0
    return np.where(cyclic, turned, points)


def connect(lower: Array, upper: Array, cyclic: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Labels of the connected components of a set of boxes."""
    n = len(lower)
    if n == 0:
        return np.empty(0, dtype=np.int64)
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    widest = float(half.max())
    period = np.where(cyclic, _TWO_PI, 0.0)
    tree = cKDTree(_wrapped(middle, cyclic), boxsize=period)
    pairs = tree.query_pairs(min(2.0 * widest + 1e-9, 3.0), p=np.inf, output_type="ndarray")
    i, j = pairs[:, 0], pairs[:, 1]
    gap = np.abs(middle[i] - middle[j])
    turned = np.abs(np.remainder(middle[i] - middle[j] + math.pi, _TWO_PI) - math.pi)
    gap = np.where(cyclic, turned, gap)
    touch = (gap <= half[i] + half[j] + 1e-12).all(axis=1)
    graph = coo_matrix((np.ones(int(touch.sum())), (i[touch], j[touch])), shape=(n, n))
    return connected_components(graph, directed=False)[1].astype(np.int64)
