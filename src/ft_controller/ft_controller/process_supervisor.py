"""Parent of the processors: starts them, sees them die, starts them again.

A process of its own, without ROS and without threads, so that a processor can be forked in
milliseconds from a warm interpreter however many threads the node has. It ends, and takes all
processors with it, as soon as the other end of its socket closes: when the group stops, and just as
well when the node is killed. Its heartbeat in the process table tells the controller that it lives.

Run as ``python -m ft_controller.process_supervisor FD``; the first message on the socket describes
the replica group.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ft_controller import processor
from ft_controller.dynamics import make_links
from ft_controller.memory import Block, read_only
from ft_controller.messages import Layout, Setup
from ft_controller.scheduling import PROCESSORS, raise_thread

__all__ = ["main"]

_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_SET_TIMERSLACK = 1, 15, 29
_MCL_CURRENT, _MCL_ONFAULT = 1, 4
_HEALTHY_S = 10.0  # alive for so long: the next restart is quick again
_HEARTBEAT_S = 0.1  # a sign of life at least this often


@dataclass
class _Child:
    """One processor's process."""

    pid: int = 0
    pidfd: int = -1
    ready: int = -1  # read end of the pipe through which it reports for work
    started: float = 0.0
    restart_at: float = 0.0
    delay: float = 0.0


class ProcessSupervisor:
    """The loop of the process."""

    def __init__(
        self,
        channel: socket.socket,
        setup: Setup,
        fds: Mapping[str, int],
        generations: Sequence[int],
    ) -> None:
        self._channel, self._setup, self._fds = channel, setup, fds
        self._layout = Layout(setup.p, setup.n)
        self._readers = {name: read_only(fd) for name, fd in fds.items()}
        self._links = make_links(setup.links)
        self._children = [_Child(delay=setup.restart_delay) for _ in range(setup.p)]
        words = self._layout.process_words
        self._block = Block(words, self._readers["processes"], self._fds["processes"], (0, words))
        self._table = self._layout.process_records(self._block.words)
        for entry, generation in zip(self._table, generations, strict=True):
            entry["generation"] = generation
            # Those of an earlier process supervisor died with it.
            entry["status"] = signal.SIGKILL if generation else 0

    def run(self) -> None:
        """Serve until the other end of the channel closes."""
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        for k in range(self._layout.p):
            self._start(k, poll)
        while True:
            due = [c.restart_at for c in self._children if c.pid == 0 and c.restart_at > 0.0]
            self._block.words[0] = time.monotonic_ns()
            wait = min([_HEARTBEAT_S, *(at - time.monotonic() for at in due)])
            for fd, _ in poll.poll(1e3 * max(0.0, wait)):
                if fd == self._channel.fileno():
                    if not self._obey():
                        return
                    continue
                for k, child in enumerate(self._children):
                    if fd == child.ready:
                        self._report(k, poll)
                    elif fd == child.pidfd:
                        self._bury(k, poll)
            now = time.monotonic()
            for k, child in enumerate(self._children):
                if child.pid == 0 and 0.0 < child.restart_at <= now:
                    self._start(k, poll)

    def end(self) -> None:
        """Kill whoever is left, and wait for them."""
        for child in self._children:
            if child.pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child.pid, signal.SIGKILL)
        for child in self._children:
            if child.pid:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(child.pid, 0)
                child.pid = 0

    def _obey(self) -> bool:
        message = self._channel.recv(4096)
        if not message:
            return False
        order = json.loads(message)
        if order.get("stop"):
            return False
        child = self._children[int(order["processor"])]
        if child.pid:
            # Not reaped yet, so the number cannot have gone to somebody else.
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, int(order["signal"]))
        return True

    def _start(self, k: int, poll: select.poll) -> None:
        child = self._children[k]
        reader, writer = os.pipe2(os.O_CLOEXEC)
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.close(reader)
                self._become(k, writer)
                code = 0
            except BaseException as error:
                sys.stderr.write(f"ft_controller: processor {k}: {error!r}\n")
                sys.stderr.flush()
            finally:
                os._exit(code)
        os.close(writer)
        child.pid, child.ready, child.pidfd = pid, reader, os.pidfd_open(pid)
        child.started, child.restart_at = time.monotonic(), 0.0
        poll.register(child.ready, select.POLLIN | select.POLLHUP)
        poll.register(child.pidfd, select.POLLIN)
        self._table[k]["pid"] = pid

    def _report(self, k: int, poll: select.poll) -> None:
        """The new process has mapped its page and waits for its first tick."""
        child = self._children[k]
        ready = os.read(child.ready, 1) == b"1"
        poll.unregister(child.ready)
        os.close(child.ready)
        child.ready = -1
        if ready:
            self._table[k]["generation"] += 1
            self._table[k]["alive"] = 1

    def _bury(self, k: int, poll: select.poll) -> None:
        child = self._children[k]
        self._table[k]["alive"] = 0
        _, status = os.waitpid(child.pid, 0)
        self._table[k]["status"] = status
        self._table[k]["pid"] = 0
        for fd in (child.pidfd, child.ready):
            if fd >= 0:
                poll.unregister(fd)
                os.close(fd)
        now = time.monotonic()
        first, longest = self._setup.restart_delay, self._setup.restart_delay_max
        if now - child.started > _HEALTHY_S:
            child.delay = first
        child.pid, child.pidfd, child.ready = 0, -1, -1
        child.restart_at = now + child.delay if self._setup.restart else 0.0
        # A process that dies again and again must not keep the machine busy.
        child.delay = min(2.0 * child.delay, max(longest, first))

    def _become(self, k: int, writer: int) -> None:
        """In the child: keep the own page, give everything else away, and work."""
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        libc.prctl(_PR_SET_NAME, f"ft_processor_{k}".encode())
        libc.prctl(_PR_SET_TIMERSLACK, 1)
        if os.getppid() == 1:
            return
        if self._setup.priority > 0:
            raise_thread(self._setup.priority, PROCESSORS)
            libc.mlockall(_MCL_CURRENT | _MCL_ONFAULT)
        lay = self._layout
        words = lay.p * lay.page_words
        own = (k * lay.page_words, lay.page_words)
        pages = Block(words, self._readers["pages"], self._fds["pages"], own)
        entry = Block(lay.input_words, self._readers["input"])
        processes = Block(lay.process_words, self._readers["processes"])
        self._block.close()
        self._channel.close()
        for fd in (*self._fds.values(), *self._readers.values()):
            os.close(fd)
        for child in self._children:
            for fd in (child.pidfd, child.ready):
                if fd >= 0:
                    os.close(fd)
        os.write(writer, b"1")
        os.close(writer)
        shared = lay.views(entry.words, pages.words, processes.words)
        processor.serve(k, shared, processor.Private.of(lay, self._links))


def main() -> None:
    """Entry of the process."""
    # Ctrl-C goes to everybody on the terminal; the node decides when its processors stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_NAME, b"ft_supervisor")
    channel = socket.socket(fileno=int(sys.argv[1]))
    channel.set_inheritable(False)
    message = channel.recv(1 << 22)
    if not message:
        return
    order = json.loads(message)
    setup = Setup(**order["setup"])
    supervisor = ProcessSupervisor(channel, setup, order["fds"], order["generations"])
    # Compile, or load, what a processor runs, before the first one is forked.
    processor.warm(make_links(setup.links))
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        supervisor.run()
    finally:
        supervisor.end()


if __name__ == "__main__":
    main()
