"""The builder of markers: what is asked for stands in the message."""

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from visualization_msgs.msg import Marker

from kin_ros.markers import (
    BLUE,
    SERIES,
    clear_all,
    colour,
    make_marker,
    move_points,
    rgb,
    to_points,
)

POINTS = np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])


def positions(marker):
    return [(p.x, p.y, p.z) for p in marker.points]


def test_a_line():
    line = make_marker(
        Marker.LINE_STRIP,
        "rods",
        3,
        frame_id="base",
        stamp=Time(sec=5),
        size=0.02,
        shade=colour(BLUE),
        points=POINTS,
        lifetime=1.5,
    )
    assert (line.ns, line.id, line.type, line.action) == ("rods", 3, Marker.LINE_STRIP, Marker.ADD)
    assert (line.header.frame_id, line.header.stamp.sec) == ("base", 5)
    assert (line.scale.x, line.scale.y, line.scale.z) == (0.02, 0.0, 0.0)
    assert (line.color.r, line.color.g, line.color.b, line.color.a) == (0.0, 0.447, 0.698, 1.0)
    assert positions(line) == [tuple(row) for row in POINTS.tolist()]
    assert (line.lifetime.sec, line.lifetime.nanosec) == (1, 500_000_000)
    assert line.pose.orientation.w == 1.0


def test_a_cube_at_a_place():
    turned = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    cube = make_marker(
        Marker.CUBE,
        "grips",
        0,
        frame_id="base",
        size=(0.1, 0.2, 0.3),
        shade=colour(BLUE, 0.5),
        position=np.array([1.0, 2.0, 3.0]),
        rotation=turned,
    )
    assert (cube.scale.x, cube.scale.y, cube.scale.z) == (0.1, 0.2, 0.3)
    assert (cube.pose.position.x, cube.pose.position.y, cube.pose.position.z) == (1.0, 2.0, 3.0)
    assert cube.pose.orientation.z == pytest.approx(np.sqrt(0.5))
    assert cube.color.a == 0.5
    assert (cube.header.stamp.sec, cube.lifetime.sec) == (0, 0)


def test_balls_have_one_diameter():
    balls = make_marker(
        Marker.SPHERE_LIST, "b", 0, frame_id="f", size=0.1, shade=colour(BLUE), points=POINTS
    )
    assert (balls.scale.x, balls.scale.y, balls.scale.z) == (0.1, 0.1, 0.1)


def test_points_move_in_place():
    marker = Marker(points=to_points(POINTS))
    before = list(marker.points)
    move_points(marker, POINTS + 1.0)
    assert positions(marker) == [tuple(row) for row in (POINTS + 1.0).tolist()]
    assert all(a is b for a, b in zip(before, marker.points, strict=True))
    with pytest.raises(ValueError, match="shorter"):
        move_points(marker, POINTS[:1])


def test_the_palette_is_of_different_colours():
    assert len({rgb(shade) for shade in SERIES}) == len(SERIES) == 8
    assert all(0.0 <= part <= 1.0 for shade in SERIES for part in (colour(shade).g,))


def test_what_deletes_all_others():
    assert clear_all().action == Marker.DELETEALL
