"""Existence and uniqueness of isolated solutions: Krawczyk's test with outward rounding.

For a square system G (position and rotation residuals of the loops) and a box X with a point x in
it, K(X) = x - Y G(x) + (I - Y G'(X)) (X - x). If K(X) lies in the interior of X, then G has exactly
one zero in X, and it lies in K(X). Near the identity a product of rotations with zero skew part is
the identity; that the product is near it is checked on the box as well.

Everything is computed in intervals (``intervals``, ``enclosures``), so the statement holds for
every mechanism that the given one stands for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kin_solvers.enclosures import enclose, tables_of
from kin_solvers.equations import Equations
from kin_solvers.intervals import combine, down, helper, plus_product, times, up
from kin_solvers.regions import Region, Regions, held
from kin_solvers.system import System

__all__ = ["Certifier", "Proof"]

Array = NDArray[np.float64]

#: Condition of the Jacobian above which no proof is tried.
MAX_CONDITION = 1e10
#: Times that bounds of a box are used to find better ones.
CONTRACTIONS = 4

jit = njit(cache=True, nogil=True)


@helper
def krawczyk(
    lower: Array, upper: Array, Y: Array, g: Array, J: Array, out_lower: Array, out_upper: Array
) -> bool:
    """K(S) = -Y g + (I - Y J) S for a box S, from residuals g at zero and a Jacobian J over S.

    Returns:
        Whether K(S) lies in the interior of S.
    """
    inside = True
    for i in range(lower.size):
        lo = 0.0
        hi = 0.0
        for m in range(Y.shape[1]):
            lo, hi = plus_product(lo, hi, -Y[i, m], -Y[i, m], g[m, 0], g[m, 1])
        for j in range(lower.size):
            a = 1.0 if i == j else 0.0
            b = a
            for m in range(Y.shape[1]):
                a, b = plus_product(a, b, -Y[i, m], -Y[i, m], J[m, j, 0], J[m, j, 1])
            lo, hi = plus_product(lo, hi, a, b, lower[j], upper[j])
        out_lower[i] = lo
        out_upper[i] = hi
        if not (lo > lower[i] and hi < upper[i]):
            inside = False
    return inside


@helper
def _affine(A: Array, T: Array, lower: Array, upper: Array, out: Array) -> None:
    """Out = A + T s over a box of s, for A of shape (M, N, 2) and T of (M, N, N, 2)."""
    for m in range(A.shape[0]):
        for i in range(A.shape[1]):
            lo, hi = A[m, i, 0], A[m, i, 1]
            for l in range(lower.size):
                lo, hi = plus_product(lo, hi, T[m, i, l, 0], T[m, i, l, 1], lower[l], upper[l])
            out[m, i, 0] = lo
            out[m, i, 1] = hi


@helper
def _in_directions(
    rows: Array, turn: Array, F: Array, J: Array, H: Array
) -> tuple[Array, Array, Array]:
    """Combinations of residuals and their derivatives in the coordinates s of x + V s.

    Args:
        rows: The combinations, shape (M, 6 L).
        turn: The transpose of V, shape (V, V).
        F: Residuals, shape (6 L, 2).
        J: Their Jacobian, shape (6 L, V, 2).
        H: Their second derivatives, shape (6 L, V, V, 2).

    Returns:
        Values, shape (M, 1, 2), Jacobian, shape (M, V, 2), and second derivatives, (M, V, V, 2).
    """
    count = rows.shape[0]
    wide, n = J.shape[0], J.shape[1]
    g = np.empty((count, 1, 2))
    rows_J = np.empty((count, n, 2))
    rows_H = np.empty((count, n * n, 2))
    combine(rows, F.reshape(wide, 1, 2), g)
    combine(rows, J, rows_J)
    combine(rows, H.reshape(wide, n * n, 2), rows_H)
    A = np.empty((count, n, 2))
    T = np.empty((count, n, n, 2))
    half = np.empty((n, n, 2))
    other = np.empty((n, n, 2))
    for m in range(count):
        combine(turn, rows_J[m].copy().reshape(n, 1, 2), A[m].reshape(n, 1, 2))
        # V' H V = V' (V' H)', as H is symmetric.
        combine(turn, rows_H[m].copy().reshape(n, n, 2), half)
        for i in range(n):
            for j in range(n):
                other[j, i] = half[i, j]
        combine(turn, other, T[m])
    return g, A, T


@jit
def prove(
    tables: Any, rows: Array, x: Array, V: Array, Y: Array, lower: Array, upper: Array, out: Array
) -> bool:
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
    wide = rows.shape[1]
    low = np.empty(n)
    high = np.empty(n)
    for k in range(n):
        lo = x[k]
        hi = x[k]
        for l in range(n):
            lo, hi = plus_product(lo, hi, V[k, l], V[k, l], lower[l], upper[l])
        low[k] = lo
        high[k] = hi
    F = np.empty((wide, 2))
    J = np.empty((wide, n, 2))
    H = np.empty((wide, n, n, 2))
    if not enclose(tables, low, high, F, J, H):
        return False
    enclose(tables, x, x, F, J, H[:0])
    g, JV, T = _in_directions(rows, V.T.copy(), F, J, H)
    s_low = lower.copy()
    s_high = upper.copy()
    JS = np.empty(JV.shape)
    proven = False
    for _ in range(12):
        _affine(JV, T, s_low, s_high, JS)
        if not krawczyk(s_low, s_high, Y, g[:, 0], JS, low, high):
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


@helper
def _contract(g: Array, A: Array, T: Array, values: Array, lower: Array, upper: Array) -> bool:
    """Make a box of s smaller, in place; whether it may hold a zero of g + (A + T s / 2) s.

    A is nearly the diagonal matrix of ``values``: equation k gives bounds of variable k.
    """
    n = lower.size
    for _ in range(CONTRACTIONS):
        gain = False
        for k in range(g.shape[0]):
            value = values[k] if k < values.size else 0.0
            lo, hi = g[k, 0], g[k, 1]
            for l in range(n):
                a, b = A[k, l, 0], A[k, l, 1]
                if k == l:
                    a, b = down(a - value), up(b - value)
                for j in range(n):
                    c, d = times(0.5, 0.5, lower[j], upper[j])
                    a, b = plus_product(a, b, T[k, l, j, 0], T[k, l, j, 1], c, d)
                lo, hi = plus_product(lo, hi, a, b, lower[l], upper[l])
            # Now 0 lies in value s_k + [lo, hi].
            if k >= n or value < 1e-12:
                if k < n:
                    lo, hi = plus_product(lo, hi, value, value, lower[k], upper[k])
                if lo > 0.0 or hi < 0.0:
                    return False
                continue
            low = max(lower[k], down(-hi / value))
            high = min(upper[k], up(-lo / value))
            if low > high:
                return False
            gain |= high - low < 0.5 * (upper[k] - lower[k])
            lower[k] = low
            upper[k] = high
        if not gain:
            break
    return True


@jit
def contract(
    tables: Any, rows: Array, regions: Any, cyclic: NDArray[np.bool_], lower: Array, upper: Array,
    keep: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Make boxes smaller, in place, without losing a solution; find those that hold no new one.

    Around the middle x of a box, with J(x) = U S V' and y = x + V s, Taylor's theorem makes the
    equations U' G(y) = U' G(x) + S s + (V' U' H V s / 2) s, H the second derivatives over the box.
    Equation k bounds s_k. Where J is nearly singular, the strong directions become so thin that
    the weak equation, which hardly depends on them, can have no zero.

    Args:
        tables: The system as ``enclose`` takes it.
        rows: The equations, combinations of residuals, shape (M, 6 L).
        regions: Regions with at most one solution each, which is known (``Regions.tables``).
        cyclic: Which variables are angles on the full circle, shape (V,).
        lower: Lower ends of the boxes, shape (N, V).
        upper: Upper ends, shape (N, V).
        keep: Receives whether each box may hold a solution that is not known, shape (N,).
    """
    n = lower.shape[1]
    wide = rows.shape[1]
    F = np.empty((wide, 2))
    J = np.empty((wide, n, 2))
    H = np.empty((wide, n, n, 2))
    low = np.empty(n)
    high = np.empty(n)
    for i in range(lower.shape[0]):
        enclose(tables, lower[i], upper[i], F, J, H)
        x = 0.5 * (lower[i] + upper[i])
        enclose(tables, x, x, F, J, H[:0])
        u, values, vt = np.linalg.svd(rows @ (0.5 * (J[:, :, 0] + J[:, :, 1])))
        g, A, T = _in_directions(u.T @ rows, np.ascontiguousarray(vt), F, J, H)
        pad = 0.0
        for k in range(n):
            # The inverse of V is its transpose but for a few units of the last place.
            pad += 1e-14 * (upper[i, k] - lower[i, k]) + 1e-300
        for k in range(n):
            lo, hi = -pad, pad
            for j in range(n):
                a, b = down(lower[i, j] - x[j]), up(upper[i, j] - x[j])
                lo, hi = plus_product(lo, hi, vt[k, j], vt[k, j], a, b)
            low[k] = lo
            high[k] = hi
        keep[i] = _contract(g[:, 0], A, T, values, low, high)
        if not keep[i]:
            continue
        V = vt.T.copy()
        centre = x + V @ (0.5 * (low + high))
        if held(regions, cyclic, centre, V, 0.5 * (high - low)):
            keep[i] = False
        else:
            for k in range(n):
                lo, hi = x[k], x[k]
                for j in range(n):
                    lo, hi = plus_product(lo, hi, vt[j, k], vt[j, k], low[j], high[j])
                lower[i, k] = max(lower[i, k], lo)
                upper[i, k] = min(upper[i, k], hi)


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
        self.equations = Equations.of(system)
        self.rows = self.equations.independent
        self.tables = tables_of(system)

    @property
    def square(self) -> bool:
        """Whether there are as many equations as unknowns, so that certificates can exist."""
        return len(self.rows) == self.system.size

    @property
    def plain(self) -> bool:
        """Whether the equations are the residuals themselves, as many as unknowns."""
        n = self.system.size
        return self.rows.shape == (n, n) and np.array_equal(self.rows, np.eye(n))

    @property
    def determined(self) -> bool:
        """Whether there are at least as many equations as unknowns: solutions may be isolated."""
        return len(self.rows) >= self.system.size

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
        F = self._residuals(x, x)
        return np.asarray(np.abs(Y) @ (np.abs(self.rows) @ (F[:, 1] - F[:, 0])))

    def contracted(self, lower: Array, upper: Array, known: Regions) -> tuple[Array, Array]:
        """Boxes, shape (N, V), made smaller, without those proven to hold no new solution.

        Args:
            lower: Lower ends, shape (N, V).
            upper: Upper ends, shape (N, V).
            known: Regions with at most one solution each, which is known.
        """
        lower, upper = lower.copy(), upper.copy()
        keep = np.ones(len(lower), dtype=np.bool_)
        contract(self.tables, self.rows, known.tables, self.system.cyclic, lower, upper, keep)
        return lower[keep], upper[keep]

    def _residuals(self, lower: Array, upper: Array) -> Array:
        """Residuals over a box as intervals, shape (6 L, 2)."""
        n, count = len(lower), self.rows.shape[1]
        F = np.empty((count, 2))
        enclose(self.tables, lower, upper, F, np.empty((count, n, 2)), np.empty((0, n, n, 2)))
        return F

    def _no_zero(self, lower: Array, upper: Array) -> bool:
        """Whether an equation is proven to have no zero in a box."""
        F = self._residuals(lower, upper)
        return bool(np.any((F[:, 0] > 0.0) | (F[:, 1] < 0.0)))
