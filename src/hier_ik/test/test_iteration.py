"""The compiled loop: many iterations at once are the same as one by one."""

from __future__ import annotations

import numpy as np
import pytest

from hier_ik import Linkage, Solver, tower
from hier_ik.iteration import relax, run


def pulled(mode="hierarchical"):
    solver = Solver(tower(3), mode)
    target = solver.poses(["P3"])["P3"]
    target[:3, 3] += (0.3, 0.0, -0.1)
    solver.set_goal("drag", target)
    return solver


def go(solver, count, tolerance=1e-9, flag=0):
    history = np.zeros(count)
    t = solver.tables
    made = run(
        t.as_tuple(), 0.0, 0, len(t.rounds), count, tolerance, np.array([flag]), history
    )  # fmt: skip
    return made, history[:made]


@pytest.mark.parametrize("mode", ["hierarchical", "flat_structured"])
def test_iterations_at_once_are_bit_for_bit_those_one_by_one(mode):
    together, apart = pulled(mode), pulled(mode)
    made, history = go(together, 8, tolerance=0.0)
    single = [go(apart, 1, tolerance=0.0)[1][0] for _ in range(made)]
    assert history.tolist() == single
    np.testing.assert_array_equal(together.q, apart.q)


def test_a_run_ends_at_the_tolerance_or_at_once_if_it_is_to_stop():
    made, history = go(pulled(), 50)
    assert made < 10
    assert history[-1] <= 1e-9 < history[-2]
    stopped = pulled()
    before = stopped.q
    assert go(stopped, 50, flag=1)[0] == 0
    np.testing.assert_array_equal(stopped.q, before)


def test_what_nothing_holds_goes_to_its_rest_within_its_limits():
    linkage = Linkage()
    linkage.add_link("a")
    for name, upper in (("free", None), ("limited", 0.5)):
        linkage.add_link(name)
        linkage.add_joint(
            name, "revolute", "a", name, closure=False, rest=1.0, upper=upper, value=0.2
        )
    solver = Solver(linkage)
    freedoms = solver.tables.freedoms
    steps = [relax(freedoms, 0.25) for _ in range(200)]
    assert steps[0] > 0.0
    assert steps[-1] < 1e-9
    assert solver.q.tolist() == pytest.approx([1.0, 0.5])
    assert relax(freedoms, 0.0) == 0.0
