"""What the voter knows: the tick that it votes on, the answers to it, and what it remembers."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from ft_controller.messages import Layout
from ft_controller.records import Array, Records, Words, record

__all__ = ["ANSWER", "RECORD", "VOTE", "Arrival", "Ballot"]


class Arrival(IntEnum):
    """Whether a message has come in."""

    AWAITED = 0
    GOOD = 1
    DAMAGED = 2


VOTE = record(
    "controller reconfiguration allow_single clean_ticks late_ticks "  # settings
    "grace hard late probe stall raised "
    "tick working_set suspects exclusions "  # of tick to tick
    "release next_due alive voters quorum decided group agreeing spoken not_finite "  # of this tick
    "vote_time tick_time",
    "tolerance",
)
"""The voter itself.

Deadlines are from the release of a tick [ns]. Sets have bit i for processor i: ``voters`` had a
vote in this tick, ``group`` stands behind its torque. A voter that is ``raised`` has real-time
priority: it sleeps, it does not yield.
"""

ANSWER = record(
    "data votes result "  # arrivals
    "found equals check rewritten suggestion group votes_against disputes wrong"
)
"""What one processor said in this tick.

``found`` is what is wrong with its data by themselves, ``equals`` the first processor with equal
data (-1: none), ``check`` their echo; they were ``rewritten`` if they were others at the second
look. ``group`` is the set that its torques are for; it ``disputes`` with those that contradict it,
or are contradicted by it. ``wrong`` is what the review found.
"""

RECORD = record(
    "error element error_tick errors missed late_run late_since wrong_since wrong_last "
    "clean clean_needed penalty generation buried"
)
"""What is remembered of one processor.

Its last error, where and when; how often it was late in a row, and since when [ns]; from when to
when it was wrong again and again [ns]; clean ticks so far and needed for readmission; exclusions
that are not forgotten; the generation of the process that is known, and of the last found dead.
"""


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
