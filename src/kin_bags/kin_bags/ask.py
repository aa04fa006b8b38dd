"""Making a bag of requests and answers, of messages and what nodes publish then, by asking."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rclpy.serialization import serialize_message

from kin_bags.questions import Exchange
from kin_bags.record import to_bag_qos
from kin_bags.replay import Target
from kin_bags.writer import BagWriter
from kin_core.errors import InvalidInput
from kin_ros.messages import fill, find_type
from kin_ros.qos import STATE

__all__ = [
    "AskedQuestion",
    "SentMessage",
    "outputs_of_messages",
    "read_exchanges",
    "record_exchanges",
]

#: The bag's own time: requests are 10 ms apart, so that the same questions give the same bag.
_BEGIN = 1_000_000_000
_STEP = 10_000_000


@dataclass(frozen=True)
class AskedQuestion:
    """One request to send."""

    exchange: Exchange
    request: Any


@dataclass(frozen=True)
class SentMessage:
    """One message to publish.

    Attributes:
        topic: Full name.
        kind: Type of the message.
        message: The message.
        outputs: Topics on which the nodes publish then, with their types.
    """

    topic: str
    kind: str
    message: Any
    outputs: Mapping[str, str] = field(default_factory=dict)


_QUESTION_KEYS = {"service", "action", "type", "request", "node"}
_MESSAGE_KEYS = {"topic", "type", "message", "outputs"}


def read_exchanges(entries: Any, source: str) -> list[AskedQuestion | SentMessage]:
    """Read ``{service or action, type, request}`` and ``{topic, type, message, outputs}``.

    Raises:
        InvalidInput: It is not of that form, or a request does not fit its type.
    """
    if not isinstance(entries, list):
        raise InvalidInput(source, "expected a list of questions")
    return [_read_entry(entry, f"{source}[{index}]") for index, entry in enumerate(entries)]


def _read_entry(entry: Any, where: str) -> AskedQuestion | SentMessage:
    kinds = {"service", "action", "topic"}
    if not isinstance(entry, dict) or len(kinds & entry.keys()) != 1:
        raise InvalidInput(where, "expected a mapping with service, action or topic, and type")
    unknown = entry.keys() - (_MESSAGE_KEYS if "topic" in entry else _QUESTION_KEYS)
    if unknown:
        raise InvalidInput(where, f"unknown key '{sorted(unknown)[0]}'")
    (kind,) = kinds & entry.keys()
    name = str(entry[kind])
    if name.startswith("~/") and isinstance(entry.get("node"), str):
        name = f"/{entry['node'].lstrip('/')}/{name[2:]}"
    if not name.startswith("/"):
        raise InvalidInput(where, f"'{name}' is not a full name")
    if not isinstance(entry.get("type"), str):
        raise InvalidInput(where, "'type' is missing")
    try:
        if kind == "topic":
            outputs = entry.get("outputs") or {}
            if not isinstance(outputs, dict):
                raise InvalidInput("outputs", "expected a mapping from topics to their types")
            message = fill(find_type(entry["type"], "msg")(), entry.get("message"))
            return SentMessage(name, entry["type"], message, outputs)
        exchange = Exchange(name, entry["type"], kind == "action")
        return AskedQuestion(exchange, fill(exchange.question_class()(), entry.get("request")))
    except InvalidInput as error:
        raise InvalidInput(where, str(error)) from None


def outputs_of_messages(questions: Sequence[AskedQuestion | SentMessage]) -> dict[str, str]:
    """Topics on which nodes answer, with their types."""
    found: dict[str, str] = {}
    for question in questions:
        if isinstance(question, SentMessage):
            found |= question.outputs
    return found


def record_exchanges(
    writer: BagWriter,
    target: Target,
    questions: Sequence[AskedQuestion | SentMessage],
    outputs: Collection[str] = (),
) -> int:
    """Ask one after the other and write what is sent and what comes back.

    Args:
        writer: The bag.
        target: Who is asked.
        questions: What to send.
        outputs: Topics that are kept of what the nodes publish.

    Returns:
        How many were sent.

    Raises:
        InvalidInput: An output did not come.
    """
    stamp = _BEGIN
    qos = (to_bag_qos(STATE),)
    for question in questions:
        if isinstance(question, SentMessage):
            raw = bytes(serialize_message(question.message))
            writer.write(writer.channel(question.topic, question.kind, qos), stamp, raw)
            target.send(question.topic, question.kind, raw, stamp)
            _write_outputs(writer, target, stamp + _STEP // 2, question.outputs, outputs)
            stamp += _STEP
            continue
        exchange = question.exchange
        raw = bytes(serialize_message(question.request))
        asked = writer.channel(exchange.question_topic, exchange.question_type, qos)
        writer.write(asked, stamp, raw)
        answered = writer.channel(exchange.answer_topic, exchange.answer_type, qos)
        writer.write(answered, stamp + _STEP // 2, bytes(target.ask(exchange, raw)))
        stamp += _STEP
    return len(questions)


def _write_outputs(
    writer: BagWriter,
    target: Target,
    stamp: int,
    wanted: Mapping[str, str],
    outputs: Collection[str],
) -> None:
    """Write what the nodes publish in answer to a message."""
    kept = {*outputs, *wanted}
    came = [each for each in target.collect(dict.fromkeys(wanted, 1)) if each[0] in kept]
    for topic in wanted:
        if topic not in {each[0] for each in came}:
            raise InvalidInput(topic, "nothing came on it")
    for topic, kind, raw in came:
        writer.write(writer.channel(topic, kind, (to_bag_qos(STATE),)), stamp, bytes(raw))
