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
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from kin_solvers.lanes import get, lane, least, most, put

#: Padding of the clippings against rounding.
PAD = 4e-15
EMPTY, REDUCED = 0, 1
_INF = math.inf

jit = njit(cache=True, nogil=True, error_model="numpy", fastmath={"nnan", "nsz"})
helper = njit(
    nogil=True,
    error_model="numpy",
    fastmath={"nnan", "nsz"},
    no_cpython_wrapper=True,
    no_cfunc_wrapper=True,
)

# Vectors of four: operations and their order are those of the plain code, so the results are the
# same to the last bit.


def _row_product(builder: Any, row: Any, matrix: Any, index: int) -> Any:
    """Row (4) times matrix (4 x 4) number ``index``, summed from left to right."""
    total = None
    for k in range(4):
        term = builder.fmul(lane(builder, row, k), get(builder, matrix, 4 * index + k))
        total = term if total is None else builder.fadd(total, term)
    return total


@intrinsic
def _times_row(typing: Any, out: Any, row: Any, matrix: Any) -> Any:
    """Row times matrix into ``out``, given the addresses of the numbers."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, row, matrix = arguments
        put(builder, _row_product(builder, get(builder, row), matrix, 0), out)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp), generate


@intrinsic
def _fold_row(typing: Any, low: Any, high: Any, other_low: Any, other_high: Any) -> Any:
    """Lower ``low`` and raise ``high`` to the other extremes, given addresses."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        low, high, x, y = arguments
        smallest = least(builder, get(builder, x), get(builder, low))
        largest = most(builder, get(builder, y), get(builder, high))
        put(builder, smallest, low)
        put(builder, largest, high)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp, types.intp), generate


@intrinsic
def _fold_products(typing: Any, row: Any, matrices: Any, low: Any, high: Any, blocks: Any) -> Any:
    """Products of a row with four matrices: their extremes, and those of each kept in blocks."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        row, matrices, low, high, blocks = arguments
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
        return context.get_dummy_value()

    return types.void(*[types.intp] * 5), generate


@helper
def _corner_matrix(C: Any, translation: Any, y: Any, z: Any, G: Any) -> Any:
    """G = Z C at one corner, 3 x 4 numbers."""
    for c in range(4):
        if translation:
            G[c] = C[c]
            G[4 + c] = C[4 + c]
        else:
            G[c] = y * C[c] - z * C[4 + c]
            G[4 + c] = z * C[c] + y * C[4 + c]
        G[8 + c] = C[8 + c]
    if translation:
        G[11] += y


@helper
def corner_products_naive(
    C: Any,
    translation: Any,
    scalar: Any,
    box: Any,
    first: Any,
    n: Any,
    matrices: Any,
    products: Any,
) -> Any:
    """VU0: generate and multiply the matrix sequence of every corner; products[corner, 12]."""
    bits = 0
    for t in range(n):
        bits += 1 if translation[first + t] else 2
    for corner in range(1 << bits):
        bit = 0
        for t in range(n):
            f = first + t
            s = scalar[f]
            y = box[s, (corner >> bit) & 1]
            bit += 1
            z = 0.0
            if not translation[f]:
                z = box[s + 1, (corner >> bit) & 1]
                bit += 1
            _corner_matrix(C[f], translation[f], y, z, matrices[t])
        out = products[corner]
        M0 = matrices[0]
        for r in range(12):
            out[r] = M0[r]
        for t in range(1, n):
            G = matrices[t]
            for r in range(3):
                a = out[4 * r]
                b = out[4 * r + 1]
                c = out[4 * r + 2]
                d = out[4 * r + 3]
                out[4 * r] = a * G[0] + b * G[4] + c * G[8]
                out[4 * r + 1] = a * G[1] + b * G[5] + c * G[9]
                out[4 * r + 2] = a * G[2] + b * G[6] + c * G[10]
                out[4 * r + 3] = a * G[3] + b * G[7] + c * G[11] + d
    return bits


@helper
def project_naive(products: Any, bits: Any, low: Any, high: Any) -> Any:
    """VU1: minima and maxima of every entry at both ends of every scalar; low[scalar, end, 12]."""
    for b in range(bits):
        for end in range(2):
            for r in range(12):
                low[b, end, r] = _INF
                high[b, end, r] = -_INF
    for corner in range(1 << bits):
        s = products[corner]
        for b in range(bits):
            end = (corner >> b) & 1
            for r in range(12):
                low[b, end, r] = min(low[b, end, r], s[r])
                high[b, end, r] = max(high[b, end, r], s[r])


@jit
def corner_products(
    C: Any,
    translation: Any,
    scalar: Any,
    box: Any,
    first: Any,
    n: Any,
    G: Any,
    side: Any,
    spare: Any,
) -> Any:
    """VU0 with shared partial products: side[corner, 12]; the same numbers as the naive version.

    The prefixes Z_1 C_1 ... Z_t C_t of all corners are made joint by joint, in ``side`` and
    ``spare`` in turn. ``G``, shape (4, 16), takes the matrices of one joint at its corners.
    """
    count = 1
    bits = 0
    for t in range(n):
        f = first + t
        s = scalar[f]
        corners = 2 if translation[f] else 4
        bits += 1 if translation[f] else 2
        _joint_corners(C, f, translation[f], box, s, G)
        if t == 0:
            for i in range(corners):
                for r in range(12):
                    if n % 2 == 1:
                        side[i, r] = G[i, r]
                    else:
                        spare[i, r] = G[i, r]
        elif (n - t) % 2 == 1:
            _times(spare, count, G, corners, side)
        else:
            _times(side, count, G, corners, spare)
        count *= corners
    return bits


@helper
def _joint_corners(C: Any, f: Any, translation: Any, box: Any, s: Any, G: Any) -> Any:
    """G[i] = Z C[f] at the corners of one joint, with the row (0, 0, 0, 1) below."""
    for i in range(2 if translation else 4):
        y = box[s, i & 1]
        z = 0.0 if translation else box[s + 1, i >> 1]
        for c in range(4):
            a = C[f, c]
            b = C[f, 4 + c]
            G[i, c] = a if translation else y * a - z * b
            G[i, 4 + c] = b if translation else z * a + y * b
            G[i, 8 + c] = C[f, 8 + c]
            G[i, 12 + c] = 1.0 if c == 3 else 0.0
        if translation:
            G[i, 11] += y


@helper
def _times(source: Any, count: Any, G: Any, corners: Any, out: Any) -> Any:
    """out[i count + j] = source[j] G[i]."""
    rows = source.ctypes.data
    matrices = G.ctypes.data
    target = out.ctypes.data
    for i in range(corners):
        for r in range(3 * count):
            _times_row(target + 32 * r, rows + 32 * r, matrices + 128 * i)
        target += 96 * count


@jit
def project(
    side: Any,
    translation: Any,
    first: Any,
    n: Any,
    bits: Any,
    folds: Any,
    blocks: Any,
    low: Any,
    high: Any,
) -> Any:
    """VU1 with folds: the joints in turn, the slowest-varying first.

    A joint's corners are the blocks of what is left; their extremes are the projections, and
    folding the blocks into one leaves the extremes over that joint. ``folds`` has the shape
    (2, corners, 12), ``blocks`` (2, 4, 12).
    """
    corners = 2 if translation[first + n - 1] else 4
    _fold_corners(side, (1 << bits) // corners, corners, folds, blocks)
    _project_rest(translation, first, n, bits, folds, blocks, low, high)


@helper
def _project_rest(
    translation: Any,
    first: Any,
    n: Any,
    bits: Any,
    folds: Any,
    blocks: Any,
    low: Any,
    high: Any,
) -> Any:
    """Go on from the folds of the last joint."""
    size = 1 << bits
    b = bits
    for t in range(n - 1, -1, -1):
        corners = 2 if translation[first + t] else 4
        size //= corners
        b -= 1 if corners == 2 else 2
        if t < n - 1:
            _fold_extremes(size, corners, folds, blocks)
        for r in range(12):
            x = blocks[0, 0, r]
            y = blocks[0, 1, r]
            if corners == 2:
                low[b, 0, r] = x
                low[b, 1, r] = y
                continue
            z = blocks[0, 2, r]
            w = blocks[0, 3, r]
            low[b, 0, r] = x if x < z else z
            low[b, 1, r] = y if y < w else w
            low[b + 1, 0, r] = x if x < y else y
            low[b + 1, 1, r] = z if z < w else w
        for r in range(12):
            x = blocks[1, 0, r]
            y = blocks[1, 1, r]
            if corners == 2:
                high[b, 0, r] = x
                high[b, 1, r] = y
                continue
            z = blocks[1, 2, r]
            w = blocks[1, 3, r]
            high[b, 0, r] = x if x > z else z
            high[b, 1, r] = y if y > w else w
            high[b + 1, 0, r] = x if x > y else y
            high[b + 1, 1, r] = z if z > w else w


@helper
def project_products(
    C: Any,
    translation: Any,
    scalar: Any,
    box: Any,
    first: Any,
    n: Any,
    G: Any,
    side: Any,
    spare: Any,
    folds: Any,
    blocks: Any,
    low: Any,
    high: Any,
) -> Any:
    """VU0 and VU1 in one: the same numbers as ``corner_products`` and ``project``."""
    last = first + n - 1
    if n == 1 or translation[last]:
        bits = corner_products(C, translation, scalar, box, first, n, G, side, spare)
        project(side, translation, first, n, bits, folds, blocks, low, high)
        return
    bits = corner_products(C, translation, scalar, box, first, n - 1, G, side, spare)
    _joint_corners(C, last, False, box, scalar[last], G)
    _last_rotation(side, 1 << bits, G, folds, blocks)
    _project_rest(translation, first, n, bits + 2, folds, blocks, low, high)


@helper
def _fold_corners(side: Any, size: Any, corners: Any, folds: Any, blocks: Any) -> Any:
    """Extremes of every block of ``side``, and over the blocks; four columns at a time."""
    for i in range(corners):
        start = i * size
        for c in range(0, 12, 4):
            a0 = b0 = side[start, c]
            a1 = b1 = side[start, c + 1]
            a2 = b2 = side[start, c + 2]
            a3 = b3 = side[start, c + 3]
            for j in range(start + 1, start + size):
                x0 = side[j, c]
                x1 = side[j, c + 1]
                x2 = side[j, c + 2]
                x3 = side[j, c + 3]
                a0 = x0 if x0 < a0 else a0
                a1 = x1 if x1 < a1 else a1
                a2 = x2 if x2 < a2 else a2
                a3 = x3 if x3 < a3 else a3
                b0 = x0 if x0 > b0 else b0
                b1 = x1 if x1 > b1 else b1
                b2 = x2 if x2 > b2 else b2
                b3 = x3 if x3 > b3 else b3
            blocks[0, i, c] = a0
            blocks[0, i, c + 1] = a1
            blocks[0, i, c + 2] = a2
            blocks[0, i, c + 3] = a3
            blocks[1, i, c] = b0
            blocks[1, i, c + 1] = b1
            blocks[1, i, c + 2] = b2
            blocks[1, i, c + 3] = b3
    if corners == 2:
        for j in range(size):
            for c in range(12):
                x = side[j, c]
                y = side[size + j, c]
                folds[0, j, c] = x if x < y else y
                folds[1, j, c] = x if x > y else y
        return
    for j in range(size):
        for c in range(12):
            x = side[j, c]
            y = side[size + j, c]
            z = side[2 * size + j, c]
            w = side[3 * size + j, c]
            p = x if x < y else y
            q = z if z < w else w
            folds[0, j, c] = p if p < q else q
            p = x if x > y else y
            q = z if z > w else w
            folds[1, j, c] = p if p > q else q


@helper
def _fold_extremes(size: Any, corners: Any, folds: Any, blocks: Any) -> Any:
    """The same on minima and maxima that are already folded, in place."""
    low = folds.ctypes.data
    high = low + 96 * folds.shape[1]
    for i in range(corners):
        for c in range(12):
            blocks[0, i, c] = folds[0, i * size, c]
            blocks[1, i, c] = folds[1, i * size, c]
    block = blocks.ctypes.data
    for i in range(corners):
        start = 96 * i * size
        for at in range(0, 96 * size, 96):
            for c in range(0, 96, 32):
                k = start + at + c
                _fold_row(block + c, block + 384 + c, low + k, high + k)
                if i > 0:
                    _fold_row(low + at + c, high + at + c, low + k, high + k)
        block += 96


@helper
def _last_rotation(source: Any, count: Any, G: Any, folds: Any, blocks: Any) -> Any:
    """Products with the last joint and its folds in one pass; the products are not kept."""
    for i in range(4):
        for c in range(12):
            blocks[0, i, c] = _INF
            blocks[1, i, c] = -_INF
    rows = source.ctypes.data
    matrices = G.ctypes.data
    low = folds.ctypes.data
    high = low + 96 * folds.shape[1]
    block = blocks.ctypes.data
    for c in range(0, 96, 32):
        for k in range(c, 96 * count, 96):
            _fold_products(rows + k, matrices, low + k, high + k, block + c)


@helper
def _trapezoid_clipping(
    lower: Any, upper: Any, low_l: Any, high_l: Any, low_u: Any, high_u: Any
) -> Any:
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


@helper
def _circle_range(other_lower: Any, other_upper: Any) -> Any:
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


@helper
def _rectangle_circle_clipping(box: Any, s: Any, w: Any) -> Any:
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


@jit
def clip_loop(
    translation: Any,
    scalar: Any,
    first: Any,
    n: Any,
    loop: Any,
    points: Any,
    C_first: Any,
    deltas: Any,
    low: Any,
    high: Any,
    box: Any,
    clipped: Any,
) -> Any:
    """The RISC processor: all clippings of one loop; the box in place. False if empty."""
    point = points[loop]
    b = 0
    for t in range(n):
        f = first + t
        for part in range(1 if translation[f] else 2):
            s = scalar[f] + part
            a_all = box[s, 0]
            b_all = box[s, 1]
            pad = PAD * (1.0 + abs(box[s, 0]) + abs(box[s, 1]))
            for r in range(12):
                if point and r % 4 != 3:
                    continue
                delta = deltas[loop, r]
                target = C_first[loop, r]  # the identity, or where a point closure wants the end
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
        s = scalar[f]
        for part in range(1 if translation[f] else 2):
            box[s + part, 0] = clipped[s + part, 0]
            box[s + part, 1] = clipped[s + part, 1]
        if not translation[f]:
            if not _rectangle_circle_clipping(box, s + 1, s):
                return False
            if not _rectangle_circle_clipping(box, s, s + 1):
                return False
    return True


@helper
def reduce_box(
    offsets: Any,
    C: Any,
    translation: Any,
    scalar: Any,
    point: Any,
    C_first: Any,
    delta: Any,
    naive: Any,
    box: Any,
    buffers: Any,
    low: Any,
    high: Any,
) -> Any:
    """Reduce_Box (Fig. 3), in place."""
    matrices, products, side, spare, folds, blocks, G, clipped = buffers
    for l in range(point.size):
        first = offsets[l]
        n = offsets[l + 1] - first
        if naive:
            bits = corner_products_naive(C, translation, scalar, box, first, n, matrices, products)
            project_naive(products, bits, low, high)
        else:
            project_products(
                C, translation, scalar, box, first, n, G, side, spare, folds, blocks, low, high
            )
        if not clip_loop(
            translation, scalar, first, n, l, point, C_first, delta, low, high, box, clipped
        ):
            return EMPTY
    return REDUCED


@jit
def box_sizes(box: Any) -> Any:
    """Longest side and volume of a box of scalars."""
    longest = 0.0
    volume = 1.0
    for s in range(box.shape[0]):
        side = box[s, 1] - box[s, 0]
        longest = max(longest, side)
        volume *= max(side, 1e-20)
    return longest, volume


@jit
def split(box: Any, first: Any, second: Any) -> Any:
    """Split a box at the middle of its widest side."""
    j = 0
    for s in range(box.shape[0]):
        if box[s, 1] - box[s, 0] > box[j, 1] - box[j, 0]:
            j = s
    middle = 0.5 * (box[j, 0] + box[j, 1])
    first[:, :] = box
    second[:, :] = box
    first[j, 0] = middle
    second[j, 1] = middle


@jit
def search(
    offsets: Any,
    C: Any,
    translation: Any,
    scalar: Any,
    point: Any,
    C_first: Any,
    delta: Any,
    naive: Any,
    stack: Any,
    weight: Any,
    queued: Any,
    sigma: Any,
    rho: Any,
    limit: Any,
    flag: Any,
    found: Any,
    counters: Any,
) -> Any:
    """The Cuik algorithm (Fig. 2) on a stack of boxes of scalars, shape (S, 2) each.

    Stops when the stack is empty, ``limit`` boxes were processed, the found boxes fill their array
    or the flag is raised; what is left stays on the stack.

    Returns:
        Number of boxes left, number of boxes found.
    """
    S = stack.shape[1]
    longest_loop = 0
    most_bits = 0
    for l in range(point.size):
        n = offsets[l + 1] - offsets[l]
        bits = 0
        for f in range(offsets[l], offsets[l + 1]):
            bits += 1 if translation[f] else 2
        longest_loop = max(longest_loop, n)
        most_bits = max(most_bits, bits)
    corners = 1 << most_bits
    buffers = (
        np.empty((longest_loop, 12)),
        np.empty((corners if naive else 1, 12)),
        np.empty((1 if naive else corners, 12)),
        np.empty((1 if naive else corners, 12)),
        np.empty((2, 1 if naive else corners, 12)),
        np.empty((2, 4, 12)),
        np.empty((4, 16)),
        np.empty((S, 2)),
    )
    low = np.empty((most_bits, 2, 12))
    high = np.empty((most_bits, 2, 12))
    box = np.empty((S, 2))
    done = 0
    n_found = 0
    while queued > 0 and done < limit and flag[0] == 0:
        if n_found == found.shape[0] or queued + 1 > stack.shape[0]:
            break
        queued -= 1
        done += 1
        share = weight[queued]
        box[:, :] = stack[queued]
        longest, volume = box_sizes(box)
        while True:
            before = volume
            state = reduce_box(
                offsets,
                C,
                translation,
                scalar,
                point,
                C_first,
                delta,
                naive,
                box,
                buffers,
                low,
                high,
            )
            counters[1] += 1
            if state == EMPTY:
                break
            longest, volume = box_sizes(box)
            if longest <= sigma or volume > rho * before:
                break
        counters[0] += 1
        if state == EMPTY:
            counters[3] += 1
            counters[4] += share
        elif longest <= sigma:
            counters[2] += 1
            counters[4] += share
            found[n_found] = box
            n_found += 1
        else:
            split(box, stack[queued], stack[queued + 1])
            weight[queued] = 0.5 * share
            weight[queued + 1] = 0.5 * share
            queued += 2
        counters[5] = queued
    return queued, n_found
