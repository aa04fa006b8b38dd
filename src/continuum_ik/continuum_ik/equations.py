"""The robot's 36 equations: residual, Jacobian, and the arrowhead elimination.

Unknowns (tutorial, section 1): for each rod the force n (3) and the moment at the base m0x, m0y,
and its length. Equations: for each rod, tip position and direction; then force and moment of the
platform.

    p(L) - (pE + RE r)          3        sum n = F                        3
    2 (RE' t(L))_xy             2        sum (m + RE r x n) = M           3

The rotation residual is the tutorial's (R12 - R21, R20 - R02) for a platform that is not tilted,
where it bounds that one from above; unlike `linear_rotation_error` it is exact for a tilted
platform.

A rod's equations involve its own six unknowns only. Gauss-Jordan elimination with complete pivoting
leaves one unknown of each rod free (at a straight rod the axial force, which then moves nothing):

    dy_i = V_i rho_i + U_i xi_i,

and the platform's equations become six for the six free unknowns, the Schur complement. A chord
step costs one multiplication with V, W = C V and the inverse of the Schur complement.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from continuum_ik.layout import MOMENT, PLATFORM, STEPS_MAX
from continuum_ik.rod import (
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
    Vector,
    shoot,
)

#: Error of the tip after N steps at load x: ERROR (x / 5.5)^POWER (12 / N)^8, fitted to the rods of
#: the tutorial's trajectory; plan_steps measures how far the rods at hand are from it.
ERROR, POWER = 6e-9, 10.7
#: x^2 that 1, 2, ... steps do, as multiples of what one does.
MULTIPLES = np.arange(1, STEPS_MAX + 1) ** (16.0 / POWER)
#: Scaled pivot below which a rod's pivots are chosen anew; upright rods have 1/12 and more.
SMALL_PIVOT = 1e-3
#: Load x of a rod from which on it counts as tense.
TENSE = 8.0
#: Displacement of fourth-order differences, in the scaled unknowns, for rods that carry nothing.
INCREMENT = 1e-3


@njit(inline="always")
def cross(a: Vector, b: Vector) -> Vector:
    """Return a x b."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@njit(inline="always")
def lane(rows: Array, i: int) -> Vector:
    """Return the vector of rod i, of three rows of lanes."""
    return rows[0, i], rows[1, i], rows[2, i]


@njit(inline="always")
def rotated(pose: Array, x: float, y: float, z: float) -> Vector:
    """Return R (x, y, z), R being the rotation of a pose."""
    return (
        pose[1, 0] * x + pose[1, 1] * y + pose[1, 2] * z,
        pose[2, 0] * x + pose[2, 1] * y + pose[2, 2] * z,
        pose[3, 0] * x + pose[3, 1] * y + pose[3, 2] * z,
    )


@njit(inline="always")
def direction(pose: Array, t: Vector) -> tuple[float, float]:
    """Return 2 (R' t)_xy, the rows of the tip's direction."""
    return (
        2.0 * (pose[1, 0] * t[0] + pose[2, 0] * t[1] + pose[3, 0] * t[2]),
        2.0 * (pose[1, 1] * t[0] + pose[2, 1] * t[1] + pose[3, 1] * t[2]),
    )


@njit(**KERNEL)
def aim(w: Record) -> None:
    """Work out what follows from the pose: arms RE r_i, tips, and the wrench about pE."""
    pose, arm, tip, base, holes = w.pose, w.arm, w.tip, w.base_holes, w.platform_holes
    for i in range(LANES):
        ax, ay, az = rotated(pose, holes[0, i], holes[1, i], holes[2, i])
        arm[0, i], arm[1, i], arm[2, i] = ax, ay, az
        tip[0, i] = pose[0, 0] + ax - base[0, i]
        tip[1, i] = pose[0, 1] + ay - base[1, i]
        tip[2, i] = pose[0, 2] + az - base[2, i]
    force = (w.force[0], w.force[1], w.force[2])
    about = cross(rotated(pose, w.point[0], w.point[1], w.point[2]), force)
    for k in range(3):
        w.wrench[k] = w.force[k]
        w.wrench[3 + k] = w.moment[k] + about[k]


def one_step(error: float) -> float:
    """Return the x^2 up to which one step keeps the tip's error below ``error``."""
    return float(5.5 * (error / ERROR * 12.0**-8) ** (1.0 / POWER)) ** 2


@njit(**KERNEL)
def load2(w: Record) -> float:
    """Return x^2 of the rod that is loaded most, x = L sqrt(|n|/EI + (m0/EI)^2).

    The error of the formula grows with x, the number of radians of the equivalent pendulum, and
    falls with the eighth power of the step count.
    """
    y = w.rods.y
    worst = 0.0
    for i in range(RODS):
        nx, ny, nz, mx, my, L = y[NX, i], y[NY, i], y[NZ, i], y[MX, i], y[MY, i], y[LENGTH, i]
        e = w.rods.inv_EI[i]
        x2 = L * L * e * (math.sqrt(nx * nx + ny * ny + nz * nz) + e * (mx * mx + my * my))
        worst = max(worst, x2)
    return worst


@njit(**KERNEL)
def _steps_for(x2: float, one: float) -> int:
    steps = 1
    while steps < STEPS_MAX and x2 > one * MULTIPLES[steps - 1]:
        steps += 1
    return steps


@njit(**KERNEL)
def choose_steps(w: Record, one: float) -> int:
    """Return the steps that the present load needs, ``one`` being the x^2 that one step does."""
    return _steps_for(load2(w), one)


@njit(**KERNEL)
def plan_steps(w: Record) -> None:
    """Set the steps for a residual, by the fitted law and a measurement of the rods at hand.

    Whenever the load has changed by a third, the error is measured by doubling the steps, in the
    residual and, by the factors at hand, in the lengths. Destroys residual, saved and delta then.
    """
    rules = w.rules[w.fine]
    x2 = load2(w)
    if not 0.6 * rules.step_measured <= x2 <= 1.3 * rules.step_measured:
        _measure_steps(w, x2)
    w.steps = _steps_for(x2 * rules.step_scale, rules.step_x2)


@njit(**KERNEL)
def _measure_steps(w: Record, x2: float) -> None:
    rules = w.rules[w.fine]
    steps = max(2, _steps_for(x2, rules.step_x2))
    shoot(w.rods, steps)
    residual(w)
    w.saved = w.residual
    shoot(w.rods, min(2 * steps, 2 * STEPS_MAX))
    residual(w)
    error = 0.0
    for r in range(6):
        for i in range(LANES):
            w.residual[r, i] -= w.saved[r, i]
            error = max(error, abs(w.residual[r, i]))
    sized = w.age >= 0
    legs = error
    if sized:
        solve_linear(w)
        legs = 0.0
        for i in range(RODS):
            legs = max(legs, abs(w.delta[LENGTH, i]))
    # Without factors the lengths are taken to be as wrong as the tips, and measured again soon.
    rules.step_measured = x2 if sized else -1.0
    rules.step_scale = 1.0
    worst = max(error / rules.step_error, legs / rules.step_leg_error)
    if x2 > 0.0 and worst < 1e300:
        needed = 1.1 * steps * max(worst, 1e-16) ** 0.125
        needed = min(max(needed, 0.5), 1.0 * STEPS_MAX)
        rules.step_scale = rules.step_x2 * needed ** (16.0 / POWER) / x2


@njit(**KERNEL)
def residual(w: Record) -> float:
    """Evaluate the equations for the rods as they were shot; returns the sum of squares."""
    rods, tip, out, pose = w.rods, w.tip, w.residual, w.pose
    total = 0.0
    fx, fy, fz, mx, my, mz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(LANES):
        k = w.mask[i]
        # p(L) - (pE + RE r - p0), 2 (RE' t)_xy
        px, py, pz = rods.p[0, i] - tip[0, i], rods.p[1, i] - tip[1, i], rods.p[2, i] - tip[2, i]
        u, v = direction(pose, lane(rods.t, i))
        out[0, i], out[1, i], out[2, i], out[3, i], out[4, i] = px, py, pz, u, v
        total += k * (px * px + py * py + pz * pz + u * u + v * v)
        # sum n, sum (m + RE r x n)
        n = (rods.y[NX, i], rods.y[NY, i], rods.y[NZ, i])
        x, y, z = cross(lane(w.arm, i), n)
        fx += k * n[0]
        fy += k * n[1]
        fz += k * n[2]
        mx += k * (rods.m[0, i] + x)
        my += k * (rods.m[1, i] + y)
        mz += k * (rods.m[2, i] + z)
    fx, fy, fz = w.wrench[0] - fx, w.wrench[1] - fy, w.wrench[2] - fz
    mx, my, mz = w.wrench[3] - mx, w.wrench[4] - my, w.wrench[5] - mz
    out[PLATFORM, 0], out[PLATFORM, 1], out[PLATFORM, 2] = fx, fy, fz
    out[PLATFORM, 3], out[PLATFORM, 4], out[PLATFORM, 5] = mx, my, mz
    return total + fx * fx + fy * fy + fz * fz + mx * mx + my * my + mz * mz


@njit(**KERNEL)
def evaluate(w: Record) -> float:
    """Shoot all rods and evaluate the equations; returns the sum of squares."""
    shoot(w.rods, w.steps)
    w.evaluations += 1
    w.sum_squares = residual(w)
    return w.sum_squares


@njit(**KERNEL)
def _differences(w: Record, steps: int) -> None:
    """Fill jacobian by one-sided differences.

    A rod in tension carries a displacement h up to h exp(x), and the error of a one-sided
    difference with it, while rounding errors grow like the difference itself. Displacements of
    exp(-x/2) keep both small: with one size for all, Newton's method crept where x was 9, and the
    path seemed to end.
    """
    rods, J = w.rods, w.jacobian
    shrink = math.exp(-0.5 * math.sqrt(min(load2(w), 1600.0)))
    for j in range(5):
        h = shrink * (w.force_step if j < 3 else w.moment_step)
        moved = w.displaced[j]
        moved.y = rods.y
        for i in range(LANES):
            moved.y[j, i] += h
        shoot(moved, steps)
        scale = 1.0 / h
        for i in range(LANES):
            tx, ty, tz = lane(rods.t, i)
            dt = (moved.t[0, i] - tx, moved.t[1, i] - ty, moved.t[2, i] - tz)
            u, v = direction(w.pose, dt)
            J[3, j, i], J[4, j, i] = scale * u, scale * v
            for k in range(3):
                J[k, j, i] = (moved.p[k, i] - rods.p[k, i]) * scale
                J[MOMENT + k, j, i] = (moved.m[k, i] - rods.m[k, i]) * scale
    length_columns(w)


@njit(**KERNEL)
def length_columns(w: Record) -> None:
    """Fill the Jacobian's columns for the lengths: the differential equations at the tip."""
    rods, J = w.rods, w.jacobian
    for i in range(LANES):
        n = (rods.y[NX, i], rods.y[NY, i], rods.y[NZ, i])
        t, m = lane(rods.t, i), lane(rods.m, i)
        g = 1.0 + rods.c[i] * (n[0] * t[0] + n[1] * t[1] + n[2] * t[2])
        f = (t[0] * g, t[1] * g, t[2] * g)
        e = rods.inv_EI[i]
        dx, dy, dz = cross(m, t)  # t' = m x t / EI
        J[3, LENGTH, i], J[4, LENGTH, i] = direction(w.pose, (dx * e, dy * e, dz * e))
        turning = cross(n, f)  # m' = n x f
        for k in range(3):
            J[k, LENGTH, i] = f[k] + n[k] * rods.inv_GA[i]  # p' = f + n / GA
            J[MOMENT + k, LENGTH, i] = turning[k]


@njit(**KERNEL)
def fine_increment(w: Record) -> float:
    """Return the displacement of fourth-order differences, in the scaled unknowns.

    Beside the derivative, which grows as exp(x), the error of rounding is 1e-16 / h and that of the
    formula (h exp(x))^4: together they are smallest for h ~ exp(-4/5 x).
    """
    return INCREMENT * math.exp(-0.8 * math.sqrt(min(load2(w), 900.0)))


@njit(**KERNEL)
def fine_differences(w: Record, steps: int, force: float, moment: float) -> None:
    """Fill differences: tips (p, t, m) by fourth-order differences about the rods."""
    moved = w.displaced[0]
    for j in range(5):
        h = force if j < 3 else moment
        out = w.differences[j]
        out[:] = 0.0
        for k in range(4):
            side = (-2.0, -1.0, 1.0, 2.0)[k]
            weight = (1.0, -8.0, 8.0, -1.0)[k] / (12.0 * h)
            moved.y = w.rods.y
            for i in range(LANES):
                moved.y[j, i] += side * h
            shoot(moved, steps)
            for r in range(3):
                for i in range(LANES):
                    out[r, i] += weight * moved.p[r, i]
                    out[3 + r, i] += weight * moved.t[r, i]
                    out[6 + r, i] += weight * moved.m[r, i]


@njit(**KERNEL)
def fine_jacobian(w: Record, steps: int) -> None:
    """Fill jacobian to high accuracy; the rods must have been shot."""
    h, J = fine_increment(w), w.jacobian
    fine_differences(w, steps, h * w.EI / (w.L * w.L), h * w.EI / w.L)
    for j in range(5):
        d = w.differences[j]
        for i in range(LANES):
            for k in range(3):
                J[k, j, i], J[MOMENT + k, j, i] = d[k, i], d[6 + k, i]
            J[3, j, i], J[4, j, i] = direction(w.pose, (d[3, i], d[4, i], d[5, i]))
    length_columns(w)


@njit(**KERNEL)
def unit(w: Record, u: int) -> float:
    """Return the scale of unknown u: EI / L^2 for forces, EI / L for moments, L for lengths."""
    return w.EI / (w.L * w.L) if u < MX else (w.EI / w.L if u < LENGTH else w.L)


@njit(**KERNEL)
def _eliminate_rod(w: Record, i: int, a: Array) -> float:
    """Gauss-Jordan elimination of rod i with complete pivoting; fills its V and U.

    Returns:
        The sign of the determinant of the rod's equations, with one that sets the free unknown as
        the sixth; 0 if they are singular.

    Args:
        w: The solver.
        i: Lane of the rod.
        a: Scratch, 5 x 11: the rod's Jacobian beside the identity.
    """
    # Unknowns and equations are made comparable by the scales of the robot.
    for r in range(5):
        row_scale = 1.0 / w.L if r < 3 else 1.0
        for c in range(6):
            a[r, c] = w.jacobian[r, c, i] * row_scale * unit(w, c)
        for c in range(6, 11):
            a[r, c] = 1.0 if c == 6 + r else 0.0
    used_rows, used_columns = 0, 0
    order = np.full(6, -1)
    sign = 1.0
    for _ in range(5):
        best, pr, pc = 0.0, -1, -1
        for r in range(5):
            for c in range(6):
                size = abs(a[r, c])
                if size > best and not ((used_rows >> r) & 1 or (used_columns >> c) & 1):
                    best, pr, pc = size, r, c
        if not best > 1e-14:
            return 0.0
        if a[pr, pc] < 0.0:
            sign = -sign
        used_rows |= 1 << pr
        used_columns |= 1 << pc
        order[pc] = pr
        clear_column(a, pr, pc)
    free = 0
    for c in range(6):
        if order[c] < 0:
            free = c
    order[free] = 5
    for c in range(6):
        for k in range(c):
            if order[k] > order[c]:
                sign = -sign
    order[free] = -1
    for c in range(6):
        r = order[c]
        for k in range(5):
            row_scale = 1.0 / w.L if k < 3 else 1.0
            w.V[c, k, i] = a[r, 6 + k] * unit(w, c) * row_scale if r >= 0 else 0.0
        w.U[c, i] = -a[r, free] * unit(w, c) / unit(w, free) if r >= 0 else 1.0
    return sign


@njit(**KERNEL)
def clear_column(a: Array, row: int, column: int) -> None:
    """Make a column of a matrix that of the identity, by the pivot at ``row``."""
    rows, columns = a.shape
    inv = 1.0 / a[row, column]
    for c in range(columns):
        a[row, c] *= inv
    for r in range(rows):
        if r != row:
            f = a[r, column]
            for c in range(columns):
                a[r, c] -= f * a[row, c]


Row = tuple[float, float, float, float, float, float]


@njit(inline="always")
def _normalise(a: Row) -> Row:
    """Divide a row by its pivot, the first number; the columns move on by one, the last stays."""
    p = 1.0 / a[0]
    return (a[1] * p, a[2] * p, a[3] * p, a[4] * p, p, a[5] * p)


@njit(inline="always")
def _clear(r: Row, q: Row) -> Row:
    """Take the pivot's column out of a row, given the normalised row of the pivot."""
    f = r[0]
    return (
        r[1] - f * q[0],
        r[2] - f * q[1],
        r[3] - f * q[2],
        r[4] - f * q[3],
        -f * q[4],
        r[5] - f * q[5],
    )


@njit(inline="always")
def _scaled_row(w: Record, r: int, i: int, row: float, force: float, moment: float) -> Row:
    """One equation of a rod, unknowns in the order L, m0y, m0x, nx, ny, nz."""
    J = w.jacobian
    f, g = row * force, row * moment
    return (
        J[r, LENGTH, i] * row * w.L,
        J[r, MY, i] * g,
        J[r, MX, i] * g,
        J[r, NX, i] * f,
        J[r, NY, i] * f,
        J[r, NZ, i] * f,
    )


@njit(inline="always")
def _store_row(w: Record, u: int, i: int, a: Row, unit: float, force: float) -> None:
    """One unknown of a rod by its residuals and by the free nz, back in units."""
    V, p = w.V, unit / w.L
    V[u, 0, i], V[u, 1, i], V[u, 2, i] = a[3] * p, a[4] * p, a[0] * p
    V[u, 3, i], V[u, 4, i] = a[1] * unit, a[2] * unit
    w.U[u, i] = -a[5] * unit / force


@njit(**KERNEL)
def _eliminate_rods(w: Record) -> bool:
    """Eliminate all rods at once, with the pivots that suit rods which stand more or less upright.

    Those are L for the height, m0y and m0x for the direction, nx and ny for the position; nz is
    left free. False if a pivot is small: then each rod has to find its own.
    """
    L, EI = w.L, w.EI
    force, moment = EI / (L * L), EI / L
    for i in range(LANES):
        a = _scaled_row(w, 2, i, 1.0 / L, force, moment)
        b = _scaled_row(w, 3, i, 1.0, force, moment)
        c = _scaled_row(w, 4, i, 1.0, force, moment)
        d = _scaled_row(w, 0, i, 1.0 / L, force, moment)
        e = _scaled_row(w, 1, i, 1.0 / L, force, moment)
        smallest = abs(a[0])
        a = _normalise(a)
        b, c, d, e = _clear(b, a), _clear(c, a), _clear(d, a), _clear(e, a)
        smallest = min(smallest, abs(b[0]))
        b = _normalise(b)
        a, c, d, e = _clear(a, b), _clear(c, b), _clear(d, b), _clear(e, b)
        smallest = min(smallest, abs(c[0]))
        c = _normalise(c)
        a, b, d, e = _clear(a, c), _clear(b, c), _clear(d, c), _clear(e, c)
        smallest = min(smallest, abs(d[0]))
        d = _normalise(d)
        a, b, c, e = _clear(a, d), _clear(b, d), _clear(c, d), _clear(e, d)
        smallest = min(smallest, abs(e[0]))
        e = _normalise(e)
        a, b, c, d = _clear(a, e), _clear(b, e), _clear(c, e), _clear(d, e)
        k = w.mask[i]  # the two rods that fill up must not move
        _store_row(w, LENGTH, i, a, L * k, force)
        _store_row(w, MY, i, b, moment * k, force)
        _store_row(w, MX, i, c, moment * k, force)
        _store_row(w, NX, i, d, force * k, force)
        _store_row(w, NY, i, e, force * k, force)
        for j in range(5):
            w.V[NZ, j, i] = 0.0
        w.U[NZ, i] = k
        w.free[i] = smallest
    worst = 1.0
    for i in range(RODS):
        worst = min(worst, w.free[i])
    return worst > SMALL_PIVOT


@njit(**KERNEL)
def _reduce_platform(w: Record) -> None:
    """Fill W and schur: the platform's equations by the rods' residuals and free unknowns."""
    J = w.jacobian
    for i in range(RODS):
        arm = lane(w.arm, i)
        for k in range(6):  # column k of (V_i | U_i)
            n, m = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
            for c in range(6):
                d = w.V[c, k, i] if k < 5 else w.U[c, i]
                n = (d if c == NX else n[0], d if c == NY else n[1], d if c == NZ else n[2])
                m = (
                    m[0] + J[MOMENT, c, i] * d,
                    m[1] + J[MOMENT + 1, c, i] * d,
                    m[2] + J[MOMENT + 2, c, i] * d,
                )
            x = cross(arm, n)
            for r in range(6):
                out = -n[r] if r < 3 else -(m[r - 3] + x[r - 3])
                if k < 5:
                    w.W[r, k, i] = out
                else:
                    w.schur[r, i] = out


@njit(**KERNEL)
def scale_rows(a: Array, columns: int) -> bool:
    """Divide each row by its largest number among the first columns; False if there is none."""
    for r in range(len(a)):
        size = 0.0
        for c in range(columns):
            size = max(size, abs(a[r, c]))
        if not (size > 0.0 and size < 1e300):
            return False
        inv = 1.0 / size
        for c in range(a.shape[1]):
            a[r, c] *= inv
    return True


@njit(**KERNEL)
def pivot_row(a: Array, k: int) -> float:
    """Bring the row with the largest number of column k to row k, of those from row k on.

    Returns:
        1, or -1 if rows were exchanged; 0 if there is no pivot.
    """
    p = k
    for r in range(k + 1, len(a)):
        if abs(a[r, k]) > abs(a[p, k]):
            p = r
    if not abs(a[p, k]) > 1e-15:
        return 0.0
    if p == k:
        return 1.0
    for c in range(a.shape[1]):
        a[p, c], a[k, c] = a[k, c], a[p, c]
    return -1.0


@njit(**KERNEL)
def invert6(matrix: Array, inverse: Array) -> bool:
    """Invert a 6x6 matrix; False if it is singular.

    By Gauss-Jordan elimination with row pivoting and row scaling.
    """
    b = np.zeros((6, 12))
    for r in range(6):
        for c in range(6):
            b[r, c] = matrix[r, c]
        b[r, 6 + r] = 1.0
    if not scale_rows(b, 6):
        return False
    for k in range(6):
        if pivot_row(b, k) == 0.0:
            return False
        clear_column(b, k, k)
    for r in range(6):
        for c in range(6):
            inverse[r, c] = b[r, 6 + c]
    return True


@njit(**KERNEL)
def make_jacobian(w: Record, steps: int, fine: bool = False) -> None:
    """Fill jacobian at the present unknowns and pose.

    Tips of tense rods all move the same way, by exp(x), so that the Jacobian's other directions are
    lost in the errors of one-sided differences. There finer ones are taken, as they are if asked
    for.
    """
    w.refreshes += 1
    if not fine and load2(w) <= TENSE * TENSE:
        shoot(w.rods, steps)
        _differences(w, steps)
    else:
        steps = max(steps, w.steps)
        shoot(w.rods, steps)
        fine_jacobian(w, steps)


@njit(**KERNEL)
def factorise(w: Record) -> bool:
    """Make the Jacobian at the present unknowns and pose and factorise it; False if singular.

    The rods are shot again, with the few steps that chord steps need; residual is not touched.
    """
    make_jacobian(w, choose_steps(w, w.rules[w.fine].coarse_x2))
    return eliminate(w)


@njit(**KERNEL)
def eliminate(w: Record) -> bool:
    """Factorise the Jacobian; False at a singular one."""
    if not _eliminate_rods(w):
        a = np.empty((5, 11))
        for i in range(RODS):
            if _eliminate_rod(w, i, a) == 0.0:
                return False
    _reduce_platform(w)
    return invert6(w.schur, w.schur_inv)


@njit(**KERNEL)
def factorise_signed(w: Record, fine: bool) -> float:
    """Do as ``factorise`` does, but return the sign of the rods' determinants; 0: one is singular.

    V, U, W and schur are filled; the Schur complement itself may be singular, as at a fold.

    Args:
        w: The solver.
        fine: Whether the Jacobian is made of fine differences in any case.
    """
    make_jacobian(w, choose_steps(w, w.rules[w.fine].coarse_x2), fine)
    _eliminate_rods(w)  # for the two rods that fill up
    a = np.empty((5, 11))
    sign = 1.0
    for i in range(RODS):
        sign *= _eliminate_rod(w, i, a)
    _reduce_platform(w)
    return sign


@njit(inline="always")
def _dot5(a: Array, row: int, i: int, r: Array) -> float:
    """Return the product of a row of V or W with the residual of rod i."""
    return (
        a[row, 0, i] * r[0, i]
        + a[row, 1, i] * r[1, i]
        + a[row, 2, i] * r[2, i]
        + a[row, 3, i] * r[3, i]
        + a[row, 4, i] * r[4, i]
    )


@njit(**KERNEL)
def solve_linear(w: Record) -> None:
    """Fill delta with J^-1 residual, by the factors at hand."""
    rho, V, U, W, S, free = w.residual, w.V, w.U, w.W, w.schur_inv, w.free
    g0, g1, g2, g3, g4, g5 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(LANES):
        g0 += _dot5(W, 0, i, rho)
        g1 += _dot5(W, 1, i, rho)
        g2 += _dot5(W, 2, i, rho)
        g3 += _dot5(W, 3, i, rho)
        g4 += _dot5(W, 4, i, rho)
        g5 += _dot5(W, 5, i, rho)
    # xi = S^-1 (r_platform - sum W_i rho_i)
    h = rho[PLATFORM]
    g0, g1, g2 = h[0] - g0, h[1] - g1, h[2] - g2
    g3, g4, g5 = h[3] - g3, h[4] - g4, h[5] - g5
    for i in range(RODS):
        free[i] = (
            S[i, 0] * g0 + S[i, 1] * g1 + S[i, 2] * g2 + S[i, 3] * g3 + S[i, 4] * g4 + S[i, 5] * g5
        )
    for i in range(LANES):
        for k in range(6):
            w.delta[k, i] = _dot5(V, k, i, rho) + U[k, i] * free[i]  # dy_i = V_i rho_i + U_i xi_i


@njit(**KERNEL)
def leg_error(w: Record) -> float:
    """Return the largest |dL| of the step in delta: the estimated error of the lengths [m]."""
    worst = 0.0
    for i in range(LANES):
        worst = max(worst, abs(w.delta[LENGTH, i]))
    w.leg_error = worst
    return worst


@njit(**KERNEL)
def pose_column(w: Record, j: int) -> None:
    """Set residual to the residual's derivative by the pose.

    Args:
        w: The solver; tips as they were shot.
        j: 0 to 2 for the position, 3 to 5 for the rotation vector (base frame).
    """
    rods, out = w.rods, w.residual
    out[:] = 0.0
    if j < 3:
        for i in range(RODS):
            out[j, i] = -1.0
        return
    e = (1.0 * (j == 3), 1.0 * (j == 4), 1.0 * (j == 5))
    sx, sy, sz = 0.0, 0.0, 0.0
    for i in range(RODS):
        d = cross(e, lane(w.arm, i))
        out[0, i], out[1, i], out[2, i] = -d[0], -d[1], -d[2]
        u, v = direction(w.pose, cross(e, lane(rods.t, i)))
        out[3, i], out[4, i] = -u, -v
        x, y, z = cross(d, (rods.y[NX, i], rods.y[NY, i], rods.y[NZ, i]))
        sx, sy, sz = sx + x, sy + y, sz + z
    # The load's point of action turns with the platform.
    d = cross(e, rotated(w.pose, w.point[0], w.point[1], w.point[2]))
    x, y, z = cross(d, (w.force[0], w.force[1], w.force[2]))
    out[PLATFORM, 3], out[PLATFORM, 4], out[PLATFORM, 5] = x - sx, y - sy, z - sz


@njit(**KERNEL)
def tangents(w: Record) -> None:
    """Fill tangent: the change of all unknowns with the pose (position, then rotation vector).

    The residual's derivative by the pose goes through the factors at hand, one column at a time.
    Destroys residual and delta.
    """
    for j in range(6):
        pose_column(w, j)
        solve_linear(w)
        for k in range(6):
            for i in range(LANES):
                w.tangent[j, k, i] = -w.delta[k, i]
