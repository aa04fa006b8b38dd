"""Clusters of boxes against a plain statement: every pair looked at."""

import math

import numpy as np

from kin_solvers.clusters import clusters_of, connect


def touching(lower, upper, cyclic):
    """Clusters by joining every pair that touches, whole turns apart."""
    n = len(lower)
    label = list(range(n))
    for i in range(n):
        for j in range(i):
            gap = 0.5 * (lower[i] + upper[i] - lower[j] - upper[j])
            turned = np.remainder(gap + math.pi, 2.0 * math.pi) - math.pi
            gap = np.abs(np.where(cyclic, turned, gap))
            reach = 0.5 * (upper[i] - lower[i] + upper[j] - lower[j])
            if np.all(gap <= reach + 1e-12):
                old, new = label[i], label[j]
                label = [new if k == old else k for k in label]
    return label


def test_clusters_as_every_pair_says_it():
    rng = np.random.default_rng(0)
    cyclic = np.array([True, False])
    for _ in range(30):
        middle = rng.uniform(-math.pi, math.pi, (60, 2))
        half = rng.uniform(0.0, 0.25, (60, 2))
        labels = connect(middle - half, middle + half, cyclic)
        plain = touching(middle - half, middle + half, cyclic)
        assert len(set(labels.tolist())) == len(set(plain))
        assert len(set(zip(labels.tolist(), plain, strict=True))) == len(set(plain))


def test_boxes_on_both_sides_of_a_half_turn_touch():
    lower, upper = np.array([[3.0], [-3.2]]), np.array([[3.1], [-3.15]])
    assert len(set(connect(lower, upper, np.array([True])).tolist())) == 1
    assert len(set(connect(lower, upper, np.array([False])).tolist())) == 2
    assert connect(lower[:0], upper[:0], np.array([True])).shape == (0,)


def test_members_of_clusters_by_label_and_by_size():
    labels = np.array([1, 0, 1, 2, 1, 2])
    assert [m.tolist() for m in clusters_of(labels)] == [[1], [0, 2, 4], [3, 5]]
    assert [len(m) for m in clusters_of(labels, by_size=True)] == [1, 2, 3]
