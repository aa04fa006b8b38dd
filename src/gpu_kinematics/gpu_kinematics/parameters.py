"""The parameters of the node."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_kinematics.dispatch import BACKENDS
from gpu_kinematics.errors import DeltaInput
from gpu_kinematics.geometry import THETA
from gpu_kinematics.render import MODES
from kin_ros.parameters import ParameterSet, parameter

__all__ = ["GpuKinematicsParameters"]


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
