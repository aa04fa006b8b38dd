"""How a processor fails on demand: it carries out its own fault, just before it publishes."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ft_controller.atomics import exit_now, now_ns, pause, sleep_until
from ft_controller.faults import FaultKind
from ft_controller.messages import body, published, stamp_message, write_message
from ft_controller.records import Array, Record, Words, record

__all__ = ["STUCK", "accused_by", "draw", "obstruct", "publish", "publish_two_faced", "spoil"]


STUCK = record("onset element", "value")
"""The value at which an element got stuck."""

_CRASH_CODE = 70


@njit(cache=True, nogil=True)
def draw(seed: int, salt: int) -> int:
    """A non-negative number from a seed."""
    x = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt) * np.uint64(
        0xD1B54A32D192ED03
    )
    x ^= x >> np.uint64(29)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(32)
    return np.int64(x & np.uint64(0x7FFFFFFF))  # type: ignore[return-value]


@njit(cache=True, nogil=True)
def accused_by(me: int, seed: int, p: int) -> int:
    """Whom a lying processor accuses, and whose page a wild pointer hits."""
    return (me + 1 + draw(seed, 2) % (p - 1)) % p


@njit(cache=True, nogil=True)
def spoil(
    fault: Record, element: int, data: Array, bits: Words, first: int, count: int, stuck: Record
) -> None:
    """Carry out a fault of the data on data[first : first + count], if its element is there.

    Args:
        fault: What goes wrong.
        element: Where.
        data: The data.
        bits: The same memory as integers.
        first: First index that is carried out now.
        count: How many.
        stuck: Memory for a value that is stuck.
    """
    k = element
    if k < first or k >= first + count:
        return
    if fault.kind in (FaultKind.WRONG_ELEMENT, FaultKind.COLLUDING):
        before = bits[k]
        if fault.magnitude != 0.0:
            data[k] += fault.magnitude
        if bits[k] == before:
            bits[k] = before ^ 1
    elif fault.kind == FaultKind.NAN:
        data[k] = math.nan
    elif fault.kind == FaultKind.STUCK:
        if stuck.onset != fault.onset or stuck.element != k:
            stuck.onset = fault.onset
            stuck.element = k
            stuck.value = data[k]
        data[k] = stuck.value


@njit(cache=True, nogil=True)
def obstruct(
    me: int, stage: int, stages: int, fault: Record, header: Record, pages: Words, clock: Words
) -> bool:
    """Carry out a fault of time or of life before a round; False: say nothing in this tick.

    Args:
        me: Number of this processor.
        stage: Number of the round.
        stages: How many rounds there are; the seed says in which the fault strikes.
        fault: What goes wrong.
        header: The inputs of the tick.
        pages: A message, for a wild pointer.
        clock: Scratch, two words.
    """
    if (
        fault.kind not in (FaultKind.SLOW, FaultKind.SILENT, FaultKind.CRASH, FaultKind.WILD_WRITE)
        or draw(fault.seed, 1) % stages != stage
    ):
        return True
    if fault.kind == FaultKind.SILENT:
        return False
    if fault.kind == FaultKind.CRASH:
        exit_now(_CRASH_CODE)
    if fault.kind == FaultKind.WILD_WRITE:
        # A wild pointer into a neighbour's page: the memory protection answers with SIGSEGV.
        other = accused_by(me, fault.seed, pages.shape[0])
        at = draw(fault.seed, 3)
        pages[other, at % 2, at // 2 % pages.shape[2]] = 1_000_000_000
    if fault.kind == FaultKind.SLOW:
        now = now_ns(clock)
        until = max(header.deadline, now) + header.grace
        if fault.magnitude > 0.0:
            until = now + np.int64(fault.magnitude * 1e9)
        sleep_until(clock, until)
    return True


@njit(cache=True, nogil=True)
def publish(
    me: int, tick: int, message: Words, group: int, data: Words, fault: Record, clock: Words
) -> None:
    """Write a message once and stamp it; corrupted memory damages it before or after the stamp."""
    write_message(message, me, tick, group, data)
    if fault.kind != FaultKind.CORRUPTED_MEMORY:
        stamp_message(message, me, tick)
        return
    words = body(message, me, tick)
    victim = 1 + draw(fault.seed, 4) % data.size
    flip = np.int64(1) << (draw(fault.seed, 5) % 63)
    if draw(fault.seed, 6) % 2 == 0:
        words[victim] ^= flip
        stamp_message(message, me, tick)
    else:
        # After the stamp: some readers may have the good copy, others the bad one.
        stamp_message(message, me, tick)
        until = now_ns(clock) + draw(fault.seed, 7) % 20_000
        while now_ns(clock) < until:
            pause(clock, 0)
        words[victim] ^= flip


@njit(cache=True, nogil=True)
def publish_two_faced(
    me: int,
    tick: int,
    messages: tuple[Words, Words],
    data: Array,
    bits: Words,
    fault: Record,
    deadline: int,
    clock: Words,
) -> None:
    """Show one version, wait until somebody may have read it, show another; both well-formed.

    Args:
        me: Number of this processor.
        tick: Number of the tick.
        messages: Data and votes; the votes of others tell that they have read the data.
        data: What is published, the right version.
        bits: The same memory as integers.
        fault: What goes wrong.
        deadline: No face is shown for longer than this [ns].
        clock: Scratch, two words.
    """
    shown, votes = messages
    k = fault.element % bits.size
    good = bits[k]
    wrong_first = draw(fault.seed, 8) % 2 == 0
    faces = 2 + draw(fault.seed, 9) % 3
    for face in range(faces):
        bits[k] = good
        if (face % 2 == 0) == wrong_first:
            if fault.magnitude != 0.0:
                data[k] += fault.magnitude
            if bits[k] == good:
                bits[k] = good ^ 1
        write_message(shown, me, tick, 0, bits)
        stamp_message(shown, me, tick)
        if face + 1 < faces:
            _await_a_reader(me, tick, votes, 2_000 + draw(fault.seed, 10 + face) % 40_000, deadline)
    bits[k] = good


@njit(cache=True, nogil=True)
def _await_a_reader(me: int, tick: int, votes: Words, wait: int, deadline: int) -> None:
    """Wait until somebody else has voted, at most for a time [ns]."""
    clock = np.zeros(2, np.int64)
    began = now_ns(clock)
    while True:
        now = now_ns(clock)
        if now > deadline or now - began > wait:
            return
        for j in range(votes.shape[0]):
            if j != me and published(votes, j, tick):
                return
        pause(clock, 0)
