"""Hierarchical linkages: links, joints, sublinkages and goals, and the edits that change them.

The parts are frozen; a Linkage holds them by name and replaces them. So a copy is cheap, an edit is
all or nothing, and what a solver was built from cannot change under it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hier_ik.errors import LinkageError
from hier_ik.joints import JOINT_TYPES, JointType, axis_frame, joint_motion
from kin_core import checks
from kin_core.errors import InvalidInput
from kin_core.rotations import inverse_transform, rotation_defect, rpy_to_matrix

__all__ = ["DISPOSITIONS", "GOAL_ROWS", "Goal", "Joint", "Link", "Linkage", "Sublinkage", "frame"]

Array = NDArray[np.float64]

DISPOSITIONS = ("driving", "driven", "simultaneous")
#: Which of x, y, z, rx, ry, rz of the target frame each kind of goal holds.
GOAL_ROWS: dict[str, tuple[bool, ...]] = {
    "pose": (True,) * 6,
    "position": (True, True, True, False, False, False),
    "orientation": (False, False, False, True, True, True),
    "axis": (False, False, False, True, True, False),
    "line": (True, True, False, False, False, False),
    "plane": (False, False, True, False, False, False),
}
#: Priority levels, first to last: real loops, virtual posture, crossing closures, goals.
LEVEL_REAL, LEVEL_VIRTUAL, LEVEL_CROSSING, LEVEL_GOAL = 0, 1, 2, 3
MAX_LEVEL = 15
#: Largest translation and slide [m] and angle [rad] that is taken, and the range of weights.
LARGEST = 1e6
WEIGHTS = (1e-6, 1e6)
MAX_ELEMENTS = 200_000
TOP = "L0"


def frame(
    xyz: ArrayLike = (0.0, 0.0, 0.0),
    rpy: ArrayLike = (0.0, 0.0, 0.0),
    rotation: ArrayLike | None = None,
) -> Array:
    """Return a 4x4 transform from a translation [m] and roll, pitch, yaw [rad] or a rotation."""
    T = np.eye(4)
    T[:3, 3] = checks.shape("xyz", xyz, (3,))
    if rotation is not None:
        T[:3, :3] = checks.shape("rotation", rotation, (3, 3))
    else:
        r = checks.shape("rpy", rpy, (3,))
        T[:3, :3] = rpy_to_matrix(r[0], r[1], r[2])
    return T


@dataclass(frozen=True)
class Link:
    """A rigid body. Virtual links exist in simulation only."""

    name: str
    sublinkage: str
    virtual: bool = False


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint between two links.

    Attributes:
        name: Unique among joints and goals.
        type: Name in the catalogue of joint types.
        parent: Link nearer to the root.
        child: The other link.
        origin: Joint frame in the parent link (4, 4).
        child_origin: Joint frame in the child link (4, 4).
        closure: True for a closure joint, False for one of the spanning tree, None: to be found.
        virtual: Whether it exists in simulation only.
        lower: Lower limits (dof,) [rad or m], -inf where there is none.
        upper: Upper limits (dof,).
        velocity: Velocity limits (dof,) [rad/s or m/s], inf where there is none.
        rest: Rest posture (dof,), or None.
        locked: Whether it is held at its present value.
        priority: Level of a closure, lower numbers first; None: by the rules of the paper.
        weight: Scale of the rows of a closure within its level.
        found: Whether its role was found automatically, and may be found anew.
    """

    name: str
    type: str
    parent: str
    child: str
    origin: Array
    child_origin: Array
    closure: bool | None
    virtual: bool
    lower: Array
    upper: Array
    velocity: Array
    rest: Array | None = None
    locked: bool = False
    priority: int | None = None
    weight: float = 1.0
    found: bool = False

    @property
    def kind(self) -> JointType:
        """Entry of the catalogue."""
        return JOINT_TYPES[self.type]

    @property
    def dof(self) -> int:
        """Number of coordinates."""
        return JOINT_TYPES[self.type].dof

    @cached_property
    def finite(self) -> bool:
        """Whether both joint frames hold finite numbers."""
        return bool(np.isfinite(self.origin).all() and np.isfinite(self.child_origin).all())

    @cached_property
    def limited(self) -> bool:
        """Whether any coordinate has a position or velocity limit."""
        return bool(
            np.isfinite(self.lower).any()
            or np.isfinite(self.upper).any()
            or np.isfinite(self.velocity).any()
        )


@dataclass(frozen=True)
class Sublinkage:
    """A demarcated part of a linkage; the top level has no parent."""

    name: str
    parent: str | None
    disposition: str


@dataclass(frozen=True, eq=False)
class Goal:
    """A task on a link: its frame ``offset`` should meet ``target`` in the reference link.

    Attributes:
        name: Unique among joints and goals.
        link: The link to move.
        reference: Link in which the target is given (usually the root).
        kind: Key of GOAL_ROWS, or "rows".
        rows: Which of x, y, z, rx, ry, rz of the target frame are held.
        target: (4, 4).
        offset: Frame in the link (4, 4).
        priority: Level, lower numbers first.
        weight: Scale of the rows within the level.
    """

    name: str
    link: str
    reference: str
    kind: str
    rows: tuple[bool, ...]
    target: Array
    offset: Array
    priority: int = LEVEL_GOAL
    weight: float = 1.0


def _transform(label: str, value: ArrayLike | None) -> Array:
    """Check a 4x4 rigid transform; None is the identity, three numbers a translation."""
    if value is None:
        return np.eye(4)
    T = checks.finite(label, value)
    if T.shape == (3,):
        T = frame(T)
    if T.shape != (4, 4):
        raise InvalidInput(label, f"must be a 4x4 transform or 3 numbers, got {T.shape}")
    defect = rotation_defect(np.ascontiguousarray(T[:3, :3]))
    if defect > 1e-6 or T[3, 0] or T[3, 1] or T[3, 2] or T[3, 3] != 1.0:
        raise InvalidInput(label, "is not a rigid transform")
    if np.abs(T[:3, 3]).max() > LARGEST:
        raise InvalidInput(label, f"translations beyond {LARGEST:g} m are not accepted")
    T = T.copy()
    if defect > 1e-14:  # the nearest rotation, so that no error builds up
        u, _, v = np.linalg.svd(T[:3, :3])
        T[:3, :3] = u @ v
    return T


def _limits(label: str, value: ArrayLike | None, dof: int, default: float) -> Array:
    if value is None:
        return np.full(dof, default)
    try:
        a = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(label, "must hold numbers") from None
    if a.ndim == 0:
        a = np.full(dof, float(a))
    if a.shape != (dof,):
        raise InvalidInput(label, f"must have {dof} numbers, got shape {a.shape}")
    if np.isnan(a).any():
        raise InvalidInput(label, "must not be NaN")
    return a.copy()


def _check_limits(label: str, lower: Array, upper: Array, velocity: Array) -> None:
    """Refuse limits that leave no coordinate; open those that no coordinate can reach."""
    if (lower > upper).any():
        raise LinkageError(label, "a lower limit is above the upper one", rule="limits")
    if (lower > LARGEST).any() or (upper < -LARGEST).any():
        raise LinkageError(
            label, f"leaves no coordinate within {LARGEST:g} rad or m", rule="limits"
        )
    if (velocity <= 0).any():
        raise LinkageError(label, "velocity limits must be positive", rule="limits")
    lower[lower < -LARGEST] = -np.inf
    upper[upper > LARGEST] = np.inf


def coordinates(label: str, value: ArrayLike | None, dof: int) -> Array:
    """Check the coordinates of a joint (dof,) [rad or m]; None is zero."""
    q = _limits(label, value, dof, 0.0)
    if not (np.abs(q) <= LARGEST).all():
        raise InvalidInput(label, f"must be finite and at most {LARGEST:g} rad or m")
    return q


def _name(label: str, value: Any) -> str:
    if not isinstance(value, str) or not value or len(value) > 256 or not value.isprintable():
        raise InvalidInput(label, f"must be a printable name of 1 to 256 characters, got {value!r}")
    return value


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

    # ---- building ---------------------------------------------------------------------------

    def add_link(self, name: str, sublinkage: str | None = None, *, virtual: bool = False) -> Link:
        """Add a link; the first one is the ground."""
        _name("link", name)
        if name in self.links:
            raise LinkageError(f"link {name!r}", "the name stands twice", rule="unique names")
        checks.count("links", len(self.links) + 1, MAX_ELEMENTS)
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
        _name("sublinkage", name)
        if name in self.sublinkages:
            raise LinkageError(f"sublinkage {name!r}", "the name stands twice", rule="unique names")
        checks.one_of(f"sublinkage {name!r}, disposition", disposition, DISPOSITIONS)
        parent = self._sublinkage(f"sublinkage {name!r}, parent", parent)
        links = list(links)
        for l in links:
            self._link(f"sublinkage {name!r}", l)
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
        """Add a joint between two links.

        Args:
            name: Unique among joints and goals.
            type: Name in the catalogue of joint types.
            parent: Link nearer to the root.
            child: The other link.
            xyz: Translation of the joint frame in the parent link [m].
            rpy: Roll, pitch, yaw of the joint frame in the parent link [rad].
            origin: Instead of xyz and rpy the whole transform (4, 4).
            child_origin: Joint frame in the child link (4, 4) or a translation (3,).
            axis: Axis in the joint frame, z if not given (universal: its first, x).
            axis2: Second axis of a universal joint.
            child_axis: The axis in the frame of the child link, where it differs (closures).
            closure: True, False (in the spanning tree), or None to have it found.
            virtual: Whether it exists in simulation only.
            lower: Lower limits (dof,) or a number [rad or m].
            upper: Upper limits.
            velocity: Velocity limits [rad/s or m/s].
            value: Start value of a tree joint (dof,).
            rest: Rest posture (dof,).
            locked: Whether it is held at its value.
            priority: Level of a closure; None: by the rules of the paper.
            weight: Scale of the rows of a closure within its level.
        """
        label = f"joint {_name('joint', name)!r}"
        if name in self.joints or name in self.goals:
            raise LinkageError(label, "the name stands twice", rule="unique names")
        checks.count("joints", len(self.joints) + 1, MAX_ELEMENTS)
        checks.one_of(f"{label}, type", type, JOINT_TYPES)
        self._link(f"{label}, parent", parent)
        self._link(f"{label}, child", child)
        if parent == child:
            raise LinkageError(label, f"connects link {parent!r} with itself", rule="two links")
        if origin is not None:
            A = _transform(f"{label}, origin", origin)
        else:
            try:
                A = _transform(f"{label}, origin", frame(xyz, rpy))
            except InvalidInput as error:
                raise LinkageError(label, str(error), rule="finite geometry") from None
        B = _transform(f"{label}, child_origin", child_origin)
        A, B = _with_axes(label, type, A, B, axis, axis2, child_axis)
        kind = JOINT_TYPES[type]
        lo = _limits(f"{label}, lower", lower, kind.dof, -np.inf)
        hi = _limits(f"{label}, upper", upper, kind.dof, np.inf)
        vel = _limits(f"{label}, velocity", velocity, kind.dof, np.inf)
        _check_limits(label, lo, hi, vel)
        joint = Joint(
            name, type, parent, child, A, B, closure, bool(virtual), lo, hi, vel,
            None if rest is None else coordinates(f"{label}, rest", rest, kind.dof),
            bool(locked), _priority(label, priority),
            checks.within(f"{label}, weight", weight, *WEIGHTS),
        )  # fmt: skip
        self._insert(joint, coordinates(f"{label}, value", value, kind.dof))
        return joint

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
        """Add a task on a link.

        Args:
            name: Unique among joints and goals.
            link: The link to move.
            kind: pose, position, orientation, axis (z axes parallel), line (point on the z axis of
                the target), plane (point in the xy plane of the target), or rows.
            target: Target frame in the reference link (4, 4), or a translation (3,); where the link
                stands now if not given.
            offset: Frame in the link (4, 4), or a translation (3,).
            reference: Link in which the target is given; the root if not given.
            rows: Only for kind "rows": which of x, y, z, rx, ry, rz are held.
            priority: Level, lower numbers first; 3 if not given.
            weight: Scale of the rows within the level.
        """
        label = f"goal {_name('goal', name)!r}"
        if name in self.joints or name in self.goals:
            raise LinkageError(label, "the name stands twice", rule="unique names")
        self._link(f"{label}, link", link)
        reference = self.root if reference is None else reference
        self._link(f"{label}, reference", reference)
        if link == reference:
            raise LinkageError(label, f"link {link!r} is its own reference", rule="two links")
        checks.one_of(f"{label}, kind", kind, [*GOAL_ROWS, "rows"])
        if kind == "rows":
            if rows is None or len(rows) != 6:
                raise InvalidInput(f"{label}, rows", "needs six truth values")
            held = tuple(bool(r) for r in rows)
        else:
            held = GOAL_ROWS[kind]
        off = _transform(f"{label}, offset", offset)
        if target is None:
            poses = self.link_poses((link, reference))
            tgt = inverse_transform(poses[reference]) @ poses[link] @ off
        else:
            tgt = _transform(f"{label}, target", target)
        level = _priority(label, priority)
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
        self.values.pop(name, None)
        self.at_link[joint.parent].pop(name, None)
        self.at_link[joint.child].pop(name, None)
        free = leaf and not any(joint.child in (g.link, g.reference) for g in self.goals.values())
        self.journal.append(("remove_leaf" if free else "remove_joint", name))

    def remove_link(self, name: str) -> None:
        """Remove a link with all its joints and goals."""
        self._link("remove_link", name)
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
        sub = self.sublinkages.get(name)
        if sub is None:
            checks.one_of("remove_sublinkage", name, self.sublinkages)
            return
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
            op = "split" if joint.closure else "lock" if locked else "unlock"
            self.journal.append((op, name))

    def set_limits(
        self,
        name: str,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        velocity: ArrayLike | None = None,
    ) -> None:
        """Change the limits of a joint; None takes a limit away."""
        joint = self._joint("set_limits", name)
        label = f"joint {name!r}"
        lo = _limits(f"{label}, lower", lower, joint.dof, -np.inf)
        hi = _limits(f"{label}, upper", upper, joint.dof, np.inf)
        vel = _limits(f"{label}, velocity", velocity, joint.dof, np.inf)
        _check_limits(label, lo, hi, vel)
        changed = replace(joint, lower=lo, upper=hi, velocity=vel)
        split = joint.closure is True and joint.limited != changed.limited
        self.joints[name] = changed
        self.journal.append(("split" if split else "set_limits", name))

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
        r = None
        if rest is not None:
            r = coordinates(f"joint {name!r}, rest", rest, joint.dof)
        self.joints[name] = replace(joint, rest=r)
        self.journal.append(("set_rest", name))

    def set_goal(
        self, name: str, target: ArrayLike | None = None, offset: ArrayLike | None = None
    ) -> None:
        """Move a goal."""
        checks.one_of("goal", name, self.goals)
        goal = self.goals[name]
        if target is not None:
            goal = replace(goal, target=_transform(f"goal {name!r}, target", target))
        if offset is not None:
            goal = replace(goal, offset=_transform(f"goal {name!r}, offset", offset))
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
            self._link("move_links", l)
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
            {k: dict(v) for k, v in self.at_link.items()},
        )  # fmt: skip

    def adopt(self, other: Linkage) -> None:
        """Become what another linkage is; its journal is added to this one's."""
        self.root, self.links, self.joints, self.values = (
            other.root, other.links, other.joints, other.values,
        )  # fmt: skip
        self.sublinkages, self.goals = other.sublinkages, other.goals
        self.at_link = other.at_link
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

    def _insert(self, joint: Joint, value: Array) -> None:
        fresh = joint.closure is False and not self.at_link[joint.child]
        self.joints[joint.name] = joint
        if not joint.closure:
            self.values[joint.name] = value
        self.at_link[joint.parent][joint.name] = None
        self.at_link[joint.child][joint.name] = None
        self.journal.append(("add_leaf" if fresh else "add_joint", joint.name))

    def _sublinkage(self, label: str, name: str | None) -> str:
        if name is None:
            return self.top
        checks.one_of(f"{label}, sublinkage", name, self.sublinkages)
        return name

    def _link(self, label: str, name: str) -> None:
        if name not in self.links:
            checks.one_of(label, name, self.links)

    def _joint(self, label: str, name: str) -> Joint:
        if name not in self.joints:
            checks.one_of(label, name, self.joints)
        return self.joints[name]


def _priority(label: str, value: int | None) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_LEVEL:
        raise InvalidInput(f"{label}, priority", f"must be an integer from 0 to {MAX_LEVEL}")
    return value


def _with_axes(
    label: str,
    type: str,
    A: Array,
    B: Array,
    axis: ArrayLike | None,
    axis2: ArrayLike | None,
    child_axis: ArrayLike | None,
) -> tuple[Array, Array]:
    """Turn the joint frames so that their canonical axes are the given ones."""
    if axis is None and axis2 is None and child_axis is None:
        return A, B

    def direction(what: str, value: ArrayLike) -> Array:
        a = checks.shape(f"{label}, {what}", value, (3,))
        if np.linalg.norm(a) < 1e-9:
            raise InvalidInput(f"{label}, {what}", "must not be zero")
        return a

    first = [1.0, 0, 0] if type == "universal" else [0, 0, 1.0]
    a = direction("axis", first if axis is None else axis)
    a2 = None if axis2 is None else direction("axis2", axis2)
    if a2 is not None and np.linalg.norm(np.cross(a, a2)) < 1e-9 * np.linalg.norm(a) ** 2:
        raise InvalidInput(f"{label}, axis2", "must not be parallel to axis")
    R = np.eye(4)
    R[:3, :3] = axis_frame(type, a, a2)
    if child_axis is None:
        return A @ R, B @ R
    S = np.eye(4)
    S[:3, :3] = axis_frame(type, direction("child_axis", child_axis), a2)
    return A @ R, B @ S
