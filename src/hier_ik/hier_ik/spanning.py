"""Finding the spanning tree: which joints hold the links, and which close loops."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from hier_ik.elements import Joint
from hier_ik.errors import LinkageError
from hier_ik.joints import REVERSAL, joint_coordinates
from hier_ik.linkage import Linkage
from hier_ik.tables import Array
from kin_core.rotations import inverse_transform

__all__ = ["assign_roles", "reversed_joint"]


def reversed_joint(joint: Joint) -> Joint:
    """The same joint with parent and child exchanged and the same coordinates.

    With X(q)^-1 = C X(q) C^-1 for the reversible types, C goes into the two frames.
    """
    C = REVERSAL[joint.type]
    return replace(
        joint,
        parent=joint.child,
        child=joint.parent,
        origin=joint.child_origin @ C,
        child_origin=joint.origin @ C,
    )


def assign_roles(
    linkage: Linkage, *, anew: bool = False, poses: Mapping[str, Array] | None = None
) -> bool:
    """Give a role (tree or closure) to every joint that has none.

    The tree grows from the root and keeps the rules of the hierarchy: a sublinkage is entered once,
    and no tree joint leaves a driven one. Joints marked as tree joints come first, then limited
    ones, then those with few freedoms, real before virtual; so loops are cut where few rows are
    needed and no limit is lost. Coordinates of joints that become tree joints are read off the
    poses, where they are given.

    Args:
        linkage: Changed in place.
        anew: Also reconsider roles that were found and not marked.
        poses: Poses of links (4, 4) before the tree was changed.

    Returns:
        Whether anything changed.
    """
    known = poses or {}
    if anew:
        for j in list(linkage.joints.values()):
            if j.found:
                linkage.joints[j.name] = replace(j, closure=None)
    undecided = [j for j in linkage.joints.values() if j.closure is None]
    if not undecided:
        return False
    index = {n: i for i, n in enumerate(linkage.joints)}
    for j in undecided:
        linkage.crossed(j)  # refuses a joint across two boundaries, by name

    def key(j: Joint) -> tuple[bool, bool, bool, int, bool, int]:
        return (
            j.closure is None, not linkage.values.get(j.name, np.zeros(1)).any(),
            not j.limited, j.dof, j.virtual, index[j.name],
        )  # fmt: skip

    reached = {linkage.root}
    entered = {linkage.top}
    heap: list[tuple[tuple[bool, bool, bool, int, bool, int], str, str]] = []

    def push(link: str) -> None:
        for name in linkage.at_link[link]:
            j = linkage.joints[name]
            if j.closure is not True:
                heapq.heappush(heap, (key(j), name, link))

    push(linkage.root)
    tree: dict[str, str] = {}
    while heap:
        _, name, start = heapq.heappop(heap)
        j = linkage.joints[name]
        end = j.child if j.parent == start else j.parent
        if end in reached or not _may_step(linkage, j, start, end, entered):
            continue
        entered.add(linkage.links[end].sublinkage)
        reached.add(end)
        tree[name] = start
        push(end)
    missing = [l for l in linkage.links if l not in reached]
    if missing:
        raise LinkageError(
            f"link {missing[0]!r}",
            f"no way from the root {linkage.root!r} that keeps the rules of the hierarchy"
            + (f" (nor to {len(missing) - 1} more)" if len(missing) > 1 else ""),
            rule="one root",
        )
    for j in undecided:
        if j.name not in tree:
            linkage.replace_joint(replace(j, closure=True, found=True))
            continue
        value = linkage.values.get(j.name)
        if value is None:
            value = np.zeros(j.dof)
            if j.parent in known and j.child in known:
                A, B = known[j.parent] @ j.origin, known[j.child] @ j.child_origin
                value = joint_coordinates(j.type, inverse_transform(A) @ B)
        oriented = j if j.parent == tree[j.name] else reversed_joint(j)
        linkage.replace_joint(replace(oriented, closure=False, found=True), value)
    return True


def _may_step(linkage: Linkage, j: Joint, start: str, end: str, entered: set[str]) -> bool:
    if j.parent != start and (j.closure is False or not j.kind.reversible):
        return False
    a, b = linkage.links[start].sublinkage, linkage.links[end].sublinkage
    if a == b:
        return True
    if linkage.sublinkages[b].parent == a:
        return b not in entered
    return linkage.sublinkages[a].disposition != "driven"
