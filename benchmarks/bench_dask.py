"""Cuik on a dask cluster of this machine against one thread: the same bits, and the price of it."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.harness import Bench
from kin_solvers import Manifold, Mechanism, Settings, dask_engine, loop_from_dh, solve

#: Workers of each cluster that is measured.
WORKERS = (1, 2)
#: Time that the work should take in one thread of this process [s].
WORK_TIME = 60.0


def ring() -> Mechanism:
    """A ring of eight atoms, as in cyclo-octane: a surface of conformations."""
    return loop_from_dh("ring", np.zeros(8), np.full(8, np.radians(67.3)), np.full(8, 1.54))


def sigma_for(mechanism: Mechanism, seconds: float) -> float:
    """Side of the boxes of a surface that one thread finds in about so many seconds.

    The number of boxes of a surface grows with the square of their number along an edge.
    """
    sigma = 0.08
    solve(mechanism, Settings(sigma=0.15, certify=False))  # loads the kernels
    start = time.perf_counter()
    solve(mechanism, Settings(sigma=sigma, certify=False))
    return sigma * min(1.0, (time.perf_counter() - start) / seconds) ** 0.5


@contextlib.contextmanager
def cluster(workers: int) -> Iterator[Any]:
    """Workers with one thread each, in processes of their own."""
    from distributed import LocalCluster

    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            local_directory=folder,
        ) as made,
    ):
        yield made


def main(bench: Bench) -> None:
    """Work of about a minute in one thread, here and on clusters in turn."""
    dask_engine.ADMIT_TIME = dask_engine.REACH_TIME = 60.0  # the machine may be busy
    mechanism = ring()
    given = "0.3" if bench.quick else os.environ.get("CUIK_DASK_SIGMA")
    sigma = float(given) if given else sigma_for(mechanism, WORK_TIME)
    bench.say(f"sigma {sigma:g}; one thread here, then clusters of {WORKERS} workers")
    answers: dict[str, Manifold] = {}

    def run(key: str, scheduler: str = "", side: float = sigma) -> None:
        engine = "dask" if scheduler else "local"
        settings = Settings(
            sigma=side, certify=False, engine=engine, scheduler=scheduler, max_bytes=1 << 32
        )
        answers[key] = solve(mechanism, settings)
        bench.say(f"{key}: {len(answers[key].lower)} boxes")

    with contextlib.ExitStack() as stack:
        places = {n: stack.enter_context(cluster(n)).scheduler_address for n in WORKERS}
        for n, place in places.items():
            run(str(n), place, 0.35)  # workers load the kernels
        variants: dict[str, Any] = {"local": lambda: run("local")}
        for n, place in places.items():
            variants[f"{n}"] = lambda n=n, place=place: run(str(n), place)
        samples = bench.interleave(variants, repeats=1, warmup=0)
    bench.result("local_s", samples["local"].median, "s", f"sigma {sigma:g}, one thread")
    bench.result("boxes", len(answers["local"].lower))
    for n in WORKERS:
        slowdown = 1.0 / samples[str(n)].ratio(samples["local"])
        bench.result(f"slowdown_{n}_workers", slowdown, "", "time on the cluster over time here")
        bench.result(f"same_bits_{n}_workers", float(_same(answers[str(n)], answers["local"])))


def _same(a: Manifold, b: Manifold) -> bool:
    return (
        np.array_equal(a.lower, b.lower)
        and np.array_equal(a.upper, b.upper)
        and a.counters == b.counters
    )
