"""The ROS 2 node: SolveManifold and SolvePath (services and actions), SolveAllIK, playback."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
from kin_interfaces.action import SolveManifold as SolveManifoldAction
from kin_interfaces.action import SolvePath as SolvePathAction
from kin_interfaces.msg import Manifold as ManifoldMessage
from kin_interfaces.msg import ManifoldProblem, PathProblem
from kin_interfaces.srv import SolveAllIK, SolveManifold, SolvePath
from numpy.typing import NDArray
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

from kin_core.errors import Cancelled, InvalidInput, LimitExceeded
from kin_core.task import Task
from kin_core.urdf import Urdf, load_urdf
from kin_ros.arrays import from_field, to_field
from kin_ros.frames import Frames
from kin_ros.moveit import serve_kinematics
from kin_ros.node import KinNode, run
from kin_ros.qos import LATCHED, STATE
from kin_solvers.all_ik import solve_all_ik
from kin_solvers.conversions import (
    all_ik_response,
    feedback,
    manifold_message,
    path_feedback,
    path_tree_message,
    read_arm,
    read_boxes,
    read_mechanism,
    read_path,
    read_seed,
    read_settings,
    report,
)
from kin_solvers.doors import ArmDoors
from kin_solvers.manifold import Manifold
from kin_solvers.markers import boxes_as_markers, linkage_as_markers
from kin_solvers.mechanism import Mechanism
from kin_solvers.parameters import CuikParameters
from kin_solvers.paths import LOOK, solve_path
from kin_solvers.settings import Settings
from kin_solvers.solve import solve
from kin_solvers.warm_up import warm_up_first, warm_up_more

Array = NDArray[np.float64]

#: Largest side with which all IK is searched [rad, m]; clusters that resist are refined anyway.
ALL_IK_SIGMA = 0.1
#: How long playback waits after somebody chose a configuration to see [s].
_PAUSE = 3.0


class KinSolversNode(KinNode[CuikParameters]):
    """Answers questions about closed mechanisms."""

    def __init__(self, **node_arguments: Any) -> None:
        super().__init__("kin_solvers", CuikParameters, **node_arguments)

    def warm_up(self) -> None:
        """Compile what the first requests need, or load it."""
        warm_up_first(self.parameters.threads)

    def warm_up_more(self) -> None:
        """Compile the other kernels, or load them."""
        warm_up_more()

    def configure(self) -> None:
        """Make publishers and servers."""
        self._descriptions: dict[str, tuple[str, Urdf]] = {}
        self._lock = threading.Lock()
        self._frames = Frames(self)
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
        self.serve(
            SolveManifold,
            "~/solve_manifold",
            lambda request, task: self._solve(request.problem, task, SolveManifold.Response()),
        )
        self.serve_action(
            SolveManifoldAction,
            "~/solve_manifold",
            lambda goal, task: self._solve(goal.problem, task, SolveManifoldAction.Result()),
            feedback,
        )
        self.serve(SolveAllIK, "~/solve_all_ik", self._solve_all_ik)
        self.serve(
            SolvePath,
            "~/solve_path",
            lambda request, task: self._solve_path(request.problem, task, SolvePath.Response()),
        )
        self.serve_action(
            SolvePathAction,
            "~/solve_path",
            lambda goal, task: self._solve_path(goal.problem, task, SolvePathAction.Result()),
            path_feedback,
        )
        doors = ArmDoors(lambda: self._urdf(""), self._all_ik_settings)
        serve_kinematics(self, doors.robot, self._frames, ik=doors.ik, fk=doors.fk, path=doors.path)
        self.every(1.0 / self.parameters.playback_rate, self._play)

    def activate(self) -> None:
        """Subscribe to the robot description: a latched one must not come while inactive."""
        if not self._listening:
            self._listen_to(self.parameters.robot_description)

    # Requests ------------------------------------------------------------------------------

    def _solve(self, problem: ManifoldProblem, task: Task, answer: Any) -> Any:
        mechanism = read_mechanism(problem, self._urdf)
        settings = read_settings(problem, self.parameters)
        n = len(mechanism.variables)
        boxes, seed = read_boxes(problem, n), read_seed(problem, n)
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
        message = manifold_message(manifold, problem.refine, seed)
        message.header.stamp = self._now()
        message.header.frame_id = self.parameters.marker_frame
        answer.manifold = message
        report(answer.status, manifold)
        self.diagnostics.value("boxes processed", float(manifold.counters.processed))
        if manifold.complete:
            self._show(manifold, message)
        return answer

    def _solve_all_ik(self, request: Any, task: Task) -> Any:
        arm = read_arm(request, self._urdf, self._frames.read_pose)
        seed = from_field(request.seed)
        settings = self._all_ik_settings()
        found = solve_all_ik(arm, seed if len(seed) else None, settings, task=task)
        return all_ik_response(arm, found, int(request.max_solutions))

    def _solve_path(self, problem: PathProblem, task: Task, answer: Any) -> Any:
        arm, poses, waypoints = read_path(problem, self._urdf, self._frames.read_pose)
        seed = from_field(problem.seed)
        look = int(problem.look) or LOOK
        tree = solve_path(arm, poses, self._all_ik_settings(), look=look, task=task)
        best = tree.best(seed if len(seed) else None)
        answer.tree = path_tree_message(tree, best, waypoints, answer.status)
        return answer

    def _all_ik_settings(self) -> Settings:
        p = self.parameters
        return Settings(
            sigma=min(p.sigma, ALL_IK_SIGMA), rho=p.rho, threads=p.threads, max_boxes=p.max_boxes,
            max_bytes=p.max_bytes,
        )  # fmt: skip

    # Robot descriptions --------------------------------------------------------------------

    def _listen_to(self, topic: str) -> None:
        self._listening.add(topic)

        def keep(message: Any) -> None:
            try:
                urdf = load_urdf(message.data, name=topic)
            except InvalidInput as error:
                self.get_logger().error(
                    f"robot description refused: {error}", throttle_duration_sec=1.0
                )
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
        p = self.parameters
        self._markers.publish(
            boxes_as_markers(manifold, p.marker_variables, p.marker_frame, self._now())
        )
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
            self._draw(manifold.mechanism, manifold.components[0].point)

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
        self._draw(mechanism, q)

    def _draw(self, mechanism: Mechanism, q: Array) -> None:
        self._linkage.publish(
            linkage_as_markers(mechanism, q, self.parameters.marker_frame, self._now())
        )

    def _now(self) -> Any:
        return self.get_clock().now().to_msg()

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
        state.header.stamp = self._now()
        self._states.publish(state)
        if self._drawn is not None and self._linkage.get_subscription_count() > 0:
            self._draw(self._drawn, np.asarray(q))


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run(KinSolversNode, args)
