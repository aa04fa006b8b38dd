"""Points of a path, and the path: position on a straight line, rotation about a fixed axis."""

from __future__ import annotations

import math

from numba import njit

from continuum_ik import layout as m
from continuum_ik.equations import aim, choose_steps, factorise, tangents
from continuum_ik.pose import turn
from continuum_ik.rod import KERNEL, Array

#: Lever that makes a rotation comparable with a displacement, as part of the robot's size.
LEVER = 0.25


@njit(**KERNEL)
def scaled(w: Array, at: int) -> float:
    """Return the largest of the 48 numbers at ``at`` in the scales of the robot."""
    L = w[m.LENGTH_TYPICAL]
    per_force = L * L / w[m.EI_TYPICAL]
    per_moment = L / w[m.EI_TYPICAL]
    worst = 0.0
    for i in range(m.LANES):
        force = max(abs(w[at + i]), abs(w[at + 8 + i]), abs(w[at + 16 + i])) * per_force
        moment = max(abs(w[at + 24 + i]), abs(w[at + 32 + i])) * per_moment
        worst = max(worst, force, moment, abs(w[at + 40 + i]) / L)
    return worst


@njit(**KERNEL)
def largest_rod(w: Array, at: int) -> int:
    """Return the rod with the largest of the 48 numbers at ``at``, scaled."""
    L = w[m.LENGTH_TYPICAL]
    per_force = L * L / w[m.EI_TYPICAL]
    per_moment = L / w[m.EI_TYPICAL]
    worst, rod = -1.0, 0
    for i in range(m.RODS):
        size = 0.0
        for k in range(6):
            scale = per_force if k < 3 else (per_moment if k < 5 else 1.0 / L)
            size = max(size, abs(w[at + 8 * k + i]) * scale)
        if size > worst:
            worst, rod = size, i
    return rod


@njit(**KERNEL)
def store(w: Array, at: int) -> None:
    """Copy unknowns and pose to the entry at ``at``."""
    for k in range(m.UNKNOWNS):
        w[at + k] = w[m.Y + k]
    for k in range(12):
        w[at + m.ENTRY_POSE + k] = w[m.POSE + k]


@njit(**KERNEL)
def load(w: Array, at: int) -> None:
    """Copy unknowns and pose from the entry at ``at``, and aim at that pose."""
    for k in range(m.UNKNOWNS):
        w[m.Y + k] = w[at + k]
    for k in range(12):
        w[m.POSE + k] = w[at + m.ENTRY_POSE + k]
    aim(w)


@njit(**KERNEL)
def copy_entry(w: Array, source: int, to: int) -> None:
    """Copy one entry to another."""
    for k in range(m.ENTRY):
        w[to + k] = w[source + k]


@njit(**KERNEL)
def linearise(w: Array) -> bool:
    """Make Jacobian, factors and tangents at the present unknowns and pose."""
    w[m.AGE] = 0.0
    if factorise(w, choose_steps(w, m.COARSE_X2)):
        tangents(w)
        return True
    w[m.AGE] = -1.0
    return False


@njit(**KERNEL)
def exchange_rules(w: Array) -> None:
    """Change from the accuracy that was asked for to the fine one, or back."""
    for k in range(m.RULES, m.RULES + m.RULES_SIZE):
        w[k], w[k + m.RULES_SIZE] = w[k + m.RULES_SIZE], w[k]


@njit(**KERNEL)
def pose_between(w: Array, part: float) -> None:
    """Set POSE to the point of the path from START to TARGET, and aim at it."""
    for k in range(3):
        w[m.POSE + k] = w[m.START + m.ENTRY_POSE + k] + part * w[m.TWIST + k]
    turn(
        w,
        m.START + m.ENTRY_POSE + 3,
        part * w[m.TWIST + 3],
        part * w[m.TWIST + 4],
        part * w[m.TWIST + 5],
        m.POSE + 3,
    )
    if part == 1.0:
        for k in range(12):
            w[m.POSE + k] = w[m.TARGET + k]
    aim(w)


@njit(**KERNEL)
def twist(w: Array) -> None:
    """Set TWIST to the way from START to TARGET: position, and rotation vector (base frame)."""
    a, b = m.START + m.ENTRY_POSE, m.TARGET
    for k in range(3):
        w[m.TWIST + k] = w[b + k] - w[a + k]
    # R = R_target R_start', then its rotation vector by way of the quaternion.
    r = (
        (_row(w, b + 3, a + 3), _row(w, b + 3, a + 6), _row(w, b + 3, a + 9)),
        (_row(w, b + 6, a + 3), _row(w, b + 6, a + 6), _row(w, b + 6, a + 9)),
        (_row(w, b + 9, a + 3), _row(w, b + 9, a + 6), _row(w, b + 9, a + 9)),
    )
    x, y, z = r[2][1] - r[1][2], r[0][2] - r[2][0], r[1][0] - r[0][1]
    sine = 0.5 * math.sqrt(x * x + y * y + z * z)
    cosine = 0.5 * (r[0][0] + r[1][1] + r[2][2] - 1.0)
    angle = math.atan2(sine, cosine)
    if sine > 1e-7:
        f = 0.5 * angle / sine
        w[m.TWIST + 3], w[m.TWIST + 4], w[m.TWIST + 5] = f * x, f * y, f * z
    elif cosine > 0.0:
        w[m.TWIST + 3], w[m.TWIST + 4], w[m.TWIST + 5] = 0.5 * x, 0.5 * y, 0.5 * z
    else:
        # Half a turn: R = 2 a a' - I.
        xx, yy, zz = 0.5 * (r[0][0] + 1.0), 0.5 * (r[1][1] + 1.0), 0.5 * (r[2][2] + 1.0)
        if xx >= yy and xx >= zz:
            s = math.sqrt(xx)
            x, y, z = s, 0.5 * r[0][1] / s, 0.5 * r[0][2] / s
        elif yy >= zz:
            s = math.sqrt(yy)
            x, y, z = 0.5 * r[0][1] / s, s, 0.5 * r[1][2] / s
        else:
            s = math.sqrt(zz)
            x, y, z = 0.5 * r[0][2] / s, 0.5 * r[1][2] / s, s
        w[m.TWIST + 3], w[m.TWIST + 4], w[m.TWIST + 5] = angle * x, angle * y, angle * z


@njit(**KERNEL)
def _row(w: Array, a: int, b: int) -> float:
    return w[a] * w[b] + w[a + 1] * w[b + 1] + w[a + 2] * w[b + 2]


@njit(**KERNEL)
def path_length(w: Array) -> float:
    """Return the length of the path from START to TARGET, turns by a lever [m]."""
    x, y, z = w[m.TWIST], w[m.TWIST + 1], w[m.TWIST + 2]
    u, v, s = w[m.TWIST + 3], w[m.TWIST + 4], w[m.TWIST + 5]
    turned = math.sqrt(u * u + v * v + s * s)
    return math.sqrt(x * x + y * y + z * z) + LEVER * w[m.LENGTH_TYPICAL] * turned
