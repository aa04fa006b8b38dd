import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from ft_controller import (
    CONTROLLERS,
    Arm,
    Fault,
    Limits,
    Plant,
    ReplicaGroup,
    State,
    Timing,
    TooLarge,
    plan,
)
from ft_controller.faults import KINDS
from ft_controller.voting import Comparison

#: What a processor is blamed for that said something wrong.
VALUE = (Comparison.DIFFERS, Comparison.BAD_CHECKSUM, Comparison.NOT_FINITE)


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_every_controller_gives_the_same_bits(bench, controller):
    bench.group.set_controller(controller)
    assert bench.run(50) == (50, 0, 0)


@pytest.mark.parametrize("controller", ["high_tolerance", "lower_tolerance", "echo"])
@pytest.mark.parametrize("kind", ["wrong_element", "nan", "corrupted_memory", "silent", "crash"])
def test_one_fault_in_compared_data_is_masked_in_the_same_tick_and_named(bench, controller, kind):
    group = bench.group
    for k in range(4):
        group.set_controller(controller)
        # Element 5 is M[1,1]: on the diagonal, so all three controllers compare it.
        group.inject(Fault((k,), kind, 0.0, 0.01, element=5, magnitude=0.1, seed=6), bench.t)
        right, wrong, missing = bench.run(15)
        assert (right, wrong) == (15 - missing, 0)
        # The shared-out controllers lose a tick when an owner dies between vote and torque.
        assert missing == 0 if controller == "echo" else missing <= 3
        seen = group.processors()[k]
        wanted = {
            "wrong_element": (Comparison.DIFFERS,),
            "nan": (Comparison.NOT_FINITE, Comparison.DIFFERS),
            # Damaged between two looks of the voter, a page has two faces.
            "corrupted_memory": (Comparison.BAD_CHECKSUM, Comparison.TWO_FACED),
            "silent": (Comparison.MISSING,),
            "crash": (Comparison.CRASHED, Comparison.MISSING),
        }[kind]
        assert seen.error in wanted, seen
        if kind == "wrong_element":
            assert "M[1,1]" in seen.detail
        others = [p for p in group.processors() if p.id != k]
        assert not any(p.state == "EXCLUDED" and p.error in VALUE for p in others)
        bench.clean()


@pytest.mark.parametrize(
    "kind", [k for k in KINDS[1:] if k != "colluding"] + ["sigkill", "sigstop"]
)
def test_echo_masks_every_kind_at_every_processor(bench, kind):
    for k in range(4):
        for seed in range(3):
            bench.group.inject(
                Fault((k,), kind, 0.0, 0.008, element=20, magnitude=5e-3, seed=seed), bench.t
            )
            assert bench.run(12) == (12, 0, 0), (kind, k, seed)
            bench.clean()


def test_what_the_paper_does_not_compare_goes_through_and_ours_holds_it(bench):
    """tau of the paper's controllers is not voted on: the gap is real, and closed by echo."""
    fault = Fault((1,), "wrong_element", 0.0, 0.01, element=21, magnitude=5.0)  # tau[1]
    for controller, wrong in (("high_tolerance", True), ("lower_tolerance", True), ("echo", False)):
        bench.group.set_controller(controller, "round_robin")
        bench.group.inject(fault, bench.t)
        counts = bench.run(5)
        assert (counts[1] > 0) == wrong
        bench.clean()


#: What a processor may be blamed for that is only slow.
TIMELY = (Comparison.MISSING, Comparison.CRASHED)


def test_two_faced_processor_is_found_by_the_echo(bench):
    found = set()
    for seed in range(12):
        bench.group.inject(
            Fault((2,), "two_faced", 0.0, 0.02, element=3, magnitude=1.0, seed=seed), bench.t
        )
        assert bench.run(25) == (25, 0, 0)
        processors = bench.group.processors()
        found.add(processors[2].error)
        blamed = [vars(p) for p in processors if p.id != 2 and p.error not in (0, *TIMELY)]
        assert not blamed, (seed, blamed)
        bench.clean()
    assert found & {Comparison.TWO_FACED, Comparison.DIFFERS}


def test_a_liar_cannot_vote_an_honest_processor_out(bench):
    for seed in range(8):
        bench.group.inject(Fault((0,), "lying_vote", 0.0, 0.02, seed=seed), bench.t)
        assert bench.run(25) == (25, 0, 0)
        assert bench.group.working_set & 0b1110 == 0b1110
        bench.clean()


def test_a_tie_is_held_then_ramped_down_and_says_why(bench):
    group = bench.group
    group.safety.limits = Limits.of(group.arm, hold=0.01, ramp=0.02)
    bench.run(3)
    last = bench.tick()[0].torque
    group.inject(Fault((0, 3), "colluding", element=20, magnitude=3.0), bench.t)
    states, torques = [], []
    for _ in range(45):
        result, _tau = bench.tick()
        assert not result.voted
        states.append(result.state)
        torques.append(result.torque)
    assert states[:9] == [State.HOLD] * 9
    assert all((t == last).all() for t in torques[:9])
    assert states[-1] == State.STOPPED and State.RAMP in states
    order = [s for i, s in enumerate(states) if i == 0 or s != states[i - 1]]
    assert order == [State.HOLD, State.RAMP, State.STOPPED]
    assert group.reason() == (
        "no quorum: 3 of 4 must agree, 2 answers: processors 0, 3 against processors 1, 2, first"
        " in tau[0]"
    )
    # The fault goes away: it stays stopped until it is told otherwise.
    group.clear_faults()
    assert bench.tick()[0].state == State.STOPPED
    group.reset()
    assert bench.tick()[0].state == State.RUN
    group.safety.limits = Limits.of(group.arm)


def test_late_is_not_said_to_be_disagreeing(bench):
    """Two of four stand still: the reason names them, and nobody is said to differ."""
    group = bench.group
    bench.run(3)
    group.set_timing(Timing(grace=0.02, hard=0.2, late=0.25, probe=0.0005, stall=20.0))
    stopped = [group.processes.pids[k] for k in (1, 3)]
    try:
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        result, _tau = bench.tick()
        assert (result.voted, result.state) == (False, State.HOLD)
        assert group.reason() == (
            "no quorum: 3 of 4 must agree, 2 answered within 200 ms; late: processors 1, 3"
        )
        assert group.working_set == 0b1111
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        group.set_timing(Timing.lockstep())
    bench.until(lambda: bench.tick()[0].state == State.RUN)
    assert group.reason() == ""


def test_with_patience_a_late_quorum_is_a_quorum(bench):
    """Two of four stand still for a while, as on a busy machine: the torque is late, and right."""
    group = bench.group
    bench.run(3)
    stopped = [group.processes.pids[k] for k in (0, 2)]

    def go_on():
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)

    for patience, in_time in ((0.0, False), (5.0, True)):
        group.set_timing(Timing.realtime(100.0, 20.0, patience))
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        wakes = threading.Timer(0.1, go_on)
        wakes.start()
        try:
            result, tau = bench.tick()
        finally:
            wakes.join()
        assert result.voted == in_time
        assert not in_time or (result.torque == tau).all()
        assert group.working_set == 0b1111
        group.set_timing(Timing.lockstep())
        bench.until(lambda: bench.tick()[0].state == State.RUN)


def test_an_owner_that_is_late_is_named(bench):
    group = bench.group
    group.set_controller("parallel")
    bench.run(3)
    group.set_timing(Timing(grace=0.02, hard=0.2, late=0.25, probe=0.0005, stall=20.0))
    pid = group.processes.pids[2]
    try:
        os.kill(pid, signal.SIGSTOP)
        assert not bench.tick()[0].voted
        assert group.reason() == "no torque: nothing within 200 ms from processor 2"
    finally:
        os.kill(pid, signal.SIGCONT)
        group.set_timing(Timing.lockstep())


def test_a_short_tie_is_held_and_forgotten(bench):
    bench.run(3)
    bench.group.inject(Fault((0, 3), "colluding", 0.0, 0.003, element=20, magnitude=3.0), bench.t)
    right, wrong, missing = bench.run(10)
    assert wrong == 0 and missing in (2, 3) and right == 10 - missing
    assert bench.group.working_set == 0b1111


def test_two_left_that_disagree_stop_and_never_guess(bench):
    group = bench.group
    faults = [
        Fault((k,), "wrong_element", 0.003 * k, 10.0, element=20, magnitude=1.0 + k)
        for k in range(3)
    ]
    group.inject(faults, bench.t)
    bench.run(2)
    assert group.working_set == 0b1110 and not group.degraded
    bench.run(3)
    assert group.working_set == 0b1100 and group.degraded and not group.unverified
    _right, wrong, missing = bench.run(10)
    assert wrong == 0 and missing >= 9


def test_all_but_one_fail_by_an_overlapping_schedule_and_it_goes_on(bench):
    group = bench.group
    schedule = [
        Fault((0,), "sigkill", 0.000),
        Fault((1,), "silent", 0.004, 10.0),
        Fault((3,), "silent", 0.012, 10.0),
    ]
    group.inject(schedule, bench.t)
    wrong = 0
    seen = set()
    for _ in range(30):
        result, tau = bench.tick()
        wrong += result.voted and not (result.torque == tau).all()
        seen.add(group.working_set & 0b1110)
    assert wrong == 0
    assert 0b0100 in seen and 0b1100 in seen
    group.clear_faults()
    bench.until(lambda: group.working_set == 0b1111)


def test_one_alone_is_flagged_and_can_be_forbidden(bench):
    group = bench.group
    group.inject([Fault((0, 1, 3), "silent", 0.0, 10.0)], bench.t)
    group.set_timing(Timing(grace=0.005, hard=0.02, late=0.02, probe=0.0005, stall=0.0))
    bench.until(lambda: group.working_set == 0b0100)
    assert bench.run(3) == (3, 0, 0)
    assert group.degraded and group.unverified
    group.allow_single = False
    assert bench.run(2) == (0, 0, 2)
    assert group.reason() == "only processor 2 is left, and must not work alone"
    group.allow_single = True
    group.set_timing(Timing.lockstep())


def test_readmission_takes_clean_ticks_and_each_time_twice_as_many(bench):
    group = bench.group
    group.set_timing(Timing.patient())  # a tick that is late on a busy machine is not a clean one
    waits = []
    for _ in range(4):
        group.inject(Fault((1,), "wrong_element", 0.0, 0.0015, element=0, magnitude=1.0), bench.t)
        bench.tick()
        assert not group.working_set & 2
        ticks = 0
        while not group.working_set & 2:
            assert bench.run(1) == (1, 0, 0)
            ticks += 1
            assert ticks < 1000
        waits.append(ticks)
    assert waits == [20, 40, 80, 160]
    group.reset()
    group.set_timing(Timing.lockstep())


def test_a_dead_process_is_replaced_and_readmitted(bench):
    group = bench.group
    old = group.processes.pids[2]
    os.kill(old, signal.SIGKILL)
    bench.until(lambda: group.processors()[2].error == Comparison.CRASHED)
    bench.until(lambda: group.working_set == 0b1111)
    assert group.processes.pids[2] not in (0, old)
    assert "SIGKILL" in group.processors()[2].detail


def test_a_wild_write_gets_sigsegv_not_a_corrupted_vote(bench):
    group = bench.group
    for seed in range(3):
        before = group.processors()[1].restarts
        group.inject(Fault((1,), "wild_write", 0.0, 0.002, seed=seed), bench.t)
        assert bench.run(10) == (10, 0, 0)
        bench.until(lambda b=before: group.processors()[1].restarts > b)
        assert "SIGSEGV" in group.processors()[1].detail
        bench.clean()


def test_pages_of_others_are_read_only_and_cannot_be_made_writable(bench):
    group = bench.group
    maps = Path(f"/proc/{group.processes.pids[0]}/maps").read_text().splitlines()
    pages = [line.split()[1] for line in maps if "memfd:ft_pages" in line]
    assert sorted(set(pages)) == ["r--s", "rw-s"]
    assert pages.count("rw-s") == 1
    inputs = [line.split()[1] for line in maps if "memfd:ft_input" in line]
    assert inputs == ["r--s"]
    assert not [
        fd
        for fd in os.listdir(f"/proc/{group.processes.pids[0]}/fd")
        if "memfd" in os.readlink(f"/proc/{group.processes.pids[0]}/fd/{fd}")
    ]


def test_a_locked_joint_gets_no_torque_and_its_processor_other_work(bench):
    group = bench.group
    for controller in CONTROLLERS:
        group.set_controller(controller)
        group.lock(2)
        assert bench.run(5) == (5, 0, 0)
        assert bench.tick()[0].torque[2] == 0.0
        group.lock(2, False)
    group.set_controller("lower_tolerance")
    group.lock(3)
    group.inject(Fault((1,), "wrong_element", 0.0, 1.0, element=0, magnitude=1.0), bench.t)
    assert bench.run(5)[1] == 0
    assert group.owners[:3] == [0, 3, 2]


@pytest.mark.parametrize("p", [3, 7])
@pytest.mark.parametrize("n", [1, 2, 9])
def test_any_number_of_processors_and_joints(p, n):
    arm = Arm.rods(n, friction=0.1, gravity=9.81)
    rng = np.random.default_rng(n)
    with ReplicaGroup(arm, processors=p, limits=Limits.of(arm, torque=np.full(n, 1e5))) as group:
        zero = np.zeros(n)
        for controller in CONTROLLERS:
            group.set_controller(controller)
            q, v = rng.uniform(-1, 1, (2, n))
            tick = group.tick(q, v, q, v, zero, 0.0)
            assert tick.voted
            assert tick.torque == pytest.approx(
                arm.inverse_dynamics(q, v, zero), rel=1e-9, abs=1e-9
            )
        group.set_controller("echo")
        group.inject(Fault((p - 1,), "wrong_element", magnitude=1.0), 0.0)
        tick = group.tick(q, v, q, v, zero, 0.0)
        assert tick.voted and group.working_set == (1 << (p - 1)) - 1


def test_sixteen_processors_outvote_seven_liars():
    with ReplicaGroup(Arm.four_link(), processors=16) as group:
        zero = np.zeros(4)
        q = np.full(4, 0.3)
        right = group.tick(q, zero, zero, zero, zero, 0.0).torque
        group.inject(Fault(tuple(range(7)), "colluding", element=20, magnitude=1.0), 0.0)
        tick = group.tick(q, zero, zero, zero, zero, 0.0)
        assert tick.voted and (tick.torque == right).all()
        assert group.working_set == 0xFFFF & ~0x7F
    for p in (2, 17):
        with pytest.raises(TooLarge):
            ReplicaGroup(Arm.four_link(), processors=p)


def test_tracking_with_a_failed_processor_is_the_same_bit_for_bit(bench):
    group = bench.group
    start = np.array([0.3, 0.4, 0.5, 0.6])
    motion = plan(group.arm, start, [0.6, 0.8], duration=1.0).trajectory

    def run(faults):
        bench.clean()
        plant = Plant(group.arm.perturbed(7, 0.05), q=start, position_noise=1e-5, seed=1)
        group.inject(faults, 0.0)
        path = []
        for k in range(300):
            q, v = plant.measure()
            tick = group.tick(q, v, *motion.sample(1e-3 * k), 1e-3 * k)
            assert tick.voted
            plant.step(tick.torque, 1e-3)
            path.append(plant.q.copy())
        group.clear_faults()
        return np.array(path).tobytes()

    clean = run([])
    assert run([Fault((1,), "wrong_element", 0.05, element=20, magnitude=40.0)]) == clean
    assert run([Fault((3,), "sigkill", 0.1)]) == clean
    assert run([Fault((0,), "two_faced", 0.0, magnitude=1.0, seed=5)]) == clean


@pytest.mark.slow
def test_soak_with_random_faults(bench):
    """Random faults, one processor at a time, for as long as it takes to see many of each kind."""
    group = bench.group
    rng = np.random.default_rng(0)
    kinds = [k for k in KINDS[1:] if k != "colluding"] + ["sigkill", "sigstop"]
    end = time.monotonic() + float(os.environ.get("FT_SOAK_SECONDS", "10"))
    faults = right = 0
    while time.monotonic() < end:
        kind = str(rng.choice(kinds))
        k, length = int(rng.integers(4)), float(rng.integers(1, 20)) * 1e-3
        size = float(10.0 ** rng.uniform(-6, 3)) if kind != "slow" else 1e-3
        fault = Fault(
            (k,), kind, 0.0, length, int(rng.integers(24)), size, int(rng.integers(2**31))
        )
        group.inject(fault, bench.t)
        counts = bench.run(30)
        assert counts == (30, 0, 0), (fault, counts)
        right += counts[0]
        faults += 1
        if faults % 7 == 0 or group.working_set != 0b1111:
            bench.clean()
    assert faults > 20
    assert (
        psutil.Process(group.processes.supervisor_pid).num_fds() < 40
    )  # nothing piles up over the restarts


SCRIPT = """
import sys, time
from ft_controller import Arm, ReplicaGroup
import numpy as np
group = ReplicaGroup(Arm.four_link())
group.start()
zero = np.zeros(4)
print(*group.processes.pids, group.processes.supervisor_pid, flush=True)
while True:
    group.tick(zero, zero, zero, zero, zero, 0.0)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_no_orphans_when_the_owner_dies(processes, number):
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
    owner = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        text=True,
    )
    try:
        pids = [int(word) for word in owner.stdout.readline().split()]
        assert len(pids) == 5
        group = [psutil.Process(pid) for pid in pids]
        # One of them is stopped: it cannot even hear that it should go.
        os.kill(pids[0], signal.SIGSTOP)
        owner.send_signal(number)
        owner.wait(10.0)
        assert processes.gone(group)
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()


def test_a_normal_stop_leaves_nothing(processes):
    before = processes.shared_memory()
    group = ReplicaGroup(Arm.four_link(), processors=3)
    group.start()
    children = processes.family(os.getpid())
    mine = [p for p in children if p.pid in (*group.processes.pids, group.processes.supervisor_pid)]
    assert len(mine) == 4
    assert len(processes.shared_memory()) > len(before)
    group.close()
    group.close()
    assert processes.gone(mine)
    assert processes.shared_memory() == before


def test_the_process_supervisor_takes_its_processors_along(processes):
    group = ReplicaGroup(Arm.four_link(), processors=3)
    group.start()
    try:
        mine = [psutil.Process(pid) for pid in group.processes.pids]
        os.kill(group.processes.supervisor_pid, signal.SIGKILL)
        assert processes.gone(mine)
    finally:
        group.close()


def still(group, t=0.0):
    """One tick of an arm at rest."""
    zero = np.zeros(group.arm.n)
    return group.tick(zero, zero, zero, zero, zero, t)


def tick_until(group, condition, seconds=60.0):
    """Tick until something holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, (group.reason(), [vars(p) for p in group.processors()])
        still(group)
        time.sleep(0.001)


@pytest.fixture
def fresh():
    """A group whose process supervisor may be killed."""
    with ReplicaGroup(
        Arm.four_link(), clean_ticks=5, restart_delay=0.001, restart_stalled=0.0
    ) as group:
        still(group)
        group.safety.limits = Limits.of(group.arm, hold=0.01, ramp=0.01)
        yield group


def test_a_process_supervisor_that_dies_is_replaced_and_one_reset_brings_the_arm_back(
    fresh, processes
):
    group = fresh
    old, children = (
        group.processes.supervisor_pid,
        [psutil.Process(pid) for pid in group.processes.pids],
    )
    os.kill(old, signal.SIGKILL)
    assert processes.gone(children)
    t = 1.0
    while group.safety.state != State.STOPPED:
        t += 0.005
        assert not still(group, t).voted
    tick_until(group, lambda: group.processes.started == 2)
    assert group.processes.supervisor_pid != old
    assert group.working_set == 0
    # Nobody is back yet: the answer says what is waited for, and nobody has to ask again.
    waits = group.reset()
    assert waits == (
        "no processor works, 0 of 4 are alive: control begins when 3 of them agree for 5 ticks;"
        " processors 0, 1, 2, 3: being started"
    )
    assert still(group).state == State.IDLE
    assert "control begins when 3 of them agree" in group.reason()
    tick_until(group, lambda: group.safety.state == State.RUN)
    tick_until(group, lambda: group.working_set == 0b1111)
    assert group.reset() == ""
    assert all(p.restarts == 1 for p in group.processors())
    assert all("SIGKILL" in p.detail for p in group.processors())
    # And again: nothing is used up.
    os.kill(group.processes.supervisor_pid, signal.SIGKILL)
    tick_until(group, lambda: group.processes.started == 3)
    group.reset()
    tick_until(group, lambda: group.working_set == 0b1111)
    assert {psutil.Process(pid).ppid() for pid in group.processes.pids} == {
        group.processes.supervisor_pid
    }


def test_a_stopped_supervisor_is_replaced_without_a_lost_tick(processes):
    """SIGSTOP: its processors work on, but one that dies would not come back."""
    with ReplicaGroup(
        Arm.four_link(), timing=Timing.patient(), restart_delay=0.001, restart_stalled=0.5
    ) as group:
        assert still(group).voted
        old = group.processes.supervisor_pid
        before = [psutil.Process(pid) for pid in (old, *group.processes.pids)]
        os.kill(old, signal.SIGSTOP)
        end = time.monotonic() + 60.0
        while group.processes.supervisor_pid == old:
            assert time.monotonic() < end
            assert still(group).voted
            time.sleep(0.002)
        assert group.processes.started == 2 and group.working_set == 0b1111
        for _ in range(20):
            assert still(group).voted
        assert group.exclusions == 0 and group.safety.state == State.RUN
        assert processes.gone(before)
        # The new one does its work.
        dead = group.processes.pids[1]
        os.kill(dead, signal.SIGKILL)
        tick_until(
            group, lambda: group.processes.pids[1] not in (0, dead) and group.working_set == 0b1111
        )


def test_a_supervisor_that_goes_on_in_time_stays(processes):
    with ReplicaGroup(Arm.four_link(), processors=3, restart_stalled=0.5) as group:
        old, before = group.processes.supervisor_pid, processes.family(os.getpid())
        os.kill(old, signal.SIGSTOP)
        tick_until(group, lambda: group.processes.started == 2)  # another one is on its way
        spare = [p for p in processes.family(os.getpid()) if p not in before]
        assert spare
        os.kill(old, signal.SIGCONT)
        tick_until(group, lambda: processes.gone(spare, 0.0))
        assert group.processes.supervisor_pid == old and still(group).voted


def test_all_die_at_once_and_come_back_with_or_without_a_reset(fresh):
    group = fresh
    for asked in (False, True):
        old = group.processes.pids
        for pid in old:
            os.kill(pid, signal.SIGKILL)
        tick_until(group, lambda: group.working_set == 0)
        if asked:
            group.reset()
        tick_until(group, lambda: group.working_set == 0b1111)
        assert not set(old) & set(group.processes.pids)
    assert group.processes.started == 1


def test_reset_says_who_is_missing_and_goes_on_with_the_others():
    with ReplicaGroup(Arm.four_link(), restart=False, restart_stalled=0.0) as group:
        os.kill(group.processes.pids[1], signal.SIGKILL)
        tick_until(group, lambda: group.processors()[1].state == "DEAD")
        assert group.reset() == "processor 1: not started again"
        assert still(group).voted and group.working_set == 0b1101
        os.kill(group.processes.supervisor_pid, signal.SIGKILL)
        tick_until(group, lambda: group.working_set == 0)
        for _ in range(5):
            assert not still(group).voted
        assert group.processes.started == 1
    assert group.waits_for() == "the processors are not started"


def test_inputs_that_are_no_numbers_are_nobodys_fault(bench):
    group = bench.group
    zero = np.zeros(4)
    for bad in (np.nan, np.inf):
        for _ in range(5):
            assert not group.tick(np.full(4, bad), zero, zero, zero, zero, bench.t).voted
        assert group.working_set == 0b1111
        assert group.processors()[0].error == Comparison.SAME


def test_the_reason_counts_those_that_had_a_vote(bench):
    """The review has put one of the two out by the time that somebody asks."""
    group = bench.group
    group.set_timing(Timing.patient())
    wrong = [Fault((k,), "wrong_element", 0.0, 10.0, 20, 1.0 + k) for k in range(2)]
    group.inject(wrong[0], bench.t)
    bench.run(2)
    group.inject(wrong[1], bench.t)
    bench.run(2)
    assert group.working_set == 0b1100
    group.inject(Fault((3,), "nan", 0.0, 0.0015, element=20), bench.t)
    result, _tau = bench.tick()
    assert (result.voted, group.working_set) == (False, 0b0100)
    assert group.reason() == "no quorum: 2 of 2 must agree, damaged or not finite: processor 3"
    group.set_timing(Timing.lockstep())


def damage(pid, links):
    """Spoil every copy of the arm's model in the memory of a process."""
    pattern = links.tobytes()
    spoilt = 0
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "r+b", 0) as memory:
        for line in maps:
            area, rights = line.split()[:2]
            if not rights.startswith("rw-p") or "[stack]" in line:
                continue
            first, last = (int(x, 16) for x in area.split("-"))
            memory.seek(first)
            try:
                there = memory.read(last - first)
            except OSError:
                continue
            at = there.find(pattern)
            while at >= 0:
                memory.seek(first + at)
                memory.write((1.5 * links.view(float)).tobytes())
                spoilt += 1
                at = there.find(pattern, at + 1)
    return spoilt


def test_damaged_private_memory_leads_to_a_new_process():
    arm = Arm.four_link()
    with ReplicaGroup(arm, clean_ticks=5, restart_delay=0.001, restart_stalled=0.2) as group:
        q, zero = np.full(4, 0.3), np.zeros(4)
        old = group.processes.pids[2]
        try:
            assert damage(old, arm.links) > 0
        except PermissionError:
            pytest.skip("the memory of other processes may not be written here")
        end = time.monotonic() + 60.0
        seen = set()
        while group.processes.pids[2] in (0, old) or group.working_set != 0b1111:
            assert time.monotonic() < end, [vars(p) for p in group.processors()]
            assert group.tick(q, zero, zero, zero, zero, 0.0).voted
            seen.add(group.processors()[2].error)
            time.sleep(0.001)
        assert {Comparison.DIFFERS, Comparison.CRASHED} <= seen
        assert group.processes.pids[2] not in (0, old)
        assert [p.restarts for p in group.processors()] == [0, 0, 1, 0]
