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
from dataclasses import dataclass, field

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hier_ik.linkage import Linkage
from kin_core import checks

__all__ = ["Component", "Decomposition", "MEMBERSHIPS", "assign_rounds", "decompose"]

Ints = NDArray[np.int64]

#: To which sublinkage the crossing tree joints of a driving sublinkage belong: to the inner one as
#: in the paper, or to the outer one, where they can still support the closures of the parent.
MEMBERSHIPS = ("paper", "mirror")


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
    above: Ints,  # per link the tree joint that leads to it, -1 for the root
    tree_parent: Ints,  # per tree joint its parent link
    tree_child: Ints,
    tree_scc: Ints,  # per tree joint the SCC of its sublinkage, -1 if locked
    first_edge: Ints,  # CSR over links: edges that leave the link, tree joints and closures
    edges: Ints,  # tree joint t as t, closure c as -1 - c
    closure_child: Ints,
    closure_scc: Ints,  # effective SCC of each closure
    root: int,
    count_only: bool,
    pointer: Ints,  # (closures + 1,) ends of the supports
    split: Ints,  # (closures,) where the down chain ends and the up chain begins
    support: Ints,  # tree joints, filled unless count_only
    found: Ints,  # (closures,) the closures in the order of the trace (U of Alg. 1)
) -> int:
    """TRACESUPPORTS (Alg. 5, corrected) without recursion; returns the LOCKEDWRT calls."""
    n_links = above.shape[0]
    crumb = np.full(n_links, -2 - edges.shape[0], np.int64)
    none = -2 - edges.shape[0]
    cursor = first_edge[:-1].copy()
    stack = np.empty(n_links, np.int64)
    stack[0] = root
    depth = 1
    calls = 0
    filled = 0
    order = 0
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
            stack[depth] = tree_child[e]
            depth += 1
            continue
        c = -1 - e
        found[order] = c
        order += 1
        begin = filled
        i = closure_child[c]
        while crumb[i] == none:  # down to the least common ancestor
            p = above[i]
            i = tree_parent[p]
            calls += 1
            if tree_scc[p] == closure_scc[c]:
                if not count_only:
                    support[filled] = p
                filled += 1
        middle = filled
        while crumb[i] != e:  # up again along the breadcrumbs, stopping before the closure
            t = crumb[i]
            i = tree_child[t]
            calls += 1
            if tree_scc[t] == closure_scc[c]:
                if not count_only:
                    support[filled] = t
                filled += 1
        pointer[c] = filled - begin
        split[c] = middle - begin
    return calls


@njit(cache=True, nogil=True)
def _find_components(pointer: Ints, support: Ints, n_tree: int) -> Ints:
    """FINDCOMPONENT (Alg. 7) for all closures: per closure the number of its component.

    Transitive overlap of supports is the same as the sets of a union-find over tree joints.
    """
    n = pointer.shape[0] - 1
    owner = np.full(n_tree, -1, np.int64)  # first closure that each tree joint supports
    up = np.arange(n)
    for c in range(n):
        for k in range(pointer[c], pointer[c + 1]):
            t = support[k]
            if owner[t] < 0:
                owner[t] = c
                continue
            a, b = c, owner[t]
            while up[a] != a:
                up[a] = up[up[a]]
                a = up[a]
            while up[b] != b:
                up[b] = up[up[b]]
                b = up[b]
            if a < b:
                up[b] = a
            elif b < a:
                up[a] = b
    for c in range(n):
        a = c
        while up[a] != a:
            a = up[a]
        up[c] = a
    return up


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
    tree = linkage.tree_joints()
    closures = linkage.closure_joints()
    targets = list(linkage.goals.values()) if goals else []

    sub_of = {l.name: l.sublinkage for l in linkage.links.values()}
    tree_scc = np.empty(len(tree), np.int64)
    tree_round = np.full(len(tree), -1, np.int64)
    for i, j in enumerate(tree):
        inner = linkage.crossed(j)
        sub = sub_of[j.parent] if inner is None else inner
        if inner is not None and linkage.sublinkages[inner].disposition == "driving":
            if membership == "mirror":
                sub = linkage.sublinkages[inner].parent or inner
            elif j.dof and not j.locked and scc[inner] != scc[_parent(linkage, inner)]:
                warnings.append(
                    f"tree joint {j.name!r} crosses into the driving sublinkage {inner!r} and "
                    "belongs to it by the paper's rule, so it supports no closure of the parent; "
                    "membership 'mirror' gives it to the parent"
                )
        tree_scc[i] = -1 if j.locked or not j.dof else scc[sub]
        tree_round[i] = -1 if j.locked or not j.dof else rounds[sub]

    names = [c.name for c in closures] + [g.name for g in targets]
    closure_scc = np.empty(len(names), np.int64)
    closure_round = np.empty(len(names), np.int64)
    for i, c in enumerate(closures):
        inner = linkage.crossed(c)
        sub = sub_of[c.parent] if inner is None else inner
        if inner is not None and linkage.sublinkages[inner].disposition == "driving":
            sub = linkage.sublinkages[inner].parent or inner
        closure_scc[i], closure_round[i] = scc[sub], rounds[sub]
    for i, g in enumerate(targets, len(closures)):
        closure_scc[i], closure_round[i] = scc[sub_of[g.link]], rounds[sub_of[g.link]]

    starts = [links[c.parent] for c in closures] + [links[g.reference] for g in targets]
    ends = [links[c.child] for c in closures] + [links[g.link] for g in targets]
    tree_parent = np.array([links[j.parent] for j in tree], np.int64)
    tree_child = np.array([links[j.child] for j in tree], np.int64)
    above = np.full(len(links), -1, np.int64)
    above[tree_child] = np.arange(len(tree))
    leave = np.concatenate([tree_parent, np.array(starts, np.int64)])
    codes = np.concatenate([np.arange(len(tree)), -1 - np.arange(len(names))])
    order = np.argsort(leave, kind="stable")
    first_edge = np.zeros(len(links) + 1, np.int64)
    np.cumsum(np.bincount(leave, minlength=len(links)), out=first_edge[1:])

    early = []
    if max(rounds.values()) > 0:
        latest = _latest_rounds(above, tree_parent, tree_round)
        for i, name in enumerate(names):
            most = max(latest[starts[i]], latest[ends[i]])
            if most <= closure_round[i]:
                continue
            late = _late_joint(i, starts, ends, above, tree_parent, tree_round, closure_round)
            if late >= 0:
                early.append(name)
                warnings.append(
                    f"{'closure' if i < len(closures) else 'goal'} {name!r} is solved in round "
                    f"{closure_round[i]}, but joint {tree[late].name!r} on its path moves in round "
                    f"{tree_round[late]}; it is solved again in each iteration and may not be met"
                )

    sizes = np.zeros(len(names) + 1, np.int64)
    split = np.zeros(len(names), np.int64)
    found = np.zeros(len(names), np.int64)
    graph = (
        above, tree_parent, tree_child, tree_scc, first_edge, codes[order],
        np.array(ends, np.int64), closure_scc, links[linkage.root],
    )  # fmt: skip
    calls = int(_trace_supports(*graph, True, sizes, split, np.empty(0, np.int64), found))
    total = int(sizes.sum())
    support = np.empty(total, np.int64)
    _trace_supports(*graph, False, sizes, split, support, found)
    # The trace fills in its own order; bring the supports into the order of the closures.
    pointer = np.zeros(len(names) + 1, np.int64)
    np.cumsum(sizes[:-1], out=pointer[1:])
    sorted_support = np.empty(total, np.int64)
    at = 0
    for k in found:
        sorted_support[pointer[k] : pointer[k + 1]] = support[at : at + sizes[k]]
        at += int(sizes[k])
    owner = _find_components(pointer, sorted_support, len(tree))

    down: dict[str, tuple[str, ...]] = {}
    up: dict[str, tuple[str, ...]] = {}
    gathered: dict[int, tuple[list[int], list[Ints]]] = {}
    tree_names = [j.name for j in tree]
    for i, name in enumerate(names):
        s = sorted_support[pointer[i] : pointer[i + 1]]
        chain = [tree_names[t] for t in s]
        down[name], up[name] = tuple(chain[: split[i]]), tuple(chain[split[i] :])
        group = gathered.setdefault(int(owner[i]), ([], []))
        group[0].append(i)
        group[1].append(s)
    components = [
        Component(
            int(closure_round[first]),
            int(closure_scc[first]),
            tuple(names[i] for i in members),
            tuple(tree_names[t] for t in np.unique(np.concatenate(parts))),
        )
        for first, (members, parts) in gathered.items()
    ]
    components.sort(key=lambda c: c.round)  # stable: within a round by the first closure
    return Decomposition(
        tuple(components), scc, rounds, down, up, calls, tuple(warnings), membership, tuple(early)
    )


@njit(cache=True, nogil=True)
def _latest_rounds(above: Ints, tree_parent: Ints, tree_round: Ints) -> Ints:
    """Per link the latest round of the joints between it and the root, -1 for none."""
    n = above.shape[0]
    out = np.full(n, -2, np.int64)
    way = np.empty(n, np.int64)
    for link in range(n):
        depth = 0
        at = link
        while out[at] == -2:
            if above[at] < 0:
                out[at] = -1
                break
            way[depth] = at
            depth += 1
            at = tree_parent[above[at]]
        for k in range(depth - 1, -1, -1):
            t = above[way[k]]
            out[way[k]] = max(out[tree_parent[t]], tree_round[t])
    return out


def _late_joint(
    i: int,
    starts: list[int],
    ends: list[int],
    above: Ints,
    tree_parent: Ints,
    tree_round: Ints,
    closure_round: Ints,
) -> int:
    """The first joint between the two links of closure i that moves after it is solved, or -1."""

    def way(link: int) -> dict[int, None]:
        out: dict[int, None] = {}
        while above[link] >= 0:
            out[int(above[link])] = None
            link = int(tree_parent[above[link]])
        return out

    a, b = way(starts[i]), way(ends[i])
    for t in [*(t for t in b if t not in a), *(t for t in a if t not in b)]:
        if tree_round[t] > closure_round[i]:
            return t
    return -1


def _parent(linkage: Linkage, name: str) -> str:
    return linkage.sublinkages[name].parent or name
