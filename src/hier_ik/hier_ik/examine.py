"""What a linkage is, in words: mobility, loops, redundant closures, motors, a singular start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hier_ik.assembly import Assembly, assemble
from hier_ik.bodies import Bodies
from hier_ik.errors import LinkageError
from hier_ik.kinematics import all_kinematics
from hier_ik.linkage import Linkage
from hier_ik.loop_closer import LoopCloser
from hier_ik.loop_groups import make_groups, without_hierarchy
from hier_ik.spanning import assign_roles
from hier_ik.split import outer_name, split_closures
from hier_ik.tables import Array, Ints
from hier_ik.validation import validate

__all__ = ["Findings", "Loops", "examine"]

#: Singular values below this share of the largest count as zero; steps to nearby postures [rad, or
#: lengths of the linkage], and how many are looked at.
RANK, STEP, NEARBY = 1e-7, 0.05, 3
#: Names in one sentence at most.
_NAMES = 12


@dataclass(frozen=True)
class Loops:
    """Loops that share joints.

    Attributes:
        closures: Their names.
        freedoms: Of the joints on them.
        rows: That the closures hold.
        rank: How many of these are independent, at a posture nearby where that is most.
        rank_here: The same at the posture itself.
        redundant: Closures that the others of the set hold closed already.
    """

    closures: tuple[str, ...]
    freedoms: int
    rows: int
    rank: int
    rank_here: int
    redundant: tuple[str, ...]


@dataclass(frozen=True)
class Findings:
    """What was found of a linkage.

    Attributes:
        linkage: The linkage, with its loops closed as far as they can be.
        assembly: How they were closed.
        loops: Sets of loops that share joints.
        freedoms: Of all joints of the tree that may move.
        passive: Joints that move and have no motor.
        motors: What the actuated joints are to the others, a sentence; empty if there are none.
        determined: Whether the actuated joints determine all others, each of them needed.
    """

    linkage: Linkage
    assembly: Assembly
    loops: tuple[Loops, ...]
    freedoms: int
    passive: tuple[str, ...]
    motors: str
    determined: bool

    @property
    def mobility(self) -> int:
        """Freedoms that are left when the loops are closed."""
        return self.freedoms - sum(s.rank for s in self.loops)

    @property
    def singular(self) -> tuple[Loops, ...]:
        """Sets of loops whose posture is singular."""
        return tuple(s for s in self.loops if s.rank_here < s.rank)

    @property
    def good(self) -> bool:
        """Whether all loops are closed, no posture is singular and the motors fit."""
        return self.assembly.closed and not self.singular and (self.determined or not self.motors)

    def sentences(self) -> Iterator[str]:
        """All of it for people."""
        l, rows = self.linkage, sum(s.rows for s in self.loops)
        closures = l.closure_joints()
        yield (
            f"{l.name}: {len(l.links)} links, {len(l.tree_joints())} joints in the tree with"
            f" {self.freedoms} freedoms, {len(closures)} closures in {len(self.loops)} sets"
        )
        yield from l.notes
        yield self.assembly.message
        if not self.assembly.closed:
            for name, gap in self.assembly.open.items():
                yield f"open: {name!r} by {gap:.3g} m or rad"
            return
        rank = sum(s.rank for s in self.loops)
        yield f"mobility {self.mobility}: {self.freedoms} freedoms less {rank} independent rows"
        if rows > rank:
            yield f"{rows - rank} of {rows} closure rows are redundant: others hold the same"
        redundant = [name for s in self.loops for name in s.redundant]
        if redundant:
            yield f"redundant closures, any one of which could be left out: {_listed(redundant)}"
        for s in self.singular:
            yield (
                f"singular start: {_listed(s.closures)} hold {s.rank_here} rows here and {s.rank}"
                " nearby"
            )
        if l.actuated:
            yield f"actuated: {_listed(l.actuated)}"
        else:
            yield "no joint is said to be actuated (actuated: [...] in the sidecar)"
        if self.passive:
            yield f"passive: {_listed(self.passive)}"
        if self.motors:
            yield self.motors


def examine(linkage: Linkage) -> Findings:
    """Close the loops of a linkage, and look at it there.

    Args:
        linkage: Stays as it is; goals do not count.

    Raises:
        LinkageError: It breaks a rule.
    """
    linkage = linkage.copy()
    assign_roles(linkage)
    validate(linkage)
    assembly = assemble(linkage)
    linkage.values.update({name: q.copy() for name, q in assembly.values.items()})
    flat = without_hierarchy(linkage)
    moving = [j for j in linkage.tree_joints() if j.dof and not j.locked]
    loops: tuple[Loops, ...] = ()
    if assembly.closed:
        loops = tuple(_loops(flat))
    motors, determined = "", False
    if linkage.actuated and assembly.closed:
        motors, determined = _motors(linkage)
    return Findings(
        linkage, assembly, loops, sum(j.dof for j in moving),
        tuple(j.name for j in moving if j.name not in linkage.actuated), motors, determined,
    )  # fmt: skip


def _jacobians(flat: Linkage) -> list[tuple[tuple[str, ...], tuple[str, ...], Array, Ints]]:
    """Per set of loops: closures, joints, the Jacobian, and which row belongs to which closure."""
    work, _ = split_closures(flat)
    of = Bodies(work)
    tables = make_groups(work, (), of)
    all_kinematics(tables.bodies, tables.freedoms)
    out = []
    for k, (names, joints) in enumerate(zip(tables.names, tables.passive, strict=True)):
        g = tables.groups[k]
        rows = tables.closures["rows"][g["closure_begin"] : g["closure_end"]]
        owner: Ints = np.repeat(np.arange(len(rows), dtype=np.int64), rows)
        out.append((names, joints, tables.jacobian(k).copy(), owner))
    return out


def _rank(J: Array) -> int:
    sizes = np.linalg.svd(J, compute_uv=False) if J.size else np.zeros(0)
    return int((sizes > RANK * max(1.0, sizes.max(initial=0.0))).sum())


def _loops(flat: Linkage) -> Iterator[Loops]:
    here = _jacobians(flat)
    ranks = [[_rank(J) for _, _, J, _ in here]]
    for seed in range(NEARBY):
        moved = _nearby(flat, here, seed)
        if moved is not None:
            ranks.append([_rank(J) for _, _, J, _ in _jacobians(moved)])
    for (names, _, J, owner), seen in zip(here, zip(*ranks, strict=True), strict=True):
        held = [_rank(J[owner != i]) == seen[0] for i in range(len(names))]
        redundant = tuple(outer_name(n) for n, is_held in zip(names, held, strict=True) if is_held)
        outer = tuple(outer_name(n) for n in names)
        yield Loops(outer, J.shape[1], J.shape[0], max(seen), seen[0], redundant)


def _nearby(
    flat: Linkage, here: list[tuple[tuple[str, ...], tuple[str, ...], Array, Ints]], seed: int
) -> Linkage | None:
    """A closed posture a step away, along motions that the loops allow; None if there is none."""
    rng, moved = np.random.default_rng(seed), flat.copy()
    unit = Bodies(flat).length
    for _, joints, J, _ in here:
        _, sizes, V = np.linalg.svd(J)
        free = V[int((sizes > RANK * max(1.0, sizes.max(initial=0.0))).sum()) :]
        if not len(free):
            continue
        way = rng.normal(size=len(free)) @ free
        way *= STEP / max(np.abs(way).max(), 1e-12)
        at = 0
        for name in joints:
            j = flat.joints[name]
            scale = np.where(np.array(j.kind.angular, bool), 1.0, unit)
            moved.values[name] = moved.values[name] + scale * way[at : at + j.dof]
            at += j.dof
    found = assemble(moved, starts=1)
    if not found.closed:
        return None
    moved.values.update(found.values)
    return moved


def _motors(linkage: Linkage) -> tuple[str, bool]:
    try:
        closer = LoopCloser(linkage)
    except LinkageError as error:
        return f"the motors do not fit: {error}", False
    loops = _listed(closer.nearest())
    far = f"; the margin to a singularity is {closer.margin:.3g}, nearest {loops}" if loops else ""
    count = len(closer.names) - len(closer.driven)
    return f"the motors determine the {count} passive freedoms{far}", True


def _listed(names: tuple[str, ...] | list[str]) -> str:
    shown = ", ".join(names[:_NAMES])
    return f"{shown} and {len(names) - _NAMES} more" if len(names) > _NAMES else shown
