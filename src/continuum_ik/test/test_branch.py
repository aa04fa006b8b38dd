"""Random robots: the answer does not depend on how the path is cut, nor on the tolerance."""

import branch_campaign
import numpy as np
import pytest
from branch_campaign import TOLERANCES, Verdict, campaign, kind, robot_of, solve_cut

from continuum_ik import ContinuumSolver


def test_cuts_tolerances_tracer_and_stability_agree():
    """The small form of branch_campaign.py, with other robots than that begins with."""
    found = campaign(5, 4, found=Verdict(1000), cuts=(1, 17, 100))
    assert found.poses == 20
    assert not found.different
    assert not found.wrong
    assert not found.unstable
    assert found.untold <= 1
    assert found.solved >= 4
    assert sum(found.ends.values()) >= 4
    assert found.leg_error < 1e-9


@pytest.mark.parametrize("tolerance", TOLERANCES)
def test_what_does_not_settle_at_once_is_no_fold(tolerance):
    """One rod is so tense here that differences of a fixed size made Newton's method creep.

    At 1e-12 the path then seemed to end at a fold at 95 % of the way.
    """
    robot, poses = robot_of(0, 9)
    solver = ContinuumSolver(robot, tolerance, detours=False)
    for cut in (1, 50):
        result = solve_cut(solver, poses[-1], cut)[0].check()
        np.testing.assert_allclose(result.lengths[:3], [0.6031, 0.5850, 0.6148], atol=2e-4)
        assert result.stable


#: Robot, pose, how the path ends, and the part of it that the tracer reaches.
TENSE = {
    "x = 10, told as 14 %": (8, 0, "fold", 0.51629),
    "x = 13, told as 39 %": (19, 6, "fold", 0.57931),
    "told as 37 %": (47, 4, "fold", 0.57650),
    "told as 40 %": (49, 2, "fold", 0.52550),
    "x = 16, told as not stable at 20 %": (58, 2, "fold", 0.81620),
    "x = 16, told as not stable at 26 %": (58, 6, "", 1.0),
    "x = 17, told as not stable at 34 %": (28, 8, "", 1.0),
}


@pytest.mark.parametrize("case", TENSE)
def test_tense_rods_end_where_the_tracer_does(case):
    """Where a rod has x = L sqrt(n / EI) of 10 and more, its tip goes by exp(x) with the unknowns.

    One-sided differences lost the Jacobian's other directions in that. Steps along the path became
    short, and what was told of its end was what had been reached before they did.
    """
    number, k, end, part = TENSE[case]
    robot, poses = robot_of(number, k + 1)
    for tolerance in TOLERANCES:
        result, reached = solve_cut(ContinuumSolver(robot, tolerance, detours=False), poses[k], 1)
        assert kind(result) == end
        assert reached == pytest.approx(part, abs=2e-3)


def test_robots_differ_and_the_same_number_is_the_same_robot():
    robots = [robot_of(k, 0)[0] for k in (3, 3, 4)]
    np.testing.assert_array_equal(robots[0].platform, robots[1].platform)
    assert robots[0].load == robots[1].load
    assert robots[0].home_height != robots[2].home_height
    assert len({rod.radius for rod in robots[0].rods}) == 6


def test_a_solver_that_cuts_corners_is_noticed(monkeypatch):
    """The campaign can fail: a solver whose answers depend on the cut is reported."""

    def careless(solver, pose, cuts):
        return solve_cut(solver, pose if cuts == 1 else np.append(0.99 * pose[:3], pose[3:]), cuts)

    monkeypatch.setattr(branch_campaign, "solve_cut", careless)
    said = []
    found = campaign(1, 4, cuts=(1, 5), traced=False, say=said.append)
    assert found.different
    assert not found.sound
    assert set(found.different) < set(said)
