"""The node loop_closer: measured actuators in, the full state of a closed-loop robot out.

Each message of actuated joints is one step, taken on the executor and answered at once with a full
state of the same stamp. A step that is refused is answered with nothing but a status.
"""

from __future__ import annotations

import math
import threading
import time
from pathlib import Path
from typing import Any

from kin_interfaces.msg import LoopStatus
from kin_interfaces.srv import CloseLoops
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from hier_ik.linkage import Linkage
from hier_ik.loop_closer import LoopCloser, Step
from hier_ik.loop_conversions import (
    Actuators,
    AllJoints,
    answer_trajectory,
    joint_efforts,
    loop_status,
)
from hier_ik.parameters import CloserParameters
from hier_ik.sources import linkage_from_file
from hier_ik.urdf import load_urdf_linkage
from hier_ik.warm_up import warm_up_closer
from kin_core import checks
from kin_core.errors import InvalidInput
from kin_core.task import Task
from kin_ros.node import KinNode, run
from kin_ros.qos import LATCHED, SENSOR, STATE

__all__ = ["LoopCloserNode", "main"]


class _Robot:
    """The robot that is followed.

    Attributes:
        closer: Where it is.
        start: Where it was at the start.
        actuators: What was heard of its motors.
        joints: What is told of it.
        status: Of the last step.
        near: The smallest margin since it was last looked at.
    """

    def __init__(self, linkage: Linkage, parameters: CloserParameters) -> None:
        self.closer = LoopCloser(
            linkage, parameters.actuated or None, smallest_margin=parameters.smallest_margin
        )
        self.start = self.closer.copy()
        self.actuators = Actuators([self.closer.names[d] for d in self.closer.driven])
        self.joints = AllJoints(self.closer, parameters.effort_joints)
        self.status = LoopStatus(step=LoopStatus.WAITING, message="no step yet")
        self.near = math.inf


class LoopCloserNode(KinNode[CloserParameters]):
    """Thin: every state comes from the library."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__("loop_closer", CloserParameters, **arguments)
        self._lock = threading.Lock()
        self._robot: _Robot | None = None
        self._described = ""
        self._taken = self._refused = 0

    # ---- lifecycle --------------------------------------------------------------------------

    def warm_up(self) -> None:
        """Compile the steps, or load them from the cache."""
        warm_up_closer()

    def configure(self) -> None:
        """Read the robot, make topics and the service."""
        p = self.parameters
        self._robot, self._described = None, ""
        if p.linkage_file:
            self._take(linkage_from_file(Path(p.linkage_file), p.sidecar))
        self._states = self.publish_to(JointState, "joint_states", STATE)
        self._felt = self.publish_to(JointState, "~/actuator_efforts", STATE)
        self._statuses = self.publish_to(LoopStatus, "~/status", STATE)
        self.listen(JointState, "actuated_joint_states", self._on_actuated, SENSOR)
        self.listen(JointState, "~/joint_efforts", self._on_efforts, SENSOR)
        if not p.linkage_file:
            self._described_by = self.mailbox("robot_description", self._on_description)
            self.listen(String, "robot_description", self._hear_description, LATCHED)
        self.serve(CloseLoops, "~/close", self._close)
        self.every(1.0 / p.status_rate, self._tell, steady=True)

    def cleanup(self) -> None:
        """Forget the robot."""
        with self._lock:
            self._robot = None

    def parameters_changed(self, old: CloserParameters, new: CloserParameters) -> None:
        """Take up another distance to singularities."""
        with self._lock:
            if self._robot is not None:
                for closer in (self._robot.closer, self._robot.start):
                    closer.smallest_margin = new.smallest_margin

    # ---- topics -----------------------------------------------------------------------------

    def _on_actuated(self, message: JointState) -> None:
        """Take one step."""
        start = time.perf_counter()
        with self._lock:
            robot = self._robot
            if robot is None or not robot.actuators.take(message) or not robot.actuators.complete:
                return
            closer, actuators = robot.closer, robot.actuators
            state = closer.close(actuators.positions, actuators.velocities)
            robot.near = min(robot.near, state.margin)
            if state.step == Step.CLOSED:
                full = robot.joints.message(closer, state, actuators.efforts)
            changed = state.step != robot.status.step
            if changed:
                robot.status = loop_status(closer, state.step, state.residual)
            robot.status.header, robot.status.residual = message.header, state.residual
        if state.step == Step.CLOSED:
            self._taken += 1
            full.header = message.header
            if not (message.header.stamp.sec or message.header.stamp.nanosec):
                full.header.stamp = self.get_clock().now().to_msg()
            self._states.publish(full)
            self.diagnostics.recovered("step")
        else:
            self._refused += 1
            text = f"the step is refused: {robot.status.message}"
            self.diagnostics.fault(text, source="step")
        self.diagnostics.time("step", time.perf_counter() - start)
        if changed:
            if state.step != Step.CLOSED:
                self.get_logger().warning(text)
            self._tell()

    def _tell(self) -> None:
        """Say how the robot is."""
        d, p = self.diagnostics, self.parameters
        with self._lock:
            robot = self._robot
            if robot is None:
                status = LoopStatus(step=LoopStatus.WAITING, message="no robot is described")
                near = math.nan
            else:
                status, near = robot.status, min(robot.near, robot.closer.margin)
                status.margin, status.nearest = robot.closer.margin, list(robot.closer.nearest())
                status.missing, robot.near = robot.actuators.missing, math.inf
        status.taken, status.refused = self._taken, self._refused
        if near < p.margin_warning:
            loops = ", ".join(map(repr, status.nearest[:3]))
            text = f"the margin to a singularity of {loops} is {near:.3g}"
            d.fault(text, warning=True, source="margin")
        else:
            d.recovered("margin")
        d.value("margin", near)
        d.value("residual", status.residual)
        d.value("steps", status.taken)
        d.value("steps refused", status.refused)
        if self._statuses.get_subscription_count() > 0:
            self._statuses.publish(status)

    def _on_efforts(self, message: JointState) -> None:
        with self._lock:
            felt = joint_efforts(self._need().closer, message)
        self._felt.publish(felt)

    def _hear_description(self, message: String) -> None:
        self._described_by.put(message.data)

    def _on_description(self, text: str) -> None:
        if text != self._described:
            self._take(load_urdf_linkage(text, self.parameters.sidecar))
            self._described = text

    # ---- requests ---------------------------------------------------------------------------

    def _close(self, request: Any, task: Task) -> Any:
        response = CloseLoops.Response()
        with self._lock:
            robot = self._need()
            closer = (robot.start if request.from_start else robot.closer).copy()
        most = self.parameters.max_points
        answer_trajectory(response, closer, robot.joints, request.trajectory, most, task)
        return response

    # ---- inside -----------------------------------------------------------------------------

    def _take(self, linkage: Linkage) -> None:
        """Follow a robot from now on; if it is refused the old one stays."""
        checks.count("links", len(linkage.links), self.parameters.max_links)
        for note in linkage.notes:
            self.get_logger().warning(note)
        robot = _Robot(linkage, self.parameters)
        names = ", ".join(robot.closer.actuated)
        self.get_logger().info(
            f"{linkage.name}: {len(robot.closer.names)} joints follow {names or 'nothing'};"
            f" {robot.closer.assembly.message}"
        )
        with self._lock:
            self._robot = robot

    def _need(self) -> _Robot:
        if self._robot is None:
            raise InvalidInput("robot_description", "none was heard")
        return self._robot


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run(LoopCloserNode, args)
