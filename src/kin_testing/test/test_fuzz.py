"""Messages made from the interface definitions, and what a node makes of them."""

import math

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from kin_interfaces import srv
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.task import Future

from kin_ros.client import open_client
from kin_testing.fuzz import FuzzReport, fuzz_parameters, fuzz_service, fuzz_topic
from kin_testing.malformed import Fuzzer


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
