"""The robot as markers for RViz, Foxglove and the dashboard."""

from __future__ import annotations

from typing import Any

import numpy as np
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from continuum_ik.robot import ContinuumRobot
from continuum_ik.rod import Array
from kin_ros.markers import BLUE, GREY, ORANGE, colour, make_marker, move_points

__all__ = ["MOST_CURVED", "RobotMarkers", "curvature", "curvature_colours"]

#: Width of a line that is seen from some steps away [m]; a rod of half a millimetre would not be.
_SEEN = 0.006
#: Curvature that is shown in the last colour [1/m].
MOST_CURVED = 4.0
#: Dark violet to yellow (viridis): it grows in lightness, so that it reads without colour too.
_RAMP = np.array(
    [[0.267, 0.005, 0.329], [0.230, 0.322, 0.546], [0.128, 0.567, 0.551], [0.369, 0.789, 0.383],
     [0.993, 0.906, 0.144]]
)  # fmt: skip


class RobotMarkers:
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


def curvature(points: Array) -> Array:
    """Curvature of a polyline at each of its points [1/m]; the ends take their neighbour's.

    Args:
        points: Shape (n, 3) [m].
    """
    if len(points) < 3:
        return np.zeros(len(points))
    a, b = points[1:-1] - points[:-2], points[2:] - points[1:-1]
    c = points[2:] - points[:-2]
    # Of the circle through three points: four times the area over the product of the sides.
    area = np.linalg.norm(np.cross(a, b), axis=1)
    sides = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1) * np.linalg.norm(c, axis=1)
    inner = np.divide(2.0 * area, sides, out=np.zeros(len(area)), where=sides > 1e-12)
    return np.concatenate([inner[:1], inner, inner[-1:]])


def curvature_colours(bend: Array) -> Array:
    """Red, green and blue, 0 to 1, for each curvature; shape (n, 3)."""
    share = np.clip(bend / MOST_CURVED, 0.0, 1.0) * (len(_RAMP) - 1)
    steps = np.arange(len(_RAMP))
    return np.stack([np.interp(share, steps, _RAMP[:, k]) for k in range(3)], axis=1)
