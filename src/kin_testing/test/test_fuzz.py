"""Messages made from the interface definitions, and what a node makes of them."""

import math

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from kin_interfaces import action, msg, srv
from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    ParameterType,
)
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.serialization import deserialize_message, serialize_message
from rclpy.task import Future

from kin_ros.client import open_client
from kin_ros.messages import to_plain
from kin_testing.fuzz import FuzzReport, fuzz_parameters, fuzz_service, fuzz_topic
from kin_testing.malformed import Fuzzer
from kin_testing.malformed_parameters import ParameterDraw


def classes(module):
    return [v for n, v in vars(module).items() if isinstance(v, type) and "_" not in n]


KINDS = (
    *classes(msg),
    *(kind.Request for kind in classes(srv)),
    *(kind.Goal for kind in classes(action)),
    *(kind.Impl.FeedbackMessage for kind in classes(action)),
)


def leaves(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from leaves(item)
    else:
        yield value


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_message_can_be_sent(kind):
    """Field checks are on in tests, so a value of a wrong type would raise."""
    fuzzer = Fuzzer(3, largest=5000)
    for number in range(30):
        message = fuzzer.request(kind, number)
        again = deserialize_message(serialize_message(message), kind)
        # repr: NaN is not equal to itself. A NUL ends a text on the wire; the fuzzer makes none.
        assert repr(to_plain(again)) == repr(to_plain(message))


def test_the_seed_decides():
    kind = srv.SolveDelta.Request
    one = [repr(to_plain(Fuzzer(1).request(kind, k))) for k in range(20)]
    assert one == [repr(to_plain(Fuzzer(1).request(kind, k))) for k in range(20)]
    assert one != [repr(to_plain(Fuzzer(2).request(kind, k))) for k in range(20)]
    shared = Fuzzer(1)
    assert one[::-1] == [repr(to_plain(shared.request(kind, k))) for k in reversed(range(20))]


def test_all_kinds_of_wrong_values_come():
    fuzzer = Fuzzer(0, largest=20_000)
    sent = [fuzzer.request(srv.SolveDelta.Request, number) for number in range(2000)]
    data = [list(request.data) for request in sent]
    values = {value for row in data for value in row[:16]}
    assert any(math.isnan(value) for value in values)
    assert {math.inf, -math.inf, 1.7e308} <= values
    lengths = {len(row) for row in data}
    assert {0, 1, 6, 20_000} <= lengths
    assert any(len(row) == 3 * request.count for row, request in zip(data, sent, strict=True))
    assert any(len(row) != 3 * request.count for row, request in zip(data, sent, strict=True))
    assert {0, 2**32 - 1} <= {request.count for request in sent}
    texts = {
        text
        for number in range(500)
        for text in leaves(to_plain(fuzzer.request(srv.LoadLinkage.Request, number)))
        if isinstance(text, str)
    }
    assert any(len(text) >= 20_000 for text in texts)
    assert any("ENTITY" in text for text in texts)
    assert "/dev/zero" in texts


def test_names_and_descriptions_with_endless_names_come():
    fuzzer = Fuzzer(0)
    sent = [fuzzer.request(srv.LoadLinkage.Request, number) for number in range(1500)]
    names = [request.preset for request in sent]
    assert max(map(len, names)) >= 1_000_000
    assert any(1000 < len(name) < 5000 for name in names)
    for start in ('<robot name="', "name: ", "links:", "- {op: ", "<mujoco"):
        assert any(len(t) > 1000 and t.startswith(start) for r in sent for t in (r.urdf, r.yaml))


def descriptors():
    return [
        ParameterDescriptor(
            name="gain",
            type=ParameterType.PARAMETER_DOUBLE,
            floating_point_range=[FloatingPointRange(from_value=0.0, to_value=2.0)],
        ),
        ParameterDescriptor(
            name="mode",
            type=ParameterType.PARAMETER_STRING,
            additional_constraints="one of: plain, fancy",
        ),
        ParameterDescriptor(name="names", type=ParameterType.PARAMETER_STRING_ARRAY),
        ParameterDescriptor(
            name="steps",
            type=ParameterType.PARAMETER_INTEGER,
            integer_range=[IntegerRange(from_value=1, to_value=9)],
        ),
    ]


def test_every_parameter_gets_right_and_wrong_values():
    draw = ParameterDraw(1, descriptors())
    made = [one for number in range(400) for one in draw.changes(number)]
    assert repr(made) == repr(
        [one for number in range(400) for one in ParameterDraw(1, descriptors()).changes(number)]
    )
    assert {"gain", "mode", "names", "steps"} < {one.name for one in made}
    gains = [one.value for one in made if one.name == "gain"]
    assert any(v.type == 3 and 0.0 <= v.double_value <= 2.0 for v in gains)
    assert any(v.type == 3 and math.isnan(v.double_value) for v in gains)
    assert {1, 2, 3, 4, 200} <= {v.type for v in gains}
    modes = {one.value.string_value for one in made if one.name == "mode"}
    assert {"plain", "fancy"} <= modes
    assert any(len(mode) > 1000 for mode in modes)
    assert any(1 <= one.value.integer_value <= 9 for one in made if one.name == "steps")
    assert any(one.value.integer_value == 2**63 - 1 for one in made if one.name == "steps")


def test_examples_are_wounded_and_not_changed():
    example = srv.SolveDelta.Request(count=2, data=[0.1] * 6, timeout=5.0)
    before = repr(example)
    fuzzer = Fuzzer(0)
    made = [fuzzer.request(srv.SolveDelta.Request, k, [example]) for k in range(300)]
    assert repr(example) == before
    near = [m for m in made if m.count == 2 or list(m.data) == [0.1] * 6]
    assert 100 < len(near) < 300
    # Nobody is asked to compute for longer than the test wants to wait.
    assert not any(0.2 < m.timeout < 1e9 or m.timeout == 0.0 for m in made[:1] + near)


def test_bytes_are_spoilt():
    valid = serialize_message(msg.SolveStatus(message="all is well"))
    fuzzer = Fuzzer(0)
    made = [fuzzer.bytes(valid) for _ in range(200)]
    assert sum(one != valid for one in made) > 150
    assert {len(one) < len(valid) for one in made} == {True, False}


def test_report_counts_and_keeps_sentences():
    report = FuzzReport("/s", sent=3)
    report.take(0, srv.CheckReady.Response())
    bad = srv.CheckReady.Response()
    bad.status.code, bad.status.message = 7, "KeyError: 'x'"
    report.take(1, bad)
    report.take(2, GetParameters.Response())
    assert report.codes == {"SUCCESS": 1, "INTERNAL_ERROR": 1, "answered": 1}
    assert report.sentences == {"KeyError: 'x'": 1}
    assert "3 sent, 3 answered" in str(report)


@pytest.mark.node
def test_a_node_answers_everything(ros):
    process = ros.process("kin_monitor", "stack_monitor")
    ros.wait_active("/stack_monitor")
    with open_client("fuzz", domain=ros.domain) as client:
        service = "/stack_monitor/check_ready"
        example = srv.CheckReady.Request(nodes=["stack_monitor"])
        report = fuzz_service(
            client,
            service,
            srv.CheckReady,
            80,
            seed=1,
            examples=[example],
            in_flight=8,
            patience=20.0,
        )
        assert (report.sent, report.answered) == (80, 80), report
        assert report.codes["INVALID_INPUT"] > 0, report
        assert not report.sentences, report.sentences
        for name, kind in (("set_parameters", SetParameters), ("get_parameters", GetParameters)):
            report = fuzz_service(
                client, f"/stack_monitor/{name}", kind, 100, seed=1, patience=10.0
            )
            assert report.answered == 100, report
        report = fuzz_parameters(client, "/stack_monitor", 120, seed=1, patience=10.0)
        assert report.answered == 120, report
        assert min(report.codes["accepted"], report.codes["refused"]) > 0, report
        assert not report.sentences, report.sentences
        fuzz_topic(client, "/diagnostics", DiagnosticArray, 200, seed=1)
        assert fuzz_service(client, service, srv.CheckReady, 5, examples=[example]).answered == 5
    assert process.poll() is None
    ros.wait_active("/stack_monitor")


@pytest.mark.node
def test_a_node_that_swallows_requests_is_found_out(ros):
    async def swallow(request, response):
        if math.isnan(request.wait):
            await Future()
        return response

    node = ros.add(lambda **options: Node("swallower", **options))
    node.create_service(srv.CheckReady, "/ask", swallow, callback_group=ReentrantCallbackGroup())
    with open_client("fuzz", domain=ros.domain) as client:
        report = fuzz_service(client, "/ask", srv.CheckReady, 60, seed=2, patience=2.0)
        assert report.sent == 60
        assert report.answered + len(report.unanswered) == 60
        made = {k: Fuzzer(2).request(srv.CheckReady.Request, k).wait for k in range(60)}
        lost = [number for number, wait in made.items() if math.isnan(wait)]
        assert sorted(report.unanswered) == lost != []
