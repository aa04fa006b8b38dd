"""The loops of a mechanism in normal form, as arrays for the kernels.

Every motion becomes one about or along the local z axis:

    Z(q_1) C_1 Z(q_2) C_2 ... Z(q_n) C_n = I                                   (pose closure)
    translation of C_0 Z(q_1) C_1 ... Z(q_n) C_n = 0                           (point closure)

A change of axis is a conjugation by a permutation matrix, a negative sign one by diag(1, -1, -1):
both are exact in floating point. The constants between two motions are multiplied together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kin_common.rotations import inverse_transform
from kin_solvers.mechanism import Constant, Loop, Mechanism

__all__ = ["UNIT_ROUNDOFF", "System", "inflation"]

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]

UNIT_ROUNDOFF = 2.0**-53
#: Constant of the rounding bound; docs/cuik.md derives it.
BOUND_CONSTANT = 40.0
#: Largest norm of a vertex of an arc's hull: a corner of the square around the circle.
WIDE_NORM = math.sqrt(2.0)


def inflation(factors: int, reach: float, norm: float) -> float:
    """Bound on the rounding error of one entry of F = A - B at any vertex.

    Args:
        factors: Number n of motions of the loop.
        reach: Sum of all its link lengths and of the largest travel of its translations [m].
        norm: Largest norm of a hull vertex (``WIDE_NORM`` for wide arcs).

    Returns:
        40 u (n + 2) norm^ceil(n/2) (1 + reach)^2, with u the unit roundoff.
    """
    half = math.ceil(factors / 2)
    return BOUND_CONSTANT * UNIT_ROUNDOFF * (factors + 2) * norm**half * (1.0 + reach) ** 2


@dataclass(frozen=True)
class System:
    """A mechanism as arrays.

    Attributes:
        length: Factor by which the lengths of the mechanism were multiplied: a power of two, so
            that nothing is rounded, which brings the largest reach to [2, 4).
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
        reach: Reach of each loop, shape (L,) [m].
        delta_wide: Rounding bound of each loop for wide arcs, shape (L,).
        delta_full: The same for products of whole loops at corners of the square, shape (L,).
        delta_narrow: The same for arcs of half-width under ``NARROW``, shape (L,).
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
    delta_wide: Array
    delta_narrow: Array
    delta_full: Array

    @property
    def size(self) -> int:
        """Number of variables."""
        return len(self.lower)

    @property
    def unit(self) -> Array:
        """Factor from the mechanism's units to the system's for each variable, shape (V,)."""
        return np.where(self.translation, self.length, 1.0)

    @property
    def tables(self) -> tuple[NDArray[Any], ...]:
        """The arrays in the order in which the fast kernels take them."""
        shared = np.zeros(self.size, dtype=np.int64)
        for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            shared[np.unique(self.factor_variable[a:b])] += 1
        return (
            self.translation,
            self.cyclic,
            self.offsets,
            self.factor_variable,
            self.C,
            self.C_inverse,
            self.C_first,
            self.point,
            self.reach,
            self.delta_wide,
            self.delta_narrow,
            shared,
        )

    @classmethod
    def of(cls, mechanism: Mechanism) -> System:
        """Bring a mechanism to normal form."""
        variables = mechanism.variables
        lower = np.array([-math.pi if v.cyclic else v.lower for v in variables])
        upper = np.array([math.pi if v.cyclic else v.upper for v in variables])
        offsets, owners, constants, firsts = [0], [], [], []
        for loop in mechanism.loops:
            first, motions = _normal_form(loop, mechanism)
            firsts.append(first)
            for variable, constant in motions:
                owners.append(variable)
                constants.append(constant)
            offsets.append(len(owners))
        C = np.array(constants)
        point = np.array([loop.closure == "point" for loop in mechanism.loops])
        reach = np.array(
            [
                _reach(C[a:b], firsts[k], owners[a:b], mechanism)
                for k, (a, b) in enumerate(pairwise(offsets))
            ]
        )
        largest = float(reach.max())
        length = 2.0 ** (1 - math.floor(math.log2(largest))) if largest > 1e-12 else 1.0
        C[:, :3, 3] *= length
        first_constants = np.array(firsts)
        first_constants[:, :3, 3] *= length
        reach *= length
        moving = np.array([v.kind == "translation" for v in variables])
        lower[moving] *= length
        upper[moving] *= length
        counts = np.diff(offsets)
        return cls(
            length=length,
            translation=np.array([v.kind == "translation" for v in variables]),
            cyclic=np.array([v.cyclic for v in variables]),
            lower=lower,
            upper=upper,
            offsets=np.array(offsets, dtype=np.int64),
            factor_variable=np.array(owners, dtype=np.int64),
            C=conformal(C),
            C_inverse=conformal(np.array([inverse_transform(c) for c in C])),
            C_first=conformal(np.array([inverse_transform(c) for c in first_constants])),
            point=point,
            reach=reach,
            delta_wide=np.array(
                [inflation(int(n), r, WIDE_NORM) for n, r in zip(counts, reach, strict=True)]
            ),
            delta_full=np.array(
                [inflation(2 * int(n), r, WIDE_NORM) for n, r in zip(counts, reach, strict=True)]
            ),
            delta_narrow=np.array(
                [inflation(int(n), r, 1.3) for n, r in zip(counts, reach, strict=True)]
            ),
        )


def conformal(T: Array) -> Array:
    """Rigid transforms, shape (N, 4, 4), as conformal rows (R t | 2 t'R | |t|^2), shape (N, 16)."""
    R, t = T[:, :3, :3], T[:, :3, 3]
    result = np.empty((len(T), 16))
    result[:, :12] = T[:, :3, :].reshape(-1, 12)
    result[:, 12:15] = 2.0 * np.einsum("ni,nij->nj", t, R)
    result[:, 15] = np.einsum("ni,ni->n", t, t)
    return result


_FLIP = np.diag([1.0, -1.0, -1.0, 1.0])


def _to_z(axis: int) -> Array:
    """Permutation K with Rot(axis, q) = K Rot(z, q) K^-1; exact."""
    K = np.eye(4)
    if axis < 2:  # cyclic permutation that takes z to the axis
        K[:3, :3] = np.roll(np.eye(3), axis + 1, axis=0)
    return K


def _normal_form(loop: Loop, mechanism: Mechanism) -> tuple[Array, list[tuple[int, Array]]]:
    """Leading constant, and (variable, following constant) of each motion."""
    pending = np.eye(4)
    first = np.eye(4)
    result: list[tuple[int, Array]] = []
    for factor in loop.factors:
        if isinstance(factor, Constant):
            pending = pending @ factor.matrix
            continue
        K = _to_z(factor.axis)
        if factor.sign < 0:  # Z(-q) = F Z(q) F for rotations and for translations along z
            K = K @ _FLIP
        before = pending @ K
        if result:
            result[-1] = (result[-1][0], before)
        else:
            first = before
        result.append((factor.variable, np.eye(4)))
        pending = inverse_transform(K)
    if loop.closure == "pose":  # cyclic: the leading constant joins the last one
        result[-1] = (result[-1][0], pending @ first)
        first = np.eye(4)
    else:
        result[-1] = (result[-1][0], pending)
    return first, result


def _reach(C: Array, first: Array, owners: list[int], mechanism: Mechanism) -> float:
    lengths = np.linalg.norm(C[:, :3, 3], axis=1).sum() + np.linalg.norm(first[:3, 3])
    travel = 0.0
    for owner in owners:
        variable = mechanism.variables[owner]
        if variable.kind == "translation":
            travel += max(abs(variable.lower), abs(variable.upper))
    return float(lengths + travel)
