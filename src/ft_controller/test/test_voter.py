"""The voter against processors that say and show whatever they like, on pages without processes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ft_controller import voter, voting
from ft_controller.adversary import (
    ABSENT,
    BAD,
    CLAIMS,
    FACES,
    FORGED,
    GOOD,
    NAN,
    TORN_BAD,
    TORN_GOOD,
    TORQUE,
    TRUE,
    WORSE,
    Pages,
)
from ft_controller.atomics import checksum, combine
from ft_controller.layout import BODY, CREW_WORDS
from ft_controller.processor import HIGH, read_message

SAY_SAME = 3 * voting.SAME + TRUE
FORGED_ACCUSATION = 3 * voting.DIFFERS + FORGED


@pytest.fixture(scope="module")
def pages():
    """Four processors."""
    with Pages(4) as made:
        yield made


class Script:
    """What the faulty ones do in a tick; nothing wrong until it is changed."""

    def __init__(self, p=4):
        self.to_voter = np.full(p, GOOD)
        self.later = np.full(p, GOOD)
        self.to_readers = np.full((p, p), GOOD)
        self.claims = np.full((p, p), SAY_SAME)
        self.self_echo = True

    def run(self, pages, *faulty):
        return pages.tick(
            faulty, self.to_voter, self.later, self.to_readers, self.claims, self.self_echo
        )


def errors(pages):
    return pages.crew._st[:, voter.P_ERROR].tolist()


# ---------------------------------------------------------------------- the known cases


def test_a_reader_that_is_overtaken_by_a_two_faced_writer_is_no_liar(pages):
    """It has the checksum of one face and the data of the other; both carry the same stamp."""
    for torn in (TORN_GOOD, TORN_BAD):
        for to_voter in range(FACES):
            for later in (to_voter, GOOD, BAD):
                for reader in (1, 2, 3):
                    pages.forget(0b1111)
                    script = Script()
                    script.to_voter[0], script.later[0] = to_voter, later
                    script.to_readers[0, reader] = torn
                    assert script.run(pages, 0)
                    assert pages.crew.working_set & 0b1110 == 0b1110, (torn, to_voter, later)


def test_equal_echoes_stand_for_equal_words():
    """Whatever is torn, whoever echoes the same has read the same, claim included."""
    size = BODY + 3
    rng = np.random.default_rng(4)
    faces = rng.integers(0, 3, (2, size))
    faces[:, 0] = 7
    for face in faces:
        face[1] = checksum(face, 2, size - 2, 7)
    seen = {}
    for mask in range(2 ** (size - 1)):
        page = faces[0].copy()
        for k in range(1, size):
            if mask >> (k - 1) & 1:
                page[k] = faces[1, k]
        found, echo = read_message(page, 0, 3, 7, np.zeros(size, np.int64))
        words = tuple(page[1:].tolist())
        assert echo != 0
        assert seen.setdefault(echo, (words, found)) == (words, found)
    assert len({found for _, found in seen.values()}) == 2
    assert combine(0, 0) != 0


def test_liars_that_take_turns_do_not_put_an_honest_one_out(pages):
    """0 lies once about 1; some time later 2 does, and then 3: nobody was in the wrong but they."""
    pages.forget(0b1111)
    for liar in (0, 2, 3):
        script = Script()
        script.claims[liar, 1] = FORGED_ACCUSATION
        assert script.run(pages, liar)
        assert pages.crew.working_set & 0b10
        for _ in range(100):
            assert Script().run(pages)
    assert pages.crew.working_set == 0b1111
    assert errors(pages)[1] == voting.SAME


def test_a_reader_that_counted_the_good_face_of_a_liar_costs_no_tick(pages):
    """Processor 1 stopped waiting when it had three alike; the voter got the liar's other face."""
    pages.forget(0b1111)
    script = Script()
    script.to_voter[0] = script.later[0] = BAD
    unseen = np.zeros((4, 4), np.bool_)
    unseen[1, 3] = True
    assert pages.tick((0,), script.to_voter, script.later, script.to_readers, script.claims,
                      True, unseen)  # fmt: skip
    assert pages.crew._tau[0] == TORQUE
    assert pages.crew.working_set == 0b1110


@pytest.mark.parametrize(
    "face, later, self_echo, error",
    [
        (BAD, BAD, True, voting.DIFFERS),
        (NAN, NAN, True, voting.NOT_FINITE),
        (TORN_GOOD, TORN_GOOD, True, voting.BAD_CHECKSUM),
        (GOOD, BAD, True, voting.TWO_FACED),
        (GOOD, ABSENT, True, voting.TWO_FACED),
        (GOOD, GOOD, False, voting.TWO_FACED),
    ],
)
def test_what_the_voter_sees_itself_is_named(pages, face, later, self_echo, error):
    for working in (0b1111, 0b0111, 0b0011):
        pages.forget(working)
        script = Script()
        script.to_voter[1], script.later[1], script.self_echo = face, later, self_echo
        decided = script.run(pages, 1)
        assert decided == (working != 0b0011 or face == GOOD)
        # Of two that differ nobody knows who is right.
        assert (errors(pages)[1] == error) == (working != 0b0011 or face != BAD)


def test_a_vote_against_the_own_echo_is_a_lie(pages):
    for said in (voting.DIFFERS, voting.BAD_CHECKSUM, voting.NOT_FINITE):
        pages.forget(0b1111)
        script = Script()
        script.claims[2, 0] = 3 * said + TRUE
        assert script.run(pages, 2)
        assert errors(pages) == [0, 0, voting.LYING_VOTE, 0]
    # Nor may it call the same what differs.
    pages.forget(0b1111)
    script = Script()
    script.to_voter[3] = script.later[3] = BAD
    script.to_readers[3] = BAD
    assert script.run(pages, 2, 3)
    assert errors(pages) == [0, 0, voting.LYING_VOTE, voting.DIFFERS]


def test_whom_all_others_contradict_is_named_and_fewer_are_not_enough(pages):
    for victims, error in (((0, 1, 3), voting.TWO_FACED), ((0, 3), voting.SAME)):
        pages.forget(0b1111)
        script = Script()
        for reader in victims:
            script.to_readers[2, reader] = WORSE
        assert script.run(pages, 2)
        assert errors(pages) == [0, 0, error, 0]
    for victims, error in (((0, 1, 3), voting.LYING_VOTE), ((0, 3), voting.SAME)):
        pages.forget(0b1111)
        script = Script()
        script.claims[2, list(victims)] = FORGED_ACCUSATION
        assert script.run(pages, 2)
        assert errors(pages) == [0, 0, error, 0]


# ---------------------------------------------------------------------- all that a liar can do


@pytest.mark.parametrize("working", [0b1111, 0b0111, 0b1101, 0b0101])
def test_no_liar_has_an_honest_one_excluded_or_costs_a_tick(pages, working):
    """Complete for these faces and claims; nothing but the working set outlives a tick."""
    for liar in range(4):
        (cases, excluded, lost, wrong), first = pages.sweep(
            working, liar, (GOOD, BAD, TORN_GOOD), (SAY_SAME, SAY_SAME + 3, FORGED_ACCUSATION)
        )
        assert cases == FACES * 3 * 2 * 2 * 27 * 27
        # With one other left, a wrong face is a tie: held, never guessed.
        tie = voting.members(working & ~(1 << liar)) < 2 and (working >> liar) & 1
        assert (excluded, wrong) == (0, 0), first
        assert lost == 0 or tie, first


def test_no_liar_has_an_honest_one_excluded_whatever_it_says(pages):
    """All faces and all claims, every so many-th of the combinations."""
    for working, liar in ((0b1111, 0), (0b1110, 2), (0b1111, 3)):
        counts, first = pages.sweep(working, liar, range(FACES), range(CLAIMS), step=1_000_003)
        assert counts[1:] == [0, 0, 0], (working, liar, first)
        assert counts[0] > 90


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(3, 7))
def test_liars_that_come_and_go_never_have_an_honest_one_excluded(seed, p):
    """Up to the tolerated number at a time, others all the time, in any working set they make."""
    rng = np.random.default_rng(seed)
    with Pages(p) as pages:
        crew = pages.crew
        pages.forget((1 << p) - 1)
        crew._st[:, voter.P_NEEDED] = 3
        crew._reg[voter.R_CLEAN] = 3
        for _ in range(60):
            working = crew.working_set
            members = [k for k in range(p) if working >> k & 1]
            number = int(rng.integers(0, (len(members) - 1) // 2 + 1))
            faulty = rng.choice(members, number, replace=False).tolist()
            # Those outside of the working set may do what they like.
            faulty += [k for k in range(p) if k not in members and rng.random() < 0.3]
            decided = random_tick(pages, rng, faulty)
            assert decided and crew._tau[0] == TORQUE
            honest = [k for k in members if k not in faulty]
            assert all(crew.working_set >> k & 1 for k in honest), (faulty, honest)


def random_tick(pages, rng, faulty, faces=FACES):
    p = pages.crew.p
    to_voter = rng.integers(0, faces, p)
    later = np.where(rng.random(p) < 0.5, to_voter, rng.integers(0, faces, p))
    return pages.tick(
        faulty,
        to_voter,
        later,
        rng.integers(0, faces, (p, p)),
        rng.integers(0, CLAIMS, (p, p)),
        bool(rng.random() < 0.7),
        rng.random((p, p)) < 0.1,
    )


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_two_of_four_that_lie_together_have_nobody_else_excluded(seed):
    """They can cost ticks, and one torque if all they say is right; never an honest one its place.

    Their data may be anything that is not the same wrong answer from three, so a quorum is honest.
    """
    rng = np.random.default_rng(seed)
    with Pages(4) as pages:
        for _ in range(60):
            pages.forget(0b1111)
            faulty = rng.choice(4, 2, replace=False).tolist()
            decided = random_tick(pages, rng, faulty)
            assert not decided or pages.crew._tau[0] == TORQUE
            honest = 0b1111 & ~sum(1 << k for k in faulty)
            assert pages.crew.working_set & honest == honest


def test_one_that_shows_only_the_voter_a_wrong_face_has_no_paper_controller_blame_the_others(pages):
    """high_tolerance: the processors agree on a group with the liar; the voter reads otherwise."""
    crew = pages.crew
    pages.forget(0b1111)
    crew._reg[voter.R_MODE] = HIGH
    try:
        tick = int(crew._reg[voter.R_TICK]) + 1
        lay = crew.layout
        base = (tick & 1) * lay.slot
        words = pages.pages

        def write(page, at, group, body):
            page[at], page[at + 2], page[at + 3 : at + BODY] = 0, group, 0
            page[at + BODY : at + BODY + len(body)] = body
            page[at + 1] = checksum(page, at + 2, BODY - 2 + len(body), tick)
            page[at] = tick

        def bits(*values):
            return np.array(values).view(np.int64)

        for k in range(4):
            write(words[k], base, 0, bits(9.0 if k == 0 else 2.0, 1.0))
            echoes = [words[j, base + 1] for j in range(4)]
            echoes[0] = checksum(np.append(np.zeros(6, np.int64), bits(2.0, 1.0)), 0, 8, tick)
            write(words[k], base + lay.votes, 0b1111, [voting.SAME] * 4 + echoes)
            mine = [1] if k == 0 else [0]
            write(words[k], base + lay.result, 0b1111, [*bits(TORQUE), *mine])
        zero = np.zeros(1)
        crew.tick(zero, zero, zero, zero, zero, 0.0)
        assert crew.working_set == 0b1110
    finally:
        crew._reg[voter.R_MODE] = 4


# ---------------------------------------------------------------------- an empty working set


def alive(pages, group):
    words = pages.living
    for k in range(4):
        words[k * CREW_WORDS + 1] = group >> k & 1


def test_after_all_have_died_most_that_agree_are_the_next_working_set(pages):
    crew = pages.crew
    pages.forget(0b1111)
    crew._reg[voter.R_CLEAN] = 5
    alive(pages, 0)
    Script().run(pages)
    assert crew.working_set == 0
    # Two of four are not enough, however long they agree; nor are three with one that differs.
    alive(pages, 0b0011)
    for _ in range(20):
        assert not Script().run(pages)
    assert crew.working_set == 0
    alive(pages, 0b0111)
    script = Script()
    script.to_voter[1] = script.later[1] = BAD
    for _ in range(20):
        assert not script.run(pages, 1)
    assert crew.working_set == 0
    alive(pages, 0b1111)
    for k in range(5):
        assert crew.working_set == 0, k
        assert not script.run(pages, 1)
    assert crew.working_set == 0b1101
    assert script.run(pages, 1)
    crew._reg[voter.R_CLEAN] = 20
