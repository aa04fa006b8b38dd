"""The node: load a linkage, drag its links, decompose, solve, edit, all while it runs."""

from __future__ import annotations

import math
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from kin_interfaces.action import SolveHier
from kin_interfaces.msg import HierGoal, HierProblem
from kin_interfaces.srv import (
    CheckAbstraction,
    Decompose,
    EditLinkage,
    LoadLinkage,
    SolveHierIK,
)
from numpy.typing import NDArray
from sensor_msgs.msg import JointState
from std_msgs.msg import Header, String
from visualization_msgs.msg import MarkerArray

from hier_ik import conversions
from hier_ik.abstraction import check_proper
from hier_ik.decompose import decompose
from hier_ik.demo import CircleDemo
from hier_ik.doors import Doors, Running
from hier_ik.errors import LinkageError
from hier_ik.linkage import Linkage
from hier_ik.markers import linkage_markers
from hier_ik.parameters import HierParameters
from hier_ik.solver import Solver
from hier_ik.sources import linkage_from, linkage_from_file, linkage_from_folder, named_linkage
from hier_ik.urdf import load_urdf_linkage
from hier_ik.warm_up import warm_up
from kin_core import checks
from kin_core.errors import InvalidInput, StatusCode
from kin_core.loop import PeriodicLoop
from kin_core.task import Task
from kin_core.yamls import load_yaml
from kin_ros.frames import Frames, to_nanoseconds
from kin_ros.markers import clear_all
from kin_ros.moveit import serve_kinematics
from kin_ros.node import KinNode, run
from kin_ros.qos import COMMAND, LATCHED, STATE

__all__ = ["HierNode", "main"]

#: How long the built-in motion waits after a client has dragged [s].
_DEMO_WAITS = 10.0
#: How long a transform may take to come for a request [s].
_ARRIVAL = 1.0


class HierNode(KinNode[HierParameters]):
    """Thin: every answer comes from the library."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__("hier_ik", HierParameters, **arguments)
        self._lock = threading.RLock()
        self._solver: Solver | None = None
        self._kept: dict[str, Running] = {}  # by mode, for requests
        self._dragged = "drag"  # the goal that ~/drag moves
        self._loop: PeriodicLoop | None = None
        self._demo = CircleDemo(0.0)
        self._warned: set[str] = set()  # sentences on the running linkage that were said
        self._other_linkage = True  # markers of the one before are to be deleted
        self._heard = -math.inf  # when a client last dragged, monotonic [s]

    # ---- lifecycle --------------------------------------------------------------------------

    def warm_up(self) -> None:
        """Compile both solvers, or load them from the cache."""
        warm_up()

    def configure(self) -> None:
        """Load the first linkage, make topics and services."""
        p = self.parameters
        self._solver = None
        if p.preset == "file" or p.names_file:
            file = p.preset if p.names_file else p.linkage_file
            self._take(linkage_from_file(Path(file), p.sidecar))
        elif p.preset not in ("robot_description", "none"):
            self._take(named_linkage(p.preset, p.blocks, p.robots_folder))
        self._states = self.publish_to(JointState, "joint_states", STATE)
        self._virtual = self.publish_to(JointState, "virtual_joint_states", STATE)
        self._pictures = self.publish_to(MarkerArray, "~/markers", STATE)
        self._frames = Frames(self)
        doors = Doors(
            self._solver_of_its_own, self._edition, lambda: self.parameters.tolerance
        )  # fmt: skip
        serve_kinematics(
            self, lambda: doors.robot(self._frame()), self._frames, ik=doors.ik, fk=doors.fk
        )
        self.listen(PoseStamped, "~/drag", self._on_drag, COMMAND)
        self.listen(HierGoal, "~/goal", self._on_goal, STATE)
        if p.preset == "robot_description":
            self.listen(String, "robot_description", self._on_description, LATCHED)
        self.serve(LoadLinkage, "~/load", self._load)
        self.serve(Decompose, "~/decompose", self._decompose)
        self.serve(EditLinkage, "~/edit", self._edit)
        self.serve(SolveHierIK, "~/solve", self._solve)
        self.serve(CheckAbstraction, "~/check_abstraction", self._check)
        self.serve_action(
            SolveHier, "~/solve_to_convergence", self._solve_action, conversions.feedback
        )
        if p.markers_rate > 0:
            self.every(1.0 / p.markers_rate, self._publish_markers)

    def activate(self) -> None:
        """Start the loop of the running state."""
        self._demo = CircleDemo(time.monotonic())
        self._loop = self.loop("drag", 1.0 / self.parameters.rate, self._tick)
        self._loop.start()

    def deactivate(self) -> None:
        """Stop the loop."""
        if self._loop is not None:
            self._loop.stop()
            self._loop = None

    def cleanup(self) -> None:
        """Forget the linkage."""
        with self._lock:
            self._solver = None
            self._kept.clear()

    def parameters_changed(self, old: HierParameters, new: HierParameters) -> None:
        """Take up new solver options, or another built-in motion."""
        if (old.mode, old.membership, old.rest_gain) != (new.mode, new.membership, new.rest_gain):
            with self._lock:
                if self._solver is not None:
                    self._solver.store()
                    self._take(self._solver.linkage)
        if old.demo != new.demo:
            self._demo = CircleDemo(time.monotonic())

    # ---- the running state ------------------------------------------------------------------

    def _tick(self) -> None:
        """Move the demo's goal, iterate, publish."""
        p = self.parameters
        with self._lock:
            solver = self._solver
            if solver is None:
                return
            start = time.perf_counter()
            if p.demo == "circle" and time.monotonic() - self._heard > _DEMO_WAITS:
                self._demo.move(solver, time.monotonic(), p.demo_radius, p.demo_period)
            limits = 1.0 / p.rate if p.use_velocity_limits else None
            solution = solver.solve(
                tolerance=p.tolerance, max_iterations=p.iterations, step_time=limits, restarts=0
            )
            took = time.perf_counter() - start
            linkage = solver.linkage
        stamp = self.get_clock().now().to_msg()
        for publisher, virtual in ((self._states, False), (self._virtual, True)):
            # Hundreds of names take longer to write than the joints to solve.
            if publisher.get_subscription_count() > 0:
                publisher.publish(
                    conversions.joint_state(linkage, solution.values, stamp, virtual=virtual)
                )
        d = self.diagnostics
        d.time("iteration", took / max(solution.iterations, 1))
        d.time("tick", took)
        d.value("residual", solution.residual)
        d.value("closure residual", solution.closure_residual)
        d.value("unmet tasks", len(solution.unmet))
        d.value("joints at a limit", len(solution.at_limit))

    def _publish_markers(self) -> None:
        if self._pictures.get_subscription_count() == 0:
            return
        p = self.parameters
        stamp = self.get_clock().now().to_msg()
        with self._lock:
            if self._solver is None:
                return
            array = linkage_markers(self._solver, self._frame(), stamp, p.tolerance)
            if self._other_linkage:
                array.markers.insert(0, clear_all())
                self._other_linkage = False
        self._pictures.publish(array)

    def _on_drag(self, message: PoseStamped) -> None:
        """Move the goal that was set last, or "drag", to a pose in any frame."""
        with self._lock:
            solver = self._need()
            goal = conversions.link_of_drag(solver, message.header.frame_id)
            known = self._dragged in solver.linkage.goals
        if goal is None:
            if not known:
                raise InvalidInput("drag", "no goal is set; name a link in a message on ~/goal")
            goal = HierGoal(header=message.header, name=self._dragged, priority=-1)
        else:
            self.get_logger().warning(
                f"~/drag: {message.header.frame_id!r} is a link and not a frame; this ends with the"
                " next release: name the link in a message on ~/goal",
                once=True,
            )
        goal.target = message.pose
        self._put(goal, "drag")

    def _on_goal(self, message: HierGoal) -> None:
        self._put(message, "goal")
        if not message.remove:
            self._dragged = conversions.goal_name(self._need(), message)

    def _put(self, message: HierGoal, field: str) -> None:
        goal = conversions.in_root_frame(message, self._toward, field)
        with self._lock:
            solver = self._need()
            name = conversions.goal_name(solver, goal)
            if not goal.remove or name in solver.linkage.goals:  # else it is away already
                conversions.put_goal(solver, goal, field)
            self._goal_was_set(solver)

    def _toward(self, header: Header, wait: float = 0.0) -> NDArray[np.float64]:
        """From the frame of a header to that of the root, when the header says."""
        stamp = to_nanoseconds(header.stamp)
        return self._frames.transform(self._frame(), header.frame_id, stamp, wait=wait)

    def _frame(self) -> str:
        """The frame of the root link."""
        p = self.parameters
        return p.frame_prefix + self._need().linkage.root if p.names_file else p.frame_id

    def _goal_was_set(self, solver: Solver) -> None:
        self._heard = time.monotonic()
        self._warn(solver)

    def _warn(self, solver: Solver) -> None:
        """Say once what is new in the warnings of the decomposition."""
        now = solver.decomposition.warnings
        for sentence in now:
            if sentence not in self._warned:
                self.get_logger().warning(sentence)
        self._warned = set(now)

    def _on_description(self, message: String) -> None:
        linkage = load_urdf_linkage(message.data, self.parameters.sidecar)
        with self._lock:
            self._take(linkage)

    # ---- services ---------------------------------------------------------------------------

    def _load(self, request: Any, task: Task) -> Any:
        response = LoadLinkage.Response()
        given = [k for k in ("yaml", "path", "urdf", "mjcf", "preset") if getattr(request, k)]
        if len(given) != 1:
            raise InvalidInput(
                "request", "set exactly one of yaml, path, urdf, mjcf or preset, got "
                + (", ".join(given) or "none"),
            )  # fmt: skip
        if given[0] == "preset":
            folder = self.parameters.robots_folder
            linkage = named_linkage(request.preset, int(request.blocks), folder)
        elif given[0] == "path":
            folder = self.parameters.linkage_folder
            linkage = linkage_from_folder(folder, request.path, request.closures)
        else:
            linkage = linkage_from(given[0], getattr(request, given[0]), request.closures)
        task.check()
        with self._lock:
            solver = self._take(linkage)
            response.warnings = [*linkage.notes, *solver.decomposition.warnings]
        response.name = linkage.name
        conversions.fill_counts(response, linkage)
        response.freedoms = sum(j.dof for j in linkage.tree_joints())
        return response

    def _decompose(self, request: Any, task: Task) -> Any:
        response = Decompose.Response()
        with self._lock:
            solver = self._need()
            solver.refresh()
            linkage = solver.linkage.copy()
        if request.flat:
            linkage = linkage.flattened()
        result = decompose(
            linkage,
            membership=request.membership or self.parameters.membership,
            goals=not request.without_goals,
        )
        conversions.fill_decomposition(response, result)
        return response

    def _edit(self, request: Any, task: Task) -> Any:
        response = EditLinkage.Response()
        edits = load_yaml(request.edits, name="edits")
        with self._lock:
            solver = self._need()
            response.decomposed = solver.edit(edits, max_links=self.parameters.max_links)
            self._warn(solver)
            response.decompositions = solver.decompositions
            response.components = len(solver.decomposition.components)
            conversions.fill_counts(response, solver.linkage)
        return response

    def _solve(self, request: Any, task: Task) -> Any:
        return self._answer_solve(request.problem, task, SolveHierIK.Response())

    def _solve_action(self, goal: Any, task: Task) -> Any:
        return self._answer_solve(goal.problem, task, SolveHier.Result())

    def _answer_solve(self, problem: HierProblem, task: Task, response: Any) -> Any:
        """Solve on a copy, so that the running state goes on; keep the result if asked to."""
        p = self.parameters
        mode = conversions.mode(problem)
        arguments = conversions.solve_arguments(problem, p.tolerance, p.max_iterations)
        live, seen, solver = self._solver_of_its_own(mode)
        toward = partial(self._toward, wait=_ARRIVAL)
        goals = [
            conversions.in_root_frame(goal, toward, f"goals[{i}]")
            for i, goal in enumerate(problem.goals)
        ]
        for i, goal in enumerate(goals):
            conversions.put_goal(solver, goal, f"goals[{i}]")
        solver.set_values(conversions.start_values(solver.linkage, problem))
        with task:
            solution = solver.solve(task=task, **arguments)
        conversions.fill_solution(response, solver.linkage, solution)
        if problem.keep and solution.code not in (StatusCode.CANCELLED, StatusCode.TIMEOUT):
            with self._lock:
                if self._solver is not live or len(live.linkage.journal) != seen:
                    raise LinkageError("keep", "the linkage was changed while this was solved")
                for goal in goals:
                    conversions.put_goal(live, goal)
                live.adopt_values(solution.values)
        return response

    def _check(self, request: Any, task: Task) -> Any:
        response = CheckAbstraction.Response()
        solver = self._solver_of_its_own(self.parameters.mode).solver
        solver.store()
        found = check_proper(
            solver.linkage,
            request.sublinkage,
            samples=int(request.samples) or 100,
            seed=int(request.seed),
            tolerance=request.tolerance or 1e-6,
            task=task,
        )
        conversions.fill_properness(response, found)
        return response

    # ---- inside -----------------------------------------------------------------------------

    def _solver_of_its_own(self, mode: str = "") -> Running:
        """The running linkage with a solver at its posture, in this mode or the running one.

        Nothing is built anew unless the linkage was edited or the mode is a new one.
        """
        with self._lock:
            live = self._need()
            live.refresh()
            seen = len(live.linkage.journal)
            if mode in ("", live.mode):
                return Running(live, seen, live.copy())
            copy, kept = live.copy(), self._kept.get(mode)
        if kept is None or kept.live is not live or kept.edits != seen:
            copy.store()
            solver = Solver(copy.linkage.copy(), mode, self.parameters.options)
            kept = self._kept[mode] = Running(live, seen, solver)
        solver = kept.solver.copy()
        solver.stand_like(copy)
        return Running(live, seen, solver)

    def _edition(self) -> tuple[Solver, int]:
        """The running solver, and how often its linkage was edited."""
        with self._lock:
            live = self._need()
            return live, len(live.linkage.journal)

    def _take(self, linkage: Linkage) -> Solver:
        """Make a linkage the running one; if it is refused the old one stays."""
        checks.count("links", len(linkage.links), self.parameters.max_links)
        solver = Solver(linkage, self.parameters.mode, self.parameters.options)
        for note in linkage.notes:
            self.get_logger().warning(note)
        with self._lock:
            self._solver = solver
            self._demo = CircleDemo(time.monotonic())
            self._dragged = "drag" if "drag" in linkage.goals else next(iter(linkage.goals), "drag")
            self._other_linkage = True
        return solver

    def _need(self) -> Solver:
        if self._solver is None:
            raise InvalidInput("linkage", "none is loaded; call ~/load first")
        return self._solver


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run(HierNode, args)
