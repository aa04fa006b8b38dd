"""Online changes: thousands of random edits; the decomposition is redone only when needed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from hier_ik import (
    LinkageError,
    Solver,
    apply_edits,
    decompose,
    dump_linkage,
    load_linkage,
    tower,
    validate,
)
from hier_ik.split import split_closures
from kin_core.errors import InvalidInput, LimitExceeded

sys.path.insert(0, str(Path(__file__).parent))
from random_linkages import DISPOSITIONS, TYPES, add_random_closure, random_linkage


def random_edit(l, rng, n):
    """One edit that may or may not be legal; returns a list for apply_edits."""
    links = list(l.links)
    joints = list(l.joints)
    subs = list(l.sublinkages)

    def pick(xs):
        return xs[rng.integers(len(xs))]

    kind = rng.integers(9)
    if kind == 0:
        parent = pick(links)
        return [
            {"op": "add_link", "name": f"n{n}", "sublinkage": l.links[parent].sublinkage},
            {
                "op": "add_joint",
                "name": f"nj{n}",
                "type": pick(TYPES),
                "parent": parent,
                "child": f"n{n}",
                "role": "tree",
            },
        ]
    if kind == 1 and len(links) > 8:
        return [{"op": "remove_link", "name": pick(links)}]
    if kind == 2 and joints:
        return [{"op": pick(("lock", "unlock")), "name": pick(joints)}]
    if kind == 3:
        return [
            {
                "op": "add_joint",
                "name": f"nc{n}",
                "type": pick(TYPES),
                "parent": pick(links),
                "child": pick(links),
                "role": "closure",
            }
        ]
    if kind == 4:
        closures = [j.name for j in l.closure_joints()]
        if len(closures) > 3:
            return [{"op": "remove_joint", "name": pick(closures)}]
    if kind == 5 and len(subs) < 10:
        chosen = sorted({pick(links) for _ in range(2)})
        return [
            {
                "op": "add_sublinkage",
                "name": f"ns{n}",
                "disposition": pick(DISPOSITIONS),
                "parent": l.links[chosen[0]].sublinkage,
                "links": chosen,
            }
        ]
    if kind == 6 and len(subs) > 2:
        return [{"op": "remove_sublinkage", "name": pick(subs)}]
    if kind == 7:
        return [{"op": "add_goal", "name": f"ng{n}", "link": pick(links), "kind": "position"}]
    if kind == 8 and l.goals:
        return [{"op": "remove_goal", "name": pick(list(l.goals))}]
    return (
        [{"op": "set_limits", "name": pick(joints), "lower": -1.0, "upper": 1.0}]
        if (joints and l.joints[joints[0]].closure is False)
        else [{"op": "unlock", "name": pick(joints)}]
    )


@pytest.mark.slow
def test_thousands_of_random_edits_keep_the_decomposition_true():
    rng = np.random.default_rng(10_000)
    l = random_linkage(rng, links=14, subs=4, closures=5, lock=0.1)
    solver = Solver(l)
    made = refused = spared = 0
    for n in range(5_000):
        if n % 400 == 0 and n:
            l = random_linkage(rng, links=14, subs=4, closures=5, lock=0.1)
            solver = Solver(l)
        before = (list(l.links), list(l.joints), list(l.sublinkages), list(l.goals), len(l.journal))
        try:
            apply_edits(l, random_edit(l, rng, n))
        except InvalidInput:
            refused += 1
            assert before == (
                list(l.links),
                list(l.joints),
                list(l.sublinkages),
                list(l.goals),
                len(l.journal),
            )
            continue
        made += 1
        counted = solver.decompositions
        online = solver.decomposition
        spared += solver.decompositions == counted
        fresh = decompose(split_closures(l)[0])
        assert online.components == fresh.components, n
        if solver.decompositions != counted:
            assert online.scc == fresh.scc
            assert online.rounds == fresh.rounds
    assert made > 2000
    assert refused > 500
    assert spared > 250


def test_only_edits_that_matter_decompose_anew():
    s = Solver(tower(2))
    l = s.linkage

    def redone(edit):
        edit()
        before = s.decompositions
        s.refresh()
        return s.decompositions != before

    assert not redone(lambda: l.set_limits("C1.tilt", -0.1, 0.1))
    assert not redone(lambda: l.set_value("C1.tilt", 0.05))
    assert s.values()["C1.tilt"][0] == 0.05
    assert not redone(lambda: s.set_goal("drag", (0.1, 0, 1.5)))
    assert not redone(
        lambda: apply_edits(
            l,
            [
                {"op": "add_link", "name": "x"},
                {
                    "op": "add_joint",
                    "name": "x",
                    "type": "revolute",
                    "parent": "P2",
                    "child": "x",
                    "role": "tree",
                },
            ],
        )
    )
    assert not redone(lambda: apply_edits(l, [{"op": "lock", "name": "x"}]))  # supports nothing
    assert redone(lambda: apply_edits(l, [{"op": "lock", "name": "C2.tilt"}]))
    assert redone(lambda: apply_edits(l, [{"op": "add_goal", "name": "g", "link": "C1.c2"}]))
    assert redone(lambda: apply_edits(l, [{"op": "remove_sublinkage", "name": "A1L"}]))
    assert not redone(lambda: apply_edits(l, [{"op": "remove_link", "name": "x"}]))


def test_posture_survives_edits():
    s = Solver(tower(3))
    s.set_goal("drag", (0.3, 0, 2.2))
    s.solve()
    before = s.values()
    apply_edits(s.linkage, [{"op": "lock", "name": "C2.tilt"}])
    after = s.values()
    assert all(np.array_equal(before[n], after[n]) for n in before)
    s.set_goal("drag", (0.1, 0, 2.3))
    assert s.solve().success
    assert s.values()["C2.tilt"][0] == before["C2.tilt"][0]


def test_edits_are_all_or_none():
    l = tower(1)
    text = dump_linkage(l)
    with pytest.raises(LinkageError, match="second root"):
        apply_edits(l, [{"op": "remove_goal", "name": "drag"}, {"op": "add_link", "name": "loose"}])
    with pytest.raises(InvalidInput, match="op"):
        apply_edits(l, [{"op": "remove_goal", "name": "drag"}, {"op": "nonsense"}])
    with pytest.raises(InvalidInput, match="value"):
        apply_edits(l, [{"op": "set_value", "name": "C1.tilt"}])
    assert dump_linkage(l) == text


def test_a_found_closure_takes_over_when_a_tree_joint_goes():
    """Roles that were found may be found anew; the posture stays where it was."""
    l = load_linkage("""
name: ring
links: [g, a, b, c]
joints:
  - {name: "1", type: revolute, parent: g, child: a}
  - {name: "2", type: revolute, parent: a, child: b, xyz: [1, 0, 0]}
  - {name: "3", type: revolute, parent: b, child: c, xyz: [1, 0, 0]}
  - {name: "4", type: revolute, parent: c, child: g, xyz: [1, 0, 0], child_xyz: [1.5, 0, 0]}
""")
    s = Solver(l)
    s.set_values({n: [v] for n, v in zip(l.values, (0.7, 0.9, 0.8), strict=True)})
    assert s.solve(tolerance=1e-12).success
    before = s.poses()
    s.store()
    gone = l.tree_joints()[1].name
    apply_edits(l, [{"op": "remove_joint", "name": gone}])
    validate(l)
    assert not l.closure_joints()
    after = s.poses()
    for name in before:
        np.testing.assert_allclose(after[name], before[name], atol=1e-9)


def test_closures_added_while_running_are_closed():
    rng = np.random.default_rng(5)
    l = random_linkage(rng, links=10, subs=0, closures=0, types=("revolute", "universal"), lock=0)
    s = Solver(l)
    assert add_random_closure(l, rng, "late", ("point_plane",))
    s.solve()
    assert s.decompositions == 2


#: Values of the wrong kind for any key.
ODD = (
    None, True, -1, 0, 1e300, float("nan"), float("inf"), "", "4~end", "x" * 300, "a\nb", [], {},
    [1, 2], [None] * 3, {"a": 1}, [float("inf")] * 3, [1e7, 0, 0], [[1]], 10**400, b"x",
)  # fmt: skip
KEYS = (
    "name", "type", "parent", "child", "role", "xyz", "rpy", "quaternion", "axis", "lower", "upper",
    "velocity", "value", "rest", "locked", "priority", "weight", "link", "kind", "reference",
    "rows", "links", "sublinkage", "disposition", "virtual", "op",
)  # fmt: skip


def spoiled(edits, rng):
    """The edits with one value of the wrong kind, one key too many, or in a list too long."""
    out = [dict(e) for e in edits]
    victim = out[rng.integers(len(out))]
    key = KEYS[rng.integers(len(KEYS))] if rng.random() < 0.5 else list(victim)[-1]
    victim[key] = ODD[rng.integers(len(ODD))]
    return out


def whole_state(solver):
    """Everything that an edit could change, as text and bytes."""
    l = solver.linkage
    return (
        dump_linkage(l),
        {n: v.tobytes() for n, v in l.values.items()},
        {n: list(v) for n, v in l.at_link.items()},
        {n: (j.closure, j.found) for n, j in l.joints.items()},
        list(l.journal),
        solver.q.tobytes(),
        solver.decompositions,
        solver.decomposition,
        {n: T.tobytes() for n, T in solver.poses().items()},
        solver.residuals(),
    )


@pytest.mark.campaign
def test_a_refused_edit_changes_nothing(campaign, record_property):
    """Random sequences, a third of them spoiled, with a bound on links that many of them pass."""
    rng = np.random.default_rng(9)
    refused = made = over = 0
    for n in range(campaign(300, 600)):
        if n % 60 == 0:
            l = random_linkage(rng, links=8, subs=2, closures=3, lock=0.1)
            solver = Solver(l)
        edits = [e for i in range(int(rng.integers(1, 4))) for e in random_edit(l, rng, 10 * n + i)]
        if rng.random() < 0.35:
            edits = spoiled(edits, rng)
        before = whole_state(solver)
        try:
            solver.edit(edits, max_links=10)
        except (InvalidInput, LimitExceeded) as error:
            refused += 1
            over += isinstance(error, LimitExceeded)
            assert whole_state(solver) == before, (n, edits, error)
        else:
            made += 1
            fresh = Solver(l.copy())
            assert fresh.decomposition.components == solver.decomposition.components
    assert min(refused, made) > campaign(40, 100), (refused, made)
    assert over > campaign(3, 10), over
    record_property("cases", refused + made)


def test_moving_links_moves_all_or_none():
    l = random_linkage(np.random.default_rng(3), links=8, subs=2, closures=0)
    before = dict(l.links)
    with pytest.raises(InvalidInput):
        l.move_links([*list(l.links)[1:3], "nowhere"], l.top)
    assert l.links == before
