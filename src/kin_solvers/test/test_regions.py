"""Which boxes lie in tilted regions, against a plain statement in numpy."""

import itertools
import math

import numpy as np

from kin_solvers.regions import Region, Regions


def random_region(rng, n):
    V = np.linalg.qr(rng.normal(size=(n, n)))[0]
    return Region(rng.uniform(-3.0, 3.0, n), V, -rng.uniform(0.1, 2.0, n), rng.uniform(0.1, 2.0, n))


def corners_inside(region, lower, upper, shift):
    corners = np.array(list(itertools.product(*zip(lower, upper, strict=True)))) + shift
    s = (corners - region.x) @ region.V
    return bool(np.all((s > region.lower + 1e-9) & (s < region.upper - 1e-9)))


def corners_touch(region, lower, upper, shift):
    corners = np.array(list(itertools.product(*zip(lower, upper, strict=True)))) + shift
    s = (corners - region.x) @ region.V
    return bool(np.all((s >= region.lower - 1e-9) & (s <= region.upper + 1e-9)))


def test_boxes_in_regions_as_numpy_says_it():
    rng = np.random.default_rng(0)
    cyclic = np.array([True, False, False])
    seen = 0
    for _ in range(300):
        regions, parts = Regions(3), [random_region(rng, 3) for _ in range(12)]
        for part in parts:
            regions.add(part)
        middle = parts[0].x + rng.normal(scale=0.5, size=3)
        half = 10.0 ** rng.uniform(-4.0, 0.0, 3)
        lower, upper = middle - half, middle + half
        turns = [np.array([2.0 * math.pi * k, 0.0, 0.0]) for k in (-1, 0, 1)]
        held = bool(regions.hold(lower[None], upper[None], cyclic)[0])
        seen += held
        if any(corners_inside(p, lower, upper, t) for p in parts for t in turns):
            assert held
        if not any(corners_touch(p, lower, upper, t) for p in parts for t in turns):
            assert not held
    assert 50 < seen < 250


def test_a_region_in_and_apart_from_another():
    rng = np.random.default_rng(1)
    cyclic = np.array([True, False, False])
    big = random_region(rng, 3)
    small = Region(big.x + np.array([2.0 * math.pi, 0.0, 0.0]), big.V, 0.5 * big.lower,
                   0.5 * big.upper)  # fmt: skip
    assert small.inside(big, cyclic)
    assert not big.inside(small, cyclic)
    assert not small.apart(big, cyclic)
    assert not small.inside(big, np.zeros(3, dtype=bool))
    far = Region(big.x + np.array([0.0, 20.0, 0.0]), big.V, big.lower, big.upper)
    assert far.apart(big, cyclic)
    assert small.width == float((small.upper - small.lower).max())
