"""The node ``arm_simulator``: a simulated arm that takes torques and gives joint states."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

import numpy as np
from kin_interfaces.srv import LockJoint, SetJointLimits
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from visualization_msgs.msg import Marker

from ft_controller.conversions import joint_index, joint_values, limits_of
from ft_controller.errors import ArmError
from ft_controller.exclusive_publisher import ExclusivePublisher
from ft_controller.limits import Limits
from ft_controller.markers import ACTUAL, arm_marker
from ft_controller.mujoco_plant import MujocoPlant
from ft_controller.parameters import SimulatorParameters
from ft_controller.plant import Plant
from ft_controller.scheduling import SIMULATOR, raise_thread
from ft_controller.warm_up import warm_up_plant
from kin_core.loop import PeriodicLoop
from kin_core.task import Task
from kin_ros.arrays import to_field
from kin_ros.node import KinNode, run
from kin_ros.qos import COMMAND, STATE

__all__ = ["ArmSimulator", "main"]


class ArmSimulator(KinNode[SimulatorParameters]):
    """The simulated arm as a node; the integration has a thread of its own.

    Attributes:
        plant: The simulated arm, while the node is configured.
        claim: The publisher of joint states, or the wait for it, while the node is active.
    """

    plant: Plant

    def __init__(self, **node_arguments: Any) -> None:
        super().__init__("arm_simulator", SimulatorParameters, **node_arguments)
        self._loop: PeriodicLoop | None = None
        self.claim: ExclusivePublisher | None = None
        self._guard_plant = threading.Lock()
        self._guard_states = threading.Lock()

    def warm_up(self) -> None:
        """Compile the plant, or load it from the cache."""
        warm_up_plant(self._new_plant())

    def _new_plant(self) -> Plant:
        now = self.parameters
        options: dict[str, Any] = {
            "q": now.begin,
            "lower": now.positions[0],
            "upper": now.positions[1],
            "position_noise": now.position_noise,
            "velocity_noise": now.velocity_noise,
            "seed": now.seed,
        }
        if now.engine == "mujoco":
            return MujocoPlant(now.file, now.spatial, now.true_arm(), **options)
        return Plant(now.true_arm(), **options)

    def parameters_changed(self, old: SimulatorParameters, new: SimulatorParameters) -> None:
        """Take a payload, or put it down, while the arm moves."""
        plant = getattr(self, "plant", None)  # there is none before the node is configured
        if plant is not None and not new.same_payload(old):
            with self._guard_plant:
                plant.set_arm(new.true_arm())

    def configure(self) -> None:
        """Put the arm at its start, offer the services."""
        now = self.parameters
        self.plant = self._new_plant()
        self._torque = np.zeros(len(now.names))
        self._brakes = Limits.of(now.arm(), stop_damping=now.brake_damping).damping
        self._commanded = 0.0
        self._message = JointState(name=list(now.names))
        self._markers = self.publish_to(Marker, "~/marker", STATE)
        self.listen(JointState, "joint_torques", self._on_torque, COMMAND)
        self.listen(Bool, "brake", self._on_brake, STATE)
        self._braked = False
        self.serve(LockJoint, "~/lock_joint", self._lock)
        self.serve(SetJointLimits, "~/set_joint_limits", self._set_limits)
        self.every(0.05, self._draw)
        self.every(0.05, self._contend, steady=True)

    def activate(self) -> None:
        """Let time run."""
        period = 1.0 / self.parameters.rate
        self._last = time.monotonic()
        self.claim = ExclusivePublisher(
            self,
            JointState,
            "joint_states",
            STATE,
            self.parameters.claim_time,
            "kin_interfaces/srv/LockJoint",
            strangers=False,  # several robots may share the topic
        )
        self._raised = False
        self._loop = self.loop("simulation", period, self._step)
        self._loop.start()

    def deactivate(self) -> None:
        """Stop the time."""
        if self._loop is not None:
            self._loop.stop()
            self._loop = None
        if self.claim is not None:
            self.claim.close()
            self.claim = None

    def _contend(self) -> None:
        """Look for another simulated arm on the same topic: there must be one."""
        claim = self.claim
        if claim is None:
            return
        before = claim.sentence
        with self._guard_states:  # nobody publishes while a publisher is taken back
            news = claim.look(time.monotonic(), lambda _: None)
        if news:
            self.get_logger().warning(claim.sentence)
        if claim.sentence:
            self.diagnostics.fault(claim.sentence, warning=True)
        elif before:
            self.diagnostics.healthy()

    def _on_torque(self, message: JointState) -> None:
        torque = joint_values(self.parameters.names, message.name, "effort", message.effort)
        self._torque, self._commanded = torque, time.monotonic()

    def _on_brake(self, message: Bool) -> None:
        self._braked = message.data

    def _step(self) -> None:
        if not self._raised:  # the thread is the loop's own
            self._raised = True
            raise_thread(self.parameters.realtime_priority, SIMULATOR)
        now = time.monotonic()
        with self._guard_states:
            claim = self.claim
            if claim is None or claim.publisher is None:
                self._last = now  # the arm rests until it is known to be the only one
                return
            self._move(now, claim.publisher)

    def _move(self, now: float, states: Any) -> None:
        torque, braking = self._torque, None
        if self._braked or now - self._commanded > self.parameters.command_timeout:
            # As the watchdog of real drives: who is no longer told anything stops the arm.
            torque, braking = np.zeros_like(torque), self._brakes
        # After a pause of the machine the arm has not moved on without its controller.
        dt = min(now - self._last, 5.0 / self.parameters.rate)
        self._last = now
        with self._guard_plant:
            self.plant.step(torque, dt, braking)
            q, qdot = self.plant.measure()
        if not np.isfinite(q).all():
            raise ArmError("effort", "the arm has flown apart")
        self._message.header.stamp = self.get_clock().now().to_msg()
        self._message.position = to_field(q, "float64")
        self._message.velocity = to_field(qdot, "float64")
        self._message.effort = to_field(torque, "float64")
        states.publish(self._message)

    def _lock(self, request: LockJoint.Request, task: Task) -> LockJoint.Response:
        joint = joint_index(self.parameters.names, request.joint)
        with self._guard_plant:
            self.plant.lock(joint, request.locked)
        return LockJoint.Response()

    def _set_limits(self, request: SetJointLimits.Request, task: Task) -> SetJointLimits.Response:
        where, low, high = limits_of(request, self.parameters.names)
        with self._guard_plant:
            lower, upper = self.plant.lower.copy(), self.plant.upper.copy()
            lower[where], upper[where] = low, high
            self.plant.set_limits(lower, upper)
        return SetJointLimits.Response()

    def _draw(self) -> None:
        """The arm as a line, for RViz and Foxglove."""
        if self._markers.get_subscription_count() == 0:
            return
        with self._guard_plant:
            points = self.plant.arm.points(self.plant.q)
        stamp = self.get_clock().now().to_msg()
        self._markers.publish(arm_marker(points, ACTUAL, self.parameters.base_frame, stamp))


def main() -> None:
    """Run the node until it is told to stop."""
    sys.exit(run(ArmSimulator))


if __name__ == "__main__":
    main()
