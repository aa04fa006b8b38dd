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
from ft_controller.atomics import fence, load_acquire, now_ns, pause, sleep_until, store_release
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
) = range(24)
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
) = range(22)
P_WORDS = 24

_FORGIVE = 20_000  # clean ticks in the working set after which earlier exclusions are forgotten
_FORGET = 4096  # ticks after which open disputes are forgotten


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
    count = n * n + 2 * n
    if mode == HIGH:
        count = n * n + n
    elif mode == LOWER:
        count = n
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
def _decide_echo(reg: Words, st: Words, comparisons: Words) -> int:
    """The representative of a group that a quorum belongs to and confirms, or -1."""
    p = st.shape[0]
    working = reg[R_WORKING]
    q = reg[R_QUORUM]
    for r in range(p):
        if st[r, P_GROUP] != r:
            continue
        confirmed = 0
        group = 0
        for i in range(p):
            if (working >> i) & 1 == 0 or st[i, P_GROUP] != r:
                continue
            group |= 1 << i
            if st[i, P_VOTED] != 1:
                continue
            seen = 1
            for j in range(p):
                if (
                    j != i
                    and (working >> j) & 1
                    and st[j, P_GROUP] == r
                    and comparisons[i, j] == voting.SAME
                ):
                    seen += 1
            if seen >= q:
                confirmed += 1
        if confirmed >= q:
            reg[R_GROUP] = group
            reg[R_AGREEING] = voting.members(group)
            return r
    return -1


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
    comparisons: Words,
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
        r = _decide_echo(reg, st, comparisons)
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
        if dead and st[k, P_GENERATION] == generation and st[k, P_BURIED] != generation:
            st[k, P_BURIED] = generation
            _exclude(reg, st, k, voting.CRASHED)
        elif not dead and generation != st[k, P_GENERATION]:
            if st[k, P_GENERATION] != 0 and st[k, P_BURIED] != st[k, P_GENERATION]:
                # It died and came back between two looks.
                st[k, P_BURIED] = st[k, P_GENERATION]
                _exclude(reg, st, k, voting.CRASHED)
            st[k, P_LATE_RUN] = 0
            reg[R_SUSPECT] &= ~(1 << k)
        if not dead:
            st[k, P_GENERATION] = generation


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
            reg, st, comparisons, data_f, results, results_f, owner, locked, tau
        ):
            reg[R_DECIDED] = 1
            break
        now = now_ns(clock)
        if now > release + reg[R_HARD_NS]:
            break
        if reg[R_MODE] == ECHO and _all_spoken(reg, st):
            break
        if now > last_look + 50_000:
            # The dead are known from the kernel: no need to wait for them, nor to be patient.
            last_look = now
            alive = alive_set(crew, p)
            if alive != reg[R_ALIVE]:
                reg[R_ALIVE] = alive
                _meet_newcomers(reg, st, crew, alive)
                reg[R_QUORUM] = voting.quorum(reg[R_WORKING])
        pause(clock, now - release)
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
        if (reg[R_WORKING] >> i) & 1 and st[i, P_DATA] != 0 and st[i, P_VOTED] != 0:
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
    disputes: Words,
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
        awaited = pending & reg[R_WORKING] & ~reg[R_SUSPECT]
        if pending == 0 or now > release + reg[R_LATE_NS]:
            break
        if awaited == 0 and now > voted + reg[R_PROBE_NS]:
            break
        if now - began > 60_000:
            sleep_until(clock, now + 20_000)
        else:
            pause(clock, 0)
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
    if reg[R_DECIDED] != 0:
        _judge(reg, st, comparisons, echoes, disputes, data_f, owner, n, tolerance)
    else:
        _judge_alone(reg, st)
    _judge_time(reg, st, owner, alive, now)
    _meet_newcomers(reg, st, crew, alive)
    reg[R_TICK_NS] = now_ns(clock) - release


@njit(cache=True, nogil=True)
def _judge(
    reg: Words,
    st: Words,
    comparisons: Words,
    echoes: Words,
    disputes: Words,
    data_f: Array,
    owner: Words,
    n: int,
    tolerance: float,
) -> None:
    """Name whoever differs from the quorum, showed two faces or lied; readmit who was clean."""
    p = st.shape[0]
    mode = reg[R_MODE]
    group = reg[R_GROUP]
    working = reg[R_WORKING]
    reference = -1
    for i in range(p):
        if (group >> i) & 1 and st[i, P_FOUND] == voting.SAME and reference < 0:
            reference = i
    culprit = -1
    if mode == ECHO:
        culprit = _disputed(reg, st, echoes, disputes)
    for j in range(p):
        wrong = voting.SAME
        if mode in (HIGH, LOWER, ECHO) and st[j, P_DATA] != 0:
            wrong = st[j, P_FOUND]
            if wrong == voting.SAME and reference >= 0:
                compared = n * n if mode == HIGH else (n if mode == LOWER else n * n + 2 * n)
                first = voting.equal(data_f[reference], data_f[j], BODY - 2, compared, tolerance)
                if first >= 0:
                    wrong = voting.DIFFERS
                    st[j, P_ELEMENT] = first - (BODY - 2)
        if st[j, P_VOTED] == 2 or st[j, P_RESULT] == 2:
            wrong = voting.BAD_CHECKSUM
        if wrong == voting.SAME and mode == ECHO and st[j, P_VOTED] == 1:
            for k in range(p):
                if (
                    k != j
                    and (group >> k) & 1
                    and echoes[j, k] == st[k, P_CHECK]
                    and voting.accused(comparisons[j, k])
                ):
                    wrong = voting.LYING_VOTE
                    st[j, P_ELEMENT] = k
        if j == culprit:
            wrong = voting.TWO_FACED
        if (
            wrong == voting.SAME
            and mode in (HIGH, LOWER, ECHO)
            and (working >> j) & 1
            and voting.voted_out(st[j, P_VOTES], working, j)
        ):
            wrong = voting.DIFFERS
            for i in range(p):
                if i != j and (group >> i) & 1 and voting.accused(comparisons[i, j]):
                    wrong = comparisons[i, j]
        if wrong != voting.SAME:
            _exclude(reg, st, j, wrong)
        elif not _arrived(reg, st, j, owner):
            st[j, P_CLEAN] = 0
        else:
            st[j, P_CLEAN] += 1
            if (reg[R_WORKING] >> j) & 1:
                if st[j, P_CLEAN] > _FORGIVE:
                    st[j, P_PENALTY] = 0
            elif (reg[R_ALIVE] >> j) & 1 and st[j, P_CLEAN] >= st[j, P_NEEDED]:
                reg[R_WORKING] |= 1 << j
                st[j, P_CLEAN] = 0


@njit(cache=True, nogil=True)
def _judge_alone(reg: Words, st: Words) -> None:
    """Without a quorum nobody knows who is right, but damage and NaN are wrong by themselves."""
    for j in range(st.shape[0]):
        if (reg[R_WORKING] >> j) & 1 == 0 or voting.members(reg[R_WORKING]) < 2:
            continue
        if st[j, P_FOUND] == voting.BAD_CHECKSUM or st[j, P_VOTED] == 2 or st[j, P_RESULT] == 2:
            _exclude(reg, st, j, voting.BAD_CHECKSUM)
        elif st[j, P_FOUND] == voting.NOT_FINITE:
            _exclude(reg, st, j, voting.NOT_FINITE)


@njit(cache=True, nogil=True)
def _disputed(reg: Words, st: Words, echoes: Words, disputes: Words) -> int:
    """Who showed different data to different readers, or -1.

    Reader i and writer j are in dispute when i read something else from j than the voter did: one
    of them is at fault. With one fault at a time, whoever is in dispute with two others is the one.
    """
    p = st.shape[0]
    group = reg[R_GROUP]
    if reg[R_TICK] % _FORGET == 0:
        disputes[:] = 0
        for j in range(p):
            st[j, P_DISPUTE] = 0
    any_new = False
    for i in range(p):
        if (group >> i) & 1 == 0 or st[i, P_VOTED] != 1:
            continue
        for j in range(p):
            if (
                j != i
                and (reg[R_WORKING] >> j) & 1
                and echoes[i, j] != 0
                and st[j, P_CHECK] != 0
                and echoes[i, j] != st[j, P_CHECK]
            ):
                disputes[i, j] = 1
                disputes[j, i] = 1
                any_new = True
    if not any_new:
        return -1
    culprit = -1
    most = 1
    tie = False
    for j in range(p):
        degree = 0
        st[j, P_DISPUTE] = 0
        for i in range(p):
            if disputes[i, j] != 0:
                degree += 1
                st[j, P_DISPUTE] |= 1 << i
        if degree > most:
            most = degree
            culprit = j
            tie = False
        elif degree == most and degree > 1:
            tie = True
    if culprit < 0 or tie:
        return -1
    disputes[culprit, :] = 0
    disputes[:, culprit] = 0
    return culprit


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
