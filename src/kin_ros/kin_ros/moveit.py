"""Inverse and forward kinematics and Cartesian paths the way MoveIt asks for them.

A node gives a library callable and a description of its robot; requests are read into plain numbers
here, checked, brought into the frame of the robot's base by tf, and answers carry MoveIt's codes.

    serve_kinematics(self, self._robot, Frames(self), ik=self._ik, fk=self._fk)

There are no collision checks and, without an SRDF, no groups but those that the node names: a
request for collisions to be avoided is refused. MoveIt's srv_kinematics_plugin always asks for it,
and then checks collisions itself: ``~/plugin_ik`` is the door for it, which lets that pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from moveit_msgs.msg import Constraints, MoveItErrorCodes, RobotState
from moveit_msgs.srv import GetCartesianPath, GetPositionFK, GetPositionIK
from numpy.typing import NDArray
from rclpy.duration import Duration
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectoryPoint

from kin_core import checks
from kin_core.errors import (
    Cancelled,
    InvalidInput,
    KinError,
    NotConverged,
    SolveTimeout,
    Unreachable,
)
from kin_core.rotations import inverse_transform
from kin_core.task import Task
from kin_core.texts import shortened
from kin_ros.arrays import from_field, to_field
from kin_ros.frames import FrameError, Frames, to_nanoseconds
from kin_ros.poses import read_pose, to_pose
from kin_ros.requests import Manner

if TYPE_CHECKING:
    from kin_ros.node import KinNode

__all__ = [
    "CartesianPath",
    "CartesianRequest",
    "Code",
    "FkRequest",
    "IkRequest",
    "Refused",
    "Robot",
    "narrowed",
    "read_cartesian_request",
    "read_fk_request",
    "read_ik_request",
    "serve_cartesian_path",
    "serve_fk",
    "serve_ik",
    "serve_kinematics",
]

Array = NDArray[np.float64]

#: Most poses, links or waypoints of one request.
_MOST_POSES = 10_000
#: How far a solution may lie outside a joint constraint by rounding [rad or m].
_ROUNDING = 1e-9


class Code(IntEnum):
    """MoveIt's error codes, as far as they are answered with."""

    SUCCESS = 1
    FAILURE = 99999
    TIMED_OUT = -6
    PREEMPTED = -7
    INVALID_GROUP_NAME = -15
    INVALID_GOAL_CONSTRAINTS = -16
    INVALID_ROBOT_STATE = -17
    INVALID_LINK_NAME = -18
    FRAME_TRANSFORM_FAILURE = -21
    COLLISION_CHECKING_UNAVAILABLE = -22
    CRASH = -29
    NO_IK_SOLUTION = -31


class Refused(InvalidInput):
    """A request that is answered with a code of MoveIt's."""

    def __init__(self, moveit: Code, field: str, problem: str) -> None:
        super().__init__(field, problem)
        self.moveit = moveit


@dataclass(frozen=True)
class Robot:
    """What the doors must know of a robot.

    Attributes:
        base: Frame of the base in tf, in which the library computes.
        joints: Names of the joints that it solves for.
        links: Names of the links that may be asked for.
        tip: The link that is meant when a request names neither a link nor a group.
        groups: The tip link of each group; the name of a link is always a group too.
        prefix: Of the frames in tf before the names of links.
    """

    base: str
    joints: Collection[str]
    links: Collection[str]
    tip: str = ""
    groups: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""


@dataclass(frozen=True, eq=False)
class IkRequest:
    """Where links are to be.

    Attributes:
        links: The links, one or more.
        targets: Their poses in the robot's base frame, shape (n, 4, 4) [m].
        seed: Positions of joints, also of those that are not solved for [rad or m].
        limits: Narrower limits of some joints: least and largest position [rad or m].
    """

    links: tuple[str, ...]
    targets: Array
    seed: Mapping[str, float]
    limits: Mapping[str, tuple[float, float]]

    def seed_for(self, joints: Sequence[str], otherwise: float | Sequence[float] = 0.0) -> Array:
        """Return the seed in the order of the joints, shape (n,); see ``seed_values``."""
        return seed_values(self.seed, joints, otherwise)


@dataclass(frozen=True, eq=False)
class FkRequest:
    """Where links are for positions of joints.

    Attributes:
        links: The links.
        positions: Positions of joints by name [rad or m].
    """

    links: tuple[str, ...]
    positions: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class CartesianRequest:
    """A path of a link through poses.

    Attributes:
        link: The link.
        waypoints: Its poses, shape (n, 4, 4) [m]: in the robot's base frame, or, if ``relative``,
            each in the frame that the link has at the start.
        relative: See waypoints.
        start: Positions of joints by name [rad or m].
        limits: Narrower limits of some joints: least and largest position [rad or m].
        max_step: Largest distance of the link between two points of the answer [m].
        jump_threshold: Largest step of a joint relative to the mean one; 0 for none [-].
        revolute_jump: Largest step of a revolute joint; 0 for none [rad].
        prismatic_jump: Largest step of a prismatic joint; 0 for none [m].
        velocity_scaling: Share of the joints' velocity limits that may be used; 0 for all [-].
        acceleration_scaling: Share of the joints' acceleration limits; 0 for all [-].
        speed_limited_link: The link that ``max_speed`` holds for; empty for the link itself.
        max_speed: Largest speed of that link; 0 for none [m/s].
    """

    link: str
    waypoints: Array
    relative: bool
    start: Mapping[str, float]
    limits: Mapping[str, tuple[float, float]]
    max_step: float
    jump_threshold: float
    revolute_jump: float
    prismatic_jump: float
    velocity_scaling: float
    acceleration_scaling: float
    speed_limited_link: str
    max_speed: float

    def start_for(self, joints: Sequence[str], otherwise: float | Sequence[float] = 0.0) -> Array:
        """Return the start in the order of the joints, shape (n,); see ``seed_values``."""
        return seed_values(self.start, joints, otherwise)


@dataclass(frozen=True, eq=False)
class CartesianPath:
    """What a library found for a Cartesian path.

    Attributes:
        joints: Names of the joints.
        positions: Along the path, the start first, shape (m, n) [rad or m].
        times: From the start, shape (m,) [s].
        fraction: Share of the path that was followed, 0 to 1.
        message: Why it is not all of it.
    """

    joints: Sequence[str]
    positions: Array
    times: Array
    fraction: float
    message: str = ""


IkSolver = Callable[[IkRequest, Task], Mapping[str, float]]
FkSolver = Callable[[FkRequest, Task], Mapping[str, Array]]
PathSolver = Callable[[CartesianRequest, Task], CartesianPath]
Transformer = Callable[[str, int], Array]


def seed_values(
    seed: Mapping[str, float], joints: Sequence[str], otherwise: float | Sequence[float] = 0.0
) -> Array:
    """Return positions in the order of the joints, shape (n,) [rad or m].

    Args:
        seed: Positions by name.
        joints: Names of the joints.
        otherwise: For joints that have none: one number for all of them, or one each.
    """
    rest = np.broadcast_to(np.asarray(otherwise, float), (len(joints),)).tolist()
    return np.array([seed.get(name, rest[k]) for k, name in enumerate(joints)])


def narrowed(
    limits: Mapping[str, tuple[float, float]], joints: Sequence[str], lower: Array, upper: Array
) -> tuple[Array, Array]:
    """Return the limits of joints, shape (n,) each, narrowed by those of a request.

    Raises:
        Unreachable: A joint has no position left.
    """
    lower, upper = np.array(lower, float), np.array(upper, float)
    for k, joint in enumerate(joints):
        low, high = limits.get(joint, (-math.inf, math.inf))
        lower[k], upper[k] = max(lower[k], low), min(upper[k], high)
        if lower[k] > upper[k]:
            raise Unreachable(f"the constraint of {joint} leaves nothing of its limits")
    return lower, upper


# Reading -----------------------------------------------------------------------------------------


def read_ik_request(
    request: Any, robot: Robot, to_base: Transformer, *, collisions_by_caller: bool = False
) -> IkRequest:
    """Read the request of a GetPositionIK.

    Args:
        request: ``moveit_msgs/PositionIKRequest``.
        robot: The robot that is asked.
        to_base: ``to_base(frame, stamp)`` is the transform to the base frame, shape (4, 4) [m].
        collisions_by_caller: Let a request pass that asks for collisions to be avoided.

    Raises:
        Refused: With the code of MoveIt's for what is wrong.
        FrameError: The pose is in a frame that has no relation to the base.
    """
    if not collisions_by_caller:
        _refuse_collisions("ik_request.avoid_collisions", request)
    several = list(request.pose_stamped_vector)
    poses = several or [request.pose_stamped]
    names = list(request.ik_link_names) if several else [request.ik_link_name]
    if several and len(several) > 1 and len(names) != len(several):
        raise Refused(
            Code.INVALID_LINK_NAME,
            "ik_request.ik_link_names",
            f"must name a link for each of the {len(several)} poses, got {len(names)}",
        )
    _check_count("ik_request.pose_stamped_vector", len(poses))
    links = tuple(_link(robot, name, request.group_name, "ik_request") for name in names or [""])
    if len(set(links)) != len(links):
        raise Refused(Code.INVALID_LINK_NAME, "ik_request.ik_link_names", "names a link twice")
    where = "ik_request.pose_stamped"
    fields = [f"{where}_vector[{k}]" for k in range(len(poses))] if several else [where]
    targets = [_pose(name, p, to_base) for name, p in zip(fields, poses, strict=True)]
    return IkRequest(
        links,
        np.array(targets),
        _positions("ik_request.robot_state", request.robot_state),
        _limits("ik_request.constraints", request.constraints, robot.joints),
    )


def read_fk_request(request: Any, robot: Robot) -> FkRequest:
    """Read a GetPositionFK request; links that the robot does not have are left out.

    Raises:
        Refused: With the code of MoveIt's for what is wrong.
    """
    if not request.fk_link_names:
        raise Refused(Code.INVALID_LINK_NAME, "fk_link_names", "names no link")
    _check_count("fk_link_names", len(request.fk_link_names))
    known = tuple(name for name in request.fk_link_names if name in robot.links)
    return FkRequest(known, _positions("robot_state", request.robot_state))


def read_cartesian_request(request: Any, robot: Robot, to_base: Transformer) -> CartesianRequest:
    """Read a GetCartesianPath request; see ``read_ik_request``."""
    _refuse_collisions("avoid_collisions", request)
    link = _link(robot, request.link_name, request.group_name, "")
    _check_count("waypoints", len(request.waypoints))
    frame = request.header.frame_id.removeprefix("/")
    relative = frame in (link, robot.prefix + link)
    toward = np.eye(4) if relative else to_base(frame, to_nanoseconds(request.header.stamp))
    poses = [_read_pose(f"waypoints[{k}]", pose) for k, pose in enumerate(request.waypoints)]
    numbers = {
        name: _not_negative(name, getattr(request, name))
        for name in (
            *("jump_threshold", "revolute_jump_threshold", "prismatic_jump_threshold"),
            *("max_velocity_scaling_factor", "max_acceleration_scaling_factor"),
            *("max_step", "max_cartesian_speed"),
        )
    }
    if numbers["max_step"] == 0.0:
        raise Refused(Code.FAILURE, "max_step", "must be greater than zero")
    return CartesianRequest(
        link=link,
        waypoints=np.array([toward @ pose for pose in poses]).reshape(-1, 4, 4),
        relative=relative,
        start=_positions("start_state", request.start_state),
        limits=_limits("path_constraints", request.path_constraints, robot.joints),
        max_step=numbers["max_step"],
        jump_threshold=numbers["jump_threshold"],
        revolute_jump=numbers["revolute_jump_threshold"],
        prismatic_jump=numbers["prismatic_jump_threshold"],
        velocity_scaling=numbers["max_velocity_scaling_factor"],
        acceleration_scaling=numbers["max_acceleration_scaling_factor"],
        speed_limited_link=request.cartesian_speed_limited_link,
        max_speed=numbers["max_cartesian_speed"],
    )


def _refuse_collisions(field: str, request: Any) -> None:
    if request.avoid_collisions:
        why = "collisions are not checked here"
        raise Refused(Code.COLLISION_CHECKING_UNAVAILABLE, field, why)


def _link(robot: Robot, name: str, group: str, where: str) -> str:
    """The link that a request means."""
    dot = f"{where}." if where else ""
    if name:
        # In tf a link may have a prefix, and MoveIt's users write either.
        bare = name.removeprefix(robot.prefix) if robot.prefix else name
        if bare not in robot.links:
            raise Refused(
                Code.INVALID_LINK_NAME,
                f"{dot}{'ik_link_name' if where else 'link_name'}",
                f"the robot has no link {checks.shown(name)}{_known(robot.links)}",
            )
        return bare
    if not group and robot.tip:
        return robot.tip
    found = robot.groups.get(group, group if group in robot.links else "")
    if not found:
        names = [*robot.groups, *robot.links]
        raise Refused(
            Code.INVALID_GROUP_NAME,
            f"{dot}group_name",
            f"{checks.shown(group)} is neither a group nor a link; name a link{_known(names)}",
        )
    return found


def _known(names: Iterable[str]) -> str:
    listed = list(names)
    return f" (there are {shortened(', '.join(listed[:20]), 400)})" if listed else ""


def _check_count(field: str, count: int) -> None:
    if count > _MOST_POSES:
        raise Refused(Code.FAILURE, field, f"has {count} entries; at most {_MOST_POSES} are taken")


def _not_negative(field: str, value: float) -> float:
    if not (math.isfinite(value) and value >= 0.0):
        raise Refused(Code.FAILURE, field, f"must be a number that is not negative, got {value:g}")
    return float(value)


def _read_pose(field: str, pose: Any) -> Array:
    try:
        return read_pose(field, pose)
    except InvalidInput as error:
        raise Refused(Code.INVALID_GOAL_CONSTRAINTS, error.field, error.problem) from None


def _pose(field: str, stamped: PoseStamped, to_base: Transformer) -> Array:
    pose = _read_pose(f"{field}.pose", stamped.pose)
    return to_base(stamped.header.frame_id, to_nanoseconds(stamped.header.stamp)) @ pose


def _positions(field: str, state: RobotState) -> dict[str, float]:
    """The positions of a robot state by the names of the joints."""
    names, values = list(state.joint_state.name), from_field(state.joint_state.position)
    where = f"{field}.joint_state"
    if len(values) != len(names):
        raise Refused(
            Code.INVALID_ROBOT_STATE,
            f"{where}.position",
            f"must be one for each of the {len(names)} names, got {len(values)}",
        )
    if not np.isfinite(values).all():
        raise Refused(Code.INVALID_ROBOT_STATE, f"{where}.position", "must be finite")
    if len(set(names)) != len(names):
        raise Refused(Code.INVALID_ROBOT_STATE, f"{where}.name", "names a joint twice")
    return dict(zip(names, values.tolist(), strict=True))


def _limits(
    field: str, constraints: Constraints, joints: Collection[str]
) -> dict[str, tuple[float, float]]:
    """The intervals that constraints leave to joints; constraints of other kinds are refused."""
    for kind in ("position", "orientation", "visibility"):
        if getattr(constraints, f"{kind}_constraints"):
            raise Refused(
                Code.INVALID_GOAL_CONSTRAINTS,
                f"{field}.{kind}_constraints",
                "only joint constraints are taken",
            )
    found: dict[str, tuple[float, float]] = {}
    for k, entry in enumerate(constraints.joint_constraints):
        where = f"{field}.joint_constraints[{k}]"
        if entry.joint_name not in joints:
            raise Refused(
                Code.INVALID_GOAL_CONSTRAINTS,
                f"{where}.joint_name",
                f"{checks.shown(entry.joint_name)} is no joint that is solved for{_known(joints)}",
            )
        numbers = (entry.position, entry.tolerance_below, entry.tolerance_above)
        if not np.isfinite(numbers).all() or min(numbers[1:]) < 0.0:
            raise Refused(
                Code.INVALID_GOAL_CONSTRAINTS, where, "must have finite numbers, tolerances >= 0"
            )
        low, high = found.get(entry.joint_name, (-math.inf, math.inf))
        low = max(low, entry.position - entry.tolerance_below)
        high = min(high, entry.position + entry.tolerance_above)
        found[entry.joint_name] = (low, high)
    return found


# Serving -----------------------------------------------------------------------------------------


def serve_kinematics(
    node: KinNode[Any],
    robot: Callable[[], Robot],
    frames: Frames,
    *,
    ik: IkSolver | None = None,
    fk: FkSolver | None = None,
    path: PathSolver | None = None,
) -> None:
    """Offer what a node can answer under MoveIt's names, below the node's own.

    ``~/compute_ik`` and ``~/plugin_ik``, ``~/compute_fk``, ``~/compute_cartesian_path``; see
    ``serve_ik``, ``serve_fk`` and ``serve_cartesian_path``.
    """
    if ik is not None:
        serve_ik(node, "~/compute_ik", robot, ik, frames)
        serve_ik(node, "~/plugin_ik", robot, ik, frames, collisions_by_caller=True)
    if fk is not None:
        serve_fk(node, "~/compute_fk", robot, fk, frames)
    if path is not None:
        serve_cartesian_path(node, "~/compute_cartesian_path", robot, path, frames)


def serve_ik(
    node: KinNode[Any],
    name: str,
    robot: Callable[[], Robot],
    solve: IkSolver,
    frames: Frames,
    *,
    collisions_by_caller: bool = False,
) -> Any:
    """Offer a ``moveit_msgs/GetPositionIK``.

    Args:
        node: The node.
        name: Name of the service, relative to the node with "~/".
        robot: The robot as it is now; may raise what a node without a robot would say.
        solve: ``solve(request, task)`` returns positions of the joints by name: those nearest to
            the seed within limits. It raises ``Unreachable`` where there are none.
        frames: The frames of the node.
        collisions_by_caller: The caller checks collisions itself, as MoveIt's plugin does.
    """

    def handle(request: Any, task: Task) -> Any:
        now = robot()
        asked = read_ik_request(
            request.ik_request,
            now,
            partial(_to_base, frames, now.base, "ik_request.pose_stamped"),
            collisions_by_caller=collisions_by_caller,
        )
        found = solve(asked, task)
        for joint, (low, high) in asked.limits.items():
            if not low - _ROUNDING <= found[joint] <= high + _ROUNDING:
                raise Unreachable(f"no solution keeps {joint} between {low:g} and {high:g}")
        response = GetPositionIK.Response()
        response.solution.joint_state = _joint_state(node, now.base, {**asked.seed, **found})
        _conclude(node, response)
        return response

    manner = _manner(node, lambda request: request.ik_request.timeout)
    return node.serve(GetPositionIK, name, handle, manner=manner)


def serve_fk(
    node: KinNode[Any], name: str, robot: Callable[[], Robot], solve: FkSolver, frames: Frames
) -> Any:
    """Offer a ``moveit_msgs/GetPositionFK``.

    Args:
        node: The node.
        name: Name of the service, relative to the node with "~/".
        robot: The robot as it is now.
        solve: ``solve(request, task)`` returns the transform to the base frame, shape (4, 4) [m],
            of each link that is asked for.
        frames: The frames of the node.
    """

    def handle(request: Any, task: Task) -> Any:
        now = robot()
        asked = read_fk_request(request, now)
        stamp = to_nanoseconds(request.header.stamp)
        wanted = request.header.frame_id or now.base
        toward = inverse_transform(_to_base(frames, now.base, "header", wanted, stamp))
        poses = solve(asked, task) if asked.links else {}
        response = GetPositionFK.Response(fk_link_names=list(asked.links))
        for link in asked.links:
            pose = toward @ poses[link]
            stamped = PoseStamped(pose=to_pose(pose[:3, 3], pose[:3, :3]))
            stamped.header.frame_id = wanted
            stamped.header.stamp = node.get_clock().now().to_msg()
            response.pose_stamped.append(stamped)
        missing = [link for link in request.fk_link_names if link not in asked.links]
        if missing:
            why = f"the robot has no link {checks.shown(missing[0])}{_known(now.links)}"
            _refuse(node, response, Refused(Code.INVALID_LINK_NAME, "fk_link_names", why))
        else:
            _conclude(node, response)
        return response

    return node.serve(GetPositionFK, name, handle, manner=_manner(node, None))


def serve_cartesian_path(
    node: KinNode[Any], name: str, robot: Callable[[], Robot], solve: PathSolver, frames: Frames
) -> Any:
    """Offer a ``moveit_msgs/GetCartesianPath``.

    As with MoveIt's own, a path that is followed only in part is a success whose fraction is below
    1; here its message says why.

    Args:
        node: The node.
        name: Name of the service, relative to the node with "~/".
        robot: The robot as it is now.
        solve: ``solve(request, task)`` returns the path as far as it can be followed.
        frames: The frames of the node.
    """

    def handle(request: Any, task: Task) -> Any:
        now = robot()
        to_base = partial(_to_base, frames, now.base, "header")
        asked = read_cartesian_request(request, now, to_base)
        found = solve(asked, task)
        response = GetCartesianPath.Response(fraction=float(found.fraction))
        start = _joint_state(node, now.base, dict(asked.start))
        response.start_state.joint_state = start
        trajectory = response.solution.joint_trajectory
        trajectory.header.frame_id = now.base
        trajectory.joint_names = list(found.joints)
        trajectory.points = [
            JointTrajectoryPoint(
                positions=to_field(q), time_from_start=Duration(seconds=float(t)).to_msg()
            )
            for q, t in zip(found.positions, found.times, strict=True)
        ]
        _conclude(node, response, found.message)
        return response

    return node.serve(GetCartesianPath, name, handle, manner=_manner(node, None))


def _to_base(frames: Frames, base: str, field: str, frame: str, stamp: int) -> Array:
    try:
        return frames.transform(base, frame, stamp, wait=1.0)
    except FrameError as error:
        raise FrameError(f"{field}.header.{error.field}", error.problem) from None


def _joint_state(node: KinNode[Any], frame: str, positions: Mapping[str, float]) -> JointState:
    state = JointState(name=list(positions), position=to_field(list(positions.values())))
    state.header.frame_id = frame
    state.header.stamp = node.get_clock().now().to_msg()
    return state


def _conclude(
    node: KinNode[Any], response: Any, message: str = "", code: Code = Code.SUCCESS
) -> None:
    response.error_code = MoveItErrorCodes(
        val=code, message=shortened(message), source=node.get_fully_qualified_name()
    )


def _refuse(node: KinNode[Any], response: Any, error: BaseException) -> None:
    text = str(error) if isinstance(error, KinError) else f"{type(error).__name__}: {error}"
    _conclude(node, response, text, code_of(error))


def code_of(error: BaseException) -> Code:
    """Return MoveIt's code for what a reader or a library raised."""
    if isinstance(error, Refused):
        return error.moveit
    kinds: tuple[tuple[type[BaseException], Code], ...] = (
        (FrameError, Code.FRAME_TRANSFORM_FAILURE),
        (SolveTimeout, Code.TIMED_OUT),
        (Cancelled, Code.PREEMPTED),
        (Unreachable, Code.NO_IK_SOLUTION),
        (NotConverged, Code.NO_IK_SOLUTION),
        (KinError, Code.FAILURE),
    )
    return next((code for kind, code in kinds if isinstance(error, kind)), Code.CRASH)


def _manner(node: KinNode[Any], duration: Callable[[Any], Any] | None) -> Manner:
    """How MoveIt's services name times and errors."""

    def limits(request: Any) -> dict[str, float]:
        return {} if duration is None else {"timeout": to_nanoseconds(duration(request)) / 1e9}

    return Manner(limits, partial(_refuse, node))
