"""Reduce_Box for platforms on legs of fixed length, compiled.

The pose of the platform is a product M of a few motions. Leg i asks that the point p_i of the
platform keeps its distance from the point b_i of the base: |M p_i - b_i|^2 is linear in the 16
conformal entries of M, which are multi-affine. So all legs share the vertex products of one chain,
and sums of their equations are bounded as one function.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from kin_solvers.clipping import intersect
from kin_solvers.compiled import Array, Records, helper, jit, maker
from kin_solvers.driver import Goal, Stack, Tuning, make_driver, split
from kin_solvers.hulls import Box, enclose, narrow
from kin_solvers.lanes import ROW, address, dot
from kin_solvers.precondition import (
    Linear,
    Slopes,
    loop_slopes,
    make_linear,
    make_slopes,
    precondition,
    regularisation,
)
from kin_solvers.products import (
    LANES,
    ROWS,
    Products,
    SumFolds,
    bend,
    fold_sums,
    make_products,
    make_sum_folds,
    set_weights,
    sum_rows,
    vertex_matrix,
    vertex_products,
)
from kin_solvers.system import WIDE_NORM


class LegTables(NamedTuple):
    """Rows of the legs.

    Attributes:
        W: One row for each leg, then a row of zeros, shape (legs + 1, 16).
        constant: Shape (legs,).
        bounds: Bound on the error of each entry of the chain, shape (16,).
        slack: Bound on the error of each leg's equation, shape (legs,).
        summed: The same for sums of rows.
    """

    W: Array
    constant: Array
    bounds: Array
    slack: Array
    summed: float


class PlatformTables(NamedTuple):
    """The equations of the legs: W (conformal entries of the chain) + constant = 0.

    Attributes:
        arcs: The variables of the chain, shape (n,) of ``ARC``.
        loops: The chain as a loop that is never closed, shape (1,) of ``LOOP``.
        factors: Its motions, shape (n,) of ``FACTOR``.
        joints: The same, shape (n,) of ``JOINT``.
        halves: An empty half and the chain, shape (1, 2) of ``HALF``.
        legs: ``LegTables``.
        reach: Largest reach of a leg.
    """

    arcs: Records
    loops: Records
    factors: Records
    joints: Records
    halves: Records
    legs: LegTables
    reach: float


class PlatformRoom(NamedTuple):
    """What Reduce_Box works in.

    Attributes:
        arcs: Hulls of the variables.
        products: The chain and its vertex products.
        slopes: Room for slopes.
        entries: Slopes of the entries of the chain, shape (n, 16).
        linear: Slopes and preconditioner of the legs.
        Q: Preconditioned sums of legs as rows of entries, then a row of zeros, shape (n + 1, 16).
        sums: Sums of entries and their extremes.
    """

    arcs: Records
    products: Products
    slopes: Slopes
    entries: Array
    linear: Linear
    Q: Array
    sums: SumFolds


@maker
def _make_room(tables: PlatformTables) -> PlatformRoom:
    n = tables.arcs.size
    return PlatformRoom(
        tables.arcs.copy(),
        make_products(tables.joints, tables.halves, 4**n, 4**n),
        make_slopes(n),
        np.zeros((n, ROWS)),
        make_linear(n, tables.legs.constant.size),
        np.zeros((n + 1, ROWS)),
        make_sum_folds(4**n, n),
    )


@helper
def reduce_box(
    tables: PlatformTables, room: PlatformRoom, box: Box, number: int, tuning: Tuning
) -> tuple[bool, float]:
    """Reduce_Box (Fig. 3), all clippings on the original bounds."""
    arcs = room.arcs
    n = arcs.size
    widest, wide = enclose(box, arcs)
    for k in range(n):
        room.products.joints[k].count = arcs[k].count
        for i in range(arcs[k].count):
            vertex_matrix(tables.factors[k].C, arcs[k], i, False, room.products.G, 4 * k + i)
    vertex_products(room.products, room.products.halves[0, 1])
    # Norm of a vertex: of the square's corner, or of the point where the tangents meet.
    norm = WIDE_NORM if wide else 1.0 / math.cos(_widest_angle(arcs))
    growth = norm**n
    sag = bend(arcs, tables.factors, 0, n)
    if widest > tuning.raw_above and not _clip_raw(tables, room, growth, sag):
        return False, widest
    if widest <= tuning.sums_below:
        _weigh_legs(tables, room, regularisation(tuning.regularisation, widest, tables.reach))
        if not _clip_preconditioned(tables, room, growth, sag):
            return False, widest
    return narrow(box, arcs), widest


@helper
def _widest_angle(arcs: Records) -> float:
    """Largest half-width of the rotations."""
    widest = 0.0
    for k in range(arcs.size):
        if not arcs[k].translation:
            widest = max(widest, arcs[k].half)
    return widest


@helper
def _clip_raw(tables: PlatformTables, room: PlatformRoom, growth: float, sag: float) -> bool:
    """Clip with the equations of the legs as they are; False if empty."""
    legs = tables.legs
    for i0 in range(0, legs.constant.size, LANES):
        lanes = min(LANES, legs.constant.size - i0)
        _bound_rows(room, legs.W, i0, lanes, legs.bounds)
        for q in range(lanes):
            slack = (
                room.sums.norms[q] * growth
                + legs.slack[i0 + q]
                + abs(room.sums.column[15, q]) * sag
            )
            if not _clip_all(room, q, legs.constant[i0 + q], slack):
                return False
    return True


@helper
def _weigh_legs(tables: PlatformTables, room: PlatformRoom, eps: float) -> None:
    """Preconditioner P of the legs, and Q = P W: its sums as rows of entries."""
    W = tables.legs.W
    J = room.linear.J
    P = room.linear.P
    Q = room.Q
    loop_slopes(tables.loops, room.products, room.slopes, room.entries)
    for k in range(J.shape[0]):
        for i in range(J.shape[1]):
            J[k, i] = dot(address(room.entries) + ROW * k, address(W) + ROW * i)
    precondition(room.linear, eps)
    for k in range(J.shape[0]):
        for r in range(ROWS):
            Q[k, r] = 0.0
            for i in range(J.shape[1]):
                Q[k, r] += P[k, i] * W[i, r]


@helper
def _clip_preconditioned(
    tables: PlatformTables, room: PlatformRoom, growth: float, sag: float
) -> bool:
    """Clip with the preconditioned sums of the legs; False if empty."""
    legs = tables.legs
    P = room.linear.P
    n = room.arcs.size
    for k0 in range(0, n, LANES):
        lanes = min(LANES, n - k0)
        _bound_rows(room, room.Q, k0, lanes, legs.bounds)
        for q in range(lanes):
            base = 0.0
            total = 0.0
            for i in range(legs.constant.size):
                base += P[k0 + q, i] * legs.constant[i]
                total += abs(P[k0 + q, i]) * (legs.summed * growth + legs.slack[i])
            # The weights are sums themselves: their rounding is the second part.
            slack = room.sums.norms[q] * growth + total
            slack += abs(room.sums.column[15, q]) * sag
            # Every variable, not only the row's own: the bounds are there.
            if not _clip_all(room, q, base, slack):
                return False
    return True


@helper
def _bound_rows(room: PlatformRoom, weights: Array, first: int, lanes: int, bounds: Array) -> None:
    """Extremes of up to four rows for every vertex of every variable, in the blocks."""
    half = room.products.halves[0, 1]
    rows = address(weights)
    zeros = rows + ROW * (weights.shape[0] - 1)
    set_weights(room.sums, rows + ROW * first, ROW, zeros, lanes, address(bounds))
    sum_rows(room.products, half, room.sums)
    fold_sums(room.products, half, room.sums)


@helper
def _clip_all(room: PlatformRoom, q: int, constant: float, slack: float) -> bool:
    """Clip every variable with lane q of the blocks; False if empty."""
    block_low = room.sums.block_low
    block_high = room.sums.block_high
    for k in range(room.arcs.size):
        arc = room.arcs[k]
        clips = False
        for i in range(arc.count):
            a = block_low[4 * k + i, q] + constant - slack
            b = block_high[4 * k + i, q] + constant + slack
            arc.low[i] = a
            arc.high[i] = b
            if a > 0.0 or b < 0.0:
                clips = True
        if clips and not intersect(arc):
            return False
    return True


_drive = make_driver(reduce_box, split)


@jit
def search(
    tables: PlatformTables, goal: Goal, stack: Stack, found: Box, progress: np.record
) -> None:
    """The Cuik algorithm on boxes of the platform's variables."""
    box = Box(np.empty(goal.sigma.size), np.empty(goal.sigma.size))
    _drive(tables, _make_room(tables), goal, stack, found, progress, box)
