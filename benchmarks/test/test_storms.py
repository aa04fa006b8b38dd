"""A small part of the storms of ``./kinstack bench storms``, with other seeds."""

import numpy as np
import pytest

from benchmarks.bench_storms import SPEED_LIMIT, draw, run


@pytest.mark.parametrize("block", range(4))
def test_a_storm_never_throws_the_arm(block):
    for seed in range(100_000 + 10 * block, 100_000 + 10 * block + 10):
        outcome = run(seed)
        assert outcome.fastest <= SPEED_LIMIT, outcome
        assert outcome.last_speed <= 1.2, outcome
        assert outcome.unstopped <= 0.4, outcome


@pytest.mark.parametrize("seed", [97, 138, 370])
def test_the_damping_of_a_stopped_arm_does_not_push(seed):
    """Slow votes, lost joint states, a node that stops for moments: 30 to 49 rad/s once."""
    assert run(seed).fastest <= SPEED_LIMIT


def test_storms_are_of_all_kinds_and_the_same_for_a_seed():
    storms = [draw(np.random.default_rng(seed)) for seed in range(200)]
    assert storms[3] == draw(np.random.default_rng(3))
    for kind in ("node_stopped", "silent", "lost", "frozen", "age"):
        assert sum(any(getattr(trouble, kind) for _, trouble in storm) for storm in storms) > 30
