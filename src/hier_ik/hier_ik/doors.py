"""Inverse and forward kinematics of the running linkage, the way MoveIt's clients ask for them.

Coordinates have the names that JointState messages have: the joint, or joint/1, joint/2, ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from hier_ik.errors import LinkageError
from hier_ik.linkage import Linkage
from hier_ik.solution import Solution
from hier_ik.solver import Solver
from hier_ik.tables import Array
from kin_core.errors import Cancelled, NotConverged, SolveTimeout, StatusCode, Unreachable
from kin_core.task import Task
from kin_ros.moveit import FkRequest, IkRequest, Robot

__all__ = ["Doors", "Running"]

#: Sets of links for which a solver is kept.
_MOST_KEPT = 16
_ERRORS = {
    StatusCode.UNREACHABLE: Unreachable,
    StatusCode.NOT_CONVERGED: NotConverged,
    StatusCode.TIMEOUT: SolveTimeout,
    StatusCode.CANCELLED: Cancelled,
}


class Running(NamedTuple):
    """The running linkage at one moment.

    Attributes:
        live: The solver that runs, to know it again; not to be used.
        edits: How often its linkage was edited.
        solver: One at its posture that nobody else uses.
    """

    live: Solver
    edits: int
    solver: Solver


class Doors:
    """Answers requests on copies of the running solver; any thread may ask."""

    def __init__(
        self,
        running: Callable[[], Running],
        edition: Callable[[], tuple[Solver, int]],
        tolerance: Callable[[], float],
    ) -> None:
        """Begin with nothing kept.

        Args:
            running: Gives the running linkage.
            edition: Gives its solver and how often it was edited, at next to no cost.
            tolerance: Gives the residual at which a task counts as met [m or rad].
        """
        self._running, self._edition, self._tolerance = running, edition, tolerance
        self._robot: tuple[tuple[Solver, int], str, Robot] | None = None
        self._kept: dict[tuple[str, ...], tuple[Solver, int, Solver]] = {}

    def robot(self, base: str) -> Robot:
        """What may be asked for; the tip is the link of the first goal, or the last link."""
        known, edition = self._robot, self._edition()
        if known is not None and known[:2] == (edition, base):
            return known[2]
        linkage = self._running().solver.linkage
        goals = list(linkage.goals.values())
        tip = goals[0].link if goals else list(linkage.links)[-1]
        robot = Robot(
            base=base, joints=coordinate_names(linkage), links=linkage.links, tip=tip,
            groups={linkage.name: tip},
        )  # fmt: skip
        self._robot = (edition, base, robot)
        return robot

    def ik(self, request: IkRequest, task: Task) -> dict[str, float]:
        """Positions by name that put links to poses, all loops closed, from the seed on.

        Goals of the running state do not count. Where only another start than the seed succeeds,
        that is the answer.

        Raises:
            Unreachable: There are none, or none was found.
        """
        running = self._running()
        solver = self._solver(running, request.links)
        goals = list(solver.linkage.goals)
        for name, (low, high) in request.limits.items():
            _narrow(solver.linkage, *coordinate_names(solver.linkage)[name], low, high)
        _put_values(solver, request.seed)
        for goal, target in zip(goals, request.targets, strict=True):
            solver.set_goal(goal, target)
        with task:
            solution = solver.solve(
                tolerance=self._tolerance(), other_assemblies=True, task=task
            )  # fmt: skip
        _raise(solution)
        names, values = coordinate_names(solver.linkage), solution.values
        return {name: float(values[joint][k]) for name, (joint, k) in names.items()}

    def fk(self, request: FkRequest, task: Task) -> dict[str, Array]:
        """Poses of links (4, 4) [m]; joints without a position close the loops, or stay.

        Raises:
            Unreachable: The loops cannot be closed with these positions.
        """
        running = self._running()
        solver = self._solver(running, ())
        given = _put_values(solver, request.positions)
        if not solver.descent.met(self._tolerance()):
            for joint in given:
                solver.linkage.set_locked(joint, True)
            _put_values(solver, request.positions)
            with task:
                _raise(solver.solve(tolerance=self._tolerance(), task=task))
        return solver.poses(request.links)

    def _solver(self, running: Running, links: tuple[str, ...]) -> Solver:
        """One of its own at the running posture, with pose goals on these links and no others."""
        kept = self._kept.get(links)
        if kept is None or kept[0] is not running.live or kept[1] != running.edits:
            linkage = running.solver.linkage.copy()
            for name in list(linkage.goals):
                linkage.remove_goal(name)
            for link in links:
                if link == linkage.root:
                    raise LinkageError(f"link {link!r}", "is the root, which does not move")
                name = f"ik:{link}"
                while name in linkage.joints:
                    name += "+"
                linkage.add_goal(name, link, "pose", target=np.eye(4))
            kept = (running.live, running.edits, Solver(linkage, running.solver.mode))
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[links] = kept
        solver = kept[2].copy()
        solver.stand_like(running.solver)
        return solver


def coordinate_names(linkage: Linkage) -> dict[str, tuple[str, int]]:
    """Per name of a coordinate its joint, and which of that joint's it is."""
    out: dict[str, tuple[str, int]] = {}
    for name, j in linkage.joints.items():
        for k in range(j.dof):
            out[name if j.dof == 1 else f"{name}/{k + 1}"] = (name, k)
    return out


def _put_values(solver: Solver, positions: Mapping[str, float]) -> list[str]:
    """Set the coordinates of tree joints among positions by name; these joints."""
    names = coordinate_names(solver.linkage)
    values: dict[str, Array] = {}
    for name, position in positions.items():
        joint, k = names.get(name, ("", 0))
        if joint and not solver.linkage.joints[joint].closure:
            if joint not in values:
                values[joint] = solver.value(joint)
            values[joint][k] = position
    solver.set_values(values)
    return list(values)


def _narrow(linkage: Linkage, joint: str, k: int, low: float, high: float) -> None:
    j = linkage.joints[joint]
    lower, upper = j.lower.copy(), j.upper.copy()
    lower[k], upper[k] = max(lower[k], low), min(upper[k], high)
    if lower[k] > upper[k]:
        raise Unreachable(f"the constraint of {joint} leaves nothing of its limits")
    linkage.set_limits(joint, lower, upper, j.velocity)


def _raise(solution: Solution) -> None:
    if not solution.success:
        raise _ERRORS[solution.code](
            solution.message, residual=solution.residual, iterations=solution.iterations
        )
