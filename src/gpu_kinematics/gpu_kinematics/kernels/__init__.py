"""The one kernel text: every formula of this package, written once, and the kernels made of it.

``gpu_kinematics.render`` turns the text into numba modules and into CUDA C, in float64 and in
float32; ``language`` says what the text may use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

from gpu_kinematics.kernels.control import control
from gpu_kinematics.kernels.moves import plan, trajectory
from gpu_kinematics.kernels.positions import fk, ik
from gpu_kinematics.kernels.records import (
    Joints,
    Matrix,
    Measures,
    Options,
    Path,
    Robot,
    Vector,
)
from gpu_kinematics.kernels.velocities import (
    dexterity,
    fk_motion,
    ik_motion,
    jacobian,
    measures,
)

__all__ = ["OPS", "Op", "leaves", "rows"]


def leaves(kind: type, name: str) -> dict[str, type]:
    """The numbers of a record by name, such as ``p_x``, with their types; a number is its own."""
    if kind in (float, bool):
        return {name: kind}
    found: dict[str, type] = {}
    for field, inner in get_type_hints(kind).items():
        found |= leaves(inner, f"{name}_{field}")
    return found


def rows(kind: type) -> int:
    """Number of rows of an array that holds a record for each robot."""
    return len(leaves(kind, ""))


@dataclass(frozen=True)
class Op:
    """A kernel: a function of the text, and what it reads and writes as groups of rows.

    Attributes:
        function: Its parameters name the groups that it reads, of ``robot``, ``options`` and its
            own.
        outputs: Group name to its record, in the order of the function's results.
        status: Whether the function's last result is a status mask.
        fast: Whether the CPU gets a path without scratch for the plain layout.
    """

    function: Callable[..., Any]
    outputs: Mapping[str, type]
    status: bool = True
    fast: bool = False

    @property
    def inputs(self) -> dict[str, type]:
        """Group name to its record, in the order of a call."""
        hints = get_type_hints(self.function)
        del hints["return"]
        return {"robot": Robot, "options": Options} | hints


_PLATFORM: dict[str, type] = {"position": Vector, "velocity": Vector, "acceleration": Vector}
_JOINTS: dict[str, type] = {"angle": Joints, "rate": Joints, "rate2": Joints}

#: The kernels.
OPS: dict[str, Op] = {
    "fk": Op(fk, {"position": Vector}, fast=True),
    "ik": Op(ik, {"angle": Joints}, fast=True),
    "jacobian": Op(jacobian, {"position": Vector, "jacobian": Matrix}),
    "measures": Op(measures, {"measure": Measures}),
    "fk_motion": Op(fk_motion, _PLATFORM),
    "ik_motion": Op(ik_motion, _JOINTS),
    "dexterity": Op(dexterity, {"measure": Measures}),
    "plan": Op(plan, {"path": Path, "duration": float}, status=False),
    "trajectory": Op(trajectory, _PLATFORM | _JOINTS),
    "control": Op(control, {"rate": Joints, "error": float}),
}
