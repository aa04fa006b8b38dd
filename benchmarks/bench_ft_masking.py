"""Liars against the voter of the fault-tolerant controller: a million ticks with real processes.

Every tick at most one processor of the working set is faulty: it shows two faces, lies in its vote,
or does so in turn with others that aim at the same victim. Honest processors must keep their place,
unless they are late, and every tick must have its quorum and the right torque, bit for bit.

All of it runs under load. One tick in a hundred has ordinary scheduling, with two processes per
core that never sleep; the others have real-time priority, where that is allowed, with processes of
higher priority that stop voter and processors at random moments for up to 0.4 ms, and with the same
busy ones below.

Before that a model tries what one liar can show and claim in a tick, on the same voter.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.baselines.ft_adversary import Model
from benchmarks.baselines.ft_field import PERIOD, Field
from benchmarks.bench_ft import PRIORITY, TIMELY
from benchmarks.harness import Bench
from ft_controller import Arm, Fault, ReplicaGroup, Timing, voting
from ft_controller.fault_injection import accused_by
from ft_controller.scheduling import SIMULATOR, VOTER
from kin_tools.guard import die_with_parent

TICKS = 1_000_000
STEP = 31  # of the model: every so many-th case; no divisor of the number of choices anywhere
CLASSES = ("two_faced", "lying_vote", "taking turns")


def main(bench: Bench) -> None:
    """Run everything; the JSON keys are those of the documentation."""
    model(bench)
    campaign(bench)


def model(bench: Bench) -> None:
    """What one liar can do in one tick, with four and with three in the working set."""
    total = np.zeros(4, np.int64)
    rows = []
    liars = Model(4)
    for working, liar in ((0b1111, 0), (0b1111, 3), (0b0111, 1)):
        counts, first = liars.sweep(working, liar, step=STEP * (997 if bench.quick else 1))
        rows.append((bin(working), liar, *counts, first))
        total += counts
    bench.table(
        "model: one liar, one tick",
        ("working set", "liar", "cases", "honest excluded", "no quorum", "wrong", "first"),
        rows,
    )
    bench.result("model_cases", int(total[0]))
    bench.result("model_honest_excluded", int(total[1]), "", "floor 0")
    bench.result("model_no_quorum", int(total[2]), "", "floor 0")
    bench.result("model_wrong_torques", int(total[3]), "", "floor 0")


@dataclass
class Count:
    """What happened in the ticks of one class."""

    ticks: int = 0
    faulty: int = 0
    held: int = 0
    wrong: int = 0
    framed: int = 0
    late: int = 0
    named: int = 0


class Campaign:
    """Scenarios of a few ticks, each from a whole working set."""

    def __init__(
        self, group: ReplicaGroup, seed: int, counts: dict[str, Count], notes: list[str]
    ) -> None:
        self.group = group
        self.field = Field(group, seed)
        self.random = self.field.random
        self.counts, self.notes = counts, notes

    def run(self, ticks: int) -> None:
        """Scenarios of all classes, for so many ticks at least."""
        end = self.ticks + ticks
        while self.ticks < end:
            self.scenario(CLASSES[int(self.random.integers(len(CLASSES)))])

    @property
    def ticks(self) -> int:
        """Ticks so far."""
        return sum(count.ticks for count in self.counts.values())

    def scenario(self, name: str) -> None:
        """One faulty processor at a time, then a group that is whole again."""
        group, random, count = self.group, self.random, self.counts[name]
        self.field.place()
        victim = int(random.integers(group.p))
        liar = (victim + 1 + int(random.integers(group.p - 1))) % group.p
        for _ in range(int(random.integers(4, 40))):
            kind = name
            if name == "taking turns":
                liar = (victim + 1 + int(random.integers(group.p - 1))) % group.p
                kind = "lying_vote" if random.random() < 0.8 else "two_faced"
            # Three at least have to be there, and the faulty one in the working set.
            able = voting.members(group.working_set) > 2 and (group.working_set >> liar) & 1
            if able and random.random() < 0.7:
                group.inject(self.fault(kind, liar, victim), self.field.t)
            self.tick(count, name)
            if not able and random.random() < 0.5:
                break
        group.clear_faults()
        group.reset()

    def fault(self, kind: str, liar: int, victim: int) -> Fault:
        """A fault of one tick."""
        random = self.random
        seed = int(random.integers(2**31))
        while kind == "lying_vote" and accused_by(liar, seed, self.group.p) != victim:
            seed = int(random.integers(2**31))
        size = float(10.0 ** random.uniform(-9, 3)) if random.random() < 0.8 else 0.0
        return Fault(
            (liar,), kind, 0.0, 0.5 * PERIOD, int(random.integers(24)), magnitude=size, seed=seed
        )

    def tick(self, count: Count, name: str) -> None:
        """One tick, and who was blamed in it."""
        group = self.group
        errors = group.errors
        result, right = self.field.tick()
        faulty = group.injected
        count.ticks += 1
        count.faulty += int(faulty.any())
        if not result.voted:
            count.held += 1
            self.notes.append(f"{name}: tick {result.number} held: {group.reason()}")
        elif not right:
            count.wrong += 1
            self.notes.append(f"{name}: tick {result.number} has a wrong torque")
        for k in np.flatnonzero(group.errors > errors):
            if faulty[k]:
                count.named += 1
                continue
            seen = group.processors()[k]
            if seen.error in TIMELY:
                count.late += 1
            else:
                count.framed += 1
                self.notes.append(f"{name}: honest {k} blamed beside {faulty}: {seen.detail}")


BURN = "while True: pass"
DISTURB = """
import random, sys, time
from ft_controller.scheduling import raise_thread
raise_thread(int(sys.argv[1]), int(sys.argv[2]))
while True:
    time.sleep(random.uniform(2e-4, 6e-3))
    end = time.perf_counter() + random.uniform(2e-5, 4e-4)
    while time.perf_counter() < end:
        pass
"""


@contextlib.contextmanager
def load(disturbed: bool) -> Iterator[None]:
    """Keep cores busy; or disturb what runs with real-time priority, too."""
    commands = [["-S", "-c", BURN] for _ in range(2 * (os.cpu_count() or 1))]
    if disturbed:
        commands += [["-c", DISTURB, str(PRIORITY), str(rank)] for rank in (SIMULATOR, VOTER + 1)]
    # Should this process be killed, nothing may go on burning the machine.
    dying = partial(die_with_parent, os.getpid())
    running = [subprocess.Popen([sys.executable, *c], preexec_fn=dying) for c in commands]  # noqa: PLW1509
    try:
        yield
    finally:
        for process in running:
            process.kill()
        for process in running:
            process.wait()


def campaign(bench: Bench) -> None:
    """A million ticks, see above."""
    ticks = 10_000 if bench.quick else TICKS
    counts = {name: Count() for name in CLASSES}
    notes: list[str] = []
    began = time.monotonic()
    for seed, priority, share in ((2026, 0, ticks // 100), (2027, PRIORITY, ticks - ticks // 100)):
        setting = "real-time priority" if priority else "ordinary scheduling"
        with ReplicaGroup(
            Arm.four_link(),
            timing=Timing.patient(),
            clean_ticks=4,
            restart_stalled=0.0,
            realtime_priority=priority,
        ) as group:
            work = Campaign(group, seed, counts, notes)
            end = work.ticks + share
            with load(priority > 0):
                while work.ticks < end:
                    work.run(min(end - work.ticks, 50_000))
                    bench.say(
                        f"  {work.ticks} ticks, {time.monotonic() - began:.0f} s, {setting},"
                        f" load average {os.getloadavg()[0]:.1f}, {len(notes)} notes"
                    )
    rows = [
        (name, c.ticks, c.faulty, c.held, c.wrong, c.framed, c.late, c.named)
        for name, c in counts.items()
    ]
    bench.table(
        f"four processes, one faulty at a time ({time.monotonic() - began:.0f} s)",
        ("class", "ticks", "with a fault", "no quorum", "wrong", "honest out", "late out", "named"),
        rows,
    )
    for note in notes[:20]:
        bench.say(f"  note: {note}")
    bench.result("masking_ticks", sum(row[1] for row in rows))
    for key, column in (("no_quorum", 3), ("wrong_torques", 4), ("honest_excluded", 5)):
        bench.result(f"masking_{key}", sum(row[column] for row in rows), "", "floor 0")
    bench.result("masking_late_excluded", sum(row[6] for row in rows))
