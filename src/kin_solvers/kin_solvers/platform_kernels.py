"""Reduce_Box and the search for platforms on legs of fixed length, compiled.

The pose of the platform is a product M of a few motions. Leg i asks that the point p_i of the
platform keeps its distance from the point b_i of the base: |M p_i - b_i|^2 is linear in the 16
conformal entries of M, which are multi-affine. So all legs share the vertex products of one chain,
and sums of their equations are bounded as one function.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kin_solvers.fast_kernels import (
    LANES,
    MOST_PIECES,
    ROWS,
    Y,
    Z,
    back_to_angle,
    bend,
    enclose,
    fold_side,
    helper,
    intersect,
    jacobian,
    jit,
    split,
    vertex_matrix,
    vertex_products,
)
from kin_solvers.lanes import ROW, VECTOR, address, columns, dot, four_dots
from kin_solvers.planar_kernels import precondition
from kin_solvers.system import WIDE_NORM

_INF = math.inf


@helper
def widest_angle(half: Any, translation: Any) -> Any:
    """Largest half-width of the rotations."""
    widest = 0.0
    for k in range(half.size):
        if not translation[k]:
            widest = max(widest, half[k])
    return widest


@helper
def _bound_rows(
    weights: Any,
    first: Any,
    lanes: Any,
    sides: Any,
    size: Any,
    counts: Any,
    column: Any,
    bounds: Any,
    norms: Any,
    value: Any,
    low: Any,
    high: Any,
    block_low: Any,
    block_high: Any,
) -> Any:
    """Extremes of up to four rows for every vertex of every variable, in the blocks."""
    a = address(weights) + ROW * first
    last = address(weights) + ROW * (weights.shape[0] - 1)  # a row of zeros
    columns(
        address(column),
        a,
        a + ROW if lanes > 1 else last,
        a + 2 * ROW if lanes > 2 else last,
        a + 3 * ROW if lanes > 3 else last,
        address(bounds),
        address(norms),
    )
    for j in range(size):
        four_dots(address(value) + VECTOR * j, address(sides) + ROW * j, address(column))
    fold_side(
        address(value),
        1,
        counts,
        0,
        counts.size,
        size,
        address(low),
        address(high),
        address(block_low),
        address(block_high),
    )


@helper
def _clip_row(
    k: Any,
    q: Any,
    constant: Any,
    slack: Any,
    count: Any,
    hull: Any,
    half: Any,
    block_low: Any,
    block_high: Any,
    row_low: Any,
    row_high: Any,
    clip: Any,
) -> Any:
    """Clip variable k with lane q of the blocks; False if empty."""
    clips = False
    for i in range(count[k]):
        a = block_low[4 * k + i, q] + constant - slack
        b = block_high[4 * k + i, q] + constant + slack
        row_low[0, i] = a
        row_high[0, i] = b
        if a > 0.0 or b < 0.0:
            clips = True
    return not clips or intersect(k, count[k], half[k], hull, row_low, row_high, 0, clip)


@jit
def search(
    T: Any,
    stack_lower: Any,
    stack_upper: Any,
    weight: Any,
    queued: Any,
    sigma: Any,
    rho: Any,
    limit: Any,
    tuning: Any,
    flag: Any,
    found_lower: Any,
    found_upper: Any,
    counters: Any,
) -> Any:
    """The Cuik algorithm on boxes of the platform's variables; see ``fast_kernels.search``."""
    (translation, cyclic, C, W, constant, bounds, leg_slack, summed, reach) = T
    n = sigma.size
    legs = constant.size
    width = 4**n
    offsets = np.array([0, n])
    owner = np.arange(n)
    point = np.zeros(1, np.bool_)
    cut = np.zeros(1, np.int64)
    count = np.zeros(n, np.int64)
    hull = np.zeros((n, 4, 4))
    middle = np.zeros(n)
    half = np.zeros(n)
    G = np.zeros((4 * n, ROWS))
    sides = np.empty((width, ROWS))
    spare = np.empty((width, ROWS))
    mean = np.zeros((n + 1, ROWS))
    after = np.zeros((n + 1, ROWS))
    X = np.zeros((2, ROWS))
    slopes = np.zeros((n, ROWS))
    J = np.zeros((n, legs))
    P = np.zeros((n, legs))
    N = np.zeros((n, n))
    B = np.zeros((n + 1, n))
    Q = np.zeros((n + 1, ROWS))
    column = np.zeros((ROWS, LANES))
    norms = np.zeros(LANES)
    value = np.empty((width, LANES))
    low = np.empty((width, LANES))
    high = np.empty((width, LANES))
    block_low = np.zeros((4 * n, LANES))
    block_high = np.zeros((4 * n, LANES))
    row_low = np.zeros((1, 4))
    row_high = np.zeros((1, 4))
    clip = np.zeros((n, 4))
    lower = np.empty(n)
    upper = np.empty(n)
    found = 0
    done = 0
    while queued > 0 and done < limit and flag[0] == 0:
        if found == found_lower.shape[0] or queued + MOST_PIECES > stack_lower.shape[0] + 1:
            break
        queued -= 1
        done += 1
        share = weight[queued]
        for k in range(n):
            lower[k] = stack_lower[queued, k]
            upper[k] = stack_upper[queued, k]
        alive = True
        small = False
        while True:
            before = 1.0
            longest_before = 0.0
            for k in range(n):
                before *= max(upper[k] - lower[k], 1e-20)
                longest_before = max(longest_before, (upper[k] - lower[k]) / sigma[k])
            counters[1] += 1
            widest, wide = enclose(lower, upper, translation, count, hull, middle, half)
            for k in range(n):
                clip[k, 0] = -_INF
                clip[k, 1] = _INF
                clip[k, 2] = -_INF
                clip[k, 3] = _INF
                for i in range(count[k]):
                    vertex_matrix(
                        C, k, translation[k], hull[k, Y, i], hull[k, Z, i], False, G, 4 * k + i
                    )
            size = vertex_products(sides, 0, spare, G, 0, n, count)
            # Norm of a vertex: of the square's corner, or of the point where the tangents meet.
            norm = WIDE_NORM if wide else 1.0 / math.cos(widest_angle(half, translation))
            growth = norm**n
            sag = bend(0, n, owner, translation, half)
            if widest > tuning[0]:
                for i0 in range(0, legs, LANES):
                    lanes = min(LANES, legs - i0)
                    _bound_rows(
                        W, i0, lanes, sides, size, count, column, bounds, norms, value, low,
                        high, block_low, block_high,
                    )  # fmt: skip
                    for q in range(lanes):
                        slack = norms[q] * growth + leg_slack[i0 + q] + abs(column[15, q]) * sag
                        for k in range(n):
                            alive = alive and _clip_row(
                                k, q, constant[i0 + q], slack, count, hull, half, block_low,
                                block_high, row_low, row_high, clip,
                            )  # fmt: skip
                    if not alive:
                        break
            if alive and widest <= tuning[1]:
                jacobian(offsets, point, cut, G, count, owner, X, mean, after, slopes)
                for k in range(n):
                    for i in range(legs):
                        J[k, i] = dot(address(slopes) + ROW * k, address(W) + ROW * i)
                eps = tuning[2] * widest * widest * widest * widest * (1.0 + reach * reach)
                precondition(J, N, B, P, eps)
                for k in range(n):
                    for r in range(ROWS):
                        Q[k, r] = 0.0
                        for i in range(legs):
                            Q[k, r] += P[k, i] * W[i, r]
                for k0 in range(0, n, LANES):
                    lanes = min(LANES, n - k0)
                    _bound_rows(
                        Q, k0, lanes, sides, size, count, column, bounds, norms, value, low,
                        high, block_low, block_high,
                    )  # fmt: skip
                    for q in range(lanes):
                        base = 0.0
                        total = 0.0
                        for i in range(legs):
                            base += P[k0 + q, i] * constant[i]
                            total += abs(P[k0 + q, i]) * (summed * growth + leg_slack[i])
                        # The weights are sums themselves: their rounding is the second part.
                        slack = norms[q] * growth + total
                        slack += abs(column[15, q]) * sag
                        # Every variable, not only the row's own: the bounds are there.
                        for k in range(n):
                            alive = alive and _clip_row(
                                k, q, base, slack, count, hull, half, block_low, block_high,
                                row_low, row_high, clip,
                            )  # fmt: skip
                    if not alive:
                        break
            if not alive:
                break
            longest_after = 0.0
            volume = 1.0
            for k in range(n):
                a, b = back_to_angle(
                    k, translation[k], cyclic[k], count[k], middle[k], half[k], hull, clip,
                    lower[k], upper[k],
                )  # fmt: skip
                if a > b:
                    alive = False
                    break
                lower[k] = a
                upper[k] = b
                volume *= max(b - a, 1e-20)
                longest_after = max(longest_after, (b - a) / sigma[k])
            small = longest_after <= 1.0
            if not alive or small or volume > rho * before or flag[0] != 0:
                break
            if widest < tuning[4] and longest_after > tuning[3] * longest_before:
                break
        counters[0] += 1
        if not alive:
            counters[3] += 1
            counters[4] += share
        elif small:
            counters[2] += 1
            counters[4] += share
            for k in range(n):
                found_lower[found, k] = lower[k]
                found_upper[found, k] = upper[k]
            found += 1
        else:
            queued = split(stack_lower, stack_upper, weight, queued, lower, upper, sigma, share)
        counters[5] = queued
    return queued, found
