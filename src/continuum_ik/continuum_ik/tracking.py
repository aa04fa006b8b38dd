"""Inverse kinematics of one target after the other: predict, certify, correct.

The unknowns and poses of the last targets are extrapolated alike, and what the extrapolated pose
misses of the target is made up by the tangents dY/dpose. One evaluation of the equations then says
whether that guess already is a solution; if not, chord steps follow with the Jacobian at hand, and
a new Jacobian when the old one has become too old. Whatever this cannot do in a few evaluations
goes to the continuation (continuation.py).

What is returned is always a point at which the equations were evaluated, never a later correction
of it. The history holds the corrected ("polished") points, which are better to extrapolate.
"""

from __future__ import annotations

import math

from numba import njit

from continuum_ik import layout as m
from continuum_ik.continuation import (
    CHANGE,
    admitted,
    changed,
    follow,
    make_sure,
    moved_from_sure,
    violated,
)
from continuum_ik.equations import (
    aim,
    evaluate,
    leg_error,
    plan_steps,
    solve_linear,
)
from continuum_ik.path import LEVER, copy_entry, linearise, load, pose_between, scaled, store, twist
from continuum_ik.pose import read_pose
from continuum_ik.reasons import (
    BEHIND_BASE,
    INVALID_INPUT,
    NO_START,
    NONE,
    NOT_A_ROTATION,
    NOT_CONVERGED,
    NOT_FINITE,
    NOT_STABLE,
    ROUNDING,
    ROUTE_AXIS,
    ROUTE_HOME,
    ROUTE_STRAIGHT,
    ROUTE_TRACKED,
    STALLED,
    SUCCESS,
    TOO_FAR,
    UNREACHABLE,
)
from continuum_ik.rod import INLINED, KERNEL, Array
from continuum_ik.stability import is_stable, settle_stability

#: Evaluations that tracking may spend on one target before the continuation takes over.
TRACK_EVALUATIONS = 6
#: Solves after which a Jacobian is made anew as soon as a prediction misses.
OLD = 9.0
#: A chord step must leave less than this of the sum of squares, or the Jacobian is made anew.
CONTRACTION = 0.01
#: Furthest target from the last one that tracking tries, as part of the robot's size, and largest
#: correction of a prediction in the scaled unknowns.
TRACK_DISTANCE, TRACK_CORRECTION = 0.05, 0.3
#: Numbers about a target in ``run``.
DETAILS = 35
#: Largest polishing step, in the scaled unknowns, of a point where the branch was in doubt.
CLOSE = 1e-3


@njit(**KERNEL)
def _refuse(w: Array) -> int:
    """Refuse what no configuration of the robot can reach, from the target pose alone."""
    p = m.TARGET
    longest = w[m.LENGTH_MAX] * w[m.STRETCH]
    for i in range(m.RODS):
        x, y, z = w[m.PLATFORM + i], w[m.PLATFORM + 8 + i], w[m.PLATFORM + 16 + i]
        dx = w[p] + w[p + 3] * x + w[p + 4] * y + w[p + 5] * z - w[m.BASE + i]
        dy = w[p + 1] + w[p + 6] * x + w[p + 7] * y + w[p + 8] * z - w[m.BASE + 8 + i]
        dz = w[p + 2] + w[p + 9] * x + w[p + 10] * y + w[p + 11] * z - w[m.BASE + 16 + i]
        if not dz >= w[m.HEIGHT_MIN]:
            w[m.LIMITING] = float(i)
            return BEHIND_BASE
        if not dx * dx + dy * dy + dz * dz <= longest * longest:
            w[m.LIMITING] = float(i)
            return TOO_FAR
    return NONE


@njit(**KERNEL)
def _mismatch(w: Array, at: int) -> tuple[float, float, float, float, float, float]:
    """Return the twist from the pose at ``at`` to the target, to first order."""
    a, b = at, m.TARGET
    x, y, z = 0.0, 0.0, 0.0
    for j in range(3, 6):
        p, q, r = w[a + j], w[a + j + 3], w[a + j + 6]
        u, v, s = w[b + j], w[b + j + 3], w[b + j + 6]
        x += q * s - r * v
        y += r * u - p * s
        z += p * v - q * u
    return (
        w[b] - w[a],
        w[b + 1] - w[a + 1],
        w[b + 2] - w[a + 2],
        0.5 * x,
        0.5 * y,
        0.5 * z,
    )


@njit(**KERNEL)
def _size2(w: Array, d: tuple[float, float, float, float, float, float]) -> float:
    lever = LEVER * w[m.LENGTH_TYPICAL]
    turned = d[3] * d[3] + d[4] * d[4] + d[5] * d[5]
    return d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + lever * lever * turned


@njit(**KERNEL)
def _entry(w: Array, back: int) -> int:
    """Return where the history's entry lies that is ``back`` targets old."""
    return m.HISTORY + ((int(w[m.HEAD]) + back) % m.ENTRIES) * m.ENTRY


@njit(**INLINED)
def _predict(w: Array) -> bool:
    """Guess the unknowns at the target; False if it is too far from the last one."""
    newest = _entry(w, 0)
    d = _mismatch(w, newest + m.ENTRY_POSE)
    step2 = _size2(w, d)
    if not step2 <= (TRACK_DISTANCE * w[m.LENGTH_TYPICAL]) ** 2:
        return False
    order = min(int(w[m.ORDER]), int(w[m.COUNT]) - 1)
    base = newest
    if order > 0:
        c1, c2, c3, c4, c5 = 2.0, -1.0, 0.0, 0.0, 0.0
        if order == 2:
            c1, c2, c3 = 3.0, -3.0, 1.0
        elif order == 3:
            c1, c2, c3, c4 = 4.0, -6.0, 4.0, -1.0
        elif order == 4:
            c1, c2, c3, c4, c5 = 5.0, -10.0, 10.0, -5.0, 1.0
        a, b = newest, _entry(w, 1)
        c, e, f = _entry(w, 2), _entry(w, 3), _entry(w, 4)
        for k in range(12):
            j = m.ENTRY_POSE + k
            w[m.GUESS_POSE + k] = (
                c1 * w[a + j] + c2 * w[b + j] + c3 * w[c + j] + c4 * w[e + j] + c5 * w[f + j]
            )
        miss = _mismatch(w, m.GUESS_POSE)
        if _size2(w, miss) <= 0.5 * step2:
            d = miss
            for k in range(m.UNKNOWNS):
                w[m.Y + k] = (
                    c1 * w[a + k] + c2 * w[b + k] + c3 * w[c + k] + c4 * w[e + k] + c5 * w[f + k]
                )
            base = m.Y
        else:
            w[m.COUNT] = 1.0
    t = m.TANGENT
    for k in range(m.UNKNOWNS):
        w[m.Y + k] = (
            w[base + k]
            + w[t + k] * d[0]
            + w[t + 48 + k] * d[1]
            + w[t + 96 + k] * d[2]
            + w[t + 144 + k] * d[3]
            + w[t + 192 + k] * d[4]
            + w[t + 240 + k] * d[5]
        )
    return True


@njit(**KERNEL)
def _refresh(w: Array, doubtful: bool) -> bool:
    """Make the Jacobian anew at the present unknowns, keeping the residual.

    False where it is singular or, if the branch is ``doubtful``, has changed so much that a
    singular point may have been passed.
    """
    for k in range(m.UNKNOWNS):
        w[m.SAVED + k] = w[m.RESIDUAL + k]
    if not linearise(w):
        return False
    if doubtful:
        change = changed(w)
        if not change <= CHANGE:
            w[m.IN_DOUBT] = 1.0
            return False
        make_sure(w, change, False)
    for k in range(m.UNKNOWNS):
        w[m.RESIDUAL + k] = w[m.SAVED + k]
    return True


@njit(**INLINED)
def _certify(w: Array) -> bool:
    """Evaluate the prediction, and correct it by chord steps until it is within the tolerance."""
    # Whether a singular point may lie between.
    doubtful = not moved_from_sure(w) <= w[m.SURE_WITHIN]
    if doubtful and not _refresh(w, doubtful):
        return False
    close = CLOSE if doubtful else 1.0
    w[m.STEPS] = float(plan_steps(w))
    previous = math.inf
    for k in range(TRACK_EVALUATIONS):
        now = evaluate(w)
        if not now < CONTRACTION * previous:
            # Also where a number is not finite.
            if not now < 1e6 or not _refresh(w, previous < 1e6):
                return False
        elif k == 0 and now > w[m.ACCEPT] and w[m.AGE] >= OLD and not _refresh(w, doubtful):
            return False
        solve_linear(w)
        if (
            now <= w[m.ACCEPT]
            and leg_error(w) <= w[m.LEG_TOLERANCE]
            and (close == 1.0 or scaled(w, m.DELTA) <= close)
        ):
            return True
        if not scaled(w, m.DELTA) <= TRACK_CORRECTION:
            return False
        for j in range(m.UNKNOWNS):
            w[m.Y + j] -= w[m.DELTA + j]
        previous = now
    return False


@njit(**KERNEL)
def _admit(w: Array) -> bool:
    """Whether the certified point is stable or need not be; close to the border it is decided."""
    settle_stability(w)
    return w[m.AGE] >= 0.0 and admitted(w)


@njit(**KERNEL)
def _remember(w: Array) -> None:
    """Make the certified point the answer, and its polished form the newest of the history."""
    store(w, m.ANSWER)
    w[m.ANSWER_SUM_SQUARES], w[m.ANSWER_LEG_ERROR] = w[m.SUM_SQUARES], w[m.LEG_ERROR]
    w[m.HEAD] = float((int(w[m.HEAD]) + m.ENTRIES - 1) % m.ENTRIES)
    at = _entry(w, 0)
    for k in range(m.UNKNOWNS):
        w[at + k] = w[m.Y + k] - w[m.DELTA + k]
    for k in range(12):
        w[at + m.ENTRY_POSE + k] = w[m.POSE + k]
    w[at + m.ENTRY_STABLE] = w[m.STABLE]
    w[m.COUNT] = min(w[m.COUNT] + 1.0, float(m.ENTRIES))
    w[m.AGE] += 1.0
    w[m.REACHED], w[m.LIMITING], w[m.REASON] = 1.0, -1.0, float(NONE)
    w[m.SOLVED_TOTAL] += 1.0


@njit(**INLINED)
def _back_off(w: Array) -> None:
    """Find the last pose within the limits on a path that leaves them, by bisection.

    START and TARGET span the path, WITHIN is the last point of it that was seen within the limits.
    """
    low, high = w[m.REACHED_WITHIN], w[m.REACHED]
    leg = w[m.LIMITING]
    for k in range(12):
        w[m.AIM + k] = w[m.TARGET + k]
    copy_entry(w, m.START, m.ORIGIN)
    copy_entry(w, m.WITHIN, m.BEST)
    for _ in range(12):
        middle = 0.5 * (low + high)
        # The pose in the middle of the whole path, reached from the best point so far.
        copy_entry(w, m.ORIGIN, m.START)
        for k in range(12):
            w[m.TARGET + k] = w[m.AIM + k]
        twist(w)
        pose_between(w, middle)
        for k in range(12):
            w[m.TARGET + k] = w[m.POSE + k]
        copy_entry(w, m.BEST, m.START)
        if follow(w) == NONE and violated(w) == NONE and admitted(w):
            low = middle
            store(w, m.BEST)
        else:
            high = middle
    w[m.REACHED], w[m.LIMITING] = low, leg
    for k in range(12):
        w[m.TARGET + k] = w[m.AIM + k]


@njit(**INLINED)
def _recover(w: Array) -> int:
    """Reach the target by continuation: from the last good pose, then from home."""
    w[m.RECOVERED_TOTAL] += 1.0
    reason, reached, leg = NO_START, 0.0, -1.0
    stretch = 1.0  # of the path, if it begins before the last answer
    for route in (ROUTE_STRAIGHT, ROUTE_HOME, ROUTE_AXIS):
        warm = w[m.COUNT] > 0.0
        if route == ROUTE_STRAIGHT:
            if not warm:
                continue
            # From the last point where the branch was sure, if there is doubt about later ones.
            copy_entry(w, m.SURE if w[m.IN_DOUBT] == 1.0 else _entry(w, 0), m.START)
            if w[m.IN_DOUBT] == 1.0:
                whole = _size2(w, _mismatch(w, m.START + m.ENTRY_POSE))
                last = _size2(w, _mismatch(w, _entry(w, 0) + m.ENTRY_POSE))
                stretch = math.sqrt(whole / last) if last > 0.0 else 1.0
        else:
            if warm and w[m.DETOURS] == 0.0:
                break
            if w[m.HAS_HOME] == 0.0 or (route == ROUTE_AXIS and w[m.DETOURS] == 0.0):
                break
            copy_entry(w, m.HOME, m.START)
        if route == ROUTE_AXIS:
            # First straight up or down to the target's height, level and not turned.
            for k in range(12):
                w[m.AIM + k] = w[m.TARGET + k]
            for k in range(12):
                w[m.TARGET + k] = w[m.HOME + m.ENTRY_POSE + k]
            w[m.TARGET + 2] = w[m.AIM + 2]
            way = follow(w)
            for k in range(12):
                w[m.TARGET + k] = w[m.AIM + k]
            if way != NONE:
                continue
            copy_entry(w, m.ANCHOR, m.START)
        found = follow(w)
        outside = w[m.REACHED_WITHIN] < w[m.REACHED]
        if found != NONE and outside:
            # The path left the limits before it ended.
            load(w, m.ANCHOR)
            evaluate(w)
        broken = violated(w) if found == NONE or outside else NONE
        if broken == NONE and (found == NONE or outside) and not admitted(w):
            broken, w[m.LIMITING] = NOT_STABLE, -1.0
        if found == NONE and broken == NONE:
            w[m.COUNT] = 0.0
            w[m.ROUTE] = float(route)
            _remember(w)
            w[m.AGE] = 0.0
            return SUCCESS
        # Another way may lead to another, better solution of the same pose.
        if reason == NO_START:
            w[m.ROUTE] = float(route)
            if broken != NONE:
                _back_off(w)
                found = broken
            else:
                copy_entry(w, m.ANCHOR, m.BEST)
            reason, leg = found, w[m.LIMITING]
            reached = max(0.0, 1.0 - stretch * (1.0 - w[m.REACHED]))
    w[m.REACHED], w[m.LIMITING], w[m.REASON] = reached, leg, float(reason)
    w[m.AGE] = -1.0
    return NOT_CONVERGED if reason in (STALLED, NO_START, ROUNDING) else UNREACHABLE


@njit(**INLINED)
def linearise_at_newest(w: Array) -> bool:
    """Make Jacobian and tangents at the newest point of the history."""
    load(w, _entry(w, 0))
    if linearise(w):
        make_sure(w, math.inf, True)
        return True
    return False


@njit(**KERNEL)
def track(w: Array, target: Array) -> int:
    """Solve for one target, starting from the ones before.

    Args:
        w: The solver's array (layout.py). On success the answer is the entry ANSWER; otherwise the
            answer and the history stay as they were, and REASON, LIMITING, REACHED and BEST say
            why.
        target: A pose of 12 numbers, or position and quaternion (x, y, z, w).

    Returns:
        A status code: SUCCESS, INVALID_INPUT, UNREACHABLE or NOT_CONVERGED.
    """
    w[m.EVALUATIONS], w[m.REFRESHES], w[m.SUBSTEPS], w[m.IN_DOUBT] = 0.0, 0.0, 0.0, 0.0
    problem = read_pose(target, w[m.TARGET : m.TARGET + 12])
    if problem != 0:
        w[m.REACHED], w[m.LIMITING] = 0.0, -1.0
        w[m.REASON] = float(NOT_FINITE if problem == 1 else NOT_A_ROTATION)
        _nothing_reached(w)
        return INVALID_INPUT
    reason = _refuse(w)
    if reason != NONE:
        w[m.REACHED], w[m.REASON] = 0.0, float(reason)
        _nothing_reached(w)
        return UNREACHABLE
    code = -1
    if w[m.COUNT] > 0.0:
        if w[m.AGE] < 0.0:
            linearise_at_newest(w)
        if w[m.AGE] >= 0.0 and _predict(w):
            for k in range(12):
                w[m.POSE + k] = w[m.TARGET + k]
            aim(w)
            if _certify(w) and violated(w) == NONE and _admit(w):
                w[m.ROUTE] = float(ROUTE_TRACKED)
                _remember(w)
                code = SUCCESS
    if code < 0:
        code = _recover(w)
    w[m.EVALUATIONS_TOTAL] += w[m.EVALUATIONS]
    w[m.REFRESHES_TOTAL] += w[m.REFRESHES]
    return code


@njit(**KERNEL)
def _nothing_reached(w: Array) -> None:
    """Report the last good pose, or home, as the best."""
    if w[m.COUNT] > 0.0:
        copy_entry(w, m.ANSWER, m.BEST)
    else:
        copy_entry(w, m.HOME, m.BEST)


@njit(**KERNEL)
def run(
    w: Array,
    fresh: Array,
    targets: Array,
    lengths: Array,
    codes: Array,
    details: Array,
    flag: Array,
) -> int:
    """Solve a row of targets in one compiled call.

    Args:
        w: The solver's array.
        fresh: The state from which each target starts; if empty, each starts from the one before.
        targets: (n, 12), or (n, 7) with quaternions.
        lengths: (n, 6), filled with leg lengths [m] where there is a solution.
        codes: (n,) of uint8, filled with status codes.
        details: (n, DETAILS), filled with what else there is to know, or empty: sum of squares,
            part of the way, limiting leg, reason, pose reached (12), forces of the six rods, and 1
            if the answer is stable.
        flag: (1,) of int64; anything but 0 ends the run after the target at hand.

    Returns:
        The targets that were dealt with.
    """
    for k in range(len(targets)):
        if flag[0] != 0:
            return k
        for j in range(len(fresh)):
            w[j] = fresh[j]
        code = track(w, targets[k])
        codes[k] = code
        at = m.ANSWER if code == SUCCESS else m.BEST
        if code == SUCCESS:
            for i in range(m.RODS):
                lengths[k, i] = w[at + 40 + i]
        if len(details) == 0:
            continue
        details[k, 1], details[k, 2], details[k, 3] = w[m.REACHED], w[m.LIMITING], w[m.REASON]
        for j in range(12):
            details[k, 4 + j] = w[at + m.ENTRY_POSE + j]
        stable = code == SUCCESS and is_stable(w[m.ANSWER + m.ENTRY_STABLE])
        details[k, 34] = 1.0 if stable else 0.0
        if code == SUCCESS:
            details[k, 0] = w[m.ANSWER_SUM_SQUARES]
            for i in range(m.RODS):
                for j in range(3):
                    details[k, 16 + 3 * i + j] = w[at + 8 * j + i]
    return len(targets)


@njit(**INLINED)
def hop(w: Array, target: Array) -> int:
    """Solve a target by continuation from START, within the limits and stable; for sweeps.

    Returns:
        NONE with the solution in ANSWER and its factors at hand, or the reason why not.
    """
    if read_pose(target, w[m.TARGET : m.TARGET + 12]) != 0:
        return NOT_FINITE
    reason = _refuse(w)
    if reason == NONE:
        reason = follow(w)
    if reason == NONE:
        reason = violated(w)
    if reason == NONE and not admitted(w):
        reason = NOT_STABLE
    if reason == NONE:
        store(w, m.ANSWER)
    return reason
