"""Forward kinematics: the pose for given lengths, by the same equations.

A Newton step of the inverse kinematics changes all unknowns at a fixed pose; a change of pose adds
the tangents. The pose is changed by what makes the lengths come out as given, so each iteration is
the full Newton step of the 36 equations in forces, moments and pose, whose Jacobian F is.

The lengths move along a straight line, and the solution with them, finely solved whatever the
tolerance. As in continuation.py a step counts only if the eigenvalues of F1^-1 F0 lie within 0.7 of
1, so that no singular point of F lies on it. At fixed lengths, equilibria meet and change their
stability at singular points of F only: the pose that is found is the one at which the platform
itself arrives when the legs are moved slowly from the start, and it is stable if the start was.
Where F becomes singular the platform gives way, and the path ends.
"""

from __future__ import annotations

import math

from numba import njit

from continuum_ik.continuation import (
    CHANGE,
    CORRECTION,
    GROW,
    POWER_STEPS,
    PREDICTION,
    SHRINK,
    SUBSTEPS_MAX,
    apply_difference,
    growth,
    stir_platform,
    violated,
)
from continuum_ik.equations import (
    aim,
    evaluate,
    invert6,
    plan_steps,
    pose_column,
    solve_linear,
)
from continuum_ik.layout import record
from continuum_ik.path import (
    LEVER,
    add,
    along,
    copy_entry,
    difference,
    largest_rod,
    lengths_by_pose,
    linearise,
    load,
    scaled,
    store,
    tell,
)
from continuum_ik.pose import turn
from continuum_ik.reasons import (
    BEHIND_BASE,
    FOLD,
    INVALID_INPUT,
    NO_START,
    NONE,
    NOT_CONVERGED,
    NOT_FINITE,
    STALLED,
    SUCCESS,
    TOO_LONG,
    TOO_SHORT,
    UNREACHABLE,
)
from continuum_ik.rod import INLINED, KERNEL, LANES, LENGTH, RODS, Array, Record

NEWTON_STEPS = 8
#: Largest correction of the predicted pose, beside the predicted change.
POSE_CORRECTION = 0.5
#: Largest change of the pose in one step, as part of the robot's size.
NEAR = 0.25
#: Newton steps that leave more than this of the sum of squares have come to the rounding errors.
STAGNATION = 0.25


@njit(**KERNEL)
def _length_jacobian(w: Record) -> bool:
    """Invert d lengths / d pose, taken from the tangents, into pose_by_length."""
    lengths_by_pose(w, w.length_by_pose)
    return invert6(w.length_by_pose, w.pose_by_length)


@njit(**KERNEL)
def _solve_forward(w: Record) -> None:
    """Set (delta, twist) to F^-1 residual: forces and moments, and pose, at fixed lengths.

    With y = J^-1 r and T the tangents, the lengths stay as they are if the pose changes by -P y_L,
    P being the inverse of dL/dpose.
    """
    solve_linear(w)
    for j in range(6):
        change = 0.0
        for i in range(RODS):
            change -= w.pose_by_length[j, i] * w.delta[LENGTH, i]
        w.twist[j] = change
    for r in range(LENGTH):
        for i in range(LANES):
            for j in range(6):
                w.delta[r, i] += w.tangent[j, r, i] * w.twist[j]
    w.delta[LENGTH] = 0.0


@njit(**KERNEL)
def _pose_size(w: Record) -> float:
    """Return the size of twist, turns by a lever [m]."""
    lever = LEVER * w.L
    size = 0.0
    for k in range(3):
        size += w.twist[k] ** 2 + (lever * w.twist[3 + k]) ** 2
    return math.sqrt(size)


@njit(**KERNEL)
def _move_pose(w: Record) -> None:
    """Move the pose by twist, and aim at it."""
    for k in range(3):
        w.pose[0, k] += w.twist[k]
    turn(w.pose, w.twist[3], w.twist[4], w.twist[5], w.pose)
    _square(w.pose[1:])
    aim(w)


@njit(**KERNEL)
def _square(R: Array) -> None:
    """Take the rounding out of a rotation matrix: R <- R (3 I - R'R) / 2."""
    old = R.copy()
    for i in range(3):
        for j in range(3):
            total = 0.0
            for k in range(3):
                gram = old[0, k] * old[0, j] + old[1, k] * old[1, j] + old[2, k] * old[2, j]
                total += old[i, k] * gram
            R[i, j] = 1.5 * old[i, j] - 0.5 * total


@njit(**KERNEL)
def _correct_pose(w: Record, furthest_pose: float, furthest: float) -> bool:
    """Solve for pose, forces and moments at the lengths in lengths, by Newton steps.

    Args:
        w: The solver; on success unknowns and pose are a certified point, its factors at hand.
        furthest_pose: Largest change of the pose in all [m].
        furthest: Largest change of the scaled unknowns in all.
    """
    rules, asked, y = w.rules[w.fine], w.rules[0], w.rods.y
    moved = 0.0
    w.trial = y
    previous = math.inf
    for _ in range(NEWTON_STEPS):
        for i in range(RODS):
            y[LENGTH, i] = w.lengths[i]
        plan_steps(w)
        now = evaluate(w)
        if not now < 1e12 or now > 100.0 * previous:
            return False
        w.saved = w.residual
        if not linearise(w) or not _length_jacobian(w):
            return False
        w.residual = w.saved
        _solve_forward(w)
        size = _pose_size(w)
        if now <= rules.accept and size <= 4.0 * rules.leg_tolerance:
            return True
        # Rods under high tension carry rounding errors up; then what was asked for has to do.
        stagnant = now > STAGNATION * previous
        if stagnant and now <= asked.accept and size <= 4.0 * asked.leg_tolerance:
            return True
        previous = now
        moved += size
        if not moved <= furthest_pose:
            return False
        for j in range(6):
            w.twist[j] = -w.twist[j]
        _move_pose(w)
        add(y, -1.0, w.delta)
        difference(y, w.trial, w.delta)
        if not scaled(w, w.delta) <= furthest:
            return False
    return False


@njit(**KERNEL)
def _fill_turns(w: Record) -> None:
    """Fill turns: the columns of F that change with the pose; those of the position are -1."""
    for j in range(3):
        pose_column(w, 3 + j)
        w.turns[j] = w.residual


@njit(**KERNEL)
def _anchor(w: Record) -> None:
    """Go on from the present point: later ones are compared with its F."""
    store(w, w.anchor)
    w.sure_jacobian, w.sure_arm, w.sure_turns = w.jacobian, w.arm, w.turns


@njit(**KERNEL)
def _changed(w: Record) -> float:
    """Return the largest |eigenvalue| of F1^-1 F0 - 1, by some steps of power iteration.

    F1 is the Jacobian at hand, F0 that of the anchor. Destroys residual, delta and twist.
    """
    w.residual[:] = 0.0
    stir_platform(w)
    _solve_forward(w)
    middle = 1.0
    for step in range(POWER_STEPS):
        if step == POWER_STEPS - 2:
            middle = max(scaled(w, w.delta), _pose_size(w) / w.L)
        apply_difference(w)
        for j in range(3):
            add(w.residual, w.twist[3 + j], w.sure_turns[j])
            add(w.residual, -w.twist[3 + j], w.turns[j])
        _solve_forward(w)
    return growth(middle, max(scaled(w, w.delta), _pose_size(w) / w.L))


@njit(**KERNEL)
def _predict(w: Record, part: float) -> None:
    """Set twist and delta to what ``part`` of the way changes, by the slopes at the anchor."""
    for j in range(6):
        change = 0.0
        for i in range(RODS):
            change += w.pose_by_length[j, i] * (w.wanted[i] - w.start.y[LENGTH, i])
        w.twist[j] = change * part
    along(w, w.delta)


@njit(**KERNEL)
def _inadmissible(w: Record) -> int:
    """Return the first limit that the present point breaks, or NONE; sets limiting."""
    for i in range(RODS):
        if not w.tip[2, i] >= w.height_min:
            w.limiting = i
            return BEHIND_BASE
    return violated(w)


@njit(**INLINED)
def _begin(w: Record) -> bool:
    """Load start, make it fine, and anchor there; False at a singular point."""
    load(w, w.start)
    store(w, w.within)
    w.reached, w.reached_within, w.limiting = 0.0, 0.0, -1
    for i in range(RODS):
        w.lengths[i] = w.start.y[LENGTH, i]
    if not _correct_pose(w, 0.1 * NEAR * w.L, CORRECTION):
        load(w, w.start)
    store(w, w.anchor)
    if not linearise(w) or not _length_jacobian(w):
        return False
    _fill_turns(w)
    _anchor(w)
    return True


@njit(**INLINED)
def _advance(w: Record, done: float, to: float) -> bool:
    """Predict and correct one step of the path; slopes of the anchor must be at hand."""
    load(w, w.anchor)
    _predict(w, to - done)
    for i in range(RODS):
        a, b = w.start.y[LENGTH, i], w.wanted[i]
        w.lengths[i] = b if to == 1.0 else a + to * (b - a)
    size, predicted = _pose_size(w), scaled(w, w.delta)
    if not (predicted <= PREDICTION and size <= NEAR * w.L):
        return False
    _move_pose(w)
    add(w.rods.y, 1.0, w.delta)
    return _correct_pose(w, POSE_CORRECTION * size + 1e-6, CORRECTION * predicted + 1e-6)


@njit(**INLINED)
def _approach(w: Record) -> int:
    """Continue from the entry start to the lengths that are wanted.

    Returns:
        NONE with the solution in unknowns and pose, or the reason why not. anchor is the last point
        reached, reached how far along the path it lies, and within the last one within the limits.
    """
    if not _begin(w):
        return FOLD
    done, step, broken = 0.0, 1.0, NONE
    for _ in range(SUBSTEPS_MAX):
        to = min(1.0, done + step)
        if to > 1.0 - 1e-9:
            to = 1.0
        w.substeps += 1
        good, change = _advance(w, done, to), 1.0
        if good:
            _fill_turns(w)
            change = max(_changed(w), 1e-3)
            good = change <= CHANGE
        if good:
            step = (to - done) * min(GROW, 0.8 * CHANGE / change)
            done = to
            w.reached = done
            _anchor(w)
            evaluate(w)
            broken = _inadmissible(w)
            if broken == NONE:
                store(w, w.within)
                w.reached_within = done
            if done == 1.0:
                return broken
        else:
            step = (to - done) * max(0.1, min(SHRINK, 0.8 * CHANGE / change))
            load(w, w.anchor)
            sound = linearise(w) and _length_jacobian(w)
            if step < w.smallest or not sound:
                if broken == NONE and sound:
                    _predict(w, 1.0)
                    w.limiting = largest_rod(w, w.delta)
                # The path may have left the limits before.
                return FOLD if broken == NONE else broken
    return STALLED


@njit(**INLINED)
def forward(w: Record) -> int:
    """Find the pose for the six lengths that are wanted, continuing from the solved entry start.

    Args:
        w: The solver. On success the answer is the entry answer, else best is the furthest point
            that was reached.

    Returns:
        A status code.
    """
    w.evaluations, w.refreshes, w.substeps = 0, 0, 0
    w.reached, w.limiting, w.reason = 0.0, -1, NONE
    copy_entry(w.start, w.best)
    for i in range(RODS):
        if not abs(w.wanted[i]) < 1e300:
            w.reason, w.limiting = NOT_FINITE, i
            return INVALID_INPUT
    for i in range(RODS):
        if not w.length_min <= w.wanted[i] <= w.length_max:
            w.reason, w.limiting = TOO_SHORT if w.wanted[i] < w.length_min else TOO_LONG, i
            return UNREACHABLE
    if not w.start.y[LENGTH, 0] > 0.0:
        w.reason = NO_START
        return NOT_CONVERGED
    w.fine = 1
    reason = _approach(w)
    w.fine = 0
    w.reason = reason
    if reason == NONE:
        store(w, w.answer)
        w.answer_sum_squares = w.sum_squares
        w.limiting = -1
        return SUCCESS
    if reason in (FOLD, STALLED):
        copy_entry(w.anchor, w.best)
        return NOT_CONVERGED if reason == STALLED else UNREACHABLE
    # The pose exists, but breaks a limit.
    copy_entry(w.within, w.best)
    w.reached = w.reached_within
    return UNREACHABLE


@njit(**KERNEL)
def forward_run(
    state: Array, lengths: Array, independent: bool, outcomes: Array, flag: Array
) -> int:
    """Solve rows of lengths in one compiled call; returns the rows dealt with.

    Args:
        state: The solver, at a solution; or it starts from home.
        lengths: (n, 6) [m].
        independent: Start each row there; else from the row before, if that was solved.
        outcomes: (n,) of OUTCOME, filled.
        flag: (1,) of int64; anything but 0 ends the run.
    """
    w = record(state)
    copy_entry(w.answer if w.count > 0 else w.home, w.origin)
    for k in range(len(lengths)):
        if flag[0] != 0:
            return k
        for i in range(RODS):
            w.wanted[i] = lengths[k, i]
        copy_entry(w.origin, w.start)
        code = forward(w)
        tell(w, code, outcomes[k])
        if code == SUCCESS and not independent:
            copy_entry(w.answer, w.origin)
    return len(lengths)
