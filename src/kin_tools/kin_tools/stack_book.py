"""What is known about the nodes of a stack, and what follows from it. No ROS in here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

__all__ = ["Health", "NodeView", "StackBook", "StackView"]


class Health(IntEnum):
    """How a node is; the numbers are those of ``kin_interfaces/NodeState``."""

    HEALTHY = 0
    STARTING = 1
    UNHEALTHY = 2
    SILENT = 3
    MISSING = 4


#: Levels of diagnostic_msgs/DiagnosticStatus.
_WARN, _ERROR = 1, 2


@dataclass(frozen=True)
class NodeView:
    """One node at one moment.

    Attributes:
        name: Full name.
        health: How it is.
        expected: Whether it must be there.
        lifecycle: Lifecycle state; empty if it is unknown or the node has none.
        level: Worst level of its last diagnostics.
        silent_for: Time since its last sign of life [s]; -1 if there was none.
        restarts: How often it has come back.
        message: A sentence.
    """

    name: str
    health: Health
    expected: bool
    lifecycle: str
    level: int
    silent_for: float
    restarts: int
    message: str


@dataclass(frozen=True)
class StackView:
    """All nodes at one moment."""

    nodes: tuple[NodeView, ...]
    ready: bool
    message: str

    def names(self, health: Health, among: Iterable[str] | None = None) -> list[str]:
        """Names of the nodes that are so; only expected ones unless ``among`` names others."""
        chosen = None if among is None else set(among)
        return [
            node.name
            for node in self.nodes
            if node.health == health and (node.expected if chosen is None else node.name in chosen)
        ]


class _Page:
    """What is known about one node."""

    def __init__(self) -> None:
        self.present = False
        self.seen_first: float | None = None
        self.lifecycle = ""
        self.managed = False
        self.was_active = False
        self.last_sign: float | None = None
        self.level = 0
        self.diagnosis = ""
        self.restarts = 0
        self.lost = False


class StackBook:
    """Collects signs of life and judges them.

    A node that was active and gives no sign for longer than ``silence`` is silent. One that is
    still on its way to active may be busy (compiling, allocating) and counts as starting, and so
    does one of which it is not known yet whether it has a lifecycle. Time in which this book itself
    was not looked at, because the machine stood still, is not held against the nodes.

    Args:
        expected: Full names of nodes that must be there. With none, all nodes that have a
            lifecycle count.
        silence: Longest time without a sign of life [s].
    """

    def __init__(self, expected: Iterable[str] = (), silence: float = 1.5) -> None:
        self.expected = tuple(dict.fromkeys(expected))
        self.silence = silence
        self._pages: dict[str, _Page] = {name: _Page() for name in self.expected}
        self._viewed: float | None = None

    def _page(self, name: str) -> _Page:
        return self._pages.setdefault(name, _Page())

    def present(self, names: Iterable[str]) -> None:
        """Set which nodes the graph shows now."""
        there = set(names)
        for name in there:
            self._page(name).present = True
        for name in list(self._pages):
            if name in there:
                continue
            page = self._pages[name]
            page.present = False
            page.seen_first = None
            if name not in self.expected:
                del self._pages[name]
            elif page.last_sign is not None:
                page.lost = True
                page.lifecycle, page.was_active, page.level = "", False, 0
                page.diagnosis = ""

    def managed(self, name: str) -> None:
        """Note that a node has a lifecycle."""
        self._page(name).managed = True

    def answered(self, name: str, lifecycle: str, now: float) -> None:
        """Note a node's own answer about its lifecycle state."""
        page = self._page(name)
        if page.lost:
            page.lost = False
            page.restarts += 1
            page.was_active = False
        page.managed = True
        page.lifecycle = lifecycle
        page.was_active = page.was_active or lifecycle == "active"
        page.last_sign = now

    def diagnosed(self, name: str, level: int, message: str, now: float) -> None:
        """Note a diagnostic message; those of nodes that nobody knows are dropped."""
        page = self._pages.get(name)
        if page is None:
            return
        page.level, page.diagnosis, page.last_sign = level, message, now

    def view(self, now: float) -> StackView:
        """Judge everything at the time ``now`` [s]."""
        self._forgive(now)
        nodes = tuple(self._judge(name, now) for name in sorted(self._pages))
        counted = [node for node in nodes if node.expected]
        if not self.expected:
            counted = [node for node in nodes if self._pages[node.name].managed]
        good = [node for node in counted if node.health == Health.HEALTHY]
        ready = bool(counted) and len(good) == len(counted)
        message = f"{len(good)} of {len(counted)} nodes ready"
        bad = [f"{node.name} {node.message}" for node in counted if node.health != Health.HEALTHY]
        return StackView(nodes, ready, "; ".join([message, *bad]))

    def _forgive(self, now: float) -> None:
        """Take a pause of the watcher itself off every silence, if it is longer than that."""
        pause = 0.0 if self._viewed is None else now - self._viewed
        self._viewed = now
        if pause <= self.silence:
            return
        for page in self._pages.values():
            if page.last_sign is not None:
                page.last_sign = min(now, page.last_sign + pause)

    def _judge(self, name: str, now: float) -> NodeView:
        page = self._pages[name]
        silent_for = -1.0 if page.last_sign is None else max(0.0, now - page.last_sign)
        if page.present and page.seen_first is None:
            page.seen_first = now
        health, message = self._health(page, silent_for, now)
        if health == Health.SILENT:
            page.lost = True
        return NodeView(
            name=name,
            health=health,
            expected=name in self.expected,
            lifecycle=page.lifecycle,
            level=page.level,
            silent_for=silent_for,
            restarts=page.restarts,
            message=message,
        )

    def _health(self, page: _Page, silent_for: float, now: float) -> tuple[Health, str]:
        if not page.present:
            return Health.MISSING, "is missing"
        if (
            not page.managed
            and now - (now if page.seen_first is None else page.seen_first) < 2.0 * self.silence
        ):
            # A node is in the graph before its services are: it may have a lifecycle yet.
            return Health.STARTING, "is starting"
        if page.managed and (page.last_sign is None or silent_for > self.silence):
            if page.was_active:
                return Health.SILENT, f"is silent for {silent_for:.1f} s"
            return Health.STARTING, "is starting"
        if page.level >= _ERROR:
            return Health.UNHEALTHY, f"is unhealthy: {page.diagnosis or 'error'}"
        if page.lifecycle == "finalized":
            return Health.UNHEALTHY, "is finalized"
        if page.managed and page.lifecycle != "active":
            return Health.STARTING, f"is {page.lifecycle or 'starting'}"
        if page.level == _WARN:
            return Health.HEALTHY, f"warns: {page.diagnosis}"
        return Health.HEALTHY, "is active" if page.managed else "is there"
