"""Jerk-limited trajectories for fleets of delta robots, planned and sampled by the kernels.

A move is a straight line, or up - across - down, or the Adept cycle (there and back for ever).
Every leg has a profile of seven phases with limited speed, acceleration and jerk; in a
pick-and-place move the legs may overlap in time, which rounds the corners. Time along a robot's
path can be stretched until its joints keep their limits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kinematics.arrays import LAYOUTS, check_dtype, host_array, is_device_array, open_batch
from gpu_kinematics.call import Array, Call, Group, rows_of
from gpu_kinematics.delta import Delta
from gpu_kinematics.errors import DeltaInput, DeltaLimit
from kin_core import checks
from kin_core.task import Task

__all__ = ["KINDS", "Fleet", "Move", "Trajectory", "sample_times"]

KINDS = {"straight": 0.0, "pick_and_place": 1.0, "adept_cycle": 2.0}
_FIELDS = ("position", "velocity", "acceleration", "angle", "rate", "rate2")


@dataclass(frozen=True, kw_only=True)
class Move:
    """How to move.

    Attributes:
        kind: "straight", "pick_and_place" or "adept_cycle".
        max_velocity: Along each leg [m/s].
        max_acceleration: Along each leg [m/s^2].
        max_jerk: Along each leg [m/s^3].
        height: Lift above the higher end [m].
        overlap: 0 stops at the corners, 1 starts a leg as the one before begins to brake.
        dwell: Pause at each end of a cycle [s].
    """

    kind: str = "pick_and_place"
    max_velocity: float
    max_acceleration: float
    max_jerk: float
    height: float = 0.025
    overlap: float = 0.0
    dwell: float = 0.0

    def __post_init__(self) -> None:
        checks.one_of("kind", self.kind, KINDS)
        for name in ("max_velocity", "max_acceleration", "max_jerk"):
            checks.within(name, getattr(self, name), 1e-6, 1e9)
        checks.within("height", self.height, 0.0, 1e4)
        checks.within("overlap", self.overlap, 0.0, 1.0)
        checks.within("dwell", self.dwell, 0.0, 1e6)


@dataclass(frozen=True)
class Trajectory:
    """Samples of a fleet's motion; arrays have the index [component, sample, robot].

    Attributes:
        position: [m], shape (3, K, N).
        velocity: [m/s].
        acceleration: [m/s^2].
        angle: [rad].
        rate: [rad/s].
        rate2: [rad/s^2].
        status: Status masks, shape (K, N).
    """

    position: Array
    velocity: Array
    acceleration: Array
    angle: Array
    rate: Array
    rate2: Array
    status: Array


class Fleet:
    """A batch of robots with a planned move each.

    Attributes:
        delta: Kinematics of the robots.
        count: Number of robots.
        duration: When each robot is at rest at its end, or the period of its cycle [s], shape (N,).
        path: What the sampling kernel reads, shape (26, N).
        time_scale: Factor by which each robot was slowed down, shape (N,).
    """

    def __init__(
        self,
        delta: Delta,
        start: Array,
        goal: Array,
        move: Move,
        *,
        layout: str | None = None,
        time_scale: Array = None,
    ) -> None:
        """Plan the moves.

        Args:
            delta: Kinematics of the robots.
            start: Positions [m], shape (3, N) or (N, 3).
            goal: Positions [m], same shape.
            move: How to move.
            layout: "soa" or "aos"; that of ``delta`` by default.
            time_scale: Factor per robot that slows it down, at least 1; None for 1.
        """
        order = delta.layout if layout is None else checks.one_of("layout", layout, LAYOUTS)
        self.delta, self.move = delta, move
        self._device = is_device_array(start)
        if self._device != is_device_array(goal):
            raise DeltaInput("goal", "must be on the same side, host or device, as start")
        self._xp: Any = np
        arrays = (
            [host_array(n, x) for n, x in (("start", start), ("goal", goal))]
            if (not self._device)
            else [self._cuda().adopt(x) for x in (start, goal)]
        )
        if self._device:
            self._xp = self._cuda().cp
        ends = [
            open_batch(name, array, 3, order)
            for name, array in zip(("start", "goal"), arrays, strict=True)
        ]
        if ends[0].shape != ends[1].shape or ends[0].array.dtype != ends[1].array.dtype:
            raise DeltaInput("goal", "must have the shape and dtype of start")
        self.dtype = check_dtype("start", ends[0].array.dtype)
        self.count = ends[0].count
        self._start, self._goal = ends[0].group, ends[1].group
        self._keep = ends
        scale = np.ones(1) if time_scale is None else time_scale
        self.time_scale: Array = self._xp.empty(self.count, self.dtype)
        self.time_scale[...] = self._xp.asarray(scale)
        self.path: Array = self._xp.empty((rows_of("plan")[1][0], self.count), self.dtype)
        self.duration: Array = self._xp.empty(self.count, self.dtype)
        self._plan()

    def check(self) -> None:
        """Refuse moves that never end."""
        if not bool(self._xp.isfinite(self.duration).all()):
            raise DeltaInput("goal", "is so far from start that the move has no finite duration")

    def _cuda(self) -> Any:
        if self.delta.cuda is None:
            raise DeltaInput("start", "is on a CUDA device, but the backend is 'cpu'")
        return self.delta.cuda

    def _plan(self) -> None:
        move = self.move
        numbers = (
            *(KINDS[move.kind], move.height, move.overlap, move.dwell),
            *(move.max_velocity, move.max_acceleration, move.max_jerk),
        )
        settings = self._xp.empty((8, self.count), self.dtype)
        settings[:7] = self._xp.asarray(np.array(numbers))[:, None]
        settings[7] = self.time_scale
        n = self.count
        inputs = (self._start, self._goal, Group(settings, n, 1))
        outputs = (Group(self.path, n, 1), Group(self.duration, n, 1))
        self._run("plan", 1, inputs, outputs, Group(None))

    def _run(
        self,
        op: str,
        outer: int,
        inputs: tuple[Group, ...],
        outputs: tuple[Group, ...],
        mask: Group,
    ) -> None:
        """Call a kernel where the fleet's arrays are."""
        where = self._cuda() if self._device else None
        head = self.delta.head(self.dtype, self.count, where=where)
        call = Call(op, self.dtype, outer, self.count, (*head, *inputs), outputs, mask)
        self.delta.run(call, where)

    def sample(self, times: Array, *, fields: tuple[str, ...] = _FIELDS) -> Trajectory:
        """The motion at times.

        Args:
            times: Times from the start [s], shape (K,) for all robots or (K, N).
            fields: Which arrays to compute; the others are None.
        """
        xp, n = self._xp, self.count
        for name in fields:
            checks.one_of("fields", name, _FIELDS)
        t = xp.ascontiguousarray(xp.asarray(times, self.dtype))
        if t.ndim not in (1, 2) or (t.ndim == 2 and t.shape[1] != n):
            raise DeltaInput("times", f"must have the shape (K,) or (K, {n}), got {t.shape}")
        K = t.shape[0]
        clock = Group(t, 0, 0, 1) if t.ndim == 1 else Group(t, 0, 1, n)
        made = {f: xp.empty((3, K, n), self.dtype) if f in fields else None for f in _FIELDS}
        outputs = tuple(Group(None) if a is None else Group(a, K * n, 1, n) for a in made.values())
        status = xp.empty((K, n), np.uint16)
        path = Group(self.path, n, 1, 0)
        self._run("trajectory", K, (clock, path), outputs, Group(status, 0, 1, n))
        return Trajectory(**made, status=status)

    def slowed(
        self, max_rate: float, max_rate2: float, *, samples: int = 257, task: Task | None = None
    ) -> Fleet:
        """The same moves, each slowed down until its joints keep their limits.

        Slowing a path by f divides rates by f and accelerations by f^2. The peaks are taken over
        samples, and confirmed on the slowed path.

        Args:
            max_rate: Joint rate [rad/s].
            max_rate2: Joint acceleration [rad/s^2].
            samples: Samples per robot and look.
            task: May cancel between looks.
        """
        checks.positive("max_rate", max_rate)
        checks.positive("max_rate2", max_rate2)
        fleet, xp = self, self._xp
        for _ in range(4):
            if task is not None:
                task.check()
            rate, rate2 = fleet.peaks(samples)
            need = xp.maximum(rate / max_rate, xp.sqrt(rate2 / max_rate2))
            if not bool((need > 1.0).any()):
                break
            factor = xp.where(need > 1.0, need * 1.001, 1.0)
            fleet = Fleet._again(fleet, fleet.time_scale * factor)
        return fleet

    @staticmethod
    def _again(fleet: Fleet, time_scale: Array) -> Fleet:
        other = object.__new__(Fleet)
        other.__dict__.update(fleet.__dict__)
        other.time_scale = time_scale.astype(fleet.dtype)
        other.path = fleet._xp.empty_like(fleet.path)
        other.duration = fleet._xp.empty_like(fleet.duration)
        other._plan()
        return other

    def peaks(self, samples: int = 257) -> tuple[Array, Array]:
        """Largest joint rate [rad/s] and acceleration [rad/s^2] of each robot over its move."""
        xp = self._xp
        share = xp.linspace(0.0, 1.0, samples, dtype=self.dtype)
        motion = self.sample(share[:, None] * self.duration[None, :], fields=("rate", "rate2"))
        return tuple(
            xp.nan_to_num(xp.abs(a).max(axis=(0, 1)), nan=0.0, posinf=0.0)
            for a in (motion.rate, motion.rate2)
        )


def sample_times(
    fleet: Fleet, period: float, samples: int, max_samples: int
) -> NDArray[np.float64]:
    """Times at which to sample a fleet from its start to its end [s], shape (K,).

    Args:
        fleet: The planned moves.
        period: Time between samples [s]; 0 spreads ``samples`` over the longest move.
        samples: Number of samples; 0 takes as many as the period needs.
        max_samples: Samples x robots at most.
    """
    longest = float(fleet.duration.max())
    if not (math.isfinite(period) and period >= 0.0):
        raise DeltaInput("sample_period", f"must be a time of at least 0 s, got {period}")
    if period == 0.0:
        if samples < 2:
            raise DeltaInput("samples", "must be at least 2 without a sample_period")
    elif samples == 0:
        samples = min(math.ceil(longest / period) + 1, max_samples + 1)
    if samples * fleet.count > max_samples:
        raise DeltaLimit(
            f"samples: {samples} x {fleet.count} robots are more than max_samples = {max_samples}"
        )
    if period == 0.0:
        return np.linspace(0.0, longest, samples)
    return np.arange(samples, dtype=np.float64) * period
