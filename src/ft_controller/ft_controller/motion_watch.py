"""Does the arm do what it is told: joints that do not follow, and measurements that are frozen.

A joint does not follow if it is too far from where it should be. A measured position is frozen if
not a bit of it changes although the joint should have moved: because it was told to, because its
own measured velocity says so, or because the torque on the arm would have moved it. A frozen
position may be a dead encoder, a driver that repeats its last message under new stamps, or a joint
that is jammed; in all three the controller would wind up its torque against nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ft_controller import dynamics
from ft_controller.errors import ArmError, raising
from ft_controller.records import Array, Flags
from ft_controller.serial_arm import SerialArm
from kin_core import checks

__all__ = ["Finding", "MotionWatch"]


#: Of the motion that a frozen position is found by, while the arm is being stopped.
_STOPPING = 0.1


@dataclass(frozen=True)
class Finding:
    """A joint that does not do what it is told.

    Attributes:
        frozen: Its measured position stands still; else it is too far from its motion.
        joint: Which one.
        value: How far it should have moved, or how far it is off [rad].
    """

    frozen: bool
    joint: int
    value: float


class MotionWatch:
    """Watches measurements, desired positions and torques, tick by tick.

    Attributes:
        links: The model of the arm; may be set between ticks.
    """

    def __init__(
        self,
        arm: SerialArm,
        following_error: ArrayLike = 0.3,
        frozen_motion: float = 0.05,
        standstill: ArrayLike = 5.0,
    ) -> None:
        """Begin to watch.

        Args:
            arm: The model of the arm.
            following_error: Farthest distance from the motion, one or n; 0: any [rad].
            frozen_motion: A position that does not change at all while it should have moved so far
                is frozen; 0: never [rad].
            standstill: Torques that would give a joint no more than this acceleration may leave it
                where it is: friction, and errors of the model; one or n [rad/s^2].
        """
        self.links, self._n = arm.links, arm.n
        self.following_error = arm.each("following_error", following_error, signed=False)
        self.standstill = arm.each("standstill", standstill, signed=False)
        with raising(ArmError):
            self.frozen_motion = checks.within("frozen_motion", frozen_motion, 0.0, 100.0)
        self._torque = np.zeros(arm.n)
        self.forget()

    def forget(self) -> None:
        """Begin anew: the arm was not under control."""
        n = self._n
        self._q: Array | None = None
        self._told = np.zeros(n)  # desired positions when the measurement last changed
        self._coasted = np.zeros(n)  # by the measured velocities since then
        self._pushed = np.zeros((2, n))  # by the torques since then: way and speed
        self._torque[:] = 0.0

    def gave(self, torque: Array) -> None:
        """Take over the torque that the arm has from now on [N m]."""
        self._torque[:] = torque

    def look(
        self,
        dt: float,
        q: Array,
        qdot: Array,
        desired: Array,
        locked: Flags,
        new: bool = True,
        driven: bool = True,
    ) -> Finding | None:
        """Judge a tick with a fresh measurement; None if nothing is wrong.

        Args:
            dt: Time since the last tick [s].
            q: Measured positions, shape (n,) [rad].
            qdot: Measured velocities, shape (n,) [rad/s].
            desired: Desired positions, shape (n,) [rad].
            locked: Joints that do not move, shape (n,).
            new: Whether a message brought the measurement since the last tick; what is still the
                same message proves nothing.
            driven: Whether the arm follows a motion; else it is being stopped, and a tenth of the
                motion is enough: a damping by velocities that are none would only push.
        """
        enough = self.frozen_motion if driven else _STOPPING * self.frozen_motion
        frozen = self._frozen(dt, q, qdot, desired, locked, enough)
        if frozen is not None:
            return frozen if new else None
        if not driven:
            return None
        off = np.where(locked, 0.0, np.abs(desired - q))
        far = (off > self.following_error) & (self.following_error > 0.0)
        if far.any():
            i = int(np.argmax(np.where(far, off, 0.0)))
            return Finding(False, i, float(off[i]))
        return None

    def _frozen(
        self, dt: float, q: Array, qdot: Array, desired: Array, locked: Flags, enough: float
    ) -> Finding | None:
        if self._q is None or self.frozen_motion == 0.0:
            self._q, self._told = q.copy(), desired.copy()
            return None
        moved = (q != self._q) | locked
        self._q = q.copy()
        self._told[moved] = desired[moved]
        self._coasted[moved] = 0.0
        self._pushed[:, moved] = 0.0
        if moved.all():
            return None
        self._coasted += dt * qdot
        self._push(dt, q, qdot, locked)
        due = np.maximum(
            np.maximum(np.abs(desired - self._told), np.abs(self._coasted)),
            np.abs(self._pushed[0]),
        )
        due[moved] = 0.0
        i = int(np.argmax(due))
        return Finding(True, i, float(due[i])) if due[i] > enough else None

    def _push(self, dt: float, q: Array, qdot: Array, locked: Flags) -> None:
        """Add up where the torques should have moved the joints since they stand still."""
        a = dynamics.acceleration(self.links, q, qdot, self._torque, locked)
        strong = np.abs(a) > self.standstill
        self._pushed[0] += dt * self._pushed[1] + 0.5 * dt * dt * a
        self._pushed[1] += dt * a
        self._pushed[:, ~strong] = 0.0
