"""Transitions over real DDS, and what follows them."""

import time

import pytest
from echo_node import Echo, change, state
from kin_interfaces.srv import CheckReady
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from std_msgs.msg import Float64

from kin_core.errors import InvalidInput, StatusCode
from kin_testing.fixtures import wait_until

pytestmark = pytest.mark.node


def test_autostart_brings_it_to_active(ros):
    node = ros.add(Echo)
    assert node.calls == ["configure", "activate"]
    assert state(ros) == "active"


def test_every_transition(ros):
    node = ros.add(Echo, {"autostart": False})
    assert state(ros) == "unconfigured"
    assert change(ros, Transition.TRANSITION_CONFIGURE)
    assert state(ros) == "inactive"
    assert change(ros, Transition.TRANSITION_ACTIVATE)
    assert state(ros) == "active"
    assert change(ros, Transition.TRANSITION_DEACTIVATE)
    assert change(ros, Transition.TRANSITION_CLEANUP)
    assert state(ros) == "unconfigured"
    # A second round finds the services and topics made anew.
    assert change(ros, Transition.TRANSITION_CONFIGURE)
    assert change(ros, Transition.TRANSITION_ACTIVATE)
    answer = ros.call(CheckReady, "/echo/work", CheckReady.Request())
    assert answer.status.code == StatusCode.SUCCESS
    assert change(ros, Transition.TRANSITION_ACTIVE_SHUTDOWN)
    assert state(ros) == "finalized"
    assert node.calls == ["configure", "activate", "deactivate", "cleanup"] * 2


def test_a_publisher_made_while_active_speaks_until_the_node_is_deactivated(ros):
    node = ros.add(Echo)
    heard = ros.listen(Float64, "late")
    late = ros.run_on(node, lambda: node.publish_to(Float64, "late"))

    def say(value):
        ros.run_on(node, lambda: late.publish(Float64(data=value)))
        return bool(heard)

    wait_until(lambda: say(1.0), 60.0, "the late publisher")
    assert change(ros, Transition.TRANSITION_DEACTIVATE)
    say(2.0)
    assert change(ros, Transition.TRANSITION_ACTIVATE)
    wait_until(lambda: say(3.0) and heard[-1].data == 3.0, 60.0, "the publisher again")
    assert 2.0 not in [message.data for message in heard]


@pytest.mark.parametrize(
    ("failure", "kind"),
    [(RuntimeError("broken on purpose"), "error"), (InvalidInput("file", "is missing"), "failure")],
)
def test_an_exception_in_configure_leaves_it_unconfigured_and_clean(ros, failure, kind):
    node = ros.add(Echo, {"autostart": False})
    node.fail_in, node.failure = "configure", failure
    assert not change(ros, Transition.TRANSITION_CONFIGURE)
    assert state(ros) == "unconfigured"
    services = [name for name, _ in node.get_service_names_and_types_by_node("echo", "/")]
    assert "/echo/work" not in services
    assert str(failure).split(": ")[-1] in node.diagnostics.status().message
    node.fail_in = ""
    assert change(ros, Transition.TRANSITION_CONFIGURE)
    assert change(ros, Transition.TRANSITION_ACTIVATE)
    assert state(ros) == "active"


def test_an_exception_in_activate_and_deactivate(ros):
    node = ros.add(Echo, {"autostart": False})
    assert change(ros, Transition.TRANSITION_CONFIGURE)
    node.fail_in = "activate"
    assert not change(ros, Transition.TRANSITION_ACTIVATE)
    assert state(ros) == "unconfigured"
    node.fail_in = ""
    assert change(ros, Transition.TRANSITION_CONFIGURE)
    assert change(ros, Transition.TRANSITION_ACTIVATE)
    node.fail_in = "deactivate"
    assert not change(ros, Transition.TRANSITION_DEACTIVATE)
    node.fail_in = ""
    assert state(ros) == "unconfigured"
    assert not node.active


def test_timers_run_only_while_active(ros):
    node = ros.add(Echo)
    wait_until(lambda: node.ticks > 5)
    assert change(ros, Transition.TRANSITION_DEACTIVATE)
    stopped = node.ticks
    time.sleep(0.2)
    assert node.ticks == stopped
    assert change(ros, Transition.TRANSITION_ACTIVATE)
    wait_until(lambda: node.ticks > stopped)


@pytest.mark.parametrize(
    "transition",
    [
        Transition(id=Transition.TRANSITION_ACTIVATE),  # it is active
        Transition(id=99),
        Transition(id=255),
        Transition(label="fly"),
        Transition(label="x" * 10**6),
        Transition(label="configure"),
    ],
    ids=["again", "unknown", "largest", "label", "long", "impossible"],
)
def test_an_impossible_transition_is_answered(ros, transition):
    node = ros.add(Echo)
    request = ChangeState.Request(transition=transition)
    assert not ros.call(ChangeState, "/echo/change_state", request).success
    assert state(ros) == "active"
    assert node.active
