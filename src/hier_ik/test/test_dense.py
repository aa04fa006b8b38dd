"""The dense ways to take a step, against least squares by numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hier_ik.dense import CholeskyStep, SvdStep

METHODS = [CholeskyStep, SvdStep]


def dense(rows, columns):
    """The pattern of a full matrix."""
    return np.arange(rows + 1) * columns, np.tile(np.arange(columns), rows)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=25, deadline=None)
@given(rows=st.integers(1, 9), columns=st.integers(1, 9), seed=st.integers(0, 10**6))
def test_one_level_is_damped_least_squares(method, rows, columns, seed):
    rng = np.random.default_rng(seed)
    J, e = rng.normal(size=(rows, columns)), rng.normal(size=rows)
    step = method(*dense(rows, columns), columns, [slice(0, rows)])
    dq = step.solve(J.ravel(), e, [1e-3], np.zeros(columns, np.int64))
    # Each takes the damping as a share of its own measure of J: find it, then it is the minimum.
    scales = {
        "columns": np.sum(J * J, axis=0).max(),
        "rows": np.sum(J * J, axis=1).max(),
        "singular": np.linalg.norm(J, 2) ** 2,
    }
    best = min(
        np.abs(dq + np.linalg.solve(J.T @ J + 1e-3 * s * np.eye(columns), J.T @ e)).max()
        for s in scales.values()
    )
    assert best <= 1e-8 * max(1.0, np.abs(dq).max())


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=25, deadline=None)
@given(first=st.integers(1, 3), second=st.integers(1, 4), seed=st.integers(0, 10**6))
def test_a_second_level_leaves_the_first_as_it_was(method, first, second, seed):
    rng = np.random.default_rng(seed)
    n, m = 7, first + second
    J, e = rng.normal(size=(m, n)), rng.normal(size=m)
    levels = [slice(0, first), slice(first, m)]
    free = np.zeros(n, np.int64)
    both = method(*dense(m, n), n, levels).solve(J.ravel(), e, [0.0, 0.0], free)
    alone = method(*dense(first, n), n, levels[:1]).solve(J[:first].ravel(), e[:first], [0.0], free)
    np.testing.assert_allclose(J[:first] @ both, J[:first] @ alone, atol=2e-5)
    assert np.abs(J @ both + e).max() < 2e-4  # seven freedoms for at most seven rows


@pytest.mark.parametrize("method", METHODS)
def test_what_is_held_does_not_move(method):
    rng = np.random.default_rng(0)
    J, held = rng.normal(size=(3, 5)), np.array([0, 1, 0, 0, 1])
    J[:, held != 0] = 0.0
    step = method(*dense(3, 5), 5, [slice(0, 3)])
    dq = step.solve(J.ravel(), rng.normal(size=3), [1e-4], held)
    assert (dq[held != 0] == 0.0).all()
    assert (dq[held == 0] != 0.0).all()
