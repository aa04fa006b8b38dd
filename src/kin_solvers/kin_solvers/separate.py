"""Separating the solutions of a cover: proofs, finer searches of what resists, empty clusters.

Boxes that touch make a cluster. Where solutions may be isolated (at least as many equations as
unknowns), each cluster is settled by itself: Newton's method finds roots, Krawczyk's test proves a
region around each in which it is the only one, and what lies outside of these regions is searched
again at a quarter of the side; until nothing is left, or a limit is reached, or the cluster is seen
to be a curve or a surface. Where there are fewer equations, small clusters are searched again only
to find out whether they are empty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kin_core.task import Task
from kin_solvers.boxes import Boxes, Outcome
from kin_solvers.certificate import Certifier, Proof
from kin_solvers.clusters import clusters_of, connect
from kin_solvers.fast import FastSearch
from kin_solvers.isolate import bounds_of, isolate, make_roots
from kin_solvers.regions import Region, Regions
from kin_solvers.settings import Settings
from kin_solvers.system import System
from kin_solvers.turns import without_turns

__all__ = ["Separated", "separate"]

Array = NDArray[np.float64]

_TWO_PI = 2.0 * math.pi
#: Smallest side of a box [rad, m].
SMALLEST = 1e-9
#: Boxes of a cover that are first searched again all together.
FEW = 100
#: Sides at which all solutions are looked for at once [rad, m].
SIDES = (1e-3, 3e-5, 1e-6)
#: Boxes that one cluster may come to, and that its finer searches may process, before it is left as
#: it is.
MAX_OPEN, MAX_PROCESSED = 20_000, 200_000
#: Boxes of a cluster from which Newton's method starts, at each level.
STARTS = 8
#: A cluster of fewer boxes is searched again before it is taken for a curve.
MANIFOLD_BOXES = 6
#: Smallest singular value, relative to the largest, under which a root counts as singular.
SINGULAR = 1e-7
#: Clusters of up to so many boxes are searched again for whether they are empty, whatever Newton's
#: method finds in them.
SMALL_CLUSTER = 32
#: Times that one of these is searched again by itself, each at an eighth of the side before.
EMPTY_LEVELS = 4
#: Boxes up to which a cluster is looked at for whether it has fallen apart.
MAX_CONNECTED = 3000
#: Widest region for which a proof is tried [rad, m].
WIDEST = 2.0
#: Width of a cluster of many boxes under which its region is made larger [rad, m]: rounding errors
#: are what keeps it together.
FINE = 1e-3
#: Factors by which a proven region of a cluster is made larger, as long as that can be proven.
GROW = (3.0, 10.0, 30.0)
#: Parts of a cluster that are tried around a root that is not known yet.
SHRINK = (0.25, 0.05, 0.01, 1e-3, 1e-4, 1e-5, 1e-6)
#: Boxes of a cover from which on nothing of this is tried.
MAX_COVER = 50_000
#: Most boxes that the finer searches of one answer process.
MAX_ANSWER_PROCESSED = 1_000_000


@dataclass(frozen=True)
class Separated:
    """A cover after separation (mechanism's units).

    Attributes:
        lower: Lower ends of the boxes, shape (N, V).
        upper: Upper ends, shape (N, V).
        certified: Whether each box is proven to hold exactly one solution, shape (N,).
        isolated: Whether each is proven to hold at most one, alone in its cluster, shape (N,).
        processed: Boxes that finer searches processed.
        reductions: Their reductions.
    """

    lower: Array
    upper: Array
    certified: NDArray[np.bool_]
    isolated: NDArray[np.bool_]
    processed: int
    reductions: int


def separate(
    system: System, lower: Array, upper: Array, settings: Settings, budget: int, task: Task
) -> Separated:
    """Prove isolated solutions, refine clusters that resist, drop empty ones.

    Args:
        system: The mechanism in normal form.
        lower: Lower ends of the boxes, shape (N, V) (mechanism's units).
        upper: Upper ends, shape (N, V).
        settings: How they were searched.
        budget: Boxes that finer searches may process.
        task: Cancel and time budget.
    """
    none = np.zeros(len(lower), dtype=bool)
    if len(lower) == 0 or len(lower) > MAX_COVER:
        return Separated(lower, upper, none, none, 0, 0)
    work = _Separation(system, settings, min(budget, MAX_ANSWER_PROCESSED), task)
    unit = system.unit
    lower, upper = lower * unit, upper * unit
    if work.certifier.determined:
        parts = work.settle(lower, upper)
    else:
        keep = work.not_empty(lower, upper)
        parts = Separated(
            lower[keep], upper[keep], none[keep], none[keep], work.processed, work.reductions
        )
    low, high = without_turns(parts.lower / unit, parts.upper / unit, system.cyclic)
    return replace(parts, lower=low, upper=high)


class _Separation:
    """The state of one separation (system units): proofs so far, and what it cost."""

    def __init__(self, system: System, settings: Settings, budget: int, task: Task) -> None:
        self.certifier = Certifier(system)
        self.system = system
        self.sigma = settings.sigma
        self.rho = settings.rho
        self.budget = budget
        self.task = task
        self.proofs: list[Proof] = []
        #: Regions of each proof: in each of them its root is the only one.
        self.own_regions: list[list[Region]] = []
        #: All of them.
        self.regions = Regions(self.system.size)
        self.processed = 0
        self.reductions = 0

    # Isolated solutions ----------------------------------------------------------------------

    def settle(self, lower: Array, upper: Array) -> Separated:
        """Settle all clusters at once where solutions are regular, else the small ones first."""
        parts = self._all_at_once(lower, upper)
        if parts is not None:
            return parts
        lower, upper = self._contracted(lower, upper)
        rest = [
            self._settle_cluster(*self._unwrapped(lower[members], upper[members]))
            for members in clusters_of(connect(lower, upper, self.system.cyclic), by_size=True)
        ]
        known = [p for p in self.proofs if not p.empty and self._may_be_in_range(p)]
        size, count = self.system.size, sum(len(left[0]) for left in rest)
        return Separated(
            np.concatenate([np.array([p.lower for p in known]).reshape(-1, size),
                            *(left[0] for left in rest)]),
            np.concatenate([np.array([p.upper for p in known]).reshape(-1, size),
                            *(left[1] for left in rest)]),
            np.array([p.exists and self._is_in_range(p) for p in known] + [False] * count, bool),
            np.array([True] * len(known) + [False] * count, bool),
            self.processed,
            self.reductions,
        )  # fmt: skip

    def _all_at_once(self, lower: Array, upper: Array) -> Separated | None:
        """Every solution proven by compiled code; None where a box resists."""
        system = self.system
        if not self.certifier.plain or len(lower) > FEW:
            return None
        bounds, roots = bounds_of(system), make_roots(system.size)
        tables = self.certifier.equations.tables
        for side in SIDES:
            if float((upper - lower).max()) > side:
                found = self._finer(lower, upper, side, 40 + 20 * len(lower))
                if found is None or len(found.left) or len(found.found_lower) > FEW:
                    return None
                lower, upper = found.found_lower, found.found_upper
            held = np.zeros(len(lower), dtype=np.bool_)
            isolate(tables, bounds, system.cyclic, lower, upper, roots, held)
            lower, upper = lower[~held], upper[~held]
            if len(lower) == 0:
                break
        else:
            return None
        count = int(roots.counts[0])
        x = roots.x[:count]
        half = roots.tight[:count] + 4e-15 * (1.0 + np.abs(x))
        low, high = x - half, x + half
        free = system.cyclic
        near = np.all(free | ((high >= system.lower) & (low <= system.upper)), axis=1)
        sure = np.all(free | ((low >= system.lower) & (high <= system.upper)), axis=1)
        isolated = np.ones(int(near.sum()), dtype=bool)
        return Separated(
            low[near], high[near], sure[near], isolated, self.processed, self.reductions
        )

    def _contracted(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Boxes of isolated solutions made smaller, all in one finer search; as they were if not.

        The region of a proof then nearly always holds the whole box.
        """
        n = len(lower)
        sigma = 0.125 * self.sigma
        if n > FEW or sigma < SMALLEST:
            return lower, upper
        found = self._search(lower, upper, sigma, 20 + 10 * n)
        if found is None or len(found.left) or len(found.found_lower) > n + n // 4:
            return lower, upper
        return found.found_lower, found.found_upper

    def _settle_cluster(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Prove and refine until nothing is left; what could not be settled, as boxes."""
        last = self.processed + MAX_PROCESSED
        given_up: list[tuple[Array, Array]] = []
        pieces, sigma = [(lower, upper)], self.sigma
        while pieces:
            sigma *= 0.25
            finer: list[tuple[Array, Array]] = []
            # The largest first: the region proven in it may hold the others.
            for low, high in sorted(pieces, key=lambda piece: -len(piece[0])):
                low, high = self._proven(low, high)
                if len(low) == 0:
                    continue
                found = None
                if not (self.task.stopped or sigma < SMALLEST or self._is_manifold(low, high)):
                    found = self._search(low, high, sigma, last - self.processed)
                if found is None or len(found.left) or len(found.found_lower) > MAX_OPEN:
                    given_up.append((low, high))
                else:
                    finer += self._pieces(found.found_lower, found.found_upper)
            pieces = finer
        if not given_up:
            return lower[:0], upper[:0]
        low, high = (np.concatenate(parts) for parts in zip(*given_up, strict=True))
        keep = ~self._held(low, high)
        low, high = low[keep], high[keep]
        if len(low) > 2 * len(lower) + 64:  # finer boxes are no gain: the ones before
            keep = _meeting(lower, upper, low, high, self.system.cyclic)
            return lower[keep], upper[keep]
        return low, high

    def _pieces(self, lower: Array, upper: Array) -> list[tuple[Array, Array]]:
        """The clusters that a cluster falls into; many boxes stay together."""
        if not 0 < len(lower) <= MAX_CONNECTED:
            return [(lower, upper)] if len(lower) else []
        labels = connect(lower, upper, self.system.cyclic)
        return [self._unwrapped(lower[m], upper[m]) for m in clusters_of(labels)]

    def _finer(self, lower: Array, upper: Array, sigma: float, limit: int) -> Outcome | None:
        """A finer search; None if the budget is used up."""
        limit = min(limit, self.budget - self.processed)
        if limit <= 0:
            return None
        search = FastSearch(self.system, sigma, self.rho)
        found = search.run(Boxes(lower, upper, np.zeros(len(lower))), limit, self.task.flag)
        self.processed += found.counters.processed
        self.reductions += found.counters.reductions
        return found

    def _search(self, lower: Array, upper: Array, sigma: float, limit: int) -> Outcome | None:
        """A finer search, its boxes contracted; None if the budget is used up."""
        found = self._finer(lower, upper, sigma, limit)
        if found is None:
            return None
        low, high = self.certifier.contracted(found.found_lower, found.found_upper, self.regions)
        return replace(found, found_lower=low, found_upper=high)

    def _proven(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Look for roots in boxes of a cluster, prove them, and return the boxes that are left."""
        for number in range(STARTS):
            keep = ~self._held(lower, upper)
            lower, upper = lower[keep], upper[keep]
            n = len(lower)
            if n == 0 or number >= n or self.task.stopped:
                break
            # Starts spread over the boxes: 1/2, 1/4, 3/4, 1/8, ... of the way through them.
            self._prove_near(lower, upper, int(_halton(number + 1) * n))
        return lower, upper

    def _prove_near(self, lower: Array, upper: Array, box: int) -> None:
        """Find a root from one box, and a region around it in which it is the only one.

        The region is a box in the directions of the Jacobian's singular vectors: around all boxes
        of the cluster, around this box, or a smaller part of the cluster.
        """
        middle = 0.5 * (lower[box] + upper[box])
        x = self.certifier.equations.newton(middle)
        if x is None:
            return
        reach = 1.5 * (upper.max(axis=0) - lower.min(axis=0)) + 1e-9
        directions = self.certifier.directions(x)
        if directions is None or not np.all(np.abs(x - middle) <= reach):
            return
        V, Y = directions
        low, high = _in_directions(x, V, lower, upper)
        mine = low[box], high[box]
        low, high = low.min(axis=0), high.max(axis=0)
        for part_low, part_high in ((low, high), mine)[: len(lower)]:
            if self._prove(x, V, Y, part_low, part_high):
                break
        else:
            for shrink in () if self._held(x[None], x[None])[0] else SHRINK:
                if self._prove(x, V, Y, shrink * low, shrink * high):
                    return
            return
        if len(lower) > FEW and (part_high - part_low).max() < FINE:
            for grow in GROW:
                if not self._prove(x, V, Y, grow * part_low, grow * part_high):
                    return

    def _prove(self, x: Array, V: Array, Y: Array, lower: Array, upper: Array) -> bool:
        """Try a region in the directions V that holds x and a box of these directions."""
        lower, upper = np.minimum(lower, 0.0), np.maximum(upper, 0.0)
        # No smaller than what the constants leave unknown of the root.
        margin = np.maximum(0.05 * (upper - lower), 1e-9)
        margin = np.maximum(margin, 2.0 * self.certifier.spread(x, Y))
        if np.any(upper - lower > WIDEST):
            return False
        return self._add(self.certifier.prove(x, V, Y, lower - margin, upper + margin))

    def _add(self, proof: Proof | None) -> bool:
        """Keep the region of a proof, and the root if it is a new one.

        Two proofs are of one root if the tight box of one lies in the region of the other. If they
        only overlap nothing is known, and the new one is not used.
        """
        if proof is None:
            return False
        cyclic = self.system.cyclic
        same: list[int] = []
        for k, known in enumerate(self.proofs):
            if known.tight.apart(proof.tight, cyclic):
                continue
            if known.tight.inside(proof.region, cyclic) or any(
                proof.tight.inside(region, cyclic) for region in self.own_regions[k]
            ):
                same.append(k)
            else:
                return False
        if same:
            k = same[0]
            if proof.tight.width < self.proofs[k].tight.width:
                self.proofs[k] = proof
            self.own_regions[k].append(proof.region)
        else:
            self.proofs.append(proof)
            self.own_regions.append([proof.region])
        self.regions.add(proof.region)
        return True

    def _held(self, lower: Array, upper: Array) -> NDArray[np.bool_]:
        """Which boxes lie in a proven region, whole turns apart; shape (N,)."""
        return self.regions.hold(lower, upper, self.system.cyclic)

    def _is_manifold(self, lower: Array, upper: Array) -> bool:
        """Whether a cluster looks like a curve or a surface: singular roots in boxes far apart."""
        n = len(lower)
        if n < MANIFOLD_BOXES:
            return False
        picks = np.linspace(0, n - 1, MANIFOLD_BOXES).astype(int)
        hits = 0
        for box in picks:
            middle, size = 0.5 * (lower[box] + upper[box]), upper[box] - lower[box]
            x = self.certifier.equations.newton(middle)
            if x is None or np.any(np.abs(x - middle) > 1.5 * size + 1e-6):
                continue
            if not self.certifier.equations.closes(self.certifier.equations(x)[0], 1e-11):
                continue
            rank = self.certifier.equations.rank(self.certifier.jacobian(x), SINGULAR)
            hits += int(rank < self.system.size)
        return 3 * hits >= 2 * len(picks)

    def _unwrapped(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Boxes of a cluster with cyclic angles on one turn, as far as that goes."""
        gap = 0.5 * (lower + upper) - 0.5 * (lower[0] + upper[0])
        turns = np.where(self.system.cyclic, np.round(gap / _TWO_PI) * _TWO_PI, 0.0)
        # A turn is not a double: boxes that are turned are padded.
        pad = np.where(turns != 0.0, 1e-15 * (1.0 + np.abs(lower) + np.abs(upper)), 0.0)
        return lower - turns - pad, upper - turns + pad

    def _may_be_in_range(self, proof: Proof) -> bool:
        s = self.system
        return bool(np.all(s.cyclic | ((proof.upper >= s.lower) & (proof.lower <= s.upper))))

    def _is_in_range(self, proof: Proof) -> bool:
        s = self.system
        return bool(np.all(s.cyclic | ((proof.lower >= s.lower) & (proof.upper <= s.upper))))

    # Curves and surfaces -----------------------------------------------------------------------

    def not_empty(self, lower: Array, upper: Array) -> NDArray[np.bool_]:
        """Which boxes are in no cluster that a finer search proves to be empty, shape (N,).

        The small clusters, and larger ones in which Newton's method finds nothing, are searched
        once, all together; those in which neither this nor Newton's method decides are searched
        again, each by itself, at smaller and smaller sides.
        """
        labels = connect(lower, upper, self.system.cyclic)
        keep = np.ones(len(lower), dtype=bool)
        suspects = [
            cluster
            for cluster in clusters_of(labels)
            if len(cluster) <= SMALL_CLUSTER
            or (
                len(cluster) <= MAX_CONNECTED and not self._has_root(lower[cluster], upper[cluster])
            )
        ]
        if not suspects:
            return keep
        boxes = np.concatenate(suspects)
        alive = self._alive(lower[boxes], upper[boxes], 0.125 * self.sigma)
        keep[boxes] = np.isin(labels[boxes], labels[boxes[alive]])
        for cluster in suspects:
            if not keep[cluster[0]] or self._has_root(lower[cluster], upper[cluster]):
                continue
            sigma = 0.125 * self.sigma
            for _ in range(EMPTY_LEVELS):
                sigma *= 0.125
                if self.task.stopped or sigma < SMALLEST:
                    break
                if not self._alive(lower[cluster], upper[cluster], sigma).any():
                    keep[cluster] = False
                    break
        return keep

    def _alive(self, lower: Array, upper: Array, sigma: float) -> NDArray[np.bool_]:
        """Which boxes a finer search does not prove to be empty, shape (N,)."""
        found = self._search(lower, upper, sigma, 40 + 40 * len(lower))
        if found is None:
            return np.ones(len(lower), dtype=bool)
        alive_lower = np.concatenate([found.found_lower, found.left.lower])
        alive_upper = np.concatenate([found.found_upper, found.left.upper])
        return _meeting(lower, upper, alive_lower, alive_upper, self.system.cyclic)

    def _has_root(self, lower: Array, upper: Array) -> bool:
        """Whether Newton's method finds a root in the ranges near some boxes of a cluster."""
        picks = np.linspace(0, len(lower) - 1, min(STARTS, len(lower))).astype(int)
        middle = 0.5 * (lower[picks] + upper[picks])
        x, came = self.certifier.equations.newton_all(middle)
        near = np.abs(x - middle) <= 0.75 * (upper - lower)[picks] + 1e-6
        s = self.system
        near &= s.cyclic | ((x >= s.lower - 1e-9) & (x <= s.upper + 1e-9))
        return bool((came & near.all(axis=1)).any())


def _meeting(
    lower: Array,
    upper: Array,
    other_lower: Array,
    other_upper: Array,
    cyclic: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Which of the first boxes meet one of the others, whole turns of angles apart; shape (N,)."""
    meets = np.zeros(len(lower), dtype=bool)
    middle, size = 0.5 * (lower + upper), upper - lower
    for low, high in zip(other_lower, other_upper, strict=True):
        gap = 0.5 * (low + high) - middle
        turns = np.where(cyclic, np.round(gap / _TWO_PI) * _TWO_PI, 0.0)
        pad = 1e-14 * (1.0 + np.abs(middle) + np.abs(low) + np.abs(high))
        meets |= (np.abs(gap - turns) <= 0.5 * (size + (high - low)) + pad).all(axis=1)
    return meets


def _in_directions(x: Array, V: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Boxes, shape (N, V), as boxes of s around them, with their points at x + V s."""
    middle, half = (0.5 * (lower + upper) - x) @ V, 0.5 * (upper - lower) @ np.abs(V)
    return middle - half, middle + half


def _halton(k: int) -> float:
    """The van der Corput sequence to base 2: 1/2, 1/4, 3/4, 1/8, ..."""
    value, step = 0.0, 0.5
    while k:
        value += step * (k & 1)
        k >>= 1
        step *= 0.5
    return value
