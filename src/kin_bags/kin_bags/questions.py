"""Requests and answers as messages: how services and actions stand in bags.

A request to the service ``/n/solve`` is a message on the topic ``/n/solve/_request`` of the type
``.../srv/Solve_Request``, its answer the next message on ``/n/solve/_response``. Goals and results
of actions stand on ``/_goal`` and ``/_result`` in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kin_ros.messages import find_type

__all__ = ["Exchange", "exchange_of", "is_answer", "is_question", "owner_of"]

_ANSWERS = {"_request": "_response", "_goal": "_result"}


@dataclass(frozen=True)
class Exchange:
    """A service or action as it stands in a bag.

    Attributes:
        name: Full name of the service or action.
        kind: Its type.
        action: Whether it is an action.
    """

    name: str
    kind: str
    action: bool

    @property
    def question_topic(self) -> str:
        """Where requests or goals stand."""
        return f"{self.name}/{'_goal' if self.action else '_request'}"

    @property
    def answer_topic(self) -> str:
        """Where answers or results stand."""
        return f"{self.name}/{'_result' if self.action else '_response'}"

    @property
    def question_type(self) -> str:
        """Type of requests or goals."""
        return f"{self.kind}_{'Goal' if self.action else 'Request'}"

    @property
    def answer_type(self) -> str:
        """Type of answers or results."""
        return f"{self.kind}_{'Result' if self.action else 'Response'}"

    def interface(self) -> Any:
        """The class of the service or action."""
        return find_type(self.kind, "action" if self.action else "srv")

    def question_class(self) -> Any:
        """The class of requests or goals."""
        return self.interface().Goal if self.action else self.interface().Request


def is_question(topic: str) -> bool:
    """Whether a topic of a bag holds requests or goals."""
    return topic.rsplit("/", 1)[-1] in _ANSWERS


def is_answer(topic: str) -> bool:
    """Whether a topic of a bag holds answers or results."""
    return topic.rsplit("/", 1)[-1] in _ANSWERS.values()


def exchange_of(topic: str, kind: str) -> Exchange:
    """The service or action whose requests stand on a topic of a type."""
    name, _, part = topic.rpartition("/")
    return Exchange(name, kind.rsplit("_", 1)[0], part == "_goal")


def owner_of(topic: str) -> str:
    """The service or action that a topic of a bag belongs to; any other topic: itself."""
    return topic.rpartition("/")[0] if is_question(topic) or is_answer(topic) else topic
