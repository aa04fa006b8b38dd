"""Dynamics of a serial arm in compiled kernels, whatever kind of arm it is.

Hamilton, Bennett and Walker, "Simulation of a reliable parallel robot controller", equations
(1) to (3):

    tau = M(q) qddot + N(q, qdot) + G(q) + V qdot                               (1)
    tau = M(q) (qddot_d + K_D (qdot_d - qdot) + K_P (q_d - q)) + N(q, qdot)     (2)
    qddot = M(q)^-1 (tau - N(q, qdot))                                          (3)

(The printed (3) has M where M^-1 belongs in front of N.) A row of M gives the same bits whoever
computes it and in whatever company: no fast-math, a fixed order of summation. Bitwise voting rests
on that.

Every kernel takes the arm as ``links``, shape (n,). The type of its records says which kind it is,
:mod:`~ft_controller.planar` or :mod:`~ft_controller.spatial`, and so which kernels are compiled in.
``work``, shape (n,), is overwritten.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np
from numba import njit
from numba.extending import overload
from numpy.typing import ArrayLike

from ft_controller import planar, spatial
from ft_controller.records import Array, Flags, Records, record

__all__ = [
    "JOINT",
    "acceleration",
    "add_friction",
    "commanded",
    "computed_torque",
    "energy",
    "inertia_and_bias",
    "inertia_row",
    "joints",
    "make_links",
    "make_work",
    "outer_sums",
    "torque_element",
]

JOINT = record(floats="q qdot q_d qdot_d qddot_d kp kd locked")
"""What equation (2) takes for one joint: measured and desired motion, gains; locked: no part."""


def joints(
    q: ArrayLike,
    qdot: ArrayLike,
    q_d: ArrayLike,
    qdot_d: ArrayLike = 0.0,
    qddot_d: ArrayLike = 0.0,
    kp: ArrayLike = 100.0,
    kd: ArrayLike = 20.0,
    locked: ArrayLike = 0.0,
) -> Records:
    """The inputs of equation (2), shape (n,), of ``JOINT``; single values are for all joints."""
    out = np.zeros(np.size(q), JOINT)
    out["q"], out["qdot"], out["q_d"], out["qdot_d"] = q, qdot, q_d, qdot_d
    out["qddot_d"], out["kp"], out["kd"], out["locked"] = qddot_d, kp, kd, locked
    return out


def make_links(rows: list[tuple[float, ...]]) -> Records:
    """The links of an arm from what ``links.tolist()`` gave; their width says which kind it is."""
    kinds = {len(kind.LINK.names or ()): kind.LINK for kind in (planar, spatial)}
    return np.array([tuple(row) for row in rows], kinds[len(rows[0])])


def _kind(records: Any) -> ModuleType:
    """The module of an arm by its links or its work, or by the numba type of them."""
    return spatial if "ux" in records.dtype.fields else planar


def make_work(links: Records) -> Records:
    """Room for the intermediate results of an arm, shape (n,)."""
    return np.zeros(links.size, _kind(links).WORK)


@overload(make_work, strict=False)
def _make_work(links: Any) -> Any:
    work = _kind(links).WORK
    return lambda links: np.empty(links.size, work)


def outer_sums(links: Records, q: Array, qdot: Array, work: Records) -> None:
    """Everything that the rows share: the outer links as one body, and N + G.

    Of a planar arm also V qdot; see :func:`add_friction`.
    """
    _kind(links).outer_sums(links, q, qdot, work)


@overload(outer_sums, strict=False)
def _outer_sums(links: Any, q: Any, qdot: Any, work: Any) -> Any:
    return _kind(links).outer_sums.py_func


def add_friction(links: Records, speed: Array, work: Records) -> None:
    """Add to N + G the friction at given speeds, shape (n,), where it is not in it already."""
    _kind(links).add_friction(links, speed, work)


@overload(add_friction, strict=False)
def _add_friction(links: Any, speed: Any, work: Any) -> Any:
    return _kind(links).add_friction.py_func


def _element(work: Records, i: int, j: int) -> float:
    """M_ij for i <= j, after :func:`outer_sums`."""
    return float(_kind(work).element(work, i, j))


@overload(_element, strict=False)
def _element_of(work: Any, i: Any, j: Any) -> Any:
    return _kind(work).element.py_func


def _potential(links: Records, work: Records) -> float:
    """Potential energy after :func:`outer_sums` [J]."""
    return float(_kind(links).potential(links, work))


@overload(_potential, strict=False)
def _potential_of(links: Any, work: Any) -> Any:
    return _kind(links).potential.py_func


@njit(cache=True, nogil=True, inline="never")
def inertia_row(work: Records, i: int, row: Array) -> None:
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
def commanded(joints: Records, work: Records) -> None:
    """The bracket of equation (2): qddot_d + K_D (qdot_d - qdot) + K_P (q_d - q).

    It is 0 for a locked joint.
    """
    for i in range(joints.size):
        j = joints[i]
        work[i].acceleration = 0.0
        if j.locked == 0.0:
            work[i].acceleration = j.qddot_d + j.kd * (j.qdot_d - j.qdot) + j.kp * (j.q_d - j.q)


@njit(cache=True, nogil=True)
def inertia_and_bias(links: Records, q: Array, qdot: Array) -> tuple[Array, Array]:
    """M, shape (n, n), and N + G + V qdot, shape (n,)."""
    n = q.size
    work = make_work(links)
    outer_sums(links, q, qdot, work)
    add_friction(links, qdot, work)
    inertia = np.empty((n, n))
    for i in range(n):
        inertia_row(work, i, inertia[i])
    return inertia, work["bias"].copy()


@njit(cache=True, nogil=True)
def computed_torque(links: Records, joints: Records) -> Array:
    """Equation (2) by one processor, shape (n,): the reference of every controller."""
    n = joints.size
    work = make_work(links)
    outer_sums(links, joints["q"], joints["qdot"], work)
    add_friction(links, joints["qdot_d"], work)
    commanded(joints, work)
    row = np.empty(n)
    tau = np.zeros(n)
    for i in range(n):
        if joints[i].locked == 0.0:
            inertia_row(work, i, row)
            tau[i] = torque_element(row, work[i].bias, work["acceleration"])
    return tau


@njit(cache=True, nogil=True)
def acceleration(links: Records, q: Array, qdot: Array, tau: Array, locked: Flags) -> Array:
    """Equation (3) by a Cholesky factor of M; a locked joint does not accelerate, shape (n,)."""
    n = q.size
    factor, bias = inertia_and_bias(links, q, qdot)
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
def energy(links: Records, q: Array, qdot: Array) -> float:
    """Kinetic and potential energy [J]."""
    n = q.size
    work = make_work(links)
    outer_sums(links, q, np.zeros(n), work)
    row = np.empty(n)
    total = _potential(links, work)
    for i in range(n):
        inertia_row(work, i, row)
        for j in range(n):
            total += 0.5 * qdot[i] * row[j] * qdot[j]
    return total
