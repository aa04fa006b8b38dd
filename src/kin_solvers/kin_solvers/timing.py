"""When a joint path is where: as fast as velocities and accelerations of the joints allow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["times_of"]

Array = NDArray[np.float64]


def times_of(positions: Array, velocity: Array, acceleration: Array, least: Array) -> Array:
    """Times along a path that starts and ends at rest, shape (K,) [s].

    The speed along the path rises and falls between its points as fast as the joint with the
    tightest limit allows. What a bend of the path adds to accelerations is not counted.

    Args:
        positions: Joint positions, shape (K, V) [rad, m].
        velocity: Largest velocities, shape (V,) [rad/s, m/s].
        acceleration: Largest accelerations, shape (V,) [rad/s^2, m/s^2].
        least: Least duration of each step, shape (K - 1,) [s].
    """
    steps = np.diff(positions, axis=0)
    length = np.linalg.norm(steps, axis=1)
    share = np.abs(steps) / np.maximum(length, 1e-300)[:, None] + 1e-300
    fastest = np.minimum((velocity / share).min(axis=1), length / np.maximum(least, 1e-300))
    gain = 2.0 * (acceleration / share).min(axis=1) * length  # of the square of the speed
    speed = np.zeros(len(positions))
    speed[1:-1] = np.minimum(fastest[:-1], fastest[1:])
    for k in range(1, len(speed)):
        speed[k] = min(speed[k], np.sqrt(speed[k - 1] ** 2 + gain[k - 1]))
    for k in range(len(speed) - 2, -1, -1):
        speed[k] = min(speed[k], np.sqrt(speed[k + 1] ** 2 + gain[k]))
    mean = 0.5 * (speed[:-1] + speed[1:])
    # A path of one step rises and falls within it.
    mean = np.where(mean > 0.0, mean, 0.5 * np.minimum(fastest, np.sqrt(0.5 * gain)))
    took = np.where(length > 0.0, length / np.maximum(mean, 1e-300), 0.0)
    return np.concatenate([[0.0], np.cumsum(np.maximum(took, least))])
