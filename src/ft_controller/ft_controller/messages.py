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
from numpy.typing import NDArray

from ft_controller.atomics import checksum, combine, fence, load_acquire, store_release
from ft_controller.dynamics import JOINT
from ft_controller.voting import Comparison

__all__ = [
    "FAULT",
    "INPUT",
    "MAX_PROCESSORS",
    "MIN_PROCESSORS",
    "PROCESS",
    "InputBlock",
    "Layout",
    "Message",
    "ProcessTable",
    "Shared",
    "alive_set",
    "read_message",
    "stamp_message",
    "write_message",
]

Words = NDArray[np.int64]
Records = NDArray[np.void]

MIN_PROCESSORS = 3
MAX_PROCESSORS = 16

INPUT = np.dtype(
    [
        ("tick", np.int64),
        ("release", np.int64),  # when the tick began [ns]
        ("next_due", np.int64),  # when the next one is due, 0: unknown [ns]
        ("grace", np.int64),  # with a quorum, wait so long for the rest [ns]
        ("deadline", np.int64),  # nobody waits for longer [ns]
        ("controller", np.int64),
        ("reconfiguration", np.int64),
        ("working_set", np.int64),
        ("awaited", np.int64),  # members of the working set that are worth waiting for
        ("quorum", np.int64),
        ("tolerance", np.float64),
    ],
    align=True,
)
"""What all processors are told in a tick, beside joints and faults."""

FAULT = np.dtype(
    [
        ("kind", np.int64),
        ("element", np.int64),
        ("onset", np.int64),
        ("seed", np.int64),
        ("magnitude", np.float64),
    ],
    align=True,
)
"""The fault that one processor carries out; see :class:`~ft_controller.faults.Fault`."""

PROCESS = np.dtype(
    [("pid", np.int64), ("alive", np.int64), ("generation", np.int64), ("status", np.int64)],
    align=True,
)
"""What the process supervisor knows of one processor; ``status`` is that of the last that died."""

_CONTROL = 2  # words before the slots of the input block: current tick, stop
_HEAD = 3  # words before the data of a message: tick, checksum, set of processors


class InputBlock(NamedTuple):
    """What the voter tells the processors; the first axis of most fields is the slot.

    Attributes:
        control: The current tick, and whether to stop, shape (2,).
        stamp: Tick of each slot, shape (2,); the field ``tick`` of the header.
        header: Shape (2,), of ``INPUT``.
        joints: Shape (2, n), of :data:`~ft_controller.dynamics.JOINT`.
        faults: Shape (2, p), of ``FAULT``.
    """

    control: Words
    stamp: Words
    header: Records
    joints: Records
    faults: Records


class Message(NamedTuple):
    """One kind of message of all processors; the axes are processor and slot.

    Attributes:
        stamp: Tick of the message, shape (p, 2).
        checksum: Of the body, shape (p, 2).
        body: A set of processors, then the data, shape (p, 2, 1 + count).
    """

    stamp: Words
    checksum: Words
    body: Words


class ProcessTable(NamedTuple):
    """Who is alive.

    Attributes:
        heartbeat: Monotonic time of the process supervisor's last sign of life [ns], shape (1,).
        alive: Field of the records below, shape (p,).
        generation: Field of the records below: rises with every start, shape (p,).
        records: Shape (p,), of ``PROCESS``.
    """

    heartbeat: Words
    alive: Words
    generation: Words
    records: Records


class Shared(NamedTuple):
    """All of the shared memory: three messages for the three rounds of a tick."""

    input: InputBlock
    data: Message
    votes: Message
    result: Message
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
            stamp=heads["tick"],
            header=heads,
            joints=slots[:, header : header + joints].view(JOINT),
            faults=slots[:, header + joints :].view(FAULT),
        )
        length = sum(self._messages)
        both = pages.reshape(self.p, self.page_words)[:, : 2 * length].reshape(self.p, 2, length)
        messages: list[Message] = []
        at = 0
        for size in self._messages:
            messages.append(
                Message(both[:, :, at], both[:, :, at + 1], both[:, :, at + 2 : at + size])
            )
            at += size
        data, votes, result = messages
        return Shared(block, data, votes, result, self.table(processes))

    def table(self, processes: Words) -> ProcessTable:
        """The process table by name; its block has the shape (process_words,)."""
        rows = processes[1 : 1 + self.p * PROCESS.itemsize // 8].view(PROCESS)
        return ProcessTable(processes[:1], rows["alive"], rows["generation"], rows)

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
def read_message(
    message: Message, j: int, tick: int, count: int, out: Words
) -> tuple[Comparison, int]:
    """Copy what processor j says in a tick: (SAME, MISSING or BAD_CHECKSUM, echo).

    ``out`` gets the set word and ``count`` data words. A message that is written again during the
    copy counts as not there yet, if its stamp tells.

    The echo stands for all that was read, the claimed checksum too. A writer that writes a tick
    twice can be overtaken unnoticed, because both versions carry the same stamp: the reader has the
    checksum of one and data of the other. Two readers with the same echo have read the same words,
    so they find the same.
    """
    slot = tick & 1
    stamp = message.stamp[j]
    if load_acquire(stamp, slot) != tick:
        return Comparison.MISSING, 0
    claimed = message.checksum[j, slot]
    body = message.body[j, slot]
    for k in range(1 + count):
        out[k] = body[k]
    fence()
    if load_acquire(stamp, slot) != tick:
        return Comparison.MISSING, 0
    found = checksum(out, 1 + count, tick)
    if found != claimed:
        return Comparison.BAD_CHECKSUM, combine(found, claimed)
    return Comparison.SAME, found


@njit(cache=True, nogil=True)
def write_message(message: Message, me: int, tick: int, group: int, data: Words) -> None:
    """Take the stamp off, put set, data and checksum in place."""
    slot = tick & 1
    store_release(message.stamp[me], slot, 0)
    fence()
    body = message.body[me, slot]
    body[0] = group
    for k in range(data.size):
        body[1 + k] = data[k]
    message.checksum[me, slot] = checksum(body, 1 + data.size, tick)


@njit(cache=True, nogil=True)
def stamp_message(message: Message, me: int, tick: int) -> None:
    """Let others read what was written."""
    store_release(message.stamp[me], tick & 1, tick)
