"""Answers that arrive: one whose client the middleware has not found yet is sent again.

A client finds a service before the service finds the client. If the answer is ready in between,
the middleware waits a tenth of a second and then drops it with a warning, and the client waits for
ever. On a busy machine that happens. With a goal it is worse: rclpy then keeps it as accepted and
never executes it.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from action_msgs.msg import GoalStatus
from rclpy.action import ActionServer
from rclpy.clock import Clock, ClockType
from rclpy.exceptions import InvalidHandle
from rclpy.impl.implementation_singleton import rclpy_implementation

from kin_ros.bets import Bet

__all__ = ["PatientActionServer", "send_until_found"]

_BET = Bet(
    name="goals and results that are sent again",
    otherwise="the answer of an action whose client is not found yet may be lost",
)

#: Pauses before an answer is sent again [s]; each attempt holds the executor for a tenth of one.
_PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)

#: What the warning of rclpy says of an answer that was dropped.
_DROPPED = "client will not receive response"

#: Warnings belong to the whole process: one executor listens to them at a time.
_LISTENING = threading.Lock()

Send = Callable[[Any, Any], None]


def send_until_found(node: Any, server: Any) -> None:
    """Have a service send an answer again, for some seconds, whose client is not found yet.

    A client that is gone is known to be gone, and not waited for.

    Args:
        node: The node of the service.
        server: The service.
    """
    send: Send = server.send_response

    def insist(response: Any, header: Any) -> None:
        _insist(node, server.srv_name, lambda: _arrives(send, response, header))

    server.send_response = insist


class PatientActionServer(ActionServer):
    """Sends again what it answers to goals and to questions for results.

    A goal is executed when its client has been told that it is accepted. Answers to requests to
    cancel are sent once: their client has been found by then.
    """

    def __init__(self, node: Any, action: Any, name: str, execute: Any, **options: Any) -> None:
        super().__init__(node, action, name, execute, **options)
        self._name = name
        self._insists = _BET.holds(
            (self, "_goal_handles", "_action_type", "_handle", "_node"),
            (ActionServer, "_execute_goal_request", "_send_result_response"),
        )

    async def _execute_goal_request(self, taken: tuple[Any, Any]) -> None:
        if not self._insists:
            await super()._execute_goal_request(taken)
            return
        header, request = taken
        identity = bytes(request.goal_id.uuid)
        known = identity in self._goal_handles
        await super()._execute_goal_request(taken)
        goal = self._goal_handles.get(identity)
        if known or goal is None or goal.status != GoalStatus.STATUS_ACCEPTED:
            return
        # It would be executing, had its answer been sent.
        response = self._action_type.Impl.SendGoalService.Response(accepted=True)
        response.stamp = self._node.get_clock().now().to_msg()
        _insist(
            self._node,
            f"{self._name}, a goal",
            lambda: _sent(lambda: self._handle.send_goal_response(header, response)),
            goal.execute,
        )

    def _send_result_response(self, header: Any, future: Any) -> None:
        if not self._insists:
            super()._send_result_response(header, future)
            return
        _insist(
            self._node,
            f"{self._name}, a result",
            lambda: _sent(lambda: self._handle.send_result_response(header, future.result())),
        )


def _insist(
    node: Any, what: str, send: Callable[[], bool], then: Callable[[], None] | None = None
) -> None:
    """Call ``send`` until it returns True, at once and after each pause; then call ``then``."""

    def attempt(pauses: Iterator[float]) -> None:
        if send():
            if then is not None:
                then()
            return
        pause = next(pauses, None)
        if pause is None:
            node.get_logger().warning(f"{what}: the client of an answer was not found")
            return

        def again() -> None:
            node.destroy_timer(timer)
            attempt(pauses)

        timer = node.create_timer(pause, again, clock=Clock(clock_type=ClockType.STEADY_TIME))

    attempt(iter(_PAUSES))


def _sent(send: Callable[[], None]) -> bool:
    """Send an answer of an action; False if the middleware has not found the client."""
    try:
        send()
    except InvalidHandle:
        return True  # the server is gone, and nobody waits for it
    except rclpy_implementation.RCLError:
        return False
    return True


def _arrives(send: Send, response: Any, header: Any) -> bool:
    """Send, and tell whether the middleware has found the client."""
    with _LISTENING, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        send(response, header)
    dropped = [warning for warning in said if _DROPPED in str(warning.message)]
    for other in said:
        if other not in dropped:
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
    return not dropped
