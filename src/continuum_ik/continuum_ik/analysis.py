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
    solve_linear,
)
from continuum_ik.path import exchange_rules, load
from continuum_ik.rod import (
    KERNEL,
    LENGTH,
    P_X,
    Array,
    shoot,
)
from continuum_ik.stability import conjugate_points, linear_model


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
def _largest_curvatures(w: Array, out: Array) -> None:
    for i in range(m.RODS):
        out[i] = curvature(w, i)


def analyse(w: Array, entry: int) -> Analysis:
    """Analyse the solution at an entry of a solver's array; works on a copy."""
    w = m.duplicate(w)
    exchange_rules(w)
    J, by_wrench = np.empty((6, 6)), np.empty((6, 6))
    sound = linear_model(w, entry, J, by_wrench)
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
    conjugate_points(w, counts)
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
