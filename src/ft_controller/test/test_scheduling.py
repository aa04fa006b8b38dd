"""Priorities: the voter before the simulated arm before the processors, where that is allowed."""

import os
import threading

import numpy as np
import pytest

from ft_controller import Arm, ReplicaGroup
from ft_controller.scheduling import PROCESSORS, SIMULATOR, VOTER, raise_thread


def in_thread(call):
    """What a call in a thread of its own returns."""
    out = []
    thread = threading.Thread(target=lambda: out.append(call()))
    thread.start()
    thread.join()
    return out[0]


def allowed():
    return in_thread(lambda: raise_thread(1, PROCESSORS))


def priority(pid=0):
    """Policy without flags, and priority."""
    policy = os.sched_getscheduler(pid) & ~os.SCHED_RESET_ON_FORK
    return policy, os.sched_getparam(pid).sched_priority


def test_ordinary_scheduling_is_left_alone():
    assert not in_thread(lambda: raise_thread(0, VOTER))
    assert in_thread(lambda: (raise_thread(0, VOTER), priority())[1]) == priority()


def test_a_thread_is_raised_and_no_other():
    before = priority()
    seen = in_thread(lambda: (raise_thread(3, SIMULATOR), priority()))
    assert priority() == before
    assert seen == ((True, (os.SCHED_FIFO, 4)) if allowed() else (False, before))


@pytest.mark.skipif(not allowed(), reason="real-time priorities are not allowed here")
def test_voter_above_simulator_above_processors():
    zero = np.zeros(4)
    with ReplicaGroup(Arm.four_link(), realtime_priority=3) as group:
        # Whoever starts the processors is not the one who votes.
        assert priority()[0] == os.SCHED_OTHER

        def vote():
            assert group.tick(zero, zero, zero, zero, zero, 0.0).voted
            return priority()

        voter = in_thread(vote)
        simulator = in_thread(lambda: (raise_thread(3, SIMULATOR), priority())[1])
        processors = [priority(pid) for pid in group.processes.pids]
        assert [voter, simulator, *processors] == [(os.SCHED_FIFO, k) for k in (5, 4, 3, 3, 3, 3)]
        # What is started from the voting thread is ordinary again.
        assert priority(group.processes.supervisor_pid)[0] == os.SCHED_OTHER
