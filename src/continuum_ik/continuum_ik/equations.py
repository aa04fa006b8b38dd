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

from continuum_ik import layout
from continuum_ik.layout import (
    AGE,
    ARM,
    BASE,
    COLUMN,
    DELTA,
    DIFFERENCES,
    EI_TYPICAL,
    EVALUATIONS,
    FORCE,
    FORCE_STEP,
    FREE,
    JACOBIAN,
    JACOBIAN_BLOCKS,
    LANES,
    LEG_ERROR,
    LENGTH_TYPICAL,
    MASK,
    MOMENT,
    MOMENT_JACOBIAN,
    MOMENT_STEP,
    PLATFORM,
    PLATFORM_RESIDUAL,
    POINT,
    POSE,
    REFRESHES,
    RESIDUAL,
    RODS,
    SAVED,
    SCHUR,
    SCHUR_INV,
    STEP_ERROR,
    STEP_LEG_ERROR,
    STEP_MEASURED,
    STEP_SCALE,
    STEP_X2,
    STEPS,
    STEPS_MAX,
    SUM_SQUARES,
    TANGENT,
    TIP,
    UNKNOWNS,
    WRENCH,
    U,
    V,
    W,
    Y,
)
from continuum_ik.rod import (
    BLOCK,
    INV_EI,
    INV_GA,
    KERNEL,
    LENGTH,
    M_X,
    M_Y,
    ML_X,
    ML_Y,
    ML_Z,
    N_X,
    N_Y,
    N_Z,
    P_X,
    P_Y,
    P_Z,
    SHEAR_C,
    T_X,
    T_Y,
    T_Z,
    Array,
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


@njit(**KERNEL)
def aim(w: Array) -> None:
    """Work out what follows from the target pose: arms RE r_i, tips, and the wrench about pE."""
    px, py, pz = w[POSE], w[POSE + 1], w[POSE + 2]
    r00, r01, r02 = w[POSE + 3], w[POSE + 4], w[POSE + 5]
    r10, r11, r12 = w[POSE + 6], w[POSE + 7], w[POSE + 8]
    r20, r21, r22 = w[POSE + 9], w[POSE + 10], w[POSE + 11]
    for i in range(LANES):
        x, y, z = w[PLATFORM + i], w[PLATFORM + 8 + i], w[PLATFORM + 16 + i]
        ax = r00 * x + r01 * y + r02 * z
        ay = r10 * x + r11 * y + r12 * z
        az = r20 * x + r21 * y + r22 * z
        w[ARM + i], w[ARM + 8 + i], w[ARM + 16 + i] = ax, ay, az
        w[TIP + i] = px + ax - w[BASE + i]
        w[TIP + 8 + i] = py + ay - w[BASE + 8 + i]
        w[TIP + 16 + i] = pz + az - w[BASE + 16 + i]
    x, y, z = w[POINT], w[POINT + 1], w[POINT + 2]
    cx = r00 * x + r01 * y + r02 * z
    cy = r10 * x + r11 * y + r12 * z
    cz = r20 * x + r21 * y + r22 * z
    fx, fy, fz = w[FORCE], w[FORCE + 1], w[FORCE + 2]
    w[WRENCH], w[WRENCH + 1], w[WRENCH + 2] = fx, fy, fz
    w[WRENCH + 3] = w[MOMENT] + cy * fz - cz * fy
    w[WRENCH + 4] = w[MOMENT + 1] + cz * fx - cx * fz
    w[WRENCH + 5] = w[MOMENT + 2] + cx * fy - cy * fx


def one_step(error: float) -> float:
    """Return the x^2 up to which one step keeps the tip's error below ``error``."""
    return float(5.5 * (error / ERROR * 12.0**-8) ** (1.0 / POWER)) ** 2


@njit(**KERNEL)
def load2(w: Array) -> float:
    """Return x^2 of the rod that is loaded most, x = L sqrt(|n|/EI + (m0/EI)^2).

    The error of the formula grows with x, the number of radians of the equivalent pendulum, and
    falls with the eighth power of the step count.
    """
    worst = 0.0
    for i in range(RODS):
        nx, ny, nz = w[Y + N_X + i], w[Y + N_Y + i], w[Y + N_Z + i]
        mx, my = w[Y + M_X + i], w[Y + M_Y + i]
        e, L = w[INV_EI + i], w[LENGTH + i]
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
def choose_steps(w: Array, one: int) -> int:
    """Return the steps that the present load needs, ``w[one]`` being the x^2 that one step does."""
    return _steps_for(load2(w), w[one])


@njit(**KERNEL)
def plan_steps(w: Array) -> int:
    """Return the steps for a residual, by the fitted law and a measurement of the rods at hand.

    Whenever the load has changed by a third, the error is measured by doubling the steps, in the
    residual and, by the factors at hand, in the lengths. Destroys RESIDUAL, SAVED and DELTA then.
    """
    x2 = load2(w)
    if not 0.6 * w[STEP_MEASURED] <= x2 <= 1.3 * w[STEP_MEASURED]:
        _measure_steps(w, x2)
    return _steps_for(x2 * w[STEP_SCALE], w[STEP_X2])


@njit(**KERNEL)
def _measure_steps(w: Array, x2: float) -> None:
    steps = max(2, _steps_for(x2, w[STEP_X2]))
    shoot(w, layout.Y, steps)
    residual(w)
    for k in range(UNKNOWNS):
        w[SAVED + k] = w[RESIDUAL + k]
    shoot(w, layout.Y, min(2 * steps, 2 * STEPS_MAX))
    residual(w)
    error = 0.0
    for k in range(UNKNOWNS):
        w[RESIDUAL + k] -= w[SAVED + k]
        error = max(error, abs(w[RESIDUAL + k]))
    sized = w[AGE] >= 0.0
    legs = error
    if sized:
        solve_linear(w)
        legs = 0.0
        for i in range(RODS):
            legs = max(legs, abs(w[DELTA + 40 + i]))
    # Without factors the lengths are taken to be as wrong as the tips, and measured again soon.
    w[STEP_MEASURED] = x2 if sized else -1.0
    w[STEP_SCALE] = 1.0
    worst = max(error / w[STEP_ERROR], legs / w[STEP_LEG_ERROR])
    if x2 > 0.0 and worst < 1e300:
        needed = 1.1 * steps * max(worst, 1e-16) ** 0.125
        needed = min(max(needed, 0.5), 1.0 * STEPS_MAX)
        w[STEP_SCALE] = w[STEP_X2] * needed ** (16.0 / POWER) / x2


@njit(**KERNEL)
def residual(w: Array) -> float:
    """Evaluate the equations for the rods as they were shot; returns the sum of squares."""
    r00, r01 = w[POSE + 3], w[POSE + 4]
    r10, r11 = w[POSE + 6], w[POSE + 7]
    r20, r21 = w[POSE + 9], w[POSE + 10]
    total = 0.0
    fx, fy, fz, mx, my, mz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(LANES):
        k = w[MASK + i]
        px = w[P_X + i] - w[TIP + i]
        py = w[P_Y + i] - w[TIP + 8 + i]
        pz = w[P_Z + i] - w[TIP + 16 + i]
        tx, ty, tz = w[T_X + i], w[T_Y + i], w[T_Z + i]
        u = 2.0 * (r00 * tx + r10 * ty + r20 * tz)
        v = 2.0 * (r01 * tx + r11 * ty + r21 * tz)
        w[RESIDUAL + i], w[RESIDUAL + 8 + i], w[RESIDUAL + 16 + i] = px, py, pz
        w[RESIDUAL + 24 + i], w[RESIDUAL + 32 + i] = u, v
        total += k * (px * px + py * py + pz * pz + u * u + v * v)
        nx, ny, nz = w[N_X + i], w[N_Y + i], w[N_Z + i]
        ax, ay, az = w[ARM + i], w[ARM + 8 + i], w[ARM + 16 + i]
        fx += k * nx
        fy += k * ny
        fz += k * nz
        mx += k * (w[ML_X + i] + ay * nz - az * ny)
        my += k * (w[ML_Y + i] + az * nx - ax * nz)
        mz += k * (w[ML_Z + i] + ax * ny - ay * nx)
    fx, fy, fz = w[WRENCH] - fx, w[WRENCH + 1] - fy, w[WRENCH + 2] - fz
    mx, my, mz = w[WRENCH + 3] - mx, w[WRENCH + 4] - my, w[WRENCH + 5] - mz
    w[PLATFORM_RESIDUAL], w[PLATFORM_RESIDUAL + 1], w[PLATFORM_RESIDUAL + 2] = fx, fy, fz
    w[PLATFORM_RESIDUAL + 3], w[PLATFORM_RESIDUAL + 4], w[PLATFORM_RESIDUAL + 5] = mx, my, mz
    return total + fx * fx + fy * fy + fz * fz + mx * mx + my * my + mz * mz


@njit(**KERNEL)
def evaluate(w: Array) -> float:
    """Shoot all rods and evaluate the equations; returns the sum of squares."""
    shoot(w, layout.Y, int(w[STEPS]))
    w[EVALUATIONS] += 1.0
    w[SUM_SQUARES] = residual(w)
    return w[SUM_SQUARES]


@njit(**KERNEL)
def _differences(w: Array, steps: int) -> None:
    """Fill JACOBIAN and MOMENT_JACOBIAN by one-sided differences in blocks 1..5.

    A rod in tension carries a displacement h up to h exp(x), and the error of a one-sided
    difference with it, while rounding errors grow like the difference itself. Displacements of
    exp(-x/2) keep both small: with one size for all, Newton's method crept where x was 9, and the
    path seemed to end.
    """
    shrink = math.exp(-0.5 * math.sqrt(min(load2(w), 1600.0)))
    force, moment = shrink * w[FORCE_STEP], shrink * w[MOMENT_STEP]
    for j in range(5):
        at = JACOBIAN_BLOCKS + j * BLOCK
        increment = force if j < 3 else moment
        for k in range(UNKNOWNS):
            w[at + k] = w[Y + k]
        for i in range(LANES):
            w[at + 8 * j + i] += increment
        shoot(w, at, steps)
    r00, r01 = w[POSE + 3], w[POSE + 4]
    r10, r11 = w[POSE + 6], w[POSE + 7]
    r20, r21 = w[POSE + 9], w[POSE + 10]
    for j in range(5):
        b = w[JACOBIAN_BLOCKS + j * BLOCK : JACOBIAN_BLOCKS + (j + 1) * BLOCK]
        out = w[JACOBIAN + 8 * j : MOMENT_JACOBIAN + 18 * LANES]
        scale = 1.0 / (force if j < 3 else moment)
        for i in range(LANES):
            tx, ty, tz = b[T_X + i] - w[T_X + i], b[T_Y + i] - w[T_Y + i], b[T_Z + i] - w[T_Z + i]
            px, py, pz = b[P_X + i] - w[P_X + i], b[P_Y + i] - w[P_Y + i], b[P_Z + i] - w[P_Z + i]
            mx, my = b[ML_X + i] - w[ML_X + i], b[ML_Y + i] - w[ML_Y + i]
            mz = b[ML_Z + i] - w[ML_Z + i]
            out[i] = px * scale
            out[48 + i] = py * scale
            out[96 + i] = pz * scale
            out[144 + i] = 2.0 * scale * (r00 * tx + r10 * ty + r20 * tz)
            out[192 + i] = 2.0 * scale * (r01 * tx + r11 * ty + r21 * tz)
            out[240 + i] = mx * scale
            out[288 + i] = my * scale
            out[336 + i] = mz * scale
    length_columns(w)


@njit(**KERNEL)
def length_columns(w: Array) -> None:
    """Fill the Jacobians' columns for the lengths: the differential equations at the tip."""
    r00, r01 = w[POSE + 3], w[POSE + 4]
    r10, r11 = w[POSE + 6], w[POSE + 7]
    r20, r21 = w[POSE + 9], w[POSE + 10]
    for i in range(LANES):
        nx, ny, nz = w[N_X + i], w[N_Y + i], w[N_Z + i]
        tx, ty, tz = w[T_X + i], w[T_Y + i], w[T_Z + i]
        mx, my, mz = w[ML_X + i], w[ML_Y + i], w[ML_Z + i]
        g = 1.0 + w[SHEAR_C + i] * (nx * tx + ny * ty + nz * tz)
        fx, fy, fz = tx * g, ty * g, tz * g
        w[JACOBIAN + 5 * 8 + i] = fx + nx * w[INV_GA + i]
        w[JACOBIAN + 11 * 8 + i] = fy + ny * w[INV_GA + i]
        w[JACOBIAN + 17 * 8 + i] = fz + nz * w[INV_GA + i]
        e = w[INV_EI + i]
        dx, dy, dz = (my * tz - mz * ty) * e, (mz * tx - mx * tz) * e, (mx * ty - my * tx) * e
        w[JACOBIAN + 23 * 8 + i] = 2.0 * (r00 * dx + r10 * dy + r20 * dz)
        w[JACOBIAN + 29 * 8 + i] = 2.0 * (r01 * dx + r11 * dy + r21 * dz)
        w[MOMENT_JACOBIAN + 5 * 8 + i] = ny * fz - nz * fy
        w[MOMENT_JACOBIAN + 11 * 8 + i] = nz * fx - nx * fz
        w[MOMENT_JACOBIAN + 17 * 8 + i] = nx * fy - ny * fx


@njit(**KERNEL)
def fine_increment(w: Array) -> float:
    """Return the displacement of fourth-order differences, in the scaled unknowns.

    Beside the derivative, which grows as exp(x), the error of rounding is 1e-16 / h and that of the
    formula (h exp(x))^4: together they are smallest for h ~ exp(-4/5 x).
    """
    return INCREMENT * math.exp(-0.8 * math.sqrt(min(load2(w), 900.0)))


@njit(**KERNEL)
def fine_differences(w: Array, steps: int, force: float, moment: float) -> None:
    """Fill DIFFERENCES: tips (p, t, m) by fourth-order differences about the rods of block 0."""
    at = JACOBIAN_BLOCKS
    for j in range(5):
        h = force if j < 3 else moment
        for row in range(9):
            for i in range(LANES):
                w[DIFFERENCES + (9 * j + row) * 8 + i] = 0.0
        for k in range(4):
            side = (-2.0, -1.0, 1.0, 2.0)[k]
            weight = (1.0, -8.0, 8.0, -1.0)[k] / (12.0 * h)
            for u in range(UNKNOWNS):
                w[at + u] = w[Y + u]
            for i in range(LANES):
                w[at + 8 * j + i] += side * h
            shoot(w, at, steps)
            for row in range(9):
                source = (P_X if row < 3 else (T_X - 24 if row < 6 else ML_X - 48)) + 8 * row
                for i in range(LANES):
                    w[DIFFERENCES + (9 * j + row) * 8 + i] += weight * w[at + source + i]


@njit(**KERNEL)
def fine_jacobian(w: Array, steps: int) -> None:
    """Fill JACOBIAN and MOMENT_JACOBIAN to high accuracy; block 0 must have been shot."""
    L, EI = w[LENGTH_TYPICAL], w[EI_TYPICAL]
    h = fine_increment(w)
    fine_differences(w, steps, h * EI / (L * L), h * EI / L)
    for j in range(5):
        for i in range(LANES):
            d = DIFFERENCES + 72 * j + i
            for k in range(3):
                w[JACOBIAN + (6 * k + j) * 8 + i] = w[d + 8 * k]
                w[MOMENT_JACOBIAN + (6 * k + j) * 8 + i] = w[d + 48 + 8 * k]
            for k in range(2):
                w[JACOBIAN + (18 + 6 * k + j) * 8 + i] = 2.0 * (
                    w[POSE + 3 + k] * w[d + 24]
                    + w[POSE + 6 + k] * w[d + 32]
                    + w[POSE + 9 + k] * w[d + 40]
                )
    length_columns(w)


@njit(**KERNEL)
def _eliminate_rod(w: Array, i: int, a: Array) -> float:
    """Gauss-Jordan elimination of rod i with complete pivoting; fills its V and U.

    Returns:
        The sign of the determinant of the rod's equations, with one that sets the free unknown as
        the sixth; 0 if they are singular.

    Args:
        w: The solver's array.
        i: Lane of the rod.
        a: Scratch, 5 x 11: the rod's Jacobian beside the identity.
    """
    # Unknowns and equations are made comparable by the scales of the robot.
    L = w[LENGTH_TYPICAL]
    EI = w[EI_TYPICAL]
    s_force, s_moment = EI / (L * L), EI / L
    for r in range(5):
        row_scale = 1.0 / L if r < 3 else 1.0
        for c in range(6):
            col_scale = s_force if c < 3 else (s_moment if c < 5 else L)
            a[r, c] = w[JACOBIAN + (6 * r + c) * 8 + i] * row_scale * col_scale
        for c in range(6, 11):
            a[r, c] = 0.0
        a[r, 6 + r] = 1.0
    used_rows, used_columns = 0, 0
    order = np.full(6, -1)
    sign = 1.0
    for _ in range(5):
        best, pr, pc = 0.0, -1, -1
        for r in range(5):
            if (used_rows >> r) & 1:
                continue
            for c in range(6):
                if (used_columns >> c) & 1:
                    continue
                size = abs(a[r, c])
                if size > best:
                    best, pr, pc = size, r, c
        if not best > 1e-14:
            return 0.0
        if a[pr, pc] < 0.0:
            sign = -sign
        used_rows |= 1 << pr
        used_columns |= 1 << pc
        order[pc] = pr
        inv = 1.0 / a[pr, pc]
        for c in range(11):
            a[pr, c] *= inv
        for r in range(5):
            if r != pr:
                f = a[r, pc]
                for c in range(11):
                    a[r, c] -= f * a[pr, c]
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
    free_scale = s_force if free < 3 else (s_moment if free < 5 else L)
    for c in range(6):
        col_scale = s_force if c < 3 else (s_moment if c < 5 else L)
        r = order[c]
        for k in range(5):
            row_scale = 1.0 / L if k < 3 else 1.0
            w[V + (5 * c + k) * 8 + i] = a[r, 6 + k] * col_scale * row_scale if r >= 0 else 0.0
        w[U + 8 * c + i] = -a[r, free] * col_scale / free_scale if r >= 0 else 1.0
    return sign


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
def _scaled_row(w: Array, r: int, i: int, row: float, force: float, moment: float, L: float) -> Row:
    """One equation of a rod, unknowns in the order L, m0y, m0x, nx, ny, nz."""
    j = JACOBIAN + 48 * r + i
    f, g = row * force, row * moment
    return (
        w[j + 40] * row * L,
        w[j + 32] * g,
        w[j + 24] * g,
        w[j] * f,
        w[j + 8] * f,
        w[j + 16] * f,
    )


@njit(inline="always")
def _store_row(w: Array, u: int, i: int, a: Row, unit: float, L: float, force: float) -> None:
    """One unknown of a rod by its residuals and by the free nz, back in units."""
    v, p = V + 40 * u + i, unit / L
    w[v], w[v + 8], w[v + 16] = a[3] * p, a[4] * p, a[0] * p
    w[v + 24], w[v + 32] = a[1] * unit, a[2] * unit
    w[U + 8 * u + i] = -a[5] * unit / force


@njit(**KERNEL)
def _eliminate_rods(w: Array) -> bool:
    """Eliminate all rods at once, with the pivots that suit rods which stand more or less upright.

    Those are L for the height, m0y and m0x for the direction, nx and ny for the position; nz is
    left free. False if a pivot is small: then each rod has to find its own.
    """
    L, EI = w[LENGTH_TYPICAL], w[EI_TYPICAL]
    force, moment = EI / (L * L), EI / L
    for i in range(LANES):
        a = _scaled_row(w, 2, i, 1.0 / L, force, moment, L)
        b = _scaled_row(w, 3, i, 1.0, force, moment, L)
        c = _scaled_row(w, 4, i, 1.0, force, moment, L)
        d = _scaled_row(w, 0, i, 1.0 / L, force, moment, L)
        e = _scaled_row(w, 1, i, 1.0 / L, force, moment, L)
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
        k = w[MASK + i]  # the two rods that fill up must not move
        _store_row(w, 5, i, a, L * k, L, force)
        _store_row(w, 4, i, b, moment * k, L, force)
        _store_row(w, 3, i, c, moment * k, L, force)
        _store_row(w, 0, i, d, force * k, L, force)
        _store_row(w, 1, i, e, force * k, L, force)
        for j in range(5):
            w[V + (10 + j) * 8 + i] = 0.0
        w[U + 16 + i] = k
        w[FREE + i] = smallest
    worst = 1.0
    for i in range(RODS):
        worst = min(worst, w[FREE + i])
    return worst > SMALL_PIVOT


@njit(**KERNEL)
def _reduce_platform(w: Array) -> None:
    """Fill W and SCHUR: the platform's equations by the rods' residuals and free unknowns."""
    for i in range(RODS):
        ax, ay, az = w[ARM + i], w[ARM + 8 + i], w[ARM + 16 + i]
        for k in range(6):
            # Column k of (V_i | U_i), k = 5 being U.
            at = (V + 8 * k + i) if k < 5 else (U + i)
            stride = 40 if k < 5 else 8
            nx, ny, nz = w[at], w[at + stride], w[at + 2 * stride]
            m = (0.0, 0.0, 0.0)
            for c in range(6):
                d = w[at + c * stride]
                m = (
                    m[0] + w[MOMENT_JACOBIAN + c * 8 + i] * d,
                    m[1] + w[MOMENT_JACOBIAN + (6 + c) * 8 + i] * d,
                    m[2] + w[MOMENT_JACOBIAN + (12 + c) * 8 + i] * d,
                )
            out = (
                -nx,
                -ny,
                -nz,
                -(m[0] + ay * nz - az * ny),
                -(m[1] + az * nx - ax * nz),
                -(m[2] + ax * ny - ay * nx),
            )
            for r in range(6):
                if k < 5:
                    w[W + (5 * r + k) * 8 + i] = out[r]
                else:
                    w[SCHUR + 6 * r + i] = out[r]


@njit(**KERNEL)
def invert6(w: Array, at: int, to: int) -> bool:
    """Invert the 6x6 matrix at ``w[at]`` into ``w[to]``; False if it is singular.

    By Gauss-Jordan elimination with row pivoting and row scaling.
    """
    b = np.zeros((6, 12))
    for r in range(6):
        size = 0.0
        for c in range(6):
            size = max(size, abs(w[at + 6 * r + c]))
        if not (size > 0.0 and size < 1e300):
            return False
        inv = 1.0 / size
        for c in range(6):
            b[r, c] = w[at + 6 * r + c] * inv
        b[r, 6 + r] = inv
    for k in range(6):
        p = k
        for r in range(k + 1, 6):
            if abs(b[r, k]) > abs(b[p, k]):
                p = r
        if not abs(b[p, k]) > 1e-15:
            return False
        if p != k:
            for c in range(12):
                b[p, c], b[k, c] = b[k, c], b[p, c]
        inv = 1.0 / b[k, k]
        for c in range(12):
            b[k, c] *= inv
        for r in range(6):
            if r != k:
                f = b[r, k]
                for c in range(12):
                    b[r, c] -= f * b[k, c]
    for r in range(6):
        for c in range(6):
            w[to + 6 * r + c] = b[r, 6 + c]
    return True


@njit(**KERNEL)
def make_jacobian(w: Array, steps: int) -> None:
    """Fill JACOBIAN and MOMENT_JACOBIAN at Y for the present pose.

    Tips of tense rods all move the same way, by exp(x), so that the Jacobian's other directions are
    lost in the errors of one-sided differences. There finer ones are taken.
    """
    w[REFRESHES] += 1.0
    if load2(w) <= TENSE * TENSE:
        shoot(w, layout.Y, steps)
        _differences(w, steps)
    else:
        steps = max(steps, int(w[STEPS]))
        shoot(w, layout.Y, steps)
        fine_jacobian(w, steps)


@njit(**KERNEL)
def factorise(w: Array, steps: int) -> bool:
    """Make the Jacobian at Y for the present pose and factorise it; False at a singular one.

    Args:
        w: The solver's array; block 0 is shot again with ``steps``, its residual is not touched.
        steps: Steps of the integration; a Jacobian for chord steps needs few.
    """
    make_jacobian(w, steps)
    return eliminate(w)


@njit(**KERNEL)
def eliminate(w: Array) -> bool:
    """Factorise the Jacobian in JACOBIAN and MOMENT_JACOBIAN; False at a singular one."""
    if not _eliminate_rods(w):
        a = np.empty((5, 11))
        for i in range(RODS):
            if _eliminate_rod(w, i, a) == 0.0:
                return False
    _reduce_platform(w)
    return invert6(w, layout.SCHUR, layout.SCHUR_INV)


@njit(**KERNEL)
def eliminate_signed(w: Array) -> float:
    """Eliminate the rods alone, and return the sign of their determinants; 0 if one is singular.

    V, U, W and SCHUR are filled; the Schur complement itself may be singular, as at a fold.
    """
    _eliminate_rods(w)  # for the two rods that fill up
    a = np.empty((5, 11))
    sign = 1.0
    for i in range(RODS):
        sign *= _eliminate_rod(w, i, a)
    _reduce_platform(w)
    return sign


@njit(**KERNEL)
def factorise_signed(w: Array, steps: int) -> float:
    """Do as ``factorise`` does, but return what ``eliminate_signed`` does."""
    make_jacobian(w, steps)
    return eliminate_signed(w)


@njit(**KERNEL)
def solve_linear(w: Array) -> None:
    """Fill DELTA with J^-1 times (RESIDUAL, PLATFORM_RESIDUAL), by the factors at hand."""
    g0, g1, g2, g3, g4, g5 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(LANES):
        a, b, c = w[RESIDUAL + i], w[RESIDUAL + 8 + i], w[RESIDUAL + 16 + i]
        d, e = w[RESIDUAL + 24 + i], w[RESIDUAL + 32 + i]
        x = W + i
        g0 += w[x] * a + w[x + 8] * b + w[x + 16] * c + w[x + 24] * d + w[x + 32] * e
        x += 40
        g1 += w[x] * a + w[x + 8] * b + w[x + 16] * c + w[x + 24] * d + w[x + 32] * e
        x += 40
        g2 += w[x] * a + w[x + 8] * b + w[x + 16] * c + w[x + 24] * d + w[x + 32] * e
        x += 40
        g3 += w[x] * a + w[x + 8] * b + w[x + 16] * c + w[x + 24] * d + w[x + 32] * e
        x += 40
        g4 += w[x] * a + w[x + 8] * b + w[x + 16] * c + w[x + 24] * d + w[x + 32] * e
        x += 40
        g5 += w[x] * a + w[x + 8] * b + w[x + 16] * c + w[x + 24] * d + w[x + 32] * e
    g0, g1, g2 = (
        w[PLATFORM_RESIDUAL] - g0,
        w[PLATFORM_RESIDUAL + 1] - g1,
        w[PLATFORM_RESIDUAL + 2] - g2,
    )
    g3, g4, g5 = (
        w[PLATFORM_RESIDUAL + 3] - g3,
        w[PLATFORM_RESIDUAL + 4] - g4,
        w[PLATFORM_RESIDUAL + 5] - g5,
    )
    for i in range(RODS):
        s = SCHUR_INV + 6 * i
        w[FREE + i] = (
            w[s] * g0
            + w[s + 1] * g1
            + w[s + 2] * g2
            + w[s + 3] * g3
            + w[s + 4] * g4
            + w[s + 5] * g5
        )
    for i in range(LANES):
        a, b, c = w[RESIDUAL + i], w[RESIDUAL + 8 + i], w[RESIDUAL + 16 + i]
        d, e, f = w[RESIDUAL + 24 + i], w[RESIDUAL + 32 + i], w[FREE + i]
        for k in range(6):
            x = V + 40 * k + i
            w[DELTA + 8 * k + i] = (
                w[x] * a
                + w[x + 8] * b
                + w[x + 16] * c
                + w[x + 24] * d
                + w[x + 32] * e
                + w[U + 8 * k + i] * f
            )


@njit(**KERNEL)
def leg_error(w: Array) -> float:
    """Return the largest |dL| of the step in DELTA: the estimated error of the lengths [m]."""
    worst = 0.0
    for i in range(LANES):
        worst = max(worst, abs(w[DELTA + 40 + i]))
    w[LEG_ERROR] = worst
    return worst


@njit(**KERNEL)
def pose_column(w: Array, j: int) -> None:
    """Set RESIDUAL and PLATFORM_RESIDUAL to the residual's derivative by the pose.

    Args:
        w: The solver's array; tips as they were shot.
        j: 0 to 2 for the position, 3 to 5 for the rotation vector (base frame).
    """
    for k in range(RESIDUAL, PLATFORM_RESIDUAL + 8):
        w[k] = 0.0
    if j < 3:
        for i in range(RODS):
            w[RESIDUAL + 8 * j + i] = -1.0
        return
    r00, r01 = w[POSE + 3], w[POSE + 4]
    r10, r11 = w[POSE + 6], w[POSE + 7]
    r20, r21 = w[POSE + 9], w[POSE + 10]
    ex, ey, ez = 1.0 * (j == 3), 1.0 * (j == 4), 1.0 * (j == 5)
    sx, sy, sz = 0.0, 0.0, 0.0
    for i in range(RODS):
        ax, ay, az = w[ARM + i], w[ARM + 8 + i], w[ARM + 16 + i]
        dx, dy, dz = ey * az - ez * ay, ez * ax - ex * az, ex * ay - ey * ax
        w[RESIDUAL + i], w[RESIDUAL + 8 + i], w[RESIDUAL + 16 + i] = -dx, -dy, -dz
        tx, ty, tz = w[T_X + i], w[T_Y + i], w[T_Z + i]
        ux, uy, uz = ey * tz - ez * ty, ez * tx - ex * tz, ex * ty - ey * tx
        w[RESIDUAL + 24 + i] = -2.0 * (r00 * ux + r10 * uy + r20 * uz)
        w[RESIDUAL + 32 + i] = -2.0 * (r01 * ux + r11 * uy + r21 * uz)
        nx, ny, nz = w[N_X + i], w[N_Y + i], w[N_Z + i]
        sx += dy * nz - dz * ny
        sy += dz * nx - dx * nz
        sz += dx * ny - dy * nx
    # The load's point of action turns with the platform.
    qx, qy, qz = w[POINT], w[POINT + 1], w[POINT + 2]
    cx = r00 * qx + r01 * qy + w[POSE + 5] * qz
    cy = r10 * qx + r11 * qy + w[POSE + 8] * qz
    cz = r20 * qx + r21 * qy + w[POSE + 11] * qz
    dx, dy, dz = ey * cz - ez * cy, ez * cx - ex * cz, ex * cy - ey * cx
    fx, fy, fz = w[FORCE], w[FORCE + 1], w[FORCE + 2]
    w[PLATFORM_RESIDUAL + 3] = dy * fz - dz * fy - sx
    w[PLATFORM_RESIDUAL + 4] = dz * fx - dx * fz - sy
    w[PLATFORM_RESIDUAL + 5] = dx * fy - dy * fx - sz


@njit(**KERNEL)
def tangents(w: Array) -> None:
    """Fill TANGENT: the change of all unknowns with the pose (position, then rotation vector).

    The residual's derivative by the pose goes through the factors at hand, one column at a time.
    Destroys RESIDUAL, PLATFORM_RESIDUAL and DELTA.
    """
    for j in range(6):
        pose_column(w, j)
        solve_linear(w)
        for k in range(UNKNOWNS):
            w[TANGENT + j * COLUMN + k] = -w[DELTA + k]
