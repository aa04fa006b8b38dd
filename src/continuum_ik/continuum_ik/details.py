"""Many poses with what needs the whole state of each: analysis, and the shapes of the rods."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from continuum_ik.rod import Array
from continuum_ik.solver import Batch, ContinuumSolver
from kin_core.errors import StatusCode
from kin_core.task import Task

__all__ = ["Details", "solve_in_detail"]


@dataclass(frozen=True, eq=False)
class Details:
    """Numbers beside a ``Batch`` of n poses; NaN where a pose was not solved.

    Attributes:
        jacobian: d lengths / d pose, (n, 6, 6); n = 0 unless it was asked for.
        stiffness: d wrench / d pose at fixed lengths, (n, 6, 6); n = 0 unless asked for.
        fold_margin: (n,); n = 0 unless asked for.
        shapes: Centrelines, (n, 6, points, 3) [m]; n = 0 unless asked for.
    """

    jacobian: Array
    stiffness: Array
    fold_margin: Array
    shapes: Array


def solve_in_detail(
    solver: ContinuumSolver,
    poses: Array,
    *,
    analyse: bool,
    points: int,
    independent: bool,
    task: Task,
) -> tuple[Batch, Details]:
    """Solve poses (n, 12 | 7) one by one, and look at each.

    Args:
        solver: Moved on along the poses, unless they are independent.
        poses: (n, 12) or (n, 7).
        analyse: Whether to fill Jacobian, stiffness and fold margin.
        points: Of each rod's shape; 0 for no shapes.
        independent: Start each from the solver's present solution.
        task: To cancel, and limit the time.
    """
    n = len(poses)
    analysed, drawn = n if analyse else 0, n if points else 0
    details = Details(
        jacobian=np.full((analysed, 6, 6), np.nan),
        stiffness=np.full((analysed, 6, 6), np.nan),
        fold_margin=np.full(analysed, np.nan),
        shapes=np.full((drawn, 6, points, 3), np.nan),
    )
    parts = []
    for k, pose in enumerate(poses):
        task.check()
        one = solver.copy() if independent else solver
        batch = one.solve_many(pose[None])
        parts.append(batch)
        if batch.codes[0] != StatusCode.SUCCESS:
            continue
        if analyse:
            found = one.analyse()
            details.jacobian[k], details.stiffness[k] = found.length_jacobian, found.stiffness
            details.fold_margin[k] = found.fold_margin
        if points:
            details.shapes[k] = one.shapes(points)
    rows = zip(*(vars(batch).values() for batch in parts), strict=True)
    return Batch(*(np.concatenate(row) for row in rows)), details
