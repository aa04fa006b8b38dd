"""The continuum robot against the tutorial's five stages.

"faithful" is the scalar port of the tutorial's over-optimised stage 5 (RK4, 39 steps, 18 states,
Levenberg as in the tutorial, compiled), which is 1.17 times as fast as the C++. Every
ratio is to it, at the same tolerance, in the same run, as the median of neighbouring pairs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import numpy as np
from numba import njit
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from benchmarks.baselines import continuum_tutorial as tutorial
from benchmarks.harness import Bench
from continuum_ik import (
    ContinuumRobot,
    ContinuumSolver,
    IKResult,
    Load,
    Rod,
    draw_sweep,
    equations,
    layout,
    make_pose,
    sweep_workspace,
)
from continuum_ik.demo import START, demo_path
from continuum_ik.path import linearise, load

JITTER = 1e-4
STAGES = {
    1: "straightforward",
    2: "optimised",
    3: "30 integrations",
    4: "worker threads",
    5: "over-optimised",
}


def main(bench: Bench) -> None:
    """Run the tutorial, the solver at both tolerances, two streams, and a sweep."""
    rounds = 2 if bench.quick else 10
    rates: dict[str, float] = {}
    for tolerance, name in ((1e-6, "1e6"), (1e-12, "1e12")):
        _one_tolerance(bench, tolerance, name, rounds, rates)
    _stages(bench, rates)
    _two_streams(bench, rounds)
    _accuracy(bench)
    _sweep(bench)


def _solver(tolerance: float) -> ContinuumSolver:
    solver = ContinuumSolver(tolerance=tolerance)
    solver.solve(make_pose(START)).check()
    return solver


def _faithful(tolerance: float):
    """Return a function that follows the benchmark path once, and the answers it fills."""
    path = demo_path()[:, :3].copy()
    guess = tutorial.tutorial_start(5, tolerance)
    lengths, solutions = np.empty((len(path), 6)), np.empty((len(path), 36))

    def follow() -> None:
        if tutorial.run_stage(5, guess.copy(), path, tolerance, lengths, solutions) < 0:
            raise RuntimeError("the faithful port did not converge")

    return follow


def _one_tolerance(
    bench: Bench, tolerance: float, name: str, rounds: int, rates: dict[str, float]
) -> None:
    path, rough = demo_path(rounds), demo_path(rounds)
    rough[:, :3] += np.random.default_rng(0).uniform(-JITTER, JITTER, (len(rough), 3))
    solvers = {key: _solver(tolerance) for key in ("call", "loop", "jitter")}
    rows, rough_rows = list(path), list(rough)

    def call(solver: ContinuumSolver, targets: list) -> None:
        track = solver.track
        if sum([track(target) for target in targets]):  # the sum of status codes: all SUCCESS
            raise RuntimeError("a target was not solved")

    def loop() -> None:
        if solvers["loop"].run(path)[1].any():
            raise RuntimeError("a target was not solved")

    samples = bench.interleave(
        {
            "faithful": _faithful(tolerance),
            "call": partial(call, solvers["call"], rows),
            "loop": loop,
            "jitter": partial(call, solvers["jitter"], rough_rows),
        },
        repeats=15,
        warmup=2,
    )
    solves = {"faithful": 200, "call": len(path), "loop": len(path), "jitter": len(path)}
    base = samples["faithful"]
    table = []
    for key, sample in samples.items():
        rate = solves[key] / sample.median
        ratio = sample.ratio(base) * solves[key] / 200.0
        table.append([key, f"{rate:,.0f}", f"{ratio:.1f}"])
        rates[f"{key} {name}"] = rate
        if key == "faithful":
            bench.result(f"hz_faithful_{name}", rate, "1/s", "scalar port of stage 5")
        else:
            bench.result(f"hz_{key}_{name}", rate, "1/s")
            bench.result(f"ratio_{key}_{name}", ratio, "", "to faithful, same tolerance")
    bench.table(f"Tolerance {tolerance:g}: solves per second", ["", "1/s", "x faithful"], table)


def _stages(bench: Bench, rates: dict[str, float]) -> None:
    """Measure every stage of the tutorial once more at 1e-6, and draw all in one chart."""
    path = demo_path()[:, :3].copy()
    bars: list[tuple[str, float]] = []
    for stage, name in STAGES.items():
        n = {1: 4, 2: 20}.get(stage, 200)
        lengths, solutions = np.empty((n, 6)), np.empty((n, 36))
        guess = tutorial.tutorial_start(5, 1e-6)

        def follow(
            stage: int = stage, n: int = n, guess=guess, lengths=lengths, solutions=solutions
        ) -> None:
            tutorial.run_stage(stage, guess.copy(), path[:n], 1e-6, lengths, solutions)

        rate = n / bench.interleave({"stage": follow}, repeats=5, warmup=1)["stage"].median
        bars.append((f"{stage}. {name}", rate))
        bench.result(f"hz_stage_{stage}", rate, "1/s", name)
    bars.append(("6. ours, one call each", rates["call 1e6"]))
    bars.append(("7. ours, compiled loop", rates["loop 1e6"]))
    first = bars[0][1]
    bench.table(
        "The tutorial's five stages at 1e-6",
        ["stage", "1/s", "x first"],
        [[name, f"{rate:,.0f}", f"{rate / first:,.0f}"] for name, rate in bars],
    )
    with bench.chart("ladder") as ax:
        names = [name for name, _ in bars][::-1]
        values = [rate for _, rate in bars][::-1]
        colours = ["tab:green"] * 2 + ["tab:gray"] * 5
        ax.barh(names, values, color=colours)
        ax.set_xscale("log")
        for k, value in enumerate(values):
            ax.text(value * 1.08, k, f"{value:,.0f}", va="center", fontsize=8)
        ax.set_xlim(min(values) / 2, max(values) * 6)
        ax.set_xlabel("inverse kinematics solves per second, tolerance 1e-6")


@njit(nogil=True)
def _registers(rounds: int) -> float:
    """Multiply and add in registers: no memory, no lock, nothing that two cores could share."""
    a, b, c, d = 1.0, 1.1, 1.2, 1.3
    for _ in range(rounds):
        a, b, c, d = a * 0.999 + 1e-3, b * 0.999 + 2e-3, c * 0.999 + 3e-3, d * 0.999 + 4e-3
    return a + b + c + d


def _two_streams(bench: Bench, rounds: int) -> None:
    """Two independent robots on two threads against one robot on one.

    Beside it the same with a kernel that stays in registers: what two cores of this machine, with
    whatever else runs on them, give at all. Rounds are short, so that both see the same machine.
    """
    path = demo_path(10 * rounds)
    solvers = [_solver(1e-6) for _ in range(2)]
    turns = 3_000_000 * rounds // 2

    def both(work: Callable[[int], object]) -> None:
        thread = threading.Thread(target=work, args=(1,))
        thread.start()
        work(0)
        thread.join()

    def stream(k: int) -> None:
        if solvers[k].run(path)[1].any():
            raise RuntimeError("a target was not solved")

    def spin(_: int) -> float:
        return _registers(turns)

    samples = bench.interleave(
        {
            "one": partial(stream, 0),
            "two": partial(both, stream),
            "spin": partial(spin, 0),
            "spins": partial(both, spin),
        },
        repeats=45,
        warmup=2,
    )
    ratio = 2.0 * samples["two"].ratio(samples["one"])
    bench.result("two_stream_ratio", ratio, "", "two robots on two threads against one")
    ratio = 2.0 * samples["spins"].ratio(samples["spin"])
    bench.result("two_core_ratio", ratio, "", "the same with a kernel that stays in registers")


def _accuracy(bench: Bench) -> None:
    """Largest error of a leg at 1e-12, by scipy's DOP853 on the 18-state equations.

    Along the benchmark path, at tilted poses, and under load: what those equations leave over,
    turned into lengths by the inverse Jacobian.
    """
    rng = np.random.default_rng(0)
    load = Load(force=(1.0, -0.5, -6.0), moment=(0.05, 0.02, 0.03), point=(0.01, 0.02, 0.05))
    worst = 0.0
    plain, loaded = ContinuumRobot(), ContinuumRobot(load=load)
    for robot, tilt in ((plain, 0.0), (plain, 0.25), (loaded, 0.25)):
        solver = ContinuumSolver(robot, 1e-12)
        if tilt == 0.0:
            solver.solve(make_pose(START)).check()
        for k, pose in enumerate(demo_path()):
            if tilt > 0.0:
                position = rng.uniform((-0.06, -0.06, 0.4), (0.06, 0.06, 0.6))
                turned = Rotation.from_rotvec(rng.uniform(-tilt, tilt, 3)).as_matrix()
                pose = make_pose(position, turned)
            result = solver.solve(pose)
            if k % (100 if bench.quick else 20) == 0 and (tilt == 0.0 or result.success):
                worst = max(worst, _leg_error(solver, result.check(), pose))
    bench.result("max_leg_error_m", worst, "m", "at 1e-12, against scipy's DOP853 with 18 states")


def _leg_error(solver: ContinuumSolver, result: IKResult, pose: np.ndarray) -> float:
    robot, RE = solver.robot, pose[3:].reshape(3, 3)
    force = np.array(robot.load.force)
    moment = np.array(robot.load.moment) + np.cross(RE @ np.array(robot.load.point), force)
    rows = np.zeros((5, 8))
    for i in range(6):
        p, R, m = _shoot18(robot.rods[i], result.forces[i], result.moments[i], result.lengths[i])
        arm = RE @ robot.platform[i]
        rows[:3, i] = p + robot.base[i] - (pose[:3] + arm)
        rows[3:, i] = 2.0 * (RE.T @ R[:, 2])[:2]
        force = force - result.forces[i]
        moment = moment - (m + np.cross(arm, result.forces[i]))
    w = solver.copy().named[()]
    load(w, w.answer)
    if not linearise(w):
        raise RuntimeError("singular")
    w.residual[:5] = rows
    w.residual[layout.PLATFORM, :6] = np.concatenate([force, moment])
    equations.solve_linear(w)
    return float(np.abs(w.delta[5, :6]).max())


def _shoot18(rod: Rod, n: np.ndarray, m0: np.ndarray, L: float) -> tuple[np.ndarray, ...]:
    """Integrate (p, R, n, m) of one rod by scipy; returns p, R and m at the tip."""
    GA, EA, EI = rod.shear_stiffness, rod.axial_stiffness, rod.bending_stiffness
    GJ = 2.0 * EI * rod.shear_modulus / rod.youngs_modulus

    def slope(_: float, y: np.ndarray) -> np.ndarray:
        R, n, m = y[3:12].reshape(3, 3), y[12:15], y[15:18]
        p_s = R @ (R.T @ n / (GA, GA, EA) + (0.0, 0.0, 1.0))
        u = R.T @ m / (EI, EI, GJ)
        hat = np.array([[0.0, -u[2], u[1]], [u[2], 0.0, -u[0]], [-u[1], u[0], 0.0]])
        return np.concatenate([p_s, (R @ hat).ravel(), np.zeros(3), -np.cross(p_s, n)])

    start = np.concatenate([np.zeros(3), np.eye(3).ravel(), n, m0, [0.0]])
    end = solve_ivp(slope, (0.0, L), start, method="DOP853", rtol=1e-12, atol=1e-14).y[:, -1]
    return end[:3], end[3:12].reshape(3, 3), end[15:18]


def _sweep(bench: Bench) -> None:
    counts = (16, 16, 8) if bench.quick else (31, 31, 9)
    solver = _solver(1e-6)
    sweep_workspace(solver, (-0.02, -0.02, 0.4), (0.02, 0.02, 0.5), (3, 3, 3))
    sweep = sweep_workspace(solver, (-0.3, -0.3, 0.3), (0.3, 0.3, 0.7), counts)
    bench.result("sweep_poses_per_s", sweep.poses_per_second, "1/s", f"{sweep.total} poses")
    bench.folder.mkdir(parents=True, exist_ok=True)
    (bench.folder / "continuum_workspace.png").write_bytes(draw_sweep(sweep))
