"""Poses on straight lines."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kin_core.rotations import exp_so3, log_so3
from kin_solvers import border
from kin_solvers.errors import RequestError, SizeError

__all__ = ["HALF_TURN", "MAX_POSES", "TURN_PER_STEP", "along_poses", "straight_line"]

Array = NDArray[np.float64]

#: Poses of a path at most.
MAX_POSES = 10_000
#: Turn of a step for each metre of its length, as in MoveIt [rad/m].
TURN_PER_STEP = 3.5
#: A turn from one pose to the next that is nearer to a half turn is refused [rad].
HALF_TURN = 1e-3


def straight_line(start: ArrayLike, goal: ArrayLike, count: int) -> Array:
    """Poses on a line, turning about one axis, evenly spread; shape (count, 4, 4) [m].

    Args:
        start: The first pose, shape (4, 4).
        goal: The last one, shape (4, 4).
        count: How many, both ends included.
    """
    count = border.whole("count", count, 2, MAX_POSES, RequestError)
    A, B = (border.array(name, T, (4, 4)) for name, T in (("start", start), ("goal", goal)))
    turn = log_so3(np.ascontiguousarray(A[:3, :3].T @ B[:3, :3]))
    if np.linalg.norm(turn) > math.pi - HALF_TURN:
        raise RequestError("goal", "is a half turn away from the start: which way is not known")
    shares = np.linspace(0.0, 1.0, count)
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, 3] = A[:3, 3] + shares[:, None] * (B[:3, 3] - A[:3, 3])
    poses[:, :3, :3] = [A[:3, :3] @ exp_so3(share * turn) for share in shares]
    poses[-1] = B
    return poses


def along_poses(
    poses: Sequence[ArrayLike] | Array, max_step: float, max_turn: float
) -> tuple[Array, NDArray[np.int64]]:
    """Poses on the straight lines between given ones, no farther apart than asked for.

    Args:
        poses: The given ones, shape (N, 4, 4) [m].
        max_step: Largest distance [m].
        max_turn: Largest turn [rad].

    Returns:
        The poses, shape (M, 4, 4), and which of them are the given ones, shape (N,).
    """
    given = border.array("poses", poses, (None, 4, 4))
    parts: list[Array] = [given[:1]]
    for k in range(len(given) - 1):
        turn = log_so3(np.ascontiguousarray(given[k, :3, :3].T @ given[k + 1, :3, :3]))
        way = float(np.linalg.norm(given[k + 1, :3, 3] - given[k, :3, 3]))
        steps = max(way / max_step, float(np.linalg.norm(turn)) / max_turn, 1.0)
        if sum(map(len, parts)) + steps > MAX_POSES:
            raise SizeError(f"poses: more than {MAX_POSES} with steps of {max_step:g} m")
        parts.append(straight_line(given[k], given[k + 1], math.ceil(steps - 1e-9) + 1)[1:])
    ends = np.cumsum([len(part) for part in parts]) - 1
    return np.concatenate(parts), ends
