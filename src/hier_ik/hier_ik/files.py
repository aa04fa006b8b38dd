"""Linkages as YAML text, and edits in the same words."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from hier_ik.errors import LinkageError
from hier_ik.linkage import Goal, Joint, Linkage, frame
from hier_ik.spanning import assign_roles
from hier_ik.validation import validate
from kin_core import checks
from kin_core.errors import InvalidInput
from kin_core.rotations import matrix_to_quaternion, quaternion_to_matrix
from kin_core.yamls import load_yaml

__all__ = ["apply_edits", "dump_linkage", "load_linkage"]

Array = NDArray[np.float64]

_ROLES = {"tree": False, "closure": True, "auto": None}
_JOINT_KEYS = (
    "axis", "axis2", "child_axis", "virtual", "lower", "upper", "velocity", "value", "rest",
    "locked", "priority", "weight",
)  # fmt: skip


def load_linkage(source: str | Path) -> Linkage:
    """Read a linkage from YAML, find roles that are not marked, and validate it.

    Args:
        source: Text, or a Path to a file.

    Raises:
        InvalidInput: Not readable, or it breaks a rule; the message says where.
    """
    data = load_yaml(source)
    if not isinstance(data, dict):
        raise InvalidInput("linkage", "must be a mapping with links and joints")
    _only("linkage", data, ("name", "root", "sublinkages", "links", "joints", "goals"))
    linkage = Linkage(_text("name", data.get("name", "linkage")))
    # The top level may be declared to give it another name; parents may stand after children.
    entries = [_mapping("sublinkages", e) for e in _list("sublinkages", data)]
    tops = [e for e in entries if e.get("parent") is None and "disposition" not in e]
    if tops:
        name = _text("sublinkage, name", tops[0].get("name"))
        top = linkage.sublinkages.pop(linkage.top)
        linkage.sublinkages[name] = type(top)(name, None, "simultaneous")
        entries = [e for e in entries if e is not tops[0]]
    _add_sublinkages(linkage, entries)
    for entry in _list("links", data):
        e = {"name": entry} if isinstance(entry, str) else _mapping("links", entry)
        _only(f"link {e.get('name')!r}", e, ("name", "sublinkage", "virtual"))
        linkage.add_link(
            _text("link, name", e.get("name")),
            e.get("sublinkage"),
            virtual=_flag("link, virtual", e.get("virtual", False)),
        )
    if data.get("root") is not None:
        checks.one_of("root", data["root"], linkage.links)
        linkage.root = data["root"]
    for entry in _list("joints", data):
        _add_joint(linkage, _mapping("joints", entry))
    if linkage.links:
        assign_roles(linkage)
    validate(linkage)
    for entry in _list("goals", data):
        _add_goal(linkage, _mapping("goals", entry))
    return linkage


def dump_linkage(linkage: Linkage) -> str:
    """Write a linkage as YAML that load_linkage() reads back."""
    top = linkage.top
    data: dict[str, Any] = {"name": linkage.name, "root": linkage.root}
    subs: list[dict[str, Any]] = [{"name": top}]
    for s in linkage.sublinkages.values():
        if s.parent is not None:
            subs.append({"name": s.name, "disposition": s.disposition, "parent": s.parent})
    data["sublinkages"] = subs
    data["links"] = [
        {"name": l.name, "sublinkage": l.sublinkage} | ({"virtual": True} if l.virtual else {})
        for l in linkage.links.values()
    ]
    data["joints"] = [_joint_entry(j, linkage.values.get(j.name)) for j in linkage.joints.values()]
    if linkage.goals:
        data["goals"] = [_goal_entry(g) for g in linkage.goals.values()]
    return yaml.safe_dump(data, sort_keys=False, default_flow_style=None, width=120)


def apply_edits(linkage: Linkage, edits: Any) -> None:
    """Make a list of edits, all or none.

    Each edit is a mapping with ``op``: add_link, remove_link, add_joint, remove_joint,
    add_sublinkage, remove_sublinkage, move_links, lock, unlock, set_limits, set_value, set_rest,
    add_goal, remove_goal; the other keys are those of the same elements in a file.

    Raises:
        InvalidInput: An edit cannot be made, or the result breaks a rule; nothing has changed then.
    """
    if not isinstance(edits, list) or not edits:
        raise InvalidInput("edits", "must be a list of mappings with 'op'")
    checks.count("edits", len(edits), 10_000)
    work = linkage.copy()
    for i, edit in enumerate(edits):
        entry = dict(_mapping(f"edits[{i}]", edit))
        op = _text(f"edits[{i}], op", entry.pop("op", None))
        checks.one_of(f"edits[{i}], op", op, _EDITS)
        try:
            _EDITS[op](work, entry)
        except (TypeError, KeyError) as error:
            raise InvalidInput(f"edits[{i}]", f"{op}: {error}") from None
    try:
        assign_roles(work)
        validate(work)
    except LinkageError:
        if not any(j.found for j in work.joints.values()):
            raise
        poses = linkage.link_poses()
        assign_roles(
            work, anew=True, poses=poses
        )  # a closure may take the place of a tree joint that went
        validate(work)
    linkage.adopt(work)


def _remove(method: str) -> Callable[[Linkage, dict[str, Any]], None]:
    def edit(linkage: Linkage, e: dict[str, Any]) -> None:
        _only(method, e, ("name",))
        getattr(linkage, method)(_text(f"{method}, name", e.get("name")))

    return edit


def _lock(locked: bool) -> Callable[[Linkage, dict[str, Any]], None]:
    def edit(linkage: Linkage, e: dict[str, Any]) -> None:
        _only("lock", e, ("name",))
        linkage.set_locked(_text("lock, name", e.get("name")), locked)

    return edit


def _edit_link(linkage: Linkage, e: dict[str, Any]) -> None:
    _only("add_link", e, ("name", "sublinkage", "virtual"))
    linkage.add_link(
        _text("add_link, name", e.get("name")), e.get("sublinkage"),
        virtual=_flag("add_link, virtual", e.get("virtual", False)),
    )  # fmt: skip


def _edit_sublinkage(linkage: Linkage, e: dict[str, Any]) -> None:
    _only("add_sublinkage", e, ("name", "disposition", "parent", "links"))
    linkage.add_sublinkage(
        _text("add_sublinkage, name", e.get("name")),
        _text("add_sublinkage, disposition", e.get("disposition")),
        parent=e.get("parent"),
        links=[_text("links", l) for l in _list("links", e)],
    )


def _edit_move(linkage: Linkage, e: dict[str, Any]) -> None:
    _only("move_links", e, ("links", "sublinkage"))
    linkage.move_links(
        [_text("links", l) for l in _list("links", e)], _text("sublinkage", e.get("sublinkage"))
    )


def _edit_limits(linkage: Linkage, e: dict[str, Any]) -> None:
    _only("set_limits", e, ("name", "lower", "upper", "velocity"))
    linkage.set_limits(
        _text("set_limits, name", e.get("name")), e.get("lower"), e.get("upper"), e.get("velocity")
    )


def _edit_value(linkage: Linkage, e: dict[str, Any]) -> None:
    _only("set_value", e, ("name", "value"))
    linkage.set_value(_text("set_value, name", e.get("name")), e["value"])


def _edit_rest(linkage: Linkage, e: dict[str, Any]) -> None:
    _only("set_rest", e, ("name", "rest"))
    linkage.set_rest(_text("set_rest, name", e.get("name")), e.get("rest"))


def _add_sublinkages(linkage: Linkage, entries: list[dict[str, Any]]) -> None:
    waiting = list(entries)
    while waiting:
        later = []
        for e in waiting:
            _only(f"sublinkage {e.get('name')!r}", e, ("name", "disposition", "parent"))
            if e.get("parent") is not None and e["parent"] not in linkage.sublinkages:
                later.append(e)
                continue
            linkage.add_sublinkage(
                _text("sublinkage, name", e.get("name")),
                _text(f"sublinkage {e.get('name')!r}, disposition", e.get("disposition")),
                parent=e.get("parent"),
            )
        if len(later) == len(waiting):
            e = later[0]
            known = [x.get("name") for x in later]
            problem = (
                f"its parents form a cycle with {e.get('parent')!r}"
                if e.get("parent") in known
                else f"its parent {e.get('parent')!r} is not known"
            )
            raise LinkageError(f"sublinkage {e.get('name')!r}", problem, rule="proper nesting")
        waiting = later


def _add_joint(linkage: Linkage, e: dict[str, Any]) -> None:
    label = f"joint {e.get('name')!r}"
    _only(
        label, e,
        ("name", "type", "parent", "child", "role", "xyz", "rpy", "quaternion", "child_xyz",
         "child_rpy", "child_quaternion", *_JOINT_KEYS),
    )  # fmt: skip
    role = e.get("role", "auto")
    checks.one_of(f"{label}, role", role, _ROLES)
    options = {k: e[k] for k in _JOINT_KEYS if e.get(k) is not None}
    for k in ("virtual", "locked"):
        if k in options:
            options[k] = _flag(f"{label}, {k}", options[k])
    for k in ("lower", "upper"):
        if k in options:
            options[k] = _open_limits(options[k], -math.inf if k == "lower" else math.inf)
    linkage.add_joint(
        _text("joint, name", e.get("name")),
        _text(f"{label}, type", e.get("type")),
        _text(f"{label}, parent", e.get("parent")),
        _text(f"{label}, child", e.get("child")),
        origin=_frame(label, e, ""),
        child_origin=_frame(label, e, "child_"),
        closure=_ROLES[role],
        **options,
    )


def _add_goal(linkage: Linkage, e: dict[str, Any]) -> None:
    label = f"goal {e.get('name')!r}"
    _only(
        label, e,
        ("name", "link", "kind", "reference", "rows", "xyz", "rpy", "quaternion", "offset_xyz",
         "offset_rpy", "offset_quaternion", "priority", "weight"),
    )  # fmt: skip
    target = _frame(label, e, "") if {"xyz", "rpy", "quaternion"} & set(e) else None
    rows = e.get("rows")
    if rows is not None and not isinstance(rows, list):
        raise InvalidInput(f"{label}, rows", "must be a list of six truth values")
    linkage.add_goal(
        _text("goal, name", e.get("name")),
        _text(f"{label}, link", e.get("link")),
        _text(f"{label}, kind", e.get("kind", "pose")),
        target=target,
        offset=_frame(label, e, "offset_"),
        reference=e.get("reference"),
        rows=rows,
        priority=e.get("priority"),
        weight=e.get("weight", 1.0),
    )


_EDITS: dict[str, Callable[[Linkage, dict[str, Any]], None]] = {
    "add_link": _edit_link,
    "remove_link": _remove("remove_link"),
    "add_joint": _add_joint,
    "remove_joint": _remove("remove_joint"),
    "add_sublinkage": _edit_sublinkage,
    "remove_sublinkage": _remove("remove_sublinkage"),
    "move_links": _edit_move,
    "lock": _lock(True),
    "unlock": _lock(False),
    "set_limits": _edit_limits,
    "set_value": _edit_value,
    "set_rest": _edit_rest,
    "add_goal": _add_goal,
    "remove_goal": _remove("remove_goal"),
}


def _joint_entry(j: Joint, value: Array | None) -> dict[str, Any]:
    e: dict[str, Any] = {"name": j.name, "type": j.type, "parent": j.parent, "child": j.child}
    e["role"] = {False: "tree", True: "closure", None: "auto"}[None if j.found else j.closure]
    _put_frame(e, "", j.origin)
    _put_frame(e, "child_", j.child_origin)
    if j.virtual:
        e["virtual"] = True
    for key, array, none in (
        ("lower", j.lower, -math.inf), ("upper", j.upper, math.inf),
        ("velocity", j.velocity, math.inf),
    ):  # fmt: skip
        if (array != none).any():
            e[key] = [float(x) for x in array]
    if value is not None and value.any():
        e["value"] = [float(x) for x in value]
    if j.rest is not None:
        e["rest"] = [float(x) for x in j.rest]
    if j.locked:
        e["locked"] = True
    if j.priority is not None:
        e["priority"] = j.priority
    if j.weight != 1.0:
        e["weight"] = j.weight
    return e


def _goal_entry(g: Goal) -> dict[str, Any]:
    e: dict[str, Any] = {"name": g.name, "link": g.link, "kind": g.kind, "reference": g.reference}
    if g.kind == "rows":
        e["rows"] = list(g.rows)
    e["xyz"] = [float(x) for x in g.target[:3, 3]]
    e["quaternion"] = _quaternion(g.target)
    _put_frame(e, "offset_", g.offset)
    e["priority"], e["weight"] = g.priority, g.weight
    return e


def _quaternion(T: Array) -> list[float]:
    return [float(x) for x in matrix_to_quaternion(np.ascontiguousarray(T[:3, :3]))]


def _put_frame(e: dict[str, Any], prefix: str, T: Array) -> None:
    if T[:3, 3].any():
        e[f"{prefix}xyz"] = [float(x) for x in T[:3, 3]]
    if not np.array_equal(T[:3, :3], np.eye(3)):
        e[f"{prefix}quaternion"] = _quaternion(T)


def _frame(label: str, e: dict[str, Any], prefix: str) -> Array:
    zero = (0.0, 0.0, 0.0)
    xyz = checks.shape(f"{label}, {prefix}xyz", e.get(f"{prefix}xyz", zero), (3,))
    if f"{prefix}quaternion" in e:
        if f"{prefix}rpy" in e:
            raise InvalidInput(label, f"{prefix}rpy and {prefix}quaternion exclude each other")
        q = checks.quaternion(f"{label}, {prefix}quaternion", e[f"{prefix}quaternion"])
        return frame(xyz, rotation=quaternion_to_matrix(q))
    rpy = checks.shape(f"{label}, {prefix}rpy", e.get(f"{prefix}rpy", zero), (3,))
    return frame(xyz, rpy)


def _open_limits(value: Any, missing: float) -> Any:
    if isinstance(value, list):
        return [missing if v is None else v for v in value]
    return value


def _text(label: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidInput(label, f"must be a text, got {value!r}")
    return value


def _flag(label: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(label, f"must be true or false, got {value!r}")
    return value


def _mapping(label: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(label, f"must be a mapping, got {value!r:.80}")
    return value


def _list(key: str, data: dict[str, Any]) -> list[Any]:
    value = data.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidInput(key, "must be a list")
    return value


def _only(label: str, entry: dict[str, Any], allowed: tuple[str, ...]) -> None:
    for key in entry:
        if key not in allowed:
            checks.one_of(f"{label}, key", str(key), allowed)
