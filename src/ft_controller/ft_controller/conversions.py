"""Messages <-> library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from control_msgs.action import FollowJointTrajectory
from kin_interfaces.msg import FtProcessor, FtStatus
from kin_interfaces.srv import InjectFault
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ft_controller.errors import ArmError, ScheduleError, raising
from ft_controller.explain import Processor
from ft_controller.faults import Fault, load_schedule
from ft_controller.loop import Snapshot
from ft_controller.planner import Plan
from ft_controller.records import Array
from ft_controller.trajectory import MAX_POINTS, Trajectory
from ft_controller.trajectory_goals import Seen, Tolerances, tolerance
from ft_controller.waypoints import Waypoints
from kin_core import checks
from kin_ros.arrays import from_field, to_field

__all__ = [
    "age_of",
    "faults_of",
    "feedback_of",
    "joint_index",
    "joint_values",
    "limits_of",
    "status_message",
    "tolerances_of",
    "trajectory_message",
    "waypoints_of",
    "write_plan",
]


def joint_index(joints: Sequence[str], name: str, field: str = "joint") -> int:
    """Number of a joint; the error lists the names."""
    with raising(ArmError):
        return list(joints).index(checks.one_of(field, name, joints))


def joint_values(joints: Sequence[str], names: Sequence[str], field: str, values: Any) -> Array:
    """Values of a message in the order of ``joints``; all of them must be there.

    What it says of other joints is not looked at: a broadcaster says NaN where it knows nothing.
    """
    if len(values) != len(names):
        raise ArmError(field, f"has {len(values)} values for {len(names)} names")
    array = np.array(values, dtype=np.float64)
    if list(names) == list(joints):
        return checks.finite(field, array)
    where = {name: i for i, name in enumerate(names)}
    missing = [name for name in joints if name not in where]
    if missing:
        raise ArmError("name", f"joint {missing[0]!r} is missing")
    return checks.finite(field, array[[where[name] for name in joints]])


def age_of(stamp: Any, clock: float, tolerance: float, required: bool) -> float:
    """How old a measurement is; none may be of the future [s].

    Args:
        stamp: Of the message.
        clock: Time of the node [s].
        tolerance: So far in the future a stamp may be [s].
        required: Refuse messages without a stamp; else they are of now.
    """
    if stamp.sec == 0 and stamp.nanosec == 0:
        if required:
            raise ArmError("header.stamp", "is zero; joint states need the time they are of")
        return 0.0
    age = clock - (stamp.sec + 1e-9 * stamp.nanosec)
    if age < -tolerance:
        why = " (no time on /clock yet)" if clock == 0.0 else ""
        raise ArmError("header.stamp", f"is {-age:.3g} s in the future{why}")
    return max(age, 0.0)


def waypoints_of(
    message: JointTrajectory, joints: Sequence[str], partial: bool = True
) -> Waypoints:
    """The points of a message, in the order of the joints.

    Args:
        message: The message.
        joints: Names of all joints.
        partial: Whether it may leave joints out.

    Raises:
        ArmError: Names the field, the point and the joint.
    """
    columns = [joint_index(joints, name, "joint_names") for name in message.joint_names]
    if not columns or len(set(columns)) != len(columns):
        raise ArmError("joint_names", "must name at least one joint, and none twice")
    named = np.zeros(len(joints), np.bool_)
    named[columns] = True
    if not (partial or named.all()):
        missing = joints[int(np.argmin(named))]
        raise ArmError("joint_names", f"{missing} is missing; allow_partial_joints_goal is false")
    checks.count("points", len(message.points), MAX_POINTS)
    if not message.points:
        raise ArmError("points", "there must be at least one")
    strong = [k for k, point in enumerate(message.points) if len(point.effort)]
    if strong:
        raise ArmError("points.effort", f"point {strong[0]}: torques follow from the motion here")
    times = [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in message.points]
    positions, velocities, accelerations = (
        _block(message, name, columns, joints)
        for name in ("positions", "velocities", "accelerations")
    )
    return Waypoints(np.array(times), positions, velocities, accelerations, named, tuple(joints))


def _block(message: JointTrajectory, name: str, columns: list[int], joints: Sequence[str]) -> Array:
    """One field of all points, shape (k, n).

    Joints that are not named have zero; points without the field, which is none for positions,
    have NaN.
    """
    block = np.zeros((len(message.points), len(joints)))
    for k, point in enumerate(message.points):
        row = from_field(getattr(point, name), "float64")
        if row.size == 0 and name != "positions":
            block[k] = np.nan
            continue
        if row.size != len(columns):
            raise ArmError(
                f"points.{name}",
                f"point {k} has {row.size} values, joint_names has {len(columns)}",
            )
        if not np.isfinite(row).all():
            i = int(np.argmin(np.isfinite(row)))
            raise ArmError(
                f"points.{name}",
                f"point {k}, {joints[columns[i]]}: must be finite, got {row[i]}",
            )
        block[k, columns] = row
    return block


def tolerances_of(
    goal: FollowJointTrajectory.Goal, joints: Sequence[str], usual: Tolerances
) -> Tolerances:
    """The tolerances of a goal, where it has some; those of accelerations are not looked at.

    Args:
        goal: The goal.
        joints: Names of all joints.
        usual: What holds where it has none.
    """
    made = {}
    for field, kind in (("path_tolerance", "path"), ("goal_tolerance", "goal")):
        limits = getattr(usual, kind).copy()
        for entry in getattr(goal, field):
            i = joint_index(joints, entry.name, f"{field}.name")
            for row, name in enumerate(("position", "velocity")):
                limits[row, i] = tolerance(f"{field}.{name}", limits[row, i], getattr(entry, name))
        made[kind] = limits
    time = goal.goal_time_tolerance
    late = tolerance("goal_time_tolerance", usual.goal_time, time.sec + 1e-9 * time.nanosec)
    return Tolerances(**made, goal_time=late)


def trajectory_point(
    position: Array, velocity: Array, acceleration: Array | None, t: float
) -> JointTrajectoryPoint:
    """A point of a trajectory, at a time [s]."""
    point = JointTrajectoryPoint(
        positions=to_field(position, "float64"), velocities=to_field(velocity, "float64")
    )
    if acceleration is not None:
        point.accelerations = to_field(acceleration, "float64")
    point.time_from_start.sec = math.floor(t)
    point.time_from_start.nanosec = int(1e9 * (t - math.floor(t)))
    return point


def feedback_of(seen: Seen, joints: Sequence[str], stamp: Any) -> FollowJointTrajectory.Feedback:
    """What a client is told of its goal."""
    q, v, a = seen.reference
    message = FollowJointTrajectory.Feedback(
        joint_names=list(joints),
        desired=trajectory_point(q, v, a, seen.clock),
        actual=trajectory_point(seen.q, seen.qdot, None, seen.clock),
        error=trajectory_point(q - seen.q, v - seen.qdot, None, seen.clock),
    )
    message.header.stamp = stamp
    return message


def write_plan(answer: Any, plan: Plan, joints: Sequence[str]) -> None:
    """Put a plan into an answer that has a status and a trajectory."""
    answer.trajectory = trajectory_message(plan.trajectory, joints)
    answer.status.residual = plan.residual
    answer.status.iterations = plan.iterations
    if not plan.straight:
        answer.status.message = "not on a straight line"


def trajectory_message(trajectory: Trajectory, joints: Sequence[str]) -> JointTrajectory:
    """A trajectory as a message."""
    message = JointTrajectory(joint_names=list(joints))
    for t in trajectory.times:
        q, v, a = trajectory.sample(float(t))
        message.points.append(trajectory_point(q, v, a, float(t)))
    return message


def faults_of(request: InjectFault.Request) -> list[Fault]:
    """The faults that are asked for: a schedule, or a single one."""
    kind = request.kind.strip()
    if request.schedule:
        if kind or len(request.processors):
            raise ScheduleError("schedule", "give either a schedule or a single fault")
        return load_schedule(str(request.schedule))
    checks.within("start", request.start, 0.0, 1e9)
    checks.within("duration", request.duration, 0.0, 1e9)
    return [
        Fault(
            processors=tuple(int(k) for k in request.processors),
            kind=kind,
            start=request.start,
            end=request.start + request.duration if request.duration else np.inf,
            element=request.element,
            magnitude=request.magnitude,
            seed=request.seed,
        )
    ]


def limits_of(request: Any, joints: Sequence[str]) -> tuple[list[int], Array, Array]:
    """The joints of a request for limits, their lower and upper ones [rad]."""
    names = list(request.joints)
    if not names:
        raise ArmError("joints", "must name at least one joint")
    lower = checks.shape("lower", from_field(request.lower, "float64"), (len(names),))
    upper = checks.shape("upper", from_field(request.upper, "float64"), (len(names),))
    where = [joint_index(joints, name, "joints") for name in names]
    for name, low, high in zip(names, lower, upper, strict=True):
        if not low < high:
            raise ArmError("lower", f"{name}: {low:g} is not below {high:g}")
    return where, lower, upper


def status_message(s: Snapshot, joints: Sequence[str], stamp: Any) -> FtStatus:
    """The controller at one moment."""
    vectors = ("lower", "upper", "torque", "error")
    message = FtStatus(
        **vars(s)
        | {name: to_field(getattr(s, name), "float64") for name in vectors}
        | {
            "joints": list(joints),
            "locked": [bool(x) for x in s.locked],
            "processors": [_processor_message(p) for p in s.processors],
        }
    )
    message.header.stamp = stamp
    return message


def _processor_message(p: Processor) -> FtProcessor:
    """One processor; the fields have the names of the message's."""
    return FtProcessor(
        **vars(p)
        | {
            "state": getattr(FtProcessor, p.state),
            "comparison": to_field(np.array(p.comparison, np.uint8), "uint8"),
            "clean": min(p.clean, 2**32 - 1),
            "joints": to_field(np.array(p.joints, np.uint8), "uint8"),
        }
    )
