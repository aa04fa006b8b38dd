"""The normal form and its bound cover the mechanism as it is given, not as it is folded."""

from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest

from kin_core.rotations import exp_so3, inverse_transform, transform
from kin_solvers import Constant, Settings, library, solve
from kin_solvers.equations import Equations
from kin_solvers.system import System

mp.mp.dps = 50
LOOPS = ["bennett", "planar_four_bar", "spherical_four_bar", "manseur_doty", "puma560", "scara"]


def seen_from(mechanism, K):
    """The same mechanism with every loop that closes in pose seen from another frame."""
    loops = [
        replace(loop, factors=(Constant(K), *loop.factors, Constant(inverse_transform(K))))
        for loop in mechanism.loops
    ]
    return replace(mechanism, loops=tuple(loops), target=None)


def frame_at(distance, seed=3):
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=3)
    return transform(exp_so3(rng.normal(size=3)), distance * direction / np.linalg.norm(direction))


def exact(constant):
    """The rigid transform nearest to a stored one, in 50 digits."""
    M = mp.matrix(constant.tolist())
    R = M[:3, :3]
    for _ in range(6):
        R = R * (3 * mp.eye(3) - R.T * R) / 2
    M[:3, :3] = R
    return M


def exact_residual(mechanism, loop, q):
    """Position and rotation of the loop's product in 50 digits, shape (6,)."""
    M = mp.eye(4)
    for factor in mechanism.loops[loop].factors:
        if isinstance(factor, Constant):
            M = M * exact(factor.matrix)
            continue
        Z = mp.eye(4)
        x = factor.sign * q[factor.variable]
        if mechanism.variables[factor.variable].kind == "translation":
            Z[factor.axis, 3] = x
        else:
            i, j = (factor.axis + 1) % 3, (factor.axis + 2) % 3
            Z[i, i] = Z[j, j] = mp.cos(x)
            Z[i, j], Z[j, i] = -mp.sin(x), mp.sin(x)
        M = M * Z
    skew = [(M[2, 1] - M[1, 2]) / 2, (M[0, 2] - M[2, 0]) / 2, (M[1, 0] - M[0, 1]) / 2]
    return mp.matrix([M[0, 3], M[1, 3], M[2, 3], *skew])


def exact_root(mechanism, q):
    """The root next to a configuration in 50 digits: Newton's method with numerical slopes."""
    x = mp.matrix([mp.mpf(float(v)) for v in q])
    h = mp.mpf(10) ** -20
    f = exact_residual(mechanism, 0, x)
    J = mp.matrix(6, 6)
    for k in range(6):
        moved = x.copy()
        moved[k] += h
        column = (exact_residual(mechanism, 0, moved) - f) / h
        for r in range(6):
            J[r, k] = column[r]
    for _ in range(5):
        x -= mp.lu_solve(J, exact_residual(mechanism, 0, x))
    assert mp.norm(exact_residual(mechanism, 0, x)) < 1e-30
    return x


@pytest.mark.parametrize("distance", [1e3, 1e4, 1e6 / 2.0])
def test_a_spherical_linkage_seen_from_far_away_still_moves(distance):
    """It was "proven" to have no configuration: its translations cancel, up to rounding."""
    near = library.get("spherical_four_bar")
    there = solve(seen_from(near, frame_at(distance)), Settings(sigma=0.1))
    assert there.complete
    assert len(there.components) == 2
    for q in 0.5 * (there.lower + there.upper)[::10]:
        assert near.residual(q) < 0.5


def of_size(mechanism, size):
    """The same mechanism of rotations with all its lengths multiplied by a factor."""
    scale = np.diag([size, size, size, 1.0])
    loops = [
        replace(
            loop,
            factors=tuple(
                Constant(scale @ f.matrix @ np.linalg.inv(scale)) if isinstance(f, Constant) else f
                for f in loop.factors
            ),
        )
        for loop in mechanism.loops
    ]
    return replace(mechanism, loops=tuple(loops), target=None)


@pytest.mark.parametrize("size", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("name", ["bennett", "planar_four_bar"])
def test_a_small_loop_with_too_many_equations_seen_from_far_away_still_moves(name, size):
    """Some equations hold only up to what the constants leave unknown: the curves are found."""
    near = of_size(library.get(name), 2.0 ** round(np.log2(size)))
    there = solve(seen_from(near, frame_at(1e6 / 2.0)), Settings(sigma=0.1))
    assert there.complete
    assert there.summary == solve(near, Settings(sigma=0.1)).summary


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("method", ["fast", "paper"])
def test_a_far_frame_loses_no_point(name, method):
    """Points of the mechanism seen from near lie in the cover of the same seen from far."""
    near = library.get(name)
    if method == "paper" and len(near.variables) > 4:
        pytest.skip("the paper's method takes minutes for six joints")
    system = System.of(near)
    cover = solve(near, Settings(sigma=0.2))
    points = [Equations(system).newton(q) for q in 0.5 * (cover.lower + cover.upper) * system.unit]
    points = np.array([q / system.unit for q in points if q is not None])
    assert len(points) > 1
    for seed, distance in enumerate([1e3, 3e4, 5e5]):
        far = seen_from(near, frame_at(distance, seed))
        there = solve(far, Settings(sigma=0.2, method=method), boxes=around(points))
        assert there.complete
        for q in points:
            assert there.contains(q), (distance, q)


def around(points):
    return points - 1e-3, points + 1e-3


@pytest.mark.parametrize("distance", [1.0, 1e4, 4e5])
@pytest.mark.parametrize("name", ["puma560", "manseur_doty"])
def test_certified_boxes_hold_the_root_of_the_mechanism_as_given(name, distance):
    far = seen_from(library.get(name), frame_at(distance))
    cover = solve(far, Settings(sigma=0.1))
    assert cover.certified.all()
    assert len(cover.lower) == {"puma560": 8, "manseur_doty": 16}[name]
    for lower, upper in list(zip(cover.lower, cover.upper, strict=True))[::4]:
        root = exact_root(far, 0.5 * (lower + upper))
        for k in range(6):
            assert mp.mpf(lower[k]) <= root[k] <= mp.mpf(upper[k])
    if name == "puma560":  # as sharp as the spread of the constants allows
        assert (cover.upper - cover.lower).max() < 3e-12 * (1.0 + distance)
