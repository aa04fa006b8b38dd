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
same way from the motion before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ft_controller.errors import ArmError
from ft_controller.trajectory import Trajectory
from kin_core import checks
from kin_core.errors import InvalidInput

__all__ = ["Entry", "Follower"]

Array = NDArray[np.float64]

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

    def __post_init__(self) -> None:
        try:
            checks.positive("speed", self.speed)
            checks.positive("acceleration", self.acceleration)
            checks.positive("pause", self.pause)
            checks.within("regular", self.regular, 0.0, self.pause)
        except InvalidInput as error:
            raise ArmError(error.field, error.problem) from None


class Follower:
    """Samples a trajectory by a clock that stands still without control.

    A tick first asks where the arm should be (:meth:`propose`) and then says whether the arm got a
    torque for that (:meth:`accept`). What was not accepted has not happened.

    Attributes:
        entry: How motions are entered; may be set between ticks.
        lag: Time from a measurement to the effect of its torque [s].
    """

    def __init__(self, n: int, entry: Entry | None = None) -> None:
        self.entry = entry or Entry()
        self.lag = 0.0
        self._n = n
        self._next: Trajectory | None = None
        self._trajectory: Trajectory | None = None
        self._desired: Array = np.zeros((3, n))
        # The clock: s = base + r (t - anchor) while the rate is steady.
        self._anchor_ns, self._base, self._rate = 0, 0.0, 1.0
        self._offset: Array = np.zeros((2, n))
        self._bounds: Array = np.zeros(n)
        self._accepted_ns: int | None = None
        self._was_off = False
        self._proposal: _Proposal | None = None

    @property
    def trajectory(self) -> Trajectory | None:
        """What is followed, or will be from the next tick on."""
        return self._next or self._trajectory

    @property
    def desired(self) -> Array:
        """Where the arm should be: positions, velocities, accelerations, shape (3, n)."""
        return self._desired.copy()

    @property
    def clock(self) -> float:
        """How far the trajectory has come [s]."""
        return self._base if self._accepted_ns is None else self._s(self._accepted_ns)

    @property
    def entering(self) -> bool:
        """Whether the arm is on its way to the trajectory, or the clock not yet at full rate."""
        return bool(self._rate < 1.0 or self._offset.any())

    def follow(self, trajectory: Trajectory) -> None:
        """Follow a trajectory from the next tick on; any thread."""
        self._next = trajectory

    def propose(self, now_ns: int, q: Array, qdot: Array, controlled: bool) -> Array:
        """Where the arm should be in this tick, shape (3, n).

        Args:
            now_ns: Time for which the measurement holds [ns].
            q: Measured positions [rad].
            qdot: Measured velocities [rad/s].
            controlled: Whether the arm was under control up to now, pauses apart.
        """
        trajectory = self._next or self._trajectory
        if trajectory is None:
            trajectory = self._next = Trajectory.rest(q)
        proposal = _Proposal(trajectory, self._next, now_ns)
        since = None if self._accepted_ns is None else 1e-9 * (now_ns - self._accepted_ns)
        if since is None or not controlled or since > self.entry.pause:
            self._enter(proposal, 0.0 if self._next else self.clock, q, qdot)
        elif self._next is not None:
            self._exchange(proposal, since)
        elif since == 0.0:
            proposal.take(self)
            proposal.desired = self._desired
        else:
            proposal.take(self)
            self._advance(proposal, max(since, 0.0))
            # A few ticks were lost: made up for, unless the arm has gone another way.
            if since > self.entry.regular > 0.0:
                gone = np.abs(proposal.desired[0] - q).max() > _NEAR
                if gone and not self._was_off:
                    self._enter(proposal, self.clock, q, qdot)
        proposal.off = bool(np.abs(proposal.desired[0] - q).max() > _NEAR)
        self._proposal = proposal
        return proposal.desired

    def accept(self) -> None:
        """The arm got a torque for what was proposed last."""
        proposal = self._proposal
        if proposal is None:
            return
        self._proposal = None
        if self._next is proposal.taken_over:
            self._next = None
        self._trajectory, self._accepted_ns = proposal.trajectory, proposal.now_ns
        self._anchor_ns, self._base, self._rate = proposal.anchor_ns, proposal.base, proposal.rate
        self._offset, self._bounds = proposal.offset, proposal.bounds
        self._desired, self._was_off = proposal.desired, proposal.off

    def _s(self, now_ns: int) -> float:
        return self._base + self._rate * (1e-9 * (now_ns - self._anchor_ns))

    def _enter(self, proposal: _Proposal, s: float, q: Array, qdot: Array) -> None:
        """Begin where the arm is, with a clock that stands at s."""
        point = proposal.trajectory.sample(s)
        proposal.anchor_ns, proposal.base, proposal.rate = proposal.now_ns, s, 0.0
        proposal.offset = np.array([q - point[0], qdot])
        proposal.bounds = self._limits(proposal.offset)
        push = np.zeros(self._n)
        if self.lag > _STEADY_LAG:
            # Where ticks are long each of them may be an entry: the arm brakes from this one on.
            _take_down(
                proposal.offset.copy(),
                push,
                proposal.bounds,
                self._pace * self.entry.speed,
                self.lag,
            )
        proposal.desired = np.array([q, qdot, push])

    def _exchange(self, proposal: _Proposal, since: float) -> None:
        """Go over to another trajectory, from where the arm should have been a time ago."""
        start = proposal.trajectory.sample(0.0)
        offset = self._desired[:2] - start[:2]
        near = np.abs(offset[0]).max() <= _NEAR and np.abs(offset[1]).max() <= _NEAR_SPEED
        if not near:
            offset = np.array([self._desired[0] - start[0], self._desired[1]])
        if np.abs(offset).max() < 1e-9:
            offset = np.zeros((2, self._n))
        proposal.anchor_ns, proposal.base = proposal.now_ns - round(1e9 * since), 0.0
        proposal.rate = 1.0 if near else 0.0
        proposal.offset = offset
        proposal.bounds = self._limits(offset)
        self._advance(proposal, since)

    def _advance(self, proposal: _Proposal, dt: float) -> None:
        """Let the clock and the offset go on by a time."""
        rate, slope = proposal.rate, 0.0
        s = proposal.base + rate * (1e-9 * (proposal.now_ns - proposal.anchor_ns))
        offset = proposal.offset.copy()
        push = np.zeros(self._n)
        if offset.any():
            calm = np.abs(offset[1]) <= self._pace * self.entry.speed
            proposal.bounds = np.where(calm, self._acceleration, proposal.bounds)
            _take_down(offset, push, proposal.bounds, self._pace * self.entry.speed, dt)
        full = self._pace
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


class _Proposal:
    """What the follower will be if the tick is accepted."""

    def __init__(self, trajectory: Trajectory, taken_over: Trajectory | None, now_ns: int) -> None:
        self.trajectory, self.taken_over, self.now_ns = trajectory, taken_over, now_ns
        self.anchor_ns, self.base, self.rate = now_ns, 0.0, 1.0
        self.offset: Array = np.zeros(0)
        self.bounds: Array = np.zeros(0)
        self.desired: Array = np.zeros(0)
        self.off = False

    def take(self, follower: Follower) -> None:
        """Begin with what the follower is."""
        self.anchor_ns, self.base = follower._anchor_ns, follower._base
        self.rate, self.offset, self.bounds = follower._rate, follower._offset, follower._bounds


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
