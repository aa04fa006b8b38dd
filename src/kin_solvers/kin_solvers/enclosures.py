"""Interval enclosures of the loop equations and their derivatives over a box of configurations.

The equations are those of ``equations.evaluate``. Every folded constant is widened by the radius of
its enclosure (``folding``): what is enclosed are the values of every mechanism that the given one
stands for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kin_solvers.intervals import cosine, down, helper, multiply, sine, up
from kin_solvers.system import System

__all__ = ["enclose", "tables_of"]

Array = NDArray[np.float64]

#: The system as ``enclose`` takes it.
Tables = tuple[NDArray[Any], ...]


def tables_of(system: System) -> Tables:
    """A system as ``enclose`` takes it."""
    s = system
    return (
        s.translation, s.offsets, s.factor_variable, s.C, s.C_first, s.point, s.C_radius,
        s.first_radius,
    )  # fmt: skip


@helper
def _motion(translation: bool, a: float, b: float, order: int, Z: Array) -> None:
    """A motion over [a, b], or its first or second derivative, shape (3, 4, 2)."""
    Z[:, :, :] = 0.0
    if order == 0:
        for r in range(3):
            Z[r, r, :] = 1.0
    if translation:
        if order == 0:
            Z[2, 3, 0] = a
            Z[2, 3, 1] = b
        elif order == 1:
            Z[2, 3, :] = 1.0
        return
    c0, c1 = cosine(a, b)
    s0, s1 = sine(a, b)
    if order == 1:
        c0, c1, s0, s1 = -s1, -s0, c0, c1
    elif order == 2:
        c0, c1, s0, s1 = -c1, -c0, -s1, -s0
    for k in range(2):
        Z[k, k, 0] = c0
        Z[k, k, 1] = c1
    Z[1, 0, 0] = s0
    Z[1, 0, 1] = s1
    Z[0, 1, 0] = -s1
    Z[0, 1, 1] = -s0


@helper
def _residual(end: Array, rows: Array) -> None:
    """Position and half the skew part of a map, shape (6, 2)."""
    for r in range(3):
        rows[r] = end[r, 3]
        i = (r + 2) % 3
        j = (r + 1) % 3
        rows[3 + r, 0] = down(0.5 * (end[i, j, 0] - end[j, i, 1]))
        rows[3 + r, 1] = up(0.5 * (end[i, j, 1] - end[j, i, 0]))


@helper
def _add(rows: Array, count: int, out: Array) -> None:
    """Add the first residuals to others, shape (6, 2)."""
    for r in range(count):
        out[r, 0] = down(out[r, 0] + rows[r, 0])
        out[r, 1] = up(out[r, 1] + rows[r, 1])


@njit(cache=True, nogil=True)
def enclose(tables: Any, lower: Array, upper: Array, F: Array, J: Array, H: Array) -> bool:
    """Residuals, Jacobian and second derivatives over a box, as intervals.

    As in ``equations.evaluate``, a loop that closes by a point has no rotation residuals: these
    rows are zero.

    Args:
        tables: The system, from ``tables_of``.
        lower: Lower ends of the box, shape (V,).
        upper: Upper ends, shape (V,).
        F: Receives the residuals, shape (6 L, 2).
        J: Receives the Jacobian, shape (6 L, V, 2).
        H: Receives the second derivatives, shape (6 L, V, V, 2); none if it is empty.

    Returns:
        Whether no loop that closes in pose may be a half turn away from the identity: where the
        skew part of a product vanishes, it is the identity then.
    """
    translation, offsets, owner, C, C_first, point, radius, first_radius = tables
    second = H.shape[0] > 0
    J[:, :, :] = 0.0
    H[:, :, :, :] = 0.0
    near = True
    identity = np.zeros((3, 4, 2))
    for r in range(3):
        identity[r, r, :] = 1.0
    Z = np.zeros((3, 4, 2))
    K = np.zeros((3, 4, 2))
    X = np.zeros((3, 4, 2))
    Y = np.zeros((3, 4, 2))
    A = np.zeros((3, 4, 2))
    rows = np.zeros((6, 2))
    for l in range(point.size):
        o = offsets[l]
        n = offsets[l + 1] - o
        count = 3 if point[l] else 6
        first = 6 * l
        # Each factor Z C with its derivatives, shape (order, factor, 3, 4, 2).
        G = np.zeros((3 if second else 2, n, 3, 4, 2))
        for t in range(n):
            k = owner[o + t]
            for r in range(3):
                for c in range(4):
                    e = radius[o + t, 1] if c == 3 else radius[o + t, 0]
                    K[r, c, 0] = down(C[o + t, 4 * r + c] - e)
                    K[r, c, 1] = up(C[o + t, 4 * r + c] + e)
            for order in range(G.shape[0]):
                _motion(translation[k], lower[k], upper[k], order, Z)
                multiply(Z, K, True, G[order, t])
        after = np.zeros((n + 1, 3, 4, 2))
        after[n] = identity
        for t in range(n - 1, -1, -1):
            multiply(G[0, t], after[t + 1], True, after[t])
        end = after[0]
        _residual(end, F[first : first + 6])
        if point[l]:
            e = first_radius[l, 1]
            for r in range(3):
                x = C_first[l, 4 * r + 3]
                F[first + r, 0] = down(F[first + r, 0] - up(x + e))
                F[first + r, 1] = up(F[first + r, 1] - down(x - e))
            F[first + 3 : first + 6] = 0.0
        elif end[0, 0, 0] + end[1, 1, 0] + end[2, 2, 0] <= -0.5:
            near = False
        # Products with the derivative of factor i, and of factor j behind it.
        before = identity.copy()
        for i in range(n):
            a = owner[o + i]
            multiply(before, G[1, i], False, A)
            multiply(A, after[i + 1], True, X)
            _residual(X, rows)
            _add(rows, count, J[first : first + 6, a])
            if second:
                multiply(before, G[2, i], False, X)
                multiply(X, after[i + 1], True, Y)
                _residual(Y, rows)
                _add(rows, count, H[first : first + 6, a, a])
                for j in range(i + 1, n):
                    b = owner[o + j]
                    multiply(A, G[1, j], False, X)
                    multiply(X, after[j + 1], True, Y)
                    _residual(Y, rows)
                    _add(rows, count, H[first : first + 6, a, b])
                    _add(rows, count, H[first : first + 6, b, a])
                    multiply(A, G[0, j], True, X)
                    A[:] = X
            multiply(before, G[0, i], True, X)
            before[:] = X
    return near
