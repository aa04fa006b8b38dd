"""Compiled steps of a loop closer: passive joints follow the actuated ones, always on one branch.

A group is a set of loops with the passive freedoms x that close them and the actuated freedoms a on
their paths; e(x, a) = 0 are its rows. At a closed posture with J = de/dx and A = de/da, a motion of
the actuators by d asks for v = -J^+ A d. Along z = (v, d) the Jacobian changes by at most
B = sum K_i |z_i|, and by L |y| along any y, L^2 = sum K_i^2, where K_i bounds the derivative of the
Jacobian by freedom i. Let s = |z|, b = B / m and w = L / m, m the smallest singular value of J or
less. For 0 <= t <= 1 the map y -> y - J^+ e(y, a + t d) takes the ball of radius t^2 b s around
x + t v into itself and contracts there, if b / 2 + b (b + w b s) <= b, that is if
b (1 + w s) <= 1 / 2 (Banach). So each of these balls holds one closed posture and no other; it
moves continuously with t, and what Newton's method finds at t = 1 is taken only if it is in the
last ball: no other assembly can be met. Longer motions are taken in parts for which this holds.
"""

from __future__ import annotations

import math
from typing import Any

from hier_ik.component import task_matrix
from hier_ik.kinematics import inlined, jit, kinematics
from hier_ik.steps import cholesky, cholesky_solve
from hier_ik.tables import Array, Ints, Record, Records, record

__all__ = [
    "CLOSED", "GROUP", "NOT_CLOSED", "SINGULAR", "TOO_FAR", "follow", "linearise", "step",
    "steps", "transmit", "transmit_back",
]  # fmt: skip

#: What became of a step: taken; refused because of a singularity, because it would take too many
#: parts, or because the loops do not close there.
CLOSED, SINGULAR, TOO_FAR, NOT_CLOSED = 0, 1, 2, 3
#: A group: its passive freedoms, then its actuated ones, stand at ``freedom`` of the index; its
#: Jacobian (rows, passive + actuated), the factor of J'J, its inverse, and the vectors e, x, saved
#: and bend (K) are in the workspace. ``curvature`` is L, ``margin`` is m, ``left`` bounds what is
#: left of the rows.
GROUP = record(
    "rows passive actuated closure_begin closure_end freedom fk_begin fk_end matrix factor inverse"
    " e x saved bend",
    "curvature cost margin left",
)
#: Parts into which one step may be divided, and Newton steps within one.
PARTS, NEWTON = 1000, 8
#: What may be left of the rows, in the linkage's own unit of length or rad.
ENOUGH, INCONSISTENT = 1e-12, 1e-9


@jit
def linearise(
    bodies: Records, freedoms: Records, closures: Records, chain: Records, index: Ints,
    work: Array, group: Record,
) -> None:  # fmt: skip
    """Rows, Jacobian, factor of J'J and margin of a group at its posture."""
    n, m = group.passive, group.rows
    width = n + group.actuated
    kinematics(bodies, freedoms, index, group.fk_begin, group.fk_end)
    J, L = group.matrix, group.factor
    for i in range(J, J + m * width):
        work[i] = 0.0
    task_matrix(bodies, freedoms, closures, chain, work, group.e, group)
    for i in range(L, L + n * n):
        work[i] = 0.0
    for r in range(J, J + m * width, width):
        for i in range(n):
            v = work[r + i]
            if v != 0.0:
                for j in range(i + 1):
                    work[L + i * n + j] += v * work[r + j]
    cholesky(work, L, n)
    group.margin = _margin(work, L, group.inverse, n)


@inlined
def _margin(work: Array, L: int, X: int, n: int) -> float:
    """The smallest singular value of J or less, from the factor of J'J; X is workspace.

    With X = L^-1 the norm of M = (J'J)^-1 = X'X is 1 / m^2, and at most its Frobenius norm.
    """
    for j in range(n):
        if work[L + j * n + j] == 0.0:
            return 0.0
        for i in range(j, n):
            s = 1.0 if i == j else 0.0
            for k in range(j, i):
                s -= work[L + i * n + k] * work[X + k * n + j]
            work[X + i * n + j] = s * work[L + i * n + i]
    total = 0.0
    for i in range(n):
        for j in range(i + 1):
            s = 0.0
            for k in range(i, n):
                s += work[X + k * n + i] * work[X + k * n + j]
            total += s * s if i == j else 2.0 * s * s
    return total**-0.25 if total > 0.0 else math.inf


@inlined
def _newton(work: Array, group: Record) -> float:
    """X = -J^+ e; the squared sum of e + J x, what no passive freedom can take away."""
    n, width, J, x = group.passive, group.passive + group.actuated, group.matrix, group.x
    for i in range(n):
        work[x + i] = 0.0
    for r in range(group.rows):
        s = work[group.e + r]
        for i in range(n):
            work[x + i] -= work[J + r * width + i] * s
    cholesky_solve(work, group.factor, n, x)
    left = 0.0
    for r in range(group.rows):
        s = work[group.e + r]
        for i in range(n):
            s += work[J + r * width + i] * work[x + i]
        left += s * s
    return left


@inlined
def _predict(freedoms: Records, index: Ints, work: Array, group: Record) -> tuple[float, float]:
    """X = v = -J^+ A d for what is left of the way d to the goals; s and B."""
    n, na, J, x = group.passive, group.actuated, group.matrix, group.x
    width, first, bend = n + na, group.freedom + n, group.bend
    s2 = 0.0
    change = 0.0
    for i in range(n):
        work[x + i] = 0.0
    for k in range(na):
        f = freedoms[index[first + k]]
        d = f.rest - f.q
        s2 += d * d
        change += work[bend + n + k] * abs(d)
        if d != 0.0:
            for r in range(J, J + group.rows * width, width):
                w = work[r + n + k] * d
                if w != 0.0:
                    for i in range(n):
                        work[x + i] -= work[r + i] * w
    cholesky_solve(work, group.factor, n, x)
    for i in range(n):
        s2 += work[x + i] * work[x + i]
        change += work[bend + i] * abs(work[x + i])
    return math.sqrt(s2), change


@inlined
def _proven(b: float, u: float) -> float:
    """The largest share t <= 1 of a motion with b t (1 + u t) <= 1 / 2."""
    if b * (1.0 + u) <= 0.5:
        return 1.0
    return 1.0 / (b + math.sqrt(b * b + 2.0 * u * b))


@inlined
def _move(freedoms: Records, index: Ints, work: Array, group: Record, t: float) -> float:
    """Passive freedoms go on by t x; how far."""
    s2 = 0.0
    for i in range(group.passive):
        step = t * work[group.x + i]
        freedoms[index[group.freedom + i]].q += step
        s2 += step * step
    return math.sqrt(s2)


@inlined
def _wrap(freedoms: Records, index: Ints, group: Record) -> bool:
    """Bring rotation vectors that are far beyond pi back; whether there was one."""
    out = False
    for i in range(group.passive):
        d = index[group.freedom + i]
        if freedoms[d].wraps == 1:
            x, y, z = freedoms[d], freedoms[d + 1], freedoms[d + 2]
            t = math.sqrt(x.q * x.q + y.q * y.q + z.q * z.q)
            if t > math.pi + 0.3:
                f = 1.0 - 2.0 * math.pi / t
                x.q *= f
                y.q *= f
                z.q *= f
                out = True
    return out


@jit
def _follow_group(
    bodies: Records, freedoms: Records, closures: Records, chain: Records, index: Ints,
    work: Array, group: Record, smallest: float,
) -> int:  # fmt: skip
    """Take the actuated freedoms of a group to their goals (``rest``), in parts if need be."""
    n, na = group.passive, group.actuated
    margin = group.margin
    for k in range(na):  # another group may have taken it to its goal already
        freedoms[index[group.freedom + n + k]].q = work[group.saved + n + k]
    for _ in range(PARTS):
        s, change = _predict(freedoms, index, work, group)
        b = change / group.margin
        t = _proven(b, group.curvature * s / group.margin)
        for k in range(na):
            f = freedoms[index[group.freedom + n + k]]
            f.q = f.rest if t == 1.0 else f.q + t * (f.rest - f.q)
        _move(freedoms, index, work, group, t)
        left = math.inf
        away = 0.0  # from the predicted posture
        for _again in range(NEWTON):
            linearise(bodies, freedoms, closures, chain, index, work, group)
            if group.margin < smallest or math.isnan(group.margin):
                return SINGULAR
            inconsistent = _newton(work, group)
            step = _move(freedoms, index, work, group, 1.0)
            away += step
            left = 0.5 * group.curvature * step * step + math.sqrt(inconsistent)
            if left <= ENOUGH:
                break
        group.left = left
        if not (left <= INCONSISTENT and away <= t * t * b * s + INCONSISTENT):
            return NOT_CLOSED
        for i in range(n + na):  # the bound on the Jacobian counts on it
            f = freedoms[index[group.freedom + i]]
            if abs(f.q) > f.high:
                return TOO_FAR
        if _wrap(freedoms, index, group):
            linearise(bodies, freedoms, closures, chain, index, work, group)
        if t == 1.0:
            return CLOSED
    return TOO_FAR if group.margin > 0.5 * margin else SINGULAR  # parts get short on the way there


@jit
def follow(
    bodies: Records, freedoms: Records, closures: Records, chain: Records, groups: Records,
    index: Ints, work: Array, smallest: float,
) -> int:  # fmt: skip
    """Take every group to its goals, or none; returns what became of it."""
    code = CLOSED
    for g in range(groups.shape[0]):
        group = groups[g]
        for i in range(group.passive + group.actuated):
            work[group.saved + i] = freedoms[index[group.freedom + i]].q
    done = 0
    for g in range(groups.shape[0]):
        done = g + 1
        code = _follow_group(
            bodies, freedoms, closures, chain, index, work, groups[g], smallest
        )  # fmt: skip
        if code != CLOSED:
            break
    if code == CLOSED:
        return code
    for g in range(done):
        group = groups[g]
        for i in range(group.passive + group.actuated):
            freedoms[index[group.freedom + i]].q = work[group.saved + i]
    for g in range(done):
        linearise(bodies, freedoms, closures, chain, index, work, groups[g])
    return code


@jit
def step(
    tables: Any, driven: Ints, unit: Array, positions: Array, smallest: float
) -> tuple[int, float, float]:
    """Take the actuated freedoms to positions (k,) [rad or m]; code, margin and what is left."""
    bodies, freedoms, closures, chain, groups, index, work = tables
    for k in range(driven.shape[0]):
        freedoms[driven[k]].rest = positions[k] / unit[driven[k]]
    code = follow(bodies, freedoms, closures, chain, groups, index, work, smallest)
    for k in range(driven.shape[0]):
        f = freedoms[driven[k]]
        if code == CLOSED:
            f.q = f.rest  # one in no loop is in no group
        else:
            f.rest = f.q
    margin, left = math.inf, 0.0
    for g in range(groups.shape[0]):
        margin = min(margin, groups[g].margin)
        left = max(left, groups[g].left)
    return code, margin, left


@jit
def steps(
    tables: Any, driven: Ints, unit: Array, positions: Array, smallest: float, out: Array
) -> int:
    """The same for each row of positions (t, k), all freedoms to out (t, n); steps taken."""
    freedoms = tables[1]
    for i in range(positions.shape[0]):
        if step(tables, driven, unit, positions[i], smallest)[0] != CLOSED:
            return i
        for d in range(out.shape[1]):
            out[i, d] = freedoms[d].q * unit[d]
    return int(positions.shape[0])


@jit
def transmit(groups: Records, index: Ints, work: Array, rates: Array) -> None:
    """Rates of the passive freedoms from those of the actuated ones, x' = -J^+ A a', in place."""
    for g in range(groups.shape[0]):
        group = groups[g]
        n, na, J, x = group.passive, group.actuated, group.matrix, group.x
        width = n + na
        for i in range(n):
            work[x + i] = 0.0
        for r in range(J, J + group.rows * width, width):
            s = 0.0
            for k in range(na):
                s += work[r + n + k] * rates[index[group.freedom + n + k]]
            if s != 0.0:
                for i in range(n):
                    work[x + i] -= work[r + i] * s
        cholesky_solve(work, group.factor, n, x)
        for i in range(n):
            rates[index[group.freedom + i]] = work[x + i]


@jit
def transmit_back(groups: Records, index: Ints, work: Array, forces: Array) -> None:
    """Forces on passive freedoms as felt by the actuated ones, f_a -= A'J (J'J)^-1 f_x, in place.

    The forces on the passive freedoms are zero after it.
    """
    for g in range(groups.shape[0]):
        group = groups[g]
        n, na, J, x = group.passive, group.actuated, group.matrix, group.x
        width = n + na
        for i in range(n):
            d = index[group.freedom + i]
            work[x + i] = forces[d]
            forces[d] = 0.0
        cholesky_solve(work, group.factor, n, x)
        for r in range(J, J + group.rows * width, width):
            s = 0.0
            for i in range(n):
                s += work[r + i] * work[x + i]
            if s != 0.0:
                for k in range(na):
                    forces[index[group.freedom + n + k]] -= work[r + n + k] * s
