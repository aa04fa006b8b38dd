"""Parent of the processors: starts them, sees them die, starts them again.

A process of its own, without ROS and without threads, so that a processor can be forked in
milliseconds from a warm interpreter however many threads the node has. It ends, and takes all
processors with it, as soon as the other end of its socket closes: when the crew stops, and just as
well when the node is killed.

Run as ``python -m ft_controller.nursery FD``; the first message on the socket describes the crew.
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
from dataclasses import dataclass
from typing import Any

import numpy as np

from ft_controller.layout import (
    CREW_ALIVE,
    CREW_GENERATION,
    CREW_PID,
    CREW_STATUS,
    CREW_WORDS,
    Layout,
)
from ft_controller.memory import Block, read_only
from ft_controller.scheduling import PROCESSORS, raise_thread

__all__ = ["main"]

_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_SET_TIMERSLACK = 1, 15, 29
_MCL_CURRENT, _MCL_ONFAULT = 1, 4
_HEALTHY_S = 10.0  # alive for so long: the next restart is quick again


@dataclass
class _Child:
    """One processor's process."""

    pid: int = 0
    pidfd: int = -1
    ready: int = -1  # read end of the pipe through which it reports for work
    started: float = 0.0
    restart_at: float = 0.0
    delay: float = 0.0


class Nursery:
    """The loop of the nursery process."""

    def __init__(self, channel: socket.socket, setup: dict[str, Any]) -> None:
        self._channel = channel
        self._layout = Layout(int(setup["p"]), int(setup["n"]))
        self._fds = {name: int(setup[name]) for name in ("input", "pages", "crew")}
        self._readers = {name: read_only(fd) for name, fd in self._fds.items()}
        self._model = np.array(setup["model"], dtype=np.float64)
        self._restart = bool(setup["restart"])
        self._delay = float(setup["restart_delay"])
        self._longest = float(setup["restart_delay_max"])
        self._priority = int(setup["priority"])
        self._children = [_Child(delay=self._delay) for _ in range(self._layout.p)]
        words = self._layout.crew_words
        self._crew = Block(words, self._readers["crew"], self._fds["crew"], (0, words))
        for k, generation in enumerate(setup["generations"]):
            self._word(k, CREW_GENERATION, int(generation))
            # Those of an earlier nursery died with it.
            self._word(k, CREW_STATUS, signal.SIGKILL if generation else 0)

    def run(self) -> None:
        """Serve until the other end of the channel closes."""
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        for k in range(self._layout.p):
            self._start(k, poll)
        while True:
            due = [c.restart_at for c in self._children if c.pid == 0 and c.restart_at > 0.0]
            wait = None if not due else max(0.0, 1e3 * (min(due) - time.monotonic()))
            for fd, _ in poll.poll(wait):
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

    def _word(self, k: int, word: int, value: int) -> None:
        self._crew.words[k * CREW_WORDS + word] = value

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
        self._word(k, CREW_PID, pid)

    def _report(self, k: int, poll: select.poll) -> None:
        """The new process has mapped its page and waits for its first tick."""
        child = self._children[k]
        ready = os.read(child.ready, 1) == b"1"
        poll.unregister(child.ready)
        os.close(child.ready)
        child.ready = -1
        if ready:
            at = k * CREW_WORDS + CREW_GENERATION
            self._crew.words[at] = self._crew.words[at] + 1
            self._word(k, CREW_ALIVE, 1)

    def _bury(self, k: int, poll: select.poll) -> None:
        child = self._children[k]
        self._word(k, CREW_ALIVE, 0)
        _, status = os.waitpid(child.pid, 0)
        self._word(k, CREW_STATUS, status)
        self._word(k, CREW_PID, 0)
        for fd in (child.pidfd, child.ready):
            if fd >= 0:
                poll.unregister(fd)
                os.close(fd)
        now = time.monotonic()
        if now - child.started > _HEALTHY_S:
            child.delay = self._delay
        child.pid, child.pidfd, child.ready = 0, -1, -1
        child.restart_at = now + child.delay if self._restart else 0.0
        # A process that dies again and again must not keep the machine busy.
        child.delay = min(2.0 * child.delay, max(self._longest, self._delay))

    def _become(self, k: int, writer: int) -> None:
        """In the child: keep the own page, give everything else away, and work."""
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        libc.prctl(_PR_SET_NAME, f"ft_processor_{k}".encode())
        libc.prctl(_PR_SET_TIMERSLACK, 1)
        if os.getppid() == 1:
            return
        if self._priority > 0:
            raise_thread(self._priority, PROCESSORS)
            libc.mlockall(_MCL_CURRENT | _MCL_ONFAULT)
        lay = self._layout
        words = lay.p * lay.page_words
        own = (k * lay.page_words, lay.page_words)
        pages = Block(words, self._readers["pages"], self._fds["pages"], own)
        entry = Block(lay.input_words, self._readers["input"])
        crew = Block(lay.crew_words, self._readers["crew"])
        self._crew.close()
        self._channel.close()
        for fd in (*self._fds.values(), *self._readers.values()):
            os.close(fd)
        for child in self._children:
            for fd in (child.pidfd, child.ready):
                if fd >= 0:
                    os.close(fd)
        os.write(writer, b"1")
        os.close(writer)
        _serve(k, lay, pages, entry, crew, self._model.copy())


def _serve(k: int, lay: Layout, pages: Block, entry: Block, crew: Block, model: Any) -> None:
    from ft_controller.processor import serve

    serve(
        k,
        lay.p,
        lay.n,
        lay.slot,
        lay.input_slot,
        lay.votes,
        lay.result,
        pages.words.reshape(lay.p, -1),
        pages.floats.reshape(lay.p, -1),
        entry.words,
        entry.floats,
        crew.words,
        model,
    )


def warm() -> None:
    """Compile, or load, what a processor runs, before the first one is forked."""
    lay = Layout(3, 2)
    size = max(lay.p * lay.page_words, lay.input_words, lay.crew_words)
    floats = np.zeros(size)
    words = floats.view(np.int64)
    words[1] = 1  # the stop word of the input block: serve returns at once
    from ft_controller.processor import serve

    serve(
        0,
        lay.p,
        lay.n,
        lay.slot,
        lay.input_slot,
        lay.votes,
        lay.result,
        words[: lay.p * lay.page_words].reshape(lay.p, -1),
        floats[: lay.p * lay.page_words].reshape(lay.p, -1),
        words,
        floats,
        words,
        np.ones((6, lay.n)),
    )


def main() -> None:
    """Entry of the nursery process."""
    # Ctrl-C goes to everybody on the terminal; the node decides when its processors stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_NAME, b"ft_nursery")
    channel = socket.socket(fileno=int(sys.argv[1]))
    channel.set_inheritable(False)
    message = channel.recv(1 << 20)
    if not message:
        return
    nursery = Nursery(channel, json.loads(message))
    warm()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        nursery.run()
    finally:
        nursery.end()


if __name__ == "__main__":
    main()
