"""A replica group: processors, voter and safety supervisor as one controller.

with ReplicaGroup(Arm.four_link(), processors=4, controller="echo") as group:
    tick = group.tick(q, qdot, q_d, qdot_d, qddot_d, t)
    send(tick.torque)
"""

from __future__ import annotations

import dataclasses
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import typeof
from numpy.typing import ArrayLike

from ft_controller import explain, judge, processor, voter, voting
from ft_controller.arm import Arm
from ft_controller.ballot import Ballot
from ft_controller.controllers import CONTROLLERS, redundant
from ft_controller.dynamics import JOINT
from ft_controller.errors import ArmError, ReplicaError, TooLarge
from ft_controller.explain import Processor
from ft_controller.faults import KINDS, SIGNALS, Fault, FaultKind, FaultTable
from ft_controller.limits import Limits
from ft_controller.messages import FAULT, MAX_PROCESSORS, MIN_PROCESSORS, Layout, Setup, Shared
from ft_controller.processes import ReplicaProcesses
from ft_controller.records import Array, Flags, Words
from ft_controller.safety_supervisor import Reason, SafetySupervisor, State
from ft_controller.scheduling import VOTER, raise_thread
from ft_controller.serial_arm import SerialArm
from ft_controller.timing import Timing
from ft_controller.voting import Comparison, Reconfiguration
from kin_core import checks

__all__ = ["RECONFIGURATIONS", "ReplicaGroup", "Tick", "warm"]

RECONFIGURATIONS = tuple(way.name.lower() for way in Reconfiguration)


@dataclass(frozen=True)
class Tick:
    """What came out of one tick.

    Attributes:
        number: Number of the tick.
        torque: Torque for the motors, shape (n,) [N m].
        voted: Whether a quorum stands behind the torque (and the safety supervisor let it pass).
        state: State of the safety supervisor.
        working_set: Bit i = processor i, before the tick was reviewed.
        agreeing: Identical answers.
        quorum: Answers needed.
        vote_time: From the release of the inputs to the vote [s].
    """

    number: int
    torque: Array
    voted: bool
    state: State
    working_set: int
    agreeing: int
    quorum: int
    vote_time: float


class ReplicaGroup:
    """A fault-tolerant computed-torque controller on p processes.

    Not for several threads at once. Use it as a context manager, or call :meth:`start` and
    :meth:`close`.

    Attributes:
        arm: The model of the arm; change it with :meth:`set_arm`.
        p: Number of processors.
        layout: Of the shared memory.
        timing: Deadlines; change them with :meth:`set_timing`.
        safety: The safety supervisor.
        softness: By what K_D is weakened, shape (n,); see :meth:`weaken`.
        processes: The processes.
    """

    def __init__(
        self,
        arm: SerialArm,
        processors: int = 4,
        controller: str = "echo",
        reconfiguration: str = "balanced",
        timing: Timing | None = None,
        limits: Limits | None = None,
        kp: ArrayLike = 100.0,
        kd: ArrayLike = 20.0,
        tolerance: float = 0.0,
        clean_ticks: int = 20,
        allow_single: bool = True,
        restart: bool = True,
        restart_delay: float = 0.02,
        restart_delay_max: float = 5.0,
        restart_stalled: float = 5.0,
        realtime_priority: int = 0,
    ) -> None:
        """Prepare a group; no process is started yet.

        Args:
            arm: The model of the arm.
            processors: How many, 3 to 16.
            controller: One of ``CONTROLLERS``.
            reconfiguration: One of ``RECONFIGURATIONS``.
            timing: Deadlines; default: lockstep.
            limits: What is plausible.
            kp: Gains of the position error, one or n [1/s^2].
            kd: Gains of the velocity error, one or n [1/s].
            tolerance: 0: answers must be identical; else relative difference that still agrees.
            clean_ticks: Clean ticks before the first readmission; doubles each time.
            allow_single: Go on with one processor whom nobody checks.
            restart: Start dead processes again, and their supervisor.
            restart_delay: First delay before a restart; doubles with each one [s].
            restart_delay_max: The longest delay [s].
            restart_stalled: A processor that is silent, or wrong again and again, for so long is
                killed and started again, and a process supervisor that is silent for so long is
                replaced; 0: never [s].
            realtime_priority: 0: ordinary scheduling; else SCHED_FIFO, if allowed: the processors
                with this priority, and the thread that votes two above.
        """
        if not MIN_PROCESSORS <= processors <= MAX_PROCESSORS:
            raise TooLarge(
                f"processors: must be {MIN_PROCESSORS} to {MAX_PROCESSORS}, got {processors}"
            )
        self.arm = self._next_arm = arm
        self.p = processors
        self.layout = Layout(processors, arm.n)
        self.timing = timing or Timing.lockstep()
        self.safety = SafetySupervisor(limits or Limits.of(arm), arm.falls)
        self._stalled = checks.within("restart_stalled", restart_stalled, 0.0, 1e6)
        self._priority = int(checks.within("realtime_priority", realtime_priority, 0, 90))
        self._setup = Setup(
            p=self.p,
            n=arm.n,
            links=arm.links.tolist(),
            restart=bool(restart),
            restart_delay=checks.within("restart_delay", restart_delay, 0.0, 60.0),
            restart_delay_max=checks.within("restart_delay_max", restart_delay_max, 0.0, 600.0),
            priority=self._priority,
        )
        self.processes = ReplicaProcesses(self._setup, self._stalled)
        self._planned = FaultTable(self.p, arm.n)
        self._onset: dict[tuple[int, int], int] = {}
        self._signalled: dict[tuple[int, int], int] = {}
        self._faulty = False
        self._joints = np.zeros(arm.n, JOINT)
        self._faults = np.zeros(self.p, FAULT)
        self._ballot = Ballot.of(self.layout)
        self._vote = self._ballot.vote
        self.set_gains(kp, kd)
        self._vote["tolerance"] = checks.within("tolerance", tolerance, 0.0, 1e-3)
        self._vote["clean_ticks"] = int(checks.within("clean_ticks", clean_ticks, 1, 1_000_000))
        self.allow_single = allow_single
        self.set_controller(controller, reconfiguration)
        self.set_timing(self.timing)
        self._held = 0
        self._voting_thread = 0
        self._compiled: tuple[Callable[..., Any], Callable[..., Any]] | None = None

    # ------------------------------------------------------------------ life

    def start(self, timeout: float = 180.0) -> None:
        """Start the processes and wait until all of them answer.

        Raises:
            ReplicaError: They did not come up in time.
        """
        if self.processes.mapped:
            return
        try:
            self.processes.start([0] * self.p)
            self._await_all(timeout)
        except BaseException:
            self.close()
            raise

    def _await_all(self, timeout: float) -> None:
        self._collect_votes()  # compiles the voter, if nobody has, while the processors warm up
        self._review_votes()
        self._ballot.records[:] = 0
        deadline = time.monotonic() + timeout
        everybody = (1 << self.p) - 1
        while self.alive != everybody:
            if not self.processes.now.running:
                raise ReplicaError("the process supervisor ended before the processors were up")
            if time.monotonic() > deadline:
                raise ReplicaError(f"the processors did not come up within {timeout:g} s")
            time.sleep(0.002)
        self._take_all_in()
        while True:
            self._collect_votes()
            self._review_votes()
            if self.working_set == everybody and not self._ballot.records["late_run"].any():
                return
            if time.monotonic() > deadline:
                raise ReplicaError(f"the processors did not answer within {timeout:g} s")

    def _take_all_in(self) -> None:
        """All that are alive are the working set; nothing is held against them."""
        self._vote["working_set"] = self.alive
        self._vote["suspects"] = 0
        records = self._ballot.records
        for name in ("penalty", "late_run", "clean", "wrong_since"):
            records[name] = 0
        records["clean_needed"] = self._vote["clean_ticks"]

    def close(self) -> None:
        """End all processes and give the memory back; may be called twice."""
        self.processes.close()

    def __enter__(self) -> ReplicaGroup:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------ ticks

    def tick(self, *inputs: Any) -> Tick:
        """One whole tick with the inputs of :meth:`vote`: vote, torque, review."""
        result = self.vote(*inputs)
        self.review()
        return result

    def vote(
        self,
        q: ArrayLike,
        qdot: ArrayLike,
        qd: ArrayLike,
        vd: ArrayLike,
        ad: ArrayLike,
        t: float,
        fresh: bool = True,
        due_ns: int = 0,
    ) -> Tick:
        """Release the inputs, and return as soon as the torque is sure or the deadline is over.

        Args:
            q: Measured positions, shape (n,) [rad].
            qdot: Measured velocities [rad/s].
            qd: Desired positions [rad].
            vd: Desired velocities [rad/s].
            ad: Desired accelerations [rad/s^2].
            t: Time of the controller; holds, ramps and faults go by it [s].
            fresh: False when the measurements are too old.
            due_ns: Monotonic time of the next tick, if known: the processors sleep until then [ns].
        """
        joints, vote = self._joints, self._vote
        joints["q"], joints["qdot"] = q, qdot
        joints["q_d"], joints["qdot_d"], joints["qddot_d"] = qd, vd, ad
        if self._faulty or len(self._planned):
            self._update_faults(t)
        if self._priority and self._voting_thread != threading.get_ident():
            self._voting_thread = threading.get_ident()
            vote["raised"] = raise_thread(self._priority, VOTER)
        working = self.working_set
        vote["next_due"] = due_ns
        voted = self._collect_votes()
        torque = self.safety.step(
            t,
            fresh,
            voted,
            self._ballot.tau,
            np.asarray(q, np.float64),
            np.asarray(qdot, np.float64),
        )
        state = self.safety.state
        if not voted:
            self._held += 1
        return Tick(
            number=int(vote["tick"]),
            torque=torque.copy(),
            voted=voted and state == State.RUN,
            state=state,
            working_set=working,
            agreeing=int(vote["agreeing"]),
            quorum=int(vote["quorum"]),
            vote_time=1e-9 * float(vote["vote_time"]),
        )

    def review(self) -> None:
        """Wait for the rest of the answers, judge, and change the working set."""
        self._review_votes()
        records = self._ballot.records
        exchanged, complete = self.processes.watch(records["generation"])
        if exchanged:
            self._compiled = None
            self.arm = self._next_arm  # whoever was started since knows no other
            if complete:
                # A quorum of them will have to agree on their first torque, as at the start.
                records["generation"] = self.processes.now.shared.processes.generation
                self._take_all_in()
        out = ~self.working_set & ((1 << self.p) - 1)
        if out and self._stalled > 0.0:
            self._restart_the_stalled(out)

    def _restart_the_stalled(self, out: int) -> None:
        """Kill those that were silent or wrong for long; others come in their place."""
        patience = 1e9 * self._stalled
        for k, record in enumerate(self._ballot.records):
            late = record["late_run"] > 0 and (
                self._vote["release"] - record["late_since"] > patience
            )
            # Its memory may be damaged; the next process has a good one.
            wrong = record["wrong_since"] > 0 and (
                record["wrong_last"] - record["wrong_since"] > patience
            )
            if voting.has(out, k) and (late or wrong):
                record["late_run"] = record["wrong_since"] = 0
                self.processes.signal(k, signal.SIGKILL)

    def _kernels(self, shared: Shared) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """Machine code of vote and review.

        Their arguments are tuples of arrays, whose types take longer to look up than the rest of
        the call. They do not change, so that is done once.
        """
        arguments = (self._ballot, shared, self._joints, self._faults)
        types = tuple(typeof(argument) for argument in arguments)
        return voter.release_and_vote.compile(types), judge.review.compile(types[:3])

    def _collect_votes(self) -> bool:
        shared = self.processes.now.shared
        if self._compiled is None:
            self._compiled = self._kernels(shared)
        return bool(self._compiled[0](self._ballot, shared, self._joints, self._faults))

    def _review_votes(self) -> None:
        if self._compiled is not None:
            self._compiled[1](self._ballot, self.processes.now.shared, self._joints)

    # ------------------------------------------------------------------ settings

    @property
    def controller(self) -> str:
        """Name of the controller in use."""
        return CONTROLLERS[int(self._vote["controller"])]

    @property
    def reconfiguration(self) -> str:
        """Name of the way in which work is shared out anew."""
        return RECONFIGURATIONS[int(self._vote["reconfiguration"])]

    def set_controller(self, controller: str = "", reconfiguration: str = "") -> None:
        """Change the controller from the next tick on; empty: as it is."""
        if controller:
            checks.one_of("controller", controller, CONTROLLERS)
        if reconfiguration:
            checks.one_of("reconfiguration", reconfiguration, RECONFIGURATIONS)
            self._vote["reconfiguration"] = RECONFIGURATIONS.index(reconfiguration)
        if controller:
            self._vote["controller"] = CONTROLLERS.index(controller)

    @property
    def allow_single(self) -> bool:
        """Whether one processor may go on alone; may be set between ticks."""
        return bool(self._vote["allow_single"])

    @allow_single.setter
    def allow_single(self, allowed: bool) -> None:
        self._vote["allow_single"] = bool(allowed)

    def set_gains(self, kp: ArrayLike, kd: ArrayLike) -> None:
        """Change the gains from the next tick on."""
        self._gains = self.arm.each("kp", kp, signed=False), self.arm.each("kd", kd, signed=False)
        self._joints["kp"], self._joints["kd"] = self._gains
        self.softness = np.ones(self.arm.n)

    def set_arm(self, arm: SerialArm) -> None:
        """Use another model of the arm, with another payload for instance, as soon as possible.

        New processors are started for it. They take over between two ticks when all of them are up.
        """
        if arm.n != self.arm.n or arm.links.dtype != self.arm.links.dtype:
            raise ArmError("arm", f"must be one of {self.arm.n} joints, of the same kind")
        self._next_arm = arm
        self._setup = dataclasses.replace(self._setup, links=arm.links.tolist())
        self.processes.change(self._setup, [int(g) for g in self._ballot.records["generation"]])

    def weaken(self, largest: float) -> None:
        """Use gains with K_D up to a value from the next tick on, and K_P to match [1/s].

        K_D is scaled by a factor and K_P by its square, so that the damping ratio stays. Gains that
        are small enough are used as they are.
        """
        kp, kd = self._gains
        factor = self.softness = np.minimum(1.0, largest / np.maximum(kd, 1e-12))
        self._joints["kp"], self._joints["kd"] = factor * factor * kp, factor * kd

    def set_timing(self, timing: Timing) -> None:
        """Change the deadlines from the next tick on."""
        self.timing = timing
        for name in ("grace", "hard", "late", "probe", "stall"):
            self._vote[name] = int(1e9 * getattr(timing, name))
        self._vote["late_ticks"] = timing.late_ticks

    def lock(self, joint: int, locked: bool = True) -> None:
        """Take a joint out of the control law, or back in; its processor gets other work."""
        if not 0 <= joint < self.arm.n:
            raise ArmError("joint", f"there are {self.arm.n} joints, got {joint}")
        self._joints[joint]["locked"] = 1.0 if locked else 0.0

    @property
    def locked(self) -> Flags:
        """Which joints are locked, shape (n,)."""
        return np.asarray(self._joints["locked"] != 0.0)

    def reset(self) -> str:
        """After a safe stop: all live processors work again, old penalties are forgotten.

        If nobody is alive, the next processors that most of all agree with are taken.

        Returns:
            What is still waited for, for people; empty if nothing is.
        """
        self.safety.reset()
        self._take_all_in()
        return self.waits_for()

    def waits_for(self) -> str:
        """Which processors there are not, and what that means; empty if all are alive."""
        if not self.processes.mapped:
            return "the processors are not started"
        alive = self.alive
        if alive == (1 << self.p) - 1 and self.working_set:
            return ""
        coming = "being started" if self._setup.restart else "not started again"
        dead = [k for k in range(self.p) if not voting.has(alive, k)]
        if self.working_set:
            return f"{explain.numbered(dead)}: {coming}"
        need = self.p // 2 + 1
        return (
            f"no processor works, {self.p - len(dead)} of {self.p} are alive: control begins when"
            f" {need} of them agree for {int(self._vote['clean_ticks'])} ticks"
            + (f"; {explain.numbered(dead)}: {coming}" if dead else "")
        )

    # ------------------------------------------------------------------ faults

    def inject(self, faults: Fault | Sequence[Fault], t: float) -> None:
        """Plan faults; their times count from ``t`` [s]. Nothing is planned if one is wrong."""
        self._planned.add([faults] if isinstance(faults, Fault) else list(faults), t)
        self._faulty = True

    def clear_faults(self) -> None:
        """End all faults, and let stopped processes go on."""
        self._planned.clear()
        self._update_faults(0.0)

    @property
    def faults(self) -> int:
        """Faults that are active or planned."""
        return len(self._planned)

    @property
    def injected(self) -> Flags:
        """Which processors carried out a fault in the last tick, signals apart, shape (p,)."""
        return np.asarray(self._faults["kind"] != FaultKind.NONE)

    def _update_faults(self, t: float) -> None:
        active = self._planned.active(t)
        tick = int(self._vote["tick"]) + 1
        self._faults["kind"] = FaultKind.NONE
        onset: dict[tuple[int, int], int] = {}
        signalled: dict[tuple[int, int], int] = {}
        for k, (_, fault) in active.items():
            key = (k, id(fault))
            if fault.kind in SIGNALS:
                if key not in self._signalled:
                    number = signal.SIGKILL if fault.kind == "sigkill" else signal.SIGSTOP
                    self.processes.signal(k, number)
                signalled[key] = 0 if fault.kind == "sigkill" else k + 1
                continue
            onset[key] = self._onset.get(key, tick)
            if fault.kind == "crash" and onset[key] != tick:
                # A crash happens once; a schedule that wants more of them says so.
                continue
            element = fault.element
            if element < 0:
                element = (fault.seed * 7919 + 13) % self.layout.data
            self._faults[k] = (
                KINDS.index(fault.kind),
                element,
                onset[key],
                fault.seed,
                fault.magnitude,
            )
        for key, stopped in self._signalled.items():
            if key not in signalled and stopped:
                self.processes.signal(stopped - 1, signal.SIGCONT)
        self._onset, self._signalled = onset, signalled
        self._faulty = bool(active)

    # ------------------------------------------------------------------ what is going on

    @property
    def alive(self) -> int:
        """Bit i = the process of processor i is alive."""
        return self.processes.alive

    @property
    def working_set(self) -> int:
        """Bit i = processor i is in the working set."""
        return int(self._vote["working_set"])

    @property
    def degraded(self) -> bool:
        """Fewer than three vote: a wrong one can no longer be outvoted."""
        return voting.members(self.working_set) < 3 and self._redundant

    @property
    def unverified(self) -> bool:
        """Nobody checks the processor whose torque is used."""
        return voting.members(self.working_set) < 2 or not self._redundant

    @property
    def _redundant(self) -> bool:
        return bool(redundant(int(self._vote["controller"])))

    @property
    def held_ticks(self) -> int:
        """Ticks without a quorum."""
        return self._held

    @property
    def exclusions(self) -> int:
        """How often a processor was put out of the working set."""
        return int(self._vote["exclusions"])

    @property
    def errors(self) -> Words:
        """How often each processor was found to be wrong or late, shape (p,)."""
        return self._ballot.records["errors"].copy()

    def forget_errors(self) -> None:
        """Forget what the processors were last named for."""
        self._ballot.records["error"] = Comparison.SAME

    @property
    def tick_time(self) -> float:
        """From the release of the inputs to the end of the review, last tick [s]."""
        return 1e-9 * float(self._vote["tick_time"])

    @property
    def owners(self) -> list[int]:
        """Which processor computes each joint's torque; -1: all (echo), or nobody."""
        if self.controller == "echo":
            return [-1] * self.arm.n
        return [int(k) for k in self._ballot.owner]

    def assignment(self) -> list[int]:
        """Which processor would compute each joint's torque with the present working set."""
        owner = np.zeros(self.arm.n, np.int64)
        way = int(self._vote["reconfiguration"])
        voting.assign(self.working_set, self.p, way, self._joints["locked"], owner)
        return [int(k) for k in owner]

    def reason(self) -> str:
        """Why the arm does not get the voted torque, for people; empty in RUN."""
        if self.safety.reason != Reason.NO_QUORUM:
            why = explain.stop_reason(self.safety)
        elif not self._vote["voters"] or not self.working_set:
            why = self.waits_for() or "no processor is left"
        else:
            why = explain.no_quorum(self._ballot)
        if self.safety.keeps_up:
            why += "; brakes are asked for" if self.safety.needs_brakes else "; kept up at rest"
        return why

    @property
    def starved(self) -> bool:
        """Whether the last vote lacked nothing but answers in time: nobody disagreed."""
        groups = {
            int(answer["equals"])
            for k, answer in enumerate(self._ballot.answers)
            if voting.has(self.working_set, k) and answer["equals"] >= 0
        }
        return len(groups) < 2 and not self._vote["not_finite"]

    def processors(self) -> list[Processor]:
        """Every processor as the voter sees it."""
        owners, table = self.owners, self.processes.now.table
        return [
            explain.describe_processor(k, self._ballot, table[k], owners) for k in range(self.p)
        ]


def warm(arm: SerialArm | None = None) -> None:
    """Compile, or load from the cache, all that voter and processors run for arms of a kind."""
    arm = arm or Arm.four_link()
    processor.warm(arm.links)
    group = ReplicaGroup(arm, MIN_PROCESSORS)
    group._kernels(group.layout.private())
    group.safety.step(0.0, False, False, np.zeros(arm.n), np.zeros(arm.n), np.zeros(arm.n))
