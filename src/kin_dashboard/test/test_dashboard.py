"""The dashboard without a browser: drawing, wording, and the node alone in the graph."""

import socket
import urllib.request

import numpy as np
import pytest
import viser
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import Point, PoseStamped
from kin_interfaces.msg import FtProcessor, FtStatus, NodeState
from rclpy.parameter import Parameter
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from kin_core.errors import KinError
from kin_dashboard.controller import ControllerPanel
from kin_dashboard.cuik import along_curve
from kin_dashboard.markers import MarkerScene
from kin_dashboard.node import Dashboard, free_port
from kin_dashboard.panel import type_name
from kin_dashboard.stack import diagnostics_html, state_html
from kin_dashboard.style import GOOD, IDLE, SERIES, WARN, WRONG, notice, rgb, table
from kin_ros.node import KinNode
from kin_ros.parameters import ParameterSet
from kin_testing.fixtures import wait_until


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
    wait_until(lambda: dashboard.looked >= 0.0, 20.0, "a look at the graph")
    assert [panel.present for panel in dashboard.panels] == [False] * 5
    assert "is not running" in dashboard.panels[0].notice()
    state, _ = dashboard.header()
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
    dashboard.looked = -100.0
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


class Looking:
    """An open page, as far as the redrawing knows."""

    shown = "All"

    def __init__(self):
        self.updates = 0
        self.broken = 0

    def update(self):
        self.updates += 1
        if self.broken > 0:
            self.broken -= 1
            raise RuntimeError("the page broke")


@pytest.mark.node
def test_a_panel_that_failed_once_recovers_and_the_others_go_on(ros, monkeypatch):
    monkeypatch.setattr("kin_ros.diagnostics._SHOWN", 0.5)
    dashboard = ros.add(Dashboard, {"port": 0, "rate": 20.0})
    drawn = {panel.key: 0 for panel in dashboard.panels}
    for panel in dashboard.panels:
        monkeypatch.setattr(
            panel, "draw", lambda key=panel.key: drawn.update({key: drawn[key] + 1})
        )
        dashboard.guarded[f"panel {panel.key}"].action = panel.draw
    page, other = Looking(), Looking()
    dashboard.page.clients.update({1: page, 2: other})
    wait_until(lambda: min(drawn.values()) > 2 and page.updates > 2, 20.0, "pages to be drawn")
    arm = dashboard.guarded["panel Arm"]

    def broken():
        raise RuntimeError("deque mutated during iteration")

    usual, arm.action = arm.action, broken
    wait_until(lambda: arm.failures > 3, 20.0, "the panel to fail")
    before = dict(drawn)
    wait_until(
        lambda: all(drawn[key] > before[key] + 2 for key in drawn if key != "Arm"), 20.0, "others"
    )
    shown = dashboard.diagnostics.status()
    assert shown.level == DiagnosticStatus.ERROR
    assert "panel Arm: RuntimeError: deque mutated" in shown.message
    arm.action = usual
    wait_until(lambda: drawn["Arm"] > before["Arm"] + 2, 20.0, "the panel to be drawn again")
    wait_until(
        lambda: dashboard.diagnostics.status().level == DiagnosticStatus.OK, 20.0, "its recovery"
    )
    page.broken = 3
    wait_until(
        lambda: page.broken == 0 and page.updates > other.updates - 2, 20.0, "the other page"
    )
    dashboard.page.clients.clear()


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


@pytest.mark.node
def test_a_refused_target_is_shown_with_its_sentence(ros):
    dashboard = ros.add(Dashboard, {"port": 0})
    panel = next(panel for panel in dashboard.panels if panel.key == "Rods")
    panel.present = True
    status = DiagnosticStatus(
        name="/continuum_ik", level=DiagnosticStatus.WARN, message="target: too far <b>away</b>"
    )
    ros.publish(DiagnosticArray, "/diagnostics", DiagnosticArray(status=[status]))
    wait_until(lambda: "continuum_ik" in dashboard.diagnoses, 20.0, "the diagnostics")
    assert "target: too far &lt;b&gt;away" in panel.notice()


class Gui:
    """Widgets that remember what they were made with."""

    def __init__(self):
        self.made = []

    def __getattr__(self, kind):
        def make(*arguments, **options):
            class Widget:
                content = ""
                value = arguments[1] if len(arguments) > 1 else None

                def on_click(self, _):
                    return None

                on_update = on_click

            widget = Widget()
            self.made.append((kind, arguments, widget))
            return widget

        return make


def test_a_stopped_arm_shows_no_green_votes_and_reset_stands_at_the_top():
    class Stub(ControllerPanel):
        def __init__(self):
            self.swinging, self.history = True, []
            self.status = FtStatus(
                state=FtStatus.STOPPED,
                reason="joint states are missing",
                processors=[FtProcessor(id=i, state=FtProcessor.WORKING) for i in range(4)],
            )

        def notice(self):
            return ""

    gui = Gui()
    view = Stub().view(gui)
    view.swing.value = True
    view.update()
    html = "".join(getattr(widget, "content", "") for _, _, widget in gui.made)
    assert "The arm is stopped: joint states are missing" in html
    assert html.count("stands by") == 4
    assert ": votes<" not in html
    kinds = [kind for kind, _, _ in gui.made]
    buttons = [arguments[0] for kind, arguments, _ in gui.made if kind == "add_button"]
    assert buttons[0] == "Reset after a stop"
    assert kinds.index("add_button") < kinds.index("add_dropdown")
    goal = next(arguments[1] for kind, arguments, _ in gui.made if kind == "add_vector2")
    assert np.hypot(*goal) > 0.3  # not where the arm would have to fold up
    # An arm that would fall is kept up by the votes, and says so.
    view.panel.status.kept_up, view.panel.status.reason = True, "asked for; kept up at rest"
    view.update()
    html = "".join(getattr(widget, "content", "") for _, _, widget in gui.made)
    assert "The arm is stopped: asked for; kept up at rest" in html and "stands by" not in html
    view.panel.status.state = FtStatus.RAMP
    view.update()
    html = "".join(getattr(widget, "content", "") for _, _, widget in gui.made)
    assert "The arm is brought to rest: asked for" in html
    view.panel.status.state = FtStatus.RUN
    view.update()
    html = "".join(getattr(widget, "content", "") for _, _, widget in gui.made)
    assert html.count(": votes<") == 4


def test_a_simulated_arm_is_kept_moving_and_a_real_one_never_is():
    asked = []

    class Stub(ControllerPanel):
        def __init__(self, there):
            self.swinging, self._turn, self.still_since, self._move = True, 0, 0.0, None
            self.there, self.scenes = there, {}

        def ask(self, client, request, **_):
            asked.append((request.x, request.y))

    for _ in range(5):
        real = Stub({"ft_controller"})
        real.draw()
    assert asked == []
    simulated = Stub({"ft_controller", "arm_simulator"})
    simulated.draw()
    assert len(asked) == 1
    simulated.draw()  # not at rest yet
    assert len(asked) == 1
    simulated.swinging, simulated.still_since = False, 0.0
    simulated.draw()
    assert len(asked) == 1
