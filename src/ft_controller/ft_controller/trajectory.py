"""Joint trajectories: piecewise polynomials of degree five, sampled at any time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline

from ft_controller.errors import ArmError, TooLarge, raising
from ft_controller.records import Array
from kin_core import checks

__all__ = ["MAX_POINTS", "Trajectory"]

MAX_POINTS = 20_000


@dataclass(frozen=True)
class Trajectory:
    """Positions over time; rests at its ends outside of its time span.

    Attributes:
        times: Times of the points, rising from 0, shape (k,) [s].
        coefficients: Polynomials in the time since the segment began, shape (max(k - 1, 1), 6, n).
    """

    times: Array
    coefficients: Array

    @property
    def n(self) -> int:
        """Number of joints."""
        return int(self.coefficients.shape[2])

    @property
    def duration(self) -> float:
        """Length [s]."""
        return float(self.times[-1])

    @classmethod
    def rest(cls, q: ArrayLike) -> Trajectory:
        """Stay where you are."""
        position = checks.finite("positions", q)
        coefficients = np.zeros((1, 6, position.size))
        coefficients[0, 0] = position
        return cls(np.zeros(1), coefficients)

    @classmethod
    def through(
        cls,
        times: ArrayLike,
        positions: ArrayLike,
        velocities: ArrayLike | None = None,
        accelerations: ArrayLike | None = None,
    ) -> Trajectory:
        """Through points at times.

        With velocities and accelerations each segment is a quintic; with velocities alone a cubic;
        with neither, a spline with continuous acceleration that starts and ends at rest.

        Args:
            times: Rising, the first not negative, shape (k,) [s].
            positions: Shape (k, n) [rad].
            velocities: Shape (k, n) [rad/s].
            accelerations: Shape (k, n) [rad/s^2]; needs velocities.

        Raises:
            ArmError: Names the field that is wrong.
        """
        with raising(ArmError):
            t = checks.shape("times", times, (None,))
            if t.size > MAX_POINTS:
                raise TooLarge(f"points: {t.size} are more than the limit of {MAX_POINTS}")
            p = checks.shape("positions", positions, (t.size, None))
            v, a = (
                None if values is None else checks.shape(name, values, p.shape)
                for name, values in (("velocities", velocities), ("accelerations", accelerations))
            )
        if t.size < 1:
            raise ArmError("points", "there must be at least one")
        if p.shape[1] < 1:
            raise ArmError("positions", "are empty")
        if (np.diff(t) <= 0.0).any() or t[0] < 0.0:
            raise ArmError("times", "must rise strictly, from 0 or later")
        if a is not None and v is None:
            raise ArmError("accelerations", "need velocities as well")
        if t.size == 1:
            return cls.rest(p[0])
        coefficients = np.zeros((t.size - 1, 6, p.shape[1]))
        h = np.diff(t)[:, None]
        if v is None and t.size > 2:
            spline = CubicSpline(t, p, bc_type="clamped")
            for k in range(4):
                coefficients[:, k] = spline.c[3 - k]
        elif v is not None and a is None:
            rise = (p[1:] - p[:-1]) / h
            coefficients[:, 0], coefficients[:, 1] = p[:-1], v[:-1]
            coefficients[:, 2] = (3.0 * rise - 2.0 * v[:-1] - v[1:]) / h
            coefficients[:, 3] = (v[:-1] + v[1:] - 2.0 * rise) / h**2
        else:
            v = np.zeros_like(p) if v is None else v
            a = np.zeros_like(p) if a is None else a
            rest = p[1:] - p[:-1] - v[:-1] * h - 0.5 * a[:-1] * h**2
            speed = v[1:] - v[:-1] - a[:-1] * h
            bend = a[1:] - a[:-1]
            coefficients[:, 0], coefficients[:, 1], coefficients[:, 2] = (
                p[:-1],
                v[:-1],
                0.5 * a[:-1],
            )
            coefficients[:, 3] = (10.0 * rest - 4.0 * speed * h + 0.5 * bend * h**2) / h**3
            coefficients[:, 4] = (-15.0 * rest + 7.0 * speed * h - bend * h**2) / h**4
            coefficients[:, 5] = (6.0 * rest - 3.0 * speed * h + 0.5 * bend * h**2) / h**5
        return cls(np.ascontiguousarray(t), np.ascontiguousarray(coefficients))

    def sample(self, t: float) -> Array:
        """Positions, velocities and accelerations at a time, shape (3, n)."""
        return _sample(self.times, self.coefficients, float(t))

    def check(self, lower: Array, upper: Array, speed: Array, slack: float = 1e-6) -> None:
        """Refuse a trajectory that leaves the limits, between its points too.

        Raises:
            ArmError: Names the joint, the time and the value.
        """
        # A sample of each segment finds its extremes to well below what a controller needs.
        steps = max(2, min(16, 100_000 // self.times.size))
        h = np.diff(self.times) if self.times.size > 1 else np.zeros(1)
        x = (h[:, None] * np.linspace(0.0, 1.0, steps))[:, :, None]
        c = self.coefficients[:, :, None, :]
        q = c[:, 5]
        v = 5.0 * c[:, 5]
        for k in range(4, -1, -1):
            q = q * x + c[:, k]
            if k:
                v = v * x + k * c[:, k]
        times = self.times[: h.size, None] + x[:, :, 0]
        for name, bad, values in (
            ("positions", (q < lower - slack) | (q > upper + slack), q),
            ("velocities", np.abs(v) > speed * (1.0 + slack), v),
        ):
            if bad.any():
                k, j, i = (int(a[0]) for a in np.nonzero(bad))
                bounds = (lower[i], upper[i]) if name == "positions" else (-speed[i], speed[i])
                raise ArmError(
                    name,
                    f"joint {i} has {values[k, j, i]:.4g} at {times[k, j]:.3g} s, "
                    f"allowed {bounds[0]:.4g} to {bounds[1]:.4g}",
                )


@njit(cache=True, nogil=True)
def _sample(times: Array, coefficients: Array, t: float) -> Array:
    n = coefficients.shape[2]
    out = np.zeros((3, n))
    last = times.size - 1
    inside = times[0] <= t <= times[last]
    k = 0
    x = 0.0
    if last > 0:
        k = min(max(int(np.searchsorted(times, t, side="right")) - 1, 0), last - 1)
        x = min(max(t, times[0]), times[last]) - times[k]
    for i in range(n):
        c = coefficients[k, :, i]
        out[0, i] = c[0] + x * (c[1] + x * (c[2] + x * (c[3] + x * (c[4] + x * c[5]))))
        if inside:
            out[1, i] = c[1] + x * (
                2.0 * c[2] + x * (3.0 * c[3] + x * (4.0 * c[4] + x * 5.0 * c[5]))
            )
            out[2, i] = 2.0 * c[2] + x * (6.0 * c[3] + x * (12.0 * c[4] + x * 20.0 * c[5]))
    return out
