"""Planted solutions: a search for lost ones.

A random loop is closed at a random configuration, so that this configuration is a solution; boxes
of all widths around it are searched for a few steps; the configuration must be in what is left. One
that is not has been lost: the rounding bound, a hull or a clipping is wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kin_common.rotations import exp_so3, inverse_transform
from kin_solvers import fast_kernels
from kin_solvers.mechanism import Constant, Loop, Mechanism, Motion, Variable
from kin_solvers.paper import PaperSearch
from kin_solvers.solve import Boxes
from kin_solvers.system import System

__all__ = ["PHASES", "Verdict", "planted_boxes", "planted_loop", "try_fast", "try_paper"]

Array = NDArray[np.float64]

#: Tunings that force each phase of the fast method: raw rows, preconditioned rows, both, default.
PHASES = {
    "raw": np.array([0.0, -1.0, 0.05]),
    "preconditioned": np.array([100.0, 100.0, 0.05]),
    "both": np.array([0.0, 100.0, 0.05]),
    "default": np.array([0.8, 0.8, 0.05]),
}
_TWO_PI = 2.0 * math.pi
_SLACK = 1e-15


@dataclass(frozen=True)
class Verdict:
    """How many trials were made, and in how many the planted solution was lost."""

    trials: int
    lost: int


def planted_loop(
    rng: np.random.Generator, joints: int, *, loops: int = 1, point: bool = False
) -> tuple[Mechanism, Array]:
    """A random mechanism, and a configuration that closes it.

    Args:
        rng: Source of chance.
        joints: Motions of each loop, revolute and prismatic about X, Y or Z, with either sign.
        loops: Loops; each shares about half of its variables with the first.
        point: Close by points instead of poses.
    """
    scale = 10.0 ** rng.uniform(-1.5, 1.5)
    variables: list[Variable] = []
    q: list[float] = []

    def new_variable() -> int:
        if rng.uniform() < 0.25:
            x = scale * rng.normal()
            a, b = x - scale * rng.uniform(0.1, 2.0), x + scale * rng.uniform(0.1, 2.0)
            variables.append(Variable(f"d{len(variables)}", "translation", a, b))
        else:
            x = rng.uniform(-math.pi, math.pi)
            if rng.uniform() < 0.5:
                variables.append(Variable(f"t{len(variables)}"))
            else:
                a, b = x - rng.uniform(0.01, 3.0), x + rng.uniform(0.01, 3.0)
                variables.append(Variable(f"t{len(variables)}", "rotation", a, b))
        q.append(x)
        return len(variables) - 1

    made: list[Loop] = []
    for number in range(loops):
        shared = list(rng.permutation(len(variables))[: joints // 2]) if number else []
        members = [int(k) for k in shared] + [new_variable() for _ in range(joints - len(shared))]
        factors: list[Constant | Motion] = []
        for k in rng.permutation(members):
            factors.append(Constant(_random_transform(rng, scale)))
            factors.append(Motion(int(k), int(rng.integers(3)), int(rng.choice([-1, 1]))))
        closure = "point" if point else "pose"
        open_loop = Loop((*factors, Constant(np.eye(4))), closure)
        product = Mechanism("open", tuple(variables), (*made, open_loop)).product(number, q)
        made.append(Loop((*factors, Constant(inverse_transform(product))), closure))
    return Mechanism("planted", tuple(variables), tuple(made)), np.array(q)


def _random_transform(rng: np.random.Generator, scale: float) -> Array:
    result = np.eye(4)
    kind = rng.integers(4)
    if kind == 0:  # quarter turns and plain lengths, as in real tables
        axis = np.eye(3)[rng.integers(3)]
        result[:3, :3] = exp_so3(axis * (math.pi / 2.0) * rng.integers(4))
        result[rng.integers(3), 3] = scale * rng.uniform()
    elif kind < 3:
        result[:3, :3] = exp_so3(rng.normal(size=3))
        result[:3, 3] = scale * rng.normal(size=3)
    return result


def planted_boxes(
    rng: np.random.Generator, system: System, q: Array, count: int
) -> tuple[Array, Array]:
    """Boxes around a configuration, widths from 1e-13 to the full range, shape (count, V) each."""
    span = system.upper - system.lower
    exponent = rng.uniform(-13.0, 0.0, size=(count, 1)) + rng.uniform(-1.0, 1.0, (count, len(q)))
    width = np.minimum(span * 10.0 ** np.minimum(exponent, 0.0) + 1e-14, span)
    width[rng.uniform(size=(count, len(q))) < 0.1] = 0.0
    width[:: max(1, count // 4)] = span
    where = rng.uniform(size=(count, len(q)))
    where[rng.uniform(size=where.shape) < 0.1] = 0.0  # on the edge
    lower = q - where * width
    upper = q + (1.0 - where) * width
    return np.minimum(lower, q), np.maximum(upper, q)


def _holds(lower: Array, upper: Array, cyclic: NDArray[np.bool_], q: Array) -> bool:
    """Whether a configuration lies in one of the boxes, whole turns apart."""
    turns = np.where(cyclic, np.round((0.5 * (lower + upper) - q) / _TWO_PI), 0.0)
    slack = _SLACK * (1.0 + np.abs(q)) + 3.0 * _SLACK * (turns != 0.0)
    x = q + turns * _TWO_PI
    inside = (lower - slack <= x) & (x <= upper + slack)
    inside |= (lower - slack <= q) & (q <= upper + slack)
    return bool(inside.all(axis=1).any())


def try_fast(
    system: System, q: Array, lower: Array, upper: Array, *, sigma: float, limit: int, tuning: Array
) -> Verdict:
    """Search boxes around a planted solution (all in system units) with the fast method."""
    size = len(q)
    tables = system.tables
    stack_lower, stack_upper = np.empty((limit + 2, size)), np.empty((limit + 2, size))
    found_lower, found_upper = np.empty((limit + 2, size)), np.empty((limit + 2, size))
    share, counters = np.empty(limit + 2), np.zeros(6)
    flag = np.zeros(1, dtype=np.int64)
    sides = np.full(size, sigma)
    lost = 0
    for a, b in zip(lower, upper, strict=True):
        stack_lower[0], stack_upper[0], share[0] = a, b, 1.0
        left, found = fast_kernels.search(
            tables, stack_lower, stack_upper, share, 1, sides, 0.8, limit, tuning, flag,
            found_lower, found_upper, counters,
        )  # fmt: skip
        lost += not (
            (left and _holds(stack_lower[:left], stack_upper[:left], system.cyclic, q))
            or (found and _holds(found_lower[:found], found_upper[:found], system.cyclic, q))
        )
    return Verdict(len(lower), lost)


def try_paper(
    mechanism: Mechanism, system: System, q: Array, lower: Array, upper: Array, *, limit: int
) -> Verdict:
    """The same with the paper's method."""
    search = PaperSearch(mechanism, system, 1e-3, 0.9)
    scalars = search.resumed(q[None], q[None], np.ones(1), raw=True)
    y = 0.5 * (scalars.lower[0] + scalars.upper[0])
    flag = np.zeros(1, dtype=np.int64)
    lost = 0
    boxes = search.resumed(lower, upper, np.ones(len(lower)), raw=True)
    for i in range(len(lower)):
        one = Boxes(boxes.lower[i : i + 1], boxes.upper[i : i + 1], boxes.share[i : i + 1])
        outcome = search.run(one, limit, flag)
        low = np.concatenate([outcome.found_lower, outcome.left.lower])
        high = np.concatenate([outcome.found_upper, outcome.left.upper])
        slack = 2e-15 * (1.0 + np.abs(y))
        lost += not bool(((low - slack <= y) & (y <= high + slack)).all(axis=1).any())
    return Verdict(len(lower), lost)
