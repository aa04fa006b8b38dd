"""What each profile promises, over real DDS."""

import pytest
from rclpy.qos import DurabilityPolicy, HistoryPolicy, ReliabilityPolicy, qos_check_compatible
from std_msgs.msg import Float64

from kin_ros import qos
from kin_testing.fixtures import wait_until

PROFILES = {name: getattr(qos, name) for name in qos.__all__ if name.isupper()}


@pytest.mark.parametrize("reliable", [True, False])
@pytest.mark.parametrize("latched", [True, False])
def test_a_profile_is_what_it_is_asked_to_be(reliable, latched):
    made = qos.profile(7, reliable=reliable, latched=latched)
    assert (made.depth, made.history) == (7, HistoryPolicy.KEEP_LAST)
    assert (made.reliability == ReliabilityPolicy.RELIABLE) == reliable
    assert (made.durability == DurabilityPolicy.TRANSIENT_LOCAL) == latched


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_hears_itself(name):
    problem, _ = qos_check_compatible(PROFILES[name], PROFILES[name])
    assert problem.name != "ERROR"


def test_only_streams_may_lose_messages():
    lossy = {n for n, p in PROFILES.items() if p.reliability != ReliabilityPolicy.RELIABLE}
    assert lossy == {"SENSOR"}


@pytest.mark.node
def test_a_late_listener_gets_what_is_latched_and_nothing_else(ros):
    early = {name: ros.node.create_publisher(Float64, name.lower(), PROFILES[name])
             for name in ("LATCHED", "STATE")}  # fmt: skip
    for publisher in early.values():
        for value in (1.0, 2.0):
            publisher.publish(Float64(data=value))
    latched = ros.listen(Float64, "latched", qos.LATCHED)
    state = ros.listen(Float64, "state", qos.STATE)
    wait_until(lambda: latched, 60.0, "the latched message")
    wait_until(early["STATE"].get_subscription_count, 60.0, "the other listener")
    early["STATE"].publish(Float64(data=3.0))
    wait_until(lambda: state, 60.0, "a new message")
    assert [message.data for message in latched] == [2.0]
    assert [message.data for message in state] == [3.0]
