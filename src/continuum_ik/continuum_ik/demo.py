"""The built-in motion of the node: the tutorial's benchmark path."""

from __future__ import annotations

import numpy as np

from continuum_ik.pose import as_poses
from continuum_ik.rod import Array

__all__ = ["START", "demo_path"]

#: Where the path begins [m].
START = (0.0, 0.02, 0.48)


def demo_path(rounds: int = 1) -> Array:
    """Return level poses (200 * rounds, 12): 1 mm in y and z 100 times, and back."""
    up = np.arange(1, 101)
    k = np.concatenate([up, 100 - up])
    one = np.stack([np.zeros(200), 0.02 + 0.001 * k, 0.48 + 0.001 * k], axis=1)
    return as_poses(np.tile(one, (rounds, 1)))
