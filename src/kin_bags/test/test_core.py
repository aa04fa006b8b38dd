"""Nodes without DDS: messages go straight into their handlers."""

import pytest
import yaml
from bag_scenes import QUESTIONS
from kin_interfaces.msg import StackState

from kin_bags.core import CoreTarget

pytestmark = pytest.mark.node


def test_core_replay_needs_no_running_node(tmp_path, capsys):
    """Messages go straight into a node class; only what needs no timer can be asked."""
    from kin_bags.core import find_node_class

    target = CoreTarget([find_node_class("kin_monitor.node:StackMonitor")])
    try:
        (node,) = target.nodes
        assert set(node.services_held) == {"/stack_monitor/check_ready"}
        (tmp_path / "q.yaml").write_text(yaml.safe_dump(QUESTIONS[2:]))
        from kin_bags.ask import read_exchanges

        (question,) = read_exchanges(yaml.safe_load((tmp_path / "q.yaml").read_text()), "q")
        from kin_interfaces.srv import CheckReady
        from rclpy.serialization import deserialize_message, serialize_message

        raw = target.ask(question.exchange, bytes(serialize_message(question.request)))
        answer = deserialize_message(raw, CheckReady.Response)
        assert answer.status.code == answer.status.INVALID_INPUT
        assert "wait" in answer.status.message
        node.timers_held[0]()
        ((topic, kind, _),) = target.collect({})
        assert (topic, kind) == ("/stack_state", "kin_interfaces/msg/StackState")
    finally:
        target.close()
    assert StackState is not None
