"""The crew: processors, voter and governor as one controller.

with Crew(Arm.four_link(), processors=4, controller="echo") as crew:
    tick = crew.tick(q, qdot, q_d, qdot_d, qddot_d, t)
    send(tick.torque)
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ft_controller import memory, voter, voting
from ft_controller.arm import Arm
from ft_controller.errors import ArmError, CrewError, TooLarge
from ft_controller.faults import KINDS, SIGNALS, Fault, FaultTable
from ft_controller.governor import Governor, Limits, Reason, State
from ft_controller.layout import (
    BODY,
    CREW_PID,
    CREW_STATUS,
    CREW_WORDS,
    MAX_PROCESSORS,
    MIN_PROCESSORS,
    Layout,
)
from ft_controller.processor import CONTROLLERS, PARALLEL, SERIAL
from ft_controller.scheduling import VOTER, raise_thread
from kin_core import checks
from kin_core.errors import InvalidInput

__all__ = ["RECONFIGURATIONS", "Crew", "Processor", "Tick", "Timing", "warm"]

RECONFIGURATIONS = ("round_robin", "balanced")

_SPOILT = (voting.BAD_CHECKSUM, voting.NOT_FINITE)
_HEALTHY_S = 10.0  # a nursery that lived for so long is replaced at once

Array = NDArray[np.float64]

_ERRORS = (
    "",
    "differs from the quorum",
    "did not answer in time",
    "checksum does not fit",
    "is not finite",
    "showed two faces",
    "lied in its vote",
    "process ended",
)


@dataclass(frozen=True)
class Timing:
    """Deadlines, all from the release of a tick [s].

    Attributes:
        grace: With a quorum present, processors wait so long for the rest.
        hard: Without a quorum, processors and voter wait so long.
        late: Whoever has not answered by then has missed the tick.
        probe: The voter waits so long after its vote for processors that were late before.
        stall: Late for so long, and at least ``late_ticks`` times in a row: out of the working set.
        late_ticks: See stall.
    """

    grace: float
    hard: float
    late: float
    probe: float
    stall: float
    late_ticks: int = 2

    def __post_init__(self) -> None:
        for name in ("grace", "hard", "late", "probe", "stall"):
            checks.within(name, getattr(self, name), 0.0, 60.0)
        checks.within("late_ticks", self.late_ticks, 1, 10_000)
        if self.grace > self.hard:
            raise InvalidInput("grace", f"must not be beyond hard ({self.hard:g} s)")

    @classmethod
    def realtime(cls, rate: float, stall: float = 0.02, patience: float = 0.0) -> Timing:
        """Deadlines of a loop that runs at ``rate`` [Hz].

        Args:
            rate: Ticks per second [Hz].
            stall: See the class.
            patience: Wait at least so long for a quorum, even if later ticks are skipped for it: on
                a busy machine a late torque is better than none [s].
        """
        period = 1.0 / checks.positive("rate", rate)
        hard = max(0.65 * period, patience)
        return cls(0.25 * period, hard, hard + 0.05 * period, 0.7 * period, stall)

    @classmethod
    def lockstep(cls) -> Timing:
        """Deadlines of a simulation whose time waits for the controller."""
        return cls(grace=0.02, hard=2.0, late=0.03, probe=0.0005, stall=0.0)

    @classmethod
    def patient(cls) -> Timing:
        """Deadlines that a busy machine meets too: what comes out depends on the inputs alone."""
        return cls(grace=0.5, hard=5.0, late=1.0, probe=0.5, stall=20.0)


@dataclass(frozen=True)
class Tick:
    """What came out of one tick.

    Attributes:
        number: Number of the tick.
        torque: Torque for the motors, shape (n,) [N m].
        voted: Whether a quorum stands behind the torque (and the governor let it pass).
        state: State of the governor.
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


@dataclass(frozen=True)
class Processor:
    """One processor as the voter sees it; see kin_interfaces/FtProcessor for the fields."""

    id: int
    pid: int
    state: str
    error: int
    detail: str
    comparison: tuple[int, ...]
    suggestion: int
    votes_against: int
    restarts: int
    missed: int
    clean: int
    clean_needed: int
    joints: tuple[int, ...]


class Crew:
    """A fault-tolerant computed-torque controller on p processes.

    Not for several threads at once. Use it as a context manager, or call :meth:`start` and
    :meth:`close`.
    """

    def __init__(
        self,
        arm: Arm,
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
        """Prepare a crew; no process is started yet.

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
            restart: Start dead processes again, and their nursery.
            restart_delay: First delay before a restart; doubles with each one [s].
            restart_delay_max: The longest delay [s].
            restart_stalled: A process that is silent, or wrong again and again, for so long is
                killed and started again; 0: never [s].
            realtime_priority: 0: ordinary scheduling; else SCHED_FIFO, if allowed: the processors
                with this priority, and the thread that votes two above.
        """
        if not MIN_PROCESSORS <= processors <= MAX_PROCESSORS:
            raise TooLarge(
                f"processors: must be {MIN_PROCESSORS} to {MAX_PROCESSORS}, got {processors}"
            )
        self.arm = arm
        self.p = processors
        self.layout = Layout(processors, arm.n)
        self.timing = timing or Timing.lockstep()
        self.governor = Governor(limits or Limits.of(arm))
        self._tolerance = checks.within("tolerance", tolerance, 0.0, 1e-3)
        self._restart_stalled = checks.within("restart_stalled", restart_stalled, 0.0, 1e6)
        self._faults = FaultTable(self.p, arm.n)
        self._onset: dict[tuple[int, int], int] = {}
        self._signalled: dict[tuple[int, int], int] = {}
        self._faulty = False
        self._restart = bool(restart)
        self._delay = checks.within("restart_delay", restart_delay, 0.0, 60.0)
        self._longest = checks.within("restart_delay_max", restart_delay_max, 0.0, 600.0)
        self._priority = int(checks.within("realtime_priority", realtime_priority, 0, 90))
        self._setup = {
            "p": self.p,
            "n": arm.n,
            "model": arm.model.tolist(),
            "restart": self._restart,
            "restart_delay": self._delay,
            "restart_delay_max": self._longest,
            "priority": self._priority,
        }
        n, p = arm.n, self.p
        self._vectors = np.zeros((8, n))
        self._vectors[5], self._vectors[6] = _gains("kp", kp, n), _gains("kd", kd, n)
        self._reg = np.zeros(voter.R_WORDS, np.int64)
        self._st = np.zeros((p, voter.P_WORDS), np.int64)
        self._comparisons = np.zeros((p, p), np.int64)
        self._echoes = np.zeros((p, p), np.int64)
        self._fault_words = np.zeros((p, 4), np.int64)
        self._magnitudes = np.zeros(p)
        self._data_f = np.zeros((p, BODY + self.layout.data))
        self._data = self._data_f.view(np.int64)
        self._results_f = np.zeros((p, BODY + 2 * n))
        self._results = self._results_f.view(np.int64)
        self._scratch = np.zeros(BODY + 2 * p, np.int64)
        self._owner = np.zeros(n, np.int64)
        self._tau = np.zeros(n)
        self._clock = np.zeros(2, np.int64)
        reg = self._reg
        reg[voter.R_CLEAN] = int(checks.within("clean_ticks", clean_ticks, 1, 1_000_000))
        reg[voter.R_SINGLE] = bool(allow_single)
        self.set_controller(controller, reconfiguration)
        self._apply_timing()
        self._held = 0
        self._nursery: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._blocks: list[memory.Block] = []
        self._retired: list[memory.Block] = []
        self._nursery_began = 0.0
        self._nursery_due = 0.0
        self._nursery_delay = self._delay
        self._nurseries = 0
        self._voting_thread = 0

    # ------------------------------------------------------------------ life

    def start(self, timeout: float = 180.0) -> None:
        """Start the processes and wait until all of them answer.

        Raises:
            CrewError: They did not come up in time.
        """
        if self._nursery is not None:
            return
        try:
            self._start_nursery()
            self._await_all(timeout)
        except BaseException:
            self.close()
            raise

    def _start_nursery(self) -> None:
        """Start the parent of the processors on fresh memory; does not wait for it."""
        generations = self._st[:, voter.P_GENERATION].tolist()
        fds = self._map_memory()
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            size = max(1 << 20, 64 * self.arm.n * 8)
            for end in (mine, theirs):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
            environment = dict(os.environ)
            environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
            environment["OPENBLAS_NUM_THREADS"] = "1"
            self._nursery = subprocess.Popen(
                [sys.executable, "-m", "ft_controller.nursery", str(theirs.fileno())],
                pass_fds=(theirs.fileno(), *fds.values()),
                stdin=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
            mine.send(json.dumps(self._setup | fds | {"generations": generations}).encode())
            self._channel = mine
        except BaseException:
            mine.close()
            raise
        finally:
            theirs.close()
            for fd in fds.values():
                os.close(fd)
        self._nurseries += 1
        self._nursery_began, self._nursery_due = time.monotonic(), 0.0

    def _watch_nursery(self) -> None:
        """A nursery that ended took its processors along: another one, with new processors.

        The voter goes on meanwhile. It finds all processors dead, and takes the new ones into an
        empty working set as soon as most of them agree.
        """
        if self._nursery is None or self._nursery.poll() is None:
            return
        now = time.monotonic()
        if self._nursery_due == 0.0:
            if self._channel is not None:
                self._channel.close()
                self._channel = None
            if now - self._nursery_began > _HEALTHY_S:
                self._nursery_delay = self._delay
            self._nursery_due = now + self._nursery_delay
            self._nursery_delay = min(2.0 * self._nursery_delay, max(self._longest, self._delay))
            # Nobody is left who could say that they are dead.
            self._map_nobody()
        if now >= self._nursery_due and self._restart:
            try:
                self._start_nursery()
            except (OSError, CrewError):
                self._nursery_due = now + max(self._nursery_delay, 0.1)

    def _map_nobody(self) -> None:
        """Memory in which every processor is dead."""
        for fd in self._map_memory().values():
            os.close(fd)

    def _map_memory(self) -> dict[str, int]:
        """Make and map the shared blocks; returns the descriptors that the processes inherit."""
        lay = self.layout
        fds = {
            "input": memory.create("ft_input", lay.input_words),
            "pages": memory.create("ft_pages", lay.p * lay.page_words),
            "crew": memory.create("ft_crew", lay.crew_words),
        }
        readers = {name: memory.read_only(fd) for name, fd in fds.items()}
        # Another thread may still look at what was there before.
        for block in self._retired:
            block.close()
        self._retired, self._blocks = self._blocks, []
        try:
            self._entry = memory.Block(
                lay.input_words, readers["input"], fds["input"], (0, lay.input_words)
            )
            self._pages = memory.Block(lay.p * lay.page_words, readers["pages"])
            self._crew = memory.Block(lay.crew_words, readers["crew"])
            self._blocks = [self._entry, self._pages, self._crew]
        finally:
            for fd in readers.values():
                os.close(fd)
        return fds

    def warm_up(self) -> None:
        """Compile, or load, what the voter runs, without a process; the crew is spent after it."""
        for fd in self._map_memory().values():
            os.close(fd)
        try:
            self._vote(0)
            self._review()
        finally:
            self.close()

    def _await_all(self, timeout: float) -> None:
        self._vote(0)  # compiles the voter, if nobody has, while the nursery warms up
        self._review()
        self._st[:] = 0
        deadline = time.monotonic() + timeout
        everybody = (1 << self.p) - 1
        while self._alive() != everybody:
            if self._nursery is None or self._nursery.poll() is not None:
                raise CrewError("the nursery of the processors ended before they were up")
            if time.monotonic() > deadline:
                raise CrewError(f"the processors did not come up within {timeout:g} s")
            time.sleep(0.002)
        self._st[:, voter.P_NEEDED] = self._reg[voter.R_CLEAN]
        self._reg[voter.R_WORKING] = everybody
        self._reg[voter.R_SUSPECT] = 0
        while True:
            self._vote(0)
            self._review()
            if (
                self._reg[voter.R_WORKING] == everybody
                and not (self._st[:, voter.P_LATE_RUN]).any()
            ):
                return
            if time.monotonic() > deadline:
                raise CrewError(f"the processors did not answer within {timeout:g} s")

    def close(self) -> None:
        """End all processes and give the memory back; may be called twice."""
        if self._channel is not None:
            if self._blocks:
                self._entry.words[1] = 1
            with contextlib.suppress(OSError):
                self._channel.send(b'{"stop": true}')
            self._channel.close()
            self._channel = None
        if self._nursery is not None:
            try:
                self._nursery.wait(5.0)
            except subprocess.TimeoutExpired:
                # Its processors die with it (PR_SET_PDEATHSIG).
                self._nursery.kill()
                self._nursery.wait()
            self._nursery = None
        for block in (*self._blocks, *self._retired):
            block.close()
        self._blocks, self._retired = [], []

    def __enter__(self) -> Crew:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # ------------------------------------------------------------------ ticks

    def tick(
        self,
        q: ArrayLike,
        qdot: ArrayLike,
        qd: ArrayLike,
        vd: ArrayLike,
        ad: ArrayLike,
        t: float,
        fresh: bool = True,
    ) -> Tick:
        """One whole tick: vote, torque, review. See :meth:`vote`."""
        result = self.vote(q, qdot, qd, vd, ad, t, fresh)
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
        rows = self._vectors
        rows[0], rows[1], rows[2], rows[3], rows[4] = q, qdot, qd, vd, ad
        # A locked joint neither moves nor is moved.
        if self._faulty or len(self._faults):
            self._update_faults(t)
        if self._priority and self._voting_thread != threading.get_ident():
            self._voting_thread = threading.get_ident()
            self._reg[voter.R_RAISED] = raise_thread(self._priority, VOTER)
        working = int(self._reg[voter.R_WORKING])
        voted = self._vote(due_ns)
        torque = self.governor.step(t, fresh, voted, self._tau, rows[0], rows[1])
        state = self.governor.state
        if not voted:
            self._held += 1
        return Tick(
            number=int(self._reg[voter.R_TICK]),
            torque=torque.copy(),
            voted=voted and state == State.RUN,
            state=state,
            working_set=working,
            agreeing=int(self._reg[voter.R_AGREEING]),
            quorum=int(self._reg[voter.R_QUORUM]),
            vote_time=1e-9 * float(self._reg[voter.R_VOTE_NS]),
        )

    def review(self) -> None:
        """Wait for the rest of the answers, judge, and change the working set."""
        self._review()
        self._watch_nursery()
        out = ~self.working_set & ((1 << self.p) - 1)
        if out and self._restart_stalled > 0.0:
            patience = 1e9 * self._restart_stalled
            for k in range(self.p):
                row = self._st[k]
                late = row[voter.P_LATE_RUN] > 0 and (
                    self._reg[voter.R_RELEASE] - row[voter.P_LATE_SINCE] > patience
                )
                # Its memory may be damaged; the next process has a good one.
                wrong = row[voter.P_WRONG_SINCE] > 0 and (
                    row[voter.P_WRONG_LAST] - row[voter.P_WRONG_SINCE] > patience
                )
                if (out >> k) & 1 and (late or wrong):
                    row[voter.P_LATE_RUN] = row[voter.P_WRONG_SINCE] = 0
                    self._signal(k, signal.SIGKILL)

    def _vote(self, due_ns: int) -> bool:
        lay = self.layout
        return bool(
            voter.release_and_vote(
                self._reg, self._st, self._comparisons, self._echoes, self._vectors,
                self._fault_words, self._magnitudes, self._tolerance, due_ns, self._entry.words,
                self._entry.floats, self._pages.words.reshape(self.p, -1), self._crew.words,
                self._data, self._data_f, self._results, self._results_f, self._scratch,
                self._owner, self._tau, self._clock, lay.slot, lay.input_slot, lay.votes,
                lay.result,
            )
        )  # fmt: skip

    def _review(self) -> None:
        lay = self.layout
        voter.review(
            self._reg, self._st, self._comparisons, self._echoes, self._vectors,
            self._pages.words.reshape(self.p, -1), self._crew.words, self._data, self._data_f,
            self._results, self._scratch, self._owner, self._clock, lay.slot, lay.votes,
            lay.result, self._tolerance,
        )  # fmt: skip

    # ------------------------------------------------------------------ settings

    @property
    def controller(self) -> str:
        """Name of the controller in use."""
        return CONTROLLERS[int(self._reg[voter.R_MODE])]

    @property
    def reconfiguration(self) -> str:
        """Name of the way in which work is shared out anew."""
        return RECONFIGURATIONS[int(self._reg[voter.R_SCHEME])]

    def set_controller(self, controller: str = "", reconfiguration: str = "") -> None:
        """Change the controller from the next tick on; empty: as it is."""
        if controller:
            checks.one_of("controller", controller, CONTROLLERS)
        if reconfiguration:
            checks.one_of("reconfiguration", reconfiguration, RECONFIGURATIONS)
            self._reg[voter.R_SCHEME] = RECONFIGURATIONS.index(reconfiguration)
        if controller:
            self._reg[voter.R_MODE] = CONTROLLERS.index(controller)

    def set_gains(self, kp: ArrayLike, kd: ArrayLike) -> None:
        """Change the gains from the next tick on."""
        n = self.arm.n
        self._vectors[5], self._vectors[6] = _gains("kp", kp, n), _gains("kd", kd, n)

    def set_timing(self, timing: Timing) -> None:
        """Change the deadlines from the next tick on."""
        self.timing = timing
        self._apply_timing()

    def lock(self, joint: int, locked: bool = True) -> None:
        """Take a joint out of the control law, or back in; its processor gets other work."""
        if not 0 <= joint < self.arm.n:
            raise ArmError("joint", f"there are {self.arm.n} joints, got {joint}")
        self._vectors[7, joint] = 1.0 if locked else 0.0

    @property
    def locked(self) -> NDArray[np.bool_]:
        """Which joints are locked, shape (n,)."""
        return self._vectors[7] != 0.0

    def reset(self) -> str:
        """After a safe stop: all live processors work again, old penalties are forgotten.

        If nobody is alive, the next processors that most of all agree with are taken.

        Returns:
            What is still waited for, for people; empty if nothing is.
        """
        self.governor.reset()
        if self._blocks:
            self._reg[voter.R_WORKING] = self._alive()
        self._reg[voter.R_SUSPECT] = 0
        st = self._st
        for column in (voter.P_PENALTY, voter.P_LATE_RUN, voter.P_CLEAN, voter.P_DISPUTE):
            st[:, column] = 0
        st[:, voter.P_NEEDED] = self._reg[voter.R_CLEAN]
        return self.waits_for()

    def waits_for(self) -> str:
        """Which processors there are not, and what that means; empty if all are alive."""
        if not self._blocks:
            return "the processors are not started"
        alive = self._alive()
        if alive == (1 << self.p) - 1 and self.working_set:
            return ""
        coming = "being started" if self._restart else "not started again"
        dead = [k for k in range(self.p) if not (alive >> k) & 1]
        if self.working_set:
            return f"{_numbered(dead)}: {coming}"
        need = self.p // 2 + 1
        return (
            f"no processor works, {self.p - len(dead)} of {self.p} are alive: control begins when"
            f" {need} of them agree for {int(self._reg[voter.R_CLEAN])} ticks"
            + (f"; {_numbered(dead)}: {coming}" if dead else "")
        )

    def _apply_timing(self) -> None:
        timing, reg = self.timing, self._reg
        reg[voter.R_GRACE_NS] = int(1e9 * timing.grace)
        reg[voter.R_HARD_NS] = int(1e9 * timing.hard)
        reg[voter.R_LATE_NS] = int(1e9 * timing.late)
        reg[voter.R_PROBE_NS] = int(1e9 * timing.probe)
        reg[voter.R_STALL_NS] = int(1e9 * timing.stall)
        reg[voter.R_LATE_LIMIT] = timing.late_ticks

    # ------------------------------------------------------------------ faults

    def inject(self, faults: Fault | Sequence[Fault], t: float) -> None:
        """Plan faults; their times count from ``t`` [s]. Nothing is planned if one is wrong."""
        self._faults.add([faults] if isinstance(faults, Fault) else list(faults), t)
        self._faulty = True

    def clear_faults(self) -> None:
        """End all faults, and let stopped processes go on."""
        self._faults.clear()
        self._update_faults(0.0)

    @property
    def faults(self) -> int:
        """Faults that are active or planned."""
        return len(self._faults)

    def _update_faults(self, t: float) -> None:
        active = self._faults.active(t)
        tick = int(self._reg[voter.R_TICK]) + 1
        words = self._fault_words
        words[:] = 0
        onset: dict[tuple[int, int], int] = {}
        signalled: dict[tuple[int, int], int] = {}
        for k, (_, fault) in active.items():
            key = (k, id(fault))
            if fault.kind in SIGNALS:
                if key not in self._signalled:
                    number = signal.SIGKILL if fault.kind == "sigkill" else signal.SIGSTOP
                    self._signal(k, number)
                signalled[key] = 0 if fault.kind == "sigkill" else k + 1
                continue
            onset[key] = self._onset.get(key, tick)
            total = self.layout.data
            element = fault.element if fault.element >= 0 else (fault.seed * 7919 + 13) % total
            words[k] = KINDS.index(fault.kind), element, onset[key], fault.seed
            self._magnitudes[k] = fault.magnitude
            if fault.kind == "crash" and onset[key] != tick:
                # A crash happens once; a schedule that wants more of them says so.
                words[k, 0] = 0
        for key, stopped in self._signalled.items():
            if key not in signalled and stopped:
                self._signal(stopped - 1, signal.SIGCONT)
        self._onset, self._signalled = onset, signalled
        self._faulty = bool(active)

    def _signal(self, k: int, number: int) -> None:
        if self._channel is not None:
            order = {"processor": k, "signal": int(number)}
            with contextlib.suppress(OSError):
                self._channel.send(json.dumps(order).encode())

    # ------------------------------------------------------------------ what is going on

    def _alive(self) -> int:
        group = 0
        words = self._crew.words
        for k in range(self.p):
            if words[k * CREW_WORDS + 1]:
                group |= 1 << k
        return group

    @property
    def pids(self) -> list[int]:
        """Process ids of the processors, 0 where there is none."""
        return [int(self._crew.words[k * CREW_WORDS + CREW_PID]) for k in range(self.p)]

    @property
    def nursery_pid(self) -> int:
        """Process id of the nursery, 0 if there is none."""
        return self._nursery.pid if self._nursery is not None else 0

    @property
    def nurseries(self) -> int:
        """How many nurseries were started so far."""
        return self._nurseries

    @property
    def working_set(self) -> int:
        """Bit i = processor i is in the working set."""
        return int(self._reg[voter.R_WORKING])

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
        return int(self._reg[voter.R_MODE]) not in (SERIAL, PARALLEL)

    @property
    def held_ticks(self) -> int:
        """Ticks without a quorum."""
        return self._held

    @property
    def exclusions(self) -> int:
        """How often a processor was put out of the working set."""
        return int(self._reg[voter.R_EXCLUSIONS])

    @property
    def tick_time(self) -> float:
        """From the release of the inputs to the end of the review, last tick [s]."""
        return 1e-9 * float(self._reg[voter.R_TICK_NS])

    @property
    def owners(self) -> list[int]:
        """Which processor computes each joint's torque; -1: all (echo), or nobody."""
        if self.controller == "echo":
            return [-1] * self.arm.n
        return [int(k) for k in self._owner]

    def assignment(self) -> list[int]:
        """Which processor would compute each joint's torque with the present working set."""
        owner = np.zeros(self.arm.n, np.int64)
        voting.assign(
            self.working_set, self.p, int(self._reg[voter.R_SCHEME]), self._vectors[7], owner
        )
        return [int(k) for k in owner]

    def reason(self) -> str:
        """Why the arm does not get the voted torque, for people; empty in RUN."""
        g = self.governor
        if g.reason == Reason.NONE:
            return ""
        if g.reason == Reason.NO_QUORUM:
            return self._no_quorum()
        name = f"joint {g.joint}"
        return {
            Reason.SENSOR_LOST: "joint states are missing or too old",
            Reason.IMPLAUSIBLE: f"{name}: voted torque {g.value:.4g} N m is implausible",
            Reason.JOINT_LIMIT: f"{name}: {g.value:.4g} rad is out of limits",
            Reason.OVERSPEED: f"{name}: speed {g.value:.4g} rad/s is too high",
            Reason.STOP_ASKED: "a stop was asked for",
            Reason.PAUSED: f"the control stood still, {g.value:.3g} s without a torque of its own",
            Reason.FOLLOWING_ERROR: f"{name} does not follow: {g.value:.4g} rad from its motion",
            Reason.FROZEN: f"{name} is frozen: not a bit of its position changed while it should "
            f"have moved {g.value:.3g} rad",
            Reason.RIVAL: "another controller drives this arm",
            Reason.CLAIMING: "looking for other controllers of this arm",
        }[g.reason]

    @property
    def starved(self) -> bool:
        """Whether the last vote lacked nothing but answers in time: nobody disagreed."""
        groups = set()
        for k in range(self.p):
            if (self.working_set >> k) & 1 and self._st[k, voter.P_GROUP] >= 0:
                groups.add(int(self._st[k, voter.P_GROUP]))
        return len(groups) < 2 and not self._reg[voter.R_NOT_FINITE]

    def _no_quorum(self) -> str:
        """Why the last vote had no quorum: somebody was late, or they do not agree."""
        reg = self._reg
        # Those that had a vote; the review may have put some of them out since.
        working, need = int(reg[voter.R_BALLOT]), int(reg[voter.R_QUORUM])
        members = [k for k in range(self.p) if (working >> k) & 1]
        if not members or not self.working_set:
            return self.waits_for() or "no processor is left"
        if len(members) == 1 and not reg[voter.R_SINGLE]:
            return f"only {_numbered(members)} is left, and must not work alone"
        if reg[voter.R_NOT_FINITE]:
            return "the torque of a processor that nobody checks is not finite"
        late = [k for k in members if not (int(reg[voter.R_SPOKEN]) >> k) & 1]
        waited = f"within {1e3 * self.timing.hard:.3g} ms"
        if not self._redundant:
            return f"no torque: nothing {waited} from {_numbered(late or members)}"
        rule = f"no quorum: {need} of {len(members)} must agree"
        groups: dict[int, list[int]] = {}
        for k in members:
            if self._st[k, voter.P_GROUP] >= 0:
                groups.setdefault(int(self._st[k, voter.P_GROUP]), []).append(k)
        if len(groups) > 1:
            said = " against ".join(_numbered(group) for group in groups.values())
            return f"{rule}, {len(groups)} answers: {said}, first in {self._difference(*groups)}"
        spoilt = [k for k in members if self._st[k, voter.P_FOUND] in _SPOILT]
        if spoilt:
            return f"{rule}, damaged or not finite: {_numbered(spoilt)}"
        if late:
            return f"{rule}, {len(members) - len(late)} answered {waited}; late: {_numbered(late)}"
        missing = self._comparisons[np.ix_(members, members)] == voting.MISSING
        np.fill_diagonal(missing, False)
        if missing.any() or self.controller == "echo":
            return f"{rule}; all answered, but too late to be compared {waited}"
        return f"{rule}; all answered, but do not confirm what they read of each other"

    def _difference(self, first: int, second: int, *_: int) -> str:
        """Name of the first element in which two processors differ."""
        n = self.arm.n
        count = {"lower_tolerance": n, "high_tolerance": n * n}.get(self.controller, n * n + 2 * n)
        rows = self._data_f
        at = int(voting.equal(rows[first], rows[second], BODY - 2, count, self._tolerance))
        return element_name(max(at - (BODY - 2), 0), n, self.controller)

    def processors(self) -> list[Processor]:
        """Every processor as the voter sees it."""
        owners = self.owners
        return [self._processor(k, owners) for k in range(self.p)]

    def _processor(self, k: int, owners: list[int]) -> Processor:
        row = self._st[k]
        crew = self._crew.words[k * CREW_WORDS : (k + 1) * CREW_WORDS]
        alive = bool(crew[1])
        if not alive:
            state = "STARTING" if crew[CREW_PID] else "DEAD"
        elif not (self.working_set >> k) & 1:
            state = "EXCLUDED"
        elif (int(self._reg[voter.R_SUSPECT]) >> k) & 1:
            state = "SUSPECT"
        else:
            state = "WORKING"
        return Processor(
            id=k,
            pid=int(crew[CREW_PID]),
            state=state,
            error=int(row[voter.P_ERROR]),
            detail=self._detail(row, int(crew[CREW_STATUS])),
            comparison=tuple(int(x) for x in self._comparisons[k]),
            suggestion=int(row[voter.P_SUGGESTION]),
            votes_against=int(row[voter.P_VOTES]),
            restarts=max(0, int(crew[2]) - 1),
            missed=int(row[voter.P_MISSED]),
            clean=int(row[voter.P_CLEAN]),
            clean_needed=int(row[voter.P_NEEDED]),
            joints=tuple(i for i, owner in enumerate(owners) if owner == k),
        )

    def _detail(self, row: NDArray[np.int64], status: int) -> str:
        error = int(row[voter.P_ERROR])
        if error == voting.SAME:
            return ""
        what = _ERRORS[error]
        if error in (voting.DIFFERS, voting.NOT_FINITE):
            what = f"{element_name(int(row[voter.P_ELEMENT]), self.arm.n, self.controller)} {what}"
        elif error == voting.LYING_VOTE:
            what = f"{what} about processor {int(row[voter.P_ELEMENT])}"
        elif error == voting.CRASHED:
            if os.WIFSIGNALED(status):
                what = f"process ended by {signal.Signals(os.WTERMSIG(status)).name}"
            else:
                what = f"process ended with code {os.waitstatus_to_exitcode(status)}"
        return f"{what} at tick {int(row[voter.P_ERROR_TICK])}"


def element_name(index: int, n: int, controller: str = "echo") -> str:
    """Name of an element of M, N, tau, e.g. ``M[0,2]``; of the diagonal for lower_tolerance."""
    if controller == "lower_tolerance":
        return f"M[{index},{index}]"
    if index < n * n:
        return f"M[{index // n},{index % n}]"
    index -= n * n
    return f"N[{index}]" if index < n else f"tau[{index - n}]"


def _numbered(processors: Sequence[int]) -> str:
    """Processors for people: "processors 0, 2"."""
    word = "processor" if len(processors) == 1 else "processors"
    return f"{word} {', '.join(map(str, processors))}"


def _gains(name: str, values: ArrayLike, n: int) -> Array:
    try:
        array = checks.finite(name, values)
    except InvalidInput as error:
        raise ArmError(error.field, error.problem) from None
    if array.ndim > 1 or (array.ndim == 1 and array.size not in (1, n)):
        raise ArmError(name, f"must be one number or {n}, got the shape {array.shape}")
    if (array < 0.0).any():
        raise ArmError(name, f"must not be negative, got {array.min():g}")
    return np.broadcast_to(array, (n,)).copy()


def warm() -> None:
    """Compile, or load from the cache, all that the voter and the processors run."""
    from ft_controller import nursery  # here: it is also a program, which must not find itself

    nursery.warm()
    Crew(Arm.four_link(), MIN_PROCESSORS).warm_up()
