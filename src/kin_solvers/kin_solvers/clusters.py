"""Clusters of boxes: which of them touch, with wrap at +-pi."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

__all__ = ["clusters_of", "connect", "wrapped"]

Array = NDArray[np.float64]

_TWO_PI = 2.0 * math.pi


def wrapped(points: Array, cyclic: NDArray[np.bool_]) -> Array:
    """Cyclic coordinates brought to [0, 2 pi), as a periodic tree wants them."""
    turned = np.remainder(points, _TWO_PI)
    turned[turned >= _TWO_PI] = 0.0
    return np.where(cyclic, turned, points)


def connect(lower: Array, upper: Array, cyclic: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Cluster of each box, shape (N,): boxes that touch belong together.

    Args:
        lower: Lower ends of the boxes, shape (N, V).
        upper: Upper ends, shape (N, V).
        cyclic: Which variables are angles on the full circle, shape (V,).
    """
    n = len(lower)
    if n == 0:
        return np.empty(0, dtype=np.int64)
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    widest = float(half.max())
    period = np.where(cyclic, _TWO_PI, 0.0)
    tree = cKDTree(wrapped(middle, cyclic), boxsize=period)
    pairs = tree.query_pairs(min(2.0 * widest + 1e-9, 3.0), p=np.inf, output_type="ndarray")
    i, j = pairs[:, 0], pairs[:, 1]
    gap = np.abs(middle[i] - middle[j])
    turned = np.abs(np.remainder(middle[i] - middle[j] + math.pi, _TWO_PI) - math.pi)
    gap = np.where(cyclic, turned, gap)
    touch = (gap <= half[i] + half[j] + 1e-12).all(axis=1)
    graph = coo_matrix((np.ones(int(touch.sum())), (i[touch], j[touch])), shape=(n, n))
    return connected_components(graph, directed=False)[1].astype(np.int64)


def clusters_of(labels: NDArray[np.int64], *, by_size: bool = False) -> list[NDArray[np.int64]]:
    """Indices of the boxes of each cluster, in the order of the labels or the smallest first."""
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels, minlength=1))[:-1]
    parts = [part for part in np.split(order, ends) if len(part)]
    return sorted(parts, key=len) if by_size else parts
