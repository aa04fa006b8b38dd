import numpy as np
import pytest

from ft_controller.fault_injection import STUCK, accused_by, draw, spoil
from ft_controller.faults import FaultKind
from ft_controller.messages import FAULT


def test_liars_accuse_every_other_processor_and_never_themselves():
    for liar in range(4):
        assert {accused_by(liar, seed, 4) for seed in range(50)} == {0, 1, 2, 3} - {liar}


def test_draws_depend_on_seed_and_salt_and_are_not_negative():
    drawn = {draw(seed, salt) for seed in range(40) for salt in range(40)}
    assert len(drawn) > 1590 and min(drawn) >= 0


@pytest.fixture
def case():
    """A fault, data and their bits, and the memory of a stuck value."""
    data = np.arange(1.0, 7.0)
    stuck = np.zeros(1, STUCK)
    stuck["onset"] = -1
    return np.zeros(1, FAULT), data, data.view(np.int64), stuck


def carry_out(case, kind, element, magnitude=0.0, onset=5, first=0, count=6):
    fault, data, bits, stuck = case
    fault[0] = (kind, element, onset, 0, magnitude)
    spoil(fault[0], element, data, bits, first, count, stuck[0])
    return data.tolist()


@pytest.mark.parametrize("kind", [FaultKind.WRONG_ELEMENT, FaultKind.COLLUDING])
def test_a_wrong_element_is_off_by_its_size_or_by_its_lowest_bit(case, kind):
    assert carry_out(case, kind, 2, 0.5) == [1.0, 2.0, 3.5, 4.0, 5.0, 6.0]
    before = case[1].copy()
    after = np.array(carry_out(case, kind, 3))
    assert np.flatnonzero(after != before).tolist() == [3]
    assert after[3] in (np.nextafter(4.0, 5.0), np.nextafter(4.0, 3.0))
    # What is too small to change the number changes its lowest bit.
    case[1][0] = 1e20
    assert carry_out(case, kind, 0, 1.0)[0] != 1e20


def test_a_fault_outside_of_what_is_computed_now_waits(case):
    for first, count in ((0, 2), (3, 3)):
        assert carry_out(case, FaultKind.NAN, 2, first=first, count=count)[2] == 3.0
    assert np.isnan(carry_out(case, FaultKind.NAN, 2)[2])


def test_a_stuck_value_stays_what_it_was_at_the_onset(case):
    data = case[1]
    assert carry_out(case, FaultKind.STUCK, 1)[1] == 2.0
    data[1] = 7.0
    assert carry_out(case, FaultKind.STUCK, 1)[1] == 2.0
    data[1] = 8.0
    assert carry_out(case, FaultKind.STUCK, 1, onset=6)[1] == 8.0  # another fault


@pytest.mark.parametrize(
    "kind", [FaultKind.NONE, FaultKind.SILENT, FaultKind.TWO_FACED, FaultKind.LYING_VOTE]
)
def test_other_faults_leave_the_data_alone(case, kind):
    assert carry_out(case, kind, 2, 1.0) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
