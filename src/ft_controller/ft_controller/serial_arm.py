"""What can be asked of any serial arm, and how its inputs are checked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from ft_controller import dynamics
from ft_controller.errors import ArmError, raising
from ft_controller.records import Array, Records
from kin_core import checks

__all__ = ["SerialArm"]


class SerialArm(ABC):
    """A serial arm of any kind.

    Attributes:
        links: Its links for the kernels, shape (n,); see :mod:`~ft_controller.dynamics`.
    """

    links: Records

    @property
    def n(self) -> int:
        """Number of joints."""
        return int(self.links.size)

    @property
    @abstractmethod
    def own_inertia(self) -> Array:
        """Inertia of each link alone about its joint, shape (n,) [kg m^2]; mass where it slides."""

    @property
    @abstractmethod
    def falls(self) -> bool:
        """Whether gravity moves it."""

    @abstractmethod
    def perturbed(self, seed: int, scale: float) -> Self:
        """An arm whose parameters are off by up to ``scale`` (relative): the modelling error."""

    @abstractmethod
    def points(self, q: ArrayLike) -> Array:
        """Positions of the joints and the tip, shape (n + 1, 2 or 3) [m]."""

    def inertia_matrix(self, q: ArrayLike) -> Array:
        """M of equation (1), shape (n, n) [kg m^2]."""
        zero = np.zeros(self.n)
        return dynamics.inertia_and_bias(self.links, self.vector("q", q), zero)[0]

    def bias(self, q: ArrayLike, qdot: ArrayLike) -> Array:
        """N + G + V qdot of equation (1), shape (n,) [N m]."""
        return dynamics.inertia_and_bias(
            self.links, self.vector("q", q), self.vector("qdot", qdot)
        )[1]

    def forward_dynamics(self, q: ArrayLike, qdot: ArrayLike, tau: ArrayLike) -> Array:
        """Acceleration M^-1 (tau - N), shape (n,) [rad/s^2]; equation (3), corrected."""
        return dynamics.acceleration(
            self.links,
            self.vector("q", q),
            self.vector("qdot", qdot),
            self.vector("tau", tau),
            np.zeros(self.n, np.bool_),
        )

    def energy(self, q: ArrayLike, qdot: ArrayLike) -> float:
        """Kinetic and potential energy [J]."""
        return float(dynamics.energy(self.links, self.vector("q", q), self.vector("qdot", qdot)))

    def vector(self, name: str, values: ArrayLike) -> Array:
        """One finite number for each joint, shape (n,); the error names the field."""
        with raising(ArmError):
            return np.ascontiguousarray(checks.shape(name, values, (self.n,)))

    def each(self, name: str, values: ArrayLike, *, signed: bool = True) -> Array:
        """One finite number for all joints or one for each of them, as shape (n,)."""
        with raising(ArmError):
            array = checks.finite(name, values)
        if array.shape not in ((), (1,), (self.n,)):
            raise ArmError(name, f"must be one number or {self.n}, got the shape {array.shape}")
        if not signed and (array < 0.0).any():
            raise ArmError(name, f"must not be negative, got {array.min():g}")
        return np.broadcast_to(array, (self.n,)).copy()
