"""No planted solution is ever lost: the rounding bound, all hulls and all clippings."""

import dataclasses

import numpy as np
import pytest

from benchmarks.baselines.cuik_completeness import (
    PHASES,
    campaign,
    planted_boxes,
    planted_loop,
    planted_planar,
    planted_platform,
    try_fast,
    try_reduced,
)
from kin_solvers.planar import PlanarSystem
from kin_solvers.platform import PlatformSystem
from kin_solvers.system import System


@pytest.mark.parametrize("share", range(6))
def test_the_campaign_loses_nothing(share):
    """A share of the benchmark's campaign: all phases, closures, methods and 3 to 8 joints."""
    verdicts = [campaign(seed, 40) for seed in range(40 * share, 40 * share + 40)]
    assert sum(v.trials for v in verdicts) == 40 * 40
    assert sum(v.lost for v in verdicts) == 0


@pytest.mark.parametrize("seed", [1850, 2606, 3381])
def test_mechanisms_that_once_lost_a_solution(seed):
    """Preconditioners of singular systems overflowed; slopes moved to a loop of no weight."""
    assert campaign(seed, 250).lost == 0


def test_the_campaign_would_notice_a_lost_solution():
    """Without the rounding bound, the same search loses solutions."""
    rng = np.random.default_rng(1)
    lost = 0
    for _ in range(30):
        mechanism, q = planted_loop(rng, 6)
        system = System.of(mechanism)
        none = np.zeros_like(system.delta_wide)
        bare = dataclasses.replace(system, delta_wide=none, delta_narrow=none)
        solution = q * system.unit
        lower, upper = planted_boxes(rng, system.lower, system.upper, solution, 100)
        lost += try_fast(
            bare, solution, lower, upper, sigma=1e-14, limit=3, tuning=PHASES["default"]
        ).lost
    assert lost > 0


@pytest.mark.parametrize("form", ["planar", "platform"])
def test_the_campaign_would_notice_wrong_rows_of_the_reduced_forms(form):
    """With equations that are wrong by a billionth, the planted solutions are lost."""
    rng = np.random.default_rng(2)
    lost = trials = 0
    for _ in range(10):
        if form == "planar":
            mechanism, q = planted_planar(rng, 5, loops=2)
            system = System.of(mechanism)
            reduced = PlanarSystem.of(system)
            if reduced is None:
                continue
            solution = q * system.unit
            u = np.concatenate([reduced.turns @ solution, solution[system.translation]])
            tables = reduced.tables._replace(constant=reduced.tables.constant + 1e-9)
        else:
            mechanism, u = planted_platform(rng)
            reduced = PlatformSystem.of(System.of(mechanism))
            legs = reduced.tables.legs
            legs = legs._replace(constant=legs.constant + 1e-9)
            tables = reduced.tables._replace(legs=legs)
        wrong = dataclasses.replace(reduced, tables=tables)
        lower, upper = u - 1e-11 * rng.uniform(size=(50, len(u))), u + 1e-11
        upper = np.broadcast_to(upper, lower.shape)
        verdict = try_reduced(
            wrong, u, lower, upper, sigma=1e-14, limit=3, tuning=PHASES["default"]
        )
        lost += verdict.lost
        trials += verdict.trials
    assert lost > 0.9 * trials > 0
