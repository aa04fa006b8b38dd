"""The rules of the vote, apart from where the votes come from.

Sets of processors are integers, bit i = processor i. A tie never wins: every rule asks for more
than half.
"""

from __future__ import annotations

import math
from enum import IntEnum

import numpy as np
from numba import njit

from ft_controller.records import Array, Words

__all__ = [
    "Comparison",
    "Reconfiguration",
    "accused",
    "assign",
    "equal",
    "has",
    "members",
    "quorum",
    "voted_out",
]


class Comparison(IntEnum):
    """What a comparison can find; the numbers are those of kin_interfaces/FtProcessor."""

    SAME = 0
    DIFFERS = 1
    MISSING = 2
    BAD_CHECKSUM = 3
    NOT_FINITE = 4
    TWO_FACED = 5
    LYING_VOTE = 6
    CRASHED = 7


class Reconfiguration(IntEnum):
    """How the work of a failed processor is shared out anew."""

    ROUND_ROBIN = 0
    BALANCED = 1


@njit(cache=True, nogil=True, inline="always")
def has(group: int, k: int) -> bool:
    """Whether a set has processor k."""
    return (group >> k) & 1 != 0


@njit(cache=True, nogil=True)
def members(group: int) -> int:
    """How many processors a set has."""
    count = 0
    while group != 0:
        group &= group - 1
        count += 1
    return count


@njit(cache=True, nogil=True)
def quorum(working: int) -> int:
    """Identical answers needed: more than half of the working set, present or not."""
    return members(working) // 2 + 1


@njit(cache=True, nogil=True)
def equal(a: Array, b: Array, start: int, count: int, tolerance: float) -> int:
    """First index where a and b differ, or -1. NaN and infinity equal nothing.

    Args:
        a: One processor's data.
        b: Another's.
        start: First index.
        count: How many are compared.
        tolerance: 0 for equality, else allowed difference relative to max(1, |a|, |b|).
    """
    for k in range(start, start + count):
        x = a[k]
        y = b[k]
        if x == y and not math.isinf(x):
            continue
        if tolerance > 0.0 and math.fabs(x - y) <= tolerance * max(1.0, math.fabs(x), math.fabs(y)):
            continue
        return k
    return -1


@njit(cache=True, nogil=True)
def accused(comparison: int) -> bool:
    """Whether a comparison speaks of wrong data; to be late is judged by time, not by vote."""
    return comparison in (
        Comparison.DIFFERS,
        Comparison.BAD_CHECKSUM,
        Comparison.NOT_FINITE,
    )


@njit(cache=True, nogil=True)
def voted_out(votes_against: int, working: int, candidate: int) -> bool:
    """Whether more than half of the other working processors speak against the candidate."""
    others = members(working & ~(1 << candidate))
    return votes_against > 0 and 2 * votes_against > others


@njit(cache=True, nogil=True)
def assign(working: int, p: int, scheme: int, locked: Array, owner: Words) -> None:
    """Share the joints out among the working processors; owner[i] = -1 where nobody is left.

    Processor i mod p has joint i. Round robin, as in the paper: each processor looks at its
    right-hand neighbours and takes over their work until it meets one that works, so the work of a
    failed processor goes to the nearest working one on its left. Balanced: the work without an
    owner goes to whoever has least, and processors of locked joints, which have nothing to compute,
    relieve the others.
    """
    n = owner.size
    if working == 0:
        owner[:] = -1
        return
    if scheme == Reconfiguration.ROUND_ROBIN:
        for i in range(n):
            k = i % p
            while not has(working, k):
                k = (k - 1) % p
            owner[i] = k
        return
    load = np.zeros(p, np.int64)
    for i in range(n):
        owner[i] = -1
        if has(working, i % p):
            owner[i] = i % p
            if locked[i] == 0.0:
                load[i % p] += 1
    for i in range(n):
        if owner[i] < 0:
            owner[i] = _least(load, working)
            if locked[i] == 0.0:
                load[owner[i]] += 1
    while True:
        low = _least(load, working)
        high = low
        for k in range(p):
            if has(working, k) and load[k] > load[high]:
                high = k
        if load[high] - load[low] < 2:
            return
        for i in range(n - 1, -1, -1):
            if owner[i] == high and locked[i] == 0.0:
                owner[i] = low
                load[high] -= 1
                load[low] += 1
                break


@njit(cache=True, nogil=True)
def _least(load: Words, working: int) -> int:
    best = -1
    for k in range(load.size):
        if has(working, k) and (best < 0 or load[k] < load[best]):
            best = k
    return best
