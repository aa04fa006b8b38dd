"""URDFs that are no arm: one sentence each, with the name of the link or the joint."""

import re
from pathlib import Path

import pytest

pytest.importorskip("rclpy")

from ft_controller import ArmError, SpatialArm
from ft_controller.parameters import FtParameters
from kin_core.errors import InvalidInput

SIX = (Path(__file__).resolve().parents[3] / "launch" / "robots" / "six.urdf").read_text()


def link(name, changed):
    """The file with one link changed."""
    return re.sub(
        rf'<link name="{name}">.*?</link>',
        lambda found: changed(found.group()),
        SIX,
        flags=re.DOTALL,
    )


def joint(name, old, new):
    """The file with one joint changed."""
    found = re.search(rf'<joint name="{name}".*?</joint>', SIX, flags=re.DOTALL).group()
    assert old in found
    return SIX.replace(found, found.replace(old, new))


def attribute(key, value):
    return lambda text: re.sub(rf'{key}="[^"]*"', f'{key}="{value}"', text)


def inertial(text):
    return re.sub(r"<inertial>.*?</inertial>", "", text, flags=re.DOTALL)


WRONG = {
    "no inertial": (link("six_link_3", inertial), "link 'six_link_3': has no mass.*'joint_3'"),
    "no mass": (
        link("six_link_3", lambda t: re.sub(r'(value|i[xyz]{2})="[^"]*"', r'\1="0"', t)),
        "link 'six_link_3': has no mass",
    ),
    "inertia without mass": (
        link("six_link_3", attribute("mass value", 0)),
        "link 'six_link_3': has an inertia but no mass",
    ),
    "negative mass": (
        link("six_link_2", attribute("mass value", -1)),
        "link 'six_link_2': has a negative mass",
    ),
    "NaN": (link("six_link_2", attribute("mass value", "nan")), "link 'six_link_2'.*finite"),
    "no number": (link("six_link_2", attribute("izz", "big")), "link 'six_link_2'.*number"),
    "not positive definite": (
        link("six_link_4", attribute("ixy", 5)),
        "link 'six_link_4'.*not positive definite",
    ),
    "triangle inequality": (
        link("six_link_4", attribute("izz", 3)),
        "link 'six_link_4'.*no body can have",
    ),
    "fixed link": (link("six_tool", attribute("iyy", 3)), "link 'six_tool'.*no body can have"),
    "mimic": (
        joint("joint_2", "</joint>", '<mimic joint="joint_1"/></joint>'),
        "joint 'joint_2': mimics 'joint_1'",
    ),
    "floating": (joint("joint_1", "revolute", "floating"), "joint 'joint_1': a floating joint"),
    "negative friction": (
        joint("joint_5", 'friction="0"', 'friction="-1"'),
        "joint 'joint_5': friction must not be negative",
    ),
    "negative effort": (
        joint("joint_5", "effort=", 'effort="-1" x='),
        "joint 'joint_5': effort must not be negative",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_urdf_is_refused_with_one_sentence_that_names_the_part(case, tmp_path):
    text, sentence = WRONG[case]
    assert text != SIX
    with pytest.raises(ArmError, match=sentence) as refused:
        SpatialArm.from_urdf(text)
    said = str(refused.value)
    assert "\n" not in said and len(said) < 200
    # The node says the same, as its parameter robot.
    (tmp_path / "wrong.urdf").write_text(text)
    with pytest.raises(InvalidInput, match=f"robot: .*{sentence}"):
        FtParameters(robot=str(tmp_path / "wrong.urdf")).check()


def test_a_file_a_name_and_the_planar_arm_are_told_apart(tmp_path):
    (tmp_path / "mine.urdf").write_text(SIX)
    for named in ({"robot": str(tmp_path / "mine.urdf")}, {"robot": "mine"}):
        parameters = FtParameters(robots_folder=str(tmp_path), **named)
        parameters.check()
        assert parameters.names == tuple(f"joint_{k}" for k in range(1, 7))
        assert parameters.base_frame == "six_base"
    mine = FtParameters(robot="mine", robots_folder=str(tmp_path), frame="r1/arm_base")
    assert mine.base_frame == "r1/six_base"
    assert FtParameters(frame="r1/arm_base").base_frame == "r1/arm_base"
    with pytest.raises(InvalidInput, match="robot"):
        FtParameters(robot="nobody", robots_folder=str(tmp_path)).check()
