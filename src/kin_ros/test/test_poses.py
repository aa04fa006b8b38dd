"""Poses: what is read is what was written, and what is no pose is refused with one sentence."""

import ast
import math
from pathlib import Path

import numpy as np
import pytest
from geometry_msgs.msg import Point, Pose, Quaternion
from hypothesis import given, settings
from hypothesis import strategies as st

from kin_core.checks import UNIT_TOLERANCE
from kin_core.errors import InvalidInput
from kin_ros.poses import check_frame, pose_numbers, read_pose, read_rotation, to_pose

REAL = st.floats(-1e3, 1e3)


def quaternion(x, y, z, w):
    return Quaternion(x=float(x), y=float(y), z=float(z), w=float(w))


def pose(position=(0.0, 0.0, 0.0), orientation=(0.0, 0.0, 0.0, 1.0)):
    x, y, z = position
    return Pose(position=Point(x=x, y=y, z=z), orientation=quaternion(*orientation))


@settings(deadline=None)
@given(st.tuples(REAL, REAL, REAL), st.lists(st.floats(-1, 1), min_size=4, max_size=4))
def test_read_and_written_again_is_the_same(position, values):
    norm = math.hypot(*values)
    if norm < 1e-3:
        return
    T = read_pose("p", pose(position, np.array(values) / norm))
    assert np.abs(T[:3, :3].T @ T[:3, :3] - np.eye(3)).max() < 1e-14
    again = read_pose("p", to_pose(T[:3, 3], T[:3, :3]))
    np.testing.assert_array_equal(again[:3, 3], position)
    np.testing.assert_allclose(again, T, atol=1e-14)


def test_a_quarter_turn_about_z():
    half = math.sqrt(0.5)
    T = read_pose("p", pose((1.0, 2.0, 3.0), (0.0, 0.0, half, half)))
    expected = [[0, -1, 0, 1], [1, 0, 0, 2], [0, 0, 1, 3], [0, 0, 0, 1]]
    np.testing.assert_allclose(T, expected, atol=1e-15)
    assert pose_numbers(to_pose(T[:3, 3], T[:3, :3])) == pytest.approx(
        [1.0, 2.0, 3.0, 0.0, 0.0, half, half]
    )


@pytest.mark.parametrize("scale", [1.0 - 0.9 * UNIT_TOLERANCE, 1.0 + 0.9 * UNIT_TOLERANCE])
def test_a_norm_that_rounding_leaves_is_taken_and_mended(scale):
    R = read_rotation("q", quaternion(0.6 * scale, 0.0, 0.0, 0.8 * scale))
    np.testing.assert_allclose(R, read_rotation("q", quaternion(0.6, 0, 0, 0.8)), atol=1e-15)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ((0, 0, 0, 0), "must be a quaternion of norm 1, got norm 0"),
        ((0, 0, 0, 1.0 + 1.1 * UNIT_TOLERANCE), "got norm 1.0011"),
        ((0, 0, 0, 1.0 - 1.1 * UNIT_TOLERANCE), "got norm 0.9989"),
        ((1, 1, 1, 1), "got norm 2"),
        ((1e300, 0, 0, 1e300), "got norm 1.41"),
        ((0, 0, math.nan, 1), "must be finite, got nan at 2"),
        ((0, math.inf, 0, 1), "must be finite, got inf at 1"),
    ],
)
def test_what_is_no_orientation(values, sentence):
    with pytest.raises(InvalidInput) as refusal:
        read_pose("goal.target", pose(orientation=values))
    assert str(refusal.value).startswith("goal.target.orientation: ")
    assert sentence in str(refusal.value)


def test_what_is_no_position():
    with pytest.raises(InvalidInput, match=r"^tip\.position: must be finite, got nan at 1$"):
        read_pose("tip", pose((0.0, math.nan, 0.0)))


def test_four_zeros_mean_not_given_where_that_is_said():
    nothing = pose((1.0, 0.0, 0.0), (0, 0, 0, 0))
    T = read_pose("p", nothing, zero_is_identity=True)
    np.testing.assert_array_equal(T[:3, :3], np.eye(3))
    assert T[0, 3] == 1.0
    with pytest.raises(InvalidInput, match="norm 1e-300"):
        read_pose("p", pose(orientation=(0, 0, 0, 1e-300)), zero_is_identity=True)


def test_frames():
    check_frame("target", "", "base")
    check_frame("target", "base", "base")
    with pytest.raises(InvalidInput, match=r"^target\.header\.frame_id: must be 'base', got 'b'$"):
        check_frame("target", "b", "base")


def test_no_other_module_reads_orientations_or_makes_markers():
    """The dashboard draws what anybody publishes, also what is no orientation."""
    found = []
    for path in Path(__file__).resolve().parents[2].glob("*/*/*.py"):
        if "test" in path.parts or path.parts[-2:] == ("kin_dashboard", "markers.py"):
            continue
        if path.parts[-2:] in (("kin_ros", "poses.py"), ("kin_ros", "markers.py")):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            read = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
            if read and node.attr == "w" and getattr(node.value, "attr", "") == "orientation":
                found.append(f"{path.name}, line {node.lineno}: reads an orientation")
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Marker":
                found.append(f"{path.name}, line {node.lineno}: makes a marker")
    assert not found, "use kin_ros.poses and kin_ros.markers"
