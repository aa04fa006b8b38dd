"""Work that makes every compiled kernel ready, so that the first request is as fast as the next."""

from __future__ import annotations

import numpy as np

from hier_ik.solver import Solver
from hier_ik.tower import tower
from kin_core.rotations import matrix_to_quaternion, quaternion_to_matrix, transform

__all__ = ["warm_up"]


def warm_up() -> None:
    """Compile both solvers, or load them from the cache."""
    Solver(tower(1)).solve()
    Solver(tower(1), "flat_structured").solve()
    # What poses in messages and files are read and written with.
    rotation = quaternion_to_matrix(np.array([0.0, 0.0, 0.0, 1.0]))
    transform(rotation, np.zeros(3))
    matrix_to_quaternion(rotation)


if __name__ == "__main__":
    warm_up()
