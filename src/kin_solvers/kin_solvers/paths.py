"""Every continuous joint path of an arm whose tip follows a path of poses.

All postures are found at some of the poses, with proofs (``solve``), and each is followed from
there in both directions by steps that are proven (``tubes``). What begins or ends in between is a
branch that is born, meets another, or leaves the limits of a joint.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kin_core.rotations import exp_so3, log_so3
from kin_core.task import Task
from kin_solvers import border
from kin_solvers.certificate import Certifier
from kin_solvers.equations import Equations
from kin_solvers.errors import RequestError, SizeError
from kin_solvers.isolate import bounds_of
from kin_solvers.mechanism import MAX_MAGNITUDE, Mechanism, Variable
from kin_solvers.settings import Settings
from kin_solvers.solve import solve
from kin_solvers.system import UNIT_ROUNDOFF, System, around_target
from kin_solvers.tubes import BUDGET, DONE, LIMIT, SINGULAR, SLACK, Ends, Line, follow

__all__ = [
    "Branch",
    "Event",
    "JointPath",
    "PathTree",
    "along_poses",
    "follow_path",
    "solve_path",
    "straight_line",
]

Array = NDArray[np.float64]

_TWO_PI = 2.0 * math.pi
#: Poses of a path at most.
MAX_POSES = 10_000
#: Turn of a step for each metre of its length, as in MoveIt [rad/m].
TURN_PER_STEP = 3.5
#: A turn from one pose to the next that is nearer to a half turn is refused [rad].
HALF_TURN = 1e-3
#: All postures are looked for at every so many poses.
LOOK = 4
#: Steps that may be tried for one posture, for each part of the path, and at least.
STEPS_EACH, STEPS_LEAST = 100, 20_000
#: Configurations nearer to each other are one posture; the ends of two that meet are nearer.
SAME, MEETING = 1e-6, 0.05
#: Places of the ends of two postures that meet are nearer to each other.
MEETING_PLACE = 1e-4
#: How far a start may be from the posture that is followed from it [rad, m].
START = 1e-3

_KINDS = {DONE: "path", LIMIT: "limit", SINGULAR: "singular", BUDGET: "unfinished"}


@dataclass(frozen=True)
class Event:
    """Where a branch begins or ends, and why.

    Attributes:
        kind: "path": where the path itself begins or ends; "limit": a joint comes to its limit;
            "meets": another branch begins or ends there, too; "singular": no step on can be
            proven, as at a singularity; "unfinished": the budget of steps is used up.
        place: Where on the path: 3.25 is a quarter of the way from pose 3 to pose 4.
        configuration: The last one that is proven, shape (V,) [rad, m].
        joint: The joint that comes to its limit.
        partner: The branch that it meets.
    """

    kind: str
    place: float
    configuration: Array = field(repr=False)
    joint: str = ""
    partner: int = -1

    @property
    def reason(self) -> str:
        """A few words for people."""
        return {
            "path": "the end of the path",
            "limit": f"{self.joint} is at its limit",
            "meets": f"branch {self.partner} meets it (a singularity)",
            "singular": "a singularity",
            "unfinished": "the budget of steps is used up",
        }[self.kind]


@dataclass(frozen=True)
class Branch:
    """One posture along a part of the path, continuous by proof.

    Attributes:
        first: The first pose at which it exists.
        positions: At this pose and the next ones, shape (K, V) [rad, m]; angles run on over +-pi.
        lower: What they are at least on the whole branch, between the poses too, shape (V,).
        upper: What they are at most, shape (V,).
        begins: Where and why.
        ends: Where and why.
    """

    first: int
    positions: Array = field(repr=False)
    lower: Array = field(repr=False)
    upper: Array = field(repr=False)
    begins: Event
    ends: Event

    @property
    def last(self) -> int:
        """The last pose at which it exists."""
        return self.first + len(self.positions) - 1

    @property
    def length(self) -> float:
        """Length of the way of the joints, pose by pose (Euclidean) [rad, m]."""
        return float(np.linalg.norm(np.diff(self.positions, axis=0), axis=1).sum())


@dataclass(frozen=True)
class JointPath:
    """A way of the joints along the path, from its beginning on.

    Attributes:
        positions: At each pose as far as it goes, shape (K, V) [rad, m].
        fraction: Share of the path, in poses, that is followed: 0 to 1.
        ends: Where and why it ends; None if no posture is there at the beginning.
        branch: Number of the branch in its tree; -1 for none.
        cost: Distance of its start to the seed plus its length (Euclidean) [rad, m].
        message: For people; empty if it goes all the way.
    """

    positions: Array = field(repr=False)
    fraction: float
    ends: Event | None
    branch: int = -1
    cost: float = math.inf
    message: str = ""

    @property
    def whole(self) -> bool:
        """Whether it goes all the way."""
        return self.ends is not None and self.ends.kind == "path"


@dataclass(frozen=True)
class PathTree:
    """All branches that were found on a path.

    Attributes:
        arm: The arm.
        poses: The poses of its tip, shape (N, 4, 4) [m].
        branches: The branches.
        looked: Whether all postures at each pose are known, each by a proof, shape (N,).
    """

    arm: Mechanism
    poses: Array = field(repr=False)
    branches: tuple[Branch, ...]
    looked: NDArray[np.bool_] = field(repr=False)

    @property
    def complete(self) -> bool:
        """Whether every path that goes all the way is among the branches.

        That is: all postures at the first pose are known, and none of them was given up for a
        reason other than limits and singularities.
        """
        return bool(self.looked[0]) and not any(b.ends.kind == "unfinished" for b in self.branches)

    @property
    def whole(self) -> tuple[int, ...]:
        """Branches that go all the way."""
        return tuple(
            k for k, b in enumerate(self.branches) if b.begins.kind == b.ends.kind == "path"
        )

    @property
    def message(self) -> str:
        """One sentence for people."""
        text = f"{len(self.branches)} branches, {len(self.whole)} of them all the way"
        return text if self.complete else f"{text}; not all postures at the start are known"

    def best(self, seed: ArrayLike | None = None, *, weights: ArrayLike | None = None) -> JointPath:
        """The path of least cost from a seed; where none goes all the way, the longest one.

        The cost is the distance of the start to the seed plus the length of the path. Of a joint
        that may turn more than once, the turn nearest to the seed is taken that stays within the
        limits.

        Args:
            seed: Joint positions, shape (V,) [rad, m]; zeros if None.
            weights: By which differences of each joint are multiplied, shape (V,).
        """
        n = len(self.arm.variables)
        start = np.zeros(n) if seed is None else border.array("seed", seed, (n,))
        scale = np.ones(n) if weights is None else border.array("weights", weights, (n,))
        way: _Way | None = None
        found: list[JointPath] = []
        for number, branch in enumerate(self.branches):
            if branch.begins.kind != "path":
                continue
            positions = branch.positions + _TWO_PI * _turns(self.arm, branch, start)
            ends = branch.ends
            shift = positions[0] - branch.positions[0]
            if _beyond(self.arm, branch.lower + shift, branch.upper + shift):
                way = way or _Way.of(self.arm, self.poses)
                positions, ends = way.followed(positions[0])
            cost = float(np.linalg.norm(scale * (positions[0] - start)))
            cost += float(np.linalg.norm(scale * np.diff(positions, axis=0), axis=1).sum())
            found.append(_joint_path(positions, ends, len(self.poses), number, cost))
        if not found:
            return JointPath(np.empty((0, n)), 0.0, None, message=self._none_at_start())
        best = min(found, key=lambda path: (-path.fraction, path.cost))
        if best.whole:
            return best
        return replace(best, message=f"no path goes all the way; the longest: {best.message}")

    def _none_at_start(self) -> str:
        if self.looked[0]:
            return "proven: no configuration within the limits reaches the first pose"
        return "no posture at the first pose could be followed"


def straight_line(start: ArrayLike, goal: ArrayLike, count: int) -> Array:
    """Poses on a line, turning about one axis, evenly spread; shape (count, 4, 4) [m].

    Args:
        start: The first pose, shape (4, 4).
        goal: The last one, shape (4, 4).
        count: How many, both ends included.
    """
    count = border.whole("count", count, 2, MAX_POSES, RequestError)
    A, B = (border.array(name, T, (4, 4)) for name, T in (("start", start), ("goal", goal)))
    turn = log_so3(np.ascontiguousarray(A[:3, :3].T @ B[:3, :3]))
    if np.linalg.norm(turn) > math.pi - HALF_TURN:
        raise RequestError("goal", "is a half turn away from the start: which way is not known")
    shares = np.linspace(0.0, 1.0, count)
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, 3] = A[:3, 3] + shares[:, None] * (B[:3, 3] - A[:3, 3])
    poses[:, :3, :3] = [A[:3, :3] @ exp_so3(share * turn) for share in shares]
    poses[-1] = B
    return poses


def along_poses(
    poses: Sequence[ArrayLike] | Array, max_step: float, max_turn: float
) -> tuple[Array, NDArray[np.int64]]:
    """Poses on the straight lines between given ones, no farther apart than asked for.

    Args:
        poses: The given ones, shape (N, 4, 4) [m].
        max_step: Largest distance [m].
        max_turn: Largest turn [rad].

    Returns:
        The poses, shape (M, 4, 4), and which of them are the given ones, shape (N,).
    """
    given = border.array("poses", poses, (None, 4, 4))
    parts: list[Array] = [given[:1]]
    for k in range(len(given) - 1):
        turn = log_so3(np.ascontiguousarray(given[k, :3, :3].T @ given[k + 1, :3, :3]))
        way = float(np.linalg.norm(given[k + 1, :3, 3] - given[k, :3, 3]))
        steps = max(way / max_step, float(np.linalg.norm(turn)) / max_turn, 1.0)
        if sum(map(len, parts)) + steps > MAX_POSES:
            raise SizeError(f"poses: more than {MAX_POSES} with steps of {max_step:g} m")
        parts.append(straight_line(given[k], given[k + 1], math.ceil(steps - 1e-9) + 1)[1:])
    ends = np.cumsum([len(part) for part in parts]) - 1
    return np.concatenate(parts), ends


def solve_path(
    arm: Mechanism,
    poses: ArrayLike,
    settings: Settings | None = None,
    *,
    look: int = LOOK,
    task: Task | None = None,
) -> PathTree:
    """Every branch of postures of an arm along a path of poses.

    Between two poses the tip moves on a line and turns about one axis. Postures are looked for at
    the first pose, at every ``look``-th one and at the last. A branch that is born and ends between
    two of these is not found; it is part of no path that goes all the way.

    Args:
        arm: An arm of six joints (its target does not matter).
        poses: Of the tip in the base, shape (N, 4, 4) [m].
        settings: How postures are looked for.
        look: At which poses all postures are looked for.
        task: Cancel, time budget and progress.
    """
    task = Task() if task is None else border.instance("task", task, Task)
    settings = Settings(sigma=0.1, threads=1) if settings is None else settings
    look = border.whole("look", look, 1, MAX_POSES, RequestError)
    way = _Way.of(arm, poses)
    count = len(way.poses)
    looked = np.zeros(count, dtype=bool)
    branches: list[Branch] = []
    for k in sorted({*range(0, count, look), count - 1}):
        task.check()
        task.progress(k / count, branches=len(branches))
        manifold = solve(arm.with_target(way.poses[k]), settings, task=task)
        task.check()
        parts = manifold.components
        roots = [c.point for c in parts if c.dimension == 0 and c.proven]
        new = _unknown(np.array(roots).reshape(-1, len(arm.variables)), branches, k, way.angles)
        looked[k] = manifold.separated and len(roots) == len(parts) and new is not None
        for root in new or ():
            _add(branches, way.branch(root, k, task), way.angles)
            task.check()
    task.progress(1.0, branches=len(branches))
    return PathTree(arm, way.poses, tuple(_paired(branches, way.angles)), looked)


def follow_path(
    arm: Mechanism,
    poses: ArrayLike,
    start: ArrayLike,
    *,
    limited: Collection[str] = (),
    task: Task | None = None,
) -> JointPath:
    """The way of the joints from one configuration, which has the tip at the first pose.

    Args:
        arm: An arm of six joints (its target does not matter).
        poses: Of the tip in the base, shape (N, 4, 4) [m].
        start: Joint positions, shape (V,) [rad, m].
        limited: Joints whose range is one turn and whose ends are limits all the same; other joints
            with such a range turn freely.
        task: Cancel and time budget.
    """
    way = _Way.of(arm, poses)
    q = border.array("start", start, (len(arm.variables),))
    positions, ends = way.followed(q, limited, Task() if task is None else task)
    if np.abs(positions[0] - q).max() > START:
        raise RequestError("start", "does not bring the tip to the first pose")
    return _joint_path(positions, ends, len(way.poses), -1, math.nan)


def _joint_path(positions: Array, ends: Event, poses: int, branch: int, cost: float) -> JointPath:
    """A path with what is to be said of it."""
    parts = poses - 1
    message = (
        "" if ends.kind == "path" else f"it ends at {ends.place:.6g} of {parts}: {ends.reason}"
    )
    return JointPath(positions, ends.place / parts, ends, branch, cost, message)


# Following ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Way:
    """An arm and a path, prepared for ``tubes.follow``."""

    arm: Mechanism
    poses: Array
    line: Line
    tables: Any
    bounds: Any
    unit: Array

    @classmethod
    def of(cls, arm: Mechanism, poses: ArrayLike) -> _Way:
        """Check and prepare."""
        arm = border.instance("arm", arm, Mechanism)
        given = border.array("poses", poses, (None, 4, 4))
        if not 2 <= len(given) <= MAX_POSES:
            raise RequestError("poses", f"must be 2 to {MAX_POSES}, got {len(given)}")
        T = np.array([arm.with_target(pose).target for pose in given])
        arm = arm.with_target(T[0])
        system = System.of(arm)
        if not Certifier(system).plain or len(arm.loops) > 1:
            raise RequestError("arm", f"must have six joints that move freely, {arm.name} has not")
        before, after = around_target(arm)
        scale = system.length
        R, p = T[:, :3, :3], T[:, :3, 3] * scale
        turn = np.array([log_so3(np.ascontiguousarray(a.T @ b)) for a, b in pairwise(R)])
        wide = np.flatnonzero(np.linalg.norm(turn, axis=1) > math.pi - HALF_TURN)
        if len(wide):
            raise RequestError(
                f"poses[{wide[0] + 1}]",
                "is a half turn from the one before: which way is not known",
            )
        ends = [R[k] @ exp_so3(w) - R[k + 1] for k, w in enumerate(turn)]
        line = Line(
            before=_rows(before.matrix, scale),
            after=_rows(after.matrix, scale),
            back=np.ascontiguousarray(R[:-1].transpose(0, 2, 1)),
            place=p[:-1].copy(),
            way=np.diff(p, axis=0),
            turn=turn,
            speed=np.linalg.norm(turn, axis=1) + np.linalg.norm(np.diff(p, axis=0), axis=1),
        )
        # What the closing constant adds to the reach, and what is unknown of it, at every pose.
        lengths = scale * (before.length + after.length) + float(np.linalg.norm(p, axis=1).max())
        reach = float(system.reach[0]) - float(np.linalg.norm(system.C[-1, 3:12:4])) + lengths
        alpha, beta = (float(u) for u in system.unknown[0])
        rounding = 256.0 * UNIT_ROUNDOFF
        alpha += before.rotation + after.rotation + rounding + 4.0 * float(np.abs(ends).max())
        beta += scale * (before.translation + after.translation) + rounding * lengths
        bounds = bounds_of(
            replace(
                system, reach=np.array([reach * (1.0 + 1e-9)]), unknown=np.array([[alpha, beta]])
            )
        )
        return cls(arm, T, line, Equations.of(system).tables, bounds, system.unit)

    @property
    def angles(self) -> NDArray[np.bool_]:
        """Which variables are angles on the full circle, shape (V,)."""
        return np.array([v.cyclic for v in self.arm.variables])

    def _follow(
        self, root: Array, pose: int, way: int, ends: Ends, task: Task
    ) -> tuple[Array, Array, Array, Event]:
        """Positions at the poses that are reached, in this order, their hull, and the event."""
        parts, n = len(self.poses) - 1, len(root)
        x = root * self.unit
        points, low, high = np.empty((parts + 1, n)), np.empty((parts, n)), np.empty((parts, n))
        points[pose] = x
        tables = self.tables._replace(C=self.tables.C.copy())
        most = max(STEPS_LEAST, STEPS_EACH * parts)
        with task:
            last, kind, place, joint = follow(
                self.line, tables, self.bounds, ends, pose, way, x, points, low, high, most,
                task.flag,
            )  # fmt: skip
        event = Event(
            _KINDS[kind], place, x / self.unit, self.arm.names[joint] if kind == LIMIT else ""
        )
        rows = points[pose : last + 1] if way > 0 else points[last : pose + 1][::-1]
        touched = slice(pose, math.ceil(place)) if way > 0 else slice(math.floor(place), pose)
        lower = np.minimum(low[touched].min(axis=0, initial=np.inf), rows.min(axis=0))
        upper = np.maximum(high[touched].max(axis=0, initial=-np.inf), rows.max(axis=0))
        return rows / self.unit, lower / self.unit, upper / self.unit, event

    def branch(self, root: Array, pose: int, task: Task) -> Branch:
        """The branch through a posture at a pose, shape (V,) [rad, m]."""
        ends = self._limits(lambda v: not v.cyclic)
        forth, low, high, ending = self._follow(root, pose, 1, ends, task)
        back, low_back, high_back, beginning = self._follow(root, pose, -1, ends, task)
        return Branch(
            first=pose - len(back) + 1,
            positions=np.concatenate([back[::-1], forth[1:]]),
            lower=np.minimum(low, low_back),
            upper=np.maximum(high, high_back),
            begins=beginning,
            ends=ending,
        )

    def followed(
        self, start: Array, limited: Collection[str] = (), task: Task | None = None
    ) -> tuple[Array, Event]:
        """Positions from a start on, within all limits, and where they end."""
        ends = self._limits(lambda v: not v.cyclic or v.name in limited or _wide(v))
        rows, _, _, event = self._follow(start, 0, 1, ends, Task() if task is None else task)
        return rows, event

    def _limits(self, has: Callable[[Variable], bool]) -> Ends:
        """The ranges of variables that have limits (system units)."""
        variables = self.arm.variables
        low = np.array([v.lower if has(v) else -2.0 * MAX_MAGNITUDE for v in variables])
        high = np.array([v.upper if has(v) else 2.0 * MAX_MAGNITUDE for v in variables])
        return Ends(low * self.unit, high * self.unit)


def _rows(matrix: Array, scale: float) -> Array:
    """The upper rows of a transform, lengths scaled, shape (3, 4)."""
    rows = np.ascontiguousarray(matrix[:3])
    rows[:, 3] *= scale
    return rows


# Branches ----------------------------------------------------------------------------------------


def _gaps(a: Array, b: Array, angles: NDArray[np.bool_]) -> Array:
    """Largest difference of configurations, shape (N, V) and (M, V), turns apart; shape (N, M)."""
    gap = a[:, None] - b[None]
    gap = np.where(angles, gap - _TWO_PI * np.round(gap / _TWO_PI), gap)
    return np.asarray(np.abs(gap).max(axis=2, initial=0.0))


def _unknown(
    roots: Array, branches: list[Branch], pose: int, angles: NDArray[np.bool_]
) -> list[Array] | None:
    """Postures at a pose that are on no branch yet; None if they cannot be told apart."""
    here = [b.positions[pose - b.first] for b in branches if b.first <= pose <= b.last]
    same = _gaps(roots, np.array(here).reshape(-1, roots.shape[1]), angles) < SAME
    if same.sum(axis=0).max(initial=0) > 1 or same.sum(axis=1).max(initial=0) > 1:
        return None
    return list(roots[~same.any(axis=1)])


def _add(branches: list[Branch], new: Branch, angles: NDArray[np.bool_]) -> None:
    """Add a branch, or join it with one that was given up too early and is the same."""
    for number, old in enumerate(branches):
        shared = range(max(old.first, new.first), min(old.last, new.last) + 1)
        if any(
            _gaps(old.positions[k - old.first][None], new.positions[k - new.first][None], angles)
            < SAME
            for k in shared
        ):
            branches[number] = _joined(old, new, shared[0])
            return
    branches.append(new)


def _joined(a: Branch, b: Branch, pose: int) -> Branch:
    """Two branches that are one: each end is the farther one of both."""
    shift = _TWO_PI * np.round(
        (a.positions[pose - a.first] - b.positions[pose - b.first]) / _TWO_PI
    )
    early, late = (a, b) if a.first <= b.first else (b, a)
    early, late = (_shifted(x, shift if x is b else 0.0 * shift) for x in (early, late))
    tail = (
        late.positions[early.last + 1 - late.first :]
        if late.last > early.last
        else late.positions[:0]
    )
    return Branch(
        first=early.first,
        positions=np.concatenate([early.positions, tail]),
        lower=np.minimum(early.lower, late.lower),
        upper=np.maximum(early.upper, late.upper),
        begins=min(early.begins, late.begins, key=lambda e: e.place),
        ends=max(early.ends, late.ends, key=lambda e: e.place),
    )


def _shifted(branch: Branch, shift: Array) -> Branch:
    """A branch some turns away."""
    return replace(
        branch, positions=branch.positions + shift, lower=branch.lower + shift,
        upper=branch.upper + shift,
    )  # fmt: skip


def _paired(branches: list[Branch], angles: NDArray[np.bool_]) -> list[Branch]:
    """Branches with the partners that they meet, or are born with, named."""
    result = list(branches)
    for name in ("begins", "ends"):
        events = [getattr(b, name) for b in result]
        loose = [k for k, e in enumerate(events) if e.kind == "singular"]
        if len(loose) < 2:
            continue
        points = np.array([events[k].configuration for k in loose])
        places = np.array([events[k].place for k in loose])
        far = _gaps(points, points, angles)
        far[np.abs(places[:, None] - places[None]) > MEETING_PLACE] = np.inf
        np.fill_diagonal(far, np.inf)
        nearest = far.argmin(axis=1)
        for i, k in enumerate(loose):
            j = int(nearest[i])
            if far[i, j] < MEETING and nearest[j] == i:
                event = replace(events[k], kind="meets", partner=loose[j])
                result[k] = replace(result[k], **{name: event})
    return result


# Limits of joints that turn more than once ------------------------------------------------------


def _beyond(arm: Mechanism, lower: Array, upper: Array) -> bool:
    """Whether a joint of more than one turn leaves its limits on a branch."""
    ends = np.array([(v.lower, v.upper) for v in arm.variables])
    wide = np.array([_wide(v) for v in arm.variables])
    return bool(np.any(wide & ((lower < ends[:, 0] - SLACK) | (upper > ends[:, 1] + SLACK))))


def _longest(variable: Variable, positions: Array, nearest: int) -> int:
    """The turn with which a joint stays within its limits longest, counted in poses."""
    first = math.ceil((variable.lower - SLACK - positions[0]) / _TWO_PI)
    last = math.floor((variable.upper + SLACK - positions[0]) / _TWO_PI)

    def stays(turn: int) -> int:
        q = positions + _TWO_PI * turn
        out = np.flatnonzero((q < variable.lower - SLACK) | (q > variable.upper + SLACK))
        return int(out[0]) if len(out) else len(q)

    return max(range(first, last + 1), key=lambda turn: (stays(turn), -abs(turn - nearest)))


def _wide(variable: Variable) -> bool:
    """Whether a joint turns more than once, and has limits."""
    return variable.cyclic and variable.upper - variable.lower > _TWO_PI + 1e-9


def _turns(arm: Mechanism, branch: Branch, seed: Array) -> Array:
    """Whole turns to add to each joint: nearest to the seed, within the limits if that can be."""
    turns = np.zeros(len(seed))
    for k, variable in enumerate(arm.variables):
        if not variable.cyclic:
            continue
        start = branch.positions[0, k]
        nearest = round((seed[k] - start) / _TWO_PI)
        if _wide(variable):
            first = math.ceil((variable.lower - SLACK - branch.lower[k]) / _TWO_PI)
            last = math.floor((variable.upper + SLACK - branch.upper[k]) / _TWO_PI)
            if first <= last:
                nearest = min(max(nearest, first), last)
            else:
                nearest = _longest(variable, branch.positions[:, k], nearest)
        turns[k] = nearest
    return turns
