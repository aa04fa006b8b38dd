"""Hierarchical linkages, and the edits that change them.

The parts are frozen; a Linkage holds them by name and replaces them. So a copy is cheap, an edit is
all or nothing, and what a solver was built from cannot change under it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hier_ik.elements import (
    DISPOSITIONS,
    GOAL_ROWS,
    LEVEL_CROSSING,
    LEVEL_GOAL,
    LEVEL_REAL,
    LEVEL_VIRTUAL,
    WEIGHTS,
    Goal,
    Joint,
    Link,
    Sublinkage,
    checked_limits,
    checked_name,
    checked_priority,
    checked_transform,
    coordinates,
    frame,
    turned_frames,
)
from hier_ik.errors import LinkageError
from hier_ik.joints import JOINT_TYPES, joint_motion
from hier_ik.tables import Array
from kin_core import checks
from kin_core.errors import InvalidInput
from kin_core.rotations import inverse_transform

__all__ = ["Linkage"]


MAX_ELEMENTS = 200_000
TOP = "L0"


@dataclass
class Linkage:
    """A hierarchical linkage.

    Build it with add_link, add_joint, add_sublinkage and add_goal, in any order in which names
    exist before they are used. ``journal`` records what was edited, so that a solver can tell
    whether its decomposition still holds.

    Attributes:
        name: For people.
        root: The ground link, in the top-level sublinkage.
        links, joints, sublinkages, goals: By name, in the order in which they were added.
        values: Coordinates of the tree joints (dof,) [rad or m].
        actuated: Joints with a motor, as far as a file says so.
        notes: What a reader of a file found strange, one sentence each.
    """

    name: str = "linkage"
    root: str = ""
    links: dict[str, Link] = field(default_factory=dict)
    joints: dict[str, Joint] = field(default_factory=dict)
    sublinkages: dict[str, Sublinkage] = field(
        default_factory=lambda: {TOP: Sublinkage(TOP, None, "simultaneous")}
    )
    goals: dict[str, Goal] = field(default_factory=dict)
    values: dict[str, Array] = field(default_factory=dict)
    journal: list[tuple[str, str]] = field(default_factory=list)
    at_link: dict[str, dict[str, None]] = field(default_factory=dict, repr=False)
    actuated: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    # ---- building ---------------------------------------------------------------------------

    def add_link(self, name: str, sublinkage: str | None = None, *, virtual: bool = False) -> Link:
        """Add a link; the first one is the ground."""
        _new_name("link", name, self.links)
        sub = self._sublinkage(f"link {name!r}", sublinkage)
        link = Link(name, sub, bool(virtual))
        self.links[name] = link
        self.at_link[name] = {}
        if not self.root:
            self.root = name
        self.journal.append(("add_link", name))
        return link

    def add_sublinkage(
        self,
        name: str,
        disposition: str,
        *,
        parent: str | None = None,
        links: Iterable[str] = (),
    ) -> Sublinkage:
        """Add a sublinkage and move the given links into it."""
        _new_name("sublinkage", name, self.sublinkages)
        checks.one_of(f"sublinkage {name!r}, disposition", disposition, DISPOSITIONS)
        parent = self._sublinkage(f"sublinkage {name!r}, parent", parent)
        links = list(links)
        for l in links:
            checks.one_of(f"sublinkage {name!r}", l, self.links)
        sub = Sublinkage(name, parent, disposition)
        self.sublinkages[name] = sub
        for l in links:
            self.links[l] = replace(self.links[l], sublinkage=name)
        self.journal.append(("add_sublinkage", name))
        return sub

    def add_joint(
        self,
        name: str,
        type: str,
        parent: str,
        child: str,
        *,
        xyz: ArrayLike = (0.0, 0.0, 0.0),
        rpy: ArrayLike = (0.0, 0.0, 0.0),
        origin: ArrayLike | None = None,
        child_origin: ArrayLike | None = None,
        axis: ArrayLike | None = None,
        axis2: ArrayLike | None = None,
        child_axis: ArrayLike | None = None,
        closure: bool | None = None,
        virtual: bool = False,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        velocity: ArrayLike | None = None,
        value: ArrayLike | None = None,
        rest: ArrayLike | None = None,
        locked: bool = False,
        priority: int | None = None,
        weight: float = 1.0,
    ) -> Joint:
        """Add a joint between two links; see Joint for what is not said here.

        Its frame in the parent link is given by ``xyz`` [m] and ``rpy`` [rad] or as ``origin``
        (4, 4), that in the child link as ``child_origin`` (4, 4) or a translation (3,). ``axis`` is
        its axis in the joint frame, z if not given (universal: its first, x, and ``axis2`` its
        second); ``child_axis`` the axis in the frame of the child link, where it differs. Limits
        are (dof,) or one number for all; ``value`` (dof,) [rad or m] is the start of a tree joint.
        """
        label = _new_name("joint", name, self.joints, self.goals)
        checks.one_of(f"{label}, type", type, JOINT_TYPES)
        checks.one_of(f"{label}, parent", parent, self.links)
        checks.one_of(f"{label}, child", child, self.links)
        if parent == child:
            raise LinkageError(label, f"connects link {parent!r} with itself", rule="two links")
        if origin is not None:
            A = checked_transform(f"{label}, origin", origin)
        else:
            try:
                A = checked_transform(f"{label}, origin", frame(xyz, rpy))
            except InvalidInput as error:
                raise LinkageError(label, str(error), rule="finite geometry") from None
        B = checked_transform(f"{label}, child_origin", child_origin)
        A, B = turned_frames(label, type, A, B, axis, axis2, child_axis)
        dof = JOINT_TYPES[type].dof
        joint = Joint(
            name, type, parent, child, A, B, closure, bool(virtual),
            *checked_limits(label, dof, lower, upper, velocity),
            None if rest is None else coordinates(f"{label}, rest", rest, dof),
            bool(locked), checked_priority(label, priority),
            checks.within(f"{label}, weight", weight, *WEIGHTS),
        )  # fmt: skip
        self.insert_joint(joint, coordinates(f"{label}, value", value, dof))
        return joint

    def insert_joint(self, joint: Joint, value: Array) -> None:
        """Add a joint that was made elsewhere; ``value`` (dof,) counts in the tree alone."""
        fresh = joint.closure is False and not self.at_link[joint.child]
        self.joints[joint.name] = joint
        if not joint.closure:
            self.values[joint.name] = value
        self.at_link[joint.parent][joint.name] = None
        self.at_link[joint.child][joint.name] = None
        self.journal.append(("add_leaf" if fresh else "add_joint", joint.name))

    def add_goal(
        self,
        name: str,
        link: str,
        kind: str = "pose",
        *,
        target: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        reference: str | None = None,
        rows: Sequence[bool] | None = None,
        priority: int | None = None,
        weight: float = 1.0,
    ) -> Goal:
        """Add a task on a link; see Goal for what is not said here.

        ``kind`` is pose, position, orientation, axis (z axes parallel), line (point on the z axis
        of the target), plane (point in the xy plane of the target), or rows with six truth values
        in ``rows``. ``target`` (4, 4) or (3,) [m] is where the link stands now if not given, in the
        frame of the link ``reference`` (the root if not given); ``offset`` is the same in the link.
        """
        label = _new_name("goal", name, self.goals, self.joints)
        checks.one_of(f"{label}, link", link, self.links)
        reference = self.root if reference is None else reference
        checks.one_of(f"{label}, reference", reference, self.links)
        if link == reference:
            raise LinkageError(label, f"link {link!r} is its own reference", rule="two links")
        checks.one_of(f"{label}, kind", kind, [*GOAL_ROWS, "rows"])
        if kind == "rows":
            if rows is None or len(rows) != 6:
                raise InvalidInput(f"{label}, rows", "needs six truth values")
            held = tuple(bool(r) for r in rows)
        else:
            held = GOAL_ROWS[kind]
        off = checked_transform(f"{label}, offset", offset)
        if target is None:
            poses = self.link_poses((link, reference))
            tgt = inverse_transform(poses[reference]) @ poses[link] @ off
        else:
            tgt = checked_transform(f"{label}, target", target)
        level = checked_priority(label, priority)
        goal = Goal(
            name, link, reference, kind, held, tgt, off,
            LEVEL_GOAL if level is None else level,
            checks.within(f"{label}, weight", weight, *WEIGHTS),
        )  # fmt: skip
        self.goals[name] = goal
        self.journal.append(("add_goal", name))
        return goal

    # ---- changing ---------------------------------------------------------------------------

    def remove_joint(self, name: str) -> None:
        """Remove a joint; whether the rest still hangs together is for validate() to say."""
        joint = self._joint("remove_joint", name)
        leaf = joint.closure is False and len(self.at_link[joint.child]) == 1
        del self.joints[name]
        self.actuated = tuple(n for n in self.actuated if n != name)
        self.values.pop(name, None)
        self.at_link[joint.parent].pop(name, None)
        self.at_link[joint.child].pop(name, None)
        free = leaf and not any(joint.child in (g.link, g.reference) for g in self.goals.values())
        self.journal.append(("remove_leaf" if free else "remove_joint", name))

    def remove_link(self, name: str) -> None:
        """Remove a link with all its joints and goals."""
        checks.one_of("remove_link", name, self.links)
        if name == self.root:
            raise LinkageError(f"link {name!r}", "the root cannot be removed", rule="one root")
        for g in [g.name for g in self.goals.values() if name in (g.link, g.reference)]:
            self.remove_goal(g)
        for j in list(self.at_link[name]):
            self.remove_joint(j)
        del self.links[name]
        del self.at_link[name]
        self.journal.append(("remove_link", name))

    def remove_sublinkage(self, name: str) -> None:
        """Remove a boundary; what was inside belongs to the parent from now on."""
        checks.one_of("remove_sublinkage", name, self.sublinkages)
        sub = self.sublinkages[name]
        if sub.parent is None:
            raise LinkageError(f"sublinkage {name!r}", "the top level stays", rule="one root")
        del self.sublinkages[name]
        for s in list(self.sublinkages.values()):
            if s.parent == name:
                self.sublinkages[s.name] = replace(s, parent=sub.parent)
        for l in list(self.links.values()):
            if l.sublinkage == name:
                self.links[l.name] = replace(l, sublinkage=sub.parent)
        self.journal.append(("remove_sublinkage", name))

    def remove_goal(self, name: str) -> None:
        """Remove a goal."""
        checks.one_of("remove_goal", name, self.goals)
        del self.goals[name]
        self.journal.append(("remove_goal", name))

    def set_locked(self, name: str, locked: bool) -> None:
        """Lock or unlock a joint."""
        joint = self._joint("lock" if locked else "unlock", name)
        if joint.locked != bool(locked):
            self.joints[name] = replace(joint, locked=bool(locked))
            op = "lock" if locked else "unlock"
            self.journal.append(("split" if joint.closure else op, name))

    def set_limits(
        self,
        name: str,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        velocity: ArrayLike | None = None,
    ) -> None:
        """Change the limits of a joint; None takes a limit away."""
        joint = self._joint("set_limits", name)
        lo, hi, vel = checked_limits(f"joint {name!r}", joint.dof, lower, upper, velocity)
        changed = replace(joint, lower=lo, upper=hi, velocity=vel)
        split = joint.closure is True and joint.limited != changed.limited
        self.joints[name] = changed
        self.journal.append(("split" if split else "set_limits", name))

    def set_actuated(self, names: Iterable[str]) -> None:
        """Say which joints have a motor."""
        listed: dict[str, None] = {}
        for name in names:
            self._joint("actuated", checks.title("actuated", name))
            if name in listed:
                raise LinkageError(f"joint {name!r}", "is listed twice as actuated")
            listed[name] = None
        self.actuated = tuple(listed)

    def set_value(self, name: str, value: ArrayLike) -> None:
        """Set the coordinates of a tree joint."""
        joint = self._joint("set_value", name)
        if joint.closure:
            raise LinkageError(
                f"joint {name!r}", "a closure has no value to set", rule="tree joints have values"
            )
        self.values[name] = coordinates(f"joint {name!r}, value", value, joint.dof)
        self.journal.append(("set_value", name))

    def set_rest(self, name: str, rest: ArrayLike | None) -> None:
        """Set or take away the rest posture of a joint."""
        joint = self._joint("set_rest", name)
        r = None if rest is None else coordinates(f"joint {name!r}, rest", rest, joint.dof)
        self.joints[name] = replace(joint, rest=r)
        self.journal.append(("set_rest", name))

    def set_goal(
        self, name: str, target: ArrayLike | None = None, offset: ArrayLike | None = None
    ) -> None:
        """Move a goal."""
        checks.one_of("goal", name, self.goals)
        goal = self.goals[name]
        if target is not None:
            goal = replace(goal, target=checked_transform(f"goal {name!r}, target", target))
        if offset is not None:
            goal = replace(goal, offset=checked_transform(f"goal {name!r}, offset", offset))
        self.goals[name] = goal

    def replace_joint(self, joint: Joint, value: Array | None = None) -> None:
        """Put a changed joint in the place of the one with the same name."""
        old = self._joint("replace_joint", joint.name)
        for l in (old.parent, old.child):
            self.at_link[l].pop(old.name, None)
        self.joints[joint.name] = joint
        for l in (joint.parent, joint.child):
            self.at_link[l][joint.name] = None
        if joint.closure:
            self.values.pop(joint.name, None)
        elif value is not None:
            self.values[joint.name] = value
        elif joint.name not in self.values:
            self.values[joint.name] = np.zeros(joint.dof)
        self.journal.append(("replace_joint", joint.name))

    def move_links(self, links: Iterable[str], sublinkage: str) -> None:
        """Move links into another sublinkage."""
        sub = self._sublinkage("move_links", sublinkage)
        names = list(links)
        for l in names:
            checks.one_of("move_links", l, self.links)
        for l in names:
            self.links[l] = replace(self.links[l], sublinkage=sub)
        self.journal.append(("move_links", sub))

    # ---- asking -----------------------------------------------------------------------------

    @property
    def top(self) -> str:
        """Name of the top-level sublinkage."""
        return next(s.name for s in self.sublinkages.values() if s.parent is None)

    def tree_joints(self) -> list[Joint]:
        """The joints of the spanning tree, in the order in which they were added."""
        return [j for j in self.joints.values() if j.closure is False]

    def closure_joints(self) -> list[Joint]:
        """The closure joints, in the order in which they were added."""
        return [j for j in self.joints.values() if j.closure]

    def crossed(self, joint: Joint) -> str | None:
        """The inner of the two sublinkages whose boundary a joint crosses; None inside one.

        Raises:
            LinkageError: It crosses two boundaries.
        """
        p, c = self.links[joint.parent].sublinkage, self.links[joint.child].sublinkage
        if p == c:
            return None
        if self.sublinkages[c].parent == p:
            return c
        if self.sublinkages[p].parent == c:
            return p
        raise LinkageError(
            f"joint {joint.name!r}",
            f"crosses the boundaries of both {p!r} and {c!r}; a joint may cross one boundary",
            rule="one boundary",
        )

    def level(self, joint: Joint) -> int:
        """Priority level of a closure: as given, or real before virtual before crossing."""
        if joint.priority is not None:
            return joint.priority
        if self.links[joint.parent].sublinkage != self.links[joint.child].sublinkage:
            return LEVEL_CROSSING
        return LEVEL_VIRTUAL if joint.virtual else LEVEL_REAL

    def copy(self) -> Linkage:
        """A copy that may be edited on its own; the frozen parts are shared."""
        return Linkage(
            self.name, self.root, dict(self.links), dict(self.joints), dict(self.sublinkages),
            dict(self.goals), {k: v.copy() for k, v in self.values.items()}, [],
            {k: dict(v) for k, v in self.at_link.items()}, self.actuated, self.notes,
        )  # fmt: skip

    def adopt(self, other: Linkage) -> None:
        """Become what another linkage is; its journal is added to this one's."""
        self.root, self.links, self.joints, self.values = (
            other.root, other.links, other.joints, other.values,
        )  # fmt: skip
        self.sublinkages, self.goals = other.sublinkages, other.goals
        self.at_link, self.actuated = other.at_link, other.actuated
        self.journal += other.journal

    def flattened(self) -> Linkage:
        """The same linkage without its hierarchy; the priorities stay what they were."""
        flat = self.copy()
        for j in self.joints.values():
            if j.priority is None and j.closure is not False:
                flat.joints[j.name] = replace(j, priority=self.level(j))
        flat.sublinkages = {self.top: Sublinkage(self.top, None, "simultaneous")}
        flat.links = {l.name: replace(l, sublinkage=self.top) for l in self.links.values()}
        return flat

    def tree_order(self) -> list[Joint]:
        """Tree joints with every parent before its children, depth first from the root.

        Raises:
            LinkageError: Some link is not reached from the root.
        """
        below: dict[str, list[Joint]] = {}
        for j in self.joints.values():
            if j.closure is False:
                below.setdefault(j.parent, []).append(j)
        order: list[Joint] = []
        stack = list(reversed(below.get(self.root, ())))
        seen = {self.root}
        while stack:
            j = stack.pop()
            if j.child in seen:
                raise LinkageError(
                    f"joint {j.name!r}",
                    f"link {j.child!r} already has a way to the root; mark the joint as a closure",
                    rule="spanning tree",
                )
            seen.add(j.child)
            order.append(j)
            stack.extend(reversed(below.get(j.child, ())))
        return order

    def link_poses(self, wanted: Iterable[str] | None = None) -> dict[str, Array]:
        """Poses of links in the root frame (4, 4), by plain products of transforms."""
        if wanted is not None:
            return {name: self._pose(name) for name in wanted}
        poses = {self.root: np.eye(4)}
        for j in self.tree_order():
            poses[j.child] = poses[j.parent] @ self._step(j)
        return poses

    def _step(self, j: Joint) -> Array:
        return (
            j.origin @ joint_motion(j.type, self.values[j.name]) @ inverse_transform(j.child_origin)
        )

    def _pose(self, link: str) -> Array:
        T = np.eye(4)
        for _ in range(len(self.links)):
            if link == self.root:
                return T
            above = [
                self.joints[n]
                for n in self.at_link[link]
                if self.joints[n].child == link and self.joints[n].closure is False
            ]
            if not above:
                break
            T = self._step(above[0]) @ T
            link = above[0].parent
        raise LinkageError(f"link {link!r}", "has no way to the root", rule="spanning tree")

    # ---- inside -----------------------------------------------------------------------------

    def _sublinkage(self, label: str, name: str | None) -> str:
        if name is None:
            return self.top
        checks.one_of(f"{label}, sublinkage", name, self.sublinkages)
        return name

    def _joint(self, label: str, name: str) -> Joint:
        return self.joints[checks.one_of(label, name, self.joints)]


def _new_name(kind: str, name: str, *taken: Mapping[str, Any]) -> str:
    """Check the name of a new part, and that there is room for one; its label for people."""
    label = f"{kind} {checked_name(kind, name)!r}"
    if any(name in of for of in taken):
        raise LinkageError(label, "the name stands twice", rule="unique names")
    checks.count(f"{kind}s", len(taken[0]) + 1, MAX_ELEMENTS)
    return label
