"""Enclosures of the loop equations hold their values at points, and are as narrow as their box."""

import numpy as np
import pytest

from benchmarks.baselines.cuik_completeness import planted_loop
from kin_solvers import library
from kin_solvers.enclosures import enclose, tables_of
from kin_solvers.equations import Equations
from kin_solvers.system import System


def enclosed(system, lower, upper):
    rows, n = 6 * len(system.point), system.size
    F, J, H = np.empty((rows, 2)), np.empty((rows, n, 2)), np.empty((rows, n, n, 2))
    near = enclose(tables_of(system), lower, upper, F, J, H)
    return F, J, H, near


def systems():
    for name in ("bennett", "scara", "three_rpr", "stewart", "puma560"):
        yield System.of(library.get(name))
    for seed in range(4):
        yield System.of(planted_loop(np.random.default_rng(seed), 5, point=seed % 2 == 0)[0])


def holds(interval, value, slack):
    return ((interval[..., 0] - slack <= value) & (value <= interval[..., 1] + slack)).all()


@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-3, 0.3])
def test_values_jacobians_and_second_derivatives_at_points(size):
    rng = np.random.default_rng(1)
    for system in systems():
        equations = Equations(system)
        middle = rng.uniform(-1.0, 1.0, system.size)
        F, J, H, _ = enclosed(system, middle - size, middle + size)
        for _ in range(5):
            q = middle + size * rng.uniform(-1.0, 1.0, system.size)
            value, slope = equations(q)
            # What numpy's evaluation itself is off by.
            assert holds(F, value, 1e-13)
            assert holds(J, slope, 1e-13)
            step = 1e-6
            for k in range(system.size):
                ahead, behind = (equations(q + s * step * np.eye(system.size)[k])[1]
                                 for s in (1.0, -1.0))  # fmt: skip
                assert holds(H[:, :, k], (ahead - behind) / (2.0 * step), 1e-8)


def test_the_width_follows_that_of_the_box():
    system = System.of(library.get("puma560"))
    x = np.full(6, 0.3)
    F, J, H, _ = enclosed(system, x, x)
    assert max(np.ptp(F, axis=-1).max(), np.ptp(J, axis=-1).max(), np.ptp(H, axis=-1).max()) < 1e-12
    wide = enclosed(system, x - 1e-3, x + 1e-3)[0]
    assert 1e-4 < np.ptp(wide, axis=-1).max() < 0.1


def test_a_half_turn_is_not_near_the_identity():
    system = System.of(library.get("puma560"))
    q = Equations(system).newton(np.array([0.3, -0.7, 0.9, 0.4, 0.8, -0.5]))
    assert q is not None
    assert enclosed(system, q, q)[3]
    flipped = q.copy()
    flipped[5] += np.pi
    assert not enclosed(system, flipped, flipped)[3]
