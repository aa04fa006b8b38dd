"""The thread of control of one long computation: deadline, cancel and progress.

A library function takes ``task: Task | None`` and calls ``check`` between steps; a compiled kernel
polls ``flag[0]``. Neither knows of ROS.
"""

from __future__ import annotations

import heapq
import itertools
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kin_core.errors import Cancelled, SolveTimeout
from kin_core.threads import last_resort, report_error, start_thread

__all__ = ["GO", "STOP_CANCELLED", "STOP_TIMEOUT", "AlarmClock", "Progress", "Task"]

GO, STOP_CANCELLED, STOP_TIMEOUT = 0, 1, 2


@dataclass(frozen=True)
class Progress:
    """How far a task has come.

    Attributes:
        fraction: Share of the work that is done, 0 to 1.
        message: What is going on, for people.
        counters: Figures with names, such as boxes queued.
    """

    fraction: float
    message: str = ""
    counters: dict[str, float] = field(default_factory=dict)


#: Longest wait in one piece [s].
_LONGEST_WAIT = 3600.0


class AlarmClock:
    """Calls functions at given times from one thread, which starts with the first alarm.

    A ``threading.Timer`` per request would cost a thread per request.
    """

    def __init__(self) -> None:
        self._ready = threading.Condition()
        self._due: list[tuple[float, int]] = []
        self._rings: dict[int, Callable[[], None]] = {}
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None

    def set(self, when: float, ring: Callable[[], None]) -> int:
        """Have ``ring`` called at the monotonic time ``when`` [s]; the answer is for ``drop``."""
        with self._ready:
            number = next(self._numbers)
            self._rings[number] = ring
            heapq.heappush(self._due, (when, number))
            if self._thread is None or not self._thread.is_alive():
                self._thread = start_thread("alarms", self._run, last_resort)
            elif self._due[0][1] == number:
                self._ready.notify()
            return number

    def __len__(self) -> int:
        """Alarms that are kept, dropped ones that were not yet forgotten among them."""
        return len(self._due)

    def drop(self, number: int) -> None:
        """Take an alarm back; harmless if it has rung."""
        with self._ready:
            self._rings.pop(number, None)
            # Dropped alarms leave the heap when they come due, or here when they are the most of
            # it.
            if len(self._due) > 2 * len(self._rings) + 64:
                self._due = [entry for entry in self._due if entry[1] in self._rings]
                heapq.heapify(self._due)

    def _run(self) -> None:
        while True:
            with self._ready:
                while self._due and self._due[0][1] not in self._rings:
                    heapq.heappop(self._due)
                if not self._due:
                    self._ready.wait()
                    continue
                when, number = self._due[0]
                left = when - time.monotonic()
                if left > 0.0:
                    # The system's waits know no centuries.
                    self._ready.wait(min(left, _LONGEST_WAIT))
                    continue
                heapq.heappop(self._due)
                ring = self._rings.pop(number)
            try:
                ring()
            except BaseException as error:  # the alarms of others must still ring
                report_error(last_resort, error)


#: The alarm clock of this process.
ALARMS = AlarmClock()


class Task:
    """One computation that can be cancelled, can run out of time, and reports progress."""

    def __init__(
        self,
        timeout: float | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        """Start the clock.

        Args:
            timeout: Time allowed [s]; None for no limit.
            on_progress: Called from the computing thread with each progress report.
        """
        self.flag: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        self.started = time.monotonic()
        #: The monotonic time at which it runs out of time [s]; may be infinite.
        self.deadline = math.inf if timeout is None else self.started + timeout
        self._timeout = timeout
        self._on_progress = on_progress
        self._alarm: int | None = None

    def cancel(self) -> None:
        """Ask the computation to stop. Safe from any thread, at any time."""
        if self.flag[0] == GO:
            self.flag[0] = STOP_CANCELLED

    def elapsed(self) -> float:
        """Time since the task was made [s]."""
        return time.monotonic() - self.started

    @property
    def stopped(self) -> bool:
        """Whether the computation should end now."""
        self._look_at_clock()
        return bool(self.flag[0] != GO)

    def check(self) -> None:
        """Raise Cancelled or SolveTimeout if the computation should end now."""
        self._look_at_clock()
        if self.flag[0] == STOP_CANCELLED:
            raise Cancelled("cancelled by the caller")
        if self.flag[0] == STOP_TIMEOUT:
            raise SolveTimeout(f"not finished within the {self._timeout:g} s that were allowed")

    def progress(self, fraction: float, message: str = "", **counters: float) -> None:
        """Report progress; cheap when nobody listens."""
        if self._on_progress is not None:
            clipped = min(1.0, max(0.0, float(fraction))) if math.isfinite(fraction) else 0.0
            self._on_progress(Progress(clipped, message, dict(counters)))

    def __enter__(self) -> Task:
        """Watch the clock from another thread, so that a compiled kernel sees the flag too."""
        if math.isfinite(self.deadline):
            self._alarm = ALARMS.set(self.deadline, self._ring)
        return self

    def __exit__(self, *_: object) -> None:
        if self._alarm is not None:
            ALARMS.drop(self._alarm)
            self._alarm = None

    def _ring(self) -> None:
        if self.flag[0] == GO:
            self.flag[0] = STOP_TIMEOUT

    def _look_at_clock(self) -> None:
        if self.flag[0] == GO and time.monotonic() >= self.deadline:
            self.flag[0] = STOP_TIMEOUT
