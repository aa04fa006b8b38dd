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

from continuum_ik.arc import ARRIVED, LOST, PASSED, TURNED, WIDE, pass_by_arc
from continuum_ik.equations import (
    cross,
    evaluate,
    lane,
    leg_error,
    plan_steps,
    solve_linear,
    unit,
)
from continuum_ik.layout import MOMENT, PLATFORM
from continuum_ik.newton import POLISH, correct
from continuum_ik.path import (
    add,
    along,
    copy_entry,
    difference,
    largest_rod,
    lengths_positive,
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
    KERNEL,
    LANES,
    LENGTH,
    MX,
    MY,
    NX,
    NY,
    NZ,
    RODS,
    Record,
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
#: Largest change of the Jacobian in one step, and the power iterations for it.
CHANGE, POWER_STEPS = 0.7, 5
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
def make_sure(w: Record, change: float, known: bool) -> None:
    """Take the present point and its Jacobian as those that later ones are compared with.

    sure_within is how far the unknowns may go from here before a singular point comes near: in the
    direction from the last sure point by the change of the Jacobian since then, and in any
    direction by the gain of the inverse Jacobian. Destroys residual and delta.

    Args:
        w: The solver, with factors at hand.
        change: What ``changed`` returned; infinite if this is the first point.
        known: Whether ``stable`` holds for this very point.
    """
    moved = moved_from_sure(w)
    if known:
        begin_stability(w)
    else:
        carry_stability(w, change < 1e300, moved)
    store(w, w.sure)
    w.sure_jacobian, w.sure_arm = w.jacobian, w.arm
    within = CAUTION / (STEEPNESS * _gain(w))
    if change < 1e300:
        within = min(within, CAUTION * moved / max(change, 1e-3))
    within = min(within, 0.3 if known else w.stable_within)
    w.sure_within = within if within > 1e-100 else 1e-100


@njit(**KERNEL)
def moved_from_sure(w: Record) -> float:
    """Return the change of forces and moments since the last sure point, scaled."""
    y, sure = w.rods.y, w.sure.y
    worst = 0.0
    for r in range(LENGTH):
        per = 1.0 / unit(w, r)
        for i in range(LANES):
            worst = max(worst, abs(y[r, i] - sure[r, i]) * per)
    return worst


@njit(**KERNEL)
def stir_platform(w: Record) -> None:
    """Set the platform's part of residual to a force and a moment in no special direction."""
    for j in range(3):
        w.residual[PLATFORM, j] = (1.0, 0.7, -0.4)[j] * unit(w, NX)
        w.residual[PLATFORM, 3 + j] = (0.5, -0.8, 0.9)[j] * unit(w, MX)


@njit(**KERNEL)
def _gain(w: Record) -> float:
    """Return about the largest gain of the inverse Jacobian, scaled: some steps of power iteration.

    Each rod's unknowns are fed back as its residuals, and the lengths as those of the platform.
    """
    out, delta = w.residual, w.delta
    for r in range(PLATFORM):
        for i in range(LANES):
            out[r, i] = w.L if r < 3 else 1.0
    stir_platform(w)
    best, before = 1.0, 1.0
    for k in range(GAIN_STEPS):
        solve_linear(w)
        size = scaled(w, delta)
        if not size < 1e200:
            return 1e200
        best = max(best, size / before)
        before = size
        if k < GAIN_STEPS - 1:
            for r in range(PLATFORM):
                back = (w.L if r < 3 else 1.0) / unit(w, r)
                for i in range(LANES):
                    out[r, i] = delta[r, i] * back
            for j in range(6):
                out[PLATFORM, j] = delta[LENGTH, j] * (unit(w, NX if j < 3 else MX) / w.L)
    return best


@njit(**KERNEL)
def changed(w: Record) -> float:
    """Return the largest |eigenvalue| of J1^-1 J0 - 1, by some steps of power iteration.

    J1 is the Jacobian whose factors are at hand, J0 the sure one. Begins with the response of the
    unknowns to the platform and to the rods' tips, which is large in the direction of a singular
    point nearby; the platform alone does not stir a rod that buckles out of its plane.
    Destroys residual and delta.
    """
    if w.sure_within == 0.0:
        return math.inf
    for r in range(PLATFORM):
        for i in range(LANES):
            w.residual[r, i] = w.caution.tips * (1.0 + 0.1 * i) * (w.L if r < 3 else 1.0)
    stir_platform(w)
    solve_linear(w)
    middle = 1.0
    for k in range(POWER_STEPS):
        if k == POWER_STEPS - 2:
            middle = scaled(w, w.delta)
        apply_difference(w)
        solve_linear(w)
    return growth(middle, scaled(w, w.delta))


@njit(**KERNEL)
def growth(middle: float, size: float) -> float:
    """Return the growth in one step of a power iteration, by the sizes of two steps apart."""
    if not size < 1e200:
        return math.inf
    return math.sqrt(size / middle) if middle > 1e-200 else 0.0


@njit(**KERNEL)
def apply_difference(w: Record) -> None:
    """Set residual to (J0 - J1) delta."""
    delta, J0, J1, out = w.delta, w.sure_jacobian, w.jacobian, w.residual
    moment = w.differences[0]
    sx, sy, sz = 0.0, 0.0, 0.0
    for i in range(LANES):
        for r in range(8):
            row = 0.0
            for c in range(6):
                row += (J0[r, c, i] - J1[r, c, i]) * delta[c, i]
            if r < MOMENT:
                out[r, i] = row
            else:
                moment[r - MOMENT, i] = row
        a, b = lane(w.sure_arm, i), lane(w.arm, i)
        x, y, z = cross((a[0] - b[0], a[1] - b[1], a[2] - b[2]), lane(delta, i))
        k = w.mask[i]
        sx += k * (moment[0, i] + x)
        sy += k * (moment[1, i] + y)
        sz += k * (moment[2, i] + z)
    out[PLATFORM, 0], out[PLATFORM, 1], out[PLATFORM, 2] = 0.0, 0.0, 0.0
    out[PLATFORM, 3], out[PLATFORM, 4], out[PLATFORM, 5] = -sx, -sy, -sz


@njit(**KERNEL)
def admitted(w: Record) -> bool:
    """Whether the present point is stable, or need not be."""
    return w.allow_unstable == 1 or is_stable(w.stable)


@njit(**KERNEL)
def violated(w: Record) -> int:
    """Return the first limit that the present unknowns break, or NONE; sets limiting."""
    rods = w.rods
    y = rods.y
    for i in range(RODS):
        if not y[LENGTH, i] >= w.length_min:
            w.limiting = i
            return TOO_SHORT
        if not y[LENGTH, i] <= w.length_max:
            w.limiting = i
            return TOO_LONG
    limit, bend = w.force_max**2, w.curvature_max**2
    for i in range(RODS):
        nx, ny, nz, mx, my = y[NX, i], y[NY, i], y[NZ, i], y[MX, i], y[MY, i]
        if not nx * nx + ny * ny + nz * nz <= limit:
            w.limiting = i
            return FORCE_TOO_LARGE
        # Along a rod |m|^2/2EI + n.t + c (n.t)^2/2 is constant: the rod is bent most where n.t is
        # least. The integration saw that roughly; close to the limit it is looked at closely.
        e, c, u = rods.inv_EI[i], rods.c[i], rods.u_min[i]
        energy = 0.5 * e * (mx * mx + my * my) + nz + 0.5 * c * nz * nz
        seen = 2.0 * e * (energy - u - 0.5 * c * u * u)
        if not seen <= 0.6 * bend and not curvature(w, i) <= w.curvature_max:
            w.limiting = i
            return BENT_TOO_MUCH
    return NONE


@njit(**KERNEL)
def curvature(w: Record, i: int) -> float:
    """Return the largest curvature |m|/EI along rod i [1/m], sampled at 25 points.

    Uses the first displaced rods: its lanes are the same rod cut off at eight lengths.
    """
    rods, cut = w.rods, w.displaced[0]
    y = rods.y
    nx, ny, nz, mx, my = y[NX, i], y[NY, i], y[NZ, i], y[MX, i], y[MY, i]
    e, c = rods.inv_EI[i], rods.c[i]
    energy = 0.5 * e * (mx * mx + my * my) + nz + 0.5 * c * nz * nz
    worst = e * e * (mx * mx + my * my)
    for part in range(3):
        for k in range(LANES):
            for r in range(LENGTH):
                cut.y[r, k] = y[r, i]
            cut.y[LENGTH, k] = y[LENGTH, i] * (part * 8 + k + 1) / 24.0
            cut.inv_EI[k], cut.c[k] = e, c
        shoot(cut, w.steps)
        for k in range(LANES):
            u = nx * cut.t[0, k] + ny * cut.t[1, k] + nz * cut.t[2, k]
            worst = max(worst, 2.0 * e * (energy - u - 0.5 * c * u * u))
    cut.inv_EI, cut.c = rods.inv_EI, rods.c
    return math.sqrt(max(worst, 0.0))


@njit(**KERNEL)
def _anchor(w: Record, change: float, known: bool) -> None:
    """Go on from the present point: anchor, its slope, and what later points are compared with."""
    make_sure(w, change, known)
    store(w, w.anchor)
    along(w, w.slope)


@njit(**INLINED)
def _advance(w: Record, done: float, to: float) -> bool:
    """Predict and correct one step of the path."""
    for r in range(6):
        for i in range(LANES):
            w.delta[r, i] = w.slope[r, i] * (to - done)
    predicted = scaled(w, w.delta)
    if not predicted <= PREDICTION:
        return False
    pose_between(w, to)
    w.rods.y = w.anchor.y
    add(w.rods.y, 1.0, w.delta)
    return correct(w, CORRECTION * predicted + 1e-6, POLISH) and lengths_positive(w)


@njit(**KERNEL)
def follow(w: Record) -> int:
    """Continue from the entry start to the pose target.

    Returns:
        NONE on success, with the solution in the unknowns, its polishing step in delta and its
        factors and tangents at hand; else the reason. In any case anchor is the last point reached
        (before a fold, at a little distance), reached how far along the path it lies, and within
        the last point within the limits.
    """
    w.fine = 1
    reason = _follow(w)
    w.fine = 0
    return reason


@njit(**INLINED)
def _begin(w: Record) -> bool:
    """Load start, make it fine, and anchor there."""
    load(w, w.start)
    store(w, w.anchor)
    store(w, w.within)
    store(w, w.clear)
    w.reached, w.reached_within, w.limiting = 0.0, 0.0, 0
    if not correct(w, CORRECTION, POLISH):
        load(w, w.start)
    if not linearise(w):
        return False
    _anchor(w, math.inf, True)
    return True


@njit(**INLINED)
def _arrive(w: Record) -> int:
    """Evaluate at the target; rounding errors may keep the residual above what was asked for."""
    w.reached = 1.0
    settle_stability(w)
    if w.age < 0 and not linearise(w):
        return FOLD
    plan_steps(w)
    evaluate(w)
    solve_linear(w)
    leg_error(w)
    if w.sum_squares <= w.rules[0].accept:
        return NONE
    w.limiting = largest_rod(w, w.rods.y)
    return ROUNDING


@njit(**KERNEL)
def _try(w: Record, done: float, to: float) -> float:
    """Go one step of the path; returns the Jacobian's change, infinite if it does not count."""
    if not _advance(w, done, to) or not linearise(w):
        return math.inf
    change = max(changed(w), 1e-3)
    return change if change <= CHANGE else math.inf


@njit(**KERNEL)
def _across(w: Record, done: float, size: float) -> bool:
    """Go straight on from the entry clear across a point where branches cross.

    Where two of them cross, the curve has no direction of its own; the one that is on this side
    goes on beyond. True with the point in anchor and its part of the path in arc_part.
    """
    for k in range(len(ACROSS)):
        load(w, w.clear)
        if not linearise(w):
            return False
        store(w, w.anchor)
        along(w, w.slope)
        to = min(1.0, done + ACROSS[k] * size)
        if not _advance(w, done, to) or not linearise(w):
            continue
        w.trial = w.slope
        along(w, w.slope)
        difference(w.slope, w.trial, w.delta)
        if scaled(w, w.delta) <= BEND * scaled(w, w.slope):
            store(w, w.anchor)
            w.arc_part = to
            return True
    return False


@njit(**KERNEL)
def _close_up(w: Record, clear: float, goal: float, inside: bool) -> float:
    """Go on along the arc from the entry clear to ``goal``, shortly before a fold.

    Returns:
        How far along the path clear lies then.
    """
    copy_entry(w.clear, w.anchor)
    if not goal > clear or pass_by_arc(w, clear, goal, goal - clear, math.inf) != ARRIVED:
        return clear
    if not linearise(w):
        return clear
    inside = inside and violated(w) == NONE
    _anchor(w, math.inf, False)
    store(w, w.clear)
    if inside and admitted(w):
        store(w, w.within)
        w.reached_within = goal
    return goal


@njit(**INLINED)
def _follow(w: Record) -> int:
    twist(w)
    if not _begin(w):
        return FOLD
    size = w.L / max(path_length(w), 1e-100)
    narrow = max(w.smallest, NARROW * size)
    done, step, inside, ended = 0.0, 1.0, True, PASSED
    w.arc_left = w.arc_budget
    for _ in range(SUBSTEPS_MAX):
        to = min(1.0, done + step)
        if to > 1.0 - 1e-9:
            to = 1.0
        w.substeps += 1
        change = _try(w, done, to)
        if change <= CHANGE:
            step = (to - done) * min(GROW, 0.8 * CHANGE / change)
            done = to
        else:
            step = 0.4 * (to - done)
            if step >= narrow:
                continue
            ended = pass_by_arc(w, done, 1.0, to - done, narrow)
            if ended == LOST and w.arc_left > 0 and _across(w, done, size):
                ended = PASSED
            if ended > ARRIVED:
                break
            done = 1.0 if ended == ARRIVED else w.arc_part
            if ended == PASSED:
                load(w, w.anchor)
            if not linearise(w):
                break
            change, step = math.inf, WIDE * narrow
        inside = inside and violated(w) == NONE
        _anchor(w, change, False)
        inside = inside and admitted(w)
        store(w, w.clear)
        w.reached = done
        if inside:
            store(w, w.within)
            w.reached_within = done
        if done == 1.0:
            return _arrive(w)
    if ended == TURNED:
        w.limiting = largest_rod(w, w.direction)
        turned = w.arc_part
        w.reached = _close_up(w, w.reached, turned - CLEAR_OF * size, inside)
        w.arc_part = turned
        copy_entry(w.clear, w.anchor)
        return FOLD
    w.limiting = -1
    copy_entry(w.clear, w.anchor)
    return STALLED
