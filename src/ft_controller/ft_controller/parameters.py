"""Parameters that the controller and the simulated arm share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ft_controller.arm import Arm
from ft_controller.errors import ArmError
from kin_core import checks
from kin_core.errors import InvalidInput
from kin_ros.parameters import ParameterSet, parameter

__all__ = ["ArmParameters", "joint_index", "joint_values"]


@dataclass(frozen=True, kw_only=True)
class ArmParameters(ParameterSet):
    """The links of the arm, and the names of its joints."""

    joints: tuple[str, ...] = parameter(
        ("joint_1", "joint_2", "joint_3", "joint_4"), "joint names, base first", read_only=True
    )
    mass: tuple[float, ...] = parameter((4.0, 3.0, 2.0, 1.0), "link masses [kg]", read_only=True)
    length: tuple[float, ...] = parameter((0.5, 0.4, 0.3, 0.2), "link lengths [m]", read_only=True)
    com: tuple[float, ...] = parameter(
        (0.25, 0.2, 0.15, 0.1), "joint to centre of mass of each link [m]", read_only=True
    )
    inertia: tuple[float, ...] = parameter(
        (1.0 / 12.0, 0.04, 0.015, 1.0 / 300.0),
        "inertia of each link about its centre of mass [kg m^2]",
        read_only=True,
    )
    friction: tuple[float, ...] = parameter(
        (0.0, 0.0, 0.0, 0.0), "viscous friction of each joint [N m s/rad]", read_only=True
    )
    gravity: float = parameter(
        0.0, "gravity along -y of the base [m/s^2]", minimum=-100.0, maximum=100.0, read_only=True
    )
    lower: tuple[float, ...] = parameter(
        (-3.1, -2.8, -2.8, -2.8), "lower position limits [rad]", read_only=True
    )
    upper: tuple[float, ...] = parameter(
        (3.1, 2.8, 2.8, 2.8), "upper position limits [rad]", read_only=True
    )
    frame: str = parameter("arm_base", "frame of the markers", read_only=True)

    def check(self) -> None:
        """Refuse arrays that do not fit together."""
        n = len(self.joints)
        checks.count("joints", n, 64)
        if n < 1 or len(set(self.joints)) != n or not all(self.joints):
            raise InvalidInput("joints", "must be different names, at least one")
        for name in ("mass", "length", "com", "inertia", "friction", "lower", "upper"):
            size = len(getattr(self, name))
            if size != n:
                raise InvalidInput(name, f"needs {n} values, one for each joint, got {size}")
        if any(low >= high for low, high in zip(self.lower, self.upper, strict=True)):
            raise InvalidInput("lower", "must be below upper")
        self.arm()

    def arm(self) -> Arm:
        """The arm of these parameters."""
        return Arm.of(
            self.mass, self.length, self.com, self.inertia, list(self.friction), self.gravity
        )


def joint_index(joints: Sequence[str], name: str, field: str = "joint") -> int:
    """Number of a joint; the error lists the names."""
    try:
        return list(joints).index(checks.one_of(field, name, joints))
    except InvalidInput as error:
        raise ArmError(error.field, error.problem) from None


def joint_values(
    joints: Sequence[str], names: Sequence[str], field: str, values: Any
) -> NDArray[np.float64]:
    """Values of a message in the order of ``joints``; all of them must be there."""
    if len(values) != len(names):
        raise ArmError(field, f"has {len(values)} values for {len(names)} names")
    array = checks.finite(field, np.array(values, dtype=np.float64))
    if list(names) == list(joints):
        return array
    where = {name: i for i, name in enumerate(names)}
    missing = [name for name in joints if name not in where]
    if missing:
        raise ArmError("name", f"joint {missing[0]!r} is missing")
    return array[[where[name] for name in joints]]
