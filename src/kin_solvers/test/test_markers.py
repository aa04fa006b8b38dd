"""Covers as markers: colours by component, certified boxes solid, the others not."""

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from visualization_msgs.msg import Marker

from kin_solvers import Settings, library, solve
from kin_solvers.markers import boxes_as_markers, linkage_as_markers


def drawn(manifold, variables=()):
    array = boxes_as_markers(manifold, variables, "map", Time())
    assert array.markers[0].action == Marker.DELETEALL
    return array.markers[1:]


def test_certified_boxes_are_solid_and_the_others_are_not():
    sure = solve(library.get("scara"), Settings(sigma=0.1))
    assert sure.certified.all()
    unsure = solve(library.get("bennett"), Settings(sigma=0.3))
    assert not unsure.certified.any()
    alpha = [{m.color.a for m in drawn(manifold)} for manifold in (sure, unsure)]
    assert min(alpha[0]) > 0.9
    assert max(alpha[1]) < 0.6


def test_boxes_where_they_are_and_components_in_colours_of_their_own():
    manifold = solve(library.get("planar_four_bar"), Settings(sigma=0.3))
    names = manifold.mechanism.names[1:4]
    markers = drawn(manifold, names)
    assert len(markers) == len(manifold.lower)
    middle = 0.5 * (manifold.lower + manifold.upper)[:, 1:4]
    places = [[m.pose.position.x, m.pose.position.y, m.pose.position.z] for m in markers]
    assert places == pytest.approx(middle)
    sides = [[m.scale.x, m.scale.y, m.scale.z] for m in markers]
    assert sides == pytest.approx(np.maximum((manifold.upper - manifold.lower)[:, 1:4], 0.01))
    shades = {}
    for marker, label in zip(markers, manifold.labels, strict=True):
        shades.setdefault(int(label), set()).add((marker.color.r, marker.color.g, marker.color.b))
    assert len(shades) == 2
    assert all(len(s) == 1 for s in shades.values())
    assert shades[0] != shades[1]


def test_a_linkage_is_closed_at_a_solution():
    mechanism = library.get("planar_four_bar")
    q = solve(mechanism, Settings(sigma=0.3)).components[0].point
    markers = linkage_as_markers(mechanism, q, "map", Time()).markers[1:]
    assert [m.type for m in markers] == [Marker.LINE_STRIP, Marker.SPHERE_LIST]
    first, last = (markers[0].points[i] for i in (0, -1))
    assert (first.x, first.y, first.z) == pytest.approx((last.x, last.y, last.z), abs=1e-6)
