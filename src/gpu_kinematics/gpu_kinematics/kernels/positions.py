"""Forward and inverse kinematics.

The elbow of arm i, turned by th_i about z:
    c_i = ((R + La cos a_i) cos th_i, (R + La cos a_i) sin th_i, -La sin a_i).
"""

from __future__ import annotations

from gpu_kinematics.kernels.elementary import (
    adjugate,
    combine,
    cross,
    dot,
    finite,
    minus,
    sincos,
    twice_atan,
)
from gpu_kinematics.kernels.language import MAX_ANGLE, SINGLE, both, fabs, select, sqrt
from gpu_kinematics.kernels.records import Direction, Elbows, Joints, Options, Robot, Vector

__all__ = ["elbows", "fk", "ik"]


def elbow(robot: Robot, d: Direction, t: Direction) -> Vector:
    """The elbow of an arm in the direction d, turned down by the angle of t."""
    r = robot.R + robot.La * t.c
    return Vector(r * d.c, r * d.s, -(robot.La * t.s))


def elbows(robot: Robot, angle: Joints) -> Elbows:
    """The three elbows, and cosine and sine of the joint angles."""
    t1 = sincos(angle.one)
    t2 = sincos(angle.two)
    t3 = sincos(angle.three)
    c1 = elbow(robot, robot.d1, t1)
    c2 = elbow(robot, robot.d2, t2)
    return Elbows(c1, c2, elbow(robot, robot.d3, t3), t1, t2, t3)


def sphere_meet(robot: Robot, e: Elbows, Lb2: float, down: float) -> tuple[Vector, float, float]:
    """Where the three spheres of radius Lb about the elbows meet: p, the radicand, and |n|^2.

    The differences of the sphere equations are the planes u.p = R La (cos a2 - cos a1) and
    v.p = R La (cos a3 - cos a1), u = c2 - c1, v = c3 - c1, since |c_i|^2 = R^2 + La^2 +
    2 R La cos a_i. They meet in the line p = p0 + l n, n = u x v, p0 the point nearest to the
    origin; the first sphere then gives l. Measured from the origin and not from c1, the large
    terms never cancel.
    """
    c1 = e.c1
    u = minus(e.c2, c1)
    v = minus(e.c3, c1)
    n = cross(u, v)
    n2 = dot(n, n)
    i2 = 1.0 / n2
    RLa = robot.R * robot.La
    ku = (RLa * (e.t2.c - e.t1.c)) * i2
    kv = (RLa * (e.t3.c - e.t1.c)) * i2
    p0 = cross(Vector(ku * v.x - kv * u.x, ku * v.y - kv * u.y, ku * v.z - kv * u.z), n)
    b = dot(n, c1)
    beyond = Vector(p0.x - 2.0 * c1.x, p0.y - 2.0 * c1.y, p0.z - 2.0 * c1.z)
    fixed = ((robot.R * robot.R + robot.La * robot.La) - Lb2) + (2.0 * RLa) * e.t1.c
    rad = b * b - n2 * (fixed + dot(p0, beyond))
    l = (b - sqrt(rad) * select(n.z < 0.0, -down, down)) * i2
    p = Vector(p0.x + l * n.x, p0.y + l * n.y, p0.z + l * n.z)
    if SINGLE:
        # One Newton step on the three sphere equations, away from the singularity rad = 0:
        # float32 then loses little more than its last digit.
        r1 = minus(p, e.c1)
        r2 = minus(p, e.c2)
        r3 = minus(p, e.c3)
        m = adjugate(r1, r2, r3)
        f = select(rad > 0.0001 * (n2 * Lb2), -0.5 / select(rad > 0.0, m.det, 1.0), 0.0)
        step = combine(Joints(dot(r1, r1) - Lb2, dot(r2, r2) - Lb2, dot(r3, r3) - Lb2), m)
        p = Vector(p.x + f * step.x, p.y + f * step.y, p.z + f * step.z)
    return p, rad, n2


def arm_angle(robot: Robot, d: Direction, e: float, p: Vector, pp: float) -> tuple[float, float]:
    """Joint angle of one arm from A sin a + B cos a = C, and its status bits 1 and 2.

    tan(a/2) = (B - C) / (r - A) = (A + r) / (B + C), r = e sqrt(A^2 + B^2 - C^2): of the two
    quotients the one without cancellation is taken. e = 1: elbow outward, e = -1: inward. Without
    a root the arm is too far (C < 0) or too near (C > 0) for its rod.
    """
    A = 2.0 * p.z
    q = 2.0 * (p.x * d.c + p.y * d.s)
    B = 2.0 * robot.R - q
    C = (robot.K - pp * robot.iLa) + q * robot.RoLa
    less = B - C
    more = B + C
    rad = A * A + less * more
    r = e * sqrt(rad)
    near = e * A <= 0.0
    bits = select(rad >= 0.0, 0.0, select(C < 0.0, 1.0, select(C > 0.0, 2.0, 0.0)))
    return twice_atan(select(near, less, A + r), select(near, r - A, more)), bits


def three_arms(bits: Joints) -> float:
    """Status bits of the three arms, each shifted to its place."""
    return (bits.one + 16.0 * bits.two) + 256.0 * bits.three


def limit_bits(a: float, lo: float, hi: float) -> float:
    """Status bits 4 and 8 of one arm: below or above its limits."""
    return select(a < lo, 4.0, 0.0) + select(a > hi, 8.0, 0.0)


def limits(options: Options, angle: Joints) -> float:
    """Limit bits of the three arms."""
    return three_arms(
        Joints(
            limit_bits(angle.one, options.lower.one, options.upper.one),
            limit_bits(angle.two, options.lower.two, options.upper.two),
            limit_bits(angle.three, options.lower.three, options.upper.three),
        )
    )


def invalid_bits(valid: bool, R: float) -> float:
    """Status bits 4096 and 32768: bad input; geometry refused by the host (R is NaN)."""
    return select(valid, 0.0, 4096.0) + select(R == R, 0.0, 32768.0)


def fk(robot: Robot, options: Options, angle: Joints) -> tuple[Vector, float]:
    """Forward kinematics: position, status."""
    e = elbows(robot, angle)
    small = both(
        both(fabs(angle.one) <= MAX_ANGLE, fabs(angle.two) <= MAX_ANGLE),
        fabs(angle.three) <= MAX_ANGLE,
    )
    # A negative Lb2 leaves no solution: angles beyond MAX_ANGLE give NaN, not a wrong position.
    none = -((robot.R * robot.R + robot.La * robot.La) + robot.Lb2)
    p, rad, n2 = sphere_meet(robot, e, select(small, robot.Lb2, none), options.down)
    invalid = invalid_bits(small, robot.R)
    meet = select(n2 == 0.0, 8192.0, select(rad >= 0.0, 0.0, 16384.0))
    return p, limits(options, angle) + select(invalid == 0.0, meet, invalid)


def ik(robot: Robot, options: Options, position: Vector) -> tuple[Joints, float]:
    """Inverse kinematics: three angles, status."""
    pp = dot(position, position)
    a1, b1 = arm_angle(robot, robot.d1, options.elbow.one, position, pp)
    a2, b2 = arm_angle(robot, robot.d2, options.elbow.two, position, pp)
    a3, b3 = arm_angle(robot, robot.d3, options.elbow.three, position, pp)
    invalid = invalid_bits(finite(position), robot.R)
    angle = Joints(a1, a2, a3)
    reach = three_arms(Joints(b1, b2, b3))
    return angle, limits(options, angle) + select(invalid == 0.0, reach, invalid)
