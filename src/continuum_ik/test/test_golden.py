"""Known leg lengths, the tutorial's own residual, and high-accuracy integration."""

import numpy as np
import pytest
from continuum_oracle import refine, residual36
from scipy.spatial.transform import Rotation

from continuum_ik import ContinuumRobot, ContinuumSolver, Load, ladder, make_pose
from continuum_ik.trajectory import benchmark_trajectory

# Computed with the tutorial's C++ equations (RK4, 39 steps, to 1e-22), and with the exact ODE.
RK4 = {
    (0.0, 0.0, 0.4): [0.405282385535] * 6,
    (0.0, 0.02, 0.48): [0.482314662637, 0.487571092640, 0.484905821461] * 2,
    (0.0, 0.07, 0.53): [
        0.531335102985,
        0.548762716464,
        0.539492394958,
        0.531335102979,
        0.548762716616,
        0.539492395033,
    ],
    (0.0, 0.12, 0.58): [
        0.585461547480,
        0.615943588349,
        0.598361689343,
        0.585461547146,
        0.615943601043,
        0.598361692592,
    ],
}
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


def test_golden_lengths_of_the_tutorials_integration():
    """The port of the tutorial's program, in its own sequence, has all digits of its lengths.

    At the end the equations are close to singular: the last digits depend on the way there.
    """
    home, lengths = np.zeros(36), np.empty((100, 6))
    home[30:] = 0.4
    assert ladder.levenberg(5, home, np.array([0.0, 0.0, 0.4]), np.empty((6, 18)), 1e-22, False) > 0
    start = ladder.tutorial_start(5, 1e-22)
    path = ladder.benchmark_positions()[:100]
    assert ladder.run_ladder(5, start.copy(), path, 1e-22, lengths, np.empty((100, 36))) > 0
    found = (home[30:], start[30:], lengths[49], lengths[99])
    for ours, (position, golden) in zip(found, RK4.items(), strict=True):
        np.testing.assert_allclose(ours, golden, rtol=0, atol=1e-12, err_msg=str(position))


def test_the_port_iterates_as_the_tutorials_program():
    """1.935 Jacobians for each solve at 1e-6 and 3.0 at 1e-12, as measured with the C++."""
    path = ladder.benchmark_positions()
    for tolerance, jacobians in ((1e-6, 1.935), (1e-12, 3.0)):
        guess = ladder.tutorial_start(5, tolerance)
        out = np.empty((200, 6)), np.empty((200, 36))
        assert ladder.run_ladder(5, guess, path, tolerance, *out) == round(200 * jacobians)


def test_stages_agree():
    path = ladder.benchmark_positions()[:4]
    found = {}
    for stage in (1, 2, 3, 5):
        lengths = np.empty((4, 6))
        ladder.run_ladder(
            stage, ladder.tutorial_start(5, 1e-12), path, 1e-12, lengths, np.empty((4, 36))
        )
        found[stage] = lengths
    lengths = np.empty((4, 6))
    ladder.run_ladder_threads(
        ladder.tutorial_start(5, 1e-12), path, 1e-12, lengths, np.empty((4, 36))
    )
    for other in (found[1], found[2], found[3], lengths):
        np.testing.assert_allclose(other, found[5], rtol=0, atol=1e-8)


@pytest.mark.parametrize("tolerance", [1e-6, 1e-12])
def test_every_benchmark_pose_is_within_tolerance(tolerance):
    """By the tutorial's own residual, with its 39 steps of RK4 at 1e-6 and exactly at 1e-12."""
    robot = ContinuumRobot()
    solver = ContinuumSolver(robot, tolerance)
    solver.solve(make_pose((0.0, 0.02, 0.48))).check()
    tips, r = np.empty((6, 18)), np.empty(36)
    for k, pose in enumerate(benchmark_trajectory()):
        result = solver.solve(pose).check()
        guess = np.concatenate([np.hstack([result.forces, result.moments]).ravel(), result.lengths])
        ladder.tutorial_residual(5, guess, pose[:3], tips, r)
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
