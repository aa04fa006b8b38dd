"""What a running control loop can be told to do; all that is asked is checked first."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ft_controller.arm import Arm
from ft_controller.errors import ArmError
from ft_controller.faults import Fault
from ft_controller.loop import ControlLoop
from ft_controller.planner import Plan, plan
from ft_controller.records import Array
from ft_controller.safety_supervisor import State
from ft_controller.trajectory import Trajectory
from kin_core.task import Task

__all__ = [
    "await_first_state",
    "follow",
    "inject",
    "lock",
    "move",
    "refuse_if_stopped",
    "reset",
    "set_joint_limits",
    "start_point",
]


_RETREAT = 0.5  # shortest time of a motion back into new limits [s]
# An arm that has just started looks for rivals before it tells its state.
_FIRST_STATE = 5.0  # longest wait for the first joint state after the start [s]


def await_first_state(loop: ControlLoop, task: Task) -> None:
    """Wait a little for the first joint state: it is on its way when a node has just started."""
    end = time.monotonic() + _FIRST_STATE
    while loop.measurement is None and time.monotonic() < end:
        task.check()
        time.sleep(0.01)


def refuse_if_stopped(loop: ControlLoop) -> None:
    """Refuse motions of an arm that is stopped and will stay so."""
    state = loop.group.safety.state
    if state in (State.RAMP, State.STOPPED) and not loop.recovering:
        raise ArmError("", f"the arm is stopped ({loop.group.reason()}): reset it first")


def start_point(loop: ControlLoop) -> Array:
    """Where a motion begins, shape (3, n): where the arm should be, or where it is."""
    if loop.driving:
        return loop.follower.desired
    q = _measured(loop)
    return np.array([q, np.zeros_like(q), np.zeros_like(q)])


def _measured(loop: ControlLoop) -> Array:
    measured = loop.measurement
    if measured is None or not loop.fresh:
        raise ArmError("", "there are no joint states to start from: does the arm publish them?")
    return measured[0]


def follow(loop: ControlLoop, trajectory: Trajectory) -> None:
    """Follow a trajectory, if it keeps to the limits; locked joints are not asked."""
    limits, free = loop.group.safety.limits, ~loop.group.locked
    trajectory.check(
        np.where(free, limits.lower, -np.inf),
        np.where(free, limits.upper, np.inf),
        np.where(free, limits.speed, np.inf),
    )
    loop.follower.follow(trajectory)


def move(loop: ControlLoop, goal: ArrayLike, angle: float | None = None, **options: Any) -> Plan:
    """Plan a motion of the end effector from where the arm is; see :func:`planner.plan`."""
    group, q = loop.group, _measured(loop)
    if not isinstance(group.arm, Arm):
        raise ArmError("", "goals of the end effector are for planar arms: send a trajectory")
    start = start_point(loop)[0]
    start[group.locked] = q[group.locked]
    return plan(
        group.arm,
        start,
        goal,
        angle,
        lower=group.safety.limits.lower,
        upper=group.safety.limits.upper,
        locked=group.locked,
        **options,
    )


def reset(loop: ControlLoop) -> str:
    """After a stop: stay where the arm is; returns what is still waited for."""
    loop.follower.follow(Trajectory.rest(_measured(loop)))
    return loop.group.reset()


def inject(loop: ControlLoop, faults: Sequence[Fault] | None) -> int:
    """Plan faults from now on, None: end them all; returns how many are planned or active."""
    if faults is None:
        loop.group.clear_faults()
    else:
        loop.group.inject(faults, loop.now())
    return loop.group.faults


def lock(loop: ControlLoop, joint: int, locked: bool) -> list[int]:
    """Take a joint out of the control law, or back in; returns who computes each joint then."""
    if not locked and loop.group.locked[joint]:
        # It is not where the trajectory would have it.
        loop.follower.follow(Trajectory.rest(_measured(loop)))
    loop.group.lock(joint, locked)
    return loop.group.assignment()


def set_joint_limits(
    loop: ControlLoop,
    joints: Sequence[int],
    lower: Array,
    upper: Array,
    names: Sequence[str],
    speed: float,
) -> None:
    """Change position limits, and leave a motion that would run into them.

    Args:
        loop: The control loop.
        joints: Which joints.
        lower: Their new lower limits [rad].
        upper: Their new upper limits [rad].
        names: Names of all joints.
        speed: Of the way back inside [rad/s].

    Raises:
        ArmError: A joint is outside of its new limits.
    """
    limits, where = loop.group.safety.limits, list(joints)
    low, high = limits.lower.copy(), limits.upper.copy()
    low[where], high[where] = lower, upper
    if loop.measurement is not None:
        q = loop.measurement[0]
        out = (q < low - limits.margin) | (q > high + limits.margin)
        if out.any():
            i = int(np.argmax(out))
            raise ArmError("lower", f"{names[i]} is at {q[i]:.4g} rad now: move it first")
    loop.group.safety.limits = dataclasses.replace(limits, lower=low, upper=high)
    if loop.follower.trajectory is not None:
        try:
            loop.follower.trajectory.check(low, high, np.full(low.size, np.inf))
        except ArmError:
            loop.follower.follow(_retreat(loop.follower.desired, low, high, speed))


def _retreat(now: Array, lower: Array, upper: Array, speed: float) -> Trajectory:
    """From where the arm should be to rest within limits."""
    end = np.clip(now[0], lower, upper)
    length = max(_RETREAT, 2.0 * float(np.abs(end - now[0]).max()) / speed)
    zero = np.zeros_like(end)
    return Trajectory.through([0.0, length], [now[0], end], [now[1], zero], [now[2], zero])
