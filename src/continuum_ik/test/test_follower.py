"""A stream of targets, without ROS."""

import numpy as np
import pytest

from continuum_ik import make_pose
from continuum_ik.follower import Follower

START = make_pose((0.0, 0.02, 0.48))


@pytest.fixture
def follow(loose):
    follower = Follower(loose)

    def follow(z, now, limit=0.2, stamp=None):
        pose = make_pose((0.0, 0.02, z))
        when = now if stamp is None else stamp
        return follower, *follower.follow(pose, when, now, rate_limit=limit, longest=0.5)

    return follow


def test_a_leap_is_refused_and_leaves_no_trace(follow):
    follower, first, reason = follow(0.48, 10.0)
    assert not reason
    before = follower.solver.copy()
    follower, _, reason = follow(0.58, 10.1)
    assert "leg_rate_limit" in reason
    assert follower.solver.pose[2] == 0.48
    np.testing.assert_array_equal(follower.solver.lengths, before.lengths)
    np.testing.assert_array_equal(follower.solver.state, before.state)
    follower, second, reason = follow(0.49, 10.1)
    assert not reason
    assert 0.05 < (second.lengths - first.lengths).max() / 0.1 <= 0.2


def test_a_long_wait_makes_no_leap_slow(follow):
    """However long nothing came, half a second is all that a leap may be spread over."""
    follow(0.48, 0.0)
    assert "500 ms" in follow(0.62, 3600.0)[2]
    assert not follow(0.56, 3600.0)[2]


def test_without_a_limit_everything_that_is_solved_is_accepted(follow):
    follow(0.48, 0.0, limit=0.0)
    assert not follow(0.58, 1e-3, limit=0.0)[2]


def test_rates_are_by_stamps_of_targets_that_belong_together(follow):
    follower, first, _ = follow(0.48, 0.0, limit=0.0)
    assert not follower.rates.any()
    follower, second, _ = follow(0.481, 0.7, limit=0.0, stamp=0.1)
    np.testing.assert_allclose(follower.rates, (second.lengths - first.lengths) / 0.1)
    follow(0.482, 0.8, limit=0.0, stamp=5.0)  # long after
    assert not follower.rates.any()
    follow(0.483, 0.9, limit=0.0, stamp=5.1)
    assert follower.rates.any()
    follower.hold()
    follow(0.484, 1.0, limit=0.0, stamp=5.2)
    assert not follower.rates.any()


def test_what_cannot_be_reached_is_told(follow):
    follower, _, _ = follow(0.48, 0.0)
    _, result, reason = follow(-0.3, 0.1)
    assert not result.success
    assert reason == result.reason != ""
    assert follower.solver.pose[2] == 0.48
