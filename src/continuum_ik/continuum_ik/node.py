"""The ROS node: follows pose targets, and answers IK, FK and workspace requests."""

from __future__ import annotations

import math
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import PoseStamped
from kin_interfaces.action import SweepWorkspace
from kin_interfaces.srv import SolveContinuumFK, SolveContinuumIK
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from visualization_msgs.msg import MarkerArray

from continuum_ik import conversions
from continuum_ik.demo import demo_path
from continuum_ik.details import Details, solve_in_detail
from continuum_ik.follower import Follower
from continuum_ik.markers import RobotMarkers
from continuum_ik.parameters import ContinuumParameters
from continuum_ik.robot import ContinuumRobot, load_robot
from continuum_ik.rod import RODS, Array
from continuum_ik.solver import ContinuumSolver, IKResult
from continuum_ik.sweep import sweep_workspace
from continuum_ik.warm_up import warm_up
from kin_core.checks import count
from kin_core.errors import InvalidInput, StatusCode
from kin_core.loop import PeriodicLoop
from kin_core.task import Task
from kin_ros.arrays import to_field
from kin_ros.node import KinNode
from kin_ros.node import run as run_node
from kin_ros.poses import check_frame, pose_numbers, read_rotation
from kin_ros.qos import COMMAND, STATE

__all__ = ["ContinuumNode", "main"]


class Target(NamedTuple):
    """A pose that is asked for: position and quaternion (7) or 12 numbers; its times [s]."""

    pose: Array
    stamp: float  # what it was meant for
    arrived: float  # monotonic


class ContinuumNode(KinNode[ContinuumParameters]):
    """Follows targets with one solver, and answers requests with copies of it."""

    def __init__(self, **node_arguments: Any) -> None:
        super().__init__("continuum_ik", ContinuumParameters, **node_arguments)
        self._lock = threading.Lock()  # held for microseconds: a solve, or a copy of the solver
        self._publishing = threading.Lock()  # the messages below are refilled by two threads
        self._source: PeriodicLoop | None = None

    def warm_up(self) -> None:
        """Compile, or load from the cache, every kernel that a request may need."""
        warm_up()

    def configure(self) -> None:
        """Read the robot, find its home, make topics and services."""
        now = self.parameters
        self._follower = Follower(
            ContinuumSolver(
                _robot(now.robot),
                now.tolerance,
                detours=now.detours,
                allow_unstable=now.allow_unstable,
            )
        )
        self._mailbox = self.mailbox("tracking", self._follow)
        self._heard = -math.inf  # when a target from outside last came, monotonic [s]
        self._moved = -math.inf  # when the lengths last changed, monotonic [s]
        self._joint_message = JointState(name=list(now.joint_names))
        self._joint_message.header.frame_id = now.frame_id
        self._platform_message = PoseStamped()
        self._platform_message.header.frame_id = now.frame_id
        self._drawing: RobotMarkers | None = None
        self._joints = self.publish_to(JointState, "joint_states", STATE)
        self._platform = self.publish_to(PoseStamped, "platform_pose", STATE)
        self._stable = self.publish_to(Bool, "stable", STATE)
        self._markers = self.publish_to(MarkerArray, "rod_shapes", STATE)
        self.listen(PoseStamped, "target", self._target, COMMAND)
        self.serve(SolveContinuumIK, "~/solve_ik", self._solve_ik)
        self.serve(SolveContinuumFK, "~/solve_fk", self._solve_fk)
        self.serve_action(
            SweepWorkspace, "~/sweep_workspace", self._sweep, conversions.sweep_feedback
        )
        self.every(1.0 / now.hold_rate, self._hold)
        self.every(1.0 / now.marker_rate, self._draw)
        self.every(1.0, self._report)

    def activate(self) -> None:
        """Start following."""
        if self.parameters.source == "benchmark":
            self._path = demo_path()
            self._next = 0
            self._source = self.loop(
                "benchmark source", 1.0 / self.parameters.source_rate, self._play
            )
            self._source.start()

    def deactivate(self) -> None:
        """Stop following; the last lengths stay."""
        if self._source is not None:
            self._source.stop()
            self._source = None

    def parameters_changed(self, old: ContinuumParameters, new: ContinuumParameters) -> None:
        """Take over a new tolerance."""
        if new.tolerance != old.tolerance and hasattr(self, "_follower"):
            with self._lock:
                self._follower.solver.tolerance = new.tolerance

    # Following targets -------------------------------------------------------------------------

    def _target(self, message: PoseStamped) -> None:
        self.diagnostics.count("targets")
        try:
            check_frame("target", message.header.frame_id, self.parameters.frame_id)
        except InvalidInput:
            self.diagnostics.count("targets refused")
            raise
        now = self.get_clock().now().nanoseconds * 1e-9
        stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
        if stamp == 0.0:
            stamp = now
        elif now - stamp > self.parameters.stale_after:
            self.diagnostics.count("targets stale")
            return
        elif stamp - now > self.parameters.future_tolerance:
            self.diagnostics.count("targets refused")
            raise InvalidInput(
                "target",
                f"its stamp lies {stamp - now:.3f} s in the future of the node's clock, "
                f"more than future_tolerance, {self.parameters.future_tolerance:g} s",
            )
        self._heard = time.monotonic()
        self._mailbox.put(Target(np.array(pose_numbers(message.pose)), stamp, self._heard))

    def _play(self) -> None:
        """Put in the next pose of the benchmark trajectory, unless someone else is at it."""
        arrived = time.monotonic()
        if arrived - self._heard < self.parameters.stale_after:
            return
        pose = self._path[self._next]
        self._next = (self._next + 1) % len(self._path)
        now = self.get_clock().now().nanoseconds * 1e-9
        self._mailbox.put(Target(pose, now, arrived))

    def _follow(self, target: Target) -> None:
        begin = time.perf_counter()
        now = self.parameters
        with self._lock:
            result, reason = self._follower.follow(
                target.pose,
                target.stamp,
                begin,
                rate_limit=now.leg_rate_limit,
                longest=now.stale_after,
            )
            rates = self._follower.rates
        self.diagnostics.time("solve", time.perf_counter() - begin)
        if reason:
            # The last good lengths stay, and are repeated while no better target comes.
            self.diagnostics.count("targets refused")
            self.diagnostics.fault(f"target: {reason}", warning=True)
            self.get_logger().warning(f"target: {reason}", throttle_duration_sec=1.0)
            return
        self.diagnostics.count("solved")
        self.diagnostics.value("residual", result.residual)
        self.diagnostics.value("stable", "yes" if result.stable else "no")
        self.diagnostics.healthy()
        self._moved = time.monotonic()
        self._publish(result, rates)
        self.diagnostics.time("target to lengths", time.monotonic() - target.arrived)

    def _publish(self, result: IKResult, rates: Array) -> None:
        """Publish an answer to all subscribers; the messages are made once and refilled."""
        stamp = self.get_clock().now().to_msg()
        with self._publishing:
            if self._joints.get_subscription_count() > 0:
                joints = self._joint_message
                joints.header.stamp = stamp
                joints.position = to_field(result.lengths, "float64")
                if self.parameters.rates:
                    joints.velocity = to_field(rates, "float64")
                elif len(joints.velocity):
                    joints.velocity = to_field((), "float64")
                joints.effort = to_field(result.forces[:, 2], "float64")
                self._joints.publish(joints)
            if self._platform.get_subscription_count() > 0:
                platform = self._platform_message
                platform.header.stamp = stamp
                conversions.fill_platform(platform.pose, result.best_pose)
                self._platform.publish(platform)
            if self._stable.get_subscription_count() > 0:
                self._stable.publish(Bool(data=result.stable))

    def _hold(self) -> None:
        """Repeat the last good lengths, at rest, when no target has come for a while."""
        if time.monotonic() - self._moved < self.parameters.stale_after:
            return
        with self._lock:
            if not self._follower.solver.solved:
                return
            result = self._follower.solver.result(int(StatusCode.SUCCESS))
            self._follower.hold()
        self.diagnostics.count("held")
        self._publish(result, np.zeros(RODS))

    def snapshot(self) -> ContinuumSolver:
        """Return a copy of the solver as it is now."""
        with self._lock:
            return self._follower.solver.copy()

    def _report(self) -> None:
        self.diagnostics.value("targets superseded", self._mailbox.dropped)
        self.diagnostics.value("fold margin", self.snapshot().fold_margin())
        if self._source is not None:
            self.diagnostics.value("source ticks missed", self._source.missed)

    def _draw(self) -> None:
        if self._markers.get_subscription_count() == 0:
            return
        solver = self.snapshot()
        points = self.parameters.shape_points
        if self._drawing is None or self._drawing.points != points:
            self._drawing = RobotMarkers(solver.robot, points, self.parameters.frame_id)
        stamp = self.get_clock().now().to_msg()
        array = self._drawing.update(solver.shapes(points), solver.pose, stamp)
        self.diagnostics.value("largest curvature [1/m]", self._drawing.largest)
        self._markers.publish(array)

    # Requests ----------------------------------------------------------------------------------

    def _solver_for(self, request: Any) -> ContinuumSolver:
        """Return a solver of its own for a request: the present one, or one under another load."""
        solver = self.snapshot()
        load = conversions.read_load(request)
        if load is not None:
            solver = solver.under(load)
        if request.tolerance != 0.0:
            solver.tolerance = request.tolerance
        return solver

    def _solve_ik(self, request: Any, task: Task) -> SolveContinuumIK.Response:
        n = count("poses", len(request.poses), self.parameters.batch_limit)
        points = request.shape_points
        if points == 1:
            raise InvalidInput("shape_points", "must be 0 or at least 2")
        count("shape_points", n * RODS * points, self.parameters.shape_limit)
        poses = conversions.read_poses(request.poses)
        solver = self._solver_for(request)
        solver.allow_unstable = solver.allow_unstable or request.allow_unstable
        details: Details | None = None
        if request.analyse or points:
            batch, details = solve_in_detail(
                solver,
                poses,
                analyse=request.analyse,
                points=points,
                independent=request.independent,
                task=task,
            )
        else:
            batch = solver.solve_many(
                poses,
                independent=request.independent,
                threads=self.parameters.worker_threads,
                task=task,
            )
        return conversions.ik_response(batch, details)

    def _solve_fk(self, request: Any, task: Task) -> SolveContinuumFK.Response:
        lengths = conversions.read_lengths(request.lengths)
        count("lengths", len(lengths), self.parameters.batch_limit)
        guess = np.array(pose_numbers(request.guess)) if request.guess_given else None
        batch = self._solver_for(request).forward_many(
            lengths,
            guess,
            independent=request.independent,
            threads=self.parameters.worker_threads,
            task=task,
        )
        return conversions.fk_response(batch)

    def _sweep(self, goal: Any, task: Task) -> SweepWorkspace.Result:
        solver = self.snapshot()
        if goal.tolerance != 0.0:
            solver.tolerance = goal.tolerance
        solver.allow_unstable = solver.allow_unstable or goal.allow_unstable
        nx, ny, nz = (int(c) for c in goal.counts)
        sweep = sweep_workspace(
            solver,
            (goal.lower.x, goal.lower.y, goal.lower.z),
            (goal.upper.x, goal.upper.y, goal.upper.z),
            (nx, ny, nz),
            read_rotation("orientation", goal.orientation),
            threads=self.parameters.worker_threads,
            task=task,
        )
        return conversions.sweep_result(sweep, goal.picture)


def _robot(source: str) -> ContinuumRobot:
    """Read the robot that the parameter names: nothing, YAML text, or a file."""
    if not source.strip():
        return ContinuumRobot()
    return load_robot(source if "\n" in source or ":" in source else Path(source))


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run_node(ContinuumNode, args)
