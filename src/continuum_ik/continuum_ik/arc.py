"""Past singular places of a path: the curve of solutions is followed by its own length.

Over the path the solutions (y, s) form a curve; s is the part of the path. Where the Jacobian J is
nearly singular, y changes fast with s and steps in s come to nothing, but the curve itself is
smooth. So both change here, with one more equation that keeps the correction across the direction t
of the curve:

    J dy + f_s ds = r,    t . (dy, ds) = 0.

The rods are eliminated as always; seven equations are left, six of the platform and this one. They
stay regular at a fold. What the place is, is read off the curve, never from a step that failed:

- The curve turns back, t_s < 0: a fold. Beyond it there is no solution that is connected.
- t_s stays positive: the curve only bends sharply, and the path goes on with it.
- The determinant of these equations changes its sign although the direction goes on: along one
  smooth curve it cannot, so two branches cross, or nearly so. The step is halved, to see the bend
  between them, until it is shorter than CROSSING; then the branches are taken for crossing, and the
  path goes on straight.
- The direction turns and the sign stays: a bend, or the step has left one branch for another that
  crosses it. The turn of a bend shrinks with the step, as its curvature stays; that of a corner
  between two branches stays, as its curvature doubles with each halving. So a turn counts only if
  its curvature is known from the step before or from the longer step that was refused.

Lengths along the curve are measured in the scaled unknowns and, beside them, in the length of the
path as part of the robot's size, so that they do not depend on how the path was cut.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from continuum_ik.equations import (
    clear_column,
    evaluate,
    factorise_signed,
    invert6,
    pivot_row,
    plan_steps,
    pose_column,
    scale_rows,
    unit,
)
from continuum_ik.layout import PLATFORM, STEPS_MAX
from continuum_ik.newton import correct
from continuum_ik.path import (
    add,
    difference,
    lengths_positive,
    load,
    path_length,
    pose_between,
    scaled,
    store,
)
from continuum_ik.rod import KERNEL, LANES, RODS, Array, Record

#: Weight of the path's length, as part of the robot's size, beside the scaled unknowns.
WEIGHT = 20.0
#: Largest step, and the smallest one, below which nothing is smooth.
STEP_MAX, STEP_MIN = 1.0, 1e-8
#: Largest step on which branches are taken for crossing: some 10 um of a path of 0.4 m.
CROSSING = 5e-4
#: Steps up to which Jacobians are made of fine differences.
CLOSE = 0.05
#: Largest turn of the direction in one step, and one below which steps grow [rad].
TURN, STRAIGHT = 0.2, 0.06
#: Curvature that needs no witness; how many times that of the last step it may be, and that of a
#: longer step that was refused; and a turn that rounding alone may make [rad].
BENT, GROWN, SEEN, NOISE = 0.5, 2.0, 1.3, 1e-3
#: Largest turn of the direction across a place where branches cross [rad].
ACROSS = 0.05
#: Largest first correction beside the step, what later ones may be, and the last one.
FIRST, LATER, LAST = 0.3, 0.1, 1e-7
CORRECTIONS = 5
#: Most steps of one passage, and how many narrow steps one of them makes when it is over.
ARC_STEPS, WIDE = 2000, 4.0
#: Narrow steps after which it is over in any case: where rods are tense, the steps of a path are
#: short although no singular point is near, and what is reached must be noted on the way.
LONG = 16.0
#: Most steps of all passages of one path: each costs some 0.1 ms, so that a path has its end.
ARC_BUDGET = 20_000

# How a passage ended.
PASSED, ARRIVED, TURNED, LOST = 0, 1, 2, 3


@njit(**KERNEL)
def _part_scale(w: Record) -> float:
    """Return what a unit of the path counts."""
    return max(WEIGHT * path_length(w) / w.L, 1e-100)


@njit(**KERNEL)
def _dot(w: Record, a: Array, a_s: float, b: Array, b_s: float) -> float:
    """Return the product of two changes (dy, ds)."""
    total = a_s * b_s * _part_scale(w) ** 2
    for r in range(6):
        scale = (1.0 / unit(w, r)) ** 2
        for i in range(RODS):
            total += a[r, i] * b[r, i] * scale
    return total


@njit(**KERNEL)
def _by_part(w: Record) -> None:
    """Fill by_part: how the residual changes along the path, rods as shot. Destroys residual."""
    w.by_part[:] = 0.0
    for j in range(6):
        pose_column(w, j)
        add(w.by_part, w.twist[j], w.residual)


@njit(**KERNEL)
def _rods_alone(w: Record, rho: Array, out: Array, g: Array) -> None:
    """Solve the rods' equations for a residual with the free unknowns at rest.

    Args:
        w: The solver.
        rho: The residual, (6, 8).
        out: Filled with the unknowns, (6, 8).
        g: (6), filled with what is left for the platform.
    """
    for r in range(6):
        g[r] = rho[PLATFORM, r]
    out[:] = 0.0
    for i in range(RODS):
        for k in range(5):
            for r in range(6):
                g[r] -= w.W[r, k, i] * rho[k, i]
                out[r, i] += w.V[r, k, i] * rho[k, i]


@njit(**KERNEL)
def _solve_seven(A: Array) -> float:
    """Solve (7, 8) by elimination with row pivoting; the answer is the last column.

    Returns:
        The sign of the determinant, 0 if it is singular.
    """
    if not scale_rows(A, 7):
        return 0.0
    sign = 1.0
    for k in range(7):
        exchanged = pivot_row(A, k)
        if exchanged == 0.0:
            return 0.0
        sign *= exchanged if A[k, k] > 0.0 else -exchanged
        clear_column(A, k, k)
    return sign


@njit(**KERNEL)
def _bordered(w: Record, along: float) -> tuple[float, float]:
    """Set delta to dy of J dy + f_s ds = residual, t . (dy, ds) = along.

    Returns:
        ds, and the sign of the seven equations' determinant (0: singular).
    """
    A = np.zeros((7, 8))
    g, h = np.zeros(6), np.zeros(6)
    own, other = w.own_rest, w.own_part
    _rods_alone(w, w.residual, own, g)
    _rods_alone(w, w.by_part, other, h)
    for r in range(6):
        for i in range(6):
            A[r, i] = w.schur[r, i]
        A[r, 6], A[r, 7] = h[r], g[r]
    A[6, 6], A[6, 7] = w.arc_side * _part_scale(w) ** 2, along
    for r in range(6):
        scale = (1.0 / unit(w, r)) ** 2
        for i in range(RODS):
            t = w.direction[r, i] * scale
            A[6, i] += t * w.U[r, i]
            A[6, 6] -= t * other[r, i]
            A[6, 7] -= t * own[r, i]
    sign = _solve_seven(A)
    ds = A[6, 7]
    for r in range(6):
        for i in range(LANES):
            free = A[i, 7] if i < RODS else 0.0
            w.delta[r, i] = own[r, i] - other[r, i] * ds + w.U[r, i] * free
    return ds, sign


@njit(**KERNEL)
def _factors(w: Record, h: float) -> float:
    """Make the factors at the present point; returns the sign of the rods' part, or 0.

    Where branches cross, at a distance r, an error e of the Jacobian turns the direction by e / r.
    One-sided differences have errors of up to 1e-5, fine ones of 1e-11.

    Args:
        w: The solver.
        h: Step of the arc; short ones are made near such places.
    """
    sign = factorise_signed(w, h <= CLOSE)
    sound = sign != 0.0 and invert6(w.schur, w.schur_inv)
    w.age = 0 if sound else -1
    return sign


@njit(**KERNEL)
def _turn_to(w: Record, sign: float) -> tuple[float, float]:
    """Set next_direction to the unit tangent at the present point, by the factors at hand.

    Args:
        w: The solver; direction says which way is forward.
        sign: What ``_factors`` returned.

    Returns:
        Its component along the path, and the sign of the whole determinant (0: none).
    """
    _by_part(w)
    w.residual[:] = 0.0
    ds, seven = _bordered(w, 1.0)
    size = math.sqrt(_dot(w, w.delta, ds, w.delta, ds))
    if seven == 0.0 or not size < 1e200:
        return 0.0, 0.0
    for r in range(6):
        for i in range(LANES):
            w.next_direction[r, i] = w.delta[r, i] / size
    return ds / size, sign * seven


@njit(**KERNEL)
def _arc_step(w: Record, h: float) -> bool:
    """Predict along direction from arc_start, and correct; the new point is at arc_part.

    Returns:
        Whether the corrections stayed small; factors are then at hand.
    """
    part = w.arc_part + h * w.arc_side
    y = w.rods.y
    w.rods.y = w.arc_start
    add(y, h, w.direction)
    for k in range(CORRECTIONS):
        pose_between(w, part)
        plan_steps(w)
        if h <= CLOSE:
            w.steps = min(2 * w.steps, STEPS_MAX)
        if not evaluate(w) < 1e12:
            return False
        w.saved = w.residual
        if _factors(w, h) == 0.0:
            return False
        _by_part(w)
        w.residual = w.saved
        ds, sign = _bordered(w, 0.0)
        size = math.sqrt(_dot(w, w.delta, ds, w.delta, ds))
        if sign == 0.0 or not size <= (FIRST if k == 0 else LATER) * h + LAST:
            return False
        add(y, -1.0, w.delta)
        part -= ds
        if size <= LAST:
            w.arc_part = part
            pose_between(w, part)
            return True
    return False


@njit(**KERNEL)
def _start(w: Record, part: float) -> float:
    """Begin at the entry anchor, ``part`` of the path; returns the sign there (0: singular)."""
    load(w, w.anchor)
    w.arc_start = w.rods.y
    w.direction[:] = 0.0
    w.arc_part, w.arc_side = part, 1.0 / _part_scale(w)
    sign = _factors(w, 0.0)
    if sign == 0.0:
        return 0.0
    w.arc_side, sign = _turn_to(w, sign)
    w.direction = w.next_direction
    return sign


@njit(**KERNEL)
def _turned(w: Record, side: float) -> float:
    """Return the angle between direction and next_direction [rad]; destroys delta.

    Args:
        w: The solver.
        side: Component of next_direction along the path.
    """
    difference(w.next_direction, w.direction, w.delta)
    across = side - w.arc_side
    return math.sqrt(_dot(w, w.delta, across, w.delta, across))


@njit(**KERNEL)
def _goes_on(same: bool, turn: float, h: float, known: float) -> bool:
    """Whether the curve goes on at the end of a step.

    Args:
        same: Whether the sign of the determinant is the same; otherwise branches cross.
        turn: Of the direction [rad].
        h: Length of the step.
        known: Curvature that has its witness.
    """
    if same:
        return turn <= min(TURN, (BENT + known) * h + NOISE)
    return h <= CROSSING and turn <= ACROSS


@njit(**KERNEL)
def _land(w: Record, goal: float, sign: float, known: float) -> bool:
    """Try to arrive: solve at the part ``goal`` of the path from the present direction.

    True with the solution in the unknowns, if it lies on the curve.
    """
    h = (goal - w.arc_part) / w.arc_side
    w.rods.y = w.arc_start
    add(w.rods.y, h, w.direction)
    pose_between(w, goal)
    if not correct(w, LATER * h * scaled(w, w.direction) + LAST, LAST):
        return False
    at = _factors(w, h)
    if at == 0.0:
        return False
    side, now = _turn_to(w, at)
    return now != 0.0 and side > 0.0 and _goes_on(now == sign, _turned(w, side), h, known)


@njit(**KERNEL)
def pass_by_arc(w: Record, part: float, goal: float, step: float, narrow: float) -> int:
    """Follow the curve from the entry anchor past a place where steps of the path come to nothing.

    Args:
        w: The solver, fine rules in force. On return anchor is the last point.
        part: Of the path that anchor lies at; on return arc_part is where the last point lies.
        goal: Part of the path at which to stop; 1 is its end.
        step: Of the path that is too long.
        narrow: Of the path; one step has to make several times that for the passage to be over.

    Returns:
        PASSED, ARRIVED (with the solution at ``goal``), TURNED (a fold; arc_part is where) or LOST.
        direction is the curve's at the last point.
    """
    sign = _start(w, part)
    if sign == 0.0:
        return LOST
    h, known = min(STEP_MAX, step / w.arc_side), 0.0
    for _ in range(ARC_STEPS):
        if w.arc_left <= 0:
            return LOST
        w.arc_left -= 1
        w.substeps += 1
        before = w.arc_part
        if before + h * w.arc_side >= goal:
            if _land(w, goal, sign, known):
                return ARRIVED
            h = min(h, 0.7 * (goal - before) / w.arc_side)
        good = _arc_step(w, h) and w.arc_part < goal and lengths_positive(w)
        side, now, turn = 0.0, 0.0, 0.0
        if good:
            side, now = _turn_to(w, _factors(w, h))
            turn = _turned(w, side)
            good = now != 0.0 and _goes_on(now == sign, turn, h, known)
            if not good and now == sign:
                known = max(known, SEEN * turn / h)
        if not good:
            w.arc_part = before
            h *= 0.5
            if h < STEP_MIN:
                return LOST
            continue
        if side <= 0.0:
            w.arc_part = max(before, w.arc_part)
            return TURNED
        w.direction, w.arc_start = w.next_direction, w.rods.y
        w.arc_side, sign = side, now
        known = GROWN * turn / h
        store(w, w.anchor)
        gone = w.arc_part - part
        if gone >= WIDE * narrow and (h * side >= WIDE * narrow or gone >= LONG * narrow):
            return PASSED
        if turn <= STRAIGHT:
            h = min(STEP_MAX, 1.6 * h)
    return LOST


__all__ = ["ARC_BUDGET", "ARRIVED", "LOST", "PASSED", "TURNED", "pass_by_arc"]
