"""What a linkage is made of: links, joints, sublinkages and goals, all frozen, and their checks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hier_ik.errors import LinkageError
from hier_ik.joints import JOINT_TYPES, JointType, axis_frame
from hier_ik.tables import Array
from kin_core import checks
from kin_core.errors import InvalidInput
from kin_core.rotations import rotation_defect, rpy_to_matrix

__all__ = [
    "DISPOSITIONS", "GOAL_ROWS", "Goal", "Joint", "LARGEST", "LEVEL_CROSSING", "LEVEL_GOAL",
    "LEVEL_REAL", "LEVEL_VIRTUAL", "Link", "Sublinkage", "WEIGHTS", "checked_limits",
    "checked_name", "checked_priority", "checked_transform", "coordinates", "frame",
    "open_limits", "turned_frames",
]  # fmt: skip


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


def checked_transform(label: str, value: ArrayLike | None) -> Array:
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


def _per_freedom(label: str, value: ArrayLike | None, dof: int, default: float) -> Array:
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


def checked_limits(
    label: str, dof: int, lower: ArrayLike | None, upper: ArrayLike | None,
    velocity: ArrayLike | None,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Check limits (dof,) or numbers; None is none. Those that nothing can reach are opened."""
    lo = _per_freedom(f"{label}, lower", lower, dof, -np.inf)
    hi = _per_freedom(f"{label}, upper", upper, dof, np.inf)
    vel = _per_freedom(f"{label}, velocity", velocity, dof, np.inf)
    if (lo > hi).any():
        raise LinkageError(label, "a lower limit is above the upper one", rule="limits")
    if (lo > LARGEST).any() or (hi < -LARGEST).any():
        raise LinkageError(
            label, f"leaves no coordinate within {LARGEST:g} rad or m", rule="limits"
        )
    if (vel <= 0).any():
        raise LinkageError(label, "velocity limits must be positive", rule="limits")
    lo[lo < -LARGEST] = -np.inf
    hi[hi > LARGEST] = np.inf
    return lo, hi, vel


def open_limits(value: Any, missing: float) -> Any:
    """Limits as a file has them, null where there is none, as numbers."""
    if isinstance(value, list):
        return [missing if v is None else v for v in value]
    return value


def coordinates(label: str, value: ArrayLike | None, dof: int) -> Array:
    """Check the coordinates of a joint (dof,) [rad or m]; None is zero."""
    q = _per_freedom(label, value, dof, 0.0)
    if not (np.abs(q) <= LARGEST).all():
        raise InvalidInput(label, f"must be finite and at most {LARGEST:g} rad or m")
    return q


def checked_name(label: str, value: Any) -> str:
    """Check the name of a part."""
    if not isinstance(value, str) or not value or len(value) > 256 or not value.isprintable():
        raise InvalidInput(label, f"must be a printable name of 1 to 256 characters, got {value!r}")
    return value


def checked_priority(label: str, value: int | None) -> int | None:
    """Check a priority level; None stays."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_LEVEL:
        raise InvalidInput(f"{label}, priority", f"must be an integer from 0 to {MAX_LEVEL}")
    return value


def turned_frames(
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
