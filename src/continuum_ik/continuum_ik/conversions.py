"""Between messages and the library."""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import Pose
from kin_interfaces.action import SweepWorkspace
from kin_interfaces.srv import SolveContinuumFK, SolveContinuumIK

from continuum_ik.details import Details
from continuum_ik.robot import RODS, Load
from continuum_ik.rod import Array
from continuum_ik.solver import Batch, FKBatch
from continuum_ik.sweep import Sweep, draw_sweep
from kin_core.errors import InvalidInput, StatusCode
from kin_core.task import Progress
from kin_ros.arrays import from_field, to_field
from kin_ros.poses import fill_pose, pose_numbers, to_pose

__all__ = [
    "fill_platform",
    "fk_response",
    "ik_response",
    "read_lengths",
    "read_load",
    "read_poses",
    "sweep_feedback",
    "sweep_result",
]


def read_poses(poses: list[Pose]) -> Array:
    """Return positions and quaternions, (n, 7); the solver refuses single ones."""
    if not poses:
        raise InvalidInput("poses", "must not be empty")
    return np.array([pose_numbers(pose) for pose in poses])


def read_lengths(field: Any) -> Array:
    """Return rows of lengths, (n, 6) [m]."""
    lengths = np.array(from_field(field, "float64"))
    if lengths.size == 0 or lengths.size % RODS:
        raise InvalidInput("lengths", f"must be rows of six numbers, got {lengths.size} in all")
    return lengths.reshape(-1, RODS)


def read_load(request: Any) -> Load | None:
    """Return the load of a request, None if it gives none."""
    if not request.load_given:
        return None
    f, t = request.load.force, request.load.torque
    return Load(force=(f.x, f.y, f.z), moment=(t.x, t.y, t.z))


def ik_response(batch: Batch, details: Details | None) -> SolveContinuumIK.Response:
    """Return the answer about many poses; its status is that of the first that failed."""
    response = SolveContinuumIK.Response()
    response.codes = to_field(batch.codes, "uint8")
    response.residuals = to_field(batch.residuals)
    response.lengths = to_field(batch.lengths)
    response.forces = to_field(batch.forces)
    response.reached = to_field(batch.reached)
    response.best = [to_pose(*_parts(pose)) for pose in batch.best]
    response.limiting_leg = to_field(batch.limiting_leg, "int8")
    response.stable = batch.stable.tolist()
    if details is not None:
        response.jacobian = to_field(details.jacobian.reshape(-1))
        response.stiffness = to_field(details.stiffness.reshape(-1))
        response.fold_margin = to_field(details.fold_margin)
        response.shapes = to_field(details.shapes.reshape(-1))
    failed = np.flatnonzero(batch.codes != StatusCode.SUCCESS)
    if failed.size:
        k = int(failed[0])
        response.status.code = int(batch.codes[k])
        response.status.message = f"poses[{k}]: {batch.message(k)}".replace("pose: ", "")
    else:
        response.status.residual = float(batch.residuals.max())
        if not batch.stable.all():
            k = int(np.flatnonzero(~batch.stable)[0])
            response.status.message = f"poses[{k}]: an equilibrium that is not stable"
    return response


def fk_response(batch: FKBatch) -> SolveContinuumFK.Response:
    """Return the answer about many rows of lengths; its status is that of the first that failed."""
    response = SolveContinuumFK.Response()
    response.codes = to_field(batch.codes, "uint8")
    response.residuals = to_field(batch.residuals)
    response.reached = to_field(batch.reached)
    response.poses = [to_pose(*_parts(pose)) for pose in batch.poses]
    response.stable = [bool(batch.stable and code == StatusCode.SUCCESS) for code in batch.codes]
    failed = np.flatnonzero(batch.codes != StatusCode.SUCCESS)
    if failed.size:
        k = int(failed[0])
        response.status.code = int(batch.codes[k])
        response.status.message = f"lengths, row {k}: {batch.message(k)}"
    else:
        response.status.residual = float(batch.residuals.max())
        response.status.message = batch.message(0)
    return response


def sweep_result(sweep: Sweep, picture: bool) -> SweepWorkspace.Result:
    """Return a swept grid as a message, with a PNG image if asked for."""
    result = SweepWorkspace.Result()
    result.total, result.reachable = sweep.total, sweep.reachable
    result.volume, result.poses_per_second = sweep.volume, sweep.poses_per_second
    result.codes = to_field(sweep.codes.reshape(-1), "uint8")
    result.lengths = to_field(sweep.lengths.reshape(-1))
    result.fold_margin = to_field(sweep.fold_margin.reshape(-1))
    result.stable = sweep.stable.reshape(-1).tolist()
    if picture:
        result.picture = to_field(np.frombuffer(draw_sweep(sweep), dtype=np.uint8), "uint8")
    return result


def sweep_feedback(progress: Progress) -> SweepWorkspace.Feedback:
    """Return the progress of a sweep as a message."""
    feedback = SweepWorkspace.Feedback()
    feedback.fraction, feedback.message = progress.fraction, progress.message
    feedback.done = int(progress.counters.get("done", 0))
    feedback.reachable = int(progress.counters.get("reachable", 0))
    feedback.poses_per_second = float(progress.counters.get("poses_per_second", 0.0))
    return feedback


def fill_platform(message: Pose, pose: Array) -> None:
    """Write a pose of 12 numbers into a message."""
    fill_pose(message, *_parts(pose))


def _parts(pose: Array) -> tuple[Array, Array]:
    """The two parts of a pose of 12 numbers: shapes (3,) [m] and (3, 3)."""
    return pose[:3], pose[3:].reshape(3, 3)
