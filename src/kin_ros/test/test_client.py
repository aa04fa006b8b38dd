"""The client of the command line: finding others, and being found."""

import os
import time

import pytest
from rclpy.node import Node
from std_msgs.msg import String
from std_srvs.srv import Trigger

from kin_core.errors import SolveTimeout, Unreachable
from kin_ros import client as client_module
from kin_ros.client import foreign_memory, open_client
from kin_ros.qos import SENSOR
from kin_testing.fixtures import wait_until

pytestmark = pytest.mark.node


def test_the_first_message_reaches_a_best_effort_listener(ros):
    """Each round has a new publisher, a new listener, and one message that is never sent again."""
    heard = []

    def listener(**options):
        node = Node("listener", **options)
        for number in range(20):
            node.create_subscription(String, f"topic_{number}", heard.append, SENSOR)
        return node

    ros.add(listener, namespace="/deep/down")
    with open_client("speaker", domain=ros.domain) as client:
        for number in range(20):
            topic = f"/deep/down/topic_{number}"
            publisher = client.node.create_publisher(String, topic, SENSOR)
            assert client.spin_until(lambda p=publisher: p.get_subscription_count() > 0, 20.0)
            client.wait_until_heard([topic], 20.0)
            publisher.publish(String(data=str(number)))
    wait_until(lambda: len(heard) == 20, 60.0, "all first messages")


def test_nobody_listens_or_nobody_can_be_asked(ros):
    """Neither holds it up for long: one has no parameter services, the other is not there."""
    heard = ros.listen(String, "/words", SENSOR)
    with open_client("speaker", domain=ros.domain) as client:
        publisher = client.node.create_publisher(String, "/words", SENSOR)
        client.node.create_publisher(String, "/nobody", SENSOR)
        client.wait_until_heard(["/nobody"], 20.0)
        assert client.spin_until(lambda: publisher.get_subscription_count() > 0, 20.0)
        client.wait_until_heard(["/words"], 20.0)
        publisher.publish(String(data="first"))
        wait_until(lambda: heard, 60.0, "the first message")


def test_an_absent_service_is_told_with_what_is_there(ros):
    """Also to someone who hardly waits: the others are looked for before they are denied."""
    ros.node.create_service(Trigger, "/somebody/start", lambda request, response: response)
    with (
        open_client("hasty", domain=ros.domain) as client,
        pytest.raises(Unreachable, match="/somebody/strat; did you mean /somebody/start"),
    ):
        client.call("/somebody/strat", Trigger, Trigger.Request(), wait=0.0, timeout=1.0)


def test_an_empty_graph_is_told(ros):
    with (
        open_client("lonely", domain=ros.domain) as client,
        pytest.raises(Unreachable, match="nor any other; is the stack running"),
    ):
        client.call("/x", Trigger, Trigger.Request(), wait=0.0, timeout=1.0)


def test_memory_of_other_users_is_told_when_an_answer_is_late(ros, monkeypatch):
    """Different users share no memory: their services are found, and no answer comes."""
    monkeypatch.setattr(client_module, "DOUBT", 0.3)
    monkeypatch.setattr(client_module, "foreign_memory", lambda: "different users share no memory")

    def silent(**options):
        node = Node("silent", **options)
        node.create_service(Trigger, "wait", lambda request, response: time.sleep(3.0) or response)
        return node

    ros.add(silent)
    with open_client("asking", domain=ros.domain) as client:
        with pytest.raises(SolveTimeout, match=r"within 0\.6 s: different users share no memory"):
            client.call("/wait", Trigger, Trigger.Request(), wait=20.0, timeout=0.6)
        # A service that is merely slow is waited for.
        client.call("/wait", Trigger, Trigger.Request(), wait=20.0, timeout=60.0)


def test_owners_of_shared_memory(tmp_path, monkeypatch):
    monkeypatch.delenv("FASTDDS_BUILTIN_TRANSPORTS", raising=False)
    assert foreign_memory(tmp_path) == ""
    (tmp_path / "fastrtps_port7000").touch()
    (tmp_path / "something_else").touch()
    assert foreign_memory(tmp_path) == ""
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    said = foreign_memory(tmp_path)
    assert f"uid {owner}; yours is {owner + 1}" in said
    assert "FASTDDS_BUILTIN_TRANSPORTS=UDPv4" in said
    monkeypatch.setenv("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4")
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    assert foreign_memory(tmp_path) == said  # it has no effect there
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET")
    assert foreign_memory(tmp_path) == ""
