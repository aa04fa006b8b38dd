"""The fleet as markers."""

import numpy as np
from std_msgs.msg import Header
from visualization_msgs.msg import Marker

from gpu_kinematics import PUBLISHED_GEOMETRY, Delta, Move
from gpu_kinematics.fleet import DemoFleet
from gpu_kinematics.markers import fleet_markers


def test_three_markers_show_all_robots():
    move = Move(kind="adept_cycle", max_velocity=1.0, max_acceleration=20.0, max_jerk=2000.0)
    fleet = DemoFleet(Delta(PUBLISHED_GEOMETRY, backend="cpu"), 5, 0.3, move)
    motion = fleet.at(1.0)
    found = fleet_markers(Header(frame_id="delta_base"), fleet, motion).markers
    assert [marker.ns for marker in found] == ["arms", "rods", "platforms"]
    assert [len(marker.points) for marker in found] == [30, 30, 5]
    assert {marker.header.frame_id for marker in found} == {"delta_base"}
    assert found[2].type == Marker.SPHERE_LIST and found[2].color.a == 1.0
    point = found[2].points[3]
    expected = fleet.origin[:, 3] + motion.position[:, 0, 3]
    np.testing.assert_allclose([point.x, point.y, point.z], expected)
