"""Cuik: the fast method against the naive 256-corner version, codac, and planted solutions."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from benchmarks.baselines.cuik_adversarial import run as run_adversarial
from benchmarks.baselines.cuik_completeness import campaign
from benchmarks.baselines.cuik_paths import run as run_paths
from benchmarks.harness import Bench, peer_python
from kin_core.task import Task
from kin_solvers import (
    Constant,
    Loop,
    Mechanism,
    Motion,
    Settings,
    Variable,
    arm_from_dh,
    library,
    solve,
    solve_all_ik,
    solve_path,
    straight_line,
)
from kin_solvers.fast import FastSearch
from kin_solvers.mechanism import translation
from kin_solvers.methods import make_search
from kin_solvers.paper import PaperSearch
from kin_solvers.system import System

ALPHA, BETA = math.radians(30.0), math.radians(75.0)
GO = np.zeros(1, dtype=np.int64)
#: More boxes than any search here processes.
BOXES = 40_000


def bennett_curve(count: int) -> np.ndarray:
    """The closed form of the linkage's one curve."""
    t1 = (np.arange(count) + 0.5) / count * 2.0 * np.pi - np.pi
    k = math.sin((BETA + ALPHA) / 2.0) / math.sin((BETA - ALPHA) / 2.0)
    t2 = 2.0 * np.arctan(k / np.tan(t1 / 2.0))
    return np.stack([t1, t2, -t1, -t2], axis=1)


def main(bench: Bench) -> None:
    """Measure everything."""
    bennett_ms = bennett(bench)
    md6r_ms = six_r(bench)
    all_ik(bench)
    paths(bench)
    reduced(bench)
    curves(bench)
    threads(bench)
    cancel(bench)
    planted(bench)
    adversarial(bench)
    codac(bench, bennett_ms, md6r_ms)


def bennett(bench: Bench) -> float:
    """Box counts, missed curve points, and ratios against the naive version."""
    mechanism = library.get("bennett")
    system = System.of(mechanism)
    fast = FastSearch(system, 0.1, 0.8)
    naive = PaperSearch(mechanism, system, 0.1, 0.9, naive=True)
    folded = PaperSearch(mechanism, system, 0.1, 0.9)
    start = {"fast": fast.initial(), "paper": naive.initial()}

    def run_naive() -> None:
        naive.run(start["paper"], BOXES, GO)

    def run_folded() -> None:
        folded.run(start["paper"], BOXES, GO)

    def run_fast() -> None:
        for _ in range(20):
            fast.run(start["fast"], BOXES, GO)

    samples = bench.interleave(
        {"fast": run_fast, "folded": run_folded, "naive": run_naive},
        repeats=3 if bench.quick else 9,
        warmup=1,
    )
    outcome = fast.run(start["fast"], BOXES, GO)
    a, b = naive.run(start["paper"], BOXES, GO), folded.run(start["paper"], BOXES, GO)
    assert a.counters == b.counters, "the folded version must do what the naive one does"
    manifold = solve(mechanism, Settings(sigma=0.1))
    missed = sum(not manifold.contains(q) for q in bennett_curve(2000 if bench.quick else 10000))
    milliseconds = samples["fast"].median / 20.0 * 1e3
    bench.result("bennett_ms", milliseconds, "ms", "30/75 deg, sigma 0.1")
    bench.result("bennett_boxes", len(manifold.lower), "", "greedy floor 71")
    bench.result("bennett_missed", missed, "", "points of the closed-form curve")
    bench.result("bennett_ratio_vs_naive", 20.0 * samples["fast"].ratio(samples["naive"]))
    bench.result("faithful_ratio_vs_naive", samples["folded"].ratio(samples["naive"]))
    bench.table(
        "Bennett 30/75 deg, sigma 0.1",
        ["version", "solutions", "boxes", "reductions", "ms"],
        [
            ["naive 256 corners", *_row(a), f"{samples['naive'].median * 1e3:.1f}"],
            ["shared products, folds", *_row(b), f"{samples['folded'].median * 1e3:.1f}"],
            ["fast", *_row(outcome), f"{milliseconds:.2f}"],
        ],
    )
    with bench.chart("bennett") as ax:
        names = ["naive\n256 corners", "shared products,\nfolds", "fast method"]
        times = [samples["naive"].median, samples["folded"].median, samples["fast"].median / 20.0]
        bars = ax.bar(names, [t * 1e3 for t in times], color=["#888888", "#5b8db8", "#1b6e3c"])
        ax.bar_label(bars, [f"{t * 1e3:.3g} ms" for t in times])
        ax.set_yscale("log")
        ax.set_ylabel("time [ms]")
        ax.set_title("Bennett linkage, sigma 0.1")
    return milliseconds


def _row(outcome) -> list[str]:
    c = outcome.counters
    return [str(c.solutions), str(c.processed), str(c.reductions)]


def six_r(bench: Bench) -> float:
    """The general 6R with 16 solutions, certificates included."""
    mechanism = library.get("manseur_doty")
    settings = Settings(sigma=0.1)
    system = System.of(mechanism)
    search = FastSearch(system, 0.1, 0.8)
    samples = bench.interleave(
        {
            "search": lambda: search.run(search.initial(), BOXES, GO),
            "certified": lambda: solve(mechanism, settings),
        },
        repeats=5 if bench.quick else 15,
        warmup=1,
    )
    manifold = solve(mechanism, settings)
    milliseconds = samples["search"].median * 1e3
    bench.result("md6r_ms", milliseconds, "ms", "search; all 16 isolated")
    bench.result("md6r_certified_ms", samples["certified"].median * 1e3, "ms", "with proofs")
    bench.result("md6r_solutions", len(manifold.lower))
    bench.result("md6r_certified", int(manifold.certified.sum()))
    for name in ("puma560", "ur5"):
        arm = FastSearch(System.of(library.get(name)), 0.1, 0.8)
        arm.run(arm.initial(), BOXES, GO)
        sample = bench.interleave({name: lambda a=arm: a.run(a.initial(), BOXES, GO)}, repeats=5)
        bench.result(f"{name}_ms", sample[name].median * 1e3, "ms")
    return milliseconds


def arms() -> dict[str, Mechanism]:
    """Arms of six joints, by the keys of their figures."""
    half, third = math.pi / 2.0, math.pi / 3.0
    return {
        "puma": library.get("puma560"),
        "ur5": library.get("ur5"),
        "jaco2": arm_from_dh(
            "jaco2", [0.0, 0.41, 0.0, 0.0, 0.0, 0.0], [half, math.pi, half, third, third, math.pi],
            [0.2755, 0.0, -0.0098, -0.25008, -0.08556, -0.20278],
        ),
        "crx": arm_from_dh(
            "crx10ia", [0.0, 0.54, 0.0, 0.0, 0.0, 0.0],
            [-half, math.pi, -half, half, -half, math.pi], [0.245, 0.0, 0.0, -0.54, 0.15, -0.16],
        ),
        "6r": arm_from_dh(  # the 6R of Manseur and Doty
            "general", [1.0, 0.0, 1.5, 0.0, 1.1353, 0.3],
            [0.0175, half, 0.0175, half, 1.4716, half], [0.0106, 0.0, 0.2, 0.0, 0.0, 0.1049],
        ),
    }  # fmt: skip


def all_ik(bench: Bench) -> None:
    """All IK at random poses, with proofs and all that an answer holds: CPU time of one thread."""
    poses = 40 if bench.quick else 200
    rows = []
    for key, arm in arms().items():
        rng = np.random.default_rng(2026)
        # The closing constant stands last in the loop: without it the product is the tip's pose.
        free = arm.with_target(np.eye(4))
        targets = [free.product(0, q) for q in rng.uniform(-math.pi, math.pi, (poses, 6))]
        solve_all_ik(arm.with_target(targets[0]))
        times, answers, open_lists = [], 0, 0
        for target in targets:
            started = time.thread_time()
            found = solve_all_ik(arm.with_target(target))
            times.append(time.thread_time() - started)
            answers += found.postures
            open_lists += not found.complete
        median, high = (1e3 * float(np.quantile(times, part)) for part in (0.5, 0.9))
        bench.result(f"allik_{key}_ms", median, "ms", f"{poses} random poses, with proofs")
        rows.append([key, f"{median:.2f}", f"{high:.2f}", answers, open_lists])
    bench.table(
        "All IK with proofs", ["arm", "median ms", "p90 ms", "postures", "not separated"], rows
    )


def paths(bench: Bench) -> None:
    """Lines of 100 poses over all branches: CPU time, and jumps that a finer tracer sees."""
    lines = 10 if bench.quick else 60
    rows, slowest = [], 0.0
    for key, arm in arms().items():
        rng = np.random.default_rng(19)
        free = arm.with_target(np.eye(4))
        times, branches, whole = [], 0, 0
        for number in range(lines + 1):
            start, goal = (free.product(0, q) for q in _near(rng))
            poses = straight_line(start, goal, 100)
            begun = time.thread_time()
            tree = solve_path(arm, poses)
            if number:  # the first one loads kernels
                times.append(time.thread_time() - begun)
                branches += len(tree.branches)
                whole += len(tree.whole)
        median, high = (1e3 * float(np.quantile(times, part)) for part in (0.5, 0.9))
        slowest = max(slowest, median)
        rows.append([key, f"{median:.1f}", f"{high:.1f}", branches, whole])
    bench.table(
        f"{lines} lines of 100 poses over all branches",
        ["arm", "median ms", "p90 ms", "branches", "all the way"],
        rows,
    )
    bench.result("path_100_ms", slowest, "ms", "the slowest arm's median, one thread")
    verdict = run_paths(30 if bench.quick else 300)
    bench.result("path_lines", verdict.lines, "", str(dict(verdict.ends)))
    bench.result("path_branches", verdict.branches, "", f"{verdict.whole} all the way")
    bench.result("path_jumps_undetected", verdict.jumps, "", "against 100 times finer steps")
    bench.result("path_outside_limits", verdict.outside)
    bench.result("path_given_up", verdict.given_up, "", "ended where nothing is singular")
    bench.result("path_tracer_lost", verdict.lost, "", "branches that only the tracer lost")


def _near(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A random configuration, and one some tenths of a radian away."""
    q = rng.uniform(-math.pi, math.pi, 6)
    return q, q + rng.uniform(-0.5, 0.5, 6)


def reduced(bench: Bench) -> None:
    """Planar mechanisms in absolute angles, and platforms on legs; with certificates."""
    rows = []
    for name, sigma, expected in (
        ("three_rpr", 0.1, 6),
        ("planar_four_bar", 0.1, None),
        ("double_butterfly", 0.1, 6),
        ("dietmaier", 1e-5, 40),
    ):
        mechanism = library.get(name)
        search = make_search(mechanism, System.of(mechanism), Settings(sigma=sigma))
        samples = bench.interleave(
            {
                "search": lambda s=search: s.run(s.initial(), BOXES, GO),
                "solve": lambda m=mechanism, s=sigma: solve(m, Settings(sigma=s, threads=2)),
            },
            repeats=3 if bench.quick or name == "dietmaier" else 9,
            warmup=1,
        )
        manifold = solve(mechanism, Settings(sigma=sigma))
        certified = int(manifold.certified.sum())
        bench.result(f"{name}_ms", samples["search"].median * 1e3, "ms", f"search, sigma {sigma}")
        bench.result(f"{name}_certified", certified, "", f"expected {expected or 'two curves'}")
        rows.append(
            [
                name,
                len(manifold.lower),
                certified,
                manifold.counters.processed,
                f"{samples['search'].median * 1e3:.2f}",
                f"{samples['solve'].median * 1e3:.2f}",
            ]
        )
    bench.table(
        "Fewer unknowns: absolute link angles, platforms on legs",
        ["mechanism", "boxes", "certified", "processed", "search ms", "with proofs ms"],
        rows,
    )


def curves(bench: Bench) -> None:
    """Self-motion manifolds."""
    sigma = 0.05 if bench.quick else 0.02
    search = FastSearch(System.of(library.get("bricard")), sigma, 0.8)
    sample = bench.interleave(
        {"bricard": lambda: search.run(search.initial(), BOXES, GO)}, repeats=3
    )
    bench.result("bricard_ms", sample["bricard"].median * 1e3, "ms", f"sigma {sigma}")
    for side in (0.1, sigma):
        bricard = solve(library.get("bricard"), Settings(sigma=side))
        real = sum(c.point is not None for c in bricard.components)
        bench.result(
            f"bricard_clusters_{side:g}", len(bricard.components), "", f"{real} hold a solution"
        )
    started = time.perf_counter()
    iiwa = solve(library.get("iiwa7"), Settings(sigma=0.03, threads=2))
    bench.result("iiwa_ms", (time.perf_counter() - started) * 1e3, "ms", "sigma 0.03")
    closed = sum(c.closed_curve for c in iiwa.components)
    bench.result("iiwa_components", len(iiwa.components), "", f"{closed} closed curves")
    bench.result("iiwa_closed_curves", closed)


def threads(bench: Bench) -> None:
    """Two threads against one on a solve of over 100 ms."""
    mechanism = library.get("iiwa7")
    sigma = 0.01 if bench.quick else 0.003
    one = Settings(sigma=sigma, threads=1, certify=False)
    two = Settings(sigma=sigma, threads=2, certify=False)
    samples = bench.interleave(
        {"one": lambda: solve(mechanism, one), "two": lambda: solve(mechanism, two)},
        repeats=3 if bench.quick else 5,
        warmup=1,
    )
    bench.result("threads2_ratio", samples["two"].ratio(samples["one"]), "", "iiwa self-motion")
    bench.result("threads_one_ms", samples["one"].median * 1e3, "ms")


def cancel(bench: Bench) -> None:
    """From a cancel to the answer, on searches that would not end: the longest of several."""
    worst = 0.0
    factors = []
    for k in range(12):
        factors += [Motion(k, k % 3), Constant(translation(0, 0.5 + 0.04 * k))]
    twelve = Mechanism(
        "twelve", tuple(Variable(f"v{k}") for k in range(12)), (Loop(tuple(factors)),)
    )
    for mechanism in (twelve, library.get("iiwa7"), library.get("dietmaier")):
        for wait in (0.1, 0.23, 0.41):
            task = Task()
            asked: list[float] = []

            def stop(task: Task = task, asked: list[float] = asked) -> None:
                asked.append(time.perf_counter())
                task.cancel()

            clock = threading.Timer(wait, stop)
            clock.start()
            manifold = solve(mechanism, Settings(sigma=1e-4, threads=2), task=task)
            returned = time.perf_counter()
            clock.join()
            if manifold.stopped == "cancelled":
                worst = max(worst, returned - asked[0])
    bench.result("cancel_ms", worst * 1e3, "ms", "longest of nine")


def planted(bench: Bench) -> None:
    """Planted solutions over random loops: none may be lost."""
    total = 20_000 if bench.quick else int(os.environ.get("CUIK_PLANTED", "1000000"))
    per_mechanism = 250
    shares = -(-total // per_mechanism)
    started = time.perf_counter()
    trials = lost = 0
    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        verdicts = pool.map(lambda seed: campaign(seed, per_mechanism), range(shares))
        for number, verdict in enumerate(verdicts, 1):
            trials += verdict.trials
            lost += verdict.lost
            if number % max(1, shares // 20) == 0:
                spent = time.perf_counter() - started
                bench.say(f"planted: {trials} trials, {lost} lost, {spent:.0f} s")
    bench.result("planted_trials", trials)
    bench.result("planted_lost", lost)
    bench.result("planted_s", time.perf_counter() - started, "s")


def adversarial(bench: Bench) -> None:
    """Solutions planted in mechanisms that are hard on the bound: none may be lost."""
    total = 20_000 if bench.quick else int(os.environ.get("CUIK_ADVERSARIAL", "1000000"))
    started = time.perf_counter()
    verdicts = run_adversarial(total, say=bench.say)
    for kernel, verdict in verdicts.items():
        bench.result(f"adversarial_{kernel}_trials", verdict.trials)
    bench.result("adversarial_trials", sum(v.trials for v in verdicts.values()))
    bench.result("adversarial_lost", sum(v.lost for v in verdicts.values()))
    bench.result("adversarial_s", time.perf_counter() - started, "s")


CODAC = r"""
import json, math, sys, time
import numpy as np
from codac import *
def times(M, C):
    out = []
    for r in range(3):
        row = []
        for j in range(4):
            t = M[r][3] if j == 3 and not (isinstance(M[r][3], float) and M[r][3] == 0.0) else None
            for m in range(3):
                f = float(C[m][j])
                if f == 0.0 or (isinstance(M[r][m], float) and M[r][m] == 0.0):
                    continue
                term = M[r][m] * f
                t = term if t is None else t + term
            row.append(0.0 if t is None else t)
        out.append(row)
    return out
def turned(M, x, k, sign):
    c, s = cos(x[k]), sin(x[k]) if sign > 0 else -sin(x[k])
    out = []
    for a, b, d, e in M:
        zero_a = isinstance(a, float) and a == 0.0
        zero_b = isinstance(b, float) and b == 0.0
        if zero_a and zero_b:
            out.append([0.0, 0.0, d, e])
        elif zero_a:
            out.append([s * b, c * b, d, e])
        elif zero_b:
            out.append([c * a, -(s * a), d, e])
        else:
            out.append([c * a + s * b, c * b - s * a, d, e])
    return out
def entries(rows, n):
    # Both halves of the loop, A = B: short expressions, each angle twice in an equation at most.
    x = VectorVar(n)
    eye = [[1.0 if i == j else 0.0 for j in range(4)] for i in range(3)]
    A, B = eye, eye
    for k in range(n // 2):
        A = times(turned(A, x, k, 1), rows[k])
    for k in range(n - 1, n // 2 - 1, -1):
        C = np.array(rows[k])
        R, t = C[:, :3].T, -C[:, :3].T @ C[:, 3]
        B = turned(times(B, np.column_stack([R, t])), x, k, -1)
    out = []
    for r in range(3):
        for j in range(4):
            e = A[r][j] - B[r][j]
            if not isinstance(e, float):
                out.append(e)
    return x, out
def main():
    data = json.load(sys.stdin)
    rows, sigma, n = data["rows"], data["sigma"], len(data["rows"])
    x, eqs = entries(rows, n)
    parts = [eqs[i : i + 6] for i in range(0, len(eqs), 6)]
    ctcs = [CtcInverse(AnalyticFunction([x], vec(*e)), [[0, 0]] * len(e)) for e in parts]
    started = time.perf_counter()
    stack = [IntervalVector([[-math.pi, math.pi]] * n)]
    found = processed = 0
    while stack and time.perf_counter() - started < data["limit"]:
        box = stack.pop()
        processed += 1
        while True:
            before = box.volume()
            for ctc in ctcs:
                box = ctc.contract(box) or box
            if box.is_empty() or box.max_diam() <= sigma or box.volume() > 0.8 * before:
                break
        if box.is_empty():
            continue
        if box.max_diam() <= sigma:
            found += 1
            continue
        a, b = box.bisect(box.max_diam_index())
        stack += [a, b]
    spent = time.perf_counter() - started
    print(json.dumps({"seconds": spent, "found": found, "processed": processed, "done": not stack}))
main()
"""


def codac(bench: Bench, bennett_ms: float, md6r_ms: float) -> None:
    """Codac's HC4 contractors with bisection, in an environment of its own; 0 without --peers."""
    ratios = {"bennett_ratio_vs_codac": 0.0, "md6r_ratio_vs_codac": 0.0}
    if bench.peers:
        python = peer_python(bench, "codac", ["codac==2.1.2", "numpy"])
        for key, name, ours in (
            ("bennett_ratio_vs_codac", "bennett", bennett_ms),
            ("md6r_ratio_vs_codac", "manseur_doty", md6r_ms),
        ):
            system = System.of(library.get(name))
            rows = [np.vstack([c[:12].reshape(3, 4)]).tolist() for c in system.C]
            done = subprocess.run(
                [str(python), "-c", CODAC],
                input=json.dumps({"rows": rows, "sigma": 0.1, "limit": 120.0}),
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
            )
            if done.returncode:
                print(done.stderr[-2000:], file=sys.stderr)
                continue
            answer = json.loads(done.stdout)
            ratios[key] = answer["seconds"] * 1e3 / ours
            bench.result(f"{name}_codac_ms", answer["seconds"] * 1e3, "ms", str(answer))
    for key, value in ratios.items():
        bench.result(key, value, "", "" if bench.peers else "run with --peers")
