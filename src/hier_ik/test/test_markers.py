"""Markers of a linkage: where its joints are, coloured by residual, with what can be dragged."""

from __future__ import annotations

import numpy as np
from builtin_interfaces.msg import Time

from hier_ik import Solver, tower
from hier_ik.markers import linkage_markers


def shown(solver, tolerance=1e-6):
    array = linkage_markers(solver, "base", Time(sec=7), tolerance)
    for marker in array.markers:
        assert (marker.header.frame_id, marker.header.stamp.sec) == ("base", 7)
    return {m.ns: [x for x in array.markers if x.ns == m.ns] for m in array.markers}


def test_bars_end_where_joints_sit_and_no_two_markers_have_one_name():
    solver = Solver(tower(2))
    by_name = shown(solver)
    poses = solver.poses()
    ends = {
        tuple(np.round((poses[link] @ T)[:3, 3], 9))
        for j in solver.linkage.joints.values()
        for link, T in ((j.parent, j.origin), (j.child, j.child_origin))
    }
    for name in ("real links", "virtual links"):
        (marker,) = by_name[name]
        assert len(marker.points) % 2 == 0
        assert {tuple(np.round((p.x, p.y, p.z), 9)) for p in marker.points} <= ends
    everything = [(m.ns, m.id) for markers in by_name.values() for m in markers]
    assert len(everything) == len(set(everything))


def test_a_task_goes_from_green_to_red_with_its_residual():
    solver = Solver(tower(2))
    (before,) = shown(solver)["closures"]
    assert len(before.points) == len(before.colors) == len(solver.residuals())
    assert all(c.g > c.r for c in before.colors)
    solver.set_goal("drag", (0.0, 0.0, 9.0))
    (after,) = shown(solver)["closures"]
    red = [c for c in after.colors if c.r > c.g]
    assert len(red) == 1


def test_plates_can_be_taken_hold_of_by_name():
    solver = Solver(tower(3))
    grips = {m.text: m.pose.position for m in shown(solver)["grips"]}
    assert set(grips) == {"P0", "P1", "P2", "P3"}
    for name, at in grips.items():
        np.testing.assert_allclose((at.x, at.y, at.z), solver.poses([name])[name][:3, 3])
