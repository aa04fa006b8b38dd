"""What a node is made with: mailboxes, diagnostics."""

import threading

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from echo_node import Echo, change
from kin_interfaces.srv import CheckReady
from lifecycle_msgs.msg import Transition

from kin_testing.fixtures import wait_until

pytestmark = pytest.mark.node


def test_a_mailbox_follows_the_lifecycle_and_tells_of_errors(ros):
    node = ros.add(Echo)
    seen = []

    def handle(item):
        seen.append(item)
        if item < 0:
            raise ValueError("a negative item")

    box = node.mailbox("sorting", handle, limit=5)
    box.put(-1)
    box.put(1)
    wait_until(lambda: seen == [-1, 1], 60.0, "the items")
    assert "sorting: ValueError: a negative item" in node.diagnostics.status().message
    assert change(ros, Transition.TRANSITION_DEACTIVATE)
    box.put(2)
    wait_until(lambda: box.handled == 3, 60.0, "the item to be passed over")
    assert change(ros, Transition.TRANSITION_ACTIVATE)
    box.put(3)
    wait_until(lambda: seen == [-1, 1, 3], 60.0, "the next item")
    assert change(ros, Transition.TRANSITION_DEACTIVATE)
    assert change(ros, Transition.TRANSITION_CLEANUP)
    assert not any(thread.name == "sorting" for thread in threading.enumerate())


def test_diagnostics_once_a_second(ros):
    ros.add(Echo)
    for _ in range(5):
        ros.call(CheckReady, "/echo/work", CheckReady.Request())
    messages = ros.collect(DiagnosticArray, "/diagnostics", count=3, timeout=60)
    status = messages[-1].status[0]
    values = {item.key: item.value for item in status.values}
    assert status.name == "/echo"
    assert values["state"] == "active"
    assert values["work total"] == "5"
    assert float(values["work p99 [ms]"]) >= float(values["work p50 [ms]"]) > 0
    stamps = [m.header.stamp.sec + 1e-9 * m.header.stamp.nanosec for m in messages]
    assert 0.5 < (stamps[2] - stamps[0]) / 2 < 3.0
