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

Lengths along the curve are measured in the scaled unknowns and, beside them, in the length of the
path as part of the robot's size, so that they do not depend on how the path was cut.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from continuum_ik import layout as m
from continuum_ik.equations import (
    choose_steps,
    evaluate,
    factorise_signed,
    invert6,
    plan_steps,
    pose_column,
)
from continuum_ik.newton import correct
from continuum_ik.path import load, path_length, pose_between, scaled, store
from continuum_ik.rod import KERNEL, LENGTH, Array

#: Weight of the path's length, as part of the robot's size, beside the scaled unknowns.
WEIGHT = 20.0
#: Largest step, and the smallest one, below which nothing is smooth.
STEP_MAX, STEP_MIN = 1.0, 1e-8
#: Largest step on which branches are taken for crossing: some 10 um of a path of 0.4 m.
CROSSING = 5e-4
#: Largest turn of the direction in one step, and one below which steps grow (cosines).
TURN, STRAIGHT = math.cos(0.2), math.cos(0.06)
#: Largest first correction beside the step, what later ones may be, and the last one.
FIRST, LATER, LAST = 0.3, 0.1, 1e-7
CORRECTIONS = 5
#: Most steps of one passage, and how many narrow steps one of them makes when it is over.
ARC_STEPS, WIDE = 2000, 4.0
#: Narrow steps after which it is over in any case: where rods are tense, the steps of a path are
#: short although no singular point is near, and what is reached must be noted on the way.
LONG = 16.0
#: Most steps of all passages of one path: each costs some 0.1 ms, so that a path has its end.
ARC_BUDGET = 20_000.0

# How a passage ended.
PASSED, ARRIVED, TURNED, LOST = 0, 1, 2, 3


@njit(**KERNEL)
def _scale(w: Array, row: int) -> float:
    """Return the unit of a row of the unknowns, inverted."""
    L = w[m.LENGTH_TYPICAL]
    return L * L / w[m.EI_TYPICAL] if row < 3 else (L / w[m.EI_TYPICAL] if row < 5 else 1.0 / L)


@njit(**KERNEL)
def _part_scale(w: Array) -> float:
    """Return what a unit of the path counts."""
    return max(WEIGHT * path_length(w) / w[m.LENGTH_TYPICAL], 1e-100)


@njit(**KERNEL)
def _norm(w: Array, at: int, ds: float) -> float:
    """Return the length of the change (48 numbers at ``at``, ds)."""
    total = (ds * _part_scale(w)) ** 2
    for row in range(6):
        scale = _scale(w, row)
        for i in range(m.RODS):
            total += (w[at + 8 * row + i] * scale) ** 2
    return math.sqrt(total)


@njit(**KERNEL)
def _dot(w: Array, a: int, a_s: float, b: int, b_s: float) -> float:
    """Return the product of two changes."""
    total = a_s * b_s * _part_scale(w) ** 2
    for row in range(6):
        scale = _scale(w, row) ** 2
        for i in range(m.RODS):
            total += w[a + 8 * row + i] * w[b + 8 * row + i] * scale
    return total


@njit(**KERNEL)
def _by_part(w: Array) -> None:
    """Fill BY_PART: how the residual changes along the path, rods as shot. Destroys RESIDUAL."""
    for k in range(m.UNKNOWNS):
        w[m.BY_PART + k] = 0.0
    for j in range(6):
        pose_column(w, j)
        for k in range(m.UNKNOWNS):
            w[m.BY_PART + k] += w[m.TWIST + j] * w[m.RESIDUAL + k]


@njit(**KERNEL)
def _rods_alone(w: Array, at: int, to: int, g: Array) -> None:
    """Solve the rods' equations for the residual at ``at`` with the free unknowns at rest.

    Args:
        w: The solver's array.
        at: A residual, 48 numbers.
        to: Filled with the unknowns, 48 numbers.
        g: (6), filled with what is left for the platform.
    """
    for r in range(6):
        g[r] = w[at + 40 + r]
    for k in range(m.UNKNOWNS):
        w[to + k] = 0.0
    for i in range(m.RODS):
        for k in range(5):
            rho = w[at + 8 * k + i]
            for r in range(6):
                g[r] -= w[m.W + (5 * r + k) * 8 + i] * rho
                w[to + 8 * r + i] += w[m.V + (5 * r + k) * 8 + i] * rho


@njit(**KERNEL)
def _solve_seven(A: Array) -> float:
    """Solve (7, 8) by elimination with row pivoting; the answer is the last column.

    Returns:
        The sign of the determinant, 0 if it is singular.
    """
    sign = 1.0
    for r in range(7):
        size = 0.0
        for c in range(7):
            size = max(size, abs(A[r, c]))
        if not (size > 0.0 and size < 1e300):
            return 0.0
        for c in range(8):
            A[r, c] /= size
    for k in range(7):
        p = k
        for r in range(k + 1, 7):
            if abs(A[r, k]) > abs(A[p, k]):
                p = r
        if not abs(A[p, k]) > 1e-15:
            return 0.0
        if p != k:
            sign = -sign
            for c in range(8):
                A[p, c], A[k, c] = A[k, c], A[p, c]
        if A[k, k] < 0.0:
            sign = -sign
        inv = 1.0 / A[k, k]
        for c in range(k, 8):
            A[k, c] *= inv
        for r in range(7):
            if r != k:
                f = A[r, k]
                for c in range(k, 8):
                    A[r, c] -= f * A[k, c]
    return sign


@njit(**KERNEL)
def _bordered(w: Array, along: float) -> tuple[float, float]:
    """Set DELTA to dy of J dy + f_s ds = RESIDUAL, t . (dy, ds) = along.

    Returns:
        ds, and the sign of the seven equations' determinant (0: singular).
    """
    A = np.zeros((7, 8))
    g, h = np.zeros(6), np.zeros(6)
    own, other = m.PARTICULAR, m.PARTICULAR + m.UNKNOWNS
    _rods_alone(w, m.RESIDUAL, own, g)
    _rods_alone(w, m.BY_PART, other, h)
    for r in range(6):
        for i in range(6):
            A[r, i] = w[m.SCHUR + 6 * r + i]
        A[r, 6], A[r, 7] = h[r], g[r]
    A[6, 6], A[6, 7] = w[m.ARC_SIDE] * _part_scale(w) ** 2, along
    for row in range(6):
        scale = _scale(w, row) ** 2
        for i in range(m.RODS):
            t = w[m.DIRECTION + 8 * row + i] * scale
            A[6, i] += t * w[m.U + 8 * row + i]
            A[6, 6] -= t * w[other + 8 * row + i]
            A[6, 7] -= t * w[own + 8 * row + i]
    sign = _solve_seven(A)
    ds = A[6, 7]
    for row in range(6):
        for i in range(m.RODS):
            k = 8 * row + i
            w[m.DELTA + k] = w[own + k] - w[other + k] * ds + w[m.U + k] * A[i, 7]
        w[m.DELTA + 8 * row + 6], w[m.DELTA + 8 * row + 7] = 0.0, 0.0
    return ds, sign


@njit(**KERNEL)
def _factors(w: Array) -> float:
    """Make the factors at the present point; returns the sign of the rods' part, or 0."""
    sign = factorise_signed(w, choose_steps(w, m.COARSE_X2))
    sound = sign != 0.0 and invert6(w, m.SCHUR, m.SCHUR_INV)
    w[m.AGE] = 0.0 if sound else -1.0
    return sign


@njit(**KERNEL)
def _turn_to(w: Array, sign: float) -> tuple[float, float]:
    """Set NEXT_DIRECTION to the unit tangent at the present point, by the factors at hand.

    Args:
        w: The solver's array; DIRECTION says which way is forward.
        sign: What ``_factors`` returned.

    Returns:
        Its component along the path, and the sign of the whole determinant (0: none).
    """
    _by_part(w)
    for k in range(m.RESIDUAL, m.PLATFORM_RESIDUAL + 8):
        w[k] = 0.0
    ds, seven = _bordered(w, 1.0)
    size = _norm(w, m.DELTA, ds)
    if seven == 0.0 or not size < 1e200:
        return 0.0, 0.0
    for k in range(m.UNKNOWNS):
        w[m.NEXT_DIRECTION + k] = w[m.DELTA + k] / size
    return ds / size, sign * seven


@njit(**KERNEL)
def _arc_step(w: Array, h: float) -> bool:
    """Predict along DIRECTION from ARC_START, and correct; POSE, Y and ARC_PART are the new point.

    Returns:
        Whether the corrections stayed small; factors are then at hand.
    """
    part = w[m.ARC_PART] + h * w[m.ARC_SIDE]
    for k in range(m.UNKNOWNS):
        w[m.Y + k] = w[m.ARC_START + k] + h * w[m.DIRECTION + k]
    for k in range(CORRECTIONS):
        pose_between(w, part)
        w[m.STEPS] = float(plan_steps(w))
        if not evaluate(w) < 1e12:
            return False
        for j in range(m.UNKNOWNS):
            w[m.SAVED + j] = w[m.RESIDUAL + j]
        if _factors(w) == 0.0:
            return False
        _by_part(w)
        for j in range(m.UNKNOWNS):
            w[m.RESIDUAL + j] = w[m.SAVED + j]
        ds, sign = _bordered(w, 0.0)
        size = _norm(w, m.DELTA, ds)
        if sign == 0.0 or not size <= (FIRST if k == 0 else LATER) * h + LAST:
            return False
        for j in range(m.UNKNOWNS):
            w[m.Y + j] -= w[m.DELTA + j]
        part -= ds
        if size <= LAST:
            w[m.ARC_PART] = part
            pose_between(w, part)
            return True
    return False


@njit(**KERNEL)
def _start(w: Array, part: float) -> float:
    """Begin at the entry ANCHOR, ``part`` of the path; returns the sign there (0: singular)."""
    load(w, m.ANCHOR)
    for k in range(m.UNKNOWNS):
        w[m.ARC_START + k] = w[m.Y + k]
        w[m.DIRECTION + k] = 0.0
    w[m.ARC_PART], w[m.ARC_SIDE] = part, 1.0 / _part_scale(w)
    sign = _factors(w)
    if sign == 0.0:
        return 0.0
    side, sign = _turn_to(w, sign)
    for k in range(m.UNKNOWNS):
        w[m.DIRECTION + k] = w[m.NEXT_DIRECTION + k]
    w[m.ARC_SIDE] = side
    return sign


@njit(**KERNEL)
def _land(w: Array, goal: float, sign: float) -> bool:
    """Try to arrive: solve at the part ``goal`` of the path from the present direction.

    True with the solution in Y, if it lies on the curve.
    """
    h = (goal - w[m.ARC_PART]) / w[m.ARC_SIDE]
    for k in range(m.UNKNOWNS):
        w[m.Y + k] = w[m.ARC_START + k] + h * w[m.DIRECTION + k]
        w[m.DELTA + k] = h * w[m.DIRECTION + k]
    pose_between(w, goal)
    if not correct(w, LATER * scaled(w, m.DELTA) + LAST, LAST):
        return False
    at = _factors(w)
    if at == 0.0:
        return False
    side, now = _turn_to(w, at)
    return (now == sign or h <= CROSSING) and side > 0.0 and _goes_on(w, side)


@njit(**KERNEL)
def _goes_on(w: Array, side: float) -> bool:
    """Whether NEXT_DIRECTION differs little from DIRECTION."""
    return _dot(w, m.NEXT_DIRECTION, side, m.DIRECTION, w[m.ARC_SIDE]) >= TURN


@njit(**KERNEL)
def pass_by_arc(w: Array, part: float, goal: float, step: float, narrow: float) -> int:
    """Follow the curve from the entry ANCHOR past a place where steps of the path come to nothing.

    Args:
        w: The solver's array, fine rules in force. On return ANCHOR is the last point.
        part: Of the path that ANCHOR lies at; on return ARC_PART is where the last point lies.
        goal: Part of the path at which to stop; 1 is its end.
        step: Of the path that is too long.
        narrow: Of the path; one step has to make several times that for the passage to be over.

    Returns:
        PASSED, ARRIVED (Y is the solution at ``goal``), TURNED (a fold; ARC_PART is where) or LOST.
        DIRECTION is the curve's at the last point.
    """
    sign = _start(w, part)
    if sign == 0.0:
        return LOST
    h = min(STEP_MAX, step / w[m.ARC_SIDE])
    for _ in range(ARC_STEPS):
        if w[m.ARC_LEFT] <= 0.0:
            return LOST
        w[m.ARC_LEFT] -= 1.0
        w[m.SUBSTEPS] += 1.0
        before = w[m.ARC_PART]
        if before + h * w[m.ARC_SIDE] >= goal:
            if _land(w, goal, sign):
                return ARRIVED
            h = min(h, 0.7 * (goal - before) / w[m.ARC_SIDE])
        good = _arc_step(w, h) and w[m.ARC_PART] < goal and _positive(w)
        side, now = 0.0, 0.0
        if good:
            side, now = _turn_to(w, _factors(w))
            good = now != 0.0 and _goes_on(w, side) and (now == sign or h <= CROSSING)
        if not good:
            w[m.ARC_PART] = before
            h *= 0.5
            if h < STEP_MIN:
                return LOST
            continue
        if side <= 0.0:
            w[m.ARC_PART] = max(before, w[m.ARC_PART])
            return TURNED
        straight = _dot(w, m.NEXT_DIRECTION, side, m.DIRECTION, w[m.ARC_SIDE]) >= STRAIGHT
        for k in range(m.UNKNOWNS):
            w[m.DIRECTION + k] = w[m.NEXT_DIRECTION + k]
            w[m.ARC_START + k] = w[m.Y + k]
        w[m.ARC_SIDE], sign = side, now
        store(w, m.ANCHOR)
        gone = w[m.ARC_PART] - part
        if gone >= WIDE * narrow and (h * side >= WIDE * narrow or gone >= LONG * narrow):
            return PASSED
        if straight:
            h = min(STEP_MAX, 1.6 * h)
    return LOST


@njit(**KERNEL)
def _positive(w: Array) -> bool:
    shortest = 1.0
    for i in range(m.RODS):
        shortest = min(shortest, w[LENGTH + i])
    return shortest > 0.0


__all__ = ["ARC_BUDGET", "ARRIVED", "LOST", "PASSED", "TURNED", "pass_by_arc"]
