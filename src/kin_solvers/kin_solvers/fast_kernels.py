"""Reduce_Box and the search of the fast method, compiled.

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
from typing import Any, NamedTuple

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

EMPTY, REDUCED = 0, 1
_HALF_PI = 0.5 * math.pi
_TWO_PI = 2.0 * math.pi
_INF = math.inf


@jit
def enclose(lower, upper, translation, count, y, z, u, v, mid, half):
    """Vertices of the hull of every variable.

    Writes for variable k: ``count[k]`` vertices (y, z) (for a translation: y = the travel), their
    coordinates u = sin and v = cos relative to the middle, the middle and the half-width.

    Returns:
        The largest half-width of an angle, and whether any hull has 4 vertices.
    """
    widest = 0.0
    wide = False
    for k in range(lower.size):
        m = 0.5 * (lower[k] + upper[k])
        h = 0.5 * (upper[k] - lower[k]) + PAD * (1.0 + abs(m))
        mid[k] = m
        half[k] = h
        widest = max(widest, h)
        if translation[k]:
            count[k] = 2
            y[k, 0] = m - h
            y[k, 1] = m + h
            u[k, 0] = -h
            u[k, 1] = h
            continue
        cm = math.cos(m)
        sm = math.sin(m)
        if h < NARROW:
            s = math.sin(h)
            c = math.sqrt(1.0 - s * s)
            count[k] = 3
            v[k, 0] = c
            u[k, 0] = -s
            v[k, 1] = 1.0 / c
            u[k, 1] = 0.0
            v[k, 2] = c
            u[k, 2] = s
            y[k, 0] = cm * c + sm * s
            z[k, 0] = sm * c - cm * s
            y[k, 1] = cm * v[k, 1]
            z[k, 1] = sm * v[k, 1]
            y[k, 2] = cm * c - sm * s
            z[k, 2] = sm * c + cm * s
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
        v[k, 0] = c
        u[k, 0] = -outer
        v[k, 1] = 1.0
        u[k, 1] = -inner
        v[k, 2] = 1.0
        u[k, 2] = inner
        v[k, 3] = c
        u[k, 3] = outer
        for i in range(4):
            y[k, i] = cm * v[k, i] - sm * u[k, i]
            z[k, i] = sm * v[k, i] + cm * u[k, i]
    return widest, wide


@jit
def _vertex_matrix(C, f, translation, y, z, inverse, G, g):
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
        for c in range(4):
            c0 = C[f, c]
            c1 = C[f, 4 + c]
            G[g, c] = y * c0 - z * c1
            G[g, 4 + c] = z * c0 + y * c1
            G[g, 8 + c] = C[f, 8 + c]
            G[g, 12 + c] = C[f, 12 + c]


@jit
def _multiply(M, i, G, j, E, unit, out, k):
    """out[k] = M[i] G[j] for conformal matrices.

    E = (0, 0, 0, 1) keeps the four columns alike, so that they share vector instructions; ``unit``
    is the middle entry of M (0 for a derivative). Rows are addressed by number, because a slice
    would count references in the innermost loop.
    """
    for r in range(3):
        a = M[i, 4 * r]
        b = M[i, 4 * r + 1]
        c = M[i, 4 * r + 2]
        d = M[i, 4 * r + 3]
        for q in range(4):
            out[k, 4 * r + q] = a * G[j, q] + b * G[j, 4 + q] + c * G[j, 8 + q] + d * E[q]
    a = M[i, 12]
    b = M[i, 13]
    c = M[i, 14]
    d = M[i, 15]
    for q in range(4):
        out[k, 12 + q] = (
            a * G[j, q] + b * G[j, 4 + q] + c * G[j, 8 + q] + d * E[q] + unit * G[j, 12 + q]
        )


@jit
def _vertex_products(sides, base, spare, G, E, first, length, counts):
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


class Tables(NamedTuple):
    """The arrays of a ``System``, as the kernels take them."""

    translation: Any
    cyclic: Any
    offsets: Any
    factor_variable: Any
    C: Any
    C_inverse: Any
    C_first: Any
    point: Any
    reach: Any
    delta_wide: Any
    delta_narrow: Any
    shared: Any


class Work(NamedTuple):
    """Buffers of one thread."""

    count: Any
    y: Any
    z: Any
    u: Any
    v: Any
    mid: Any
    half: Any
    G: Any
    G_count: Any
    G_variable: Any
    cut: Any
    sides: Any
    spare: Any
    sizes: Any
    E: Any
    J: Any
    P: Any
    N: Any
    after: Any
    mean: Any
    X: Any
    column: Any
    value: Any
    low: Any
    high: Any
    all_low: Any
    all_high: Any
    row_low: Any
    row_high: Any
    slack: Any
    clip: Any


@jit
def make_work(T):
    """Buffers for the system T."""
    V = T.translation.size
    L = T.point.size
    F = T.factor_variable.size
    longest = 1
    for l in range(L):
        n = T.offsets[l + 1] - T.offsets[l]
        longest = max(longest, (n + 1) // 2)
    width = max(16, 4**longest)
    return Work(
        np.zeros(V, np.int64),
        np.zeros((V, 4)),
        np.zeros((V, 4)),
        np.zeros((V, 4)),
        np.zeros((V, 4)),
        np.zeros(V),
        np.zeros(V),
        np.zeros((4 * F, ROWS)),
        np.zeros(F, np.int64),
        np.zeros(F, np.int64),
        np.zeros(L, np.int64),
        np.zeros((2 * L * width, ROWS)),
        np.zeros((width, ROWS)),
        np.zeros(2 * L, np.int64),
        np.array([0.0, 0.0, 0.0, 1.0]),
        np.zeros((V, ROWS * L)),
        np.zeros((V, ROWS * L)),
        np.zeros((V, V)),
        np.zeros((longest + 1, ROWS)),
        np.zeros((longest + 1, ROWS)),
        np.zeros((2, ROWS)),
        np.zeros((ROWS, LANES)),
        np.zeros((width, LANES)),
        np.zeros((4, ROWS)),
        np.zeros((4, ROWS)),
        np.zeros((2, ROWS)),
        np.zeros((2, ROWS)),
        np.zeros((V, 4)),
        np.zeros((V, 4)),
        np.zeros(V),
        np.zeros((V, 4)),
    )


@jit
def _cut_loops(T, W, rotate):
    """Cut every loop in halves at a place that moves with ``rotate``; all vertex products."""
    offsets = T.offsets
    owner = T.factor_variable
    translation = T.translation
    count = W.count
    y = W.y
    z = W.z
    G = W.G
    G_count = W.G_count
    G_variable = W.G_variable
    E = W.E
    width = W.spare.shape[0]
    for l in range(T.point.size):
        o = offsets[l]
        n = offsets[l + 1] - o
        start = 0 if T.point[l] else rotate % n
        p = n // 2
        W.cut[l] = p
        for t in range(n):
            f = start + p - 1 - t if t < p else start + t
            if f >= n:
                f -= n
            k = owner[o + f]
            m = count[k]
            G_variable[o + t] = k
            G_count[o + t] = m
            g = 4 * (o + t)
            if t < p:
                for i in range(m):
                    _vertex_matrix(
                        T.C_inverse, o + f, translation[k], y[k, i], z[k, i], True, G, g + i
                    )
            else:
                for i in range(m):
                    _vertex_matrix(T.C, o + f, translation[k], y[k, i], z[k, i], False, G, g + i)
        if T.point[l]:  # the leading constant belongs to the inverse half
            g = 4 * (o + p - 1)
            for i in range(G_count[o + p - 1]):
                for r in range(ROWS):
                    W.X[0, r] = G[g + i, r]
                _multiply(W.X, 0, T.C_first, l, E, 1.0, G, g + i)
        base = 2 * l * width
        W.sizes[2 * l] = _vertex_products(W.sides, base, W.spare, G, E, o, p, G_count)
        W.sizes[2 * l + 1] = _vertex_products(
            W.sides, base + width, W.spare, G, E, o + p, n - p, G_count
        )


@jit
def _extremes(values, base, size, low, high, row):
    """Extremes of each column over ``size`` rows of ``values`` from ``base``; into low[row]."""
    for r in range(ROWS):
        low[row, r] = values[base, r]
        high[row, r] = values[base, r]
    for j in range(base + 1, base + size):
        for r in range(ROWS):
            x = values[j, r]
            low[row, r] = x if x < low[row, r] else low[row, r]
            high[row, r] = x if x > high[row, r] else high[row, r]


@jit
def _extremes_by_vertex(values, base, size, stride, vertices, low, high):
    """The same for each vertex i of the joint with this stride: low[i], high[i]."""
    for i in range(vertices):
        start = base + i * stride
        for r in range(ROWS):
            low[i, r] = values[start, r]
            high[i, r] = values[start, r]
        for block in range(start, base + size, stride * vertices):
            for j in range(block, block + stride):
                for r in range(ROWS):
                    x = values[j, r]
                    low[i, r] = x if x < low[i, r] else low[i, r]
                    high[i, r] = x if x > high[i, r] else high[i, r]


@jit
def _clip(u, k, low, high, row, n):
    """Where a segment-trapezoid clipping leaves the coordinate u: (from, to), empty if from > to.

    The generalisation of Fig. 1 of the paper to n vertices: the u with lower hull of (u, low) <= 0
    and upper hull of (u, high) >= 0.
    """
    a = _INF
    b = -_INF
    c = _INF
    d = -_INF
    for i in range(n):
        x = u[k, i]
        if low[row, i] <= 0.0:
            a = min(a, x)
            b = max(b, x)
        if high[row, i] >= 0.0:
            c = min(c, x)
            d = max(d, x)
    if a > b or c > d:
        return 1.0, -1.0
    for i in range(n):
        below = low[row, i] <= 0.0
        above = high[row, i] >= 0.0
        for j in range(n):
            if below and low[row, j] > 0.0:
                x = u[k, i] + (u[k, j] - u[k, i]) * (low[row, i] / (low[row, i] - low[row, j]))
                a = min(a, x)
                b = max(b, x)
            if above and high[row, j] < 0.0:
                x = u[k, i] + (u[k, j] - u[k, i]) * (high[row, i] / (high[row, i] - high[row, j]))
                c = min(c, x)
                d = max(d, x)
    return max(a, c), min(b, d)


@jit
def _intersect(W, k, low, high, row):
    """Clip variable k with one row of bounds; False if nothing is left."""
    n = W.count[k]
    clip = W.clip
    a, b = _clip(W.u, k, low, high, row, n)
    if a > b + 2.0 * PAD * (1.0 + W.half[k]):
        return False
    if a > clip[k, 0]:
        clip[k, 0] = a
    if b < clip[k, 1]:
        clip[k, 1] = b
    if n == 4:
        c, d = _clip(W.v, k, low, high, row, n)
        if c > d + 4.0 * PAD:
            return False
        if c > clip[k, 2]:
            clip[k, 2] = c
        if d < clip[k, 3]:
            clip[k, 3] = d
    return True


@jit
def _bend(T, W, l):
    """How far the square of a travel lies under its secant, summed over the travels of a loop."""
    s = 0.0
    for f in range(T.offsets[l], T.offsets[l + 1]):
        k = T.factor_variable[f]
        if T.translation[k]:
            s += W.half[k] * W.half[k] * (1.0 + 1e-12)
    return s


@jit
def _clip_raw(T, W, wide):
    """Clip with the equations of every loop as they are; False if empty."""
    low = W.low
    high = W.high
    sides = W.sides
    all_low = W.all_low
    all_high = W.all_high
    row_low = W.row_low
    row_high = W.row_high
    width = W.spare.shape[0]
    for l in range(T.point.size):
        o = T.offsets[l]
        n = T.offsets[l + 1] - o
        p = W.cut[l]
        point = T.point[l]
        bound = T.delta_wide[l] if wide else T.delta_narrow[l]
        bend = _bend(T, W, l)
        for half in range(2):
            _extremes(
                sides, (2 * l + half) * width, W.sizes[2 * l + half], all_low, all_high, half
            )
        for r in range(ROWS):
            if point and r % 4 != 3:
                continue
            delta = bound + bend if r == 15 else bound
            if all_low[1, r] - all_high[0, r] > delta or all_low[0, r] - all_high[1, r] > delta:
                return False
        stride = 1
        for t in range(n):
            if t == p:
                stride = 1
            half = 0 if t < p else 1
            k = W.G_variable[o + t]
            m = W.G_count[o + t]
            _extremes_by_vertex(
                sides, (2 * l + half) * width, W.sizes[2 * l + half], stride, m, low, high
            )
            for r in range(ROWS):
                if point and r % 4 != 3:
                    continue
                delta = bound + bend if r == 15 else bound
                clips = False
                for i in range(m):
                    if half == 0:
                        a = all_low[1, r] - high[i, r] - delta
                        b = all_high[1, r] - low[i, r] + delta
                    else:
                        a = low[i, r] - all_high[0, r] - delta
                        b = high[i, r] - all_low[0, r] + delta
                    row_low[0, i] = a
                    row_high[0, i] = b
                    if a > 0.0 or b < 0.0:
                        clips = True
                if clips and not _intersect(W, k, row_low, row_high, 0):
                    return False
            stride *= m
    return True


@jit
def _jacobian(T, W):
    """J[k] = half the difference of F between the last and the first vertex of k, others at mean.

    The mean of a product over independent vertices is the product of the means.
    """
    J = W.J
    G = W.G
    E = W.E
    X = W.X
    mean = W.mean
    after = W.after
    J[:, :] = 0.0
    for l in range(T.point.size):
        o = T.offsets[l]
        n = T.offsets[l + 1] - o
        p = W.cut[l]
        for half in range(2):
            first = o if half == 0 else o + p
            length = p if half == 0 else n - p
            sign = -0.5 if half == 0 else 0.5
            for t in range(length):
                g = 4 * (first + t)
                h = g + W.G_count[first + t] - 1
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
                h = g + W.G_count[first + t] - 1
                k = W.G_variable[first + t]
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
                    if r % 4 == 3 or not T.point[l]:
                        J[k, ROWS * l + r] += X[0, r]
                if t + 1 < length:
                    _multiply(after, 0, mean, t, E, 1.0, X, 0)
                    for r in range(ROWS):
                        after[0, r] = X[0, r]


@jit
def _precondition(J, N, P, eps):
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
def _row_values(sides, base, size, weights, out):
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
def _level_shared(T, W, l, half, first, length, k0, lanes, size):
    """Move the slopes in variables shared between loops from loop to loop.

    The sum over the loops stays as it is, and the parts no longer fight each other. Bounds the
    rounding of the move in ``slack``.
    """
    L = T.point.size
    sign = -1.0 if half == 0 else 1.0
    stride = 1
    for t in range(length):
        j = W.G_variable[first + t]
        m = W.G_count[first + t]
        if T.shared[j] > 1:
            top = W.u[j, m - 1]
            for q in range(lanes):
                k = k0 + q
                if j == k:
                    continue
                total = 0.0
                part = 0.0
                for r in range(ROWS * L):
                    total += W.P[k, r] * W.J[j, r]
                for r in range(ROWS * l, ROWS * l + ROWS):
                    part += W.P[k, r] * W.J[j, r]
                move = sign * (total / T.shared[j] - part)
                W.slack[k] += 1e-14 * (abs(part) + abs(total))
                for i in range(m):
                    shift = move * (W.u[j, i] / top)
                    for base in range(i * stride, size, stride * m):
                        for x in range(base, base + stride):
                            W.value[x, q] += shift
        stride *= m


@jit
def _add_half(T, W, l, half, k0, lanes):
    """Add the bounds of one half of loop l to the rows k0, k0 + 1, ... of P F."""
    o = T.offsets[l]
    n = T.offsets[l + 1] - o
    p = W.cut[l]
    first = o if half == 0 else o + p
    length = p if half == 0 else n - p
    size = W.sizes[2 * l + half]
    value = W.value
    row_low = W.row_low
    row_high = W.row_high
    _row_values(W.sides, (2 * l + half) * W.spare.shape[0], size, W.column, value)
    if T.point.size > 1:
        _level_shared(T, W, l, half, first, length, k0, lanes, size)
    for q in range(lanes):
        k = k0 + q
        stride = 1
        m = 1
        for t in range(length):
            if W.G_variable[first + t] == k:
                m = W.G_count[first + t]
                break
            stride *= W.G_count[first + t]
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
            if half == 0:
                a, b = -b, -a
            if m == 1:
                for j in range(W.count[k]):
                    row_low[k, j] += a
                    row_high[k, j] += b
            else:
                row_low[k, i] += a
                row_high[k, i] += b


@jit
def _clip_preconditioned(T, W, wide):
    """Clip each variable k with row k of P F; False if empty."""
    V = T.translation.size
    L = T.point.size
    W.row_low[:, :] = 0.0
    W.row_high[:, :] = 0.0
    for k in range(V):
        W.slack[k] = 0.0
    for k0 in range(0, V, LANES):
        lanes = min(LANES, V - k0)
        for l in range(L):
            bound = T.delta_wide[l] if wide else T.delta_narrow[l]
            bend = _bend(T, W, l)
            any_weight = False
            for q in range(LANES):
                norm = 0.0
                if q < lanes:
                    for r in range(ROWS):
                        x = W.P[k0 + q, ROWS * l + r]
                        W.column[r, q] = x
                        norm += abs(x)
                    W.slack[k0 + q] += norm * bound + abs(W.column[15, q]) * bend
                else:
                    for r in range(ROWS):
                        W.column[r, q] = 0.0
                any_weight = any_weight or norm > 0.0
            if any_weight:
                _add_half(T, W, l, 0, k0, lanes)
                _add_half(T, W, l, 1, k0, lanes)
    for k in range(V):
        for i in range(W.count[k]):
            W.row_low[k, i] -= W.slack[k]
            W.row_high[k, i] += W.slack[k]
        if not _intersect(W, k, W.row_low, W.row_high, k):
            return False
    return True


@jit
def _trim(lo, hi, centre, e):
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
def _back_to_angle(T, W, k, lower, upper):
    """Turn the clipped hull coordinates of variable k into a new interval."""
    clip = W.clip
    m = W.mid[k]
    h = W.half[k]
    pad = PAD * (1.0 + abs(m))
    lo = lower
    hi = upper
    if T.translation[k]:
        lo = max(lo, m + clip[k, 0] - pad)
        hi = min(hi, m + clip[k, 1] + pad)
        return lo, hi
    if h < _HALF_PI:
        n = W.count[k]
        s = W.u[k, n - 1]
        if clip[k, 0] > -s:
            lo = max(lo, m + math.asin(max(-1.0, clip[k, 0] - PAD)) - pad)
        if clip[k, 1] < s:
            hi = min(hi, m + math.asin(min(1.0, clip[k, 1] + PAD)) + pad)
        if n == 4 and clip[k, 2] - PAD > W.v[k, 0]:
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
        if not T.cyclic[k]:
            return lo, hi
        e = max(max(right, left), max(front, back))
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
def reduce_box(T, W, lower, upper, rotate, raw_above, eps_factor):
    """Reduce_Box of the fast method, in place: one cut, all clippings on the original bounds.

    Returns:
        EMPTY or REDUCED.
    """
    V = lower.size
    widest, wide = enclose(
        lower, upper, T.translation, W.count, W.y, W.z, W.u, W.v, W.mid, W.half
    )
    clip = W.clip
    for k in range(V):
        clip[k, 0] = -_INF
        clip[k, 1] = _INF
        clip[k, 2] = -_INF
        clip[k, 3] = _INF
    _cut_loops(T, W, rotate)
    if widest > raw_above[0] and not _clip_raw(T, W, wide):
        return EMPTY
    if widest <= raw_above[1]:
        _jacobian(T, W)
        reach = 0.0
        for l in range(T.reach.size):
            reach = max(reach, T.reach[l])
        eps = eps_factor * widest**4 * (1.0 + reach * reach)
        _precondition(W.J, W.N, W.P, eps)
        if not _clip_preconditioned(T, W, wide):
            return EMPTY
    for k in range(V):
        lo, hi = _back_to_angle(T, W, k, lower[k], upper[k])
        if lo > hi:
            return EMPTY
        lower[k] = lo
        upper[k] = hi
    return REDUCED


@jit
def search(T, stack_lower, stack_upper, weight, queued, sigma, rho, limit, raw_above, eps_factor,
           flag, found_lower, found_upper, counters):
    """The Cuik algorithm (Fig. 2) on a stack of boxes.

    Works in place on the stack; stops when it is empty, ``limit`` boxes were processed, the found
    boxes fill their arrays, or the flag is raised. What is left stays on the stack.

    Args:
        counters: processed, reductions, solutions, empty, settled share, queued; shape (6,).

    Returns:
        Number of boxes left on the stack, number of boxes found.
    """
    V = sigma.size
    W = make_work(T)
    lower = np.empty(V)
    upper = np.empty(V)
    found = 0
    done = 0
    while queued > 0 and done < limit and flag[0] == 0:
        if found == found_lower.shape[0] or queued + 1 > stack_lower.shape[0]:
            break
        queued -= 1
        done += 1
        share = weight[queued]
        for k in range(V):
            lower[k] = stack_lower[queued, k]
            upper[k] = stack_upper[queued, k]
        rotate = 0
        state = REDUCED
        small = False
        while True:
            before = 1.0  # size(B): the volume
            for k in range(V):
                before *= max(upper[k] - lower[k], 1e-20)
            state = reduce_box(T, W, lower, upper, rotate, raw_above, eps_factor)
            counters[1] += 1
            rotate += 1
            if state == EMPTY:
                break
            small = True
            now = 1.0
            for k in range(V):
                w = upper[k] - lower[k]
                now *= max(w, 1e-20)
                if w > sigma[k]:
                    small = False
            if small or now > rho * before:
                break
        counters[0] += 1
        if state == EMPTY:
            counters[3] += 1
            counters[4] += share
        elif small:
            counters[2] += 1
            counters[4] += share
            for k in range(V):
                found_lower[found, k] = lower[k]
                found_upper[found, k] = upper[k]
            found += 1
        else:
            widest = -1.0
            j = 0
            for k in range(V):
                w = (upper[k] - lower[k]) / sigma[k]
                if w > widest:
                    widest = w
                    j = k
            pieces = math.ceil(widest)
            if 2.0 < widest <= 32.0:  # so that pieces of side <= sigma come out, not halves of them
                m = lower[j] + (upper[j] - lower[j]) * ((pieces // 2) / pieces)
            else:
                m = 0.5 * (lower[j] + upper[j])
            for k in range(V):
                stack_lower[queued, k] = lower[k]
                stack_upper[queued, k] = upper[k]
                stack_lower[queued + 1, k] = lower[k]
                stack_upper[queued + 1, k] = upper[k]
            stack_lower[queued, j] = m
            stack_upper[queued + 1, j] = m
            weight[queued] = 0.5 * share
            weight[queued + 1] = 0.5 * share
            queued += 2
        counters[5] = queued
    return queued, found
