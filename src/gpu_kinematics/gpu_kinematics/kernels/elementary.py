"""Sine, cosine, arctangent, cube root; products of vectors."""

from __future__ import annotations

from gpu_kinematics.kernels.language import (
    ATAN,
    COS,
    HALF_PI,
    MAX_ANGLE,
    PIO2_1,
    PIO2_2,
    PIO2_3,
    QUARTER_PI,
    SIN,
    TAN_PI_8,
    TWO_OVER_PI,
    both,
    either,
    fabs,
    poly,
    rint,
    select,
    sqrt,
)
from gpu_kinematics.kernels.records import Columns, Direction, Joints, Vector

__all__ = [
    "adjugate",
    "cbrt",
    "combine",
    "cross",
    "dot",
    "finite",
    "minus",
    "sincos",
    "twice_atan",
]


def sincos(a: float) -> Direction:
    """Cosine and sine, |a| <= MAX_ANGLE: quadrant by Cody-Waite reduction, then polynomials.

    Beyond it (and for NaN) those of 0, so that nothing overflows: the polynomials of an angle of
    1e25 are so large that even rods of imaginary length would meet.
    """
    b = select(fabs(a) <= MAX_ANGLE, a, 0.0)
    k = rint(b * TWO_OVER_PI)
    r = ((b - k * PIO2_1) - k * PIO2_2) - k * PIO2_3
    u = r * r
    s = r + (r * u) * poly(u, SIN)
    c = (1.0 - 0.5 * u) + (u * u) * poly(u, COS)
    m = k - 4.0 * rint(0.25 * k)
    swap = m * m == 1.0
    ss = select(swap, c, s)
    cc = select(swap, s, c)
    sine = select(either(m < 0.0, m > 1.5), -ss, ss)
    cosine = select(either(m > 0.5, m < -1.5), -cc, cc)
    return Direction(cosine, sine)


def twice_atan(y: float, x: float) -> float:
    """2 atan(y / x) in [-pi, pi], 0 for 0 / 0: one division for all three octant reductions."""
    ay = fabs(y)
    ax = fabs(x)
    low = ay <= TAN_PI_8 * ax
    high = TAN_PI_8 * ay >= ax
    num = select(low, ay, select(high, -ax, ay - ax))
    den = select(low, ax, select(high, ay, ay + ax))
    base = select(low, 0.0, select(high, HALF_PI, QUARTER_PI))
    t = num / select(den == 0.0, 1.0, den)
    u = t * t
    v = 2.0 * (base + (t + (t * u) * poly(u, ATAN)))
    return select(either(both(y < 0.0, x >= 0.0), both(y > 0.0, x < 0.0)), -v, v)


def cbrt(x: float) -> float:
    """Cube root for x >= 0: x^(21/64) by square roots, then three Halley steps."""
    r4 = sqrt(sqrt(x))
    r16 = sqrt(sqrt(r4))
    r64 = sqrt(sqrt(r16))
    y = (r4 * r16) * r64
    for _ in range(3):
        y3 = (y * y) * y
        y = y * ((y3 + 2.0 * x) / select(y3 == 0.0, 1.0, 2.0 * y3 + x))
    return y


def minus(a: Vector, b: Vector) -> Vector:
    """A - b."""
    return Vector(a.x - b.x, a.y - b.y, a.z - b.z)


def dot(a: Vector, b: Vector) -> float:
    """A . b."""
    return (a.x * b.x + a.y * b.y) + a.z * b.z


def cross(a: Vector, b: Vector) -> Vector:
    """A x b."""
    return Vector(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)


def finite(v: Vector) -> bool:
    """Whether all components are numbers."""
    return ((v.x - v.x) + (v.y - v.y)) + (v.z - v.z) == 0.0


def adjugate(r1: Vector, r2: Vector, r3: Vector) -> Columns:
    """Adjugate of the matrix with rows r_i: columns r2 x r3, r3 x r1, r1 x r2; the determinant."""
    a = cross(r2, r3)
    return Columns(a, cross(r3, r1), cross(r1, r2), dot(r1, a))


def combine(k: Joints, m: Columns) -> Vector:
    """The columns of a matrix, weighted and added."""
    return Vector(
        (k.one * m.a.x + k.two * m.b.x) + k.three * m.c.x,
        (k.one * m.a.y + k.two * m.b.y) + k.three * m.c.y,
        (k.one * m.a.z + k.two * m.b.z) + k.three * m.c.z,
    )
