"""The ROS node: follows pose targets, and answers IK, FK and workspace requests."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import PoseStamped
from kin_interfaces.action import SweepWorkspace
from kin_interfaces.srv import SolveContinuumFK, SolveContinuumIK
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from visualization_msgs.msg import MarkerArray

from continuum_ik.drawing import Drawing
from continuum_ik.pose import make_pose
from continuum_ik.robot import ContinuumRobot, Load, load_robot
from continuum_ik.rod import Array
from continuum_ik.solver import Batch, ContinuumSolver, IKResult
from continuum_ik.sweep import draw_sweep, sweep_workspace
from continuum_ik.trajectory import START, benchmark_trajectory
from kin_core.checks import count
from kin_core.errors import InvalidInput, StatusCode
from kin_core.loop import PeriodicLoop
from kin_core.task import Progress, Task
from kin_ros.arrays import from_field, to_field
from kin_ros.node import KinNode
from kin_ros.node import run as run_node
from kin_ros.parameters import ParameterSet, parameter
from kin_ros.poses import check_frame, fill_pose, pose_numbers, read_rotation, to_pose
from kin_ros.qos import COMMAND, STATE

LEGS = 6


@dataclass(frozen=True, kw_only=True)
class ContinuumParameters(ParameterSet):
    """Parameters of the node."""

    robot: str = parameter(
        "",
        "robot description: a file name or YAML text; empty: the tutorial's",
        read_only=True,
        longest=1 << 20,
    )
    tolerance: float = parameter(
        1e-6, "sum of squares of the residual that is solved", minimum=1e-18, maximum=1e-2
    )
    detours: bool = parameter(
        False,
        "reach by way of home what cannot be reached straight: the lengths may leap",
        read_only=True,
    )
    allow_unstable: bool = parameter(
        False, "follow targets also to equilibria that are not stable", read_only=True
    )
    leg_rate_limit: float = parameter(
        0.0,
        "highest speed of a leg from one target to the next, more is refused; 0: any [m/s]",
        minimum=0.0,
        maximum=1e3,
    )
    frame_id: str = parameter("base", "frame of targets, poses and markers", read_only=True)
    joint_names: tuple[str, ...] = parameter(
        tuple(f"leg_{i}" for i in range(LEGS)), "names of the six legs", read_only=True
    )
    rates: bool = parameter(False, "also publish the rates of the lengths")
    stale_after: float = parameter(
        0.5, "age at which a target is stale, and silence after which to hold [s]", minimum=1e-3
    )
    future_tolerance: float = parameter(
        0.1, "how far in the future the stamp of a target may lie [s]", minimum=0.0, maximum=3600.0
    )
    hold_rate: float = parameter(
        10.0,
        "rate at which held lengths are repeated [Hz]",
        minimum=0.1,
        maximum=1000.0,
        read_only=True,
    )
    marker_rate: float = parameter(
        10.0, "rate of the rod shapes [Hz]", minimum=0.1, maximum=100.0, read_only=True
    )
    shape_points: int = parameter(21, "points of a rod's shape", minimum=2, maximum=1000)
    source: str = parameter(
        "none", "built-in source of targets", choices=("none", "benchmark"), read_only=True
    )
    source_rate: float = parameter(
        100.0, "rate of the built-in source [Hz]", minimum=0.1, maximum=10000.0, read_only=True
    )
    batch_limit: int = parameter(
        100_000, "most poses or rows of lengths of one request", minimum=1, maximum=1_000_000
    )
    shape_limit: int = parameter(
        1_000_000, "most points of the shapes of one answer", minimum=12, maximum=10_000_000
    )

    def check(self) -> None:
        """Check the joint names."""
        if len(self.joint_names) != LEGS or len(set(self.joint_names)) != LEGS:
            raise InvalidInput("joint_names", "must be six different names")


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
        trial = ContinuumSolver()
        trial.solve(make_pose(START))
        trial.run(benchmark_trajectory()[:3])
        trial.solve_many(trial.pose[None], independent=True)
        trial.solve(np.array([0.0, 0.02, 0.48, 0.0, 0.0, 0.0, 1.0]))
        trial.forward(trial.lengths)
        trial.forward_many(trial.lengths[None])
        ContinuumSolver(trial.robot.with_load(Load(force=(0.0, 0.0, -1e-3))))
        trial.analyse()
        trial.fold_margin()
        trial.shapes(3)
        near = np.array(START)
        sweep_workspace(trial, near, near + 0.01, (2, 1, 1), threads=1)

    def configure(self) -> None:
        """Read the robot, find its home, make topics and services."""
        now = self.parameters
        self.solver = ContinuumSolver(
            _robot(now.robot),
            now.tolerance,
            detours=now.detours,
            allow_unstable=now.allow_unstable,
        )
        self._mailbox = self.mailbox("tracking", self._follow)
        self._previous: tuple[float, Array] | None = None
        self._heard = -math.inf  # when a target from outside last came, monotonic [s]
        self._moved = -math.inf  # when the lengths last changed, monotonic [s]
        self._taken = -math.inf  # when the last good target was taken, performance counter [s]
        self._joint_message = JointState(name=list(now.joint_names))
        self._joint_message.header.frame_id = now.frame_id
        self._platform_message = PoseStamped()
        self._platform_message.header.frame_id = now.frame_id
        self._drawing: Drawing | None = None
        self._joints = self.publish_to(JointState, "joint_states", STATE)
        self._platform = self.publish_to(PoseStamped, "platform_pose", STATE)
        self._stable = self.publish_to(Bool, "stable", STATE)
        self._markers = self.publish_to(MarkerArray, "rod_shapes", STATE)
        self.listen(PoseStamped, "target", self._target, COMMAND)
        self.serve(SolveContinuumIK, "~/solve_ik", self._solve_ik)
        self.serve(SolveContinuumFK, "~/solve_fk", self._solve_fk)
        self.serve_action(SweepWorkspace, "~/sweep_workspace", self._sweep, _sweep_feedback)
        self.every(1.0 / now.hold_rate, self._hold)
        self.every(1.0 / now.marker_rate, self._draw)
        self.every(1.0, self._report)

    def activate(self) -> None:
        """Start following."""
        if self.parameters.source == "benchmark":
            self._path = benchmark_trajectory()
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
        if new.tolerance != old.tolerance and hasattr(self, "solver"):
            with self._lock:
                self.solver.tolerance = new.tolerance

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
        limit = self.parameters.leg_rate_limit
        with self._lock:
            # A target that is solved but too fast must leave no trace.
            before = self.solver.copy() if limit > 0.0 and self.solver.solved else None
            code = self.solver.track(target.pose)
            took = time.perf_counter() - begin
            result = self.solver.result(code)
            reason = result.reason
            if result.success and before is not None:
                reason = self._too_fast(before.lengths, result.lengths, begin, limit)
                if reason:
                    self.solver = before
        self.diagnostics.time("solve", took)
        if reason:
            # The last good lengths stay, and are repeated while no better target comes.
            self.diagnostics.count("targets refused")
            self.diagnostics.fault(f"target: {reason}", warning=True)
            self.get_logger().warning(f"target: {reason}", throttle_duration_sec=1.0)
            return
        self._taken = begin
        self.diagnostics.count("solved")
        self.diagnostics.value("residual", result.residual)
        self.diagnostics.value("stable", "yes" if result.stable else "no")
        self.diagnostics.healthy()
        rates = self._rates(target.stamp, result.lengths)
        self._moved = time.monotonic()
        self._publish(result, rates)
        self.diagnostics.time("target to lengths", time.monotonic() - target.arrived)

    def _too_fast(self, before: Array, after: Array, now: float, limit: float) -> str:
        """Say which leg would have to move faster than ``limit`` [m/s] since the last target.

        By the time between the targets as they are taken, not by their stamps, and at most the
        silence after which the node holds: a longer wait makes no leap slow.
        """
        passed = min(now - self._taken, self.parameters.stale_after)
        moved = np.abs(after - before)
        leg = int(moved.argmax())
        if moved[leg] <= limit * passed:
            return ""
        return (
            f"leg {leg} would move {1e3 * moved[leg]:.1f} mm in {1e3 * passed:.0f} ms, "
            f"faster than leg_rate_limit, {limit:g} m/s"
        )

    def _rates(self, stamp: float, lengths: Array) -> Array:
        """Rates of the lengths between this target's stamp and the one before [m/s]."""
        before, self._previous = self._previous, (stamp, lengths)
        if before is None or not 0.0 < stamp - before[0] <= self.parameters.stale_after:
            return np.zeros(LEGS)
        return (lengths - before[1]) / (stamp - before[0])

    def _publish(self, result: IKResult, rates: Array) -> None:
        """Publish an answer to whoever listens; the messages are made once and refilled."""
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
                fill_pose(platform.pose, *_position_and_rotation(result.best_pose))
                self._platform.publish(platform)
            if self._stable.get_subscription_count() > 0:
                self._stable.publish(Bool(data=result.stable))

    def _hold(self) -> None:
        """Repeat the last good lengths, at rest, when no target has come for a while."""
        if time.monotonic() - self._moved < self.parameters.stale_after:
            return
        with self._lock:
            if not self.solver.solved:
                return
            result = self.solver.result(int(StatusCode.SUCCESS))
        self._previous = None
        self.diagnostics.count("held")
        self._publish(result, np.zeros(LEGS))

    def _snapshot(self) -> ContinuumSolver:
        with self._lock:
            return self.solver.copy()

    def _report(self) -> None:
        self.diagnostics.value("targets superseded", self._mailbox.dropped)
        self.diagnostics.value("fold margin", self._snapshot().fold_margin())
        if self._source is not None:
            self.diagnostics.value("source ticks missed", self._source.missed)

    def _draw(self) -> None:
        if self._markers.get_subscription_count() == 0:
            return
        solver = self._snapshot()
        points = self.parameters.shape_points
        if self._drawing is None or self._drawing.points != points:
            self._drawing = Drawing(solver.robot, points, self.parameters.frame_id)
        stamp = self.get_clock().now().to_msg()
        array = self._drawing.update(solver.shapes(points), solver.pose, stamp)
        self.diagnostics.value("largest curvature [1/m]", self._drawing.largest)
        self._markers.publish(array)

    # Requests ----------------------------------------------------------------------------------

    def _solver_for(self, request: Any) -> ContinuumSolver:
        """Return a solver of its own for a request: the present one, or one under another load."""
        solver = self._snapshot()
        if request.load_given:
            f, t = request.load.force, request.load.torque
            load = Load(force=(f.x, f.y, f.z), moment=(t.x, t.y, t.z))
            start = solver.pose if solver.solved else None
            solver = ContinuumSolver(
                solver.robot.with_load(load), solver.tolerance, detours=self.parameters.detours
            )
            solver.allow_unstable = self.parameters.allow_unstable
            if start is not None:
                solver.solve(start)  # or a cold start, if the load does not allow it
        if request.tolerance != 0.0:
            solver.tolerance = request.tolerance
        return solver

    def _solve_ik(self, request: Any, task: Task) -> Any:
        if not request.poses:
            raise InvalidInput("poses", "must not be empty")
        n = count("poses", len(request.poses), self.parameters.batch_limit)
        points = request.shape_points
        if points == 1:
            raise InvalidInput("shape_points", "must be 0 or at least 2")
        count("shape_points", n * LEGS * points, self.parameters.shape_limit)
        poses = np.array([pose_numbers(pose) for pose in request.poses])
        solver = self._solver_for(request)
        solver.allow_unstable = solver.allow_unstable or request.allow_unstable
        response = SolveContinuumIK.Response()
        if request.analyse or points:
            details = _Details(n, bool(request.analyse), points)
            batch = details.solve(solver, poses, request.independent, task)
            details.fill(response)
        else:
            batch = solver.solve_many(
                poses,
                independent=request.independent,
                threads=self.parameters.worker_threads,
                task=task,
            )
        response.codes = to_field(batch.codes, "uint8")
        response.residuals = to_field(batch.residuals)
        response.lengths = to_field(batch.lengths)
        response.forces = to_field(batch.forces)
        response.reached = to_field(batch.reached)
        response.best = [to_pose(*_position_and_rotation(pose)) for pose in batch.best]
        response.limiting_leg = to_field(batch.limiting_leg, "int8")
        response.stable = batch.stable.tolist()
        failed = np.flatnonzero(batch.codes != StatusCode.SUCCESS)
        if failed.size:
            k = int(failed[0])
            response.status.code = int(batch.codes[k])
            response.status.message = f"poses[{k}]: {batch.message(k)}".replace("pose: ", "")
        else:
            response.status.residual = float(batch.residuals.max())
            if not batch.stable.all():
                k = int(np.flatnonzero(~batch.stable)[0])
                response.status.message = f"poses[{k}]: an equilibrium that is not stable"
        return response

    def _solve_fk(self, request: Any, task: Task) -> Any:
        lengths = from_field(request.lengths, "float64")
        if lengths.size == 0 or lengths.size % LEGS:
            raise InvalidInput("lengths", f"must be rows of six numbers, got {lengths.size} in all")
        lengths = lengths.reshape(-1, LEGS)
        count("lengths", len(lengths), self.parameters.batch_limit)
        solver = self._solver_for(request)
        guess = np.array(pose_numbers(request.guess)) if request.guess_given else None
        batch = solver.forward_many(
            lengths,
            guess,
            independent=request.independent,
            threads=self.parameters.worker_threads,
            task=task,
        )
        response = SolveContinuumFK.Response()
        response.codes = to_field(batch.codes, "uint8")
        response.residuals = to_field(batch.residuals)
        response.reached = to_field(batch.reached)
        response.poses = [to_pose(*_position_and_rotation(pose)) for pose in batch.poses]
        response.stable = [
            bool(batch.stable and code == StatusCode.SUCCESS) for code in batch.codes
        ]
        failed = np.flatnonzero(batch.codes != StatusCode.SUCCESS)
        if failed.size:
            k = int(failed[0])
            response.status.code = int(batch.codes[k])
            response.status.message = f"lengths, row {k}: {batch.message(k)}"
        else:
            response.status.residual = float(batch.residuals.max())
            response.status.message = batch.message(0)
        return response

    def _sweep(self, goal: Any, task: Task) -> Any:
        solver = self._snapshot()
        if goal.tolerance != 0.0:
            solver.tolerance = goal.tolerance
        solver.allow_unstable = solver.allow_unstable or goal.allow_unstable
        R = read_rotation("orientation", goal.orientation)
        counts = tuple(int(c) for c in goal.counts)
        sweep = sweep_workspace(
            solver,
            (goal.lower.x, goal.lower.y, goal.lower.z),
            (goal.upper.x, goal.upper.y, goal.upper.z),
            (counts[0], counts[1], counts[2]),
            R,
            threads=self.parameters.worker_threads,
            task=task,
        )
        result = SweepWorkspace.Result()
        result.total, result.reachable = sweep.total, sweep.reachable
        result.volume, result.poses_per_second = sweep.volume, sweep.poses_per_second
        result.codes = to_field(sweep.codes.reshape(-1), "uint8")
        result.lengths = to_field(sweep.lengths.reshape(-1))
        result.fold_margin = to_field(sweep.fold_margin.reshape(-1))
        result.stable = sweep.stable.reshape(-1).tolist()
        if goal.picture:
            result.picture = to_field(np.frombuffer(draw_sweep(sweep), dtype=np.uint8), "uint8")
        return result


class _Details:
    """Solves poses one by one, for what needs the whole state of each: analysis and shapes."""

    def __init__(self, n: int, analyse: bool, points: int) -> None:
        self.analyse, self.points = analyse, points
        self.jacobian = np.full((n if analyse else 0, 6, 6), np.nan)
        self.stiffness = self.jacobian.copy()
        self.margin = np.full(n if analyse else 0, np.nan)
        self.shapes = np.full((n if points else 0, 6, points, 3), np.nan)

    def solve(self, solver: ContinuumSolver, poses: Array, independent: bool, task: Task) -> Batch:
        parts = []
        for k, pose in enumerate(poses):
            task.check()
            one = solver.copy() if independent else solver
            batch = one.solve_many(pose[None])
            parts.append(batch)
            if batch.codes[0] == StatusCode.SUCCESS:
                if self.analyse:
                    found = one.analyse()
                    self.jacobian[k], self.stiffness[k] = found.length_jacobian, found.stiffness
                    self.margin[k] = found.fold_margin
                if self.points:
                    self.shapes[k] = one.shapes(self.points)
        rows = zip(*(vars(batch).values() for batch in parts), strict=True)
        return Batch(*(np.concatenate(row) for row in rows))

    def fill(self, response: Any) -> None:
        response.jacobian = to_field(self.jacobian.reshape(-1))
        response.stiffness = to_field(self.stiffness.reshape(-1))
        response.fold_margin = to_field(self.margin)
        response.shapes = to_field(self.shapes.reshape(-1))


def _position_and_rotation(pose: Array) -> tuple[Array, Array]:
    """The two parts of a pose of 12 numbers: shapes (3,) [m] and (3, 3)."""
    return pose[:3], pose[3:].reshape(3, 3)


def _sweep_feedback(progress: Progress) -> Any:
    feedback = SweepWorkspace.Feedback()
    feedback.fraction, feedback.message = progress.fraction, progress.message
    feedback.done = int(progress.counters.get("done", 0))
    feedback.reachable = int(progress.counters.get("reachable", 0))
    feedback.poses_per_second = float(progress.counters.get("poses_per_second", 0.0))
    return feedback


def _robot(source: str) -> ContinuumRobot:
    """Read the robot that the parameter names: nothing, YAML text, or a file."""
    if not source.strip():
        return ContinuumRobot()
    return load_robot(source if "\n" in source or ":" in source else Path(source))


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run_node(ContinuumNode, args)


__all__ = ["ContinuumNode", "ContinuumParameters", "main"]
