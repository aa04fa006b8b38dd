"""The built-in motion of the node: the goal "drag" runs around a circle."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hier_ik.solver import Solver

__all__ = ["CircleDemo"]


class CircleDemo:
    """An ellipse in the plane xz, half as high as wide, that begins at the goal's own target."""

    def __init__(self, start: float) -> None:
        """Begin at the time ``start`` [s]."""
        self._start = start
        self._centre: NDArray[np.float64] | None = None

    def move(self, solver: Solver, now: float, radius: float, period: float) -> None:
        """Set the goal for the time ``now`` [s]; a linkage without such a goal stays as it is.

        Args:
            solver: Its goal "drag" is moved.
            now: By the clock of the start [s].
            radius: Half the width [m].
            period: Time of one turn [s].
        """
        goal = solver.linkage.goals.get("drag")
        if goal is None:
            return
        if self._centre is None:
            self._centre = goal.target.copy()
            self._centre[2, 3] -= radius
        angle = 2 * math.pi * (now - self._start) / period
        target = self._centre.copy()
        target[0, 3] += radius * math.sin(angle)
        target[2, 3] += radius * math.cos(angle) * 0.5
        solver.set_goal("drag", target)
