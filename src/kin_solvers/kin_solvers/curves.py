"""Following a one-dimensional solution set from point to point, to both of its ends."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from kin_solvers.clusters import wrapped
from kin_solvers.equations import (
    BoolArray,
    Equations,
    IntArray,
    LoopEquations,
    evaluate,
    jit,
    newton,
    pinned_newton,
)

__all__ = ["Curve", "passes", "trace"]

Array = NDArray[np.float64]

MAX_POINTS = 20000
#: Least cosine between the tangents of neighbours.
_LEAST_COSINE = 0.95
#: Distance under which two solutions are one [rad, m].
SAME = 1e-6
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
    tangent = np.linalg.svd(equations(start)[1])[2][-1]
    forward, end = _follow(equations, start, tangent, step, limits)
    if end == CLOSED:
        return Curve(forward, True, False)
    backward, other = _follow(equations, start, -tangent, step, limits)
    points = np.concatenate([backward[:0:-1], forward])
    return Curve(points, False, SINGULAR in (end, other))


def _follow(
    equations: Equations, start: Array, tangent: Array, step: float, limits: tuple[Array, Array]
) -> tuple[Array, int]:
    points = np.empty((MAX_POINTS, equations.system.size))
    count, end = follow(
        equations.tables, equations.independent, np.ascontiguousarray(start),
        np.ascontiguousarray(tangent), float(step), limits[0], limits[1], points,
    )  # fmt: skip
    return points[:count].copy(), int(end)


def passes(equations: Equations, curve: Curve, solutions: Array, step: float) -> NDArray[np.bool_]:
    """Which solutions a traced curve passes through, whole turns of cyclic angles apart.

    Args:
        equations: The loop equations.
        curve: The curve.
        solutions: Solutions, shape (N, V).
        step: Longest distance between neighbours on the curve.

    Returns:
        Shape (N,). A solution on another sheet is not on the curve, however near it is: Newton's
        method decides, which moves from the curve to the plane across it through the solution.
    """
    cyclic = equations.system.cyclic
    tree = cKDTree(wrapped(curve.points, cyclic), boxsize=np.where(cyclic, 2.0 * math.pi, 0.0))
    nearest = tree.query(wrapped(solutions, cyclic))[1]
    on = np.zeros(len(solutions), dtype=np.bool_)
    pass_through(
        equations.tables, cyclic, curve.points, curve.closed, float(step),
        np.ascontiguousarray(solutions), np.atleast_1d(nearest).astype(np.int64), on,
    )  # fmt: skip
    return on


@jit
def _turned(x: Array, cyclic: BoolArray) -> Array:
    """A difference of configurations with cyclic angles in [-pi, pi), in place."""
    for k in range(x.size):
        if cyclic[k]:
            x[k] -= 2.0 * math.pi * math.floor((x[k] + math.pi) / (2.0 * math.pi))
    return x


@jit
def _neighbour(points: Array, closed: bool, cyclic: BoolArray, k: int, way: int) -> Array:
    """From point k to the next or the one before; empty at the end of an open curve."""
    count = points.shape[0]
    if not closed and not 0 <= k + way < count:
        return np.empty(0)
    return _turned(points[(k + way) % count] - points[k], cyclic)


@jit
def _slope(before: Array, after: Array) -> Array:
    """Tangent of a parabola through three neighbours, by its steps; unit vector."""
    if before.size == 0:
        return after / math.sqrt((after * after).sum())
    if after.size == 0:
        return -before / math.sqrt((before * before).sum())
    a = math.sqrt((before * before).sum())
    b = math.sqrt((after * after).sum())
    t = after * (a / b) - before * (b / a)
    return t / math.sqrt((t * t).sum())


@jit
def pass_through(
    tables: LoopEquations, cyclic: BoolArray, points: Array, closed: bool, step: float,
    solutions: Array, nearest: IntArray, on: BoolArray,
) -> None:  # fmt: skip
    """Whether a curve passes through each of some solutions; see ``passes``."""
    same = max(SAME, 100.0 * tables.unknown)
    for i in range(solutions.shape[0]):
        k = nearest[i]
        offset = _turned(solutions[i] - points[k], cyclic)
        on[i] = np.abs(offset).max() < same
        if on[i] or points.shape[0] == 1 or np.abs(offset).max() > step:
            continue
        before = _neighbour(points, closed, cyclic, k, -1)
        after = _neighbour(points, closed, cyclic, k, 1)
        t = _slope(before, after)
        way = 1 if (offset * t).sum() >= 0.0 else -1
        chord = after if way == 1 else before
        if chord.size == 0:  # beyond the end of an open curve, where another one may begin
            continue
        other = (k + way) % points.shape[0]
        u = _slope(
            _neighbour(points, closed, cyclic, other, -1),
            _neighbour(points, closed, cyclic, other, 1),
        )
        length = math.sqrt((chord * chord).sum())
        s = min(max((offset * chord).sum() / length**2, 0.0), 1.0)
        # The cubic through both neighbours, from point k.
        x = s * (1.0 - s) ** 2 * length * way * t + s * s * (3.0 - 2.0 * s) * chord
        x += s * s * (s - 1.0) * length * way * u
        across = offset - x
        across -= ((across * chord).sum() / length**2) * chord
        distance = math.sqrt((across * across).sum())
        if distance > 0.12 * step:
            continue
        x += points[k]
        value = ((points[k] + offset) * chord).sum() / length
        if pinned_newton(tables, x, chord / length, value):
            on[i] = np.abs(x - points[k] - offset).max() < same
        else:
            on[i] = True  # singular: the curve is near, and nothing else was found there


@jit
def _outside(q: Array, lower: Array, upper: Array) -> bool:
    """Whether a point lies beyond the end of a range."""
    return bool(np.any(q < lower - 1e-12) or np.any(q > upper + 1e-12))


@jit
def _leaves(
    a: Array, b: Array, t: Array, u: Array, length: float, lower: Array, upper: Array
) -> bool:
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


@jit
def _returns(
    tables: LoopEquations, a: Array, b: Array, t: Array, start: Array, way: Array, cyclic: BoolArray
) -> bool:
    """Whether the curve comes back to its start between a (tangent t) and b, cyclic angles turned.

    Another sheet may pass by it: the curve is looked at where it crosses the plane of the start.
    """
    offset = _turned(start - a, cyclic)
    d = b - a
    square = (d * d).sum()
    along = (offset * d).sum() / square
    if not 0.0 < along <= 1.0 or (t * way).sum() < 0.0:
        return False
    across = offset - along * d
    if (across * across).sum() >= 0.0625 * square:
        return False
    x = a + along * d
    home = a + offset
    if not pinned_newton(tables, x, way, (home * way).sum()):
        return True
    return bool(np.abs(x - home).max() < max(SAME, 100.0 * tables.unknown))


@jit
def _side(rows: Array, J: Array, t: Array) -> float:
    """Sign of det [J; t], which is the same all along a regular curve; 0 if J is not of that shape.

    Two sheets that are near each other have different signs.
    """
    n = t.size
    if rows.shape[0] != n - 1:
        return 0.0
    A = np.empty((n, n))
    A[: n - 1] = rows @ J
    A[n - 1] = t
    return float(np.sign(np.linalg.det(A)))


@jit
def follow(
    tables: LoopEquations, independent: Array, start: Array, tangent: Array, step: float,
    lower: Array, upper: Array, points: Array,
) -> tuple[int, int]:  # fmt: skip
    """Follow a curve one way.

    Args:
        tables: The loop equations as ``evaluate`` takes them.
        independent: The independent combinations of the residuals, shape (M, 6 L).
        start: A solution, shape (V,).
        tangent: Unit vector along the curve, the way to go, shape (V,).
        step: Longest distance between neighbours.
        lower: Lower ends of the ranges, shape (V,); -inf for angles on the full circle.
        upper: Upper ends of the ranges, shape (V,).
        points: Receives the points, the start first, shape (MAX_POINTS, V).

    Returns:
        Number of points, and why it ended.
    """
    rows = 6 * tables.point.size
    F = np.empty(rows)
    J = np.empty((rows, start.size))
    points[0] = start
    count = 1
    q = start.copy()
    t = tangent.copy()
    length = step
    cut = max(1e-9, tables.unknown)
    cyclic = np.isinf(lower)
    evaluate(tables, start, F, J)
    side = _side(independent, J, t)
    while count < points.shape[0]:
        new = q + length * t
        came = newton(tables, new, 6, 1e-11)
        jump = 0.0
        for k in range(q.size):
            jump += (new[k] - q[k] - length * t[k]) ** 2
        if not came or jump > (0.35 * length) ** 2:
            length *= 0.5
            if length < 1e-5 * step:
                return count, SINGULAR
            continue
        evaluate(tables, new, F, J)
        u = t - np.linalg.lstsq(J, J @ t, cut)[0]  # the part of t in the kernel
        size = math.sqrt((u * u).sum())
        if size < _LEAST_COSINE and length > 1e-3 * step:
            length *= 0.5
            continue
        if size < 1e-3:
            return count, SINGULAR
        u /= size
        if _side(independent, J, u) != side:
            length *= 0.5
            if length < 1e-5 * step:
                return count, SINGULAR
            continue
        if length > 1e-3 * step and _leaves(q, new, t, u, length, lower, upper):
            length *= 0.5
            continue
        if _outside(new, lower, upper):
            return _last(tables, q, t, length, lower, upper, points, count), LIMIT
        if count > 2 and _returns(tables, q, new, t, start, tangent, cyclic):
            return count, CLOSED
        points[count] = new
        count += 1
        q = new
        t = u
        length = min(step, 1.5 * length)
    return count, LONG


@jit
def _last(
    tables: LoopEquations, q: Array, t: Array, length: float, lower: Array, upper: Array,
    points: Array, count: int,
) -> int:  # fmt: skip
    """Add the point at which the curve leaves the ranges, between q and a step beyond them."""
    inside = 0.0
    beyond = length
    found = False
    best = q.copy()
    while beyond - inside > 1e-10:
        middle = 0.5 * (inside + beyond)
        new = q + middle * t
        if newton(tables, new, 6, 1e-11) and not _outside(new, lower, upper):
            inside = middle
            best = new
            found = True
        else:
            beyond = middle
    if found and count < points.shape[0]:
        points[count] = best
        return count + 1
    return count
