"""Golden mechanisms, certificates, budgets, determinism."""

import math

import numpy as np
import pytest

from benchmarks.baselines.cuik_completeness import planted_planar, planted_platform
from kin_core.task import Task
from kin_solvers import (
    Constant,
    Loop,
    Mechanism,
    Motion,
    Settings,
    SizeError,
    Variable,
    library,
    solve,
    solve_all_ik,
)
from kin_solvers.equations import Equations
from kin_solvers.fast import FastSearch
from kin_solvers.mechanism import translation
from kin_solvers.planar import PlanarSystem
from kin_solvers.system import System

ALPHA, BETA = math.radians(30), math.radians(75)


def bennett_curve(count):
    """The closed form: theta3 = -theta1, theta4 = -theta2, half-tangent product."""
    t1 = (np.arange(count) + 0.5) / count * 2 * np.pi - np.pi
    k = math.sin((BETA + ALPHA) / 2) / math.sin((BETA - ALPHA) / 2)
    t2 = 2 * np.arctan(k / np.tan(t1 / 2))
    return np.stack([t1, t2, -t1, -t2], axis=1)


def test_bennett_is_one_closed_curve_and_nothing_is_missed():
    manifold = solve(library.get("bennett"), Settings(sigma=0.1))
    assert manifold.complete
    assert len(manifold.lower) <= 115
    assert (manifold.upper - manifold.lower).max() <= 0.1 + 1e-12
    assert not manifold.certified.any()
    missed = sum(not manifold.contains(q) for q in bennett_curve(2000))
    assert missed == 0
    assert [(c.dimension, c.closed_curve) for c in manifold.components] == [(1, True)]
    curve, closed = manifold.curve(0)
    assert closed
    assert max(library.get("bennett").residual(q) for q in curve) < 1e-9


def test_the_6r_of_manseur_and_doty_has_16_certified_solutions():
    mechanism = library.get("manseur_doty")
    manifold = solve(mechanism, Settings(sigma=0.1))
    assert len(manifold.lower) == 16
    assert manifold.certified.all()
    points, _ = manifold.refine(16)
    assert len(points) == 16
    assert max(mechanism.residual(q) for q in points) < 1e-9
    assert all(manifold.contains(q, slack=1e-9) for q in points)


@pytest.mark.parametrize(
    ("name", "count"),
    [("puma560", 8), ("ur5", 8), ("three_rpr", 6), ("double_butterfly", 6), ("scara", 2)],
)
def test_isolated_solutions_are_certified(name, count):
    manifold = solve(library.get(name), Settings(sigma=0.1))
    assert len(manifold.lower) == count
    assert manifold.certified.all()


def test_the_platform_of_dietmaier_has_40_certified_postures():
    mechanism = library.get("dietmaier")
    manifold = solve(mechanism, Settings(sigma=1e-5))
    assert manifold.complete
    assert int(manifold.certified.sum()) == len(manifold.lower) == 40
    points, _ = manifold.refine(40)
    assert len(points) == 40
    assert max(mechanism.residual(q) for q in points) < 1e-9


@pytest.mark.parametrize("sigma", [0.02, 0.1, 1.0])
def test_a_platform_at_any_sigma(sigma):
    manifold = solve(library.get("stewart"), Settings(sigma=sigma))
    assert manifold.complete
    assert len(manifold.lower) == 4
    assert sigma > 0.5 or manifold.certified.all()


@pytest.mark.parametrize("sigma", [0.1, 0.02])
def test_bricard_is_one_closed_curve_without_phantoms(sigma):
    manifold = solve(library.get("bricard"), Settings(sigma=sigma))
    assert [(c.dimension, c.closed_curve) for c in manifold.components] == [(1, True)]


def test_a_general_platform_has_its_reference_pose_among_its_certified_solutions():
    rng = np.random.default_rng(3)
    for _ in range(3):
        mechanism, u = planted_platform(rng)
        manifold = solve(mechanism, Settings(sigma=0.02))
        assert manifold.complete
        assert manifold.certified.all()
        chain = [0, 1, 12, 13, 14]
        near = [
            np.abs(np.remainder(q[chain] - u + np.pi, 2 * np.pi) - np.pi).max() < 1e-6
            for q in 0.5 * (manifold.lower + manifold.upper)
        ]
        assert sum(near) == 1


def test_absolute_angles_give_the_same_solutions_as_the_general_method():
    """Planar linkages with limits and travels: in the plane, and as loops in space."""
    rng = np.random.default_rng(11)
    seen = 0
    for _ in range(12):
        mechanism, q = planted_planar(rng, 3, loops=1)
        system = System.of(mechanism)
        if PlanarSystem.of(system) is None:
            continue
        general = FastSearch(system, 0.05, 0.8)
        outcome = general.run(general.initial(), 20_000, np.zeros(1, dtype=np.int64))
        if len(outcome.left):
            continue
        seen += 1
        planar = solve(mechanism, Settings(sigma=0.05))
        assert planar.complete
        assert planar.contains(q, slack=1e-9)
        lower, upper = general.to_angles(outcome.found_lower, outcome.found_upper)
        equations = Equations(system)
        for a, b in zip(lower, upper, strict=True):  # what one finds the other finds
            root = equations.newton(0.5 * (a + b) * system.unit)
            if root is not None and np.all((a <= root / system.unit) & (root / system.unit <= b)):
                assert planar.contains(root / system.unit, slack=1e-8)
    assert seen > 3


def test_a_planar_search_can_be_resumed():
    mechanism = library.get("double_butterfly")
    part = solve(mechanism, Settings(sigma=0.1, max_boxes=100))
    assert part.stopped == "boxes"
    done = solve(mechanism, Settings(sigma=0.1), resume=part)
    assert done.complete
    whole = solve(mechanism, Settings(sigma=0.1))
    points, _ = whole.refine(6)
    assert len(points) == 6
    assert all(part.contains(q, slack=1e-9) and done.contains(q, slack=1e-9) for q in points)


def test_puma_solutions_against_the_closed_form():
    """Each of the 8 comes from the left/right, up/down, flip choices of the spherical-wrist arm."""
    arm = library.get("puma560")
    found = solve_all_ik(arm, [0.3, -0.7, 0.9, 0.4, 0.8, -0.5])
    assert found.positions.shape == (8, 6)
    np.testing.assert_allclose(found.positions[0], [0.3, -0.7, 0.9, 0.4, 0.8, -0.5], atol=1e-9)
    for q in found.positions:  # the wrist flip of every solution is a solution as well
        flip = q + np.array([0, 0, 0, np.pi, 0, np.pi])
        flip[4] = -q[4]
        gaps = np.abs(np.remainder(found.positions - flip + np.pi, 2 * np.pi) - np.pi).max(axis=1)
        assert gaps.min() < 1e-8


def test_ur5_appears_at_every_turn_of_its_wide_ranges():
    arm = library.get("ur5")
    found = solve_all_ik(arm, [0.3, -0.9, 1.2, 0.4, 0.8, -0.5])
    assert len(found.positions) == 8 * 2**6  # two turns for each of 6 joints
    assert found.distances[0] < 1e-9
    assert (np.diff(found.distances) >= 0).all()
    assert (np.abs(found.positions) <= 2 * np.pi).all()
    assert max(arm.residual(q) for q in found.positions[::37]) < 1e-9


def test_limits_are_respected():
    arm = library.get("puma560").with_ranges({"theta1": (0.0, 1.0), "theta5": (0.1, 3.0)})
    found = solve_all_ik(arm)
    assert 0 < len(found.positions) < 8
    assert ((found.positions[:, 0] >= 0.0) & (found.positions[:, 0] <= 1.0)).all()
    everything = solve_all_ik(library.get("puma560")).positions
    inside = (
        (everything[:, 0] >= 0.0)
        & (everything[:, 0] <= 1.0)
        & (everything[:, 4] >= 0.1)
        & (everything[:, 4] <= 3.0)
    )
    assert inside.sum() == len(found.positions)


@pytest.mark.parametrize("sigma", [0.1, 0.03])
def test_iiwa_self_motion_is_eight_closed_curves(sigma):
    manifold = solve(library.get("iiwa7"), Settings(sigma=sigma, threads=2))
    assert [(c.dimension, c.closed_curve) for c in manifold.components] == [(1, True)] * 8


@pytest.mark.parametrize("name", ["planar_four_bar", "spherical_four_bar"])
def test_grashof_four_bars_have_two_curves(name):
    manifold = solve(library.get(name), Settings(sigma=0.1))
    assert [(c.dimension, c.closed_curve) for c in manifold.components] == [(1, True)] * 2


def test_a_mechanism_that_cannot_close_is_proven_empty():
    factors = []
    for k, length in enumerate([10.0, 1.0, 2.0]):
        factors += [Motion(k), Constant(translation(0, length))]
    manifold = solve(Mechanism("gap", tuple(Variable(n) for n in "abc"), (Loop(tuple(factors)),)))
    assert manifold.complete
    assert len(manifold.lower) == 0
    assert "no configuration" in manifold.message


def test_an_unreachable_pose_is_proven():
    pose = np.eye(4)
    pose[0, 3] = 5.0
    assert len(solve(library.get("puma560").with_target(pose)).lower) == 0


def test_scara_with_its_prismatic_joint():
    arm = library.get("scara")
    found = solve_all_ik(arm, [0.4, 0.9, 0.12, -0.3])
    assert len(found.positions) == 2
    np.testing.assert_allclose(found.positions[0], [0.4, 0.9, 0.12, -0.3], atol=1e-9)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_answer_does_not_depend_on_the_unit_of_length(scale):
    from kin_solvers import loop_from_dh

    a = scale * np.array([1.0, 2.0, 2.5, 2.2])
    manifold = solve(loop_from_dh("m", a, np.zeros(4), np.zeros(4)), Settings(sigma=0.1))
    assert len(manifold.components) == 2


def test_threads_give_the_same_answer():
    mechanism = library.get("bricard")
    one = solve(mechanism, Settings(sigma=0.1, threads=1))
    two = solve(mechanism, Settings(sigma=0.1, threads=2))
    np.testing.assert_array_equal(one.lower, two.lower)
    np.testing.assert_array_equal(one.upper, two.upper)
    assert one.counters == two.counters


@pytest.mark.parametrize("method", ["fast", "paper"])
def test_a_box_budget_leaves_unfinished_boxes_and_can_be_resumed(method):
    mechanism = library.get("bennett")
    settings = Settings(sigma=0.1, method=method, rho=0.9)
    whole = solve(mechanism, settings)
    part = solve(mechanism, Settings(sigma=0.1, method=method, rho=0.9, max_boxes=60))
    assert not part.complete
    assert part.stopped == "boxes"
    assert 0.0 < part.settled < 1.0
    assert part.counters.processed <= 60
    for q in bennett_curve(300):  # found or unfinished: nothing is dropped
        assert part.contains(q)
    done = solve(mechanism, settings, resume=part)
    assert done.complete
    assert all(done.contains(q) for q in bennett_curve(300))
    if method == "fast":
        assert done.counters.processed >= whole.counters.processed // 2


def test_a_memory_budget_is_kept():
    part = solve(library.get("iiwa7"), Settings(sigma=0.02, max_bytes=20_000))
    assert part.stopped == "memory"
    assert len(part.unfinished_lower) > 0


def test_time_and_cancel_stop_the_search_with_everything_returned():
    part = solve(library.get("iiwa7"), Settings(sigma=1e-5), task=Task(0.3))
    assert part.stopped == "time"
    assert len(part.unfinished_lower) > 0
    reports = []
    task = Task(None, lambda p: (reports.append(p), len(reports) > 2 and task.cancel()))
    part = solve(library.get("iiwa7"), Settings(sigma=1e-5), task=task)
    assert part.stopped == "cancelled"
    assert reports[-1].fraction >= reports[0].fraction
    assert {"queued", "solutions", "processed"} <= set(reports[0].counters)


def test_a_loop_of_twelve_joints_ends_at_its_budget():
    rng = np.random.default_rng(0)
    factors = []
    for k in range(12):
        factors += [Motion(k, k % 3), Constant(translation(0, float(rng.uniform(0.5, 1.0))))]
    mechanism = Mechanism(
        "twelve", tuple(Variable(f"v{k}") for k in range(12)), (Loop(tuple(factors)),)
    )
    part = solve(mechanism, Settings(max_boxes=100))
    assert part.stopped == "boxes"
    with pytest.raises(SizeError, match="corners"):
        solve(mechanism, Settings(method="paper"))


def test_paper_method_covers_the_curve():
    manifold = solve(library.get("bennett"), Settings(sigma=0.2, method="paper", rho=0.9))
    assert all(manifold.contains(q) for q in bennett_curve(1000))


def test_sorted_by_a_seed():
    manifold = solve(library.get("puma560")).sorted_by([0.3, -0.7, 0.9, 0.4, 0.8, -0.5])
    distances = manifold.distances([0.3, -0.7, 0.9, 0.4, 0.8, -0.5])
    assert distances[0] < 1e-6
    assert (np.diff(distances) >= 0).all()


def test_a_certificate_is_not_given_to_a_double_root():
    """Two links of equal length stretched out: the two elbows meet in one singular solution."""
    factors = [Motion(0), Constant(translation(0, 1.0)), Motion(1), Constant(translation(0, 1.0)),
               Motion(2), Constant(translation(0, -2.0))]  # fmt: skip
    mechanism = Mechanism("edge", tuple(Variable(n) for n in "abc"), (Loop(tuple(factors)),))
    manifold = solve(mechanism)
    assert manifold.contains([0.0, 0.0, 0.0])
    assert not manifold.certified.any()
