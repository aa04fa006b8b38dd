"""The dashboard's node without a browser."""

import socket
import urllib.request

import pytest
from diagnostic_msgs.msg import DiagnosticStatus

from kin_core.errors import KinError
from kin_dashboard.node import Dashboard, free_port
from kin_testing.fixtures import wait_until


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


@pytest.mark.node
def test_alone_in_the_graph_it_serves_its_page_and_says_what_is_missing(ros):
    dashboard = ros.add(Dashboard, {"port": 0}, "/lonely")
    with urllib.request.urlopen(dashboard.page.address, timeout=60) as answer:
        assert b"<html" in answer.read().lower()
    assert dashboard.page.address.startswith("http://127.0.0.1:")
    wait_until(lambda: dashboard.looked >= 0.0, 60.0, "a look at the graph")
    assert [panel.present for panel in dashboard.panels] == [False] * 5
    assert "is not running" in dashboard.panels[0].notice()
    state, _ = dashboard.header()
    for name in ("kin_solvers", "ft_controller", "gpu_kinematics", "continuum_ik", "hier_ik"):
        assert f"{name}: off" in state
    # Buttons without their system say so, and nothing breaks.
    arm = next(panel for panel in dashboard.panels if panel.key == "Arm")
    arm.inject("Kill", 0)
    wait_until(lambda: "does not answer" in arm.message, 60.0, "a sentence")
    cuik = next(panel for panel in dashboard.panels if panel.key == "Cuik")
    cuik.solve("bennett", 0.1)
    wait_until(lambda: "does not answer" in cuik.message, 60.0, "a sentence")
    cuik.cancel()


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
        with urllib.request.urlopen(dashboard.page.address, timeout=60) as answer:
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
    monkeypatch.setattr("kin_ros.diagnostics.SHOWN", 0.5)
    dashboard = ros.add(Dashboard, {"port": 0, "rate": 20.0})
    drawn = {panel.key: 0 for panel in dashboard.panels}
    for panel in dashboard.panels:
        monkeypatch.setattr(
            panel, "draw", lambda key=panel.key: drawn.update({key: drawn[key] + 1})
        )
        dashboard.guarded[f"panel {panel.key}"].action = panel.draw
    page, other = Looking(), Looking()
    dashboard.page.clients.update({1: page, 2: other})
    wait_until(lambda: min(drawn.values()) > 2 and page.updates > 2, 60.0, "pages to be drawn")
    arm = dashboard.guarded["panel Arm"]

    def broken():
        raise RuntimeError("deque mutated during iteration")

    usual, arm.action = arm.action, broken
    wait_until(lambda: arm.failures > 3, 60.0, "the panel to fail")
    before = dict(drawn)
    wait_until(
        lambda: all(drawn[key] > before[key] + 2 for key in drawn if key != "Arm"), 60.0, "others"
    )
    shown = dashboard.diagnostics.status()
    assert shown.level == DiagnosticStatus.ERROR
    assert "panel Arm: RuntimeError: deque mutated" in shown.message
    arm.action = usual
    wait_until(lambda: drawn["Arm"] > before["Arm"] + 2, 60.0, "the panel to be drawn again")
    wait_until(
        lambda: dashboard.diagnostics.status().level == DiagnosticStatus.OK, 60.0, "its recovery"
    )
    page.broken = 3
    wait_until(
        lambda: page.broken == 0 and page.updates > other.updates - 2, 60.0, "the other page"
    )
    dashboard.page.clients.clear()
