"""The node ``ft_controller``: joint states and trajectories in, voted torques out."""

from __future__ import annotations

import dataclasses
import sys
import time
import traceback
from dataclasses import dataclass
from typing import Any

import numpy as np
from kin_interfaces.msg import FtProcessor, FtStatus
from kin_interfaces.srv import InjectFault, LockJoint, MoveArm, SetController, SetJointLimits
from numpy.typing import NDArray
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
from visualization_msgs.msg import Marker

from ft_controller.arm_parameters import ArmParameters, joint_index, joint_values
from ft_controller.claim import Contender, Standing
from ft_controller.crew import RECONFIGURATIONS, Crew, Tick, Timing, warm
from ft_controller.errors import ArmError, ScheduleError
from ft_controller.faults import Fault, load_schedule
from ft_controller.follower import Entry
from ft_controller.governor import Limits, Reason, State
from ft_controller.loop import ControlLoop, Snapshot, SteppedLoop
from ft_controller.markers import DESIRED, arm_marker
from ft_controller.motion_watch import MotionWatch
from ft_controller.planner import plan
from ft_controller.processor import CONTROLLERS
from ft_controller.trajectory import Trajectory
from kin_core import checks
from kin_core.errors import InvalidInput
from kin_core.task import Task
from kin_ros.arrays import from_field, to_field
from kin_ros.node import KinNode, run
from kin_ros.parameters import parameter
from kin_ros.qos import COMMAND, SENSOR, STATE

__all__ = ["FtController", "FtParameters", "main"]

Array = NDArray[np.float64]

#: After a stop for want of something all must be well so long before the arm is taken over [s].
_RECOVERY = 1.0


@dataclass(frozen=True, kw_only=True)
class FtParameters(ArmParameters):
    """Parameters of the node."""

    processors: int = parameter(4, "processors", minimum=3, maximum=16, read_only=True)
    controller: str = parameter("echo", "controller at the start", choices=CONTROLLERS)
    reconfiguration: str = parameter(
        "balanced", "how work is shared out anew", choices=RECONFIGURATIONS
    )
    control_rate: float = parameter(
        500.0, "ticks per second [Hz]", minimum=10.0, maximum=10000.0, read_only=True
    )
    pace: str = parameter(
        "clock",
        "what sets the pace: the clock, or the joint states, one tick for each (replay)",
        choices=("clock", "states"),
        read_only=True,
    )
    state_timeout: float = parameter(
        0.1,
        "joint states older than this, by their stamps, are lost [s]",
        minimum=0.001,
        maximum=10.0,
        read_only=True,
    )
    stamp_tolerance: float = parameter(
        0.05,
        "joint states with stamps farther in the future are refused [s]",
        minimum=0.0,
        maximum=10.0,
    )
    require_stamps: bool = parameter(
        False, "refuse joint states without a stamp (zero); else they are as old as their arrival"
    )
    kp: tuple[float, ...] = parameter(
        (100.0,), "gain of the position error, one or one for each joint [1/s^2]", minimum=0.0
    )
    kd: tuple[float, ...] = parameter(
        (20.0,), "gain of the velocity error, one or one for each joint [1/s]", minimum=0.0
    )
    torque_limit: tuple[float, ...] = parameter(
        (1500.0, 750.0, 300.0, 75.0), "torques are cut to this [N m]", read_only=True
    )
    implausible: float = parameter(
        4.0, "a voted torque beyond so many limits is not believed", minimum=1.0, maximum=1e6
    )
    speed_limit: float = parameter(
        20.0, "measured speed that stops the arm [rad/s]", minimum=1e-3, maximum=1e6
    )
    limit_margin: float = parameter(
        0.1, "position so far beyond its limit stops the arm [rad]", minimum=0.0, maximum=10.0
    )
    hold_time: float = parameter(
        0.1,
        "without a quorum the last torque is held so long, at once or in pieces [s]",
        minimum=0.0,
        maximum=10.0,
    )
    hold_recovery: float = parameter(
        0.1, "share of the time under control that hold_time gets back", minimum=0.0, maximum=1.0
    )
    pause_time: float = parameter(
        0.1,
        "a longer time without control is a pause: the motion goes on from where the arm is [s]",
        minimum=0.001,
        maximum=10.0,
    )
    following_error: tuple[float, ...] = parameter(
        (0.3,),
        "a joint farther from its motion stops the arm, one or one for each joint; 0: off [rad]",
        minimum=0.0,
        read_only=True,
    )
    frozen_motion: float = parameter(
        0.05,
        "a position that does not change while it should move so far stops the arm; 0: off [rad]",
        minimum=0.0,
        maximum=10.0,
        read_only=True,
    )
    standstill: float = parameter(
        5.0,
        "torques for no more than this acceleration may leave a joint where it is [rad/s^2]",
        minimum=0.0,
        maximum=1e6,
        read_only=True,
    )
    recover_from_starvation: bool = parameter(
        False,
        "after a stop for want of joint states, answers or time, go on by itself when they are "
        "back; off where an arm can hurt",
        read_only=True,
    )
    claim_time: float = parameter(
        1.0,
        "look so long for other controllers of the arm before driving it; 0: do not look [s]",
        minimum=0.0,
        maximum=60.0,
        read_only=True,
    )
    ramp_time: float = parameter(
        0.4, "then it goes down in this time [s]", minimum=0.001, maximum=10.0
    )
    stop_damping: float = parameter(
        40.0, "highest rate of the damping of a stopped arm [1/s]", minimum=0.0, maximum=1000.0
    )
    tolerance: float = parameter(
        0.0,
        "relative difference that still agrees; 0: identical",
        minimum=0.0,
        maximum=1e-3,
        read_only=True,
    )
    clean_ticks: int = parameter(
        50, "clean ticks before readmission", minimum=1, maximum=1000000, read_only=True
    )
    vote_patience: float = parameter(
        0.0,
        "wait at least so long for a quorum, even if ticks are skipped for it [s]",
        minimum=0.0,
        maximum=1.0,
        read_only=True,
    )
    stall_time: float = parameter(
        0.03,
        "late for so long: out of the working set [s]",
        minimum=0.0,
        maximum=10.0,
        read_only=True,
    )
    restart_stalled: float = parameter(
        5.0,
        "silent or wrong for so long: killed and started again; 0: off [s]",
        minimum=0.0,
        maximum=1e6,
        read_only=True,
    )
    allow_single: bool = parameter(
        True, "go on with one processor that nobody checks", read_only=True
    )
    realtime_priority: int = parameter(
        0,
        "SCHED_FIFO priority of the processors, the voter runs two above; 0: ordinary",
        minimum=0,
        maximum=90,
        read_only=True,
    )
    plan_speed: float = parameter(1.5, "of planned motions [rad/s]", minimum=1e-3, maximum=100.0)
    plan_acceleration: float = parameter(
        4.0, "of planned motions [rad/s^2]", minimum=1e-3, maximum=1000.0
    )
    status_rate: float = parameter(
        20.0, "status messages per second [Hz]", minimum=0.1, maximum=1000.0, read_only=True
    )
    command_format: str = parameter(
        "joint_state",
        "joint_torques as JointState (effort), or Float64MultiArray for a forward controller",
        choices=("joint_state", "array"),
        read_only=True,
    )
    schedule: str = parameter(
        "", "file with a fault schedule that runs from the start", read_only=True
    )

    def check(self) -> None:
        """Refuse arrays that do not fit together."""
        super().check()
        n = len(self.joints)
        for name in ("kp", "kd"):
            if len(getattr(self, name)) not in (1, n):
                raise InvalidInput(name, f"needs one value or {n}")
        if len(self.following_error) not in (1, n):
            raise InvalidInput("following_error", f"needs one value or {n}")
        if len(self.torque_limit) != n or min(self.torque_limit) <= 0.0:
            raise InvalidInput("torque_limit", f"needs {n} positive values")

    def limits(self, lower: Array, upper: Array) -> Limits:
        """What the governor lets pass."""
        usual = Limits.of(self.arm(), self.torque_limit, stop_damping=self.stop_damping)
        return dataclasses.replace(
            usual,
            lower=lower,
            upper=upper,
            speed=np.full(len(self.joints), self.speed_limit),
            implausible=self.implausible,
            margin=self.limit_margin,
            hold=self.hold_time,
            ramp=self.ramp_time,
            pause=self.pause_time,
            recovery=self.hold_recovery,
        )

    def entry(self) -> Entry:
        """How motions are entered from where the arm is."""
        return Entry(speed=self.plan_speed, acceleration=self.plan_acceleration)


class FtController(KinNode[FtParameters]):
    """The controller as a node; the control loop has a thread, the processors have processes."""

    def __init__(self, **node_arguments: Any) -> None:
        super().__init__("ft_controller", FtParameters, **node_arguments)
        self._crew: Crew | None = None
        self._loop: ControlLoop | None = None
        self._snapshot: Snapshot | None = None
        self._claim: Contender | None = None
        self._replayed: Any = None

    # ------------------------------------------------------------------ lifecycle

    def warm_up(self) -> None:
        """Compile what the processors, the voter and the planner run, or load it."""
        warm()
        arm = self.parameters.arm()
        posture = np.clip(np.full(arm.n, 0.1), self.parameters.lower, self.parameters.upper)
        plan(arm, posture, arm.end_effector(posture)[:2]).trajectory.sample(0.0)

    def configure(self) -> None:
        """Start the processors, offer the services."""
        now = self.parameters
        faults = self._read_schedule(now.schedule)
        self._crew = Crew(
            now.arm(),
            processors=now.processors,
            controller=now.controller,
            reconfiguration=now.reconfiguration,
            limits=now.limits(np.array(now.lower), np.array(now.upper)),
            kp=now.kp,
            kd=now.kd,
            tolerance=now.tolerance,
            clean_ticks=now.clean_ticks,
            allow_single=now.allow_single,
            restart_stalled=now.restart_stalled,
            realtime_priority=now.realtime_priority,
        )
        self._crew.start()
        self._crew.set_timing(
            Timing.realtime(now.control_rate, now.stall_time, now.vote_patience)
            if now.pace == "clock"
            else Timing.patient()
        )
        self._crew.inject(faults, 0.0)
        array = now.command_format == "array"
        self._command = Float64MultiArray() if array else JointState(name=list(now.joints))
        if now.pace == "states":
            # A replay is no arm to contend for, and waits for the torques from the first state on.
            self._replayed = self.publish_to(type(self._command), "joint_torques", COMMAND)
        self._status = self.publish_to(FtStatus, "~/status", STATE)
        self._desired = self.publish_to(Marker, "~/desired", STATE)
        self.listen(JointState, "joint_states", self._on_state, SENSOR)
        self.listen(JointTrajectory, "joint_trajectory", self._on_trajectory, COMMAND)
        self.serve(InjectFault, "~/inject_fault", self._inject)
        self.serve(SetController, "~/set_controller", self._set_controller)
        self.serve(SetJointLimits, "~/set_joint_limits", self._set_limits)
        self.serve(LockJoint, "~/lock_joint", self._lock)
        self.serve(MoveArm, "~/move_arm", self._move)
        self.every(0.5, self._diagnose, steady=True)
        self.every(0.05, self._draw, steady=True)
        self.every(0.05, self._contend, steady=True)

    def activate(self) -> None:
        """Start the control loop; the arm is under control from the first joint states on.

        First the node looks whether another one drives the arm.
        """
        now = self.parameters
        if self._crew is None:
            raise ArmError("", "the processors are not started")
        self._crew.governor.reset()
        if now.pace == "clock":
            self._claim = self._contender(now.claim_time)
        if self._publisher() is None:
            self._crew.governor.bar(Reason.CLAIMING)
        else:
            self._crew.governor.admit()
        kind = ControlLoop if now.pace == "clock" else SteppedLoop
        self._loop = kind(
            self._crew,
            now.control_rate,
            self._send,
            self._report,
            now.state_timeout,
            now.status_rate,
            self._loop_failed,
            entry=now.entry(),
            watch=MotionWatch(
                self._crew.arm, now.following_error, now.frozen_motion, now.standstill
            ),
            recover_after=_RECOVERY if now.recover_from_starvation else 0.0,
        )
        self._loop.start()

    def _contender(self, seconds: float) -> Contender:
        return Contender(
            self,
            type(self._command),
            "joint_torques",
            COMMAND,
            seconds,
            "kin_interfaces/srv/SetController",
            strangers=True,
        )

    def deactivate(self) -> None:
        """Ramp down and stop the loop."""
        if self._loop is not None:
            self._loop.stop()
            self._loop = None
        self._leave()

    def _publisher(self) -> Any:
        """The publisher of torques, while the arm is this node's to drive; None otherwise."""
        return self._replayed if self._claim is None else self._claim.publisher

    def _leave(self) -> None:
        """Leave the arm to others."""
        if self._claim is not None:
            self._claim.close()
            self._claim = None

    def cleanup(self) -> None:
        """End the processors."""
        self._leave()
        self._replayed = None
        if self._crew is not None:
            self._crew.close()
            self._crew = None

    def parameters_changed(self, old: FtParameters, new: FtParameters) -> None:
        """Take over gains and limits while the arm moves."""
        loop = self._loop
        if loop is None:
            return

        def take_over() -> None:
            crew = loop.crew
            crew.set_gains(new.kp, new.kd)
            limits = crew.governor.limits
            crew.governor.limits = new.limits(limits.lower, limits.upper)
            loop.enter_by(new.entry())
            if (old.controller, old.reconfiguration) != (new.controller, new.reconfiguration):
                crew.set_controller(new.controller, new.reconfiguration)

        loop.do(take_over)

    def _read_schedule(self, path: str) -> list[Fault]:
        if not path:
            return []
        from pathlib import Path

        faults = load_schedule(Path(path))
        for fault in faults:
            fault.check(self.parameters.processors, len(self.parameters.joints))
        return faults

    # ------------------------------------------------------------------ topics

    def _send(self, tick: Tick) -> None:
        """Publish a torque, if the arm is this node's to drive; called by the control loop."""
        publisher = self._publisher()
        if publisher is None:
            return
        if isinstance(self._command, JointState):
            self._command.header.stamp = self.get_clock().now().to_msg()
            self._command.effort = to_field(tick.torque, "float64")
        else:
            self._command.data = to_field(tick.torque, "float64")
        publisher.publish(self._command)

    def _contend(self) -> None:
        """Look for others that drive the arm: there must be one."""
        claim, loop = self._claim, self._loop
        if claim is None or loop is None or not loop.running:
            return
        before = claim.sentence

        def change(standing: Standing) -> None:
            governor = loop.crew.governor
            if standing == Standing.DRIVING:
                loop.do(governor.admit)
            elif standing == Standing.LOST:
                loop.do(lambda: governor.bar(Reason.RIVAL))
            else:
                loop.do(lambda: governor.bar(Reason.CLAIMING))

        claim.look(time.monotonic(), change)
        if claim.sentence and claim.sentence != before:
            self.get_logger().warning(claim.sentence)

    def _report(self, snapshot: Snapshot) -> None:
        """Publish a status; called by the control loop, which a status must never end."""
        claim = self._claim
        if claim is not None and claim.sentence:
            snapshot = dataclasses.replace(snapshot, reason=claim.sentence)
        self._guard("status", lambda: self._show(snapshot))

    def _show(self, snapshot: Snapshot) -> None:
        previous, self._snapshot = self._snapshot, snapshot
        self._status.publish(self._status_message(snapshot))
        if previous is None or previous.state != snapshot.state:
            log = self.get_logger()
            text = f"{snapshot.state.name}{': ' if snapshot.reason else ''}{snapshot.reason}"
            # Three lines: rclpy wants one severity for each place in the code. On a busy machine
            # single ticks are held; the diagnostics count them.
            if State.HOLD in (snapshot.state, previous.state if previous else None) and (
                snapshot.state <= State.HOLD
            ):
                log.info(text, throttle_duration_sec=5.0)
            elif snapshot.state in (State.RUN, State.IDLE):
                log.info(text)
            else:
                log.warning(text)
        if previous is not None and previous.working_set != snapshot.working_set:
            for old, new in zip(previous.processors, snapshot.processors, strict=True):
                if old.state != new.state:
                    self.get_logger().info(
                        f"processor {new.id}: {old.state} -> {new.state} {new.detail}"
                    )

    def _loop_failed(self, error: BaseException) -> None:
        """The loop broke down: the last word to the motors is zero; called by the loop."""
        text = "".join(traceback.format_exception(error))
        self.get_logger().fatal(f"the control loop broke down:\n{text}")
        publisher = self._publisher()
        if publisher is None:
            return
        zero = to_field(np.zeros(len(self.parameters.joints)), "float64")
        if isinstance(self._command, JointState):
            self._command.effort = zero
        else:
            self._command.data = zero
        publisher.publish(self._command)

    def _on_state(self, message: JointState) -> None:
        if self._loop is None:
            return
        joints = self.parameters.joints
        if not set(joints).intersection(message.name):
            return  # of another robot on the same topic
        q = joint_values(joints, message.name, "position", message.position)
        qdot = joint_values(joints, message.name, "velocity", message.velocity)
        self._loop.measured(q, qdot, self._age(message.header.stamp))

    def _age(self, stamp: Any) -> float:
        """How old a measurement is, in the node's clock; none may be of the future [s]."""
        now = self.parameters
        if now.pace == "states":
            return 0.0
        if stamp.sec == 0 and stamp.nanosec == 0:
            if now.require_stamps:
                raise ArmError("header.stamp", "is zero; joint states need the time they are of")
            return 0.0
        clock = 1e-9 * self.get_clock().now().nanoseconds
        age = clock - (stamp.sec + 1e-9 * stamp.nanosec)
        if age < -now.stamp_tolerance:
            why = " (no time on /clock yet)" if clock == 0.0 else ""
            raise ArmError("header.stamp", f"is {-age:.3g} s in the future{why}")
        return max(age, 0.0)

    def _on_trajectory(self, message: JointTrajectory) -> None:
        loop = self._driven()
        trajectory = self._trajectory(message, self._start(loop))
        limits = loop.crew.governor.limits
        free = ~loop.crew.locked
        trajectory.check(
            np.where(free, limits.lower, -np.inf),
            np.where(free, limits.upper, np.inf),
            np.where(free, limits.speed, np.inf),
        )
        loop.follow(trajectory)

    def _trajectory(self, message: JointTrajectory, desired: Array) -> Trajectory:
        """A message as a trajectory; joints that it does not name stay where they are."""
        joints = list(self.parameters.joints)
        columns = [joint_index(joints, name, "joint_names") for name in message.joint_names]
        if not columns or len(set(columns)) != len(columns):
            raise ArmError("joint_names", "must name at least one joint, and none twice")
        checks.count("points", len(message.points), 20_000)
        if not message.points:
            # As ros2_control has it: an empty trajectory stops the motion.
            return Trajectory.rest(desired[0])
        k, n = len(message.points), len(joints)
        times = np.array(
            [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in message.points]
        )
        blocks: list[Array | None] = []
        for name in ("positions", "velocities", "accelerations"):
            rows = [from_field(getattr(p, name), "float64") for p in message.points]
            given = [row.size for row in rows]
            if name != "positions" and not any(given):
                blocks.append(None)
                continue
            if any(size != len(columns) for size in given):
                raise ArmError(f"points.{name}", f"every point needs {len(columns)} values")
            block = np.zeros((k, n))
            if name == "positions":
                block[:] = desired[0]
            block[:, columns] = rows
            blocks.append(block)
        velocities, accelerations = blocks[1:]
        positions = np.zeros((0, n)) if blocks[0] is None else blocks[0]
        if times[0] > 0.0:
            # The way to the first point begins where the arm is.
            times = np.append(0.0, times)
            positions = np.vstack([desired[0], positions])
            if velocities is not None:
                velocities = np.vstack([desired[1], velocities])
            if accelerations is not None:
                accelerations = np.vstack([desired[2], accelerations])
        return Trajectory.through(times, positions, velocities, accelerations)

    # ------------------------------------------------------------------ services

    def _running(self) -> ControlLoop:
        if self._loop is None or not self._loop.running:
            raise ArmError("", "the control loop does not run")
        return self._loop

    def _driven(self) -> ControlLoop:
        """The loop, if what it is told to follow is followed."""
        loop = self._running()
        state = loop.crew.governor.state
        if self._claim is not None and self._claim.sentence:
            raise ArmError("", self._claim.sentence)
        if state in (State.RAMP, State.STOPPED) and not loop.recovering:
            raise ArmError("", f"the arm is stopped ({loop.crew.reason()}): reset it first")
        return loop

    def _start(self, loop: ControlLoop) -> Array:
        """Where a motion begins, shape (3, n): where the arm should be, or where it is."""
        if loop.driving:
            return loop.desired()
        measured = loop.measurement
        if measured is None or not loop.fresh:
            raise ArmError("", "there are no joint states to start from")
        zero = np.zeros_like(measured[0])
        return np.array([measured[0], zero, zero])

    def _rest(self, loop: ControlLoop) -> None:
        """Stay where the arm is now."""
        measured = loop.measurement
        if measured is None or not loop.fresh:
            raise ArmError("", "there are no joint states to start from")
        loop.follow(Trajectory.rest(measured[0]))

    def _inject(self, request: InjectFault.Request, task: Task) -> InjectFault.Response:
        loop = self._running()
        kind = request.kind.strip()
        faults: list[Fault] = []
        if request.schedule:
            if kind or len(request.processors):
                raise ScheduleError("schedule", "give either a schedule or a single fault")
            faults = load_schedule(str(request.schedule))
        elif kind != "clear":
            checks.within("start", request.start, 0.0, 1e9)
            checks.within("duration", request.duration, 0.0, 1e9)
            faults = [
                Fault(
                    processors=tuple(int(k) for k in request.processors),
                    kind=kind,
                    start=request.start,
                    end=request.start + request.duration if request.duration else np.inf,
                    element=request.element,
                    magnitude=request.magnitude,
                    seed=request.seed,
                )
            ]

        def order() -> int:
            if kind == "clear":
                loop.crew.clear_faults()
            else:
                loop.crew.inject(faults, loop.now())
            return loop.crew.faults

        return InjectFault.Response(faults=loop.do(order))

    def _set_controller(self, request: SetController.Request, task: Task) -> SetController.Response:
        loop = self._running()

        def order() -> tuple[str, int, str]:
            previous, waits = loop.crew.controller, ""
            loop.crew.set_controller(request.controller, request.reconfiguration)
            if request.reset:
                self._rest(loop)
                waits = loop.crew.reset()
                self._claim_again()
            return previous, loop.crew.working_set, waits

        previous, working, waits = loop.do(order)
        response = SetController.Response(previous=previous, working_set=working)
        response.status.message = waits
        return response

    def _claim_again(self) -> None:
        """After a reset: try for the arm again if it was lost to another controller."""
        if self._claim is not None and self._claim.standing == Standing.LOST:
            self._claim.again()

    def _set_limits(self, request: SetJointLimits.Request, task: Task) -> SetJointLimits.Response:
        loop = self._running()
        joints = self.parameters.joints
        names = list(request.joints)
        limits = loop.crew.governor.limits
        lower, upper = limits.lower.copy(), limits.upper.copy()
        new_lower = checks.shape("lower", from_field(request.lower, "float64"), (len(names),))
        new_upper = checks.shape("upper", from_field(request.upper, "float64"), (len(names),))
        if not names:
            raise ArmError("joints", "must name at least one joint")
        for k, name in enumerate(names):
            i = joint_index(joints, name, "joints")
            if not new_lower[k] < new_upper[k]:
                raise ArmError("lower", f"{name}: {new_lower[k]:g} is not below {new_upper[k]:g}")
            lower[i], upper[i] = new_lower[k], new_upper[k]

        def order() -> None:
            measured = loop.measurement
            if measured is not None:
                margin = limits.margin
                out = (measured[0] < lower - margin) | (measured[0] > upper + margin)
                if out.any():
                    i = int(np.argmax(out))
                    raise ArmError(
                        "lower", f"{joints[i]} is at {measured[0][i]:.4g} rad now: move it first"
                    )
            loop.crew.governor.limits = dataclasses.replace(limits, lower=lower, upper=upper)
            self._keep_inside(loop, lower, upper)

        loop.do(order)
        return SetJointLimits.Response()

    def _keep_inside(self, loop: ControlLoop, lower: Array, upper: Array) -> None:
        """Leave a trajectory that would run into the new limits."""
        following = loop.following
        if following is None:
            return
        far = np.full(lower.size, np.inf)
        try:
            following.check(lower, upper, far)
        except ArmError:
            now = loop.desired()
            end = np.clip(now[0], lower, upper)
            speed = self.parameters.plan_speed
            length = max(0.5, 2.0 * float(np.abs(end - now[0]).max()) / speed)
            zero = np.zeros_like(end)
            loop.follow(
                Trajectory.through([0.0, length], [now[0], end], [now[1], zero], [now[2], zero])
            )

    def _lock(self, request: LockJoint.Request, task: Task) -> LockJoint.Response:
        loop = self._running()
        joint = joint_index(self.parameters.joints, request.joint)

        def order() -> list[int]:
            crew = loop.crew
            if not request.locked and crew.locked[joint]:
                # It is not where the trajectory would have it.
                self._rest(loop)
            crew.lock(joint, request.locked)
            return crew.assignment()

        owners = loop.do(order)
        return LockJoint.Response(owners=[k if k >= 0 else 255 for k in owners])

    def _move(self, request: MoveArm.Request, task: Task) -> MoveArm.Response:
        loop = self._running() if request.plan_only else self._driven()
        now = self.parameters
        limits = loop.crew.governor.limits
        measured = loop.measurement
        if measured is None or not loop.fresh:
            raise ArmError("", "there are no joint states to start from")
        start = self._start(loop)[0]
        locked = loop.crew.locked
        start[locked] = measured[0][locked]
        result = plan(
            loop.crew.arm,
            start,
            [request.x, request.y],
            request.angle if request.use_angle else None,
            lower=limits.lower,
            upper=limits.upper,
            locked=locked,
            speed=now.plan_speed,
            acceleration=now.plan_acceleration,
            duration=request.duration,
            task=task,
        )
        if not request.plan_only:
            loop.follow(result.trajectory)
        response = MoveArm.Response(trajectory=self._message(result.trajectory))
        response.status.residual = result.residual
        response.status.iterations = result.iterations
        if not result.straight:
            response.status.message = "not on a straight line"
        return response

    def _message(self, trajectory: Trajectory) -> JointTrajectory:
        message = JointTrajectory(joint_names=list(self.parameters.joints))
        for t in trajectory.times:
            q, v, a = trajectory.sample(float(t))
            point = JointTrajectoryPoint(
                positions=to_field(q, "float64"),
                velocities=to_field(v, "float64"),
                accelerations=to_field(a, "float64"),
            )
            point.time_from_start.sec = int(t)
            point.time_from_start.nanosec = int(1e9 * (t - int(t)))
            message.points.append(point)
        return message

    # ------------------------------------------------------------------ status

    def _status_message(self, s: Snapshot) -> FtStatus:
        message = FtStatus(
            state=int(s.state),
            reason=s.reason,
            controller=s.controller,
            reconfiguration=s.reconfiguration,
            degraded=s.degraded,
            unverified=s.unverified,
            saturated=s.saturated,
            tick=s.tick,
            working_set=s.working_set,
            quorum=s.quorum,
            agreeing=s.agreeing,
            vote_time=s.vote_time,
            vote_time_p99=s.vote_time_p99,
            missed_deadlines=s.missed_deadlines,
            held_ticks=s.held_ticks,
            exclusions=s.exclusions,
            joints=list(self.parameters.joints),
            locked=[bool(x) for x in s.locked],
            lower=to_field(s.lower, "float64"),
            upper=to_field(s.upper, "float64"),
            torque=to_field(s.torque, "float64"),
            error=to_field(s.error, "float64"),
        )
        message.header.stamp = self.get_clock().now().to_msg()
        for p in s.processors:
            message.processors.append(
                FtProcessor(
                    id=p.id,
                    pid=p.pid,
                    state=getattr(FtProcessor, p.state),
                    error=p.error,
                    detail=p.detail,
                    comparison=to_field(np.array(p.comparison, np.uint8), "uint8"),
                    suggestion=p.suggestion,
                    votes_against=p.votes_against,
                    restarts=p.restarts,
                    missed=p.missed,
                    clean=min(p.clean, 2**32 - 1),
                    clean_needed=p.clean_needed,
                    joints=to_field(np.array(p.joints, np.uint8), "uint8"),
                )
            )
        return message

    def _draw(self) -> None:
        """Where the arm should be, beside the simulator's or the robot's own picture of it."""
        loop = self._loop
        if loop is None or self._snapshot is None or self._desired.get_subscription_count() == 0:
            return
        points = loop.crew.arm.points(loop.desired()[0])
        stamp = self.get_clock().now().to_msg()
        self._desired.publish(arm_marker(points, DESIRED, self.parameters.frame, stamp))

    def _diagnose(self) -> None:
        s, loop = self._snapshot, self._loop
        if loop is not None and loop.error is not None:
            self.diagnostics.fault(f"the control loop ended: {loop.error!r}")
            return
        if s is None:
            return
        d = self.diagnostics
        d.time("vote", s.vote_time)
        d.value("working_set", float(bin(s.working_set).count("1")))
        d.value("missed_deadlines", float(s.missed_deadlines))
        d.value("held_ticks", float(s.held_ticks))
        d.value("exclusions", float(s.exclusions))
        d.value("tracking_error_rad", float(np.abs(s.error).max()))
        d.value("recoveries", float(loop.recoveries if loop is not None else 0))
        claim = self._claim
        if claim is not None and claim.sentence:
            d.fault(claim.sentence, warning=claim.standing != Standing.LOST)
        elif s.state.name in ("HOLD", "RAMP", "STOPPED"):
            # A hold goes on to RUN or RAMP within a fraction of a second.
            d.fault(f"{s.state.name}: {s.reason}", warning=s.state == State.HOLD)
        elif s.degraded or s.working_set != (1 << self.parameters.processors) - 1:
            out = [f"{p.id} ({p.detail})" for p in s.processors if p.state != "WORKING"]
            d.fault(f"processors out: {', '.join(out) or 'none'}", warning=True)
        else:
            d.healthy()


def main() -> None:
    """Run the node until it is told to stop."""
    sys.exit(run(FtController))


if __name__ == "__main__":
    main()
