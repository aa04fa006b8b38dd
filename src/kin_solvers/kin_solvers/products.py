"""Products of motions at all vertices of their hulls, and the extremes of functions of them.

A row of 16 numbers is a conformal matrix: rotation and translation (3 x 4), then 2 t'R (3) and
|t|^2. A *half* is a run of motions whose vertex products are made together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kin_solvers.compiled import Array, IntArray, Records, helper, maker
from kin_solvers.hulls import Y, Z
from kin_solvers.lanes import (
    ROW,
    VECTOR,
    address,
    columns,
    combine,
    fold_2,
    fold_3,
    fold_4,
    fold_values_2,
    fold_values_3,
    fold_values_4,
    four_dots,
    multiply,
    turn_columns,
    turn_rows,
)

#: Entries of a conformal matrix.
ROWS = 16
#: Functions that are evaluated together.
LANES = 4

#: A motion of a loop in normal form: its variable, and the constant after it.
FACTOR = np.dtype(
    [
        ("variable", np.int64),
        ("C", np.float64, (ROWS,)),
        ("C_inverse", np.float64, (ROWS,)),
    ],
    align=True,
)
#: A motion in the order in which it is multiplied: its variable, and the vertices of its hull.
JOINT = np.dtype([("variable", np.int64), ("count", np.int64)], align=True)
#: Motions that are multiplied together: the first one and their number; then the first row and the
#: number of their vertex products.
HALF = np.dtype([(name, np.int64) for name in ("first", "length", "start", "count")], align=True)


class Products(NamedTuple):
    """Motions and their vertex products.

    Attributes:
        joints: The motions in the order of multiplication, shape (F,) of ``JOINT``.
        halves: The halves of each loop, shape (L, 2) of ``HALF``.
        G: Matrices of motion f at its vertices in the rows 4 f, 4 f + 1, ..., shape (4 F, 16).
        sides: Vertex products, those of a half from the row ``start`` on, shape (..., 16).
        spare: Room for the products of one half.
    """

    joints: Records
    halves: Records
    G: Array
    sides: Array
    spare: Array


@maker
def make_products(joints: Records, halves: Records, sides: int, width: int) -> Products:
    """Room for ``sides`` vertex products, of which a half has ``width`` at most."""
    return Products(
        joints.copy(),
        halves.copy(),
        np.zeros((4 * joints.size, ROWS)),
        np.empty((sides, ROWS)),
        np.empty((width, ROWS)),
    )


class SumFolds(NamedTuple):
    """Room for four sums of entries of vertex products and their extremes.

    Attributes:
        column: Weights of the entries, shape (16, 4).
        norms: Their sums |weight| bound, shape (4,).
        value: The sums at vertex products, shape (width, 4).
        low: Minima under way, shape (width, 4); at last the first row: over everything.
        high: Maxima.
        block_low: Minima for each vertex i of joint t of a half in row 4 t + i, shape (4 n, 4).
        block_high: Maxima.
    """

    column: Array
    norms: Array
    value: Array
    low: Array
    high: Array
    block_low: Array
    block_high: Array


@maker
def make_sum_folds(width: int, joints: int) -> SumFolds:
    """Room for halves of so many vertex products and joints at most."""
    return SumFolds(
        np.zeros((ROWS, LANES)),
        np.zeros(LANES),
        np.empty((width, LANES)),
        np.empty((width, LANES)),
        np.empty((width, LANES)),
        np.zeros((4 * joints, LANES)),
        np.zeros((4 * joints, LANES)),
    )


class Extremes(NamedTuple):
    """Addresses where ``fold_half`` writes extremes.

    Attributes:
        low: Minima over all but the first joints; at last the first row: over everything.
        high: Maxima.
        block_low: Minima for each vertex i of joint t, in row 4 t + i.
        block_high: Maxima.
    """

    low: int
    high: int
    block_low: int
    block_high: int


def make_joints(variables: IntArray) -> Records:
    """Records of motions with these variables, shape (F,)."""
    joints = np.zeros(len(variables), dtype=JOINT)
    joints["variable"] = variables
    return joints


@helper
def vertex_matrix(C: Array, arc: np.record, i: int, inverse: bool, G: Array, g: int) -> None:
    """G[g] = Z C, or C Z^-1 (given an inverse constant), at vertex i of a hull."""
    y = arc.hull[Y, i]
    z = arc.hull[Z, i]
    if not arc.translation:
        if inverse:
            turn_columns(address(G) + ROW * g, address(C), y, z)
        else:
            turn_rows(address(G) + ROW * g, address(C), y, z)
        return
    for r in range(ROWS):
        G[g, r] = C[r]
    if inverse:
        for r in range(3):
            G[g, 4 * r + 3] -= y * C[4 * r + 2]
        G[g, 14] -= 2.0 * y
        G[g, 15] += y * y - y * C[14]
    else:
        G[g, 11] += y
        for c in range(3):
            G[g, 12 + c] += 2.0 * y * C[8 + c]
        G[g, 15] += y * y + 2.0 * y * C[11]


@helper
def _times_all(source: int, n: int, G: int, m: int, out: int) -> None:
    """out[i n + j] = source[j] G[i], given the addresses of the first rows."""
    for i in range(m):
        for j in range(n):
            multiply(out, source + ROW * j, G + ROW * i, 1.0)
            out += ROW


@helper
def vertex_products(products: Products, half: np.record) -> None:
    """All vertex products of a half, and how many they are.

    Joint t of the half varies with the stride product(counts[:t]).
    """
    joints = products.joints
    first = half.first
    length = half.length
    out = address(products.sides) + ROW * half.start
    other = address(products.spare)
    g = address(products.G) + 4 * ROW * first
    n = joints[first].count
    if length == 1:
        for i in range(n):
            combine(out + ROW * i, g + ROW * i, 1.0, g + ROW * i, 0.0)
        half.count = n
        return
    m = joints[first + 1].count
    # The last product lands in ``sides``.
    _times_all(g, n, g + 4 * ROW, m, out if length % 2 == 0 else other)
    n *= m
    for t in range(2, length):
        m = joints[first + t].count
        if (length - t) % 2 == 1:
            _times_all(other, n, g + 4 * ROW * t, m, out)
        else:
            _times_all(out, n, g + 4 * ROW * t, m, other)
        n *= m
    half.count = n


@helper
def fold_half(
    values: int, vectors: int, joints: Records, half: np.record, extremes: Extremes
) -> None:
    """Extremes of functions of the vertex products of a half.

    The joints in turn, the slowest-varying first: its vertices are blocks of what is left, and
    folding these into one leaves the extremes over that joint.

    Args:
        values: Address of the values: a row for each vertex product.
        vectors: Vectors of four functions in a row.
        joints: The motions.
        half: The half.
        extremes: Where the extremes go.
    """
    step = VECTOR * vectors
    size = half.count
    length = half.length
    for t in range(length - 1, -1, -1):
        m = joints[half.first + t].count
        n = size // m
        for c in range(vectors):
            o = VECTOR * c
            a = extremes.low + o
            b = extremes.high + o
            x = extremes.block_low + 4 * t * step + o
            y = extremes.block_high + 4 * t * step + o
            if t == length - 1:
                v = values + o
                if m == 3:
                    fold_values_3(v, v, n, step, a, b, x, y, step)
                elif m == 4:
                    fold_values_4(v, v, n, step, a, b, x, y, step)
                else:
                    fold_values_2(v, v, n, step, a, b, x, y, step)
            elif m == 3:
                fold_3(a, b, n, step, a, b, x, y, step)
            elif m == 4:
                fold_4(a, b, n, step, a, b, x, y, step)
            else:
                fold_2(a, b, n, step, a, b, x, y, step)
        size = n


@helper
def set_weights(folds: SumFolds, rows: int, step: int, zeros: int, lanes: int, bounds: int) -> None:
    """Take up to four rows as weights, with the sums |weight| bound.

    Args:
        folds: Receives them.
        rows: Address of the first row.
        step: Bytes to the next one.
        zeros: Address of a row of zeros, for what is missing of four.
        lanes: Number of rows.
        bounds: Address of the bounds, 16 numbers.
    """
    columns(
        address(folds.column),
        rows,
        rows + step if lanes > 1 else zeros,
        rows + 2 * step if lanes > 2 else zeros,
        rows + 3 * step if lanes > 3 else zeros,
        bounds,
        address(folds.norms),
    )


@helper
def sum_rows(products: Products, half: np.record, folds: SumFolds) -> None:
    """The weighted sums at all vertex products of a half."""
    rows = address(products.sides) + ROW * half.start
    for j in range(half.count):
        four_dots(address(folds.value) + VECTOR * j, rows + ROW * j, address(folds.column))


@helper
def fold_sums(products: Products, half: np.record, folds: SumFolds) -> None:
    """Extremes of the sums of a half."""
    extremes = Extremes(
        address(folds.low),
        address(folds.high),
        address(folds.block_low),
        address(folds.block_high),
    )
    fold_half(address(folds.value), 1, products.joints, half, extremes)


@helper
def bend(arcs: Records, factors: Records, first: int, length: int) -> float:
    """How far the square of a travel lies under its secant, summed over the travels of a loop."""
    s = 0.0
    for f in range(first, first + length):
        arc = arcs[factors[f].variable]
        if arc.translation:
            s += arc.half * arc.half * (1.0 + 1e-12)
    return s
