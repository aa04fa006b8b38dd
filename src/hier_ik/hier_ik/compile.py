"""From a linkage and its decomposition to the tables of the compiled solver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hier_ik.bodies import Bodies, pack
from hier_ik.decompose import Component, Decomposition, overlapping
from hier_ik.elements import Goal, Joint
from hier_ik.joints import ROT_AXIS, ROT_FREE, ROT_FULL
from hier_ik.linkage import Linkage
from hier_ik.steps import DAMPING_START
from hier_ik.tables import (
    CLOSURE,
    COMPONENT,
    FALLBACK,
    PART,
    PRIORITIES,
    ROUND,
    SINGLE,
    SUPPORT,
    Records,
    Tables,
)

__all__ = ["Compiled", "compile_linkage"]


#: Rows and columns up to which a component is solved by dense factors inside the kernel.
DENSE_LIMIT = 160
#: Closures of a first level that share joints, and these joints.
Block = tuple[list[str], list[str]]


@dataclass(frozen=True)
class Compiled:
    """The tables, and where each named element is in them.

    Attributes:
        tables: Tables and workspaces, with the posture of the linkage.
        bodies: Where links and tree joints are, the limits, and the unit of length.
        closure_of: Per closure or goal its row in the tables.
        goals: The rows of the goals.
    """

    tables: Tables
    bodies: Bodies
    closure_of: dict[str, int]
    goals: list[int]

    def set_target(self, goal: Goal) -> None:
        """Write the target of a goal into the tables."""
        T = self.bodies.link_offset[goal.reference] @ goal.target
        self.tables.closures["frame_a"][self.closure_of[goal.name]] = pack(T, self.bodies.length)


def compile_linkage(
    linkage: Linkage, decomposition: Decomposition, *, fallback: bool = False
) -> Compiled:
    """Make the tables.

    Args:
        linkage: Valid.
        decomposition: Its own.
        fallback: Leave every component to fallback.py.
    """
    bodies = Bodies(linkage)
    tasks = _Tasks(linkage, decomposition, bodies, fallback=fallback)
    body_table, freedoms = bodies.tables(linkage)
    freedoms["loose"] = (freedoms["rests"] == 1) & ~bodies.locked
    freedoms["loose"][tasks.freedoms] = 0
    goals = [tasks.closure_of[n] for n in linkage.goals]
    return Compiled(tasks.tables(body_table, freedoms), bodies, tasks.closure_of, goals)


def closure_mask(element: Joint | Goal) -> tuple[int, int]:
    """Rotation mode and row mask of a closure joint or a goal."""
    if isinstance(element, Joint):
        kind = element.kind
        turns = {ROT_FREE: 0, ROT_FULL: 7, ROT_AXIS: 3}.get(kind.rotation, 1)
        mask = sum(1 << i for i in range(3) if kind.held[i])
        return kind.rotation, mask | turns << 3
    mask = sum(1 << i for i in range(6) if element.rows[i])
    if not mask >> 3:
        return ROT_FREE, mask
    return (ROT_AXIS if element.kind == "axis" else ROT_FULL), mask


def _records(kind: np.dtype[Any], rows: Sequence[dict[str, Any]]) -> Records:
    """Dictionaries as records; fields that they do not name are zero."""
    out = np.zeros(len(rows), kind)
    for name in rows[0] if rows else ():
        out[name] = [row[name] for row in rows]
    return out


class _Tasks:
    """Closures, chains, components, parts and rounds, gathered component by component."""

    def __init__(
        self, linkage: Linkage, decomposition: Decomposition, bodies: Bodies, *, fallback: bool
    ) -> None:
        self.linkage, self.decomposition, self.bodies = linkage, decomposition, bodies
        self.fallback = fallback
        self.elements: dict[str, Joint | Goal] = {c.name: c for c in linkage.closure_joints()}
        self.elements.update(linkage.goals)
        self.level_of = {
            n: linkage.level(e) if isinstance(e, Joint) else e.priority
            for n, e in self.elements.items()
        }
        self.closures: list[dict[str, Any]] = []
        self.chain: list[tuple[int, int, int, int]] = []
        self.components: list[dict[str, Any]] = []
        self.parts: list[dict[str, Any]] = []
        self.rounds: list[tuple[int, int, int, int]] = []
        self.freedoms: list[int] = []
        self.component_fk: list[int] = []
        self.round_fk: list[int] = []
        self.closure_of: dict[str, int] = {}
        self.matrices = 0  # numbers that the largest component needs for its matrices
        self.rank = 0  # the largest of a part
        self.moves: list[set[int]] = []  # bodies that a component moves itself
        self.needs: list[set[int]] = []  # bodies whose poses its closures read
        self.support = {n: decomposition.down[n] + decomposition.up[n] for n in self.level_of}
        blocks = self._blocks()
        for c, of_component in zip(decomposition.components, blocks, strict=True):
            self._component(c, of_component)
        self._rounds()

    def _blocks(self) -> list[list[Block]]:
        """Per component the parts of its first level that share no joint."""
        components = self.decomposition.components
        home = {n: k for k, c in enumerate(components) for n in c.closures}
        first = [min(self.level_of[n] for n in c.closures) for c in components]
        names = [n for n, k in home.items() if self.level_of[n] == first[k]]
        number = {j: i for i, j in enumerate(self.bodies.dof_of)}
        out: list[list[Block]] = [[] for _ in components]
        for group in overlapping([[number[j] for j in self.support[n]] for n in names]):
            closures = [names[i] for i in group]
            joints = list(dict.fromkeys(j for n in closures for j in self.support[n]))
            out[home[closures[0]]].append((closures, joints))
        return out

    # ---- one component ----------------------------------------------------------------------

    def _component(self, c: Component, blocks: list[Block]) -> None:
        joints, support = self.linkage.joints, self.support
        present = sorted({self.level_of[n] for n in c.closures})
        has_rest = any(joints[j].rest is not None for j in c.joints)
        in_block = {j for _, of_block in blocks for j in of_block}
        others = [j for j in c.joints if j not in in_block]
        if others or not blocks:
            blocks.append(([], others))
        column: dict[str, int] = {}
        columns = 0
        parts: list[tuple[int, int, list[str]]] = []  # columns begin and end, closures
        for closures, of_block in blocks:
            begin = columns
            for j in of_block:
                column[j] = columns
                columns += joints[j].dof
            parts.append((begin, columns, closures))
        for level in present[1:]:
            parts.append((0, columns, [n for n in c.closures if self.level_of[n] == level]))

        rows = {n: closure_mask(self.elements[n])[1].bit_count() for n in c.closures}
        sizes = [sum(rows[n] for n in of_part) for _, _, of_part in parts]
        kind = self._kind(parts, sizes, len(blocks), has_rest=has_rest)
        first_closure, first_part = len(self.closures), len(self.parts)
        row = matrix = 0
        for (begin, end, of_part), m in zip(parts, sizes, strict=True):
            first, stride = (begin, end - begin) if kind == PRIORITIES else (0, columns)
            part = {
                "column_begin": begin, "column_end": end, "rows": m, "row": row,
                "closure_begin": len(self.closures), "matrix": matrix,
                "factor": matrix + m * stride,
            }  # fmt: skip
            for n in of_part:
                if kind == FALLBACK:  # sparse rows: as many entries as the chain has freedoms
                    first, stride = -1, sum(joints[j].dof for j in support[n])
                self._closure(n, support[n], column, first)
                self.closures[-1].update(row=row, matrix=matrix, stride=stride)
                row += rows[n]
                matrix += rows[n] * stride
            if kind == PRIORITIES:
                matrix += m * stride  # the factor
                self.parts.append({**part, "closure_end": len(self.closures)})
                self.rank = max(self.rank, min(m, stride))
        if kind == SINGLE:
            matrix += 2 * min(row, columns) ** 2
        self.matrices = max(self.matrices, matrix)
        ordered = [j for _, of_block in blocks for j in of_block]
        block_end = first_part + (len(blocks) if kind == PRIORITIES else 0)
        self.components.append(
            {
                "kind": kind, "round": c.round, "rows": row, "columns": columns,
                "has_rest": has_rest, "freedom_begin": len(self.freedoms),
                "freedom_end": len(self.freedoms) + columns, "closure_begin": first_closure,
                "closure_end": len(self.closures), "block_begin": first_part,
                "block_end": block_end, "level_begin": block_end, "level_end": len(self.parts),
                **self._fk(first_closure, ordered),
            }
        )  # fmt: skip
        self.freedoms += [d for j in ordered for d in self._freedoms(j)]

    def _kind(
        self,
        parts: list[tuple[int, int, list[str]]],
        sizes: list[int],
        blocks: int,
        *,
        has_rest: bool,
    ) -> int:
        """How a component is solved."""
        columns = max(end for _, end, _ in parts)
        if self.fallback:
            return FALLBACK
        if blocks == len(parts) and not has_rest:
            return SINGLE if min(sum(sizes), columns) <= DENSE_LIMIT else FALLBACK
        dense = all(
            min(m, end - begin) <= DENSE_LIMIT
            for (begin, end, _), m in zip(parts[:blocks], sizes[:blocks], strict=True)
        )
        small = dense and min(sum(sizes[blocks:]), columns) <= 2 * DENSE_LIMIT
        return PRIORITIES if small else FALLBACK

    def _freedoms(self, joint: str) -> range:
        first = self.bodies.dof_of[joint]
        return range(first, first + self.linkage.joints[joint].dof)

    def _closure(
        self, name: str, support: Sequence[str], column: dict[str, int], first: int
    ) -> None:
        """A closure and its chain, whose entries begin at column ``first`` (-1: one by one)."""
        e, of = self.elements[name], self.bodies
        if isinstance(e, Joint):
            a, A, b, B = e.parent, e.origin, e.child, e.child_origin
        else:
            a, A, b, B = e.reference, e.target, e.link, e.offset
        mode, mask = closure_mask(e)
        begin = len(self.chain)
        down = len(self.decomposition.down[name])
        for i, j in enumerate(support):
            for k, freedom in enumerate(self._freedoms(j)):
                at = column[j] + k
                entry = at - first if first >= 0 else len(self.chain) - begin
                self.chain.append((freedom, 1 if i < down else -1, at, entry))
        self.closure_of[name] = len(self.closures)
        self.closures.append(
            {
                "body_a": of.link_body[a], "body_b": of.link_body[b], "mode": mode, "mask": mask,
                "rows": mask.bit_count(), "level": self.level_of[name],
                "component": len(self.components), "chain_begin": begin,
                "chain_end": len(self.chain), "weight": e.weight,
                "frame_a": pack(of.link_offset[a] @ A, of.length),
                "frame_b": pack(of.link_offset[b] @ B, of.length),
            }
        )  # fmt: skip

    # ---- which poses are read, which are stale ----------------------------------------------

    def _fk(self, first_closure: int, joints: Sequence[str]) -> dict[str, int]:
        """List the bodies that a step of the component moves and its closures read."""
        parent = self.bodies.parent
        needs: set[int] = set()
        for closure in self.closures[first_closure:]:
            for body in (closure["body_a"], closure["body_b"]):
                while body and body not in needs:
                    needs.add(body)
                    body = parent[body]
        moves = {self.bodies.freedom_body[d] for j in joints for d in self._freedoms(j)}
        self.needs.append(needs)
        self.moves.append(moves)
        begin = len(self.component_fk)
        stale: set[int] = set()
        for b in sorted(needs):
            if b in moves or parent[b] in stale:
                stale.add(b)
                self.component_fk.append(b)
        return {"fk_begin": begin, "fk_end": len(self.component_fk)}

    def _rounds(self) -> None:
        """Kinematics before each round: what its closures read and what has moved since.

        The iteration is cyclic, so the set that is stale at its start is found as a fixed point.
        """
        numbers = [c["round"] for c in self.components]
        ranges = []
        for r in sorted(set(numbers)):
            ranges.append((numbers.index(r), len(numbers) - numbers[::-1].index(r)))
        parent = self.bodies.parent
        n = len(parent)
        needs, moved = np.zeros((len(ranges), n), bool), np.zeros((len(ranges), n), bool)
        for i, (a, b) in enumerate(ranges):
            needs[i, list(set().union(*self.needs[a:b]))] = True
            mark = moved[i]
            mark[list(set().union(*self.moves[a:b]))] = True
            for body in range(1, n):
                if mark[parent[body]]:
                    mark[body] = True
        stale = np.zeros(n, bool)
        while True:
            now = stale.copy()
            lists = []
            for i in range(len(ranges)):
                todo = needs[i] & now
                lists.append(np.flatnonzero(todo))
                now &= ~todo
                now |= moved[i]
            if not (now & ~stale).any():
                break
            stale |= now
        for (a, b), listed in zip(ranges, lists, strict=True):
            begin = len(self.round_fk)
            self.round_fk += listed.tolist()
            self.rounds.append((a, b, begin, len(self.round_fk)))

    # ---- all of it --------------------------------------------------------------------------

    def tables(self, bodies: Records, freedoms: Records) -> Tables:
        """Give everything its place in the two workspaces, and make the records."""
        closures = _records(CLOSURE, self.closures)
        components = _records(COMPONENT, self.components)
        parts = _records(PART, self.parts)
        rounds = np.array(self.rounds, ROUND)
        rows = int(components["rows"].max(initial=0)) + 8
        columns = int(components["columns"].max(initial=0)) + 8

        lists = [self.freedoms, self.component_fk, self.round_fk]
        components["fk_begin"] += len(self.freedoms)
        components["fk_end"] += len(self.freedoms)
        rounds["fk_begin"] += len(self.freedoms) + len(self.component_fk)
        rounds["fk_end"] += len(self.freedoms) + len(self.component_fk)
        components["held"] = sum(len(l) for l in lists)
        components["perm"] = components["held"] + columns
        index = np.concatenate(
            [np.array(l, np.int64) for l in lists] + [np.zeros(columns + rows, np.int64)]
        )

        end = 0
        for name, size in (
            ("e", rows), ("v", 2 * rows + columns), ("dq", columns), ("saved", columns),
            ("x", columns), ("y", columns), ("z", columns), ("norms", rows), ("tau", rows),
            ("g", self.rank**2),
        ):  # fmt: skip
            components[name] = end
            end = (end + size + 7) // 8 * 8  # each vector begins on a cache line
        components["matrix"] = end
        for table, name in ((closures, "matrix"), (parts, "matrix"), (parts, "factor")):
            table[name] += end
        components["damping"] = DAMPING_START
        return Tables(
            bodies, freedoms, closures, np.array(self.chain, SUPPORT), components, parts, rounds,
            index, np.zeros(end + self.matrices + 8),
        )  # fmt: skip
