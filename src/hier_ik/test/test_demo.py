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


def test_several_goals_run_in_turn_within_a_quarter_of_their_distance():
    linkage = tower(2)
    linkage.add_goal("middle", "P1", "position")
    linkage.add_goal("drag:P1", "P1", "position", target=(0.1, 0.0, 0.7))
    linkage.add_goal("below", "P2", "position", target=(0.0, 0.0, -1.0))
    solver, demo = Solver(linkage), CircleDemo(0.0)
    demo.move(solver, 0.0, 0.5, 6.0)
    at = {name: goal.target[:3, 3] for name, goal in solver.linkage.goals.items()}
    np.testing.assert_allclose(at["drag"], (0.0, 0.0, 1.6 - 0.4 + 0.2))
    third = 2 * np.pi / 3
    np.testing.assert_allclose(
        at["middle"], (0.2 * np.sin(third), 0.0, 0.8 - 0.2 + 0.1 * np.cos(third)), atol=1e-12
    )
    assert at["below"][2] == pytest.approx(-0.75 + 0.125 * np.cos(2 * third))
    np.testing.assert_array_equal(at["drag:P1"], (0.1, 0.0, 0.7))  # somebody drags it


def test_a_linkage_without_the_goal_stays_as_it_is():
    solver = Solver(tower(1, goal=False))
    CircleDemo(0.0).move(solver, 1.0, 0.4, 6.0)
    assert not solver.linkage.goals
