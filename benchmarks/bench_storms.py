"""Storms over a moving arm: stopped nodes, silent processors, lost, old and frozen joint states.

Random troubles of random lengths, one after the other and in rows, while the arm follows random
motions, in simulated time. Whatever comes, the arm stays below its speed limit, and what is no
hold any more ends in a stop.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from benchmarks.baselines.ft_simulation import Simulation, Trouble
from benchmarks.harness import Bench
from ft_controller import Arm, Limits, State, plan
from ft_controller.errors import GoalError
from ft_controller.safety_supervisor import Reason

ARM = Arm.four_link()
START = np.array([0.3, 0.4, 0.5, 0.6])
SPEED_LIMIT = 20.0  # of the safety supervisor [rad/s]


@dataclass
class Outcome:
    """What came of one storm.

    Attributes:
        seed: Of the storm.
        fastest: Largest joint speed [rad/s].
        last_speed: Largest joint speed three seconds after the storm [rad/s].
        stopped: Whether the arm was stopped.
        unstopped: By how much the longest time without control that did not end in a stop was
            longer than the hold time [s].
        reason: Why it was stopped last.
    """

    seed: int
    fastest: float
    last_speed: float
    stopped: bool
    unstopped: float
    reason: Reason


def draw(random: np.random.Generator) -> list[tuple[float, Trouble]]:
    """A storm: troubles and calms with their lengths [s]."""
    kinds = [
        Trouble(node_stopped=True),
        Trouble(silent=True),
        Trouble(lost=True),
        Trouble(frozen=True),
        Trouble(age=float(10.0 ** random.uniform(-2, 3))),
        Trouble(silent=True, lost=True),
        Trouble(silent=True, frozen=True),
    ]
    storm: list[tuple[float, Trouble]] = []
    for _ in range(int(random.integers(1, 6))):
        kind = kinds[random.integers(len(kinds))]
        length = float(10.0 ** random.uniform(-2, 0.7))
        calm = float(10.0 ** random.uniform(-2, 0.3))
        for _ in range(int(random.choice([1, 1, 3, 10]))):
            storm += [(length, kind), (calm, Trouble())]
            if sum(seconds for seconds, _ in storm) > 20.0:
                return storm
    return storm


def run(seed: int) -> Outcome:
    """One storm."""
    random = np.random.default_rng(seed)
    hold = float(random.choice([0.0, 0.1, 0.5]))
    limits = dataclasses.replace(Limits.of(ARM, speed=SPEED_LIMIT), hold=hold)
    simulation = Simulation(
        rate=float(random.choice([50.0, 100.0, 250.0])),
        limits=limits,
        state_timeout=float(random.choice([0.05, 0.1, 0.3])),
        seed=int(random.integers(1000)),
        patience=float(random.choice([0.0, 0.06])),
        recover_after=float(random.choice([0.0, 1.0])),
    )
    simulation.run(0.2)
    unstopped = 0.0
    for seconds, trouble in draw(random):
        if simulation.state == State.RUN and random.random() < 0.5:
            send(simulation, random)
            simulation.run(float(random.uniform(0.0, 1.0)))
        driven = simulation.state in (State.RUN, State.HOLD)
        simulation.run(seconds, trouble)
        if driven and trouble.node_stopped:
            simulation.run(0.1)
        alone = trouble.node_stopped or trouble.silent or trouble.lost
        if driven and alone and simulation.state in (State.RUN, State.HOLD):
            unstopped = max(unstopped, seconds - hold)
    fastest = simulation.fastest
    simulation.run(3.0)
    return Outcome(
        seed,
        fastest,
        simulation.speed if simulation.state == State.STOPPED else 0.0,
        State.STOPPED in simulation.states,
        unstopped,
        simulation.reason,
    )


def send(simulation: Simulation, random: np.random.Generator) -> None:
    """A new motion from where the arm should be."""
    goal = ARM.end_effector(random.uniform(-1.5, 1.5, 4))[:2]
    start = simulation.loop.follower.desired[0]
    try:
        motion = plan(ARM, start, goal, lower=-2.5, upper=2.5, speed=1.5, acceleration=4.0)
    except GoalError:
        return
    simulation.follow(motion.trajectory)


def main(bench: Bench) -> None:
    """Run many storms; the JSON keys are those of the documentation."""
    outcomes = [run(seed) for seed in range(50 if bench.quick else 500)]
    speeds = np.array([o.fastest for o in outcomes])
    rows = [
        ("storms", len(outcomes)),
        ("ended in a stop at least once", sum(o.stopped for o in outcomes)),
        ("median of the largest speeds [rad/s]", float(np.median(speeds))),
        ("99th percentile [rad/s]", float(np.percentile(speeds, 99))),
        ("largest speed [rad/s]", float(speeds.max())),
        ("largest speed of a stopped arm after three seconds [rad/s]",
         max(o.last_speed for o in outcomes)),
        ("longest time without control beyond the hold time, and no stop [s]",
         max(o.unstopped for o in outcomes)),
    ]  # fmt: skip
    bench.table("storms over a moving arm", ("what", "value"), rows)
    worst = max(outcomes, key=lambda o: o.fastest)
    bench.say(f"fastest: {worst}")
    bench.result("storm_fastest_rad_s", float(speeds.max()), "rad/s", "limit 20")
    bench.result("storm_unstopped_s", max(o.unstopped for o in outcomes), "s", "at most 0.4")
