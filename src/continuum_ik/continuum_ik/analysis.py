"""What a solution tells besides its lengths: Jacobian, stiffness, margin to the fold, stability."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit

from continuum_ik import layout as m
from continuum_ik.continuation import curvature
from continuum_ik.equations import (
    choose_steps,
    eliminate,
    length_columns,
    solve_linear,
    tangents,
)
from continuum_ik.path import exchange_rules, load
from continuum_ik.rod import (
    KERNEL,
    LENGTH,
    ML_X,
    P_X,
    T_X,
    Array,
    shoot,
)

#: Displacement of the fourth-order differences, in the scaled unknowns.
INCREMENT = 1e-3
#: Places along a rod at which conjugate points are looked for.
PLACES = 32


@dataclass(frozen=True)
class Analysis:
    """Linear behaviour about a solution. Poses change by (position [m], rotation vector [rad]).

    Attributes:
        length_jacobian: d lengths / d pose, (6, 6).
        stiffness: d wrench on the platform / d pose at fixed lengths, (6, 6) [N, N m per m, rad].
        compliance: Its inverse.
        fold_margin: Smallest singular value of the scaled 36 equations; 0 at a fold.
        stable: The equilibrium is a minimum of energy at fixed lengths.
        conjugate_points: Of each rod between clamped ends; a rod with any is buckled.
        curvature: Largest curvature of each rod, (6,) [1/m].
        force: Force that each rod carries, (6,) [N].
    """

    length_jacobian: Array
    stiffness: Array
    compliance: Array
    fold_margin: float
    stable: bool
    conjugate_points: tuple[int, ...]
    curvature: Array
    force: Array


@njit(**KERNEL)
def _fine_differences(w: Array, steps: int, force: float, moment: float) -> None:
    """Fill JACOBIAN and MOMENT_JACOBIAN by fourth-order differences about the rods of block 0.

    Rotation rows are the tangent's x, y and z in JACOBIAN rows 3, 4 and TANGENT_Z, not yet turned.
    """
    at = m.JACOBIAN_BLOCKS
    for j in range(5):
        h = force if j < 3 else moment
        for row in range(9):
            for i in range(m.LANES):
                w[m.DIFFERENCES + (9 * j + row) * 8 + i] = 0.0
        for k in range(4):
            side = (-2.0, -1.0, 1.0, 2.0)[k]
            weight = (1.0, -8.0, 8.0, -1.0)[k] / (12.0 * h)
            for u in range(m.UNKNOWNS):
                w[at + u] = w[m.Y + u]
            for i in range(m.LANES):
                w[at + 8 * j + i] += side * h
            shoot(w, at, steps)
            for row in range(9):
                source = (P_X if row < 3 else (T_X - 24 if row < 6 else ML_X - 48)) + 8 * row
                for i in range(m.LANES):
                    w[m.DIFFERENCES + (9 * j + row) * 8 + i] += weight * w[at + source + i]


@njit(**KERNEL)
def _fine_jacobian(w: Array, steps: int) -> None:
    """Fill JACOBIAN and MOMENT_JACOBIAN to high accuracy; block 0 must have been shot."""
    L, EI = w[m.LENGTH_TYPICAL], w[m.EI_TYPICAL]
    _fine_differences(w, steps, INCREMENT * EI / (L * L), INCREMENT * EI / L)
    for j in range(5):
        for i in range(m.LANES):
            d = m.DIFFERENCES + 72 * j + i
            for k in range(3):
                w[m.JACOBIAN + (6 * k + j) * 8 + i] = w[d + 8 * k]
                w[m.MOMENT_JACOBIAN + (6 * k + j) * 8 + i] = w[d + 48 + 8 * k]
            for k in range(2):
                w[m.JACOBIAN + (18 + 6 * k + j) * 8 + i] = 2.0 * (
                    w[m.POSE + 3 + k] * w[d + 24]
                    + w[m.POSE + 6 + k] * w[d + 32]
                    + w[m.POSE + 9 + k] * w[d + 40]
                )
    length_columns(w)


@njit(**KERNEL)
def _linear_model(w: Array, entry: int, lengths_by_pose: Array, lengths_by_wrench: Array) -> bool:
    """Linearise at an entry to high accuracy; False at a singular point."""
    load(w, entry)
    steps = min(m.STEPS_MAX, choose_steps(w, m.STEP_X2) + 8)
    shoot(w, m.Y, steps)
    _fine_jacobian(w, steps)
    if not eliminate(w):
        return False
    tangents(w)
    for i in range(m.RODS):
        for j in range(6):
            lengths_by_pose[i, j] = w[m.TANGENT + j * m.COLUMN + 40 + i]
    for j in range(6):
        for k in range(m.RESIDUAL, m.PLATFORM_RESIDUAL + 8):
            w[k] = 0.0
        w[m.PLATFORM_RESIDUAL + j] = 1.0
        solve_linear(w)
        for i in range(m.RODS):
            lengths_by_wrench[i, j] = -w[m.DELTA + 40 + i]
    return True


@njit(**KERNEL)
def fold_margin(w: Array) -> float:
    """Return the smallest singular value of the scaled equations, by the factors at hand.

    The inverse is written out column by column, and its largest singular value found by power
    iteration. Destroys RESIDUAL and DELTA.
    """
    L, EI = w[m.LENGTH_TYPICAL], w[m.EI_TYPICAL]
    s_force, s_moment = EI / (L * L), EI / L
    inverse = np.empty((36, 36))
    for column in range(36):
        for k in range(m.RESIDUAL, m.PLATFORM_RESIDUAL + 8):
            w[k] = 0.0
        if column < 30:
            row = column // 6
            w[m.RESIDUAL + 8 * row + column % 6] = L if row < 3 else 1.0
        else:
            w[m.PLATFORM_RESIDUAL + column - 30] = s_force if column < 33 else s_moment
        solve_linear(w)
        for u in range(6):
            scale = 1.0 / (s_force if u < 3 else (s_moment if u < 5 else L))
            for i in range(m.RODS):
                inverse[6 * u + i, column] = w[m.DELTA + 8 * u + i] * scale
    x = np.ones(36)
    y = np.empty(36)
    value, before = 0.0, -1.0
    for _ in range(200):
        size = 0.0
        for r in range(36):
            s = 0.0
            for c in range(36):
                s += inverse[r, c] * x[c]
            y[r] = s
            size += s * s
        for c in range(36):
            x[c] = 0.0
        for r in range(36):
            for c in range(36):
                x[c] += inverse[r, c] * y[r]
        norm = 0.0
        for c in range(36):
            norm += x[c] * x[c]
        norm = math.sqrt(norm)
        if not norm < 1e300 or norm == 0.0:
            return 0.0
        value = math.sqrt(norm)
        for c in range(36):
            x[c] /= norm
        if abs(value - before) <= 1e-7 * value:
            break
        before = value
    return 1.0 / value


@njit(**KERNEL)
def _determinant5(a: Array) -> float:
    """Return the determinant of a 5x5 matrix; destroys it."""
    det = 1.0
    for k in range(5):
        p = k
        for r in range(k + 1, 5):
            if abs(a[r, k]) > abs(a[p, k]):
                p = r
        if a[p, k] == 0.0:
            return 0.0
        if p != k:
            det = -det
            for c in range(5):
                a[p, c], a[k, c] = a[k, c], a[p, c]
        det *= a[k, k]
        for r in range(k + 1, 5):
            f = a[r, k] / a[k, k]
            for c in range(k, 5):
                a[r, c] -= f * a[k, c]
    return det


@njit(**KERNEL)
def _conjugate_points(w: Array, counts: Array) -> None:
    """Count, for each rod, the places where it could buckle between clamped ends.

    A conjugate point is a place s where some change of the forces and moments at the base leaves
    position and direction at s unchanged: the determinant of d(p, t)(s) / d(n, m0) changes its
    sign. Destroys block 0.
    """
    a = np.empty((5, 5))
    full = w[m.Y + 40 : m.Y + 48].copy()
    sign = np.zeros(m.RODS)
    steps = min(m.STEPS_MAX, choose_steps(w, m.STEP_X2) + 4)
    for i in range(m.RODS):
        counts[i] = 0
    EI = w[m.EI_TYPICAL]
    for place in range(1, PLACES + 1):
        part = place / PLACES
        for i in range(m.LANES):
            w[LENGTH + i] = full[i] * part
        s = w[m.LENGTH_TYPICAL] * part
        fewer = 1 + int(steps * part)  # steps as long as those of the whole rod
        shoot(w, m.Y, fewer)
        _fine_differences(w, fewer, INCREMENT * EI / (s * s), INCREMENT * EI / s)
        for i in range(m.RODS):
            # Two directions across the tangent, carried along without a jump.
            tx, ty, tz = w[T_X + i], w[T_X + 8 + i], w[T_X + 16 + i]
            k = 1.0 / (1.0 + tz) if tz > -0.999 else 1e3
            for j in range(5):
                d = m.DIFFERENCES + 72 * j + i
                scale = EI / (s * s) if j < 3 else EI / s
                for r in range(3):
                    a[r, j] = w[d + 8 * r] * scale / s
                ux, uy, uz = w[d + 24], w[d + 32], w[d + 40]
                a[3, j] = ((1.0 - tx * tx * k) * ux - tx * ty * k * uy - tx * uz) * scale
                a[4, j] = (-tx * ty * k * ux + (1.0 - ty * ty * k) * uy - ty * uz) * scale
            det = _determinant5(a)
            now = 1.0 if det > 0.0 else -1.0
            if sign[i] != 0.0 and now != sign[i]:
                counts[i] += 1
            sign[i] = now
    for i in range(m.LANES):
        w[LENGTH + i] = full[i]


@njit(**KERNEL)
def _largest_curvatures(w: Array, out: Array) -> None:
    for i in range(m.RODS):
        out[i] = curvature(w, i)


def analyse(w: Array, entry: int) -> Analysis:
    """Analyse the solution at an entry of a solver's array; works on a copy."""
    w = m.duplicate(w)
    exchange_rules(w)
    J, by_wrench = np.empty((6, 6)), np.empty((6, 6))
    sound = _linear_model(w, entry, J, by_wrench)
    margin = fold_margin(w) if sound else 0.0
    with np.errstate(all="ignore"):
        try:
            stiffness: Array = np.asarray(-np.linalg.solve(by_wrench, J), dtype=np.float64)
            compliance: Array = np.asarray(-np.linalg.solve(J, by_wrench), dtype=np.float64)
        except np.linalg.LinAlgError:
            stiffness, compliance = np.full((6, 6), np.nan), np.full((6, 6), np.nan)
    n = np.stack([w[entry + 8 * k : entry + 8 * k + 6] for k in range(3)], axis=1)
    bent = np.empty(6)
    load(w, entry)
    w[m.STEPS] = float(min(m.STEPS_MAX, choose_steps(w, m.STEP_X2) + 4))
    _largest_curvatures(w, bent)
    counts = np.zeros(6, dtype=np.int64)
    _conjugate_points(w, counts)
    finite = bool(np.isfinite(stiffness).all())
    lowest = float(np.linalg.eigvalsh(0.5 * (stiffness + stiffness.T))[0]) if finite else -1.0
    return Analysis(
        length_jacobian=J,
        stiffness=stiffness,
        compliance=compliance,
        fold_margin=margin,
        stable=sound and lowest > 0.0 and not counts.any(),
        conjugate_points=tuple(int(k) for k in counts),
        curvature=bent,
        force=np.linalg.norm(n, axis=1),
    )


@njit(**KERNEL)
def _shapes(w: Array, entry: int, out: Array) -> None:
    """Fill out (6, points, 3) with places along the rods, base frame [m]."""
    load(w, entry)
    steps = min(m.STEPS_MAX, choose_steps(w, m.STEP_X2) + 4)
    points = out.shape[1]
    for k in range(points):
        part = k / (points - 1)
        if k == 0:
            for i in range(m.RODS):
                for j in range(3):
                    out[i, 0, j] = w[m.BASE + 8 * j + i]
            continue
        for i in range(m.LANES):
            w[LENGTH + i] = w[entry + 40 + i] * part
        shoot(w, m.Y, steps)
        for i in range(m.RODS):
            for j in range(3):
                out[i, k, j] = w[m.BASE + 8 * j + i] + w[P_X + 8 * j + i]


def rod_shapes(w: Array, entry: int, points: int) -> Array:
    """Return the centrelines (6, points, 3) at equal arc lengths, base frame [m]."""
    out = np.empty((m.RODS, points, 3))
    w = m.duplicate(w)
    exchange_rules(w)
    _shapes(w, entry, out)
    return out
