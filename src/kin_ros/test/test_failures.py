"""What fails in a node is logged, shown, and over when it works again."""

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from echo_node import Echo
from rcl_interfaces.msg import Log
from std_msgs.msg import Float64

from kin_core.errors import InvalidInput
from kin_ros.failures import FailureLog
from kin_testing.fixtures import wait_until

pytestmark = pytest.mark.node


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
        wait_until(lambda: len(ticks) > 20, 60.0, "the loop to go on")
        found = ros.collect(DiagnosticArray, "/diagnostics", 2, 20.0)[-1].status[0]
        assert found.level == DiagnosticStatus.ERROR
        assert "loop work: RuntimeError: broken on purpose" in found.message
        wait_until(lambda: any("broken on purpose" in log.msg for log in logs), 60.0, "a log line")
        # A line for the first, not one for each.
        assert len([log for log in logs if "broken on purpose" in log.msg]) <= len(ticks) // 4
        assert node.guarded["loop work"].failures >= 10
    finally:
        loop.stop()


def test_what_ends_a_thread_of_a_node_is_shown(ros):
    node = ros.add(Echo)
    node.thread("reader", lambda: 1 / 0).join(10.0)
    assert "thread reader: ZeroDivisionError" in node.diagnostics.status().message


def test_a_timer_that_failed_once_recovers(ros, monkeypatch):
    monkeypatch.setattr("kin_ros.diagnostics.SHOWN", 0.3)
    node = ros.add(Echo)
    timer = node.guarded["timer tick"]
    usual = timer.action

    def once():
        timer.action = usual
        raise RuntimeError("broken once")

    timer.action = once
    wait_until(lambda: "broken once" in node.diagnostics.status().message, 60.0, "the fault")
    wait_until(lambda: node.diagnostics.status().level == DiagnosticStatus.OK, 60.0, "its end")


class Lines:
    """A logger that keeps its lines."""

    def __init__(self):
        self.warnings, self.errors = [], []
        self.warning, self.error = self.warnings.append, self.errors.append


def test_the_same_failure_is_logged_again_only_after_a_pause_with_a_count(ros):
    node, lines = ros.add(Echo), Lines()
    log = FailureLog(lines, node.diagnostics, pause=0.3)
    bad = InvalidInput("robot_description", "has no <link>")
    for _ in range(50):
        log.failed("message on robot_description", bad)
    assert lines.warnings == ["message on robot_description: robot_description: has no <link>"]
    log.failed("message on robot_description", InvalidInput("robot_description", "is empty"))
    assert len(lines.warnings) == 2  # another problem is another line

    def logged_again():
        log.failed("message on robot_description", bad)
        return len(lines.warnings) == 3

    wait_until(logged_again, 60.0, "the next line")
    assert "more since it was last logged)" in lines.warnings[2]
    assert int(lines.warnings[2].rpartition("(")[2].split()[0]) >= 49
    assert "has no <link>" in node.diagnostics.status().message
    assert lines.errors == []
    log.failed("loop", ZeroDivisionError("unforeseen"))
    assert "Traceback" in lines.errors[0] or "ZeroDivisionError" in lines.errors[0]


def test_kinds_of_failures_that_are_remembered_are_bounded(ros):
    """One that was forgotten meanwhile is logged as if it were new."""
    lines = Lines()
    log = FailureLog(lines, ros.add(Echo).diagnostics, pause=1000.0)
    for number in range(500):
        log.failed(f"message on topic_{number}", InvalidInput("", "bad"))
    assert len(lines.warnings) == 500
    log.failed("message on topic_499", InvalidInput("", "bad"))
    assert len(lines.warnings) == 500
    log.failed("message on topic_0", InvalidInput("", "bad"))
    assert len(lines.warnings) == 501
