"""Planted solutions in mechanisms made to be hard on a rounding bound; a second campaign.

``planted`` makes mechanisms as people write them. Here lengths of one loop span eight decades,
constants cancel, frames lie far away, angles are at or next to multiples of pi/2, constants are
nearly the identity, travels are long, solutions lie on the edge of a range, ranges lie turns away.

The ground truth is exact. A mechanism stands for every mechanism whose constants are rigid and lie
within ``folding.SPREAD`` of the stored ones. One of these, the *true* one, closes exactly at the
planted configuration: all its constants but the last are the nearest rigid ones of doubles, and the
last is the inverse of the product of the others in 106 bits. What is stored is the true mechanism,
rounded to doubles, or (every second time) moved by up to three quarters of that spread. So the
documented guarantee says that no search may lose the planted configuration.

``python -m benchmarks.baselines.cuik_adversarial --trials 1000000 --seed 0`` runs the campaign.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.baselines.cuik_completeness import (
    PHASES,
    Verdict,
    lost_on_the_way,
    planted_boxes,
    try_fast,
    try_paper,
    try_reduced,
)
from kin_core.rotations import exp_so3, inverse_transform, transform
from kin_core.task import Task
from kin_solvers import double_double
from kin_solvers.driver import Tuning
from kin_solvers.errors import MechanismError
from kin_solvers.folding import UNIT_ROUNDOFF
from kin_solvers.library import platform
from kin_solvers.mechanism import Constant, Loop, Mechanism, Motion, Variable, rotation
from kin_solvers.planar import PlanarSystem
from kin_solvers.platform import PlatformSystem
from kin_solvers.settings import Settings
from kin_solvers.solve import solve
from kin_solvers.system import System

__all__ = [
    "KERNELS",
    "Case",
    "adversarial_campaign",
    "hard_loop",
    "hard_planar",
    "hard_platform",
    "run",
]

Array = NDArray[np.float64]
Factors = list[Constant | Motion]

#: What a case is searched with; the seed of a case says which.
KERNELS = ("fast", "planar", "fast", "paper", "fast", "platform", "fast", "solve")
_TWO_PI = 2.0 * math.pi
_U = UNIT_ROUNDOFF
#: What constants are moved by at most: three quarters of the spread.
_NUDGE = 12.0 * _U


@dataclass(frozen=True)
class Case:
    """A mechanism as it is stored, and a configuration at which the true one closes.

    Attributes:
        mechanism: The mechanism.
        q: The planted configuration, shape (V,) [rad, m].
        unknowns: For a platform: its variables among q that are known exactly.
    """

    mechanism: Mechanism
    q: Array
    unknowns: tuple[int, ...] = ()


def hard_loop(
    rng: np.random.Generator, joints: int, *, loops: int = 1, point: bool = False
) -> Case:
    """A mechanism in space; arguments as ``planted.planted_loop``."""
    return _retried(lambda: _loops(rng, joints, loops, point, planar=False))


def hard_planar(rng: np.random.Generator, joints: int, *, loops: int = 1) -> Case:
    """A planar mechanism in a plane of any direction, near or far."""
    return _retried(lambda: _loops(rng, joints, loops, rng.uniform() < 0.3, planar=True))


def _retried(make: Callable[[], Case]) -> Case:
    """The first case that is a mechanism: sums of lengths may pass the largest one allowed."""
    for _ in range(100):
        try:
            return make()
        except MechanismError:
            continue
    raise MechanismError("adversarial", "100 cases in a row are no mechanisms")


@dataclass
class _Maker:
    """Draws the parts of one mechanism; the style says what it is hard in."""

    rng: np.random.Generator
    planar: bool
    style: str
    scale: float
    variables: list[Variable] = field(default_factory=list)
    q: list[float] = field(default_factory=list)

    def angle(self) -> float:
        """An angle: a multiple of pi/2, next to one, or any."""
        rng = self.rng
        quarter = float(rng.integers(-2, 3)) * (math.pi / 2.0)
        kind = rng.integers(4)
        if kind == 0:
            return quarter
        if kind == 1:
            return quarter + float(rng.choice([-1, 1]) * 10.0 ** rng.uniform(-16.0, -6.0))
        return float(rng.uniform(-math.pi, math.pi))

    def size(self) -> float:
        """A length [m]."""
        if self.style == "decades":
            return float(10.0 ** self.rng.uniform(-4.0, 4.0))
        return self.scale * float(self.rng.uniform(0.1, 2.0))

    def turn(self) -> Array:
        """A rotation, shape (3, 3): of a table, nearly the identity, or any."""
        rng = self.rng
        kind = rng.integers(5)
        if self.planar:
            small = float(rng.normal() * 10.0 ** rng.uniform(-16.0, -5.0))
            return rotation(2, small if kind == 0 else self.angle())[:3, :3]
        if kind == 0:
            return np.eye(3)
        if kind == 1:
            return exp_so3(rng.normal(size=3) * 10.0 ** rng.uniform(-16.0, -5.0))
        if kind == 2:
            return exp_so3(np.eye(3)[rng.integers(3)] * self.angle())
        return exp_so3(rng.normal(size=3))

    def loose(self, R: Array) -> Array:
        """A rotation that is sometimes written down badly: it is the one nearest to the matrix."""
        if self.rng.uniform() < 0.95:
            return R
        S = self.rng.uniform(-1.0, 1.0, size=(3, 3))
        S[2, :2] = S[:2, 2] = 0.0  # planar ones stay planar
        return R @ (np.eye(3) + 0.5 * (S + S.T) * 10.0 ** self.rng.uniform(-15.0, -6.6))

    def offset(self, size: float) -> Array:
        """A translation of a length, shape (3,): none, along an axis, or any."""
        rng = self.rng
        kind = rng.integers(6)
        axes = 2 if self.planar else 3
        result = np.zeros(3)
        if kind == 1:
            result[rng.integers(axes)] = size * rng.choice([-1, 1])
        elif kind > 1:
            result[:axes] = size * rng.normal(size=axes)
        return result

    def gap(self) -> list[Array]:
        """The constants between two motions: one to three, or some that cancel."""
        parts = [
            transform(self.loose(self.turn()), self.offset(self.size()))
            for _ in range(int(self.rng.integers(1, 4)))
        ]
        cancels = {"cancelling": 0.6}.get(self.style, 0.05)
        if self.rng.uniform() < cancels:
            far = self.far(10.0 ** self.rng.uniform(0.0, 5.0))
            parts = [far, *parts[:-1], inverse_transform(far), parts[-1]]
        return parts

    def far(self, distance: float) -> Array:
        """A frame far away; in any direction for planar mechanisms too."""
        direction = self.rng.normal(size=3)
        there = distance * direction / np.linalg.norm(direction)
        return transform(exp_so3(self.rng.normal(size=3)), there)

    def variable(self) -> int:
        """A new variable with its value; its index."""
        rng = self.rng
        number = len(self.variables)
        if rng.uniform() < (0.5 if self.style == "travels" else 0.2):
            long = self.scale * 10.0 ** rng.uniform(0.0, 4.0 if self.style == "travels" else 1.0)
            x = float(long * rng.uniform(-1.0, 1.0))
            a, b = self._around(x, long)
            self.variables.append(Variable(f"d{number}", "translation", a, b))
        else:
            x = self.angle()
            if rng.uniform() < 0.5:
                self.variables.append(Variable(f"t{number}"))
            else:
                if rng.uniform() < 0.3:  # a range some turns away
                    x += _TWO_PI * float(rng.integers(-100, 101))
                a, b = self._around(x, float(rng.choice([3.1, 1.0, 1e-3, 1e-7])))
                self.variables.append(Variable(f"t{number}", "rotation", a, b))
        self.q.append(x)
        return number

    def _around(self, x: float, width: float) -> tuple[float, float]:
        """A range that holds a value: inside, or on its edge."""
        a, b = (float(w) for w in width * self.rng.uniform(0.01, 1.0, size=2))
        edge = self.rng.integers(4)
        return (x if edge == 0 else x - a), (x if edge == 1 else x + b)


def _loops(rng: np.random.Generator, joints: int, loops: int, point: bool, *, planar: bool) -> Case:
    style = str(rng.choice(["decades", "cancelling", "frame", "travels", "tables"]))
    maker = _Maker(rng, planar, style, float(10.0 ** rng.uniform(-3.0, 1.0)))
    made: list[Factors] = []
    for number in range(loops):
        shared = [int(k) for k in rng.permutation(len(maker.variables))[: joints // 2]]
        members = shared if number else []
        members = members + [maker.variable() for _ in range(joints - len(members))]
        factors: Factors = []
        if style == "frame":
            factors.append(Constant(maker.far(10.0 ** rng.uniform(2.0, 5.5))))
        elif planar:
            factors.append(Constant(transform(exp_so3(rng.normal(size=3)), np.zeros(3))))
        for k in members if planar else rng.permutation(members):
            factors += [Constant(matrix) for matrix in maker.gap()]
            moving = maker.variables[int(k)].kind == "translation"
            axis = int(rng.integers(3))
            if planar:
                axis = axis % 2 if moving else 2
            factors.append(Motion(int(k), axis, int(rng.choice([-1, 1]))))
        made.append([*factors, Constant(_closing(factors, maker))])
    nudged = rng.uniform() < 0.5
    closure = "point" if point else "pose"
    stored = tuple(
        Loop(tuple(_nudged(rng, f) if nudged else f for f in factors), closure) for factors in made
    )
    mechanism = Mechanism("adversarial", tuple(maker.variables), stored)
    return Case(mechanism, np.array(maker.q))


def _product(factors: Factors, variables: list[Variable], q: Array) -> Array:
    """The product of factors at a configuration in 106 bits, shape (3, 4, 2)."""
    M, G, X = np.zeros((3, 4, 2)), np.empty((3, 4, 2)), np.empty((3, 4, 2))
    M[[0, 1, 2], [0, 1, 2], 0] = 1.0
    for factor in factors:
        if isinstance(factor, Constant):
            double_double.rigid(np.ascontiguousarray(factor.matrix), G)
        else:
            moving = variables[factor.variable].kind == "translation"
            double_double.move(factor.axis, moving, factor.sign * float(q[factor.variable]), G)
        double_double.product(M, G, X)
        M[:] = X
    return M


def _closing(factors: Factors, maker: _Maker) -> Array:
    """The constant that closes a loop at the planted configuration, rounded once."""
    M = _product(factors, maker.variables, np.array(maker.q))
    inverse = np.zeros((3, 4, 2))
    inverse[:, :3] = M[:, :3].transpose(1, 0, 2)
    away, result = np.zeros((3, 4, 2)), np.empty((3, 4, 2))
    away[[0, 1, 2], [0, 1, 2], 0] = 1.0
    away[:, 3] = -M[:, 3]
    double_double.product(inverse, away, result)
    closing = np.eye(4)
    closing[:3] = result[:, :, 0]
    return closing


def _nudged(rng: np.random.Generator, factor: Constant | Motion) -> Constant | Motion:
    """A constant that is stored a little beside the true one."""
    if isinstance(factor, Motion):
        return factor
    matrix = factor.matrix.copy()
    x, y, z = rng.normal(size=3)
    skew = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    skew *= rng.uniform(0.0, _NUDGE) / float(np.linalg.norm(skew))
    matrix[:3, :3] += matrix[:3, :3] @ skew
    direction = rng.normal(size=3)
    direction *= rng.uniform(0.0, _NUDGE) / float(np.linalg.norm(direction))
    matrix[:3, 3] += float(np.linalg.norm(matrix[:3, 3])) * direction
    return Constant(matrix)


def hard_platform(rng: np.random.Generator) -> Case:
    """A platform on six legs: lengths over decades, points far from the origin."""
    scale = 10.0 ** rng.uniform(-3.0, 3.0)
    sizes = scale * 10.0 ** rng.uniform(-3.0, 1.0, size=(2, 6, 1))
    base, top = sizes[0] * rng.normal(size=(6, 3)), sizes[1] * rng.normal(size=(6, 3))
    base += scale * 10.0 ** rng.uniform(-2.0, 2.0) * rng.normal(size=3)
    half = np.array([math.pi, math.pi / 2, math.pi, math.pi / 2, math.pi])
    u = rng.uniform(-half, half)
    table = rng.uniform(size=5) < 0.3
    u[table] = np.clip(
        np.round(u[table] / (math.pi / 2)) * (math.pi / 2), -half[table], half[table]
    )
    lengths = np.full(6, scale * rng.uniform(0.3, 2.0))
    mechanism = platform("adversarial", base, top, lengths)
    q = np.zeros(len(mechanism.variables))
    unknowns = (0, 1, 12, 13, 14)
    q[list(unknowns)] = u
    loops = []
    nudged = rng.uniform() < 0.5
    for k, loop in enumerate(mechanism.loops, 1):
        factors = list(loop.factors)
        # The leg is as long as the rest of its loop needs, in 106 bits.
        M = _product(factors[3:], list(mechanism.variables), q)
        x, y, z = (float(v) for v in M[:, 3, 0])
        length = math.hypot(x, y, z)
        q[2 * k], q[2 * k + 1] = math.atan2(y, x), math.atan2(-z, math.hypot(x, y))
        leg = np.eye(4)
        leg[0, 3] = -length
        factors[0] = Constant(leg)
        if nudged:  # the chain is the same for all legs: only what each has of its own
            for i in (0, 3, len(factors) - 1):
                factors[i] = _nudged(rng, factors[i])
        loops.append(replace(loop, factors=tuple(factors)))
    return Case(replace(mechanism, loops=tuple(loops)), q, unknowns)


def _shrunk(system: System, part: float) -> System:
    """The same system with smaller bounds, to see that the campaign notices."""
    if part == 1.0:
        return system
    return replace(
        system,
        C_radius=system.C_radius * part,
        first_radius=system.first_radius * part,
        unknown=system.unknown * part,
        delta_wide=system.delta_wide * part,
        delta_narrow=system.delta_narrow * part,
        delta_full=system.delta_full * part,
    )


def adversarial_campaign(seed: int, boxes: int, *, part: float = 1.0) -> Verdict:
    """One case of the campaign; which one, with which kernel and boxes follows from the seed.

    Args:
        seed: Number of the case.
        boxes: Boxes around the planted solution to search (fewer with whole calls of ``solve``).
        part: Part of the bound to use; less than 1 only to show that the campaign notices.
    """
    rng = np.random.default_rng([2027, seed])
    kernel = KERNELS[seed % len(KERNELS)]
    tuning = list(PHASES.values())[(seed // len(KERNELS)) % len(PHASES)]
    sigma = float(10.0 ** rng.uniform(-14.0, -1.0))
    joints = int(rng.integers(3, 9))
    if kernel == "platform":
        case = hard_platform(rng)
        system = _shrunk(System.of(case.mechanism), part)
        form = PlatformSystem.of(system)
        if form is not None:
            if part != 1.0:
                legs = form.tables.legs
                legs = legs._replace(
                    bounds=legs.bounds * part, slack=legs.slack * part, summed=legs.summed * part
                )
                form = replace(form, tables=form.tables._replace(legs=legs))
            u = case.q[form.chain]
            lower, upper = _boxes(rng, form.lower, form.upper, u, boxes)
            return try_reduced(form, u, lower, upper, sigma=sigma, limit=2, tuning=tuning)
    elif kernel == "planar":
        case = hard_planar(rng, joints, loops=int(rng.integers(1, 4)))
        system = _shrunk(System.of(case.mechanism), part)
        planar = PlanarSystem.of(system)
        if planar is not None:
            if part != 1.0:
                delta = planar.tables.delta * part
                planar = replace(planar, tables=planar.tables._replace(delta=delta))
            return _try_planar(planar, case, rng, boxes, sigma, tuning)
    elif kernel == "paper":
        case = hard_loop(rng, int(rng.integers(3, 6)), point=bool(rng.uniform() < 0.2))
        system = _shrunk(System.of(case.mechanism), part)
        q = case.q * system.unit
        lower, upper = _boxes(rng, system.lower, system.upper, q, boxes, system.cyclic)
        return try_paper(case.mechanism, system, q, lower, upper, limit=2)
    elif kernel == "solve":
        return _try_solve(rng, max(1, boxes // 5))
    else:
        loops = 1 + int(rng.uniform() < 0.2)
        case = hard_loop(rng, joints, loops=loops, point=bool(rng.uniform() < 0.2))
        system = _shrunk(System.of(case.mechanism), part)
    q = case.q * system.unit
    lower, upper = _boxes(rng, system.lower, system.upper, q, boxes, system.cyclic)
    return try_fast(system, q, lower, upper, sigma=sigma, limit=2, tuning=tuning)


def _boxes(
    rng: np.random.Generator,
    lowest: Array,
    highest: Array,
    q: Array,
    count: int,
    cyclic: NDArray[np.bool_] | None = None,
) -> tuple[Array, Array]:
    """Boxes around a configuration, from 1e-13 to the whole range, within the ranges."""
    lower, upper = planted_boxes(rng, lowest, highest, q, count)
    free = np.zeros(len(q), dtype=bool) if cyclic is None else cyclic
    return (
        np.where(free, lower, np.maximum(lower, lowest)),
        np.where(free, upper, np.minimum(upper, highest)),
    )


def _try_planar(
    planar: PlanarSystem,
    case: Case,
    rng: np.random.Generator,
    boxes: int,
    sigma: float,
    tuning: Tuning,
) -> Verdict:
    """The planar kernel, and the ways from joint variables to its unknowns and back."""
    system = planar.system
    q = case.q * system.unit
    lower, upper = _boxes(rng, system.lower, system.upper, q, boxes, system.cyclic)
    low, high = planar.from_joints(lower, upper)
    u = np.concatenate([planar.turns @ q, q[system.translation]])
    there = try_reduced(planar, u, low, high, sigma=sigma, limit=2, tuning=tuning)
    return Verdict(there.trials, there.lost + lost_on_the_way(planar, q, u))


def _try_solve(rng: np.random.Generator, boxes: int) -> Verdict:
    """Whole calls of ``solve``: each box by itself, with a small budget, then finished or not."""
    kind = rng.integers(4)
    if kind == 0:
        case = hard_platform(rng)
    elif kind == 1:
        case = hard_planar(rng, int(rng.integers(3, 6)), loops=int(rng.integers(1, 3)))
    else:
        case = hard_loop(
            rng, int(rng.integers(3, 7)), loops=1 + int(rng.uniform() < 0.2),
            point=bool(rng.uniform() < 0.2),
        )  # fmt: skip
    mechanism, q = case.mechanism, case.q
    paper = kind > 1 and max(len(loop.motions) for loop in mechanism.loops) <= 4
    lowest = np.array([-math.pi if v.cyclic else v.lower for v in mechanism.variables])
    highest = np.array([math.pi if v.cyclic else v.upper for v in mechanism.variables])
    cyclic = np.array([v.cyclic for v in mechanism.variables])
    known = np.ones(len(q), dtype=bool)
    if case.unknowns:
        known[:] = False
        known[list(case.unknowns)] = True
    lower, upper = _boxes(rng, lowest, highest, q, boxes, cyclic)
    # The angles of a platform's legs are doubles next to the true ones.
    lower, upper = np.where(known, lower, lower - 1e-9), np.where(known, upper, upper + 1e-9)
    lower = np.where(cyclic, lower, np.maximum(lower, lowest))
    upper = np.where(cyclic, upper, np.minimum(upper, highest))
    slack = np.where(known, 4e-15 * (1.0 + np.abs(q)), 1e-9)
    lost = 0
    for i in range(boxes):
        settings = Settings(
            sigma=float(10.0 ** rng.uniform(-9.0 if kind > 1 else -2.0, 0.0)),
            method="paper" if paper and rng.uniform() < 0.5 else "fast",
            max_boxes=int(rng.integers(1, 60)),
            certify=bool(rng.uniform() < 0.5),
        )
        one = None if i == 0 else (lower[i : i + 1], upper[i : i + 1])
        answer = solve(mechanism, settings, task=Task(timeout=10.0), boxes=one)
        if not answer.complete and rng.uniform() < 0.5:
            answer = solve(mechanism, settings, task=Task(timeout=10.0), resume=answer)
        held = _held(answer.lower, answer.upper, cyclic, q, slack)
        held |= _held(answer.unfinished_lower, answer.unfinished_upper, cyclic, q, slack)
        lost += not held
    return Verdict(boxes, lost)


def _held(lower: Array, upper: Array, cyclic: NDArray[np.bool_], q: Array, slack: Array) -> bool:
    """Whether a configuration lies in one of the boxes, whole turns apart."""
    turns = np.where(cyclic, np.round((0.5 * (lower + upper) - q) / _TWO_PI) * _TWO_PI, 0.0)
    inside = (lower - slack <= q + turns) & (q + turns <= upper + slack)
    return bool(inside.all(axis=1).any())


def run(
    trials: int, first: int = 0, *, boxes: int = 250, say: Callable[[str], None] = print
) -> dict[str, Verdict]:
    """The campaign: as many cases as give this many trials; what each kernel was given and lost.

    Args:
        trials: Number of trials, at least.
        first: Number of the first case.
        boxes: Boxes around each planted solution.
        say: Takes a line of progress now and then, and the number of every case with a loss.
    """
    totals: dict[str, Verdict] = {}
    done = spoken = 0
    seed = first
    workers = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(max_workers=workers) as pool:
        while done < trials:
            batch = range(seed, seed + 64 * workers)
            seed = batch.stop
            for number, verdict in zip(
                batch, pool.map(lambda s: adversarial_campaign(s, boxes), batch), strict=True
            ):
                kernel = KERNELS[number % len(KERNELS)]
                before = totals.get(kernel, Verdict(0, 0))
                totals[kernel] = Verdict(before.trials + verdict.trials, before.lost + verdict.lost)
                done += verdict.trials
                if verdict.lost:
                    say(f"case {number} ({kernel}): {verdict.lost} of {verdict.trials} lost")
            if 10 * done // trials > spoken:
                spoken = 10 * done // trials
                lost = sum(v.lost for v in totals.values())
                say(f"adversarial: {done} trials, {lost} lost, next case {seed}")
    return totals


def main() -> None:
    """Run the campaign from the command line."""
    parser = argparse.ArgumentParser(description="Search for lost solutions in hard mechanisms.")
    parser.add_argument("--trials", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0, help="number of the first case")
    arguments = parser.parse_args()
    totals = run(arguments.trials, arguments.seed)
    for kernel, verdict in totals.items():
        print(f"{kernel}: {verdict.trials} trials, {verdict.lost} lost")
    sys.exit(1 if any(v.lost for v in totals.values()) else 0)


if __name__ == "__main__":
    main()
