"""Points to pass at times, as clients send them, and the motion through those that lie ahead."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline

from ft_controller.errors import ArmError
from ft_controller.records import Array, Flags
from ft_controller.trajectory import Trajectory

__all__ = ["Route", "Waypoints"]

#: Shortest time in which a joint that is not named comes to rest [s].
_SHORTEST_STOP = 0.1
#: A last point that moves no faster than this rests.
_REST = 1e-6


@dataclass(frozen=True)
class Route:
    """A motion through waypoints.

    Attributes:
        trajectory: It begins at the state that it was made for, or on a point.
        first: Number of the waypoint at the end of the first piece.
    """

    trajectory: Trajectory
    first: int


@dataclass(frozen=True)
class Waypoints:
    """Points to pass; all times are since the start.

    Attributes:
        times: Rising strictly, not negative, shape (k,), k > 0 [s].
        positions: Shape (k, n).
        velocities: Shape (k, n); NaN in the rows of points that have none.
        accelerations: Shape (k, n); NaN in the rows of points that have none.
        named: The joints that are told where to go, shape (n,); others come to rest and stay.
        joints: Names of all joints, for sentences.
    """

    times: Array
    positions: Array
    velocities: Array
    accelerations: Array
    named: Flags
    joints: tuple[str, ...]

    def __post_init__(self) -> None:
        gaps = np.diff(self.times)
        if (gaps <= 0.0).any():
            k = int(np.argmax(gaps <= 0.0))
            raise ArmError(
                "points.time_from_start",
                f"must rise: point {k} is at {self.times[k]:g} s, "
                f"point {k + 1} at {self.times[k + 1]:g} s",
            )
        if self.times[0] < 0.0:
            raise ArmError("points.time_from_start", f"point 0 is at {self.times[0]:g} s")
        for name in ("positions", "velocities", "accelerations"):
            values = getattr(self, name)
            absent = np.isnan(values).all(axis=1, keepdims=True)
            absent &= name != "positions"
            if not (np.isfinite(values) | absent).all():
                k, i = (int(x[0]) for x in np.nonzero(~(np.isfinite(values) | absent)))
                raise ArmError(
                    f"points.{name}",
                    f"point {k}, {self.joints[i]}: must be finite, got {values[k, i]}",
                )
        alone = np.isnan(self.velocities[:, 0]) & ~np.isnan(self.accelerations[:, 0])
        if alone.any():
            raise ArmError(
                "points.accelerations", f"point {int(np.argmax(alone))} needs velocities as well"
            )
        last = np.abs(np.nan_to_num(self.velocities[-1]))
        if last.max() > _REST:
            i = int(np.argmax(last))
            raise ArmError(
                "points.velocities",
                f"the last point must be at rest, {self.joints[i]} has "
                f"{self.velocities[-1, i]:.4g}",
            )

    @property
    def duration(self) -> float:
        """Time of the last point [s]."""
        return float(self.times[-1])

    def route(self, state: Array, past: float, braking: float, smooth: bool = False) -> Route:
        """The motion from a state through the points ahead.

        Points of the past are left out; on the way to the first one that is left each joint goes
        from where it is. A point at the very beginning is where the motion starts, wherever the
        arm is.

        Args:
            state: Positions, velocities and accelerations at the beginning, shape (3, n).
            past: How much of the time of the points is over then [s].
            braking: Deceleration of joints that are not named and move.
            smooth: Where no point has velocities: a spline with continuous acceleration instead
                of straight lines.

        Raises:
            ArmError: All points are past.
        """
        t = self.times - past
        ahead = t > 0.0 if past > 0.0 else t >= 0.0
        if not ahead.any():
            raise ArmError("header.stamp", f"the trajectory ended {-t[-1]:.4g} s ago")
        first = int(np.argmax(ahead))
        t, points = t[first:], [self.positions, self.velocities, self.accelerations]
        p, v, a = (x[first:].copy() for x in points)
        others = ~self.named
        p[:, others] = state[0, others]
        for x in (v, a):
            known = ~np.isnan(x[:, 0])
            x[np.ix_(known, others)] = 0.0
        if t[0] > 0.0:
            absent = np.full(p.shape[1], np.nan)
            t, p = np.append(0.0, t), np.vstack([state[0], p])
            v = np.vstack([absent if np.isnan(v[0, 0]) else state[1], v])
            a = np.vstack([absent if np.isnan(a[0, 0]) else state[2], a])
        else:
            first += 1
        if smooth and t.size > 1 and np.isnan(v[1:]).all():
            v = CubicSpline(t, p, bc_type=((1, state[1]), (1, np.zeros(p.shape[1]))))(t, 1)
        made = Trajectory.piecewise(t, p, v, a)
        return Route(_with_stops(made, others, state, braking), first)


def _with_stops(made: Trajectory, others: Flags, state: Array, braking: float) -> Trajectory:
    """Let the joints that are not named come to rest from a state, each along its way."""
    speed = np.where(others, state[1], 0.0)
    if not speed.any():
        return made
    # Its velocity is v (1 - 3 x^2 + 2 x^3) with x = t / length: at most 1.5 v / length of
    # deceleration, and v length / 2 of way.
    length = max(1.5 * float(np.abs(speed).max()) / braking, _SHORTEST_STOP)
    stop = np.zeros((1, 6, made.n))
    stop[0, 0], stop[0, 1] = state[0], speed
    stop[0, 3], stop[0, 4] = -speed / length**2, 0.5 * speed / length**3
    braked = Trajectory(np.array([0.0, length]), stop)
    whole = made.split(braked.times)
    braked = braked.split(whole.times)
    return Trajectory(whole.times, np.where(others, braked.coefficients, whole.coefficients))
