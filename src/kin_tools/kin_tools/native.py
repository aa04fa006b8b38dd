"""With a sourced ROS 2, ``ros2 launch`` alone reads launch files; we guard and watch it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kin_ros.client import Client

__all__ = ["monitored_names", "native_launcher", "run_native"]


def native_launcher() -> str | None:
    """``ros2`` of a sourced ROS 2, if the wheels are not asked for."""
    if not os.environ.get("ROS_DISTRO") or os.environ.get("KINSTACK_WHEELS") == "1":
        return None
    return shutil.which("ros2")


def run_native(ros2: str, words: Sequence[str], lifeline: int, *, quiet: bool = False) -> int:
    """Have ``ros2 launch`` do it, under the same guard as our own runner; its exit code."""
    from kin_tools.process_spec import ProcessSpec
    from kin_tools.runner import make_supervisor

    # ros2 launch gives its nodes 5 s until SIGTERM and 5 s more until SIGKILL.
    spec = ProcessSpec(
        "ros2",
        (ros2, "launch", *words),
        output="screen",
        sigterm_timeout=12.0,
        sigkill_timeout=5.0,
    )
    return make_supervisor([spec], lifeline, quiet=quiet).run()


def monitored_names(client: Client, namespace: str, stop: Callable[[], bool]) -> list[str]:
    """Full names of the nodes that the stack monitor expects; if it expects none, those it sees.

    Args:
        client: Listens.
        namespace: Namespace of the stack; empty for none.
        stop: Ends the waiting when it returns True; then there are no names.
    """
    from kin_interfaces.msg import StackState

    from kin_ros.qos import LATCHED

    heard: list[StackState] = []
    topic = f"{namespace}/stack_state"
    subscription = client.node.create_subscription(StackState, topic, heard.append, LATCHED)
    try:
        client.spin_until(lambda: bool(heard), float("inf"), stop)
    finally:
        client.node.destroy_subscription(subscription)
    nodes = heard[-1].nodes if heard else []
    return [node.name for node in nodes if node.expected] or [node.name for node in nodes]
