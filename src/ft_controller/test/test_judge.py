"""Who is put out and who comes back, tick by tick, on pages without processes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.baselines.ft_adversary import ABSENT, BAD, GOOD, NAN, Model
from ft_controller.voting import Comparison

ALL = 0b1111


@pytest.fixture
def model():
    """Four processors that were never wrong, and are back after three clean ticks."""
    made = Model(4)
    made.forget(ALL)
    made.vote["clean_ticks"] = 3
    made.ballot.records["clean_needed"] = 3
    return made


def tick(model, faces=None):
    """One tick in which some show a face to everybody; the others say what they see."""
    shown = np.full(4, GOOD)
    for k, face in (faces or {}).items():
        shown[k] = face
    seen = np.repeat(shown[:, None], 4, axis=1)
    claims = np.full((4, 4), 3 * Comparison.SAME)
    for k, face in (faces or {}).items():
        if face != ABSENT:
            claims[k] = 3 * Comparison.DIFFERS  # from where it stands, the others are wrong
    return model.tick(faces or (), shown, shown, seen, claims)


def clean_ticks_until_back(model):
    ticks = 0
    while model.working_set != ALL:
        ticks += 1
        assert tick(model) and ticks < 1000
    return ticks


@pytest.mark.parametrize("k", range(4))
@pytest.mark.parametrize(
    "face, error", [(BAD, Comparison.DIFFERS), (NAN, Comparison.NOT_FINITE)], ids=["bad", "nan"]
)
def test_who_is_wrong_is_out_at_once_and_alone(model, k, face, error):
    assert tick(model, {k: face})
    assert model.working_set == ALL & ~(1 << k)
    assert [model.errors[j] for j in range(4) if j != k] == [Comparison.SAME] * 3
    assert model.errors[k] == error


def test_every_exclusion_doubles_the_clean_ticks_before_the_return(model):
    waits = []
    for _ in range(5):
        tick(model, {2: BAD})
        waits.append(clean_ticks_until_back(model))
    assert waits == [3, 6, 12, 24, 48]


def test_a_tick_that_is_not_clean_begins_the_wait_anew(model):
    tick(model, {2: BAD})
    for _ in range(2):
        tick(model)
    tick(model, {2: BAD})
    assert clean_ticks_until_back(model) == 3  # it was out already: no second exclusion


def test_two_that_disagree_are_not_judged_by_each_other(model):
    model.forget(0b0011)
    assert not tick(model, {0: BAD})
    assert model.working_set == 0b0011 and model.errors[:2] == [Comparison.SAME] * 2


def test_who_is_late_for_the_stall_time_is_out_but_never_the_last_one(model):
    model.vote["stall"], model.vote["late_ticks"] = 0, 2
    states = []
    for _ in range(3):
        tick(model, {3: ABSENT})
        states.append(model.working_set)
    # The votes of a late one still come in here; its data do not.
    assert states[0] == ALL and states[-1] == 0b0111
    assert model.errors[3] == Comparison.MISSING
    model.forget(0b0001)
    for _ in range(3):
        tick(model, {0: ABSENT})
    assert model.working_set == 0b0001


@given(st.lists(st.sampled_from([None, 0, 1, 2, 3]), max_size=40))
def test_with_one_wrong_at_a_time_every_tick_is_decided_rightly(sequence):
    made = Model(4)
    made.forget(ALL)
    made.vote["clean_ticks"] = 1
    made.ballot.records["clean_needed"] = 1
    for wrong in sequence:
        # A second one counts as the first only when that is back.
        faulty = {} if wrong is None or made.working_set != ALL else {wrong: BAD}
        assert tick(made, faulty) and made.torque == 5.0
        for k in range(4):
            assert k in faulty or made.working_set >> k & 1 or made.errors[k]
