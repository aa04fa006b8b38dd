"""The fleet as markers."""

from __future__ import annotations

from typing import Any

from std_msgs.msg import Header
from visualization_msgs.msg import Marker, MarkerArray

from gpu_kinematics.fleet import DemoFleet
from gpu_kinematics.trajectory import Trajectory
from kin_ros.markers import BLUE, GREY, ORANGE, colour, make_marker

__all__ = ["fleet_markers"]

#: Name, kind, size [m] and colour of what is drawn of a robot.
_PARTS = (
    ("arms", Marker.LINE_LIST, 0.004, BLUE),
    ("rods", Marker.LINE_LIST, 0.002, GREY),
    ("platforms", Marker.SPHERE_LIST, 0.014, ORANGE),
)


def fleet_markers(header: Header, fleet: DemoFleet, motion: Trajectory) -> MarkerArray:
    """Arms, rods and platforms of all robots: three markers in all."""
    parts = fleet.skeleton(motion.angle[:, 0], motion.position[:, 0])
    look: dict[str, Any] = {"frame_id": header.frame_id, "stamp": header.stamp, "lifetime": 2.0}
    markers = []
    for number, ((name, kind, size, shade), points) in enumerate(zip(_PARTS, parts, strict=True)):
        look |= {"size": size, "shade": colour(shade), "points": points}
        markers.append(make_marker(kind, name, number, **look))
    return MarkerArray(markers=markers)
