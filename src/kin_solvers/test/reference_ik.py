"""All inverse kinematics of known arms by other means: an independent list to compare with.

Closed forms for arms with a spherical wrist and for arms like Universal Robots'; for the others
Newton's method from very many random starts. Nothing here uses the search, its equations or its
certificates. ``python src/kin_solvers/test/reference_ik.py 1000`` compares ten arms at 1000
poses each, a tenth of them near a singularity; with names behind it only these arms.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kin_solvers.all_ik import AllIK, solve_all_ik
from kin_solvers.dh import arm_from_dh
from kin_solvers.mechanism import Mechanism

__all__ = ["ARMS", "Arm", "Verdict", "compare", "configuration", "frames", "pose_error", "turned"]

Array = NDArray[np.float64]
Rows = Sequence[float] | Array

_TWO_PI = 2.0 * math.pi
#: Random starts of Newton's method for an arm without a closed form.
STARTS = 600


@dataclass(frozen=True)
class Arm:
    """An arm of six revolute joints, by standard Denavit-Hartenberg rows.

    Attributes:
        name: Its name.
        a: Lengths, shape (6,) [m].
        alpha: Twists, shape (6,) [rad].
        d: Offsets, shape (6,) [m].
        kind: "wrist" (spherical), "parallel" (like a UR) or "general".
    """

    name: str
    a: tuple[float, ...]
    alpha: tuple[float, ...]
    d: tuple[float, ...]
    kind: str

    def pose(self, q: Array) -> Array:
        """Pose of the tip, shape (..., 4, 4), at configurations, shape (..., 6)."""
        return self.frames(q)[-1]

    def frames(self, q: Array) -> list[Array]:
        """Frames of the chain, each of shape (..., 4, 4)."""
        return frames(self.a, self.alpha, self.d, q)

    def link(self, k: int, angle: float) -> Array:
        """Row k of the table at an angle, shape (4, 4)."""
        return _link(self.a[k], self.alpha[k], self.d[k], angle)

    def mechanism(self, q: Array) -> Mechanism:
        """The arm closed at the pose of a configuration, shape (6,)."""
        return arm_from_dh(self.name, self.a, self.alpha, self.d, q=list(q))

    def solutions(self, pose: Array, rng: np.random.Generator) -> Array:
        """All configurations at a pose, shape (N, 6), angles in [-pi, pi]."""
        found = _SOLVERS[self.kind](self, pose, rng)
        return _distinct(np.array(found).reshape(-1, 6))


def _link(a: float, alpha: float, d: float, angle: Array | float) -> Array:
    """A row of a table at angles, shape (...): homogeneous transforms, shape (..., 4, 4)."""
    c, s = np.cos(angle), np.sin(angle)
    ca, sa = math.cos(alpha), math.sin(alpha)
    A = np.zeros((*np.shape(angle), 4, 4))
    A[..., 0, 0], A[..., 0, 1], A[..., 0, 2], A[..., 0, 3] = c, -s * ca, s * sa, a * c
    A[..., 1, 0], A[..., 1, 1], A[..., 1, 2], A[..., 1, 3] = s, c * ca, -c * sa, a * s
    A[..., 2, 1], A[..., 2, 2], A[..., 2, 3], A[..., 3, 3] = sa, ca, d, 1.0
    return A


def frames(a: Rows, alpha: Rows, d: Rows, q: Array) -> list[Array]:
    """Frames of a chain, each of shape (..., 4, 4), at configurations, shape (..., V)."""
    T = np.broadcast_to(np.eye(4), (*q.shape[:-1], 4, 4))
    result = [T]
    for k in range(len(a)):
        T = T @ _link(a[k], alpha[k], d[k], q[..., k])
        result.append(T)
    return result


def pose_error(chain: list[Array], pose: Array) -> tuple[Array, Array]:
    """Residuals of a pose, shape (..., 6), and their Jacobian, shape (..., 6, V)."""
    T = chain[-1]
    R = T[..., :3, :3] @ pose[:3, :3].T
    turn = 0.5 * np.stack(
        [R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]], -1
    )
    columns = [
        np.concatenate([np.cross(F[..., :3, 2], T[..., :3, 3] - F[..., :3, 3]), F[..., :3, 2]], -1)
        for F in chain[:-1]
    ]
    return np.concatenate([T[..., :3, 3] - pose[:3, 3], turn], -1), np.stack(columns, -1)


def turned(x: Array) -> Array:
    """Angles in [-pi, pi)."""
    return np.remainder(x + math.pi, _TWO_PI) - math.pi


def _distinct(found: Array) -> Array:
    """Configurations without those that are the same, whole turns apart."""
    kept: list[Array] = []
    for q in found:
        if all(np.abs(turned(q - p)).max() > 1e-8 for p in kept):
            kept.append(turned(q))
    return np.array(kept).reshape(-1, 6)


def _triangle(x: float, y: float, first: float, second: float) -> list[tuple[float, float]]:
    """Angles of two bars that reach (x, y), the second one relative to the first."""
    square = x * x + y * y
    cosine = (square - first**2 - second**2) / (2.0 * first * second)
    if abs(cosine) > 1.0:
        return []
    result = []
    for bend in (math.acos(cosine), -math.acos(cosine)):
        angle = math.atan2(y, x) - math.atan2(
            second * math.sin(bend), first + second * math.cos(bend)
        )
        result.append((angle, bend))
    return result


def _spherical_wrist(arm: Arm, pose: Array, rng: np.random.Generator) -> list[list[float]]:
    """Shoulder perpendicular to two parallel axes, then a wrist whose axes meet."""
    sign = math.copysign(1.0, math.sin(arm.alpha[0]))
    turn = math.copysign(1.0, math.sin(arm.alpha[2]))
    centre = pose[:3, 3] - arm.d[5] * pose[:3, 2]
    # Across the plane of the arm: sign (x sin q1 - y cos q1) = d2 + d3.
    across, radius = sign * (arm.d[1] + arm.d[2]), math.hypot(centre[0], centre[1])
    if abs(across) > radius:
        return []
    phi = math.atan2(centre[1], centre[0])
    result = []
    for side in (math.asin(across / radius), math.pi - math.asin(across / radius)):
        q1 = phi + side
        x = centre[0] * math.cos(q1) + centre[1] * math.sin(q1) - arm.a[0]
        y = sign * (centre[2] - arm.d[0])
        # The forearm: a3 along x and d4 along z of frame 3, which lie in the plane.
        forearm, lead = math.hypot(arm.a[2], arm.d[3]), math.atan2(-turn * arm.d[3], arm.a[2])
        for q2, bend in _triangle(x, y, arm.a[1], forearm):
            q3 = bend - lead
            base = arm.link(0, q1) @ arm.link(1, q2) @ arm.link(2, q3)
            R = base[:3, :3].T @ pose[:3, :3]
            flip = math.copysign(1.0, math.sin(arm.alpha[3]))
            # R = Rz(q4) Rx(alpha4) Rz(q5) Rx(alpha5) Rz(q6) Rx(alpha6), alpha5 = -alpha4.
            R = R @ arm.link(5, 0.0)[:3, :3].T
            q5 = math.atan2(math.hypot(R[0, 2], R[1, 2]), R[2, 2])
            for bend5 in (q5, -q5):
                s = math.copysign(1.0, bend5)
                q4 = math.atan2(-flip * s * R[1, 2], -flip * s * R[0, 2])
                q6 = math.atan2(-flip * s * R[2, 1], flip * s * R[2, 0])
                result.append([q1, q2, q3, q4, bend5, q6])
    return result


def _like_ur(arm: Arm, pose: Array, rng: np.random.Generator) -> list[list[float]]:
    """Axes 2, 3 and 4 parallel: q1 and q5 first, then two bars in a plane."""
    result = []
    wrist = pose @ np.array([0.0, 0.0, -arm.d[5], 1.0])
    radius = math.hypot(wrist[0], wrist[1])
    if abs(arm.d[3]) > radius:
        return []
    for shoulder in (1.0, -1.0):
        q1 = math.atan2(wrist[1], wrist[0]) + math.pi / 2
        q1 += shoulder * math.acos(arm.d[3] / radius)
        along = pose[0, 3] * math.sin(q1) - pose[1, 3] * math.cos(q1) - arm.d[3]
        if abs(along / arm.d[5]) > 1.0:
            continue
        x, y = pose[:3, 0], pose[:3, 1]
        s1, c1 = math.sin(q1), math.cos(q1)
        # sin q5 from the tool's x and y axes, which is exact near zero as well.
        u, v = x[0] * s1 - x[1] * c1, -(y[0] * s1 - y[1] * c1)
        bend = math.atan2(math.hypot(u, v), along / arm.d[5])
        for q5 in (bend, -bend):
            s = math.copysign(1.0, q5)
            q6 = math.atan2(s * v, s * u)
            base = np.linalg.inv(arm.link(0, q1)) @ pose
            rest = base @ np.linalg.inv(arm.link(4, q5) @ arm.link(5, q6))
            for q2, q3 in _triangle(rest[0, 3], rest[1, 3], arm.a[1], arm.a[2]):
                q234 = math.atan2(rest[1, 0], rest[0, 0])
                result.append([q1, q2, q3, q234 - q2 - q3, q5, q6])
    return result


def _many_starts(arm: Arm, pose: Array, rng: np.random.Generator) -> list[list[float]]:
    """Newton's method with damping, from random configurations, all at once."""
    q = rng.uniform(-math.pi, math.pi, (STARTS, 6))
    for _ in range(60):
        error, J = pose_error(arm.frames(q), pose)
        step = np.linalg.solve(
            J.swapaxes(-1, -2) @ J + 1e-15 * np.eye(6), J.swapaxes(-1, -2) @ error[..., None]
        )[..., 0]
        size = np.abs(step).max(axis=-1, keepdims=True)
        q = q - step * np.minimum(1.0, 0.4 / np.maximum(size, 1e-300))
    error, _ = pose_error(arm.frames(q), pose)
    good = np.abs(error).max(axis=-1) < 1e-11
    close = np.abs(arm.pose(q) - pose).max(axis=(-1, -2)) < 1e-9
    return list(q[good & close])


_SOLVERS: dict[str, Callable[[Arm, Array, np.random.Generator], list[list[float]]]] = {
    "wrist": _spherical_wrist,
    "parallel": _like_ur,
    "general": _many_starts,
}
_H = math.pi / 2
_T = math.pi / 3
#: Ten arms; those without a spherical wrist or three parallel axes have no closed form here.
ARMS = (
    Arm("puma560", (0, 0.4318, 0.0203, 0, 0, 0), (-_H, 0, _H, -_H, _H, 0),
        (0, 0, 0.15005, 0.4318, 0, 0), "wrist"),
    Arm("irb120", (0, 0.27, 0.07, 0, 0, 0), (-_H, 0, -_H, _H, -_H, 0),
        (0.29, 0, 0, 0.302, 0, 0.072), "wrist"),
    Arm("kr6_r900", (0.025, 0.455, 0.035, 0, 0, 0), (-_H, 0, -_H, _H, -_H, 0),
        (0.4, 0, 0, 0.42, 0, 0.08), "wrist"),
    Arm("vs060", (0, 0.305, -0.01, 0, 0, 0), (_H, 0, _H, -_H, _H, 0),
        (0.345, 0, 0, 0.3, 0, 0.07), "wrist"),
    Arm("m1013", (0, 0.62, 0, 0, 0, 0), (-_H, 0, _H, -_H, _H, 0),
        (0.1525, 0.0345, 0, 0.559, 0, 0.121), "wrist"),
    Arm("ur5", (0, -0.425, -0.39225, 0, 0, 0), (_H, 0, 0, _H, -_H, 0),
        (0.089159, 0, 0, 0.10915, 0.09465, 0.0823), "parallel"),
    Arm("ur10", (0, -0.612, -0.5723, 0, 0, 0), (_H, 0, 0, _H, -_H, 0),
        (0.1273, 0, 0, 0.163941, 0.1157, 0.0922), "parallel"),
    Arm("jaco2", (0, 0.41, 0, 0, 0, 0), (_H, math.pi, _H, _T, _T, math.pi),
        (0.2755, 0, -0.0098, -0.25008, -0.08556, -0.20278), "general"),
    Arm("crx10ia", (0, 0.54, 0, 0, 0, 0), (-_H, math.pi, -_H, _H, -_H, math.pi),
        (0.245, 0, 0, -0.54, 0.15, -0.16), "general"),
    Arm("xarm6", (0, 0.28948866, 0.0775, 0, 0.076, 0), (-_H, 0, -_H, _H, -_H, 0),
        (0.267, 0, 0, 0.3425, 0, 0.097), "general"),
)  # fmt: skip


def configuration(arm: Arm, rng: np.random.Generator, *, singular: bool) -> Array:
    """A random configuration, shape (6,) [rad]; near a singularity if asked for.

    Near: the wrist bent, or the elbow bent from where it is stretched, by 1e-6 to 1e-2.
    """
    q = rng.uniform(-math.pi, math.pi, 6)
    if singular:
        near = math.copysign(10.0 ** rng.uniform(-6.0, -2.0), rng.uniform(-1.0, 1.0))
        if rng.uniform() < 0.5:
            q[4] = near
        else:
            stretched = math.atan2(-math.copysign(arm.d[3], math.sin(arm.alpha[2])), arm.a[2])
            q[2] = near - (stretched if arm.kind == "wrist" else 0.0)
    return q


@dataclass(frozen=True)
class Verdict:
    """How an answer compares with the independent list.

    Attributes:
        separated: Whether the answer says that its list is complete.
        missing: Configurations of the list that are not in the answer.
        extra: Answers that are not in the list, or in it once but twice in the answer.
        uncovered: Configurations of the list that no box holds.
    """

    separated: bool
    missing: int
    extra: int
    uncovered: int


def compare(found: AllIK, listed: Array, within: float = 1e-4) -> Verdict:
    """Compare an answer with configurations, shape (N, 6), one to one."""
    free = list(range(len(found.positions)))
    missing = 0
    for q in listed:
        gaps = [np.abs(turned(found.positions[k] - q)).max() for k in free]
        if gaps and min(gaps) <= within:
            free.pop(int(np.argmin(gaps)))
        else:
            missing += 1
    uncovered = sum(not found.manifold.contains(q, slack=1e-6) for q in listed)
    return Verdict(found.separated, missing, len(free), uncovered)


def main(arguments: list[str]) -> int:
    """Compare arms, all or those named; returns 0 if no answer that says complete is wrong."""
    poses = int(arguments[0]) if arguments else 100
    names = arguments[1:] or [arm.name for arm in ARMS]
    wrong = 0
    for number, arm in enumerate(ARMS):
        if arm.name not in names:
            continue
        rng = np.random.default_rng(1000 + number)
        listed = answered = open_lists = missing = extra = uncovered = 0
        for k in range(poses):
            q = configuration(arm, rng, singular=k % 10 == 0)
            reference = arm.solutions(arm.pose(q), rng)
            found = solve_all_ik(arm.mechanism(q))
            verdict = compare(found, reference)
            listed += len(reference)
            answered += len(found.positions)
            uncovered += verdict.uncovered
            open_lists += not verdict.separated
            if verdict.separated:
                missing += verdict.missing
                if verdict.missing or (verdict.extra and arm.kind != "general"):
                    print(f"  {arm.name} {q.tolist()}: {verdict}", flush=True)
                extra += verdict.extra
        wrong += missing + uncovered + (extra if arm.kind != "general" else 0)
        print(
            f"{arm.name}: {poses} poses, {listed} listed, {answered} answered, "
            f"{open_lists} said not to be separated; of the others {missing} missing, {extra} "
            f"not in the list; {uncovered} in no box",
            flush=True,
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
