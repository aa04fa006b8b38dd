"""What the voter knows: the tick that it votes on, the answers to it, and what it remembers."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ft_controller.messages import Layout

__all__ = ["ANSWER", "RECORD", "VOTE", "Arrival", "Ballot"]

Words = NDArray[np.int64]
Array = NDArray[np.float64]
Records = NDArray[np.void]


class Arrival(IntEnum):
    """Whether a message has come in."""

    AWAITED = 0
    GOOD = 1
    DAMAGED = 2


def _integers(*names: str) -> list[tuple[str, type]]:
    return [(name, np.int64) for name in names]


VOTE = np.dtype(
    [
        # Settings; times are from the release of a tick [ns].
        *_integers("controller", "reconfiguration", "allow_single", "clean_ticks", "late_ticks"),
        *_integers("grace", "hard", "late", "probe", "stall"),
        *_integers("raised"),  # the voter has real-time priority: it sleeps, it does not yield
        ("tolerance", np.float64),
        # Of tick to tick; sets have bit i for processor i.
        *_integers("tick", "working_set", "suspects", "exclusions"),
        # Of this tick.
        *_integers("release", "next_due", "alive", "voters", "quorum"),
        *_integers("decided", "group", "agreeing", "spoken", "not_finite"),
        *_integers("vote_time", "tick_time"),
    ],
    align=True,
)
"""The voter itself. ``voters`` had a vote in this tick, ``group`` stands behind its torque."""

ANSWER = np.dtype(
    _integers(
        "data",  # arrivals
        "votes",
        "result",
        "found",  # what is wrong with the data by themselves
        "equals",  # first processor with equal data; -1: none
        "check",  # echo of the data
        "rewritten",  # the data were others at the second look
        "suggestion",
        "group",  # the set that its torques are for
        "votes_against",
        "disputes",  # who contradicts it, or is contradicted by it
        "wrong",  # what the review found
    ),
    align=True,
)
"""What one processor said in this tick."""

RECORD = np.dtype(
    _integers(
        "error",  # the last one, and where and when it was seen
        "element",
        "error_tick",
        "errors",
        "missed",
        "late_run",  # late so many times in a row, since when [ns]
        "late_since",
        "wrong_since",  # wrong again and again, from when to when [ns]
        "wrong_last",
        "clean",  # clean ticks so far, needed for readmission
        "clean_needed",
        "penalty",  # exclusions that are not forgotten
        "generation",  # of the process that is known, and of the last that was found dead
        "buried",
    ),
    align=True,
)
"""What is remembered of one processor."""


class Ballot(NamedTuple):
    """The memory of the voter.

    Attributes:
        vote: One record, of ``VOTE``.
        answers: Shape (p,), of ``ANSWER``.
        records: Shape (p,), of ``RECORD``.
        comparisons: What i found of j, shape (p, p).
        echoes: What i says that it read of j, shape (p, p).
        data: Set word (an integer), M, N, tau of each processor, shape (p, 1 + data).
        results: Set word, torques (floats) and owned joints of each processor, shape (p, 1 + 2 n).
        owner: Who computes each joint, shape (n,).
        tau: The torque that was decided on, shape (n,) [N m].
        message: Scratch for a vote.
        clock: Scratch, two words.
    """

    vote: Any
    answers: Records
    records: Records
    comparisons: Words
    echoes: Words
    data: Array
    results: Words
    owner: Words
    tau: Array
    message: Words
    clock: Words

    @classmethod
    def of(cls, layout: Layout) -> Ballot:
        """An empty one."""
        p, n = layout.p, layout.n
        return cls(
            vote=np.zeros(1, VOTE)[0],
            answers=np.zeros(p, ANSWER),
            records=np.zeros(p, RECORD),
            comparisons=np.zeros((p, p), np.int64),
            echoes=np.zeros((p, p), np.int64),
            data=np.zeros((p, 1 + layout.data)),
            results=np.zeros((p, 1 + 2 * n), np.int64),
            owner=np.zeros(n, np.int64),
            tau=np.zeros(n),
            message=np.zeros(1 + 2 * p, np.int64),
            clock=np.zeros(2, np.int64),
        )
