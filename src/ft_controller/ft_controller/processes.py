"""The processes of a replica group, seen from the controller: started, watched, replaced.

The processors are children of a process supervisor (:mod:`~ft_controller.process_supervisor`),
which starts them again when they die. The supervisor itself is watched here in each tick.

If it ends, its processors end with it; another one with new processors takes its place, on new
memory. If it shows no sign of life any more, its processors work on, but one that dies would not
come back. Then a second supervisor is started beside it, and takes over between two ticks when all
of its processors are up: no tick is lost for that.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict

from ft_controller import memory
from ft_controller.errors import ReplicaError
from ft_controller.messages import Layout, Setup, alive_set
from ft_controller.records import Words

__all__ = ["ReplicaProcesses"]

_HEALTHY = 10.0  # a process supervisor that lived for so long is replaced at once [s]
_LONGEST_LOOK = 0.1  # between two looks no more than this counts as silence [s]


class _Supervisor:
    """The memory of a group and, unless everybody is dead, a process supervisor that serves it.

    Attributes:
        shared: The shared memory.
        table: The process table, shape (p,), of :data:`~ft_controller.messages.PROCESS`.
        process: The process.
        began: When it was started, steady time [s].
    """

    def __init__(self, setup: Setup, generations: Sequence[int] | None) -> None:
        """Map fresh memory and start a process on it; does not wait for it.

        Args:
            setup: What it has to know.
            generations: Generations of the processors so far; None: no process, all are dead.
        """
        layout = Layout(setup.p, setup.n)
        self._channel: socket.socket | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self.began = time.monotonic()
        sizes = {
            "input": layout.input_words,
            "pages": layout.p * layout.page_words,
            "processes": layout.process_words,
        }
        fds = {name: memory.create(f"ft_{name}", words) for name, words in sizes.items()}
        try:
            self._blocks = [
                _mapped(fds[name], words, own=name == "input") for name, words in sizes.items()
            ]
            self.shared = layout.views(*(block.words for block in self._blocks))
            self.table = layout.process_records(self._blocks[2].words)
            if generations is not None:
                self._launch(
                    fds, {"setup": asdict(setup), "fds": fds, "generations": list(generations)}
                )
        finally:
            for fd in fds.values():
                os.close(fd)

    def _launch(self, fds: dict[str, int], message: dict[str, object]) -> None:
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            text = json.dumps(message).encode()
            for end in (mine, theirs):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, max(1 << 20, 2 * len(text)))
            environment = dict(os.environ)
            environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
            environment["OPENBLAS_NUM_THREADS"] = "1"
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ft_controller.process_supervisor", str(theirs.fileno())],
                pass_fds=(theirs.fileno(), *fds.values()),
                stdin=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
            mine.send(text)
            self._channel = mine
        except BaseException:
            mine.close()
            raise
        finally:
            theirs.close()

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def heartbeat(self) -> int:
        return int(self._blocks[2].words[0])

    @property
    def alive(self) -> int:
        return int(alive_set(self.shared.processes))

    def send(self, order: dict[str, int]) -> None:
        if self._channel is not None:
            with contextlib.suppress(OSError):
                self._channel.send(json.dumps(order).encode())

    def kill(self) -> None:
        """End it at once, even if it is stopped; its processors die with it (PR_SET_PDEATHSIG)."""
        if self.process is not None:
            self.process.kill()

    def close(self, patience: float = 5.0) -> None:
        """End the processes and give the memory back."""
        if self._channel is not None:
            self.shared.input.control[1] = 1  # stop
            self.send({"stop": 1})
            self._channel.close()
            self._channel = None
        if self.process is not None:
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                self.kill()
                self.process.wait()
            self.process = None
        for block in self._blocks:
            block.close()
        self._blocks = []


def _mapped(fd: int, words: int, own: bool) -> memory.Block:
    """A block that is this process's to write, or to read only."""
    reader = memory.read_only(fd)
    try:
        return memory.Block(words, reader, fd if own else None, (0, words) if own else None)
    finally:
        os.close(reader)


class ReplicaProcesses:
    """Keeps a process supervisor with its processors.

    Attributes:
        now: The process supervisor; another one, on other memory, when :meth:`watch` says so.
        started: How many process supervisors were started so far.
    """

    def __init__(self, setup: Setup, patience: float) -> None:
        """Prepare; nothing is started or mapped yet.

        Args:
            setup: What process supervisors have to know.
            patience: One that is silent for so long is replaced; 0: never [s].
        """
        self._setup, self._patience = setup, patience
        self._now: _Supervisor | None = None
        self._standby: _Supervisor | None = None
        self._before: _Supervisor | None = None
        self._due = 0.0
        self._delay = setup.restart_delay
        self._silence, self._looked, self._beat = 0.0, 0.0, 0
        self._changing = False
        self.started = 0

    @property
    def now(self) -> _Supervisor:
        """The process supervisor of now, with its memory."""
        if self._now is None:
            raise ReplicaError("the processors are not started")
        return self._now

    @property
    def mapped(self) -> bool:
        """Whether there is shared memory."""
        return self._now is not None

    @property
    def alive(self) -> int:
        """The processors that are alive, as a set."""
        return 0 if self._now is None else self._now.alive

    @property
    def pids(self) -> list[int]:
        """Process ids of the processors, 0 where there is none."""
        return [int(pid) for pid in self.now.table["pid"]]

    @property
    def supervisor_pid(self) -> int:
        """Process id of the process supervisor, 0 if there is none."""
        return 0 if self.now.process is None else self.now.process.pid

    def start(self, generations: Sequence[int]) -> None:
        """Start a process supervisor; does not wait for its processors."""
        self._exchange(self._start(generations))

    def _start(self, generations: Sequence[int]) -> _Supervisor:
        made = _Supervisor(self._setup, generations)
        self.started += 1
        return made

    def _exchange(self, new: _Supervisor) -> None:
        if self._before is not None:
            self._before.close()
        # Another thread may still look at what was there before: its memory stays for a while.
        self._before, self._now = self._now, new
        if self._before is not None:
            self._before.kill()
        self._silence, self._due, self._changing = 0.0, 0.0, False

    def change(self, setup: Setup, generations: Sequence[int]) -> None:
        """Start another process supervisor with other settings beside the one of now.

        It takes over, between two ticks, when all of its processors are up; see :meth:`watch`.
        """
        self._drop_standby()
        self._setup, self._changing = setup, True
        self._standby = self._start(generations)

    def signal(self, k: int, number: int) -> None:
        """Send a signal to a processor."""
        if self._now is not None:
            self._now.send({"processor": k, "signal": int(number)})

    def watch(self, generations: Words) -> tuple[bool, bool]:
        """Look after the process supervisor; call it between two ticks.

        Args:
            generations: Generations of the processors that are known.

        Returns:
            Whether the memory is another one now; whether all processors of it are up.
        """
        if self._now is None or self._now.process is None:
            return self._start_again(generations), False
        now = time.monotonic()
        if not self._now.running:
            self._bury(now)
            return True, False
        if self._before is not None and self._before.process is not None:
            self._before.process.poll()  # no zombie stays
        return self._look(now, generations)

    def _bury(self, now: float) -> None:
        """The process supervisor has ended, and took its processors along."""
        if self._now is not None and now - self._now.began > _HEALTHY:
            self._delay = self._setup.restart_delay
        self._drop_standby()
        # Nobody is left who could say that they are dead: memory in which they are.
        self._exchange(_Supervisor(self._setup, None))
        self._due = now + self._delay
        self._delay = min(
            2.0 * self._delay, max(self._setup.restart_delay_max, self._setup.restart_delay)
        )

    def _start_again(self, generations: Sequence[int] | Words) -> bool:
        now = time.monotonic()
        if self._now is None or not self._setup.restart or now < self._due:
            return False
        try:
            self.start([int(g) for g in generations])
        except (OSError, ReplicaError):
            self._due = now + max(self._delay, 0.1)
            return False
        return True

    def _look(self, now: float, generations: Words) -> tuple[bool, bool]:
        """Replace a process supervisor that shows no sign of life."""
        if self._changing:
            if (self._standby is None or not self._standby.running) and now >= self._due:
                self._drop_standby()
                self._due = now + 1.0
                with contextlib.suppress(OSError, ReplicaError):
                    self._standby = self._start([int(g) for g in generations])
            return self._take_over()
        if self._now is None or self._patience == 0.0 or not self._setup.restart:
            return False, False
        beat = self._now.heartbeat
        elapsed, self._looked = now - self._looked, now
        if beat != self._beat or beat == 0:
            self._beat, self._silence = beat, 0.0
            self._drop_standby()
            return False, False
        # A controller that stood still itself has no right to complain.
        self._silence += min(elapsed, _LONGEST_LOOK)
        if self._silence <= self._patience:
            return False, False
        if self._standby is None or not self._standby.running:
            self._drop_standby()
            with contextlib.suppress(OSError, ReplicaError):
                self._standby = self._start([int(g) for g in generations])
            self._silence = 0.5 * self._patience  # time for the next attempt, if this one fails
            return False, False
        return self._take_over()

    def _take_over(self) -> tuple[bool, bool]:
        """Let the one that stands by serve, if all of its processors are up."""
        standby = self._standby
        if standby is None or standby.alive != (1 << self._setup.p) - 1:
            return False, False
        self._standby = None
        self._exchange(standby)
        return True, True

    def _drop_standby(self) -> None:
        if self._standby is not None:
            self._standby.kill()
            self._standby.close()
            self._standby = None

    def close(self) -> None:
        """End all processes and give the memory back; may be called twice."""
        self._drop_standby()
        for one in (self._now, self._before):
            if one is not None:
                one.close()
        self._now = self._before = None
