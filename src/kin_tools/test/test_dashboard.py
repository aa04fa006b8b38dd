"""The dashboard without a browser: drawing, wording, and the node alone in the graph."""

import socket
import urllib.request

import numpy as np
import pytest
import viser
from geometry_msgs.msg import Point, PoseStamped
from kin_interfaces.msg import NodeState
from rclpy.parameter import Parameter
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from kin_common.errors import KinError
from kin_common.node import KinNode
from kin_common.parameters import ParameterSet
from kin_common.testing import wait_until
from kin_tools.dashboard.cuik import along_curve
from kin_tools.dashboard.markers import MarkerScene
from kin_tools.dashboard.node import Dashboard, free_port
from kin_tools.dashboard.panel import type_name
from kin_tools.dashboard.stack import diagnostics_html, state_html
from kin_tools.dashboard.style import GOOD, IDLE, SERIES, WARN, WRONG, notice, rgb, table


@pytest.fixture(scope="module")
def server():
    made = viser.ViserServer(host="127.0.0.1", port=free_port("127.0.0.1", 0), verbose=False)
    yield made
    made.stop()


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
    assert len(scene._handles) == 3
    assert scene._handles["cubes"].batched_positions.shape == (300, 3)
    lines = next(h for name, h in scene._handles.items() if name.startswith("lines"))
    assert lines.points.shape == (50 * 4, 2, 3)
    assert lines.points[0, 1, 0] == pytest.approx(2.0)  # scaled


def test_markers_that_did_not_move_are_not_sent_again(server):
    scene = MarkerScene(server.scene, "/still")
    strip = marker(Marker.LINE_STRIP, 0, points=points(3))
    scene.take(MarkerArray(markers=[strip, marker(Marker.CUBE, 1), marker(Marker.POINTS, 2)]))
    scene.draw()
    before = dict(scene._handles)
    sent = {name: id(data) for name, data in scene._sent.items()}
    again = MarkerArray(
        markers=[marker(Marker.LINE_STRIP, 0, points=points(3)), marker(Marker.CUBE, 1)]
    )
    scene.take(again)
    scene.draw()
    assert scene._handles == before
    assert {name: id(data) for name, data in scene._sent.items()} == sent
    moved = marker(Marker.CUBE, 1)
    moved.pose.position.x = 3.0
    scene.take(MarkerArray(markers=[moved]))
    scene.draw()
    assert scene._handles["cubes"].batched_positions[0, 0] == 3.0
    changed = {name for name, data in scene._sent.items() if id(data) != sent[name]}
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
        assert len(scene._handles) == 1, kind


def test_delete_and_delete_all(server):
    scene = MarkerScene(server.scene, "/gone")
    scene.take(MarkerArray(markers=[marker(Marker.CUBE, 0), marker(Marker.SPHERE, 1)]))
    scene.draw()
    scene.take(MarkerArray(markers=[marker(Marker.CUBE, 0, action=Marker.DELETE)]))
    scene.draw()
    assert list(scene._handles) == ["spheres"]
    scene.take(MarkerArray(markers=[Marker(action=Marker.DELETEALL)]))
    scene.draw()
    assert not scene._handles


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
    for handle in scene._handles.values():
        drawn = handle.points if hasattr(handle, "points") else handle.batched_positions
        assert np.isfinite(drawn).all()


def test_a_shuffled_curve_is_walked_in_order():
    turn = np.linspace(-np.pi, np.pi, 60, endpoint=False)
    curve = np.stack([turn, 0.3 * np.sin(turn)], axis=1)
    shuffled = np.random.default_rng(1).permutation(60)
    walked = shuffled[along_curve(curve[shuffled], np.array([True, False]))]
    steps = np.diff(walked) % 60
    # One way round, with at most one jump where it closes.
    assert np.isin(steps, (1, 59)).mean() > 0.95
    assert sorted(walked) == list(range(60))
    assert len(along_curve(np.zeros((0, 2)), np.array([True, True]))) == 0


def test_words_of_others_cannot_become_html():
    evil = "<script>alert(1)</script>"
    node = NodeState(name=f"/{evil}", health=NodeState.UNHEALTHY, expected=True, message=evil)
    for html in (
        state_html(evil, [node], [evil]),
        notice(evil),
        table([(evil, evil)], evil),
        diagnostics_html({}),
    ):
        assert "<script" not in html


def test_states_differ_by_word_and_sign_not_only_by_colour():
    nodes = [
        NodeState(name="/a", health=NodeState.HEALTHY, expected=True),
        NodeState(name="/b", health=NodeState.STARTING, expected=True),
        NodeState(name="/c", health=NodeState.SILENT, expected=True),
    ]
    html = state_html("2 of 3", nodes, ["hier_ik"])
    for word in ("b: starting", "c: silent", "hier_ik: off", "\u2713", "\u2715"):
        assert word in html


def test_status_colours_stand_apart_for_colour_blind_readers():
    """Distances after simulated deuteranopia (Viénot 1999), in linear RGB."""
    to_lms = np.array(
        [[17.8824, 43.5161, 4.11935], [3.45565, 27.1554, 3.86714], [0.0299566, 0.184309, 1.46709]]
    )
    blind = np.array([[1.0, 0.0, 0.0], [0.494207, 0.0, 1.24827], [0.0, 0.0, 1.0]])
    seen = [
        np.linalg.inv(to_lms) @ blind @ to_lms @ (np.array(rgb(c)) / 255.0) ** 2.2
        for c in (GOOD, WARN, WRONG)
    ]
    for i in range(3):
        for j in range(i):
            assert np.linalg.norm(seen[i] - seen[j]) > 0.15
    assert len(set(SERIES)) == len(SERIES)
    assert IDLE not in (GOOD, WARN, WRONG)


def test_a_taken_port_is_replaced():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        other = free_port("127.0.0.1", port)
        assert other not in (0, port)
    assert free_port("127.0.0.1", port) == port
    with pytest.raises(KinError, match="cannot listen"):
        free_port("203.0.113.1", 8080)


def test_type_names():
    assert type_name(MarkerArray) == "visualization_msgs/msg/MarkerArray"


@pytest.mark.node
def test_alone_in_the_graph_it_serves_its_page_and_says_what_is_missing(ros):
    dashboard = ros.add(Dashboard, {"port": 0}, "/lonely")
    with urllib.request.urlopen(dashboard.page.address, timeout=20) as answer:
        assert b"<html" in answer.read().lower()
    assert dashboard.page.address.startswith("http://127.0.0.1:")
    wait_until(lambda: dashboard._looked >= 0.0, 20.0, "a look at the graph")
    assert [panel.present for panel in dashboard.panels] == [False] * 5
    assert "is not running" in dashboard.panels[0].notice()
    state, _ = dashboard._header()
    for name in ("kin_solvers", "ft_controller", "gpu_kinematics", "continuum_ik", "hier_ik"):
        assert f"{name}: off" in state
    # Buttons without their system say so, and nothing breaks.
    arm = next(panel for panel in dashboard.panels if panel.key == "Arm")
    arm.inject("Kill", 0)
    wait_until(lambda: "does not answer" in arm.message, 20.0, "a sentence")
    cuik = next(panel for panel in dashboard.panels if panel.key == "Cuik")
    cuik.solve("bennett", 0.1)
    wait_until(lambda: "does not answer" in cuik.message, 20.0, "a sentence")
    cuik.cancel()


class Rods(KinNode[ParameterSet]):
    """Listens where continuum_ik does, and says where its platform is, as that would."""

    def __init__(self, **arguments):
        super().__init__("continuum_ik", ParameterSet, **arguments)
        self.targets = []

    def configure(self):
        self.listen(PoseStamped, "continuum_ik/target", self.targets.append)
        self.pose = self.publish_to(PoseStamped, "continuum_ik/platform_pose")
        self.every(0.1, lambda: self.pose.publish(PoseStamped()))


@pytest.mark.node
def test_a_handle_that_is_dragged_sends_targets_and_only_an_eager_page_listens_unseen(ros):
    rods = ros.add(Rods)
    dashboard = ros.add(Dashboard, {"port": 0, "eager": True})
    panel = next(panel for panel in dashboard.panels if panel.key == "Rods")
    wait_until(lambda: panel.pose is not None, 20.0, "the platform")
    assert panel.listening

    def drag(phase, height):
        panel.handle.arrows.position = (0.0, 0.1, height)
        panel.handle.changed(phase)
        return len(rods.targets) > 0

    wait_until(lambda: drag("update", 1.0), 20.0, "a target")
    # Held: it stays where it was dragged, whatever the platform does.
    ros.run_on(dashboard, panel.draw)
    assert panel.handle.held
    assert panel.handle.position == pytest.approx([0.0, 0.1, 1.0])
    drag("end", 1.8)
    wait_until(lambda: rods.targets[-1].pose.position.z == pytest.approx(0.5), 20.0, "the last one")
    panel.handle.let_go()
    ros.run_on(dashboard, panel.draw)
    assert panel.handle.position == pytest.approx([0.0, 0.0, 0.0])  # it follows again
    # Nobody looks: nothing is heard any more.
    changed = Parameter("eager", value=False)
    assert ros.run_on(dashboard, lambda: dashboard.set_parameters([changed]))[0].successful
    dashboard._looked = -100.0
    wait_until(lambda: not panel.listening, 20.0, "the page to rest")
    wait_until(lambda: ros.node.count_subscribers("/continuum_ik/platform_pose") == 0, 20.0, "it")


@pytest.mark.node
def test_it_closes_its_port_on_cleanup_and_opens_again(ros):
    dashboard = ros.add(Dashboard, {"port": 0})
    for _ in range(2):
        port = dashboard.page.server.get_port()
        ros.run_on(dashboard, dashboard.trigger_deactivate)
        ros.run_on(dashboard, dashboard.trigger_cleanup)
        assert dashboard.page is None
        assert free_port("127.0.0.1", port) == port
        ros.run_on(dashboard, dashboard.trigger_configure)
        ros.run_on(dashboard, dashboard.trigger_activate)
        with urllib.request.urlopen(dashboard.page.address, timeout=20) as answer:
            assert answer.status == 200
