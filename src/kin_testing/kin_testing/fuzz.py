"""Malformed input for every service, action, topic and parameter of a running node.

The report names the number of each message that was not answered or gave an exception; the seed and
the number make the message again.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rcl_interfaces.msg import Parameter
from rcl_interfaces.srv import DescribeParameters, GetParameters, ListParameters, SetParameters
from rclpy._rclpy_pybind11 import RCLError
from rclpy.action import ActionClient
from rclpy.serialization import serialize_message
from rclpy.task import Future

from kin_ros.qos import profile
from kin_ros.status import outcome_of
from kin_testing.malformed import Fuzzer
from kin_testing.malformed_parameters import ParameterDraw

if TYPE_CHECKING:
    from kin_ros.client import Client

__all__ = ["FuzzReport", "fuzz_action", "fuzz_parameters", "fuzz_service", "fuzz_topic"]


@dataclass
class FuzzReport:
    """What became of a run.

    Attributes:
        name: Of the service, action or topic.
        sent: Messages sent.
        answered: Answers that came.
        codes: How often each code came; "answered" where the answer has none.
        unanswered: Numbers of those without an answer.
        sentences: The first message of each INTERNAL_ERROR, with the number of its request.
            MoveIt's name for it is CRASH.
    """

    name: str
    sent: int = 0
    answered: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    unanswered: list[int] = field(default_factory=list)
    sentences: dict[str, int] = field(default_factory=dict)

    def take(self, number: int, answer: Any) -> None:
        """Note an answer."""
        self.answered += 1
        outcome = outcome_of(answer)
        name = "INTERNAL_ERROR" if outcome.name == "CRASH" else outcome.name
        self.codes[name] += 1
        if name == "INTERNAL_ERROR" and len(self.sentences) < 20:
            self.sentences.setdefault(outcome.message[:200], number)

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in self.codes.most_common())
        lost = f"; unanswered: {self.unanswered[:20]}" if self.unanswered else ""
        return f"{self.name}: {self.sent} sent, {self.answered} answered ({counts}){lost}"


def fuzz_service(
    client: Client,
    service: str,
    kind: Any,
    count: int,
    *,
    seed: int = 0,
    examples: Sequence[Any] = (),
    words: Sequence[str] = (),
    in_flight: int = 4,
    patience: float = 60.0,
    stop: Callable[[], bool] = lambda: False,
) -> FuzzReport:
    """Send many malformed requests to a service and count the answers.

    Args:
        client: Asks.
        service: Full name of a service that is there.
        kind: Its type.
        count: Requests to send.
        seed: Decides what is sent.
        examples: Valid requests to spoil.
        words: Texts that mean something to the node.
        in_flight: Requests that are open at the same time.
        patience: A request without an answer for so long counts as unanswered [s].
        stop: Ends the run when it returns True.
    """
    fuzzer = Fuzzer(seed, words=words)
    caller = client.node.create_client(kind, service)

    def send(number: int) -> Any:
        return caller.call_async(fuzzer.request(kind.Request, number, examples))

    try:
        ready = caller.service_is_ready
        return _pump(client, FuzzReport(service), ready, send, count, in_flight, patience, stop)
    finally:
        client.node.destroy_client(caller)


def fuzz_action(
    client: Client,
    action: str,
    kind: Any,
    count: int,
    *,
    seed: int = 0,
    examples: Sequence[Any] = (),
    words: Sequence[str] = (),
    patience: float = 60.0,
    stop: Callable[[], bool] = lambda: False,
) -> FuzzReport:
    """Send many malformed goals; every third is cancelled at once. The result is the answer."""
    fuzzer = Fuzzer(seed, words=words)
    caller = ActionClient(client.node, kind, action)

    def send(number: int) -> Any:
        return _goal(caller, fuzzer.request(kind.Goal, number, examples), number % 3 == 2)

    try:
        ready = caller.server_is_ready
        return _pump(client, FuzzReport(action), ready, send, count, 2, patience, stop)
    finally:
        caller.destroy()


def _goal(caller: Any, goal: Any, cancel: bool) -> Any:
    """A future of the result of a goal."""
    outcome: Any = Future()

    def accepted(future: Any) -> None:
        handle = future.result()
        if not handle.accepted:
            outcome.set_result(None)
            return
        handle.get_result_async().add_done_callback(
            lambda result: outcome.set_result(result.result().result)
        )
        if cancel:
            handle.cancel_goal_async()

    caller.send_goal_async(goal).add_done_callback(accepted)
    return outcome


def _pump(
    client: Client,
    report: FuzzReport,
    ready: Callable[[], bool],
    send: Callable[[int], Any],
    count: int,
    in_flight: int,
    patience: float,
    stop: Callable[[], bool],
) -> FuzzReport:
    """Keep some requests open until all are sent and answered, or given up."""
    waiting: dict[int, tuple[Any, float]] = {}
    if not client.spin_until(ready, 20.0, stop):
        report.sent, report.unanswered = count, list(range(count))
        return report

    def collect() -> None:
        now = time.monotonic()
        for number, (future, since) in list(waiting.items()):
            if future.done():
                report.take(number, future.result())
            elif now - since > patience:
                report.unanswered.append(number)
            else:
                continue
            del waiting[number]

    while (report.sent < count or waiting) and not stop():
        while report.sent < count and len(waiting) < in_flight:
            waiting[report.sent] = (send(report.sent), time.monotonic())
            report.sent += 1
        before = len(waiting)

        def moved(before: int = before) -> bool:
            collect()
            return len(waiting) < before

        client.spin_until(moved, 1.0, stop)
    collect()
    report.unanswered += sorted(waiting)
    return report


def fuzz_parameters(
    client: Client,
    node: str,
    count: int,
    *,
    seed: int = 0,
    patience: float = 60.0,
    stop: Callable[[], bool] = lambda: False,
) -> FuzzReport:
    """Change every parameter that a node declares while it runs, to right values and wrong ones.

    What the node has accepted is set back in the end. The answers are counted as "accepted" and
    "refused"; a request counts as answered if every value in it was.

    Args:
        client: Asks.
        node: Full name of the node.
        count: Requests to send.
        seed: Decides what is sent.
        patience: A request without an answer for so long counts as unanswered [s].
        stop: Ends the run when it returns True.
    """

    def ask(kind: Any, name: str, request: Any) -> Any:
        return client.call(f"{node}/{name}", kind, request, wait=20.0, timeout=patience)

    names = list(ask(ListParameters, "list_parameters", ListParameters.Request()).result.names)
    known = ask(DescribeParameters, "describe_parameters", DescribeParameters.Request(names=names))
    before = ask(GetParameters, "get_parameters", GetParameters.Request(names=names)).values
    draw = ParameterDraw(seed, list(known.descriptors))
    caller = client.node.create_client(SetParameters, f"{node}/set_parameters")
    report = _ParameterReport(f"{node} parameters")

    def send(number: int) -> Any:
        return caller.call_async(SetParameters.Request(parameters=draw.changes(number)))

    try:
        _pump(client, report, caller.service_is_ready, send, count, 2, patience, stop)
        usual = [
            Parameter(name=descriptor.name, value=value)
            for descriptor, value in zip(known.descriptors, before, strict=True)
            if not descriptor.read_only
        ]
        # Twice: one value may have to be back before another one can be.
        for _ in range(2):
            ask(SetParameters, "set_parameters", SetParameters.Request(parameters=usual))
    finally:
        client.node.destroy_client(caller)
    return report


class _ParameterReport(FuzzReport):
    def take(self, number: int, answer: Any) -> None:
        """Note what became of each value of a request."""
        self.answered += 1
        for result in answer.results:
            self.codes["accepted" if result.successful else "refused"] += 1
            if len(result.reason) > _LONGEST_REASON:
                self.sentences.setdefault(result.reason[:200], number)


#: A refusal that is longer repeats what was sent.
_LONGEST_REASON = 1500


def fuzz_topic(
    client: Client,
    topic: str,
    kind: Any,
    count: int,
    *,
    seed: int = 0,
    raw: bool = True,
    examples: Iterable[Any] = (),
    after_each: Callable[[], Any] = lambda: None,
    every: int = 20,
) -> FuzzReport:
    """Publish many malformed messages, every other one as spoilt bytes.

    Args:
        client: Publishes.
        topic: Full name.
        kind: Message type.
        count: Messages to send.
        seed: Decides what is sent.
        raw: Whether bytes that are no message at all are sent too.
        examples: Valid messages to spoil.
        after_each: Called after every few messages: a question to the node, so that none is passed
            over because a queue is full.
        every: How few.
    """
    fuzzer = Fuzzer(seed, largest=10_000)
    known = list(examples)
    # What suits every subscription, whatever it asks for.
    publisher = client.node.create_publisher(kind, topic, profile(every, latched=True))
    report = FuzzReport(topic)
    try:
        client.spin_until(lambda: publisher.get_subscription_count() > 0, 10.0)
        for number in range(count):
            message = fuzzer.request(kind, number, known)
            if raw and number % 2:
                # DDS itself refuses some bytes, such as those too long for a type of fixed size.
                with contextlib.suppress(RCLError):
                    publisher.publish(fuzzer.bytes(serialize_message(message)))
            else:
                publisher.publish(message)
            report.sent += 1
            if report.sent % every == 0:
                after_each()
        after_each()
    finally:
        client.node.destroy_publisher(publisher)
    return report
