"""The parameters of the node."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hier_ik.decompose import MEMBERSHIPS
from hier_ik.solver import MODES, SolverOptions
from kin_core.errors import InvalidInput
from kin_ros.parameters import ParameterSet, parameter

__all__ = ["HierParameters"]


@dataclass(frozen=True, kw_only=True)
class HierParameters(ParameterSet):
    """Parameters of the node."""

    preset: str = parameter(
        "tower",
        "linkage at start",
        choices=("tower", "flat_tower", "file", "robot_description", "none"),
    )
    blocks: int = parameter(15, "blocks of the tower", minimum=1, maximum=1000)
    linkage_file: str = parameter(
        "", "for preset file: .yaml, .urdf or .xml (MJCF)", read_only=True
    )
    closures_file: str = parameter(
        "", "closure sidecar for a URDF or robot_description", read_only=True
    )
    linkage_folder: str = parameter(
        "", "folder from which the load service may read; empty: it reads no files", read_only=True
    )
    mode: str = parameter("hierarchical", "how to solve", choices=MODES)
    membership: str = parameter(
        "paper", "where crossing tree joints of driving sublinkages belong", choices=MEMBERSHIPS
    )
    rate: float = parameter(
        50.0, "ticks of the running state [1/s]", minimum=1.0, maximum=1000.0, read_only=True
    )
    iterations: int = parameter(4, "most solver iterations per tick", minimum=1, maximum=1000)
    tolerance: float = parameter(
        1e-6, "residual at which a task counts as met [m or rad]", minimum=1e-14, maximum=1.0
    )
    max_iterations: int = parameter(
        300, "iterations of one request that does not name them", minimum=1, maximum=100_000
    )
    rest_gain: float = parameter(
        0.2, "share of the way to the rest posture per iteration", minimum=0.0, maximum=1.0
    )
    use_velocity_limits: bool = parameter(True, "whether dragging keeps joint velocity limits")
    demo: str = parameter("none", "built-in motion", choices=("none", "circle"))
    demo_radius: float = parameter(0.5, "of the circle of the demo [m]", minimum=0.0, maximum=100.0)
    demo_period: float = parameter(6.0, "of the demo [s]", minimum=0.1, maximum=3600.0)
    markers_rate: float = parameter(
        10.0, "pictures per second; 0: off", minimum=0.0, maximum=60.0, read_only=True
    )
    frame_id: str = parameter("world", "frame of the root link in headers")
    max_links: int = parameter(50_000, "largest linkage that is taken", minimum=1, maximum=200_000)

    def check(self) -> None:
        """Refuse what only fits together in part."""
        if self.preset == "file" and not self.linkage_file:
            raise InvalidInput("linkage_file", "must be set for preset file")

    @property
    def sidecar(self) -> Path | None:
        """The file of the closures of a URDF."""
        return Path(self.closures_file) if self.closures_file else None

    @property
    def options(self) -> SolverOptions:
        """How the solver is to solve."""
        return SolverOptions(
            tolerance=self.tolerance, rest_gain=self.rest_gain, membership=self.membership,
            max_iterations=self.max_iterations,
        )  # fmt: skip
