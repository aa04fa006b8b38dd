"""The field of the fault-injection campaigns: a moving arm, and the right torque for every tick."""

from __future__ import annotations

import time

import numpy as np

from ft_controller import Arm, Plant, ReplicaGroup, Tick, Trajectory, dynamics, plan

__all__ = ["MASKED", "PERIOD", "Field", "settle"]

PERIOD = 1e-3  # [s]

# What docs/ft.md promises for four processors and the controller "echo".
MASKED = (
    "wrong_element",
    "nan",
    "stuck",
    "slow",
    "silent",
    "crash",
    "two_faced",
    "corrupted_memory",
    "lying_vote",
    "wild_write",
    "sigkill",
    "sigstop",
)


class Field:
    """An arm on its way, with a reference computed undisturbed beside every tick."""

    def __init__(self, group: ReplicaGroup, seed: int) -> None:
        self.group = group
        self.random = np.random.default_rng(seed)
        self.arm = group.arm
        self.t = 0.0
        self.motions = []
        start = np.linspace(0.3, 0.6, self.arm.n)
        for goal in ((0.6, 0.8), (0.9, 0.5), (0.4, 1.0), (1.1, 0.3)):
            if isinstance(self.arm, Arm):
                motion = plan(self.arm, start, goal).trajectory
            else:
                end = self.random.uniform(-1.0, 1.0, self.arm.n)
                motion = Trajectory.through([0.0, 2.0], [start, end])
            self.motions.append(motion)
            start = motion.sample(motion.duration)[0]

    def place(self) -> None:
        """A random motion at a random phase of it, with a random tracking error."""
        self.motion = self.motions[self.random.integers(len(self.motions))]
        self.phase = self.random.uniform(-0.1, 1.1) * self.motion.duration
        q, v, _ = self.motion.sample(self.phase)
        n = self.arm.n
        self.plant = Plant(
            self.arm.perturbed(int(self.random.integers(1000)), 0.05),
            q=q + self.random.normal(0.0, 0.01, n),
            qdot=v + self.random.normal(0.0, 0.05, n),
        )
        self.begin = self.t

    def tick(self) -> tuple[Tick, bool]:
        """One tick; the result and whether its torque is the right one, bit for bit."""
        q, v = self.plant.measure()
        qd, vd, ad = self.motion.sample(self.phase + self.t - self.begin)
        result = self.group.tick(q, v, qd, vd, ad, self.t)
        right = dynamics.computed_torque(
            self.arm.links, dynamics.joints(q, v, qd, vd, ad, locked=self.group.locked)
        )
        self.plant.step(result.torque, PERIOD)
        self.t += PERIOD
        return result, bool((result.torque == right).all())


def settle(group: ReplicaGroup, t: float = 0.0) -> None:
    """Back to a whole group, at a time of the controller that stands still meanwhile [s]."""
    zero = np.zeros(group.arm.n)
    group.clear_faults()
    everybody = (1 << group.p) - 1
    end = time.monotonic() + 60.0
    quiet = 0
    while quiet < 2:
        group.reset()
        group.tick(zero, zero, zero, zero, zero, t)
        fine = group.working_set == everybody and all(
            p.state == "WORKING" for p in group.processors()
        )
        quiet = quiet + 1 if fine else 0
        if not fine:
            time.sleep(0.001)
        if time.monotonic() > end:
            raise RuntimeError(f"the group does not recover: {group.processors()}")
