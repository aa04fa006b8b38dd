"""Delta robots in batches: the kinematics, on whatever backend there is.

``Delta`` takes numpy arrays, CuPy arrays, or any array that speaks DLPack or the CUDA array
interface, and gives arrays of the same kind. Layout "soa" has the components first, (3, N); "aos"
has them last, (N, 3). A single robot is an array of shape (3,).
"""

from __future__ import annotations

from typing import Any

from gpu_kinematics.call import Array, Group
from gpu_kinematics.dispatch import Branch, Dispatcher
from gpu_kinematics.results import (
    Control,
    Forward,
    ForwardMotion,
    Inverse,
    InverseMotion,
    Jacobian,
    Measures,
)
from kin_core import checks

__all__ = ["Delta"]


class Delta(Dispatcher):
    """Kinematics of a batch of delta robots."""

    # -- positions

    def fk(
        self,
        angle: Array,
        *,
        platform: str = "down",
        layout: str | None = None,
        out: Array = None,
        status: Any = True,
    ) -> Forward:
        """Forward kinematics.

        Args:
            angle: Joint angles [rad], shape (3, ...) or (..., 3).
            platform: "down" for the platform below the elbows, "up" for the mirror solution.
            layout: "soa" or "aos"; the instance's by default.
            out: Array for the positions, of the kind and shape of ``angle``; may be ``angle``.
            status: False for no masks, or a uint16 array of the batch's shape for them.

        Returns:
            Positions [m], NaN where there is none, and status masks.
        """
        if out is None and (quick := self._quick("fk", angle, layout, status, (0, platform))):
            return Forward(*quick)
        opened = self._open("angle", angle, layout)
        groups = [opened.batch.group]
        found = self._compute("fk", opened, groups, {"out": out}, status, (0, platform))
        return Forward(*self._like(angle, found))

    def ik(
        self,
        position: Array,
        *,
        elbows: int = 0,
        layout: str | None = None,
        out: Array = None,
        status: Any = True,
    ) -> Inverse:
        """Inverse kinematics.

        Args:
            position: Platform positions [m], shape (3, ...) or (..., 3).
            elbows: Bit i set takes the inward elbow of arm i; 0 = all outward, 7 = all inward.
            layout: "soa" or "aos"; the instance's by default.
            out: Array for the angles, of the kind and shape of ``position``; may be ``position``.
            status: False for no masks, or a uint16 array of the batch's shape for them.

        Returns:
            Angles [rad] in [-pi, pi], NaN for an arm that cannot reach, and status masks.
        """
        if out is None and (quick := self._quick("ik", position, layout, status, (elbows, "down"))):
            return Inverse(*quick)
        opened = self._open("position", position, layout)
        groups = [opened.batch.group]
        found = self._compute("ik", opened, groups, {"out": out}, status, (elbows, "down"))
        return Inverse(*self._like(position, found))

    def fk_both(self, angle: Array, *, layout: str | None = None) -> Forward:
        """Both assemblies: the result of ``fk`` down and up, stacked along a new first axis."""
        parts = [self.fk(angle, platform=side, layout=layout) for side in ("down", "up")]
        return Forward(*(self._stack([p[i] for p in parts]) for i in range(2)))

    def ik_all(self, position: Array, *, layout: str | None = None) -> Inverse:
        """All eight elbow choices, stacked along a new first axis in the order of ``elbows``."""
        parts = [self.ik(position, elbows=elbows, layout=layout) for elbows in range(8)]
        return Inverse(*(self._stack([p[i] for p in parts]) for i in range(2)))

    # -- velocities

    def jacobian(
        self, angle: Array, *, platform: str = "down", layout: str | None = None
    ) -> Jacobian:
        """Positions and Jacobians dp/da at joint angles [rad]."""
        opened = self._open("angle", angle, layout)
        batch, _, order = opened
        outs = {"position": None, "jacobian": None}
        position, matrix, masks = self._compute(
            "jacobian", opened, [batch.group], outs, True, (0, platform)
        )
        shape = (3, 3, *batch.shape) if order == "soa" else (*batch.shape, 3, 3)
        return Jacobian(*self._like(angle, [position, matrix.reshape(shape), masks]))

    def measures(
        self, angle: Array, *, platform: str = "down", layout: str | None = None
    ) -> Measures:
        """Condition number and determinants at joint angles [rad]."""
        return self._measures("measures", "angle", angle, (0, platform), layout)

    def dexterity(self, position: Array, *, elbows: int = 0, layout: str | None = None) -> Measures:
        """Condition number and determinants at platform positions [m]."""
        return self._measures("dexterity", "position", position, (elbows, "down"), layout)

    def _measures(
        self, op: str, field: str, values: Array, branch: Branch, layout: str | None
    ) -> Measures:
        # Measures are rows of their own in either layout.
        opened = self._open(field, values, layout)._replace(order="soa")
        outs = {"measure": None}
        rows, masks = self._compute(op, opened, [opened.batch.group], outs, True, branch)
        return Measures(*self._like(values, [*rows, masks]))

    def forward_motion(
        self,
        angle: Array,
        rate: Array = None,
        rate2: Array = None,
        *,
        platform: str = "down",
        layout: str | None = None,
    ) -> ForwardMotion:
        """Platform motion from joint motion.

        Args:
            angle: Joint angles [rad].
            rate: Joint rates [rad/s]; None for zero.
            rate2: Joint accelerations [rad/s^2]; None for zero.
            platform: "down" or "up".
            layout: "soa" or "aos".
        """
        return ForwardMotion(
            *self._motion(
                "fk_motion",
                {"angle": angle, "rate": rate, "rate2": rate2},
                ("position", "velocity", "acceleration"),
                (0, platform),
                layout,
            )
        )

    def inverse_motion(
        self,
        position: Array,
        velocity: Array = None,
        acceleration: Array = None,
        *,
        elbows: int = 0,
        layout: str | None = None,
    ) -> InverseMotion:
        """Joint motion from platform motion.

        Args:
            position: Platform positions [m].
            velocity: Platform velocities [m/s]; None for zero.
            acceleration: Platform accelerations [m/s^2]; None for zero.
            elbows: As in ``ik``.
            layout: "soa" or "aos".
        """
        return InverseMotion(
            *self._motion(
                "ik_motion",
                {"position": position, "velocity": velocity, "acceleration": acceleration},
                ("angle", "rate", "rate2"),
                (elbows, "down"),
                layout,
            )
        )

    def _motion(
        self,
        op: str,
        given: dict[str, Array],
        outs: tuple[str, ...],
        branch: Branch,
        layout: str | None,
    ) -> list[Array]:
        """Position and two derivatives, from those of the other side."""
        (field, first), *others = given.items()
        opened = self._open(field, first, layout)
        groups = [opened.batch.group, *(self._beside(*other, opened) for other in others)]
        return self._like(
            first, self._compute(op, opened, groups, dict.fromkeys(outs), True, branch)
        )

    def control(
        self,
        angle: Array,
        target: Array,
        feedforward: Array = None,
        *,
        gain: float,
        max_rate: float,
        layout: str | None = None,
        out: Array = None,
    ) -> Control:
        """Computed velocity control: joint rates that bring each platform to its target.

        Args:
            angle: Measured joint angles [rad].
            target: Positions to reach [m].
            feedforward: Velocities of the targets [m/s]; None for zero.
            gain: Rate at which the position error decays [1/s].
            max_rate: Largest joint rate [rad/s]; all three are scaled together.
            layout: "soa" or "aos".
            out: Array for the rates.

        Returns:
            Joint rates [rad/s]: zero for a robot with bad input or no pose, and never such that
            a joint limit is passed (with steps shorter than 1 / gain).
        """
        opened = self._open("angle", angle, layout)
        batch = opened.batch
        law = (checks.positive("gain", gain), checks.positive("max_rate", max_rate))
        groups = [
            batch.group,
            self._beside("target", target, opened),
            self._beside("feedforward", feedforward, opened),
            Group(self._constant(law, batch.array.dtype), 1, 0),
        ]
        outs = {"out": out, "error": None}
        rate, error, masks = self._compute("control", opened, groups, outs, True, (0, "down"))
        return Control(*self._like(angle, [rate, error.reshape(batch.shape), masks]))
