"""The process supervisor by its own protocol: a socket, three blocks of memory, real children."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict

import psutil
import pytest

from ft_controller import Arm, memory
from ft_controller.messages import Layout, Setup

SETUP = Setup(3, 2, Arm.rods(2).links.tolist(), True, 0.001, 0.001, 0)


class Protocol:
    """The other end of the socket."""

    def __init__(self, generations=(0, 0, 0)):
        layout = Layout(SETUP.p, SETUP.n)
        sizes = {
            "input": layout.input_words,
            "pages": layout.p * layout.page_words,
            "processes": layout.process_words,
        }
        self.fds = {name: memory.create(f"ft_{name}", words) for name, words in sizes.items()}
        self.block = memory.Block(layout.process_words, self.fds["processes"])
        self.table = layout.process_records(self.block.words)
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ft_controller.process_supervisor", str(theirs.fileno())],
            pass_fds=(theirs.fileno(), *self.fds.values()),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )
        theirs.close()
        self.send({"setup": asdict(SETUP), "fds": self.fds, "generations": list(generations)})

    def send(self, message):
        self.channel.send(json.dumps(message).encode())

    def until(self, condition, seconds=180.0):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end and self.process.poll() is None
            time.sleep(0.005)

    def close(self):
        self.channel.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(20.0)
        self.process.kill()
        self.block.close()
        for fd in self.fds.values():
            os.close(fd)


@pytest.fixture
def protocol():
    """A supervisor whose processors are the fifth of their kind."""
    made = Protocol((4, 4, 4))
    made.until(lambda: made.table["alive"].all())
    yield made
    made.close()


def test_it_starts_buries_and_starts_again_until_the_socket_closes(protocol):
    table = protocol.table
    assert table["generation"].tolist() == [5, 5, 5]
    first = [int(pid) for pid in table["pid"]]
    assert {psutil.Process(pid).ppid() for pid in first} == {protocol.process.pid}
    beat = int(protocol.block.words[0])
    protocol.send({"processor": 2, "signal": int(signal.SIGKILL)})
    protocol.until(lambda: table[2]["generation"] == 6 and table[2]["alive"])
    assert int(table[2]["pid"]) != first[2] and os.WTERMSIG(int(table[2]["status"])) == 9
    assert [int(pid) for pid in table["pid"][:2]] == first[:2]
    protocol.until(lambda: int(protocol.block.words[0]) > beat)  # a sign of life
    processes = [psutil.Process(int(pid)) for pid in table["pid"]]
    protocol.channel.close()
    assert protocol.process.wait(20.0) == 0
    assert not any(p.is_running() and p.status() != "zombie" for p in processes)
