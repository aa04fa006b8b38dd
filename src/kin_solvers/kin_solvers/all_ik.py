"""All inverse kinematics solutions of a serial arm, sorted by nearness to a seed."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kin_common import checks
from kin_common.task import Task
from kin_solvers import border
from kin_solvers.equations import Equations
from kin_solvers.errors import SettingsError
from kin_solvers.manifold import Manifold
from kin_solvers.mechanism import MAX_MAGNITUDE, Mechanism
from kin_solvers.solve import Settings, solve
from kin_solvers.system import System

__all__ = ["AllIK", "solve_all_ik"]

Array = NDArray[np.float64]

_TWO_PI = 2.0 * math.pi
#: Largest number of answers, turns of joints with wide ranges included.
MAX_ANSWERS = 100_000
#: Points along a self-motion curve.
SELF_MOTION_POINTS = 200


@dataclass(frozen=True)
class AllIK:
    """All joint configurations of an arm at a pose.

    Attributes:
        positions: Joint positions within the ranges, nearest to the seed first, shape (N, V)
            [rad, m]. With self-motion: samples of every component.
        distances: Euclidean distance to the seed, shape (N,).
        certified: Whether existence and uniqueness are proven, shape (N,).
        components: Component of each answer, shape (N,).
        dimension: 0 for isolated solutions, else the dimension of the self-motion.
        manifold: The cover that it comes from.
    """

    positions: Array
    distances: Array
    certified: NDArray[np.bool_]
    components: NDArray[np.int64]
    dimension: int
    manifold: Manifold


def solve_all_ik(
    arm: Mechanism,
    seed: ArrayLike | None = None,
    settings: Settings | None = None,
    *,
    task: Task | None = None,
) -> AllIK:
    """All configurations of an arm (closed at its target) sorted by distance to a seed.

    A joint whose range is wider than a turn appears at each of its turns within the range.

    Args:
        arm: The arm.
        seed: Joint positions, shape (V,) [rad, m]; zeros if None.
        settings: How to solve.
        task: Cancel, time budget and progress.
    """
    n = len(border.instance("arm", arm, Mechanism).variables)
    start = np.zeros(n) if seed is None else border.array("seed", seed, (n,), SettingsError)
    if np.abs(start).max() > MAX_MAGNITUDE:
        raise SettingsError("seed", f"reaches beyond {MAX_MAGNITUDE:g}")
    manifold = solve(arm, Settings(sigma=0.1) if settings is None else settings, task=task)
    points, labels, certified, dimension = _points(arm, manifold)
    positions, parents = _turns(arm, points)
    distances = np.linalg.norm(positions - start, axis=1)
    order = np.argsort(distances, kind="stable")
    return AllIK(
        positions=positions[order],
        distances=distances[order],
        certified=certified[parents][order],
        components=labels[parents][order],
        dimension=dimension,
        manifold=manifold,
    )


def _points(
    arm: Mechanism, manifold: Manifold
) -> tuple[Array, NDArray[np.int64], NDArray[np.bool_], int]:
    """One configuration per isolated solution, many along a self-motion."""
    system = System.of(arm)
    equations = Equations(system)
    points: list[Array] = []
    labels: list[int] = []
    certified: list[bool] = []
    dimension = 0
    for number, component in enumerate(manifold.components):
        sure = bool(manifold.certified[component.boxes].any())
        if component.dimension == 0:
            for box in component.boxes if not sure else component.boxes[:1]:
                middle = 0.5 * (manifold.lower[box] + manifold.upper[box])
                q = equations.newton(middle * system.unit)
                if q is None:
                    continue
                q = _to_middle(arm, q / system.unit, middle)
                if any(
                    np.abs(q - p).max() < 1e-7
                    for p, l in zip(points, labels, strict=True)
                    if l == number
                ):
                    continue
                points.append(q)
                labels.append(number)
                certified.append(bool(manifold.certified[box]))
        elif component.dimension == 1 and component.point is not None:
            dimension = max(dimension, 1)
            curve, _ = manifold.curve(number)
            step = max(1, len(curve) // SELF_MOTION_POINTS)
            for q in curve[::step]:
                points.append(_to_middle(arm, q, np.zeros(len(q))))
                labels.append(number)
                certified.append(False)
        else:
            dimension = max(dimension, component.dimension)
            if component.point is not None:
                points.append(component.point)
                labels.append(number)
                certified.append(False)
    size = len(arm.variables)
    return (
        np.array(points).reshape(-1, size),
        np.array(labels, dtype=np.int64),
        np.array(certified, dtype=bool),
        dimension,
    )


def _to_middle(arm: Mechanism, q: Array, middle: Array) -> Array:
    """The same configuration with cyclic angles within half a turn of the middle."""
    cyclic = np.array([v.cyclic for v in arm.variables])
    turned = middle + np.remainder(q - middle + math.pi, _TWO_PI) - math.pi
    return np.where(cyclic, turned, q)


def _turns(arm: Mechanism, points: Array) -> tuple[Array, NDArray[np.int64]]:
    """Every representative of each point within the ranges, and the point it comes from."""
    result: list[tuple[float, ...]] = []
    parents: list[int] = []
    for number, q in enumerate(points):
        choices = []
        for v, x in zip(arm.variables, q, strict=True):
            if v.kind == "translation":
                choices.append(
                    [min(max(x, v.lower), v.upper)] if v.lower - 1e-9 <= x <= v.upper + 1e-9 else []
                )
                continue
            first = math.ceil((v.lower - 1e-9 - x) / _TWO_PI)
            last = math.floor((v.upper + 1e-9 - x) / _TWO_PI)
            choices.append(
                [min(max(x + _TWO_PI * k, v.lower), v.upper) for k in range(first, last + 1)]
            )
        total = math.prod(len(c) for c in choices)
        with border.own_errors():
            checks.count("solutions with all turns", len(result) + total, MAX_ANSWERS)
        for combination in itertools.product(*choices):
            result.append(combination)
            parents.append(number)
    size = len(arm.variables)
    return np.array(result).reshape(-1, size), np.array(parents, dtype=np.int64)
