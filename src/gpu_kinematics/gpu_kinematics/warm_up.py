"""Work that makes every compiled kernel ready, so that the first request is as fast as the next."""

from __future__ import annotations

import numpy as np

from gpu_kinematics import intrinsics  # noqa: F401 (rendered kernels are made from it)
from gpu_kinematics.delta import Delta
from gpu_kinematics.fleet import DemoFleet
from gpu_kinematics.geometry import Geometry, Limits
from gpu_kinematics.kernels import OPS
from gpu_kinematics.trajectory import Fleet, Move
from gpu_kinematics.workspace import map_workspace

__all__ = ["warm_up"]


def warm_up(delta: Delta) -> None:
    """Compile what messages and requests need at once, or load it from the cache."""
    delta.warm(("fk", "ik", "jacobian", "measures", "fk_motion", "ik_motion"))
    map_workspace(delta, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1), (2, 2, 2))
    at = np.zeros((3, 1))
    move = Move(kind="straight", max_velocity=1.0, max_acceleration=10.0, max_jerk=1000.0)
    Fleet(delta, at, at + 0.01, move, layout="soa").sample(np.zeros(2))


def _warm_up_all() -> None:
    """Compile every operation of the default robot, with and without limits, and the demo."""
    geometry = Geometry(0.0105, 0.040, 0.068)
    for limits in (None, Limits(-0.8, 1.4)):
        delta = Delta(geometry, limits, backend="cpu", threads=1)
        warm_up(delta)
        delta.warm(tuple(OPS))
    for shape in ((3,), (3, 1)):
        for read_only in (False, True):  # what comes in messages is not to be written to
            batch = np.zeros(shape)
            batch.flags.writeable = not read_only
            for status in (True, False):
                delta.fk(batch, status=status)
    move = Move(kind="adept_cycle", max_velocity=1.0, max_acceleration=10.0, max_jerk=1000.0)
    DemoFleet(delta, 4, 0.3, move).at(0.0)


if __name__ == "__main__":
    _warm_up_all()
