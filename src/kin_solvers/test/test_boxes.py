"""Lists of boxes and counters."""

import numpy as np

from kin_solvers.boxes import Boxes, Counters


def some(rng, count, size=3):
    lower = rng.normal(size=(count, size))
    return Boxes(lower, lower + 1.0, rng.uniform(size=count))


def test_parts_joined_are_the_whole():
    boxes = some(np.random.default_rng(0), 7)
    parts = [boxes.part(slice(None, 3)), Boxes.none(3), boxes.part(slice(3, None))]
    joined = Boxes.joined(parts, 3)
    assert len(joined) == 7
    for name in ("lower", "upper", "share"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(boxes, name))
    assert Boxes.joined([Boxes.none(3)], 3).lower.shape == (0, 3)
    assert Boxes.joined(parts[:2], 3) is parts[0]


def test_settled_boxes_have_no_share():
    boxes = some(np.random.default_rng(1), 4)
    settled = Boxes.settled(boxes.lower, boxes.upper)
    assert len(settled) == 4
    assert not settled.share.any()


def test_counters_add_up():
    total = Counters(1, 2, 3, 4) + Counters(processed=10, empty=5)
    assert total == Counters(11, 2, 3, 9)
    assert Counters() + total == total
