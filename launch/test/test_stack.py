"""The whole stack as a user launches it: examples, many clients, killed nodes, malformed input.

The tests share one stack and run in the order of this file; each leaves it in good health.
"""

import contextlib
import copy
import math
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from kin_interfaces.msg import NodeState, SolveStatus, StackState
from kin_interfaces.srv import SetController
from lifecycle_msgs.srv import GetState
from rclpy.action import ActionClient
from rclpy.task import Future
from rosgraph_msgs.msg import Clock

from kin_bags.ask import read_exchanges
from kin_core.errors import SolveTimeout, Unreachable
from kin_core.yamls import load_yaml
from kin_ros.client import open_client
from kin_ros.messages import fill, find_type
from kin_ros.qos import LATCHED
from kin_testing.fuzz import fuzz_action, fuzz_parameters, fuzz_service, fuzz_topic
from kin_testing.running_stack import find_message, running_stack

# The first test that uses the stack waits for all nodes to compile, if nobody has before.
pytestmark = [pytest.mark.stack, pytest.mark.alone, pytest.mark.slow, pytest.mark.timeout(900)]

NAMESPACE = "/rob"
INTERNAL_ERROR = SolveStatus.INTERNAL_ERROR
ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(ROOT.glob("examples/[0-9]*.py"))


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    log = tmp_path_factory.mktemp("stack") / "log.txt"
    with running_stack(log, {"namespace": NAMESPACE[1:]}, timeout=600.0) as running:
        yield running


@pytest.fixture
def states(stack):
    """What the monitor publishes, while the client spins."""
    received = []
    subscription = stack.client.node.create_subscription(
        StackState, f"{NAMESPACE}/stack_state", received.append, LATCHED
    )
    yield received
    stack.client.node.destroy_subscription(subscription)


def request_of(question):
    """The type and the request, with time enough for a busy machine."""
    kind = find_type(question.kind, "srv")
    request = fill(kind.Request(), question.request)
    if hasattr(request, "timeout"):
        request.timeout = 100.0
    if hasattr(request, "wait"):
        request.wait = 5.0
    return kind, request


def start_again(stack, node):
    """Lead the controller out of a safe stop: a killed arm or a busy machine leads it there."""
    request = SetController.Request(reset=True)
    return stack.client.call(
        f"{node}/set_controller", SetController, request, wait=60.0, timeout=60.0
    )


def succeed(stack, question, attempts=10):
    """Ask until the answer is SUCCESS.

    Only the controller may need more than one attempt, and the monitor, which names it then.
    """
    kind, request = request_of(question)
    controller = next(name for name in stack.names if name.endswith("/ft_controller"))
    for _ in range(attempts):
        answer = stack.client.call(question.service, kind, request, wait=60.0, timeout=120.0)
        if answer.status.code == 0:
            return
        faulty = question.node == controller or controller in answer.status.message
        assert faulty, (question.service, answer.status)
        start_again(stack, controller)
    raise AssertionError((question.service, answer.status))


def active(stack, name):
    """Whether a node says so; a short question, for one that goes to a dead node is lost."""
    try:
        return stack.state(name, 2.0) == "active"
    except (SolveTimeout, Unreachable):
        return False


def all_active(stack):
    return all(active(stack, name) for name in stack.names)


def real_questions(stack):
    return [question for question in stack.questions if question.source != "lifecycle"]


def one_for_each():
    """A valid request for every service and action."""
    entries = load_yaml(ROOT / "benchmarks" / "every_service.yaml")
    for entry in entries:
        key = "action" if "action" in entry else "service"
        entry[key] = NAMESPACE + entry[key]
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
    assert all(name.startswith(f"{NAMESPACE}/") for name in stack.names)
    assert {name: stack.state(name) for name in stack.names} == dict.fromkeys(stack.names, "active")
    pids = stack.pids()
    assert None not in pids.values()
    assert len(set(pids.values())) == len(stack.names)


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_example(stack, script):
    """A plain script in another process calls the services from another namespace.

    A busy machine leads the controller to a safe stop; what needs it then gets another chance.
    """
    domain = stack.client.node.context.get_domain_id()
    text = script.read_text()
    attempts = 3 if "/ft_controller" in text or "/stack_monitor" in text else 1
    for _ in range(attempts):
        start_again(stack, f"{NAMESPACE}/ft_controller")
        done = subprocess.run(
            [sys.executable, str(script), "--stack", NAMESPACE],
            env={**os.environ, "ROS_DOMAIN_ID": str(domain)},
            capture_output=True,
            text=True,
            timeout=120,
        )
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()
    assert "Traceback" not in done.stderr


def test_the_examples_call_every_service(stack):
    text = "".join(script.read_text() for script in EXAMPLES)
    for service in stack.services():
        _, node, name = service.rsplit("/", 2)
        assert f"/{node}" in text, service
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
            answers = [future.result().status for future in futures]
            if "/ft_controller/" not in name:  # it may stand still, see above
                assert {status.code for status in answers} == {0}, (name, answers)
            assert not any(status.code == INTERNAL_ERROR for status in answers), answers


def is_ready(caller):
    return (
        caller.server_is_ready()
        if hasattr(caller, "server_is_ready")
        else (caller.service_is_ready())
    )


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
            kill(stack, pulse, victim, states)
        come_back(stack, pulse, others)
        for victim in others:
            assert stack.client.spin_until(lambda v=victim: restarted(v, states), 30.0), victim
        kill(stack, pulse, monitor, None)
        come_back(stack, pulse, [monitor])
    assert not pulse.strange
    for question in real_questions(stack):
        succeed(stack, question)


def kill(stack, pulse, victim, states):
    """Kill one; the others are asked meanwhile, and what the monitor says of it is read."""
    until = stack.client.spin_until
    pulse.excused.add(victim)
    others = [name for name in stack.names if name not in pulse.excused]
    before, beats = stack.pids(), dict(pulse.beats)
    children = psutil.Process(before[victim]).children(recursive=True)
    os.kill(before[victim], signal.SIGKILL)
    assert until(lambda: stack.pid(victim) not in (None, before[victim]), 60.0), victim
    if states is not None:
        assert until(lambda: any(victim in said(state) for state in states), 60.0), (
            f"the monitor did not notice that {victim} was killed"
        )
    # Twice: the first answer may have been under way when the other was killed.
    assert until(lambda: all(pulse.beats[n] > beats[n] + 1 for n in others), 60.0), pulse.beats
    after = stack.pids()
    del before[victim], after[victim]
    assert after == before
    _, alive = psutil.wait_procs(children, timeout=10.0)
    assert not alive, f"{victim} left processes behind: {alive}"


def come_back(stack, pulse, victims):
    """Wait until those that were killed are active again; from then on they have to stay so."""
    for victim in victims:
        assert stack.client.spin_until(lambda v=victim: active(stack, v), 120.0), (
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


def test_the_end_is_clean(stack):
    family = stack.process.children(recursive=True)
    assert stack.stop() == 0, stack.log.read_text()[-3000:]
    _, alive = psutil.wait_procs(family, timeout=20.0)
    assert not alive


def test_simulated_time_and_a_clock_that_jumps_back(tmp_path):
    """With use_sim_time all nodes start, answer and stamp by /clock, also after it jumped back."""
    with running_stack(tmp_path / "log.txt", {"use_sim_time": "true"}) as stack:
        client = stack.client
        clock = client.node.create_publisher(Clock, "/clock", 10)
        stamps = []
        client.node.create_subscription(
            StackState, "/stack_state", lambda state: stamps.append(state.stamp.sec), LATCHED
        )

        def run(start, seconds):
            """Let simulated time pass, and see that the stack follows it."""
            stamps.clear()
            end = time.monotonic() + 30.0
            now = start
            while time.monotonic() < end:
                now += 0.02
                message = Clock()
                message.clock.sec, message.clock.nanosec = int(now), int(now % 1.0 * 1e9)
                clock.publish(message)
                client.spin_until(lambda: False, 0.02)
                if now >= start + seconds and any(start <= s <= now + 1 for s in stamps):
                    return
            raise AssertionError(f"no stamp after {start} s; the last were {stamps[-5:]}")

        before = stack.pids()
        for start in (1000.0, 2000.0, 10.0):  # forward in a leap, then far back
            run(start, 2.0)
            for question in real_questions(stack):
                succeed(stack, question)
        assert stack.pids() == before
        assert client.spin_until(lambda: all_active(stack), 60.0)
        assert stack.stop() == 0
