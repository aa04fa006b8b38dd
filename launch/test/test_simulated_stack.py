"""The whole stack in a namespace and in simulated time: every node, every example, a clean end."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from kin_interfaces.msg import StackState
from rosgraph_msgs.msg import Clock

from kin_ros.qos import LATCHED
from kin_testing.running_stack import running_stack

pytestmark = [pytest.mark.stack, pytest.mark.alone, pytest.mark.slow, pytest.mark.timeout(900)]

NAMESPACE = "/rob"
EXAMPLES = sorted(Path(__file__).resolve().parents[2].glob("examples/[0-9]*.py"))


class SimulatedTime:
    """Publishes /clock without a pause, and hears by what time the stack's monitor stamps."""

    def __init__(self, stack):
        self._client = stack.client
        self._clock = self._client.node.create_publisher(Clock, "/clock", 10)
        self._stamps = []
        self._client.node.create_subscription(
            StackState, f"{NAMESPACE}/stack_state", self._heard, LATCHED
        )
        self._now = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tick)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _tick(self):
        while not self._over.wait(0.02):
            if self._now is not None:
                self._now += 0.02
                message = Clock()
                message.clock.sec = int(self._now)
                message.clock.nanosec = int(self._now % 1.0 * 1e9)
                self._clock.publish(message)

    def _heard(self, state):
        self._stamps.append(state.stamp.sec)

    def run(self, start, done=lambda: True, patience=60.0):
        """Let time go on from a moment [s], until the stack has followed and ``done`` is true."""
        self._stamps.clear()
        self._now = start
        end = time.monotonic() + patience
        while not (done() and any(start <= stamp <= self._now + 1 for stamp in self._stamps)):
            assert time.monotonic() < end, f"{start} s: the last stamps were {self._stamps[-5:]}"
            self._client.spin_until(lambda: False, 0.02)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """A second stack, in a namespace and in simulated time."""
    log = tmp_path_factory.mktemp("simulated") / "log.txt"
    given = {"namespace": NAMESPACE[1:], "use_sim_time": "true"}
    with running_stack(log, given, timeout=600.0) as running:
        yield running


def test_simulated_time_and_a_clock_that_jumps_back(simulated):
    """With use_sim_time all nodes start, answer and stamp by /clock, also after it jumped back."""
    assert all(name.startswith(f"{NAMESPACE}/") for name in simulated.names)
    before = simulated.pids()
    with SimulatedTime(simulated) as clock:
        for start in (1000.0, 2000.0, 10.0):  # forward in a leap, then far back
            clock.run(start)
            simulated.answer_everything()
    assert simulated.pids() == before
    assert simulated.client.spin_until(
        lambda: all(simulated.active(name) for name in simulated.names), 60.0
    )


def test_examples_in_a_namespace(simulated):
    """Plain scripts in other processes call the services of a stack that has a namespace."""
    simulated.reset_controller()
    domain = simulated.client.node.context.get_domain_id()
    running = {
        script: subprocess.Popen(
            [sys.executable, str(script), "--stack", NAMESPACE],
            env={**os.environ, "ROS_DOMAIN_ID": str(domain)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for script in EXAMPLES
    }
    with SimulatedTime(simulated) as clock:
        # Each gives up by itself after a minute, and says why.
        done = lambda: all(one.poll() is not None for one in running.values())  # noqa: E731
        clock.run(3000.0, done, patience=150.0)
    for script, process in running.items():
        said, _ = process.communicate()
        assert process.returncode == 0, f"{script.name}: {said}"
        assert said.strip()
        assert "Traceback" not in said
        if script.stem.startswith("06"):
            assert said.startswith("7 postures, all certified; there are no others")


def test_the_end_is_clean(simulated):
    family = simulated.process.children(recursive=True)
    assert simulated.stop() == 0, simulated.log.read_text()[-3000:]
    _, alive = psutil.wait_procs(family, timeout=60.0)
    assert not alive
