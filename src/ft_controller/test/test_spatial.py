"""Dynamics of spatial arms: laws, pinocchio, and the bits of a row."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ft_controller import ArmError, Plant, SpatialArm, TooLarge, dynamics
from ft_controller.spatial import CREEP
from kin_testing.urdf_arms import random_urdf

pin = pytest.importorskip("pinocchio")

ROBOTS = Path(__file__).resolve().parents[3] / "launch" / "robots"
G = (0.7, -1.1, -9.7)


def read(text, **options):
    """An arm between the links base and tip or tool."""
    return SpatialArm.from_urdf(text, tip="tip" if '"tip"' in text else "", **options)


arms = st.builds(
    lambda seed, n: read(random_urdf(seed, n), gravity=G),
    st.integers(0, 10_000),
    st.integers(1, 16),
)


def pinocchio(text, gravity):
    model = pin.buildModelFromXML(text)
    model.gravity.linear = np.array(gravity)
    return model, model.createData()


def frictionless(text, gravity=G):
    return read(text, gravity=gravity, damping=0.0, friction=0.0)


def states(arm, count, seed=1):
    random = np.random.default_rng(seed)
    return random.uniform(-3.0, 3.0, (count, 3, arm.n))


@pytest.mark.parametrize("source", ["six", "seven", "random"])
def test_torques_agree_with_pinocchio(source):
    text = random_urdf(5, 7) if source == "random" else (ROBOTS / f"{source}.urdf").read_text()
    text = text.replace("continuous", "revolute")  # pinocchio has two numbers for a continuous one
    arm = frictionless(text)
    model, data = pinocchio(text, G)
    for q, v, a in states(arm, 3000):
        ours = dynamics.computed_torque(arm.links, dynamics.joints(q, v, q, v, a))
        theirs = pin.rnea(model, data, q, v, a)
        size = np.abs(theirs).max()
        if source == "random":  # all sizes may cancel there; what is summed is the measure
            inertia, bias = dynamics.inertia_and_bias(arm.links, q, v)
            size = (np.abs(inertia) @ np.abs(a) + np.abs(bias)).max()
        assert np.abs(ours - theirs).max() <= 1e-14 * size


@settings(max_examples=40)
@given(arm=arms, seed=st.integers(0, 1000))
def test_inertia_is_symmetric_and_positive_definite(arm, seed):
    for q, v, _ in states(arm, 3, seed):
        inertia = arm.inertia_matrix(q)
        assert (inertia == inertia.T).all()
        assert v @ inertia @ v > 0.0 and np.linalg.eigvalsh(inertia)[0] > 0.0


@settings(max_examples=40)
@given(arm=arms, seed=st.integers(0, 1000))
def test_gravity_is_the_gradient_of_the_potential_energy(arm, seed):
    q = states(arm, 1, seed)[0, 0]
    zero = np.zeros(arm.n)
    torque = arm.bias(q, zero)
    scale = max(1.0, np.abs(torque).max())
    for i, unit in enumerate(np.eye(arm.n)):
        h = 1e-5
        slope = (arm.energy(q + h * unit, zero) - arm.energy(q - h * unit, zero)) / (2.0 * h)
        assert slope == pytest.approx(torque[i], abs=1e-6 * scale)


@settings(max_examples=40)
@given(arm=arms, seed=st.integers(0, 1000))
def test_the_energy_changes_by_the_power_of_the_torques(arm, seed):
    """dE/dt = v . tau without friction, and friction takes energy: passivity."""
    q, v, a = states(arm, 1, seed)[0]
    free = SpatialArm(**{**vars(arm), "links": arm.links.copy()})
    free.links["friction"] = free.links["coulomb"] = 0.0
    h = 1e-6
    ahead, behind = (free.energy(q + s * h * v + 0.5 * h * h * a, v + s * h * a) for s in (1, -1))
    power = v @ free.inverse_dynamics(q, v, a)
    scale = np.abs(v) @ np.abs(free.inertia_matrix(q)) @ (np.abs(a) + np.abs(v))
    assert (ahead - behind) / (2.0 * h) == pytest.approx(power, abs=1e-5 * max(scale, 1.0))
    lost = v @ (arm.bias(q, v) - free.bias(q, v))
    expected = arm.links["friction"] @ v**2
    expected += arm.links["coulomb"] @ (v**2 / np.hypot(v, CREEP))
    assert lost == pytest.approx(expected, rel=1e-9, abs=1e-9 * scale) and lost >= 0.0


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 8))
def test_a_falling_arm_keeps_its_energy_and_friction_takes_it(seed, n):
    """Over a motion, not only in a moment: by the plant's own integration."""
    text = random_urdf(seed, n)
    start = np.random.default_rng(seed).uniform(-1.0, 1.0, (2, n))
    wide = {"q": start[0], "qdot": start[1], "lower": -1e6, "upper": 1e6}
    free, rubbing = Plant(frictionless(text), **wide), Plant(read(text, gravity=G), **wide)
    before = last = free.arm.energy(*start)
    scale = max(1.0, abs(before))
    for _ in range(30):
        free.step(np.zeros(n), 0.01)
        rubbing.step(np.zeros(n), 0.01)
        scale = max(scale, 0.5 * free.qdot @ free.arm.inertia_matrix(free.q) @ free.qdot)
        assert abs(free.arm.energy(free.q, free.qdot) - before) < 1e-5 * scale
        now = rubbing.arm.energy(rubbing.q, rubbing.qdot)
        assert now <= last + 1e-7 * scale
        last = now
    assert last < before


@settings(max_examples=20)
@given(arm=arms, seed=st.integers(0, 1000))
def test_a_row_has_the_same_bits_whoever_computes_it(arm, seed):
    q, v, _ = states(arm, 1, seed)[0]
    whole, bias = dynamics.inertia_and_bias(arm.links, q, v)
    work, row = dynamics.make_work(arm.links), np.empty(arm.n)
    for i in reversed(range(arm.n)):
        dynamics.outer_sums(arm.links, q, v, work)
        dynamics.add_friction(arm.links, v, work)
        dynamics.inertia_row(work, i, row)
        assert row.tobytes() == whole[i].tobytes() and work[i]["bias"] == bias[i]


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), n=st.integers(1, 7))
def test_a_payload_is_a_link_that_is_fixed_to_the_tip(seed, n):
    text = random_urdf(seed, n)
    random = np.random.default_rng(seed)
    mass, com = random.uniform(0.1, 3.0), random.uniform(-0.2, 0.2, 3)
    moment = random.uniform(0.01, 0.02)
    link = (
        f'<link name="load"><inertial><origin xyz="{com[0]} {com[1]} {com[2]}"/>'
        f'<mass value="{mass}"/><inertia ixx="{moment}" ixy="0" ixz="0" iyy="{moment}" iyz="0"'
        f' izz="{moment}"/></inertial></link><joint name="hook" type="fixed">'
        '<parent link="tip"/><child link="load"/></joint></robot>'
    )
    whole = read(text.replace("</robot>", link))
    loaded = read(text).loaded(mass, com, moment * np.eye(3))
    q, v, a = states(whole, 1, seed)[0]
    expected = whole.inverse_dynamics(q, v, a)
    assert loaded.inverse_dynamics(q, v, a) == pytest.approx(expected, rel=1e-10, abs=1e-10)
    assert loaded.loaded(0.0).links.tobytes() == loaded.links.tobytes()


def test_forward_dynamics_is_the_inverse_of_inverse_dynamics():
    arm = SpatialArm.from_urdf(ROBOTS / "seven.urdf")
    for q, v, a in states(arm, 50):
        assert arm.forward_dynamics(q, v, arm.inverse_dynamics(q, v, a)) == pytest.approx(a)


def test_poses_agree_with_pinocchio_and_the_last_point_is_the_tip():
    text = random_urdf(11, 6).replace("continuous", "revolute")
    arm = read(text)
    model, data = pinocchio(text, G)
    for q, _, _ in states(arm, 20):
        pin.framesForwardKinematics(model, data, q)
        theirs = data.oMf[model.getFrameId("tip")].homogeneous
        assert arm.pose(q) == pytest.approx(theirs, abs=1e-12)
        assert arm.points(q)[-1] == pytest.approx(theirs[:3, 3]) and len(arm.points(q)) == 7


def test_limits_and_names_are_those_of_the_file():
    arm = SpatialArm.from_urdf(ROBOTS / "six.urdf")
    assert arm.joints == tuple(f"joint_{k}" for k in range(1, 7)) and arm.n == 6
    assert arm.upper.tolist() == [3.0, 2.2, 2.6, 3.0, 2.1, 3.0]
    assert arm.speed[0] == 2.5 and arm.effort.tolist() == [330, 330, 150, 54, 54, 28]


def test_what_is_no_arm_is_refused():
    with pytest.raises(TooLarge, match="17"):
        read(random_urdf(1, 17))
    with pytest.raises(ArmError, match="gravity"):
        read(random_urdf(1, 2), gravity=(0.0, 0.0))
    with pytest.raises(ArmError, match="damping"):
        read(random_urdf(1, 2), damping=-1.0)
    with pytest.raises(ArmError, match="payload mass"):
        read(random_urdf(1, 2)).loaded(-1.0)
    with pytest.raises(ArmError, match="root element"):
        SpatialArm.from_urdf("<world/>")
