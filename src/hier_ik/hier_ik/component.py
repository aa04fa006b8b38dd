"""One compiled damped least-squares step of a component, whatever its levels."""

from __future__ import annotations

from hier_ik.closures import closure_matrix
from hier_ik.kinematics import inlined, jit
from hier_ik.priorities import levels_step, levels_trial
from hier_ik.single import level_step, level_trial, normal_matrix
from hier_ik.steps import NOTHING, TRIALS, limit_step
from hier_ik.tables import SINGLE, Array, Ints, Record, Records

__all__ = ["solve_component", "task_matrix"]


@jit
def solve_component(
    bodies: Records, freedoms: Records, closures: Records, chain: Records, parts: Records,
    index: Ints, work: Array, component: Record,
) -> float:  # fmt: skip
    """One step; returns the squared residual before it.

    Dampings are tried until a step is taken; within a damping, coordinates that would leave their
    limits are held there one set after the other.
    """
    single, n = component.kind == SINGLE, component.columns
    if single:
        _clear(work, component.matrix, component.rows * n)
        task_matrix(bodies, freedoms, closures, chain, work, component.e, component)
    else:
        cost = 0.0
        for p in range(component.block_begin, component.level_end):
            part = parts[p]
            _clear(work, part.matrix, part.rows * (part.column_end - part.column_begin))
            task_matrix(bodies, freedoms, closures, chain, work, component.e, part)
            cost += part.cost
        component.cost = cost
    component.step = 0.0
    if (component.cost < NOTHING and component.rest_gain <= 0.0) or n == 0:
        return component.cost
    if single:
        normal_matrix(work, component)
    for _ in range(TRIALS):
        for i in range(n):
            index[component.held + i] = 0
            work[component.dq + i] = 0.0
        for _again in range(n + 1):
            if single:
                level_step(index, work, component)
            else:
                levels_step(freedoms, parts, index, work, component)
            if limit_step(freedoms, index, work, component) == 0:
                break
        if single:
            done = level_trial(bodies, freedoms, closures, index, work, component)
        else:
            done = levels_trial(bodies, freedoms, closures, parts, index, work, component)
        if done:
            break  # else, not at rest: the next iteration goes on with the damping reached here
    return component.cost


@inlined
def _clear(work: Array, begin: int, size: int) -> None:
    for i in range(begin, begin + size):
        work[i] = 0.0


@inlined
def task_matrix(
    bodies: Records, freedoms: Records, closures: Records, chain: Records, work: Array, e: int,
    tasks: Record,
) -> None:  # fmt: skip
    """Rows of a component or a part to work[e:], their Jacobian to its place; the squared sum."""
    cost = 0.0
    for c in range(tasks.closure_begin, tasks.closure_end):
        closure = closures[c]
        cost += closure_matrix(bodies, freedoms, closure, chain, work, e + closure.row)
    tasks.cost = cost
