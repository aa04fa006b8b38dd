"""Goals of motions: taken up if they keep to the limits, watched in every tick, ended with a code.

One goal is followed at a time. It ends when its last point is reached within the goal tolerances;
when the arm leaves its trajectory by more than the path tolerances, or is late by more than the
goal time; when another motion replaces it, somebody cancels it, or the arm is stopped. The codes
are those of control_msgs/FollowJointTrajectory.

Distances are those from the trajectory itself. After a pause, and where a trajectory does not begin
at the arm, the follower leads the arm there; until then the arm is off its path.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from ft_controller import dynamics, orders
from ft_controller.errors import ArmError
from ft_controller.loop import ControlLoop
from ft_controller.records import Array
from ft_controller.safety_supervisor import State
from ft_controller.serial_arm import SerialArm
from ft_controller.trajectory import Trajectory
from ft_controller.waypoints import Route, Waypoints

__all__ = ["Code", "Goal", "Outcome", "Seen", "Tolerances", "TrajectoryGoals", "tolerance"]

#: Torques are looked at in so many pieces of a trajectory, at these shares of each: where cubics
#: and quintics from rest to rest, among others, have their largest accelerations.
_PIECES, _SHARES = 400, (0.0, 0.21, 0.5, 0.79, 1.0)
#: An arm that should be no faster than this is at rest.
_REST = 1e-6
#: So many torques are computed before other threads get a turn.
_TURN = 16


class Code(IntEnum):
    """How a goal ends."""

    SUCCESSFUL = 0
    INVALID_GOAL = -1
    INVALID_JOINTS = -2
    OLD_HEADER_TIMESTAMP = -3
    PATH_TOLERANCE_VIOLATED = -4
    GOAL_TOLERANCE_VIOLATED = -5


@dataclass(frozen=True)
class Outcome:
    """The end of a goal: its code, a sentence, and whether it was cancelled."""

    code: Code
    sentence: str
    cancelled: bool = False


@dataclass(frozen=True)
class Tolerances:
    """How far the arm may be from its trajectory; 0: as far as it likes.

    Attributes:
        path: On the way: positions and velocities, shape (2, n).
        goal: At the end, shape (2, n).
        goal_time: How late it may reach the end [s].
    """

    path: Array
    goal: Array
    goal_time: float = 0.0


@dataclass(frozen=True)
class Seen:
    """A goal in one tick.

    Attributes:
        clock: How far the trajectory has come; negative before it begins [s].
        reference: Where the arm should be: positions, velocities, accelerations, shape (3, n).
        q: Where it is, shape (n,).
        qdot: How fast it moves, shape (n,).
    """

    clock: float
    reference: Array
    q: Array
    qdot: Array


@dataclass(eq=False)
class Goal:
    """A motion to be followed.

    Attributes:
        trajectory: Where to go.
        start_ns: When it begins, by the clock of motions [ns].
        tolerances: What ends it.
        attended: Whether somebody waits for it; else a stop of the arm only interrupts it.
        cancelling: Whether it was cancelled and the arm is coming to rest.
        seen: What was seen last.
        outcome: How it ended; None: it has not.
    """

    trajectory: Trajectory
    start_ns: int
    tolerances: Tolerances
    attended: bool = True
    cancelling: bool = False
    seen: Seen | None = None
    outcome: Outcome | None = None


def tolerance(field: str, usual: float, asked: float) -> float:
    """A tolerance of a goal: 0 leaves the usual one, -1 takes it away.

    Raises:
        ArmError: It is none.
    """
    if asked == -1.0:
        return 0.0
    if not 0.0 <= asked < np.inf:
        raise ArmError(field, f"must be positive, 0 (the usual one) or -1 (none), got {asked:g}")
    return asked if asked > 0.0 else usual


class TrajectoryGoals:
    """The goal that a control loop follows; orders may come from any thread."""

    def __init__(self, loop: ControlLoop, joints: Sequence[str]) -> None:
        """Watch a loop from now on.

        Args:
            loop: The control loop.
            joints: Names of its joints, for sentences.
        """
        self._loop, self._joints = loop, tuple(joints)
        self._goal: Goal | None = None
        self._changing = threading.Lock()
        loop.ticked = self.look

    @property
    def active(self) -> Goal | None:
        """The goal that is followed."""
        return self._goal

    def pass_through(
        self,
        points: Waypoints,
        tolerances: Tolerances,
        stamp_ns: int | None = None,
        *,
        attended: bool = True,
        smooth: bool = False,
    ) -> Goal:
        """Take up waypoints as the goal.

        Args:
            points: Where to go.
            tolerances: What ends the goal.
            stamp_ns: Their start, by the loop's clock of motions; None: now [ns].
            attended: See :class:`Goal`.
            smooth: See :meth:`~ft_controller.waypoints.Waypoints.route`.

        Raises:
            ArmError: They are past, or break a limit; what is followed goes on.
        """
        follower = self._loop.follower
        present = follower.present if self._loop.driving else None
        if present is None:  # nothing is followed that could be continued
            now_ns, state, start_ns = self._loop.clock(), orders.start_point(self._loop), None
        else:
            now_ns, state = present
            start_ns = now_ns
        past = 0.0
        if stamp_ns is not None and stamp_ns > now_ns:
            start_ns, state = stamp_ns, state if present is None else follower.ahead(stamp_ns)
        elif stamp_ns is not None:
            past = 1e-9 * (now_ns - stamp_ns)
        route = points.route(state, past, follower.entry.acceleration, smooth)
        self._check(route, state, past)
        began = now_ns if start_ns is None else start_ns
        goal = Goal(route.trajectory, began, tolerances, attended)
        self._begin(goal, start_ns)
        return goal

    def begin(self, trajectory: Trajectory, tolerances: Tolerances) -> Goal:
        """Take up a motion that was planned from where the arm should be."""
        goal = Goal(trajectory, self._loop.clock(), tolerances)
        self._begin(goal, None)
        return goal

    def _begin(self, goal: Goal, start_ns: int | None) -> None:
        with self._changing:
            self._end(Outcome(Code.INVALID_GOAL, "another goal has replaced it"))
            self._goal = goal
            self._loop.follower.follow(goal.trajectory, start_ns)

    def cancel(self, goal: Goal) -> None:
        """Come to rest on the way; the goal ends when the arm should be at rest."""
        with self._changing:
            if goal is self._goal and not goal.cancelling:
                goal.cancelling = True
                self._loop.follower.halt()

    def halt(self, why: str) -> None:
        """Come to rest on the way, whatever is followed; a goal ends at once."""
        with self._changing:
            self._end(Outcome(Code.INVALID_GOAL, why))
            self._loop.follower.halt()

    def drop(self, why: str) -> None:
        """End the goal, since the loop ends."""
        with self._changing:
            self._end(Outcome(Code.INVALID_GOAL, why))

    def _end(self, outcome: Outcome) -> None:
        goal, self._goal = self._goal, None
        if goal is not None:
            if goal.cancelling:
                outcome = Outcome(Code.SUCCESSFUL, f"cancelled; {outcome.sentence}", True)
            goal.outcome = outcome

    # ------------------------------------------------------------------ limits

    def _check(self, route: Route, state: Array, past: float) -> None:
        """Refuse a motion beyond the limits; an arm that is outside of them may come back."""
        group = self._loop.group
        limits, free = group.safety.limits, ~group.locked
        found = route.trajectory.violation(
            np.where(free, np.minimum(limits.lower, state[0]), -np.inf),
            np.where(free, np.maximum(limits.upper, state[0]), np.inf),
            np.where(free, np.maximum(limits.speed, np.abs(state[1])), np.inf),
        )
        if found is not None:
            verb = "would be at" if found.field == "positions" else "would move at"
            raise ArmError(
                f"points.{found.field}",
                f"{self._joints[found.joint]} {verb} {found.value:.4g} "
                f"{_place(route, found.piece, found.share, past)}, "
                f"allowed {found.low:.4g} to {found.high:.4g}",
            )
        limit = np.where(free, limits.torque, np.inf)
        needs = _first_strong(group.arm, route.trajectory, limit)
        if needs is not None:
            piece, share, joint, torque = needs
            raise ArmError(
                "points.accelerations",
                f"{self._joints[joint]} would need {torque:.4g} N m "
                f"{_place(route, piece, share, past)}, it has {limit[joint]:.4g}",
            )

    # ------------------------------------------------------------------ every tick

    def look(self, q: Array, qdot: Array, fresh: bool) -> None:
        """Watch the goal; the loop calls it at the end of each tick."""
        if self._goal is None:
            return
        with self._changing:
            goal = self._goal
            if goal is None:
                return
            try:
                outcome = self._judge(goal, q, qdot, fresh)
            except Exception as error:  # the loop goes on, whatever becomes of a goal
                outcome = Outcome(Code.INVALID_GOAL, f"it could not be watched: {error!r}")
            if outcome is None:
                return
            self._end(outcome)
            follower = self._loop.follower
            if outcome.code != Code.SUCCESSFUL and follower.follows(goal.trajectory):
                # Where the arm is, not where it should be: something may be in its way.
                limits = self._loop.group.safety.limits
                way = 0.5 * qdot * np.abs(qdot) / follower.entry.acceleration
                follower.follow(Trajectory.rest(np.clip(q + way, limits.lower, limits.upper)))

    def _judge(self, goal: Goal, q: Array, qdot: Array, fresh: bool) -> Outcome | None:
        """How the goal ends in this tick, if it does."""
        loop = self._loop
        if loop.group.safety.state in (State.RAMP, State.STOPPED):
            if not goal.attended:
                return None
            return Outcome(Code.INVALID_GOAL, f"the arm is stopped: {loop.group.reason()}")
        if not loop.follower.follows(goal.trajectory):
            if not goal.cancelling:
                return Outcome(Code.INVALID_GOAL, "another motion replaced it")
            if np.abs(loop.follower.desired[1]).max() < _REST:
                return Outcome(Code.INVALID_GOAL, "the arm has come to rest")
        reference = loop.follower.reference
        if reference is None or goal.cancelling:
            return None
        since = 1e-9 * (loop.clock() - goal.start_ns)
        trajectory, clock, point = reference
        taken_up = trajectory is goal.trajectory
        if taken_up and since < -loop.follower.entry.pause:
            return Outcome(Code.INVALID_GOAL, f"the clock was set back by {-since:.3f} s or more")
        first = goal.seen is None or goal.seen.clock < 0.0
        goal.seen = Seen(clock if taken_up else min(since, -1e-9), point, q, qdot)
        end, limits = goal.trajectory.duration, goal.tolerances
        off = np.abs(np.array([point[0] - q, point[1] - qdot]))
        if taken_up and fresh:
            if clock < end or first:
                far = self._farthest(off, limits.path)
                if far:
                    return Outcome(
                        Code.PATH_TOLERANCE_VIOLATED, f"{far} from its path at {clock:.3f} s"
                    )
            if clock >= end and not self._farthest(off, limits.goal):
                return Outcome(Code.SUCCESSFUL, "")
        if limits.goal_time > 0.0 and since > end + limits.goal_time:
            far = self._farthest(off, limits.goal) if taken_up and clock >= end else ""
            what = f"{far} from the goal" if far else "the trajectory is not at its end"
            return Outcome(
                Code.GOAL_TOLERANCE_VIOLATED,
                f"{what} {since - end:.3f} s after its time, allowed {limits.goal_time:g} s",
            )
        return None

    def _farthest(self, off: Array, limits: Array) -> str:
        """The joint that is farthest beyond its tolerances, for people; empty: none is."""
        beyond = np.where(limits > 0.0, off / np.where(limits > 0.0, limits, 1.0), 0.0)
        kind, joint = np.unravel_index(int(np.argmax(beyond)), beyond.shape)
        if not beyond[kind, joint] > 1.0:
            return ""
        value, limit = off[kind, joint], limits[kind, joint]
        unit = ("", "/s")[kind]
        return f"{self._joints[joint]} is {value:.4g}{unit} (allowed {limit:.4g}{unit})"


def _place(route: Route, piece: int, share: float, past: float) -> str:
    """A place on a route, by the numbers of its points."""
    time_ = route.trajectory.times
    end = time_[min(piece + 1, time_.size - 1)]
    moment = past + time_[piece] + share * (end - time_[piece])
    point = route.first + piece - (share == 0.0)
    where = "at" if share in (0.0, 1.0) else "on the way to"
    return f"{where} point {max(point, 0)} ({moment:.3f} s)"


def _first_strong(
    arm: SerialArm, trajectory: Trajectory, limit: Array
) -> tuple[int, float, int, float] | None:
    """Where too much torque is needed first: piece, share, joint, torque; None: nowhere."""
    times, coefficients = trajectory.times, trajectory.coefficients
    pieces = np.unique(np.linspace(0, len(coefficients) - 1, _PIECES).astype(int))
    count = 0
    for piece in pieces:
        length = times[piece + 1] - times[piece] if times.size > 1 else 0.0
        for share in _SHARES:
            q, qdot, qddot = _values(coefficients[piece], share * length)
            inertia, bias = dynamics.inertia_and_bias(arm.links, q, qdot)
            torque = inertia @ qddot + bias
            beyond = np.abs(torque) - limit
            if beyond.max() > 0.0:
                joint = int(np.argmax(beyond))
                return int(piece), share, joint, float(torque[joint])
            count += 1
            if count % _TURN == 0:
                time.sleep(0.0)  # the control loop is a thread of this process
    return None


def _values(c: Array, x: float) -> tuple[Array, Array, Array]:
    """A polynomial and its first two derivatives; c has the shape (6, n)."""
    powers = x ** np.arange(6)
    k = np.arange(6)
    first = (k[1:] * powers[:-1]) @ c[1:]
    second = (k[2:] * k[1:-1] * powers[:-2]) @ c[2:]
    return powers @ c, first, second
