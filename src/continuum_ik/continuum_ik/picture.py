"""Colours of the rods by how much they bend."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_CURVED", "curvature", "curvature_colours"]

Array = NDArray[np.float64]

#: Curvature that is shown in the last colour [1/m].
MOST_CURVED = 4.0
#: Dark violet to yellow (viridis): it grows in lightness, so that it reads without colour too.
_RAMP = np.array(
    [[0.267, 0.005, 0.329], [0.230, 0.322, 0.546], [0.128, 0.567, 0.551], [0.369, 0.789, 0.383],
     [0.993, 0.906, 0.144]]
)  # fmt: skip


def curvature(points: Array) -> Array:
    """Curvature of a polyline at each of its points [1/m]; the ends take their neighbour's.

    Args:
        points: Shape (n, 3) [m].
    """
    if len(points) < 3:
        return np.zeros(len(points))
    a, b = points[1:-1] - points[:-2], points[2:] - points[1:-1]
    c = points[2:] - points[:-2]
    # Of the circle through three points: four times the area over the product of the sides.
    area = np.linalg.norm(np.cross(a, b), axis=1)
    sides = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1) * np.linalg.norm(c, axis=1)
    inner = np.divide(2.0 * area, sides, out=np.zeros(len(area)), where=sides > 1e-12)
    return np.concatenate([inner[:1], inner, inner[-1:]])


def curvature_colours(bend: Array) -> Array:
    """Red, green and blue, 0 to 1, for each curvature; shape (n, 3)."""
    share = np.clip(bend / MOST_CURVED, 0.0, 1.0) * (len(_RAMP) - 1)
    steps = np.arange(len(_RAMP))
    return np.stack([np.interp(share, steps, _RAMP[:, k]) for k in range(3)], axis=1)
