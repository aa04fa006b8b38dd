"""The Cuik algorithm (Fig. 2 of the paper) on a stack of boxes, compiled for each formulation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from kin_solvers.boxes import Boxes, Counters, Outcome
from kin_solvers.compiled import Array, IntArray, helper
from kin_solvers.hulls import Box

#: Pieces into which a box is cut at most.
MOST_PIECES = 4
#: Boxes that one call finds at most.
MOST_FOUND = 100_000


#: What the paper counts: boxes taken from the stack, applications of Reduce_Box, boxes that became
#: solutions (before neighbours were merged), boxes proven empty.
COUNTED = ("processed", "reductions", "solutions", "empty")
#: Where a search stands: boxes on the stack and in the list of solutions, what it has counted, and
#: the share of the search volume that is settled.
PROGRESS = np.dtype(
    [*((name, np.int64) for name in ("queued", "found", *COUNTED)), ("settled", np.float64)],
    align=True,
)


class Stack(NamedTuple):
    """Room for boxes, the next one last: shapes (capacity, V), (capacity, V) and (capacity,).

    ``share`` is the share of the search volume of each.
    """

    lower: Array
    upper: Array
    share: Array


class Tuning(NamedTuple):
    """How boxes are reduced and when they are split.

    Attributes:
        raw_above: Half-width above which the equations are used as they are.
        sums_below: Half-width up to which preconditioned sums of them are used.
        regularisation: Factor of the regularisation of the preconditioner.
        stuck: Ratio of the longest side above which a box is split
        stuck_below: if it is narrower than this half-width.
    """

    raw_above: float
    sums_below: float
    regularisation: float
    stuck: float = 1.0
    stuck_below: float = 0.0


class Goal(NamedTuple):
    """When boxes are done, and the search.

    Attributes:
        sigma: Side at which a box counts as solution, shape (V,).
        rho: Volume ratio above which a box is split.
        limit: Boxes to process at most.
        merge: Whether neighbours that fit in one solution box become one.
        flag: Stop when flag[0] is not 0.
        tuning: For Reduce_Box.
    """

    sigma: Array
    rho: float
    limit: int
    merge: bool
    flag: IntArray
    tuning: Tuning


Tables = TypeVar("Tables")
Room = TypeVar("Room")
#: search(tables, goal, stack, found, progress): a compiled search.
Kernel = Callable[[Tables, Goal, Stack, Box, Any], None]


def make_driver(
    reduce_box: Callable[[Tables, Room, Box, int, Tuning], tuple[bool, float]],
    split_box: Callable[[Stack, int, Box, Array, float], int],
) -> Callable[[Tables, Room, Goal, Stack, Box, Any, Box], None]:
    """The Cuik algorithm with a Reduce_Box of its own, for compiled code.

    A factory, because numba does not cache a function that is given functions.

    Args:
        reduce_box: Makes a box smaller, in place: whether anything is left, and the largest
            half-width that it had. Its number tells a first reduction of a box from the next ones.
        split_box: Pushes the parts of a box on the stack; returns the number of boxes there.
    """

    @helper
    def drive(
        tables: Tables,
        room: Room,
        goal: Goal,
        stack: Stack,
        found: Box,
        progress: Any,
        box: Box,
    ) -> None:
        """Search the boxes on a stack, in place.

        Stops when the stack is empty, enough boxes were processed, an array is full or the flag is
        raised. What is left stays on the stack.

        Args:
            tables: The equations.
            room: What ``reduce_box`` works in.
            goal: When boxes are done.
            stack: The list L of the paper.
            found: Room for the list S of the paper; the search goes on merging with its last box.
            progress: ``PROGRESS``.
            box: Room for the box in process.
        """
        sigma = goal.sigma
        while progress.queued > 0 and progress.processed < goal.limit and goal.flag[0] == 0:
            if progress.found == found.lower.shape[0]:
                break
            if progress.queued + MOST_PIECES > stack.lower.shape[0] + 1:
                break
            progress.queued -= 1
            progress.processed += 1
            share = stack.share[progress.queued]
            for k in range(sigma.size):
                box.lower[k] = stack.lower[progress.queued, k]
                box.upper[k] = stack.upper[progress.queued, k]
            longest, volume = _size(box, sigma)
            number = 0
            while True:
                before, longest_before = volume, longest
                alive, widest = reduce_box(tables, room, box, number, goal.tuning)
                number += 1
                if not alive:
                    break
                longest, volume = _size(box, sigma)
                if longest <= 1.0 or volume > goal.rho * before or goal.flag[0] != 0:
                    break
                if (
                    widest < goal.tuning.stuck_below
                    and longest > goal.tuning.stuck * longest_before
                ):
                    break  # the longest side is stuck: a curve, which only splitting makes shorter
            progress.reductions += number
            if not alive:
                progress.empty += 1
                progress.settled += share
            elif longest <= 1.0:
                progress.solutions += 1
                progress.settled += share
                if not (goal.merge and _merge(found, progress.found, box, sigma)):
                    _put(found, progress.found, box)
                    progress.found += 1
            else:
                progress.queued = split_box(stack, progress.queued, box, sigma, share)

    return drive


@helper
def _size(box: Box, sigma: Array) -> tuple[float, float]:
    """Longest side of a box, in sigmas, and its volume."""
    longest = 0.0
    volume = 1.0
    for k in range(sigma.size):
        side = box.upper[k] - box.lower[k]
        volume *= max(side, 1e-20)
        longest = max(longest, side / sigma[k])
    return longest, volume


@helper
def _put(found: Box, i: int, box: Box) -> None:
    """Write a box into a list."""
    for k in range(box.lower.size):
        found.lower[i, k] = box.lower[k]
        found.upper[i, k] = box.upper[k]


@helper
def _merge(found: Box, count: int, box: Box, sigma: Array) -> bool:
    """Widen the box that was found last to hold another one, if it stays small enough.

    Neighbours come in a row.
    """
    i = count - 1
    if i < 0:
        return False
    for k in range(sigma.size):
        a = min(found.lower[i, k], box.lower[k])
        if not max(found.upper[i, k], box.upper[k]) - a <= sigma[k]:
            return False
    for k in range(sigma.size):
        found.lower[i, k] = min(found.lower[i, k], box.lower[k])
        found.upper[i, k] = max(found.upper[i, k], box.upper[k])
    return True


@helper
def split(stack: Stack, queued: int, box: Box, sigma: Array, share: float) -> int:
    """Push the parts of a box, split across its widest side (in units of sigma)."""
    lower = box.lower
    upper = box.upper
    widest = -1.0
    j = 0
    for k in range(lower.size):
        w = (upper[k] - lower[k]) / sigma[k]
        if w > widest:
            widest = w
            j = k
    pieces = 2
    if widest <= MOST_PIECES:  # pieces of just under sigma, all at once
        pieces = max(2, math.ceil(widest))
    part = 1.0 / pieces
    if MOST_PIECES < widest <= 32.0:  # whole pieces of that size on both sides
        count = math.ceil(widest)
        part = (count - count // 2) / count
    top = upper[j]
    for i in range(pieces):
        for k in range(lower.size):
            stack.lower[queued + i, k] = lower[k]
            stack.upper[queued + i, k] = upper[k]
        stack.share[queued + i] = (part if i == 0 else (1.0 - part) / (pieces - 1)) * share
    # The last of the stack is taken first: the piece at the lower end.
    for i in range(pieces - 1):
        m = lower[j] + (top - lower[j]) * (1.0 - part - i * (1.0 - part) / (pieces - 1))
        stack.lower[queued + i, j] = m
        stack.upper[queued + i + 1, j] = m
    return queued + pieces


def run(
    kernel: Kernel[Tables], tables: Tables, boxes: Boxes, goal: Goal, last: Boxes | None = None
) -> Outcome:
    """Give a compiled search its stack and take what it leaves.

    With the box that was found last, the result begins with this box, which may have grown.
    """
    n, size = boxes.lower.shape
    capacity = n + min(goal.limit, 64 * size) * MOST_PIECES + 2
    stack = Stack(np.empty((capacity, size)), np.empty((capacity, size)), np.empty(capacity))
    # The first box is taken first: the kernel pops from the end.
    stack.lower[:n], stack.upper[:n] = boxes.lower[::-1], boxes.upper[::-1]
    stack.share[:n] = boxes.share[::-1]
    known = 0 if last is None else len(last)
    room = min(goal.limit, MOST_FOUND) + 1 + known
    found = Box(np.empty((room, size)), np.empty((room, size)))
    progress = np.zeros(1, dtype=PROGRESS)[0]
    progress["queued"], progress["found"] = n, known
    if last is not None and known:
        found.lower[:known], found.upper[:known] = last.lower, last.upper
    kernel(tables, goal, stack, found, progress)
    left, count = int(progress["queued"]), int(progress["found"])
    return Outcome(
        found.lower[:count].copy(),
        found.upper[:count].copy(),
        Boxes(
            stack.lower[:left][::-1].copy(),
            stack.upper[:left][::-1].copy(),
            stack.share[:left][::-1].copy(),
        ),
        Counters(*(int(progress[name]) for name in COUNTED)),
        float(progress["settled"]),
    )
