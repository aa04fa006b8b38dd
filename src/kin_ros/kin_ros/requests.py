"""Requests: how a service or an action of a node is answered, always with a status or a code."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rclpy.action import CancelResponse, GoalResponse

from kin_core.errors import InvalidInput, KinError, StatusCode
from kin_core.task import Progress, Task
from kin_core.texts import shortened
from kin_ros.answers import PatientActionServer
from kin_ros.bounds import check_texts
from kin_ros.status import fill_status

if TYPE_CHECKING:
    from kin_ros.node import KinNode

__all__ = ["OWN", "Handler", "Manner", "answer", "make_action_server"]

#: Feedback is sent at most this often [s].
_FEEDBACK_PERIOD = 0.05

Handler = Callable[[Any, Task], Any]


@dataclass(frozen=True)
class Manner:
    """How an interface says how long a request may take, and what became of it.

    Attributes:
        limits: The times that a request names [s], by their fields; 0 for one that is not given.
            "wait" adds to the time that a request may take, every other one is that time.
        refuse: ``refuse(response, error)`` writes an error into an empty answer.
    """

    limits: Callable[[Any], Mapping[str, float]]
    refuse: Callable[[Any, BaseException], None]


#: The interfaces of this project: fields ``timeout`` and ``wait``, and a ``status``.
OWN = Manner(
    lambda request: {name: getattr(request, name, 0.0) for name in ("timeout", "wait")},
    lambda response, error: fill_status(response.status, error),
)


def time_allowed(node: KinNode[Any], request: Any, manner: Manner = OWN) -> float:
    """Return the time that a request allows itself [s]; nonsense is refused later."""
    limits = dict(manner.limits(request))
    wait = max(0.0, limits.pop("wait", 0.0))
    asked = [float(limit) for limit in limits.values() if limit > 0.0]
    return asked[0] if asked else node.parameters.default_timeout + wait


def check_time_limits(node: KinNode[Any], request: Any, manner: Manner) -> None:
    """Refuse a request that could hold a worker for as long as it likes."""
    longest = node.parameters.max_timeout
    for name, asked in manner.limits(request).items():
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
    manner: Manner = OWN,
) -> Any:
    """Run a handler and return its answer, or an empty one that tells what happened.

    Args:
        node: The node that was asked.
        response_type: Class of the answer.
        request: What was asked.
        handler: ``handler(request, task) -> response``.
        key: Names the request in logs and diagnostics.
        inline: Run the handler here instead of in a worker thread.
        task: The task of an action; None makes one.
        manner: Of the interface.
    """
    start = time.monotonic()
    try:
        if not node.active:
            raise KinError(
                f"the node {node.get_fully_qualified_name()} is not active; activate it first"
            )
        check_time_limits(node, request, manner)
        check_texts(request)
        task = task or Task(time_allowed(node, request, manner))
        if inline:
            response = handler(request, task)
        else:
            response = await node.worker.run(lambda t: handler(request, t), task)
    except Exception as error:
        if not isinstance(error, KinError):
            trace = "".join(traceback.format_exception(error))
            node.get_logger().error(f"{key}:\n{shortened(trace, 8000)}")
        response = response_type()
        manner.refuse(response, error)
        node.diagnostics.count(f"{key} refused")
    taken = time.monotonic() - start
    if hasattr(response, "status"):
        response.status.solve_time = taken
    node.diagnostics.time(key, taken)
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
        callback_group=node.reentrant_group,
        goal_callback=accept,
        cancel_callback=cancel,
        result_timeout=60,
    )
