"""Behind the vote: is the torque plausible, and what goes to the motors when there is none.

    IDLE -> RUN <-> HOLD -> RAMP -> STOPPED

HOLD repeats the last safe torque; a quorum that comes back in time leads to RUN again. After the
hold time the held torque is taken down to zero while a damping of each joint is taken up. That ends
in STOPPED, where only the damping is left, until somebody resets. From RAMP on there is no way back
by itself: a torque that jumps back in after a second is no safe behaviour.

Holds add up. Every second without control uses up a second of the hold time, and every second of
control gives back only a share of it, so that an arm which is out of control again and again is
stopped as surely as one that is out of control for good. A pause, a time in which nobody called,
counts as held, and one that uses up the hold time ends in STOPPED. Who cannot see does not push:
from joint states as old as a pause on every torque fades; it is zero when they are twice as old.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from ft_controller.arm import Arm
from ft_controller.errors import ArmError

__all__ = ["Governor", "Limits", "Reason", "State"]

Array = NDArray[np.float64]
Words = NDArray[np.int64]


class State(IntEnum):
    """What the motors get; the numbers are those of kin_interfaces/FtStatus."""

    IDLE = 0
    RUN = 1
    HOLD = 2
    RAMP = 3
    STOPPED = 4


class Reason(IntEnum):
    """Why the motors do not get the voted torque."""

    NONE = 0
    NO_QUORUM = 1
    SENSOR_LOST = 2
    IMPLAUSIBLE = 3
    JOINT_LIMIT = 4
    OVERSPEED = 5
    STOP_ASKED = 6
    PAUSED = 7
    FOLLOWING_ERROR = 8
    FROZEN = 9
    RIVAL = 10
    CLAIMING = 11


#: Velocities of this age damp in full, those of twice this age not at all [s]. The damping takes up
#: to 40/s; by velocities that are older than two of its time constants it would push. For the same
#: reason it is weaker where torques are held for longer than that: the longest time between two
#: steps counts, up to the time after which drives brake by themselves, and is forgotten slowly.
_DAMPS = 0.025
_STABLE, _LONGEST_GAP, _FORGOTTEN = 0.04, 0.2, 0.2

# What the kernel below knows by name: states and reasons, and the places of its two arrays.
_IDLE, _RUN, _HOLD = int(State.IDLE), int(State.RUN), int(State.HOLD)
_RAMP, _STOPPED = int(State.RAMP), int(State.STOPPED)
_NONE, _NO_QUORUM, _SENSOR_LOST = int(Reason.NONE), int(Reason.NO_QUORUM), int(Reason.SENSOR_LOST)
_IMPLAUSIBLE, _JOINT_LIMIT = int(Reason.IMPLAUSIBLE), int(Reason.JOINT_LIMIT)
_OVERSPEED, _PAUSED = int(Reason.OVERSPEED), int(Reason.PAUSED)
_STATE, _REASON, _JOINT, _SATURATED, _BARRED, _WORDS = range(6)
_RAMP_BEGAN, _HOLD_TIME, _RAMP_TIME, _BELIEVED, _VALUE = range(5)
_LAST_TIME, _HELD, _PAUSE, _GIVEN_BACK, _SEEN, _AGE, _GAP, _TIMES = range(5, 13)


@dataclass(frozen=True)
class Limits:
    """What is plausible; all arrays have the shape (n,).

    Attributes:
        torque: The commanded torque is cut to this [N m].
        lower: Position limits [rad].
        upper: Position limits [rad].
        speed: Measured speed that stops the arm [rad/s].
        damping: Damping of a stopped joint [N m s/rad].
        implausible: A voted torque beyond so many times ``torque`` is not believed.
        margin: Measured position so far beyond the limits stops the arm [rad].
        hold: Time for which the last safe torque is held, in one piece or in several [s].
        ramp: Time in which it goes down to zero [s].
        pause: A longer time between two steps is a pause and counts as held [s].
        recovery: Share of the time under control that is given back to the hold time.
    """

    torque: Array
    lower: Array
    upper: Array
    speed: Array
    damping: Array
    implausible: float = 4.0
    margin: float = 0.1
    hold: float = 0.1
    ramp: float = 0.4
    pause: float = 0.1
    recovery: float = 0.1

    def __post_init__(self) -> None:
        n = np.size(self.torque)
        for name in ("torque", "lower", "upper", "speed", "damping"):
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.shape != (n,) or np.isnan(array).any():
                raise ArmError(name, f"must hold {n} numbers, got {array.tolist()}")
            if name in ("torque", "speed") and (array <= 0.0).any():
                raise ArmError(name, f"must be positive, got {array.min():g}")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if (self.damping < 0.0).any():
            raise ArmError("damping", f"must not be negative, got {self.damping.min():g}")
        if (self.lower > self.upper).any():
            i = int(np.argmax(self.lower > self.upper))
            raise ArmError(
                "lower", f"joint {i}: {self.lower[i]:g} is above upper {self.upper[i]:g}"
            )
        if not (self.implausible >= 1.0 and self.margin >= 0.0):
            raise ArmError("implausible", "must be at least 1, and margin not negative")
        if not (0.0 <= self.hold < 60.0 and 0.0 < self.ramp < 60.0):
            raise ArmError("hold", "hold and ramp must be below a minute, and ramp positive")
        if not 0.0 < self.pause < 60.0:
            raise ArmError("pause", f"must be positive and below a minute, got {self.pause:g}")
        if not 0.0 <= self.recovery <= 1.0:
            raise ArmError("recovery", f"must be a share of 0 to 1, got {self.recovery:g}")

    @classmethod
    def of(
        cls,
        arm: Arm,
        torque: ArrayLike | None = None,
        lower: float = -math.pi,
        upper: float = math.pi,
        speed: float = 20.0,
        stop_damping: float = 40.0,
        hold: float = 0.1,
        ramp: float = 0.4,
    ) -> Limits:
        """Limits that suit an arm.

        Args:
            arm: The arm.
            torque: Torque limits; default: what 150 rad/s^2 of all joints of the stretched arm
                takes.
            lower: Of every joint [rad].
            upper: Of every joint [rad].
            speed: Of every joint [rad/s].
            stop_damping: Fastest rate at which the damping of a stopped arm works [1/s]. It is
                shared out by the joints' inertias; a loop of ten times that rate stays stable.
            hold: See the class.
            ramp: See the class.
        """
        n = arm.n
        stretched = arm.inertia_matrix(np.zeros(n)).sum(axis=1)
        own = arm.inertia + arm.mass * arm.com**2
        share = np.sqrt(own * np.diag(arm.inertia_matrix(np.zeros(n))))
        random = np.random.default_rng(0)
        fastest = max(
            float(np.abs(np.linalg.eigvals(np.linalg.solve(inertia, np.diag(share)))).max())
            for inertia in (arm.inertia_matrix(random.uniform(-2.5, 2.5, n)) for _ in range(50))
        )
        return cls(
            torque=150.0 * stretched if torque is None else np.asarray(torque, np.float64),
            lower=np.full(n, lower),
            upper=np.full(n, upper),
            speed=np.full(n, speed),
            damping=stop_damping / fastest * share,
            hold=hold,
            ramp=ramp,
        )


class Governor:
    """Keeps the state above and gives the torque for the motors."""

    def __init__(self, limits: Limits) -> None:
        self._n = limits.torque.size
        self._words = np.zeros(_WORDS, np.int64)
        self._times = np.zeros(_TIMES)
        self._times[_LAST_TIME] = np.nan
        self._last = np.zeros(self._n)
        self.torque = np.zeros(self._n)
        self.limits = limits

    @property
    def limits(self) -> Limits:
        """What is plausible; may be set while the arm moves."""
        return self._limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        if limits.torque.size != self._n:
            raise ArmError("limits", f"must be for {self._n} joints")
        self._limits = limits
        self._block = np.vstack(
            [limits.torque, limits.lower, limits.upper, limits.speed, limits.damping]
        )
        times = self._times
        times[_HOLD_TIME], times[_RAMP_TIME] = limits.hold, limits.ramp
        times[_BELIEVED], times[_PAUSE] = limits.implausible, limits.pause
        times[_GIVEN_BACK] = limits.recovery

    @property
    def state(self) -> State:
        """Where it is."""
        return State(int(self._words[_STATE]))

    @property
    def reason(self) -> Reason:
        """Why it is not in RUN."""
        return Reason(int(self._words[_REASON]))

    @property
    def joint(self) -> int:
        """The joint that the reason is about, if it is about one."""
        return int(self._words[_JOINT])

    @property
    def value(self) -> float:
        """What was wrong with that joint when it was found: torque, position or speed."""
        return float(self._times[_VALUE])

    @property
    def saturated(self) -> bool:
        """Whether the last torque was cut to the limits."""
        return bool(self._words[_SATURATED])

    @property
    def held(self) -> float:
        """How much of the hold time is used up [s]."""
        return float(self._times[_HELD])

    def reset(self) -> None:
        """Leave HOLD, RAMP or STOPPED; the next plausible vote leads to RUN unless it is barred."""
        self._words[:_BARRED] = 0
        self._last[:] = 0.0
        self._times[_LAST_TIME], self._times[_HELD] = np.nan, 0.0

    def stop(self, t: float) -> None:
        """Begin a safe stop by order."""
        if self.state in (State.RUN, State.HOLD):
            self._words[_STATE], self._words[_REASON] = State.RAMP, Reason.STOP_ASKED
            self._times[_RAMP_BEGAN] = t

    def cut(self, reason: Reason, joint: int = 0, value: float = 0.0) -> None:
        """Stop at once, without a ramp: the last torque must not go on.

        For a torque that came of a state which cannot be believed, or that drives an arm which does
        not follow. Before the first torque it only says why there will be none.

        Args:
            reason: Why.
            joint: The joint that it is about.
            value: What is wrong with that joint.
        """
        if self.state == State.STOPPED:
            return
        if self.state != State.IDLE:
            self._words[_STATE] = State.STOPPED
            self._last[:] = 0.0
        self._words[_REASON], self._words[_JOINT] = reason, joint
        self._times[_VALUE] = value

    def seen(self, age: float) -> None:
        """Say how old the measurements of the next step are [s]; without a word they are of now."""
        self._times[_AGE] = age

    def bar(self, reason: Reason) -> None:
        """Give no torque at all, from the next step on and until :meth:`admit`."""
        self._words[_BARRED] = reason

    def admit(self) -> None:
        """Take a bar back; an arm that it stopped stays stopped until somebody resets."""
        self._words[_BARRED] = 0

    @property
    def barred(self) -> bool:
        """Whether a bar is in force."""
        return bool(self._words[_BARRED])

    def step(self, t: float, fresh: bool, voted: bool, tau: Array, q: Array, qdot: Array) -> Array:
        """The torque for the motors, shape (n,) [N m]; valid until the next call.

        Args:
            t: Time of the controller [s].
            fresh: Whether q and qdot are measurements of now.
            voted: Whether tau has a quorum.
            tau: The voted torque [N m].
            q: Measured positions [rad].
            qdot: Measured velocities [rad/s].
        """
        _govern(
            self._words,
            self._times,
            self._block,
            self._limits.margin,
            self._last,
            t,
            fresh,
            voted,
            tau,
            q,
            qdot,
            self.torque,
        )
        return self.torque


@njit(cache=True, nogil=True)
def _judge(
    times: Array,
    limits: Array,
    margin: float,
    fresh: bool,
    voted: bool,
    tau: Array,
    q: Array,
    qdot: Array,
) -> tuple[int, int, float]:
    """What is wrong in this step: reason, joint, value."""
    if not fresh:
        return _SENSOR_LOST, 0, 0.0
    # Written so that NaN fails every one of them. An arm out of its limits is one also while there
    # is no quorum.
    for i in range(q.size):
        if not (limits[1, i] - margin <= q[i] <= limits[2, i] + margin):
            return _JOINT_LIMIT, i, q[i]
        if not math.fabs(qdot[i]) <= limits[3, i]:
            return _OVERSPEED, i, qdot[i]
    if not voted:
        return _NO_QUORUM, 0, 0.0
    for i in range(q.size):
        if not math.fabs(tau[i]) <= times[_BELIEVED] * limits[0, i]:
            return _IMPLAUSIBLE, i, tau[i]
    return _NONE, 0, 0.0


@njit(cache=True, nogil=True)
def _keep_account(state: int, times: Array, t: float) -> bool:
    """Count the time since the last step as held or as controlled; whether it was a pause."""
    elapsed = t - times[_LAST_TIME]
    times[_LAST_TIME] = t
    if not elapsed > 0.0:  # the first step, or another clock
        return False
    times[_GAP] = max(min(elapsed, _LONGEST_GAP), times[_GAP] - _FORGOTTEN * elapsed)
    paused = elapsed > times[_PAUSE]
    if state == _HOLD or (state == _RUN and paused):
        times[_HELD] += elapsed
    elif state == _RUN:
        times[_HELD] = max(0.0, times[_HELD] - times[_GIVEN_BACK] * elapsed)
    return paused


@njit(cache=True, nogil=True)
def _govern(
    words: Words,
    times: Array,
    limits: Array,
    margin: float,
    last: Array,
    t: float,
    fresh: bool,
    voted: bool,
    tau: Array,
    q: Array,
    qdot: Array,
    out: Array,
) -> None:
    n = out.size
    if fresh:
        times[_SEEN] = t - times[_AGE]
    times[_AGE] = 0.0
    age = t - times[_SEEN]
    sight = min(max(2.0 - age / times[_PAUSE], 0.0), 1.0)
    if words[_BARRED] != 0:
        if words[_STATE] != _IDLE:
            words[_STATE] = _STOPPED
        words[_REASON] = words[_BARRED]
        last[:] = 0.0
        out[:] = 0.0
        return
    reason, joint, value = _judge(times, limits, margin, fresh, voted, tau, q, qdot)
    state = words[_STATE]
    words[_SATURATED] = 0
    paused = _keep_account(state, times, t)
    grip = min(max(2.0 - age / _DAMPS, 0.0), 1.0) * min(_STABLE / max(times[_GAP], 1e-9), 1.0)
    held_out = (state == _HOLD or (state == _RUN and paused)) and times[_HELD] >= times[_HOLD_TIME]
    if reason == _NONE and state <= _HOLD and not held_out:
        words[_STATE] = _RUN
        words[_REASON] = _NONE
        for i in range(n):
            out[i] = min(max(tau[i], -limits[0, i]), limits[0, i])
            if out[i] != tau[i]:
                words[_SATURATED] = 1
            last[i] = out[i]
            out[i] *= sight
        return
    if state == _IDLE:
        words[_REASON], words[_JOINT], times[_VALUE] = reason, joint, value
        out[:] = 0.0
        return
    if state <= _HOLD:
        stood = paused and held_out and state == _RUN
        if stood:
            words[_REASON], words[_JOINT], times[_VALUE] = _PAUSED, 0, times[_HELD]
        elif reason != _NONE:
            words[_REASON], words[_JOINT], times[_VALUE] = reason, joint, value
        state = _HOLD
        if stood:
            # The arm has long been left to itself; a torque of then would only push it anew.
            state = _STOPPED
        elif reason in (_JOINT_LIMIT, _OVERSPEED):
            state = _RAMP
            times[_RAMP_BEGAN] = t
        elif times[_HELD] >= times[_HOLD_TIME]:
            # From the moment at which the hold time was used up: the last step may be long ago.
            state = _RAMP
            times[_RAMP_BEGAN] = t - (times[_HELD] - times[_HOLD_TIME])
    factor = 1.0
    if state == _RAMP:
        factor = 1.0 - (t - times[_RAMP_BEGAN]) / times[_RAMP_TIME]
        if factor <= 0.0:
            state = _STOPPED
    if state == _STOPPED:
        factor = 0.0
    words[_STATE] = state
    for i in range(n):
        out[i] = factor * sight * last[i]
        if fresh:
            if out[i] * qdot[i] > 0.0:
                # A torque that nobody computes any more must not take a joint to its speed limit.
                out[i] *= min(max(2.0 - 2.0 * math.fabs(qdot[i]) / limits[3, i], 0.0), 1.0)
            if state >= _RAMP:
                out[i] -= grip * (1.0 - factor) * limits[4, i] * qdot[i]
        out[i] = min(max(out[i], -limits[0, i]), limits[0, i])
