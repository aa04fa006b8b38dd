"""Which changes of a stack's nodes are worth a line on the screen. No ROS in here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kin_monitor.health import Health, NodeView

__all__ = ["News"]


@dataclass
class _Told:
    """What was last said about a node, and what has happened since."""

    health: Health | None = None
    at: float = float("-inf")
    now: Health | None = None
    changes: int = 0


class News:
    """Tells of a node when it becomes active, and when it is so no more, seldom enough to read.

    Args:
        started: Time at which the stack was started [s].
        calm: Least time between two lines about one node [s]; after it the last change is told,
            with the number of those before.
    """

    def __init__(self, started: float, calm: float = 5.0) -> None:
        self._started = started
        self._calm = calm
        self._told: dict[str, _Told] = {}

    def lines(self, nodes: Iterable[NodeView], now: float) -> list[str]:
        """The lines that are due at the time ``now`` [s]."""
        found = (self._line(node, now) for node in nodes)
        return [line for line in found if line]

    def _line(self, node: NodeView, now: float) -> str:
        told = self._told.setdefault(node.name, _Told())
        if node.health != told.now:
            told.changes += told.now is not None
            told.now = node.health
        if node.health == told.health or now - told.at < self._calm:
            return ""
        if node.health == Health.HEALTHY:
            again = "" if told.health is None else " again"
            words = f"is active{again} ({now - self._started:.1f} s)"
        elif told.health is not None and node.health >= Health.UNHEALTHY:
            words = node.message
        else:
            return ""
        if told.health is not None and told.changes > 1:
            words += f", after {told.changes} changes"
        told.health, told.at, told.changes = node.health, now, 0
        return f"{node.name} {words}"
