"""Factors, limits and the damping of compiled steps, against plain numpy."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hier_ik import Solver
from hier_ik.steps import (
    DAMPING_MAX,
    DAMPING_MIN,
    apply_step,
    cholesky,
    cholesky_solve,
    damp_more,
    follow_gain,
    largest_step,
    limit_step,
)

sys.path.insert(0, str(Path(__file__).parent))
from random_linkages import chain_with

seeds = st.integers(0, 10_000)


@given(seed=seeds, n=st.integers(1, 12))
def test_cholesky_solves_as_numpy_does(seed, n):
    rng = np.random.default_rng(seed)
    J = rng.normal(size=(n + 2, n))
    A, b = J.T @ J + 1e-3 * np.eye(n), rng.normal(size=n)
    work = np.concatenate([np.zeros(3), np.tril(A).ravel(), b])  # only the lower half is read
    cholesky(work, 3, n)
    cholesky_solve(work, 3, n, 3 + n * n)
    np.testing.assert_allclose(work[3 + n * n :], np.linalg.solve(A, b), rtol=1e-8, atol=1e-10)


def component_of(seed):
    """A chain with limits, its only component, and a step in its workspace."""
    rng = np.random.default_rng(seed)
    linkage = chain_with(["revolute", "prismatic", "universal"], "revolute", rng)
    for name in list(linkage.values):
        q = linkage.values[name]
        linkage.set_limits(
            name, q - rng.uniform(0.0, 0.2, len(q)), q + rng.uniform(0.0, 0.2, len(q))
        )
    t = Solver(linkage).tables
    c = t.components[0]
    n = c["columns"]
    t.index[c["held"] : c["held"] + n] = 0
    t.work[c["dq"] : c["dq"] + n] = rng.normal(scale=0.3, size=n)
    return t, c, t.index[c["freedom_begin"] : c["freedom_end"]]


@given(seed=seeds)
def test_a_limited_step_is_a_shorter_one_that_ends_within_the_limits(seed):
    t, c, columns = component_of(seed)
    dq = t.work[c["dq"] : c["dq"] + len(columns)]
    held = t.index[c["held"] : c["held"] + len(columns)]
    wanted, q = dq.copy(), t.freedoms["q"][columns].copy()
    low, high = t.freedoms["low"][columns], t.freedoms["high"][columns]
    scale = min(1.0, 1.0 / np.max(np.abs(wanted) / t.freedoms["step_max"][columns]))
    new = limit_step(t.freedoms, t.index, t.work, c)
    np.testing.assert_allclose(dq, np.clip(q + scale * wanted, low, high) - q, atol=1e-15)
    outside = (q + scale * wanted > high) | (q + scale * wanted < low)
    np.testing.assert_array_equal(held != 0, outside)
    assert new == outside.sum()
    most = t.freedoms["step_max"][columns]
    assert largest_step(t.freedoms, t.index, t.work, c, c["dq"]) == np.max(np.abs(dq) / most)
    apply_step(t.freedoms, t.index, t.work, c, c["dq"])
    after = t.freedoms["q"][columns]
    np.testing.assert_array_equal(after, np.clip(q + dq, low, high))


def test_damping_follows_the_gain_and_stays_within_its_bounds():
    _, c, _ = component_of(0)
    for gain, change in ((1.0, 0.25), (0.5, 1.0), (0.1, 4.0)):
        c["damping"] = 1e-3
        follow_gain(c, gain)
        assert c["damping"] == 1e-3 * change
    for _ in range(60):
        follow_gain(c, 1.0)
    assert c["damping"] == DAMPING_MIN
    for _ in range(60):
        damp_more(c, 1.0)
    assert c["damping"] == DAMPING_MAX
