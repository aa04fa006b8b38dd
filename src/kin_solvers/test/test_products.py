"""Vertex products and their extremes against plain numpy."""

import itertools

import numpy as np
import pytest
from numba import njit

from kin_solvers.hulls import Box, Y, Z, enclose, make_arcs
from kin_solvers.lanes import address
from kin_solvers.products import (
    FACTOR,
    HALF,
    ROWS,
    Extremes,
    Products,
    bend,
    fold_half,
    make_joints,
    vertex_matrix,
    vertex_products,
)


@njit
def multiplied(box, arcs, constants, products, inverse):
    enclose(box, arcs)
    for k in range(arcs.size):
        products.joints[k].count = arcs[k].count
        for i in range(arcs[k].count):
            vertex_matrix(constants[k], arcs[k], i, inverse, products.G, 4 * k + i)
    vertex_products(products, products.halves[0, 0])


@njit
def folded(values, products, low, high, block_low, block_high):
    extremes = Extremes(address(low), address(high), address(block_low), address(block_high))
    vectors = values.shape[1] // 4
    fold_half(address(values), vectors, products.joints, products.halves[0, 0], extremes)


@njit
def bent(box, arcs, factors):
    enclose(box, arcs)
    return bend(arcs, factors, 0, factors.size)


def conformal(T):
    R, t = T[:3, :3], T[:3, 3]
    return np.concatenate([T[:3].ravel(), 2.0 * t @ R, [t @ t]])


def some_transform(rng):
    T = np.eye(4)
    T[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    T[:3, 3] = rng.normal(size=3)
    return T


def five(row):
    M = np.zeros((5, 5))
    M[:3, :4] = row[:12].reshape(3, 4)
    M[3, 3] = M[4, 4] = 1.0
    M[4, :4] = row[12:]
    return M


def motion(arc, i):
    """The matrix of a motion at a vertex: (y, z) need not be on the circle."""
    M = np.eye(5)
    y, z = arc["hull"][Y, i], arc["hull"][Z, i]
    if arc["translation"]:
        M[2, 3], M[4, 2], M[4, 3] = y, 2.0 * y, y * y
    else:
        M[:2, :2] = [[y, -z], [z, y]]
    return M


def inverse_motion(arc, i):
    """That of the inverse motion."""
    M = motion(arc, i)
    M[:2, :2] = M[:2, :2].T
    M[2, 3], M[4, 2] = -M[2, 3], -M[4, 2]
    return M


def chain(rng, kinds):
    """A chain of rotations (with narrow and wide ranges) and translations, ready to multiply."""
    n = len(kinds)
    translation = np.array([kind == "t" for kind in kinds])
    arcs = make_arcs(translation, np.zeros(n, dtype=bool))
    half = np.array([{"t": 0.4, "n": 0.3, "w": 1.9}[kind] for kind in kinds])
    middle = rng.uniform(-2.0, 2.0, n)
    halves = np.zeros((1, 2), dtype=HALF)
    halves["length"] = n
    width = 4**n
    products = Products(
        make_joints(np.arange(n)),
        halves,
        np.zeros((4 * n, ROWS)),
        np.zeros((width, ROWS)),
        np.zeros((width, ROWS)),
    )
    return Box(middle - half, middle + half), arcs, products


@pytest.mark.parametrize("kinds", ["n", "t", "nw", "tnt", "wnt", "nntw"])
@pytest.mark.parametrize("inverse", [False, True])
def test_all_vertex_products_of_a_half(kinds, inverse):
    rng = np.random.default_rng(3)
    box, arcs, products = chain(rng, kinds)
    constants = np.array([conformal(some_transform(rng)) for _ in kinds])
    multiplied(box, arcs, constants, products, inverse)
    half = products.halves[0, 0]
    counts = [int(c) for c in arcs["count"]]
    assert half["count"] == np.prod(counts)
    # The first motion varies fastest.
    for number, vertex in enumerate(itertools.product(*(range(c) for c in reversed(counts)))):
        M = np.eye(5)
        for k, i in enumerate(reversed(vertex)):
            if inverse:
                M = M @ five(constants[k]) @ inverse_motion(arcs[k], i)
            else:
                M = M @ motion(arcs[k], i) @ five(constants[k])
        expected = np.concatenate([M[:3, :4].ravel(), M[4, :4]])
        np.testing.assert_allclose(products.sides[number], expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("kinds", ["n", "nw", "tnw", "wtnt"])
@pytest.mark.parametrize("width", [4, 16])
def test_extremes_for_each_vertex_of_each_joint(kinds, width):
    rng = np.random.default_rng(4)
    box, arcs, products = chain(rng, kinds)
    multiplied(box, arcs, np.zeros((len(kinds), ROWS)), products, False)
    counts = [int(c) for c in arcs["count"]]
    values = rng.normal(size=(int(np.prod(counts)), width))
    low, high = np.empty_like(values), np.empty_like(values)
    blocks = np.empty((4 * len(kinds), width)), np.empty((4 * len(kinds), width))
    folded(values, products, low, high, *blocks)
    grid = values.reshape(*reversed(counts), width)  # the first joint is the last axis but one
    np.testing.assert_array_equal(low[0], values.min(axis=0))
    np.testing.assert_array_equal(high[0], values.max(axis=0))
    for t, count in enumerate(counts):
        for i in range(count):
            part = np.take(grid, i, axis=len(counts) - 1 - t).reshape(-1, width)
            np.testing.assert_array_equal(blocks[0][4 * t + i], part.min(axis=0))
            np.testing.assert_array_equal(blocks[1][4 * t + i], part.max(axis=0))


def test_squares_of_travels_lie_at_most_so_far_under_their_secants():
    rng = np.random.default_rng(5)
    box, arcs, _ = chain(rng, "tnt")
    factors = np.zeros(3, dtype=FACTOR)
    factors["variable"] = np.arange(3)
    sag = bent(box, arcs, factors)
    worst = 0.0
    for k in (0, 2):
        x = np.linspace(box.lower[k], box.upper[k], 1001)
        secant = box.lower[k] ** 2 + (box.lower[k] + box.upper[k]) * (x - box.lower[k])
        worst += (secant - x * x).max()
    assert sag >= worst
    assert sag == pytest.approx(worst, rel=1e-9)
