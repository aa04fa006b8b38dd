"""No solution planted in a mechanism that is hard on the bound is lost."""

import mpmath as mp
import numpy as np
import pytest

from benchmarks.baselines.cuik_adversarial import (
    KERNELS,
    adversarial_campaign,
    hard_loop,
    hard_planar,
    hard_platform,
)
from kin_solvers import Constant
from kin_solvers.folding import SPREAD
from kin_solvers.planar import PlanarSystem
from kin_solvers.platform import PlatformSystem
from kin_solvers.system import System

mp.mp.dps = 50


@pytest.mark.parametrize("share", range(4))
def test_the_adversarial_campaign_loses_nothing(share):
    """A share of the benchmark's campaign: every kernel, and whole calls of ``solve``."""
    verdicts = [adversarial_campaign(seed, 30) for seed in range(64 * share, 64 * share + 64)]
    assert sum(v.trials for v in verdicts) >= 64 * 30 * 0.85
    assert sum(v.lost for v in verdicts) == 0


@pytest.mark.parametrize("kernel", ["fast", "paper", "planar", "platform"])
def test_the_campaign_notices_a_bound_that_is_too_small(kernel):
    """With a bound a thousand times smaller some are lost, in every kernel."""
    seeds = [s for s in range(480) if KERNELS[s % len(KERNELS)] == kernel]
    assert sum(adversarial_campaign(s, 30, part=1e-3).lost for s in seeds[:60]) > 0


def closing_error(case, loop):
    """Largest residual of the stored mechanism at the planted solution in 50 digits, over reach."""
    mechanism, q = case.mechanism, case.q
    M, reach = mp.eye(4), mp.mpf(0)
    for factor in mechanism.loops[loop].factors:
        if isinstance(factor, Constant):
            K = mp.matrix(factor.matrix.tolist())
            R = K[:3, :3]
            for _ in range(3):
                R = R * (3 * mp.eye(3) - R.T * R) / 2
            K[:3, :3] = R
            reach += mp.sqrt(sum(x * x for x in K[:3, 3]))
            M = M * K
            continue
        Z, x = mp.eye(4), factor.sign * mp.mpf(float(q[factor.variable]))
        if mechanism.variables[factor.variable].kind == "translation":
            Z[factor.axis, 3] = x
            reach += abs(x)
        else:
            i, j = (factor.axis + 1) % 3, (factor.axis + 2) % 3
            Z[i, i] = Z[j, j] = mp.cos(x)
            Z[i, j], Z[j, i] = -mp.sin(x), mp.sin(x)
        M = M * Z
    error = max(abs(x) for x in M[:3, 3]) / reach
    if mechanism.loops[loop].closure == "pose":
        error = max(error, *(abs(x) for x in M[:3, :3] - mp.eye(3)))
    return float(error)


@pytest.mark.parametrize("kind", ["loop", "planar"])
def test_the_planted_solution_is_one_within_the_spread(kind):
    """The ground truth itself: what is stored closes up to the spread of its constants."""
    rng = np.random.default_rng(5)
    worst = 0.0
    for _ in range(12):
        case = hard_loop(rng, 5) if kind == "loop" else hard_planar(rng, 4, loops=2)
        constants = sum(isinstance(f, Constant) for f in case.mechanism.loops[0].factors)
        worst = max(worst, closing_error(case, 0) / (2.0 * constants * SPREAD))
    assert 0.0 < worst < 1.0


def test_the_generators_make_what_they_promise():
    rng = np.random.default_rng(6)
    ratios, edges, planar, platforms = [], 0, 0, 0
    for _ in range(40):
        case = hard_loop(rng, 4)
        system = System.of(case.mechanism)
        lengths = [
            float(np.linalg.norm(f.matrix[:3, 3]))
            for f in case.mechanism.loops[0].factors
            if isinstance(f, Constant)
        ]
        ratios.append(sum(lengths) * system.length / float(system.reach[0]))
        edges += sum(
            x in (v.lower, v.upper) for v, x in zip(case.mechanism.variables, case.q, strict=True)
        )
        planar += PlanarSystem.of(System.of(hard_planar(rng, 4).mechanism)) is not None
        platforms += PlatformSystem.of(System.of(hard_platform(rng).mechanism)) is not None
    assert max(ratios) > 1e3  # constants that cancel
    assert edges > 5  # solutions on the edge of a range
    assert planar > 25
    assert platforms > 35
