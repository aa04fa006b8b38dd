"""Covers and linkages as markers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from visualization_msgs.msg import Marker, MarkerArray

from kin_ros.markers import BLUE, SERIES, clear_all, colour, make_marker
from kin_solvers.manifold import Manifold
from kin_solvers.mechanism import Mechanism
from kin_solvers.plot import linkage_points

__all__ = ["boxes_as_markers", "linkage_as_markers"]

Array = NDArray[np.float64]

MAX_MARKERS = 4000
#: Opacity of certified boxes, and of the others.
SOLID, FAINT = 0.95, 0.5


def boxes_as_markers(
    manifold: Manifold, variables: tuple[str, ...], frame_id: str, stamp: Any
) -> MarkerArray:
    """The boxes of a cover in three of its variables; certified ones are drawn solid.

    Args:
        manifold: The cover.
        variables: Names of the variables shown as x, y, z; none: the first three.
        frame_id: Frame of the markers.
        stamp: Their time.
    """
    names = variables or manifold.mechanism.names[:3]
    known = [n for n in names if n in manifold.mechanism.names]
    axes = [manifold.mechanism.index(n) for n in known][:3]
    middle = 0.5 * (manifold.lower + manifold.upper)[:MAX_MARKERS]
    size = (manifold.upper - manifold.lower)[:MAX_MARKERS]
    array = MarkerArray(markers=[clear_all()])
    for i, (m, s) in enumerate(zip(middle, size, strict=True)):
        unused = 3 - len(axes)
        # A colour for each component; certified boxes are drawn solid.
        shade = SERIES[int(manifold.labels[i]) % len(SERIES)]
        marker = make_marker(
            Marker.CUBE,
            "manifold",
            i,
            frame_id=frame_id,
            stamp=stamp,
            size=[*np.maximum(s[axes], 0.01), *[0.01] * unused],
            shade=colour(shade, SOLID if manifold.certified[i] else FAINT),
            position=np.array([*m[axes], *[0.0] * unused]),
        )
        array.markers.append(marker)
    return array


def linkage_as_markers(mechanism: Mechanism, q: Array, frame_id: str, stamp: Any) -> MarkerArray:
    """Each loop as a line through its frames, with a ball at each of them.

    Args:
        mechanism: The mechanism.
        q: The configuration, shape (V,) [rad, m].
        frame_id: Frame of the markers.
        stamp: Their time.
    """
    array = MarkerArray(markers=[clear_all()])
    for i in range(len(mechanism.loops)):
        points = linkage_points(mechanism, i, q)
        size = 0.02 * max(float(np.ptp(points, axis=0).max()), 1e-3)
        for kind, width in ((Marker.LINE_STRIP, size), (Marker.SPHERE_LIST, 2.5 * size)):
            marker = make_marker(
                kind,
                "linkage",
                2 * i + (kind == Marker.SPHERE_LIST),
                frame_id=frame_id,
                stamp=stamp,
                size=width,
                shade=colour(BLUE),
                points=points,
            )
            array.markers.append(marker)
    return array
