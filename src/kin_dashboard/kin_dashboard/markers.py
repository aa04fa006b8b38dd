"""Draws a MarkerArray in the page's scene: what RViz and Foxglove show, the same messages.

All markers of one topic become a handful of batched objects, so that a fleet of hundreds of robots
costs a few messages to the browser, not thousands.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from visualization_msgs.msg import Marker, MarkerArray

from kin_core.rotations import matrix_to_quaternion, quaternion_to_matrix
from kin_core.texts import shortened

__all__ = ["CUBE_CORNERS", "CUBE_FACES", "MarkerScene"]

Array = NDArray[np.float64]

#: Unit solids, scaled per instance.
CUBE_CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
CUBE_FACES = np.array(
    [
        [0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
        [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3],
    ]
)  # fmt: skip
#: No page is made slow by a marker array of any size.
_MOST = 60_000


def _cylinder(sides: int = 20) -> tuple[Array, NDArray[np.int64]]:
    angle = np.linspace(0.0, 2.0 * np.pi, sides, endpoint=False)
    ring = np.stack([0.5 * np.cos(angle), 0.5 * np.sin(angle)], axis=1)
    low = np.column_stack([ring, np.full(sides, -0.5)])
    high = np.column_stack([ring, np.full(sides, 0.5)])
    points = np.vstack([low, high, [[0.0, 0.0, -0.5], [0.0, 0.0, 0.5]]])
    faces = []
    for i in range(sides):
        j = (i + 1) % sides
        faces += [[i, j, sides + j], [i, sides + j, sides + i]]
        faces += [[2 * sides, j, i], [2 * sides + 1, sides + i, sides + j]]
    return points, np.array(faces)


def _sphere(rings: int = 10, sides: int = 16) -> tuple[Array, NDArray[np.int64]]:
    polar = np.linspace(0.0, np.pi, rings + 1)
    around = np.linspace(0.0, 2.0 * np.pi, sides, endpoint=False)
    p, a = np.meshgrid(polar, around, indexing="ij")
    points = 0.5 * np.stack([np.sin(p) * np.cos(a), np.sin(p) * np.sin(a), np.cos(p)], axis=-1)
    faces = []
    for i in range(rings):
        for j in range(sides):
            k = (j + 1) % sides
            here, right = i * sides + j, i * sides + k
            faces += [[here, here + sides, right], [right, here + sides, right + sides]]
    return points.reshape(-1, 3), np.array(faces)


#: What a marker is drawn as: name of the batch, vertices and faces.
_SOLIDS = {
    Marker.CUBE: ("cubes", CUBE_CORNERS, CUBE_FACES),
    Marker.SPHERE: ("spheres", *_sphere()),
    Marker.CYLINDER: ("cylinders", *_cylinder()),
}
#: Lists are many of one kind.
_ELEMENTS = {Marker.CUBE_LIST: Marker.CUBE, Marker.SPHERE_LIST: Marker.SPHERE}


def _points(points: Iterable[Any]) -> Array:
    flat = np.array([(p.x, p.y, p.z) for p in points], dtype=float)
    return flat.reshape(-1, 3)


def _colour(c: Any) -> tuple[float, float, float, float]:
    return c.r, c.g, c.b, c.a


class MarkerScene:
    """The markers of one topic under one name in the scene."""

    def __init__(self, scene: Any, root: str, scale: float = 1.0, bold: float = 1.0) -> None:
        """Draw below ``root``, such as "/delta/markers".

        Args:
            scene: The scene of a viser server.
            root: Name of the parent in the scene tree.
            scale: Factor on every length.
            bold: Further factor on widths and sizes.
        """
        self._bold = bold
        self._scene = scene
        self._root = root
        self.scale = scale
        self.centre: Array = np.zeros(3)  # what is drawn at the root [m], unscaled
        self._markers: dict[tuple[str, int], Marker] = {}
        self.handles: dict[str, Any] = {}
        self.sent: dict[str, dict[str, Any]] = {}
        self._changed = False

    def __len__(self) -> int:
        return len(self._markers)

    def take(self, message: MarkerArray) -> None:
        """Apply one message to the set of markers; nothing is drawn yet."""
        for marker in message.markers[:_MOST]:
            key = (marker.ns, marker.id)
            if marker.action == Marker.DELETEALL:
                self._markers.clear()
            elif marker.action == Marker.DELETE:
                self._markers.pop(key, None)
            else:
                self._markers[key] = marker
        self._changed = True

    def clear(self) -> None:
        """Forget everything."""
        self._changed = bool(self._markers)
        self._markers.clear()

    def draw(self) -> bool:
        """Bring the scene up to date; returns whether anything was to do."""
        if not self._changed:
            return False
        batches = _Batches(self.scale, self._bold, self.centre)
        for marker in self._markers.values():
            batches.add(marker)
        drawn = set()
        for name, kind, data in batches.finished():
            self._show(name, kind, data)
            drawn.add(name)
        for name in [name for name in self.handles if name not in drawn]:
            self.sent.pop(name, None)
            self.handles.pop(name).remove()
        self._changed = False  # only now: what failed on the way is drawn again the next time
        return True

    def _show(self, name: str, kind: str, data: dict[str, Any]) -> None:
        handle = self.handles.get(name)
        # Nodes repeat markers that have not moved. A page draws for a quarter of a second after
        # each message, so what is as it was is not sent again.
        if handle is not None and _same(self.sent.get(name), data):
            return
        self.sent.pop(name, None)
        path = f"{self._root}/{name}"
        if kind == "lines":
            if handle is None or len(handle.points) != len(data["points"]):
                handle = self._scene.add_line_segments(path, **data)
            else:
                handle.points, handle.colors = data["points"], data["colors"]
        elif kind == "points":
            handle = self._scene.add_point_cloud(path, point_shape="circle", **data)
        elif kind == "label":
            if handle is None:
                handle = self._scene.add_label(path, **data)
            else:
                handle.text, handle.position = data["text"], data["position"]
        elif kind == "mesh":
            handle = self._scene.add_mesh_simple(path, side="double", **data)
        elif handle is None or len(handle.batched_positions) != len(data["batched_positions"]):
            handle = self._scene.add_batched_meshes_simple(
                path, lod="off", cast_shadow=False, receive_shadow=False, **data
            )
        else:
            for key in ("batched_positions", "batched_wxyzs", "batched_scales", "batched_colors"):
                setattr(handle, key, data[key])
        self.handles[name] = handle
        self.sent[name] = data


class _Batches:
    """Collects markers by what they are drawn as."""

    def __init__(self, scale: float, bold: float, centre: Array) -> None:
        self._scale = scale
        self._bold = bold
        self._centre = centre
        self._solids: dict[int, list[tuple[Any, ...]]] = {}
        self._lines: dict[float, list[tuple[Array, Array]]] = {}
        self._points: dict[float, list[tuple[Array, Array]]] = {}
        self._single: list[tuple[str, str, dict[str, Any]]] = []

    def add(self, marker: Marker) -> None:
        """Sort in one marker."""
        rotation = _rotation(marker)
        place = marker.pose.position
        origin = self._scale * (np.array([place.x, place.y, place.z]) - self._centre)
        size = np.array([marker.scale.x, marker.scale.y, marker.scale.z])
        size *= self._scale * self._bold
        if not (np.isfinite(origin).all() and np.isfinite(size).all()):
            return
        if marker.type in _SOLIDS:
            self._solid(marker.type, origin[None], rotation, size, [_colour(marker.color)])
            return
        if marker.type == Marker.TEXT_VIEW_FACING:
            self._single.append(
                (
                    f"text/{marker.ns}_{marker.id}",
                    "label",
                    {"text": shortened(marker.text, 200), "position": tuple(origin)},
                )
            )
            return
        points = _points(marker.points)
        if marker.type == Marker.ARROW and len(points) < 2:
            points = np.array([[0.0, 0.0, 0.0], [marker.scale.x, 0.0, 0.0]])
            size = np.array([size[1], size[1], size[2]])
        good: NDArray[np.bool_] = np.asarray(np.isfinite(points).all(axis=1))
        if not good.all():
            points = points[good] if marker.type != Marker.LINE_LIST else points[:0]
        if not len(points):
            return
        points = self._scale * (points @ rotation.T) + origin
        colours = self._colours(marker, len(good), good)
        if marker.type in _ELEMENTS:
            self._solid(_ELEMENTS[marker.type], points, rotation, size, colours)
        elif marker.type == Marker.LINE_STRIP:
            self._line(size[0], points[:-1], points[1:], colours[:-1], colours[1:])
        elif marker.type in (Marker.LINE_LIST, Marker.ARROW):
            even = len(points) // 2 * 2
            self._line(
                size[0], points[:even:2], points[1:even:2], colours[:even:2], colours[1:even:2]
            )
        elif marker.type == Marker.POINTS:
            self._points.setdefault(round(float(size[0]), 4), []).append((points, colours[:, :3]))
        elif marker.type == Marker.TRIANGLE_LIST:
            whole = len(points) // 3 * 3
            self._single.append(
                (
                    f"mesh/{marker.ns}_{marker.id}",
                    "mesh",
                    {
                        "vertices": points[:whole],
                        "faces": np.arange(whole).reshape(-1, 3),
                        "color": tuple(int(255 * c) for c in _colour(marker.color)[:3]),
                        "opacity": marker.color.a if marker.color.a < 1.0 else None,
                    },
                )
            )

    @staticmethod
    def _colours(marker: Marker, count: int, good: NDArray[np.bool_]) -> Array:
        if len(marker.colors) == count:
            return np.array([_colour(c) for c in marker.colors], dtype=float)[good]
        return np.tile(np.array(_colour(marker.color), dtype=float), (int(good.sum()), 1))

    def _solid(self, kind: int, origins: Array, rotation: Array, size: Array, colours: Any) -> None:
        wxyz = np.roll(matrix_to_quaternion(rotation), 1)
        self._solids.setdefault(kind, []).append((origins, wxyz, size, np.asarray(colours)))

    def _line(self, width: float, start: Array, end: Array, first: Array, last: Array) -> None:
        if len(start):
            key = round(float(width) if width > 0.0 else 0.005, 4)
            segments = np.stack([start, end], axis=1)
            # The page takes colours of lines as linear light; ours are those of the screen.
            tints = np.stack([first[:, :3], last[:, :3]], axis=1) ** 2.2
            self._lines.setdefault(key, []).append((segments, tints))

    def finished(self) -> Iterable[tuple[str, str, dict[str, Any]]]:
        """Each batch: its name, what it is, and what viser wants to know."""
        for kind, parts in self._solids.items():
            name, vertices, faces = _SOLIDS[kind]
            origins, wxyzs, sizes, colours = zip(*parts, strict=True)
            count = [len(each) for each in origins]
            tints = np.concatenate(colours)
            yield (
                name,
                "solids",
                {
                    "vertices": vertices,
                    "faces": faces,
                    "batched_positions": np.concatenate(origins),
                    "batched_wxyzs": np.repeat(np.array(wxyzs), count, axis=0),
                    "batched_scales": np.repeat(np.array(sizes), count, axis=0),
                    "batched_colors": _bytes(tints[:, :3]),
                    "batched_opacities": tints[:, 3],
                },
            )
        for what, key, batches in (
            ("lines", "thickness", self._lines),
            ("points", "point_size", self._points),
        ):
            for width, group in batches.items():
                points, tints = (np.concatenate(each) for each in zip(*group, strict=True))
                name = f"{what}_{width:g}".replace(".", "_")
                yield name, what, {"points": points, "colors": _bytes(tints), key: width}
        yield from self._single


def _same(old: dict[str, Any] | None, new: dict[str, Any]) -> bool:
    """Whether two sets of arrays and other values are equal."""
    return (
        old is not None
        and old.keys() == new.keys()
        and all(np.array_equal(old[key], value) for key, value in new.items())
    )


def _bytes(colours: Array) -> NDArray[np.uint8]:
    return (255.0 * np.clip(colours, 0.0, 1.0)).astype(np.uint8)


def _rotation(marker: Marker) -> Array:
    q = marker.pose.orientation
    quaternion = np.array([q.x, q.y, q.z, q.w])
    length = float(np.linalg.norm(quaternion))
    if not np.isfinite(length) or length < 1e-9:
        return np.eye(3)
    return np.asarray(quaternion_to_matrix(quaternion / length))
