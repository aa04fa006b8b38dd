"""One posture followed along a path of poses, each step with a proof that it is the same one.

Between two poses the tip moves on a line and turns about one axis: a rotation and a travel more in
the loop, both driven by the place s. Newton's method gives solutions at both ends and in the middle
of a step, and a quadratic curve through them. Around it Krawczyk's test is made for all places of
the step at once (docs/cuik.md): with third derivatives bounded by what bounds the second ones, the
residuals and the Jacobian on the whole curve are known from those at three points,

    |K(r)| <= |Y F| + E r + |Y| (e + c k + c rho^2),    E = |I - Y J| + |Y| c k m,

where k = (V^3 + 3 V A) / 15.58 is the error of interpolation for a curve of speed V and
acceleration A. If this is less than r, exactly one solution lies within r of the curve at each
place, so it is continuous there, and two steps that share an end are of one posture if the bounds
of either are inside the region of the other at that end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kin_core.rotations import exp_so3
from kin_solvers.equations import LoopEquations, evaluate, jit, turned
from kin_solvers.isolate import Bounds, invert

__all__ = ["BUDGET", "DONE", "LIMIT", "SINGULAR", "Line", "follow"]

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: How a posture ended: at the end of the path, at a limit, where no step can be proven, by budget.
DONE, LIMIT, SINGULAR, BUDGET = 0, 1, 2, 3
#: Shortest step, as a part of the way from one pose to the next.
SHORTEST = 1e-9
#: Error of interpolation by a quadratic curve on [-1, 1]: of the third derivative.
CUBIC = 0.0642
#: What a region may turn the loop by, and what it may reach beyond limits, at most [rad].
WIDEST = 0.25
#: How far beyond a limit a posture counts as within it [rad, m].
SLACK = 1e-9
#: Newton steps, and the size of the last one [rad, m].
STEPS, LAST_STEP = 6, 1e-9


class Line(NamedTuple):
    """The way of the tip through S + 1 poses (system units).

    Attributes:
        before: Constants before the inverse of the pose in the loop, shape (3, 4).
        after: Constants behind it, shape (3, 4).
        back: Inverse of the rotation of the first pose of each part, shape (S, 3, 3).
        place: Its position, shape (S, 3).
        way: From it to that of the next, shape (S, 3).
        turn: Rotation vector to the next, in the frame of the tip, shape (S, 3).
        speed: Length of the way and of the turn, shape (S,).
    """

    before: Array
    after: Array
    back: Array
    place: Array
    way: Array
    turn: Array
    speed: Array


class Ends(NamedTuple):
    """What a posture may do: its limits, beyond every number where there is none, shape (V,)."""

    lower: Array
    upper: Array


class _Room(NamedTuple):
    """Room for one step: solutions, residuals and Jacobians at its start, middle and end."""

    x: Array
    F: Array
    J: Array
    Y: Array
    E: Array
    curve: Array
    r: Array
    w: Array
    work: Array
    start: Array


@jit
def _close(line: Line, part: int, s: float, constant: Array) -> None:
    """Write the constant that closes the loop at a place of a part of the way."""
    A, B, back = line.before, line.after, line.back[part]
    turn = exp_so3(-s * line.turn[part])
    M = np.zeros((3, 3))  # before, turn, back
    for i in range(3):
        for k in range(3):
            rest = A[i, 0] * turn[0, k] + A[i, 1] * turn[1, k] + A[i, 2] * turn[2, k]
            for j in range(3):
                M[i, j] += rest * back[k, j]
    for i in range(3):
        t = A[i, 3]
        for j in range(3):
            t += M[i, j] * (B[j, 3] - line.place[part, j] - s * line.way[part, j])
            constant[4 * i + j] = M[i, 0] * B[0, j] + M[i, 1] * B[1, j] + M[i, 2] * B[2, j]
        constant[4 * i + 3] = t


@jit
def _solve(
    line: Line, tables: LoopEquations, part: int, s: float, x: Array, F: Array, J: Array, Y: Array,
    work: Array,
) -> bool:  # fmt: skip
    """Newton's method at a place; leaves residuals, Jacobian and an inverse next to it."""
    _close(line, part, s, tables.C[-1])
    n = x.size
    came = False
    for _ in range(STEPS):
        evaluate(tables, x, F, J)
        work[:] = J
        if not invert(work, Y):
            return False
        largest = 0.0
        for i in range(n):
            step = 0.0
            for m in range(n):
                step += Y[i, m] * F[m]
            if not abs(step) < 0.5:
                return False
            x[i] -= step
            largest = max(largest, abs(step))
        if largest < LAST_STEP:
            came = True
            break
    evaluate(tables, x, F, J)
    return came and not turned(tables, x)


@jit
def _proven(bounds: Bounds, speed: float, room: _Room) -> bool:
    """Whether one posture alone lies near the curve of a step; ``room.r`` and ``room.w``: how near.

    Args:
        bounds: Of the equations.
        speed: What the tip does in half of the step.
        room: Solutions, residuals and Jacobians at the three points; Y near the inverse in the
            middle.
    """
    x, F, J, Y, E, curve, r, w = (
        room.x, room.F, room.J, room.Y, room.E, room.curve, room.r, room.w,
    )  # fmt: skip
    n = x.shape[1]
    # Error of interpolation of each equation, and half of what the loop turns by in the step.
    for m in range(n):
        v = speed
        a = 0.0
        for k in range(n):
            line = 0.5 * abs(x[2, k] - x[0, k])
            bend = abs(0.5 * (x[0, k] + x[2, k]) - x[1, k])
            v += bounds.uses[m, k] * (line + 2.0 * bend)
            a += bounds.uses[m, k] * 2.0 * bend
        if v > 1.0:
            return False
        curve[m] = CUBIC * bounds.bend[m] * (v * v * v + 3.0 * v * a)
    floor = room.start
    for i in range(n):
        ends = 0.0
        error = 0.0
        for p in range(3):
            total = 0.0
            size = 0.0
            for m in range(n):
                total += Y[i, m] * F[p, m]
                size += abs(Y[i, m]) * (1e-13 * abs(F[p, m]) + bounds.value[m])
            ends = max(ends, abs(total) + size) if p != 1 else ends
            error = abs(total) + size if p == 1 else error
        between = 0.0
        for m in range(n):
            between += abs(Y[i, m]) * curve[m]
        floor[i] = ends + 1e-300  # where the curve goes through a solution
        w[i] = ends + error + between + 1e-300
        for j in range(n):
            outer = 0.0
            inner = 0.0
            for p in range(3):
                total = 1.0 if i == j else 0.0
                size = 1e-13
                for m in range(n):
                    total -= Y[i, m] * J[p, m, j]
                    size += abs(Y[i, m]) * (1e-13 * abs(J[p, m, j]) + bounds.slope[m, j])
                if p == 1:
                    inner = abs(total) + size
                else:
                    outer = max(outer, abs(total) + size)
            more = 0.0
            for m in range(n):
                more += abs(Y[i, m]) * curve[m] * bounds.uses[m, j]
            E[i, j] = outer + inner + more
        r[i] = 2.0 * w[i] + 1e-12
    base = room.work[0]
    base[:] = w
    for _ in range(6):
        held = True
        for i in range(n):
            w[i] = _image(bounds, Y, E, r, base[i], i)
            held = held and w[i] < r[i]
        if held:
            return _within(bounds, r)
        for i in range(n):
            r[i] = max(r[i], 1.25 * w[i])
        if not _within(bounds, r):
            return False
    return False


@jit
def _image(bounds: Bounds, Y: Array, E: Array, r: Array, base: float, i: int) -> float:
    """|K(r)| of one variable."""
    total = base
    n = r.size
    for j in range(n):
        total += E[i, j] * r[j]
    for m in range(n):
        spread = 0.0
        for k in range(n):
            spread += bounds.uses[m, k] * r[k]
        total += abs(Y[i, m]) * bounds.bend[m] * spread * spread
    return total * (1.0 + 1e-12)


@jit
def _within(bounds: Bounds, r: Array) -> bool:
    """Whether a region is so small that no loop in it comes near a half turn."""
    for m in range(r.size):
        spread = 0.0
        for k in range(r.size):
            spread += bounds.uses[m, k] * r[k]
        if not spread <= WIDEST:
            return False
    return True


@jit
def _tight(bounds: Bounds, room: _Room, base: Array, result: Array) -> None:
    """How near the posture is, |K| applied again and again to what it leaves of the region."""
    n = result.size
    result[:] = room.w
    last = np.empty(n)
    for _ in range(8):
        last[:] = result
        for i in range(n):
            result[i] = min(last[i], _image(bounds, room.Y, room.E, last, base[i], i))


@jit
def _outside(ends: Ends, x: Array, near: Array) -> int:
    """The variable that may leave its limits in a step, and one more; 0 if none does."""
    for k in range(near.size):
        bulge = abs(x[0, k] - 2.0 * x[1, k] + x[2, k]) / 8.0 + near[k]
        low = min(x[0, k], x[1, k], x[2, k]) - bulge
        high = max(x[0, k], x[1, k], x[2, k]) + bulge
        if low < ends.lower[k] - SLACK or high > ends.upper[k] + SLACK:
            return k + 1
    return 0


@jit
def follow(
    line: Line, tables: LoopEquations, bounds: Bounds, ends: Ends, first: int, way: int,
    x: Array, points: Array, low: Array, high: Array, most: int, flag: IntArray,
) -> tuple[int, int, float, int]:  # fmt: skip
    """Follow the posture near a point from a pose to the first or to the last one.

    Args:
        line: The way of the tip.
        tables: The equations; the constant that closes the loop is written in place.
        bounds: Of these equations at every pose of the way.
        ends: Limits.
        first: Number of the pose at which it starts.
        way: 1 for forward, -1 for backward.
        x: A solution there, shape (V,); receives the last configuration that was reached.
        points: Receives the configuration at each pose that is reached, shape (S + 1, V).
        low: Receives what it is at least in each part of the way, shape (S, V).
        high: Receives what it is at most, shape (S, V).
        most: Steps that may be tried.
        flag: Not zero when the work is to end.

    Returns:
        The last pose that was reached, how it ended, where (a place from 0 to S), and the variable
        that left its limits.
    """
    n = x.size
    parts = line.speed.size
    room = _Room(
        np.empty((3, n)), np.empty((3, n)), np.empty((3, n, n)), np.empty((n, n)),
        np.empty((n, n)), np.empty(n), np.empty(n), np.empty(n), np.empty((n, n)), np.empty(n),
    )  # fmt: skip
    Y = np.empty((n, n))
    tight, near = np.empty(n), np.empty(n)
    known, known_near = np.empty(n), np.empty(n)  # region and bound at the end of the last step
    slope = np.zeros(n)  # of the last curve at its end, for each unit of s
    pose, tried, step = first, 0, 1.0
    fresh = True  # no step has been proven yet
    while 0 <= (pose if way > 0 else pose - 1) < parts:
        part = pose if way > 0 else pose - 1
        s = 0.0 if way > 0 else 1.0
        if fresh and not _solve(line, tables, part, s, x, room.F[0], room.J[0], Y, room.work):
            return pose, SINGULAR, float(pose), -1
        _close(line, part, s, tables.C[-1])
        evaluate(tables, x, room.F[0], room.J[0])
        points[pose] = x
        low[part] = x
        high[part] = x
        while (s < 1.0) if way > 0 else (s > 0.0):
            if tried >= most or flag[0] != 0:
                return pose, BUDGET, part + s, -1
            tried += 1
            left = 1.0 - s if way > 0 else s
            step = min(step, left)
            end = (1.0 if way > 0 else 0.0) if step == left else s + way * step
            room.x[0] = x
            for k in range(n):
                room.x[1, k] = x[k] + 0.5 * (end - s) * slope[k]
            middle = 0.5 * (s + end)
            good = _solve(
                line, tables, part, middle, room.x[1], room.F[1], room.J[1], room.Y, room.work
            )
            if good:
                for k in range(n):
                    bend = room.x[1, k] - x[k] - 0.5 * (end - s) * slope[k]
                    if fresh:
                        room.x[2, k] = 2.0 * room.x[1, k] - x[k]
                    else:
                        room.x[2, k] = x[k] + (end - s) * slope[k] + 4.0 * bend
                good = _solve(
                    line, tables, part, end, room.x[2], room.F[2], room.J[2], Y, room.work
                )
            good = good and _proven(bounds, 0.5 * step * line.speed[part], room)
            if good:
                # At its ends the curve goes through solutions: is it the posture of the last step?
                _tight(bounds, room, room.start, tight)
                _tight(bounds, room, room.work[0], near)
                if not fresh:
                    inside = True
                    other = True
                    for k in range(n):
                        inside = inside and tight[k] <= known[k]
                        other = other and known_near[k] <= room.r[k]
                    good = inside or other
            leaving = 0
            if good:
                leaving = _outside(ends, room.x, near)
            if not good or leaving > 0:
                if step <= SHORTEST:
                    kind = LIMIT if leaving > 0 else SINGULAR
                    return pose, kind, part + s, leaving - 1
                step = max(0.5 * step, SHORTEST)
                continue
            for k in range(n):
                bulge = abs(room.x[0, k] - 2.0 * room.x[1, k] + room.x[2, k]) / 8.0 + near[k]
                for p in range(3):
                    low[part, k] = min(low[part, k], room.x[p, k] - bulge)
                    high[part, k] = max(high[part, k], room.x[p, k] + bulge)
                slope[k] = (room.x[0, k] - 4.0 * room.x[1, k] + 3.0 * room.x[2, k]) / (end - s)
            known[:] = room.r
            known_near[:] = tight
            x[:] = room.x[2]
            room.F[0] = room.F[2]
            room.J[0] = room.J[2]
            fresh = False
            s = end
            step = 2.0 * step
        pose += way
        points[pose] = x
    return pose, DONE, float(pose), -1
