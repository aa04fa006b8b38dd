"""Process supervision: start what a plan asks for, show and log its output, end it in order.

One thread and one selector do everything, so that a child can be forked at any time. To end a
process its group gets SIGINT, after ``sigterm_timeout`` SIGTERM, after ``sigkill_timeout`` SIGKILL;
a second Ctrl-C moves all of them one step on at once.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import IO

from kin_tools.guard import FORWARDED, become_subreaper, die_with_parent, end_descendants
from kin_tools.process_spec import ProcessSpec
from kin_tools.run_log import RunLog, Screen
from kin_tools.shared_memory import remove_leftovers

__all__ = ["Supervisor", "catches"]

_LONGEST_LINE = 64 * 1024
_SHORTEST_RESPAWN = 0.1
#: A node that does not look after SIGTERM in its first seconds is still being loaded [s].
_LOADING = 60.0
#: Patience of each step when the one who started us is gone [s].
_ABANDONED = 0.5


class _Step(IntEnum):
    """How far the end of a process has come."""

    RUNNING = 0
    INTERRUPTED = 1
    TERMINATED = 2
    KILLED = 3


_SIGNALS = {
    _Step.INTERRUPTED: signal.SIGINT,
    _Step.TERMINATED: signal.SIGTERM,
    _Step.KILLED: signal.SIGKILL,
}
#: Exit codes that are no failure of a process that was asked to end.
_OBEYED = {0, -signal.SIGINT, -signal.SIGTERM, 128 + signal.SIGINT, 128 + signal.SIGTERM}


class _Stream:
    """One output stream of a child, cut into lines."""

    def __init__(self, child: _Child, pipe: IO[bytes], *, error: bool) -> None:
        self.child = child
        self.pipe = pipe
        self.error = error
        self.rest = b""
        os.set_blocking(pipe.fileno(), False)

    def lines(self) -> tuple[list[str], bool]:
        """Complete lines that have arrived, and whether the stream is at its end."""
        ended = False
        try:
            data = os.read(self.pipe.fileno(), 65536)
            ended = not data
        except BlockingIOError:
            return [], False
        except OSError:
            data, ended = b"", True
        *whole, self.rest = (self.rest + data).split(b"\n")
        if self.rest and (ended or len(self.rest) > _LONGEST_LINE):
            whole.append(self.rest)
            self.rest = b""
        return [line.decode(errors="replace").rstrip("\r") for line in whole], ended


class _Child:
    """One process of the plan through all its lives."""

    def __init__(self, spec: ProcessSpec, command: list[str]) -> None:
        self.spec = spec
        self.command = command
        self.popen: subprocess.Popen[bytes] | None = None
        self.step = _Step.RUNNING
        self.escalate_at: float | None = None
        self.start_at: float | None = 0.0
        self.lives = 0
        self.born = 0.0
        self.code: int | None = None

    @property
    def running(self) -> bool:
        return self.popen is not None and self.popen.returncode is None

    @property
    def done(self) -> bool:
        return not self.running and self.start_at is None

    @property
    def failed(self) -> bool:
        """Its last life ended badly, as far as it was not our doing."""
        if self.code is None:
            return False
        if self.step == _Step.RUNNING:
            return self.code != 0
        return self.step == _Step.KILLED or self.code not in _OBEYED

    @property
    def loading(self) -> bool:
        """Whether it is a node that has not come to look after its signals yet."""
        if self.spec.ros is None or self.popen is None or time.monotonic() - self.born > _LOADING:
            return False
        return not catches(self.popen.pid, signal.SIGTERM)

    def signal_group(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.popen is not None:
                os.killpg(self.popen.pid, number)


class Supervisor:
    """Runs processes until all have ended or a signal asks for the end.

    Args:
        processes: What to start.
        log: Where output is kept.
        screen: Where it is shown.
        environment: Environment of the children.
        lifeline: Descriptor that becomes readable when nobody needs the children any more.
    """

    def __init__(
        self,
        processes: Sequence[ProcessSpec],
        log: RunLog,
        screen: Screen,
        environment: Mapping[str, str],
        lifeline: int | None = None,
    ) -> None:
        self.log = log
        self.screen = screen
        self.environment = dict(environment)
        self.environment.setdefault("PYTHONUNBUFFERED", "1")
        self.environment.setdefault("ROS_LOG_DIR", str(log.folder))
        if screen.colours:
            self.environment.setdefault("RCUTILS_COLORIZED_OUTPUT", "1")
        self.children = [_Child(spec, spec.command(log.folder)) for spec in processes]
        self.stopping = False
        self.abandoned = False
        self._selector = selectors.DefaultSelector()
        self._signals: list[int] = []
        self._lifeline = lifeline

    def run(self) -> int:
        """Start everything and stay until it is over.

        Returns:
            0 if every process ended well, 1 if one failed.
        """
        become_subreaper()
        wake_read, wake_write = os.pipe()
        for end in (wake_read, wake_write):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for number in FORWARDED:
            signal.signal(number, lambda received, _frame: self._signals.append(received))
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        self._selector.register(wake_read, selectors.EVENT_READ, self._drain_wakeups)
        if self._lifeline is not None:
            self._selector.register(self._lifeline, selectors.EVENT_READ, self._abandon)
        self._say(f"log files are in {self.log.folder}", news=True)
        try:
            while not all(child.done for child in self.children):
                self._turn()
        finally:
            end_descendants()
            self._drain_streams()
            signal.set_wakeup_fd(-1)
        failed = [child for child in self.children if child.failed]
        for child in failed:
            self._say(f"{child.spec.label} failed: {_exit_text(child.code)}", bad=True)
        return 1 if failed else 0

    def _turn(self) -> None:
        now = time.monotonic()
        for child in self.children:
            if child.start_at is not None and now >= child.start_at:
                self._start(child)
            if child.running and child.escalate_at is not None and now >= child.escalate_at:
                self._advance(child)
        for key, _ in self._selector.select(self._patience()):
            action: Callable[[int], None] = key.data
            action(key.fd)
        self._reap()
        while self._signals:
            self._on_signal(self._signals.pop(0))
        if self.screen.gone and not self.stopping:
            self.stop()

    def _patience(self) -> float | None:
        """Time to the next thing that happens by itself [s]."""
        moments = [child.start_at for child in self.children]
        moments += [child.escalate_at for child in self.children if child.running]
        soonest = min((moment for moment in moments if moment is not None), default=None)
        return None if soonest is None else max(0.0, soonest - time.monotonic())

    def _start(self, child: _Child) -> None:
        child.start_at = None
        child.lives += 1
        child.born = time.monotonic()
        child.code = None
        parent = os.getpid()
        try:
            child.popen = subprocess.Popen(
                child.command,
                env={**self.environment, **child.spec.environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                preexec_fn=lambda: die_with_parent(parent),  # noqa: PLW1509 (no threads)
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self._say(f"{child.spec.label} cannot be started: {error}", bad=True)
            child.popen = None
            child.code = 127
            self._after_end(child)
            return
        self.log.write("launch", f"{child.spec.label}: {' '.join(child.command)}")
        self._say(f"{child.spec.label}: started, pid {child.popen.pid}")
        for pipe, error_stream in ((child.popen.stdout, False), (child.popen.stderr, True)):
            if pipe is not None:
                stream = _Stream(child, pipe, error=error_stream)
                self._selector.register(
                    pipe, selectors.EVENT_READ, lambda _fd, stream=stream: self._read(stream)
                )

    def _read(self, stream: _Stream) -> bool:
        """Pass on what a child wrote; False at the end of the stream."""
        lines, ended = stream.lines()
        spec = stream.child.spec
        output = self.environment.get("OVERRIDE_LAUNCH_PROCESS_OUTPUT", spec.output)
        shown = output in ("screen", "both", "full") or (output == "log" and stream.error)
        for line in lines:
            self.log.write(spec.file_stem, line)
            if shown and self.screen.wants(spec.label, line, error=stream.error):
                self.screen.line(spec.label, line, error=stream.error)
        if ended:
            self._selector.unregister(stream.pipe)
            stream.pipe.close()
        return not ended and bool(lines)

    def _drain_streams(self) -> None:
        """Read what is left in the pipes after the last process has ended."""
        for key in list((self._selector.get_map() or {}).values()):
            if key.fileobj != self._lifeline and callable(key.data):
                for _ in range(1000):
                    if not key.data(key.fd):
                        break

    def _reap(self) -> None:
        """Collect ended children, and orphans that have become ours."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for child in self.children:
                if child.popen is not None and child.popen.pid == pid:
                    child.popen.returncode = child.code = os.waitstatus_to_exitcode(status)
                    self._after_end(child)

    def _after_end(self, child: _Child) -> None:
        child.escalate_at = None
        label, text = child.spec.label, _exit_text(child.code)
        self._say(f"{label}: ended, {text}", bad=child.failed)
        if child.spec.ros is not None:
            child.signal_group(signal.SIGKILL)  # workers of a node are of no use without it
        if child.spec.respawn and not self.stopping:
            child.start_at = time.monotonic() + max(child.spec.respawn_delay, _SHORTEST_RESPAWN)

    def stop(self) -> None:
        """Begin the end, or move it one step on if it has begun."""
        self.stopping = True
        for child in self.children:
            child.start_at = None
            if child.running:
                self._advance(child)

    def _advance(self, child: _Child) -> None:
        """The next, stronger signal to one process."""
        child.step = _Step(min(child.step + 1, _Step.KILLED))
        number = _SIGNALS[child.step]
        if child.step == _Step.INTERRUPTED and child.loading:
            number = signal.SIGTERM  # ends it at once; SIGINT would give a traceback
        if child.step > _Step.INTERRUPTED:
            self._say(f"{child.spec.label}: does not end, sending {number.name}", bad=True)
        child.signal_group(number)
        spec, kills = child.spec, child.step == _Step.TERMINATED
        wait = spec.sigkill_timeout if kills else spec.sigterm_timeout
        wait = min(wait, _ABANDONED) if self.abandoned else wait
        child.escalate_at = None if child.step == _Step.KILLED else time.monotonic() + wait

    def _on_signal(self, number: int) -> None:
        name = signal.Signals(number).name
        text = f"{name}: ending everything" if not self.stopping else f"{name} again"
        self._say(text, news=True)
        self.stop()

    def _abandon(self, descriptor: int) -> None:
        self._selector.unregister(descriptor)
        self.abandoned = True
        self.log.write("launch", "whoever started this is gone; ending everything")
        self.stop()

    def _drain_wakeups(self, descriptor: int) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(descriptor, 4096)

    def _say(self, text: str, *, bad: bool = False, news: bool = False) -> None:
        """Log a line; show it, on a quiet screen only if it is bad or news to a person."""
        self.log.write("launch", text)
        if bad or news or not self.screen.quiet:
            self.screen.line("launch", text, error=bad, bad=bad)


def catches(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal; True if that cannot be seen."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
    mask = next((line for line in status.splitlines() if line.startswith("SigCgt:")), None)
    return mask is None or bool(int(mask.split()[1], 16) >> (number - 1) & 1)


def _exit_text(code: int | None) -> str:
    if code is None:
        return "not started"
    if code < 0:
        try:
            return f"by signal {signal.Signals(-code).name}"
        except ValueError:
            return f"by signal {-code}"
    return f"exit code {code}"


def make_supervisor(
    processes: Sequence[ProcessSpec],
    lifeline: int | None = None,
    log_root: Path | None = None,
    *,
    quiet: bool = False,
) -> Supervisor:
    """A supervisor with the log folder, screen and environment of this process.

    What dead processes of this user have left in shared memory is removed first.
    """
    log = RunLog(os.environ, log_root)
    removed = remove_leftovers()
    if removed:
        log.write("launch", f"removed {len(removed)} files of dead processes from shared memory")
    screen = Screen(os.environ, quiet=quiet)
    return Supervisor(processes, log, screen, os.environ, lifeline)
