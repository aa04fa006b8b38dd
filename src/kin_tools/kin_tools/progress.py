"""Says on the screen what becomes of the nodes of a stack: one line for each change, in words."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Sequence

from diagnostic_msgs.msg import DiagnosticArray

from kin_monitor.graph_watch import GraphWatch
from kin_ros.client import Client
from kin_tools.news import News

__all__ = ["Reporter"]

_PERIOD = 0.2


class Reporter:
    """Watches nodes through a client and prints a line when one changes.

    On a terminal the address of the dashboard stays in the last line; elsewhere it follows the
    line that says that all nodes are active.

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
        self._terminal = sys.stdout.isatty()
        self._addresses: dict[str, str] = {}
        self._footer = ""
        self._news = News(started)
        self._announced = False
        self.ready = False
        self.message = "nothing was seen yet"

    def _heard(self, message: DiagnosticArray) -> None:
        """Pass diagnostics on; a value named ``url`` is an address that people can open."""
        self._watch.heard(message)
        for status in message.status:
            for pair in status.values:
                if pair.key == "url" and pair.value and status.name in self._names:
                    self._addresses[status.name] = pair.value

    def turn(self) -> None:
        """Watch for a moment and print what has changed."""
        self._client.spin_until(lambda: False, _PERIOD)
        view = self._watch.poll()
        mine = [node for node in view.nodes if node.name in self._names]
        for line in self._news.lines(mine, time.monotonic()):
            self._say(f"kinstack: {line}")
        self.ready = view.ready or not self._names
        self.message = view.message
        if self.ready and not self._announced:
            self._announced = True
            count = f"{len(self._names)} node{'s' if len(self._names) != 1 else ''}"
            took = time.monotonic() - self._started
            self._say(f"kinstack: {count} active after {took:.1f} s")
        if self._announced:
            self._show_addresses()

    def _show_addresses(self) -> None:
        """Keep the addresses in the last line of a terminal, or print them once."""
        footer = "; ".join(f"{name} is at {url}" for name, url in self._addresses.items())
        if footer and (footer != self._footer or self._terminal):
            self._footer = footer
            text = f"kinstack: {footer} (Ctrl-C ends the stack)"
            if self._terminal:
                _write(f"\r\x1b[K{text}")
            else:
                _write(f"{text}\n")

    def _say(self, text: str) -> None:
        clear = "\r\x1b[K" if self._terminal and self._footer else ""
        _write(f"{clear}{text}\n")

    def close(self) -> None:
        """Release what the watch uses, and the last line of the terminal."""
        if self._terminal and self._footer:
            _write("\n")
        self._client.node.destroy_subscription(self._subscription)
        self._watch.close()


def _write(text: str) -> None:
    """Write to the screen, if somebody still reads."""
    with contextlib.suppress(OSError):
        sys.stdout.write(text)
        sys.stdout.flush()
