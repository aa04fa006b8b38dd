"""Random robots and poses, solved in many ways that have to agree.

A robot is drawn at random: unequal rods, other circles, angles and heights, a load. A pose is drawn
about its home, tilted by up to 40 degrees. The straight path from home to it is cut into 1, 10, 100
and 1000 steps and followed at both tolerances: the verdict and the branch must be the same each
time, and those of the plain tracer in curve_tracer.py. As a command:

    ./kinstack shell python src/continuum_ik/test/branch_campaign.py --robots 50 --poses 10

Two of five poses are level, and unstable answers count there. Both ends of a rod are then upright:
it can lie in a plane, and look the same when that is turned upside down, whatever the load. Where
it buckles out of the plane or out of that symmetry, branches cross, for every robot. The branch
that goes straight on is the one with symmetric rods.

With ``--keep FILE`` what was found is written after each robot, and a campaign that was ended goes
on from there.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from curve_tracer import leg_errors, straight, trace
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from continuum_ik import (
    ContinuumRobot,
    ContinuumSolver,
    IKResult,
    Limits,
    Load,
    NoHome,
    Rod,
    make_pose,
)

Array = NDArray[np.float64]

#: How the path is cut, and how finely it is solved.
CUTS, TOLERANCES = (1, 10, 100, 1000), (1e-12, 1e-6)
#: Largest difference of lengths [m], of the same tolerance and of another one.
NEAR, NEAR_LOOSE = 1e-8, 1e-4
#: Largest difference of the part of a path at which a fold lies.
NEAR_PART = 5e-3
#: Largest number that ``crooked`` may return, by tolerance.
STRAIGHT = {1e-12: 1e-5, 1e-6: 1e-2}


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


def robot_of(number: int, poses: int) -> tuple[ContinuumRobot, list[Array]]:
    """Return the robot of a number with its poses; the same number is always the same robot."""
    rng = np.random.default_rng([14, number])
    robot = random_robot(rng)
    return robot, [random_pose(rng, robot) for _ in range(poses)]


def levelled(pose: Array) -> Array:
    """Return a pose at the same place that is turned about the upright axis only."""
    return make_pose(pose[:3], Rotation.from_euler("z", math.atan2(pose[6], pose[3])).as_matrix())


def crooked(robot: ContinuumRobot, result: IKResult) -> float:
    """Return how far the rods are from their symmetric shapes at a level pose, as part of a whole.

    A rod whose ends are p apart has m(L) = m0 + n x p by equilibrium, and m(L) = -m0 by symmetry.
    The upright part of n x p is the force across the rod's plane.
    """
    R = result.best_pose[3:].reshape(3, 3)
    ways = result.best_pose[:3] + robot.platform @ R.T - robot.base
    twice = np.cross(result.forces, ways)
    twice[:, :2] += 2.0 * result.moments
    EI = np.array([rod.bending_stiffness for rod in robot.rods])
    whole = np.linalg.norm(result.forces, axis=1) * robot.home_height + EI / robot.home_height
    return float((np.linalg.norm(twice, axis=1) / whole).max())


def solve_cut(solver: ContinuumSolver, pose: Array, cuts: int) -> tuple[IKResult, float]:
    """Follow the straight path from home in equal steps.

    Returns:
        The answer at its end, and the part of the path that was reached.
    """
    solver.reset()
    path = straight(solver.pose, pose, np.arange(1, cuts) / cuts)
    done = 0.0
    for k, target in enumerate(path, 1):
        if solver.track(target) == 0:
            done = k / cuts
    result = solver.solve(pose)
    return result, done + (1.0 - done) * result.reached


def kind(result: IKResult) -> str:
    """Return the reason in words that do not name a leg or a number."""
    for word in ("fold", "not stable", "curvature", "force", "longer", "shorter", "ran out"):
        if word in result.reason:
            return word
    return result.reason


@dataclass
class Verdict:
    """What a campaign found.

    Attributes:
        number: Robots that were drawn, with a home or without.
        robots: Robots with a home.
        poses: Poses that were solved in all ways.
        solved: Those with the answer SUCCESS.
        ends: The others, by the kind of the reason.
        different: Poses where two ways disagreed, each a sentence.
        wrong: Poses where the tracer disagreed, each a sentence.
        untold: Poses at whose path the tracer itself did not come to an end.
        unstable: Answers whose stability ``analyse`` sees otherwise, each a sentence.
        leg_error: Largest error of a leg at 1e-12 by scipy's DOP853 [m].
    """

    number: int = 0
    robots: int = 0
    poses: int = 0
    solved: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    different: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    untold: int = 0
    unstable: list[str] = field(default_factory=list)
    leg_error: float = 0.0

    @property
    def sound(self) -> bool:
        """Whether nothing was found."""
        return not (self.different or self.wrong or self.unstable)


def campaign(
    robots: int,
    poses: int,
    *,
    found: Verdict | None = None,
    cuts: tuple[int, ...] = CUTS,
    traced: bool = True,
    say: Callable[[str], None] = lambda text: None,
) -> Verdict:
    """Solve random poses of random robots in all ways, and compare.

    Args:
        robots: How many have to have a home.
        poses: For each of them.
        found: What was found before, to go on from; it is filled.
        cuts: Into how many steps paths are cut.
        traced: Whether the tracer is asked too, and scipy about the lengths.
        say: Gets a line for each robot, and for each thing found as soon as it is.
    """
    found = found or Verdict()
    while found.robots < robots:
        number = found.number
        robot, targets = robot_of(number, poses)
        found.number += 1
        try:
            solvers = {t: ContinuumSolver(robot, t, detours=False) for t in TOLERANCES}
        except NoHome:
            continue
        free = {t: solver.copy() for t, solver in solvers.items()}
        for solver in free.values():
            solver.allow_unstable = True
        found.robots += 1
        for k, pose in enumerate(targets):
            name = f"robot {number}, pose {k}"
            known = len(found.different), len(found.wrong), len(found.unstable)
            if k % 5 in (1, 3):
                pose = levelled(pose)
                _one(found, name, free, pose, cuts)
            else:
                _one(found, name, solvers, pose, cuts)
            if traced:
                _trace_one(found, name, solvers[TOLERANCES[0]], pose)
            lists = found.different, found.wrong, found.unstable
            for kept, before in zip(lists, known, strict=True):
                for line in kept[before:]:
                    say(line)
        say(
            f"robot {number}: {found.robots} robots, {found.poses} poses, {found.solved} "
            f"solved, {len(found.different)} different, {len(found.wrong)} wrong"
        )
    return found


def _one(
    found: Verdict,
    name: str,
    solvers: dict[float, ContinuumSolver],
    pose: Array,
    cuts: tuple[int, ...],
) -> None:
    """Solve one pose in all ways."""
    found.poses += 1
    expected, place = solve_cut(solvers[TOLERANCES[0]], pose, cuts[0])
    if expected.success:
        found.solved += 1
    else:
        found.ends[kind(expected)] += 1
    for tolerance, solver in solvers.items():
        near = NEAR if tolerance == TOLERANCES[0] else NEAR_LOOSE
        for cut in cuts:
            result, part = solve_cut(solver, pose, cut)
            if result.success and result.stable != solver.analyse().stable:
                found.unstable.append(f"{name}: {cut} steps at {tolerance:g}")
            if result.success and solver.allow_unstable:
                bent = crooked(solver.robot, result)
                if bent > STRAIGHT[tolerance]:
                    found.wrong.append(f"{name}: {cut} steps at {tolerance:g} buckle: {bent:.1e}")
            apart = float(np.abs(result.lengths - expected.lengths).max())
            same = result.code == expected.code and kind(result) == kind(expected)
            if same and result.success:
                same = apart <= near
            elif same and kind(result) == "fold":
                same = abs(part - place) <= NEAR_PART
            if not same:
                found.different.append(
                    f"{name}: {cut} steps at {tolerance:g} say {result.code.name} {result.reason} "
                    f"({100.0 * part:.1f} % in all), {cuts[0]} at {TOLERANCES[0]:g} "
                    f"{expected.code.name} {expected.reason}, {apart:.1e} m apart"
                )


#: Limits that nothing breaks, for the curve itself.
WIDE = Limits(length=(1e-3, 1e3), curvature=1e6, force=1e9, height=1e-6)


def _trace_one(found: Verdict, name: str, solver: ContinuumSolver, pose: Array) -> None:
    """Compare the curve over the path with the tracer's, limits and stability set aside."""
    free = ContinuumSolver(
        dataclasses.replace(solver.robot, limits=WIDE),
        solver.tolerance,
        detours=False,
        allow_unstable=True,
    )
    home, result = free.home, free.solve(pose)
    curve = trace(free.robot, home.best_pose, pose, home.forces, home.moments, home.lengths)
    if not curve.told:
        found.untold += 1
        return
    apart = float(np.abs(curve.lengths - result.lengths).max())
    if result.success:
        errors = leg_errors(solver.robot, pose, result.forces, result.moments, result.lengths)
        found.leg_error = max(found.leg_error, float(np.abs(errors).max()))
    if curve.arrives != result.success or (curve.arrives and not apart <= 1e-6):
        found.wrong.append(
            f"{name}: {result.code.name} {result.reason}; the tracer came to "
            f"{100.0 * curve.reached:.1f} %, {apart:.1e} m apart"
        )
    elif not curve.arrives and abs(curve.reached - result.reached) > NEAR_PART:
        found.wrong.append(f"{name}: {result.reason}; the tracer {100.0 * curve.reached:.1f} %")


def main() -> int:
    """Run the campaign that the arguments ask for; 1 if anything was found."""
    parser = argparse.ArgumentParser(description="random robots, solved in ways that must agree")
    parser.add_argument("--robots", type=int, default=50)
    parser.add_argument("--poses", type=int, default=10, help="for each robot")
    parser.add_argument("--first", type=int, default=0, help="number of the first robot")
    parser.add_argument("--cuts", type=int, nargs="+", default=CUTS, help="steps of a path")
    parser.add_argument("--untraced", action="store_true", help="leave the slow tracer out")
    parser.add_argument("--keep", type=Path, help="file to keep the state of the campaign in")
    chosen = parser.parse_args()
    found = Verdict(chosen.first)
    if chosen.keep is not None and chosen.keep.exists():
        found = Verdict(**json.loads(chosen.keep.read_text()))
        found.ends = Counter(found.ends)

    def say(text: str) -> None:
        print(text, flush=True)
        if chosen.keep is not None and text.endswith("wrong"):
            chosen.keep.write_text(json.dumps(vars(found)))

    campaign(
        *(chosen.robots, chosen.poses),
        found=found, cuts=tuple(chosen.cuts), traced=not chosen.untraced, say=say,
    )  # fmt: skip
    print(
        f"{found.poses} poses of {found.robots} robots, {found.solved} solved; "
        f"{len(found.different)} depend on the steps, {len(found.wrong)} differ from the tracer "
        f"(which did not tell {found.untold}), {len(found.unstable)} stabilities differ; "
        f"largest error of a leg {found.leg_error:.1e} m"
    )
    for reason, count in found.ends.most_common():
        print(f"{count:5d}  {reason}")
    return 0 if found.sound else 1


if __name__ == "__main__":
    sys.exit(main())
