"""Core replay: the messages of a bag go straight into the handlers of a node, not over DDS.

The node is an ordinary object of this process. Its services, subscriptions and publishers are not
made; what would be published is kept instead. Timers do not run, so this is for nodes that act on
requests and messages.
"""

from __future__ import annotations

import importlib
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.parameter import Parameter
from rclpy.serialization import deserialize_message, serialize_message

from kin_bags.questions import Exchange
from kin_core.errors import InvalidInput
from kin_core.task import Progress, Task
from kin_ros.messages import find_type
from kin_ros.node import KinNode
from kin_ros.requests import answer

__all__ = ["CoreTarget", "find_node_class"]


def find_node_class(name: str) -> type[KinNode[Any]]:
    """The node class that ``MODULE:CLASS`` names; of a bare ``PACKAGE`` the one in its ``node``.

    Raises:
        InvalidInput: There is none.
    """
    module_name, _, class_name = name.partition(":")
    try:
        module = importlib.import_module(module_name if class_name else f"{module_name}.node")
    except ImportError as error:
        raise InvalidInput(name, f"cannot be imported ({error})") from None
    found = [
        value
        for key, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, KinNode)
        and value.__module__ == module.__name__
        and class_name in ("", key)
    ]
    if len(found) != 1:
        names = ", ".join(f"{module.__name__}:{each.__name__}" for each in found) or "none"
        raise InvalidInput(name, f"expected one node class, found {names}")
    return found[0]


class _Kept:
    """A publisher that keeps what it is given."""

    def __init__(self, topic: str, kind: type, kept: list[tuple[str, str, bytes]]) -> None:
        self._topic = topic
        self._kind = f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}"
        self._kept = kept

    def publish(self, message: Any) -> None:
        self._kept.append((self._topic, self._kind, serialize_message(message)))

    def get_subscription_count(self) -> int:
        return 1


def _hosted(base: type[KinNode[Any]]) -> type[Any]:
    """The node class with its ends held in the hand instead of connected."""

    class Hosted(base):  # type: ignore[misc,valid-type]
        """A node whose handlers are called directly."""

        def __init__(self, **arguments: Any) -> None:
            self.services_held: dict[str, tuple[type, Callable[..., Any]]] = {}
            self.actions_held: dict[str, tuple[type, Callable[..., Any]]] = {}
            self.listeners_held: dict[str, list[Callable[[Any], None]]] = {}
            self.kept: list[tuple[str, str, bytes]] = []
            self.timers_held: list[Callable[[], None]] = []
            self.spoken: set[str] = set()
            super().__init__(**arguments)

        def publish_to(self, message: type, topic: str, qos: Any = None) -> Any:
            full = self.resolve_topic_name(topic)
            self.spoken.add(full)
            return _Kept(full, message, self.kept)

        def listen(self, message: type, topic: str, callback: Any, qos: Any = None) -> None:
            def guarded(received: Any) -> None:
                self._guard(f"message on {topic}", lambda: callback(received))

            self.listeners_held.setdefault(self.resolve_topic_name(topic), []).append(guarded)

        def every(self, period: float, callback: Any, *, steady: bool = False) -> None:
            self.timers_held.append(callback)

        def serve(
            self, service: Any, name: str, handler: Any, *, inline: bool = False, manner: Any = None
        ) -> None:
            self.services_held[self.resolve_service_name(name)] = (service.Response, handler)

        def serve_action(
            self, action: Any, name: str, handler: Any, feedback: Callable[[Progress], Any]
        ) -> None:
            self.actions_held[self.resolve_service_name(name)] = (action.Result, handler)

        def serve_motion(self, action: Any, name: str, execute: Any, cancel: Any) -> None:
            """Nothing of it is in a bag: how long a motion takes is not a matter of its goal."""

    Hosted.__name__ = base.__name__
    return Hosted


class CoreTarget:
    """Nodes of this process, without DDS between them and the bag.

    Attributes:
        nodes: The nodes.

    Args:
        node_classes: The classes of the nodes.
        namespace: Their namespace.
        parameter_file: A YAML file with their parameters.
        parameters: Parameters of all of them, on top of the file.
        timeout: Time that a request without one of its own is allowed [s].
        patience: Longest time to wait for an output that a thread of a node publishes [s].

    Raises:
        InvalidInput: A node does not start.
    """

    def __init__(
        self,
        node_classes: list[type[KinNode[Any]]],
        *,
        namespace: str = "",
        parameter_file: Path | None = None,
        parameters: Mapping[str, Any] | None = None,
        timeout: float = 120.0,
        patience: float = 20.0,
    ) -> None:
        self._context = Context()
        rclpy.init(args=[], context=self._context)
        self._timeout = timeout
        self._patience = patience
        overrides = [Parameter(name, value=value) for name, value in (parameters or {}).items()]
        self.nodes = []
        for each in node_classes:
            words = []
            if parameter_file is not None:
                if not parameter_file.is_file():
                    raise InvalidInput(str(parameter_file), "there is no such file")
                words = ["--ros-args", "--params-file", str(parameter_file)]
            node = _hosted(each)(
                context=self._context,
                namespace=namespace,
                cli_args=words,
                parameter_overrides=overrides,
            )
            self.nodes.append(node)
            if not node.autostart():
                raise InvalidInput(node.get_fully_qualified_name(), "does not become active")

    def ask(self, exchange: Exchange, raw: bytes) -> bytes:
        """Run the handler of a service or action in this thread."""
        for node in self.nodes:
            offered = node.actions_held if exchange.action else node.services_held
            if exchange.name in offered:
                response_type, handler = offered[exchange.name]
                request = deserialize_message(raw, exchange.question_class())
                asked = float(getattr(request, "timeout", 0.0))
                task = Task(asked if asked > 0.0 else self._timeout)
                answering = answer(node, response_type, request, handler, "core", True, task)
                try:
                    answering.send(None)
                except StopIteration as done:
                    return serialize_message(done.value)
                raise InvalidInput(exchange.name, "its handler waits for something")
        held = sorted(
            name for node in self.nodes for name in (*node.services_held, *node.actions_held)
        )
        raise InvalidInput(exchange.name, f"no node offers it (there are {', '.join(held)})")

    def send(self, topic: str, kind: str, raw: bytes, stamp: int) -> None:
        """Hand a message to the node's callbacks."""
        for node in self.nodes:
            for callback in node.listeners_held.get(topic, []):
                callback(deserialize_message(raw, find_type(kind, "msg")))

    def published(self, topics: Mapping[str, str]) -> dict[str, str]:
        """Those of the topics that the nodes publish."""
        spoken = {topic for node in self.nodes for topic in node.spoken}
        return {topic: kind for topic, kind in topics.items() if topic in spoken}

    def collect(self, wanted: dict[str, int]) -> list[tuple[str, str, bytes]]:
        """What the nodes published since the last call; threads of theirs get time to do so."""
        kept: list[tuple[str, str, bytes]] = []
        deadline = time.monotonic() + self._patience
        while True:
            for node in self.nodes:
                while node.kept:
                    kept.append(node.kept.pop(0))
            heard = Counter(topic for topic, _, _ in kept)
            if all(heard[topic] >= count for topic, count in wanted.items()):
                return kept
            if time.monotonic() > deadline:
                return kept
            time.sleep(0.001)

    def close(self) -> None:
        """Let the nodes go."""
        for node in self.nodes:
            node.wind_down()
            node.destroy_node()
        self._context.try_shutdown()
