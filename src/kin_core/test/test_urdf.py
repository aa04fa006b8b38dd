"""URDF and closure reading: against hand-made trees, and refusals."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kin_core.errors import InvalidInput
from kin_core.urdf import load_closures, load_urdf

ARM = """<?xml version="1.0"?>
<robot name="arm">
  <link name="base"/><link name="upper"/><link name="fore"/><link name="hand"/>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="upper"/>
    <origin xyz="0 0 0.3" rpy="0 0 1.5707963267948966"/>
    <axis xyz="0 0 2"/><limit lower="-1" upper="2" effort="1" velocity="3"/>
  </joint>
  <joint name="elbow" type="continuous">
    <parent link="upper"/><child link="fore"/><origin xyz="1 0 0"/><axis xyz="0 1 0"/>
    <mimic joint="shoulder" multiplier="-2" offset="0.1"/>
  </joint>
  <joint name="wrist" type="fixed"><parent link="fore"/><child link="hand"/></joint>
</robot>"""


def test_a_good_arm():
    urdf = load_urdf(ARM)
    assert (urdf.name, urdf.root) == ("arm", "base")
    shoulder = urdf.joints["shoulder"]
    np.testing.assert_array_equal(shoulder.axis, [0, 0, 1])
    assert (shoulder.lower, shoulder.upper, shoulder.velocity) == (-1, 2, 3)
    np.testing.assert_allclose(shoulder.origin @ [1, 0, 0, 1], [0, 1, 0.3, 1], atol=1e-15)
    assert urdf.joints["elbow"].mimic.multiplier == -2
    assert urdf.joints["elbow"].upper == math.inf
    assert [j.name for j in urdf.chain("base", "hand")] == ["shoulder", "elbow", "wrist"]
    assert [j.name for j in urdf.chain("upper", "fore")] == ["elbow"]
    assert urdf.leaves() == ["hand"]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('type="fixed"', 'type="welded"', "'welded' is not known"),
        ('<parent link="fore"/>', '<parent link="for"/>', "the parent link 'for' does not exist"),
        ('lower="-1"', 'lower="3"', "lower limit 3 is above"),
        ('xyz="0 0 2"', 'xyz="0 0 0"', "axis: must not be zero"),
        ('xyz="0 0 2"', 'xyz="0 0"', "must be 3 numbers"),
        ('xyz="1 0 0"', 'xyz="nan 0 0"', "must be finite"),
        ('<child link="hand"/>', '<child link="upper"/>', "already the child of 'shoulder'"),
        ('<child link="hand"/>', '<child link="fore"/>', "joins the link 'fore' to itself"),
        ('<link name="hand"/>', '<link name="base"/>', "'base' is used twice"),
        ("<robot", "<robots", "line"),
        ('mimic joint="shoulder"', 'mimic joint="hip"', "mimics the unknown joint 'hip'"),
        ('<link name="hand"/>', '<link name="hand"/><link name="free"/>', "several root links"),
    ],
)
def test_bad_descriptions_are_refused_with_a_sentence(old, new, sentence):
    assert old in ARM
    with pytest.raises(InvalidInput) as refusal:
        load_urdf(ARM.replace(old, new), name="arm.urdf")
    assert sentence in str(refusal.value)
    assert "arm.urdf" in str(refusal.value)


@pytest.mark.parametrize("old", ['name="base"', 'name="shoulder"', "<robot name="])
def test_names_are_bounded(old):
    long = "n" * 1_000_000
    if old == "<robot name=":
        text = ARM.replace(ARM[ARM.index("<robot") : ARM.index(">", ARM.index("<robot")) + 1],
                           f'<robot name="{long}">')  # fmt: skip
    else:
        text = ARM.replace(old, f'name="{long}"', 1)
    with pytest.raises(InvalidInput, match="1000000 characters; at most 1000 are taken"):
        load_urdf(text)
    closures = f"closures: [{{name: {long}, type: fixed, link_a: a, link_b: b}}]"
    with pytest.raises(InvalidInput, match="1000000 characters"):
        load_closures(closures)


@pytest.mark.parametrize("field", ["name", "type", "link_a", "link_b"])
@pytest.mark.parametrize("value", ["null", "[a]", "{}", "1", "''"])
def test_names_of_closures_are_texts(field, value):
    entry = {"name": "n", "type": "fixed", "link_a": "a", "link_b": "b"} | {field: value}
    text = ", ".join(f"{key}: {word}" for key, word in entry.items())
    with pytest.raises(InvalidInput, match=rf"closures\[0\]\.{field}: "):
        load_closures(f"closures: [{{{text}}}]")


def test_errors_are_short_whatever_is_wrong():
    for old, new in (
        ('xyz="0 0 2"', f'xyz="{"x" * 100_000}"'),
        ('type="fixed"', f'type="{"f" * 9999}"'),
    ):
        with pytest.raises(InvalidInput) as refusal:
            load_urdf(ARM.replace(old, new))
        assert len(str(refusal.value)) < 600


def test_cycles_and_bombs_are_refused():
    cycle = """<robot name="c"><link name="r"/><link name="a"/><link name="b"/>
      <joint name="x" type="fixed"><parent link="a"/><child link="b"/></joint>
      <joint name="y" type="fixed"><parent link="b"/><child link="a"/></joint></robot>"""
    with pytest.raises(InvalidInput, match="cycle"):
        load_urdf(cycle)
    bomb = '<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><robot name="&b;"/>'
    with pytest.raises(InvalidInput, match="refused"):
        load_urdf(bomb)
    with pytest.raises(InvalidInput, match="larger"):
        load_urdf("<robot>" + " " * (17 * 1024 * 1024))


def test_chain_refuses_the_wrong_direction():
    with pytest.raises(InvalidInput, match="not above"):
        load_urdf(ARM).chain("hand", "base")
    with pytest.raises(InvalidInput, match="did you mean 'hand'"):
        load_urdf(ARM).chain("base", "hnad")


CLOSURES = """
closures:
  - {name: loop, type: revolute, link_a: hand, link_b: base, axis: [0, 2, 0],
     origin_a: {xyz: [1, 2, 3], rpy: [0, 0, 3.141592653589793]}, weight: 2}
"""


def test_closures():
    (closure,) = load_closures(CLOSURES)
    assert (closure.name, closure.type, closure.link_a) == ("loop", "revolute", "hand")
    np.testing.assert_array_equal(closure.axis, [0, 1, 0])
    np.testing.assert_allclose(closure.origin_a @ [1, 0, 0, 1], [0, 2, 3, 1], atol=1e-15)
    np.testing.assert_array_equal(closure.origin_b, np.eye(4))
    assert closure.options == {"weight": 2}


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("link_b: base, ", "", "closures[0]: lacks the key 'link_b'"),
        ("xyz: [1, 2, 3]", "xyz: [1, 2]", "closures[0].origin_a.xyz: must have the shape (3)"),
        ("rpy:", "rpv:", "unknown key 'rpv'"),
        ("axis: [0, 2, 0]", "axis: [0, .nan, 0]", "axis: must be finite"),
        ("closures:", "closure:", "must hold a list 'closures'"),
    ],
)
def test_bad_closures(old, new, sentence):
    with pytest.raises(InvalidInput) as refusal:
        load_closures(CLOSURES.replace(old, new), name="c.yaml")
    assert sentence in str(refusal.value)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text):
    for load in (load_urdf, load_closures):
        try:
            load(text)
        except InvalidInput as refusal:
            assert str(refusal)


@pytest.mark.parametrize(
    "text",
    [
        f'<robot name="{"x" * 10**6}"><link name="a"/></robot>',
        f'<robot name="r"><link name="{"x" * 10**6}"/></robot>',
        f'<robot name="r"><link name="a"><visual name="{"x" * 1001}"/></link></robot>',
    ],
    ids=["robot", "link", "deeper"],
)
def test_endless_names_are_refused(text):
    with pytest.raises(InvalidInput, match="name has 100") as refusal:
        load_urdf(text)
    assert len(str(refusal.value)) < 300
