"""Dynamics of the n-link planar arm in compiled kernels.

Equations (1) to (3) of :mod:`~ft_controller.dynamics` for links i = 0 .. n-1 with absolute angles
phi_i = q_0 + .. + q_i. The sums over the outer links in the Lagrangian's M and N do not depend on
the row, so they are taken once from tip to base. What is left of M is one product for each element,
so a row costs O(n) and rows can be shared out.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ft_controller.records import Array, Records, record

__all__ = [
    "LINK",
    "WORK",
    "add_friction",
    "element",
    "end_effector",
    "jacobian",
    "newton_euler",
    "outer_sums",
    "potential",
]

LINK = record(floats="mass length com inertia friction gravity")
"""One link of an arm; see :class:`~ft_controller.arm.Arm` for the units."""

WORK = record(floats="c s x y sx sy inertia fx fy bias acceleration")
"""Intermediate results for one link, named as in :func:`outer_sums`.

Direction (c, s) and joint (x, y) of the link, first moment (sx, sy) and inertia of the outer links,
force (fx, fy) of the link, N_j, and qddot or what is commanded in its place.
"""


@njit(cache=True, nogil=True, inline="always")
def _add(total: float, rest: float, term: float) -> tuple[float, float]:
    """Total + term with its rounding error collected in rest (Knuth's two-sum)."""
    new = total + term
    part = new - total
    return new, rest + ((total - (new - part)) + (term - part))


@njit(cache=True, nogil=True, inline="always")
def _cos_sin(angle: float, rest: float) -> tuple[float, float]:
    """Cosine and sine of angle + rest, where rest is a rounding error."""
    c = math.cos(angle)
    s = math.sin(angle)
    return c - rest * s, s + rest * c


@njit(cache=True, nogil=True, inline="never")
def outer_sums(links: Records, q: Array, qdot: Array, work: Records) -> None:
    """Everything that the rows share: the outer links as one body, and N + G + V qdot.

    For joint j, over all links k >= j: first moment S_j = sum m_k (c_k - p_j) and moment of inertia
    I_j about p_j; force F_j = sum m_k cddot_k at qddot = 0, and its moment about p_j, which is N_j.
    """
    n = q.size
    phi = rest = rate = x = y = ax = 0.0
    ay = links[0].gravity
    for i in range(n):
        phi, rest = _add(phi, rest, q[i])
        rate += qdot[i]
        c, s = _cos_sin(phi, rest)
        work[i].c = c
        work[i].s = s
        work[i].x = x
        work[i].y = y
        w2 = rate * rate
        m, l, lc = links[i].mass, links[i].length, links[i].com
        # Inertial force of the link's own mass; gravity enters as an upward acceleration.
        work[i].fx = m * (ax - w2 * lc * c)
        work[i].fy = m * (ay - w2 * lc * s)
        x += l * c
        y += l * s
        ax -= w2 * l * c
        ay -= w2 * l * s
    mass = sx = sy = inertia = fx = fy = moment = 0.0
    for i in range(n - 1, -1, -1):
        m, l, lc = links[i].mass, links[i].length, links[i].com
        c, s = work[i].c, work[i].s
        dx, dy = l * c, l * s
        inertia += links[i].inertia + m * lc * lc + mass * l * l + 2.0 * (dx * sx + dy * sy)
        sx += m * lc * c + mass * dx
        sy += m * lc * s + mass * dy
        mass += m
        fx0, fy0 = work[i].fx, work[i].fy
        moment += lc * (c * fy0 - s * fx0) + (dx * fy - dy * fx)
        fx += fx0
        fy += fy0
        work[i].sx = sx
        work[i].sy = sy
        work[i].inertia = inertia
        work[i].bias = moment + links[i].friction * qdot[i]


@njit(cache=True, nogil=True, inline="always")
def add_friction(links: Records, speed: Array, work: Records) -> None:
    """Nothing: V qdot is part of N in equation (2), and so of :func:`outer_sums`."""


@njit(cache=True, nogil=True, inline="always")
def element(work: Records, i: int, j: int) -> float:
    """M_ij for i <= j: the outer body j, turned about joint i."""
    rx = work[j].x - work[i].x
    ry = work[j].y - work[i].y
    return work[j].inertia + (rx * work[j].sx + ry * work[j].sy)


@njit(cache=True, nogil=True, inline="never")
def newton_euler_into(
    links: Records, q: Array, qdot: Array, qddot: Array, work: Records, tau: Array
) -> None:
    """Equation (1) in O(n): accelerations outwards, forces inwards."""
    n = q.size
    phi = rest = rate = turn = ax = 0.0
    ay = links[0].gravity
    for i in range(n):
        phi, rest = _add(phi, rest, q[i])
        rate += qdot[i]
        turn += qddot[i]
        c, s = _cos_sin(phi, rest)
        w2 = rate * rate
        bx = -w2 * c - turn * s
        by = -w2 * s + turn * c
        m, l, lc = links[i].mass, links[i].length, links[i].com
        work[i].c = c
        work[i].s = s
        work[i].fx = m * (ax + lc * bx)
        work[i].fy = m * (ay + lc * by)
        work[i].acceleration = turn
        ax += l * bx
        ay += l * by
    fx = fy = moment = 0.0
    for i in range(n - 1, -1, -1):
        l, lc = links[i].length, links[i].com
        c, s = work[i].c, work[i].s
        fx0, fy0 = work[i].fx, work[i].fy
        moment += links[i].inertia * work[i].acceleration
        moment += lc * (c * fy0 - s * fx0) + l * (c * fy - s * fx)
        fx += fx0
        fy += fy0
        tau[i] = moment + links[i].friction * qdot[i]


@njit(cache=True, nogil=True)
def newton_euler(links: Records, q: Array, qdot: Array, qddot: Array) -> Array:
    """Equation (1) in O(n), shape (n,) [N m]."""
    tau = np.empty(q.size)
    newton_euler_into(links, q, qdot, qddot, np.empty(q.size, WORK), tau)
    return tau


@njit(cache=True, nogil=True)
def potential(links: Records, work: Records) -> float:
    """Potential energy after :func:`outer_sums` [J]."""
    total = 0.0
    for i in range(work.size):
        total += links[i].mass * links[0].gravity * (work[i].y + links[i].com * work[i].s)
    return total


@njit(cache=True, nogil=True)
def end_effector(links: Records, q: Array) -> Array:
    """Position and absolute angle of the tip, (x, y, phi)."""
    out = np.zeros(3)
    for i in range(q.size):
        out[2] += q[i]
        out[0] += links[i].length * math.cos(out[2])
        out[1] += links[i].length * math.sin(out[2])
    return out


@njit(cache=True, nogil=True)
def jacobian(links: Records, q: Array) -> Array:
    """Derivative of :func:`end_effector`, shape (3, n)."""
    n = q.size
    out = np.ones((3, n))
    tip = end_effector(links, q)
    phi = x = y = 0.0
    for i in range(n):
        out[0, i] = -(tip[1] - y)
        out[1, i] = tip[0] - x
        phi += q[i]
        x += links[i].length * math.cos(phi)
        y += links[i].length * math.sin(phi)
    return out
