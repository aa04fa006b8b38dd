"""Nodes without DDS: messages go straight into their handlers."""

import pytest
from bag_scenes import QUESTIONS, Adder
from kin_interfaces.srv import CheckReady
from rclpy.serialization import deserialize_message, serialize_message

from kin_bags.ask import read_exchanges
from kin_bags.core import CoreTarget, find_node_class
from kin_core.errors import InvalidInput

pytestmark = pytest.mark.node


@pytest.fixture
def target():
    made = CoreTarget([find_node_class("kin_monitor.node:StackMonitor")])
    yield made
    made.close()


def test_core_replay_needs_no_running_node(target):
    """Messages go straight into a node class; only what needs no timer can be asked."""
    (node,) = target.nodes
    assert set(node.services_held) == {"/stack_monitor/check_ready"}
    (question,) = read_exchanges(QUESTIONS[2:], "q")
    raw = target.ask(question.exchange, bytes(serialize_message(question.request)))
    answer = deserialize_message(raw, CheckReady.Response)
    assert answer.status.code == answer.status.INVALID_INPUT
    assert "wait" in answer.status.message
    node.timers_held[0]()
    ((topic, kind, _),) = target.collect({})
    assert (topic, kind) == ("/stack_state", "kin_interfaces/msg/StackState")


def test_a_service_that_no_node_offers_is_refused_with_those_that_are(target):
    (question,) = read_exchanges([{**QUESTIONS[0], "service": "/nobody/check_ready"}], "q")
    with pytest.raises(InvalidInput, match="there are /stack_monitor/check_ready"):
        target.ask(question.exchange, bytes(serialize_message(question.request)))


@pytest.mark.parametrize(
    "name", ["no_such_package", "kin_monitor.node:Nothing", "kin_core.task:Task"]
)
def test_what_is_no_node_class_is_refused(name):
    with pytest.raises(InvalidInput, match=name):
        find_node_class(name)


def test_a_node_class_is_found_by_its_package():
    assert find_node_class("kin_monitor").__name__ == "StackMonitor"


def test_only_topics_that_the_nodes_publish_are_answers():
    made = CoreTarget([Adder])
    try:
        assert made.published({"/sums": "a", "/numbers": "b"}) == {"/sums": "a"}
    finally:
        made.close()
