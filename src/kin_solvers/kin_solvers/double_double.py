"""Numbers of 106 bits as unevaluated sums of two doubles, compiled.

T.J. Dekker, *A floating-point technique for extending the available precision* (1971). A number is
a pair (high, low) with |low| <= u |high|, u = 2^-53; sums and products have a relative error of a
few u^2. Nothing here may be compiled with fast maths: the error terms would be optimised away.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["cosine_sine", "move", "product", "rigid"]

Array = NDArray[np.float64]

jit = njit(cache=True, nogil=True)
helper = njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)

_SPLITTER = 134217729.0  # 2^27 + 1
# pi / 2 as a sum of three doubles.
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
_TERMS = 28


@helper
def _two_sum(a: Any, b: Any) -> Any:
    s = a + b
    x = s - a
    return s, (a - (s - x)) + (b - x)


@helper
def _two_product(a: Any, b: Any) -> Any:
    p = a * b
    x = _SPLITTER * a
    a1 = x - (x - a)
    a2 = a - a1
    y = _SPLITTER * b
    b1 = y - (y - b)
    b2 = b - b1
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


@helper
def add(a: Any, a_low: Any, b: Any, b_low: Any) -> Any:
    """Sum of two numbers; also where they cancel."""
    s, e = _two_sum(a, b)
    t, f = _two_sum(a_low, b_low)
    s, e = _two_sum(s, e + t)
    return _two_sum(s, e + f)


@helper
def times(a: Any, a_low: Any, b: Any, b_low: Any) -> Any:
    """Product of two numbers."""
    p, e = _two_product(a, b)
    return _two_sum(p, e + (a * b_low + a_low * b))


@helper
def _divided(a: Any, a_low: Any, n: Any) -> Any:
    """Quotient of a number and a small integer."""
    q = a / n
    p, e = _two_product(q, n)
    rest, low = add(a, a_low, -p, -e)
    return _two_sum(q, (rest + low) / n)


@helper
def cosine_sine(q: Any) -> Any:
    """Cosine and sine of a double, |q| < 1e9 [rad]: (cosine, its low part, sine, its low part)."""
    k = np.rint(q / _HALF_PI[0])
    r, r_low = q, 0.0
    for part in _HALF_PI:
        p, e = _two_product(k, part)
        r, r_low = add(r, r_low, -p, -e)
    square, square_low = times(r, r_low, r, r_low)
    c, c_low = 1.0, 0.0
    s, s_low = 1.0, 0.0
    for n in range(_TERMS, 0, -2):  # cos = 1 - r^2/2 (1 - r^2/12 ...), sin/r likewise
        x, y = times(c, c_low, square, square_low)
        x, y = _divided(x, y, float(n * (n - 1)))
        c, c_low = add(1.0, 0.0, -x, -y)
        x, y = times(s, s_low, square, square_low)
        x, y = _divided(x, y, float(n * (n + 1)))
        s, s_low = add(1.0, 0.0, -x, -y)
    s, s_low = times(s, s_low, r, r_low)
    quarter = int(k) % 4
    if quarter == 1:
        return -s, -s_low, c, c_low
    if quarter == 2:
        return -c, -c_low, -s, -s_low
    if quarter == 3:
        return s, s_low, -c, -c_low
    return c, c_low, s, s_low


@helper
def _dot(A: Any, i: Any, B: Any, j: Any, s: Any, e: Any) -> Any:
    """The number (s, e) plus the product of row i of A and column j of B, over three places."""
    for m in range(3):
        x, y = times(A[i, m, 0], A[i, m, 1], B[m, j, 0], B[m, j, 1])
        s, e = add(s, e, x, y)
    return s, e


@jit
def product(A: Any, B: Any, out: Any) -> Any:
    """Out = A B for rigid transforms of shape (3, 4, 2); ``out`` must be neither."""
    for i in range(3):
        for j in range(4):
            s = A[i, 3, 0] if j == 3 else 0.0
            e = A[i, 3, 1] if j == 3 else 0.0
            out[i, j, 0], out[i, j, 1] = _dot(A, i, B, j, s, e)


@jit
def rigid(matrix: Any, out: Any) -> Any:
    """The rigid transform nearest to a matrix of shape (3, 4) or larger, as shape (3, 4, 2).

    Two steps X <- X (3 I - X'X) / 2 towards the polar factor of the rotation: a defect d becomes
    some d^4, so 1e-6 becomes less than the rounding of these numbers.
    """
    for i in range(3):
        for j in range(4):
            out[i, j, 0] = matrix[i, j]
            out[i, j, 1] = 0.0
    Y = np.empty((3, 3, 2))
    X = np.empty((3, 3, 2))
    minus = np.empty((3, 3, 2))
    for _ in range(2):
        for i in range(3):
            X[i] = out[i, :3]
            for j in range(3):
                minus[j, i] = -out[i, j]
        for i in range(3):
            for j in range(3):
                s, e = _dot(minus, i, X, j, 3.0 if i == j else 0.0, 0.0)
                Y[i, j, 0] = 0.5 * s
                Y[i, j, 1] = 0.5 * e
        for i in range(3):
            for j in range(3):
                out[i, j, 0], out[i, j, 1] = _dot(X, i, Y, j, 0.0, 0.0)


@jit
def move(axis: Any, translation: Any, q: Any, out: Any) -> Any:
    """A motion about (or along) X, Y or Z by a double, as shape (3, 4, 2)."""
    out[:, :, :] = 0.0
    for i in range(3):
        out[i, i, 0] = 1.0
    if translation:
        out[axis, 3, 0] = q
        return
    c, c_low, s, s_low = cosine_sine(q)
    i = (axis + 1) % 3
    j = (axis + 2) % 3
    out[i, i, 0] = c
    out[i, i, 1] = c_low
    out[j, j, 0] = c
    out[j, j, 1] = c_low
    out[i, j, 0] = -s
    out[i, j, 1] = -s_low
    out[j, i, 0] = s
    out[j, i, 1] = s_low
