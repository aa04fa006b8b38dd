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

Before a singular point steps shrink, and the curve of solutions is followed by its own length
instead (arc.py), which tells a fold, where the path ends, from a sharp bend and from branches that
cross. No step that fails is ever taken for a fold.
"""

from __future__ import annotations

import math

from numba import njit

from continuum_ik import layout as m
from continuum_ik.arc import ARRIVED, LOST, PASSED, TURNED, WIDE, pass_by_arc
from continuum_ik.equations import evaluate, leg_error, plan_steps, solve_linear
from continuum_ik.newton import POLISH, correct
from continuum_ik.path import (
    copy_entry,
    exchange_rules,
    largest_rod,
    linearise,
    load,
    path_length,
    pose_between,
    scaled,
    store,
    twist,
)
from continuum_ik.reasons import (
    BENT_TOO_MUCH,
    FOLD,
    FORCE_TOO_LARGE,
    NONE,
    ROUNDING,
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
from continuum_ik.stability import (
    begin_stability,
    carry_stability,
    is_stable,
    settle_stability,
)

GROW, SHRINK = 1.7, 0.5
SUBSTEPS_MAX = 1500
#: Largest correction beside the prediction, and largest prediction, in the scaled unknowns.
CORRECTION, PREDICTION = 0.3, 4.0
#: Largest change of the Jacobian in one step, the power iterations for it, and how far the rods'
#: tips are moved to begin with, as part of the robot's size.
CHANGE, POWER_STEPS, TIPS = 0.7, 5, 0.1
#: How much of the way to a singular point may be gone unseen; how much the Jacobian changes with
#: the scaled unknowns, beside the gain of its inverse; and the power iterations for that gain.
CAUTION, STEEPNESS, GAIN_STEPS = 0.5, 0.005, 4
#: Step below which the curve is followed by its own length, and distance from a fold that is
#: reported, as parts of the robot's size.
NARROW, CLEAR_OF = 1e-3, 2e-4
#: Steps across a place where the curve has no direction, as parts of the robot's size, and how much
#: the slope may differ beyond it.
ACROSS, BEND = (2e-4, 8e-4), 0.1


@njit(**KERNEL)
def make_sure(w: Array, change: float, known: bool) -> None:
    """Take the present point and its Jacobian as those that later ones are compared with.

    SURE_WITHIN is how far the unknowns may go from here before a singular point comes near: in the
    direction from the last sure point by the change of the Jacobian since then, and in any
    direction by the gain of the inverse Jacobian. Destroys RESIDUAL and DELTA.

    Args:
        w: The solver's array, with factors at hand.
        change: What ``changed`` returned; infinite if this is the first point.
        known: Whether STABLE holds for this very point.
    """
    moved = moved_from_sure(w)
    if known:
        begin_stability(w)
    else:
        carry_stability(w, change < 1e300, moved)
    store(w, m.SURE)
    for k in range(48 * m.LANES):
        w[m.SURE_JACOBIAN + k] = w[m.JACOBIAN + k]
    for k in range(24):
        w[m.SURE_ARM + k] = w[m.ARM + k]
    within = CAUTION / (STEEPNESS * _gain(w))
    if change < 1e300:
        within = min(within, CAUTION * moved / max(change, 1e-3))
    within = min(within, 0.3 if known else w[m.STABLE_WITHIN])
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
    unknowns to the platform and to the rods' tips, which is large in the direction of a singular
    point nearby; the platform alone does not stir a rod that buckles out of its plane.
    Destroys RESIDUAL and DELTA.
    """
    if w[m.SURE_WITHIN] == 0.0:
        return math.inf
    L, EI = w[m.LENGTH_TYPICAL], w[m.EI_TYPICAL]
    for k in range(40):
        w[m.RESIDUAL + k] = TIPS * (1.0 + 0.1 * (k % m.LANES)) * (L if k < 24 else 1.0)
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
def admitted(w: Array) -> bool:
    """Whether the present point is stable, or need not be."""
    return w[m.ALLOW_UNSTABLE] == 1.0 or is_stable(w[m.STABLE])


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
def _anchor(w: Array, change: float, known: bool) -> None:
    """Go on from the present point: ANCHOR, its SLOPE, and what later points are compared with."""
    make_sure(w, change, known)
    store(w, m.ANCHOR)
    _slope(w)


@njit(**KERNEL)
def _slope(w: Array) -> None:
    """Set SLOPE to the change of the unknowns along the path, by the tangents at hand."""
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
    store(w, m.CLEAR)
    w[m.REACHED], w[m.REACHED_WITHIN], w[m.LIMITING] = 0.0, 0.0, 0.0
    if not correct(w, CORRECTION, POLISH):
        load(w, m.START)
    if not linearise(w):
        return False
    _anchor(w, math.inf, True)
    return True


@njit(**INLINED)
def _arrive(w: Array) -> int:
    """Evaluate at the target; rounding errors may keep the residual above what was asked for."""
    w[m.REACHED] = 1.0
    settle_stability(w)
    if w[m.AGE] < 0.0 and not linearise(w):
        return FOLD
    w[m.STEPS] = float(plan_steps(w))
    evaluate(w)
    solve_linear(w)
    leg_error(w)
    asked = max(w[m.ACCEPT], w[m.OTHER_RULES + m.ACCEPT - m.RULES])
    if w[m.SUM_SQUARES] <= asked:
        return NONE
    w[m.LIMITING] = float(largest_rod(w, m.Y))
    return ROUNDING


@njit(**KERNEL)
def _try(w: Array, done: float, to: float) -> float:
    """Go one step of the path; returns the Jacobian's change, infinite if it does not count."""
    if not _advance(w, done, to) or not linearise(w):
        return math.inf
    change = max(changed(w), 1e-3)
    return change if change <= CHANGE else math.inf


@njit(**KERNEL)
def _across(w: Array, done: float, size: float) -> bool:
    """Go straight on from the entry CLEAR across a point where branches cross.

    Where two of them cross, the curve has no direction of its own; the one that is on this side
    goes on beyond. True with the point in ANCHOR and its part of the path in ARC_PART.
    """
    for k in range(len(ACROSS)):
        load(w, m.CLEAR)
        if not linearise(w):
            return False
        store(w, m.ANCHOR)
        _slope(w)
        to = min(1.0, done + ACROSS[k] * size)
        if not _advance(w, done, to) or not linearise(w):
            continue
        for j in range(m.UNKNOWNS):
            w[m.TRIAL + j] = w[m.SLOPE + j]
        _slope(w)
        for j in range(m.UNKNOWNS):
            w[m.DELTA + j] = w[m.SLOPE + j] - w[m.TRIAL + j]
        if scaled(w, m.DELTA) <= BEND * scaled(w, m.SLOPE):
            store(w, m.ANCHOR)
            w[m.ARC_PART] = to
            return True
    return False


@njit(**KERNEL)
def _close_up(w: Array, clear: float, goal: float, inside: bool) -> float:
    """Go on along the arc from the entry CLEAR to ``goal``, shortly before a fold.

    Returns:
        How far along the path CLEAR lies then.
    """
    copy_entry(w, m.CLEAR, m.ANCHOR)
    if not goal > clear or pass_by_arc(w, clear, goal, goal - clear, math.inf) != ARRIVED:
        return clear
    if not linearise(w):
        return clear
    inside = inside and violated(w) == NONE
    _anchor(w, math.inf, False)
    store(w, m.CLEAR)
    if inside and admitted(w):
        store(w, m.WITHIN)
        w[m.REACHED_WITHIN] = goal
    return goal


@njit(**INLINED)
def _follow(w: Array) -> int:
    twist(w)
    if not _begin(w):
        return FOLD
    size = w[m.LENGTH_TYPICAL] / max(path_length(w), 1e-100)
    narrow = max(w[m.SMALLEST], NARROW * size)
    done, step, inside, ended = 0.0, 1.0, True, PASSED
    w[m.ARC_LEFT] = w[m.ARC_BUDGET]
    for _ in range(SUBSTEPS_MAX):
        to = min(1.0, done + step)
        if to > 1.0 - 1e-9:
            to = 1.0
        w[m.SUBSTEPS] += 1.0
        change = _try(w, done, to)
        if change <= CHANGE:
            step = (to - done) * min(GROW, 0.8 * CHANGE / change)
            done = to
        else:
            step = 0.4 * (to - done)
            if step >= narrow:
                continue
            ended = pass_by_arc(w, done, 1.0, to - done, narrow)
            if ended == LOST and w[m.ARC_LEFT] > 0.0 and _across(w, done, size):
                ended = PASSED
            if ended > ARRIVED:
                break
            done = 1.0 if ended == ARRIVED else w[m.ARC_PART]
            if ended == PASSED:
                load(w, m.ANCHOR)
            if not linearise(w):
                break
            change, step = math.inf, WIDE * narrow
        inside = inside and violated(w) == NONE
        _anchor(w, change, False)
        inside = inside and admitted(w)
        store(w, m.CLEAR)
        w[m.REACHED] = done
        if inside:
            store(w, m.WITHIN)
            w[m.REACHED_WITHIN] = done
        if done == 1.0:
            return _arrive(w)
    if ended == TURNED:
        w[m.LIMITING] = float(largest_rod(w, m.DIRECTION))
        turned = w[m.ARC_PART]
        w[m.REACHED] = _close_up(w, w[m.REACHED], turned - CLEAR_OF * size, inside)
        w[m.ARC_PART] = turned
        copy_entry(w, m.CLEAR, m.ANCHOR)
        return FOLD
    w[m.LIMITING] = -1.0
    copy_entry(w, m.CLEAR, m.ANCHOR)
    return STALLED
