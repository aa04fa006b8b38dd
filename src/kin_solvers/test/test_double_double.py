"""Numbers of 106 bits against mpmath."""

import math

import mpmath as mp
import numpy as np
import pytest
from numba import njit

from kin_core.rotations import exp_so3
from kin_solvers import double_double

mp.mp.dps = 60


@njit
def cosine_sine(q):
    return double_double.cosine_sine(q)


def value(pair):
    return mp.mpf(float(pair[0])) + mp.mpf(float(pair[1]))


def as_matrix(pairs):
    return mp.matrix([[value(x) for x in row] for row in pairs])


def random_transform(rng, size):
    matrix = np.eye(4)
    matrix[:3, :3] = exp_so3(rng.normal(size=3))
    matrix[:3, 3] = size * rng.normal(size=3)
    return matrix


@pytest.mark.parametrize("most", [1e-8, 4.0, 1e6])
def test_cosines_and_sines_have_100_bits(most):
    rng = np.random.default_rng(1)
    angles = [*rng.uniform(-most, most, 50), 0.0, *(k * math.pi / 2 for k in range(-4, 5))]
    for q in angles:
        c, c_low, s, s_low = cosine_sine(float(q))
        assert abs(value((c, c_low)) - mp.cos(mp.mpf(float(q)))) < 2e-31
        assert abs(value((s, s_low)) - mp.sin(mp.mpf(float(q)))) < 2e-31


def test_products_of_transforms_that_cancel():
    rng = np.random.default_rng(2)
    A, B = random_transform(rng, 1e6), random_transform(rng, 1e-3)
    pairs = np.zeros((2, 3, 4, 2))
    pairs[0, :, :, 0], pairs[1, :, :, 0] = A[:3], B[:3]
    out = np.empty((3, 4, 2))
    double_double.product(pairs[0], pairs[1], out)
    exact = mp.matrix(A.tolist()) * mp.matrix(B.tolist())
    error = as_matrix(out) - exact[:3, :]
    assert max(abs(x) for x in error) < 1e-24


@pytest.mark.parametrize("defect", [0.0, 1e-15, 9e-7])
def test_the_nearest_rotation(defect):
    rng = np.random.default_rng(3)
    matrix = random_transform(rng, 10.0)
    matrix[:3, :3] += defect * rng.uniform(-0.3, 0.3, size=(3, 3))
    out = np.empty((3, 4, 2))
    double_double.rigid(matrix, out)
    R = as_matrix(out)[:, :3]
    assert max(abs(x) for x in R.T * R - mp.eye(3)) < 1e-24
    # Symmetric R'M: the polar factor, not just any rotation near M.
    S = R.T * mp.matrix(matrix[:3, :3].tolist())
    assert max(abs(x) for x in S - S.T) < 1e-24
    assert np.array_equal(out[:, 3, 0], matrix[:3, 3])
