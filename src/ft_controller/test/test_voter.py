"""The voter against processors that say and show whatever they like, on pages without processes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.baselines.ft_adversary import (
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
    Model,
)
from ft_controller import judge, voter, voting
from ft_controller.atomics import checksum
from ft_controller.controllers import Controller
from ft_controller.messages import claimed_checksum, stamp_message, write_message
from ft_controller.voting import Comparison

SAY_SAME = 3 * Comparison.SAME + TRUE
FORGED_ACCUSATION = 3 * Comparison.DIFFERS + FORGED


@pytest.fixture(scope="module")
def model():
    """Four processors."""
    return Model(4)


class Script:
    """What the faulty ones do in a tick; nothing wrong until it is changed."""

    def __init__(self, p=4):
        self.to_voter = np.full(p, GOOD)
        self.later = np.full(p, GOOD)
        self.to_readers = np.full((p, p), GOOD)
        self.claims = np.full((p, p), SAY_SAME)
        self.self_echo = True

    def run(self, model, *faulty):
        return model.tick(
            faulty, self.to_voter, self.later, self.to_readers, self.claims, self.self_echo
        )


# ---------------------------------------------------------------------- the known cases


def test_a_reader_that_is_overtaken_by_a_two_faced_writer_is_no_liar(model):
    """It has the checksum of one face and the data of the other; both carry the same stamp."""
    for torn in (TORN_GOOD, TORN_BAD):
        for to_voter in range(FACES):
            for later in (to_voter, GOOD, BAD):
                for reader in (1, 2, 3):
                    model.forget(0b1111)
                    script = Script()
                    script.to_voter[0], script.later[0] = to_voter, later
                    script.to_readers[0, reader] = torn
                    assert script.run(model, 0)
                    assert model.working_set & 0b1110 == 0b1110, (torn, to_voter, later)


def test_liars_that_take_turns_do_not_put_an_honest_one_out(model):
    """0 lies once about 1; some time later 2 does, and then 3: nobody was in the wrong but they."""
    model.forget(0b1111)
    for liar in (0, 2, 3):
        script = Script()
        script.claims[liar, 1] = FORGED_ACCUSATION
        assert script.run(model, liar)
        assert model.working_set & 0b10
        for _ in range(100):
            assert Script().run(model)
    assert model.working_set == 0b1111
    assert model.errors[1] == Comparison.SAME


def test_a_reader_that_counted_the_good_face_of_a_liar_costs_no_tick(model):
    """Processor 1 stopped waiting when it had three alike; the voter got the liar's other face."""
    model.forget(0b1111)
    script = Script()
    script.to_voter[0] = script.later[0] = BAD
    unseen = np.zeros((4, 4), np.bool_)
    unseen[1, 3] = True
    assert model.tick((0,), script.to_voter, script.later, script.to_readers, script.claims,
                      True, unseen)  # fmt: skip
    assert model.torque == TORQUE
    assert model.working_set == 0b1110


@pytest.mark.parametrize(
    "face, later, self_echo, error",
    [
        (BAD, BAD, True, Comparison.DIFFERS),
        (NAN, NAN, True, Comparison.NOT_FINITE),
        (TORN_GOOD, TORN_GOOD, True, Comparison.BAD_CHECKSUM),
        (GOOD, BAD, True, Comparison.TWO_FACED),
        (GOOD, ABSENT, True, Comparison.TWO_FACED),
        (GOOD, GOOD, False, Comparison.TWO_FACED),
    ],
)
def test_what_the_voter_sees_itself_is_named(model, face, later, self_echo, error):
    for working in (0b1111, 0b0111, 0b0011):
        model.forget(working)
        script = Script()
        script.to_voter[1], script.later[1], script.self_echo = face, later, self_echo
        decided = script.run(model, 1)
        assert decided == (working != 0b0011 or face == GOOD)
        # Of two that differ nobody knows who is right.
        assert (model.errors[1] == error) == (working != 0b0011 or face != BAD)


def test_a_vote_against_the_own_echo_is_a_lie(model):
    for said in (Comparison.DIFFERS, Comparison.BAD_CHECKSUM, Comparison.NOT_FINITE):
        model.forget(0b1111)
        script = Script()
        script.claims[2, 0] = 3 * said + TRUE
        assert script.run(model, 2)
        assert model.errors == [0, 0, Comparison.LYING_VOTE, 0]
    # Nor may it call the same what differs.
    model.forget(0b1111)
    script = Script()
    script.to_voter[3] = script.later[3] = BAD
    script.to_readers[3] = BAD
    assert script.run(model, 2, 3)
    assert model.errors == [0, 0, Comparison.LYING_VOTE, Comparison.DIFFERS]


def test_whom_all_others_contradict_is_named_and_fewer_are_not_enough(model):
    for victims, error in (((0, 1, 3), Comparison.TWO_FACED), ((0, 3), Comparison.SAME)):
        model.forget(0b1111)
        script = Script()
        for reader in victims:
            script.to_readers[2, reader] = WORSE
        assert script.run(model, 2)
        assert model.errors == [0, 0, error, 0]
    for victims, error in (((0, 1, 3), Comparison.LYING_VOTE), ((0, 3), Comparison.SAME)):
        model.forget(0b1111)
        script = Script()
        script.claims[2, list(victims)] = FORGED_ACCUSATION
        assert script.run(model, 2)
        assert model.errors == [0, 0, error, 0]


# ---------------------------------------------------------------------- all that a liar can do


@pytest.mark.parametrize("working", [0b1111, 0b0111, 0b1101, 0b0101])
def test_no_liar_has_an_honest_one_excluded_or_costs_a_tick(model, working):
    """Complete for these faces and claims; nothing but the working set outlives a tick."""
    for liar in range(4):
        (cases, excluded, lost, wrong), first = model.sweep(
            working, liar, (GOOD, BAD, TORN_GOOD), (SAY_SAME, SAY_SAME + 3, FORGED_ACCUSATION)
        )
        assert cases == FACES * 3 * 2 * 2 * 27 * 27
        # With one other left, a wrong face is a tie: held, never guessed.
        tie = voting.members(working & ~(1 << liar)) < 2 and (working >> liar) & 1
        assert (excluded, wrong) == (0, 0), first
        assert lost == 0 or tie, first


def test_no_liar_has_an_honest_one_excluded_whatever_it_says(model):
    """All faces and all claims, every so many-th of the combinations."""
    for working, liar in ((0b1111, 0), (0b1110, 2), (0b1111, 3)):
        counts, first = model.sweep(working, liar, range(FACES), range(CLAIMS), step=1_000_003)
        assert counts[1:] == [0, 0, 0], (working, liar, first)
        assert counts[0] > 90


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(3, 7))
def test_liars_that_come_and_go_never_have_an_honest_one_excluded(seed, p):
    """Up to the tolerated number at a time, others all the time, in any working set they make."""
    rng = np.random.default_rng(seed)
    model = Model(p)
    model.forget((1 << p) - 1)
    model.ballot.records["clean_needed"] = model.vote["clean_ticks"] = 3
    for _ in range(60):
        working = model.working_set
        members = [k for k in range(p) if working >> k & 1]
        number = int(rng.integers(0, (len(members) - 1) // 2 + 1))
        faulty = rng.choice(members, number, replace=False).tolist()
        # Those outside of the working set may do what they like.
        faulty += [k for k in range(p) if k not in members and rng.random() < 0.3]
        decided = random_tick(model, rng, faulty)
        assert decided and model.torque == TORQUE
        honest = [k for k in members if k not in faulty]
        assert all(model.working_set >> k & 1 for k in honest), (faulty, honest)


def random_tick(model, rng, faulty, faces=FACES):
    p = model.p
    to_voter = rng.integers(0, faces, p)
    later = np.where(rng.random(p) < 0.5, to_voter, rng.integers(0, faces, p))
    return model.tick(
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
    model = Model(4)
    for _ in range(60):
        model.forget(0b1111)
        faulty = rng.choice(4, 2, replace=False).tolist()
        decided = random_tick(model, rng, faulty)
        assert not decided or model.torque == TORQUE
        honest = 0b1111 & ~sum(1 << k for k in faulty)
        assert model.working_set & honest == honest


def test_one_that_shows_only_the_voter_a_wrong_face_has_no_paper_controller_blame_the_others():
    """high_tolerance: the processors agree on a group with the liar; the voter reads otherwise."""
    model = Model(4)
    model.forget(0b1111)
    model.vote["controller"] = Controller.HIGH_TOLERANCE
    shared, tick = model.shared, int(model.vote["tick"]) + 1

    def publish(message, k, group, body):
        write_message(message, k, tick, group, np.array(body))
        stamp_message(message, k, tick)

    def bits(*values):
        return np.array(values).view(np.int64)

    for k in range(4):
        publish(shared.data, k, 0, bits(9.0 if k == 0 else 2.0, 1.0))
    for k in range(4):
        echoes = [claimed_checksum(shared.data, j, tick) for j in range(4)]
        echoes[0] = checksum(np.append(0, bits(2.0, 1.0)), 3, tick)
        publish(shared.votes, k, 0b1111, [Comparison.SAME] * 4 + echoes)
        publish(shared.result, k, 0b1111, [*bits(TORQUE), k == 0])
    stage = model.stage
    assert voter.release_and_vote(model.ballot, shared, stage.joints, stage.faults)
    judge.review(model.ballot, shared, stage.joints)
    assert model.torque == TORQUE and model.working_set == 0b1110


# ---------------------------------------------------------------------- an empty working set


def test_one_that_must_not_be_alone_is_joined_by_those_that_come_back():
    model = Model(4)
    model.forget(0b0001)
    model.vote["clean_ticks"], model.vote["allow_single"] = 5, 0
    for _ in range(5):
        assert not Script().run(model)
    assert model.working_set == 0b1111
    assert Script().run(model)


def test_after_all_have_died_most_that_agree_are_the_next_working_set():
    model = Model(4)
    model.forget(0b1111)
    model.vote["clean_ticks"] = 5
    model.set_alive(0)
    Script().run(model)
    assert model.working_set == 0
    # Two of four are not enough, however long they agree; nor are three with one that differs.
    model.set_alive(0b0011)
    for _ in range(20):
        assert not Script().run(model)
    assert model.working_set == 0
    model.set_alive(0b0111)
    script = Script()
    script.to_voter[1] = script.later[1] = BAD
    for _ in range(20):
        assert not script.run(model, 1)
    assert model.working_set == 0
    model.set_alive(0b1111)
    for k in range(5):
        assert model.working_set == 0, k
        assert not script.run(model, 1)
    assert model.working_set == 0b1101
    assert script.run(model, 1)
