"""The lifecycle node over real DDS: transitions, parameters, services, actions, diagnostics."""

import threading
import time
from dataclasses import dataclass

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from kin_interfaces.srv import CheckReady
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.msg import Log, ParameterType, ParameterValue
from rcl_interfaces.msg import Parameter as ParameterMsg
from rcl_interfaces.srv import DescribeParameters, GetParameters, SetParametersAtomically
from std_msgs.msg import Float64

from kin_core.errors import InvalidInput, NotConverged, StatusCode, Unreachable
from kin_ros.node import KinNode
from kin_ros.parameters import ParameterSet, parameter
from kin_testing.fixtures import wait_until

pytestmark = pytest.mark.node


@dataclass(frozen=True, kw_only=True)
class EchoParameters(ParameterSet):
    gain: float = parameter(1.0, "factor [-]", minimum=0.0, maximum=10.0)
    offset: float = parameter(0.0, "added [m]", minimum=-5.0, maximum=5.0)
    steps: int = parameter(3, "steps", minimum=1, maximum=9)
    mode: str = parameter("plain", "how", choices=("plain", "fancy"))
    names: tuple[str, ...] = parameter((), "names")
    device: str = parameter("a", "fixed at the start", read_only=True)

    def check(self) -> None:
        if self.gain + self.offset > 12.0:
            raise InvalidInput("gain", "gain + offset must be at most 12")


class Echo(KinNode[EchoParameters]):
    """A node that records what happens to it and can be told to fail."""

    def __init__(self, **arguments):
        super().__init__("echo", EchoParameters, **arguments)
        self.calls = []
        self.fail_in = ""
        self.failure = RuntimeError("broken on purpose")
        self.release = threading.Event()
        self.handler = lambda request, task: CheckReady.Response()
        self.ticks = 0
        self.heard = []

    def _hook(self, name):
        self.calls.append(name)
        if self.fail_in == name:
            raise self.failure

    def configure(self):
        self.serve(CheckReady, "~/work", lambda request, task: self.handler(request, task))
        self.serve(
            CheckReady, "~/inline", lambda request, task: self.handler(request, task), inline=True
        )
        self.output = self.publish_to(Float64, "output")
        self.listen(Float64, "input", self._heard)
        self.every(0.01, self._tick, steady=True)
        self._hook("configure")

    def _heard(self, message):
        if message.data < 0:
            raise InvalidInput("data", "must not be negative")
        self.heard.append(message.data)
        self.output.publish(Float64(data=message.data * self.parameters.gain))

    def _tick(self):
        self.ticks += 1

    def activate(self):
        self._hook("activate")

    def deactivate(self):
        self._hook("deactivate")

    def cleanup(self):
        self._hook("cleanup")


def change(ros, transition):
    request = ChangeState.Request(transition=Transition(id=transition))
    return ros.call(ChangeState, "/echo/change_state", request).success


def state(ros):
    return ros.call(GetState, "/echo/get_state", GetState.Request()).current_state.label


def set_parameter(ros, name, value, kind):
    fields = {
        ParameterType.PARAMETER_DOUBLE: "double_value",
        ParameterType.PARAMETER_INTEGER: "integer_value",
        ParameterType.PARAMETER_STRING: "string_value",
        ParameterType.PARAMETER_STRING_ARRAY: "string_array_value",
        ParameterType.PARAMETER_BOOL: "bool_value",
    }
    content = ParameterValue(type=kind, **{fields[kind]: value})
    request = SetParametersAtomically.Request(parameters=[ParameterMsg(name=name, value=content)])
    return ros.call(SetParametersAtomically, "/echo/set_parameters_atomically", request).result


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

    wait_until(lambda: say(1.0), 20.0, "the late publisher")
    assert change(ros, Transition.TRANSITION_DEACTIVATE)
    say(2.0)
    assert change(ros, Transition.TRANSITION_ACTIVATE)
    wait_until(lambda: say(3.0) and heard[-1].data == 3.0, 20.0, "the publisher again")
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


def test_a_bad_message_is_a_warning_and_the_next_is_heard(ros):
    node = ros.add(Echo, {"gain": 2.0})
    received = ros.listen(Float64, "output")
    publisher = ros.publisher(Float64, "input")
    wait_until(lambda: node.output.get_subscription_count() > 0)
    publisher.publish(Float64(data=-1.0))
    wait_until(lambda: "must not be negative" in node.diagnostics.status().message)
    publisher.publish(Float64(data=3.0))
    wait_until(lambda: received)
    assert received[0].data == 6.0


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"gain": 11.0}, "gain: must be between 0 and 10, got 11"),
        ({"gain": "much"}, "gain: must be a number, got 'much'"),
        ({"gain": float("nan")}, "gain: must be finite"),
        ({"steps": 2.5}, "steps: must be a whole number, got 2.5"),
        ({"steps": True}, "steps: must be a whole number"),
        ({"mode": "odd"}, "mode: must be one of plain, fancy, got 'odd'"),
        ({"names": "x"}, "names: must be a list, got 'x'"),
        ({"gain": 9.0, "offset": 4.0}, "gain: gain + offset must be at most 12"),
    ],
)
def test_bad_overrides_are_refused_with_a_sentence(ros, overrides, sentence):
    with pytest.raises(InvalidInput) as refusal:
        ros.add(Echo, overrides)
    assert sentence in str(refusal.value)
    # The node that was refused is gone from the graph.
    wait_until(lambda: "echo" not in ros.node.get_node_names())


def test_parameters_while_running(ros):
    node = ros.add(Echo, {"names": ["x", "y"], "gain": 5})
    assert node.parameters.names == ("x", "y")
    assert node.parameters.gain == 5.0
    double, integer = ParameterType.PARAMETER_DOUBLE, ParameterType.PARAMETER_INTEGER
    text = ParameterType.PARAMETER_STRING
    assert set_parameter(ros, "gain", 7.5, double).successful
    assert node.parameters.gain == 7.5
    assert set_parameter(ros, "gain", 8, integer).successful
    assert node.parameters.gain == 8.0
    for name, value, kind, sentence in [
        ("gain", 12.0, double, "Max: 10.0"),
        ("gain", "a", text, "must be a number"),
        ("offset", 4.5, double, "at most 12"),
        ("mode", "odd", text, "plain, fancy"),
        ("device", "b", text, "read-only"),
        ("steps", 0, integer, "Max: 9"),
    ]:
        result = set_parameter(ros, name, value, kind)
        assert not result.successful
        assert sentence in result.reason, (name, result.reason)
    assert node.parameters.gain == 8.0
    request = DescribeParameters.Request(names=["gain"])
    described = ros.call(DescribeParameters, "/echo/describe_parameters", request).descriptors[0]
    assert described.description == "factor [-]"
    assert described.floating_point_range[0].to_value == 10.0


def test_diagnostics_once_a_second(ros):
    ros.add(Echo)
    for _ in range(5):
        ros.call(CheckReady, "/echo/work", CheckReady.Request())
    messages = ros.collect(DiagnosticArray, "/diagnostics", count=3, timeout=20)
    status = messages[-1].status[0]
    values = {item.key: item.value for item in status.values}
    assert status.name == "/echo"
    assert values["state"] == "active"
    assert values["work total"] == "5"
    assert float(values["work p99 [ms]"]) >= float(values["work p50 [ms]"]) > 0
    stamps = [m.header.stamp.sec + 1e-9 * m.header.stamp.nanosec for m in messages]
    assert 0.5 < (stamps[2] - stamps[0]) / 2 < 3.0


def test_every_parameter_request_is_answered(ros):
    """rclpy itself lets these fall: the caller would wait for ever."""
    from rcl_interfaces.msg import Parameter as ParameterMessage
    from rcl_interfaces.msg import ParameterValue
    from rcl_interfaces.srv import DescribeParameters, SetParameters, SetParametersAtomically

    node = ros.add(Echo)
    before = node.parameters
    absurd = ParameterMessage(name="default_timeout", value=ParameterValue(type=200))
    good = ParameterMessage(
        name="default_timeout", value=ParameterValue(type=3, double_value=before.default_timeout)
    )
    answer = ros.call(
        SetParameters, "/echo/set_parameters", SetParameters.Request(parameters=[absurd, good])
    )
    assert [result.successful for result in answer.results] == [False, True]
    assert "default_timeout" in answer.results[0].reason
    together = SetParametersAtomically.Request(parameters=[good, absurd])
    answer = ros.call(SetParametersAtomically, "/echo/set_parameters_atomically", together)
    assert not answer.result.successful
    unknown = DescribeParameters.Request(names=["\u202e", ""])
    assert not ros.call(DescribeParameters, "/echo/describe_parameters", unknown).descriptors
    assert node.parameters == before


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


def test_a_whole_number_for_a_double_does_not_change_its_type(ros):
    ros.add(Echo, {"gain": 5, "names": []})
    double, integer = ParameterType.PARAMETER_DOUBLE, ParameterType.PARAMETER_INTEGER

    def value(name):
        request = GetParameters.Request(names=[name])
        return ros.call(GetParameters, "/echo/get_parameters", request).values[0]

    assert (value("gain").type, value("gain").double_value) == (double, 5.0)
    assert set_parameter(ros, "gain", 8, integer).successful
    assert (value("gain").type, value("gain").double_value) == (double, 8.0)
    assert value("names").type == ParameterType.PARAMETER_STRING_ARRAY
    assert set_parameter(ros, "names", ["a"], ParameterType.PARAMETER_STRING_ARRAY).successful
    assert not set_parameter(ros, "steps", 2.5, double).successful
    assert value("steps").type == integer


def test_texts_and_lists_of_parameters_are_bounded(ros):
    node = ros.add(Echo)
    texts = ParameterType.PARAMETER_STRING_ARRAY
    result = set_parameter(ros, "names", ["x" * 5000], texts)
    assert not result.successful
    assert "at most 4096 characters" in result.reason
    result = set_parameter(ros, "names", ["x"] * 10_001, texts)
    assert not result.successful
    assert "at most 10000 elements" in result.reason
    result = set_parameter(ros, "mode", "x" * 10**6, ParameterType.PARAMETER_STRING)
    assert not result.successful
    assert len(result.reason) < 1000
    assert node.parameters.names == ()


def test_names_in_requests_and_messages_are_bounded(ros):
    node = ros.add(Echo)
    answer = ros.call(CheckReady, "/echo/work", CheckReady.Request(nodes=["x" * 10**6]))
    assert answer.status.code == StatusCode.LIMIT_EXCEEDED
    assert "nodes: a text of 1000000 characters" in answer.status.message
    assert node.active


def test_a_loop_that_fails_is_logged_shown_and_goes_on(ros):
    node = ros.add(Echo)
    logs = ros.listen(Log, "/rosout", 100)
    ticks = []

    def work():
        ticks.append(len(ticks))
        if len(ticks) % 2:
            raise RuntimeError("broken on purpose")

    loop = node.loop("work", 0.01, work)
    loop.start()
    try:
        wait_until(lambda: len(ticks) > 20, 20.0, "the loop to go on")
        found = ros.collect(DiagnosticArray, "/diagnostics", 2, 20.0)[-1].status[0]
        assert found.level == DiagnosticStatus.ERROR
        assert "loop work: RuntimeError: broken on purpose" in found.message
        wait_until(lambda: any("broken on purpose" in log.msg for log in logs), 20.0, "a log line")
        # A line for the first, not one for each.
        assert len([log for log in logs if "broken on purpose" in log.msg]) <= len(ticks) // 4
        assert node.guarded["loop work"].failures >= 10
    finally:
        loop.stop()


def test_what_ends_a_thread_of_a_node_is_shown(ros):
    node = ros.add(Echo)
    node.thread("reader", lambda: 1 / 0).join(10.0)
    assert "thread reader: ZeroDivisionError" in node.diagnostics.status().message


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
    wait_until(lambda: seen == [-1, 1], 20.0, "the items")
    assert "sorting: ValueError: a negative item" in node.diagnostics.status().message
    assert change(ros, Transition.TRANSITION_DEACTIVATE)
    box.put(2)
    wait_until(lambda: box.handled == 3, 20.0, "the item to be passed over")
    assert change(ros, Transition.TRANSITION_ACTIVATE)
    box.put(3)
    wait_until(lambda: seen == [-1, 1, 3], 20.0, "the next item")
    assert change(ros, Transition.TRANSITION_DEACTIVATE)
    assert change(ros, Transition.TRANSITION_CLEANUP)
    assert not any(thread.name == "sorting" for thread in threading.enumerate())


def test_a_timer_that_failed_once_recovers(ros, monkeypatch):
    monkeypatch.setattr("kin_ros.diagnostics._SHOWN", 0.3)
    node = ros.add(Echo)
    timer = node.guarded["timer tick"]
    usual = timer.action

    def once():
        timer.action = usual
        raise RuntimeError("broken once")

    timer.action = once
    wait_until(lambda: "broken once" in node.diagnostics.status().message, 20.0, "the fault")
    wait_until(lambda: node.diagnostics.status().level == DiagnosticStatus.OK, 20.0, "its end")
