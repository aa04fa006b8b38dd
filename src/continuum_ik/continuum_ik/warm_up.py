"""Work that makes every compiled kernel ready, so that the first request is as fast as the next."""

from __future__ import annotations

import numpy as np

from continuum_ik.demo import START, demo_path
from continuum_ik.pose import make_pose
from continuum_ik.robot import Load
from continuum_ik.solver import ContinuumSolver
from continuum_ik.sweep import sweep_workspace

__all__ = ["warm_up", "warm_up_first", "warm_up_more"]


def warm_up_first() -> None:
    """Compile what a stream of targets and single requests need, or load it from the cache."""
    trial = ContinuumSolver()
    trial.solve(make_pose(START))
    trial.run(demo_path()[:3])
    trial.solve(np.array([0.0, 0.02, 0.48, 0.0, 0.0, 0.0, 1.0]))
    trial.forward(trial.lengths)
    trial.analyse()
    trial.fold_margin()
    trial.shapes(3)


def warm_up_more() -> None:
    """Compile what batches, loads and sweeps of the workspace need, or load it from the cache."""
    trial = ContinuumSolver()
    trial.solve(make_pose(START))
    trial.solve_many(trial.pose[None], independent=True)
    trial.forward_many(trial.lengths[None])
    ContinuumSolver(trial.robot.with_load(Load(force=(0.0, 0.0, -1e-3))))
    near = np.array(START)
    sweep_workspace(trial, near, near + 0.01, (2, 1, 1), threads=1)


def warm_up() -> None:
    """Compile, or load from the cache, every kernel that a request may need."""
    warm_up_first()
    warm_up_more()


if __name__ == "__main__":
    warm_up()
