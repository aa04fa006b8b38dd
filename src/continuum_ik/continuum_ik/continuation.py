"""Solving far from the last solution: damped Newton along a path in SE(3).

The pose moves from a solved one to the target, position on a straight line and rotation about a
fixed axis. Each step predicts with the tangents and corrects with damped Newton steps, finely
whatever the tolerance that was asked for, since branches of solutions come close to each other
where a rod buckles. A step counts only if

- the correction stays small beside the prediction, and
- the Jacobian J has not changed too much: the eigenvalues of J1^-1 J0 lie within 0.7 of 1. On a
  step that passes a singular point one of them goes to infinity and comes back with the other sign,
  so no such step counts, and where J is regular there is one branch only to follow (implicit
  function theorem).

Before a singular point steps shrink. If the slope dY/ds stays bounded there, branches cross, as
they do for level platforms, whose equations are symmetric: the path goes on straight, with the same
slope on the other side. Otherwise it is a fold, and the path ends.
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
    INLINED,
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
#: Largest change of the Jacobian in one step, and the power iterations for it.
CHANGE, POWER_STEPS = 0.7, 5
#: How much of the way to a singular point may be gone unseen; how much the Jacobian changes with
#: the scaled unknowns, beside the gain of its inverse; and the power iterations for that gain.
CAUTION, STEEPNESS, GAIN_STEPS = 0.5, 0.005, 4
#: Smallest step, as part of the robot's size; how many of them lead across a singular point; and
#: how much the slope may differ beyond it.
SMALLEST, ACROSS, BEND = 2.5e-5, 8.0, 0.1
#: Lever that makes a rotation comparable with a displacement, as part of the robot's size.
LEVER = 0.25
#: Largest polishing step of a point of a path, in the scaled unknowns.
POLISH = 1e-6
#: The same where rounding errors allow no better.
BOTTOM = 1e-3
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
    if factorise(w, choose_steps(w, m.COARSE_X2)):
        tangents(w)
        return True
    w[m.AGE] = -1.0
    return False


@njit(**KERNEL)
def exchange_rules(w: Array) -> None:
    """Change from the accuracy that was asked for to the fine one, or back."""
    for k in range(m.RULES, m.RULES + m.RULES_SIZE):
        w[k], w[k + m.RULES_SIZE] = w[k + m.RULES_SIZE], w[k]


@njit(**KERNEL)
def make_sure(w: Array, change: float) -> None:
    """Take the present point and its Jacobian as those that later ones are compared with.

    SURE_WITHIN is how far the unknowns may go from here before a singular point comes near: in the
    direction from the last sure point by the change of the Jacobian since then, and in any
    direction by the gain of the inverse Jacobian. Destroys RESIDUAL and DELTA.

    Args:
        w: The solver's array, with factors at hand.
        change: What ``changed`` returned; infinite if this is the first point.
    """
    moved = moved_from_sure(w)
    store(w, m.SURE)
    for k in range(48 * m.LANES):
        w[m.SURE_JACOBIAN + k] = w[m.JACOBIAN + k]
    for k in range(24):
        w[m.SURE_ARM + k] = w[m.ARM + k]
    within = CAUTION / (STEEPNESS * _gain(w))
    if change < 1e300:
        within = min(within, CAUTION * moved / max(change, 1e-3))
    w[m.SURE_WITHIN] = within if within > 1e-100 else 1e-100


@njit(**KERNEL)
def moved_from_sure(w: Array) -> float:
    """Return the change of forces and moments since the last sure point, scaled."""
    L = w[m.LENGTH_TYPICAL]
    per_force = L * L / w[m.EI_TYPICAL]
    per_moment = L / w[m.EI_TYPICAL]
    worst = 0.0
    for i in range(m.LANES):
        a, b = m.Y + i, m.SURE + i
        force = max(abs(w[a] - w[b]), abs(w[a + 8] - w[b + 8]), abs(w[a + 16] - w[b + 16]))
        moment = max(abs(w[a + 24] - w[b + 24]), abs(w[a + 32] - w[b + 32]))
        worst = max(worst, force * per_force, moment * per_moment)
    return worst


@njit(**KERNEL)
def _gain(w: Array) -> float:
    """Return about the largest gain of the inverse Jacobian, scaled: some steps of power iteration.

    Each rod's unknowns are fed back as its residuals, and the lengths as those of the platform.
    """
    L, EI = w[m.LENGTH_TYPICAL], w[m.EI_TYPICAL]
    s_force, s_moment = EI / (L * L), EI / L
    for k in range(40):
        w[m.RESIDUAL + k] = L if k < 24 else 1.0
    for j in range(3):
        w[m.PLATFORM_RESIDUAL + j] = (1.0, 0.7, -0.4)[j] * s_force
        w[m.PLATFORM_RESIDUAL + 3 + j] = (0.5, -0.8, 0.9)[j] * s_moment
    best, before = 1.0, 1.0
    for k in range(GAIN_STEPS):
        solve_linear(w)
        size = scaled(w, m.DELTA)
        if not size < 1e200:
            return 1e200
        best = max(best, size / before)
        before = size
        if k < GAIN_STEPS - 1:
            for i in range(m.LANES):
                for j in range(3):
                    w[m.RESIDUAL + 8 * j + i] = w[m.DELTA + 8 * j + i] * (L / s_force)
                for j in range(3, 5):
                    w[m.RESIDUAL + 8 * j + i] = w[m.DELTA + 8 * j + i] / s_moment
            for j in range(6):
                scale = (s_force if j < 3 else s_moment) / L
                w[m.PLATFORM_RESIDUAL + j] = w[m.DELTA + 40 + j] * scale
    return best


@njit(**KERNEL)
def changed(w: Array) -> float:
    """Return the largest |eigenvalue| of J1^-1 J0 - 1, by some steps of power iteration.

    J1 is the Jacobian whose factors are at hand, J0 the sure one. Begins with the response of the
    unknowns to the platform, which is large in the direction of a singular point nearby.
    Destroys RESIDUAL and DELTA.
    """
    if w[m.SURE_WITHIN] == 0.0:
        return math.inf
    L, EI = w[m.LENGTH_TYPICAL], w[m.EI_TYPICAL]
    for k in range(m.RESIDUAL, m.PLATFORM_RESIDUAL + 8):
        w[k] = 0.0
    for j in range(3):
        w[m.PLATFORM_RESIDUAL + j] = (1.0, 0.7, -0.4)[j] * EI / (L * L)
        w[m.PLATFORM_RESIDUAL + 3 + j] = (0.5, -0.8, 0.9)[j] * EI / L
    solve_linear(w)
    middle, size = 1.0, 1.0
    for k in range(POWER_STEPS):
        if k == POWER_STEPS - 2:
            middle = scaled(w, m.DELTA)
        apply_difference(w)
        solve_linear(w)
    size = scaled(w, m.DELTA)
    if not size < 1e200:
        return math.inf
    return math.sqrt(size / middle) if middle > 1e-200 else 0.0


@njit(**KERNEL)
def apply_difference(w: Array) -> None:
    """Set RESIDUAL and PLATFORM_RESIDUAL to (J0 - J1) DELTA."""
    sx, sy, sz = 0.0, 0.0, 0.0
    for i in range(m.LANES):
        d = m.DELTA + i
        a, b, c, e, f, g = w[d], w[d + 8], w[d + 16], w[d + 24], w[d + 32], w[d + 40]
        for r in range(8):
            p, q = m.SURE_JACOBIAN + 48 * r + i, m.JACOBIAN + 48 * r + i
            row = (w[p] - w[q]) * a + (w[p + 8] - w[q + 8]) * b + (w[p + 16] - w[q + 16]) * c
            row += (w[p + 24] - w[q + 24]) * e + (w[p + 32] - w[q + 32]) * f
            row += (w[p + 40] - w[q + 40]) * g
            w[m.DIFFERENCES + 8 * r + i] = row
        ax = w[m.SURE_ARM + i] - w[m.ARM + i]
        ay = w[m.SURE_ARM + 8 + i] - w[m.ARM + 8 + i]
        az = w[m.SURE_ARM + 16 + i] - w[m.ARM + 16 + i]
        k = w[m.MASK + i]
        sx += k * (w[m.DIFFERENCES + 40 + i] + ay * c - az * b)
        sy += k * (w[m.DIFFERENCES + 48 + i] + az * a - ax * c)
        sz += k * (w[m.DIFFERENCES + 56 + i] + ax * b - ay * a)
    for k in range(40):
        w[m.RESIDUAL + k] = w[m.DIFFERENCES + k]
    p = m.PLATFORM_RESIDUAL
    w[p], w[p + 1], w[p + 2] = 0.0, 0.0, 0.0
    w[p + 3], w[p + 4], w[p + 5] = -sx, -sy, -sz


@njit(**KERNEL)
def correct(w: Array, furthest: float, polish: float) -> bool:
    """Solve for the present pose from the present unknowns by damped Newton steps.

    Args:
        w: The solver's array; on success Y is a certified point and DELTA its polishing step.
        furthest: Largest change of the scaled unknowns in all; beyond it the solution found would
            not be the one that was predicted.
        polish: Largest polishing step in the scaled unknowns.
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
            if not factorise(w, choose_steps(w, m.COARSE_X2)):
                return False
            for k in range(46):
                w[m.RESIDUAL + k] = w[m.SAVED + k]
        solve_linear(w)
        if (
            now <= w[m.ACCEPT]
            and leg_error(w) <= w[m.LEG_TOLERANCE]
            and scaled(w, m.DELTA) <= polish
        ):
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
            return _at_the_bottom(w, part, previous)
        for k in range(m.UNKNOWNS):
            w[m.DELTA + k] = w[m.Y + k] - w[m.TRIAL + k]
        if scaled(w, m.DELTA) > furthest:
            return False
        # While a step leaves less than a hundredth of the residual, the Jacobian is good enough.
        fresh = now < 1e-4 * previous
    solve_linear(w)
    return _good_enough(w, now)


@njit(**KERNEL)
def _at_the_bottom(w: Array, part: float, previous: float) -> bool:
    """Go back to the point before the last step, and say whether it is good enough."""
    for k in range(m.UNKNOWNS):
        w[m.Y + k] += part * w[m.SAVED_STEP + k]
        w[m.DELTA + k] = w[m.SAVED_STEP + k]
    if not _good_enough(w, previous):
        return False
    evaluate(w)
    return True


@njit(**KERNEL)
def _good_enough(w: Array, sum_squares: float) -> bool:
    """Whether a point that rounding errors keep from getting better will do.

    Rods under high tension carry them up by exp(L sqrt(n/EI)). The rules that are not in force, of
    which one set is what was asked for, must be kept even then.
    """
    accept = max(w[m.ACCEPT], w[m.OTHER_RULES + m.ACCEPT - m.RULES])
    legs = max(w[m.LEG_TOLERANCE], w[m.OTHER_RULES + m.LEG_TOLERANCE - m.RULES])
    return sum_squares <= accept and leg_error(w) <= legs and scaled(w, m.DELTA) <= BOTTOM


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
        w,
        m.START + m.ENTRY_POSE + 3,
        part * w[m.TWIST + 3],
        part * w[m.TWIST + 4],
        part * w[m.TWIST + 5],
        m.POSE + 3,
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
def _bend(w: Array) -> float:
    """Return how much the slope by the tangents at hand differs from SLOPE, scaled."""
    for k in range(m.UNKNOWNS):
        change = 0.0
        for j in range(6):
            change += w[m.TANGENT + j * m.COLUMN + k] * w[m.TWIST + j]
        w[m.DELTA + k] = change - w[m.SLOPE + k]
    return scaled(w, m.DELTA)


@njit(**KERNEL)
def _anchor(w: Array, change: float) -> None:
    """Go on from the present point: ANCHOR, its SLOPE, and what later points are compared with."""
    store(w, m.ANCHOR)
    make_sure(w, change)
    for k in range(m.UNKNOWNS):
        change = 0.0
        for j in range(6):
            change += w[m.TANGENT + j * m.COLUMN + k] * w[m.TWIST + j]
        w[m.SLOPE + k] = change


@njit(**INLINED)
def _advance(w: Array, done: float, to: float) -> bool:
    """Predict and correct one step of the path."""
    for k in range(m.UNKNOWNS):
        w[m.DELTA + k] = w[m.SLOPE + k] * (to - done)
    predicted = scaled(w, m.DELTA)
    if not predicted <= PREDICTION:
        return False
    pose_between(w, to)
    for k in range(m.UNKNOWNS):
        w[m.Y + k] = w[m.ANCHOR + k] + w[m.DELTA + k]
    if not correct(w, CORRECTION * predicted + 1e-6, POLISH):
        return False
    shortest = 1.0
    for i in range(m.RODS):
        shortest = min(shortest, w[LENGTH + i])
    return shortest > 0.0


@njit(**KERNEL)
def follow(w: Array) -> int:
    """Continue from the entry START to the pose TARGET.

    Returns:
        NONE on success, with the solution in Y, its polishing step in DELTA and its factors and
        tangents at hand; else the reason. In any case ANCHOR is the last point reached (before a
        fold, at a little distance), REACHED how far along the path it lies, and WITHIN the last
        point within the limits.
    """
    exchange_rules(w)
    reason = _follow(w)
    exchange_rules(w)
    return reason


@njit(**INLINED)
def _begin(w: Array) -> bool:
    """Load START, make it fine, and anchor there."""
    load(w, m.START)
    store(w, m.ANCHOR)
    store(w, m.WITHIN)
    w[m.REACHED], w[m.REACHED_WITHIN], w[m.LIMITING] = 0.0, 0.0, 0.0
    if not correct(w, CORRECTION, POLISH):
        load(w, m.START)
    if not linearise(w):
        return False
    _anchor(w, math.inf)
    return True


@njit(**KERNEL)
def _smallest_step(w: Array) -> float:
    """Return the smallest step as a part of the path from START to TARGET."""
    size = w[m.LENGTH_TYPICAL]
    x, y, z = w[m.TWIST], w[m.TWIST + 1], w[m.TWIST + 2]
    u, v, s = w[m.TWIST + 3], w[m.TWIST + 4], w[m.TWIST + 5]
    way = math.sqrt(x * x + y * y + z * z) + LEVER * size * math.sqrt(u * u + v * v + s * s)
    return max(w[m.SMALLEST], SMALLEST * size / max(way, 1e-100))


@njit(**INLINED)
def _follow(w: Array) -> int:
    twist(w)
    if not _begin(w):
        return FOLD
    smallest = _smallest_step(w)
    done, step, inside, across, clear = 0.0, 1.0, True, 0, 0.0
    store(w, m.CLEAR)
    for _ in range(SUBSTEPS_MAX):
        to = min(1.0, done + step)
        if to > 1.0 - 1e-9:
            to = 1.0
        w[m.SUBSTEPS] += 1.0
        good, change, within = _advance(w, done, to), 1.0, inside
        if good:
            within = inside and violated(w) == NONE
            good = linearise(w)
        if good:
            change = max(changed(w), 1e-3)
            good = change <= CHANGE
            if not good and across > 0:
                good = _bend(w) <= BEND * scaled(w, m.SLOPE)
        if good:
            if to - done >= ACROSS * smallest or to == 1.0:
                store(w, m.CLEAR)
                clear = to
            step = (to - done) * min(GROW, 0.8 * CHANGE / change)
            done, inside, across = to, within, 0
            w[m.REACHED] = done
            _anchor(w, change)
            if inside:
                store(w, m.WITHIN)
                w[m.REACHED_WITHIN] = done
            if done == 1.0:
                w[m.STEPS] = float(plan_steps(w))
                evaluate(w)
                solve_linear(w)
                leg_error(w)
                return NONE
            step = max(step, smallest)
        elif across < 2:
            step = (to - done) * max(0.1, min(SHRINK, 0.8 * CHANGE / change))
            if step < smallest:
                across += 1
                step = ACROSS * smallest * (1.0 if across == 1 else 4.0)
        else:
            w[m.LIMITING] = float(largest_rod(w, m.SLOPE))
            w[m.REACHED] = clear
            copy_entry(w, m.CLEAR, m.ANCHOR)
            return FOLD
    w[m.LIMITING] = -1.0
    return STALLED
