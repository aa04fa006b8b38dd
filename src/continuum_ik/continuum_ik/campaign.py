"""Random robots and poses, solved in many ways that have to agree.

A robot is drawn at random: unequal rods, other circles, angles and heights, a load. A pose is drawn
about its home, tilted by up to 40 degrees. The straight path from home to it is cut into 1, 100 and
1000 steps and followed at both tolerances: the verdict and the branch must be the same each time,
and those of the plain tracer in reference.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from continuum_ik.pose import make_pose
from continuum_ik.reference import between
from continuum_ik.robot import ContinuumRobot, Limits, Load, Rod
from continuum_ik.rod import Array
from continuum_ik.solver import ContinuumSolver, IKResult

#: How the path is cut, and how finely it is solved.
CUTS, TOLERANCES = (1, 100, 1000), (1e-6, 1e-12)


def random_robot(rng: np.random.Generator) -> ContinuumRobot:
    """Return a robot with unequal rods, its own circles and angles, and mostly a load."""
    height = rng.uniform(0.25, 0.6)
    radius = rng.uniform(0.12, 0.35) * height
    thick = rng.uniform(0.4e-3, 1.2e-3) * height / 0.4
    rods = tuple(
        Rod(
            radius=thick * rng.uniform(0.8, 1.25),
            youngs_modulus=(E := rng.uniform(60e9, 210e9)),
            shear_modulus=E / (2.0 * rng.uniform(1.2, 1.4)),
        )
        for _ in range(6)
    )
    EI = float(np.mean([rod.bending_stiffness for rod in rods]))
    heavy = EI / height**2 * rng.choice([0.0, 2.0, 6.0, 12.0])
    load = Load(
        force=tuple(heavy * rng.uniform(-1.0, 1.0, 3)),
        moment=tuple(0.1 * heavy * height * rng.uniform(-1.0, 1.0, 3)),
        point=tuple(0.1 * height * rng.uniform(-1.0, 1.0, 3)),
    )
    return ContinuumRobot(
        name="random",
        base=_holes(rng, radius, 0),
        platform=_holes(rng, radius * rng.uniform(0.5, 1.2), 1),
        rods=rods,
        load=load,
        limits=Limits(
            length=(0.1 * height, 3.0 * height),
            curvature=float(rng.choice([6.0, 15.0])) / height,
            force=float(rng.choice([100.0, 280.0])) * EI / height**2,
            height=0.05 * height,
        ),
        home_height=height,
    )


def _holes(rng: np.random.Generator, radius: float, shift: int) -> Array:
    """Three pairs on a circle, each hole a little off; shifted, rods 1 and 2 are the first pair."""
    half = math.radians(rng.uniform(8.0, 22.0))
    rod = np.arange(6)
    pair = (rod - shift) // 2
    side = np.where((rod - shift) % 2 == 0, -half, half)
    angle = (pair + 0.5 * shift) * 2.0 * math.pi / 3.0 + side
    angle = angle + rng.normal(0.0, math.radians(3.0), 6)
    r = radius * rng.uniform(0.9, 1.1, 6)
    return np.stack([r * np.cos(angle), r * np.sin(angle), np.zeros(6)], axis=1)


def random_pose(rng: np.random.Generator, robot: ContinuumRobot) -> Array:
    """Return a pose about home, mostly within reach, tilted by up to 40 degrees."""
    h = robot.home_height
    axis = rng.normal(size=3)
    angle = math.radians(40.0) * rng.uniform()
    turned = Rotation.from_rotvec(angle * axis / np.linalg.norm(axis)).as_matrix()
    aside = 0.35 * h * rng.uniform() ** 0.7
    way = rng.uniform(0.0, 2.0 * math.pi)
    position = (aside * math.cos(way), aside * math.sin(way), h * rng.uniform(0.8, 1.4))
    return make_pose(position, turned)


@dataclass(frozen=True, eq=False)
class Answer:
    """One way of solving a pose: how often the path was cut, how finely, and what came out."""

    cuts: int
    tolerance: float
    result: IKResult


def solve_cut(solver: ContinuumSolver, pose: Array, cuts: int) -> IKResult:
    """Follow the straight path from home in equal steps; the answer at its end."""
    solver.reset()
    home = solver.pose
    path = np.array([between(home, pose, k / cuts) for k in range(1, cuts)] + [pose])
    for target in path[:-1]:
        solver.track(target)
    return solver.solve(path[-1])
