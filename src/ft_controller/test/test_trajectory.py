"""Trajectories against scipy's splines, and limits against dense samples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import BPoly, CubicHermiteSpline

from ft_controller import Trajectory

SEEDS = st.integers(0, 2**32 - 1)
NONE = np.full((1, 2), np.nan)


def points(seed, count=None, joints=2):
    """Times from 0, and positions, velocities and accelerations at them."""
    random = np.random.default_rng(seed)
    count = count or int(random.integers(2, 9))
    times = np.append(0.0, np.cumsum(10.0 ** random.uniform(-2.0, 1.0, count - 1)))
    return times, *random.uniform(-2.0, 2.0, (3, count, joints))


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_pieces_are_the_splines_of_scipy(seed):
    t, p, v, a = points(seed)
    none = np.full_like(p, np.nan)
    dense = np.sort(np.append(np.random.default_rng(seed).uniform(0.0, t[-1], 30), t[:-1]))
    quintic = BPoly.from_derivatives(t, np.stack([p, v, a], axis=1))
    for oracle, made in (
        (CubicHermiteSpline(t, p, v), Trajectory.piecewise(t, p, v, none)),
        (quintic, Trajectory.piecewise(t, p, v, a)),
    ):
        scale = 1.0 + np.abs(oracle(dense, 2)).max()
        for x in dense:
            q, qdot, qddot = made.sample(x)
            assert q == pytest.approx(oracle(x), abs=1e-9)
            assert qdot == pytest.approx(oracle(x, 1), abs=1e-9 * scale)
            assert qddot == pytest.approx(oracle(x, 2), abs=1e-8 * scale)
    lines = Trajectory.piecewise(t, p, none, none)
    for x in dense:
        assert lines.sample(x)[0] == pytest.approx(
            [np.interp(x, t, p[:, i]) for i in range(2)], abs=1e-9
        )
        assert (lines.sample(x)[2] == 0.0).all()


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_each_piece_is_of_the_degree_that_its_ends_allow(seed):
    t, p, v, a = points(seed)
    random = np.random.default_rng(seed)
    fast, bent = random.random((2, len(t))) < 0.6
    v[~fast] = a[~fast] = np.nan
    a[~bent] = np.nan
    made = Trajectory.piecewise(t, p, v, a)
    for k in range(len(t) - 1):
        ends = slice(k, k + 2)
        both = np.isfinite(v[ends, 0]).all(), np.isfinite(a[ends, 0]).all()
        degree = {(False, False): 1, (True, False): 3, (True, True): 5}[both]
        assert (made.coefficients[k, degree + 1 :] == 0.0).all()
        assert np.abs(made.coefficients[k, degree]).max() > 0.0
        middle = 0.5 * (t[k] + t[k + 1])
        if degree == 5:
            whole = BPoly.from_derivatives(t[ends], np.stack([p, v, a], axis=1)[ends])(middle)
        elif degree == 3:
            whole = CubicHermiteSpline(t[ends], p[ends], v[ends])(middle)
        else:
            whole = p[ends].mean(axis=0)
        assert made.sample(middle)[0] == pytest.approx(whole, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_a_motion_with_more_points_is_the_same_motion(seed):
    t, p, v, a = points(seed)
    made = Trajectory.piecewise(t, p, v, a)
    more = np.random.default_rng(seed).uniform(0.0, 1.5 * t[-1], 5)
    split = made.split(more)
    assert set(more) <= set(split.times) and set(t) <= set(split.times)
    for x in np.linspace(0.0, t[-1] * (1.0 - 1e-9), 40):
        assert split.sample(x)[0] == pytest.approx(made.sample(x)[0], abs=1e-8)
    assert split.sample(2.0 * t[-1])[0] == pytest.approx(p[-1], abs=1e-8)
    rest = Trajectory.rest([1.0, 2.0]).split(np.array([0.5, 3.0]))
    assert rest.sample(1.0).tolist() == [[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]]


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.floats(0.3, 1.2))
def test_what_keeps_to_limits_is_accepted_and_nothing_else(seed, share):
    """A violation is a place where the motion is outside; without one no sample is."""
    t, p, v, a = points(seed)
    made = Trajectory.piecewise(t, p, v, a)
    dense = np.sort(np.append(np.linspace(0.0, t[-1], 4001), t))
    q, qdot = (np.array([made.sample(x)[k] for x in dense]) for k in (0, 1))
    low, high, fast = share * q.min(axis=0), share * q.max(axis=0), share * np.abs(qdot).max(axis=0)
    wide = np.full(2, 1e9)
    for limits, values, name in (
        ((np.minimum(low, -1e-3), np.maximum(high, 1e-3), wide), q, "positions"),
        ((-wide, wide, fast + 1e-3), qdot, "velocities"),
    ):
        found = made.violation(*limits, slack=0.0)
        lower, upper = (limits[0], limits[1]) if name == "positions" else (-limits[2], limits[2])
        beyond = np.maximum(lower - values, values - upper).max()
        if found is None:
            assert beyond <= 1e-6 * (1.0 + np.abs(values).max())
            continue
        assert found.field == name
        assert not found.low <= found.value <= found.high
        there = made.sample(min(found.time, t[-1] * (1.0 - 1e-12)))
        row = there[0 if name == "positions" else 1]
        assert row[found.joint] == pytest.approx(found.value, abs=1e-5 * (1.0 + abs(found.value)))
        assert t[found.piece] <= found.time <= t[found.piece + 1]


def test_an_overshoot_between_two_points_is_seen_however_short_it_is():
    # Between its points this one leaves 0..1 by 7e-5, for a hundredth of the time.
    t, p = np.array([0.0, 1.0, 2.0]), np.array([[0.5], [1.0], [0.5]])
    made = Trajectory.piecewise(t, p, np.array([[0.0], [0.02], [0.0]]), np.full((3, 1), np.nan))
    zero, one, fast = np.zeros(1), np.ones(1), np.full(1, 9.0)
    found = made.violation(zero, one, fast, slack=0.0)
    assert found is not None and found.value > 1.0
    top = max(made.sample(x)[0][0] for x in np.linspace(1.0, 1.02, 20_001))
    assert made.violation(zero, one * top + 1e-9, fast, slack=0.0) is None


def test_one_point_is_rest():
    made = Trajectory.piecewise(np.zeros(1), np.array([[1.0, 2.0]]), NONE, NONE)
    assert made.duration == 0.0 and made.sample(5.0)[0].tolist() == [1.0, 2.0]
    assert made.violation(np.zeros(2), np.ones(2), np.ones(2)).joint == 1
