"""Whether tasks can be met at all: a bound that proves it not, and other starts to try.

Least squares comes to rest in local minima too, so coming to rest proves nothing. A goal that is
farther away than its chain is long is out of reach for certain. Anything else counts as out of
reach only after other starts, with all tasks on one level, have not met it either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from hier_ik.elements import Goal, Joint
from hier_ik.linkage import Linkage
from hier_ik.tables import Array

__all__ = ["beyond_reach", "on_one_level", "other_starts"]


def beyond_reach(linkage: Linkage, goal: Goal) -> tuple[float, float] | None:
    """The distance of a position goal and the length of its chain [m], if that is shorter.

    The chain is the way in the spanning tree between the two links, every offset and every slide
    stretched out; no posture within the limits reaches farther.
    """
    if not all(goal.rows[:3]):
        return None
    above = {j.child: j for j in linkage.tree_joints()}

    def way(link: str) -> list[Joint]:
        out = []
        while link in above:
            out.append(above[link])
            link = above[link].parent
        return out

    first, second = way(goal.link), way(goal.reference)
    shared = {j.name for j in first} & {j.name for j in second}
    chain = [j for j in first + second if j.name not in shared]
    reach = float(np.linalg.norm(goal.offset[:3, 3])) + sum(
        _longest(j, linkage.values[j.name]) for j in chain
    )
    distance = float(np.linalg.norm(goal.target[:3, 3]))
    return (distance, reach) if distance > reach * (1.0 + 1e-9) + 1e-12 else None


def _longest(j: Joint, value: Array) -> float:
    """How far apart a joint can hold the origins of its links [m]."""
    out = float(np.linalg.norm(j.origin[:3, 3]) + np.linalg.norm(j.child_origin[:3, 3]))
    for i, angle in enumerate(j.kind.angular):
        if not angle:
            far = [value[i]] if j.locked else [j.lower[i], j.upper[i], value[i]]
            out += float(np.abs(far).max())
    return out


def on_one_level(linkage: Linkage) -> Linkage:
    """The linkage without hierarchy and priorities: loops may open on the way to a posture."""
    flat = linkage.flattened()
    for c in flat.closure_joints():
        flat.joints[c.name] = replace(c, priority=0)
    for g in flat.goals.values():
        flat.goals[g.name] = replace(g, priority=0)
    return flat


def other_starts(linkage: Linkage, length: float, count: int) -> Iterator[dict[str, Array]]:
    """Starts to try: the present posture, then ever farther from it, every other one anywhere.

    Args:
        linkage: Its values are the present posture.
        length: A length of the mechanism [m].
        count: How many.

    Yields:
        Coordinates of the tree joints that may move, within their limits.
    """
    free = [j for j in linkage.tree_joints() if j.dof and not j.locked]
    for k in range(count):
        rng = np.random.default_rng(k)
        out = {}
        for j in free:
            q = linkage.values[j.name]
            turn = np.where(np.array(j.kind.angular, bool), np.pi, 2.0 * length)
            if k % 2:
                q = q + rng.normal(scale=0.05 * (k + 1), size=j.dof) * turn
            elif k:
                low = np.where(np.isfinite(j.upper), j.upper - 2 * turn, -turn)
                low = np.where(np.isfinite(j.lower), j.lower, low)
                high = np.where(np.isfinite(j.upper), j.upper, low + 2 * turn)
                q = rng.uniform(low, high)
            out[j.name] = np.clip(q, j.lower, j.upper)
        yield out
