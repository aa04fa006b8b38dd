import dataclasses
import itertools

import numpy as np
import pytest

from ft_controller import Arm, ArmError, Limits, State
from ft_controller.safety_supervisor import Reason, SafetySupervisor

ARM = Arm.four_link()
ZERO = np.zeros(4)
TAU = np.array([4.0, 3.0, 2.0, 1.0])


def supervisor(**changes):
    return SafetySupervisor(dataclasses.replace(Limits.of(ARM, hold=0.1, ramp=0.2), **changes))


def test_idle_until_there_is_something_to_go_by():
    g = supervisor()
    assert (g.step(0.0, False, True, TAU, ZERO, ZERO) == 0.0).all()
    assert g.state == State.IDLE and g.reason == Reason.SENSOR_LOST
    assert (g.step(0.1, True, False, TAU, ZERO, ZERO) == 0.0).all()
    assert g.state == State.IDLE
    assert (g.step(0.2, True, True, TAU, ZERO, ZERO) == TAU).all()
    assert g.state == State.RUN


def test_hold_ramp_and_stop_go_by_time():
    g = supervisor()
    g.step(0.0, True, True, TAU, ZERO, ZERO)
    for t in (0.01, 0.05, 0.109):
        assert (g.step(t, True, False, -TAU, ZERO, ZERO) == TAU).all()
        assert g.state == State.HOLD
    g.step(0.111, True, False, TAU, ZERO, ZERO)
    assert g.state == State.RAMP
    # The ramp counts from the moment at which the hold time was used up.
    assert g.step(0.21, True, False, TAU, ZERO, ZERO) == pytest.approx(0.5 * TAU)
    # From here a quorum does not help.
    assert g.step(0.26, True, True, TAU, ZERO, ZERO) == pytest.approx(0.25 * TAU)
    v = np.array([1.0, 0.0, 0.0, -1.0])
    out = g.step(0.4, True, True, TAU, ZERO, v)
    assert g.state == State.STOPPED
    assert out[0] < 0.0 < out[3] and out[1] == 0.0
    assert (g.step(0.5, False, True, TAU, ZERO, v) == 0.0).all()
    g.reset()
    assert (g.step(0.6, True, True, TAU, ZERO, ZERO) == TAU).all()


def test_a_quorum_that_comes_back_in_time_ends_the_hold():
    g = supervisor()
    g.step(0.0, True, True, TAU, ZERO, ZERO)
    g.step(0.05, True, False, ZERO, ZERO, ZERO)
    assert g.state == State.HOLD
    assert (g.step(0.1, True, True, 2.0 * TAU, ZERO, ZERO) == 2.0 * TAU).all()
    assert g.state == State.RUN and g.reason == Reason.NONE


def test_torques_are_cut_and_beyond_belief_refused():
    g = supervisor(torque=np.full(4, 10.0))
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
    g = supervisor()
    g.step(0.0, True, True, TAU, ZERO, ZERO)
    g.step(0.01, True, True, TAU, np.array([0.0, q, 0.0, 0.0]), np.array([0.0, v, 0.0, 0.0]))
    assert (g.state, g.reason, g.joint, g.value) == (State.RAMP, reason, 1, q or v)
    for k in range(60):  # at rest again: what is told is still what stopped the arm
        g.step(0.02 + 0.01 * k, True, True, TAU, ZERO, ZERO)
    assert (g.state, g.reason, g.joint, g.value) == (State.STOPPED, reason, 1, q or v)


def test_the_damping_of_a_stopped_arm_brings_it_to_rest():
    from ft_controller import Plant

    plant = Plant(ARM, qdot=[2.0, -3.0, 4.0, -5.0], lower=-100.0, upper=100.0)
    g = supervisor(lower=np.full(4, -100.0), upper=np.full(4, 100.0))
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
        ("pause", {"pause": 0.0}),
        ("recovery", {"recovery": 1.5}),
        ("implausible", {"implausible": 0.5}),
    ],
)
def test_senseless_limits_are_refused(field, changes):
    with pytest.raises(ArmError, match=field):
        dataclasses.replace(Limits.of(ARM), **changes)


def feed(g, t, seconds, voted=True, fresh=True, period=0.01, v=ZERO):
    """Steps at a steady rate; returns the time after them."""
    for _ in range(round(seconds / period)):
        t += period
        g.step(t, fresh, voted, TAU, ZERO, v)
    return t


def test_holds_that_repeat_add_up():
    """450 ms of 480 without a quorum, and a hold time of 500 ms: once is a hold, twice a stop."""
    g = supervisor(hold=0.5)
    t = feed(g, 0.0, 0.1)
    t = feed(g, t, 0.45, voted=False)
    assert g.state == State.HOLD
    t = feed(g, t, 0.03)
    assert g.state == State.RUN and g.held == pytest.approx(0.45, abs=0.02)
    t = feed(g, t, 0.1, voted=False)
    assert (g.state, g.reason) == (State.RAMP, Reason.NO_QUORUM)
    feed(g, t, 0.5)
    assert g.state == State.STOPPED


@pytest.mark.parametrize("share, ends", [(0.05, State.RUN), (0.15, State.STOPPED)])
def test_control_gives_back_a_tenth_of_its_time(share, ends):
    """Held for less than a tenth of the time an arm goes on for ever; for more, it does not."""
    g = supervisor(hold=0.1, recovery=0.1)
    t = feed(g, 0.0, 0.1)
    for _ in range(200):
        t = feed(g, t, 0.2 * share, voted=False, period=0.005)
        t = feed(g, t, 0.2 * (1.0 - share), period=0.005)
    assert g.state == ends


def test_a_pause_counts_as_held():
    g = supervisor(hold=0.3, pause=0.1)
    t = feed(g, 0.0, 0.1)
    assert (g.step(t + 0.2, True, True, TAU, ZERO, ZERO) == TAU).all()
    assert g.state == State.RUN and g.held == pytest.approx(0.2)
    # The second one is too much: no torque of before it comes back, not for one step.
    v = np.array([1.0, 0.0, 0.0, 0.0])
    out = g.step(t + 0.4, True, True, TAU, ZERO, v)
    assert (g.state, g.reason) == (State.STOPPED, Reason.PAUSED)
    assert out[0] < 0.0 and (out[1:] == 0.0).all()
    assert g.value == pytest.approx(0.4)


def test_a_blind_arm_is_not_pushed():
    g = supervisor(hold=0.5, pause=0.1)
    t = feed(g, 0.0, 0.1)
    torque = [np.abs(g.step(t + 0.01 * k, False, True, TAU, ZERO, ZERO)).max() for k in range(40)]
    assert g.state == State.HOLD
    assert all(b <= a for a, b in itertools.pairwise(torque))
    assert torque[:11] == pytest.approx([TAU.max()] * 11)
    assert torque[15] == pytest.approx(0.5 * TAU.max()) and torque[20:] == [0.0] * 20


def test_old_measurements_fade_the_torque_in_run_too():
    g = supervisor(pause=0.1)
    for age, share in ((0.0, 1.0), (0.1, 1.0), (0.15, 0.5), (0.2, 0.0), (0.0, 1.0)):
        g.seen(age)
        assert g.step(1.0, True, True, TAU, ZERO, ZERO) == pytest.approx(share * TAU)
        assert g.state == State.RUN


@pytest.mark.parametrize(
    "q, v, reason", [(3.3, 0.0, Reason.JOINT_LIMIT), (0.0, 21.0, Reason.OVERSPEED)]
)
def test_limits_count_without_a_quorum_too(q, v, reason):
    g = supervisor(hold=1.0)
    g.step(0.0, True, True, TAU, ZERO, ZERO)
    g.step(0.01, True, False, TAU, np.array([0.0, q, 0.0, 0.0]), np.array([0.0, v, 0.0, 0.0]))
    assert (g.state, g.reason, g.joint) == (State.RAMP, reason, 1)


def test_a_held_torque_brakes_a_fast_joint_but_does_not_drive_it():
    g = supervisor(hold=1.0)
    g.step(0.0, True, True, TAU, ZERO, ZERO)
    for share, driven in ((0.4, 1.0), (0.5, 1.0), (0.75, 0.5), (1.0, 0.0)):
        v = np.array([20.0, -20.0, 0.0, 0.0]) * share
        out = g.step(0.01, True, False, TAU, ZERO, v)
        assert out == pytest.approx(TAU * [driven, 1.0, 1.0, 1.0])


def test_a_cut_leaves_nothing_of_the_last_torque():
    g = supervisor()
    g.cut(Reason.FROZEN, 1, 0.1)
    assert g.state == State.IDLE  # there is nothing to cut
    g.step(0.0, True, True, TAU, ZERO, ZERO)
    g.cut(Reason.FOLLOWING_ERROR, 2, 0.4)
    assert (g.step(0.01, True, True, TAU, ZERO, ZERO) == 0.0).all()
    assert (g.state, g.reason, g.joint, g.value) == (State.STOPPED, Reason.FOLLOWING_ERROR, 2, 0.4)
    g.cut(Reason.FROZEN, 1, 0.1)
    assert g.reason == Reason.FOLLOWING_ERROR  # what stopped it is what is told


def test_who_is_barred_gives_no_torque_whatever_happens():
    g = supervisor()
    g.bar(Reason.CLAIMING)
    assert (g.step(0.0, True, True, TAU, ZERO, ZERO) == 0.0).all()
    assert (g.state, g.reason) == (State.IDLE, Reason.CLAIMING)
    g.reset()
    assert (g.step(0.1, True, True, TAU, ZERO, ZERO) == 0.0).all()
    g.bar(Reason.NONE)
    assert (g.step(0.2, True, True, TAU, ZERO, ZERO) == TAU).all()
    g.bar(Reason.RIVAL)
    assert (g.step(0.21, True, True, TAU, ZERO, np.ones(4)) == 0.0).all()
    assert (g.state, g.reason) == (State.STOPPED, Reason.RIVAL)
    g.bar(Reason.NONE)
    g.step(0.22, True, True, TAU, ZERO, ZERO)
    assert (g.state, g.reason) == (State.STOPPED, Reason.RIVAL)  # until somebody resets
    g.reset()
    assert (g.step(0.23, True, True, TAU, ZERO, ZERO) == TAU).all()
