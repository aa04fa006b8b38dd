"""What is plausible: limits of torque, position, speed and time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ft_controller.errors import ArmError
from ft_controller.records import Array
from ft_controller.serial_arm import SerialArm

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """What is plausible; all arrays have the shape (n,).

    Attributes:
        torque: The commanded torque is cut to this [N m].
        lower: Position limits [rad].
        upper: Position limits [rad].
        speed: Largest speed of a motion; a measured one beyond it stops the arm [rad/s].
        damping: Damping of a stopped joint [N m s/rad].
        implausible: A voted torque beyond so many times ``torque`` is not believed.
        margin: Measured position so far beyond the limits stops the arm [rad].
        hold: Time for which the last safe torque is held, in one piece or in several [s].
        ramp: Time in which it goes down to zero [s].
        pause: A longer time between two steps is a pause and counts as held [s].
        recovery: Share of the time under control that is given back to the hold time.
        overspeed: Share by which a measured speed may be above ``speed`` before the arm stops.
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
    overspeed: float = 0.0

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
        if not 0.0 <= self.overspeed <= 1.0:
            raise ArmError("overspeed", f"must be a share of 0 to 1, got {self.overspeed:g}")
        if not 0.0 <= self.recovery <= 1.0:
            raise ArmError("recovery", f"must be a share of 0 to 1, got {self.recovery:g}")

    @classmethod
    def of(
        cls,
        arm: SerialArm,
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
        stretched = np.abs(arm.inertia_matrix(np.zeros(n))).sum(axis=1)
        share = np.sqrt(arm.own_inertia * np.diag(arm.inertia_matrix(np.zeros(n))))
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
