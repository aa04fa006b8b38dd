"""Services over real DDS: every answer holds a status."""

import pytest
from echo_node import Echo, change
from kin_interfaces.srv import CheckReady
from lifecycle_msgs.msg import Transition

from kin_core.errors import InvalidInput, NotConverged, StatusCode, Unreachable

pytestmark = pytest.mark.node


def test_an_inactive_node_refuses_with_a_sentence(ros):
    ros.add(Echo)
    assert change(ros, Transition.TRANSITION_DEACTIVATE)
    answer = ros.call(CheckReady, "/echo/work", CheckReady.Request())
    assert answer.status.code == StatusCode.INTERNAL_ERROR
    assert "/echo is not active" in answer.status.message


@pytest.mark.parametrize("name", ["/echo/work", "/echo/inline"])
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidInput("size", "is wrong"), StatusCode.INVALID_INPUT),
        (Unreachable("too far", residual=0.5, iterations=7), StatusCode.UNREACHABLE),
        (NotConverged("no"), StatusCode.NOT_CONVERGED),
        (ZeroDivisionError("division by zero"), StatusCode.INTERNAL_ERROR),
    ],
)
def test_errors_become_statuses_and_the_node_goes_on(ros, name, error, code):
    node = ros.add(Echo)

    def fail(request, task):
        raise error

    node.handler = fail
    status = ros.call(CheckReady, name, CheckReady.Request()).status
    assert status.code == code
    assert str(error) in status.message
    if isinstance(error, Unreachable):
        assert (status.residual, status.iterations) == (0.5, 7)
    node.handler = lambda request, task: CheckReady.Response()
    assert ros.call(CheckReady, name, CheckReady.Request()).status.code == StatusCode.SUCCESS


def test_names_in_requests_and_messages_are_bounded(ros):
    node = ros.add(Echo)
    answer = ros.call(CheckReady, "/echo/work", CheckReady.Request(nodes=["x" * 10**6]))
    assert answer.status.code == StatusCode.LIMIT_EXCEEDED
    assert "nodes: a text of 1000000 characters" in answer.status.message
    assert node.active
