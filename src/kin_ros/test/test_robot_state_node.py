"""The node that shows robots: latched descriptions, one root, links that follow joint states."""

import re
import time

import pytest
import yaml
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage

from kin_ros.frames import FrameError, Frames
from kin_ros.node import KinNode
from kin_ros.parameters import ParameterSet
from kin_ros.qos import LATCHED, SENSOR
from kin_ros.robot_state_node import RobotStateNode
from kin_testing.fixtures import wait_until

LIFT = """<robot name="lift"><link name="lift_base"/><link name="post"/><link name="plate"/>
<joint name="foot" type="fixed"><parent link="lift_base"/><child link="post"/>
  <origin xyz="0 0 0.5"/></joint>
<joint name="up" type="prismatic"><parent link="post"/><child link="plate"/><axis xyz="0 0 1"/>
  <limit lower="0" upper="1" effort="1" velocity="1"/></joint></robot>"""
ROBOTS = {
    "lift": {"urdf": "lift.urdf", "joint_states": "lift/joint_states", "xyz": [3.0, 0.0, 0.0]},
    "table": {"xyz": [0.0, 0.0, 0.9]},
    "still": {"urdf": "still.urdf", "home": {"up": 0.3}},
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "lift.urdf").write_text(LIFT)
    (tmp_path / "still.urdf").write_text(LIFT.replace('"lift_base"', '"still_base"').replace(
        '"post"', '"still_post"').replace('"plate"', '"still_plate"'))  # fmt: skip
    (tmp_path / "robots.yaml").write_text(yaml.safe_dump({"robots": ROBOTS}))
    return tmp_path


class Client(KinNode[ParameterSet]):
    def __init__(self, **arguments):
        super().__init__("client", ParameterSet, **arguments)

    def configure(self):
        self.frames = Frames(self)

    def height(self, frame, stamp=0):
        try:
            return self.frames.transform("world", frame, stamp)[2, 3]
        except FrameError:
            return None


@pytest.mark.node
def test_robots_are_shown(ros, folder):
    shown = {"robots_file": str(folder / "robots.yaml"), "frame_prefix": "robot1/"}
    ros.add(RobotStateNode, shown, namespace="/robot1")
    # Nobody listens to tf: joint states are not asked for either.
    assert ros.node.count_subscribers("/robot1/lift/joint_states") == 0
    texts = ros.listen(String, "/robot1/lift/robot_description", LATCHED)
    wait_until(lambda: texts)
    assert texts[0].data == LIFT

    client = ros.add(Client)
    assert client.frames.transform("world", "robot1/post", wait=20.0)[:3, 3].tolist() == [3, 0, 0.5]
    assert client.height("robot1/table") == 0.9
    wait_until(lambda: client.height("robot1/still_plate") == pytest.approx(0.8))
    assert client.height("robot1/plate") is None
    wait_until(lambda: ros.node.count_subscribers("/robot1/lift/joint_states") == 1)
    states = ros.node.create_publisher(JointState, "/robot1/lift/joint_states", SENSOR)
    state = JointState(name=["up"], position=[0.25])
    state.header.stamp = ros.node.get_clock().now().to_msg()
    wait_until(lambda: states.publish(state) or client.height("robot1/plate") == 0.75)
    # The stamp of the joint state is that of the transform.
    stamp = state.header.stamp.sec * 10**9 + state.header.stamp.nanosec
    assert client.height("robot1/plate", stamp) == 0.75
    assert client.height("robot1/plate", stamp + 1) is None


@pytest.mark.node
def test_a_fast_robot_is_thinned_out(ros, folder):
    ros.add(
        RobotStateNode, {"robots_file": str(folder / "robots.yaml"), "robots": ["world", "lift"]}
    )
    heard = ros.listen(TFMessage, "/tf", 100)
    wait_until(lambda: ros.node.count_subscribers("/lift/joint_states") == 1)
    states = ros.node.create_publisher(JointState, "/lift/joint_states", SENSOR)
    start = time.monotonic()
    for k in range(300):
        states.publish(JointState(name=["up"], position=[k / 300.0]))
        time.sleep(0.005)
    elapsed = time.monotonic() - start
    assert 2 <= len(heard) <= 20.0 * elapsed + 2
    assert all([t.child_frame_id for t in m.transforms] == ["plate"] for m in heard)


@pytest.mark.node
def test_topics_that_tell_of_one_robot_belong_together(ros, folder):
    """Each transform holds joints of one moment, also for one who comes after a pause."""
    text = (folder / "lift.urdf").read_text()
    two = text.replace("</robot>", """<link name="hook"/><joint name="down" type="prismatic">
      <parent link="plate"/><child link="hook"/><axis xyz="0 0 -1"/>
      <limit lower="0" upper="1" effort="1" velocity="1"/></joint></robot>""")  # fmt: skip
    (folder / "lift.urdf").write_text(two)
    robot = {"urdf": "lift.urdf", "joint_states": ["real", "virtual"], "rate": 50.0}
    (folder / "robots.yaml").write_text(yaml.safe_dump({"robots": {"lift": robot}}))
    ros.add(RobotStateNode, {"robots_file": str(folder / "robots.yaml")})
    real, virtual = (ros.node.create_publisher(JointState, t, SENSOR) for t in ("real", "virtual"))

    def publish(k):
        state = JointState(position=[k / 1000.0])
        state.header.stamp.sec, state.header.stamp.nanosec = 1 + k // 100, (k % 100) * 10_000_000
        for publisher, name in ((real, "up"), (virtual, "down")):
            state.name = [name]
            publisher.publish(state)
            time.sleep(0.005)

    k = 0
    for _ in range(2):
        heard = []
        listener = ros.node.create_subscription(TFMessage, "/tf", heard.append, 100)
        wait_until(lambda: ros.node.count_subscribers("/real") == 1)
        end = time.monotonic() + 20.0
        while len([m for m in heard if len(m.transforms) == 2]) < 8 and time.monotonic() < end:
            publish(k)
            k += 1
        both = [m.transforms for m in heard if len(m.transforms) == 2]
        assert len(both) >= 8
        for plate, hook in both:
            assert plate.transform.translation.z == -hook.transform.translation.z
        ros.node.destroy_subscription(listener)
        wait_until(lambda: ros.node.count_subscribers("/real") == 0)
        k += 300


@pytest.mark.node
@pytest.mark.parametrize(
    ("robots", "sentence"),
    [
        ({}, "must hold a mapping 'robots'"),
        ({"a": []}, "must be a mapping"),
        ({"a": {"urdf": "lift.urdf", "speed": 1}}, "unknown key 'speed'"),
        ({"a": {"urdf": "lift.urdf", "xyz": [1, 2]}}, r"must have the shape \(3\)"),
        ({"a": {"urdf": "lift.urdf", "home": {"up": "high"}}}, "must be a number"),
        ({"a": {"urdf": "lift.urdf", "home": [1]}}, "mapping of joints"),
        ({"a": {"urdf": "none.urdf"}}, "cannot be read"),
    ],
)
def test_a_wrong_file_is_refused_with_a_sentence(ros, folder, robots, sentence, capfd):
    (folder / "robots.yaml").write_text(yaml.safe_dump({"robots": robots}))
    with pytest.raises(AssertionError, match="did not become active"):
        ros.add(RobotStateNode, {"robots_file": str(folder / "robots.yaml")})
    assert re.search(sentence, capfd.readouterr().err)
