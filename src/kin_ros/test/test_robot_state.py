"""Links in tf: where pinocchio puts them, for random trees of joints."""

from itertools import pairwise

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from hypothesis import given, settings
from hypothesis import strategies as st
from sensor_msgs.msg import JointState

from kin_core.errors import InvalidInput
from kin_core.urdf import load_urdf
from kin_ros.frames import FrameBuffer
from kin_ros.robot_state import LinkTransforms

KINDS = ("revolute", "continuous", "prismatic", "fixed")


def random_robot(seed, count):
    """A tree of links with random joints, some of which mimic an earlier one."""
    rng = np.random.default_rng(seed)
    lines = ['<robot name="r">', *(f'<link name="l{k}"/>' for k in range(count))]
    leaders = []
    for k in range(1, count):
        kind = KINDS[rng.integers(len(KINDS))]
        xyz, rpy, axis = rng.uniform(-1, 1, 3), rng.uniform(-3, 3, 3), rng.normal(size=3)
        mimic = ""
        if kind != "fixed":
            if leaders and rng.random() < 0.3:
                mimic = (
                    f'<mimic joint="{leaders[rng.integers(len(leaders))]}"'
                    f' multiplier="{rng.uniform(-2, 2)}" offset="{rng.uniform(-1, 1)}"/>'
                )
            else:
                leaders.append(f"j{k}")
        lines.append(
            f'<joint name="j{k}" type="{kind}"><parent link="l{rng.integers(k)}"/>'
            f'<child link="l{k}"/><origin xyz="{" ".join(map(str, xyz))}"'
            f' rpy="{" ".join(map(str, rpy))}"/><axis xyz="{" ".join(map(str, axis))}"/>'
            f'<limit lower="-9" upper="9" effort="1" velocity="1"/>{mimic}</joint>'
        )
    return "".join([*lines, "</robot>"]), leaders


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(2, 10))
def test_every_link_is_where_pinocchio_puts_it(seed, count):
    import pinocchio

    text, leaders = random_robot(seed, count)
    q = dict(zip(leaders, np.random.default_rng(seed).uniform(-3, 3, len(leaders)), strict=True))
    urdf = load_urdf(text)
    links = LinkTransforms(urdf, "robot1/")
    names = [*reversed(leaders), "of another robot"]
    state = JointState(name=names, position=[*(q[n] for n in reversed(leaders)), 7.0])
    assert links.take(state) == bool(leaders)
    buffer = FrameBuffer()
    for stamped in links.fixed:
        buffer.put(stamped, static=True)
    for stamped in links.messages(Time(sec=3)):
        buffer.put(stamped)

    model = pinocchio.buildModelFromXML(text)
    data = model.createData()
    configuration = pinocchio.neutral(model)
    for name, joint in urdf.joints.items():
        if not joint.moves:
            continue
        value = q.get(name)
        if joint.mimic is not None:
            value = joint.mimic.multiplier * q[joint.mimic.joint] + joint.mimic.offset
        place = model.joints[model.getJointId(name)]
        wide = place.nq == 2  # pinocchio's continuous joints
        configuration[place.idx_q : place.idx_q + place.nq] = (
            [np.cos(value), np.sin(value)] if wide else [value]
        )
    pinocchio.framesForwardKinematics(model, data, configuration)
    for k in range(count):
        expected = data.oMf[model.getFrameId(f"l{k}")].homogeneous
        found = buffer.lookup("robot1/l0", f"robot1/l{k}") if k else np.eye(4)
        np.testing.assert_allclose(found, expected, atol=1e-12)


CHAIN = """<robot name="c"><link name="a"/><link name="b"/><link name="c"/><link name="d"/>
<joint name="ab" type="continuous"><parent link="a"/><child link="b"/></joint>
<joint name="bc" type="prismatic"><parent link="b"/><child link="c"/>
  <limit lower="0" upper="1" effort="1" velocity="1"/></joint>
<joint name="cd" type="floating"><parent link="c"/><child link="d"/></joint></robot>"""


def children(links, stamp=None):
    return [m.child_frame_id for m in links.messages(stamp or Time())]


def test_only_what_is_known_is_told():
    links = LinkTransforms(load_urdf(CHAIN))
    assert children(links) == []
    assert links.take(JointState(name=["bc"], position=[0.5]))
    assert children(links) == ["c"]
    assert not links.take(JointState(name=["x"], position=[0.5]))
    assert not links.take(JointState(name=["ab"], velocity=[0.5]))
    assert links.take(JointState(name=["ab"], position=[0.1]))
    assert children(links) == ["b", "c"]  # and d is left to whoever knows it


def test_home_until_joint_states_come():
    links = LinkTransforms(load_urdf(CHAIN), home={"bc": 0.25})
    assert [m.transform.translation.x for m in links.messages(Time())] == [0.25]
    links.take(JointState(name=["bc"], position=[0.75]))
    assert [m.transform.translation.x for m in links.messages(Time())] == [0.75]
    for wrong, sentence in (({"zz": 1.0}, "no such joint"), ({"cd": 1.0}, "no such joint")):
        with pytest.raises(InvalidInput, match=sentence):
            LinkTransforms(load_urdf(CHAIN), home=wrong)


@pytest.mark.parametrize(
    ("names", "positions", "sentence"),
    [(["ab"], [1.0, 2.0], "one for each"), (["ab"], [float("nan")], "finite")],
)
def test_wrong_joint_states_change_nothing(names, positions, sentence):
    links = LinkTransforms(load_urdf(CHAIN), home={"ab": 0.5})
    with pytest.raises(InvalidInput, match=sentence):
        links.take(JointState(name=names, position=positions))
    assert links.positions[0] == 0.5


def test_a_joint_that_mimics_itself_is_refused():
    text = CHAIN.replace(
        '<child link="b"/></joint>', '<child link="b"/><mimic joint="ab"/></joint>'
    )
    with pytest.raises(InvalidInput, match="mimics itself"):
        LinkTransforms(load_urdf(text))


def test_many_lists_of_names_are_not_all_remembered():
    links = LinkTransforms(load_urdf(CHAIN))
    for first, second in pairwise(range(200)):
        links.take(JointState(name=["ab", f"x{first}"], position=[float(second), 0.0]))
    assert links.positions[0] == 199.0
    assert links.places.cache_info().currsize <= 16
