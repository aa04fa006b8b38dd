"""Work that must not hold up whoever brings it: one thread, a short queue, the oldest gives way."""

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

    ``put`` never waits. If too many items wait, the oldest is dropped: what is computed is always
    among the newest. With a limit of 1 the last one wins.
    """

    def __init__(
        self, handle: Callable[[T], object], limit: int, name: str, on_error: OnError
    ) -> None:
        """Start no thread yet; it starts with the first item.

        Args:
            handle: What to do with an item.
            limit: Items that may wait, beside the one that is handled.
            name: Name of the thread.
            on_error: Told of what ``handle`` raises; the next item is handled as ever.
        """
        self._on_error = on_error
        self._handle = handle
        self._limit = limit
        self._name = name
        self._waiting: deque[T] = deque()
        self._change = threading.Condition()
        self._thread: threading.Thread | None = None
        self._open = True

    def put(self, item: T) -> bool:
        """Add an item; return whether all that waited could stay."""
        with self._change:
            if not self._open:
                return True
            kept = len(self._waiting) < self._limit
            if not kept:
                self._waiting.popleft()
            self._waiting.append(item)
            if self._thread is None:
                self._thread = start_thread(self._name, self._run, self._on_error)
            self._change.notify()
        return kept

    def clear(self) -> None:
        """Forget what waits; the item that is handled goes on."""
        with self._change:
            self._waiting.clear()

    def close(self, timeout: float = 5.0) -> None:
        """Forget what waits, take nothing more, and wait for the end of the thread [s]."""
        with self._change:
            self._open = False
            self._waiting.clear()
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
