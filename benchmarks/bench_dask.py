"""Cuik on a dask cluster of this machine against one thread: the same bits, and the price of it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.harness import Bench
from kin_solvers import Manifold, Mechanism, Settings, dask_engine, loop_from_dh, solve

#: Workers of each cluster that is measured.
WORKERS = (1, 2)


def ring() -> Mechanism:
    """A ring of eight atoms, as in cyclo-octane: a surface of conformations."""
    return loop_from_dh("ring", np.zeros(8), np.full(8, np.radians(67.3)), np.full(8, 1.54))


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
    """Work of about a minute, here and there in turn."""
    dask_engine.ADMIT_TIME = dask_engine.REACH_TIME = 60.0  # the machine may be busy
    mechanism = ring()
    sigma = 0.3 if bench.quick else float(os.environ.get("CUIK_DASK_SIGMA", "0.07"))
    answers: dict[str, Manifold] = {}

    def run(key: str, scheduler: str = "", side: float = sigma) -> None:
        engine = "dask" if scheduler else "local"
        settings = Settings(sigma=side, certify=False, engine=engine, scheduler=scheduler)
        answers[key] = solve(mechanism, settings)

    with contextlib.ExitStack() as stack:
        places = {n: stack.enter_context(cluster(n)).scheduler_address for n in WORKERS}
        for n, place in places.items():
            run(str(n), place, 0.35)  # workers load the kernels
        variants: dict[str, Any] = {"local": lambda: run("local")}
        for n, place in places.items():
            variants[f"{n}"] = lambda n=n, place=place: run(str(n), place)
        samples = bench.interleave(variants, repeats=1 if bench.quick else 3, warmup=0)
    bench.result("local_s", samples["local"].median, "s", f"sigma {sigma:g}, one thread")
    bench.result("boxes", len(answers["local"].lower))
    for n in WORKERS:
        bench.result(
            f"slowdown_{n}_workers", 1.0 / samples[str(n)].ratio(samples["local"]), "",
            "time on the cluster over time here",
        )  # fmt: skip
        bench.result(f"same_bits_{n}_workers", float(_same(answers[str(n)], answers["local"])))


def _same(a: Manifold, b: Manifold) -> bool:
    return (
        np.array_equal(a.lower, b.lower)
        and np.array_equal(a.upper, b.upper)
        and a.counters == b.counters
    )
