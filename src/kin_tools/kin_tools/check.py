"""One real question to every node: what ``up --check`` asks, and the table of answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kin_core.errors import InvalidInput, KinError
from kin_core.texts import lined_up
from kin_core.yamls import LIMIT_BYTES, load_yaml

if TYPE_CHECKING:
    from kin_ros.client import Client

__all__ = ["Answer", "Question", "ask_all", "read_questions", "table"]

_WAIT = 20.0
_TIMEOUT = 120.0
_FIELDS = {"node", "service", "type", "request"}


@dataclass(frozen=True)
class Question:
    """One request.

    Attributes:
        node: Full name of the node that is asked.
        service: Full name of the service.
        kind: Name of its type.
        request: Fields of the request.
        source: Where it is written, for errors.
    """

    node: str
    service: str
    kind: str
    request: Any
    source: str


@dataclass(frozen=True)
class Answer:
    """What came back."""

    question: Question
    good: bool
    outcome: str
    seconds: float
    message: str


def read_questions(folder: Path, nodes: Sequence[str]) -> list[Question]:
    """The questions in a folder for the given nodes.

    A node that no file has a question for is asked for its lifecycle state.

    Args:
        folder: Holds ``*.yaml``: lists of mappings with node, service, type and request.
        nodes: Full names of the nodes that are started.

    Raises:
        InvalidInput: A file is not of that form; with its name.
    """
    questions: list[Question] = []
    for file in sorted(folder.glob("*.yaml")):
        entries = load_yaml(file, longest_word=LIMIT_BYTES)
        if not isinstance(entries, list):
            raise InvalidInput(str(file), "expected a list of questions")
        for number, entry in enumerate(entries):
            source = f"{file.name}[{number}]"
            _check_entry(entry, source)
            for node in nodes:
                if node.rsplit("/", 1)[-1] == entry["node"] or node == entry["node"]:
                    service = _resolve(entry["service"], node)
                    questions.append(
                        Question(node, service, entry["type"], entry.get("request"), source)
                    )
    asked = {question.node for question in questions}
    for node in nodes:
        if node not in asked:
            kind = "lifecycle_msgs/srv/GetState"
            questions.append(Question(node, f"{node}/get_state", kind, None, "lifecycle"))
    return questions


def _check_entry(entry: Any, source: str) -> None:
    if not isinstance(entry, dict):
        raise InvalidInput(source, "expected a mapping with node, service, type and request")
    for name in entry:
        if name not in _FIELDS:
            raise InvalidInput(
                source, f"unknown key '{name}' (known: {', '.join(sorted(_FIELDS))})"
            )
    for name in ("node", "service", "type"):
        if not isinstance(entry.get(name), str):
            raise InvalidInput(source, f"'{name}' is missing or not a text")


def _resolve(service: str, node: str) -> str:
    if service.startswith("~/"):
        return f"{node}/{service[2:]}"
    if service.startswith("/"):
        return service
    return f"{node.rsplit('/', 1)[0]}/{service}"


def ask_all(
    client: Client, questions: Sequence[Question], stop: Callable[[], bool]
) -> list[Answer]:
    """Ask one after the other."""
    return [_ask(client, question, stop) for question in questions]


def _ask(client: Client, question: Question, stop: Callable[[], bool]) -> Answer:
    from kin_ros.messages import fill, find_type
    from kin_ros.status import outcome_of

    started = time.monotonic()
    try:
        kind = find_type(question.kind, "srv")
        request = fill(kind.Request(), question.request)
        response = client.call(
            question.service, kind, request, wait=_WAIT, timeout=_TIMEOUT, stop=stop
        )
    except KinError as error:
        seconds = time.monotonic() - started
        return Answer(question, False, error.code.name, seconds, str(error))
    seconds = time.monotonic() - started
    if question.source == "lifecycle":
        label = response.current_state.label
        return Answer(question, label == "active", label, seconds, "")
    outcome = outcome_of(response)
    return Answer(question, outcome.good, outcome.name, seconds, outcome.message)


def table(answers: Sequence[Answer]) -> str:
    """The answers as a table for people."""
    head = ("node", "service", "answer", "time [ms]", "message")
    rows = [
        (
            answer.question.node,
            answer.question.service.removeprefix(answer.question.node + "/"),
            answer.outcome,
            f"{1e3 * answer.seconds:.1f}",
            " ".join(answer.message.split())[:100],
        )
        for answer in answers
    ]
    return "\n".join(lined_up(head, rows, right=head.index("time [ms]")))
