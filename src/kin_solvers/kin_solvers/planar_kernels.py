"""Reduce_Box and the search for planar mechanisms in absolute link angles, compiled.

With the absolute angle phi_j of every link, a planar loop is a sum of vectors: its two rows are
sums of terms a cos(phi) + b sin(phi), each perhaps times one travel. Sums are bounded term by term:
no products of vertices at all.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kin_solvers.fast_kernels import (
    MOST_PIECES,
    Y,
    Z,
    back_to_angle,
    enclose,
    factor,
    find_parameter,
    helper,
    intersect,
    jit,
    split,
)

_INF = math.inf


@helper
def _term_bounds(
    g: Any,
    k: Any,
    angle: Any,
    travel: Any,
    a: Any,
    b: Any,
    count: Any,
    hull: Any,
    low: Any,
    high: Any,
) -> Any:
    """Add the bounds of term g = (a cos + b sin) travel for every vertex of variable k."""
    j = angle[g]
    d = travel[g]
    ends = 1 if d < 0 else 2
    vertices = 1 if j < 0 else count[j]
    least = _INF
    most = -_INF
    for e in range(ends):
        if d == k:
            least = _INF
            most = -_INF
        t = 1.0 if d < 0 else hull[d, Y, e]
        for i in range(vertices):
            v = a if j < 0 else a * hull[j, Y, i] + b * hull[j, Z, i]
            x = v * t
            if j == k and e == 0:
                y = x if d < 0 else v * hull[d, Y, 1]
                low[0, i] += min(x, y)
                high[0, i] += max(x, y)
            least = min(least, x)
            most = max(most, x)
        if d == k:
            low[0, e] += least
            high[0, e] += most
    if j != k and d != k:
        for i in range(count[k]):
            low[0, i] += least
            high[0, i] += most


@helper
def _clip_with(
    k: Any,
    weights: Any,
    row: Any,
    first: Any,
    last: Any,
    angle: Any,
    travel: Any,
    M: Any,
    constant: Any,
    delta: Any,
    count: Any,
    hull: Any,
    half: Any,
    low: Any,
    high: Any,
    clip: Any,
) -> Any:
    """Clip variable k with rows ``first`` to ``last`` weighted by one row; False if empty."""
    base = 0.0
    slack = 0.0
    for r in range(first, last):
        base += weights[row, r] * constant[r]
        slack += abs(weights[row, r]) * delta[r]
    for i in range(count[k]):
        low[0, i] = base - slack
        high[0, i] = base + slack
    for g in range(angle.size):
        a = 0.0
        b = 0.0
        for r in range(first, last):
            a += weights[row, r] * M[g, r, 0]
            b += weights[row, r] * M[g, r, 1]
        if a != 0.0 or b != 0.0:
            _term_bounds(g, k, angle, travel, a, b, count, hull, low, high)
    return intersect(k, count[k], half[k], hull, low, high, 0, clip)


@helper
def _slopes(
    angle: Any, travel: Any, M: Any, translation: Any, count: Any, hull: Any, J: Any
) -> Any:
    """J[k] = half the difference of the rows between the last and first vertex of k."""
    J[:, :] = 0.0
    for g in range(angle.size):
        j = angle[g]
        d = travel[g]
        n = count[j] - 1 if j >= 0 else 0
        t = 1.0 if d < 0 else 0.5 * (hull[d, Y, 0] + hull[d, Y, 1])
        for r in range(J.shape[1]):
            a = M[g, r, 0]
            b = M[g, r, 1]
            if a == 0.0 and b == 0.0:
                continue
            if j >= 0:
                y = hull[j, Y, n] - hull[j, Y, 0]
                z = hull[j, Z, n] - hull[j, Z, 0]
                J[j, r] += 0.5 * (a * y + b * z) * t
            if d >= 0:
                mean = a
                if j >= 0:
                    mean = 0.5 * (
                        a * (hull[j, Y, 0] + hull[j, Y, n]) + b * (hull[j, Z, 0] + hull[j, Z, n])
                    )
                J[d, r] += 0.5 * mean * (hull[d, Y, 1] - hull[d, Y, 0])


@helper
def precondition(J: Any, N: Any, B: Any, P: Any, eps: Any) -> Any:
    """P as in the general method: ``fast_kernels._precondition``."""
    V, R = J.shape
    for i in range(V):
        for j in range(i + 1):
            s = 0.0
            for r in range(R):
                s += J[i, r] * J[j, r]
            N[i, j] = s
    eps = factor(N, V, eps)
    for i in range(V):
        for r in range(R):
            s = J[i, r]
            for m in range(i):
                s -= N[i, m] * P[m, r]
            P[i, r] = s * N[i, i]
    for i in range(V - 1, -1, -1):
        for r in range(R):
            s = P[i, r]
            for m in range(i + 1, V):
                s -= N[m, i] * P[m, r]
            P[i, r] = s * N[i, i]
    j = find_parameter(N, B, V, eps)
    if j >= 0:
        for k in range(V):
            if k != j:
                for r in range(R):
                    P[k, r] -= B[V, k] * P[j, r]


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
    """The Cuik algorithm on boxes of absolute angles and travels; see ``fast_kernels.search``."""
    (translation, cyclic, angle, travel, M, constant, delta, reach) = T
    n_variables = sigma.size
    rows = constant.size
    count = np.zeros(n_variables, np.int64)
    hull = np.zeros((n_variables, 4, 4))
    middle = np.zeros(n_variables)
    half = np.zeros(n_variables)
    J = np.zeros((n_variables, rows))
    P = np.zeros((n_variables, rows))
    N = np.zeros((n_variables, n_variables))
    B = np.zeros((n_variables + 1, n_variables))
    unit = np.ones((1, rows))
    uses = np.zeros((n_variables, rows), np.bool_)
    for g in range(angle.size):
        for r in range(rows):
            if M[g, r, 0] != 0.0 or M[g, r, 1] != 0.0:
                if angle[g] >= 0:
                    uses[angle[g], r] = True
                if travel[g] >= 0:
                    uses[travel[g], r] = True
    low = np.zeros((1, 4))
    high = np.zeros((1, 4))
    clip = np.zeros((n_variables, 4))
    lower = np.empty(n_variables)
    upper = np.empty(n_variables)
    found = 0
    done = 0
    while queued > 0 and done < limit and flag[0] == 0:
        if found == found_lower.shape[0] or queued + MOST_PIECES > stack_lower.shape[0] + 1:
            break
        queued -= 1
        done += 1
        share = weight[queued]
        for k in range(n_variables):
            lower[k] = stack_lower[queued, k]
            upper[k] = stack_upper[queued, k]
        alive = True
        small = False
        while True:
            before = 1.0  # size(B): the volume
            longest_before = 0.0
            for k in range(n_variables):
                before *= max(upper[k] - lower[k], 1e-20)
                longest_before = max(longest_before, (upper[k] - lower[k]) / sigma[k])
            counters[1] += 1
            widest, _ = enclose(lower, upper, translation, count, hull, middle, half)
            for k in range(n_variables):
                clip[k, 0] = -_INF
                clip[k, 1] = _INF
                clip[k, 2] = -_INF
                clip[k, 3] = _INF
            if widest > tuning[0]:
                for r in range(rows):
                    for k in range(n_variables):
                        if alive and uses[k, r]:
                            alive = _clip_with(
                                k, unit, 0, r, r + 1, angle, travel, M, constant, delta, count,
                                hull, half, low, high, clip,
                            )  # fmt: skip
            if alive and widest <= tuning[1]:
                _slopes(angle, travel, M, translation, count, hull, J)
                eps = tuning[2] * widest * widest * widest * widest * (1.0 + reach * reach)
                precondition(J, N, B, P, eps)
                for k in range(n_variables):
                    if alive:
                        alive = _clip_with(
                            k, P, k, 0, rows, angle, travel, M, constant, delta, count, hull, half,
                            low, high, clip,
                        )  # fmt: skip
            if not alive:
                break
            longest_after = 0.0
            volume = 1.0
            for k in range(n_variables):
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
                break  # the longest side is stuck: a curve, which only splitting makes shorter
        counters[0] += 1
        if not alive:
            counters[3] += 1
            counters[4] += share
        elif small:
            counters[2] += 1
            counters[4] += share
            for k in range(n_variables):
                found_lower[found, k] = lower[k]
                found_upper[found, k] = upper[k]
            found += 1
        else:
            queued = split(stack_lower, stack_upper, weight, queued, lower, upper, sigma, share)
        counters[5] = queued
    return queued, found
