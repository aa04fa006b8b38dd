"""Reduce_Box of the fast method, compiled.

Notation (docs/cuik.md has the derivation): a loop Z_1 C_1 ... Z_n C_n = I is cut in two: F = A - B
with A a product of the second half and B the inverse of the product of the first half, both
multi-affine in the (y, z) of their angles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kin_solvers.clipping import intersect
from kin_solvers.compiled import Array, Records, helper, jit, maker
from kin_solvers.driver import Goal, Stack, Tuning, make_driver, split
from kin_solvers.hulls import Box, U, enclose, narrow
from kin_solvers.lanes import ROW, address, dot, multiply
from kin_solvers.precondition import (
    Linear,
    Slopes,
    loop_slopes,
    make_linear,
    make_slopes,
    precondition_rows,
    regularisation,
)
from kin_solvers.products import (
    LANES,
    ROWS,
    Extremes,
    Products,
    SumFolds,
    bend,
    fold_half,
    fold_sums,
    make_products,
    make_sum_folds,
    set_weights,
    sum_rows,
    vertex_matrix,
    vertex_products,
)

#: A loop in normal form.
LOOP = np.dtype(
    [
        ("first", np.int64),  # its first factor
        ("length", np.int64),  # number of its factors
        ("point", np.bool_),  # closed by a point only
        ("C_first", np.float64, (ROWS,)),  # inverse of the leading constant of a point closure
        ("delta", np.float64, (2, ROWS)),  # bounds on the errors of rows: narrow arcs, wide arcs
    ],
    align=True,
)


class LoopTables(NamedTuple):
    """The equations of a mechanism.

    Attributes:
        arcs: The variables, shape (V,) of ``ARC``.
        loops: Shape (L,) of ``LOOP``.
        factors: Shape (F,) of ``FACTOR``.
        joints: Room for the factors in the order of multiplication, shape (F,) of ``JOINT``.
        halves: The halves of each loop, shape (L, 2) of ``HALF``.
        reach: Largest reach of a loop.
        width: Vertex products of a half at most.
    """

    arcs: Records
    loops: Records
    factors: Records
    joints: Records
    halves: Records
    reach: float
    width: int


class Folds(NamedTuple):
    """Room for the extremes of the rows at vertex products.

    Attributes:
        low: Minima under way, shape (width, 16).
        high: Maxima under way.
        block_low: Minima for each vertex of each joint, both halves, shape (8 n, 16).
        block_high: Maxima.
        all_low: Minima of each half, shape (2, 16).
        all_high: Maxima.
    """

    low: Array
    high: Array
    block_low: Array
    block_high: Array
    all_low: Array
    all_high: Array


class LoopRoom(NamedTuple):
    """What Reduce_Box works in."""

    arcs: Records
    products: Products
    slopes: Slopes
    linear: Linear
    folds: Folds
    sums: SumFolds


@maker
def _make_room(tables: LoopTables) -> LoopRoom:
    L = tables.loops.size
    width = tables.width
    longest = 1
    for l in range(L):
        longest = max(longest, tables.halves[l, 0].length, tables.halves[l, 1].length)
    return LoopRoom(
        tables.arcs.copy(),
        make_products(tables.joints, tables.halves, 2 * L * width, width),
        make_slopes(longest),
        make_linear(tables.arcs.size, ROWS * L),
        Folds(
            np.empty((width, ROWS)),
            np.empty((width, ROWS)),
            np.zeros((8 * longest, ROWS)),
            np.zeros((8 * longest, ROWS)),
            np.zeros((2, ROWS)),
            np.zeros((2, ROWS)),
        ),
        make_sum_folds(width, longest),
    )


@helper
def reduce_box(
    tables: LoopTables, room: LoopRoom, box: Box, number: int, tuning: Tuning
) -> tuple[bool, float]:
    """Reduce_Box (Fig. 3) with one cut of the loops, all clippings on the original bounds."""
    widest, wide = enclose(box, room.arcs)
    delta = 1 if wide else 0
    cut_loops(tables, room.arcs, room.products, number)
    if widest > tuning.raw_above and not _clip_raw(tables, room, delta):
        return False, widest
    if widest <= tuning.sums_below:
        loop_slopes(tables.loops, room.products, room.slopes, room.linear.J)
        eps = regularisation(tuning.regularisation, widest, tables.reach)
        precondition_rows(room.linear, eps)
        if not _clip_preconditioned(tables, room, delta):
            return False, widest
    return narrow(box, room.arcs), widest


@helper
def cut_loops(tables: LoopTables, arcs: Records, products: Products, turn: int) -> None:
    """Cut every loop in halves at a place that moves with ``turn``; all vertex products."""
    joints = products.joints
    G = products.G
    for l in range(tables.loops.size):
        loop = tables.loops[l]
        o = loop.first
        n = loop.length
        start = 0 if loop.point else turn % n
        p = n // 2
        for t in range(n):
            f = start + p - 1 - t if t < p else start + t
            if f >= n:
                f -= n
            factor = tables.factors[o + f]
            arc = arcs[factor.variable]
            joint = joints[o + t]
            joint.variable = factor.variable
            joint.count = arc.count
            g = 4 * (o + t)
            for i in range(arc.count):
                if t < p:
                    vertex_matrix(factor.C_inverse, arc, i, True, G, g + i)
                else:
                    vertex_matrix(factor.C, arc, i, False, G, g + i)
        if loop.point:  # the leading constant belongs to the inverse half
            g = address(G) + 4 * ROW * (o + p - 1)
            for i in range(joints[o + p - 1].count):
                multiply(g + ROW * i, g + ROW * i, address(loop.C_first), 1.0)
        vertex_products(products, products.halves[l, 0])
        vertex_products(products, products.halves[l, 1])


@helper
def _clip_raw(tables: LoopTables, room: LoopRoom, delta: int) -> bool:
    """Clip with the equations of every loop as they are; False if empty."""
    products = room.products
    low, high, block_low, block_high, all_low, all_high = room.folds
    longest = block_low.shape[0] // 8
    for l in range(tables.loops.size):
        loop = tables.loops[l]
        bounds = loop.delta[delta]
        sag = bend(room.arcs, tables.factors, loop.first, loop.length)
        for side in range(2):
            half = products.halves[l, side]
            extremes = Extremes(
                address(low),
                address(high),
                address(block_low) + 4 * side * longest * ROW,
                address(block_high) + 4 * side * longest * ROW,
            )
            rows = address(products.sides) + ROW * half.start
            fold_half(rows, 4, products.joints, half, extremes)
            for r in range(ROWS):
                all_low[side, r] = low[0, r]
                all_high[side, r] = high[0, r]
        for r in range(ROWS):
            if loop.point and r % 4 != 3:
                continue
            bound = bounds[r] + sag if r == 15 else bounds[r]
            if all_low[1, r] - all_high[0, r] > bound or all_low[0, r] - all_high[1, r] > bound:
                return False
        for side in range(2):
            half = products.halves[l, side]
            for t in range(half.length):
                arc = room.arcs[products.joints[half.first + t].variable]
                b = 4 * (side * longest + t)
                for r in range(ROWS):
                    if loop.point and r % 4 != 3:
                        continue
                    bound = bounds[r] + sag if r == 15 else bounds[r]
                    clips = False
                    for i in range(arc.count):
                        if side == 0:
                            x = all_low[1, r] - block_high[b + i, r] - bound
                            y = all_high[1, r] - block_low[b + i, r] + bound
                        else:
                            x = block_low[b + i, r] - all_high[0, r] - bound
                            y = block_high[b + i, r] - all_low[0, r] + bound
                        arc.low[i] = x
                        arc.high[i] = y
                        if x > 0.0 or y < 0.0:
                            clips = True
                    if clips and not intersect(arc):
                        return False
    return True


@helper
def _clip_preconditioned(tables: LoopTables, room: LoopRoom, delta: int) -> bool:
    """Clip each variable k with row k of P F; False if empty."""
    arcs = room.arcs
    norms = room.sums.norms
    V = arcs.size
    L = tables.loops.size
    for k in range(V):
        arc = arcs[k]
        arc.slack = 0.0
        for i in range(4):
            arc.low[i] = 0.0
            arc.high[i] = 0.0
    row = ROW * L
    last = V * row  # a row of zeros
    for k0 in range(0, V, LANES):
        lanes = min(LANES, V - k0)
        for l in range(L):
            loop = tables.loops[l]
            rows = address(room.linear.P) + ROW * l
            bounds = address(loop.delta) + ROW * delta
            set_weights(room.sums, rows + row * k0, row, rows + last, lanes, bounds)
            if L == 1 and norms[0] + norms[1] + norms[2] + norms[3] == 0.0:
                continue  # with several loops, slopes of others may have moved here
            sag = bend(arcs, tables.factors, loop.first, loop.length)
            for q in range(lanes):
                arcs[k0 + q].slack += norms[q] + abs(room.sums.column[15, q]) * sag
            for side in range(2):
                half = room.products.halves[l, side]
                sum_rows(room.products, half, room.sums)
                if L > 1:
                    _level_shared(tables, room, l, side, k0, lanes)
                fold_sums(room.products, half, room.sums)
                _add_half(room, half, side, k0, lanes)
    for k in range(V):
        arc = arcs[k]
        for i in range(arc.count):
            arc.low[i] -= arc.slack
            arc.high[i] += arc.slack
        if not intersect(arc):
            return False
    return True


@helper
def _level_shared(
    tables: LoopTables, room: LoopRoom, l: int, side: int, k0: int, lanes: int
) -> None:
    """Move the slopes in variables shared between loops from loop to loop.

    The sum over the loops stays as it is, and the parts no longer fight each other. Bounds the
    rounding of the move in ``slack``.
    """
    joints = room.products.joints
    half = room.products.halves[l, side]
    J = address(room.linear.J)
    P = address(room.linear.P)
    value = room.sums.value
    sign = -1.0 if side == 0 else 1.0
    stride = 1
    L = tables.loops.size
    row = ROW * L
    for t in range(half.length):
        j = joints[half.first + t].variable
        arc = room.arcs[j]
        m = arc.count
        again = False  # a variable that stands twice in a loop takes its slope once
        for i in range(tables.loops[l].first, half.first + t):
            if joints[i].variable == j:
                again = True
        if arc.shared > 1 and not again:
            top = arc.hull[U, m - 1]
            for q in range(lanes):
                k = k0 + q
                if j == k:
                    continue
                total = 0.0
                for i in range(L):
                    total += dot(P + row * k + ROW * i, J + row * j + ROW * i)
                part = dot(P + row * k + ROW * l, J + row * j + ROW * l)
                move = sign * (total / arc.shared - part)
                room.arcs[k].slack += 1e-14 * (abs(part) + abs(total))
                for i in range(m):
                    shift = move * (arc.hull[U, i] / top)
                    for base in range(i * stride, half.count, stride * m):
                        for x in range(base, base + stride):
                            value[x, q] += shift
        stride *= m


@helper
def _add_half(room: LoopRoom, half: np.record, side: int, k0: int, lanes: int) -> None:
    """Add the bounds of one half of a loop to those of the sums k0, k0 + 1, ... of P F."""
    joints = room.products.joints
    sums = room.sums
    for q in range(lanes):
        arc = room.arcs[k0 + q]
        t = 0
        while t < half.length and joints[half.first + t].variable != k0 + q:
            t += 1
        for i in range(arc.count):
            if t < half.length:
                a = sums.block_low[4 * t + i, q]
                b = sums.block_high[4 * t + i, q]
            else:
                a = sums.low[0, q]
                b = sums.high[0, q]
            if side == 0:
                arc.low[i] -= b
                arc.high[i] -= a
            else:
                arc.low[i] += a
                arc.high[i] += b


_drive = make_driver(reduce_box, split)


@jit
def search(tables: LoopTables, goal: Goal, stack: Stack, found: Box, progress: np.record) -> None:
    """The Cuik algorithm on boxes of the mechanism's variables."""
    box = Box(np.empty(goal.sigma.size), np.empty(goal.sigma.size))
    _drive(tables, _make_room(tables), goal, stack, found, progress, box)
