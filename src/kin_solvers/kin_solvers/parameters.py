"""Parameters of the node."""

from __future__ import annotations

from dataclasses import dataclass

from kin_core.errors import InvalidInput
from kin_ros.parameters import ParameterSet, parameter

__all__ = ["CuikParameters"]


@dataclass(frozen=True, kw_only=True)
class CuikParameters(ParameterSet):
    """Parameters of the node."""

    sigma: float = parameter(
        0.1, "box side at which a box counts as solution [rad, m]", minimum=1e-9, maximum=10.0
    )
    rho: float = parameter(
        0.8, "volume ratio above which a box is split", minimum=0.01, maximum=0.99
    )
    method: str = parameter("fast", "algorithm", choices=("fast", "paper"))
    engine: str = parameter("local", "where to solve", choices=("local", "dask"))
    scheduler: str = parameter("", "address of the dask scheduler, such as tcp://10.0.0.5:8786")
    threads: int = parameter(2, "threads of one solve", minimum=1, maximum=256)
    max_boxes: int = parameter(
        2_000_000, "budget of boxes of one solve", minimum=1, maximum=10_000_000_000
    )
    max_bytes: int = parameter(
        1 << 29, "budget of memory for boxes of one solve [bytes]", minimum=4096, maximum=1 << 40
    )
    max_answer_boxes: int = parameter(
        200_000, "largest number of boxes in an answer", minimum=1, maximum=10_000_000
    )
    robot_description: str = parameter(
        "robot_description", "topic of the robot description", read_only=True
    )
    marker_variables: tuple[str, ...] = parameter(
        (), "three variables that the markers show as x, y, z; empty: the first three"
    )
    marker_frame: str = parameter("map", "frame of the markers")
    playback: bool = parameter(True, "publish joint_states along the last self-motion curve")
    playback_rate: float = parameter(
        10.0, "joint states per second [Hz]", minimum=0.1, maximum=200.0, read_only=True
    )

    def check(self) -> None:
        """Cross-field rules."""
        if len(self.marker_variables) not in (0, 3):
            raise InvalidInput("marker_variables", "must name three variables, or none")
        if self.engine == "dask" and not self.scheduler:
            raise InvalidInput("scheduler", "must be given for the engine dask")
