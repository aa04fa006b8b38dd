"""The parameters of the node."""

from __future__ import annotations

from dataclasses import dataclass

from continuum_ik.robot import RODS
from kin_core.errors import InvalidInput
from kin_ros.parameters import ParameterSet, parameter

__all__ = ["ContinuumParameters"]


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
        tuple(f"leg_{i}" for i in range(RODS)), "names of the six legs", read_only=True
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
        if len(self.joint_names) != RODS or len(set(self.joint_names)) != RODS:
            raise InvalidInput("joint_names", "must be six different names")
