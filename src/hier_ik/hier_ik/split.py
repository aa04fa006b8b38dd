"""Closure joints that hold more than rows: those with limits, and locked ones.

The solver works on a linkage in which they are taken apart. What is added there has names that no
user can give, because they hold a character that is not printable.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hier_ik.elements import Joint, Link
from hier_ik.joints import joint_coordinates, joint_motion
from hier_ik.linkage import Linkage
from hier_ik.spanning import reversed_joint
from hier_ik.tables import Array
from kin_core.rotations import inverse_transform

__all__ = ["inner_name", "outer_name", "split_closures"]


#: Ends the names of the closure and the link that stand in for a closure joint with limits. The
#: first character (a word joiner) is not printable, so no name from outside can hold it.
_INNER = "\u2060end"


def inner_name(name: str) -> str:
    """The name of the closure that stands in for a closure joint with limits."""
    return name + _INNER


def outer_name(name: str) -> str:
    """The name that the user knows."""
    return name.removesuffix(_INNER)


def split_closures(linkage: Linkage) -> tuple[Linkage, dict[str, Array]]:
    """Give closure joints with limits a place in the tree, and hold locked ones.

    A joint with limits becomes a tree joint to a new virtual link, and a fixed closure from there.
    A locked one becomes a fixed closure at its present coordinates. Nothing else changes.

    Returns:
        The linkage to work on, and per locked closure its motion (4, 4) at these coordinates.
    """
    parted = [j for j in linkage.closure_joints() if j.dof and (j.limited or j.locked)]
    if not parted:
        return linkage, {}
    out = linkage.copy()
    poses = linkage.link_poses({l for j in parted for l in (j.parent, j.child)})
    held: dict[str, Array] = {}
    for j in parted:
        A, B = poses[j.parent] @ j.origin, poses[j.child] @ j.child_origin
        value = joint_coordinates(j.type, inverse_transform(A) @ B)
        level = linkage.level(j)
        if j.locked:
            held[j.name] = joint_motion(j.type, value)
            out.joints[j.name] = replace(_fixed(j, level), origin=j.origin @ held[j.name])
            continue
        inner = linkage.crossed(j)
        if inner is not None and linkage.links[j.child].sublinkage == inner:
            j = reversed_joint(j)  # its coordinates belong to the inner sublinkage
        end = inner_name(j.name)
        out.links[end] = Link(end, linkage.links[j.parent].sublinkage, virtual=True)
        out.at_link[end] = {}
        out.replace_joint(
            replace(j, child=end, child_origin=np.eye(4), closure=False, priority=None), value
        )
        stand_in = replace(_fixed(j, level), name=end, parent=end, origin=np.eye(4))
        out.joints[end] = stand_in
        out.at_link[end][end] = None
        out.at_link[j.child][end] = None
    return out, held


def _fixed(j: Joint, level: int) -> Joint:
    """The closure as one without freedoms, limits or lock."""
    none = np.zeros(0)
    return replace(
        j, type="fixed", lower=none, upper=none, velocity=none, rest=None, locked=False,
        closure=True, priority=level,
    )  # fmt: skip
