"""How a mechanism is solved: resolution, method, budgets, engine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kin_core.checks import shown
from kin_solvers import border
from kin_solvers.errors import SettingsError

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """How to solve.

    Attributes:
        sigma: Side at which a box counts as solution [rad, m].
        rho: Volume ratio above which a box is split instead of reduced again.
        method: "fast" or "paper".
        threads: Worker threads; 0: as many as there are processors.
        max_boxes: Budget of boxes to process.
        max_bytes: Budget of memory for boxes [bytes].
        certify: Whether to certify isolated solutions.
        engine: "local", or "dask" for a cluster.
        scheduler: Address of the dask scheduler.
    """

    sigma: float = 0.1
    rho: float = 0.8
    method: str = "fast"
    threads: int = 1
    max_boxes: int = 50_000_000
    max_bytes: int = 1 << 30
    certify: bool = True
    engine: str = "local"
    scheduler: str = ""

    def __post_init__(self) -> None:
        sigma = border.number("sigma", self.sigma, SettingsError)
        if sigma <= 0.0:
            raise SettingsError("sigma", f"must be greater than zero, got {sigma}")
        if sigma < 1e-9:
            raise SettingsError("sigma", f"must be at least 1e-9, got {sigma}")
        rho = border.number("rho", self.rho, SettingsError)
        if not 0.0 < rho < 1.0:
            raise SettingsError("rho", f"must be between 0 and 1, got {rho}")
        border.choice("method", self.method, ("fast", "paper"))
        border.choice("engine", self.engine, ("local", "dask"))
        border.text("scheduler", self.scheduler, SettingsError)
        if not isinstance(self.certify, (bool, np.bool_)):
            raise SettingsError("certify", f"must be true or false, got {shown(self.certify)}")
        whole = {
            "threads": border.whole("threads", self.threads, 0, 256),
            "max_boxes": border.whole("max_boxes", self.max_boxes, 1),
            "max_bytes": border.whole("max_bytes", self.max_bytes, 1 << 12),
        }
        for name, value in {"sigma": sigma, "rho": rho, **whole}.items():
            object.__setattr__(self, name, value)  # numpy's numbers become Python's
