"""Parameters of the controller and of the simulated arm."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from ft_controller.arm import Arm
from ft_controller.controllers import CONTROLLERS
from ft_controller.follower import Entry
from ft_controller.integral import Integral
from ft_controller.limits import Limits
from ft_controller.loop import ControlLoop
from ft_controller.motion_watch import MotionWatch
from ft_controller.records import Array
from ft_controller.replica_group import RECONFIGURATIONS, ReplicaGroup
from ft_controller.spatial_arm import SpatialArm
from ft_controller.timing import Timing
from ft_controller.trajectory_goals import Tolerances
from kin_core import checks
from kin_core.errors import InvalidInput, KinError
from kin_ros.parameters import ParameterSet, parameter

__all__ = ["ArmParameters", "FtParameters", "SimulatorParameters"]


def _live(
    default: Any, description: str, low: float | None = None, high: float | None = None, **more: Any
) -> Any:
    """A parameter within a range; see :func:`~kin_ros.parameters.parameter`."""
    return parameter(default, description, minimum=low, maximum=high, **more)


_fixed = partial(_live, read_only=True)

#: Measured speeds may be so much above those of a URDF, which motions keep to, before a stop.
_OVERSPEED = 0.1
#: Torque limits of a joint whose effort the URDF does not limit [N m or N].
_STRONG = 1e4


@lru_cache(maxsize=4)
def _spatial(
    file: Path, base: str, tip: str, held: tuple[str, ...], gravity: tuple[float, ...]
) -> SpatialArm:
    """The arm of a URDF file; it is asked for often, and read once."""
    try:
        return SpatialArm.from_urdf(file, base=base, tip=tip, held=held, gravity=gravity)
    except KinError as error:
        raise InvalidInput("robot", str(error)) from None


@dataclass(frozen=True, kw_only=True)
class ArmParameters(ParameterSet):
    """The links of the arm, and the names of its joints."""

    robot: str = _fixed(
        "planar", "planar: the arm of the lists below; else the URDF of a spatial arm, file or name"
    )
    robots_folder: str = _fixed("", "folder of the URDF files that are given by their names")
    base_link: str = _fixed("", "first link of the URDF's arm; empty: the root")
    tip_link: str = _fixed("", "last link of the URDF's arm; empty: the only end that there is")
    held_joints: tuple[str, ...] = _fixed((), "joints of the URDF that count as fixed at zero")
    gravity_vector: tuple[float, ...] = _fixed(
        (0.0, 0.0, -9.81), "gravity of a spatial arm in the base frame [m/s^2]", -100.0, 100.0
    )
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
    payload_mass: float = _live(0.0, "mass at the tip [kg]", 0.0, 1000.0)
    payload_com: tuple[float, ...] = _live(
        (0.0, 0.0, 0.0), "its centre in the frame of a spatial arm's tip [m]", -10.0, 10.0
    )
    frame: str = _fixed(
        "arm_base", "frame of the markers; of a spatial arm its first link, with the same prefix"
    )

    def check(self) -> None:
        """Refuse arrays that do not fit together."""
        if len(self.payload_com) != 3:
            raise InvalidInput("payload_com", f"needs 3 values, got {len(self.payload_com)}")
        if self.robot != "planar":
            self.arm()
            return
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

    def arm(self) -> Arm | SpatialArm:
        """The arm of these parameters."""
        if self.robot != "planar":
            return self.spatial
        return Arm.of(
            self.mass, self.length, self.com, self.inertia, list(self.friction), self.gravity
        )

    @property
    def file(self) -> Path:
        """The URDF of a spatial arm."""
        named = self.robots_folder and not self.robot.endswith(".urdf")
        return Path(f"{self.robots_folder}/{self.robot}.urdf" if named else self.robot)

    @property
    def spatial(self) -> SpatialArm:
        """The spatial arm of the URDF."""
        return _spatial(
            self.file, self.base_link, self.tip_link, self.held_joints, self.gravity_vector
        )

    def loaded_arm(self) -> Arm | SpatialArm:
        """The arm with its payload."""
        arm = self.arm()
        if isinstance(arm, SpatialArm):
            return arm.loaded(self.payload_mass, self.payload_com)
        return arm.loaded(self.payload_mass)

    def same_payload(self, other: ArmParameters) -> bool:
        """Whether another set of parameters has the same payload."""
        return (self.payload_mass, self.payload_com) == (other.payload_mass, other.payload_com)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the joints, base first."""
        if self.robot == "planar":  # asked for with every message: no arm is made for it
            return self.joints
        return self.spatial.joints

    @property
    def base_frame(self) -> str:
        """Frame in which the arm is drawn."""
        if self.robot == "planar":
            return self.frame
        prefix, slash, _ = self.frame.rpartition("/")
        return prefix + slash + self.spatial.base

    @property
    def positions(self) -> tuple[Array, Array]:
        """Lower and upper position limits, each of shape (n,) [rad or m]."""
        if self.robot == "planar":
            return np.array(self.lower), np.array(self.upper)
        return self.spatial.lower, self.spatial.upper


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
    ki: tuple[float, ...] = _live(
        (0.0,), "gain of the integral of the position error, as kp; 0: off [1/s^3]", 0.0
    )
    integral_limit: float = _live(
        5.0, "largest acceleration of the integral action [rad/s^2]", 0.0, 1e6
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
    allow_partial_joints_goal: bool = _live(
        True, "take trajectories that name some of the joints; the others come to rest and stay"
    )
    smooth_positions: bool = _live(
        False,
        "trajectories of positions alone: a spline of continuous acceleration, not straight lines",
    )
    path_tolerance: tuple[float, ...] = _live(
        (0.0,),
        "a joint farther from its trajectory ends the goal, one or one for each joint; 0: off; a "
        "goal may say otherwise [rad]",
        0.0,
    )
    goal_tolerance: tuple[float, ...] = _live(
        (0.0,),
        "a goal is reached when no joint is farther from it, one or one for each joint; 0: off "
        "[rad]",
        0.0,
    )
    stopped_velocity: float = _live(
        0.01, "a goal is reached when no joint is faster; 0: off [rad/s]", 0.0, 100.0
    )
    goal_time: float = _live(
        0.0, "a goal that is so late ends; 0: it may take any time [s]", 0.0, 3600.0
    )
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
        n = self.arm().n
        several = ("kp", "kd", "ki", "following_error", "path_tolerance", "goal_tolerance")
        for name in several:
            if len(getattr(self, name)) not in (1, n):
                raise InvalidInput(name, f"needs one value or {n}")
        if self.robot == "planar" and (len(self.torque_limit) != n or min(self.torque_limit) <= 0):
            raise InvalidInput("torque_limit", f"needs {n} positive values")

    def limits(self, lower: Array, upper: Array) -> Limits:
        """What the safety supervisor lets pass."""
        arm = self.arm()
        torque, speed, more = np.array(self.torque_limit), np.full(arm.n, self.speed_limit), 0.0
        if isinstance(arm, SpatialArm):
            torque, more = np.minimum(arm.effort, _STRONG), _OVERSPEED
            speed = np.minimum(speed, arm.speed)
        usual = Limits.of(arm, torque, stop_damping=self.stop_damping)
        return dataclasses.replace(
            usual,
            lower=lower,
            upper=upper,
            speed=speed,
            overspeed=more,
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
            self.loaded_arm(),
            processors=self.processors,
            controller=self.controller,
            reconfiguration=self.reconfiguration,
            limits=self.limits(*self.positions),
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
        arm, standstill = self.arm(), np.array(self.standstill)
        if isinstance(arm, SpatialArm):
            # A tenth of its torque accelerates a light wrist more than any model is good for.
            strength = np.minimum(arm.effort, _STRONG)
            standstill = np.maximum(standstill, 0.1 * strength / arm.own_inertia)
        return MotionWatch(arm, self.following_error, self.frozen_motion, standstill)

    def integral(self) -> Integral:
        """Integral action of the control law."""
        return Integral(self.arm(), self.ki, self.integral_limit)

    def tolerances(self) -> Tolerances:
        """What ends a goal that says nothing else."""
        arm = self.arm()
        path, goal = (arm.each(x, getattr(self, x)) for x in ("path_tolerance", "goal_tolerance"))
        return Tolerances(
            np.array([path, np.zeros(arm.n)]),
            np.array([goal, np.full(arm.n, self.stopped_velocity)]),
            self.goal_time,
        )

    def take_over(self, loop: ControlLoop, old: FtParameters) -> None:
        """Have a control loop use what has changed; between two ticks."""
        group = loop.group
        group.set_gains(self.kp, self.kd)
        loop.integral.ki, loop.integral.limit = group.arm.each("ki", self.ki), self.integral_limit
        limits = group.safety.limits
        group.safety.limits = self.limits(limits.lower, limits.upper)
        loop.enter_by(self.entry())
        if (old.controller, old.reconfiguration) != (self.controller, self.reconfiguration):
            group.set_controller(self.controller, self.reconfiguration)
        if not self.same_payload(old):
            group.set_arm(self.loaded_arm())

    def entry(self) -> Entry:
        """How motions are entered from where the arm is."""
        arm = self.arm()
        slowest = float(arm.speed.min()) if isinstance(arm, SpatialArm) else np.inf
        return Entry(min(self.plan_speed, 0.5 * slowest), self.plan_acceleration)


@dataclass(frozen=True, kw_only=True)
class SimulatorParameters(ArmParameters):
    """Parameters of the node."""

    rate: float = _fixed(500.0, "joint states per second [Hz]", 1.0, 10000.0)
    engine: str = _fixed(
        "builtin",
        "what moves a spatial arm: the equations of this package, or MuJoCo (extra mujoco)",
        choices=("builtin", "mujoco"),
    )
    start: tuple[float, ...] = _fixed(
        (), "positions at the start; empty: 0.3, 0.4, 0.5, 0.6, of spatial arms zero [rad]"
    )
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
        if self.engine == "mujoco" and self.robot == "planar":
            raise InvalidInput("engine", "mujoco needs the URDF of a robot, not planar")
        n, (lower, upper) = self.arm().n, self.positions
        if len(self.begin) != n:
            raise InvalidInput("start", f"needs {n} values")
        for low, q, high in zip(lower, self.begin, upper, strict=True):
            if not low <= q <= high:
                raise InvalidInput("start", f"{q:g} is out of the limits {low:g} to {high:g}")

    def true_arm(self) -> Arm | SpatialArm:
        """The arm with its payload as it is, not as the controller believes it to be."""
        return self.loaded_arm().perturbed(self.seed, self.model_error)

    @property
    def begin(self) -> tuple[float, ...]:
        """Positions at the start [rad or m]."""
        usual = (0.3, 0.4, 0.5, 0.6) if self.robot == "planar" else (0.0,) * self.arm().n
        return self.start or usual
