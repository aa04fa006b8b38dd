"""The paper's algorithm, compiled: Fig. 2 (search) and Fig. 3 (Reduce_Box).

A rotation is two scalars y = cos, z = sin with y^2 + z^2 = 1, a translation is one scalar. The
three parts of Reduce_Box are the units of the paper's pipeline: corner products (VU0), projection
on the coordinate planes (VU1), clippings (the RISC processor).

Departure: read literally, Fig. 3 clips with bounds that an earlier clipping of the same call has
moved, against projections of the old box, and so loses solutions. Here every trapezoid is clipped
on the bounds the projections belong to, and the results are intersected.

``*_naive`` states the figure as it stands, corner by corner; the other version shares the partial
products of neighbouring corners and folds minima and maxima joint by joint. Both perform the same
floating-point operations on every corner, so they agree to the last bit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from llvmlite.ir import IRBuilder, Value
from numpy.typing import NDArray

from kin_solvers.compiled import Array, IntArray, exact_helper, exact_jit
from kin_solvers.driver import Goal, Stack, Tuning, make_driver
from kin_solvers.hulls import Box
from kin_solvers.lanes import PLACE, address, get, instruction, lane, least, most, put

#: Padding of the clippings against rounding.
PAD = 4e-15
_INF = math.inf


class PaperTables(NamedTuple):
    """The equations: for each loop, Z_1 C_1 ... Z_n C_n = I, or a point where its end is to be.

    Attributes:
        offsets: First factor of each loop, shape (L + 1,).
        C: Constant after each factor, shape (F, 12).
        translation: Whether each factor is a translation, shape (F,).
        scalar: First scalar of each factor, shape (F,).
        point: Whether each loop closes by a point only, shape (L,).
        goal: The identity, or where a point closure wants the end, shape (L, 16).
        delta: Bound on the error of each row of each loop, shape (L, 16).
        naive: Enumerate corners one by one, as the figure stands.
    """

    offsets: IntArray
    C: Array
    translation: NDArray[np.bool_]
    scalar: IntArray
    point: NDArray[np.bool_]
    goal: Array
    delta: Array
    naive: bool


class PaperRoom(NamedTuple):
    """What Reduce_Box works in.

    Attributes:
        box: A box of S scalars, shape (S, 2).
        clipped: What clippings leave of it, shape (S, 2).
        G: Matrices of one joint at its corners, shape (4, 16); or of all joints at one corner.
        side: Corner products, shape (corners, 12).
        spare: The same, of the other parity.
        folds: Minima and maxima under way, shape (2, corners, 12).
        blocks: Minima and maxima for each corner of a joint, shape (2, 4, 12).
        low: Minima at both ends of every scalar of a loop, shape (bits, 2, 12).
        high: Maxima.
    """

    box: Array
    clipped: Array
    G: Array
    side: Array
    spare: Array
    folds: Array
    blocks: Array
    low: Array
    high: Array


@exact_helper
def loop_bits(tables: PaperTables, loop: int) -> int:
    """Number of scalars of a loop."""
    bits = 0
    for f in range(tables.offsets[loop], tables.offsets[loop + 1]):
        bits += 1 if tables.translation[f] else 2
    return bits


@exact_jit
def make_room(tables: PaperTables, scalars: int) -> PaperRoom:
    """Room for boxes of so many scalars."""
    joints = 4
    bits = 0
    for l in range(tables.point.size):
        joints = max(joints, tables.offsets[l + 1] - tables.offsets[l])
        bits = max(bits, loop_bits(tables, l))
    corners = 1 << bits
    shared = 1 if tables.naive else corners
    return PaperRoom(
        np.empty((scalars, 2)),
        np.empty((scalars, 2)),
        np.empty((joints, 16)),
        np.empty((corners, 12)),
        np.empty((shared, 12)),
        np.empty((2, shared, 12)),
        np.empty((2, 4, 12)),
        np.empty((bits, 2, 12)),
        np.empty((bits, 2, 12)),
    )


# Vectors of four: operations and their order are those of the plain code, so the results are the
# same to the last bit.


def _row_product(builder: IRBuilder, row: Value, matrix: Value, index: int) -> Value:
    """Row (4) times matrix (4 x 4) number ``index``, summed from left to right."""
    total = None
    for k in range(4):
        term = builder.fmul(lane(builder, row, k), get(builder, matrix, 4 * index + k))
        total = term if total is None else builder.fadd(total, term)
    return total


@instruction(PLACE, PLACE, PLACE)
def _times_row(builder: IRBuilder, out: Value, row: Value, matrix: Value) -> None:
    """Row times matrix into ``out``, given the addresses of the numbers."""
    put(builder, _row_product(builder, get(builder, row), matrix, 0), out)


@instruction(PLACE, PLACE, PLACE, PLACE)
def _fold_row(builder: IRBuilder, low: Value, high: Value, x: Value, y: Value) -> None:
    """Lower ``low`` and raise ``high`` to the other extremes, given addresses."""
    smallest = least(builder, get(builder, x), get(builder, low))
    largest = most(builder, get(builder, y), get(builder, high))
    put(builder, smallest, low)
    put(builder, largest, high)


@instruction(*[PLACE] * 5)
def _fold_products(
    builder: IRBuilder, row: Value, matrices: Value, low: Value, high: Value, blocks: Value
) -> None:
    """Products of a row with four matrices: their extremes, and those of each kept in blocks."""
    values = get(builder, row)
    x = [_row_product(builder, values, matrices, i) for i in range(4)]
    old = [get(builder, blocks, 3 * i) for i in range(8)]
    smallest = least(builder, least(builder, x[0], x[1]), least(builder, x[2], x[3]))
    largest = most(builder, most(builder, x[0], x[1]), most(builder, x[2], x[3]))
    put(builder, smallest, low)
    put(builder, largest, high)
    for i in range(4):
        put(builder, least(builder, x[i], old[i]), blocks, 3 * i)
        put(builder, most(builder, x[i], old[4 + i]), blocks, 3 * (4 + i))


@exact_helper
def _corner_matrix(tables: PaperTables, f: int, y: float, z: float, G: Array) -> None:
    """G = Z C of one factor at one corner, with the row (0, 0, 0, 1) below: 16 numbers."""
    C = tables.C[f]
    translation = tables.translation[f]
    for c in range(4):
        if translation:
            G[c] = C[c]
            G[4 + c] = C[4 + c]
        else:
            G[c] = y * C[c] - z * C[4 + c]
            G[4 + c] = z * C[c] + y * C[4 + c]
        G[8 + c] = C[8 + c]
        G[12 + c] = 1.0 if c == 3 else 0.0
    if translation:
        G[11] += y


@exact_helper
def _corner_products_naive(tables: PaperTables, room: PaperRoom, loop: int) -> None:
    """VU0: generate and multiply the matrix sequence of every corner; side[corner, 12]."""
    first = tables.offsets[loop]
    n = tables.offsets[loop + 1] - first
    box = room.box
    for corner in range(1 << loop_bits(tables, loop)):
        bit = 0
        for t in range(n):
            s = tables.scalar[first + t]
            y = box[s, (corner >> bit) & 1]
            bit += 1
            z = 0.0
            if not tables.translation[first + t]:
                z = box[s + 1, (corner >> bit) & 1]
                bit += 1
            _corner_matrix(tables, first + t, y, z, room.G[t])
        out = room.side[corner]
        M0 = room.G[0]
        for r in range(12):
            out[r] = M0[r]
        for t in range(1, n):
            G = room.G[t]
            for r in range(3):
                a = out[4 * r]
                b = out[4 * r + 1]
                c = out[4 * r + 2]
                d = out[4 * r + 3]
                out[4 * r] = a * G[0] + b * G[4] + c * G[8]
                out[4 * r + 1] = a * G[1] + b * G[5] + c * G[9]
                out[4 * r + 2] = a * G[2] + b * G[6] + c * G[10]
                out[4 * r + 3] = a * G[3] + b * G[7] + c * G[11] + d


@exact_helper
def _project_naive(tables: PaperTables, room: PaperRoom, loop: int) -> None:
    """VU1: minima and maxima of every entry at both ends of every scalar."""
    low = room.low
    high = room.high
    bits = loop_bits(tables, loop)
    for b in range(bits):
        for end in range(2):
            for r in range(12):
                low[b, end, r] = _INF
                high[b, end, r] = -_INF
    for corner in range(1 << bits):
        s = room.side[corner]
        for b in range(bits):
            end = (corner >> b) & 1
            for r in range(12):
                low[b, end, r] = min(low[b, end, r], s[r])
                high[b, end, r] = max(high[b, end, r], s[r])


@exact_helper
def _prefix_products(tables: PaperTables, room: PaperRoom, first: int, n: int) -> int:
    """Products of n factors at all corners, in ``side``; the number of their scalars.

    The prefixes Z_1 C_1 ... Z_t C_t of all corners are made joint by joint, in ``side`` and
    ``spare`` in turn.
    """
    G = room.G
    count = 1
    bits = 0
    for t in range(n):
        f = first + t
        corners = 2 if tables.translation[f] else 4
        bits += 1 if tables.translation[f] else 2
        _joint_corners(tables, room, f)
        if t == 0:
            for i in range(corners):
                for r in range(12):
                    if n % 2 == 1:
                        room.side[i, r] = G[i, r]
                    else:
                        room.spare[i, r] = G[i, r]
        elif (n - t) % 2 == 1:
            _times(room.spare, count, G, corners, room.side)
        else:
            _times(room.side, count, G, corners, room.spare)
        count *= corners
    return bits


@exact_jit
def corner_products(tables: PaperTables, room: PaperRoom, loop: int) -> None:
    """VU0 with shared partial products: the same numbers as the naive version."""
    first = tables.offsets[loop]
    _prefix_products(tables, room, first, tables.offsets[loop + 1] - first)


@exact_helper
def _joint_corners(tables: PaperTables, room: PaperRoom, f: int) -> None:
    """The matrices G of one joint at its corners."""
    s = tables.scalar[f]
    translation = tables.translation[f]
    for i in range(2 if translation else 4):
        z = 0.0 if translation else room.box[s + 1, i >> 1]
        _corner_matrix(tables, f, room.box[s, i & 1], z, room.G[i])


@exact_helper
def _times(source: Array, count: int, G: Array, corners: int, out: Array) -> None:
    """out[i count + j] = source[j] G[i]."""
    rows = address(source)
    matrices = address(G)
    target = address(out)
    for i in range(corners):
        for r in range(3 * count):
            _times_row(target + 32 * r, rows + 32 * r, matrices + 128 * i)
        target += 96 * count


@exact_jit
def project(tables: PaperTables, room: PaperRoom, loop: int) -> None:
    """VU1 with folds: the joints in turn, the slowest-varying first.

    A joint's corners are the blocks of what is left; their extremes are the projections, and
    folding the blocks into one leaves the extremes over that joint.
    """
    size = 1 << loop_bits(tables, loop)
    corners = 2 if tables.translation[tables.offsets[loop + 1] - 1] else 4
    for i in range(size):
        for r in range(12):
            room.folds[0, i, r] = room.folds[1, i, r] = room.side[i, r]
    _fold_extremes(size // corners, corners, room.folds, room.blocks)
    _project_rest(tables, room, loop)


@exact_helper
def _project_rest(tables: PaperTables, room: PaperRoom, loop: int) -> None:
    """Go on from the folds of the last joint."""
    first = tables.offsets[loop]
    n = tables.offsets[loop + 1] - first
    b = loop_bits(tables, loop)
    size = 1 << b
    for t in range(n - 1, -1, -1):
        corners = 2 if tables.translation[first + t] else 4
        size //= corners
        b -= 1 if corners == 2 else 2
        if t < n - 1:
            _fold_extremes(size, corners, room.folds, room.blocks)
        _to_ends(room.blocks[0], corners, 1.0, b, room.low)
        _to_ends(room.blocks[1], corners, -1.0, b, room.high)


@exact_helper
def _to_ends(block: Array, corners: int, sign: float, b: int, out: Array) -> None:
    """Minima (sign 1) or maxima (-1) at both ends of the scalars of a joint from its corners'."""
    for r in range(12):
        x = sign * block[0, r]
        y = sign * block[1, r]
        if corners == 2:
            out[b, 0, r] = sign * x
            out[b, 1, r] = sign * y
            continue
        z = sign * block[2, r]
        w = sign * block[3, r]
        out[b, 0, r] = sign * min(x, z)
        out[b, 1, r] = sign * min(y, w)
        out[b + 1, 0, r] = sign * min(x, y)
        out[b + 1, 1, r] = sign * min(z, w)


@exact_helper
def _project_products(tables: PaperTables, room: PaperRoom, loop: int) -> None:
    """VU0 and VU1 in one: the same numbers as ``corner_products`` and ``project``."""
    first = tables.offsets[loop]
    last = tables.offsets[loop + 1] - 1
    if first == last or tables.translation[last]:
        corner_products(tables, room, loop)
        project(tables, room, loop)
        return
    bits = _prefix_products(tables, room, first, last - first)
    _joint_corners(tables, room, last)
    _last_rotation(room.side, 1 << bits, room.G, room.folds, room.blocks)
    _project_rest(tables, room, loop)


@exact_helper
def _fold_extremes(size: int, corners: int, folds: Array, blocks: Array) -> None:
    """Extremes of every block of minima and maxima, and over the blocks, in place."""
    low = address(folds)
    high = low + 96 * folds.shape[1]
    for i in range(corners):
        for c in range(12):
            blocks[0, i, c] = folds[0, i * size, c]
            blocks[1, i, c] = folds[1, i * size, c]
    block = address(blocks)
    for i in range(corners):
        start = 96 * i * size
        for at in range(0, 96 * size, 96):
            for c in range(0, 96, 32):
                k = start + at + c
                _fold_row(block + c, block + 384 + c, low + k, high + k)
                if i > 0:
                    _fold_row(low + at + c, high + at + c, low + k, high + k)
        block += 96


@exact_helper
def _last_rotation(source: Array, count: int, G: Array, folds: Array, blocks: Array) -> None:
    """Products with the last joint and its folds in one pass; the products are not kept."""
    for i in range(4):
        for c in range(12):
            blocks[0, i, c] = _INF
            blocks[1, i, c] = -_INF
    rows = address(source)
    matrices = address(G)
    low = address(folds)
    high = low + 96 * folds.shape[1]
    block = address(blocks)
    for c in range(0, 96, 32):
        for k in range(c, 96 * count, 96):
            _fold_products(rows + k, matrices, low + k, high + k, block + c)


@exact_helper
def _trapezoid_clipping(
    lower: float, upper: float, low_l: float, high_l: float, low_u: float, high_u: float
) -> tuple[float, float]:
    """The part of [lower, upper] where the trapezoid of Fig. 1b meets zero; empty if from > to."""
    a = lower
    b = upper
    span = upper - lower
    if low_l > 0.0:
        if low_u > 0.0:
            return 1.0, -1.0
        a = max(a, lower + span * (low_l / (low_l - low_u)))
    elif low_u > 0.0:
        b = min(b, lower + span * (low_l / (low_l - low_u)))
    if high_l < 0.0:
        if high_u < 0.0:
            return 1.0, -1.0
        a = max(a, lower + span * (high_l / (high_l - high_u)))
    elif high_u < 0.0:
        b = min(b, lower + span * (high_l / (high_l - high_u)))
    return a, b


@exact_helper
def _circle_range(other_lower: float, other_upper: float) -> tuple[float, float]:
    """Smallest and largest |y| on the unit circle with z in [lower, upper]; negative if none."""
    big = max(abs(other_lower), abs(other_upper))
    small = 0.0
    if other_lower > 0.0:
        small = other_lower
    elif other_upper < 0.0:
        small = -other_upper
    if small - PAD > 1.0:
        return 1.0, -1.0
    inner = 1.0 - big * big - PAD
    outer = 1.0 - small * small + PAD
    return math.sqrt(max(0.0, inner)), math.sqrt(max(0.0, outer))


@exact_helper
def _rectangle_circle_clipping(box: Array, s: int, w: int) -> bool:
    """Clip scalar s with the circle through its range and that of scalar w; False if empty."""
    a, b = _circle_range(box[w, 0], box[w, 1])
    if b < 0.0:
        return False
    a -= PAD
    b += PAD
    lower = box[s, 0]
    upper = box[s, 1]
    lower = max(lower, -b)
    upper = min(upper, b)
    if a > 0.0:
        if lower > -a:
            lower = max(lower, a)
        if upper < a:
            upper = min(upper, -a)
    box[s, 0] = lower
    box[s, 1] = upper
    return lower <= upper


@exact_jit
def clip_loop(tables: PaperTables, room: PaperRoom, loop: int) -> bool:
    """The RISC processor: all clippings of one loop; the box in place. False if empty."""
    translation = tables.translation
    box, clipped = room.box, room.clipped
    low, high = room.low, room.high
    first = tables.offsets[loop]
    n = tables.offsets[loop + 1] - first
    b = 0
    for t in range(n):
        f = first + t
        for part in range(1 if translation[f] else 2):
            s = tables.scalar[f] + part
            a_all = box[s, 0]
            b_all = box[s, 1]
            pad = PAD * (1.0 + abs(box[s, 0]) + abs(box[s, 1]))
            for r in range(12):
                if tables.point[loop] and r % 4 != 3:
                    continue
                delta = tables.delta[loop, r]
                target = tables.goal[loop, r]
                x, y = _trapezoid_clipping(
                    box[s, 0],
                    box[s, 1],
                    low[b, 0, r] - target - delta,
                    high[b, 0, r] - target + delta,
                    low[b, 1, r] - target - delta,
                    high[b, 1, r] - target + delta,
                )
                if x > y + pad:
                    return False
                a_all = max(a_all, x - pad)
                b_all = min(b_all, y + pad)
            if a_all > b_all:
                return False
            clipped[s, 0] = a_all
            clipped[s, 1] = b_all
            b += 1
    for t in range(n):
        f = first + t
        s = tables.scalar[f]
        for part in range(1 if translation[f] else 2):
            box[s + part, 0] = clipped[s + part, 0]
            box[s + part, 1] = clipped[s + part, 1]
        if not translation[f]:
            if not _rectangle_circle_clipping(box, s + 1, s):
                return False
            if not _rectangle_circle_clipping(box, s, s + 1):
                return False
    return True


@exact_helper
def reduce_box(
    tables: PaperTables, room: PaperRoom, box: Box, number: int, tuning: Tuning
) -> tuple[bool, float]:
    """Reduce_Box (Fig. 3), in place."""
    for s in range(box.lower.size):
        room.box[s, 0] = box.lower[s]
        room.box[s, 1] = box.upper[s]
    for l in range(tables.point.size):
        if tables.naive:
            _corner_products_naive(tables, room, l)
            _project_naive(tables, room, l)
        else:
            _project_products(tables, room, l)
        if not clip_loop(tables, room, l):
            return False, _INF
    for s in range(box.lower.size):
        box.lower[s] = room.box[s, 0]
        box.upper[s] = room.box[s, 1]
    return True, _INF


@exact_helper
def _split(stack: Stack, queued: int, box: Box, sigma: Array, share: float) -> int:
    """Push both halves of a box, split at the middle of its widest side."""
    lower = box.lower
    upper = box.upper
    j = 0
    for s in range(lower.size):
        if upper[s] - lower[s] > upper[j] - lower[j]:
            j = s
    for i in range(queued, queued + 2):
        for s in range(lower.size):
            stack.lower[i, s] = lower[s]
            stack.upper[i, s] = upper[s]
        stack.share[i] = 0.5 * share
    middle = 0.5 * (lower[j] + upper[j])
    stack.lower[queued, j] = middle
    stack.upper[queued + 1, j] = middle
    return queued + 2


_drive = make_driver(reduce_box, _split)


@exact_jit
def search(tables: PaperTables, goal: Goal, stack: Stack, found: Box, progress: np.record) -> None:
    """The Cuik algorithm (Fig. 2) on boxes of scalars."""
    box = Box(np.empty(goal.sigma.size), np.empty(goal.sigma.size))
    _drive(tables, make_room(tables, goal.sigma.size), goal, stack, found, progress, box)
