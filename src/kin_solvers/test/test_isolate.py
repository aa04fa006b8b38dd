"""Roots proven without interval arithmetic: none lost, none twice, and bounds that hold."""

import math

import numpy as np
import pytest
from reference_ik import ARMS

from benchmarks.baselines.cuik_adversarial import hard_loop
from benchmarks.baselines.cuik_completeness import planted_boxes, planted_loop
from kin_solvers.equations import Equations, evaluate
from kin_solvers.isolate import bounds_of, isolate, make_roots
from kin_solvers.system import System

PUMA = ARMS[0]


def held_boxes(system, lower, upper, bounds=None):
    """The roots that are proven from boxes, and which of these are settled by that."""
    roots = make_roots(system.size)
    held = np.zeros(len(lower), dtype=np.bool_)
    bounds = bounds_of(system) if bounds is None else bounds
    tables = Equations.of(system).tables
    isolate(tables, bounds, system.cyclic, lower, upper, roots, held)
    count, regions = roots.counts
    return roots.x[:count], roots.tight[:count], roots.owner[:regions], held


def gap(system, q, x):
    """Distances of a configuration from roots, whole turns apart."""
    difference = x - q
    turns = np.where(system.cyclic, np.round(difference / (2.0 * math.pi)), 0.0)
    return np.abs(difference - 2.0 * math.pi * turns)


def cases(count, seed, boxes):
    """Loops of six joints, ordinary and hard ones, each with boxes around a planted solution."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        if number % 2:
            case = hard_loop(rng, 6)
            mechanism, q = case.mechanism, case.q
        else:
            mechanism, q = planted_loop(rng, 6)
        system = System.of(mechanism)
        solution = q * system.unit
        lower, upper = planted_boxes(rng, system.lower, system.upper, solution, boxes)
        yield system, solution, lower, upper


def campaign(count, seed, boxes, part=1.0):
    """Boxes that are settled, and those of them whose planted solution is no root that is known."""
    settled = lost = 0
    for system, q, lower, upper in cases(count, seed, boxes):
        bounds = bounds_of(system)
        bounds = bounds._replace(value=bounds.value * part, slope=bounds.slope * part)
        x, tight, _, held = held_boxes(system, lower, upper, bounds)
        settled += int(held.sum())
        slack = 4e-15 * (1.0 + np.abs(q)) if part == 1.0 else 0.0
        known = bool((gap(system, q, x) <= tight + slack).all(axis=1).any())
        lost += int(held.sum()) * (not known)
    return settled, lost


def test_no_box_is_settled_without_its_planted_solution():
    settled, lost = campaign(160, 5, 120)
    assert lost == 0
    assert settled > 2000


def test_the_campaign_notices_errors_that_are_left_out():
    assert campaign(160, 5, 40, part=1e-4)[1] > 0


def test_the_jacobian_changes_no_more_than_the_bound_says():
    rng = np.random.default_rng(3)
    largest = 0.0
    for system, q, _, _ in cases(40, 6, 1):
        bounds, tables = bounds_of(system), Equations.of(system).tables
        F, J, F_other, J_other = np.empty(6), np.empty((6, 6)), np.empty(6), np.empty((6, 6))
        evaluate(tables, q, F, J)
        for _ in range(20):
            s = rng.normal(size=6) * 10.0 ** rng.uniform(-6.0, -1.5)
            evaluate(tables, q + s, F_other, J_other)
            spread = bounds.uses @ np.abs(s)
            most = (bounds.bend * spread)[:, None] * bounds.uses + 2.0 * bounds.slope
            assert np.all(np.abs(J_other - J) <= most)
            curve = bounds.bend * spread**2 + bounds.slope @ np.abs(s) + 2.0 * bounds.value
            assert np.all(np.abs(F_other - F - J @ s) <= curve)
            largest = max(largest, float(np.max(np.abs(J_other - J) / most)))
    assert largest > 0.2  # the bound is not much larger than it must be


@pytest.mark.parametrize("q5", [1e-1, 1e-2, 1e-3, 1e-4, 1e-5])
def test_a_box_with_two_roots_is_never_settled(q5):
    """The wrist of a PUMA: q4, q6 turned by half a turn and -q5 is the same pose."""
    q = np.array([0.7, -1.1, 0.4, 0.3, q5, -0.8])
    other = q + np.array([0.0, 0.0, 0.0, math.pi, -2.0 * q5, -math.pi])
    system = System.of(PUMA.mechanism(q))
    near = np.minimum(q, other) - 1e-9, np.maximum(q, other) + 1e-9
    *_, held = held_boxes(system, near[0][None], near[1][None])
    assert not held.any()
    # Each by itself, in a box that is small beside their distance, is one of two roots.
    half = np.full(6, 1e-4 * q5)
    lower, upper = np.array([q - half, other - half]), np.array([q + half, other + half])
    x, tight, owner, held = held_boxes(system, lower, upper)
    if held.all():
        assert len(x) == 2
        assert sorted(owner) == [0, 1]
        for root in (q, other):
            assert (gap(system, root, x) <= tight + 1e-12).all(axis=1).sum() == 1


def test_boxes_around_one_root_give_it_once():
    q = np.array([0.3, -0.7, 0.9, 0.4, 0.8, -0.5])
    system = System.of(PUMA.mechanism(q))
    rng = np.random.default_rng(0)
    middle = q + rng.uniform(-2e-4, 2e-4, (50, 6))
    middle[::7, 3] += 2.0 * math.pi
    x, tight, _, held = held_boxes(system, middle - 1e-4, middle + 1e-4)
    assert held.all()
    assert len(x) == 1
    assert np.all(gap(system, q, x[0]) <= tight[0] + 1e-15)
    assert tight.max() < 1e-11


def test_a_system_for_another_target_has_the_bits_of_a_new_one():
    rng = np.random.default_rng(1)
    for arm in ARMS:
        kept = arm.mechanism(np.zeros(6))
        System.of(kept)
        for q in rng.uniform(-3.0, 3.0, (5, 6)):
            pose = arm.pose(q)
            new = System.of(arm.mechanism(np.zeros(6)).with_target(pose))
            again = System.of(kept.with_target(pose))
            for name in ("length", "C", "C_inverse", "C_radius", "reach", "unknown", "delta_wide"):
                np.testing.assert_array_equal(getattr(again, name), getattr(new, name))
            for mine, theirs in zip(again.tables, new.tables, strict=True):
                np.testing.assert_array_equal(mine, theirs)
