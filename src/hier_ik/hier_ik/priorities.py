"""Exact task priorities for a component with several levels, in time linear in its blocks.

The closures of the first level fall into blocks that share no joint. With the orthogonal
factorisation J_b' P = Q_b [R; 0] of each block, the columns of Q_b beyond the rank span the null
space: lower levels move in these coordinates z alone, so they cannot disturb the first level. A
lower level touches many blocks but has few rows M = J Q; it is factored the same way, and so on.
The rest posture is projected on what the last level leaves free. No matrix over all joints is ever
formed.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hier_ik import layout as at
from hier_ik.kernels import (
    FLOOR,
    LAMBDA_MAX,
    LAMBDA_MIN,
    LAMBDA_START,
    NOTHING,
    SHORT,
    ZERO,
    _jit,
    apply_step,
    assemble,
    cholesky,
    cholesky_solve,
    component_kinematics,
    component_rows,
    limit_step,
)

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Pivots below this share of the first count as zero when a null space is taken.
RANK_TOLERANCE = 1e-9


@_jit
def factor_rows(I: Ints, X: Array, a: int, m: int, n: int, stride: int, tau: int, perm: int) -> int:
    """Factor the rows at X[a:] (as columns of the transpose) by pivoted Householder; the rank.

    Row i then holds L[i, :i+1] (L[i, :rank] past the rank) and, behind the diagonal, the tail of
    reflector i; I[perm:] holds which row came to which place.
    """
    norms = I[at.NORMS]
    for i in range(m):
        I[perm + i] = i
        s = 0.0
        for w in range(a + i * stride, a + i * stride + n):
            s += X[w] * X[w]
        X[norms + i] = s
    top = 0.0
    for i in range(min(m, n)):
        p = i
        for j in range(i + 1, m):
            if X[norms + j] > X[norms + p]:
                p = j
        best = X[norms + p]
        if i == 0:
            top = best
        if best <= RANK_TOLERANCE * RANK_TOLERANCE * top or best < 1e-28:
            return i
        if p != i:
            for k in range(n):
                u, w = a + i * stride + k, a + p * stride + k
                X[u], X[w] = X[w], X[u]
            X[norms + p] = X[norms + i]
            I[perm + i], I[perm + p] = I[perm + p], I[perm + i]
        r = a + i * stride
        s = 0.0
        for k in range(i, n):
            s += X[r + k] * X[r + k]
        alpha = X[r + i]
        beta = -math.copysign(math.sqrt(s), alpha)
        t = (beta - alpha) / beta
        f = 1.0 / (alpha - beta)
        for k in range(i + 1, n):
            X[r + k] *= f
        X[r + i] = beta
        X[tau + i] = t
        for j in range(i + 1, m):
            if X[norms + j] == 0.0:
                continue
            w = a + j * stride
            s = X[w + i]
            for k in range(i + 1, n):
                s += X[r + k] * X[w + k]
            s *= t
            X[w + i] -= s
            left = 0.0
            for k in range(i + 1, n):
                X[w + k] -= s * X[r + k]
                left += X[w + k] * X[w + k]
            X[norms + j] = left
    return min(m, n)


@_jit
def reflect(
    X: Array, a: int, rank: int, n: int, stride: int, tau: int, x: int, backwards: bool
) -> None:
    """X <- Q' x, or backwards x <- Q x, with the reflectors of factor_rows()."""
    for step in range(rank):
        i = rank - 1 - step if backwards else step
        r = a + i * stride
        s = X[x + i]
        for k in range(i + 1, n):
            s += X[r + k] * X[x + k]
        s *= X[tau + i]
        X[x + i] -= s
        for k in range(i + 1, n):
            X[x + k] -= s * X[r + k]


@_jit
def damped(
    I: Ints, X: Array, a: int, m: int, rank: int, stride: int, perm: int, rhs: int,
    relative: float, y: int, top: float,
) -> None:  # fmt: skip
    """Y = (L'L + mu)^-1 L' P rhs, the damped solution in the coordinates of the row space.

    mu is ``relative`` times the largest diagonal element, or times ``top`` if that is larger: rows
    of which higher levels have left next to nothing are damped by what they were, so that the
    step vanishes where a goal comes to rest.
    """
    g = I[at.G]
    for i in range(rank):
        for j in range(i + 1):
            s = 0.0
            for r in range(a + i * stride, a + m * stride, stride):
                s += X[r + i] * X[r + j]
            X[g + i * rank + j] = s
        top = max(top, X[g + i * rank + i])
        s = 0.0
        for r in range(i, m):
            s += X[a + r * stride + i] * X[rhs + I[perm + r]]
        X[y + i] = s
    for i in range(rank):
        X[g + i * rank + i] += relative * top
    cholesky(X, g, rank)
    cholesky_solve(X, g, rank, y)


@_jit
def solve_priorities(I: Ints, X: Array, k: int, rest_gain: float) -> float:
    """One step of a component with several levels; returns the squared residual before it."""
    comp = I[at.COMPS] + at.COMP_WIDTH * k
    n = I[comp + at.COLUMNS]
    dofs = I[at.COMP_DOFS] + I[comp + at.DOF_BEGIN]
    work, e, dq, held = I[at.W], I[at.E], I[at.DQ], I[at.HELD]
    top_cost = 0.0
    for b in range(I[comp + at.BLOCK_BEGIN], I[comp + at.BLOCK_END]):
        block = I[at.BLOCKS] + at.BLOCK_WIDTH * b
        top_cost += _matrix(
            I, X, I[block + at.B_CLOSURE_BEGIN], I[block + at.B_CLOSURE_END],
            e + I[block + at.B_ROW], work + I[block + at.B_MATRIX],
            I[block + at.B_END] - I[block + at.B_BEGIN], I[block + at.B_BEGIN],
            I[block + at.B_ROWS],
        )  # fmt: skip
    cost = top_cost
    for l in range(I[comp + at.LEVEL_BEGIN], I[comp + at.LEVEL_END]):
        level = I[at.LEVELS] + at.LEVEL_WIDTH * l
        level_cost = _matrix(
            I, X, I[level + at.L_CLOSURE_BEGIN], I[level + at.L_CLOSURE_END],
            e + I[level + at.L_ROW], work + I[level + at.L_MATRIX], n, ZERO, I[level + at.L_ROWS],
        )  # fmt: skip
        X[I[at.LEVEL_COST] + l] = level_cost
        cost += level_cost
    X[I[at.COST] + k] = cost
    X[I[at.STEP] + k] = 0.0
    rests = I[comp + at.HAS_REST] == 1 and rest_gain > 0.0
    if (cost < NOTHING and not rests) or n == 0:
        return cost
    for _ in range(8):
        for i in range(n):
            I[held + i] = 0
            X[dq + i] = 0.0
        for _again in range(n + 1):
            _all_levels(I, X, k, top_cost, rest_gain if rests else 0.0)
            if limit_step(I, X, n, dofs) == 0:
                break
        if _trial_levels(I, X, k, top_cost, rests):
            return cost
    return cost  # not at rest: the next iteration goes on with the damping reached here


@_jit
def _matrix(
    I: Ints, X: Array, begin: int, end: int, e: int, J: int, width: int, first: int, rows: int
) -> float:
    """Rows and Jacobian of the closures begin to end of COMP_CLOSURES; the squared sum."""
    for i in range(J, J + rows * width):
        X[i] = 0.0
    cost = 0.0
    row = 0
    for i in range(begin, end):
        c = I[I[at.COMP_CLOSURES] + i]
        cost += assemble(I, X, c, e + row, True, J + row * width, width, first)
        row += I[I[at.CLOSURES] + 8 * c + 4]
    return cost


@_jit
def _all_levels(I: Ints, X: Array, k: int, top_cost: float, rest_gain: float) -> None:
    """Fill DQ of the coordinates that are not held, level by level."""
    comp = I[at.COMPS] + at.COMP_WIDTH * k
    n = I[comp + at.COLUMNS]
    work, e, v, x = I[at.W], I[at.E], I[at.V], I[at.WX]
    dq, held, rank, free = I[at.DQ], I[at.HELD], I[at.RANK], I[at.FREE]
    tau, perm = I[at.TAU], I[at.PERM]
    lam = X[I[at.LAM] + k]
    for i in range(n):
        if I[held + i] == 0:
            X[dq + i] = 0.0
    width = ZERO  # of the space z that is free after the first level
    for b in range(I[comp + at.BLOCK_BEGIN], I[comp + at.BLOCK_END]):
        block = I[at.BLOCKS] + at.BLOCK_WIDTH * b
        begin, m = I[block + at.B_BEGIN], I[block + at.B_ROWS]
        nb = I[block + at.B_END] - begin
        raw, fac = work + I[block + at.B_MATRIX], work + I[block + at.B_FACTOR]
        row = I[block + at.B_ROW]
        for r in range(m):
            X[v + r] = -X[e + row + r]
        active = ZERO
        for i in range(nb):
            if I[held + begin + i] == 0:
                for r in range(m):
                    X[fac + r * nb + active] = X[raw + r * nb + i]
                active += 1
            elif X[dq + begin + i] != 0.0:
                for r in range(m):
                    X[v + r] -= X[raw + r * nb + i] * X[dq + begin + i]
        I[rank + b] = 0
        if m > 0:
            I[rank + b] = factor_rows(I, X, fac, m, active, nb, tau + row, perm + row)
            for i in range(active):
                X[x + i] = 0.0
            relative = lam * min(top_cost, 1.0) + FLOOR
            damped(I, X, fac, m, I[rank + b], nb, perm + row, v, relative, x, 0.0)
            reflect(X, fac, I[rank + b], active, nb, tau + row, x, True)
            _scatter(I, X, begin, nb, x, dq)
        I[free + b] = width
        width += active - I[rank + b]
    start = 0  # coordinates of z that higher levels have taken
    z = I[at.WZ]
    for l in range(I[comp + at.LEVEL_BEGIN], I[comp + at.LEVEL_END]):
        level = I[at.LEVELS] + at.LEVEL_WIDTH * l
        m, row = I[level + at.L_ROWS], I[level + at.L_ROW]
        raw, fac = work + I[level + at.L_MATRIX], work + I[level + at.L_FACTOR]
        top = 0.0
        for r in range(m):
            s = X[e + row + r]
            t = 0.0
            for i in range(n):
                w = X[raw + r * n + i]
                s += w * X[dq + i]
                t += w * w
            top = max(top, t)
            X[v + r] = -s
            _to_free(I, X, comp, raw + r * n, fac + r * n)
            _past_levels(I, X, comp, l, fac + r * n, width)
        taken = factor_rows(I, X, fac + start, m, width - start, n, tau + row, perm + row)
        for i in range(width):
            X[z + i] = 0.0
        relative = lam * min(X[I[at.LEVEL_COST] + l], 1.0) + FLOOR
        damped(I, X, fac + start, m, taken, n, perm + row, v, relative, z + start, top)
        reflect(X, fac + start, taken, width - start, n, tau + row, z + start, True)
        I[I[at.LEVEL_START] + l], I[I[at.LEVEL_RANK] + l] = start, taken
        _back(I, X, comp, l, width)
        start += taken
    if rest_gain > 0.0:
        dofs, y = I[at.COMP_DOFS] + I[comp + at.DOF_BEGIN], I[at.WY]
        for i in range(n):
            d = I[dofs + i]
            X[y + i] = 0.0
            if I[I[at.DOFS] + 4 * d + 3] == 1 and I[held + i] == 0:
                X[y + i] = rest_gain * (X[I[at.REST] + d] - X[I[at.Q] + d])
        last = I[comp + at.LEVEL_END]
        _to_free(I, X, comp, y, z)
        _past_levels(I, X, comp, last, z, width)
        for i in range(start):
            X[z + i] = 0.0
        _back(I, X, comp, last, width)


@_jit
def _scatter(I: Ints, X: Array, begin: int, nb: int, x: int, out: int) -> None:
    """Add X[x:], one entry per coordinate that is not held, to X[out:] of a block."""
    held = I[at.HELD]
    j = 0
    for i in range(begin, begin + nb):
        if I[held + i] == 0:
            X[out + i] += X[x + j]
            j += 1


@_jit
def _to_free(I: Ints, X: Array, comp: int, x: int, z: int) -> None:
    """Z = the part of a row (or gradient) x that the first level leaves free."""
    t, held = I[at.WX], I[at.HELD]
    for b in range(I[comp + at.BLOCK_BEGIN], I[comp + at.BLOCK_END]):
        block = I[at.BLOCKS] + at.BLOCK_WIDTH * b
        begin = I[block + at.B_BEGIN]
        nb = I[block + at.B_END] - begin
        rank = I[I[at.RANK] + b]
        active = ZERO
        zero = True
        for i in range(begin, begin + nb):
            if I[held + i] == 0:
                X[t + active] = X[x + i]
                zero = zero and X[x + i] == 0.0
                active += 1
        if not zero:
            reflect(
                X, I[at.W] + I[block + at.B_FACTOR], rank, active, nb,
                I[at.TAU] + I[block + at.B_ROW], t, False,
            )  # fmt: skip
        to = z + I[I[at.FREE] + b] - rank
        for i in range(rank, active):
            X[to + i] = X[t + i]


@_jit
def _past_levels(I: Ints, X: Array, comp: int, last: int, z: int, width: int) -> None:
    """Turn z into the coordinates of the levels before ``last``."""
    n = I[comp + at.COLUMNS]
    for l in range(I[comp + at.LEVEL_BEGIN], last):
        level = I[at.LEVELS] + at.LEVEL_WIDTH * l
        s = I[I[at.LEVEL_START] + l]
        reflect(
            X, I[at.W] + I[level + at.L_FACTOR] + s, I[I[at.LEVEL_RANK] + l], width - s, n,
            I[at.TAU] + I[level + at.L_ROW], z + s, False,
        )  # fmt: skip


@_jit
def _back(I: Ints, X: Array, comp: int, last: int, width: int) -> None:
    """DQ += the motion of WZ, back through the levels before ``last`` and the blocks."""
    n = I[comp + at.COLUMNS]
    z, x, held = I[at.WZ], I[at.WX], I[at.HELD]
    for step in range(last - I[comp + at.LEVEL_BEGIN]):
        l = last - 1 - step
        level = I[at.LEVELS] + at.LEVEL_WIDTH * l
        s = I[I[at.LEVEL_START] + l]
        reflect(
            X, I[at.W] + I[level + at.L_FACTOR] + s, I[I[at.LEVEL_RANK] + l], width - s, n,
            I[at.TAU] + I[level + at.L_ROW], z + s, True,
        )  # fmt: skip
    for b in range(I[comp + at.BLOCK_BEGIN], I[comp + at.BLOCK_END]):
        block = I[at.BLOCKS] + at.BLOCK_WIDTH * b
        begin = I[block + at.B_BEGIN]
        nb = I[block + at.B_END] - begin
        rank = I[I[at.RANK] + b]
        active = ZERO
        for i in range(begin, begin + nb):
            if I[held + i] == 0:
                X[x + active] = X[z + I[I[at.FREE] + b] + active - rank] if active >= rank else 0.0
                active += 1
        if active == rank:
            continue
        reflect(
            X, I[at.W] + I[block + at.B_FACTOR], rank, active, nb,
            I[at.TAU] + I[block + at.B_ROW], x, True,
        )  # fmt: skip
        _scatter(I, X, begin, nb, x, I[at.DQ])


@_jit
def _merit(I: Ints, X: Array, comp: int, rows: int) -> float:
    """Sum of the norms of the levels, each ten times as heavy as the next."""
    s = 0.0
    row = rows
    for b in range(I[comp + at.BLOCK_BEGIN], I[comp + at.BLOCK_END]):
        for _ in range(I[I[at.BLOCKS] + at.BLOCK_WIDTH * b + at.B_ROWS]):
            s += X[row] * X[row]
            row += 1
    weight = 1.0
    total = math.sqrt(s)
    for l in range(I[comp + at.LEVEL_BEGIN], I[comp + at.LEVEL_END]):
        weight *= 0.1
        s = 0.0
        for _ in range(I[I[at.LEVELS] + at.LEVEL_WIDTH * l + at.L_ROWS]):
            s += X[row] * X[row]
            row += 1
        total += weight * math.sqrt(s)
    return total


@_jit
def _predict(I: Ints, X: Array, comp: int, out: int) -> None:
    """Rows that the linear model expects after the step, e + J dq."""
    n, work, e, dq = I[comp + at.COLUMNS], I[at.W], I[at.E], I[at.DQ]
    for b in range(I[comp + at.BLOCK_BEGIN], I[comp + at.BLOCK_END]):
        block = I[at.BLOCKS] + at.BLOCK_WIDTH * b
        begin, row = I[block + at.B_BEGIN], I[block + at.B_ROW]
        nb = I[block + at.B_END] - begin
        for r in range(I[block + at.B_ROWS]):
            s = X[e + row + r]
            for i in range(nb):
                s += X[work + I[block + at.B_MATRIX] + r * nb + i] * X[dq + begin + i]
            X[out + row + r] = s
    for l in range(I[comp + at.LEVEL_BEGIN], I[comp + at.LEVEL_END]):
        level = I[at.LEVELS] + at.LEVEL_WIDTH * l
        row = I[level + at.L_ROW]
        for r in range(I[level + at.L_ROWS]):
            s = X[e + row + r]
            for i in range(n):
                s += X[work + I[level + at.L_MATRIX] + r * n + i] * X[dq + i]
            X[out + row + r] = s


@_jit
def _correct(I: Ints, X: Array, comp: int, rows: int, lam: float, top_cost: float) -> None:
    """WY = the step that undoes what curvature did to the first level, with the old factors."""
    m, n = I[comp + at.ROWS], I[comp + at.COLUMNS]
    x, y, held = I[at.WX], I[at.WY], I[at.HELD]
    for i in range(n):
        X[y + i] = 0.0
    for b in range(I[comp + at.BLOCK_BEGIN], I[comp + at.BLOCK_END]):
        block = I[at.BLOCKS] + at.BLOCK_WIDTH * b
        begin, row, mb = I[block + at.B_BEGIN], I[block + at.B_ROW], I[block + at.B_ROWS]
        nb = I[block + at.B_END] - begin
        rank = I[I[at.RANK] + b]
        if rank == 0:
            continue
        active = ZERO
        for i in range(begin, begin + nb):
            if I[held + i] == 0:
                X[x + active] = 0.0
                active += 1
        for r in range(mb):
            X[rows + m + r] = -X[rows + row + r]
        fac = I[at.W] + I[block + at.B_FACTOR]
        damped(
            I, X, fac, mb, rank, nb, I[at.PERM] + row, rows + m,
            lam * min(top_cost, 1.0) + FLOOR, x, 0.0,
        )  # fmt: skip
        reflect(X, fac, rank, active, nb, I[at.TAU] + row, x, True)
        _scatter(I, X, begin, nb, x, y)


@_jit
def _trial_levels(I: Ints, X: Array, k: int, top_cost: float, rests: bool) -> bool:
    """Take DQ if the merit falls; after a long step the first level is corrected once more."""
    comp = I[at.COMPS] + at.COMP_WIDTH * k
    n = I[comp + at.COLUMNS]
    dofs = I[at.COMP_DOFS] + I[comp + at.DOF_BEGIN]
    dq, v, y, q, saved = I[at.DQ], I[at.V], I[at.WY], I[at.Q], I[at.SAVED]
    most, lam = I[at.STEP_MAX], I[at.LAM] + k
    largest = 0.0
    for i in range(n):
        largest = max(largest, abs(X[dq + i]) / X[most + I[dofs + i]])
    X[I[at.STEP] + k] = largest
    merit = _merit(I, X, comp, I[at.E])
    _predict(I, X, comp, v)
    predicted = _merit(I, X, comp, v)
    promised = merit - predicted
    unseen = largest < 0.3 and predicted < 0.3 * merit and X[lam] <= LAMBDA_START
    uphill = promised < -1e-11 * merit and largest > SHORT and not rests
    if unseen or (promised <= 1e-11 * merit and not uphill):
        apply_step(I, X, n, dofs, dq)
        if unseen:
            X[lam] = max(0.25 * X[lam], LAMBDA_MIN)
        return True
    if uphill:  # what is left of a step after limits cut it may lead uphill
        X[lam] = min(10.0 * max(X[lam], 1e-4), LAMBDA_MAX / min(merit * merit, 1.0))
        return False
    for i in range(n):
        X[saved + i] = X[q + I[dofs + i]]
    apply_step(I, X, n, dofs, dq)
    component_kinematics(I, X, k)
    component_rows(I, X, k, v)
    _correct(I, X, comp, v, X[lam], top_cost)
    longest = 0.0
    for i in range(n):
        longest = max(longest, abs(X[y + i]) / X[most + I[dofs + i]])
    if longest < 0.5 * largest:
        apply_step(I, X, n, dofs, y)
        component_kinematics(I, X, k)
        component_rows(I, X, k, v)
    new = _merit(I, X, comp, v)
    if new < merit:
        gain = (merit - new) / promised
        if gain > 0.75:
            X[lam] = max(0.25 * X[lam], LAMBDA_MIN)
        elif gain < 0.25:
            X[lam] = min(4.0 * max(X[lam], 1e-6), LAMBDA_MAX)
        return True
    for i in range(n):
        X[q + I[dofs + i]] = X[saved + i]
    component_kinematics(I, X, k)
    X[lam] = min(10.0 * max(X[lam], 1e-4), LAMBDA_MAX / min(merit * merit, 1.0))
    return False
