"""Mechanisms from Denavit-Hartenberg tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kin_core.checks import shown
from kin_core.rotations import inverse_transform
from kin_solvers import border
from kin_solvers.errors import MechanismError, SizeError
from kin_solvers.mechanism import (
    MAX_JOINTS_PER_LOOP,
    Constant,
    Loop,
    Mechanism,
    Motion,
    Variable,
    rotation,
    translation,
)

__all__ = ["arm_from_dh", "loop_from_dh"]

Array = NDArray[np.float64]


def _rows(
    a: ArrayLike, alpha: ArrayLike, d: ArrayLike, prismatic: Sequence[int], theta: ArrayLike | None
) -> tuple[list[list[Constant | Motion]], list[str]]:
    """Factors of each row of a standard table: Rz(theta) Tz(d) Tx(a) Rx(alpha)."""
    a = border.array("dh.a", a, (None,), MechanismError)
    n = len(a)
    if n > MAX_JOINTS_PER_LOOP:
        raise SizeError(f"dh: {n} rows are more than the limit of {MAX_JOINTS_PER_LOOP}")
    alpha = border.array("dh.alpha", alpha, (n,), MechanismError)
    d = border.array("dh.d", d, (n,), MechanismError)
    fixed = np.zeros(n) if theta is None else border.array("dh.theta", theta, (n,), MechanismError)
    if isinstance(prismatic, str) or not isinstance(prismatic, (Sequence, set, np.ndarray)):
        raise MechanismError("dh.prismatic", f"must be rows, got {shown(prismatic)}")
    for row in prismatic:
        if not isinstance(row, (int, np.integer)) or not 0 <= row < n:
            raise MechanismError("dh.prismatic", f"must be rows from 0 on, got {shown(row)}")
    rows: list[list[Constant | Motion]] = []
    kinds = []
    for k in range(n):
        link = translation(0, a[k]) @ rotation(0, alpha[k])
        if k in prismatic:
            rows.append([Constant(rotation(2, fixed[k])), Motion(k), Constant(link)])
            kinds.append("translation")
        else:
            turn = rotation(2, fixed[k]) if fixed[k] else np.eye(4)
            rows.append([Motion(k), Constant(turn @ translation(2, d[k]) @ link)])
            kinds.append("rotation")
    return rows, kinds


def loop_from_dh(
    name: str,
    a: ArrayLike,
    alpha: ArrayLike,
    d: ArrayLike,
    *,
    prismatic: Sequence[int] = (),
    theta: ArrayLike | None = None,
    ranges: Sequence[tuple[float, float]] | None = None,
) -> Mechanism:
    """A single closed loop from a standard Denavit-Hartenberg table.

    Args:
        name: Its name.
        a: Link lengths, shape (n,) [m].
        alpha: Twists, shape (n,) [rad].
        d: Offsets, shape (n,) [m].
        prismatic: Rows whose variable is d instead of theta.
        theta: Fixed angles of prismatic rows, and offsets of the others, shape (n,) [rad].
        ranges: Range of each variable [rad, m]; a whole turn (or -1 to 1 m) if None.
    """
    rows, kinds = _rows(a, alpha, d, prismatic, theta)
    factors = tuple(f for row in rows for f in row)
    return Mechanism(name, _variables(kinds, ranges), (Loop(factors),))


def arm_from_dh(
    name: str,
    a: ArrayLike,
    alpha: ArrayLike,
    d: ArrayLike,
    *,
    q: ArrayLike | None = None,
    target: ArrayLike | None = None,
    prismatic: Sequence[int] = (),
    theta: ArrayLike | None = None,
    ranges: Sequence[tuple[float, float]] | None = None,
) -> Mechanism:
    """A serial arm from a standard table, closed at a pose of its tip.

    Args:
        name: Its name.
        a: Link lengths, shape (n,) [m].
        alpha: Twists, shape (n,) [rad].
        d: Offsets, shape (n,) [m].
        q: A configuration whose tip pose is the target, shape (n,) [rad, m].
        target: The target pose itself, shape (4, 4) [m].
        prismatic: Rows whose variable is d instead of theta.
        theta: Fixed angles of prismatic rows, and offsets of the others, shape (n,) [rad].
        ranges: Range of each variable [rad, m]; a whole turn (or -1 to 1 m) if None.
    """
    rows, kinds = _rows(a, alpha, d, prismatic, theta)
    factors = [f for row in rows for f in row]
    arm = Mechanism(
        name,
        _variables(kinds, ranges),
        (Loop((*factors, Constant(np.eye(4)))),),
        target=np.eye(4),
    )
    if target is None:
        return arm.with_target(arm.product(0, np.zeros(len(rows)) if q is None else q))
    return arm.with_target(target)


def _variables(
    kinds: Sequence[str], ranges: Sequence[tuple[float, float]] | None
) -> tuple[Variable, ...]:
    result = []
    if ranges is not None:
        ranges = border.array("dh.ranges", ranges, (len(kinds), 2), MechanismError).tolist()
    for k, kind in enumerate(kinds):
        name = f"theta{k + 1}" if kind == "rotation" else f"d{k + 1}"
        default = (-np.pi, np.pi) if kind == "rotation" else (-1.0, 1.0)
        lower, upper = default if ranges is None else ranges[k]
        result.append(Variable(name, kind, lower, upper))
    return tuple(result)


def closing(target: Array) -> Constant:
    """The factor that closes a chain at a pose."""
    return Constant(inverse_transform(target))
