"""The paper's method on limited ranges: whole turns and both ends of a range."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kin_solvers import Settings, library, solve
from kin_solvers.equations import Equations
from kin_solvers.paper import circle_arcs
from kin_solvers.system import System

#: Ranges of the crank that cross pi, -pi, several turns away, of nearly a turn, of more than one.
RANGES = [
    (2.0, 4.0),
    (-4.5, -2.0),
    (2.0, 2.0 + 6.2),
    (0.0, 6.283185),
    (-3.0 * math.pi, -1.5 * math.pi),
    (200.0, 204.0),
    (-1.0, 8.0),
]


def curve_points(mechanism):
    """Points of a linkage with whole turns, from its cover by the fast method."""
    system = System.of(mechanism)
    cover = solve(mechanism, Settings(sigma=0.1))
    points = [Equations(system).newton(q) for q in 0.5 * (cover.lower + cover.upper)]
    return np.array([q for q in points if q is not None])


def within(q, lower, upper):
    """The angle q, whole turns apart, in a range; None if there is none."""
    turned = [q + 2.0 * math.pi * n for n in range(-40, 41)]
    return next((x for x in turned if lower <= x <= upper), None)


@pytest.mark.parametrize("name", ["planar_four_bar", "spherical_four_bar", "bennett"])
@pytest.mark.parametrize("ends", RANGES)
def test_no_point_of_a_range_across_pi_is_lost(name, ends):
    whole = library.get(name)
    joint = whole.names[0]
    limited = whole.with_ranges({joint: ends})
    wanted = []
    for q in curve_points(whole):
        x = within(q[0], *ends)
        if x is not None:
            wanted.append(np.array([x, *q[1:]]))
    assert len(wanted) > 20
    answer = solve(limited, Settings(sigma=0.3, method="paper"))
    assert answer.complete
    assert [q for q in wanted if not answer.contains(q)] == []
    if not limited.variables[0].cyclic:
        assert answer.lower[:, 0].min() >= ends[0]
        assert answer.upper[:, 0].max() <= ends[1]


@pytest.mark.parametrize("budget", [1, 3, 12])
@pytest.mark.parametrize("method", ["paper", "fast"])
def test_unfinished_boxes_across_pi_hold_every_point(method, budget):
    """Work of the paper's method that a budget ends is finished by either method."""
    whole = library.get("planar_four_bar")
    ends = (2.0, 8.0)
    limited = whole.with_ranges({whole.names[0]: ends})
    wanted = [
        np.array([within(q[0], *ends), *q[1:]])
        for q in curve_points(whole)
        if within(q[0], *ends) is not None
    ]
    first = solve(limited, Settings(sigma=0.3, method="paper", max_boxes=budget, certify=False))
    assert not first.complete
    assert first.unfinished_share.sum() == pytest.approx(1.0 - first.settled)
    lower, upper = first.unfinished_lower, first.unfinished_upper
    for q in wanted:
        in_open = ((lower <= q + 1e-12) & (q - 1e-12 <= upper)).all(axis=1).any()
        assert in_open or first.contains(q)
    rest = solve(limited, Settings(sigma=0.3, method=method), resume=first)
    assert rest.complete
    assert [q for q in wanted if not rest.contains(q)] == []


@pytest.mark.parametrize(
    ("name", "budget"), [("planar_four_bar", 1), ("scara", 3), ("bennett", 40)]
)
def test_a_search_that_is_given_its_own_unfinished_boxes_comes_to_an_end(name, budget):
    """As clients of the service go on; the boxes pass through angles each time."""
    mechanism = library.get(name)
    settings = Settings(sigma=0.5, method="paper", certify=False)
    whole = solve(mechanism, settings)
    part = solve(mechanism, replace(settings, max_boxes=budget))
    lower, upper, processed = [part.lower], [part.upper], part.counters.processed
    while len(part.unfinished_lower):
        assert processed < 3 * whole.counters.processed + 100
        boxes = (part.unfinished_lower, part.unfinished_upper)
        part = solve(mechanism, replace(settings, max_boxes=budget), boxes=boxes)
        processed += part.counters.processed
        lower.append(part.lower)
        upper.append(part.upper)
    low, high = np.concatenate(lower), np.concatenate(upper)
    for q in curve_points(mechanism) if name != "scara" else []:
        gap = np.abs(np.remainder(q - 0.5 * (low + high) + math.pi, 2.0 * math.pi) - math.pi)
        assert (gap <= 0.5 * (high - low) + 1e-9).all(axis=1).any()


@given(*[st.floats(-1.1, 1.1)] * 4, st.floats(-7.0, 7.0))
def test_arcs_hold_the_points_of_the_circle_in_a_rectangle(a, b, c, d, angle):
    (y0, y1), (z0, z1) = sorted((a, b)), sorted((c, d))
    inside = y0 <= math.cos(angle) <= y1 and z0 <= math.sin(angle) <= z1
    arcs = circle_arcs(y0, z0, y1, z1)
    turns = [angle + 2.0 * math.pi * n for n in range(-3, 4)]
    if inside:
        assert any(low <= x <= high for low, high in arcs for x in turns)
    for low, high in arcs:
        for x in np.linspace(low, high, 9):
            assert y0 - 1e-13 <= math.cos(x) <= y1 + 1e-13
            assert z0 - 1e-13 <= math.sin(x) <= z1 + 1e-13
