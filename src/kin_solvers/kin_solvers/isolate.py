"""Isolated solutions proven at the speed of the search: no interval arithmetic, no Python per box.

For a chain of rotations and travels the second derivatives of the residuals have bounds that do not
depend on the configuration: 1 for rotations, the reach for positions. So Krawczyk's test on a box
of half-widths r around a point x needs residuals F and Jacobian J at x alone:

    |K(r)| <= |Y F| + |I - Y J| r + |Y| (errors + bend (sum of r)^2),    Y near J^-1.

If this is less than r for every variable, exactly one solution lies within r of x, and it lies
within |K(r)| of x (docs/cuik.md). Boxes in which it fails are left to finer searches, and what
these leave to ``separate``.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kin_solvers.equations import LoopEquations, evaluate, jit, turned
from kin_solvers.system import UNIT_ROUNDOFF, System

__all__ = ["Bounds", "Roots", "bounds_of", "invert", "isolate", "make_roots"]

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

#: Roots and regions that are kept at most.
MOST_ROOTS, MOST_REGIONS = 64, 256
#: Sum of the half-widths of a region at most: the rotation of no loop can become a half turn.
WIDEST = 0.25
#: Rounding of a product of motions at a point, in units of the last place for each motion.
ROUNDING = 32.0
#: Newton steps at most, and the size of the last one [rad, m].
STEPS, LAST_STEP = 12, 1e-13
_TWO_PI = 2.0 * np.pi


class Bounds(NamedTuple):
    """What holds for the residuals of every mechanism that is meant (system units).

    Attributes:
        value: Error of each residual at a point, shape (6 L,).
        slope: Error of each entry of the Jacobian at a point, shape (6 L, V).
        bend: Bound on the second derivatives of each residual, by factors, shape (6 L,).
        uses: Factors of each variable in the loop of each residual, shape (6 L, V).
    """

    value: Array
    slope: Array
    bend: Array
    uses: Array


def bounds_of(system: System) -> Bounds:
    """The bounds of a system; docs/cuik.md derives them."""
    rows = 6 * len(system.point)
    value, bend, uses = np.empty(rows), np.ones(rows), np.zeros((rows, system.size))
    per_factor = np.empty(rows)
    travels = float(system.translation.sum()) * WIDEST  # a region may reach beyond the ranges
    for l, (a, b) in enumerate(pairwise(system.offsets)):
        reach = max(float(system.reach[l]) + travels, 1.0)
        alpha, beta = (float(u) for u in system.unknown[l])
        rounding = ROUNDING * UNIT_ROUNDOFF * int(b - a)
        turn = 1.01 * (rounding + alpha)
        place = 1.01 * (rounding * reach + 2.0 * alpha * reach + beta)
        first = slice(6 * l, 6 * l + 3), slice(6 * l + 3, 6 * l + 6)
        value[first[0]], value[first[1]] = place, turn
        per_factor[first[0]], per_factor[first[1]] = 5.0 * (turn * reach + place), 5.0 * turn
        bend[first[0]] = reach
        uses[6 * l : 6 * l + 6] = np.bincount(system.factor_variable[a:b], minlength=system.size)
    return Bounds(value, per_factor[:, None] * uses, bend, uses)


class Roots(NamedTuple):
    """Solutions that are proven, and regions in each of which one of them is the only one.

    Attributes:
        x: A point near each root, shape (MOST_ROOTS, V).
        tight: Each root lies within these half-widths of its point, shape (MOST_ROOTS, V).
        centre: Middle of each region, shape (MOST_REGIONS, V).
        reach: Half-widths of each region, shape (MOST_REGIONS, V).
        owner: Root in each region, shape (MOST_REGIONS,).
        counts: Number of roots and of regions, shape (2,).
    """

    x: Array
    tight: Array
    centre: Array
    reach: Array
    owner: IntArray
    counts: IntArray


def make_roots(size: int) -> Roots:
    """Room for roots of so many variables."""
    return Roots(
        np.empty((MOST_ROOTS, size)),
        np.empty((MOST_ROOTS, size)),
        np.empty((MOST_REGIONS, size)),
        np.empty((MOST_REGIONS, size)),
        np.empty(MOST_REGIONS, dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )


@jit
def invert(J: Array, Y: Array) -> bool:
    """Y = J^-1 by elimination with pivots, J in place; whether no pivot is tiny."""
    n = J.shape[0]
    for i in range(n):
        for j in range(n):
            Y[i, j] = 1.0 if i == j else 0.0
    for c in range(n):
        p = c
        for i in range(c + 1, n):
            if abs(J[i, c]) > abs(J[p, c]):
                p = i
        if not abs(J[p, c]) > 1e-12:
            return False
        for j in range(n):
            J[c, j], J[p, j] = J[p, j], J[c, j]
            Y[c, j], Y[p, j] = Y[p, j], Y[c, j]
        scale = 1.0 / J[c, c]
        for j in range(n):
            J[c, j] *= scale
            Y[c, j] *= scale
        for i in range(n):
            f = J[i, c]
            if i != c and f != 0.0:
                for j in range(n):
                    J[i, j] -= f * J[c, j]
                    Y[i, j] -= f * Y[c, j]
    return True


@jit
def _gap(a: float, b: float, cyclic: bool) -> tuple[float, float]:
    """Distance of two numbers, whole turns of an angle apart, and what rounding may hide of it."""
    gap = a - b
    if cyclic:
        gap -= _TWO_PI * round(gap / _TWO_PI)
    return abs(gap), 4e-15 * (1.0 + abs(a) + abs(b))


@jit
def _inside(x: Array, half: Array, centre: Array, reach: Array, cyclic: BoolArray) -> bool:
    """Whether the box of half-widths around x lies in another one, whole turns apart."""
    for k in range(x.size):
        gap, pad = _gap(x[k], centre[k], cyclic[k])
        if gap + half[k] + pad > reach[k]:
            return False
    return True


@jit
def _apart(x: Array, half: Array, centre: Array, reach: Array, cyclic: BoolArray) -> bool:
    """Whether two boxes have no point in common, whole turns apart."""
    for k in range(x.size):
        gap, pad = _gap(x[k], centre[k], cyclic[k])
        if gap > half[k] + reach[k] + pad:
            return True
    return False


@jit
def _newton(tables: LoopEquations, x: Array, F: Array, J: Array, Y: Array) -> bool:
    """Newton's method, in place; leaves the inverse Y of the Jacobian next to the root."""
    work = np.empty_like(J)
    for _ in range(STEPS):
        evaluate(tables, x, F, J)
        work[:] = J
        if not invert(work, Y):
            return False
        largest = 0.0
        for i in range(x.size):
            step = 0.0
            for m in range(x.size):
                step += Y[i, m] * F[m]
            if not abs(step) < 0.5:
                return False
            x[i] -= step
            largest = max(largest, abs(step))
        if largest < LAST_STEP:
            break
    evaluate(tables, x, F, J)
    return not turned(tables, x)


@jit
def _image(bounds: Bounds, F: Array, J: Array, Y: Array, constant: Array, linear: Array) -> None:
    """The parts of |K(r)| that do not depend on r, shape (V,), and that are linear in it, (V, V).

    Rounding is covered by 1e-13 of the sizes of what is added up.
    """
    n = F.size
    for i in range(n):
        total = 0.0
        size = 0.0
        for m in range(n):
            total += Y[i, m] * F[m]
            size += abs(Y[i, m]) * (1e-13 * abs(F[m]) + bounds.value[m])
        constant[i] = abs(total) + size + 1e-300
        for j in range(n):
            total = 1.0 if i == j else 0.0
            size = 1e-13
            for m in range(n):
                total -= Y[i, m] * J[m, j]
                size += abs(Y[i, m]) * (1e-13 * abs(J[m, j]) + bounds.slope[m, j])
            linear[i, j] = abs(total) + size


@jit
def _proves(bounds: Bounds, Y: Array, constant: Array, linear: Array, r: Array, w: Array) -> bool:
    """Write |K(r)| into w; whether it is less than r everywhere."""
    n = r.size
    proven = True
    for i in range(n):
        total = constant[i]
        for j in range(n):
            total += linear[i, j] * r[j]
        for m in range(n):
            spread = 0.0
            for k in range(n):
                spread += bounds.uses[m, k] * r[k]
            if spread > WIDEST:
                return False
            total += abs(Y[i, m]) * bounds.bend[m] * spread * spread
        w[i] = total * (1.0 + 1e-12)
        proven = proven and w[i] < r[i]
    return proven


@jit
def _add(roots: Roots, cyclic: BoolArray, x: Array, w: Array, r: Array) -> bool:
    """Keep a proven root and its region; whether it is known which root it is.

    Two proofs are of one root if the tight box of one lies in the region of the other, and of two
    if their tight boxes are apart. Otherwise nothing is known, and the new one is not used.
    """
    count, regions = roots.counts[0], roots.counts[1]
    if count == roots.x.shape[0] or regions == roots.centre.shape[0]:
        return False
    same = -1
    for k in range(count):
        if _apart(x, w, roots.x[k], roots.tight[k], cyclic):
            continue
        mine = _inside(roots.x[k], roots.tight[k], x, r, cyclic)
        for g in range(regions):
            if roots.owner[g] == k:
                mine = mine or _inside(x, w, roots.centre[g], roots.reach[g], cyclic)
        if not mine or same >= 0:
            return False
        same = k
    if same < 0:
        same = count
        roots.x[count] = x
        roots.tight[count] = w
        roots.counts[0] += 1
    roots.centre[regions] = x
    roots.reach[regions] = r
    roots.owner[regions] = same
    roots.counts[1] += 1
    return True


@jit
def _held(roots: Roots, cyclic: BoolArray, middle: Array, half: Array) -> bool:
    """Whether a box lies in a region."""
    for g in range(roots.counts[1]):
        if _inside(middle, half, roots.centre[g], roots.reach[g], cyclic):
            return True
    return False


@jit
def isolate(
    tables: LoopEquations, bounds: Bounds, cyclic: BoolArray, lower: Array, upper: Array,
    roots: Roots, held: BoolArray,
) -> None:  # fmt: skip
    """Look for a root near each box, prove it, and find out which boxes hold no other.

    Args:
        tables: As many equations as variables: 6 for each loop, all independent.
        bounds: Their bounds.
        cyclic: Which variables are angles on the full circle, shape (V,).
        lower: Lower ends of the boxes, shape (N, V) (system units).
        upper: Upper ends, shape (N, V).
        roots: Roots that are known; new ones are added.
        held: Receives whether each box lies in a region, shape (N,).
    """
    n = lower.shape[1]
    F, constant, r, w, half = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    J, Y, linear = np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
    tight = np.empty(n)
    for i in range(lower.shape[0]):
        middle = 0.5 * (lower[i] + upper[i])
        for k in range(n):
            half[k] = 0.5 * (upper[i, k] - lower[i, k])
        if _held(roots, cyclic, middle, half):
            continue
        x = middle.copy()
        if not _newton(tables, x, F, J, Y):
            continue
        near = True
        for k in range(n):
            gap = abs(x[k] - middle[k])
            near = near and gap <= 4.0 * half[k] + 1e-6
            r[k] = 1.05 * (gap + half[k]) + 1e-9
        if not near:
            continue
        _image(bounds, F, J, Y, constant, linear)
        proven = False
        for _ in range(4):
            proven = _proves(bounds, Y, constant, linear, r, w)
            if proven:
                break
            for k in range(n):
                r[k] = max(r[k], 1.1 * w[k])
        if not proven:
            continue
        # The root lies within |K| of x: first for this region, then for what that leaves of it.
        tight[:] = w
        for _ in range(8):
            for k in range(n):
                half[k] = tight[k] * (1.0 + 1e-9) + 1e-300
            if not _proves(bounds, Y, constant, linear, half, w):
                break
            tight[:] = w
        # As large a region as can be proven, for the neighbours of the box.
        for _ in range(6):
            for k in range(n):
                half[k] = 2.0 * r[k]
            if not _proves(bounds, Y, constant, linear, half, w):
                break
            r[:] = half
        _add(roots, cyclic, x, tight, r)
    for i in range(lower.shape[0]):
        for k in range(n):
            half[k] = 0.5 * (upper[i, k] - lower[i, k])
        held[i] = _held(roots, cyclic, 0.5 * (lower[i] + upper[i]), half)
