"""Reduce_Box for planar mechanisms in absolute link angles, compiled.

With the absolute angle phi_j of every link, a planar loop is a sum of vectors: its two rows are
sums of terms a cos(phi) + b sin(phi), each perhaps times one travel. Sums are bounded term by term:
no products of vertices at all.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kin_solvers.clipping import intersect
from kin_solvers.compiled import Array, Records, helper, jit, maker
from kin_solvers.driver import Goal, Stack, Tuning, make_driver, split
from kin_solvers.hulls import Box, Y, Z, enclose, narrow
from kin_solvers.precondition import Linear, make_linear, precondition, regularisation

_INF = math.inf

#: A term of the sums: its unknown angle and its unknown travel, -1 if it has none.
TERM = np.dtype([("angle", np.int64), ("travel", np.int64)], align=True)


class PlanarTables(NamedTuple):
    """The rows of a planar mechanism: sums of (a cos + b sin) travel, and a constant.

    Attributes:
        arcs: The unknowns, shape (U,) of ``ARC``.
        terms: Shape (T,) of ``TERM``.
        M: The numbers (a, b) of each term in each row, shape (T, R, 2).
        constant: Of each row, shape (R,).
        delta: Bound on the error of each row, shape (R,).
        reach: Largest reach of a loop.
    """

    arcs: Records
    terms: Records
    M: Array
    constant: Array
    delta: Array
    reach: float


class PlanarRoom(NamedTuple):
    """What Reduce_Box works in: hulls, slopes, unit weights, whether a row has an unknown."""

    arcs: Records
    linear: Linear
    unit: Array
    uses: NDArray[np.bool_]


@maker
def _make_room(tables: PlanarTables) -> PlanarRoom:
    V = tables.arcs.size
    R = tables.constant.size
    uses = np.zeros((V, R), np.bool_)
    for g in range(tables.terms.size):
        term = tables.terms[g]
        for r in range(R):
            if tables.M[g, r, 0] != 0.0 or tables.M[g, r, 1] != 0.0:
                if term.angle >= 0:
                    uses[term.angle, r] = True
                if term.travel >= 0:
                    uses[term.travel, r] = True
    return PlanarRoom(tables.arcs.copy(), make_linear(V, R), np.ones((1, R)), uses)


@helper
def reduce_box(
    tables: PlanarTables, room: PlanarRoom, box: Box, number: int, tuning: Tuning
) -> tuple[bool, float]:
    """Reduce_Box (Fig. 3), all clippings on the original bounds."""
    arcs = room.arcs
    R = tables.constant.size
    widest, _ = enclose(box, arcs)
    if widest > tuning.raw_above:
        for r in range(R):
            for k in range(arcs.size):
                if room.uses[k, r] and not _clip_with(tables, arcs, k, room.unit, 0, r, r + 1):
                    return False, widest
    if widest <= tuning.sums_below:
        _slopes(tables, arcs, room.linear.J)
        precondition(room.linear, regularisation(tuning.regularisation, widest, tables.reach))
        for k in range(arcs.size):
            if not _clip_with(tables, arcs, k, room.linear.P, k, 0, R):
                return False, widest
    return narrow(box, arcs), widest


@helper
def _clip_with(
    tables: PlanarTables, arcs: Records, k: int, weights: Array, row: int, first: int, last: int
) -> bool:
    """Clip variable k with rows ``first`` to ``last`` weighted by one row; False if empty."""
    arc = arcs[k]
    base = 0.0
    slack = 0.0
    for r in range(first, last):
        base += weights[row, r] * tables.constant[r]
        slack += abs(weights[row, r]) * tables.delta[r]
    for i in range(arc.count):
        arc.low[i] = base - slack
        arc.high[i] = base + slack
    for g in range(tables.terms.size):
        a = 0.0
        b = 0.0
        for r in range(first, last):
            a += weights[row, r] * tables.M[g, r, 0]
            b += weights[row, r] * tables.M[g, r, 1]
        if a != 0.0 or b != 0.0:
            _add_term(tables.terms[g], a, b, arcs, k)
    return intersect(arc)


@helper
def _add_term(term: np.record, a: float, b: float, arcs: Records, k: int) -> None:
    """Add the bounds of a term (a cos + b sin) travel for every vertex of variable k."""
    arc = arcs[k]
    j = term.angle
    d = term.travel
    ends = 1 if d < 0 else 2
    vertices = 1 if j < 0 else arcs[j].count
    least = _INF
    most = -_INF
    for e in range(ends):
        if d == k:
            least = _INF
            most = -_INF
        t = 1.0 if d < 0 else arcs[d].hull[Y, e]
        for i in range(vertices):
            v = a if j < 0 else a * arcs[j].hull[Y, i] + b * arcs[j].hull[Z, i]
            x = v * t
            if j == k and e == 0:
                y = x if d < 0 else v * arcs[d].hull[Y, 1]
                arc.low[i] += min(x, y)
                arc.high[i] += max(x, y)
            least = min(least, x)
            most = max(most, x)
        if d == k:
            arc.low[e] += least
            arc.high[e] += most
    if j != k and d != k:
        for i in range(arc.count):
            arc.low[i] += least
            arc.high[i] += most


@helper
def _slopes(tables: PlanarTables, arcs: Records, J: Array) -> None:
    """J[k] = half the difference of the rows between the last and first vertex of k."""
    J[:, :] = 0.0
    for g in range(tables.terms.size):
        j = tables.terms[g].angle
        d = tables.terms[g].travel
        n = arcs[j].count - 1 if j >= 0 else 0
        t = 1.0 if d < 0 else 0.5 * (arcs[d].hull[Y, 0] + arcs[d].hull[Y, 1])
        for r in range(J.shape[1]):
            a = tables.M[g, r, 0]
            b = tables.M[g, r, 1]
            if a == 0.0 and b == 0.0:
                continue
            if j >= 0:
                hull = arcs[j].hull
                y = hull[Y, n] - hull[Y, 0]
                z = hull[Z, n] - hull[Z, 0]
                J[j, r] += 0.5 * (a * y + b * z) * t
            if d >= 0:
                mean = a
                if j >= 0:
                    hull = arcs[j].hull
                    mean = 0.5 * (a * (hull[Y, 0] + hull[Y, n]) + b * (hull[Z, 0] + hull[Z, n]))
                J[d, r] += 0.5 * mean * (arcs[d].hull[Y, 1] - arcs[d].hull[Y, 0])


_drive = make_driver(reduce_box, split)


@jit
def search(tables: PlanarTables, goal: Goal, stack: Stack, found: Box, progress: np.record) -> None:
    """The Cuik algorithm on boxes of absolute angles and travels."""
    box = Box(np.empty(goal.sigma.size), np.empty(goal.sigma.size))
    _drive(tables, _make_room(tables), goal, stack, found, progress, box)
