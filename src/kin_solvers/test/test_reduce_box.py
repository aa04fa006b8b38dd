"""Reduce_Box of each formulation against a plain statement that enumerates all vertices."""

import itertools
import math

import numpy as np
import pytest

from kin_solvers import Settings, fast_kernels, library, solve
from kin_solvers.boxes import Boxes
from kin_solvers.driver import Goal, Tuning, run
from kin_solvers.planar import PlanarSystem
from kin_solvers.platform import PlatformSystem
from kin_solvers.system import System

RAW = Tuning(raw_above=0.0, sums_below=-1.0, regularisation=0.05)
SUMS = Tuning(raw_above=100.0, sums_below=100.0, regularisation=0.05)


def reduced_once(kernel, tables, lower, upper, tuning):
    """One application of Reduce_Box; None if the box is empty."""
    flag = np.zeros(1, dtype=np.int64)
    goal = Goal(np.full(len(lower), 1e-12), 1e-300, 1, False, flag, tuning)
    outcome = run(kernel, tables, Boxes(lower[None], upper[None], np.ones(1)), goal)
    assert outcome.counters.reductions == 1
    if outcome.counters.empty:
        return None
    low = np.concatenate([outcome.left.lower, outcome.found_lower])
    high = np.concatenate([outcome.left.upper, outcome.found_upper])
    return low.min(axis=0), high.max(axis=0)


def hull(lower, upper, translation):
    """Vertices (y, z) of a variable, and their coordinates relative to the middle."""
    m, h = 0.5 * (lower + upper), 0.5 * (upper - lower)
    if translation:
        return np.array([[lower, 0.0], [upper, 0.0]]), np.array([[-h], [h]])
    if h < 0.6:
        relative = np.array([(math.cos(h), -math.sin(h)), (1.0 / math.cos(h), 0.0),
                             (math.cos(h), math.sin(h))])  # fmt: skip
    else:
        t = math.tan(0.5 * h)
        relative = np.array([(math.cos(h), -math.sin(h)), (1.0, -t), (1.0, t),
                             (math.cos(h), math.sin(h))])  # fmt: skip
    c, s = math.cos(m), math.sin(m)
    seen = relative[:, ::-1] if h >= 0.6 else relative[:, 1:]  # sine, and cosine of wide arcs
    return relative @ np.array([[c, s], [-s, c]]), seen


def clip(x, low, high):
    """Where hulls over the vertices x meet zero, from vertices and crossings of pairs."""
    ends = []
    for bounds in (low, -high):
        inside = [x[i] for i in range(len(x)) if bounds[i] <= 0.0]
        inside += [
            x[i] + (x[j] - x[i]) * bounds[i] / (bounds[i] - bounds[j])
            for i, j in itertools.permutations(range(len(x)), 2)
            if bounds[i] <= 0.0 < bounds[j]
        ]
        if not inside:
            return 1.0, -1.0
        ends.append((min(inside), max(inside)))
    return max(e[0] for e in ends), min(e[1] for e in ends)


def statement(lower, upper, translation, functions, slack):
    """Clip every variable with functions that are affine in each of them.

    ``functions`` takes vertices (V, 2) and gives values (R,), each within ``slack`` (R,).
    """
    V = len(lower)
    hulls = [hull(lower[k], upper[k], translation[k]) for k in range(V)]
    counts = [len(h[0]) for h in hulls]
    values = np.array(
        [
            functions(np.array([hulls[k][0][i] for k, i in enumerate(vertex)]))
            for vertex in itertools.product(*(range(c) for c in counts))
        ]
    ).reshape(*counts, -1)
    low, high = lower.copy(), upper.copy()
    for k in range(V):
        parts = np.moveaxis(values, k, 0).reshape(counts[k], -1, values.shape[-1])
        for r in range(values.shape[-1]):
            wider = slack[r] + 1e-9  # so that what is known exactly is not lost by rounding
            bounds = parts[:, :, r].min(axis=1) - wider, parts[:, :, r].max(axis=1) + wider
            a, b = clip(hulls[k][1][:, 0], *bounds)
            if a > b:
                return None
            middle = 0.5 * (lower[k] + upper[k])
            a, b = (a, b) if translation[k] else (math.asin(a), math.asin(b))
            low[k], high[k] = max(low[k], middle + a), min(high[k], middle + b)
            if hulls[k][1].shape[1] == 2:
                c, d = clip(hulls[k][1][:, 1], *bounds)
                if c > d:
                    return None
                if c > math.cos(0.5 * (upper[k] - lower[k])):
                    e = math.acos(min(1.0, c))
                    low[k], high[k] = max(low[k], middle - e), min(high[k], middle + e)
    return (low, high) if (low <= high).all() else None


def five(row):
    M = np.zeros((5, 5))
    M[:3, :4] = row[:12].reshape(3, 4)
    M[3, 3] = M[4, 4] = 1.0
    M[4, :4] = row[12:]
    return M


def motion(translation, y, z, inverse=False):
    M = np.eye(5)
    sign = -1.0 if inverse else 1.0
    if translation:
        M[2, 3], M[4, 2], M[4, 3] = sign * y, sign * 2.0 * y, y * y
    else:
        M[:2, :2] = [[y, -sign * z], [sign * z, y]]
    return M


def row_of(M):
    return np.concatenate([M[:3, :4].ravel(), M[4, :4]])


def loop_rows(system):
    """F = A - B of a loop cut in halves, at any vertex."""
    n = system.size
    p = n // 2
    moving = system.translation[system.factor_variable]

    def rows(vertices):
        of = vertices[system.factor_variable]
        A, B = np.eye(5), np.eye(5)
        for f in range(p, n):
            A = A @ motion(moving[f], *of[f]) @ five(system.C[f])
        for f in reversed(range(p)):
            B = B @ five(system.C_inverse[f]) @ motion(moving[f], *of[f], inverse=True)
        return row_of(A) - row_of(B)

    return rows


def around(rng, point, half, lower, upper):
    """A box around a configuration, within the ranges."""
    shift = rng.uniform(-0.9, 0.9, len(point)) * half
    return np.maximum(point + shift - half, lower), np.minimum(point + shift + half, upper)


def compare(found, expected):
    """The compiled box is the plain one; 1 if there is one."""
    if expected is None:
        return 0
    assert found is not None
    np.testing.assert_allclose(found[0], expected[0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(found[1], expected[1], rtol=0, atol=1e-6)
    return 1


@pytest.mark.parametrize(("name", "half"), [("bennett", 0.3), ("bennett", 1.0), ("scara", 0.2)])
def test_loops_in_halves(name, half):
    system = System.of(library.get(name))
    rng = np.random.default_rng(1)
    points, _ = solve(library.get(name), Settings(sigma=0.1)).refine(1)
    q = points[0] * system.unit
    seen = 0
    for _ in range(12):
        lower, upper = around(rng, q, np.full(4, half), system.lower, system.upper)
        slack = np.zeros(16)
        slack[15] = sum((0.5 * (upper - lower)[system.translation]) ** 2)
        expected = statement(lower, upper, system.translation, loop_rows(system), slack)
        found = reduced_once(fast_kernels.search, system.tables, lower, upper, RAW)
        seen += compare(found, expected)
    assert seen > 8


def planar_rows(planar):
    """The rows of a planar mechanism at any vertex; with a travel, products of two vertices."""
    t = planar.tables

    def rows(vertices):
        total = t.constant.copy()
        for term, M in zip(t.terms, t.M, strict=True):
            y, z = vertices[term["angle"]] if term["angle"] >= 0 else (1.0, 0.0)
            travel = vertices[term["travel"]][0] if term["travel"] >= 0 else 1.0
            total += (M @ (y, z)) * travel
        return total

    return rows


@pytest.mark.parametrize("half", [0.3, 1.0])
def test_planar_sums(half):
    mechanism = library.get("planar_four_bar")
    planar = PlanarSystem.of(System.of(mechanism))
    assert planar is not None
    points, _ = solve(mechanism, Settings(sigma=0.1)).refine(12)
    rng = np.random.default_rng(2)
    moving = planar.tables.arcs["translation"]
    rows = planar_rows(planar)
    seen = 0
    for u in planar.from_joints(points, points)[0]:
        lower, upper = around(rng, u, np.full(planar.size, half), -20.0, 20.0)
        expected = statement(lower, upper, moving, rows, np.zeros(len(planar.tables.constant)))
        found = reduced_once(planar.kernel, planar.tables, lower, upper, RAW)
        seen += compare(found, expected)
    assert seen > 8


def platform_rows(platform):
    """Equations of the legs at any vertex of the chain."""
    t = platform.tables

    def rows(vertices):
        M = np.eye(5)
        for k, factor in enumerate(t.factors):
            M = M @ motion(t.arcs[k]["translation"], *vertices[k]) @ five(factor["C"])
        return t.legs.W[:-1] @ row_of(M) + t.legs.constant

    return rows


@pytest.mark.parametrize("half", [0.2, 0.7])
def test_legs_of_a_platform(half):
    platform = PlatformSystem.of(System.of(library.get("stewart")))
    assert platform is not None
    rng = np.random.default_rng(3)
    q = np.array([-2.3, -1.3, 1.9, -0.7, 1.2])  # near a posture
    rows = platform_rows(platform)
    seen = 0
    for _ in range(4):
        lower, upper = around(rng, q, np.full(5, half), platform.lower, platform.upper)
        moving = platform.tables.arcs["translation"]
        expected = statement(
            lower, upper, moving, rows, np.zeros(len(platform.tables.legs.constant))
        )
        seen += compare(reduced_once(platform.kernel, platform.tables, lower, upper, RAW), expected)
    assert seen > 0


@pytest.mark.parametrize("name", ["manseur_doty", "three_rpr", "stewart"])
def test_sums_of_equations_narrow_a_box_around_a_solution_and_keep_it(name):
    mechanism = library.get(name)
    system = System.of(mechanism)
    form = PlanarSystem.of(system) or PlatformSystem.of(system)
    kernel, tables = (
        (fast_kernels.search, system.tables) if form is None else (form.kernel, form.tables)
    )
    from kin_solvers import Settings, solve

    points, _ = solve(mechanism, Settings(sigma=0.05)).refine(4)
    rng = np.random.default_rng(4)
    for q in points * system.unit:
        x = q if form is None else form.from_joints(q[None], q[None])[0][0]
        half = 1e-3 * rng.uniform(0.2, 1.0, len(x))
        lower, upper = x - half, x + half
        found = reduced_once(kernel, tables, lower, upper, SUMS)
        assert found is not None
        assert (found[0] <= x + 1e-9).all()
        assert (found[1] >= x - 1e-9).all()
        assert np.prod(found[1] - found[0]) < 1e-3 * np.prod(upper - lower)
