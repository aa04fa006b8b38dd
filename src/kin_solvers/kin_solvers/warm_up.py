"""Work that makes every compiled kernel ready, so that the first request is as fast as the next."""

from __future__ import annotations

import numpy as np

from kin_solvers import library
from kin_solvers.all_ik import solve_all_ik
from kin_solvers.equations import Equations
from kin_solvers.paths import solve_path
from kin_solvers.settings import Settings
from kin_solvers.solve import solve
from kin_solvers.system import System

__all__ = ["warm_up"]


def warm_up(threads: int = 1) -> None:
    """Compile the kernels of every method, or load them from the cache."""
    for name in ("bennett", "scara", "three_rpr", "stewart"):
        found = solve(library.get(name), Settings(sigma=0.5))
        found.components  # noqa: B018
        found.refine(1)
    # What arcs between the ends of ranges need, and the paper's method.
    equations = Equations(System.of(library.get("bennett")))
    equations.pinned(np.zeros(4), np.eye(4)[0], 0.5)
    solve(library.get("bennett"), Settings(sigma=0.5, method="paper", max_boxes=10))
    arm = library.get("puma560")
    solve_all_ik(arm, None, Settings(threads=threads))
    solve_path(arm, np.array([arm.target] * 2))


if __name__ == "__main__":
    warm_up()
