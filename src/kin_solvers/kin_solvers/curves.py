"""Following a one-dimensional solution set from point to point."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kin_solvers.equations import Equations

__all__ = ["trace"]

Array = NDArray[np.float64]

MAX_POINTS = 20000


def trace(
    equations: Equations,
    start: Array,
    *,
    step: float,
    limits: tuple[Array, Array],
) -> tuple[Array, bool]:
    """Follow a curve of solutions by predictor (tangent) and corrector (Gauss-Newton) steps.

    Args:
        equations: The loop equations.
        start: A solution, shape (V,).
        step: Length of a step.
        limits: Ranges, two arrays of shape (V,); infinite for angles on the full circle.

    Returns:
        Points in order, shape (P, V), and whether the curve came back to its start. An open curve
        is followed to both of its ends.
    """
    forward, closed = _follow(equations, start, _tangent(equations, start), step, limits)
    if closed:
        return np.array(forward), True
    backward, _ = _follow(equations, start, -_tangent(equations, start), step, limits)
    return np.array([*reversed(backward[1:]), *forward]), False


def _tangent(equations: Equations, q: Array) -> Array:
    """Unit vector in the kernel of the Jacobian, shape (V,)."""
    return np.linalg.svd(equations(q)[1])[2][-1]


def _follow(
    equations: Equations, start: Array, tangent: Array, step: float, limits: tuple[Array, Array]
) -> tuple[list[Array], bool]:
    period = np.where(np.isinf(limits[0]), 2.0 * np.pi, np.inf)
    points = [start]
    q, length = start, step
    while len(points) < MAX_POINTS:
        guess = q + length * tangent
        corrected = equations.newton(guess, steps=6, tolerance=1e-11)
        jump = np.inf if corrected is None else float(np.linalg.norm(corrected - guess))
        if corrected is None or jump > 0.35 * length:
            length *= 0.5
            if length < 1e-5 * step:
                return points, False  # a singular point
            continue
        if np.any(corrected < limits[0] - 1e-9) or np.any(corrected > limits[1] + 1e-9):
            if length > 1e-3 * step:
                length *= 0.5
                continue
            return points, False  # the end of a range
        new = _tangent(equations, corrected)
        if new @ tangent < 0.0:
            new = -new
        if new @ tangent < 0.8 and length > 1e-3 * step:
            length *= 0.5
            continue
        if len(points) > 2 and _passed(q, corrected, start, period):
            return points, True
        points.append(corrected)
        q, tangent = corrected, new
        length = min(step, 1.5 * length)
    return points, False


def _passed(a: Array, b: Array, start: Array, period: Array) -> bool:
    """Whether the segment from a to b passes the start, angles modulo a turn."""
    offset = start - a
    finite = np.isfinite(period)
    turn = np.where(finite, period, 1.0)
    offset = np.where(finite, np.remainder(offset + 0.5 * turn, turn) - 0.5 * turn, offset)
    d = b - a
    along = float(offset @ d) / float(d @ d)
    across = float(np.linalg.norm(offset - along * d))
    return 0.0 < along <= 1.0 and across < 0.25 * float(np.linalg.norm(d))
