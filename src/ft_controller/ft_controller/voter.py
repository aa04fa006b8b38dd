"""The voter at the actuators: releases a tick, collects, votes, judges, and keeps the working set.

It is the one part that is not redundant, so it computes no dynamics: it compares words, counts, and
copies. ``release_and_vote`` ends as soon as a quorum is sure, so that the torque can go out;
``review`` then waits for the rest up to a deadline and judges who did what.

Timing is by the clock, never by counting polls. A processor that is late is a suspect: nobody waits
for it, and its place in the working set is lost only when it has been late for a while
(hysteresis). Wrong data cost the place at once.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ft_controller import voting
from ft_controller.atomics import (
    checksum,
    combine,
    fence,
    load_acquire,
    now_ns,
    pause,
    sleep_until,
    store_release,
)
from ft_controller.layout import (
    BODY,
    CREW_GENERATION,
    CREW_WORDS,
    FAULT_WORDS,
    HEAD,
    IN_AWAITED,
    IN_GRACE,
    IN_HARD,
    IN_MODE,
    IN_NEXT,
    IN_QUORUM,
    IN_RELEASE,
    IN_SCHEME,
    IN_TICK,
    IN_TOLERANCE,
    IN_WORKING,
    INPUT_VECTORS,
)
from ft_controller.processor import ECHO, HIGH, LOWER, PARALLEL, SERIAL, alive_set, read_message

__all__ = ["P_WORDS", "R_WORDS", "release_and_vote", "review"]

Words = NDArray[np.int64]
Array = NDArray[np.float64]

# Registers of the voter.
(
    R_TICK,
    R_MODE,
    R_SCHEME,
    R_WORKING,
    R_SUSPECT,
    R_DECIDED,
    R_AGREEING,
    R_QUORUM,
    R_GROUP,
    R_RELEASE,
    R_VOTE_NS,
    R_TICK_NS,
    R_EXCLUSIONS,
    R_CLEAN,
    R_LATE_LIMIT,
    R_STALL_NS,
    R_GRACE_NS,
    R_HARD_NS,
    R_LATE_NS,
    R_PROBE_NS,
    R_SINGLE,
    R_ALIVE,
    R_NOT_FINITE,
    R_SPOKEN,
    R_BALLOT,
    R_RAISED,
) = range(26)
R_WORDS = 32

# What the voter keeps for each processor.
(
    P_ERROR,
    P_ELEMENT,
    P_ERROR_TICK,
    P_VOTES,
    P_SUGGESTION,
    P_MISSED,
    P_LATE_RUN,
    P_LATE_SINCE,
    P_CLEAN,
    P_NEEDED,
    P_PENALTY,
    P_GENERATION,
    P_FOUND,
    P_GROUP,
    P_CHECK,
    P_DATA,
    P_VOTED,
    P_RESULT,
    P_SET,
    P_DISPUTE,
    P_ERRORS,
    P_BURIED,
    P_REWRITTEN,
    P_WRONG_SINCE,
    P_WRONG_LAST,
) = range(25)
P_WORDS = 32

_NAP_NS = 10_000
_FORGIVE = 20_000  # clean ticks in the working set after which earlier exclusions are forgotten


@njit(cache=True, nogil=True)
def _write_input(
    reg: Words,
    entry: Words,
    entry_f: Array,
    vectors: Array,
    faults: Words,
    magnitudes: Array,
    tolerance: float,
    due: int,
    input_slot: int,
    clock: Words,
) -> None:
    """Fill the input slot of this tick and release it to all processors at once."""
    tick = reg[R_TICK]
    p = faults.shape[0]
    n = vectors.shape[1]
    at = HEAD + (tick & 1) * input_slot
    store_release(entry, at + IN_TICK, 0)
    fence()
    entry[at + IN_MODE] = reg[R_MODE]
    entry[at + IN_WORKING] = reg[R_WORKING]
    entry[at + IN_AWAITED] = reg[R_WORKING] & ~reg[R_SUSPECT]
    entry[at + IN_QUORUM] = reg[R_QUORUM]
    entry[at + IN_SCHEME] = reg[R_SCHEME]
    entry_f[at + IN_TOLERANCE] = tolerance
    entry[at + IN_NEXT] = due
    entry[at + IN_GRACE] = reg[R_GRACE_NS]
    k = at + HEAD
    for i in range(INPUT_VECTORS):
        for j in range(n):
            entry_f[k] = vectors[i, j]
            k += 1
    for i in range(p):
        for j in range(4):
            entry[k + j] = faults[i, j]
        entry_f[k + 4] = magnitudes[i]
        k += FAULT_WORDS
    release = now_ns(clock)
    reg[R_RELEASE] = release
    entry[at + IN_RELEASE] = release
    entry[at + IN_HARD] = release + reg[R_HARD_NS]
    store_release(entry, at + IN_TICK, tick)
    store_release(entry, 0, tick)


@njit(cache=True, nogil=True)
def _message_size(mode: int, n: int) -> int:
    """How many data a processor publishes for all."""
    return n * n + n if mode == HIGH else (n if mode == LOWER else n * n + 2 * n)


@njit(cache=True, nogil=True)
def _collect(
    reg: Words,
    st: Words,
    comparisons: Words,
    echoes: Words,
    pages: Words,
    data: Words,
    data_f: Array,
    results: Words,
    scratch: Words,
    slot: int,
    votes_at: int,
    result_at: int,
    n: int,
    tolerance: float,
    with_data: bool,
) -> None:
    """Copy what has arrived since the last look; each message is read once."""
    tick = reg[R_TICK]
    mode = reg[R_MODE]
    p = pages.shape[0]
    base = (tick & 1) * slot
    count = _message_size(mode, n)
    for i in range(p):
        page = pages[i]
        if mode in (HIGH, LOWER, ECHO):
            if st[i, P_DATA] == 0 and with_data and load_acquire(page, base) == tick:
                found, check = read_message(page, base, count, tick, data[i])
                if found != voting.MISSING:
                    st[i, P_DATA] = 1
                    st[i, P_CHECK] = check
                    if found == voting.SAME:
                        for k in range(count):
                            if not math.isfinite(data_f[i, BODY - 2 + k]):
                                found = voting.NOT_FINITE
                                st[i, P_ELEMENT] = k
                                break
                    st[i, P_FOUND] = found
                    if found == voting.SAME:
                        st[i, P_GROUP] = i
                        compared = n * n if mode == HIGH else count
                        for r in range(p):
                            if (
                                st[r, P_GROUP] == r
                                and r != i
                                and (
                                    voting.equal(
                                        data_f[r], data_f[i], BODY - 2, compared, tolerance
                                    )
                                    < 0
                                )
                            ):
                                st[i, P_GROUP] = r
                                break
            if st[i, P_VOTED] == 0 and load_acquire(page, base + votes_at) == tick:
                found, _ = read_message(page, base + votes_at, 2 * p, tick, scratch)
                if found == voting.SAME:
                    st[i, P_VOTED] = 1
                    st[i, P_SUGGESTION] = scratch[0]
                    for j in range(p):
                        comparisons[i, j] = scratch[BODY - 2 + j]
                        echoes[i, j] = scratch[BODY - 2 + p + j]
                elif found == voting.BAD_CHECKSUM:
                    st[i, P_VOTED] = 2
        if mode != ECHO and st[i, P_RESULT] == 0 and (load_acquire(page, base + result_at) == tick):
            found, _ = read_message(page, base + result_at, 2 * n, tick, results[i])
            if found == voting.SAME:
                st[i, P_RESULT] = 1
                st[i, P_SET] = results[i, 0]
            elif found == voting.BAD_CHECKSUM:
                st[i, P_RESULT] = 2


@njit(cache=True, nogil=True)
def _decide_echo(reg: Words, st: Words) -> int:
    """The representative of a quorum that agrees, or -1.

    What the voter has read itself decides. A quorum has an honest member as long as the faulty ones
    are fewer than it, so the torque is right; confirmations by others could add nothing to that, as
    faulty ones confirm each other too. They could only take away: an honest processor may have
    stopped waiting when it had seen the good face of a two-faced one.
    """
    r = _reference(reg, st)
    if r >= 0:
        reg[R_GROUP] = _class(reg, st, r)
        reg[R_AGREEING] = voting.members(reg[R_GROUP])
    return r


@njit(cache=True, nogil=True)
def _gather(
    reg: Words,
    st: Words,
    results: Words,
    results_f: Array,
    owner: Words,
    locked: Array,
    group: int,
    tau: Array,
) -> bool:
    """Put the shared-out torques together; False while one is missing or is no number."""
    n = owner.size
    for i in range(n):
        tau[i] = 0.0
        if locked[i] != 0.0:
            continue
        k = owner[i]
        if k < 0 or st[k, P_RESULT] != 1 or results[k, BODY - 2 + n + i] == 0:
            return False
        if reg[R_MODE] in (HIGH, LOWER) and st[k, P_SET] != group:
            return False
        tau[i] = results_f[k, BODY - 2 + i]
        if not math.isfinite(tau[i]):
            reg[R_NOT_FINITE] = 1
            return False
    return True


@njit(cache=True, nogil=True)
def _decide(
    reg: Words,
    st: Words,
    data_f: Array,
    results: Words,
    results_f: Array,
    owner: Words,
    locked: Array,
    tau: Array,
) -> bool:
    """Whether the torque of this tick is sure; then it is in ``tau``."""
    p = st.shape[0]
    n = owner.size
    mode = reg[R_MODE]
    working = reg[R_WORKING]
    if mode == ECHO:
        r = _decide_echo(reg, st)
        if r < 0:
            return False
        for i in range(n):
            tau[i] = data_f[r, BODY - 2 + n * n + n + i]
        return True
    if mode == SERIAL:
        owner[:] = 0
        reg[R_GROUP] = working
        reg[R_AGREEING] = 1
        return _gather(reg, st, results, results_f, owner, locked, working, tau)
    if mode == PARALLEL:
        for i in range(n):
            owner[i] = i % p
        reg[R_GROUP] = working
        reg[R_AGREEING] = 1
        return _gather(reg, st, results, results_f, owner, locked, working, tau)
    for r in range(p):
        if (working >> r) & 1 == 0 or st[r, P_RESULT] != 1:
            continue
        group = st[r, P_SET] & working
        if group != st[r, P_SET] or voting.members(group) < reg[R_QUORUM]:
            continue
        support = 0
        for i in range(p):
            if (group >> i) & 1 and st[i, P_RESULT] == 1 and st[i, P_SET] == group:
                support += 1
        if support < reg[R_QUORUM]:
            continue
        voting.assign(group, p, reg[R_SCHEME], locked, owner)
        if _gather(reg, st, results, results_f, owner, locked, group, tau):
            reg[R_GROUP] = group
            reg[R_AGREEING] = support
            return True
    return False


@njit(cache=True, nogil=True)
def _exclude(reg: Words, st: Words, k: int, error: int) -> None:
    """Take a processor out of the working set; each time it costs twice the clean ticks."""
    st[k, P_CLEAN] = 0
    if (reg[R_WORKING] >> k) & 1:
        reg[R_WORKING] &= ~(1 << k)
        reg[R_EXCLUSIONS] += 1
        st[k, P_NEEDED] = reg[R_CLEAN] << min(st[k, P_PENALTY], 10)
        st[k, P_PENALTY] += 1
    _note(reg, st, k, error)


@njit(cache=True, nogil=True)
def _note(reg: Words, st: Words, k: int, error: int) -> None:
    st[k, P_ERROR] = error
    st[k, P_ERROR_TICK] = reg[R_TICK]
    st[k, P_ERRORS] += 1


@njit(cache=True, nogil=True)
def _meet_newcomers(reg: Words, st: Words, crew: Words, alive: int) -> None:
    """A process that died leaves the working set; a new one starts outside of it."""
    for k in range(st.shape[0]):
        generation = load_acquire(crew, k * CREW_WORDS + CREW_GENERATION)
        dead = (alive >> k) & 1 == 0
        if dead and st[k, P_BURIED] != st[k, P_GENERATION]:
            # The one that was known is dead, whoever may have come and gone since.
            st[k, P_BURIED] = st[k, P_GENERATION]
            _exclude(reg, st, k, voting.CRASHED)
        elif not dead and generation != st[k, P_GENERATION]:
            if st[k, P_GENERATION] != 0 and st[k, P_BURIED] != st[k, P_GENERATION]:
                # It died and came back between two looks.
                st[k, P_BURIED] = st[k, P_GENERATION]
                _exclude(reg, st, k, voting.CRASHED)
            st[k, P_LATE_RUN] = 0
            st[k, P_WRONG_SINCE] = 0
            reg[R_SUSPECT] &= ~(1 << k)
        if not dead:
            st[k, P_GENERATION] = generation


@njit(cache=True, nogil=True)
def _rest(reg: Words, clock: Words, waited_ns: int) -> None:
    """Let the processors work; a voter of a higher priority must sleep, it has no one to yield to."""
    if reg[R_RAISED] != 0:
        sleep_until(clock, now_ns(clock) + _NAP_NS)
    else:
        pause(clock, waited_ns)


@njit(cache=True, nogil=True)
def release_and_vote(
    reg: Words,
    st: Words,
    comparisons: Words,
    echoes: Words,
    vectors: Array,
    faults: Words,
    magnitudes: Array,
    tolerance: float,
    due: int,
    entry: Words,
    entry_f: Array,
    pages: Words,
    crew: Words,
    data: Words,
    data_f: Array,
    results: Words,
    results_f: Array,
    scratch: Words,
    owner: Words,
    tau: Array,
    clock: Words,
    slot: int,
    input_slot: int,
    votes_at: int,
    result_at: int,
) -> bool:
    """One tick up to the torque; False: no quorum before the hard deadline, ``tau`` is void."""
    p = st.shape[0]
    n = owner.size
    locked = vectors[7]
    reg[R_TICK] += 1
    reg[R_ALIVE] = alive_set(crew, p)
    _meet_newcomers(reg, st, crew, reg[R_ALIVE])
    reg[R_QUORUM] = voting.quorum(reg[R_WORKING])
    reg[R_BALLOT] = reg[R_WORKING]
    reg[R_DECIDED] = 0
    reg[R_AGREEING] = 0
    reg[R_GROUP] = 0
    reg[R_NOT_FINITE] = 0
    comparisons[:] = voting.MISSING
    echoes[:] = 0
    for i in range(p):
        st[i, P_FOUND] = voting.MISSING
        st[i, P_GROUP] = -1
        st[i, P_CHECK] = 0
        st[i, P_DATA] = 0
        st[i, P_VOTED] = 0
        st[i, P_RESULT] = 0
        st[i, P_SET] = 0
        st[i, P_VOTES] = 0
        st[i, P_SUGGESTION] = 0
        st[i, P_REWRITTEN] = 0
    _write_input(
        reg, entry, entry_f, vectors, faults, magnitudes, tolerance, due, input_slot, clock
    )
    release = reg[R_RELEASE]
    last_look = release
    while True:
        _collect(
            reg,
            st,
            comparisons,
            echoes,
            pages,
            data,
            data_f,
            results,
            scratch,
            slot,
            votes_at,
            result_at,
            n,
            tolerance,
            reg[R_MODE] == ECHO,
        )
        alone = voting.members(reg[R_WORKING]) == 1 and reg[R_SINGLE] == 0
        if not alone and _decide(
            reg, st, data_f, results, results_f, owner, locked, tau
        ):
            reg[R_DECIDED] = 1
            break
        now = now_ns(clock)
        if now > release + reg[R_HARD_NS]:
            break
        if reg[R_MODE] == ECHO and _all_spoken(reg, st):
            break
        if reg[R_WORKING] == 0 and reg[R_MODE] in (HIGH, LOWER, ECHO):
            break  # nobody has a vote, there is nothing to wait for
        if now > last_look + 50_000:
            # The dead are known from the kernel: no need to wait for them, nor to be patient.
            last_look = now
            alive = alive_set(crew, p)
            if alive != reg[R_ALIVE]:
                reg[R_ALIVE] = alive
                _meet_newcomers(reg, st, crew, alive)
                reg[R_QUORUM] = voting.quorum(reg[R_WORKING])
                reg[R_BALLOT] = reg[R_WORKING]
        _rest(reg, clock, now - release)
    reg[R_VOTE_NS] = now_ns(clock) - release
    if reg[R_DECIDED] == 0:
        # Who has spoken by now? Later, in the review, it can no longer be told.
        _collect(
            reg,
            st,
            comparisons,
            echoes,
            pages,
            data,
            data_f,
            results,
            scratch,
            slot,
            votes_at,
            result_at,
            n,
            tolerance,
            True,
        )
        reg[R_SPOKEN] = 0
        redundant = reg[R_MODE] in (HIGH, LOWER, ECHO)
        for i in range(p):
            spoken = st[i, P_DATA] != 0 if redundant else _arrived(reg, st, i, owner)
            if (reg[R_WORKING] >> i) & 1 and spoken:
                reg[R_SPOKEN] |= 1 << i
    return reg[R_DECIDED] != 0


@njit(cache=True, nogil=True)
def _all_spoken(reg: Words, st: Words) -> bool:
    """Whether all that a decision could rest on is in: a disagreement is not waited out."""
    spoken = 0
    for i in range(st.shape[0]):
        if (reg[R_WORKING] >> i) & 1 and st[i, P_DATA] != 0:
            spoken |= 1 << i
    return spoken == reg[R_WORKING] and spoken != 0


@njit(cache=True, nogil=True)
def _arrived(reg: Words, st: Words, i: int, owner: Words) -> bool:
    mode = reg[R_MODE]
    if mode == ECHO:
        return st[i, P_DATA] != 0 and st[i, P_VOTED] != 0
    if mode in (HIGH, LOWER):
        return st[i, P_VOTED] != 0 and st[i, P_RESULT] != 0
    for k in range(owner.size):
        if owner[k] == i:
            return st[i, P_RESULT] != 0
    return True


@njit(cache=True, nogil=True)
def review(
    reg: Words,
    st: Words,
    comparisons: Words,
    echoes: Words,
    vectors: Array,
    pages: Words,
    crew: Words,
    data: Words,
    data_f: Array,
    results: Words,
    scratch: Words,
    owner: Words,
    clock: Words,
    slot: int,
    votes_at: int,
    result_at: int,
    tolerance: float,
) -> None:
    """Wait for the others up to the deadline, judge everybody, and change the working set."""
    p = st.shape[0]
    n = owner.size
    release = reg[R_RELEASE]
    voted = release + reg[R_VOTE_NS]
    began = now_ns(clock)
    while True:
        _collect(
            reg,
            st,
            comparisons,
            echoes,
            pages,
            data,
            data_f,
            results,
            scratch,
            slot,
            votes_at,
            result_at,
            n,
            tolerance,
            True,
        )
        alive = alive_set(crew, p)
        pending = 0
        for i in range(p):
            if (alive >> i) & 1 and not _arrived(reg, st, i, owner):
                pending |= 1 << i
        now = now_ns(clock)
        # With nobody in the working set all are waited for: they may be the next one.
        awaited = pending & (reg[R_WORKING] or alive) & ~reg[R_SUSPECT]
        if pending == 0 or now > release + reg[R_LATE_NS]:
            break
        if awaited == 0 and now > voted + reg[R_PROBE_NS]:
            break
        if now - began > 60_000:
            sleep_until(clock, now + 20_000)
        else:
            _rest(reg, clock, 0)
    reg[R_ALIVE] = alive
    for j in range(p):
        votes = 0
        for i in range(p):
            if (
                i != j
                and (reg[R_WORKING] >> i) & 1
                and st[i, P_VOTED] == 1
                and voting.accused(comparisons[i, j])
            ):
                votes += 1
        st[j, P_VOTES] = votes
    if reg[R_MODE] in (HIGH, LOWER, ECHO):
        _look_again(reg, st, pages, slot, n)
    if reg[R_DECIDED] != 0:
        _judge(reg, st, comparisons, echoes, data_f, owner, n, tolerance)
    elif reg[R_WORKING] == 0 and reg[R_MODE] in (HIGH, LOWER, ECHO):
        _found_anew(reg, st, alive)
    else:
        meaningful = bool(np.isfinite(vectors).all())
        _judge_alone(reg, st, comparisons, echoes, data_f, n, tolerance, meaningful)
    _judge_time(reg, st, owner, alive, now)
    _meet_newcomers(reg, st, crew, alive)
    reg[R_TICK_NS] = now_ns(clock) - release


@njit(cache=True, nogil=True)
def _look_again(reg: Words, st: Words, pages: Words, slot: int, n: int) -> None:
    """Whose data are no longer those that were read: an honest processor writes them once."""
    tick = reg[R_TICK]
    base = (tick & 1) * slot
    count = _message_size(reg[R_MODE], n)
    for j in range(st.shape[0]):
        if st[j, P_DATA] == 0:
            continue
        page = pages[j]
        stamp = load_acquire(page, base)
        claimed = page[base + 1]
        found = checksum(page, base + 2, BODY - 2 + count, tick)
        echo = found if found == claimed else combine(found, claimed)
        st[j, P_REWRITTEN] = stamp != tick or echo != st[j, P_CHECK]


@njit(cache=True, nogil=True)
def _judge(
    reg: Words,
    st: Words,
    comparisons: Words,
    echoes: Words,
    data_f: Array,
    owner: Words,
    n: int,
    tolerance: float,
) -> None:
    """Name whoever differs from the quorum, showed two faces or lied; readmit who was clean.

    Everything is judged by what this tick shows. A memory of who contradicted whom would let two
    processors that lie at different times make an honest third look like the culprit.
    """
    p = st.shape[0]
    redundant = reg[R_MODE] in (HIGH, LOWER, ECHO)
    compared = _compared(reg[R_MODE], n)
    reference = _reference(reg, st)
    outcast = -1
    if redundant:
        outcast = _contradicted(reg, st, comparisons, echoes)
    for j in range(p):
        wrong = voting.SAME
        if redundant:
            wrong = _evident(st, comparisons, echoes, data_f, j, compared, tolerance)
            if (
                wrong in (voting.SAME, voting.LYING_VOTE)
                and reference >= 0
                and st[j, P_FOUND] == voting.SAME
            ):
                first = voting.equal(data_f[reference], data_f[j], BODY - 2, compared, tolerance)
                if first >= 0:
                    wrong = voting.DIFFERS
                    st[j, P_ELEMENT] = first - (BODY - 2)
        if st[j, P_RESULT] == 2:
            wrong = voting.BAD_CHECKSUM
        if wrong == voting.SAME and j == outcast:
            wrong = voting.TWO_FACED
            for i in range(p):
                if (
                    i != j
                    and (reg[R_WORKING] >> i) & 1
                    and not _testifies(st, comparisons, echoes, i, j)
                ):
                    # This one says nothing against j: it is j who speaks against it.
                    wrong = voting.LYING_VOTE
                    st[j, P_ELEMENT] = i
        if wrong != voting.SAME:
            if st[j, P_WRONG_SINCE] == 0:
                st[j, P_WRONG_SINCE] = reg[R_RELEASE]
            st[j, P_WRONG_LAST] = reg[R_RELEASE]
            _exclude(reg, st, j, wrong)
        elif not _arrived(reg, st, j, owner):
            st[j, P_CLEAN] = 0
        else:
            st[j, P_CLEAN] += 1
            if st[j, P_CLEAN] >= reg[R_CLEAN]:
                st[j, P_WRONG_SINCE] = 0
            if (reg[R_WORKING] >> j) & 1:
                if st[j, P_CLEAN] > _FORGIVE:
                    st[j, P_PENALTY] = 0
            elif (reg[R_ALIVE] >> j) & 1 and st[j, P_CLEAN] >= st[j, P_NEEDED]:
                reg[R_WORKING] |= 1 << j
                st[j, P_CLEAN] = 0


@njit(cache=True, nogil=True)
def _compared(mode: int, n: int) -> int:
    """How many of the data a controller compares."""
    return n * n if mode == HIGH else (n if mode == LOWER else n * n + 2 * n)


@njit(cache=True, nogil=True)
def _reference(reg: Words, st: Words) -> int:
    """One whose data a quorum shares, as the voter itself has read them, or -1.

    Nobody differs from anything less: in the paper's controllers the processors decide by what they
    have read of each other, and the one whose data the voter would go by may have shown it another
    face.
    """
    for r in range(st.shape[0]):
        if st[r, P_GROUP] == r and voting.members(_class(reg, st, r)) >= reg[R_QUORUM]:
            return r
    return -1


@njit(cache=True, nogil=True)
def _class(reg: Words, st: Words, r: int) -> int:
    """The members of the working set whose data agree with those of r."""
    group = 0
    for i in range(st.shape[0]):
        if (reg[R_WORKING] >> i) & 1 and st[i, P_GROUP] == r:
            group |= 1 << i
    return group


@njit(cache=True, nogil=True)
def _evident(
    st: Words,
    comparisons: Words,
    echoes: Words,
    data_f: Array,
    j: int,
    compared: int,
    tolerance: float,
) -> int:
    """What is wrong with j by its own page alone, whatever anybody else says."""
    if st[j, P_VOTED] == 2:
        return voting.BAD_CHECKSUM
    if st[j, P_DATA] == 0:
        return voting.SAME
    if st[j, P_FOUND] != voting.SAME:
        return st[j, P_FOUND]
    if st[j, P_REWRITTEN] != 0:
        return voting.TWO_FACED
    if st[j, P_VOTED] == 0:
        return voting.SAME
    if echoes[j, j] != st[j, P_CHECK]:
        # It published something else than it says itself.
        return voting.TWO_FACED
    for k in range(st.shape[0]):
        if k != j and _false_claim(st, comparisons, echoes, data_f, j, k, compared, tolerance):
            st[j, P_ELEMENT] = k
            return voting.LYING_VOTE
    return voting.SAME


@njit(cache=True, nogil=True)
def _false_claim(
    st: Words,
    comparisons: Words,
    echoes: Words,
    data_f: Array,
    j: int,
    k: int,
    compared: int,
    tolerance: float,
) -> bool:
    """Whether what j says of k does not follow from what j says that it read of k.

    An echo that the voter has too stands for words that the voter has too, so that it can compare
    them itself. Any other echo may be true.
    """
    said = comparisons[j, k]
    if said < voting.SAME or said > voting.NOT_FINITE:
        return True
    if (said == voting.MISSING) != (echoes[j, k] == 0):
        return True
    if st[k, P_DATA] == 0 or echoes[j, k] != st[k, P_CHECK]:
        return False
    if st[k, P_FOUND] == voting.BAD_CHECKSUM:
        return said != voting.BAD_CHECKSUM
    if said == voting.SAME and st[j, P_GROUP] == st[k, P_GROUP] and tolerance == 0.0:
        return False
    if voting.equal(data_f[j], data_f[k], BODY - 2, compared, tolerance) < 0:
        return said != voting.SAME
    if st[k, P_FOUND] == voting.NOT_FINITE:
        return said != voting.NOT_FINITE
    return said != voting.DIFFERS


@njit(cache=True, nogil=True)
def _testifies(st: Words, comparisons: Words, echoes: Words, i: int, j: int) -> bool:
    """Whether i says that j is wrong, or that j showed it something else than the voter."""
    if st[i, P_VOTED] != 1:
        return False
    return voting.accused(comparisons[i, j]) or (
        echoes[i, j] != 0 and st[j, P_CHECK] != 0 and echoes[i, j] != st[j, P_CHECK]
    )


@njit(cache=True, nogil=True)
def _contradicted(reg: Words, st: Words, comparisons: Words, echoes: Words) -> int:
    """The one member of the working set that all the others, two at least, contradict, or -1.

    When i speaks against j, one of the two is at fault: honest processors read the same of each
    other. So an honest one is contradicted by faulty ones only, and never by all the others as long
    as one of them is honest too. Less than all would not do: two that lie together look like two
    that were lied to.
    """
    p = st.shape[0]
    working = reg[R_WORKING]
    others = voting.members(working) - 1
    found = -1
    for j in range(p):
        st[j, P_DISPUTE] = 0
        if (working >> j) & 1 == 0:
            continue
        for i in range(p):
            if (
                i != j
                and (working >> i) & 1
                and (
                    _testifies(st, comparisons, echoes, i, j)
                    or _testifies(st, comparisons, echoes, j, i)
                )
            ):
                st[j, P_DISPUTE] |= 1 << i
        if others >= 2 and voting.members(st[j, P_DISPUTE]) == others:
            found = j if found == -1 else -2
    return max(found, -1)


@njit(cache=True, nogil=True)
def _judge_alone(
    reg: Words,
    st: Words,
    comparisons: Words,
    echoes: Words,
    data_f: Array,
    n: int,
    tolerance: float,
    meaningful: bool,
) -> None:
    """Without a quorum nobody knows who is right, but some things are wrong by themselves.

    So are damage, a message that was written twice, and a vote against the own echo. What is not
    finite is, too, unless the inputs are not or most say the same.
    """
    p = st.shape[0]
    finite = 0
    for j in range(p):
        if (reg[R_WORKING] >> j) & 1 and st[j, P_DATA] != 0:
            finite += 1 if st[j, P_FOUND] != voting.NOT_FINITE else -1
    for j in range(p):
        if (reg[R_WORKING] >> j) & 1 == 0 or voting.members(reg[R_WORKING]) < 2:
            continue
        wrong = voting.BAD_CHECKSUM if st[j, P_RESULT] == 2 else voting.SAME
        if wrong == voting.SAME and reg[R_MODE] in (HIGH, LOWER, ECHO):
            wrong = _evident(
                st, comparisons, echoes, data_f, j, _compared(reg[R_MODE], n), tolerance
            )
        if wrong == voting.NOT_FINITE and not (meaningful and finite >= 0):
            wrong = voting.SAME
        if wrong != voting.SAME:
            _exclude(reg, st, j, wrong)


@njit(cache=True, nogil=True)
def _found_anew(reg: Words, st: Words, alive: int) -> None:
    """The working set is empty: most of all processors, agreeing for a while, are the next one."""
    p = st.shape[0]
    need = p // 2 + 1
    agreeing = 0
    for r in range(p):
        group = 0
        for i in range(p):
            if (alive >> i) & 1 and st[r, P_GROUP] == r and st[i, P_GROUP] == r:
                group |= 1 << i
        if voting.members(group) >= need:
            agreeing = group
    ready = 0
    for j in range(p):
        st[j, P_CLEAN] = st[j, P_CLEAN] + 1 if (agreeing >> j) & 1 else 0
        if st[j, P_CLEAN] >= reg[R_CLEAN]:
            ready |= 1 << j
    if voting.members(ready) >= need:
        reg[R_WORKING] = ready
        for j in range(p):
            st[j, P_CLEAN] = 0


@njit(cache=True, nogil=True)
def _judge_time(reg: Words, st: Words, owner: Words, alive: int, now: int) -> None:
    """Late once: a suspect. Late for the stall time: out, unless nobody else would be left."""
    p = st.shape[0]
    anybody = False
    for j in range(p):
        if (reg[R_WORKING] >> j) & 1 and _arrived(reg, st, j, owner):
            anybody = True
    for j in range(p):
        if (alive >> j) & 1 == 0:
            continue
        if _arrived(reg, st, j, owner):
            st[j, P_LATE_RUN] = 0
            reg[R_SUSPECT] &= ~(1 << j)
            continue
        st[j, P_MISSED] += 1
        st[j, P_CLEAN] = 0
        if not anybody:
            # Everybody is late: the machine stood still, no processor is to blame.
            continue
        if st[j, P_LATE_RUN] == 0:
            st[j, P_LATE_SINCE] = reg[R_RELEASE]
        st[j, P_LATE_RUN] += 1
        reg[R_SUSPECT] |= 1 << j
        if (
            (reg[R_WORKING] >> j) & 1
            and st[j, P_LATE_RUN] >= reg[R_LATE_LIMIT]
            and now - st[j, P_LATE_SINCE] >= reg[R_STALL_NS]
            and voting.members(reg[R_WORKING]) > 1
        ):
            _exclude(reg, st, j, voting.MISSING)
