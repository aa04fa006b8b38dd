"""Rows and Jacobian of a set of closures: a component, a part of one, or a group of loops."""

from __future__ import annotations

from hier_ik.closures import closure_matrix
from hier_ik.kinematics import inlined
from hier_ik.tables import Array, Record, Records

__all__ = ["task_matrix"]


@inlined
def task_matrix(
    bodies: Records, freedoms: Records, closures: Records, chain: Records, work: Array, e: int,
    tasks: Record,
) -> None:  # fmt: skip
    """Rows to work[e:], their Jacobian to its place, the squared sum to the record."""
    cost = 0.0
    for c in range(tasks.closure_begin, tasks.closure_end):
        closure = closures[c]
        cost += closure_matrix(bodies, freedoms, closure, chain, work, e + closure.row)
    tasks.cost = cost
