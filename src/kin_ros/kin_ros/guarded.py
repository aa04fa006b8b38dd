"""Callbacks that report what they raise and are called again the next time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["Guarded", "Reporter"]


class Reporter(Protocol):
    """Who is told of failures: a node."""

    def failed(self, what: str, error: BaseException, *, lasts: float = ...) -> None:
        """Something that must not take the node down raised an error."""

    def recovered(self, what: str) -> None:
        """It went well again."""


class Guarded:
    """A callable that never raises; every timer, loop and subscription of a node is one.

    Attributes:
        what: Names it in the log, the diagnostics and the stack monitor.
        action: What it calls; a test may put a failing one in its place.
        failures: How often it raised.
    """

    def __init__(
        self, what: str, action: Callable[..., Any], reporter: Reporter, lasts: float
    ) -> None:
        """Prepare it.

        Args:
            what: Its name.
            action: What to call.
            reporter: Is told of what it raises.
            lasts: How long a failure counts if it is not called again [s].
        """
        self.what = what
        self.action = action
        self.failures = 0
        self._reporter = reporter
        self._lasts = lasts

    def __call__(self, *arguments: Any) -> bool:
        """Call the action; return whether it went well."""
        try:
            self.action(*arguments)
        except Exception as error:
            self.failures += 1
            self._reporter.failed(self.what, error, lasts=self._lasts)
            return False
        self._reporter.recovered(self.what)
        return True
