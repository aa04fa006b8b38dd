"""The arm as RViz, Foxglove and the dashboard draw it."""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import Point
from numpy.typing import NDArray
from visualization_msgs.msg import Marker

__all__ = ["ACTUAL", "DESIRED", "arm_marker"]

#: Name, number, colour (red, green, blue), width [m] and height above the plane [m] of the lines;
#: the colours are those of Okabe and Ito.
ACTUAL = ("arm", 0, (0.0, 0.447, 0.698), 0.03, 0.0)
DESIRED = ("desired", 1, (0.902, 0.624, 0.0), 0.05, -0.02)


def arm_marker(
    points: NDArray[np.float64],
    line: tuple[str, int, tuple[float, float, float], float, float],
    frame: str,
    stamp: Any,
) -> Marker:
    """A line through the joints, shape (n + 1, 2) [m]."""
    name, number, (red, green, blue), width, height = line
    marker = Marker(type=Marker.LINE_STRIP, action=Marker.ADD, ns=name, id=number)
    marker.header.frame_id = frame
    marker.header.stamp = stamp
    marker.pose.orientation.w = 1.0
    marker.scale.x = width
    marker.color.r, marker.color.g, marker.color.b, marker.color.a = red, green, blue, 1.0
    marker.points = [Point(x=float(x), y=float(y), z=height) for x, y in points]
    return marker
