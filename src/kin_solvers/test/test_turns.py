"""Angles that are known up to whole turns, within ranges."""

import math

import numpy as np
import pytest

from kin_solvers import library
from kin_solvers.system import System
from kin_solvers.turns import turned, without_turns


def system_with(range_):
    mechanism = library.get("planar_four_bar")
    return System.of(mechanism.with_ranges({mechanism.names[0]: range_}))


@pytest.mark.parametrize(
    ("range_", "interval", "parts"),
    [
        ((2.0, 4.0), (-math.pi, math.pi), [(2.0, 4.0)]),
        ((2.0, 4.0), (-3.0, -2.9), [(2.0 * math.pi - 3.0, 2.0 * math.pi - 2.9)]),
        ((0.0, 6.2), (-0.1, 0.1), [(0.0, 0.1), (2.0 * math.pi - 0.1, 6.2)]),
        ((2.0, 4.0), (0.0, 1.0), []),
        ((200.0, 201.0), (200.5 - 64.0 * math.pi, 200.6 - 64.0 * math.pi), [(200.5, 200.6)]),
        ((1.0, 2.0), (0.5, 1.0), [(1.0, 1.0)]),
    ],
)
def test_parts_of_a_range(range_, interval, parts):
    system = system_with(range_)
    lower, upper = system.lower.copy(), system.upper.copy()
    lower[0], upper[0] = interval
    boxes = turned(lower, upper, system)
    assert len(boxes) == len(parts)
    for (low, high), part in zip(boxes, parts, strict=True):
        assert low[0] <= part[0] + 1e-15
        assert high[0] >= part[1] - 1e-15
        assert (low[0], high[0]) == pytest.approx(part, abs=1e-11)
        assert range_[0] <= low[0] <= high[0] <= range_[1]


def test_turned_boxes_hold_what_they_held():
    rng = np.random.default_rng(4)
    q = rng.uniform(-10.0, 10.0, size=(500, 2))
    lower, upper = without_turns(q, q, np.array([True, False]))
    assert (np.abs(0.5 * (lower + upper)[:, 0]) <= math.pi + 1e-9).all()
    assert np.array_equal(lower[:, 1], q[:, 1])
    # In 80 bits a turn is known well enough.
    turn = 2.0 * np.longdouble(math.pi) + np.longdouble(2.4492935982947064e-16)
    turns = np.round(q[:, 0] / (2.0 * math.pi))
    exact = np.longdouble(q[:, 0]) - turns * turn
    assert (lower[:, 0] <= exact).all()
    assert (exact <= upper[:, 0]).all()
