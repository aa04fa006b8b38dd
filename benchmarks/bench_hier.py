"""hier_ik: time per iteration of the tower, hierarchical against flat, and against peers.

Each unit of work is a drag: the goal of the topmost plate runs along a circle, one solver iteration
per position. All variants solve the same tower, flat ones without its hierarchy; dense ones and the
peers use one BLAS thread, which is their fastest at these sizes on a shared machine.

Ratios to peers are 0 if they were not measured: without --peers, or if one could not be installed.
"""

from __future__ import annotations

import ctypes
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.closed_robots import ROBOTS
from benchmarks.harness import Bench, Sample, peer_python, plain_environment
from hier_ik import LoopCloser, Solver, decompose, tower
from hier_ik.bodies import pose_rows, unpack

#: Other people's programs that peers_hier.py knows.
PEERS = ("placo", "mujoco", "pinocchio", "mink")


class Drag:
    """A tower whose top is dragged along a circle, one iteration per position."""

    def __init__(self, blocks: int, mode: str) -> None:
        self.solver = Solver(tower(blocks), mode)
        compiled = self.solver.compiled
        self.target = compiled.tables.closures["frame_a"][compiled.closure_of["drag"]]
        self.scale = min(1.0, blocks / 15) / compiled.bodies.length  # of the tables, as the target
        self.x, self.z = float(self.target["x"]), float(self.target["z"]) - 0.4 * self.scale
        self.n = 0

    def run(self, iterations: int) -> None:
        """The unit that is timed."""
        for _ in range(iterations):
            self.n += 1
            angle = 2 * math.pi * self.n / 100
            self.target["x"] = self.x + 0.4 * self.scale * math.sin(angle)
            self.target["z"] = self.z + 0.2 * self.scale * math.cos(angle)
            self.solver.iterate()


def main(bench: Bench) -> None:
    """Measure everything."""
    _one_blas_thread()
    _fifteen_blocks(bench)
    _over_blocks(bench)
    _steps_and_decomposition(bench)
    _closer(bench)
    _service(bench)
    if bench.peers:
        _peers(bench)
    else:
        bench.say("peers were not measured (their ratios are given as 0); use --peers")
        for name in PEERS:
            bench.result(f"ratio_{name}_15", 0.0, "", "0: not measured; use --peers")


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
    flat: dict[str, dict[int, float]] = {}
    for mode, most in (("flat_structured", 1000), ("flat_cholesky", 60), ("flat_svd", 30)):
        drags = {n: Drag(n, mode) for n in sizes if n <= most}
        runs = {n: max(2, (300 if mode == "flat_structured" else 30) // n) for n in drags}
        found = bench.interleave(
            {str(n): (lambda d=d, count=runs[n]: d.run(count)) for n, d in drags.items()}, 3
        )
        flat[mode] = {n: 1e6 * found[str(n)].median / runs[n] for n in drags}
    rows = [(n, us[n], *(flat[m].get(n, "") for m in flat)) for n in us]
    bench.table("time per iteration [us] over blocks", ("blocks", "hierarchical", *flat), rows)
    with bench.chart("blocks") as axes:
        names = {
            "flat_structured": "flat, structured exact priorities",
            "flat_cholesky": "flat, dense Cholesky",
            "flat_svd": "flat, dense SVD (the usual way)",
        }
        for mode, series in reversed(flat.items()):
            milliseconds = [1e-3 * t for t in series.values()]
            axes.loglog(list(series), milliseconds, ".--", label=names[mode])
        axes.loglog(list(us), [1e-3 * t for t in us.values()], "o-", label="hierarchical")
        axes.plot([1, 15], [20, 20], color="0.6", linewidth=1)
        axes.plot([15], [100], "x", color="0.6")
        axes.annotate("paper, hierarchical: 20 ms", (1, 23), fontsize=8, color="0.4")
        axes.annotate("paper, flat: over 100 ms", (15, 120), fontsize=8, color="0.4", ha="right")
        axes.grid(visible=True, which="major", alpha=0.3)
        axes.set_xlabel("blocks of the tower (18 joints each)")
        axes.set_ylabel("time per iteration [ms]")
        axes.set_title("One IK iteration of the tower (compare Fig. 4 of the paper)")
        axes.legend(loc="lower right")


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


def _closer(bench: Bench) -> None:
    """Steps of the loop closer at 1 kHz along smooth motions, and random ones back and forth."""
    rows, random = [], 20_000 if bench.quick else 200_000
    taken = changed = 0
    for name, make in ROBOTS.items():
        linkage, actuated = make()
        closer = LoopCloser(linkage, actuated)
        index = [closer.names.index(n) for n in actuated]
        start = closer.positions[index]
        rng = np.random.default_rng(0)
        slides = np.array([linkage.joints[n].type == "prismatic" for n in actuated])
        reach = np.where(slides, 0.03 * np.abs(start), 0.2)
        rate, phase = rng.uniform(0.5, 1.5, (2, len(start))) * 2 * math.pi
        seconds = np.arange(1000)[:, None] * 1e-3
        path = start + reach * (np.sin(rate * seconds + phase) - np.sin(phase))
        path = np.vstack([path, path[::-1]])
        closer.close(start)

        def steps(closer: LoopCloser = closer, path: Any = path) -> None:
            closer.follow(path)

        def calls(closer: LoopCloser = closer, path: Any = path) -> None:
            for row in path[:200]:
                closer.close(row)
            closer.follow(path[199::-1])

        times = bench.interleave({"steps": steps, "calls": calls}, 9)
        step = 1e6 * times["steps"].median / len(path)
        call = (1e6 * times["calls"].median - 200 * step) / 200
        # Random steps about the start: on one branch, the same actuators give the same posture.
        home = closer.close(start).positions
        for _ in range(random // 1000 // len(ROBOTS)):
            walk = start + reach * rng.uniform(-0.5, 0.5, (1000, len(start)))
            taken += closer.follow(walk)[1]
            back = closer.close(start)
            changed += int(np.abs(back.positions - home).max() > 1e-6)
        state = closer.close(start)
        freedoms = len(closer.names)
        rows.append((name, freedoms, len(actuated), step, call, state.margin, state.residual))
        if name == "biped":
            bench.result("closer_us_biped", step, "us", "per step in a compiled loop; floor 10")
            bench.result("closer_call_us_biped", call, "us", "per call from Python; floor 15")
    bench.table(
        "loop closer, one step",
        ("robot", "freedoms", "actuated", "us", "us from Python", "margin", "residual"),
        rows,
    )
    bench.result("closer_random_steps", taken, "", "steps of up to 0.2 rad")
    bench.result("closer_branch_changes", changed, "", "floor 0")


def _service(bench: Bench) -> None:
    """hier_ik/solve of the tower over DDS, in turn with an empty node that answers the same."""
    import rclpy
    from kin_interfaces.msg import HierGoal, HierProblem
    from kin_interfaces.srv import SolveHierIK
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.serialization import serialize_message

    from kin_ros.client import Client

    goal = HierGoal(name="drag", priority=-1)
    goal.target.position.x, goal.target.position.z = 0.4, 11.6
    request = SolveHierIK.Request(problem=HierProblem(goals=[goal]))
    runs = [sys.executable, "-c", "import sys; from hier_ik.node import main; sys.exit(main())"]
    context = rclpy.Context()
    rclpy.init(context=context)
    executor = SingleThreadedExecutor(context=context)
    client = Client(rclpy.create_node("bench_hier", context=context), executor)
    executor.add_node(client.node)
    processes = [subprocess.Popen(runs)]

    def ask(name: str) -> Any:
        return client.call(name, SolveHierIK, request, wait=300.0, timeout=60.0)

    try:
        with tempfile.TemporaryDirectory() as folder:
            answer = ask("/hier_ik/solve")
            if answer.status.code != 0:
                raise RuntimeError(answer.status.message)
            Path(folder, "answer").write_bytes(serialize_message(answer))
            service = ["/echo/solve", "kin_interfaces/srv/SolveHierIK", "answer"]
            Path(folder, "index.json").write_text(json.dumps({"services": [service], "topics": []}))
            echo = [sys.executable, "-m", "benchmarks.echo_node", folder]
            processes.append(subprocess.Popen(echo))
            times = bench.interleave(
                {"echo": lambda: ask("/echo/solve"), "node": lambda: ask("/hier_ik/solve")},
                repeats=300, warmup=20,
            )  # fmt: skip
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(10.0)
        executor.shutdown()
        context.try_shutdown()
    bench.result("solve_service_ms", 1e3 * times["node"].median, "ms", "tower of 15 blocks")
    ratio = times["echo"].ratio(times["node"])
    bench.result("solve_service_ratio", ratio, "", "hier_ik/solve / empty node; floor 2.5")


def _peers(bench: Bench) -> None:
    """The same tower in other people's programs, in turn with ours."""
    python = peer_python(bench, "hier", ["placo", "mujoco", "pin", "mink", "numpy", "scipy"])
    ours = Drag(15, "hierarchical")
    ours.run(100)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "tower.json")
        data.write_text(json.dumps(_plain(Drag(15, "flat_structured").solver)))
        with subprocess.Popen(
            [python, str(Path(__file__).parent / "peers_hier.py"), str(data)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=plain_environment(),
        ) as process:  # fmt: skip
            notes, times, left = _rounds(bench, process, ours)
    us = {name: 1e6 * sample.median for name, sample in times.items()}
    parts = ours.solver.residuals()
    mine = [max(r.size for r in parts if r.goal == goal) for goal in (False, True)]
    rows: list[Any] = [("hierarchical", us["hierarchical"], 1.0, *mine, "ours")]
    for name in PEERS:
        ratio = times["hierarchical"].ratio(times[name]) if name in times else 0.0
        note = notes.get(name, "could not be measured")
        bench.result(f"ratio_{name}_15", ratio, "", note)
        if name in times:
            rows.append((name, us[name], ratio, *left[name], note))
    bench.table(
        "peers, one iteration of the tower of 15 blocks",
        ("solver", "us", "times ours", "closures left", "goal left", "what"),
        rows,
    )


def _rounds(
    bench: Bench, process: subprocess.Popen[str], ours: Drag
) -> tuple[dict[str, str], dict[str, Sample], dict[str, tuple[float, float]]]:
    """Ours and each peer once per round: what they are, time per iteration [s], what is left."""
    count, mine = (5, 100) if bench.quick else (20, 400)
    notes: dict[str, str] = json.loads(_line(process))
    times: dict[str, list[float]] = {name: [] for name in ("hierarchical", *notes)}
    left: dict[str, tuple[float, float]] = {}
    for k in range(4 if bench.quick else 12):
        start = time.perf_counter()
        ours.run(mine)
        took = (time.perf_counter() - start) / mine
        times["hierarchical"] += [took] if k else []  # the first round warms up
        for name in notes:
            print(name, count, file=process.stdin, flush=True)
            answer = json.loads(_line(process))
            times[name] += [answer["seconds"] / count] if k else []
            left[name] = (answer["closed"], answer["goal"])
            if not (answer["closed"] < 1e-3 and answer["goal"] < 1e-2):
                raise RuntimeError(f"{name} does not follow the drag: {answer}")
    return notes, {name: Sample(tuple(seen)) for name, seen in times.items()}, left


def _line(process: subprocess.Popen[str]) -> str:
    """The next line of the peers."""
    line = process.stdout.readline() if process.stdout else ""
    if not line:
        raise RuntimeError(f"the peers ended, exit code {process.wait(10)}")
    return line


def _plain(solver: Solver) -> dict[str, Any]:
    """The compiled tower as plain lists: bodies, closures, posture."""
    tables, length = solver.tables, solver.compiled.bodies.length

    def frames(poses: Any) -> list[Any]:
        return [unpack(row, length).tolist() for row in pose_rows(poses)]

    bodies = [
        {"parent": int(b["parent"]), "kind": int(b["kind"]), "T": T}
        for b, T in zip(tables.bodies, frames(tables.bodies["origin"]), strict=True)
    ]
    A, B = frames(tables.closures["frame_a"]), frames(tables.closures["frame_b"])
    closures = [
        {
            "a": int(c["body_a"]), "b": int(c["body_b"]), "mode": int(c["mode"]),
            "mask": int(c["mask"]), "A": A[i], "B": B[i], "goal": bool(c["level"] == 3),
        }
        for i, c in enumerate(tables.closures)
    ]  # fmt: skip
    return {"bodies": bodies, "closures": closures, "q": solver.q.tolist()}


if __name__ == "__main__":
    main(Bench("hier", quick="--quick" in sys.argv))
