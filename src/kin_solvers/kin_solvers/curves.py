"""Following a one-dimensional solution set from point to point, to both of its ends."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kin_solvers.equations import Equations, evaluate, newton

__all__ = ["Curve", "tangent_at", "trace"]

Array = NDArray[np.float64]

MAX_POINTS = 20000
#: Least cosine between the tangents of neighbours.
_LEAST_COSINE = 0.95
#: Why following a curve ended.
CLOSED, LIMIT, SINGULAR, LONG = 0, 1, 2, 3


@dataclass(frozen=True)
class Curve:
    """Points along a curve of solutions.

    Attributes:
        points: In order, shape (P, V); neighbours are near each other, angles run on over +-pi.
        closed: Whether it comes back to its start.
        singular: Whether an end of it is a singular point rather than the end of a range.
    """

    points: Array
    closed: bool
    singular: bool


def trace(
    equations: Equations,
    start: Array,
    *,
    step: float,
    limits: tuple[Array, Array],
) -> Curve:
    """Follow a curve of solutions by predictor (tangent) and corrector (Gauss-Newton) steps.

    Args:
        equations: The loop equations.
        start: A solution within the limits, shape (V,).
        step: Longest distance between neighbours.
        limits: Ranges, two arrays of shape (V,); infinite for angles on the full circle.

    Returns:
        The curve. An open one is followed to both of its ends: the first points at which a variable
        is at the end of its range, or singular points.
    """
    tangent = tangent_at(equations, start)
    forward, end = _follow(equations, start, tangent, step, limits)
    if end == CLOSED:
        return Curve(forward, True, False)
    backward, other = _follow(equations, start, -tangent, step, limits)
    points = np.concatenate([backward[:0:-1], forward])
    return Curve(points, False, SINGULAR in (end, other))


def tangent_at(equations: Equations, q: Array) -> Array:
    """Unit vector in the kernel of the Jacobian, shape (V,)."""
    return np.asarray(np.linalg.svd(equations(q)[1])[2][-1])


def _follow(
    equations: Equations, start: Array, tangent: Array, step: float, limits: tuple[Array, Array]
) -> tuple[Array, int]:
    s = equations.system
    points = np.empty((MAX_POINTS, s.size))
    count, end = follow(
        equations.tables, equations.unknown,
        np.ascontiguousarray(start), np.ascontiguousarray(tangent), float(step), limits[0],
        limits[1], points,
    )  # fmt: skip
    return points[:count].copy(), int(end)


@njit(cache=True, nogil=True)
def _outside(q: Any, lower: Any, upper: Any) -> Any:
    """Whether a point lies beyond the end of a range."""
    return bool(np.any(q < lower - 1e-12) or np.any(q > upper + 1e-12))


@njit(cache=True, nogil=True)
def _leaves(a: Any, b: Any, t: Any, u: Any, length: Any, lower: Any, upper: Any) -> Any:
    """Whether a variable turns round beyond its range between a (tangent t) and b (tangent u).

    Both points may lie inside; the cubic through them with their tangents shows the turn.
    """
    for k in range(a.size):
        if t[k] * u[k] >= 0.0:
            continue
        s = t[k] / (t[k] - u[k])  # where the tangent, taken as linear, vanishes
        h00 = (1.0 + 2.0 * s) * (1.0 - s) ** 2
        h10 = s * (1.0 - s) ** 2
        h01 = s * s * (3.0 - 2.0 * s)
        h11 = s * s * (s - 1.0)
        turn = h00 * a[k] + h10 * length * t[k] + h01 * b[k] + h11 * length * u[k]
        if turn < lower[k] or turn > upper[k]:
            return True
    return False


@njit(cache=True, nogil=True)
def _passed(a: Any, b: Any, start: Any, lower: Any) -> Any:
    """Whether the segment from a to b passes the start, angles modulo a turn."""
    along = 0.0
    square = 0.0
    offset = np.empty(a.size)
    for k in range(a.size):
        x = start[k] - a[k]
        if math.isinf(lower[k]):
            x -= 2.0 * math.pi * math.floor((x + math.pi) / (2.0 * math.pi))
        offset[k] = x
        d = b[k] - a[k]
        along += x * d
        square += d * d
    along /= square
    if not 0.0 < along <= 1.0:
        return False
    across = 0.0
    for k in range(a.size):
        across += (offset[k] - along * (b[k] - a[k])) ** 2
    return across < 0.0625 * square


@njit(cache=True, nogil=True)
def follow(
    tables: Any, unknown: Any, start: Any, tangent: Any, step: Any, lower: Any, upper: Any,
    points: Any,
) -> Any:  # fmt: skip
    """Follow a curve one way.

    Args:
        tables: The loop equations as ``evaluate`` takes them.
        unknown: What the constants leave unknown of the residuals.
        start: A solution, shape (V,).
        tangent: Unit vector along the curve, the way to go, shape (V,).
        step: Longest distance between neighbours.
        lower: Lower ends of the ranges, shape (V,); -inf for angles on the full circle.
        upper: Upper ends of the ranges, shape (V,).
        points: Receives the points, the start first, shape (MAX_POINTS, V).

    Returns:
        Number of points, and why it ended.
    """
    rows = 6 * tables[5].size
    F = np.empty(rows)
    J = np.empty((rows, start.size))
    points[0] = start
    count = 1
    q = start.copy()
    t = tangent.copy()
    length = step
    cut = max(1e-9, unknown)
    while count < points.shape[0]:
        new = q + length * t
        came = newton(*tables, new, 6, 1e-11, unknown)
        jump = 0.0
        for k in range(q.size):
            jump += (new[k] - q[k] - length * t[k]) ** 2
        if not came or jump > (0.35 * length) ** 2:
            length *= 0.5
            if length < 1e-5 * step:
                return count, SINGULAR
            continue
        evaluate(*tables, new, F, J)
        u = t - np.linalg.lstsq(J, J @ t, cut)[0]  # the part of t in the kernel
        size = math.sqrt((u * u).sum())
        if size < _LEAST_COSINE and length > 1e-3 * step:
            length *= 0.5
            continue
        if size < 1e-3:
            return count, SINGULAR
        u /= size
        if length > 1e-3 * step and _leaves(q, new, t, u, length, lower, upper):
            length *= 0.5
            continue
        if _outside(new, lower, upper):
            return _last(tables, unknown, q, t, length, lower, upper, points, count), LIMIT
        if count > 2 and _passed(q, new, start, lower):
            return count, CLOSED
        points[count] = new
        count += 1
        q = new
        t = u
        length = min(step, 1.5 * length)
    return count, LONG


@njit(cache=True, nogil=True)
def _last(
    tables: Any, unknown: Any, q: Any, t: Any, length: Any, lower: Any, upper: Any, points: Any,
    count: Any,
) -> Any:  # fmt: skip
    """Add the point at which the curve leaves the ranges, between q and a step beyond them."""
    inside = 0.0
    beyond = length
    found = False
    best = q.copy()
    while beyond - inside > 1e-10:
        middle = 0.5 * (inside + beyond)
        new = q + middle * t
        if newton(*tables, new, 6, 1e-11, unknown) and not _outside(new, lower, upper):
            inside = middle
            best = new
            found = True
        else:
            beyond = middle
    if found and count < points.shape[0]:
        points[count] = best
        return count + 1
    return count
