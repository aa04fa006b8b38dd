"""The one kernel text: every formula of this package, written once.

The functions below are a restricted Python: straight-line arithmetic on scalars with ``+ - * /``,
``sqrt``, ``rint``, ``fabs``, ``poly`` and ``select``, no branches, no integers, and loops only of
a fixed length. ``render.py`` turns this text into numba modules and into CUDA C, in float64 and in
float32. Each allowed operation is rounded in the same way by IEEE 754 hardware, so the renderings
give the same bits (as long as no compiler fuses a multiplication and an addition).

The text also runs as it stands, on Python floats, which is how it is easiest to debug.

Conventions: joint angle positive = arm down; z up; elbow of arm i
    c_i = ((R + La cos a_i) cos th_i, (R + La cos a_i) sin th_i, -La sin a_i).

Parameters are matched by name with the rows of the groups declared in ``GEOMETRY``, ``OPTIONS``
and ``OPS``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["CONSTANTS", "FUNCTIONS", "GEOMETRY", "OPS", "OPTIONS", "POLYNOMIALS", "Op"]

#: Rows that describe a robot; 1 / La and the rest are computed once, on the host, in float64.
GEOMETRY = ("R", "La", "Lb", "iLa", "RoLa", "K", "Lb2", "c1", "s1", "c2", "s2", "c3", "s3")
#: Rows of settings: elbow signs, platform sign, joint limits, singularity tolerance.
OPTIONS = ("e1", "e2", "e3", "down", "lo1", "lo2", "lo3", "hi1", "hi2", "hi3", "tol")


@dataclass(frozen=True)
class Op:
    """What a kernel reads and writes, as groups of rows with names.

    Attributes:
        inputs: Group name to its rows, beside geometry and options.
        outputs: Group name to its number of rows.
        status: Whether the kernel ends with a status mask.
        fast: Whether the CPU gets a path without scratch for the plain layout.
    """

    inputs: dict[str, tuple[str, ...]]
    outputs: dict[str, int]
    status: bool = True
    fast: bool = False


_PATH = (
    *("x0", "y0", "z0", "dx", "dy", "dz", "h1", "h3"),
    *("Tj1", "Ta1", "Tv1", "j1"),
    *("t2", "Tj2", "Ta2", "Tv2", "j2"),
    *("t3", "Tj3", "Ta3", "Tv3", "j3"),
    *("Tp", "dwell", "cyclic", "lam"),
)
_A, _W, _E = ("a1", "a2", "a3"), ("w1", "w2", "w3"), ("q1", "q2", "q3")
_P, _V, _U = ("x", "y", "z"), ("vx", "vy", "vz"), ("ux", "uy", "uz")

#: The kernels.
OPS: dict[str, Op] = {
    "fk": Op({"angle": _A}, {"position": 3}, fast=True),
    "ik": Op({"position": _P}, {"angle": 3}, fast=True),
    "jacobian": Op({"angle": _A}, {"position": 3, "jacobian": 9}),
    "measures": Op({"angle": _A}, {"measure": 8}),
    "fk_motion": Op(
        {"angle": _A, "rate": _W, "rate2": _E},
        {"position": 3, "velocity": 3, "acceleration": 3},
    ),
    "ik_motion": Op(
        {"position": _P, "velocity": _V, "acceleration": _U},
        {"angle": 3, "rate": 3, "rate2": 3},
    ),
    "dexterity": Op({"position": _P}, {"measure": 8}),
    "plan": Op(
        {
            "start": ("x0", "y0", "z0"),
            "goal": ("x1", "y1", "z1"),
            "move": ("kind", "height", "overlap", "pause", "vmax", "amax", "jmax", "scale"),
        },
        {"path": len(_PATH), "duration": 1},
        status=False,
    ),
    "trajectory": Op(
        {"time": ("t",), "path": _PATH},
        {
            "position": 3,
            "velocity": 3,
            "acceleration": 3,
            "angle": 3,
            "rate": 3,
            "rate2": 3,
        },
    ),
    "control": Op(
        {"angle": _A, "target": _P, "feedforward": _V, "law": ("gain", "wmax")},
        {"rate": 3, "error": 1},
    ),
}

#: Numbers that differ between the precisions: name -> (float64, float32).
#: pi/2 = PIO2_1 + PIO2_2 + PIO2_3, the first two short enough that k * PIO2_i is exact
#: for |k| < 2^13 (Cody and Waite).
CONSTANTS: dict[str, tuple[float, float]] = {
    "TWO_OVER_PI": (2.0 / math.pi, 2.0 / math.pi),
    "PIO2_1": (float.fromhex("0x1.921fb544p+0"), float.fromhex("0x1.920p+0")),
    "PIO2_2": (float.fromhex("0x1.0b4611a6p-34"), float.fromhex("0x1.fb4p-12")),
    "PIO2_3": (float.fromhex("0x1.3198a2e037073p-69"), float.fromhex("0x1.4442d18p-24")),
    "TAN_PI_8": (math.sqrt(2.0) - 1.0, math.sqrt(2.0) - 1.0),
    "HALF_PI": (math.pi / 2.0, math.pi / 2.0),
    "QUARTER_PI": (math.pi / 4.0, math.pi / 4.0),
    "MAX_ANGLE": (8192.0, 8192.0),
    "THIRD": (1.0 / 3.0, 1.0 / 3.0),
}

#: Minimax polynomials (Remez, relative error 2^-58 / 2^-28 or better), lowest power first:
#: sin r = r + r u SIN(u), cos r = 1 - u/2 + u^2 COS(u) with u = r^2, |r| <= pi/4;
#: atan t = t + t u ATAN(u) with u = t^2, |t| <= tan(pi/8).
POLYNOMIALS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "SIN": (
        (
            -0.16666666666666632,
            0.008333333333322413,
            -0.00019841269829807924,
            2.7557313691952215e-06,
            -2.505075811994035e-08,
            1.5896795893785417e-10,
        ),
        (-0.1666665493675398, 0.008332177689207342, -0.0001951723498860661),
    ),
    "COS": (
        (
            0.0416666666666666,
            -0.0013888888888874125,
            2.480158728948282e-05,
            -2.7557314352496e-07,
            2.087572329327395e-09,
            -1.1359648753816349e-11,
        ),
        (0.04166664685488563, -0.0013887366921845916, 2.443838065724811e-05),
    ),
    "ATAN": (
        (
            -0.333333333333332,
            0.19999999999954007,
            -0.14285714280240314,
            0.11111110785703805,
            -0.09090897823368566,
            0.07692061395013734,
            -0.0666311753541818,
            0.05847987549306512,
            -0.050397465726881106,
            0.03807574429244452,
            -0.017919393008239193,
        ),
        (
            -0.3333331548983263,
            0.19998488394189431,
            -0.1424382746371188,
            0.1059583383637176,
            -0.0608300433743173,
        ),
    ),
}

#: A block under ``if SINGLE:`` is rendered for float32 only.
SINGLE = False

# --- what the text may call; here as plain Python ------------------------------------------------

TWO_OVER_PI, PIO2_1, PIO2_2, PIO2_3, TAN_PI_8, HALF_PI, QUARTER_PI, MAX_ANGLE, THIRD = (
    pair[0] for pair in CONSTANTS.values()
)
SIN, COS, ATAN = (pair[0] for pair in POLYNOMIALS.values())


def sqrt(x: float) -> float:
    """Square root, correctly rounded; NaN below zero."""
    return math.sqrt(x) if x >= 0.0 else math.nan


def rint(x: float) -> float:
    """Nearest integer, ties to even."""
    return float(round(x)) if math.isfinite(x) else x


def fabs(x: float) -> float:
    """Absolute value."""
    return abs(x)


def select(condition: bool, yes: float, no: float) -> float:
    """One of two values; both are computed."""
    return yes if condition else no


def both(p: bool, q: bool) -> bool:
    """Logical and, without a branch."""
    return p and q


def either(p: bool, q: bool) -> bool:
    """Logical or, without a branch."""
    return p or q


def poly(u: float, coefficients: tuple[float, ...]) -> float:
    """Polynomial with the lowest power first, by Horner's rule."""
    value = coefficients[-1]
    for c in coefficients[-2::-1]:
        value = value * u + c
    return value


# --- elementary functions ------------------------------------------------------------------------


def sincos(a: float) -> tuple[float, ...]:
    """Sine and cosine, |a| <= MAX_ANGLE: quadrant by Cody-Waite reduction, then polynomials.

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
    return sine, cosine


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


# --- positions -----------------------------------------------------------------------------------


def elbow(R: float, La: float, c: float, s: float, a: float) -> tuple[float, ...]:
    """Elbow c_i, and the sine and cosine of the joint angle."""
    sa, ca = sincos(a)
    r = R + La * ca
    return r * c, r * s, -(La * sa), sa, ca


def cross3(
    r1x: float,
    r1y: float,
    r1z: float,
    r2x: float,
    r2y: float,
    r2z: float,
    r3x: float,
    r3y: float,
    r3z: float,
) -> tuple[float, ...]:
    """Adjugate columns r2 x r3, r3 x r1, r1 x r2, and the determinant."""
    ax = r2y * r3z - r2z * r3y
    ay = r2z * r3x - r2x * r3z
    az = r2x * r3y - r2y * r3x
    bx = r3y * r1z - r3z * r1y
    by = r3z * r1x - r3x * r1z
    bz = r3x * r1y - r3y * r1x
    cx = r1y * r2z - r1z * r2y
    cy = r1z * r2x - r1x * r2z
    cz = r1x * r2y - r1y * r2x
    return ax, ay, az, bx, by, bz, cx, cy, cz, (r1x * ax + r1y * ay) + r1z * az


def sphere_meet(
    R: float,
    La: float,
    Lb2: float,
    down: float,
    c1x: float,
    c1y: float,
    c1z: float,
    c2x: float,
    c2y: float,
    c2z: float,
    c3x: float,
    c3y: float,
    c3z: float,
    ca1: float,
    ca2: float,
    ca3: float,
) -> tuple[float, ...]:
    """Where the three spheres of radius Lb about the elbows meet: p, the radicand, and |n|^2.

    The differences of the sphere equations are the planes u.p = R La (cos a2 - cos a1) and
    v.p = R La (cos a3 - cos a1), u = c2 - c1, v = c3 - c1, since |c_i|^2 = R^2 + La^2 +
    2 R La cos a_i. They meet in the line p = p0 + l n, n = u x v, p0 the point nearest to the
    origin; the first sphere then gives l. Measured from the origin and not from c1, the large
    terms never cancel.
    """
    ux = c2x - c1x
    uy = c2y - c1y
    uz = c2z - c1z
    vx = c3x - c1x
    vy = c3y - c1y
    vz = c3z - c1z
    nx = uy * vz - uz * vy
    ny = uz * vx - ux * vz
    nz = ux * vy - uy * vx
    n2 = (nx * nx + ny * ny) + nz * nz
    i2 = 1.0 / n2
    RLa = R * La
    ku = (RLa * (ca2 - ca1)) * i2
    kv = (RLa * (ca3 - ca1)) * i2
    wx = ku * vx - kv * ux
    wy = ku * vy - kv * uy
    wz = ku * vz - kv * uz
    px = wy * nz - wz * ny
    py = wz * nx - wx * nz
    pz = wx * ny - wy * nx
    b = (nx * c1x + ny * c1y) + nz * c1z
    side = (((R * R + La * La) - Lb2) + (2.0 * RLa) * ca1) + (
        (px * (px - 2.0 * c1x) + py * (py - 2.0 * c1y)) + pz * (pz - 2.0 * c1z)
    )
    rad = b * b - n2 * side
    w = sqrt(rad) * select(nz < 0.0, -down, down)
    l = (b - w) * i2
    x = px + l * nx
    y = py + l * ny
    z = pz + l * nz
    if SINGLE:
        # One Newton step on the three sphere equations, away from the singularity rad = 0:
        # float32 then loses little more than its last digit.
        r1x = x - c1x
        r1y = y - c1y
        r1z = z - c1z
        r2x = x - c2x
        r2y = y - c2y
        r2z = z - c2z
        r3x = x - c3x
        r3y = y - c3y
        r3z = z - c3z
        g1 = ((r1x * r1x + r1y * r1y) + r1z * r1z) - Lb2
        g2 = ((r2x * r2x + r2y * r2y) + r2z * r2z) - Lb2
        g3 = ((r3x * r3x + r3y * r3y) + r3z * r3z) - Lb2
        ax, ay, az, bx, by, bz, cx, cy, cz, det = cross3(
            r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z
        )
        f = select(rad > 0.0001 * (n2 * Lb2), -0.5 / select(rad > 0.0, det, 1.0), 0.0)
        x = x + f * ((g1 * ax + g2 * bx) + g3 * cx)
        y = y + f * ((g1 * ay + g2 * by) + g3 * cy)
        z = z + f * ((g1 * az + g2 * bz) + g3 * cz)
    return x, y, z, rad, n2


def arm_angle(
    A: float,
    pp: float,
    x: float,
    y: float,
    R: float,
    iLa: float,
    RoLa: float,
    K: float,
    c: float,
    s: float,
    e: float,
) -> tuple[float, ...]:
    """Joint angle of one arm from A sin a + B cos a = C; also the radicand and C.

    tan(a/2) = (B - C) / (r - A) = (A + r) / (B + C), r = e sqrt(A^2 + B^2 - C^2): of the two
    quotients the one without cancellation is taken. e = 1: elbow outward, e = -1: inward.
    """
    q = 2.0 * (x * c + y * s)
    B = 2.0 * R - q
    C = (K - pp * iLa) + q * RoLa
    minus = B - C
    plus = B + C
    rad = A * A + minus * plus
    r = e * sqrt(rad)
    near = e * A <= 0.0
    return twice_atan(select(near, minus, A + r), select(near, r - A, plus)), rad, C


def limit_bits(a: float, lo: float, hi: float) -> float:
    """Status bits 4 and 8 of one arm: below or above its limits."""
    return select(a < lo, 4.0, 0.0) + select(a > hi, 8.0, 0.0)


def reach_bits(rad: float, C: float) -> float:
    """Status bits 1 and 2 of one arm: too far or too near for its rod."""
    return select(rad >= 0.0, 0.0, select(C < 0.0, 1.0, select(C > 0.0, 2.0, 0.0)))


def invalid_bits(valid: bool, R: float) -> float:
    """Status bits 4096 and 32768: bad input; geometry refused by the host (R is NaN)."""
    return select(valid, 0.0, 4096.0) + select(R == R, 0.0, 32768.0)


def elbows(
    R: float,
    La: float,
    c1: float,
    s1: float,
    c2: float,
    s2: float,
    c3: float,
    s3: float,
    a1: float,
    a2: float,
    a3: float,
) -> tuple[float, ...]:
    """The three elbows, and sine and cosine of each joint angle."""
    c1x, c1y, c1z, sa1, ca1 = elbow(R, La, c1, s1, a1)
    c2x, c2y, c2z, sa2, ca2 = elbow(R, La, c2, s2, a2)
    c3x, c3y, c3z, sa3, ca3 = elbow(R, La, c3, s3, a3)
    return c1x, c1y, c1z, c2x, c2y, c2z, c3x, c3y, c3z, sa1, ca1, sa2, ca2, sa3, ca3


def three_limit_bits(
    a1: float,
    a2: float,
    a3: float,
    lo1: float,
    lo2: float,
    lo3: float,
    hi1: float,
    hi2: float,
    hi3: float,
) -> float:
    """Limit bits of the three arms, each shifted to its place."""
    first = limit_bits(a1, lo1, hi1) + 16.0 * limit_bits(a2, lo2, hi2)
    return first + 256.0 * limit_bits(a3, lo3, hi3)


def fk(
    R: float,
    La: float,
    Lb2: float,
    c1: float,
    s1: float,
    c2: float,
    s2: float,
    c3: float,
    s3: float,
    down: float,
    lo1: float,
    lo2: float,
    lo3: float,
    hi1: float,
    hi2: float,
    hi3: float,
    a1: float,
    a2: float,
    a3: float,
) -> tuple[float, ...]:
    """Forward kinematics: x, y, z, status."""
    c1x, c1y, c1z, c2x, c2y, c2z, c3x, c3y, c3z, _sa1, ca1, _sa2, ca2, _sa3, ca3 = elbows(
        R, La, c1, s1, c2, s2, c3, s3, a1, a2, a3
    )
    small = both(both(fabs(a1) <= MAX_ANGLE, fabs(a2) <= MAX_ANGLE), fabs(a3) <= MAX_ANGLE)
    # A negative Lb2 leaves no solution: angles beyond MAX_ANGLE give NaN, not a wrong position.
    x, y, z, rad, n2 = sphere_meet(
        *(R, La, select(small, Lb2, -((R * R + La * La) + Lb2)), down),
        *(c1x, c1y, c1z, c2x, c2y, c2z, c3x, c3y, c3z, ca1, ca2, ca3),
    )
    invalid = invalid_bits(small, R)
    meet = select(n2 == 0.0, 8192.0, select(rad >= 0.0, 0.0, 16384.0))
    arms = three_limit_bits(a1, a2, a3, lo1, lo2, lo3, hi1, hi2, hi3)
    return x, y, z, arms + select(invalid == 0.0, meet, invalid)


def ik(
    R: float,
    iLa: float,
    RoLa: float,
    K: float,
    c1: float,
    s1: float,
    c2: float,
    s2: float,
    c3: float,
    s3: float,
    e1: float,
    e2: float,
    e3: float,
    lo1: float,
    lo2: float,
    lo3: float,
    hi1: float,
    hi2: float,
    hi3: float,
    x: float,
    y: float,
    z: float,
) -> tuple[float, ...]:
    """Inverse kinematics: three angles, status."""
    A = 2.0 * z
    pp = (x * x + y * y) + z * z
    a1, rad1, C1 = arm_angle(A, pp, x, y, R, iLa, RoLa, K, c1, s1, e1)
    a2, rad2, C2 = arm_angle(A, pp, x, y, R, iLa, RoLa, K, c2, s2, e2)
    a3, rad3, C3 = arm_angle(A, pp, x, y, R, iLa, RoLa, K, c3, s3, e3)
    total = (x - x) + (y - y) + (z - z)
    invalid = invalid_bits(total == 0.0, R)
    reach = reach_bits(rad1, C1) + 16.0 * reach_bits(rad2, C2) + 256.0 * reach_bits(rad3, C3)
    arms = three_limit_bits(a1, a2, a3, lo1, lo2, lo3, hi1, hi2, hi3)
    return a1, a2, a3, arms + select(invalid == 0.0, reach, invalid)


# --- velocities ----------------------------------------------------------------------------------


def coupling(
    La: float, c: float, s: float, sa: float, ca: float, rx: float, ry: float, rz: float
) -> float:
    """J_q of one arm: (p - c_i) . dc_i/da."""
    return -La * ((rx * c + ry * s) * sa + rz * ca)


def pose(
    R: float,
    La: float,
    c1: float,
    s1: float,
    c2: float,
    s2: float,
    c3: float,
    s3: float,
    a1: float,
    a2: float,
    a3: float,
    x: float,
    y: float,
    z: float,
) -> tuple[float, ...]:
    """Rods p - c_i, couplings J_q, and sine and cosine of the angles."""
    c1x, c1y, c1z, c2x, c2y, c2z, c3x, c3y, c3z, sa1, ca1, sa2, ca2, sa3, ca3 = elbows(
        R, La, c1, s1, c2, s2, c3, s3, a1, a2, a3
    )
    r1x = x - c1x
    r1y = y - c1y
    r1z = z - c1z
    r2x = x - c2x
    r2y = y - c2y
    r2z = z - c2z
    r3x = x - c3x
    r3y = y - c3y
    r3z = z - c3z
    k1 = coupling(La, c1, s1, sa1, ca1, r1x, r1y, r1z)
    k2 = coupling(La, c2, s2, sa2, ca2, r2x, r2y, r2z)
    k3 = coupling(La, c3, s3, sa3, ca3, r3x, r3y, r3z)
    return (
        r1x,
        r1y,
        r1z,
        r2x,
        r2y,
        r2z,
        r3x,
        r3y,
        r3z,
        k1,
        k2,
        k3,
        sa1,
        ca1,
        sa2,
        ca2,
        sa3,
        ca3,
    )


def jacobian_rows(
    k1: float,
    k2: float,
    k3: float,
    r1x: float,
    r1y: float,
    r1z: float,
    r2x: float,
    r2y: float,
    r2z: float,
    r3x: float,
    r3y: float,
    r3z: float,
) -> tuple[float, ...]:
    """J = J_x^-1 J_q row by row, and det J_x."""
    ax, ay, az, bx, by, bz, cx, cy, cz, det = cross3(r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z)
    f1 = k1 / det
    f2 = k2 / det
    f3 = k3 / det
    return (
        f1 * ax,
        f2 * bx,
        f3 * cx,
        f1 * ay,
        f2 * by,
        f3 * cy,
        f1 * az,
        f2 * bz,
        f3 * cz,
        det,
    )


def jacobian(
    R: float,
    La: float,
    Lb: float,
    Lb2: float,
    c1: float,
    s1: float,
    c2: float,
    s2: float,
    c3: float,
    s3: float,
    down: float,
    lo1: float,
    lo2: float,
    lo3: float,
    hi1: float,
    hi2: float,
    hi3: float,
    tol: float,
    a1: float,
    a2: float,
    a3: float,
) -> tuple[float, ...]:
    """Position, Jacobian dp/da row by row, status."""
    x, y, z, status = fk(
        R, La, Lb2, c1, s1, c2, s2, c3, s3, down, lo1, lo2, lo3, hi1, hi2, hi3, a1, a2, a3
    )
    (
        r1x,
        r1y,
        r1z,
        r2x,
        r2y,
        r2z,
        r3x,
        r3y,
        r3z,
        k1,
        k2,
        k3,
        _sa1,
        _ca1,
        _sa2,
        _ca2,
        _sa3,
        _ca3,
    ) = pose(R, La, c1, s1, c2, s2, c3, s3, a1, a2, a3, x, y, z)
    j11, j12, j13, j21, j22, j23, j31, j32, j33, det = jacobian_rows(
        k1, k2, k3, r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z
    )
    flat = both(status < 4096.0, fabs(det) <= tol * (Lb * Lb2))
    status = status + select(flat, 8192.0, 0.0)
    return x, y, z, j11, j12, j13, j21, j22, j23, j31, j32, j33, status


def rotate_columns(
    ax: float, ay: float, az: float, bx: float, by: float, bz: float
) -> tuple[float, ...]:
    """One Jacobi rotation that makes two columns orthogonal (Hestenes)."""
    alpha = (ax * ax + ay * ay) + az * az
    beta = (bx * bx + by * by) + bz * bz
    gamma = (ax * bx + ay * by) + az * bz
    zeta = (beta - alpha) / (2.0 * select(gamma == 0.0, 1.0, gamma))
    root = fabs(zeta) + sqrt(1.0 + zeta * zeta)
    t = select(gamma == 0.0, 0.0, select(zeta < 0.0, -1.0, 1.0) / root)
    c = 1.0 / sqrt(1.0 + t * t)
    s = c * t
    return (
        c * ax - s * bx,
        c * ay - s * by,
        c * az - s * bz,
        s * ax + c * bx,
        s * ay + c * by,
        (s * az + c * bz),
    )


def measures_at(
    R: float,
    La: float,
    Lb: float,
    Lb2: float,
    iLa: float,
    c1: float,
    s1: float,
    c2: float,
    s2: float,
    c3: float,
    s3: float,
    a1: float,
    a2: float,
    a3: float,
    x: float,
    y: float,
    z: float,
) -> tuple[float, ...]:
    """Condition, smallest and largest singular value of J, det J_x, det J_q, det J, unit dets."""
    (
        r1x,
        r1y,
        r1z,
        r2x,
        r2y,
        r2z,
        r3x,
        r3y,
        r3z,
        k1,
        k2,
        k3,
        _sa1,
        _ca1,
        _sa2,
        _ca2,
        _sa3,
        _ca3,
    ) = pose(R, La, c1, s1, c2, s2, c3, s3, a1, a2, a3, x, y, z)
    ax, bx, cx, ay, by, cy, az, bz, cz, det = jacobian_rows(
        k1, k2, k3, r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z
    )
    for _ in range(4):
        ax, ay, az, bx, by, bz = rotate_columns(ax, ay, az, bx, by, bz)
        ax, ay, az, cx, cy, cz = rotate_columns(ax, ay, az, cx, cy, cz)
        bx, by, bz, cx, cy, cz = rotate_columns(bx, by, bz, cx, cy, cz)
    n1 = sqrt((ax * ax + ay * ay) + az * az)
    n2 = sqrt((bx * bx + by * by) + bz * bz)
    n3 = sqrt((cx * cx + cy * cy) + cz * cz)
    low = select(n1 < n2, n1, n2)
    high = select(n1 < n2, n2, n1)
    smin = select(n3 < low, n3, low)
    smax = select(n3 > high, n3, high)
    product = (k1 * k2) * k3
    flat = either(det == 0.0, product == 0.0)
    cond = select(flat, 1.0, smax) / select(flat, 0.0, smin)
    iLb = 1.0 / Lb
    unit = iLa * iLb
    parallel = ((det * iLb) * iLb) * iLb
    serial = ((k1 * unit) * (k2 * unit)) * (k3 * unit)
    return cond, smin, smax, det, product, product / det, parallel, serial


def singular_bit(status: float, tol: float, parallel: float, serial: float) -> float:
    """Status bit 8192: near a singularity of either kind, if nothing worse is the case."""
    close = either(fabs(parallel) <= tol, fabs(serial) <= tol)
    return select(both(status < 4096.0, close), 8192.0, 0.0)


def measures(
    R: float,
    La: float,
    Lb: float,
    Lb2: float,
    iLa: float,
    c1: float,
    s1: float,
    c2: float,
    s2: float,
    c3: float,
    s3: float,
    down: float,
    lo1: float,
    lo2: float,
    lo3: float,
    hi1: float,
    hi2: float,
    hi3: float,
    tol: float,
    a1: float,
    a2: float,
    a3: float,
) -> tuple[float, ...]:
    """Singularity measures at joint angles, status."""
    x, y, z, status = fk(
        R, La, Lb2, c1, s1, c2, s2, c3, s3, down, lo1, lo2, lo3, hi1, hi2, hi3, a1, a2, a3
    )
    cond, smin, smax, detx, detq, detj, parallel, serial = measures_at(
        R, La, Lb, Lb2, iLa, c1, s1, c2, s2, c3, s3, a1, a2, a3, x, y, z
    )
    status = status + singular_bit(status, tol, parallel, serial)
    return cond, smin, smax, detx, detq, detj, parallel, serial, status


def dexterity(
    R: float,
    La: float,
    Lb: float,
    Lb2: float,
    iLa: float,
    RoLa: float,
    K: float,
    c1: float,
    s1: float,
    c2: float,
    s2: float,
    c3: float,
    s3: float,
    e1: float,
    e2: float,
    e3: float,
    lo1: float,
    lo2: float,
    lo3: float,
    hi1: float,
    hi2: float,
    hi3: float,
    tol: float,
    x: float,
    y: float,
    z: float,
) -> tuple[float, ...]:
    """Singularity measures at a position, status."""
    a1, a2, a3, status = ik(
        *(R, iLa, RoLa, K, c1, s1, c2, s2, c3, s3, e1, e2, e3),
        *(lo1, lo2, lo3, hi1, hi2, hi3, x, y, z),
    )
    cond, smin, smax, detx, detq, detj, parallel, serial = measures_at(
        R, La, Lb, Lb2, iLa, c1, s1, c2, s2, c3, s3, a1, a2, a3, x, y, z
    )
    status = status + singular_bit(status, tol, parallel, serial)
    return cond, smin, smax, detx, detq, detj, parallel, serial, status


def arm_load(
    La: float,
    c: float,
    s: float,
    sa: float,
    ca: float,
    rx: float,
    ry: float,
    rz: float,
    vx: float,
    vy: float,
    vz: float,
    w: float,
) -> float:
    """What velocity alone adds to (p - c).p'' = J_q a'' + load.

    load = (p - c) . (d2c/da2) w^2 - |v - (dc/da) w|^2.
    """
    lw = La * w
    ex = vx + (lw * sa) * c
    ey = vy + (lw * sa) * s
    ez = vz + lw * ca
    bend = -(lw * w) * (ca * (rx * c + ry * s) - sa * rz)
    return bend - ((ex * ex + ey * ey) + ez * ez)


def fk_motion(
    R: float,
    La: float,
    Lb: float,
    Lb2: float,
    c1: float,
    s1: float,
    c2: float,
    s2: float,
    c3: float,
    s3: float,
    down: float,
    lo1: float,
    lo2: float,
    lo3: float,
    hi1: float,
    hi2: float,
    hi3: float,
    tol: float,
    a1: float,
    a2: float,
    a3: float,
    w1: float,
    w2: float,
    w3: float,
    q1: float,
    q2: float,
    q3: float,
) -> tuple[float, ...]:
    """Position, velocity and acceleration of the platform from those of the joints, status."""
    x, y, z, status = fk(
        R, La, Lb2, c1, s1, c2, s2, c3, s3, down, lo1, lo2, lo3, hi1, hi2, hi3, a1, a2, a3
    )
    (r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z, k1, k2, k3, sa1, ca1, sa2, ca2, sa3, ca3) = pose(
        R, La, c1, s1, c2, s2, c3, s3, a1, a2, a3, x, y, z
    )
    ax, ay, az, bx, by, bz, cx, cy, cz, det = cross3(r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z)
    f1 = k1 * w1
    f2 = k2 * w2
    f3 = k3 * w3
    vx = ((f1 * ax + f2 * bx) + f3 * cx) / det
    vy = ((f1 * ay + f2 * by) + f3 * cy) / det
    vz = ((f1 * az + f2 * bz) + f3 * cz) / det
    g1 = k1 * q1 + arm_load(La, c1, s1, sa1, ca1, r1x, r1y, r1z, vx, vy, vz, w1)
    g2 = k2 * q2 + arm_load(La, c2, s2, sa2, ca2, r2x, r2y, r2z, vx, vy, vz, w2)
    g3 = k3 * q3 + arm_load(La, c3, s3, sa3, ca3, r3x, r3y, r3z, vx, vy, vz, w3)
    ux = ((g1 * ax + g2 * bx) + g3 * cx) / det
    uy = ((g1 * ay + g2 * by) + g3 * cy) / det
    uz = ((g1 * az + g2 * bz) + g3 * cz) / det
    finite = ((ux - ux) + (uy - uy)) + (uz - uz) == 0.0
    flat = both(status < 4096.0, fabs(det) <= tol * (Lb * Lb2))
    bad = select(both(status < 4096.0, finite), 0.0, select(status < 4096.0, 4096.0, 0.0))
    status = status + select(flat, 8192.0, bad)
    return x, y, z, vx, vy, vz, ux, uy, uz, status


def ik_motion(
    R: float,
    La: float,
    Lb: float,
    iLa: float,
    RoLa: float,
    K: float,
    c1: float,
    s1: float,
    c2: float,
    s2: float,
    c3: float,
    s3: float,
    e1: float,
    e2: float,
    e3: float,
    lo1: float,
    lo2: float,
    lo3: float,
    hi1: float,
    hi2: float,
    hi3: float,
    tol: float,
    x: float,
    y: float,
    z: float,
    vx: float,
    vy: float,
    vz: float,
    ux: float,
    uy: float,
    uz: float,
) -> tuple[float, ...]:
    """Angles, rates and accelerations of the joints from the platform's motion, status."""
    a1, a2, a3, status = ik(
        *(R, iLa, RoLa, K, c1, s1, c2, s2, c3, s3, e1, e2, e3),
        *(lo1, lo2, lo3, hi1, hi2, hi3, x, y, z),
    )
    (r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z, k1, k2, k3, sa1, ca1, sa2, ca2, sa3, ca3) = pose(
        R, La, c1, s1, c2, s2, c3, s3, a1, a2, a3, x, y, z
    )
    w1 = ((r1x * vx + r1y * vy) + r1z * vz) / k1
    w2 = ((r2x * vx + r2y * vy) + r2z * vz) / k2
    w3 = ((r3x * vx + r3y * vy) + r3z * vz) / k3
    m1 = arm_load(La, c1, s1, sa1, ca1, r1x, r1y, r1z, vx, vy, vz, w1)
    m2 = arm_load(La, c2, s2, sa2, ca2, r2x, r2y, r2z, vx, vy, vz, w2)
    m3 = arm_load(La, c3, s3, sa3, ca3, r3x, r3y, r3z, vx, vy, vz, w3)
    q1 = (((r1x * ux + r1y * uy) + r1z * uz) - m1) / k1
    q2 = (((r2x * ux + r2y * uy) + r2z * uz) - m2) / k2
    q3 = (((r3x * ux + r3y * uy) + r3z * uz) - m3) / k3
    edge = tol * (La * Lb)
    flat = either(either(fabs(k1) <= edge, fabs(k2) <= edge), fabs(k3) <= edge)
    moving = ((vx - vx) + (vy - vy)) + ((vz - vz) + (ux - ux)) + ((uy - uy) + (uz - uz)) == 0.0
    reachable = both(both(a1 == a1, a2 == a2), a3 == a3)
    extra = select(moving, select(both(reachable, flat), 8192.0, 0.0), 4096.0)
    return a1, a2, a3, w1, w2, w3, q1, q2, q3, status + select(status < 4096.0, extra, 0.0)


# --- trajectories --------------------------------------------------------------------------------


def profile(L: float, v: float, a: float, j: float) -> tuple[float, ...]:
    """Times of the jerk-limited move over the distance L, and the jerk per unit of distance.

    Seven phases, rest to rest: Tj = time of constant jerk, Ta = time of acceleration, Tv = time
    of constant speed. If the speed limit is not reached Tv = 0; if the acceleration limit is
    not reached either, Ta = 2 Tj and L = 2 j Tj^3.
    """
    Ts = sqrt(v / j)
    Tc = a / j
    Tj = select(Ts < Tc, Ts, Tc)
    Ta = Tj + v / (j * Tj)
    Tv = L / v - Ta
    cruise = Tv > 0.0
    wide = (2.0 * a) * (Tc * Tc) <= L
    Tn = cbrt(L / (2.0 * j))
    half = 0.5 * Tc
    Tw = half + sqrt(half * half + L / a)
    Tj = select(cruise, Tj, select(wide, Tc, Tn))
    Ta = select(cruise, Ta, select(wide, Tw, 2.0 * Tn))
    Tv = select(cruise, Tv, 0.0)
    return Tj, Ta, Tv, select(L > 0.0, j / select(L > 0.0, L, 1.0), 0.0)


def ramp(t: float, Tj: float, Ta: float, Tv: float, j: float) -> tuple[float, ...]:
    """Share of the way, its rate and its second derivative at time t of a profile.

    The second half mirrors the first: s(t) = 1 - s(Tp - t).
    """
    Tp = 2.0 * Ta + Tv
    t = select(t > 0.0, t, 0.0)
    t = select(t < Tp, t, Tp)
    late = 2.0 * t > Tp
    t = select(late, Tp - t, t)
    ap = j * Tj
    vp = ap * (Ta - Tj)
    u = Ta - t
    in1 = t < Tj
    in2 = u > Tj
    in3 = u > 0.0
    s1 = (((j * t) * t) * t) / 6.0
    s2 = ap * ((0.5 * t) * (t - Tj) + (Tj * Tj) / 6.0)
    s3 = 0.5 * (vp * Ta) - (vp * u - (((j * u) * u) * u) / 6.0)
    s4 = 0.5 * (vp * Ta) - vp * u
    s = select(in1, s1, select(in2, s2, select(in3, s3, s4)))
    d1 = ((0.5 * j) * t) * t
    d2 = ap * (t - 0.5 * Tj)
    d3 = vp - ((0.5 * j) * u) * u
    d = select(in1, d1, select(in2, d2, select(in3, d3, vp)))
    f = select(in1, j * t, select(in2, ap, select(in3, j * u, 0.0)))
    still = j == 0.0
    s = select(still, 0.0, select(late, 1.0 - s, s))
    return s, select(still, 0.0, d), select(still, 0.0, select(late, -f, f))


def plan(
    x0: float,
    y0: float,
    z0: float,
    x1: float,
    y1: float,
    z1: float,
    kind: float,
    height: float,
    overlap: float,
    pause: float,
    vmax: float,
    amax: float,
    jmax: float,
    scale: float,
) -> tuple[float, ...]:
    """Path rows of a move, and its duration.

    kind 0: straight; 1: up, across, down; 2: the same and back, for ever. The across leg begins
    ``overlap`` times the deceleration time before the lift ends, and so on down.
    """
    line = kind < 0.5
    top = select(z0 > z1, z0, z1) + height
    h1 = select(line, 0.0, top - z0)
    h3 = select(line, 0.0, top - z1)
    dx = x1 - x0
    dy = y1 - y0
    dz = select(line, z1 - z0, 0.0)
    d = sqrt((dx * dx + dy * dy) + dz * dz)
    Tj1, Ta1, Tv1, j1 = profile(h1, vmax, amax, jmax)
    Tj2, Ta2, Tv2, j2 = profile(d, vmax, amax, jmax)
    Tj3, Ta3, Tv3, j3 = profile(h3, vmax, amax, jmax)
    T1 = 2.0 * Ta1 + Tv1
    T2 = 2.0 * Ta2 + Tv2
    T3 = 2.0 * Ta3 + Tv3
    t2 = T1 - overlap * Ta1
    t3 = (t2 + T2) - overlap * Ta3
    t3 = select(t3 > T1, t3, T1)
    end2 = t2 + T2
    end3 = t3 + T3
    Tp = select(end3 > end2, end3, end2)
    cyclic = select(kind > 1.5, 1.0, 0.0)
    duration = select(kind > 1.5, 2.0 * (Tp * scale + pause), Tp * scale)
    return (
        x0,
        y0,
        z0,
        dx,
        dy,
        dz,
        h1,
        h3,
        Tj1,
        Ta1,
        Tv1,
        j1,
        t2,
        Tj2,
        Ta2,
        Tv2,
        j2,
        t3,
        Tj3,
        Ta3,
        Tv3,
        j3,
        Tp,
        pause,
        cyclic,
        scale,
        duration,
    )


def path_clock(t: float, Tp: float, dwell: float, cyclic: float, lam: float) -> tuple[float, ...]:
    """Time on the forward path, and the direction of travel (+1, -1, 0 while waiting)."""
    tau = t / lam
    wait = dwell / lam
    half = Tp + wait
    turn = 2.0 * half
    q = tau / select(turn > 0.0, turn, 1.0)
    k = rint(q)
    lap = tau - turn * select(k > q, k - 1.0, k)
    back = lap - half
    forth = select(lap < Tp, lap, Tp)
    home = select(back < Tp, Tp - back, 0.0)
    looped = select(back < 0.0, forth, home)
    way = select(back < 0.0, select(lap < Tp, 1.0, 0.0), select(back < Tp, -1.0, 0.0))
    return select(cyclic > 0.5, looped, tau), select(cyclic > 0.5, way, 1.0)


def trajectory(
    R: float,
    La: float,
    Lb: float,
    iLa: float,
    RoLa: float,
    K: float,
    c1: float,
    s1: float,
    c2: float,
    s2: float,
    c3: float,
    s3: float,
    e1: float,
    e2: float,
    e3: float,
    lo1: float,
    lo2: float,
    lo3: float,
    hi1: float,
    hi2: float,
    hi3: float,
    tol: float,
    t: float,
    x0: float,
    y0: float,
    z0: float,
    dx: float,
    dy: float,
    dz: float,
    h1: float,
    h3: float,
    Tj1: float,
    Ta1: float,
    Tv1: float,
    j1: float,
    t2: float,
    Tj2: float,
    Ta2: float,
    Tv2: float,
    j2: float,
    t3: float,
    Tj3: float,
    Ta3: float,
    Tv3: float,
    j3: float,
    Tp: float,
    dwell: float,
    cyclic: float,
    lam: float,
) -> tuple[float, ...]:
    """Position, velocity, acceleration, joint angles, rates and accelerations at time t, status."""
    tau, way = path_clock(t, Tp, dwell, cyclic, lam)
    p1, v1, f1 = ramp(tau, Tj1, Ta1, Tv1, j1)
    p2, v2, f2 = ramp(tau - t2, Tj2, Ta2, Tv2, j2)
    p3, v3, f3 = ramp(tau - t3, Tj3, Ta3, Tv3, j3)
    speed = way / lam
    push = (way * way) / (lam * lam)
    x = x0 + dx * p2
    y = y0 + dy * p2
    z = ((z0 + dz * p2) + h1 * p1) - h3 * p3
    vx = (dx * v2) * speed
    vy = (dy * v2) * speed
    vz = ((dz * v2 + h1 * v1) - h3 * v3) * speed
    ux = (dx * f2) * push
    uy = (dy * f2) * push
    uz = ((dz * f2 + h1 * f1) - h3 * f3) * push
    a1, a2, a3, w1, w2, w3, q1, q2, q3, status = ik_motion(
        *(R, La, Lb, iLa, RoLa, K, c1, s1, c2, s2, c3, s3, e1, e2, e3),
        *(lo1, lo2, lo3, hi1, hi2, hi3, tol, x, y, z, vx, vy, vz, ux, uy, uz),
    )
    return (
        x,
        y,
        z,
        vx,
        vy,
        vz,
        ux,
        uy,
        uz,
        a1,
        a2,
        a3,
        w1,
        w2,
        w3,
        q1,
        q2,
        q3,
        status,
    )


# --- control -------------------------------------------------------------------------------------


def damped(w: float, a: float, lo: float, hi: float, gain: float, valid: bool) -> float:
    """Joint rate that cannot pass a joint limit: gain (lo - a) <= w <= gain (hi - a); 0 if bad."""
    most = gain * (hi - a)
    least = gain * (lo - a)
    w = select(w > most, most, w)
    w = select(w < least, least, w)
    return select(both(valid, w - w == 0.0), w, 0.0)


def control(
    R: float,
    La: float,
    Lb: float,
    Lb2: float,
    c1: float,
    s1: float,
    c2: float,
    s2: float,
    c3: float,
    s3: float,
    down: float,
    lo1: float,
    lo2: float,
    lo3: float,
    hi1: float,
    hi2: float,
    hi3: float,
    tol: float,
    a1: float,
    a2: float,
    a3: float,
    x: float,
    y: float,
    z: float,
    vx: float,
    vy: float,
    vz: float,
    gain: float,
    wmax: float,
) -> tuple[float, ...]:
    """Computed velocity control: w = J_q^-1 J_x (v_d + gain (p_d - p)), position error, status.

    The three rates are scaled together to the limit ``wmax``, so that the direction stays; then
    each is kept from passing its joint limit. Bad input gives zero rates: the robot stops.
    """
    px, py, pz, status = fk(
        R, La, Lb2, c1, s1, c2, s2, c3, s3, down, lo1, lo2, lo3, hi1, hi2, hi3, a1, a2, a3
    )
    (
        r1x,
        r1y,
        r1z,
        r2x,
        r2y,
        r2z,
        r3x,
        r3y,
        r3z,
        k1,
        k2,
        k3,
        _sa1,
        _ca1,
        _sa2,
        _ca2,
        _sa3,
        _ca3,
    ) = pose(R, La, c1, s1, c2, s2, c3, s3, a1, a2, a3, px, py, pz)
    ex = x - px
    ey = y - py
    ez = z - pz
    gx = vx + gain * ex
    gy = vy + gain * ey
    gz = vz + gain * ez
    w1 = ((r1x * gx + r1y * gy) + r1z * gz) / k1
    w2 = ((r2x * gx + r2y * gy) + r2z * gz) / k2
    w3 = ((r3x * gx + r3y * gy) + r3z * gz) / k3
    b12 = select(fabs(w1) > fabs(w2), fabs(w1), fabs(w2))
    big = select(fabs(w3) > b12, fabs(w3), b12)
    f = select(big > wmax, wmax / select(big > wmax, big, 1.0), 1.0)
    target = ((gx - gx) + (gy - gy)) + (gz - gz) == 0.0
    solved = status < 4096.0
    valid = both(solved, target)
    w1 = damped(w1 * f, a1, lo1, hi1, gain, valid)
    w2 = damped(w2 * f, a2, lo2, hi2, gain, valid)
    w3 = damped(w3 * f, a3, lo3, hi3, gain, valid)
    edge = tol * (La * Lb)
    flat = either(either(fabs(k1) <= edge, fabs(k2) <= edge), fabs(k3) <= edge)
    bad = select(target, select(flat, 8192.0, 0.0), 4096.0)
    error = sqrt((ex * ex + ey * ey) + ez * ez)
    return w1, w2, w3, error, status + select(solved, bad, 0.0)


#: Every function of the text that is rendered, callees first.
FUNCTIONS = (
    sincos,
    twice_atan,
    cbrt,
    elbow,
    cross3,
    sphere_meet,
    arm_angle,
    limit_bits,
    reach_bits,
    invalid_bits,
    elbows,
    three_limit_bits,
    fk,
    ik,
    coupling,
    pose,
    jacobian_rows,
    jacobian,
    rotate_columns,
    measures_at,
    singular_bit,
    measures,
    dexterity,
    arm_load,
    fk_motion,
    ik_motion,
    profile,
    ramp,
    plan,
    path_clock,
    trajectory,
    damped,
    control,
)
