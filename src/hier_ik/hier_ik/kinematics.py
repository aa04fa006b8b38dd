"""Compiled kinematics: products of poses, and the poses of bodies from their coordinates."""

from __future__ import annotations

import math
from typing import NamedTuple

from numba import njit

from hier_ik.tables import BALL, PRISMATIC, REVOLUTE, Ints, Record, Records

__all__ = ["Frame", "all_kinematics", "jit", "kinematics", "product"]


jit = njit(cache=True, nogil=True, error_model="numpy")
inlined = njit(cache=True, nogil=True, error_model="numpy", forceinline=True)


class Frame(NamedTuple):
    """A pose in registers, with the field names of a POSE record."""

    xx: float
    xy: float
    xz: float
    yx: float
    yy: float
    yz: float
    zx: float
    zy: float
    zz: float
    x: float
    y: float
    z: float


@inlined
def product(a: Record, b: Record) -> Frame:
    """The product of two poses (POSE records)."""
    return Frame(
        a.xx * b.xx + a.xy * b.yx + a.xz * b.zx,
        a.xx * b.xy + a.xy * b.yy + a.xz * b.zy,
        a.xx * b.xz + a.xy * b.yz + a.xz * b.zz,
        a.yx * b.xx + a.yy * b.yx + a.yz * b.zx,
        a.yx * b.xy + a.yy * b.yy + a.yz * b.zy,
        a.yx * b.xz + a.yy * b.yz + a.yz * b.zz,
        a.zx * b.xx + a.zy * b.yx + a.zz * b.zx,
        a.zx * b.xy + a.zy * b.yy + a.zz * b.zy,
        a.zx * b.xz + a.zy * b.yz + a.zz * b.zz,
        a.xx * b.x + a.xy * b.y + a.xz * b.z + a.x,
        a.yx * b.x + a.yy * b.y + a.yz * b.z + a.y,
        a.zx * b.x + a.zy * b.y + a.zz * b.z + a.z,
    )


@jit
def kinematics(bodies: Records, freedoms: Records, index: Ints, begin: int, end: int) -> None:
    """Bring the bodies listed in index[begin:end] up to date; parents stand before children."""
    for i in range(begin, end):
        _move(bodies, freedoms, bodies[index[i]])


@jit
def all_kinematics(bodies: Records, freedoms: Records) -> None:
    """Bring every pose up to date."""
    for b in range(1, bodies.shape[0]):
        _move(bodies, freedoms, bodies[b])


@inlined
def _move(bodies: Records, freedoms: Records, body: Record) -> None:
    """The pose of a body from that of its parent, and the axes of its freedoms."""
    f = product(bodies[body.parent].pose, body.origin)
    freedom = freedoms[body.freedom]
    axis, q, kind = freedom.axis, freedom.q, body.kind
    xx, xy, yx, yy, zx, zy, x, y, z = f.xx, f.xy, f.yx, f.yy, f.zx, f.zy, f.x, f.y, f.z
    if kind == REVOLUTE:
        c, s = math.cos(q), math.sin(q)
        xx, xy = c * xx + s * xy, c * xy - s * xx
        yx, yy = c * yx + s * yy, c * yy - s * yx
        zx, zy = c * zx + s * zy, c * zy - s * zx
    elif kind == PRISMATIC:
        x, y, z = x + q * f.xz, y + q * f.yz, z + q * f.zz
    pose = body.pose
    pose.xx, pose.xy, pose.xz = xx, xy, f.xz
    pose.yx, pose.yy, pose.yz = yx, yy, f.yz
    pose.zx, pose.zy, pose.zz = zx, zy, f.zz
    pose.x, pose.y, pose.z = x, y, z
    if kind == BALL:
        _turn_ball(freedoms, body)
    else:
        axis.x, axis.y, axis.z = f.xz, f.yz, f.zz


@jit
def _turn_ball(freedoms: Records, body: Record) -> None:
    """R <- R exp(w) with the rotation vector w; the axes are the columns of R Jl(w).

    exp(w) = I + s [w] + c [w]^2, and the left Jacobian Jl(w) = I + c [w] + k [w]^2.
    """
    first, second, third = (
        freedoms[body.freedom], freedoms[body.freedom + 1], freedoms[body.freedom + 2],
    )  # fmt: skip
    w = (first.q, second.q, third.q)
    t2 = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    if t2 < 1e-2:
        s = 1.0 - t2 / 6.0 * (1.0 - t2 / 20.0 * (1.0 - t2 / 42.0 * (1.0 - t2 / 72.0)))
        c = 0.5 - t2 / 24.0 * (1.0 - t2 / 30.0 * (1.0 - t2 / 56.0 * (1.0 - t2 / 90.0)))
        k = 1.0 / 6.0 - t2 / 120.0 * (1.0 - t2 / 42.0 * (1.0 - t2 / 72.0 * (1.0 - t2 / 110.0)))
    else:
        t = math.sqrt(t2)
        h = math.sin(0.5 * t)
        s, c, k = math.sin(t) / t, 2.0 * h * h / t2, (t - math.sin(t)) / (t2 * t)
    R = body.pose
    row = (R.xx, R.xy, R.xz)
    R.xx, R.xy, R.xz = _times_polynomial(row, w, t2, s, c)
    first.axis.x, second.axis.x, third.axis.x = _times_polynomial(row, w, t2, c, k)
    row = (R.yx, R.yy, R.yz)
    R.yx, R.yy, R.yz = _times_polynomial(row, w, t2, s, c)
    first.axis.y, second.axis.y, third.axis.y = _times_polynomial(row, w, t2, c, k)
    row = (R.zx, R.zy, R.zz)
    R.zx, R.zy, R.zz = _times_polynomial(row, w, t2, s, c)
    first.axis.z, second.axis.z, third.axis.z = _times_polynomial(row, w, t2, c, k)


Triple = tuple[float, float, float]


@inlined
def _times_polynomial(row: Triple, w: Triple, t2: float, a: float, b: float) -> Triple:
    """A row vector times I + a [w] + b [w]^2, where [w]^2 = w w' - t2 I."""
    r0, r1, r2 = row
    x, y, z = w
    v = r0 * x + r1 * y + r2 * z
    return (
        r0 + a * (r1 * z - r2 * y) + b * (v * x - t2 * r0),
        r1 + a * (r2 * x - r0 * z) + b * (v * y - t2 * r1),
        r2 + a * (r0 * y - r1 * x) + b * (v * z - t2 * r2),
    )
