"""Answers are sent again while their clients are not found."""

import warnings

import pytest
from kin_interfaces.action import SweepWorkspace
from kin_interfaces.srv import CheckReady
from lifecycle_msgs.srv import GetState
from rclpy.action import ActionClient
from rclpy.impl.implementation_singleton import rclpy_implementation

from kin_ros.answers import send_until_found
from kin_ros.node import KinNode
from kin_ros.parameters import ParameterSet
from kin_testing.fixtures import wait_until

LOST = "failed to send response (timeout): client will not receive response, at rmw_response.cpp"


class Host(KinNode):
    def __init__(self, **options):
        super().__init__("host", ParameterSet, **options)

    def configure(self):
        self.executed = 0
        self.server = self.serve(CheckReady, "~/check", self.check)
        self.serve_action(
            SweepWorkspace, "~/sweep", self.sweep, lambda progress: SweepWorkspace.Feedback()
        )

    def sweep(self, goal, task):
        self.executed += 1
        return SweepWorkspace.Result()

    def check(self, request, task):
        return CheckReady.Response(ready=True)


@pytest.fixture
def deaf_at_first(monkeypatch):
    """The middleware drops the first answers, as it does when it has not found the client."""
    from rclpy.service import Service

    send = Service.send_response
    drops = {"left": 0, "tried": 0}

    def dropping(self, response, header):
        if self.srv_name.endswith(drops.get("of", "/check")):
            drops["tried"] += 1
            if drops["left"] > 0:
                drops["left"] -= 1
                warnings.warn(LOST, RuntimeWarning, stacklevel=2)
                return
        send(self, response, header)

    monkeypatch.setattr(Service, "send_response", dropping)
    return drops


@pytest.mark.parametrize(
    ("service", "kind"), [("/host/check", CheckReady), ("/host/get_state", GetState)]
)
def test_an_answer_that_was_dropped_comes_all_the_same(ros, deaf_at_first, service, kind):
    """Of the node's own services and of those of its life cycle, and once only."""
    ros.add(Host)
    deaf_at_first["of"] = service.rpartition("/")[2]
    assert ros.call(kind, service, kind.Request()) is not None
    deaf_at_first.update(left=3, tried=0)
    assert ros.call(kind, service, kind.Request()) is not None
    assert deaf_at_first["tried"] == 4
    # Nothing is left over: the next one is sent once.
    assert ros.call(kind, service, kind.Request()) is not None
    assert deaf_at_first["tried"] == 5


def test_it_does_not_try_for_ever_and_goes_on_serving(ros, deaf_at_first, monkeypatch, capfd):
    monkeypatch.setattr("kin_ros.answers._PAUSES", (0.01, 0.01))
    ros.add(Host)
    client = ros.client(CheckReady, "/host/check")
    deaf_at_first["left"] = 3
    lost = client.call_async(CheckReady.Request())
    wait_until(lambda: deaf_at_first["left"] == 0, 60.0, "all attempts")
    assert ros.call(CheckReady, "/host/check", CheckReady.Request()).ready
    assert not lost.done()
    assert "check: the client of an answer was not found" in capfd.readouterr().err


def test_other_warnings_are_still_heard():
    class Noisy:
        srv_name = "noisy"

        def send_response(self, response, header):
            warnings.warn("something else", UserWarning, stacklevel=2)

    server = Noisy()
    send_until_found(None, server)  # no timer is needed: the answer arrives
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        server.send_response(None, None)
    assert [str(warning.message) for warning in heard] == ["something else"]


@pytest.fixture
def dropping_goals(monkeypatch):
    """The middleware drops the first answers of actions, by their names."""
    drops = {"send_goal_response": 0, "send_result_response": 0}

    def drop(name):
        send = getattr(rclpy_implementation.ActionServer, name)

        def dropping(self, header, response):
            if drops[name] > 0:
                drops[name] -= 1
                raise rclpy_implementation.RCLError("Failed to send: timeout")
            send(self, header, response)

        monkeypatch.setattr(rclpy_implementation.ActionServer, name, dropping)

    for name in drops:
        drop(name)
    return drops


@pytest.mark.parametrize("count", [1, 3])
def test_a_goal_whose_answers_were_dropped_is_executed_once(ros, dropping_goals, count):
    node = ros.add(Host)
    dropping_goals.update(send_goal_response=count, send_result_response=count)
    assert ros.send_goal(SweepWorkspace, "/host/sweep", SweepWorkspace.Goal()).status.code == 0
    assert node.executed == 1
    assert set(dropping_goals.values()) == {0}
    # Nothing is left over.
    assert ros.send_goal(SweepWorkspace, "/host/sweep", SweepWorkspace.Goal()).status.code == 0
    assert node.executed == 2


def test_a_goal_whose_client_is_never_found_is_not_executed(
    ros, dropping_goals, monkeypatch, capfd
):
    """Nobody knows of it, so nothing moves; the next one is served."""
    monkeypatch.setattr("kin_ros.answers._PAUSES", (0.01, 0.01))
    node = ros.add(Host)
    client = ActionClient(ros.node, SweepWorkspace, "/host/sweep")
    assert client.wait_for_server(20.0)
    dropping_goals["send_goal_response"] = 4  # rclpy's own attempt, then three
    lost = client.send_goal_async(SweepWorkspace.Goal())
    wait_until(lambda: dropping_goals["send_goal_response"] == 0, 60.0, "all attempts")
    assert ros.send_goal(SweepWorkspace, "/host/sweep", SweepWorkspace.Goal()).status.code == 0
    assert node.executed == 1
    assert not lost.done()
    assert "sweep, a goal: the client of an answer was not found" in capfd.readouterr().err
