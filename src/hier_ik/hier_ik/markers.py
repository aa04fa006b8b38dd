"""Markers of a linkage: links, closures, goals, and what can be dragged."""

from __future__ import annotations

import colorsys
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from hier_ik.linkage import Linkage
from hier_ik.solver import Solver
from hier_ik.tables import Array
from kin_ros.markers import BLACK, BLUE, PURPLE, colour, make_marker, to_points

__all__ = ["linkage_markers"]


#: Links that are shown with their frame and name at most.
_GRIPS = 100


def linkage_markers(solver: Solver, frame_id: str, stamp: Any, tolerance: float) -> MarkerArray:
    """Links as bars (real grey, virtual violet), closures and goals as balls by residual.

    A met closure is green; from the tolerance to 0.1 (m or rad) the colour goes to red. The frames
    of up to a hundred real links that lie in no sublinkage, such as the plates of a tower, are
    shown as cubes that carry the link's name as text: what a person can take hold of.
    """
    linkage = solver.linkage
    poses = solver.poses()
    points, bars = _bars(linkage, poses)
    pairs = [pair for of_link in bars.values() for pair in of_link]
    array = MarkerArray()
    make = partial(make_marker, frame_id=frame_id, stamp=stamp)
    size = _size(points, pairs)
    ends = to_points(points)
    for i, virtual in enumerate((False, True)):
        width, shade = (0.15, colour(PURPLE, 0.6)) if virtual else (0.4, colour(BLACK))
        name = "virtual links" if virtual else "real links"
        marker = make(Marker.LINE_LIST, name, i, size=width * size, shade=shade)
        marker.points = [
            ends[end]
            for name, of_link in bars.items()
            if linkage.links[name].virtual == virtual
            for pair in of_link
            for end in pair
        ]
        array.markers.append(marker)
    centres, shades = [], []
    for r in solver.residuals(tolerance):
        if r.name in linkage.goals:
            g = linkage.goals[r.name]
            T = poses[g.link] @ g.offset
        else:
            c = linkage.joints[r.name]
            T = poses[c.child] @ c.child_origin
        centres.append(T[:3, 3])
        shades.append(_colour(r.size, tolerance))
    places = np.reshape(centres, (-1, 3))
    marker = make(Marker.SPHERE_LIST, "closures", 2, size=size, shade=ColorRGBA(), points=places)
    marker.colors = shades
    array.markers.append(marker)
    top = linkage.links[linkage.root].sublinkage
    grips = [n for n, link in linkage.links.items() if not link.virtual and link.sublinkage == top]
    for i, name in enumerate(grips[:_GRIPS]):
        p, R = poses[name][:3, 3], poses[name][:3, :3]
        box = (2.0 * size, 2.0 * size, 0.5 * size)
        marker = make(Marker.CUBE, "grips", i, size=box, shade=colour(BLUE), position=p, rotation=R)
        marker.text = name
        array.markers.append(marker)
    return array


def _bars(
    linkage: Linkage, poses: Mapping[str, Array]
) -> tuple[Array, dict[str, list[tuple[int, int]]]]:
    """Where the joints sit on their links, shape (2 joints, 3) [m], and bars between neighbours.

    All at once: one product per joint would take longer than to solve for them.
    """
    links = [link for j in linkage.joints.values() for link in (j.parent, j.child)]
    if not links:
        return np.zeros((0, 3)), {}
    origins = [T for j in linkage.joints.values() for T in (j.origin, j.child_origin)]
    frames = np.array([poses[link] for link in links])
    inside = np.array(origins)[:, :3, 3]
    points = np.einsum("kij,kj->ki", frames[:, :3, :3], inside) + frames[:, :3, 3]
    ends: dict[str, list[int]] = {}
    for number, link in enumerate(links):
        ends.setdefault(link, []).append(number)
    return points, {link: list(pairwise(numbers)) for link, numbers in ends.items()}


def _size(points: Array, pairs: list[tuple[int, int]]) -> float:
    """About a twentieth of a middling bar."""
    if not pairs:
        return 0.02
    ends = points[np.array(pairs)]
    lengths = np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1)
    long = lengths[lengths > 1e-6]
    return 0.06 * float(np.median(long)) if long.size else 0.02


def _colour(residual: float, tolerance: float) -> ColorRGBA:
    share = 0.0
    if residual > tolerance:
        share = np.log10(residual / tolerance) / max(np.log10(0.1 / tolerance), 1e-9)
    r, g, b = colorsys.hsv_to_rgb((1.0 - min(1.0, max(0.0, float(share)))) / 3.0, 0.9, 0.85)
    return ColorRGBA(r=r, g=g, b=b, a=1.0)
