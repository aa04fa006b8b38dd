"""The questions that MoveIt's users ask of an arm, answered with all of its solutions in view."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from kin_core.errors import InvalidInput, NotConverged, Unreachable
from kin_core.task import Task
from kin_core.urdf import Urdf
from kin_ros.moveit import (
    CartesianPath,
    CartesianRequest,
    Code,
    FkRequest,
    IkRequest,
    Refused,
    Robot,
    narrowed,
)
from kin_solvers.all_ik import solve_all_ik
from kin_solvers.lines import TURN_PER_STEP, along_poses
from kin_solvers.mechanism import Mechanism
from kin_solvers.mechanism_urdf import arm_from_urdf, link_pose
from kin_solvers.paths import follow_path
from kin_solvers.settings import Settings
from kin_solvers.timing import times_of

__all__ = ["ArmDoors"]

Array = NDArray[np.float64]

#: Velocity of a joint that has no limit, and acceleration of every joint, as in MoveIt [rad/s, m/s
#: and the same per second].
DEFAULT_VELOCITY, DEFAULT_ACCELERATION = 1.0, 1.0


class ArmDoors:
    """Inverse and forward kinematics of a robot description, link by link.

    Args:
        description: Gives the robot description as it is now.
        settings: Gives how to solve.
    """

    def __init__(self, description: Callable[[], Urdf], settings: Callable[[], Settings]) -> None:
        self._description = description
        self._settings = settings
        self._arms: tuple[Urdf | None, dict[str, Mechanism]] = (None, {})
        self._lock = threading.Lock()

    def robot(self) -> Robot:
        """What the doors must know of the robot."""
        urdf = self._description()
        leaves = urdf.leaves()
        return Robot(
            base=urdf.root,
            joints=tuple(name for name, joint in urdf.joints.items() if joint.moves),
            links=tuple(urdf.links),
            tip=leaves[0] if len(leaves) == 1 else "",
        )

    def ik(self, request: IkRequest, task: Task) -> Mapping[str, float]:
        """The solution nearest to the seed within the limits, by the names of the joints.

        Raises:
            Unreachable: It is proven that there is none.
        """
        if len(request.links) != 1:
            problem = f"one link at a time is solved for, got {len(request.links)}"
            raise Refused(Code.INVALID_LINK_NAME, "ik_request.ik_link_names", problem)
        arm = _narrowed(self._arm(request.links[0]), request.limits)
        arm, names = arm.with_target(request.targets[0]), arm.names
        found = solve_all_ik(arm, request.seed_for(names), self._settings(), task=task)
        if len(found.positions) == 0:
            task.check()
            if found.manifold.complete and len(found.manifold.lower) == 0:
                raise Unreachable(found.message)
            raise NotConverged(found.message)
        return dict(zip(names, found.positions[0].tolist(), strict=True))

    def fk(self, request: FkRequest, task: Task) -> Mapping[str, Array]:
        """Poses of links in the base, shape (4, 4) each [m]."""
        urdf = self._description()
        try:
            return {link: link_pose(urdf, link, request.positions) for link in request.links}
        except InvalidInput as error:
            raise Refused(Code.INVALID_ROBOT_STATE, error.field, error.problem) from None

    def path(self, request: CartesianRequest, task: Task) -> CartesianPath:
        """The way of the joints from the start through the waypoints, as far as it goes.

        Steps are no longer than ``max_step``, and turn by no more than 3.5 rad for each metre of
        it. From one to the next the posture is followed with proofs, so that it cannot jump to
        another; thresholds on the size of its steps end the path where MoveIt would end it.
        """
        urdf = self._description()
        arm = _narrowed(self._arm(request.link), request.limits)
        missing = [name for name in arm.names if name not in request.start]
        if missing:
            raise Refused(
                Code.INVALID_ROBOT_STATE, "start_state.joint_state.name", f"lacks {missing[0]}"
            )
        start = request.start_for(arm.names)
        # The closing constant stands last in the loop: without it the product is the tip's pose.
        here = arm.with_target(np.eye(4)).product(0, start)
        waypoints = here @ request.waypoints if request.relative else request.waypoints
        if len(waypoints) == 0:
            return CartesianPath(arm.names, start[None], np.zeros(1), 0.0, "there is no waypoint")
        turn = TURN_PER_STEP * request.max_step
        poses, given = along_poses([here, *waypoints], request.max_step, turn)
        joints = [urdf.joints[name] for name in arm.names]
        limited = [j.name for j in joints if j.type == "revolute" and np.isfinite(j.lower)]
        found = follow_path(arm, poses, start, limited=limited, task=task)
        task.check()
        turns = np.array([joint.type != "prismatic" for joint in joints])
        last, jump = _before_jump(found.positions, turns, request)
        message = f"the step after pose {last} of {len(poses) - 1} is a jump" if jump else ""
        part = int(np.searchsorted(given, last, side="right")) - 1
        done = part + (0.0 if last == given[part] else (last - given[part]) / (
            given[part + 1] - given[part]
        ))  # fmt: skip
        positions = found.positions[: last + 1]
        return CartesianPath(
            joints=arm.names,
            positions=positions,
            times=self._times(request, urdf, arm, positions),
            fraction=done / (len(given) - 1),
            message=message or found.message,
        )

    def _times(
        self, request: CartesianRequest, urdf: Urdf, arm: Mechanism, positions: Array
    ) -> Array:
        """Times along a path, within the limits of joints and of a link's speed, shape (K,) [s]."""
        limits = np.array([urdf.joints[name].velocity for name in arm.names])
        velocity = np.where(np.isfinite(limits), limits, DEFAULT_VELOCITY)
        velocity *= _share(request.velocity_scaling)
        acceleration = np.full(len(velocity), DEFAULT_ACCELERATION)
        acceleration *= _share(request.acceleration_scaling)
        least = np.zeros(len(positions) - 1)
        if request.max_speed > 0.0:
            link = request.speed_limited_link or request.link
            states = [dict(request.start) | dict(zip(arm.names, q, strict=True)) for q in positions]
            places = np.array([link_pose(urdf, link, state)[:3, 3] for state in states])
            least = np.linalg.norm(np.diff(places, axis=0), axis=1) / request.max_speed
        return times_of(positions, velocity, acceleration, least)

    def _arm(self, tip: str) -> Mechanism:
        """The chain to a link; kept, with what is made of it, as long as the description stays."""
        urdf = self._description()
        with self._lock:
            if self._arms[0] is not urdf:
                self._arms = (urdf, {})
            arms = self._arms[1]
            if tip not in arms:
                arms[tip] = arm_from_urdf(urdf, np.eye(4), tip=tip)
            return arms[tip]


def _narrowed(arm: Mechanism, limits: Mapping[str, tuple[float, float]]) -> Mechanism:
    """An arm within narrower limits of some joints."""
    names = arm.names
    lower, upper = narrowed(
        limits,
        names,
        np.array([v.lower for v in arm.variables]),
        np.array([v.upper for v in arm.variables]),
    )
    if not any(name in limits for name in names):
        return arm
    # A range of one point is none: it is widened by what rounding would do.
    pad = np.where(upper - lower < 2e-9, 1e-9, 0.0)
    ends = zip((lower - pad).tolist(), (upper + pad).tolist(), strict=True)
    return arm.with_ranges(dict(zip(names, ends, strict=True)))


def _share(scaling: float) -> float:
    """A scaling factor of MoveIt's: 0 and what is larger than 1 mean all."""
    return scaling if 0.0 < scaling <= 1.0 else 1.0


def _before_jump(
    positions: Array, turns: NDArray[np.bool_], request: CartesianRequest
) -> tuple[int, bool]:
    """The last pose before a step that is larger than the request allows, and whether one is."""
    steps = np.abs(np.diff(positions, axis=0))
    size = steps.sum(axis=1)
    wrong = np.zeros(len(steps), dtype=bool)
    if request.jump_threshold > 0.0 and len(steps):
        wrong |= size > request.jump_threshold * size.mean()
    for most, joints in ((request.revolute_jump, turns), (request.prismatic_jump, ~turns)):
        if most > 0.0:
            wrong |= (steps[:, joints] > most).any(axis=1)
    first = np.flatnonzero(wrong)
    return (int(first[0]), True) if len(first) else (len(steps), False)
