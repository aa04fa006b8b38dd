"""Residuals and Jacobians of the loop equations at points, for Newton steps and curve tracing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kin_solvers.system import System

__all__ = ["Equations"]

Array = NDArray[np.float64]


@njit(cache=True, nogil=True)
def _product(C: Any, f: Any, translation: Any, q: Any, M: Any) -> Any:
    """M <- M Z(q) C[f] on 3 x 4 matrices."""
    for r in range(3):
        a = M[r, 0]
        b = M[r, 1]
        c = M[r, 2]
        d = M[r, 3]
        if translation:
            d += c * q
        else:
            cosine = math.cos(q)
            sine = math.sin(q)
            a, b = a * cosine + b * sine, b * cosine - a * sine
        M[r, 0] = a * C[f, 0] + b * C[f, 4] + c * C[f, 8]
        M[r, 1] = a * C[f, 1] + b * C[f, 5] + c * C[f, 9]
        M[r, 2] = a * C[f, 2] + b * C[f, 6] + c * C[f, 10]
        M[r, 3] = a * C[f, 3] + b * C[f, 7] + c * C[f, 11] + d


@njit(cache=True, nogil=True)
def evaluate(
    translation: Any,
    offsets: Any,
    owner: Any,
    C: Any,
    C_first: Any,
    point: Any,
    q: Any,
    F: Any,
    J: Any,
) -> Any:
    """Six residuals of every loop (position, rotation vector) and their Jacobian.

    The rotation residual is half the skew part of the product, zero at the identity.
    """
    J[:, :] = 0.0
    for l in range(point.size):
        o = offsets[l]
        n = offsets[l + 1] - o
        M = np.zeros((n + 1, 3, 4))
        for r in range(3):
            M[0, r, r] = 1.0
        for t in range(n):
            M[t + 1] = M[t]
            k = owner[o + t]
            _product(C, o + t, translation[k], q[k], M[t + 1])
        end = M[n]
        for r in range(3):
            F[6 * l + r] = end[r, 3] - (C_first[l, 4 * r + 3] if point[l] else 0.0)
        if point[l]:
            for r in range(3):
                F[6 * l + 3 + r] = 0.0
        else:
            F[6 * l + 3] = 0.5 * (end[2, 1] - end[1, 2])
            F[6 * l + 4] = 0.5 * (end[0, 2] - end[2, 0])
            F[6 * l + 5] = 0.5 * (end[1, 0] - end[0, 1])
        trace = end[0, 0] + end[1, 1] + end[2, 2]
        for t in range(n):
            k = owner[o + t]
            ax = M[t, 0, 2]
            ay = M[t, 1, 2]
            az = M[t, 2, 2]
            if translation[k]:
                J[6 * l, k] += ax
                J[6 * l + 1, k] += ay
                J[6 * l + 2, k] += az
                continue
            # d(end)/dq = [a x (column - origin)] for the position, [a]x R for the rotation
            dx = end[0, 3] - M[t, 0, 3]
            dy = end[1, 3] - M[t, 1, 3]
            dz = end[2, 3] - M[t, 2, 3]
            J[6 * l, k] += ay * dz - az * dy
            J[6 * l + 1, k] += az * dx - ax * dz
            J[6 * l + 2, k] += ax * dy - ay * dx
            if not point[l]:
                # [a]x R + R'[a]x = [(trace(R) I - R) a]x
                J[6 * l + 3, k] += 0.5 * (
                    trace * ax - (end[0, 0] * ax + end[0, 1] * ay + end[0, 2] * az)
                )
                J[6 * l + 4, k] += 0.5 * (
                    trace * ay - (end[1, 0] * ax + end[1, 1] * ay + end[1, 2] * az)
                )
                J[6 * l + 5, k] += 0.5 * (
                    trace * az - (end[2, 0] * ax + end[2, 1] * ay + end[2, 2] * az)
                )


class Equations:
    """The loop equations of a system as a function of the configuration (system units)."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.rows = 6 * len(system.point)

    def __call__(self, q: Array) -> tuple[Array, Array]:
        """Residuals, shape (6 L,), and Jacobian, shape (6 L, V), at a configuration, shape (V,)."""
        s = self.system
        F = np.empty(self.rows)
        J = np.empty((self.rows, s.size))
        evaluate(
            s.translation, s.offsets, s.factor_variable, s.C, s.C_first, s.point,
            np.ascontiguousarray(q, dtype=np.float64), F, J,
        )  # fmt: skip
        return F, J

    def turned(self, q: Array) -> bool:
        """Whether a loop is closed but for a half turn, which the skew part cannot see."""
        s = self.system
        for l, point in enumerate(s.point):
            if point:
                continue
            end = np.eye(4)[:3]
            for f in range(s.offsets[l], s.offsets[l + 1]):
                k = s.factor_variable[f]
                _product(s.C, f, s.translation[k], q[k], end)
            if np.trace(end[:, :3]) < 2.0:
                return True
        return False

    def newton(self, q: Array, *, steps: int = 12, tolerance: float = 1e-12) -> Array | None:
        """Nearest solution by Gauss-Newton with minimum-norm steps; None if it does not come."""
        q = np.array(q, dtype=np.float64)
        for _ in range(steps):
            F, J = self(q)
            if not np.isfinite(F).all():
                return None
            if np.abs(F).max() < tolerance:
                return None if self.turned(q) else q
            step = np.linalg.lstsq(J, F, rcond=1e-9)[0]
            norm = float(np.abs(step).max())
            q = q - step * min(1.0, 0.5 / max(norm, 1e-300))
        F, _ = self(q)
        return q if np.abs(F).max() < 1e-9 and not self.turned(q) else None
