"""The node ``ft_controller``: joint states and trajectories in, voted torques out."""

from __future__ import annotations

import dataclasses
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np
from kin_interfaces.msg import FtStatus
from kin_interfaces.srv import InjectFault, LockJoint, MoveArm, SetController, SetJointLimits
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray
from visualization_msgs.msg import Marker

from ft_controller import conversions, orders
from ft_controller.claim import Standing
from ft_controller.errors import ArmError
from ft_controller.exclusive_publisher import ExclusivePublisher
from ft_controller.faults import Fault, load_schedule
from ft_controller.loop import ControlLoop, Snapshot, SteppedLoop
from ft_controller.markers import DESIRED, arm_marker
from ft_controller.parameters import FtParameters
from ft_controller.planner import Plan
from ft_controller.records import Array
from ft_controller.replica_group import ReplicaGroup
from ft_controller.safety_supervisor import Reason, State
from ft_controller.trajectory_goals import TrajectoryGoals
from ft_controller.trajectory_server import TrajectoryServer
from ft_controller.warm_up import warm_up_controller
from kin_core.task import Task
from kin_ros.arrays import to_field
from kin_ros.node import KinNode, run
from kin_ros.qos import COMMAND, SENSOR, STATE

__all__ = ["FtController", "main"]

#: After a stop for want of something all must be well so long before the arm is taken over [s].
_RECOVERY = 1.0


class FtController(KinNode[FtParameters]):
    """The controller as a node; the control loop has a thread, the processors have processes.

    Attributes:
        group: The replica group, while the node is configured.
        control: The control loop, while the node is active.
        claim: The publisher of torques, or the wait for it, while the node is active.
        goals: The goal that the arm follows, while the node is active.
    """

    def __init__(self, **node_arguments: Any) -> None:
        super().__init__("ft_controller", FtParameters, **node_arguments)
        self.group: ReplicaGroup | None = None
        self.control: ControlLoop | None = None
        self.claim: ExclusivePublisher | None = None
        self.goals: TrajectoryGoals | None = None
        self._snapshot: Snapshot | None = None
        self._replayed: Any = None

    # ------------------------------------------------------------------ lifecycle

    def warm_up(self) -> None:
        """Compile what the processors, the voter and the planner run, or load it."""
        warm_up_controller(self.parameters.arm(), *self.parameters.positions)

    def configure(self) -> None:
        """Start the processors, offer the services."""
        now = self.parameters
        faults = self._scheduled(now)
        self.group = group = now.replica_group()
        group.start()
        group.set_timing(now.timing())
        group.inject(faults, 0.0)
        array = now.command_format == "array"
        self._command = Float64MultiArray() if array else JointState(name=list(now.names))
        if now.pace == "states":
            # A replay is no arm to contend for, and waits for the torques from the first state on.
            self._replayed = self.publish_to(type(self._command), "joint_torques", COMMAND)
        self._status = self.publish_to(FtStatus, "~/status", STATE)
        self._desired = self.publish_to(Marker, "~/desired", STATE)
        self._brakes = self.publish_to(Bool, "brake", STATE)
        self._braked = False
        self.listen(JointState, "joint_states", self._on_state, SENSOR)
        self.serve(InjectFault, "~/inject_fault", self._inject)
        self.serve(SetController, "~/set_controller", self._set_controller)
        self.serve(SetJointLimits, "~/set_joint_limits", self._set_limits)
        self.serve(LockJoint, "~/lock_joint", self._lock)
        self.serve(MoveArm, "~/move_arm", self._move)
        self._trajectories = TrajectoryServer(self)
        self.every(0.5, self._diagnose, steady=True)
        self.every(0.05, self._draw, steady=True)
        self.every(0.05, self._contend, steady=True)

    def activate(self) -> None:
        """Start the control loop; the arm is under control from the first joint states on.

        First the node looks whether another one drives the arm.
        """
        now, group = self.parameters, self.group
        if group is None:
            raise ArmError("", "the processors are not started")
        group.safety.reset()
        if now.pace == "clock":
            self.claim = ExclusivePublisher(
                self,
                type(self._command),
                "joint_torques",
                COMMAND,
                now.claim_time,
                "kin_interfaces/srv/SetController",
                strangers=True,
            )
        group.safety.bar(Reason.CLAIMING if self._publisher() is None else Reason.NONE)
        kind = ControlLoop if now.pace == "clock" else SteppedLoop
        self.control = kind(
            group,
            now.control_rate,
            lambda tick: self._send(tick.torque),
            self._report,
            now.state_timeout,
            now.status_rate,
            self._loop_failed,
            entry=now.entry(),
            watch=now.motion_watch(),
            integral=now.integral(),
            recover_after=_RECOVERY if now.recover_from_starvation else 0.0,
        )
        if now.pace == "clock":
            self.control.clock = self._motion_ns
        self.goals = TrajectoryGoals(self.control, now.names)
        self.control.start()

    def deactivate(self) -> None:
        """Ramp down, stop the loop, and leave the arm to others."""
        self._trajectories.drop("the controller is being deactivated")
        self.goals = None
        if self.control is not None:
            self.control.stop()
            self.control = None
        self._leave_the_arm()

    def _leave_the_arm(self) -> None:
        if self.claim is not None:
            self.claim.close()
            self.claim = None

    def cleanup(self) -> None:
        """End the processors."""
        self._replayed = None
        self._leave_the_arm()
        if self.group is not None:
            self.group.close()
            self.group = None

    def parameters_changed(self, old: FtParameters, new: FtParameters) -> None:
        """Take over gains and limits while the arm moves."""
        loop = self.control
        if loop is not None:
            loop.do(lambda: new.take_over(loop, old))

    def _scheduled(self, now: FtParameters) -> list[Fault]:
        faults = load_schedule(Path(now.schedule)) if now.schedule else []
        for fault in faults:
            fault.check(now.processors, len(now.names))
        return faults

    # ------------------------------------------------------------------ torques

    def _publisher(self) -> Any:
        """The publisher of torques, while the arm is this node's to drive; None otherwise."""
        return self._replayed if self.claim is None else self.claim.publisher

    def _send(self, torque: Array) -> None:
        """Publish a torque, if the arm is this node's to drive; called by the control loop."""
        publisher = self._publisher()
        if publisher is None:
            return
        if isinstance(self._command, JointState):
            self._command.header.stamp = self.get_clock().now().to_msg()
            self._command.effort = to_field(torque, "float64")
        else:
            self._command.data = to_field(torque, "float64")
        publisher.publish(self._command)

    def _loop_failed(self, error: BaseException) -> None:
        """The loop broke down: the last word to the motors is zero; called by the loop."""
        text = "".join(traceback.format_exception(error))
        self.get_logger().fatal(f"the control loop broke down:\n{text}")
        if self.goals is not None:
            self.goals.drop("the control loop broke down")
        self._send(np.zeros(len(self.parameters.names)))

    def _contend(self) -> None:
        """Look for others that drive the arm: there must be one."""
        claim, loop = self.claim, self.control
        if claim is None or loop is None or not loop.running:
            return
        bars = {Standing.DRIVING: Reason.NONE, Standing.LOST: Reason.RIVAL}

        def change(standing: Standing) -> None:
            loop.do(lambda: loop.group.safety.bar(bars.get(standing, Reason.CLAIMING)))

        if claim.look(time.monotonic(), change):
            self.get_logger().warning(claim.sentence)

    # ------------------------------------------------------------------ topics

    def _on_state(self, message: JointState) -> None:
        loop, now = self.control, self.parameters
        if loop is None or not set(now.names).intersection(message.name):
            return  # of another robot on the same topic
        q = conversions.joint_values(now.names, message.name, "position", message.position)
        qdot = conversions.joint_values(now.names, message.name, "velocity", message.velocity)
        age, motion_ns = 0.0, None
        if now.pace == "clock":
            clock = self.get_clock()
            now_ns = clock.now().nanoseconds
            age = conversions.age_of(
                message.header.stamp, 1e-9 * now_ns, now.stamp_tolerance, now.require_stamps
            )
            if clock.ros_time_is_active:
                motion_ns = now_ns - int(1e9 * age)
        loop.measured(q, qdot, age, motion_ns)

    def _motion_ns(self) -> int:
        """The time of motions [ns]: simulated, or that of this machine, which nobody sets."""
        clock = self.get_clock()
        return clock.now().nanoseconds if clock.ros_time_is_active else time.monotonic_ns()

    def motion_time(self, node_ns: int) -> int:
        """A time of the node's clock in the time of motions [ns]."""
        clock, loop = self.get_clock(), self.running()
        if clock.ros_time_is_active and self.parameters.pace == "clock":
            return node_ns
        return loop.clock() + node_ns - clock.now().nanoseconds

    # ------------------------------------------------------------------ services

    def running(self) -> ControlLoop:
        """The loop, if it runs."""
        if self.control is None or not self.control.running:
            raise ArmError("", "the control loop does not run")
        return self.control

    def driven(self) -> ControlLoop:
        """The loop, if what it is told to follow is followed."""
        loop = self.running()
        if self.claim is not None and self.claim.sentence:
            raise ArmError("", self.claim.sentence)
        orders.refuse_if_stopped(loop)
        return loop

    def _inject(self, request: InjectFault.Request, task: Task) -> InjectFault.Response:
        loop = self.running()
        clear = request.kind.strip() == "clear" and not request.schedule
        faults = None if clear else conversions.faults_of(request)
        return InjectFault.Response(faults=loop.do(lambda: orders.inject(loop, faults)))

    def _set_controller(self, request: SetController.Request, task: Task) -> SetController.Response:
        loop = self.running()
        response = SetController.Response()

        def order() -> None:
            response.previous = loop.group.controller
            loop.group.set_controller(request.controller, request.reconfiguration)
            if request.reset:
                response.status.message = orders.reset(loop)
                if self.claim is not None:
                    self.claim.again()
            response.working_set = loop.group.working_set

        loop.do(order)
        return response

    def _set_limits(self, request: SetJointLimits.Request, task: Task) -> SetJointLimits.Response:
        loop, now = self.running(), self.parameters
        where, lower, upper = conversions.limits_of(request, now.names)
        loop.do(
            lambda: orders.set_joint_limits(loop, where, lower, upper, now.names, now.plan_speed)
        )
        return SetJointLimits.Response()

    def _lock(self, request: LockJoint.Request, task: Task) -> LockJoint.Response:
        loop = self.running()
        joint = conversions.joint_index(self.parameters.names, request.joint)
        owners = loop.do(lambda: orders.lock(loop, joint, request.locked))
        return LockJoint.Response(owners=[k if k >= 0 else 255 for k in owners])

    def plan(self, request: Any, task: Task) -> Plan:
        """A motion of the tip, for the service and the action of that name."""
        loop = self.running() if request.plan_only else self.driven()
        now = self.parameters
        if now.pace == "clock":
            orders.await_first_state(loop, task)
        return orders.move(
            loop,
            [request.x, request.y],
            request.angle if request.use_angle else None,
            duration=request.duration,
            speed=now.plan_speed,
            acceleration=now.plan_acceleration,
            task=task,
        )

    def _move(self, request: MoveArm.Request, task: Task) -> MoveArm.Response:
        result, response = self.plan(request, task), MoveArm.Response()
        if not request.plan_only:
            self.get_logger().warning(
                "the service move_arm answers before the arm has moved, and will only plan from "
                "the next release on: use the action move_arm",
                once=True,
            )
            self.driven().follower.follow(result.trajectory)
        conversions.write_plan(response, result, self.parameters.names)
        return response

    # ------------------------------------------------------------------ status

    def _report(self, snapshot: Snapshot) -> None:
        """Publish a status; called by the control loop, which a status must never end."""
        claim = self.claim
        if claim is not None and claim.sentence:
            snapshot = dataclasses.replace(snapshot, reason=claim.sentence)
        self._guard("status", lambda: self._show(snapshot))

    def _show(self, snapshot: Snapshot) -> None:
        previous, self._snapshot = self._snapshot, snapshot
        if snapshot.brake or self._braked:  # repeated while it is needed, and taken back once
            self._brakes.publish(Bool(data=snapshot.brake))
        self._braked = snapshot.brake
        stamp = self.get_clock().now().to_msg()
        self._status.publish(conversions.status_message(snapshot, self.parameters.names, stamp))
        if previous is None or previous.state != snapshot.state:
            log = self.get_logger()
            text = f"{snapshot.state.name}{': ' if snapshot.reason else ''}{snapshot.reason}"
            # Three lines: rclpy wants one severity for each place in the code. On a busy machine
            # single ticks are held; the diagnostics count them.
            if State.HOLD in (snapshot.state, previous.state if previous else None) and (
                snapshot.state in (State.IDLE, State.RUN, State.HOLD)
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

    def _draw(self) -> None:
        """Where the arm should be, beside the simulator's or the robot's own picture of it."""
        loop = self.control
        if loop is None or self._snapshot is None or self._desired.get_subscription_count() == 0:
            return
        points = loop.group.arm.points(loop.follower.desired[0])
        stamp = self.get_clock().now().to_msg()
        self._desired.publish(arm_marker(points, DESIRED, self.parameters.base_frame, stamp))

    def _diagnose(self) -> None:
        s, loop = self._snapshot, self.control
        if loop is not None and loop.error is not None:
            self.diagnostics.fault(f"the control loop ended: {loop.error!r}")
            return
        if s is None:
            return
        d, claim = self.diagnostics, self.claim
        d.time("vote", s.vote_time)
        d.value("working_set", float(s.working_set.bit_count()))
        for name in ("missed_deadlines", "held_ticks", "exclusions"):
            d.value(name, float(getattr(s, name)))
        d.value("tracking_error_rad", float(np.abs(s.error).max()))
        d.value("recoveries", float(loop.recoveries if loop is not None else 0))
        if claim is not None and claim.sentence:
            d.fault(claim.sentence, warning=claim.standing != Standing.LOST)
        elif s.state in (State.HOLD, State.RAMP, State.STOPPED):
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
