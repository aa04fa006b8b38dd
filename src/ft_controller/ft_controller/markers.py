"""The arm as RViz, Foxglove and the dashboard draw it."""

from __future__ import annotations

from typing import Any

import numpy as np
from visualization_msgs.msg import Marker

from ft_controller.records import Array
from kin_ros.markers import BLUE, ORANGE, colour, make_marker

__all__ = ["ACTUAL", "DESIRED", "arm_marker"]

#: Name, number, colour, width [m] and height above the plane [m] of the lines.
ACTUAL = ("arm", 0, BLUE, 0.03, 0.0)
DESIRED = ("desired", 1, ORANGE, 0.05, -0.02)


def arm_marker(
    points: Array, line: tuple[str, int, str, float, float], frame: str, stamp: Any
) -> Marker:
    """A line through the joints, shape (n + 1, 2) in the plane or (n + 1, 3) [m]."""
    name, number, shade, width, height = line
    return make_marker(
        Marker.LINE_STRIP,
        name,
        number,
        frame_id=frame,
        stamp=stamp,
        size=width,
        shade=colour(shade),
        points=np.pad(points, ((0, 0), (0, 3 - points.shape[1]))) + np.array([0.0, 0.0, height]),
    )
