"""The built-in motion of the node: the goals of the linkage run around circles."""

from __future__ import annotations

import math

from hier_ik.solver import Solver
from hier_ik.tables import Array

__all__ = ["CircleDemo"]

#: Largest radius, as a share of the distance of a target from its reference link.
_SHARE = 0.25


class CircleDemo:
    """An ellipse in the plane xz, half as high as wide, that begins near each goal's own target.

    It lies between the target and its reference: below the top of a tower, above a foot that hangs
    from a pelvis. Several goals run one after the other, such as two feet in turn.
    """

    def __init__(self, start: float) -> None:
        """Begin at the time ``start`` [s]."""
        self._start = start
        self._centres: dict[str, tuple[float, Array]] | None = None

    def move(self, solver: Solver, now: float, radius: float, period: float) -> None:
        """Set the goals for the time ``now`` [s]; a linkage without goals stays as it is.

        Args:
            solver: Its goals are moved, but for those of a drag (drag:LINK).
            now: By the clock of the start [s].
            radius: Half the width, or less where the linkage is small [m].
            period: Time of one turn [s].
        """
        goals = solver.linkage.goals
        if self._centres is None:
            self._centres = {}
            for goal in goals.values():
                if not goal.name.startswith("drag:"):
                    centre = goal.target.copy()
                    distance = math.hypot(*centre[:3, 3])
                    size = min(radius, _SHARE * distance)
                    centre[2, 3] -= math.copysign(size, centre[2, 3])
                    self._centres[goal.name] = size, centre
        for k, (name, (size, centre)) in enumerate(self._centres.items()):
            if name in goals:
                angle = 2 * math.pi * ((now - self._start) / period + k / len(self._centres))
                target = centre.copy()
                target[0, 3] += size * math.sin(angle)
                target[2, 3] += size * math.cos(angle) * 0.5
                solver.set_goal(name, target)
