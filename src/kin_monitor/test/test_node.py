"""The stack monitor over real DDS, with real processes that are really killed."""

import pytest
from kin_interfaces.msg import NodeState, SolveStatus, StackState
from kin_interfaces.srv import CheckReady

from kin_monitor.node import StackMonitor
from kin_ros.qos import LATCHED
from kin_testing.fixtures import wait_until

pytestmark = pytest.mark.node


def watched(ros, namespace=""):
    """The list of states that the monitor publishes."""
    return ros.listen(StackState, f"{namespace}/stack_state", LATCHED)


def health(state, name):
    return next((node.health for node in state.nodes if node.name == name), None)


def check(ros, name="/stack_monitor/check_ready", **fields):
    return ros.call(CheckReady, name, CheckReady.Request(**fields), timeout=60.0)


def start_other(ros, namespace="", **parameters):
    """Another real lifecycle node in a process of its own."""
    return ros.process("kin_monitor", "stack_monitor", parameters, namespace)


def test_ready_alone(ros):
    ros.add(StackMonitor)
    answer = check(ros)
    assert answer.ready
    assert answer.status.code == SolveStatus.SUCCESS
    (state,) = ros.collect(StackState, "/stack_state", 1, qos=LATCHED)  # a late reader has it
    assert state.ready
    assert state.scope == "/"
    assert [node.name for node in state.nodes if node.expected] == []


def test_missing_node_is_named(ros):
    ros.add(StackMonitor, {"expected": ["nobody", "stack_monitor"]})
    answer = check(ros)
    assert not answer.ready
    assert answer.status.code == SolveStatus.NOT_CONVERGED
    assert list(answer.missing) == ["/nobody"]
    assert "/nobody is missing" in answer.status.message
    assert check(ros, nodes=["stack_monitor"]).ready
    assert list(check(ros, nodes=["ghost"]).missing) == ["/ghost"]


@pytest.mark.parametrize("wait", [float("nan"), -1.0, float("inf"), 1e9])
def test_bad_wait_is_refused(ros, wait):
    ros.add(StackMonitor)
    answer = check(ros, wait=wait)
    assert answer.status.code == SolveStatus.INVALID_INPUT
    assert "wait" in answer.status.message


def test_killed_node_is_seen_within_two_seconds_and_comes_back(ros):
    """The time is counted in the monitor's own looks, of which 8 are 2 s."""
    monitor = ros.add(StackMonitor, {"expected": ["sub/stack_monitor"]}, wait_active=True)
    states = watched(ros)
    process = start_other(ros, "/sub")
    assert check(ros, wait=60.0).ready
    looks = monitor.looks
    signs = {}

    original = monitor.watch.poll

    def poll():
        view = original()
        (node,) = (n for n in view.nodes if n.name == "/sub/stack_monitor")
        signs.setdefault(node.health, (monitor.looks, node.silent_for))
        return view

    ros.run_on(monitor, lambda: setattr(monitor.watch, "poll", poll))
    before = monitor.looks
    process.kill()
    process.wait()
    killed_at = monitor.looks
    gone = (NodeState.SILENT, NodeState.MISSING)  # missing, if DDS itself notices first
    wait_until(lambda: any(state in signs for state in gone), 60.0, "the monitor to notice")
    seen_at, silent_for = min(signs[state] for state in gone if state in signs)
    assert looks <= before <= killed_at < seen_at
    assert seen_at - killed_at <= 8
    assert silent_for < 2.0 + 0.25
    wait_until(lambda: not states[-1].ready, 60.0, "the published state")
    assert "/sub/stack_monitor is " in states[-1].message
    answer = check(ros)
    assert [*answer.silent, *answer.missing] == ["/sub/stack_monitor"]
    start_other(ros, "/sub")
    assert check(ros, wait=60.0).ready
    wait_until(
        lambda: any(n.restarts == 1 for n in states[-1].nodes), 60.0, "the restart to be counted"
    )


def test_node_that_ends_is_missing(ros):
    ros.add(StackMonitor, {"expected": ["sub/stack_monitor"]})
    process = start_other(ros, "/sub")
    assert check(ros, wait=60.0).ready
    process.terminate()
    process.wait()
    states = watched(ros)
    wait_until(
        lambda: states and health(states[-1], "/sub/stack_monitor") == NodeState.MISSING,
        30.0,
        "the node to be missing",
    )


def test_node_that_is_not_active_and_node_that_reports_a_fault(ros):
    ros.add(StackMonitor, {"expected": ["sub/stack_monitor"]})
    other = ros.add(StackMonitor, {"autostart": False}, "/sub", wait_active=False)
    wait_until(lambda: list(check(ros).starting) == ["/sub/stack_monitor"], 60.0, "starting")
    ros.run_on(other, other.trigger_configure)
    ros.run_on(other, other.trigger_activate)
    assert check(ros, wait=60.0).ready
    other.diagnostics.fault("the belt is torn")
    wait_until(lambda: list(check(ros).unhealthy) == ["/sub/stack_monitor"], 60.0, "unhealthy")
    assert "the belt is torn" in check(ros).status.message
    other.diagnostics.healthy()
    assert check(ros, wait=60.0).ready
    ros.run_on(other, other.trigger_deactivate)
    wait_until(lambda: list(check(ros).starting) == ["/sub/stack_monitor"], 60.0, "inactive")


def test_two_namespaces_do_not_see_each_other(ros):
    ros.add(StackMonitor, {}, "/one")
    ros.add(StackMonitor, {"expected": ["absent"]}, "/two")
    assert check(ros, "/one/stack_monitor/check_ready").ready
    assert not check(ros, "/two/stack_monitor/check_ready").ready
    one = watched(ros, "/one")
    two = watched(ros, "/two")
    wait_until(lambda: one and two, 60.0, "both states")
    assert {node.name for node in one[-1].nodes} == {"/one/stack_monitor"}
    assert {node.name for node in two[-1].nodes} == {"/two/stack_monitor", "/two/absent"}
    services = {name for name, _ in ros.node.get_service_names_and_types()}
    assert "/stack_monitor/check_ready" not in services


def test_many_wait_at_once_and_a_short_question_is_answered_meanwhile(ros):
    ros.add(StackMonitor, {"expected": ["sub/stack_monitor"]})
    name = "/stack_monitor/check_ready"
    waiting = [ros.call_async(CheckReady, name, CheckReady.Request(wait=300.0)) for _ in range(8)]
    assert not check(ros).ready
    assert not any(future.done() for future in waiting)
    start_other(ros, "/sub")
    wait_until(lambda: all(future.done() for future in waiting), 60.0, "all answers")
    assert all(future.result().ready for future in waiting)


@pytest.mark.parametrize(
    "parameters", [{"silence": 0.2, "period": 0.5}, {"period": -1.0}, {"silence": float("nan")}]
)
def test_parameters_are_refused(ros, parameters):
    from kin_core.errors import InvalidInput

    with pytest.raises((InvalidInput, AssertionError)):
        ros.add(StackMonitor, parameters)


def test_the_state_file_follows_the_stack(ros, tmp_path):
    file = tmp_path / "state"
    ros.add(StackMonitor, {"expected": ["sub/stack_monitor"], "state_file": str(file)})
    wait_until(file.exists, 60.0, "the file")
    assert file.read_text() == "not ready: 1 of 2 nodes ready; /sub/stack_monitor is missing\n"
    other = start_other(ros, "/sub")
    wait_until(lambda: file.read_text().startswith("ready: 2 of 2"), 60.0, "ready")
    other.kill()
    wait_until(lambda: file.read_text().startswith("not ready:"), 60.0, "not ready")
    written = file.stat().st_mtime
    wait_until(lambda: file.stat().st_mtime > written, 60.0, "a heartbeat")


def test_a_state_file_that_cannot_be_written_stops_nothing(ros, tmp_path):
    ros.add(StackMonitor, {"state_file": str(tmp_path / "missing" / "state")})
    assert check(ros).ready
