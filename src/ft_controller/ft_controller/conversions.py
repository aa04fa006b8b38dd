"""Messages <-> library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from kin_interfaces.msg import FtProcessor, FtStatus
from kin_interfaces.srv import InjectFault
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ft_controller.errors import ArmError, ScheduleError, raising
from ft_controller.explain import Processor
from ft_controller.faults import Fault, load_schedule
from ft_controller.loop import Snapshot
from ft_controller.records import Array
from ft_controller.trajectory import Trajectory
from kin_core import checks
from kin_ros.arrays import from_field, to_field

__all__ = [
    "age_of",
    "faults_of",
    "joint_index",
    "joint_values",
    "limits_of",
    "status_message",
    "trajectory_message",
    "trajectory_of",
]


_MAX_POINTS = 20_000


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


def trajectory_of(message: JointTrajectory, joints: Sequence[str], desired: Array) -> Trajectory:
    """A message as a trajectory; joints that it does not name stay where they are.

    Args:
        message: The message.
        joints: Names of all joints.
        desired: Where the arm should be now, shape (3, n).
    """
    columns = [joint_index(joints, name, "joint_names") for name in message.joint_names]
    if not columns or len(set(columns)) != len(columns):
        raise ArmError("joint_names", "must name at least one joint, and none twice")
    checks.count("points", len(message.points), _MAX_POINTS)
    if not message.points:
        # As ros2_control has it: an empty trajectory stops the motion.
        return Trajectory.rest(desired[0])
    times = np.array(
        [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in message.points]
    )
    positions, velocities, accelerations = (
        _block(message, name, columns, len(joints))
        for name in ("positions", "velocities", "accelerations")
    )
    if positions is None:
        raise ArmError("points.positions", f"every point needs {len(columns)} values")
    others = np.setdiff1d(np.arange(len(joints)), columns)
    positions[:, others] = desired[0, others]
    if times[0] > 0.0:
        # The way to the first point begins where the arm is.
        times = np.append(0.0, times)
        positions = np.vstack([desired[0], positions])
        if velocities is not None:
            velocities = np.vstack([desired[1], velocities])
        if accelerations is not None:
            accelerations = np.vstack([desired[2], accelerations])
    return Trajectory.through(times, positions, velocities, accelerations)


def _block(message: JointTrajectory, name: str, columns: list[int], n: int) -> Array | None:
    """One field of all points, shape (k, n), zero for joints that are not named; None: empty."""
    rows = [from_field(getattr(point, name), "float64") for point in message.points]
    if not any(row.size for row in rows):
        return None
    if any(row.size != len(columns) for row in rows):
        raise ArmError(f"points.{name}", f"every point needs {len(columns)} values")
    block = np.zeros((len(rows), n))
    block[:, columns] = rows
    return block


def trajectory_message(trajectory: Trajectory, joints: Sequence[str]) -> JointTrajectory:
    """A trajectory as a message."""
    message = JointTrajectory(joint_names=list(joints))
    for t in trajectory.times:
        q, v, a = trajectory.sample(float(t))
        point = JointTrajectoryPoint(
            positions=to_field(q, "float64"),
            velocities=to_field(v, "float64"),
            accelerations=to_field(a, "float64"),
        )
        point.time_from_start.sec = int(t)
        point.time_from_start.nanosec = int(1e9 * (t - int(t)))
        message.points.append(point)
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
