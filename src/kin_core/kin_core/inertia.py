"""Masses, inertias, friction and effort limits of a URDF, and its moving bodies from base to tip.

The elements <inertial>, <dynamics> and <limit effort> are read and checked here; the tree itself is
read by :mod:`~kin_core.urdf`. A body is all that moves with one joint: its link, and the links that
are fixed to it, as one inertia.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from kin_core import checks
from kin_core.errors import InvalidInput
from kin_core.urdf import Urdf, UrdfJoint, read_numbers, read_place

__all__ = ["Body", "Inertia", "Wear", "joint_wear", "link_inertia", "moving_bodies"]

Array = NDArray[np.float64]

#: Relative slack of the triangle inequality: files give four digits or so of each moment.
_ROUNDED = 1e-3


@dataclass(frozen=True, eq=False)
class Inertia:
    """A rigid body.

    Attributes:
        mass: Mass [kg].
        com: Centre of mass in the body's frame, shape (3,) [m].
        tensor: Inertia about the centre of mass, axes of the body's frame, shape (3, 3) [kg m^2].
    """

    mass: float
    com: Array
    tensor: Array

    @classmethod
    def none(cls) -> Inertia:
        """A frame without mass."""
        return cls(0.0, np.zeros(3), np.zeros((3, 3)))

    def placed(self, pose: Array) -> Inertia:
        """The same body in another frame.

        Args:
            pose: Transform from the body's frame to the other one, shape (4, 4).
        """
        turn = pose[:3, :3]
        return Inertia(self.mass, turn @ self.com + pose[:3, 3], turn @ self.tensor @ turn.T)

    def __add__(self, other: Inertia) -> Inertia:
        """Both bodies as one; they have the same frame."""
        if self.mass == 0.0 or other.mass == 0.0:  # a frame adds nothing, no rounding error either
            return self if other.mass == 0.0 else other
        mass = self.mass + other.mass
        com = (self.mass * self.com + other.mass * other.com) / mass
        tensor = np.zeros((3, 3))
        for part in (self, other):
            d = part.com - com
            tensor += part.tensor + part.mass * (d @ d * np.eye(3) - np.outer(d, d))
        return Inertia(mass, com, tensor)


@dataclass(frozen=True)
class Wear:
    """What a joint's <dynamics> and <limit> say of its drive.

    Attributes:
        damping: Viscous friction [N m s/rad or N s/m].
        friction: Coulomb friction [N m or N].
        effort: Largest torque or force; infinite if the file does not say [N m or N].
    """

    damping: float = 0.0
    friction: float = 0.0
    effort: float = math.inf


@dataclass(frozen=True, eq=False)
class Body:
    """All that moves with one joint.

    Attributes:
        joint: The joint.
        placement: Transform from the frame of the body before it to the joint's, shape (4, 4).
        inertia: Mass and inertia in the frame of the joint's child link.
        wear: Friction and effort limit of the joint.
    """

    joint: UrdfJoint
    placement: Array
    inertia: Inertia
    wear: Wear


def link_inertia(link: Element) -> Inertia:
    """The <inertial> of one <link>; without one, nothing.

    Raises:
        InvalidInput: It is no inertia of a body; names the link.
    """
    where = f"link {link.get('name')!r}"
    element = link.find("inertial")
    if element is None:
        return Inertia.none()
    mass = _number(element.find("mass"), "value", where, "mass")
    if mass < 0.0:
        raise InvalidInput(where, f"has a negative mass, {mass:g} kg")
    moments = [_number(element.find("inertia"), key, where, "inertia") for key in _MOMENTS]
    xx, xy, xz, yy, yz, zz = moments
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if mass == 0.0:
        if tensor.any():
            raise InvalidInput(where, "has an inertia but no mass")
        return Inertia.none()
    _refuse_no_inertia(tensor, where)
    return Inertia(mass, np.zeros(3), tensor).placed(read_place(element, where))


_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def _refuse_no_inertia(tensor: Array, where: str) -> None:
    """Refuse a tensor that no distribution of mass has."""
    a, b, c = np.linalg.eigvalsh(tensor)  # rising
    if not a > 0.0:
        raise InvalidInput(
            where, f"has an inertia that is not positive definite: a principal moment of {a:.3g}"
        )
    if c > (1.0 + _ROUNDED) * (a + b):
        raise InvalidInput(
            where,
            f"has an inertia that no body can have: the principal moment {c:.3g} is larger than"
            f" the sum of the others, {a:.3g} + {b:.3g}",
        )


def joint_wear(joint: Element) -> Wear:
    """Friction and effort limit of one <joint>.

    Raises:
        InvalidInput: A value is no number, or negative; names the joint.
    """
    where = f"joint {joint.get('name')!r}"
    dynamics, limit = joint.find("dynamics"), joint.find("limit")
    damping, friction, effort = (
        0.0 if source is None or source.get(key) is None else _number(source, key, where, key)
        for source, key in ((dynamics, "damping"), (dynamics, "friction"), (limit, "effort"))
    )
    for name, value in (("damping", damping), ("friction", friction), ("effort", effort)):
        if value < 0.0:
            raise InvalidInput(where, f"{name} must not be negative, got {value:g}")
    # Zero stands in many files where nobody knew the limit.
    return Wear(damping, friction, effort or math.inf)


def moving_bodies(
    urdf: Urdf, base: str = "", tip: str = "", held: Collection[str] = ()
) -> tuple[list[Body], Array]:
    """The bodies of a serial arm from its base to its tip.

    Args:
        urdf: The robot.
        base: First link; empty: the root.
        tip: Last link; empty: the one end that there is.
        held: Joints that count as fixed at zero, such as those of a gripper.

    Returns:
        The bodies in their order, and the transform from the last one's frame to the tip's,
        shape (4, 4).

    Raises:
        InvalidInput: It is no serial arm, or a body has no mass; names link or joint.
    """
    for name in held:
        checks.one_of("held", name, urdf.joints.keys())
    base = base or urdf.root
    if not tip:
        ends = urdf.leaves()
        if len(ends) > 1:
            raise InvalidInput("tip", f"must be named, there are several: {', '.join(ends[:5])}")
        tip = ends[0]
    chain = urdf.chain(base, tip)
    moving = [joint for joint in chain if joint.moves and joint.name not in held]
    joints = {element.get("name", ""): element for element in urdf.element.findall("joint")}
    below: dict[str, list[UrdfJoint]] = {}
    for joint in urdf.joints.values():
        below.setdefault(joint.parent, []).append(joint)
    bodies: list[Body] = []
    pose = np.eye(4)
    for joint in chain:
        pose = pose @ joint.origin
        if joint not in moving:
            continue
        _refuse_joint(joint)
        inertia = Inertia.none()
        ahead = [(joint.child, np.eye(4))]
        while ahead:  # all that is fixed to the link
            link, place = ahead.pop()
            inertia = inertia + link_inertia(urdf.links[link]).placed(place)
            for other in below.get(link, ()):
                if not other.moves or other.name in held:
                    ahead.append((other.child, place @ other.origin))
                elif other not in moving:
                    raise InvalidInput(
                        f"joint {other.name!r}",
                        f"moves beside the arm, at {link!r}: hold it, or name another tip",
                    )
        if inertia.mass == 0.0:
            raise InvalidInput(
                f"link {joint.child!r}", f"has no mass, but the joint {joint.name!r} moves it"
            )
        bodies.append(Body(joint, pose, inertia, joint_wear(joints[joint.name])))
        pose = np.eye(4)
    if not bodies:
        raise InvalidInput("tip", f"no joint moves between {base!r} and {tip!r}")
    return bodies, pose


def _refuse_joint(joint: UrdfJoint) -> None:
    where = f"joint {joint.name!r}"
    if joint.mimic is not None:
        raise InvalidInput(
            where, f"mimics {joint.mimic.joint!r}: an arm's joints move by themselves"
        )
    if joint.type not in ("revolute", "continuous", "prismatic"):
        raise InvalidInput(where, f"a {joint.type} joint is no joint of a serial arm")


def _number(element: Element | None, key: str, where: str, what: str) -> float:
    text = None if element is None else element.get(key)
    if text is None:
        raise InvalidInput(where, f"<{what}> or its {key} is missing")
    return float(read_numbers(text, 1, f"{where}: {what} {key}")[0])
