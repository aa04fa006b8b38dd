"""The ROS node: batches and single robots in, kinematics out, and a fleet to look at.

Topics (relative): ``delta/fk/request`` -> ``delta/fk/result``, ``delta/ik/request`` ->
``delta/ik/result`` (DeltaBatch); ``delta/joint_states`` -> ``delta/point`` and ``delta/target`` ->
``delta/joint_command`` for one robot; ``delta/fleet/joint_states``, ``delta/fleet/batch`` and
``delta/fleet/markers`` from the demo.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from geometry_msgs.msg import PointStamped
from kin_interfaces.msg import DeltaBatch
from kin_interfaces.srv import MakeTrajectory, SolveDelta, WorkspaceMap
from sensor_msgs.msg import JointState
from visualization_msgs.msg import Marker, MarkerArray

from gpu_kinematics.delta import BACKENDS, Delta
from gpu_kinematics.errors import DeltaInput, DeltaLimit
from gpu_kinematics.fleet import DemoFleet
from gpu_kinematics.geometry import THETA, Geometry, Limits
from gpu_kinematics.kernels import OPS
from gpu_kinematics.render import MODES
from gpu_kinematics.status import summary
from gpu_kinematics.trajectory import Fleet, Move
from gpu_kinematics.workspace import map_workspace
from kin_core.errors import StatusCode
from kin_core.task import Task
from kin_ros.arrays import from_field, to_field
from kin_ros.markers import BLUE, GREY, ORANGE, colour, make_marker
from kin_ros.node import KinNode, run
from kin_ros.parameters import ParameterSet, parameter
from kin_ros.qos import SENSOR, STATE

__all__ = ["GpuKinematicsNode", "GpuKinematicsParameters", "main"]

_LAYOUT = {DeltaBatch.SOA: "soa", DeltaBatch.AOS: "aos"}
_JOINTS = ("joint_1", "joint_2", "joint_3")


@dataclass(frozen=True, kw_only=True)
class GpuKinematicsParameters(ParameterSet):
    """Parameters of the node."""

    radius: float = parameter(
        0.0105, "R = R_A - R_B, base radius less platform radius [m]", minimum=-10.0, maximum=10.0
    )
    upper: float = parameter(0.040, "L_A, driven arm [m]", minimum=1e-4, maximum=100.0)
    lower: float = parameter(0.068, "L_B, rod [m]", minimum=1e-4, maximum=100.0)
    theta: tuple[float, ...] = parameter(THETA, "directions of the arms about z [rad]")
    angle_lower: float = parameter(-0.8, "lower joint limit [rad]", minimum=-7.0, maximum=7.0)
    angle_upper: float = parameter(1.4, "upper joint limit [rad]", minimum=-7.0, maximum=7.0)
    max_rate: float = parameter(60.0, "joint rate limit [rad/s]", minimum=1e-3, maximum=1e6)
    max_rate2: float = parameter(
        5000.0, "joint acceleration limit [rad/s^2]", minimum=1e-3, maximum=1e9
    )
    max_velocity: float = parameter(1.0, "speed of moves [m/s]", minimum=1e-6, maximum=1e3)
    max_acceleration: float = parameter(
        20.0, "acceleration of moves [m/s^2]", minimum=1e-6, maximum=1e6
    )
    max_jerk: float = parameter(2000.0, "jerk of moves [m/s^3]", minimum=1e-6, maximum=1e9)
    backend: str = parameter("auto", "what computes", choices=BACKENDS, read_only=True)
    mode: str = parameter(
        "strict",
        "strict: the same bits everywhere; fast: fused operations",
        choices=tuple(MODES),
        read_only=True,
    )
    threads: int = parameter(
        1,
        "CPU threads for large batches, 0 = one per processor",
        minimum=0,
        maximum=256,
        read_only=True,
    )
    max_batch: int = parameter(4_000_000, "robots in one request", minimum=1, maximum=1_000_000_000)
    max_samples: int = parameter(
        2_000_000, "samples x robots in one trajectory request", minimum=1, maximum=100_000_000
    )
    batch_queue: int = parameter(
        4,
        "batches of one topic that may wait; beyond them the oldest gives way",
        minimum=1,
        maximum=1000,
        read_only=True,
    )
    max_points: int = parameter(
        8_000_000, "points in one workspace map", minimum=1, maximum=100_000_000
    )
    frame_id: str = parameter("delta_base", "base frame of the robots")
    fleet: int = parameter(
        0, "robots of the demo, 0 = no demo", minimum=0, maximum=10_000, read_only=True
    )
    fleet_rate: float = parameter(
        20.0, "rate of the demo [Hz]", minimum=0.1, maximum=200.0, read_only=True
    )
    fleet_spacing: float = parameter(
        0.3, "distance between robots of the demo [m]", minimum=0.01, maximum=100.0, read_only=True
    )

    def check(self) -> None:
        """Refuse combinations that make no robot."""
        if len(self.theta) != 3:
            raise DeltaInput("theta", f"must have three values, got {len(self.theta)}")
        if self.angle_lower >= self.angle_upper:
            raise DeltaInput("angle_lower", "must be below angle_upper")


def _layout(value: int) -> str:
    if value not in _LAYOUT:
        raise DeltaInput("layout", f"must be SOA (0) or AOS (1), got {value}")
    return _LAYOUT[value]


def _vectors(field: str, data: Any, count: int, layout: str, dtype: Any) -> Any:
    """A flat field as an array of 3-vectors in its layout; a view where that is possible."""
    flat = from_field(data, dtype)
    if flat.size != 3 * count:
        raise DeltaInput(field, f"must have 3 * count = {3 * count} values, got {flat.size}")
    return flat.reshape((3, count) if layout == "soa" else (count, 3))


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
        delta.warm(("fk", "ik", "jacobian", "measures", "fk_motion", "ik_motion"))
        map_workspace(delta, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1), (2, 2, 2))
        at = np.zeros((3, 1))
        Fleet(delta, at, at + 0.01, self._move("straight"), layout="soa").sample(np.zeros(2))
        if self.parameters.fleet:
            self._fleet(delta).at(0.0)

    def configure(self) -> None:
        """Choose the backend, open topics and services."""
        self._rebuild()
        if self.delta.fallback:
            self.get_logger().info(f"computing on the CPU: {self.delta.fallback}")
        self.diagnostics.value("backend", self.delta.backend)
        self._fk_result = self.publish_to(DeltaBatch, "delta/fk/result", STATE)
        self._ik_result = self.publish_to(DeltaBatch, "delta/ik/result", STATE)
        self._point = self.publish_to(PointStamped, "delta/point", STATE)
        self._command = self.publish_to(JointState, "delta/joint_command", STATE)
        self._serve_batches("delta/fk/request", forward=True)
        self._serve_batches("delta/ik/request", forward=False)
        self.listen(JointState, "delta/joint_states", self._joint_states, SENSOR)
        self.listen(PointStamped, "delta/target", self._target, SENSOR)
        self.serve(SolveDelta, "~/solve_delta", self.solve)
        self.serve(MakeTrajectory, "~/make_trajectory", self.make_trajectory)
        self.serve(WorkspaceMap, "~/workspace_map", self.workspace_map)
        if self.parameters.fleet:
            p = self.parameters
            self.demo = self._fleet(self.delta)
            self._fleet_batch = self.publish_to(DeltaBatch, "delta/fleet/batch", STATE)
            self._fleet_joints = self.publish_to(JointState, "delta/fleet/joint_states", STATE)
            self._fleet_markers = self.publish_to(MarkerArray, "delta/fleet/markers", STATE)
            box = self.mailbox("fleet", self._fleet_tick)

            def tick() -> None:
                if not box.put(self.get_clock().now()):
                    self.diagnostics.count("fleet ticks skipped")

            self.every(1.0 / p.fleet_rate, tick)
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

    def _fleet(self, delta: Delta) -> DemoFleet:
        p = self.parameters
        return DemoFleet(delta, p.fleet, p.fleet_spacing, self._move("adept_cycle"))

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
        backend = "cpu" if self.delta.cuda is None else "cuda"
        return Delta(
            geometry, limits, backend=backend, mode=p.mode, threads=p.threads, cuda=self.delta.cuda
        )

    def _geometry(self, message: Any, count: int) -> Geometry | None:
        """Dimensions of a request; None for the node's own."""
        sizes = [from_field(getattr(message, n), np.float64) for n in ("radius", "upper", "lower")]
        theta = from_field(message.theta, np.float64)
        if not any(a.size for a in sizes):
            if theta.size:
                raise DeltaInput("geometry.theta", "needs radius, upper and lower with it")
            return None
        for name, array in zip(("radius", "upper", "lower"), sizes, strict=True):
            if array.size not in (1, count):
                raise DeltaInput(
                    f"geometry.{name}", f"must have 1 or {count} values, got {array.size}"
                )
        if theta.size not in (0, 3, 3 * count):
            raise DeltaInput("geometry.theta", f"must have 0, 3 or {3 * count} values")
        values = [a[0] if a.size == 1 else a for a in sizes]
        angles: Any = THETA if theta.size == 0 else theta
        if theta.size == 3 * count and count > 1:
            angles = theta.reshape(count, 3).T
        radius, upper, lower = values
        return Geometry(radius, upper, lower, angles)

    # -- services

    def solve(self, request: Any, task: Task) -> Any:
        """Answer SolveDelta."""
        response = SolveDelta.Response()
        p = self.parameters
        count = int(request.count)
        if count > p.max_batch:
            raise DeltaLimit(f"count: {count} robots are more than max_batch = {p.max_batch}")
        if request.branch > 15:
            raise DeltaInput("branch", f"must be between 0 and 15, got {request.branch}")
        layout = _layout(request.layout)
        dtype = np.float32 if request.single_precision else np.float64
        geometry = self._geometry(request.geometry, count)
        limits = self.delta.limits if request.apply_limits else None
        if geometry is None:
            robots = self.delta if request.apply_limits else self._without_limits
        else:
            robots = self._robots(geometry, limits)
        data = _vectors("data", request.data, count, layout, dtype)
        elbows, side = request.branch & 7, "up" if request.branch & 8 else "down"
        started = time.perf_counter()
        op = request.operation
        if op == SolveDelta.Request.FORWARD:
            values, mask = robots.fk(data, platform=side, layout=layout)
        elif op == SolveDelta.Request.INVERSE:
            values, mask = robots.ik(data, elbows=elbows, layout=layout)
        elif op == SolveDelta.Request.JACOBIAN:
            values, matrix, mask = robots.jacobian(data, platform=side, layout=layout)
            task.check()
            measures = robots.measures(data, platform=side, layout=layout)
            response.jacobian = to_field(matrix)
            response.condition = to_field(measures.condition)
            response.det_parallel = to_field(measures.parallel)
            response.det_serial = to_field(measures.serial)
            mask = mask | measures.status
        elif op in (SolveDelta.Request.FORWARD_MOTION, SolveDelta.Request.INVERSE_MOTION):
            rates = [
                None if len(field) == 0 else _vectors(name, field, count, layout, dtype)
                for name, field in (("rate", request.rate), ("rate2", request.rate2))
            ]
            if op == SolveDelta.Request.FORWARD_MOTION:
                motion: Any = robots.forward_motion(data, *rates, platform=side, layout=layout)
            else:
                motion = robots.inverse_motion(data, *rates, elbows=elbows, layout=layout)
            values, rate, rate2, mask = motion
            response.rate, response.rate2 = to_field(rate), to_field(rate2)
        else:
            raise DeltaInput("operation", f"must be between 0 and 4, got {op}")
        self._note_speed(count, time.perf_counter() - started)
        response.count = count
        response.data = to_field(values)
        response.mask = to_field(mask, "uint16")
        response.failed = int(np.count_nonzero(mask))
        response.backend = robots.backend
        if response.failed:
            response.status.message = summary(mask)
            if response.failed == count:
                response.status.code = int(StatusCode.UNREACHABLE)
        return response

    def make_trajectory(self, request: Any, task: Task) -> Any:
        """Answer MakeTrajectory."""
        response = MakeTrajectory.Response()
        p = self.parameters
        count = int(request.count)
        if count < 1:
            raise DeltaInput("count", "must be at least 1")
        if count > p.max_batch:
            raise DeltaLimit(f"count: {count} robots are more than max_batch = {p.max_batch}")
        layout = _layout(request.layout)
        kinds = ("straight", "pick_and_place", "adept_cycle")
        if request.kind >= len(kinds):
            raise DeltaInput("kind", f"must be between 0 and 2, got {request.kind}")
        geometry = self._geometry(request.geometry, count)
        robots = self.delta if geometry is None else self._robots(geometry, self.delta.limits)
        ends = [
            _vectors(n, getattr(request, n), count, layout, np.float64) for n in ("start", "goal")
        ]
        for name, array in zip(("start", "goal"), ends, strict=True):
            if not np.isfinite(array).all():
                raise DeltaInput(name, "must be finite")
        move = self._move(kinds[request.kind], request)
        plan = Fleet(robots, ends[0], ends[1], move, layout=layout)
        if not np.isfinite(plan.duration).all():
            raise DeltaInput("goal", "is so far from start that the move has no finite duration")
        if request.fit_joint_rates:
            plan = plan.slowed(p.max_rate, p.max_rate2, task=task)
        times = self._times(request, float(plan.duration.max()), count)
        task.check()
        motion = plan.sample(times, fields=("position", "angle", "rate", "rate2"))
        task.check()
        mask = np.bitwise_or.reduce(motion.status, axis=0)
        response.count, response.samples = count, len(times)
        response.time = to_field(times)
        response.duration = to_field(plan.duration)
        response.time_scale = to_field(plan.time_scale)
        for name in ("position", "angle", "rate", "rate2"):
            setattr(response, name, to_field(getattr(motion, name)))
        response.peak_rate = to_field(np.abs(motion.rate).max(axis=(0, 1)))
        response.peak_rate2 = to_field(np.abs(motion.rate2).max(axis=(0, 1)))
        response.mask = to_field(mask, "uint16")
        response.failed = int(np.count_nonzero(mask))
        if response.failed:
            response.status.code = int(StatusCode.UNREACHABLE)
            response.status.message = summary(mask)
        return response

    def _times(self, request: Any, longest: float, count: int) -> Any:
        """The time grid of a trajectory request."""
        period, samples = float(request.sample_period), int(request.samples)
        if not (math.isfinite(period) and period >= 0.0):
            raise DeltaInput("sample_period", f"must be a time of at least 0 s, got {period}")
        if period == 0.0:
            if samples < 2:
                raise DeltaInput("samples", "must be at least 2 without a sample_period")
        elif samples == 0:
            needed = math.ceil(longest / period) + 1
            samples = min(needed, self.parameters.max_samples + 1)
        if samples * count > self.parameters.max_samples:
            raise DeltaLimit(
                f"samples: {samples} x {count} robots are more than "
                f"max_samples = {self.parameters.max_samples}"
            )
        if period == 0.0:
            return np.linspace(0.0, longest, samples)
        return np.arange(samples) * period

    def _move(self, kind: str, request: Any = None) -> Move:
        """A move with the limits of a request, or those of the node where it has none."""
        p = self.parameters
        limits = {n: getattr(p, n) for n in ("max_velocity", "max_acceleration", "max_jerk")}
        if request is None:
            return Move(kind=kind, height=0.012, overlap=0.7, dwell=0.1, **limits)
        limits = {n: getattr(request, n) or own for n, own in limits.items()}
        return Move(
            kind=kind,
            height=request.height,
            overlap=request.overlap,
            dwell=request.dwell,
            **limits,
        )

    def workspace_map(self, request: Any, task: Task) -> Any:
        """Answer WorkspaceMap."""
        response = WorkspaceMap.Response()
        geometry = self._geometry(request.geometry, 1) or self.delta.geometry
        bounds = from_field(request.angle_limits, np.float64)
        if bounds.size not in (0, 2):
            raise DeltaInput("angle_limits", f"must have 0 or 2 values, got {bounds.size}")
        limits = Limits(*bounds) if bounds.size else self.delta.limits
        found = map_workspace(
            self._robots(geometry, limits),
            request.lower,
            request.upper,
            request.cells,
            max_condition=request.max_condition or math.inf,
            max_points=self.parameters.max_points,
            task=task,
        )
        response.cells = request.cells
        response.mask = to_field(found.status, "uint16")
        response.dexterity = to_field(found.dexterity, "float32")
        response.usable = int(found.usable.sum())
        response.volume, response.cube_side = found.volume, found.cube_side
        response.cube_centre = found.cube_centre
        return response

    # -- topics

    def _serve_batches(self, topic: str, *, forward: bool) -> None:
        """Answer a batch topic from a thread of its own, in order."""

        def answer(work: tuple[Any, Delta]) -> None:
            self._batch(*work, forward=forward)

        box = self.mailbox(f"batch of {topic}", answer, limit=self.parameters.batch_queue)

        def receive(message: Any) -> None:
            if not box.put((message, self.delta)):
                self.diagnostics.count("batches dropped")
                raise DeltaLimit(
                    f"more than batch_queue = {self.parameters.batch_queue} batches wait; the"
                    " oldest was dropped"
                )

        self.listen(DeltaBatch, topic, receive, STATE)

    def _batch(self, message: Any, robots: Delta, *, forward: bool) -> None:
        """Compute and publish one batch; a bad message is reported and dropped."""
        quantity = DeltaBatch.ANGLES if forward else DeltaBatch.POSITIONS
        if message.quantity != quantity:
            raise DeltaInput("quantity", f"must be {quantity} on this topic")
        count = int(message.count)
        if count > self.parameters.max_batch:
            raise DeltaLimit(f"count: {count} robots are more than max_batch")
        layout = _layout(message.layout)
        data = _vectors("data", message.data, count, layout, np.float64)
        started = time.perf_counter()
        solve = robots.fk if forward else robots.ik
        values, mask = solve(data, layout=layout)
        self._note_speed(count, time.perf_counter() - started)
        answer = DeltaBatch(header=message.header, layout=message.layout, count=count)
        answer.quantity = DeltaBatch.POSITIONS if forward else DeltaBatch.ANGLES
        answer.data, answer.status = to_field(values), to_field(mask, "uint16")
        (self._fk_result if forward else self._ik_result).publish(answer)

    def _joint_states(self, message: Any) -> None:
        angles = from_field(message.position, np.float64)
        if angles.size != 3:
            raise DeltaInput("position", f"must have three joint angles, got {angles.size}")
        position, mask = self.delta.fk(np.ascontiguousarray(angles))
        if not np.isfinite(position).all():
            raise DeltaInput("position", summary(np.atleast_1d(mask)))
        answer = PointStamped(header=message.header)
        answer.header.frame_id = self.parameters.frame_id
        answer.point.x, answer.point.y, answer.point.z = (float(v) for v in position)
        self._point.publish(answer)

    def _target(self, message: Any) -> None:
        point = message.point
        angles, mask = self.delta.ik(np.array([point.x, point.y, point.z]))
        if mask:
            # An unreachable target gives no command: the robot stays where it is.
            raise DeltaInput("target", summary(np.atleast_1d(mask)))
        answer = JointState(header=message.header, name=list(_JOINTS))
        answer.position = to_field(angles)
        self._command.publish(answer)

    def _note_speed(self, count: int, seconds: float) -> None:
        self.diagnostics.count("robots", count)
        if seconds > 0.0 and count:
            self.diagnostics.value("robots_per_second", count / seconds)

    # -- demo

    def _fleet_tick(self, now: Any) -> None:
        """Publish one moment of the demo, as far as somebody wants to know."""
        if self.demo is None:
            return
        started = time.perf_counter()
        motion = self.demo.at(now.nanoseconds * 1e-9)
        self._note_speed(self.demo.count, time.perf_counter() - started)
        stamp = now.to_msg()
        batch = DeltaBatch(quantity=DeltaBatch.ANGLES, layout=DeltaBatch.SOA)
        batch.header.stamp, batch.header.frame_id = stamp, self.parameters.frame_id
        if self._fleet_batch.get_subscription_count() > 0:
            batch.count = self.demo.count
            batch.data = to_field(motion.angle)
            batch.status = to_field(motion.status, "uint16")
            self._fleet_batch.publish(batch)
        if self._fleet_joints.get_subscription_count() > 0:
            joints = JointState(name=self.demo.joint_names)
            joints.header = batch.header
            joints.position = to_field(motion.angle[:, 0].T)
            joints.velocity = to_field(motion.rate[:, 0].T)
            self._fleet_joints.publish(joints)
        if self._fleet_markers.get_subscription_count() > 0:
            self._fleet_markers.publish(self._markers(batch.header, motion))

    def _markers(self, header: Any, motion: Any) -> Any:
        """Arms, rods and platforms of all robots: three markers in all."""
        if self.demo is None:
            return MarkerArray()
        markers = []
        parts = self.demo.skeleton(motion.angle[:, 0], motion.position[:, 0])
        looks = (
            ("arms", Marker.LINE_LIST, 0.004, BLUE),
            ("rods", Marker.LINE_LIST, 0.002, GREY),
            ("platforms", Marker.SPHERE_LIST, 0.014, ORANGE),
        )
        for number, ((name, kind, size, shade), points) in enumerate(
            zip(looks, parts, strict=True)
        ):
            marker = make_marker(
                kind,
                name,
                number,
                frame_id=header.frame_id,
                stamp=header.stamp,
                size=size,
                shade=colour(shade),
                points=points,
                lifetime=2.0,
            )
            markers.append(marker)
        return MarkerArray(markers=markers)


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run(GpuKinematicsNode, args)
