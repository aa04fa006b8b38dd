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
from numba import njit

#: Padding of the clippings against rounding.
PAD = 4e-15
EMPTY, REDUCED = 0, 1
_INF = math.inf

jit = njit(cache=True, nogil=True, error_model="numpy", fastmath={"nnan", "nsz"})


@jit
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


@jit
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


@jit
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
    matrix: Any,
    side: Any,
    spare: Any,
) -> Any:
    """VU0 with shared partial products: side[12, corner]; the same numbers as the naive version."""
    f = first
    count = 0
    target = side if n % 2 == 1 else spare
    bits = 0
    for t in range(n):
        f = first + t
        source = target
        if t > 0:
            target = spare if (n - 1 - t) % 2 == 1 else side
        corners = 2 if translation[f] else 4
        s = scalar[f]
        for i in range(corners):
            y = box[s, i & 1]
            z = 0.0 if translation[f] else box[s + 1, i >> 1]
            _corner_matrix(C[f], translation[f], y, z, matrix)
            if t == 0:
                for r in range(12):
                    target[r, i] = matrix[r]
                continue
            base = i * count
            for r in range(3):
                for c in range(4):
                    g0 = matrix[c]
                    g1 = matrix[4 + c]
                    g2 = matrix[8 + c]
                    x0 = source[4 * r]
                    x1 = source[4 * r + 1]
                    x2 = source[4 * r + 2]
                    x3 = source[4 * r + 3]
                    out = target[4 * r + c]
                    if c == 3:
                        for j in range(count):
                            out[base + j] = x0[j] * g0 + x1[j] * g1 + x2[j] * g2 + x3[j]
                    else:
                        for j in range(count):
                            out[base + j] = x0[j] * g0 + x1[j] * g1 + x2[j] * g2
        count = corners if t == 0 else count * corners
        bits += 1 if translation[f] else 2
    return bits


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
    """VU1 with folds: the joints in turn, the slowest-varying first."""
    spare = folds[2]
    for r in range(12):
        size = 1 << bits
        b = bits
        folded = False
        for t in range(n - 1, -1, -1):
            corners = 2 if translation[first + t] else 4
            size //= corners
            b -= 1 if corners == 2 else 2
            for i in range(corners):
                if folded:
                    x = _lowest(folds[0], i * size, size, spare)
                    y = _highest(folds[1], i * size, size, spare)
                else:
                    x = _lowest(side[r], i * size, size, spare)
                    y = _highest(side[r], i * size, size, spare)
                blocks[0, i] = x
                blocks[1, i] = y
            if corners == 2:
                for end in range(2):
                    low[b, end, r] = blocks[0, end]
                    high[b, end, r] = blocks[1, end]
            else:
                low[b, 0, r] = min(blocks[0, 0], blocks[0, 2])
                high[b, 0, r] = max(blocks[1, 0], blocks[1, 2])
                low[b, 1, r] = min(blocks[0, 1], blocks[0, 3])
                high[b, 1, r] = max(blocks[1, 1], blocks[1, 3])
                low[b + 1, 0, r] = min(blocks[0, 0], blocks[0, 1])
                high[b + 1, 0, r] = max(blocks[1, 0], blocks[1, 1])
                low[b + 1, 1, r] = min(blocks[0, 2], blocks[0, 3])
                high[b + 1, 1, r] = max(blocks[1, 2], blocks[1, 3])
            if t > 0:
                if folded:
                    _fold(folds[0], folds[1], size, corners, folds[0], folds[1])
                else:
                    _fold(side[r], side[r], size, corners, folds[0], folds[1])
                folded = True


@jit
def _lowest(values: Any, base: Any, size: Any, spare: Any) -> Any:
    """Minimum of a stretch whose length is a power of two, halving it: that runs in vectors."""
    if size > 8:
        size //= 2
        for j in range(size):
            u = values[base + j]
            v = values[base + size + j]
            spare[j] = u if u < v else v
        while size > 8:
            size //= 2
            for j in range(size):
                u = spare[j]
                v = spare[size + j]
                spare[j] = u if u < v else v
        x = spare[0]
        for j in range(1, size):
            x = spare[j] if spare[j] < x else x
        return x
    x = values[base]
    for j in range(1, size):
        x = values[base + j] if values[base + j] < x else x
    return x


@jit
def _highest(values: Any, base: Any, size: Any, spare: Any) -> Any:
    """Maximum of a stretch whose length is a power of two."""
    if size > 8:
        size //= 2
        for j in range(size):
            u = values[base + j]
            v = values[base + size + j]
            spare[j] = u if u > v else v
        while size > 8:
            size //= 2
            for j in range(size):
                u = spare[j]
                v = spare[size + j]
                spare[j] = u if u > v else v
        x = spare[0]
        for j in range(1, size):
            x = spare[j] if spare[j] > x else x
        return x
    x = values[base]
    for j in range(1, size):
        x = values[base + j] if values[base + j] > x else x
    return x


@jit
def _fold(source_low: Any, source_high: Any, size: Any, corners: Any, low: Any, high: Any) -> Any:
    """Minima and maxima over the blocks of the slowest joint."""
    for j in range(size):
        x = source_low[j]
        y = source_high[j]
        for i in range(1, corners):
            u = source_low[i * size + j]
            v = source_high[i * size + j]
            x = u if u < x else x
            y = v if v > y else y
        low[j] = x
        high[j] = y


@jit
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


@jit
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


@jit
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
    delta = deltas[loop]
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


@jit
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
    matrices, products, side, spare, folds, blocks, clipped = buffers
    for l in range(point.size):
        first = offsets[l]
        n = offsets[l + 1] - first
        if naive:
            bits = corner_products_naive(C, translation, scalar, box, first, n, matrices, products)
            project_naive(products, bits, low, high)
        else:
            bits = corner_products(
                C, translation, scalar, box, first, n, blocks.reshape(-1)[8:], side, spare
            )
            project(side, translation, first, n, bits, folds, blocks, low, high)
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
        np.empty((12, 1 if naive else corners)),
        np.empty((12, 1 if naive else corners)),
        np.empty((3, corners)),
        np.empty((5, 4)),
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
