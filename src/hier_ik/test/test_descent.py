"""Iterations over one compiled linkage: limits, levels, and what a descent leaves behind."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from hier_ik import Linkage, Solver, tower
from hier_ik.descent import Effort

sys.path.insert(0, str(Path(__file__).parent))
from small_mechanisms import mechanism, reachable_goal


def test_a_descent_stays_in_its_box_and_has_nothing_to_do_twice():
    met = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        linkage = mechanism(rng)
        reachable_goal(rng, linkage, 0.3)
        descent = Solver(linkage).descent
        descent.box(None)
        f = descent.tables.freedoms
        effort = Effort(1e-9, 200)
        descent.descend(effort)
        assert (f["q"] >= f["low"]).all()
        assert (f["q"] <= f["high"]).all()
        if not descent.met(1e-9):
            continue
        met += 1
        before = descent.q.copy()
        again = Effort(1e-9, 200)
        assert descent.descend(again)
        assert len(again.history) <= 2
        np.testing.assert_allclose(descent.q, before, atol=1e-8)
    assert met >= 6


@pytest.mark.parametrize("step_time", [None, 0.1, 2.0])
def test_the_box_is_within_limits_and_what_a_velocity_allows(step_time):
    linkage = Linkage()
    linkage.add_link("l0")
    for i, (value, locked) in enumerate([(0.0, False), (0.9, False), (3.0, False), (3.0, True)]):
        linkage.add_link(f"l{i + 1}")
        linkage.add_joint(
            f"j{i}", "revolute", f"l{i}", f"l{i + 1}", closure=False, lower=-1.0, upper=1.0,
            velocity=2.0, value=value, locked=locked,
        )  # fmt: skip
    descent = Solver(linkage).descent
    q = descent.q
    q[:] = (0.0, 0.9, 3.0, 3.0)
    descent.box(step_time)
    if step_time is None:
        assert q.tolist() == [0.0, 0.9, 1.0, 3.0]
        return
    reach = 2.0 * step_time
    assert q.tolist() == pytest.approx([0.0, 0.9, max(1.0, 3.0 - reach), 3.0])
    f = descent.tables.freedoms
    assert f["low"][0] == pytest.approx(max(-1.0, -reach))
    assert f["high"][1] == pytest.approx(min(1.0, 0.9 + reach))
    assert f["low"][3] == f["high"][3] == 3.0


def test_the_largest_residual_of_each_level_is_that_of_its_tasks():
    solver = Solver(tower(2))
    solver.set_goal("drag", (0.4, 0.0, 9.0))
    levels = sorted({r.level for r in solver.residuals()})
    of_level = [max(r.size for r in solver.residuals() if r.level == l) for l in levels]
    assert solver.descent.by_level() == pytest.approx(of_level)
    assert not solver.descent.met(1e-9)
    assert solver.descent.met(100.0)


def test_higher_levels_are_met_again_after_a_lower_one_has_opened_them():
    solver = Solver(tower(2), "flat_structured")
    descent = solver.descent
    closed = descent.q.copy()
    descent.q[:] += 0.05
    descent.hold_levels(closed, 1e-9, 100)
    assert max(descent.by_level()[:-1]) <= 1e-9


def test_a_descent_that_is_to_stop_moves_nothing():
    descent = Solver(tower(1)).descent
    descent.q[:] += 0.01
    before = descent.q.copy()
    assert not descent.descend(Effort(1e-12, 50, flag=np.ones(1, np.int64)))
    np.testing.assert_array_equal(descent.q, before)
