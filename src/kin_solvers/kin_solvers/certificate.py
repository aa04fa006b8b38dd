"""Existence and uniqueness of isolated solutions: Krawczyk's test with outward rounding.

For a square system G (position and rotation residuals of the loops) and a box X with a point x in
it, K(X) = x - Y G(x) + (I - Y G'(X)) (X - x). If K(X) lies in the interior of X, then G has exactly
one zero in X, and it lies in K(X). Near the identity a product of rotations with zero skew part is
the identity; that the product is near it is checked on the box as well.

Every interval operation is widened by two units in the last place, and every folded constant by the
radius of its enclosure (``folding``), so the statement holds for every mechanism that the given one
stands for.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kin_solvers.equations import Equations
from kin_solvers.errors import CuikError
from kin_solvers.planar import parallel_axis, plane_of
from kin_solvers.system import System

__all__ = ["Certifier"]

Array = NDArray[np.float64]

_WIDEN = 2.0 * 2.0**-52
_TINY = 1e-300

jit = njit(cache=True, nogil=True)
helper = njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@helper
def _down(x: Any) -> Any:
    return x - abs(x) * _WIDEN - _TINY


@helper
def _up(x: Any) -> Any:
    return x + abs(x) * _WIDEN + _TINY


@helper
def _times(a: Any, b: Any, c: Any, d: Any) -> Any:
    """[a, b] [c, d], outward."""
    p = a * c
    q = a * d
    r = b * c
    s = b * d
    return _down(min(p, q, r, s)), _up(max(p, q, r, s))


@helper
def _multiply(A: Any, B: Any, out: Any, unit_a: Any, unit_b: Any) -> Any:
    """Out = A B for interval matrices of shape (3, 4, 2) with last row (0, 0, 0, unit)."""
    for r in range(3):
        for c in range(4):
            lo = 0.0
            hi = 0.0
            for m in range(3):
                x, y = _times(A[r, m, 0], A[r, m, 1], B[m, c, 0], B[m, c, 1])
                lo = _down(lo + x)
                hi = _up(hi + y)
            if c == 3 and unit_b != 0.0:
                lo = _down(lo + A[r, 3, 0])
                hi = _up(hi + A[r, 3, 1])
            out[r, c, 0] = lo
            out[r, c, 1] = hi
    return unit_a


@helper
def _cosine(a: Any, b: Any) -> Any:
    """Cos of [a, b], outward; also far from zero."""
    if b - a >= 2.0 * math.pi:
        return -1.0, 1.0
    x = math.cos(a)
    y = math.cos(b)
    pad = 4e-16
    lo = min(x, y) - pad
    hi = max(x, y) + pad
    slack = 1e-15 * (1.0 + abs(a) + abs(b))
    if math.floor((b + slack) / (2.0 * math.pi)) >= math.ceil((a - slack) / (2.0 * math.pi)):
        hi = 1.0
    if math.floor((b + slack - math.pi) / (2.0 * math.pi)) >= math.ceil(
        (a - slack - math.pi) / (2.0 * math.pi)
    ):
        lo = -1.0
    return max(lo, -1.0), min(hi, 1.0)


@helper
def _motion(translation: Any, a: Any, b: Any, derivative: Any, Z: Any) -> Any:
    """Interval matrix of a motion, or of its derivative, over [a, b]."""
    for r in range(3):
        for c in range(4):
            x = 1.0 if (r == c and not derivative) else 0.0
            Z[r, c, 0] = x
            Z[r, c, 1] = x
    if translation:
        if derivative:
            Z[2, 3, 0] = 1.0
            Z[2, 3, 1] = 1.0
        else:
            Z[2, 3, 0] = a
            Z[2, 3, 1] = b
        return
    c0, c1 = _cosine(a, b)
    s0, s1 = _cosine(_down(a - 0.5 * math.pi), _up(b - 0.5 * math.pi))
    s0 -= 4e-16
    s1 += 4e-16
    if derivative:
        c0, c1, s0, s1 = -s1, -s0, c0, c1
    Z[0, 0, 0] = c0
    Z[0, 0, 1] = c1
    Z[1, 1, 0] = c0
    Z[1, 1, 1] = c1
    Z[1, 0, 0] = s0
    Z[1, 0, 1] = s1
    Z[0, 1, 0] = -s1
    Z[0, 1, 1] = -s0


@jit
def enclose(
    translation: Any,
    offsets: Any,
    owner: Any,
    C: Any,
    C_first: Any,
    point: Any,
    radius: Any,
    first_radius: Any,
    lower: Any,
    upper: Any,
    F: Any,
    J: Any,
    near: Any,
) -> Any:
    """Interval residuals F, shape (6 L, 2), and Jacobian J, shape (6 L, V, 2), over a box.

    ``near[0]`` becomes False if a product may be a half turn away from the identity.
    """
    J[:, :, :] = 0.0
    near[0] = True
    for l in range(point.size):
        o = offsets[l]
        n = offsets[l + 1] - o
        G = np.zeros((n, 3, 4, 2))
        D = np.zeros((n, 3, 4, 2))
        Z = np.zeros((3, 4, 2))
        K = np.zeros((3, 4, 2))
        for t in range(n):
            k = owner[o + t]
            for r in range(3):
                for c in range(4):
                    e = radius[o + t, 1] if c == 3 else radius[o + t, 0]
                    K[r, c, 0] = _down(C[o + t, 4 * r + c] - e)
                    K[r, c, 1] = _up(C[o + t, 4 * r + c] + e)
            _motion(translation[k], lower[k], upper[k], False, Z)
            _multiply(Z, K, G[t], 1.0, 1.0)
            _motion(translation[k], lower[k], upper[k], True, Z)
            # a translation's derivative has no rotation part: Z K = its constant column
            _multiply(Z, K, D[t], 0.0, 1.0)
        after = np.zeros((n + 1, 3, 4, 2))
        for r in range(3):
            after[n, r, r, 0] = 1.0
            after[n, r, r, 1] = 1.0
        for t in range(n - 1, -1, -1):
            _multiply(G[t], after[t + 1], after[t], 1.0, 1.0)
        end = after[0]
        _residual(end, 6 * l, F)
        if point[l]:
            for r in range(3):
                x = C_first[l, 4 * r + 3]
                e = first_radius[l, 1]
                F[6 * l + r, 0] = _down(F[6 * l + r, 0] - _up(x + e))
                F[6 * l + r, 1] = _up(F[6 * l + r, 1] - _down(x - e))
        elif end[0, 0, 0] + end[1, 1, 0] + end[2, 2, 0] <= -0.5:
            near[0] = False
        before = np.zeros((3, 4, 2))
        for r in range(3):
            before[r, r, 0] = 1.0
            before[r, r, 1] = 1.0
        X = np.zeros((3, 4, 2))
        Y = np.zeros((3, 4, 2))
        row = np.zeros((6, 2))
        for t in range(n):
            k = owner[o + t]
            _multiply(before, D[t], X, 0.0, 0.0)
            _multiply(X, after[t + 1], Y, 0.0, 1.0)
            _residual(Y, 0, row)
            for r in range(6):
                J[6 * l + r, k, 0] = _down(J[6 * l + r, k, 0] + row[r, 0])
                J[6 * l + r, k, 1] = _up(J[6 * l + r, k, 1] + row[r, 1])
            _multiply(before, G[t], X, 1.0, 1.0)
            before[:, :, :] = X


@helper
def _residual(end: Any, row: Any, F: Any) -> Any:
    """Position and half the skew part of an interval matrix."""
    for r in range(3):
        F[row + r, 0] = end[r, 3, 0]
        F[row + r, 1] = end[r, 3, 1]
        i = (r + 2) % 3
        j = (r + 1) % 3
        F[row + 3 + r, 0] = _down(0.5 * (end[i, j, 0] - end[j, i, 1]))
        F[row + 3 + r, 1] = _up(0.5 * (end[i, j, 1] - end[j, i, 0]))


@jit
def krawczyk(
    x: Any, lower: Any, upper: Any, Y: Any, g: Any, H: Any, out_lower: Any, out_upper: Any
) -> Any:
    """K(X) from the preconditioner Y, residuals g at x and Jacobian H over X, both as intervals.

    Returns:
        Whether K(X) lies in the interior of X.
    """
    n = x.size
    inside = True
    for i in range(n):
        lo = x[i]
        hi = x[i]
        for m in range(n):
            a, b = _times(Y[i, m], Y[i, m], g[m, 0], g[m, 1])
            lo = _down(lo - b)
            hi = _up(hi - a)
        for j in range(n):
            a = 1.0 if i == j else 0.0
            b = a
            for m in range(n):
                c, d = _times(Y[i, m], Y[i, m], H[m, j, 0], H[m, j, 1])
                a = _down(a - d)
                b = _up(b - c)
            c, d = _times(a, b, _down(lower[j] - x[j]), _up(upper[j] - x[j]))
            lo = _down(lo + c)
            hi = _up(hi + d)
        out_lower[i] = lo
        out_upper[i] = hi
        if not (lo > lower[i] and hi < upper[i]):
            inside = False
    return inside


class Certifier:
    """Krawczyk's test for one system (system units)."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.equations = Equations(system)
        self.rows = _independent_rows(system)

    @property
    def square(self) -> bool:
        """Whether there are as many equations as unknowns, so that certificates can exist."""
        return self.rows is not None

    def _enclose(self, lower: Array, upper: Array) -> tuple[Array, Array, bool]:
        s = self.system
        if self.rows is None:
            raise CuikError("a system that is not square has no certificates")
        F = np.zeros((6 * len(s.point), 2))
        J = np.zeros((6 * len(s.point), s.size, 2))
        near = np.zeros(1, dtype=np.bool_)
        enclose(
            s.translation, s.offsets, s.factor_variable, s.C, s.C_first, s.point, s.C_radius,
            s.first_radius, lower, upper, F, J, near,
        )  # fmt: skip
        return _combine(self.rows, F), _combine(self.rows, J), bool(near[0])

    def root(self, lower: Array, upper: Array) -> Array | None:
        """A numerical root in or near a box, shape (V,); None if Newton finds none there."""
        middle = 0.5 * (lower + upper)
        q = self.equations.newton(middle)
        if q is None:
            return None
        reach = 1.5 * (upper - lower) + 1e-9
        return q if bool(np.all(np.abs(q - middle) <= reach)) else None

    def certify(self, lower: Array, upper: Array) -> tuple[Array, Array, Array, Array] | None:
        """Prove that a box holds exactly one solution, or that its neighbourhood does.

        Args:
            lower: Lower ends of the box, shape (V,).
            upper: Upper ends, shape (V,).

        Returns:
            (lower, upper) of a tight box that holds the solution, and (lower, upper) of the region,
            a superset of the given box, in which it is the only one; None if there is no proof.
        """
        if self.rows is None:
            return None
        x = self.root(lower, upper)
        if x is None:
            return None
        J = self.rows @ self.equations(x)[1]
        if np.linalg.cond(J) > 1e10:
            return None
        Y = np.ascontiguousarray(np.linalg.inv(J), dtype=np.float64)
        radius = np.maximum(0.05 * (upper - lower), 1e-9)
        # No smaller than what the constants leave unknown of the root.
        g = self._enclose(x, x)[0]
        radius = np.maximum(radius, 2.0 * np.abs(Y) @ (g[:, 1] - g[:, 0]))
        region_lower = np.minimum(lower, x) - radius
        region_upper = np.maximum(upper, x) + radius
        proof = self._contract(x, region_lower, region_upper, Y)
        if proof is None:
            return None
        tight_lower, tight_upper = proof
        for _ in range(4):  # K(X) again and again, to a tight enclosure
            again = self._contract(x, tight_lower - 1e-14, tight_upper + 1e-14, Y)
            if again is None:
                break
            size = float((tight_upper - tight_lower).max())
            tight_lower, tight_upper = again
            if float((tight_upper - tight_lower).max()) > 0.5 * size:
                break
        return tight_lower, tight_upper, region_lower, region_upper

    def _contract(
        self, x: Array, lower: Array, upper: Array, Y: Array
    ) -> tuple[Array, Array] | None:
        H_near = self._enclose(lower, upper)
        if not H_near[2]:
            return None
        g = self._enclose(x, x)[0]
        K_lower, K_upper = np.empty_like(x), np.empty_like(x)
        if not krawczyk(x, lower, upper, Y, g, H_near[1], K_lower, K_upper):
            return None
        return K_lower, K_upper


def _independent_rows(system: System) -> Array | None:
    """Combinations of the residuals that make the system square, shape (V, 6 L), or None.

    A loop in space has 6; one closed by a point 3; a spherical one (no reach) its 3 rotations. With
    all rotations about parallel axes only the rotation about them is left, and in a planar loop the
    translations in the plane: the other residuals vanish for every configuration.
    """
    blocks: list[Array] = []
    for l, point in enumerate(system.point):
        parallel = parallel_axis(system, l)
        place, turn = np.eye(3), np.eye(3)
        if parallel is not None:
            turn = parallel.axis[None]
            if parallel.planar:
                place = plane_of(parallel.axis)
        if system.reach[l] <= 1e-12 + 4.0 * system.unknown[l, 1]:
            place = np.empty((0, 3))
        if point:
            turn = np.empty((0, 3))
        block = np.zeros((len(place) + len(turn), 6 * len(system.point)))
        block[: len(place), 6 * l : 6 * l + 3] = place
        block[len(place) :, 6 * l + 3 : 6 * l + 6] = turn
        blocks.append(block)
    rows = np.concatenate(blocks)
    return rows if len(rows) == system.size else None


def _combine(rows: Array, x: Array) -> Array:
    """Combinations of intervals, outward: rows, shape (M, N), times x, shape (N, ..., 2)."""
    middle, radius = 0.5 * (x[..., 0] + x[..., 1]), 0.5 * (x[..., 1] - x[..., 0])
    centre = np.tensordot(rows, middle, 1)
    size = np.tensordot(np.abs(rows), radius, 1)
    size += 1e-14 * (np.tensordot(np.abs(rows), np.abs(middle) + radius, 1)) + _TINY
    return np.stack([centre - size, centre + size], axis=-1)
