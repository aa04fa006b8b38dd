import numpy as np
import pytest

pytest.importorskip("rclpy")

from builtin_interfaces.msg import Time

from ft_controller import Arm
from ft_controller.markers import ACTUAL, DESIRED, arm_marker


def test_a_line_through_the_joints_and_the_tip():
    arm, q = Arm.four_link(), np.array([0.1, -0.4, 0.9, 0.2])
    marker = arm_marker(arm.points(q), ACTUAL, "base", Time(sec=3))
    assert (marker.header.frame_id, marker.header.stamp.sec, marker.ns) == ("base", 3, "arm")
    drawn = np.array([[p.x, p.y] for p in marker.points])
    assert drawn.shape == (5, 2) and (drawn[0] == 0.0).all()
    assert drawn[-1] == pytest.approx(arm.end_effector(q)[:2])
    assert np.linalg.norm(np.diff(drawn, axis=0), axis=1) == pytest.approx(arm.length)


def test_the_desired_arm_is_another_marker_below_the_actual_one():
    points = Arm.four_link().points(np.zeros(4))
    actual, desired = (arm_marker(points, line, "base", Time()) for line in (ACTUAL, DESIRED))
    assert actual.id != desired.id and actual.ns != desired.ns and actual.color != desired.color
    assert desired.points[0].z < actual.points[0].z and desired.scale.x > actual.scale.x
