"""Planted solutions: a search for lost ones.

A random loop is closed at a random configuration, so that this configuration is a solution; boxes
of all widths around it are searched for a few steps; the configuration must be in what is left. One
that is not has been lost: the rounding bound, a hull or a clipping is wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kin_core.rotations import exp_so3, inverse_transform, transform
from kin_solvers import fast_kernels
from kin_solvers.boxes import Boxes
from kin_solvers.compiled import jit
from kin_solvers.driver import Goal, Kernel, Tuning, run
from kin_solvers.errors import CuikError
from kin_solvers.library import platform
from kin_solvers.mechanism import Constant, Loop, Mechanism, Motion, Variable, rotation
from kin_solvers.paper import PaperSearch
from kin_solvers.planar import PlanarSystem
from kin_solvers.platform import PlatformSystem
from kin_solvers.reduced import Reduced
from kin_solvers.system import System

__all__ = [
    "PHASES",
    "Verdict",
    "campaign",
    "planted_boxes",
    "planted_loop",
    "planted_planar",
    "planted_platform",
    "try_fast",
    "try_paper",
    "try_reduced",
]

Array = NDArray[np.float64]

#: Tunings that force each phase of the fast method: raw rows, preconditioned rows, both, default.
PHASES = {
    "raw": Tuning(raw_above=0.0, sums_below=-1.0, regularisation=0.05),
    "preconditioned": Tuning(raw_above=100.0, sums_below=100.0, regularisation=0.05),
    "both": Tuning(raw_above=0.0, sums_below=100.0, regularisation=0.05),
    "default": Tuning(raw_above=0.8, sums_below=0.8, regularisation=0.05),
}
_TWO_PI = 2.0 * math.pi
T = TypeVar("T")
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

    made: list[Loop] = []
    for number in range(loops):
        shared = list(rng.permutation(len(variables))[: joints // 2]) if number else []
        members = [int(k) for k in shared] + [
            _new_variable(rng, scale, variables, q) for _ in range(joints - len(shared))
        ]
        factors: list[Constant | Motion] = []
        for k in rng.permutation(members):
            factors.append(Constant(_random_transform(rng, scale)))
            factors.append(Motion(int(k), int(rng.integers(3)), int(rng.choice([-1, 1]))))
        closure = "point" if point else "pose"
        made.append(_closed(factors, closure, variables, made, q))
    return Mechanism("planted", tuple(variables), tuple(made)), np.array(q)


def _new_variable(
    rng: np.random.Generator, scale: float, variables: list[Variable], q: list[float]
) -> int:
    """A rotation, or once in four times a translation, with its value; its index."""
    number = len(variables)
    if rng.uniform() < 0.25:
        x = float(scale * rng.normal())
        below, above = scale * rng.uniform(0.1, 2.0, size=2)
        variables.append(Variable(f"d{number}", "translation", x - below, x + above))
    else:
        x = rng.uniform(-math.pi, math.pi)
        if rng.uniform() < 0.5:
            variables.append(Variable(f"t{number}"))
        else:
            below, above = rng.uniform(0.01, 3.0, size=2)
            variables.append(Variable(f"t{number}", "rotation", x - below, x + above))
    q.append(x)
    return number


def _closed(
    factors: list[Constant | Motion],
    closure: str,
    variables: list[Variable],
    made: list[Loop],
    q: list[float],
) -> Loop:
    """A loop of factors and of the constant that closes it at a configuration."""
    open_loop = Loop((*factors, Constant(np.eye(4))), closure)
    product = Mechanism("open", tuple(variables), (*made, open_loop)).product(len(made), q)
    return Loop((*factors, Constant(inverse_transform(product))), closure)


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
    rng: np.random.Generator, lowest: Array, highest: Array, q: Array, count: int
) -> tuple[Array, Array]:
    """Boxes around a configuration, widths from 1e-13 to the full range, shape (count, V) each."""
    span = highest - lowest
    exponent = rng.uniform(-13.0, 0.0, size=(count, 1)) + rng.uniform(-1.0, 1.0, (count, len(q)))
    width = np.minimum(span * 10.0 ** np.minimum(exponent, 0.0) + 1e-14, span)
    width[rng.uniform(size=(count, len(q))) < 0.1] = 0.0
    width[:: max(1, count // 4)] = span
    where = rng.uniform(size=(count, len(q)))
    where[rng.uniform(size=where.shape) < 0.1] = 0.0  # on the edge
    lower = q - where * width
    upper = q + (1.0 - where) * width
    return np.minimum(lower, q), np.maximum(upper, q)


def planted_planar(
    rng: np.random.Generator, joints: int, *, loops: int = 1
) -> tuple[Mechanism, Array]:
    """A random planar mechanism in a plane of any direction, and a configuration that closes it."""
    scale = 10.0 ** rng.uniform(-1.5, 1.5)
    variables: list[Variable] = []
    q: list[float] = []
    made: list[Loop] = []
    for number in range(loops):
        shared = [int(k) for k in rng.permutation(len(variables))[: joints // 3]] if number else []
        new = [_new_variable(rng, scale, variables, q) for _ in range(joints - len(shared))]
        members = shared + new
        tilt = transform(exp_so3(rng.normal(size=3)), np.zeros(3))
        factors: list[Constant | Motion] = [Constant(tilt)]
        for k in members:
            link = rotation(2, float(rng.uniform(-3.0, 3.0)))
            link[:2, 3] = scale * rng.normal(size=2)
            axis = int(rng.integers(2)) if variables[k].kind == "translation" else 2
            factors += [Constant(link), Motion(k, axis, int(rng.choice([-1, 1])))]
        closure = "point" if rng.uniform() < 0.3 else "pose"
        made.append(_closed(factors, closure, variables, made, q))
    return Mechanism("planted", tuple(variables), tuple(made)), np.array(q)


def planted_platform(rng: np.random.Generator) -> tuple[Mechanism, Array]:
    """A random platform on six legs, and azimuth, elevation, yaw, pitch, roll that close it."""
    scale = 10.0 ** rng.uniform(-1.5, 1.5)
    base, top = scale * rng.normal(size=(6, 3)), scale * rng.normal(size=(6, 3))
    half = np.array([math.pi, math.pi / 2, math.pi, math.pi / 2, math.pi])
    u = rng.uniform(-half, half)
    length = scale * rng.uniform(0.3, 2.0)
    arm = rotation(2, u[0]) @ rotation(1, u[1])
    turn = (arm @ rotation(2, u[2]) @ rotation(1, u[3]) @ rotation(0, u[4]))[:3, :3]
    place = base[0] + arm[:3, 0] * length
    lengths = np.linalg.norm(place + (top - top[0]) @ turn.T - base, axis=1)
    lengths[0] = length
    return platform("planted", base, top, lengths), u


@jit
def _holds(lower: Any, upper: Any, count: Any, cyclic: Any, q: Any) -> Any:
    """Whether a configuration lies in one of the first boxes, whole turns apart."""
    for i in range(count):
        inside = True
        for k in range(q.size):
            a = lower[i, k]
            b = upper[i, k]
            slack = _SLACK * (1.0 + abs(q[k]))
            here = a - slack <= q[k] <= b + slack
            if not here and cyclic[k]:
                turns = round((0.5 * (a + b) - q[k]) / _TWO_PI)
                x = q[k] + turns * _TWO_PI
                slack *= 4.0
                here = a - slack <= x <= b + slack
            inside = inside and here
        if inside:
            return True
    return False


def _try(
    kernel: Kernel[T],
    tables: T,
    cyclic: NDArray[np.bool_],
    q: Array,
    lower: Array,
    upper: Array,
    goal: Goal,
) -> Verdict:
    """Search boxes around a planted solution, one by one, for a few steps each."""
    lost = 0
    for a, b in zip(lower, upper, strict=True):
        outcome = run(kernel, tables, Boxes(a[None], b[None], np.ones(1)), goal)
        left = outcome.left
        lost += not (
            _holds(left.lower, left.upper, len(left), cyclic, q)
            or _holds(outcome.found_lower, outcome.found_upper, len(outcome.found_lower), cyclic, q)
        )
    return Verdict(len(lower), lost)


def _goal(size: int, sigma: float, limit: int, tuning: Tuning) -> Goal:
    flag = np.zeros(1, dtype=np.int64)
    return Goal(np.full(size, sigma), 0.8, limit, True, flag, tuning)


def try_fast(
    system: System,
    q: Array,
    lower: Array,
    upper: Array,
    *,
    sigma: float,
    limit: int,
    tuning: Tuning,
) -> Verdict:
    """Search boxes around a planted solution (all in system units) with the fast method."""
    goal = _goal(len(q), sigma, limit, tuning)
    return _try(fast_kernels.search, system.tables, system.cyclic, q, lower, upper, goal)


def try_reduced(
    reduced: Reduced,
    u: Array,
    lower: Array,
    upper: Array,
    *,
    sigma: float,
    limit: int,
    tuning: Tuning,
) -> Verdict:
    """The same with the planar or the platform form; ``u`` and the boxes are of its unknowns."""
    goal = _goal(len(u), sigma, limit, tuning)
    cyclic = reduced.tables.arcs["cyclic"]
    return _try(reduced.kernel, reduced.tables, cyclic, u, lower, upper, goal)


def campaign(seed: int, boxes: int) -> Verdict:
    """One mechanism of the campaign; which one, which phase, which boxes follows from the seed."""
    rng = np.random.default_rng([2026, seed])
    tuning = list(PHASES.values())[seed % len(PHASES)]
    sigma = float(10.0 ** rng.uniform(-14.0, -1.0))
    kind = (seed // 4) % 10
    joints = 3 + (seed // 40) % 6
    if kind == 0:
        mechanism, u = planted_platform(rng)
        platform_form = PlatformSystem.of(System.of(mechanism))
        if platform_form is None:
            raise CuikError("a planted platform is not seen as one")
        lower, upper = planted_boxes(rng, platform_form.lower, platform_form.upper, u, boxes)
        return try_reduced(platform_form, u, lower, upper, sigma=sigma, limit=2, tuning=tuning)
    if kind in (1, 2):
        mechanism, q = planted_planar(rng, joints, loops=int(rng.integers(1, 4)))
        system = System.of(mechanism)
        planar_form = PlanarSystem.of(system)
        if planar_form is not None:
            solution = q * system.unit
            lower, upper = planted_boxes(rng, system.lower, system.upper, solution, boxes)
            low, high = planar_form.from_joints(lower, upper)
            u = np.concatenate([planar_form.turns @ solution, solution[system.translation]])
            there = try_reduced(planar_form, u, low, high, sigma=sigma, limit=2, tuning=tuning)
            return Verdict(there.trials, there.lost + lost_on_the_way(planar_form, solution, u))
    else:
        mechanism, q = planted_loop(
            rng, joints, loops=1 + (seed % 7 == 0), point=bool(rng.uniform() < 0.2)
        )
        system = System.of(mechanism)
    solution = q * system.unit
    lower, upper = planted_boxes(rng, system.lower, system.upper, solution, boxes)
    if kind == 3 and joints <= 5 and len(q) <= 5:
        return try_paper(mechanism, system, solution, lower, upper, limit=2)
    return try_fast(system, solution, lower, upper, sigma=sigma, limit=2, tuning=tuning)


def lost_on_the_way(planar: PlanarSystem, q: Array, u: Array) -> int:
    """Whether a planted solution is lost between absolute angles and joint variables."""
    lower, upper, _ = planar.to_joints(u[None], u[None])
    return 0 if _holds(lower, upper, len(lower), planar.system.cyclic, q) else 1


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
