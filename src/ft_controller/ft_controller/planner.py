"""From a goal of the end effector to a joint trajectory, by damped least squares.

The end effector follows the straight line to the goal. Each step solves

    dq = J^T (J J^T + lambda^2 I)^-1 dx

with a damping that grows as the smallest singular value of J goes to zero (the singularity-robust
inverse of the planner that the paper uses, after Deo and Walker). A joint that meets its limit, and
a locked joint, leave the problem; the others go on. The path is then timed with a minimum-jerk
profile within the limits of speed and acceleration.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline, PchipInterpolator

from ft_controller import planar
from ft_controller.arm import Arm
from ft_controller.errors import ArmError, GoalError, raising
from ft_controller.records import Array, Flags, Records
from ft_controller.trajectory import Trajectory
from kin_core import checks
from kin_core.task import Task

__all__ = ["Plan", "plan"]


_DAMPING = 0.05  # largest damping, relative to the reach
_EDGE = 2e-3  # motions keep so far from the position limits [rad]
_NEAR = 0.05  # singular values below this part of the reach are damped


class _Bounds(NamedTuple):
    """Where the joints may go, each of shape (n,)."""

    low: Array
    high: Array
    fixed: Flags


@dataclass(frozen=True)
class Plan:
    """A motion of the arm.

    Attributes:
        trajectory: What the joints do.
        straight: Whether the end effector follows the straight line; else only the goal is met.
        residual: Distance from the goal at the end [m].
        iterations: Steps of damped least squares.
    """

    trajectory: Trajectory
    straight: bool
    residual: float
    iterations: int


def plan(
    arm: Arm,
    q: ArrayLike,
    goal: ArrayLike,
    angle: float | None = None,
    *,
    lower: ArrayLike = -math.pi,
    upper: ArrayLike = math.pi,
    locked: ArrayLike | None = None,
    speed: ArrayLike = 2.0,
    acceleration: ArrayLike = 5.0,
    duration: float = 0.0,
    tolerance: float = 1e-6,
    seed: int = 0,
    task: Task | None = None,
) -> Plan:
    """Plan a motion from rest to rest.

    Args:
        arm: The arm.
        q: Where it is, shape (n,) [rad].
        goal: Where the end effector should be, (x, y) [m].
        angle: Absolute angle of the last link, if it matters [rad].
        lower: Position limits, one or n [rad].
        upper: Position limits, one or n [rad].
        locked: Joints that cannot move, shape (n,).
        speed: Largest joint speed, one or n [rad/s].
        acceleration: Largest joint acceleration, one or n [rad/s^2].
        duration: 0: as fast as the limits allow [s].
        tolerance: Largest distance from the goal [m, rad].
        seed: Of the restarts where the straight line leads nowhere.
        task: Time limit and cancellation.

    Raises:
        ArmError: A value makes no sense.
        GoalError: The goal is out of reach; says by how much.
    """
    start = np.array(arm.vector("q", q))
    low, high = arm.each("lower", lower), arm.each("upper", upper)
    top, bend = arm.each("speed", speed), arm.each("acceleration", acceleration)
    if (top <= 0.0).any() or (bend <= 0.0).any():
        raise ArmError("speed", "speed and acceleration must be positive")
    if (low > high).any():
        raise ArmError("lower", "must not be above upper")
    with raising(ArmError):
        target = checks.shape("goal", goal, (2,))
        for value in target:
            checks.within("goal", value, -1e6, 1e6)
        checks.within("duration", duration, 0.0, 3600.0)
        checks.within("tolerance", tolerance, 1e-12, 1.0)
        if angle is not None:
            angle = checks.within("angle", angle, -1e3, 1e3)
    fixed = np.zeros(arm.n, np.bool_) if locked is None else np.asarray(locked, np.bool_)
    if fixed.shape != (arm.n,):
        raise ArmError("locked", f"must have {arm.n} entries")
    # An arm that stands outside of its limits, or on a limit that has just moved, may come back.
    low, high = np.minimum(low, start), np.maximum(high, start)
    # The motion between two points of the path may swing a little beyond them: keep that inside.
    outer = (low, high)
    edge = np.minimum(_EDGE, 0.05 * (high - low))
    low = np.minimum(low + edge, start)
    high = np.maximum(high - edge, start)
    here = arm.end_effector(start)
    whole = np.array([target[0], target[1], here[2]])
    if angle is not None:
        whole[2] = here[2] + math.remainder(angle - here[2], 2.0 * math.pi)
    rows = 2 if angle is None else 3
    bounds = _Bounds(low, high, fixed)
    path, residual, iterations = _straight(arm, start, here, whole, rows, bounds, task)
    straight = residual <= tolerance
    if not straight:
        path, residual, more = _around(arm, start, whole, rows, bounds, tolerance, seed, task)
        iterations += more
    if residual > tolerance:
        far = math.hypot(target[0], target[1])
        why = (
            f"it is {far:.4g} m from the base, the arm reaches {arm.reach:.4g} m"
            if (far > arm.reach)
            else "limits or locked joints are in the way"
        )
        raise GoalError(
            f"goal ({target[0]:.4g}, {target[1]:.4g}) m cannot be reached: {why}; "
            f"{residual:.3g} m are left",
            residual=residual,
            iterations=iterations,
        )
    # A path that runs into a limit and along it has a kink there, which coarse pieces overshoot.
    for pieces in (1, 2, 4, 8, 16):
        trajectory = _timed(path, low, high, top, bend, duration, pieces)
        if _inside(trajectory, *outer):
            break
    return Plan(trajectory, straight, residual, iterations)


def _straight(
    arm: Arm,
    start: Array,
    here: Array,
    whole: Array,
    rows: int,
    bounds: _Bounds,
    task: Task | None,
) -> tuple[Array, float, int]:
    """Follow the line in small steps; returns the path, what is left, and the iterations."""
    length = math.hypot(whole[0] - here[0], whole[1] - here[1])
    turn = abs(whole[2] - here[2]) if rows == 3 else 0.0
    steps = int(min(400, max(8, math.ceil(length / (0.01 * arm.reach)), math.ceil(turn / 0.05))))
    path = [start]
    q = start.copy()
    iterations = 0
    left = math.inf
    for k in range(1, steps + 1):
        if task is not None:
            task.check()
        aim = here + (whole - here) * (k / steps)
        left, used = _solve(arm.links, q, aim, rows, bounds, 40, 0.2 * steps / k)
        iterations += used
        if left > 1e-7:
            break
        path.append(q.copy())
    return np.array(path), math.inf if left > 1e-7 else float(left), iterations


def _around(
    arm: Arm,
    start: Array,
    whole: Array,
    rows: int,
    bounds: _Bounds,
    tolerance: float,
    seed: int,
    task: Task | None,
) -> tuple[Array, float, int]:
    """Any posture at the goal, nearest first, and straight there in joint space."""
    low, high, fixed = bounds
    random = np.random.default_rng(seed)
    best, best_left, iterations = start, math.inf, 0
    for attempt in range(60):
        if task is not None:
            task.check()
        q = start.copy()
        if attempt:
            spread = min(1.0, 0.05 * attempt)
            wide = (high - low) * 0.5 * spread
            q = np.clip(start + random.uniform(-wide, wide), low, high)
            q[fixed] = start[fixed]
        aim = whole.copy()
        if rows == 3:
            at = arm.end_effector(q)[2]
            aim[2] = at + math.remainder(whole[2] - at, 2.0 * math.pi)
        left, used = _solve(arm.links, q, aim, rows, bounds, 300, 0.3)
        iterations += used
        if left < best_left:
            best, best_left = q, float(left)
        if best_left <= min(tolerance, 1e-7):
            break
    # Both ends are within the limits, and limits are a box: so is everything in between.
    return np.linspace(start, best, 9), best_left, iterations


@njit(cache=True, nogil=True)
def _solve(
    links: Records,
    q: Array,
    aim: Array,
    rows: int,
    bounds: _Bounds,
    limit: int,
    longest: float,
) -> tuple[float, int]:
    """Damped least squares from q to an aim, in place; returns what is left and the iterations."""
    low, high, fixed = bounds
    n = q.size
    reach = 0.0
    for i in range(n):
        reach += links[i].length
    out = np.zeros(n, np.bool_)
    left = 0.0
    for iteration in range(limit):
        tip = planar.end_effector(links, q)
        dx = aim[:rows] - tip[:rows]
        left = math.sqrt((dx * dx).sum())
        if left < 1e-10:
            return left, iteration
        full = planar.jacobian(links, q)[:rows]
        for i in range(n):
            out[i] = fixed[i]
        dq = np.zeros(n)
        for _ in range(n):
            jac = full.copy()
            for i in range(n):
                if out[i]:
                    jac[:, i] = 0.0
            gram = jac @ jac.T
            smallest = math.sqrt(max(np.linalg.eigvalsh(gram)[0], 0.0))
            near = _NEAR * reach
            damping = 0.0
            if smallest < near:
                damping = (_DAMPING * reach) ** 2 * (1.0 - smallest / near) ** 2
                # Near the aim the damping may go, so that the aim is met exactly.
                damping *= min(1.0, left / (0.02 * reach)) + 1e-9
            for k in range(rows):
                gram[k, k] += damping + 1e-14 * reach * reach
            # dq = J^T (J J^T + lambda^2 I)^-1 dx
            dq = jac.T @ np.linalg.solve(gram, dx)
            largest = np.abs(dq).max()
            if largest > longest:
                dq *= longest / largest
            blocked = False
            for i in range(n):
                if not out[i] and (
                    (q[i] <= low[i] and dq[i] < 0.0) or (q[i] >= high[i] and dq[i] > 0.0)
                ):
                    out[i] = True
                    blocked = True
            if not blocked:
                break
        for i in range(n):
            if not out[i]:
                q[i] = min(max(q[i] + dq[i], low[i]), high[i])
    tip = planar.end_effector(links, q)
    dx = aim[:rows] - tip[:rows]
    return math.sqrt((dx * dx).sum()), limit


def _inside(trajectory: Trajectory, low: Array, high: Array) -> bool:
    """Whether a motion keeps to the position limits, also between its points."""
    times = np.asarray(trajectory.times)
    fractions = np.linspace(0.0, 1.0, 9)[:-1]
    dense = (times[:-1, None] + np.diff(times)[:, None] * fractions).reshape(-1)
    q = np.array([trajectory.sample(float(t))[0] for t in dense]).reshape(-1, len(low))
    return bool((q >= low - 1e-9).all() and (q <= high + 1e-9).all())


def _timed(
    path: Array,
    low: Array,
    high: Array,
    top: Array,
    bend: Array,
    duration: float,
    pieces: int = 1,
) -> Trajectory:
    """A minimum-jerk profile over a path, as fast as the limits allow."""
    if np.abs(path - path[0]).max() < 1e-12:
        return Trajectory.rest(path[-1])
    knots = np.linspace(0.0, 1.0, len(path))
    x = np.linspace(0.0, 1.0, pieces * max(33, len(path)))
    s = x**3 * (10.0 - 15.0 * x + 6.0 * x**2)
    s1 = 30.0 * x**2 * (1.0 - x) ** 2
    s2 = 60.0 * x * (1.0 - x) * (1.0 - 2.0 * x)
    for kind in (CubicSpline, PchipInterpolator):
        curve = kind(knots, path)
        q, d1, d2 = curve(s), curve(s, 1), curve(s, 2)
        if (q >= low - 1e-9).all() and (q <= high + 1e-9).all():
            break
    q = np.clip(q, low, high)
    v1 = d1 * s1[:, None]
    a1 = d2 * s1[:, None] ** 2 + d1 * s2[:, None]
    # The samples miss the true extremes by little; two per cent cover it.
    fastest = 1.02 * max(
        float((np.abs(v1) / top).max()), math.sqrt(float((np.abs(a1) / bend).max()))
    )
    fastest = max(fastest, 1e-3)
    if duration and duration < fastest:
        raise ArmError("duration", f"{duration:g} s is too short, the limits need {fastest:.4g} s")
    length = duration or fastest
    return Trajectory.through(x * length, q, v1 / length, a1 / length**2)
