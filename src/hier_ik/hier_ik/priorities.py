"""Exact task priorities for a component with several levels, in time linear in its blocks.

The closures of the first level fall into blocks that share no joint. With the orthogonal
factorisation J_b' P = Q_b [R; 0] of each block, the columns of Q_b beyond the rank span the null
space: lower levels move in these coordinates z alone, so they cannot disturb the first level. A
lower level touches many blocks but has few rows M = J Q; it is factored the same way, and so on.
The rest posture is projected on what the last level leaves free. No matrix over all joints is ever
formed.

A part (tables.PART) is a block of the first level or a lower level.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hier_ik.closures import closure_matrix
from hier_ik.kinematics import jit
from hier_ik.steps import (
    DAMPING_START,
    FLOOR,
    NOTHING,
    SHORT,
    TRIALS,
    apply_step,
    cholesky,
    cholesky_solve,
    component_kinematics,
    component_rows,
    damp_less,
    damp_more,
    follow_gain,
    largest_step,
    limit_step,
    restore,
    try_step,
)
from hier_ik.tables import Record, Records

__all__ = ["solve_priorities"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Pivots below this share of the first count as zero when a null space is taken.
RANK_TOLERANCE = 1e-9


@jit
def solve_priorities(
    bodies: Records, freedoms: Records, closures: Records, chain: Records, parts: Records,
    index: Ints, work: Array, component: Record,
) -> float:  # fmt: skip
    """One step of a component with several levels; returns the squared residual before it."""
    n = component.columns
    cost = 0.0
    for p in range(component.block_begin, component.level_end):
        _part_matrix(bodies, freedoms, closures, chain, work, component, parts[p])
        cost += parts[p].cost
    component.cost = cost
    component.step = 0.0
    if (cost < NOTHING and component.rest_gain <= 0.0) or n == 0:
        return cost
    for _ in range(TRIALS):
        for i in range(n):
            index[component.held + i] = 0
            work[component.dq + i] = 0.0
        for _again in range(n + 1):
            _all_levels(freedoms, parts, index, work, component)
            if limit_step(freedoms, index, work, component) == 0:
                break
        if _trial(bodies, freedoms, closures, parts, index, work, component):
            return cost
    return cost  # not at rest: the next iteration goes on with the damping reached here


@jit
def _part_matrix(
    bodies: Records, freedoms: Records, closures: Records, chain: Records, work: Array,
    component: Record, part: Record,
) -> None:  # fmt: skip
    """Rows and Jacobian of a part, and its squared residual."""
    size = part.rows * (part.column_end - part.column_begin)
    for i in range(part.matrix, part.matrix + size):
        work[i] = 0.0
    cost = 0.0
    for c in range(part.closure_begin, part.closure_end):
        closure = closures[c]
        cost += closure_matrix(bodies, freedoms, closure, chain, work, component.e + closure.row)
    part.cost = cost


# ---- orthogonal factors of a part ---------------------------------------------------------------


@jit
def _factor_rows(index: Ints, work: Array, component: Record, part: Record) -> int:
    """Factor the rows of a part (as columns of the transpose) by pivoted Householder; the rank.

    Row i then holds L[i, :i+1] (L[i, :rank] past the rank) and, behind the diagonal, the tail of
    reflector i; perm holds which row came to which place.
    """
    a, m, n, stride = part.begin, part.rows, part.span, part.column_end - part.column_begin
    norms, tau, perm = component.norms, component.tau + part.row, component.perm + part.row
    for i in range(m):
        index[perm + i] = i
        s = 0.0
        for w in range(a + i * stride, a + i * stride + n):
            s += work[w] * work[w]
        work[norms + i] = s
    top = 0.0
    for i in range(min(m, n)):
        p = i
        for j in range(i + 1, m):
            if work[norms + j] > work[norms + p]:
                p = j
        best = work[norms + p]
        if i == 0:
            top = best
        if best <= RANK_TOLERANCE * RANK_TOLERANCE * top or best < 1e-28:
            return i
        if p != i:
            for k in range(n):
                u, w = a + i * stride + k, a + p * stride + k
                work[u], work[w] = work[w], work[u]
            work[norms + p] = work[norms + i]
            index[perm + i], index[perm + p] = index[perm + p], index[perm + i]
        r = a + i * stride
        s = 0.0
        for k in range(i, n):
            s += work[r + k] * work[r + k]
        alpha = work[r + i]
        beta = -math.copysign(math.sqrt(s), alpha)
        t = (beta - alpha) / beta
        f = 1.0 / (alpha - beta)
        for k in range(i + 1, n):
            work[r + k] *= f
        work[r + i] = beta
        work[tau + i] = t
        for j in range(i + 1, m):
            if work[norms + j] == 0.0:
                continue
            w = a + j * stride
            s = work[w + i]
            for k in range(i + 1, n):
                s += work[r + k] * work[w + k]
            s *= t
            work[w + i] -= s
            left = 0.0
            for k in range(i + 1, n):
                work[w + k] -= s * work[r + k]
                left += work[w + k] * work[w + k]
            work[norms + j] = left
    return min(m, n)


@jit
def _reflect(work: Array, component: Record, part: Record, x: int, backwards: bool) -> None:
    """X <- Q' x, or backwards x <- Q x, with the reflectors of _factor_rows()."""
    a, n, rank, stride = part.begin, part.span, part.rank, part.column_end - part.column_begin
    tau = component.tau + part.row
    for step in range(rank):
        i = rank - 1 - step if backwards else step
        r = a + i * stride
        s = work[x + i]
        for k in range(i + 1, n):
            s += work[r + k] * work[x + k]
        s *= work[tau + i]
        work[x + i] -= s
        for k in range(i + 1, n):
            work[x + k] -= s * work[r + k]


@jit
def _damped(
    index: Ints, work: Array, component: Record, part: Record, rhs: int, cost: float, y: int,
    top: float,
) -> None:  # fmt: skip
    """Y = (L'L + mu)^-1 L' P rhs, the damped solution in the coordinates of the row space.

    mu is relative to the largest diagonal element, or to ``top`` if that is larger: rows of which
    higher levels have left next to nothing are damped by what they were, so that the step vanishes
    where a goal comes to rest.
    """
    a, m, rank, stride = part.begin, part.rows, part.rank, part.column_end - part.column_begin
    g, perm = component.g, component.perm + part.row
    for i in range(rank):
        for j in range(i + 1):
            s = 0.0
            for r in range(a + i * stride, a + m * stride, stride):
                s += work[r + i] * work[r + j]
            work[g + i * rank + j] = s
        top = max(top, work[g + i * rank + i])
        s = 0.0
        for r in range(i, m):
            s += work[a + r * stride + i] * work[rhs + index[perm + r]]
        work[y + i] = s
    relative = component.damping * min(cost, 1.0) + FLOOR
    for i in range(rank):
        work[g + i * rank + i] += relative * top
    cholesky(work, g, rank)
    cholesky_solve(work, g, rank, y)


# ---- level by level -----------------------------------------------------------------------------


@jit
def _all_levels(
    freedoms: Records, parts: Records, index: Ints, work: Array, component: Record
) -> None:
    """Fill dq of the coordinates that are not held, level by level."""
    dq, held = component.dq, component.held
    for i in range(component.columns):
        if index[held + i] == 0:
            work[dq + i] = 0.0
    top_cost = _first_cost(parts, component)
    width = 0  # of the space z that is free after the first level
    for b in range(component.block_begin, component.block_end):
        _solve_block(index, work, component, parts[b], top_cost)
        parts[b].free = width
        width += parts[b].span - parts[b].rank
    start = 0  # coordinates of z that higher levels have taken
    for l in range(component.level_begin, component.level_end):
        _solve_level(parts, index, work, component, l, start, width)
        start += parts[l].rank
    if component.rest_gain > 0.0:
        _towards_rest(freedoms, parts, index, work, component, start)


@jit
def _first_cost(parts: Records, component: Record) -> float:
    """The squared residual of the first level."""
    cost = 0.0
    for b in range(component.block_begin, component.block_end):
        cost += parts[b].cost
    return cost


@jit
def _solve_block(
    index: Ints, work: Array, component: Record, block: Record, top_cost: float
) -> None:
    """Factor a block of the first level, and add its damped step to dq."""
    begin, m = block.column_begin, block.rows
    nb = block.column_end - begin
    raw, fac, v = block.matrix, block.factor, component.v
    dq, held = component.dq, component.held
    for r in range(m):
        work[v + r] = -work[component.e + block.row + r]
    active = 0
    for i in range(nb):
        if index[held + begin + i] == 0:
            for r in range(m):
                work[fac + r * nb + active] = work[raw + r * nb + i]
            active += 1
        elif work[dq + begin + i] != 0.0:
            for r in range(m):
                work[v + r] -= work[raw + r * nb + i] * work[dq + begin + i]
    block.begin, block.span, block.rank = fac, active, 0
    if m > 0:
        block.rank = _factor_rows(index, work, component, block)
        _block_step(index, work, component, block, v, top_cost)
        _scatter(index, work, component, block, dq)


@jit
def _block_step(
    index: Ints, work: Array, component: Record, block: Record, rhs: int, top_cost: float
) -> None:
    """X = the damped step of a factored block for the right-hand side at work[rhs:]."""
    x = component.x
    for i in range(block.span):
        work[x + i] = 0.0
    _damped(index, work, component, block, rhs, top_cost, x, 0.0)
    _reflect(work, component, block, x, True)


@jit
def _solve_level(
    parts: Records, index: Ints, work: Array, component: Record, l: int, start: int, width: int
) -> None:
    """Factor what higher levels leave of a level's rows, and add its damped step to dq."""
    level = parts[l]
    n, m = component.columns, level.rows
    raw, fac, v, z = level.matrix, level.factor, component.v, component.z
    top = 0.0
    for r in range(m):
        s = work[component.e + level.row + r]
        t = 0.0
        for i in range(n):
            w = work[raw + r * n + i]
            s += w * work[component.dq + i]
            t += w * w
        top = max(top, t)
        work[v + r] = -s
        _to_free(parts, index, work, component, raw + r * n, fac + r * n)
        _past_levels(parts, work, component, l, fac + r * n)
    level.begin, level.span, level.free = fac + start, width - start, start
    level.rank = _factor_rows(index, work, component, level)
    for i in range(width):
        work[z + i] = 0.0
    _damped(index, work, component, level, v, level.cost, z + start, top)
    _reflect(work, component, level, z + start, True)
    _back(parts, index, work, component, l)


@jit
def _towards_rest(
    freedoms: Records, parts: Records, index: Ints, work: Array, component: Record, start: int
) -> None:
    """Add to dq what all levels leave of the way to the rest posture."""
    y, z, first = component.y, component.z, component.freedom_begin
    for i in range(component.columns):
        freedom = freedoms[index[first + i]]
        work[y + i] = 0.0
        if freedom.rests == 1 and index[component.held + i] == 0:
            work[y + i] = component.rest_gain * (freedom.rest - freedom.q)
    last = component.level_end
    _to_free(parts, index, work, component, y, z)
    _past_levels(parts, work, component, last, z)
    for i in range(start):
        work[z + i] = 0.0
    _back(parts, index, work, component, last)


@jit
def _scatter(index: Ints, work: Array, component: Record, block: Record, out: int) -> None:
    """Add x, one entry per coordinate that is not held, to work[out:] of a block."""
    x = component.x
    j = 0
    for i in range(block.column_begin, block.column_end):
        if index[component.held + i] == 0:
            work[out + i] += work[x + j]
            j += 1


@jit
def _to_free(parts: Records, index: Ints, work: Array, component: Record, x: int, z: int) -> None:
    """Z = the part of a row (or gradient) x that the first level leaves free."""
    t, held = component.x, component.held
    for b in range(component.block_begin, component.block_end):
        block = parts[b]
        active = 0
        zero = True
        for i in range(block.column_begin, block.column_end):
            if index[held + i] == 0:
                work[t + active] = work[x + i]
                zero = zero and work[x + i] == 0.0
                active += 1
        if not zero:
            _reflect(work, component, block, t, False)
        to = z + block.free - block.rank
        for i in range(block.rank, active):
            work[to + i] = work[t + i]


@jit
def _past_levels(parts: Records, work: Array, component: Record, last: int, z: int) -> None:
    """Turn z into the coordinates of the levels before ``last``."""
    for l in range(component.level_begin, last):
        _reflect(work, component, parts[l], z + parts[l].free, False)


@jit
def _back(parts: Records, index: Ints, work: Array, component: Record, last: int) -> None:
    """Dq += the motion z, back through the levels before ``last`` and the blocks."""
    z, x = component.z, component.x
    for step in range(last - component.level_begin):
        level = parts[last - 1 - step]
        _reflect(work, component, level, z + level.free, True)
    for b in range(component.block_begin, component.block_end):
        block = parts[b]
        rank, to = block.rank, z + block.free - block.rank
        if block.span == rank:
            continue
        for i in range(block.span):
            work[x + i] = work[to + i] if i >= rank else 0.0
        _reflect(work, component, block, x, True)
        _scatter(index, work, component, block, component.dq)


# ---- taking the step ----------------------------------------------------------------------------


@jit
def _merit(parts: Records, work: Array, component: Record, rows: int) -> float:
    """Sum of the norms of the levels, each ten times as heavy as the next."""
    s = 0.0
    row = rows
    for b in range(component.block_begin, component.block_end):
        for _ in range(parts[b].rows):
            s += work[row] * work[row]
            row += 1
    weight = 1.0
    total = math.sqrt(s)
    for l in range(component.level_begin, component.level_end):
        weight *= 0.1
        s = 0.0
        for _ in range(parts[l].rows):
            s += work[row] * work[row]
            row += 1
        total += weight * math.sqrt(s)
    return total


@jit
def _predict(parts: Records, work: Array, component: Record, out: int) -> None:
    """Rows that the linear model expects after the step, e + J dq."""
    for p in range(component.block_begin, component.level_end):
        part = parts[p]
        width, dq = part.column_end - part.column_begin, component.dq + part.column_begin
        for r in range(part.rows):
            s = work[component.e + part.row + r]
            for i in range(width):
                s += work[part.matrix + r * width + i] * work[dq + i]
            work[out + part.row + r] = s


@jit
def _correct(parts: Records, index: Ints, work: Array, component: Record, rows: int) -> None:
    """Y = the step that undoes what curvature did to the first level, with the old factors.

    The rows after the step stand at work[rows:]; the right-hand sides go behind them.
    """
    y = component.y
    rhs = rows + component.rows
    for i in range(component.columns):
        work[y + i] = 0.0
    top_cost = _first_cost(parts, component)
    for b in range(component.block_begin, component.block_end):
        block = parts[b]
        if block.rank == 0:
            continue
        for r in range(block.rows):
            work[rhs + r] = -work[rows + block.row + r]
        _block_step(index, work, component, block, rhs, top_cost)
        _scatter(index, work, component, block, y)


@jit
def _trial(
    bodies: Records, freedoms: Records, closures: Records, parts: Records, index: Ints,
    work: Array, component: Record,
) -> bool:  # fmt: skip
    """Take dq if the merit falls; after a long step the first level is corrected once more."""
    v, y = component.v, component.y
    largest = largest_step(freedoms, index, work, component, component.dq)
    component.step = largest
    merit = _merit(parts, work, component, component.e)
    _predict(parts, work, component, v)
    predicted = _merit(parts, work, component, v)
    promised = merit - predicted
    rests = component.rest_gain > 0.0
    unseen = largest < 0.3 and predicted < 0.3 * merit and component.damping <= DAMPING_START
    uphill = promised < -1e-11 * merit and largest > SHORT and not rests
    if unseen or (promised <= 1e-11 * merit and not uphill):
        apply_step(freedoms, index, work, component, component.dq)
        if unseen:
            damp_less(component)
        return True
    if uphill:  # what is left of a step after limits cut it may lead uphill
        damp_more(component, merit * merit)
        return False
    try_step(bodies, freedoms, closures, index, work, component)
    _correct(parts, index, work, component, v)
    if largest_step(freedoms, index, work, component, y) < 0.5 * largest:
        apply_step(freedoms, index, work, component, y)
        component_kinematics(bodies, freedoms, index, component)
        component_rows(bodies, closures, work, component, v)
    new = _merit(parts, work, component, v)
    if new < merit:
        follow_gain(component, (merit - new) / promised)
        return True
    restore(bodies, freedoms, index, work, component)
    damp_more(component, merit * merit)
    return False
