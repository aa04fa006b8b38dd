"""The rules of a hierarchy: each is broken in turn, and refused by its name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hier_ik import Linkage, LinkageError, Sublinkage, validate


def fair() -> Linkage:
    """Ground, an arm with a driven tool, and a closure."""
    l = Linkage()
    l.add_link("ground")
    l.add_link("arm")
    l.add_sublinkage("tool", "driven")
    l.add_link("grip", "tool")
    l.add_link("jaw", "tool")
    l.add_joint("shoulder", "revolute", "ground", "arm", closure=False)
    l.add_joint("wrist", "revolute", "arm", "grip", closure=False)
    l.add_joint("hinge", "universal", "grip", "jaw", closure=False)
    l.add_joint("loop", "spherical", "arm", "jaw", closure=True)
    return l


def no_links(l):
    l.links.clear()


def root_inside(l):
    l.root = "grip"


def without_role(l):
    l.joints["loop"] = replace(l.joints["loop"], closure=None)


def not_finite(l):
    l.joints["wrist"] = replace(l.joints["wrist"], origin=np.full((4, 4), np.nan))


def limited_outside(l):
    l.set_limits("loop", -1.0, 1.0)


def named_like_a_coordinate(l):
    l.add_link("spare")
    l.add_joint("hinge/2", "revolute", "ground", "spare", closure=False)


def two_tops(l):
    l.sublinkages["other"] = Sublinkage("other", None, "driven")


def nested_in_itself(l):
    l.sublinkages["tool"] = Sublinkage("tool", "tool", "driven")


def unknown_parent(l):
    l.sublinkages["tool"] = Sublinkage("tool", "nobody", "driven")


def empty_sublinkage(l):
    l.add_sublinkage("empty", "driven")


def root_as_child(l):
    l.add_joint("back", "revolute", "arm", "ground", closure=False)


def two_parents(l):
    l.add_joint("second", "revolute", "ground", "arm", closure=False)


def second_root(l):
    l.add_link("alone")


def a_ring(l):
    l.add_link("x")
    l.add_link("y")
    l.add_joint("xy", "revolute", "x", "y", closure=False)
    l.add_joint("yx", "revolute", "y", "x", closure=False)


def entered_twice(l):
    l.add_link("extra", "tool")
    l.add_joint("second", "revolute", "ground", "extra", closure=False)


def moves_its_parent(l):
    l.add_link("outside")
    l.add_joint("out", "revolute", "jaw", "outside", closure=False)


def without_entry(l):
    l.joints["wrist"] = replace(l.joints["wrist"], parent="jaw", child="grip")
    l.joints["hinge"] = replace(l.joints["hinge"], parent="ground")
    l.links["jaw"] = replace(l.links["jaw"], sublinkage="L0")
    l.sublinkages["tool"] = Sublinkage("tool", "L0", "simultaneous")
    l.add_sublinkage("more", "driven", links=["arm"])
    l.joints["shoulder"] = replace(l.joints["shoulder"], parent="grip", child="arm")


@pytest.mark.parametrize(
    ("spoil", "rule", "element"),
    [
        (no_links, "one root", "linkage"),
        (root_inside, "one root", "grip"),
        (without_role, "spanning tree", "loop"),
        (not_finite, "finite geometry", "wrist"),
        (limited_outside, "limits of closures", "loop"),
        (named_like_a_coordinate, "unique names", "hinge/2"),
        (two_tops, "proper nesting", "sublinkages"),
        (nested_in_itself, "proper nesting", "tool"),
        (unknown_parent, "proper nesting", "tool"),
        (empty_sublinkage, "proper nesting", "empty"),
        (root_as_child, "spanning tree", "back"),
        (two_parents, "spanning tree", "second"),
        (second_root, "one root", "alone"),
        (a_ring, "spanning tree", "yx"),
        (entered_twice, "one outcrossing tree joint", "second"),
        (moves_its_parent, "driven sublinkages move nothing outside", "out"),
        (without_entry, "one boundary", "shoulder"),
    ],
)
def test_a_broken_rule_is_named_with_its_element(spoil, rule, element):
    linkage = fair()
    validate(linkage)
    spoil(linkage)
    with pytest.raises(LinkageError) as refused:
        validate(linkage)
    assert refused.value.rule == rule
    assert element in refused.value.element
