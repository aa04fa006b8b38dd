"""Homes: found, or explained."""

import numpy as np
import pytest

from continuum_ik import ContinuumRobot, ContinuumSolver, NoHome, hole_pattern


def test_home_is_an_answer(tight):
    home = tight.home
    assert home.success
    assert home.stable
    np.testing.assert_allclose(home.lengths, 0.405282387766, atol=1e-9)
    np.testing.assert_array_equal(home.lengths, tight.home_lengths)


def test_holes_that_face_each_other_are_explained():
    """All rods stand straight: nothing says how they share a force."""
    holes = hole_pattern(0.087, np.radians(100.0), np.radians(20.0))
    for off in (0.0, 1e-3):
        robot = ContinuumRobot(base=holes, platform=holes + np.array([off, 0.0, 0.0]))
        with pytest.raises(NoHome, match="face those of the base") as error:
            ContinuumSolver(robot)
        assert "turn the platform" in str(error.value)


def test_holes_all_turned_one_way_are_explained():
    """The rods all lean to the same side and twist the platform."""
    angle = np.radians(np.array([0.0, 60.0, 120.0, 180.0, 240.0, 300.0]))
    base = 0.1 * np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=1)
    turned = angle + np.radians(50.0)
    platform = 0.1 * np.stack([np.cos(turned), np.sin(turned), 0.0 * angle], axis=1)
    with pytest.raises(NoHome, match="turned the same way"):
        ContinuumSolver(ContinuumRobot(base=base, platform=platform))
