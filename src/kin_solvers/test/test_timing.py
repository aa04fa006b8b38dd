"""Times along a joint path."""

import numpy as np
import pytest

from kin_solvers.timing import times_of


def test_limits_are_kept_and_one_of_them_is_used():
    rng = np.random.default_rng(0)
    for _ in range(20):
        way = np.cumsum(rng.normal(size=(60, 4)) * 0.002 + rng.normal(size=4) * 0.02, axis=0)
        velocity, acceleration = rng.uniform(0.3, 3.0, (2, 4))
        times = times_of(way, velocity, acceleration, np.zeros(59))
        steps = np.diff(times)
        assert steps.min() > 0.0
        share = np.abs(np.diff(way, axis=0)) / steps[:, None] / velocity
        assert share.max() <= 1.0 + 1e-9
        length = np.linalg.norm(np.diff(way, axis=0), axis=1)
        speed = length / steps  # in the middle of each step
        gain = np.abs(np.diff(speed)) / (0.5 * (steps[1:] + steps[:-1]))
        axes = np.abs(np.diff(way, axis=0)) / length[:, None]
        most = (acceleration / axes).min(axis=1)
        # Neighbouring steps may have other limits: the looser of both.
        assert np.all(gain <= np.maximum(most[1:], most[:-1]) * (1.0 + 1e-6))
        assert share.max() > 0.9 or (gain / np.minimum(most[1:], most[:-1])).max() > 0.5


def test_one_joint_over_a_long_way_is_a_trapezoid():
    way = np.linspace(0.0, 4.0, 4001)[:, None]
    times = times_of(way, np.array([1.0]), np.array([1.0]), np.zeros(4000))
    assert times[-1] == pytest.approx(5.0, rel=1e-3)


def test_the_speed_of_a_link_and_paths_of_few_points():
    way = np.linspace(0.0, 0.1, 11)[:, None]
    least = np.full(10, 0.7)
    assert times_of(way, np.ones(1), np.ones(1), least)[-1] >= 7.0 - 1e-12
    assert times_of(way[:1], np.ones(1), np.ones(1), np.zeros(0)).tolist() == [0.0]
    assert times_of(way[:2], np.ones(1), np.ones(1), np.zeros(1))[-1] == pytest.approx(
        2.0 * np.sqrt(0.01), rel=1e-6
    )
    still = times_of(np.zeros((3, 2)), np.ones(2), np.ones(2), np.zeros(2))
    assert np.isfinite(still).all()
