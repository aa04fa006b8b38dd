"""Replica groups are slow to start: the tests that need no special one share them."""

import os
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from ft_controller import Arm, ReplicaGroup, Timing, dynamics

SETTINGS = {
    "timing": Timing.lockstep(),
    "restart_stalled": 0.0,
    "restart_delay": 0.001,
    "restart_delay_max": 0.001,
}


def reference(arm, q, v, qd, locked=0.0):
    """Equation (2) by one undisturbed processor."""
    return dynamics.computed_torque(arm.links, dynamics.joints(q, v, qd, locked=locked))


class Bench:
    """A replica group and an arm that is moved along a made-up path: no two ticks are alike."""

    def __init__(self, group):
        self.group = group
        self.t = 0.0

    @property
    def arm(self):
        return self.group.arm

    def inputs(self):
        phase = self.t * 1.7 + np.arange(self.arm.n)
        return 0.6 * np.sin(phase), 0.8 * np.cos(phase), 0.55 * np.sin(phase + 0.1)

    def tick(self):
        """One tick and the torque it should give."""
        self.t += 1e-3
        q, v, qd = self.inputs()
        zero = np.zeros(self.arm.n)
        result = self.group.tick(q, v, qd, zero, zero, self.t)
        return result, reference(self.arm, q, v, qd, locked=self.group.locked)

    def run(self, ticks):
        """Count of right, wrong and missing torques."""
        right = wrong = missing = 0
        for _ in range(ticks):
            result, tau = self.tick()
            if not result.voted:
                missing += 1
            elif (result.torque == tau).all():
                right += 1
            else:
                wrong += 1
        return right, wrong, missing

    def until(self, condition, seconds=30.0):
        """Tick until something holds."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, [vars(p) for p in self.group.processors()]
            self.tick()

    def clean(self):
        """No faults, everybody works."""
        self.group.clear_faults()
        everybody = (1 << self.group.p) - 1
        self.until(lambda: self.group.alive == everybody)
        self.group.reset()
        self.group.forget_errors()
        self.group.set_controller("echo", "balanced")
        for joint in range(self.arm.n):
            self.group.lock(joint, False)
        # A process that was stopped or slow needs a moment to answer again.
        quiet = 0
        end = time.monotonic() + 30.0
        while quiet < 3:
            assert time.monotonic() < end, [vars(p) for p in self.group.processors()]
            self.tick()
            fine = all(p.state == "WORKING" for p in self.group.processors())
            quiet = quiet + 1 if fine else 0
            if not fine:
                self.group.reset()


@pytest.fixture(scope="session")
def groups():
    """Replica groups by number of processors, started when first asked for."""
    started = {}

    def get(p=4):
        if p not in started:
            group = ReplicaGroup(Arm.four_link(), processors=p, **SETTINGS)
            group.start()
            started[p] = Bench(group)
        started[p].clean()
        return started[p]

    yield get
    for bench in started.values():
        bench.group.close()


@pytest.fixture(scope="session")
def make_bench():
    """Replica groups of other arms; they end with the session."""
    started = []

    def make(arm, **options):
        group = ReplicaGroup(arm, **{**SETTINGS, **options})
        started.append(group)
        group.start()
        made = Bench(group)
        made.tick()  # compiles the reference, which takes longer than any wait below
        return made

    yield make
    for group in started:
        group.close()


@pytest.fixture
def bench(groups):
    """Four processors, undisturbed."""
    return groups(4)


def family(pid):
    """The processes below one."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def gone(processes, seconds=10.0):
    """Whether all of them end (zombies count as ended)."""
    end = time.monotonic() + seconds
    while any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in processes):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def shared_memory():
    """Names in /dev/shm, and memory files that this process holds."""
    names = {str(p) for p in Path("/dev/shm").glob("*ft_*")}
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = os.readlink(entry)
        except OSError:
            continue
        if "memfd:ft_" in target:
            names.add(target)
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "memfd:ft_" in line:
            names.add(line)
    return names


@pytest.fixture
def processes():
    """Looks at processes and shared memory: family, gone, shared_memory."""
    return SimpleNamespace(family=family, gone=gone, shared_memory=shared_memory)


@pytest.fixture
def torque():
    """Equation (2) by one undisturbed processor."""
    return reference
