"""Joint trajectories: piecewise polynomials of degree five, sampled at any time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline

from ft_controller.errors import ArmError, TooLarge, raising
from ft_controller.records import Array, Flags
from kin_core import checks

__all__ = ["MAX_POINTS", "Trajectory", "Violation"]

MAX_POINTS = 20_000


@dataclass(frozen=True)
class Violation:
    """Where a motion leaves its limits.

    Attributes:
        field: "positions" or "velocities".
        joint: Number of the joint.
        piece: Number of the piece of the trajectory.
        share: How far on that piece, 0 to 1.
        time: Since the start [s].
        value: Position or velocity there.
        low: Smallest that is allowed.
        high: Largest that is allowed.
    """

    field: str
    joint: int
    piece: int
    share: float
    time: float
    value: float
    low: float
    high: float


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
        h = np.diff(t)[:, None]
        if v is None and t.size > 2:
            spline = CubicSpline(t, p, bc_type="clamped")
            coefficients = np.zeros((t.size - 1, 6, p.shape[1]))
            coefficients[:, :4] = spline.c[::-1].swapaxes(0, 1)
        elif v is not None and a is None:
            coefficients = _cubic(h, p, v)
        else:
            zero = np.zeros_like(p)
            coefficients = _quintic(h, p, zero if v is None else v, zero if a is None else a)
        return cls(np.ascontiguousarray(t), np.ascontiguousarray(coefficients))

    @classmethod
    def piecewise(
        cls, times: Array, positions: Array, velocities: Array, accelerations: Array
    ) -> Trajectory:
        """Through points, each piece by what both of its ends hold.

        That is a straight line where an end has no velocities, a cubic where one has no
        accelerations, and else a quintic.

        Args:
            times: Rising from 0, shape (k,), k > 0 [s].
            positions: Shape (k, n).
            velocities: Shape (k, n); NaN in the rows of points that have none.
            accelerations: Shape (k, n); NaN in the rows of points that have none.
        """
        if times.size == 1:
            return cls.rest(positions[0])
        h = np.diff(times)[:, None]
        line = np.zeros((times.size - 1, 6, positions.shape[1]))
        line[:, 0], line[:, 1] = positions[:-1], np.diff(positions, axis=0) / h
        timed, bent = _at_both_ends(velocities), _at_both_ends(accelerations)
        cubic = np.where(timed, _cubic(h, positions, velocities), line)
        quintic = _quintic(h, positions, velocities, accelerations)
        return cls(times.copy(), np.where(timed & bent, quintic, cubic))

    def split(self, more: Array) -> Trajectory:
        """The same motion with points at more times, shape (m,); at rest where it is over [s]."""
        times = np.union1d(self.times, more)
        last = max(self.times.size - 2, 0)
        which = np.clip(np.searchsorted(self.times, times[:-1], side="right") - 1, 0, last)
        x = np.minimum(times[:-1], self.duration) - self.times[which]
        over = times[:-1] >= self.duration
        shifted = np.zeros((times.size - 1, 6, self.n))
        for k in range(6):
            for j in range(k, 6):
                term = math.comb(j, k) * x ** (j - k)
                shifted[:, k] += term[:, None] * self.coefficients[which, j]
        shifted[over, 1:] = 0.0
        return Trajectory(times, shifted)

    def sample(self, t: float) -> Array:
        """Positions, velocities and accelerations at a time, shape (3, n)."""
        return _sample(self.times, self.coefficients, float(t))

    def violation(
        self, lower: Array, upper: Array, speed: Array, slack: float = 1e-6
    ) -> Violation | None:
        """Where the motion leaves limits of position or speed, if it does.

        Between the points too: a polynomial stays within the hull of its Bernstein coefficients,
        which comes closer with every cut in halves.

        Args:
            lower: Shape (n,).
            upper: Shape (n,).
            speed: Shape (n,).
            slack: Added to the positions, and to the speeds as a share.
        """
        h = np.diff(self.times) if self.times.size > 1 else np.zeros(1)
        slope = np.zeros_like(self.coefficients)
        slope[:, :5] = self.coefficients[:, 1:] * np.arange(1.0, 6.0)[:, None]
        top = speed * (1.0 + slack)
        for name, c, low, high in (
            ("positions", self.coefficients, lower - slack, upper + slack),
            ("velocities", slope, -top, top),
        ):
            found = _outside(c, h, low, high)
            if found is not None:
                piece, joint, share, value = found
                ranges = (lower, upper) if name == "positions" else (-speed, speed)
                time = float(self.times[piece] + share * h[piece])
                low_, high_ = (float(x[joint]) for x in ranges)
                return Violation(name, joint, piece, share, time, value, low_, high_)
        return None

    def check(self, lower: Array, upper: Array, speed: Array, slack: float = 1e-6) -> None:
        """Refuse a trajectory that leaves the limits, between its points too.

        Raises:
            ArmError: Names the joint, the time and the value.
        """
        found = self.violation(lower, upper, speed, slack)
        if found is not None:
            raise ArmError(
                found.field,
                f"joint {found.joint} has {found.value:.4g} at {found.time:.3g} s, "
                f"allowed {found.low:.4g} to {found.high:.4g}",
            )


def _at_both_ends(values: Array) -> Flags:
    """Whether the two ends of each piece have values, not NaN, shape (k - 1, 1, 1)."""
    known: Flags = np.isfinite(values[:, 0])
    return (known[:-1] & known[1:])[:, None, None]


def _cubic(h: Array, p: Array, v: Array) -> Array:
    """Pieces between points with velocities, shape (k - 1, 6, n); h has the shape (k - 1, 1)."""
    c = np.zeros((len(h), 6, p.shape[1]))
    rise = (p[1:] - p[:-1]) / h
    c[:, 0], c[:, 1] = p[:-1], v[:-1]
    c[:, 2] = (3.0 * rise - 2.0 * v[:-1] - v[1:]) / h
    c[:, 3] = (v[:-1] + v[1:] - 2.0 * rise) / h**2
    return c


def _quintic(h: Array, p: Array, v: Array, a: Array) -> Array:
    """Pieces between points with velocities and accelerations, shape (k - 1, 6, n)."""
    c = np.zeros((len(h), 6, p.shape[1]))
    rest = p[1:] - p[:-1] - v[:-1] * h - 0.5 * a[:-1] * h**2
    speed = v[1:] - v[:-1] - a[:-1] * h
    bend = a[1:] - a[:-1]
    c[:, 0], c[:, 1], c[:, 2] = p[:-1], v[:-1], 0.5 * a[:-1]
    c[:, 3] = (10.0 * rest - 4.0 * speed * h + 0.5 * bend * h**2) / h**3
    c[:, 4] = (-15.0 * rest + 7.0 * speed * h - bend * h**2) / h**4
    c[:, 5] = (6.0 * rest - 3.0 * speed * h + 0.5 * bend * h**2) / h**5
    return c


#: From the powers of x to Bernstein coefficients on [0, 1]: b_i = sum_k C(i, k) / C(5, k) c_k.
_TO_BERNSTEIN = np.array([[math.comb(i, k) / math.comb(5, k) for k in range(6)] for i in range(6)])
#: Cuts in halves: what is left is beyond a limit by less than a part of 4^-16 of its bend.
_CUTS = 16


def _outside(c: Array, h: Array, low: Array, high: Array) -> tuple[int, int, float, float] | None:
    """Where polynomials leave ranges: piece, joint, share of the piece, value; None: nowhere.

    Args:
        c: Powers of x, shape (k, 6, n).
        h: Lengths of the pieces, shape (k,).
        low: Shape (n,).
        high: Shape (n,).
    """
    b = _TO_BERNSTEIN @ (c * (h[:, None] ** np.arange(6))[:, :, None])
    piece, joint = np.nonzero(((b < low) | (b > high)).any(axis=1))
    b, begin, width = b[piece, :, joint], np.zeros(piece.size), 1.0
    for _ in range(_CUTS):
        low_, high_ = low[joint], high[joint]
        for end in (0, 5):
            value = b[:, end]
            bad = np.nonzero((value < low_) | (value > high_))[0]
            if bad.size:
                k = int(bad[0])
                share = float(begin[k] + (width if end else 0.0))
                return int(piece[k]), int(joint[k]), share, float(value[k])
        width *= 0.5
        halves = _halves(b)
        piece, joint = np.tile(piece, 2), np.tile(joint, 2)
        begin = np.concatenate([begin, begin + width])
        keep = ((halves < low[joint, None]) | (halves > high[joint, None])).any(axis=1)
        piece, joint, begin, b = piece[keep], joint[keep], begin[keep], halves[keep]
        if not piece.size:
            break
    return None


def _halves(b: Array) -> Array:
    """Bernstein coefficients of the first halves, then of the second, shape (2 k, 6)."""
    left, right, row = np.empty_like(b), np.empty_like(b), b
    for k in range(6):
        left[:, k], right[:, 5 - k] = row[:, 0], row[:, -1]
        row = 0.5 * (row[:, :-1] + row[:, 1:])
    return np.concatenate([left, right])


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
