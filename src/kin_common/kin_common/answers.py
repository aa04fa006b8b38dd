"""Answers that arrive: one whose client the middleware has not found yet is sent again.

A client finds a service before the service finds the client. If the answer is ready in between,
the middleware waits a tenth of a second and then drops it with a warning, and the client waits for
ever. On a busy machine that happens.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from rclpy.clock import Clock, ClockType

__all__ = ["send_until_found"]

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

    def attempt(response: Any, header: Any, pauses: Iterator[float]) -> None:
        if _arrives(send, response, header):
            return
        pause = next(pauses, None)
        if pause is None:
            node.get_logger().warning(f"{server.srv_name}: the client of an answer was not found")
            return

        def again() -> None:
            node.destroy_timer(timer)
            attempt(response, header, pauses)

        timer = node.create_timer(pause, again, clock=Clock(clock_type=ClockType.STEADY_TIME))

    server.send_response = lambda response, header: attempt(response, header, iter(_PAUSES))


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
