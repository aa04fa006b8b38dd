"""Sine, cosine, arctangent and cube root against mpmath; products of vectors against numpy."""

import mpmath as mp
import numpy as np
import pytest

from gpu_kinematics.kernels import elementary
from gpu_kinematics.kernels.records import Columns, Joints, Vector


def test_sine_and_cosine_within_two_units():
    for a in np.random.default_rng(5).uniform(-50, 50, 2000):
        c, s = elementary.sincos(float(a))
        assert abs(s - float(mp.sin(mp.mpf(float(a))))) < 2.3e-16
        assert abs(c - float(mp.cos(mp.mpf(float(a))))) < 2.3e-16


def test_arctangent_within_two_units():
    for y, x in np.random.default_rng(6).normal(size=(2000, 2)):
        exact = float(2 * mp.atan(mp.mpf(float(y)) / mp.mpf(float(x))))
        assert abs(elementary.twice_atan(float(y), float(x)) - exact) < 7e-16
    assert elementary.twice_atan(0.0, 0.0) == 0.0


@pytest.mark.parametrize("root", [1e-6, 0.3, 1.0, 3.0, 1e5])
def test_cube_root(root):
    assert elementary.cbrt(root**3) == pytest.approx(root, rel=1e-15)
    assert elementary.cbrt(0.0) == 0.0


def test_products_of_vectors():
    for rows in np.random.default_rng(7).normal(size=(100, 3, 3)):
        a, b, c = (Vector(*map(float, row)) for row in rows)
        assert elementary.minus(a, b) == tuple(rows[0] - rows[1])
        assert elementary.dot(a, b) == pytest.approx(rows[0] @ rows[1])
        assert elementary.cross(a, b) == pytest.approx(np.cross(rows[0], rows[1]))
        *columns, det = elementary.adjugate(a, b, c)
        assert det == pytest.approx(np.linalg.det(rows))
        np.testing.assert_allclose(rows @ np.transpose(columns), det * np.eye(3), atol=1e-13)
        weights = Joints(0.5, -2.0, 3.0)
        found = elementary.combine(weights, Columns(a, b, c, 1.0))
        assert found == pytest.approx(weights @ rows)


def test_finite():
    assert elementary.finite(Vector(1e308, -1e308, 0.0))
    for bad in (np.nan, np.inf, -np.inf):
        for at in range(3):
            assert not elementary.finite(Vector(*np.insert([1.0, 2.0], at, bad).tolist()))
