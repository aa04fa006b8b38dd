"""DECOMPOSE against networkx, the paper's own claims, and the counterexamples to its print."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from hier_ik import Linkage, LinkageError, decompose, tower, validate
from hier_ik.decompose import assign_rounds

sys.path.insert(0, str(Path(__file__).parent))
from random_linkages import random_linkage


def oracle(linkage: Linkage, membership: str = "paper"):
    """Rounds by networkx; components as biconnected components after contraction."""
    subs = linkage.sublinkages
    meta = nx.DiGraph()
    meta.add_nodes_from(subs)
    for s in subs.values():
        if s.parent is None:
            continue
        if s.disposition in ("driven", "simultaneous"):
            meta.add_edge(s.parent, s.name)
        if s.disposition in ("driving", "simultaneous"):
            meta.add_edge(s.name, s.parent)
    condensed = nx.condensation(meta)
    scc = condensed.graph["mapping"]
    rounds = {}
    for v in nx.topological_sort(condensed):
        rounds[v] = max((rounds[u] + 1 for u in condensed.predecessors(v)), default=0)

    def inner_of(j):
        a, b = linkage.links[j.parent].sublinkage, linkage.links[j.child].sublinkage
        if a == b:
            return a, False
        return (b if subs[b].parent == a else a), True

    expected = set()
    closures = [(j, *inner_of(j)) for j in linkage.closure_joints()]
    effective = {}
    for j, inner, crossing in closures:
        home = subs[inner].parent if crossing and subs[inner].disposition == "driving" else inner
        effective[j.name] = scc[home]
    for g in linkage.goals.values():
        effective[g.name] = scc[linkage.links[g.link].sublinkage]
    ends = {j.name: (j.parent, j.child) for j, _, _ in closures}
    ends.update({g.name: (g.reference, g.link) for g in linkage.goals.values()})
    for component in set(effective.values()):
        merged = nx.utils.UnionFind(linkage.links)
        free = []
        for j in linkage.tree_joints():
            inner, crossing = inner_of(j)
            home = inner
            if membership == "mirror" and crossing and subs[inner].disposition == "driving":
                home = subs[inner].parent
            if j.locked or j.dof == 0 or scc[home] != component:
                merged.union(j.parent, j.child)
            else:
                free.append(j.name)
                ends[j.name] = (j.parent, j.child)
        graph = nx.Graph()
        mine = [n for n, c in effective.items() if c == component]
        for name in free + mine:
            a, b = (merged[x] for x in ends[name])
            if a == b:
                if name in mine:
                    expected.add((rounds[component], (name,), ()))
                continue
            # a node on each edge makes parallel edges distinct
            graph.add_edge(a, ("edge", name))
            graph.add_edge(("edge", name), b)
        for nodes in nx.biconnected_components(graph):
            names = {n[1] for n in nodes if isinstance(n, tuple)}
            loops = sorted(n for n in names if n in mine)
            if loops:
                expected.add((rounds[component], tuple(loops), tuple(sorted(names - set(loops)))))
    return {s: (rounds[scc[s]]) for s in subs}, scc, expected


def found(decomposition):
    return {
        (c.round, tuple(sorted(c.closures)), tuple(sorted(c.joints)))
        for c in decomposition.components
    }


@pytest.mark.slow
@pytest.mark.campaign
@pytest.mark.parametrize("membership", ["paper", "mirror"])
def test_random_linkages_agree_with_networkx(membership, campaign, record_property):
    rng = np.random.default_rng(4000 if membership == "paper" else 4001)
    count = campaign(800, 2000) if membership == "paper" else 400
    record_property("cases", count)
    for n in range(count):
        linkage = random_linkage(
            rng,
            links=int(rng.integers(2, 20)),
            subs=int(rng.integers(0, 7)),
            closures=int(rng.integers(0, 10)),
        )
        if rng.random() < 0.3:
            linkage.add_goal("g", list(linkage.links)[-1])
        validate(linkage)
        result = decompose(linkage, membership=membership)
        rounds, scc, expected = oracle(linkage, membership)
        assert result.rounds == rounds, n
        assert len(set(result.scc.values())) == len(set(scc.values()))
        assert {
            (result.scc[a] == result.scc[b]) == (scc[a] == scc[b]) for a in scc for b in scc
        } == {True}
        assert found(result) == expected, n
        order = [c.round for c in result.components]
        assert order == sorted(order)


def test_the_printed_algorithm_4_would_break_the_order():
    """L0 <- D1, L0 <- D2 <- E: the first visit gives L0 the round 1, the same as D2."""
    linkage = Linkage()
    linkage.add_link("g")
    for name, parent in (("D1", None), ("D2", None), ("E", "D2")):
        linkage.add_sublinkage(name, "driving", parent=parent)
        linkage.add_link(name.lower(), name)
    linkage.add_joint("j1", "revolute", "g", "d1", closure=False)
    linkage.add_joint("j2", "revolute", "g", "d2", closure=False)
    linkage.add_joint("j3", "revolute", "d2", "e", closure=False)
    _, rounds = assign_rounds(linkage)
    assert rounds == {"L0": 2, "D1": 0, "D2": 1, "E": 0}


def test_rounds_follow_the_longest_path_through_simultaneous_parts():
    linkage = Linkage()
    linkage.add_link("g")
    for name, disposition, parent in (
        ("S", "simultaneous", None),
        ("D", "driving", "S"),
        ("V", "driven", None),
        ("W", "driven", "V"),
        ("X", "driving", "W"),
    ):
        linkage.add_sublinkage(name, disposition, parent=parent)
    _, rounds = assign_rounds(linkage)
    assert rounds == {"L0": 1, "S": 1, "D": 0, "V": 2, "W": 3, "X": 0}


@pytest.mark.parametrize(
    ("blocks", "sccs", "rounds", "sizes"),
    [
        (1, 4, {0: 1, 1: 1, 2: 2}, {(1, 2): 1, (2, 6): 1, (2, 3): 2}),
        (2, 7, {0: 1, 1: 2, 2: 4}, {(1, 4): 1, (2, 6): 2, (2, 3): 4}),
        (15, 46, {0: 1, 1: 15, 2: 30}, {(1, 30): 1, (2, 6): 15, (2, 3): 30}),
    ],
)
def test_tower_counts(blocks, sccs, rounds, sizes):
    """Counts of the tower with two levels of abstraction, and of its flattening."""
    t = tower(blocks)
    validate(t)
    d = decompose(t)

    def count(x):
        return dict(Counter((len(c.closures), len(c.joints)) for c in x.components))

    assert d.scc_count == sccs
    assert len(d.components) == sccs
    assert d.rounds_of_components() == rounds
    assert count(d) == sizes
    assert len(decompose(t, goals=False).components) == sccs - 1
    flat = t.flattened()
    assert count(decompose(flat)) == {(6 * blocks + 1, 14 * blocks): 1}
    assert count(decompose(flat, goals=False)) == {(6, 14): blocks}
    real = [j for j in t.joints.values() if not j.virtual]
    virtual = [j for j in t.joints.values() if j.virtual and j.type != "fixed"]
    assert (len(real), len(virtual)) == (8 * blocks, 10 * blocks)


def test_lockedwrt_calls_are_tree_joints_times_closures_on_a_chain():
    chain = Linkage()
    chain.add_link("l0")
    for i in range(1, 51):
        chain.add_link(f"l{i}")
        chain.add_joint(f"j{i}", "revolute", f"l{i - 1}", f"l{i}", closure=False)
    for i in range(7):
        chain.add_joint(f"c{i}", "fixed", "l0", "l50", closure=True)
    assert decompose(chain).locked_wrt_calls == 50 * 7


def test_deep_chains_need_no_recursion():
    chain = Linkage()
    chain.add_link("l0")
    for i in range(1, 6001):
        chain.add_link(f"l{i}")
        chain.add_joint(f"j{i}", "revolute", f"l{i - 1}", f"l{i}", closure=False)
    chain.add_joint("c", "fixed", "l6000", "l0", closure=True)  # the child is an ancestor
    validate(chain)
    d = decompose(chain)
    assert len(d.components[0].joints) == 6000
    assert d.down["c"] == ()
    assert len(d.up["c"]) == 6000


def test_order_is_deterministic_and_the_report_readable():
    a, b = decompose(tower(3)), decompose(tower(3))
    assert a == b
    report = a.report()
    assert "10 components in 3 rounds" in report
    assert "round 2" in report
    assert "A1L.R4" in report


def test_crossing_tree_joints_of_driving_parts_warn_and_mirror():
    linkage = Linkage()
    linkage.add_link("g")
    linkage.add_sublinkage("D", "driving")
    linkage.add_link("d", "D")
    linkage.add_joint("t", "revolute", "g", "d", closure=False)
    linkage.add_joint("c", "revolute", "g", "d", closure=True)
    paper, mirror = decompose(linkage), decompose(linkage, membership="mirror")
    assert paper.components[0].joints == ()
    assert "'t'" in paper.warnings[0]
    assert mirror.components[0].joints == ("t",)
    assert not mirror.warnings
    with pytest.raises(Exception, match="membership"):
        decompose(linkage, membership="other")


def test_a_joint_across_two_boundaries_is_named():
    linkage = Linkage()
    linkage.add_link("g")
    for s in ("A", "B"):
        linkage.add_sublinkage(s, "driven")
        linkage.add_link(s.lower(), s)
        linkage.add_joint(f"t{s}", "revolute", "g", s.lower(), closure=False)
    linkage.add_joint("bad", "revolute", "a", "b", closure=True)
    with pytest.raises(LinkageError, match=r"'bad'.*'A' and 'B'"):
        validate(linkage)
