"""A model of faulty processors, for tests and campaigns: they show and claim whatever they like.

The processors are arrays. The voter's own kernels run on their pages, without a process and without
waiting, so that all that a liar can do in a tick can be tried. What honest processors claim is
stated here by itself, apart from the code that they run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import TracebackType
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ft_controller import memory, voter, voting
from ft_controller.arm import Arm
from ft_controller.atomics import checksum
from ft_controller.crew import Crew, Timing
from ft_controller.layout import BODY, CREW_ALIVE, CREW_GENERATION, CREW_WORDS
from ft_controller.processor import ECHO, read_message

__all__ = ["CLAIMS", "FACES", "TORQUE", "Pages"]

Words = NDArray[np.int64]
Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

# What a page can show. Torn: the data of one version under the checksum of another, which a reader
# gets that is overtaken by the writer.
GOOD, BAD, WORSE, NAN, TORN_GOOD, TORN_BAD, ABSENT = range(7)
FACES = 7

# What a liar can echo: what the voter read (TRUE), something else (FORGED), nothing.
# A claim is three times a comparison plus one of these.
TRUE, FORGED, NOTHING = range(3)
CLAIMS = 3 * (voting.NOT_FINITE + 1)

TORQUE = 5.0
"""What honest processors find [N m]."""

_DATA = 3  # M, N, tau of an arm of one joint


@njit(cache=True)
def _show(page: Words, base: int, face: int, tick: int, floats: Array) -> None:
    """Put a face into a page, as the writer would leave it."""
    page[base] = 0
    for k in range(2, BODY):
        page[base + k] = 0
    at = base + BODY
    other = BAD
    shown = face
    if face == TORN_GOOD:
        shown = GOOD
    elif face == TORN_BAD:
        shown, other = BAD, GOOD
    for version in (other, shown):
        floats[at] = 2.0
        floats[at + 1] = 1.0
        floats[at + 2] = TORQUE
        if version == BAD:
            floats[at + 2] = TORQUE + 1.0
        elif version == WORSE:
            floats[at] = 1.5
        elif version == NAN:
            floats[at + 1] = np.nan
        if version == other and face in (TORN_GOOD, TORN_BAD):
            page[base + 1] = checksum(page, base + 2, BODY - 2 + _DATA, tick)
    if face not in (TORN_GOOD, TORN_BAD):
        page[base + 1] = checksum(page, base + 2, BODY - 2 + _DATA, tick)
    if face != ABSENT:
        page[base] = tick


@njit(cache=True)
def _honest_claim(
    face: int, tick: int, page: Words, floats: Array, out: Words, out_f: Array
) -> tuple[int, int]:
    """What an honest processor says of a page that shows it a face: comparison, echo."""
    _show(page, 0, face, tick, floats)
    found, echo = read_message(page, 0, _DATA, tick, out)
    if found == voting.SAME:
        for k in range(_DATA):
            value = out_f[BODY - 2 + k]
            right = (2.0, 1.0, TORQUE)[k]
            if not np.isfinite(value):
                return voting.NOT_FINITE, echo
            if value != right:
                found = voting.DIFFERS
    if found == voting.MISSING:
        echo = 0
    return found, echo


@njit(cache=True)
def _vote(pages: Words, i: int, base: int, votes_at: int, tick: int, row: Words) -> None:
    """Stamp a vote: p comparisons and p echoes."""
    page = pages[i]
    at = base + votes_at
    page[at] = 0
    for k in range(2, BODY):
        page[at + k] = 0
    for k in range(row.size):
        page[at + BODY + k] = row[k]
    page[at + 1] = checksum(page, at + 2, BODY - 2 + row.size, tick)
    page[at] = tick


@njit(cache=True)
def _tick(
    faulty: int,
    to_voter: Words,
    later: Words,
    to_readers: Words,
    claims: Words,
    self_echo: bool,
    unseen: Flags,
    reg: Words,
    st: Words,
    comparisons: Words,
    echoes: Words,
    vectors: Array,
    faults: Words,
    magnitudes: Array,
    entry: Words,
    entry_f: Array,
    pages: Words,
    pages_f: Array,
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
    spare: Words,
    spare_f: Array,
    out: Words,
    out_f: Array,
) -> bool:
    """One tick with a set of faulty processors; the arguments are those of Pages.tick and below."""
    p = st.shape[0]
    number = reg[voter.R_TICK] + 1
    base = (number & 1) * slot
    row = np.zeros(2 * p, np.int64)
    for j in range(p):
        bad = (faulty >> j) & 1
        _show(pages[j], base, to_voter[j] if bad else GOOD, number, pages_f[j])
    for i in range(p):
        for j in range(p):
            theirs = to_voter[j] if (faulty >> j) & 1 else GOOD
            if (faulty >> i) & 1:
                _, seen = _honest_claim(theirs, number, spare, spare_f, out, out_f)
                said = claims[i, j]
                row[j] = said // 3
                row[p + j] = (seen, seen ^ 4096, 0)[said % 3]
                if i == j:
                    row[j] = voting.SAME
                    row[p + j] = seen if self_echo else seen ^ 4096
            else:
                face = to_readers[j, i] if (faulty >> j) & 1 and i != j else GOOD
                if unseen[i, j] and i != j:
                    face = ABSENT
                row[j], row[p + j] = _honest_claim(face, number, spare, spare_f, out, out_f)
        _vote(pages, i, base, votes_at, number, row)
    decided = voter.release_and_vote(
        reg, st, comparisons, echoes, vectors, faults, magnitudes, 0.0, 0, entry, entry_f, pages,
        crew, data, data_f, results, results_f, scratch, owner, tau, clock, slot, input_slot,
        votes_at, result_at,
    )  # fmt: skip
    for j in range(p):
        if (faulty >> j) & 1:
            _show(pages[j], base, later[j], number, pages_f[j])
    voter.review(
        reg, st, comparisons, echoes, vectors, pages, crew, data, data_f, results, scratch, owner,
        clock, slot, votes_at, result_at, 0.0,
    )  # fmt: skip
    return decided


@njit(cache=True)
def _forget(reg: Words, st: Words, working: int) -> None:
    """A fresh voter with a working set, but for the number of the tick."""
    reg[voter.R_WORKING] = working
    reg[voter.R_SUSPECT] = 0
    for k in range(st.shape[0]):
        st[k, voter.P_ERROR] = 0
        st[k, voter.P_CLEAN] = 0
        st[k, voter.P_PENALTY] = 0
        st[k, voter.P_LATE_RUN] = 0
        st[k, voter.P_NEEDED] = 1_000_000


@njit(cache=True)
def _sweep(
    arrays: Any,
    working: int,
    liar: int,
    faces: Words,
    claims: Words,
    step: int,
    finding: Words,
) -> Words:
    """All that one liar can do in a tick; returns (cases, honest excluded, no quorum, wrong).

    Args:
        arrays: See Pages.arrays.
        working: The working set.
        liar: The faulty processor.
        faces: Faces that are tried on readers.
        claims: Claims that are tried.
        step: Try every so many-th case; 1 for all.
        finding: Gets the first case that is not right.
    """
    p = arrays[1].shape[0]
    reg, st, tau = arrays[0], arrays[1], arrays[18]
    to_voter = np.full(p, GOOD)
    later = np.full(p, GOOD)
    to_readers = np.full((p, p), GOOD)
    said = np.zeros((p, p), np.int64)
    unseen = np.zeros((p, p), np.bool_)
    honest = working & ~(1 << liar)
    others = p - 1
    count = np.zeros(4, np.int64)
    shown = faces.size**others
    spoken = claims.size**others
    total = FACES * 3 * 2 * 2 * shown * spoken
    case = 0
    while case < total:
        x = case
        to_voter[liar] = x % FACES
        x //= FACES
        kind = x % 3
        later[liar] = (to_voter[liar], GOOD, BAD)[kind]
        x //= 3
        self_echo = x % 2 == 0
        x //= 2
        for i in range(p):
            for j in range(p):
                unseen[i, j] = x % 2 == 1 and (j - i) % p == 1 and j != liar
        x //= 2
        y = x % shown
        x //= shown
        for j in range(p):
            if j != liar:
                to_readers[liar, j] = faces[y % faces.size]
                y //= faces.size
                said[liar, j] = claims[x % claims.size]
                x //= claims.size
        _forget(reg, st, working)
        decided = _tick(1 << liar, to_voter, later, to_readers, said, self_echo, unseen, *arrays)
        count[0] += 1
        wrong = reg[voter.R_WORKING] & honest != honest
        lost = not decided
        if wrong or lost or tau[0] != TORQUE:
            count[1] += wrong
            count[2] += lost
            count[3] += decided and tau[0] != TORQUE
            if finding[0] < 0:
                finding[0] = case
        case += step
    return count


class Pages:
    """A voter on pages that nobody but the adversary writes; use it as a context manager.

    Attributes:
        crew: The crew that the voter belongs to; it has no processes.
        pages: The processors' pages, shape (p, page_words).
        living: The words in which a nursery says who is alive.
    """

    def __init__(self, p: int = 4) -> None:
        self.crew = crew = Crew(
            Arm.rods(1),
            processors=p,
            timing=Timing(grace=0.0, hard=0.0, late=0.0, probe=0.0, stall=60.0),
            restart_stalled=0.0,
        )
        lay = crew.layout
        fds = crew._map_memory()
        self._views: list[memory.Block] = []
        for name, words in (("pages", p * lay.page_words), ("crew", lay.crew_words)):
            reader = memory.read_only(fds[name])
            self._views.append(memory.Block(words, reader, fds[name], (0, words)))
            os.close(reader)
        for fd in fds.values():
            os.close(fd)
        shared, living = self._views
        self.pages, self.living = shared.words.reshape(p, -1), living.words
        for k in range(p):
            self.living[k * CREW_WORDS + CREW_ALIVE] = 1
            self.living[k * CREW_WORDS + CREW_GENERATION] = 1
        crew._st[:, voter.P_GENERATION] = 1
        crew._reg[voter.R_MODE] = ECHO
        spare_f, out_f = np.zeros(BODY + _DATA), np.zeros(BODY + _DATA)
        self._arrays: Any = (
            crew._reg, crew._st, crew._comparisons, crew._echoes, crew._vectors, crew._fault_words,
            crew._magnitudes, crew._entry.words, crew._entry.floats, self.pages,
            shared.floats.reshape(p, -1), crew._crew.words, crew._data, crew._data_f,
            crew._results, crew._results_f, crew._scratch, crew._owner, crew._tau, crew._clock,
            lay.slot, lay.input_slot, lay.votes, lay.result, spare_f.view(np.int64), spare_f,
            out_f.view(np.int64), out_f,
        )  # fmt: skip

    def tick(
        self,
        faulty: Iterable[int],
        to_voter: Words,
        later: Words,
        to_readers: Words,
        claims: Words,
        self_echo: bool = True,
        unseen: Flags | None = None,
    ) -> bool:
        """One tick with faulty processors; whether the voter decided.

        Args:
            faulty: The faulty ones; what is said of others below is ignored.
            to_voter: Face for the voter's first look, shape (p,).
            later: Face for its last look, shape (p,).
            to_readers: to_readers[j, i] is the face that j shows i, shape (p, p).
            claims: claims[i, j] is what i says of j, 0 to CLAIMS - 1, shape (p, p).
            self_echo: Whether they say truly what they published first.
            unseen: unseen[i, j]: honest i votes before honest j has published, shape (p, p).
        """
        group = sum(1 << k for k in faulty)
        if unseen is None:
            unseen = np.zeros(to_readers.shape, np.bool_)
        return bool(
            _tick(group, to_voter, later, to_readers, claims, self_echo, unseen, *self._arrays)
        )

    def sweep(
        self,
        working: int,
        liar: int,
        faces: Iterable[int] = range(FACES),
        claims: Iterable[int] = range(CLAIMS),
        step: int = 1,
    ) -> tuple[list[int], int]:
        """All that one liar can do in a tick with a working set.

        Args:
            working: The working set.
            liar: The faulty processor.
            faces: Faces that are tried on each reader.
            claims: Claims that are tried of each other processor.
            step: Try every so many-th case; 1 for all.

        Returns:
            How many cases were tried, had an honest processor excluded, had no quorum, had a wrong
            torque; and the first case that was not right, or -1.
        """
        finding = np.full(1, -1)
        count = _sweep(
            self._arrays, working, liar, np.array([*faces]), np.array([*claims]), step, finding
        )
        return [int(x) for x in count], int(finding[0])

    def forget(self, working: int) -> None:
        """A fresh voter with a working set, but for the number of the tick."""
        _forget(self.crew._reg, self.crew._st, working)

    def close(self) -> None:
        """Give the memory back."""
        self._arrays = ()
        for view in self._views:
            view.close()
        self.crew.close()

    def __enter__(self) -> Pages:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
