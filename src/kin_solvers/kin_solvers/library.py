"""Named mechanisms, each with the source of its parameters and what is known of its solutions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kin_core import checks
from kin_core.rotations import inverse_transform
from kin_solvers.dh import arm_from_dh, loop_from_dh
from kin_solvers.errors import MechanismError, own_errors
from kin_solvers.mechanism import (
    Constant,
    Loop,
    Mechanism,
    Motion,
    Variable,
    rotation,
    translation,
)

__all__ = ["NAMES", "get", "platform"]

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
    """The planar double butterfly, an eight-bar with 3 loops, its input link locked: 6 solutions.

    Triangles 1 (ground), 2, 3, 4, joined by bars of 11, 9, 7 and 12; dimensions of the example of
    C.W. Wampler, "Solving the kinematics of planar mechanisms by Dixon determinant and a
    complex-plane formulation" (2001), with triangle 2 locked at -67.38 degrees. Variables: the
    angles of the nine free joints, each named after the links it joins.
    """
    locked = _move(-5.6, 4.2).matrix @ rotation(2, -math.radians(67.38))
    names = ("1_b1", "b1_3", "2_b2", "b2_3", "3_4", "2_b3", "b3_4", "1_b4", "b4_4")
    to_3: list[Constant | Motion] = [_turn(0), _move(11.0, 0.0), _turn(1)]
    to_4: list[Constant | Motion] = [*to_3, _move(-3.0, 4.0), _turn(4)]

    def back(end: int, start: int, length: float, ground: Array) -> list[Constant | Motion]:
        """From a triangle over a bar to the ground."""
        return [
            _turn(end, -1), _move(-length, 0.0), _turn(start, -1),
            Constant(inverse_transform(ground)),
        ]  # fmt: skip

    loops = (
        [*to_3, _move(-3.0, 0.0), *back(3, 2, 9.0, locked @ _move(-2.4, 1.8).matrix)],
        [*to_4, _move(-6.0, 0.0), *back(6, 5, 7.0, locked @ _move(-2.0, 0.0).matrix)],
        [*to_4, _move(-6.46, 2.69), *back(8, 7, 12.0, _move(-13.0, 0.0).matrix)],
    )
    return Mechanism(
        "double_butterfly",
        tuple(Variable(n) for n in names),
        tuple(Loop(tuple(loop), name=f"bars 1 and {k}") for k, loop in enumerate(loops, 2)),
    )


def platform(name: str, base: Array, top: Array, lengths: Array) -> Mechanism:
    """A platform on six legs of fixed length with ball joints, points of shape (6, 3) [m].

    Variables: two angles of every leg (azimuth about z, elevation), and yaw, pitch and roll
    (rotations about z, y, x in turn) of the platform, seen from the first leg, whose x axis points
    along it. The second to the sixth leg each close a loop by a point.
    """
    variables = []
    for k in range(6):
        variables += [
            Variable(f"leg{k + 1}_azimuth"),
            Variable(f"leg{k + 1}_elevation", "rotation", -math.pi / 2, math.pi / 2),
        ]
    variables += [
        Variable("yaw"),
        Variable("pitch", "rotation", -math.pi / 2, math.pi / 2),
        Variable("roll"),
    ]

    def at(point: Array) -> Constant:
        matrix = np.eye(4)
        matrix[:3, 3] = point
        return Constant(matrix)

    loops = []
    for k in range(1, 6):
        # The end of leg k sees the point of the platform at its origin.
        loops.append(
            Loop(
                (
                    Constant(translation(0, -float(lengths[k]))),
                    Motion(2 * k + 1, 1, -1),
                    Motion(2 * k, 2, -1),
                    at(base[0] - base[k]),
                    Motion(0, 2),
                    Motion(1, 1),
                    Constant(translation(0, float(lengths[0]))),
                    Motion(12, 2),
                    Motion(13, 1),
                    Motion(14, 0),
                    at(top[k] - top[0]),
                ),
                closure="point",
                name=f"leg {k + 1}",
            )
        )
    return Mechanism(name, tuple(variables), tuple(loops))


def stewart() -> Mechanism:
    """A Stewart platform with locked legs: all assembly modes of a general 6-6 platform.

    Geometry of this library; the legs have the lengths of a level pose at (0.1, -0.05, 1.3).
    """
    base = np.array(
        [[1.0, 0.2, 0.0], [0.3, 1.0, 0.1], [-0.7, 0.8, 0.0], [-1.0, -0.1, -0.1], [-0.4, -0.9, 0.0],
         [0.6, -0.8, 0.1]]
    )  # fmt: skip
    top = np.array(
        [[0.6, -0.1, 0.0], [0.4, 0.5, 0.05], [-0.2, 0.6, 0.0], [-0.6, 0.1, -0.05],
         [-0.3, -0.5, 0.0], [0.3, -0.5, 0.05]]
    )  # fmt: skip
    lengths = np.linalg.norm(top - base + np.array([0.1, -0.05, 1.3]), axis=1)
    return platform("stewart", base, top, lengths)


def dietmaier() -> Mechanism:
    """Dietmaier's platform, to the six decimals that are published: 40 real postures.

    P. Dietmaier, "The Stewart-Gough platform of general geometry can have 40 real postures" (1998).
    """
    base = np.array(
        [[0.0, 0.0, 0.0], [1.107915, 0.0, 0.0], [0.549094, 0.756063, 0.0],
         [0.735077, -0.223935, 0.525991], [0.514188, -0.526063, -0.368418],
         [0.590473, 0.094733, -0.205018]]
    )  # fmt: skip
    top = np.array(
        [[0.0, 0.0, 0.0], [0.542805, 0.0, 0.0], [0.956919, -0.528915, 0.0],
         [0.665885, -0.353482, 1.402538], [0.478359, 1.158742, 0.107672],
         [-0.137087, -0.235121, 0.353913]]
    )  # fmt: skip
    lengths = np.array([1.0, 0.645275, 1.086284, 1.503439, 1.281933, 0.771071])
    return platform("dietmaier", base, top, lengths)


_MAKERS: dict[str, Callable[[], Mechanism]] = {
    maker.__name__: maker
    for maker in (
        bennett, bricard, dietmaier, double_butterfly, iiwa7, manseur_doty, planar_four_bar,
        puma560, scara, spherical_four_bar, stewart, three_rpr, ur5,
    )
}  # fmt: skip

NAMES = tuple(_MAKERS)


def get(name: str) -> Mechanism:
    """A mechanism of the library by name."""
    with own_errors(MechanismError):
        checks.one_of("mechanism", name, NAMES)
    return _MAKERS[name]()
