"""Polygons around arcs: from a box to the hulls of its variables, and from clipped hulls back.

Each arc is enclosed by a polygon (its *hull*) of 3 or 4 vertices, each travel by its 2 ends. Over
the hulls a multi-affine function takes its extremes at products of vertices.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kin_solvers.compiled import Array, Records, helper
from kin_solvers.lanes import fused

#: Half-width under which an arc is enclosed by a triangle [rad].
NARROW = 0.6
#: Padding of angles and of hull coordinates against rounding.
PAD = 4e-15

# Rows of a hull: cosine and sine of its vertices, and sine and cosine relative to the middle.
Y, Z, U, V = 0, 1, 2, 3
_HALF_PI = 0.5 * math.pi
_TWO_PI = 2.0 * math.pi
_INF = math.inf

#: A variable of a box, its hull, and what clippings have left of it.
ARC = np.dtype(
    [
        ("translation", np.bool_),
        ("cyclic", np.bool_),  # an angle on the full circle
        ("shared", np.int64),  # number of loops that it is in
        ("count", np.int64),  # vertices of its hull
        ("middle", np.float64),
        ("half", np.float64),  # half-width, with its padding
        ("hull", np.float64, (4, 4)),  # rows Y (for a translation: the travel), Z, U, V
        ("low", np.float64, (4,)),  # bounds of an equation for each vertex
        ("high", np.float64, (4,)),
        ("slack", np.float64),  # how far the bounds are to be widened
        ("left", np.float64, (4,)),  # of the hull by clippings: from, to in U; from, to in V
    ],
    align=True,
)


class Box(NamedTuple):
    """Lower and upper ends of a box, shape (V,) each."""

    lower: Array
    upper: Array


def make_arcs(translation: NDArray[np.bool_], cyclic: NDArray[np.bool_]) -> Records:
    """Records of variables that have no hull yet, shape (V,)."""
    arcs = np.zeros(len(translation), dtype=ARC)
    arcs["translation"], arcs["cyclic"], arcs["shared"] = translation, cyclic, 1
    return arcs


@helper
def enclose(box: Box, arcs: Records) -> tuple[float, bool]:
    """Make the hull of every variable; nothing of it is clipped.

    Returns:
        The largest half-width, and whether any hull has 4 vertices.
    """
    lower = box.lower
    upper = box.upper
    widest = 0.0
    wide = False
    for k in range(arcs.size):
        arc = arcs[k]
        m = 0.5 * (lower[k] + upper[k])
        h = 0.5 * (upper[k] - lower[k]) + PAD * (1.0 + abs(m))
        arc.middle = m
        arc.half = h
        widest = max(widest, h)
        arc.left[0] = -_INF
        arc.left[1] = _INF
        arc.left[2] = -_INF
        arc.left[3] = _INF
        hull = arc.hull
        if arc.translation:
            arc.count = 2
            hull[Y, 0] = m - h
            hull[Y, 1] = m + h
            hull[U, 0] = -h
            hull[U, 1] = h
            continue
        cm = math.cos(m)
        sm = math.sin(m)
        if h < NARROW:
            s = math.sin(h)
            c = math.sqrt(1.0 - s * s)
            apex = 1.0 / c
            arc.count = 3
            hull[U, 0] = -s
            hull[U, 1] = 0.0
            hull[U, 2] = s
            hull[Y, 0] = cm * c + sm * s
            hull[Z, 0] = sm * c - cm * s
            hull[Y, 1] = cm * apex
            hull[Z, 1] = sm * apex
            hull[Y, 2] = cm * c - sm * s
            hull[Z, 2] = sm * c + cm * s
            continue
        wide = True
        arc.count = 4
        inner = 1.0
        outer = 1.0
        c = -1.0
        if h < _HALF_PI:
            c = math.cos(h)
            inner = math.tan(0.5 * h)
            outer = math.sin(h)
        elif h < math.pi:
            c = math.cos(h)
        hull[V, 0] = c
        hull[U, 0] = -outer
        hull[V, 1] = 1.0
        hull[U, 1] = -inner
        hull[V, 2] = 1.0
        hull[U, 2] = inner
        hull[V, 3] = c
        hull[U, 3] = outer
        for i in range(4):
            hull[Y, i] = fused(cm, hull[V, i], -sm * hull[U, i])
            hull[Z, i] = fused(sm, hull[V, i], cm * hull[U, i])
    return widest, wide


@helper
def narrow(box: Box, arcs: Records) -> bool:
    """Bring what clippings have left of the hulls back to the box, in place; False if empty."""
    for k in range(arcs.size):
        a, b = _back_to_angle(arcs[k], box.lower[k], box.upper[k])
        if a > b:
            return False
        box.lower[k] = a
        box.upper[k] = b
    return True


@helper
def _back_to_angle(arc: np.record, lower: float, upper: float) -> tuple[float, float]:
    """The part of [lower, upper] that the clipped hull of a variable leaves."""
    m = arc.middle
    h = arc.half
    clip = arc.left
    hull = arc.hull
    n = arc.count
    pad = PAD * (1.0 + abs(m) + h)
    lo = lower
    hi = upper
    if arc.translation:
        lo = max(lo, m + clip[0] - pad)
        hi = min(hi, m + clip[1] + pad)
        return lo, hi
    if h < _HALF_PI:
        s = hull[U, n - 1]
        if clip[0] > -s:
            lo = max(lo, m + math.asin(max(-1.0, clip[0] - PAD)) - pad)
        if clip[1] < s:
            hi = min(hi, m + math.asin(min(1.0, clip[1] + PAD)) + pad)
        if n == 4 and clip[2] - PAD > hull[V, 0]:
            e = math.acos(min(1.0, clip[2] - PAD)) + pad
            lo = max(lo, m - e)
            hi = min(hi, m + e)
        return lo, hi
    # A wide arc: four excluded arcs, around the middle, its opposite, and both sides.
    right = math.acos(min(1.0, clip[1] + PAD)) - pad if clip[1] + PAD > -1.0 else math.pi
    left = math.acos(min(1.0, PAD - clip[0])) - pad if PAD - clip[0] > -1.0 else math.pi
    front = math.acos(min(1.0, clip[3] + PAD)) - pad if clip[3] + PAD > -1.0 else math.pi
    back = math.acos(min(1.0, PAD - clip[2])) - pad if PAD - clip[2] > -1.0 else math.pi
    if hi - lo >= _TWO_PI - 1e-9:
        if not arc.cyclic:
            return lo, hi
        e = max(right, left, front, back)
        if e <= 0.0:
            return lo, hi
        centre = m
        if e == right:
            centre = m + _HALF_PI
        elif e == left:
            centre = m - _HALF_PI
        elif e == back:
            centre = m + math.pi
        e -= pad
        lo = centre + e
        hi = centre + _TWO_PI - e
    for _ in range(2):
        lo, hi = _trim(lo, hi, m + _HALF_PI, right - pad)
        lo, hi = _trim(lo, hi, m - _HALF_PI, left - pad)
        lo, hi = _trim(lo, hi, m, front - pad)
        lo, hi = _trim(lo, hi, m + math.pi, back - pad)
    return lo, hi


@helper
def _trim(lo: float, hi: float, centre: float, e: float) -> tuple[float, float]:
    """Take the open arc (centre - e, centre + e), repeated every turn, off the ends of [lo, hi]."""
    if e <= 0.0:
        return lo, hi
    c = centre + _TWO_PI * math.floor((lo - (centre - e)) / _TWO_PI)
    if c - e <= lo < c + e:
        lo = c + e
    c = centre + _TWO_PI * math.ceil((hi - (centre + e)) / _TWO_PI)
    if c - e < hi <= c + e:
        hi = c - e
    return lo, hi
