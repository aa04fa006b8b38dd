import dataclasses
import itertools

import numpy as np
import pytest

from ft_controller import Arm, ArmError, Limits, State
from ft_controller.governor import Governor, Reason

ARM = Arm.four_link()
ZERO = np.zeros(4)
TAU = np.array([4.0, 3.0, 2.0, 1.0])


def governor(**changes):
    return Governor(dataclasses.replace(Limits.of(ARM, hold=0.1, ramp=0.2), **changes))


def test_idle_until_there_is_something_to_go_by():
    g = governor()
    assert (g.step(0.0, False, True, TAU, ZERO, ZERO) == 0.0).all()
    assert g.state == State.IDLE and g.reason == Reason.SENSOR_LOST
    assert (g.step(0.1, True, False, TAU, ZERO, ZERO) == 0.0).all()
    assert g.state == State.IDLE
    assert (g.step(0.2, True, True, TAU, ZERO, ZERO) == TAU).all()
    assert g.state == State.RUN


def test_hold_ramp_and_stop_go_by_time():
    g = governor()
    g.step(0.0, True, True, TAU, ZERO, ZERO)
    for t in (0.01, 0.05, 0.109):
        assert (g.step(t, True, False, -TAU, ZERO, ZERO) == TAU).all()
        assert g.state == State.HOLD
    g.step(0.111, True, False, TAU, ZERO, ZERO)
    assert g.state == State.RAMP
    assert g.step(0.211, True, False, TAU, ZERO, ZERO) == pytest.approx(0.5 * TAU)
    # From here a quorum does not help.
    assert g.step(0.261, True, True, TAU, ZERO, ZERO) == pytest.approx(0.25 * TAU)
    v = np.array([1.0, 0.0, 0.0, -1.0])
    out = g.step(0.4, True, True, TAU, ZERO, v)
    assert g.state == State.STOPPED
    assert out[0] < 0.0 < out[3] and out[1] == 0.0
    assert (g.step(0.5, False, True, TAU, ZERO, v) == 0.0).all()
    g.reset()
    assert (g.step(0.6, True, True, TAU, ZERO, ZERO) == TAU).all()


def test_a_quorum_that_comes_back_in_time_ends_the_hold():
    g = governor()
    g.step(0.0, True, True, TAU, ZERO, ZERO)
    g.step(0.05, True, False, ZERO, ZERO, ZERO)
    assert g.state == State.HOLD
    assert (g.step(0.1, True, True, 2.0 * TAU, ZERO, ZERO) == 2.0 * TAU).all()
    assert g.state == State.RUN and g.reason == Reason.NONE


def test_torques_are_cut_and_beyond_belief_refused():
    g = governor(torque=np.full(4, 10.0))
    out = g.step(0.0, True, True, np.array([20.0, -30.0, 1.0, 0.0]), ZERO, ZERO)
    assert out.tolist() == [10.0, -10.0, 1.0, 0.0] and g.saturated and g.state == State.RUN
    for bad in (41.0, -41.0, np.nan, np.inf):
        out = g.step(0.01, True, True, np.array([0.0, 0.0, bad, 0.0]), ZERO, ZERO)
        assert out.tolist() == [10.0, -10.0, 1.0, 0.0]
        assert (g.state, g.reason, g.joint) == (State.HOLD, Reason.IMPLAUSIBLE, 2)


@pytest.mark.parametrize(
    "q, v, reason", [(3.3, 0.0, Reason.JOINT_LIMIT), (0.0, 21.0, Reason.OVERSPEED)]
)
def test_a_joint_out_of_limits_is_not_held_but_ramped_down(q, v, reason):
    g = governor()
    g.step(0.0, True, True, TAU, ZERO, ZERO)
    g.step(0.01, True, True, TAU, np.array([0.0, q, 0.0, 0.0]), np.array([0.0, v, 0.0, 0.0]))
    assert (g.state, g.reason, g.joint, g.value) == (State.RAMP, reason, 1, q or v)
    for k in range(60):  # at rest again: what is told is still what stopped the arm
        g.step(0.02 + 0.01 * k, True, True, TAU, ZERO, ZERO)
    assert (g.state, g.reason, g.joint, g.value) == (State.STOPPED, reason, 1, q or v)


def test_the_damping_of_a_stopped_arm_brings_it_to_rest():
    from ft_controller import Plant

    plant = Plant(ARM, qdot=[2.0, -3.0, 4.0, -5.0], lower=-100.0, upper=100.0)
    g = governor(lower=np.full(4, -100.0), upper=np.full(4, 100.0))
    g.step(0.0, True, True, TAU, *plant.measure())
    energy = [ARM.energy(plant.q, plant.qdot)]
    for k in range(6000):
        plant.step(g.step(1e-3 * k, True, False, ZERO, *plant.measure()), 1e-3)
        energy.append(ARM.energy(plant.q, plant.qdot))
    assert g.state == State.STOPPED
    assert energy[-1] < 0.01 * max(energy)
    assert all(b <= a * (1 + 1e-9) for a, b in itertools.pairwise(energy[400:]))


@pytest.mark.parametrize(
    "field, changes",
    [
        ("torque", {"torque": np.zeros(4)}),
        ("lower", {"lower": np.full(4, 4.0)}),
        ("upper", {"upper": np.full(4, np.nan)}),
        ("speed", {"speed": np.full(3, 1.0)}),
        ("damping", {"damping": np.full(4, -1.0)}),
        ("hold", {"hold": -1.0}),
        ("implausible", {"implausible": 0.5}),
    ],
)
def test_senseless_limits_are_refused(field, changes):
    with pytest.raises(ArmError, match=field):
        dataclasses.replace(Limits.of(ARM), **changes)
