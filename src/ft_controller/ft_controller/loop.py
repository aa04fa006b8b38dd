"""The control loop in a thread of its own: measure, vote, send, review, at absolute times.

What comes from outside (measurements, trajectories, orders) is taken over between two ticks, so the
replica group is only ever touched by this thread. The waiting and the voting hold no Python lock.

Where the arm should be is the business of :class:`~ft_controller.follower.Follower`, whether it
does what it is told that of :class:`~ft_controller.motion_watch.MotionWatch`.

A loop may also be stepped by the measurements instead of the clock, see :class:`SteppedLoop`.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ft_controller.atomics import sleep_until
from ft_controller.errors import ReplicaError
from ft_controller.explain import Processor
from ft_controller.follower import Entry, Follower
from ft_controller.integral import Integral
from ft_controller.motion_watch import MotionWatch
from ft_controller.records import Array, Flags
from ft_controller.replica_group import ReplicaGroup, Tick
from ft_controller.safety_supervisor import Reason, State
from ft_controller.trajectory import Trajectory
from kin_core import checks
from kin_core.threads import start_thread

__all__ = ["ControlLoop", "Snapshot", "SteppedLoop"]

T = TypeVar("T")

#: A loop that neither sees nor drives the arm says zero so many times, and then nothing, so that
#: the watchdog of the drives takes over.
_LAST_WORDS = 10
#: Joints that are slower than this count as at rest when an arm is taken over again [rad/s].
_CALM = 0.5
#: A stopped arm that is farther from its motion rests where it is, not on its way [rad].
_ASTRAY = 0.1
#: The feedback is stable with some margin if K_D times the lag is no more than this. The longest
#: lag counts, and is forgotten at a rate of so many seconds per second.
_LAG_MARGIN, _LAG_FORGOTTEN = 0.5, 0.2


@dataclass(frozen=True)
class _Measurement:
    """Joint states, the time for which they hold, and which message in a row they came with.

    That time is given twice: by the machine's steady clock, and by the clock of motions.
    """

    q: Array
    qdot: Array
    time_ns: int
    number: int
    motion_ns: int


@dataclass(frozen=True)
class Snapshot:
    """The controller at one moment; see kin_interfaces/FtStatus for the fields."""

    state: State
    reason: str
    kept_up: bool
    brake: bool
    controller: str
    reconfiguration: str
    degraded: bool
    unverified: bool
    saturated: bool
    tick: int
    working_set: int
    quorum: int
    agreeing: int
    processors: list[Processor]
    vote_time: float
    vote_time_p99: float
    missed_deadlines: int
    held_ticks: int
    exclusions: int
    locked: Flags
    lower: Array
    upper: Array
    torque: Array
    error: Array


class ControlLoop:
    """Drives a replica group at a rate.

    Attributes:
        group: The replica group.
        follower: Where the arm should be; may be asked and told to follow from any thread.
        integral: Integral action; may be set between ticks.
        clock: The time of motions [ns]: that of this machine, unless it is set to another one.
        ticked: Called at the end of each tick in the thread of the loop: positions, velocities,
            and whether they are measurements of now.
        missed: Ticks that were skipped.
        recoveries: How often the arm was taken over again.
        error: What ended the loop.
    """

    def __init__(
        self,
        group: ReplicaGroup,
        rate: float,
        send: Callable[[Tick], None],
        report: Callable[[Snapshot], None],
        state_timeout: float = 0.05,
        report_rate: float = 20.0,
        failed: Callable[[BaseException], None] = lambda _: None,
        *,
        entry: Entry | None = None,
        watch: MotionWatch | None = None,
        integral: Integral | None = None,
        recover_after: float = 0.0,
    ) -> None:
        """Prepare the loop.

        Args:
            group: A replica group that is started.
            rate: Ticks per second [Hz].
            send: Gets every tick's result, as soon as the torque is known.
            report: Gets a snapshot ``report_rate`` times a second, and whenever the state or the
                working set changes.
            state_timeout: Measurements older than this are lost [s].
            report_rate: See report [Hz].
            failed: Gets the exception if the loop itself breaks down, which ends it.
            entry: How motions are entered from where the arm is. What counts as a pause is said by
                the limits of the group.
            watch: Finds joints that do not do what they are told.
            integral: Integral action; default: none.
            recover_after: After a stop for want of joint states, of answers or of time, take the
                arm over again when that much more time was well than not; 0: wait for a reset [s].
        """
        self._failed = failed
        self.group = group
        self.period_ns = int(1e9 / checks.within("rate", rate, 1.0, 20_000.0))
        self._send, self._report = send, report
        self._timeout_ns = int(1e9 * checks.positive("state_timeout", state_timeout))
        self._report_ns = int(1e9 / checks.positive("report_rate", report_rate))
        self._measured: _Measurement | None = None
        self.clock: Callable[[], int] = self._time_ns
        self.ticked: Callable[[Array, Array, bool], None] = lambda q, qdot, fresh: None
        self.follower = Follower(group.arm.n)
        self.enter_by(entry or Entry())
        self._watch = watch or MotionWatch(group.arm)
        self.integral = integral or Integral(group.arm)
        self._frozen: tuple[int, float] | None = None  # a joint, and where it is stuck
        self._looked: tuple[int, int] = (0, 0)  # time and measurement of the last tick
        self._integrated = 0  # time of the last tick
        self._silent = 0
        self._lag, self._given = 0.0, self._time_ns()
        self._recover_ns = int(1e9 * checks.within("recover_after", recover_after, 0.0, 3600.0))
        self._well = self._ticked = 0  # time of late that was well, time of the last tick [ns]
        self._disputed = False
        self._orders: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._votes: deque[float] = deque(maxlen=1000)
        self._desired = self.follower.desired
        self._reported, self._shown = 0, (State.IDLE, -1)
        self._start_ns = self._time_ns()
        self.missed = 0
        self.recoveries = 0
        self.error: BaseException | None = None

    def enter_by(self, entry: Entry) -> None:
        """Change how motions are entered; between ticks, or before the start."""
        safety, period = self.group.safety, 1e-9 * self.period_ns
        if safety.limits.pause < 3.0 * period:  # a tick or two may always be lost
            safety.limits = dataclasses.replace(safety.limits, pause=3.0 * period)
        pause = safety.limits.pause
        self._pause_ns = int(1e9 * pause)
        self.follower.entry = dataclasses.replace(entry, pause=pause, regular=2.5 * period)

    @property
    def running(self) -> bool:
        """Whether the thread is alive."""
        return self._thread is not None and self._thread.is_alive()

    def _time_ns(self) -> int:
        """What the loop takes for the time [ns]."""
        return time.monotonic_ns()

    def now(self) -> float:
        """Time of the controller [s]."""
        return 1e-9 * (self._time_ns() - self._start_ns)

    def start(self) -> None:
        """Start the thread."""
        if not self.running:
            self._stop.clear()
            self._thread = start_thread("ft_control", self._run, self._failed)

    def stop(self) -> None:
        """Ramp down if the arm is under control, then end the thread."""
        if self.running:
            limits = self.group.safety.limits
            try:
                self.do(lambda: self.group.safety.stop(self.now()))
                end = time.monotonic() + limits.ramp + 0.5
                while self.group.safety.state == State.RAMP and time.monotonic() < end:
                    time.sleep(0.005)
            except ReplicaError:
                pass
        self._stop.set()
        if self._thread is not None:
            self._thread.join(5.0)
            self._thread = None
        self._drop_orders()

    def measured(
        self, q: Array, qdot: Array, age: float = 0.0, motion_ns: int | None = None
    ) -> None:
        """Take over a measurement; any thread.

        Args:
            q: Positions, shape (n,) [rad].
            qdot: Velocities, shape (n,) [rad/s].
            age: How old it is already [s]. One that is older than what there is says nothing new.
            motion_ns: Its time by the clock of motions; None: that is the machine's [ns].
        """
        latest, taken = self._measured, self._time_ns() - int(1e9 * age)
        if latest is None or taken >= latest.time_ns:
            number = 1 if latest is None else latest.number + 1
            moment = taken if motion_ns is None else motion_ns
            self._measured = _Measurement(q, qdot, taken, number, moment)

    @property
    def measurement(self) -> tuple[Array, Array] | None:
        """The last measurement, positions and velocities."""
        latest = self._measured
        return None if latest is None else (latest.q, latest.qdot)

    @property
    def fresh(self) -> bool:
        """Whether there is a measurement of now."""
        latest = self._measured
        return latest is not None and self._time_ns() - latest.time_ns <= self._timeout_ns

    @property
    def driving(self) -> bool:
        """Whether the arm is under control, single ticks apart."""
        return self.group.safety.state in (State.RUN, State.HOLD)

    @property
    def recovering(self) -> bool:
        """Whether the loop is stopped and will take the arm over again by itself."""
        return self.group.safety.state in (State.RAMP, State.STOPPED) and self._recoverable()

    def do(self, order: Callable[[], T], timeout: float = 5.0) -> T:
        """Do something with the replica group between two ticks; any thread but the loop's own.

        Raises:
            ReplicaError: The loop does not run.
        """
        if not self.running:
            raise ReplicaError("the control loop does not run")
        future: Future[T] = Future()
        self._orders.append((order, future))
        try:
            return future.result(timeout)
        except TimeoutError:
            raise ReplicaError("the control loop does not answer") from None

    def _drop_orders(self) -> None:
        while self._orders:
            self._orders.popleft()[1].set_exception(ReplicaError("the control loop has stopped"))

    def _obey(self) -> None:
        while self._orders:
            order, future = self._orders.popleft()
            try:
                future.set_result(order())
            except BaseException as error:
                future.set_exception(error)

    def _run(self) -> None:
        try:
            self._loop()
        except BaseException as error:
            self.error = error
            self._failed(error)
        finally:
            self._drop_orders()

    def _loop(self) -> None:
        clock = np.zeros(2, np.int64)
        due = time.monotonic_ns() + self.period_ns
        while not self._stop.is_set():
            sleep_until(clock, due)
            self._obey()
            self._step(due + self.period_ns)
            # A tick that is due while this one still runs is skipped and counted.
            behind = max(0, (time.monotonic_ns() - due) // self.period_ns)
            self.missed += int(behind)
            due += int(1 + behind) * self.period_ns

    def _step(self, next_due: int) -> None:
        """One tick; the next one is due at a monotonic time [ns], 0: unknown."""
        now = self._time_ns()
        latest = self._measured
        nothing = np.zeros(self.group.arm.n)
        q, qdot = (nothing, nothing) if latest is None else (latest.q, latest.qdot)
        fresh = latest is not None and now - latest.time_ns <= self._timeout_ns
        if fresh and latest is not None:
            fresh = self._look(now, latest)
            self.group.safety.seen(1e-9 * (now - latest.time_ns))
        tick = self.group.vote(
            q,
            qdot,
            self._desired[0],
            self._desired[1],
            self._acceleration(now, latest, fresh),
            1e-9 * (now - self._start_ns),
            fresh,
            next_due,
        )
        given = self._time_ns()
        if given - now <= self._pause_ns:  # else it is a torque for a moment long past
            self._give(tick, fresh)
        if latest is not None and fresh:
            self._mind_the_lag(given, latest)
        self._recover(now, tick, fresh, qdot)
        self.group.review()
        self._votes.append(tick.vote_time)
        after = self._time_ns()
        news = (tick.state, self.group.working_set)
        if self._shown != news or after - self._reported > self._report_ns:
            self._reported, self._shown = after, news
            self._report(self._snapshot(tick, q))
        self.ticked(q, qdot, fresh)

    def _look(self, now: int, latest: _Measurement) -> bool:
        """Ask where the arm should be and whether it does as it is told; whether it is seen."""
        group, (last, number) = self.group, self._looked
        self._looked = (now, latest.number)
        braked = group.safety.needs_brakes
        controlled = self.driving or group.safety.kept_up
        if group.safety.keeps_up and (braked or self._astray(latest.q)):
            self.follower.follow(self._rest(latest))
            controlled = False
        self.follower.halted = group.safety.keeps_up
        self._desired = self.follower.propose(latest.motion_ns, latest.q, latest.qdot, controlled)
        if group.safety.state == State.IDLE or braked:
            self._watch.forget()
        elif self._frozen is None:
            self._watch.links = group.arm.links
            finding = self._watch.look(
                1e-9 * (now - last),
                latest.q,
                latest.qdot,
                self._desired[0],
                group.locked,
                latest.number != number,
                self.driving,
            )
            if finding is not None:
                reason = Reason.FROZEN if finding.frozen else Reason.FOLLOWING_ERROR
                group.safety.cut(reason, finding.joint, finding.value)
                if finding.frozen:
                    self._frozen = (finding.joint, float(latest.q[finding.joint]))
        if self._frozen is not None and latest.q[self._frozen[0]] != self._frozen[1]:
            self._frozen = None
        return self._frozen is None

    def _acceleration(self, now: int, latest: _Measurement | None, fresh: bool) -> Array:
        """Desired acceleration of this tick with the integral term, shape (n,) [rad/s^2]."""
        safety, integral = self.group.safety, self.integral
        dt, self._integrated = now - self._integrated, now
        if not integral.ki.any():
            return self._desired[2]
        if safety.state == State.IDLE or safety.needs_brakes:
            integral.forget()
        elif latest is not None and fresh and (self.driving or safety.kept_up):
            full = np.abs(safety.torque) >= safety.limits.torque
            integral.add(
                self._desired[0] - latest.q,
                1e-9 * min(dt, self._pause_ns),
                full | self.group.locked,
            )
        # The gains of a late loop are weaker, that of the integral by the same ratio cubed.
        return self._desired[2] + integral.term * self.group.softness**3

    def _astray(self, q: Array) -> bool:
        """Whether an arm that is stopped from now on is too far from its motion to rest on it."""
        off = np.where(self.group.locked, 0.0, np.abs(self.follower.desired[0] - q))
        return not self.follower.halted and bool(off.max() > _ASTRAY)

    def _rest(self, latest: _Measurement) -> Trajectory:
        """Rest where the arm is when it has braked, within the limits."""
        limits, qdot = self.group.safety.limits, latest.qdot
        way = 0.5 * qdot * np.abs(qdot) / self.follower.entry.acceleration
        return Trajectory.rest(np.clip(latest.q + way, limits.lower, limits.upper))

    def _mind_the_lag(self, given: int, latest: _Measurement) -> None:
        """Weaken the feedback while ticks are long: by old measurements it would push.

        A torque acts from the end of its vote to that of the next one. On average it is as late as
        its measurement was old, plus half of that time.
        """
        held, self._given = 1e-9 * min(given - self._given, self._pause_ns), given
        lag = min(1e-9 * (given - latest.time_ns), 1e-9 * self._pause_ns) + 0.5 * held
        self._lag = max(lag, self._lag - _LAG_FORGOTTEN * held)
        self.follower.lag = self._lag
        self.group.weaken(_LAG_MARGIN / max(self._lag, 1e-9))

    def _give(self, tick: Tick, fresh: bool) -> None:
        """Send the torque, and remember what it was for."""
        self._silent = self._silent + 1 if tick.state == State.STOPPED and not fresh else 0
        if self._silent <= _LAST_WORDS:
            self._send(tick)
        if tick.state == State.RUN or self.group.safety.kept_up:
            self.follower.accept()
        self._watch.gave(tick.torque)

    def _recoverable(self) -> bool:
        """Whether the stop was for want of something, and for nothing that is wrong."""
        reason = self.group.safety.reason
        return self._recover_ns > 0 and (
            reason in (Reason.SENSOR_LOST, Reason.PAUSED)
            or (reason == Reason.NO_QUORUM and not self._disputed)
        )

    def _recover(self, now: int, tick: Tick, fresh: bool, qdot: Array) -> None:
        """After a stop for want of something: take the arm over again when it is there."""
        group = self.group
        if tick.state == State.RUN:
            self._disputed = False
        elif tick.state == State.HOLD and not group.starved:
            self._disputed = True
        gap, self._ticked = now - self._ticked, now
        well = (
            gap <= self._pause_ns
            and fresh
            and 0 < tick.quorum <= tick.agreeing
            and np.abs(qdot).max() <= _CALM
        )
        if tick.state != State.STOPPED or not self._recoverable():
            self._well = 0
            return
        # What goes wrong takes back its own time and no more: on a busy machine some tick of every
        # second is late, and an arm that waited for a second without one would wait for minutes.
        self._well = self._well + gap if well else max(0, self._well - gap)
        if self._well >= self._recover_ns:
            self.recoveries += 1
            self._well = 0
            group.reset()

    def _snapshot(self, tick: Tick, q: Array) -> Snapshot:
        group = self.group
        return Snapshot(
            state=tick.state,
            reason=group.reason(),
            kept_up=group.safety.kept_up,
            brake=group.safety.needs_brakes,
            controller=group.controller,
            reconfiguration=group.reconfiguration,
            degraded=group.degraded,
            unverified=group.unverified,
            saturated=group.safety.saturated,
            tick=tick.number,
            working_set=group.working_set,
            quorum=tick.quorum,
            agreeing=tick.agreeing,
            processors=group.processors(),
            vote_time=tick.vote_time,
            vote_time_p99=float(np.percentile(self._votes, 99.0)),
            missed_deadlines=self.missed,
            held_ticks=group.held_ticks,
            exclusions=group.exclusions,
            locked=group.locked,
            lower=group.safety.limits.lower,
            upper=group.safety.limits.upper,
            torque=tick.torque,
            error=self._desired[0] - q,
        )


class SteppedLoop(ControlLoop):
    """A loop that the measurements drive: one tick for each, in the thread that brings it.

    Its time goes on by one period with every tick and stands still otherwise, so the same
    measurements and orders give the same torques on any machine: for replayed bags, and for
    simulations that wait for the controller.
    """

    def __init__(self, group: ReplicaGroup, rate: float, *arguments: Any, **options: Any) -> None:
        """Prepare the loop; see :class:`ControlLoop`."""
        self._ticks = 0
        self._going = False
        self._turn = threading.RLock()
        super().__init__(group, rate, *arguments, **options)

    @property
    def running(self) -> bool:
        """Whether measurements are answered."""
        return self._going

    def _time_ns(self) -> int:
        return self._ticks * self.period_ns

    def start(self) -> None:
        """Answer measurements from now on."""
        self._going = True

    def stop(self) -> None:
        """Ramp down, all at once, if the arm is under control; then answer no more."""
        with self._turn:
            if self._going:
                self.group.safety.stop(self.now())
                for _ in range(int(1e9 * self.group.safety.limits.ramp / self.period_ns) + 2):
                    if self._going and self.group.safety.state == State.RAMP:
                        self._tick()
            self._going = False

    def measured(
        self, q: Array, qdot: Array, age: float = 0.0, motion_ns: int | None = None
    ) -> None:
        """Take over a measurement and do one tick with it; any thread.

        It is of now, whatever its age: the measurements are the clock.
        """
        with self._turn:
            if self._going:
                number = 1 if self._measured is None else self._measured.number + 1
                then = self._time_ns() + self.period_ns
                self._measured = _Measurement(q, qdot, then, number, then)
                self._tick()

    def do(self, order: Callable[[], T], timeout: float = 5.0) -> T:
        """Do something with the replica group between two ticks; any thread.

        Raises:
            ReplicaError: The loop does not run.
        """
        with self._turn:
            if not self._going:
                raise ReplicaError("the control loop does not run")
            return order()

    def _tick(self) -> None:
        self._ticks += 1
        try:
            self._step(0)
        except BaseException as error:
            self._going = False
            self.error = error
            self._failed(error)
