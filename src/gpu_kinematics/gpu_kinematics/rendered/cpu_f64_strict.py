"""Rendered from kernels.py by render.py; do not edit: python -m gpu_kinematics.render."""

# ruff: noqa
# fmt: off
# mypy: ignore-errors
import numpy as np
from numba import njit

from gpu_kinematics.intrinsics import (
    address, both, either, fabs, get, hold, put, rint, select, sqrt, to_mask,
)

T = np.float64
U = np.uint16
I = np.int64  # for numbers that are not to be literals: each would compile anew
SIZE = 8
BLOCK = 256
FLAGS = {}
inlined = njit(forceinline=True, error_model="numpy", fastmath=FLAGS)
shared = njit(error_model="numpy")
compiled = njit(nogil=True, cache=True, error_model="numpy", fastmath=FLAGS)


@shared
def load(where, row, step, rows, count, scratch, first):
    source = address(T, where)
    for r in range(rows):
        for i in range(count):
            put(scratch, (first + r) * BLOCK + i, get(source, r * row + i * step))


@shared
def store(where, row, step, rows, count, scratch, first):
    target = address(T, where)
    for r in range(rows):
        for i in range(count):
            put(target, r * row + i * step, get(scratch, (first + r) * BLOCK + i))



@inlined
def sincos(a):
    b = select((fabs(a) <= T(8192.0)), a, T(0.0))
    k = rint((b * T(0.6366197723675814)))
    r = (((b - (k * T(1.5707963267341256))) - (k * T(6.077100506303966e-11))) - (k * T(2.0222662487959506e-21)))
    u = (r * r)
    s = (r + ((r * u) * (((((T(1.5896795893785417e-10) * u + T(-2.505075811994035e-08)) * u + T(2.7557313691952215e-06)) * u + T(-0.00019841269829807924)) * u + T(0.008333333333322413)) * u + T(-0.16666666666666632))))
    c = ((T(1.0) - (T(0.5) * u)) + ((u * u) * (((((T(-1.1359648753816349e-11) * u + T(2.087572329327395e-09)) * u + T(-2.7557314352496e-07)) * u + T(2.480158728948282e-05)) * u + T(-0.0013888888888874125)) * u + T(0.0416666666666666))))
    m = (k - (T(4.0) * rint((T(0.25) * k))))
    swap = ((m * m) == T(1.0))
    ss = select(swap, c, s)
    cc = select(swap, s, c)
    sine = select(either((m < T(0.0)), (m > T(1.5))), (-ss), ss)
    cosine = select(either((m > T(0.5)), (m < T(-1.5))), (-cc), cc)
    return sine, cosine


@inlined
def twice_atan(y, x):
    ay = fabs(y)
    ax = fabs(x)
    low = (ay <= (T(0.41421356237309515) * ax))
    high = ((T(0.41421356237309515) * ay) >= ax)
    num = select(low, ay, select(high, (-ax), (ay - ax)))
    den = select(low, ax, select(high, ay, (ay + ax)))
    base = select(low, T(0.0), select(high, T(1.5707963267948966), T(0.7853981633974483)))
    t = (num / select((den == T(0.0)), T(1.0), den))
    u = (t * t)
    v = (T(2.0) * (base + (t + ((t * u) * ((((((((((T(-0.017919393008239193) * u + T(0.03807574429244452)) * u + T(-0.050397465726881106)) * u + T(0.05847987549306512)) * u + T(-0.0666311753541818)) * u + T(0.07692061395013734)) * u + T(-0.09090897823368566)) * u + T(0.11111110785703805)) * u + T(-0.14285714280240314)) * u + T(0.19999999999954007)) * u + T(-0.333333333333332))))))
    return select(either(both((y < T(0.0)), (x >= T(0.0))), both((y > T(0.0)), (x < T(0.0)))), (-v), v)


@inlined
def cbrt(x):
    r4 = sqrt(sqrt(x))
    r16 = sqrt(sqrt(r4))
    r64 = sqrt(sqrt(r16))
    y = ((r4 * r16) * r64)
    y3 = ((y * y) * y)
    y = (y * ((y3 + (T(2.0) * x)) / select((y3 == T(0.0)), T(1.0), ((T(2.0) * y3) + x))))
    y3 = ((y * y) * y)
    y = (y * ((y3 + (T(2.0) * x)) / select((y3 == T(0.0)), T(1.0), ((T(2.0) * y3) + x))))
    y3 = ((y * y) * y)
    y = (y * ((y3 + (T(2.0) * x)) / select((y3 == T(0.0)), T(1.0), ((T(2.0) * y3) + x))))
    return y


@inlined
def elbow(R, La, c, s, a):
    sa, ca = sincos(a)
    r = (R + (La * ca))
    return (r * c), (r * s), (-(La * sa)), sa, ca


@inlined
def cross3(r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z):
    ax = ((r2y * r3z) - (r2z * r3y))
    ay = ((r2z * r3x) - (r2x * r3z))
    az = ((r2x * r3y) - (r2y * r3x))
    bx = ((r3y * r1z) - (r3z * r1y))
    by = ((r3z * r1x) - (r3x * r1z))
    bz = ((r3x * r1y) - (r3y * r1x))
    cx = ((r1y * r2z) - (r1z * r2y))
    cy = ((r1z * r2x) - (r1x * r2z))
    cz = ((r1x * r2y) - (r1y * r2x))
    return ax, ay, az, bx, by, bz, cx, cy, cz, (((r1x * ax) + (r1y * ay)) + (r1z * az))


@inlined
def sphere_meet(R, La, Lb2, down, c1x, c1y, c1z, c2x, c2y, c2z, c3x, c3y, c3z, ca1, ca2, ca3):
    ux = (c2x - c1x)
    uy = (c2y - c1y)
    uz = (c2z - c1z)
    vx = (c3x - c1x)
    vy = (c3y - c1y)
    vz = (c3z - c1z)
    nx = ((uy * vz) - (uz * vy))
    ny = ((uz * vx) - (ux * vz))
    nz = ((ux * vy) - (uy * vx))
    n2 = (((nx * nx) + (ny * ny)) + (nz * nz))
    i2 = (T(1.0) / n2)
    RLa = (R * La)
    ku = ((RLa * (ca2 - ca1)) * i2)
    kv = ((RLa * (ca3 - ca1)) * i2)
    wx = ((ku * vx) - (kv * ux))
    wy = ((ku * vy) - (kv * uy))
    wz = ((ku * vz) - (kv * uz))
    px = ((wy * nz) - (wz * ny))
    py = ((wz * nx) - (wx * nz))
    pz = ((wx * ny) - (wy * nx))
    b = (((nx * c1x) + (ny * c1y)) + (nz * c1z))
    side = (((((R * R) + (La * La)) - Lb2) + ((T(2.0) * RLa) * ca1)) + (((px * (px - (T(2.0) * c1x))) + (py * (py - (T(2.0) * c1y)))) + (pz * (pz - (T(2.0) * c1z)))))
    rad = ((b * b) - (n2 * side))
    w = (sqrt(rad) * select((nz < T(0.0)), (-down), down))
    l = ((b - w) * i2)
    x = (px + (l * nx))
    y = (py + (l * ny))
    z = (pz + (l * nz))
    return x, y, z, rad, n2


@inlined
def arm_angle(A, pp, x, y, R, iLa, RoLa, K, c, s, e):
    q = (T(2.0) * ((x * c) + (y * s)))
    B = ((T(2.0) * R) - q)
    C = ((K - (pp * iLa)) + (q * RoLa))
    minus = (B - C)
    plus = (B + C)
    rad = ((A * A) + (minus * plus))
    r = (e * sqrt(rad))
    near = ((e * A) <= T(0.0))
    return twice_atan(select(near, minus, (A + r)), select(near, (r - A), plus)), rad, C


@inlined
def limit_bits(a, lo, hi):
    return (select((a < lo), T(4.0), T(0.0)) + select((a > hi), T(8.0), T(0.0)))


@inlined
def reach_bits(rad, C):
    return select((rad >= T(0.0)), T(0.0), select((C < T(0.0)), T(1.0), select((C > T(0.0)), T(2.0), T(0.0))))


@inlined
def invalid_bits(valid, R):
    return (select(valid, T(0.0), T(4096.0)) + select((R == R), T(0.0), T(32768.0)))


@inlined
def elbows(R, La, c1, s1, c2, s2, c3, s3, a1, a2, a3):
    c1x, c1y, c1z, sa1, ca1 = elbow(R, La, c1, s1, a1)
    c2x, c2y, c2z, sa2, ca2 = elbow(R, La, c2, s2, a2)
    c3x, c3y, c3z, sa3, ca3 = elbow(R, La, c3, s3, a3)
    return c1x, c1y, c1z, c2x, c2y, c2z, c3x, c3y, c3z, sa1, ca1, sa2, ca2, sa3, ca3


@inlined
def three_limit_bits(a1, a2, a3, lo1, lo2, lo3, hi1, hi2, hi3):
    first = (limit_bits(a1, lo1, hi1) + (T(16.0) * limit_bits(a2, lo2, hi2)))
    return (first + (T(256.0) * limit_bits(a3, lo3, hi3)))


@inlined
def fk(R, La, Lb2, c1, s1, c2, s2, c3, s3, down, lo1, lo2, lo3, hi1, hi2, hi3, a1, a2, a3):
    c1x, c1y, c1z, c2x, c2y, c2z, c3x, c3y, c3z, _sa1, ca1, _sa2, ca2, _sa3, ca3 = elbows(R, La, c1, s1, c2, s2, c3, s3, a1, a2, a3)
    small = both(both((fabs(a1) <= T(8192.0)), (fabs(a2) <= T(8192.0))), (fabs(a3) <= T(8192.0)))
    x, y, z, rad, n2 = sphere_meet(R, La, select(small, Lb2, (-(((R * R) + (La * La)) + Lb2))), down, c1x, c1y, c1z, c2x, c2y, c2z, c3x, c3y, c3z, ca1, ca2, ca3)
    invalid = invalid_bits(small, R)
    meet = select((n2 == T(0.0)), T(8192.0), select((rad >= T(0.0)), T(0.0), T(16384.0)))
    arms = three_limit_bits(a1, a2, a3, lo1, lo2, lo3, hi1, hi2, hi3)
    return x, y, z, (arms + select((invalid == T(0.0)), meet, invalid))


@inlined
def ik(R, iLa, RoLa, K, c1, s1, c2, s2, c3, s3, e1, e2, e3, lo1, lo2, lo3, hi1, hi2, hi3, x, y, z):
    A = (T(2.0) * z)
    pp = (((x * x) + (y * y)) + (z * z))
    a1, rad1, C1 = arm_angle(A, pp, x, y, R, iLa, RoLa, K, c1, s1, e1)
    a2, rad2, C2 = arm_angle(A, pp, x, y, R, iLa, RoLa, K, c2, s2, e2)
    a3, rad3, C3 = arm_angle(A, pp, x, y, R, iLa, RoLa, K, c3, s3, e3)
    total = (((x - x) + (y - y)) + (z - z))
    invalid = invalid_bits((total == T(0.0)), R)
    reach = ((reach_bits(rad1, C1) + (T(16.0) * reach_bits(rad2, C2))) + (T(256.0) * reach_bits(rad3, C3)))
    arms = three_limit_bits(a1, a2, a3, lo1, lo2, lo3, hi1, hi2, hi3)
    return a1, a2, a3, (arms + select((invalid == T(0.0)), reach, invalid))


@inlined
def coupling(La, c, s, sa, ca, rx, ry, rz):
    return ((-La) * ((((rx * c) + (ry * s)) * sa) + (rz * ca)))


@inlined
def pose(R, La, c1, s1, c2, s2, c3, s3, a1, a2, a3, x, y, z):
    c1x, c1y, c1z, c2x, c2y, c2z, c3x, c3y, c3z, sa1, ca1, sa2, ca2, sa3, ca3 = elbows(R, La, c1, s1, c2, s2, c3, s3, a1, a2, a3)
    r1x = (x - c1x)
    r1y = (y - c1y)
    r1z = (z - c1z)
    r2x = (x - c2x)
    r2y = (y - c2y)
    r2z = (z - c2z)
    r3x = (x - c3x)
    r3y = (y - c3y)
    r3z = (z - c3z)
    k1 = coupling(La, c1, s1, sa1, ca1, r1x, r1y, r1z)
    k2 = coupling(La, c2, s2, sa2, ca2, r2x, r2y, r2z)
    k3 = coupling(La, c3, s3, sa3, ca3, r3x, r3y, r3z)
    return r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z, k1, k2, k3, sa1, ca1, sa2, ca2, sa3, ca3


@inlined
def jacobian_rows(k1, k2, k3, r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z):
    ax, ay, az, bx, by, bz, cx, cy, cz, det = cross3(r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z)
    f1 = (k1 / det)
    f2 = (k2 / det)
    f3 = (k3 / det)
    return (f1 * ax), (f2 * bx), (f3 * cx), (f1 * ay), (f2 * by), (f3 * cy), (f1 * az), (f2 * bz), (f3 * cz), det


@inlined
def jacobian(R, La, Lb, Lb2, c1, s1, c2, s2, c3, s3, down, lo1, lo2, lo3, hi1, hi2, hi3, tol, a1, a2, a3):
    x, y, z, status = fk(R, La, Lb2, c1, s1, c2, s2, c3, s3, down, lo1, lo2, lo3, hi1, hi2, hi3, a1, a2, a3)
    r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z, k1, k2, k3, _sa1, _ca1, _sa2, _ca2, _sa3, _ca3 = pose(R, La, c1, s1, c2, s2, c3, s3, a1, a2, a3, x, y, z)
    j11, j12, j13, j21, j22, j23, j31, j32, j33, det = jacobian_rows(k1, k2, k3, r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z)
    flat = both((status < T(4096.0)), (fabs(det) <= (tol * (Lb * Lb2))))
    status = (status + select(flat, T(8192.0), T(0.0)))
    return x, y, z, j11, j12, j13, j21, j22, j23, j31, j32, j33, status


@inlined
def rotate_columns(ax, ay, az, bx, by, bz):
    alpha = (((ax * ax) + (ay * ay)) + (az * az))
    beta = (((bx * bx) + (by * by)) + (bz * bz))
    gamma = (((ax * bx) + (ay * by)) + (az * bz))
    zeta = ((beta - alpha) / (T(2.0) * select((gamma == T(0.0)), T(1.0), gamma)))
    root = (fabs(zeta) + sqrt((T(1.0) + (zeta * zeta))))
    t = select((gamma == T(0.0)), T(0.0), (select((zeta < T(0.0)), T(-1.0), T(1.0)) / root))
    c = (T(1.0) / sqrt((T(1.0) + (t * t))))
    s = (c * t)
    return ((c * ax) - (s * bx)), ((c * ay) - (s * by)), ((c * az) - (s * bz)), ((s * ax) + (c * bx)), ((s * ay) + (c * by)), ((s * az) + (c * bz))


@inlined
def measures_at(R, La, Lb, Lb2, iLa, c1, s1, c2, s2, c3, s3, a1, a2, a3, x, y, z):
    r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z, k1, k2, k3, _sa1, _ca1, _sa2, _ca2, _sa3, _ca3 = pose(R, La, c1, s1, c2, s2, c3, s3, a1, a2, a3, x, y, z)
    ax, bx, cx, ay, by, cy, az, bz, cz, det = jacobian_rows(k1, k2, k3, r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z)
    ax, ay, az, bx, by, bz = rotate_columns(ax, ay, az, bx, by, bz)
    ax, ay, az, cx, cy, cz = rotate_columns(ax, ay, az, cx, cy, cz)
    bx, by, bz, cx, cy, cz = rotate_columns(bx, by, bz, cx, cy, cz)
    ax, ay, az, bx, by, bz = rotate_columns(ax, ay, az, bx, by, bz)
    ax, ay, az, cx, cy, cz = rotate_columns(ax, ay, az, cx, cy, cz)
    bx, by, bz, cx, cy, cz = rotate_columns(bx, by, bz, cx, cy, cz)
    ax, ay, az, bx, by, bz = rotate_columns(ax, ay, az, bx, by, bz)
    ax, ay, az, cx, cy, cz = rotate_columns(ax, ay, az, cx, cy, cz)
    bx, by, bz, cx, cy, cz = rotate_columns(bx, by, bz, cx, cy, cz)
    ax, ay, az, bx, by, bz = rotate_columns(ax, ay, az, bx, by, bz)
    ax, ay, az, cx, cy, cz = rotate_columns(ax, ay, az, cx, cy, cz)
    bx, by, bz, cx, cy, cz = rotate_columns(bx, by, bz, cx, cy, cz)
    n1 = sqrt((((ax * ax) + (ay * ay)) + (az * az)))
    n2 = sqrt((((bx * bx) + (by * by)) + (bz * bz)))
    n3 = sqrt((((cx * cx) + (cy * cy)) + (cz * cz)))
    low = select((n1 < n2), n1, n2)
    high = select((n1 < n2), n2, n1)
    smin = select((n3 < low), n3, low)
    smax = select((n3 > high), n3, high)
    product = ((k1 * k2) * k3)
    flat = either((det == T(0.0)), (product == T(0.0)))
    cond = (select(flat, T(1.0), smax) / select(flat, T(0.0), smin))
    iLb = (T(1.0) / Lb)
    unit = (iLa * iLb)
    parallel = (((det * iLb) * iLb) * iLb)
    serial = (((k1 * unit) * (k2 * unit)) * (k3 * unit))
    return cond, smin, smax, det, product, (product / det), parallel, serial


@inlined
def singular_bit(status, tol, parallel, serial):
    close = either((fabs(parallel) <= tol), (fabs(serial) <= tol))
    return select(both((status < T(4096.0)), close), T(8192.0), T(0.0))


@inlined
def measures(R, La, Lb, Lb2, iLa, c1, s1, c2, s2, c3, s3, down, lo1, lo2, lo3, hi1, hi2, hi3, tol, a1, a2, a3):
    x, y, z, status = fk(R, La, Lb2, c1, s1, c2, s2, c3, s3, down, lo1, lo2, lo3, hi1, hi2, hi3, a1, a2, a3)
    cond, smin, smax, detx, detq, detj, parallel, serial = measures_at(R, La, Lb, Lb2, iLa, c1, s1, c2, s2, c3, s3, a1, a2, a3, x, y, z)
    status = (status + singular_bit(status, tol, parallel, serial))
    return cond, smin, smax, detx, detq, detj, parallel, serial, status


@inlined
def dexterity(R, La, Lb, Lb2, iLa, RoLa, K, c1, s1, c2, s2, c3, s3, e1, e2, e3, lo1, lo2, lo3, hi1, hi2, hi3, tol, x, y, z):
    a1, a2, a3, status = ik(R, iLa, RoLa, K, c1, s1, c2, s2, c3, s3, e1, e2, e3, lo1, lo2, lo3, hi1, hi2, hi3, x, y, z)
    cond, smin, smax, detx, detq, detj, parallel, serial = measures_at(R, La, Lb, Lb2, iLa, c1, s1, c2, s2, c3, s3, a1, a2, a3, x, y, z)
    status = (status + singular_bit(status, tol, parallel, serial))
    return cond, smin, smax, detx, detq, detj, parallel, serial, status


@inlined
def arm_load(La, c, s, sa, ca, rx, ry, rz, vx, vy, vz, w):
    lw = (La * w)
    ex = (vx + ((lw * sa) * c))
    ey = (vy + ((lw * sa) * s))
    ez = (vz + (lw * ca))
    bend = ((-(lw * w)) * ((ca * ((rx * c) + (ry * s))) - (sa * rz)))
    return (bend - (((ex * ex) + (ey * ey)) + (ez * ez)))


@inlined
def fk_motion(R, La, Lb, Lb2, c1, s1, c2, s2, c3, s3, down, lo1, lo2, lo3, hi1, hi2, hi3, tol, a1, a2, a3, w1, w2, w3, q1, q2, q3):
    x, y, z, status = fk(R, La, Lb2, c1, s1, c2, s2, c3, s3, down, lo1, lo2, lo3, hi1, hi2, hi3, a1, a2, a3)
    r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z, k1, k2, k3, sa1, ca1, sa2, ca2, sa3, ca3 = pose(R, La, c1, s1, c2, s2, c3, s3, a1, a2, a3, x, y, z)
    ax, ay, az, bx, by, bz, cx, cy, cz, det = cross3(r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z)
    f1 = (k1 * w1)
    f2 = (k2 * w2)
    f3 = (k3 * w3)
    vx = ((((f1 * ax) + (f2 * bx)) + (f3 * cx)) / det)
    vy = ((((f1 * ay) + (f2 * by)) + (f3 * cy)) / det)
    vz = ((((f1 * az) + (f2 * bz)) + (f3 * cz)) / det)
    g1 = ((k1 * q1) + arm_load(La, c1, s1, sa1, ca1, r1x, r1y, r1z, vx, vy, vz, w1))
    g2 = ((k2 * q2) + arm_load(La, c2, s2, sa2, ca2, r2x, r2y, r2z, vx, vy, vz, w2))
    g3 = ((k3 * q3) + arm_load(La, c3, s3, sa3, ca3, r3x, r3y, r3z, vx, vy, vz, w3))
    ux = ((((g1 * ax) + (g2 * bx)) + (g3 * cx)) / det)
    uy = ((((g1 * ay) + (g2 * by)) + (g3 * cy)) / det)
    uz = ((((g1 * az) + (g2 * bz)) + (g3 * cz)) / det)
    finite = ((((ux - ux) + (uy - uy)) + (uz - uz)) == T(0.0))
    flat = both((status < T(4096.0)), (fabs(det) <= (tol * (Lb * Lb2))))
    bad = select(both((status < T(4096.0)), finite), T(0.0), select((status < T(4096.0)), T(4096.0), T(0.0)))
    status = (status + select(flat, T(8192.0), bad))
    return x, y, z, vx, vy, vz, ux, uy, uz, status


@inlined
def ik_motion(R, La, Lb, iLa, RoLa, K, c1, s1, c2, s2, c3, s3, e1, e2, e3, lo1, lo2, lo3, hi1, hi2, hi3, tol, x, y, z, vx, vy, vz, ux, uy, uz):
    a1, a2, a3, status = ik(R, iLa, RoLa, K, c1, s1, c2, s2, c3, s3, e1, e2, e3, lo1, lo2, lo3, hi1, hi2, hi3, x, y, z)
    r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z, k1, k2, k3, sa1, ca1, sa2, ca2, sa3, ca3 = pose(R, La, c1, s1, c2, s2, c3, s3, a1, a2, a3, x, y, z)
    w1 = ((((r1x * vx) + (r1y * vy)) + (r1z * vz)) / k1)
    w2 = ((((r2x * vx) + (r2y * vy)) + (r2z * vz)) / k2)
    w3 = ((((r3x * vx) + (r3y * vy)) + (r3z * vz)) / k3)
    m1 = arm_load(La, c1, s1, sa1, ca1, r1x, r1y, r1z, vx, vy, vz, w1)
    m2 = arm_load(La, c2, s2, sa2, ca2, r2x, r2y, r2z, vx, vy, vz, w2)
    m3 = arm_load(La, c3, s3, sa3, ca3, r3x, r3y, r3z, vx, vy, vz, w3)
    q1 = (((((r1x * ux) + (r1y * uy)) + (r1z * uz)) - m1) / k1)
    q2 = (((((r2x * ux) + (r2y * uy)) + (r2z * uz)) - m2) / k2)
    q3 = (((((r3x * ux) + (r3y * uy)) + (r3z * uz)) - m3) / k3)
    edge = (tol * (La * Lb))
    flat = either(either((fabs(k1) <= edge), (fabs(k2) <= edge)), (fabs(k3) <= edge))
    moving = (((((vx - vx) + (vy - vy)) + ((vz - vz) + (ux - ux))) + ((uy - uy) + (uz - uz))) == T(0.0))
    reachable = both(both((a1 == a1), (a2 == a2)), (a3 == a3))
    extra = select(moving, select(both(reachable, flat), T(8192.0), T(0.0)), T(4096.0))
    return a1, a2, a3, w1, w2, w3, q1, q2, q3, (status + select((status < T(4096.0)), extra, T(0.0)))


@inlined
def profile(L, v, a, j):
    Ts = sqrt((v / j))
    Tc = (a / j)
    Tj = select((Ts < Tc), Ts, Tc)
    Ta = (Tj + (v / (j * Tj)))
    Tv = ((L / v) - Ta)
    cruise = (Tv > T(0.0))
    wide = (((T(2.0) * a) * (Tc * Tc)) <= L)
    Tn = cbrt((L / (T(2.0) * j)))
    half = (T(0.5) * Tc)
    Tw = (half + sqrt(((half * half) + (L / a))))
    Tj = select(cruise, Tj, select(wide, Tc, Tn))
    Ta = select(cruise, Ta, select(wide, Tw, (T(2.0) * Tn)))
    Tv = select(cruise, Tv, T(0.0))
    return Tj, Ta, Tv, select((L > T(0.0)), (j / select((L > T(0.0)), L, T(1.0))), T(0.0))


@inlined
def ramp(t, Tj, Ta, Tv, j):
    Tp = ((T(2.0) * Ta) + Tv)
    t = select((t > T(0.0)), t, T(0.0))
    t = select((t < Tp), t, Tp)
    late = ((T(2.0) * t) > Tp)
    t = select(late, (Tp - t), t)
    ap = (j * Tj)
    vp = (ap * (Ta - Tj))
    u = (Ta - t)
    in1 = (t < Tj)
    in2 = (u > Tj)
    in3 = (u > T(0.0))
    s1 = ((((j * t) * t) * t) / T(6.0))
    s2 = (ap * (((T(0.5) * t) * (t - Tj)) + ((Tj * Tj) / T(6.0))))
    s3 = ((T(0.5) * (vp * Ta)) - ((vp * u) - ((((j * u) * u) * u) / T(6.0))))
    s4 = ((T(0.5) * (vp * Ta)) - (vp * u))
    s = select(in1, s1, select(in2, s2, select(in3, s3, s4)))
    d1 = (((T(0.5) * j) * t) * t)
    d2 = (ap * (t - (T(0.5) * Tj)))
    d3 = (vp - (((T(0.5) * j) * u) * u))
    d = select(in1, d1, select(in2, d2, select(in3, d3, vp)))
    f = select(in1, (j * t), select(in2, ap, select(in3, (j * u), T(0.0))))
    still = (j == T(0.0))
    s = select(still, T(0.0), select(late, (T(1.0) - s), s))
    return s, select(still, T(0.0), d), select(still, T(0.0), select(late, (-f), f))


@inlined
def plan(x0, y0, z0, x1, y1, z1, kind, height, overlap, pause, vmax, amax, jmax, scale):
    line = (kind < T(0.5))
    top = (select((z0 > z1), z0, z1) + height)
    h1 = select(line, T(0.0), (top - z0))
    h3 = select(line, T(0.0), (top - z1))
    dx = (x1 - x0)
    dy = (y1 - y0)
    dz = select(line, (z1 - z0), T(0.0))
    d = sqrt((((dx * dx) + (dy * dy)) + (dz * dz)))
    Tj1, Ta1, Tv1, j1 = profile(h1, vmax, amax, jmax)
    Tj2, Ta2, Tv2, j2 = profile(d, vmax, amax, jmax)
    Tj3, Ta3, Tv3, j3 = profile(h3, vmax, amax, jmax)
    T1 = ((T(2.0) * Ta1) + Tv1)
    T2 = ((T(2.0) * Ta2) + Tv2)
    T3 = ((T(2.0) * Ta3) + Tv3)
    t2 = (T1 - (overlap * Ta1))
    t3 = ((t2 + T2) - (overlap * Ta3))
    t3 = select((t3 > T1), t3, T1)
    end2 = (t2 + T2)
    end3 = (t3 + T3)
    Tp = select((end3 > end2), end3, end2)
    cyclic = select((kind > T(1.5)), T(1.0), T(0.0))
    duration = select((kind > T(1.5)), (T(2.0) * ((Tp * scale) + pause)), (Tp * scale))
    return x0, y0, z0, dx, dy, dz, h1, h3, Tj1, Ta1, Tv1, j1, t2, Tj2, Ta2, Tv2, j2, t3, Tj3, Ta3, Tv3, j3, Tp, pause, cyclic, scale, duration


@inlined
def path_clock(t, Tp, dwell, cyclic, lam):
    tau = (t / lam)
    wait = (dwell / lam)
    half = (Tp + wait)
    turn = (T(2.0) * half)
    q = (tau / select((turn > T(0.0)), turn, T(1.0)))
    k = rint(q)
    lap = (tau - (turn * select((k > q), (k - T(1.0)), k)))
    back = (lap - half)
    forth = select((lap < Tp), lap, Tp)
    home = select((back < Tp), (Tp - back), T(0.0))
    looped = select((back < T(0.0)), forth, home)
    way = select((back < T(0.0)), select((lap < Tp), T(1.0), T(0.0)), select((back < Tp), T(-1.0), T(0.0)))
    return select((cyclic > T(0.5)), looped, tau), select((cyclic > T(0.5)), way, T(1.0))


@inlined
def trajectory(R, La, Lb, iLa, RoLa, K, c1, s1, c2, s2, c3, s3, e1, e2, e3, lo1, lo2, lo3, hi1, hi2, hi3, tol, t, x0, y0, z0, dx, dy, dz, h1, h3, Tj1, Ta1, Tv1, j1, t2, Tj2, Ta2, Tv2, j2, t3, Tj3, Ta3, Tv3, j3, Tp, dwell, cyclic, lam):
    tau, way = path_clock(t, Tp, dwell, cyclic, lam)
    p1, v1, f1 = ramp(tau, Tj1, Ta1, Tv1, j1)
    p2, v2, f2 = ramp((tau - t2), Tj2, Ta2, Tv2, j2)
    p3, v3, f3 = ramp((tau - t3), Tj3, Ta3, Tv3, j3)
    speed = (way / lam)
    push = ((way * way) / (lam * lam))
    x = (x0 + (dx * p2))
    y = (y0 + (dy * p2))
    z = (((z0 + (dz * p2)) + (h1 * p1)) - (h3 * p3))
    vx = ((dx * v2) * speed)
    vy = ((dy * v2) * speed)
    vz = ((((dz * v2) + (h1 * v1)) - (h3 * v3)) * speed)
    ux = ((dx * f2) * push)
    uy = ((dy * f2) * push)
    uz = ((((dz * f2) + (h1 * f1)) - (h3 * f3)) * push)
    a1, a2, a3, w1, w2, w3, q1, q2, q3, status = ik_motion(R, La, Lb, iLa, RoLa, K, c1, s1, c2, s2, c3, s3, e1, e2, e3, lo1, lo2, lo3, hi1, hi2, hi3, tol, x, y, z, vx, vy, vz, ux, uy, uz)
    return x, y, z, vx, vy, vz, ux, uy, uz, a1, a2, a3, w1, w2, w3, q1, q2, q3, status


@inlined
def damped(w, a, lo, hi, gain, valid):
    most = (gain * (hi - a))
    least = (gain * (lo - a))
    w = select((w > most), most, w)
    w = select((w < least), least, w)
    return select(both(valid, ((w - w) == T(0.0))), w, T(0.0))


@inlined
def control(R, La, Lb, Lb2, c1, s1, c2, s2, c3, s3, down, lo1, lo2, lo3, hi1, hi2, hi3, tol, a1, a2, a3, x, y, z, vx, vy, vz, gain, wmax):
    px, py, pz, status = fk(R, La, Lb2, c1, s1, c2, s2, c3, s3, down, lo1, lo2, lo3, hi1, hi2, hi3, a1, a2, a3)
    r1x, r1y, r1z, r2x, r2y, r2z, r3x, r3y, r3z, k1, k2, k3, _sa1, _ca1, _sa2, _ca2, _sa3, _ca3 = pose(R, La, c1, s1, c2, s2, c3, s3, a1, a2, a3, px, py, pz)
    ex = (x - px)
    ey = (y - py)
    ez = (z - pz)
    gx = (vx + (gain * ex))
    gy = (vy + (gain * ey))
    gz = (vz + (gain * ez))
    w1 = ((((r1x * gx) + (r1y * gy)) + (r1z * gz)) / k1)
    w2 = ((((r2x * gx) + (r2y * gy)) + (r2z * gz)) / k2)
    w3 = ((((r3x * gx) + (r3y * gy)) + (r3z * gz)) / k3)
    b12 = select((fabs(w1) > fabs(w2)), fabs(w1), fabs(w2))
    big = select((fabs(w3) > b12), fabs(w3), b12)
    f = select((big > wmax), (wmax / select((big > wmax), big, T(1.0))), T(1.0))
    target = ((((gx - gx) + (gy - gy)) + (gz - gz)) == T(0.0))
    solved = (status < T(4096.0))
    valid = both(solved, target)
    w1 = damped((w1 * f), a1, lo1, hi1, gain, valid)
    w2 = damped((w2 * f), a2, lo2, hi2, gain, valid)
    w3 = damped((w3 * f), a3, lo3, hi3, gain, valid)
    edge = (tol * (La * Lb))
    flat = either(either((fabs(k1) <= edge), (fabs(k2) <= edge)), (fabs(k3) <= edge))
    bad = select(target, select(flat, T(8192.0), T(0.0)), T(4096.0))
    error = sqrt((((ex * ex) + (ey * ey)) + (ez * ez)))
    return w1, w2, w3, error, (status + select(solved, bad, T(0.0)))


@compiled
def fk_general(outer, count, geometry, geometry_row, geometry_step, geometry_outer, options, options_row, options_step, options_outer, angle, angle_row, angle_step, angle_outer, out_position, out_position_row, out_position_step, out_position_outer, mask, mask_step, mask_outer):
    memory = np.empty(31 * BLOCK, dtype=T)
    scratch = address(T, memory.ctypes.data)
    for begin in range(0, count, BLOCK):
        size = min(BLOCK, count - begin)
        for turn in range(outer):
            if geometry_outer != 0 or (turn == 0 and (geometry_step != 0 or begin == 0)):
                load(geometry + SIZE * (begin * geometry_step + turn * geometry_outer), geometry_row, geometry_step, I(13), BLOCK if geometry_step == 0 else size, scratch, I(0))
            if options_outer != 0 or (turn == 0 and (options_step != 0 or begin == 0)):
                load(options + SIZE * (begin * options_step + turn * options_outer), options_row, options_step, I(11), BLOCK if options_step == 0 else size, scratch, I(13))
            if angle_outer != 0 or (turn == 0 and (angle_step != 0 or begin == 0)):
                load(angle + SIZE * (begin * angle_step + turn * angle_outer), angle_row, angle_step, I(3), BLOCK if angle_step == 0 else size, scratch, I(24))
            for i in range(size):
                position_0, position_1, position_2, state = fk(get(scratch, 0 * BLOCK + i), get(scratch, 1 * BLOCK + i), get(scratch, 6 * BLOCK + i), get(scratch, 7 * BLOCK + i), get(scratch, 8 * BLOCK + i), get(scratch, 9 * BLOCK + i), get(scratch, 10 * BLOCK + i), get(scratch, 11 * BLOCK + i), get(scratch, 12 * BLOCK + i), get(scratch, 16 * BLOCK + i), get(scratch, 17 * BLOCK + i), get(scratch, 18 * BLOCK + i), get(scratch, 19 * BLOCK + i), get(scratch, 20 * BLOCK + i), get(scratch, 21 * BLOCK + i), get(scratch, 22 * BLOCK + i), get(scratch, 24 * BLOCK + i), get(scratch, 25 * BLOCK + i), get(scratch, 26 * BLOCK + i))
                put(scratch, 27 * BLOCK + i, position_0)
                put(scratch, 28 * BLOCK + i, position_1)
                put(scratch, 29 * BLOCK + i, position_2)
                put(scratch, 30 * BLOCK + i, state)
            if out_position != 0:
                store(out_position + SIZE * (begin * out_position_step + turn * out_position_outer), out_position_row, out_position_step, I(3), size, scratch, I(27))
            if mask != 0:
                mask_at = address(U, mask + 2 * (begin * mask_step + turn * mask_outer))
                for i in range(size):
                    put(mask_at, i * mask_step, to_mask(get(scratch, 30 * BLOCK + i)))
    hold(memory)


@compiled
def fk_plain(count, geometry, options, angle, angle_row, out_position, out_position_row):
    geometry_at = address(T, geometry)
    options_at = address(T, options)
    R = get(geometry_at, 0)
    La = get(geometry_at, 1)
    Lb2 = get(geometry_at, 6)
    c1 = get(geometry_at, 7)
    s1 = get(geometry_at, 8)
    c2 = get(geometry_at, 9)
    s2 = get(geometry_at, 10)
    c3 = get(geometry_at, 11)
    s3 = get(geometry_at, 12)
    down = get(options_at, 3)
    lo1 = get(options_at, 4)
    lo2 = get(options_at, 5)
    lo3 = get(options_at, 6)
    hi1 = get(options_at, 7)
    hi2 = get(options_at, 8)
    hi3 = get(options_at, 9)
    a1_at = address(T, angle + SIZE * 0 * angle_row)
    a2_at = address(T, angle + SIZE * 1 * angle_row)
    a3_at = address(T, angle + SIZE * 2 * angle_row)
    position_0_at = address(T, out_position + SIZE * 0 * out_position_row)
    position_1_at = address(T, out_position + SIZE * 1 * out_position_row)
    position_2_at = address(T, out_position + SIZE * 2 * out_position_row)
    for i in range(count):
        position_0, position_1, position_2, state = fk(R, La, Lb2, c1, s1, c2, s2, c3, s3, down, lo1, lo2, lo3, hi1, hi2, hi3, get(a1_at, i), get(a2_at, i), get(a3_at, i))
        put(position_0_at, i, position_0)
        put(position_1_at, i, position_1)
        put(position_2_at, i, position_2)


@compiled
def fk_plain_status(count, geometry, options, angle, angle_row, out_position, out_position_row, mask):
    geometry_at = address(T, geometry)
    options_at = address(T, options)
    R = get(geometry_at, 0)
    La = get(geometry_at, 1)
    Lb2 = get(geometry_at, 6)
    c1 = get(geometry_at, 7)
    s1 = get(geometry_at, 8)
    c2 = get(geometry_at, 9)
    s2 = get(geometry_at, 10)
    c3 = get(geometry_at, 11)
    s3 = get(geometry_at, 12)
    down = get(options_at, 3)
    lo1 = get(options_at, 4)
    lo2 = get(options_at, 5)
    lo3 = get(options_at, 6)
    hi1 = get(options_at, 7)
    hi2 = get(options_at, 8)
    hi3 = get(options_at, 9)
    a1_at = address(T, angle + SIZE * 0 * angle_row)
    a2_at = address(T, angle + SIZE * 1 * angle_row)
    a3_at = address(T, angle + SIZE * 2 * angle_row)
    position_0_at = address(T, out_position + SIZE * 0 * out_position_row)
    position_1_at = address(T, out_position + SIZE * 1 * out_position_row)
    position_2_at = address(T, out_position + SIZE * 2 * out_position_row)
    mask_at = address(U, mask)
    for i in range(count):
        position_0, position_1, position_2, state = fk(R, La, Lb2, c1, s1, c2, s2, c3, s3, down, lo1, lo2, lo3, hi1, hi2, hi3, get(a1_at, i), get(a2_at, i), get(a3_at, i))
        put(position_0_at, i, position_0)
        put(position_1_at, i, position_1)
        put(position_2_at, i, position_2)
        put(mask_at, i, to_mask(state))


@compiled
def ik_general(outer, count, geometry, geometry_row, geometry_step, geometry_outer, options, options_row, options_step, options_outer, position, position_row, position_step, position_outer, out_angle, out_angle_row, out_angle_step, out_angle_outer, mask, mask_step, mask_outer):
    memory = np.empty(31 * BLOCK, dtype=T)
    scratch = address(T, memory.ctypes.data)
    for begin in range(0, count, BLOCK):
        size = min(BLOCK, count - begin)
        for turn in range(outer):
            if geometry_outer != 0 or (turn == 0 and (geometry_step != 0 or begin == 0)):
                load(geometry + SIZE * (begin * geometry_step + turn * geometry_outer), geometry_row, geometry_step, I(13), BLOCK if geometry_step == 0 else size, scratch, I(0))
            if options_outer != 0 or (turn == 0 and (options_step != 0 or begin == 0)):
                load(options + SIZE * (begin * options_step + turn * options_outer), options_row, options_step, I(11), BLOCK if options_step == 0 else size, scratch, I(13))
            if position_outer != 0 or (turn == 0 and (position_step != 0 or begin == 0)):
                load(position + SIZE * (begin * position_step + turn * position_outer), position_row, position_step, I(3), BLOCK if position_step == 0 else size, scratch, I(24))
            for i in range(size):
                angle_0, angle_1, angle_2, state = ik(get(scratch, 0 * BLOCK + i), get(scratch, 3 * BLOCK + i), get(scratch, 4 * BLOCK + i), get(scratch, 5 * BLOCK + i), get(scratch, 7 * BLOCK + i), get(scratch, 8 * BLOCK + i), get(scratch, 9 * BLOCK + i), get(scratch, 10 * BLOCK + i), get(scratch, 11 * BLOCK + i), get(scratch, 12 * BLOCK + i), get(scratch, 13 * BLOCK + i), get(scratch, 14 * BLOCK + i), get(scratch, 15 * BLOCK + i), get(scratch, 17 * BLOCK + i), get(scratch, 18 * BLOCK + i), get(scratch, 19 * BLOCK + i), get(scratch, 20 * BLOCK + i), get(scratch, 21 * BLOCK + i), get(scratch, 22 * BLOCK + i), get(scratch, 24 * BLOCK + i), get(scratch, 25 * BLOCK + i), get(scratch, 26 * BLOCK + i))
                put(scratch, 27 * BLOCK + i, angle_0)
                put(scratch, 28 * BLOCK + i, angle_1)
                put(scratch, 29 * BLOCK + i, angle_2)
                put(scratch, 30 * BLOCK + i, state)
            if out_angle != 0:
                store(out_angle + SIZE * (begin * out_angle_step + turn * out_angle_outer), out_angle_row, out_angle_step, I(3), size, scratch, I(27))
            if mask != 0:
                mask_at = address(U, mask + 2 * (begin * mask_step + turn * mask_outer))
                for i in range(size):
                    put(mask_at, i * mask_step, to_mask(get(scratch, 30 * BLOCK + i)))
    hold(memory)


@compiled
def ik_plain(count, geometry, options, position, position_row, out_angle, out_angle_row):
    geometry_at = address(T, geometry)
    options_at = address(T, options)
    R = get(geometry_at, 0)
    iLa = get(geometry_at, 3)
    RoLa = get(geometry_at, 4)
    K = get(geometry_at, 5)
    c1 = get(geometry_at, 7)
    s1 = get(geometry_at, 8)
    c2 = get(geometry_at, 9)
    s2 = get(geometry_at, 10)
    c3 = get(geometry_at, 11)
    s3 = get(geometry_at, 12)
    e1 = get(options_at, 0)
    e2 = get(options_at, 1)
    e3 = get(options_at, 2)
    lo1 = get(options_at, 4)
    lo2 = get(options_at, 5)
    lo3 = get(options_at, 6)
    hi1 = get(options_at, 7)
    hi2 = get(options_at, 8)
    hi3 = get(options_at, 9)
    x_at = address(T, position + SIZE * 0 * position_row)
    y_at = address(T, position + SIZE * 1 * position_row)
    z_at = address(T, position + SIZE * 2 * position_row)
    angle_0_at = address(T, out_angle + SIZE * 0 * out_angle_row)
    angle_1_at = address(T, out_angle + SIZE * 1 * out_angle_row)
    angle_2_at = address(T, out_angle + SIZE * 2 * out_angle_row)
    for i in range(count):
        angle_0, angle_1, angle_2, state = ik(R, iLa, RoLa, K, c1, s1, c2, s2, c3, s3, e1, e2, e3, lo1, lo2, lo3, hi1, hi2, hi3, get(x_at, i), get(y_at, i), get(z_at, i))
        put(angle_0_at, i, angle_0)
        put(angle_1_at, i, angle_1)
        put(angle_2_at, i, angle_2)


@compiled
def ik_plain_status(count, geometry, options, position, position_row, out_angle, out_angle_row, mask):
    geometry_at = address(T, geometry)
    options_at = address(T, options)
    R = get(geometry_at, 0)
    iLa = get(geometry_at, 3)
    RoLa = get(geometry_at, 4)
    K = get(geometry_at, 5)
    c1 = get(geometry_at, 7)
    s1 = get(geometry_at, 8)
    c2 = get(geometry_at, 9)
    s2 = get(geometry_at, 10)
    c3 = get(geometry_at, 11)
    s3 = get(geometry_at, 12)
    e1 = get(options_at, 0)
    e2 = get(options_at, 1)
    e3 = get(options_at, 2)
    lo1 = get(options_at, 4)
    lo2 = get(options_at, 5)
    lo3 = get(options_at, 6)
    hi1 = get(options_at, 7)
    hi2 = get(options_at, 8)
    hi3 = get(options_at, 9)
    x_at = address(T, position + SIZE * 0 * position_row)
    y_at = address(T, position + SIZE * 1 * position_row)
    z_at = address(T, position + SIZE * 2 * position_row)
    angle_0_at = address(T, out_angle + SIZE * 0 * out_angle_row)
    angle_1_at = address(T, out_angle + SIZE * 1 * out_angle_row)
    angle_2_at = address(T, out_angle + SIZE * 2 * out_angle_row)
    mask_at = address(U, mask)
    for i in range(count):
        angle_0, angle_1, angle_2, state = ik(R, iLa, RoLa, K, c1, s1, c2, s2, c3, s3, e1, e2, e3, lo1, lo2, lo3, hi1, hi2, hi3, get(x_at, i), get(y_at, i), get(z_at, i))
        put(angle_0_at, i, angle_0)
        put(angle_1_at, i, angle_1)
        put(angle_2_at, i, angle_2)
        put(mask_at, i, to_mask(state))


@compiled
def jacobian_general(outer, count, geometry, geometry_row, geometry_step, geometry_outer, options, options_row, options_step, options_outer, angle, angle_row, angle_step, angle_outer, out_position, out_position_row, out_position_step, out_position_outer, out_jacobian, out_jacobian_row, out_jacobian_step, out_jacobian_outer, mask, mask_step, mask_outer):
    memory = np.empty(40 * BLOCK, dtype=T)
    scratch = address(T, memory.ctypes.data)
    for begin in range(0, count, BLOCK):
        size = min(BLOCK, count - begin)
        for turn in range(outer):
            if geometry_outer != 0 or (turn == 0 and (geometry_step != 0 or begin == 0)):
                load(geometry + SIZE * (begin * geometry_step + turn * geometry_outer), geometry_row, geometry_step, I(13), BLOCK if geometry_step == 0 else size, scratch, I(0))
            if options_outer != 0 or (turn == 0 and (options_step != 0 or begin == 0)):
                load(options + SIZE * (begin * options_step + turn * options_outer), options_row, options_step, I(11), BLOCK if options_step == 0 else size, scratch, I(13))
            if angle_outer != 0 or (turn == 0 and (angle_step != 0 or begin == 0)):
                load(angle + SIZE * (begin * angle_step + turn * angle_outer), angle_row, angle_step, I(3), BLOCK if angle_step == 0 else size, scratch, I(24))
            for i in range(size):
                position_0, position_1, position_2, jacobian_0, jacobian_1, jacobian_2, jacobian_3, jacobian_4, jacobian_5, jacobian_6, jacobian_7, jacobian_8, state = jacobian(get(scratch, 0 * BLOCK + i), get(scratch, 1 * BLOCK + i), get(scratch, 2 * BLOCK + i), get(scratch, 6 * BLOCK + i), get(scratch, 7 * BLOCK + i), get(scratch, 8 * BLOCK + i), get(scratch, 9 * BLOCK + i), get(scratch, 10 * BLOCK + i), get(scratch, 11 * BLOCK + i), get(scratch, 12 * BLOCK + i), get(scratch, 16 * BLOCK + i), get(scratch, 17 * BLOCK + i), get(scratch, 18 * BLOCK + i), get(scratch, 19 * BLOCK + i), get(scratch, 20 * BLOCK + i), get(scratch, 21 * BLOCK + i), get(scratch, 22 * BLOCK + i), get(scratch, 23 * BLOCK + i), get(scratch, 24 * BLOCK + i), get(scratch, 25 * BLOCK + i), get(scratch, 26 * BLOCK + i))
                put(scratch, 27 * BLOCK + i, position_0)
                put(scratch, 28 * BLOCK + i, position_1)
                put(scratch, 29 * BLOCK + i, position_2)
                put(scratch, 30 * BLOCK + i, jacobian_0)
                put(scratch, 31 * BLOCK + i, jacobian_1)
                put(scratch, 32 * BLOCK + i, jacobian_2)
                put(scratch, 33 * BLOCK + i, jacobian_3)
                put(scratch, 34 * BLOCK + i, jacobian_4)
                put(scratch, 35 * BLOCK + i, jacobian_5)
                put(scratch, 36 * BLOCK + i, jacobian_6)
                put(scratch, 37 * BLOCK + i, jacobian_7)
                put(scratch, 38 * BLOCK + i, jacobian_8)
                put(scratch, 39 * BLOCK + i, state)
            if out_position != 0:
                store(out_position + SIZE * (begin * out_position_step + turn * out_position_outer), out_position_row, out_position_step, I(3), size, scratch, I(27))
            if out_jacobian != 0:
                store(out_jacobian + SIZE * (begin * out_jacobian_step + turn * out_jacobian_outer), out_jacobian_row, out_jacobian_step, I(9), size, scratch, I(30))
            if mask != 0:
                mask_at = address(U, mask + 2 * (begin * mask_step + turn * mask_outer))
                for i in range(size):
                    put(mask_at, i * mask_step, to_mask(get(scratch, 39 * BLOCK + i)))
    hold(memory)


@compiled
def measures_general(outer, count, geometry, geometry_row, geometry_step, geometry_outer, options, options_row, options_step, options_outer, angle, angle_row, angle_step, angle_outer, out_measure, out_measure_row, out_measure_step, out_measure_outer, mask, mask_step, mask_outer):
    memory = np.empty(36 * BLOCK, dtype=T)
    scratch = address(T, memory.ctypes.data)
    for begin in range(0, count, BLOCK):
        size = min(BLOCK, count - begin)
        for turn in range(outer):
            if geometry_outer != 0 or (turn == 0 and (geometry_step != 0 or begin == 0)):
                load(geometry + SIZE * (begin * geometry_step + turn * geometry_outer), geometry_row, geometry_step, I(13), BLOCK if geometry_step == 0 else size, scratch, I(0))
            if options_outer != 0 or (turn == 0 and (options_step != 0 or begin == 0)):
                load(options + SIZE * (begin * options_step + turn * options_outer), options_row, options_step, I(11), BLOCK if options_step == 0 else size, scratch, I(13))
            if angle_outer != 0 or (turn == 0 and (angle_step != 0 or begin == 0)):
                load(angle + SIZE * (begin * angle_step + turn * angle_outer), angle_row, angle_step, I(3), BLOCK if angle_step == 0 else size, scratch, I(24))
            for i in range(size):
                measure_0, measure_1, measure_2, measure_3, measure_4, measure_5, measure_6, measure_7, state = measures(get(scratch, 0 * BLOCK + i), get(scratch, 1 * BLOCK + i), get(scratch, 2 * BLOCK + i), get(scratch, 6 * BLOCK + i), get(scratch, 3 * BLOCK + i), get(scratch, 7 * BLOCK + i), get(scratch, 8 * BLOCK + i), get(scratch, 9 * BLOCK + i), get(scratch, 10 * BLOCK + i), get(scratch, 11 * BLOCK + i), get(scratch, 12 * BLOCK + i), get(scratch, 16 * BLOCK + i), get(scratch, 17 * BLOCK + i), get(scratch, 18 * BLOCK + i), get(scratch, 19 * BLOCK + i), get(scratch, 20 * BLOCK + i), get(scratch, 21 * BLOCK + i), get(scratch, 22 * BLOCK + i), get(scratch, 23 * BLOCK + i), get(scratch, 24 * BLOCK + i), get(scratch, 25 * BLOCK + i), get(scratch, 26 * BLOCK + i))
                put(scratch, 27 * BLOCK + i, measure_0)
                put(scratch, 28 * BLOCK + i, measure_1)
                put(scratch, 29 * BLOCK + i, measure_2)
                put(scratch, 30 * BLOCK + i, measure_3)
                put(scratch, 31 * BLOCK + i, measure_4)
                put(scratch, 32 * BLOCK + i, measure_5)
                put(scratch, 33 * BLOCK + i, measure_6)
                put(scratch, 34 * BLOCK + i, measure_7)
                put(scratch, 35 * BLOCK + i, state)
            if out_measure != 0:
                store(out_measure + SIZE * (begin * out_measure_step + turn * out_measure_outer), out_measure_row, out_measure_step, I(8), size, scratch, I(27))
            if mask != 0:
                mask_at = address(U, mask + 2 * (begin * mask_step + turn * mask_outer))
                for i in range(size):
                    put(mask_at, i * mask_step, to_mask(get(scratch, 35 * BLOCK + i)))
    hold(memory)


@compiled
def fk_motion_general(outer, count, geometry, geometry_row, geometry_step, geometry_outer, options, options_row, options_step, options_outer, angle, angle_row, angle_step, angle_outer, rate, rate_row, rate_step, rate_outer, rate2, rate2_row, rate2_step, rate2_outer, out_position, out_position_row, out_position_step, out_position_outer, out_velocity, out_velocity_row, out_velocity_step, out_velocity_outer, out_acceleration, out_acceleration_row, out_acceleration_step, out_acceleration_outer, mask, mask_step, mask_outer):
    memory = np.empty(43 * BLOCK, dtype=T)
    scratch = address(T, memory.ctypes.data)
    for begin in range(0, count, BLOCK):
        size = min(BLOCK, count - begin)
        for turn in range(outer):
            if geometry_outer != 0 or (turn == 0 and (geometry_step != 0 or begin == 0)):
                load(geometry + SIZE * (begin * geometry_step + turn * geometry_outer), geometry_row, geometry_step, I(13), BLOCK if geometry_step == 0 else size, scratch, I(0))
            if options_outer != 0 or (turn == 0 and (options_step != 0 or begin == 0)):
                load(options + SIZE * (begin * options_step + turn * options_outer), options_row, options_step, I(11), BLOCK if options_step == 0 else size, scratch, I(13))
            if angle_outer != 0 or (turn == 0 and (angle_step != 0 or begin == 0)):
                load(angle + SIZE * (begin * angle_step + turn * angle_outer), angle_row, angle_step, I(3), BLOCK if angle_step == 0 else size, scratch, I(24))
            if rate_outer != 0 or (turn == 0 and (rate_step != 0 or begin == 0)):
                load(rate + SIZE * (begin * rate_step + turn * rate_outer), rate_row, rate_step, I(3), BLOCK if rate_step == 0 else size, scratch, I(27))
            if rate2_outer != 0 or (turn == 0 and (rate2_step != 0 or begin == 0)):
                load(rate2 + SIZE * (begin * rate2_step + turn * rate2_outer), rate2_row, rate2_step, I(3), BLOCK if rate2_step == 0 else size, scratch, I(30))
            for i in range(size):
                position_0, position_1, position_2, velocity_0, velocity_1, velocity_2, acceleration_0, acceleration_1, acceleration_2, state = fk_motion(get(scratch, 0 * BLOCK + i), get(scratch, 1 * BLOCK + i), get(scratch, 2 * BLOCK + i), get(scratch, 6 * BLOCK + i), get(scratch, 7 * BLOCK + i), get(scratch, 8 * BLOCK + i), get(scratch, 9 * BLOCK + i), get(scratch, 10 * BLOCK + i), get(scratch, 11 * BLOCK + i), get(scratch, 12 * BLOCK + i), get(scratch, 16 * BLOCK + i), get(scratch, 17 * BLOCK + i), get(scratch, 18 * BLOCK + i), get(scratch, 19 * BLOCK + i), get(scratch, 20 * BLOCK + i), get(scratch, 21 * BLOCK + i), get(scratch, 22 * BLOCK + i), get(scratch, 23 * BLOCK + i), get(scratch, 24 * BLOCK + i), get(scratch, 25 * BLOCK + i), get(scratch, 26 * BLOCK + i), get(scratch, 27 * BLOCK + i), get(scratch, 28 * BLOCK + i), get(scratch, 29 * BLOCK + i), get(scratch, 30 * BLOCK + i), get(scratch, 31 * BLOCK + i), get(scratch, 32 * BLOCK + i))
                put(scratch, 33 * BLOCK + i, position_0)
                put(scratch, 34 * BLOCK + i, position_1)
                put(scratch, 35 * BLOCK + i, position_2)
                put(scratch, 36 * BLOCK + i, velocity_0)
                put(scratch, 37 * BLOCK + i, velocity_1)
                put(scratch, 38 * BLOCK + i, velocity_2)
                put(scratch, 39 * BLOCK + i, acceleration_0)
                put(scratch, 40 * BLOCK + i, acceleration_1)
                put(scratch, 41 * BLOCK + i, acceleration_2)
                put(scratch, 42 * BLOCK + i, state)
            if out_position != 0:
                store(out_position + SIZE * (begin * out_position_step + turn * out_position_outer), out_position_row, out_position_step, I(3), size, scratch, I(33))
            if out_velocity != 0:
                store(out_velocity + SIZE * (begin * out_velocity_step + turn * out_velocity_outer), out_velocity_row, out_velocity_step, I(3), size, scratch, I(36))
            if out_acceleration != 0:
                store(out_acceleration + SIZE * (begin * out_acceleration_step + turn * out_acceleration_outer), out_acceleration_row, out_acceleration_step, I(3), size, scratch, I(39))
            if mask != 0:
                mask_at = address(U, mask + 2 * (begin * mask_step + turn * mask_outer))
                for i in range(size):
                    put(mask_at, i * mask_step, to_mask(get(scratch, 42 * BLOCK + i)))
    hold(memory)


@compiled
def ik_motion_general(outer, count, geometry, geometry_row, geometry_step, geometry_outer, options, options_row, options_step, options_outer, position, position_row, position_step, position_outer, velocity, velocity_row, velocity_step, velocity_outer, acceleration, acceleration_row, acceleration_step, acceleration_outer, out_angle, out_angle_row, out_angle_step, out_angle_outer, out_rate, out_rate_row, out_rate_step, out_rate_outer, out_rate2, out_rate2_row, out_rate2_step, out_rate2_outer, mask, mask_step, mask_outer):
    memory = np.empty(43 * BLOCK, dtype=T)
    scratch = address(T, memory.ctypes.data)
    for begin in range(0, count, BLOCK):
        size = min(BLOCK, count - begin)
        for turn in range(outer):
            if geometry_outer != 0 or (turn == 0 and (geometry_step != 0 or begin == 0)):
                load(geometry + SIZE * (begin * geometry_step + turn * geometry_outer), geometry_row, geometry_step, I(13), BLOCK if geometry_step == 0 else size, scratch, I(0))
            if options_outer != 0 or (turn == 0 and (options_step != 0 or begin == 0)):
                load(options + SIZE * (begin * options_step + turn * options_outer), options_row, options_step, I(11), BLOCK if options_step == 0 else size, scratch, I(13))
            if position_outer != 0 or (turn == 0 and (position_step != 0 or begin == 0)):
                load(position + SIZE * (begin * position_step + turn * position_outer), position_row, position_step, I(3), BLOCK if position_step == 0 else size, scratch, I(24))
            if velocity_outer != 0 or (turn == 0 and (velocity_step != 0 or begin == 0)):
                load(velocity + SIZE * (begin * velocity_step + turn * velocity_outer), velocity_row, velocity_step, I(3), BLOCK if velocity_step == 0 else size, scratch, I(27))
            if acceleration_outer != 0 or (turn == 0 and (acceleration_step != 0 or begin == 0)):
                load(acceleration + SIZE * (begin * acceleration_step + turn * acceleration_outer), acceleration_row, acceleration_step, I(3), BLOCK if acceleration_step == 0 else size, scratch, I(30))
            for i in range(size):
                angle_0, angle_1, angle_2, rate_0, rate_1, rate_2, rate2_0, rate2_1, rate2_2, state = ik_motion(get(scratch, 0 * BLOCK + i), get(scratch, 1 * BLOCK + i), get(scratch, 2 * BLOCK + i), get(scratch, 3 * BLOCK + i), get(scratch, 4 * BLOCK + i), get(scratch, 5 * BLOCK + i), get(scratch, 7 * BLOCK + i), get(scratch, 8 * BLOCK + i), get(scratch, 9 * BLOCK + i), get(scratch, 10 * BLOCK + i), get(scratch, 11 * BLOCK + i), get(scratch, 12 * BLOCK + i), get(scratch, 13 * BLOCK + i), get(scratch, 14 * BLOCK + i), get(scratch, 15 * BLOCK + i), get(scratch, 17 * BLOCK + i), get(scratch, 18 * BLOCK + i), get(scratch, 19 * BLOCK + i), get(scratch, 20 * BLOCK + i), get(scratch, 21 * BLOCK + i), get(scratch, 22 * BLOCK + i), get(scratch, 23 * BLOCK + i), get(scratch, 24 * BLOCK + i), get(scratch, 25 * BLOCK + i), get(scratch, 26 * BLOCK + i), get(scratch, 27 * BLOCK + i), get(scratch, 28 * BLOCK + i), get(scratch, 29 * BLOCK + i), get(scratch, 30 * BLOCK + i), get(scratch, 31 * BLOCK + i), get(scratch, 32 * BLOCK + i))
                put(scratch, 33 * BLOCK + i, angle_0)
                put(scratch, 34 * BLOCK + i, angle_1)
                put(scratch, 35 * BLOCK + i, angle_2)
                put(scratch, 36 * BLOCK + i, rate_0)
                put(scratch, 37 * BLOCK + i, rate_1)
                put(scratch, 38 * BLOCK + i, rate_2)
                put(scratch, 39 * BLOCK + i, rate2_0)
                put(scratch, 40 * BLOCK + i, rate2_1)
                put(scratch, 41 * BLOCK + i, rate2_2)
                put(scratch, 42 * BLOCK + i, state)
            if out_angle != 0:
                store(out_angle + SIZE * (begin * out_angle_step + turn * out_angle_outer), out_angle_row, out_angle_step, I(3), size, scratch, I(33))
            if out_rate != 0:
                store(out_rate + SIZE * (begin * out_rate_step + turn * out_rate_outer), out_rate_row, out_rate_step, I(3), size, scratch, I(36))
            if out_rate2 != 0:
                store(out_rate2 + SIZE * (begin * out_rate2_step + turn * out_rate2_outer), out_rate2_row, out_rate2_step, I(3), size, scratch, I(39))
            if mask != 0:
                mask_at = address(U, mask + 2 * (begin * mask_step + turn * mask_outer))
                for i in range(size):
                    put(mask_at, i * mask_step, to_mask(get(scratch, 42 * BLOCK + i)))
    hold(memory)


@compiled
def dexterity_general(outer, count, geometry, geometry_row, geometry_step, geometry_outer, options, options_row, options_step, options_outer, position, position_row, position_step, position_outer, out_measure, out_measure_row, out_measure_step, out_measure_outer, mask, mask_step, mask_outer):
    memory = np.empty(36 * BLOCK, dtype=T)
    scratch = address(T, memory.ctypes.data)
    for begin in range(0, count, BLOCK):
        size = min(BLOCK, count - begin)
        for turn in range(outer):
            if geometry_outer != 0 or (turn == 0 and (geometry_step != 0 or begin == 0)):
                load(geometry + SIZE * (begin * geometry_step + turn * geometry_outer), geometry_row, geometry_step, I(13), BLOCK if geometry_step == 0 else size, scratch, I(0))
            if options_outer != 0 or (turn == 0 and (options_step != 0 or begin == 0)):
                load(options + SIZE * (begin * options_step + turn * options_outer), options_row, options_step, I(11), BLOCK if options_step == 0 else size, scratch, I(13))
            if position_outer != 0 or (turn == 0 and (position_step != 0 or begin == 0)):
                load(position + SIZE * (begin * position_step + turn * position_outer), position_row, position_step, I(3), BLOCK if position_step == 0 else size, scratch, I(24))
            for i in range(size):
                measure_0, measure_1, measure_2, measure_3, measure_4, measure_5, measure_6, measure_7, state = dexterity(get(scratch, 0 * BLOCK + i), get(scratch, 1 * BLOCK + i), get(scratch, 2 * BLOCK + i), get(scratch, 6 * BLOCK + i), get(scratch, 3 * BLOCK + i), get(scratch, 4 * BLOCK + i), get(scratch, 5 * BLOCK + i), get(scratch, 7 * BLOCK + i), get(scratch, 8 * BLOCK + i), get(scratch, 9 * BLOCK + i), get(scratch, 10 * BLOCK + i), get(scratch, 11 * BLOCK + i), get(scratch, 12 * BLOCK + i), get(scratch, 13 * BLOCK + i), get(scratch, 14 * BLOCK + i), get(scratch, 15 * BLOCK + i), get(scratch, 17 * BLOCK + i), get(scratch, 18 * BLOCK + i), get(scratch, 19 * BLOCK + i), get(scratch, 20 * BLOCK + i), get(scratch, 21 * BLOCK + i), get(scratch, 22 * BLOCK + i), get(scratch, 23 * BLOCK + i), get(scratch, 24 * BLOCK + i), get(scratch, 25 * BLOCK + i), get(scratch, 26 * BLOCK + i))
                put(scratch, 27 * BLOCK + i, measure_0)
                put(scratch, 28 * BLOCK + i, measure_1)
                put(scratch, 29 * BLOCK + i, measure_2)
                put(scratch, 30 * BLOCK + i, measure_3)
                put(scratch, 31 * BLOCK + i, measure_4)
                put(scratch, 32 * BLOCK + i, measure_5)
                put(scratch, 33 * BLOCK + i, measure_6)
                put(scratch, 34 * BLOCK + i, measure_7)
                put(scratch, 35 * BLOCK + i, state)
            if out_measure != 0:
                store(out_measure + SIZE * (begin * out_measure_step + turn * out_measure_outer), out_measure_row, out_measure_step, I(8), size, scratch, I(27))
            if mask != 0:
                mask_at = address(U, mask + 2 * (begin * mask_step + turn * mask_outer))
                for i in range(size):
                    put(mask_at, i * mask_step, to_mask(get(scratch, 35 * BLOCK + i)))
    hold(memory)


@compiled
def plan_general(outer, count, geometry, geometry_row, geometry_step, geometry_outer, options, options_row, options_step, options_outer, start, start_row, start_step, start_outer, goal, goal_row, goal_step, goal_outer, move, move_row, move_step, move_outer, out_path, out_path_row, out_path_step, out_path_outer, out_duration, out_duration_row, out_duration_step, out_duration_outer):
    memory = np.empty(66 * BLOCK, dtype=T)
    scratch = address(T, memory.ctypes.data)
    for begin in range(0, count, BLOCK):
        size = min(BLOCK, count - begin)
        for turn in range(outer):
            if geometry_outer != 0 or (turn == 0 and (geometry_step != 0 or begin == 0)):
                load(geometry + SIZE * (begin * geometry_step + turn * geometry_outer), geometry_row, geometry_step, I(13), BLOCK if geometry_step == 0 else size, scratch, I(0))
            if options_outer != 0 or (turn == 0 and (options_step != 0 or begin == 0)):
                load(options + SIZE * (begin * options_step + turn * options_outer), options_row, options_step, I(11), BLOCK if options_step == 0 else size, scratch, I(13))
            if start_outer != 0 or (turn == 0 and (start_step != 0 or begin == 0)):
                load(start + SIZE * (begin * start_step + turn * start_outer), start_row, start_step, I(3), BLOCK if start_step == 0 else size, scratch, I(24))
            if goal_outer != 0 or (turn == 0 and (goal_step != 0 or begin == 0)):
                load(goal + SIZE * (begin * goal_step + turn * goal_outer), goal_row, goal_step, I(3), BLOCK if goal_step == 0 else size, scratch, I(27))
            if move_outer != 0 or (turn == 0 and (move_step != 0 or begin == 0)):
                load(move + SIZE * (begin * move_step + turn * move_outer), move_row, move_step, I(8), BLOCK if move_step == 0 else size, scratch, I(30))
            for i in range(size):
                path_0, path_1, path_2, path_3, path_4, path_5, path_6, path_7, path_8, path_9, path_10, path_11, path_12, path_13, path_14, path_15, path_16, path_17, path_18, path_19, path_20, path_21, path_22, path_23, path_24, path_25, duration_0 = plan(get(scratch, 24 * BLOCK + i), get(scratch, 25 * BLOCK + i), get(scratch, 26 * BLOCK + i), get(scratch, 27 * BLOCK + i), get(scratch, 28 * BLOCK + i), get(scratch, 29 * BLOCK + i), get(scratch, 30 * BLOCK + i), get(scratch, 31 * BLOCK + i), get(scratch, 32 * BLOCK + i), get(scratch, 33 * BLOCK + i), get(scratch, 34 * BLOCK + i), get(scratch, 35 * BLOCK + i), get(scratch, 36 * BLOCK + i), get(scratch, 37 * BLOCK + i))
                put(scratch, 38 * BLOCK + i, path_0)
                put(scratch, 39 * BLOCK + i, path_1)
                put(scratch, 40 * BLOCK + i, path_2)
                put(scratch, 41 * BLOCK + i, path_3)
                put(scratch, 42 * BLOCK + i, path_4)
                put(scratch, 43 * BLOCK + i, path_5)
                put(scratch, 44 * BLOCK + i, path_6)
                put(scratch, 45 * BLOCK + i, path_7)
                put(scratch, 46 * BLOCK + i, path_8)
                put(scratch, 47 * BLOCK + i, path_9)
                put(scratch, 48 * BLOCK + i, path_10)
                put(scratch, 49 * BLOCK + i, path_11)
                put(scratch, 50 * BLOCK + i, path_12)
                put(scratch, 51 * BLOCK + i, path_13)
                put(scratch, 52 * BLOCK + i, path_14)
                put(scratch, 53 * BLOCK + i, path_15)
                put(scratch, 54 * BLOCK + i, path_16)
                put(scratch, 55 * BLOCK + i, path_17)
                put(scratch, 56 * BLOCK + i, path_18)
                put(scratch, 57 * BLOCK + i, path_19)
                put(scratch, 58 * BLOCK + i, path_20)
                put(scratch, 59 * BLOCK + i, path_21)
                put(scratch, 60 * BLOCK + i, path_22)
                put(scratch, 61 * BLOCK + i, path_23)
                put(scratch, 62 * BLOCK + i, path_24)
                put(scratch, 63 * BLOCK + i, path_25)
                put(scratch, 64 * BLOCK + i, duration_0)
            if out_path != 0:
                store(out_path + SIZE * (begin * out_path_step + turn * out_path_outer), out_path_row, out_path_step, I(26), size, scratch, I(38))
            if out_duration != 0:
                store(out_duration + SIZE * (begin * out_duration_step + turn * out_duration_outer), out_duration_row, out_duration_step, I(1), size, scratch, I(64))
    hold(memory)


@compiled
def trajectory_general(outer, count, geometry, geometry_row, geometry_step, geometry_outer, options, options_row, options_step, options_outer, time, time_row, time_step, time_outer, path, path_row, path_step, path_outer, out_position, out_position_row, out_position_step, out_position_outer, out_velocity, out_velocity_row, out_velocity_step, out_velocity_outer, out_acceleration, out_acceleration_row, out_acceleration_step, out_acceleration_outer, out_angle, out_angle_row, out_angle_step, out_angle_outer, out_rate, out_rate_row, out_rate_step, out_rate_outer, out_rate2, out_rate2_row, out_rate2_step, out_rate2_outer, mask, mask_step, mask_outer):
    memory = np.empty(70 * BLOCK, dtype=T)
    scratch = address(T, memory.ctypes.data)
    for begin in range(0, count, BLOCK):
        size = min(BLOCK, count - begin)
        for turn in range(outer):
            if geometry_outer != 0 or (turn == 0 and (geometry_step != 0 or begin == 0)):
                load(geometry + SIZE * (begin * geometry_step + turn * geometry_outer), geometry_row, geometry_step, I(13), BLOCK if geometry_step == 0 else size, scratch, I(0))
            if options_outer != 0 or (turn == 0 and (options_step != 0 or begin == 0)):
                load(options + SIZE * (begin * options_step + turn * options_outer), options_row, options_step, I(11), BLOCK if options_step == 0 else size, scratch, I(13))
            if time_outer != 0 or (turn == 0 and (time_step != 0 or begin == 0)):
                load(time + SIZE * (begin * time_step + turn * time_outer), time_row, time_step, I(1), BLOCK if time_step == 0 else size, scratch, I(24))
            if path_outer != 0 or (turn == 0 and (path_step != 0 or begin == 0)):
                load(path + SIZE * (begin * path_step + turn * path_outer), path_row, path_step, I(26), BLOCK if path_step == 0 else size, scratch, I(25))
            for i in range(size):
                position_0, position_1, position_2, velocity_0, velocity_1, velocity_2, acceleration_0, acceleration_1, acceleration_2, angle_0, angle_1, angle_2, rate_0, rate_1, rate_2, rate2_0, rate2_1, rate2_2, state = trajectory(get(scratch, 0 * BLOCK + i), get(scratch, 1 * BLOCK + i), get(scratch, 2 * BLOCK + i), get(scratch, 3 * BLOCK + i), get(scratch, 4 * BLOCK + i), get(scratch, 5 * BLOCK + i), get(scratch, 7 * BLOCK + i), get(scratch, 8 * BLOCK + i), get(scratch, 9 * BLOCK + i), get(scratch, 10 * BLOCK + i), get(scratch, 11 * BLOCK + i), get(scratch, 12 * BLOCK + i), get(scratch, 13 * BLOCK + i), get(scratch, 14 * BLOCK + i), get(scratch, 15 * BLOCK + i), get(scratch, 17 * BLOCK + i), get(scratch, 18 * BLOCK + i), get(scratch, 19 * BLOCK + i), get(scratch, 20 * BLOCK + i), get(scratch, 21 * BLOCK + i), get(scratch, 22 * BLOCK + i), get(scratch, 23 * BLOCK + i), get(scratch, 24 * BLOCK + i), get(scratch, 25 * BLOCK + i), get(scratch, 26 * BLOCK + i), get(scratch, 27 * BLOCK + i), get(scratch, 28 * BLOCK + i), get(scratch, 29 * BLOCK + i), get(scratch, 30 * BLOCK + i), get(scratch, 31 * BLOCK + i), get(scratch, 32 * BLOCK + i), get(scratch, 33 * BLOCK + i), get(scratch, 34 * BLOCK + i), get(scratch, 35 * BLOCK + i), get(scratch, 36 * BLOCK + i), get(scratch, 37 * BLOCK + i), get(scratch, 38 * BLOCK + i), get(scratch, 39 * BLOCK + i), get(scratch, 40 * BLOCK + i), get(scratch, 41 * BLOCK + i), get(scratch, 42 * BLOCK + i), get(scratch, 43 * BLOCK + i), get(scratch, 44 * BLOCK + i), get(scratch, 45 * BLOCK + i), get(scratch, 46 * BLOCK + i), get(scratch, 47 * BLOCK + i), get(scratch, 48 * BLOCK + i), get(scratch, 49 * BLOCK + i), get(scratch, 50 * BLOCK + i))
                put(scratch, 51 * BLOCK + i, position_0)
                put(scratch, 52 * BLOCK + i, position_1)
                put(scratch, 53 * BLOCK + i, position_2)
                put(scratch, 54 * BLOCK + i, velocity_0)
                put(scratch, 55 * BLOCK + i, velocity_1)
                put(scratch, 56 * BLOCK + i, velocity_2)
                put(scratch, 57 * BLOCK + i, acceleration_0)
                put(scratch, 58 * BLOCK + i, acceleration_1)
                put(scratch, 59 * BLOCK + i, acceleration_2)
                put(scratch, 60 * BLOCK + i, angle_0)
                put(scratch, 61 * BLOCK + i, angle_1)
                put(scratch, 62 * BLOCK + i, angle_2)
                put(scratch, 63 * BLOCK + i, rate_0)
                put(scratch, 64 * BLOCK + i, rate_1)
                put(scratch, 65 * BLOCK + i, rate_2)
                put(scratch, 66 * BLOCK + i, rate2_0)
                put(scratch, 67 * BLOCK + i, rate2_1)
                put(scratch, 68 * BLOCK + i, rate2_2)
                put(scratch, 69 * BLOCK + i, state)
            if out_position != 0:
                store(out_position + SIZE * (begin * out_position_step + turn * out_position_outer), out_position_row, out_position_step, I(3), size, scratch, I(51))
            if out_velocity != 0:
                store(out_velocity + SIZE * (begin * out_velocity_step + turn * out_velocity_outer), out_velocity_row, out_velocity_step, I(3), size, scratch, I(54))
            if out_acceleration != 0:
                store(out_acceleration + SIZE * (begin * out_acceleration_step + turn * out_acceleration_outer), out_acceleration_row, out_acceleration_step, I(3), size, scratch, I(57))
            if out_angle != 0:
                store(out_angle + SIZE * (begin * out_angle_step + turn * out_angle_outer), out_angle_row, out_angle_step, I(3), size, scratch, I(60))
            if out_rate != 0:
                store(out_rate + SIZE * (begin * out_rate_step + turn * out_rate_outer), out_rate_row, out_rate_step, I(3), size, scratch, I(63))
            if out_rate2 != 0:
                store(out_rate2 + SIZE * (begin * out_rate2_step + turn * out_rate2_outer), out_rate2_row, out_rate2_step, I(3), size, scratch, I(66))
            if mask != 0:
                mask_at = address(U, mask + 2 * (begin * mask_step + turn * mask_outer))
                for i in range(size):
                    put(mask_at, i * mask_step, to_mask(get(scratch, 69 * BLOCK + i)))
    hold(memory)


@compiled
def control_general(outer, count, geometry, geometry_row, geometry_step, geometry_outer, options, options_row, options_step, options_outer, angle, angle_row, angle_step, angle_outer, target, target_row, target_step, target_outer, feedforward, feedforward_row, feedforward_step, feedforward_outer, law, law_row, law_step, law_outer, out_rate, out_rate_row, out_rate_step, out_rate_outer, out_error, out_error_row, out_error_step, out_error_outer, mask, mask_step, mask_outer):
    memory = np.empty(40 * BLOCK, dtype=T)
    scratch = address(T, memory.ctypes.data)
    for begin in range(0, count, BLOCK):
        size = min(BLOCK, count - begin)
        for turn in range(outer):
            if geometry_outer != 0 or (turn == 0 and (geometry_step != 0 or begin == 0)):
                load(geometry + SIZE * (begin * geometry_step + turn * geometry_outer), geometry_row, geometry_step, I(13), BLOCK if geometry_step == 0 else size, scratch, I(0))
            if options_outer != 0 or (turn == 0 and (options_step != 0 or begin == 0)):
                load(options + SIZE * (begin * options_step + turn * options_outer), options_row, options_step, I(11), BLOCK if options_step == 0 else size, scratch, I(13))
            if angle_outer != 0 or (turn == 0 and (angle_step != 0 or begin == 0)):
                load(angle + SIZE * (begin * angle_step + turn * angle_outer), angle_row, angle_step, I(3), BLOCK if angle_step == 0 else size, scratch, I(24))
            if target_outer != 0 or (turn == 0 and (target_step != 0 or begin == 0)):
                load(target + SIZE * (begin * target_step + turn * target_outer), target_row, target_step, I(3), BLOCK if target_step == 0 else size, scratch, I(27))
            if feedforward_outer != 0 or (turn == 0 and (feedforward_step != 0 or begin == 0)):
                load(feedforward + SIZE * (begin * feedforward_step + turn * feedforward_outer), feedforward_row, feedforward_step, I(3), BLOCK if feedforward_step == 0 else size, scratch, I(30))
            if law_outer != 0 or (turn == 0 and (law_step != 0 or begin == 0)):
                load(law + SIZE * (begin * law_step + turn * law_outer), law_row, law_step, I(2), BLOCK if law_step == 0 else size, scratch, I(33))
            for i in range(size):
                rate_0, rate_1, rate_2, error_0, state = control(get(scratch, 0 * BLOCK + i), get(scratch, 1 * BLOCK + i), get(scratch, 2 * BLOCK + i), get(scratch, 6 * BLOCK + i), get(scratch, 7 * BLOCK + i), get(scratch, 8 * BLOCK + i), get(scratch, 9 * BLOCK + i), get(scratch, 10 * BLOCK + i), get(scratch, 11 * BLOCK + i), get(scratch, 12 * BLOCK + i), get(scratch, 16 * BLOCK + i), get(scratch, 17 * BLOCK + i), get(scratch, 18 * BLOCK + i), get(scratch, 19 * BLOCK + i), get(scratch, 20 * BLOCK + i), get(scratch, 21 * BLOCK + i), get(scratch, 22 * BLOCK + i), get(scratch, 23 * BLOCK + i), get(scratch, 24 * BLOCK + i), get(scratch, 25 * BLOCK + i), get(scratch, 26 * BLOCK + i), get(scratch, 27 * BLOCK + i), get(scratch, 28 * BLOCK + i), get(scratch, 29 * BLOCK + i), get(scratch, 30 * BLOCK + i), get(scratch, 31 * BLOCK + i), get(scratch, 32 * BLOCK + i), get(scratch, 33 * BLOCK + i), get(scratch, 34 * BLOCK + i))
                put(scratch, 35 * BLOCK + i, rate_0)
                put(scratch, 36 * BLOCK + i, rate_1)
                put(scratch, 37 * BLOCK + i, rate_2)
                put(scratch, 38 * BLOCK + i, error_0)
                put(scratch, 39 * BLOCK + i, state)
            if out_rate != 0:
                store(out_rate + SIZE * (begin * out_rate_step + turn * out_rate_outer), out_rate_row, out_rate_step, I(3), size, scratch, I(35))
            if out_error != 0:
                store(out_error + SIZE * (begin * out_error_step + turn * out_error_outer), out_error_row, out_error_step, I(1), size, scratch, I(38))
            if mask != 0:
                mask_at = address(U, mask + 2 * (begin * mask_step + turn * mask_outer))
                for i in range(size):
                    put(mask_at, i * mask_step, to_mask(get(scratch, 39 * BLOCK + i)))
    hold(memory)
