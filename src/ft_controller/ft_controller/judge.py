"""Who did what wrong in a tick, on what evidence, and who is in the next working set.

Everything is judged by what this tick shows. A memory of who contradicted whom would let two
processors that lie at different times make an honest third look like the culprit.
"""

from __future__ import annotations

import math

from numba import njit

from ft_controller import voting
from ft_controller.atomics import now_ns, sleep_until
from ft_controller.ballot import Arrival, Ballot
from ft_controller.controllers import compared_size, data_size, redundant
from ft_controller.messages import Shared, alive_set, rewritten
from ft_controller.records import Record, Records, Words
from ft_controller.voter import (
    arrived,
    collect,
    exclude,
    meet_newcomers,
    reference,
    rest,
    unable,
)
from ft_controller.voting import Comparison

__all__ = ["review"]


_YIELDS_NS = 60_000  # the review yields for so long, then it sleeps in between
_NAP_NS = 20_000
_FORGIVE = 20_000  # clean ticks in the working set after which earlier exclusions are forgotten


@njit(cache=True, nogil=True)
def review(ballot: Ballot, shared: Shared, joints: Records) -> None:
    """Wait for the others up to the deadline, judge everybody, and change the working set.

    Args:
        ballot: The voter's memory.
        shared: The shared memory.
        joints: The inputs of this tick, shape (n,).
    """
    vote = ballot.vote
    now = _await_the_rest(ballot, shared)
    _count_votes(ballot)
    if redundant(vote.controller):
        _look_again(ballot, shared.data)
    if vote.decided != 0:
        _judge(ballot)
    elif unable(vote):
        _found_anew(vote, ballot.answers, ballot.records)
    else:
        _judge_alone(ballot, _finite(joints))
    _judge_time(ballot, now)
    meet_newcomers(vote, ballot.records, shared.processes)
    vote.tick_time = now_ns(ballot.clock) - vote.release


@njit(cache=True, nogil=True)
def _await_the_rest(ballot: Ballot, shared: Shared) -> int:
    """Collect until all have answered or are late; returns the time [ns]."""
    vote, answers, clock = ballot.vote, ballot.answers, ballot.clock
    began = now_ns(clock)
    while True:
        collect(ballot, shared, True)
        vote.alive = alive_set(shared.processes)
        pending = 0
        for i in range(answers.size):
            if voting.has(vote.alive, i) and not arrived(vote.controller, answers, i, ballot.owner):
                pending |= 1 << i
        now = now_ns(clock)
        awaited = pending & ~vote.suspects
        if not unable(vote):
            awaited &= vote.working_set
        if pending == 0 or now > vote.release + vote.late:
            return now
        if awaited == 0 and now > vote.release + vote.vote_time + vote.probe:
            return now
        if now - began > _YIELDS_NS:
            sleep_until(clock, now + _NAP_NS)
        else:
            rest(vote, clock, 0)


@njit(cache=True, nogil=True)
def _count_votes(ballot: Ballot) -> None:
    """How many of the working set accuse each processor."""
    answers, p = ballot.answers, ballot.answers.size
    for j in range(p):
        votes = 0
        for i in range(p):
            if (
                i != j
                and voting.has(ballot.vote.working_set, i)
                and answers[i].votes == Arrival.GOOD
                and voting.accused(ballot.comparisons[i, j])
            ):
                votes += 1
        answers[j].votes_against = votes


@njit(cache=True, nogil=True)
def _look_again(ballot: Ballot, data: Words) -> None:
    """Whose data are no longer those that were read: an honest processor writes them once."""
    vote = ballot.vote
    count = data_size(vote.controller, ballot.owner.size)
    for j in range(ballot.answers.size):
        answer = ballot.answers[j]
        if answer.data != Arrival.AWAITED:
            answer.rewritten = rewritten(data, j, vote.tick, count, answer.check)


@njit(cache=True, nogil=True)
def _finite(joints: Records) -> bool:
    """Whether the inputs of a tick are numbers."""
    for i in range(joints.size):
        j = joints[i]
        for value in (j.q, j.qdot, j.q_d, j.qdot_d, j.qddot_d, j.kp, j.kd):
            if not math.isfinite(value):
                return False
    return True


@njit(cache=True, nogil=True)
def _judge(ballot: Ballot) -> None:
    """Name whoever differs from the quorum, showed two faces or lied; readmit who was clean."""
    vote, answers, records = ballot.vote, ballot.answers, ballot.records
    compares = redundant(vote.controller)
    compared = compared_size(vote.controller, ballot.owner.size)
    right = reference(vote, answers)
    outcast = _contradicted(ballot) if compares else -1
    for j in range(answers.size):
        answer, record = answers[j], records[j]
        answer.wrong = Comparison.SAME
        if compares:
            _judge_page(ballot, j)
            if (
                answer.wrong in (Comparison.SAME, Comparison.LYING_VOTE)
                and right >= 0
                and answer.found == Comparison.SAME
            ):
                first = voting.equal(
                    ballot.data[right], ballot.data[j], 1, compared, vote.tolerance
                )
                if first >= 0:
                    answer.wrong = Comparison.DIFFERS
                    record.element = first - 1
        if answer.result == Arrival.DAMAGED:
            answer.wrong = Comparison.BAD_CHECKSUM
        if answer.wrong == Comparison.SAME and j == outcast:
            answer.wrong = Comparison.TWO_FACED
            for i in range(answers.size):
                if i != j and voting.has(vote.working_set, i) and not _testifies(ballot, i, j):
                    # This one says nothing against j: it is j who speaks against it.
                    answer.wrong = Comparison.LYING_VOTE
                    record.element = i
        if answer.wrong != Comparison.SAME:
            if record.wrong_since == 0:
                record.wrong_since = vote.release
            record.wrong_last = vote.release
            exclude(vote, records, j, answer.wrong)
        elif not arrived(vote.controller, answers, j, ballot.owner):
            record.clean = 0
        else:
            _clean_tick(vote, record, j)


@njit(cache=True, nogil=True)
def _clean_tick(vote: Record, record: Record, j: int) -> None:
    """One more tick in which nothing was wrong with j: forgive, or readmit."""
    record.clean += 1
    if record.clean >= vote.clean_ticks:
        record.wrong_since = 0
    if voting.has(vote.working_set, j):
        if record.clean > _FORGIVE:
            record.penalty = 0
    elif voting.has(vote.alive, j) and record.clean >= record.clean_needed:
        vote.working_set |= 1 << j
        record.clean = 0


@njit(cache=True, nogil=True)
def _judge_page(ballot: Ballot, j: int) -> None:
    """Say what is wrong with j by its own page alone, whatever anybody else says."""
    answer = ballot.answers[j]
    if answer.votes == Arrival.DAMAGED:
        answer.wrong = Comparison.BAD_CHECKSUM
    elif answer.data == Arrival.AWAITED:
        answer.wrong = Comparison.SAME
    elif answer.found != Comparison.SAME:
        answer.wrong = answer.found
    elif answer.rewritten != 0:
        answer.wrong = Comparison.TWO_FACED
    elif answer.votes == Arrival.GOOD:
        if ballot.echoes[j, j] != answer.check:
            # It published something else than it says itself.
            answer.wrong = Comparison.TWO_FACED
            return
        for k in range(ballot.answers.size):
            if k != j and _false_claim(ballot, j, k):
                ballot.records[j].element = k
                answer.wrong = Comparison.LYING_VOTE
                return


@njit(cache=True, nogil=True)
def _false_claim(ballot: Ballot, j: int, k: int) -> bool:
    """Whether what j says of k does not follow from what j says that it read of k.

    An echo that the voter has too stands for words that the voter has too, so that it can compare
    them itself. Any other echo may be true.
    """
    vote, mine, theirs = ballot.vote, ballot.answers[j], ballot.answers[k]
    said, echo = ballot.comparisons[j, k], ballot.echoes[j, k]
    if said < Comparison.SAME or said > Comparison.NOT_FINITE:
        return True
    if (said == Comparison.MISSING) != (echo == 0):
        return True
    if theirs.data == Arrival.AWAITED or echo != theirs.check:
        return False
    if theirs.found == Comparison.BAD_CHECKSUM:
        return said != Comparison.BAD_CHECKSUM
    if said == Comparison.SAME and mine.equals == theirs.equals and vote.tolerance == 0.0:
        return False
    compared = compared_size(vote.controller, ballot.owner.size)
    if voting.equal(ballot.data[j], ballot.data[k], 1, compared, vote.tolerance) < 0:
        return said != Comparison.SAME
    if theirs.found == Comparison.NOT_FINITE:
        return said != Comparison.NOT_FINITE
    return said != Comparison.DIFFERS


@njit(cache=True, nogil=True)
def _testifies(ballot: Ballot, i: int, j: int) -> bool:
    """Whether i says that j is wrong, or that j showed it something else than the voter."""
    if ballot.answers[i].votes != Arrival.GOOD:
        return False
    echo, check = ballot.echoes[i, j], ballot.answers[j].check
    return voting.accused(ballot.comparisons[i, j]) or (echo != 0 and check != 0 and echo != check)


@njit(cache=True, nogil=True)
def _contradicted(ballot: Ballot) -> int:
    """The one member of the working set that all the others, two at least, contradict, or -1.

    When i speaks against j, one of the two is at fault: honest processors read the same of each
    other. So an honest one is contradicted by faulty ones only, and never by all the others as long
    as one of them is honest too. Less than all would not do: two that lie together look like two
    that were lied to.
    """
    answers, working_set = ballot.answers, ballot.vote.working_set
    others = voting.members(working_set) - 1
    found, several = -1, False
    for j in range(answers.size):
        answers[j].disputes = 0
        if not voting.has(working_set, j):
            continue
        for i in range(answers.size):
            if (
                i != j
                and voting.has(working_set, i)
                and (_testifies(ballot, i, j) or _testifies(ballot, j, i))
            ):
                answers[j].disputes |= 1 << i
        if others >= 2 and voting.members(answers[j].disputes) == others:
            several = found >= 0
            found = j
    return -1 if several else found


@njit(cache=True, nogil=True)
def _judge_alone(ballot: Ballot, meaningful: bool) -> None:
    """Without a quorum nobody knows who is right, but some things are wrong by themselves.

    So are damage, a message that was written twice, and a vote against the own echo. What is not
    finite is, too, unless the inputs are not or most say the same.
    """
    vote, answers = ballot.vote, ballot.answers
    finite = 0
    for j in range(answers.size):
        if voting.has(vote.working_set, j) and answers[j].data != Arrival.AWAITED:
            finite += 1 if answers[j].found != Comparison.NOT_FINITE else -1
    for j in range(answers.size):
        if not voting.has(vote.working_set, j) or voting.members(vote.working_set) < 2:
            continue
        answer = answers[j]
        answer.wrong = Comparison.SAME
        if answer.result == Arrival.DAMAGED:
            answer.wrong = Comparison.BAD_CHECKSUM
        elif redundant(vote.controller):
            _judge_page(ballot, j)
        if answer.wrong == Comparison.NOT_FINITE and not (meaningful and finite >= 0):
            answer.wrong = Comparison.SAME
        if answer.wrong != Comparison.SAME:
            exclude(vote, ballot.records, j, answer.wrong)


@njit(cache=True, nogil=True)
def _found_anew(vote: Record, answers: Records, records: Records) -> None:
    """No vote is possible: most of all processors, agreeing for a while, are the next set."""
    p = answers.size
    need = p // 2 + 1
    agreeing = 0
    for r in range(p):
        group = 0
        for i in range(p):
            if voting.has(vote.alive, i) and answers[r].equals == r and answers[i].equals == r:
                group |= 1 << i
        if voting.members(group) >= need:
            agreeing = group
    ready = 0
    for j in range(p):
        records[j].clean = records[j].clean + 1 if voting.has(agreeing, j) else 0
        if records[j].clean >= vote.clean_ticks:
            ready |= 1 << j
    if voting.members(ready) >= need:
        vote.working_set = ready
        for j in range(p):
            records[j].clean = 0


@njit(cache=True, nogil=True)
def _judge_time(ballot: Ballot, now: int) -> None:
    """Late once: a suspect. Late for the stall time: out, unless nobody else would be left."""
    vote, answers, records = ballot.vote, ballot.answers, ballot.records
    anybody = False
    for j in range(answers.size):
        if voting.has(vote.working_set, j) and arrived(vote.controller, answers, j, ballot.owner):
            anybody = True
    for j in range(answers.size):
        record = records[j]
        if not voting.has(vote.alive, j):
            continue
        if arrived(vote.controller, answers, j, ballot.owner):
            record.late_run = 0
            vote.suspects &= ~(1 << j)
            continue
        record.missed += 1
        record.clean = 0
        if not anybody:
            # Everybody is late: the machine stood still, no processor is to blame.
            continue
        if record.late_run == 0:
            record.late_since = vote.release
        record.late_run += 1
        vote.suspects |= 1 << j
        if (
            voting.has(vote.working_set, j)
            and record.late_run >= vote.late_ticks
            and now - record.late_since >= vote.stall
            and voting.members(vote.working_set) > 1
        ):
            exclude(vote, records, j, Comparison.MISSING)
