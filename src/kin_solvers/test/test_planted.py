"""No planted solution is ever lost: the rounding bound, all hulls and all clippings."""

import numpy as np
import pytest

from kin_solvers.planted import PHASES, planted_boxes, planted_loop, try_fast, try_paper
from kin_solvers.system import System


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("point", [False, True])
def test_fast_method_loses_nothing(phase, point):
    rng = np.random.default_rng([3, list(PHASES).index(phase), point])
    lost = trials = 0
    for _ in range(10):
        joints = int(rng.integers(3, 9))
        mechanism, q = planted_loop(rng, joints, loops=int(rng.integers(1, 3)), point=point)
        system = System.of(mechanism)
        solution = q * system.unit
        lower, upper = planted_boxes(rng, system, solution, 60)
        verdict = try_fast(
            system, solution, lower, upper, sigma=1e-3, limit=3, tuning=PHASES[phase]
        )
        lost += verdict.lost
        trials += verdict.trials
    assert trials == 10 * 60
    assert lost == 0


def test_paper_method_loses_nothing():
    rng = np.random.default_rng(5)
    lost = 0
    for _ in range(15):
        mechanism, q = planted_loop(rng, int(rng.integers(3, 6)), point=bool(rng.integers(2)))
        system = System.of(mechanism)
        lower, upper = planted_boxes(rng, system, q * system.unit, 20)
        lost += try_paper(mechanism, system, q * system.unit, lower, upper, limit=3).lost
    assert lost == 0


def test_the_campaign_would_notice_a_lost_solution():
    """Without the rounding bound, the same campaign loses solutions."""
    import dataclasses

    rng = np.random.default_rng(1)
    lost = 0
    for _ in range(30):
        mechanism, q = planted_loop(rng, 6)
        system = System.of(mechanism)
        none = np.zeros_like(system.delta_wide)
        bare = dataclasses.replace(system, delta_wide=none, delta_narrow=none)
        lower, upper = planted_boxes(rng, system, q * system.unit, 100)
        lost += try_fast(
            bare, q * system.unit, lower, upper, sigma=1e-14, limit=3, tuning=PHASES["default"]
        ).lost
    assert lost > 0
