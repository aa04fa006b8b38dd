"""Slopes and preconditioners against plain numpy."""

import numpy as np
import pytest
from numba import njit

from kin_solvers import library
from kin_solvers.fast_kernels import cut_loops
from kin_solvers.hulls import Box, U, enclose
from kin_solvers.precondition import (
    PARAMETER_SHARE,
    Linear,
    Slopes,
    loop_slopes,
    precondition,
    precondition_rows,
)
from kin_solvers.products import ROWS, Products
from kin_solvers.system import System


@njit
def plain(linear, eps):
    precondition(linear, eps)


@njit
def in_rows(linear, eps):
    precondition_rows(linear, eps)


@njit
def slopes_of(tables, box, arcs, products, slopes, J):
    enclose(box, arcs)
    cut_loops(tables, arcs, products, 1)
    loop_slopes(tables.loops, products, slopes, J)


def statement(J, eps):
    """P = (J J' + eps I)^-1 J, then other rows without what they have of the parameter's."""
    V = len(J)
    N = J @ J.T
    eps = max(eps, 1e-12 * np.trace(N))
    inverse = np.linalg.inv(N + eps * np.eye(V))
    P = inverse @ J
    share = eps * np.diag(inverse)
    j = int(share.argmax())
    if share[j] <= PARAMETER_SHARE:
        return P, -1
    others = P - np.outer(inverse[:, j] / inverse[j, j], P[j])
    others[j] = P[j]
    return others, j


@pytest.mark.parametrize(("V", "loops"), [(2, 1), (6, 1), (7, 2)])
@pytest.mark.parametrize("null", [False, True])
def test_preconditioners(V, loops, null):
    rng = np.random.default_rng(V)
    parameters = set()
    for _ in range(20):
        J = rng.normal(size=(V, ROWS * loops))
        eps = 1e-6
        if null:  # a direction along which nothing changes
            n = rng.normal(size=V)
            J -= np.outer(n / (n @ n), n @ J)
        expected, j = statement(J, eps)
        parameters.add(j)
        for function in (plain, in_rows):
            linear = Linear(
                J.copy(), np.zeros((V + 1, ROWS * loops)), np.zeros((V, V)), np.zeros((V + 1, V))
            )
            function(linear, eps)
            scale = np.abs(expected).max()
            np.testing.assert_allclose(linear.P[:V], expected, rtol=0, atol=1e-5 * scale)
            assert not linear.P[V].any()
            product = linear.P[:V] @ J.T
            if null:  # each row bounds its own variable by the parameter alone
                rest = np.delete(np.delete(product, j, axis=0), j, axis=1)
                np.testing.assert_allclose(rest, np.eye(V - 1), atol=1e-4)
            else:
                np.testing.assert_allclose(product, np.eye(V), atol=1e-4)
    assert (parameters == {-1}) is not null


def test_a_singular_system_gives_finite_sums():
    J = np.zeros((3, ROWS))
    J[0, 0] = 1.0
    for function in (plain, in_rows):
        linear = Linear(J.copy(), np.zeros((4, ROWS)), np.zeros((3, 3)), np.zeros((4, 3)))
        function(linear, 0.0)
        assert np.isfinite(linear.P).all()


@pytest.mark.parametrize("name", ["manseur_doty", "scara", "stewart"])
def test_slopes_are_half_the_difference_between_outer_vertices(name):
    """F = A - B with the other motions at the means of their outer vertices."""
    system = System.of(library.get(name))
    tables = system.tables
    rng = np.random.default_rng(9)
    middle = rng.uniform(0.1, 0.4, system.size)
    box = Box(middle - 0.05, middle + 0.05)
    arcs, L = tables.arcs.copy(), len(tables.loops)
    width, longest = tables.width, int(tables.halves["length"].max())
    products = Products(
        tables.joints.copy(),
        tables.halves.copy(),
        np.zeros((4 * len(tables.joints), ROWS)),
        np.empty((2 * L * width, ROWS)),
        np.empty((width, ROWS)),
    )
    room = Slopes(np.zeros((longest + 1, ROWS)), np.zeros((longest + 1, ROWS)), np.zeros((2, ROWS)))
    J = np.ones((system.size, ROWS * L))
    slopes_of(tables, box, arcs, products, room, J)
    expected = np.zeros_like(J)
    for l, loop in enumerate(tables.loops):
        for side, half in enumerate(products.halves[l]):
            joints = range(int(half["first"]), int(half["first"] + half["length"]))
            ends = {
                f: (products.G[4 * f], products.G[4 * f + products.joints[f]["count"] - 1])
                for f in joints
            }
            for f in joints:
                M = np.eye(5)
                for g in joints:
                    first, last = (matrix(row) for row in ends[g])
                    M = M @ (0.5 * (last - first) if g == f else 0.5 * (first + last))
                row = np.concatenate([M[:3, :4].ravel(), M[4, :4]])
                if loop["point"]:
                    row[[r for r in range(ROWS) if r % 4 != 3]] = 0.0
                k = products.joints[f]["variable"]
                expected[k, ROWS * l : ROWS * (l + 1)] += row if side else -row
    np.testing.assert_allclose(J, expected, rtol=0, atol=1e-12)
    assert (arcs["hull"][:, U, 0] < 0.0).all()


def matrix(row):
    M = np.zeros((5, 5))
    M[:3, :4] = row[:12].reshape(3, 4)
    M[3, 3] = M[4, 4] = 1.0
    M[4, :4] = row[12:]
    return M
