"""What is known about the nodes of a stack, and what follows from it. No ROS in here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

__all__ = ["Health", "NodeView", "HealthTracker", "StackView"]


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
    health: Health = Health.MISSING
    expected: bool = True
    lifecycle: str = ""
    level: int = 0
    silent_for: float = -1.0
    restarts: int = 0
    message: str = "is missing"


@dataclass(frozen=True)
class StackView:
    """All nodes at one moment."""

    nodes: tuple[NodeView, ...]
    ready: bool
    message: str

    @classmethod
    def of(cls, nodes: Sequence[NodeView], counted: Sequence[NodeView]) -> StackView:
        """Judge by those that count: it is ready if there are any, and all are well."""
        bad = [f"{node.name} {node.message}" for node in counted if node.health != Health.HEALTHY]
        message = f"{len(counted) - len(bad)} of {len(counted)} nodes ready"
        return cls(tuple(nodes), bool(counted) and not bad, "; ".join([message, *bad]))

    def among(self, names: Iterable[str]) -> StackView:
        """The same of these nodes alone; one that nobody has seen is missing."""
        known = {node.name: replace(node, expected=True) for node in self.nodes}
        chosen = [known.get(name) or NodeView(name) for name in names]
        return StackView.of(chosen, chosen)

    def names(self, health: Health) -> list[str]:
        """Names of the expected nodes that are so."""
        return [node.name for node in self.nodes if node.expected and node.health == health]


class _Record:
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


class HealthTracker:
    """Collects signs of life and judges them.

    A node that was active and gives no sign for longer than ``silence`` is silent. One that is
    still on its way to active may be busy (compiling, allocating) and counts as starting, and so
    does one of which it is not known yet whether it has a lifecycle. Time in which the tracker
    itself was not looked at, because the machine stood still, is not held against the nodes.

    Args:
        expected: Full names of nodes that must be there. With none, all nodes that have a
            lifecycle count.
        silence: Longest time without a sign of life [s].
    """

    def __init__(self, expected: Iterable[str] = (), silence: float = 1.5) -> None:
        self.expected = tuple(dict.fromkeys(expected))
        self.silence = silence
        self._records: dict[str, _Record] = {name: _Record() for name in self.expected}
        self._viewed: float | None = None

    def _record(self, name: str) -> _Record:
        return self._records.setdefault(name, _Record())

    def present(self, names: Iterable[str]) -> None:
        """Set which nodes the graph shows now."""
        there = set(names)
        for name in there:
            self._record(name).present = True
        for name in list(self._records):
            if name in there:
                continue
            record = self._records[name]
            record.present = False
            record.seen_first = None
            if name not in self.expected:
                del self._records[name]
            elif record.last_sign is not None:
                record.lost = True
                record.lifecycle, record.was_active, record.level = "", False, 0
                record.diagnosis = ""

    def managed(self, name: str) -> None:
        """Note that a node has a lifecycle."""
        self._record(name).managed = True

    def answered(self, name: str, lifecycle: str, now: float) -> None:
        """Note a node's own answer about its lifecycle state."""
        record = self._record(name)
        if record.lost:
            record.lost = False
            record.restarts += 1
            record.was_active = False
        record.managed = True
        record.lifecycle = lifecycle
        record.was_active = record.was_active or lifecycle == "active"
        record.last_sign = now

    def diagnosed(self, name: str, level: int, message: str, now: float) -> None:
        """Note a diagnostic message; those of nodes that nobody knows are dropped."""
        record = self._records.get(name)
        if record is None:
            return
        record.level, record.diagnosis, record.last_sign = level, message, now

    def view(self, now: float) -> StackView:
        """Judge everything at the time ``now`` [s]."""
        self._forgive(now)
        nodes = [self._judge(name, now) for name in sorted(self._records)]
        if self.expected:
            return StackView.of(nodes, [node for node in nodes if node.expected])
        return StackView.of(nodes, [node for node in nodes if self._records[node.name].managed])

    def _forgive(self, now: float) -> None:
        """Take a pause of the watcher itself off every silence, if it is longer than that."""
        pause = 0.0 if self._viewed is None else now - self._viewed
        self._viewed = now
        if pause <= self.silence:
            return
        for record in self._records.values():
            if record.last_sign is not None:
                record.last_sign = min(now, record.last_sign + pause)

    def _judge(self, name: str, now: float) -> NodeView:
        record = self._records[name]
        silent_for = -1.0 if record.last_sign is None else max(0.0, now - record.last_sign)
        if record.present and record.seen_first is None:
            record.seen_first = now
        health, message = self._health(record, silent_for, now)
        if health == Health.SILENT:
            record.lost = True
        return NodeView(
            name=name,
            health=health,
            expected=name in self.expected,
            lifecycle=record.lifecycle,
            level=record.level,
            silent_for=silent_for,
            restarts=record.restarts,
            message=message,
        )

    def _health(self, record: _Record, silent_for: float, now: float) -> tuple[Health, str]:
        if not record.present:
            return Health.MISSING, "is missing"
        if (
            not record.managed
            and now - (now if record.seen_first is None else record.seen_first) < 2.0 * self.silence
        ):
            # A node is in the graph before its services are: it may have a lifecycle yet.
            return Health.STARTING, "is starting"
        if record.managed and (record.last_sign is None or silent_for > self.silence):
            if record.was_active:
                return Health.SILENT, f"is silent for {silent_for:.1f} s"
            return Health.STARTING, "is starting"
        if record.level >= _ERROR:
            return Health.UNHEALTHY, f"is unhealthy: {record.diagnosis or 'error'}"
        if record.lifecycle == "finalized":
            return Health.UNHEALTHY, "is finalized"
        if record.managed and record.lifecycle != "active":
            return Health.STARTING, f"is {record.lifecycle or 'starting'}"
        if record.level == _WARN:
            return Health.HEALTHY, f"warns: {record.diagnosis}"
        return Health.HEALTHY, "is active" if record.managed else "is there"
