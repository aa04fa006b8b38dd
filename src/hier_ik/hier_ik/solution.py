"""What a solve is asked and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hier_ik.bodies import unpack
from hier_ik.joints import JOINT_TYPES, joint_coordinates
from hier_ik.tables import Array, Ints
from kin_core.errors import StatusCode

__all__ = ["Ending", "Places", "Posture", "Residual", "Solution", "SolverOptions"]


@dataclass(frozen=True, kw_only=True)
class SolverOptions:
    """How to solve.

    Attributes:
        tolerance: Residual at which a task counts as met [m or rad].
        max_iterations: Iterations of one solve().
        rest_gain: Share of the way to the rest posture per iteration, 0 to leave it alone.
        membership: Where crossing tree joints of driving sublinkages belong; see decompose().
        patience: Iterations without progress after which a solve ends.
        restarts: Other starts that are tried before tasks count as UNREACHABLE; with 0 only what a
            bound proves counts as that.
    """

    tolerance: float = 1e-9
    max_iterations: int = 200
    rest_gain: float = 0.2
    membership: str = "paper"
    patience: int = 30
    restarts: int = 16


class Residual(NamedTuple):
    """How far one closure or goal is from being met.

    Attributes:
        name: Closure joint or goal.
        level: Priority level.
        component: Index in solve order.
        position: Norm of its position rows [m].
        rotation: Norm of its rotation rows [rad].
        met: Whether both are within the tolerance.
        goal: Whether it is a goal and not a closure.
    """

    name: str
    level: int
    component: int
    position: float
    rotation: float
    met: bool
    goal: bool

    @property
    def size(self) -> float:
        """The larger of the two norms."""
        return max(self.position, self.rotation)


@dataclass(frozen=True)
class Solution:
    """The outcome of a solve.

    Attributes:
        success: Whether every task is met.
        code: SUCCESS; UNREACHABLE (a bound proves it, or the solve came to rest and no other start
            met the tasks either); NOT_CONVERGED, TIMEOUT or CANCELLED.
        message: One sentence for people.
        iterations: Iterations made.
        residual: Largest residual of all tasks [m or rad].
        closure_residual: Largest residual of the closures alone.
        residuals: One per closure and goal.
        unmet: Names of what is not met, worst first.
        at_limit: Joints that stand at a limit or, locked, beyond one.
        outside_limits: Locked joints beyond a limit; they are never moved.
        posture: Where the joints are; ``values`` gives it by name.
        history: Residual before each iteration, lengths in units of the linkage's own.
        alternative: Coordinates of the tree joints in a posture far from the start that meets every
            task, if one was found when the solve itself did not.
    """

    success: bool
    code: StatusCode
    message: str
    iterations: int
    residual: float
    closure_residual: float
    residuals: tuple[Residual, ...] = field(repr=False)
    unmet: tuple[str, ...]
    at_limit: tuple[str, ...]
    posture: Posture = field(repr=False)
    history: tuple[float, ...] = field(repr=False)
    outside_limits: tuple[str, ...] = ()
    alternative: Mapping[str, Array] | None = field(default=None, repr=False)

    @cached_property
    def values(self) -> dict[str, Array]:
        """Coordinates of all joints; those of closures are read off the poses."""
        return self.posture.values()


@dataclass
class Ending:
    """How a solve ended, in words.

    Attributes:
        at_rest: Whether nothing moved any more.
        stopped: CANCELLED or TIMEOUT, where it was stopped.
        iterations: How many were made.
        far: A goal, its distance and the length of its chain [m], where that is shorter.
        searched: Whether other starts were tried, as many as asked for.
        alternative: The posture that meets all tasks which these found.
        at_limit, outside, early: Joints at a limit, locked joints beyond one, and tasks that joints
            of later rounds move.
    """

    at_rest: bool
    stopped: StatusCode | None = None
    iterations: int = 0
    far: tuple[str, float, float] | None = None
    searched: bool = False
    alternative: dict[str, Array] | None = None
    at_limit: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    early: tuple[str, ...] = ()

    def verdict(self, tasks: int, unmet: Sequence[str], worst: float) -> tuple[StatusCode, str]:
        """The status code, and a sentence for people, with so many tasks and these not met."""
        of = f"{len(unmet)} of {tasks} tasks"
        if not unmet:
            code, message = StatusCode.SUCCESS, f"all {tasks} tasks met"
            if self.alternative is not None:
                message += ", in a posture far from the start"
        elif self.stopped is not None:
            code, message = self.stopped, "stopped before all tasks were met"
        elif self.far is not None:
            name, distance, length = self.far
            code = StatusCode.UNREACHABLE
            message = f"{of} not met; {name!r} is {distance:.4g} m away"
            message += f" and its chain {length:.4g} m long"
        elif self.searched and self.alternative is None:
            code = StatusCode.UNREACHABLE
            message = f"{of} cannot be met from here, nor from other starts"
        else:
            code = StatusCode.NOT_CONVERGED
            message = f"{of} not met in {self.iterations} iterations"
            if self.alternative is not None:
                message += "; at rest, but a posture far from this start meets all"
            elif self.at_rest:
                message += "; at rest in what may be a local minimum"
        early = [n for n in unmet if n in self.early]
        if early:
            message += f"; {early[0]!r} is moved by joints of later rounds"
        if unmet:
            message += f"; worst {unmet[0]!r} by {worst:.3g}"
            if self.at_limit:
                message += f"; {len(self.at_limit)} joints at a limit, first {self.at_limit[0]!r}"
        if self.outside:
            message += f"; {len(self.outside)} locked joints outside their limits"
            message += f", first {self.outside[0]!r}"
        return code, message


@dataclass(frozen=True)
class Places:
    """Where the coordinates of the joints are found in the tables.

    Attributes:
        tree: Tree joints and their parts of q.
        closures: Closure joints, their rows in the table of relative poses, and their types.
        held: Per locked closure the motion (4, 4) at which it is held.
        virtual: Per joint, in the order of the linkage, whether it is virtual.
    """

    tree: list[tuple[str, slice]]
    closures: list[tuple[str, int, str]]
    held: Mapping[str, Array]
    virtual: Mapping[str, bool]

    @cached_property
    def by_type(self) -> dict[str, tuple[list[str], Ints]]:
        """Closures that are not held, by type: their names and their rows."""
        out: dict[str, tuple[list[str], list[int]]] = {}
        for name, row, kind in self.closures:
            if name not in self.held:
                names, rows = out.setdefault(kind, ([], []))
                names.append(name)
                rows.append(row)
        return {kind: (names, np.array(rows, np.int64)) for kind, (names, rows) in out.items()}

    @cached_property
    def parts(self) -> dict[str, slice]:
        """Per joint its part of Posture.flat()."""
        out = dict(self.tree)
        at = max((part.stop for part in out.values()), default=0)
        kinds = {name: kind for name, _, kind in self.closures}
        free = [name for names, _ in self.by_type.values() for name in names]
        for name in [*free, *(name for name in kinds if name in self.held)]:
            out[name] = slice(at, at + JOINT_TYPES[kinds[name]].dof)
            at = out[name].stop
        return out

    @cached_property
    def of_kind(self) -> dict[bool, tuple[list[str], Ints]]:
        """Of real (False) and virtual joints the names of their coordinates, and where these are.

        In the order of the linkage; a name is that of the joint, or joint/1, joint/2, ...
        """
        out: dict[bool, tuple[list[str], list[int]]] = {False: ([], []), True: ([], [])}
        for name, virtual in self.virtual.items():
            where = self.parts.get(name, slice(0, 0))
            names, index = out[virtual]
            count = where.stop - where.start
            names += [name] if count == 1 else [f"{name}/{k + 1}" for k in range(count)]
            index += range(where.start, where.stop)
        return {kind: (names, np.array(index, np.int64)) for kind, (names, index) in out.items()}


#: Columns of a relative pose (12,) that are the coordinates of a type.
_COLUMNS = {"fixed": [], "prismatic": [11], "cartesian2": [9, 10], "cartesian3": [9, 10, 11]}


@dataclass(frozen=True)
class Posture:
    """The coordinates of all joints at one moment, not yet given to each by name.

    That takes longer than to solve, and not everybody wants it.

    Attributes:
        q: Coordinates of the tree joints [rad or m].
        poses: Relative poses of the closures (n, 12) [m].
        places: Which of them belong to which joint.
    """

    q: Array
    poses: Array
    places: Places

    def flat(self) -> Array:
        """Coordinates of the tree joints, then those of the closures, see Places.parts."""
        found = [self.q]
        for kind, (_, rows) in self.places.by_type.items():
            P = self.poses[rows]  # all at once: one by one takes longer than to solve
            if kind == "revolute":
                found.append(np.arctan2(P[:, 3] - P[:, 1], P[:, 0] + P[:, 4]))
            elif kind in _COLUMNS:
                found.append(P[:, _COLUMNS[kind]].reshape(-1))
            else:
                found += [joint_coordinates(kind, unpack(p)) for p in P]
        for name, row, kind in self.places.closures if self.places.held else ():
            if name in self.places.held:
                X = self.places.held[name] @ unpack(self.poses[row])
                found.append(joint_coordinates(kind, X))
        return np.concatenate(found)

    def values(self) -> dict[str, Array]:
        """Coordinates of each joint [rad or m]; each is a part of one array."""
        flat = self.flat()
        return {name: flat[part] for name, part in self.places.parts.items()}
