"""A handle that is dragged: it stays with the hand, and a busy node gets the last pose."""

import numpy as np
import pytest
from page_scenes import Maker

from kin_dashboard.handle import DragHandle


@pytest.fixture
def made():
    posted, moved = [], []
    handle = DragHandle(Maker(), "/h", posted.append, lambda p, q: moved.append((p, q)))
    return handle, posted, moved


def test_it_is_hidden_until_it_has_a_body_and_follows_it(made):
    handle, _, _ = made
    assert not handle.visible
    handle.follow(np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.0, 0.0, 0.0]))
    assert handle.visible
    assert handle.position == pytest.approx([1.0, 2.0, 3.0])
    handle.hide()
    assert not handle.visible


def test_a_held_one_stays_where_the_hand_is(made):
    handle, _, _ = made
    handle.follow(np.zeros(3))
    handle.changed("start")
    handle.arrows.position = (0.5, 0.0, 0.0)
    handle.follow(np.ones(3))
    assert handle.held
    assert handle.position == pytest.approx([0.5, 0.0, 0.0])
    handle.let_go()
    handle.follow(np.ones(3))
    assert handle.position == pytest.approx([1.0, 1.0, 1.0])


def test_many_updates_are_told_once_with_the_last_pose(made):
    handle, posted, moved = made
    handle.changed("start")
    assert posted == []
    for k in range(20):
        handle.arrows.position = (float(k), 0.0, 0.0)
        handle.arrows.wxyz = (1.0, 0.0, 0.0, 0.0)
        handle.changed("update")
    assert len(posted) == 1
    posted.pop()()
    assert [p[0] for p, _ in moved] == [19.0]
    handle.changed("end")
    assert len(posted) == 1
