"""The processes of a replica group as the controller sees them: real processes, real signals."""

import os
import signal
import time

import numpy as np
import psutil
import pytest

from ft_controller import Arm, ReplicaError
from ft_controller.messages import Setup
from ft_controller.processes import ReplicaProcesses


def setup(**changes):
    arm = Arm.rods(2)
    usual = {
        "p": 3,
        "n": 2,
        "links": arm.links.tolist(),
        "restart": True,
        "restart_delay": 0.001,
        "restart_delay_max": 0.001,
        "priority": 0,
    }
    return Setup(**{**usual, **changes})


def until(condition, seconds=180.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.fixture(scope="module")
def running():
    """Three processors, up."""
    made = ReplicaProcesses(setup(), patience=0.0)
    made.start([0, 0, 0])
    until(lambda: made.alive == 0b111)
    yield made
    made.close()


def test_nothing_is_there_before_the_start():
    made = ReplicaProcesses(setup(), patience=0.0)
    assert not made.mapped and made.alive == 0
    with pytest.raises(ReplicaError, match="not started"):
        _ = made.pids
    made.signal(0, signal.SIGKILL)  # to nobody
    made.close()


def test_each_processor_is_a_child_of_the_process_supervisor(running):
    assert len(set(running.pids)) == 3 and all(running.pids)
    assert {psutil.Process(pid).ppid() for pid in running.pids} == {running.supervisor_pid}
    assert psutil.Process(running.supervisor_pid).ppid() == os.getpid()


def test_a_processor_that_dies_is_another_generation_with_the_status_of_its_death(running):
    table = running.now.table
    before, generation = running.pids[1], int(table[1]["generation"])
    running.signal(1, signal.SIGTERM)
    until(lambda: running.pids[1] not in (0, before) and running.alive == 0b111)
    assert table[1]["generation"] == generation + 1
    assert os.WTERMSIG(int(table[1]["status"])) == signal.SIGTERM
    assert running.watch(np.array(table["generation"])) == (False, False)  # no change of memory


def test_a_dead_supervisor_takes_its_processors_along_and_another_goes_on_counting(running):
    generations = np.array(running.now.table["generation"])
    old, children = running.supervisor_pid, [psutil.Process(pid) for pid in running.pids]
    memory, begun = running.now.shared, running.started
    os.kill(old, signal.SIGKILL)
    changes = []

    def back():
        changes.append(running.watch(generations))
        return running.started == begun + 1 and running.alive == 0b111

    until(back)
    assert (True, False) in changes
    assert running.now.shared is not memory and running.supervisor_pid != old
    assert (running.now.table["generation"] == generations + 1).all()
    until(lambda: not any(c.is_running() and c.status() != "zombie" for c in children))


def test_after_the_end_no_process_is_left():
    made = ReplicaProcesses(setup(restart=False), patience=0.0)
    made.start([0, 0, 0])
    until(lambda: made.alive == 0b111)
    everybody = [psutil.Process(pid) for pid in (made.supervisor_pid, *made.pids)]
    made.signal(0, signal.SIGKILL)
    until(lambda: made.alive == 0b110)
    time.sleep(0.05)
    assert made.alive == 0b110  # nobody comes in its place
    made.close()
    made.close()
    until(lambda: not any(p.is_running() and p.status() != "zombie" for p in everybody))
