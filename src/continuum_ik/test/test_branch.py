"""Random robots: the answer does not depend on how the path is cut, nor on the tolerance."""

import numpy as np
import pytest

from continuum_ik import ContinuumSolver, NoHome, campaign


def test_cuts_tolerances_tracer_and_stability_agree():
    """The small form of ``python -m continuum_ik.campaign``, with other robots than that begins."""
    found = campaign.campaign(5, 4, first=1000, cuts=(1, 17, 100))
    assert found.poses == 20
    assert not found.different
    assert not found.wrong
    assert not found.unstable
    assert found.untold <= 1
    assert found.solved >= 4
    assert sum(found.ends.values()) >= 4
    assert found.leg_error < 1e-9


@pytest.mark.parametrize("tolerance", campaign.TOLERANCES)
def test_what_does_not_settle_at_once_is_no_fold(tolerance):
    """One rod is so tense here that differences of a fixed size made Newton's method creep.

    At 1e-12 the path then seemed to end at a fold at 95 % of the way.
    """
    rng = np.random.default_rng([14, 0])
    robot = campaign.random_robot(rng)
    pose = [campaign.random_pose(rng, robot) for _ in range(9)][-1]
    solver = ContinuumSolver(robot, tolerance, detours=False)
    for cut in (1, 50):
        result = campaign.solve_cut(solver, pose, cut).check()
        np.testing.assert_allclose(result.lengths[:3], [0.6031, 0.5850, 0.6148], atol=2e-4)
        assert result.stable


def test_robots_differ_and_the_same_number_is_the_same_robot():
    robots = [campaign.random_robot(np.random.default_rng([14, k])) for k in (3, 3, 4)]
    np.testing.assert_array_equal(robots[0].platform, robots[1].platform)
    assert robots[0].load == robots[1].load
    assert robots[0].home_height != robots[2].home_height
    assert len({rod.radius for rod in robots[0].rods}) == 6


def test_a_solver_that_cuts_corners_is_noticed(monkeypatch):
    """The campaign can fail: a solver whose answers depend on the cut is reported."""
    true = campaign.solve_cut

    def careless(solver, pose, cuts):
        return true(solver, pose if cuts == 1 else np.append(0.99 * pose[:3], pose[3:]), cuts)

    monkeypatch.setattr(campaign, "solve_cut", careless)
    try:
        found = campaign.campaign(1, 4, cuts=(1, 5), traced=False)
    except NoHome:  # pragma: no cover
        pytest.fail("robot 0 has a home")
    assert found.different
    assert not found.sound
