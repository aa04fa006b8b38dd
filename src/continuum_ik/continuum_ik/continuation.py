"""Solving far from the last solution: damped Newton along a path in SE(3).

The pose moves from a solved one to the target, position on a straight line and rotation about a
fixed axis. Each step predicts with the tangents and corrects with damped Newton steps; it counts
only if the correction stays small beside the prediction, so that the path cannot slip to another
branch of solutions. Steps grow by 1.7 and halve on failure; a step that underflows means a fold.
"""

from __future__ import annotations

import math

from numba import njit

from continuum_ik import layout as m
from continuum_ik.equations import (
    aim,
    choose_steps,
    evaluate,
    factorise,
    leg_error,
    plan_steps,
    solve_linear,
    tangents,
)
from continuum_ik.pose import turn
from continuum_ik.reasons import (
    BENT_TOO_MUCH,
    FOLD,
    FORCE_TOO_LARGE,
    NONE,
    STALLED,
    TOO_LONG,
    TOO_SHORT,
)
from continuum_ik.rod import (
    INV_EI,
    KERNEL,
    LENGTH,
    M_X,
    M_Y,
    N_X,
    N_Y,
    N_Z,
    SHEAR_C,
    T_X,
    T_Y,
    T_Z,
    U_MIN,
    Array,
    shoot,
)

GROW, SHRINK = 1.7, 0.5
SUBSTEPS_MAX = 600
#: Largest correction beside the prediction, and largest prediction, in the scaled unknowns.
CORRECTION, PREDICTION = 0.3, 4.0
NEWTON_STEPS, HALVINGS = 8, 3


@njit(**KERNEL)
def scaled(w: Array, at: int) -> float:
    """Return the largest of the 48 numbers at ``at`` in the scales of the robot."""
    L = w[m.LENGTH_TYPICAL]
    per_force = L * L / w[m.EI_TYPICAL]
    per_moment = L / w[m.EI_TYPICAL]
    worst = 0.0
    for i in range(m.LANES):
        force = max(abs(w[at + i]), abs(w[at + 8 + i]), abs(w[at + 16 + i])) * per_force
        moment = max(abs(w[at + 24 + i]), abs(w[at + 32 + i])) * per_moment
        worst = max(worst, force, moment, abs(w[at + 40 + i]) / L)
    return worst


@njit(**KERNEL)
def largest_rod(w: Array, at: int) -> int:
    """Return the rod with the largest of the 48 numbers at ``at``, scaled."""
    L = w[m.LENGTH_TYPICAL]
    per_force = L * L / w[m.EI_TYPICAL]
    per_moment = L / w[m.EI_TYPICAL]
    worst, rod = -1.0, 0
    for i in range(m.RODS):
        size = 0.0
        for k in range(6):
            scale = per_force if k < 3 else (per_moment if k < 5 else 1.0 / L)
            size = max(size, abs(w[at + 8 * k + i]) * scale)
        if size > worst:
            worst, rod = size, i
    return rod


@njit(**KERNEL)
def store(w: Array, at: int) -> None:
    """Copy unknowns and pose to the entry at ``at``."""
    for k in range(m.UNKNOWNS):
        w[at + k] = w[m.Y + k]
    for k in range(12):
        w[at + m.ENTRY_POSE + k] = w[m.POSE + k]


@njit(**KERNEL)
def load(w: Array, at: int) -> None:
    """Copy unknowns and pose from the entry at ``at``, and aim at that pose."""
    for k in range(m.UNKNOWNS):
        w[m.Y + k] = w[at + k]
    for k in range(12):
        w[m.POSE + k] = w[at + m.ENTRY_POSE + k]
    aim(w)


@njit(**KERNEL)
def copy_entry(w: Array, source: int, to: int) -> None:
    """Copy one entry to another."""
    for k in range(m.ENTRY):
        w[to + k] = w[source + k]


@njit(**KERNEL)
def linearise(w: Array) -> bool:
    """Make Jacobian, factors and tangents at the present unknowns and pose."""
    w[m.AGE] = 0.0
    if factorise(w, choose_steps(w, m.COARSE_TABLE)):
        tangents(w)
        return True
    w[m.AGE] = -1.0
    return False


@njit(**KERNEL)
def correct(w: Array, furthest: float) -> bool:
    """Solve for the present pose from the present unknowns by damped Newton steps.

    Args:
        w: The solver's array; on success Y is a certified point and DELTA its polishing step.
        furthest: Largest change of the scaled unknowns in all; beyond it the solution found would
            not be the one that was predicted.
    """
    for k in range(m.UNKNOWNS):
        w[m.TRIAL + k] = w[m.Y + k]
    w[m.STEPS] = float(plan_steps(w))
    now = evaluate(w)
    fresh = False
    for _ in range(NEWTON_STEPS):
        if not now < 1e12:
            return False
        if not fresh:
            for k in range(46):
                w[m.SAVED + k] = w[m.RESIDUAL + k]
            if not factorise(w, choose_steps(w, m.COARSE_TABLE)):
                return False
            for k in range(46):
                w[m.RESIDUAL + k] = w[m.SAVED + k]
        solve_linear(w)
        if now <= w[m.ACCEPT] and leg_error(w) <= w[m.LEG_TOLERANCE]:
            return True
        # Halve the step until the residual falls.
        part = 1.0
        previous = now
        for k in range(m.UNKNOWNS):
            w[m.SAVED_STEP + k] = w[m.DELTA + k]
            w[m.Y + k] -= w[m.DELTA + k]
        w[m.STEPS] = float(plan_steps(w))
        now = evaluate(w)
        for _ in range(HALVINGS):
            if now < previous:
                break
            part *= 0.5
            for k in range(m.UNKNOWNS):
                w[m.Y + k] += part * w[m.SAVED_STEP + k]
            now = evaluate(w)
        if not now < previous:
            return False
        for k in range(m.UNKNOWNS):
            w[m.DELTA + k] = w[m.Y + k] - w[m.TRIAL + k]
        if scaled(w, m.DELTA) > furthest:
            return False
        # While a step leaves less than a hundredth of the residual, the Jacobian is good enough.
        fresh = now < 1e-4 * previous
    return False


@njit(**KERNEL)
def violated(w: Array) -> int:
    """Return the first limit that the present unknowns break, or NONE; sets LIMITING."""
    for i in range(m.RODS):
        if not w[LENGTH + i] >= w[m.LENGTH_MIN]:
            w[m.LIMITING] = float(i)
            return TOO_SHORT
        if not w[LENGTH + i] <= w[m.LENGTH_MAX]:
            w[m.LIMITING] = float(i)
            return TOO_LONG
    limit, bend = w[m.FORCE_MAX] ** 2, w[m.CURVATURE_MAX] ** 2
    for i in range(m.RODS):
        nx, ny, nz = w[N_X + i], w[N_Y + i], w[N_Z + i]
        n2 = nx * nx + ny * ny + nz * nz
        if not n2 <= limit:
            w[m.LIMITING] = float(i)
            return FORCE_TOO_LARGE
        # Along a rod |m|^2/2EI + n.t + c (n.t)^2/2 is constant: the rod is bent most where n.t is
        # least. The integration saw that roughly; close to the limit it is looked at closely.
        mx, my, e, c, u = w[M_X + i], w[M_Y + i], w[INV_EI + i], w[SHEAR_C + i], w[U_MIN + i]
        energy = 0.5 * e * (mx * mx + my * my) + nz + 0.5 * c * nz * nz
        seen = 2.0 * e * (energy - u - 0.5 * c * u * u)
        if not seen <= 0.6 * bend and not curvature(w, i) <= w[m.CURVATURE_MAX]:
            w[m.LIMITING] = float(i)
            return BENT_TOO_MUCH
    return NONE


@njit(**KERNEL)
def curvature(w: Array, i: int) -> float:
    """Return the largest curvature |m|/EI along rod i [1/m], sampled at 25 points.

    Uses the Jacobian's first block: its lanes are the same rod cut off at eight lengths.
    """
    at = m.JACOBIAN_BLOCKS
    nx, ny, nz = w[N_X + i], w[N_Y + i], w[N_Z + i]
    mx, my, e, c, L = w[M_X + i], w[M_Y + i], w[INV_EI + i], w[SHEAR_C + i], w[LENGTH + i]
    energy = 0.5 * e * (mx * mx + my * my) + nz + 0.5 * c * nz * nz
    worst = e * e * (mx * mx + my * my)
    steps = int(w[m.STEPS])
    for part in range(3):
        for k in range(m.LANES):
            w[at + N_X + k], w[at + N_Y + k], w[at + N_Z + k] = nx, ny, nz
            w[at + M_X + k], w[at + M_Y + k] = mx, my
            w[at + LENGTH + k] = L * (part * 8 + k + 1) / 24.0
            w[at + INV_EI + k] = e
            w[at + SHEAR_C + k] = c
        shoot(w, at, steps)
        for k in range(m.LANES):
            u = nx * w[at + T_X + k] + ny * w[at + T_Y + k] + nz * w[at + T_Z + k]
            worst = max(worst, 2.0 * e * (energy - u - 0.5 * c * u * u))
    for k in range(m.LANES):
        for row in (INV_EI, SHEAR_C):
            w[at + row + k] = w[row + k]
    return math.sqrt(max(worst, 0.0))


@njit(**KERNEL)
def pose_between(w: Array, part: float) -> None:
    """Set POSE to the point of the path from START to TARGET, and aim at it."""
    for k in range(3):
        w[m.POSE + k] = w[m.START + m.ENTRY_POSE + k] + part * w[m.TWIST + k]
    turn(
        w[m.START + m.ENTRY_POSE + 3 : m.START + m.ENTRY_POSE + 12],
        part * w[m.TWIST + 3],
        part * w[m.TWIST + 4],
        part * w[m.TWIST + 5],
        w[m.POSE + 3 : m.POSE + 12],
    )
    if part == 1.0:
        for k in range(12):
            w[m.POSE + k] = w[m.TARGET + k]
    aim(w)


@njit(**KERNEL)
def twist(w: Array) -> None:
    """Set TWIST to the way from START to TARGET: position, and rotation vector (base frame)."""
    a, b = m.START + m.ENTRY_POSE, m.TARGET
    for k in range(3):
        w[m.TWIST + k] = w[b + k] - w[a + k]
    # R = R_target R_start', then its rotation vector by way of the quaternion.
    r = (
        (_row(w, b + 3, a + 3), _row(w, b + 3, a + 6), _row(w, b + 3, a + 9)),
        (_row(w, b + 6, a + 3), _row(w, b + 6, a + 6), _row(w, b + 6, a + 9)),
        (_row(w, b + 9, a + 3), _row(w, b + 9, a + 6), _row(w, b + 9, a + 9)),
    )
    x, y, z = r[2][1] - r[1][2], r[0][2] - r[2][0], r[1][0] - r[0][1]
    sine = 0.5 * math.sqrt(x * x + y * y + z * z)
    cosine = 0.5 * (r[0][0] + r[1][1] + r[2][2] - 1.0)
    angle = math.atan2(sine, cosine)
    if sine > 1e-7:
        f = 0.5 * angle / sine
        w[m.TWIST + 3], w[m.TWIST + 4], w[m.TWIST + 5] = f * x, f * y, f * z
    elif cosine > 0.0:
        w[m.TWIST + 3], w[m.TWIST + 4], w[m.TWIST + 5] = 0.5 * x, 0.5 * y, 0.5 * z
    else:
        # Half a turn: R = 2 a a' - I.
        xx, yy, zz = 0.5 * (r[0][0] + 1.0), 0.5 * (r[1][1] + 1.0), 0.5 * (r[2][2] + 1.0)
        if xx >= yy and xx >= zz:
            s = math.sqrt(xx)
            x, y, z = s, 0.5 * r[0][1] / s, 0.5 * r[0][2] / s
        elif yy >= zz:
            s = math.sqrt(yy)
            x, y, z = 0.5 * r[0][1] / s, s, 0.5 * r[1][2] / s
        else:
            s = math.sqrt(zz)
            x, y, z = 0.5 * r[0][2] / s, 0.5 * r[1][2] / s, s
        w[m.TWIST + 3], w[m.TWIST + 4], w[m.TWIST + 5] = angle * x, angle * y, angle * z


@njit(**KERNEL)
def _row(w: Array, a: int, b: int) -> float:
    return w[a] * w[b] + w[a + 1] * w[b + 1] + w[a + 2] * w[b + 2]


@njit(**KERNEL)
def follow(w: Array) -> int:
    """Continue from the entry START to the pose TARGET.

    Returns:
        NONE on success, with the solution in Y and its polishing step in DELTA; else the reason. In
        any case ANCHOR is the last point reached, REACHED how far along the path it lies, and
        WITHIN the last point within the limits.
    """
    twist(w)
    load(w, m.START)
    store(w, m.ANCHOR)
    store(w, m.WITHIN)
    w[m.REACHED], w[m.REACHED_WITHIN] = 0.0, 0.0
    if not linearise(w):
        w[m.LIMITING] = 0.0
        return FOLD
    done, step, inside = 0.0, 1.0, True
    for _ in range(SUBSTEPS_MAX):
        to = min(1.0, done + step)
        if to > 1.0 - 1e-9:
            to = 1.0
        w[m.SUBSTEPS] += 1.0
        for k in range(m.UNKNOWNS):
            change = 0.0
            for j in range(6):
                change += w[m.TANGENT + j * m.COLUMN + k] * w[m.TWIST + j]
            w[m.DELTA + k] = change * (to - done)
        predicted = scaled(w, m.DELTA)
        good = predicted <= PREDICTION
        if good:
            pose_between(w, to)
            for k in range(m.UNKNOWNS):
                w[m.Y + k] = w[m.ANCHOR + k] + w[m.DELTA + k]
            good = correct(w, CORRECTION * predicted + 1e-6)
        if good:
            for i in range(m.RODS):
                good = good and w[LENGTH + i] > 0.0
        if good:
            done = to
            w[m.REACHED] = done
            store(w, m.ANCHOR)
            inside = inside and violated(w) == NONE
            if inside:
                store(w, m.WITHIN)
                w[m.REACHED_WITHIN] = done
            if done == 1.0:
                return NONE
            # Polish before the tangents are taken; the certified point needs it only at the end.
            for k in range(m.UNKNOWNS):
                w[m.Y + k] -= w[m.DELTA + k]
                w[m.ANCHOR + k] = w[m.Y + k]
            if not linearise(w):
                w[m.LIMITING] = 0.0
                return FOLD
            step *= GROW
        else:
            step = SHRINK * (to - done)
            if step < w[m.SMALLEST]:
                for k in range(m.UNKNOWNS):
                    change = 0.0
                    for j in range(6):
                        change += w[m.TANGENT + j * m.COLUMN + k] * w[m.TWIST + j]
                    w[m.DELTA + k] = change
                w[m.LIMITING] = float(largest_rod(w, m.DELTA))
                return FOLD
    w[m.LIMITING] = -1.0
    return STALLED
