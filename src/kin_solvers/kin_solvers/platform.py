"""Platforms on legs of fixed length: the pose first, the legs afterwards.

A leg is a loop that is closed by a point and begins with two rotations about axes that meet, which
no other loop has. The point of the platform then keeps its distance from the point where the axes
meet: one equation without the angles of the leg. If all loops are legs that end in the same chain
of motions, the variables of this chain are the only unknowns of the search.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from kin_solvers.driver import Kernel, Tuning
from kin_solvers.fast_kernels import LOOP
from kin_solvers.hulls import make_arcs
from kin_solvers.platform_kernels import LegTables, PlatformTables, search
from kin_solvers.products import FACTOR, HALF, make_joints
from kin_solvers.system import UNIT_ROUNDOFF, System, row_bounds

__all__ = ["PlatformSystem"]

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Motions of the platform's chain at most: their vertex products are all kept.
MAX_CHAIN = 7
#: Distance of two axes up to which they meet, besides what is unknown of it; the rows are widened
#: for it.
MAX_GAP = 1e-14


@dataclass(frozen=True)
class PlatformSystem:
    """A platform as the equations of its legs.

    Attributes:
        system: The mechanism in normal form.
        chain: Variables of the platform's chain, in order, shape (n,).
        tables: What the kernel takes.
    """

    tuning: ClassVar[Tuning] = Tuning(raw_above=0.5, sums_below=1.6, regularisation=0.05)
    #: Largest box of the pose from which the many angles of the legs are looked for [rad, m].
    coarsest: ClassVar[float] = 0.02
    #: The unknowns are some of the variables.
    selects: ClassVar[bool] = True

    system: System
    chain: IntArray
    tables: PlatformTables

    @classmethod
    def of(cls, system: System) -> PlatformSystem | None:
        """The platform form; None if the mechanism is no platform on legs."""
        lengths = np.diff(system.offsets)
        n = int(lengths[0]) - 2
        if len(lengths) < 2 or np.any(lengths != n + 2) or not 2 <= n <= MAX_CHAIN:
            return None
        if not system.point.all():
            return None
        owners = [system.factor_variable[o : o + n + 2] for o in system.offsets[:-1]]
        chain = owners[0][2:]
        own = np.concatenate([o[:2] for o in owners])
        if any(not np.array_equal(o[2:], chain) for o in owners):
            return None
        if len({*own, *chain}) != len(own) + n:
            return None
        inner = [system.C[o + 2 : o + n + 1] for o in system.offsets[:-1]]
        if any(not np.array_equal(c, inner[0]) for c in inner):
            return None
        rows, constants, slack = [], [], []
        for l in range(len(lengths)):
            leg = _leg(system, l, n)
            if leg is None:
                return None
            rows.append(leg[0])
            constants.append(leg[1])
            slack.append(leg[2])
        identity = np.zeros((1, 16))
        identity[0, [0, 5, 10]] = 1.0
        C = np.concatenate([inner[0], identity])
        reach = float(system.reach.max())
        # docs/cuik.md: of entries of the product, of the equation of each leg, of a sum of rows.
        unknown = system.unknown.max(axis=0)
        product = row_bounds(2 * n + len(rows) + 3, reach, unknown[0], unknown[1], 1.0)
        summed = 32.0 * (len(rows) + 4) * UNIT_ROUNDOFF * reach**2
        factors = np.zeros(n, dtype=FACTOR)
        factors["variable"], factors["C"] = np.arange(n), C
        halves = np.zeros((1, 2), dtype=HALF)
        halves[0, 1]["length"] = n
        tables = PlatformTables(
            arcs=make_arcs(system.translation[chain], system.cyclic[chain]),
            loops=np.zeros(1, dtype=LOOP),
            factors=factors,
            joints=make_joints(np.arange(n)),
            halves=halves,
            legs=LegTables(
                W=np.array([*rows, np.zeros(16)]),
                constant=np.array(constants),
                bounds=product,
                slack=np.array(slack),
                summed=summed,
            ),
            reach=reach,
        )
        return cls(system, chain.copy(), tables)

    @property
    def kernel(self) -> Kernel[PlatformTables]:
        """The compiled search."""
        return search

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return len(self.chain)

    @property
    def lower(self) -> Array:
        """Lower ends of the unknowns, shape (n,)."""
        return self.system.lower[self.chain]

    @property
    def upper(self) -> Array:
        """Upper ends of the unknowns, shape (n,)."""
        return self.system.upper[self.chain]

    def to_joints(self, lower: Array, upper: Array) -> tuple[Array, Array, IntArray]:
        """Boxes of all variables: the angles of the legs in their ranges; shapes (N, V)."""
        low = np.repeat(self.system.lower[None], len(lower), axis=0)
        high = np.repeat(self.system.upper[None], len(lower), axis=0)
        low[:, self.chain], high[:, self.chain] = lower, upper
        return low, high, np.arange(len(lower))

    def from_joints(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Boxes of the unknowns from boxes of all variables, shape (N, V)."""
        return lower[:, self.chain].copy(), upper[:, self.chain].copy()


def _leg(system: System, loop: int, n: int) -> tuple[Array, float, float] | None:
    """Row w and number c of one leg: w . (conformal entries of the chain) + c = 0.

    The third number bounds the left side at the solutions of every mechanism that is meant.
    """
    o = int(system.offsets[loop])
    if system.translation[system.factor_variable[o : o + 2]].any():
        return None
    between, after, last = (system.C[k, :12].reshape(3, 4) for k in (o, o + 1, o + n + 1))
    # In the frame after the first rotation: its axis is z, the second passes through t along d.
    d, t = between[:, 2], between[:, 3]
    if abs(d[2]) > 0.5:  # nearly parallel
        return None
    # Height on the first axis and travel on the second where they come closest.
    A = np.array([[0.0, -d[0]], [0.0, -d[1]], [1.0, -d[2]]])
    (height, travel), *_ = np.linalg.lstsq(A, t, rcond=None)
    reach = float(system.reach[loop])
    gap = 2.0 * float(np.abs(A @ (height, travel) - t).max()) + 32.0 * UNIT_ROUNDOFF * reach
    radius, unknown = system.C_radius[o : o + n + 2], float(system.unknown[loop, 1])
    if gap > 2.0 * MAX_GAP * (1.0 + reach) + 4.0 * unknown:
        return None
    goal = system.C_first[loop, [3, 7, 11]]
    length = float(np.sum((goal - (0.0, 0.0, height)) ** 2))
    # The meeting point seen from the frame after the second rotation: (0, 0, travel); then from the
    # chain's: b = after^-1 of it.
    b = after[:, :3].T @ (np.array([0.0, 0.0, travel]) - after[:, 3])
    p = last[:, 3]
    row = np.zeros(16)
    for r in range(3):
        row[4 * r : 4 * r + 3] = -2.0 * b[r] * p
        row[4 * r + 3] = -2.0 * b[r]
    row[12:15] = p
    row[15] = 1.0
    # docs/cuik.md: how far the axes may miss each other, and b, p and the length may be off.
    gap += radius[0, 1] + 1.2 * reach * radius[0, 0]
    off = 2.2 * reach * (radius[1, 0] + 8.0 * UNIT_ROUNDOFF) + radius[1, 1] + radius[n + 1, 1]
    off += float(system.first_radius[loop, 1])
    slack = 6.0 * (reach + gap + off) * (gap + off) + 64.0 * UNIT_ROUNDOFF * reach**2
    return row, float(p @ p + b @ b - length), slack
