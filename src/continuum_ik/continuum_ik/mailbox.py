"""One place for one target: whoever puts in replaces what is there; one thread takes out."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from continuum_ik.rod import Array
from kin_core.threads import report_error, start_thread


@dataclass(frozen=True, eq=False)
class Target:
    """A pose that is asked for.

    Attributes:
        pose: Position and quaternion (7), or 12 numbers.
        stamp: When it was meant for [s].
        arrived: When it arrived, monotonic [s].
    """

    pose: Array
    stamp: float
    arrived: float


class Mailbox:
    """The latest target, and a thread that deals with it; earlier ones not taken are superseded."""

    def __init__(
        self, deal_with: Callable[[Target], object], on_error: Callable[[BaseException], None]
    ) -> None:
        """Start no thread yet.

        Args:
            deal_with: What to do with a target.
            on_error: Told of what ``deal_with`` raises; the next target is taken as ever.
        """
        self._deal_with = deal_with
        self._on_error = on_error
        self._ready = threading.Condition()
        self._latest: Target | None = None
        self._stop = False
        self._thread: threading.Thread | None = None
        self.received = 0
        self.superseded = 0
        self.taken = 0

    def start(self) -> None:
        """Start the thread."""
        self._stop = False
        self._thread = start_thread("tracking", self._run, self._on_error)

    def stop(self) -> None:
        """End the thread after the target at hand."""
        with self._ready:
            self._stop = True
            self._latest = None
            self._ready.notify()
        if self._thread is not None:
            self._thread.join(5.0)
            self._thread = None

    def put(self, target: Target) -> None:
        """Hand in a target; the last one wins."""
        with self._ready:
            self.received += 1
            if self._latest is not None:
                self.superseded += 1
            self._latest = target
            self._ready.notify()

    def _run(self) -> None:
        while True:
            with self._ready:
                while self._latest is None and not self._stop:
                    self._ready.wait()
                if self._stop:
                    return
                target, self._latest = self._latest, None
            try:
                assert target is not None  # noqa: S101 (told to mypy)
                self._deal_with(target)
            except BaseException as error:
                report_error(self._on_error, error)
            finally:
                self.taken += 1
