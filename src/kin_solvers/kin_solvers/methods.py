"""The search that fits a mechanism and its settings."""

from __future__ import annotations

from kin_solvers.fast import FastSearch
from kin_solvers.mechanism import Mechanism
from kin_solvers.paper import PaperSearch
from kin_solvers.planar import PlanarSystem
from kin_solvers.platform import PlatformSystem
from kin_solvers.reduced import Reduced, ReducedSearch
from kin_solvers.search import Search
from kin_solvers.settings import Settings
from kin_solvers.system import System

__all__ = ["make_search"]


def make_search(mechanism: Mechanism, system: System, settings: Settings) -> Search:
    """The search that fits a mechanism and its settings."""
    if settings.method == "paper":
        return PaperSearch(mechanism, system, settings.sigma, settings.rho)
    reduced: Reduced | None = PlanarSystem.of(system) or PlatformSystem.of(system)
    if reduced is not None:
        return ReducedSearch(reduced, settings.sigma, settings.rho)
    return FastSearch(system, settings.sigma, settings.rho)
