"""The search that fits a mechanism and its settings."""

from __future__ import annotations

import numpy as np

from kin_solvers import planar_kernels, platform_kernels
from kin_solvers.fast import FastSearch
from kin_solvers.mechanism import Mechanism
from kin_solvers.paper import PaperSearch
from kin_solvers.planar import PlanarSystem
from kin_solvers.platform import PlatformSystem
from kin_solvers.reduced import ReducedSearch
from kin_solvers.search import Search
from kin_solvers.settings import Settings
from kin_solvers.system import System

__all__ = ["make_search"]

#: The same for planar mechanisms, and for platforms.
PLANAR_TUNING = np.array([0.5, 1.6, 0.05, 0.95, 0.0])
#: Largest box of a platform's pose from which the many angles of its legs are looked for [rad, m].
PLATFORM_SIGMA = 0.02
PLATFORM_TUNING = np.array([0.5, 1.6, 0.05, 0.95, 0.0])


def make_search(mechanism: Mechanism, system: System, settings: Settings) -> Search:
    """The search that fits a mechanism and its settings."""
    if settings.method == "paper":
        return PaperSearch(mechanism, system, settings.sigma, settings.rho)
    planar = PlanarSystem.of(system)
    if planar is not None:
        return ReducedSearch(
            planar, planar_kernels.search, PLANAR_TUNING, settings.sigma, settings.rho
        )
    platform = PlatformSystem.of(system)
    if platform is not None:
        return ReducedSearch(
            platform,
            platform_kernels.search,
            PLATFORM_TUNING,
            settings.sigma,
            settings.rho,
            PLATFORM_SIGMA,
        )
    return FastSearch(system, settings.sigma, settings.rho)
