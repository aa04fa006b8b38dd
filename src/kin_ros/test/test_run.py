"""A node that compiles answers questions, obeys signals, and compiles once."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from lifecycle_msgs.srv import GetState

from kin_ros.node import KinNode
from kin_ros.parameters import ParameterSet

PROGRAM = textwrap.dedent("""
    import ctypes, sys, time
    import kin_ros.run
    from kin_ros.node import KinNode, run
    from kin_ros.parameters import ParameterSet

    class Slow(KinNode[ParameterSet]):
        def __init__(self, **arguments):
            super().__init__("slow", ParameterSet, **arguments)

        def warm_up(self):
            end = time.monotonic() + float(sys.argv[1])
            while time.monotonic() < end:
                sum(range(1000))  # like a compiler: busy, in Python
            if sys.argv[2] == "fail":
                raise RuntimeError("no compiler")

        def cleanup(self):
            if sys.argv[2] == "linger":
                time.sleep(1.5)

        def destroy_node(self):
            if sys.argv[2] == "stuck":
                ctypes.PyDLL(None).sleep(600)  # in C, and no other thread runs meanwhile
            super().destroy_node()

    kin_ros.run.PATIENCE = 0.3
    if sys.argv[2] == "stuck":
        kin_ros.run.LEAVING = 0.5
    sys.exit(run(Slow))
""")


@pytest.fixture
def start(ros):
    begun = []

    def start(seconds, outcome="well"):
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(seconds), outcome],
            env={**os.environ, "ROS_DOMAIN_ID": str(ros.domain)},
            stderr=subprocess.PIPE,
            text=True,
        )
        begun.append(process)
        return process

    yield start
    for process in begun:
        process.kill()
        process.wait()


def state(ros):
    return ros.call(GetState, "/slow/get_state", GetState.Request()).current_state.label


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_answers_and_ends_while_it_compiles(ros, start, number):
    process = start(600)
    assert state(ros) == "unconfigured"
    process.send_signal(number)
    assert process.wait(20) == 0


def test_it_becomes_active_afterwards(ros, start):
    process = start(1)
    ros.wait_active("/slow")
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_comes_again_and_again_is_one(ros, start, number):
    """Also while the interpreter is being taken down."""
    process = start(0)
    ros.wait_active("/slow")
    while process.poll() is None:
        process.send_signal(number)
        time.sleep(0.0005)
    assert process.returncode == 0


def test_an_end_that_takes_long_says_where_it_stands(ros, start):
    process = start(0, "linger")
    ros.wait_active("/slow")
    process.send_signal(signal.SIGINT)
    _, text = process.communicate(timeout=40)
    assert process.returncode == 0
    assert "in cleanup" in text


def test_middleware_that_hangs_keeps_no_process(ros, start):
    process = start(0, "stuck")
    ros.wait_active("/slow")
    process.send_signal(signal.SIGINT)
    _, text = process.communicate(timeout=40)
    assert process.returncode == 0
    assert "in destroy_node" in text


def test_a_failure_is_told_and_ends_it(ros, start):
    process = start(0, "fail")
    _, text = process.communicate(timeout=40)
    assert process.returncode == 1
    assert "cannot configure" in text
    assert "no compiler" in text


class Counting(KinNode[ParameterSet]):
    """Counts its warm-ups."""

    def __init__(self, **arguments):
        self.warmed = []
        super().__init__("counting", ParameterSet, **arguments)

    def warm_up(self):
        self.warmed.append(threading.current_thread().name)


def test_it_compiles_once(ros):
    node = ros.add(Counting)
    ros.run_on(node, node.trigger_deactivate)
    ros.run_on(node, node.trigger_cleanup)
    ros.run_on(node, node.trigger_configure)
    node.ensure_warm()
    assert len(node.warmed) == 1
