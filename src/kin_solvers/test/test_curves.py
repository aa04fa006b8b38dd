"""Curves of solutions: on the set, in order, to both ends, and on one sheet."""

import math

import numpy as np
import pytest

from kin_solvers import library
from kin_solvers.curves import passes, trace
from kin_solvers.dh import arm_from_dh
from kin_solvers.equations import Equations
from kin_solvers.system import System


def no_limits(n):
    return np.full(n, -np.inf), np.full(n, np.inf)


@pytest.mark.parametrize("name", ["bennett", "planar_four_bar", "iiwa7"])
def test_a_closed_curve_is_on_the_set_and_its_neighbours_are_near(name):
    system = System.of(library.get(name))
    equations = Equations(system)
    rng = np.random.default_rng(0)
    start = None
    while start is None:
        start = equations.newton(rng.uniform(-math.pi, math.pi, system.size))
    for step in (0.02, 0.1):
        curve = trace(equations, start, step=step, limits=no_limits(system.size))
        assert curve.closed
        assert not curve.singular
        assert max(np.abs(equations(q)[0]).max() for q in curve.points) < 1e-9
        gaps = np.diff(curve.points, axis=0)
        assert np.linalg.norm(gaps, axis=1).max() <= 1.2 * step
        # The steps follow the kernel of the Jacobian.
        for q, gap in zip(curve.points[:-1], gaps, strict=True):
            along = np.linalg.norm(equations(q)[1] @ gap) / np.linalg.norm(gap)
            assert along < 3.0 * step
        last = np.remainder(curve.points[-1] - curve.points[0] + math.pi, 2 * math.pi) - math.pi
        assert np.linalg.norm(last) <= 1.2 * step


def test_an_open_curve_ends_where_a_range_ends():
    system = System.of(library.get("bennett"))
    equations = Equations(system)
    start = equations.pinned(np.array([0.5, 2.5, -0.5, -2.5]), np.eye(4)[0], 0.5)
    assert start is not None
    lower, upper = no_limits(4)
    lower[0], upper[0] = 0.2, 0.9
    curve = trace(equations, start, step=0.05, limits=(lower, upper))
    assert not curve.closed
    ends = sorted([curve.points[0, 0], curve.points[-1, 0]])
    assert ends == pytest.approx([0.2, 0.9], abs=1e-8)


def nearly_straight(bend):
    """An arm of seven joints with its elbow nearly straight: two sheets, 2 x bend apart."""
    arm = arm_from_dh(
        "seven", np.zeros(7), np.radians([-90.0, 90.0, 90.0, -90.0, -90.0, 90.0, 0.0]),
        [0.36, 0.0, 0.42, 0.0, 0.4, 0.0, 0.126], q=[0.3, 1.2, -0.6, bend, 0.9, -1.7, 0.3],
    )  # fmt: skip
    return Equations(System.of(arm)), np.array([0.3, 1.2, -0.6, bend, 0.9, -1.7, 0.3])


@pytest.mark.parametrize("bend", [0.1, 0.02, 0.004])
@pytest.mark.parametrize("step", [0.2, 0.02])
def test_a_curve_stays_on_its_sheet(bend, step):
    equations, q = nearly_straight(bend)
    curve = trace(equations, q, step=step, limits=no_limits(7))
    assert curve.closed
    assert np.abs(curve.points[:, 3] - bend).max() < 1e-9
    starts, _ = equations.across_folds(1, q[None], np.full((1, 7), 0.3))
    found, came = equations.newton_all(starts)
    other = found[came & (np.abs(found[:, 3] + bend) < 1e-6)]
    assert len(other) > 0
    points = curve.points[:: max(1, len(curve.points) // 20)]
    between = np.array([equations.newton(0.5 * (a + b)) for a, b in
                        zip(curve.points[:10], curve.points[1:11], strict=True)])  # fmt: skip
    assert passes(equations, curve, points, step).all()
    assert passes(equations, curve, between, step).all()
    assert not passes(equations, curve, other, step).any()
