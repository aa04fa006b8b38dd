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

#: Half-width under which an arc is enclosed by a triangle [rad].
NARROW = 0.6
#: Padding of angles and of hull coordinates against rounding.
PAD = 4e-15

#: Entries of a conformal matrix: rotation and translation (3 x 4), then 2 t'R (3) and |t|^2.
ROWS = 16
#: Rows of the preconditioned system that are evaluated together.
LANES = 4

jit = njit(cache=True, nogil=True, error_model="numpy", fastmath={"nnan", "nsz", "contract"})

# Rows of a hull: cosine and sine of its vertices, and sine and cosine relative to the middle.
Y, Z, U, V = 0, 1, 2, 3
_HALF_PI = 0.5 * math.pi
_TWO_PI = 2.0 * math.pi
_INF = math.inf


@jit
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


@jit
def _vertex_matrix(
    C: Any, f: Any, translation: Any, y: Any, z: Any, inverse: Any, G: Any, g: Any
) -> Any:
    """G[g] = Z C[f], or C[f] Z^-1 (given the inverse constants), at one vertex."""
    if inverse:
        if translation:
            for r in range(ROWS):
                G[g, r] = C[f, r]
            for r in range(3):
                G[g, 4 * r + 3] -= y * C[f, 4 * r + 2]
            G[g, 14] -= 2.0 * y
            G[g, 15] += y * y - y * C[f, 14]
        else:
            for r in range(4):
                c0 = C[f, 4 * r]
                c1 = C[f, 4 * r + 1]
                G[g, 4 * r] = y * c0 - z * c1
                G[g, 4 * r + 1] = z * c0 + y * c1
                G[g, 4 * r + 2] = C[f, 4 * r + 2]
                G[g, 4 * r + 3] = C[f, 4 * r + 3]
    elif translation:
        for r in range(ROWS):
            G[g, r] = C[f, r]
        G[g, 11] += y
        for c in range(3):
            G[g, 12 + c] += 2.0 * y * C[f, 8 + c]
        G[g, 15] += y * y + 2.0 * y * C[f, 11]
    else:
        a0 = C[f, 0]
        a1 = C[f, 1]
        a2 = C[f, 2]
        a3 = C[f, 3]
        b0 = C[f, 4]
        b1 = C[f, 5]
        b2 = C[f, 6]
        b3 = C[f, 7]
        G[g, 0] = y * a0 - z * b0
        G[g, 1] = y * a1 - z * b1
        G[g, 2] = y * a2 - z * b2
        G[g, 3] = y * a3 - z * b3
        G[g, 4] = z * a0 + y * b0
        G[g, 5] = z * a1 + y * b1
        G[g, 6] = z * a2 + y * b2
        G[g, 7] = z * a3 + y * b3
        for r in range(8, ROWS):
            G[g, r] = C[f, r]


@jit
def _multiply(M: Any, i: Any, G: Any, j: Any, E: Any, unit: Any, out: Any, k: Any) -> Any:
    """out[k] = M[i] G[j] for conformal matrices.

    E = (0, 0, 0, 1) keeps the four columns alike, so that they share vector instructions; ``unit``
    is the middle entry of M (0 for a derivative). Rows are addressed by number, because a slice
    would count references in the innermost loop.
    """
    for r in range(4):
        a = M[i, 4 * r]
        b = M[i, 4 * r + 1]
        c = M[i, 4 * r + 2]
        d = M[i, 4 * r + 3]
        e = unit if r == 3 else 0.0
        # All four before the first store: the compiler must assume that ``out`` overlaps G.
        x0 = a * G[j, 0] + b * G[j, 4] + c * G[j, 8] + d * E[0] + e * G[j, 12]
        x1 = a * G[j, 1] + b * G[j, 5] + c * G[j, 9] + d * E[1] + e * G[j, 13]
        x2 = a * G[j, 2] + b * G[j, 6] + c * G[j, 10] + d * E[2] + e * G[j, 14]
        x3 = a * G[j, 3] + b * G[j, 7] + c * G[j, 11] + d * E[3] + e * G[j, 15]
        out[k, 4 * r] = x0
        out[k, 4 * r + 1] = x1
        out[k, 4 * r + 2] = x2
        out[k, 4 * r + 3] = x3


@jit
def _vertex_products(
    sides: Any, base: Any, spare: Any, G: Any, E: Any, first: Any, length: Any, counts: Any
) -> Any:
    """All vertex products of one half-loop, in the rows ``base``, ``base`` + 1, ... of ``sides``.

    Joint t of the half varies with the stride product(counts[:t]).
    """
    n = counts[first]
    if length == 1:
        for i in range(n):
            for r in range(ROWS):
                sides[base + i, r] = G[4 * first + i, r]
        return n
    m = counts[first + 1]
    if length % 2 == 0:  # the last product lands in ``sides``
        for i in range(m):
            for j in range(n):
                _multiply(G, 4 * first + j, G, 4 * first + 4 + i, E, 1.0, sides, base + i * n + j)
    else:
        for i in range(m):
            for j in range(n):
                _multiply(G, 4 * first + j, G, 4 * first + 4 + i, E, 1.0, spare, i * n + j)
    n *= m
    for t in range(2, length):
        m = counts[first + t]
        g = 4 * (first + t)
        if (length - t) % 2 == 1:
            for i in range(m):
                for j in range(n):
                    _multiply(spare, j, G, g + i, E, 1.0, sides, base + i * n + j)
        else:
            for i in range(m):
                for j in range(n):
                    _multiply(sides, base + j, G, g + i, E, 1.0, spare, i * n + j)
        n *= m
    return n


@jit
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
    E: Any,
    X: Any,
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
                    _vertex_matrix(C_inverse, o + f, translation[k], y, z, True, G, g + i)
                else:
                    _vertex_matrix(C, o + f, translation[k], y, z, False, G, g + i)
        if point[l]:  # the leading constant belongs to the inverse half
            g = 4 * (o + p - 1)
            for i in range(G_count[o + p - 1]):
                for r in range(ROWS):
                    X[0, r] = G[g + i, r]
                _multiply(X, 0, C_first, l, E, 1.0, G, g + i)
        base = 2 * l * width
        sizes[2 * l] = _vertex_products(sides, base, spare, G, E, o, p, G_count)
        sizes[2 * l + 1] = _vertex_products(sides, base + width, spare, G, E, o + p, n - p, G_count)


@jit
def _extremes(
    values: Any, base: Any, size: Any, stride: Any, vertices: Any, low: Any, high: Any, row: Any
) -> Any:
    """Extremes of every column for each vertex i of the joint with this stride: low[row + i].

    With stride = size and one vertex: over all rows.
    """
    for i in range(vertices):
        start = base + i * stride
        for c in range(0, ROWS, 4):
            a0 = b0 = values[start, c]
            a1 = b1 = values[start, c + 1]
            a2 = b2 = values[start, c + 2]
            a3 = b3 = values[start, c + 3]
            for block in range(start, base + size, stride * vertices):
                for j in range(block, block + stride):
                    x0 = values[j, c]
                    x1 = values[j, c + 1]
                    x2 = values[j, c + 2]
                    x3 = values[j, c + 3]
                    a0 = x0 if x0 < a0 else a0
                    a1 = x1 if x1 < a1 else a1
                    a2 = x2 if x2 < a2 else a2
                    a3 = x3 if x3 < a3 else a3
                    b0 = x0 if x0 > b0 else b0
                    b1 = x1 if x1 > b1 else b1
                    b2 = x2 if x2 > b2 else b2
                    b3 = x3 if x3 > b3 else b3
            low[row + i, c] = a0
            low[row + i, c + 1] = a1
            low[row + i, c + 2] = a2
            low[row + i, c + 3] = a3
            high[row + i, c] = b0
            high[row + i, c + 1] = b1
            high[row + i, c + 2] = b2
            high[row + i, c + 3] = b3


@jit
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


@jit
def _intersect(k: Any, n: Any, h: Any, hull: Any, low: Any, high: Any, row: Any, clip: Any) -> Any:
    """Clip variable k with one row of bounds; False if nothing is left."""
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


@jit
def _bend(first: Any, last: Any, owner: Any, translation: Any, half: Any) -> Any:
    """How far the square of a travel lies under its secant, summed over the travels of a loop."""
    s = 0.0
    for f in range(first, last):
        k = owner[f]
        if translation[k]:
            s += half[k] * half[k] * (1.0 + 1e-12)
    return s


@jit
def _clip_raw(
    offsets: Any,
    owner: Any,
    point: Any,
    translation: Any,
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
    low: Any,
    high: Any,
    all_low: Any,
    all_high: Any,
    row_low: Any,
    row_high: Any,
    clip: Any,
) -> Any:
    """Clip with the equations of every loop as they are; False if empty."""
    for l in range(point.size):
        o = offsets[l]
        n = offsets[l + 1] - o
        p = cut[l]
        bend = _bend(o, o + n, owner, translation, half)
        for side in range(2):
            size = sizes[2 * l + side]
            _extremes(sides, (2 * l + side) * width, size, size, 1, all_low, all_high, side)
        for r in range(ROWS):
            if point[l] and r % 4 != 3:
                continue
            bound = delta[l] + bend if r == 15 else delta[l]
            if all_low[1, r] - all_high[0, r] > bound or all_low[0, r] - all_high[1, r] > bound:
                return False
        stride = 1
        for t in range(n):
            if t == p:
                stride = 1
            side = 0 if t < p else 1
            k = G_variable[o + t]
            m = G_count[o + t]
            _extremes(sides, (2 * l + side) * width, sizes[2 * l + side], stride, m, low, high, 0)
            for r in range(ROWS):
                if point[l] and r % 4 != 3:
                    continue
                bound = delta[l] + bend if r == 15 else delta[l]
                clips = False
                for i in range(m):
                    if side == 0:
                        a = all_low[1, r] - high[i, r] - bound
                        b = all_high[1, r] - low[i, r] + bound
                    else:
                        a = low[i, r] - all_high[0, r] - bound
                        b = high[i, r] - all_low[0, r] + bound
                    row_low[0, i] = a
                    row_high[0, i] = b
                    if a > 0.0 or b < 0.0:
                        clips = True
                if clips and not _intersect(k, m, half[k], hull, row_low, row_high, 0, clip):
                    return False
            stride *= m
    return True


@jit
def _jacobian(
    offsets: Any,
    point: Any,
    cut: Any,
    G: Any,
    G_count: Any,
    G_variable: Any,
    E: Any,
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
    for l in range(point.size):
        o = offsets[l]
        n = offsets[l + 1] - o
        p = cut[l]
        for side in range(2):
            first = o if side == 0 else o + p
            length = p if side == 0 else n - p
            sign = -0.5 if side == 0 else 0.5
            for t in range(length):
                g = 4 * (first + t)
                h = g + G_count[first + t] - 1
                for r in range(ROWS):
                    mean[t, r] = 0.5 * (G[g, r] + G[h, r])
            # after[t] = mean[t] mean[t+1] ...; after[0] serves as the product before t
            for r in range(ROWS):
                unit = 1.0 if (r == 0 or r == 5 or r == 10) else 0.0
                after[length, r] = unit
                after[0, r] = unit
            for t in range(length - 1, 0, -1):
                _multiply(mean, t, after, t + 1, E, 1.0, after, t)
            for t in range(length):
                g = 4 * (first + t)
                h = g + G_count[first + t] - 1
                k = G_variable[first + t]
                for r in range(ROWS):
                    X[0, r] = sign * (G[h, r] - G[g, r])
                for r in range(4):
                    a = after[0, 4 * r]
                    b = after[0, 4 * r + 1]
                    c = after[0, 4 * r + 2]
                    for q in range(4):
                        X[1, 4 * r + q] = a * X[0, q] + b * X[0, 4 + q] + c * X[0, 8 + q]
                for q in range(4):
                    X[1, 12 + q] += X[0, 12 + q]
                _multiply(X, 1, after, t + 1, E, 0.0, X, 0)
                for r in range(ROWS):
                    if r % 4 == 3 or not point[l]:
                        J[k, ROWS * l + r] += X[0, r]
                if t + 1 < length:
                    _multiply(after, 0, mean, t, E, 1.0, X, 0)
                    for r in range(ROWS):
                        after[0, r] = X[0, r]


@jit
def _precondition(J: Any, N: Any, P: Any, eps: Any) -> Any:
    """P = (J J' + eps I)^-1 J by Cholesky; any P is valid, so rounding does not matter."""
    V, R = J.shape
    for i in range(V):
        for j in range(i + 1):
            s = 0.0
            for r in range(R):
                s += J[i, r] * J[j, r]
            N[i, j] = s
        N[i, i] += eps
    for j in range(V):
        s = N[j, j]
        for m in range(j):
            s -= N[j, m] * N[j, m]
        d = math.sqrt(max(s, 1e-30))
        N[j, j] = d
        for i in range(j + 1, V):
            s = N[i, j]
            for m in range(j):
                s -= N[i, m] * N[j, m]
            N[i, j] = s / d
    for i in range(V):
        for r in range(R):
            P[i, r] = J[i, r]
        for m in range(i):
            x = N[i, m]
            for r in range(R):
                P[i, r] -= x * P[m, r]
        x = 1.0 / N[i, i]
        for r in range(R):
            P[i, r] *= x
    for i in range(V - 1, -1, -1):
        for m in range(i + 1, V):
            x = N[m, i]
            for r in range(R):
                P[i, r] -= x * P[m, r]
        x = 1.0 / N[i, i]
        for r in range(R):
            P[i, r] *= x


@jit
def _row_values(sides: Any, base: Any, size: Any, weights: Any, out: Any) -> Any:
    """out[j, q] = sides[base + j] . weights[:, q] for LANES rows of P at once."""
    for j in range(size):
        a = 0.0
        b = 0.0
        c = 0.0
        d = 0.0
        for r in range(ROWS):
            x = sides[base + j, r]
            a += x * weights[r, 0]
            b += x * weights[r, 1]
            c += x * weights[r, 2]
            d += x * weights[r, 3]
        out[j, 0] = a
        out[j, 1] = b
        out[j, 2] = c
        out[j, 3] = d


@jit
def _level_shared(
    l: Any,
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
    for t in range(length):
        j = G_variable[first + t]
        m = G_count[first + t]
        if shared[j] > 1:
            top = hull[j, U, m - 1]
            for q in range(lanes):
                k = k0 + q
                if j == k:
                    continue
                total = 0.0
                part = 0.0
                for r in range(J.shape[1]):
                    total += P[k, r] * J[j, r]
                for r in range(ROWS * l, ROWS * l + ROWS):
                    part += P[k, r] * J[j, r]
                move = sign * (total / shared[j] - part)
                slack[k] += 1e-14 * (abs(part) + abs(total))
                for i in range(m):
                    shift = move * (hull[j, U, i] / top)
                    for base in range(i * stride, size, stride * m):
                        for x in range(base, base + stride):
                            value[x, q] += shift
        stride *= m


@jit
def _add_side(
    side: Any,
    first: Any,
    length: Any,
    k0: Any,
    lanes: Any,
    size: Any,
    count: Any,
    G_count: Any,
    G_variable: Any,
    value: Any,
    row_low: Any,
    row_high: Any,
) -> Any:
    """Add the bounds of one half of a loop to the rows k0, k0 + 1, ... of P F."""
    for q in range(lanes):
        k = k0 + q
        stride = 1
        m = 1
        for t in range(length):
            if G_variable[first + t] == k:
                m = G_count[first + t]
                break
            stride *= G_count[first + t]
        if m == 1:
            stride = size
        for i in range(m):
            a = _INF
            b = -_INF
            for block in range(i * stride, size, stride * m):
                for j in range(block, block + stride):
                    x = value[j, q]
                    a = x if x < a else a
                    b = x if x > b else b
            if side == 0:
                x = -b
                b = -a
                a = x
            if m == 1:
                for j in range(count[k]):
                    row_low[k, j] += a
                    row_high[k, j] += b
            else:
                row_low[k, i] += a
                row_high[k, i] += b


@jit
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
    value: Any,
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
    for k0 in range(0, n_variables, LANES):
        lanes = min(LANES, n_variables - k0)
        for l in range(point.size):
            o = offsets[l]
            n = offsets[l + 1] - o
            p = cut[l]
            bend = _bend(o, o + n, owner, translation, half)
            any_weight = False
            for q in range(LANES):
                norm = 0.0
                if q < lanes:
                    for r in range(ROWS):
                        x = P[k0 + q, ROWS * l + r]
                        column[r, q] = x
                        norm += abs(x)
                    slack[k0 + q] += norm * delta[l] + abs(column[15, q]) * bend
                else:
                    for r in range(ROWS):
                        column[r, q] = 0.0
                any_weight = any_weight or norm > 0.0
            if not any_weight:
                continue
            for side in range(2):
                first = o if side == 0 else o + p
                length = p if side == 0 else n - p
                size = sizes[2 * l + side]
                _row_values(sides, (2 * l + side) * width, size, column, value)
                if point.size > 1:
                    _level_shared(
                        l,
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
                _add_side(
                    side,
                    first,
                    length,
                    k0,
                    lanes,
                    size,
                    count,
                    G_count,
                    G_variable,
                    value,
                    row_low,
                    row_high,
                )
    for k in range(n_variables):
        for i in range(count[k]):
            row_low[k, i] -= slack[k]
            row_high[k, i] += slack[k]
        if not _intersect(k, count[k], half[k], hull, row_low, row_high, k, clip):
            return False
    return True


@jit
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


@jit
def _back_to_angle(
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
    pad = PAD * (1.0 + abs(m))
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
            rows are used, factor of the regularisation).
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
    longest = 1
    reach = 0.0
    for l in range(n_loops):
        longest = max(longest, (offsets[l + 1] - offsets[l] + 1) // 2)
        reach = max(reach, reaches[l])
    width = 4**longest
    count = np.zeros(n_variables, np.int64)
    hull = np.zeros((n_variables, 4, 4))
    middle = np.zeros(n_variables)
    half = np.zeros(n_variables)
    G = np.zeros((4 * n_factors, ROWS))
    G_count = np.zeros(n_factors, np.int64)
    G_variable = np.zeros(n_factors, np.int64)
    cut = np.zeros(n_loops, np.int64)
    sides = np.zeros((2 * n_loops * width, ROWS))
    spare = np.zeros((width, ROWS))
    sizes = np.zeros(2 * n_loops, np.int64)
    E = np.array([0.0, 0.0, 0.0, 1.0])
    J = np.zeros((n_variables, ROWS * n_loops))
    P = np.zeros((n_variables, ROWS * n_loops))
    N = np.zeros((n_variables, n_variables))
    after = np.zeros((longest + 1, ROWS))
    mean = np.zeros((longest + 1, ROWS))
    X = np.zeros((2, ROWS))
    column = np.zeros((ROWS, LANES))
    value = np.zeros((width, LANES))
    low = np.zeros((4, ROWS))
    high = np.zeros((4, ROWS))
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
        if found == found_lower.shape[0] or queued + 1 > stack_lower.shape[0]:
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
            for k in range(n_variables):
                before *= max(upper[k] - lower[k], 1e-20)
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
                E,
                X,
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
                    count,
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
                    all_low,
                    all_high,
                    row_low,
                    row_high,
                    clip,
                )
            if alive and widest <= tuning[1]:
                _jacobian(offsets, point, cut, G, G_count, G_variable, E, X, mean, after, J)
                eps = tuning[2] * widest * widest * widest * widest * (1.0 + reach * reach)
                _precondition(J, N, P, eps)
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
                    value,
                    row_low,
                    row_high,
                    slack,
                    clip,
                )
            if not alive:
                break
            small = True
            volume = 1.0
            for k in range(n_variables):
                a, b = _back_to_angle(
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
                if b - a > sigma[k]:
                    small = False
            if not alive or small or volume > rho * before:
                break
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
            queued = _split(stack_lower, stack_upper, weight, queued, lower, upper, sigma, share)
        counters[5] = queued
    return queued, found


@jit
def _split(
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
    part = 0.5
    if 2.0 < widest <= 32.0:  # pieces of just under sigma, not halves of them
        pieces = math.ceil(widest)
        part = (pieces // 2) / pieces
    m = lower[j] + (upper[j] - lower[j]) * part
    for k in range(lower.size):
        stack_lower[queued, k] = lower[k]
        stack_upper[queued, k] = upper[k]
        stack_lower[queued + 1, k] = lower[k]
        stack_upper[queued + 1, k] = upper[k]
    stack_lower[queued, j] = m
    stack_upper[queued + 1, j] = m
    weight[queued] = (1.0 - part) * share
    weight[queued + 1] = part * share
    return queued + 2
