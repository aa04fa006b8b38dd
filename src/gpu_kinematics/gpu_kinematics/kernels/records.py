"""The records that kernels read and write; each field is a row of an array.

Joint angles are positive with the arm down; z is up. Arms are numbered one, two, three.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "Columns",
    "Direction",
    "Elbows",
    "Joints",
    "Law",
    "Matrix",
    "Measures",
    "MoveRows",
    "Options",
    "Path",
    "Pose",
    "Profile",
    "Robot",
    "Vector",
]


class Vector(NamedTuple):
    """A position [m], velocity [m/s] or acceleration [m/s^2]."""

    x: float
    y: float
    z: float


class Joints(NamedTuple):
    """One number for each arm."""

    one: float
    two: float
    three: float


class Direction(NamedTuple):
    """Cosine and sine of an angle."""

    c: float
    s: float


class Robot(NamedTuple):
    """Dimensions; what divides by La is computed once, on the host, in float64."""

    R: float  # base radius less platform radius [m]
    La: float  # driven arm [m]
    Lb: float  # rod [m]
    iLa: float  # 1 / La
    RoLa: float  # R / La
    K: float  # (Lb^2 - La^2 - R^2) / La
    Lb2: float  # Lb^2
    d1: Direction  # of the arms about z
    d2: Direction
    d3: Direction


class Options(NamedTuple):
    """Settings of a call."""

    elbow: Joints  # 1: outward, -1: inward
    down: float  # 1: platform below the elbows, -1: above
    lower: Joints  # joint limits [rad]
    upper: Joints
    tol: float  # unit determinant below which a pose is singular


class Elbows(NamedTuple):
    """The elbows c_i, and cosine and sine of the joint angles."""

    c1: Vector
    c2: Vector
    c3: Vector
    t1: Direction
    t2: Direction
    t3: Direction


class Pose(NamedTuple):
    """The rods p - c_i, the couplings J_q, and cosine and sine of the joint angles."""

    r1: Vector
    r2: Vector
    r3: Vector
    k: Joints
    t1: Direction
    t2: Direction
    t3: Direction


class Columns(NamedTuple):
    """Three columns of a matrix, and a determinant."""

    a: Vector
    b: Vector
    c: Vector
    det: float


class Matrix(NamedTuple):
    """The rows of a matrix."""

    x: Vector
    y: Vector
    z: Vector


class Measures(NamedTuple):
    """How far a pose is from singular; see ``gpu_kinematics.results.Measures``."""

    condition: float
    smin: float
    smax: float
    detx: float
    detq: float
    det: float
    parallel: float
    serial: float


class MoveRows(NamedTuple):
    """How to move; see ``gpu_kinematics.trajectory.Move``."""

    kind: float  # 0: straight; 1: up, across, down; 2: the same and back, for ever
    height: float
    overlap: float
    pause: float
    vmax: float
    amax: float
    jmax: float
    scale: float


class Profile(NamedTuple):
    """Times of a jerk-limited move from rest to rest [s], and its jerk per unit of distance."""

    Tj: float  # of constant jerk
    Ta: float  # of acceleration
    Tv: float  # of constant speed
    j: float


class Path(NamedTuple):
    """A planned move: three legs, each with its profile and the time when it begins."""

    start: Vector
    way: Vector
    h1: float
    h3: float
    lift: Profile
    t2: float
    across: Profile
    t3: float
    drop: Profile
    Tp: float
    dwell: float
    cyclic: float
    lam: float


class Law(NamedTuple):
    """The control law: gain [1/s] and the largest joint rate [rad/s]."""

    gain: float
    wmax: float
