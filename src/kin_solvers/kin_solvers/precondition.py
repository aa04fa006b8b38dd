"""Sums of equations that bound one variable each: P F instead of F.

Slopes are taken over whole hulls: J[k] is half the difference of F between the last and the first
vertex of variable k, the others at their means. P = (J J' + eps I)^-1 J; any P is valid, so its
rounding does not matter.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from kin_solvers.compiled import Array, Records, helper, maker
from kin_solvers.lanes import ROW, address, combine, dot, multiply, multiply_derivative
from kin_solvers.products import ROWS, Products

#: Part of a null space that a variable must have to become its parameter.
PARAMETER_SHARE = 0.1


class Linear(NamedTuple):
    """Slopes and preconditioner of V variables and R equations.

    Attributes:
        J: Slopes, shape (V, R).
        P: Preconditioner, shape (V, R) or more rows.
        N: Cholesky factor, shape (V, V).
        B: Its inverse, and in the last row the null direction, shape (V + 1, V).
    """

    J: Array
    P: Array
    N: Array
    B: Array


@maker
def make_linear(variables: int, rows: int) -> Linear:
    """Room for so many variables and equations; P has a row of zeros at its end."""
    return Linear(
        np.zeros((variables, rows)),
        np.zeros((variables + 1, rows)),
        np.zeros((variables, variables)),
        np.zeros((variables + 1, variables)),
    )


class Slopes(NamedTuple):
    """Room for the slopes of a half: mean of each joint, products after it, one matrix."""

    mean: Array
    after: Array
    X: Array


@maker
def make_slopes(joints: int) -> Slopes:
    """Room for halves of so many joints at most."""
    return Slopes(np.zeros((joints + 1, ROWS)), np.zeros((joints + 1, ROWS)), np.zeros((2, ROWS)))


@helper
def loop_slopes(loops: Records, products: Products, room: Slopes, J: Array) -> None:
    """J of the conformal rows of every loop, shape (V, 16 L).

    The mean of a product over independent vertices is the product of the means.
    """
    joints = products.joints
    mean = address(room.mean)
    after = room.after
    a = address(room.after)
    x = address(room.X)
    for k in range(J.shape[0]):
        for r in range(J.shape[1]):
            J[k, r] = 0.0
    for l in range(loops.size):
        for side in range(2):
            half = products.halves[l, side]
            first = half.first
            length = half.length
            sign = -0.5 if side == 0 else 0.5
            g = address(products.G) + 4 * ROW * first
            for t in range(length):
                h = g + 4 * ROW * t
                combine(mean + ROW * t, h, 0.5, h + ROW * (joints[first + t].count - 1), 0.5)
            # after[t] = mean[t] mean[t+1] ...; after[0] serves as the product before t
            for r in range(ROWS):
                unit = 1.0 if (r == 0 or r == 5 or r == 10) else 0.0
                after[length, r] = unit
                after[0, r] = unit
            for t in range(length - 1, 0, -1):
                multiply(a + ROW * t, mean + ROW * t, a + ROW * (t + 1), 1.0)
            for t in range(length):
                h = g + 4 * ROW * t
                combine(x, h, -sign, h + ROW * (joints[first + t].count - 1), sign)
                if t > 0:
                    multiply_derivative(x, a, x)
                multiply(x, x, a + ROW * (t + 1), 0.0)
                k = joints[first + t].variable
                if loops[l].point:
                    for r in range(3, ROWS, 4):
                        J[k, ROWS * l + r] += room.X[0, r]
                else:
                    row = address(J) + 8 * (J.shape[1] * k + ROWS * l)
                    combine(row, row, 1.0, x, 1.0)
                if t + 1 < length:
                    multiply(a, a, mean + ROW * t, 1.0)


@helper
def regularisation(factor: float, widest: float, reach: float) -> float:
    """What is added to J J' for boxes of a largest half-width."""
    return factor * widest * widest * widest * widest * (1.0 + reach * reach)


@helper
def precondition_rows(linear: Linear, eps: float) -> None:
    """P = (J J' + eps I)^-1 J by Cholesky, in rows of 16.

    On a curve of solutions (a null direction n of J') row k of P J' is e_k - n_k n: each variable
    would be bounded by all others at once. Taking the right multiple of row j from the others
    leaves e_k - (n_k / n_j) e_j: they are bounded by the parameter j alone.
    """
    J, P, N, B = linear
    V, R = J.shape
    loops = R // ROWS
    a = address(J)
    b = address(P)
    row = 8 * R
    for i in range(V):
        for j in range(i + 1):
            s = 0.0
            for l in range(loops):
                s += dot(a + row * i + ROW * l, a + row * j + ROW * l)
            N[i, j] = s
    eps = _factor(N, V, eps)
    for i in range(V):
        x = N[i, i]
        for l in range(loops):
            o = b + row * i + ROW * l
            combine(o, a + row * i + ROW * l, x, o, 0.0)
            for m in range(i):
                combine(o, o, 1.0, b + row * m + ROW * l, -x * N[i, m])
    for i in range(V - 1, -1, -1):
        x = N[i, i]
        for l in range(loops):
            o = b + row * i + ROW * l
            combine(o, o, x, o, 0.0)
            for m in range(i + 1, V):
                combine(o, o, 1.0, b + row * m + ROW * l, -x * N[m, i])
    j = _find_parameter(N, B, V, eps)
    if j >= 0:
        for k in range(V):
            if k != j:
                for l in range(loops):
                    o = b + row * k + ROW * l
                    combine(o, o, 1.0, b + row * j + ROW * l, -B[V, k])


@helper
def precondition(linear: Linear, eps: float) -> None:
    """The same for any number of equations."""
    J, P, N, B = linear
    V, R = J.shape
    for i in range(V):
        for j in range(i + 1):
            s = 0.0
            for r in range(R):
                s += J[i, r] * J[j, r]
            N[i, j] = s
    eps = _factor(N, V, eps)
    for i in range(V):
        for r in range(R):
            s = J[i, r]
            for m in range(i):
                s -= N[i, m] * P[m, r]
            P[i, r] = s * N[i, i]
    for i in range(V - 1, -1, -1):
        for r in range(R):
            s = P[i, r]
            for m in range(i + 1, V):
                s -= N[m, i] * P[m, r]
            P[i, r] = s * N[i, i]
    j = _find_parameter(N, B, V, eps)
    if j >= 0:
        for k in range(V):
            if k != j:
                for r in range(R):
                    P[k, r] -= B[V, k] * P[j, r]


@helper
def _factor(N: Array, V: int, eps: float) -> float:
    """Cholesky factor of N + eps I in place, inverse numbers of its diagonal on it; returns eps.

    eps is raised to a part of N that rounding cannot reach: any eps is valid, but the tiny one of a
    tiny box would leave a singular N to be divided by its own rounding errors, until P overflows.
    """
    trace = 0.0
    for j in range(V):
        trace += N[j, j]
    eps = max(eps, 1e-12 * trace)
    for j in range(V):
        s = N[j, j] + eps
        for m in range(j):
            s -= N[j, m] * N[j, m]
        d = 1.0 / math.sqrt(max(s, 1e-200))
        N[j, j] = d
        for i in range(j + 1, V):
            s = N[i, j]
            for m in range(j):
                s -= N[i, m] * N[j, m]
            N[i, j] = s * d
    return eps


@helper
def _find_parameter(N: Array, B: Array, V: int, eps: float) -> int:
    """The variable that is to be the parameter of a curve of solutions; -1 if there is none.

    Args:
        N: Cholesky factor of M = J J' + eps I below, inverse numbers of its diagonal on it.
        B: Room for the inverse of the factor; B[k, k'] then gives column j of M^-1 in its last row.
        V: Number of variables.
        eps: The regularisation; eps M^-1 is near the projection on the null space of J'.

    Returns:
        The variable j that takes the largest part in the null space; B[V, k] = M^-1[k, j] /
        M^-1[j, j].
    """
    best = -1
    largest = PARAMETER_SHARE
    for j in range(V):
        B[j, j] = N[j, j]
        part = B[j, j] * B[j, j]
        for i in range(j + 1, V):
            s = 0.0
            for m in range(j, i):
                s -= N[i, m] * B[m, j]
            B[i, j] = s * N[i, i]
            part += B[i, j] * B[i, j]
        if eps * part > largest:
            largest = eps * part
            best = j
    if best >= 0:
        for k in range(V):
            s = 0.0
            for m in range(max(k, best), V):
                s += B[m, k] * B[m, best]
            B[V, k] = s * (eps / largest)
    return best
