"""Poses: twelve numbers, position [m] and rotation matrix row by row, platform in base frame."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from continuum_ik.rod import KERNEL, Array
from kin_core.checks import UNIT_TOLERANCE
from kin_core.errors import InvalidInput

#: Largest |R'R - I| of a rotation matrix that is taken for one.
ORTHONORMAL = 1e-6


@njit(**KERNEL)
def read_pose(target: Array, out: Array) -> int:
    """Copy a target into ``out`` (4, 3), from 12 numbers or from position and quaternion (7).

    Returns:
        0 if it is a pose, 1 if a number is not finite or the size is wrong, 2 if the rotation is
        none.
    """
    if target.size != 12 and target.size != 7:
        return 1
    total = 0.0
    for k in range(target.size):
        total += abs(target[k])
    if not total <= 1.7e308:
        return 1
    out[0, 0], out[0, 1], out[0, 2] = target[0], target[1], target[2]
    if target.size == 12:
        for k in range(9):
            out[1 + k // 3, k % 3] = target[3 + k]
        a, b, c = out[1, 0], out[1, 1], out[1, 2]
        d, e, f = out[2, 0], out[2, 1], out[2, 2]
        g, h, i = out[3, 0], out[3, 1], out[3, 2]
        defect = max(
            abs(a * a + d * d + g * g - 1.0),
            abs(b * b + e * e + h * h - 1.0),
            abs(c * c + f * f + i * i - 1.0),
            abs(a * b + d * e + g * h),
        )
        defect = max(defect, abs(a * c + d * f + g * i), abs(b * c + e * f + h * i))
        handed = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
        return 0 if defect <= ORTHONORMAL and handed > 0.0 else 2
    x, y, z, u = target[3], target[4], target[5], target[6]
    square = x * x + y * y + z * z + u * u
    if not abs(math.sqrt(square) - 1.0) <= UNIT_TOLERANCE:
        return 2
    s = 2.0 / square
    out[1, 0] = 1.0 - s * (y * y + z * z)
    out[2, 1] = 1.0 - s * (x * x + z * z)
    out[3, 2] = 1.0 - s * (x * x + y * y)
    out[1, 1], out[2, 0] = s * (x * y - z * u), s * (x * y + z * u)
    out[1, 2], out[3, 0] = s * (x * z + y * u), s * (x * z - y * u)
    out[2, 2], out[3, 1] = s * (y * z - x * u), s * (y * z + x * u)
    return 0


@njit(**KERNEL)
def turn(pose: Array, x: float, y: float, z: float, out: Array) -> None:
    """Set the rotation of a pose (4, 3) to exp([x y z]) R, R being that of another or the same."""
    t2 = x * x + y * y + z * z
    if t2 < 1e-8:
        a, b = 1.0 - t2 / 6.0, 0.5 - t2 / 24.0
    else:
        t = math.sqrt(t2)
        half = math.sin(0.5 * t)
        a, b = math.sin(t) / t, 2.0 * half * half / t2
    for j in range(3):
        p, q, r = pose[1, j], pose[2, j], pose[3, j]
        u, v, s = y * r - z * q, z * p - x * r, x * q - y * p
        out[1, j] = p + a * u + b * (y * s - z * v)
        out[2, j] = q + a * v + b * (z * u - x * s)
        out[3, j] = r + a * s + b * (x * v - y * u)


def make_pose(position: ArrayLike, rotation: ArrayLike | None = None) -> Array:
    """Return a pose from a position and a rotation matrix, a quaternion (x, y, z, w) or nothing.

    Raises:
        InvalidInput: Not finite, wrong shape, or no rotation.
    """
    flat = np.empty(12)
    try:
        flat[:3] = np.asarray(position, dtype=np.float64).reshape(3)
    except (TypeError, ValueError):
        raise InvalidInput("position", "must be three numbers") from None
    try:
        turned: Any = np.eye(3) if rotation is None else np.asarray(rotation, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("rotation", "must hold numbers") from None
    if turned.shape == (4,):
        target = np.concatenate([flat[:3], turned])
    elif turned.shape in ((3, 3), (9,)):
        flat[3:] = turned.reshape(9)
        target = flat.copy()
    else:
        raise InvalidInput("rotation", f"must be a 3x3 matrix or a quaternion, got {turned.shape}")
    check_pose(target, flat)
    return flat


def check_pose(target: Array, out: Array) -> None:
    """Read a target as ``read_pose`` does, and say what is wrong with it."""
    problem = read_pose(target, out.reshape(4, 3))
    if problem == 1:
        if target.size not in (7, 12):
            raise InvalidInput("pose", f"must have 7 or 12 numbers, got {target.size}")
        raise InvalidInput("pose", "must be finite")
    if problem == 2:
        raise InvalidInput(
            "pose",
            "must be a quaternion of norm 1" if target.size == 7 else "the matrix is no rotation",
        )


def as_poses(poses: ArrayLike) -> Array:
    """Return poses as a contiguous (n, 12) array, from (n, 12), (n, 7), (n, 3) or (n, 4, 4)."""
    try:
        array = np.ascontiguousarray(poses, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("poses", "must hold numbers") from None
    if array.ndim == 1 or (array.ndim == 2 and array.shape == (4, 4)):
        array = array[None]
    if array.ndim == 3 and array.shape[1:] == (4, 4):
        flat = np.empty((len(array), 12))
        flat[:, :3] = array[:, :3, 3]
        flat[:, 3:] = array[:, :3, :3].reshape(-1, 9)
        return flat
    if array.ndim == 2 and array.shape[1] == 12:
        return array
    if array.ndim == 2 and array.shape[1] == 3:
        flat = np.zeros((len(array), 12))
        flat[:, :3] = array
        flat[:, 3:] = np.eye(3).reshape(9)
        return flat
    if array.ndim == 2 and array.shape[1] == 7:
        flat = np.full((len(array), 12), np.nan)
        for row, target in zip(flat, array, strict=True):
            if read_pose(target, row.reshape(4, 3)) != 0:
                row[3:] = 0.0  # refused when it is solved, as one pose among the others
        return flat
    raise InvalidInput("poses", f"must be (n, 12), (n, 7), (n, 3) or (n, 4, 4), got {array.shape}")
