"""The rules that a hierarchical linkage keeps; each refusal names the element and the rule."""

from __future__ import annotations

import numpy as np

from hier_ik.elements import Joint
from hier_ik.errors import LinkageError
from hier_ik.linkage import Linkage

__all__ = ["validate"]


def validate(linkage: Linkage) -> None:
    """Check a linkage whose joints all have a role.

    Raises:
        LinkageError: With the element and the rule that it breaks.
    """
    if not linkage.links:
        raise LinkageError("linkage", "has no links", rule="one root")
    _check_sublinkages(linkage)
    if linkage.links[linkage.root].sublinkage != linkage.top:
        raise LinkageError(
            f"link {linkage.root!r}",
            "the root must be in the top-level sublinkage",
            rule="one root",
        )
    crossing: dict[str, str] = {}
    for j in linkage.joints.values():
        inner = linkage.crossed(j)
        if inner is not None:
            crossing[j.name] = inner
            if (
                j.closure
                and j.limited
                and not j.kind.reversible
                and linkage.links[j.child].sublinkage == inner
            ):
                raise LinkageError(
                    f"joint {j.name!r}",
                    f"a {j.type} closure with limits must have its parent in the inner sublinkage"
                    f" {inner!r}, because its coordinates belong there",
                    rule="limits of closures",
                )
        if not j.finite:
            part = "child_origin" if np.isfinite(j.origin).all() else "origin"
            raise LinkageError(f"joint {j.name!r}", f"{part} is not finite", rule="finite geometry")
        if j.closure is None:
            raise LinkageError(
                f"joint {j.name!r}", "has no role; call assign_roles", rule="spanning tree"
            )
    _check_names(linkage)
    _check_tree(linkage)
    _check_boundaries(linkage, crossing)


def _check_names(linkage: Linkage) -> None:
    """Coordinates are reported as joint/1, joint/2, ...: no joint may have such a name too."""
    for name in linkage.joints:
        whole, _, number = name.rpartition("/")
        if whole in linkage.joints and number.isdecimal():
            dof = linkage.joints[whole].dof
            if dof > 1 and number in {str(i + 1) for i in range(dof)}:
                raise LinkageError(
                    f"joint {name!r}", f"has the name of a coordinate of joint {whole!r}",
                    rule="unique names",
                )  # fmt: skip


def _check_sublinkages(linkage: Linkage) -> None:
    tops = [s.name for s in linkage.sublinkages.values() if s.parent is None]
    if len(tops) != 1:
        raise LinkageError(
            "sublinkages", f"there must be one top level, got {tops}", rule="proper nesting"
        )
    filled = {l.sublinkage for l in linkage.links.values()}
    checked = set(tops)
    for s in linkage.sublinkages.values():
        way: list[str] = []
        at = s.name
        while at not in checked:
            if at in way:
                raise LinkageError(
                    f"sublinkage {at!r}", "encloses itself: " + " > ".join([*way, at]),
                    rule="proper nesting",
                )  # fmt: skip
            way.append(at)
            parent = linkage.sublinkages[at].parent
            if parent not in linkage.sublinkages:
                raise LinkageError(
                    f"sublinkage {at!r}", f"its parent {parent!r} is not known",
                    rule="proper nesting",
                )  # fmt: skip
            at = parent
        checked.update(way)
        if s.name not in filled:
            raise LinkageError(f"sublinkage {s.name!r}", "has no links", rule="proper nesting")


def _check_tree(linkage: Linkage) -> None:
    above: dict[str, Joint] = {}
    for j in linkage.tree_joints():
        if j.child == linkage.root:
            raise LinkageError(
                f"joint {j.name!r}",
                f"the root {linkage.root!r} cannot be the child of a tree joint",
                rule="spanning tree",
            )
        if j.child in above:
            raise LinkageError(
                f"joint {j.name!r}",
                f"link {j.child!r} already hangs on joint {above[j.child].name!r};"
                " one of the two must be a closure",
                rule="spanning tree",
            )
        above[j.child] = j
    rooted = {linkage.root}
    for name in linkage.links:
        way: list[str] = []
        on_way: set[str] = set()
        at = name
        while at not in rooted:
            if at in on_way:
                ring = [above[l].name for l in way[way.index(at) :]]
                raise LinkageError(
                    f"joint {ring[0]!r}", "tree joints form a cycle: " + ", ".join(ring),
                    rule="spanning tree",
                )  # fmt: skip
            if at not in above:
                raise LinkageError(
                    f"link {at!r}",
                    f"is a second root beside {linkage.root!r}: no tree joint leads to it",
                    rule="one root",
                )
            way.append(at)
            on_way.add(at)
            at = above[at].parent
        rooted.update(way)


def _check_boundaries(linkage: Linkage, crossing: dict[str, str]) -> None:
    entry: dict[str, str] = {}
    for name, inner in crossing.items():
        j = linkage.joints[name]
        if j.closure:
            continue
        if linkage.links[j.child].sublinkage == inner:  # outcrossing
            if inner in entry:
                raise LinkageError(
                    f"joint {name!r}",
                    f"sublinkage {inner!r} has a second outcrossing tree joint beside"
                    f" {entry[inner]!r}; it may have one",
                    rule="one outcrossing tree joint",
                )
            entry[inner] = name
        elif linkage.sublinkages[inner].disposition == "driven":
            raise LinkageError(
                f"joint {name!r}",
                f"a driven sublinkage ({inner!r}) may have no incrossing tree joint: it would move"
                " its parent",
                rule="driven sublinkages move nothing outside",
            )
    for s in linkage.sublinkages.values():
        if s.parent is not None and s.name not in entry:
            raise LinkageError(
                f"sublinkage {s.name!r}", "has no outcrossing tree joint",
                rule="one outcrossing tree joint",
            )  # fmt: skip
