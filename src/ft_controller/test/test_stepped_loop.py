"""The loop that measurements drive: the same inputs give the same torques on any machine."""

import numpy as np
import pytest

from ft_controller.arm import Arm
from ft_controller.errors import ReplicaError
from ft_controller.faults import Fault
from ft_controller.loop import SteppedLoop
from ft_controller.replica_group import ReplicaGroup
from ft_controller.safety_supervisor import State
from ft_controller.timing import Timing
from ft_controller.trajectory import Trajectory

RATE = 250.0
START = np.array([0.3, 0.4, 0.5, 0.6])
GOAL = START + 0.1


def drive(group, ticks=40):
    """Torques along a motion, with a processor that lies on the way."""
    sent, reports = [], []
    loop = SteppedLoop(group, RATE, lambda tick: sent.append(tick), reports.append)
    loop.measured(START, np.zeros(4))
    assert not sent  # not started yet
    loop.start()
    loop.measured(START, np.zeros(4))
    loop.follower.follow(
        Trajectory.through([0.0, 0.1], [START, GOAL], np.zeros((2, 4)), np.zeros((2, 4)))
    )
    loop.do(lambda: group.inject(Fault((1,), "wrong_element", 0.02, 0.06, 3, 5.0, 1), loop.now()))
    for k in range(ticks):
        loop.measured(START + 0.1 * k / ticks, np.full(4, 0.5))
    assert loop.now() == pytest.approx((ticks + 1) / RATE)
    return loop, sent, reports


def test_same_inputs_same_torques():
    torques, states = [], []
    for _ in range(2):
        with ReplicaGroup(Arm.four_link(), timing=Timing.patient()) as group:
            loop, sent, reports = drive(group)
            assert loop.fresh
            assert all(tick.voted for tick in sent)
            assert any(report.working_set != 0b1111 for report in reports)
            torques.append([tick.torque for tick in sent])
            # The group counts the rounds of its start too, which are those of the machine.
            first = reports[0].tick
            states.append([(r.tick - first, r.state, r.working_set, r.exclusions) for r in reports])
            loop.stop()
            assert group.safety.state == State.STOPPED
            assert len(sent) > len(torques[-1])  # it was ramped down
            with pytest.raises(ReplicaError):
                loop.do(lambda: None)
    assert np.array_equal(torques[0], torques[1])
    assert states[0] == states[1]


def test_a_failure_ends_it_and_is_told():
    told = []
    with ReplicaGroup(Arm.four_link(), timing=Timing.patient()) as group:

        def send(tick):
            raise ValueError("the wire is cut")

        loop = SteppedLoop(group, RATE, send, lambda _: None, failed=told.append)
        loop.start()
        loop.measured(START, np.zeros(4))
        assert not loop.running
        assert str(loop.error) == "the wire is cut"
        assert told == [loop.error]
