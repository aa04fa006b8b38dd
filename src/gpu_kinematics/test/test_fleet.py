"""The demo fleet: robots on a grid, each on its own cycle."""

import numpy as np
import pytest

from gpu_kinematics import PUBLISHED_GEOMETRY, Delta, DeltaInput, Geometry, Move
from gpu_kinematics.fleet import DemoFleet

ROBOT = Delta(PUBLISHED_GEOMETRY, backend="cpu")
MOVE = Move(kind="adept_cycle", max_velocity=1.0, max_acceleration=20.0, max_jerk=2000.0)


def test_robots_have_their_own_place_phase_and_names():
    fleet = DemoFleet(ROBOT, 7, 0.3, MOVE)
    assert len(set(fleet.joint_names)) == 21
    gaps = np.linalg.norm(fleet.origin[:, :, None] - fleet.origin[:, None], axis=0)
    assert gaps[~np.eye(7, dtype=bool)].min() == pytest.approx(0.3)
    motion = fleet.at(12.5)
    assert not motion.status.any() and len(np.unique(motion.angle)) == 21
    again = fleet.at(12.5 + fleet.fleet.duration[3])
    np.testing.assert_allclose(again.angle[:, 0, 3], motion.angle[:, 0, 3], atol=1e-9)


def test_the_skeleton_has_arms_and_rods_of_their_length():
    fleet = DemoFleet(ROBOT, 4, 0.3, MOVE)
    motion = fleet.at(3.0)
    arms, rods, platforms = fleet.skeleton(motion.angle[:, 0], motion.position[:, 0])
    for points, length in ((arms, PUBLISHED_GEOMETRY.upper), (rods, PUBLISHED_GEOMETRY.lower)):
        spans = np.linalg.norm(points[::2] - points[1::2], axis=1)
        np.testing.assert_allclose(spans, length, rtol=1e-9)
    assert platforms.shape == (4, 3)


def test_all_robots_are_alike():
    with pytest.raises(DeltaInput, match="one geometry"):
        DemoFleet(Delta(Geometry([0.01], 0.04, 0.07), backend="cpu"), 1, 0.3, MOVE)
