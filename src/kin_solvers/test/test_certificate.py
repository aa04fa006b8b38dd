"""What is proven is so: one root and no other, none at all, none lost on the way."""

import numpy as np
import pytest

from benchmarks.baselines.cuik_adversarial import hard_loop, hard_planar
from benchmarks.baselines.cuik_completeness import planted_boxes
from kin_solvers import Constant, Loop, Mechanism, Motion, Variable, library
from kin_solvers.certificate import Certifier
from kin_solvers.mechanism import translation
from kin_solvers.regions import Regions
from kin_solvers.system import System


def two_bars(reach):
    """Two bars of length 1 whose end is at a distance: two postures, one where it is 2."""
    chain = [Motion(0), Constant(translation(0, 1.0)), Motion(1), Constant(translation(0, 1.0)),
             Motion(2), Constant(translation(0, -reach))]  # fmt: skip
    return Certifier(
        System.of(Mechanism("bars", tuple(Variable(n) for n in "abc"), (Loop(tuple(chain)),)))
    )


def around(certifier, x, size, thin=1.0):
    """A proof around a root; thin in all directions but the weakest one."""
    V, Y = certifier.directions(x)
    half = np.full(len(x), thin * size)
    half[-1] = size
    return certifier.prove(x, V, Y, -half, half)


@pytest.mark.parametrize("bend", [1e-1, 1e-3, 1e-5])
def test_a_region_with_two_roots_gets_no_proof(bend):
    """Roots at +-bend: a region around one of them is proven, one that holds both never is."""
    certifier = two_bars(2.0 * np.cos(bend))
    roots = [certifier.equations.newton(s * np.array([bend, -2.0 * bend, bend])) for s in (1, -1)]
    assert all(r is not None for r in roots)
    apart = np.abs(roots[0] - roots[1]).max()
    for root in roots:
        sizes = [part * apart for part in (0.2, 0.1, 0.05, 0.01)]
        proofs = [around(certifier, root, size, 1e-3) for size in sizes]
        proof = next((p for p in proofs if p is not None), None)
        assert proof is not None
        assert proof.exists
        assert np.all((proof.lower <= root) & (root <= proof.upper))
        for thin in (1.0, 1e-2):
            assert around(certifier, root, 2.0 * apart, thin) is None


def test_a_double_root_gets_no_proof():
    certifier = two_bars(2.0)
    x = np.zeros(3)
    assert np.abs(certifier.equations(x)[0]).max() < 1e-15
    assert certifier.directions(x) is None


def test_a_region_without_a_root_is_not_proven_to_hold_one():
    certifier = two_bars(2.0 * np.cos(0.3))
    x = np.array([0.3, -0.6, 0.3]) + 0.02
    assert around(certifier, x, 1e-3) is None


def cases(count, seed):
    rng = np.random.default_rng(seed)
    for number in range(count):
        joints = int(rng.integers(3, 8))
        case = hard_planar(rng, joints) if number % 4 == 0 else hard_loop(
            rng, joints, loops=1 + number % 2, point=number % 5 == 0
        )  # fmt: skip
        system = System.of(case.mechanism)
        q = case.q * system.unit
        lower, upper = planted_boxes(rng, system.lower, system.upper, q, 40)
        # Thin in some variables, as the boxes of a nearly singular cluster are.
        thin = rng.uniform(size=lower.shape) < 0.4
        width = 10.0 ** rng.uniform(-14.0, -6.0, lower.shape)
        lower = np.where(thin, np.maximum(lower, q - width), lower)
        upper = np.where(thin, np.minimum(upper, q + width), upper)
        yield system, q, np.minimum(lower, q), np.maximum(upper, q)


def test_a_contraction_loses_no_planted_solution():
    smaller = 0
    for system, q, lower, upper in cases(60, 7):
        low, high = Certifier(system).contracted(lower, upper, Regions(system.size))
        assert len(low) == len(lower)
        assert np.all((low <= q) & (q <= high))
        assert np.all((low >= lower) & (high <= upper))
        smaller += int(((high - low).max(axis=1) < 0.5 * (upper - lower).max(axis=1)).sum())
    assert smaller > 500


def test_a_contraction_finds_boxes_without_a_solution():
    mechanism = library.get("puma560")
    certifier = Certifier(System.of(mechanism))
    x = certifier.equations.newton(np.array([0.3, -0.7, 0.9, 0.4, 0.8, -0.5]))
    box = np.full(6, 1e-3)
    beside = x + np.array([0.0, 0.0, 0.01, 0.0, 0.0, 0.0])
    low, high = certifier.contracted(
        np.array([x - box, beside - box]), np.array([x + box, beside + box]), Regions(6)
    )
    assert len(low) == 1
    assert np.all((low[0] <= x) & (x <= high[0]))
    assert (high - low).max() < 1e-5


def test_boxes_that_hold_a_known_solution_alone_are_dropped():
    certifier = Certifier(System.of(library.get("puma560")))
    x = certifier.equations.newton(np.array([0.3, -0.7, 0.9, 0.4, 0.8, -0.5]))
    proof = around(certifier, x, 2e-3)
    assert proof is not None
    known = Regions(6)
    known.add(proof.region)
    low, _ = certifier.contracted((x - 5e-4)[None], (x + 5e-4)[None], known)
    assert len(low) == 0
