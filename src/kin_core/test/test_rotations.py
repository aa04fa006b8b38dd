"""Group laws of rotations and rigid transforms, against scipy."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from kin_core import rotations as rot

angle = st.floats(-3.0, 3.0)
small = st.floats(-1e-3, 1e-3)
number = st.floats(-10.0, 10.0)


def vector(element):
    return st.tuples(element, element, element).map(np.array)


@given(st.tuples(number, number, number, number).map(np.array))
def test_quaternions_against_scipy(q):
    assume(np.linalg.norm(q) > 1e-3)
    R = rot.quaternion_to_matrix(q)
    np.testing.assert_allclose(R, Rotation.from_quat(q).as_matrix(), atol=1e-14)
    back = rot.matrix_to_quaternion(R)
    assert back[3] >= 0.0
    np.testing.assert_allclose(rot.quaternion_to_matrix(back), R, atol=1e-14)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_quaternions_of_any_norm(scale):
    R = rot.quaternion_to_matrix(scale * np.array([1.0, 2.0, -3.0, 4.0]))
    assert rot.rotation_defect(R) < 1e-15


@given(angle, angle, angle)
def test_rpy_against_scipy(r, p, y):
    expected = Rotation.from_euler("xyz", [r, p, y]).as_matrix()
    np.testing.assert_allclose(rot.rpy_to_matrix(r, p, y), expected, atol=1e-14)


@given(st.one_of(vector(st.floats(-1.8, 1.8)), vector(small)))
def test_so3_exp_and_log(w):
    assume(np.linalg.norm(w) < 3.1)
    R = rot.exp_so3(w)
    np.testing.assert_allclose(R, Rotation.from_rotvec(w).as_matrix(), atol=1e-14)
    np.testing.assert_allclose(rot.log_so3(R), w, atol=1e-13)
    assert rot.rotation_defect(R) < 1e-14


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.6, 0, 0.8)])
def test_log_at_half_a_turn(axis):
    w = rot.log_so3(rot.exp_so3(math.pi * np.array(axis, float)))
    assert math.isclose(np.linalg.norm(w), math.pi, rel_tol=1e-12)
    assert math.isclose(abs(w @ np.array(axis)), math.pi, rel_tol=1e-12)


@given(vector(number), vector(st.floats(-1.7, 1.7)))
def test_transforms_and_their_inverses(p, w):
    T = rot.transform(rot.exp_so3(w), p)
    np.testing.assert_allclose(T[:3, 3], p)
    np.testing.assert_allclose(T[:3, :3], expm(rot.skew(w)), atol=1e-13)
    np.testing.assert_allclose(T @ rot.inverse_transform(T), np.eye(4), atol=1e-13)


def test_defects():
    assert rot.rotation_defect(np.eye(3)) == 0.0
    assert rot.rotation_defect(np.diag([1.0, 1.0, -1.0])) == 2.0
    assert rot.rotation_defect(1.001 * np.eye(3)) > 1e-3
    assert not rot.rotation_defect(np.full((3, 3), np.nan)) <= 1.0
