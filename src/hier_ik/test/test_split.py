"""Closures with limits and locked closures, and names that cannot collide."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from hier_ik import LinkageError, Solver, dump_linkage, load_linkage
from hier_ik.split import inner_name, outer_name, split_closures
from kin_core.errors import InvalidInput

sys.path.insert(0, str(Path(__file__).parent))
from test_solver import parallelogram


def limited() -> object:
    l = parallelogram()
    l.set_limits("4", -3.0, 3.0)
    return l


@pytest.mark.parametrize("name", ["4~end", "4end", "~end", "4~end~end", "4" + "~end" * 60])
def test_a_goal_may_have_any_printable_name(name):
    s = Solver(limited())
    s.linkage.add_goal(name, "c", "position", target=(0.6, 0.3, 0), offset=(0.5, 0, 0), priority=4)
    result = s.solve()
    assert {r.name for r in result.residuals} == {"4", "pull", name}
    assert [r.goal for r in result.residuals if r.name == name] == [True]
    assert name in result.unmet


def test_names_that_end_like_inner_ones_are_reported_as_they_are():
    l = parallelogram()
    l.add_link("twin")
    l.add_joint("5~end", "revolute", "g", "twin", closure=False)
    l.add_joint("4~end", "spherical", "twin", "b", closure=True)
    l.set_limits("4~end", -3.0, 3.0)
    l.set_limits("4", -3.0, 3.0)
    assert {r.name for r in Solver(l).residuals()} == {"4", "4~end", "pull"}


def test_a_name_of_the_longest_kind_can_have_limits():
    l = parallelogram()
    l.add_joint("n" * 256, "revolute", "c", "b", xyz=(1, 0, 0), child_origin=(0.5, 0, 0),
                closure=True, lower=-3.0, upper=3.0)  # fmt: skip
    assert "n" * 256 in {r.name for r in Solver(l).solve().residuals}


def test_no_name_from_outside_is_an_inner_name():
    l = parallelogram()
    inner = inner_name("4")
    assert outer_name(inner) == "4"
    for add in (
        lambda: l.add_link(inner),
        lambda: l.add_joint(inner, "revolute", "g", "c"),
        lambda: l.add_goal(inner, "c"),
        lambda: l.add_sublinkage(inner, "driven"),
    ):
        with pytest.raises(InvalidInput, match="printable"):
            add()


def test_a_joint_may_not_be_called_like_a_coordinate_of_another():
    l = parallelogram()
    l.add_link("x")
    l.add_joint("ball", "spherical", "c", "x", closure=False)
    l.add_link("y")
    l.add_joint("ball/4", "revolute", "c", "y", closure=False)
    Solver(l)
    l.add_link("z")
    l.add_joint("ball/2", "revolute", "c", "z", closure=False)
    with pytest.raises(LinkageError, match="coordinate of joint 'ball'"):
        Solver(l)


def test_a_locked_closure_holds_its_angle():
    """The crossing joint of a parallelogram, locked: the whole of it stands still."""
    l = parallelogram()
    free = Solver(l.copy())
    angle = free.values()["4"].copy()
    moved = free.solve().values["4"]
    assert abs(moved[0] - angle[0]) > 0.1
    l.set_locked("4", True)
    held = Solver(l).solve()
    assert abs(held.values["4"][0] - angle[0]) < 1e-9
    assert held.closure_residual < 1e-9
    assert held.unmet == ("pull",)
    l.set_locked("4", False)
    assert abs(Solver(l).solve().values["4"][0] - angle[0]) > 0.1


def test_a_locked_closure_beyond_its_limits_is_reported():
    l = parallelogram()
    angle = float(Solver(l.copy()).values()["4"][0])
    l.set_limits("4", angle + 0.1, angle + 1.0)
    l.set_locked("4", True)
    result = Solver(l).solve()
    assert result.outside_limits == ("4",)
    assert abs(result.values["4"][0] - angle) < 1e-9


def test_what_is_split_reads_back_as_it_was():
    l = limited()
    text = dump_linkage(l)
    work, held = split_closures(l)
    assert len(work.links) == len(l.links) + 1
    assert held == {}
    assert dump_linkage(l) == text == dump_linkage(load_linkage(text))
    np.testing.assert_array_equal(l.joints["4"].lower, [-3.0])
