"""The n-link planar arm: the parameters of its links, and what can be asked of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from ft_controller import planar
from ft_controller.errors import ArmError, TooLarge, raising
from ft_controller.records import Array, Records
from ft_controller.serial_arm import SerialArm
from kin_core import checks

__all__ = ["MAX_JOINTS", "Arm"]

MAX_JOINTS = 512
"""More joints than any planar arm has; bounds the size of the shared pages."""


@dataclass(frozen=True)
class Arm(SerialArm):
    """Links of a planar arm with revolute joints; link i turns with joint i.

    All arrays have the shape (n,).

    Attributes:
        mass: Link masses [kg].
        length: Distance from joint i to joint i + 1, the last one to the end effector [m].
        com: Distance from joint i to the centre of mass of link i, along the link [m].
        inertia: Moment of inertia of link i about its centre of mass [kg m^2].
        friction: Viscous friction of joint i [N m s/rad].
        gravity: Acceleration along -y of the base frame [m/s^2]; 0 for a horizontal arm.
    """

    mass: Array
    length: Array
    com: Array
    inertia: Array
    friction: Array
    gravity: float = 0.0
    links: Records = field(init=False, repr=False, compare=False)

    @raising(ArmError)
    def __post_init__(self) -> None:
        n = int(np.size(self.mass))
        if n < 1:
            raise ArmError("mass", "needs at least one link")
        if n > MAX_JOINTS:
            raise TooLarge(f"mass: {n} links are more than the limit of {MAX_JOINTS}")
        # One block for the kernels and the processors.
        links = np.zeros(n, planar.LINK)
        links["gravity"] = checks.number("gravity", self.gravity)
        for name in ("mass", "length", "com", "inertia", "friction"):
            array = np.array(checks.shape(name, getattr(self, name), (n,)))
            if name in ("mass", "length") and (array <= 0.0).any():
                raise ArmError(name, f"must be positive, got {array.min():g}")
            if (array < 0.0).any():
                raise ArmError(name, f"must not be negative, got {array.min():g}")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
            links[name] = array
        if (self.own_inertia <= 0.0).any():
            raise ArmError("inertia", "a link needs inertia about its joint")
        links.flags.writeable = False
        object.__setattr__(self, "links", links)

    @classmethod
    @raising(ArmError)
    def of(
        cls,
        mass: ArrayLike,
        length: ArrayLike,
        com: ArrayLike | None = None,
        inertia: ArrayLike | None = None,
        friction: ArrayLike | float = 0.0,
        gravity: float = 0.0,
    ) -> Arm:
        """An arm of uniform rods where ``com`` and ``inertia`` are not given."""
        m, l = checks.finite("mass", mass), checks.finite("length", length)
        if m.ndim != 1 or m.shape != l.shape:
            raise ArmError("length", f"must have the shape {m.shape} of mass")
        return cls(
            mass=m,
            length=l,
            com=l / 2.0 if com is None else checks.finite("com", com),
            inertia=m * l**2 / 12.0 if inertia is None else checks.finite("inertia", inertia),
            friction=np.full(m.shape, checks.finite("friction", friction))
            if np.ndim(friction) == 0
            else checks.finite("friction", friction),
            gravity=gravity,
        )

    @classmethod
    def four_link(cls, friction: float = 0.0, gravity: float = 0.0) -> Arm:
        """The default: four uniform rods, each lighter and shorter than the one before."""
        return cls.of([4.0, 3.0, 2.0, 1.0], [0.5, 0.4, 0.3, 0.2], None, None, friction, gravity)

    @classmethod
    def rods(cls, n: int, friction: float = 0.0, gravity: float = 0.0) -> Arm:
        """An arm of n rods with a total length of 1.4 m that taper towards the tip."""
        taper = np.linspace(1.0, 0.4, n) if n > 1 else np.ones(1)
        return cls.of(
            10.0 * taper / taper.sum(), 1.4 * taper / taper.sum(), None, None, friction, gravity
        )

    @property
    def own_inertia(self) -> Array:
        """Inertia of each link alone about its own joint, shape (n,) [kg m^2]."""
        return self.inertia + self.mass * self.com**2

    @property
    def falls(self) -> bool:
        """Whether gravity moves it."""
        return bool(self.links["gravity"].any())

    @property
    def reach(self) -> float:
        """Length of the outstretched arm [m]."""
        return float(self.length.sum())

    def loaded(self, mass: float) -> Arm:
        """The arm with a point mass at its tip [kg]."""
        with raising(ArmError):
            checks.within("payload mass", mass, 0.0, 1e6)
        if mass == 0.0:
            return self
        total = self.mass[-1] + mass
        com = (self.mass[-1] * self.com[-1] + mass * self.length[-1]) / total
        own = self.mass[-1] * (self.com[-1] - com) ** 2 + mass * (self.length[-1] - com) ** 2
        return replace(
            self,
            mass=np.append(self.mass[:-1], total),
            com=np.append(self.com[:-1], com),
            inertia=np.append(self.inertia[:-1], self.inertia[-1] + own),
        )

    def perturbed(self, seed: int, scale: float) -> Arm:
        """An arm whose parameters are off by up to ``scale`` (relative): the modelling error."""
        checks.within("scale", scale, 0.0, 0.9)
        random = np.random.default_rng(seed)

        def off(values: Array) -> Array:
            return values * (1.0 + scale * random.uniform(-1.0, 1.0, self.n))

        return replace(
            self,
            mass=off(self.mass),
            com=off(self.com),
            inertia=off(self.inertia),
            friction=off(self.friction),
        )

    def inverse_dynamics(self, q: ArrayLike, qdot: ArrayLike, qddot: ArrayLike) -> Array:
        """Torque of equation (1) by recursion over the links, shape (n,) [N m]."""
        return planar.newton_euler(
            self.links,
            self.vector("q", q),
            self.vector("qdot", qdot),
            self.vector("qddot", qddot),
        )

    def end_effector(self, q: ArrayLike) -> Array:
        """Position and absolute angle of the tip, (x, y, angle) [m, m, rad]."""
        return planar.end_effector(self.links, self.vector("q", q))

    def points(self, q: ArrayLike) -> Array:
        """Positions of the joints and the tip, shape (n + 1, 2) [m]."""
        phi = np.cumsum(self.vector("q", q))
        steps = self.length[:, None] * np.column_stack([np.cos(phi), np.sin(phi)])
        return np.vstack([np.zeros(2), np.cumsum(steps, axis=0)])
