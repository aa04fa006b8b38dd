"""Imported first by commands: Ctrl-C while they are still starting is no reason for a traceback."""

from __future__ import annotations

import sys
from types import TracebackType

__all__ = ["quiet_interrupt"]

_usual = sys.excepthook


def quiet_interrupt(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Show every uncaught exception as usual, except the user's own Ctrl-C."""
    if not issubclass(kind, KeyboardInterrupt):
        _usual(kind, error, trace)


sys.excepthook = quiet_interrupt
