"""Work that must not hold up the one who brings it: one thread, a short queue, the newest win."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from kin_core.threads import OnError, report_error, start_thread

__all__ = ["Mailbox"]

T = TypeVar("T")


class Mailbox(Generic[T]):
    """Handles items one after the other, in order, in a thread of its own.

    ``put`` never waits. If too many items wait, the oldest is dropped: what is handled is always
    among the newest. With a limit of 1 the last one wins.

    Attributes:
        received: Items that were put in while it was open.
        dropped: Items that gave way to newer ones, or were forgotten by ``clear`` or ``close``.
        handled: Items that were handled, also those that raised.
    """

    def __init__(
        self, name: str, handle: Callable[[T], object], *, on_error: OnError, limit: int = 1
    ) -> None:
        """Start no thread yet; it starts with the first item.

        Args:
            name: Name of the thread.
            handle: What to do with an item.
            on_error: Told of what ``handle`` raises; the next item is handled as ever.
            limit: Items that may wait, beside the one that is handled; at least 1.
        """
        if limit < 1:
            raise ValueError(f"the limit must be at least 1, got {limit}")
        self.received = 0
        self.dropped = 0
        self.handled = 0
        self._name = name
        self._handle = handle
        self._on_error = on_error
        self._limit = limit
        self._waiting: deque[T] = deque()
        self._change = threading.Condition()
        self._thread: threading.Thread | None = None
        self._open = True

    def put(self, item: T) -> bool:
        """Add an item; return whether all that waited could stay. Closed, it takes nothing."""
        with self._change:
            if not self._open:
                return True
            self.received += 1
            kept = len(self._waiting) < self._limit
            if not kept:
                self._waiting.popleft()
                self.dropped += 1
            self._waiting.append(item)
            if self._thread is None:
                self._thread = start_thread(self._name, self._run, self._on_error)
            self._change.notify()
        return kept

    def clear(self) -> None:
        """Forget what waits; the item that is handled goes on."""
        with self._change:
            self.dropped += len(self._waiting)
            self._waiting.clear()

    def close(self, timeout: float = 5.0) -> None:
        """Forget what waits, take nothing more, and wait for the end of the thread [s]."""
        with self._change:
            self._open = False
            self.clear()
            thread = self._thread
            self._change.notify()
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def _run(self) -> None:
        while True:
            with self._change:
                while self._open and not self._waiting:
                    self._change.wait()
                if not self._open:
                    return
                item = self._waiting.popleft()
            try:
                self._handle(item)
            except BaseException as error:
                report_error(self._on_error, error)
            finally:
                self.handled += 1
