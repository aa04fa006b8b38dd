"""The control loop in a thread of its own: measure, vote, send, review, at absolute times.

What comes from outside (measurements, trajectories, orders) is taken over between two ticks, so the
crew is only ever touched by this thread. The waiting and the voting hold no Python lock.

A loop may also be stepped by the measurements instead of the clock, see :class:`SteppedLoop`.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ft_controller.atomics import sleep_until
from ft_controller.crew import Crew, Processor, Tick
from ft_controller.errors import CrewError
from ft_controller.governor import State
from ft_controller.trajectory import Trajectory
from kin_common import checks
from kin_common.threads import start_thread

__all__ = ["ControlLoop", "Snapshot", "SteppedLoop"]

Array = NDArray[np.float64]
T = TypeVar("T")


@dataclass(frozen=True)
class Snapshot:
    """The controller at one moment; see kin_interfaces/FtStatus for the fields."""

    state: State
    reason: str
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
    locked: NDArray[np.bool_]
    lower: Array
    upper: Array
    torque: Array
    error: Array
    faults: int


class ControlLoop:
    """Drives a crew at a rate."""

    def __init__(
        self,
        crew: Crew,
        rate: float,
        send: Callable[[Tick], None],
        report: Callable[[Snapshot], None],
        state_timeout: float = 0.05,
        report_rate: float = 20.0,
        failed: Callable[[BaseException], None] = lambda _: None,
    ) -> None:
        """Prepare the loop.

        Args:
            crew: A crew that is started.
            rate: Ticks per second [Hz].
            send: Gets every tick's result, as soon as the torque is known.
            report: Gets a snapshot ``report_rate`` times a second, and whenever the state or the
                working set changes.
            state_timeout: Measurements older than this are lost [s].
            report_rate: See report [Hz].
            failed: Gets the exception if the loop itself breaks down, which ends it.
        """
        self._failed = failed
        self.crew = crew
        self.period_ns = int(1e9 / checks.within("rate", rate, 1.0, 20_000.0))
        self._send, self._report = send, report
        self._timeout_ns = int(1e9 * checks.positive("state_timeout", state_timeout))
        self._report_ns = int(1e9 / checks.positive("report_rate", report_rate))
        n = crew.arm.n
        self._measured: tuple[Array, Array, int] | None = None
        self._following: tuple[Trajectory, int] | None = None
        self._orders: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._votes: deque[float] = deque(maxlen=1000)
        self._desired = np.zeros((3, n))
        self._reported, self._shown = 0, (State.IDLE, -1)
        self._start_ns = self._time_ns()
        self.missed = 0
        self.error: BaseException | None = None

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
            limits = self.crew.governor.limits
            try:
                self.do(lambda: self.crew.governor.stop(self.now()))
                end = time.monotonic() + limits.ramp + 0.5
                while self.crew.governor.state == State.RAMP and time.monotonic() < end:
                    time.sleep(0.005)
            except CrewError:
                pass
        self._stop.set()
        if self._thread is not None:
            self._thread.join(5.0)
            self._thread = None
        self._drop_orders()

    def measured(self, q: Array, qdot: Array) -> None:
        """Take over a measurement; any thread."""
        self._measured = (q, qdot, self._time_ns())

    @property
    def measurement(self) -> tuple[Array, Array] | None:
        """The last measurement, positions and velocities."""
        latest = self._measured
        return None if latest is None else (latest[0], latest[1])

    @property
    def fresh(self) -> bool:
        """Whether there is a measurement of now."""
        latest = self._measured
        return latest is not None and self._time_ns() - latest[2] <= self._timeout_ns

    def desired(self) -> Array:
        """Where the trajectory is now: positions, velocities, accelerations, shape (3, n)."""
        following = self._following
        if following is None:
            return self._desired.copy()
        trajectory, began = following
        return trajectory.sample(1e-9 * (self._time_ns() - began))

    def follow(self, trajectory: Trajectory) -> None:
        """Follow a trajectory from now on; any thread."""
        self._following = (trajectory, self._time_ns())

    @property
    def following(self) -> Trajectory | None:
        """The trajectory in use."""
        following = self._following
        return None if following is None else following[0]

    def do(self, order: Callable[[], T], timeout: float = 5.0) -> T:
        """Do something with the crew between two ticks; any thread but the loop's own.

        Raises:
            CrewError: The loop does not run.
        """
        if not self.running:
            raise CrewError("the control loop does not run")
        future: Future[T] = Future()
        self._orders.append((order, future))
        try:
            return future.result(timeout)
        except TimeoutError:
            raise CrewError("the control loop does not answer") from None

    def _drop_orders(self) -> None:
        while self._orders:
            self._orders.popleft()[1].set_exception(CrewError("the control loop has stopped"))

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
        fresh = latest is not None and now - latest[2] <= self._timeout_ns
        nothing = np.zeros(self.crew.arm.n)
        q, qdot = (nothing, nothing) if latest is None else (latest[0], latest[1])
        if self._following is None and fresh:
            self.follow(Trajectory.rest(q))
        if self._following is not None:
            trajectory, began = self._following
            self._desired = trajectory.sample(1e-9 * (now - began))
        tick = self.crew.vote(
            q,
            qdot,
            self._desired[0],
            self._desired[1],
            self._desired[2],
            1e-9 * (now - self._start_ns),
            fresh,
            next_due,
        )
        self._send(tick)
        self.crew.review()
        self._votes.append(tick.vote_time)
        after = self._time_ns()
        news = (tick.state, self.crew.working_set)
        if self._shown != news or after - self._reported > self._report_ns:
            self._reported, self._shown = after, news
            self._report(self._snapshot(tick, q))

    def _snapshot(self, tick: Tick, q: Array) -> Snapshot:
        crew = self.crew
        return Snapshot(
            state=tick.state,
            reason=crew.reason(),
            controller=crew.controller,
            reconfiguration=crew.reconfiguration,
            degraded=crew.degraded,
            unverified=crew.unverified,
            saturated=crew.governor.saturated,
            tick=tick.number,
            working_set=crew.working_set,
            quorum=tick.quorum,
            agreeing=tick.agreeing,
            processors=crew.processors(),
            vote_time=tick.vote_time,
            vote_time_p99=float(np.percentile(self._votes, 99.0)),
            missed_deadlines=self.missed,
            held_ticks=crew.held_ticks,
            exclusions=crew.exclusions,
            locked=crew.locked,
            lower=crew.governor.limits.lower,
            upper=crew.governor.limits.upper,
            torque=tick.torque,
            error=self._desired[0] - q,
            faults=crew.faults,
        )


class SteppedLoop(ControlLoop):
    """A loop that the measurements drive: one tick for each, in the thread that brings it.

    Its time goes on by one period with every tick and stands still otherwise, so the same
    measurements and orders give the same torques on any machine: for replayed bags, and for
    simulations that wait for the controller.
    """

    def __init__(self, crew: Crew, rate: float, *arguments: Any, **options: Any) -> None:
        """Prepare the loop; see :class:`ControlLoop`."""
        self._ticks = 0
        self._going = False
        self._turn = threading.RLock()
        super().__init__(crew, rate, *arguments, **options)

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
                self.crew.governor.stop(self.now())
                for _ in range(int(1e9 * self.crew.governor.limits.ramp / self.period_ns) + 2):
                    if self._going and self.crew.governor.state == State.RAMP:
                        self._tick()
            self._going = False

    def measured(self, q: Array, qdot: Array) -> None:
        """Take over a measurement and do one tick with it; any thread."""
        with self._turn:
            if self._going:
                self._measured = (q, qdot, self._time_ns() + self.period_ns)
                self._tick()

    def do(self, order: Callable[[], T], timeout: float = 5.0) -> T:
        """Do something with the crew between two ticks; any thread.

        Raises:
            CrewError: The loop does not run.
        """
        with self._turn:
            if not self._going:
                raise CrewError("the control loop does not run")
            return order()

    def _tick(self) -> None:
        self._ticks += 1
        try:
            self._step(0)
        except BaseException as error:
            self._going = False
            self.error = error
            self._failed(error)
