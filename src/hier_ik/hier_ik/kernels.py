"""The compiled inner part of the solver: kinematics, closure rows, and one damped step.

Everything works on the packed arrays I and X of layout.py; nothing here allocates memory. A pose is
12 numbers, the rotation row by row and then the position.

Notation: closure c relates frame a = POSE[body a] OFFSET_A to frame b = POSE[body b] OFFSET_B; e(q)
are its residual rows and J = de/dq; a step solves J dq = -e in the damped least-squares sense.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hier_ik import layout as at
from hier_ik.joints import ROT_AXIS, ROT_CROSS, ROT_FREE, ROT_FULL

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Smallest damping, relative to the largest diagonal element: redundant rows are the norm.
FLOOR = 1e-13
LAMBDA_START, LAMBDA_MIN, LAMBDA_MAX = 1e-4, 1e-9, 1e9
#: Residuals (squared sum) below this are rounding.
NOTHING = 1e-30
#: Steps below this share of the largest allowed are taken whatever they promise.
SHORT = 1e-9

_jit = njit(cache=True, nogil=True, error_model="numpy")
#: Not literals for numba, which would compile a kernel anew for each literal argument.
ZERO, MINUS_ONE = np.int64(0), np.int64(-1)


@_jit
def mul(X: Array, f: int, o: int) -> Any:
    """Return the 12 numbers of the product of the poses at X[f:] and X[o:]."""
    r00, r01, r02 = X[f], X[f + 1], X[f + 2]
    r10, r11, r12 = X[f + 3], X[f + 4], X[f + 5]
    r20, r21, r22 = X[f + 6], X[f + 7], X[f + 8]
    o0, o1, o2 = X[o], X[o + 1], X[o + 2]
    o3, o4, o5 = X[o + 3], X[o + 4], X[o + 5]
    o6, o7, o8 = X[o + 6], X[o + 7], X[o + 8]
    x, y, z = X[o + 9], X[o + 10], X[o + 11]
    return (
        r00 * o0 + r01 * o3 + r02 * o6, r00 * o1 + r01 * o4 + r02 * o7,
        r00 * o2 + r01 * o5 + r02 * o8,
        r10 * o0 + r11 * o3 + r12 * o6, r10 * o1 + r11 * o4 + r12 * o7,
        r10 * o2 + r11 * o5 + r12 * o8,
        r20 * o0 + r21 * o3 + r22 * o6, r20 * o1 + r21 * o4 + r22 * o7,
        r20 * o2 + r21 * o5 + r22 * o8,
        r00 * x + r01 * y + r02 * z + X[f + 9],
        r10 * x + r11 * y + r12 * z + X[f + 10],
        r20 * x + r21 * y + r22 * z + X[f + 11],
    )  # fmt: skip


@_jit
def _ball(X: Array, f: int, w: int, a: int) -> None:
    """Turn the pose at f by the rotation vector at w; axes R Jl (left Jacobian) to a."""
    x, y, z = X[w], X[w + 1], X[w + 2]
    t2 = x * x + y * y + z * z
    if t2 < 1e-2:
        s = 1.0 - t2 / 6.0 * (1.0 - t2 / 20.0 * (1.0 - t2 / 42.0 * (1.0 - t2 / 72.0)))
        c = 0.5 - t2 / 24.0 * (1.0 - t2 / 30.0 * (1.0 - t2 / 56.0 * (1.0 - t2 / 90.0)))
        k = 1.0 / 6.0 - t2 / 120.0 * (1.0 - t2 / 42.0 * (1.0 - t2 / 72.0 * (1.0 - t2 / 110.0)))
    else:
        t = math.sqrt(t2)
        h = math.sin(0.5 * t)
        s, c, k = math.sin(t) / t, 2.0 * h * h / t2, (t - math.sin(t)) / (t2 * t)
    for i in range(3):
        r0, r1, r2 = X[f + 3 * i], X[f + 3 * i + 1], X[f + 3 * i + 2]
        # R exp(w) with exp(w) = I + s [w] + c [w]^2, and R Jl with Jl = I + c [w] + k [w]^2
        v = r0 * x + r1 * y + r2 * z
        u0, u1, u2 = r1 * z - r2 * y, r2 * x - r0 * z, r0 * y - r1 * x  # row times [w]
        v0, v1, v2 = v * x - t2 * r0, v * y - t2 * r1, v * z - t2 * r2  # row times [w]^2
        X[f + 3 * i] = r0 + s * u0 + c * v0
        X[f + 3 * i + 1] = r1 + s * u1 + c * v1
        X[f + 3 * i + 2] = r2 + s * u2 + c * v2
        X[a + i] = r0 + c * u0 + k * v0
        X[a + 3 + i] = r1 + c * u1 + k * v1
        X[a + 6 + i] = r2 + c * u2 + k * v2


@_jit
def kinematics(I: Ints, X: Array, begin: int, end: int) -> None:
    """Bring the bodies listed in I[begin:end] up to date; parents stand before children."""
    bodies, origin, q = I[at.BODIES], I[at.BODY_ORIGIN], I[at.Q]
    pose, axis = I[at.POSE], I[at.AXIS]
    for i in range(begin, end):
        b = I[i]
        parent, kind, d = I[bodies + 3 * b], I[bodies + 3 * b + 1], I[bodies + 3 * b + 2]
        (r0, r1, r2, r3, r4, r5, r6, r7, r8, x, y, z) = mul(X, pose + 12 * parent, origin + 12 * b)
        f = pose + 12 * b
        if kind == at.REVOLUTE:
            c, s = math.cos(X[q + d]), math.sin(X[q + d])
            r0, r1 = c * r0 + s * r1, c * r1 - s * r0
            r3, r4 = c * r3 + s * r4, c * r4 - s * r3
            r6, r7 = c * r6 + s * r7, c * r7 - s * r6
        elif kind == at.PRISMATIC:
            x, y, z = x + X[q + d] * r2, y + X[q + d] * r5, z + X[q + d] * r8
        X[f], X[f + 1], X[f + 2] = r0, r1, r2
        X[f + 3], X[f + 4], X[f + 5] = r3, r4, r5
        X[f + 6], X[f + 7], X[f + 8] = r6, r7, r8
        X[f + 9], X[f + 10], X[f + 11] = x, y, z
        a = axis + 3 * d
        if kind == at.BALL:
            _ball(X, f, q + d, a)
        else:
            X[a], X[a + 1], X[a + 2] = r2, r5, r8


@_jit
def _rotation_vector(
    r0: float, r1: float, r2: float, r3: float, r4: float, r5: float, r6: float, r7: float,
    r8: float,
) -> Any:  # fmt: skip
    """Rotation vector of a matrix, |w| <= pi, through the largest quaternion component."""
    tr = r0 + r4 + r8
    if tr >= r0 and tr >= r4 and tr >= r8:
        w, x, y, z = 1.0 + tr, r7 - r5, r2 - r6, r3 - r1
    elif r0 >= r4 and r0 >= r8:
        x, y, z, w = 1.0 + r0 - r4 - r8, r1 + r3, r2 + r6, r7 - r5
    elif r4 >= r8:
        x, y, z, w = r1 + r3, 1.0 + r4 - r0 - r8, r5 + r7, r2 - r6
    else:
        x, y, z, w = r2 + r6, r5 + r7, 1.0 + r8 - r0 - r4, r3 - r1
    s = math.sqrt(x * x + y * y + z * z)
    sign = 1.0
    if w < 0.0:
        w, sign = -w, -1.0
    f = 2.0 / w if s < 1e-9 * w else 2.0 * math.atan2(s, w) / s
    return sign * f * x, sign * f * y, sign * f * z


@_jit
def _rotation_rows(
    mode: int, a0: float, a1: float, a2: float, a3: float, a4: float, a5: float, a6: float,
    a7: float, a8: float, b0: float, b1: float, b2: float, b3: float, b4: float, b5: float,
    b6: float, b7: float, b8: float,
) -> Any:  # fmt: skip
    """Residual of the rotation of b in a, by the mode of the closure."""
    if mode == ROT_CROSS:  # x of a against y of b
        return a0 * b1 + a3 * b4 + a6 * b7, 0.0, 0.0
    zx = a0 * b2 + a3 * b5 + a6 * b8
    zy = a1 * b2 + a4 * b5 + a7 * b8
    zz = a2 * b2 + a5 * b5 + a8 * b8
    if mode == ROT_AXIS:  # the turn that takes z of a to z of b
        n = math.sqrt(zx * zx + zy * zy)
        if n < 1e-150:
            if zz < 0.0:  # opposite: any perpendicular axis will do
                return math.pi, 0.0, 0.0
            return -zy, zx, 0.0
        f = math.atan2(n, zz) / n
        return -f * zy, f * zx, 0.0
    return _rotation_vector(
        a0 * b0 + a3 * b3 + a6 * b6, a0 * b1 + a3 * b4 + a6 * b7, zx,
        a1 * b0 + a4 * b3 + a7 * b6, a1 * b1 + a4 * b4 + a7 * b7, zy,
        a2 * b0 + a5 * b3 + a8 * b6, a2 * b1 + a5 * b4 + a8 * b7, zz,
    )  # fmt: skip


@_jit
def assemble(
    I: Ints, X: Array, c: int, e_at: int, jacobian: bool, w_at: int, stride: int, first: int
) -> float:
    """Write the residual rows of closure c to X[e_at:]; return their squared sum.

    With ``jacobian`` also J: row r, local column k of the component go to
    X[w_at + r stride + k - first]; what is not written there must be zero already. With first = -1
    k is instead the place in the chain of the closure, as sparse rows need it.
    """
    r = I[at.CLOSURES] + 8 * c
    pose = I[at.POSE]
    (a0, a1, a2, a3, a4, a5, a6, a7, a8, ax, ay, az) = mul(
        X, pose + 12 * I[r], I[at.OFFSET_A] + 12 * c
    )
    (b0, b1, b2, b3, b4, b5, b6, b7, b8, bx, by, bz) = mul(
        X, pose + 12 * I[r + 1], I[at.OFFSET_B] + 12 * c
    )
    mode, mask, weight = I[r + 2], I[r + 3], X[I[at.WEIGHT] + c]
    dx, dy, dz = bx - ax, by - ay, bz - az
    k = e_at
    if mask & 1:
        X[k] = weight * (a0 * dx + a3 * dy + a6 * dz)
        k += 1
    if mask & 2:
        X[k] = weight * (a1 * dx + a4 * dy + a7 * dz)
        k += 1
    if mask & 4:
        X[k] = weight * (a2 * dx + a5 * dy + a8 * dz)
        k += 1
    # d(rotation rows) = G omega, omega the angular velocity of b in a, in the frame of a.
    g0, g1, g2 = 1.0, 0.0, 0.0
    g3, g4, g5 = 0.0, 1.0, 0.0
    g6, g7, g8 = 0.0, 0.0, 1.0
    if mode != ROT_FREE:
        x, y, z = _rotation_rows(
            mode, a0, a1, a2, a3, a4, a5, a6, a7, a8, b0, b1, b2, b3, b4, b5, b6, b7, b8
        )
        if mask & 8:
            X[k] = weight * x
            k += 1
        if mask & 16:
            X[k] = weight * y
            k += 1
        if mask & 32:
            X[k] = weight * z
            k += 1
        if mode == ROT_FULL:
            t2 = x * x + y * y + z * z
            if t2 > 1e-20:  # Jl^-1(w) = I - [w]/2 + h [w]^2
                if t2 < 1e-2:
                    h = 1.0 / 12.0 + t2 / 720.0 * (1.0 + t2 / 42.0 * (1.0 + t2 / 40.0))
                else:
                    half = 0.5 * math.sqrt(t2)
                    h = (1.0 - half * math.cos(half) / math.sin(half)) / t2
                g0 = 1.0 - h * (y * y + z * z)
                g4 = 1.0 - h * (x * x + z * z)
                g8 = 1.0 - h * (x * x + y * y)
                g1, g3 = h * x * y + 0.5 * z, h * x * y - 0.5 * z
                g2, g6 = h * x * z - 0.5 * y, h * x * z + 0.5 * y
                g5, g7 = h * y * z + 0.5 * x, h * y * z - 0.5 * x
        elif mode == ROT_AXIS:
            zx = a0 * b2 + a3 * b5 + a6 * b8
            zy = a1 * b2 + a4 * b5 + a7 * b8
            zz = a2 * b2 + a5 * b5 + a8 * b8
            n2 = zx * zx + zy * zy
            if n2 > 1e-24:
                n = math.sqrt(n2)
                t = math.atan2(n, zz)
                f = t / n
                ux, uy = -zy / n, zx / n
                v = 1.0 - t * zz / n  # along the axis of the turn the rate is that of the angle
                g0, g1, g2 = v * ux * ux + f * zz, v * ux * uy, -f * zx
                g3, g4, g5 = v * ux * uy, v * uy * uy + f * zz, -f * zy
        else:  # d(y of b) = omega x (y of b), its x component
            g0 = 0.0
            g1 = a2 * b1 + a5 * b4 + a8 * b7
            g2 = -(a1 * b1 + a4 * b4 + a7 * b7)
    total = 0.0
    for i in range(e_at, k):
        total += X[i] * X[i]
    if not jacobian:
        return total
    dofs, axis = I[at.DOFS], I[at.AXIS]
    begin, end = I[at.CHAIN] + 3 * I[r + 5], I[at.CHAIN] + 3 * I[r + 6]
    for i in range(begin, end, 3):
        d = I[i]
        s = weight * I[i + 1]
        w = w_at + (I[i + 2] - first if first >= 0 else (i - begin) // 3)
        wx, wy, wz = X[axis + 3 * d], X[axis + 3 * d + 1], X[axis + 3 * d + 2]
        turns = I[dofs + 4 * d + 1] != 0
        vx, vy, vz = wx, wy, wz
        if turns:
            o = pose + 12 * I[dofs + 4 * d] + 9
            px, py, pz = bx - X[o], by - X[o + 1], bz - X[o + 2]
            vx, vy, vz = wy * pz - wz * py, wz * px - wx * pz, wx * py - wy * px
        if mask & 1:
            X[w] = s * (a0 * vx + a3 * vy + a6 * vz)
            w += stride
        if mask & 2:
            X[w] = s * (a1 * vx + a4 * vy + a7 * vz)
            w += stride
        if mask & 4:
            X[w] = s * (a2 * vx + a5 * vy + a8 * vz)
            w += stride
        if turns and mode != ROT_FREE:
            ox = s * (a0 * wx + a3 * wy + a6 * wz)
            oy = s * (a1 * wx + a4 * wy + a7 * wz)
            oz = s * (a2 * wx + a5 * wy + a8 * wz)
            if mask & 8:
                X[w] = g0 * ox + g1 * oy + g2 * oz
                w += stride
            if mask & 16:
                X[w] = g3 * ox + g4 * oy + g5 * oz
                w += stride
            if mask & 32:
                X[w] = g6 * ox + g7 * oy + g8 * oz
        elif first < 0 and mode != ROT_FREE:
            for bit in range(3, 6):
                if mask >> bit & 1:
                    X[w] = 0.0
                    w += stride
    return total


@_jit
def cholesky(X: Array, a: int, n: int) -> None:
    """Factor the n x n matrix at X[a:] as L L' in place (lower half, inverse diagonal)."""
    for i in range(n):
        ri = a + i * n
        for j in range(i):
            rj = a + j * n
            s = X[ri + j]
            for k in range(j):
                s -= X[ri + k] * X[rj + k]
            X[ri + j] = s * X[rj + j]
        s = X[ri + i]
        for k in range(i):
            s -= X[ri + k] * X[ri + k]
        X[ri + i] = 1.0 / math.sqrt(s) if s > 0.0 else 0.0


@_jit
def cholesky_solve(X: Array, a: int, n: int, x: int) -> None:
    """Solve L L' x = b in place at X[x:] with the factor of cholesky()."""
    for i in range(n):
        s = X[x + i]
        for k in range(i):
            s -= X[a + i * n + k] * X[x + k]
        X[x + i] = s * X[a + i * n + i]
    for i in range(n - 1, -1, -1):
        s = X[x + i]
        for k in range(i + 1, n):
            s -= X[a + k * n + i] * X[x + k]
        X[x + i] = s * X[a + i * n + i]


@_jit
def limit_step(I: Ints, X: Array, n: int, dofs: int) -> int:
    """Shorten DQ to the largest step allowed, then hold what would leave its limits.

    Clamp and lock after Baerlocher and Boulic: a coordinate that would pass a limit is set to go
    exactly there and is taken out; the caller solves again for the others. Returns how many were
    newly held.
    """
    dq, held, q, most = I[at.DQ], I[at.HELD], I[at.Q], I[at.STEP_MAX]
    low, high = I[at.LOW], I[at.HIGH]
    scale = 1.0
    for i in range(n):
        if I[held + i] == 0:
            m = X[most + I[dofs + i]]
            if abs(X[dq + i]) * scale > m:
                scale = m / abs(X[dq + i])
    new = 0
    for i in range(n):
        if I[held + i] != 0:
            continue
        d = I[dofs + i]
        X[dq + i] *= scale
        value = X[q + d] + X[dq + i]
        if value > X[high + d]:
            X[dq + i] = X[high + d] - X[q + d]
        elif value < X[low + d]:
            X[dq + i] = X[low + d] - X[q + d]
        else:
            continue
        I[held + i] = 1
        new += 1
    return new


@_jit
def apply_step(I: Ints, X: Array, n: int, dofs: int, dq: int) -> None:
    """Q += X[dq:], exactly within the limits, rotation vectors brought back below pi."""
    q, low, high, table = I[at.Q], I[at.LOW], I[at.HIGH], I[at.DOFS]
    for i in range(n):
        d = I[dofs + i]
        X[q + d] = min(max(X[q + d] + X[dq + i], X[low + d]), X[high + d])
    for i in range(n):
        d = I[dofs + i]
        if I[table + 4 * d + 2] == 1:  # first of the three coordinates of an unlimited ball joint
            w = q + d
            t = math.sqrt(X[w] * X[w] + X[w + 1] * X[w + 1] + X[w + 2] * X[w + 2])
            if t > math.pi:
                f = 1.0 - 2.0 * math.pi / t
                X[w] *= f
                X[w + 1] *= f
                X[w + 2] *= f


@_jit
def component_rows(I: Ints, X: Array, k: int, e_at: int) -> float:
    """Write all residual rows of component k to X[e_at:]; return their squared sum."""
    comp = I[at.COMPS] + at.COMP_WIDTH * k
    total = 0.0
    for i in range(I[comp + at.CLOSURE_BEGIN], I[comp + at.CLOSURE_END]):
        c = I[I[at.COMP_CLOSURES] + i]
        total += assemble(I, X, c, e_at, False, 0, 0, 0)
        e_at += I[I[at.CLOSURES] + 8 * c + 4]
    return total


@_jit
def component_kinematics(I: Ints, X: Array, k: int) -> None:
    """Bring up to date what a step of component k has moved and its closures read."""
    comp = I[at.COMPS] + at.COMP_WIDTH * k
    fk = I[at.COMP_FK]
    kinematics(I, X, fk + I[comp + at.FK_BEGIN], fk + I[comp + at.FK_END])


@_jit
def solve_single(I: Ints, X: Array, k: int) -> float:
    """One damped least-squares step of a component with one priority level.

    Normal form (J'J + mu) dq = -J'e if there are no more columns than rows, else the dual form
    dq = -J'(JJ' + mu)^-1 e. Returns the squared residual before the step.
    """
    comp = I[at.COMPS] + at.COMP_WIDTH * k
    m, n = I[comp + at.ROWS], I[comp + at.COLUMNS]
    dofs = I[at.COMP_DOFS] + I[comp + at.DOF_BEGIN]
    J, e, dq, held = I[at.W], I[at.E], I[at.DQ], I[at.HELD]
    for i in range(J, J + m * n):
        X[i] = 0.0
    cost = 0.0
    row = 0
    for i in range(I[comp + at.CLOSURE_BEGIN], I[comp + at.CLOSURE_END]):
        c = I[I[at.COMP_CLOSURES] + i]
        cost += assemble(I, X, c, e + row, True, J + row * n, n, ZERO)
        row += I[I[at.CLOSURES] + 8 * c + 4]
    X[I[at.COST] + k] = cost
    X[I[at.STEP] + k] = 0.0
    if cost < NOTHING or n == 0:
        return cost
    A = J + m * n  # the matrix of the normal form
    if n <= m:
        _normal_matrix(X, J, m, n, A)
    for _ in range(8):
        for i in range(n):
            I[held + i] = 0
            X[dq + i] = 0.0
        for _again in range(n + 1):
            if n <= m:
                _normal_form(I, X, k, m, n, cost)
            else:
                _dual_form(I, X, k, m, n, cost)
            if limit_step(I, X, n, dofs) == 0:
                break
        if _trial(I, X, k, m, n, cost):
            return cost
    return cost  # not at rest: the next iteration goes on with the damping reached here


@_jit
def _normal_matrix(X: Array, J: int, m: int, n: int, A: int) -> None:
    """A = J'J, lower half; rows of J are mostly zero in plane mechanisms."""
    for i in range(A, A + n * n):
        X[i] = 0.0
    for r in range(J, J + m * n, n):
        for i in range(n):
            v = X[r + i]
            if v != 0.0:
                for j in range(i + 1):
                    X[A + i * n + j] += v * X[r + j]


@_jit
def _right_hand_side(I: Ints, X: Array, m: int, n: int) -> None:
    """V = -(e + J dq of the held)."""
    J, e, dq, held, v = I[at.W], I[at.E], I[at.DQ], I[at.HELD], I[at.V]
    for r in range(m):
        X[v + r] = -X[e + r]
    for i in range(n):
        if I[held + i] != 0 and X[dq + i] != 0.0:
            for r in range(m):
                X[v + r] -= X[J + r * n + i] * X[dq + i]


@_jit
def _normal_form(I: Ints, X: Array, k: int, m: int, n: int, cost: float) -> None:
    J, dq, held, v = I[at.W], I[at.DQ], I[at.HELD], I[at.V]
    A = J + m * n
    L = A + n * n
    _right_hand_side(I, X, m, n)
    g = v + m
    for i in range(n):
        X[g + i] = 0.0
    for r in range(m):
        s = X[v + r]
        if s != 0.0:
            for i in range(n):
                X[g + i] += X[J + r * n + i] * s
    top = 0.0
    for i in range(n):
        if I[held + i] == 0:
            top = max(top, X[A + i * n + i])
        else:
            X[g + i] = 0.0
    mu = (X[I[at.LAM] + k] * min(cost, 1.0) + FLOOR) * top
    for i in range(n):
        fixed = I[held + i] != 0
        for j in range(i):
            X[L + i * n + j] = 0.0 if fixed or I[held + j] != 0 else X[A + i * n + j]
        X[L + i * n + i] = 1.0 if fixed else X[A + i * n + i] + mu
    cholesky(X, L, n)
    cholesky_solve(X, L, n, g)
    for i in range(n):
        if I[held + i] == 0:
            X[dq + i] = X[g + i]


@_jit
def _dual_form(I: Ints, X: Array, k: int, m: int, n: int, cost: float) -> None:
    J, dq, held, v = I[at.W], I[at.DQ], I[at.HELD], I[at.V]
    L = J + m * n
    _right_hand_side(I, X, m, n)
    top = 0.0
    for r in range(m):
        for j in range(r + 1):
            s = 0.0
            for i in range(n):
                if I[held + i] == 0:
                    s += X[J + r * n + i] * X[J + j * n + i]
            X[L + r * m + j] = s
        top = max(top, X[L + r * m + r])
    mu = (X[I[at.LAM] + k] * min(cost, 1.0) + FLOOR) * top
    for r in range(m):
        X[L + r * m + r] += mu
    cholesky(X, L, m)
    cholesky_solve(X, L, m, v)
    for i in range(n):
        if I[held + i] == 0:
            s = 0.0
            for r in range(m):
                s += X[J + r * n + i] * X[v + r]
            X[dq + i] = s


@_jit
def _trial(I: Ints, X: Array, k: int, m: int, n: int, cost: float) -> bool:
    """Take the step DQ if it is good; adapt the damping by the gain ratio (Levenberg-Marquardt).

    Short steps that should remove most of the residual are taken unseen, which saves the second
    evaluation in ordinary motion.
    """
    comp = I[at.COMPS] + at.COMP_WIDTH * k
    dofs = I[at.COMP_DOFS] + I[comp + at.DOF_BEGIN]
    J, e, dq, q, v, most = I[at.W], I[at.E], I[at.DQ], I[at.Q], I[at.V], I[at.STEP_MAX]
    saved, lam = I[at.SAVED], I[at.LAM] + k
    largest = 0.0
    for i in range(n):
        largest = max(largest, abs(X[dq + i]) / X[most + I[dofs + i]])
    predicted = 0.0
    for r in range(m):
        s = X[e + r]
        for i in range(n):
            s += X[J + r * n + i] * X[dq + i]
        predicted += s * s
    X[I[at.STEP] + k] = largest
    promised = cost - predicted
    unseen = largest < 0.3 and predicted < 0.1 * cost and X[lam] <= LAMBDA_START
    uphill = promised < -1e-13 * cost and largest > SHORT
    if unseen or (promised <= 1e-13 * cost and not uphill):
        apply_step(I, X, n, dofs, dq)
        if unseen:
            X[lam] = max(0.25 * X[lam], LAMBDA_MIN)
        return True
    if uphill:  # what is left of a step after limits cut it may lead uphill
        X[lam] = min(10.0 * max(X[lam], 1e-4), LAMBDA_MAX / min(cost, 1.0))
        return False
    for i in range(n):
        X[saved + i] = X[q + I[dofs + i]]
    apply_step(I, X, n, dofs, dq)
    component_kinematics(I, X, k)
    new = component_rows(I, X, k, v)
    if new < cost:
        gain = (cost - new) / promised
        if gain > 0.75:
            X[lam] = max(0.25 * X[lam], LAMBDA_MIN)
        elif gain < 0.25:
            X[lam] = min(4.0 * max(X[lam], 1e-6), LAMBDA_MAX)
        return True
    for i in range(n):
        X[q + I[dofs + i]] = X[saved + i]
    component_kinematics(I, X, k)
    X[lam] = min(10.0 * max(X[lam], 1e-4), LAMBDA_MAX / min(cost, 1.0))
    return False
