"""Watches the nodes of a namespace: the graph, their lifecycle states and their diagnostics.

A node that was killed stays in the graph for many seconds (the lease of DDS discovery), so each
node is asked for its lifecycle state several times a second; what counts is its own answer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.srv import GetState
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node

from kin_monitor.health import HealthTracker, StackView

__all__ = ["GraphWatch", "resolve_name"]


def resolve_name(name: str, namespace: str) -> str:
    """The full name of a node that is named relative to a namespace."""
    return name if name.startswith("/") else f"{namespace.rstrip('/')}/{name}"


class GraphWatch:
    """Keeps a :class:`HealthTracker` up to date; call :meth:`poll` some times a second.

    Args:
        node: The node to watch with. One whose name begins with _ is left out, another counts
            itself as active whenever it looks.
        namespace: Nodes in and below this namespace are watched.
        expected: Names of nodes that must be there, relative to the namespace or absolute.
        silence: Longest time without a sign of life [s].
    """

    def __init__(
        self, node: Node, namespace: str, expected: Iterable[str] = (), silence: float = 1.5
    ) -> None:
        self.node = node
        self.namespace = namespace
        self.me = node.get_fully_qualified_name()
        names = {resolve_name(name, namespace) for name in expected} - {self.me}
        self._hidden = node.get_name().startswith("_")
        if names and not self._hidden:
            names.add(self.me)
        self.tracker = HealthTracker(sorted(names), silence)
        self._group = ReentrantCallbackGroup()
        self._clients: dict[str, Any] = {}
        #: When each node was asked [s], and the answer to come.
        self._open: dict[str, tuple[float, Any]] = {}

    def heard(self, message: DiagnosticArray) -> None:
        """Take a message of /diagnostics."""
        now = time.monotonic()
        for status in message.status:
            self.tracker.diagnosed(status.name, status.level[0], status.message, now)

    def poll(self) -> StackView:
        """Look at the graph, ask every node for its state, and judge."""
        now = time.monotonic()
        names = self._names()
        self.tracker.present(names if self._hidden else names | {self.me})
        if not self._hidden:
            self.tracker.answered(self.me, "active", now)
        for name in names:
            self._ask(name, now)
        for name in set(self._clients) - names:
            self._forget(name)
        return self.tracker.view(now)

    def close(self) -> None:
        """Release the clients."""
        for name in list(self._clients):
            self._forget(name)

    def _names(self) -> set[str]:
        prefix = self.namespace.rstrip("/") + "/"
        names = set()
        for name, namespace in self.node.get_node_names_and_namespaces():
            full = f"{namespace.rstrip('/')}/{name}"
            if full.startswith(prefix) and full != self.me and not name.startswith("_"):
                names.add(full)
        return names

    def _ask(self, name: str, now: float) -> None:
        if name not in self._clients:
            self._clients[name] = self.node.create_client(
                GetState, f"{name}/get_state", callback_group=self._group
            )
        client = self._clients[name]
        asked, waiting = self._open.get(name, (-math.inf, None))
        if now - asked < self.tracker.silence:
            return
        if waiting is not None:
            client.remove_pending_request(waiting)
            del self._open[name]
        if client.service_is_ready():
            self.tracker.managed(name)
            self._open[name] = (now, client.call_async(GetState.Request()))
            self._open[name][1].add_done_callback(lambda future: self._answered(name, future))

    def _answered(self, name: str, future: Any) -> None:
        if self._open.get(name, (0.0, None))[1] is future:
            del self._open[name]
        if not future.cancelled() and future.exception() is None:
            self.tracker.answered(name, future.result().current_state.label, time.monotonic())

    def _forget(self, name: str) -> None:
        self._open.pop(name, None)
        self.node.destroy_client(self._clients.pop(name))
