"""The full stack from its launch file, and all that is held against it.

The security policy, the configurations of RViz and Foxglove, and the dashboard in a
real browser share one stack, because its start is what takes time. The pictures of the
documentation are taken here too: KINSTACK_PICTURES=docs/images keeps them.
"""

import contextlib
import json
import os
import runpy
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import yaml
from domain_coordinator import domain_id
from geometry_msgs.msg import PoseStamped
from kin_interfaces.msg import FtProcessor, FtStatus, HierGoal, Manifold
from kin_interfaces.srv import CheckReady
from PIL import Image
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import Marker, MarkerArray

from kin_core.urdf import load_urdf
from kin_dashboard.node import PANELS, Dashboard
from kin_ros.frames import FrameBuffer, FrameError
from kin_ros.messages import find_type
from kin_ros.qos import LATCHED
from kin_testing.fixtures import RosGraph, wait_until
from kin_tools.policy import read_policy, rights_of

ROOT = Path(__file__).resolve().parents[2]
PICTURES = os.environ.get("KINSTACK_PICTURES", "")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
]
KEYS = [panel.key for panel in PANELS]
#: Screenshots that the documentation shows, and those that were taken in this run.
SCREENSHOTS = runpy.run_path(str(ROOT / "docs" / "pictures.py"))["SCREENSHOTS"]
TAKEN: set[str] = set()
#: Pixels of the page. Drawn in software, each costs: more only for pictures that people look at.
SMALL = (860, 480)
SIZE = (1280, 720) if PICTURES else SMALL
#: Resolves when the page has drawn some frames.
FRAMES = """count => new Promise(done => {
    const next = () => count-- > 0 ? requestAnimationFrame(next) : done();
    next();
})"""

#: The first start compiles every kernel that no other test has compiled yet.
pytestmark = [pytest.mark.stack, pytest.mark.alone, pytest.mark.slow, pytest.mark.timeout(700)]
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

#: What the launch file is told: no page of its own, and few robots, for a machine without a GPU.
ARGUMENTS = ["dashboard:=false", "continuum_source:=none", "delta_fleet:=36"]


@pytest.fixture(scope="module")
def graph():
    """The full stack in processes, and the dashboard beside it."""
    with domain_id() as domain:
        made = RosGraph(domain)
        command = [sys.executable, "-m", "kin_tools.launch", "kin_bringup", "full_stack.launch.xml"]
        stack = psutil.Popen(
            [*command, *ARGUMENTS], env={**os.environ, "ROS_DOMAIN_ID": str(domain)}
        )
        try:
            ready = made.call(
                CheckReady, "/stack_monitor/check_ready", CheckReady.Request(wait=500.0), 520.0
            )
            assert ready.ready, ready.status.message
            # A page draws for a quarter of a second after each change. Drawn in software it must
            # have time for people's clicks in between.
            made.dashboard = made.add(Dashboard, {"port": 0, "rate": 1.0})
            wait_until(
                lambda: all(panel.present for panel in made.dashboard.panels), 60.0, "all systems"
            )
            yield made
        finally:
            stack.send_signal(signal.SIGINT)
            try:
                stack.wait(40)
            except psutil.TimeoutExpired:
                stack.kill()
            made.close()


def panel_of(graph, key):
    return graph.dashboard.panels[KEYS.index(key)]


def topics_of(graph):
    """Types by topic, once the graph is known whole."""
    wanted = {f"/{name}/transition_event" for name in ("kin_solvers", "hier_ik", "arm_simulator")}
    wait_until(lambda: wanted <= set(dict(graph.node.get_topic_names_and_types())), 30.0, "topics")
    return dict(graph.node.get_topic_names_and_types())


# Security ------------------------------------------------------------------------------------


@pytest.fixture
def eager(graph):
    """The dashboard listens to everything, as when a page shows all systems."""

    def choose(value):
        answer = graph.call(
            SetParameters,
            "/dashboard/set_parameters",
            SetParameters.Request(parameters=[Parameter("eager", value=value).to_parameter_msg()]),
        )
        assert answer.results[0].successful, answer.results[0].reason

    choose(True)
    yield
    choose(False)


@pytest.mark.usefixtures("eager")
def test_the_policy_is_what_the_nodes_use_and_no_more(graph):
    policy = read_policy((ROOT / "docker" / "security" / "policy.xml").read_text())
    graph.listen(TFMessage, "/tf")  # so that who shows robots listens to their joints
    del policy["/loop_closer"]  # not in the full stack; its own test holds it to its policy
    for full, (_, allowed) in policy.items():
        name = full.rsplit("/", 1)[-1]

        def differences(name=name, allowed=allowed):
            used = rights_of(graph.node, name, "/")
            # The monitor looks at this test's own client too.
            used.names["services", "request"] -= {"/test_client/get_state"}
            return [f"{name} may not {r}" for r in allowed.missing(used)] + [
                f"{name} need not {r}" for r in used.missing(allowed)
            ]

        end = time.monotonic() + 20.0
        while differences() and time.monotonic() < end:
            time.sleep(0.5)
        assert not differences()


# RViz and Foxglove -----------------------------------------------------------------------------


def rviz_displays():
    text = (ROOT / "launch" / "config" / "kinstack.rviz").read_text()
    shown = yaml.safe_load(text)["Visualization Manager"]["Displays"]
    return [display for display in shown if "Topic" in display]


def descriptions():
    """Topics of the robots that RViz draws from their descriptions."""
    text = (ROOT / "launch" / "config" / "kinstack.rviz").read_text()
    shown = yaml.safe_load(text)["Visualization Manager"]["Displays"]
    return [d["Description Topic"]["Value"] for d in shown if "Description Topic" in d]


def test_rviz_shows_every_marker_topic_with_a_fitting_qos(graph):
    topics = topics_of(graph)
    shown = set()
    for display in rviz_displays():
        topic = display["Topic"]["Value"]
        kind = display["Class"].split("/")[-1]
        assert f"visualization_msgs/msg/{kind}" in topics[topic], display["Name"]
        for offered in graph.node.get_publishers_info_by_topic(topic):
            qos = offered.qos_profile
            if display["Topic"]["Durability Policy"] == "Transient Local":
                assert qos.durability == DurabilityPolicy.TRANSIENT_LOCAL, topic
            if display["Topic"]["Reliability Policy"] == "Reliable":
                assert qos.reliability == ReliabilityPolicy.RELIABLE, topic
        shown.add(topic)
    markers = {
        topic
        for topic, types in topics.items()
        if {"visualization_msgs/msg/Marker", "visualization_msgs/msg/MarkerArray"} & set(types)
    }
    assert shown == markers


def test_foxglove_shows_what_rviz_shows_and_plots_what_exists(graph):
    topics = topics_of(graph)
    layout = json.loads((ROOT / "launch" / "config" / "kinstack.foxglove.json").read_text())
    panels = layout["configById"]
    scene = next(panel for name, panel in panels.items() if name.startswith("3D!"))
    shown = {display["Topic"]["Value"] for display in rviz_displays()}
    assert set(scene["topics"]) == shown | set(descriptions())
    assert scene["followTf"] == "world"
    text = json.dumps(layout["layout"])
    assert all(name in text for name in panels)
    paths = [path["value"] for panel in panels.values() for path in panel.get("paths", ())]
    named = [panel["topicPath"] for panel in panels.values() if "topicPath" in panel]
    named += [panel["topicToRender"] for panel in panels.values() if "topicToRender" in panel]
    assert len(paths) >= 4
    for path in paths + named:
        topic, *fields = path.split(".")
        message = find_type(topics[topic][0], "msg")
        for name in fields:
            name = name.split("[")[0]
            assert name in message.get_fields_and_field_types(), path


def test_every_frame_has_a_place_beside_the_others(graph):
    fixed = graph.listen(TFMessage, "/tf_static", LATCHED)
    wait_until(lambda: fixed, 20.0, "/tf_static")
    placed = {t.child_frame_id for t in fixed[-1].transforms if t.header.frame_id == "world"}
    for display in rviz_displays():
        kind = MarkerArray if display["Class"].endswith("Array") else Marker
        qos = LATCHED if display["Topic"]["Durability Policy"] == "Transient Local" else 10
        heard = graph.listen(kind, display["Topic"]["Value"], qos)
        if "kin_solvers" in display["Topic"]["Value"]:
            continue  # drawn when something has been solved; the examples did
        wait_until(lambda heard=heard: heard, 20.0, display["Topic"]["Value"])
        markers = heard[-1].markers if kind is MarkerArray else [heard[-1]]
        frames = {m.header.frame_id for m in markers if m.action == Marker.ADD}
        assert frames
        assert frames <= placed, display["Name"]


def test_every_link_of_every_robot_is_in_tf(graph):
    """From one root, for every robot that describes itself; as RViz and Foxglove look for it."""
    buffer = FrameBuffer()
    fixed = graph.listen(TFMessage, "/tf_static", LATCHED)
    moving = graph.listen(TFMessage, "/tf", 100)
    texts = {topic: graph.listen(String, topic, LATCHED) for topic in descriptions()}
    wait_until(lambda: fixed and all(texts.values()), 60.0, "descriptions")
    robots = [load_urdf(heard[-1].data) for heard in texts.values()]
    assert len(robots) >= 3

    def lost():
        for heard, static in ((fixed, True), (moving, False)):
            while heard:
                for stamped in heard.pop(0).transforms:
                    buffer.put(stamped, static=static)
        found = []
        for link in (link for robot in robots for link in robot.links):
            try:
                buffer.lookup("world", link)
            except FrameError:
                found.append(link)
        return found

    wait_until(lambda: not lost(), 60.0, "links in tf")


# The page ------------------------------------------------------------------------------------


def playwright_timeout():
    from playwright.sync_api import TimeoutError as Late

    return Late


class Browser:
    """One page in headless Chromium, and everything it complained about or asked for."""

    def __init__(self, chromium, address, size=SIZE, touch=False):
        self.size = dict(zip(("width", "height"), size, strict=True))
        self.context = chromium.new_context(
            viewport=self.size, has_touch=touch, is_mobile=touch, reduced_motion="reduce"
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.errors, self.foreign = [], []
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self._asked(request.url, address))
        # As sharp as on a screen, though drawn in software.
        self.page.goto(f"{address}/?fixedDpr=1", wait_until="domcontentloaded")
        self.page.locator("canvas").first.wait_for()
        self.page.get_by_role("button", name="All", exact=True).wait_for(state="attached")
        with contextlib.suppress(playwright_timeout()):  # there may be a GPU
            self.notice.wait_for(timeout=2_000)
        self.close_notice()

    @property
    def notice(self):
        """viser's notice that there is no GPU: it lies over the scene."""
        return self.page.get_by_text("Software WebGL rendering detected")

    def close_notice(self):
        """Put the notice away if it is there; on a busy machine it comes late."""
        if self.notice.is_visible():
            close = self.notice.locator("xpath=ancestor::*[.//button][1]//button").first
            close.dispatch_event("click")
            self.notice.wait_for(state="detached")

    def _said(self, message):
        if message.type == "error":
            self.errors.append(message.text)

    def _asked(self, url, address):
        if not url.startswith((address, "data:", "blob:", address.replace("http", "ws"))):
            self.foreign.append(url)

    def frames(self, count=2):
        """Wait until the page has drawn; drawn in software that may take a while."""
        self.page.evaluate(FRAMES, count)

    def show(self, key):
        self.press(key)

    def press(self, name):
        found = self.page.get_by_role("button", name=name, exact=True).locator("visible=true")
        wait_until(found.first.is_enabled, 60.0, f"the button {name}")
        # Drawn in software, the page may never stand still.
        found.first.click(force=True, no_wait_after=True)
        self.frames()

    def picture(self, name):
        """Take a screenshot; returns it as an array, and keeps it if pictures are wanted."""
        TAKEN.add(name)
        self.close_notice()
        self.page.mouse.move(2, 2)  # on nothing that would light up
        self.frames()
        path = Path(PICTURES or os.environ.get("TMPDIR", "/tmp")) / f"dashboard_{name}.png"
        self.page.screenshot(path=path)
        with Image.open(path) as image:
            assert image.size == tuple(self.page.viewport_size.values())
            pixels = np.asarray(image.convert("RGB")).astype(int)
            if PICTURES:
                small = image.convert("RGB").quantize(192, dither=Image.Dither.NONE)
                small.save(path, optimize=True)
        return pixels

    @contextlib.contextmanager
    def small(self, session):
        """A smaller page for a while: few pixels make quick frames."""
        self.page.set_viewport_size(dict(zip(("width", "height"), SMALL, strict=True)))
        self._wait_for_shape(session)
        yield
        self.page.set_viewport_size(self.size)
        self._wait_for_shape(session)

    def _wait_for_shape(self, session):
        """Wait until the dashboard knows the camera of the page as it is now."""

        def known():
            box = self.page.locator("canvas").first.bounding_box()
            return abs(session.client.camera.aspect - box["width"] / box["height"]) < 0.01

        wait_until(known, 60.0, "the camera of the page")
        self.frames()

    def drag(self, start, by, steps=6):
        """Press at a pixel, move by some, let go; each only when the page has drawn."""
        self.close_notice()
        mouse = self.page.mouse
        mouse.move(start[0] - 2.0, start[1])
        mouse.move(*start)
        self.frames()
        mouse.down()
        self.frames()
        for step in range(1, steps + 1):
            share = step / steps
            mouse.move(start[0] + share * by[0], start[1] + share * by[1])
            self.frames(1)
        mouse.up()
        self.frames(1)


@pytest.fixture(scope="module")
def chromium():
    """One browser for all pages: its start, and the first drawing, take seconds in software."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def browser(graph, chromium):
    made = Browser(chromium, graph.dashboard.page.address)
    wait_until(lambda: graph.dashboard.page.sessions, 30.0, "a session")
    yield made
    made.context.close()


def heading(browser, title):
    return browser.page.get_by_text(title, exact=True).locator("visible=true").first


def on_screen(browser, camera, point):
    """Pixel of a point in the scene, from the browser's own camera."""
    height = browser.page.locator("canvas").first.bounding_box()["height"]
    w, x, y, z = camera.wxyz
    rotation = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    local = rotation.T @ (np.asarray(point) - camera.position)  # z forward, y down
    scale = 0.5 * height / np.tan(0.5 * camera.fov)
    middle = 0.5 * height * camera.aspect, 0.5 * height
    return middle[0] + scale * local[0] / local[2], middle[1] + scale * local[1] / local[2]


#: Something of each panel that only the running system can have told.
TOLD = {
    "Cuik": "Components",
    "Arm": "votes for",
    "Delta": "Robots solved per second",
    "Rods": "margin to the fold",
    "Tower": "Worst residual",
}


def coloured(pixels):
    """Which pixels of the scene, left of the controls, are not grey."""
    return (pixels.max(axis=2) - pixels.min(axis=2))[:, :850] > 60


def settle_for_pictures(seconds):
    """Let the camera and motions come to rest where pictures are kept."""
    if PICTURES:
        time.sleep(seconds)


@in_browser
@pytest.mark.parametrize("panel", PANELS, ids=KEYS)
def test_every_panel_renders(graph, browser, panel):
    browser.show(panel.key)
    heading(browser, panel.title).wait_for()
    for other in PANELS:
        if other is not panel:
            assert browser.page.get_by_text(other.about).locator("visible=true").count() == 0
    drawn = panel_of(graph, panel.key)
    if panel.key == "Cuik":
        wait_until(lambda: drawn.manifold is not None, 60.0, "a manifold")
    wait_until(lambda: any(len(m) for m in drawn.scenes.values()), 60.0, "markers")
    browser.page.get_by_text(TOLD[panel.key]).locator("visible=true").first.wait_for()
    settle_for_pictures(1.0)  # the camera and two redraws
    wait_until(
        lambda: coloured(browser.picture(panel.key.lower())).sum() > 300,
        60.0,
        "something coloured in the scene",
    )
    # State and diagnostics are there whatever is shown, without scrolling.
    for words in ("ft_controller", "continuum_ik", "Diagnostics: "):
        found = browser.page.get_by_text(words).locator("visible=true").first
        place = wait_until(found.bounding_box, 60.0, words)  # none while it is replaced
        assert place["y"] + place["height"] < 720


@in_browser
def test_the_overview_shows_all_places(browser):
    browser.show("All")
    settle_for_pictures(1.5)

    def shown():
        columns = np.array_split(coloured(browser.picture("all")).any(axis=0), 5)
        return sum(bool(column.any()) for column in columns)

    wait_until(lambda: shown() >= 4, 60.0, "four places with something in them")


@in_browser
def test_solve_and_cancel_in_the_page(graph, browser):
    manifolds = graph.listen(Manifold, "/kin_solvers/manifold", LATCHED)
    browser.show("Cuik")
    view = graph.dashboard.page.sessions[0].view_of("Cuik")
    view.mechanism.value = "planar_four_bar"
    time.sleep(0.3)
    browser.press("Solve")
    wait_until(lambda: manifolds and manifolds[-1].mechanism == "planar_four_bar", 60.0, "solution")
    assert manifolds[-1].component_count == 2
    # One that takes longer than anybody waits: boxes finer than the page offers.
    panel = panel_of(graph, "Cuik")
    panel.solve("iiwa7", 1e-5)
    browser.page.get_by_text("boxes waiting").locator("visible=true").first.wait_for()
    browser.press("Cancel")
    wait_until(lambda: "CANCELLED" in panel.message, 30.0, "the cancelled answer")
    assert not panel.solving


@in_browser
def test_the_slider_walks_the_real_linkage_along_its_curve(graph, browser):
    panel = panel_of(graph, "Cuik")
    browser.show("Cuik")
    view = graph.dashboard.page.sessions[0].view_of("Cuik")
    view.mechanism.value, view.sigma.value = "bennett", 0.1
    time.sleep(0.3)
    browser.press("Solve")
    wait_until(lambda: panel.manifold.mechanism == "bennett" and len(panel.curve), 60.0, "a curve")
    shown = graph.listen(JointState, "/kin_solvers/show")
    drawn = graph.listen(MarkerArray, "/kin_solvers/linkage")
    slider = browser.page.get_by_role("slider").locator("visible=true").last
    slider.focus()
    before = view.curve.value
    for _ in range(5):
        browser.page.keyboard.press("ArrowRight")
        browser.frames(1)
    # All five: a late one would move the slider again below.
    wait_until(lambda: view.curve.value > before + 0.009, 60.0, "five steps of the slider")
    wait_until(lambda: shown, 60.0, "a chosen configuration")
    assert list(shown[-1].name) == list(panel.manifold.variables)
    wait_until(lambda: drawn, 60.0, "the linkage at it")
    view.curve.value = 0.18  # where the linkage is not flat
    wait_until(lambda: abs(shown[-1].position[0] - panel.curve[0][0]) > 0.3, 60.0, "a way along it")
    settle_for_pictures(2.5)  # the page is redrawn once a second here
    browser.frames(8 if PICTURES else 1)
    browser.picture("cuik")


@in_browser
def test_buttons_break_and_heal_real_processors(graph, browser):
    seen = graph.listen(FtStatus, "/ft_controller/status")
    wait_until(lambda: seen and len(seen[-1].processors) > 1, 30.0, "the status")

    def all_well():
        return seen[-1].state == FtStatus.RUN and all(
            unit.state == FtProcessor.WORKING for unit in seen[-1].processors
        )

    def settle(condition, what):
        """Wait; on a machine that is too slow for the arm it stops, and is reset by its button."""
        end = time.monotonic() + 60.0
        while not condition():
            assert time.monotonic() < end, what
            if seen[-1].state == FtStatus.STOPPED:
                browser.press("Reset after a stop")
            time.sleep(0.5)

    browser.show("Arm")
    settle(all_well, "four processors that vote")
    pids = {unit.id: unit.pid for unit in seen[-1].processors}
    for word in ("Corrupt", "Stop", "Kill"):
        browser.press(word)
        wait_until(
            lambda: seen[-1].processors[0].state != FtProcessor.WORKING, 30.0, f"{word} to work"
        )
        if word == "Stop":
            settle_for_pictures(1.0)
            browser.picture("arm")
        # The others go on, and so does the arm.
        settle(
            lambda: (
                seen[-1].state == FtStatus.RUN
                and [unit.state for unit in seen[-1].processors[1:]] == [FtProcessor.WORKING] * 3
            ),
            f"the others go on after {word}",
        )
        browser.press("Heal")
        settle(all_well, f"all vote again after {word}")
    now = {unit.id: unit.pid for unit in seen[-1].processors}
    assert now[0] != pids[0]  # it was killed, and another one took its place
    assert {k: v for k, v in now.items() if k} == {k: v for k, v in pids.items() if k}


@in_browser
def test_a_batch_of_delta_robots_is_solved_from_the_page(graph, browser):
    panel = panel_of(graph, "Delta")
    browser.show("Delta")
    browser.press("Solve a batch")
    wait_until(lambda: panel.last is not None, 30.0, "an answer")
    assert panel.last[0] == 100_000
    heading(browser, "Last batch").wait_for()
    settle_for_pictures(0.5)
    browser.picture("delta")


def drag_arrow(browser, session, panel, axis, by, done):
    """Drag an arrow of a panel's handle until something has come of it.

    The arrows are as long as the handle's scale; their heads are what is easiest to hit.
    """
    for reach in (0.32, 0.26, 0.38):
        grip = np.asarray(panel.place) + panel.handle.position + reach * np.eye(3)[axis]
        browser.drag(on_screen(browser, session.client.camera, grip), by)
        end = time.monotonic() + 5.0
        while time.monotonic() < end:
            if done():
                return
            time.sleep(0.1)
    browser.picture("missed")
    raise AssertionError("the handle was not moved")


@in_browser
def test_a_drag_moves_the_real_platform(graph, browser):
    panel = panel_of(graph, "Rods")
    browser.show("Rods")
    wait_until(lambda: panel.handle.visible, 60.0, "the handle")
    asked = graph.listen(PoseStamped, "/continuum_ik/target")
    poses = graph.listen(PoseStamped, "/continuum_ik/platform_pose")
    session = graph.dashboard.page.sessions[0]
    start = panel.handle.position / panel.scale
    with browser.small(session):
        drag_arrow(browser, session, panel, 2, (0.0, -30.0), lambda: asked)
    goal = np.array([getattr(asked[-1].pose.position, axis) for axis in "xyz"])
    moved = goal - start
    assert np.linalg.norm(moved) > 0.01
    assert moved[2] > 0.8 * np.linalg.norm(moved)  # along the arrow

    def there():
        if not poses:
            return False
        now = np.array([getattr(poses[-1].pose.position, axis) for axis in "xyz"])
        last = np.array([getattr(asked[-1].pose.position, axis) for axis in "xyz"])
        return np.linalg.norm(now - last) < 1e-3

    wait_until(there, 30.0, "the platform to go where it was dragged")
    browser.frames(4)
    browser.picture("rods")


@in_browser
def test_a_drag_moves_a_plate_of_the_real_tower(graph, browser):
    panel = panel_of(graph, "Tower")
    browser.show("Tower")
    wait_until(lambda: "P6" in panel.grips, 60.0, "the plates")
    session = graph.dashboard.page.sessions[0]
    session.view_of("Tower").link.value = "P6"
    wait_until(lambda: panel.handle.visible, 60.0, "the handle")
    seen = graph.listen(MarkerArray, "/hier_ik/markers")
    asked = graph.listen(HierGoal, "/hier_ik/goal")

    def hold():
        """Pull the plate to where it is: the built-in motion waits. Returns its x."""
        heard = len(asked)

        def done():
            graph.dashboard.post(lambda: panel.drag("P6", panel.grips["P6"]))
            time.sleep(0.2)
            return len(asked) > heard

        wait_until(done, 30.0, "the hold")
        return asked[-1].target.position.x

    hold()
    with browser.small(session):
        held = hold()  # the page took its time, and the motion may have begun again
        panel.handle.let_go()
        wait_until(
            lambda: np.abs(panel.handle.position - panel.scale * panel.grips["P6"]).max() < 5e-3,
            60.0,
            "the handle to go to the plate",
        )
        browser.frames(3)
        heard = len(asked)
        drag_arrow(browser, session, panel, 0, (24.0, 0.0), lambda: len(asked) > heard)
    wait_until(lambda: asked[-1].target.position.x > held + 0.1, 60.0, "the end of the drag")
    assert (asked[-1].link, asked[-1].kind) == ("P6", "position")

    def follows():
        plate = next((m for m in seen[-1].markers if m.text == "P6"), None) if seen else None
        if plate is None:
            return False
        return plate.pose.position.x - held > 0.7 * (asked[-1].target.position.x - held)

    wait_until(follows, 30.0, "the plate to go there")
    browser.frames(4)
    browser.picture("tower")
    browser.press("Let go")


@in_browser
def test_the_keyboard_reaches_everything(browser):
    browser.page.get_by_role("button", name="All", exact=True).focus()
    reached = []
    for _ in range(25):
        reached.append(browser.page.evaluate("document.activeElement.textContent"))
        browser.page.keyboard.press("Tab")
    assert reached[: len(KEYS) + 1] == ["All", *KEYS]
    browser.page.get_by_role("button", name="Delta", exact=True).focus()
    browser.page.keyboard.press("Enter")
    heading(browser, "Delta robots").wait_for()
    reached = []
    for _ in range(12):
        browser.page.keyboard.press("Tab")
        reached.append(browser.page.evaluate("document.activeElement.textContent"))
    assert "Solve a batch" in reached


def heard_by_the_dashboard(graph):
    """Topics of the systems that the dashboard is subscribed to, but for the goals it has set."""
    topics = graph.node.get_subscriber_names_and_types_by_node("dashboard", "/")
    always = {"/parameter_events", "/diagnostics", "/stack_state", "/clock"}
    return {topic for topic, _ in topics if "/_action/" not in topic} - always


@in_browser
def test_it_listens_only_to_what_a_page_shows(graph, browser):
    def nodes():
        return {topic.split("/")[1] for topic in heard_by_the_dashboard(graph)}

    browser.show("Rods")
    wait_until(lambda: nodes() == {"continuum_ik"}, 30.0, "nothing but the rods to be heard")
    browser.show("Tower")
    wait_until(lambda: nodes() == {"hier_ik"}, 30.0, "nothing but the tower to be heard")
    browser.show("All")
    wait_until(lambda: len(nodes()) >= 5, 30.0, "everything to be heard")


@in_browser
def test_nothing_was_asked_of_others_and_nothing_went_wrong(graph, browser):
    """Over all that the tests above did; and when the page is closed, nothing is heard."""
    assert not browser.foreign
    assert not browser.errors
    assert set(SCREENSHOTS) >= TAKEN
    browser.context.close()
    wait_until(lambda: not graph.dashboard.page.sessions, 30.0, "the page to be closed")
    wait_until(lambda: not heard_by_the_dashboard(graph), 30.0, "nothing to be heard")


# Pages of their own, when the large one is closed: two at once draw at half the speed.


@in_browser
def test_a_phone_shows_it_without_scrolling_sideways(graph, chromium):
    phone = Browser(chromium, graph.dashboard.page.address, (390, 844), touch=True)
    try:
        wait_until(lambda: graph.dashboard.page.sessions, 30.0, "a session")
        settle_for_pictures(1.0)
        phone.frames(10)
        wide = phone.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0
        phone.picture("phone")
        assert not phone.errors
        assert not phone.foreign
    finally:
        phone.context.close()


@in_browser
def test_a_page_without_any_system_says_so(graph, chromium):
    lonely = graph.add(Dashboard, {"port": 0}, "/lonely")
    alone = Browser(chromium, lonely.page.address)
    try:
        for panel in PANELS:
            alone.show(panel.key)
            alone.page.get_by_text(f"{panel.node_names[0]} is not running.").wait_for()
            alone.page.get_by_text(f"{panel.node_names[0]}: off").wait_for()
        assert not alone.errors
        assert not alone.foreign
    finally:
        alone.context.close()
