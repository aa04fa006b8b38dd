"""Components: their number does not depend on sigma, curves reach both ends of the ranges."""

import math
from dataclasses import replace

import numpy as np
import pytest
from brute_force_arcs import count_arcs

from kin_solvers import Settings, arm_from_dh, library, solve, solve_all_ik
from kin_solvers.components import Finder
from kin_solvers.equations import Equations
from kin_solvers.system import System


def test_touching_clusters_and_phantoms_do_not_change_the_number_of_components():
    expected = {
        "bennett": (1, 1), "bricard": (1, 1), "iiwa7": (1, 8), "manseur_doty": (0, 16),
        "planar_four_bar": (1, 2), "puma560": (0, 8), "scara": (0, 2), "spherical_four_bar": (1, 2),
        "stewart": (0, 4), "three_rpr": (0, 6), "ur5": (0, 8), "double_butterfly": (0, 6),
    }  # fmt: skip
    for name, (dimension, count) in expected.items():
        for sigma in (0.2, 0.1, 0.05):
            found = solve(library.get(name), Settings(sigma=sigma)).components
            assert [c.dimension for c in found] == [dimension] * count, (name, sigma)
            assert all(c.closed_curve for c in found) or dimension == 0, (name, sigma)


def iiwa14(q, limits):
    return arm_from_dh(
        "iiwa14", np.zeros(7), np.radians([-90.0, 90.0, 90.0, -90.0, -90.0, 90.0, 0.0]),
        [0.36, 0.0, 0.42, 0.0, 0.4, 0.0, 0.126], q=list(q),
        ranges=[(-a, a) for a in limits] if limits is not None else None,
    )  # fmt: skip


def panda(q, limits):
    return arm_from_dh(
        "panda", [0.0, 0.0, 0.0825, -0.0825, 0.0, 0.088, 0.0],
        np.radians([-90.0, 90.0, 90.0, -90.0, 90.0, 90.0, 0.0]),
        [0.333, 0.0, 0.316, 0.0, 0.384, 0.0, 0.107], q=list(q), ranges=limits,
    )  # fmt: skip


def yumi(q, limits):
    return arm_from_dh(
        "yumi", [0.03, 0.03, 0.0405, 0.0405, 0.027, 0.027, 0.0],
        np.radians([-90.0, 90.0, -90.0, -90.0, 90.0, -90.0, 0.0]),
        [0.166, 0.0, 0.2515, 0.0, 0.265, 0.0, 0.036], q=list(q), ranges=limits,
    )  # fmt: skip


IIWA = np.radians([170, 120, 170, 120, 170, 120, 175])
PANDA = [(-2.8973, 2.8973), (-1.7628, 1.7628), (-2.8973, 2.8973), (-3.0718, -0.0698),
         (-2.8973, 2.8973), (-0.0175, 3.7525), (-2.8973, 2.8973)]  # fmt: skip
YUMI = [(-2.94, 2.94), (-2.5, 0.76), (-2.94, 2.94), (-2.16, 1.4), (-5.06, 5.06), (-1.54, 2.41),
        (-4.0, 4.0)]  # fmt: skip


def brute_force(mechanism, count, seed):
    """Solutions within the ranges from random starts, shape (N, V)."""
    system = System.of(mechanism)
    rng = np.random.default_rng(seed)
    q, came = Equations(system).newton_all(
        rng.uniform(system.lower, system.upper, (count, system.size))
    )
    free = system.cyclic
    inside = ((q >= system.lower) & (q <= system.upper)) | free
    return q[came & inside.all(axis=1)] / system.unit


def cases():
    rng = np.random.default_rng(5)
    for make, limits in ((iiwa14, IIWA), (panda, PANDA), (yumi, YUMI)):
        ends = np.array(limits if limits is not IIWA else [(-a, a) for a in limits])
        for _ in range(3):
            yield make(rng.uniform(0.95 * ends[:, 0], 0.95 * ends[:, 1]), limits)


#: The arms by standard Denavit-Hartenberg rows, for the judge.
ROWS = {
    "iiwa14": (np.zeros(7), np.radians([-90.0, 90.0, 90.0, -90.0, -90.0, 90.0, 0.0]),
               [0.36, 0.0, 0.42, 0.0, 0.4, 0.0, 0.126]),
    "panda": ([0.0, 0.0, 0.0825, -0.0825, 0.0, 0.088, 0.0],
              np.radians([-90.0, 90.0, 90.0, -90.0, 90.0, 90.0, 0.0]),
              [0.333, 0.0, 0.316, 0.0, 0.384, 0.0, 0.107]),
}  # fmt: skip


def test_the_number_of_arcs_within_limits_is_that_of_brute_force_at_any_sigma():
    """Two sheets in one box, arcs shorter than a box, large clusters without a solution."""
    poses = [
        (iiwa14, [2.24187311021281, 1.369816018593002, -0.6065593960883531, -0.027763855255682035,
                  0.9960709344813683, -1.7477200292335489, 0.3226364844537928], IIWA),
        (panda, [0.6809123881697112, 0.35798800885770277, 2.5903648184058867, -0.0708,
                 1.5959580165955995, 0.17711179381486208, -0.7195618921700104], PANDA),
    ]  # fmt: skip
    for make, q, limits in poses:
        ends = np.array(limits if limits is not IIWA else [(-a, a) for a in limits])
        expected = count_arcs(*ROWS[make.__name__], np.array(q), ends[:, 0], ends[:, 1])
        assert expected >= 8
        for sigma in (0.2, 0.1, 0.05):
            manifold = solve(make(q, limits), Settings(sigma=sigma))
            assert not manifold.unresolved
            assert [c.dimension for c in manifold.components] == [1] * expected, sigma


def test_a_curve_that_misses_two_limits_at_once_by_little_leaves_nothing_unresolved():
    q = [-0.6738221962106241, 1.629363366390431, -0.603369862427197, -0.6014725814416473,
         -0.8567755931843923, -0.07654054117563747, -2.360215272213511]  # fmt: skip
    for sigma in (0.1, 0.05):
        manifold = solve(iiwa14(q, IIWA), Settings(sigma=sigma))
        assert not manifold.unresolved
        assert len(manifold.components) == 20  # by ``count_arcs``


@pytest.mark.slow
def test_sampled_curves_pass_by_every_solution_within_the_limits():
    seen = 0
    for number, arm in enumerate(cases()):
        found = solve_all_ik(arm)
        assert found.manifold.complete
        assert not found.manifold.unresolved
        lower = np.array([v.lower for v in arm.variables])
        upper = np.array([v.upper for v in arm.variables])
        assert ((found.positions >= lower) & (found.positions <= upper)).all()
        for q in brute_force(arm, 1500, number):
            gap = np.abs(np.remainder(found.positions - q + math.pi, 2 * math.pi) - math.pi)
            assert gap.max(axis=1).min() < 0.1, (arm.name, q)
            seen += 1
    assert seen > 300


@pytest.mark.slow
def test_open_curves_end_at_limits_at_any_sigma():
    for arm in cases():
        for sigma in (0.1, 0.05):
            manifold = solve(arm, Settings(sigma=sigma))
            assert not manifold.unresolved
            lower = np.array([v.lower for v in arm.variables])
            upper = np.array([v.upper for v in arm.variables])
            for c in manifold.components:
                if c.closed_curve:
                    continue
                for end in (c.curves[0][0], c.curves[0][-1]):
                    slack = np.minimum(np.abs(end - lower), np.abs(upper - end))
                    assert slack.min() < 1e-6


def test_a_start_beyond_the_limits_does_not_end_a_curve():
    """Newton's method from a box at the edge comes to a point outside; the arc is found still."""
    arm = library.get("bennett").with_ranges({"theta1": (0.5, 0.53)})
    manifold = solve(arm, Settings(sigma=0.1))
    assert len(manifold.components) == 1
    curve, closed = manifold.curve(0)
    assert not closed
    assert curve[:, 0].min() == pytest.approx(0.5, abs=1e-8)
    assert curve[:, 0].max() == pytest.approx(0.53, abs=1e-8)


def test_every_box_of_a_regular_cover_has_a_component():
    manifold = solve(library.get("iiwa7"), Settings(sigma=0.1))
    assert (manifold.labels >= 0).all()
    for number, component in enumerate(manifold.components):
        assert (manifold.labels[component.boxes] == number).all()


def test_branches_that_meet_may_be_all_there_is():
    """No component of a single curve: there is nothing to merge, and nothing fails."""
    mechanism = library.get("planar_four_bar")
    system = System.of(mechanism)
    cover = solve(mechanism, Settings(sigma=0.2))
    finder = Finder(system, cover.lower * system.unit, cover.upper * system.unit, cover.sigma)
    first, second = cover.components
    both = replace(first, curves=(*first.curves, *second.curves), closed_curve=False)
    assert finder.merged([both]) == [both]
