"""Small real mechanisms with goals, at any scale, and the starts that solvers dislike."""

from __future__ import annotations

import math

import numpy as np
from mechanisms import delta, rrr3, stewart
from oracle import Oracle, length, scaled

from hier_ik import Linkage


def arm(rng, n: int, *, plane: bool, limits: bool) -> Linkage:
    """A serial arm of n revolute joints (or with a slide)."""
    l = Linkage("arm")
    l.add_link("l0")
    slide = int(rng.integers(n)) if rng.random() < 0.3 else -1
    for i in range(n):
        l.add_link(f"l{i + 1}")
        more = {"lower": -2.5, "upper": 2.5} if limits else {}
        if i == slide:
            more = {"lower": -0.5, "upper": 0.5}
        l.add_joint(
            f"j{i}", "prismatic" if i == slide else "revolute", f"l{i}", f"l{i + 1}",
            xyz=(0.3 if i else 0.0, 0, 0), closure=False,
            rpy=(0, 0, 0) if plane and i != slide else rng.uniform(-1.6, 1.6, 3),
            value=rng.uniform(-0.4, 0.4), **more,
        )  # fmt: skip
    kind = "position" if plane or n < 6 else "pose"
    l.add_goal("g", f"l{n}", kind, offset=(0.3, 0, 0))
    return l


def four_bar(rng) -> Linkage:
    """Crank and rocker; the goal holds one coordinate of a point of the coupler."""
    a, b, c, d = 1.0, rng.uniform(0.25, 0.45), rng.uniform(0.8, 1.1), rng.uniform(0.6, 0.9)
    l = _bars(a, b, c, d, rng.uniform(0.4, 2.6))
    rows = (True, False, False, False, False, False)
    l.add_goal("g", "c", "rows", rows=rows, offset=(0.5, 0.2, 0))
    return l


def _bars(a, b, c, d, q) -> Linkage:
    """Ground a, crank b, coupler c, rocker d, crank at angle q."""
    tip = np.array([b * math.cos(q), b * math.sin(q)])
    to = np.array([a, 0]) - tip
    r = float(np.linalg.norm(to))
    swing = math.acos(max(-1.0, min(1.0, (c * c + r * r - d * d) / (2 * c * r))))
    coupler = math.atan2(to[1], to[0]) + swing
    end = tip + c * np.array([math.cos(coupler), math.sin(coupler)])
    rocker = math.atan2(end[1], end[0] - a)
    l = Linkage("four bars")
    for n in ("g", "a", "b", "c"):
        l.add_link(n)
    l.add_joint("1", "revolute", "g", "a", closure=False, value=q)
    l.add_joint("2", "revolute", "a", "c", xyz=(b, 0, 0), closure=False, value=coupler - q)
    l.add_joint("3", "revolute", "g", "b", xyz=(a, 0, 0), closure=False, value=rocker)
    l.add_joint("4", "revolute", "c", "b", xyz=(c, 0, 0), child_origin=(d, 0, 0), closure=True)
    return l


def five_bar(rng) -> Linkage:
    """Two cranks and two rods; the goal is the point where the rods meet."""
    base, crank, rod = 1.0, rng.uniform(0.5, 0.8), rng.uniform(0.7, 1.1)
    while True:
        q, p = rng.uniform(0.8, 2.4), rng.uniform(0.8, 2.4)
        left = np.array([crank * math.cos(q), crank * math.sin(q)])
        right = np.array([base + crank * math.cos(p), crank * math.sin(p)])
        gap = right - left
        r = float(np.linalg.norm(gap))
        if 0.2 < r < 1.9 * rod:
            break
    up = math.atan2(gap[1], gap[0]) + math.acos(r / (2 * rod))
    tip = left + rod * np.array([math.cos(up), math.sin(up)])
    down = math.atan2(tip[1] - right[1], tip[0] - right[0])
    l = Linkage("five bars")
    for n in ("g", "a", "b", "c", "d"):
        l.add_link(n)
    l.add_joint("1", "revolute", "g", "a", closure=False, value=q)
    l.add_joint("2", "revolute", "a", "b", xyz=(crank, 0, 0), closure=False, value=up - q)
    l.add_joint("3", "revolute", "g", "c", xyz=(base, 0, 0), closure=False, value=p)
    l.add_joint("4", "revolute", "c", "d", xyz=(crank, 0, 0), closure=False, value=down - p)
    l.add_joint("5", "revolute", "b", "d", xyz=(rod, 0, 0), child_origin=(rod, 0, 0), closure=True)
    l.add_goal("g", "b", "position", offset=(rod, 0, 0))
    return l


def with_goal(linkage: Linkage, link: str, kind: str = "position") -> Linkage:
    linkage.add_goal("g", link, kind)
    return linkage


def mechanism(rng) -> Linkage:
    """One of the kinds, about one metre large."""
    kind = rng.integers(9)
    if kind == 0:
        return with_goal(delta()[0], "platform")
    if kind == 1:
        return five_bar(rng)
    if kind == 2:
        return with_goal(stewart()[0], "platform", "pose" if rng.random() < 0.5 else "position")
    if kind == 3:
        return four_bar(rng)
    if kind == 4:
        return with_goal(rrr3()[0], "platform", "pose")
    if kind == 5:
        return arm(rng, 2, plane=True, limits=False)
    n = int(rng.integers(3, 8))
    return arm(rng, n, plane=bool(rng.random() < 0.5), limits=bool(rng.random() < 0.5))


def reachable_goal(rng, linkage: Linkage, spread: float) -> bool:
    """Put the goal where a posture with closed loops has it; whether one was found.

    The posture is the start with every coordinate moved at random, its loops closed by scipy.
    """
    oracle = Oracle(linkage)
    start = oracle.vector(linkage.values)
    goal = linkage.goals["g"]
    for _ in range(4):
        q = start + rng.normal(scale=spread, size=len(start)) * oracle.unit
        q = np.clip(q, oracle.low, oracle.high)
        if linkage.closure_joints():
            q, left = oracle.solve(q, goals=False, most=100)
            if left > 1e-10:
                continue
        poses = oracle.poses(oracle.values(q))
        linkage.set_goal("g", poses[goal.link] @ goal.offset)
        return True
    return False


def random_case(rng) -> tuple[Linkage, float]:
    """A mechanism between 1 mm and 100 m with a reachable goal, and its scale."""
    while True:
        l = mechanism(rng)
        if reachable_goal(rng, l, spread=float(rng.choice([0.02, 0.1, 0.3, 0.8]))):
            break
    s = float(10.0 ** rng.uniform(-2, 2)) if rng.random() < 0.8 else float(rng.choice([0.12, 12.0]))
    return scaled(l, s / length(l) if s in (0.12, 12.0) else s), s
