"""The parameters of the node."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hier_ik.decompose import MEMBERSHIPS
from hier_ik.solver import MODES, SolverOptions
from hier_ik.sources import ENDINGS, TOWERS
from kin_core import checks
from kin_core.errors import InvalidInput
from kin_ros.parameters import ParameterSet, parameter

__all__ = ["CloserParameters", "HierParameters"]


@dataclass(frozen=True, kw_only=True)
class HierParameters(ParameterSet):
    """Parameters of the node."""

    preset: str = parameter(
        "tower",
        "linkage at the start: tower, flat_tower, a robot of robots_folder, the path of a file"
        " (.yaml, .urdf or .xml), file, robot_description or none",
        read_only=True,
    )
    robots_folder: str = parameter(
        "", "folder of robots that may be asked for by name (NAME.urdf)", read_only=True
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
    frame_id: str = parameter(
        "world", "frame of the root link in headers; with a preset that is a path, that link itself"
    )
    frame_prefix: str = parameter(
        "", "before the name of the root link where that is the frame", read_only=True
    )
    max_links: int = parameter(50_000, "largest linkage that is taken", minimum=1, maximum=200_000)

    def check(self) -> None:
        """Refuse what only fits together in part."""
        if self.preset == "file" and not self.linkage_file:
            raise InvalidInput("linkage_file", "must be set for preset file")
        known = (*TOWERS, "file", "robot_description", "none")
        if not self.robots_folder and not self.names_file:
            checks.one_of("preset", self.preset, known)

    @property
    def names_file(self) -> bool:
        """Whether the preset is the path of a file."""
        return Path(self.preset).suffix in ENDINGS

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


@dataclass(frozen=True, kw_only=True)
class CloserParameters(ParameterSet):
    """Parameters of the node loop_closer."""

    linkage_file: str = parameter(
        "", "the robot: .urdf, .yaml or .xml (MJCF); empty: from robot_description", read_only=True
    )
    closures_file: str = parameter(
        "", "closure sidecar for a URDF or robot_description", read_only=True
    )
    actuated: tuple[str, ...] = parameter(
        (), "joints that are measured; empty: those that the files say are actuated", read_only=True
    )
    effort_joints: tuple[str, ...] = parameter(
        (),
        "joints that show the efforts of the actuators in joint_states, such as those of an ankle;"
        " empty: the actuators themselves",
        read_only=True,
    )
    smallest_margin: float = parameter(
        1e-4, "steps nearer to a singularity than this are refused", minimum=1e-9, maximum=10.0
    )
    margin_warning: float = parameter(
        1e-2, "margin to a singularity below which the diagnostics warn", minimum=0.0, maximum=10.0
    )
    status_rate: float = parameter(
        10.0, "status messages per second", minimum=0.1, maximum=1000.0, read_only=True
    )
    max_points: int = parameter(
        100_000, "most points of a trajectory", minimum=1, maximum=10_000_000
    )
    max_links: int = parameter(10_000, "largest robot that is taken", minimum=1, maximum=200_000)

    @property
    def sidecar(self) -> Path | None:
        """The file of the closures of a URDF."""
        return Path(self.closures_file) if self.closures_file else None
