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
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kin_solvers.equations import Equations
from kin_solvers.system import System

__all__ = ["Certifier", "Proof", "Region", "Regions"]

Array = NDArray[np.float64]

_WIDEN = 2.0 * 2.0**-52
_TINY = 1e-300
#: Condition of the Jacobian above which no proof is tried.
MAX_CONDITION = 1e10

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

    As in ``equations.evaluate``, a loop that closes by a point has no rotation residuals: these
    rows are zero. ``near[0]`` becomes False if a product may be a half turn away from the identity.
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
                F[6 * l + 3 + r, 0] = 0.0
                F[6 * l + 3 + r, 1] = 0.0
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
            for r in range(3 if point[l] else 6):
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
        for m in range(Y.shape[1]):
            a, b = _times(Y[i, m], Y[i, m], g[m, 0], g[m, 1])
            lo = _down(lo - b)
            hi = _up(hi - a)
        for j in range(n):
            a = 1.0 if i == j else 0.0
            b = a
            for m in range(Y.shape[1]):
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


@helper
def _combine(rows: Any, X: Any, out: Any) -> Any:
    """Out = rows X for a matrix, shape (M, N), and intervals, shape (N, K, 2), outward."""
    for i in range(rows.shape[0]):
        for j in range(X.shape[1]):
            lo = 0.0
            hi = 0.0
            for m in range(rows.shape[1]):
                if rows[i, m] != 0.0:
                    a, b = _times(rows[i, m], rows[i, m], X[m, j, 0], X[m, j, 1])
                    lo = _down(lo + a)
                    hi = _up(hi + b)
            out[i, j, 0] = lo
            out[i, j, 1] = hi


@helper
def _second(translation: Any, a: Any, b: Any, Z: Any) -> Any:
    """Interval matrix of the second derivative of a motion over [a, b]."""
    Z[:, :, :] = 0.0
    if translation:
        return
    c0, c1 = _cosine(a, b)
    s0, s1 = _cosine(_down(a - 0.5 * math.pi), _up(b - 0.5 * math.pi))
    s0 -= 4e-16
    s1 += 4e-16
    Z[0, 0, 0] = -c1
    Z[0, 0, 1] = -c0
    Z[1, 1, 0] = -c1
    Z[1, 1, 1] = -c0
    Z[1, 0, 0] = -s1
    Z[1, 0, 1] = -s0
    Z[0, 1, 0] = s0
    Z[0, 1, 1] = s1


@jit
def enclose_second(
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
    H: Any,
) -> Any:
    """Second derivatives of the residuals over a box as intervals, shape (6 L, V, V, 2)."""
    H[:, :, :, :] = 0.0
    Z = np.zeros((3, 4, 2))
    K = np.zeros((3, 4, 2))
    A = np.zeros((3, 4, 2))
    X = np.zeros((3, 4, 2))
    Y = np.zeros((3, 4, 2))
    row = np.zeros((6, 2))
    for l in range(point.size):
        o = offsets[l]
        n = offsets[l + 1] - o
        G = np.zeros((n, 3, 4, 2))
        D = np.zeros((n, 3, 4, 2))
        E = np.zeros((n, 3, 4, 2))
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
            _multiply(Z, K, D[t], 0.0, 1.0)
            _second(translation[k], lower[k], upper[k], Z)
            _multiply(Z, K, E[t], 0.0, 1.0)
        after = np.zeros((n + 1, 3, 4, 2))
        before = np.zeros((3, 4, 2))
        for r in range(3):
            after[n, r, r, 0] = 1.0
            after[n, r, r, 1] = 1.0
            before[r, r, 0] = 1.0
            before[r, r, 1] = 1.0
        for t in range(n - 1, -1, -1):
            _multiply(G[t], after[t + 1], after[t], 1.0, 1.0)
        for i in range(n):
            _multiply(before, E[i], X, 0.0, 0.0)
            _multiply(X, after[i + 1], Y, 0.0, 1.0)
            _residual(Y, 0, row)
            _accumulate(H, 6 * l, owner[o + i], owner[o + i], row)
            _multiply(before, D[i], A, 0.0, 0.0)
            for j in range(i + 1, n):
                _multiply(A, D[j], X, 0.0, 0.0)
                _multiply(X, after[j + 1], Y, 0.0, 1.0)
                _residual(Y, 0, row)
                _accumulate(H, 6 * l, owner[o + i], owner[o + j], row)
                _accumulate(H, 6 * l, owner[o + j], owner[o + i], row)
                _multiply(A, G[j], X, 0.0, 1.0)
                A[:, :, :] = X
            _multiply(before, G[i], X, 1.0, 1.0)
            before[:, :, :] = X


@helper
def _accumulate(H: Any, first: Any, i: Any, j: Any, row: Any) -> Any:
    for r in range(6):
        H[first + r, i, j, 0] = _down(H[first + r, i, j, 0] + row[r, 0])
        H[first + r, i, j, 1] = _up(H[first + r, i, j, 1] + row[r, 1])


@helper
def _times_matrix(X: Any, V: Any, out: Any) -> Any:
    """Out = X V for intervals, shape (M, N, 2), and a matrix, shape (N, K), outward."""
    for m in range(X.shape[0]):
        for k in range(V.shape[1]):
            lo = 0.0
            hi = 0.0
            for j in range(V.shape[0]):
                a, b = _times(X[m, j, 0], X[m, j, 1], V[j, k], V[j, k])
                lo = _down(lo + a)
                hi = _up(hi + b)
            out[m, k, 0] = lo
            out[m, k, 1] = hi


@jit
def prove(tables: Any, rows: Any, x: Any, V: Any, Y: Any, lower: Any, upper: Any, out: Any) -> Any:
    """Krawczyk's test on a region {x + V s} with s in a box, in the coordinates s.

    The Jacobian over the region is J(x) V + sum over l of T_l s_l, with T_l = V' H V v_l and H the
    second derivatives over the region's hull (mean value theorem). Where J is nearly singular its
    weak direction is a column of V, along which the region may be long: interval Jacobians of
    the hull do not know that J changes little that way, T does.

    Args:
        tables: The system as ``enclose`` takes it.
        rows: The equations, combinations of residuals, shape (M, 6 L).
        x: A point, shape (V,).
        V: Directions, a nearly orthogonal matrix, shape (V, V).
        Y: Preconditioner, near the inverse of J(x) V, shape (V, M).
        lower: Lower ends of the box of s, negative, shape (V,).
        upper: Upper ends of the box of s, positive, shape (V,).
        out: Receives the box of s that holds the zero, shape (2, V).

    Returns:
        Whether Y G has exactly one zero in the region.
    """
    n = x.size
    count = rows.shape[0]
    wide = rows.shape[1]
    low = np.empty(n)
    high = np.empty(n)
    for k in range(n):
        lo = x[k]
        hi = x[k]
        for l in range(n):
            a, b = _times(V[k, l], V[k, l], lower[l], upper[l])
            lo = _down(lo + a)
            hi = _up(hi + b)
        low[k] = lo
        high[k] = hi
    F = np.zeros((wide, 2))
    J = np.zeros((wide, n, 2))
    near = np.zeros(1, dtype=np.bool_)
    enclose(*tables, low, high, F, J, near)
    if not near[0]:
        return False
    enclose(*tables, x, x, F, J, near)
    g = np.zeros((count, 1, 2))
    rows_J = np.zeros((count, n, 2))
    JV = np.zeros((count, n, 2))
    _combine(rows, F.reshape(wide, 1, 2), g)
    _combine(rows, J, rows_J)
    _times_matrix(rows_J, V, JV)
    H = np.zeros((wide, n, n, 2))
    enclose_second(*tables, low, high, H)
    rows_H = np.zeros((count, n * n, 2))
    _combine(rows, H.reshape(wide, n * n, 2), rows_H)
    T = np.zeros((count, n, n, 2))
    half = np.zeros((n, n, 2))
    flipped = np.zeros((n, n, 2))
    turned = np.zeros((n, n, 2))
    for m in range(count):
        _times_matrix(rows_H[m].copy().reshape(n, n, 2), V, half)
        for j in range(n):
            for l in range(n):
                flipped[l, j, 0] = half[j, l, 0]
                flipped[l, j, 1] = half[j, l, 1]
        _times_matrix(flipped, V, turned)  # turned[l, i] = sum over j of V[j, i] (H V)[j, l]
        for l in range(n):
            for i in range(n):
                T[m, i, l, 0] = turned[l, i, 0]
                T[m, i, l, 1] = turned[l, i, 1]
    zero = np.zeros(n)
    s_low = lower.copy()
    s_high = upper.copy()
    JS = np.zeros((count, n, 2))
    proven = False
    for _ in range(12):
        for m in range(count):
            for i in range(n):
                lo = JV[m, i, 0]
                hi = JV[m, i, 1]
                for l in range(n):
                    a, b = _times(T[m, i, l, 0], T[m, i, l, 1], s_low[l], s_high[l])
                    lo = _down(lo + a)
                    hi = _up(hi + b)
                JS[m, i, 0] = lo
                JS[m, i, 1] = hi
        if not krawczyk(zero, s_low, s_high, Y, g[:, 0], JS, low, high):
            break
        proven = True
        size = (s_high - s_low).max()
        out[0] = low
        out[1] = high
        if (high - low).max() > 0.8 * size:
            break
        for k in range(n):
            s_low[k] = max(min(low[k] - 1e-14, -1e-14), s_low[k])
            s_high[k] = min(max(high[k] + 1e-14, 1e-14), s_high[k])
    return proven


@jit
def hold(
    x: Any, V: Any, region_lower: Any, region_upper: Any, cyclic: Any, lower: Any, upper: Any,
    held: Any,
) -> Any:  # fmt: skip
    """Which boxes lie in one of some regions {x + V s}, whole turns of cyclic angles apart.

    Args:
        x: Origins of the regions, shape (R, V).
        V: Their directions, shape (R, V, V).
        region_lower: Lower ends of the boxes of s, shape (R, V).
        region_upper: Upper ends, shape (R, V).
        cyclic: Which variables are angles on the full circle, shape (V,).
        lower: Lower ends of the boxes, shape (N, V).
        upper: Upper ends, shape (N, V).
        held: Receives the answer, shape (N,).
    """
    n = lower.shape[1]
    middle = np.empty(n)
    half = np.empty(n)
    for i in range(lower.shape[0]):
        held[i] = False
        for r in range(x.shape[0]):
            pad = 0.0
            for k in range(n):
                gap = 0.5 * (lower[i, k] + upper[i, k]) - x[r, k]
                if cyclic[k]:
                    gap -= 2.0 * math.pi * round(gap / (2.0 * math.pi))
                middle[k] = gap
                half[k] = 0.5 * (upper[i, k] - lower[i, k])
                # The inverse of V is its transpose, and gap is exact, but for a few units of the
                # last place.
                pad += 1e-14 * (abs(gap) + half[k]) + 2e-15 * (1.0 + abs(x[r, k]))
            inside = True
            for l in range(n):
                centre = 0.0
                reach = pad
                for k in range(n):
                    centre += V[r, k, l] * middle[k]
                    reach += abs(V[r, k, l]) * half[k]
                if centre - reach < region_lower[r, l] or centre + reach > region_upper[r, l]:
                    inside = False
                    break
            if inside:
                held[i] = True
                break


@dataclass(frozen=True)
class Region:
    """The points x + V s with s in a box around zero (system units).

    Attributes:
        x: Its origin, shape (V,).
        V: Its directions, a nearly orthogonal matrix, shape (V, V).
        lower: Lower ends of the box of s, shape (V,).
        upper: Upper ends of the box of s, shape (V,).
    """

    x: Array
    V: Array
    lower: Array
    upper: Array

    @property
    def width(self) -> float:
        """Its longest side."""
        return float((self.upper - self.lower).max())

    def _seen_from(self, other: Region, cyclic: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Middle and half-widths of a box around it in the coordinates s of another one."""
        gap = self.x - other.x
        gap = gap - np.where(cyclic, np.round(gap / (2.0 * math.pi)) * (2.0 * math.pi), 0.0)
        M = other.V.T @ self.V
        half = np.abs(M) @ (0.5 * (self.upper - self.lower))
        pad = 1e-14 * float(np.abs(gap).sum() + half.sum() + 1.0 + np.abs(self.x).max())
        return other.V.T @ gap + M @ (0.5 * (self.lower + self.upper)), half + pad

    def inside(self, other: Region, cyclic: NDArray[np.bool_]) -> bool:
        """Whether it lies in another one, whole turns of cyclic angles apart."""
        middle, half = self._seen_from(other, cyclic)
        return bool(np.all((middle - half >= other.lower) & (middle + half <= other.upper)))

    def apart(self, other: Region, cyclic: NDArray[np.bool_]) -> bool:
        """Whether it certainly has no point in common with another one."""
        middle, half = self._seen_from(other, cyclic)
        return bool(np.any((middle - half > other.upper) | (middle + half < other.lower)))


class Regions:
    """Regions in each of which at most one solution lies."""

    def __init__(self, size: int) -> None:
        self.count = 0
        self._x, self._V = np.empty((8, size)), np.empty((8, size, size))
        self._lower, self._upper = np.empty((8, size)), np.empty((8, size))

    def add(self, region: Region) -> None:
        """Add one."""
        if self.count == len(self._x):
            self._x, self._V = np.repeat(self._x, 2, axis=0), np.repeat(self._V, 2, axis=0)
            self._lower = np.repeat(self._lower, 2, axis=0)
            self._upper = np.repeat(self._upper, 2, axis=0)
            for array in (self._x, self._V, self._lower, self._upper):
                array[: self.count] = array[: 2 * self.count : 2].copy()
        self._x[self.count], self._V[self.count] = region.x, region.V
        self._lower[self.count], self._upper[self.count] = region.lower, region.upper
        self.count += 1

    def hold(self, lower: Array, upper: Array, cyclic: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which boxes, shape (N, V), lie in one of them, whole turns apart; shape (N,)."""
        held = np.zeros(len(lower), dtype=np.bool_)
        k = self.count
        hold(
            self._x[:k], self._V[:k], self._lower[:k], self._upper[:k], cyclic,
            np.ascontiguousarray(lower), np.ascontiguousarray(upper), held,
        )  # fmt: skip
        return held


@dataclass(frozen=True)
class Proof:
    """At most one solution lies in a region, and if there is one it lies in a tight box.

    Attributes:
        lower: Lower ends of the tight box, shape (V,).
        upper: Upper ends of the tight box, shape (V,).
        region: The region.
        tight: The part of the region that the tight box encloses.
        exists: Whether there is one for certain.
        empty: Whether there is none for certain.
    """

    lower: Array
    upper: Array
    region: Region
    tight: Region
    exists: bool
    empty: bool


class Certifier:
    """Krawczyk's test for one system (system units).

    With more equations than unknowns Y is the pseudo-inverse: a zero of G is one of Y G, so that
    the test proves that there is at most one.
    """

    def __init__(self, system: System) -> None:
        self.system = system
        self.equations = Equations(system)
        self.rows = self.equations.independent

    @property
    def square(self) -> bool:
        """Whether there are as many equations as unknowns, so that certificates can exist."""
        return len(self.rows) == self.system.size

    @property
    def determined(self) -> bool:
        """Whether there are at least as many equations as unknowns: solutions may be isolated."""
        return len(self.rows) >= self.system.size

    @property
    def tables(self) -> tuple[NDArray[Any], ...]:
        """The system as ``enclose`` takes it."""
        s = self.system
        return (
            s.translation, s.offsets, s.factor_variable, s.C, s.C_first, s.point, s.C_radius,
            s.first_radius,
        )  # fmt: skip

    def jacobian(self, x: Array) -> Array:
        """Derivative of the independent equations at a point, shape (M, V)."""
        return np.asarray(self.rows @ self.equations(x)[1])

    def directions(self, x: Array) -> tuple[Array, Array] | None:
        """Directions V and the inverse Y of J V at a root, shapes (V, V) and (V, M).

        The singular vectors of J; None if it is too near to a singularity for a proof.
        """
        u, values, vt = np.linalg.svd(self.jacobian(x), full_matrices=False)
        if len(values) < self.system.size or values[-1] < values[0] / MAX_CONDITION:
            return None
        return np.ascontiguousarray(vt.T), np.ascontiguousarray(u.T / values[:, None])

    def prove(self, x: Array, V: Array, Y: Array, lower: Array, upper: Array) -> Proof | None:
        """Prove that the region {x + V s}, with s in a box around zero, holds no other root than x.

        Args:
            x: The numerical root, shape (V,).
            V: Its directions, from ``directions``.
            Y: The inverse in these directions.
            lower: Lower ends of the box of s, negative, shape (V,).
            upper: Upper ends of the box of s, positive, shape (V,).

        Returns:
            The proof; None if there is none.
        """
        out = np.empty((2, len(x)))
        if not prove(self.tables, self.rows, x, V, Y, lower, upper, out):
            return None
        middle = x + V @ (0.5 * (out[0] + out[1]))
        half = np.abs(V) @ (0.5 * (out[1] - out[0])) * (1.0 + 1e-12) + 4e-15 * (1.0 + np.abs(x))
        lower_end, upper_end = middle - half, middle + half
        return Proof(
            lower=lower_end,
            upper=upper_end,
            region=Region(x, V, lower, upper),
            tight=Region(x, V, out[0], out[1]),
            exists=self.square,
            empty=not self.square and self._no_zero(lower_end, upper_end),
        )

    def spread(self, x: Array, Y: Array) -> Array:
        """What the constants leave unknown of a root in the directions of Y, shape (V,)."""
        F = np.zeros((self.rows.shape[1], 2))
        J = np.zeros((self.rows.shape[1], len(x), 2))
        enclose(*self.tables, x, x, F, J, np.zeros(1, dtype=np.bool_))
        return np.asarray(np.abs(Y) @ (np.abs(self.rows) @ (F[:, 1] - F[:, 0])))

    def _no_zero(self, lower: Array, upper: Array) -> bool:
        """Whether an equation is proven to have no zero in a box."""
        F = np.zeros((self.rows.shape[1], 2))
        J = np.zeros((self.rows.shape[1], len(lower), 2))
        enclose(*self.tables, lower, upper, F, J, np.zeros(1, dtype=np.bool_))
        return bool(np.any((F[:, 0] > 0.0) | (F[:, 1] < 0.0)))
