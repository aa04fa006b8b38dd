"""Recording topics of a running graph, also those that appear later."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rosbags.interfaces import (
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)

from kin_bags.writer import BagWriter, Channel
from kin_core.errors import InvalidInput
from kin_ros.messages import find_message
from kin_ros.qos import profile

__all__ = ["Recorder", "to_bag_qos"]

_DEPTH = 1000
_FLUSH_PERIOD = 1.0
_FLUSH_BYTES = 4 * 1024 * 1024
#: How rclpy shows an unlimited duration; bags hold the same figure.
_FOREVER = QosTime(9223372036, 854775807)


def _time(duration: Any) -> QosTime:
    nanoseconds = int(duration.nanoseconds)
    if nanoseconds >= 2**63 - 1 or nanoseconds == 0:
        return _FOREVER
    return QosTime(nanoseconds // 10**9, nanoseconds % 10**9)


def to_bag_qos(profile: QoSProfile) -> Qos:
    """The quality of service of an endpoint in the form that bags hold."""
    return Qos(
        QosHistory(int(profile.history)),
        int(profile.depth),
        QosReliability(int(profile.reliability)),
        QosDurability(int(profile.durability)),
        _time(profile.deadline),
        _time(profile.lifespan),
        QosLiveliness(int(profile.liveliness)),
        _time(profile.liveliness_lease_duration),
        bool(profile.avoid_ros_namespace_conventions),
    )


def _adapted(profiles: list[QoSProfile]) -> QoSProfile:
    """The strongest quality of service that hears every publisher."""
    reliable = all(p.reliability == ReliabilityPolicy.RELIABLE for p in profiles)
    latched = all(p.durability == DurabilityPolicy.TRANSIENT_LOCAL for p in profiles)
    return profile(_DEPTH, reliable=reliable, latched=latched)


def _digest(info: Any) -> str:
    """The type hash that a publisher announces; empty if it announces none."""
    announced = getattr(info, "topic_type_hash", None)
    value = bytes(getattr(announced, "value", b"") or b"")
    version = int(getattr(announced, "version", 0) or 0)
    return f"RIHS{version:02d}_{value.hex()}" if version and any(value) else ""


class _Ear(NamedTuple):
    """The subscription to one topic."""

    subscription: Any
    channel: Channel
    qos: QoSProfile


class Recorder:
    """Subscribes to topics and writes what it hears; call :meth:`poll` some times a second.

    Args:
        node: The node to listen with.
        writer: The bag.
        topics: Names of topics to record; None: all.
        exclude: A regular expression for topics to leave out.
        hidden: Also record topics with a part that begins with _.
        say: Told in a sentence what is recorded and what cannot be.
    """

    def __init__(
        self,
        node: Node,
        writer: BagWriter,
        topics: Iterable[str] | None = None,
        *,
        exclude: str = "",
        hidden: bool = False,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._node = node
        self._writer = writer
        self._topics = None if topics is None else {"/" + t.lstrip("/") for t in topics}
        try:
            self._exclude = re.compile(exclude) if exclude else None
        except re.error as error:
            raise InvalidInput("exclude", f"is not a regular expression ({error})") from None
        self._hidden = hidden
        self._say = say
        self._ears: dict[str, _Ear] = {}
        self._refused: set[str] = set()
        self._flushed = time.monotonic()
        self._unflushed = 0
        self.counts: dict[str, int] = {}

    def _wants(self, topic: str) -> bool:
        if self._topics is not None:
            return topic in self._topics
        if self._exclude is not None and self._exclude.search(topic):
            return False
        return self._hidden or not any(part.startswith("_") for part in topic.split("/"))

    def poll(self) -> None:
        """Look for new topics and publishers; bring to disk what has waited long enough."""
        for topic, kinds in self._node.get_topic_names_and_types():
            if self._wants(topic) and topic not in self._refused:
                self._attend(topic, kinds)
        if time.monotonic() - self._flushed >= _FLUSH_PERIOD:
            self.flush()

    def flush(self) -> None:
        """Make everything heard so far safe against a kill."""
        self._writer.flush()
        self._flushed = time.monotonic()
        self._unflushed = 0

    def _attend(self, topic: str, kinds: list[str]) -> None:
        publishers = self._node.get_publishers_info_by_topic(topic)
        if not publishers:
            return
        if len(kinds) > 1:
            self._refuse(topic, f"has several types: {', '.join(kinds)}")
            return
        qos = _adapted([info.qos_profile for info in publishers])
        ear = self._ears.get(topic)
        if ear is not None:
            if (ear.qos.reliability, ear.qos.durability) != (qos.reliability, qos.durability):
                # A publisher has come that the subscription cannot hear.
                self._node.destroy_subscription(ear.subscription)
                self._ears[topic] = self._listen(topic, kinds[0], qos, ear.channel)
            return
        offered = tuple(to_bag_qos(info.qos_profile) for info in publishers)
        try:
            channel = self._writer.channel(
                topic, kinds[0], tuple(dict.fromkeys(offered)), _digest(publishers[0])
            )
            self._ears[topic] = self._listen(topic, kinds[0], qos, channel)
        except InvalidInput as error:
            self._refuse(topic, str(error))
            return
        self._say(f"recording {topic} ({kinds[0]})")

    def _refuse(self, topic: str, why: str) -> None:
        self._refused.add(topic)
        self._say(f"cannot record {topic}: {why}")

    def _listen(self, topic: str, kind: str, qos: QoSProfile, channel: Channel) -> _Ear:
        message = find_message(kind)
        subscription = self._node.create_subscription(
            message, topic, lambda raw: self._heard(channel, raw), qos, raw=True
        )
        return _Ear(subscription, channel, qos)

    def _heard(self, channel: Channel, raw: bytes) -> None:
        self._writer.write(channel, time.time_ns(), raw)
        self.counts[channel.topic] = self.counts.get(channel.topic, 0) + 1
        self._unflushed += len(raw)
        if self._unflushed >= _FLUSH_BYTES:
            self.flush()
