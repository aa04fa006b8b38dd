"""Hulls of arcs and travels against their plain statement, and the way back to angles."""

import math

import numpy as np
import pytest
from numba import njit

from kin_solvers.hulls import NARROW, Box, U, V, Y, Z, enclose, make_arcs, narrow


@njit
def enclosed(box, arcs):
    return enclose(box, arcs)


@njit
def narrowed(box, arcs):
    return narrow(box, arcs)


def one(lower, upper, *, translation=False, cyclic=False):
    """A box of one variable and its hull."""
    arcs = make_arcs(np.array([translation]), np.array([cyclic]))
    box = Box(np.array([lower]), np.array([upper]))
    return box, arcs, enclosed(box, arcs)


def vertices(half):
    """The polygon around the arc of a half-width about angle 0, as (cos, sin)."""
    c, s = math.cos(half), math.sin(half)
    if half < NARROW:  # the chord and the tangents at its ends
        return [(c, -s), (1.0 / c, 0.0), (c, s)]
    if half < 0.5 * math.pi:  # the chord, and what the tangent at the middle cuts off
        t = math.tan(0.5 * half)
        return [(c, -s), (1.0, -t), (1.0, t), (c, s)]
    c = c if half < math.pi else -1.0  # the square around the circle, cut where the arc ends
    return [(c, -1.0), (1.0, -1.0), (1.0, 1.0), (c, 1.0)]


HALVES = [1e-9, 0.01, 0.3, 0.599, 0.601, 1.2, 1.57, 1.58, 2.5, 3.1, math.pi, 5.0]


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("middle", [0.0, 0.7, -2.9, 40.0])
def test_the_hull_of_an_arc(half, middle):
    _, arcs, (widest, wide) = one(middle - half, middle + half)
    arc = arcs[0]
    expected = np.array(vertices(half))
    assert arc["count"] == len(expected) == (4 if wide else 3)
    assert widest == arc["half"] == pytest.approx(half, abs=1e-12)
    assert arc["half"] >= half
    relative = np.array([arc["hull"][V], arc["hull"][U]]).T[: arc["count"]]
    if wide:
        np.testing.assert_allclose(relative, expected, atol=1e-12)
    np.testing.assert_allclose(relative[:, 1], expected[:, 1], atol=1e-12)
    c, s = math.cos(middle), math.sin(middle)
    turned = expected @ np.array([[c, s], [-s, c]])
    np.testing.assert_allclose(arc["hull"][Y][: arc["count"]], turned[:, 0], atol=1e-12)
    np.testing.assert_allclose(arc["hull"][Z][: arc["count"]], turned[:, 1], atol=1e-12)


@pytest.mark.parametrize("half", HALVES)
def test_the_arc_lies_in_its_hull(half):
    rng = np.random.default_rng(0)
    for middle in rng.uniform(-10.0, 10.0, 5):
        _, arcs, _ = one(middle - half, middle + half)
        arc = arcs[0]
        n = int(arc["count"])
        corners = np.array([arc["hull"][Y][:n], arc["hull"][Z][:n]]).T
        angles = middle + half * np.linspace(-1.0, 1.0, 301)
        points = np.array([np.cos(angles), np.sin(angles)]).T
        for i in range(n):  # counterclockwise: the arc is on the left of every edge
            a, b = corners[i], corners[(i + 1) % n]
            edge = b - a
            side = edge[0] * (points[:, 1] - a[1]) - edge[1] * (points[:, 0] - a[0])
            assert side.min() >= -1e-15 * (1.0 + abs(middle))


def test_the_hull_of_a_travel_is_its_ends():
    _, arcs, (widest, wide) = one(-0.5, 2.0, translation=True)
    arc = arcs[0]
    assert (arc["count"], wide) == (2, False)
    assert widest == pytest.approx(1.25)
    np.testing.assert_allclose(arc["hull"][Y][:2], [-0.5, 2.0], atol=1e-13)
    assert arc["hull"][Y][0] < -0.5 < 2.0 < arc["hull"][Y][1]
    np.testing.assert_allclose(arc["hull"][U][:2], [-1.25, 1.25], atol=1e-13)


def test_nothing_is_cut_off_a_hull_that_was_not_clipped():
    for lower, upper in [(0.1, 0.4), (-1.0, 1.0), (2.0, 5.0), (-math.pi, math.pi), (0.0, 6.5)]:
        box, arcs, _ = one(lower, upper)
        assert narrowed(box, arcs)
        assert (box.lower[0], box.upper[0]) == (lower, upper)


@pytest.mark.parametrize("half", [0.02, 0.5, 0.9, 1.5])
def test_clipped_hulls_come_back_as_arcs(half):
    """Below a quarter turn: sine and cosine relative to the middle, inverted."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        middle = rng.uniform(-4.0, 4.0)
        box, arcs, _ = one(middle - half, middle + half)
        u = np.sort(math.sin(half) * rng.uniform(-1.0, 1.0, 2))
        v = rng.uniform(math.cos(half) - 0.05, 1.0) if half > NARROW else -np.inf
        arcs["left"][0] = [*u, v, np.inf]
        lower = max(middle - half, middle + math.asin(u[0]))
        upper = min(middle + half, middle + math.asin(u[1]))
        if v > math.cos(half):
            lower, upper = (
                max(lower, middle - math.acos(v)),
                min(upper, middle + math.acos(v)),
            )
        if upper - lower > 1e-9:
            assert narrowed(box, arcs)
            assert box.lower[0] == pytest.approx(lower, abs=1e-7)
            assert box.upper[0] == pytest.approx(upper, abs=1e-7)
            assert box.lower[0] <= lower
            assert box.upper[0] >= upper
        elif upper - lower < -1e-6:
            assert not narrowed(box, arcs)


@pytest.mark.parametrize("cyclic", [False, True])
def test_no_angle_is_lost_from_a_wide_arc(cyclic):
    """What remains holds every angle whose sine and cosine are within what clippings left."""
    rng = np.random.default_rng(2)
    cut = 0
    for _ in range(400):
        middle = rng.uniform(-4.0, 4.0)
        half = math.pi if cyclic else rng.uniform(1.6, 4.0)
        box, arcs, _ = one(middle - half, middle + half, cyclic=cyclic)
        u, v = np.sort(rng.uniform(-1.3, 1.3, 2)), np.sort(rng.uniform(-1.3, 1.3, 2))
        arcs["left"][0] = [*u, *v]
        angles = middle + half * np.linspace(-1.0, 1.0, 2001)
        sines, cosines = np.sin(angles - middle), np.cos(angles - middle)
        kept = angles[(u[0] <= sines) & (sines <= u[1]) & (v[0] <= cosines) & (cosines <= v[1])]
        if not narrowed(box, arcs):
            assert len(kept) == 0
            continue
        cut += box.upper[0] - box.lower[0] < 2.0 * half - 1e-6
        turns = np.round((0.5 * (box.lower[0] + box.upper[0]) - kept) / (2.0 * math.pi))
        held = kept + 2.0 * math.pi * turns if cyclic else kept
        assert (held >= box.lower[0] - 1e-12).all()
        assert (held <= box.upper[0] + 1e-12).all()
    assert cut > 100


def test_a_travel_is_cut_to_what_is_left():
    box, arcs, _ = one(0.0, 2.0, translation=True)
    arcs["left"][0, :2] = [-0.25, 0.5]
    assert narrowed(box, arcs)
    np.testing.assert_allclose([box.lower[0], box.upper[0]], [0.75, 1.5], atol=1e-12)
    arcs["left"][0, :2] = [0.9, 0.8]
    assert not narrowed(box, arcs)
