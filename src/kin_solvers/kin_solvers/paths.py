"""Every continuous joint path of an arm whose tip follows a path of poses.

All postures are found at some of the poses, with proofs (``solve``), and each is followed from
there in both directions by steps that are proven (``tubes``). What begins or ends in between is a
branch that is born, meets another, or leaves the limits of a joint.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kin_core.task import Task
from kin_solvers import border
from kin_solvers.branches import Branch, Event, add_branch, paired, unknown_at
from kin_solvers.errors import RequestError
from kin_solvers.follower import Follower, turns_more_than_once
from kin_solvers.lines import MAX_POSES
from kin_solvers.mechanism import Mechanism, Variable
from kin_solvers.settings import Settings
from kin_solvers.solve import solve
from kin_solvers.tubes import SLACK

__all__ = ["LOOK", "JointPath", "PathTree", "follow_path", "solve_path"]

Array = NDArray[np.float64]

_TWO_PI = 2.0 * math.pi
#: All postures are looked for at every so many poses.
LOOK = 4
#: How far a start may be from the posture that is followed from it [rad, m].
START = 1e-3


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
        way: Follower | None = None
        found: list[JointPath] = []
        for number, branch in enumerate(self.branches):
            if branch.begins.kind != "path":
                continue
            positions = branch.positions + _TWO_PI * _turns(self.arm, branch, start)
            ends = branch.ends
            shift = positions[0] - branch.positions[0]
            if _beyond(self.arm, branch.lower + shift, branch.upper + shift):
                way = way or Follower.of(self.arm, self.poses)
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
    way = Follower.of(arm, poses)
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
        new = unknown_at(np.array(roots).reshape(-1, len(arm.variables)), branches, k, way.angles)
        looked[k] = manifold.separated and len(roots) == len(parts) and new is not None
        for root in new or ():
            add_branch(branches, way.branch(root, k, task), way.angles)
            task.check()
    task.progress(1.0, branches=len(branches))
    return PathTree(arm, way.poses, tuple(paired(branches, way.angles)), looked)


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
    way = Follower.of(arm, poses)
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


# Limits of joints that turn more than once ------------------------------------------------------


def _beyond(arm: Mechanism, lower: Array, upper: Array) -> bool:
    """Whether a joint of more than one turn leaves its limits on a branch."""
    ends = np.array([(v.lower, v.upper) for v in arm.variables])
    wide = np.array([turns_more_than_once(v) for v in arm.variables])
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


def _turns(arm: Mechanism, branch: Branch, seed: Array) -> Array:
    """Whole turns to add to each joint: nearest to the seed, within the limits if that can be."""
    turns = np.zeros(len(seed))
    for k, variable in enumerate(arm.variables):
        if not variable.cyclic:
            continue
        start = branch.positions[0, k]
        nearest = round((seed[k] - start) / _TWO_PI)
        if turns_more_than_once(variable):
            first = math.ceil((variable.lower - SLACK - branch.lower[k]) / _TWO_PI)
            last = math.floor((variable.upper + SLACK - branch.upper[k]) / _TWO_PI)
            if first <= last:
                nearest = min(max(nearest, first), last)
            else:
                nearest = _longest(variable, branch.positions[:, k], nearest)
        turns[k] = nearest
    return turns
