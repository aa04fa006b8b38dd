"""The loops of a mechanism in normal form, as arrays for the kernels.

Every motion becomes one about or along the local z axis:

    Z(q_1) C_1 Z(q_2) C_2 ... Z(q_n) C_n = I                                   (pose closure)
    translation of C_0 Z(q_1) C_1 ... Z(q_n) C_n = 0                           (point closure)

A change of axis is a conjugation by a permutation matrix, a negative sign one by diag(1, -1, -1):
both are exact in floating point. The constants between two motions are multiplied together, with a
bound on what that leaves unknown (``folding``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kin_core.rotations import inverse_transform
from kin_solvers.fast_kernels import LOOP, LoopTables
from kin_solvers.folding import UNIT_ROUNDOFF, Folded, fold
from kin_solvers.hulls import make_arcs
from kin_solvers.mechanism import Constant, Loop, Mechanism, Motion
from kin_solvers.products import FACTOR, HALF, make_joints

__all__ = ["UNIT_ROUNDOFF", "System", "around_target", "row_bounds"]

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Constant of the rounding bound; docs/cuik.md derives it.
BOUND_CONSTANT = 64.0
#: Largest norm of a vertex of an arc's hull: a corner of the square around the circle.
WIDE_NORM = math.sqrt(2.0)
#: The same for arcs of a half-width under ``NARROW``: the point where the tangents meet.
NARROW_NORM = 1.3
#: Lengths are scaled so that what is unknown of them is at most this part of a unit: where all
#: lengths cancel, what is left of them must not be scaled up to look like a mechanism.
MOST_UNKNOWN = 2.0**-20
#: Padding of a travel's hull (``hulls.PAD``), generously.
_TRAVEL_PAD = 2e-14


def row_bounds(
    steps: int, reach: float, rotation: float, translation: float, growth: float
) -> Array:
    """Bound on the error of each of the 16 rows of F = A - B at any vertex; docs/cuik.md.

    Args:
        steps: Number N of steps of computation that errors add up over.
        reach: Sum T of all link lengths and of the largest travels of the loop.
        rotation: Sum alpha of the radii of the rotations of its constants.
        translation: Sum beta of the radii of their translations.
        growth: Largest norm of a hull vertex to the power of the number of motions of a side.

    Returns:
        Bounds for the rows of R, t, 2 t'R and |t|^2, in the order of ``_conformal``, shape (16,).
    """
    rounding = BOUND_CONSTANT * UNIT_ROUNDOFF * steps
    T, alpha, beta = reach, rotation, translation
    result = np.full(16, rounding + alpha)
    result[3:12:4] = rounding * T + 2.0 * alpha * T + beta
    result[12:15] = rounding * T + 4.0 * alpha * T + 2.0 * beta
    result[15] = rounding * T * T + 8.0 * alpha * T * T + 6.0 * beta * (T + beta)
    return result * growth * (1.0 + 1e-6) + 1e-250


@dataclass(frozen=True)
class System:
    """A mechanism as arrays.

    Attributes:
        length: Factor by which the lengths of the mechanism were multiplied: a power of two, so
            that nothing is rounded, which brings the largest reach to [2, 4), if the lengths are
            known well enough.
        translation: Whether each variable is a translation, shape (V,).
        cyclic: Whether each variable is an angle on the full circle, shape (V,).
        lower: Lower ends of the search box, shape (V,) [rad, m].
        upper: Upper ends, shape (V,).
        offsets: First factor of each loop, shape (L + 1,).
        factor_variable: Variable of each factor, shape (F,).
        C: Constant after each factor, shape (F, 16).
        C_inverse: Its inverse, shape (F, 16).
        C_first: Inverse of the leading constant of each loop, shape (L, 16).
        point: Whether each loop closes by a point only, shape (L,).
        reach: Largest reach of each loop: lengths and travels, shape (L,) [m].
        C_radius: Radius of the rotation (Frobenius norm) and of the translation of each constant,
            shape (F, 2): every constant that the mechanism stands for lies so near to ``C``.
        first_radius: The same for ``C_first``, shape (L, 2).
        unknown: Sums of these radii (of ``C`` and ``C_inverse``, the larger) over each loop,
            shape (L, 2).
        delta_wide: Bound on the error of each row of each loop for wide arcs, shape (L, 16).
        delta_full: The same for products of whole loops at corners of the square, shape (L, 16).
        delta_narrow: The same for arcs of half-width under ``NARROW``, shape (L, 16).
        made: What has been made of it.
    """

    length: float
    translation: NDArray[np.bool_]
    cyclic: NDArray[np.bool_]
    lower: Array
    upper: Array
    offsets: IntArray
    factor_variable: IntArray
    C: Array
    C_inverse: Array
    C_first: Array
    point: NDArray[np.bool_]
    reach: Array
    C_radius: Array
    first_radius: Array
    unknown: Array
    delta_wide: Array
    delta_narrow: Array
    delta_full: Array
    made: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def size(self) -> int:
        """Number of variables."""
        return len(self.lower)

    @property
    def unit(self) -> Array:
        """Factor from the mechanism's units to the system's for each variable, shape (V,)."""
        return np.where(self.translation, self.length, 1.0)

    @property
    def spherical(self) -> NDArray[np.bool_]:
        """Whether each loop has no length but what its constants leave unknown, shape (L,)."""
        return np.asarray(self.reach <= 1e-12 + 4.0 * self.unknown[:, 1])

    @cached_property
    def tables(self) -> LoopTables:
        """What the kernels of the fast method take."""
        arcs = make_arcs(self.translation, self.cyclic)
        arcs["shared"] = 0
        loops = np.zeros(len(self.point), dtype=LOOP)
        halves = np.zeros((len(loops), 2), dtype=HALF)
        lengths = np.diff(self.offsets)
        loops["first"], loops["length"] = self.offsets[:-1], lengths
        loops["point"], loops["C_first"] = self.point, self.C_first
        loops["delta"] = np.stack([self.delta_narrow, self.delta_wide], axis=1)
        halves["length"] = np.stack([lengths // 2, lengths - lengths // 2], axis=1)
        halves["first"] = np.stack([self.offsets[:-1], self.offsets[:-1] + lengths // 2], axis=1)
        width = 4 ** max(1, int(halves["length"].max()))
        halves["start"] = np.arange(2 * len(loops)).reshape(-1, 2) * width
        factors = np.zeros(len(self.factor_variable), dtype=FACTOR)
        factors["variable"] = self.factor_variable
        factors["C"], factors["C_inverse"] = self.C, self.C_inverse
        for a, b in pairwise(self.offsets):
            arcs["shared"][np.unique(self.factor_variable[a:b])] += 1
        return LoopTables(
            arcs=arcs,
            loops=loops,
            factors=factors,
            joints=make_joints(self.factor_variable),
            halves=halves,
            reach=float(self.reach.max()),
            width=width,
        )

    @classmethod
    def of(cls, mechanism: Mechanism) -> System:
        """Bring a mechanism to normal form.

        An arm at another target differs in its last constant: the rest is kept from before.
        """
        known: System | None = mechanism.made.get("system")
        if known is None:
            kept: _Arm | None = mechanism.prepared.get("arm")
            known = (kept and kept.at(mechanism)) or cls._of(mechanism)
            mechanism.made["system"] = known
        return known

    @classmethod
    def _of(cls, mechanism: Mechanism) -> System:
        variables = mechanism.variables
        lower = np.array([-math.pi if v.cyclic else v.lower for v in variables])
        upper = np.array([math.pi if v.cyclic else v.upper for v in variables])
        offsets, owners = [0], []
        constants: list[Folded] = []
        firsts: list[Folded] = []
        for loop in mechanism.loops:
            gaps, variables_of = _gaps(loop)
            folded = fold(gaps)
            firsts.append(folded[0])
            owners += variables_of
            constants += folded[1:]
            offsets.append(len(owners))
        moving = np.array([v.kind == "translation" for v in variables])
        travel = np.where(moving, np.maximum(np.abs(lower), np.abs(upper)), 0.0)
        reach, unknown = np.empty(len(firsts)), np.empty((len(firsts), 2))
        for l, (a, b) in enumerate(pairwise(offsets)):
            parts = [firsts[l], *constants[a:b]]
            reach[l] = sum(c.length for c in parts) + travel[owners[a:b]].sum()
            unknown[l, 0] = sum(c.rotation for c in parts)
            unknown[l, 1] = sum(max(c.translation, c.inverse_translation) for c in parts)
        length = _scale(reach, unknown)
        lower[moving] *= length
        upper[moving] *= length
        # Travels are padded before their hulls are taken.
        reach = reach * length * (1.0 + 1e-9) + _TRAVEL_PAD * moving.sum()
        unknown[:, 1] *= length
        deltas = [
            _deltas(int(n), len(firsts), float(reach[l]), unknown[l])
            for l, n in enumerate(np.diff(offsets))
        ]
        system = cls(
            length=length,
            translation=moving,
            cyclic=np.array([v.cyclic for v in variables]),
            lower=lower,
            upper=upper,
            offsets=np.array(offsets, dtype=np.int64),
            factor_variable=np.array(owners, dtype=np.int64),
            C=_conformal([c.matrix for c in constants], [c.inverse for c in constants], length),
            C_inverse=_conformal(
                [c.inverse for c in constants], [c.matrix for c in constants], length
            ),
            C_first=_conformal([c.inverse for c in firsts], [c.matrix for c in firsts], length),
            point=np.array([loop.closure == "point" for loop in mechanism.loops]),
            reach=reach,
            C_radius=np.array([(c.rotation, c.translation * length) for c in constants]),
            first_radius=np.array([(c.rotation, c.inverse_translation * length) for c in firsts]),
            unknown=unknown,
            **{name: np.array([d[name] for d in deltas]) for name in deltas[0]},
        )
        if mechanism.target is not None and len(firsts) == 1 and not system.point[0]:
            kept = _Arm(system, [*firsts, *constants], float(travel[owners].sum()))
            mechanism.prepared["arm"] = kept
        return system


@dataclass(frozen=True)
class _Arm:
    """What an arm keeps from one target to the next.

    Attributes:
        system: The arm at some target.
        constants: The constants that its system was made of; only the last depends on the target.
        travel: Sum of its largest travels [m].
    """

    system: System
    constants: list[Folded]
    travel: float

    def at(self, mechanism: Mechanism) -> System | None:
        """The system at the target of a mechanism; None if its lengths are to be scaled anew."""
        last = fold(_gaps(mechanism.loops[0])[0][-1:])[0]
        parts, old = [*self.constants[:-1], last], self.system
        reach = np.array([sum(c.length for c in parts) + self.travel])
        unknown = np.empty((1, 2))
        unknown[0, 0] = sum(c.rotation for c in parts)
        unknown[0, 1] = sum(max(c.translation, c.inverse_translation) for c in parts)
        length = _scale(reach, unknown)
        if length != old.length:
            return None
        reach = reach * length * (1.0 + 1e-9) + _TRAVEL_PAD * old.translation.sum()
        unknown[:, 1] *= length
        C, C_inverse, C_radius = old.C.copy(), old.C_inverse.copy(), old.C_radius.copy()
        C[-1:] = _conformal([last.matrix], [last.inverse], length)
        C_inverse[-1:] = _conformal([last.inverse], [last.matrix], length)
        C_radius[-1] = last.rotation, last.translation * length
        deltas = _deltas(len(C), 1, float(reach[0]), unknown[0])
        system = replace(
            old, C=C, C_inverse=C_inverse, C_radius=C_radius, reach=reach, unknown=unknown,
            **{name: delta[None] for name, delta in deltas.items()},
        )  # fmt: skip
        loops, factors = old.tables.loops.copy(), old.tables.factors.copy()
        loops["delta"] = np.stack([system.delta_narrow, system.delta_wide], axis=1)
        factors["C"], factors["C_inverse"] = C, C_inverse
        tables = old.tables._replace(loops=loops, factors=factors, reach=float(reach[0]))
        system.__dict__["tables"] = tables  # as the property would make them
        return system


def _deltas(motions: int, loops: int, reach: float, unknown: Array) -> dict[str, Any]:
    """Bounds on the error of the rows of a loop, by their names in ``System``, shape (16,) each."""
    half, some = math.ceil(motions / 2), (reach, float(unknown[0]), float(unknown[1]))
    return {
        "delta_wide": row_bounds(motions + loops + 3, *some, WIDE_NORM**half),
        "delta_narrow": row_bounds(motions + loops + 3, *some, NARROW_NORM**half),
        "delta_full": row_bounds(2 * motions + loops + 3, *some, WIDE_NORM**motions),
    }


def _scale(reach: Array, unknown: Array) -> float:
    """The power of two that lengths are multiplied by."""
    largest = max(float(reach.max()), float(unknown[:, 1].max()) / MOST_UNKNOWN)
    return float(2.0 ** (1 - math.floor(math.log2(largest)))) if largest > 1e-100 else 1.0


def _conformal(matrices: list[Array], inverses: list[Array], length: float) -> Array:
    """Transforms as conformal rows (R t | 2 t'R | |t|^2), shape (N, 16), lengths scaled.

    2 t'R is -2 times the translation of the inverse, which is known without further rounding.
    """
    T, inverse = np.array(matrices), np.array(inverses)
    t = T[:, :3, 3] * length
    result = np.empty((len(T), 16))
    result[:, :12] = T[:, :3, :].reshape(-1, 12)
    result[:, 3:12:4] = t
    result[:, 12:15] = -2.0 * length * inverse[:, :3, 3]
    result[:, 15] = np.einsum("ni,ni->n", t, t)
    return result


_FLIP = np.diag([1.0, -1.0, -1.0, 1.0])


@cache
def _to_z(axis: int, sign: int) -> tuple[Array, Array]:
    """Permutation K with Rot(axis, sign q) = K Rot(z, q) K^-1, and its inverse; exact."""
    K = np.eye(4)
    if axis < 2:  # cyclic permutation that takes z to the axis
        K[:3, :3] = np.roll(np.eye(3), axis + 1, axis=0)
    if sign < 0:  # Z(-q) = F Z(q) F for rotations and for translations along z
        K = K @ _FLIP
    return K, inverse_transform(K)


def around_target(arm: Mechanism) -> tuple[Folded, Folded]:
    """The constants of an arm's loop before and behind the inverse of its target."""
    loop = arm.loops[0]
    last = _gaps(loop)[0][-1]
    # Behind it: the constants before the first motion, and the change of its axis.
    cut = len(last) - 2 - next(k for k, f in enumerate(loop.factors) if isinstance(f, Motion))
    before, after = fold([last[:cut], last[cut + 1 :]])
    return before, after


def _gaps(loop: Loop) -> tuple[list[list[tuple[Array, bool]]], list[int]]:
    """The constants before, between and after the motions of a loop, and their variables.

    Each constant comes with whether it is exact.
    """
    gaps: list[list[tuple[Array, bool]]] = [[]]
    owners: list[int] = []
    for factor in loop.factors:
        if isinstance(factor, Constant):
            gaps[-1].append((factor.matrix, False))
            continue
        K, back = _to_z(factor.axis, factor.sign)
        gaps[-1].append((K, True))
        gaps.append([(back, True)])
        owners.append(factor.variable)
    if loop.closure == "pose":  # cyclic: the leading constant joins the last one
        gaps[-1] += gaps[0]
        gaps[0] = []
    return gaps, owners
