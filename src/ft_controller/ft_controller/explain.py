"""What the voter and the safety supervisor know, for people."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ft_controller import voting
from ft_controller.ballot import Ballot
from ft_controller.controllers import CONTROLLERS, compared_size, element_name, redundant
from ft_controller.safety_supervisor import Reason, SafetySupervisor
from ft_controller.voting import Comparison

__all__ = ["Processor", "describe_processor", "no_quorum", "numbered", "stop_reason"]

_ERRORS = {
    Comparison.SAME: "",
    Comparison.DIFFERS: "differs from the quorum",
    Comparison.MISSING: "did not answer in time",
    Comparison.BAD_CHECKSUM: "checksum does not fit",
    Comparison.NOT_FINITE: "is not finite",
    Comparison.TWO_FACED: "showed two faces",
    Comparison.LYING_VOTE: "lied in its vote",
    Comparison.CRASHED: "process ended",
}


@dataclass(frozen=True)
class Processor:
    """One processor as the voter sees it; see kin_interfaces/FtProcessor for the fields."""

    id: int
    pid: int
    state: str
    error: int
    detail: str
    comparison: tuple[int, ...]
    suggestion: int
    votes_against: int
    restarts: int
    missed: int
    clean: int
    clean_needed: int
    joints: tuple[int, ...]


def numbered(processors: Sequence[int]) -> str:
    """Processors for people: "processors 0, 2"."""
    word = "processor" if len(processors) == 1 else "processors"
    return f"{word} {', '.join(map(str, processors))}"


def describe_processor(k: int, ballot: Ballot, process: Any, owners: Sequence[int]) -> Processor:
    """Processor k as the voter sees it.

    Args:
        k: Which one.
        ballot: The voter's memory.
        process: Its entry in the process table.
        owners: Who computes each joint.
    """
    vote, answer, record = ballot.vote, ballot.answers[k], ballot.records[k]
    if not process["alive"]:
        state = "STARTING" if process["pid"] else "DEAD"
    elif not voting.has(int(vote["working_set"]), k):
        state = "EXCLUDED"
    elif voting.has(int(vote["suspects"]), k):
        state = "SUSPECT"
    else:
        state = "WORKING"
    return Processor(
        id=k,
        pid=int(process["pid"]),
        state=state,
        error=int(record["error"]),
        detail=_detail(record, int(process["status"]), ballot),
        comparison=tuple(int(x) for x in ballot.comparisons[k]),
        suggestion=int(answer["suggestion"]),
        votes_against=int(answer["votes_against"]),
        restarts=max(0, int(process["generation"]) - 1),
        missed=int(record["missed"]),
        clean=int(record["clean"]),
        clean_needed=int(record["clean_needed"]),
        joints=tuple(i for i, owner in enumerate(owners) if owner == k),
    )


def _detail(record: Any, status: int, ballot: Ballot) -> str:
    error = Comparison(int(record["error"]))
    what = _ERRORS[error]
    if error == Comparison.SAME:
        return ""
    if error in (Comparison.DIFFERS, Comparison.NOT_FINITE):
        controller = CONTROLLERS[int(ballot.vote["controller"])]
        what = f"{element_name(int(record['element']), ballot.owner.size, controller)} {what}"
    elif error == Comparison.LYING_VOTE:
        what = f"{what} about processor {int(record['element'])}"
    elif error == Comparison.CRASHED:
        if os.WIFSIGNALED(status):
            what = f"process ended by {signal.Signals(os.WTERMSIG(status)).name}"
        else:
            what = f"process ended with code {os.waitstatus_to_exitcode(status)}"
    return f"{what} at tick {int(record['error_tick'])}"


def stop_reason(safety: SafetySupervisor) -> str:
    """Why the arm does not get the voted torque, if it is not for want of a quorum."""
    name, value = f"joint {safety.joint}", safety.value
    return {
        Reason.NONE: "",
        Reason.SENSOR_LOST: "joint states are missing or too old",
        Reason.IMPLAUSIBLE: f"{name}: voted torque {value:.4g} N m is implausible",
        Reason.JOINT_LIMIT: f"{name}: {value:.4g} rad is out of limits",
        Reason.OVERSPEED: f"{name}: speed {value:.4g} rad/s is too high",
        Reason.STOP_ASKED: "a stop was asked for",
        Reason.PAUSED: f"the control stood still, {value:.3g} s without a torque of its own",
        Reason.FOLLOWING_ERROR: f"{name} does not follow: {value:.4g} rad from its motion",
        Reason.FROZEN: f"{name} is frozen: not a bit of its position changed while it should "
        f"have moved {value:.3g} rad",
        Reason.RIVAL: "another controller drives this arm",
        Reason.CLAIMING: "looking for other controllers of this arm",
    }[safety.reason]


def no_quorum(ballot: Ballot) -> str:
    """Why the last vote had no quorum: somebody was late, or they do not agree."""
    vote, answers = ballot.vote, ballot.answers
    controller = int(vote["controller"])
    # Those that had a vote; the review may have put some of them out since.
    members = [k for k in range(answers.size) if voting.has(int(vote["voters"]), k)]
    if len(members) == 1 and not vote["allow_single"]:
        return f"only {numbered(members)} is left, and must not work alone"
    if vote["not_finite"]:
        return "the torque of a processor that nobody checks is not finite"
    late = [k for k in members if not voting.has(int(vote["spoken"]), k)]
    waited = f"within {1e-6 * vote['hard']:.3g} ms"
    if not redundant(controller):
        return f"no torque: nothing {waited} from {numbered(late or members)}"
    rule = f"no quorum: {int(vote['quorum'])} of {len(members)} must agree"
    groups: dict[int, list[int]] = {}
    for k in members:
        if answers[k]["equals"] >= 0:
            groups.setdefault(int(answers[k]["equals"]), []).append(k)
    if len(groups) > 1:
        said = " against ".join(numbered(group) for group in groups.values())
        return f"{rule}, {len(groups)} answers: {said}, first in {_difference(ballot, *groups)}"
    spoilt = [
        k
        for k in members
        if answers[k]["found"] in (Comparison.BAD_CHECKSUM, Comparison.NOT_FINITE)
    ]
    if spoilt:
        return f"{rule}, damaged or not finite: {numbered(spoilt)}"
    if late:
        return f"{rule}, {len(members) - len(late)} answered {waited}; late: {numbered(late)}"
    missing = ballot.comparisons[np.ix_(members, members)] == Comparison.MISSING
    np.fill_diagonal(missing, False)
    if missing.any() or CONTROLLERS[controller] == "echo":
        return f"{rule}; all answered, but too late to be compared {waited}"
    return f"{rule}; all answered, but do not confirm what they read of each other"


def _difference(ballot: Ballot, first: int, second: int, *_: int) -> str:
    """Name of the first element in which two processors differ."""
    vote, n, rows = ballot.vote, ballot.owner.size, ballot.data
    controller = int(vote["controller"])
    count = compared_size(controller, n)
    at = int(voting.equal(rows[first], rows[second], 1, count, float(vote["tolerance"])))
    return element_name(max(at - 1, 0), n, CONTROLLERS[controller])
