"""Making a bag of requests and answers by asking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rclpy.serialization import serialize_message

from kin_common.errors import InvalidInput
from kin_common.qos import STATE
from kin_tools.bags.questions import Exchange
from kin_tools.bags.record import to_bag_qos
from kin_tools.bags.replay import Target
from kin_tools.bags.writer import BagWriter
from kin_tools.messages import fill

__all__ = ["AskedQuestion", "read_exchanges", "record_exchanges"]

#: The bag's own time: requests are 10 ms apart, so that the same questions give the same bag.
_BEGIN = 1_000_000_000
_STEP = 10_000_000


@dataclass(frozen=True)
class AskedQuestion:
    """One request to send."""

    exchange: Exchange
    request: Any


def read_exchanges(entries: Any, source: str) -> list[AskedQuestion]:
    """Read a list of ``{service or action, type, request}``.

    Raises:
        InvalidInput: It is not of that form, or a request does not fit its type.
    """
    if not isinstance(entries, list):
        raise InvalidInput(source, "expected a list of questions")
    questions = []
    for index, entry in enumerate(entries):
        where = f"{source}[{index}]"
        if not isinstance(entry, dict) or not {"service", "action"} & entry.keys():
            raise InvalidInput(where, "expected a mapping with service or action, type and request")
        unknown = entry.keys() - {"service", "action", "type", "request", "node"}
        if unknown:
            raise InvalidInput(where, f"unknown key '{sorted(unknown)[0]}'")
        name = str(entry.get("service") or entry.get("action"))
        if name.startswith("~/") and isinstance(entry.get("node"), str):
            name = f"/{entry['node'].lstrip('/')}/{name[2:]}"
        if not name.startswith("/"):
            raise InvalidInput(where, f"'{name}' is not a full name")
        if not isinstance(entry.get("type"), str):
            raise InvalidInput(where, "'type' is missing")
        exchange = Exchange(name, entry["type"], "action" in entry)
        try:
            request = fill(exchange.question_class()(), entry.get("request"))
        except InvalidInput as error:
            raise InvalidInput(where, str(error)) from None
        questions.append(AskedQuestion(exchange, request))
    return questions


def record_exchanges(writer: BagWriter, target: Target, questions: Sequence[AskedQuestion]) -> int:
    """Ask one after the other and write requests and answers; returns how many were asked."""
    stamp = _BEGIN
    qos = (to_bag_qos(STATE),)
    for question in questions:
        exchange = question.exchange
        raw = bytes(serialize_message(question.request))
        asked = writer.channel(exchange.question_topic, exchange.question_type, qos)
        writer.write(asked, stamp, raw)
        answered = writer.channel(exchange.answer_topic, exchange.answer_type, qos)
        writer.write(answered, stamp + _STEP // 2, bytes(target.ask(exchange, raw)))
        stamp += _STEP
    return len(questions)
