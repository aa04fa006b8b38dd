"""Branches of postures along a path: where each begins and ends, which are one, which meet."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

__all__ = ["Branch", "Event", "add_branch", "paired", "unknown_at"]

Array = NDArray[np.float64]

_TWO_PI = 2.0 * math.pi
#: Configurations nearer to each other are one posture; the ends of two that meet are nearer.
SAME, MEETING = 1e-6, 0.05
#: Places of the ends of two postures that meet are nearer to each other.
MEETING_PLACE = 1e-4


@dataclass(frozen=True)
class Event:
    """Where a branch begins or ends, and why.

    Attributes:
        kind: "path": where the path itself begins or ends; "limit": a joint comes to its limit;
            "meets": another branch begins or ends there, too; "singular": no step on can be
            proven, as at a singularity; "unfinished": the budget of steps is used up.
        place: Where on the path: 3.25 is a quarter of the way from pose 3 to pose 4.
        configuration: The last one that is proven, shape (V,) [rad, m].
        joint: The joint that comes to its limit.
        partner: The branch that it meets.
    """

    kind: str
    place: float
    configuration: Array = field(repr=False)
    joint: str = ""
    partner: int = -1

    @property
    def reason(self) -> str:
        """A few words for people."""
        return {
            "path": "the end of the path",
            "limit": f"{self.joint} is at its limit",
            "meets": f"branch {self.partner} meets it (a singularity)",
            "singular": "a singularity",
            "unfinished": "the budget of steps is used up",
        }[self.kind]


@dataclass(frozen=True)
class Branch:
    """One posture along a part of the path, continuous by proof.

    Attributes:
        first: The first pose at which it exists.
        positions: At this pose and the next ones, shape (K, V) [rad, m]; angles run on over +-pi.
        lower: What they are at least on the whole branch, between the poses too, shape (V,).
        upper: What they are at most, shape (V,).
        begins: Where and why.
        ends: Where and why.
    """

    first: int
    positions: Array = field(repr=False)
    lower: Array = field(repr=False)
    upper: Array = field(repr=False)
    begins: Event
    ends: Event

    @property
    def last(self) -> int:
        """The last pose at which it exists."""
        return self.first + len(self.positions) - 1

    @property
    def length(self) -> float:
        """Length of the way of the joints, pose by pose (Euclidean) [rad, m]."""
        return float(np.linalg.norm(np.diff(self.positions, axis=0), axis=1).sum())


def _gaps(a: Array, b: Array, angles: NDArray[np.bool_]) -> Array:
    """Largest difference of configurations, shape (N, V) and (M, V), turns apart; shape (N, M)."""
    gap = a[:, None] - b[None]
    gap = np.where(angles, gap - _TWO_PI * np.round(gap / _TWO_PI), gap)
    return np.asarray(np.abs(gap).max(axis=2, initial=0.0))


def unknown_at(
    roots: Array, branches: list[Branch], pose: int, angles: NDArray[np.bool_]
) -> list[Array] | None:
    """Postures at a pose that are on no branch yet; None if they cannot be told apart."""
    here = [b.positions[pose - b.first] for b in branches if b.first <= pose <= b.last]
    same = _gaps(roots, np.array(here).reshape(-1, roots.shape[1]), angles) < SAME
    if same.sum(axis=0).max(initial=0) > 1 or same.sum(axis=1).max(initial=0) > 1:
        return None
    return list(roots[~same.any(axis=1)])


def add_branch(branches: list[Branch], new: Branch, angles: NDArray[np.bool_]) -> None:
    """Add a branch, or join it with one that was given up too early and is the same."""
    for number, old in enumerate(branches):
        shared = range(max(old.first, new.first), min(old.last, new.last) + 1)
        if any(
            _gaps(old.positions[k - old.first][None], new.positions[k - new.first][None], angles)
            < SAME
            for k in shared
        ):
            branches[number] = _joined(old, new, shared[0])
            return
    branches.append(new)


def _joined(a: Branch, b: Branch, pose: int) -> Branch:
    """Two branches that are one: each end is the farther one of both."""
    shift = _TWO_PI * np.round(
        (a.positions[pose - a.first] - b.positions[pose - b.first]) / _TWO_PI
    )
    early, late = (a, b) if a.first <= b.first else (b, a)
    early, late = (_shifted(x, shift if x is b else 0.0 * shift) for x in (early, late))
    tail = (
        late.positions[early.last + 1 - late.first :]
        if late.last > early.last
        else late.positions[:0]
    )
    return Branch(
        first=early.first,
        positions=np.concatenate([early.positions, tail]),
        lower=np.minimum(early.lower, late.lower),
        upper=np.maximum(early.upper, late.upper),
        begins=min(early.begins, late.begins, key=lambda e: e.place),
        ends=max(early.ends, late.ends, key=lambda e: e.place),
    )


def _shifted(branch: Branch, shift: Array) -> Branch:
    """A branch some turns away."""
    return replace(
        branch, positions=branch.positions + shift, lower=branch.lower + shift,
        upper=branch.upper + shift,
    )  # fmt: skip


def paired(branches: list[Branch], angles: NDArray[np.bool_]) -> list[Branch]:
    """Branches with the partners that they meet, or are born with, named."""
    result = list(branches)
    for name in ("begins", "ends"):
        events = [getattr(b, name) for b in result]
        loose = [k for k, e in enumerate(events) if e.kind == "singular"]
        if len(loose) < 2:
            continue
        points = np.array([events[k].configuration for k in loose])
        places = np.array([events[k].place for k in loose])
        far = _gaps(points, points, angles)
        far[np.abs(places[:, None] - places[None]) > MEETING_PLACE] = np.inf
        np.fill_diagonal(far, np.inf)
        nearest = far.argmin(axis=1)
        for i, k in enumerate(loose):
            j = int(nearest[i])
            if far[i, j] < MEETING and nearest[j] == i:
                event = replace(events[k], kind="meets", partner=loose[j])
                result[k] = replace(result[k], **{name: event})
    return result
