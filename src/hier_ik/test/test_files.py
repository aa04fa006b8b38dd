# ruff: noqa: E501
"""Files: round trips, URDF with closures both ways, malformed linkages refused by name."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from hier_ik import (
    Linkage,
    LinkageError,
    Solver,
    decompose,
    dump_linkage,
    dump_urdf,
    frame,
    load_linkage,
    load_mjcf_linkage,
    load_urdf_linkage,
    tower,
    validate,
)
from hier_ik.pictures import draw_graph, draw_hierarchy, draw_posture
from kin_core.errors import InvalidInput, KinError
from kin_core.urdf import load_urdf

sys.path.insert(0, str(Path(__file__).parent))
import mechanisms
from random_linkages import random_linkage

EXAMPLES = Path(__file__).parent.parent / "examples"


def same(a: Linkage, b: Linkage):
    pa, pb = a.link_poses(), b.link_poses()
    assert list(pa) == list(pb)
    for n in pa:
        np.testing.assert_allclose(pa[n], pb[n], atol=1e-12)
    assert decompose(a).components == decompose(b).components


@pytest.mark.parametrize("seed", range(20))
def test_yaml_round_trip(seed):
    rng = np.random.default_rng(seed)
    l = random_linkage(rng)
    for n in l.values:
        l.values[n] = rng.normal(size=len(l.values[n]))
    l.add_goal("g", list(l.links)[-1], "rows", rows=[True, False] * 3)
    text = dump_linkage(l)
    again = load_linkage(text)
    same(l, again)


def test_the_example_file_is_the_tower():
    l = load_linkage(EXAMPLES / "tower15.yaml")
    same(l, tower(15))
    s = Solver(l)
    s.set_goal("drag", (0.8, 0, 11.6))
    assert s.solve().success


def test_urdf_of_the_tree_is_read_by_others_and_back():
    """Through this project's reader and through pinocchio's: the same poses."""
    import pinocchio

    for l in (tower(2), mechanisms.stewart()[0]):
        plain = l.copy()
        text = dump_urdf(plain)
        robot = load_urdf(text)
        assert set(l.links) <= set(robot.links)
        again = load_urdf_linkage(text)
        values = {}
        for name in again.values:
            joint, _, part = name.partition("__")
            q = l.values[joint]
            if l.joints[joint].type == "spherical":  # zero here, and so are the three turns
                q = np.zeros(3)
                plain.values[joint] = q
            values[name] = np.atleast_1d(q[int(part) - 1 if part else 0]) if len(q) else q
        again.values.update(values)
        poses, plain_poses = again.link_poses(), plain.link_poses()
        model = pinocchio.buildModelFromXML(dump_urdf(plain, constraints=False))
        data = model.createData()
        q = pinocchio.neutral(model)
        for name, v in values.items():
            if not len(v):
                continue
            j = model.joints[model.getJointId(name)]
            q[j.idx_q : j.idx_q + j.nq] = v if j.nq == 1 else (np.cos(v[0]), np.sin(v[0]))
        pinocchio.framesForwardKinematics(model, data, q)
        for j in l.tree_order():
            # link frames differ by the constant child origin
            theirs = data.oMf[model.getFrameId(j.child)].homogeneous
            np.testing.assert_allclose(poses[j.child], theirs, atol=1e-9)
            mine = plain_poses[j.child] @ (j.child_origin if j.dof else np.eye(4))
            np.testing.assert_allclose(mine, theirs, atol=1e-9)
        assert len(again.closure_joints()) == len(l.closure_joints())


URDF = """<robot name="fourbar">
  <link name="g"/> <link name="a"/> <link name="b"/> <link name="c"/>
  <joint name="1" type="continuous"><parent link="g"/><child link="a"/><axis xyz="0 0 1"/></joint>
  <joint name="2" type="revolute"><parent link="a"/><child link="c"/><origin xyz="0.5 0 0"/>
    <axis xyz="0 0 1"/><limit lower="-3" upper="3" velocity="2" effort="1"/></joint>
  <joint name="3" type="continuous"><parent link="g"/><child link="b"/><origin xyz="1 0 0"/>
    <axis xyz="0 0 1"/></joint>
  {extra}
</robot>"""
CONSTRAINT = """<constraint name="4" type="revolute">
    <parent link="c"/><parent_origin xyz="1 0 0" rpy="0 0 0"/><parent_axis xyz="0 0 1"/>
    <child link="b"/><child_origin xyz="0.5 0 0" rpy="0 0 0"/><child_axis xyz="0 0 1"/>
  </constraint>"""
SIDECAR = """closures:
  - {name: "4", type: revolute, link_a: c, origin_a: {xyz: [1, 0, 0]}, link_b: b,
     origin_b: {xyz: [0.5, 0, 0]}, axis: [0, 0, 1]}
"""


@pytest.mark.parametrize("way", ["constraint", "sidecar"])
def test_urdf_closures_from_the_element_and_the_sidecar(way):
    if way == "constraint":
        l = load_urdf_linkage(URDF.format(extra=CONSTRAINT))
    else:
        l = load_urdf_linkage(URDF.format(extra=""), SIDECAR)
    s = Solver(l)
    s.set_values({"1": 1.0, "2": -0.9, "3": 1.1})
    result = s.solve(tolerance=1e-11)
    assert result.success, result.message
    v = {k: x[0] for k, x in result.values.items()}
    # a parallelogram: the cranks stay parallel
    assert abs(v["1"] - v["3"]) < 1e-9
    assert abs(v["1"] + v["2"]) < 1e-9


def test_universal_constraint_holds_the_two_axes_perpendicular():
    element = """<constraint name="u" type="universal">
      <parent link="g"/><parent_origin xyz="0 0 1"/><parent_axis xyz="0 0 1"/>
      <child link="c"/><child_origin xyz="0 0 0"/><child_axis xyz="1 0 0"/></constraint>"""
    l = load_urdf_linkage(URDF.format(extra=element))
    j = l.joints["u"]
    np.testing.assert_allclose(j.origin[:3, 0], (0, 0, 1), atol=1e-12)
    np.testing.assert_allclose(j.child_origin[:3, 1], (1, 0, 0), atol=1e-12)


@pytest.mark.parametrize(
    ("extra", "match"),
    [
        (CONSTRAINT.replace('type="revolute"', 'type="rubber"'), "rubber"),
        (CONSTRAINT.replace('link="b"', 'link="zz"'), "zz"),
        (CONSTRAINT.replace("1 0 0", "1 nan 0"), "finite"),
        (CONSTRAINT.replace('axis xyz="0 0 1"', 'axis xyz="0 0 0"'), "zero"),
        (CONSTRAINT + CONSTRAINT, "twice"),
    ],
)
def test_bad_constraints_are_refused(extra, match):
    with pytest.raises(InvalidInput, match=match):
        load_urdf_linkage(URDF.format(extra=extra))


BASE = "name: x\nlinks: [g, a, b]\n"
MALFORMED = {
    "cycle of tree joints": (
        BASE + "joints:\n - {name: p, type: revolute, parent: a, child: b, role: tree}\n"
        " - {name: q, type: revolute, parent: b, child: a, role: tree}\n", "cycle: .*",
    ),
    "two roots": (
        BASE + "joints:\n - {name: p, type: revolute, parent: g, child: a, role: tree}\n",
        "'b'.*second root",
    ),
    "two parents": (
        BASE + "joints:\n - {name: p, type: revolute, parent: g, child: a, role: tree}\n"
        " - {name: q, type: revolute, parent: g, child: b, role: tree}\n"
        " - {name: r, type: revolute, parent: b, child: a, role: tree}\n", "'r'.*already hangs on",
    ),
    "root as child": (
        BASE + "joints:\n - {name: p, type: revolute, parent: a, child: g, role: tree}\n", "'p'.*root",
    ),
    "NaN offset": (
        BASE + "joints:\n - {name: p, type: revolute, parent: g, child: a, xyz: [.nan, 0, 0]}\n",
        "'p'.*finite",
    ),
    "duplicate joint": (
        BASE + "joints:\n - {name: p, type: revolute, parent: g, child: a}\n"
        " - {name: p, type: revolute, parent: g, child: b}\n", "'p'.*twice",
    ),
    "duplicate link": ("links: [g, g]\n", "'g'.*twice"),
    "unknown type": (BASE + "joints:\n - {name: p, type: helical, parent: g, child: a}\n", "helical"),
    "unknown link": (BASE + "joints:\n - {name: p, type: fixed, parent: g, child: z}\n", "'z'"),
    "itself": (BASE + "joints:\n - {name: p, type: fixed, parent: g, child: g}\n", "itself"),
    "limits": (
        BASE + "joints:\n - {name: p, type: revolute, parent: g, child: a, lower: 1, upper: 0}\n",
        "'p'.*lower limit",
    ),
    "unknown key": (BASE + "joints:\n - {name: p, type: fixed, parent: g, child: a, colour: 1}\n",
                    "colour"),
    "role": (BASE + "joints:\n - {name: p, type: fixed, parent: g, child: a, role: king}\n", "king"),
    "no links": ("joints: []\n", "no links"),
    "not a mapping": ("[1, 2]", "mapping"),
    "nesting cycle": (
        "sublinkages:\n - {name: A, disposition: driven, parent: B}\n"
        " - {name: B, disposition: driven, parent: A}\nlinks: [g]\n", "cycle",
    ),
    "unknown parent": (
        "sublinkages:\n - {name: A, disposition: driven, parent: Q}\nlinks: [g]\n", "'Q'",
    ),
    "disposition": ("sublinkages:\n - {name: A, disposition: lazy, parent: null}\nlinks: [g]\n",
                    "lazy"),
    "empty sublinkage": (
        "sublinkages:\n - {name: A, disposition: driven}\nlinks: [g]\n", "'A'.*no links",
    ),
    "two boundaries": (
        "sublinkages:\n - {name: A, disposition: driven}\n"
        " - {name: B, disposition: driven, parent: A}\n"
        "links: [g, {name: a, sublinkage: A}, {name: b, sublinkage: B}]\n"
        "joints:\n - {name: p, type: revolute, parent: g, child: a, role: tree}\n"
        " - {name: q, type: revolute, parent: a, child: b, role: tree}\n"
        " - {name: far, type: revolute, parent: g, child: b, role: closure}\n",
        "'far'.*boundaries of both 'L0' and 'B'",
    ),
    "two outcrossing": (
        "sublinkages:\n - {name: A, disposition: simultaneous}\n"
        "links: [g, {name: a, sublinkage: A}, {name: b, sublinkage: A}]\n"
        "joints:\n - {name: p, type: revolute, parent: g, child: a, role: tree}\n"
        " - {name: q, type: revolute, parent: g, child: b, role: tree}\n", "'q'.*second outcrossing",
    ),
    "driven incrossing": (
        "sublinkages:\n - {name: A, disposition: driven}\n"
        "links: [g, {name: a, sublinkage: A}, b]\n"
        "joints:\n - {name: p, type: revolute, parent: g, child: a, role: tree}\n"
        " - {name: q, type: revolute, parent: a, child: b, role: tree}\n", "'q'.*driven",
    ),
    "no way in": ("links: [g, a]\njoints:\n - {name: p, type: point_plane, parent: a, child: g}\n",
                  "'a'.*no way"),
    "root inside": (
        "root: a\nsublinkages:\n - {name: A, disposition: driven}\n"
        "links: [g, {name: a, sublinkage: A}]\n"
        "joints:\n - {name: p, type: revolute, parent: a, child: g, role: tree}\n", "'a'.*top-level",
    ),
    "goal": (BASE + "joints:\n - {name: p, type: fixed, parent: g, child: a}\n"
             " - {name: q, type: fixed, parent: g, child: b}\ngoals:\n - {name: t, link: zz}\n", "zz"),
    "priority": (
        BASE + "joints:\n - {name: p, type: fixed, parent: g, child: a, priority: 99}\n", "priority",
    ),
    "value": (
        BASE + "joints:\n - {name: p, type: revolute, parent: g, child: a, value: [1, 2]}\n", "value",
    ),
    "text for a number": (
        BASE + "joints:\n - {name: p, type: revolute, parent: g, child: a, lower: [abc]}\n", "numbers",
    ),
    "bomb": ("a: &a [*a]\n", "alias"),
}  # fmt: skip


@pytest.mark.parametrize("case", list(MALFORMED))
def test_malformed_linkages_are_refused_with_a_sentence(case):
    text, match = MALFORMED[case]
    with pytest.raises(InvalidInput, match=match):
        load_linkage(text)


def test_errors_carry_element_and_rule():
    l = tower(1)
    l.links["C1.c1"] = type(l.links["C1.c1"])("C1.c1", "A1L", True)
    with pytest.raises(LinkageError) as caught:
        validate(l)
    assert caught.value.element
    assert caught.value.rule


def test_mjcf_needs_mujoco_or_reads_it():
    text = """<mujoco><worldbody><body name="a" pos="0 0 1"><joint name="j" type="hinge" axis="0 1 0"
      range="-90 90" limited="true"/><geom size=".1"/><body name="b" pos="1 0 0"><joint name="k"
      type="ball"/><geom size=".1"/></body></body></worldbody>
      <equality><connect name="c" body1="b" anchor="1 0 0"/></equality></mujoco>"""
    try:
        import mujoco  # noqa: F401
    except ImportError:
        with pytest.raises(KinError, match="mujoco"):
            load_mjcf_linkage(text)
        return
    l = load_mjcf_linkage(text)
    assert l.joints["j"].type == "revolute"
    assert abs(l.joints["j"].upper[0] - np.pi / 2) < 1e-9
    assert l.joints["c"].closure
    assert Solver(l).solve().success


def test_pictures_are_drawn(tmp_path):
    l = tower(1)
    d = decompose(l)
    for name, draw in (
        ("graph.png", lambda p: draw_graph(l, p, d)),
        ("hierarchy.svg", lambda p: draw_hierarchy(l, p, d)),
        ("posture.png", lambda p: draw_posture(l, p)),
    ):
        draw(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 5000


def test_frames_of_every_kind_are_accepted_and_checked():
    l = Linkage()
    l.add_link("a")
    l.add_link("b")
    with pytest.raises(InvalidInput, match="rigid"):
        l.add_joint("j", "fixed", "a", "b", origin=2 * np.eye(4))
    with pytest.raises(InvalidInput, match="zero"):
        l.add_joint("j", "revolute", "a", "b", axis=(0, 0, 0))
    with pytest.raises(InvalidInput, match="parallel"):
        l.add_joint("j", "universal", "a", "b", axis=(0, 0, 1), axis2=(0, 0, 2))
    j = l.add_joint("j", "universal", "a", "b", axis=(0, 0, 1), axis2=(1, 0, 1), closure=False)
    np.testing.assert_allclose(j.origin[:3, 0], (0, 0, 1), atol=1e-12)
    np.testing.assert_allclose(j.origin[:3, 1], (1, 0, 0), atol=1e-12)
    np.testing.assert_allclose(frame((1, 2, 3))[:3, 3], (1, 2, 3))
