"""Linkages as YAML text, and edits in the same words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from hier_ik.elements import Goal, Joint, frame, open_limits
from hier_ik.errors import LinkageError
from hier_ik.linkage import Linkage
from hier_ik.spanning import assign_roles
from hier_ik.tables import Array
from hier_ik.validation import validate
from kin_core import checks
from kin_core.errors import InvalidInput
from kin_core.rotations import matrix_to_quaternion, quaternion_to_matrix
from kin_core.yamls import load_yaml

__all__ = ["add_goals", "apply_edits", "dump_linkage", "load_linkage"]


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
    _only("linkage", data, ("name", "root", "sublinkages", "links", "joints", "goals", "actuated"))
    linkage = Linkage(checks.text("name", data.get("name", "linkage")))
    # The top level may be declared to give it another name; parents may stand after children.
    entries = [_mapping("sublinkages", e) for e in _list("sublinkages", data)]
    tops = [e for e in entries if e.get("parent") is None and "disposition" not in e]
    if tops:
        name = checks.title("sublinkage, name", tops[0].get("name"))
        top = linkage.sublinkages.pop(linkage.top)
        linkage.sublinkages[name] = type(top)(name, None, "simultaneous")
        entries = [e for e in entries if e is not tops[0]]
    _add_sublinkages(linkage, entries)
    for entry in _list("links", data):
        e = {"name": entry} if isinstance(entry, str) else _mapping("links", entry)
        _EDITS["add_link"](linkage, e)
    if data.get("root") is not None:
        checks.one_of("root", data["root"], linkage.links)
        linkage.root = data["root"]
    for entry in _list("joints", data):
        _add_joint(linkage, _mapping("joints", entry))
    if linkage.links:
        assign_roles(linkage)
    validate(linkage)
    add_goals(linkage, data)
    linkage.set_actuated(_list("actuated", data))
    return linkage


def add_goals(linkage: Linkage, data: Mapping[str, Any]) -> None:
    """Add the goals that a file lists."""
    for entry in _list("goals", data):
        _add_goal(linkage, _mapping("goals", entry))


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
    if linkage.actuated:
        data["actuated"] = list(linkage.actuated)
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
        _EDITS[checks.one_of(f"edits[{i}], op", entry.pop("op", None), _EDITS)](work, entry)
    try:
        assign_roles(work)
        validate(work)
    except LinkageError:
        if not any(j.found for j in work.joints.values()):
            raise
        poses = linkage.link_poses()
        # A closure may take the place of a tree joint that went.
        assign_roles(work, anew=True, poses=poses)
        validate(work)
    linkage.adopt(work)


Edit = Callable[[Linkage, dict[str, Any]], None]


def _call(method: str, *keys: str, **constants: Any) -> Edit:
    """The edit that calls a method of the linkage with the keys of its entry."""

    def edit(linkage: Linkage, e: dict[str, Any]) -> None:
        _only(method, e, keys)
        values = {k: e[k] for k in keys if k in e}
        if "virtual" in values:
            _flag(f"{method}, virtual", values["virtual"])
        if "links" in values:
            _list("links", values)
        try:
            getattr(linkage, method)(**values, **constants)
        except TypeError as error:  # a key is missing
            raise InvalidInput(method, str(error)) from None

    return edit


def _add_sublinkages(linkage: Linkage, entries: list[dict[str, Any]]) -> None:
    waiting = list(entries)
    while waiting:
        later = []
        for e in waiting:
            if e.get("parent") is not None and e["parent"] not in linkage.sublinkages:
                later.append(e)
                continue
            _EDITS["add_sublinkage"](linkage, e)
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
    given: Callable[[str], Any] = e.get
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
            options[k] = open_limits(options[k], -math.inf if k == "lower" else math.inf)
    linkage.add_joint(
        *map(given, ("name", "type", "parent", "child")),
        origin=_frame(label, e, ""),
        child_origin=_frame(label, e, "child_"),
        closure=_ROLES[role],
        **options,
    )


def _add_goal(linkage: Linkage, e: dict[str, Any]) -> None:
    given: Callable[[str], Any] = e.get
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
        given("name"),
        given("link"),
        e.get("kind", "pose"),
        target=target,
        offset=_frame(label, e, "offset_"),
        reference=e.get("reference"),
        rows=rows,
        priority=e.get("priority"),
        weight=e.get("weight", 1.0),
    )


def _joint_entry(j: Joint, value: Array | None) -> dict[str, Any]:
    e: dict[str, Any] = {"name": j.name, "type": j.type, "parent": j.parent, "child": j.child}
    e["role"] = {False: "tree", True: "closure", None: "auto"}[None if j.found else j.closure]
    _put_frame(e, "", j.origin)
    _put_frame(e, "child_", j.child_origin)
    limits = {
        key: array.tolist()
        for key, array in (("lower", j.lower), ("upper", j.upper), ("velocity", j.velocity))
        if np.isfinite(array).any()
    }
    optional = {
        "virtual": j.virtual, **limits,
        "value": value.tolist() if value is not None and value.any() else None,
        "rest": None if j.rest is None else j.rest.tolist(), "locked": j.locked,
        "priority": j.priority, "weight": None if j.weight == 1.0 else j.weight,
    }  # fmt: skip
    return e | {k: v for k, v in optional.items() if v is not None and v is not False}


def _goal_entry(g: Goal) -> dict[str, Any]:
    e: dict[str, Any] = {"name": g.name, "link": g.link, "kind": g.kind, "reference": g.reference}
    if g.kind == "rows":
        e["rows"] = list(g.rows)
    e["xyz"] = g.target[:3, 3].tolist()
    e["quaternion"] = _quaternion(g.target)
    _put_frame(e, "offset_", g.offset)
    e["priority"], e["weight"] = g.priority, g.weight
    return e


def _quaternion(T: Array) -> list[float]:
    q: list[float] = matrix_to_quaternion(np.ascontiguousarray(T[:3, :3])).tolist()
    return q


def _put_frame(e: dict[str, Any], prefix: str, T: Array) -> None:
    if T[:3, 3].any():
        e[f"{prefix}xyz"] = T[:3, 3].tolist()
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


def _flag(label: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(label, f"must be true or false, got {value!r}")
    return value


def _mapping(label: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(label, f"must be a mapping, got {value!r:.80}")
    return value


def _list(key: str, data: Mapping[str, Any]) -> list[Any]:
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


_EDITS: dict[str, Edit] = {
    "add_link": _call("add_link", "name", "sublinkage", "virtual"),
    "remove_link": _call("remove_link", "name"),
    "add_joint": _add_joint,
    "remove_joint": _call("remove_joint", "name"),
    "add_sublinkage": _call("add_sublinkage", "name", "disposition", "parent", "links"),
    "remove_sublinkage": _call("remove_sublinkage", "name"),
    "move_links": _call("move_links", "links", "sublinkage"),
    "lock": _call("set_locked", "name", locked=True),
    "unlock": _call("set_locked", "name", locked=False),
    "set_limits": _call("set_limits", "name", "lower", "upper", "velocity"),
    "set_value": _call("set_value", "name", "value"),
    "set_rest": _call("set_rest", "name", "rest"),
    "add_goal": _add_goal,
    "remove_goal": _call("remove_goal", "name"),
}
