import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.dispatcher import Dispatcher

from ft_controller import Arm, ArmError, Plant
from ft_controller import plant as plants
from ft_controller.warm_up import warm_up_plant


@pytest.mark.parametrize("gravity", [0.0, 9.81])
def test_energy_is_conserved_without_torque_and_friction(gravity):
    arm = Arm.four_link(gravity=gravity)
    plant = Plant(arm, q=[0.3, -0.4, 0.5, 0.6], qdot=[1.0, -2.0, 1.5, 0.5], lower=-1e3, upper=1e3)
    before = arm.energy(plant.q, plant.qdot)
    for _ in range(2000):
        plant.step(np.zeros(4), 1e-3)
    assert arm.energy(plant.q, plant.qdot) == pytest.approx(before, rel=1e-8, abs=1e-8)
    assert np.abs(plant.q).max() > 1.0  # it did move


def test_friction_takes_energy_away():
    arm = Arm.four_link(friction=0.5)
    plant = Plant(arm, qdot=[1.0, -2.0, 1.5, 0.5], lower=-1e3, upper=1e3)
    energy = []
    for _ in range(300):
        plant.step(np.zeros(4), 1e-2)
        energy.append(arm.energy(plant.q, plant.qdot))
    assert all(b <= a for a, b in itertools.pairwise(energy))
    assert energy[-1] < 0.5 * energy[0]


def test_momentum_about_the_base_is_kept_when_an_outer_joint_locks():
    arm = Arm.four_link()
    plant = Plant(arm, q=[0.3, -0.4, 0.5, 0.6], qdot=[1.0, -2.0, 1.5, 0.5])
    momentum = (arm.inertia_matrix(plant.q) @ plant.qdot)[[0, 1, 3]]
    energy = arm.energy(plant.q, plant.qdot)
    plant.lock(2)
    assert plant.qdot[2] == 0.0
    # The impulse acts in bearing 2 alone: the other generalised momenta stay.
    after = (arm.inertia_matrix(plant.q) @ plant.qdot)[[0, 1, 3]]
    assert after == pytest.approx(momentum, rel=1e-12)
    assert arm.energy(plant.q, plant.qdot) < energy
    where = plant.q[2]
    for _ in range(100):
        plant.step([5.0, -3.0, 50.0, 1.0], 1e-3)
    assert plant.q[2] == where and plant.qdot[2] == 0.0
    plant.lock(2, False)
    plant.step([0.0, 0.0, 50.0, 0.0], 1e-3)
    assert plant.q[2] != where


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_limits_hold_whatever_pushes(seed):
    random = np.random.default_rng(seed)
    plant = Plant(Arm.four_link(), lower=-0.5, upper=0.7)
    for _ in range(20):
        tau = random.uniform(-1, 1, 4) * [200.0, 80.0, 30.0, 5.0]
        for _ in range(10):
            plant.step(tau, 2e-3)
            assert np.isfinite(plant.q).all()
            assert plant.q.min() >= -0.5 - 1e-9 and plant.q.max() <= 0.7 + 1e-9


def test_limits_that_move_past_a_joint_let_it_only_come_back():
    plant = Plant(Arm.four_link(), q=[0.5, 0.0, 0.0, 0.0])
    plant.set_limits([-1.0, -3.0, -3.0, -3.0], [0.2, 3.0, 3.0, 3.0])
    plant.step([50.0, 0.0, 0.0, 0.0], 0.05)
    assert plant.q[0] == pytest.approx(0.5, abs=1e-6)
    for _ in range(50):
        plant.step([-20.0, 0.0, 0.0, 0.0], 0.01)
    assert plant.q[0] < 0.2
    with pytest.raises(ArmError, match="lower"):
        plant.set_limits(1.0, -1.0)


def test_the_plant_is_not_the_model_and_noise_is_seeded():
    arm = Arm.four_link()
    other = arm.perturbed(1, 0.05)
    assert (other.mass != arm.mass).all() and (other.length == arm.length).all()
    a, b = (Plant(arm, position_noise=1e-3, velocity_noise=1e-2, seed=3) for _ in range(2))
    assert (a.measure()[0] == b.measure()[0]).all()
    assert (a.measure()[0] != a.q).any()
    many = np.array([a.measure()[0] for _ in range(2000)])
    assert many.std() == pytest.approx(1e-3, rel=0.1)


@pytest.mark.parametrize(
    "call",
    [
        lambda p: p.step([1.0], 1e-3),
        lambda p: p.step([np.nan] * 4, 1e-3),
        lambda p: p.lock(4),
        lambda p: p.lock(-1),
    ],
)
def test_senseless_calls_are_refused(call):
    with pytest.raises(ArmError):
        call(Plant(Arm.four_link()))


@pytest.mark.parametrize("step", [1e-3, 0.02, 0.5])
def test_brakes_take_energy_and_never_push_however_long_the_step(step):
    from ft_controller import Limits

    arm = Arm.four_link()
    plant = Plant(arm, qdot=[1.0, -2.0, 1.5, 5.0], lower=-1e3, upper=1e3)
    brakes = Limits.of(arm).damping
    energy = [arm.energy(plant.q, plant.qdot)]
    for _ in range(round(4.0 / step)):
        plant.step(np.zeros(4), step, brakes)
        energy.append(arm.energy(plant.q, plant.qdot))
    assert all(b <= a * (1 + 1e-9) for a, b in itertools.pairwise(energy))
    assert energy[-1] < 0.05 * energy[0]
    before = plant.arm.links.copy()
    plant.step(np.zeros(4), step, brakes)
    assert (plant.arm.links == before).all()  # the brakes are off again with the next step


def test_brakes_need_no_kernels_of_their_own():
    """The first step of an arm that starts with its brakes on would compile them, for seconds."""

    def compiled():
        return [len(one.signatures) for one in vars(plants).values() if isinstance(one, Dispatcher)]

    arm = Plant(Arm.four_link())
    warm_up_plant(arm)
    before = compiled()
    arm.step(np.ones(4), 1e-3)
    arm.step(np.ones(4), 1e-3, braking=np.full(4, 0.5))
    assert compiled() == before and len(before) == 2
