"""Paths over all branches against a finer tracer of other origin, on lines that are hard to follow.

The tracer knows nothing of the solver: its own forward kinematics, Newton's method with a tangent
predictor, a hundred steps for each step of the path, more where the predictor is off. Lines run
through and beside singularities, out of the workspace, along limits; arms have spherical wrists,
wrists whose axes miss each other by little (so that branches come near each other), or no structure
at all, and some have a travel.

    ./kinstack shell python -m benchmarks.baselines.cuik_paths --lines 300 --seed 0
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kin_solvers.mechanism import Constant, Loop, Mechanism, Motion, Variable
from kin_solvers.paths import LOOK, PathTree, solve_path

__all__ = ["Case", "Verdict", "cases", "compare", "run"]

Array = NDArray[np.float64]

#: Steps of the tracer for each step of the path.
FINER = 100
#: Largest difference of a position that is the same [rad, m].
SAME = 1e-6
#: What is hard about a line; what is hardest comes more often.
KINDS = ("wrist", "wrist", "singular", "singular", "limit", "long", "turn", "random")
#: Smallest singular value, relative to the largest, under which an end may be a singularity.
SINGULAR = 3e-3

_HALF = math.pi / 2.0
#: Denavit-Hartenberg rows: lengths, twists, offsets.
_TABLES = {
    "puma": (
        (0.0, 0.4318, 0.0203, 0.0, 0.0, 0.0), (_HALF, 0.0, -_HALF, _HALF, -_HALF, 0.0),
        (0.0, 0.0, 0.15005, 0.4318, 0.0, 0.0),
    ),
    "ur": (
        (0.0, -0.425, -0.39225, 0.0, 0.0, 0.0), (_HALF, 0.0, 0.0, _HALF, -_HALF, 0.0),
        (0.089159, 0.0, 0.0, 0.10915, 0.09465, 0.0823),
    ),
    "jaco": (
        (0.0, 0.41, 0.0, 0.0, 0.0, 0.0),
        (_HALF, math.pi, _HALF, math.pi / 3.0, math.pi / 3.0, math.pi),
        (0.2755, 0.0, -0.0098, -0.25008, -0.08556, -0.20278),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """An arm, a line and what is hard about it.

    Attributes:
        kind: What is hard.
        links: The constant behind each joint, shape (6, 4, 4): each joint moves about, or along, z.
        slides: Which joints are travels, shape (6,).
        limits: Ranges, shape (6, 2) [rad, m].
        poses: Of the tip, shape (N, 4, 4) [m].
    """

    kind: str
    links: Array = field(repr=False)
    slides: NDArray[np.bool_] = field(repr=False)
    limits: Array = field(repr=False)
    poses: Array = field(repr=False)

    def arm(self) -> Mechanism:
        """The arm, closed at the first pose."""
        variables = tuple(
            Variable(f"q{k}", "translation" if slide else "rotation", *map(float, ends))
            for k, (slide, ends) in enumerate(zip(self.slides, self.limits, strict=True))
        )
        factors = [f for k in range(6) for f in (Motion(k), Constant(self.links[k]))]
        loop = Loop((*factors, Constant(np.eye(4))))
        return Mechanism(self.kind, variables, (loop,), target=np.eye(4)).with_target(self.poses[0])


@dataclass
class Verdict:
    """What comparing came to.

    Attributes:
        lines: Lines that were looked at.
        branches: Branches from the first pose on.
        whole: Those of them that go all the way.
        jumps: Branches that the tracer sees end at, or pass through, other configurations.
        outside: Branches that the tracer sees outside the limits.
        given_up: Branches that were said to end where nothing is singular and no limit is.
        lost: Branches on which the tracer itself was lost.
        ends: How often each kind of end came.
    """

    lines: int = 0
    branches: int = 0
    whole: int = 0
    jumps: int = 0
    outside: int = 0
    given_up: int = 0
    lost: int = 0
    ends: Counter[str] = field(default_factory=Counter)


# The tracer ---------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _pose(links: Array, slides: Array, q: Array, T: Array, J: Array) -> None:
    """Forward kinematics T, shape (4, 4), and the geometric Jacobian J, shape (6, 6)."""
    T[:, :] = np.eye(4)
    axes = np.empty((6, 3))
    origins = np.empty((6, 3))
    for k in range(6):
        axes[k] = T[:3, 2]
        origins[k] = T[:3, 3]
        Z = np.eye(4)
        if slides[k]:
            Z[2, 3] = q[k]
        else:
            Z[0, 0] = Z[1, 1] = math.cos(q[k])
            Z[1, 0] = math.sin(q[k])
            Z[0, 1] = -Z[1, 0]
        T[:, :] = T @ Z @ links[k]
    for k in range(6):
        a = axes[k]
        d = T[:3, 3] - origins[k]
        if slides[k]:
            J[:3, k] = a
            J[3:, k] = 0.0
        else:
            J[0, k] = a[1] * d[2] - a[2] * d[1]
            J[1, k] = a[2] * d[0] - a[0] * d[2]
            J[2, k] = a[0] * d[1] - a[1] * d[0]
            J[3:, k] = a


@njit(cache=True, nogil=True)
def _target(start: Array, way: Array, turn: Array, s: float, W: Array) -> None:
    """The pose at a share of the way from one pose to the next (Rodrigues)."""
    angle = math.sqrt((turn * turn).sum())
    R = np.eye(3)
    if angle > 0.0:
        u = turn / angle
        K = np.zeros((3, 3))
        K[0, 1], K[0, 2], K[1, 2] = -u[2], u[1], -u[0]
        K[1, 0], K[2, 0], K[2, 1] = u[2], -u[1], u[0]
        R = R + math.sin(s * angle) * K + (1.0 - math.cos(s * angle)) * (K @ K)
    W[:, :] = np.eye(4)
    W[:3, :3] = np.ascontiguousarray(start[:3, :3]) @ R
    W[:3, 3] = start[:3, 3] + s * way


@njit(cache=True, nogil=True)
def _error(T: Array, W: Array, e: Array) -> float:
    """Residual of a pose, shape (6,), and its largest entry."""
    D = np.ascontiguousarray(W[:3, :3]) @ np.ascontiguousarray(T[:3, :3]).T
    e[:3] = W[:3, 3] - T[:3, 3]
    e[3] = 0.5 * (D[2, 1] - D[1, 2])
    e[4] = 0.5 * (D[0, 2] - D[2, 0])
    e[5] = 0.5 * (D[1, 0] - D[0, 1])
    if D[0, 0] + D[1, 1] + D[2, 2] < 2.0:
        return np.inf
    return np.abs(e).max()


@njit(cache=True, nogil=True)
def trace(
    links: Array, slides: Array, starts: Array, ways: Array, turns: Array, q: Array, end: float,
    finer: int, points: Array, low: Array, high: Array,
) -> float:  # fmt: skip
    """Follow a configuration to a place; returns the place that was reached.

    Writes the positions at each pose, shape (N, 6), and the least and largest positions, (6,).
    """
    T, W, J, e = np.empty((4, 4)), np.empty((4, 4)), np.empty((6, 6)), np.empty(6)
    points[0] = q
    low[:] = q
    high[:] = q
    place = 0.0
    step = 1.0 / finer
    while place < end:
        part = min(int(place), len(ways) - 1)
        s = place - part
        ds = min(step, 1.0 - s, end - place)
        if 1.0 - s - ds < 1e-12:
            ds = 1.0 - s
        _pose(links, slides, q, T, J)
        if abs(np.linalg.det(J)) < 1e-14:
            return place
        _target(starts[part], ways[part], turns[part], s + ds, W)
        _error(T, W, e)
        guess = q + np.linalg.solve(J, e)
        x = guess.copy()
        came = np.inf
        for _ in range(8):
            _pose(links, slides, x, T, J)
            came = _error(T, W, e)
            if came < 1e-12 or abs(np.linalg.det(J)) < 1e-14:
                break
            x += np.linalg.solve(J, e)
        if not (came < 1e-10 and np.abs(x - guess).max() < 2e-3 and np.abs(x - q).max() < 0.05):
            step = 0.5 * ds
            if step < 1e-12:
                return place
            continue
        q = x
        low[:] = np.minimum(low, q)
        high[:] = np.maximum(high, q)
        place = part + 1.0 if ds == 1.0 - s else place + ds
        if ds == 1.0 - s:
            points[part + 1] = q
        step = min(2.0 * ds, 1.0 / finer)
    return place


@njit(cache=True, nogil=True)
def _condition(links: Array, slides: Array, q: Array) -> float:
    """Smallest singular value of the Jacobian relative to the largest."""
    T, J = np.empty((4, 4)), np.empty((6, 6))
    _pose(links, slides, q, T, J)
    values = np.linalg.svd(J)[1]
    return values[5] / values[0]


# Comparing ----------------------------------------------------------------------------------------


def compare(case: Case, tree: PathTree, verdict: Verdict, finer: int = FINER) -> None:
    """Follow every branch from the first pose on by the tracer, and count what differs."""
    starts, ways, turns = _segments(case.poses)
    verdict.lines += 1
    free = np.array([v.cyclic for v in tree.arm.variables])
    for branch in tree.branches:
        if branch.begins.kind != "path":
            continue
        verdict.branches += 1
        verdict.whole += branch.ends.kind == "path"
        verdict.ends[branch.ends.kind] += 1
        points = np.full_like(branch.positions, np.nan, shape=(len(case.poses), 6))
        low, high = np.empty(6), np.empty(6)
        place = branch.ends.place
        came = trace(
            case.links, case.slides, starts, ways, turns, branch.positions[0].copy(), place, finer,
            points, low, high,
        )  # fmt: skip
        known = points[: min(len(branch.positions), int(came + 1e-9) + 1)]
        gap = np.abs(known - branch.positions[: len(known)]).max()
        if gap > SAME:
            verdict.jumps += 1
        elif came < place - 1e-9:
            verdict.lost += 1
        elif np.any(~free & ((low < case.limits[:, 0] - 2e-8) | (high > case.limits[:, 1] + 2e-8))):
            verdict.outside += 1
        elif branch.ends.kind in ("singular", "meets", "unfinished"):
            q = branch.ends.configuration
            verdict.given_up += bool(_condition(case.links, case.slides, q) > SINGULAR)
        elif branch.ends.kind == "limit":
            k = tree.arm.names.index(branch.ends.joint)
            near = np.abs(branch.ends.configuration[k] - case.limits[k]).min()
            verdict.given_up += bool(near > 1e-5)


def _segments(poses: Array) -> tuple[Array, Array, Array]:
    """First poses, ways and rotation vectors of the steps of a path."""
    turns = np.empty((len(poses) - 1, 3))
    for k in range(len(turns)):
        R = poses[k, :3, :3].T @ poses[k + 1, :3, :3]
        vector = 0.5 * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
        sine, cosine = float(np.linalg.norm(vector)), 0.5 * (np.trace(R) - 1.0)
        turns[k] = vector * (math.atan2(sine, cosine) / sine) if sine > 0.0 else 0.0
    return np.ascontiguousarray(poses[:-1]), np.diff(poses[:, :3, 3], axis=0), turns


# Lines --------------------------------------------------------------------------------------------


def cases(seed: int, poses: int = 100) -> Iterator[Case]:
    """Lines without end, one kind after another."""
    rng = np.random.default_rng(seed)
    for number in range(1 << 60):
        links, slides = _arm(rng, number % 6)
        limits = np.tile([-math.pi, math.pi], (6, 1))
        limits[slides] = -0.6, 0.6
        if rng.uniform() < 0.5:
            limits[~slides] = np.stack([-rng.uniform(1.2, 3.0, 6), rng.uniform(1.2, 3.0, 6)], 1)[
                ~slides
            ]
        q = rng.uniform(np.maximum(limits[:, 0], -2.5), np.minimum(limits[:, 1], 2.5))
        kind = KINDS[int(rng.integers(len(KINDS)))]
        if kind == "wrist":  # through or beside the singularity of a wrist
            q[4] = float(rng.choice([0.0, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 0.1]))
        if kind == "singular":  # through or beside any singularity
            q = _singular(rng, links, slides, q) + 10.0 ** rng.uniform(-9.0, -1.0) * rng.normal(
                size=6
            )
            limits[~slides] = -math.pi, math.pi
            limits[slides] = np.stack([np.minimum(limits[:, 0], q - 0.1), q + 1.0], 1)[slides]
        line = _line(rng, links, slides, q, kind, poses)
        case = Case(kind, links, slides, limits, line)
        yield _at_limit(rng, case, q) if kind == "limit" else case


def _arm(rng: np.random.Generator, number: int) -> tuple[Array, NDArray[np.bool_]]:
    """The constants behind the joints of an arm, and which of these are travels."""
    slides = np.zeros(6, dtype=bool)
    if number < 3:
        a, alpha, d = (np.array(row) for row in list(_TABLES.values())[number])
    elif number == 3:  # the axes of a PUMA's wrist miss each other by little
        a, alpha, d = (np.array(row) for row in _TABLES["puma"])
        a[3:5] += 10.0 ** rng.uniform(-5.0, -1.5, 2)
        d[4] = 10.0 ** rng.uniform(-5.0, -1.5)
    else:
        a, d = rng.uniform(-0.5, 0.5, 6), rng.uniform(-0.5, 0.5, 6)
        alpha = rng.uniform(-math.pi, math.pi, 6)
        if number == 5:
            slides[int(rng.integers(3))] = True
    links = np.tile(np.eye(4), (6, 1, 1))
    for k in range(6):
        c, s = math.cos(alpha[k]), math.sin(alpha[k])
        links[k, :3] = [[1.0, 0.0, 0.0, a[k]], [0.0, c, -s, 0.0], [0.0, s, c, d[k]]]
    return links, slides


def _singular(rng: np.random.Generator, links: Array, slides: NDArray[np.bool_], q: Array) -> Array:
    """A singular configuration on a line through a given one, or that one if there is none."""
    way = rng.normal(size=6)

    def determinant(t: float) -> float:
        T, J = np.empty((4, 4)), np.empty((6, 6))
        _pose(links, slides, q + t * way, T, J)
        return float(np.linalg.det(J))

    places = np.linspace(0.0, 2.0, 81)
    signs = np.sign([determinant(t) for t in places])
    change = np.flatnonzero(signs[1:] != signs[:-1])
    if len(change) == 0:
        return q
    low, high = places[change[0]], places[change[0] + 1]
    for _ in range(60):
        middle = 0.5 * (low + high)
        if np.sign(determinant(middle)) == signs[change[0]]:
            low = middle
        else:
            high = middle
    return np.asarray(q + low * way)


def _line(
    rng: np.random.Generator,
    links: Array,
    slides: NDArray[np.bool_],
    q: Array,
    kind: str,
    count: int,
) -> Array:
    """Poses on a line through the pose of a configuration."""
    T, J = np.empty((4, 4)), np.empty((6, 6))
    _pose(links, slides, q, T, J)
    reach = {"long": 1.5, "turn": 0.0}.get(kind, 0.4)
    way = rng.normal(size=3)
    way *= reach * rng.uniform(0.3, 1.0) / np.linalg.norm(way)
    turn = rng.normal(size=3)
    angle = {"turn": 2.8, "long": 1.0}.get(kind, 0.8) * rng.uniform() * (rng.uniform() < 0.7)
    turn *= angle / np.linalg.norm(turn)
    through = rng.uniform(0.2, 0.8)  # the configuration is in the middle of the line
    poses = np.empty((count, 4, 4))
    for k, share in enumerate(np.linspace(-through, 1.0 - through, count)):
        _target(T, way, turn, float(share), poses[k])
    return poses


def _at_limit(rng: np.random.Generator, case: Case, q: Array) -> Case:
    """A limit that the path of a configuration comes to, and hardly passes, or does not."""
    T, J = np.empty((4, 4)), np.empty((6, 6))
    _pose(case.links, case.slides, q, T, J)
    distances = np.abs(case.poses - T).max(axis=(1, 2))
    first = int(distances.argmin())
    poses = case.poses[first:]
    if len(poses) < 5:
        return case
    starts, ways, turns = _segments(poses)
    points, low, high = np.full((len(poses), 6), np.nan), np.empty(6), np.empty(6)
    error = np.empty(6)
    x = q.copy()
    for _ in range(20):
        _pose(case.links, case.slides, x, T, J)
        if _error(T, poses[0], error) < 1e-13 or abs(np.linalg.det(J)) < 1e-12:
            break
        x += np.linalg.solve(J, error)
    trace(case.links, case.slides, starts, ways, turns, x, len(poses) - 1.0, 4, points, low, high)
    limits = case.limits.copy()
    k = int(rng.integers(6))
    beyond = float(rng.choice([0.0, 1e-12, -1e-9, 1e-9, -1e-6, 1e-6, -1e-3]))
    if high[k] - limits[k, 0] > 0.1:
        limits[k, 1] = min(limits[k, 1], high[k] + beyond)
    return Case(case.kind, case.links, case.slides, limits, poses)


def run(
    lines: int, seed: int = 0, poses: int = 100, finer: int = FINER, look: int = LOOK
) -> Verdict:
    """Compare on so many lines."""
    verdict = Verdict()
    for _, case in zip(range(lines), cases(seed, poses), strict=False):
        compare(case, solve_path(case.arm(), case.poses, look=look), verdict, finer)
    return verdict


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(run(options.lines, options.seed))
