"""An arm and a path of its tip, prepared so that postures can be followed along it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kin_core.rotations import exp_so3, log_so3
from kin_core.task import Task
from kin_solvers import border
from kin_solvers.branches import Branch, Event
from kin_solvers.certificate import Certifier
from kin_solvers.equations import Equations, LoopEquations
from kin_solvers.errors import RequestError
from kin_solvers.isolate import Bounds, bounds_of
from kin_solvers.lines import HALF_TURN, MAX_POSES
from kin_solvers.mechanism import MAX_MAGNITUDE, Mechanism, Variable
from kin_solvers.system import UNIT_ROUNDOFF, System, around_target
from kin_solvers.tubes import BUDGET, DONE, LIMIT, SINGULAR, Ends, Line, follow

__all__ = ["Follower", "turns_more_than_once"]

Array = NDArray[np.float64]

_TWO_PI = 2.0 * math.pi
#: Steps that may be tried for one posture, for each part of the path, and at least.
STEPS_EACH, STEPS_LEAST = 100, 20_000

_KINDS = {DONE: "path", LIMIT: "limit", SINGULAR: "singular", BUDGET: "unfinished"}


@dataclass(frozen=True)
class Follower:
    """An arm and a path, prepared.

    Attributes:
        arm: The arm, closed at the first pose.
        poses: Of its tip, shape (N, 4, 4) [m].
        line: The way of the tip (system units).
        tables: The equations of the arm.
        bounds: Of these equations at every pose of the way.
        unit: Factor from the mechanism's units to the system's, shape (V,).
    """

    arm: Mechanism
    poses: Array
    line: Line
    tables: LoopEquations
    bounds: Bounds
    unit: Array

    @classmethod
    def of(cls, arm: Mechanism, poses: ArrayLike) -> Follower:
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
        ends = self._limits(lambda v: not v.cyclic or v.name in limited or turns_more_than_once(v))
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


def turns_more_than_once(variable: Variable) -> bool:
    """Whether a joint turns more than once, and has limits."""
    return variable.cyclic and variable.upper - variable.lower > _TWO_PI + 1e-9
