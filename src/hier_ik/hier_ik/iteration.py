"""The compiled loop over rounds and components, and the residual of every closure."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hier_ik import layout as at
from hier_ik.kernels import MINUS_ONE, _jit, assemble, kinematics, mul, solve_single
from hier_ik.priorities import solve_priorities

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@_jit
def all_kinematics(I: Ints, X: Array) -> None:
    """Bring every pose up to date."""
    kinematics(I, X, I[at.ALL_FK], I[at.ALL_FK] + I[at.N_BODIES] - 1)


@_jit
def round_kinematics(I: Ints, X: Array, r: int) -> None:
    """Bring up to date what the closures of a round read and what has moved."""
    row = I[at.ROUNDS] + 4 * r
    kinematics(I, X, I[at.ROUND_FK] + I[row + 2], I[at.ROUND_FK] + I[row + 3])


@_jit
def relax(I: Ints, X: Array, rest_gain: float) -> float:
    """Move the freedoms that nothing holds towards their rest; return the largest step."""
    largest = 0.0
    if rest_gain <= 0.0:
        return 0.0
    q = I[at.Q]
    for i in range(I[at.LOOSE], I[at.LOOSE] + I[at.N_LOOSE]):
        d = I[i]
        most = X[I[at.STEP_MAX] + d]
        step = min(max(rest_gain * (X[I[at.REST] + d] - X[q + d]), -most), most)
        new = min(max(X[q + d] + step, X[I[at.LOW] + d]), X[I[at.HIGH] + d])
        largest = max(largest, abs(new - X[q + d]) / most)
        X[q + d] = new
    return largest


@_jit
def run(
    I: Ints, X: Array, rest_gain: float, begin: int, end: int, iterations: int, tolerance: float,
    flag: Ints, history: Array,
) -> int:  # fmt: skip
    """Iterate until every component is within the tolerance, nothing moves, or time is up.

    One iteration goes over the rounds begin to end: per round the kinematics that it needs, then
    one step of each component; sparse components are left to the caller. After all rounds, what
    nothing holds goes towards its rest.

    Returns the number of iterations made; history holds the largest residual of a component before
    each.
    """
    n = I[at.N_ROUNDS]
    for i in range(iterations):
        if flag[0] != 0:
            return i
        worst = 0.0
        for r in range(begin, end):
            round_kinematics(I, X, r)
            row = I[at.ROUNDS] + 4 * r
            for k in range(I[row], I[row + 1]):
                kind = I[I[at.COMPS] + at.COMP_WIDTH * k + at.KIND]
                if kind == at.SINGLE:
                    worst = max(worst, solve_single(I, X, k))
                elif kind == at.PRIORITIES:
                    worst = max(worst, solve_priorities(I, X, k, rest_gain))
        history[i] = math.sqrt(worst)
        moved = relax(I, X, rest_gain) if begin == 0 and end == n else 0.0
        for k in range(I[at.N_COMPS]):
            moved = max(moved, X[I[at.STEP] + k])
        if moved < 1e-13:
            return i + 1
        if history[i] <= tolerance and (rest_gain <= 0.0 or moved < 1e-7):
            return i + 1
    return iterations


@_jit
def residuals(I: Ints, X: Array, out: Array) -> None:
    """Per closure the norms of its position and rotation rows, without weights, to out (n, 2)."""
    v = I[at.V]
    for c in range(I[at.N_CLOSURES]):
        assemble(I, X, c, v, False, 0, 0, 0)
        mask = I[I[at.CLOSURES] + 8 * c + 3]
        k = v
        p = 0.0
        r = 0.0
        for bit in range(6):
            if mask >> bit & 1:
                if bit < 3:
                    p += X[k] * X[k]
                else:
                    r += X[k] * X[k]
                k += 1
        w = X[I[at.WEIGHT] + c]
        out[c, 0], out[c, 1] = math.sqrt(p) / w, math.sqrt(r) / w


@_jit
def component_matrix(I: Ints, X: Array, k: int) -> float:
    """Rows of component k to E and its Jacobian to W, as the values of sparse rows.

    Returns the squared sum of the rows.
    """
    comp = I[at.COMPS] + at.COMP_WIDTH * k
    cost = 0.0
    row = 0
    w = I[at.W]
    for i in range(I[comp + at.CLOSURE_BEGIN], I[comp + at.CLOSURE_END]):
        c = I[I[at.COMP_CLOSURES] + i]
        r = I[at.CLOSURES] + 8 * c
        width = I[r + 6] - I[r + 5]
        cost += assemble(I, X, c, I[at.E] + row, True, w, width, MINUS_ONE)
        row += I[r + 4]
        w += I[r + 4] * width
    X[I[at.COST] + k] = cost
    return cost


@_jit
def relative_poses(I: Ints, X: Array, out: Array) -> None:
    """Per closure the pose of frame b in frame a, as 12 numbers, to out (n, 12)."""
    for c in range(I[at.N_CLOSURES]):
        r = I[at.CLOSURES] + 8 * c
        A = mul(X, I[at.POSE] + 12 * I[r], I[at.OFFSET_A] + 12 * c)
        B = mul(X, I[at.POSE] + 12 * I[r + 1], I[at.OFFSET_B] + 12 * c)
        dx, dy, dz = B[9] - A[9], B[10] - A[10], B[11] - A[11]
        for i in range(3):
            for j in range(3):
                out[c, 3 * i + j] = A[i] * B[j] + A[3 + i] * B[3 + j] + A[6 + i] * B[6 + j]
            out[c, 9 + i] = A[i] * dx + A[3 + i] * dy + A[6 + i] * dz
