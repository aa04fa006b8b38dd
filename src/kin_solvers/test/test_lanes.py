"""The vector instructions against plain numpy."""

import numpy as np
import pytest
from numba import njit

from kin_solvers.lanes import (
    ROW,
    VECTOR,
    address,
    columns,
    combine,
    dot,
    fold_2,
    fold_3,
    fold_4,
    fold_values_2,
    fold_values_3,
    fold_values_4,
    four_dots,
    fused,
    multiply,
    multiply_derivative,
    turn_columns,
    turn_rows,
)

UNIT_ROUNDOFF = 2.0**-53


def conformal(T):
    """Row of a transform: R and t, then 2 t'R and |t|^2."""
    R, t = T[:3, :3], T[:3, 3]
    return np.concatenate([T[:3].ravel(), 2.0 * t @ R, [t @ t]])


def matrix(row, unit=1.0):
    """The 5 x 5 matrix that a row stands for: (R t 0; 0 1 0; 2 t'R |t|^2 1)."""
    M = np.zeros((5, 5))
    M[:3, :4] = row[:12].reshape(3, 4)
    M[3, 3] = M[4, 4] = unit
    M[4, :4] = row[12:]
    return M


def row_of(M):
    return np.concatenate([M[:3, :4].ravel(), M[4, :4]])


def turn(angle):
    c, s = np.cos(angle), np.sin(angle)
    T = np.eye(4)
    T[:2, :2] = [[c, -s], [s, c]]
    return T


def some_transform(rng):
    T = np.eye(4)
    T[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    T[:3, 3] = rng.normal(size=3)
    return T


@njit
def products(out, a, b):
    multiply(address(out), address(a), address(b), 1.0)
    multiply(address(out) + ROW, address(a), address(b), 0.0)
    multiply_derivative(address(out) + 2 * ROW, address(a), address(b))


def test_rows_are_multiplied_as_conformal_matrices():
    rng = np.random.default_rng(0)
    for _ in range(20):
        A, B = some_transform(rng), some_transform(rng)
        a, b, out = conformal(A), conformal(B), np.empty((3, 16))
        products(out, a, b)
        np.testing.assert_allclose(out[0], conformal(A @ B), rtol=0, atol=1e-13)
        np.testing.assert_allclose(out[0], row_of(matrix(a) @ matrix(b)), rtol=0, atol=1e-13)
        # A row that is a derivative has zeros for ones in the middle.
        np.testing.assert_allclose(out[1], row_of(matrix(a, 0.0) @ matrix(b)), atol=1e-13)
        np.testing.assert_allclose(out[2], row_of(matrix(a) @ matrix(b, 0.0)), atol=1e-13)


@njit
def in_place(a, b):
    multiply(address(a), address(a), address(b), 1.0)
    multiply(address(b), address(a), address(b), 1.0)


def test_a_product_may_be_written_over_its_factors():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 16))
    first = row_of(matrix(a) @ matrix(b))
    second = row_of(matrix(first) @ matrix(b))
    in_place(a, b)
    np.testing.assert_allclose(a, first, atol=1e-13)
    np.testing.assert_allclose(b, second, atol=1e-12)


@njit
def turned(out, C, y, z):
    turn_rows(address(out), address(C), y, z)
    turn_columns(address(out) + ROW, address(C), y, z)


def test_turns_are_products_with_a_rotation_about_z():
    rng = np.random.default_rng(2)
    for angle in rng.uniform(-7.0, 7.0, 20):
        C, out = some_transform(rng), np.empty((2, 16))
        turned(out, conformal(C), np.cos(angle), np.sin(angle))
        np.testing.assert_allclose(out[0], conformal(turn(angle) @ C), atol=1e-13)
        np.testing.assert_allclose(out[1], conformal(C @ turn(-angle)), atol=1e-13)


@njit
def sums(a, b, out):
    combine(address(out), address(a), 0.3, address(b), -1.7)
    return dot(address(a), address(b))


def test_sums_and_scalar_products():
    rng = np.random.default_rng(3)
    a, b, out = rng.normal(size=16), rng.normal(size=16), np.empty(16)
    assert sums(a, b, out) == pytest.approx(a @ b, abs=1e-14)
    np.testing.assert_allclose(out, 0.3 * a - 1.7 * b, atol=1e-15)


@njit
def weigh(rows, weights, bounds, column, norms, value):
    w = address(weights)
    columns(address(column), w, w + ROW, w + 2 * ROW, w + 3 * ROW, address(bounds), address(norms))
    for j in range(rows.shape[0]):
        four_dots(address(value) + VECTOR * j, address(rows) + ROW * j, address(column))


def test_four_sums_of_rows_at_once():
    rng = np.random.default_rng(4)
    rows, weights, bounds = rng.normal(size=(9, 16)), rng.normal(size=(4, 16)), rng.uniform(size=16)
    column, norms, value = np.empty((16, 4)), np.empty(4), np.empty((9, 4))
    weigh(rows, weights, bounds, column, norms, value)
    np.testing.assert_array_equal(column, weights.T)
    np.testing.assert_allclose(norms, np.abs(weights) @ bounds, rtol=1e-14)
    np.testing.assert_allclose(value, rows @ weights.T, atol=1e-13)


@njit
def folded(blocks, low, high, out_low, out_high, block_low, block_high):
    n = low.shape[0] // blocks
    a, b, c, d = address(low), address(high), address(out_low), address(out_high)
    x, y = address(block_low), address(block_high)
    if blocks == 2:
        fold_2(a, b, n, VECTOR, c, d, x, y, VECTOR)
    elif blocks == 3:
        fold_3(a, b, n, VECTOR, c, d, x, y, VECTOR)
    else:
        fold_4(a, b, n, VECTOR, c, d, x, y, VECTOR)


@njit
def folded_values(blocks, values, out_low, out_high, block_low, block_high):
    n = values.shape[0] // blocks
    v, c, d = address(values), address(out_low), address(out_high)
    x, y = address(block_low), address(block_high)
    if blocks == 2:
        fold_values_2(v, v, n, VECTOR, c, d, x, y, VECTOR)
    elif blocks == 3:
        fold_values_3(v, v, n, VECTOR, c, d, x, y, VECTOR)
    else:
        fold_values_4(v, v, n, VECTOR, c, d, x, y, VECTOR)


@pytest.mark.parametrize("blocks", [2, 3, 4])
@pytest.mark.parametrize("rows", [1, 5])
def test_folds_are_minima_and_maxima_of_blocks(blocks, rows):
    rng = np.random.default_rng(5)
    low = rng.normal(size=(blocks * rows, 4))
    high = low + rng.uniform(size=low.shape)
    for top in (low, high):
        across = (np.empty((rows, 4)), np.empty((rows, 4)))
        of_block = (np.empty((blocks, 4)), np.empty((blocks, 4)))
        if top is low:
            folded_values(blocks, low, *across, *of_block)
        else:
            folded(blocks, low, high, *across, *of_block)
        bottom, top = low.reshape(blocks, rows, 4), top.reshape(blocks, rows, 4)
        np.testing.assert_array_equal(across[0], bottom.min(axis=0))
        np.testing.assert_array_equal(across[1], top.max(axis=0))
        np.testing.assert_array_equal(of_block[0], bottom.min(axis=1))
        np.testing.assert_array_equal(of_block[1], top.max(axis=1))


@njit
def rounded_once(a, b, c):
    return fused(a, b, c)


def test_a_fused_product_is_rounded_once():
    a = 1.0 + 2.0**-30
    assert rounded_once(a, a, -1.0) == 2.0**-29 + 2.0**-60
    assert a * a - 1.0 == 2.0**-29
