"""The log folder of one run, and the screen: where the output of the processes goes."""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
import tempfile
import time
from collections.abc import Mapping
from logging.handlers import RotatingFileHandler
from pathlib import Path

__all__ = ["RunLog", "Screen"]

_COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)
_RED = 31
_LARGEST_LOG = 64 * 1024 * 1024
#: The level in a line that rcutils has formatted, perhaps behind the mark of another launcher.
_LEVEL = re.compile(r"^(?:\[[^\]]*\] )?(?:\x1b\[\d+m)?\[(DEBUG|INFO|WARN|ERROR|FATAL)\] \[")
#: On a quiet screen a line like one before is shown again after so long [s].
_AGAIN = 10.0
_MOST_KINDS = 1000


def _log_root(environment: Mapping[str, str]) -> Path:
    if environment.get("ROS_LOG_DIR"):
        return Path(environment["ROS_LOG_DIR"]).expanduser()
    home = environment.get("ROS_HOME") or str(Path("~/.ros").expanduser())
    return Path(home).expanduser() / "log"


class RunLog:
    """A folder with one log file per process and one for the runner.

    Args:
        environment: Where ROS_LOG_DIR and ROS_HOME are looked up.
        root: Folder to make the run's folder in; by default that of ROS.
    """

    def __init__(self, environment: Mapping[str, str], root: Path | None = None) -> None:
        stamp = time.strftime("%Y-%m-%d-%H-%M-%S")
        name = f"{stamp}-{socket.gethostname()}-{os.getpid()}"
        root = root or _log_root(environment)
        try:
            self.folder = root / name
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            self.folder = Path(tempfile.mkdtemp(prefix="kinstack-log-"))
            root = self.folder.parent
        self._files: dict[str, RotatingFileHandler] = {}
        link = root / "latest"
        try:
            fresh = root / f".latest-{os.getpid()}"
            fresh.symlink_to(self.folder.name)
            fresh.replace(link)
        except OSError:
            return  # a convenience only

    def write(self, stem: str, line: str) -> None:
        """Add a line, with the time, to the log file ``stem``.log; one older part is kept."""
        if stem not in self._files:
            try:
                file = RotatingFileHandler(
                    self.folder / f"{stem}.log",
                    maxBytes=_LARGEST_LOG,
                    backupCount=1,
                    encoding="utf-8",
                    errors="replace",
                )
            except OSError:
                return
            file.setFormatter(logging.Formatter("%(created).6f %(message)s"))
            file.handleError = lambda record: None  # type: ignore[method-assign]  # a full disk
            self._files[stem] = file
        self._files[stem].handle(logging.makeLogRecord({"msg": line}))


class Screen:
    """Lines with a coloured mark in front.

    Args:
        environment: Where FORCE_COLOR and NO_COLOR are looked up.
        quiet: Show only what went wrong, and of many lines that differ in their numbers alone one
            each ten seconds.

    Attributes:
        gone: True once nobody reads any more.
    """

    def __init__(self, environment: Mapping[str, str], *, quiet: bool = False) -> None:
        wanted = sys.stdout.isatty() or bool(environment.get("FORCE_COLOR"))
        self.colours = wanted and not environment.get("NO_COLOR")
        self.quiet = quiet
        self.gone = False
        self._seen: dict[str, int] = {}
        self.kinds: dict[tuple[str, str], float] = {}

    def wants(self, label: str, text: str, *, error: bool) -> bool:
        """Whether a line that a process wrote belongs on this screen."""
        if not self.quiet:
            return True
        level = _LEVEL.match(text)
        if (level is None and not error) or (level and level[1] not in ("ERROR", "FATAL")):
            return False
        kind = (label, re.sub(r"\d+", "#", text))
        now = time.monotonic()
        if now - self.kinds.get(kind, -_AGAIN) < _AGAIN:
            return False
        if len(self.kinds) >= _MOST_KINDS:
            self.kinds.clear()
        self.kinds[kind] = now
        return True

    def _mark(self, label: str, colour: int | None) -> str:
        if not self.colours:
            return f"[{label}]"
        if colour is None:
            colour = self._seen.setdefault(label, _COLOURS[len(self._seen) % len(_COLOURS)])
        return f"\x1b[{colour}m[{label}]\x1b[0m"

    def line(self, label: str, text: str, *, error: bool = False, bad: bool = False) -> None:
        """Write one line.

        Args:
            label: The mark.
            text: The line without its end.
            error: Write to the error stream.
            bad: Mark it in red.
        """
        if self.gone:
            return
        stream = sys.stderr if error else sys.stdout
        try:
            mark = self._mark(label, _RED if bad else None)
            # Over the last line of a terminal, where an address may be kept.
            clear = "\r\x1b[K" if self.quiet and stream.isatty() else ""
            stream.buffer.write(f"{clear}{mark} {text}\n".encode(errors="replace"))
            stream.buffer.flush()
        except (OSError, ValueError):
            self.gone = True
