"""The client of the command line: finding others, and being found."""

import pytest
from rclpy.node import Node
from std_msgs.msg import String
from std_srvs.srv import Trigger

from kin_core.errors import Unreachable
from kin_ros.client import open_client
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
    wait_until(lambda: len(heard) == 20, 20.0, "all first messages")


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
        wait_until(lambda: heard, 20.0, "the first message")


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
