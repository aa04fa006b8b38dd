"""Known leg lengths, the tutorial's own residual, and high-accuracy integration."""

import numpy as np
import pytest
from continuum_oracle import refine, residual36
from scipy.spatial.transform import Rotation

from benchmarks.baselines.continuum_tutorial import tutorial_residual
from continuum_ik import ContinuumRobot, ContinuumSolver, Load, make_pose
from continuum_ik.demo import demo_path

# Computed with the exact equations of the tutorial's C++.
EXACT = {
    (0.0, 0.0, 0.4): ([0.405282387766] * 6, 1e-12),
    (0.0, 0.02, 0.48): ([0.482314669008, 0.487571084140, 0.484905823498] * 2, 5e-12),
    (0.0, 0.12, 0.58): ([0.58546166785, 0.61594367893, 0.59836169286] * 2, 1e-9),
}


@pytest.mark.parametrize("position", list(EXACT))
def test_golden_lengths_of_the_exact_equations(tight, position):
    lengths, tolerance = EXACT[position]
    tight.tolerance = 1e-18
    result = tight.solve(make_pose(position)).check()
    np.testing.assert_allclose(result.lengths, lengths, rtol=0, atol=tolerance)


@pytest.mark.parametrize("tolerance", [1e-6, 1e-12])
def test_every_benchmark_pose_is_within_tolerance(tolerance):
    """By the tutorial's own residual, with its 39 steps of RK4 at 1e-6 and exactly at 1e-12."""
    robot = ContinuumRobot()
    solver = ContinuumSolver(robot, tolerance)
    solver.solve(make_pose((0.0, 0.02, 0.48))).check()
    tips, r = np.empty((6, 18)), np.empty(36)
    for k, pose in enumerate(demo_path()):
        result = solver.solve(pose).check()
        guess = np.concatenate([np.hstack([result.forces, result.moments]).ravel(), result.lengths])
        tutorial_residual(5, guess, pose[:3], tips, r)
        if tolerance == 1e-6:
            assert r @ r <= tolerance
        elif k % 20 == 0:
            exact = residual36(
                robot, pose, result.forces, result.moments, result.lengths, tutorial=True
            )
            assert exact @ exact <= tolerance
        assert result.residual <= tolerance


def random_pose(rng, tilt):
    position = rng.uniform([-0.06, -0.06, 0.38], [0.06, 0.06, 0.6])
    return make_pose(position, Rotation.from_rotvec(rng.uniform(-tilt, tilt, 3)).as_matrix())


@pytest.mark.parametrize(
    ("load", "tilt"),
    [
        (Load(), 0.0),
        (Load(), 0.35),
        (Load(force=(1.0, -0.5, -6.0), moment=(0.05, 0.02, 0.03), point=(0.01, 0.02, 0.05)), 0.25),
    ],
)
def test_lengths_within_a_nanometre_of_dop853(load, tilt):
    """Level, tilted and loaded: the 18-state equations, solved to the bottom, agree."""
    robot = ContinuumRobot(load=load)
    solver = ContinuumSolver(robot, 1e-12)
    rng = np.random.default_rng(11)
    done = 0
    for _ in range(20):
        pose = random_pose(rng, tilt)
        result = solver.solve(pose)
        if not result.success or done == 2:
            continue
        lengths, left = refine(robot, result, pose)
        assert left < 1e-18
        np.testing.assert_allclose(result.lengths, lengths, rtol=0, atol=1e-9)
        done += 1
    assert done == 2
