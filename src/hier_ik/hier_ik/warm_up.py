"""Work that makes every compiled kernel ready, so that the first request is as fast as the next."""

from __future__ import annotations

import numpy as np

from hier_ik.elements import frame
from hier_ik.linkage import Linkage
from hier_ik.loop_closer import LoopCloser
from hier_ik.solver import Solver
from hier_ik.tower import tower
from kin_core.rotations import matrix_to_quaternion, quaternion_to_matrix, transform

__all__ = ["warm_up", "warm_up_closer"]


def warm_up() -> None:
    """Compile both solvers, or load them from the cache."""
    Solver(tower(1)).solve()
    Solver(tower(1), "flat_structured").solve()
    # What poses in messages and files are read and written with.
    rotation = quaternion_to_matrix(np.array([0.0, 0.0, 0.0, 1.0]))
    transform(rotation, np.zeros(3))
    matrix_to_quaternion(rotation)


def warm_up_closer() -> None:
    """Compile the steps of the loop closer, or load them from the cache."""
    linkage = Linkage("four bars")
    for name in ("ground", "left", "right", "coupler"):
        linkage.add_link(name)
    linkage.add_joint("1", "revolute", "ground", "left", closure=False, value=1.2)
    linkage.add_joint(
        "2", "revolute", "left", "coupler", xyz=(0.5, 0, 0), closure=False, value=-1.2
    )  # fmt: skip
    linkage.add_joint("3", "revolute", "ground", "right", xyz=(1, 0, 0), closure=False, value=1.2)
    linkage.add_joint(
        "4", "revolute", "coupler", "right", xyz=(1, 0, 0), child_origin=frame((0.5, 0, 0)),
        closure=True,
    )  # fmt: skip
    closer = LoopCloser(linkage, ["1"])
    closer.close([1.3], [0.1])
    closer.follow([[1.2], [1.3]])
    closer.actuator_torques(np.zeros(3))
    closer.values()


if __name__ == "__main__":
    warm_up()
    warm_up_closer()
