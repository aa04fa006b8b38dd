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
from hier_ik.sources import linkage_from_file

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
    walks = _closer(bench)
    _closer_peers(bench, walks)
    _closer_node(bench)
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


class Walk:
    """A closed-loop robot whose motors go along a smooth path at 1 kHz, there and back."""

    def __init__(self, name: str) -> None:
        self.linkage, self.actuated = ROBOTS[name]()
        self.closer = LoopCloser(self.linkage, self.actuated)
        self.start = self.closer.positions[self.closer.driven]
        self.rng = np.random.default_rng(0)
        slides = np.array([self.linkage.joints[n].type == "prismatic" for n in self.actuated])
        self.reach = np.where(slides, 0.03 * np.abs(self.start), 0.2)
        rate, phase = self.rng.uniform(0.5, 1.5, (2, len(self.start))) * 2 * math.pi
        seconds = np.arange(1000)[:, None] * 1e-3
        path = self.start + self.reach * (np.sin(rate * seconds + phase) - np.sin(phase))
        self.path = np.vstack([path, path[::-1]])
        self.n = 0

    def steps(self) -> None:
        """The whole path in a compiled loop."""
        self.closer.follow(self.path)

    def calls(self, count: int) -> None:
        """The next positions of the path, each by a call from Python."""
        for _ in range(count):
            self.closer.close(self.path[self.n % len(self.path)])
            self.n += 1

    def wander(self, steps: int) -> tuple[int, int]:
        """Random steps about the start: how many were taken, and how often the branch changed.

        On one branch, the same motors give the same posture.
        """
        home, taken, changed = self.closer.close(self.start).positions, 0, 0
        for _ in range(steps // 1000):
            walk = self.start + self.reach * self.rng.uniform(-0.5, 0.5, (1000, len(self.start)))
            taken += self.closer.follow(walk)[1]
            back = self.closer.close(self.start)
            changed += int(np.abs(back.positions - home).max() > 1e-6)
        return taken, changed


def _closer(bench: Bench) -> dict[str, Walk]:
    """Steps of the loop closer at 1 kHz along smooth motions, and random ones back and forth."""
    walks = {name: Walk(name) for name in ROBOTS}
    rows, random, taken, changed = [], 20_000 if bench.quick else 1_000_000, 0, 0
    for name, walk in walks.items():
        walk.calls(len(walk.path))
        times = bench.interleave({"steps": walk.steps, "calls": lambda w=walk: w.calls(200)}, 9)
        step = 1e6 * times["steps"].median / len(walk.path)
        call = 1e6 * times["calls"].median / 200
        made, other = walk.wander(-(-random // len(ROBOTS) // 1000) * 1000)
        taken, changed = taken + made, changed + other
        state = walk.closer.close(walk.start)
        freedoms = len(walk.closer.names)
        rows.append((name, freedoms, len(walk.actuated), step, call, state.margin, state.residual))
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
    return walks


def _closer_peers(bench: Bench, walks: dict[str, Walk]) -> None:
    """The same paths in pinocchio and, with --peers, in placo; one call from Python per step."""
    needed = ["placo", "pin", "numpy", "scipy"]
    python = peer_python(bench, "closer", needed) if bench.peers else Path(sys.executable)
    plain = {}
    for name, walk in walks.items():
        solver = Solver(walk.linkage.flattened(), "flat_structured")
        of = solver.compiled.bodies
        motors = [of.freedom_body[of.dof_of[n]] for n in walk.actuated]
        plain[name] = {**_plain(solver), "motors": motors, "path": walk.path.tolist()}
    count = 50 if bench.quick else 200
    ratios: dict[str, dict[str, float]] = {"pinocchio": {}, "placo": {}}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "robots.json")
        data.write_text(json.dumps(plain))
        with subprocess.Popen(
            [python, str(Path(__file__).parent / "peers_closer.py"), str(data)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=plain_environment(),
        ) as process:  # fmt: skip
            notes: dict[str, str] = json.loads(_line(process))
            for robot, walk in walks.items():
                walk.n = 0
                times: dict[str, list[float]] = {name: [] for name in ("ours", *notes)}
                left = dict.fromkeys(notes, 0.0)
                for k in range(4 if bench.quick else 9):
                    start = time.perf_counter()
                    walk.calls(count)
                    times["ours"] += [(time.perf_counter() - start) / count] if k else []
                    for name in notes:
                        print(name, robot, count, file=process.stdin, flush=True)
                        answer = json.loads(_line(process))
                        times[name] += [answer["seconds"] / count] if k else []
                        left[name] = max(left[name], answer["left"])
                ours = Sample(tuple(times["ours"]))
                for name in notes:
                    ratio = ours.ratio(Sample(tuple(times[name])))
                    rows.append(
                        (robot, name, 1e6 * float(np.median(times[name])), ratio, left[name])
                    )
                    ratios[name][robot] = ratio
            if process.stdin:
                process.stdin.close()
    bench.table("closing loops elsewhere", ("robot", "program", "us", "times ours", "left"), rows)
    for name, floor in (("pinocchio", 6), ("placo", 2)):
        found = ratios[name].values()
        note = f"{notes[name]}; floor {floor}" if found else "0: not measured; use --peers"
        bench.result(f"closer_ratio_{name}_min", min(found, default=0.0), "", note)


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


def _closer_node(bench: Bench) -> None:
    """The node loop_closer with the biped of the demo: a message of its motors each millisecond."""
    import rclpy
    from builtin_interfaces.msg import Time
    from rclpy.executors import SingleThreadedExecutor
    from sensor_msgs.msg import JointState

    from kin_core.loop import PeriodicLoop
    from kin_ros.qos import SENSOR, STATE

    robot = Path(__file__).parents[1] / "launch" / "robots" / "biped.urdf"
    closer = LoopCloser(linkage_from_file(robot))
    start = closer.positions[closer.driven]
    names, count = list(closer.actuated), 3000 if bench.quick else 60_000
    runs = [
        sys.executable, "-c",
        "import sys; from hier_ik.closer_node import main; sys.exit(main())",
        "--ros-args", "-p", f"linkage_file:={robot}",
    ]  # fmt: skip
    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node("bench_closer", context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    publisher = node.create_publisher(JointState, "actuated_joint_states", STATE)
    sent, heard = np.full((2, count), np.nan)

    def hear(message: JointState) -> None:
        heard[message.header.stamp.sec] = time.perf_counter()

    node.create_subscription(JointState, "joint_states", hear, SENSOR)
    tick = iter(range(count))

    def send() -> None:
        k = next(tick, None)
        if k is not None:
            angle = 2 * math.pi * 1e-3 * k
            position = start + 0.1 * (math.sin(angle))
            message = JointState(name=names, position=position, velocity=np.zeros(len(names)))
            message.header.stamp = Time(sec=k, nanosec=1)
            sent[k] = time.perf_counter()
            publisher.publish(message)

    process = subprocess.Popen(runs)
    loop = PeriodicLoop(1e-3, send, on_error=lambda error: bench.say(str(error)))
    try:
        end = time.monotonic() + 300.0
        while publisher.get_subscription_count() == 0 and time.monotonic() < end:
            executor.spin_once(0.1)
        time.sleep(2.0)
        loop.start()
        while np.isnan(sent[-1]) and time.monotonic() < end:
            executor.spin_once(0.1)
        for _ in range(100):
            executor.spin_once(0.01)
    finally:
        loop.stop()
        process.terminate()
        process.wait(10.0)
        executor.shutdown()
        context.try_shutdown()
    took, answered = heard - sent, int(np.isfinite(heard).sum())
    rate = answered / (np.nanmax(heard) - np.nanmin(sent))
    late = count - int((took <= 5e-3).sum())
    bench.result("closer_node_rate_hz", float(rate), "Hz", f"{answered} of {count} answered")
    bench.result("closer_node_late", late, "", "not answered within 5 ms, of those sent at 1 kHz")
    p50, p99 = (1e3 * float(np.nanpercentile(took, p)) for p in (50, 99))
    bench.result("closer_node_ms", p50, "ms", f"from message to full state; p99 {p99:.2f}")


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
