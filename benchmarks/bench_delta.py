"""Delta robots in batches: the kernels against the published formulas in numpy and pure Python.

All figures of one thread, 1e6 robots, structure of arrays, strict mode, results into given arrays,
without status masks (the baselines compute none) unless a row says otherwise.
"""

# ruff: noqa: B023  (each lambda runs inside the turn of the loop that made it)
from __future__ import annotations

import math
import time

import numpy as np

from benchmarks.baselines.cuda_on_host import CudaOnHost
from benchmarks.baselines.published_delta import published_fk, published_ik
from benchmarks.harness import Bench
from gpu_kinematics import PUBLISHED_GEOMETRY, Delta, Fleet, Geometry, Limits, Move, map_workspace
from gpu_kinematics.call import Call, Group, rows_of
from gpu_kinematics.cpu import CpuBackend
from gpu_kinematics.kernels import OPS

THETA = (0.0, 2 * math.pi / 3, 4 * math.pi / 3)
ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_120")
SIZE = (10.5, 40.0, 68.0)


PUBLISHED = {"fk": published_fk, "ik": published_ik}


def by_numpy(op, source, out):
    """The published formulas on arrays."""
    out[0], out[1], out[2] = PUBLISHED[op](source, *SIZE, THETA)


def by_python(op, rows):
    """The published formulas, one robot after the other."""
    return [PUBLISHED[op](row, *SIZE, THETA, xp=math) for row in rows]


def speeds(bench: Bench, n: int) -> None:
    """Time per robot, and ratios to numpy, Python and a plain copy."""
    rng = np.random.default_rng(0)
    robots = {t: Delta(Geometry(*SIZE), backend="cpu", threads=t) for t in (1, 2)}
    fast = Delta(Geometry(*SIZE), backend="cpu", mode="fast")
    few = 2000 if bench.quick else 5000
    rows = []
    for dtype, short in ((np.float64, "f64"), (np.float32, "f32")):
        angles = rng.uniform(-0.6, 1.2, (3, n)).astype(dtype)
        position = robots[1].fk(angles).position
        angles_aos, position_aos = (np.ascontiguousarray(a.T) for a in (angles, position))
        out, out_aos = np.zeros_like(angles), np.zeros_like(angles_aos)
        masks = np.zeros(n, np.uint16)
        for op, source, aos in (("fk", angles, angles_aos), ("ik", position, position_aos)):
            solve = {t: getattr(robot, op) for t, robot in robots.items()}
            loose = getattr(fast, op)
            runs = {
                "strict": lambda: solve[1](source, out=out, status=False),
                "numpy": lambda: by_numpy(op, source, out),
                "two": lambda: solve[2](source, out=out, status=False),
                "masks": lambda: solve[1](source, out=out, status=masks),
                "aos": lambda: solve[1](aos, out=out_aos, layout="aos", status=False),
                "fast": lambda: loose(source, out=out, status=False),
                "copy": lambda: np.copyto(out, source),
            }
            found = bench.interleave(runs, repeats=5 if bench.quick else 11, warmup=1)
            ns = {name: sample.median / n * 1e9 for name, sample in found.items()}
            bench.result(f"{op}_ns_{short}", ns["strict"], "ns", "per robot, one thread")
            rows.append([f"{op} {short}", *(f"{ns[name]:.2f}" for name in runs)])
            if short == "f64":
                plain = source.T[:few].tolist()
                pair = bench.interleave(
                    {
                        "strict": lambda: solve[1](source, out=out, status=False),
                        "python": lambda: by_python(op, plain),
                    },
                    repeats=5,
                    warmup=1,
                )
                ratio = pair["strict"].ratio(pair["python"]) * n / few
                bench.result(f"{op}_ratio_numpy", found["strict"].ratio(found["numpy"]), "x")
                bench.result(f"{op}_ratio_python", ratio, "x")
                bench.result(
                    f"{op}_share_of_copy",
                    found["strict"].ratio(found["copy"]),
                    "",
                    "time of a copy over time of the kernel",
                )
                if op == "fk":
                    bench.result("threads2_ratio", found["two"].ratio(found["strict"]), "x")
    bench.table(
        "time per robot [ns]",
        ["", "strict", "numpy", "2 threads", "with masks", "aos", "fast", "copy"],
        rows,
    )


def round_trips(bench: Bench, n: int) -> None:
    """Largest error of IK(FK(a)) over alpha in [-0.6, 1.2], and at the published 0/0."""
    robot = Delta(Geometry(*SIZE), backend="cpu")
    rng = np.random.default_rng(1)
    for dtype, short in ((np.float64, "f64"), (np.float32, "f32")):
        angles = rng.uniform(-0.6, 1.2, (3, n)).astype(dtype)
        angles[:, 0] = 0.33945948491155556
        worst = np.abs(robot.ik(robot.fk(angles).position).angle - angles).max()
        bench.result(f"roundtrip_{short}", float(worst), "rad")
    robot = Delta(Geometry(*SIZE), backend="cpu")
    one = np.array([0.1, 0.2, 0.3])
    single = bench.interleave(
        {"fk": lambda: [robot.fk(one) for _ in range(1000)]}, repeats=7, warmup=1
    )
    bench.result("single_us", single["fk"].median * 1e3, "us", "a batch of 1 from Python")


def bits(bench: Bench, n: int) -> None:
    """Numba strict against the CUDA C text compiled by the host compiler, on random robots."""
    rng = np.random.default_rng(2)
    same = True
    for dtype in (np.dtype(np.float64), np.dtype(np.float32)):
        library, cpu = CudaOnHost(dtype), CpuBackend()
        rows = Geometry(
            rng.uniform(5, 15, n), rng.uniform(35, 45, n), rng.uniform(60, 75, n)
        ).prepared(dtype)
        options = np.array([1, 1, 1, 1, -0.5, -0.5, -0.5, 1, 1, 1, 1e-9], dtype)
        for op, low, high in (("fk", -0.8, 1.4), ("ik", -60.0, 20.0)):
            source = rng.uniform(low, high, (3, n)).astype(dtype)
            answers = []
            for backend in (cpu, library):
                out = np.zeros((rows_of(op)[1][0], n), dtype)
                mask = np.zeros(n, np.uint16)
                inputs = (Group(rows, n, 1), Group(options, 1, 0), Group(source, n, 1))
                backend.run(Call(op, dtype, 1, n, inputs, (Group(out, n, 1),), Group(mask, 0, 1)))
                answers.append((out, mask))
            (a, m), (b, k) = answers
            equal = (a.view(f"u{dtype.itemsize}") == b.view(f"u{dtype.itemsize}")) | (
                np.isnan(a) & np.isnan(b)
            )
            same = same and bool(equal.all()) and bool((m == k).all())
    bench.result("bit_identical", float(same), "", f"{n} random robots, FK and IK, f64 and f32")


def nvrtc(bench: Bench) -> None:
    """Architectures for which every kernel compiles without local memory and fused operations."""
    good = 0
    try:
        from cupy_backends.cuda.libs import nvrtc as compiler
    except ImportError as error:
        bench.result("nvrtc_archs", 0.0, "", f"NVRTC is not here: {error}")
        return
    from gpu_kinematics.cuda import options, source

    for arch in ARCHITECTURES:
        clean = True
        for dtype in ("float64", "float32"):
            program = compiler.createProgram(source(dtype), "delta.cu", [], [])
            flags = [f"--gpu-architecture={arch}", "--ptxas-options=-v", *options("strict")]
            compiler.compileProgram(program, flags)
            ptx = compiler.getPTX(program).decode()
            log = compiler.getProgramLog(program)
            clean = clean and "fma.rn" not in ptx and ".local" not in ptx
            clean = clean and log.count(" 0 bytes stack frame, 0 bytes spill") >= len(OPS)
            compiler.destroyProgram(program)
        good += clean
    bench.result("nvrtc_archs", float(good), "", "not run on a GPU")


def node_speed(bench: Bench, n: int) -> None:
    """Robots per second through the service of a node in another process."""
    import os

    from kin_interfaces.srv import SolveDelta

    from kin_ros.arrays import to_field
    from kin_testing.fixtures import RosGraph

    graph = RosGraph(int(os.environ.get("ROS_DOMAIN_ID", "97")))
    try:
        graph.process("gpu_kinematics", "gpu_kinematics_node", parameters={"backend": "cpu"})
        graph.wait_active("gpu_kinematics")
        request = SolveDelta.Request(operation=SolveDelta.Request.FORWARD, count=n)
        request.data = to_field(np.random.default_rng(3).uniform(-0.6, 1.2, 3 * n))
        best = math.inf
        for _ in range(5):
            begin = time.perf_counter()
            answer = graph.call(SolveDelta, "/gpu_kinematics/solve_delta", request, timeout=60)
            best = min(best, time.perf_counter() - begin)
            if answer.status.code or answer.count != n:
                raise RuntimeError(f"the node answered {answer.status}")
    finally:
        graph.close()
    bench.result("node_robots_per_s", n / best, "1/s", f"FK service, batches of {n}, over DDS")


def chart(bench: Bench) -> None:
    """Time over batch size, 1 to 1e7, with the copy as the limit."""
    top = 5 if bench.quick else 7
    sizes = [10**k for k in range(top + 1)]
    robot = Delta(Geometry(*SIZE), backend="cpu")
    rng = np.random.default_rng(4)
    lines: dict[str, list[float]] = {"Python": [], "numpy": [], "numba": [], "copy": []}
    for n in sizes:
        angles = rng.uniform(-0.6, 1.2, (3, n))
        out = np.zeros_like(angles)
        runs = {
            "numba": lambda: robot.fk(angles, out=out, status=False),
            "copy": lambda: np.copyto(out, angles),
        }
        runs["numpy"] = lambda: by_numpy("fk", angles, out)
        if n <= 10**5:
            plain = angles.T.tolist()
            runs["Python"] = lambda: by_python("fk", plain)
        calls = max(1, min(1000, 20_000 // n))  # a single small call would time the clock
        found = bench.interleave(
            {name: lambda run=run: [run() for _ in range(calls)] for name, run in runs.items()},
            repeats=3,
            warmup=1,
        )
        for name, values in lines.items():
            if name in found:
                values.append(found[name].median / calls)
    with bench.chart("batch") as ax:
        marks = {"Python": "s", "numpy": "^", "numba": "o", "copy": "."}
        for name, values in lines.items():
            style = "--" if name == "copy" else "-"
            label = "copy (memory limit)" if name == "copy" else name
            (line,) = ax.loglog(
                sizes[: len(values)], values, style, marker=marks[name], label=label
            )
            if len(values) < len(sizes):  # time per robot does not change any more
                rest = sizes[len(values) - 1 :]
                further = [values[-1] / rest[0] * n for n in rest]
                ax.loglog(rest, further, ":", color=line.get_color(), label=f"{name}, extrapolated")
        ax.set_xlabel("robots in the batch")
        ax.set_ylabel("time of one FK call [s]")
        ax.set_title("Delta FK, float64, one thread")
        ax.grid(True, which="major", alpha=0.3)
        ax.legend()


def picture(bench: Bench) -> None:
    """Dexterity of the published robot in the plane y = 0, with one Adept cycle."""
    robot = Delta(PUBLISHED_GEOMETRY, Limits(-0.8, 1.4), backend="cpu")
    found = map_workspace(robot, [-0.07, 0.0, -0.11], [0.07, 0.0, -0.02], [281, 1, 181])
    ends = np.array([[[-0.02], [0.0], [-0.07]], [[0.02], [0.0], [-0.065]]])
    move = Move(
        kind="pick_and_place",
        max_velocity=1.0,
        max_acceleration=20.0,
        max_jerk=2000.0,
        height=0.012,
        overlap=0.8,
    )
    fleet = Fleet(robot, ends[0], ends[1], move)
    path = fleet.sample(np.linspace(0.0, float(fleet.duration[0]), 200)).position[:, :, 0] * 1e3
    with bench.chart("workspace") as ax:
        shown = np.where(found.usable[:, 0], found.dexterity[:, 0], np.nan)
        image = ax.imshow(
            shown, origin="lower", extent=(-70, 70, -110, -20), cmap="viridis", vmin=0, vmax=1
        )
        ax.figure.colorbar(image, ax=ax, label="dexterity, 1 / condition")
        ax.plot(path[0], path[2], "r-", linewidth=1.5, label="pick and place, overlap 0.8")
        ax.set_xlabel("x [mm]")
        ax.set_ylabel("z [mm]")
        ax.set_title("Where the platform can go (y = 0, joint angles -0.8 to 1.4 rad)")
        ax.legend(loc="lower right")


def main(bench: Bench) -> None:
    """Measure everything."""
    n = 200_000 if bench.quick else 1_000_000
    speeds(bench, n)
    round_trips(bench, n)
    bits(bench, n)
    nvrtc(bench)
    chart(bench)
    picture(bench)
    node_speed(bench, 100_000)
