"""Replaying bags: to whoever listens, in lock step against running nodes, or into one process.

A timed replay plays messages at their times. The two others are for regression: each input is sent
alone, and the next one waits until what the bag holds as its outputs has come back, so that neither
load nor scheduling decides the result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from rclpy.duration import Duration
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message, serialize_message

from kin_bags.questions import Exchange, exchange_of, is_answer, is_question
from kin_bags.reader import Bag, Record, Selection
from kin_core.errors import InvalidInput, KinError, SolveTimeout
from kin_ros.client import Client, open_client
from kin_ros.messages import find_message
from kin_ros.qos import profile

#: Longest time for a reliable reader to acknowledge [s]. A writer asks again after three seconds.
_ACKNOWLEDGED = Duration(seconds=10)

#: As fast as it goes: how many messages of a topic are remembered for readers that are behind, and
#: how many bytes may be on the way to them.
_DEPTH_AHEAD = 4000
_BYTES_AHEAD = 32 * 1024**2

__all__ = ["Outcome", "Target", "drive", "NodeTarget", "play", "published_topics"]


@dataclass
class Outcome:
    """What a replay gave.

    Attributes:
        sent: Number of messages and requests that were sent.
        got: What came back, in the order it came.
        problems: Sentences about what did not come.
    """

    sent: int = 0
    got: list[Record] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Target(Protocol):
    """What a bag is replayed into."""

    def ask(self, exchange: Exchange, raw: bytes) -> bytes:
        """Send a request and return the answer, both as CDR."""

    def send(self, topic: str, kind: str, raw: bytes, stamp: int) -> None:
        """Send a message."""

    def collect(self, wanted: dict[str, int]) -> list[tuple[str, str, bytes]]:
        """Outputs since the last call: at least ``wanted`` per topic, or what came in time."""


def drive(
    bag: Bag, target: Target, outputs: Iterable[str], selection: Selection | None = None
) -> Outcome:
    """Replay a bag in lock step.

    Args:
        bag: The bag.
        target: What to replay into.
        outputs: Topics that the nodes publish; all others are inputs. Answers of services need not
            be named.
        selection: Which messages to replay.
    """
    outcome = Outcome()
    expected = set(outputs)
    counts: dict[str, int] = {}
    numbers: dict[str, int] = {}
    pending: dict[str, int] = {}

    def note(topic: str, kind: str, stamp: int, raw: bytes) -> None:
        number = numbers.get(topic, 0)
        numbers[topic] = number + 1
        outcome.got.append(Record(topic, kind, stamp, raw, number))

    def collect(stamp: int) -> None:
        for topic, kind, raw in target.collect(dict(pending)):
            if topic not in expected:
                continue
            note(topic, kind, stamp, raw)
            counts[topic] = counts.get(topic, 0) + 1
        pending.clear()

    last = bag.begin
    for record in bag.records(selection):
        if is_answer(record.topic):
            continue
        if record.topic in expected:
            pending[record.topic] = pending.get(record.topic, 0) + 1
            continue
        if pending:
            collect(last)
        last = record.stamp
        outcome.sent += 1
        if is_question(record.topic):
            exchange = exchange_of(record.topic, record.type)
            try:
                answer = target.ask(exchange, record.raw)
            except KinError as error:
                outcome.problems.append(f"{record.topic} {record.number}: {error}")
                continue
            note(exchange.answer_topic, exchange.answer_type, record.stamp, answer)
        else:
            target.send(record.topic, record.type, record.raw, record.stamp)
    collect(last)
    return outcome


def _play_qos(bag: Bag | None, topic: str) -> QoSProfile:
    """The quality of service to publish a topic with: what the bag says was offered."""
    offered = [
        qos
        for c in (bag.connections if bag else [])
        if c.topic == topic
        for qos in c.ext.offered_qos_profiles
    ]
    if not offered:
        return profile(100)
    reliable = all(int(qos.reliability.value) != 2 for qos in offered)
    latched = all(int(qos.durability.value) == 1 for qos in offered)
    depth = max(1, min(1000, max(qos.depth for qos in offered) or 10))
    return profile(depth, reliable=reliable, latched=latched)


class _Speaker:
    """Publishes stored messages, and the time they were made at.

    Args:
        client: Whose node publishes.
        bag: Where the messages are from, for the quality of service of their topics.
        clock: Publish /clock.
        selection: Names of the topics.
        depth: Remember at least so many messages for readers that are behind.
    """

    def __init__(
        self,
        client: Client,
        bag: Bag | None,
        clock: bool,
        selection: Selection,
        depth: int = 1,
    ) -> None:
        self._client = client
        self._depth = depth
        self._publishers: dict[str, Any] = {}
        self._ahead: dict[str, tuple[int, int]] = {}
        self._deaf: set[str] = set()
        self._bag = bag
        self._sources = {selection.name(c.topic): c.topic for c in (bag.connections if bag else [])}
        self._clock = None
        if clock:
            from rosgraph_msgs.msg import Clock

            self._clock = client.node.create_publisher(Clock, "/clock", 10)

    def publisher(self, topic: str, kind: str) -> Any:
        if topic not in self._publishers:
            qos = _play_qos(self._bag, self._sources.get(topic, topic))
            qos.depth = max(qos.depth, self._depth)
            self._publishers[topic] = self._client.node.create_publisher(
                find_message(kind), topic, qos
            )
        return self._publishers[topic]

    def publish(self, topic: str, kind: str, raw: bytes) -> None:
        """Publish, but not further ahead of reliable readers than the publisher remembers.

        A reader is asked seldom, for its answer takes up to three seconds. One that acknowledges
        nothing, for it has died, is not waited for a second time.
        """
        publisher = self.publisher(topic, kind)
        publisher.publish(raw)
        count, size = self._ahead.get(topic, (0, 0))
        count, size = count + 1, size + len(raw)
        if topic not in self._deaf and (
            2 * count >= publisher.qos_profile.depth or size >= _BYTES_AHEAD
        ):
            count = size = 0
            if not publisher.wait_for_all_acked(_ACKNOWLEDGED):
                self._deaf.add(topic)
        self._ahead[topic] = (count, size)

    def wait_until_heard(self, topics: Sequence[str], timeout: float) -> None:
        """Wait until whoever listens to topics, or to the time, hears the next message [s]."""
        clock = [] if self._clock is None else ["/clock"]
        self._client.wait_until_heard([*topics, *clock], timeout)

    def all(self) -> list[Any]:
        return list(self._publishers.values())

    def tell_time(self, stamp: int) -> None:
        if self._clock is not None:
            from rosgraph_msgs.msg import Clock

            message = Clock()
            message.clock.sec, message.clock.nanosec = divmod(stamp, 10**9)
            self._clock.publish(message)


class NodeTarget:
    """Running nodes, over DDS.

    Args:
        client: The client to talk with.
        bag: The bag that is replayed, for the quality of service of its topics.
        outputs: Topics to listen to, with their types.
        clock: Publish /clock.
        patience: Longest time to wait for a listener, an answer or an output [s].
        selection: Which messages are replayed, for the names of topics.
    """

    def __init__(
        self,
        client: Client,
        bag: Bag | None,
        outputs: dict[str, str],
        *,
        clock: bool = False,
        patience: float = 20.0,
        selection: Selection | None = None,
    ) -> None:
        self._client = client
        self._patience = patience
        self._speaker = _Speaker(client, bag, clock, selection or Selection())
        self._heard: list[tuple[str, str, bytes]] = []
        self._checked: set[str] = set()
        for topic, kind in outputs.items():
            qos = _play_qos(bag, topic)
            qos.depth = 1000
            client.node.create_subscription(
                find_message(kind),
                topic,
                lambda raw, topic=topic, kind=kind: self._heard.append((topic, kind, raw)),
                qos,
                raw=True,
            )
            if not client.spin_until(partial(_published, client, topic), patience):
                raise InvalidInput(topic, f"nobody publishes it within {patience:g} s")

    def ask(self, exchange: Exchange, raw: bytes) -> bytes:
        """Call the service, or send the goal and wait for the result."""
        question = deserialize_message(raw, exchange.question_class())
        if exchange.action:
            return serialize_message(self._ask_action(exchange, question))
        return serialize_message(
            self._client.call(
                exchange.name,
                exchange.interface(),
                question,
                wait=self._patience,
                timeout=self._patience,
            )
        )

    def _ask_action(self, exchange: Exchange, goal: Any) -> Any:
        from rclpy.action import ActionClient

        client = ActionClient(self._client.node, exchange.interface(), exchange.name)
        try:
            if not self._client.spin_until(client.server_is_ready, self._patience):
                raise InvalidInput(exchange.name, "there is no such action")
            accepted = client.send_goal_async(goal)
            self._await(accepted, exchange.name)
            if not accepted.result().accepted:
                raise InvalidInput(exchange.name, "the goal was not accepted")
            result = accepted.result().get_result_async()
            self._await(result, exchange.name)
            return result.result().result
        finally:
            client.destroy()

    def _await(self, future: Any, name: str) -> None:
        if not self._client.spin_until(future.done, self._patience):
            raise SolveTimeout(f"{name} did not answer within {self._patience:g} s")

    def send(self, topic: str, kind: str, raw: bytes, stamp: int) -> None:
        """Publish a message, once somebody listens."""
        publisher = self._speaker.publisher(topic, kind)
        if topic not in self._checked:
            self._checked.add(topic)
            if not self._client.spin_until(
                lambda: publisher.get_subscription_count() > 0, self._patience
            ):
                raise InvalidInput(topic, f"nobody listens to it within {self._patience:g} s")
            self._speaker.wait_until_heard([topic], self._patience)
        self._speaker.tell_time(stamp)
        publisher.publish(raw)

    def collect(self, wanted: dict[str, int]) -> list[tuple[str, str, bytes]]:
        """Wait for outputs."""

        def there() -> bool:
            return all(
                sum(topic == heard for heard, _, _ in self._heard) >= count
                for topic, count in wanted.items()
            )

        self._client.spin_until(there, self._patience)
        heard, self._heard = self._heard, []
        return heard


def published_topics(topics: Mapping[str, str], patience: float) -> dict[str, str]:
    """Those of the topics that somebody in the graph publishes.

    Args:
        topics: Names and types.
        patience: Longest time for the first node to appear [s].
    """
    with open_client("look") as client:
        client.spin_until(lambda: len(client.node.get_node_names()) > 1, patience)
        client.spin_until(lambda: False, min(1.0, patience))  # publishers come after their nodes
        return {topic: kind for topic, kind in topics.items() if _published(client, topic)}


def _published(client: Client, topic: str) -> bool:
    return client.node.count_publishers(topic) > 0


def _is_past(due: float) -> bool:
    return time.monotonic() >= due


def play(
    client: Client,
    bag: Bag,
    selection: Selection,
    *,
    rate: float = 1.0,
    clock: bool = False,
    wait: float = 0.0,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[int, list[str]]:
    """Play a bag at its times; requests of services are called, their answers left out.

    Args:
        client: The client to publish with.
        bag: The bag.
        selection: Which messages to play.
        rate: Speed, 2 for twice as fast; 0: as fast as possible.
        clock: Publish /clock with the bag's times.
        wait: Longest time for somebody to listen to every topic before it begins [s].
        stop: Ends the replay when it returns True.

    Returns:
        How many messages were played, and sentences about what could not be.
    """
    # Timed, it has the readers of the original; as fast as it goes, it waits for them.
    hurried = rate == 0.0
    speaker = _Speaker(client, bag, clock, selection, _DEPTH_AHEAD if hurried else 1)
    problems: list[str] = []
    unplayable: set[str] = set()
    topics = {
        selection.name(c.topic): c.msgtype for c in bag.connections if selection.wants(c.topic)
    }
    publishers: dict[str, Any] = {}
    for topic, kind in topics.items():
        if is_question(topic) or is_answer(topic):
            continue
        try:
            publishers[topic] = speaker.publisher(topic, kind)
        except InvalidInput as error:
            problems.append(f"{topic} cannot be played: {error}")
            unplayable.add(topic)
    client.spin_until(
        lambda: all(p.get_subscription_count() > 0 for p in publishers.values()), wait, stop
    )
    speaker.wait_until_heard(list(publishers), wait)
    target = NodeTarget(client, bag, {}, patience=max(wait, 20.0), selection=selection)
    played = 0
    origin: int | None = None
    begin = time.monotonic()
    for record in bag.records(selection):
        if stop():
            break
        if is_answer(record.topic) or record.topic in unplayable:
            continue
        origin = record.stamp if origin is None else origin
        if rate > 0.0:
            due = begin + (record.stamp - origin) * 1e-9 / rate
            client.spin_until(partial(_is_past, due), 1e9, stop)
        speaker.tell_time(record.stamp)
        if is_question(record.topic):
            try:
                target.ask(exchange_of(record.topic, record.type), record.raw)
            except KinError as error:
                problems.append(f"{record.topic} {record.number}: {error}")
        elif hurried:
            speaker.publish(record.topic, record.type, record.raw)
        else:
            speaker.publisher(record.topic, record.type).publish(record.raw)
        played += 1
    for publisher in speaker.all():  # reliable readers acknowledge what was sent before they go
        publisher.wait_for_all_acked(_ACKNOWLEDGED)
    return played, problems
