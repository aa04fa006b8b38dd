"""URDF in and out: the tree, closures from a sidecar file or from <constraint> elements.

The <constraint> element is that proposed upstream (ros/urdfdom pull request 264):

    <constraint name="knee" type="revolute">
      <parent link="a"/> <parent_origin xyz="..." rpy="..."/> <parent_axis xyz="..."/>
      <child link="b"/>  <child_origin xyz="..." rpy="..."/>  <child_axis xyz="..."/>
    </constraint>
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np

from hier_ik.elements import frame
from hier_ik.files import add_goals
from hier_ik.joints import JOINT_TYPES, axis_frame
from hier_ik.linkage import Linkage
from hier_ik.sidecar import TYPES, WITHOUT_AXIS, driven_joints, load_sidecar
from hier_ik.tables import Array
from hier_ik.validation import validate
from kin_core import checks
from kin_core.errors import InvalidInput
from kin_core.rotations import inverse_transform
from kin_core.urdf import load_urdf

__all__ = ["dump_urdf", "load_urdf_linkage"]


_CONSTRAINT_TYPES = {**TYPES, "ball": "spherical", "weld": "fixed", "cardan": "universal"}

_AXES = {"x": "1 0 0", "y": "0 1 0", "z": "0 0 1"}


def load_urdf_linkage(urdf: str | Path, closures: str | Path | None = None) -> Linkage:
    """Read a URDF, its <constraint> elements, and a closure sidecar.

    Args:
        urdf: Text, or a Path to a file.
        closures: Sidecar (YAML) as text or Path; see hier_ik.sidecar.

    Raises:
        InvalidInput: Not readable, or it breaks a rule; the message says where.
    """
    robot, beside = load_urdf(urdf), load_sidecar(closures)
    for name in beside.joints:
        checks.one_of("joints of the sidecar", name, robot.joints)
    linkage = Linkage(robot.name or "robot")
    linkage.add_link(robot.root)
    for name in robot.links:
        if name != robot.root:
            linkage.add_link(name)
    rigid = []
    for j in robot.joints.values():
        if j.mimic is not None:
            raise InvalidInput(
                f"joint {j.name!r}", "mimic joints are not supported; use a closure instead"
            )
        if beside.empty(j):
            rigid.append(j.name)
        kind, options = beside.options(j)
        linkage.add_joint(
            j.name, kind, j.parent, j.child, origin=j.origin, closure=False, **options
        )  # fmt: skip
    if rigid:
        linkage.notes = (
            f"the limits of {len(rigid)} joints, first {rigid[0]!r}, are 0 to 0: they cannot move;"
            " empty_limits: free in the sidecar opens such limits",
        )
    for element in robot.element.findall("constraint"):
        _add_constraint(linkage, element)
    for c in beside.closures:
        kind = _CONSTRAINT_TYPES.get(c.type, c.type)
        options = dict(c.options)
        for key in options:
            checks.one_of(
                f"closure {c.name!r}, key", key,
                ("axis2", "virtual", "lower", "upper", "velocity", "priority", "weight"),
            )  # fmt: skip
        linkage.add_joint(
            c.name, kind, c.link_a, c.link_b, origin=c.origin_a, child_origin=c.origin_b,
            axis=None if kind in WITHOUT_AXIS else c.axis, closure=True, **options,
        )  # fmt: skip
    validate(linkage)
    add_goals(linkage, beside.content)
    actuated = beside.actuated
    if actuated is None:
        actuated = tuple(n for n in driven_joints(robot.element) if n in linkage.joints)
    linkage.set_actuated(actuated)
    return linkage


def _add_constraint(linkage: Linkage, element: Element) -> None:
    name = element.get("name") or ""
    label = f"constraint {name!r}"
    kind = element.get("type") or ""
    kind = _CONSTRAINT_TYPES.get(kind, kind)
    checks.one_of(f"{label}, type", kind, JOINT_TYPES)
    links, origins, axes = [], [], []
    for end in ("parent", "child"):
        found = element.find(end)
        links.append("" if found is None else found.get("link") or "")
        checks.one_of(f"{label}, {end} link", links[-1], linkage.links)
        place = element.find(f"{end}_origin")
        numbers = [
            _numbers(label, "0 0 0" if place is None else place.get(k) or "0 0 0")
            for k in ("xyz", "rpy")
        ]
        origins.append(frame(*numbers))
        axis = element.find(f"{end}_axis")
        axes.append(None if axis is None else _numbers(label, axis.get("xyz") or ""))
    options: dict[str, Any] = {}
    limit = element.find("limit")
    if limit is not None:
        for key in ("lower", "upper", "velocity"):
            if limit.get(key):
                options[key] = _numbers(label, limit.get(key) or "", 1)[0]
    for given in axes:
        if given is not None and np.linalg.norm(given) < 1e-9:
            raise InvalidInput(label, "an axis must not be zero")
    if kind == "universal":
        # The parent's axis is the first of the cross, the child's the second: each side is turned
        # so that its own axis is where the catalogue has it.
        x = np.array([1.0, 0, 0]) if axes[0] is None else axes[0]
        y = np.array([0, 1.0, 0]) if axes[1] is None else axes[1]
        # Columns (first, second, cross) -> the given axis as y.
        turn = np.array([[0.0, 1, 0], [-1, 0, 0], [0, 0, 1]])
        origins[0] = origins[0] @ frame(rotation=axis_frame(kind, x))
        origins[1] = origins[1] @ frame(rotation=axis_frame(kind, y) @ turn)
    else:
        for side in (0, 1):
            given = axes[side] if axes[side] is not None else axes[1 - side]
            if given is not None:
                origins[side] = origins[side] @ frame(rotation=axis_frame(kind, given))
    linkage.add_joint(
        name, kind, links[0], links[1], origin=origins[0], child_origin=origins[1], closure=True,
        **options,
    )  # fmt: skip


def _numbers(label: str, text: str, size: int = 3) -> Array:
    try:
        values = [float(w) for w in text.split()]
    except ValueError:
        raise InvalidInput(label, f"expected numbers, got {text!r}") from None
    return checks.shape(label, values, (size,))


def dump_urdf(linkage: Linkage, *, constraints: bool = True) -> str:
    """Write the spanning tree as URDF, at the linkage's zero values.

    Joints with several freedoms become chains of one-freedom joints through massless links (a ball
    as three turns about z, y and x); closures become <constraint> elements.

    Args:
        linkage: Valid, roles assigned.
        constraints: Whether to write the closures.
    """
    robot = Element("robot", name=linkage.name)
    links = [linkage.root]
    # URDF has its joint frame in the child: each link's own frame is the last joint's.
    offset: dict[str, Array] = {linkage.root: np.eye(4)}
    joints: list[Element] = []
    for j in linkage.tree_order():
        steps: list[tuple[str, str]] = []
        for f in j.kind.freedoms:
            steps += [("r", "z"), ("r", "y"), ("r", "x")] if f == "s" else [(f[0], f[1])]
        place = offset[j.parent] @ j.origin
        at = j.parent
        for i, (kind, axis) in enumerate(steps):
            last = i == len(steps) - 1
            child = j.child if last else f"{j.name}__{i + 1}"
            title = j.name if len(steps) == 1 else f"{j.name}__{i + 1}"
            e = Element("joint", name=title, type="continuous" if kind == "r" else "prismatic")
            ball = "s" in j.kind.freedoms and i >= len(steps) - 3
            if not ball and (np.isfinite(j.lower[i]) or np.isfinite(j.upper[i]) or kind == "t"):
                e.set("type", "revolute" if kind == "r" else "prismatic")
                SubElement(
                    e, "limit", lower=repr(float(max(j.lower[i], -1e6))),
                    upper=repr(float(min(j.upper[i], 1e6))), effort="0",
                    velocity=repr(float(j.velocity[i])) if np.isfinite(j.velocity[i]) else "0",
                )  # fmt: skip
            _write_joint(e, at, child, place)
            SubElement(e, "axis", xyz=_AXES[axis])
            joints.append(e)
            links.append(child)
            at, place = child, np.eye(4)
        if not steps:
            e = Element("joint", name=j.name, type="fixed")
            _write_joint(e, at, j.child, place @ inverse_transform(j.child_origin))
            joints.append(e)
            links.append(j.child)
            offset[j.child] = np.eye(4)
        else:
            offset[j.child] = inverse_transform(j.child_origin)
    for name in links:
        SubElement(robot, "link", name=name)
    robot.extend(joints)
    for c in linkage.closure_joints() if constraints else []:
        e = SubElement(robot, "constraint", name=c.name, type=c.type)
        axes = "xy" if c.type == "universal" else "zz"
        for end, link, T, axis in (
            ("parent", c.parent, c.origin, axes[0]), ("child", c.child, c.child_origin, axes[1]),
        ):  # fmt: skip
            SubElement(e, end, link=link)
            _write_origin(SubElement(e, f"{end}_origin"), offset[link] @ T)
            SubElement(e, f"{end}_axis", xyz=_AXES[axis])
    indent(robot)
    return tostring(robot, encoding="unicode")


def _write_joint(e: Element, parent: str, child: str, T: Array) -> None:
    SubElement(e, "parent", link=parent)
    SubElement(e, "child", link=child)
    _write_origin(SubElement(e, "origin"), T)


def _write_origin(e: Element, T: Array) -> None:
    R = T[:3, :3]
    pitch = math.atan2(-R[2, 0], math.hypot(R[0, 0], R[1, 0]))
    if math.hypot(R[0, 0], R[1, 0]) > 1e-9:
        roll, yaw = math.atan2(R[2, 1], R[2, 2]), math.atan2(R[1, 0], R[0, 0])
    else:  # only the sum or difference of roll and yaw counts
        roll, yaw = math.atan2(-R[1, 2], R[1, 1]), 0.0
    e.set("xyz", " ".join(repr(float(x)) for x in T[:3, 3]))
    e.set("rpy", " ".join(repr(float(x)) for x in (roll, pitch, yaw)))
