"""One open page: what it shows, and from where it looks."""

import contextlib
from types import SimpleNamespace

import numpy as np
import pytest
from page_scenes import Maker, connected

from kin_dashboard.delta import DeltaPanel
from kin_dashboard.page import OVERVIEW, Session
from kin_dashboard.tower import TowerPanel


def opened(aspect):
    camera = SimpleNamespace(aspect=aspect)
    client = SimpleNamespace(
        gui=Maker(), scene=Maker(), camera=camera, atomic=contextlib.nullcontext
    )
    panels = [connected(DeltaPanel), connected(TowerPanel)]
    return Session(client, panels, lambda: ("<b>9 of 9</b>", "<i>fine</i>")), client


def visible(client):
    return [f.arguments[0] for f in client.scene.made if f.kind == "add_frame" and f.visible]


def test_it_begins_with_the_first_panel_and_draws_no_other():
    session, client = opened(1.6)
    assert session.shown == "Delta"
    assert visible(client) == ["/delta"]
    session.show("Tower")
    assert visible(client) == ["/tower"]
    session.show(OVERVIEW)
    assert visible(client) == ["/delta", "/tower"]


def test_the_stack_is_shown_whatever_panel_is():
    session, client = opened(1.6)
    for key in ("Delta", "Tower", OVERVIEW):
        session.show(key)
        session.update()
        assert "<b>9 of 9</b>" in client.gui.html()
        assert "<i>fine</i>" in client.gui.html()


@pytest.mark.parametrize("key", ["Delta", "Tower", OVERVIEW])
def test_a_phone_looks_from_further_away_and_below_what_stands_above_its_controls(key):
    views = {}
    for aspect in (1.6, 0.5):
        session, client = opened(aspect)
        session.show(key)
        views[aspect] = (np.array(client.camera.position), np.array(client.camera.look_at))
    (eye, target), (far, below) = views[1.6], views[0.5]
    assert np.linalg.norm(far - below) > np.linalg.norm(eye - target)
    assert below[2] < target[2]
    assert below[:2] == pytest.approx(target[:2])
