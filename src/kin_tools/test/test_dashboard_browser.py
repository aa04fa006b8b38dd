"""The dashboard in a real browser, with the real systems behind it.

Pictures for the documentation are taken here too: KINSTACK_PICTURES=docs/images keeps them.
"""

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from domain_coordinator import domain_id
from geometry_msgs.msg import PoseStamped
from kin_interfaces.msg import FtProcessor, FtStatus, Manifold
from kin_interfaces.srv import CheckReady
from PIL import Image

from kin_common.qos import LATCHED
from kin_common.testing import RosGraph, wait_until
from kin_tools.dashboard.node import PANELS, Dashboard

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
PICTURES = os.environ.get("KINSTACK_PICTURES", "")
KEYS = [panel.key for panel in PANELS]

pytestmark = [
    pytest.mark.stack,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]

#: What the launch file is told: no page of its own, and no benchmark motion to fight the drag.
ARGUMENTS = ["dashboard:=false", "continuum_source:=none", "delta_fleet:=64"]


class Browser:
    """One page in headless Chromium, and everything it complained about or asked for."""

    def __init__(self, playwright, address, width=1280, height=720, touch=False):
        self.browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        context = self.browser.new_context(
            viewport={"width": width, "height": height}, has_touch=touch, is_mobile=touch
        )
        self.page = context.new_page()
        self.page.set_default_timeout(60_000)
        self.errors, self.foreign = [], []
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self._asked(request.url, address))
        self.page.goto(address, wait_until="domcontentloaded")
        self.page.locator("canvas").first.wait_for()
        self.page.get_by_role("button", name="All", exact=True).wait_for(state="attached")

    def _said(self, message):
        if message.type == "error":
            self.errors.append(message.text)

    def _asked(self, url, address):
        if not url.startswith((address, "data:", "blob:", address.replace("http", "ws"))):
            self.foreign.append(url)

    def show(self, key):
        self.page.get_by_role("button", name=key, exact=True).click()

    def picture(self, name):
        """Take a screenshot; returns it as an array, and keeps it if pictures are wanted."""
        with contextlib.suppress(Exception):  # viser's notice that there is no GPU here
            self.page.locator(".mantine-Notification-closeButton").first.click(timeout=300)
        path = Path(PICTURES or os.environ.get("TMPDIR", "/tmp")) / f"dashboard_{name}.png"
        self.page.screenshot(path=path)
        with Image.open(path) as image:
            pixels = np.asarray(image.convert("RGB")).astype(int)
            if PICTURES:
                image.convert("P", palette=Image.Palette.ADAPTIVE, colors=128).save(
                    path, optimize=True
                )
        return pixels


@pytest.fixture(scope="module")
def playwright():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="module")
def graph():
    """The full stack from its launch file, and the dashboard beside it."""
    with domain_id() as domain:
        made = RosGraph(domain)
        command = [sys.executable, "-m", "kin_tools.launch", "kin_bringup", "full_stack.launch.xml"]
        stack = psutil.Popen(
            [*command, *ARGUMENTS], env={**os.environ, "ROS_DOMAIN_ID": str(domain)}
        )
        try:
            ready = made.call(
                CheckReady, "/stack_monitor/check_ready", CheckReady.Request(wait=240.0), 260.0
            )
            assert ready.ready, ready.status.message
            made.dashboard = made.add(Dashboard, {"port": 0, "rate": 5.0})
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


@pytest.fixture(scope="module")
def browser(graph, playwright):
    made = Browser(playwright, graph.dashboard.page.address)
    wait_until(lambda: graph.dashboard.page.sessions, 30.0, "a session")
    yield made
    made.browser.close()


def heading(browser, title):
    return browser.page.get_by_text(title, exact=True).locator("visible=true").first


@pytest.mark.parametrize("panel", PANELS, ids=KEYS)
def test_every_panel_renders(graph, browser, panel):
    browser.show(panel.key)
    heading(browser, panel.title).wait_for()
    for other in PANELS:
        if other is not panel:
            folder = browser.page.get_by_role("button", name=other.title, exact=True)
            assert folder.locator("visible=true").count() == 0
    drawn = graph.dashboard.panels[KEYS.index(panel.key)]
    if panel.key == "Cuik":
        browser.page.get_by_role("button", name="Solve", exact=True).click()
        wait_until(lambda: drawn.manifold is not None, 60.0, "a manifold")
    else:
        wait_until(lambda: any(len(m) for m in drawn._markers.values()), 60.0, "markers")
    time.sleep(2.0)  # two redraws
    pixels = browser.picture(panel.key.lower())
    scene = pixels[:, :800]
    dark = (scene.max(axis=2) - scene.min(axis=2) > 60).sum()
    assert dark > 150, "nothing coloured in the scene"
    # State and diagnostics are there whatever is shown.
    for name in ("ft_controller", "continuum_ik"):
        assert browser.page.get_by_text(name).locator("visible=true").count() >= 1


def test_overview(browser):
    browser.show("All")
    time.sleep(2.0)
    browser.picture("all")


def test_a_button_kills_a_real_processor(graph, browser):
    seen = graph.listen(FtStatus, "/ft_controller/status")
    wait_until(lambda: seen and len(seen[-1].processors) > 1, 30.0, "the status")
    before = {unit.id: unit.pid for unit in seen[-1].processors}
    browser.show("Arm")
    browser.page.get_by_role("button", name="Kill", exact=True).click()

    def killed():
        unit = seen[-1].processors[0]
        return unit.state == FtProcessor.DEAD or unit.pid != before[0] or unit.restarts > 0

    wait_until(killed, 30.0, "processor 0 to be killed")
    assert {u.id: u.pid for u in seen[-1].processors if u.id} == {
        number: pid for number, pid in before.items() if number
    }
    time.sleep(0.5)
    browser.picture("arm")
    browser.page.get_by_role("button", name="Heal", exact=True).click()


def test_a_drag_moves_the_real_platform(graph, browser):
    panel = graph.dashboard.panels[KEYS.index("Rods")]
    browser.show("Rods")
    wait_until(lambda: panel.pose is not None and panel.handle.visible, 60.0, "the handle")
    poses = graph.listen(PoseStamped, "/continuum_ik/platform_pose")
    wait_until(lambda: poses, 30.0, "a pose")
    time.sleep(2.0)
    session = graph.dashboard.page.sessions[0]
    start = np.array([getattr(poses[-1].pose.position, axis) for axis in "xyz"])
    # The arrow that points up, two thirds of the way along it.
    grip = np.asarray(panel.place) + panel.scale * start + [0.0, 0.0, 0.36]
    x, y = on_screen(session.client.camera, grip, 1280, 720)
    mouse = browser.page.mouse
    mouse.move(x, y)
    mouse.down()
    for step in range(1, 9):
        mouse.move(x, y - 6 * step)
        time.sleep(0.1)
    mouse.up()

    def moved():
        now = np.array([getattr(poses[-1].pose.position, axis) for axis in "xyz"])
        return np.linalg.norm(now - start) > 0.01

    wait_until(moved, 20.0, "the platform to follow the drag")
    now = np.array([getattr(poses[-1].pose.position, axis) for axis in "xyz"])
    assert abs(now[2] - start[2]) > 0.8 * np.linalg.norm(now - start)  # along the arrow
    browser.picture("rods")


def on_screen(camera, point, width, height):
    """Pixel of a point in the scene, from the browser's own camera."""
    w, x, y, z = camera.wxyz
    rotation = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    local = rotation.T @ (np.asarray(point) - camera.position)  # z forward, y down
    width = height * camera.aspect
    scale = 0.5 * height / np.tan(0.5 * camera.fov)
    return 0.5 * width + scale * local[0] / local[2], 0.5 * height + scale * local[1] / local[2]


def test_solving_in_the_page_publishes_a_manifold(graph, browser):
    manifolds = graph.listen(Manifold, "/kin_solvers/manifold", LATCHED)
    browser.show("Cuik")
    browser.page.get_by_role("button", name="Solve", exact=True).click()
    wait_until(lambda: len(manifolds) >= 1 and manifolds[-1].box_count > 0, 60.0, "a manifold")
    assert manifolds[-1].mechanism


def test_the_keyboard_reaches_the_views(browser):
    button = browser.page.get_by_role("button", name="Delta", exact=True)
    button.focus()
    browser.page.keyboard.press("Enter")
    heading(browser, "Delta robots").wait_for()
    browser.page.keyboard.press("Tab")
    focused = browser.page.evaluate("document.activeElement.textContent")
    assert focused == "Rods"  # the next view


def test_a_phone_shows_it_without_scrolling_sideways(graph, playwright):
    phone = Browser(playwright, graph.dashboard.page.address, 390, 844, touch=True)
    try:
        wait_until(lambda: len(graph.dashboard.page.sessions) >= 2, 30.0, "a second session")
        time.sleep(2.0)
        wide = phone.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0
        phone.picture("phone")
        assert not phone.errors
        assert not phone.foreign
    finally:
        phone.browser.close()


def test_nothing_was_asked_of_others_and_nothing_went_wrong(browser):
    """Last: over all that the tests above did."""
    assert not browser.foreign
    assert not browser.errors
