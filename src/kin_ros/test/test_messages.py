import array
import math

import pytest
import yaml
from geometry_msgs.msg import Pose, PoseArray
from kin_interfaces.srv import CheckReady
from rcl_interfaces.msg import ParameterValue
from sensor_msgs.msg import Image, Imu, JointState, NavSatFix, RegionOfInterest
from std_msgs.msg import ByteMultiArray

from kin_core.errors import InvalidInput
from kin_ros.messages import fill, find_type, show, to_plain


def test_find_type_in_both_forms():
    assert find_type("kin_interfaces/srv/CheckReady", "srv") is CheckReady
    assert find_type("kin_interfaces/CheckReady", "srv") is CheckReady


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("kin_interfaces/srv/ChekReady", "did you mean CheckReady"),
        ("nope/srv/X", "no package 'nope'"),
        ("os/srv/system", "has no srv interfaces"),
        ("kin_interfaces/msg/SolveStatus", "expected PACKAGE/srv/NAME"),
        ("Trigger", "is not a type"),
        ("a/b/c/d", "is not a type"),
        ("../srv/x", "is not a type"),
        ("", "is not a type"),
    ],
)
def test_unknown_types(name, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        find_type(name, "srv")


def test_fill_nested_and_arrays():
    message = fill(
        JointState(),
        {"header": {"stamp": {"sec": 3}, "frame_id": "base"}, "name": ["a"], "position": [1, 2.5]},
    )
    assert message.header.stamp.sec == 3
    assert message.position == array.array("d", [1.0, 2.5])
    poses = fill(PoseArray(), {"poses": [{"position": {"x": 1}}, {}]})
    assert poses.poses[0].position.x == 1.0
    assert poses.poses[1].orientation.w == 1.0
    fill(Imu(), {"orientation_covariance": [0.0] * 9})
    assert fill(ByteMultiArray(), {"data": [1, 255]}).data == [b"\x01", b"\xff"]
    assert math.isnan(fill(Pose(), {"position": {"x": float("nan")}}).position.x)
    assert fill(ParameterValue(), {"integer_array_value": [2**62]}).integer_array_value[0] == 2**62


@pytest.mark.parametrize(
    ("message", "values", "field", "sentence"),
    [
        (JointState, {"nme": []}, "nme", "did you mean name"),
        (JointState, {"header": {"stmp": 1}}, "header.stmp", "did you mean stamp"),
        (JointState, {"header": 5}, "header", "mapping"),
        (JointState, [1], "request", "mapping"),
        (JointState, "x", "request", "mapping"),
        (JointState, {"name": "a"}, "name", "expected a list"),
        (JointState, {"name": [1]}, "name[0]", "quote it"),
        (JointState, {"position": [1, "x"]}, "position[1]", "expected a number"),
        (JointState, {"position": ["1e-5"]}, "position[0]", "write 1e-05"),
        (JointState, {"position": [True]}, "position[0]", "expected a number"),
        (JointState, {"position": [None]}, "position[0]", "nothing"),
        (Imu, {"orientation_covariance": [0.0] * 8}, "orientation_covariance", "expected 9"),
        (Image, {"height": -1}, "height", "not between 0 and"),
        (Image, {"height": 2**32}, "height", "not between"),
        (Image, {"height": 1.5}, "height", "whole number"),
        (Image, {"data": [256]}, "data[0]", "not between"),
        (RegionOfInterest, {"do_rectify": 1}, "do_rectify", "true or false"),
        (NavSatFix, {"status": {"status": 200}}, "status.status", "not between -128"),
        (PoseArray, {"poses": [{}, {"position": {"q": 1}}]}, "poses[1].position.q", "no such"),
        (PoseArray, {"poses": [3]}, "poses[0]", "mapping"),
    ],
)
def test_refused_with_the_field(message, values, field, sentence):
    with pytest.raises(InvalidInput) as caught:
        fill(message(), values)
    assert caught.value.field == field
    assert sentence in str(caught.value)


def test_show_is_yaml_and_cuts_long_arrays():
    message = JointState(name=["a", "b"], position=array.array("d", range(1000)))
    plain = yaml.safe_load(show(message))
    assert plain["name"] == ["a", "b"]
    assert plain["position"][:2] == [0.0, 1.0]
    assert plain["position"][-1] == "... (1000 in all)"
    full = yaml.safe_load(show(message, full=True))
    assert full["position"] == [float(i) for i in range(1000)]
    assert fill(JointState(), full) == message


def test_plain_values_fill_the_same_message_again():
    message = Imu(orientation_covariance=[float(i) for i in range(9)])
    message.header.frame_id = "ä: [x]"
    assert fill(Imu(), to_plain(message)) == message
    assert fill(Imu(), yaml.safe_load(show(message, full=True))) == message
