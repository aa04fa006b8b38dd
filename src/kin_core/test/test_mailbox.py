"""The mailbox: order, what gives way, what is counted, and what it does about errors."""

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kin_core.mailbox import Mailbox
from kin_testing.fixtures import wait_until


class Gate:
    """A handler that holds the thread until it is opened."""

    def __init__(self):
        self.seen, self.began, self.open = [], threading.Event(), threading.Event()

    def __call__(self, item):
        self.began.set()
        assert self.open.wait(60.0)
        self.seen.append(item)


def held(limit):
    """A mailbox whose thread is busy with item 0."""
    gate = Gate()
    box = Mailbox("test", gate, on_error=pytest.fail, limit=limit)
    assert box.put(0)
    assert gate.began.wait(20.0)
    return box, gate


def test_order_is_kept_and_the_oldest_gives_way():
    box, gate = held(limit=2)
    assert [box.put(n) for n in (1, 2, 3, 4)] == [True, True, False, False]
    gate.open.set()
    wait_until(lambda: box.handled == 3, 60.0, "three items")
    assert gate.seen == [0, 3, 4]
    box.close()
    assert (box.received, box.dropped, box.handled) == (5, 2, 3)
    assert not any(t.name == "test" for t in threading.enumerate())
    assert box.put(5)
    assert (gate.seen, box.received) == ([0, 3, 4], 5)


def test_what_waits_can_be_forgotten():
    box, gate = held(limit=3)
    for n in (1, 2):
        box.put(n)
    box.clear()
    box.put(3)
    gate.open.set()
    wait_until(lambda: box.handled == 2, 60.0, "two items")
    assert gate.seen == [0, 3]
    assert box.dropped == 2
    box.close()


def test_an_error_is_told_and_the_next_item_is_handled():
    told, seen = [], []

    def handle(item):
        if item == 0:
            raise ValueError("the first one")
        seen.append(item)

    box = Mailbox("test", handle, on_error=told.append, limit=9)
    for n in range(3):
        box.put(n)
    wait_until(lambda: box.handled == 3, 60.0, "all items")
    assert [str(error) for error in told] == ["the first one"]
    assert seen == [1, 2]
    box.close()


def test_a_handler_may_close_its_own_mailbox():
    box = Mailbox("test", lambda _: box.close(), on_error=pytest.fail)
    box.put(1)
    wait_until(lambda: box.handled == 1, 60.0, "the item")
    assert box.put(2)
    assert box.received == 1


def test_it_cannot_be_made_without_a_place_or_an_error_handler():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        Mailbox("test", print, on_error=pytest.fail, limit=0)
    with pytest.raises(TypeError, match="on_error"):
        Mailbox("test", print)


@settings(max_examples=50, deadline=None)
@given(limit=st.integers(1, 5), items=st.lists(st.integers(), max_size=20))
def test_the_newest_survive_and_every_item_is_counted_once(limit, items):
    box, gate = held(limit)
    for item in items:
        box.put(item)
    gate.open.set()
    wait_until(lambda: box.handled == 1 + min(limit, len(items)), 60.0, "the rest")
    box.close()
    assert gate.seen == [0, *items[-limit:]]
    assert box.received == box.dropped + box.handled == 1 + len(items)
