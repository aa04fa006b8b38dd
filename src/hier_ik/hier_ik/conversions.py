"""Between messages and the library."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from kin_interfaces.action import SolveHier
from kin_interfaces.msg import HierComponent, HierGoal, HierProblem, HierResidual
from sensor_msgs.msg import JointState

from hier_ik.abstraction import Properness
from hier_ik.decompose import Decomposition
from hier_ik.linkage import Linkage
from hier_ik.solver import MODES, Solution, Solver
from hier_ik.tables import Array
from kin_core import checks
from kin_core.errors import InvalidInput
from kin_core.task import Progress
from kin_ros.arrays import from_field, to_field
from kin_ros.poses import read_pose

__all__ = [
    "feedback", "fill_counts", "fill_decomposition", "fill_properness", "fill_solution",
    "joint_state", "mode", "put_drag", "put_goal", "solve_arguments", "start_values",
]  # fmt: skip


# ---- questions ------------------------------------------------------------------------------


def put_goal(solver: Solver, message: HierGoal, field: str = "goal") -> None:
    """Add, move or remove the goal of a message."""
    name = message.name or f"drag:{message.link}"
    if message.remove:
        solver.linkage.remove_goal(name)
        return
    kind = message.kind or "pose"
    solver.put_goal(
        name,
        message.link,
        kind,
        target=read_pose(f"{field}.target", message.target, zero_is_identity=True),
        offset=read_pose(f"{field}.offset", message.offset, zero_is_identity=True),
        reference=message.reference_link or None,
        rows=[bool(r) for r in message.rows] if kind == "rows" else None,
        priority=None if message.priority < 0 else int(message.priority),
        weight=message.weight or None,
    )


def put_drag(solver: Solver, message: PoseStamped) -> None:
    """Drag the link that the frame of the header names; the pose is in the root frame.

    "link" drags its pose, "link/position" only its position; the linkage's own goal "drag" is
    moved if it is on that link.
    """
    name = message.header.frame_id
    link, _, kind = name.rpartition("/")  # names of links may hold a stroke
    if name in solver.linkage.links or not link:
        link, kind = name, ""
    goal = HierGoal(link=link, kind=kind or "pose", target=message.pose, priority=-1)
    own = solver.linkage.goals.get("drag")
    if own is not None and own.link == link:
        goal.name, goal.kind = "drag", own.kind
    put_goal(solver, goal, "drag")


def mode(problem: HierProblem) -> str:
    """The mode that a problem names."""
    return checks.one_of("mode", problem.mode or "hierarchical", MODES)


def solve_arguments(problem: HierProblem, tolerance: float, iterations: int) -> dict[str, Any]:
    """What a problem says of how to solve; the tolerance and iterations are the defaults."""
    tolerance = problem.tolerance or tolerance
    if not (math.isfinite(tolerance) and tolerance > 0):
        raise InvalidInput("tolerance", f"must be positive and finite, got {tolerance}")
    if problem.step_time < 0 or not math.isfinite(problem.step_time):
        raise InvalidInput("step_time", f"must be zero or more and finite, got {problem.step_time}")
    return {
        "tolerance": tolerance,
        "max_iterations": int(problem.max_iterations) or iterations,
        "step_time": problem.step_time or None,
        "other_assemblies": problem.other_assemblies,
    }


def start_values(linkage: Linkage, problem: HierProblem) -> dict[str, Array]:
    """Joint values of a problem, joints with several freedoms one after the other."""
    positions = from_field(problem.start_positions, "float64")
    out: dict[str, Array] = {}
    at = 0
    for name in problem.start_names:
        checks.one_of("start_names", name, linkage.joints)
        if name in out:
            raise InvalidInput("start_names", f"{name!r} is given twice")
        dof = linkage.joints[name].dof
        out[name] = positions[at : at + dof]
        at += dof
    if at != len(positions):
        raise InvalidInput(
            "start_positions", f"the named joints have {at} freedoms, got {len(positions)} values"
        )
    return out


# ---- answers --------------------------------------------------------------------------------


def _by_freedom(values: Mapping[str, Array]) -> tuple[list[str], Array]:
    """Names and values, one per freedom: joint, or joint/1, joint/2, ..."""
    names: list[str] = []
    for name, q in values.items():
        names += [name] if len(q) == 1 else [f"{name}/{i + 1}" for i in range(len(q))]
    return names, np.concatenate([np.zeros(0), *values.values()])


def _of_kind(
    linkage: Linkage, values: Mapping[str, Array], *, virtual: bool
) -> tuple[list[str], Array]:
    """The same of the real or the virtual joints."""
    return _by_freedom(
        {n: values[n] for n, j in linkage.joints.items() if j.virtual == virtual and n in values}
    )


def joint_state(
    linkage: Linkage, values: Mapping[str, Array], stamp: Any, *, virtual: bool
) -> JointState:
    """A JointState of the real or the virtual joints."""
    message = JointState()
    message.header.stamp = stamp
    message.name, positions = _of_kind(linkage, values, virtual=virtual)
    message.position = to_field(positions, "float64")
    return message


def fill_solution(response: Any, linkage: Linkage, solution: Solution) -> None:
    """Write a solution into a SolveHierIK response or a SolveHier result."""
    status, answer = response.status, response.solution
    status.code = int(solution.code)
    status.message = solution.message
    status.residual = solution.residual
    status.iterations = solution.iterations
    answer.joint_names, real = _of_kind(linkage, solution.values, virtual=False)
    answer.joint_positions = to_field(real, "float64")
    answer.virtual_names, virtual = _of_kind(linkage, solution.values, virtual=True)
    answer.virtual_positions = to_field(virtual, "float64")
    answer.residuals = [
        HierResidual(
            name=r.name, level=r.level, component=r.component, position=r.position,
            rotation=r.rotation, met=r.met,
        )
        for r in solution.residuals
    ]  # fmt: skip
    answer.unmet = list(solution.unmet)
    answer.at_limit = list(solution.at_limit)


def feedback(progress: Progress) -> SolveHier.Feedback:
    """The progress of a solve."""
    counters = progress.counters
    return SolveHier.Feedback(
        iteration=int(counters.get("iteration", 0)),
        residual=float(counters.get("residual", math.nan)),
        closure_residual=float(counters.get("closure_residual", math.nan)),
        fraction=float(progress.fraction),
    )


def fill_counts(response: Any, linkage: Linkage) -> None:
    """Write the size of a linkage into a LoadLinkage or EditLinkage response."""
    response.links = len(linkage.links)
    response.tree_joints = len(linkage.tree_joints())
    response.closure_joints = len(linkage.closure_joints())
    response.sublinkages = len(linkage.sublinkages)


def fill_decomposition(response: Any, d: Decomposition) -> None:
    """Write a decomposition into a Decompose response."""
    response.components = [
        HierComponent(round=c.round, scc=c.scc, closures=list(c.closures), joints=list(c.joints))
        for c in d.components
    ]
    response.sublinkages = list(d.scc)
    response.sublinkage_scc = list(d.scc.values())
    response.sublinkage_round = [d.rounds[s] for s in d.scc]
    response.scc_count = d.scc_count
    response.locked_wrt_calls = d.locked_wrt_calls
    response.warnings = list(d.warnings)
    response.report = d.report()


def fill_properness(response: Any, found: Properness) -> None:
    """Write the outcome of a search for a counterexample into a CheckAbstraction response."""
    response.refuted = found.refuted
    response.samples_tried = found.samples
    response.worst_residual = response.status.residual = found.worst_residual
    response.worst_closure = found.worst_closure
    response.witness_names, positions = _by_freedom(found.witness)
    response.witness_positions = to_field(positions, "float64")
    response.status.message = (
        "refuted: the witness is out of reach"
        if found.refuted
        else "not refuted, which proves nothing"
    )
