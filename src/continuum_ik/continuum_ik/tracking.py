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
    rotated,
    solve_linear,
)
from continuum_ik.layout import ENTRIES, record
from continuum_ik.path import (
    LEVER,
    add,
    copy_entry,
    difference,
    linearise,
    load,
    pose_between,
    scaled,
    store,
    tell,
    twist,
)
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
from continuum_ik.rod import INLINED, KERNEL, LANES, LENGTH, RODS, Array, Record
from continuum_ik.stability import settle_stability

Twist = tuple[float, float, float, float, float, float]
#: Evaluations that tracking may spend on one target before the continuation takes over.
TRACK_EVALUATIONS = 6
#: Solves after which a Jacobian is made anew as soon as a prediction misses.
OLD = 9
#: A chord step must leave less than this of the sum of squares, or the Jacobian is made anew.
CONTRACTION = 0.01
#: Furthest target from the last one that tracking tries, as part of the robot's size, and largest
#: correction of a prediction in the scaled unknowns.
TRACK_DISTANCE, TRACK_CORRECTION = 0.05, 0.3
#: Largest polishing step, in the scaled unknowns, of a point where the branch was in doubt.
CLOSE = 1e-3


@njit(**KERNEL)
def _refuse(w: Record) -> int:
    """Refuse what no configuration of the robot can reach, from the target pose alone."""
    target, base, holes = w.target, w.base_holes, w.platform_holes
    longest = w.length_max * w.stretch
    for i in range(RODS):
        x, y, z = rotated(target, holes[0, i], holes[1, i], holes[2, i])
        dx = target[0, 0] + x - base[0, i]
        dy = target[0, 1] + y - base[1, i]
        dz = target[0, 2] + z - base[2, i]
        if not dz >= w.height_min:
            w.limiting = i
            return BEHIND_BASE
        if not dx * dx + dy * dy + dz * dz <= longest * longest:
            w.limiting = i
            return TOO_FAR
    return NONE


@njit(**KERNEL)
def _mismatch(w: Record, pose: Array) -> Twist:
    """Return the twist from a pose to the target, to first order."""
    target = w.target
    x, y, z = 0.0, 0.0, 0.0
    for j in range(3):
        p, q, r = pose[1, j], pose[2, j], pose[3, j]
        u, v, s = target[1, j], target[2, j], target[3, j]
        x += q * s - r * v
        y += r * u - p * s
        z += p * v - q * u
    return (
        target[0, 0] - pose[0, 0],
        target[0, 1] - pose[0, 1],
        target[0, 2] - pose[0, 2],
        0.5 * x,
        0.5 * y,
        0.5 * z,
    )


@njit(**KERNEL)
def _size2(w: Record, d: Twist) -> float:
    lever = LEVER * w.L
    turned = d[3] * d[3] + d[4] * d[4] + d[5] * d[5]
    return d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + lever * lever * turned


@njit(inline="always")
def _recent(w: Record, back: int) -> Record:
    """Return the entry of the history that is ``back`` targets old."""
    return w.history[(w.head + back) % ENTRIES]


@njit(**INLINED)
def _predict(w: Record) -> bool:
    """Guess the unknowns at the target; False if it is too far from the last one."""
    y, guess = w.rods.y, w.guess_pose
    a = _recent(w, 0)
    d = _mismatch(w, a.pose)
    step2 = _size2(w, d)
    if not step2 <= (TRACK_DISTANCE * w.L) ** 2:
        return False
    order = min(w.order, w.count - 1)
    base = a.y
    if order > 0:
        c1, c2, c3, c4, c5 = 2.0, -1.0, 0.0, 0.0, 0.0
        if order == 2:
            c1, c2, c3 = 3.0, -3.0, 1.0
        elif order == 3:
            c1, c2, c3, c4 = 4.0, -6.0, 4.0, -1.0
        elif order == 4:
            c1, c2, c3, c4, c5 = 5.0, -10.0, 10.0, -5.0, 1.0
        b, c, e, f = _recent(w, 1), _recent(w, 2), _recent(w, 3), _recent(w, 4)
        for r in range(4):
            for i in range(3):
                guess[r, i] = (
                    c1 * a.pose[r, i]
                    + c2 * b.pose[r, i]
                    + c3 * c.pose[r, i]
                    + c4 * e.pose[r, i]
                    + c5 * f.pose[r, i]
                )
        miss = _mismatch(w, guess)
        if _size2(w, miss) <= 0.5 * step2:
            d = miss
            for r in range(6):
                for i in range(LANES):
                    y[r, i] = (
                        c1 * a.y[r, i]
                        + c2 * b.y[r, i]
                        + c3 * c.y[r, i]
                        + c4 * e.y[r, i]
                        + c5 * f.y[r, i]
                    )
            base = y
        else:
            w.count = 1
    T = w.tangent
    for r in range(6):
        for i in range(LANES):
            y[r, i] = (
                base[r, i]
                + T[0, r, i] * d[0]
                + T[1, r, i] * d[1]
                + T[2, r, i] * d[2]
                + T[3, r, i] * d[3]
                + T[4, r, i] * d[4]
                + T[5, r, i] * d[5]
            )
    return True


@njit(**KERNEL)
def _refresh(w: Record, doubtful: bool) -> bool:
    """Make the Jacobian anew at the present unknowns, keeping the residual.

    False where it is singular or, if the branch is ``doubtful``, has changed so much that a
    singular point may have been passed.
    """
    w.saved = w.residual
    if not linearise(w):
        return False
    if doubtful:
        change = changed(w)
        if not change <= CHANGE:
            w.in_doubt = 1
            return False
        make_sure(w, change, False)
    w.residual = w.saved
    return True


@njit(**INLINED)
def _certify(w: Record) -> bool:
    """Evaluate the prediction, and correct it by chord steps until it is within the tolerance."""
    # Whether a singular point may lie between.
    doubtful = not moved_from_sure(w) <= w.sure_within
    if doubtful and not _refresh(w, doubtful):
        return False
    close, rules = CLOSE if doubtful else 1.0, w.rules[0]
    plan_steps(w)
    previous = math.inf
    for k in range(TRACK_EVALUATIONS):
        now = evaluate(w)
        if not now < CONTRACTION * previous:
            # Also where a number is not finite.
            if not now < 1e6 or not _refresh(w, previous < 1e6):
                return False
        elif k == 0 and now > rules.accept and w.age >= OLD and not _refresh(w, doubtful):
            return False
        solve_linear(w)
        if (
            now <= rules.accept
            and leg_error(w) <= rules.leg_tolerance
            and (close == 1.0 or scaled(w, w.delta) <= close)
        ):
            return True
        if not scaled(w, w.delta) <= TRACK_CORRECTION:
            return False
        add(w.rods.y, -1.0, w.delta)
        previous = now
    return False


@njit(**KERNEL)
def _admit(w: Record) -> bool:
    """Whether the certified point is stable or need not be; close to the border it is decided."""
    settle_stability(w)
    return w.age >= 0 and admitted(w)


@njit(**KERNEL)
def _remember(w: Record) -> None:
    """Make the certified point the answer, and its polished form the newest of the history."""
    store(w, w.answer)
    w.answer_sum_squares, w.answer_leg_error = w.sum_squares, w.leg_error
    w.head = (w.head + ENTRIES - 1) % ENTRIES
    newest = _recent(w, 0)
    difference(w.rods.y, w.delta, newest.y)
    newest.pose, newest.stable = w.pose, w.stable
    w.count = min(w.count + 1, ENTRIES)
    w.age += 1
    w.reached, w.limiting, w.reason = 1.0, -1, NONE
    w.solved_total += 1


@njit(**INLINED)
def _back_off(w: Record) -> None:
    """Find the last pose within the limits on a path that leaves them, by bisection.

    start and target span the path, within is the last point of it that was seen within the limits.
    """
    low, high = w.reached_within, w.reached
    leg = w.limiting
    w.aside = w.target
    copy_entry(w.start, w.origin)
    copy_entry(w.within, w.best)
    for _ in range(12):
        middle = 0.5 * (low + high)
        # The pose in the middle of the whole path, reached from the best point so far.
        copy_entry(w.origin, w.start)
        w.target = w.aside
        twist(w)
        pose_between(w, middle)
        w.target = w.pose
        copy_entry(w.best, w.start)
        if follow(w) == NONE and violated(w) == NONE and admitted(w):
            low = middle
            store(w, w.best)
        else:
            high = middle
    w.reached, w.limiting = low, leg
    w.target = w.aside


@njit(**INLINED)
def _recover(w: Record) -> int:
    """Reach the target by continuation: from the last good pose, then from home."""
    w.recovered_total += 1
    reason, reached, leg = NO_START, 0.0, -1
    stretch = 1.0  # of the path, if it begins before the last answer
    for route in (ROUTE_STRAIGHT, ROUTE_HOME, ROUTE_AXIS):
        warm = w.count > 0
        if route == ROUTE_STRAIGHT:
            if not warm:
                continue
            # From the last point where the branch was sure, if there is doubt about later ones.
            newest = _recent(w, 0)
            copy_entry(w.sure if w.in_doubt == 1 else newest, w.start)
            if w.in_doubt == 1:
                whole = _size2(w, _mismatch(w, w.start.pose))
                last = _size2(w, _mismatch(w, newest.pose))
                stretch = math.sqrt(whole / last) if last > 0.0 else 1.0
        else:
            if w.has_home == 0 or (w.detours == 0 and (warm or route == ROUTE_AXIS)):
                break
            copy_entry(w.home, w.start)
        if route == ROUTE_AXIS:
            # First straight up or down to the target's height, level and not turned.
            w.aside = w.target
            w.target = w.home.pose
            w.target[0, 2] = w.aside[0, 2]
            way = follow(w)
            w.target = w.aside
            if way != NONE:
                continue
            copy_entry(w.anchor, w.start)
        found = follow(w)
        outside = w.reached_within < w.reached
        if found != NONE and outside:
            # The path left the limits before it ended.
            load(w, w.anchor)
            evaluate(w)
        broken = violated(w) if found == NONE or outside else NONE
        if broken == NONE and (found == NONE or outside) and not admitted(w):
            broken, w.limiting = NOT_STABLE, -1
        if found == NONE and broken == NONE:
            w.count = 0
            w.route = route
            _remember(w)
            w.age = 0
            return SUCCESS
        # Another way may lead to another, better solution of the same pose.
        if reason == NO_START:
            w.route = route
            if broken != NONE:
                _back_off(w)
                found = broken
            else:
                copy_entry(w.anchor, w.best)
            reason, leg = found, w.limiting
            reached = max(0.0, 1.0 - stretch * (1.0 - w.reached))
    w.reached, w.limiting, w.reason = reached, leg, reason
    w.age = -1
    return NOT_CONVERGED if reason in (STALLED, NO_START, ROUNDING) else UNREACHABLE


@njit(**INLINED)
def _linearise_at_newest(w: Record) -> None:
    """Make Jacobian and tangents at the newest point of the history."""
    load(w, _recent(w, 0))
    if linearise(w):
        make_sure(w, math.inf, True)


@njit(**KERNEL)
def track(state: Array, target: Array) -> int:
    """Solve for one target, starting from the ones before.

    Args:
        state: The solver (layout.py). On success the answer is the entry answer; otherwise the
            answer and the history stay as they were, and reason, limiting, reached and best say
            why.
        target: A pose of 12 numbers, or position and quaternion (x, y, z, w).

    Returns:
        A status code: SUCCESS, INVALID_INPUT, UNREACHABLE or NOT_CONVERGED.
    """
    w = record(state)
    w.evaluations, w.refreshes, w.substeps, w.in_doubt = 0, 0, 0, 0
    problem = read_pose(target, w.target)
    if problem != 0:
        w.limiting = -1
        return _nothing_reached(w, NOT_FINITE if problem == 1 else NOT_A_ROTATION, INVALID_INPUT)
    reason = _refuse(w)
    if reason != NONE:
        return _nothing_reached(w, reason, UNREACHABLE)
    code = -1
    if w.count > 0:
        if w.age < 0:
            _linearise_at_newest(w)
        if w.age >= 0 and _predict(w):
            w.pose = w.target
            aim(w)
            if _certify(w) and violated(w) == NONE and _admit(w):
                w.route = ROUTE_TRACKED
                _remember(w)
                code = SUCCESS
    if code < 0:
        code = _recover(w)
    w.evaluations_total += w.evaluations
    w.refreshes_total += w.refreshes
    return code


@njit(**KERNEL)
def _nothing_reached(w: Record, reason: int, code: int) -> int:
    """Report the last good pose, or home, as the best."""
    w.reached, w.reason = 0.0, reason
    copy_entry(w.answer if w.count > 0 else w.home, w.best)
    return code


@njit(**KERNEL)
def run(
    state: Array,
    fresh: Array,
    targets: Array,
    lengths: Array,
    codes: Array,
    outcomes: Array,
    flag: Array,
) -> int:
    """Solve a row of targets in one compiled call.

    Args:
        state: The solver.
        fresh: The state from which each target starts; if empty, each starts from the one before.
        targets: (n, 12), or (n, 7) with quaternions.
        lengths: (n, 6), filled with leg lengths [m] where there is a solution.
        codes: (n,) of uint8, filled with status codes.
        outcomes: (n,) of OUTCOME, filled, or empty.
        flag: (1,) of int64; anything but 0 ends the run after the target at hand.

    Returns:
        The targets that were dealt with.
    """
    w = record(state)
    for k in range(len(targets)):
        if flag[0] != 0:
            return k
        for j in range(len(fresh)):
            state[j] = fresh[j]
        code = track(state, targets[k])
        codes[k] = code
        if code == SUCCESS:
            for i in range(RODS):
                lengths[k, i] = w.answer.y[LENGTH, i]
        if len(outcomes) > 0:
            tell(w, code, outcomes[k])
    return len(targets)


@njit(**INLINED)
def hop(w: Record, target: Array) -> int:
    """Solve a target by continuation from start, within the limits and stable; for sweeps.

    Returns:
        NONE with the solution in answer and its factors at hand, or the reason why not.
    """
    if read_pose(target, w.target) != 0:
        return NOT_FINITE
    reason = _refuse(w)
    if reason == NONE:
        reason = follow(w)
    if reason == NONE:
        reason = violated(w)
    if reason == NONE and not admitted(w):
        reason = NOT_STABLE
    if reason == NONE:
        store(w, w.answer)
    return reason
