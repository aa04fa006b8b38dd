"""The whole stack as a user launches it: many clients, killed nodes, malformed input.

The tests share one stack and run in the order of this file; each leaves it in good health.
"""

import contextlib
import copy
import math
import os
import re
import signal
import threading
from pathlib import Path

import psutil
import pytest
from kin_interfaces.msg import NodeState, SolveStatus, StackState
from lifecycle_msgs.srv import GetState
from rclpy.action import ActionClient
from rclpy.task import Future

from kin_bags.ask import read_exchanges
from kin_core.errors import SolveTimeout, Unreachable
from kin_core.yamls import load_yaml
from kin_ros.client import open_client
from kin_ros.messages import find_message, find_type
from kin_ros.qos import LATCHED
from kin_ros.status import outcome_of
from kin_testing.fuzz import fuzz_action, fuzz_parameters, fuzz_service, fuzz_topic

# The first test that uses the stack waits for all nodes to compile, if nobody has before.
pytestmark = [pytest.mark.stack, pytest.mark.alone, pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(ROOT.glob("examples/[0-9]*.py"))


@pytest.fixture
def stack(full_stack):
    return full_stack


@pytest.fixture
def states(stack):
    """What the monitor publishes, while the client spins."""
    received = []
    subscription = stack.client.node.create_subscription(
        StackState, "/stack_state", received.append, LATCHED
    )
    yield received
    stack.client.node.destroy_subscription(subscription)


def one_for_each():
    """A valid request for every service and action."""
    entries = load_yaml(ROOT / "benchmarks" / "every_service.yaml")
    return read_exchanges(entries, "every_service.yaml")


def caller_of(client, question):
    exchange = question.exchange
    if exchange.action:
        return ActionClient(client.node, exchange.interface(), exchange.name)
    return client.node.create_client(exchange.interface(), exchange.name)


def send(client, caller, question, request=None):
    """A future of the answer to a question, or to another request."""
    request = question.request if request is None else request
    exchange = question.exchange
    if not exchange.action:
        assert client.spin_until(caller.service_is_ready, 60.0), exchange.name
        return caller.call_async(request)
    assert client.spin_until(caller.server_is_ready, 60.0), exchange.name
    answer = Future()

    def accepted(future):
        wait = future.result().get_result_async()
        wait.add_done_callback(lambda done: answer.set_result(done.result().result))

    caller.send_goal_async(request).add_done_callback(accepted)
    return answer


def test_every_node_of_the_launch_file_is_up(stack):
    assert {name: stack.state(name) for name in stack.names} == dict.fromkeys(stack.names, "active")
    pids = stack.pids()
    assert None not in pids.values()
    assert len(set(pids.values())) == len(stack.names)


def test_the_examples_call_every_service(stack):
    text = "".join(script.read_text() for script in EXAMPLES)
    for service in stack.services():
        _, node, name = service.rsplit("/", 2)
        assert re.search(rf"\b{node}\b", text), service
        assert f"/{name}" in text, service


def test_eight_clients_at_once(stack):
    """All eight ask every service and action at the same moment; each gets its own answer."""
    domain = stack.client.node.context.get_domain_id()
    questions = one_for_each()
    assert {q.exchange.name for q in questions if not q.exchange.action} == set(stack.services())
    assert {q.exchange.name for q in questions if q.exchange.action} == set(stack.actions())
    with contextlib.ExitStack() as opened:
        clients = [opened.enter_context(open_client(f"crowd{k}", domain=domain)) for k in range(8)]
        callers = [[caller_of(client, question) for client in clients] for question in questions]
        for client, callers_of_one in zip(clients, zip(*callers, strict=True), strict=True):
            assert client.spin_until(lambda all_=callers_of_one: all(map(is_ready, all_)), 60.0)
        for question, crowd in zip(questions, callers, strict=True):
            name = question.exchange.name
            pairs = zip(clients, crowd, strict=True)
            futures = [send(client, caller, question) for client, caller in pairs]
            for client, future in zip(clients, futures, strict=True):
                assert client.spin_until(future.done, 120.0), name
            answers = [outcome_of(future.result()) for future in futures]
            if "/ft_controller/" not in name:  # it may stand still, see above
                assert all(answer.good for answer in answers), (name, answers)
            assert not {"INTERNAL_ERROR", "CRASH"} & {answer.name for answer in answers}, answers


def is_ready(caller):
    """Whether a service, or an action's server, has been found."""
    is_action = hasattr(caller, "server_is_ready")
    return caller.server_is_ready() if is_action else caller.service_is_ready()


def test_no_request_may_take_as_long_as_it_likes(stack):
    """Time limits that are no number, negative or beyond the maximum are refused by every node."""
    checked = set()
    for question in one_for_each():
        caller = caller_of(stack.client, question)
        for field in {"timeout", "wait"} & question.request.get_fields_and_field_types().keys():
            for limit in (math.nan, math.inf, -1.0, 1e308):
                request = copy.deepcopy(question.request)
                setattr(request, field, limit)
                future = send(stack.client, caller, question, request)
                assert stack.client.spin_until(future.done, 30.0), (question.exchange.name, limit)
                status = future.result().status
                assert status.code == SolveStatus.INVALID_INPUT, (question.exchange.name, limit)
                assert status.message.startswith(f"{field}: must be between 0 and ")
                checked.add(question.exchange.name)
    assert len(checked) > 10


def said(state):
    """Names of the nodes that the monitor says are gone or not back yet."""
    gone = (NodeState.SILENT, NodeState.MISSING, NodeState.STARTING)
    away = [node.name for node in state.nodes if node.expected and node.health in gone]
    assert not (away and state.ready)
    assert all(name in state.message for name in away)
    return away


class Pulse:
    """Asks all nodes for their state without pause, in a thread with a client of its own.

    Attributes:
        beats: How often each has said that it is active.
        strange: What nodes said that were not excused.
        excused: Nodes that were killed and are not back yet.
    """

    def __init__(self, stack):
        self.beats = dict.fromkeys(stack.names, 0)
        self.strange = []
        self.excused = set()
        self._domain = stack.client.node.context.get_domain_id()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        with open_client("pulse", domain=self._domain) as client:
            while not self._stop.is_set():
                for name in self.beats:
                    if name not in self.excused:
                        self._ask(client, name)

    def _ask(self, client, name):
        """A short question: one that goes to a node which was killed is lost."""
        try:
            answer = client.call(
                f"{name}/get_state", GetState, GetState.Request(), wait=2.0, timeout=2.0
            )
        except (SolveTimeout, Unreachable):
            return
        if answer.current_state.label == "active":
            self.beats[name] += 1
        elif name not in self.excused:
            self.strange.append((name, answer.current_state.label))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()


def test_killed_nodes_come_back_and_the_others_never_stop(stack, states):
    """SIGKILL for each in turn, the monitor last and when all others are back.

    The next one is killed while the last one still starts: the others must not depend on it.
    """
    *others, monitor = sorted(stack.names, key=lambda name: name.endswith("stack_monitor"))
    with Pulse(stack) as pulse:
        for victim in others:
            kill(stack, pulse, victim)
            noticed = lambda v=victim: any(v in said(state) for state in states)  # noqa: E731
            assert stack.client.spin_until(noticed, 60.0), f"the monitor did not notice {victim}"
        come_back(stack, pulse, others)
        for victim in others:
            assert stack.client.spin_until(lambda v=victim: restarted(v, states), 30.0), victim
        kill(stack, pulse, monitor)
        come_back(stack, pulse, [monitor])
    assert not pulse.strange
    stack.answer_everything()


def kill(stack, pulse, victim):
    """Kill one; the others are asked meanwhile."""
    until = stack.client.spin_until
    pulse.excused.add(victim)
    others = [name for name in stack.names if name not in pulse.excused]
    before, beats = stack.pids(), dict(pulse.beats)
    children = psutil.Process(before[victim]).children(recursive=True)
    os.kill(before[victim], signal.SIGKILL)
    assert until(lambda: stack.pid(victim) not in (None, before[victim]), 60.0), victim
    # Twice: the first answer may have been under way when the other was killed.
    assert until(lambda: all(pulse.beats[n] > beats[n] + 1 for n in others), 60.0), pulse.beats
    after = stack.pids()
    del before[victim], after[victim]
    assert after == before
    _, alive = psutil.wait_procs(children, timeout=60.0)
    assert not alive, f"{victim} left processes behind: {alive}"


def come_back(stack, pulse, victims):
    """Wait until those that were killed are active again; from then on they have to stay so."""
    for victim in victims:
        assert stack.client.spin_until(lambda v=victim: stack.active(v), 120.0), (
            f"{victim} did not come back"
        )
        pulse.excused.discard(victim)


def restarted(victim, states):
    """Whether the monitor has counted a restart."""
    nodes = [node for state in states for node in state.nodes]
    return any(node.name == victim and node.restarts >= 1 for node in nodes)


def test_malformed_input_kills_nobody(stack):
    """Services, actions and topics; the thousands are in ``./kinstack bench stack``."""
    before = stack.pids()
    reports = []
    valid = [question for question in one_for_each() if not question.exchange.action]
    for service, kind in sorted(stack.services().items()):
        if kind.endswith("/CheckReady"):  # has a test of its own, and waits by design
            continue
        examples = [q.request for q in valid if q.exchange.name == service]
        reports.append(
            fuzz_service(
                stack.client, service, find_type(kind, "srv"), 30, seed=7, examples=examples
            )
        )
    for action, kind in sorted(stack.actions().items()):
        reports.append(fuzz_action(stack.client, action, find_type(kind, "action"), 12, seed=7))
    unanswered = [str(report) for report in reports if report.answered != report.sent]
    assert not unanswered
    surprises = {report.name: report.sentences for report in reports if report.sentences}
    assert not surprises, "exceptions that nobody foresaw"
    for topic, (kind, node) in sorted(stack.subscriptions().items()):
        fuzz_topic(
            stack.client,
            topic,
            find_message(kind),
            40,
            seed=7,
            after_each=lambda node=node: stack.state(node),
        )
    for node in sorted(stack.names):
        report = fuzz_parameters(stack.client, node, 60, seed=7)
        assert report.answered == report.sent, str(report)
        assert {"accepted", "refused"} <= set(report.codes), str(report)
        assert not report.sentences, str(report)
    assert {name: stack.state(name) for name in stack.names} == dict.fromkeys(stack.names, "active")
    assert stack.pids() == before
