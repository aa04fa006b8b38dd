"""The robot as markers for RViz, Foxglove and the dashboard."""

from __future__ import annotations

from typing import Any

import numpy as np
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from continuum_ik.picture import curvature, curvature_colours
from continuum_ik.robot import ContinuumRobot
from continuum_ik.rod import Array
from kin_ros.markers import BLUE, GREY, ORANGE, colour, make_marker, move_points

__all__ = ["Drawing"]

#: Width of a line that is seen from some steps away [m]; a rod of half a millimetre would not be.
_SEEN = 0.006


class Drawing:
    """One MarkerArray, made once: each picture only moves its points and changes its colours.

    A rod of 21 points holds 42 messages; making them anew takes longer than solving the robot.

    Attributes:
        points: Points of a rod.
        largest: Largest curvature of the last picture [1/m].
    """

    def __init__(self, robot: ContinuumRobot, points: int, frame: str) -> None:
        self.points = points
        self.largest = 0.0
        self._holes = robot.platform
        self._rods = []
        for i, rod in enumerate(robot.rods):
            marker = _line("rods", i, points, max(rod.radius * 2.0, _SEEN), BLUE, frame)
            marker.colors = [ColorRGBA(a=1.0) for _ in range(points)]
            self._rods.append(marker)
        corners = len(robot.base) + 1
        self._platform = _line("platform", 0, corners, 0.004, ORANGE, frame)
        base = _line("base", 0, corners, 0.004, GREY, frame)
        move_points(base, np.concatenate([robot.base, robot.base[:1]]))
        self._array = MarkerArray(markers=[*self._rods, self._platform, base])

    def update(self, shapes: Array, pose: Array, stamp: Any) -> MarkerArray:
        """Return the picture of rods (6, points, 3) and platform (12 numbers); always the same one.

        Rods are coloured by their curvature.
        """
        for marker in self._array.markers:
            marker.header.stamp = stamp
        bends = np.stack([curvature(shape) for shape in shapes])
        self.largest = float(bends.max())
        colours = curvature_colours(bends.reshape(-1)).reshape(*bends.shape, 3)
        for marker, shape, shades in zip(self._rods, shapes, colours.tolist(), strict=True):
            move_points(marker, shape)
            for each, (r, g, b) in zip(marker.colors, shades, strict=True):
                each.r, each.g, each.b = r, g, b
        holes = self._holes @ pose[3:].reshape(3, 3).T + pose[:3]
        move_points(self._platform, np.concatenate([holes, holes[:1]]))
        return self._array


def _line(space: str, number: int, points: int, width: float, shade: str, frame: str) -> Marker:
    return make_marker(
        Marker.LINE_STRIP,
        space,
        number,
        frame_id=frame,
        size=float(width),
        shade=colour(shade),
        points=np.zeros((points, 3)),
    )
