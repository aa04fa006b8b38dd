"""MJCF in: bodies, joints, and connect and weld equalities as closures; needs mujoco."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from hier_ik.elements import frame
from hier_ik.linkage import Linkage
from hier_ik.validation import validate
from kin_core.errors import InvalidInput, KinError
from kin_core.rotations import quaternion_to_matrix

__all__ = ["load_mjcf_linkage"]

LIMIT_BYTES = 16 * 1024 * 1024


def load_mjcf_linkage(source: str | Path) -> Linkage:
    """Read a MuJoCo model (XML text without includes, or a Path).

    Raises:
        KinError: mujoco is not installed.
        InvalidInput: The model cannot be read, or holds what has no counterpart here.
    """
    try:
        import mujoco
    except ImportError:
        raise KinError("reading MJCF needs the package mujoco, which is not installed") from None
    text = source.read_text(encoding="utf-8") if isinstance(source, Path) else source
    if len(text) > LIMIT_BYTES:
        raise InvalidInput("MJCF", f"is larger than {LIMIT_BYTES} bytes")
    if "<include" in text or "file=" in text:
        raise InvalidInput("MJCF", "includes and asset files are not read")
    try:
        model = mujoco.MjModel.from_xml_string(text)
    except ValueError as error:
        raise InvalidInput("MJCF", str(error)) from None
    return _convert(mujoco, model)


def _convert(mujoco: Any, model: Any) -> Linkage:
    linkage = Linkage("mjcf")
    names = []
    for b in range(model.nbody):
        name = model.body(b).name or f"body{b}"
        names.append(name)
        linkage.add_link(name)
    kinds = mujoco.mjtJoint
    for b in range(1, model.nbody):
        at = frame(model.body_pos[b], rotation=quaternion_to_matrix(_xyzw(model.body_quat[b])))
        parent = names[model.body_parentid[b]]
        first, count = int(model.body_jntadr[b]), int(model.body_jntnum[b])
        if count == 0:
            linkage.add_joint(f"{names[b]}_fixed", "fixed", parent, names[b], origin=at,
                              closure=False)  # fmt: skip
        for i in range(count):
            j = first + i
            child = names[b] if i == count - 1 else f"{names[b]}__{i + 1}"
            if child != names[b]:
                linkage.add_link(child, virtual=True)
            kind = model.jnt_type[j]
            options: dict[str, Any] = {}
            anchor = frame(model.jnt_pos[j])
            if kind == kinds.mjJNT_HINGE or kind == kinds.mjJNT_SLIDE:
                options["axis"] = np.array(model.jnt_axis[j])
                if model.jnt_limited[j]:
                    options["lower"], options["upper"] = map(float, model.jnt_range[j])
            elif kind == kinds.mjJNT_BALL and model.jnt_limited[j]:
                # The cone of MuJoCo is not a box: the largest box inside it is kept.
                most = float(model.jnt_range[j][1]) / math.sqrt(3.0)
                options["lower"], options["upper"] = -most, most
            kind_name = {
                kinds.mjJNT_HINGE: "revolute", kinds.mjJNT_SLIDE: "prismatic",
                kinds.mjJNT_BALL: "spherical", kinds.mjJNT_FREE: "general",
            }[kinds(kind)]  # fmt: skip
            linkage.add_joint(
                model.joint(j).name or f"joint{j}", kind_name, parent, child,
                origin=(at if i == 0 else np.eye(4)) @ anchor, child_origin=anchor, closure=False,
                **options,
            )  # fmt: skip
            parent = child
    _equalities(mujoco, model, linkage, names)
    validate(linkage)
    return linkage


def _equalities(mujoco: Any, model: Any, linkage: Linkage, names: list[str]) -> None:
    for e in range(model.neq):
        label = model.equality(e).name or f"equality{e}"
        kind, data = model.eq_type[e], model.eq_data[e]
        if model.eq_objtype[e] != mujoco.mjtObj.mjOBJ_BODY:
            raise InvalidInput(f"equality {label!r}", "only equalities of bodies are read")
        a, b = names[model.eq_obj1id[e]], names[model.eq_obj2id[e]]
        if kind == mujoco.mjtEq.mjEQ_CONNECT:
            linkage.add_joint(
                label, "spherical", a, b, xyz=data[:3], child_origin=np.array(data[3:6]),
                closure=True,
            )  # fmt: skip
        elif kind == mujoco.mjtEq.mjEQ_WELD:
            pose = frame(data[3:6], rotation=quaternion_to_matrix(_xyzw(data[6:10])))
            # anchor is given in the second body, the relative pose is that of 2 in 1
            linkage.add_joint(label, "fixed", a, b, origin=pose, closure=True)
        else:
            raise InvalidInput(f"equality {label!r}", "only connect and weld are read")


def _xyzw(q: Any) -> Any:
    return np.array([q[1], q[2], q[3], q[0]], dtype=np.float64)
