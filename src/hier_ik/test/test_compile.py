"""The tables of a linkage: rows, columns, and whose poses each round brings up to date."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from hier_ik import Solver, decompose, tower
from hier_ik.compile import closure_mask, compile_linkage
from hier_ik.kinematics import all_kinematics, kinematics
from hier_ik.tables import FALLBACK, PRIORITIES, SINGLE

sys.path.insert(0, str(Path(__file__).parent))
from random_linkages import random_linkage


def linkages():
    yield tower(3)
    for seed in range(25):
        rng = np.random.default_rng(seed)
        linkage = random_linkage(rng, 12, int(rng.integers(0, 5)), 5)
        linkage.add_goal("goal", list(linkage.links)[-1], "position", target=rng.normal(size=3))
        yield linkage


def test_rows_are_what_closures_hold_and_columns_what_moves_them():
    for linkage in linkages():
        d = decompose(linkage)
        t = compile_linkage(linkage, d).tables
        for c, record in zip(d.components, t.components, strict=True):
            freedoms = sum(linkage.joints[j].dof for j in c.joints)
            assert record["columns"] == freedoms
            held = [linkage.joints[n].kind.rows for n in c.closures if n in linkage.joints]
            held += [sum(linkage.goals[n].rows) for n in c.closures if n in linkage.goals]
            assert record["rows"] == sum(held)
            mine = t.index[record["freedom_begin"] : record["freedom_end"]]
            assert len(set(mine.tolist())) == freedoms
        for closure in t.closures:
            assert int(closure["mask"]).bit_count() == closure["rows"]


def test_every_round_reads_poses_that_are_up_to_date():
    """The bodies listed before each round are enough, whatever the rounds before have moved."""
    for linkage in linkages():
        t = compile_linkage(linkage, decompose(linkage)).tables
        rng = np.random.default_rng(0)
        all_kinematics(t.bodies, t.freedoms)
        for _ in range(2):  # the second pass begins with what the first one left stale
            for r in t.rounds:
                kinematics(t.bodies, t.freedoms, t.index, r["fk_begin"], r["fk_end"])
                fresh = t.bodies.copy()
                all_kinematics(fresh, t.freedoms.copy())
                for c in t.components[r["component_begin"] : r["component_end"]]:
                    closures = t.closures[c["closure_begin"] : c["closure_end"]]
                    for body in {*closures["body_a"].tolist(), *closures["body_b"].tolist()}:
                        assert t.bodies["pose"][body] == fresh["pose"][body]
                for c in t.components[r["component_begin"] : r["component_end"]]:
                    mine = t.index[c["freedom_begin"] : c["freedom_end"]]
                    t.freedoms["q"][mine] += rng.normal(scale=0.1, size=len(mine))


def test_blocks_of_the_first_level_share_no_joint():
    t = Solver(tower(4), "flat_structured").tables
    (c,) = t.components
    blocks = t.parts[c["block_begin"] : c["block_end"]]
    assert c["kind"] == PRIORITIES
    assert len(blocks) >= 4
    ends = sorted(zip(blocks["column_begin"].tolist(), blocks["column_end"].tolist(), strict=True))
    assert ends[0][0] == 0
    assert ends[-1][1] == c["columns"]
    assert all(a[1] == b[0] for a, b in pairwise(ends))


@pytest.mark.parametrize(("kind", "mask"), [("pose", 0b111111), ("axis", 0b011000), ("line", 3)])
def test_goals_hold_their_rows(kind, mask):
    linkage = tower(1, goal=False)
    assert closure_mask(linkage.add_goal("g", "P1", kind))[1] == mask


def test_components_are_solved_in_the_kernel_unless_they_are_asked_out():
    linkage = tower(2)
    d = decompose(linkage)
    inside = compile_linkage(linkage, d).tables.components["kind"]
    outside = compile_linkage(linkage, d, fallback=True).tables.components["kind"]
    assert set(inside.tolist()) <= {SINGLE, PRIORITIES}
    assert set(outside.tolist()) == {FALLBACK}
