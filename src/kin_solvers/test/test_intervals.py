"""Interval operations against mpmath: what they say always holds the true value."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from kin_solvers import intervals

mp.mp.dps = 60

finite = st.floats(min_value=-1e100, max_value=1e100, allow_subnormal=True)
tiny = st.floats(min_value=-1e-300, max_value=1e-300, allow_subnormal=True)
numbers = finite | tiny
angles = st.floats(min_value=-1e6, max_value=1e6)
#: Multiples of a quarter turn, and the doubles around them.
corners = st.builds(
    lambda k, away: k * (math.pi / 2) + away * math.ulp(k * (math.pi / 2) or 1.0),
    st.integers(-4000, 4000),
    st.integers(-8, 8),
)


@njit
def times(a, b, c, d):
    return intervals.times(a, b, c, d)


@njit
def plus_product(low, high, a, b, c, d):
    return intervals.plus_product(low, high, a, b, c, d)


@njit
def cosine(a, b):
    return intervals.cosine(a, b)


@njit
def sine(a, b):
    return intervals.sine(a, b)


@njit
def multiply(A, B, translate):
    out = np.empty((3, 4, 2))
    intervals.multiply(A, B, translate, out)
    return out


@njit
def combine(rows, X):
    out = np.empty((rows.shape[0], X.shape[1], 2))
    intervals.combine(rows, X, out)
    return out


def within(value, interval):
    return mp.mpf(interval[0]) <= value <= mp.mpf(interval[1])


@given(st.tuples(numbers, numbers).map(sorted), st.tuples(numbers, numbers).map(sorted))
def test_a_product_holds_every_product_of_its_parts(x, y):
    got = times(*x, *y)
    for a in (*x, 0.5 * x[0] + 0.5 * x[1]):
        for b in (*y, 0.5 * y[0] + 0.5 * y[1]):
            assert within(mp.mpf(a) * mp.mpf(b), got)


@given(numbers, numbers, numbers)
def test_a_sum_holds_the_exact_one_where_it_cancels_too(a, b, c):
    got = plus_product(c, c, a, a, b, b)
    assert within(mp.mpf(c) + mp.mpf(a) * mp.mpf(b), got)
    cancelled = plus_product(-got[0], -got[0], a, a, b, b)
    assert within(mp.mpf(a) * mp.mpf(b) - mp.mpf(got[0]), cancelled)


@pytest.mark.parametrize(("compiled", "exact"), [(cosine, mp.cos), (sine, mp.sin)])
@given(start=angles | corners | tiny, width=st.floats(0.0, 8.0) | st.floats(0.0, 1e-12))
def test_cosines_and_sines_hold_their_range(compiled, exact, start, width):
    end = start + width
    got = compiled(start, end)
    assert -1.0 <= got[0] <= got[1] <= 1.0
    inside = [mp.mpf(start) + (mp.mpf(end) - mp.mpf(start)) * k / 16 for k in range(17)]
    # The extremes lie at multiples of pi/2.
    first = int(mp.ceil(2 * mp.mpf(start) / mp.pi))
    last = int(mp.floor(2 * mp.mpf(end) / mp.pi))
    inside += [k * mp.pi / 2 for k in range(first, last + 1)]
    assert all(within(exact(x), got) for x in inside)


@given(angles | corners)
def test_cosines_and_sines_of_points_are_tight(x):
    for got in (cosine(x, x), sine(x, x)):
        assert got[1] - got[0] < 3e-15 + 2e-15 * abs(x)


@pytest.mark.parametrize("translate", [True, False])
def test_products_of_maps_and_combinations_hold_those_of_points(translate):
    rng = np.random.default_rng(3)
    for _ in range(50):
        A, B = rng.normal(size=(2, 3, 4))
        radius = 10.0 ** rng.uniform(-16.0, 0.0)
        boxes = [np.stack([M - radius, M + radius], axis=-1) for M in (A, B)]
        got = multiply(*boxes, translate)
        a, b = (M + radius * rng.uniform(-1.0, 1.0, M.shape) for M in (A, B))
        last = [[0.0, 0.0, 0.0, 1.0 if translate else 0.0]]
        exact = mp.matrix(a.tolist()) * mp.matrix(np.concatenate([b, last]).tolist())
        assert all(within(exact[r, c], got[r, c]) for r in range(3) for c in range(4))
        rows = rng.normal(size=(2, 3))
        exact = mp.matrix(rows.tolist()) * mp.matrix(b.tolist())
        got = combine(rows, boxes[1])
        assert all(within(exact[r, c], got[r, c]) for r in range(2) for c in range(4))
