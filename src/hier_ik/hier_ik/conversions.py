"""Between messages and the library."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from kin_interfaces.action import SolveHier
from kin_interfaces.msg import HierComponent, HierGoal, HierProblem, HierResidual
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from hier_ik.abstraction import Properness
from hier_ik.decompose import Decomposition
from hier_ik.elements import GOAL_ROWS
from hier_ik.linkage import Linkage
from hier_ik.solver import MODES, Solution, Solver
from hier_ik.tables import Array
from kin_core import checks
from kin_core.errors import InvalidInput
from kin_core.task import Progress
from kin_ros.arrays import from_field, to_field
from kin_ros.poses import read_pose, to_pose

__all__ = [
    "feedback", "fill_counts", "fill_decomposition", "fill_properness", "fill_solution",
    "goal_name", "in_root_frame", "joint_state", "link_of_drag", "mode", "put_goal",
    "solve_arguments", "start_values",
]  # fmt: skip


# ---- questions ------------------------------------------------------------------------------


def put_goal(solver: Solver, message: HierGoal, field: str = "goal") -> None:
    """Add, move or remove the goal of a message, whose target is in the frame of a link."""
    name = goal_name(solver, message)
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


def goal_name(solver: Solver, message: HierGoal) -> str:
    """The name of the goal that a message means: without one, the first goal of its link."""
    goals = solver.linkage.goals.values()
    of_link = (g.name for g in goals if g.link == message.link)
    return message.name or next(of_link, f"drag:{message.link}")


def in_root_frame(message: HierGoal, toward: Callable[[Header], Array], field: str) -> HierGoal:
    """A goal whose target is in any frame as one whose target is in that of the root.

    Args:
        message: Its header may name a frame.
        toward: Gives the transform (4, 4) [m] from the frame of a header to that of the root.
        field: Where it stands in the request, for errors.
    """
    if not message.header.frame_id or message.remove:
        return message
    if message.reference_link:
        raise InvalidInput(
            f"{field}.reference_link", "must be empty where the header names the target's frame"
        )
    target = read_pose(f"{field}.target", message.target, zero_is_identity=True)
    T = toward(message.header) @ target
    out = copy.copy(message)
    out.header, out.target = Header(), to_pose(T[:3, 3], T[:3, :3])
    return out


def link_of_drag(solver: Solver, frame_id: str) -> HierGoal | None:
    """What the frame of a drag names if it is no frame but "link" or "link/kind", as in 0.1."""
    link, _, kind = frame_id.rpartition("/")  # names of links may hold a stroke
    if frame_id in solver.linkage.links:
        link, kind = frame_id, "pose"
    elif link not in solver.linkage.links or kind not in GOAL_ROWS:
        return None
    own = solver.linkage.goals.get("drag")
    if own is not None and own.link == link:
        return HierGoal(name="drag", link=link, kind=own.kind, priority=-1)
    return HierGoal(link=link, kind=kind, priority=-1)


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
