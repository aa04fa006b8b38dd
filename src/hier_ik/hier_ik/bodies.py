"""From the spanning tree to bodies and freedoms, in the linkage's own unit of length.

Every freedom becomes a body of its own (a turn about or a slide along the z axis of its frame, or a
ball of three freedoms); links that move together share a body. So the kinematics are one short
loop, and fixed joints cost nothing.
"""

from __future__ import annotations

import math

import numpy as np

from hier_ik.elements import Joint
from hier_ik.linkage import Linkage
from hier_ik.tables import BALL, BODY, FREEDOM, POSE, PRISMATIC, REVOLUTE, Array, Records
from kin_core.rotations import inverse_transform

__all__ = ["Bodies", "pack", "pose_rows", "unit_of_length", "unpack"]


#: Largest step of an angle [rad] and of a length, as a share of the size of the linkage.
STEP_ANGLE, STEP_SHARE = 0.3, 0.3
#: Turns that take the z axis of an elementary body to x, y or z of the joint frame.
_TURN = {
    "x": np.array([[0.0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]]),
    "y": np.array([[0.0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 1]]),
    "z": np.eye(4),
}


def pack(T: Array, length: float = 1.0) -> tuple[float, ...]:
    """A 4x4 transform as the 12 numbers of a POSE record, its position in units of length."""
    return (*T[:3, :3].ravel().tolist(), *(T[:3, 3] / length).tolist())


def unpack(p: Array, length: float = 1.0) -> Array:
    """The inverse of pack()."""
    T = np.eye(4)
    T[:3, :3] = p[:9].reshape(3, 3)
    T[:3, 3] = p[9:] * length
    return T


def pose_rows(poses: Records) -> Array:
    """POSE records as plain numbers (n, 12)."""
    return np.ascontiguousarray(poses).view(np.float64).reshape(-1, 12)


def unit_of_length(linkage: Linkage) -> float:
    """A length of the mechanism [m], the unit in which it is solved.

    It is the median distance between neighbouring joint frames (of slides: how far they go), so a
    long way from the root to the robot does not count. In this unit rows of lengths and rows
    of angles are of one size, for robots of a centimetre and of a hundred metres alike. It is a
    power of two: changing units rounds nothing, and a robot twice as large takes the same steps.
    """
    joints = list(linkage.joints.values())
    if not joints:
        return 1.0
    frames = np.array([T for j in joints for T in (j.origin, j.child_origin)])
    found = [np.linalg.norm(frames[:, :3, 3], axis=1)]
    for j in joints:
        slides = [i for i, angle in enumerate(j.kind.angular) if not angle]
        if slides:
            ways = np.abs([j.lower, j.upper, linkage.values.get(j.name, np.zeros(j.dof))])
            found.append(np.where(np.isfinite(ways), ways, 0.0).max(axis=0)[slides])
    sizes = np.concatenate(found)
    sizes = sizes[sizes > 1e-9]
    if not sizes.size:
        return 1.0
    return float(2.0 ** round(math.log2(float(np.median(sizes)))))


class Bodies:
    """Bodies and freedoms of the spanning tree, and where each link and joint is in them.

    Attributes:
        order: The tree joints, parents before children.
        parent: Per body its parent.
        turns: Per freedom whether it is an angle.
        freedom_body: Per freedom the body that it moves.
        link_body: Per link its body.
        link_offset: Per link its pose in the body (4, 4) [m].
        dof_of: Per tree joint its first freedom.
        length: The unit of length [m].
        unit: Per freedom what one of its units in the tables is [rad or m].
        lower: Position limits of the freedoms [rad or m].
        upper: Position limits of the freedoms [rad or m].
        velocity: Velocity limits of the freedoms [rad/s or m/s].
        locked: Per freedom whether its joint is locked.
    """

    def __init__(self, linkage: Linkage) -> None:
        self.order = linkage.tree_order()
        self.length = unit_of_length(linkage)
        self.link_body: dict[str, int] = {linkage.root: 0}
        self.link_offset: dict[str, Array] = {linkage.root: np.eye(4)}
        self.dof_of: dict[str, int] = {}
        self.parent, self.turns, self.freedom_body = [0], list[bool](), list[int]()
        self._wraps: list[bool] = []
        self._kind, self._freedom, self._origin = [0], [0], [np.eye(4)]
        for j in self.order:
            self._add(j)
        nd = len(self.turns)
        self.unit = np.where(np.array(self.turns, bool), 1.0, self.length)
        self.lower, self.upper = np.full(nd, -np.inf), np.full(nd, np.inf)
        self.velocity, self.locked = np.full(nd, np.inf), np.zeros(nd, bool)
        for j in self.order:
            s = self.freedoms_of(j)
            self.lower[s], self.upper[s], self.velocity[s] = j.lower, j.upper, j.velocity
            self.locked[s] = j.locked

    def freedoms_of(self, joint: Joint) -> slice:
        """The freedoms of a tree joint."""
        first = self.dof_of[joint.name]
        return slice(first, first + joint.dof)

    def _add(self, j: Joint) -> None:
        body = self.link_body[j.parent]
        place = self.link_offset[j.parent] @ j.origin
        first = self.dof_of[j.name] = len(self.turns)
        for f in j.kind.freedoms:
            ball = f == "s"
            turn = np.eye(4) if ball else _TURN[f[1]]
            kind = BALL if ball else (REVOLUTE if f[0] == "r" else PRISMATIC)
            self.parent.append(body)
            self._kind.append(kind)
            self._freedom.append(len(self.turns))
            self._origin.append(place @ turn)
            body = len(self.parent) - 1
            place = turn.T
            k, count = len(self.turns) - first, 3 if ball else 1
            limits = np.concatenate([j.lower[k : k + count], j.upper[k : k + count]])
            self._wraps += [ball and not np.isfinite(limits).any()] + [False] * (count - 1)
            self.turns += [kind != PRISMATIC] * count
            self.freedom_body += [body] * count
        self.link_body[j.child] = body
        self.link_offset[j.child] = place @ inverse_transform(j.child_origin)

    def tables(self, linkage: Linkage) -> tuple[Records, Records]:
        """The BODY and FREEDOM records at the posture of the linkage."""
        bodies = np.zeros(len(self.parent), BODY)
        bodies["parent"], bodies["kind"], bodies["freedom"] = self.parent, self._kind, self._freedom
        bodies["origin"] = np.array([pack(T, self.length) for T in self._origin], POSE)
        bodies["pose"][0] = pack(np.eye(4))
        freedoms = np.zeros(len(self.turns), FREEDOM)
        freedoms["body"], freedoms["turns"] = self.freedom_body, self.turns
        freedoms["wraps"] = self._wraps
        freedoms["low"], freedoms["high"] = -np.inf, np.inf
        for j in self.order:
            s = self.freedoms_of(j)
            freedoms["q"][s] = linkage.values[j.name] / self.unit[s]
            if j.rest is not None:
                freedoms["rests"][s] = 1
                freedoms["rest"][s] = j.rest / self.unit[s]
        lengths = [np.abs(bodies["origin"][n]).max() for n in "xyz"]
        slides = np.abs(freedoms["q"][freedoms["turns"] == 0])
        size = float(max([*lengths, *slides, 1e-3]))
        freedoms["step_max"] = np.where(self.turns, STEP_ANGLE, STEP_SHARE * size)
        return bodies, freedoms
