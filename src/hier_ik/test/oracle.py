"""An independent statement of the kinematics, with scipy as the solver, for the tests.

Poses are plain products of 4x4 transforms over the spanning tree of the linkage as the user gave
it; nothing of the package's kernels, scaling, splitting or decomposition is used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from hier_ik import Goal, Joint, Linkage
from hier_ik.joints import JOINT_TYPES, ROT_AXIS, ROT_CROSS, ROT_FREE, joint_motion


def scaled(linkage: Linkage, s: float) -> Linkage:
    """The same linkage with every length s times as long."""

    def frame(T):
        out = T.copy()
        out[:3, 3] *= s
        return out

    out = linkage.copy()
    for j in linkage.joints.values():
        u = np.where(np.array(j.kind.angular, bool), 1.0, s)
        out.joints[j.name] = replace(
            j, origin=frame(j.origin), child_origin=frame(j.child_origin), lower=j.lower * u,
            upper=j.upper * u, velocity=j.velocity * u, rest=None if j.rest is None else j.rest * u,
        )  # fmt: skip
        if j.name in out.values:
            out.values[j.name] = out.values[j.name] * u
    for g in linkage.goals.values():
        out.goals[g.name] = replace(g, target=frame(g.target), offset=frame(g.offset))
    return out


def length(linkage: Linkage) -> float:
    """A length of the mechanism: the longest way from a joint to the next."""
    sizes = [np.linalg.norm(j.origin[:3, 3]) for j in linkage.joints.values()]
    sizes += [np.linalg.norm(j.child_origin[:3, 3]) for j in linkage.joints.values()]
    for j in linkage.joints.values():
        v = np.abs(linkage.values.get(j.name, np.zeros(j.dof)))
        sizes += [float(x) for x, a in zip(v, j.kind.angular, strict=True) if not a]
    return max(float(max(sizes, default=1.0)), 1e-12)


@dataclass
class Oracle:
    """Residuals of closures and goals of a linkage, and scipy's way to make them zero."""

    linkage: Linkage

    def __post_init__(self) -> None:
        l = self.linkage
        self.order = l.tree_order()
        self.free = [j for j in self.order if j.dof and not j.locked]
        self.size = length(l)
        self.unit = np.concatenate(
            [np.where(np.array(j.kind.angular, bool), 1.0, self.size) for j in self.free]
            or [np.zeros(0)]
        )
        self.low = np.concatenate([j.lower for j in self.free] or [np.zeros(0)])
        self.high = np.concatenate([j.upper for j in self.free] or [np.zeros(0)])

    def vector(self, values) -> np.ndarray:
        """The coordinates of the free tree joints as one vector."""
        return np.concatenate([np.asarray(values[j.name]) for j in self.free] or [np.zeros(0)])

    def values(self, q) -> dict[str, np.ndarray]:
        """And back by name, the locked ones as the linkage has them."""
        out = {n: v.copy() for n, v in self.linkage.values.items()}
        i = 0
        for j in self.free:
            out[j.name] = np.array(q[i : i + j.dof])
            i += j.dof
        return out

    def poses(self, values) -> dict[str, np.ndarray]:
        """Poses of all links."""
        poses = {self.linkage.root: np.eye(4)}
        for j in self.order:
            B = j.child_origin
            inverse = np.eye(4)
            inverse[:3, :3] = B[:3, :3].T
            inverse[:3, 3] = -B[:3, :3].T @ B[:3, 3]
            X = joint_motion(j.type, np.asarray(values[j.name]))
            poses[j.child] = poses[j.parent] @ j.origin @ X @ inverse
        return poses

    def rows(self, element: Joint | Goal, poses) -> tuple[np.ndarray, np.ndarray]:
        """Position rows [m] and rotation rows [rad] of a closure or a goal."""
        if isinstance(element, Joint):
            A = poses[element.parent] @ element.origin
            B = poses[element.child] @ element.child_origin
            kind = JOINT_TYPES[element.type]
            held, mode = kind.held, kind.rotation
            turns = (True, True, True) if mode != ROT_AXIS else (True, True, False)
        else:
            A = poses[element.reference] @ element.target
            B = poses[element.link] @ element.offset
            held, turns = element.rows[:3], element.rows[3:]
            mode = ROT_FREE if not any(turns) else (ROT_AXIS if element.kind == "axis" else 1)
        p = A[:3, :3].T @ (B[:3, 3] - A[:3, 3])
        R = A[:3, :3].T @ B[:3, :3]
        if mode == ROT_FREE:
            w = np.zeros(0)
        elif mode == ROT_CROSS:
            w = R[0:1, 1]
        elif mode == ROT_AXIS:
            n = np.hypot(R[0, 2], R[1, 2])
            f = np.arctan2(n, R[2, 2]) / n if n > 1e-150 else 1.0
            w = np.array([-f * R[1, 2], f * R[0, 2]])
            if n <= 1e-150 and R[2, 2] < 0:
                w = np.array([np.pi, 0.0])
        else:
            w = Rotation.from_matrix(R).as_rotvec()[list(turns)]
        return p[list(held)], w

    def elements(self) -> dict[str, Joint | Goal]:
        """Closures and goals by name."""
        out: dict[str, Joint | Goal] = {c.name: c for c in self.linkage.closure_joints()}
        out.update(self.linkage.goals)
        return out

    def residuals(self, values, *, goals: bool = True) -> dict[str, float]:
        """Per closure and goal the larger of its two norms [m or rad]."""
        poses = self.poses(values)
        out = {}
        for name, e in self.elements().items():
            if goals or isinstance(e, Joint):
                p, w = self.rows(e, poses)
                out[name] = float(max(np.linalg.norm(p), np.linalg.norm(w)))
        return out

    def error(self, q, goals: bool) -> np.ndarray:
        """All rows, lengths as shares of the mechanism's."""
        poses = self.poses(self.values(q))
        parts = [np.zeros(1)]
        for e in self.elements().values():
            if goals or isinstance(e, Joint):
                p, w = self.rows(e, poses)
                parts += [p / self.size, w]
        return np.concatenate(parts)

    def solve(self, start, *, goals: bool = True, most: int = 60) -> tuple[np.ndarray, float]:
        """least_squares from one start: the coordinates, and the largest row that is left."""
        u = self.unit
        low, high = self.low / u, self.high / u
        x0 = np.clip(start / u, low + 1e-12, high - 1e-12) if len(u) else start
        if not len(u):
            return start, float(np.abs(self.error(start, goals)).max())
        found = least_squares(
            lambda x: self.error(x * u, goals), x0, bounds=(low, high), xtol=1e-15, ftol=1e-15,
            gtol=1e-15, max_nfev=most,
        )  # fmt: skip
        q = np.clip(found.x * u, self.low, self.high)
        return q, float(np.abs(self.error(q, goals)).max())

    def reachable(self, rng, start, starts: int = 6, tolerance: float = 1e-7) -> bool:
        """Whether scipy meets everything from the given start or from random others."""
        for k in range(starts):
            q = start
            if k:
                q = start + rng.normal(scale=0.3 * k, size=len(start)) * self.unit
            q, left = self.solve(np.clip(q, self.low, self.high))
            if left <= tolerance:
                return True
        return False
