"""UNREACHABLE only where it is so: scales, singular starts, bounds, other starts; and levels."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from hier_ik import Linkage, Solver, SolverOptions, frame, tower
from hier_ik.reach import beyond_reach, on_one_level, other_starts
from kin_core.errors import StatusCode

sys.path.insert(0, str(Path(__file__).parent))
from mechanisms import delta
from oracle import Oracle, length, scaled
from reach_campaign import campaign
from small_mechanisms import five_bar, mechanism, random_case, reachable_goal
from test_solver import parallelogram

SCALES = (0.01, 0.12, 1.0, 12.0, 100.0)


def test_no_reachable_goal_of_small_and_large_mechanisms_is_called_unreachable():
    """A part of reach_campaign.py, which tries a thousand; scipy checks every UNREACHABLE."""
    count, false = campaign(70)
    assert false == []
    assert count["reachable: SUCCESS"] >= 33, count
    assert count["random: UNREACHABLE"] >= 5, count
    assert count["random: SUCCESS"] >= 5, count


@pytest.mark.parametrize("s", SCALES)
def test_a_delta_of_any_size_meets_its_goals(s):
    """Within a tenth of its size, where no singular posture is near: every one of them."""
    rng = np.random.default_rng(4)
    l = delta()[0]
    l.add_goal("g", "platform", "position")
    for _ in range(10):
        assert reachable_goal(rng, l, 0.05)
        result = Solver(scaled(l, s / length(l))).solve(tolerance=1e-9 * s)
        assert result.success, (s, result.message)


def two_bars(q=(0.0, 0.0)) -> Linkage:
    l = Linkage("2r")
    for n in ("g", "a", "b"):
        l.add_link(n)
    l.add_joint("1", "revolute", "g", "a", closure=False, value=q[0])
    l.add_joint("2", "revolute", "a", "b", xyz=(1, 0, 0), closure=False, value=q[1])
    l.add_goal("g1", "b", "position", offset=(1, 0, 0))
    return l


@pytest.mark.parametrize("s", SCALES)
@pytest.mark.parametrize("x", [1.5, 0.7, 1.99, -1.2, 0.01])
def test_a_stretched_arm_steps_out_towards_a_goal_in_its_own_line(s, x):
    l = two_bars()
    l.set_goal("g1", (x, 0, 0))
    result = Solver(scaled(l, s)).solve(tolerance=1e-9 * s)
    assert result.success, result.message


@pytest.mark.parametrize("s", SCALES)
@pytest.mark.parametrize("angle", [0.3, 1.0, -0.7, 2.0])
def test_a_flat_parallelogram_steps_out(s, angle):
    """All bars in one line: the loop's Jacobian has lost a rank."""
    l = parallelogram()
    for n in l.values:
        l.values[n] = np.zeros(1)
    l.set_goal("pull", (0.5 + 0.5 * np.cos(angle), 0.5 * np.sin(angle), 0))
    result = Solver(scaled(l, s)).solve(tolerance=1e-9 * s)
    assert result.success, result.message


def test_with_a_step_time_nothing_moves_farther_than_it_may():
    """Stepping out is kept within the velocity limits too."""
    l = two_bars()
    l.set_limits("1", velocity=0.5)
    l.set_limits("2", velocity=0.5)
    l.set_goal("g1", (1.5, 0, 0))
    s = Solver(l)
    for _ in range(100):
        before = s.q
        result = s.solve(step_time=0.05, max_iterations=10)
        assert np.abs(s.q - before).max() <= 0.025 + 1e-12
        if result.success:
            return
        assert result.code == StatusCode.NOT_CONVERGED
    raise AssertionError(result.message)


def test_goals_farther_away_than_their_chain_are_unreachable_by_proof():
    l = two_bars((0.3, 0.4))
    for target, far in (((2.1, 0, 0), True), ((1.9, 0, 0), False), ((0, -2.0001, 0), True)):
        l.set_goal("g1", target)
        assert (beyond_reach(l, l.goals["g1"]) is not None) == far
        result = Solver(l, options=SolverOptions(restarts=0)).solve()
        assert (result.code == StatusCode.UNREACHABLE) == far
        assert ("chain 2 m long" in result.message) == far
    t = tower(3)
    t.set_goal("drag", (0, 0, 5.0))
    result = Solver(t, options=SolverOptions(restarts=0)).solve()
    assert result.code == StatusCode.UNREACHABLE


def test_the_bound_is_never_below_what_a_posture_reaches():
    rng = np.random.default_rng(2)
    for _ in range(300):
        l = mechanism(rng)
        oracle = Oracle(l)
        q = oracle.vector(l.values) + rng.normal(size=len(oracle.unit)) * oracle.unit
        q = np.clip(q, oracle.low, oracle.high)
        g = l.goals["g"]
        l.set_goal("g", oracle.poses(oracle.values(q))[g.link] @ g.offset)
        far = beyond_reach(l, l.goals["g"])
        free = any(
            not a and not np.isfinite([j.lower[i], j.upper[i]]).all()
            for j in l.tree_joints()
            for i, a in enumerate(j.kind.angular)
        )
        assert far is None or free, (l.name, far)


def test_a_goal_within_reach_of_no_posture_is_unreachable():
    """Too near for two bars of different length, too far for a slide at its limit."""
    l = two_bars((0.3, 0.4))
    l.goals["g1"] = l.goals["g1"].__class__(
        **{**l.goals["g1"].__dict__, "offset": frame((0.4, 0, 0))}
    )
    l.set_goal("g1", (0.3, 0.1, 0))
    result = Solver(l).solve()
    assert result.code == StatusCode.UNREACHABLE
    assert "other starts" in result.message
    assert result.alternative is None


@pytest.mark.parametrize("k", [328, 338, 348, 424, 548, 720, 744, 968, 988])
def test_a_posture_far_from_the_start_is_offered_and_taken_only_if_asked_for(k):
    """The goals of the campaign that only another assembly of the mechanism meets."""
    l, s = random_case(np.random.default_rng([7, k]))
    solver = Solver(l.copy())
    result = solver.solve(tolerance=1e-9 * s, max_iterations=300)
    assert result.code == StatusCode.NOT_CONVERGED
    assert "a posture far from this start meets all" in result.message
    assert result.alternative is not None
    assert max(Oracle(l).residuals({**l.values, **result.alternative}).values()) <= 1e-8 * s
    far = max(
        np.abs(result.alternative[j.name] - l.values[j.name]).max()
        for j in l.tree_joints()
        if j.dof and all(j.kind.angular)
    )
    assert far > 1.0
    asked = Solver(l.copy()).solve(tolerance=1e-9 * s, max_iterations=300, other_assemblies=True)
    assert asked.success, asked.message
    assert "far from the start" in asked.message
    assert max(Oracle(l).residuals(asked.values).values()) <= 1e-8 * s


def test_no_start_is_outside_the_limits_and_the_first_is_the_present_one():
    rng = np.random.default_rng(0)
    for _ in range(50):
        l = mechanism(rng)
        starts = list(other_starts(on_one_level(l), 1.0, 8))
        assert len(starts) == 8
        for n, v in starts[0].items():
            np.testing.assert_array_equal(
                v, np.clip(l.values[n], l.joints[n].lower, l.joints[n].upper)
            )
        for start in starts:
            for n, v in start.items():
                assert ((v >= l.joints[n].lower) & (v <= l.joints[n].upper)).all()


@pytest.mark.parametrize("how", ["end", "few", "cancelled"])
def test_no_goal_opens_a_real_loop(how):
    """Five bars pulled anywhere: the loop is as closed as it was."""
    from kin_core.task import Task

    opened = []
    for k in range(60):
        rng = np.random.default_rng([3, k])
        l = five_bar(rng)
        s = float(10.0 ** rng.uniform(-2, 2))
        l.set_goal("g", (*rng.uniform(-2, 3, 2), 0))
        solver = Solver(scaled(l, s), options=SolverOptions(restarts=0))
        task = None
        if how == "cancelled":
            task = Task()
            task.cancel()
        most = int(rng.integers(1, 8)) if how == "few" else 200
        result = solver.solve(tolerance=1e-9 * s, max_iterations=most, task=task)
        opened.append(result.closure_residual / s)
    assert max(opened) <= 1e-9


def test_weights_go_with_their_own_rows():
    """Closures are put in order of their levels; each keeps its weight."""
    l = parallelogram()
    l.add_goal("light", "c", "position", target=(0.6, 0.3, 0), weight=1e-3, priority=4)
    l.add_goal("first", "a", "plane", target=(0, 0, 0), weight=50.0, priority=1)
    s = Solver(l)
    weights = s.tables.closures["weight"]
    got = {n: weights[i] for n, i in s.compiled.closure_of.items()}
    assert got == {"4": 1.0, "pull": 1.0, "light": 1e-3, "first": 50.0}
