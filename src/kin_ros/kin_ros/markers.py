"""Markers for RViz, Foxglove and the dashboard: one builder and one palette for all nodes.

The colours are those of Okabe and Ito, which stay apart for colour-blind readers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import Point
from numpy.typing import NDArray
from rclpy.duration import Duration
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker

from kin_ros.poses import fill_orientation

__all__ = [
    "BLACK",
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "PURPLE",
    "SERIES",
    "SKY",
    "VERMILION",
    "YELLOW",
    "clear_all",
    "colour",
    "make_marker",
    "move_points",
    "rgb",
    "to_points",
]

Array = NDArray[np.float64]

BLUE = "#0072B2"
VERMILION = "#D55E00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
ORANGE = "#E69F00"
SKY = "#56B4E9"
YELLOW = "#F0E442"
GREY = "#999999"
BLACK = "#333333"
#: For curves, components and robots, in this order.
SERIES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, YELLOW, GREY)


def rgb(shade: str) -> tuple[int, int, int]:
    """Return red, green and blue, 0 to 255, of ``#rrggbb``."""
    value = int(shade[1:], 16)
    return value >> 16, value >> 8 & 255, value & 255


def colour(shade: str, alpha: float = 1.0) -> ColorRGBA:
    """Return a colour of the palette as a message; alpha 1 is opaque, 0 cannot be seen."""
    r, g, b = (round(part / 255.0, 3) for part in rgb(shade))
    return ColorRGBA(r=r, g=g, b=b, a=alpha)


def to_points(points: Array) -> list[Point]:
    """Return positions, shape (n, 3) [m], as messages."""
    return [Point(x=x, y=y, z=z) for x, y, z in points.tolist()]


def move_points(marker: Marker, points: Array) -> None:
    """Refill the points of a marker, shape (n, 3) [m]; much cheaper than to make them anew."""
    for point, (x, y, z) in zip(marker.points, points.tolist(), strict=True):
        point.x, point.y, point.z = x, y, z


def make_marker(
    kind: int,
    namespace: str,
    number: int,
    *,
    frame_id: str,
    stamp: Any = None,
    size: float | Sequence[float],
    shade: ColorRGBA,
    points: Array | None = None,
    position: Array | None = None,
    rotation: Array | None = None,
    lifetime: float = 0.0,
) -> Marker:
    """Return a marker that is to be drawn.

    Args:
        kind: Type, such as ``Marker.LINE_STRIP``.
        namespace: Together with the number it names the marker: the next one replaces it.
        number: See namespace.
        frame_id: The frame in which it is given.
        stamp: Time of the frame; None leaves it zero, which means the latest.
        size: Width of lines, diameter of balls or edge of cubes [m]; or three of them: x, y, z.
            A line takes its width from x and has no other size.
        shade: Colour of the whole.
        points: Of lines and lists, shape (n, 3) [m].
        position: Of the marker in its frame, shape (3,) [m]; None for the origin.
        rotation: Of the marker in its frame, shape (3, 3); None for none.
        lifetime: Time until it vanishes by itself [s]; 0 for never.
    """
    marker = Marker(ns=namespace, id=number, type=kind, action=Marker.ADD, color=shade)
    marker.header.frame_id = frame_id
    if stamp is not None:
        marker.header.stamp = stamp
    if isinstance(size, (int, float)):
        lines = kind in (Marker.LINE_STRIP, Marker.LINE_LIST)
        size = (size, 0.0, 0.0) if lines else (size, size, size)
    marker.scale.x, marker.scale.y, marker.scale.z = (float(edge) for edge in size)
    if position is not None:
        marker.pose.position = to_points(position[None])[0]
    if rotation is not None:
        fill_orientation(marker.pose.orientation, rotation)
    if points is not None:
        marker.points = to_points(points)
    if lifetime:
        marker.lifetime = Duration(seconds=lifetime).to_msg()
    return marker


def clear_all() -> Marker:
    """Return the marker that deletes all others of its topic; the first of its array."""
    return Marker(action=Marker.DELETEALL)
