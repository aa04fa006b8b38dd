"""Mechanisms from tables, YAML and URDF, and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.baselines.cuik_completeness import planted_loop
from kin_core.errors import InvalidInput, LimitExceeded
from kin_core.rotations import exp_so3
from kin_core.urdf import load_closures, load_urdf
from kin_solvers import (
    Constant,
    Loop,
    Mechanism,
    MechanismError,
    Motion,
    SizeError,
    Variable,
    arm_from_dh,
    arm_from_urdf,
    library,
    load_mechanism,
    loops_from_urdf,
)
from kin_solvers.equations import Equations
from kin_solvers.mechanism import rotation, translation
from kin_solvers.system import System

FOUR_BAR = """
name: four_bar
angles: degrees
variables:
  a: {type: rotation}
  b: {range: [-180, 180]}
  c: {}
  d:
loops:
  - chain:
      - rotate_z: a
      - translate_x: 1.0
      - rotate_z: b
      - translate_x: 2.0
      - rotate_z: c
      - transform: {xyz: [2.5, 0, 0]}
      - rotate_z: d
      - translate_x: 2.2
"""


def test_yaml_gives_the_library_mechanism():
    mine = load_mechanism(FOUR_BAR)
    theirs = library.get("planar_four_bar")
    q = np.array([0.3, -0.2, 0.5, 1.0])
    np.testing.assert_allclose(mine.product(0, q), theirs.product(0, q), atol=1e-15)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (("rotate_z: b", "rotate_z: z"), "loops[0].chain[2]"),
        (("rotate_z: b", "rotat_z: b"), "loops[0].chain[2]"),
        (("rotate_z: b", "translate_z: b"), "loops[0].chain[2]"),
        (("[-180, 180]", "[180, 180]"), "variables.b.range"),
        (("[-180, 180]", "[.nan, 180]"), "variables.b.range"),
        (("[-180, 180]", "[1]"), "variables.b.range"),
        (("type: rotation", "type: screw"), "variables.a.type"),
        (("translate_x: 1.0", "translate_x: .inf"), "loops[0].chain[1]"),
        (("name: four_bar", "nam: four_bar"), "nam"),
        (("loops:", "loop:"), "loop"),
        (("xyz: [2.5, 0, 0]", "quaternion: [1, 1, 0, 0]"), "transform.quaternion"),
    ],
)
def test_yaml_errors_name_file_and_field(change, field):
    with pytest.raises(MechanismError) as caught:
        load_mechanism(FOUR_BAR.replace(*change), name="my.yaml")
    assert str(caught.value).startswith("my.yaml")
    assert field in str(caught.value)


def test_unused_and_disconnected_are_refused():
    turn = [Motion(0), Constant(translation(0, 1.0)), Motion(1)]
    with pytest.raises(MechanismError, match="appear in no loop"):
        Mechanism("m", tuple(Variable(n) for n in "abc"), (Loop(tuple(turn)),))
    other = Loop((Motion(2), Constant(translation(0, 1.0)), Motion(3)))
    with pytest.raises(MechanismError, match="share no variable"):
        Mechanism("m", tuple(Variable(n) for n in "abcd"), (Loop(tuple(turn)), other))


def test_sizes_are_bounded():
    long = Loop(tuple(Motion(k) for k in range(15)))
    with pytest.raises(SizeError):
        Mechanism("m", tuple(Variable(f"v{k}") for k in range(15)), (long,))
    assert issubclass(SizeError, LimitExceeded)
    assert issubclass(MechanismError, InvalidInput)


def test_a_sheared_constant_is_refused():
    bad = np.eye(4)
    bad[0, 1] = 0.5
    with pytest.raises(MechanismError, match="no rotation"):
        loop = Loop((Motion(0), Constant(bad), Motion(1)))
        Mechanism("m", (Variable("a"), Variable("b")), (loop,))


def _lengths(mechanism):
    """Sum of all lengths and largest travels [m], before anything cancels."""
    travels = sum(
        max(abs(v.lower), abs(v.upper)) for v in mechanism.variables if v.kind == "translation"
    )
    return travels + sum(
        float(np.linalg.norm(f.matrix[:3, 3]))
        for loop in mechanism.loops
        for f in loop.factors
        if isinstance(f, Constant)
    )


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), joints=st.integers(2, 8), point=st.booleans())
@example(seed=2904, joints=2, point=False)  # its lengths cancel: what is left is all rounding
def test_normal_form_is_the_mechanism(seed, joints, point):
    """The residual in normal form vanishes where the product closes, and only there.

    Up to what the constants leave unknown: lengths that nearly cancel are scaled up with it.
    """
    rng = np.random.default_rng(seed)
    mechanism, q = planted_loop(rng, max(joints, 2), point=point)
    system = System.of(mechanism)
    equations = Equations(system)
    assert equations.closes(equations(q * system.unit)[0], 1e-12)
    assert equations.unknown <= 1e-13 + 1e-13 * _lengths(mechanism) * system.length
    away = q + rng.normal(size=len(q)) * 0.3
    assert (np.abs(equations(away * system.unit)[0]).max() < 1e-6) == (
        mechanism.residual(away) * system.length < 1e-5
    )


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), joints=st.integers(2, 7), point=st.booleans())
def test_jacobian_against_differences(seed, joints, point):
    rng = np.random.default_rng(seed)
    mechanism, q = planted_loop(rng, joints, point=point)
    system = System.of(mechanism)
    equations = Equations(system)
    q = q * system.unit + 0.1
    numeric = np.stack(
        [(equations(q + 1e-6 * e)[0] - equations(q - 1e-6 * e)[0]) / 2e-6 for e in np.eye(len(q))],
        axis=1,
    )
    np.testing.assert_allclose(equations(q)[1], numeric, atol=1e-6)


URDF = """
<robot name="two_r">
  <link name="base"/><link name="l1"/><link name="l2"/><link name="tip"/>
  <joint name="j1" type="revolute"><parent link="base"/><child link="l1"/>
    <origin xyz="0 0 0.2"/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
  <joint name="j2" type="continuous"><parent link="l1"/><child link="l2"/>
    <origin xyz="1 0 0"/><axis xyz="0 0 -1"/></joint>
  <joint name="j3" type="fixed"><parent link="l2"/><child link="tip"/>
    <origin xyz="0.8 0 0"/></joint>
</robot>
"""


def test_arm_from_urdf_closes_at_its_forward_kinematics():
    q = np.array([0.4, -0.9])
    pose = (
        translation(2, 0.2)
        @ rotation(2, q[0])
        @ translation(0, 1.0)
        @ rotation(2, -q[1])
        @ translation(0, 0.8)
    )
    arm = arm_from_urdf(load_urdf(URDF), pose)
    assert arm.names == ("j1", "j2")
    assert arm.residual(q) < 1e-14
    assert arm.variables[0].lower == -3.0
    assert arm.variables[1].cyclic
    with pytest.raises(MechanismError, match="nowhere"):
        arm_from_urdf(load_urdf(URDF), pose, tip="nowhere")


MIMIC = """
<robot name="fingers">
  <link name="base"/><link name="l1"/><link name="l2"/><link name="l3"/>
  <joint name="j1" type="revolute"><parent link="base"/><child link="l1"/>
    <axis xyz="0 0 1"/><limit lower="-2" upper="2" effort="1" velocity="1"/></joint>
  <joint name="j2" type="revolute"><parent link="l1"/><child link="l2"/><origin xyz="1 0 0"/>
    <axis xyz="0 0.6 0.8"/><limit lower="-1" upper="1" effort="1" velocity="1"/>
    <mimic joint="j1" multiplier="-2" offset="0.3"/></joint>
  <joint name="j3" type="continuous"><parent link="l2"/><child link="l3"/>
    <origin xyz="0.8 0 0"/><axis xyz="0 0 1"/></joint>
</robot>
"""


def test_a_joint_that_mimics_another():
    q = 0.4
    axis = np.array([0.0, 0.6, 0.8])
    turn = np.eye(4)
    turn[:3, :3] = exp_so3(axis * (-2.0 * q + 0.3))
    pose = rotation(2, q) @ translation(0, 1.0) @ turn @ translation(0, 0.8) @ rotation(2, -1.1)
    arm = arm_from_urdf(load_urdf(MIMIC), pose)
    assert arm.names == ("j1", "j3")
    assert arm.residual([q, -1.1]) < 1e-14
    # j2 = 0.3 - 2 j1 stays within [-1, 1]
    assert arm.variables[0].lower == pytest.approx(-0.35)
    assert arm.variables[0].upper == pytest.approx(0.65)
    with pytest.raises(MechanismError, match=r"multiplier 0\.5"):
        arm_from_urdf(load_urdf(MIMIC.replace('"-2"', '"0.5"')), pose)
    with pytest.raises(MechanismError, match="itself"):
        arm_from_urdf(load_urdf(MIMIC.replace('mimic joint="j1"', 'mimic joint="j2"')), pose)


CLOSED = """
<robot name="four_bar">
  <link name="ground"/><link name="crank"/><link name="coupler"/><link name="rocker"/>
  <joint name="a" type="continuous"><parent link="ground"/><child link="crank"/>
    <axis xyz="0 0 1"/></joint>
  <joint name="b" type="continuous"><parent link="crank"/><child link="coupler"/>
    <origin xyz="1 0 0"/><axis xyz="0 0 1"/></joint>
  <joint name="d" type="continuous"><parent link="ground"/><child link="rocker"/>
    <origin xyz="2.2 0 0"/><axis xyz="0 0 1"/></joint>
</robot>
"""


@pytest.mark.parametrize("kind", ["revolute", "spherical"])
def test_closed_loops_from_a_sidecar(kind):
    sidecar = f"""
closures:
  - name: c
    type: {kind}
    link_a: coupler
    origin_a: {{xyz: [2.0, 0, 0]}}
    link_b: rocker
    origin_b: {{xyz: [2.5, 0, 0]}}
    axis: [0, 0, 1]
"""
    mechanism = loops_from_urdf(load_urdf(CLOSED), load_closures(sidecar))
    # elementary geometry: crank at 90 degrees, circle of the coupler meets that of the rocker
    a = math.pi / 2
    p, o = np.array([0.0, 1.0]), np.array([2.2, 0.0])
    d = o - p
    r = np.linalg.norm(d)
    x = (r**2 + 2.0**2 - 2.5**2) / (2 * r)
    h = math.sqrt(2.0**2 - x**2)
    meet = p + x * d / r + h * np.array([-d[1], d[0]]) / r
    b = math.atan2(*(meet - p)[::-1]) - a
    rocker = math.atan2(*(meet - o)[::-1])
    q = {"a": a, "b": b, "d": rocker, "c": rocker - a - b}
    assert mechanism.residual([q[n] for n in mechanism.names]) < 1e-12


def test_prismatic_rows_of_a_table():
    arm = arm_from_dh("pr", [0.0, 0.5], [0.0, 0.0], [0.0, 0.0], prismatic=(0,), q=[0.3, 0.7])
    assert [v.kind for v in arm.variables] == ["translation", "rotation"]
    assert arm.residual([0.3, 0.7]) < 1e-15


def test_library_is_complete_and_consistent():
    wanted = (
        "bennett planar_four_bar spherical_four_bar manseur_doty puma560 ur5 iiwa7 three_rpr "
        "bricard double_butterfly stewart dietmaier"
    )
    assert set(wanted.split()) <= set(library.NAMES)
    for name in library.NAMES:
        assert library.get(name).name == name
    with pytest.raises(MechanismError, match="did you mean 'bennett'"):
        library.get("benet")
