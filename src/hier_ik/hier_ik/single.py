"""The damped least-squares step of a component whose tasks are all of one level, in dense form."""

from __future__ import annotations

from hier_ik.kinematics import inlined
from hier_ik.steps import (
    FLOOR,
    TAKEN,
    TRY,
    cholesky,
    cholesky_solve,
    damp_more,
    follow_gain,
    judge_step,
    restore,
    try_step,
)
from hier_ik.tables import Array, Ints, Record, Records

__all__ = ["level_step", "level_trial", "normal_matrix"]


@inlined
def level_step(index: Ints, work: Array, component: Record) -> None:
    """Fill dq of what is not held.

    Normal form (J'J + mu) dq = -J'e if there are no more columns than rows, else the dual form
    dq = -J'(JJ' + mu)^-1 e.
    """
    if component.columns <= component.rows:
        _normal_form(index, work, component)
    else:
        _dual_form(index, work, component)


@inlined
def normal_matrix(work: Array, component: Record) -> None:
    """A = J'J of the normal form, lower half, behind J; many rows of J have many zeros."""
    J, m, n = component.matrix, component.rows, component.columns
    if n > m:
        return
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
def level_trial(
    bodies: Records, freedoms: Records, closures: Records, index: Ints, work: Array,
    component: Record,
) -> bool:  # fmt: skip
    """Take the step dq if it is good; adapt the damping."""
    cost = component.cost
    predicted = _predicted(work, component)
    verdict = judge_step(freedoms, index, work, component, cost, predicted, 0.1, 1e-13)
    if verdict == TAKEN:
        return True
    if verdict == TRY:
        new = try_step(bodies, freedoms, closures, index, work, component)
        if new < cost:
            follow_gain(component, (cost - new) / (cost - predicted))
            return True
        restore(bodies, freedoms, index, work, component)
    damp_more(component, cost)
    return False
