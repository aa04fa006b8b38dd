"""The whole stack: round trips against an empty node, rates, a soak, and malformed requests.

Latency is measured with the nodes idle but for the requests (no demos, no controller), because two
cores that are busy with a 500 Hz control loop say little about a service. Everything else is
measured with the stack as ``./kinstack up`` starts it. All of it takes some twenty minutes;
KINSTACK_STACK_PARTS=latency,fuzz leaves out what it does not name.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import rclpy
from domain_coordinator import domain_id
from geometry_msgs.msg import PoseStamped
from kin_interfaces.msg import FtStatus
from moveit_msgs.srv import GetPositionIK
from rclpy.context import Context
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64
from std_srvs.srv import Trigger

from benchmarks.harness import Bench
from benchmarks.stack_doors import count_doors, ik_question, tf_share
from kin_bags.ask import AskedQuestion, read_exchanges
from kin_core.errors import KinError
from kin_core.yamls import load_yaml
from kin_ros.client import Client, open_client
from kin_ros.executor import make_executor
from kin_ros.messages import find_message, find_type, to_plain
from kin_ros.qos import COMMAND, STATE
from kin_ros.status import outcome_of
from kin_testing.fuzz import (
    FuzzReport,
    fuzz_action,
    fuzz_parameters,
    fuzz_service,
    fuzz_topic,
)
from kin_testing.running_stack import RunningStack, running_stack

#: The service of each system whose round trips are measured: a small request, so that what ROS
#: takes shows beside it.
LATENCY = {
    "continuum": "/continuum_ik/solve_ik",
    "delta": "/gpu_kinematics/solve_delta",
    "cuik": "/kin_solvers/solve_all_ik",
    "hier": "/hier_ik/solve",
}
IDLE = {
    "ft": "false",
    "dashboard": "false",
    "continuum_source": "none",
    "hier_demo": "none",
    "delta_fleet": "0",
}
SOAK_CLIENTS = 4
PATIENCE = 60.0
EVERY_SERVICE = Path(__file__).with_name("every_service.yaml")


def main(bench: Bench) -> None:
    """Run all parts, or those that KINSTACK_STACK_PARTS names."""
    chosen = os.environ.get("KINSTACK_STACK_PARTS", "executor,latency,doors,soak,fuzz")
    parts = set(chosen.split(","))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "executor" in parts:
            executors(bench)
        if "latency" in parts:
            bench.say("starting the nodes without demos ...")
            with running_stack(folder / "idle.log", IDLE, timeout=600.0) as stack:
                latency(bench, stack, folder)
                ik_door(bench, stack, folder)
        if parts & {"doors", "soak", "fuzz"}:
            bench.say("starting the full stack ...")
            with running_stack(folder / "full.log", timeout=600.0) as stack:
                status_rate(bench, stack)
                if "doors" in parts:
                    tf_share(bench, stack)
                    count_doors(bench, stack)
                if "soak" in parts:
                    soak(bench, stack)
                if "fuzz" in parts:
                    fuzz(bench, stack)


# The executor ------------------------------------------------------------------------------------


@contextlib.contextmanager
def listener(make: Callable[[Context], Executor]) -> Iterator[Callable[[], float]]:
    """A node with as much to wait for as one of the stack; yields what sends it 100 messages.

    That returns the processor time [s] of the thread that spins, for each message.
    """
    context = Context()
    with domain_id() as number:
        rclpy.init(context=context, domain_id=number)
        node = Node("listener", context=context, enable_rosout=False)
        for index in range(9):  # with those of its parameters a lifecycle node has that many
            node.create_service(Trigger, f"service_{index}", lambda request, response: response)
            node.create_subscription(Float64, f"topic_{index % 4}", lambda message: None, STATE)
        heard = threading.Semaphore(0)
        node.create_subscription(Float64, "messages", lambda message: heard.release(), STATE)
        publisher = node.create_publisher(Float64, "messages", STATE)
        executor = make(context)
        executor.add_node(node)
        spent = [0.0]
        ended = threading.Event()

        def spin() -> None:
            while not ended.is_set():
                executor.spin_once()
                spent[0] = time.thread_time()

        thread = threading.Thread(target=spin, daemon=True)
        thread.start()

        def send() -> float:
            before = spent[0]
            for _ in range(100):
                publisher.publish(Float64())
                heard.acquire()
            return (spent[0] - before) / 100

        while not publisher.get_subscription_count():
            time.sleep(0.01)
        try:
            yield send
        finally:
            ended.set()
            executor.create_task(lambda: None)
            thread.join(5.0)
            executor.shutdown()
            node.destroy_node()
            context.try_shutdown()


def executors(bench: Bench) -> None:
    """What a message costs a node: on rclpy's executor and on ours, in turn."""

    def own(context: Context) -> Executor:
        return SingleThreadedExecutor(context=context)

    with listener(own) as plain, listener(make_executor) as lean:
        spent: dict[str, list[float]] = {"rclpy": [], "kinstack": []}
        for _ in range(10 if bench.quick else 60):
            spent["rclpy"].append(plain())
            spent["kinstack"].append(lean())
    pairs = zip(spent["rclpy"][3:], spent["kinstack"][3:], strict=True)
    ratio = statistics.median(a / b for a, b in pairs)
    bench.result("executor_cpu_ratio", ratio, "", "processor time of a message, rclpy's / ours")
    bench.table(
        "processor time of one message in the thread that spins",
        ("executor", "[us]"),
        [(name, 1e6 * statistics.median(times)) for name, times in spent.items()],
    )


# Latency -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def echo(stack: RunningStack, folder: Path) -> Iterator[dict[str, str]]:
    """An empty node that gives the same answers; yields the names of its services."""
    services, names = [], {}
    asked = measured()
    for system, question in asked.items():
        answer = call(stack.client, question)
        outcome = outcome_of(answer)
        if not outcome.good:
            raise RuntimeError(f"{question.exchange.name}: {outcome.message}")
        (folder / system).write_bytes(serialize_message(answer))
        names[system] = f"/echo/{system}"
        services.append((names[system], question.exchange.kind, system))
    lengths = lengths_like(call(stack.client, asked["continuum"]))
    (folder / "lengths").write_bytes(serialize_message(lengths))
    pose, joints = "geometry_msgs/msg/PoseStamped", "sensor_msgs/msg/JointState"
    topics = [("/echo/target", pose, "/echo/joint_states", joints, "lengths")]
    with empty_node(stack, folder, services, topics):
        yield names


@contextlib.contextmanager
def empty_node(
    stack: RunningStack, folder: Path, services: list[Any], topics: list[Any]
) -> Iterator[None]:
    """Run the echo node with these services and topics; their answers are in the folder."""
    (folder / "index.json").write_text(json.dumps({"services": services, "topics": topics}))
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.echo_node", str(folder)],
        env={**psutil.Process().environ(), "ROS_DOMAIN_ID": str(domain(stack))},
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(10.0)


def ik_door(bench: Bench, stack: RunningStack, folder: Path) -> None:
    """Inverse kinematics of a 6R arm the way MoveIt asks, in turn with an empty node."""
    service = "/kin_solvers/compute_ik"
    if service not in stack.client.services():
        bench.say(f"there is no {service}: ik_door_ratio is not measured")
        return
    request = ik_question(stack.client)

    def ask(name: str) -> Any:
        return stack.client.call(name, GetPositionIK, request, wait=30.0, timeout=PATIENCE)

    answer = ask(service)
    outcome = outcome_of(answer)
    if not outcome.good:
        raise RuntimeError(f"{service}: {outcome.name}: {outcome.message}")
    (folder / "ik").write_bytes(serialize_message(answer))
    with empty_node(stack, folder, [("/echo/ik", "moveit_msgs/srv/GetPositionIK", "ik")], []):
        sample = bench.interleave(
            {"echo": lambda: ask("/echo/ik"), "node": lambda: ask(service)},
            repeats=300,
            warmup=20,
        )
    ratio = sample["echo"].ratio(sample["node"])
    times = f"{1e3 * sample['node'].median:.2f} / {1e3 * sample['echo'].median:.2f} ms"
    bench.result("ik_door_ratio", ratio, "", f"GetPositionIK / empty node, {times}")


def lengths_like(answer: Any) -> JointState:
    """What the node publishes for a target, in size and shape."""
    message = JointState(name=[f"leg_{k}" for k in range(6)])
    message.header.frame_id = "base"
    message.position = message.velocity = message.effort = answer.lengths
    return message


def domain(stack: RunningStack) -> int:
    """The ROS domain of a stack."""
    return int(stack.client.node.context.get_domain_id())


def call(client: Client, question: AskedQuestion, name: str = "") -> Any:
    """One round trip; ``name`` is that of another service of the same type."""
    exchange = question.exchange
    return client.call(
        name or exchange.name,
        exchange.interface(),
        question.request,
        wait=30.0,
        timeout=PATIENCE,
    )


def measured() -> dict[str, AskedQuestion]:
    """The question to each system whose round trips are measured, the first one to its service."""
    asked = {question.exchange.name: question for question in reversed(questions())}
    return {system: asked[service] for system, service in LATENCY.items()}


def latency(bench: Bench, stack: RunningStack, folder: Path) -> None:
    """Round trips through each node, in turn with the empty node."""
    rows = []
    with echo(stack, folder) as names:
        for system, question in measured().items():
            service = question.exchange.name
            inside: list[float] = []

            def real(question: Any = question, inside: list[float] = inside) -> None:
                inside.append(call(stack.client, question).status.solve_time)

            def empty(question: Any = question, name: str = names[system]) -> None:
                call(stack.client, question, name)

            sample = bench.interleave(
                {"echo": empty, "node": real},
                repeats=300 if system != "cuik" else 60,
                warmup=20,
            )
            ratio = sample["echo"].ratio(sample["node"])
            if system == "continuum":
                bench.result("echo_ms", 1e3 * sample["echo"].median, "ms", "empty node, service")
                bench.result("continuum_service_latency_ratio", ratio, "", service)
            else:
                bench.result(f"{system}_latency_ratio", ratio, "", f"{service} / empty node")
            node_rate, echo_rate = (
                rate(stack.client, question, name, bench.quick) for name in (service, names[system])
            )
            bench.result(
                f"{system}_rate_hz", node_rate, "1/s", "highest rate held, 4 open requests"
            )
            rows.append(
                (
                    service,
                    1e3 * sample["echo"].median,
                    1e3 * sample["node"].median,
                    1e3 * sample["node"].high,
                    1e3 * statistics.median(inside),
                    ratio,
                    node_rate,
                    echo_rate,
                )
            )
        rows.append(tracking(bench, stack))
    head = (
        "service or topic",
        "echo [ms]",
        "node [ms]",
        "node p90",
        "inside",
        "ratio",
        "rate [1/s]",
        "echo",
    )
    bench.table("round trips, one client, and rates with four open requests", head, rows)


def tracking(bench: Bench, stack: RunningStack) -> tuple[Any, ...]:
    """The way that a robot in motion takes: a target in, leg lengths out."""
    node = stack.client.node
    heard = {"echo": 0, "node": 0}
    places = {"echo": "/echo", "node": "/continuum_ik"}
    speakers = {}
    for key, place in places.items():

        def count(_: Any, key: str = key) -> None:
            heard[key] += 1

        node.create_subscription(JointState, f"{place}/joint_states", count, STATE)
        speakers[key] = node.create_publisher(PoseStamped, f"{place}/target", COMMAND)
    stack.client.spin_until(
        lambda: (
            all(p.get_subscription_count() for p in speakers.values())
            and all(node.count_publishers(f"{place}/joint_states") for place in places.values())
        ),
        30.0,
    )
    message = PoseStamped()
    message.pose.orientation.w = 1.0
    turn = 0.0

    def through(key: str) -> None:
        nonlocal turn
        turn += 0.01
        place = message.pose.position
        place.x, place.y, place.z = 0.03 * math.cos(turn), 0.02 + 0.03 * math.sin(turn), 0.48
        before = heard[key]
        speakers[key].publish(message)
        if not stack.client.spin_until(lambda: heard[key] > before, PATIENCE):
            raise RuntimeError(f"{places[key]} did not answer a target")

    sample = bench.interleave(
        {key: partial(through, key) for key in places}, repeats=500, warmup=50
    )
    ratio = sample["echo"].ratio(sample["node"])
    bench.result("continuum_latency_ratio", ratio, "", "target in, leg lengths out / empty node")
    echo, real = sample["echo"], sample["node"]
    return (
        *("/continuum_ik/target", 1e3 * echo.median, 1e3 * real.median, 1e3 * real.high),
        *("", ratio, "", ""),
    )


def rate(client: Client, question: AskedQuestion, service: str, quick: bool) -> float:
    """Answers per second with four requests open all the time."""
    caller = client.node.create_client(question.exchange.interface(), service)
    request = question.request
    client.spin_until(caller.service_is_ready, 30.0)
    seconds = 0.5 if quick else 3.0
    start = time.monotonic()
    waiting = [caller.call_async(request) for _ in range(4)]
    answers = 0
    while time.monotonic() - start < seconds:
        client.spin_until(lambda open=waiting: any(f.done() for f in open), PATIENCE)
        answers += sum(future.done() for future in waiting)
        waiting = [f if not f.done() else caller.call_async(request) for f in waiting]
    elapsed = time.monotonic() - start
    client.spin_until(lambda: all(future.done() for future in waiting), PATIENCE)
    client.node.destroy_client(caller)
    return answers / elapsed


def status_rate(bench: Bench, stack: RunningStack) -> None:
    """How often the controller says how it is."""
    arrivals: list[float] = []
    subscription = stack.client.node.create_subscription(
        FtStatus, "/ft_controller/status", lambda _: arrivals.append(time.monotonic()), STATE
    )
    stack.client.spin_until(lambda: len(arrivals) > 1, 30.0)
    seconds = 2.0 if bench.quick else 10.0
    arrivals.clear()
    stack.client.spin_until(lambda: False, seconds)
    stack.client.node.destroy_subscription(subscription)
    value = len(arrivals) / seconds
    bench.result("ft_status_rate_hz", value, "Hz", "messages on ft_controller/status")


# Soak --------------------------------------------------------------------------------------------


def questions() -> list[Any]:
    """A valid request for every service and action."""
    return list(read_exchanges(load_yaml(EVERY_SERVICE), EVERY_SERVICE.name))


class Soaker(threading.Thread):
    """Asks all questions again and again until told to stop; nothing may be lost."""

    def __init__(self, number: int, domain_id: int) -> None:
        super().__init__(name=f"soaker {number}")
        self._questions = [
            (question.exchange.name, question.exchange.interface(), question.request)
            for question in questions()
            if not question.exchange.action
        ]
        self._random = random.Random(number)
        self._domain = domain_id
        self._number = number
        self.stop = threading.Event()
        self.sent = 0
        self.lost: list[str] = []
        self.failed: list[str] = []

    def run(self) -> None:
        """Ask."""
        with open_client(f"soak{self._number}", domain=self._domain) as client:
            while not self.stop.is_set():
                service, kind, request = self._random.choice(self._questions)
                self.sent += 1
                try:
                    answer = client.call(service, kind, request, wait=PATIENCE, timeout=PATIENCE)
                except KinError as error:
                    self.lost.append(f"{service}: {error}")
                    continue
                outcome = outcome_of(answer)
                if not outcome.good:
                    self.failed.append(f"{service}: {outcome.message}")


def soak(bench: Bench, stack: RunningStack) -> None:
    """Minutes of requests from several clients; memory is watched meanwhile."""
    warm, minutes = (5.0, 0.2) if bench.quick else (60.0, 10.0)
    soakers = [Soaker(k, domain(stack)) for k in range(SOAK_CLIENTS)]
    before = stack.pids()
    for soaker in soakers:
        soaker.start()
    samples: list[tuple[float, dict[str, int]]] = []
    try:
        stack.client.spin_until(lambda: False, warm)
        start = time.monotonic()
        while time.monotonic() - start < 60.0 * minutes:
            samples.append((time.monotonic() - start, stack.memory()))
            stack.client.spin_until(lambda: False, 1.0)
    finally:
        for soaker in soakers:
            soaker.stop.set()
        for soaker in soakers:
            soaker.join()
    elapsed = time.monotonic() - start
    tenth = max(1, len(samples) // 10)
    rows, growths = [], {}
    for name in stack.names:
        sizes = [memory.get(name, 0) / 1e6 for _, memory in samples]
        first, last = statistics.median(sizes[:tenth]), statistics.median(sizes[-tenth:])
        growths[name] = last - first
        rows.append(
            (name, first, last, last - first, "no" if stack.pid(name) == before[name] else "yes")
        )
    bench.table(
        "memory during the soak [MB]",
        ("node", "after warm-up", "at the end", "growth", "died"),
        rows,
    )
    lost = [text for soaker in soakers for text in soaker.lost]
    failed = [text for soaker in soakers for text in soaker.failed]
    for text in sorted(set(lost + failed))[:20]:
        bench.say(f"  {text}")
    with bench.chart("soak_memory") as axes:
        for name in stack.names:
            axes.plot(
                [t for t, _ in samples], [m.get(name, 0) / 1e6 for _, m in samples], label=name
            )
        axes.set(xlabel="time [s]", ylabel="resident memory [MB]", title="soak")
        axes.legend(fontsize="small")
    bench.result("soak_minutes", elapsed / 60.0, "min", f"{SOAK_CLIENTS} clients, all services")
    bench.result("soak_requests", sum(soaker.sent for soaker in soakers))
    bench.result("soak_lost", len(lost), "", "requests without an answer")
    bench.result("soak_failed", len(failed), "", "answers other than SUCCESS")
    bench.result("soak_rss_growth_mb", sum(growths.values()), "MB", "all nodes together")
    bench.result("soak_rss_growth_worst_mb", max(growths.values()), "MB", "of one node")


# Malformed requests ------------------------------------------------------------------------------


def fuzz(bench: Bench, stack: RunningStack) -> None:
    """Thousands of malformed requests to every service and action, and messages on every topic."""
    total = 400 if bench.quick else 10_000
    services = {k: v for k, v in stack.services().items() if not v.endswith("/CheckReady")}
    actions = stack.actions()
    each = -(-total // (len(services) + len(actions)))
    before, deaths = stack.pids(), 0
    reports: list[FuzzReport] = []
    one_at_a_time = threading.Lock()

    def count_deaths() -> None:
        nonlocal before, deaths
        now = stack.pids()
        deaths += sum(now[name] != before[name] for name in now)
        before = now

    valid = questions()
    words = sorted({word for question in valid for word in texts(to_plain(question.request))})

    def attack(entries: list[tuple[str, str, bool]]) -> None:
        """All services and actions of one node, one after the other."""
        with open_client(f"fuzz{entries[0][0].replace('/', '_')}", domain=domain(stack)) as client:
            for name, kind, action in entries:
                examples = [
                    q.request
                    for q in valid
                    if q.exchange.name == name and bool(q.exchange.action) == action
                ]
                fuzz_one = fuzz_action if action else fuzz_service
                found = find_type(kind, "action" if action else "srv")
                report = fuzz_one(client, name, found, each, seed=1, examples=examples, words=words)
                with one_at_a_time:
                    reports.append(report)
                    bench.say(f"  {report}")
                    count_deaths()

    # Two nodes at a time: while one computes, the other is being asked.
    nodes: dict[str, list[tuple[str, str, bool]]] = {}
    for found_names, action in ((services, False), (actions, True)):
        for name, kind in sorted(found_names.items()):
            nodes.setdefault(name.rpartition("/")[0], []).append((name, kind, action))
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(attack, sorted(nodes.values(), key=len, reverse=True)))
    messages = 0
    for topic, (kind, node) in sorted(stack.subscriptions().items()):
        found = find_message(kind)
        messages += fuzz_topic(
            stack.client,
            topic,
            found,
            each // 4,
            seed=1,
            after_each=lambda node=node: stack.state(node),
        ).sent
        count_deaths()
    changes = []
    for node in sorted(stack.names):
        changes.append(fuzz_parameters(stack.client, node, each, seed=1))
        bench.say(f"  {changes[-1]}")
        count_deaths()
    deaths += sum(stack.state(name) != "active" for name in stack.names)
    for report in reports + changes:
        for sentence, number in report.sentences.items():
            bench.say(f"  {report.name}, request {number}: {sentence}")
    bench.result(
        "fuzz_requests", sum(report.sent for report in reports), "", "services and actions"
    )
    bench.result("fuzz_messages", messages, "", "on topics, half of them broken bytes")
    bench.result(
        "fuzz_parameter_changes",
        sum(sum(report.codes.values()) for report in changes),
        "",
        "values of parameters of running nodes",
    )
    bench.result("fuzz_unanswered", sum(len(report.unanswered) for report in reports + changes))
    bench.result(
        "fuzz_internal_errors",
        sum(report.codes["INTERNAL_ERROR"] for report in reports),
        "",
        "answers that say INTERNAL_ERROR",
    )
    bench.result("fuzz_deaths", deaths, "", "nodes that ended or are not active")


def texts(value: Any) -> Iterator[str]:
    """All texts in a request, which mean something to the node."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)
