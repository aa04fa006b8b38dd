"""Mechanisms from Denavit-Hartenberg tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from kin_core.checks import shown
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

    Each row is Rz(theta) Tz(d) Tx(a) Rx(alpha).

    Args:
        name: Its name.
        a: Link lengths, shape (n,) [m].
        alpha: Twists, shape (n,) [rad].
        d: Offsets, shape (n,) [m].
        prismatic: Rows whose variable is d instead of theta.
        theta: Fixed angles of prismatic rows, and offsets of the others, shape (n,) [rad].
        ranges: Range of each variable [rad, m]; a whole turn (or -1 to 1 m) if None.
    """
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
    if ranges is not None:
        ranges = border.array("dh.ranges", ranges, (n, 2), MechanismError).tolist()
    factors: list[Constant | Motion] = []
    variables = []
    for k in range(n):
        link = translation(0, a[k]) @ rotation(0, alpha[k])
        if k in prismatic:
            factors += [Constant(rotation(2, fixed[k])), Motion(k), Constant(link)]
            lower, upper = (-1.0, 1.0) if ranges is None else ranges[k]
            variables.append(Variable(f"d{k + 1}", "translation", lower, upper))
        else:
            turn = rotation(2, fixed[k]) if fixed[k] else np.eye(4)
            factors += [Motion(k), Constant(turn @ translation(2, d[k]) @ link)]
            lower, upper = (-np.pi, np.pi) if ranges is None else ranges[k]
            variables.append(Variable(f"theta{k + 1}", "rotation", lower, upper))
    return Mechanism(name, tuple(variables), (Loop(tuple(factors)),))


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
        a: The table (``a``, ``alpha``, ``d``, ``prismatic``, ``theta``) and ``ranges`` are those
            of ``loop_from_dh``.
        alpha: See there.
        d: See there.
        q: A configuration whose tip pose is the target, shape (n,) [rad, m]; zeros if None.
        target: The target pose itself, shape (4, 4) [m].
        prismatic: See there.
        theta: See there.
        ranges: See there.
    """
    chain = loop_from_dh(name, a, alpha, d, prismatic=prismatic, theta=theta, ranges=ranges)
    loop = Loop((*chain.loops[0].factors, Constant(np.eye(4))))
    arm = replace(chain, loops=(loop,), target=np.eye(4))
    if target is None:
        target = arm.product(0, np.zeros(len(arm.variables)) if q is None else q)
    return arm.with_target(target)
