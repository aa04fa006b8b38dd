"""Segment-trapezoid clipping on hulls against linear programs."""

import numpy as np
import pytest
from numba import njit
from scipy.optimize import linprog

from kin_solvers.clipping import intersect
from kin_solvers.hulls import Box, U, V, enclose, make_arcs


@njit
def hull(box, arcs):
    enclose(box, arcs)


@njit
def clipped(arcs):
    return intersect(arcs[0])


def extreme(sign, x, bounds):
    """Smallest sign * coordinate of the convex combinations of vertices that meet a bound <= 0."""
    n = len(x)
    answer = linprog(
        sign * x, A_ub=[bounds], b_ub=[0.0], A_eq=[np.ones(n)], b_eq=[1.0], bounds=[(0, 1)] * n
    )
    return sign * answer.fun if answer.status == 0 else None


def statement(x, low, high):
    """Where the lower hull is <= 0 and the upper hull >= 0; None if nowhere."""
    ends = [extreme(s, x, b) for b in (low, -high) for s in (1.0, -1.0)]
    if any(e is None for e in ends):
        return None
    return max(ends[0], ends[2]), min(ends[1], ends[3])


@pytest.mark.parametrize(
    ("half", "translation"), [(0.2, False), (1.0, False), (2.5, False), (0.7, True)]
)
def test_clipping_is_the_intersection_of_two_hulls_with_zero(half, translation):
    rng = np.random.default_rng(7)
    arcs = make_arcs(np.array([translation]), np.array([False]))
    outcomes = set()
    for _ in range(60):
        middle = rng.uniform(-3.0, 3.0)
        hull(Box(np.array([middle - half]), np.array([middle + half])), arcs)
        arc = arcs[0]
        n = int(arc["count"])
        low = rng.normal(size=n) + rng.normal()
        high = low + rng.uniform(0.0, 1.0, n)
        arc["low"][:n], arc["high"][:n] = low, high
        alive = clipped(arcs)
        expected = [
            statement(arc["hull"][row][:n], low, high) for row in ((U, V) if n == 4 else (U,))
        ]
        if any(e is None or e[0] > e[1] + 1e-9 for e in expected):
            assert not alive
            outcomes.add("empty")
            continue
        if all(e[0] < e[1] - 1e-9 for e in expected):
            assert alive
            np.testing.assert_allclose(
                arc["left"][: 2 * len(expected)], np.ravel(expected), atol=1e-8
            )
            outcomes.add("clipped" if expected[0][1] - expected[0][0] < 1.9 * half else "kept")
    assert outcomes >= {"empty", "clipped"}


def test_clippings_are_intersected():
    """Each is of the hull as it was; what they leave together is what all of them leave."""
    arcs = make_arcs(np.array([True]), np.array([False]))
    hull(Box(np.array([-1.0]), np.array([1.0])), arcs)
    arc = arcs[0]
    for low, high in [
        ((-1.0, 1.0), (2.0, 2.0)),
        ((-1.0, -1.0), (-0.5, 1.5)),
        ((-3.0, -3.0), (3.0, 3.0)),
    ]:
        arc["low"][:2], arc["high"][:2] = low, high
        assert clipped(arcs)
    np.testing.assert_allclose(arc["left"][:2], [-0.5, 0.0], atol=1e-12)
    arc["low"][:2], arc["high"][:2] = (0.1, 0.2), (1.0, 1.0)
    assert not clipped(arcs)
