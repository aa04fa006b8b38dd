"""Planar mechanisms in absolute link angles.

If all rotations of a loop are about parallel axes and all its travels are perpendicular to them,
the product turns by the sum of the angles so far: its translation is a sum of vectors, each turned
by the absolute angle of its link. These angles, one for each moving link, and the travels, are the
unknowns here; the angles of the joints are differences of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from kin_solvers.driver import Kernel, Tuning
from kin_solvers.hulls import make_arcs
from kin_solvers.planar_kernels import TERM, PlanarTables, search
from kin_solvers.system import UNIT_ROUNDOFF, System
from kin_solvers.turns import turned

__all__ = ["PlanarSystem", "parallel_axis", "plane_of"]

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]

_TWO_PI = 2.0 * math.pi
#: Largest tilt of an axis that still counts as parallel, besides what is unknown of it; the rows
#: are widened for it.
MAX_TILT = 1e-14
_PAD = 4e-15


@dataclass(frozen=True)
class ParallelLoop:
    """A loop all of whose rotations are about parallel axes.

    Attributes:
        axis: Their direction in the frame in which the loop begins, shape (3,).
        planar: Whether all travels and the sum of all offsets are perpendicular to it.
        signs: Sense of each motion about (rotation) the axis, shape (n,); 0 for travels.
        frames: Orientation at each motion with all angles zero, shape (n + 1, 3, 3).
        tilt: Bound on the error of an orientation that is taken as one of these, turned about the
            axis (Frobenius norm).
    """

    axis: Array
    planar: bool
    signs: IntArray
    frames: Array
    tilt: float


def parallel_axis(system: System, loop: int) -> ParallelLoop | None:
    """The common direction of all rotations of a loop; None if there is none."""
    first, last = int(system.offsets[loop]), int(system.offsets[loop + 1])
    R = np.eye(3)
    unknown, gap = (float(x) for x in system.unknown[loop])
    most = MAX_TILT + unknown
    axis: Array | None = None
    frames, signs = [], []
    for f in range(first, last):
        frames.append(R)
        moving = bool(system.translation[system.factor_variable[f]])
        z = R[:, 2]
        if moving:
            signs.append(0)
        else:
            if axis is None:
                axis = z.copy()
            sign = 1 if z @ axis > 0.0 else -1
            if np.abs(z - sign * axis).max() > most:
                return None
            signs.append(sign)
        R = R @ system.C[f, :12].reshape(3, 4)[:, :3]
    frames.append(R)
    if axis is None:
        return None
    if not system.point[loop] and np.abs(R @ axis - axis).max() > 4.0 * most:
        return None
    planar = True
    height = 0.0
    for f in range(first, last):
        C = system.C[f, :12].reshape(3, 4)
        height += float(axis @ (frames[f - first] @ C[:, 3]))
        if system.translation[system.factor_variable[f]]:
            planar &= abs(float(axis @ frames[f - first][:, 2])) <= most
    if system.point[loop]:
        height -= float(axis @ system.C_first[loop, [3, 7, 11]])
    planar &= abs(height) <= most * (1.0 + float(system.reach[loop])) + gap
    # docs/cuik.md: each axis adds its tilt, each constant its radius and the rounding of a product.
    tilt = (last - first) * (10.0 * most + 32.0 * UNIT_ROUNDOFF) + unknown
    return ParallelLoop(axis, planar, np.array(signs), np.array(frames), tilt)


@dataclass(frozen=True)
class PlanarSystem:
    """A planar mechanism as sums of turned vectors.

    Attributes:
        system: The mechanism in normal form.
        turns: Integer matrix W: absolute angles = W (joint variables), shape (A, V).
        back: Integer matrix and
        back_shift: numbers that give the joint variables from the unknowns, shapes (V, U) and (V,);
        known: which of them, shape (V,). The others stay in their range.
        back_slack: Bound on the error of these numbers, shape (V,) [rad].
        lower: Lower ends of the unknowns (absolute angles, then travels), shape (U,).
        upper: Upper ends, shape (U,).
        tables: What the kernel takes.
    """

    tuning: ClassVar[Tuning] = Tuning(raw_above=0.5, sums_below=1.6, regularisation=0.05)
    #: Largest box from which the other variables are looked for.
    coarsest: ClassVar[float] = math.inf
    #: The unknowns are sums of variables.
    selects: ClassVar[bool] = False

    system: System
    turns: IntArray
    back: IntArray
    back_shift: Array
    known: NDArray[np.bool_]
    back_slack: Array
    lower: Array
    upper: Array
    tables: PlanarTables

    @property
    def kernel(self) -> Kernel[PlanarTables]:
        """The compiled search."""
        return search

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return len(self.lower)

    @classmethod
    def of(cls, system: System) -> PlanarSystem | None:
        """The planar form; None if the mechanism is not planar."""
        loops = []
        for l in range(len(system.point)):
            loop = parallel_axis(system, l)
            if loop is None or not loop.planar:
                return None
            loops.append(loop)
        return _build(system, loops)

    def to_joints(self, lower: Array, upper: Array) -> tuple[Array, Array, IntArray]:
        """Boxes of joint variables that hold all that boxes of unknowns hold.

        Args:
            lower: Lower ends of the unknowns, shape (N, U).
            upper: Upper ends.

        Returns:
            Lower and upper ends, shape (M, V), and the box that each comes from, shape (M,).
        """
        s = self.system
        B = self.back.astype(np.float64)
        middle = 0.5 * (lower + upper) @ B.T + self.back_shift
        half = 0.5 * (upper - lower) @ np.abs(B).T
        largest = np.maximum(np.abs(lower), np.abs(upper))
        half += _PAD * (4.0 + np.abs(self.back_shift) + largest @ np.abs(B).T) + self.back_slack
        a = np.where(self.known, middle - half, s.lower)
        b = np.where(self.known, middle + half, s.upper)
        parts = [(i, *box) for i in range(len(lower)) for box in turned(a[i], b[i], s)]
        return (
            np.array([low for _, low, _ in parts]).reshape(-1, s.size),
            np.array([high for _, _, high in parts]).reshape(-1, s.size),
            np.array([i for i, _, _ in parts], dtype=np.int64),
        )

    def from_joints(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Boxes of unknowns that hold all that boxes of joint variables hold; shapes (N, V)."""
        W = self.turns.astype(np.float64)
        middle = 0.5 * (lower + upper) @ W.T
        half = 0.5 * (upper - lower) @ np.abs(W).T
        half += _PAD * (4.0 + np.maximum(np.abs(lower), np.abs(upper)) @ np.abs(W).T)
        moving = self.system.translation
        low = np.concatenate([middle - half, lower[:, moving]], axis=1)
        high = np.concatenate([middle + half, upper[:, moving]], axis=1)
        cyclic = self.tables.arcs["cyclic"]
        wide = cyclic & (high - low >= _TWO_PI)
        low, high = np.where(wide, self.lower, low), np.where(wide, self.upper, high)
        inside = np.where(cyclic, low, np.maximum(low, self.lower))
        return inside, np.where(cyclic, high, np.minimum(high, self.upper))


def _build(system: System, loops: list[ParallelLoop]) -> PlanarSystem | None:
    """Collect terms, eliminate the sums of angles of closed loops, choose the unknowns."""
    V = system.size
    raw: list[tuple[int, IntArray, Array, int]] = []  # loop, turns, vector, travel
    relations: list[tuple[IntArray, float, float]] = []  # turns, number, bound on its error
    constants = np.zeros((len(loops), 2))
    for l, loop in enumerate(loops):
        first = int(system.offsets[l])
        plane = plane_of(loop.axis)
        turns = np.zeros(V, dtype=np.int64)
        for t in range(len(loop.signs)):
            k = int(system.factor_variable[first + t])
            R = loop.frames[t]
            if system.translation[k]:
                raw.append((l, turns.copy(), plane @ R[:, 2], k))
            else:
                turns[k] += loop.signs[t]
            vector = plane @ (R @ system.C[first + t, [3, 7, 11]])
            raw.append((l, turns.copy(), vector, -1))
        if system.point[l]:
            constants[l] -= plane @ system.C_first[l, [3, 7, 11]]
        else:
            end = plane @ loop.frames[-1] @ plane.T
            slack = 2.0 * loop.tilt + 16.0 * UNIT_ROUNDOFF
            relations.append((turns.copy(), -math.atan2(end[1, 0], end[0, 0]), slack))
    pivots = _eliminate(relations)
    if pivots is None:
        return None
    # Every joint angle as integer combination of the free ones, plus a number.
    express = np.eye(V, dtype=np.int64)
    plus, plus_slack = np.zeros(V), np.zeros(V)
    for k, row, number, slack in pivots:
        express[k], plus[k], plus_slack[k] = row, number, slack
    turned_slack = np.zeros(len(loops))
    angles: list[IntArray] = []
    terms: dict[tuple[int, int], Array] = {}
    moving = np.flatnonzero(system.translation)
    for l, turns, vector, travel in raw:
        w = turns @ express
        beta = float(turns @ plus)
        turned_slack[l] = max(turned_slack[l], float(np.abs(turns) @ plus_slack))
        sign = 1.0
        nonzero = np.flatnonzero(w)
        index = -1
        c = np.array(
            [
                math.cos(beta) * vector[0] - math.sin(beta) * vector[1],
                math.sin(beta) * vector[0] + math.cos(beta) * vector[1],
            ]
        )
        if len(nonzero):
            if w[nonzero[0]] < 0:
                w, sign = -w, -1.0
            index = next((i for i, known in enumerate(angles) if np.array_equal(known, w)), -1)
            if index < 0:
                angles.append(w)
                index = len(angles) - 1
        elif travel < 0:
            constants[l] += c
            continue
        matrix = terms.setdefault((index, travel), np.zeros((2 * len(loops), 2)))
        matrix[2 * l] += (c[0], -sign * c[1]) if index >= 0 else (c[0], 0.0)
        matrix[2 * l + 1] += (c[1], sign * c[0]) if index >= 0 else (c[1], 0.0)
    terms = {
        key: np.where(np.abs(m) < 1e-15, 0.0, m)
        for key, m in terms.items()
        if np.abs(m).max() > 1e-15
    }
    used = sorted({key[0] for key in terms if key[0] >= 0})
    if not used:
        return None
    W = np.array([angles[i] for i in used], dtype=np.int64)
    if np.linalg.matrix_rank(W.astype(np.float64)) < len(used):
        return None
    renumber = {old: new for new, old in enumerate(used)}
    column = {int(k): len(used) + i for i, k in enumerate(moving)}
    keys = list(terms)
    angle = np.array([renumber.get(key[0], -1) for key in keys], dtype=np.int64)
    travel_of = np.array([column.get(key[1], -1) for key in keys], dtype=np.int64)
    M = np.array([terms[key] for key in keys])
    back, back_shift, known = _invert(system, W, express, plus, column, len(used) + len(moving))
    lower, upper, cyclic = _ranges(system, W, moving)
    delta = np.empty((len(loops), 2))
    for l, loop in enumerate(loops):
        reach, n = float(system.reach[l]), len(loop.signs)
        # docs/cuik.md: what orientations, angles and translations are off by, then rounding.
        delta[l] = reach * (loop.tilt + turned_slack[l]) + float(system.unknown[l, 1])
        delta[l] += UNIT_ROUNDOFF * (1.0 + reach) * (128.0 * (n + 1))
        delta[l] += UNIT_ROUNDOFF * reach * 3.0 * (4 * len(loops) + len(keys) + 32)
    largest = float(system.reach.max())
    translation = np.zeros(len(lower), dtype=bool)
    translation[len(used) :] = True
    records = np.zeros(len(keys), dtype=TERM)
    records["angle"], records["travel"] = angle, travel_of
    tables = PlanarTables(
        arcs=make_arcs(translation, cyclic),
        terms=records,
        M=M,
        constant=constants.reshape(-1).copy(),
        delta=delta.reshape(-1).copy(),
        reach=largest,
    )
    return PlanarSystem(system, W, back, back_shift, known, plus_slack, lower, upper, tables)


def plane_of(axis: Array) -> Array:
    """Two directions that span the plane with this normal, right-handed, shape (2, 3)."""
    k = int(np.argmin(np.abs(axis)))
    x = np.cross(np.eye(3)[k], axis)
    x /= np.linalg.norm(x)
    return np.array([x, np.cross(axis, x)])


def _eliminate(
    relations: list[tuple[IntArray, float, float]],
) -> list[tuple[int, IntArray, float, float]] | None:
    """Solve integer relations for one variable each: q[k] = row . q + number, up to whole turns.

    Each number comes with a bound on its error.
    """
    solved: list[tuple[int, IntArray, float, float]] = []
    for row, number, error in relations:
        w, value, slack = row.copy(), number, error
        for k, other, plus, more in solved:
            factor = w[k]
            w[k] = 0
            w = w + factor * other
            value -= factor * plus
            slack += abs(factor) * (more + _PAD * (1.0 + abs(plus)))
        ones = np.flatnonzero(np.abs(w) == 1)
        if not w.any():
            continue
        if not len(ones):
            return None
        k = int(ones[-1])
        sign = int(w[k])
        rest = -sign * w
        rest[k] = 0
        value *= sign
        updated = []
        for j, other, plus, more in solved:
            factor = other[k]
            changed = other.copy()
            changed[k] = 0
            wider = more + abs(factor) * (slack + _PAD * (1.0 + abs(value)))
            updated.append((j, changed + factor * rest, plus + factor * value, wider))
        solved = [*updated, (k, rest, value, slack)]
    return solved


def _invert(
    system: System, W: IntArray, express: IntArray, plus: Array, column: dict[int, int], size: int
) -> tuple[IntArray, Array, NDArray[np.bool_]]:
    """Joint variables from the unknowns, where an integer combination gives them."""
    V = system.size
    back = np.zeros((V, size), dtype=np.int64)
    known = np.zeros(V, dtype=bool)
    inverse = np.linalg.pinv(W.astype(np.float64))
    for k in range(V):
        if system.translation[k]:
            back[k, column[k]] = 1
            known[k] = True
            continue
        row = np.rint(express[k] @ inverse).astype(np.int64)
        if np.array_equal(row @ W, express[k]):
            back[k, : len(W)] = row
            known[k] = True
    return back, plus.copy(), known


def _ranges(
    system: System, W: IntArray, moving: IntArray
) -> tuple[Array, Array, NDArray[np.bool_]]:
    lower, upper, cyclic = [], [], []
    for w in W:
        used = np.flatnonzero(w)
        low = sum(min(w[k] * system.lower[k], w[k] * system.upper[k]) for k in used)
        high = sum(max(w[k] * system.lower[k], w[k] * system.upper[k]) for k in used)
        round_trip = bool(system.cyclic[used].any()) or high - low >= _TWO_PI - 1e-9
        most = np.maximum(np.abs(system.lower), np.abs(system.upper))
        pad = _PAD * (1.0 + float(np.abs(w) @ most))
        lower.append(-math.pi if round_trip else low - pad)
        upper.append(math.pi if round_trip else high + pad)
        cyclic.append(round_trip)
    return (
        np.array([*lower, *system.lower[moving]]),
        np.array([*upper, *system.upper[moving]]),
        np.array([*cyclic, *([False] * len(moving))], dtype=bool),
    )
