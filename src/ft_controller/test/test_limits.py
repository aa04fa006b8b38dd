import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ft_controller import Arm, ArmError, Limits

ARMS = [Arm.four_link(), Arm.rods(1), Arm.rods(7, friction=0.2)]


@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.n)
@given(rate=st.floats(0.1, 500.0), seed=st.integers(0, 2**32 - 1))
def test_the_damping_works_at_no_more_than_its_rate(arm, rate, seed):
    """The eigenvalues of M^-1 D are rates; a posture that was not looked at adds little."""
    damping = Limits.of(arm, stop_damping=rate).damping
    q = np.random.default_rng(seed).uniform(-2.5, 2.5, arm.n)
    rates = np.linalg.eigvals(np.linalg.solve(arm.inertia_matrix(q), np.diag(damping)))
    assert (rates.real > 0.0).all() and np.abs(rates).max() <= 1.5 * rate


@given(scale=st.floats(0.1, 10.0))
def test_torques_and_damping_scale_with_the_masses(scale):
    arm = Arm.four_link()
    heavy = Arm.of(scale * arm.mass, arm.length)
    for name in ("torque", "damping"):
        expected = scale * getattr(Limits.of(arm), name)
        assert getattr(Limits.of(heavy), name) == pytest.approx(expected)


def test_they_cannot_be_changed_in_place():
    limits = Limits.of(Arm.four_link())
    with pytest.raises(ValueError, match="read-only"):
        limits.upper[0] = 9.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        limits.hold = 1.0


def test_each_joint_has_its_own():
    limits = dataclasses.replace(Limits.of(Arm.four_link()), upper=[1.0, 2.0, 3.0, 4.0])
    assert limits.upper.tolist() == [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(ArmError, match="joint 2"):
        dataclasses.replace(limits, lower=[0.0, 0.0, 3.5, 0.0])
