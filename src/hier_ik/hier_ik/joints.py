"""The catalogue of joint types: a subset of the six freedoms, and closure rows for the others.

A joint relates the frame A on its parent link to the frame B on its child link by the motion X,
A X = B. As a tree joint it gives X(q); as a closure it asks that the freedoms it does not have are
zero. The axis of a joint is the z axis of its frames (universal: x on the parent, then y on the
child; cartesian2, planar and point_plane: z is the normal of the plane).

Vona's catalogue has twelve types, all lower pairs but the helical one among them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hier_ik.tables import Array
from kin_core.rotations import exp_so3, log_so3

__all__ = ["JOINT_TYPES", "JointType", "axis_frame", "joint_coordinates", "joint_motion"]


#: How the rotation of a closure is held: not, all three, all but about z, or x_a against y_b.
ROT_FREE, ROT_FULL, ROT_AXIS, ROT_CROSS = 0, 1, 2, 3


@dataclass(frozen=True)
class JointType:
    """One entry of the catalogue.

    Attributes:
        name: As written in files.
        freedoms: In the order of the joint's coordinates: tx, ty, tz [m] along, rx, ry, rz [rad]
            about an axis of the joint frame; "s" stands for the three coordinates of a rotation
            vector [rad].
        held: Which translations (x, y, z of the parent's frame) a closure of this type holds.
        rotation: How a closure of this type holds the rotation (one of the ROT constants).
        reversible: Whether exchanging parent and child gives the same type with the same
            coordinates.
    """

    name: str
    freedoms: tuple[str, ...]
    held: tuple[bool, bool, bool]
    rotation: int
    reversible: bool

    @cached_property
    def dof(self) -> int:
        """Number of coordinates."""
        return sum(3 if f == "s" else 1 for f in self.freedoms)

    @property
    def rows(self) -> int:
        """Number of closure rows, 6 - dof."""
        return sum(self.held) + {ROT_FREE: 0, ROT_FULL: 3, ROT_AXIS: 2, ROT_CROSS: 1}[self.rotation]

    @property
    def angular(self) -> tuple[bool, ...]:
        """Per coordinate, whether it is an angle [rad] and not a length [m]."""
        out: list[bool] = []
        for f in self.freedoms:
            out += [True] * 3 if f == "s" else [f[0] == "r"]
        return tuple(out)


_ALL, _NONE = (True, True, True), (False, False, False)
_XY, _Z = (True, True, False), (False, False, True)

JOINT_TYPES: dict[str, JointType] = {
    t.name: t
    for t in (
        JointType("fixed", (), _ALL, ROT_FULL, True),
        JointType("revolute", ("rz",), _ALL, ROT_AXIS, True),
        JointType("prismatic", ("tz",), _XY, ROT_FULL, True),
        JointType("universal", ("rx", "ry"), _ALL, ROT_CROSS, False),
        JointType("cylindrical", ("tz", "rz"), _XY, ROT_AXIS, True),
        JointType("cartesian2", ("tx", "ty"), _Z, ROT_FULL, True),
        JointType("spherical", ("s",), _ALL, ROT_FREE, False),
        JointType("planar", ("tx", "ty", "rz"), _Z, ROT_AXIS, False),
        JointType("cartesian3", ("tx", "ty", "tz"), _NONE, ROT_FULL, False),
        JointType("point_slider", ("tz", "s"), _XY, ROT_FREE, False),
        JointType("point_plane", ("tx", "ty", "s"), _Z, ROT_FREE, False),
        JointType("general", ("tx", "ty", "tz", "s"), _NONE, ROT_FREE, False),
    )
}

#: Frame change with which the reversed joint has the same coordinates: X(q)^-1 = C X(q) C^-1.
#: The reversible types turn about z or slide along z (half a turn about x), or slide in the xy
#: plane (half a turn about z).
REVERSAL: dict[str, Array] = {
    "fixed": np.eye(4),
    "revolute": np.diag([1.0, -1.0, -1.0, 1.0]),
    "prismatic": np.diag([1.0, -1.0, -1.0, 1.0]),
    "cylindrical": np.diag([1.0, -1.0, -1.0, 1.0]),
    "cartesian2": np.diag([-1.0, -1.0, 1.0, 1.0]),
}


def axis_frame(joint_type: str, axis: Array, axis2: Array | None = None) -> Array:
    """Return the rotation (3, 3) that turns the canonical axes of a type onto the given ones.

    Args:
        joint_type: Name in the catalogue.
        axis: The z axis of the joint frame (universal: its x axis), any length but zero.
        axis2: For a universal joint its second axis (y), made perpendicular to the first.
    """
    a = axis / np.linalg.norm(axis)
    if joint_type == "universal":
        if axis2 is None:
            axis2 = np.cross(a, [1.0, 0, 0] if abs(a[0]) < 0.9 else [0, 1.0, 0])
        b = axis2 - a * (a @ axis2)
        b = b / np.linalg.norm(b)
        return np.column_stack([a, b, np.cross(a, b)])
    # The smallest turn that takes z to the axis.
    v, c = np.array([-a[1], a[0], 0.0]), a[2]
    s = math.hypot(v[0], v[1])
    if s < 1e-15:
        return np.eye(3) if c > 0 else np.diag([1.0, -1.0, -1.0])
    return exp_so3(v * (math.atan2(s, c) / s))


def _elementary(freedom: str, q: float) -> Array:
    T = np.eye(4)
    k = "xyz".index(freedom[1])
    if freedom[0] == "t":
        T[k, 3] = q
    else:
        w = np.zeros(3)
        w[k] = q
        T[:3, :3] = exp_so3(w)
    return T


def joint_motion(joint_type: str, q: Array) -> Array:
    """Return X(q) as a 4x4 transform; the kernels compute the same from elementary steps."""
    X = np.eye(4)
    i = 0
    for f in JOINT_TYPES[joint_type].freedoms:
        if f == "s":
            T = np.eye(4)
            T[:3, :3] = exp_so3(np.ascontiguousarray(q[i : i + 3], dtype=np.float64))
            X = X @ T
            i += 3
        else:
            X = X @ _elementary(f, float(q[i]))
            i += 1
    return X


def joint_coordinates(joint_type: str, X: Array) -> Array:
    """Return the coordinates q of the motion of this type that is nearest to X.

    Where X is a motion of the type, joint_motion(joint_coordinates(X)) = X.
    """
    R, p = X[:3, :3], X[:3, 3]
    if joint_type == "universal":
        return np.array([math.atan2(R[2, 1], R[1, 1]), math.atan2(R[0, 2], R[0, 0])])
    out: list[float] = []
    for f in JOINT_TYPES[joint_type].freedoms:
        if f == "s":
            out += list(log_so3(np.ascontiguousarray(R)))
        elif f[0] == "t":
            out.append(float(p["xyz".index(f[1])]))
        else:
            # Of the one-axis types only rz is left here.
            out.append(math.atan2(R[1, 0] - R[0, 1], R[0, 0] + R[1, 1]))
    return np.array(out)
