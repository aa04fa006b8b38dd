"""The paper's method as a search: boxes of the scalars y, z (rotations) and x (translations)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kin_solvers import paper_kernels
from kin_solvers.boxes import Boxes, Outcome
from kin_solvers.driver import Goal, Tuning, run
from kin_solvers.errors import SizeError
from kin_solvers.mechanism import Mechanism
from kin_solvers.paper_kernels import PaperTables
from kin_solvers.search import Flag, Search
from kin_solvers.system import System
from kin_solvers.turns import turned

__all__ = ["PaperSearch"]

Array = NDArray[np.float64]

#: Largest number of scalars of a loop: 2^16 corners.
MAX_SCALARS = 16
#: Every equation is used for every box, and only rho says when a box is split.
UNTUNED = Tuning(0.0, 0.0, 0.0)
_TWO_PI = 2.0 * math.pi
#: More than what rounding does to a cosine, or to an angle of one turn.
_ROUNDING = 1e-14
#: Boxes that one box of scalars may become, arc by arc.
_MAX_PARTS = 64


class PaperSearch(Search):
    """Fig. 2 and Fig. 3 of the paper on a mechanism.

    Args:
        mechanism: The mechanism.
        system: Its normal form.
        sigma: Longest side of a solution box, over the scalars.
        rho: Volume ratio above which a box is split.
        naive: Enumerate corners one by one, as the figure stands.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        system: System,
        sigma: float,
        rho: float,
        *,
        naive: bool = False,
    ) -> None:
        self.mechanism = mechanism
        self.system = system
        self.sigma = sigma
        self.rho = rho
        sizes = np.where(system.translation, 1, 2)
        self.first = np.concatenate([[0], np.cumsum(sizes)])
        self.scalars = int(self.first[-1])
        for a, b in zip(system.offsets[:-1], system.offsets[1:], strict=True):
            bits = int(sizes[system.factor_variable[a:b]].sum())
            if bits > MAX_SCALARS:
                raise SizeError(
                    f"method: a loop of {bits} scalars has 2^{bits} corners, more than the 2^"
                    f"{MAX_SCALARS} that the paper's method takes on here; use the fast method"
                )
        corners = float((4.0 ** np.diff(system.offsets)).sum())
        self.chunk = int(np.clip(100_000 / corners, 4, 800))
        self.side = np.full(self.scalars, sigma)
        self.tables = PaperTables(
            offsets=system.offsets,
            C=system.C[:, :12].copy(),
            translation=system.translation[system.factor_variable],
            scalar=self.first[system.factor_variable].astype(np.int64),
            point=system.point,
            goal=system.C_first,
            delta=system.delta_full,
            naive=naive,
        )

    def initial(self) -> Boxes:
        """The rectangle around the arc of each rotation."""
        return self.resumed(self.system.lower[None], self.system.upper[None], np.ones(1), raw=True)

    def resumed(self, lower: Array, upper: Array, share: Array, *, raw: bool = False) -> Boxes:
        """Boxes of configurations as boxes of scalars, shape (N, S)."""
        unit = 1.0 if raw else self.system.unit
        lower, upper = lower * unit, upper * unit
        low, high = np.empty((len(lower), self.scalars)), np.empty((len(lower), self.scalars))
        for k, s in enumerate(self.first[:-1]):
            a, b = lower[:, k], upper[:, k]
            if self.system.translation[k]:
                low[:, s], high[:, s] = a, b
                continue
            low[:, s], high[:, s] = _range(np.cos, a, b, 0.0)
            low[:, s + 1], high[:, s + 1] = _range(np.sin, a, b, 0.5 * math.pi)
        return Boxes(low, high, share.copy())

    def run(self, boxes: Boxes, limit: int, flag: Flag) -> Outcome:
        """Process at most ``limit`` boxes."""
        goal = Goal(self.side, self.rho, limit, False, flag, UNTUNED)
        return run(paper_kernels.search, self.tables, boxes, goal)

    @property
    def numbers(self) -> int:
        """Numbers that a box holds."""
        return self.scalars

    def unfinished(self, boxes: Boxes) -> Boxes:
        """Boxes that are left, as boxes of configurations.

        They are the arcs that lie in the rectangles, not the angles under which these are seen: the
        rectangles around the arcs are never larger than the ones before, so that a search that goes
        on from its own unfinished boxes gets on.
        """
        found: list[tuple[Array, Array]] = []
        share: list[float] = []
        for i in range(len(boxes)):
            parts = self._on_the_circles(boxes.lower[i], boxes.upper[i])
            found += parts
            share += [boxes.share[i] / max(len(parts), 1)] * len(parts)
        return Boxes(*self._in_units(found), np.array(share, dtype=np.float64))

    def _in_units(self, boxes: list[tuple[Array, Array]]) -> tuple[Array, Array]:
        """Boxes of configurations in the mechanism's units, shapes (N, V)."""
        size, unit = self.system.size, self.system.unit
        return (
            np.array([a for a, _ in boxes]).reshape(-1, size) / unit,
            np.array([b for _, b in boxes]).reshape(-1, size) / unit,
        )

    def _on_the_circles(self, lower: Array, upper: Array) -> list[tuple[Array, Array]]:
        """One box of scalars as boxes of configurations, by the arcs in its rectangles."""
        choices: list[list[tuple[float, float]]] = []
        for k, s in enumerate(self.first[:-1]):
            if self.system.translation[k]:
                choices.append([(float(lower[s]), float(upper[s]))])
            else:
                choices.append(circle_arcs(*lower[s : s + 2], *upper[s : s + 2]))
        if math.prod(len(arcs) for arcs in choices) > _MAX_PARTS:
            choices = [[(arcs[0][0], arcs[-1][1])] for arcs in choices]
        return [
            part
            for box in itertools.product(*choices)
            for part in turned(
                np.array([a for a, _ in box]), np.array([b for _, b in box]), self.system
            )
        ]

    def to_angles(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Boxes of scalars as boxes of configurations in the mechanism's units.

        A box may become several: a rectangle says nothing about whole turns, and a range of nearly
        a turn may be met at both of its ends.
        """
        n, size = len(lower), self.system.size
        low, high = np.empty((n, size)), np.empty((n, size))
        for k, s in enumerate(self.first[:-1]):
            if self.system.translation[k]:
                low[:, k], high[:, k] = lower[:, s], upper[:, s]
                continue
            low[:, k], high[:, k] = _seen_angle(
                lower[:, s], upper[:, s], lower[:, s + 1], upper[:, s + 1]
            )
        boxes = [box for i in range(n) for box in turned(low[i], high[i], self.system)]
        return self._in_units(boxes)


def _range(
    function: Callable[[Array], Array], a: Array, b: Array, top: float
) -> tuple[Array, Array]:
    """Range over [a, b] of the cosine or the sine, which is 1 at ``top``."""
    x, y = function(a), function(b)
    low, high = np.minimum(x, y) - 1e-15, np.maximum(x, y) + 1e-15
    slack = 1e-12 + 4e-15 * (np.abs(a) + np.abs(b))

    def passes(place: float) -> NDArray[np.bool_]:
        turn = np.floor((b - place + slack) / _TWO_PI) >= np.ceil((a - place - slack) / _TWO_PI)
        return np.asarray(turn)

    return (
        np.maximum(-1.0, np.where(passes(top + math.pi), -1.0, low)),
        np.minimum(1.0, np.where(passes(top), 1.0, high)),
    )


def _seen_angle(y0: Array, y1: Array, z0: Array, z1: Array) -> tuple[Array, Array]:
    """Angles under which rectangles are seen from the origin; a whole turn if they hold it."""
    middle = np.arctan2(0.5 * (z0 + z1), 0.5 * (y0 + y1))
    corners = np.stack([np.arctan2(z, y) for y in (y0, y1) for z in (z0, z1)])
    offset = np.remainder(corners - middle + math.pi, _TWO_PI) - math.pi
    low, high = middle + offset.min(axis=0) - 1e-14, middle + offset.max(axis=0) + 1e-14
    holds = (y0 <= 1e-12) & (y1 >= -1e-12) & (z0 <= 1e-12) & (z1 >= -1e-12)
    return np.where(holds, -math.pi, low), np.where(holds, math.pi, high)


def circle_arcs(y0: float, z0: float, y1: float, z1: float) -> list[tuple[float, float]]:
    """The angles of the points (cos, sin) that lie in a rectangle, as arcs."""
    y0, z0, y1, z1 = y0 - _ROUNDING, z0 - _ROUNDING, y1 + _ROUNDING, z1 + _ROUNDING
    if max(y0, z0) > 1.0 or min(y1, z1) < -1.0:
        return []
    near, far = math.acos(min(y1, 1.0)), math.acos(max(y0, -1.0))
    low, high = math.asin(max(z0, -1.0)), math.asin(min(z1, 1.0))
    parts = sorted(
        (max(a, c) - _ROUNDING, min(b, d) + _ROUNDING)
        for a, b in ((near, far), (-far, -near), (_TWO_PI - far, _TWO_PI - near))
        for c, d in ((low, high), (math.pi - high, math.pi - low))
        if max(a, c) <= min(b, d)
    )
    arcs: list[tuple[float, float]] = []
    for a, b in parts:
        if arcs and a <= arcs[-1][1]:
            arcs[-1] = (arcs[-1][0], max(arcs[-1][1], b))
        else:
            arcs.append((a, b))
    # From -pi/2 to 3 pi/2: what meets at both ends is one arc.
    if len(arcs) > 1 and arcs[0][0] + _TWO_PI <= arcs[-1][1]:
        (_, b), (a, _) = arcs.pop(0), arcs.pop()
        arcs.append((a, b + _TWO_PI))
    return arcs
