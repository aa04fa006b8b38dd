"""Processors as threads on memory of this process: the same kernels, without processes."""

import threading

import numpy as np
import pytest

from ft_controller import Arm, dynamics, judge, voter
from ft_controller.ballot import Ballot
from ft_controller.controllers import CONTROLLERS, redundant
from ft_controller.faults import FaultKind
from ft_controller.messages import FAULT, Layout
from ft_controller.processor import Private, serve
from ft_controller.voting import Comparison

ARM = Arm.four_link(friction=0.1, gravity=9.81)
P = 3


class Threads:
    """A voter, and processors that answer it."""

    def __init__(self):
        layout = Layout(P, ARM.n)
        self.shared, self.ballot = layout.private(), Ballot.of(layout)
        self.shared.processes.alive[:] = self.shared.processes.generation[:] = 1
        self.ballot.records["generation"] = 1
        vote = self.ballot.vote
        vote["allow_single"], vote["clean_ticks"], vote["late_ticks"] = 1, 2, 1000
        vote["hard"] = vote["late"] = vote["probe"] = vote["stall"] = 20_000_000_000
        vote["grace"] = 20_000_000_000
        self.faults = np.zeros(P, FAULT)
        self.running = [
            threading.Thread(
                target=serve, args=(k, self.shared, Private.of(layout, ARM.links)), daemon=True
            )
            for k in range(P)
        ]
        for thread in self.running:
            thread.start()

    def tick(self, controller, joints):
        """One tick with all in the working set; whether there was a quorum."""
        vote = self.ballot.vote
        vote["controller"], vote["working_set"] = CONTROLLERS.index(controller), (1 << P) - 1
        decided = voter.release_and_vote(self.ballot, self.shared, joints, self.faults)
        judge.review(self.ballot, self.shared, joints)
        return bool(decided)

    def end(self):
        """Tell them to stop, and wait for it."""
        self.shared.input.control[1] = 1
        for thread in self.running:
            thread.join(30.0)
            assert not thread.is_alive()


@pytest.fixture(scope="module")
def threads():
    """Three processors."""
    made = Threads()
    yield made
    made.end()


@pytest.fixture
def inputs():
    """Inputs of one tick."""
    q, v, qd = np.random.default_rng(1).uniform(-1, 1, (3, ARM.n))
    return dynamics.joints(q, v, qd, locked=[0, 0, 1, 0])


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_every_controller_gives_the_torque_of_one_computation(threads, inputs, controller):
    for _ in range(5):
        inputs["q"] += 0.01
        assert threads.tick(controller, inputs)
        assert (threads.ballot.tau == dynamics.computed_torque(ARM.links, inputs)).all()
        assert threads.ballot.vote["working_set"] == (1 << P) - 1


@pytest.mark.parametrize("controller", [c for c in CONTROLLERS if redundant(CONTROLLERS.index(c))])
def test_they_name_the_one_that_differs_and_go_on_without_it(threads, inputs, controller):
    for liar in range(P):
        # An element that all of the redundant controllers compare: M[0, 0].
        threads.faults[liar] = (FaultKind.WRONG_ELEMENT, 0, 1, 7, 0.5)
        assert threads.tick(controller, inputs)
        assert (threads.ballot.tau == dynamics.computed_torque(ARM.links, inputs)).all()
        assert threads.ballot.vote["working_set"] == (1 << P) - 1 - (1 << liar)
        assert threads.ballot.records[liar]["error"] == Comparison.DIFFERS
        for k in set(range(P)) - {liar}:
            assert threads.ballot.comparisons[k, liar] == Comparison.DIFFERS
        threads.faults[liar]["kind"] = FaultKind.NONE
        assert threads.tick(controller, inputs)


def test_who_is_silent_is_waited_for_no_longer_than_the_deadline(threads, inputs):
    vote = threads.ballot.vote
    threads.faults[0] = (FaultKind.SILENT, 0, 1, 0, 0.0)
    patience, vote["late"] = int(vote["late"]), 100_000_000
    missed = int(threads.ballot.records[0]["missed"])
    assert threads.tick("echo", inputs)
    assert threads.ballot.records[0]["missed"] == missed + 1
    threads.faults[0]["kind"], vote["late"] = FaultKind.NONE, patience
    assert threads.tick("echo", inputs) and vote["suspects"] == 0
