"""Solving across machines with dask.distributed, for searches that outgrow one machine.

The first stretch runs here; then each round shares the open boxes out in interleaved chunks. A
chunk comes back after a number of boxes with its leftovers, which are shared out again; the boxes
of a worker that dies are solved again by another, because dask runs the lost task anew.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from kin_common.task import Task
from kin_solvers.errors import SettingsError
from kin_solvers.mechanism import Mechanism
from kin_solvers.solve import Boxes, Outcome, Search, Settings, make_search, run_rounds
from kin_solvers.system import System

__all__ = ["run_on_cluster"]

#: Work of one task [s]; less drowns in the 2 ms that a task costs.
TASK_TIME = 0.08


def solve_chunk(
    mechanism: Mechanism, settings: Settings, boxes: Boxes, limit: int
) -> tuple[Outcome, float]:
    """Run one chunk on a worker; also returns the time it took [s]."""
    started = time.perf_counter()
    search = make_search(mechanism, System.of(mechanism), settings)
    outcome = search.run(boxes, limit, np.zeros(1, dtype=np.int64))
    return outcome, time.perf_counter() - started


def run_on_cluster(
    search: Search, mechanism: Mechanism, pending: Boxes, settings: Settings, task: Task
) -> tuple[Outcome, str]:
    """Solve on the cluster behind ``settings.scheduler``."""
    from distributed import Client

    if not settings.scheduler:
        raise SettingsError("scheduler", "must be the address of a dask scheduler")
    try:
        client = Client(settings.scheduler, timeout=10, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise SettingsError(
            "scheduler", f"{settings.scheduler!r} does not answer ({error})"
        ) from None
    with client:
        return run_rounds(
            search, pending, settings, task, _Runner(client, mechanism, settings, task)
        )


class _Runner:
    """Runs chunks on the cluster, and learns how many boxes make a task of ``TASK_TIME``."""

    def __init__(self, client: Any, mechanism: Mechanism, settings: Settings, task: Task) -> None:
        self.client = client
        self.mechanism = mechanism
        self.settings = settings
        self.task = task
        self.per_box = 3e-5

    def __call__(self, chunks: list[Boxes], limit: int) -> list[Outcome]:
        """Run the chunks; when the task is stopped, those not begun come back untouched."""
        limit = max(1, min(limit * 8, int(TASK_TIME / self.per_box)))
        futures = [
            self.client.submit(
                solve_chunk, self.mechanism, self.settings, chunk, limit, pure=False, retries=3
            )
            for chunk in chunks
        ]
        outcomes = []
        boxes, spent = 0, 0.0
        for chunk, future in zip(chunks, futures, strict=True):
            while not self.task.stopped and not future.done():
                time.sleep(0.002)
            if future.status == "finished":
                outcome, seconds = future.result()
                boxes += outcome.counters.processed
                spent += seconds
                outcomes.append(outcome)
            elif self.task.stopped:
                future.cancel()
                outcomes.append(_untouched(chunk))
            else:
                outcomes.append(future.result())  # raises what the worker raised
        if boxes:
            self.per_box = max(1e-7, spent / boxes)
        return outcomes


def _untouched(chunk: Boxes) -> Outcome:
    from kin_solvers.manifold import Counters

    none = np.empty((0, *chunk.lower.shape[1:]))
    return Outcome(none, none, chunk, Counters(), 0.0)
