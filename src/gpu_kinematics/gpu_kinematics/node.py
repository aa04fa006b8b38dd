"""The ROS node: batches and single robots in, kinematics out, and a fleet to look at.

Topics (relative): ``delta/fk/request`` -> ``delta/fk/result``, ``delta/ik/request`` ->
``delta/ik/result`` (DeltaBatch); ``delta/joint_states`` -> ``delta/point`` and ``delta/target`` ->
``delta/joint_command`` for one robot; ``delta/fleet/joint_states``, ``delta/fleet/batch`` and
``delta/fleet/markers`` from the demo.
"""

from __future__ import annotations

import math
import time
from typing import Any

from geometry_msgs.msg import PointStamped
from kin_interfaces.msg import DeltaBatch
from kin_interfaces.srv import MakeTrajectory, SolveDelta, WorkspaceMap
from rclpy.time import Time
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from visualization_msgs.msg import MarkerArray

from gpu_kinematics import conversions
from gpu_kinematics.delta import Delta
from gpu_kinematics.errors import DeltaInput, DeltaLimit
from gpu_kinematics.fleet import DemoFleet
from gpu_kinematics.geometry import Geometry, Limits
from gpu_kinematics.kernels import OPS
from gpu_kinematics.markers import fleet_markers
from gpu_kinematics.parameters import GpuKinematicsParameters
from gpu_kinematics.trajectory import Fleet, Move, sample_times
from gpu_kinematics.warm_up import warm_up
from gpu_kinematics.workspace import map_workspace
from kin_core.task import Task
from kin_ros.arrays import to_field
from kin_ros.node import KinNode, run
from kin_ros.poses import read_position
from kin_ros.qos import SENSOR, STATE

__all__ = ["GpuKinematicsNode", "main"]


class GpuKinematicsNode(KinNode[GpuKinematicsParameters]):
    """Delta robots in batches."""

    delta: Delta
    demo: DemoFleet | None = None

    def __init__(self, **arguments: Any) -> None:
        super().__init__("gpu_kinematics", GpuKinematicsParameters, **arguments)

    # -- life

    def warm_up(self) -> None:
        """Compile what messages, requests and the demo need, or load it from the cache."""
        delta = self._delta()
        warm_up(delta)
        if self.parameters.fleet:
            self._fleet(delta).at(0.0)

    def configure(self) -> None:
        """Choose the backend, open topics and services."""
        self._rebuild()
        if self.delta.fallback:
            self.get_logger().info(f"computing on the CPU: {self.delta.fallback}")
        self.diagnostics.value("backend", self.delta.backend)
        self._point = self.publish_to(PointStamped, "delta/point", STATE)
        self._command = self.publish_to(JointState, "delta/joint_command", STATE)
        self._serve_batches("fk", DeltaBatch.ANGLES, DeltaBatch.POSITIONS)
        self._serve_batches("ik", DeltaBatch.POSITIONS, DeltaBatch.ANGLES)
        self.listen(JointState, "delta/joint_states", self._joint_states, SENSOR)
        self.listen(PointStamped, "delta/target", self._target, SENSOR)
        self.serve(SolveDelta, "~/solve_delta", self.solve)
        self.serve(MakeTrajectory, "~/make_trajectory", self.make_trajectory)
        self.serve(WorkspaceMap, "~/workspace_map", self.workspace_map)
        if self.parameters.fleet:
            self._show_fleet()
        # The other kernels compile beside the first requests; with a warm cache that takes no time.
        others = tuple(op for op in OPS if op not in ("fk", "ik"))
        delta = self.delta
        self.thread("warm", lambda: delta.warm(others))

    def cleanup(self) -> None:
        """Forget the demo."""
        self.demo = None

    def parameters_changed(
        self, old: GpuKinematicsParameters, new: GpuKinematicsParameters
    ) -> None:
        """Take over new dimensions and limits."""
        self._rebuild()

    def _delta(self) -> Delta:
        p = self.parameters
        return Delta(
            Geometry(p.radius, p.upper, p.lower, p.theta),
            Limits(p.angle_lower, p.angle_upper),
            backend=p.backend,
            mode=p.mode,
            threads=p.threads,
        )

    def _rebuild(self) -> None:
        self.delta = self._delta()
        self._without_limits = self._robots(self.delta.geometry, None)

    def _robots(self, geometry: Geometry, limits: Limits | None) -> Delta:
        """Robots with other dimensions or limits, on the backend of the node."""
        p = self.parameters
        return Delta(
            geometry,
            limits,
            backend=self.delta.backend,
            mode=p.mode,
            threads=p.threads,
            cuda=self.delta.cuda,
        )

    def _motion_limits(self) -> dict[str, float]:
        names = ("max_velocity", "max_acceleration", "max_jerk")
        return {name: getattr(self.parameters, name) for name in names}

    # -- services

    def solve(self, request: SolveDelta.Request, task: Task) -> SolveDelta.Response:
        """Answer SolveDelta."""
        ask, response = SolveDelta.Request, SolveDelta.Response()
        batch = conversions.read_batch(
            request, self.parameters.max_batch, single=request.single_precision
        )
        geometry = conversions.read_geometry(request.geometry, batch.count)
        if geometry is not None:
            limits = self.delta.limits if request.apply_limits else None
            robots = self._robots(geometry, limits)
        else:
            robots = self.delta if request.apply_limits else self._without_limits
        data = batch.vectors("data")
        forward: dict[str, Any] = {"platform": batch.platform, "layout": batch.layout}
        inverse: dict[str, Any] = {"elbows": batch.elbows, "layout": batch.layout}
        started = time.perf_counter()
        if request.operation == ask.FORWARD:
            values, mask = robots.fk(data, **forward)
        elif request.operation == ask.INVERSE:
            values, mask = robots.ik(data, **inverse)
        elif request.operation == ask.JACOBIAN:
            found = robots.jacobian(data, **forward)
            task.check()
            measures = robots.measures(data, **forward)
            conversions.fill_jacobian(response, found, measures)
            values, mask = found.position, found.status | measures.status
        elif request.operation in (ask.FORWARD_MOTION, ask.INVERSE_MOTION):
            motion: Any = (
                robots.forward_motion(data, *batch.rates(), **forward)
                if request.operation == ask.FORWARD_MOTION
                else robots.inverse_motion(data, *batch.rates(), **inverse)
            )
            values, rate, rate2, mask = motion
            response.rate, response.rate2 = to_field(rate), to_field(rate2)
        else:
            raise DeltaInput("operation", f"must be between 0 and 4, got {request.operation}")
        self._note_speed(batch.count, time.perf_counter() - started)
        conversions.fill_solution(response, values, mask, robots.backend)
        return response

    def make_trajectory(
        self, request: MakeTrajectory.Request, task: Task
    ) -> MakeTrajectory.Response:
        """Answer MakeTrajectory."""
        p, response = self.parameters, MakeTrajectory.Response()
        if request.count < 1:
            raise DeltaInput("count", "must be at least 1")
        batch = conversions.read_batch(request, p.max_batch)
        move = conversions.read_move(request, self._motion_limits())
        geometry = conversions.read_geometry(request.geometry, batch.count)
        robots = self.delta if geometry is None else self._robots(geometry, self.delta.limits)
        plan = Fleet(robots, *conversions.read_ends(batch), move, layout=batch.layout)
        plan.check()
        if request.fit_joint_rates:
            plan = plan.slowed(p.max_rate, p.max_rate2, task=task)
        times = sample_times(
            plan, float(request.sample_period), int(request.samples), p.max_samples
        )
        task.check()
        motion = plan.sample(times, fields=("position", "angle", "rate", "rate2"))
        task.check()
        conversions.fill_trajectory(response, plan, times, motion)
        return response

    def workspace_map(self, request: WorkspaceMap.Request, task: Task) -> WorkspaceMap.Response:
        """Answer WorkspaceMap."""
        response = WorkspaceMap.Response()
        geometry = conversions.read_geometry(request.geometry, 1) or self.delta.geometry
        limits = conversions.read_angle_limits(request, self.delta.limits)
        found = map_workspace(
            self._robots(geometry, limits),
            request.lower,
            request.upper,
            request.cells,
            max_condition=request.max_condition or math.inf,
            max_points=self.parameters.max_points,
            task=task,
        )
        conversions.fill_map(response, found)
        return response

    # -- topics

    def _serve_batches(self, op: str, asked: int, given: int) -> None:
        """Answer a batch topic from a thread of its own, in order."""
        topic = f"delta/{op}/request"
        result = self.publish_to(DeltaBatch, f"delta/{op}/result", STATE)

        def answer(work: tuple[DeltaBatch, Delta]) -> None:
            message, robots = work
            if message.quantity != asked:
                raise DeltaInput("quantity", f"must be {asked} on this topic")
            batch = conversions.read_batch(message, self.parameters.max_batch)
            data = batch.vectors("data")
            started = time.perf_counter()
            values, mask = getattr(robots, op)(data, layout=batch.layout)
            self._note_speed(batch.count, time.perf_counter() - started)
            result.publish(
                conversions.batch_message(message.header, given, values, mask, batch.layout)
            )

        limit = self.parameters.batch_queue
        box = self.mailbox(f"batch of {topic}", answer, limit=limit)

        def receive(message: DeltaBatch) -> None:
            if not box.put((message, self.delta)):
                self.diagnostics.count("batches dropped")
                raise DeltaLimit(
                    f"more than batch_queue = {limit} batches wait; the oldest was dropped"
                )

        self.listen(DeltaBatch, topic, receive, STATE)

    def _joint_states(self, message: JointState) -> None:
        position, mask = self.delta.fk(conversions.read_angles(message))
        frame = self.parameters.frame_id
        self._point.publish(conversions.point_message(message.header, frame, position, mask))

    def _target(self, message: PointStamped) -> None:
        # An unreachable target gives no command: the robot stays where it is.
        angles, mask = self.delta.ik(read_position("target", message.point))
        self._command.publish(conversions.joint_command(message.header, angles, mask))

    def _note_speed(self, count: int, seconds: float) -> None:
        self.diagnostics.count("robots", count)
        if seconds > 0.0 and count:
            self.diagnostics.value("robots_per_second", count / seconds)

    # -- demo

    def _fleet(self, delta: Delta) -> DemoFleet:
        p = self.parameters
        limits = self._motion_limits()
        move = Move(kind="adept_cycle", height=0.012, overlap=0.7, dwell=0.1, **limits)
        return DemoFleet(delta, p.fleet, p.fleet_spacing, move)

    def _show_fleet(self) -> None:
        self.demo = self._fleet(self.delta)
        self._fleet_batch = self.publish_to(DeltaBatch, "delta/fleet/batch", STATE)
        self._fleet_joints = self.publish_to(JointState, "delta/fleet/joint_states", STATE)
        self._fleet_markers = self.publish_to(MarkerArray, "delta/fleet/markers", STATE)
        box = self.mailbox("fleet", self._fleet_tick)

        def tick() -> None:
            if not box.put(self.get_clock().now()):
                self.diagnostics.count("fleet ticks skipped")

        self.every(1.0 / self.parameters.fleet_rate, tick)

    def _fleet_tick(self, now: Time) -> None:
        """Publish one moment of the demo, as far as somebody wants to know."""
        demo = self.demo
        if demo is None:
            return
        started = time.perf_counter()
        motion = demo.at(now.nanoseconds * 1e-9)
        self._note_speed(demo.count, time.perf_counter() - started)
        header = Header(stamp=now.to_msg(), frame_id=self.parameters.frame_id)
        if self._fleet_batch.get_subscription_count() > 0:
            angles, mask = motion.angle, motion.status
            self._fleet_batch.publish(
                conversions.batch_message(header, DeltaBatch.ANGLES, angles, mask)
            )
        if self._fleet_joints.get_subscription_count() > 0:
            joints = JointState(header=header, name=demo.joint_names)
            joints.position = to_field(motion.angle[:, 0].T)
            joints.velocity = to_field(motion.rate[:, 0].T)
            self._fleet_joints.publish(joints)
        if self._fleet_markers.get_subscription_count() > 0:
            self._fleet_markers.publish(fleet_markers(header, demo, motion))


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run(GpuKinematicsNode, args)
