"""The connected components of a solution set, read from a cover of boxes by numerical means.

A box proven to hold at most one solution is a component of its own. In every other cluster Newton's
method starts from each box. Full rank of the Jacobian: isolated solutions, one component each. One
rank less: curves, each traced to both ends within the ranges, one component each, and each box goes
with the curve nearest to it; so the number of components is that of the solution set, whichever
boxes happen to touch. Curves that meet in a singular point are one component. More: one component.
A cluster in which no solution is found is no component; it is counted apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from kin_solvers.clusters import wrapped
from kin_solvers.curves import SAME, Curve, passes, trace
from kin_solvers.equations import Equations
from kin_solvers.system import System

__all__ = ["Component", "Finder"]

Array = NDArray[np.float64]

_TWO_PI = 2.0 * math.pi
#: Most boxes of a cluster from which Newton's method starts.
STARTS = 4000
#: Roots of a cluster at which the rank of the Jacobian is looked at.
_RANKS = 5
#: Singular values under this, relative to the largest, count as zero.
_RANK_TOLERANCE = 1e-7
#: Curves of one cluster that are traced at most.
_MAX_CURVES = 64
#: Longest and shortest step along a curve [rad, m].
_STEPS = (0.02, 0.2)
#: Width of a cluster under which its unproven roots are taken for one multiple root [rad, m].
MULTIPLE = 1e-4


@dataclass(frozen=True)
class Component:
    """One connected component of the solution set, with the boxes that cover it.

    Attributes:
        boxes: Indices of its boxes; none if other components cover it as well.
        dimension: Its dimension; 0 for an isolated solution.
        closed_curve: Whether it is one closed curve.
        point: A configuration on it, shape (V,) [rad, m].
        proven: Whether its dimension is proven, with at most one solution; else it is an estimate.
        curves: Dimension 1: points along it, each array of shape (P, V) [rad, m].
    """

    boxes: NDArray[np.int64]
    dimension: int
    closed_curve: bool
    point: Array = field(repr=False)
    proven: bool = False
    curves: tuple[Array, ...] = field(default=(), repr=False)


class Finder:
    """Finds the components of clusters of boxes.

    Args:
        system: The mechanism in normal form.
        lower: Lower ends of the boxes, shape (N, V) (system units).
        upper: Upper ends, shape (N, V).
        sigma: Their largest side [rad, m].
        known: Isolated solutions that have components of their own, shape (K, V) (system units).
    """

    def __init__(
        self,
        system: System,
        lower: Array,
        upper: Array,
        sigma: float,
        known: Array | None = None,
    ) -> None:
        self.system = system
        self.equations = Equations.of(system)
        self.lower, self.upper = lower, upper
        self.sigma = sigma
        self.known = np.empty((0, system.size)) if known is None else known
        self.step = float(np.clip(sigma, *_STEPS))
        self.limits = (
            np.where(system.cyclic, -np.inf, system.lower),
            np.where(system.cyclic, np.inf, system.upper),
        )

    def isolated(self, boxes: NDArray[np.int64]) -> list[Component]:
        """The components of boxes that are proven to hold at most one solution each."""
        lower, upper = self.lower[boxes], self.upper[boxes]
        middle, half = (lower + upper) / 2, (upper - lower) / 2
        roots, came = self.equations.newton_all(middle)
        near = came & (np.abs(roots - middle) <= half + 1e-9).all(axis=1)
        points = np.where(near[:, None], np.clip(roots, *self.limits), middle) / self.system.unit
        return [
            Component(boxes[i : i + 1], 0, False, points[i], proven=True) for i in range(len(boxes))
        ]

    def components(self, boxes: NDArray[np.int64]) -> list[Component]:
        """The components of one cluster; none if no solution is found in it."""
        roots, owners = self._roots(boxes)
        if len(roots) == 0:
            return []
        picks = np.linspace(0, len(roots) - 1, min(_RANKS, len(roots))).astype(int)
        ranks = [self._rank(roots[i]) for i in picks]
        dimension = self.system.size - max(ranks)
        if dimension == 1:
            roots = np.concatenate([roots, self._other_sheets(roots, owners)])
            found = self._curves(boxes, roots)
            if found:
                return found
            dimension = 0  # a multiple root: singular, and no curve leads away from it
        if dimension == 0:
            return self._points(boxes, roots)
        start = roots[picks[int(np.argmax(ranks))]]
        return [Component(boxes, dimension, False, start / self.system.unit)]

    def merged(self, found: list[Component]) -> list[Component]:
        """Components with curves that were traced from more than one cluster made one."""
        curves = [k for k, c in enumerate(found) if len(c.curves) == 1]
        if not curves:  # there may be only branches that meet, each component of several curves
            return found
        starts = np.array([found[k].point for k in curves]) * self.system.unit
        same: dict[int, int] = {}
        for place, k in enumerate(curves):
            if k in same:
                continue
            curve = Curve(found[k].curves[0] * self.system.unit, found[k].closed_curve, False)
            for other in np.flatnonzero(passes(self.equations, curve, starts, self.step)):
                if other > place and curves[other] not in same:
                    same[curves[other]] = k
        extra: dict[int, list[NDArray[np.int64]]] = {}
        for k, owner in same.items():
            extra.setdefault(owner, []).append(found[k].boxes)
        return [
            replace(c, boxes=np.sort(np.concatenate([c.boxes, *extra[k]]))) if k in extra else c
            for k, c in enumerate(found)
            if k not in same
        ]

    def _rank(self, q: Array) -> int:
        return self.equations.rank(self.equations(q)[1], _RANK_TOLERANCE)

    def _roots(self, boxes: NDArray[np.int64]) -> tuple[Array, NDArray[np.int64]]:
        """Solutions within the ranges near boxes of a cluster, and the box of each."""
        picks = boxes[:: -(-len(boxes) // STARTS)]
        return self._near_boxes(0.5 * (self.lower[picks] + self.upper[picks]), picks)

    def _near_boxes(
        self, starts: Array, picks: NDArray[np.int64]
    ) -> tuple[Array, NDArray[np.int64]]:
        """Where Newton's method comes from starts, one for each of some boxes, if that is near."""
        middle = 0.5 * (self.lower[picks] + self.upper[picks])
        size = self._sizes(picks)
        q, came = self.equations.newton_all(starts)
        came &= (np.abs(q - middle) <= 1.5 * size + 1e-6).all(axis=1)
        beyond = ((q < self.limits[0]) | (q > self.limits[1])).any(axis=1)
        for i in np.flatnonzero(came & beyond):
            inside = self._into_ranges(q[i], 3.0 * float(size[i].max()))
            if inside is None:
                came[i] = False
            else:
                q[i] = inside
        for known in self.known:
            came &= np.abs(self._gap(q - known)).max(axis=1) > SAME
        return q[came], picks[came]

    def _sizes(self, picks: NDArray[np.int64]) -> Array:
        return np.maximum(self.upper[picks] - self.lower[picks], 0.5 * self.sigma)

    def _other_sheets(self, roots: Array, owners: NDArray[np.int64]) -> Array:
        """Solutions on other sheets of a curve in the boxes of known ones: a box may hold both."""
        starts, parent = self.equations.across_folds(1, roots, self._sizes(owners))
        return self._near_boxes(starts, owners[parent])[0]

    def _into_ranges(self, q: Array, reach: float) -> Array | None:
        """A solution within the ranges near one that may lie beyond them; None if there is none."""
        moved = q
        for _ in range(3):  # at a limit another variable may be beyond its own
            inside = np.clip(moved, *self.limits)
            beyond = np.abs(moved - inside)
            worst = int(np.argmax(beyond))
            if beyond[worst] <= 1e-12:
                return inside
            pin = np.zeros(len(q))
            pin[worst] = 1.0
            found = self.equations.pinned(moved, pin, float(inside[worst]))
            if found is None or np.abs(found - q).max() > reach:
                return None
            moved = found
        return None

    # Isolated solutions that could not be proven --------------------------------------------------

    def _points(self, boxes: NDArray[np.int64], roots: Array) -> list[Component]:
        """One component for each root; boxes go with the nearest one."""
        # A multiple root is known only to about the square root of the rounding error: what was
        # found in a cluster that small, and could not be proven, counts as one.
        hull = float((self.upper[boxes].max(axis=0) - self.lower[boxes].min(axis=0)).max())
        apart = SAME if hull > MULTIPLE else math.inf
        kept: list[Array] = []
        for q in roots:
            if all(np.abs(self._gap(q - p)).max() > apart for p in kept):
                kept.append(q)
        middle = 0.5 * (self.lower[boxes] + self.upper[boxes])
        distance = np.array([np.abs(self._gap(middle - p)).max(axis=1) for p in kept])
        nearest = distance.argmin(axis=0)
        return [
            Component(boxes[nearest == k], 0, False, p / self.system.unit)
            for k, p in enumerate(kept)
        ]

    def _gap(self, difference: Array) -> Array:
        turned = np.remainder(difference + math.pi, _TWO_PI) - math.pi
        return np.where(self.system.cyclic, turned, difference)

    # Curves ---------------------------------------------------------------------------------------

    def _curves(self, boxes: NDArray[np.int64], roots: Array) -> list[Component]:
        """Trace every curve of a cluster."""
        unit = self.system.unit
        found: list[Curve] = []
        left = np.ones(len(roots), dtype=bool)
        while left.any() and len(found) < _MAX_CURVES:
            start = roots[int(np.argmax(left))]
            curve = trace(self.equations, start, step=self.step, limits=self.limits)
            left[int(np.argmax(left))] = False
            left &= ~passes(self.equations, curve, roots, self.step)
            if len(curve.points) > 1:
                found.append(curve)
        if not found or all(self._span(c) < 1e-6 for c in found):
            return []
        middle = 0.5 * (self.lower[boxes] + self.upper[boxes])
        nearest = np.array([self._distance(c, middle) for c in found]).argmin(axis=0)
        if any(c.singular for c in found):  # branches that meet
            pieces = tuple(c.points / unit for c in found)
            return [Component(boxes, 1, False, pieces[0][0], False, pieces)]
        return [
            Component(boxes[nearest == k], 1, c.closed, c.points[0] / unit, False,
                      (c.points / unit,))
            for k, c in enumerate(found)
        ]  # fmt: skip

    @staticmethod
    def _span(curve: Curve) -> float:
        return float(np.ptp(curve.points, axis=0).max())

    def _distance(self, curve: Curve, points: Array) -> Array:
        cyclic = self.system.cyclic
        tree = cKDTree(wrapped(curve.points, cyclic), boxsize=np.where(cyclic, _TWO_PI, 0.0))
        return np.asarray(tree.query(wrapped(points, cyclic), p=np.inf)[0])
