"""Compiled closure rows: the residual e(q) of a closure or a goal, and its Jacobian J = de/dq.

A closure relates frame a = pose(body a) frame_a to frame b = pose(body b) frame_b. Its rows are, in
the frame a, the held coordinates of the position of b, then those of its rotation; all times the
weight.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hier_ik.joints import ROT_AXIS, ROT_CROSS, ROT_FREE, ROT_FULL
from hier_ik.kinematics import Frame, Triple, inlined, jit, product
from hier_ik.tables import Record, Records

__all__ = ["closure_matrix", "closure_rows", "relative_poses", "residuals"]

Array = NDArray[np.float64]


class Rotation(NamedTuple):
    """A matrix (3, 3) in registers."""

    xx: float
    xy: float
    xz: float
    yx: float
    yy: float
    yz: float
    zx: float
    zy: float
    zz: float


@jit
def closure_rows(bodies: Records, closure: Record, work: Array, e: int) -> float:
    """Write the residual rows of a closure to work[e:]; return their squared sum."""
    a = product(bodies[closure.body_a].pose, closure.frame_a)
    b = product(bodies[closure.body_b].pose, closure.frame_b)
    return _write_rows(closure, a, b, _rotation_rows(closure.mode, a, b), work, e)


@jit
def closure_matrix(
    bodies: Records, freedoms: Records, closure: Record, chain: Records, work: Array, e: int
) -> float:
    """The same, and the Jacobian to its place; what it does not write there must be zero."""
    a = product(bodies[closure.body_a].pose, closure.frame_a)
    b = product(bodies[closure.body_b].pose, closure.frame_b)
    w = _rotation_rows(closure.mode, a, b)
    total = _write_rows(closure, a, b, w, work, e)
    rate = _rotation_rate(closure.mode, a, b, w)
    mode, mask, weight, stride = closure.mode, closure.mask, closure.weight, closure.stride
    for i in range(closure.chain_begin, closure.chain_end):
        support = chain[i]
        freedom = freedoms[support.freedom]
        s = weight * support.sign
        at = closure.matrix + support.entry
        wx, wy, wz = freedom.axis.x, freedom.axis.y, freedom.axis.z
        turns = freedom.turns != 0
        vx, vy, vz = wx, wy, wz
        if turns:  # v = w x (b - its origin)
            o = bodies[freedom.body].pose
            px, py, pz = b.x - o.x, b.y - o.y, b.z - o.z
            vx, vy, vz = wy * pz - wz * py, wz * px - wx * pz, wx * py - wy * px
        if mask & 1:
            work[at] = s * (a.xx * vx + a.yx * vy + a.zx * vz)
            at += stride
        if mask & 2:
            work[at] = s * (a.xy * vx + a.yy * vy + a.zy * vz)
            at += stride
        if mask & 4:
            work[at] = s * (a.xz * vx + a.yz * vy + a.zz * vz)
            at += stride
        if mode == ROT_FREE:
            continue
        ox, oy, oz = 0.0, 0.0, 0.0
        if turns:
            ox = s * (a.xx * wx + a.yx * wy + a.zx * wz)
            oy = s * (a.xy * wx + a.yy * wy + a.zy * wz)
            oz = s * (a.xz * wx + a.yz * wy + a.zz * wz)
        if mask & 8:
            work[at] = rate.xx * ox + rate.xy * oy + rate.xz * oz
            at += stride
        if mask & 16:
            work[at] = rate.yx * ox + rate.yy * oy + rate.yz * oz
            at += stride
        if mask & 32:
            work[at] = rate.zx * ox + rate.zy * oy + rate.zz * oz
    return total


@inlined
def _write_rows(closure: Record, a: Frame, b: Frame, w: Triple, work: Array, e: int) -> float:
    mask, weight = closure.mask, closure.weight
    dx, dy, dz = b.x - a.x, b.y - a.y, b.z - a.z
    k = e
    if mask & 1:
        work[k] = weight * (a.xx * dx + a.yx * dy + a.zx * dz)
        k += 1
    if mask & 2:
        work[k] = weight * (a.xy * dx + a.yy * dy + a.zy * dz)
        k += 1
    if mask & 4:
        work[k] = weight * (a.xz * dx + a.yz * dy + a.zz * dz)
        k += 1
    if mask & 8:
        work[k] = weight * w[0]
        k += 1
    if mask & 16:
        work[k] = weight * w[1]
        k += 1
    if mask & 32:
        work[k] = weight * w[2]
        k += 1
    total = 0.0
    for i in range(e, k):
        total += work[i] * work[i]
    return total


@inlined
def _z_axis(a: Frame, b: Frame) -> Triple:
    """The z axis of b in a."""
    return (
        a.xx * b.xz + a.yx * b.yz + a.zx * b.zz,
        a.xy * b.xz + a.yy * b.yz + a.zy * b.zz,
        a.xz * b.xz + a.yz * b.yz + a.zz * b.zz,
    )


@inlined
def _rotation_rows(mode: int, a: Frame, b: Frame) -> Triple:
    """Residual of the rotation of b in a, by the mode of the closure."""
    if mode == ROT_FREE:
        return 0.0, 0.0, 0.0
    if mode == ROT_CROSS:  # x of a against y of b
        return a.xx * b.xy + a.yx * b.yy + a.zx * b.zy, 0.0, 0.0
    zx, zy, zz = _z_axis(a, b)
    if mode == ROT_AXIS:  # the turn that takes z of a to z of b
        n = math.sqrt(zx * zx + zy * zy)
        if n < 1e-150:
            if zz < 0.0:  # opposite: any perpendicular axis will do
                return math.pi, 0.0, 0.0
            return -zy, zx, 0.0
        f = math.atan2(n, zz) / n
        return -f * zy, f * zx, 0.0
    return _rotation_vector(
        Rotation(
            a.xx * b.xx + a.yx * b.yx + a.zx * b.zx, a.xx * b.xy + a.yx * b.yy + a.zx * b.zy, zx,
            a.xy * b.xx + a.yy * b.yx + a.zy * b.zx, a.xy * b.xy + a.yy * b.yy + a.zy * b.zy, zy,
            a.xz * b.xx + a.yz * b.yx + a.zz * b.zx, a.xz * b.xy + a.yz * b.yy + a.zz * b.zy, zz,
        )
    )  # fmt: skip


@inlined
def _rotation_vector(r: Rotation) -> Triple:
    """Rotation vector of a matrix, |w| <= pi, through the largest quaternion component."""
    tr = r.xx + r.yy + r.zz
    if tr >= r.xx and tr >= r.yy and tr >= r.zz:
        w, x, y, z = 1.0 + tr, r.zy - r.yz, r.xz - r.zx, r.yx - r.xy
    elif r.xx >= r.yy and r.xx >= r.zz:
        x, y, z, w = 1.0 + r.xx - r.yy - r.zz, r.xy + r.yx, r.xz + r.zx, r.zy - r.yz
    elif r.yy >= r.zz:
        x, y, z, w = r.xy + r.yx, 1.0 + r.yy - r.xx - r.zz, r.yz + r.zy, r.xz - r.zx
    else:
        x, y, z, w = r.xz + r.zx, r.yz + r.zy, 1.0 + r.zz - r.xx - r.yy, r.yx - r.xy
    s = math.sqrt(x * x + y * y + z * z)
    sign = 1.0
    if w < 0.0:
        w, sign = -w, -1.0
    f = 2.0 / w if s < 1e-9 * w else 2.0 * math.atan2(s, w) / s
    return sign * f * x, sign * f * y, sign * f * z


@inlined
def _rotation_rate(mode: int, a: Frame, b: Frame, w: Triple) -> Rotation:
    """G in d(rotation rows) = G omega, omega the angular velocity of b in a, in the frame a."""
    xx, xy, xz = 1.0, 0.0, 0.0
    yx, yy, yz = 0.0, 1.0, 0.0
    zx, zy, zz = 0.0, 0.0, 1.0
    if mode == ROT_FULL:
        x, y, z = w
        t2 = x * x + y * y + z * z
        if t2 > 1e-20:  # Jl^-1(w) = I - [w]/2 + h [w]^2
            if t2 < 1e-2:
                h = 1.0 / 12.0 + t2 / 720.0 * (1.0 + t2 / 42.0 * (1.0 + t2 / 40.0))
            else:
                half = 0.5 * math.sqrt(t2)
                h = (1.0 - half * math.cos(half) / math.sin(half)) / t2
            xx = 1.0 - h * (y * y + z * z)
            yy = 1.0 - h * (x * x + z * z)
            zz = 1.0 - h * (x * x + y * y)
            xy, yx = h * x * y + 0.5 * z, h * x * y - 0.5 * z
            xz, zx = h * x * z - 0.5 * y, h * x * z + 0.5 * y
            yz, zy = h * y * z + 0.5 * x, h * y * z - 0.5 * x
    elif mode == ROT_AXIS:
        bx, by, bz = _z_axis(a, b)
        n2 = bx * bx + by * by
        if n2 > 1e-24:
            n = math.sqrt(n2)
            t = math.atan2(n, bz)
            f = t / n
            ux, uy = -by / n, bx / n
            v = 1.0 - t * bz / n  # along the axis of the turn the rate is that of the angle
            xx, xy, xz = v * ux * ux + f * bz, v * ux * uy, -f * bx
            yx, yy, yz = v * ux * uy, v * uy * uy + f * bz, -f * by
    elif mode == ROT_CROSS:  # d(y of b) = omega x (y of b), its x component
        xx = 0.0
        xy = a.xz * b.xy + a.yz * b.yy + a.zz * b.zy
        xz = -(a.xy * b.xy + a.yy * b.yy + a.zy * b.zy)
    return Rotation(xx, xy, xz, yx, yy, yz, zx, zy, zz)


@jit
def residuals(bodies: Records, closures: Records, rows: Array, out: Array) -> None:
    """Per closure the norms of its position and rotation rows, without weights, to out (n, 2).

    ``rows`` (6,) is workspace.
    """
    for c in range(closures.shape[0]):
        closure = closures[c]
        closure_rows(bodies, closure, rows, 0)
        mask, w = closure.mask, closure.weight
        k = 0
        p = 0.0
        r = 0.0
        for bit in range(6):
            if mask >> bit & 1:
                if bit < 3:
                    p += rows[k] * rows[k]
                else:
                    r += rows[k] * rows[k]
                k += 1
        out[c, 0], out[c, 1] = math.sqrt(p) / w, math.sqrt(r) / w


@jit
def relative_poses(bodies: Records, closures: Records, out: Array) -> None:
    """Per closure the pose of frame b in frame a, as 12 numbers, to out (n, 12)."""
    for c in range(closures.shape[0]):
        closure = closures[c]
        a = product(bodies[closure.body_a].pose, closure.frame_a)
        b = product(bodies[closure.body_b].pose, closure.frame_b)
        dx, dy, dz = b.x - a.x, b.y - a.y, b.z - a.z
        for i in range(3):
            for j in range(3):
                out[c, 3 * i + j] = a[i] * b[j] + a[3 + i] * b[3 + j] + a[6 + i] * b[6 + j]
            out[c, 9 + i] = a[i] * dx + a[3 + i] * dy + a[6 + i] * dz
