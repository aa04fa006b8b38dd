"""The node: load a linkage, drag its links, decompose, solve, edit, all while it runs."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from kin_interfaces.action import SolveHier
from kin_interfaces.msg import HierGoal
from kin_interfaces.srv import (
    CheckAbstraction,
    Decompose,
    EditLinkage,
    LoadLinkage,
    SolveHierIK,
)
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

from hier_ik import conversions
from hier_ik.abstraction import check_proper
from hier_ik.decompose import MEMBERSHIPS, decompose
from hier_ik.errors import LinkageError
from hier_ik.files import load_linkage
from hier_ik.linkage import Linkage
from hier_ik.mjcf import load_mjcf_linkage
from hier_ik.solver import MODES, Solver, SolverOptions
from hier_ik.tower import tower
from hier_ik.urdf import load_urdf_linkage
from kin_core import checks
from kin_core.errors import InvalidInput, StatusCode
from kin_core.loop import PeriodicLoop
from kin_core.task import Progress, Task
from kin_core.yamls import load_yaml
from kin_ros.arrays import from_field
from kin_ros.markers import clear_all
from kin_ros.node import KinNode, run
from kin_ros.parameters import ParameterSet, parameter
from kin_ros.qos import COMMAND, LATCHED, STATE

__all__ = ["HierNode", "HierParameters", "main"]

#: How long the built-in motion waits after somebody has dragged [s].
_DEMO_WAITS = 10.0


@dataclass(frozen=True, kw_only=True)
class HierParameters(ParameterSet):
    """Parameters of the node."""

    preset: str = parameter(
        "tower",
        "linkage at start",
        choices=("tower", "flat_tower", "file", "robot_description", "none"),
    )
    blocks: int = parameter(15, "blocks of the tower", minimum=1, maximum=1000)
    linkage_file: str = parameter(
        "", "for preset file: .yaml, .urdf or .xml (MJCF)", read_only=True
    )
    closures_file: str = parameter(
        "", "closure sidecar for a URDF or robot_description", read_only=True
    )
    linkage_folder: str = parameter(
        "", "folder from which the load service may read; empty: it reads no files", read_only=True
    )
    mode: str = parameter("hierarchical", "how to solve", choices=MODES)
    membership: str = parameter(
        "paper", "where crossing tree joints of driving sublinkages belong", choices=MEMBERSHIPS
    )
    rate: float = parameter(
        50.0, "ticks of the running state [1/s]", minimum=1.0, maximum=1000.0, read_only=True
    )
    iterations: int = parameter(4, "most solver iterations per tick", minimum=1, maximum=1000)
    tolerance: float = parameter(
        1e-6, "residual at which a task counts as met [m or rad]", minimum=1e-14, maximum=1.0
    )
    max_iterations: int = parameter(
        300, "iterations of one request that does not name them", minimum=1, maximum=100_000
    )
    rest_gain: float = parameter(
        0.2, "share of the way to the rest posture per iteration", minimum=0.0, maximum=1.0
    )
    use_velocity_limits: bool = parameter(True, "whether dragging keeps joint velocity limits")
    demo: str = parameter("none", "built-in motion", choices=("none", "circle"))
    demo_radius: float = parameter(0.5, "of the circle of the demo [m]", minimum=0.0, maximum=100.0)
    demo_period: float = parameter(6.0, "of the demo [s]", minimum=0.1, maximum=3600.0)
    markers_rate: float = parameter(
        10.0, "pictures per second; 0: off", minimum=0.0, maximum=60.0, read_only=True
    )
    frame_id: str = parameter("world", "frame of the root link in headers")
    max_links: int = parameter(50_000, "largest linkage that is taken", minimum=1, maximum=200_000)

    def check(self) -> None:
        """Refuse what only fits together in part."""
        if self.preset == "file" and not self.linkage_file:
            raise InvalidInput("linkage_file", "must be set for preset file")


class HierNode(KinNode[HierParameters]):
    """Thin: every answer comes from the library."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__("hier_ik", HierParameters, **arguments)
        self._lock = threading.RLock()
        self._solver: Solver | None = None
        self._loop: PeriodicLoop | None = None
        self._demo_since = 0.0
        self._demo_centre: np.ndarray[Any, Any] | None = None
        self._shown: tuple[float, int] = (math.nan, 0)
        self._warned: set[str] = set()  # sentences on the running linkage that were said
        self._other_linkage = True  # markers of the one before are to be deleted
        self._heard = -math.inf  # when somebody last dragged, monotonic [s]

    # ---- lifecycle --------------------------------------------------------------------------

    def warm_up(self) -> None:
        """Compile both solvers, or load them from the cache."""
        Solver(tower(1)).solve()
        Solver(tower(1), "flat_structured").solve()

    def configure(self) -> None:
        """Load the first linkage, make topics and services."""
        p = self.parameters
        self._solver = None
        if p.preset in ("tower", "flat_tower"):
            self._take(tower(p.blocks, flat=p.preset == "flat_tower"))
        elif p.preset == "file":
            self._take(self._from_file(Path(p.linkage_file), p.closures_file))
        self._states = self.publish_to(JointState, "joint_states", STATE)
        self._virtual = self.publish_to(JointState, "virtual_joint_states", STATE)
        self._pictures = self.publish_to(MarkerArray, "~/markers", STATE)
        self.listen(PoseStamped, "~/drag", self._on_drag, COMMAND)
        self.listen(HierGoal, "~/goal", self._on_goal, STATE)
        if p.preset == "robot_description":
            self.listen(String, "robot_description", self._on_description, LATCHED)
        self.serve(LoadLinkage, "~/load", self._load)
        self.serve(Decompose, "~/decompose", self._decompose)
        self.serve(EditLinkage, "~/edit", self._edit)
        self.serve(SolveHierIK, "~/solve", self._solve)
        self.serve(CheckAbstraction, "~/check_abstraction", self._check)
        self.serve_action(SolveHier, "~/solve_to_convergence", self._solve_action, _feedback)
        if p.markers_rate > 0:
            self.every(1.0 / p.markers_rate, self._publish_markers)

    def activate(self) -> None:
        """Start the loop of the running state."""
        self._demo_since = time.monotonic()
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

    def parameters_changed(self, old: HierParameters, new: HierParameters) -> None:
        """Take up new solver options, or another built-in motion."""
        if (old.mode, old.membership, old.rest_gain) != (new.mode, new.membership, new.rest_gain):
            with self._lock:
                if self._solver is not None:
                    self._solver.store()
                    self._take(self._solver.linkage)
        if old.demo != new.demo:
            self._demo_since, self._demo_centre = time.monotonic(), None

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
                self._move_demo(solver)
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

    def _move_demo(self, solver: Solver) -> None:
        """The topmost goal runs around a circle in the plane of the tower."""
        p = self.parameters
        goals = [g for g in solver.linkage.goals.values() if g.name == "drag"]
        if not goals:
            return
        if self._demo_centre is None:
            self._demo_centre = goals[0].target.copy()
            self._demo_centre[2, 3] -= p.demo_radius
        angle = 2 * math.pi * (time.monotonic() - self._demo_since) / p.demo_period
        target = self._demo_centre.copy()
        target[0, 3] += p.demo_radius * math.sin(angle)
        target[2, 3] += p.demo_radius * math.cos(angle) * 0.5
        solver.set_goal(goals[0].name, target)

    def _publish_markers(self) -> None:
        if self._pictures.get_subscription_count() == 0:
            return
        p = self.parameters
        stamp = self.get_clock().now().to_msg()
        with self._lock:
            if self._solver is None:
                return
            array = conversions.markers(self._solver, p.frame_id, stamp, p.tolerance)
            if self._other_linkage:
                array.markers.insert(0, clear_all())
                self._other_linkage = False
        self._pictures.publish(array)

    def _on_drag(self, message: PoseStamped) -> None:
        """The frame of the header names the link; the pose is in the root frame.

        "link" drags its pose, "link/position" only its position; the goal named "drag" of a tower
        is moved if it is on that link.
        """
        name = message.header.frame_id
        with self._lock:
            solver = self._need()
            link, _, kind = name.rpartition("/")  # names of links may hold a stroke
            if name in solver.linkage.links or not link:
                link, kind = name, ""
            own = solver.linkage.goals.get("drag")
            goal = HierGoal(link=link, kind=kind or "pose", target=message.pose, priority=-1)
            if own is not None and own.link == link:
                goal.name, goal.kind = "drag", own.kind
            conversions.set_goal(solver, goal, "drag")
            self._heard = time.monotonic()
            self._warn(solver)

    def _on_goal(self, message: HierGoal) -> None:
        with self._lock:
            solver = self._need()
            conversions.set_goal(solver, message)
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
        sidecar = self.parameters.closures_file
        linkage = load_urdf_linkage(message.data, Path(sidecar) if sidecar else None)
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
        if given[0] == "yaml":
            linkage = load_linkage(request.yaml)
        elif given[0] == "urdf":
            linkage = load_urdf_linkage(request.urdf, request.closures or None)
        elif given[0] == "mjcf":
            linkage = load_mjcf_linkage(request.mjcf)
        elif given[0] == "preset":
            checks.one_of("preset", request.preset, ("tower", "flat_tower"))
            linkage = tower(int(request.blocks), flat=request.preset == "flat_tower")
        else:
            linkage = self._from_folder(request.path, request.closures)
        task.check()
        with self._lock:
            solver = self._take(linkage)
            response.warnings = list(solver.decomposition.warnings)
        response.name = linkage.name
        response.links = len(linkage.links)
        response.tree_joints = len(linkage.tree_joints())
        response.closure_joints = len(linkage.closure_joints())
        response.sublinkages = len(linkage.sublinkages)
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
            linkage = solver.linkage
            response.decompositions = solver.decompositions
            response.components = len(solver.decomposition.components)
        response.links = len(linkage.links)
        response.tree_joints = len(linkage.tree_joints())
        response.closure_joints = len(linkage.closure_joints())
        response.sublinkages = len(linkage.sublinkages)
        return response

    def _solve(self, request: Any, task: Task) -> Any:
        response = SolveHierIK.Response()
        self._answer_solve(request, task, response)
        return response

    def _solve_action(self, goal: Any, task: Task) -> Any:
        result = SolveHier.Result()
        self._answer_solve(goal, task, result)
        return result

    def _answer_solve(self, request: Any, task: Task, response: Any) -> None:
        """Solve on a copy, so that the running state goes on; keep the result if asked to."""
        p = self.parameters
        mode = request.mode or "hierarchical"
        checks.one_of("mode", mode, MODES)
        tolerance = request.tolerance or p.tolerance
        if not (math.isfinite(tolerance) and tolerance > 0):
            raise InvalidInput("tolerance", f"must be positive and finite, got {tolerance}")
        if request.step_time < 0 or not math.isfinite(request.step_time):
            raise InvalidInput(
                "step_time", f"must be zero or more and finite, got {request.step_time}"
            )
        with self._lock:
            live = self._need()
            live.refresh()
            live.store()
            linkage, seen = live.linkage.copy(), len(live.linkage.journal)
        solver = Solver(linkage, mode, self._options())
        for i, goal in enumerate(request.goals):
            conversions.set_goal(solver, goal, f"goals[{i}]")
        positions = from_field(request.start_positions, "float64")
        solver.set_values(conversions.start_values(solver, request.start_names, positions))
        with task:
            solution = solver.solve(
                tolerance=tolerance,
                max_iterations=int(request.max_iterations) or p.max_iterations,
                step_time=request.step_time or None,
                task=task,
            )
        conversions.fill_solution(response, linkage, solution)
        if request.keep and solution.code not in (StatusCode.CANCELLED, StatusCode.TIMEOUT):
            with self._lock:
                if self._solver is not live or len(live.linkage.journal) != seen:
                    raise LinkageError("keep", "the linkage was changed while this was solved")
                for goal in request.goals:
                    conversions.set_goal(live, goal)
                live.set_values(
                    {n: v for n, v in solution.values.items() if n in live.compiled.bodies.dof_of}
                )

    def _check(self, request: Any, task: Task) -> Any:
        response = CheckAbstraction.Response()
        with self._lock:
            live = self._need()
            live.refresh()
            live.store()
            linkage = live.linkage.copy()
        found = check_proper(
            linkage,
            request.sublinkage,
            samples=int(request.samples) or 100,
            seed=int(request.seed),
            tolerance=request.tolerance or 1e-6,
            task=task,
        )
        response.refuted = found.refuted
        response.samples_tried = found.samples
        response.worst_residual = found.worst_residual
        response.worst_closure = found.worst_closure
        for name, q in found.witness.items():
            response.witness_names += (
                [name] if len(q) == 1 else [f"{name}/{i + 1}" for i in range(len(q))]
            )
            response.witness_positions.extend(float(x) for x in q)
        response.status.message = (
            "refuted: the witness is out of reach"
            if found.refuted
            else "not refuted, which proves nothing"
        )
        response.status.residual = found.worst_residual
        return response

    # ---- inside -----------------------------------------------------------------------------

    def _options(self) -> SolverOptions:
        p = self.parameters
        return SolverOptions(
            tolerance=p.tolerance, rest_gain=p.rest_gain, membership=p.membership,
            max_iterations=p.max_iterations,
        )  # fmt: skip

    def _take(self, linkage: Linkage) -> Solver:
        """Make a linkage the running one; if it is refused the old one stays."""
        checks.count("links", len(linkage.links), self.parameters.max_links)
        solver = Solver(linkage, self.parameters.mode, self._options())
        with self._lock:
            self._solver = solver
            self._demo_centre = None
            self._other_linkage = True
        return solver

    def _need(self) -> Solver:
        if self._solver is None:
            raise InvalidInput("linkage", "none is loaded; call ~/load first")
        return self._solver

    def _from_folder(self, path: str, closures: str) -> Linkage:
        folder = self.parameters.linkage_folder
        if not folder:
            raise InvalidInput("path", "reading files is off; set the parameter linkage_folder")
        base = Path(folder).resolve()
        file = (base / path).resolve()
        if not file.is_relative_to(base):
            raise InvalidInput("path", "must stay inside the linkage folder")
        return self._from_file(file, "", closures)

    @staticmethod
    def _from_file(file: Path, closures_file: str, closures: str = "") -> Linkage:
        if not file.is_file():
            raise InvalidInput("path", f"there is no file {file.name!r}")
        if file.suffix in (".yaml", ".yml"):
            return load_linkage(file)
        if file.suffix == ".urdf":
            sidecar: str | Path | None = closures or (
                Path(closures_file) if closures_file else None
            )
            return load_urdf_linkage(file, sidecar)
        if file.suffix == ".xml":
            return load_mjcf_linkage(file)
        raise InvalidInput("path", f"{file.name!r}: only .yaml, .urdf and .xml are read")


def _feedback(progress: Progress) -> Any:
    feedback = SolveHier.Feedback()
    feedback.iteration = int(progress.counters.get("iteration", 0))
    feedback.residual = float(progress.counters.get("residual", math.nan))
    feedback.closure_residual = float(progress.counters.get("closure_residual", math.nan))
    feedback.fraction = float(progress.fraction)
    return feedback


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run(HierNode, args)
