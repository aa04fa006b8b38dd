"""What one processor does, tick after tick, in its own operating-system process.

A tick has up to three rounds. Each round ends in one message, written once into the processor's own
page and stamped when it is complete:

    data      M, N (and tau): whatever is computed redundantly
    votes     comparison vector, working-set suggestion, and the checksums of what was read (echo)
    result    the torques of the joints that were shared out to this processor

| controller      | data          | compared   | result                |
|-----------------|---------------|------------|-----------------------|
| serial          |               |            | processor 0: all      |
| parallel        |               |            | joints i mod p        |
| high_tolerance  | M, N          | M          | own joints' tau       |
| lower_tolerance | diagonal of M | the same   | own rows of M, N, tau |
| echo            | M, N, tau     | M, N, tau  | (data are voted on)   |
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
    exit_now,
    fence,
    load_acquire,
    now_ns,
    pause,
    sleep_until,
    store_release,
)
from ft_controller.dynamics import (
    WORK_ROWS,
    commanded,
    inertia_row,
    outer_sums,
    torque_element,
)
from ft_controller.layout import (
    BODY,
    CREW_ALIVE,
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

__all__ = [
    "CONTROLLERS",
    "ECHO",
    "HIGH",
    "LOWER",
    "PARALLEL",
    "SERIAL",
    "alive_set",
    "read_message",
    "serve",
]

Words = NDArray[np.int64]
Array = NDArray[np.float64]

CONTROLLERS = ("serial", "parallel", "high_tolerance", "lower_tolerance", "echo")
SERIAL, PARALLEL, HIGH, LOWER, ECHO = range(5)

(
    _NONE,
    _WRONG,
    _NAN,
    _STUCK,
    _SLOW,
    _SILENT,
    _CRASH,
    _TWO_FACED,
    _COLLUDING,
    _CORRUPTED,
    _LYING,
    _WILD,
) = range(12)

_LEAD_NS = 120_000  # awake this long before the next tick is due


@njit(cache=True, nogil=True)
def alive_set(crew: Words, p: int) -> int:
    """The processors whose processes are alive, as the nursery knows."""
    group = 0
    for k in range(p):
        if load_acquire(crew, k * CREW_WORDS + CREW_ALIVE) != 0:
            group |= 1 << k
    return group


@njit(cache=True, nogil=True)
def read_message(page: Words, base: int, count: int, tick: int, out: Words) -> tuple[int, int]:
    """Copy a message of ``count`` data words of a tick: (SAME, MISSING or BAD_CHECKSUM, echo).

    ``out`` gets the set word and the data (out[0], out[BODY - 2 ..]). A message that is written
    again during the copy counts as not there yet, if its stamp tells.

    The echo stands for all that was read, the claimed checksum too. A writer that writes a tick
    twice can be overtaken unnoticed, because both versions carry the same stamp: the reader has the
    checksum of one and data of the other. Two readers with the same echo have read the same words,
    so they find the same.
    """
    if load_acquire(page, base) != tick:
        return voting.MISSING, 0
    claimed = page[base + 1]
    for k in range(BODY - 2 + count):
        out[k] = page[base + 2 + k]
    fence()
    if load_acquire(page, base) != tick:
        return voting.MISSING, 0
    found = checksum(out, 0, BODY - 2 + count, tick)
    if found != claimed:
        return voting.BAD_CHECKSUM, combine(found, claimed)
    return voting.SAME, found


@njit(cache=True, nogil=True)
def _stamp(page: Words, base: int, count: int, tick: int) -> None:
    """Checksum and stamp of a message whose words are in place."""
    page[base + 1] = checksum(page, base + 2, BODY - 2 + count, tick)
    store_release(page, base, tick)


@njit(cache=True, nogil=True)
def _draw(seed: int, salt: int) -> int:
    """A non-negative number from a seed."""
    x = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt) * np.uint64(
        0xD1B54A32D192ED03
    )
    x ^= x >> np.uint64(29)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(32)
    return np.int64(x & np.uint64(0x7FFFFFFF))  # type: ignore[return-value]


@njit(cache=True, nogil=True)
def _spoil(
    fault: Words,
    magnitude: float,
    data: Array,
    bits: Words,
    first: int,
    count: int,
    held: Array,
    held_since: Words,
) -> None:
    """Carry out a fault of the data on data[first : first + count], if its element is there."""
    kind = fault[0]
    k = fault[1]
    if k < first or k >= first + count:
        return
    if kind in (_WRONG, _COLLUDING):
        before = bits[k]
        if magnitude != 0.0:
            data[k] += magnitude
        if bits[k] == before:
            bits[k] = before ^ 1
    elif kind == _NAN:
        data[k] = math.nan
    elif kind == _STUCK:
        if held_since[0] != fault[2] or held_since[1] != k:
            held_since[0] = fault[2]
            held_since[1] = k
            held[0] = data[k]
        data[k] = held[0]


@njit(cache=True, nogil=True)
def _obstruct(
    fault: Words,
    magnitude: float,
    stage: int,
    stages: int,
    hard: int,
    grace: int,
    pages: Array,
    me: int,
    clock: Words,
) -> bool:
    """Carry out a fault of time or of life before a round; False: say nothing in this tick."""
    kind = fault[0]
    if kind not in (_SLOW, _SILENT, _CRASH, _WILD) or _draw(fault[3], 1) % stages != stage:
        return True
    if kind == _SILENT:
        return False
    if kind == _CRASH:
        exit_now(70)
    if kind == _WILD:
        # A wild pointer into a neighbour's page: the memory protection answers with SIGSEGV.
        other = (me + 1 + _draw(fault[3], 2) % (pages.shape[0] - 1)) % pages.shape[0]
        pages[other, _draw(fault[3], 3) % pages.shape[1]] = 1.0e9
    if kind == _SLOW:
        now = now_ns(clock)
        until = now + np.int64(magnitude * 1e9) if magnitude > 0.0 else max(hard, now) + grace
        sleep_until(clock, until)
    return True


@njit(cache=True, nogil=True)
def _publish(
    fault: Words,
    page: Words,
    base: int,
    count: int,
    tick: int,
    bits: Words,
    group: int,
    clock: Words,
) -> None:
    """Write a message once, stamp it; a processor with corrupted memory damages it afterwards."""
    store_release(page, base, 0)
    fence()
    page[base + 2] = group
    for k in range(3, BODY):
        page[base + k] = 0
    for k in range(count):
        page[base + BODY + k] = bits[k]
    if fault[0] == _CORRUPTED:
        page[base + 1] = checksum(page, base + 2, BODY - 2 + count, tick)
        victim = base + BODY + _draw(fault[3], 4) % count
        flip = np.int64(1) << (_draw(fault[3], 5) % 63)
        if _draw(fault[3], 6) % 2 == 0:
            page[victim] ^= flip
            store_release(page, base, tick)
        else:
            # After the stamp: some readers may have the good copy, others the bad one.
            store_release(page, base, tick)
            until = now_ns(clock) + _draw(fault[3], 7) % 20_000
            while now_ns(clock) < until:
                pause(clock, 0)
            page[victim] ^= flip
        return
    _stamp(page, base, count, tick)


@njit(cache=True, nogil=True)
def _publish_two_faced(
    fault: Words,
    magnitude: float,
    pages: Words,
    me: int,
    base: int,
    votes: int,
    count: int,
    tick: int,
    data: Array,
    bits: Words,
    hard: int,
    clock: Words,
) -> None:
    """Show one version, wait until somebody may have read it, show another; both well-formed."""
    k = fault[1] % count
    good = bits[k]
    wrong_first = _draw(fault[3], 8) % 2 == 0
    faces = 2 + _draw(fault[3], 9) % 3
    none = np.zeros(4, np.int64)
    for face in range(faces):
        bits[k] = good
        if (face % 2 == 0) == wrong_first:
            if magnitude != 0.0:
                data[k] += magnitude
            if bits[k] == good:
                bits[k] = good ^ 1
        _publish(none, pages[me], base, count, tick, bits, 0, clock)
        if face + 1 < faces:
            began = now_ns(clock)
            wait = 2_000 + _draw(fault[3], 10 + face) % 40_000
            while True:
                now = now_ns(clock)
                if now > hard or now - began > wait:
                    break
                voted = False
                for j in range(pages.shape[0]):
                    if j != me and load_acquire(pages[j], votes) == tick:
                        voted = True
                if voted:
                    break
                pause(clock, 0)
    bits[k] = good


@njit(cache=True, nogil=True)
def _tick(
    me: int,
    p: int,
    n: int,
    tick: int,
    slot: int,
    votes_at: int,
    result_at: int,
    pages: Words,
    pages_f: Array,
    entry: Words,
    crew: Words,
    inp: Words,
    inp_f: Array,
    model: Array,
    work: Array,
    data: Array,
    bits: Words,
    buffer: Words,
    buffer_f: Array,
    comparison: Words,
    echo: Words,
    owner: Words,
    row: Array,
    held: Array,
    held_since: Words,
    clock: Words,
) -> None:
    """One tick: compute, compare, vote, share out."""
    mode = inp[IN_MODE]
    working = inp[IN_WORKING]
    scheme = inp[IN_SCHEME]
    quorum = inp[IN_QUORUM]
    grace = inp[IN_GRACE]
    hard = inp[IN_HARD]
    release = inp[IN_RELEASE]
    tolerance = inp_f[IN_TOLERANCE]
    v = HEAD
    q = inp_f[v : v + n]
    qdot = inp_f[v + n : v + 2 * n]
    locked = inp_f[v + 7 * n : v + 8 * n]
    at = HEAD + INPUT_VECTORS * n + FAULT_WORDS * me
    fault = inp[at : at + 4]
    magnitude = inp_f[at + 4]
    nn = n * n
    base = (tick & 1) * slot
    mine = pages[me]
    stages = 3 if mode in (HIGH, LOWER) else (2 if mode == ECHO else 1)

    if not _obstruct(fault, magnitude, 0, stages, hard, grace, pages_f, me, clock):
        return
    outer_sums(model, q, qdot, work)
    commanded(
        q,
        qdot,
        inp_f[v + 2 * n : v + 3 * n],
        inp_f[v + 3 * n : v + 4 * n],
        inp_f[v + 4 * n : v + 5 * n],
        inp_f[v + 5 * n : v + 6 * n],
        inp_f[v + 6 * n : v + 7 * n],
        locked,
        work[11],
    )
    for i in range(n):
        data[nn + i] = work[10, i]
    _spoil(fault, magnitude, data, bits, nn, n, held, held_since)

    # Round 1: the data that all compute.
    count = 0
    if mode in (HIGH, ECHO):
        for i in range(n):
            inertia_row(work, i, data[i * n : (i + 1) * n])
        _spoil(fault, magnitude, data, bits, 0, nn, held, held_since)
        count = nn + n
        if mode == ECHO:
            for i in range(n):
                data[nn + n + i] = 0.0
                if locked[i] == 0.0:
                    data[nn + n + i] = torque_element(
                        data[i * n : (i + 1) * n], data[nn + i], work[11]
                    )
            _spoil(fault, magnitude, data, bits, nn + n, n, held, held_since)
            count = nn + 2 * n
    elif mode == LOWER:
        for i in range(n):
            inertia_row(work, i, row)
            data[i] = row[i]
        if fault[1] < nn and fault[1] % (n + 1) == 0:
            # An element of the diagonal has another place here.
            there = fault[1]
            fault[1] = there // (n + 1)
            _spoil(fault, magnitude, data, bits, 0, n, held[1:], held_since[2:])
            fault[1] = there
        count = n
    group = working
    if count > 0:
        if fault[0] == _TWO_FACED:
            _publish_two_faced(
                fault,
                magnitude,
                pages,
                me,
                base,
                base + votes_at,
                count,
                tick,
                data,
                bits,
                hard,
                clock,
            )
        else:
            _publish(fault, mine, base, count, tick, bits, 0, clock)

        # Round 2: compare, suggest a working set, echo what was read.
        compared = nn if mode == HIGH else count
        comparison[:] = voting.MISSING
        echo[:] = 0
        comparison[me] = voting.SAME
        echo[me] = mine[base + 1]
        for k in range(count):
            if not math.isfinite(data[k]):
                comparison[me] = voting.NOT_FINITE
        seen = 1 << me
        same = 1
        began = now_ns(clock)
        while True:
            for j in range(p):
                if (seen >> j) & 1 or load_acquire(pages[j], base) != tick:
                    continue
                found, echoed = read_message(pages[j], base, count, tick, buffer)
                if found == voting.MISSING:
                    continue
                seen |= 1 << j
                echo[j] = echoed
                if found == voting.SAME:
                    first = voting.equal(data, buffer_f[BODY - 2 :], 0, compared, tolerance)
                    if first >= 0:
                        found = voting.DIFFERS
                        for k in range(count):
                            if not math.isfinite(buffer_f[BODY - 2 + k]):
                                found = voting.NOT_FINITE
                    else:
                        same += 1
                comparison[j] = found
            alive = alive_set(crew, p)
            if inp[IN_AWAITED] & alive & ~seen == 0:
                break
            now = now_ns(clock)
            if now > hard or load_acquire(entry, 0) != tick:
                break
            # The votes of echo decide nothing, they only tell who lies: no reason to wait on, and
            # nobody can make another late by being late.
            if now > release + grace and (
                mode == ECHO or same >= min(quorum, voting.members(working & alive))
            ):
                break
            pause(clock, now - began)
        if not _obstruct(fault, magnitude, 1, stages, hard, grace, pages_f, me, clock):
            return
        if fault[0] == _LYING:
            victim = (me + 1 + _draw(fault[3], 2) % (p - 1)) % p
            comparison[victim] = voting.DIFFERS
            if _draw(fault[3], 3) % 2 == 0:
                echo[victim] ^= 1 << 20
        suggestion = 0
        for j in range(p):
            buffer[j] = comparison[j]
            buffer[p + j] = echo[j]
            if comparison[j] == voting.SAME:
                suggestion |= 1 << j
        _publish(fault, mine, base + votes_at, 2 * p, tick, buffer, suggestion, clock)
        if mode == ECHO:
            return

        # The votes of all decide who is left for the rest of this tick.
        votes = np.zeros(p, np.int64)
        voted = 0
        began = now_ns(clock)
        while True:
            for j in range(p):
                if (voted >> j) & 1 or load_acquire(pages[j], base + votes_at) != tick:
                    continue
                found, _ = read_message(pages[j], base + votes_at, 2 * p, tick, buffer)
                if found == voting.MISSING:
                    continue
                voted |= 1 << j
                if found == voting.SAME and (working >> j) & 1:
                    for k in range(p):
                        if k != j and voting.accused(buffer[BODY - 2 + k]):
                            votes[k] += 1
                elif found == voting.BAD_CHECKSUM:
                    votes[j] += p
            alive = alive_set(crew, p)
            if inp[IN_AWAITED] & alive & ~voted == 0:
                break
            now = now_ns(clock)
            if now > hard or load_acquire(entry, 0) != tick:
                break
            present = voting.members(voted & working)
            if now > release + 2 * grace and present >= min(
                quorum, voting.members(working & alive)
            ):
                break
            pause(clock, now - began)
        group = working & voted
        for j in range(p):
            if voting.voted_out(votes[j], working, j):
                group &= ~(1 << j)
        if not _obstruct(fault, magnitude, 2, stages, hard, grace, pages_f, me, clock):
            return

    # Round 3: the torques that are shared out.
    if mode == SERIAL:
        owner[:] = 0
    elif mode == PARALLEL:
        for i in range(n):
            owner[i] = i % p
    else:
        voting.assign(group, p, scheme, locked, owner)
    tau = nn + n
    mine_any = False
    for i in range(n):
        data[tau + i] = 0.0
        if owner[i] == me:
            mine_any = True
            if locked[i] == 0.0:
                line = data[i * n : (i + 1) * n]
                if mode != HIGH:
                    inertia_row(work, i, line)
                    _spoil(fault, magnitude, data, bits, i * n, n, held, held_since)
                data[tau + i] = torque_element(line, data[nn + i], work[11])
    if count == 0 and not mine_any:
        return
    _spoil(fault, magnitude, data, bits, tau, n, held, held_since)
    for i in range(n):
        buffer[i] = bits[tau + i]
        buffer[n + i] = owner[i] == me
    _publish(fault, mine, base + result_at, 2 * n, tick, buffer, group, clock)


@njit(cache=True, nogil=True)
def serve(
    me: int,
    p: int,
    n: int,
    slot: int,
    input_slot: int,
    votes_at: int,
    result_at: int,
    pages: Words,
    pages_f: Array,
    entry: Words,
    entry_f: Array,
    crew: Words,
    model: Array,
) -> None:
    """Answer every tick until the voter says stop. Waits by sleeping, then yielding.

    Args:
        me: Number of this processor.
        p: Number of processors.
        n: Number of joints.
        slot: Length of a slot in a processor's page [words].
        input_slot: Length of a slot in the input block [words].
        votes_at: Offset of the votes in a slot [words].
        result_at: Offset of the results in a slot [words].
        pages: All processors' pages, shape (p, page_words); only row ``me`` may be written.
        pages_f: The same memory as floats.
        entry: The input block.
        entry_f: The same memory as floats.
        crew: The crew block.
        model: The arm, shape (6, n); private to this process.
    """
    clock = np.zeros(2, np.int64)
    inp_f = np.zeros(input_slot)
    inp = inp_f.view(np.int64)
    work = np.zeros((WORK_ROWS, n))
    data = np.zeros(n * n + 2 * n)
    bits = data.view(np.int64)
    buffer_f = np.zeros(BODY + n * n + 2 * n + 2 * p)
    buffer = buffer_f.view(np.int64)
    comparison = np.zeros(p, np.int64)
    echo = np.zeros(p, np.int64)
    owner = np.zeros(n, np.int64)
    row = np.zeros(n)
    held = np.zeros(2)
    held_since = np.full(4, -1, np.int64)
    last = load_acquire(entry, 0)
    due = 0
    began = now_ns(clock)
    while True:
        tick = load_acquire(entry, 0)
        if tick == last:
            if load_acquire(entry, 1) != 0:
                return
            now = now_ns(clock)
            if due > now + _LEAD_NS and due < now + 100_000_000:
                sleep_until(clock, due - _LEAD_NS)
                began = now_ns(clock)
            else:
                pause(clock, now - began)
            continue
        last = tick
        start = HEAD + (tick & 1) * input_slot
        if load_acquire(entry, start + IN_TICK) == tick:
            for k in range(input_slot):
                inp[k] = entry[start + k]
            fence()
            if load_acquire(entry, start + IN_TICK) == tick:
                due = inp[IN_NEXT]
                _tick(
                    me,
                    p,
                    n,
                    tick,
                    slot,
                    votes_at,
                    result_at,
                    pages,
                    pages_f,
                    entry,
                    crew,
                    inp,
                    inp_f,
                    model,
                    work,
                    data,
                    bits,
                    buffer,
                    buffer_f,
                    comparison,
                    echo,
                    owner,
                    row,
                    held,
                    held_since,
                    clock,
                )
        began = now_ns(clock)
