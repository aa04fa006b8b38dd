"""What a solution tells besides its lengths: Jacobian, stiffness, margin to the fold, stability."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit

from continuum_ik.continuation import curvature
from continuum_ik.equations import choose_steps, solve_linear, unit
from continuum_ik.layout import PLATFORM, SOLVER, STEPS_MAX, duplicate, record
from continuum_ik.path import linearise, load
from continuum_ik.rod import KERNEL, LANES, LENGTH, MX, NX, RODS, Array, Record, shoot
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
def fold_margin(w: Record) -> float:
    """Return the smallest singular value of the scaled equations, by the factors at hand.

    The inverse is written out column by column, and its largest singular value found by power
    iteration. Destroys residual and delta.
    """
    inverse = np.empty((36, 36))
    for column in range(36):
        row, i = column // 6, column % 6
        w.residual[:] = 0.0
        if row == PLATFORM:
            w.residual[row, i] = unit(w, NX if i < 3 else MX)
        else:
            w.residual[row, i] = w.L if row < 3 else 1.0
        solve_linear(w)
        for u in range(6):
            for k in range(RODS):
                inverse[6 * u + k, column] = w.delta[u, k] / unit(w, u)
    x = np.ones(36)
    y = np.empty(36)
    value, before = 0.0, -1.0
    for _ in range(200):
        for r in range(36):
            s = 0.0
            for c in range(36):
                s += inverse[r, c] * x[c]
            y[r] = s
        x[:] = 0.0
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
def present_margin(state: Array) -> float:
    """Return the fold margin at the last solution, or home, by quick differences."""
    w = record(state)
    load(w, w.answer if w.count > 0 else w.home)
    return fold_margin(w) if linearise(w) else 0.0


@njit(**KERNEL)
def _largest_curvatures(w: Record, entry: Record, out: Array) -> None:
    load(w, entry)
    w.steps = min(STEPS_MAX, choose_steps(w, w.rules[w.fine].step_x2) + 4)
    for i in range(RODS):
        out[i] = curvature(w, i)


def _finely(state: Array) -> np.void:
    """Return a copy of a solver as a record, with the fine rules in force."""
    w: np.void = duplicate(state).view(SOLVER)[0]
    w["fine"] = 1
    return w


def analyse(state: Array, name: str) -> Analysis:
    """Analyse the solution at an entry of a solver's array; works on a copy."""
    w = _finely(state)
    entry = w[name]
    J, by_wrench = np.empty((6, 6)), np.empty((6, 6))
    sound = linear_model(w, entry, J, by_wrench)
    margin = fold_margin(w) if sound else 0.0
    with np.errstate(all="ignore"):
        try:
            stiffness: Array = np.asarray(-np.linalg.solve(by_wrench, J), dtype=np.float64)
            compliance: Array = np.asarray(-np.linalg.solve(J, by_wrench), dtype=np.float64)
        except np.linalg.LinAlgError:
            stiffness, compliance = np.full((6, 6), np.nan), np.full((6, 6), np.nan)
    bent = np.empty(RODS)
    _largest_curvatures(w, entry, bent)
    counts = np.zeros(RODS, dtype=np.int64)
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
        force=np.linalg.norm(entry["y"][:3, :RODS], axis=0),
    )


@njit(**KERNEL)
def _places(w: Record, entry: Record, arcs: Array, out: Array) -> None:
    """Fill out (6, points, 3) with the places at arc lengths (6, points) from the base [m].

    Below the base, at negative ones, the rods are straight.
    """
    load(w, entry)
    steps = min(STEPS_MAX, choose_steps(w, w.rules[w.fine].step_x2) + 4)
    for k in range(arcs.shape[1]):
        for i in range(LANES):
            w.rods.y[LENGTH, i] = max(arcs[i % RODS, k], 1e-9)
        shoot(w.rods, steps)
        for i in range(RODS):
            for j in range(3):
                out[i, k, j] = w.base_holes[j, i]
                if arcs[i, k] > 0.0:
                    out[i, k, j] += w.rods.p[j, i]
                elif j == 2:
                    out[i, k, j] += arcs[i, k]


def rod_places(state: Array, name: str, arcs: Array) -> Array:
    """Return places of the centrelines (6, points, 3) at arc lengths (6, points) [m]."""
    out = np.empty((*arcs.shape, 3))
    w = _finely(state)
    _places(w, w[name], arcs, out)
    return out
