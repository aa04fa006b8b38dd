"""Building the flat array of layout.py for a robot, and finding its home."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from continuum_ik.arc import ARC_BUDGET
from continuum_ik.continuation import CHANGE, changed, make_sure
from continuum_ik.equations import aim, one_step
from continuum_ik.errors import NoHome
from continuum_ik.layout import allocate, named, record
from continuum_ik.newton import POLISH, correct
from continuum_ik.path import linearise, store
from continuum_ik.robot import ContinuumRobot
from continuum_ik.rod import (
    INLINED,
    KERNEL,
    LANES,
    LENGTH,
    MX,
    MY,
    NX,
    NY,
    NZ,
    RODS,
    Array,
    Record,
)

#: Displacements of the Jacobian's differences in the scaled unknowns, for rods that carry nothing.
INCREMENT = 1e-7
#: The fields of layout.CAUTION: near, local, unseen, towards, tips.
CAUTION = (0.3, 2.5, 0.1, 0.6, 0.1)
#: Sum of squares and error of the lengths on the way to far targets.
FINE, FINE_LEG = 1e-17, 1e-11


def _rules(tolerance: float, leg_tolerance: float, jacobian: float) -> tuple[float, ...]:
    """Return the fields of layout.RULES.

    Args:
        tolerance: Sum of squares of the residual.
        leg_tolerance: Estimated error of a length [m].
        jacobian: Error of the tip in Jacobians.
    """
    # The integration may be off by 2 % of the residual's norm; that much less is accepted.
    error = 0.02 * math.sqrt(tolerance)
    accept = (math.sqrt(tolerance) - 1.5 * error) ** 2
    error = max(error, 1e-13)
    legs = max(0.3 * leg_tolerance, 1e-13)
    return accept, leg_tolerance, error, legs, one_step(error), one_step(jacobian), -1.0, 1.0


def set_tolerance(state: Array, tolerance: float, leg_tolerance: float) -> None:
    """Set what counts as solved.

    Args:
        state: The solver's array.
        tolerance: Sum of squares of the residual.
        leg_tolerance: Estimated error of a length [m].
    """
    w = named(state)
    w.tolerance = tolerance
    w.rules[0] = _rules(tolerance, leg_tolerance, 1e-4)
    # On the way to far targets branches come close to each other; there all is done finely.
    w.rules[1] = _rules(min(tolerance, FINE), min(leg_tolerance, FINE_LEG), 1e-8)
    # Extrapolating further pays only while the prediction is better than the tolerance is tight.
    w.order = 2 if tolerance >= 1e-8 else 4


def build(robot: ContinuumRobot, tolerance: float, leg_tolerance: float) -> Array:
    """Return a solver's array for a robot, without a home yet."""
    state = allocate()
    w = named(state)
    typical = robot.home_height
    for i in range(LANES):
        rod = robot.rods[i % RODS]
        for rods in (w.rods, w.displaced):
            rods.inv_EI[..., i] = 1.0 / rod.bending_stiffness
            rods.c[..., i] = 1.0 / rod.axial_stiffness - 1.0 / rod.shear_stiffness
            rods.inv_GA[..., i] = 1.0 / rod.shear_stiffness
            rods.y[..., LENGTH, i] = typical
        w.base_holes[:, i] = robot.base[i % RODS]
        w.platform_holes[:, i] = robot.platform[i % RODS]
        w.mask[i] = 1.0 if i < RODS else 0.0
    w.force, w.moment, w.point = robot.load.force, robot.load.moment, robot.load.point
    w.length_min, w.length_max = robot.limits.length
    w.force_max, w.curvature_max = robot.limits.force, robot.limits.curvature
    w.height_min = robot.limits.height
    w.EI = np.mean([rod.bending_stiffness for rod in robot.rods])
    w.L = typical
    w.force_step, w.moment_step = INCREMENT * w.EI / typical**2, INCREMENT * w.EI / typical
    softest = min(min(rod.axial_stiffness, rod.shear_stiffness) for rod in robot.rods)
    w.stretch = 1.0 + robot.limits.force / softest
    w.age, w.limiting, w.detours, w.steps = -1, -1, 1, 1
    w.smallest, w.arc_budget = 1e-5, ARC_BUDGET
    w.caution = CAUTION
    set_tolerance(state, tolerance, leg_tolerance)
    return state


@njit(**INLINED)
def _guess(w: Record) -> None:
    """Set the unknowns to slender beams, clamped upright at both ends: cubic centrelines."""
    y = w.rods.y
    for i in range(RODS):
        dx, dy, dz = w.tip[0, i], w.tip[1, i], w.tip[2, i]
        EI = 1.0 / w.rods.inv_EI[i]
        y[NX, i], y[NY, i], y[NZ, i] = 12.0 * EI * dx / dz**3, 12.0 * EI * dy / dz**3, 0.0
        y[MX, i], y[MY, i] = -6.0 * EI * dy / dz**2, 6.0 * EI * dx / dz**2
        y[LENGTH, i] = math.sqrt(dz * dz + 1.2 * (dx * dx + dy * dy))


@njit(**KERNEL)
def _settle(state: Array, height: float) -> bool:
    """Make home of the level, centred pose at a height, from the beams by damped Newton steps."""
    w = record(state)
    w.pose[:] = 0.0
    w.pose[0, 2] = height
    w.pose[1, 0], w.pose[2, 1], w.pose[3, 2] = 1.0, 1.0, 1.0
    aim(w)
    _guess(w)
    w.fine = 1
    found = False
    for _ in range(6):  # eight steps at a time
        found = found or correct(w, 1e6, POLISH)
    return _accept(w, found and linearise(w))


@njit(**KERNEL)
def _carry(state: Array) -> bool:
    """Solve again at home, after a change of the load.

    False also if the Jacobian changes by more than half: a rod might have buckled on the way.
    """
    w = record(state)
    w.rods.y = w.home.y
    w.fine = 1
    aim(w)
    return _accept(w, correct(w, 3.0, POLISH) and linearise(w) and changed(w) <= CHANGE)


@njit(**KERNEL)
def _accept(w: Record, found: bool) -> bool:
    """Make home of the present point if it was found."""
    if found:
        make_sure(w, math.inf, False)
        store(w, w.home)
    w.fine = 0
    return found


#: Sideways distance between the ends of a rod, as part of the height, below which it stands
#: straight.
FACING = 0.05


def _why_no_home(robot: ContinuumRobot) -> str:
    """Return the sentence about a robot that has no equilibrium at home.

    Rods that stand straight carry forces along themselves only. If all do, three of the six
    equations of the platform (two forces, and the moment about the axis) have nothing to balance
    them with, while the other three leave the rods' forces open: the equations are singular.
    """
    aside = np.linalg.norm((robot.platform - robot.base)[:, :2], axis=1)
    facing = np.flatnonzero(aside < FACING * robot.home_height)
    where = f"no equilibrium found at home, {robot.home_height:g} m above the base"
    if facing.size >= 4:
        rods = ", ".join(str(k) for k in facing)
        return (
            f"{where}: the holes of the platform face those of the base (rods {rods}: "
            f"{1e3 * aside[facing].max():.1f} mm aside or less), so that the rods stand straight "
            "and nothing says how they share a force; turn the platform's holes against those of "
            "the base (angles or alpha1 and alpha2; the tutorial's are 40 degrees apart)"
        )
    steep = aside.max() / robot.home_height
    turned = _mean_turn(robot)
    if abs(turned) > 15.0:
        return (
            f"{where}: all holes of the platform are turned the same way against those of the "
            f"base, by {turned:.0f} degrees on average, so that the rods twist it and nothing "
            "balances that; let every other rod lean the other way, as the tutorial's do"
        )
    return (
        f"{where}: the rods lean by up to {steep:.2f} of the height; "
        "a greater home_height makes them stand straighter"
    )


def _mean_turn(robot: ContinuumRobot) -> float:
    """Return the mean angle from base hole to platform hole about the axis [deg]."""
    a, b = robot.base, robot.platform
    cross = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    dot = a[:, 0] * b[:, 0] + a[:, 1] * b[:, 1]
    return float(np.degrees(np.arctan2(cross, dot)).mean())


def find_home(state: Array, robot: ContinuumRobot) -> None:
    """Solve the home pose without load, then raise the load to what the robot carries.

    Raises:
        NoHome: No equilibrium was found, or the load cannot be carried there.
    """
    w = named(state)
    force, moment = np.array(robot.load.force), np.array(robot.load.moment)
    w.force, w.moment = 0.0, 0.0
    if not _settle(state, robot.home_height):
        raise NoHome(_why_no_home(robot))
    part, step = 0.0, 1.0
    while part < 1.0 and (force.any() or moment.any()):
        to = min(1.0, part + step)
        w.force, w.moment = to * force, to * moment
        if _carry(state):
            part, step = to, 1.7 * step
        else:
            step *= 0.5
            if step < 1e-4:
                raise NoHome(
                    f"at home the robot carries only {100.0 * part:.1f} % of its load: "
                    "the rods give way"
                )
    w.has_home = 1
