"""Dynamics of the n-link planar arm in compiled kernels.

Hamilton, Bennett and Walker, "Simulation of a reliable parallel robot controller", equations
(1) to (3), for links i = 0 .. n-1 with absolute angles phi_i = q_0 + .. + q_i:

    tau = M(q) qddot + N(q, qdot) + G(q) + V qdot                               (1)
    tau = M(q) (qddot_d + K_D (qdot_d - qdot) + K_P (q_d - q)) + N(q, qdot)     (2)
    qddot = M(q)^-1 (tau - N(q, qdot))                                          (3)

(The printed (3) has M where M^-1 belongs in front of N.) The sums over the outer links in the
Lagrangian's M and N do not depend on the row, so they are taken once from tip to base. What is left
of M is one product for each element, so a row costs O(n) and rows can be shared out.

A row gives the same bits whoever computes it and in whatever company: no fast-math, a fixed order
of summation. Bitwise voting rests on that.

Every kernel takes the arm as ``model``, shape (6, n): mass, length, com, inertia, friction,
gravity. ``work`` has the shape (WORK_ROWS, n) and is overwritten.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = [
    "WORK_ROWS",
    "acceleration",
    "computed_torque",
    "end_effector",
    "energy",
    "inertia_and_bias",
    "inertia_row",
    "jacobian",
    "newton_euler",
    "outer_sums",
    "torque_element",
]

Array = NDArray[np.float64]

WORK_ROWS = 12
_C, _S, _X, _Y, _MC, _SX, _SY, _IC, _FX, _FY, _N, _A = range(WORK_ROWS)


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
def outer_sums(model: Array, q: Array, qdot: Array, work: Array) -> None:
    """Everything that the rows share: the outer links as one body, and N + G + V qdot.

    For joint j, over all links k >= j: first moment S_j = sum m_k (c_k - p_j) and moment of inertia
    I_j about p_j; force F_j = sum m_k cddot_k at qddot = 0, and its moment about p_j, which is N_j.
    """
    n = q.size
    phi = 0.0
    rest = 0.0
    rate = 0.0
    x = 0.0
    y = 0.0
    ax = 0.0
    ay = model[5, 0]
    for i in range(n):
        phi, rest = _add(phi, rest, q[i])
        rate += qdot[i]
        c, s = _cos_sin(phi, rest)
        work[_C, i] = c
        work[_S, i] = s
        work[_X, i] = x
        work[_Y, i] = y
        w2 = rate * rate
        m, l, lc = model[0, i], model[1, i], model[2, i]
        # Inertial force of the link's own mass; gravity enters as an upward acceleration.
        work[_FX, i] = m * (ax - w2 * lc * c)
        work[_FY, i] = m * (ay - w2 * lc * s)
        x += l * c
        y += l * s
        ax -= w2 * l * c
        ay -= w2 * l * s
    mass = 0.0
    sx = 0.0
    sy = 0.0
    inertia = 0.0
    fx = 0.0
    fy = 0.0
    moment = 0.0
    for i in range(n - 1, -1, -1):
        m, l, lc = model[0, i], model[1, i], model[2, i]
        c, s = work[_C, i], work[_S, i]
        dx, dy = l * c, l * s
        inertia += model[3, i] + m * lc * lc + mass * l * l + 2.0 * (dx * sx + dy * sy)
        sx += m * lc * c + mass * dx
        sy += m * lc * s + mass * dy
        mass += m
        fx0, fy0 = work[_FX, i], work[_FY, i]
        moment += lc * (c * fy0 - s * fx0) + (dx * fy - dy * fx)
        fx += fx0
        fy += fy0
        work[_SX, i] = sx
        work[_SY, i] = sy
        work[_IC, i] = inertia
        work[_N, i] = moment + model[4, i] * qdot[i]


@njit(cache=True, nogil=True, inline="always")
def _element(work: Array, i: int, j: int) -> float:
    """M_ij for i <= j: the outer body j, turned about joint i."""
    rx = work[_X, j] - work[_X, i]
    ry = work[_Y, j] - work[_Y, i]
    return work[_IC, j] + (rx * work[_SX, j] + ry * work[_SY, j])


@njit(cache=True, nogil=True, inline="never")
def inertia_row(work: Array, i: int, row: Array) -> None:
    """Row i of M, shape (n,), after :func:`outer_sums`."""
    for j in range(i):
        row[j] = _element(work, j, i)
    for j in range(i, row.size):
        row[j] = _element(work, i, j)


@njit(cache=True, nogil=True, inline="never")
def torque_element(row: Array, bias: float, acceleration: Array) -> float:
    """tau_i of equation (2): row i of M times the commanded acceleration, plus N_i."""
    total = 0.0
    for j in range(row.size):
        total += row[j] * acceleration[j]
    return total + bias


@njit(cache=True, nogil=True, inline="never")
def commanded(
    q: Array,
    qdot: Array,
    qd: Array,
    vd: Array,
    ad: Array,
    kp: Array,
    kd: Array,
    locked: Array,
    out: Array,
) -> None:
    """qddot_d + K_D (qdot_d - qdot) + K_P (q_d - q); 0 for a locked joint."""
    for i in range(q.size):
        if locked[i] != 0.0:
            out[i] = 0.0
        else:
            out[i] = ad[i] + kd[i] * (vd[i] - qdot[i]) + kp[i] * (qd[i] - q[i])


@njit(cache=True, nogil=True)
def inertia_and_bias(model: Array, q: Array, qdot: Array) -> tuple[Array, Array]:
    """M, shape (n, n), and N + G + V qdot, shape (n,)."""
    n = q.size
    work = np.empty((WORK_ROWS, n))
    outer_sums(model, q, qdot, work)
    inertia = np.empty((n, n))
    for i in range(n):
        inertia_row(work, i, inertia[i])
    return inertia, work[_N].copy()


@njit(cache=True, nogil=True)
def computed_torque(
    model: Array,
    q: Array,
    qdot: Array,
    qd: Array,
    vd: Array,
    ad: Array,
    kp: Array,
    kd: Array,
    locked: Array,
) -> Array:
    """Equation (2) by one processor, shape (n,): the reference of every controller."""
    n = q.size
    work = np.empty((WORK_ROWS, n))
    outer_sums(model, q, qdot, work)
    commanded(q, qdot, qd, vd, ad, kp, kd, locked, work[_A])
    row = np.empty(n)
    tau = np.zeros(n)
    for i in range(n):
        if locked[i] == 0.0:
            inertia_row(work, i, row)
            tau[i] = torque_element(row, work[_N, i], work[_A])
    return tau


@njit(cache=True, nogil=True, inline="never")
def newton_euler_into(
    model: Array, q: Array, qdot: Array, qddot: Array, work: Array, tau: Array
) -> None:
    """Equation (1) in O(n): accelerations outwards, forces inwards."""
    n = q.size
    phi = 0.0
    rest = 0.0
    rate = 0.0
    turn = 0.0
    ax = 0.0
    ay = model[5, 0]
    for i in range(n):
        phi, rest = _add(phi, rest, q[i])
        rate += qdot[i]
        turn += qddot[i]
        c, s = _cos_sin(phi, rest)
        w2 = rate * rate
        bx = -w2 * c - turn * s
        by = -w2 * s + turn * c
        m, l, lc = model[0, i], model[1, i], model[2, i]
        work[_C, i] = c
        work[_S, i] = s
        work[_FX, i] = m * (ax + lc * bx)
        work[_FY, i] = m * (ay + lc * by)
        work[_A, i] = turn
        ax += l * bx
        ay += l * by
    fx = 0.0
    fy = 0.0
    moment = 0.0
    for i in range(n - 1, -1, -1):
        l, lc = model[1, i], model[2, i]
        c, s = work[_C, i], work[_S, i]
        fx0, fy0 = work[_FX, i], work[_FY, i]
        moment += model[3, i] * work[_A, i]
        moment += lc * (c * fy0 - s * fx0) + l * (c * fy - s * fx)
        fx += fx0
        fy += fy0
        tau[i] = moment + model[4, i] * qdot[i]


@njit(cache=True, nogil=True)
def newton_euler(model: Array, q: Array, qdot: Array, qddot: Array) -> Array:
    """Equation (1) in O(n), shape (n,) [N m]."""
    tau = np.empty(q.size)
    newton_euler_into(model, q, qdot, qddot, np.empty((WORK_ROWS, q.size)), tau)
    return tau


@njit(cache=True, nogil=True)
def acceleration(model: Array, q: Array, qdot: Array, tau: Array, locked: Array) -> Array:
    """Equation (3) by a Cholesky factor of M; a locked joint does not accelerate, shape (n,)."""
    n = q.size
    factor, bias = inertia_and_bias(model, q, qdot)
    out = np.empty(n)
    for i in range(n):
        out[i] = tau[i] - bias[i]
        if locked[i]:
            factor[i, :] = 0.0
            factor[:, i] = 0.0
            factor[i, i] = 1.0
            out[i] = 0.0
    for j in range(n):
        for k in range(j):
            factor[j, j] -= factor[j, k] * factor[j, k]
        factor[j, j] = math.sqrt(factor[j, j])
        for i in range(j + 1, n):
            total = factor[i, j]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            factor[i, j] = total / factor[j, j]
    for i in range(n):
        for k in range(i):
            out[i] -= factor[i, k] * out[k]
        out[i] /= factor[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            out[i] -= factor[k, i] * out[k]
        out[i] /= factor[i, i]
    return out


@njit(cache=True, nogil=True)
def energy(model: Array, q: Array, qdot: Array) -> float:
    """Kinetic and potential energy [J]."""
    inertia, _ = inertia_and_bias(model, q, np.zeros(q.size))
    kinetic = 0.0
    potential = 0.0
    phi = 0.0
    y = 0.0
    for i in range(q.size):
        for j in range(q.size):
            kinetic += 0.5 * qdot[i] * inertia[i, j] * qdot[j]
        phi += q[i]
        potential += model[0, i] * model[5, 0] * (y + model[2, i] * math.sin(phi))
        y += model[1, i] * math.sin(phi)
    return kinetic + potential


@njit(cache=True, nogil=True)
def end_effector(model: Array, q: Array) -> Array:
    """Position and absolute angle of the tip, (x, y, phi)."""
    out = np.zeros(3)
    for i in range(q.size):
        out[2] += q[i]
        out[0] += model[1, i] * math.cos(out[2])
        out[1] += model[1, i] * math.sin(out[2])
    return out


@njit(cache=True, nogil=True)
def jacobian(model: Array, q: Array) -> Array:
    """Derivative of :func:`end_effector`, shape (3, n)."""
    n = q.size
    out = np.ones((3, n))
    tip = end_effector(model, q)
    phi = 0.0
    x = 0.0
    y = 0.0
    for i in range(n):
        out[0, i] = -(tip[1] - y)
        out[1, i] = tip[0] - x
        phi += q[i]
        x += model[1, i] * math.cos(phi)
        y += model[1, i] * math.sin(phi)
    return out
