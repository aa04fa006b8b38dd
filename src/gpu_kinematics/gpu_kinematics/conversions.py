"""Between messages and the library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from geometry_msgs.msg import PointStamped
from kin_interfaces.msg import DeltaBatch, DeltaGeometry
from kin_interfaces.srv import MakeTrajectory, SolveDelta, WorkspaceMap
from numpy.typing import DTypeLike, NDArray
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from gpu_kinematics.call import HostArray
from gpu_kinematics.errors import DeltaInput, DeltaLimit
from gpu_kinematics.geometry import THETA, Geometry, Limits
from gpu_kinematics.results import Jacobian, Measures
from gpu_kinematics.status import summary
from gpu_kinematics.trajectory import KINDS, Fleet, Move, Trajectory
from gpu_kinematics.workspace import Workspace
from kin_core.errors import StatusCode
from kin_ros.arrays import from_field, to_field

__all__ = [
    "Batch",
    "batch_message",
    "fill_jacobian",
    "fill_map",
    "fill_solution",
    "fill_trajectory",
    "joint_command",
    "point_message",
    "read_angle_limits",
    "read_angles",
    "read_batch",
    "read_ends",
    "read_geometry",
    "read_move",
]

_LAYOUT = {DeltaBatch.SOA: "soa", DeltaBatch.AOS: "aos"}
_JOINTS = ("joint_1", "joint_2", "joint_3")


@dataclass(frozen=True)
class Batch:
    """The robots of a message.

    Attributes:
        count: Number of robots.
        layout: "soa" or "aos".
        dtype: Precision in which they are computed.
        message: Where further 3-vectors are read from.
    """

    count: int
    layout: str
    dtype: DTypeLike
    message: Any

    def vectors(self, field: str) -> HostArray:
        """A field as 3-vectors in its layout, shape (3, N) or (N, 3); a view where it can be."""
        flat = from_field(getattr(self.message, field), self.dtype)
        if flat.size != 3 * self.count:
            raise DeltaInput(
                field, f"must have 3 * count = {3 * self.count} values, got {flat.size}"
            )
        return flat.reshape((3, self.count) if self.layout == "soa" else (self.count, 3))

    def rates(self) -> list[HostArray | None]:
        """First and second derivatives of a request; None for a field that is empty."""
        return [
            self.vectors(field) if len(getattr(self.message, field)) else None
            for field in ("rate", "rate2")
        ]

    @property
    def elbows(self) -> int:
        """The elbow choice in the branch of a request."""
        return int(self.message.branch) & 7

    @property
    def platform(self) -> str:
        """The assembly in the branch of a request."""
        return "up" if self.message.branch & 8 else "down"


def read_batch(message: Any, max_batch: int, *, single: bool = False) -> Batch:
    """Number and layout of the robots of a message with the fields ``count`` and ``layout``."""
    count = int(message.count)
    if count > max_batch:
        raise DeltaLimit(f"count: {count} robots are more than max_batch = {max_batch}")
    if message.layout not in _LAYOUT:
        raise DeltaInput("layout", f"must be SOA (0) or AOS (1), got {message.layout}")
    if getattr(message, "branch", 0) > 15:
        raise DeltaInput("branch", f"must be between 0 and 15, got {message.branch}")
    return Batch(count, _LAYOUT[message.layout], np.float32 if single else np.float64, message)


def read_geometry(message: DeltaGeometry, count: int) -> Geometry | None:
    """Dimensions of so many robots; None if the message has none."""
    sizes = [from_field(getattr(message, n), np.float64) for n in ("radius", "upper", "lower")]
    theta = from_field(message.theta, np.float64)
    if not any(a.size for a in sizes):
        if theta.size:
            raise DeltaInput("geometry.theta", "needs radius, upper and lower with it")
        return None
    for name, array in zip(("radius", "upper", "lower"), sizes, strict=True):
        if array.size not in (1, count):
            raise DeltaInput(f"geometry.{name}", f"must have 1 or {count} values, got {array.size}")
    if theta.size not in (0, 3, 3 * count):
        raise DeltaInput("geometry.theta", f"must have 0, 3 or {3 * count} values")
    radius, upper, lower = (a[0] if a.size == 1 else a for a in sizes)
    if theta.size == 3 * count and count > 1:
        theta = theta.reshape(count, 3).T
    return Geometry(radius, upper, lower, theta if theta.size else THETA)


def read_angle_limits(request: WorkspaceMap.Request, own: Limits) -> Limits:
    """Joint limits of a request, or the node's own."""
    bounds = from_field(request.angle_limits, np.float64)
    if bounds.size not in (0, 2):
        raise DeltaInput("angle_limits", f"must have 0 or 2 values, got {bounds.size}")
    return Limits(*bounds) if bounds.size else own


def read_ends(batch: Batch) -> tuple[HostArray, HostArray]:
    """Start and goal of a trajectory request."""
    start, goal = batch.vectors("start"), batch.vectors("goal")
    for name, array in (("start", start), ("goal", goal)):
        if not np.isfinite(array).all():
            raise DeltaInput(name, "must be finite")
    return start, goal


def read_move(request: MakeTrajectory.Request, own: dict[str, float]) -> Move:
    """The move of a trajectory request, with the node's own limits where it has none."""
    kinds = list(KINDS)
    if request.kind >= len(kinds):
        raise DeltaInput("kind", f"must be between 0 and {len(kinds) - 1}, got {request.kind}")
    return Move(
        kind=kinds[request.kind],
        height=request.height,
        overlap=request.overlap,
        dwell=request.dwell,
        **{name: getattr(request, name) or limit for name, limit in own.items()},
    )


def read_angles(message: JointState) -> HostArray:
    """The three joint angles of a robot [rad]."""
    angles = from_field(message.position, np.float64)
    if angles.size != 3:
        raise DeltaInput("position", f"must have three joint angles, got {angles.size}")
    return np.ascontiguousarray(angles)


def _fill_masks(response: Any, mask: NDArray[np.uint16], code: StatusCode) -> None:
    """Masks of an answer; what failed in words, and a code if that is to be the answer's."""
    response.mask = to_field(mask, "uint16")
    response.failed = int(np.count_nonzero(mask))
    if response.failed:
        response.status.message = summary(mask)
        response.status.code = int(code)


def fill_solution(
    response: SolveDelta.Response, values: HostArray, mask: NDArray[np.uint16], backend: str
) -> None:
    """Values and masks of an answer: it is a failure if every robot failed."""
    response.count = mask.size
    response.data = to_field(values)
    response.backend = backend
    none = bool(mask.size and mask.all())
    _fill_masks(response, mask, StatusCode.UNREACHABLE if none else StatusCode.SUCCESS)


def fill_jacobian(response: SolveDelta.Response, found: Jacobian, measures: Measures) -> None:
    """Jacobians and singularity measures of an answer."""
    response.jacobian = to_field(found.jacobian)
    response.condition = to_field(measures.condition)
    response.det_parallel = to_field(measures.parallel)
    response.det_serial = to_field(measures.serial)


def fill_trajectory(
    response: MakeTrajectory.Response, plan: Fleet, times: HostArray, motion: Trajectory
) -> None:
    """A sampled trajectory: it is a failure if a robot leaves its workspace or limits."""
    response.count, response.samples = plan.count, len(times)
    response.time = to_field(times)
    response.duration = to_field(plan.duration)
    response.time_scale = to_field(plan.time_scale)
    for name in ("position", "angle", "rate", "rate2"):
        setattr(response, name, to_field(getattr(motion, name)))
    response.peak_rate = to_field(np.abs(motion.rate).max(axis=(0, 1)))
    response.peak_rate2 = to_field(np.abs(motion.rate2).max(axis=(0, 1)))
    _fill_masks(response, np.bitwise_or.reduce(motion.status, axis=0), StatusCode.UNREACHABLE)


def fill_map(response: WorkspaceMap.Response, found: Workspace) -> None:
    """A map of the workspace."""
    response.cells = [found.x.size, found.y.size, found.z.size]
    response.mask = to_field(found.status, "uint16")
    response.dexterity = to_field(found.dexterity, "float32")
    response.usable = int(found.usable.sum())
    response.volume, response.cube_side = found.volume, found.cube_side
    response.cube_centre = found.cube_centre


def batch_message(
    header: Header, quantity: int, values: HostArray, mask: NDArray[np.uint16], layout: str = "soa"
) -> DeltaBatch:
    """Angles or positions of a batch with their masks."""
    numbers = {name: number for number, name in _LAYOUT.items()}
    batch = DeltaBatch(header=header, quantity=quantity, layout=numbers[layout], count=mask.size)
    batch.data, batch.status = to_field(values), to_field(mask, "uint16")
    return batch


def point_message(header: Header, frame_id: str, position: HostArray, mask: int) -> PointStamped:
    """The position of one robot [m]; refused if it has none."""
    if not np.isfinite(position).all():
        raise DeltaInput("position", summary(np.atleast_1d(mask)))
    answer = PointStamped(header=header)
    answer.header.frame_id = frame_id
    answer.point.x, answer.point.y, answer.point.z = map(float, position)
    return answer


def joint_command(header: Header, angles: HostArray, mask: int) -> JointState:
    """The joint angles of one robot [rad]; refused if the target is not reachable."""
    if mask:
        raise DeltaInput("target", summary(np.atleast_1d(mask)))
    return JointState(header=header, name=list(_JOINTS), position=to_field(angles))
