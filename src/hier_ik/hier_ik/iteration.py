"""The compiled loop over rounds and components."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hier_ik.kinematics import jit, kinematics
from hier_ik.priorities import solve_priorities
from hier_ik.single import solve_single
from hier_ik.tables import PRIORITIES, SINGLE, Records

__all__ = ["relax", "run"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@jit
def relax(freedoms: Records, rest_gain: float) -> float:
    """Move the freedoms that nothing holds towards their rest; return the largest step."""
    largest = 0.0
    if rest_gain <= 0.0:
        return 0.0
    for d in range(freedoms.shape[0]):
        f = freedoms[d]
        if f.loose == 0:
            continue
        step = min(max(rest_gain * (f.rest - f.q), -f.step_max), f.step_max)
        new = min(max(f.q + step, f.low), f.high)
        largest = max(largest, abs(new - f.q) / f.step_max)
        f.q = new
    return largest


@jit
def run(
    tables: Any, rest_gain: float, begin: int, end: int, iterations: int, tolerance: float,
    flag: Ints, history: Array,
) -> int:  # fmt: skip
    """Iterate until every component is within the tolerance, nothing moves, or time is up.

    One iteration goes over the rounds begin to end: per round the kinematics that it needs, then
    one step of each component; those of fallback.py are left to the caller. After all rounds, what
    nothing holds goes towards its rest.

    ``tables`` is Tables.as_tuple(). Returns the number of iterations made; history holds the
    largest residual of a component before each.
    """
    bodies, freedoms, closures, chain, components, parts, rounds, index, work = tables
    for i in range(iterations):
        if flag[0] != 0:
            return i
        worst = 0.0
        for r in range(begin, end):
            kinematics(bodies, freedoms, index, rounds[r].fk_begin, rounds[r].fk_end)
            for k in range(rounds[r].component_begin, rounds[r].component_end):
                component = components[k]
                if component.kind == SINGLE:
                    cost = solve_single(bodies, freedoms, closures, chain, index, work, component)
                    worst = max(worst, cost)
                elif component.kind == PRIORITIES:
                    component.rest_gain = rest_gain if component.has_rest == 1 else 0.0
                    cost = solve_priorities(
                        bodies, freedoms, closures, chain, parts, index, work, component
                    )
                    worst = max(worst, cost)
        history[i] = math.sqrt(worst)
        whole = begin == 0 and end == rounds.shape[0]
        moved = relax(freedoms, rest_gain) if whole else 0.0
        for k in range(components.shape[0]):
            moved = max(moved, components[k].step)
        if moved < 1e-13:
            return i + 1
        if history[i] <= tolerance and (rest_gain <= 0.0 or moved < 1e-7):
            return i + 1
    return iterations
