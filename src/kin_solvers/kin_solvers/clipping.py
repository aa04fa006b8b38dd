"""Segment-trapezoid clipping (Fig. 1 of the paper) on hulls of several vertices.

For a vertex i of a variable, low[i] and high[i] bound an equation F over all other variables. With
the coordinates u[i] of the vertices, the arc's points with F = 0 lie where the lower hull of
(u[i], low[i]) is <= 0 and the upper hull of (u[i], high[i]) is >= 0.
"""

from __future__ import annotations

import math

import numpy as np

from kin_solvers.compiled import helper
from kin_solvers.hulls import PAD, U, V

_INF = math.inf


@helper
def intersect(arc: np.record) -> bool:
    """Clip a variable with the bounds ``low``, ``high`` of its vertices; False if nothing is left.

    All clippings of a call of Reduce_Box are of the hull as it was, and what they leave is
    intersected in ``left``.
    """
    n = arc.count
    low = arc.low
    high = arc.high
    clip = arc.left
    if n == 3:
        s = arc.hull[U, 2]
        a, b = _span(s, low[0], low[1], low[2])
        c, d = _span(s, -high[0], -high[1], -high[2])
        a = max(a, c)
        b = min(b, d)
    else:
        a, b = _clip(arc, U)
    if a > b + 2.0 * PAD * (1.0 + arc.half):
        return False
    if a > clip[0]:
        clip[0] = a
    if b < clip[1]:
        clip[1] = b
    if n == 4:
        c, d = _clip(arc, V)
        if c > d + 4.0 * PAD:
            return False
        if c > clip[2]:
            clip[2] = c
        if d < clip[3]:
            clip[3] = d
    return True


@helper
def _clip(arc: np.record, coordinate: int) -> tuple[float, float]:
    """Where the clipping leaves one coordinate: (from, to), empty if from > to."""
    n = arc.count
    low = arc.low
    high = arc.high
    hull = arc.hull
    a = _INF
    b = -_INF
    c = _INF
    d = -_INF
    for i in range(n):
        x = hull[coordinate, i]
        if low[i] <= 0.0:
            a = min(a, x)
            b = max(b, x)
        if high[i] >= 0.0:
            c = min(c, x)
            d = max(d, x)
    if a > b or c > d:
        return 1.0, -1.0
    for i in range(n):
        f = low[i]
        g = high[i]
        x0 = hull[coordinate, i]
        if f <= 0.0:
            for j in range(n):
                if low[j] > 0.0:
                    x = x0 + (hull[coordinate, j] - x0) * (f / (f - low[j]))
                    a = min(a, x)
                    b = max(b, x)
        if g >= 0.0:
            for j in range(n):
                if high[j] < 0.0:
                    x = x0 + (hull[coordinate, j] - x0) * (g / (g - high[j]))
                    c = min(c, x)
                    d = max(d, x)
    return max(a, c), min(b, d)


@helper
def _span(s: float, l0: float, l1: float, l2: float) -> tuple[float, float]:
    """Where the lower hull of (-s, l0), (0, l1), (s, l2) is <= 0: (from, to)."""
    if l0 <= 0.0 and l2 <= 0.0:
        return -s, s
    a = -s
    b = s
    if l0 > 0.0:
        a = _INF
        if l1 <= 0.0:
            a = s * (l0 / (l0 - l1)) - s
        if l2 <= 0.0:
            a = min(a, 2.0 * s * (l0 / (l0 - l2)) - s)
            if l1 > 0.0:
                a = min(a, s * (l1 / (l1 - l2)))
    if l2 > 0.0:
        b = -_INF
        if l1 <= 0.0:
            b = s - s * (l2 / (l2 - l1))
        if l0 <= 0.0:
            b = max(b, s - 2.0 * s * (l2 / (l2 - l0)))
            if l1 > 0.0:
                b = max(b, -s * (l1 / (l1 - l0)))
    return a, b
