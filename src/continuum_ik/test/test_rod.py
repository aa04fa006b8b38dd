"""The reduced rod equations against the full ones."""

import numpy as np
import pytest
from continuum_oracle import shoot18
from hypothesis import given
from hypothesis import strategies as st

from continuum_ik import ContinuumSolver, Rod, layout, rod
from continuum_ik.equations import plan_steps

SOFT = Rod(radius=0.002, youngs_modulus=60e9, shear_modulus=60e9 / 2.0)  # c = 0 would be G = E


def block(one, n, m0, L):
    rods = np.zeros((), rod.RODS_RECORD).view(np.recarray)
    rods.y[:3], rods.y[3:5], rods.y[5] = np.reshape(n, (3, 1)), np.reshape(m0, (2, 1)), L
    rods.inv_EI = 1.0 / one.bending_stiffness
    rods.c = 1.0 / one.axial_stiffness - 1.0 / one.shear_stiffness
    rods.inv_GA = 1.0 / one.shear_stiffness
    return rods[()]


def ends(rods):
    return rods.p[:, 0], rods.t[:, 0], rods.m[:, 0]


small = st.floats(-1.0, 1.0)


@given(
    n=st.tuples(small, small, small),
    m0=st.tuples(small, small),
    L=st.floats(0.05, 0.9),
    one=st.sampled_from([Rod(), SOFT]),
)
def test_reduced_rod_is_the_full_rod(n, m0, L, one):
    """p, t and m at the tip agree with the 18-state equations, whatever the direction of n."""
    EI = one.bending_stiffness
    n = 12.0 * EI / L**2 * np.array(n)
    m0 = 3.0 * EI / L * np.array(m0)
    w = block(one, n, m0, L)
    rod.shoot(w, 40)
    p, R, m = shoot18(one, n, m0, L)
    ours = ends(w)
    np.testing.assert_allclose(ours[0] / L, p / L, atol=2e-11)
    np.testing.assert_allclose(ours[1], R[:, 2], atol=2e-11)
    np.testing.assert_allclose(ours[2] * L / EI, m * L / EI, atol=5e-10)


@pytest.mark.parametrize(
    "n", [(0, 0, 0), (0, 0, 1.0), (0, 0, -1.0), (1.0, 0, 0), (0, 1e-12, -1e-300), (1e-200, 0, 0)]
)
def test_directions_where_the_frame_along_n_could_fail(n):
    w = block(Rod(), n, (0.02, -0.01), 0.5)
    rod.shoot(w, 30)
    p, R, m = shoot18(Rod(), n, (0.02, -0.01), 0.5)
    np.testing.assert_allclose(np.concatenate(ends(w)), np.concatenate([p, R[:, 2], m]), atol=1e-12)


def test_invariants_of_a_rod():
    """|t| = 1, m.t = 0, and the energy |m|^2/2EI + n.t + c (n.t)^2/2 is conserved."""
    one = Rod()
    n, m0 = np.array([0.4, -0.7, 1.5]), np.array([0.03, 0.02])
    w = block(one, n, m0, 0.6)
    rod.shoot(w, 48)
    _, t, m = ends(w)
    c = w.c[0]
    assert abs(np.linalg.norm(t) - 1.0) < 1e-11
    assert abs(m @ t) < 1e-12
    before = m0 @ m0 / (2 * one.bending_stiffness) + n[2] + c * n[2] ** 2 / 2
    after = m @ m / (2 * one.bending_stiffness) + n @ t + c * (n @ t) ** 2 / 2
    assert abs(before - after) < 1e-10


def test_order_eight():
    n, m0, L = np.array([-0.2, 0.5, 2.5]), np.array([-0.05, -0.02]), 0.585
    exact = np.concatenate(shoot18(Rod(), n, m0, L)[:1])
    errors = []
    for steps in (4, 8):
        w = block(Rod(), n, m0, L)
        rod.shoot(w, steps)
        errors.append(np.abs(ends(w)[0] - exact).max())
    assert 2**6.5 < errors[0] / errors[1] < 2**9.5


@pytest.mark.parametrize("tolerance", [1e-6, 1e-12])
def test_step_count_follows_the_load(tolerance):
    """Random rods, bent as hard as you like: the steps planned keep the error that is allowed."""
    rng = np.random.default_rng(3)
    w = ContinuumSolver(tolerance=tolerance).named[()]
    one = Rod()
    EI = one.bending_stiffness
    seen = []
    for _ in range(60):
        L = rng.uniform(0.2, 0.8)
        n = rng.normal(size=3)
        n *= rng.uniform(0.0, 25.0) * EI / L**2 / np.linalg.norm(n)
        m0 = rng.normal(size=2) * EI / L
        w.rods = block(one, n, m0, L)
        w.rules[0].step_measured = -1.0
        plan_steps(w)
        steps = int(w.steps)
        seen.append(steps)
        rod.shoot(w.rods, steps)
        fine = block(one, n, m0, L)
        rod.shoot(fine, 150)
        if steps < layout.STEPS_MAX:
            off = max(np.abs(w.rods.p - fine.p).max(), np.abs(w.rods.t - fine.t).max())
            assert off < 2.0 * w.rules[0].step_error
    assert max(seen) > 2 * min(seen)
