"""The port of the tutorial's five programs against the figures of the programs themselves."""

import numpy as np

from benchmarks.baselines import continuum_tutorial as tutorial
from continuum_ik.demo import demo_path

POSITIONS = demo_path()[:, :3].copy()
# Computed with the tutorial's C++ equations (RK4, 39 steps, to 1e-22).
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


def test_golden_lengths_of_the_tutorials_integration():
    """The port of the tutorial's program, in its own sequence, has all digits of its lengths.

    At the end the equations are close to singular: the last digits depend on the way there.
    """
    home, lengths = np.zeros(36), np.empty((100, 6))
    home[30:] = 0.4
    assert (
        tutorial.levenberg(5, home, np.array([0.0, 0.0, 0.4]), np.empty((6, 18)), 1e-22, False) > 0
    )
    start = tutorial.tutorial_start(5, 1e-22)
    path = POSITIONS[:100]
    assert tutorial.run_stage(5, start.copy(), path, 1e-22, lengths, np.empty((100, 36))) > 0
    found = (home[30:], start[30:], lengths[49], lengths[99])
    for ours, (position, golden) in zip(found, RK4.items(), strict=True):
        np.testing.assert_allclose(ours, golden, rtol=0, atol=1e-12, err_msg=str(position))


def test_the_port_iterates_as_the_tutorials_program():
    """1.935 Jacobians for each solve at 1e-6 and 3.0 at 1e-12, as measured with the C++."""
    path = POSITIONS
    for tolerance, jacobians in ((1e-6, 1.935), (1e-12, 3.0)):
        guess = tutorial.tutorial_start(5, tolerance)
        out = np.empty((200, 6)), np.empty((200, 36))
        assert tutorial.run_stage(5, guess, path, tolerance, *out) == round(200 * jacobians)


def test_stages_agree():
    path = POSITIONS[:4]
    found = {}
    for stage in (1, 2, 3, 4, 5):
        lengths = np.empty((4, 6))
        tutorial.run_stage(
            stage, tutorial.tutorial_start(5, 1e-12), path, 1e-12, lengths, np.empty((4, 36))
        )
        found[stage] = lengths
    for stage in (1, 2, 3, 4):
        np.testing.assert_allclose(found[stage], found[5], rtol=0, atol=1e-8)
