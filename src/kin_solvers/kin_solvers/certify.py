"""What is proven of the boxes of a cover: solutions told apart, each in a box of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kin_core.task import Task
from kin_solvers.boxes import Boxes
from kin_solvers.fast import FastSearch
from kin_solvers.separate import FinerBoxes, Separated, separate
from kin_solvers.settings import Settings
from kin_solvers.system import System
from kin_solvers.turns import without_turns

__all__ = ["certify"]

Array = NDArray[np.float64]


def certify(
    system: System,
    lower: Array,
    upper: Array,
    settings: Settings,
    budget: int,
    task: Task,
) -> Separated:
    """Proofs, finer searches of clusters that resist, and empty clusters (mechanism's units)."""
    unit = system.unit

    def finer(low: Array, high: Array, sigma: float, limit: int) -> FinerBoxes:
        boxes = Boxes(low, high, np.zeros(len(low)))
        outcome = FastSearch(system, sigma, settings.rho).run(boxes, limit, task.flag)
        return FinerBoxes(
            outcome.found_lower,
            outcome.found_upper,
            outcome.left.lower,
            outcome.left.upper,
            outcome.counters.processed,
            outcome.counters.reductions,
        )

    parts = separate(system, lower * unit, upper * unit, settings.sigma, finer, budget, task)
    low, high = without_turns(parts.lower / unit, parts.upper / unit, system.cyclic)
    return replace(parts, lower=low, upper=high)
