"""Robot descriptions: the kinematic part of URDF, and loop closures beside it.

URDF describes trees. Loops come from a sidecar file (``loop_closures.yaml``):

    closures:
      - name: left_knee
        type: revolute            # fixed, revolute, prismatic, spherical, ...
        link_a: crank             # the two links that the closure joins
        origin_a: {xyz: [0, 0, 0.1], rpy: [0, 0, 0]}
        link_b: coupler
        origin_b: {xyz: [0.2, 0, 0], rpy: [0, 0, 0]}
        axis: [0, 0, 1]           # in the closure's frame, for types that have one

A closure says that the frame ``origin_a`` on link a and the frame ``origin_b`` on link b coincide,
but for the freedoms of its type.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError

import numpy as np
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring
from numpy.typing import NDArray

from kin_core import checks
from kin_core.errors import InvalidInput
from kin_core.rotations import rpy_to_matrix, transform
from kin_core.texts import read_bounded, shortened
from kin_core.yamls import load_yaml

__all__ = [
    "Closure",
    "Mimic",
    "Urdf",
    "UrdfJoint",
    "load_closures",
    "load_urdf",
    "read_numbers",
    "read_origin",
    "read_place",
]

Array = NDArray[np.float64]

#: Largest description that is read [bytes].
LIMIT_BYTES = 16 * 1024 * 1024
JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
_FREE = (-math.inf, math.inf)


@dataclass(frozen=True)
class Mimic:
    """A joint that follows another: q = multiplier * q_joint + offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class UrdfJoint:
    """One joint.

    Attributes:
        name: Unique name.
        type: One of ``JOINT_TYPES``.
        parent: Name of the parent link.
        child: Name of the child link.
        origin: Transform from the parent link to the joint frame, shape (4, 4) [m].
        axis: Unit axis in the joint frame, shape (3,).
        lower: Lower limit [rad or m]; minus infinity if there is none.
        upper: Upper limit [rad or m].
        velocity: Velocity limit [rad/s or m/s]; infinite if there is none.
        mimic: The joint that this one follows, if any.
    """

    name: str
    type: str
    parent: str
    child: str
    origin: Array
    axis: Array
    lower: float = -math.inf
    upper: float = math.inf
    velocity: float = math.inf
    mimic: Mimic | None = None

    @property
    def moves(self) -> bool:
        """Whether the joint has a freedom."""
        return self.type != "fixed"


@dataclass(frozen=True, eq=False)
class Closure:
    """A loop closure between two links; see the module's text.

    Attributes:
        name: Unique name.
        type: Kind of joint that closes the loop.
        link_a: First link.
        origin_a: Frame on the first link, shape (4, 4) [m].
        link_b: Second link.
        origin_b: Frame on the second link, shape (4, 4) [m].
        axis: Unit axis in the closure's frame, shape (3,).
        options: Every other key of the entry, as it was read.
    """

    name: str
    type: str
    link_a: str
    origin_a: Array
    link_b: str
    origin_b: Array
    axis: Array
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Urdf:
    """A tree of links and joints.

    Attributes:
        name: Name of the robot.
        root: The link that is no joint's child.
        links: The <link> elements by name, in the order of the file.
        joints: Joints by name, in the order of the file.
        element: The parsed XML, for elements that are not read here.
    """

    name: str
    root: str
    links: Mapping[str, Element]
    joints: Mapping[str, UrdfJoint]
    element: Element

    def chain(self, base: str, tip: str) -> list[UrdfJoint]:
        """Return the joints from ``base`` down to ``tip``, fixed ones included.

        Raises:
            InvalidInput: A link is unknown, or ``base`` is not above ``tip``.
        """
        checks.one_of("base", base, self.links)
        checks.one_of("tip", tip, self.links)
        parents = self._parents()
        found: list[UrdfJoint] = []
        link = tip
        while link != base:
            joint = parents.get(link)
            if joint is None:
                raise InvalidInput("base", f"the link {base!r} is not above the link {tip!r}")
            found.append(joint)
            link = joint.parent
        return found[::-1]

    def leaves(self) -> list[str]:
        """Return the links that have no child, in the order of the file."""
        parents = {joint.parent for joint in self.joints.values()}
        return [name for name in self.links if name not in parents]

    def _parents(self) -> dict[str, UrdfJoint]:
        return {joint.child: joint for joint in self.joints.values()}


def load_urdf(source: str | Path, *, name: str = "") -> Urdf:
    """Read a URDF.

    Args:
        source: The XML text, or a Path to a file.
        name: What to call the text in errors.

    Raises:
        InvalidInput: Not a URDF, or not a tree; the message names file, element and reason.
    """
    data, name = read_bounded(source, LIMIT_BYTES, name, "URDF")
    try:
        root = fromstring(data)
    except ParseError as error:
        raise InvalidInput(f"{name}, line {error.position[0]}", str(error)) from None
    except (DefusedXmlException, ValueError, LookupError) as error:
        raise InvalidInput(name, f"is refused ({error})") from None
    if root.tag != "robot":
        raise InvalidInput(name, f"the root element must be <robot>, got {checks.shown(root.tag)}")
    _refuse_long_names(root, name)
    links = _links(root, name)
    joints = _joints(root, name, links)
    title = checks.text(f"{name}: robot name", root.get("name", ""))
    return Urdf(title, _root_link(links, joints, name), links, joints, root)


def _refuse_long_names(root: Element, name: str) -> None:
    """Refuse names that no log line, message or screen could take."""
    for element in root.iter():
        for key in ("name", "link", "joint", "type"):
            length = len(element.get(key, ""))
            if length > checks.LONGEST_NAME:
                raise InvalidInput(
                    name,
                    f"<{shortened(str(element.tag), 40)}>: {key} has {length} characters; at most"
                    f" {checks.LONGEST_NAME} are taken",
                )


def load_closures(source: str | Path, *, name: str = "") -> list[Closure]:
    """Read a sidecar file of loop closures.

    Raises:
        InvalidInput: The message names the file and the field.
    """
    file = name or (str(source) if isinstance(source, Path) else "closures")
    content = load_yaml(source, name=file)
    entries = content.get("closures") if isinstance(content, dict) else content
    if not isinstance(entries, list):
        raise InvalidInput(file, "must hold a list 'closures'")
    found: list[Closure] = []
    names: set[str] = set()
    for i, entry in enumerate(entries):
        where = f"{file}: closures[{i}]"
        if not isinstance(entry, dict):
            raise InvalidInput(where, "must be a mapping")
        rest = {str(key): value for key, value in entry.items()}
        title = checks.title(f"{where}.name", rest.pop("name", f"closure_{i}"))
        if title in names:
            raise InvalidInput(where, f"the name {title!r} is used twice")
        names.add(title)
        closure = Closure(
            name=title,
            type=checks.title(f"{where}.type", _required(rest, "type", where)),
            link_a=checks.title(f"{where}.link_a", _required(rest, "link_a", where)),
            origin_a=read_origin(rest.pop("origin_a", None), f"{where}.origin_a"),
            link_b=checks.title(f"{where}.link_b", _required(rest, "link_b", where)),
            origin_b=read_origin(rest.pop("origin_b", None), f"{where}.origin_b"),
            axis=_unit(rest.pop("axis", (0.0, 0.0, 1.0)), f"{where}.axis"),
            options=rest,
        )
        found.append(closure)
    return found


def _required(entry: dict[str, Any], key: str, where: str) -> Any:
    if key not in entry:
        raise InvalidInput(where, f"lacks the key {key!r}")
    return entry.pop(key)


def read_origin(entry: Any, where: str) -> Array:
    """Return the transform that a mapping with ``xyz`` and ``rpy`` means, shape (4, 4) [m]."""
    if entry is None:
        return np.eye(4)
    if not isinstance(entry, dict):
        raise InvalidInput(where, "must be a mapping with xyz [m] and rpy [rad]")
    unknown = set(entry) - {"xyz", "rpy"}
    if unknown:
        raise InvalidInput(where, f"has the unknown key {sorted(map(str, unknown))[0]!r}")
    xyz = checks.shape(f"{where}.xyz", entry.get("xyz", (0.0, 0.0, 0.0)), (3,))
    rpy = checks.shape(f"{where}.rpy", entry.get("rpy", (0.0, 0.0, 0.0)), (3,))
    return transform(rpy_to_matrix(rpy[0], rpy[1], rpy[2]), xyz)


def _unit(values: Any, where: str) -> Array:
    axis = checks.shape(where, values, (3,))
    norm = float(np.linalg.norm(axis))
    if norm < 1e-12:
        raise InvalidInput(where, "must not be zero")
    # An axis that is a unit vector already keeps its bits.
    return axis if abs(norm - 1.0) < 1e-15 else axis / norm


def _links(root: Element, name: str) -> dict[str, Element]:
    links: dict[str, Element] = {}
    for element in root.findall("link"):
        title = element.get("name")
        if not title:
            raise InvalidInput(name, "a <link> has no name")
        checks.title(f"{name}: link name", title)
        if title in links:
            raise InvalidInput(name, f"the link name {title!r} is used twice")
        links[title] = element
    if not links:
        raise InvalidInput(name, "has no <link>")
    return links


def _joints(root: Element, name: str, links: Mapping[str, Element]) -> dict[str, UrdfJoint]:
    joints: dict[str, UrdfJoint] = {}
    children: dict[str, str] = {}
    for element in root.findall("joint"):
        title = element.get("name")
        if not title:
            raise InvalidInput(name, "a <joint> has no name")
        checks.title(f"{name}: joint name", title)
        where = f"{name}: joint {title!r}"
        if title in joints:
            raise InvalidInput(where, "the name is used twice")
        joint = _joint(element, title, where, links)
        if joint.child in children:
            raise InvalidInput(
                where,
                f"the link {joint.child!r} is already the child of {children[joint.child]!r};"
                " a loop goes into the closure sidecar",
            )
        children[joint.child] = title
        joints[title] = joint
    for joint in joints.values():
        if joint.mimic is not None and joint.mimic.joint not in joints:
            raise InvalidInput(
                f"{name}: joint {joint.name!r}",
                f"mimics the unknown joint {checks.shown(joint.mimic.joint)}",
            )
    return joints


def _joint(element: Element, title: str, where: str, links: Mapping[str, Element]) -> UrdfJoint:
    kind = checks.one_of(f"{where}: type", element.get("type", ""), JOINT_TYPES)
    ends = {}
    for end in ("parent", "child"):
        found = element.find(end)
        link = found.get("link", "") if found is not None else ""
        if link not in links:
            raise InvalidInput(where, f"the {end} link {checks.shown(link)} does not exist")
        ends[end] = link
    if ends["parent"] == ends["child"]:
        raise InvalidInput(where, f"joins the link {ends['parent']!r} to itself")
    axis = np.array([1.0, 0.0, 0.0])
    found = element.find("axis")
    if found is not None and kind not in ("fixed", "floating"):
        axis = _unit(read_numbers(found.get("xyz", "1 0 0"), 3, f"{where}: axis"), f"{where}: axis")
    lower, upper, velocity = _limits(element, kind, where)
    mimic = None
    found = element.find("mimic")
    if found is not None:
        multiplier = _number(found, "multiplier", "1", where)
        mimic = Mimic(found.get("joint", ""), multiplier, _number(found, "offset", "0", where))
    place = read_place(element, where)
    return UrdfJoint(
        title, kind, ends["parent"], ends["child"], place, axis, lower, upper, velocity, mimic
    )


def _limits(element: Element, kind: str, where: str) -> tuple[float, float, float]:
    found = element.find("limit")
    if kind not in ("revolute", "prismatic"):
        velocity = math.inf
        if found is not None and found.get("velocity"):
            velocity = _number(found, "velocity", "0", where)
        return *_FREE, velocity or math.inf
    if found is None:
        raise InvalidInput(where, f"a {kind} joint needs a <limit>")
    lower, upper = _number(found, "lower", "0", where), _number(found, "upper", "0", where)
    if lower > upper:
        raise InvalidInput(where, f"the lower limit {lower:g} is above the upper limit {upper:g}")
    velocity = _number(found, "velocity", "0", where)
    if velocity < 0.0:
        raise InvalidInput(where, f"the velocity limit must not be negative, got {velocity:g}")
    # Zero stands in many files where nobody knew the limit.
    return lower, upper, velocity or math.inf


def _number(element: Element, key: str, default: str, where: str) -> float:
    return float(read_numbers(element.get(key, default), 1, f"{where}: {key}")[0])


def read_place(element: Element, where: str) -> Array:
    """Return the transform that the <origin> of an element means, shape (4, 4) [m].

    Args:
        element: Has an <origin>, or not: then it is in place.
        where: What to call the element in errors.
    """
    origin = element.find("origin")
    if origin is None:
        return np.eye(4)
    xyz = read_numbers(origin.get("xyz", "0 0 0"), 3, f"{where}: origin xyz")
    rpy = read_numbers(origin.get("rpy", "0 0 0"), 3, f"{where}: origin rpy")
    return transform(rpy_to_matrix(rpy[0], rpy[1], rpy[2]), xyz)


def read_numbers(text: str, size: int, where: str) -> Array:
    """Return the finite numbers of an attribute, shape (size,)."""
    try:
        values = np.array([float(word) for word in text.split()])
    except ValueError:
        values = np.empty(0)
    if len(values) != size:
        raise InvalidInput(where, f"must be {size} numbers, got {checks.shown(text)}")
    return checks.finite(where, values)


def _root_link(links: Mapping[str, Element], joints: Mapping[str, UrdfJoint], name: str) -> str:
    parents = {joint.child: joint.parent for joint in joints.values()}
    roots = [link for link in links if link not in parents]
    if not roots:
        raise InvalidInput(name, "has no root link: the joints form a cycle")
    if len(roots) > 1:
        raise InvalidInput(name, f"has several root links: {', '.join(sorted(roots)[:5])}")
    # With one root and one parent each, a link that does not lead to the root is on a cycle.
    good = {roots[0]}
    for link in links:
        path = set()
        while link not in good:
            path.add(link)
            link = parents[link]
            if link in path:
                raise InvalidInput(name, f"the joints form a cycle through {link!r}")
        good.update(path)
    return roots[0]
