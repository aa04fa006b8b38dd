"""The shared memory of voter, processors and process supervisor: what lies where, by name.

One block for each writer. The voter writes the input block; processor i writes page i and nothing
else; the process supervisor writes the process table. Inputs and messages have two slots, used in
turn by even and odd ticks. They are stamped with their tick after the last word (release), so a
reader (acquire) sees all of it or nothing.

Kernels get a :class:`Shared`: views of the three blocks with named fields. The offsets are counted
here and nowhere else.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from ft_controller.atomics import checksum, combine, fence, load_acquire, store_release
from ft_controller.dynamics import JOINT
from ft_controller.records import Records, Words, record
from ft_controller.voting import Comparison

__all__ = [
    "FAULT",
    "INPUT",
    "MAX_PROCESSORS",
    "MIN_PROCESSORS",
    "PROCESS",
    "InputBlock",
    "Layout",
    "ProcessTable",
    "Setup",
    "Shared",
    "alive_set",
    "body",
    "claimed_checksum",
    "published",
    "read_message",
    "rewritten",
    "stamp_message",
    "write_message",
]


MIN_PROCESSORS = 3
MAX_PROCESSORS = 16

INPUT = record(
    "tick release next_due grace deadline controller reconfiguration working_set awaited quorum",
    "tolerance",
)
"""What all processors are told in a tick, beside joints and faults.

Times are monotonic [ns]: the tick began at ``release``, with a quorum others are waited for until
``grace`` after it, nobody waits beyond the ``deadline``; ``next_due`` is 0 if it is not known.
``awaited`` are the members of the working set that are worth waiting for.
"""

FAULT = record("kind element onset seed", "magnitude")
"""The fault that one processor carries out; see :class:`~ft_controller.faults.Fault`."""

PROCESS = record("pid alive generation status")
"""What the process supervisor knows of one processor; ``status`` is that of the last that died."""

_CONTROL = 2  # words before the slots of the input block: current tick, stop
# Words of a message: tick, checksum, and the body: a set of processors, then the data.
_STAMP, _CHECKSUM, _BODY = range(3)
_HEAD = _BODY + 1


@dataclass(frozen=True)
class Setup:
    """What a process supervisor has to know, beside memory and generations.

    Attributes:
        p: Number of processors.
        n: Number of joints.
        links: The arm, one row for each link.
        restart: Start dead processors again.
        restart_delay: First delay before that; doubles with each one [s].
        restart_delay_max: The longest delay [s].
        priority: Real-time priority of the processors; 0: ordinary scheduling.
    """

    p: int
    n: int
    links: list[tuple[float, ...]]
    restart: bool
    restart_delay: float
    restart_delay_max: float
    priority: int


class InputBlock(NamedTuple):
    """What the voter tells the processors; the first axis of most fields is the slot.

    Attributes:
        control: The current tick, and whether to stop, shape (2,).
        header: Shape (2,), of ``INPUT``; its tick is the stamp.
        joints: Shape (2, n), of :data:`~ft_controller.dynamics.JOINT`.
        faults: Shape (2, p), of ``FAULT``.
    """

    control: Words
    header: Records
    joints: Records
    faults: Records


class ProcessTable(NamedTuple):
    """Who is alive: fields of records that the process supervisor writes, each of shape (p,).

    Attributes:
        alive: Whether the process is.
        generation: Rises with every start.
    """

    alive: Words
    generation: Words


class Shared(NamedTuple):
    """All of the shared memory that kernels see; a message for each of the three rounds of a tick.

    A message is an array of words; its axes are processor, slot and word. Use the functions below.
    Every array of a tuple costs some 15 ns in each call that it is passed to, so there are few.
    """

    input: InputBlock
    data: Words
    votes: Words
    result: Words
    processes: ProcessTable


@dataclass(frozen=True)
class Layout:
    """Lengths [words] and views of the blocks for ``p`` processors and ``n`` joints."""

    p: int
    n: int

    @property
    def data(self) -> int:
        """Length of M, N and tau."""
        return self.n * self.n + 2 * self.n

    @property
    def _messages(self) -> tuple[int, int, int]:
        """Lengths of data, votes (comparisons and echoes) and result (torques and owners)."""
        return _HEAD + self.data, _HEAD + 2 * self.p, _HEAD + 2 * self.n

    @property
    def _input_slot(self) -> tuple[int, int, int]:
        """Lengths of header, joints and faults."""
        return (
            INPUT.itemsize // 8,
            self.n * JOINT.itemsize // 8,
            self.p * FAULT.itemsize // 8,
        )

    @property
    def input_words(self) -> int:
        """Length of the input block, whole memory pages."""
        return _whole_pages(_CONTROL + 2 * sum(self._input_slot))

    @property
    def page_words(self) -> int:
        """Length of a processor's page, whole memory pages."""
        return _whole_pages(2 * sum(self._messages))

    @property
    def process_words(self) -> int:
        """Length of the process table, whole memory pages."""
        return _whole_pages(1 + self.p * PROCESS.itemsize // 8)

    def views(self, inputs: Words, pages: Words, processes: Words) -> Shared:
        """The three blocks by name.

        Args:
            inputs: The input block, shape (input_words,).
            pages: The pages of all processors, shape (p * page_words,).
            processes: The process table, shape (process_words,).
        """
        header, joints, _faults = self._input_slot
        length = sum(self._input_slot)
        slots = inputs[_CONTROL : _CONTROL + 2 * length].reshape(2, length)
        heads = slots[:, :header].view(INPUT)[:, 0]
        block = InputBlock(
            control=inputs[:_CONTROL],
            header=heads,
            joints=slots[:, header : header + joints].view(JOINT),
            faults=slots[:, header + joints :].view(FAULT),
        )
        length = sum(self._messages)
        both = pages.reshape(self.p, self.page_words)[:, : 2 * length].reshape(self.p, 2, length)
        first, second = self._messages[0], sum(self._messages[:2])
        table = self.process_records(processes)
        return Shared(
            block,
            data=both[:, :, :first],
            votes=both[:, :, first:second],
            result=both[:, :, second:],
            processes=ProcessTable(table["alive"], table["generation"]),
        )

    def process_records(self, processes: Words) -> Records:
        """The process table, shape (p,), of ``PROCESS``; its block has (process_words,)."""
        return processes[1 : 1 + self.p * PROCESS.itemsize // 8].view(PROCESS)

    def private(self) -> Shared:
        """The same on memory of this process alone: for models, and to compile."""
        return self.views(
            np.zeros(self.input_words, np.int64),
            np.zeros(self.p * self.page_words, np.int64),
            np.zeros(self.process_words, np.int64),
        )


def _whole_pages(words: int) -> int:
    page = mmap.PAGESIZE // 8
    return -(-words // page) * page


@njit(cache=True, nogil=True)
def alive_set(processes: ProcessTable) -> int:
    """The processors whose processes are alive, as the process supervisor knows."""
    group = 0
    for k in range(processes.alive.size):
        if load_acquire(processes.alive, k) != 0:
            group |= 1 << k
    return group


@njit(cache=True, nogil=True)
def published(message: Words, j: int, tick: int) -> bool:
    """Whether processor j has stamped its message of a tick."""
    return load_acquire(message, (j, tick & 1, _STAMP)) == tick


@njit(cache=True, nogil=True)
def claimed_checksum(message: Words, j: int, tick: int) -> int:
    """The checksum that processor j gives for its message."""
    return message[j, tick & 1, _CHECKSUM]


@njit(cache=True, nogil=True)
def body(message: Words, j: int, tick: int) -> Words:
    """The set word and the data of a message, as they are."""
    return message[j, tick & 1, _BODY:]


@njit(cache=True, nogil=True)
def read_message(
    message: Words, j: int, tick: int, count: int, out: Words
) -> tuple[Comparison, int]:
    """Copy what processor j says in a tick: (SAME, MISSING or BAD_CHECKSUM, echo).

    ``out`` gets the set word and ``count`` data words. A message that is written again during the
    copy counts as not there yet, if its stamp tells.
    """
    slot = tick & 1
    if not published(message, j, tick):
        return Comparison.MISSING, 0
    claimed = message[j, slot, _CHECKSUM]
    for k in range(1 + count):
        out[k] = message[j, slot, _BODY + k]
    fence()
    if not published(message, j, tick):
        return Comparison.MISSING, 0
    found = checksum(out, 1 + count, tick)
    return Comparison.SAME if found == claimed else Comparison.BAD_CHECKSUM, _echo(found, claimed)


@njit(cache=True, nogil=True)
def _echo(found: int, claimed: int) -> int:
    """Stands for all that was read, the claimed checksum too; never 0.

    A writer that writes a tick twice can be overtaken unnoticed, because both versions carry the
    same stamp: the reader has the checksum of one and data of the other. Two readers with the same
    echo have read the same words, so they find the same.
    """
    return found if found == claimed else combine(found, claimed)


@njit(cache=True, nogil=True)
def rewritten(message: Words, j: int, tick: int, count: int, echo: int) -> bool:
    """Whether the message is no longer the one that was read with an echo."""
    if not published(message, j, tick):
        return True
    found = checksum(body(message, j, tick), 1 + count, tick)
    return _echo(found, claimed_checksum(message, j, tick)) != echo


@njit(cache=True, nogil=True)
def write_message(message: Words, me: int, tick: int, group: int, data: Words) -> None:
    """Take the stamp off, put set, data and checksum in place."""
    slot = tick & 1
    store_release(message, (me, slot, _STAMP), 0)
    fence()
    message[me, slot, _BODY] = group
    for k in range(data.size):
        message[me, slot, _BODY + 1 + k] = data[k]
    message[me, slot, _CHECKSUM] = checksum(body(message, me, tick), 1 + data.size, tick)


@njit(cache=True, nogil=True)
def stamp_message(message: Words, me: int, tick: int) -> None:
    """Let others read what was written."""
    store_release(message, (me, tick & 1, _STAMP), tick)
