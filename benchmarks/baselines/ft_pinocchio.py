"""The planar arm in pinocchio: what dynamics are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from ft_controller import Arm

__all__ = ["pinocchio_model"]


def pinocchio_model(arm: Arm) -> tuple[Any, Any]:
    """The same arm in pinocchio."""
    model = pin.Model()
    parent = 0
    for i in range(arm.n):
        placement = pin.SE3.Identity()
        if i:
            placement.translation = np.array([arm.length[i - 1], 0.0, 0.0])
        joint = model.addJoint(parent, pin.JointModelRZ(), placement, f"joint_{i}")
        spin = np.diag([0.0, arm.inertia[i], arm.inertia[i]])
        body = pin.Inertia(arm.mass[i], np.array([arm.com[i], 0.0, 0.0]), spin)
        model.appendBodyToJoint(joint, body, pin.SE3.Identity())
        parent = joint
    model.gravity.linear = np.array([0.0, -arm.gravity, 0.0])
    return model, model.createData()
