"""What a node tells of itself on /diagnostics once a second: rates, latencies, values, faults."""

from __future__ import annotations

import math
import socket
import threading
import time
from collections import deque
from dataclasses import dataclass

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from kin_core.texts import shortened

__all__ = ["SHOWN", "Diagnostics", "percentiles"]

#: Samples kept per key: enough for a 99th percentile, small enough to sort each second.
_WINDOW = 1000
#: A fault is shown for at least so long after it was last met, or nobody would see it [s].
SHOWN = 5.0
#: Most faults that are kept; of more, the oldest goes.
_FAULTS = 20


@dataclass
class _Fault:
    text: str
    level: bytes
    seen: float
    ends: float  # monotonic [s], infinite until it is known


def percentiles(samples: list[float]) -> tuple[float, float, float]:
    """Return the 50th, 95th and 99th percentile."""
    p50, p95, p99 = np.percentile(np.asarray(samples), (50.0, 95.0, 99.0))
    return float(p50), float(p95), float(p99)


class Diagnostics:
    """Collects figures from any thread; publishes them at 1 Hz.

    Attributes:
        hardware_id: What the figures are of: a robot, or the machine that the node runs on.
    """

    def __init__(self, node: Node, period: float = 1.0) -> None:
        self.hardware_id = socket.gethostname()
        self._node = node
        self._lock = threading.Lock()
        self._times: dict[str, deque[float]] = {}
        self._counts: dict[str, int] = {}
        self._totals: dict[str, int] = {}
        self._values: dict[str, str] = {}
        self._faults: dict[str, _Fault] = {}
        self._state = "unconfigured"
        self._last = time.monotonic()
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        # A steady clock: a simulation that stands still is no reason to fall silent.
        self._timer = node.create_timer(
            period, self.publish, clock=Clock(clock_type=ClockType.STEADY_TIME)
        )

    def time(self, key: str, seconds: float) -> None:
        """Record how long one request or cycle took [s]; also counts it."""
        with self._lock:
            self._times.setdefault(key, deque(maxlen=_WINDOW)).append(seconds)
            self._add(key, 1)

    def count(self, key: str, n: int = 1) -> None:
        """Count events; their rate and total are published."""
        with self._lock:
            self._add(key, n)

    def value(self, key: str, value: float | str) -> None:
        """Set a figure to its latest value."""
        with self._lock:
            self._values[key] = value if isinstance(value, str) else f"{value:.6g}"

    def fault(
        self, text: str, *, warning: bool = False, source: str = "", lasts: float = math.inf
    ) -> None:
        """Say that something is wrong.

        Args:
            text: What is wrong.
            warning: Whether the node still does what it should.
            source: What it is wrong with; each source has one fault, the last.
            lasts: Time until it is over by itself [s]; ``healthy`` and ``recovered`` end it too.
        """
        level = DiagnosticStatus.WARN if warning else DiagnosticStatus.ERROR
        now = time.monotonic()
        with self._lock:
            self._faults.pop(source, None)
            self._faults[source] = _Fault(shortened(text, 500), level, now, now + lasts)
            while len(self._faults) > _FAULTS:
                del self._faults[next(iter(self._faults))]

    def healthy(self, source: str = "") -> None:
        """Take the fault of a source back at once."""
        with self._lock:
            self._faults.pop(source, None)

    def recovered(self, source: str) -> None:
        """A source works again: its fault ends when it has been shown for some seconds."""
        if source not in self._faults:  # nearly always, and asked for every message
            return
        with self._lock:
            fault = self._faults.get(source)
            if fault is not None:
                fault.ends = min(fault.ends, fault.seen + SHOWN)

    def clear(self) -> None:
        """Take all faults back."""
        with self._lock:
            self._faults.clear()

    def state(self, label: str) -> None:
        """Set the lifecycle state that is published."""
        with self._lock:
            self._state = label

    def status(self) -> DiagnosticStatus:
        """Return the current figures; the rates are those since the last call."""
        now = time.monotonic()
        with self._lock:
            elapsed = max(now - self._last, 1e-9)
            self._last = now
            self._faults = {k: f for k, f in self._faults.items() if now < f.ends}
            faults = sorted(self._faults.values(), key=lambda f: (f.level, f.seen), reverse=True)
            level = faults[0].level if faults else DiagnosticStatus.OK
            values = {"state": self._state, **self._values}
            for key, total in sorted(self._totals.items()):
                values[f"{key} rate [Hz]"] = f"{self._counts.pop(key, 0) / elapsed:.3g}"
                values[f"{key} total"] = str(total)
            times = {key: list(samples) for key, samples in self._times.items()}
            message = shortened("; ".join(f.text for f in faults) or self._state)
        for key, samples in sorted(times.items()):
            p50, p95, p99 = percentiles(samples)
            values[f"{key} p50 [ms]"] = f"{1e3 * p50:.4g}"
            values[f"{key} p95 [ms]"] = f"{1e3 * p95:.4g}"
            values[f"{key} p99 [ms]"] = f"{1e3 * p99:.4g}"
        return DiagnosticStatus(
            level=level,
            name=self._node.get_fully_qualified_name(),
            message=message,
            hardware_id=self.hardware_id,
            values=[KeyValue(key=k, value=v) for k, v in values.items()],
        )

    def publish(self) -> None:
        """Publish now."""
        array = DiagnosticArray(status=[self.status()])
        array.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(array)

    def _add(self, key: str, n: int) -> None:
        self._counts[key] = self._counts.get(key, 0) + n
        self._totals[key] = self._totals.get(key, 0) + n
