"""Says on the screen what becomes of the nodes of a stack: one line for each change."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from diagnostic_msgs.msg import DiagnosticArray

from kin_tools.client import Client
from kin_tools.graph_watch import GraphWatch
from kin_tools.stack_book import Health, NodeView

__all__ = ["Reporter"]

_PERIOD = 0.2


def _say(text: str) -> None:
    """Print a line, if somebody still reads."""
    with contextlib.suppress(OSError):
        print(text, flush=True)


class Reporter:
    """Watches nodes through a client and prints a line whenever one changes.

    Args:
        client: The client to watch with.
        names: Full names of the nodes.
        started: Monotonic time at which the stack was started [s].
    """

    def __init__(self, client: Client, names: Sequence[str], started: float) -> None:
        self._client = client
        self._names = set(names)
        self._started = started
        self._watch = GraphWatch(client.node, "/", names)
        self._subscription = client.node.create_subscription(
            DiagnosticArray, "/diagnostics", self._heard, 10
        )
        self._addresses: set[str] = set()
        self._last: dict[str, Health] = {}
        self._announced = False
        self.ready = False
        self.message = "nothing was seen yet"

    def _heard(self, message: DiagnosticArray) -> None:
        """Pass diagnostics on; a value named ``url`` is an address that people can open."""
        self._watch.heard(message)
        for status in message.status:
            for pair in status.values:
                if pair.key == "url" and pair.value and status.name in self._names:
                    if pair.value not in self._addresses:
                        _say(f"kinstack: {status.name} is at {pair.value}")
                    self._addresses.add(pair.value)

    def turn(self) -> None:
        """Watch for a moment and print what has changed."""
        self._client.spin_until(lambda: False, _PERIOD)
        view = self._watch.poll()
        for node in view.nodes:
            if node.name in self._names:
                self._report(node)
        self.ready = view.ready or not self._names
        self.message = view.message
        if self.ready and not self._announced:
            self._announced = True
            count = f"{len(self._names)} node{'s' if len(self._names) != 1 else ''}"
            _say(f"kinstack: {count} active after {self._elapsed():.1f} s")
        elif not self.ready:
            self._announced = False

    def _report(self, node: NodeView) -> None:
        before = self._last.get(node.name)
        self._last[node.name] = node.health
        if node.health == before:
            return
        if node.health == Health.HEALTHY:
            _say(f"kinstack: {node.name} is active ({self._elapsed():.1f} s)")
        elif before is not None and node.health >= Health.UNHEALTHY:
            _say(f"kinstack: {node.name} {node.message}")

    def _elapsed(self) -> float:
        return time.monotonic() - self._started

    def close(self) -> None:
        """Release what the watch uses."""
        self._client.node.destroy_subscription(self._subscription)
        self._watch.close()
