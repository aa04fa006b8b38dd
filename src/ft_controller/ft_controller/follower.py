"""Where the arm should be: a motion whose clock advances only while the arm is under control.

A trajectory is followed with a clock of its own, s. In a tick with control it goes on by the time
since the last one. A longer time without control is a pause, and after it the arm is not where the
trajectory would have been: the clock stands, and the motion goes on from where the arm is. The time
of a tick is the time of its measurement: an old measurement is compared with where the arm should
have been then, and without a new one nothing changes. What is sent to the control law is

    q_d = p(s) + e,    v_d = r p'(s) + e',    a_d = r^2 p''(s) + r' p'(s) + e''

with an offset e that begins as the distance of the arm from the trajectory and is taken to zero
within limits of speed and acceleration, and a rate r of the clock that is zero until the offset is
small and then rises to one, or to less where torques are late. A new trajectory is entered in the
same way from the motion before it; it may be due at a time, and then its clock begins at that time.
A halt takes the rate back to zero: the arm comes to rest on its way, not beside it.
"""

from __future__ import annotations

import dataclasses
import threading
from dataclasses import dataclass

import numpy as np
from numba import njit

from ft_controller.errors import ArmError, raising
from ft_controller.records import Array
from ft_controller.trajectory import Trajectory
from kin_core import checks

__all__ = ["Entry", "Follower"]


#: With an offset below this the clock runs: a motion that is replaced while it runs is not stopped.
_NEAR = 0.1  # [rad]
_NEAR_SPEED = 0.5  # [rad/s]
#: A joint that is met in motion comes to rest within this way, whatever acceleration that takes.
_BRAKING_WAY = 0.5  # [rad]
#: The clock comes to its full rate in at least this time.
_SHORTEST_START = 0.2  # [s]
#: With a longer lag the clock runs slower, so that what the arm does meanwhile stays small.
_STEADY_LAG = 0.04  # [s]


@dataclass(frozen=True)
class Entry:
    """How a motion is entered from where the arm is.

    Attributes:
        speed: Largest speed on the way to the trajectory [rad/s].
        acceleration: Largest acceleration; a fast arm may take more to come to rest [rad/s^2].
        pause: After a longer time without control the motion goes on from where the arm is [s].
        regular: Up to this time between two ticks nothing is out of the ordinary [s].
    """

    speed: float = 1.5
    acceleration: float = 4.0
    pause: float = 0.1
    regular: float = 0.0

    @raising(ArmError)
    def __post_init__(self) -> None:
        for name in ("speed", "acceleration", "pause"):
            checks.positive(name, getattr(self, name))
        checks.within("regular", self.regular, 0.0, self.pause)


@dataclass(frozen=True)
class _Order:
    """A trajectory, and the time at which its clock is at zero [ns]; None: when it is taken up."""

    trajectory: Trajectory
    start_ns: int | None = None


@dataclass
class _Motion:
    """Where the arm should be as of one tick, and how that came about.

    Attributes:
        trajectory: What is followed.
        now_ns: Time of the tick [ns].
        anchor_ns: The clock of the trajectory is s = base + rate (t - anchor) [ns].
        base: See anchor_ns [s].
        rate: See anchor_ns.
        offset: Position and velocity beside the trajectory, shape (2, n).
        bounds: Accelerations that take the offset down, shape (n,) [rad/s^2].
        desired: Positions, velocities, accelerations, shape (3, n).
        taken_over: The order that is new with this tick, if one is.
        off: Whether the arm was found far from where it should be.
        halting: Whether the clock is being stopped.
        halted: Whether it has come to rest with this tick.
    """

    trajectory: Trajectory
    now_ns: int
    anchor_ns: int
    base: float
    rate: float
    offset: Array
    bounds: Array
    desired: Array
    taken_over: _Order | None = None
    off: bool = False
    halting: bool = False
    halted: bool = False

    @property
    def s(self) -> float:
        """How far the trajectory has come [s]."""
        return self.base + self.rate * (1e-9 * (self.now_ns - self.anchor_ns))


class Follower:
    """Samples a trajectory by a clock that stands still without control.

    A tick first asks where the arm should be (:meth:`propose`) and then says whether the arm got a
    torque for that (:meth:`accept`). What was not accepted has not happened.

    Attributes:
        entry: How motions are entered; may be set between ticks.
        halted: Whether the arm is to come to rest on its way and stay there; may be set between
            ticks. The motion goes on when it is not any more.
        lag: Time from a measurement to the effect of its torque [s].
    """

    def __init__(self, n: int, entry: Entry | None = None) -> None:
        self.entry = entry or Entry()
        self.halted = False
        self.lag = 0.0
        self._n = n
        self._next: _Order | None = None
        self._later: _Order | None = None
        self._halt = False
        self._last: _Motion | None = None
        self._proposal: _Motion | None = None
        self._orders = threading.Lock()

    @property
    def trajectory(self) -> Trajectory | None:
        """What is followed, or will be from the next tick on."""
        following = self._next or self._last
        return following.trajectory if following else None

    def follows(self, trajectory: Trajectory) -> bool:
        """Whether this is what is followed, or will be."""
        later = self._later
        return self.trajectory is trajectory or (
            later is not None and later.trajectory is trajectory
        )

    @property
    def reference(self) -> tuple[Trajectory, float, Array] | None:
        """What is followed, how far it has come [s], and where it is then.

        That has the shape (3, n): positions of the trajectory itself; velocities and accelerations
        that the arm should have. None before the first tick.
        """
        last = self._last
        if last is None:
            return None
        point = np.array([last.trajectory.sample(last.s)[0], last.desired[1], last.desired[2]])
        return last.trajectory, last.s, point

    @property
    def present(self) -> tuple[int, Array] | None:
        """Time of the last tick with control [ns], and where the arm should be then, (3, n)."""
        last = self._last
        return None if last is None else (last.now_ns, last.desired.copy())

    def ahead(self, time_ns: int) -> Array:
        """Where the arm should be at a time after the last tick, if all goes well, shape (3, n)."""
        last = self._last
        if last is None or time_ns <= last.now_ns:
            return self.desired
        then = dataclasses.replace(last, now_ns=time_ns)
        self._advance(then, 1e-9 * (time_ns - last.now_ns))
        return then.desired

    @property
    def desired(self) -> Array:
        """Where the arm should be: positions, velocities, accelerations, shape (3, n)."""
        return self._last.desired.copy() if self._last else np.zeros((3, self._n))

    @property
    def clock(self) -> float:
        """How far the trajectory has come [s]."""
        return self._last.s if self._last else 0.0

    @property
    def entering(self) -> bool:
        """Whether the arm is on its way to the trajectory, or the clock not yet at full rate."""
        last = self._last
        return last is not None and bool(last.rate < 1.0 or last.offset.any())

    def follow(self, trajectory: Trajectory, start_ns: int | None = None) -> None:
        """Follow a trajectory; any thread.

        Args:
            trajectory: What to follow.
            start_ns: Time at which it begins; what is followed goes on until then. None: it begins
                with the next tick [ns].
        """
        with self._orders:
            self._halt = False
            if start_ns is None:
                self._next, self._later = _Order(trajectory), None
            else:
                self._later = _Order(trajectory, start_ns)

    def halt(self) -> None:
        """Come to rest on the way, and stay there; any thread."""
        with self._orders:
            self._next = self._later = None
            last, bend = self._last, self.entry.acceleration
            if last is not None and np.abs(last.offset[0]).max() > _NEAR:
                # Still on the way to the trajectory: that way ends where it can be braked.
                q, v, _ = last.desired
                self._next = _Order(Trajectory.rest(q + 0.5 * v * np.abs(v) / bend))
            else:
                self._halt = True

    def propose(self, now_ns: int, q: Array, qdot: Array, controlled: bool) -> Array:
        """Where the arm should be in this tick, shape (3, n).

        Args:
            now_ns: Time for which the measurement holds [ns].
            q: Measured positions [rad].
            qdot: Measured velocities [rad/s].
            controlled: Whether the arm was under control up to now, pauses apart.
        """
        last, new = self._last, self._due(now_ns)
        if last is not None and last.now_ns - now_ns <= 1e9 * self.entry.pause:
            now_ns = max(now_ns, last.now_ns)  # else the clock was set back
        if last is not None and new is None:
            trajectory, s = last.trajectory, last.s
        else:
            new = new or _Order(Trajectory.rest(q))
            trajectory, s = new.trajectory, 0.0
            with self._orders:  # another thread may give another one meanwhile
                self._next = self._next or new
        since = 0.0 if last is None else 1e-9 * (now_ns - last.now_ns)
        if last is None or not controlled or not 0.0 <= since <= self.entry.pause:
            proposal = self._enter(trajectory, s, now_ns, q, qdot)
        elif new is not None:
            proposal = self._exchange(new, now_ns, last)
        else:
            proposal = dataclasses.replace(last, now_ns=now_ns, halting=self._halt, halted=False)
            if since != 0.0:
                self._advance(proposal, since)
            # A few ticks were lost: made up for, unless the arm has gone another way.
            if since > self.entry.regular > 0.0:
                gone = np.abs(proposal.desired[0] - q).max() > _NEAR
                if gone and not last.off:
                    proposal = self._enter(trajectory, s, now_ns, q, qdot)
        proposal.off = bool(np.abs(proposal.desired[0] - q).max() > _NEAR)
        proposal.taken_over = new
        self._proposal = proposal
        return proposal.desired

    def _due(self, now_ns: int) -> _Order | None:
        """The order to be taken up in this tick."""
        with self._orders:
            later = self._later
            if later is not None and later.start_ns is not None and now_ns >= later.start_ns:
                self._next, self._later = later, None
            return self._next

    def accept(self) -> None:
        """The arm got a torque for what was proposed last."""
        proposal = self._proposal
        if proposal is not None:
            with self._orders:
                if self._next is proposal.taken_over:
                    self._next = None
                self._halt &= not proposal.halted
            self._last, self._proposal = proposal, None

    def _enter(
        self, trajectory: Trajectory, s: float, now_ns: int, q: Array, qdot: Array
    ) -> _Motion:
        """Begin where the arm is, with a clock that stands at s."""
        offset = np.array([q - trajectory.sample(s)[0], qdot])
        bounds, push = self._limits(offset), np.zeros(self._n)
        if self.lag > _STEADY_LAG:
            # Where ticks are long each of them may be an entry: the arm brakes from this one on.
            _take_down(offset.copy(), push, bounds, self._pace * self.entry.speed, self.lag)
        desired = np.array([q, qdot, push])
        return _Motion(trajectory, now_ns, now_ns, s, 0.0, offset, bounds, desired)

    def _exchange(self, order: _Order, now_ns: int, last: _Motion) -> _Motion:
        """Go over to another trajectory, from where the arm should have been before."""
        began, x = last.now_ns, 0.0
        desired, trajectory = last.desired, order.trajectory
        if order.start_ns is not None:
            began = max(last.now_ns, order.start_ns)
            desired, x = self.ahead(began), 1e-9 * (began - order.start_ns)
        start = trajectory.sample(x)
        offset = desired[:2] - start[:2]
        near = np.abs(offset[0]).max() <= _NEAR and np.abs(offset[1]).max() <= _NEAR_SPEED
        if not near:
            offset = np.array([desired[0] - start[0], desired[1]])
        if np.abs(offset).max() < 1e-9:
            offset = np.zeros((2, self._n))
        rate, bounds = 1.0 if near and not self.halted else 0.0, self._limits(offset)
        proposal = _Motion(trajectory, now_ns, began, x, rate, offset, bounds, desired)
        self._advance(proposal, 1e-9 * (now_ns - began))
        return proposal

    def _advance(self, proposal: _Motion, dt: float) -> None:
        """Let the clock and the offset go on by a time."""
        rate, slope, s = proposal.rate, 0.0, proposal.s
        offset = proposal.offset.copy()
        push = np.zeros(self._n)
        if offset.any():
            calm = np.abs(offset[1]) <= self._pace * self.entry.speed
            proposal.bounds = np.where(calm, self._acceleration, proposal.bounds)
            _take_down(offset, push, proposal.bounds, self._pace * self.entry.speed, dt)
        full = 0.0 if self.halted or proposal.halting else self._pace
        if rate < 1.0 or full < 1.0:
            near = np.abs(offset[0]).max() <= _NEAR and np.abs(offset[1]).max() <= _NEAR_SPEED
            if near or rate > full:
                slope = 1.0 / max(
                    _SHORTEST_START,
                    float(np.abs(proposal.trajectory.sample(s)[1]).max()) / self.entry.acceleration,
                )
                if rate > full:
                    slope = -slope
                turned = rate + slope * dt
                rate = min(full, turned) if slope > 0.0 else max(full, turned)
            proposal.anchor_ns, proposal.base, proposal.rate = proposal.now_ns, s, rate
            if rate == full:
                slope = 0.0
        proposal.offset = offset
        point = proposal.trajectory.sample(s)
        if proposal.halting and rate == 0.0:
            proposal.trajectory = Trajectory.rest(point[0])
            proposal.anchor_ns, proposal.base, proposal.rate = proposal.now_ns, 0.0, self._pace
            proposal.halting, proposal.halted = False, True
        if rate == 1.0 and not offset.any():
            proposal.desired = point
            return
        proposal.desired = np.array(
            [
                point[0] + offset[0],
                rate * point[1] + offset[1],
                rate * rate * point[2] + slope * point[1] + push,
            ]
        )

    def _limits(self, offset: Array) -> Array:
        """The acceleration by which each joint's offset is taken down [rad/s^2].

        A fast joint comes to rest within the braking way; but no more than half of its speed is
        taken within the time that a torque takes to have an effect.
        """
        braking = offset[1] ** 2 / (2.0 * _BRAKING_WAY)
        if self.lag > 0.0:
            braking = np.minimum(braking, np.abs(offset[1]) / (2.0 * self.lag))
        return np.maximum(self._acceleration, braking)

    @property
    def _pace(self) -> float:
        """How fast everything goes, 0 to 1: slower where torques are late."""
        return min(1.0, _STEADY_LAG / max(self.lag, 1e-9))

    @property
    def _acceleration(self) -> float:
        return self._pace**2 * self.entry.acceleration


@njit(cache=True, nogil=True)
def _take_down(offset: Array, push: Array, bounds: Array, speed: float, dt: float) -> None:
    """One step of every joint's offset towards zero, as fast as its limits allow, in place.

    Brakes along the parabola e = v^2 / 2a, in its form for steps of dt, which ends at rest without
    overshoot: with k steps left, v = k a dt and e = a dt^2 k (k + 1) / 2.
    """
    for i in range(push.size):
        e, v, a = offset[0, i], offset[1, i], bounds[i]
        if dt <= 0.0:
            continue
        if abs(e) <= a * dt * dt and abs(v) <= a * dt:
            offset[0, i] = offset[1, i] = push[i] = 0.0
            continue
        steps = np.sqrt(0.25 + 2.0 * abs(e) / (a * dt * dt)) - 0.5
        towards = -np.sign(e) * min(speed, steps * a * dt)
        push[i] = min(max((towards - v) / dt, -a), a)
        offset[1, i] = v + push[i] * dt
        offset[0, i] = e + offset[1, i] * dt
