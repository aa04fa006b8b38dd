"""A model of faulty processors, for tests and campaigns: they show and claim whatever they like.

The processors are arrays. The voter's own kernels run on their pages, without a process and without
waiting, so that all that a liar can do in a tick can be tried. What honest processors claim is
stated here by itself, apart from the code that they run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ft_controller import judge, voter, voting
from ft_controller.ballot import Ballot
from ft_controller.controllers import Controller
from ft_controller.dynamics import JOINT
from ft_controller.messages import (
    FAULT,
    Layout,
    Shared,
    body,
    read_message,
    stamp_message,
    write_message,
)
from ft_controller.voting import Comparison

__all__ = ["CLAIMS", "FACES", "TORQUE", "Model"]

Words = NDArray[np.int64]
Flags = NDArray[np.bool_]

# What a page can show. Torn: the data of one version under the checksum of another, which a reader
# gets that is overtaken by the writer.
GOOD, BAD, WORSE, NAN, TORN_GOOD, TORN_BAD, ABSENT = range(7)
FACES = 7

# What a liar can echo: what the voter read (TRUE), something else (FORGED), nothing.
# A claim is three times a comparison plus one of these.
TRUE, FORGED, NOTHING = range(3)
CLAIMS = 3 * (int(Comparison.NOT_FINITE) + 1)

TORQUE = 5.0
"""What honest processors find [N m]."""

_DATA = 3  # M, N, tau of an arm of one joint
_NEVER = 1_000_000  # clean ticks: nobody is readmitted


class _Stage(NamedTuple):
    """The voter, the pages, and scratch for what a reader would see of a page.

    ``known`` holds, for each face, a tick, and what an honest processor says of the face then.
    """

    ballot: Ballot
    shared: Shared
    joints: NDArray[np.void]
    faults: NDArray[np.void]
    spare: Words
    read: Words
    known: Words


class _Script(NamedTuple):
    """What the faulty ones do in a tick; see :meth:`Model.tick`."""

    to_voter: Words
    later: Words
    to_readers: Words
    claims: Words
    unseen: Flags


@njit(cache=True)
def _version(face: int) -> tuple[float, float, float]:
    """M, N and tau of a face."""
    if face == BAD:
        return 2.0, 1.0, TORQUE + 1.0
    if face == WORSE:
        return 1.5, 1.0, TORQUE
    if face == NAN:
        return 2.0, np.nan, TORQUE
    return 2.0, 1.0, TORQUE


@njit(cache=True)
def _show(message: Words, j: int, face: int, tick: int) -> None:
    """Put a face into the page of j, as the writer would leave it."""
    floats = np.empty(_DATA)
    shown, signed = face, face
    if face == TORN_GOOD:
        shown, signed = GOOD, BAD
    elif face == TORN_BAD:
        shown, signed = BAD, GOOD
    floats[0], floats[1], floats[2] = _version(signed)
    write_message(message, j, tick, 0, floats.view(np.int64))
    floats[0], floats[1], floats[2] = _version(shown)
    body(message, j, tick)[1 : 1 + _DATA] = floats.view(np.int64)
    if face != ABSENT:
        stamp_message(message, j, tick)


@njit(cache=True)
def _honest_claim(stage: _Stage, face: int, tick: int) -> tuple[int, int]:
    """What an honest processor says of a page that shows it a face: comparison, echo."""
    _show(stage.spare, 0, face, tick)
    found, echo = read_message(stage.spare, 0, tick, _DATA, stage.read)
    if found == Comparison.MISSING:
        echo = 0
    if found == Comparison.SAME:
        values = stage.read.view(np.float64)[1:]
        if values[0] != 2.0 or values[1] != 1.0 or values[2] != TORQUE:
            found = Comparison.DIFFERS
        for k in range(_DATA):
            if not np.isfinite(values[k]):
                found = Comparison.NOT_FINITE
    return found, echo


@njit(cache=True)
def _claim_of(stage: _Stage, face: int, tick: int) -> tuple[int, int]:
    """The same; what was found out in this tick is not found out again."""
    known = stage.known[face]
    if known[0] != tick:
        known[0] = tick
        known[1], known[2] = _honest_claim(stage, face, tick)
    return known[1], known[2]


@njit(cache=True)
def _claims(stage: _Stage, i: int, faulty: int, script: _Script, self_echo: bool) -> Words:
    """What processor i says of all the others: comparisons and echoes."""
    p = stage.ballot.answers.size
    tick = stage.ballot.vote.tick + 1
    row = np.zeros(2 * p, np.int64)
    for j in range(p):
        theirs = script.to_voter[j] if voting.has(faulty, j) else GOOD
        if voting.has(faulty, i):
            _, seen = _claim_of(stage, theirs, tick)
            said = script.claims[i, j]
            row[j] = said // 3
            row[p + j] = (seen, seen ^ 4096, 0)[said % 3]
            if i == j:
                row[j] = Comparison.SAME
                row[p + j] = seen if self_echo else seen ^ 4096
        else:
            face = script.to_readers[j, i] if voting.has(faulty, j) else GOOD
            if script.unseen[i, j] and i != j:
                face = ABSENT
            row[j], row[p + j] = _claim_of(stage, face, tick)
    return row


@njit(cache=True)
def _tick(stage: _Stage, faulty: int, script: _Script, self_echo: bool) -> bool:
    """One tick with a set of faulty processors; whether the voter decided."""
    ballot, shared = stage.ballot, stage.shared
    p = ballot.answers.size
    tick = ballot.vote.tick + 1
    for j in range(p):
        _show(shared.data, j, script.to_voter[j] if voting.has(faulty, j) else GOOD, tick)
    for i in range(p):
        write_message(shared.votes, i, tick, 0, _claims(stage, i, faulty, script, self_echo))
        stamp_message(shared.votes, i, tick)
    decided = voter.release_and_vote(ballot, shared, stage.joints, stage.faults)
    for j in range(p):
        if voting.has(faulty, j):
            _show(shared.data, j, script.later[j], tick)
    judge.review(ballot, shared, stage.joints)
    return decided


@njit(cache=True)
def _forget(ballot: Ballot, working: int) -> None:
    """A fresh voter with a working set, but for the number of the tick."""
    ballot.vote.working_set = working
    ballot.vote.suspects = 0
    for k in range(ballot.records.size):
        record = ballot.records[k]
        record.error = Comparison.SAME
        record.clean = 0
        record.penalty = 0
        record.late_run = 0
        record.clean_needed = _NEVER


@njit(cache=True)
def _sweep(
    stage: _Stage,
    working: int,
    liar: int,
    faces: Words,
    claims: Words,
    step: int,
    script: _Script,
) -> tuple[Words, int]:
    """All that one liar can do in a tick; see :meth:`Model.sweep`. The script is overwritten."""
    ballot = stage.ballot
    p = ballot.answers.size
    honest = working & ~(1 << liar)
    count = np.zeros(4, np.int64)
    finding = -1
    shown = faces.size ** (p - 1)
    total = FACES * 3 * 2 * 2 * shown * claims.size ** (p - 1)
    case = 0
    while case < total:
        x = case
        script.to_voter[liar] = x % FACES
        x //= FACES
        script.later[liar] = (script.to_voter[liar], GOOD, BAD)[x % 3]
        x //= 3
        self_echo = x % 2 == 0
        x //= 2
        for i in range(p):
            for j in range(p):
                script.unseen[i, j] = x % 2 == 1 and (j - i) % p == 1 and j != liar
        x //= 2
        y = x % shown
        x //= shown
        for j in range(p):
            if j != liar:
                script.to_readers[liar, j] = faces[y % faces.size]
                y //= faces.size
                script.claims[liar, j] = claims[x % claims.size]
                x //= claims.size
        _forget(ballot, working)
        decided = _tick(stage, 1 << liar, script, self_echo)
        framed = ballot.vote.working_set & honest != honest
        wrong = decided and ballot.tau[0] != TORQUE
        count += np.array([1, framed, not decided, wrong])
        if finding < 0 and (framed or wrong or not decided):
            finding = case
        case += step
    return count, finding


class Model:
    """A voter on pages that nobody but the adversary writes, for an arm of one joint.

    Attributes:
        ballot: The voter's memory.
        shared: The pages, and the table of who is alive.
    """

    def __init__(self, p: int = 4) -> None:
        layout = Layout(p, 1)
        self.ballot, self.shared = Ballot.of(layout), layout.private()
        self.set_alive((1 << p) - 1)
        self.shared.processes.generation[:] = 1
        self.ballot.records["generation"] = 1
        vote = self.ballot.vote
        vote["controller"] = Controller.ECHO
        vote["allow_single"], vote["clean_ticks"] = 1, 20
        vote["late_ticks"], vote["stall"] = 2, 60_000_000_000
        self.stage = _Stage(
            self.ballot,
            self.shared,
            np.zeros(1, JOINT),
            np.zeros(p, FAULT),
            layout.private().data,
            np.zeros(1 + _DATA, np.int64),
            np.zeros((FACES, 3), np.int64),
        )

    @property
    def p(self) -> int:
        """Number of processors."""
        return int(self.ballot.answers.size)

    @property
    def vote(self) -> Any:
        """The voter itself, of :data:`~ft_controller.ballot.VOTE`."""
        return self.ballot.vote

    @property
    def working_set(self) -> int:
        """Bit i = processor i is in the working set."""
        return int(self.vote["working_set"])

    @property
    def errors(self) -> list[int]:
        """What each processor was last named for."""
        return [int(error) for error in self.ballot.records["error"]]

    @property
    def torque(self) -> float:
        """What was decided on [N m]."""
        return float(self.ballot.tau[0])

    def set_alive(self, group: int) -> None:
        """Say who is alive, as the process supervisor would."""
        for k in range(self.p):
            self.shared.processes.alive[k] = group >> k & 1

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
        script = _Script(to_voter, later, to_readers, claims, unseen)
        return bool(_tick(self.stage, group, script, self_echo))

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
        p = self.p
        script = _Script(
            np.full(p, GOOD),
            np.full(p, GOOD),
            np.full((p, p), GOOD),
            np.zeros((p, p), np.int64),
            np.zeros((p, p), np.bool_),
        )
        count, finding = _sweep(
            self.stage, working, liar, np.array([*faces]), np.array([*claims]), step, script
        )
        return [int(x) for x in count], int(finding)

    def forget(self, working: int) -> None:
        """A fresh voter with a working set, but for the number of the tick."""
        _forget(self.ballot, working)
