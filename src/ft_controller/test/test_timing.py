import pytest
from hypothesis import given
from hypothesis import strategies as st

from ft_controller import Timing
from kin_core.errors import InvalidInput


@given(rate=st.floats(1.0, 20_000.0), patience=st.floats(0.0, 1.0), stall=st.floats(0.0, 10.0))
def test_deadlines_of_a_rate_are_in_their_order(rate, patience, stall):
    timing = Timing.realtime(rate, stall, patience)
    assert timing.grace <= timing.hard <= timing.late
    assert timing.hard >= patience and timing.stall == stall
    if patience == 0.0:
        assert timing.late < 1.0 / rate  # a tick ends before the next one is due


@given(rate=st.floats(1.0, 10_000.0), factor=st.floats(0.5, 2.0))
def test_deadlines_shrink_with_the_period(rate, factor):
    one, other = Timing.realtime(rate), Timing.realtime(factor * rate)
    for name in ("grace", "hard", "late", "probe"):
        assert getattr(one, name) == pytest.approx(factor * getattr(other, name))


def test_a_replay_waits_longer_than_a_simulation():
    patient, lockstep = Timing.patient(), Timing.lockstep()
    for name in ("grace", "hard", "late", "probe", "stall"):
        assert getattr(patient, name) > getattr(lockstep, name)


@pytest.mark.parametrize("field, value", [("grace", 0.02), ("hard", -1.0), ("late_ticks", 0)])
def test_senseless_deadlines_are_refused_by_name(field, value):
    with pytest.raises(InvalidInput, match=field):
        Timing(
            **{"grace": 0.0, "hard": 0.01, "late": 0.0, "probe": 0.0, "stall": 0.0, field: value}
        )
