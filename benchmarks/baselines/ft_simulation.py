"""A controlled arm in simulated time, with whatever may go wrong around the vote.

The control loop, the safety supervisor and the arm are the real ones; the processors are one
computation in this process, since what they do to each other is not the question here. Time is
simulated, so the same script gives the same motion on any machine.

    simulation = Simulation(rate=100.0)
    simulation.follow(plan(...).trajectory)
    simulation.run(1.0)
    simulation.run(10.0, node_stopped=True)
    simulation.run(2.0)
    print(simulation.fastest, simulation.state)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ft_controller import Arm, Limits, Plant, Processor, ReplicaGroup, State, Tick, Trajectory
from ft_controller.dynamics import computed_torque
from ft_controller.loop import SteppedLoop
from ft_controller.safety_supervisor import Reason
from ft_controller.serial_arm import SerialArm

__all__ = ["Simulation", "SoloGroup", "Trouble"]

Array = NDArray[np.float64]


class SoloGroup(ReplicaGroup):
    """A replica group that is one computation in this process, and which can be silenced.

    Attributes:
        silent: Whether there is no quorum.
        votes: Called in each vote.
        starved: Whether that is for want of answers; else the processors disagree.
    """

    starved = True

    def __init__(self, arm: SerialArm, **options: Any) -> None:
        super().__init__(arm, **options)
        self.silent = False
        self.votes: Callable[[], None] = lambda: None
        self._vote["working_set"] = self.alive

    def _collect_votes(self) -> bool:
        self.votes()
        self._vote["tick"] += 1
        self._vote["quorum"] = self.p // 2 + 1
        self._vote["agreeing"] = 0 if self.silent else self.p
        if not self.silent:
            self._ballot.tau[:] = computed_torque(self.arm.links, self._joints)
        return not self.silent

    def _review_votes(self) -> None:
        """Nobody is judged."""

    @property
    def alive(self) -> int:
        """All of them."""
        return (1 << self.p) - 1

    def processors(self) -> list[Processor]:
        """Nobody is shown."""
        return []


class _Loop(SteppedLoop):
    """A stepped loop whose time is set from outside."""

    time_ns = 0

    def _time_ns(self) -> int:
        return self.time_ns

    def step(self) -> None:
        """One tick, now."""
        self._step(0)

    def sensed(self, q: Array, qdot: Array, age: float) -> None:
        """Take over a measurement without a tick."""
        super(SteppedLoop, self).measured(q, qdot, age)


@dataclass(frozen=True)
class Trouble:
    """What is wrong for a while.

    Attributes:
        node_stopped: The controller does nothing at all, as after SIGSTOP.
        silent: There is no quorum; each tick takes ``patience``.
        slow: Each vote takes so long, and its torque goes out after that [s].
        lost: Joint states do not arrive.
        frozen: Joint states arrive with new stamps and the old content.
        age: Joint states are so old when they arrive [s].
        push: Torques of somebody who pushes the arm, one or n [N m].
    """

    node_stopped: bool = False
    silent: bool = False
    slow: float = 0.0
    lost: bool = False
    frozen: bool = False
    age: float = 0.0
    push: float = 0.0


class Simulation:
    """An arm, its drives, and the control loop, step by step.

    Attributes:
        time: Simulated time [s].
        fastest: Largest joint speed so far [rad/s].
        step: Largest change of a joint's torque from one command to the next so far [N m].
        farthest: Largest distance of a joint from its motion so far, while it was driven [rad].
        states: States in their order, without repetitions.
        sent: All commands so far.
    """

    def __init__(
        self,
        rate: float = 100.0,
        arm: SerialArm | None = None,
        start: ArrayLike = (0.3, 0.4, 0.5, 0.6),
        model_error: float = 0.05,
        seed: int = 1,
        limits: Limits | None = None,
        patience: float = 0.06,
        state_timeout: float = 0.1,
        command_timeout: float = 0.2,
        **loop_options: Any,
    ) -> None:
        """Put the arm at its start and begin to control it.

        Args:
            rate: Of the control loop and of the joint states [Hz].
            arm: The arm that the controller believes in.
            start: Where it is [rad].
            model_error: Relative error of what the controller believes.
            seed: Of that error.
            limits: Of the safety supervisor.
            patience: How long a vote without a quorum takes [s].
            state_timeout: See :class:`~ft_controller.loop.ControlLoop`.
            command_timeout: Without a command for so long the drives brake; infinity: never [s].
            loop_options: Further options of the loop.
        """
        self.arm: SerialArm = arm or Arm.four_link()
        self.plant = Plant(self.arm.perturbed(seed, model_error), q=start)
        limits = limits or Limits.of(self.arm)
        self.group = SoloGroup(self.arm, limits=limits)
        self.loop = _Loop(
            self.group, rate, self._command, lambda _: None, state_timeout, 1e-3, **loop_options
        )
        self.loop.start()
        self._brakes = Limits.of(self.arm).damping
        self._ticks = max(1, round(patience * rate))
        self._timeout = command_timeout
        self._torque, self._commanded = np.zeros(self.arm.n), -np.inf
        self._steps, self._busy, self._slow = 0, 0, 0.0
        self._late: Tick | None = None
        self.group.votes = self._take_time
        self._seen = self.plant.measure()
        self.fastest = self.step = self.farthest = 0.0
        self.states: list[State] = []
        self.sent: list[Tick] = []

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return 1e-9 * self._steps * self.loop.period_ns

    @property
    def state(self) -> State:
        """State of the safety supervisor."""
        return self.group.safety.state

    @property
    def reason(self) -> Reason:
        """Why it is there."""
        return self.group.safety.reason

    @property
    def speed(self) -> float:
        """Largest joint speed now [rad/s]."""
        return float(np.abs(self.plant.qdot).max())

    def follow(self, trajectory: Trajectory) -> None:
        """Follow a trajectory from the next tick on."""
        self.loop.follower.follow(trajectory)

    def reset(self) -> None:
        """As the node's reset: stay where the arm is."""
        self.loop.follower.follow(Trajectory.rest(self.plant.q))
        self.group.reset()

    def run(self, seconds: float, trouble: Trouble | None = None, **kinds: Any) -> Simulation:
        """Let time pass, with trouble of a kind all the while."""
        now = trouble or Trouble(**kinds)
        for _ in range(round(seconds * 1e9 / self.loop.period_ns)):
            self._advance(now)
        return self

    def skip(self, seconds: float) -> Simulation:
        """Let time pass in which nothing moves and nobody does anything."""
        self._steps += round(seconds * 1e9 / self.loop.period_ns)
        return self

    def _advance(self, now: Trouble) -> None:
        period = 1e-9 * self.loop.period_ns
        obeyed = self.time - self._commanded <= self._timeout and not self.group.safety.needs_brakes
        torque = self._torque if obeyed else np.zeros_like(self._torque)
        self.plant.step(torque + now.push, period, None if obeyed else self._brakes)
        self._steps += 1
        self.loop.time_ns = self._steps * self.loop.period_ns
        self.fastest = max(self.fastest, self.speed)
        if now.node_stopped:
            self._busy = 0
            return
        if not now.frozen:
            self._seen = self.plant.measure()
        if not now.lost:
            self.loop.sensed(*self._seen, now.age)
        self.group.silent = now.silent
        self._busy -= 1
        if self._busy > 0:
            return
        if self._late is not None:
            self._obey(self._late)
            self._late = None
        self._slow = now.slow
        self._busy = self._ticks if now.silent else round(1e9 * now.slow / self.loop.period_ns)
        self.loop.step()
        if not self.states or self.states[-1] != self.state:
            self.states.append(self.state)
        if self.state == State.RUN:
            off = self.loop.follower.desired[0] - self.plant.q
            self.farthest = max(self.farthest, float(np.abs(off).max()))

    def _take_time(self) -> None:
        self.loop.time_ns += int(1e9 * self._slow)

    def _command(self, tick: Tick) -> None:
        self.sent.append(tick)
        if self._slow > 0.0:
            self._late = tick
        else:
            self._obey(tick)

    def _obey(self, tick: Tick) -> None:
        self.step = max(self.step, float(np.abs(tick.torque - self._torque).max()))
        self._torque, self._commanded = tick.torque, self.time
