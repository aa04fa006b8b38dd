"""Work that makes every compiled kernel ready, so that the first request is as fast as the next."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ft_controller import voting
from ft_controller.arm import Arm
from ft_controller.follower import _take_down
from ft_controller.planner import plan
from ft_controller.plant import Plant
from ft_controller.replica_group import warm
from ft_controller.serial_arm import SerialArm
from ft_controller.trajectory import Trajectory

__all__ = ["warm_up", "warm_up_controller", "warm_up_plant"]

Array = NDArray[np.float64]


def warm_up_controller(arm: SerialArm, lower: Array, upper: Array) -> None:
    """Compile what the processors, the voter and the planner run, or load it.

    Args:
        arm: The arm that is controlled.
        lower: Lower position limits, shape (n,) [rad].
        upper: Upper position limits, shape (n,) [rad].
    """
    warm(arm)
    voting.has(1, 0)
    posture = np.clip(np.full(arm.n, 0.1), lower, upper)
    if isinstance(arm, Arm):
        plan(arm, posture, arm.end_effector(posture)[:2]).trajectory.sample(0.0)
    else:
        Trajectory.rest(posture).sample(0.0)
    _take_down(np.zeros((2, arm.n)), np.zeros(arm.n), np.ones(arm.n), 1.0, 1e-3)


def warm_up_plant(plant: Plant) -> None:
    """Compile the simulated arm, or load it; the arm is not where it was afterwards."""
    free = np.zeros(plant.arm.n)
    plant.step(free, 1e-3)
    plant.step(free, 1e-3, braking=free + 1.0)
    plant.lock(0, True)
    plant.lock(0, False)


def warm_up() -> None:
    """Compile the controller and the simulation of the default arm, or load them."""
    arm = Arm.four_link()
    limit = np.full(arm.n, math.pi)
    warm_up_controller(arm, -limit, limit)
    warm_up_plant(Plant(arm.perturbed(1, 0.05)))


if __name__ == "__main__":
    warm_up()
