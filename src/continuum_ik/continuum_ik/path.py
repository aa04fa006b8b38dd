"""Points of a path, and the path: position on a straight line, rotation about a fixed axis."""

from __future__ import annotations

import math

from numba import njit

from continuum_ik.equations import aim, factorise, tangents, unit
from continuum_ik.layout import record
from continuum_ik.pose import turn
from continuum_ik.reasons import SUCCESS
from continuum_ik.rod import KERNEL, LANES, LENGTH, MX, RODS, Array, Record

#: Lever that makes a rotation comparable with a displacement, as part of the robot's size.
LEVER = 0.25


@njit(**KERNEL)
def scaled(w: Record, change: Array) -> float:
    """Return the largest number of a change of the unknowns in the scales of the robot."""
    L = w.L
    per_force, per_moment = L * L / w.EI, L / w.EI
    worst = 0.0
    for i in range(LANES):
        force = max(abs(change[0, i]), abs(change[1, i]), abs(change[2, i])) * per_force
        moment = max(abs(change[3, i]), abs(change[4, i])) * per_moment
        worst = max(worst, force, moment, abs(change[5, i]) / L)
    return worst


@njit(**KERNEL)
def largest_rod(w: Record, change: Array) -> int:
    """Return the rod with the largest number of a change of the unknowns, scaled."""
    worst, rod = -1.0, 0
    for i in range(RODS):
        for k in range(6):
            size = abs(change[k, i]) / unit(w, k)
            if size > worst:
                worst, rod = size, i
    return rod


@njit(**KERNEL)
def add(y: Array, factor: float, change: Array) -> None:
    """Add a change of the unknowns, times a factor."""
    for r in range(6):
        for i in range(LANES):
            y[r, i] += factor * change[r, i]


@njit(**KERNEL)
def difference(a: Array, b: Array, out: Array) -> None:
    """Set ``out`` to the change of the unknowns from b to a."""
    for r in range(6):
        for i in range(LANES):
            out[r, i] = a[r, i] - b[r, i]


@njit(**KERNEL)
def along(w: Record, out: Array) -> None:
    """Set ``out`` to the change of the unknowns along the twist, by the tangents at hand."""
    for r in range(6):
        for i in range(LANES):
            change = 0.0
            for j in range(6):
                change += w.tangent[j, r, i] * w.twist[j]
            out[r, i] = change


@njit(**KERNEL)
def lengths_positive(w: Record) -> bool:
    """Whether every rod has a length."""
    shortest = 1.0
    for i in range(RODS):
        shortest = min(shortest, w.rods.y[LENGTH, i])
    return shortest > 0.0


@njit(**KERNEL)
def store(w: Record, entry: Record) -> None:
    """Copy unknowns and pose to an entry."""
    entry.y, entry.pose, entry.stable = w.rods.y, w.pose, w.stable


@njit(**KERNEL)
def load(w: Record, entry: Record) -> None:
    """Copy unknowns and pose from an entry, and aim at that pose."""
    w.rods.y, w.pose, w.stable = entry.y, entry.pose, entry.stable
    aim(w)


@njit(**KERNEL)
def copy_entry(source: Record, to: Record) -> None:
    """Copy one entry to another."""
    to.y, to.pose, to.stable = source.y, source.pose, source.stable


@njit(**KERNEL)
def tell(w: Record, code: int, out: Record) -> None:
    """Fill an OUTCOME with how a solve ended; what there is no solution for is NaN."""
    solved = code == SUCCESS
    entry = w.answer if solved else w.best
    out.code, out.reason, out.route, out.limiting = code, w.reason, w.route, w.limiting
    out.evaluations, out.reached, out.pose = w.evaluations, w.reached, entry.pose
    out.stable = entry.stable if solved else 0
    out.sum_squares = w.answer_sum_squares if solved else math.nan
    out.leg_error = w.answer_leg_error if solved else math.nan
    for i in range(RODS):
        out.lengths[i] = entry.y[LENGTH, i] if solved else math.nan
        for j in range(LENGTH):
            number = entry.y[j, i] if solved else math.nan
            if j < MX:
                out.forces[i, j] = number
            else:
                out.moments[i, j - MX] = number


@njit(**KERNEL)
def tell_last(state: Array, code: int, outcomes: Array) -> None:
    """Do as ``tell`` does about a solver's last solve, for Python."""
    tell(record(state), code, outcomes[0])


@njit(**KERNEL)
def linearise(w: Record) -> bool:
    """Make Jacobian, factors and tangents at the present unknowns and pose."""
    w.age = 0
    if factorise(w):
        tangents(w)
        return True
    w.age = -1
    return False


@njit(**KERNEL)
def lengths_by_pose(w: Record, out: Array) -> None:
    """Fill (6, 6) with d lengths / d pose, taken from the tangents."""
    for i in range(RODS):
        for j in range(6):
            out[i, j] = w.tangent[j, LENGTH, i]


@njit(**KERNEL)
def pose_between(w: Record, part: float) -> None:
    """Set the pose to the point of the path from start to target, and aim at it."""
    if part == 1.0:
        w.pose = w.target
    else:
        start = w.start.pose
        for k in range(3):
            w.pose[0, k] = start[0, k] + part * w.twist[k]
        turn(start, part * w.twist[3], part * w.twist[4], part * w.twist[5], w.pose)
    aim(w)


@njit(**KERNEL)
def twist(w: Record) -> None:
    """Set twist to the way from start to target: position, and rotation vector (base frame)."""
    a, b, out = w.start.pose, w.target, w.twist
    for k in range(3):
        out[k] = b[0, k] - a[0, k]
    # R = R_target R_start', then its rotation vector by way of the quaternion.
    r00, r01, r02 = _dot(b, 1, a, 1), _dot(b, 1, a, 2), _dot(b, 1, a, 3)
    r10, r11, r12 = _dot(b, 2, a, 1), _dot(b, 2, a, 2), _dot(b, 2, a, 3)
    r20, r21, r22 = _dot(b, 3, a, 1), _dot(b, 3, a, 2), _dot(b, 3, a, 3)
    x, y, z = r21 - r12, r02 - r20, r10 - r01
    sine = 0.5 * math.sqrt(x * x + y * y + z * z)
    cosine = 0.5 * (r00 + r11 + r22 - 1.0)
    angle = math.atan2(sine, cosine)
    if sine > 1e-7:
        f = 0.5 * angle / sine
        out[3], out[4], out[5] = f * x, f * y, f * z
    elif cosine > 0.0:
        out[3], out[4], out[5] = 0.5 * x, 0.5 * y, 0.5 * z
    else:
        # Half a turn: R = 2 a a' - I.
        xx, yy, zz = 0.5 * (r00 + 1.0), 0.5 * (r11 + 1.0), 0.5 * (r22 + 1.0)
        s = math.sqrt(max(xx, yy, zz))
        if xx >= yy and xx >= zz:
            x, y, z = s, 0.5 * r01 / s, 0.5 * r02 / s
        elif yy >= zz:
            x, y, z = 0.5 * r01 / s, s, 0.5 * r12 / s
        else:
            x, y, z = 0.5 * r02 / s, 0.5 * r12 / s, s
        out[3], out[4], out[5] = angle * x, angle * y, angle * z


@njit(**KERNEL)
def _dot(a: Array, r: int, b: Array, s: int) -> float:
    return a[r, 0] * b[s, 0] + a[r, 1] * b[s, 1] + a[r, 2] * b[s, 2]


@njit(**KERNEL)
def path_length(w: Record) -> float:
    """Return the length of the path from start to target, turns by a lever [m]."""
    x, y, z, u, v, s = w.twist[0], w.twist[1], w.twist[2], w.twist[3], w.twist[4], w.twist[5]
    turned = math.sqrt(u * u + v * v + s * s)
    return math.sqrt(x * x + y * y + z * z) + LEVER * w.L * turned
