"""From a linkage and its actuated joints to the tables of a loop closer; the structure, found once.

With the actuated joints locked, the linkage falls into independent components: the groups. The rows
of a loop do not depend on what is above it in the tree, so the kinematics of a group begin at the
top of its own loops.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hier_ik.bodies import Bodies, pack
from hier_ik.closing import GROUP, linearise
from hier_ik.compile import closure_mask
from hier_ik.decompose import decompose
from hier_ik.linkage import Linkage
from hier_ik.tables import CLOSURE, PRISMATIC, SUPPORT, Array, Ints, Records

__all__ = ["LoopTables", "make_groups", "without_hierarchy"]

#: How far a slide without limits may go beyond where it was at the start, in units of length.
SLIDE = 10.0


@dataclass(frozen=True)
class LoopTables:
    """What the kernels of closing.py work on.

    Attributes:
        bodies: BODY records.
        freedoms: FREEDOM records; ``rest`` is where an actuated freedom is to go, ``high`` how far
            a slide may go either way.
        closures: CLOSURE records in the order of the groups.
        chain: SUPPORT records.
        groups: GROUP records.
        index: Freedoms of the groups, then bodies that they move.
        work: Workspace.
        names: Per group its closures.
        passive: Per group its passive joints.
    """

    bodies: Records
    freedoms: Records
    closures: Records
    chain: Records
    groups: Records
    index: Ints
    work: Array
    names: tuple[tuple[str, ...], ...]
    passive: tuple[tuple[str, ...], ...]

    def copy(self) -> LoopTables:
        """Tables for steps of their own; what no step changes is shared."""
        changed = ("bodies", "freedoms", "groups", "work")
        return replace(self, **{name: getattr(self, name).copy() for name in changed})

    def jacobian(self, group: int) -> Array:
        """The Jacobian of a group at its posture (rows, passive + actuated), lengths in units.

        It is computed here; all bodies above the group must have poses.
        """
        g = self.groups[group]
        linearise(
            self.bodies, self.freedoms, self.closures, self.chain, self.index, self.work, g
        )  # fmt: skip
        width = int(g["passive"] + g["actuated"])
        J: Array = self.work[g["matrix"] : g["matrix"] + g["rows"] * width].reshape(-1, width)
        return J

    def kernel(self) -> tuple[Any, ...]:
        """The tables in the order of the arguments of closing.follow()."""
        return (
            self.bodies, self.freedoms, self.closures, self.chain, self.groups, self.index,
            self.work,
        )  # fmt: skip


def without_hierarchy(linkage: Linkage) -> Linkage:
    """The linkage flat, without goals; limits of closures do not count, for they follow."""
    flat = linkage.flattened()
    for name in list(flat.goals):
        flat.remove_goal(name)
    for c in flat.closure_joints():
        none = np.full(c.dof, np.inf)
        flat.joints[c.name] = replace(c, lower=-none, upper=none, velocity=none)
    return flat


def make_groups(linkage: Linkage, actuated: Sequence[str], bodies: Bodies) -> LoopTables:
    """Make the tables at the posture of a flat linkage."""
    supports = decompose(linkage, goals=False)
    held = linkage.copy()
    for name in actuated:
        held.joints[name] = replace(held.joints[name], locked=True)
    body_table, freedoms = bodies.tables(linkage)
    freedoms["rest"] = freedoms["q"]
    path = _Paths(bodies, body_table, freedoms)
    freedoms["high"] = np.where(bodies.turns, np.inf, path.slide)
    closures: list[dict[str, Any]] = []
    chain: list[tuple[int, int, int, int]] = []
    groups: list[dict[str, Any]] = []
    index: list[int] = []
    moved: list[list[int]] = []
    bends: list[tuple[int, Array]] = []
    work = 0
    components = decompose(held, goals=False).components
    for c in components:
        passive = [d for j in c.joints for d in _freedoms(linkage, bodies, j)]
        motors = dict.fromkeys(
            j for n in c.closures for j in supports.down[n] + supports.up[n] if j not in c.joints
        )
        driving = [d for j in motors for d in _freedoms(linkage, bodies, j)]
        column = {d: i for i, d in enumerate(passive + driving)}
        rows = row = 0
        width, begin = len(column), len(closures)
        joints = [linkage.joints[n] for n in c.closures]
        rows = sum(closure_mask(j)[1].bit_count() for j in joints)
        below: set[int] = set()
        bend = np.zeros(width)
        for j in joints:
            mode, mask = closure_mask(j)
            first = len(chain)
            for sign, of in ((1, supports.down[j.name]), (-1, supports.up[j.name])):
                chain += [
                    (d, sign, column[d], column[d])
                    for t in of
                    for d in _freedoms(linkage, bodies, t)
                ]
            ends = bodies.link_body[j.parent], bodies.link_body[j.child]
            frames = [
                pack(bodies.link_offset[link] @ T, bodies.length)
                for link, T in ((j.parent, j.origin), (j.child, j.child_origin))
            ]
            closures.append(
                {
                    "body_a": ends[0], "body_b": ends[1], "mode": mode, "mask": mask,
                    "rows": mask.bit_count(), "component": len(groups), "chain_begin": first,
                    "chain_end": len(chain), "row": row, "matrix": work + row * width,
                    "stride": width, "weight": j.weight, "frame_a": frames[0],
                    "frame_b": frames[1],
                }
            )  # fmt: skip
            row += mask.bit_count()
            between = path.between(*ends)
            below |= {b for side in between for b in side}
            for d, k2 in path.bend(between, frames, mask):
                if d in column:
                    bend[column[d]] += j.weight**2 * k2
        n = len(passive)
        sizes = {
            "matrix": rows * width, "factor": n * n, "inverse": n * n, "e": rows, "x": n,
            "saved": width, "bend": width,
        }  # fmt: skip
        places = {}
        for name, size in sizes.items():
            places[name] = work
            work = (work + size + 7) // 8 * 8
        groups.append(
            {
                "rows": rows, "passive": n, "actuated": len(driving), "closure_begin": begin,
                "closure_end": len(closures), "freedom": len(index), **places,
                "curvature": math.sqrt(float(bend.sum())),
            }
        )  # fmt: skip
        bends.append((places["bend"], np.sqrt(bend)))
        index += passive + driving
        moved.append(sorted(below))
    for group, listed in zip(groups, moved, strict=True):
        group["fk_begin"], group["fk_end"] = len(index), len(index) + len(listed)
        index += listed
    workspace = np.zeros(work + 8)
    for place, bend in bends:
        workspace[place : place + len(bend)] = bend
    return LoopTables(
        body_table, freedoms, _records(CLOSURE, closures), np.array(chain, SUPPORT),
        _records(GROUP, groups), np.array(index, np.int64), workspace,
        tuple(c.closures for c in components), tuple(c.joints for c in components),
    )  # fmt: skip


def _records(kind: np.dtype[Any], rows: Sequence[Mapping[str, Any]]) -> Records:
    """Mappings as records; fields that they do not name are zero."""
    out = np.zeros(len(rows), kind)
    for name in rows[0] if rows else ():
        out[name] = [row[name] for row in rows]
    return out


def _freedoms(linkage: Linkage, bodies: Bodies, joint: str) -> range:
    first = bodies.dof_of[joint]
    return range(first, first + linkage.joints[joint].dof)


class _Paths:
    """Ways between bodies, and how long they can be, in units of length."""

    def __init__(self, bodies: Bodies, table: Records, freedoms: Records) -> None:
        self.parent, self.kind = bodies.parent, table["kind"]
        self.origin = np.stack([table["origin"][n] for n in "xyz"], axis=1)
        self.freedoms_of: dict[int, list[int]] = {}
        for d, body in enumerate(bodies.freedom_body):
            self.freedoms_of.setdefault(body, []).append(d)
        reach = np.maximum(np.abs(bodies.lower), np.abs(bodies.upper)) / bodies.unit
        open_end = np.abs(freedoms["q"]) + SLIDE
        self.slide = np.where(
            np.isfinite(reach), np.maximum(reach, np.abs(freedoms["q"])), open_end
        )

    def between(self, a: int, b: int) -> tuple[list[int], list[int]]:
        """Bodies from a up to below the common ancestor, and from there down to b."""
        up, down = self._above(a), self._above(b)
        shared = set(up) & set(down)
        return [k for k in up if k not in shared], [k for k in reversed(down) if k not in shared]

    def _above(self, body: int) -> list[int]:
        out = []
        while body:
            out.append(body)
            body = self.parent[body]
        return out

    def bend(
        self, between: tuple[list[int], list[int]], frames: Sequence[tuple[float, ...]], mask: int
    ) -> list[tuple[int, float]]:
        """Per freedom on the way from a to b a bound K^2: how fast it changes the Jacobian.

        Of two turns on the way, one by a rad moves b by at most the length of the way that is left
        after the later one, per rad of the other; rotation rows change by less than two.
        """
        up, down = between
        # The points at which the bodies turn, from a to b, and how far apart they can get.
        steps = [self._length(k) for k in up[:-1]]
        if up and down:
            apart = float(np.linalg.norm(self.origin[up[-1]] - self.origin[down[0]]))
            steps.append(apart + self._slide(up[-1]) + self._slide(down[0]))
        steps += [self._length(k) for k in down[1:]]
        end = float(np.linalg.norm(frames[1][9:]))
        if up and not down:  # b is fixed in the common ancestor
            end = float(np.linalg.norm(np.array(frames[1][9:]) - self.origin[up[-1]]))
            end += self._slide(up[-1])
        steps.append(end)
        ways = np.cumsum(steps[::-1])[::-1]
        freedoms, sizes = [], []
        for body, way in zip([*up, *down], ways, strict=bool(up or down)):
            size = 1.0 if self.kind[body] == PRISMATIC else float(way) ** 2
            size = size * (mask & 7 != 0) + (4.0 if mask >> 3 else 0.0)
            freedoms += self.freedoms_of[body]
            sizes += [size] * len(self.freedoms_of[body])
        return [(d, i * sizes[i] + sum(sizes[i:])) for i, d in enumerate(freedoms)]

    def _length(self, body: int) -> float:
        return float(np.linalg.norm(self.origin[body])) + self._slide(body)

    def _slide(self, body: int) -> float:
        if self.kind[body] != PRISMATIC:
            return 0.0
        return float(self.slide[self.freedoms_of[body][0]])
