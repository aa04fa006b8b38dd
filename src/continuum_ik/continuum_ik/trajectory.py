"""The tutorial's benchmark trajectory as poses."""

from __future__ import annotations

import numpy as np

from continuum_ik.ladder import benchmark_positions
from continuum_ik.pose import as_poses
from continuum_ik.rod import Array

#: Where the trajectory begins [m].
START = (0.0, 0.02, 0.48)


def benchmark_trajectory(rounds: int = 1, jitter: float = 0.0, seed: int = 0) -> Array:
    """Return poses (200 * rounds, 12): 1 mm in y and z 100 times, and back, level.

    Args:
        rounds: How often there and back.
        jitter: Each position is off by up to this much in each direction, at random [m].
        seed: Of the jitter.
    """
    poses = as_poses(benchmark_positions(rounds))
    if jitter > 0.0:
        poses[:, :3] += np.random.default_rng(seed).uniform(-jitter, jitter, (len(poses), 3))
    return poses
