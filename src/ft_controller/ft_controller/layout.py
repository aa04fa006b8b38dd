"""Where everything lies in the shared pages, in 8-byte words.

One block for each writer. The voter writes the input block; processor i writes block i of the
pages and nothing else; the nursery writes the crew block. Every message has two slots, used in turn
by even and odd ticks, and is stamped with its tick after its last word (release), so a reader
(acquire) sees all of it or nothing.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass

__all__ = [
    "BODY",
    "CREW_WORDS",
    "FAULT_WORDS",
    "HEAD",
    "INPUT_VECTORS",
    "MAX_PROCESSORS",
    "MIN_PROCESSORS",
    "Layout",
]

MIN_PROCESSORS = 3
MAX_PROCESSORS = 16

HEAD = 16
"""Words before the slots of an input block: [0] current tick, [1] stop."""

BODY = 8
"""Words before the data of a message: [0] tick, [1] checksum, [2] set of processors."""

# Header words of an input slot.
IN_TICK, IN_RELEASE, IN_NEXT, IN_GRACE, IN_HARD, IN_MODE, IN_WORKING, IN_AWAITED = range(8)
IN_QUORUM, IN_SCHEME, IN_TOLERANCE = 8, 9, 10

INPUT_VECTORS = 8
"""q, qdot, q_d, qdot_d, qddot_d, K_P, K_D, locked: each of n words."""

FAULT_WORDS = 6
"""For each processor: kind, element, onset tick, seed, magnitude, partner set."""

CREW_WORDS = 8
"""For each processor: pid, alive, generation, exit status, restarts."""
CREW_PID, CREW_ALIVE, CREW_GENERATION, CREW_STATUS = range(4)


@dataclass(frozen=True)
class Layout:
    """Offsets for ``p`` processors and ``n`` joints [words]."""

    p: int
    n: int

    @property
    def input_slot(self) -> int:
        """Length of one of the two input slots."""
        return HEAD + INPUT_VECTORS * self.n + FAULT_WORDS * self.p

    @property
    def input_words(self) -> int:
        """Length of the input block, whole memory pages."""
        return _whole_pages(HEAD + 2 * self.input_slot)

    @property
    def data(self) -> int:
        """Length of M, N and tau."""
        return self.n * self.n + 2 * self.n

    @property
    def votes(self) -> int:
        """Offset of the second message (comparison, suggestion, echo) in a slot."""
        return BODY + self.data

    @property
    def result(self) -> int:
        """Offset of the third message (shared-out torques) in a slot."""
        return self.votes + BODY + 2 * self.p

    @property
    def slot(self) -> int:
        """Length of one of the two slots of a processor."""
        return self.result + BODY + 2 * self.n

    @property
    def page_words(self) -> int:
        """Length of a processor's block, whole memory pages."""
        return _whole_pages(2 * self.slot)

    @property
    def crew_words(self) -> int:
        """Length of the crew block, whole memory pages."""
        return _whole_pages(CREW_WORDS * self.p)


def _whole_pages(words: int) -> int:
    page = mmap.PAGESIZE // 8
    return -(-words // page) * page
