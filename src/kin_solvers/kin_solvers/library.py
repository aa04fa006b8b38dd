"""Named mechanisms, each with the source of its parameters and what is known of its solutions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kin_common import checks
from kin_common.errors import InvalidInput
from kin_solvers.dh import arm_from_dh, loop_from_dh
from kin_solvers.errors import MechanismError
from kin_solvers.mechanism import Constant, Loop, Mechanism, Motion, Variable, translation

__all__ = ["NAMES", "get"]

Array = NDArray[np.float64]


def bennett(alpha: float = math.radians(30.0), beta: float = math.radians(75.0)) -> Mechanism:
    """Bennett's linkage: 4 revolute joints, one closed curve.

    a = 1, b = sin(beta) / sin(alpha); theta3 = -theta1, theta4 = -theta2 and
    tan(theta1/2) tan(theta2/2) = sin((beta+alpha)/2) / sin((beta-alpha)/2).
    """
    b = math.sin(beta) / math.sin(alpha)
    return loop_from_dh("bennett", [1.0, b, 1.0, b], [alpha, beta, alpha, beta], np.zeros(4))


def planar_four_bar() -> Mechanism:
    """A Grashof four-bar with links 1, 2, 2.5, 2.2: two closed curves."""
    return loop_from_dh("planar_four_bar", [1.0, 2.0, 2.5, 2.2], np.zeros(4), np.zeros(4))


def spherical_four_bar() -> Mechanism:
    """A spherical four-bar with arcs of 40, 70, 85, 75 degrees: two closed curves."""
    return loop_from_dh(
        "spherical_four_bar", np.zeros(4), np.radians([40.0, 70.0, 85.0, 75.0]), np.zeros(4)
    )


def manseur_doty() -> Mechanism:
    """The 6R of Manseur and Doty (1989), at a pose with 16 solutions."""
    a = [0.3, 1.0, 0.0, 1.5, 0.0, 1.1353]
    alpha = [math.pi / 2, 0.0175, math.pi / 2, 0.0175, math.pi / 2, 1.4716]
    d = [0.0106, 0.0, 0.2, 0.0, 0.0, 0.1049]
    return loop_from_dh("manseur_doty", np.roll(a, -1), np.roll(alpha, -1), d)


def puma560() -> Mechanism:
    """PUMA 560 at the pose of q = (.3, -.7, .9, .4, .8, -.5): 8 solutions."""
    return arm_from_dh(
        "puma560",
        [0.0, 0.4318, 0.0203, 0.0, 0.0, 0.0],
        np.radians([-90.0, 0.0, 90.0, -90.0, 90.0, 0.0]),
        [0.0, 0.0, 0.15005, 0.4318, 0.0, 0.0],
        q=[0.3, -0.7, 0.9, 0.4, 0.8, -0.5],
    )


def ur5() -> Mechanism:
    """Universal Robots UR5 at the pose of q = (.3, -.9, 1.2, .4, .8, -.5): 8 solutions.

    Ranges are those of the arm, two turns for each joint.
    """
    return arm_from_dh(
        "ur5",
        [0.0, -0.425, -0.39225, 0.0, 0.0, 0.0],
        np.radians([90.0, 0.0, 0.0, 90.0, -90.0, 0.0]),
        [0.089159, 0.0, 0.0, 0.10915, 0.09465, 0.0823],
        q=[0.3, -0.9, 1.2, 0.4, 0.8, -0.5],
        ranges=[(-2.0 * math.pi, 2.0 * math.pi)] * 6,
    )


def iiwa7() -> Mechanism:
    """KUKA LBR iiwa 7 at the pose of q = (.4, .9, -.3, 1.2, .5, -.8, .2): self-motion, 8 curves.

    Without joint limits; give ranges for the limits of the arm.
    """
    return arm_from_dh(
        "iiwa7",
        np.zeros(7),
        np.radians([-90.0, 90.0, 90.0, -90.0, -90.0, 90.0, 0.0]),
        [0.34, 0.0, 0.4, 0.0, 0.4, 0.0, 0.126],
        q=[0.4, 0.9, -0.3, 1.2, 0.5, -0.8, 0.2],
    )


def bricard() -> Mechanism:
    """Bricard's orthogonal 6R, a = 1, twists +-90 degrees in turn: one closed curve."""
    return loop_from_dh("bricard", np.ones(6), np.radians([90.0, -90.0] * 3), np.zeros(6))


def scara() -> Mechanism:
    """A SCARA arm (two revolute, one prismatic, one revolute joint), reach .6 m: 2 solutions."""
    return arm_from_dh(
        "scara",
        [0.35, 0.25, 0.0, 0.0],
        [0.0, math.pi, 0.0, 0.0],
        np.zeros(4),
        prismatic=(2,),
        q=[0.4, 0.9, 0.12, -0.3],
        ranges=[(-math.pi, math.pi), (-math.pi, math.pi), (0.0, 0.3), (-math.pi, math.pi)],
    )


def _turn(variable: int, sign: int = 1) -> Motion:
    return Motion(variable, 2, sign)


def _move(x: float, y: float) -> Constant:
    return Constant(translation(0, x) @ translation(1, y))


def three_rpr() -> Mechanism:
    """3-RPR platform with legs locked at 14.98, 15.38, 12: 6 assembly modes.

    Base (0,0), (15.91,0), (0,10); platform sides 17.04, 16.54, 20.84 (Collins 2001). Variables: the
    angle of each leg at the base, and of the platform at each leg.
    """
    base = [(0.0, 0.0), (15.91, 0.0), (0.0, 10.0)]
    c1, c2, c3 = 17.04, 16.54, 20.84  # sides 1-2, 2-3, 1-3
    x = (c1**2 + c3**2 - c2**2) / (2.0 * c1)
    platform = [(0.0, 0.0), (c1, 0.0), (x, math.sqrt(c3**2 - x**2))]
    legs = [14.98, 15.38, 12.0]
    names = [f"{part}{k + 1}" for k in range(3) for part in ("base", "platform")]
    loops = []
    for k in (1, 2):
        (x1, y1), (xk, yk) = base[0], base[k]
        (u1, v1), (uk, vk) = platform[0], platform[k]
        loops.append(
            Loop(
                (
                    _move(x1, y1),
                    _turn(0),
                    _move(legs[0], 0.0),
                    _turn(1),
                    _move(uk - u1, vk - v1),
                    _turn(2 * k + 1, -1),
                    _move(-legs[k], 0.0),
                    _turn(2 * k, -1),
                    _move(-xk, -yk),
                ),
                name=f"legs 1 and {k + 1}",
            )
        )
    return Mechanism("three_rpr", tuple(Variable(n) for n in names), tuple(loops))


def double_butterfly() -> Mechanism:
    """A planar double butterfly: 8 bars, 10 revolute joints, 3 loops, input angle fixed.

    Dimensions chosen for this library so that the reference configuration closes exactly.
    """
    # Absolute angles of the eight bars in the reference configuration [rad].
    phi = np.array([0.0, 1.1, 0.35, 1.9, -0.4, 0.8, 2.3, 1.4])

    def point(angle: float, r: float, bend: float) -> tuple[float, float]:
        return r * math.cos(angle + bend), r * math.sin(angle + bend)

    # Ground carries A, B, C; bars 1 (from A), 2 (from B), 3 (from C) are ternary.
    A, B, C = (0.0, 0.0), (4.0, 0.3), (7.5, -0.2)
    chains = [
        # each chain: vectors (angle index, length, bend) from ground to ground
        [(1, 2.2, 0.0), (4, 1.7, 0.0), (2, -1.9, 0.2)],
        [(2, 2.4, -0.3), (5, 2.0, 0.0), (3, -2.1, 0.0)],
        [(1, 2.6, 0.5), (6, 1.5, 0.0), (5, -1.2, 0.6), (7, 1.8, 0.0), (3, -2.5, -0.4)],
    ]
    ends = [(A, B), (B, C), (A, C)]
    names = [f"bar{k}" for k in range(1, 8)]
    loops = []
    for chain, (start, end) in zip(chains, ends, strict=True):
        x, y = start
        for k, r, bend in chain:
            dx, dy = point(phi[k], r, bend)
            x, y = x + dx, y + dy
        # Close the gap with a constant at the ground, so that the reference configuration closes.
        factors: list[Constant | Motion] = [_move(start[0] - x, start[1] - y)]
        for k, r, bend in chain:
            factors += [
                _turn(k - 1),
                _move(r * math.cos(bend), r * math.sin(bend)),
                _turn(k - 1, -1),
            ]
        factors.append(_move(-start[0], -start[1]))
        loops.append(Loop(tuple(factors), closure="point", name=f"{start} to {end}"))
    return Mechanism("double_butterfly", tuple(Variable(n) for n in names), tuple(loops))


def stewart() -> Mechanism:
    """A Stewart platform with locked legs: all assembly modes of a 6-6 platform.

    Variables: platform position (x, y, z), yaw, pitch, roll (rotations about z, y, x in turn), and
    two angles of each leg. Geometry of the library, with a reference pose that closes exactly.
    """
    base = np.array(
        [[1.0, 0.2, 0.0], [0.3, 1.0, 0.1], [-0.7, 0.8, 0.0], [-1.0, -0.1, -0.1], [-0.4, -0.9, 0.0],
         [0.6, -0.8, 0.1]]
    )  # fmt: skip
    top = np.array(
        [[0.6, -0.1, 0.0], [0.4, 0.5, 0.05], [-0.2, 0.6, 0.0], [-0.6, 0.1, -0.05],
         [-0.3, -0.5, 0.0], [0.3, -0.5, 0.05]]
    )  # fmt: skip
    reference = np.array([0.1, -0.05, 1.3])
    lengths = np.linalg.norm(top + reference - base, axis=1)
    variables = [
        Variable("x", "translation", -3.0, 3.0),
        Variable("y", "translation", -3.0, 3.0),
        Variable("z", "translation", 0.0, 3.0),
        Variable("yaw"),
        Variable("pitch", "rotation", -math.pi / 2, math.pi / 2),
        Variable("roll"),
    ]
    loops = []
    for k in range(6):
        variables += [
            Variable(f"leg{k + 1}_azimuth"),
            Variable(f"leg{k + 1}_elevation", "rotation", -math.pi / 2, math.pi / 2),
        ]
        leg = 6 + 2 * k
        p, b = top[k], base[k]
        platform_point = np.eye(4)
        platform_point[:3, 3] = p
        base_point = np.eye(4)
        base_point[:3, 3] = -b
        # T(x, y, z) R(yaw, pitch, roll) p = b + Rz(azimuth) Ry(elevation) (l, 0, 0), as one product
        # read from the leg: the point of the platform in the frame of the leg's end is the origin.
        loops.append(
            Loop(
                (
                    Constant(translation(0, -lengths[k])),
                    Motion(leg + 1, 1, -1),
                    Motion(leg, 2, -1),
                    Constant(base_point),
                    Motion(0, 0),
                    Motion(1, 1),
                    Motion(2, 2),
                    Motion(3, 2),
                    Motion(4, 1),
                    Motion(5, 0),
                    Constant(platform_point),
                ),
                closure="point",
                name=f"leg {k + 1}",
            )
        )
    return Mechanism("stewart", tuple(variables), tuple(loops))


_MAKERS: dict[str, Callable[[], Mechanism]] = {
    "bennett": bennett,
    "bricard": bricard,
    "double_butterfly": double_butterfly,
    "iiwa7": iiwa7,
    "manseur_doty": manseur_doty,
    "planar_four_bar": planar_four_bar,
    "puma560": puma560,
    "scara": scara,
    "spherical_four_bar": spherical_four_bar,
    "stewart": stewart,
    "three_rpr": three_rpr,
    "ur5": ur5,
}

NAMES = tuple(_MAKERS)


def get(name: str) -> Mechanism:
    """A mechanism of the library by name."""
    try:
        checks.one_of("mechanism", name, NAMES)
    except InvalidInput as error:
        raise MechanismError(error.field, error.problem) from None
    return _MAKERS[name]()
