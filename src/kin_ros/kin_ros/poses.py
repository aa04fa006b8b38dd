"""Poses in messages: one reader for all nodes, with one tolerance and one sentence.

Positions are in metres, quaternions (x, y, z, w); a refusal names the field of the message.
"""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import Point, Pose, Quaternion
from numpy.typing import NDArray

from kin_core import checks
from kin_core.errors import InvalidInput
from kin_core.rotations import matrix_to_quaternion, quaternion_to_matrix, transform

__all__ = [
    "check_frame",
    "fill_orientation",
    "fill_pose",
    "pose_numbers",
    "read_pose",
    "read_position",
    "read_rotation",
    "to_pose",
]

Array = NDArray[np.float64]


def read_position(field: str, point: Point) -> Array:
    """Return a finite position, shape (3,) [m]."""
    return checks.finite(field, [point.x, point.y, point.z])


def read_rotation(field: str, orientation: Quaternion, *, zero_is_identity: bool = False) -> Array:
    """Return the rotation matrix of an orientation, shape (3, 3).

    Args:
        field: Where it stands in the request.
        orientation: A quaternion whose norm is 1 to within ``kin_core.checks.UNIT_TOLERANCE``.
        zero_is_identity: Take four zeros for "not given" instead of refusing them.
    """
    values = [orientation.x, orientation.y, orientation.z, orientation.w]
    if zero_is_identity and not any(values):
        return np.eye(3)
    return np.asarray(quaternion_to_matrix(checks.quaternion(field, values)))


def read_pose(field: str, pose: Pose, *, zero_is_identity: bool = False) -> Array:
    """Return a pose as a transform, shape (4, 4) [m].

    Args:
        field: Where it stands in the request, such as "target".
        pose: Position and orientation.
        zero_is_identity: As for ``read_rotation``.

    Raises:
        InvalidInput: A number is not finite, or the quaternion is none; names the field.
    """
    position = read_position(f"{field}.position", pose.position)
    rotation = read_rotation(
        f"{field}.orientation", pose.orientation, zero_is_identity=zero_is_identity
    )
    return np.asarray(transform(rotation, position))


def pose_numbers(pose: Pose) -> list[float]:
    """Return position and quaternion, seven numbers, as they are.

    For batches, of which a compiled kernel refuses single poses; it must use the same tolerance.
    """
    p, q = pose.position, pose.orientation
    return [p.x, p.y, p.z, q.x, q.y, q.z, q.w]


def check_frame(field: str, frame_id: str, expected: str) -> None:
    """Refuse a pose that is given in another frame; no frame at all means the expected one."""
    if frame_id not in ("", expected):
        raise InvalidInput(
            f"{field}.header.frame_id", f"must be {expected!r}, got {checks.shown(frame_id)}"
        )


def fill_pose(pose: Pose, position: Array, rotation: Array) -> None:
    """Write a position, shape (3,) [m], and a rotation matrix, shape (3, 3), into a message."""
    pose.position.x, pose.position.y, pose.position.z = position.tolist()
    fill_orientation(pose.orientation, rotation)


def fill_orientation(orientation: Quaternion, rotation: Array) -> None:
    """Write a rotation matrix, shape (3, 3), into a message."""
    x, y, z, w = matrix_to_quaternion(np.ascontiguousarray(rotation)).tolist()
    orientation.x, orientation.y, orientation.z, orientation.w = x, y, z, w


def to_pose(position: Array, rotation: Array) -> Pose:
    """Return a new message of a position, shape (3,) [m], and a rotation, shape (3, 3)."""
    pose = Pose()
    fill_pose(pose, position, rotation)
    return pose
