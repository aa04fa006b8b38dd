"""Brute force: the arcs of an arm's self-motion within limits, by plain numpy.

Newton's method from random starts finds every closed curve of the arm without limits; each is
followed in short steps all the way round, and cut where a joint leaves its limits.
"""

import itertools
import math

import numpy as np
from reference_ik import frames, pose_error, turned
from scipy.spatial import cKDTree

TURN = 2.0 * math.pi
#: Distance of neighbours on a curve [rad], and points between them.
STEP, BETWEEN = 0.03, 30


def newton(rows, pose, q, steps):
    """Newton's method with steps of least norm, from configurations, shape (..., V)."""
    for _ in range(steps):
        e, J = pose_error(frames(*rows, q), pose)
        Jt = J.swapaxes(-1, -2)
        s = (Jt @ np.linalg.solve(J @ Jt + 1e-14 * np.eye(6), e[..., None]))[..., 0]
        size = np.abs(s).max(-1, keepdims=True)
        q = q - s * np.minimum(1.0, 0.4 / np.maximum(size, 1e-300))
    return q


def tangents(rows, pose, q):
    """Unit vectors in the kernel of the Jacobian, shape (..., V)."""
    return np.linalg.svd(pose_error(frames(*rows, q), pose)[1])[2][..., -1, :]


def follow(rows, pose, start):
    """A closed curve, shape (P, V), the last point the first one again."""
    points, t = [start], None
    for _ in range(20_000):
        x = points[-1]
        u = tangents(rows, pose, x)
        t = u if t is None or u @ t > 0.0 else -u
        new = newton(rows, pose, x + STEP * t, 3)
        home, chord = turned(start - x), new - x
        along = home @ chord / (chord @ chord)
        near = np.linalg.norm(home - along * chord) < 0.1 * STEP
        if len(points) > 3 and 0.0 < along <= 1.0 and near:
            return np.array([*points, x + home])
        points.append(new)
    raise RuntimeError("the curve does not close")


def finer(rows, pose, curve):
    """Points between neighbours, by cubics."""
    t = tangents(rows, pose, curve)
    chord = np.diff(curve, axis=0)
    length = np.linalg.norm(chord, axis=1, keepdims=True)
    first, second = (
        length * u * np.sign((u * chord).sum(axis=1, keepdims=True)) for u in (t[:-1], t[1:])
    )
    parts = [
        curve[:-1]
        + s * (1.0 - s) ** 2 * first
        + s * s * (3.0 - 2.0 * s) * chord
        + s * s * (s - 1.0) * second
        for s in np.arange(BETWEEN) / BETWEEN
    ]
    return np.concatenate([np.stack(parts, 1).reshape(-1, curve.shape[1]), curve[-1:]])


def pieces(curve, lower, upper):
    """Number of arcs of a closed curve within limits, at every turn that meets them."""
    choices = [
        range(
            math.ceil((lower[j] - curve[:, j].max()) / TURN),
            math.floor((upper[j] - curve[:, j].min()) / TURN) + 1,
        )
        for j in range(curve.shape[1])
    ]
    wound = np.round((curve[-1] - curve[0]) / TURN).astype(int)
    runs = []
    for turns in itertools.product(*choices):
        x = curve + TURN * np.array(turns)
        inside = ((x >= lower) & (x <= upper)).all(axis=1)
        change = np.diff(np.concatenate([[0], inside.astype(int), [0]]))
        starts, ends = np.flatnonzero(change == 1), np.flatnonzero(change == -1) - 1
        runs += [(turns, a, b) for a, b in zip(starts, ends, strict=True)]
    # An arc that goes on over the seam of the curve is one.
    begins = {turns for turns, a, _ in runs if a == 0}
    over = sum(
        b == len(curve) - 1 and tuple(np.array(turns) + wound) in begins for turns, _, b in runs
    )
    whole = sum(a == 0 and b == len(curve) - 1 and not wound.any() for _, a, b in runs)
    return len(runs) - over + whole


def count_arcs(a, alpha, d, q, lower, upper):
    """Number of arcs within limits of the self-motion at the pose of a configuration."""
    rows = (a, alpha, d)
    pose = frames(*rows, q)[-1]
    rng = np.random.default_rng(0)
    found = newton(rows, pose, rng.uniform(-math.pi, math.pi, (150, len(q))), 50)
    close = np.abs(frames(*rows, found)[-1] - pose).max((-1, -2)) < 1e-9
    left, count = np.remainder(found[close], TURN) % TURN, 0
    while len(left):
        curve = follow(rows, pose, left[0])
        tree = cKDTree(np.remainder(curve, TURN) % TURN, boxsize=TURN)
        left = left[tree.query(left)[0] > STEP]
        count += pieces(finer(rows, pose, curve), lower, upper)
    return count
