"""Interval arithmetic with outward rounding, compiled.

An interval is a pair of doubles (low, high); a matrix of intervals has a last axis of length 2.
Every operation is widened by two units in the last place and by 1e-300, which covers its rounding
error down to the subnormals. Ends are taken to be finite.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["combine", "cosine", "down", "multiply", "plus_product", "sine", "times", "up"]

Array = NDArray[np.float64]

_WIDEN = 2.0 * 2.0**-52
_TINY = 1e-300
#: Largest error of the cosine of the C library, with some room: its results are at most 1.
_COSINE_ERROR = 4e-16
_TURN = 2.0 * math.pi

helper = njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@helper
def down(x: float) -> float:
    """A number under a result that was rounded to x."""
    return x - abs(x) * _WIDEN - _TINY


@helper
def up(x: float) -> float:
    """A number over a result that was rounded to x."""
    return x + abs(x) * _WIDEN + _TINY


@helper
def times(a: float, b: float, c: float, d: float) -> tuple[float, float]:
    """[a, b] [c, d]."""
    p = a * c
    q = a * d
    r = b * c
    s = b * d
    return down(min(p, q, r, s)), up(max(p, q, r, s))


@helper
def plus_product(
    low: float, high: float, a: float, b: float, c: float, d: float
) -> tuple[float, float]:
    """[low, high] + [a, b] [c, d]."""
    x, y = times(a, b, c, d)
    return down(low + x), up(high + y)


@helper
def cosine(a: float, b: float) -> tuple[float, float]:
    """The cosine of [a, b]; also far from zero."""
    if b - a >= _TURN:
        return -1.0, 1.0
    x = math.cos(a)
    y = math.cos(b)
    low = min(x, y) - _COSINE_ERROR
    high = max(x, y) + _COSINE_ERROR
    # Whether a multiple of 2 pi, or one of them plus pi, may lie in [a, b].
    slack = 1e-15 * (1.0 + abs(a) + abs(b))
    if math.floor((b + slack) / _TURN) >= math.ceil((a - slack) / _TURN):
        high = 1.0
    if math.floor((b + slack - math.pi) / _TURN) >= math.ceil((a - slack - math.pi) / _TURN):
        low = -1.0
    return max(low, -1.0), min(high, 1.0)


@helper
def sine(a: float, b: float) -> tuple[float, float]:
    """The sine of [a, b]: the cosine of a quarter turn less, which is a double but for 6.2e-17."""
    low, high = cosine(down(a - 0.5 * math.pi), up(b - 0.5 * math.pi))
    return max(low - _COSINE_ERROR, -1.0), min(high + _COSINE_ERROR, 1.0)


@helper
def multiply(A: Array, B: Array, translate: bool, out: Array) -> None:
    """Out = A B for affine maps, shape (3, 4, 2).

    Args:
        A: The left map.
        B: The right map.
        translate: Whether the last row of B is (0, 0, 0, 1); else it is zero, as in a derivative.
        out: Receives the product.
    """
    for r in range(3):
        for c in range(4):
            low = 0.0
            high = 0.0
            for m in range(3):
                low, high = plus_product(low, high, A[r, m, 0], A[r, m, 1], B[m, c, 0], B[m, c, 1])
            if c == 3 and translate:
                low = down(low + A[r, 3, 0])
                high = up(high + A[r, 3, 1])
            out[r, c, 0] = low
            out[r, c, 1] = high


@helper
def combine(rows: Array, X: Array, out: Array) -> None:
    """Out = rows X for a matrix of numbers, shape (M, N), and intervals, shape (N, K, 2)."""
    for i in range(rows.shape[0]):
        for j in range(X.shape[1]):
            low = 0.0
            high = 0.0
            for m in range(rows.shape[1]):
                if rows[i, m] != 0.0:
                    low, high = plus_product(
                        low, high, rows[i, m], rows[i, m], X[m, j, 0], X[m, j, 1]
                    )
            out[i, j, 0] = low
            out[i, j, 1] = high
