"""Mechanisms from robot descriptions: an arm at a target pose, or closed loops from a sidecar."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kin_core.checks import shown
from kin_core.rotations import exp_so3, inverse_transform, transform
from kin_core.urdf import Closure, Urdf, UrdfJoint
from kin_solvers import border
from kin_solvers.errors import MechanismError, SizeError, own_errors
from kin_solvers.mechanism import (
    MAX_FACTORS,
    MAX_LOOPS,
    Constant,
    Loop,
    Mechanism,
    Motion,
    Variable,
)

__all__ = ["arm_from_urdf", "link_pose", "loops_from_urdf"]

Matrix = NDArray[np.float64]

#: Largest multiplier of a joint that follows another.
MAX_MULTIPLE = 4
#: Closures that join the origins alone.
_POINTS = ("spherical", "ball", "point")


def arm_from_urdf(urdf: Urdf, target: ArrayLike, *, base: str = "", tip: str = "") -> Mechanism:
    """The serial chain from base to tip, closed at a target pose: its solutions are all of its IK.

    Args:
        urdf: The robot.
        target: Pose of the tip in the base, shape (4, 4) [m].
        base: Root of the chain; the root link if empty.
        tip: End of the chain; the only leaf if empty.
    """
    border.instance("urdf", urdf, Urdf)
    base, tip = border.text("base_link", base), border.text("tip_link", tip)
    base = base or urdf.root
    if not tip:
        leaves = urdf.leaves()
        if len(leaves) != 1:
            raise MechanismError(
                "tip_link",
                f"must be given, the robot has {len(leaves)} ends: {', '.join(leaves[:20])}",
            )
        tip = leaves[0]
    chain = _chain(urdf, base, tip)
    if len(chain) > MAX_FACTORS:
        raise SizeError(f"chain: {len(chain)} joints are more than the limit of {MAX_FACTORS}")
    builder = _Builder(urdf)
    factors = builder.forward(chain)
    arm = Mechanism(
        urdf.name,
        tuple(builder.variables),
        (Loop((*factors, Constant(np.eye(4))), name=f"{base} to {tip}"),),
        target=np.eye(4),
    )
    return arm.with_target(target)


def link_pose(urdf: Urdf, link: str, positions: Mapping[str, float]) -> Matrix:
    """Pose of a link in the root of a robot, shape (4, 4) [m].

    Args:
        urdf: The robot.
        link: Name of the link.
        positions: Of the joints on the way to it, by name [rad, m]; joints that follow others, and
            those that stand still, need none.
    """
    pose = np.eye(4)
    for joint in _chain(urdf, urdf.root, link):
        pose = pose @ joint.origin
        if joint.moves:
            leader, multiplier, offset = _leader(urdf, joint)
            if leader.name not in positions and not _is_fixed(leader):
                raise MechanismError(f"joint {leader.name}", "has no position")
            value = multiplier * positions.get(leader.name, leader.lower) + offset
            pose = pose @ _moved(joint, np.asarray(joint.axis, dtype=np.float64), value)
    return pose


def loops_from_urdf(urdf: Urdf, closures: list[Closure]) -> Mechanism:
    """The closed loops that a sidecar adds to a robot.

    A fixed closure joins both frames; a revolute or continuous one leaves the rotation about its
    axis (a new variable with the closure's name), a prismatic one the travel along it; a spherical
    one joins the origins.

    Args:
        urdf: The robot.
        closures: The closures of the sidecar.
    """
    border.instance("urdf", urdf, Urdf)
    if not isinstance(closures, (list, tuple)):
        raise MechanismError("closures", f"must be a list of Closure, got {shown(closures)}")
    if not closures:
        raise MechanismError("closures", "there are none; the mechanism would have no loop")
    if len(closures) > MAX_LOOPS:
        raise SizeError(f"closures: {len(closures)} is more than the limit of {MAX_LOOPS}")
    builder = _Builder(urdf)
    loops = []
    for closure in closures:
        border.instance("closures", closure, Closure)
        for link in (closure.link_a, closure.link_b):
            if link not in urdf.links:
                raise MechanismError(f"closures.{closure.name}", f"names the unknown link {link!r}")
        a, b = _chain(urdf, urdf.root, closure.link_a), _chain(urdf, urdf.root, closure.link_b)
        shared = 0
        while shared < min(len(a), len(b)) and a[shared].name == b[shared].name:
            shared += 1
        there = builder.forward(a[shared:])
        motion = _closure_motion(closure, builder)
        back = builder.backward(b[shared:])
        at_a = Constant(np.asarray(closure.origin_a, dtype=np.float64))
        from_b = Constant(inverse_transform(np.asarray(closure.origin_b, dtype=np.float64)))
        kind = "point" if closure.type in _POINTS else "pose"
        # A point is seen from frame b: the translation of from_b back there at_a is zero.
        factors = (
            [from_b, *back, *there, at_a]
            if kind == "point"
            else [*there, at_a, *motion, from_b, *back]
        )
        loops.append(Loop(tuple(factors), kind, closure.name))
    return Mechanism(urdf.name, tuple(builder.variables), tuple(loops))


def _closure_motion(closure: Closure, builder: _Builder) -> list[Constant | Motion]:
    if closure.type in ("fixed", *_POINTS):
        return []
    if closure.type in ("revolute", "continuous", "hinge"):
        index = builder.add(Variable(closure.name))
    elif closure.type == "prismatic":
        index = builder.add(Variable(closure.name, "translation", -10.0, 10.0))
    else:
        raise MechanismError(
            f"closures.{closure.name}.type",
            f"must be fixed, revolute, continuous, prismatic or spherical, got {closure.type!r}",
        )
    return _about(np.asarray(closure.axis, dtype=np.float64), index, 1)


def _chain(urdf: Urdf, base: str, tip: str) -> list[UrdfJoint]:
    with own_errors(MechanismError):
        return urdf.chain(base, tip)


def _about(axis: Matrix, index: int, sign: int) -> list[Constant | Motion]:
    """A motion about any axis: K Z K^-1, or directly about X, Y, Z where it is one of them."""
    axis = axis / np.linalg.norm(axis)
    for k in range(3):
        for direction in (1.0, -1.0):
            if np.abs(axis - direction * np.eye(3)[k]).max() < 1e-12:
                return [Motion(index, k, sign * int(direction))]
    K = np.eye(4)
    helper = np.eye(3)[int(np.argmin(np.abs(axis)))]
    x = np.cross(helper, axis)
    x /= np.linalg.norm(x)
    K[:3, 0], K[:3, 1], K[:3, 2] = x, np.cross(axis, x), axis
    return [Constant(K), Motion(index, 2, sign), Constant(inverse_transform(K))]


class _Builder:
    """Collects variables while chains are written as factors."""

    def __init__(self, urdf: Urdf) -> None:
        self.urdf = urdf
        self.variables: list[Variable] = []
        self.index: dict[str, int] = {}

    def add(self, variable: Variable) -> int:
        """Index of a variable, which is new unless its name is known."""
        if variable.name not in self.index:
            self.index[variable.name] = len(self.variables)
            self.variables.append(variable)
        return self.index[variable.name]

    def forward(self, joints: list[UrdfJoint]) -> list[Constant | Motion]:
        """Factors from the first parent to the last child."""
        factors: list[Constant | Motion] = []
        for joint in joints:
            factors.append(Constant(np.asarray(joint.origin, dtype=np.float64)))
            factors += self._motion(joint, 1)
        return factors

    def backward(self, joints: list[UrdfJoint]) -> list[Constant | Motion]:
        """Factors of the inverse."""
        factors: list[Constant | Motion] = []
        for joint in reversed(joints):
            factors += self._motion(joint, -1)
            factors.append(Constant(inverse_transform(np.asarray(joint.origin, dtype=np.float64))))
        return factors

    def _motion(self, joint: UrdfJoint, sign: int) -> list[Constant | Motion]:
        if not joint.moves:
            return []
        axis = np.asarray(joint.axis, dtype=np.float64)
        if joint.mimic is None:
            if _is_fixed(joint):
                return [Constant(_moved(joint, axis, sign * joint.lower))]
            return _about(axis, self.add(_variable(joint)), sign)
        return self._follow(joint, axis, sign)

    def _follow(self, joint: UrdfJoint, axis: Matrix, sign: int) -> list[Constant | Motion]:
        """A joint that follows another: whole multiples of its motion, and a constant."""
        where = f"joint {joint.name}"
        leader, multiplier, offset = _leader(self.urdf, joint)
        if _is_turn(leader) != _is_turn(joint):
            raise MechanismError(where, f"mimics {leader.name}, which is of another kind")
        if _is_fixed(leader):
            return [Constant(_moved(joint, axis, sign * (multiplier * leader.lower + offset)))]
        if not math.isfinite(multiplier):
            raise MechanismError(where, f"mimics {leader.name} with a multiplier that is too large")
        times = round(multiplier)
        if times == 0 or abs(times) > MAX_MULTIPLE or abs(multiplier - times) > 1e-12:
            raise MechanismError(
                where,
                f"mimics {leader.name} with the multiplier {multiplier:g}; supported are whole "
                f"numbers from -{MAX_MULTIPLE} to {MAX_MULTIPLE}, without 0",
            )
        variable = _variable(leader)
        own = _variable(joint)
        if not own.cyclic:  # the leader must keep the follower within its limits, too
            ends = sorted(((own.lower - offset) / times, (own.upper - offset) / times))
            known = self.variables[self.index[leader.name]] if leader.name in self.index else None
            variable = known or variable
            lower, upper = max(variable.lower, ends[0]), min(variable.upper, ends[1])
            if not lower < upper:
                raise MechanismError(where, f"cannot follow {leader.name} within its limits")
            variable = Variable(variable.name, variable.kind, lower, upper)
            index = self.add(variable)
            self.variables[index] = variable
        else:
            index = self.add(variable)
        step = 1 if times > 0 else -1
        motions = _about(axis, index, sign * step) * abs(times)
        return [*motions, Constant(_moved(joint, axis, sign * offset))]


def _is_turn(joint: UrdfJoint) -> bool:
    return joint.type in ("revolute", "continuous")


def _is_fixed(joint: UrdfJoint) -> bool:
    """Whether the limits leave nothing: such a joint stands still, as if it were fixed there."""
    lower, upper = joint.lower, joint.upper
    return math.isfinite(lower) and upper - lower < 1e-12 * (1.0 + abs(lower))


def _leader(urdf: Urdf, joint: UrdfJoint) -> tuple[UrdfJoint, float, float]:
    """The joint at the end of a chain of mimics, and q = multiplier * (its position) + offset."""
    multiplier, offset, seen = 1.0, 0.0, set()
    while joint.mimic is not None:
        if joint.name in seen:
            raise MechanismError(f"joint {joint.name}", "mimics itself")
        seen.add(joint.name)
        offset += multiplier * joint.mimic.offset
        multiplier *= joint.mimic.multiplier
        joint = urdf.joints[joint.mimic.joint]
    return joint, multiplier, offset


def _moved(joint: UrdfJoint, axis: Matrix, value: float) -> Matrix:
    """The motion of a joint by a constant."""
    axis = axis / np.linalg.norm(axis)
    return (
        transform(exp_so3(axis * value), np.zeros(3))
        if _is_turn(joint)
        else transform(np.eye(3), axis * value)
    )


def _variable(joint: UrdfJoint) -> Variable:
    """The unknown of a joint."""
    if _is_turn(joint):
        lower, upper = joint.lower, joint.upper
        if joint.type == "continuous" or not (math.isfinite(lower) and math.isfinite(upper)):
            lower, upper = -math.pi, math.pi
        return Variable(joint.name, "rotation", lower, upper)
    if joint.type == "prismatic":
        if not (math.isfinite(joint.lower) and math.isfinite(joint.upper)):
            raise MechanismError(f"joint {joint.name}", "is prismatic and has no limits")
        return Variable(joint.name, "translation", joint.lower, joint.upper)
    raise MechanismError(f"joint {joint.name}", f"has the unsupported type {joint.type!r}")
