"""Residuals and Jacobians against plain products of matrices."""

import math

import numpy as np
import pytest

from kin_solvers import Constant, Loop, Mechanism, Motion, Variable, library
from kin_solvers.equations import Equations, independent_rows
from kin_solvers.mechanism import translation
from kin_solvers.system import System


def plain(system, q):
    """Residuals of every loop by 4 x 4 products."""
    rows = []
    for l, point in enumerate(system.point):
        M = np.eye(4)
        for f in range(system.offsets[l], system.offsets[l + 1]):
            k = system.factor_variable[f]
            Z = np.eye(4)
            if system.translation[k]:
                Z[2, 3] = q[k]
            else:
                c, s = math.cos(q[k]), math.sin(q[k])
                Z[:2, :2] = [[c, -s], [s, c]]
            M = M @ Z @ np.vstack([system.C[f, :12].reshape(3, 4), [0.0, 0.0, 0.0, 1.0]])
        R = M[:3, :3]
        turn = 0.5 * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
        first = system.C_first[l, 3:12:4] if point else 0.0
        rows += [*(M[:3, 3] - first), *(np.zeros(3) if point else turn)]
    return np.array(rows)


@pytest.mark.parametrize("name", ["bennett", "scara", "three_rpr", "stewart", "puma560"])
def test_residuals_and_jacobians(name):
    system = System.of(library.get(name))
    equations = Equations(system)
    rng = np.random.default_rng(0)
    for _ in range(10):
        q = rng.uniform(-2.0, 2.0, system.size)
        F, J = equations(q)
        assert pytest.approx(plain(system, q), abs=1e-12) == F
        for k, unit in enumerate(1e-6 * np.eye(system.size)):
            slope = (plain(system, q + unit) - plain(system, q - unit)) / 2e-6
            assert J[:, k] == pytest.approx(slope, abs=1e-8)


def test_newton_comes_to_solutions_alone():
    system = System.of(library.get("puma560"))
    equations = Equations(system)
    starts = np.random.default_rng(1).uniform(-math.pi, math.pi, (200, 6))
    q, came = equations.newton_all(starts)
    assert came.sum() > 10
    for x in q[came]:
        assert np.abs(plain(system, x)).max() < 1e-8
        assert equations.newton(x) is not None


def test_a_pinned_solution_lies_in_its_plane():
    equations = Equations(System.of(library.get("bennett")))
    direction = np.array([0.6, 0.0, 0.8, 0.0])
    q = equations.pinned(np.array([0.5, 2.5, -0.5, -2.5]), direction, 0.1)
    assert q is not None
    assert direction @ q == pytest.approx(0.1, abs=1e-12)
    assert np.abs(equations(q)[0]).max() < 1e-11


def test_starts_across_a_fold_lead_to_the_other_sheet():
    """Two bars that are nearly stretched: the posture bent the other way."""
    bend = 0.01
    chain = [Motion(0), Constant(translation(0, 1.0)), Motion(1), Constant(translation(0, 1.0)),
             Motion(2), Constant(translation(0, -2.0 * math.cos(bend)))]  # fmt: skip
    bars = Mechanism("bars", tuple(Variable(n) for n in "abc"), (Loop(tuple(chain)),))
    equations = Equations(System.of(bars))
    q = equations.newton(np.array([bend, -2.0 * bend, bend]))
    assert q is not None
    starts, owner = equations.across_folds(0, q[None], np.full((1, 3), 0.1))
    assert (owner == 0).all()
    found, came = equations.newton_all(starts)
    assert np.abs(found[came] + q).max(axis=1).min() < 1e-9


@pytest.mark.parametrize(
    ("name", "count"),
    [("bennett", 6), ("spherical_four_bar", 3), ("planar_four_bar", 3), ("scara", 4)],
)
def test_independent_equations(name, count):
    assert len(independent_rows(System.of(library.get(name)))) == count
