"""What stands beside a URDF: types, limits, values, motors and goals that it cannot say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hier_ik import LoopCloser, Solver, load_urdf_linkage
from hier_ik.sidecar import load_sidecar
from kin_core.errors import InvalidInput

#: A table on three legs as a CAD program exports it: balls as hinges, limits that it does not know.
URDF = """
<robot name="export">
  <link name="base"/><link name="arm"/><link name="rod"/><link name="fork"/><link name="lever"/>
  <joint name="motor" type="revolute"><parent link="base"/><child link="arm"/>
    <axis xyz="0 0 1"/><limit effort="1" velocity="3"/></joint>
  <joint name="ball" type="revolute"><parent link="arm"/><child link="rod"/>
    <origin xyz="0.2 0 0"/><axis xyz="0 0 1"/><limit effort="1" velocity="0"/></joint>
  <joint name="cross" type="fixed"><parent link="base"/><child link="fork"/>
    <origin xyz="0.5 0 0"/></joint>
  <joint name="swing" type="revolute"><parent link="fork"/><child link="lever"/>
    <axis xyz="0 0 1"/><limit lower="-1" upper="2" effort="1" velocity="0"/></joint>
  <transmission name="t"><joint name="motor"/></transmission>
</robot>
"""
LOOP = """
closures:
  - {name: end, type: spherical, link_a: rod, origin_a: {xyz: [0.3, 0.0, 0.0]}, link_b: lever,
     origin_b: {xyz: [0.0, 0.15, 0.0]}}
"""


def test_limits_that_a_cad_export_left_empty_are_noted_or_opened():
    linkage = load_urdf_linkage(URDF, LOOP)
    assert (linkage.joints["motor"].lower, linkage.joints["motor"].upper) == (0.0, 0.0)
    (note,) = linkage.notes
    assert "2 joints, first 'motor'" in note
    assert "empty_limits: free" in note
    opened = load_urdf_linkage(URDF, LOOP + "empty_limits: free")
    assert not opened.notes
    assert opened.joints["motor"].upper == math.inf
    assert opened.joints["motor"].velocity == 3.0
    assert opened.joints["swing"].upper == 2.0
    one = load_urdf_linkage(
        URDF, LOOP + "joints: {motor: {limits: none}, ball: {lower: -1, upper: 1}}"
    )
    assert one.joints["motor"].lower == -math.inf
    assert (one.joints["ball"].lower, one.joints["ball"].upper) == (-1.0, 1.0)
    assert not one.notes


def test_balls_and_crosses_in_the_place_of_hinges_close_what_hinges_cannot():
    beside = """
joints:
  ball: {type: spherical}
  cross: {type: universal, axis: [1, 0, 0], axis2: [0, 1, 0], value: [0.3, -0.2]}
  motor: {limits: none, value: 0.1}
  swing: {lower: null}
actuated: [motor]
goals:
  - {name: tip, link: lever, kind: position, xyz: [0.5, 0.0, 0.0]}
"""
    linkage = load_urdf_linkage(URDF, LOOP + beside)
    assert {n: j.type for n, j in linkage.joints.items()} == {
        "motor": "revolute", "ball": "spherical", "cross": "universal", "swing": "revolute",
        "end": "spherical",
    }  # fmt: skip
    assert linkage.actuated == ("motor",)
    assert list(linkage.goals) == ["tip"]
    np.testing.assert_array_equal(linkage.values["cross"], [0.3, -0.2])
    np.testing.assert_array_equal(linkage.joints["cross"].origin[:3, 0], [1.0, 0.0, 0.0])
    assert Solver(linkage).solve(tolerance=1e-9).closure_residual < 1e-9


def test_motors_are_those_of_the_sidecar_or_of_the_urdf():
    assert load_urdf_linkage(URDF, LOOP).actuated == ("motor",)
    assert load_urdf_linkage(URDF, LOOP + "actuated: []").actuated == ()
    control = """<ros2_control name="c" type="system">
      <joint name="swing"><command_interface name="effort"/></joint>
      <joint name="ball"><state_interface name="position"/></joint>
    </ros2_control></robot>"""
    both = load_urdf_linkage(URDF.replace("</robot>", control), LOOP + "empty_limits: free")
    assert both.actuated == ("swing", "motor")
    with pytest.raises(InvalidInput, match=r"not independent|do not determine"):
        LoopCloser(both)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("joint: {}", "joint"),
        ("joints: [motor]", "joints"),
        ("joints: {motor: 3}", "motor"),
        ("joints: {motor: {kind: spherical}}", "kind"),
        ("joints: {motor: {type: ball}}", "type"),
        ("joints: {motor: {limits: 3}}", "limits"),
        ("joints: {motor: {locked: 1}}", "locked"),
        ("joints: {motor: {lower: x}}", "lower"),
        ("joints: {motor: {value: [1, 2]}}", "value"),
        ("joints: {nobody: {value: 1}}", "nobody"),
        ("actuated: motor", "actuated"),
        ("actuated: [3]", "actuated"),
        ("actuated: [[motor]]", "actuated"),
        ("actuated: [motor, motor]", "twice"),
        ("actuated: [nobody]", "nobody"),
        ("empty_limits: maybe", "empty_limits"),
        ("goals: {a: b}", "goals"),
        ("closures: 3", "closures"),
    ],
)
def test_what_is_wrong_is_named(text, field):
    with pytest.raises(InvalidInput, match=field):
        load_urdf_linkage(URDF, text)


def test_nothing_beside_and_a_list_alone():
    assert load_sidecar(None).closures == ()
    assert load_sidecar("[{name: a, type: fixed, link_a: b, link_b: c}]").closures[0].name == "a"
