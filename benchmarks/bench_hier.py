"""hier_ik: time per iteration of the tower, hierarchical against flat, and against peers.

Each unit of work is a drag: the goal of the topmost plate runs along a circle, one solver iteration
per position. All variants solve the same tower, flat ones without its hierarchy; dense ones use one
BLAS thread, which is their fastest at these sizes on a shared machine.
"""

from __future__ import annotations

import ctypes
import json
import math
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Bench
from hier_ik import Solver, decompose, tower
from hier_ik import layout as at
from hier_ik.compile import unpack

_ROOT = Path(__file__).resolve().parent.parent


class Drag:
    """A tower whose top is dragged along a circle, one iteration per position."""

    def __init__(self, blocks: int, mode: str) -> None:
        self.solver = Solver(tower(blocks), mode)
        packed = self.solver.compiled.packed
        self.target = packed[at.OFFSET_A][self.solver.compiled.closure_of["drag"]]
        self.scale = min(1.0, blocks / 15)
        self.centre = self.target[9:].copy() - (0.0, 0.0, 0.4 * self.scale)
        self.n = 0

    def run(self, iterations: int) -> None:
        """The unit that is timed."""
        for _ in range(iterations):
            self.n += 1
            angle = 2 * math.pi * self.n / 100
            self.target[9] = self.centre[0] + 0.4 * self.scale * math.sin(angle)
            self.target[11] = self.centre[2] + 0.2 * self.scale * math.cos(angle)
            self.solver.iterate()


def main(bench: Bench) -> None:
    """Measure everything."""
    _one_blas_thread()
    _fifteen_blocks(bench)
    _over_blocks(bench)
    _steps_and_decomposition(bench)
    if bench.peers:
        _peers(bench)
    else:
        for name in ("placo", "mujoco"):
            bench.result(f"ratio_{name}_15", 0.0, "", "not measured; use --peers")


def _one_blas_thread() -> None:
    """Hold every OpenBLAS of this process (numpy and scipy bring one each) to one thread."""
    import scipy.linalg  # noqa: F401 (loads its library)

    paths = {
        line.split()[-1]
        for line in Path("/proc/self/maps").read_text().splitlines()
        if "openblas" in line
    }
    for path in paths:
        library = ctypes.CDLL(path)
        for name in (
            "scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads",
            "openblas_set_num_threads64_", "openblas_set_num_threads",
        ):  # fmt: skip
            if hasattr(library, name):
                getattr(library, name)(1)


def _fifteen_blocks(bench: Bench) -> None:
    plan = {
        "hierarchical": 100, "flat_structured": 40, "flat_sparse": 5, "flat_cholesky": 5,
        "flat_svd": 2,
    }  # fmt: skip
    drags = {mode: Drag(15, mode) for mode in plan}
    for mode, d in drags.items():
        d.run(5 if mode != "flat_svd" else 1)
    times = bench.interleave(
        {mode: (lambda m=mode: drags[m].run(plan[m])) for mode in plan}, repeats=15, warmup=1
    )
    us = {m: 1e6 * times[m].median / plan[m] for m in plan}
    ratio = {
        m: times["hierarchical"].ratio(times[m]) * plan["hierarchical"] / plan[m] for m in plan
    }
    bench.table(
        "tower of 15 blocks, one iteration", ("mode", "us", "times hierarchical"),
        [(m, us[m], ratio[m]) for m in plan],
    )  # fmt: skip
    bench.result("hier_us_15", us["hierarchical"], "us", "per iteration over all rounds")
    bench.result("flat_structured_us_15", us["flat_structured"], "us", "exact priorities")
    bench.result("flat_sparse_us_15", us["flat_sparse"], "us", "qdldl")
    bench.result("dense_cholesky_us_15", us["flat_cholesky"], "us")
    bench.result("dense_svd_us_15", us["flat_svd"], "us", "two priorities")
    bench.result("ratio_svd_15", ratio["flat_svd"], "", "floor 120")
    bench.result("ratio_cholesky_15", ratio["flat_cholesky"], "", "floor 18")
    bench.result("ratio_flat_structured_15", ratio["flat_structured"])
    bench.result("ratio_flat_sparse_15", ratio["flat_sparse"])


def _over_blocks(bench: Bench) -> None:
    sizes = (1, 5, 15, 50, 100) if bench.quick else (1, 2, 5, 10, 15, 30, 60, 125, 250, 500, 1000)
    towers = {n: Drag(n, "hierarchical") for n in sizes}
    runs = {n: max(4, 1500 // n) for n in sizes}
    for n, d in towers.items():
        d.run(min(20, runs[n]))
    times = bench.interleave({str(n): (lambda n=n: towers[n].run(runs[n])) for n in sizes}, 9)
    us = {n: 1e6 * times[str(n)].median / runs[n] for n in sizes}
    large = [n for n in sizes if n >= 15]
    slope = np.polyfit(np.log(large), np.log([us[n] for n in large]), 1)[0]
    if bench.quick:
        big = Drag(1000, "hierarchical")
        big.run(3)
        start = time.perf_counter()
        big.run(5)
        us[1000] = (time.perf_counter() - start) / 5 * 1e6
    bench.result("hier_us_1000", us[1000], "us")
    bench.result("slope_loglog", float(slope), "", "time over blocks, 15 to 1000; floor 1.1")
    flat_sizes = [n for n in sizes if n <= 30]
    flat = {}
    for mode, most in (("flat_structured", 1000), ("flat_cholesky", 30), ("flat_svd", 15)):
        flat[mode] = {}
        for n in sizes if mode == "flat_structured" else flat_sizes:
            if n > most or (mode == "flat_structured" and n > 250):
                continue
            d = Drag(n, mode)
            d.run(2)
            count = 3 if mode == "flat_svd" else 10
            start = time.perf_counter()
            d.run(count)
            flat[mode][n] = (time.perf_counter() - start) / count * 1e6
    rows = [(n, us[n], *(flat[m].get(n, "") for m in flat)) for n in us]
    bench.table("time per iteration [us] over blocks", ("blocks", "hierarchical", *flat), rows)
    with bench.chart("blocks") as axes:
        axes.loglog(list(us), [1e-3 * t for t in us.values()], "o-", label="hierarchical")
        for mode, series in flat.items():
            axes.loglog(list(series), [1e-3 * t for t in series.values()], ".--", label=mode)
        axes.axhline(20.0, color="0.7", linewidth=1)
        axes.text(1, 22, "20 ms: hierarchical in the paper", fontsize=8, color="0.5")
        axes.set_xlabel("blocks")
        axes.set_ylabel("time per iteration [ms]")
        axes.set_title("Tower of Vona, Sec. 5: one IK iteration")
        axes.legend()


def _steps_and_decomposition(bench: Bench) -> None:
    solver = Solver(tower(15))
    pose = solver.poses(["P15"])["P15"]
    pose[:3, 3] += (0.8, 0.0, -0.4)
    solver.set_goal("drag", pose)
    solution = solver.solve(tolerance=1e-9)
    if not solution.success:
        raise RuntimeError(solution.message)
    bench.result("iterations_to_1e9", solution.iterations, "", "step goal (.8, -.4) m; floor 6")
    for n, repeats in ((15, 9), (1000, 3)):
        linkage = tower(n)
        times = bench.interleave({"decompose": lambda x=linkage: decompose(x)}, repeats)
        bench.result(f"decompose_ms_{n}", 1e3 * times["decompose"].median, "ms")


def _peers(bench: Bench) -> None:
    """The same tower in other people's programs, in an environment of their own."""
    place = _ROOT / ".peers" / "hier"
    python = place / "bin" / "python"
    if not (place / ".ready").exists():
        bench.say("making .peers/hier (mujoco, placo) ...")
        venv.create(place, with_pip=True)
        subprocess.run(
            [python, "-m", "pip", "install", "-q", "mujoco==3.3.7", "placo", "numpy"], check=True
        )
        (place / ".ready").touch()
    drag = Drag(15, "flat_structured")
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "tower.json")
        data.write_text(json.dumps(_plain(drag.solver)))
        done = subprocess.run(
            [python, str(Path(__file__).parent / "peers_hier.py"), str(data)],
            stdout=subprocess.PIPE, text=True, check=True, timeout=600,
        )  # fmt: skip
    theirs = json.loads(done.stdout.splitlines()[-1])
    ours = Drag(15, "hierarchical")
    ours.run(100)
    times = bench.interleave({"ours": lambda: ours.run(100)}, 9)
    us = 1e6 * times["ours"].median / 100
    rows = []
    for name in ("placo", "mujoco"):
        value = theirs.get(f"{name}_us", 0.0)
        note = theirs.get(f"{name}_note", "")
        bench.result(f"ratio_{name}_15", value / us if value else 0.0, "", note)
        rows.append((name, value, value / us, note))
    bench.table("peers, one iteration", ("peer", "us", "times hierarchical", "note"), rows)


def _plain(solver: Solver) -> dict[str, Any]:
    """The compiled tower as plain lists: bodies, closures, posture."""
    packed = solver.compiled.packed
    bodies = []
    for i, (parent, kind, _) in enumerate(packed[at.BODIES]):
        T = unpack(packed[at.BODY_ORIGIN][i])
        bodies.append({"parent": int(parent), "kind": int(kind), "T": T.tolist()})
    closures = []
    for i, row in enumerate(packed[at.CLOSURES]):
        closures.append(
            {
                "a": int(row[0]), "b": int(row[1]), "mode": int(row[2]), "mask": int(row[3]),
                "A": unpack(packed[at.OFFSET_A][i]).tolist(),
                "B": unpack(packed[at.OFFSET_B][i]).tolist(),
                "goal": bool(row[7] == 3),
            }
        )  # fmt: skip
    return {"bodies": bodies, "closures": closures, "q": packed[at.Q].tolist()}


if __name__ == "__main__":
    main(Bench("hier", quick="--quick" in sys.argv))
