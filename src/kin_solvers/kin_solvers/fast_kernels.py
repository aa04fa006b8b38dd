"""Reduce_Box and the search of the fast method, compiled.

The kernels take arrays one by one: a tuple of them would cost a reference count at each use.

Notation (docs/cuik.md has the derivation):

* A loop Z_1 C_1 ... Z_n C_n = I is cut in two: F = A - B with A a product of the second half and B
  the inverse of the product of the first half, both multi-affine in the (y, z) of their angles.
* Each arc is enclosed by a polygon (its *hull*) of 3 or 4 vertices, each travel by its 2 ends. Over
  the hulls a multi-affine function takes its extremes at products of vertices.
* For a vertex i of variable k, low[i] and high[i] bound F over all other variables. With the
  coordinates u[i] of the vertices, the arc's points with F = 0 lie where the lower hull of
  (u[i], low[i]) is <= 0 and the upper hull of (u[i], high[i]) is >= 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from kin_solvers.lanes import (
    ROW,
    VECTOR,
    address,
    columns,
    combine,
    dot,
    fold_2,
    fold_3,
    fold_4,
    fold_values_2,
    fold_values_3,
    fold_values_4,
    four_dots,
    multiply,
    multiply_derivative,
    turn_columns,
    turn_rows,
)

#: Half-width under which an arc is enclosed by a triangle [rad].
NARROW = 0.6
#: Padding of angles and of hull coordinates against rounding.
PAD = 4e-15

#: Entries of a conformal matrix: rotation and translation (3 x 4), then 2 t'R (3) and |t|^2.
ROWS = 16
#: Pieces into which a box is cut at most.
MOST_PIECES = 4
#: Part of a null space that a variable must have to become its parameter.
PARAMETER_SHARE = 0.1
#: Rows of the preconditioned system that are evaluated together.
LANES = 4

jit = njit(cache=True, nogil=True, error_model="numpy", fastmath={"nnan", "nsz", "contract"})
#: For functions that only kernels call: no entry from Python, which takes long to compile.
helper = njit(
    nogil=True,
    error_model="numpy",
    fastmath={"nnan", "nsz", "contract"},
    no_cpython_wrapper=True,
    no_cfunc_wrapper=True,
)

# Rows of a hull: cosine and sine of its vertices, and sine and cosine relative to the middle.
Y, Z, U, V = 0, 1, 2, 3
_HALF_PI = 0.5 * math.pi
_TWO_PI = 2.0 * math.pi
_INF = math.inf


@helper
def enclose(
    lower: Any, upper: Any, translation: Any, count: Any, hull: Any, middle: Any, half: Any
) -> Any:
    """Vertices of the hull of every variable.

    Writes for variable k: ``count[k]`` vertices in ``hull[k]``, shape (4, 4), as rows Y, Z (for a
    translation: Y = the travel), U = sin and V = cos relative to the middle; the middle, and the
    half-width with its padding.

    Returns:
        The largest half-width, and whether any hull has 4 vertices.
    """
    widest = 0.0
    wide = False
    for k in range(lower.size):
        m = 0.5 * (lower[k] + upper[k])
        h = 0.5 * (upper[k] - lower[k]) + PAD * (1.0 + abs(m))
        middle[k] = m
        half[k] = h
        widest = max(widest, h)
        if translation[k]:
            count[k] = 2
            hull[k, Y, 0] = m - h
            hull[k, Y, 1] = m + h
            hull[k, U, 0] = -h
            hull[k, U, 1] = h
            continue
        cm = math.cos(m)
        sm = math.sin(m)
        if h < NARROW:
            s = math.sin(h)
            c = math.sqrt(1.0 - s * s)
            apex = 1.0 / c
            count[k] = 3
            hull[k, U, 0] = -s
            hull[k, U, 1] = 0.0
            hull[k, U, 2] = s
            hull[k, Y, 0] = cm * c + sm * s
            hull[k, Z, 0] = sm * c - cm * s
            hull[k, Y, 1] = cm * apex
            hull[k, Z, 1] = sm * apex
            hull[k, Y, 2] = cm * c - sm * s
            hull[k, Z, 2] = sm * c + cm * s
            continue
        wide = True
        count[k] = 4
        inner = 1.0
        outer = 1.0
        c = -1.0
        if h < _HALF_PI:
            c = math.cos(h)
            inner = math.tan(0.5 * h)
            outer = math.sin(h)
        elif h < math.pi:
            c = math.cos(h)
        hull[k, V, 0] = c
        hull[k, U, 0] = -outer
        hull[k, V, 1] = 1.0
        hull[k, U, 1] = -inner
        hull[k, V, 2] = 1.0
        hull[k, U, 2] = inner
        hull[k, V, 3] = c
        hull[k, U, 3] = outer
        for i in range(4):
            hull[k, Y, i] = cm * hull[k, V, i] - sm * hull[k, U, i]
            hull[k, Z, i] = sm * hull[k, V, i] + cm * hull[k, U, i]
    return widest, wide


@helper
def vertex_matrix(
    C: Any, f: Any, translation: Any, y: Any, z: Any, inverse: Any, G: Any, g: Any
) -> Any:
    """G[g] = Z C[f], or C[f] Z^-1 (given the inverse constants), at one vertex."""
    if not translation:
        if inverse:
            turn_columns(address(G) + ROW * g, address(C) + ROW * f, y, z)
        else:
            turn_rows(address(G) + ROW * g, address(C) + ROW * f, y, z)
        return
    for r in range(ROWS):
        G[g, r] = C[f, r]
    if inverse:
        for r in range(3):
            G[g, 4 * r + 3] -= y * C[f, 4 * r + 2]
        G[g, 14] -= 2.0 * y
        G[g, 15] += y * y - y * C[f, 14]
    else:
        G[g, 11] += y
        for c in range(3):
            G[g, 12 + c] += 2.0 * y * C[f, 8 + c]
        G[g, 15] += y * y + 2.0 * y * C[f, 11]


@helper
def _times_all(source: Any, n: Any, G: Any, m: Any, out: Any) -> Any:
    """out[i n + j] = source[j] G[i], given the addresses of the first rows."""
    for i in range(m):
        for j in range(n):
            multiply(out, source + ROW * j, G + ROW * i, 1.0)
            out += ROW


@helper
def vertex_products(
    sides: Any, base: Any, spare: Any, G: Any, first: Any, length: Any, counts: Any
) -> Any:
    """All vertex products of one half-loop, in the rows ``base``, ``base`` + 1, ... of ``sides``.

    Joint t of the half varies with the stride product(counts[:t]).
    """
    out = address(sides) + ROW * base
    other = address(spare)
    g = address(G) + 4 * ROW * first
    n = counts[first]
    if length == 1:
        for i in range(n):
            combine(out + ROW * i, g + ROW * i, 1.0, g + ROW * i, 0.0)
        return n
    m = counts[first + 1]
    # The last product lands in ``sides``.
    _times_all(g, n, g + 4 * ROW, m, out if length % 2 == 0 else other)
    n *= m
    for t in range(2, length):
        m = counts[first + t]
        if (length - t) % 2 == 1:
            _times_all(other, n, g + 4 * ROW * t, m, out)
        else:
            _times_all(out, n, g + 4 * ROW * t, m, other)
        n *= m
    return n


@helper
def _cut_loops(
    offsets: Any,
    owner: Any,
    point: Any,
    translation: Any,
    C: Any,
    C_inverse: Any,
    C_first: Any,
    rotate: Any,
    count: Any,
    hull: Any,
    G: Any,
    G_count: Any,
    G_variable: Any,
    cut: Any,
    sides: Any,
    spare: Any,
    sizes: Any,
) -> Any:
    """Cut every loop in halves at a place that moves with ``rotate``; all vertex products."""
    width = spare.shape[0]
    for l in range(point.size):
        o = offsets[l]
        n = offsets[l + 1] - o
        start = 0 if point[l] else rotate % n
        p = n // 2
        cut[l] = p
        for t in range(n):
            f = start + p - 1 - t if t < p else start + t
            if f >= n:
                f -= n
            k = owner[o + f]
            G_variable[o + t] = k
            G_count[o + t] = count[k]
            g = 4 * (o + t)
            for i in range(count[k]):
                y = hull[k, Y, i]
                z = hull[k, Z, i]
                if t < p:
                    vertex_matrix(C_inverse, o + f, translation[k], y, z, True, G, g + i)
                else:
                    vertex_matrix(C, o + f, translation[k], y, z, False, G, g + i)
        if point[l]:  # the leading constant belongs to the inverse half
            g = address(G) + 4 * ROW * (o + p - 1)
            for i in range(G_count[o + p - 1]):
                multiply(g + ROW * i, g + ROW * i, address(C_first) + ROW * l, 1.0)
        base = 2 * l * width
        sizes[2 * l] = vertex_products(sides, base, spare, G, o, p, G_count)
        sizes[2 * l + 1] = vertex_products(sides, base + width, spare, G, o + p, n - p, G_count)


@helper
def fold_side(
    values: Any,
    vectors: Any,
    counts: Any,
    first: Any,
    length: Any,
    size: Any,
    low: Any,
    high: Any,
    block_low: Any,
    block_high: Any,
) -> Any:
    """Extremes for each vertex i of each joint t of a half: rows 4 t + i of the blocks.

    The joints in turn, the slowest-varying first: its vertices are blocks of what is left, and
    folding these into one leaves the extremes over that joint. At the end the first rows of ``low``
    and ``high`` hold the extremes of everything.

    Args:
        values: Address of the values, rows of ``vectors`` vectors.
        vectors: Vectors in a row.
        counts: Vertices of each joint.
        first: First joint of the half.
        length: Joints of the half.
        size: Rows of values.
        low: Address of room for as many rows.
        high: The same.
        block_low: Address of the blocks.
        block_high: The same.
    """
    step = VECTOR * vectors
    for t in range(length - 1, -1, -1):
        m = counts[first + t]
        n = size // m
        for c in range(vectors):
            o = VECTOR * c
            a = low + o
            b = high + o
            x = block_low + 4 * t * step + o
            y = block_high + 4 * t * step + o
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
def _clip(hull: Any, k: Any, coordinate: Any, low: Any, high: Any, row: Any, n: Any) -> Any:
    """Where a segment-trapezoid clipping leaves one coordinate: (from, to), empty if from > to.

    The generalisation of Fig. 1 of the paper to n vertices: the u with lower hull of (u, low) <= 0
    and upper hull of (u, high) >= 0.
    """
    a = _INF
    b = -_INF
    c = _INF
    d = -_INF
    for i in range(n):
        x = hull[k, coordinate, i]
        if low[row, i] <= 0.0:
            a = min(a, x)
            b = max(b, x)
        if high[row, i] >= 0.0:
            c = min(c, x)
            d = max(d, x)
    if a > b or c > d:
        return 1.0, -1.0
    for i in range(n):
        f = low[row, i]
        g = high[row, i]
        x0 = hull[k, coordinate, i]
        if f <= 0.0:
            for j in range(n):
                if low[row, j] > 0.0:
                    x = x0 + (hull[k, coordinate, j] - x0) * (f / (f - low[row, j]))
                    a = min(a, x)
                    b = max(b, x)
        if g >= 0.0:
            for j in range(n):
                if high[row, j] < 0.0:
                    x = x0 + (hull[k, coordinate, j] - x0) * (g / (g - high[row, j]))
                    c = min(c, x)
                    d = max(d, x)
    return max(a, c), min(b, d)


@helper
def _span(s: Any, l0: Any, l1: Any, l2: Any) -> Any:
    """Where the lower hull of (-s, l0), (0, l1), (s, l2) is <= 0: (from, to)."""
    if l0 <= 0.0 and l2 <= 0.0:
        return -s, s
    a = -s
    b = s
    if l0 > 0.0:
        a = _INF
        if l1 <= 0.0:
            a = s * (l0 / (l0 - l1)) - s
        if l2 <= 0.0:
            a = min(a, 2.0 * s * (l0 / (l0 - l2)) - s)
            if l1 > 0.0:
                a = min(a, s * (l1 / (l1 - l2)))
    if l2 > 0.0:
        b = -_INF
        if l1 <= 0.0:
            b = s - s * (l2 / (l2 - l1))
        if l0 <= 0.0:
            b = max(b, s - 2.0 * s * (l2 / (l2 - l0)))
            if l1 > 0.0:
                b = max(b, -s * (l1 / (l1 - l0)))
    return a, b


@helper
def intersect(k: Any, n: Any, h: Any, hull: Any, low: Any, high: Any, row: Any, clip: Any) -> Any:
    """Clip variable k with one row of bounds; False if nothing is left."""
    if n == 3:
        s = hull[k, U, 2]
        a, b = _span(s, low[row, 0], low[row, 1], low[row, 2])
        c, d = _span(s, -high[row, 0], -high[row, 1], -high[row, 2])
        a = max(a, c)
        b = min(b, d)
    else:
        a, b = _clip(hull, k, U, low, high, row, n)
    if a > b + 2.0 * PAD * (1.0 + h):
        return False
    if a > clip[k, 0]:
        clip[k, 0] = a
    if b < clip[k, 1]:
        clip[k, 1] = b
    if n == 4:
        c, d = _clip(hull, k, V, low, high, row, n)
        if c > d + 4.0 * PAD:
            return False
        if c > clip[k, 2]:
            clip[k, 2] = c
        if d < clip[k, 3]:
            clip[k, 3] = d
    return True


@helper
def bend(first: Any, last: Any, owner: Any, translation: Any, half: Any) -> Any:
    """How far the square of a travel lies under its secant, summed over the travels of a loop."""
    s = 0.0
    for f in range(first, last):
        k = owner[f]
        if translation[k]:
            s += half[k] * half[k] * (1.0 + 1e-12)
    return s


@helper
def _clip_raw(
    offsets: Any,
    owner: Any,
    point: Any,
    translation: Any,
    delta: Any,
    hull: Any,
    half: Any,
    G_count: Any,
    G_variable: Any,
    cut: Any,
    sides: Any,
    width: Any,
    sizes: Any,
    low: Any,
    high: Any,
    block_low: Any,
    block_high: Any,
    all_low: Any,
    all_high: Any,
    row_low: Any,
    row_high: Any,
    clip: Any,
) -> Any:
    """Clip with the equations of every loop as they are; False if empty."""
    longest = block_low.shape[0] // 8
    for l in range(point.size):
        o = offsets[l]
        n = offsets[l + 1] - o
        p = cut[l]
        sag = bend(o, o + n, owner, translation, half)
        for side in range(2):
            fold_side(
                address(sides) + (2 * l + side) * width * ROW,
                4,
                G_count,
                o if side == 0 else o + p,
                p if side == 0 else n - p,
                sizes[2 * l + side],
                address(low),
                address(high),
                address(block_low) + 4 * side * longest * ROW,
                address(block_high) + 4 * side * longest * ROW,
            )
            for r in range(ROWS):
                all_low[side, r] = low[0, r]
                all_high[side, r] = high[0, r]
        for r in range(ROWS):
            if point[l] and r % 4 != 3:
                continue
            bound = delta[l, r] + sag if r == 15 else delta[l, r]
            if all_low[1, r] - all_high[0, r] > bound or all_low[0, r] - all_high[1, r] > bound:
                return False
        for t in range(n):
            side = 0 if t < p else 1
            b = 4 * t if t < p else 4 * (longest + t - p)
            k = G_variable[o + t]
            m = G_count[o + t]
            for r in range(ROWS):
                if point[l] and r % 4 != 3:
                    continue
                bound = delta[l, r] + sag if r == 15 else delta[l, r]
                clips = False
                for i in range(m):
                    if side == 0:
                        x = all_low[1, r] - block_high[b + i, r] - bound
                        y = all_high[1, r] - block_low[b + i, r] + bound
                    else:
                        x = block_low[b + i, r] - all_high[0, r] - bound
                        y = block_high[b + i, r] - all_low[0, r] + bound
                    row_low[0, i] = x
                    row_high[0, i] = y
                    if x > 0.0 or y < 0.0:
                        clips = True
                if clips and not intersect(k, m, half[k], hull, row_low, row_high, 0, clip):
                    return False
    return True


@helper
def jacobian(
    offsets: Any,
    point: Any,
    cut: Any,
    G: Any,
    G_count: Any,
    G_variable: Any,
    X: Any,
    mean: Any,
    after: Any,
    J: Any,
) -> Any:
    """J[k] = half the difference of F between the last and the first vertex of k, others at mean.

    The mean of a product over independent vertices is the product of the means.
    """
    for k in range(J.shape[0]):
        for r in range(J.shape[1]):
            J[k, r] = 0.0
    x = address(X)
    a = address(after)
    for l in range(point.size):
        o = offsets[l]
        n = offsets[l + 1] - o
        p = cut[l]
        for side in range(2):
            first = o if side == 0 else o + p
            length = p if side == 0 else n - p
            sign = -0.5 if side == 0 else 0.5
            g = address(G) + 4 * ROW * first
            for t in range(length):
                h = g + 4 * ROW * t
                combine(address(mean) + ROW * t, h, 0.5, h + ROW * (G_count[first + t] - 1), 0.5)
            # after[t] = mean[t] mean[t+1] ...; after[0] serves as the product before t
            for r in range(ROWS):
                unit = 1.0 if (r == 0 or r == 5 or r == 10) else 0.0
                after[length, r] = unit
                after[0, r] = unit
            for t in range(length - 1, 0, -1):
                multiply(a + ROW * t, address(mean) + ROW * t, a + ROW * (t + 1), 1.0)
            for t in range(length):
                h = g + 4 * ROW * t
                combine(x, h, -sign, h + ROW * (G_count[first + t] - 1), sign)
                if t > 0:
                    multiply_derivative(x, a, x)
                multiply(x, x, a + ROW * (t + 1), 0.0)
                k = G_variable[first + t]
                if point[l]:
                    for r in range(3, ROWS, 4):
                        J[k, ROWS * l + r] += X[0, r]
                else:
                    row = address(J) + 8 * (J.shape[1] * k + ROWS * l)
                    combine(row, row, 1.0, x, 1.0)
                if t + 1 < length:
                    multiply(a, a, address(mean) + ROW * t, 1.0)


@helper
def find_parameter(N: Any, B: Any, V: Any, eps: Any) -> Any:
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


@helper
def factor(N: Any, V: Any, eps: Any) -> Any:
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
def _precondition(J: Any, N: Any, B: Any, P: Any, eps: Any) -> Any:
    """P = (J J' + eps I)^-1 J by Cholesky; any P is valid, so rounding does not matter.

    On a curve of solutions (a null direction n of J') row k of P J' is e_k - n_k n: each variable
    would be bounded by all others at once. Taking the right multiple of row j from the others
    leaves e_k - (n_k / n_j) e_j: they are bounded by the parameter j alone.
    """
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
    eps = factor(N, V, eps)
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
    j = find_parameter(N, B, V, eps)
    if j >= 0:
        for k in range(V):
            if k != j:
                for l in range(loops):
                    o = b + row * k + ROW * l
                    combine(o, o, 1.0, b + row * j + ROW * l, -B[V, k])


@helper
def _level_shared(
    l: Any,
    start: Any,
    side: Any,
    first: Any,
    length: Any,
    k0: Any,
    lanes: Any,
    size: Any,
    shared: Any,
    hull: Any,
    G_count: Any,
    G_variable: Any,
    J: Any,
    P: Any,
    value: Any,
    slack: Any,
) -> Any:
    """Move the slopes in variables shared between loops from loop to loop.

    The sum over the loops stays as it is, and the parts no longer fight each other. Bounds the
    rounding of the move in ``slack``.
    """
    sign = -1.0 if side == 0 else 1.0
    stride = 1
    row = 8 * J.shape[1]
    for t in range(length):
        j = G_variable[first + t]
        m = G_count[first + t]
        again = False  # a variable that stands twice in a loop takes its slope once
        for i in range(start, first + t):
            if G_variable[i] == j:
                again = True
        if shared[j] > 1 and not again:
            top = hull[j, U, m - 1]
            for q in range(lanes):
                k = k0 + q
                if j == k:
                    continue
                total = 0.0
                for i in range(J.shape[1] // ROWS):
                    total += dot(address(P) + row * k + ROW * i, address(J) + row * j + ROW * i)
                part = dot(address(P) + row * k + ROW * l, address(J) + row * j + ROW * l)
                move = sign * (total / shared[j] - part)
                slack[k] += 1e-14 * (abs(part) + abs(total))
                for i in range(m):
                    shift = move * (hull[j, U, i] / top)
                    for base in range(i * stride, size, stride * m):
                        for x in range(base, base + stride):
                            value[x, q] += shift
        stride *= m


@helper
def _clip_preconditioned(
    offsets: Any,
    owner: Any,
    point: Any,
    translation: Any,
    shared: Any,
    delta: Any,
    count: Any,
    hull: Any,
    half: Any,
    G_count: Any,
    G_variable: Any,
    cut: Any,
    sides: Any,
    width: Any,
    sizes: Any,
    J: Any,
    P: Any,
    column: Any,
    norms: Any,
    value: Any,
    low: Any,
    high: Any,
    lane_low: Any,
    lane_high: Any,
    row_low: Any,
    row_high: Any,
    slack: Any,
    clip: Any,
) -> Any:
    """Clip each variable k with row k of P F; False if empty."""
    n_variables = count.size
    for k in range(n_variables):
        slack[k] = 0.0
        for i in range(4):
            row_low[k, i] = 0.0
            row_high[k, i] = 0.0
    row = 8 * J.shape[1]
    last = n_variables * row  # a row of zeros
    for k0 in range(0, n_variables, LANES):
        lanes = min(LANES, n_variables - k0)
        for l in range(point.size):
            o = offsets[l]
            n = offsets[l + 1] - o
            p = cut[l]
            a = address(P) + ROW * l
            columns(
                address(column),
                a + row * k0,
                a + (row * (k0 + 1) if lanes > 1 else last),
                a + (row * (k0 + 2) if lanes > 2 else last),
                a + (row * (k0 + 3) if lanes > 3 else last),
                address(delta) + ROW * l,
                address(norms),
            )
            if point.size == 1 and norms[0] + norms[1] + norms[2] + norms[3] == 0.0:
                continue  # with several loops, slopes of others may have moved here
            sag = bend(o, o + n, owner, translation, half)
            for q in range(lanes):
                slack[k0 + q] += norms[q] + abs(column[15, q]) * sag
            for side in range(2):
                first = o if side == 0 else o + p
                length = p if side == 0 else n - p
                size = sizes[2 * l + side]
                rows = address(sides) + (2 * l + side) * width * ROW
                for j in range(size):
                    four_dots(address(value) + VECTOR * j, rows + ROW * j, address(column))
                if point.size > 1:
                    _level_shared(
                        l,
                        o,
                        side,
                        first,
                        length,
                        k0,
                        lanes,
                        size,
                        shared,
                        hull,
                        G_count,
                        G_variable,
                        J,
                        P,
                        value,
                        slack,
                    )
                fold_side(
                    address(value),
                    1,
                    G_count,
                    first,
                    length,
                    size,
                    address(low),
                    address(high),
                    address(lane_low),
                    address(lane_high),
                )
                _add_side(
                    side,
                    first,
                    length,
                    k0,
                    lanes,
                    count,
                    G_count,
                    G_variable,
                    low,
                    high,
                    lane_low,
                    lane_high,
                    row_low,
                    row_high,
                )
    for k in range(n_variables):
        for i in range(count[k]):
            row_low[k, i] -= slack[k]
            row_high[k, i] += slack[k]
        if not intersect(k, count[k], half[k], hull, row_low, row_high, k, clip):
            return False
    return True


@helper
def _add_side(
    side: Any,
    first: Any,
    length: Any,
    k0: Any,
    lanes: Any,
    count: Any,
    G_count: Any,
    G_variable: Any,
    low: Any,
    high: Any,
    lane_low: Any,
    lane_high: Any,
    row_low: Any,
    row_high: Any,
) -> Any:
    """Add the bounds of one half of a loop to the rows k0, k0 + 1, ... of P F."""
    for q in range(lanes):
        k = k0 + q
        t = 0
        while t < length and G_variable[first + t] != k:
            t += 1
        for i in range(count[k]):
            if t < length:
                a = lane_low[4 * t + i, q]
                b = lane_high[4 * t + i, q]
            else:
                a = low[0, q]
                b = high[0, q]
            if side == 0:
                row_low[k, i] -= b
                row_high[k, i] -= a
            else:
                row_low[k, i] += a
                row_high[k, i] += b


@helper
def _trim(lo: Any, hi: Any, centre: Any, e: Any) -> Any:
    """Take the open arc (centre - e, centre + e), repeated every turn, off the ends of [lo, hi]."""
    if e <= 0.0:
        return lo, hi
    c = centre + _TWO_PI * math.floor((lo - (centre - e)) / _TWO_PI)
    if c - e <= lo < c + e:
        lo = c + e
    c = centre + _TWO_PI * math.ceil((hi - (centre + e)) / _TWO_PI)
    if c - e < hi <= c + e:
        hi = c - e
    return lo, hi


@helper
def back_to_angle(
    k: Any,
    translation: Any,
    cyclic: Any,
    n: Any,
    m: Any,
    h: Any,
    hull: Any,
    clip: Any,
    lower: Any,
    upper: Any,
) -> Any:
    """Turn the clipped hull coordinates of variable k into a new interval."""
    pad = PAD * (1.0 + abs(m) + h)
    lo = lower
    hi = upper
    if translation:
        lo = max(lo, m + clip[k, 0] - pad)
        hi = min(hi, m + clip[k, 1] + pad)
        return lo, hi
    if h < _HALF_PI:
        s = hull[k, U, n - 1]
        if clip[k, 0] > -s:
            lo = max(lo, m + math.asin(max(-1.0, clip[k, 0] - PAD)) - pad)
        if clip[k, 1] < s:
            hi = min(hi, m + math.asin(min(1.0, clip[k, 1] + PAD)) + pad)
        if n == 4 and clip[k, 2] - PAD > hull[k, V, 0]:
            e = math.acos(min(1.0, clip[k, 2] - PAD)) + pad
            lo = max(lo, m - e)
            hi = min(hi, m + e)
        return lo, hi
    # A wide arc: four excluded arcs, around the middle, its opposite, and both sides.
    right = math.acos(min(1.0, clip[k, 1] + PAD)) - pad if clip[k, 1] + PAD > -1.0 else math.pi
    left = math.acos(min(1.0, PAD - clip[k, 0])) - pad if PAD - clip[k, 0] > -1.0 else math.pi
    front = math.acos(min(1.0, clip[k, 3] + PAD)) - pad if clip[k, 3] + PAD > -1.0 else math.pi
    back = math.acos(min(1.0, PAD - clip[k, 2])) - pad if PAD - clip[k, 2] > -1.0 else math.pi
    if hi - lo >= _TWO_PI - 1e-9:
        if not cyclic:
            return lo, hi
        e = max(right, left, front, back)
        if e <= 0.0:
            return lo, hi
        centre = m
        if e == right:
            centre = m + _HALF_PI
        elif e == left:
            centre = m - _HALF_PI
        elif e == back:
            centre = m + math.pi
        e -= pad
        lo = centre + e
        hi = centre + _TWO_PI - e
    for _ in range(2):
        lo, hi = _trim(lo, hi, m + _HALF_PI, right - pad)
        lo, hi = _trim(lo, hi, m - _HALF_PI, left - pad)
        lo, hi = _trim(lo, hi, m, front - pad)
        lo, hi = _trim(lo, hi, m + math.pi, back - pad)
    return lo, hi


@jit
def search(
    T: Any,
    stack_lower: Any,
    stack_upper: Any,
    weight: Any,
    queued: Any,
    sigma: Any,
    rho: Any,
    limit: Any,
    tuning: Any,
    flag: Any,
    found_lower: Any,
    found_upper: Any,
    counters: Any,
) -> Any:
    """The Cuik algorithm (Fig. 2) on a stack of boxes.

    Works in place on the stack; stops when it is empty, ``limit`` boxes were processed, the found
    boxes fill their arrays, or the flag is raised. What is left stays on the stack.

    Args:
        T: The system.
        stack_lower: Lower ends of the boxes, shape (capacity, V).
        stack_upper: Upper ends, shape (capacity, V).
        weight: Share of the search volume of each box, shape (capacity,).
        queued: Number of boxes on the stack.
        sigma: Side at which a box counts as solution, shape (V,).
        rho: Volume ratio above which a box is split.
        limit: Boxes to process at most.
        tuning: (half-width above which raw rows are used, half-width up to which preconditioned
            rows are used, factor of the regularisation, ratio of the longest side above which a box
            is split, if it is longer than this many sigmas).
        flag: Stop when flag[0] is not 0.
        found_lower: Room for the lower ends of the found boxes.
        found_upper: Room for their upper ends.
        counters: processed, reductions, solutions, empty, settled share, queued; shape (6,).

    Returns:
        Number of boxes left on the stack, number of boxes found.
    """
    (
        translation,
        cyclic,
        offsets,
        owner,
        C,
        C_inverse,
        C_first,
        point,
        reaches,
        delta_wide,
        delta_narrow,
        shared,
    ) = T
    n_variables = sigma.size
    n_loops = point.size
    n_factors = owner.size
    most_joints = 1
    reach = 0.0
    for l in range(n_loops):
        most_joints = max(most_joints, (offsets[l + 1] - offsets[l] + 1) // 2)
        reach = max(reach, reaches[l])
    width = 4**most_joints
    count = np.zeros(n_variables, np.int64)
    hull = np.zeros((n_variables, 4, 4))
    middle = np.zeros(n_variables)
    half = np.zeros(n_variables)
    G = np.zeros((4 * n_factors, ROWS))
    G_count = np.zeros(n_factors, np.int64)
    G_variable = np.zeros(n_factors, np.int64)
    cut = np.zeros(n_loops, np.int64)
    sides = np.empty((2 * n_loops * width, ROWS))
    spare = np.empty((width, ROWS))
    sizes = np.zeros(2 * n_loops, np.int64)
    J = np.zeros((n_variables, ROWS * n_loops))
    P = np.zeros((n_variables + 1, ROWS * n_loops))
    N = np.zeros((n_variables, n_variables))
    B = np.zeros((n_variables + 1, n_variables))
    after = np.zeros((most_joints + 1, ROWS))
    mean = np.zeros((most_joints + 1, ROWS))
    X = np.zeros((2, ROWS))
    column = np.zeros((ROWS, LANES))
    norms = np.zeros(LANES)
    value = np.empty((width, LANES))
    low = np.empty((width, ROWS))
    high = np.empty((width, ROWS))
    block_low = np.zeros((8 * most_joints, ROWS))
    block_high = np.zeros((8 * most_joints, ROWS))
    lane_low = np.zeros((4 * most_joints, LANES))
    lane_high = np.zeros((4 * most_joints, LANES))
    all_low = np.zeros((2, ROWS))
    all_high = np.zeros((2, ROWS))
    row_low = np.zeros((n_variables, 4))
    row_high = np.zeros((n_variables, 4))
    slack = np.zeros(n_variables)
    clip = np.zeros((n_variables, 4))
    lower = np.empty(n_variables)
    upper = np.empty(n_variables)
    found = 0
    done = 0
    while queued > 0 and done < limit and flag[0] == 0:
        if found == found_lower.shape[0] or queued + MOST_PIECES > stack_lower.shape[0] + 1:
            break
        queued -= 1
        done += 1
        share = weight[queued]
        for k in range(n_variables):
            lower[k] = stack_lower[queued, k]
            upper[k] = stack_upper[queued, k]
        rotate = 0
        alive = True
        small = False
        while True:
            before = 1.0  # size(B): the volume
            longest_before = 0.0
            for k in range(n_variables):
                before *= max(upper[k] - lower[k], 1e-20)
                longest_before = max(longest_before, (upper[k] - lower[k]) / sigma[k])
            # Reduce_Box: one cut, all clippings on the original bounds.
            counters[1] += 1
            widest, wide = enclose(lower, upper, translation, count, hull, middle, half)
            for k in range(n_variables):
                clip[k, 0] = -_INF
                clip[k, 1] = _INF
                clip[k, 2] = -_INF
                clip[k, 3] = _INF
            _cut_loops(
                offsets,
                owner,
                point,
                translation,
                C,
                C_inverse,
                C_first,
                rotate,
                count,
                hull,
                G,
                G_count,
                G_variable,
                cut,
                sides,
                spare,
                sizes,
            )
            rotate += 1
            delta = delta_wide if wide else delta_narrow
            if widest > tuning[0]:
                alive = _clip_raw(
                    offsets,
                    owner,
                    point,
                    translation,
                    delta,
                    hull,
                    half,
                    G_count,
                    G_variable,
                    cut,
                    sides,
                    width,
                    sizes,
                    low,
                    high,
                    block_low,
                    block_high,
                    all_low,
                    all_high,
                    row_low,
                    row_high,
                    clip,
                )
            if alive and widest <= tuning[1]:
                jacobian(offsets, point, cut, G, G_count, G_variable, X, mean, after, J)
                eps = tuning[2] * widest * widest * widest * widest * (1.0 + reach * reach)
                _precondition(J, N, B, P, eps)
                alive = _clip_preconditioned(
                    offsets,
                    owner,
                    point,
                    translation,
                    shared,
                    delta,
                    count,
                    hull,
                    half,
                    G_count,
                    G_variable,
                    cut,
                    sides,
                    width,
                    sizes,
                    J,
                    P,
                    column,
                    norms,
                    value,
                    low,
                    high,
                    lane_low,
                    lane_high,
                    row_low,
                    row_high,
                    slack,
                    clip,
                )
            if not alive:
                break
            longest_after = 0.0
            volume = 1.0
            for k in range(n_variables):
                a, b = back_to_angle(
                    k,
                    translation[k],
                    cyclic[k],
                    count[k],
                    middle[k],
                    half[k],
                    hull,
                    clip,
                    lower[k],
                    upper[k],
                )
                if a > b:
                    alive = False
                    break
                lower[k] = a
                upper[k] = b
                volume *= max(b - a, 1e-20)
                longest_after = max(longest_after, (b - a) / sigma[k])
            small = longest_after <= 1.0
            if not alive or small or volume > rho * before or flag[0] != 0:
                break
            if widest < tuning[4] and longest_after > tuning[3] * longest_before:
                break  # the longest side is stuck: a curve, which only splitting makes shorter
        counters[0] += 1
        if not alive:
            counters[3] += 1
            counters[4] += share
        elif small:
            counters[2] += 1
            counters[4] += share
            merge = found > 0  # neighbours come in a row: one box for both if it is small enough
            for k in range(n_variables):
                if merge:
                    a = min(found_lower[found - 1, k], lower[k])
                    merge = max(found_upper[found - 1, k], upper[k]) - a <= sigma[k]
            if not merge:
                found += 1
                for k in range(n_variables):
                    found_lower[found - 1, k] = lower[k]
                    found_upper[found - 1, k] = upper[k]
            else:
                for k in range(n_variables):
                    found_lower[found - 1, k] = min(found_lower[found - 1, k], lower[k])
                    found_upper[found - 1, k] = max(found_upper[found - 1, k], upper[k])
        else:
            queued = split(stack_lower, stack_upper, weight, queued, lower, upper, sigma, share)
        counters[5] = queued
    return queued, found


@helper
def split(
    stack_lower: Any,
    stack_upper: Any,
    weight: Any,
    queued: Any,
    lower: Any,
    upper: Any,
    sigma: Any,
    share: Any,
) -> Any:
    """Push both parts of a box, split across its widest side (in units of sigma)."""
    widest = -1.0
    j = 0
    for k in range(lower.size):
        w = (upper[k] - lower[k]) / sigma[k]
        if w > widest:
            widest = w
            j = k
    pieces = 2
    if widest <= MOST_PIECES:  # pieces of just under sigma, all at once
        pieces = max(2, math.ceil(widest))
    part = 1.0 / pieces
    if MOST_PIECES < widest <= 32.0:  # whole pieces of that size on both sides
        count = math.ceil(widest)
        part = (count - count // 2) / count
    top = upper[j]
    for i in range(pieces):
        for k in range(lower.size):
            stack_lower[queued + i, k] = lower[k]
            stack_upper[queued + i, k] = upper[k]
        weight[queued + i] = (part if i == 0 else (1.0 - part) / (pieces - 1)) * share
    # The last of the stack is taken first: the piece at the lower end.
    for i in range(pieces - 1):
        m = lower[j] + (top - lower[j]) * (1.0 - part - i * (1.0 - part) / (pieces - 1))
        stack_lower[queued + i, j] = m
        stack_upper[queued + i + 1, j] = m
    return queued + pieces
