"""Two processes that outlive each other: whichever is killed, the other ends all children.

The front is what the user or a script started and may kill; the supervisor starts the children.
Both are "subreapers" (prctl(2)): a process whose parent dies becomes their child instead of init's,
so everything that was ever started below them can be found. If the front is killed, the
supervisor reads the end of a pipe and stops its children in order; if the supervisor is killed,
its children have become the front's, which ends them. If both are killed in the same instant, the
kernel ends the direct children (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable

import psutil

__all__ = [
    "FORWARDED",
    "Front",
    "become_subreaper",
    "die_with_parent",
    "end_descendants",
]

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)

#: Signals that ask for an orderly end.
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def become_subreaper() -> None:
    """Adopt the orphans among the descendants of this process."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the process ``parent`` that forked it ends.

    Runs between fork and exec, so it does nothing but two system calls.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it has ended before the line above
        os._exit(125)


def end_descendants(patience: float = 1.0) -> list[int]:
    """End everything below this process: SIGTERM, then SIGKILL for what is left.

    Args:
        patience: Time from SIGTERM to SIGKILL [s].

    Returns:
        The process ids that were ended.
    """
    ended: set[int] = set()
    started = time.monotonic()
    while True:
        # Orphans have become our children, so waiting collects them too.
        _, alive = psutil.wait_procs(psutil.Process().children(recursive=True), timeout=0.0)
        waited = time.monotonic() - started
        if not alive or waited > patience + 5.0:  # in an uninterruptible wait of the kernel
            return sorted(ended)
        for child in alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                if waited >= patience:
                    child.kill()
                elif child.pid not in ended:
                    child.terminate()
            ended.add(child.pid)
        time.sleep(0.02)


class Front:
    """The front's side: forks the supervisor, passes signals on, and cleans up behind it.

    Make it before there are threads: it forks.

    Args:
        supervise: Runs in the supervisor with the descriptor of the life line, which becomes
            readable when the front is gone; its result is the supervisor's exit code.
    """

    def __init__(self, supervise: Callable[[int], int]) -> None:
        become_subreaper()
        lifeline, self._hold = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                os.close(self._hold)
                os.setsid()  # out of the terminal's group: Ctrl-C comes once, through the front
                code = supervise(lifeline)
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                for stream in (sys.stdout, sys.stderr):
                    with contextlib.suppress(OSError):
                        stream.flush()
                os._exit(code)
        os.close(lifeline)
        self._code: int | None = None
        self.signalled: list[int] = []
        for number in FORWARDED:
            signal.signal(number, self._forward)

    def _forward(self, number: int, _frame: object) -> None:
        self.signalled.append(number)
        self.send(number)

    def send(self, number: int) -> None:
        """Send a signal to the supervisor, if it still runs."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def poll(self) -> int | None:
        """The supervisor's exit code, None while it runs."""
        if self._code is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                pid, status = self.pid, 0x100
            if pid == self.pid:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def finish(self) -> int:
        """Wait for the supervisor to end, end what it left behind, and return an exit code."""
        while (code := self.poll()) is None:
            time.sleep(0.02)
        left = end_descendants()
        if code < 0:
            print(
                f"[launch] the supervisor was ended by {signal.Signals(-code).name}; "
                f"{len(left)} processes that it had started were ended",
                file=sys.stderr,
            )
            return 1
        return code
