"""The doors for motions: FollowJointTrajectory, trajectories on topics, and goals of the tip.

What a client asks becomes a goal of :mod:`~ft_controller.trajectory_goals`, which the control loop
watches; a timer tells the client how it goes, and how it ended.
"""

from __future__ import annotations

import itertools
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from control_msgs.action import FollowJointTrajectory
from kin_interfaces.action import MoveArm
from rclpy.task import Future
from trajectory_msgs.msg import JointTrajectory

from ft_controller import conversions, orders
from ft_controller.errors import ArmError, MotionError
from ft_controller.planner import Plan
from ft_controller.trajectory_goals import Code, Goal, Outcome, Seen, TrajectoryGoals
from kin_core.errors import Cancelled, KinError
from kin_core.task import Task
from kin_core.texts import shortened
from kin_ros.bounds import check_texts
from kin_ros.qos import COMMAND
from kin_ros.requests import OWN, check_time_limits, time_allowed
from kin_ros.status import fill_status

if TYPE_CHECKING:
    from ft_controller.node import FtController

__all__ = ["TrajectoryServer"]

#: Clients hear of their goals at this interval [s].
_PERIOD = 0.05

#: Codes for what is wrong with a goal, by the field; everything else is INVALID_GOAL.
_CODES = {
    "joint_names": Code.INVALID_JOINTS,
    "path_tolerance.name": Code.INVALID_JOINTS,
    "goal_tolerance.name": Code.INVALID_JOINTS,
    "header.stamp": Code.OLD_HEADER_TIMESTAMP,
}


#: Fields of a goal that are for other joints than ours.
_SEVERAL_FREEDOMS = (
    "multi_dof_trajectory",
    "component_path_tolerance",
    "component_goal_tolerance",
)


@dataclass
class _Client:
    """Somebody who waits for a goal.

    Attributes:
        goal: What is waited for.
        handle: Of the action.
        feedback: Makes the message that tells how it goes.
        ended: Done when the goal is over.
    """

    goal: Goal
    handle: Any
    feedback: Callable[[Goal, Seen], Any]
    ended: Future


class TrajectoryServer:
    """Takes motions for a controller node, while that is configured."""

    def __init__(self, node: FtController) -> None:
        """Offer the actions and listen to the topics."""
        self._node = node
        self._clients: list[_Client] = []
        self._numbers = itertools.count()
        self._newest = -1
        self._taking = threading.Lock()
        node.listen(JointTrajectory, "~/joint_trajectory", self._on_trajectory, COMMAND)
        # The name before there was the standard one.
        node.listen(JointTrajectory, "joint_trajectory", self._on_trajectory, COMMAND)
        node.serve_motion(
            FollowJointTrajectory, "~/follow_joint_trajectory", self._follow, self._cancel
        )
        node.serve_motion(MoveArm, "~/move_arm", self._move, self._cancel)
        node.every(_PERIOD, self._tell, steady=True)

    def drop(self, why: str) -> None:
        """End what is followed: the node is being deactivated."""
        goals = self._node.goals
        if goals is not None:
            goals.drop(why)
        self._tell()

    # ------------------------------------------------------------------ topics

    def _on_trajectory(self, message: JointTrajectory) -> None:
        goals, now = self._goals(), self._node.parameters
        if not message.points:
            goals.halt("an empty trajectory has stopped it")
            return
        goals.pass_through(
            conversions.waypoints_of(message, now.names, now.allow_partial_joints_goal),
            now.tolerances(),
            self._stamp(message),
            attended=False,
            smooth=now.smooth_positions,
        )

    def _goals(self) -> TrajectoryGoals:
        """The goals of an arm that is driven."""
        self._node.driven()
        goals = self._node.goals
        if goals is None:
            raise ArmError("", "the control loop does not run")
        return goals

    def _stamp(self, message: JointTrajectory) -> int | None:
        """When a trajectory starts, by the clock of motions [ns]; None: now."""
        stamp = message.header.stamp
        asked = stamp.sec * 10**9 + stamp.nanosec
        return self._node.motion_time(asked) if asked else None

    # ------------------------------------------------------------------ FollowJointTrajectory

    async def _follow(self, handle: Any) -> FollowJointTrajectory.Result:
        node, number = self._node, next(self._numbers)
        try:
            task = Task(node.parameters.default_timeout)
            goal = await node.worker.run(lambda t: self._take(handle.request, number, t), task)
        except Exception as error:
            code = _CODES.get(getattr(error, "field", ""), Code.INVALID_GOAL)
            outcome = Outcome(code, self._said(error))
            node.diagnostics.count("follow_joint_trajectory refused")
        else:
            outcome = await self._carried_out(goal, handle, self._joint_feedback)
        _finish(handle, outcome)
        sentence = shortened(outcome.sentence)
        if outcome.code != Code.SUCCESSFUL:
            node.get_logger().warning(f"follow_joint_trajectory: {sentence}")
        return FollowJointTrajectory.Result(error_code=int(outcome.code), error_string=sentence)

    def _take(self, request: FollowJointTrajectory.Goal, number: int, task: Task) -> Goal:
        """Take up a goal, in a worker thread; of several at once the last one stays."""
        check_texts(request)
        goals, now = self._goals(), self._node.parameters
        for field in _SEVERAL_FREEDOMS:
            value = getattr(request, field)
            if getattr(value, "points", value):
                raise ArmError(field, "the joints of this arm have one degree of freedom each")
        points = conversions.waypoints_of(
            request.trajectory, now.names, now.allow_partial_joints_goal
        )
        tolerances = conversions.tolerances_of(request, now.names, now.tolerances())
        if now.pace == "clock":
            orders.await_first_state(self._node.running(), task)
        with self._taking:
            if number < self._newest:
                raise ArmError("", "a newer goal has replaced it")
            stamp = self._stamp(request.trajectory)
            goal = goals.pass_through(points, tolerances, stamp, smooth=now.smooth_positions)
            self._newest = number
        return goal

    def _joint_feedback(self, _: Goal, seen: Seen) -> FollowJointTrajectory.Feedback:
        stamp = self._node.get_clock().now().to_msg()
        return conversions.feedback_of(seen, self._node.parameters.names, stamp)

    # ------------------------------------------------------------------ MoveArm

    async def _move(self, handle: Any) -> MoveArm.Result:
        node, result, number = self._node, MoveArm.Result(), next(self._numbers)
        task = Task(time_allowed(node, handle.request))
        try:
            check_time_limits(node, handle.request, OWN)
            plan, goal = await node.worker.run(
                lambda t: self._plan(handle.request, number, t), task
            )
            conversions.write_plan(result, plan, node.parameters.names)
            outcome = Outcome(Code.SUCCESSFUL, "")
            if goal is not None:
                outcome = await self._carried_out(goal, handle, _share)
                if outcome.cancelled:
                    raise Cancelled(outcome.sentence)
                if outcome.code != Code.SUCCESSFUL:
                    raise MotionError(outcome.sentence)
        except Exception as error:
            fill_status(result.status, error)
            outcome = Outcome(Code.INVALID_GOAL, self._said(error), isinstance(error, Cancelled))
        result.status.solve_time = task.elapsed()
        _finish(handle, outcome)
        return result

    def _plan(self, request: Any, number: int, task: Task) -> tuple[Plan, Goal | None]:
        plan = self._node.plan(request, task)
        if request.plan_only:
            return plan, None
        goals = self._goals()
        with self._taking:
            if number < self._newest:
                raise ArmError("", "a newer goal has replaced it")
            goal = goals.begin(plan.trajectory, self._node.parameters.tolerances())
            self._newest = number
        return plan, goal

    # ------------------------------------------------------------------ every goal

    async def _carried_out(
        self, goal: Goal, handle: Any, feedback: Callable[[Goal, Seen], Any]
    ) -> Outcome:
        """Wait until a goal is over."""
        client = _Client(goal, handle, feedback, Future())
        self._clients.append(client)
        if handle.is_cancel_requested:  # while it was being taken up
            self._cancel(handle)
        outcome: Outcome = await client.ended
        return outcome

    def _said(self, error: Exception) -> str:
        """What an error says; one that nobody foresaw is named, and logged in full."""
        if isinstance(error, KinError):
            return str(error)
        trace = "".join(traceback.format_exception(error))
        self._node.get_logger().error(f"a motion:\n{shortened(trace, 8000)}")
        return f"{type(error).__name__}: {error}"

    def _cancel(self, handle: Any) -> None:
        goals = self._node.goals
        for client in self._clients:
            if client.handle is handle and goals is not None:
                goals.cancel(client.goal)

    def _tell(self) -> None:
        """Tell every client how its goal goes, or that it is over."""
        for client in list(self._clients):
            goal, seen = client.goal, client.goal.seen
            if goal.outcome is not None:
                self._clients.remove(client)
                client.ended.set_result(goal.outcome)
            elif seen is not None and client.handle.is_active:
                client.handle.publish_feedback(client.feedback(goal, seen))


def _finish(handle: Any, outcome: Outcome) -> None:
    """Give a goal of an action its last state."""
    if outcome.cancelled and handle.is_cancel_requested:
        handle.canceled()
    elif outcome.code == Code.SUCCESSFUL:
        handle.succeed()
    else:
        handle.abort()


def _share(goal: Goal, seen: Seen) -> MoveArm.Feedback:
    """How far a motion of the tip has come."""
    whole = max(goal.trajectory.duration, 1e-9)
    return MoveArm.Feedback(
        fraction=float(np.clip(seen.clock / whole, 0.0, 1.0)),
        error=float(np.abs(seen.reference[0] - seen.q).max()),
    )
