"""Forward kinematics: the pose for given lengths, by the same equations.

A Newton step of the inverse kinematics changes all unknowns at a fixed pose; a change of pose adds
the tangents. The pose is changed by what makes the lengths come out as given, so each iteration is
the full Newton step of the 36 equations in forces, moments and pose. Far from the start the
lengths move along a straight line, under the same rules as in continuation.py.
"""

from __future__ import annotations

import math

from numba import njit

from continuum_ik import layout as m
from continuum_ik.continuation import (
    CORRECTION,
    GROW,
    PREDICTION,
    SHRINK,
    SUBSTEPS_MAX,
    linearise,
    load,
    scaled,
    store,
)
from continuum_ik.equations import aim, evaluate, invert6, leg_error, plan_steps, solve_linear
from continuum_ik.pose import turn
from continuum_ik.reasons import (
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
from continuum_ik.rod import KERNEL, LENGTH, Array

NEWTON_STEPS = 8
#: Largest correction of the predicted pose, beside the predicted change.
POSE_CORRECTION = 0.5
LEVER = 0.1


@njit(**KERNEL)
def _length_jacobian(w: Array) -> bool:
    """Invert d lengths / d pose, taken from the tangents, into POSE_BY_LENGTH."""
    for i in range(m.RODS):
        for j in range(6):
            w[m.LENGTH_BY_POSE + 6 * i + j] = w[m.TANGENT + j * m.COLUMN + 40 + i]
    return invert6(
        w[m.LENGTH_BY_POSE : m.LENGTH_BY_POSE + 36], w[m.POSE_BY_LENGTH : m.POSE_BY_LENGTH + 36]
    )


@njit(**KERNEL)
def _move(w: Array) -> float:
    """Move pose and unknowns by the twist at TWIST; returns the size of the move [m]."""
    size = 0.0
    for k in range(3):
        w[m.POSE + k] += w[m.TWIST + k]
        size += w[m.TWIST + k] ** 2 + (LEVER * w[m.TWIST + 3 + k]) ** 2
    R = w[m.POSE + 3 : m.POSE + 12]
    turn(R, w[m.TWIST + 3], w[m.TWIST + 4], w[m.TWIST + 5], R)
    _square(R)
    for k in range(m.UNKNOWNS):
        change = 0.0
        for j in range(6):
            change += w[m.TANGENT + j * m.COLUMN + k] * w[m.TWIST + j]
        w[m.DELTA + k] = change
    aim(w)
    return math.sqrt(size)


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
    """Solve for pose, forces and moments at the lengths in LENGTHS, by Newton steps."""
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
        previous = now
        for k in range(m.UNKNOWNS):
            w[m.SAVED + k] = w[m.RESIDUAL + k]
        if not linearise(w):
            return False
        for k in range(m.UNKNOWNS):
            w[m.RESIDUAL + k] = w[m.SAVED + k]
        if not _length_jacobian(w):
            return False
        solve_linear(w)
        leg_error(w)
        for k in range(m.UNKNOWNS):
            w[m.SAVED_STEP + k] = w[m.DELTA + k]
        for j in range(6):
            change = 0.0
            for i in range(m.RODS):
                change += w[m.POSE_BY_LENGTH + 6 * j + i] * w[m.DELTA + 40 + i]
            w[m.TWIST + j] = change
        size = 0.0
        for j in range(6):
            size = max(size, abs(w[m.TWIST + j]) * (1.0 if j < 3 else LEVER))
        if now <= w[m.ACCEPT] and size <= 4.0 * w[m.LEG_TOLERANCE]:
            return True
        moved += _move(w)
        if moved > furthest_pose:
            return False
        for k in range(m.UNKNOWNS):
            w[m.Y + k] += w[m.DELTA + k] - w[m.SAVED_STEP + k]
            w[m.DELTA + k] = w[m.Y + k] - w[m.TRIAL + k]
        if scaled(w, m.DELTA) > furthest:
            return False
    return False


@njit(**KERNEL)
def _approach(w: Array) -> int:
    """Continue from the entry START to the lengths in FORWARD."""
    load(w, m.START)
    store(w, m.ANCHOR)
    w[m.REACHED] = 0.0
    w[m.LIMITING] = -1.0
    if not linearise(w) or not _length_jacobian(w):
        return FOLD
    done, step = 0.0, 1.0
    for _ in range(SUBSTEPS_MAX):
        to = min(1.0, done + step)
        if to > 1.0 - 1e-9:
            to = 1.0
        w[m.SUBSTEPS] += 1.0
        load(w, m.ANCHOR)
        for j in range(6):
            change = 0.0
            for i in range(m.RODS):
                way = w[m.FORWARD + i] - w[m.START + 40 + i]
                change += w[m.POSE_BY_LENGTH + 6 * j + i] * way
            w[m.TWIST + j] = change * (to - done)
        for i in range(m.RODS):
            a, b = w[m.START + 40 + i], w[m.FORWARD + i]
            w[m.LENGTHS + i] = b if to == 1.0 else a + to * (b - a)
        size = _move(w)
        predicted = scaled(w, m.DELTA)
        good = predicted <= PREDICTION and size < 0.1
        if good:
            for k in range(m.UNKNOWNS):
                w[m.Y + k] += w[m.DELTA + k]
            good = _correct_pose(w, POSE_CORRECTION * size + 1e-6, CORRECTION * predicted + 1e-6)
        if good:
            done = to
            w[m.REACHED] = done
            store(w, m.ANCHOR)
            if done == 1.0:
                return NONE
            step *= GROW
        else:
            step = SHRINK * (to - done)
            if step < w[m.SMALLEST]:
                return FOLD
            load(w, m.ANCHOR)
            if not linearise(w) or not _length_jacobian(w):
                return FOLD
    return STALLED


@njit(**KERNEL)
def forward(w: Array, lengths: Array, start: int) -> int:
    """Find the pose for six lengths, continuing from the solved entry at ``start``.

    Args:
        w: The solver's array. On success the answer is the entry ANSWER, else BEST is the furthest
            point that was reached.
        lengths: (6) [m].
        start: Where the entry lies.

    Returns:
        A status code.
    """
    w[m.EVALUATIONS], w[m.REFRESHES], w[m.SUBSTEPS] = 0.0, 0.0, 0.0
    w[m.REACHED], w[m.LIMITING], w[m.REASON] = 0.0, -1.0, float(NONE)
    for k in range(m.ENTRY):
        w[m.BEST + k] = w[start + k]
    for i in range(m.RODS):
        if not abs(lengths[i]) < 1e300:
            w[m.REASON], w[m.LIMITING] = float(NOT_FINITE), float(i)
            return INVALID_INPUT
    for i in range(m.RODS):
        if not w[m.LENGTH_MIN] <= lengths[i] <= w[m.LENGTH_MAX]:
            short = lengths[i] < w[m.LENGTH_MIN]
            w[m.REASON], w[m.LIMITING] = float(TOO_SHORT if short else TOO_LONG), float(i)
            return UNREACHABLE
        w[m.FORWARD + i] = lengths[i]
    if not w[start + 40] > 0.0:
        w[m.REASON] = float(NO_START)
        return NOT_CONVERGED
    for k in range(m.ENTRY):
        w[m.START + k] = w[start + k]
    reason = _approach(w)
    w[m.REASON] = float(reason)
    if reason == NONE:
        store(w, m.ANSWER)
        w[m.ANSWER_SUM_SQUARES], w[m.ANSWER_LEG_ERROR] = w[m.SUM_SQUARES], w[m.LEG_ERROR]
        return SUCCESS
    for k in range(m.ENTRY):
        w[m.BEST + k] = w[m.ANCHOR + k]
    return NOT_CONVERGED if reason == STALLED else UNREACHABLE


@njit(**KERNEL)
def forward_run(
    w: Array,
    lengths: Array,
    start: int,
    independent: bool,
    poses: Array,
    sums: Array,
    reached: Array,
    codes: Array,
    flag: Array,
) -> int:
    """Solve rows of lengths (n, 6) in one compiled call; returns the rows dealt with.

    Args:
        w: The solver's array.
        lengths: (n, 6) [m].
        start: The solved entry to start from.
        independent: Start each row there; else from the row before, if that was solved.
        poses: (n, 12), filled with the poses, or the furthest ones reached.
        sums: (n,), filled with sums of squares of the residual.
        reached: (n,), filled with the part of the way that was reached.
        codes: (n,) of uint8.
        flag: (1,) of int64; anything but 0 ends the run.
    """
    at = start
    for k in range(len(lengths)):
        if flag[0] != 0:
            return k
        code = forward(w, lengths[k], at)
        codes[k] = code
        entry = m.ANSWER if code == SUCCESS else m.BEST
        sums[k] = w[m.ANSWER_SUM_SQUARES] if code == SUCCESS else math.nan
        reached[k] = w[m.REACHED]
        for j in range(12):
            poses[k, j] = w[entry + m.ENTRY_POSE + j]
        if code == SUCCESS and not independent:
            at = m.ANSWER
    return len(lengths)
