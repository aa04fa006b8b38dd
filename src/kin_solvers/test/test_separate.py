"""Every isolated solution once, near singularities as well; what cannot be separated says so."""

import math

import numpy as np
import pytest
from reference_ik import ARMS, compare

from benchmarks.baselines.cuik_completeness import planted_loop
from kin_core.task import Task
from kin_solvers import Constant, Loop, Mechanism, Motion, Settings, Variable, library, solve
from kin_solvers.all_ik import solve_all_ik
from kin_solvers.mechanism import rotation, translation

PUMA = ARMS[0]
GOLDEN = np.array([1.455834, -1.912859, -1.682373, -1.200998, -0.01, 1.883871])


def near_wrist(q5):
    q = GOLDEN.copy()
    q[4] = q5
    return q


@pytest.mark.parametrize("q5", [-0.01, 1e-2, 1e-3, 1e-4, -1e-5, 1e-6])
def test_a_wrist_that_is_nearly_straight_has_eight_certified_solutions(q5):
    q = near_wrist(q5)
    found = solve_all_ik(PUMA.mechanism(q))
    assert found.positions.shape == (8, 6)
    assert found.certified.all()
    assert found.complete
    verdict = compare(found, PUMA.solutions(PUMA.pose(q), np.random.default_rng(0)))
    assert (verdict.missing, verdict.extra) == (0, 0)


@pytest.mark.parametrize("bend", [1e-2, 1e-3, 1e-4, 1e-5])
def test_an_elbow_that_is_nearly_stretched_has_no_copies(bend):
    q = np.array([0.4, -0.6, bend - math.atan2(-0.4318, 0.0203), 0.5, 0.9, -1.1])
    found = solve_all_ik(PUMA.mechanism(q))
    assert len(found.positions) == 8
    assert found.complete
    listed = PUMA.solutions(PUMA.pose(q), np.random.default_rng(0))
    assert compare(found, listed).missing == 0


@pytest.mark.parametrize("offset", [1e-2, 1e-4])
def test_a_wrist_centre_near_the_first_axis(offset):
    """IRB 120: the first joint turns the wrist about a nearly vertical line."""
    arm = ARMS[1]
    q = np.array([0.7, *_elbows_above_the_shoulder(arm, offset), 0.3, 0.8, -0.4])
    found = solve_all_ik(arm.mechanism(q))
    listed = arm.solutions(arm.pose(q), np.random.default_rng(0))
    verdict = compare(found, listed)
    assert found.complete
    assert (verdict.missing, verdict.extra, len(listed)) == (0, 0, 8)


def _elbows_above_the_shoulder(arm, offset):
    """Joints 2 and 3 that put the wrist centre at a distance from the first axis."""
    from scipy.optimize import fsolve

    def gap(x):
        wrist = arm.pose(np.array([0.0, x[0], x[1], 0.0, 0.0, 0.0]))
        centre = wrist[:3, 3] - arm.d[5] * wrist[:3, 2]
        return [centre[0] - offset, centre[2] - 0.55]

    answer, _, came, _ = fsolve(gap, [-1.5, 0.5], full_output=True, xtol=1e-13)
    assert came == 1
    return answer


@pytest.mark.parametrize("q5", [0.0, 1e-9])
def test_what_cannot_be_separated_says_so(q5):
    """A straight wrist: a curve in truth, or two solutions nearer than rounding errors."""
    found = solve_all_ik(PUMA.mechanism(near_wrist(q5)))
    assert found.manifold.complete
    assert not found.separated
    assert not found.complete
    assert "not all separated" in found.message
    guessed = [c for c in found.manifold.components if not c.proven]
    assert guessed or found.manifold.unresolved
    assert found.certified.sum() == 6  # the other postures are regular


def test_the_limit_of_a_refinement_is_kept(monkeypatch):
    """With a small budget the cluster stays as it is, and the answer says that it is open."""
    from kin_solvers import separate

    monkeypatch.setattr(separate, "MAX_PROCESSED", 50)
    found = solve_all_ik(PUMA.mechanism(near_wrist(1e-5)))
    assert not found.separated
    for q in PUMA.solutions(PUMA.pose(near_wrist(1e-5)), np.random.default_rng(0)):
        assert found.manifold.contains(q, slack=1e-6)


def test_a_cancelled_separation_keeps_the_cover():
    task = Task(None)
    mechanism = PUMA.mechanism(near_wrist(1e-4))
    task.cancel()
    manifold = solve(mechanism, Settings(sigma=0.1), task=task)
    for q in PUMA.solutions(PUMA.pose(near_wrist(1e-4)), np.random.default_rng(0)):
        assert manifold.contains(q, slack=1e-6)


def test_more_equations_than_unknowns():
    """Five joints at a pose that they reach: alone in its region, but existence has no proof."""
    from kin_solvers.dh import arm_from_dh

    arm = arm_from_dh(
        "five", [0.0, 0.4, 0.3, 0.1, 0.0], np.radians([-90.0, 20.0, 70.0, -80.0, 0.0]),
        [0.3, 0.05, 0.0, 0.1, 0.2], q=[0.3, -0.7, 0.9, 0.4, 0.8],
    )  # fmt: skip
    found = solve_all_ik(arm)
    assert not found.certified.any()
    assert found.manifold.isolated.any()
    gaps = np.abs(found.positions - [0.3, -0.7, 0.9, 0.4, 0.8]).max(axis=1)
    assert (gaps < 1e-6).sum() == 1


@pytest.mark.parametrize("seed", range(12))
def test_more_equations_than_unknowns_of_loops_that_close_by_points(seed):
    """Their rotations are free: no proof that a cluster is empty may look at them."""
    mechanism, q = planted_loop(np.random.default_rng(seed), 3, loops=2, point=True)
    assert len(mechanism.variables) < 6
    around = (q - 1e-3)[None], (q + 1e-3)[None]
    found = solve(mechanism, Settings(sigma=1e-2), boxes=around)
    assert found.complete
    assert found.contains(q)


def test_a_multiple_root_is_one_component_of_guessed_dimension():
    factors = [Motion(0), Constant(translation(0, 1.0)), Motion(1), Constant(translation(0, 1.0)),
               Motion(2), Constant(translation(0, -2.0))]  # fmt: skip
    mechanism = Mechanism("edge", tuple(Variable(n) for n in "abc"), (Loop(tuple(factors)),))
    manifold = solve(mechanism)
    assert [(c.dimension, c.proven) for c in manifold.components] == [(0, False)]
    assert not manifold.separated


def test_isolated_solutions_beside_a_curve_are_certified():
    """Cyclohexane: two rigid chairs, and the boats and twists, which are a curve."""
    angle = math.acos(-1.0 / 3.0)
    factors = []
    for k in range(6):
        factors += [Motion(k, 0), Constant(translation(0, 1.0))]
        factors.append(Constant(rotation(2, math.pi - angle)))
    ring = Mechanism("ring", tuple(Variable(f"t{k}") for k in range(6)), (Loop(tuple(factors)),))
    manifold = solve(ring, Settings(sigma=0.1))
    assert manifold.complete
    assert int(manifold.certified.sum()) == 2
    dimensions = sorted((c.dimension, c.proven) for c in manifold.components)
    assert dimensions[:2] == [(0, True), (0, True)]
    assert (1, False) in dimensions


@pytest.mark.parametrize("name", ["puma560", "ur5", "manseur_doty", "scara", "three_rpr"])
def test_a_regular_list_is_separated(name):
    manifold = solve(library.get(name), Settings(sigma=0.1))
    assert manifold.separated
    assert all(c.proven and c.dimension == 0 for c in manifold.components)
    assert not manifold.unresolved
