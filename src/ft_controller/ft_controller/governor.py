"""Behind the vote: is the torque plausible, and what goes to the motors when there is none.

    IDLE -> RUN <-> HOLD -> RAMP -> STOPPED

HOLD repeats the last safe torque; a quorum that comes back in time leads to RUN again. After the
hold time the held torque is taken down to zero while a damping of each joint is taken up. That ends
in STOPPED, where only the damping is left, until somebody resets. From RAMP on there is no way back
by
itself: a torque that jumps back in after a second is no safe behaviour.
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
        hold: Time for which the last safe torque is held [s].
        ramp: Time in which it goes down to zero [s].
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
        self._words = np.zeros(4, np.int64)  # state, reason, joint, saturated
        self._times = np.zeros(5)  # since, hold, ramp, implausible, value of the joint
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
        self._times[1:4] = limits.hold, limits.ramp, limits.implausible

    @property
    def state(self) -> State:
        """Where it is."""
        return State(int(self._words[0]))

    @property
    def reason(self) -> Reason:
        """Why it is not in RUN."""
        return Reason(int(self._words[1]))

    @property
    def joint(self) -> int:
        """The joint that the reason is about, if it is about one."""
        return int(self._words[2])

    @property
    def value(self) -> float:
        """What was wrong with that joint when it was found: torque, position or speed."""
        return float(self._times[4])

    @property
    def saturated(self) -> bool:
        """Whether the last torque was cut to the limits."""
        return bool(self._words[3])

    def reset(self) -> None:
        """Leave HOLD, RAMP or STOPPED; the next plausible vote leads to RUN."""
        self._words[:] = 0
        self._last[:] = 0.0

    def stop(self, t: float) -> None:
        """Begin a safe stop by order."""
        if self.state in (State.RUN, State.HOLD):
            self._words[0], self._words[1] = State.RAMP, Reason.STOP_ASKED
            self._times[0] = t

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
    reason = 0
    joint = 0
    value = 0.0
    if not fresh:
        reason = 2
    elif not voted:
        reason = 1
    else:
        for i in range(n):
            # Written so that NaN fails every one of them.
            if not math.fabs(tau[i]) <= times[3] * limits[0, i]:
                reason, joint, value = 3, i, tau[i]
            elif not (limits[1, i] - margin <= q[i] <= limits[2, i] + margin):
                reason, joint, value = 4, i, q[i]
            elif not math.fabs(qdot[i]) <= limits[3, i]:
                reason, joint, value = 5, i, qdot[i]
            if reason != 0:
                break
    state = words[0]
    words[3] = 0
    if reason == 0 and state <= 2:
        words[0] = 1
        words[1] = 0
        for i in range(n):
            out[i] = min(max(tau[i], -limits[0, i]), limits[0, i])
            if out[i] != tau[i]:
                words[3] = 1
            last[i] = out[i]
        return
    if state == 0:
        words[1], words[2], times[4] = reason, joint, value
        out[:] = 0.0
        return
    if state == 1:
        state = 2
        times[0] = t
    if state == 2:
        words[1], words[2], times[4] = reason, joint, value
        if t - times[0] >= times[1] or reason in (4, 5):
            state = 3
            times[0] = t
    factor = 1.0
    if state == 3:
        factor = 1.0 - (t - times[0]) / times[2]
        if factor <= 0.0:
            state = 4
    if state == 4:
        factor = 0.0
    words[0] = state
    for i in range(n):
        out[i] = factor * last[i]
        if fresh and state >= 3:
            out[i] -= (1.0 - factor) * limits[4, i] * qdot[i]
        out[i] = min(max(out[i], -limits[0, i]), limits[0, i])
