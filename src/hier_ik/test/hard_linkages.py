"""Random hierarchical linkages made to break things: loops, goals, locks, limits, scales, names.

Each has a planted posture in which every loop is closed exactly, so it is known what can be met.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from oracle import Oracle, scaled
from random_linkages import random_linkage

from hier_ik import Linkage
from hier_ik.joints import joint_motion
from kin_core.rotations import exp_so3

#: Names that meet a suffix, a separator or a limit of the program somewhere.
NAMES = (
    "4", "4~end", "4~end~end", "~end", "drag", "drag:l1", "a/b", "a/position", "/", "1", "x" * 256,
    "α β", "null", "{}", "[1]", "L0", "S0", "..", "%s", "'", "end", "0",
)  # fmt: skip
TYPES = (
    "fixed", "revolute", "revolute", "revolute", "prismatic", "universal", "cylindrical",
    "cartesian2", "spherical", "planar", "point_slider",
)  # fmt: skip


@dataclass
class Hard:
    """A linkage with what is known of it.

    Attributes:
        linkage: As it is given to the solver.
        planted: Tree coordinates in which every closure is closed.
        reachable: Whether the planted posture meets the goals too, within all limits.
        closed: Whether the linkage starts in the planted posture.
        scale: How large it is.
    """

    linkage: Linkage
    planted: dict[str, np.ndarray]
    reachable: bool
    closed: bool
    scale: float


def hard_linkage(rng) -> Hard:
    """One of them; the same for the same generator."""
    links = int(rng.integers(4, 13))
    l = random_linkage(rng, links, int(rng.integers(0, 4)), 0, TYPES, lock=0.1)
    singular = rng.random() < 0.25
    for n, v in l.values.items():
        j = l.joints[n]
        spread = np.where(np.array(j.kind.angular, bool), 1.5, 0.6)
        l.values[n] = np.zeros(len(v)) if singular else rng.uniform(-spread, spread)
    if singular:  # everything in one line or plane
        for j in list(l.joints.values()):
            T = np.eye(4)
            T[0, 3] = rng.uniform(0.2, 1.0)
            l.joints[j.name] = replace(j, origin=T)
    poses = Oracle(l).poses(l.values)
    for i in range(int(rng.integers(0, 4))):
        _closed_loop(l, rng, f"c{i}", poses)
    l = _renamed(l, rng)
    planted = {n: v.copy() for n, v in l.values.items()}
    for j in list(l.joints.values()):
        if rng.random() < 0.3 and j.dof:
            q = l.values.get(j.name)
            if j.closure:
                if l.crossed(j) is not None:
                    continue
                q = np.zeros(j.dof)
            width = rng.uniform(0.05, 1.5, j.dof)
            if not j.closure or rng.random() < 0.5:
                l.set_limits(j.name, q - width, q + rng.uniform(0.05, 1.5, j.dof))
    reachable = bool(rng.random() < 0.5)
    for k in range(int(rng.integers(0, 3))):
        _goal(l, rng, f"goal{k}", poses_of(l, planted), reachable)
    closed = bool(rng.random() < 0.6)
    if not closed:
        for j in l.tree_joints():
            if not j.locked:
                q = planted[j.name] + rng.normal(scale=0.2, size=j.dof)
                l.values[j.name] = np.clip(q, j.lower, j.upper)
    if rng.random() < 0.2:  # a measured, locked joint beyond its limit
        for j in l.tree_joints():
            if j.locked and j.dof:
                l.set_limits(j.name, planted[j.name] - 1.0, planted[j.name] - 0.02)
                break
    s = float(2.0 ** rng.integers(-7, 8))
    if rng.random() < 0.3:
        s = float(10.0 ** rng.uniform(-2, 2))
    units = {j.name: np.where(np.array(j.kind.angular, bool), 1.0, s) for j in l.tree_joints()}
    return Hard(scaled(l, s), {n: v * units[n] for n, v in planted.items()}, reachable, closed, s)


def poses_of(linkage: Linkage, values) -> dict[str, np.ndarray]:
    return Oracle(linkage).poses(values)


def _closed_loop(l: Linkage, rng, name: str, poses) -> None:
    """A closure between two links of one sublinkage or of neighbours, closed as they stand."""
    all_links = list(l.links.values())
    a = all_links[rng.integers(len(all_links))]
    near = [
        b.name
        for b in all_links
        if b.name != a.name
        and (
            b.sublinkage == a.sublinkage
            or l.sublinkages[b.sublinkage].parent == a.sublinkage
            or l.sublinkages[a.sublinkage].parent == b.sublinkage
        )
    ]
    if not near:
        return
    b = near[rng.integers(len(near))]
    kind = TYPES[rng.integers(len(TYPES))]
    A = np.eye(4)
    A[:3, 3], A[:3, :3] = rng.uniform(-0.5, 0.5, 3), exp_so3(rng.uniform(-1, 1, 3))
    l.add_joint(
        name, kind, a.name, b, origin=A, closure=True, virtual=bool(rng.random() < 0.3),
        child_origin=np.linalg.inv(poses[b]) @ poses[a.name] @ A @ joint_motion(kind, np.zeros(6)),
        locked=bool(rng.random() < 0.1),
        priority=int(rng.integers(0, 5)) if rng.random() < 0.3 else None,
    )  # fmt: skip


def _goal(l: Linkage, rng, name: str, poses, reachable: bool) -> None:
    links = list(l.links)
    link, reference = (links[i] for i in rng.choice(len(links), 2, replace=False))
    if rng.random() < 0.6 and link != l.root:
        reference = l.root
    target = np.linalg.inv(poses[reference]) @ poses[link]
    if not reachable:
        target[:3, 3] += rng.normal(scale=float(rng.choice([0.05, 1.0, 30.0])), size=3)
    kinds = ("pose", "position", "orientation", "axis", "line", "plane")
    while name in l.joints or name in l.goals:
        name += "+"
    l.add_goal(
        name, link, kinds[rng.integers(len(kinds))], target=target, reference=reference,
        priority=int(rng.integers(0, 6)) if rng.random() < 0.3 else None,
        weight=float(10.0 ** rng.uniform(-2, 2)) if rng.random() < 0.2 else 1.0,
    )  # fmt: skip


def _renamed(l: Linkage, rng) -> Linkage:
    """The same linkage with some joints named after NAMES; links keep their names."""
    if rng.random() < 0.5:
        return l
    chosen = [str(n) for n in rng.permutation(NAMES)[: len(l.joints)]]
    new = dict(zip(l.joints, chosen, strict=False))
    for j in list(l.joints.values()):
        if j.name not in new or new[j.name] in l.joints:
            continue
        value = l.values.get(j.name)
        l.remove_joint(j.name)
        l.insert_joint(replace(j, name=new[j.name]), value)
    return l
