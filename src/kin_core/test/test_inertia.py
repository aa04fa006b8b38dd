"""Inertias of a URDF against clouds of points, and URDFs that are wrong."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kin_core.errors import InvalidInput
from kin_core.inertia import Inertia, moving_bodies
from kin_core.rotations import exp_so3, transform
from kin_core.urdf import load_urdf

SOLID = '<inertial><mass value="2"/><inertia ixx="1" ixy="0" ixz="0" iyy="2" iyz="0" izz="2"/></inertial>'  # noqa: E501
ARM = """<robot name="arm">
  <link name="base"/>
  <link name="upper">{upper}</link>
  <link name="fore">{fore}</link>
  <link name="hand">{hand}</link>
  <joint name="shoulder" type="{shoulder}">
    <parent link="base"/><child link="upper"/><origin xyz="0 0 0.5"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="2" effort="{effort}" velocity="3"/>{dynamics}
  </joint>
  <joint name="elbow" type="revolute">
    <parent link="upper"/><child link="fore"/><origin xyz="0.4 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" effort="7" velocity="3"/>{mimic}
  </joint>
  <joint name="flange" type="{flange}">
    <parent link="fore"/><child link="hand"/><origin xyz="0.3 0 0"/><axis xyz="1 0 0"/>
    <limit lower="0" upper="0.1" effort="7" velocity="3"/>
  </joint>
  {more}
</robot>"""
GOOD = {
    "upper": SOLID,
    "fore": SOLID,
    "hand": "",
    "shoulder": "revolute",
    "effort": "5",
    "dynamics": '<dynamics damping="0.2" friction="0.3"/>',
    "mimic": "",
    "flange": "fixed",
    "more": "",
}


def arm(**changes):
    return load_urdf(ARM.format(**{**GOOD, **changes}))


def solid(mass="2", ixx="1", iyy="2", izz="2", ixy="0"):
    return (
        f'<inertial><mass value="{mass}"/><inertia ixx="{ixx}" ixy="{ixy}" ixz="0" iyy="{iyy}"'
        f' iyz="0" izz="{izz}"/></inertial>'
    )


def test_a_good_arm():
    bodies, tip = moving_bodies(arm(hand=solid(mass="0", ixx="0", iyy="0", izz="0")))
    assert [body.joint.name for body in bodies] == ["shoulder", "elbow"]
    assert (bodies[0].wear.damping, bodies[0].wear.friction, bodies[0].wear.effort) == (0.2, 0.3, 5)
    assert bodies[1].wear.damping == 0.0
    assert bodies[0].placement[:3, 3].tolist() == [0.0, 0.0, 0.5]
    assert tip[:3, 3].tolist() == [0.3, 0.0, 0.0]
    assert bodies[1].inertia.mass == 2.0 and (bodies[1].inertia.com == 0.0).all()
    assert moving_bodies(arm(effort="0"))[0][0].wear.effort == math.inf


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({"upper": ""}, "link 'upper': has no mass, but the joint 'shoulder' moves it"),
        ({"fore": solid("0", "0", "0", "0")}, "link 'fore': has no mass"),
        ({"upper": solid(mass="0")}, "link 'upper': has an inertia but no mass"),
        ({"upper": solid(mass="-1")}, "link 'upper': has a negative mass"),
        ({"upper": solid(mass="nan")}, "link 'upper'.*finite"),
        ({"upper": solid(mass="heavy")}, "link 'upper'.*number"),
        ({"upper": '<inertial><mass value="1"/></inertial>'}, "link 'upper': <inertia>"),
        ({"upper": solid(ixx="-1")}, "link 'upper'.*not positive definite"),
        ({"upper": solid(ixx="0")}, "link 'upper'.*not positive definite"),
        ({"upper": solid(ixy="5")}, "link 'upper'.*not positive definite"),
        ({"hand": solid(izz="9")}, "link 'hand'.*no body can have: the principal moment 9"),
        ({"mimic": '<mimic joint="shoulder"/>'}, "joint 'elbow': mimics 'shoulder'"),
        ({"shoulder": "floating"}, "joint 'shoulder': a floating joint"),
        ({"shoulder": "planar"}, "joint 'shoulder': a planar joint"),
        ({"dynamics": '<dynamics damping="-1"/>'}, "joint 'shoulder': damping must not be"),
        ({"dynamics": '<dynamics friction="much"/>'}, "joint 'shoulder': friction.*number"),
        ({"effort": "-5"}, "joint 'shoulder': effort must not be negative"),
        (
            {
                "more": '<link name="finger"/><joint name="grip" type="continuous">'
                '<parent link="hand"/><child link="finger"/></joint>'
                '<link name="eye"/><joint name="mount" type="fixed">'
                '<parent link="hand"/><child link="eye"/></joint>'
            },
            "tip: must be named, there are several: finger, eye",
        ),
    ],
)
def test_what_is_wrong_is_said_with_the_name_of_the_link_or_the_joint(changes, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        moving_bodies(arm(**changes))


def test_a_gripper_is_held_or_refused():
    gripper = arm(flange="prismatic", hand=SOLID)
    assert len(moving_bodies(gripper)[0]) == 3
    with pytest.raises(InvalidInput, match="joint 'flange': moves beside the arm, at 'fore'"):
        moving_bodies(gripper, tip="fore")
    bodies, tip = moving_bodies(gripper, held=["flange"])
    assert len(bodies) == 2 and bodies[1].inertia.mass == 4.0
    assert bodies[1].inertia.com == pytest.approx([0.15, 0.0, 0.0]) and tip[0, 3] == 0.3
    with pytest.raises(InvalidInput, match=r"held.*flange"):
        moving_bodies(gripper, held=["flang"])
    with pytest.raises(InvalidInput, match="no joint moves"):
        moving_bodies(gripper, base="fore", tip="hand", held=["flange"])


def cloud(seed):
    """Points, and the body that they are."""
    random = np.random.default_rng(seed)
    return random.uniform(0.1, 2.0, 6), random.uniform(-1.0, 1.0, (6, 3))


def body(masses, points):
    com = masses @ points / masses.sum()
    off = points - com
    tensor = sum(m * (d @ d * np.eye(3) - np.outer(d, d)) for m, d in zip(masses, off, strict=True))
    return Inertia(float(masses.sum()), com, tensor)


def alike(one, other):
    return (
        one.mass == pytest.approx(other.mass)
        and one.com == pytest.approx(other.com, abs=1e-12)
        and one.tensor == pytest.approx(other.tensor, abs=1e-12)
    )


@given(seed=st.integers(0, 2**32 - 1))
def test_bodies_move_and_join_as_their_points_do(seed):
    random = np.random.default_rng(seed + 1)
    (m, a), (k, b) = cloud(seed), cloud(seed + 2)
    pose = transform(exp_so3(random.uniform(-3, 3, 3)), random.uniform(-2, 2, 3))
    one, other = body(m, a), body(k, b)
    assert alike(one.placed(pose), body(m, a @ pose[:3, :3].T + pose[:3, 3]))
    assert alike(one + other, body(np.append(m, k), np.vstack([a, b])))
    assert alike(one + other, other + one)
    assert alike(one + Inertia.none(), one) and alike(Inertia.none() + one, one)
