"""Threads that never end unseen: none can be made without saying what happens on an exception."""

from __future__ import annotations

import contextlib
import sys
import threading
import traceback
from collections.abc import Callable

__all__ = ["OnError", "last_resort", "report_error", "start_thread"]

#: Told of an exception that nobody else would see.
OnError = Callable[[BaseException], None]


def start_thread(
    name: str, target: Callable[[], object], on_error: OnError, *, daemon: bool = True
) -> threading.Thread:
    """Start a thread; what ``target`` raises goes to ``on_error``.

    Args:
        name: Name of the thread.
        target: What it does.
        on_error: Called in the thread with what ended it.
        daemon: Whether the interpreter may end before it.
    """

    def body() -> None:
        try:
            target()
        except BaseException as error:
            report_error(on_error, error)

    thread = threading.Thread(target=body, name=name, daemon=daemon)
    thread.start()
    return thread


def last_resort(error: BaseException) -> None:
    """Hand an error to the hook of this process for threads that die.

    For libraries, which know no node; a node's process logs it and shows it in the diagnostics.
    """
    arguments = (type(error), error, error.__traceback__, threading.current_thread())
    threading.excepthook(threading.ExceptHookArgs(arguments))


def report_error(on_error: OnError, error: BaseException) -> None:
    """Tell of an error; if the telling fails too, both go to the standard error stream.

    Raises nothing: the caller is the last to see the error.
    """
    try:
        on_error(error)
    except BaseException as second:
        with contextlib.suppress(BaseException):
            traceback.print_exception(error, file=sys.stderr)
            traceback.print_exception(second, file=sys.stderr)
