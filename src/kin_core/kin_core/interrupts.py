"""Imported first by commands: Ctrl-C while they are still starting is one line, no traceback."""

from __future__ import annotations

import signal
import sys
from types import TracebackType

__all__ = ["quiet_interrupt"]

_usual = sys.excepthook


def quiet_interrupt(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Show every uncaught exception as usual, and the user's own Ctrl-C as one line."""
    if issubclass(kind, KeyboardInterrupt):
        print("kinstack: interrupted", file=sys.stderr)
    else:
        _usual(kind, error, trace)


sys.excepthook = quiet_interrupt
# ./kinstack starts commands with SIGINT blocked: the interpreter answers one during its own start
# with a traceback. One that came meanwhile is delivered now.
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
