"""From a linkage and its decomposition to the flat tables that the kernels work on.

Every freedom becomes a body of its own (a turn about or a slide along the z axis of its frame, or a
ball of three freedoms); links that move together share a body. So the kinematics are one short
loop, and fixed joints cost nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hier_ik import layout as at
from hier_ik.decompose import Decomposition
from hier_ik.joints import ROT_AXIS, ROT_FREE, ROT_FULL
from hier_ik.kernels import LAMBDA_START
from hier_ik.linkage import Goal, Joint, Linkage
from kin_core.rotations import inverse_transform

__all__ = ["Compiled", "Packed", "compile_linkage"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Rows and columns up to which a component is solved by dense factors inside the kernel.
DENSE_LIMIT = 160
#: Largest step of an angle [rad] and of a length, as a share of the size of the linkage.
STEP_ANGLE, STEP_SHARE = 0.3, 0.3


@dataclass(frozen=True)
class Packed:
    """The packed arrays, and the tables in them as views that share their memory.

    Attributes:
        I: All integers; see layout.py.
        X: All numbers.
        tables: Per slot of layout.py the view (one row per element).
    """

    I: Ints
    X: Array
    tables: dict[int, NDArray[Any]]

    def __getitem__(self, slot: int) -> NDArray[Any]:
        return self.tables[slot]


def pack_tables(
    integers: dict[int, Ints], numbers: dict[int, Array], counts: dict[int, int]
) -> Packed:
    """Put all tables one after the other and write down where each begins."""
    header = np.zeros(at.HEADER, np.int64)
    places: list[tuple[int, int, tuple[int, ...], bool]] = []
    i, x = at.HEADER, 0
    for slot, table in integers.items():
        header[slot] = i
        places.append((slot, i, table.shape, True))
        i += table.size
    for slot, values in numbers.items():
        x = (x + 7) // 8 * 8  # each table begins on a cache line
        header[slot] = x
        places.append((slot, x, values.shape, False))
        x += values.size
    for slot, number in counts.items():
        header[slot] = number
    I, X = np.zeros(i + 8, np.int64), np.zeros(x + 8)
    I[: at.HEADER] = header
    tables: dict[int, NDArray[Any]] = {}
    for slot, begin, shape, whole in places:
        size = int(np.prod(shape))
        view = (I if whole else X)[begin : begin + size].reshape(shape)
        view[...] = integers[slot] if whole else numbers[slot]
        tables[slot] = view
    return Packed(I, X, tables)


@dataclass(frozen=True)
class Compiled:
    """The tables, and where each named element is in them.

    Attributes:
        packed: Tables and workspaces, with the posture of the linkage.
        link_body: Per link its body.
        link_offset: Per link its pose in the body (4, 4).
        dof_of: Per tree joint its first freedom.
        closure_of: Per closure or goal its row in the tables.
        lower: Position limits of the freedoms.
        upper: Position limits of the freedoms.
        velocity: Velocity limits of the freedoms.
        component_of: Per closure (as in the tables) its component.
        length: The unit of length inside the tables [m]; see unit_of_length().
        unit: Per freedom what one of its units in the tables is [rad or m].
        locked: Per freedom whether its joint is locked.
    """

    packed: Packed
    link_body: dict[str, int]
    link_offset: dict[str, Array]
    dof_of: dict[str, int]
    closure_of: dict[str, int]
    lower: Array
    upper: Array
    velocity: Array
    component_of: Ints
    length: float
    unit: Array
    locked: NDArray[np.bool_]

    def row(self, T: Array) -> Array:
        """A transform [m] as the 12 numbers of the tables."""
        p = pack(T)
        p[9:] /= self.length
        return p

    def transform(self, row: Array) -> Array:
        """The inverse of row()."""
        T = unpack(row)
        T[:3, 3] *= self.length
        return T


#: Turns that take the z axis of an elementary body to x, y or z of the joint frame.
_TURN = {
    "x": np.array([[0.0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]]),
    "y": np.array([[0.0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 1]]),
    "z": np.eye(4),
}


def pack(T: Array) -> Array:
    """A 4x4 transform as 12 numbers: rotation row by row, then position."""
    return np.concatenate([T[:3, :3].ravel(), T[:3, 3]])


def unpack(p: Array) -> Array:
    """The inverse of pack()."""
    T = np.eye(4)
    T[:3, :3] = p[:9].reshape(3, 3)
    T[:3, 3] = p[9:]
    return T


def closure_rows(element: Joint | Goal) -> tuple[int, int]:
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


class _Bodies:
    """Bodies and freedoms of the spanning tree."""

    def __init__(self, linkage: Linkage) -> None:
        self.rows: list[tuple[int, int, int]] = [(0, 0, 0)]
        self.origin: list[Array] = [np.eye(4)]
        self.dofs: list[tuple[int, int, int, int]] = []
        self.link_body: dict[str, int] = {linkage.root: 0}
        self.link_offset: dict[str, Array] = {linkage.root: np.eye(4)}
        self.dof_of: dict[str, int] = {}
        self.body_joint: list[str] = [""]
        order = linkage.tree_order()
        self.order = order
        for j in order:
            self._add(linkage, j)

    def _add(self, linkage: Linkage, j: Joint) -> None:
        body = self.link_body[j.parent]
        place = self.link_offset[j.parent] @ j.origin
        self.dof_of[j.name] = len(self.dofs)
        first = len(self.dofs)
        has_rest = int(j.rest is not None)
        for f in j.kind.freedoms:
            ball = f == "s"
            turn = np.eye(4) if ball else _TURN[f[1]]
            kind = at.BALL if ball else (at.REVOLUTE if f[0] == "r" else at.PRISMATIC)
            self.rows.append((body, kind, len(self.dofs)))
            self.origin.append(place @ turn)
            self.body_joint.append(j.name)
            body = len(self.rows) - 1
            place = turn.T
            if ball:
                k = len(self.dofs) - first
                wraps = not (
                    np.isfinite(j.lower[k : k + 3]).any() or np.isfinite(j.upper[k : k + 3]).any()
                )
                self.dofs += [(body, 1, int(wraps), has_rest), *[(body, 1, 0, has_rest)] * 2]
            else:
                self.dofs.append((body, int(kind == at.REVOLUTE), 0, has_rest))
        self.link_body[j.child] = body
        self.link_offset[j.child] = place @ inverse_transform(j.child_origin)


def unit_of_length(linkage: Linkage) -> float:
    """A length of the mechanism [m], the unit in which it is solved.

    It is the median distance between neighbouring joint frames (of slides: how far they go), so a
    long way from the root to the robot does not count. In this unit rows of lengths and rows
    of angles are of one size, for robots of a centimetre and of a hundred metres alike. It is a
    power of two: changing units rounds nothing, and a robot twice as large takes the same steps.
    """
    joints = list(linkage.joints.values())
    if not joints:
        return 1.0
    frames = np.array([T for j in joints for T in (j.origin, j.child_origin)])
    found = [np.linalg.norm(frames[:, :3, 3], axis=1)]
    for j in joints:
        slides = [i for i, angle in enumerate(j.kind.angular) if not angle]
        if slides:
            ways = np.abs([j.lower, j.upper, linkage.values.get(j.name, np.zeros(j.dof))])
            found.append(np.where(np.isfinite(ways), ways, 0.0).max(axis=0)[slides])
    sizes = np.concatenate(found)
    sizes = sizes[sizes > 1e-9]
    if not sizes.size:
        return 1.0
    return float(2.0 ** round(math.log2(float(np.median(sizes)))))


def compile_linkage(
    linkage: Linkage, decomposition: Decomposition, *, outside: bool = False
) -> Compiled:
    """Make the tables.

    Args:
        linkage: Valid.
        decomposition: Its own.
        outside: Leave every component to outside.py.
    """
    bodies = _Bodies(linkage)
    parent = [r[0] for r in bodies.rows]
    nd = len(bodies.dofs)
    lower, upper = np.full(nd, -np.inf), np.full(nd, np.inf)
    velocity, rest, q = np.full(nd, np.inf), np.zeros(nd), np.zeros(nd)
    for j in bodies.order:
        s = slice(bodies.dof_of[j.name], bodies.dof_of[j.name] + j.dof)
        lower[s], upper[s], velocity[s] = j.lower, j.upper, j.velocity
        q[s] = linkage.values[j.name]
        if j.rest is not None:
            rest[s] = j.rest

    length = unit_of_length(linkage)
    unit = np.array([1.0 if d[1] else length for d in bodies.dofs])
    locked = np.zeros(nd, bool)
    for j in bodies.order:
        locked[bodies.dof_of[j.name] : bodies.dof_of[j.name] + j.dof] = j.locked
    elements: dict[str, Joint | Goal] = {c.name: c for c in linkage.closure_joints()}
    elements.update(linkage.goals)
    levels = {
        n: (linkage.level(e) if isinstance(e, Joint) else e.priority) for n, e in elements.items()
    }
    solved = [n for c in decomposition.components for n in c.closures]
    tables = _Tables(linkage, decomposition, bodies, elements, levels, parent, outside)
    nc = len(solved)
    offset_a, offset_b = np.zeros((nc, 12)), np.zeros((nc, 12))
    for name, i in tables.closure_of.items():
        e = elements[name]
        if isinstance(e, Joint):
            a, A, b, B = e.parent, e.origin, e.child, e.child_origin
        else:
            a, A, b, B = e.reference, e.target, e.link, e.offset
        offset_a[i] = pack(bodies.link_offset[a] @ A)
        offset_b[i] = pack(bodies.link_offset[b] @ B)
    offset_a[:, 9:] /= length
    offset_b[:, 9:] /= length
    bodies.origin = [_in_unit(o, length) for o in bodies.origin]
    q, rest = q / unit, rest / unit

    size = max(  # in units of length
        [float(np.abs(o[:3, 3]).max()) for o in bodies.origin]
        + [float(np.abs(q[i])) for i in range(nd) if not bodies.dofs[i][1]]
        + [1e-3]
    )
    step = np.array([STEP_ANGLE if d[1] else STEP_SHARE * size for d in bodies.dofs])
    weights = np.ones(nc)
    for name, i in tables.closure_of.items():
        weights[i] = elements[name].weight
    packed = _pack(tables, bodies, step, weights, offset_a, offset_b, q, rest)
    component_of = np.zeros(nc, np.int64)
    for k, c in enumerate(decomposition.components):
        for n in c.closures:
            component_of[tables.closure_of[n]] = k
    return Compiled(
        packed, bodies.link_body, bodies.link_offset, bodies.dof_of, tables.closure_of, lower,
        upper, velocity, component_of, length, unit, locked,
    )  # fmt: skip


def _in_unit(T: Array, length: float) -> Array:
    out = T.copy()
    out[:3, 3] /= length
    return out


def _pack(
    tables: _Tables,
    bodies: _Bodies,
    step: Array,
    weights: Array,
    offset_a: Array,
    offset_b: Array,
    q: Array,
    rest: Array,
) -> Packed:
    nk, nd, nb = len(tables.comps), len(q), len(bodies.rows)
    rows = max((c[at.ROWS] for c in tables.comps), default=0) + 8
    columns = max((c[at.COLUMNS] for c in tables.comps), default=0) + 8
    blocks, levels = len(tables.blocks) + 1, len(tables.levels) + 1
    pose = np.zeros((nb, 12))
    pose[0, [0, 4, 8]] = 1.0
    whole = np.int64
    integers = {
        at.BODIES: np.array(bodies.rows, whole).reshape(-1, 3),
        at.DOFS: np.array(bodies.dofs, whole).reshape(-1, 4),
        at.CLOSURES: tables.table("closures", 8),
        at.CHAIN: tables.table("chain", 3),
        at.COMPS: tables.table("comps", at.COMP_WIDTH),
        at.COMP_DOFS: tables.table("comp_dofs", 0),
        at.COMP_CLOSURES: tables.table("comp_closures", 0),
        at.COMP_FK: tables.table("comp_fk", 0),
        at.BLOCKS: tables.table("blocks", at.BLOCK_WIDTH),
        at.LEVELS: tables.table("levels", at.LEVEL_WIDTH),
        at.ROUNDS: tables.table("rounds", 4),
        at.ROUND_FK: tables.table("round_fk", 0),
        at.ALL_FK: np.arange(1, nb, dtype=whole),
        at.LOOSE: tables.table("loose", 0),
        at.HELD: np.zeros(columns, whole),
        at.PERM: np.zeros(rows, whole),
        at.RANK: np.zeros(blocks, whole),
        at.FREE: np.zeros(blocks, whole),
        at.LEVEL_START: np.zeros(levels, whole),
        at.LEVEL_RANK: np.zeros(levels, whole),
    }
    numbers = {
        at.Q: q,
        at.LOW: np.full(nd, -np.inf),
        at.HIGH: np.full(nd, np.inf),
        at.STEP_MAX: step,
        at.POSE: pose,
        at.BODY_ORIGIN: np.array([pack(o) for o in bodies.origin]),
        at.AXIS: np.zeros((nd, 3)),
        at.OFFSET_A: offset_a,
        at.OFFSET_B: offset_b,
        at.WEIGHT: weights,
        at.REST: rest,
        at.LAM: np.full(nk, LAMBDA_START),
        at.COST: np.zeros(nk),
        at.STEP: np.zeros(nk),
        at.DQ: np.zeros(columns),
        at.SAVED: np.zeros(columns),
        at.E: np.zeros(rows),
        at.V: np.zeros(2 * rows + columns),
        at.WX: np.zeros(columns),
        at.WY: np.zeros(columns),
        at.WZ: np.zeros(columns),
        at.G: np.zeros(tables.largest_rank**2 + 8),
        at.NORMS: np.zeros(rows),
        at.TAU: np.zeros(rows),
        at.LEVEL_COST: np.zeros(levels),
        at.W: np.zeros(tables.workspace + 8),
    }
    counts = {
        at.N_COMPS: nk,
        at.N_ROUNDS: len(tables.rounds),
        at.N_CLOSURES: len(tables.closures),
        at.N_BODIES: nb,
        at.N_LOOSE: len(tables.loose),
    }
    return pack_tables(integers, numbers, counts)


class _Tables:
    """Closures, chains, components, blocks, levels and rounds as integer tables."""

    def __init__(
        self,
        linkage: Linkage,
        decomposition: Decomposition,
        bodies: _Bodies,
        elements: dict[str, Joint | Goal],
        levels: dict[str, int],
        parent: list[int],
        outside: bool,
    ) -> None:
        self.outside = outside
        self.linkage, self.decomposition, self.bodies = linkage, decomposition, bodies
        self.elements, self.level_of = elements, levels
        self.parent = parent
        self.closures: list[tuple[int, ...]] = []
        self.chain: list[tuple[int, int, int]] = []
        self.comps: list[tuple[int, ...]] = []
        self.comp_dofs: list[int] = []
        self.comp_closures: list[int] = []
        self.comp_fk: list[int] = []
        self.blocks: list[tuple[int, ...]] = []
        self.levels: list[tuple[int, ...]] = []
        self.rounds: list[tuple[int, ...]] = []
        self.round_fk: list[int] = []
        self.closure_of: dict[str, int] = {}
        self.workspace = 0
        self.largest_rank = 0
        self.moves: list[set[int]] = []  # bodies that a component moves itself
        self.needs: list[set[int]] = []  # bodies whose poses its closures read
        for c in decomposition.components:
            self._component(c.round, c.closures, c.joints)
        self._rounds()
        taken = set(self.comp_dofs)
        locked = {bodies.dof_of[j.name] + i for j in bodies.order if j.locked for i in range(j.dof)}
        self.loose = [
            i for i, d in enumerate(bodies.dofs) if d[3] and i not in taken and i not in locked
        ]

    def table(self, name: str, width: int) -> Ints:
        """One of the tables as an array."""
        rows = getattr(self, name)
        if not width:
            return np.array(rows, np.int64).reshape(-1)
        return np.array(rows, np.int64).reshape(-1, width)

    def _joint_dofs(self, name: str) -> range:
        first = self.bodies.dof_of[name]
        return range(first, first + self.linkage.joints[name].dof)

    def _component(self, round: int, names: tuple[str, ...], joints: tuple[str, ...]) -> None:
        d = self.decomposition
        present = sorted({self.level_of[n] for n in names})
        has_rest = any(self.linkage.joints[j].rest is not None for j in joints)
        support = {n: [*d.down[n], *d.up[n]] for n in names}
        blocks = _blocks([n for n in names if self.level_of[n] == present[0]], support)
        in_block = {j for b in blocks for j in b[1]}
        others = [j for j in joints if j not in in_block]
        single = len(present) == 1 and not has_rest
        if others or not blocks:
            blocks.append(([], others))
        ordered_joints = [j for b in blocks for j in b[1]]
        column: dict[str, int] = {}
        first_dof = len(self.comp_dofs)
        for j in ordered_joints:
            column[j] = len(self.comp_dofs) - first_dof
            self.comp_dofs += self._joint_dofs(j)
        n_cols = len(self.comp_dofs) - first_dof
        first_closure = len(self.comp_closures)
        lower = [[n for n in names if self.level_of[n] == l] for l in present[1:]]
        row = 0
        first_block, first_level = len(self.blocks), len(self.levels)
        work = 0
        largest = 0
        dense = True
        for closures, block_joints in blocks:
            begin = column[block_joints[0]] if block_joints else n_cols
            end = begin + sum(self.linkage.joints[j].dof for j in block_joints)
            c0 = len(self.comp_closures)
            m = self._closures(closures, support, column, present)
            width = end - begin
            self.blocks.append(
                (begin, end, c0, len(self.comp_closures), m, work, work + m * width, row)
            )
            work += 2 * m * width
            row += m
            largest = max(largest, min(m, width))
            dense = dense and min(m, width) <= DENSE_LIMIT
        low_rows = 0
        for closures in lower:
            c0 = len(self.comp_closures)
            m = self._closures(closures, support, column, present)
            self.levels.append((c0, len(self.comp_closures), m, work, work + m * n_cols, row))
            work += 2 * m * n_cols
            row += m
            low_rows += m
            largest = max(largest, min(m, n_cols))
        if single:
            side = min(row, n_cols)
            work = row * n_cols + 2 * side * side
            kind = at.SINGLE if side <= DENSE_LIMIT else at.OUTSIDE
        else:
            small = dense and min(low_rows, n_cols) <= 2 * DENSE_LIMIT
            kind = at.PRIORITIES if small else at.OUTSIDE
        if self.outside:
            kind = at.OUTSIDE
        if kind == at.OUTSIDE:
            work = sum(c[4] * (c[6] - c[5]) for c in self.closures[first_closure:])
        else:
            self.largest_rank = max(self.largest_rank, largest)
        self.workspace = max(self.workspace, work)
        fk0 = len(self.comp_fk)
        self._reach(names, ordered_joints)
        self.comp_fk += sorted(self._moved(self.moves[-1]) & self.needs[-1])
        self.comps.append(
            (
                first_dof, len(self.comp_dofs), first_closure, len(self.comp_closures), row, n_cols,
                fk0, len(self.comp_fk), kind, first_block, len(self.blocks), first_level,
                len(self.levels), round, int(has_rest),
            )
        )  # fmt: skip

    def _closures(
        self,
        names: list[str],
        support: dict[str, list[str]],
        column: dict[str, int],
        present: list[int],
    ) -> int:
        total = 0
        for n in names:
            e = self.elements[n]
            mode, mask = closure_rows(e)
            begin = len(self.chain)
            down = len(self.decomposition.down[n])
            for i, j in enumerate(support[n]):
                sign = 1 if i < down else -1
                for k, dof in enumerate(self._joint_dofs(j)):
                    self.chain.append((dof, sign, column[j] + k))
            a, b = (e.parent, e.child) if isinstance(e, Joint) else (e.reference, e.link)
            rows = bin(mask).count("1")
            self.closure_of[n] = len(self.closures)
            self.comp_closures.append(len(self.closures))
            self.closures.append(
                (
                    self.bodies.link_body[a], self.bodies.link_body[b], mode, mask, rows, begin,
                    len(self.chain), self.level_of[n],
                )
            )  # fmt: skip
            total += rows
        return total

    # ---- which poses are read, which are stale ----------------------------------------------

    def _reach(self, names: tuple[str, ...], joints: list[str]) -> None:
        needs: set[int] = set()
        for n in names:
            row = self.closures[self.closure_of[n]]
            for body in row[:2]:
                while body and body not in needs:
                    needs.add(body)
                    body = self.parent[body]
        self.needs.append(needs)
        self.moves.append({self.bodies.dofs[d][0] for j in joints for d in self._joint_dofs(j)})

    def _moved(self, moved: set[int]) -> set[int]:
        """The bodies and all that hang on them (within reach of any closure)."""
        reach = self.needs[-1]
        out: set[int] = set()
        for b in sorted(reach):
            if b in moved or self.parent[b] in out:
                out.add(b)
        return out

    def _rounds(self) -> None:
        """Kinematics before each round: what its closures read and what has moved since.

        The iteration is cyclic, so the set that is stale at its start is found as a fixed point.
        """
        numbers = sorted({c[13] for c in self.comps})
        ranges = []
        for r in numbers:
            ks = [k for k, c in enumerate(self.comps) if c[13] == r]
            ranges.append((ks[0], ks[-1] + 1))
        needs = [set().union(*self.needs[a:b]) for a, b in ranges]
        moved = [set().union(*self.moves[a:b]) for a, b in ranges]
        n = len(self.parent)
        needs_flag, moved_flag = np.zeros((len(ranges), n), bool), np.zeros((len(ranges), n), bool)
        for i in range(len(ranges)):
            needs_flag[i, list(needs[i])] = True
            mark = moved_flag[i]
            mark[list(moved[i])] = True
            for b in range(1, n):
                if mark[self.parent[b]]:
                    mark[b] = True
        stale = np.zeros(n, bool)
        while True:
            now = stale.copy()
            lists = []
            for i in range(len(ranges)):
                todo = needs_flag[i] & now
                lists.append(np.flatnonzero(todo))
                now &= ~todo
                now |= moved_flag[i]
            if not (now & ~stale).any():
                break
            stale |= now
        for (a, b), todo in zip(ranges, lists, strict=True):
            f0 = len(self.round_fk)
            self.round_fk += [int(x) for x in todo]
            self.rounds.append((a, b, f0, len(self.round_fk)))


def _blocks(names: list[str], support: dict[str, list[str]]) -> list[tuple[list[str], list[str]]]:
    """Closures that share a supporting joint, directly or through others, with these joints."""
    leader: dict[str, str] = {}
    up = {n: n for n in names}

    def root(n: str) -> str:
        while up[n] != n:
            up[n] = up[up[n]]
            n = up[n]
        return n

    for n in names:
        for j in support[n]:
            if j in leader:
                a, b = root(n), root(leader[j])
                if a != b:
                    up[a] = b
            else:
                leader[j] = n
    groups: dict[str, tuple[list[str], dict[str, None]]] = {}
    for n in names:
        g = groups.setdefault(root(n), ([], {}))
        g[0].append(n)
        for j in support[n]:
            g[1][j] = None
    return [(closures, list(joints)) for closures, joints in groups.values()]
