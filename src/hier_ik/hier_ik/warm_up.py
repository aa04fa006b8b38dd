"""Work that makes every compiled kernel ready, so that the first request is as fast as the next."""

from __future__ import annotations

from hier_ik.solver import Solver
from hier_ik.tower import tower

__all__ = ["warm_up"]


def warm_up() -> None:
    """Compile both solvers, or load them from the cache."""
    Solver(tower(1)).solve()
    Solver(tower(1), "flat_structured").solve()


if __name__ == "__main__":
    warm_up()
