"""Requests: how a service or an action of a node is answered, always with a status."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kin_interfaces.msg import SolveStatus
from rclpy.action import CancelResponse, GoalResponse

from kin_core.errors import InvalidInput, KinError, StatusCode
from kin_core.task import Progress, Task
from kin_core.texts import shortened
from kin_ros.answers import PatientActionServer
from kin_ros.bounds import check_texts
from kin_ros.status import fill_status

if TYPE_CHECKING:
    from kin_ros.node import KinNode

__all__ = ["Handler", "answer", "make_action_server"]

#: Feedback is sent at most this often [s].
_FEEDBACK_PERIOD = 0.05

#: Fields by which a request says how long it may take [s]: to be solved, or to wait for something.
_TIME_LIMITS = ("timeout", "wait")

Handler = Callable[[Any, Task], Any]


def time_allowed(node: KinNode[Any], request: Any) -> float:
    """Return the time that a request allows itself [s]; nonsense is refused later."""
    asked = getattr(request, "timeout", 0.0)
    if asked > 0.0:
        return float(asked)
    wait = getattr(request, "wait", 0.0)
    return node.parameters.default_timeout + (wait if wait > 0.0 else 0.0)


def check_time_limits(node: KinNode[Any], request: Any) -> None:
    """Refuse a request that could hold a worker for as long as it likes."""
    longest = node.parameters.max_timeout
    for name in _TIME_LIMITS:
        asked = getattr(request, name, 0.0)
        if not 0.0 <= asked <= longest:
            raise InvalidInput(
                name,
                f"must be between 0 and {longest:g} s (the node's parameter max_timeout),"
                f" got {asked:g}",
            )


async def answer(
    node: KinNode[Any],
    response_type: type,
    request: Any,
    handler: Handler,
    key: str,
    inline: bool,
    task: Task | None,
) -> Any:
    """Run a handler and return its answer, or an empty one whose status tells what happened.

    Args:
        node: The node that was asked.
        response_type: Class of the answer; it has a field ``status``.
        request: What was asked.
        handler: ``handler(request, task) -> response``.
        key: Names the request in logs and diagnostics.
        inline: Run the handler here instead of in a worker thread.
        task: The task of an action; None makes one.
    """
    start = time.monotonic()
    try:
        if not node.active:
            raise KinError(
                f"the node {node.get_fully_qualified_name()} is not active; activate it first"
            )
        check_time_limits(node, request)
        check_texts(request)
        task = task or Task(time_allowed(node, request))
        if inline:
            response = handler(request, task)
        else:
            response = await node.worker.run(lambda t: handler(request, t), task)
    except Exception as error:
        if not isinstance(error, KinError):
            trace = "".join(traceback.format_exception(error))
            node.get_logger().error(f"{key}:\n{shortened(trace, 8000)}")
        response = response_type()
        fill_status(response.status, error)
        node.diagnostics.count(f"{key} refused")
    status: SolveStatus = response.status
    status.solve_time = time.monotonic() - start
    node.diagnostics.time(key, status.solve_time)
    return response


def make_action_server(
    node: KinNode[Any],
    action: Any,
    name: str,
    handler: Handler,
    feedback: Callable[[Progress], Any],
) -> PatientActionServer:
    """Offer an action with progress and cancel; the arguments are those of ``serve_action``."""
    key = name.removeprefix("~/")
    tasks: dict[bytes, Task] = {}

    def cancel(goal: Any) -> CancelResponse:
        task = tasks.get(bytes(goal.goal_id.uuid))
        if task is not None:
            task.cancel()
        return CancelResponse.ACCEPT

    async def execute(goal: Any) -> Any:
        last = 0.0

        def report(progress: Progress) -> None:
            nonlocal last
            now = time.monotonic()
            if (now - last >= _FEEDBACK_PERIOD or progress.fraction >= 1.0) and goal.is_active:
                last = now
                goal.publish_feedback(feedback(progress))

        task = Task(time_allowed(node, goal.request), report)
        identity = bytes(goal.goal_id.uuid)
        tasks[identity] = task
        if goal.is_cancel_requested:
            task.cancel()
        try:
            result = await answer(node, action.Result, goal.request, handler, key, False, task)
        finally:
            del tasks[identity]
        code = result.status.code
        if goal.is_cancel_requested and code in (
            StatusCode.CANCELLED,
            StatusCode.SUCCESS,
        ):
            goal.canceled()
        elif code == StatusCode.SUCCESS:
            goal.succeed()
        else:
            goal.abort()
        return result

    def accept(_: Any) -> GoalResponse:
        return GoalResponse.ACCEPT

    return PatientActionServer(
        node,
        action,
        name,
        execute,
        callback_group=node.group,
        goal_callback=accept,
        cancel_callback=cancel,
        result_timeout=60,
    )
