"""The compiled Cuik algorithm against Fig. 2 of the paper in plain Python."""

import math

import numpy as np
import pytest
from numba import njit

from kin_solvers.boxes import Boxes
from kin_solvers.compiled import exact_helper
from kin_solvers.driver import MOST_PIECES, Goal, Stack, Tuning, make_driver, run, split
from kin_solvers.hulls import Box

TUNING = Tuning(0.0, 0.0, 0.0, stuck=0.9, stuck_below=0.2)


def toy(tables, room, box, number, tuning):
    """Reduce_Box for x^2 + y^2 = r^2 with x, y >= 0: each bounds the other."""
    r = tables[0]
    widest = 0.5 * max(box.upper[0] - box.lower[0], box.upper[1] - box.lower[1])
    a = math.sqrt(max(0.0, r * r - box.upper[1] * box.upper[1]))
    b = math.sqrt(max(0.0, r * r - box.lower[1] * box.lower[1]))
    box.lower[0] = max(box.lower[0], a)
    box.upper[0] = min(box.upper[0], b)
    if box.lower[0] > box.upper[0]:
        return False, widest
    a = math.sqrt(max(0.0, r * r - box.upper[0] * box.upper[0]))
    b = math.sqrt(max(0.0, r * r - box.lower[0] * box.lower[0]))
    box.lower[1] = max(box.lower[1], a)
    box.upper[1] = min(box.upper[1], b)
    return box.lower[1] <= box.upper[1], widest


_drive = make_driver(exact_helper(toy), split)


@njit
def search(tables, goal, stack, found, progress):
    _drive(tables, tables, goal, stack, found, progress, Box(np.empty(2), np.empty(2)))


def split_plainly(lower, upper, sigma):
    """Pieces of a box and their shares, the lowest first."""
    sides = (upper - lower) / sigma
    j = int(sides.argmax())
    widest = float(sides[j])
    pieces, top = 2, 0.5  # the top piece takes so much
    if widest <= MOST_PIECES:
        pieces = max(2, math.ceil(widest))
        top = 1.0 / pieces
    elif widest <= 32.0:
        whole = math.ceil(widest)
        top = (whole - whole // 2) / whole
    rest = (1.0 - top) / (pieces - 1)
    cuts = [lower[j]]
    cuts += [lower[j] + (upper[j] - lower[j]) * (i * rest) for i in range(1, pieces)]
    cuts.append(upper[j])
    parts = []
    for i in range(pieces):
        low, high = lower.copy(), upper.copy()
        low[j], high[j] = cuts[i], cuts[i + 1]
        parts.append((low, high, top if i == pieces - 1 else rest))
    return parts


def fig_2(boxes, tables, goal):
    """The figure, with what this search adds: pieces, merging, a side that is stuck."""
    todo = list(boxes)
    found, count = [], dict.fromkeys(("processed", "reductions", "solutions", "empty"), 0)
    settled = 0.0
    while todo and count["processed"] < goal.limit:
        lower, upper, share = todo.pop(0)
        count["processed"] += 1
        box = Box(lower.copy(), upper.copy())
        while True:
            size = np.prod(box.upper - box.lower)
            longest = ((box.upper - box.lower) / goal.sigma).max()
            alive, widest = toy(tables, None, box, 0, goal.tuning)
            count["reductions"] += 1
            sides = (box.upper - box.lower) / goal.sigma
            if not alive or sides.max() <= 1.0:
                break
            if np.prod(box.upper - box.lower) > goal.rho * size:
                break
            if widest < goal.tuning.stuck_below and sides.max() > goal.tuning.stuck * longest:
                break
        if not alive:
            count["empty"] += 1
            settled += share
        elif sides.max() <= 1.0:
            count["solutions"] += 1
            settled += share
            if goal.merge and found:
                low = np.minimum(found[-1][0], box.lower)
                high = np.maximum(found[-1][1], box.upper)
                if (high - low <= goal.sigma).all():
                    found[-1] = (low, high)
                    continue
            found.append((box.lower, box.upper))
        else:
            parts = split_plainly(box.lower, box.upper, goal.sigma)
            todo = [(low, high, part * share) for low, high, part in parts] + todo
    return found, todo, count, settled


def question(sigma, rho, limit, merge=True):
    flag = np.zeros(1, dtype=np.int64)
    return Goal(np.array([sigma, 1.3 * sigma]), rho, limit, merge, flag, TUNING)


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize(("sigma", "rho"), [(0.5, 0.5), (0.047, 0.8), (0.003, 0.95)])
@pytest.mark.parametrize("limit", [1, 7, 10_000])
def test_the_driver_does_what_the_figure_says(sigma, rho, limit, merge):
    goal = question(sigma, rho, limit, merge)
    start = [(np.array([0.0, 0.0]), np.array([1.0, 2.0]), 0.25),
             (np.array([1.0, 0.0]), np.array([2.0, 2.0]), 0.75)]  # fmt: skip
    boxes = Boxes(*(np.array([box[i] for box in start]) for i in range(3)))
    outcome = run(search, (1.5,), boxes, goal)
    found, todo, count, settled = fig_2(start, (1.5,), goal)
    assert vars(outcome.counters) == count
    assert outcome.settled == pytest.approx(settled)
    np.testing.assert_allclose(
        outcome.found_lower, [b[0] for b in found] or np.empty((0, 2)), atol=1e-12
    )
    np.testing.assert_allclose(
        outcome.found_upper, [b[1] for b in found] or np.empty((0, 2)), atol=1e-12
    )
    assert len(outcome.left) == len(todo)
    if todo:
        np.testing.assert_allclose(outcome.left.lower, [b[0] for b in todo], atol=1e-12)
        np.testing.assert_allclose(outcome.left.upper, [b[1] for b in todo], atol=1e-12)
        np.testing.assert_allclose(outcome.left.share, [b[2] for b in todo], atol=1e-12)
    assert limit < 10_000 or (outcome.settled == pytest.approx(1.0) and not todo)


def test_work_in_parts_is_the_work_at_once():
    start = Boxes(np.zeros((1, 2)), np.full((1, 2), 2.0), np.ones(1))
    whole = run(search, (1.5,), start, question(0.02, 0.8, 10_000))
    boxes, last, lower, upper = start, None, np.empty((0, 2)), np.empty((0, 2))
    while len(boxes):
        part = run(search, (1.5,), boxes, question(0.02, 0.8, 3), last)
        known = 0 if last is None else 1
        lower = np.concatenate([lower[: len(lower) - known], part.found_lower])
        upper = np.concatenate([upper[: len(upper) - known], part.found_upper])
        last = Boxes.settled(lower[-1:], upper[-1:]) if len(lower) else None
        boxes = part.left
    np.testing.assert_array_equal(lower, whole.found_lower)
    np.testing.assert_array_equal(upper, whole.found_upper)


def test_a_raised_flag_leaves_everything_on_the_stack():
    goal = question(0.1, 0.8, 100)
    goal.flag[0] = 1
    start = Boxes(np.zeros((2, 2)), np.ones((2, 2)), np.full(2, 0.5))
    outcome = run(search, (1.5,), start, goal)
    assert outcome.counters.processed == 0
    np.testing.assert_array_equal(outcome.left.upper, start.upper)


@njit
def pushed(stack, box, sigma):
    return split(stack, 0, box, sigma, 1.0)


@pytest.mark.parametrize("widest", [1.5, 2.0, 2.5, 3.9, 4.0, 5.0, 31.5, 33.0, 1e4])
def test_pieces_fill_the_box_and_its_share(widest):
    sigma = np.array([1.0, 10.0, 1.0])
    box = Box(np.zeros(3), np.array([0.5, 10.0 * widest, 1.0]))
    stack = Stack(np.empty((5, 3)), np.empty((5, 3)), np.empty(5))
    n = pushed(stack, box, sigma)
    expected = split_plainly(box.lower, box.upper, sigma)[::-1]  # the last of the stack is next
    assert n == len(expected)
    for i, (low, high, share) in enumerate(expected):
        np.testing.assert_allclose(stack.lower[i], low, rtol=1e-14)
        np.testing.assert_allclose(stack.upper[i], high, rtol=1e-14)
        assert stack.share[i] == pytest.approx(share)
    assert stack.share[:n].sum() == pytest.approx(1.0)
    assert widest > 4.0 or (stack.upper[:n, 1] - stack.lower[:n, 1]).max() <= 10.0 + 1e-12
