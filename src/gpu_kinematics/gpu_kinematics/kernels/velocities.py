"""Jacobians, singularity measures, and the motion of platform and joints from one another."""

from __future__ import annotations

from gpu_kinematics.kernels.elementary import adjugate, combine, dot, finite, minus
from gpu_kinematics.kernels.language import both, either, fabs, select, sqrt
from gpu_kinematics.kernels.positions import elbows, fk, ik
from gpu_kinematics.kernels.records import (
    Columns,
    Direction,
    Joints,
    Matrix,
    Measures,
    Options,
    Pose,
    Robot,
    Vector,
)

__all__ = [
    "dexterity",
    "fk_motion",
    "ik_motion",
    "jacobian",
    "joint_rates",
    "measures",
    "pose",
    "stretched",
]


def coupling(La: float, d: Direction, t: Direction, r: Vector) -> float:
    """J_q of one arm: (p - c_i) . dc_i/da."""
    return -La * ((r.x * d.c + r.y * d.s) * t.s + r.z * t.c)


def pose(robot: Robot, angle: Joints, p: Vector) -> Pose:
    """Rods and couplings of a robot whose platform is at p."""
    e = elbows(robot, angle)
    r1 = minus(p, e.c1)
    r2 = minus(p, e.c2)
    r3 = minus(p, e.c3)
    k = Joints(
        coupling(robot.La, robot.d1, e.t1, r1),
        coupling(robot.La, robot.d2, e.t2, r2),
        coupling(robot.La, robot.d3, e.t3, r3),
    )
    return Pose(r1, r2, r3, k, e.t1, e.t2, e.t3)


def jacobian_columns(at: Pose) -> Columns:
    """J = J_x^-1 J_q column by column, and det J_x."""
    m = adjugate(at.r1, at.r2, at.r3)
    f1 = at.k.one / m.det
    f2 = at.k.two / m.det
    f3 = at.k.three / m.det
    return Columns(
        Vector(f1 * m.a.x, f1 * m.a.y, f1 * m.a.z),
        Vector(f2 * m.b.x, f2 * m.b.y, f2 * m.b.z),
        Vector(f3 * m.c.x, f3 * m.c.y, f3 * m.c.z),
        m.det,
    )


def parallel_singular(robot: Robot, tol: float, status: float, det: float) -> bool:
    """Whether det J_x of a pose that is no failure vanishes (type 2 singularity)."""
    return both(status < 4096.0, fabs(det) <= tol * (robot.Lb * robot.Lb2))


def stretched(robot: Robot, tol: float, k: Joints) -> bool:
    """Whether the coupling of an arm vanishes (type 1 singularity)."""
    edge = tol * (robot.La * robot.Lb)
    return either(either(fabs(k.one) <= edge, fabs(k.two) <= edge), fabs(k.three) <= edge)


def jacobian(robot: Robot, options: Options, angle: Joints) -> tuple[Vector, Matrix, float]:
    """Position, Jacobian dp/da, status."""
    p, status = fk(robot, options, angle)
    j = jacobian_columns(pose(robot, angle, p))
    flat = parallel_singular(robot, options.tol, status, j.det)
    rows = Matrix(
        Vector(j.a.x, j.b.x, j.c.x), Vector(j.a.y, j.b.y, j.c.y), Vector(j.a.z, j.b.z, j.c.z)
    )
    return p, rows, status + select(flat, 8192.0, 0.0)


def rotate_columns(a: Vector, b: Vector) -> tuple[Vector, Vector]:
    """One Jacobi rotation that makes two columns orthogonal (Hestenes)."""
    gamma = dot(a, b)
    zeta = (dot(b, b) - dot(a, a)) / (2.0 * select(gamma == 0.0, 1.0, gamma))
    root = fabs(zeta) + sqrt(1.0 + zeta * zeta)
    t = select(gamma == 0.0, 0.0, select(zeta < 0.0, -1.0, 1.0) / root)
    c = 1.0 / sqrt(1.0 + t * t)
    s = c * t
    return (
        Vector(c * a.x - s * b.x, c * a.y - s * b.y, c * a.z - s * b.z),
        Vector(s * a.x + c * b.x, s * a.y + c * b.y, s * a.z + c * b.z),
    )


def measures_at(robot: Robot, angle: Joints, p: Vector) -> Measures:
    """Condition and singular values of J by one-sided Jacobi rotations; determinants."""
    at = pose(robot, angle, p)
    a, b, c, det = jacobian_columns(at)
    for _ in range(4):
        a, b = rotate_columns(a, b)
        a, c = rotate_columns(a, c)
        b, c = rotate_columns(b, c)
    n1 = sqrt(dot(a, a))
    n2 = sqrt(dot(b, b))
    n3 = sqrt(dot(c, c))
    low = select(n1 < n2, n1, n2)
    high = select(n1 < n2, n2, n1)
    smin = select(n3 < low, n3, low)
    smax = select(n3 > high, n3, high)
    product = (at.k.one * at.k.two) * at.k.three
    flat = either(det == 0.0, product == 0.0)
    condition = select(flat, 1.0, smax) / select(flat, 0.0, smin)
    iLb = 1.0 / robot.Lb
    unit = robot.iLa * iLb
    parallel = ((det * iLb) * iLb) * iLb
    serial = ((at.k.one * unit) * (at.k.two * unit)) * (at.k.three * unit)
    return Measures(condition, smin, smax, det, product, product / det, parallel, serial)


def singular_bit(status: float, tol: float, m: Measures) -> float:
    """Status bit 8192: near a singularity of either kind, if nothing worse is the case."""
    close = either(fabs(m.parallel) <= tol, fabs(m.serial) <= tol)
    return select(both(status < 4096.0, close), 8192.0, 0.0)


def measures(robot: Robot, options: Options, angle: Joints) -> tuple[Measures, float]:
    """Singularity measures at joint angles, status."""
    p, status = fk(robot, options, angle)
    m = measures_at(robot, angle, p)
    return m, status + singular_bit(status, options.tol, m)


def dexterity(robot: Robot, options: Options, position: Vector) -> tuple[Measures, float]:
    """Singularity measures at a position, status."""
    angle, status = ik(robot, options, position)
    m = measures_at(robot, angle, position)
    return m, status + singular_bit(status, options.tol, m)


def arm_load(La: float, d: Direction, t: Direction, r: Vector, v: Vector, w: float) -> float:
    """What velocity alone adds to (p - c).p'' = J_q a'' + load.

    load = (p - c) . (d2c/da2) w^2 - |v - (dc/da) w|^2.
    """
    lw = La * w
    e = Vector(v.x + (lw * t.s) * d.c, v.y + (lw * t.s) * d.s, v.z + lw * t.c)
    bend = -(lw * w) * (t.c * (r.x * d.c + r.y * d.s) - t.s * r.z)
    return bend - dot(e, e)


def loads(robot: Robot, at: Pose, v: Vector, w: Joints) -> Joints:
    """The loads of the three arms at a velocity of the platform and rates of the joints."""
    return Joints(
        arm_load(robot.La, robot.d1, at.t1, at.r1, v, w.one),
        arm_load(robot.La, robot.d2, at.t2, at.r2, v, w.two),
        arm_load(robot.La, robot.d3, at.t3, at.r3, v, w.three),
    )


def joint_rates(at: Pose, v: Vector) -> Joints:
    """J_q^-1 J_x v: joint rates for a velocity of the platform."""
    return Joints(dot(at.r1, v) / at.k.one, dot(at.r2, v) / at.k.two, dot(at.r3, v) / at.k.three)


def fk_motion(
    robot: Robot, options: Options, angle: Joints, rate: Joints, rate2: Joints
) -> tuple[Vector, Vector, Vector, float]:
    """Position, velocity and acceleration of the platform from those of the joints, status."""
    p, status = fk(robot, options, angle)
    at = pose(robot, angle, p)
    m = adjugate(at.r1, at.r2, at.r3)
    k = at.k
    f = combine(Joints(k.one * rate.one, k.two * rate.two, k.three * rate.three), m)
    v = Vector(f.x / m.det, f.y / m.det, f.z / m.det)
    load = loads(robot, at, v, rate)
    pull = Joints(
        k.one * rate2.one + load.one,
        k.two * rate2.two + load.two,
        k.three * rate2.three + load.three,
    )
    g = combine(pull, m)
    u = Vector(g.x / m.det, g.y / m.det, g.z / m.det)
    flat = parallel_singular(robot, options.tol, status, m.det)
    bad = select(finite(u), 0.0, select(status < 4096.0, 4096.0, 0.0))
    return p, v, u, status + select(flat, 8192.0, bad)


def ik_motion(
    robot: Robot, options: Options, position: Vector, velocity: Vector, acceleration: Vector
) -> tuple[Joints, Joints, Joints, float]:
    """Angles, rates and accelerations of the joints from the platform's motion, status."""
    a, status = ik(robot, options, position)
    at = pose(robot, a, position)
    w = joint_rates(at, velocity)
    load = loads(robot, at, velocity, w)
    q = Joints(
        (dot(at.r1, acceleration) - load.one) / at.k.one,
        (dot(at.r2, acceleration) - load.two) / at.k.two,
        (dot(at.r3, acceleration) - load.three) / at.k.three,
    )
    moving = both(finite(velocity), finite(acceleration))
    reachable = both(both(a.one == a.one, a.two == a.two), a.three == a.three)
    flat = both(reachable, stretched(robot, options.tol, at.k))
    extra = select(moving, select(flat, 8192.0, 0.0), 4096.0)
    return a, w, q, status + select(status < 4096.0, extra, 0.0)
