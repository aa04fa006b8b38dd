"""The loop closer: actuated joints in, the full state of a closed-loop robot out.

    closer = LoopCloser(linkage, ["hip", "knee"])   # or those that the linkage says are actuated
    state = closer.close([0.1, -0.4], velocities=[0.0, 1.0])

A step either ends on the assembly branch on which it began, which is proven step by step (see
closing.py), or it is refused and nothing moves.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from hier_ik.assembly import assemble
from hier_ik.bodies import Bodies, pose_rows, unpack
from hier_ik.closing import (
    CLOSED,
    NOT_CLOSED,
    SINGULAR,
    TOO_FAR,
    step,
    steps,
    transmit,
    transmit_back,
)
from hier_ik.closures import relative_poses
from hier_ik.errors import LinkageError
from hier_ik.joints import joint_coordinates
from hier_ik.kinematics import all_kinematics
from hier_ik.linkage import Linkage
from hier_ik.loop_groups import make_groups, without_hierarchy
from hier_ik.spanning import assign_roles
from hier_ik.split import split_closures
from hier_ik.tables import Array
from hier_ik.validation import validate
from kin_core import checks

__all__ = ["LoopCloser", "State", "Step"]

#: Singular values of the loops below this share of the largest count as zero at the start.
RANK = 1e-9


class Step(IntEnum):
    """What became of a step."""

    CLOSED = CLOSED
    SINGULAR = SINGULAR
    TOO_FAR = TOO_FAR
    NOT_CLOSED = NOT_CLOSED


@dataclass(frozen=True, slots=True)
class State:
    """The full state after a step.

    Attributes:
        step: CLOSED; or why the step was refused, and then the state is that before it.
        positions: Coordinates of all tree joints (n,) [rad or m], in the order of
            LoopCloser.names.
        velocities: Their rates (n,) [rad/s or m/s], or None if those of the actuators were not
            given or the step was refused.
        margin: Smallest singular value of the loops, or less; 0 is singular. Lengths are in the
            unit of the linkage.
        residual: Bound on what is left of the loops [m or rad].
    """

    step: Step
    positions: Array
    velocities: Array | None
    margin: float
    residual: float


class LoopCloser:
    """Follows the actuated joints of one linkage.

    Attributes:
        linkage: The linkage as it was given, with roles; its values are not kept up to date.
        actuated: The actuated joints.
        names: Per coordinate of the tree joints its name: the joint, or joint/1, joint/2, ...
        driven: Which of these are actuated, in the order of the actuated joints (k,).
        smallest_margin: Steps to postures nearer to a singularity than this are refused.
        assembly: How the loops were closed at the start.
    """

    def __init__(
        self,
        linkage: Linkage,
        actuated: Sequence[str] | None = None,
        *,
        smallest_margin: float = 1e-4,
        tolerance: float = 1e-10,
    ) -> None:
        """Find the structure, and close the loops at the linkage's own posture, or near it.

        Args:
            linkage: Valid, its goals do not count. Joints in no loop that are not actuated stay
                where they are.
            actuated: Names of the actuated joints, all in the spanning tree; None: those of the
                linkage.
            smallest_margin: See the attributes.
            tolerance: What may be left of a loop at the start [m or rad].

        Raises:
            LinkageError: A joint is not known or not in the tree; a loop cannot be closed; the
                actuated joints do not determine the others, or are too many.
        """
        self.smallest_margin = checks.positive("smallest_margin", smallest_margin)
        self.linkage = linkage.copy()
        assign_roles(self.linkage)
        validate(self.linkage)
        self.actuated = self.linkage.actuated if actuated is None else tuple(actuated)
        for name in self.actuated:
            self._check_actuated(name)
        flat = without_hierarchy(self.linkage)
        self._assemble(flat, tolerance)
        self._flat, self._held = split_closures(flat)
        self._of = Bodies(self._flat)
        self._tables = make_groups(self._flat, self.actuated, self._of)
        self._arguments = self._tables.kernel()
        self.driven = np.array([d for name in self.actuated for d in self.part(name)], np.int64)
        self._unit = self._of.unit
        # What is above its loops stays where it is for a group, but it must be a pose.
        all_kinematics(self._tables.bodies, self._tables.freedoms)
        for group in range(len(self._tables.groups)):
            self._check_group(group)
        self.names = tuple(
            f"{name}/{k + 1}" if self._flat.joints[name].dof > 1 else name
            for name in self._of.dof_of
            for k in range(self._flat.joints[name].dof)
        )

    def copy(self) -> LoopCloser:
        """Another closer at the same posture, that shares what no step changes."""
        other = copy.copy(self)
        other._tables = self._tables.copy()
        other._arguments = other._tables.kernel()
        return other

    # ---- motion -----------------------------------------------------------------------------

    def close(self, positions: ArrayLike, velocities: ArrayLike | None = None) -> State:
        """Take the actuated joints to positions, and all others with them.

        Args:
            positions: Of the actuated joints, in order (k,) [rad or m].
            velocities: Their rates (k,) [rad/s or m/s].

        Raises:
            InvalidInput: Not so many finite numbers; nothing has moved.
        """
        size = len(self.driven)
        a = _vector("positions", positions, size)
        v = None if velocities is None else _vector("velocities", velocities, size)
        code, margin, residual = step(
            self._arguments, self.driven, self._unit, a, self.smallest_margin
        )
        rates = None
        if v is not None and code == CLOSED:
            rates = self.rates(v)
        return State(Step(code), self.positions, rates, margin, residual * self._scale)

    def follow(self, positions: ArrayLike) -> tuple[Array, int]:
        """The same for a trajectory, without coming back to Python in between.

        Args:
            positions: Of the actuated joints over time (t, k) [rad or m].

        Returns:
            Coordinates of all tree joints (t, n), NaN from the first step that was refused on, and
            how many steps were taken; the closer stands at the last of them.
        """
        a = checks.shape("positions", positions, (None, len(self.driven)))
        out = np.full((len(a), len(self.names)), np.nan)
        made = steps(
            self._arguments, self.driven, self._unit, np.ascontiguousarray(a),
            self.smallest_margin, out,
        )  # fmt: skip
        return out, int(made)

    @property
    def positions(self) -> Array:
        """Coordinates of all tree joints (n,) [rad or m]; a copy."""
        q: Array = self._tables.freedoms["q"] * self._unit
        return q

    @property
    def margin(self) -> float:
        """Smallest singular value of the loops, or less, at the present posture."""
        return float(self._tables.groups["margin"].min(initial=np.inf))

    def nearest(self) -> tuple[str, ...]:
        """The loops that are nearest to a singularity, by the names of their closures."""
        margins = self._tables.groups["margin"]
        return self._tables.names[int(margins.argmin())] if len(margins) else ()

    def explain(self, step: Step) -> str:
        """Why a step from this posture was refused, for people."""
        loops = ", ".join(repr(name) for name in self.nearest()[:3])
        return {
            Step.CLOSED: "taken",
            Step.SINGULAR: f"leads to a singularity; nearest to it is {loops}, the margin here is"
            f" {self.margin:.3g}",
            Step.TOO_FAR: "is too far for one step, or takes a slide beyond its reach",
            Step.NOT_CLOSED: "the loops do not close there",
        }[step]

    def rates(self, velocities: ArrayLike) -> Array:
        """Rates of all tree joints (n,) from those of the actuated ones (k,), at this posture."""
        v = _vector("velocities", velocities, len(self.driven))
        rates = np.zeros(len(self._unit))
        rates[self.driven] = v / self._unit[self.driven]
        transmit(*self._arguments[4:], rates)
        return rates * self._unit

    def part(self, name: str) -> range:
        """The coordinates of a tree joint, by their places in names."""
        first = self._of.dof_of[name]
        return range(first, first + self._flat.joints[name].dof)

    def values(self) -> dict[str, Array]:
        """Coordinates of every joint by name, closures too, which are read off the poses."""
        t, of = self._tables, self._of
        q = self.positions
        out = {
            name: q[self.part(name).start : self.part(name).stop]
            for name in of.dof_of
            if name in self.linkage.joints
        }
        all_kinematics(t.bodies, t.freedoms)
        poses = np.zeros((len(t.closures), 12))
        relative_poses(t.bodies, t.closures, poses)
        for row, name in enumerate(n for names in t.names for n in names):
            X = unpack(poses[row], of.length)
            if name in self._held:
                X = self._held[name] @ X
            out[name] = joint_coordinates(self.linkage.joints[name].type, X)
        return out

    def poses(self) -> dict[str, Array]:
        """Poses of all links in the root frame (4, 4) [m]."""
        t, of = self._tables, self._of
        all_kinematics(t.bodies, t.freedoms)
        rows = pose_rows(t.bodies["pose"])
        return {
            name: unpack(rows[of.link_body[name]], of.length) @ of.link_offset[name]
            for name in self.linkage.links
        }

    # ---- forces -----------------------------------------------------------------------------

    def actuator_torques(self, torques: ArrayLike) -> Array:
        """What the actuators feel of torques on all tree joints, at this posture.

        Args:
            torques: On the tree joints (n,) [Nm or N], such as inverse dynamics of the open tree.

        Returns:
            Torques of the actuators (k,) that do the same work in every motion of the loops.
        """
        forces = _vector("torques", torques, len(self._unit)) * self._unit
        transmit_back(*self._arguments[4:], forces)
        felt: Array = forces[self.driven] / self._unit[self.driven]
        return felt

    def joint_torques(self, torques: ArrayLike, joints: Sequence[str]) -> dict[str, Array]:
        """What torques of the actuators do on chosen joints instead, at this posture.

        Args:
            torques: Of the actuators (k,) [Nm or N].
            joints: Tree joints that may take their place, such as the two of an ankle; and those
                actuators that keep theirs.

        Returns:
            Per joint its torques (dof,), the smallest that do the same work in every motion.

        Raises:
            LinkageError: No torques on these joints do the work of these actuators.
        """
        tau = _vector("torques", torques, len(self.driven))
        for name in joints:
            checks.one_of("joints", name, self._of.dof_of)
        columns = [d for name in joints for d in self.part(name)]
        G = self.transmission()[columns]
        found, *_ = np.linalg.lstsq(G.T, tau, rcond=1e-12)
        if np.abs(G.T @ found - tau).max(initial=0.0) > 1e-9 * max(1.0, np.abs(tau).max(initial=0)):
            raise LinkageError(
                "joints", "these joints cannot do the work of all actuators that have a torque"
            )
        out: dict[str, Array] = {}
        at = 0
        for name in joints:
            dof = self._flat.joints[name].dof
            out[name] = np.asarray(found[at : at + dof], np.float64)
            at += dof
        return out

    def transmission(self) -> Array:
        """Rates of all tree joints per rate of each actuator (n, k), at this posture."""
        G = np.zeros((len(self.driven), len(self._unit)))
        G[np.arange(len(G)), self.driven] = 1.0 / self._unit[self.driven]
        for rates in G:
            transmit(*self._arguments[4:], rates)
        return (G * self._unit).T

    # ---- inside -----------------------------------------------------------------------------

    @cached_property
    def _scale(self) -> float:
        return max(1.0, self._of.length)

    def _check_actuated(self, name: str) -> None:
        joint = self.linkage.joints[checks.one_of("actuated", name, self.linkage.joints)]
        if self.actuated.count(name) > 1:
            raise LinkageError(f"joint {name!r}", "is listed twice as actuated")
        if joint.closure or joint.locked or not joint.dof:
            why = "closes a loop; mark it as a tree joint" if joint.closure else "cannot move"
            raise LinkageError(f"joint {name!r}", f"is to be actuated but {why}", rule="actuated")

    def _assemble(self, flat: Linkage, tolerance: float) -> None:
        """Close the loops with the actuators where they are, or else with some of them moved."""
        found = assemble(flat, self.actuated, tolerance=tolerance, starts=1)
        if not found.closed:
            found = assemble(flat, tolerance=tolerance)
        for name, gap in found.open.items():
            raise LinkageError(
                f"joint {name!r}",
                f"the loop cannot be closed: {gap:.3g} m or rad are left at the best of"
                f" {found.starts} starts",
                rule="closed loops",
            )
        flat.values.update(found.values)
        self.assembly = found

    def _check_group(self, k: int) -> None:
        """Whether the actuators determine the passive joints, and nothing more."""
        t = self._tables
        g, J = t.groups[k], t.jacobian(k)
        passive, driven = J[:, : g["passive"]], J[:, g["passive"] :]
        U, sizes, V = np.linalg.svd(passive)
        rank = int((sizes > RANK * max(1.0, sizes.max(initial=0.0))).sum())
        loops = ", ".join(repr(n) for n in t.names[k][:4])
        if rank < g["passive"]:
            free = np.abs(V[rank:]).max(axis=0) > 1e-6
            of = [name for name in t.passive[k] for _ in self.part(name)]
            loose = list(dict.fromkeys(np.array(of)[free].tolist()))
            raise LinkageError(
                f"joint {loose[0]!r}",
                f"the actuated joints do not determine {', '.join(map(repr, loose[:6]))}"
                f" through {loops}, or the posture is singular",
                rule="determined",
            )
        beyond = U[:, rank:].T @ driven
        if np.abs(beyond).max(initial=0.0) > 1e-6:
            raise LinkageError(
                f"joint {t.names[k][0]!r}",
                f"the actuated joints are not independent: {loops} would open when one moves alone",
                rule="independent",
            )


def _vector(label: str, values: ArrayLike, size: int) -> Array:
    """Check a vector (size,); one that is right already costs next to nothing."""
    right = isinstance(values, np.ndarray) and values.shape == (size,)
    if right and values.dtype == np.float64 and np.isfinite(values).all():  # type: ignore[union-attr]
        return np.ascontiguousarray(values)
    return np.ascontiguousarray(checks.shape(label, values, (size,)))
