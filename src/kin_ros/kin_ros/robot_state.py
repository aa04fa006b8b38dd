"""The links of a robot in tf, from its description and the positions of its joints.

tf wants each link in its parent, so a joint's transform needs no other joint: all of them at once
are a few array operations. Messages are made once and refilled.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from geometry_msgs.msg import TransformStamped
from numpy.typing import NDArray
from sensor_msgs.msg import JointState

from kin_core import checks
from kin_core.errors import InvalidInput
from kin_core.rotations import matrix_to_quaternion
from kin_core.urdf import Urdf, UrdfJoint
from kin_ros.arrays import from_field
from kin_ros.frames import fill_transform

__all__ = ["Joints", "LinkTransforms", "make_transform"]

Array = NDArray[np.float64]
Joints = tuple[NDArray[np.intp], Array]
"""Places of joints in a robot's list, and their positions [rad or m]."""

#: Lists of names that are remembered.
_MOST_LISTS = 16


def make_transform(parent: str, child: str, T: Array) -> TransformStamped:
    """Return a message that places a child frame in its parent by a transform, shape (4, 4) [m]."""
    stamped = TransformStamped(child_frame_id=child)
    stamped.header.frame_id = parent
    fill_transform(stamped, [*T[:3, 3].tolist(), *_quaternion(T).tolist()])
    return stamped


class LinkTransforms:
    """Transforms of the links of one robot.

    Joints with several freedoms (floating, planar) have no place in a JointState and are left to
    whoever knows them.
    """

    def __init__(
        self, urdf: Urdf, prefix: str = "", home: Mapping[str, float] | None = None
    ) -> None:
        """Sort the joints into those that move and those that do not.

        Args:
            urdf: The robot.
            prefix: Before the names of links in tf, such as "robot1/".
            home: Positions of joints until others come [rad or m].

        Raises:
            InvalidInput: Home names a joint that does not move.
        """
        joints = list(urdf.joints.values())
        self.fixed = [
            make_transform(prefix + joint.parent, prefix + joint.child, joint.origin)
            for joint in joints
            if not joint.moves
        ]
        moving = [j for j in joints if j.type in ("revolute", "continuous", "prismatic")]
        self._index = {joint.name: k for k, joint in enumerate(moving)}
        self._messages = [
            make_transform(prefix + joint.parent, prefix + joint.child, joint.origin)
            for joint in moving
        ]
        n = len(moving)
        self._slides = np.array([joint.type == "prismatic" for joint in moving], bool)
        self._position = np.array([joint.origin[:3, 3] for joint in moving]).reshape(n, 3)
        self._turn = np.array([_quaternion(joint.origin) for joint in moving]).reshape(n, 4)
        self._axis = np.array([joint.axis for joint in moving]).reshape(n, 3)
        self._slide = np.array([j.origin[:3, :3] @ j.axis for j in moving]).reshape(n, 3)
        self._followers = [
            (self._index[j.name], *self._leader(urdf, j)) for j in moving if j.mimic is not None
        ]
        #: Which joints a list of names means, and which of the names; publishers repeat theirs.
        self.places = lru_cache(maxsize=_MOST_LISTS)(self._places)
        #: Positions of the moving joints, shape (n,) [rad or m]; NaN until they are known.
        self.positions = np.full(n, np.nan)
        self._home = self.positions.copy()
        for name, value in (home or {}).items():
            if name not in self._index:
                raise InvalidInput(f"home.{name}", "the robot has no such joint that moves")
            self._home[self._index[name]] = checks.number(f"home.{name}", value)
        self.forget()

    def _leader(self, urdf: Urdf, joint: UrdfJoint) -> tuple[int, float, float]:
        """The joint that one follows at last, with the factor and the offset to it."""
        factor, offset, seen = 1.0, 0.0, set[str]()
        while joint.mimic is not None:
            if joint.name in seen:
                raise InvalidInput(f"joint {joint.name!r}", "mimics itself")
            seen.add(joint.name)
            offset += factor * joint.mimic.offset
            factor *= joint.mimic.multiplier
            joint = urdf.joints[joint.mimic.joint]
        if joint.name not in self._index:
            raise InvalidInput(f"joint {joint.name!r}", "is mimicked and has not one freedom")
        return self._index[joint.name], factor, offset

    def forget(self) -> None:
        """Know no more than where home is."""
        self.positions[:] = self._home

    def take(self, message: JointState) -> bool:
        """Remember positions by the names of the joints; return whether any was of this robot."""
        places, values = self.read(message)
        self.positions[places] = values
        return bool(len(places))

    def read(self, message: JointState) -> Joints:
        """Which joints of this robot a message speaks of, and where they are.

        Raises:
            InvalidInput: There are not as many positions as names, or one is not finite.
        """
        values = from_field(message.position)
        if not len(values):  # velocities or efforts alone
            return np.empty(0, np.intp), np.empty(0)
        if len(values) != len(message.name):
            raise InvalidInput(
                "position", f"must be one for each of {len(message.name)} names, got {len(values)}"
            )
        if not np.isfinite(values).all():
            raise InvalidInput("position", "must be finite")
        places, numbers = self.places(tuple(message.name))
        return places, values[numbers]

    def _places(self, names: tuple[str, ...]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        index = self._index
        chosen = [(index[name], k) for k, name in enumerate(names) if name in index]
        both = np.array(chosen, np.intp).reshape(-1, 2)
        return both[:, 0], both[:, 1]

    def messages(self, stamp: Any) -> list[TransformStamped]:
        """Return the transforms of all joints whose positions are known.

        The messages are the same ones each time, refilled.
        """
        q = self.positions
        for k, leader, factor, offset in self._followers:
            q[k] = factor * q[leader] + offset
        known = np.flatnonzero(~np.isnan(q))
        numbers = self._numbers()[known].tolist()
        found = [self._messages[k] for k in known.tolist()]
        for message, seven in zip(found, numbers, strict=True):
            message.header.stamp = stamp
            fill_transform(message, seven)
        return found

    def _numbers(self) -> Array:
        """Translation and quaternion of every moving joint, shape (n, 7)."""
        slid = np.where(self._slides, self.positions, 0.0)
        half = np.where(self._slides, 0.0, 0.5 * self.positions)
        position = self._position + slid[:, None] * self._slide
        # The product of the origin's quaternion with a turn about the axis.
        s, c = np.sin(half)[:, None] * self._axis, np.cos(half)[:, None]
        v, w = self._turn[:, :3], self._turn[:, 3:]
        turned = np.empty((len(s), 4))
        turned[:, :3] = w * s + c * v + np.cross(v, s)
        turned[:, 3:] = w * c - np.sum(v * s, axis=1, keepdims=True)
        return np.hstack([position, turned])


def _quaternion(T: Array) -> Array:
    return np.asarray(matrix_to_quaternion(np.ascontiguousarray(T[:3, :3])))
