"""The panel of the large linkage."""

import numpy as np
from kin_interfaces.srv import LoadLinkage
from page_scenes import Maker, connected
from visualization_msgs.msg import Marker, MarkerArray

from kin_dashboard.tower import TowerPanel

GOALS = ("/hier_ik/goal", "kin_interfaces/msg/HierGoal")


def tower():
    panel = connected(TowerPanel, GOALS)
    plates = [Marker(ns="grips", text=f"P{k}") for k in (1, 2, 3)]
    for k, plate in enumerate(plates):
        plate.pose.position.z = float(k)
    panel.saw_markers(MarkerArray(markers=[*plates, Marker(ns="links", text="not a grip")]))
    return panel


def test_only_known_plates_are_dragged_to_where_the_handle_is():
    panel = tower()
    panel.drag("none", np.zeros(3))
    assert panel.node.published == []
    assert "Choose a plate" in panel.message
    panel.drag("P2", np.array([0.1, 0.2, 1.5]))
    ((topic, goal),) = panel.node.published
    assert (topic, goal.link, goal.priority) == ("/hier_ik/goal", "P2", -1)
    where = goal.target.position
    assert (where.x, where.y, where.z) == (0.1, 0.2, 1.5)


def test_letting_go_takes_back_every_drag_but_the_linkages_own():
    panel = tower()
    for name in ("P1", "P2", "P3"):
        panel.drag(name, np.zeros(3))
    panel.node.published.clear()
    panel.release()
    # P3 is the top, whose goal is the linkage's own.
    assert [(g.name, g.remove) for _, g in panel.node.published] == [
        ("drag:P1", True),
        ("drag:P2", True),
    ]


def test_a_new_tower_forgets_the_old_one():
    panel, gui = tower(), Maker()
    view = panel.view(gui)
    assert view.link.arguments[1] == ["none", "P3", "P2", "P1"]
    panel.grab("P2")
    assert panel.handle.visible
    panel.load(7)
    ((request, future),) = panel.node.clients["hier_ik/load"].sent
    assert (request.preset, request.blocks) == ("tower", 7)
    future.set_result(LoadLinkage.Response(links=1))
    assert (panel.grips, panel.link) == ({}, "")
    assert not panel.handle.visible
    view.update()
    assert view.link.options == ["none"]
