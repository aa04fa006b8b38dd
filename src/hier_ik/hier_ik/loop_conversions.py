"""Between messages and the loop closer: joints by name in, all joints out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from kin_interfaces.msg import LoopStatus
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from hier_ik.errors import LinkageError
from hier_ik.loop_closer import LoopCloser, State, Step
from hier_ik.tables import Array, Ints
from kin_core import checks
from kin_core.errors import InvalidInput, StatusCode
from kin_core.task import Task
from kin_ros.arrays import from_field, to_field

__all__ = ["Actuators", "AllJoints", "answer_trajectory", "joint_efforts", "loop_status"]

#: Lists of names that are remembered; publishers of joint states repeat theirs.
_MOST_LISTS = 16
#: Points between two looks at whether a request was cancelled.
_POINTS = 64


class Actuators:
    """What was heard of the actuated joints, in the order of the closer.

    Attributes:
        names: Of their coordinates.
        positions: Latest positions (k,) [rad or m]; NaN until they are known.
        complete: Whether every position is known.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.complete = not names
        self.positions, self._velocities, self._efforts = np.full((3, len(names)), np.nan)
        self._index = {name: k for k, name in enumerate(names)}
        self._lists: dict[tuple[str, ...], tuple[Ints, Ints]] = {}

    @property
    def missing(self) -> list[str]:
        """Joints that were not heard of."""
        known = np.isfinite(self.positions)
        return [name for name, here in zip(self.names, known, strict=True) if not here]

    @property
    def velocities(self) -> Array | None:
        """Latest velocities (k,) [rad/s or m/s], if all were told."""
        return self._velocities if np.isfinite(self._velocities).all() else None

    @property
    def efforts(self) -> Array | None:
        """Latest efforts (k,) [Nm or N], if all were told."""
        return self._efforts if np.isfinite(self._efforts).all() else None

    def take(self, message: JointState) -> bool:
        """Remember what a message says of actuated joints; whether it says anything.

        Raises:
            InvalidInput: Not as many numbers as names, or a position is not finite; nothing is
                remembered then.
        """
        places, numbers = self._places(tuple(message.name))
        position = _column("position", message.position, len(message.name))
        if not len(places) or position is None:
            return False
        velocity = _column("velocity", message.velocity, len(message.name))
        effort = _column("effort", message.effort, len(message.name))
        given = position[numbers]
        if not np.isfinite(given).all():
            raise InvalidInput("position", "must be finite")
        self.positions[places] = given
        self._velocities[places] = np.nan if velocity is None else velocity[numbers]
        self._efforts[places] = np.nan if effort is None else effort[numbers]
        self.complete = self.complete or not np.isnan(self.positions).any()
        return True

    def _places(self, names: tuple[str, ...]) -> tuple[Ints, Ints]:
        """Which actuators a list of names means, and which of the names; looked up once for each.

        Raises:
            InvalidInput: A joint is named twice.
        """
        if names not in self._lists:
            chosen = [(self._index[n], k) for k, n in enumerate(names) if n in self._index]
            if len({place for place, _ in chosen}) < len(chosen):
                raise InvalidInput("name", "a joint is named twice")
            if len(self._lists) >= _MOST_LISTS:
                self._lists.clear()
            both = np.array(chosen, np.int64).reshape(-1, 2)
            self._lists[names] = both[:, 0], both[:, 1]
        return self._lists[names]


class AllJoints:
    """The joints of the tree as messages have them: real ones alone.

    Attributes:
        names: Of their coordinates.
    """

    def __init__(self, closer: LoopCloser, effort_joints: Sequence[str] = ()) -> None:
        """Choose the joints.

        Args:
            closer: Of the robot.
            effort_joints: Joints that show the efforts of the actuators; none: these themselves.

        Raises:
            LinkageError: They cannot do the work of all actuators.
        """
        virtual = [
            k for j in closer.linkage.tree_joints() if j.virtual for k in closer.part(j.name)
        ]
        self._real = np.setdiff1d(np.arange(len(closer.names)), virtual)
        self.names = [closer.names[k] for k in self._real]
        self._effort_joints = tuple(effort_joints)
        if effort_joints:
            closer.joint_torques(np.ones(len(closer.driven)), effort_joints)

    def columns(
        self, closer: LoopCloser, state: State, efforts: Array | None
    ) -> tuple[Array, Array | None, Array | None]:
        """Positions, velocities and efforts of the joints (n,) each, where they are known."""
        velocities = None if state.velocities is None else state.velocities[self._real]
        return state.positions[self._real], velocities, self._through(closer, efforts)

    def _through(self, closer: LoopCloser, efforts: Array | None) -> Array | None:
        if efforts is None:
            return None
        out = np.zeros(len(closer.names))
        if not self._effort_joints:
            out[closer.driven] = efforts
            return out[self._real]
        try:
            found = closer.joint_torques(efforts, self._effort_joints)
        except LinkageError:  # at this posture no effort of these joints does the work
            return None
        for name, values in found.items():
            out[closer.part(name)] = values
        return out[self._real]

    def message(self, closer: LoopCloser, state: State, efforts: Array | None) -> JointState:
        """The full state; its header is to be filled."""
        message = JointState(name=self.names)
        _fill(message, ("position", "velocity", "effort"), self.columns(closer, state, efforts))
        return message


def answer_trajectory(
    response: Any,
    closer: LoopCloser,
    joints: AllJoints,
    asked: JointTrajectory,
    most: int,
    task: Task,
) -> None:
    """Follow a trajectory of actuated joints, and write all joints into a CloseLoops response.

    Args:
        response: Of the service.
        closer: One that nobody else uses, at the start.
        joints: Those of the answer.
        asked: The trajectory.
        most: Points that are taken.
        task: For cancel and timeout.

    Raises:
        InvalidInput: The trajectory cannot be understood.
    """
    checks.count("trajectory.points", len(asked.points), most)
    index = {closer.names[d]: k for k, d in enumerate(closer.driven)}
    places = [index[checks.one_of("trajectory.joint_names", n, index)] for n in asked.joint_names]
    if len(set(places)) < len(places):
        raise InvalidInput("trajectory.joint_names", "a joint is named twice")
    positions = closer.positions[closer.driven]
    answer, margins = JointTrajectory(header=asked.header, joint_names=joints.names), list[float]()
    residual, stopped = 0.0, ""
    for k, point in enumerate(asked.points):
        if k % _POINTS == 0:
            task.check()
        where = f"trajectory.points[{k}]."
        given, velocities, efforts = (
            _placed(where + name, getattr(point, name), places, len(index))
            for name in ("positions", "velocities", "effort")
        )
        if given is None and places:
            raise InvalidInput(f"{where}positions", "must be one for each joint")
        if given is not None:
            positions[places] = given[places]
        state = closer.close(positions, velocities)
        if state.step != Step.CLOSED:
            stopped = f"points[{k}]: {closer.explain(state.step)}"
            break
        out = JointTrajectoryPoint(time_from_start=point.time_from_start)
        columns = joints.columns(closer, state, efforts)
        _fill(out, ("positions", "velocities", "effort"), columns)
        answer.points.append(out)
        margins.append(state.margin)
        residual = max(residual, state.residual)
    response.trajectory, response.nearest = answer, list(closer.nearest())
    response.margins = to_field(margins, "float64")
    response.status.residual, response.status.iterations = residual, len(margins)
    response.status.message = stopped or f"{len(margins)} points, {len(joints.names)} joints"
    if stopped:
        response.status.code = int(StatusCode.UNREACHABLE)


def joint_efforts(closer: LoopCloser, message: JointState) -> JointState:
    """Efforts on joints of the tree as the actuators feel them, at the posture of the closer.

    Raises:
        InvalidInput: A joint is not known, or there are not as many efforts as names.
    """
    efforts = _column("effort", message.effort, len(message.name))
    if efforts is None or not np.isfinite(efforts).all():
        raise InvalidInput("effort", "must be finite, one for each joint")
    torques, index = np.zeros(len(closer.names)), {n: k for k, n in enumerate(closer.names)}
    for name, effort in zip(message.name, efforts.tolist(), strict=True):
        torques[index[checks.one_of("name", name, index)]] += effort
    felt = closer.actuator_torques(torques)
    out = JointState(header=message.header, name=[closer.names[d] for d in closer.driven])
    out.effort = to_field(felt)
    return out


def loop_status(closer: LoopCloser, step: Step, residual: float) -> LoopStatus:
    """What became of a step; header, what is missing and the counts are to be filled."""
    return LoopStatus(
        step=int(step), message=closer.explain(step), margin=closer.margin, residual=residual,
        nearest=list(closer.nearest()),
    )  # fmt: skip


def _column(name: str, values: Any, size: int) -> Array | None:
    """A column of a message (size,), None if it is empty."""
    column = from_field(values, "float64")
    if not len(column):
        return None
    if len(column) != size:
        raise InvalidInput(name, f"must be one for each of {size} names, got {len(column)}")
    return column


def _placed(name: str, values: Any, places: Sequence[int], size: int) -> Array | None:
    """A column in the order of the actuators (size,), zero where it says nothing."""
    column = _column(name, values, len(places))
    if column is None:
        return None
    out = np.zeros(size)
    out[places] = checks.finite(name, column)
    return out


def _fill(message: Any, fields: Sequence[str], columns: Sequence[Array | None]) -> None:
    for field, column in zip(fields, columns, strict=True):
        if column is not None:
            setattr(message, field, to_field(column))
