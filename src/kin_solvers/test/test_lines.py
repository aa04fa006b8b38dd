"""Poses on straight lines."""

import itertools
import math

import numpy as np
import pytest

from kin_core.rotations import exp_so3, transform
from kin_solvers.errors import SizeError
from kin_solvers.lines import along_poses


def test_poses_between_waypoints_are_near_enough_and_hold_them():
    rng = np.random.default_rng(1)
    given = np.array([transform(exp_so3(rng.normal(size=3)), rng.normal(size=3)) for _ in range(4)])
    poses, which = along_poses(given, 0.05, 0.1)
    np.testing.assert_array_equal(poses[which], given)
    steps = np.linalg.norm(np.diff(poses[:, :3, 3], axis=0), axis=1)
    assert steps.max() <= 0.05 + 1e-12
    for a, b in itertools.pairwise(poses):
        cosine = 0.5 * (np.trace(a[:3, :3].T @ b[:3, :3]) - 1.0)
        assert math.acos(min(1.0, cosine)) <= 0.1 + 1e-6
    with pytest.raises(SizeError, match="more than"):
        along_poses(given, 1e-6, 1.0)
