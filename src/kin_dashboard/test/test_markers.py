"""Markers in the page's scene."""

import numpy as np
import pytest
from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from kin_dashboard.markers import MarkerScene


def marker(kind, number=0, ns="test", **fields):
    made = Marker(ns=ns, id=number, type=kind, color=ColorRGBA(r=1.0, a=1.0))
    made.scale.x = made.scale.y = made.scale.z = 0.1
    made.pose.orientation.w = 1.0
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def points(count):
    return [Point(x=float(i), y=0.5, z=1.0) for i in range(count)]


def test_hundreds_of_markers_become_a_few_objects(server):
    scene = MarkerScene(server.scene, "/many", 2.0)
    cubes = [marker(Marker.CUBE, i) for i in range(300)]
    spheres = [marker(Marker.SPHERE, 1000 + i) for i in range(300)]
    strips = [marker(Marker.LINE_STRIP, 2000 + i, points=points(5)) for i in range(50)]
    scene.take(MarkerArray(markers=cubes + spheres + strips))
    assert scene.draw()
    assert not scene.draw()  # nothing has changed
    assert len(scene.handles) == 3
    assert scene.handles["cubes"].batched_positions.shape == (300, 3)
    lines = next(h for name, h in scene.handles.items() if name.startswith("lines"))
    assert lines.points.shape == (50 * 4, 2, 3)
    assert lines.points[0, 1, 0] == pytest.approx(2.0)  # scaled


def test_markers_that_did_not_move_are_not_sent_again(server):
    scene = MarkerScene(server.scene, "/still")
    strip = marker(Marker.LINE_STRIP, 0, points=points(3))
    scene.take(MarkerArray(markers=[strip, marker(Marker.CUBE, 1), marker(Marker.POINTS, 2)]))
    scene.draw()
    before = dict(scene.handles)
    sent = {name: id(data) for name, data in scene.sent.items()}
    again = MarkerArray(
        markers=[marker(Marker.LINE_STRIP, 0, points=points(3)), marker(Marker.CUBE, 1)]
    )
    scene.take(again)
    scene.draw()
    assert scene.handles == before
    assert {name: id(data) for name, data in scene.sent.items()} == sent
    moved = marker(Marker.CUBE, 1)
    moved.pose.position.x = 3.0
    scene.take(MarkerArray(markers=[moved]))
    scene.draw()
    assert scene.handles["cubes"].batched_positions[0, 0] == 3.0
    changed = {name for name, data in scene.sent.items() if id(data) != sent[name]}
    assert changed == {"cubes"}


def test_every_type_of_marker_is_drawn(server):
    scene = MarkerScene(server.scene, "/types")
    kinds = {
        Marker.ARROW: 2,
        Marker.CUBE: 0,
        Marker.SPHERE: 0,
        Marker.CYLINDER: 0,
        Marker.LINE_STRIP: 3,
        Marker.LINE_LIST: 4,
        Marker.CUBE_LIST: 3,
        Marker.SPHERE_LIST: 3,
        Marker.POINTS: 3,
        Marker.TEXT_VIEW_FACING: 0,
        Marker.TRIANGLE_LIST: 6,
    }
    for number, (kind, count) in enumerate(kinds.items()):
        scene.clear()
        scene.draw()
        scene.take(MarkerArray(markers=[marker(kind, number, points=points(count), text="a")]))
        scene.draw()
        assert len(scene.handles) == 1, kind


def test_delete_and_delete_all(server):
    scene = MarkerScene(server.scene, "/gone")
    scene.take(MarkerArray(markers=[marker(Marker.CUBE, 0), marker(Marker.SPHERE, 1)]))
    scene.draw()
    scene.take(MarkerArray(markers=[marker(Marker.CUBE, 0, action=Marker.DELETE)]))
    scene.draw()
    assert list(scene.handles) == ["spheres"]
    scene.take(MarkerArray(markers=[Marker(action=Marker.DELETEALL)]))
    scene.draw()
    assert not scene.handles


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_markers_that_are_not_finite_are_left_out(server, bad):
    scene = MarkerScene(server.scene, "/bad")
    broken = marker(Marker.LINE_STRIP, points=[*points(3), Point(x=bad)])
    nowhere = marker(Marker.CUBE, 1)
    nowhere.pose.position.x = bad
    turned = marker(Marker.SPHERE, 2)
    turned.pose.orientation.w = bad
    scene.take(MarkerArray(markers=[broken, nowhere, turned]))
    scene.draw()
    for handle in scene.handles.values():
        drawn = handle.points if hasattr(handle, "points") else handle.batched_positions
        assert np.isfinite(drawn).all()


def test_what_failed_while_it_was_drawn_is_drawn_the_next_time(server, monkeypatch):
    scene = MarkerScene(server.scene, "/torn")
    scene.take(MarkerArray(markers=[marker(Marker.CUBE), marker(Marker.SPHERE, 1)]))
    usual = server.scene.add_batched_meshes_simple
    failed = []

    def once(*arguments, **options):
        if not failed:
            failed.append(True)
            raise RuntimeError("deque mutated during iteration")
        return usual(*arguments, **options)

    monkeypatch.setattr(server.scene, "add_batched_meshes_simple", once)
    with pytest.raises(RuntimeError):
        scene.draw()
    assert scene.draw()
    assert set(scene.handles) == {"cubes", "spheres"}
