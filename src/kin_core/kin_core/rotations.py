"""Rotations and rigid transforms as small compiled kernels.

Quaternions are (x, y, z, w) as in geometry_msgs; rotation matrices map body to parent. All
functions take and return float64 arrays and may be called from numba kernels and from Python.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = [
    "exp_so3",
    "inverse_transform",
    "log_so3",
    "matrix_to_quaternion",
    "quaternion_to_matrix",
    "rotation_defect",
    "rpy_to_matrix",
    "skew",
    "transform",
]

Array = NDArray[np.float64]

#: Below this angle [rad] the series replace the quotients; their error is then below 1e-17.
_SMALL = 1e-4


@njit(cache=True, nogil=True)
def skew(w: Array) -> Array:
    """Return the matrix S of the cross product: S v = w x v."""
    S = np.zeros((3, 3))
    S[0, 1] = -w[2]
    S[0, 2] = w[1]
    S[1, 0] = w[2]
    S[1, 2] = -w[0]
    S[2, 0] = -w[1]
    S[2, 1] = w[0]
    return S


@njit(cache=True, nogil=True)
def quaternion_to_matrix(q: Array) -> Array:
    """Return the rotation matrix of a quaternion (x, y, z, w) of any non-zero norm."""
    x, y, z, w = q[0], q[1], q[2], q[3]
    # Scaling first keeps tiny and huge quaternions from under- and overflowing.
    scale = max(abs(x), abs(y), abs(z), abs(w))
    x, y, z, w = x / scale, y / scale, z / scale, w / scale
    s = 2.0 / (x * x + y * y + z * z + w * w)
    R = np.empty((3, 3))
    R[0, 0] = 1.0 - s * (y * y + z * z)
    R[0, 1] = s * (x * y - z * w)
    R[0, 2] = s * (x * z + y * w)
    R[1, 0] = s * (x * y + z * w)
    R[1, 1] = 1.0 - s * (x * x + z * z)
    R[1, 2] = s * (y * z - x * w)
    R[2, 0] = s * (x * z - y * w)
    R[2, 1] = s * (y * z + x * w)
    R[2, 2] = 1.0 - s * (x * x + y * y)
    return R


@njit(cache=True, nogil=True)
def matrix_to_quaternion(R: Array) -> Array:
    """Return the unit quaternion (x, y, z, w) with w >= 0 of a rotation matrix.

    The largest of the four components is found first, so that no small number is divided by
    (Shepperd's method).
    """
    q = np.empty(4)
    trace = R[0, 0] + R[1, 1] + R[2, 2]
    if trace >= R[0, 0] and trace >= R[1, 1] and trace >= R[2, 2]:
        q[3] = 1.0 + trace
        q[0] = R[2, 1] - R[1, 2]
        q[1] = R[0, 2] - R[2, 0]
        q[2] = R[1, 0] - R[0, 1]
    else:
        i = 0
        if R[1, 1] > R[i, i]:
            i = 1
        if R[2, 2] > R[i, i]:
            i = 2
        j, k = (i + 1) % 3, (i + 2) % 3
        q[i] = 1.0 + R[i, i] - R[j, j] - R[k, k]
        q[j] = R[j, i] + R[i, j]
        q[k] = R[k, i] + R[i, k]
        q[3] = R[k, j] - R[j, k]
    norm = math.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    if q[3] < 0.0:
        norm = -norm
    return q / norm


@njit(cache=True, nogil=True)
def rpy_to_matrix(roll: float, pitch: float, yaw: float) -> Array:
    """Return Rz(yaw) Ry(pitch) Rx(roll), the convention of URDF and REP-103."""
    cr, sr = math.cos(roll), math.sin(roll)
    cp, sp = math.cos(pitch), math.sin(pitch)
    cy, sy = math.cos(yaw), math.sin(yaw)
    R = np.empty((3, 3))
    R[0, 0] = cy * cp
    R[0, 1] = cy * sp * sr - sy * cr
    R[0, 2] = cy * sp * cr + sy * sr
    R[1, 0] = sy * cp
    R[1, 1] = sy * sp * sr + cy * cr
    R[1, 2] = sy * sp * cr - cy * sr
    R[2, 0] = -sp
    R[2, 1] = cp * sr
    R[2, 2] = cp * cr
    return R


@njit(cache=True, nogil=True)
def exp_so3(w: Array) -> Array:
    """Return the rotation about w by |w| [rad]."""
    t2 = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    t = math.sqrt(t2)
    if t < _SMALL:
        a, b = 1.0 - t2 / 6.0, 0.5 - t2 / 24.0
    else:
        # 2 sin^2(t/2) loses no digits where 1 - cos(t) would.
        h = math.sin(0.5 * t)
        a, b = math.sin(t) / t, 2.0 * h * h / t2
    S = skew(w)
    R = a * S
    for i in range(3):
        for j in range(3):
            R[i, j] += b * w[i] * w[j]
        R[i, i] += 1.0 - b * t2
    return R


@njit(cache=True, nogil=True)
def log_so3(R: Array) -> Array:
    """Return the rotation vector w with |w| <= pi and exp_so3(w) = R."""
    q = matrix_to_quaternion(R)
    s = math.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2])
    w = np.empty(3)
    scale = 2.0 / q[3] if s < 1e-10 else 2.0 * math.atan2(s, q[3]) / s
    for i in range(3):
        w[i] = scale * q[i]
    return w


@njit(cache=True, nogil=True)
def transform(R: Array, p: Array) -> Array:
    """Return the 4x4 homogeneous transform of a rotation and a translation."""
    T = np.zeros((4, 4))
    for i in range(3):
        for j in range(3):
            T[i, j] = R[i, j]
        T[i, 3] = p[i]
    T[3, 3] = 1.0
    return T


@njit(cache=True, nogil=True)
def inverse_transform(T: Array) -> Array:
    """Return the inverse of a rigid 4x4 transform."""
    X = np.zeros((4, 4))
    for i in range(3):
        for j in range(3):
            X[i, j] = T[j, i]
            X[i, 3] -= T[j, i] * T[j, 3]
    X[3, 3] = 1.0
    return X


@njit(cache=True, nogil=True)
def rotation_defect(R: Array) -> float:
    """Return how far R is from a rotation: max |R'R - I|, or 2 if it is a reflection."""
    worst = 0.0
    for i in range(3):
        for j in range(3):
            s = R[0, i] * R[0, j] + R[1, i] * R[1, j] + R[2, i] * R[2, j]
            if i == j:
                s -= 1.0
            if not abs(s) <= worst:  # also true for NaN
                worst = abs(s)
    det = (
        R[0, 0] * (R[1, 1] * R[2, 2] - R[1, 2] * R[2, 1])
        - R[0, 1] * (R[1, 0] * R[2, 2] - R[1, 2] * R[2, 0])
        + R[0, 2] * (R[1, 0] * R[2, 1] - R[1, 1] * R[2, 0])
    )
    if det < 0.0:
        return max(worst, 2.0)
    return worst
