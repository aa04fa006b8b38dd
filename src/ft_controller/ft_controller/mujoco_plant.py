"""The simulated arm in MuJoCo, which loads the same URDF: a plant that nobody here wrote.

MuJoCo reads inertias, limits, damping and dry friction of the file itself. Its friction sticks, its
stops are springs, and what has a ``<collision>`` of simple shape can be touched: that is what the
controller does not know. Needs the extra ``mujoco``.
"""

from __future__ import annotations

import copy
import math
from operator import itemgetter
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import SubElement, tostring

import numpy as np
from numpy.typing import ArrayLike

from ft_controller.errors import ArmError
from ft_controller.plant import Plant
from ft_controller.records import Array
from ft_controller.serial_arm import SerialArm
from ft_controller.spatial_arm import SpatialArm
from kin_core import checks
from kin_core.rotations import matrix_to_quaternion
from kin_core.urdf import Urdf, load_urdf

__all__ = ["MujocoPlant"]

_INERTIA = itemgetter("mass", "cx", "cy", "cz", "ixx", "ixy", "ixz", "iyy", "iyz", "izz")
#: Time in which a jammed joint is brought back to where it jammed, and one that sticks to rest [s].
_STIFF = 0.004
#: Share of the creep of joints that stick which friction takes away.
_HARD = 0.9999


class MujocoPlant(Plant):
    """An arm of a URDF that MuJoCo moves; see :class:`~ft_controller.plant.Plant`.

    Attributes:
        model: MuJoCo's model.
        data: MuJoCo's state.
    """

    def __init__(
        self, source: str | Path | Urdf, nominal: SpatialArm, arm: SerialArm, **options: Any
    ) -> None:
        """Load the URDF and put the arm somewhere.

        Args:
            source: The URDF that ``nominal`` was read from.
            nominal: The arm of the file: which joints move, and gravity.
            arm: The true parameters; those that differ from ``nominal`` are written over MuJoCo's.
            options: As for :class:`~ft_controller.plant.Plant`.
        """
        try:
            import mujoco
        except ImportError:
            raise ArmError("engine", "mujoco is not installed: pip install mujoco") from None
        self._mujoco = mujoco
        urdf = source if isinstance(source, Urdf) else load_urdf(source)
        try:
            spec = mujoco.MjSpec.from_string(_readable(urdf, nominal))
            for name in nominal.joints:  # closed when the joint jams
                lock = spec.add_equality(name=name, name1=name)
                lock.type, lock.active = mujoco.mjtEq.mjEQ_JOINT, False
                lock.objtype, lock.solref = mujoco.mjtObj.mjOBJ_JOINT, [_STIFF, 1.0]
            self.model = model = spec.compile()
        except ValueError as error:
            raise ArmError("engine", f"MuJoCo does not take the arm: {error}") from None
        self.data = mujoco.MjData(model)
        # As they come, joints that stick creep by tenths of a radian per second.
        model.dof_solref[:, 0], model.dof_solimp[:, :2] = _STIFF, _HARD
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        base = np.eye(3)
        for joint in urdf.chain(urdf.root, nominal.base):
            base = base @ joint.origin[:3, :3]
        model.opt.gravity = base @ [nominal.links[0][name] for name in ("gx", "gy", "gz")]
        joints = [model.joint(name) for name in nominal.joints]
        self._dof = np.array([joint.dofadr[0] for joint in joints])
        self._body = np.array([joint.bodyid[0] for joint in joints])
        self._id = np.array([joint.id for joint in joints])
        self._known = nominal
        super().__init__(arm, **options)
        self.set_arm(arm)

    def set_arm(self, arm: SerialArm) -> None:
        """Go on with other masses, inertias and friction, as those of an arm with a payload."""
        if not isinstance(arm, SpatialArm):
            raise ArmError("arm", "must be a spatial arm")
        model = self.model
        for i, body in enumerate(self._body):
            if _INERTIA(arm.links[i]) == _INERTIA(self._known.links[i]):
                continue
            inertia = arm.body(i)
            moments, axes = np.linalg.eigh(inertia.tensor)
            axes[:, 2] *= np.linalg.det(axes)  # no reflection
            x, y, z, w = matrix_to_quaternion(np.ascontiguousarray(axes))
            model.body_mass[body], model.body_ipos[body] = inertia.mass, inertia.com
            model.body_inertia[body], model.body_iquat[body] = moments, (w, x, y, z)
        model.dof_damping[self._dof] = arm.links["friction"]
        model.dof_frictionloss[self._dof] = arm.links["coulomb"]
        self.arm = self._known = arm
        self._mujoco.mj_setConst(model, self.data)

    def set_limits(self, lower: ArrayLike, upper: ArrayLike) -> None:
        """Change the joint limits; a joint that is outside is pushed back."""
        super().set_limits(lower, upper)
        self.model.jnt_limited[self._id] = np.isfinite(self.lower) & np.isfinite(self.upper)
        self.model.jnt_range[self._id] = np.clip(
            np.column_stack([self.lower, self.upper]), -1e9, 1e9
        )

    def lock(self, joint: int, locked: bool = True) -> None:
        """Jam a joint where it is, or free it."""
        super().lock(joint, locked)
        self.model.eq_data[joint, 0] = self.q[joint]
        self.data.eq_active[joint] = locked

    def _move(self, tau: Array, dt: float, braking: Array) -> None:
        model, data = self.model, self.data
        steps = max(1, math.ceil(checks.within("dt", dt, 0.0, 10.0) / self._substep - 1e-9))
        model.opt.timestep = max(dt / steps, 1e-9)
        model.dof_damping[self._dof] = self.arm.links["friction"] + braking
        data.qpos[self._dof], data.qvel[self._dof] = self.q, self.qdot
        data.qfrc_applied[self._dof] = np.where(self.locked, 0.0, tau)
        self._mujoco.mj_step(model, data, steps)
        self.q[:], self.qdot[:] = data.qpos[self._dof], data.qvel[self._dof]
        self.stopped[:] = (self.q <= self.lower) | (self.q >= self.upper)


def _readable(urdf: Urdf, arm: SpatialArm) -> str:
    """The URDF as MuJoCo is to read it: no pictures, no meshes, and no joint but the arm's."""
    robot = copy.deepcopy(urdf.element)
    for link in robot.findall("link"):
        for part in [*link.findall("visual"), *link.findall("collision")]:
            if part.tag == "visual" or part.find("geometry/mesh") is not None:
                link.remove(part)
    for joint in robot.findall("joint"):
        if joint.get("name") not in arm.joints:
            joint.set("type", "fixed")
    for old in robot.findall("mujoco"):
        robot.remove(old)
    compiler = SubElement(SubElement(robot, "mujoco"), "compiler")
    compiler.set("fusestatic", "true")
    compiler.set("inertiafromgeom", "false")
    return tostring(robot, encoding="unicode")
