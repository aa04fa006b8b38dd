"""The solver: convergence, priorities, limits, goals, rest posture, reports, no allocation."""

from __future__ import annotations

import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hier_ik import Linkage, LinkageError, Solver, SolverOptions, dump_linkage, frame, tower
from hier_ik.tables import FALLBACK
from hier_ik.tower import block_posture
from kin_core.errors import InvalidInput, StatusCode
from kin_core.rotations import exp_so3
from kin_core.task import Task

sys.path.insert(0, str(Path(__file__).parent))
from random_linkages import random_linkage

MODES = ["hierarchical", "flat_structured", "flat_sparse", "flat_cholesky", "flat_svd"]


@pytest.mark.parametrize("mode", MODES)
def test_step_goal_of_the_tower_in_six_iterations(mode):
    s = Solver(tower(15), mode)
    T = s.poses(["P15"])["P15"]
    T[:3, 3] += (0.8, 0, -0.4)
    s.set_goal("drag", T)
    result = s.solve(tolerance=1e-9)
    assert result.success, result.message
    assert result.iterations <= 6
    np.testing.assert_allclose(s.poses(["P15"])["P15"][:3, 3], T[:3, 3], atol=1e-9)


def test_tower_legs_agree_with_their_closed_form():
    s = Solver(tower(3))
    T = s.poses(["P3"])["P3"]
    T[:3, 3] += (0.25, 0, 0.1)
    s.set_goal("drag", T)
    v = {k: float(x[0]) for k, x in s.solve(tolerance=1e-12).values.items() if len(x) == 1}
    for k in (1, 2, 3):
        for side, letter in ((-1, "L"), (1, "R")):
            want = block_posture(v[f"C{k}.tilt"], v[f"C{k}.expand"], side)
            got = [v[f"I{k}{letter}.{n}"] for n in ("swing", "slide", "end")]
            got += [v[f"A{k}{letter}.{n}"] for n in ("R1", "R2", "R3")]
            np.testing.assert_allclose(got, want, atol=1e-10)


def test_a_solution_keeps_its_values_whatever_comes_after():
    """They are given to the joints by name only when asked for, maybe after motions and edits."""
    first, twin = Solver(tower(3)), Solver(tower(3))
    kept, wanted = first.solve(), twin.solve().values
    T = first.poses(["P3"])["P3"]
    T[:3, 3] += (0.25, 0, 0.1)
    first.set_goal("drag", T)
    moved = first.solve()
    first.linkage.add_link("more")
    first.linkage.add_joint("to_more", "revolute", "P3", "more")
    assert "to_more" in first.solve().values
    assert kept.values.keys() == moved.values.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_array_equal(kept.values[name], value)
    assert any((kept.values[name] != moved.values[name]).any() for name in wanted)
    assert kept.values is kept.values


def test_driven_sublinkages_cannot_move_their_parent_bit_for_bit():
    rng = np.random.default_rng(0)
    calm, shaken = Solver(tower(4)), Solver(tower(4))
    backbone = [f"C{k}.{n}" for k in range(1, 5) for n in ("tilt", "expand")]
    pistons = [f"I{k}{l}.{n}" for k in range(1, 5) for l in "LR" for n in ("swing", "slide", "end")]
    for i in range(30):
        p = np.array([0.3 * math.sin(i / 5), 0, 3.0 + 0.1 * math.cos(i / 3)])
        for s in (calm, shaken):
            s.set_goal("drag", p)
        shaken.set_values(
            {
                n: shaken.values()[n] + rng.uniform(-0.3, 0.3)
                for n, j in shaken.linkage.joints.items()
                if not j.closure and n.startswith("A")
            }
        )
        calm.iterate()
        shaken.iterate()
        a, b = calm.values(), shaken.values()
        for n in backbone + pistons:
            assert a[n].tobytes() == b[n].tobytes(), n
        pa, pb = calm.poses(["P4", "C2.c1"]), shaken.poses(["P4", "C2.c1"])
        assert all(pa[k].tobytes() == pb[k].tobytes() for k in pa)


def parallelogram(priority_of_goal: int | None = None) -> Linkage:
    """Pivots 1 apart, cranks 0.5; the midpoint of the coupler is pulled to (2.5, 1)."""
    l = Linkage("parallelogram")
    for n in ("g", "a", "b", "c"):
        l.add_link(n)
    l.add_joint("1", "revolute", "g", "a", closure=False, value=1.2)
    l.add_joint("2", "revolute", "a", "c", xyz=(0.5, 0, 0), closure=False, value=-1.2)
    l.add_joint("3", "revolute", "g", "b", xyz=(1, 0, 0), closure=False, value=1.2)
    l.add_joint("4", "revolute", "c", "b", xyz=(1, 0, 0), child_origin=(0.5, 0, 0), closure=True)
    l.add_goal(
        "pull", "c", "position", offset=(0.5, 0, 0), target=(2.5, 1.0, 0), priority=priority_of_goal
    )
    return l


@pytest.mark.parametrize("mode", MODES)
def test_parallelogram_keeps_its_loop_and_reaches_the_nearest_point(mode):
    """The midpoint runs on a circle of radius .5 about (.5, 0)."""
    s = Solver(parallelogram(), mode)
    result = s.solve(tolerance=1e-9, max_iterations=400)
    assert not result.success
    assert result.code in (StatusCode.UNREACHABLE, StatusCode.NOT_CONVERGED)
    assert result.unmet[0] == "pull"
    assert result.closure_residual < 1e-11
    p = (s.poses(["c"])["c"] @ frame((0.5, 0, 0)))[:3, 3]
    best = np.array([0.5, 0, 0]) + 0.5 * np.array([2, 1, 0]) / math.sqrt(5)
    np.testing.assert_allclose(p, best, atol=1e-9)


def test_equal_weight_opens_the_loop():
    """At the same level the goal tears the loop apart, by .11."""
    result = Solver(parallelogram(priority_of_goal=0)).solve(max_iterations=400)
    opened = next(r.position for r in result.residuals if r.name == "4")
    assert 0.05 < opened < 0.3


@pytest.mark.parametrize("mode", MODES)
def test_priorities_in_order_of_their_levels(mode):
    """Three goals on one arm that exclude each other: the first is met, the second as far as can
    be."""
    l = Linkage()
    l.add_link("l0")
    for i in range(6):
        l.add_link(f"l{i + 1}")
        l.add_joint(
            f"j{i}", "revolute", f"l{i}", f"l{i + 1}", xyz=(0.3, 0, 0), closure=False, value=0.2
        )
    l.add_goal("third", "l6", "position", target=(-1.0, 0.5, 0), priority=5)
    l.add_goal("first", "l6", "position", target=(0.9, 0.8, 0), priority=3)
    l.add_goal(
        "second",
        "l6",
        "rows",
        rows=(False,) * 5 + (True,),
        target=frame(rpy=(0, 0, 0.3)),
        priority=4,
    )
    s = Solver(l, mode)
    result = s.solve(tolerance=1e-9, max_iterations=300)
    assert result.unmet == ("third",)
    T = s.poses(["l6"])["l6"]
    np.testing.assert_allclose(T[:2, 3], (0.9, 0.8), atol=1e-8)
    assert abs(math.atan2(T[1, 0], T[0, 0]) - 0.3) < 1e-8


@pytest.mark.parametrize("mode", ["hierarchical", "flat_structured", "flat_sparse"])
def test_limits_are_never_exceeded_in_random_drags(mode):
    rng = np.random.default_rng(7)
    t = tower(4)
    for k in range(1, 5):
        for l in "LR":
            t.set_limits(f"A{k}{l}.R2", -1.3, 1.3)
    s = Solver(t, mode)
    low, high = s.compiled.bodies.lower, s.compiled.bodies.upper
    p = np.array([0.0, 0, 3.2])
    touched = False
    for i in range(150):
        p = p + rng.normal(scale=0.15, size=3) * (1, 0, 1)
        if i % 10 == 0:
            p = np.array([rng.uniform(-4, 4), 0, rng.uniform(-1, 5)])
        s.set_goal("drag", p)
        for _ in range(3):
            s.iterate()
            assert (s.q >= low).all()
            assert (s.q <= high).all()
        touched = touched or bool(((s.q == low) | (s.q == high)).any())
    assert touched


def random_arm(rng, n=8):
    l = Linkage()
    l.add_link("l0")
    types = ("revolute", "prismatic", "universal", "spherical", "cylindrical", "planar")
    for i in range(n):
        l.add_link(f"l{i + 1}")
        t = types[rng.integers(len(types))]
        l.add_joint(
            f"j{i}",
            t,
            f"l{i}",
            f"l{i + 1}",
            xyz=rng.uniform(-0.4, 0.4, 3),
            rpy=rng.uniform(-1, 1, 3),
            closure=False,
            lower=-0.4,
            upper=0.5,
            velocity=0.7,
        )
    l.add_goal("g", f"l{n}")
    return l


@pytest.mark.parametrize("seed", range(20))
def test_limits_hold_for_every_type_also_from_outside(seed):
    rng = np.random.default_rng(seed)
    l = random_arm(rng)
    s = Solver(l)
    s.set_values({n: rng.uniform(-3, 3, len(v)) for n, v in l.values.items()})  # outside
    s.set_goal("g", frame(rng.uniform(-1, 1, 3), rotation=exp_so3(rng.uniform(-2, 2, 3))))
    s.solve(max_iterations=60)
    assert (s.q >= -0.4).all()
    assert (s.q <= 0.5).all()


def test_reachable_goals_under_limits_are_reached():
    """Targets are made from postures inside the limits."""
    rng = np.random.default_rng(11)
    reached = 0
    for _ in range(40):
        l = random_arm(rng)
        for n in l.values:
            l.values[n] = rng.uniform(-0.35, 0.45, len(l.values[n]))
        target = l.link_poses(("l8",))["l8"]
        for n in l.values:
            l.values[n] = rng.uniform(-0.35, 0.45, len(l.values[n]))
        s = Solver(l)
        s.set_goal("g", target)
        result = s.solve(tolerance=1e-8, max_iterations=300)
        reached += result.success
        if not result.success:
            assert result.at_limit
    assert reached >= 36


def test_velocity_limits_hold_and_a_start_outside_comes_back_in_time():
    rng = np.random.default_rng(3)
    l = random_arm(rng)
    s = Solver(l)
    s.set_values({"j0": np.full(l.joints["j0"].dof, 2.0)})
    s.set_goal("g", frame((0.5, 0.2, 0.1)))
    for _ in range(40):
        before = s.q.copy()
        s.solve(step_time=0.1, max_iterations=20)
        assert np.abs(s.q - before).max() <= 0.07 + 1e-12
        assert (s.q <= np.maximum(before, 0.5) + 1e-12).all()
    assert (s.q <= 0.5).all()


def test_limits_on_a_closure_joint_hold():
    l = parallelogram()
    l.set_limits("4", -0.4, 0.4)
    l.values.update({"1": np.array([0.1]), "2": np.array([-0.1]), "3": np.array([0.1])})
    s = Solver(l)
    result = s.solve(max_iterations=300)
    assert result.closure_residual < 1e-9
    assert abs(result.values["4"][0]) <= 0.4 + 1e-9
    assert "4" in result.at_limit
    assert set(result.values) == {"1", "2", "3", "4"}


def test_rest_posture_moves_only_what_is_free():
    l = Linkage()
    l.add_link("l0")
    for i in range(7):
        l.add_link(f"l{i + 1}")
        l.add_joint(
            f"j{i}",
            "revolute",
            f"l{i}",
            f"l{i + 1}",
            xyz=(0.3, 0, 0),
            closure=False,
            value=0.3,
            rest=0.0 if i == 0 else None,
        )
    l.add_link("flag")
    l.add_joint("flag", "revolute", "l0", "flag", closure=False, value=1.0, rest=-0.5)
    l.add_goal("g", "l7", "position", target=(1.0, 0.7, 0))
    s = Solver(l)
    result = s.solve(tolerance=1e-9, max_iterations=400)
    assert result.success, result.message
    assert abs(result.values["j0"][0]) < 1e-4
    assert abs(result.values["flag"][0] + 0.5) < 1e-4
    np.testing.assert_allclose(s.poses(["l7"])["l7"][:2, 3], (1.0, 0.7), atol=1e-8)


@pytest.mark.parametrize(
    "kind", ["pose", "position", "orientation", "axis", "line", "plane", "rows"]
)
def test_every_kind_of_goal_holds_its_rows_and_no_others(kind):
    rng = np.random.default_rng(20)
    l = Linkage()
    l.add_link("l0")
    for i in range(7):
        l.add_link(f"l{i + 1}")
        l.add_joint(
            f"j{i}",
            "revolute",
            f"l{i}",
            f"l{i + 1}",
            xyz=(0.1, 0.05, 0.3),
            rpy=(1.2 * (-1) ** i, 0.1, 0.3),
            closure=False,
            value=rng.uniform(-1, 1),
        )
    posture = {n: v + rng.uniform(-0.4, 0.4, 1) for n, v in l.values.items()}
    other = l.copy()
    other.values.update(posture)
    target = other.link_poses(("l7",))["l7"]
    rows = (True, False, True, False, True, False)
    l.add_goal("g", "l7", kind, target=target, rows=rows if kind == "rows" else None)
    s = Solver(l)
    result = s.solve(tolerance=1e-11)
    assert result.success, result.message
    X = np.linalg.inv(target) @ s.poses(["l7"])["l7"]
    p, R = X[:3, 3], X[:3, :3]
    held = {
        "pose": [*p, *(R - np.eye(3)).ravel()],
        "position": p,
        "orientation": (R - np.eye(3)).ravel(),
        "axis": [R[0, 2], R[1, 2], R[2, 2] - 1],
        "line": p[:2],
        "plane": p[2:],
        "rows": [p[0], p[2]],
    }[kind]
    assert np.abs(held).max() < 1e-9
    if kind != "pose":
        assert np.abs(X - np.eye(4)).max() > 1e-4


def test_goals_relative_to_another_link_and_with_offsets():
    l = Linkage()
    l.add_link("l0")
    for side in "ab":
        for i in range(6):
            parent = "l0" if i == 0 else f"{side}{i - 1}"
            l.add_link(f"{side}{i}")
            l.add_joint(
                f"j{side}{i}",
                "revolute",
                parent,
                f"{side}{i}",
                xyz=(0.3, 0.1 if side == "a" else -0.1, 0),
                rpy=(1.0, 0.4, 0),
                closure=False,
                value=0.2,
            )
    l.add_goal(
        "hold",
        "b5",
        "pose",
        reference="a5",
        target=frame((0.1, 0, 0.1), (0.2, 0, 0)),
        offset=frame((0, 0.05, 0)),
    )
    s = Solver(l)
    result = s.solve(tolerance=1e-10)
    assert result.success, result.message
    T = s.poses(["a5", "b5"])
    X = np.linalg.inv(T["a5"]) @ T["b5"] @ frame((0, 0.05, 0))
    np.testing.assert_allclose(X, frame((0.1, 0, 0.1), (0.2, 0, 0)), atol=1e-9)
    moved = {n for n, v in result.values.items() if abs(v[0] - 0.2) > 1e-6}
    assert {n[1] for n in moved} == {"a", "b"}


def test_singular_starts_and_far_goals_stay_tame():
    """A straight arm pulled back along itself, and one pulled far away."""
    l = Linkage()
    l.add_link("l0")
    for i in range(5):
        l.add_link(f"l{i + 1}")
        l.add_joint(f"j{i}", "revolute", f"l{i}", f"l{i + 1}", xyz=(0.3, 0, 0), closure=False)
    l.add_goal("g", "l5", "position", offset=(0.3, 0, 0), target=(100.0, 3.0, 0))
    s = Solver(l)
    for _ in range(100):
        before = s.q.copy()
        s.iterate()
        assert np.abs(s.q - before).max() <= 0.3 + 1e-12
    tip = (s.poses(["l5"])["l5"] @ frame((0.3, 0, 0)))[:3, 3]
    want = np.array([0.3, 0, 0]) + 1.5 * np.array([99.7, 3, 0]) / np.hypot(99.7, 3)
    np.testing.assert_allclose(tip, want, atol=1e-4)


def test_entangled_components_beyond_the_dense_limit_are_solved_sparsely():
    """A square mesh of bars: hundreds of loops that share joints."""
    n = 14
    l = Linkage("mesh")
    l.add_link("g")
    rng = np.random.default_rng(0)
    for i in range(n):
        for k in range(n):
            l.add_link(f"{i},{k}")
            if k == 0:
                parent, xyz = ("g", (0, 0, 0)) if i == 0 else (f"{i - 1},0", (0, 1.0, 0))
            else:
                parent, xyz = f"{i},{k - 1}", (1.0, 0, 0)
            l.add_joint(
                f"j{i},{k}",
                "revolute",
                parent,
                f"{i},{k}",
                xyz=xyz,
                closure=False,
                value=rng.uniform(-0.02, 0.02),
            )
            if i and k:
                l.add_joint(
                    f"c{i},{k}",
                    "point_plane" if (i + k) % 2 else "spherical",
                    f"{i - 1},{k}",
                    f"{i},{k}",
                    xyz=(0, 1.0, 0),
                    closure=True,
                )
    s = Solver(l)
    assert s.tables.components["kind"].tolist() == [FALLBACK]
    result = s.solve(tolerance=1e-9, max_iterations=100)
    assert result.success, result.message


def test_closures_without_support_are_reported():
    l = Linkage()
    l.add_link("a")
    l.add_link("b")
    l.add_joint("t", "fixed", "a", "b", closure=False)
    l.add_joint("c", "fixed", "a", "b", xyz=(0.1, 0, 0), closure=True)
    result = Solver(l).solve()
    assert result.unmet == ("c",)
    assert abs(result.residual - 0.1) < 1e-12
    assert result.code == StatusCode.UNREACHABLE


def test_a_linkage_without_joints_or_closures():
    l = Linkage()
    l.add_link("a")
    assert Solver(l).solve().success
    l.add_link("b")
    l.add_joint("t", "revolute", "a", "b", closure=False, value=0.3)
    s = Solver(l)
    assert s.solve().success
    assert s.values()["t"][0] == 0.3


@pytest.mark.parametrize("seed", range(30))
def test_random_linkages_solve_without_nonsense(seed):
    """Whatever the topology: finite, within limits, and modes agree on what can be met."""
    rng = np.random.default_rng(seed)
    l = random_linkage(rng, links=16, subs=4, closures=4)
    l.add_goal("g", list(l.links)[-1], "position", target=rng.normal(size=3))
    for mode in ("hierarchical", "flat_structured", "flat_sparse"):
        s = Solver(l.copy(), mode)
        result = s.solve(max_iterations=60)
        assert np.isfinite(s.q).all()
        assert math.isfinite(result.residual)
        for r in result.residuals:
            assert r.met == (r.name not in result.unmet)


def test_solving_is_deterministic():
    a, b = Solver(tower(5)), Solver(tower(5))
    for s in (a, b):
        s.set_goal("drag", (0.5, 0, 3.7))
        s.solve()
    assert a.q.tobytes() == b.q.tobytes()


def test_timeout_and_cancel_are_honoured():
    s = Solver(parallelogram())
    task = Task()
    task.cancel()
    assert s.solve(task=task).code == StatusCode.CANCELLED
    assert s.solve(task=Task(timeout=0.0)).code == StatusCode.TIMEOUT
    seen = []
    s.solve(task=Task(on_progress=seen.append))
    assert seen
    assert all(0 <= p.fraction <= 1 for p in seen)


def test_bad_arguments_are_refused():
    s = Solver(tower(1))
    with pytest.raises(InvalidInput, match="goal"):
        s.set_goal("nope", (0, 0, 0))
    with pytest.raises(InvalidInput, match="finite"):
        s.set_goal("drag", (math.nan, 0, 0))
    with pytest.raises(InvalidInput, match="tolerance"):
        s.solve(tolerance=-1)
    with pytest.raises(InvalidInput, match="max_iterations"):
        s.solve(max_iterations=0)
    with pytest.raises(InvalidInput, match="hierarchical"):
        Solver(tower(1), "fancy")
    with pytest.raises(LinkageError, match="closure"):
        s.set_values({"A1L.R4": [0.0]})
    with pytest.raises(InvalidInput, match="shape"):
        s.set_values({"C1.tilt": [0.0, 1.0]})
    with pytest.raises(InvalidInput, match="1 to 1000"):
        tower(0)


def test_options_membership_reaches_the_decomposition():
    l = Linkage()
    l.add_link("g")
    l.add_sublinkage("D", "driving")
    l.add_link("d", "D")
    l.add_joint("t", "revolute", "g", "d", xyz=(0, 0, 0), closure=False)
    l.add_joint("c", "spherical", "g", "d", xyz=(0, 1, 0), child_origin=(1.0, 0, 0), closure=True)
    assert not Solver(l.copy()).solve().success
    assert Solver(l.copy(), options=SolverOptions(membership="mirror")).solve().success


ALLOCATION = """
import numpy as np
from numba.core.runtime import rtsys
from hier_ik import Solver, tower
from hier_ik.iteration import run
flag, history = np.zeros(1, np.int64), np.zeros(60)
for mode in ("hierarchical", "flat_structured"):
    s = Solver(tower(15), mode)
    def allocations(n):
        s.set_goal("drag", (30.0, 0.0, 8.0))  # out of reach: every iteration is hard work
        before = rtsys.get_allocation_stats().alloc
        made = run(s.tables.as_tuple(), 0.0, 0, len(s.tables.rounds), n, 0.0, flag, history)
        return rtsys.get_allocation_stats().alloc - before, made
    allocations(1)
    one, _ = allocations(1)
    many, made = allocations(50)
    assert made == 50, made
    assert 0 < one < 20, one  # numba wraps the arguments; so the counter does count
    assert many == one, (mode, one, many)
"""


def test_the_iteration_kernel_allocates_nothing():
    import os

    subprocess.run(
        [sys.executable, "-c", ALLOCATION],
        check=True,
        timeout=280,
        env={**os.environ, "NUMBA_NRT_STATS": "1"},
    )


def test_a_locked_joint_stays_where_it_was_measured_and_its_limit_is_reported():
    l = parallelogram()
    l.add_link("x")
    l.add_joint(
        "spin", "revolute", "c", "x", closure=False, upper=1.9199, value=1.9399, locked=True
    )
    result = Solver(l).solve()
    assert result.values["spin"][0] == 1.9399
    assert result.outside_limits == ("spin",)
    assert "spin" in result.at_limit
    assert "1 locked joints outside their limits, first 'spin'" in result.message
    l.set_locked("spin", False)
    result = Solver(l).solve()
    assert result.values["spin"][0] == 1.9199
    assert result.outside_limits == ()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda l: l.set_goal("pull", (0, 2e6, 0)),
        lambda l: l.set_goal("pull", offset=(2e6, 0, 0)),
        lambda l: l.add_goal("h", "c", target=(1e7, 0, 0)),
        lambda l: l.add_goal("h", "c", weight=1e300),
        lambda l: l.add_goal("h", "c", weight=1e-300),
        lambda l: l.add_joint("h", "revolute", "g", "c", weight=1e300),
        lambda l: l.add_joint("h", "prismatic", "g", "c", value=1e300),
        lambda l: l.add_joint("h", "prismatic", "g", "c", rest=float("inf")),
        lambda l: l.add_joint("h", "revolute", "g", "c", lower=float("inf")),
        lambda l: l.add_joint("h", "revolute", "g", "c", upper=-1e300),
        lambda l: l.add_joint("h", "revolute", "g", "c", child_origin=(0, 0, 2e6)),
        lambda l: l.set_value("1", 1e300),
        lambda l: l.set_rest("1", 1e300),
        lambda l: l.set_limits("1", float("inf")),
        lambda l: Solver(l).set_values({"1": 1e300}),
    ],
)
def test_numbers_that_no_mechanism_has_are_refused(spoil):
    l = parallelogram()
    before = dump_linkage(l)
    with pytest.raises(InvalidInput):
        spoil(l)
    assert dump_linkage(l) == before


def test_limits_beyond_all_coordinates_are_open():
    l = parallelogram()
    l.set_limits("1", -1e300, 1e300)
    assert not l.joints["1"].limited


def test_the_heaviest_and_lightest_weights_give_numbers():
    for weight in (1e-6, 1e6):
        l = parallelogram()
        l.goals["pull"] = replace(l.goals["pull"], weight=weight)
        result = Solver(l).solve()
        assert np.isfinite(result.residual)
        assert result.closure_residual < 1e-9


def test_a_goal_that_only_moves_is_not_decomposed_anew_and_a_refused_one_stays():
    s = Solver(tower(2))
    s.put_goal("hand", "P1", "position", target=(0.1, 0, 0.8), priority=4, weight=2.0)
    s.solve()
    counted = s.decompositions
    for more in ({}, {"priority": 4}, {"weight": 2.0}, {"offset": np.eye(4)}, {"reference": "P0"}):
        s.put_goal("hand", "P1", "position", target=(0.2, 0, 0.8), **more)
        s.put_goal("hand", "", target=(0.15, 0, 0.8))
    assert s.linkage.goals["hand"].priority == 4
    s.solve()
    assert s.decompositions == counted
    before = dump_linkage(s.linkage)
    for bad in (
        {"link": "nowhere", "target": (0, 0, 0)},
        {"link": "P2", "target": (math.nan, 0, 0)},
        {"link": "P2", "target": (0, 0, 0), "weight": 1e300},
    ):
        with pytest.raises(InvalidInput):
            s.put_goal("hand", kind="position", **bad)
        assert dump_linkage(s.linkage) == before
    s.put_goal("hand", "P2", "position", target=(0.1, 0, 1.5))
    goal = s.linkage.goals["hand"]
    assert (goal.link, goal.priority, goal.weight) == ("P2", 3, 1.0)
    s.solve()
    assert s.decompositions == counted + 1


def test_a_copy_solves_as_a_solver_that_is_built_anew_and_leaves_the_first_alone():
    for mode in ("hierarchical", "flat_structured", "flat_sparse"):
        first = Solver(tower(2), mode)
        first.set_goal("drag", (0.2, 0.0, 1.5))
        first.solve()
        first.store()
        before, built = first.q, Solver(first.linkage.copy(), mode)
        copy = first.copy()
        for solver in (copy, built):
            solver.set_goal("drag", (-0.3, 0.0, 1.4))
        assert copy.solve().history == built.solve().history
        np.testing.assert_array_equal(copy.q, built.q)
        np.testing.assert_array_equal(first.q, before)
        assert first.linkage.goals["drag"].target[0, 3] == 0.2
        copy.linkage.remove_link("P2")
        copy.edit([{"op": "lock", "name": "C1.tilt"}])
        assert "P2" in first.linkage.links
        assert first.solve().success
        np.testing.assert_allclose(first.q, before, atol=1e-9)


def test_copies_solve_beside_each_other():
    first = Solver(tower(4))
    targets = [(0.1 * k - 0.2, 0.0, 2.9) for k in range(5)]

    def reach(target):
        solver = first.copy()
        solver.set_goal("drag", target)
        solver.solve()
        return solver.q

    alone = [reach(t) for t in targets]
    with ThreadPoolExecutor(5) as pool:
        for _ in range(5):
            for a, b in zip(alone, pool.map(reach, targets), strict=True):
                np.testing.assert_array_equal(a, b)


def test_a_solver_takes_the_posture_and_the_targets_of_another():
    first = Solver(tower(2))
    other = Solver(tower(2), "flat_structured")
    first.set_goal("drag", (0.2, 0.0, 1.5))
    first.solve()
    other.stand_like(first)
    for name, value in first.values().items():
        np.testing.assert_allclose(other.values()[name], value, atol=1e-12)
    assert other.solve().iterations <= 1
