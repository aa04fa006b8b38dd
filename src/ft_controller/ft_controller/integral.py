"""Integral action: takes away what a wrong model leaves of the position error.

The bracket of equation (2) gets one more term, K_I times the integral of the position error over
the time under control. It is an input of the vote, as the desired acceleration is: the processors
keep no state, and one that comes back needs to be told nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ft_controller.errors import ArmError, raising
from ft_controller.records import Array, Flags
from ft_controller.serial_arm import SerialArm
from kin_core import checks

__all__ = ["Integral"]


class Integral:
    """The integral term of the control law of an arm.

    Attributes:
        term: Acceleration that is added to the desired one, shape (n,) [rad/s^2].
    """

    def __init__(self, arm: SerialArm, ki: ArrayLike = 0.0, limit: float = 5.0) -> None:
        """Begin with nothing.

        Args:
            arm: The arm.
            ki: Gain of the integral of the position error, one or n; 0: none [1/s^3].
            limit: Largest acceleration that the term may ask for [rad/s^2].
        """
        self.ki = arm.each("ki", ki, signed=False)
        with raising(ArmError):
            self.limit = checks.within("integral_limit", limit, 0.0, 1e6)
        self.term = np.zeros(arm.n)

    def forget(self) -> None:
        """Begin anew: the arm was not under control."""
        self.term[:] = 0.0

    def add(self, error: Array, dt: float, hold: Flags) -> None:
        """Take over the error of a tick under control.

        Args:
            error: Desired minus measured positions, shape (n,) [rad].
            dt: Time since the last tick [s].
            hold: Joints whose term stays as it is, shape (n,): locked, or at their torque limit.
        """
        grown = np.clip(self.term + dt * self.ki * error, -self.limit, self.limit)
        self.term = np.where(hold, self.term, grown)
