"""The fault-tolerant controller: fault-injection campaign, vote times, dynamics, Table 1.

The campaign runs real processes in lock step with a simulated arm: simulated time waits for the
controller, so 10,000 faults take minutes, and a torque can be compared bit for bit with the one
that an undisturbed computation gives.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import psutil
from numba import njit

from benchmarks.baselines import ft_table1 as paper
from benchmarks.baselines.ft_field import MASKED, PERIOD, Field, settle
from benchmarks.harness import Bench
from ft_controller import (
    Arm,
    Fault,
    Limits,
    Plant,
    ReplicaGroup,
    SpatialArm,
    State,
    Tick,
    Timing,
    Trajectory,
    dynamics,
    plan,
    planar,
)
from ft_controller.loop import SteppedLoop
from ft_controller.serial_arm import SerialArm
from ft_controller.voting import Comparison
from kin_testing.urdf_arms import random_urdf

#: What a processor may be blamed for that is only slow.
TIMELY = (Comparison.MISSING, Comparison.CRASHED)
PRIORITY = 5  # of a real-time scheduling class, where that is allowed
COUNT = 2000  # evaluations in one timed call


def main(bench: Bench) -> None:
    """Run everything; the JSON keys are those of the documentation."""
    with contextlib.suppress(PermissionError):
        # Five processes that wait for each other all the time: on a busy machine they would wait
        # for everybody else. Inherited by the processors; nobody spins, so others still get on.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    accuracy(bench)
    spatial_accuracy(bench)
    speed(bench)
    vote_times(bench, Arm.four_link())
    vote_times(bench, spatial_arm("seven"), "_7")
    footprint(bench)
    tracking(bench)
    stop_sag(bench)
    campaign(bench)
    campaign(bench, spatial_arm("seven"), "_7")
    table(bench)


# ---------------------------------------------------------------------- dynamics


def accuracy(bench: Bench) -> None:
    """Torques against pinocchio for n = 4 to 50, in states of a tracking controller."""
    import pinocchio as pin

    from benchmarks.baselines.ft_pinocchio import pinocchio_model

    random = np.random.default_rng(1)
    worst, rows = 0.0, []
    for n in (4, 5, 7, 10, 14, 20, 30, 40, 50):
        arm = Arm.rods(n)
        model, data = pinocchio_model(arm)
        here = 0.0
        for _ in range(10 if bench.quick else 100):
            q, v = random.uniform(-1, 1, n), random.uniform(-0.1, 0.1, n)
            qd = q + random.uniform(0.0, 0.1, n)
            ours = dynamics.computed_torque(arm.links, dynamics.joints(q, v, qd))
            theirs = pin.rnea(model, data, q, v, 100.0 * (qd - q) - 20.0 * v)
            here = max(here, float(np.abs(ours - theirs).max() / np.abs(theirs).max()))
        rows.append((n, here))
        worst = max(worst, here)
    bench.table("tau against pinocchio", ("n", "largest relative difference"), rows)
    bench.result("tau_rel_error_vs_pinocchio", worst, "", "n = 4 to 50, floor 2e-15")


ROBOTS = Path(__file__).resolve().parents[1] / "launch" / "robots"


def spatial_arm(name: str, **options) -> SpatialArm:
    """A spatial arm of the demos."""
    return SpatialArm.from_urdf(ROBOTS / f"{name}.urdf", **options)


def spatial_accuracy(bench: Bench) -> None:
    """Torques of spatial arms against pinocchio, in random states with gravity.

    Relative to the largest torque of the same state; and, for arms whose axes and placements are
    random, where torques may cancel, also to the largest sum of the sizes that are added up.
    """
    import pinocchio as pin

    random, rows = np.random.default_rng(2), []
    texts = {name: (ROBOTS / f"{name}.urdf").read_text() for name in ("six", "seven", "planar_arm")}
    # Pinocchio has two numbers for a continuous joint.
    texts["random axes"] = random_urdf(5, 7).replace("continuous", "revolute")
    for name, text in texts.items():
        tip = "tip" if name == "random axes" else ""
        arm = SpatialArm.from_urdf(text, tip=tip, damping=0.0, friction=0.0)
        model = pin.buildModelFromXML(text)
        data, worst, summed = model.createData(), 0.0, 0.0
        for _ in range(1000 if bench.quick else 100_000):
            q, v, a = random.uniform(-3.0, 3.0, (3, arm.n))
            ours = dynamics.computed_torque(arm.links, dynamics.joints(q, v, q, v, a))
            theirs = pin.rnea(model, data, q, v, a)
            inertia, bias = dynamics.inertia_and_bias(arm.links, q, v)
            off = float(np.abs(ours - theirs).max())
            worst = max(worst, off / float(np.abs(theirs).max()))
            sizes = np.abs(inertia) @ np.abs(a) + np.abs(bias)
            summed = max(summed, off / float(sizes.max()))
        rows.append((name, arm.n, worst, summed))
        if name in ("six", "seven"):
            key = f"tau_rel_error_vs_pinocchio_{arm.n}r"
            bench.result(key, worst, "", f"{name}, floor 1e-14")
    bench.table(
        "tau of URDF arms against pinocchio: largest difference",
        ("arm", "n", "of the largest torque", "of the largest sum of sizes"),
        rows,
    )


@njit(cache=True)
def _many(links, q, v, a, work, tau, count):
    for _ in range(count):
        q[0] += 1e-12
        planar.newton_euler_into(links, q, v, a, work, tau)


def speed(bench: Bench) -> None:
    """One evaluation inside a compiled loop against pinocchio's rnea called from Python."""
    import pinocchio as pin

    from benchmarks.baselines.ft_pinocchio import pinocchio_model

    rows = []
    for n in (4, 7, 20, 50):
        arm = Arm.rods(n)
        model, data = pinocchio_model(arm)
        random = np.random.default_rng(n)
        q, v, a = random.uniform(-1, 1, (3, n))
        work, tau = np.empty(n, planar.WORK), np.empty(n)
        mine = q.copy()

        def ours(arm=arm, q=mine, v=v, a=a, work=work, tau=tau):
            _many(arm.links, q, v, a, work, tau, COUNT)

        def theirs(model=model, data=data, q=q, v=v, a=a):
            for _ in range(COUNT // 20):
                pin.rnea(model, data, q, v, a)

        samples = bench.interleave({"ours": ours, "pinocchio": theirs}, repeats=101)
        # About as long a time each, and shorter than a time slice of a busy machine.
        ratio = 20.0 * samples["ours"].ratio(samples["pinocchio"])
        rows.append(
            (
                n,
                1e9 * samples["ours"].median / COUNT,
                1e9 * 20.0 * samples["pinocchio"].median / COUNT,
                ratio,
            )
        )
        if n == 4:
            bench.result("ratio_rnea_vs_pinocchio", ratio, "", "n = 4, floor 10")
    bench.table(
        "one inverse dynamics [ns]", ("n", "compiled loop", "pinocchio from Python", "ratio"), rows
    )


# ---------------------------------------------------------------------- real time


def vote_times(bench: Bench, arm: SerialArm, key: str = "") -> None:
    """Four processes at 1 kHz: from the release of the inputs to the voted torque."""
    from ft_controller.atomics import sleep_until

    seconds = 2.0 if bench.quick else 5.0
    zero = np.zeros(arm.n)
    clock = np.zeros(2, np.int64)
    rows = []
    old = os.sched_getscheduler(0), os.sched_getparam(0)
    for name, priority in (("real-time priority", 20), ("ordinary", 0)):
        try:
            policy = os.SCHED_FIFO if priority else os.SCHED_OTHER
            os.sched_setscheduler(0, policy, os.sched_param(priority))
        except PermissionError:
            continue
        try:
            group = ReplicaGroup(arm, timing=Timing.lockstep(), realtime_priority=priority)
            with group:
                group.set_timing(Timing.realtime(1000.0))
                votes, ticks = [], []
                due = time.monotonic_ns() + 1_000_000
                for k in range(int(1000 * seconds)):
                    sleep_until(clock, due)
                    phase = 1e-3 * k + np.arange(arm.n)
                    q, v = np.sin(phase), np.cos(phase)
                    due += 1_000_000
                    tick = group.vote(q, v, q, v, zero, 1e-3 * k, True, due)
                    group.review()
                    if k > 200:
                        votes.append(tick.vote_time)
                        ticks.append(group.tick_time)
                    now = time.monotonic_ns()
                    if now > due:
                        due = now + 1_000_000
                held = group.held_ticks
        finally:
            os.sched_setscheduler(0, *old)
        rows.append(
            (
                name,
                1e6 * np.median(votes),
                1e6 * np.percentile(votes, 99),
                1e6 * np.percentile(ticks, 99),
                held,
            )
        )
    bench.table(
        f"four processes at 1 kHz, {arm.n} joints [us]",
        ("scheduling", "vote median", "vote p99", "tick p99", "held ticks"),
        rows,
    )
    bench.result(f"vote_median_us{key}", rows[0][1], "us", f"{rows[0][0]}, floor 30")
    bench.result(f"tick_p99_us{key}", rows[0][3], "us", rows[0][0])


def footprint(bench: Bench) -> None:
    """Memory of the controller of seven joints: the node, the supervisor, four processors."""
    from ament_index_python.packages import get_package_prefix

    program = Path(get_package_prefix("ft_controller"), "lib", "ft_controller")
    parameters = {"robot": "seven", "robots_folder": str(ROBOTS)}
    given = [word for item in parameters.items() for word in ("-p", "{}:={}".format(*item))]
    node = psutil.Popen(
        [sys.executable, program / "ft_controller_node", "--ros-args", *given],
        env={**os.environ, "ROS_DOMAIN_ID": "99"},
    )
    try:
        end = time.monotonic() + 180.0
        family: list[psutil.Process] = []
        while sum(p.name().startswith("ft_processor") for p in family) < 4:
            if time.monotonic() > end or node.poll() is not None:
                raise RuntimeError("the controller did not come up")
            time.sleep(0.5)
            family = node.children(recursive=True)
        time.sleep(5.0)
        rows = [(p.name(), 1e-6 * p.memory_full_info().pss) for p in [node, *family]]
    finally:
        node.terminate()
        node.wait(20.0)
    bench.table("proportional set size [MB]", ("process", "MB"), rows)
    total = sum(size for _, size in rows)
    bench.result("ft_pss_mb", total, "MB", "node and processors, seven joints, floor 150")


# ---------------------------------------------------------------------- simulation time


def run_arm(group: ReplicaGroup, faults: list[Fault], seconds: float, seed: int = 3):
    """Track a planned motion; returns positions, errors and the ticks without a quorum."""
    arm = group.arm
    start = np.array([0.3, 0.4, 0.5, 0.6])
    plant = Plant(
        arm.perturbed(seed, 0.05), q=start, position_noise=1e-5, velocity_noise=1e-4, seed=seed
    )
    motion = plan(arm, start, [0.6, 0.8], duration=seconds).trajectory
    group.reset()
    group.inject(faults, 0.0)
    steps = int(seconds / PERIOD)
    path, errors, missing = np.empty((steps, arm.n)), np.empty((steps, arm.n)), 0
    for k in range(steps):
        q, v = plant.measure()
        qd, vd, ad = motion.sample(k * PERIOD)
        tick = group.tick(q, v, qd, vd, ad, k * PERIOD)
        missing += not tick.voted
        plant.step(tick.torque, PERIOD)
        path[k], errors[k] = plant.q, qd - plant.q
    group.clear_faults()
    return path, errors, missing


def tracking(bench: Bench) -> None:
    """The same motion without and with a failed processor must be the same, bit for bit."""
    seconds = 1.0 if bench.quick else 2.0
    with ReplicaGroup(Arm.four_link(), restart_stalled=0.0) as group:
        clean, errors, missing = run_arm(group, [], seconds)
        rms = float(np.sqrt((errors**2).mean()))
        bench.result("tracking_rms_nofault_rad", rms, "rad", "5 % model error, noise")
        rows = [("none", rms, missing, "")]
        worst = rms
        for kind in ("wrong_element", "silent", "sigkill"):
            settle(group)
            path, errors, missing = run_arm(
                group, [Fault((1,), kind, 0.2, math.inf, element=20, magnitude=30.0)], seconds
            )
            rms_k = float(np.sqrt((errors**2).mean()))
            same = path.tobytes() == clean.tobytes()
            rows.append((kind, rms_k, missing, "identical" if same else "DIFFERENT"))
            if not same or missing:
                worst = max(worst, math.nextafter(rms_k, math.inf))
            settle(group)
    bench.table(
        "tracking in simulation time",
        ("failed processor", "rms error [rad]", "ticks held", "path"),
        rows,
    )
    bench.result("tracking_rms_onefault_rad", worst, "rad", "equal to that without faults")


def stop_sag(bench: Bench) -> None:
    """How far a stopped arm sinks in 10 s with one processor left, in simulated time."""
    rows, worst = [], 0.0
    for name in ("six", "seven"):
        for error in (0.0, 0.05):
            sag, kept = sag_of(spatial_arm(name), error)
            rows.append((name, f"{100 * error:g} %", 1e3 * sag, "yes" if kept else "NO"))
            if error == 0.0:
                worst = max(worst, sag if kept else math.inf)
    bench.table(
        "stopped on its way with one processor left: sag in 10 s",
        ("arm", "model error", "largest [mrad]", "kept up"),
        rows,
    )
    bench.result("stop_sag_rad", worst, "rad", "six and seven, one processor left, floor 1e-3")


def sag_of(arm: SpatialArm, error: float) -> tuple[float, bool]:
    """Largest motion of a joint within 10 s of rest [rad], and whether the arm was kept up."""
    limits = replace(
        Limits.of(arm, arm.effort), lower=arm.lower, upper=arm.upper, speed=arm.speed, hold=1.0
    )
    period, start = 0.01, np.full(arm.n, 0.5)
    plant = Plant(arm.perturbed(1, error), q=start, lower=arm.lower, upper=arm.upper)
    with ReplicaGroup(arm, limits=limits, restart=False, restart_stalled=0.0) as group:

        def send(tick: Tick) -> None:
            plant.step(tick.torque, period)

        loop = SteppedLoop(group, 1.0 / period, send, lambda _: None)
        loop.start()

        def run(seconds: float) -> float:
            begin, farthest = plant.q.copy(), 0.0
            for _ in range(round(seconds / period)):
                loop.measured(*plant.measure())
                farthest = max(farthest, float(np.abs(plant.q - begin).max()))
            return farthest

        run(1.0)
        loop.follower.follow(Trajectory.through([0.0, 2.0], [start, start + 0.6]))
        run(0.5)
        group.inject(Fault((0, 1, 3), "sigkill"), loop.now())
        while group.working_set != 0b0100:
            run(period)
            time.sleep(0.002)
        group.safety.stop(loop.now())
        run(2.0)
        sag = run(10.0)
        return sag, group.safety.kept_up and group.unverified


# ---------------------------------------------------------------------- campaign


@dataclass
class Count:
    """Outcomes of one class of faults."""

    injected: int = 0
    masked: int = 0
    safe: int = 0
    wrong: int = 0
    named: int = 0
    without_effect: int = 0
    missed_quorum: int = 0
    not_stopped: int = 0
    notes: list[str] = field(default_factory=list)


def wilson(k: int, n: int) -> tuple[float, float]:
    """95 % confidence interval of a share."""
    if n == 0:
        return 0.0, 1.0
    z = 1.96
    p = k / n
    middle = p + z * z / (2 * n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


def draw(random: np.random.Generator, kind: str, p: int, elements: int) -> Fault:
    """One fault of a kind: who, where, when, how large, how long, all at random."""
    element = int(random.integers(elements))
    if kind == "colluding":
        who = tuple(int(x) for x in random.choice(p, 2, replace=False))
    else:
        who = (int(random.integers(p)),)
    size = float(10.0 ** random.uniform(-9, 3) * random.choice([-1.0, 1.0]))
    if random.random() < 0.2:
        size = 0.0  # the lowest bit
    if kind == "slow":
        size = float(random.choice([2e-5, 2e-4, 5e-3, 5e-2]))
    start = float(random.integers(0, 4)) * PERIOD
    length = float(random.choice([1, 2, 4, 8])) * PERIOD
    if kind == "colluding":
        length = math.inf  # until it has come to a stop
    return Fault(who, kind, start, start + length, element, size, int(random.integers(2**31)))


def watch(fieldwork: Field, ticks: int) -> tuple[int, int, State]:
    """Ticks with a wrong torque, ticks without a quorum, and the state in the end."""
    wrong = held = 0
    for _ in range(ticks):
        result, right = fieldwork.tick()
        wrong += result.voted and not right
        held += not result.voted
    return wrong, held, result.state


def trial(fieldwork: Field, kind: str, count: Count) -> None:
    """Inject one fault and watch."""
    group = fieldwork.group
    fault = draw(fieldwork.random, kind, group.p, group.layout.data)
    fieldwork.place()
    group.inject(fault, fieldwork.t)
    before = group.errors
    wrong, held, state = watch(fieldwork, 24 if kind == "colluding" else 14)
    blamed = np.flatnonzero(group.errors > before)
    named = bool(set(fault.processors).intersection(blamed.tolist()))
    seen = group.processors()
    accused = [k for k in blamed if k not in fault.processors and seen[k].error not in TIMELY]
    if accused:
        count.notes.append(f"{kind}: honest {accused} named beside {fault.processors}")
    count.injected += 1
    count.wrong += wrong > 0
    count.missed_quorum += held
    count.named += named
    if wrong == 0 and held == 0:
        count.masked += 1
        count.without_effect += not named
    elif wrong == 0:
        count.safe += 1
        count.not_stopped += state != State.STOPPED
    settle(group, fieldwork.t)


def campaign(bench: Bench, arm: SerialArm | None = None, key: str = "") -> None:
    """Randomised, seeded faults of every kind; coverage with confidence intervals.

    Args:
        bench: Where the results go.
        arm: The arm; default: the four-link one.
        key: Ends the names of the results.
    """
    each = 40 if bench.quick else 840
    arm = arm or Arm.four_link()
    counts = {kind: Count() for kind in MASKED}
    others: dict[str, Count] = {}
    limits = Limits.of(arm, hold=0.004, ramp=0.004)
    if key:  # tracking errors at random take more than the joints of such an arm have
        limits = replace(limits, torque=np.full(arm.n, 1e6))
    settings = {
        "clean_ticks": 4,
        "restart_delay": 0.001,
        "restart_delay_max": 0.001,
        "restart_stalled": 0.0,
    }
    began = time.monotonic()
    with ReplicaGroup(arm, limits=limits, **settings) as group:
        work = Field(group, 2024)
        order = [kind for kind in MASKED for _ in range(each)]
        work.random.shuffle(order)
        for number, kind in enumerate(order):
            trial(work, kind, counts[kind])
            if number % 1000 == 999:
                bench.say(f"  {number + 1} faults, {time.monotonic() - began:.0f} s")
        # Detected only: a 2-2 tie must never move the arm wrongly, and must end in a safe stop.
        others["colluding 2 of 4"] = Count()
        for _ in range(max(20, each // 4)):
            trial(work, "colluding", others["colluding 2 of 4"])
        tie = others["colluding 2 of 4"]
        others["disagreement of the last 2"] = last_two(work, max(10, each // 8))
        # The paper's controllers, for what their comparison does not see.
        for controller in ("high_tolerance", "lower_tolerance"):
            group.set_controller(controller)
            count = others[f"wrong element, {controller}"] = Count()
            for _ in range(max(20, each // 4)):
                trial(work, "wrong_element", count)
        group.set_controller("echo")
    total = sum(c.injected for c in counts.values())
    rows = []
    for name, c in [*counts.items(), *others.items()]:
        low, high = wilson(c.masked, c.injected)
        rows.append(
            (
                name,
                c.injected,
                c.masked,
                c.safe,
                c.wrong,
                c.named,
                f"{100 * low:.2f} to {100 * high:.2f} %",
            )
        )
    bench.table(
        f"campaign, four processors, {arm.n} joints ({time.monotonic() - began:.0f} s)",
        (
            "fault",
            "injected",
            "masked",
            "detected, held",
            "wrong torque",
            "named",
            "masked, 95 % interval",
        ),
        rows,
    )
    for c in counts.values():
        for note in c.notes[:3]:
            bench.say(f"  note: {note}")
    detected = ("colluding 2 of 4", "disagreement of the last 2")
    unsafe = sum(others[k].wrong for k in detected) + sum(c.wrong for c in counts.values())
    unsafe += others["disagreement of the last 2"].without_effect + tie.not_stopped
    bench.result(f"campaign_injections{key}", total + sum(others[k].injected for k in detected))
    bench.result(
        f"wrong_torques{key}", sum(c.wrong for c in counts.values()), "", "masked classes, floor 0"
    )
    bench.result(f"unsafe_outcomes{key}", unsafe, "", "masked and detected classes, floor 0")
    bench.result(
        f"missed_quorum{key}", sum(c.missed_quorum for c in counts.values()), "ticks", "floor 0"
    )
    bench.result(f"tie_wrong_torques{key}", tie.wrong)
    with bench.chart(f"coverage{key}") as axes:
        names = [row[0] for row in rows]
        share = np.array([[row[2], row[3], row[4]] for row in rows], float)
        share /= share.sum(axis=1, keepdims=True)
        left = np.zeros(len(rows))
        for column, (label, colour) in enumerate(
            (
                ("masked", "tab:green"),
                ("detected, held or stopped", "tab:orange"),
                ("wrong torque", "tab:red"),
            )
        ):
            axes.barh(names, share[:, column], left=left, label=label, color=colour)
            left += share[:, column]
        axes.invert_yaxis()
        axes.set_xlabel("share of the injected faults")
        axes.legend(loc="upper center", bbox_to_anchor=(0.4, 1.12), ncols=3)


def last_two(work: Field, trials: int) -> Count:
    """Two have failed for good; then one of the last two goes wrong: it must end in a safe stop."""
    count = Count()
    group = work.group
    for _ in range(trials):
        work.place()
        who = [int(x) for x in work.random.permutation(4)]
        faults = [Fault((who[k],), "wrong_element", 0.003 * k, 1.0, 20 + k, 1.0) for k in range(3)]
        group.inject(faults, work.t)
        wrong, _, state = watch(work, 30)
        count.injected += 1
        count.wrong += wrong > 0
        count.safe += state == State.STOPPED and not wrong
        count.without_effect += state != State.STOPPED
        count.named += 1
        settle(group, work.t)
    return count


# ---------------------------------------------------------------------- Table 1


def table(bench: Bench) -> None:
    """The paper's Table 1: operation counts beside it, and times measured here."""
    fit = paper.fit()
    rows = [
        (name, failed, published, modelled, 100 * (modelled / published - 1))
        for (name, failed), published, modelled in fit.rows
    ]
    bench.table(
        "Table 1, relative to serial: the paper (16 MHz 80386) and critical-path operation counts "
        f"with fitted weights {fit.describe()}",
        ("controller", "failed", "paper", "counts", "difference %"),
        rows,
    )
    bench.result(
        "table1_max_error", fit.max_error, "", "largest difference from the paper's figures"
    )
    sizes = (4, 20) if bench.quick else (4, 20, 50, 100, 400)
    measured: dict[int, dict[tuple[str, int], float]] = {}
    for n in sizes:
        measured[n] = measure(n, bench)
    names = list(next(iter(measured.values())))
    rows = [
        (name, failed, *(f"{measured[n][(name, failed)]:.3g}" for n in sizes))
        for name, failed in names
    ]
    bench.table(
        "measured here: time of a vote relative to serial, four processes",
        ("controller", "failed", *(f"n = {n}" for n in sizes)),
        rows,
    )
    wins = [n for n in sizes if measured[n][("parallel", 0)] < 1.0]
    bench.say(
        f"  parallel without tolerance beats serial from n = {wins[0]} on"
        if wins
        else f"  parallel does not beat serial up to n = {sizes[-1]} on this machine"
    )
    bench.result("parallel_wins_from_n", float(wins[0]) if wins else 0.0, "joints", "0: not at all")


def measure(n: int, bench: Bench) -> dict[tuple[str, int], float]:
    """Median vote times of all controllers with 0, 1 and 2 failed processors."""
    arm = Arm.rods(n)
    random = np.random.default_rng(n)
    q, v = random.uniform(-0.3, 0.3, (2, n))
    zero = np.zeros(n)
    out: dict[tuple[str, int], list[float]] = {}
    limits = Limits.of(arm, speed=1e6)
    with ReplicaGroup(arm, limits=limits, restart=False, restart_stalled=0.0) as group:
        cases = [("serial", 0), ("parallel", 0)]
        for failed in range(3):
            if failed:
                # Permanent failures of neighbours, from the first tick on, as in the paper.
                group.inject(Fault((failed,), "sigkill"), 0.0)
                end = time.monotonic() + 10.0
                while group.working_set & (1 << failed) and time.monotonic() < end:
                    group.tick(q, v, q, v, zero, 0.0)
                    time.sleep(0.002)
                cases = []
            cases += [("high_tolerance", failed), ("lower_tolerance", failed), ("echo", failed)]
            rounds = 10 if bench.quick else 15
            for _ in range(rounds):
                for name, k in cases:
                    group.set_controller(name)
                    for _ in range(5):
                        tick = group.tick(q, v, q, v, zero, 0.0)
                        if tick.voted:
                            out.setdefault((name, k), []).append(tick.vote_time)
    base = float(np.median(out[("serial", 0)]))
    joints = dynamics.joints(q, v, q, v)
    alone = []
    for _ in range(50):
        start = time.perf_counter_ns()
        dynamics.computed_torque(arm.links, joints)
        alone.append(1e-9 * (time.perf_counter_ns() - start))
    out[("(the same in one process, no exchange)", 0)] = alone
    return {key: float(np.median(times)) / base for key, times in sorted(out.items())}
