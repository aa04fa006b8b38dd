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

An arm that falls is not let go: as long as there is a quorum, what it says brings the arm to rest
and keeps it there in RAMP and STOPPED too. (Whoever calls has a motion to rest voted on then, see
:attr:`SafetySupervisor.keeps_up`.) Without one the last torque goes on for a moment, and brakes are
asked for, see :attr:`SafetySupervisor.needs_brakes`.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ft_controller.errors import ArmError
from ft_controller.limits import Limits
from ft_controller.records import Array, Records, record

__all__ = ["Reason", "SafetySupervisor", "State"]


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

#: A torque of a quorum that is no older than this keeps a stopped arm up [s].
_KEPT_UP = 0.2

_STATUS = record(
    "state reason joint saturated barred falls", "value ramp_began last_time held seen age gap kept"
)
"""The state machine.

``value`` is what was wrong with ``joint``; ``barred`` is a reason while there must be no torque.
Times [s]: of the last step (NaN: none); hold time that is used up; that the last measurement is
of; age of the next one; the longest time between two steps of late; at which a quorum last drove
the arm, or kept it up, which only one that ``falls`` needs.
"""

_TIMES = record(floats="hold ramp pause recovery implausible margin")
"""The fields of :class:`~ft_controller.limits.Limits` that are for all joints."""

_JOINT = record(floats="torque lower upper speed damping last")
"""The fields that each joint has, and its last safe torque [N m]."""


class _Memory(NamedTuple):
    """What the kernel reads and changes."""

    status: Records
    times: Records
    joints: Records
    out: Array


class SafetySupervisor:
    """Keeps the state above and gives the torque for the motors."""

    def __init__(self, limits: Limits, falls: bool = False) -> None:
        """Begin in IDLE.

        Args:
            limits: What is plausible.
            falls: Whether gravity moves the arm: then it is kept up when it is stopped.
        """
        self._n = limits.torque.size
        self.torque = np.zeros(self._n)
        self._memory = _Memory(
            np.zeros(1, _STATUS), np.zeros(1, _TIMES), np.zeros(self._n, _JOINT), self.torque
        )
        self._status = self._memory.status[0]
        self._status["last_time"] = np.nan
        self._status["falls"], self._status["kept"] = falls, -np.inf
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
        for name in ("torque", "lower", "upper", "speed", "damping"):
            self._memory.joints[name] = getattr(limits, name)
        self._memory.joints["speed"] *= 1.0 + limits.overspeed
        for name in _TIMES.names or ():
            self._memory.times[name] = getattr(limits, name)

    @property
    def state(self) -> State:
        """Where it is."""
        return State(int(self._status["state"]))

    @property
    def reason(self) -> Reason:
        """Why it is not in RUN."""
        return Reason(int(self._status["reason"]))

    @property
    def joint(self) -> int:
        """The joint that the reason is about, if it is about one."""
        return int(self._status["joint"])

    @property
    def value(self) -> float:
        """What was wrong with that joint when it was found: torque, position or speed."""
        return float(self._status["value"])

    @property
    def saturated(self) -> bool:
        """Whether the last torque was cut to the limits."""
        return bool(self._status["saturated"])

    @property
    def held(self) -> float:
        """How much of the hold time is used up [s]."""
        return float(self._status["held"])

    @property
    def keeps_up(self) -> bool:
        """Whether the arm is stopped and would fall: the next vote is to be on staying at rest."""
        return bool(self._status["falls"]) and self.state in (State.RAMP, State.STOPPED)

    @property
    def kept_up(self) -> bool:
        """Whether a quorum kept the arm up in the last step, though it is stopped."""
        return self.keeps_up and bool(self._status["kept"] == self._status["last_time"])

    @property
    def needs_brakes(self) -> bool:
        """Whether the arm is stopped, would fall, and no quorum keeps it up."""
        since = self._status["last_time"] - self._status["kept"]
        return self.keeps_up and not bool(since <= _KEPT_UP)

    def reset(self) -> None:
        """Leave HOLD, RAMP or STOPPED; the next plausible vote leads to RUN unless it is barred."""
        status = self._status
        status["state"], status["reason"] = State.IDLE, Reason.NONE
        status["joint"] = status["saturated"] = 0
        status["last_time"], status["held"] = np.nan, 0.0
        self._memory.joints["last"] = 0.0

    def stop(self, t: float) -> None:
        """Begin a safe stop by order."""
        if self.state in (State.RUN, State.HOLD):
            self._status["state"], self._status["reason"] = State.RAMP, Reason.STOP_ASKED
            self._status["ramp_began"] = t

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
        status = self._status
        if self.state != State.IDLE:
            status["state"] = State.STOPPED
            self._memory.joints["last"] = 0.0
        status["reason"], status["joint"], status["value"] = reason, joint, value

    def seen(self, age: float) -> None:
        """Say how old the measurements of the next step are [s]; without a word they are of now."""
        self._status["age"] = age

    def bar(self, reason: Reason) -> None:
        """Give no torque at all from the next step on; ``NONE``: take that back.

        An arm that was stopped by it stays stopped until somebody resets.
        """
        self._status["barred"] = reason

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
        _supervise(self._memory, t, fresh, voted, tau, q, qdot)
        return self.torque


@njit(cache=True, nogil=True)
def _judge(
    memory: _Memory, fresh: bool, voted: bool, tau: Array, q: Array, qdot: Array
) -> tuple[Reason, int, float]:
    """What is wrong in this step: reason, joint, value."""
    if not fresh:
        return Reason.SENSOR_LOST, 0, 0.0
    times, joints = memory.times[0], memory.joints
    # Written so that NaN fails every one of them. An arm out of its limits is one also while there
    # is no quorum.
    for i in range(q.size):
        if not (joints[i].lower - times.margin <= q[i] <= joints[i].upper + times.margin):
            return Reason.JOINT_LIMIT, i, q[i]
        if not math.fabs(qdot[i]) <= joints[i].speed:
            return Reason.OVERSPEED, i, qdot[i]
    if not voted:
        return Reason.NO_QUORUM, 0, 0.0
    for i in range(q.size):
        if not math.fabs(tau[i]) <= times.implausible * joints[i].torque:
            return Reason.IMPLAUSIBLE, i, tau[i]
    return Reason.NONE, 0, 0.0


@njit(cache=True, nogil=True)
def _explain(status: Any, reason: Reason, joint: int, value: float) -> None:
    status.reason = reason
    status.joint = joint
    status.value = value


@njit(cache=True, nogil=True)
def _keep_account(status: Any, times: Any, t: float) -> bool:
    """Count the time since the last step as held or as controlled; whether it was a pause."""
    elapsed = t - status.last_time
    status.last_time = t
    if not elapsed > 0.0:  # the first step, or another clock
        return False
    status.gap = max(min(elapsed, _LONGEST_GAP), status.gap - _FORGOTTEN * elapsed)
    paused = elapsed > times.pause
    if status.state == State.HOLD or (status.state == State.RUN and paused):
        status.held += elapsed
    elif status.state == State.RUN:
        status.held = max(0.0, status.held - times.recovery * elapsed)
    return paused


@njit(cache=True, nogil=True)
def _leave_run(status: Any, times: Any, reason: Reason, stood: bool, t: float) -> None:
    """From RUN or HOLD to HOLD, RAMP or STOPPED."""
    if stood:
        # The arm has long been left to itself; a torque of then would only push it anew.
        status.state = State.STOPPED
    elif reason in (Reason.JOINT_LIMIT, Reason.OVERSPEED):
        status.state = State.RAMP
        status.ramp_began = t
    elif status.held >= times.hold:
        # From the moment at which the hold time was used up: the last step may be long ago.
        status.state = State.RAMP
        status.ramp_began = t - (status.held - times.hold)
    else:
        status.state = State.HOLD


@njit(cache=True, nogil=True)
def _run(memory: _Memory, tau: Array, sight: float) -> None:
    """Pass the voted torque on, cut to the limits."""
    status, joints = memory.status[0], memory.joints
    status.state = State.RUN
    status.reason = Reason.NONE
    status.kept = status.last_time
    for i in range(tau.size):
        joints[i].last = min(max(tau[i], -joints[i].torque), joints[i].torque)
        if joints[i].last != tau[i]:
            status.saturated = 1
        memory.out[i] = sight * joints[i].last


@njit(cache=True, nogil=True)
def _keep_up(memory: _Memory, voted: bool, tau: Array, sight: float) -> bool:
    """Pass on what a quorum says to a stopped arm that falls; False if there is nothing to pass."""
    status, times = memory.status[0], memory.times[0]
    for i in range(tau.size):
        if not math.fabs(tau[i]) <= times.implausible * memory.joints[i].torque:
            voted = False
    if not voted:
        return False
    state, reason = status.state, status.reason
    _run(memory, tau, sight)
    status.state, status.reason = state, reason
    return True


@njit(cache=True, nogil=True)
def _fade(memory: _Memory, factor: float, sight: float, damping: float, qdot: Array) -> None:
    """Hold the last torque to a factor, and damp; by measured velocities alone."""
    stopping = memory.status[0].state in (State.RAMP, State.STOPPED)
    for i in range(qdot.size):
        joint = memory.joints[i]
        tau = factor * sight * joint.last
        if tau * qdot[i] > 0.0:
            # A torque that nobody computes any more must not take a joint to its speed limit.
            tau *= min(max(2.0 - 2.0 * math.fabs(qdot[i]) / joint.speed, 0.0), 1.0)
        if stopping:
            tau -= damping * (1.0 - factor) * joint.damping * qdot[i]
        memory.out[i] = min(max(tau, -joint.torque), joint.torque)


@njit(cache=True, nogil=True)
def _supervise(
    memory: _Memory, t: float, fresh: bool, voted: bool, tau: Array, q: Array, qdot: Array
) -> None:
    """One step of the state machine; the torque goes to ``memory.out``."""
    status, times = memory.status[0], memory.times[0]
    if fresh:
        status.seen = t - status.age
    status.age = 0.0
    age = t - status.seen
    sight = min(max(2.0 - age / times.pause, 0.0), 1.0)
    if status.barred != Reason.NONE:
        if status.state != State.IDLE:
            status.state = State.STOPPED
        status.reason = status.barred
        memory.joints["last"][:] = 0.0
        memory.out[:] = 0.0
        return
    reason, joint, value = _judge(memory, fresh, voted, tau, q, qdot)
    before = status.state
    status.saturated = 0
    paused = _keep_account(status, times, t)
    alone = before == State.HOLD or (before == State.RUN and paused)
    held_out = alone and status.held >= times.hold
    if reason == Reason.NONE and before in (State.IDLE, State.RUN, State.HOLD) and not held_out:
        _run(memory, tau, sight)
        return
    if before == State.IDLE:
        _explain(status, reason, joint, value)
        memory.out[:] = 0.0
        return
    if before in (State.RUN, State.HOLD):
        stood = paused and held_out and before == State.RUN
        if stood:
            _explain(status, Reason.PAUSED, 0, status.held)
        elif reason != Reason.NONE:
            _explain(status, reason, joint, value)
        _leave_run(status, times, reason, stood, t)
    factor = 1.0
    if status.state == State.RAMP:
        factor = 1.0 - (t - status.ramp_began) / times.ramp
        if factor <= 0.0:
            status.state = State.STOPPED
    if status.state == State.STOPPED:
        factor = 0.0
    if status.falls != 0 and before in (State.RAMP, State.STOPPED):
        if fresh and _keep_up(memory, voted, tau, sight):
            return
        factor = 1.0  # until the brakes grip
    damping = min(max(2.0 - age / _DAMPS, 0.0), 1.0) * min(_STABLE / max(status.gap, 1e-9), 1.0)
    _fade(memory, factor, sight, damping, qdot if fresh else np.zeros(qdot.size))
