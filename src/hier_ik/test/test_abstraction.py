"""Structure abstraction: encapsulate, substitute, refute."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hier_ik import (
    Linkage,
    LinkageError,
    Solver,
    check_proper,
    decompose,
    encapsulate,
    frame,
    substitute,
    tower,
    validate,
)


def leg_on_ground() -> Linkage:
    """A four-bar leg (Fig. 3 of the paper) between the ground and a cart on a rail."""
    l = Linkage("leg")
    for n in ("g", "a", "m", "b", "cart"):
        l.add_link(n)
    y = (0, 1, 0)
    l.add_joint("R1", "revolute", "g", "a", axis=y, closure=False, value=1.0)
    l.add_joint("R2", "revolute", "a", "m", xyz=(0, 0, 0.4), axis=y, closure=False, value=-1.0)
    l.add_joint("R3", "revolute", "m", "b", xyz=(0, 0, 0.4), axis=y, closure=False, value=-1.0)
    l.add_joint("rail", "prismatic", "g", "cart", closure=False, virtual=True, value=0.8)
    l.add_joint(
        "R4", "revolute", "cart", "b", child_origin=frame((0, 0, 0.4)), axis=y, closure=True
    )
    return l


def piston(low=None, high=None) -> Linkage:
    """The interface: revolute, prismatic, revolute."""
    i = Linkage("piston")
    for n in ("e0", "u", "v", "e1"):
        i.add_link(n)
    i.add_joint("swing", "revolute", "e0", "u", axis=(0, 1, 0), closure=False)
    i.add_joint("slide", "prismatic", "u", "v", closure=False, value=0.8, lower=low, upper=high)
    i.add_joint("end", "revolute", "v", "e1", axis=(0, 1, 0), closure=False)
    return i


def abstracted(low=None, high=None) -> Linkage:
    l = leg_on_ground()
    encapsulate(l, "A", ["a", "m", "b"])
    validate(l)
    assert l.crossed(l.joints["R4"]) == "A"
    substitute(l, "A", piston(low, high), {"g": "e0", "cart": "e1"}, name="I")
    return l


def test_encapsulate_and_substitute_give_the_structure_of_the_paper():
    l = abstracted()
    assert l.sublinkages["A"].parent == "I"
    assert l.sublinkages["A"].disposition == "driven"
    assert l.sublinkages["I"].disposition == "simultaneous"
    assert l.joints["R1"].parent == "I.e0"
    assert l.joints["R4"].parent == "I.e1"
    d = decompose(l)
    assert d.rounds["A"] == d.rounds["I"] + 1
    assert [c.round for c in d.components] == [0, 1]
    s = Solver(l)
    assert s.solve().success
    l.add_goal("push", "cart", "position")
    s.set_goal("push", (0, 0, 1.0))
    result = s.solve()
    assert result.success, result.message
    # the leg follows the piston, whatever its own posture
    assert abs(result.values["I.slide"][0] - 1.0) < 1e-8


def test_an_improper_abstraction_is_refuted_and_its_witness_is_out_of_reach():
    """The leg is at most 1.2 long."""
    found = check_proper(abstracted(0.5, 1.5), "I", samples=50)
    assert found.refuted
    assert found.worst_closure == "R4"
    slide = found.witness["I.slide"][0]
    assert slide > 1.2
    assert abs(found.worst_residual - (slide - 1.2)) < 0.5


def test_a_proper_abstraction_is_not_refuted():
    found = check_proper(tower(1), "C1", samples=60, seed=3)
    assert not found.refuted
    assert found.worst_residual < 1e-6
    # the lengths that the limits of C allow, in closed form
    from hier_ik.tower import HIGH, LOW, TILT, block_posture

    lengths = [
        block_posture(t, h, side)[1]
        for t in np.linspace(-TILT, TILT, 21)
        for h in np.linspace(LOW, HIGH, 21)
        for side in (-1, 1)
    ]
    assert min(lengths) > 0.54
    assert max(lengths) < 1.06


def test_improper_abstractions_keep_real_loops_by_priority():
    """A real loop inside the implementation stays closed while the interface asks too much."""
    l = Linkage()
    l.add_link("g")
    l.add_sublinkage("I", "simultaneous")
    for n in ("e0", "e1"):
        l.add_link(n, "I", virtual=True)
    l.add_joint("base", "fixed", "g", "e0", closure=False, virtual=True)
    l.add_joint("reach", "cartesian2", "e0", "e1", closure=False, virtual=True, value=(2.5, 1.0))
    l.add_goal("far", "e1", "position", target=(2.5, 1.0, 0))
    l.add_sublinkage("A", "driven", parent="I")
    for n in "abc":
        l.add_link(n, "A")
    l.add_joint("ground", "fixed", "e0", "a", closure=False)
    l.add_link("crank1", "A")
    l.add_joint("1", "revolute", "a", "crank1", closure=False, value=1.2)
    l.add_joint("2", "revolute", "crank1", "c", xyz=(0.5, 0, 0), closure=False, value=-1.2)
    l.add_joint("3", "revolute", "a", "b", xyz=(1, 0, 0), closure=False, value=1.2)
    l.add_joint("4", "revolute", "c", "b", xyz=(1, 0, 0), child_origin=(0.5, 0, 0), closure=True)
    l.add_joint("drive", "spherical", "e1", "c", child_origin=(0.5, 0, 0), closure=True)
    s = Solver(l)
    result = s.solve(max_iterations=300)
    loop = next(r for r in result.residuals if r.name == "4")
    assert loop.level == 0
    assert loop.size < 1e-9
    assert result.unmet == ("drive",)
    p = (s.poses(["c"])["c"] @ frame((0.5, 0, 0)))[:3, 3]
    np.testing.assert_allclose(
        p[:2], np.array([0.5, 0]) + 0.5 * np.array([2, 1]) / math.sqrt(5), atol=1e-4
    )


def test_misuse_is_refused_and_changes_nothing():
    l = leg_on_ground()
    with pytest.raises(LinkageError, match="one sublinkage"):
        m = tower(1)
        encapsulate(m, "X", ["C1.c0", "B1.b0"])
    with pytest.raises(LinkageError, match="second outcrossing"):
        encapsulate(l, "X", ["a", "b", "cart"])
    assert list(l.sublinkages) == ["L0"]
    encapsulate(l, "A", ["a", "m", "b"])
    with pytest.raises(LinkageError, match="port"):
        substitute(l, "A", piston(), {"g": "e0"}, name="I")
    with pytest.raises(LinkageError, match="root"):
        substitute(l, "A", piston(), {"g": "u", "cart": "e1"}, name="I")
    assert "I" not in l.sublinkages
    with pytest.raises(LinkageError, match="drives nothing"):
        check_proper(l, "A")
