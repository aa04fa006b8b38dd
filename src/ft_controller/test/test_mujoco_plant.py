"""MuJoCo as the arm: the same URDF, the same dynamics, friction and contacts of its own."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ft_controller import ArmError, Plant, SpatialArm
from ft_controller.mujoco_plant import MujocoPlant
from kin_testing.urdf_arms import random_urdf

mujoco = pytest.importorskip("mujoco")

ROBOTS = Path(__file__).resolve().parents[3] / "launch" / "robots"
SEVEN = ROBOTS / "seven.urdf"
WIDE = {"lower": -np.inf, "upper": np.inf}


def both(source, arm=None, tip="", **options):
    """The plant of this package and MuJoCo's, of one URDF."""
    nominal = SpatialArm.from_urdf(source, tip=tip, gravity=(0.7, -1.1, -9.7), friction=0.0)
    options = {**WIDE, **options}
    made = nominal if arm is None else arm(nominal)
    return Plant(made, **options), MujocoPlant(source, nominal, made, **options)


def inverse(plant, q, v, a):
    """MuJoCo's torques for a motion."""
    data = plant.data
    data.qpos, data.qvel, data.qacc = q, v, a
    mujoco.mj_inverse(plant.model, data)
    return data.qfrc_inverse.copy()


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 16), heavy=st.booleans())
def test_inverse_dynamics_agree(seed, n, heavy):
    """Random arms, also with other inertias than the file's."""

    def arm(nominal):
        changed = nominal.perturbed(seed, 0.3).loaded(2.0, (0.1, -0.2, 0.05))
        return changed if heavy else nominal

    ours, theirs = both(random_urdf(seed, n), arm, "tip")
    random = np.random.default_rng(seed)
    for q, v, a in random.uniform(-3.0, 3.0, (5, 3, n)):
        inertia = ours.arm.inertia_matrix(q)
        bias = ours.arm.bias(q, v)
        size = (np.abs(inertia) @ np.abs(a) + np.abs(bias)).max()
        assert inverse(theirs, q, v, a) == pytest.approx(inertia @ a + bias, abs=1e-10 * size)


def test_both_plants_move_alike():
    start = {"q": np.full(7, 0.4), "qdot": np.full(7, 0.3), "substep": 1e-4}
    ours, theirs = both(SEVEN, **start)
    for k in range(50):
        tau = 20.0 * np.sin(0.1 * k + np.arange(7)) * [1.0, 1.0, 1.0, 1.0, 0.1, 0.1, 0.01]
        ours.step(tau, 0.01)
        theirs.step(tau, 0.01)
    assert np.abs(ours.q - start["q"]).max() > 0.5
    assert theirs.q == pytest.approx(ours.q, abs=5e-3)


def test_brakes_locks_limits_and_noise_are_those_of_a_plant():
    _, plant = both(SEVEN, q=np.full(7, 0.3))
    plant.step(np.zeros(7), 0.5)
    assert np.abs(plant.qdot).max() > 0.3  # it falls
    plant.step(np.zeros(7), 0.5, braking=np.full(7, 200.0))
    plant.step(np.zeros(7), 0.01, braking=np.full(7, 200.0))
    held = plant.q.copy()
    plant.step(np.zeros(7), 1.0, braking=np.full(7, 200.0))
    assert (plant.q == held).all() and (plant.qdot == 0.0).all()
    plant.lock(3)
    plant.step(np.full(7, 5.0), 0.3)
    assert plant.q[3] == pytest.approx(held[3], abs=2e-3) and abs(plant.q[1] - held[1]) > 0.05
    plant.lock(3, False)
    plant.step(np.full(7, 5.0), 0.3)
    assert abs(plant.q[3] - held[3]) > 0.05
    plant.set_limits(plant.q - 1.0, plant.q + 0.1)
    for _ in range(100):
        plant.step([0.0, 60.0, 0.0, 0.0, 0.0, 0.0, 0.0], 0.01)
    assert plant.q[1] == pytest.approx(plant.upper[1], abs=0.02)  # its stops are springs
    with pytest.raises(ArmError, match="joint"):
        plant.lock(9)
    _, noisy = both(SEVEN, position_noise=0.1)
    assert np.abs(noisy.measure()[0] - noisy.q).max() > 0.01


def test_a_payload_is_taken_and_put_down():
    nominal = SpatialArm.from_urdf(SEVEN)
    plant = MujocoPlant(SEVEN, nominal, nominal, **WIDE)
    q, zero = np.full(7, 0.4), np.zeros(7)
    before = inverse(plant, q, zero, zero)
    plant.set_arm(nominal.loaded(3.0, (0.0, 0.0, 0.1)))
    assert np.abs(inverse(plant, q, zero, zero) - before).max() > 5.0
    plant.set_arm(nominal)
    assert inverse(plant, q, zero, zero) == pytest.approx(before, abs=1e-9)


def test_dry_friction_sticks_and_a_table_is_touched():
    """What the model of the controller does not have."""
    text = SEVEN.read_text().replace('friction="0"', 'friction="2"')
    arm = SpatialArm.from_urdf(text, gravity=(0.0, 0.0, 0.0))
    plant = MujocoPlant(text, arm, arm, **WIDE)
    plant.step(np.full(7, 1.5), 1.0)
    assert np.abs(plant.q).max() < 1e-3  # less than what sticks
    tip = '<link name="seven_tool">'
    ball = '<collision><geometry><sphere radius="0.05"/></geometry></collision>'
    table = (
        '<link name="table"><collision><geometry><box size="0.4 0.4 0.4"/></geometry></collision>'
        '</link><joint name="stand" type="fixed"><parent link="seven_base"/><child link="table"/>'
        '<origin xyz="0.9 0 0.2"/></joint></robot>'
    )
    text = SEVEN.read_text().replace(tip, tip + ball).replace("</robot>", table)
    arm = SpatialArm.from_urdf(text, tip="seven_tool")
    plant = MujocoPlant(text, arm, arm, q=[0.0, 1.2, 0.0, 0.0, 0.0, 0.0, 0.0], **WIDE)
    for _ in range(50):  # it falls onto the table, and slides
        plant.step(-plant.qdot * 50.0 * plant.arm.own_inertia, 0.02)
    assert arm.pose(plant.q)[2, 3] == pytest.approx(0.45, abs=0.01) and plant.data.ncon > 0


def test_what_mujoco_does_not_take_is_said():
    text = SEVEN.read_text()
    arm = SpatialArm.from_urdf(text)
    with pytest.raises(ArmError, match="MuJoCo does not take the arm"):
        MujocoPlant(text.replace('izz="0.000135"', 'izz="0.9"'), arm, arm)
    with pytest.raises(ArmError, match="spatial"):
        MujocoPlant(text, arm, arm).set_arm(None)


def test_joints_that_are_held_and_a_base_above_the_root_do_not_move_in_mujoco_either():
    text = SEVEN.read_text()
    options = {"base": "seven_link_2", "held": ["joint_5"], "gravity": (1.0, -2.0, 3.0)}
    arm = SpatialArm.from_urdf(text, **options)
    plant = MujocoPlant(text, arm, arm, **WIDE)
    assert plant.model.nv == arm.n == 4
    for q, v, a in np.random.default_rng(1).uniform(-2.0, 2.0, (5, 3, 4)):
        expected = arm.inverse_dynamics(q, v, a)
        assert inverse(plant, q, v, a) == pytest.approx(expected, abs=1e-9)
