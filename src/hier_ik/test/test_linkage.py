"""Linkages: what edits change, what copies keep, and where links are."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from hier_ik import Linkage, LinkageError, dump_linkage, tower
from kin_core.errors import InvalidInput

sys.path.insert(0, str(Path(__file__).parent))
from oracle import Oracle
from random_linkages import random_linkage


@pytest.mark.parametrize("seed", range(8))
def test_poses_are_products_along_the_tree_for_all_links_or_some(seed):
    rng = np.random.default_rng(seed)
    linkage = random_linkage(rng)
    for name, value in linkage.values.items():
        linkage.values[name] = rng.normal(size=len(value))
    expected = Oracle(linkage).poses(linkage.values)
    poses = linkage.link_poses()
    assert set(poses) == set(linkage.links)
    some = list(linkage.links)[::3]
    few = linkage.link_poses(some)
    assert list(few) == some
    for name, T in expected.items():
        np.testing.assert_allclose(poses[name], T, atol=1e-12)
    for name, T in few.items():
        np.testing.assert_allclose(T, poses[name], atol=1e-12)


def test_a_copy_keeps_what_it_was_whatever_becomes_of_the_other():
    linkage = tower(2)
    text = dump_linkage(linkage)
    copy = linkage.copy()
    linkage.remove_link("P2")
    linkage.set_limits("C1.tilt", -0.1, 0.1)
    linkage.values["C1.tilt"][:] = 0.05
    linkage.set_locked("A1L.R1", True)
    assert dump_linkage(copy) == text
    copy.adopt(linkage)
    assert dump_linkage(copy) == dump_linkage(linkage)


def test_a_link_goes_with_its_joints_and_goals_alone():
    linkage = tower(2)
    gone = {n for n, j in linkage.joints.items() if "P2" in (j.parent, j.child)}
    kept = set(linkage.joints) - gone
    linkage.remove_link("P2")
    assert set(linkage.joints) == kept
    assert "drag" not in linkage.goals
    assert set(linkage.values) == {j.name for j in linkage.tree_joints()}
    with pytest.raises(LinkageError, match="root"):
        linkage.remove_link("P0")


def test_a_boundary_that_goes_leaves_its_inside_to_the_parent():
    linkage = tower(1)
    inside = [l.name for l in linkage.links.values() if l.sublinkage == "B1"]
    linkage.remove_sublinkage("B1")
    assert all(linkage.links[name].sublinkage == "C1" for name in inside)
    assert linkage.sublinkages["I1L"].parent == "C1"
    with pytest.raises(LinkageError, match="top level"):
        linkage.remove_sublinkage(linkage.top)


def test_flattening_keeps_every_level():
    linkage = tower(2)
    flat = linkage.flattened()
    assert list(flat.sublinkages) == [linkage.top]
    for c in linkage.closure_joints():
        assert flat.level(flat.joints[c.name]) == linkage.level(c)


def test_names_are_unique_printable_and_short():
    linkage = Linkage()
    linkage.add_link("a")
    linkage.add_link("b")
    linkage.add_joint("j", "revolute", "a", "b", closure=False)
    linkage.add_goal("g", "b")
    for again in (
        lambda: linkage.add_link("a"),
        lambda: linkage.add_sublinkage(linkage.top, "driven"),
        lambda: linkage.add_joint("g", "revolute", "a", "b"),
        lambda: linkage.add_goal("j", "b"),
    ):
        with pytest.raises(LinkageError, match="twice"):
            again()
    for bad in ("", "x" * 257, "a\nb", 5, None):
        with pytest.raises(InvalidInput, match="printable name"):
            linkage.add_link(bad)


def test_tree_order_has_parents_first_and_every_tree_joint_once():
    for seed in range(5):
        linkage = random_linkage(np.random.default_rng(seed))
        reached = {linkage.root}
        for j in linkage.tree_order():
            assert j.parent in reached
            assert j.child not in reached
            reached.add(j.child)
        assert reached == set(linkage.links)
