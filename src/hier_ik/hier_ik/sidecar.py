"""What stands beside a URDF: loops, and what a URDF cannot say of its joints.

    closures: [...]                        # see kin_core.urdf
    actuated: [hip, knee_motor]            # joints with a motor
    joints:
      rod: {type: universal, axis2: [0, 1, 0]}   # another type than in the URDF, such as spherical
      knee: {limits: none}                 # or lower, upper, velocity
      hip: {value: 0.3}                    # where the loops are to be closed; or rest, locked
    empty_limits: free                     # limits of 0 to 0, as CAD exports leave them
    goals: [...]                           # as in a linkage of YAML

Without ``actuated`` the joints with a command interface (ros2_control) or a transmission count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from hier_ik.elements import open_limits
from hier_ik.joints import JOINT_TYPES
from kin_core import checks
from kin_core.errors import InvalidInput
from kin_core.urdf import Closure, UrdfJoint, load_closures
from kin_core.yamls import load_yaml

__all__ = ["TYPES", "WITHOUT_AXIS", "Sidecar", "driven_joints", "load_sidecar"]

_KEYS = ("closures", "actuated", "joints", "empty_limits", "goals")
_OPTIONS = (
    "type", "axis", "axis2", "limits", "lower", "upper", "velocity", "value", "rest", "locked",
    "virtual",
)  # fmt: skip
#: Joint types as URDF names them, and those that have no axis.
TYPES = {"continuous": "revolute", "floating": "general"}
WITHOUT_AXIS = ("fixed", "spherical", "general", "cartesian3")


@dataclass(frozen=True)
class Sidecar:
    """The content of a sidecar file.

    Attributes:
        closures: The loops.
        joints: Per joint what is other than in the URDF.
        actuated: Joints with a motor; None: as the URDF says.
        empty_limits: "free" or "rigid": what limits of 0 to 0 mean.
        content: All of it, for goals.
    """

    closures: tuple[Closure, ...] = ()
    joints: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    actuated: tuple[str, ...] | None = None
    empty_limits: str = "rigid"
    content: Mapping[str, Any] = field(default_factory=dict)

    def options(self, j: UrdfJoint) -> tuple[str, dict[str, Any]]:
        """Type of a joint, and what Linkage.add_joint() is to know of it."""
        own = dict(self.joints.get(j.name, {}))
        kind = own.pop("type", TYPES.get(j.type, j.type))
        out: dict[str, Any] = {}
        if j.type in ("revolute", "prismatic") and kind == j.type and not self._opened(j):
            out.update(lower=j.lower, upper=j.upper)
            out["value"] = float(np.clip(0.0, j.lower, j.upper)) or None
        if math.isfinite(j.velocity):
            out["velocity"] = j.velocity
        if kind not in WITHOUT_AXIS:
            out["axis"] = j.axis
        own.pop("limits", None)
        for key, missing in (("lower", -math.inf), ("upper", math.inf)):
            if key in own:
                own[key] = open_limits(own[key], missing)
        out.update(own)
        return kind, out

    def empty(self, j: UrdfJoint) -> bool:
        """Whether limits of 0 to 0 make a joint rigid, and nobody has said that they should."""
        return self._zero(j) and not self._opened(j) and "upper" not in self.joints.get(j.name, {})

    def _opened(self, j: UrdfJoint) -> bool:
        given = self.joints.get(j.name, {}).get("limits")
        return given == "none" or (self._zero(j) and self.empty_limits == "free")

    @staticmethod
    def _zero(j: UrdfJoint) -> bool:
        return j.type in ("revolute", "prismatic") and j.lower == 0.0 == j.upper


def load_sidecar(source: str | Path | None) -> Sidecar:
    """Read a sidecar file; None is an empty one.

    Args:
        source: Text, or a Path to a file; a list alone is that of the closures.

    Raises:
        InvalidInput: The message names the file and the field.
    """
    if source is None:
        return Sidecar()
    file = str(source) if isinstance(source, Path) else "closures"
    content = load_yaml(source, name=file)
    if not isinstance(content, dict):
        return Sidecar(tuple(load_closures(source)))
    for key in content:
        checks.one_of(f"{file}: key", str(key), _KEYS)
    joints = content.get("joints") or {}
    if not isinstance(joints, dict):
        raise InvalidInput(f"{file}: joints", "must be a mapping of joints to what they are")
    for name, own in joints.items():
        _check_joint(f"{file}: joint {name!r}", own)
    actuated = content.get("actuated")
    if actuated is not None and not isinstance(actuated, list):
        raise InvalidInput(f"{file}: actuated", "must be a list of joints")
    return Sidecar(
        tuple(load_closures(source)) if content.get("closures") else (),
        joints,
        None if actuated is None else tuple(actuated),
        checks.one_of(
            f"{file}: empty_limits", content.get("empty_limits", "rigid"), ("free", "rigid")
        ),
        content,
    )


def _check_joint(where: str, own: Any) -> None:
    if not isinstance(own, dict):
        raise InvalidInput(where, "must be a mapping, such as {type: spherical}")
    for key in own:
        checks.one_of(f"{where}, key", str(key), _OPTIONS)
    if "type" in own:
        checks.one_of(f"{where}, type", own["type"], JOINT_TYPES)
    if own.get("limits", "none") != "none":
        raise InvalidInput(f"{where}, limits", "may be none; other limits are lower and upper")
    for key in ("locked", "virtual"):
        if not isinstance(own.get(key, False), bool):
            raise InvalidInput(f"{where}, {key}", f"must be true or false, got {own[key]!r:.80}")


def driven_joints(robot: Element) -> Iterator[str]:
    """Joints of a URDF with a command interface (ros2_control) or a transmission, each once."""
    found: dict[str, None] = {}
    for system in robot.findall("ros2_control"):
        for joint in system.findall("joint"):
            if joint.find("command_interface") is not None:
                found[joint.get("name") or ""] = None
    for joint in robot.findall("transmission/joint"):
        found[joint.get("name") or ""] = None
    yield from found
