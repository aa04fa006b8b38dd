"""The questions that MoveIt's users ask of an arm, answered with all of its solutions in view."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from kin_core.errors import InvalidInput, NotConverged, Unreachable
from kin_core.task import Task
from kin_core.urdf import Urdf
from kin_ros.moveit import Code, FkRequest, IkRequest, Refused, Robot
from kin_solvers.all_ik import solve_all_ik
from kin_solvers.mechanism import Mechanism
from kin_solvers.mechanism_urdf import arm_from_urdf, link_pose
from kin_solvers.settings import Settings

__all__ = ["ArmDoors"]

Array = NDArray[np.float64]


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
        arm = self._arm(request.links[0]).with_target(request.targets[0])
        names = arm.names
        lower, upper = request.narrowed(
            names,
            np.array([v.lower for v in arm.variables]),
            np.array([v.upper for v in arm.variables]),
        )
        if any(name in request.limits for name in names):
            # A range of one point is none: it is widened by what rounding would do.
            pad = np.where(upper - lower < 2e-9, 1e-9, 0.0)
            ends = zip((lower - pad).tolist(), (upper + pad).tolist(), strict=True)
            arm = arm.with_ranges(dict(zip(names, ends, strict=True)))
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
