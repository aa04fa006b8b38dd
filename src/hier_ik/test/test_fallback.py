"""Sparse and dense ways to take the step of a component give the same step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hier_ik.dense import CholeskyStep, SvdStep
from hier_ik.fallback import SparseStep


@pytest.mark.parametrize("method", [SparseStep, CholeskyStep, SvdStep])
@given(seed=st.integers(0, 10_000))
def test_two_levels_are_met_in_order(method, seed):
    """The first level exactly, the second as far as the null space of the first allows."""
    rng = np.random.default_rng(seed)
    n, first, second = 8, 3, 7
    J = rng.normal(size=(first + second, n)) * (rng.random((first + second, n)) < 0.8)
    J[:first, :first] += 2.0 * np.eye(first)
    pattern = np.ones_like(J, bool)
    indptr = np.concatenate([[0], np.cumsum(pattern.sum(axis=1))])
    indices = np.nonzero(pattern)[1]
    levels = [slice(0, first), slice(first, first + second)]
    e = rng.normal(size=first + second)
    solver = method(indptr, indices, n, levels)
    dq = solver.solve(J.ravel(), e, [0.0, 0.0], np.zeros(n, np.int64))
    assert np.abs(e[:first] + J[:first] @ dq).max() < 1e-5
    null = np.linalg.svd(J[:first])[2][np.linalg.matrix_rank(J[:first]) :].T
    reach = J[first:] @ null
    left = e[first:] + J[first:] @ dq
    assert np.abs(reach.T @ left).max() < 1e-4
