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

__all__ = ["warm_up", "warm_up_first", "warm_up_more"]


def _trial(name: str) -> None:
    found = solve(library.get(name), Settings(sigma=0.5))
    found.components  # noqa: B018
    found.refine(1)


def warm_up_first(threads: int = 1) -> None:
    """Compile what single loops and arms need, or load it from the cache."""
    _trial("bennett")
    solve_all_ik(library.get("puma560"), None, Settings(threads=threads))


def warm_up_more() -> None:
    """Compile what planar mechanisms, platforms, paths and the paper's method need, or load it."""
    for name in ("scara", "three_rpr", "stewart"):
        _trial(name)
    # What arcs between the ends of ranges need, and the paper's method.
    equations = Equations(System.of(library.get("bennett")))
    equations.pinned(np.zeros(4), np.eye(4)[0], 0.5)
    solve(library.get("bennett"), Settings(sigma=0.5, method="paper", max_boxes=10))
    arm = library.get("puma560")
    solve_path(arm, np.array([arm.target] * 2))


def warm_up(threads: int = 1) -> None:
    """Compile the kernels of every method, or load them from the cache."""
    warm_up_first(threads)
    warm_up_more()


if __name__ == "__main__":
    warm_up()
