"""Building the flat array of layout.py for a robot, and finding its home."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from continuum_ik import layout as m
from continuum_ik.arc import ARC_BUDGET
from continuum_ik.continuation import CHANGE, changed, make_sure
from continuum_ik.equations import aim, one_step
from continuum_ik.errors import NoHome
from continuum_ik.newton import POLISH, correct
from continuum_ik.path import exchange_rules, linearise, store
from continuum_ik.robot import ContinuumRobot
from continuum_ik.rod import (
    BLOCK,
    INLINED,
    INV_EI,
    INV_GA,
    KERNEL,
    LENGTH,
    M_X,
    M_Y,
    N_X,
    N_Y,
    N_Z,
    SHEAR_C,
    Array,
)

#: Displacements of the Jacobian's differences in the scaled unknowns, for rods that carry nothing.
INCREMENT = 1e-7
#: Sum of squares and error of the lengths on the way to far targets.
FINE, FINE_LEG = 1e-17, 1e-11


def _rules(tolerance: float, leg_tolerance: float, jacobian: float) -> list[float]:
    """Return what lies at layout.RULES.

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
    return [accept, leg_tolerance, error, legs, one_step(error), one_step(jacobian), -1.0, 1.0]


def set_tolerance(w: Array, tolerance: float, leg_tolerance: float) -> None:
    """Set what counts as solved.

    Args:
        w: The solver's array.
        tolerance: Sum of squares of the residual.
        leg_tolerance: Estimated error of a length [m].
    """
    w[m.TOLERANCE] = tolerance
    w[m.RULES : m.RULES + m.RULES_SIZE] = _rules(tolerance, leg_tolerance, 1e-4)
    # On the way to far targets branches come close to each other; there all is done finely.
    fine = _rules(min(tolerance, FINE), min(leg_tolerance, FINE_LEG), 1e-8)
    w[m.OTHER_RULES : m.OTHER_RULES + m.RULES_SIZE] = fine
    # Extrapolating further pays only while the prediction is better than the tolerance is tight.
    w[m.ORDER] = 2.0 if tolerance >= 1e-8 else 4.0


def build(robot: ContinuumRobot, tolerance: float, leg_tolerance: float) -> Array:
    """Return a solver's array for a robot, without a home yet."""
    w = m.allocate()
    typical = robot.home_height
    for i in range(m.LANES):
        rod = robot.rods[i % m.RODS]
        for at in range(0, 6 * BLOCK, BLOCK):
            w[at + INV_EI + i] = 1.0 / rod.bending_stiffness
            w[at + SHEAR_C + i] = 1.0 / rod.axial_stiffness - 1.0 / rod.shear_stiffness
            w[at + INV_GA + i] = 1.0 / rod.shear_stiffness
            w[at + LENGTH + i] = typical
        w[m.BASE + i : m.BASE + 24 : 8] = robot.base[i % m.RODS]
        w[m.PLATFORM + i : m.PLATFORM + 24 : 8] = robot.platform[i % m.RODS]
        w[m.MASK + i] = 1.0 if i < m.RODS else 0.0
    w[m.FORCE : m.FORCE + 3] = robot.load.force
    w[m.MOMENT : m.MOMENT + 3] = robot.load.moment
    w[m.POINT : m.POINT + 3] = robot.load.point
    w[m.LENGTH_MIN], w[m.LENGTH_MAX] = robot.limits.length
    w[m.FORCE_MAX], w[m.CURVATURE_MAX] = robot.limits.force, robot.limits.curvature
    w[m.HEIGHT_MIN] = robot.limits.height
    w[m.EI_TYPICAL] = float(np.mean([rod.bending_stiffness for rod in robot.rods]))
    w[m.LENGTH_TYPICAL] = typical
    w[m.FORCE_STEP] = INCREMENT * w[m.EI_TYPICAL] / typical**2
    w[m.MOMENT_STEP] = INCREMENT * w[m.EI_TYPICAL] / typical
    softest = min(min(rod.axial_stiffness, rod.shear_stiffness) for rod in robot.rods)
    w[m.STRETCH] = 1.0 + robot.limits.force / softest
    w[m.AGE] = -1.0
    w[m.LIMITING] = -1.0
    w[m.DETOURS] = 1.0
    w[m.SMALLEST] = 1e-5
    w[m.ARC_BUDGET] = ARC_BUDGET
    w[m.STEPS] = 1.0
    set_tolerance(w, tolerance, leg_tolerance)
    return w


@njit(**INLINED)
def _guess(w: Array) -> None:
    """Set the unknowns to slender beams, clamped upright at both ends: cubic centrelines."""
    for i in range(m.RODS):
        x, y, z = w[m.TIP + i], w[m.TIP + 8 + i], w[m.TIP + 16 + i]
        EI = 1.0 / w[INV_EI + i]
        L = math.sqrt(z * z + 1.2 * (x * x + y * y))
        w[N_X + i], w[N_Y + i], w[N_Z + i] = (
            12.0 * EI * x / (z * z * z),
            12.0 * EI * y / (z * z * z),
            0.0,
        )
        w[M_X + i], w[M_Y + i] = -6.0 * EI * y / (z * z), 6.0 * EI * x / (z * z)
        w[LENGTH + i] = L


@njit(**KERNEL)
def _settle(w: Array, height: float) -> bool:
    """Solve for the level, centred pose at a height from the beams, by damped Newton steps."""
    for k in range(12):
        w[m.POSE + k] = 0.0
    w[m.POSE + 2] = height
    w[m.POSE + 3], w[m.POSE + 7], w[m.POSE + 11] = 1.0, 1.0, 1.0
    aim(w)
    _guess(w)
    exchange_rules(w)
    found = False
    for _ in range(6):  # eight steps at a time
        found = found or correct(w, 1e6, POLISH)
    found = found and linearise(w)
    if found:
        make_sure(w, math.inf, False)
    exchange_rules(w)
    return found


@njit(**KERNEL)
def _carry(w: Array) -> bool:
    """Solve again at the present pose from the present unknowns, after a change of the load.

    False also if the Jacobian changes by more than half: a rod might have buckled on the way.
    """
    exchange_rules(w)
    aim(w)
    carried = correct(w, 3.0, POLISH) and linearise(w) and changed(w) <= CHANGE
    if carried:
        make_sure(w, math.inf, False)
    exchange_rules(w)
    return carried


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


def find_home(w: Array, robot: ContinuumRobot) -> None:
    """Solve the home pose without load, then raise the load to what the robot carries.

    Raises:
        NoHome: No equilibrium was found, or the load cannot be carried there.
    """
    force, moment = w[m.FORCE : m.FORCE + 3].copy(), w[m.MOMENT : m.MOMENT + 3].copy()
    w[m.FORCE : m.FORCE + 3] = 0.0
    w[m.MOMENT : m.MOMENT + 3] = 0.0
    if not _settle(w, robot.home_height):
        raise NoHome(_why_no_home(robot))
    store(w, m.HOME)
    if np.any(force) or np.any(moment):
        part, step = 0.0, 1.0
        while part < 1.0:
            to = min(1.0, part + step)
            w[m.Y : m.Y + m.UNKNOWNS] = w[m.HOME : m.HOME + m.UNKNOWNS]
            w[m.FORCE : m.FORCE + 3] = to * force
            w[m.MOMENT : m.MOMENT + 3] = to * moment
            if _carry(w):
                store(w, m.HOME)
                part, step = to, 1.7 * step
            else:
                step *= 0.5
                if step < 1e-4:
                    raise NoHome(
                        f"at home the robot carries only {100.0 * part:.1f} % of its load: "
                        "the rods give way"
                    )
    w[m.HAS_HOME] = 1.0
