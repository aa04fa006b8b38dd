"""Parameters of the controller and of the simulated arm."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ft_controller.arm import Arm
from ft_controller.controllers import CONTROLLERS
from ft_controller.follower import Entry
from ft_controller.limits import Limits
from ft_controller.loop import ControlLoop
from ft_controller.motion_watch import MotionWatch
from ft_controller.records import Array
from ft_controller.replica_group import RECONFIGURATIONS, ReplicaGroup
from ft_controller.timing import Timing
from kin_core import checks
from kin_core.errors import InvalidInput
from kin_ros.parameters import ParameterSet, parameter

__all__ = ["ArmParameters", "FtParameters", "SimulatorParameters"]


def _live(
    default: Any, description: str, low: float | None = None, high: float | None = None, **more: Any
) -> Any:
    """A parameter within a range; see :func:`~kin_ros.parameters.parameter`."""
    return parameter(default, description, minimum=low, maximum=high, **more)


_fixed = partial(_live, read_only=True)


@dataclass(frozen=True, kw_only=True)
class ArmParameters(ParameterSet):
    """The links of the arm, and the names of its joints."""

    joints: tuple[str, ...] = _fixed(
        ("joint_1", "joint_2", "joint_3", "joint_4"), "joint names, base first"
    )
    mass: tuple[float, ...] = _fixed((4.0, 3.0, 2.0, 1.0), "link masses [kg]")
    length: tuple[float, ...] = _fixed((0.5, 0.4, 0.3, 0.2), "link lengths [m]")
    com: tuple[float, ...] = _fixed(
        (0.25, 0.2, 0.15, 0.1), "joint to centre of mass of each link [m]"
    )
    inertia: tuple[float, ...] = _fixed(
        (1.0 / 12.0, 0.04, 0.015, 1.0 / 300.0),
        "inertia of each link about its centre of mass [kg m^2]",
    )
    friction: tuple[float, ...] = _fixed(
        (0.0, 0.0, 0.0, 0.0), "viscous friction of each joint [N m s/rad]"
    )
    gravity: float = _fixed(0.0, "gravity along -y of the base [m/s^2]", -100.0, 100.0)
    lower: tuple[float, ...] = _fixed((-3.1, -2.8, -2.8, -2.8), "lower position limits [rad]")
    upper: tuple[float, ...] = _fixed((3.1, 2.8, 2.8, 2.8), "upper position limits [rad]")
    frame: str = _fixed("arm_base", "frame of the markers")

    def check(self) -> None:
        """Refuse arrays that do not fit together."""
        n = len(self.joints)
        checks.count("joints", n, 64)
        if n < 1 or len(set(self.joints)) != n or not all(self.joints):
            raise InvalidInput("joints", "must be different names, at least one")
        for name in ("mass", "length", "com", "inertia", "friction", "lower", "upper"):
            size = len(getattr(self, name))
            if size != n:
                raise InvalidInput(name, f"needs {n} values, one for each joint, got {size}")
        if any(low >= high for low, high in zip(self.lower, self.upper, strict=True)):
            raise InvalidInput("lower", "must be below upper")
        self.arm()

    def arm(self) -> Arm:
        """The arm of these parameters."""
        return Arm.of(
            self.mass, self.length, self.com, self.inertia, list(self.friction), self.gravity
        )


@dataclass(frozen=True, kw_only=True)
class FtParameters(ArmParameters):
    """Parameters of the node."""

    processors: int = _fixed(4, "processors", 3, 16)
    controller: str = _live("echo", "controller at the start", choices=CONTROLLERS)
    reconfiguration: str = _live(
        "balanced", "how work is shared out anew", choices=RECONFIGURATIONS
    )
    control_rate: float = _fixed(500.0, "ticks per second [Hz]", 10.0, 10000.0)
    pace: str = _fixed(
        "clock",
        "what sets the pace: the clock, or the joint states, one tick for each (replay)",
        choices=("clock", "states"),
    )
    state_timeout: float = _fixed(
        0.1, "joint states older than this, by their stamps, are lost [s]", 0.001, 10.0
    )
    stamp_tolerance: float = _live(
        0.05, "joint states with stamps farther in the future are refused [s]", 0.0, 10.0
    )
    require_stamps: bool = _live(
        False, "refuse joint states without a stamp (zero); else they are as old as their arrival"
    )
    kp: tuple[float, ...] = _live(
        (100.0,), "gain of the position error, one or one for each joint [1/s^2]", 0.0
    )
    kd: tuple[float, ...] = _live(
        (20.0,), "gain of the velocity error, one or one for each joint [1/s]", 0.0
    )
    torque_limit: tuple[float, ...] = _fixed(
        (1500.0, 750.0, 300.0, 75.0), "torques are cut to this [N m]"
    )
    implausible: float = _live(
        4.0, "a voted torque beyond so many limits is not believed", 1.0, 1e6
    )
    speed_limit: float = _live(20.0, "measured speed that stops the arm [rad/s]", 1e-3, 1e6)
    limit_margin: float = _live(
        0.1, "position so far beyond its limit stops the arm [rad]", 0.0, 10.0
    )
    hold_time: float = _live(
        0.1, "without a quorum the last torque is held so long, at once or in pieces [s]", 0.0, 10.0
    )
    hold_recovery: float = _live(
        0.1, "share of the time under control that hold_time gets back", 0.0, 1.0
    )
    pause_time: float = _live(
        0.1,
        "a longer time without control is a pause: the motion goes on from where the arm is [s]",
        0.001,
        10.0,
    )
    following_error: tuple[float, ...] = _fixed(
        (0.3,),
        "a joint farther from its motion stops the arm, one or one for each joint; 0: off [rad]",
        0.0,
    )
    frozen_motion: float = _fixed(
        0.05,
        "a position that does not change while it should move so far stops the arm; 0: off [rad]",
        0.0,
        10.0,
    )
    standstill: float = _fixed(
        5.0,
        "torques for no more than this acceleration may leave a joint where it is [rad/s^2]",
        0.0,
        1e6,
    )
    recover_from_starvation: bool = _fixed(
        False,
        "after a stop for want of joint states, answers or time, go on by itself when they are "
        "back; off where an arm can hurt",
    )
    claim_time: float = _fixed(
        1.0,
        "look so long for other controllers of the arm before driving it; 0: do not look [s]",
        0.0,
        60.0,
    )
    ramp_time: float = _live(0.4, "then it goes down in this time [s]", 0.001, 10.0)
    stop_damping: float = _live(
        40.0, "highest rate of the damping of a stopped arm [1/s]", 0.0, 1000.0
    )
    tolerance: float = _fixed(0.0, "relative difference that still agrees; 0: identical", 0.0, 1e-3)
    clean_ticks: int = _fixed(50, "clean ticks before readmission", 1, 1000000)
    vote_patience: float = _fixed(
        0.0, "wait at least so long for a quorum, even if ticks are skipped for it [s]", 0.0, 1.0
    )
    stall_time: float = _fixed(0.03, "late for so long: out of the working set [s]", 0.0, 10.0)
    restart_stalled: float = _fixed(
        5.0,
        "processors that are silent or wrong, and a process supervisor that is silent, for so long "
        "are replaced; 0: off [s]",
        0.0,
        1e6,
    )
    allow_single: bool = _fixed(True, "go on with one processor that nobody checks")
    realtime_priority: int = _fixed(
        0, "SCHED_FIFO priority of the processors, the voter runs two above; 0: ordinary", 0, 90
    )
    plan_speed: float = _live(1.5, "of planned motions [rad/s]", 1e-3, 100.0)
    plan_acceleration: float = _live(4.0, "of planned motions [rad/s^2]", 1e-3, 1000.0)
    status_rate: float = _fixed(20.0, "status messages per second [Hz]", 0.1, 1000.0)
    command_format: str = _fixed(
        "joint_state",
        "joint_torques as JointState (effort), or Float64MultiArray for a forward controller",
        choices=("joint_state", "array"),
    )
    schedule: str = _fixed("", "file with a fault schedule that runs from the start")

    def check(self) -> None:
        """Refuse arrays that do not fit together."""
        super().check()
        n = len(self.joints)
        for name in ("kp", "kd", "following_error"):
            if len(getattr(self, name)) not in (1, n):
                raise InvalidInput(name, f"needs one value or {n}")
        if len(self.torque_limit) != n or min(self.torque_limit) <= 0.0:
            raise InvalidInput("torque_limit", f"needs {n} positive values")

    def limits(self, lower: Array, upper: Array) -> Limits:
        """What the safety supervisor lets pass."""
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

    def replica_group(self) -> ReplicaGroup:
        """The processors, voter and safety supervisor of these parameters, not started."""
        return ReplicaGroup(
            self.arm(),
            processors=self.processors,
            controller=self.controller,
            reconfiguration=self.reconfiguration,
            limits=self.limits(np.array(self.lower), np.array(self.upper)),
            kp=self.kp,
            kd=self.kd,
            tolerance=self.tolerance,
            clean_ticks=self.clean_ticks,
            allow_single=self.allow_single,
            restart_stalled=self.restart_stalled,
            realtime_priority=self.realtime_priority,
        )

    def timing(self) -> Timing:
        """The deadlines of a tick."""
        if self.pace == "states":
            return Timing.patient()
        return Timing.realtime(self.control_rate, self.stall_time, self.vote_patience)

    def motion_watch(self) -> MotionWatch:
        """Finds joints that do not do what they are told."""
        return MotionWatch(self.arm(), self.following_error, self.frozen_motion, self.standstill)

    def take_over(self, loop: ControlLoop, old: FtParameters) -> None:
        """Have a control loop use what has changed; between two ticks."""
        group = loop.group
        group.set_gains(self.kp, self.kd)
        limits = group.safety.limits
        group.safety.limits = self.limits(limits.lower, limits.upper)
        loop.enter_by(self.entry())
        if (old.controller, old.reconfiguration) != (self.controller, self.reconfiguration):
            group.set_controller(self.controller, self.reconfiguration)

    def entry(self) -> Entry:
        """How motions are entered from where the arm is."""
        return Entry(speed=self.plan_speed, acceleration=self.plan_acceleration)


@dataclass(frozen=True, kw_only=True)
class SimulatorParameters(ArmParameters):
    """Parameters of the node."""

    rate: float = _fixed(500.0, "joint states per second [Hz]", 1.0, 10000.0)
    start: tuple[float, ...] = _fixed((0.3, 0.4, 0.5, 0.6), "positions at the start [rad]")
    realtime_priority: int = _fixed(
        0,
        "as that of the controller; the simulation runs with SCHED_FIFO one above; 0: ordinary",
        0,
        90,
    )
    model_error: float = _fixed(
        0.05, "relative error of the parameters that the controller believes in", 0.0, 0.5
    )
    position_noise: float = _fixed(0.0, "standard deviation of measured positions [rad]", 0.0, 1.0)
    velocity_noise: float = _fixed(
        0.0, "standard deviation of measured velocities [rad/s]", 0.0, 10.0
    )
    seed: int = _fixed(1, "of noise and model error", 0)
    command_timeout: float = _live(
        0.2,
        "without a command for so long the drives take over: no torque, brakes on [s]",
        0.001,
        60.0,
    )
    brake_damping: float = _live(
        40.0, "highest rate at which the brakes work then; 0: the arm coasts [1/s]", 0.0, 1000.0
    )
    claim_time: float = _fixed(
        1.0,
        "look so long for another simulated arm on the topic before moving; 0: do not look [s]",
        0.0,
        60.0,
    )

    def check(self) -> None:
        """Refuse a start that does not fit."""
        super().check()
        if len(self.start) != len(self.joints):
            raise InvalidInput("start", f"needs {len(self.joints)} values")
        for low, q, high in zip(self.lower, self.start, self.upper, strict=True):
            if not low <= q <= high:
                raise InvalidInput("start", f"{q:g} is out of the limits {low:g} to {high:g}")
