import numpy as np
import pytest

from ft_controller import Arm, Limits
from ft_controller.ballot import Ballot
from ft_controller.controllers import Controller
from ft_controller.explain import describe_processor, no_quorum, numbered, stop_reason
from ft_controller.messages import PROCESS, Layout
from ft_controller.safety_supervisor import Reason, SafetySupervisor
from ft_controller.voting import Comparison


def test_every_reason_has_a_sentence_of_its_own():
    safety = SafetySupervisor(Limits.of(Arm.four_link()))
    zero = np.zeros(4)
    assert stop_reason(safety) == ""
    said = set()
    for reason in Reason:
        if reason not in (Reason.NONE, Reason.NO_QUORUM):
            safety.reset()
            safety.bar(Reason.NONE)
            safety.step(0.0, True, True, zero, zero, zero)
            safety.cut(reason, 2, 0.5)
            said.add(stop_reason(safety))
    assert len(said) == len(Reason) - 2 and all(said)


@pytest.fixture
def ballot():
    """Four processors of echo, all of which have a vote; nobody has answered."""
    made = Ballot.of(Layout(4, 2))
    vote = made.vote
    vote["controller"], vote["voters"], vote["working_set"] = Controller.ECHO, 0b1111, 0b1111
    vote["quorum"], vote["hard"], vote["allow_single"] = 3, 6_500_000, 1
    made.answers["equals"] = -1
    made.answers["found"] = Comparison.MISSING
    return made


def answer(ballot, k, equals):
    ballot.answers[k]["equals"], ballot.answers[k]["found"] = equals, Comparison.SAME
    ballot.vote["spoken"] |= 1 << k


def test_who_is_late_is_not_said_to_disagree(ballot):
    answer(ballot, 0, 0)
    answer(ballot, 2, 0)
    said = no_quorum(ballot)
    assert said == "no quorum: 3 of 4 must agree, 2 answered within 6.5 ms; late: processors 1, 3"


def test_who_disagrees_and_where(ballot):
    for k in range(4):
        answer(ballot, k, k % 2)
    ballot.data[1, 1 + 5] = 1.0
    assert no_quorum(ballot) == (
        "no quorum: 3 of 4 must agree, 2 answers: processors 0, 2 against processors 1, 3, first"
        " in N[1]"
    )


def test_one_that_must_not_be_alone(ballot):
    ballot.vote["voters"], ballot.vote["allow_single"] = 0b0100, 0
    assert no_quorum(ballot) == "only processor 2 is left, and must not work alone"


@pytest.mark.parametrize(
    "alive, pid, working, suspects, state",
    [
        (0, 0, 0b1111, 0, "DEAD"),
        (0, 7, 0b1111, 0, "STARTING"),
        (1, 7, 0b1101, 0, "EXCLUDED"),
        (1, 7, 0b1111, 0b0010, "SUSPECT"),
        (1, 7, 0b1111, 0, "WORKING"),
    ],
)
def test_the_state_of_a_processor(ballot, alive, pid, working, suspects, state):
    ballot.vote["working_set"], ballot.vote["suspects"] = working, suspects
    process = np.zeros(1, PROCESS)[0]
    process["alive"], process["pid"], process["generation"] = alive, pid, 3
    seen = describe_processor(1, ballot, process, [1, 0])
    assert (seen.state, seen.pid, seen.restarts, seen.joints) == (state, pid, 2, (0,))


def test_what_a_processor_did(ballot):
    process = np.zeros(1, PROCESS)[0]
    record = ballot.records[0]
    record["error_tick"] = 12
    for error, element, status, said in (
        (Comparison.SAME, 0, 0, ""),
        (Comparison.DIFFERS, 6, 0, "tau[0] differs from the quorum at tick 12"),
        (Comparison.LYING_VOTE, 3, 0, "lied in its vote about processor 3 at tick 12"),
        (Comparison.CRASHED, 0, 9, "process ended by SIGKILL at tick 12"),
        (Comparison.CRASHED, 0, 70 << 8, "process ended with code 70 at tick 12"),
        (Comparison.MISSING, 0, 0, "did not answer in time at tick 12"),
    ):
        record["error"], record["element"], process["status"] = error, element, status
        assert describe_processor(0, ballot, process, []).detail == said


def test_numbers_for_people():
    assert [numbered([1]), numbered([0, 2])] == ["processor 1", "processors 0, 2"]
