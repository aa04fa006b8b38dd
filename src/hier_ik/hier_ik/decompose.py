"""DECOMPOSE: independent components of a hierarchical linkage, in solve order.

After M. Vona, "Hierarchical Decomposition and Kinematic Abstraction with Virtual Articulations",
Algorithms 1 to 7. Where this departs from the print:

* Rounds (Alg. 2 to 4). As printed the first visit of a sublinkage fixes its round, which breaks the
  order if a longer way leads to it (L0 <- D1 and L0 <- D2 <- E give L0 the round of D2). Here the
  simultaneous edges are contracted, and the round is the longest path in what is left.
* Alg. 5, first loop: tests the breadcrumb of the link it stands on, and tests before it steps,
  because the child of a closure may be an ancestor of its parent. Second loop: stops before the
  closure itself. Breadcrumbs are cleared before the trace leaves a link.
* Alg. 1: one sort at the end, by (round, first closure), so that the order is deterministic. The
  round of a component is that of the effective SCC of its closures: the parent's, where a closure
  crosses a driving boundary.
* No recursion: chains are thousands of joints deep.
* Joints without freedom count as locked. Closures that nothing supports stay as components of
  their own, so that their residual is reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse
from numba import njit

from hier_ik.elements import Joint
from hier_ik.linkage import Linkage
from hier_ik.tables import Ints, Records, record
from kin_core import checks

__all__ = [
    "Component", "Decomposition", "MEMBERSHIPS", "assign_rounds", "decompose", "overlapping",
]  # fmt: skip


#: To which sublinkage the crossing tree joints of a driving sublinkage belong: to the inner one as
#: in the paper, or to the outer one, where they can still support the closures of the parent.
MEMBERSHIPS = ("paper", "mirror")
#: Edits that change no decomposition; of a link that goes, joints and goals have their own entries.
HARMLESS = (
    "add_leaf", "remove_leaf", "set_limits", "set_rest", "set_value", "add_link", "remove_link",
)  # fmt: skip
#: A tree joint between two links, with the SCC and round of its sublinkage, -1 if it is locked.
_TREE = record("parent child scc round")
#: A closure or goal with its effective SCC and round; then what the trace finds: where its support
#: begins, where the way down ends, where it ends, and a joint on its path that moves later, or -1.
_LOOP = record("parent child scc round begin middle end late")


@dataclass(frozen=True)
class Component:
    """Closures that must be solved together, and the tree joints that move them.

    Attributes:
        round: Solve round, 0 first.
        scc: Strongly connected component of sublinkages to which it belongs.
        closures: Names of closure joints and goals, in the order of the linkage.
        joints: Names of the unlocked supporting tree joints, in the order of the linkage.
    """

    round: int
    scc: int
    closures: tuple[str, ...]
    joints: tuple[str, ...]


@dataclass(frozen=True)
class Decomposition:
    """The result of DECOMPOSE.

    Attributes:
        components: In solve order.
        scc: Per sublinkage the number of its strongly connected component.
        rounds: Per sublinkage its solve round.
        down: Per closure the unlocked support from its child down to the common ancestor.
        up: Per closure the unlocked support from the common ancestor up to its parent.
        locked_wrt_calls: How often LOCKEDWRT (Alg. 6) was asked; O(|T| |C|).
        warnings: Sentences on what is legal but probably not meant.
        early: Closures and goals that joints of later rounds move after they have been solved; they
            are met only after several iterations, if at all. Each has a warning.
        membership: One of MEMBERSHIPS.
    """

    components: tuple[Component, ...]
    scc: dict[str, int]
    rounds: dict[str, int]
    down: dict[str, tuple[str, ...]] = field(repr=False)
    up: dict[str, tuple[str, ...]] = field(repr=False)
    locked_wrt_calls: int
    warnings: tuple[str, ...]
    membership: str
    early: tuple[str, ...] = ()

    @property
    def scc_count(self) -> int:
        """Number of strongly connected components of sublinkages."""
        return len(set(self.scc.values()))

    def rounds_of_components(self) -> dict[int, int]:
        """Number of components per round."""
        return dict(sorted(Counter(c.round for c in self.components).items()))

    def merged(self) -> Decomposition:
        """All components as one, for the dense baselines."""
        closures = tuple(n for c in self.components for n in c.closures)
        joints = tuple(dict.fromkeys(n for c in self.components for n in c.joints))
        return replace(self, components=(Component(0, 0, closures, joints),) if closures else ())

    def outlives(self, edits: list[tuple[str, str]]) -> bool:
        """Whether entries of a linkage's journal leave the decomposition as it is."""
        used = {n for c in self.components for n in (*c.joints, *c.closures)}
        return all(op in HARMLESS or (op == "lock" and name not in used) for op, name in edits)

    def report(self, limit: int = 200) -> str:
        """The decomposition as text for people."""
        lines = [
            f"{len(self.scc)} sublinkages in {self.scc_count} strongly connected components, "
            f"{len(self.components)} components in {len(self.rounds_of_components())} rounds "
            f"({self.locked_wrt_calls} LOCKEDWRT calls, membership {self.membership})"
        ]
        members: dict[int, list[str]] = {}
        for name, i in self.scc.items():
            members.setdefault(i, []).append(name)
        for i, names in sorted(members.items())[:limit]:
            lines.append(f"  SCC {i}, round {self.rounds[names[0]]}: {_shorten(names)}")
        for k, c in enumerate(self.components[:limit]):
            lines.append(
                f"  component {k}, round {c.round}, SCC {c.scc}: |C|={len(c.closures)} "
                f"|T|={len(c.joints)}  closures {_shorten(c.closures)}; joints "
                f"{_shorten(c.joints)}"
            )
        if max(len(members), len(self.components)) > limit:
            lines.append(f"  ... (only the first {limit} of each are listed)")
        lines += [f"  warning: {w}" for w in self.warnings[:limit]]
        return "\n".join(lines)


def _shorten(names: tuple[str, ...] | list[str], limit: int = 8) -> str:
    if len(names) <= limit:
        return ", ".join(names) if names else "none"
    return ", ".join(names[: limit - 1]) + f", ... {names[-1]}"


def assign_rounds(linkage: Linkage) -> tuple[dict[str, int], dict[str, int]]:
    """Return the SCC and the solve round of every sublinkage (Alg. 2 to 4, corrected).

    The meta-graph of sublinkages is a tree, so its strongly connected components are what the
    simultaneous edges join; the round is the longest path on the condensation.
    """
    subs = linkage.sublinkages
    scc: dict[str, int] = {}
    count = 0
    for name in subs:  # a parent may stand after its child: climb until one is known
        way = []
        at: str = name
        while at not in scc:
            way.append(at)
            parent = subs[at].parent
            if parent is None or subs[at].disposition != "simultaneous":
                break
            at = parent
        number = scc.get(at, -1)
        if number < 0:
            number, count = count, count + 1
        for w in way:
            scc[w] = number
    edges: list[list[int]] = [[] for _ in range(count)]
    waits = [0] * len(edges)
    for s in subs.values():
        if s.parent is not None and s.disposition != "simultaneous":
            before, after = scc[s.parent], scc[s.name]
            if s.disposition == "driving":
                before, after = after, before
            edges[before].append(after)
            waits[after] += 1
    rounds = [0] * len(edges)
    ready = [i for i, w in enumerate(waits) if w == 0]
    for i in ready:  # grows while it is read: Kahn's order
        for k in edges[i]:
            rounds[k] = max(rounds[k], rounds[i] + 1)
            waits[k] -= 1
            if waits[k] == 0:
                ready.append(k)
    return scc, {name: rounds[i] for name, i in scc.items()}


@njit(cache=True, nogil=True)
def _trace_supports(
    above: Ints, tree: Records, loops: Records, first_edge: Ints, edges: Ints, root: int
) -> tuple[int, Ints]:
    """TRACESUPPORTS (Alg. 5, corrected) without recursion.

    Args:
        above: Per link the tree joint that leads to it, -1 for the root.
        tree: _TREE records.
        loops: _LOOP records; begin, middle, end and late are filled in.
        first_edge: Per link its first edge, and one behind the last.
        edges: What leaves each link: tree joint t as t, closure c as -1 - c.
        root: The link to begin at.

    Returns:
        The LOCKEDWRT calls (Alg. 6), and the supports of all loops as tree joints.
    """
    none = -2 - edges.shape[0]
    crumb = np.full(above.shape[0], none, np.int64)
    cursor = first_edge[:-1].copy()
    stack = np.empty(above.shape[0], np.int64)
    support = np.empty(0, np.int64)
    stack[0] = root
    depth, calls, filled = 1, 0, 0
    while depth > 0:
        l = stack[depth - 1]
        if cursor[l] == first_edge[l + 1]:
            crumb[l] = none  # cleared before the trace leaves l
            depth -= 1
            continue
        e = edges[cursor[l]]
        cursor[l] += 1
        crumb[l] = e
        if e >= 0:
            stack[depth] = tree[e].child
            depth += 1
            continue
        if filled + tree.shape[0] > support.shape[0]:  # no path is longer than the tree
            support = np.append(support, np.empty(filled + tree.shape[0], np.int64))
        loop = loops[-1 - e]
        loop.begin, late = filled, -1
        i = loop.child
        while crumb[i] == none:  # down to the least common ancestor
            p = above[i]
            i = tree[p].parent
            calls += 1
            if tree[p].scc == loop.scc:
                support[filled] = p
                filled += 1
            if tree[p].round > loop.round and late < 0:
                late = p
        loop.middle, loop.late = filled, late
        while crumb[i] != e:  # up again along the breadcrumbs, stopping before the closure
            t = crumb[i]
            i = tree[t].child
            calls += 1
            if tree[t].scc == loop.scc:
                support[filled] = t
                filled += 1
            if tree[t].round > loop.round and late < 0:
                loop.late = t
        loop.end = filled
    return calls, support[:filled]


def overlapping(supports: Sequence[Sequence[int]]) -> list[list[int]]:
    """FINDCOMPONENT (Alg. 7) for all closures at once.

    Args:
        supports: Per closure the numbers of its supporting joints.

    Returns:
        The closures in groups that share joints, directly or through others; in order.
    """
    n = len(supports)
    joints = np.array([j for support in supports for j in support], np.int64)
    closures = np.repeat(np.arange(n), [len(s) for s in supports])
    size = n + 1 + int(joints.max(initial=0))
    graph = scipy.sparse.coo_array((np.ones(len(joints)), (closures, n + joints)), (size, size))
    labels = scipy.sparse.csgraph.connected_components(graph, directed=False)[1]
    groups: dict[int, list[int]] = {}
    for i, label in enumerate(labels[:n].tolist()):
        groups.setdefault(label, []).append(i)
    return list(groups.values())


def decompose(linkage: Linkage, *, membership: str = "paper", goals: bool = True) -> Decomposition:
    """Decompose a valid linkage into independent components in solve order (Alg. 1).

    Args:
        linkage: All joints have a role; see validate().
        membership: One of MEMBERSHIPS.
        goals: Whether the goals count as closures.
    """
    checks.one_of("membership", membership, MEMBERSHIPS)
    scc, rounds = assign_rounds(linkage)
    warnings: list[str] = []
    links = {name: i for i, name in enumerate(linkage.links)}
    joints = linkage.tree_joints()
    held = (-1, -1)
    rows = []
    for j in joints:
        inner, outer = _homes(linkage, j)
        moves = bool(j.dof and not j.locked)
        if moves and membership == "paper" and scc[inner] != scc[outer]:
            warnings.append(
                f"tree joint {j.name!r} crosses into the driving sublinkage {inner!r} and "
                "belongs to it by the paper's rule, so it supports no closure of the parent; "
                "membership 'mirror' gives it to the parent"
            )
        home = outer if membership == "mirror" else inner
        at = (scc[home], rounds[home]) if moves else held
        rows.append((links[j.parent], links[j.child], *at))
    tree = np.array(rows, _TREE)

    names: list[str] = []
    loops_of: list[tuple[str, str, str]] = []  # parent, child, effective sublinkage
    for c in linkage.closure_joints():
        names.append(c.name)
        loops_of.append((c.parent, c.child, _homes(linkage, c)[1]))
    for g in linkage.goals.values() if goals else ():
        names.append(g.name)
        loops_of.append((g.reference, g.link, linkage.links[g.link].sublinkage))
    loops = np.array(
        [(links[a], links[b], scc[s], rounds[s], 0, 0, 0, -1) for a, b, s in loops_of], _LOOP
    )

    above = np.full(len(links), -1, np.int64)
    above[tree["child"]] = np.arange(len(tree))
    leave = np.concatenate([tree["parent"], loops["parent"]])
    codes = np.concatenate([np.arange(len(tree)), -1 - np.arange(len(loops))])
    edges = codes[np.argsort(leave, kind="stable")]
    first_edge = np.append(0, np.cumsum(np.bincount(leave, minlength=len(links))))
    calls, found = _trace_supports(above, tree, loops, first_edge, edges, links[linkage.root])

    early = [i for i, late in enumerate(loops["late"].tolist()) if late >= 0]
    for i in early:
        late = loops["late"][i]
        warnings.append(
            f"{'goal' if names[i] in linkage.goals else 'closure'} {names[i]!r} is solved in round "
            f"{loops['round'][i]}, but joint {joints[late].name!r} on its path moves in round "
            f"{tree['round'][late]}; it is solved again in each iteration and may not be met"
        )

    def named(chain: list[int]) -> tuple[str, ...]:
        return tuple(joints[t].name for t in chain)

    support = found.tolist()
    begin, middle, end = (loops[key].tolist() for key in ("begin", "middle", "end"))
    supports = [support[b:e] for b, e in zip(begin, end, strict=True)]
    down = {n: named(support[b:m]) for n, b, m in zip(names, begin, middle, strict=True)}
    up = {n: named(support[m:e]) for n, m, e in zip(names, middle, end, strict=True)}
    components = [
        Component(
            int(loops["round"][group[0]]),
            int(loops["scc"][group[0]]),
            tuple(names[i] for i in group),
            named(sorted({t for i in group for t in supports[i]})),
        )
        for group in overlapping(supports)
    ]
    components.sort(key=lambda c: c.round)  # stable: within a round by the first closure
    return Decomposition(
        tuple(components), scc, rounds, down, up, int(calls), tuple(warnings), membership,
        tuple(names[i] for i in early),
    )  # fmt: skip


def _homes(linkage: Linkage, joint: Joint) -> tuple[str, str]:
    """The sublinkage of a joint, and that on the outer side of a driving boundary it crosses."""
    inner = linkage.crossed(joint)
    if inner is None:
        inner = linkage.links[joint.parent].sublinkage
        return inner, inner
    sub = linkage.sublinkages[inner]
    return inner, (sub.parent or inner) if sub.disposition == "driving" else inner
