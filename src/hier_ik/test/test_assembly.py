"""Assembly: open files are closed near where they are, or the loop that cannot be is named."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hier_ik import Linkage, LoopCloser, all_assemblies, assemble, frame
from kin_core.errors import InvalidInput

sys.path.insert(0, str(Path(__file__).parent))
from mechanisms import stewart
from oracle import Oracle
from small_mechanisms import five_bar, four_bar


def four_bars(ground, crank, coupler, rocker, **values):
    linkage = Linkage("four bars")
    for name in ("g", "a", "b", "c"):
        linkage.add_link(name)
    for name, parent, child, x in (
        ("1", "g", "a", 0.0),
        ("2", "a", "b", crank),
        ("3", "b", "c", coupler),
    ):
        value = values.get(name, 0.0)
        linkage.add_joint(
            name, "revolute", parent, child, xyz=(x, 0, 0), closure=False, value=value
        )  # fmt: skip
    linkage.add_joint(
        "4", "revolute", "c", "g", xyz=(rocker, 0, 0), child_origin=frame((ground, 0, 0)),
        closure=True,
    )  # fmt: skip
    return linkage


def left(linkage, values):
    return max(Oracle(linkage).residuals({n: values[n] for n in linkage.values}).values())


@pytest.mark.parametrize("make", [four_bar, five_bar])
def test_loops_that_are_open_at_zero_are_closed_near_it(make):
    """Every joint at zero is far from closed, and often singular; an independent oracle checks."""
    for seed in range(10):
        linkage = make(np.random.default_rng(seed))
        for name in linkage.goals.copy():
            linkage.remove_goal(name)
        for name, q in linkage.values.items():
            linkage.values[name] = np.zeros_like(q)
        before = {n: q.copy() for n, q in linkage.values.items()}
        found = assemble(linkage)
        assert found.closed, found.message
        assert left(linkage, found.values) < 1e-9
        assert found.moved == max(
            abs(found.values[n] - q).max(initial=0.0) for n, q in before.items()
        )
        for n, q in before.items():
            np.testing.assert_array_equal(linkage.values[n], q)  # stays as it is


def test_a_platform_is_assembled_and_one_that_is_closed_stays():
    linkage = stewart()[0]
    for name in list(linkage.goals):
        linkage.remove_goal(name)
    closed = assemble(linkage)
    linkage.values.update({n: closed.values[n] for n in linkage.values})
    assert assemble(linkage).moved < 1e-8
    rng = np.random.default_rng(2)
    for j in linkage.tree_joints():
        if j.type != "prismatic":
            linkage.values[j.name] = linkage.values[j.name] + rng.normal(scale=0.4, size=j.dof)
    found = assemble(linkage)
    assert found.closed, found.message
    assert left(linkage, found.values) < 1e-9


def test_the_loop_that_cannot_be_closed_is_named_with_its_gap():
    """A ground of 3 m and bars of 2 m in all: a metre is missing, however they are turned."""
    linkage = four_bars(3.0, 1.0, 0.5, 0.5, **{"1": 0.3, "2": 0.4})
    second = linkage.copy()
    second.add_link("d")
    second.add_joint("5", "revolute", "g", "d", closure=False, value=0.4)
    second.add_joint("6", "prismatic", "d", "g", closure=True)  # closes at 5 = 0
    for one in (linkage, second):
        found = assemble(one)
        assert list(found.open) == ["4"]
        assert found.open["4"] == pytest.approx(1.0, abs=1e-6)
        assert "the loop '4' cannot be closed: 1 m or rad are left" in found.message
    assert assemble(second).values["5"] == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(InvalidInput, match="'4': the loop cannot be closed: 1 m"):
        LoopCloser(linkage, ["1"])
    with pytest.raises(InvalidInput, match="hold"):
        assemble(linkage, ["nobody"])


def test_a_closer_begins_near_actuators_that_cannot_stay():
    """With the crank where it is the others do not reach; a little on they do."""
    linkage = four_bars(2.0, 1.0, 0.9, 0.9, **{"1": 2.0, "2": -1.0, "3": -1.0})
    assert not assemble(linkage, ["1"], starts=5).closed
    closer = LoopCloser(linkage, ["1"])
    assert closer.assembly.closed
    assert closer.assembly.moved > 0.1
    assert left(linkage, closer.values()) < 1e-9


def assemblies_by_hand(linkage, crank):
    """Both, or none: the two triangles of coupler and rocker."""
    a, b, c, d = 1.0, 0.9, 0.8, 1.2
    diagonal = np.array([d, 0.0]) - a * np.array([np.cos(crank), np.sin(crank)])
    length = np.linalg.norm(diagonal)
    if not abs(b - c) < length < b + c:
        return []
    bend = np.arccos((length**2 - b * b - c * c) / (2 * b * c))
    out = []
    for q3 in (bend, -bend):
        way = np.arctan2(diagonal[1], diagonal[0]) - np.arctan2(c * np.sin(q3), b + c * np.cos(q3))
        out.append((np.angle(np.exp(1j * (way - crank))), q3))
    return sorted(out)


def test_all_assemblies_of_small_loops_with_proof():
    rng = np.random.default_rng(5)
    seen = set()
    for crank in rng.uniform(-np.pi, np.pi, 6):
        linkage = four_bars(1.2, 1.0, 0.9, 0.8, **{"1": crank})
        linkage.set_actuated(["1"])
        (found,) = all_assemblies(linkage)
        assert found.closures == ("4",)
        assert found.complete, found.message
        expected = assemblies_by_hand(linkage, crank)
        seen.add(len(expected))
        got = sorted((float(p["2"][0]), float(p["3"][0])) for p in found.postures)
        np.testing.assert_allclose(
            np.reshape(got, (-1, 2)), np.reshape(expected, (-1, 2)), atol=1e-7
        )
        for posture in found.postures:
            assert left(linkage, {**linkage.values, **posture}) < 1e-9
    assert seen == {0, 2}


def test_loops_that_are_too_large_or_move_are_not_searched():
    linkage = stewart()[0]
    (found,) = all_assemblies(linkage, [f"P{i}" for i in range(6)])
    assert not found.complete
    assert "not searched" in found.message
    free = four_bars(1.2, 1.0, 0.9, 0.8)
    (found,) = all_assemblies(free, [])
    assert not found.complete
    assert "the loops move" in found.message
    ball = free.copy()
    ball.joints["4"] = replace(ball.joints["4"], type="universal")
    assert "not searched" in all_assemblies(ball, ["1"])[0].message
