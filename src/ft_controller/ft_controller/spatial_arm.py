"""Spatial serial arms from a URDF."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ft_controller import dynamics, spatial
from ft_controller.errors import ArmError, TooLarge, raising
from ft_controller.records import Array, Records
from ft_controller.serial_arm import SerialArm
from kin_core import checks
from kin_core.inertia import Body, Inertia, moving_bodies
from kin_core.rotations import exp_so3, transform
from kin_core.urdf import Urdf, load_urdf

__all__ = ["SpatialArm"]

_GRAVITY = (0.0, 0.0, -9.81)
_MOMENTS = {
    "ixx": (0, 0),
    "ixy": (0, 1),
    "ixz": (0, 2),
    "iyy": (1, 1),
    "iyz": (1, 2),
    "izz": (2, 2),
}


@dataclass(frozen=True, eq=False)
class SpatialArm(SerialArm):
    """A serial arm of joints that turn or slide in space, with its limits.

    Units are rad, rad/s and N m for joints that turn; m, m/s and N for joints that slide.

    Attributes:
        base: Name of the first link.
        joints: Names of the joints, base first.
        links: Its bodies for the kernels, shape (n,), of :data:`~ft_controller.spatial.LINK`.
        lower: Position limits, shape (n,); minus infinity where there is none.
        upper: Position limits, shape (n,).
        speed: Velocity limits, shape (n,); infinite where there is none.
        effort: Torque limits, shape (n,); infinite where there is none.
        tip: Transform from the last body's frame to the tip's, shape (4, 4).
    """

    base: str
    joints: tuple[str, ...]
    links: Records
    lower: Array
    upper: Array
    speed: Array
    effort: Array
    tip: Array

    @classmethod
    @raising(ArmError)
    def from_urdf(
        cls,
        source: str | Path | Urdf,
        *,
        base: str = "",
        tip: str = "",
        held: Collection[str] = (),
        gravity: ArrayLike = _GRAVITY,
        damping: ArrayLike | None = None,
        friction: ArrayLike | None = None,
    ) -> SpatialArm:
        """Read an arm.

        Args:
            source: The XML text, a file, or what was read of it.
            base: First link; empty: the root.
            tip: Last link; empty: the one end that there is.
            held: Joints that count as fixed at zero, such as those of a gripper.
            gravity: Acceleration of a body that falls, in the base frame, shape (3,) [m/s^2].
            damping: Viscous friction instead of the file's, one or n.
            friction: Coulomb friction instead of the file's, one or n.

        Raises:
            ArmError: What is wrong, with the name of the link or the joint.
            TooLarge: More joints than this package is built for.
        """
        urdf = source if isinstance(source, Urdf) else load_urdf(source)
        bodies, end = moving_bodies(urdf, base, tip, held)
        if len(bodies) > spatial.MAX_JOINTS:
            raise TooLarge(f"joints: {len(bodies)} are more than the limit of {spatial.MAX_JOINTS}")
        links = np.zeros(len(bodies), spatial.LINK)
        for link, body in zip(links, bodies, strict=True):
            _write_body(link, body)
        links["gx"], links["gy"], links["gz"] = checks.shape("gravity", gravity, (3,))
        made = cls(
            base=base or urdf.root,
            joints=tuple(body.joint.name for body in bodies),
            links=links,
            lower=np.array([body.joint.lower for body in bodies]),
            upper=np.array([body.joint.upper for body in bodies]),
            speed=np.array([body.joint.velocity for body in bodies]),
            effort=np.array([body.wear.effort for body in bodies]),
            tip=end,
        )
        for field, name, values in (
            ("friction", "damping", damping),
            ("coulomb", "friction", friction),
        ):
            if values is not None:
                links[field] = made.each(name, values, signed=False)
        return made

    @property
    def own_inertia(self) -> Array:
        """Inertia of each body alone about its own joint, shape (n,); mass, where it slides."""
        own = np.empty(self.n)
        for i, link in enumerate(self.links):
            u = np.array([link["ux"], link["uy"], link["uz"]])
            body = self.body(i)
            arm = np.cross(u, body.com)
            turning = u @ body.tensor @ u + body.mass * arm @ arm
            own[i] = body.mass if link["slides"] else turning
        return own

    @property
    def falls(self) -> bool:
        """Whether gravity moves it."""
        return any(bool(self.links[name].any()) for name in ("gx", "gy", "gz"))

    def body(self, i: int) -> Inertia:
        """All that moves with joint i, in the frame of its link."""
        link, tensor = self.links[i], np.empty((3, 3))
        for name, (j, k) in _MOMENTS.items():
            tensor[j, k] = tensor[k, j] = link[name]
        com = np.array([link["cx"], link["cy"], link["cz"]])
        return Inertia(float(link["mass"]), com, tensor)

    def loaded(
        self, mass: float, com: ArrayLike = (0.0, 0.0, 0.0), tensor: ArrayLike | None = None
    ) -> SpatialArm:
        """The arm with a payload at its tip.

        Args:
            mass: Of the payload [kg].
            com: Its centre of mass in the tip's frame, shape (3,) [m].
            tensor: Its inertia about that, shape (3, 3) [kg m^2]; default: a point.
        """
        with raising(ArmError):
            checks.within("payload mass", mass, 0.0, 1e6)
            centre = checks.shape("payload com", com, (3,))
            spin = np.zeros((3, 3)) if tensor is None else checks.shape("tensor", tensor, (3, 3))
        links = self.links.copy()
        payload = Inertia(mass, centre, spin).placed(self.tip)
        _write_inertia(links[-1], self.body(self.n - 1) + payload)
        return replace(self, links=links)

    def perturbed(self, seed: int, scale: float) -> SpatialArm:
        """An arm whose parameters are off by up to ``scale`` (relative): the modelling error."""
        checks.within("scale", scale, 0.0, 0.9)
        random = np.random.default_rng(seed)
        links = self.links.copy()
        together = (
            ("mass",),
            ("cx", "cy", "cz"),
            tuple(_MOMENTS),  # the principal axes stay
            ("friction",),
            ("coulomb",),
        )
        for names in together:
            factor = 1.0 + scale * random.uniform(-1.0, 1.0, self.n)
            for name in names:
                links[name] *= factor
        return replace(self, links=links)

    def inverse_dynamics(self, q: ArrayLike, qdot: ArrayLike, qddot: ArrayLike) -> Array:
        """Torque of equation (1), shape (n,) [N m or N]."""
        inertia, bias = dynamics.inertia_and_bias(
            self.links, self.vector("q", q), self.vector("qdot", qdot)
        )
        return inertia @ self.vector("qddot", qddot) + bias

    def pose(self, q: ArrayLike) -> Array:
        """Transform from the tip to the base, shape (4, 4)."""
        return self._frames(q)[-1]

    def points(self, q: ArrayLike) -> Array:
        """Positions of the joints and the tip, shape (n + 1, 3) [m]."""
        return np.array([frame[:3, 3] for frame in self._frames(q)])

    def _frames(self, q: ArrayLike) -> list[Array]:
        """Transforms from the bodies and the tip to the base."""
        frames, pose = [], np.eye(4)
        for link, angle in zip(self.links, self.vector("q", q), strict=True):
            turn = np.array([[link[f"r{i}{j}"] for j in range(3)] for i in range(3)])
            u = angle * np.array([link["ux"], link["uy"], link["uz"]])
            pose = pose @ transform(turn, np.array([link["px"], link["py"], link["pz"]]))
            pose = pose @ (transform(np.eye(3), u) if link["slides"] else _rotation(u))
            frames.append(pose)
        return [*frames, pose @ self.tip]


def _rotation(u: Array) -> Array:
    return transform(exp_so3(u), np.zeros(3))


def _write_body(link: Any, body: Body) -> None:
    """One body and its joint as a record for the kernels."""
    link["slides"] = body.joint.type == "prismatic"
    for i in range(3):
        for j in range(3):
            link[f"r{i}{j}"] = body.placement[i, j]
    link["px"], link["py"], link["pz"] = body.placement[:3, 3]
    link["ux"], link["uy"], link["uz"] = body.joint.axis
    link["friction"], link["coulomb"] = body.wear.damping, body.wear.friction
    _write_inertia(link, body.inertia)


def _write_inertia(link: Any, inertia: Inertia) -> None:
    link["mass"] = inertia.mass
    link["cx"], link["cy"], link["cz"] = inertia.com
    for name, where in _MOMENTS.items():
        link[name] = inertia.tensor[where]
