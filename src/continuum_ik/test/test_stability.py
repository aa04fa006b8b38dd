"""Stability of answers: carried along a path, it is what the analysis says at each of them."""

import contextlib

import numpy as np
import pytest
from branch_campaign import TOLERANCES, kind, robot_of, solve_cut
from continuum_oracle import energy_minimum
from scipy.spatial.transform import Rotation

from continuum_ik import ContinuumRobot, ContinuumSolver, Load, NoHome, make_pose, sweep_workspace
from continuum_ik.layout import CAUTION
from kin_core.errors import StatusCode

LOADED = ContinuumRobot(load=Load(force=(1.0, -0.5, -6.0), moment=(0.05, 0.02, 0.03)))


@pytest.mark.parametrize("tolerance", [1e-6, 1e-12])
@pytest.mark.parametrize("robot", [ContinuumRobot(), LOADED], ids=["plain", "load"])
def test_streams_tell_what_the_analysis_tells(robot, tolerance):
    """Out across the surface where a rod buckles, and back, in steps of 2 mm."""
    solver = ContinuumSolver(robot, tolerance, detours=False, allow_unstable=True)
    for way, tilt in (((0.19, 0.02), 0.0), ((-0.12, 0.12), 0.0), ((0.1, 0.15), 0.1)):
        solver.reset()
        out = np.linspace(0.0, 1.0, 90)
        seen = set()
        for k in [*out, *out[::-1]]:
            R = Rotation.from_rotvec([0.0, 0.3 * tilt * k, tilt * k]).as_matrix()
            result = solver.solve(make_pose((k * way[0], k * way[1], 0.45), R))
            if result.success:
                assert result.stable == solver.analyse().stable, (k, way)
                seen.add(result.stable)
    assert True in seen


def test_stable_is_what_the_hessian_of_the_energy_says(tight):
    """On both sides of the surface where rods buckle, by chains of links."""
    tight.allow_unstable = True
    seen = []
    for x in (-0.2, -0.1, 0.0, 0.1):
        for y in (0.0, 0.1, 0.2):
            tight.reset()
            result = tight.solve(make_pose((x, y, 0.45)))
            if result.success:
                lowest, gradient = energy_minimum(tight.robot, result, tight.pose, tight.shapes(41))
                assert gradient < 0.1
                assert result.stable == (lowest > 0.0), (x, y, lowest)
                seen.append(result.stable)
    assert seen.count(True) > 3
    assert seen.count(False) > 3


def test_what_is_not_stable_is_no_success_unless_asked_for(tight):
    """The symmetric branch beyond the buckling; refused with the last stable pose on the way."""
    start, end = make_pose((0.0, 0.0, 0.45)), make_pose((0.18, 0.0, 0.45))
    tight.solve(start).check()
    result = tight.solve(end)
    assert result.code == StatusCode.UNREACHABLE
    assert not result.stable
    assert "not stable" in result.reason
    assert 0.1 < result.reached < 0.9
    np.testing.assert_array_equal(tight.pose, start)
    assert tight.copy().solve(result.best_pose).check().stable
    beyond = result.best_pose.copy()
    beyond[0] += 2e-3
    assert not tight.copy().solve(beyond).success
    tight.allow_unstable = True
    assert not tight.solve(end).check().stable
    batch = tight.solve_many(np.array([start, end]))
    assert batch.codes.tolist() == [0, 0]
    assert batch.stable.tolist() == [True, False]
    tight.allow_unstable = False
    batch = tight.solve_many(np.array([start, end]), independent=True)
    assert batch.codes.tolist() == [0, 2]
    assert batch.stable.tolist() == [True, False]
    assert "not stable" in batch.message(1)


def test_sweeps_count_stable_poses(loose):
    lower, upper, counts = (-0.2, -0.02, 0.45), (0.2, 0.02, 0.45), (21, 3, 1)
    strict = sweep_workspace(loose, lower, upper, counts)
    loose.allow_unstable = True
    wide = sweep_workspace(loose, lower, upper, counts)
    assert 0 < strict.reachable < wide.reachable
    np.testing.assert_array_equal(strict.stable, wide.stable)
    np.testing.assert_array_equal(strict.codes == 0, strict.stable)


#: A robot with the symmetry of the tutorial's, and other sizes.
SLIM = ContinuumRobot(
    base=1.1 * ContinuumRobot().base,
    platform=0.9 * ContinuumRobot().platform,
    home_height=0.45,
)


def stable_part(solver, goal, cuts):
    """Return the part of the way from home to a position that is stable, in so many steps."""
    home = np.array([0.0, 0.0, solver.robot.home_height])
    solver.reset()
    for k in range(1, cuts + 1):
        result = solver.solve(make_pose(home + (goal - home) * k / cuts))
        if not result.success:
            return (k - 1 + result.reached) / cuts
        assert result.stable
    return 1.0


@pytest.mark.parametrize("tolerance", TOLERANCES)
def test_mirrored_rods_that_buckle_at_once_are_seen_in_any_number_of_steps(tolerance):
    """No determinant of the whole robot changes its sign there; 100 steps used to say 61 %."""
    solver = ContinuumSolver(tolerance=tolerance, detours=False)
    for cuts in (1, 20, 100, 1000):
        part = stable_part(solver, np.array([0.2, 0.0, 0.5]), cuts)
        assert part == pytest.approx(0.5526, abs=2e-4), cuts


@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize("robot", [ContinuumRobot(), SLIM], ids=["tutorial", "slim"])
def test_symmetric_robots_lose_stability_at_one_place(robot, tolerance):
    """In planes of symmetry (multiples of 60 degrees) and beside them, at random heights."""
    rng = np.random.default_rng(5)
    solver = ContinuumSolver(robot, tolerance, detours=False)
    ends = []
    for k in range(8):
        angle = np.pi / 3.0 * k if k < 6 else rng.uniform(-np.pi, np.pi)
        reach, height = rng.uniform(0.3, 0.6), rng.uniform(0.9, 1.4)
        way = np.array([reach * np.cos(angle), reach * np.sin(angle), height])
        parts = [stable_part(solver, way * robot.home_height, cuts) for cuts in (1, 20, 100)]
        np.testing.assert_allclose(parts, parts[0], rtol=0, atol=5e-4, err_msg=f"{k} {way}")
        ends.append(parts[0])
    assert sum(end < 1.0 for end in ends) > 2


@pytest.mark.parametrize("tolerance", TOLERANCES)
def test_verdicts_do_not_hang_on_how_closely_rods_are_watched(tolerance):
    """Each number halved and doubled: mirrored rods that buckle, and poses of random robots."""
    mirrored = ContinuumSolver(tolerance=tolerance, detours=False)
    solvers, cases = [mirrored], []
    for number in range(100):
        robot, poses = robot_of(number, 4)
        with contextlib.suppress(NoHome):
            solvers.append(ContinuumSolver(robot, tolerance, detours=False))
            cases += [(solvers[-1], pose, solve_cut(solvers[-1], pose, 20)) for pose in poses]
        if len(solvers) == 3:
            break
    assert any(not result.success for _, _, (result, _) in cases)
    for name in CAUTION.names:
        for factor in (0.5, 2.0):
            for solver in solvers:
                solver.named.caution[name] *= factor
            for cuts in (1, 100):
                part = stable_part(mirrored, np.array([0.2, 0.0, 0.5]), cuts)
                assert part == pytest.approx(0.5526, abs=2e-4), (name, factor, cuts)
            for solver, pose, (expected, place) in cases:
                result, part = solve_cut(solver, pose, 20)
                assert kind(result) == kind(expected), (name, factor)
                assert part == pytest.approx(place, abs=5e-3)
                if result.success:
                    np.testing.assert_allclose(result.lengths, expected.lengths, rtol=0, atol=1e-4)
            for solver in solvers:
                solver.named.caution[name] /= factor
