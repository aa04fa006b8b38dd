"""What nodes survive: callbacks that report what they raise, and the one place they report to."""

from __future__ import annotations

import math
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, Protocol

from kin_core.errors import KinError
from kin_core.texts import shortened
from kin_ros.diagnostics import Diagnostics

__all__ = ["FailureLog", "Guarded", "Reporter"]

#: Failures that are remembered so that they are not logged at every tick.
_REMEMBERED = 100


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


class FailureLog:
    """Logs failures, each kind at most every few seconds, and shows them in the diagnostics.

    Args:
        logger: Gets the lines.
        diagnostics: Shows them.
        pause: The same failure is logged again after so long, with a count of those between [s].
    """

    def __init__(self, logger: Any, diagnostics: Diagnostics, pause: float = 5.0) -> None:
        self._logger = logger
        self._diagnostics = diagnostics
        self._pause = pause
        self._logged: dict[tuple[str, type, str], tuple[float, int]] = {}
        self._lock = threading.Lock()

    def failed(self, what: str, error: BaseException, *, lasts: float = math.inf) -> None:
        """Log a failure that the node survives and show it in the diagnostics; any thread.

        Args:
            what: What failed.
            error: What it raised.
            lasts: How long the failure counts if nothing of that name goes well [s].
        """
        foreseen = isinstance(error, KinError)
        said = str(error) if foreseen else f"{type(error).__name__}: {error}"
        text = shortened(f"{what}: {said}", 500)
        self._diagnostics.fault(text, warning=foreseen, source=what, lasts=lasts)
        self._diagnostics.count(f"{shortened(what, 100)} failed")
        key = (what, type(error), said[:100])
        now = time.monotonic()
        with self._lock:
            last, kept_back = self._logged.pop(key, (-math.inf, 0))
            quiet = now - last < self._pause
            self._logged[key] = (last, kept_back + 1) if quiet else (now, 0)
            while len(self._logged) > _REMEMBERED:
                del self._logged[next(iter(self._logged))]
        if quiet:
            return
        again = f" ({kept_back} more since it was last logged)" if kept_back else ""
        if foreseen:
            self._logger.warning(f"{text}{again}")
        else:
            trace = "".join(traceback.format_exception(error))
            self._logger.error(f"{what}{again}:\n{shortened(trace, 8000)}")
