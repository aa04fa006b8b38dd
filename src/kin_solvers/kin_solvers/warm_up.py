"""Work that makes every compiled kernel ready, so that the first request is as fast as the next."""

from __future__ import annotations

from kin_solvers import library
from kin_solvers.all_ik import solve_all_ik
from kin_solvers.settings import Settings
from kin_solvers.solve import solve

__all__ = ["warm_up"]


def warm_up(threads: int = 1) -> None:
    """Compile the kernels of every method, or load them from the cache."""
    for name in ("bennett", "scara", "three_rpr", "stewart"):
        found = solve(library.get(name), Settings(sigma=0.5))
        found.components  # noqa: B018
        found.refine(1)
    # An arc between two ends of ranges, and the paper's method.
    arc = library.get("bennett").with_ranges({"theta1": (0.5, 0.53)})
    solve(arc, Settings(sigma=0.1)).components  # noqa: B018
    solve(library.get("bennett"), Settings(sigma=0.5, method="paper", max_boxes=10))
    solve_all_ik(library.get("puma560"), None, Settings(threads=threads))
