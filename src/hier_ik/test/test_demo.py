"""The built-in motion: an ellipse through where the goal was."""

from __future__ import annotations

import numpy as np
import pytest

from hier_ik import Solver, tower
from hier_ik.demo import CircleDemo


def test_the_goal_runs_around_an_ellipse_once_per_period():
    solver = Solver(tower(2))
    start = solver.linkage.goals["drag"].target.copy()
    demo = CircleDemo(5.0)
    places = []
    for k in range(9):
        demo.move(solver, 5.0 + k * 0.75, 0.4, 6.0)
        target = solver.linkage.goals["drag"].target
        np.testing.assert_array_equal(target[:3, :3], start[:3, :3])
        places.append(target[:3, 3])
    d = np.array(places) - (start[:3, 3] - (0.0, 0.0, 0.4))
    assert (d[0] == pytest.approx((0.0, 0.0, 0.2))) and (d[8] == pytest.approx(d[0]))
    np.testing.assert_allclose((d[:, 0] / 0.4) ** 2 + (d[:, 2] / 0.2) ** 2, 1.0)
    np.testing.assert_array_equal(d[:, 1], 0.0)


def test_a_linkage_without_the_goal_stays_as_it_is():
    solver = Solver(tower(1, goal=False))
    CircleDemo(0.0).move(solver, 1.0, 0.4, 6.0)
    assert not solver.linkage.goals
