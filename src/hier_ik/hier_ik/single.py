"""One compiled damped least-squares step of a component whose tasks are all of one level."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hier_ik.component import task_matrix
from hier_ik.kinematics import inlined, jit
from hier_ik.steps import (
    DAMPING_START,
    FLOOR,
    NOTHING,
    SHORT,
    TRIALS,
    apply_step,
    cholesky,
    cholesky_solve,
    damp_less,
    damp_more,
    follow_gain,
    largest_step,
    limit_step,
    restore,
    try_step,
)
from hier_ik.tables import Record, Records

__all__ = ["solve_single"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@jit
def solve_single(
    bodies: Records, freedoms: Records, closures: Records, chain: Records, index: Ints,
    work: Array, component: Record,
) -> float:  # fmt: skip
    """One step; returns the squared residual before it.

    Normal form (J'J + mu) dq = -J'e if there are no more columns than rows, else the dual form
    dq = -J'(JJ' + mu)^-1 e.
    """
    m, n = component.rows, component.columns
    for i in range(component.matrix, component.matrix + m * n):
        work[i] = 0.0
    task_matrix(bodies, freedoms, closures, chain, work, component.e, component)
    cost = component.cost
    component.step = 0.0
    if cost < NOTHING or n == 0:
        return cost
    if n <= m:
        _normal_matrix(work, component)
    for _ in range(TRIALS):
        for i in range(n):
            index[component.held + i] = 0
            work[component.dq + i] = 0.0
        for _again in range(n + 1):
            if n <= m:
                _normal_form(index, work, component)
            else:
                _dual_form(index, work, component)
            if limit_step(freedoms, index, work, component) == 0:
                break
        if _trial(bodies, freedoms, closures, index, work, component):
            return cost
    return cost  # not at rest: the next iteration goes on with the damping reached here


@inlined
def _normal_matrix(work: Array, component: Record) -> None:
    """A = J'J, lower half, behind J; rows of J are mostly zero in plane mechanisms."""
    J, m, n = component.matrix, component.rows, component.columns
    A = J + m * n
    for i in range(A, A + n * n):
        work[i] = 0.0
    for r in range(J, J + m * n, n):
        for i in range(n):
            v = work[r + i]
            if v != 0.0:
                for j in range(i + 1):
                    work[A + i * n + j] += v * work[r + j]


@inlined
def _right_hand_side(index: Ints, work: Array, component: Record) -> None:
    """V = -(e + J dq of the held)."""
    J, m, n, v = component.matrix, component.rows, component.columns, component.v
    e, dq, held = component.e, component.dq, component.held
    for r in range(m):
        work[v + r] = -work[e + r]
    for i in range(n):
        if index[held + i] != 0 and work[dq + i] != 0.0:
            for r in range(m):
                work[v + r] -= work[J + r * n + i] * work[dq + i]


@inlined
def _normal_form(index: Ints, work: Array, component: Record) -> None:
    """Dq of what is not held from (A + mu) dq = J'v."""
    J, m, n, v = component.matrix, component.rows, component.columns, component.v
    dq, held = component.dq, component.held
    A = J + m * n
    L = A + n * n
    _right_hand_side(index, work, component)
    g = v + m
    for i in range(n):
        work[g + i] = 0.0
    for r in range(m):
        s = work[v + r]
        if s != 0.0:
            for i in range(n):
                work[g + i] += work[J + r * n + i] * s
    top = 0.0
    for i in range(n):
        if index[held + i] == 0:
            top = max(top, work[A + i * n + i])
        else:
            work[g + i] = 0.0
    mu = (component.damping * min(component.cost, 1.0) + FLOOR) * top
    for i in range(n):
        fixed = index[held + i] != 0
        for j in range(i):
            work[L + i * n + j] = 0.0 if fixed or index[held + j] != 0 else work[A + i * n + j]
        work[L + i * n + i] = 1.0 if fixed else work[A + i * n + i] + mu
    cholesky(work, L, n)
    cholesky_solve(work, L, n, g)
    for i in range(n):
        if index[held + i] == 0:
            work[dq + i] = work[g + i]


@inlined
def _dual_form(index: Ints, work: Array, component: Record) -> None:
    """Dq of what is not held from dq = J'(JJ' + mu)^-1 v."""
    J, m, n, v = component.matrix, component.rows, component.columns, component.v
    dq, held = component.dq, component.held
    L = J + m * n
    _right_hand_side(index, work, component)
    top = 0.0
    for r in range(m):
        for j in range(r + 1):
            s = 0.0
            for i in range(n):
                if index[held + i] == 0:
                    s += work[J + r * n + i] * work[J + j * n + i]
            work[L + r * m + j] = s
        top = max(top, work[L + r * m + r])
    mu = (component.damping * min(component.cost, 1.0) + FLOOR) * top
    for r in range(m):
        work[L + r * m + r] += mu
    cholesky(work, L, m)
    cholesky_solve(work, L, m, v)
    for i in range(n):
        if index[held + i] == 0:
            s = 0.0
            for r in range(m):
                s += work[J + r * n + i] * work[v + r]
            work[dq + i] = s


@inlined
def _predicted(work: Array, component: Record) -> float:
    """The squared residual that the linear model expects after the step, |e + J dq|^2."""
    J, n, e, dq = component.matrix, component.columns, component.e, component.dq
    total = 0.0
    for r in range(component.rows):
        s = work[e + r]
        for i in range(n):
            s += work[J + r * n + i] * work[dq + i]
        total += s * s
    return total


@inlined
def _trial(
    bodies: Records, freedoms: Records, closures: Records, index: Ints, work: Array,
    component: Record,
) -> bool:  # fmt: skip
    """Take the step dq if it is good; adapt the damping.

    Short steps that should remove most of the residual are taken unseen, which saves the second
    evaluation in ordinary motion.
    """
    cost = component.cost
    largest = largest_step(freedoms, index, work, component, component.dq)
    predicted = _predicted(work, component)
    component.step = largest
    promised = cost - predicted
    unseen = largest < 0.3 and predicted < 0.1 * cost and component.damping <= DAMPING_START
    uphill = promised < -1e-13 * cost and largest > SHORT
    if unseen or (promised <= 1e-13 * cost and not uphill):
        apply_step(freedoms, index, work, component, component.dq)
        if unseen:
            damp_less(component)
        return True
    if uphill:  # what is left of a step after limits cut it may lead uphill
        damp_more(component, cost)
        return False
    new = try_step(bodies, freedoms, closures, index, work, component)
    if new < cost:
        follow_gain(component, (cost - new) / promised)
        return True
    restore(bodies, freedoms, index, work, component)
    damp_more(component, cost)
    return False
