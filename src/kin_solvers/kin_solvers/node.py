"""The ROS 2 node: SolveManifold (service and action), SolveAllIK, the last manifold, playback."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from kin_interfaces.action import SolveManifold as SolveManifoldAction
from kin_interfaces.msg import Manifold as ManifoldMessage
from kin_interfaces.msg import ManifoldProblem, SolveStatus
from kin_interfaces.srv import SolveAllIK, SolveManifold
from numpy.typing import NDArray
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from visualization_msgs.msg import Marker, MarkerArray

from kin_core.errors import Cancelled, InvalidInput, LimitExceeded, StatusCode
from kin_core.task import Progress, Task
from kin_core.urdf import Urdf, load_closures, load_urdf
from kin_ros.arrays import from_field, to_field
from kin_ros.markers import BLUE, SERIES, clear_all, colour, make_marker
from kin_ros.node import KinNode, run
from kin_ros.parameters import ParameterSet, parameter
from kin_ros.poses import read_pose
from kin_ros.qos import LATCHED, STATE
from kin_solvers import library
from kin_solvers.all_ik import solve_all_ik
from kin_solvers.manifold import Manifold
from kin_solvers.mechanism import Mechanism
from kin_solvers.mechanism_urdf import arm_from_urdf, loops_from_urdf
from kin_solvers.mechanism_yaml import load_mechanism
from kin_solvers.plot import linkage_points
from kin_solvers.settings import Settings
from kin_solvers.solve import solve

Array = NDArray[np.float64]

MAX_MARKERS = 4000
#: Largest side with which all IK is searched [rad, m]; clusters that resist are refined anyway.
ALL_IK_SIGMA = 0.1
#: How long playback waits after somebody chose a configuration to see [s].
_PAUSE = 3.0
_STOP_CODES = {
    "boxes": StatusCode.LIMIT_EXCEEDED,
    "memory": StatusCode.LIMIT_EXCEEDED,
    "time": StatusCode.TIMEOUT,
    "cancelled": StatusCode.CANCELLED,
}


@dataclass(frozen=True, kw_only=True)
class CuikParameters(ParameterSet):
    """Parameters of the node."""

    sigma: float = parameter(
        0.1, "box side at which a box counts as solution [rad, m]", minimum=1e-9, maximum=10.0
    )
    rho: float = parameter(
        0.8, "volume ratio above which a box is split", minimum=0.01, maximum=0.99
    )
    method: str = parameter("fast", "algorithm", choices=("fast", "paper"))
    engine: str = parameter("local", "where to solve", choices=("local", "dask"))
    scheduler: str = parameter("", "address of the dask scheduler, such as tcp://10.0.0.5:8786")
    threads: int = parameter(2, "threads of one solve", minimum=1, maximum=256)
    max_boxes: int = parameter(
        2_000_000, "budget of boxes of one solve", minimum=1, maximum=10_000_000_000
    )
    max_bytes: int = parameter(
        1 << 29, "budget of memory for boxes of one solve [bytes]", minimum=4096, maximum=1 << 40
    )
    max_answer_boxes: int = parameter(
        200_000, "largest number of boxes in an answer", minimum=1, maximum=10_000_000
    )
    robot_description: str = parameter(
        "robot_description", "topic of the robot description", read_only=True
    )
    marker_variables: tuple[str, ...] = parameter(
        (), "three variables that the markers show as x, y, z; empty: the first three"
    )
    marker_frame: str = parameter("map", "frame of the markers")
    playback: bool = parameter(True, "publish joint_states along the last self-motion curve")
    playback_rate: float = parameter(
        10.0, "joint states per second [Hz]", minimum=0.1, maximum=200.0, read_only=True
    )

    def check(self) -> None:
        """Cross-field rules."""
        if len(self.marker_variables) not in (0, 3):
            raise InvalidInput("marker_variables", "must name three variables, or none")
        if self.engine == "dask" and not self.scheduler:
            raise InvalidInput("scheduler", "must be given for the engine dask")


class KinSolversNode(KinNode[CuikParameters]):
    """Answers questions about closed mechanisms."""

    def __init__(self, **node_arguments: Any) -> None:
        super().__init__("kin_solvers", CuikParameters, **node_arguments)

    def warm_up(self) -> None:
        """Compile the kernels of loops, planar mechanisms and platforms, or load them."""
        for name in ("bennett", "scara", "three_rpr", "stewart"):
            solve(library.get(name), Settings(sigma=0.5)).components  # noqa: B018
        solve_all_ik(library.get("puma560"), None, Settings(threads=self.parameters.threads))

    def configure(self) -> None:
        """Make publishers and servers."""
        self._descriptions: dict[str, tuple[str, Urdf]] = {}
        self._lock = threading.Lock()
        self._curve: tuple[list[str], Array] | None = None
        self._tick = 0
        self._manifold = self.publish_to(ManifoldMessage, "~/manifold", LATCHED)
        self._markers = self.publish_to(MarkerArray, "~/markers", LATCHED)
        self._states = self.publish_to(JointState, "~/joint_states", STATE)
        self._linkage = self.publish_to(MarkerArray, "~/linkage", STATE)
        self._drawn: Mechanism | None = None
        self._playback_from = 0.0
        self.listen(JointState, "~/show", self._on_show, STATE)
        self._listening: set[str] = set()
        self.serve(SolveManifold, "~/solve_manifold", self._solve_service)
        self.serve_action(SolveManifoldAction, "~/solve_manifold", self._solve_action, _feedback)
        self.serve(SolveAllIK, "~/solve_all_ik", self._solve_all_ik)
        self.every(1.0 / self.parameters.playback_rate, self._play)

    def activate(self) -> None:
        """Subscribe to the robot description: a latched one must not come while inactive."""
        if not self._listening:
            self._listen_to(self.parameters.robot_description)

    # Requests ------------------------------------------------------------------------------

    def _solve_service(self, request: Any, task: Task) -> Any:
        response = SolveManifold.Response()
        self._solve(request.problem, task, response)
        return response

    def _solve_action(self, goal: Any, task: Task) -> Any:
        result = SolveManifoldAction.Result()
        self._solve(goal.problem, task, result)
        return result

    def _solve(self, problem: ManifoldProblem, task: Task, answer: Any) -> None:
        mechanism = self._mechanism(problem)
        settings = self._settings(problem)
        n = len(mechanism.variables)
        boxes = None
        if len(problem.resume_lower) or len(problem.resume_upper):
            boxes = (
                _rows("resume_lower", problem.resume_lower, n),
                _rows("resume_upper", problem.resume_upper, n),
            )
        seed = from_field(problem.seed)
        if len(seed) not in (0, n):
            raise InvalidInput("seed", f"must hold {n} values or none, got {len(seed)}")
        if not np.isfinite(seed).all():
            raise InvalidInput("seed", "must be finite")
        manifold = solve(mechanism, settings, task=task, boxes=boxes)
        if len(seed):
            manifold = manifold.sorted_by(seed)
        limit = self.parameters.max_answer_boxes
        if max(len(manifold.lower), len(manifold.unfinished_lower)) > limit:
            if manifold.stopped == "cancelled":  # who cancels wants to hear that, not of limits
                raise Cancelled(f"{manifold.message}; too many boxes to send what was found")
            raise LimitExceeded(
                f"the answer has {len(manifold.lower)} boxes, over max_answer_boxes = {limit}; "
                "use a larger sigma"
            )
        message = _message(manifold, min(problem.refine, 1_000_000), seed)
        message.header.stamp = self.get_clock().now().to_msg()
        message.header.frame_id = self.parameters.marker_frame
        answer.manifold = message
        self._report(answer.status, manifold)
        self.diagnostics.value("boxes processed", float(manifold.counters.processed))
        if manifold.complete:
            self._show(manifold, message)

    @staticmethod
    def _report(status: SolveStatus, manifold: Manifold) -> None:
        status.code = int(_STOP_CODES.get(manifold.stopped, StatusCode.SUCCESS))
        status.message = manifold.message
        status.iterations = min(manifold.counters.reductions, 2**32 - 1)
        status.residual = math.nan

    def _solve_all_ik(self, request: Any, task: Task) -> Any:
        pose = read_pose("pose", request.pose)
        if request.arm:
            arm = library.get(request.arm).with_target(pose)
        else:
            urdf = self._urdf("")
            arm = arm_from_urdf(urdf, pose, base=request.base_link, tip=request.tip_link)
        arm = arm.with_ranges(
            _ranges(request.range_names, request.range_lower, request.range_upper)
        )
        seed = from_field(request.seed)
        p = self.parameters
        settings = Settings(
            sigma=min(p.sigma, ALL_IK_SIGMA), rho=p.rho, threads=p.threads, max_boxes=p.max_boxes,
            max_bytes=p.max_bytes,
        )  # fmt: skip
        found = solve_all_ik(arm, seed if len(seed) else None, settings, task=task)
        response = SolveAllIK.Response()
        keep = len(found.positions)
        if request.max_solutions:
            keep = min(keep, int(request.max_solutions))
        response.joints = list(arm.names)
        response.count = keep
        response.positions = to_field(found.positions[:keep].reshape(-1))
        response.distances = to_field(found.distances[:keep])
        response.certified = found.certified[:keep].tolist()
        response.components = to_field(found.components[:keep].astype(np.int32), "int32")
        parts = found.manifold.components
        response.complete = found.complete
        response.separated = found.separated
        response.posture_count = found.postures
        response.dimension = found.dimension
        response.component_count = len(parts)
        response.dimensions = to_field(np.array([c.dimension for c in parts], np.uint8), "uint8")
        response.dimensions_proven = [c.proven for c in parts]
        response.unresolved_count = len(found.manifold.unresolved)
        self._report(response.status, found.manifold)
        status = response.status
        if found.manifold.complete and len(found.manifold.lower) == 0:
            status.code = int(StatusCode.UNREACHABLE)
        status.message = found.message
        if status.code == int(StatusCode.SUCCESS):
            if keep < len(found.positions):
                status.message += f"; the {keep} nearest answered"
            status.residual = max((arm.residual(q) for q in found.positions[:8]), default=0.0)
        return response

    # From messages -------------------------------------------------------------------------

    def _mechanism(self, problem: ManifoldProblem) -> Mechanism:
        pose = read_pose("target", problem.target) if problem.use_target else None
        if problem.source == ManifoldProblem.LIBRARY:
            mechanism = library.get(problem.mechanism)
        elif problem.source == ManifoldProblem.YAML:
            mechanism = load_mechanism(problem.mechanism)
        elif problem.source == ManifoldProblem.URDF:
            urdf = self._urdf(problem.mechanism)
            if problem.closures:
                mechanism = loops_from_urdf(urdf, load_closures(problem.closures))
            elif pose is not None:
                mechanism = arm_from_urdf(urdf, pose, base=problem.base_link, tip=problem.tip_link)
            else:
                raise InvalidInput("target", "is needed for a robot description without closures")
            pose = None
        else:
            raise InvalidInput("source", f"must be 0, 1 or 2, got {problem.source}")
        if pose is not None:
            mechanism = mechanism.with_target(pose)
        return mechanism.with_ranges(
            _ranges(problem.range_names, problem.range_lower, problem.range_upper)
        )

    def _settings(self, problem: ManifoldProblem) -> Settings:
        p = self.parameters
        if problem.sigma < 0.0:
            raise InvalidInput("sigma", f"must be greater than zero, got {problem.sigma}")
        return Settings(
            sigma=problem.sigma or p.sigma,
            rho=problem.rho or p.rho,
            method=problem.method or p.method,
            engine=problem.engine or p.engine,
            scheduler=p.scheduler,
            threads=p.threads,
            max_boxes=min(problem.max_boxes or p.max_boxes, p.max_boxes),
            max_bytes=min(problem.max_bytes or p.max_bytes, p.max_bytes),
            certify=not problem.skip_certificates,
        )

    def _listen_to(self, topic: str) -> None:
        self._listening.add(topic)

        def keep(message: Any) -> None:
            try:
                urdf = load_urdf(message.data, name=topic)
            except InvalidInput as error:
                self.get_logger().error(f"robot description refused: {error}")
                return
            with self._lock:
                self._descriptions[topic] = (message.data, urdf)

        self.listen(String, topic, keep, LATCHED)

    def _urdf(self, topic: str) -> Urdf:
        topic = topic or self.parameters.robot_description
        if topic not in self._listening:
            raise InvalidInput(
                "mechanism",
                f"the node listens to {', '.join(sorted(self._listening))} for robot descriptions, "
                f"not to {topic!r}; set its parameter robot_description",
            )
        with self._lock:
            if topic not in self._descriptions:
                raise InvalidInput("mechanism", f"no robot description has come on {topic!r} yet")
            return self._descriptions[topic][1]

    # Publications --------------------------------------------------------------------------

    def _show(self, manifold: Manifold, message: ManifoldMessage) -> None:
        self._manifold.publish(message)
        self._markers.publish(self._boxes_as_markers(manifold))
        curve = None
        for number, component in enumerate(manifold.components):
            if component.dimension == 1:
                points, closed = manifold.curve(number)
                if not closed:
                    points = np.concatenate([points, points[::-1]])
                curve = (list(manifold.mechanism.names), points)
                break
        with self._lock:
            self._curve = curve
            self._tick = 0
            self._drawn = manifold.mechanism
        if manifold.components:
            point = manifold.components[0].point
            self._linkage.publish(self._linkage_as_markers(manifold.mechanism, point))

    def _boxes_as_markers(self, manifold: Manifold) -> MarkerArray:
        names = self.parameters.marker_variables or manifold.mechanism.names[:3]
        known = [n for n in names if n in manifold.mechanism.names]
        axes = [manifold.mechanism.index(n) for n in known][:3]
        middle = 0.5 * (manifold.lower + manifold.upper)[:MAX_MARKERS]
        size = (manifold.upper - manifold.lower)[:MAX_MARKERS]
        array = MarkerArray(markers=[clear_all()])
        stamp = self.get_clock().now().to_msg()
        for i, (m, s) in enumerate(zip(middle, size, strict=True)):
            unused = 3 - len(axes)
            # A colour for each component; certified boxes are drawn solid.
            shade = SERIES[int(manifold.labels[i]) % len(SERIES)]
            marker = make_marker(
                Marker.CUBE,
                "manifold",
                i,
                frame_id=self.parameters.marker_frame,
                stamp=stamp,
                size=[*np.maximum(s[axes], 0.01), *[0.01] * unused],
                shade=colour(shade, 0.95 if manifold.certified[i] else 0.5),
                position=np.array([*m[axes], *[0.0] * unused]),
            )
            array.markers.append(marker)
        return array

    def _on_show(self, message: JointState) -> None:
        """Draw the last mechanism at a configuration that somebody has chosen."""
        with self._lock:
            mechanism = self._drawn
        if mechanism is None:
            raise InvalidInput("show", "no mechanism has been solved yet")
        if sorted(message.name) != sorted(mechanism.names):
            raise InvalidInput("show.name", f"must be {', '.join(mechanism.names)}")
        if len(message.position) != len(message.name) or not np.isfinite(message.position).all():
            raise InvalidInput("show.position", f"must be {len(message.name)} finite numbers")
        given = dict(zip(message.name, message.position, strict=True))
        q = np.array([given[name] for name in mechanism.names])
        self._playback_from = time.monotonic() + _PAUSE
        self._linkage.publish(self._linkage_as_markers(mechanism, q))

    def _linkage_as_markers(self, mechanism: Mechanism, q: Array) -> MarkerArray:
        """Each loop as a line through its frames, with a ball at each of them."""
        array = MarkerArray(markers=[clear_all()])
        stamp = self.get_clock().now().to_msg()
        for i in range(len(mechanism.loops)):
            points = linkage_points(mechanism, i, q)
            size = 0.02 * max(float(np.ptp(points, axis=0).max()), 1e-3)
            for kind, width in ((Marker.LINE_STRIP, size), (Marker.SPHERE_LIST, 2.5 * size)):
                marker = make_marker(
                    kind,
                    "linkage",
                    2 * i + (kind == Marker.SPHERE_LIST),
                    frame_id=self.parameters.marker_frame,
                    stamp=stamp,
                    size=width,
                    shade=colour(BLUE),
                    points=points,
                )
                array.markers.append(marker)
        return array

    def _play(self) -> None:
        if not self.parameters.playback or time.monotonic() < self._playback_from:
            return
        with self._lock:
            if self._curve is None or len(self._curve[1]) == 0:
                return
            names, points = self._curve
            q = points[self._tick % len(points)]
            self._tick += 1
        state = JointState(name=names, position=to_field(q))
        state.header.stamp = self.get_clock().now().to_msg()
        self._states.publish(state)
        if self._drawn is not None and self._linkage.get_subscription_count() > 0:
            self._linkage.publish(self._linkage_as_markers(self._drawn, np.asarray(q)))


def _ranges(names: Any, lower: Any, upper: Any) -> dict[str, tuple[float, float]]:
    if not len(names) == len(lower) == len(upper):
        raise InvalidInput(
            "range_names", "range_names, range_lower and range_upper must have one length"
        )
    return {n: (float(a), float(b)) for n, a, b in zip(names, lower, upper, strict=True)}


def _rows(field: str, values: Any, size: int) -> Array:
    array = from_field(values)
    if len(array) % size:
        raise InvalidInput(field, f"must hold a multiple of {size} values, got {len(array)}")
    return array.reshape(-1, size)


def _message(manifold: Manifold, refine: int, seed: Array) -> ManifoldMessage:
    message = ManifoldMessage()
    message.mechanism = manifold.mechanism.name
    message.variables = list(manifold.mechanism.names)
    message.translations = [v.kind == "translation" for v in manifold.mechanism.variables]
    message.sigma = manifold.sigma
    message.complete = manifold.complete
    message.box_count = len(manifold.lower)
    message.lower = to_field(manifold.lower.reshape(-1))
    message.upper = to_field(manifold.upper.reshape(-1))
    message.certificates = to_field(manifold.certified.astype(np.uint8), "uint8")
    # The analysis takes time, which a search that was stopped has not.
    labels = manifold.labels if manifold.complete else manifold.clusters
    message.components = to_field(labels.astype(np.int32), "int32")
    if len(seed):
        message.distances = to_field(manifold.distances(seed))
    message.component_count = int(labels.max(initial=-1)) + 1
    if manifold.complete:
        found = manifold.components
        message.component_count = len(found)
        message.dimensions_proven = [c.proven for c in found]
        message.separated = manifold.separated
        message.unresolved_count = len(manifold.unresolved)
        message.dimensions = to_field(np.array([c.dimension for c in found], np.uint8), "uint8")
        message.closed_curves = [c.closed_curve for c in found]
    if refine:
        points, labels = manifold.refine(refine)
        message.point_count = len(points)
        message.points = to_field(points.reshape(-1))
        message.point_components = to_field(labels.astype(np.int32), "int32")
    message.unfinished_count = len(manifold.unfinished_lower)
    message.unfinished_lower = to_field(manifold.unfinished_lower.reshape(-1))
    message.unfinished_upper = to_field(manifold.unfinished_upper.reshape(-1))
    message.processed = manifold.counters.processed
    message.reductions = manifold.counters.reductions
    message.solutions = manifold.counters.solutions
    message.empty = manifold.counters.empty
    return message


def _feedback(progress: Progress) -> Any:
    counters = progress.counters
    return SolveManifoldAction.Feedback(
        settled=progress.fraction,
        queued=int(counters.get("queued", 0.0)),
        solutions=int(counters.get("solutions", 0.0)),
        processed=int(counters.get("processed", 0.0)),
    )


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run(KinSolversNode, args)
