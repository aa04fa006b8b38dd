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

from continuum_ik import layout as m
from continuum_ik.continuation import (
    CHANGE,
    CORRECTION,
    GROW,
    POWER_STEPS,
    PREDICTION,
    SHRINK,
    SUBSTEPS_MAX,
    apply_difference,
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
from continuum_ik.path import (
    LEVER,
    copy_entry,
    exchange_rules,
    largest_rod,
    linearise,
    load,
    scaled,
    store,
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
from continuum_ik.rod import INLINED, KERNEL, LENGTH, Array

NEWTON_STEPS = 8
#: Largest correction of the predicted pose, beside the predicted change.
POSE_CORRECTION = 0.5
#: Largest change of the pose in one step, as part of the robot's size.
NEAR = 0.25
#: Newton steps that leave more than this of the sum of squares have come to the rounding errors.
STAGNATION = 0.25
#: Numbers about a row of lengths in ``forward_run``.
FORWARD_DETAILS = 16


@njit(**KERNEL)
def _length_jacobian(w: Array) -> bool:
    """Invert d lengths / d pose, taken from the tangents, into POSE_BY_LENGTH."""
    for i in range(m.RODS):
        for j in range(6):
            w[m.LENGTH_BY_POSE + 6 * i + j] = w[m.TANGENT + j * m.COLUMN + 40 + i]
    return invert6(w, m.LENGTH_BY_POSE, m.POSE_BY_LENGTH)


@njit(**KERNEL)
def _solve_forward(w: Array) -> None:
    """Set (DELTA, TWIST) to F^-1 RESIDUAL: forces and moments, and pose, at fixed lengths.

    With y = J^-1 r and T the tangents, the lengths stay as they are if the pose changes by -P y_L,
    P being the inverse of dL/dpose.
    """
    solve_linear(w)
    for j in range(6):
        change = 0.0
        for i in range(m.RODS):
            change -= w[m.POSE_BY_LENGTH + 6 * j + i] * w[m.DELTA + 40 + i]
        w[m.TWIST + j] = change
    for k in range(40):
        for j in range(6):
            w[m.DELTA + k] += w[m.TANGENT + j * m.COLUMN + k] * w[m.TWIST + j]
    for k in range(40, 48):
        w[m.DELTA + k] = 0.0


@njit(**KERNEL)
def _pose_size(w: Array) -> float:
    """Return the size of TWIST, turns by a lever [m]."""
    lever = LEVER * w[m.LENGTH_TYPICAL]
    size = 0.0
    for k in range(3):
        size += w[m.TWIST + k] ** 2 + (lever * w[m.TWIST + 3 + k]) ** 2
    return math.sqrt(size)


@njit(**KERNEL)
def _move_pose(w: Array) -> None:
    """Move the pose by TWIST, and aim at it."""
    for k in range(3):
        w[m.POSE + k] += w[m.TWIST + k]
    turn(w, m.POSE + 3, w[m.TWIST + 3], w[m.TWIST + 4], w[m.TWIST + 5], m.POSE + 3)
    _square(w[m.POSE + 3 : m.POSE + 12])
    aim(w)


@njit(**KERNEL)
def _square(R: Array) -> None:
    """Take the rounding out of a rotation matrix: R <- R (3 I - R'R) / 2."""
    a, b, c = R[0:3].copy(), R[3:6].copy(), R[6:9].copy()
    for i in range(3):
        x, y, z = R[3 * i], R[3 * i + 1], R[3 * i + 2]
        for j in range(3):
            g0 = a[0] * a[j] + b[0] * b[j] + c[0] * c[j]
            g1 = a[1] * a[j] + b[1] * b[j] + c[1] * c[j]
            g2 = a[2] * a[j] + b[2] * b[j] + c[2] * c[j]
            own = a[j] if i == 0 else (b[j] if i == 1 else c[j])
            R[3 * i + j] = 1.5 * own - 0.5 * (x * g0 + y * g1 + z * g2)


@njit(**KERNEL)
def _correct_pose(w: Array, furthest_pose: float, furthest: float) -> bool:
    """Solve for pose, forces and moments at the lengths in LENGTHS, by Newton steps.

    Args:
        w: The solver's array; on success Y and POSE are a certified point, its factors at hand.
        furthest_pose: Largest change of the pose in all [m].
        furthest: Largest change of the scaled unknowns in all.
    """
    other = m.OTHER_RULES - m.RULES
    moved = 0.0
    for k in range(m.UNKNOWNS):
        w[m.TRIAL + k] = w[m.Y + k]
    previous = math.inf
    for _ in range(NEWTON_STEPS):
        for i in range(m.RODS):
            w[LENGTH + i] = w[m.LENGTHS + i]
        w[m.STEPS] = float(plan_steps(w))
        now = evaluate(w)
        if not now < 1e12 or now > 100.0 * previous:
            return False
        for k in range(m.UNKNOWNS):
            w[m.SAVED + k] = w[m.RESIDUAL + k]
        if not linearise(w) or not _length_jacobian(w):
            return False
        for k in range(m.UNKNOWNS):
            w[m.RESIDUAL + k] = w[m.SAVED + k]
        _solve_forward(w)
        size = _pose_size(w)
        if now <= w[m.ACCEPT] and size <= 4.0 * w[m.LEG_TOLERANCE]:
            return True
        # Rods under high tension carry rounding errors up; then what was asked for has to do.
        accept = max(w[m.ACCEPT], w[m.ACCEPT + other])
        legs = max(w[m.LEG_TOLERANCE], w[m.LEG_TOLERANCE + other])
        if now > STAGNATION * previous and now <= accept and size <= 4.0 * legs:
            return True
        previous = now
        moved += size
        if not moved <= furthest_pose:
            return False
        for j in range(6):
            w[m.TWIST + j] = -w[m.TWIST + j]
        _move_pose(w)
        for k in range(m.UNKNOWNS):
            w[m.Y + k] -= w[m.DELTA + k]
            w[m.DELTA + k] = w[m.Y + k] - w[m.TRIAL + k]
        if not scaled(w, m.DELTA) <= furthest:
            return False
    return False


@njit(**KERNEL)
def _fill_turns(w: Array) -> None:
    """Fill TURNS: the columns of F that change with the pose; those of the position are -1."""
    for j in range(3):
        pose_column(w, 3 + j)
        for k in range(m.UNKNOWNS):
            w[m.TURNS + j * m.COLUMN + k] = w[m.RESIDUAL + k]


@njit(**KERNEL)
def _anchor(w: Array) -> None:
    """Go on from the present point: later ones are compared with its F."""
    store(w, m.ANCHOR)
    for k in range(48 * m.LANES):
        w[m.SURE_JACOBIAN + k] = w[m.JACOBIAN + k]
    for k in range(24):
        w[m.SURE_ARM + k] = w[m.ARM + k]
    for k in range(3 * m.COLUMN):
        w[m.SURE_TURNS + k] = w[m.TURNS + k]


@njit(**KERNEL)
def _changed(w: Array) -> float:
    """Return the largest |eigenvalue| of F1^-1 F0 - 1, by some steps of power iteration.

    F1 is the Jacobian at hand, F0 that of the anchor. Destroys RESIDUAL, DELTA and TWIST.
    """
    L, EI = w[m.LENGTH_TYPICAL], w[m.EI_TYPICAL]
    for k in range(m.RESIDUAL, m.PLATFORM_RESIDUAL + 8):
        w[k] = 0.0
    for j in range(3):
        w[m.PLATFORM_RESIDUAL + j] = (1.0, 0.7, -0.4)[j] * EI / (L * L)
        w[m.PLATFORM_RESIDUAL + 3 + j] = (0.5, -0.8, 0.9)[j] * EI / L
    _solve_forward(w)
    middle = 1.0
    for step in range(POWER_STEPS):
        if step == POWER_STEPS - 2:
            middle = max(scaled(w, m.DELTA), _pose_size(w) / L)
        apply_difference(w)
        for j in range(3):
            turned = w[m.TWIST + 3 + j]
            at, sure = m.TURNS + j * m.COLUMN, m.SURE_TURNS + j * m.COLUMN
            for k in range(m.UNKNOWNS):
                w[m.RESIDUAL + k] += (w[sure + k] - w[at + k]) * turned
        _solve_forward(w)
    size = max(scaled(w, m.DELTA), _pose_size(w) / L)
    if not size < 1e200:
        return math.inf
    return math.sqrt(size / middle) if middle > 1e-200 else 0.0


@njit(**KERNEL)
def _predict(w: Array, part: float) -> None:
    """Set TWIST and DELTA to what ``part`` of the way changes, by the slopes at the anchor."""
    for j in range(6):
        change = 0.0
        for i in range(m.RODS):
            way = w[m.FORWARD + i] - w[m.START + 40 + i]
            change += w[m.POSE_BY_LENGTH + 6 * j + i] * way
        w[m.TWIST + j] = change * part
    for k in range(m.UNKNOWNS):
        change = 0.0
        for j in range(6):
            change += w[m.TANGENT + j * m.COLUMN + k] * w[m.TWIST + j]
        w[m.DELTA + k] = change


@njit(**KERNEL)
def _inadmissible(w: Array) -> int:
    """Return the first limit that the present point breaks, or NONE; sets LIMITING."""
    for i in range(m.RODS):
        if not w[m.TIP + 16 + i] >= w[m.HEIGHT_MIN]:
            w[m.LIMITING] = float(i)
            return BEHIND_BASE
    return violated(w)


@njit(**INLINED)
def _begin(w: Array) -> bool:
    """Load START, make it fine, and anchor there; False at a singular point."""
    load(w, m.START)
    store(w, m.WITHIN)
    w[m.REACHED], w[m.REACHED_WITHIN], w[m.LIMITING] = 0.0, 0.0, -1.0
    for i in range(m.RODS):
        w[m.LENGTHS + i] = w[m.START + 40 + i]
    if not _correct_pose(w, 0.1 * NEAR * w[m.LENGTH_TYPICAL], CORRECTION):
        load(w, m.START)
    store(w, m.ANCHOR)
    if not linearise(w) or not _length_jacobian(w):
        return False
    _fill_turns(w)
    _anchor(w)
    return True


@njit(**INLINED)
def _advance(w: Array, done: float, to: float) -> bool:
    """Predict and correct one step of the path; slopes of the anchor must be at hand."""
    load(w, m.ANCHOR)
    _predict(w, to - done)
    for i in range(m.RODS):
        a, b = w[m.START + 40 + i], w[m.FORWARD + i]
        w[m.LENGTHS + i] = b if to == 1.0 else a + to * (b - a)
    size, predicted = _pose_size(w), scaled(w, m.DELTA)
    if not (predicted <= PREDICTION and size <= NEAR * w[m.LENGTH_TYPICAL]):
        return False
    _move_pose(w)
    for k in range(m.UNKNOWNS):
        w[m.Y + k] += w[m.DELTA + k]
    return _correct_pose(w, POSE_CORRECTION * size + 1e-6, CORRECTION * predicted + 1e-6)


@njit(**INLINED)
def _approach(w: Array) -> int:
    """Continue from the entry START to the lengths in FORWARD.

    Returns:
        NONE with the solution in Y and POSE, or the reason why not. ANCHOR is the last point
        reached, REACHED how far along the path it lies, and WITHIN the last one within the limits.
    """
    if not _begin(w):
        return FOLD
    done, step, broken = 0.0, 1.0, NONE
    for _ in range(SUBSTEPS_MAX):
        to = min(1.0, done + step)
        if to > 1.0 - 1e-9:
            to = 1.0
        w[m.SUBSTEPS] += 1.0
        good, change = _advance(w, done, to), 1.0
        if good:
            _fill_turns(w)
            change = max(_changed(w), 1e-3)
            good = change <= CHANGE
        if good:
            step = (to - done) * min(GROW, 0.8 * CHANGE / change)
            done = to
            w[m.REACHED] = done
            _anchor(w)
            evaluate(w)
            broken = _inadmissible(w)
            if broken == NONE:
                store(w, m.WITHIN)
                w[m.REACHED_WITHIN] = done
            if done == 1.0:
                return broken
        else:
            step = (to - done) * max(0.1, min(SHRINK, 0.8 * CHANGE / change))
            load(w, m.ANCHOR)
            sound = linearise(w) and _length_jacobian(w)
            if step < w[m.SMALLEST] or not sound:
                if broken == NONE and sound:
                    _predict(w, 1.0)
                    w[m.LIMITING] = float(largest_rod(w, m.DELTA))
                # The path may have left the limits before.
                return FOLD if broken == NONE else broken
    return STALLED


@njit(**INLINED)
def forward(w: Array, start: int) -> int:
    """Find the pose for the six lengths in FORWARD, continuing from the solved entry at ``start``.

    Args:
        w: The solver's array. On success the answer is the entry ANSWER, else BEST is the furthest
            point that was reached.
        start: Where the entry lies.

    Returns:
        A status code.
    """
    w[m.EVALUATIONS], w[m.REFRESHES], w[m.SUBSTEPS] = 0.0, 0.0, 0.0
    w[m.REACHED], w[m.LIMITING], w[m.REASON] = 0.0, -1.0, float(NONE)
    copy_entry(w, start, m.BEST)
    for i in range(m.RODS):
        if not abs(w[m.FORWARD + i]) < 1e300:
            w[m.REASON], w[m.LIMITING] = float(NOT_FINITE), float(i)
            return INVALID_INPUT
    for i in range(m.RODS):
        if not w[m.LENGTH_MIN] <= w[m.FORWARD + i] <= w[m.LENGTH_MAX]:
            short = w[m.FORWARD + i] < w[m.LENGTH_MIN]
            w[m.REASON], w[m.LIMITING] = float(TOO_SHORT if short else TOO_LONG), float(i)
            return UNREACHABLE
    if not w[start + 40] > 0.0:
        w[m.REASON] = float(NO_START)
        return NOT_CONVERGED
    copy_entry(w, start, m.START)
    exchange_rules(w)
    reason = _approach(w)
    exchange_rules(w)
    w[m.REASON] = float(reason)
    if reason == NONE:
        store(w, m.ANSWER)
        w[m.ANSWER_SUM_SQUARES] = w[m.SUM_SQUARES]
        w[m.LIMITING] = -1.0
        return SUCCESS
    if reason in (FOLD, STALLED):
        copy_entry(w, m.ANCHOR, m.BEST)
        return NOT_CONVERGED if reason == STALLED else UNREACHABLE
    # The pose exists, but breaks a limit.
    copy_entry(w, m.WITHIN, m.BEST)
    w[m.REACHED] = w[m.REACHED_WITHIN]
    return UNREACHABLE


@njit(**KERNEL)
def forward_run(
    w: Array,
    lengths: Array,
    start: int,
    independent: bool,
    out: Array,
    codes: Array,
    flag: Array,
) -> int:
    """Solve rows of lengths in one compiled call; returns the rows dealt with.

    Args:
        w: The solver's array.
        lengths: (n, 6) [m].
        start: The solved entry to start from.
        independent: Start each row there; else from the row before, if that was solved.
        out: (n, FORWARD_DETAILS), filled with sum of squares, part of the way reached, leg that
            hinders, reason, and the pose (12) or the furthest one reached.
        codes: (n,) of uint8, filled with status codes.
        flag: (1,) of int64; anything but 0 ends the run.
    """
    at = start
    for k in range(len(lengths)):
        if flag[0] != 0:
            return k
        for i in range(m.RODS):
            w[m.FORWARD + i] = lengths[k, i]
        code = forward(w, at)
        codes[k] = code
        entry = m.ANSWER if code == SUCCESS else m.BEST
        out[k, 0] = w[m.ANSWER_SUM_SQUARES] if code == SUCCESS else math.nan
        out[k, 1], out[k, 2], out[k, 3] = w[m.REACHED], w[m.LIMITING], w[m.REASON]
        for j in range(12):
            out[k, 4 + j] = w[entry + m.ENTRY_POSE + j]
        if code == SUCCESS and not independent:
            at = m.ANSWER
    return len(lengths)
