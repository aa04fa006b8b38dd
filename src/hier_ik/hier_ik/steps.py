"""What every compiled step shares: factors, limits, taking a step, and the damping.

A step of a component solves J dq = -e in the damped least-squares sense. Its damping follows the
gain ratio of Levenberg and Marquardt: what the step brought over what its linear model promised.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hier_ik.closures import closure_rows
from hier_ik.kinematics import inlined, jit, kinematics
from hier_ik.tables import Record, Records

__all__ = [
    "DAMPING_START", "FLOOR", "NOTHING", "SHORT", "TRIALS", "apply_step", "cholesky",
    "cholesky_solve", "component_kinematics", "component_rows", "damp_less", "damp_more",
    "follow_gain", "largest_step", "limit_step", "restore",
]  # fmt: skip

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Smallest damping, relative to the largest diagonal element: redundant rows are the norm.
FLOOR = 1e-13
DAMPING_START, DAMPING_MIN, DAMPING_MAX = 1e-4, 1e-9, 1e9
#: Residuals (squared sum) below this are rounding.
NOTHING = 1e-30
#: Steps below this share of the largest allowed are taken whatever they promise.
SHORT = 1e-9
#: Dampings that are tried within one step; the next iteration goes on from the last.
TRIALS = 8


@jit
def cholesky(work: Array, a: int, n: int) -> None:
    """Factor the n x n matrix at work[a:] as L L' in place (lower half, inverse diagonal)."""
    for i in range(n):
        ri = a + i * n
        for j in range(i):
            rj = a + j * n
            s = work[ri + j]
            for k in range(j):
                s -= work[ri + k] * work[rj + k]
            work[ri + j] = s * work[rj + j]
        s = work[ri + i]
        for k in range(i):
            s -= work[ri + k] * work[ri + k]
        work[ri + i] = 1.0 / math.sqrt(s) if s > 0.0 else 0.0


@jit
def cholesky_solve(work: Array, a: int, n: int, x: int) -> None:
    """Solve L L' x = b in place at work[x:] with the factor of cholesky()."""
    for i in range(n):
        s = work[x + i]
        for k in range(i):
            s -= work[a + i * n + k] * work[x + k]
        work[x + i] = s * work[a + i * n + i]
    for i in range(n - 1, -1, -1):
        s = work[x + i]
        for k in range(i + 1, n):
            s -= work[a + k * n + i] * work[x + k]
        work[x + i] = s * work[a + i * n + i]


@inlined
def limit_step(freedoms: Records, index: Ints, work: Array, component: Record) -> int:
    """Shorten dq to the largest step allowed, then hold what would leave its limits.

    Clamp and lock after Baerlocher and Boulic: a coordinate that would pass a limit is set to go
    exactly there and is taken out; the caller solves again for the others. Returns how many were
    newly held.
    """
    n, dq, held, first = component.columns, component.dq, component.held, component.freedom_begin
    scale = 1.0
    for i in range(n):
        if index[held + i] == 0:
            most = freedoms[index[first + i]].step_max
            if abs(work[dq + i]) * scale > most:
                scale = most / abs(work[dq + i])
    new = 0
    for i in range(n):
        if index[held + i] != 0:
            continue
        freedom = freedoms[index[first + i]]
        work[dq + i] *= scale
        value = freedom.q + work[dq + i]
        if value > freedom.high:
            work[dq + i] = freedom.high - freedom.q
        elif value < freedom.low:
            work[dq + i] = freedom.low - freedom.q
        else:
            continue
        index[held + i] = 1
        new += 1
    return new


@inlined
def largest_step(freedoms: Records, index: Ints, work: Array, component: Record, dq: int) -> float:
    """The largest coordinate of the step at work[dq:], as a share of what is allowed."""
    first = component.freedom_begin
    largest = 0.0
    for i in range(component.columns):
        largest = max(largest, abs(work[dq + i]) / freedoms[index[first + i]].step_max)
    return largest


@inlined
def apply_step(freedoms: Records, index: Ints, work: Array, component: Record, dq: int) -> None:
    """Q += work[dq:], exactly within the limits, rotation vectors brought back below pi."""
    n, first = component.columns, component.freedom_begin
    for i in range(n):
        f = freedoms[index[first + i]]
        f.q = min(max(f.q + work[dq + i], f.low), f.high)
    for i in range(n):
        d = index[first + i]
        if freedoms[d].wraps == 1:
            x, y, z = freedoms[d], freedoms[d + 1], freedoms[d + 2]
            t = math.sqrt(x.q * x.q + y.q * y.q + z.q * z.q)
            if t > math.pi:
                f = 1.0 - 2.0 * math.pi / t
                x.q *= f
                y.q *= f
                z.q *= f


@jit
def try_step(
    bodies: Records, freedoms: Records, closures: Records, index: Ints, work: Array,
    component: Record,
) -> float:  # fmt: skip
    """Take the step dq and keep what was before; the squared sum of the new rows, which go to v."""
    first = component.freedom_begin
    for i in range(component.columns):
        work[component.saved + i] = freedoms[index[first + i]].q
    apply_step(freedoms, index, work, component, component.dq)
    component_kinematics(bodies, freedoms, index, component)
    return component_rows(bodies, closures, work, component, component.v)


@jit
def restore(
    bodies: Records, freedoms: Records, index: Ints, work: Array, component: Record
) -> None:
    """Undo try_step()."""
    first = component.freedom_begin
    for i in range(component.columns):
        freedoms[index[first + i]].q = work[component.saved + i]
    component_kinematics(bodies, freedoms, index, component)


@inlined
def component_rows(
    bodies: Records, closures: Records, work: Array, component: Record, e: int
) -> float:
    """Write all residual rows of a component to work[e:]; return their squared sum."""
    total = 0.0
    for c in range(component.closure_begin, component.closure_end):
        total += closure_rows(bodies, closures[c], work, e + closures[c].row)
    return total


@inlined
def component_kinematics(
    bodies: Records, freedoms: Records, index: Ints, component: Record
) -> None:
    """Bring up to date what a step of a component has moved and its closures read."""
    kinematics(bodies, freedoms, index, component.fk_begin, component.fk_end)


@inlined
def damp_less(component: Record) -> None:
    """After a step that went as its linear model promised."""
    component.damping = max(0.25 * component.damping, DAMPING_MIN)


@inlined
def damp_more(component: Record, cost: float) -> None:
    """After a step that was refused; ``cost`` is the squared residual."""
    component.damping = min(10.0 * max(component.damping, 1e-4), DAMPING_MAX / min(cost, 1.0))


@inlined
def follow_gain(component: Record, gain: float) -> None:
    """After a step that was taken: ``gain`` is what it brought over what it promised."""
    if gain > 0.75:
        damp_less(component)
    elif gain < 0.25:
        component.damping = min(4.0 * max(component.damping, 1e-6), DAMPING_MAX)
