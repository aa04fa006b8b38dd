"""The voter at the actuators: releases a tick, collects the answers, and decides on a torque.

It is the one part that is not redundant, so it computes no dynamics: it compares words, counts, and
copies. ``release_and_vote`` ends as soon as a quorum is sure, so that the torque can go out;
:func:`~ft_controller.judge.review` then waits for the rest up to a deadline and judges who did
what.

Timing is by the clock, never by counting polls. A processor that is late is a suspect: nobody waits
for it, and its place in the working set is lost only when it has been late for a while
(hysteresis). Wrong data cost the place at once.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ft_controller import voting
from ft_controller.atomics import fence, load_acquire, now_ns, pause, sleep_until, store_release
from ft_controller.ballot import Arrival, Ballot
from ft_controller.controllers import Controller, compared_size, data_size, redundant
from ft_controller.messages import (
    InputBlock,
    ProcessTable,
    Shared,
    alive_set,
    published,
    read_message,
)
from ft_controller.records import Record, Records, Words
from ft_controller.voting import Comparison

__all__ = [
    "arrived",
    "collect",
    "exclude",
    "meet_newcomers",
    "reference",
    "release_and_vote",
    "rest",
    "unable",
]


_NAP_NS = 10_000
_LOOK_NS = 50_000  # between two looks at who is alive


@njit(cache=True, nogil=True)
def release_and_vote(ballot: Ballot, shared: Shared, joints: Records, faults: Records) -> bool:
    """One tick up to the torque; False: no quorum before the hard deadline, ``tau`` is void.

    Args:
        ballot: The voter's memory.
        shared: The shared memory; only the input block may be written.
        joints: Inputs of equation (2), shape (n,), of :data:`~ft_controller.dynamics.JOINT`.
        faults: What the processors shall do wrong, shape (p,).
    """
    vote, clock = ballot.vote, ballot.clock
    vote.tick += 1
    _open(ballot, shared.processes)
    _write_input(vote, shared.input, joints, faults, clock)
    last_look = vote.release
    while True:
        collect(ballot, shared, vote.controller == Controller.ECHO)
        hopeless = unable(vote)
        if not hopeless and _decide(ballot, joints):
            vote.decided = 1
            break
        now = now_ns(clock)
        if hopeless or now > vote.release + vote.hard or _all_spoken(vote, ballot.answers):
            break
        if now > last_look + _LOOK_NS:
            # The dead are known from the kernel: no need to wait for them, nor to be patient.
            last_look = now
            if alive_set(shared.processes) != vote.alive:
                _look_who_votes(vote, ballot.records, shared.processes)
        rest(vote, clock, now - vote.release)
    vote.vote_time = now_ns(clock) - vote.release
    if vote.decided == 0:
        # Who has spoken by now? Later, in the review, it can no longer be told.
        collect(ballot, shared, True)
        vote.spoken = 0
        for i in range(ballot.answers.size):
            spoken = arrived(vote.controller, ballot.answers, i, ballot.owner)
            if redundant(vote.controller):
                spoken = ballot.answers[i].data != Arrival.AWAITED
            if spoken and voting.has(vote.working_set, i):
                vote.spoken |= 1 << i
    return vote.decided != 0


@njit(cache=True, nogil=True)
def _open(ballot: Ballot, processes: ProcessTable) -> None:
    """An empty ballot for those that have a vote."""
    vote, answers = ballot.vote, ballot.answers
    _look_who_votes(vote, ballot.records, processes)
    vote.decided = 0
    vote.agreeing = 0
    vote.group = 0
    vote.not_finite = 0
    ballot.comparisons[:] = Comparison.MISSING
    ballot.echoes[:] = 0
    for i in range(answers.size):
        answer = answers[i]
        answer.data = Arrival.AWAITED
        answer.votes = Arrival.AWAITED
        answer.result = Arrival.AWAITED
        answer.found = Comparison.MISSING
        answer.equals = -1
        answer.check = 0
        answer.rewritten = 0
        answer.suggestion = 0
        answer.group = 0
        answer.votes_against = 0


@njit(cache=True, nogil=True)
def _look_who_votes(vote: Record, records: Records, processes: ProcessTable) -> None:
    """The working set without the dead, and how many of it must agree."""
    vote.alive = alive_set(processes)
    meet_newcomers(vote, records, processes)
    vote.quorum = voting.quorum(vote.working_set)
    vote.voters = vote.working_set


@njit(cache=True, nogil=True)
def meet_newcomers(vote: Record, records: Records, processes: ProcessTable) -> None:
    """A process that died leaves the working set; a new one starts outside of it."""
    for k in range(records.size):
        record = records[k]
        generation = load_acquire(processes.generation, k)
        dead = not voting.has(vote.alive, k)
        if dead and record.buried != record.generation:
            # The one that was known is dead, whoever may have come and gone since.
            record.buried = record.generation
            exclude(vote, records, k, Comparison.CRASHED)
        elif not dead and generation != record.generation:
            if record.generation != 0 and record.buried != record.generation:
                # It died and came back between two looks.
                record.buried = record.generation
                exclude(vote, records, k, Comparison.CRASHED)
            record.late_run = 0
            record.wrong_since = 0
            vote.suspects &= ~(1 << k)
        if not dead:
            record.generation = generation


@njit(cache=True, nogil=True)
def exclude(vote: Record, records: Records, k: int, error: int) -> None:
    """Take a processor out of the working set; each time it costs twice the clean ticks."""
    record = records[k]
    record.clean = 0
    if voting.has(vote.working_set, k):
        vote.working_set &= ~(1 << k)
        vote.exclusions += 1
        record.clean_needed = vote.clean_ticks << min(record.penalty, 10)
        record.penalty += 1
    record.error = error
    record.error_tick = vote.tick
    record.errors += 1


@njit(cache=True, nogil=True)
def _write_input(
    vote: Record, inputs: InputBlock, joints: Records, faults: Records, clock: Words
) -> None:
    """Fill the input slot of this tick and release it to all processors at once."""
    slot = vote.tick & 1
    stamp = inputs.header["tick"]
    store_release(stamp, slot, 0)
    fence()
    header = inputs.header[slot]
    header.controller = vote.controller
    header.reconfiguration = vote.reconfiguration
    header.working_set = vote.working_set
    header.awaited = vote.working_set & ~vote.suspects
    header.quorum = vote.quorum
    header.tolerance = vote.tolerance
    header.next_due = vote.next_due
    header.grace = vote.grace
    for i in range(joints.size):
        inputs.joints[slot, i] = joints[i]
    for i in range(faults.size):
        inputs.faults[slot, i] = faults[i]
    vote.release = now_ns(clock)
    header.release = vote.release
    header.deadline = vote.release + vote.hard
    store_release(stamp, slot, vote.tick)
    store_release(inputs.control, 0, vote.tick)


@njit(cache=True, nogil=True)
def collect(ballot: Ballot, shared: Shared, with_data: bool) -> None:
    """Copy what has arrived since the last look; each message is read once."""
    vote, answers = ballot.vote, ballot.answers
    tick, controller = vote.tick, vote.controller
    n = ballot.owner.size
    for i in range(answers.size):
        answer = answers[i]
        if redundant(controller):
            if with_data and answer.data == Arrival.AWAITED and published(shared.data, i, tick):
                _take_data(ballot, shared.data, i)
            if answer.votes == Arrival.AWAITED and published(shared.votes, i, tick):
                _take_votes(ballot, shared.votes, i)
        if (
            controller != Controller.ECHO
            and answer.result == Arrival.AWAITED
            and published(shared.result, i, tick)
        ):
            found, _ = read_message(shared.result, i, tick, 2 * n, ballot.results[i])
            if found == Comparison.SAME:
                answer.result = Arrival.GOOD
                answer.group = ballot.results[i, 0]
            elif found == Comparison.BAD_CHECKSUM:
                answer.result = Arrival.DAMAGED


@njit(cache=True, nogil=True)
def _take_data(ballot: Ballot, message: Words, i: int) -> None:
    """Read the data of processor i, and find who has said the same before."""
    vote, answers, data = ballot.vote, ballot.answers, ballot.data
    answer = answers[i]
    count = data_size(vote.controller, ballot.owner.size)
    found, check = read_message(message, i, vote.tick, count, data[i].view(np.int64))
    if found == Comparison.MISSING:
        return
    answer.data = Arrival.GOOD
    answer.check = check
    if found == Comparison.SAME:
        for k in range(count):
            if not math.isfinite(data[i, 1 + k]):
                found = Comparison.NOT_FINITE
                ballot.records[i].element = k
                break
    answer.found = found
    if found != Comparison.SAME:
        return
    answer.equals = i
    compared = compared_size(vote.controller, ballot.owner.size)
    for r in range(answers.size):
        if (
            r != i
            and answers[r].equals == r
            and voting.equal(data[r], data[i], 1, compared, vote.tolerance) < 0
        ):
            answer.equals = r
            return


@njit(cache=True, nogil=True)
def _take_votes(ballot: Ballot, votes: Words, i: int) -> None:
    """Read what processor i says of the others."""
    answer, message = ballot.answers[i], ballot.message
    p = ballot.answers.size
    found, _ = read_message(votes, i, ballot.vote.tick, 2 * p, message)
    if found == Comparison.SAME:
        answer.votes = Arrival.GOOD
        answer.suggestion = message[0]
        for j in range(p):
            ballot.comparisons[i, j] = message[1 + j]
            ballot.echoes[i, j] = message[1 + p + j]
    elif found == Comparison.BAD_CHECKSUM:
        answer.votes = Arrival.DAMAGED


@njit(cache=True, nogil=True)
def _decide(ballot: Ballot, joints: Records) -> bool:
    """Whether the torque of this tick is sure; then it is in ``tau``."""
    vote = ballot.vote
    if vote.controller == Controller.ECHO:
        return _decide_by_data(ballot)
    if vote.controller in (Controller.SERIAL, Controller.PARALLEL):
        for i in range(ballot.owner.size):
            ballot.owner[i] = 0
            if vote.controller == Controller.PARALLEL:
                ballot.owner[i] = i % ballot.answers.size
        vote.group = vote.working_set
        vote.agreeing = 1
        return _gather(ballot, joints, vote.working_set)
    return _decide_by_groups(ballot, joints)


@njit(cache=True, nogil=True)
def _decide_by_data(ballot: Ballot) -> bool:
    """The torque of a quorum whose data agree.

    What the voter has read itself decides. A quorum has an honest member as long as the faulty ones
    are fewer than it, so the torque is right; confirmations by others could add nothing to that, as
    faulty ones confirm each other too. They could only take away: an honest processor may have
    stopped waiting when it had seen the good face of a two-faced one.
    """
    vote = ballot.vote
    r = reference(vote, ballot.answers)
    if r < 0:
        return False
    vote.group = _class(vote.working_set, ballot.answers, r)
    vote.agreeing = voting.members(vote.group)
    n = ballot.owner.size
    for i in range(n):
        ballot.tau[i] = ballot.data[r, 1 + n * n + n + i]
    return True


@njit(cache=True, nogil=True)
def _decide_by_groups(ballot: Ballot, joints: Records) -> bool:
    """The paper's: the torques of a set of processors that a quorum of it stands for."""
    vote, answers = ballot.vote, ballot.answers
    p = answers.size
    for r in range(p):
        if not voting.has(vote.working_set, r) or answers[r].result != Arrival.GOOD:
            continue
        group = answers[r].group & vote.working_set
        if group != answers[r].group or voting.members(group) < vote.quorum:
            continue
        support = 0
        for i in range(p):
            answer = answers[i]
            if voting.has(group, i) and answer.result == Arrival.GOOD and answer.group == group:
                support += 1
        if support < vote.quorum:
            continue
        voting.assign(group, p, vote.reconfiguration, joints["locked"], ballot.owner)
        if _gather(ballot, joints, group):
            vote.group = group
            vote.agreeing = support
            return True
    return False


@njit(cache=True, nogil=True)
def _gather(ballot: Ballot, joints: Records, group: int) -> bool:
    """Put the shared-out torques together; False while one is missing or is no number."""
    vote, tau = ballot.vote, ballot.tau
    n = tau.size
    for i in range(n):
        tau[i] = 0.0
        if joints[i].locked != 0.0:
            continue
        k = ballot.owner[i]
        if k < 0:
            return False
        answer = ballot.answers[k]
        if answer.result != Arrival.GOOD or ballot.results[k, 1 + n + i] == 0:
            return False
        if redundant(vote.controller) and answer.group != group:
            return False
        tau[i] = ballot.results[k].view(np.float64)[1 + i]
        if not math.isfinite(tau[i]):
            vote.not_finite = 1
            return False
    return True


@njit(cache=True, nogil=True)
def reference(vote: Record, answers: Records) -> int:
    """One whose data a quorum shares, as the voter itself has read them, or -1.

    Nobody differs from anything less: in the paper's controllers the processors decide by what they
    have read of each other, and the one whose data the voter would go by may have shown it another
    face.
    """
    for r in range(answers.size):
        if (
            answers[r].equals == r
            and voting.members(_class(vote.working_set, answers, r)) >= vote.quorum
        ):
            return r
    return -1


@njit(cache=True, nogil=True)
def _class(working_set: int, answers: Records, r: int) -> int:
    """The members of the working set whose data agree with those of r."""
    group = 0
    for i in range(answers.size):
        if voting.has(working_set, i) and answers[i].equals == r:
            group |= 1 << i
    return group


@njit(cache=True, nogil=True)
def unable(vote: Record) -> bool:
    """Whether no answer could ever decide: the working set is empty, or one that must not be alone.

    There is nothing to wait for in a vote then. The review waits for all, they may be the next set.
    """
    left = voting.members(vote.working_set)
    return (left == 0 and redundant(vote.controller)) or (left == 1 and vote.allow_single == 0)


@njit(cache=True, nogil=True)
def _all_spoken(vote: Record, answers: Records) -> bool:
    """Whether all that a decision could rest on is in: a disagreement is not waited out."""
    if vote.controller != Controller.ECHO or vote.working_set == 0:
        return False
    for i in range(answers.size):
        if voting.has(vote.working_set, i) and answers[i].data == Arrival.AWAITED:
            return False
    return True


@njit(cache=True, nogil=True)
def arrived(controller: int, answers: Records, i: int, owner: Words) -> bool:
    """Whether all that processor i has to say is in, good or damaged."""
    answer = answers[i]
    if controller == Controller.ECHO:
        return answer.data != Arrival.AWAITED and answer.votes != Arrival.AWAITED
    if redundant(controller):
        return answer.votes != Arrival.AWAITED and answer.result != Arrival.AWAITED
    for k in range(owner.size):
        if owner[k] == i:
            return answer.result != Arrival.AWAITED
    return True


@njit(cache=True, nogil=True)
def rest(vote: Record, clock: Words, waited_ns: int) -> None:
    """Let the processors work; a voter of higher priority has no one to yield to: it sleeps."""
    if vote.raised != 0:
        sleep_until(clock, now_ns(clock) + _NAP_NS)
    else:
        pause(clock, waited_ns)
