"""Malformed input for every service, action and topic, made from the interface definitions alone.

A message class knows the types of its fields, so one generator serves all interfaces, also those
that are yet to be written: numbers that are NaN, infinite or huge, arrays that are empty, oversized
or do not fit their counts, names of a million characters, texts that are garbage, bombs or paths.
Half of the messages are a valid
one with a few wounds, which get further into a node than pure noise does. All of it follows from a
seed: the report names the number of each message, and :meth:`Fuzzer.request` makes it again.
"""

from __future__ import annotations

import array
import contextlib
import copy
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rosidl_parser.definition import (
    AbstractNestedType,
    AbstractSequence,
    AbstractString,
    AbstractWString,
    Array,
    BasicType,
    BoundedSequence,
    BoundedString,
    NamespacedType,
)

from kin_ros.messages import find_type
from kin_tools.call import status_text

if TYPE_CHECKING:
    from kin_ros.client import Client

__all__ = [
    "FuzzReport",
    "Fuzzer",
    "fuzz_action",
    "fuzz_parameters",
    "fuzz_service",
    "fuzz_topic",
]

_FLOATS = (
    *(math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, math.pi, -math.pi, 0.1, 1e-3, 1e-9),
    *(5e-324, 2.2e-308, 1.7e308, -1.7e308, 1e300, 1e150, -1e150, 1e18, 1e9, 1e6, -1e6, 1e3, 2.5),
)
_LARGEST_FLOAT32 = 3.402823e38  # a little less: rclpy rounds its bound down
_INTEGER_BITS = {"octet": 8, "char": 8} | {
    f"{s}int{b}": b for s in ("", "u") for b in (8, 16, 32, 64)
}
_CODES = dict(zip(("float", "double", *list(_INTEGER_BITS)[2:]), "fdbhiqBHIQ", strict=True))
_LENGTHS = (0, 0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 9, 12, 16, 18, 64, 100, 1000)

#: Entities that grow a thousandfold with each level.
_XML_BOMB = (
    '<?xml version="1.0"?><!DOCTYPE b [<!ENTITY a0 "x">'
    + "".join(f'<!ENTITY a{k} "{f"&a{k - 1};" * 10}">' for k in range(1, 10))
    + "]><robot name='b'><link name='&a9;'/></robot>"
)
_YAML_BOMB = "a0: &a0 [x]\n" + "".join(
    f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]\n" for k in range(1, 10)
)
#: Lengths of names that no screen, log or file system takes.
_LONG_NAMES = (256, 1001, 4097, 70_000, 1_000_000)
#: Descriptions that are right but for the length of a name.
_NAMED = (
    '<robot name="{0}"><link name="base"/></robot>',
    '<robot name="r"><link name="{0}"/></robot>',
    '<robot name="r"><link name="a"/><link name="b"/><joint name="{0}" type="revolute">'
    '<parent link="a"/><child link="b"/></joint></robot>',
    '<mujoco model="{0}"><worldbody><body name="b"/></worldbody></mujoco>',
    "name: {0}\nlinks: [{{name: base}}]\n",
    "links:\n- {{name: base}}\n- {{name: {0}}}\n",
    "{0}: 1\n",
    "- {{op: add_link, name: {0}}}",
    "- {{op: {0}}}",
)
_TEXTS = (
    *("", " ", "x", "0", "-1", "nan", "null", "true", "~", "joint1", "base_link", "a" * 300),
    *("\x01\x02\x7f\x1b[31m", "\u202e\ufeff\U0001f916", "ä" * 1000, "%s%n%x%d", "{0}{1.__class__}"),
    *("../../../../etc/passwd", "/etc/passwd", "/dev/zero", "/dev/stdin", "file:///etc/passwd"),
    *("'; DROP TABLE robots; --", "$(reboot)", "`id`", "!!python/object/apply:os.system [id]"),
    *(
        "{",
        "[[[[",
        "- - - -",
        "a: b: c",
        "\t\t:",
        "[" * 5000,
        "{a: " * 2000,
        "&a [*a]",
        "--- \n---",
    ),
    *("<", "<robot/>", "<robot><link/></robot>", "<mujoco/>", "<a>" * 2000, _XML_BOMB, _YAML_BOMB),
    *("- {op: remove_link, name: base}", "- {op: lock, joint: 1}", "- {op: add_goal}", "links: 7"),
)

#: Fields that say how long the caller is willing to wait. A long valid time gets a late answer,
#: which is right and no use here: those who ask then wait in its queue.
_TIME_FIELDS = frozenset({"timeout", "wait"})
_TIMES = (
    *(0.01, 0.02, 0.05, 0.1, 1e-9, 5e-324),
    *(math.nan, math.inf, -math.inf, -1.0, -1e308, 1e9, 1e308),  # to be refused at once
)


class Fuzzer:
    """Makes messages of any type; the same seed makes the same ones.

    Args:
        seed: Decides everything.
        largest: Longest sequence of numbers; reached rarely.
        words: Texts that mean something to the node, mixed in with the garbage.
    """

    def __init__(self, seed: int, largest: int = 100_000, words: Sequence[str] = ()) -> None:
        self._seed = seed
        self._largest = largest
        self._words = tuple(words)
        self._random = random.Random(seed)  # noqa: S311

    def request(self, kind: Any, number: int, examples: Sequence[Any] = ()) -> Any:
        """The message with a given number: a wild one, or a wounded example.

        Args:
            kind: Message class.
            number: Which of them; each is made from the seed and this number alone.
            examples: Valid messages of this class.
        """
        self._random = random.Random(f"{self._seed} {number}")  # noqa: S311
        draw = self._random.random()
        if examples and draw < 0.6:
            return self.wounded(self._random.choice(examples))
        if draw < 0.65:
            return kind()
        return self.message(kind)

    def message(self, kind: Any, depth: int = 0) -> Any:
        """A message whose fields are all drawn."""
        made = kind()
        names = list(made.get_fields_and_field_types())
        keep = self._random.choice((0.0, 0.0, 0.3, 0.7))  # some fields keep their default
        for name, slot in zip(names, made.SLOT_TYPES, strict=True):
            if self._random.random() >= keep:
                setattr(made, name, self._value(slot, name, depth))
        if "timeout" in names and made.timeout == 0.0:
            made.timeout = self._random.choice(_TIMES)  # not the node's own, which may be long
        return made

    def wounded(self, example: Any) -> Any:
        """A copy of a message with one to three fields spoilt, at any depth."""
        made = copy.deepcopy(example)
        if "timeout" in made.get_fields_and_field_types():
            made.timeout = 0.1
        for _ in range(self._random.choice((1, 1, 1, 2, 3))):
            self._wound(made)
        return made

    def bytes(self, valid: bytes) -> bytes:
        """A serialised message with flipped bits, cut off, or noise altogether."""
        draw = self._random.random()
        if draw < 0.2:
            noise = self._random.randbytes(self._random.choice((0, 1, 3, 4, 8, 64, 1000)))
            return valid[:4] + noise if draw < 0.1 else noise
        spoilt = bytearray(valid)
        for _ in range(self._random.choice((1, 2, 8, 32))):
            if len(spoilt) > 4:
                spoilt[self._random.randrange(4, len(spoilt))] = self._random.randrange(256)
        if draw < 0.6:
            del spoilt[self._random.randrange(len(spoilt) + 1) :]
        return bytes(spoilt)

    def _wound(self, message: Any) -> None:
        fields = list(zip(message.get_fields_and_field_types(), message.SLOT_TYPES, strict=True))
        if not fields:
            return
        name, slot = self._random.choice(fields)
        old = getattr(message, name)
        draw = self._random.random()
        if isinstance(slot, NamespacedType) and draw < 0.8:
            self._wound(old)
        elif isinstance(slot, AbstractSequence) and len(old) and draw < 0.8:
            setattr(message, name, self._wounded_list(old, slot, name))
        else:
            setattr(message, name, self._value(slot, name, 0))

    def _wounded_list(self, old: Any, slot: Any, name: str) -> Any:
        items = copy.deepcopy(list(old))
        draw, at = self._random.random(), self._random.randrange(len(items))
        if draw < 0.6:
            if isinstance(slot.value_type, NamespacedType):
                self._wound(items[at])
            else:
                items[at] = self._value(slot.value_type, name, 1)
        elif draw < 0.75:
            del items[at]
        elif draw < 0.9:
            items.insert(at, items[at])
        else:
            items *= 2
        return self._packed(items[: _capacity(slot)], slot)

    def _value(self, slot: Any, name: str, depth: int) -> Any:
        if isinstance(slot, AbstractNestedType):
            count = slot.size if isinstance(slot, Array) else self._length(slot, depth)
            return self._packed(self._items(slot.value_type, name, depth + 1, count), slot)
        if isinstance(slot, NamespacedType):
            return self.message(_class_of(slot), depth + 1)
        if isinstance(slot, (AbstractString, AbstractWString)):
            text = self._text(depth)
            return text[: slot.maximum_size] if isinstance(slot, BoundedString) else text
        return self._number(slot.typename, name)

    def _items(self, kind: Any, name: str, depth: int, count: int) -> list[Any]:
        if not isinstance(kind, BasicType) or count <= 1000:
            return [self._value(kind, name, depth) for _ in range(count)]
        few = [self._value(kind, name, depth) for _ in range(16)]  # large: quick to make
        return (few * (count // 16 + 1))[:count]

    def _length(self, slot: Any, depth: int) -> int:
        length = self._random.choice(_LENGTHS)
        if isinstance(slot.value_type, BasicType):
            if self._random.random() < 0.01:
                length = self._largest
        else:
            length = min(length, 100 >> (3 * depth))
        return int(min(length, _capacity(slot)))

    def _packed(self, items: list[Any], slot: Any) -> Any:
        inner = slot.value_type
        if isinstance(inner, BasicType):
            if isinstance(slot, AbstractSequence) and inner.typename in _CODES:
                return array.array(_CODES[inner.typename], items)
            if inner.typename == "octet":
                return items
        return items

    def _text(self, depth: int) -> str:
        draw = self._random.random()
        if self._words and draw < 0.3:
            return self._random.choice(self._words)
        if draw < 0.4:
            count = self._random.choice((1, 5, 40))
            return "".join(chr(self._random.randrange(1, 0x2FFF)) for _ in range(count))
        if depth == 0 and draw < 0.41:
            return self._random.choice(("x", "[", "- a\n")) * self._largest
        if draw < 0.46:
            long = self._random.choice(("x", "\u00e4", "a/", "~")) * self._random.choice(
                _LONG_NAMES if depth == 0 else _LONG_NAMES[:3]
            )
            return long if draw < 0.435 else self._random.choice(_NAMED).format(long)
        return self._random.choice(_TEXTS)

    def _number(self, name: str, field_name: str) -> Any:
        if name == "boolean":
            return self._random.random() < 0.5
        if name in ("float", "double", "long double"):
            if field_name in _TIME_FIELDS:
                return self._random.choice(_TIMES)
            ordinary = self._random.random() < 0.5
            value = self._random.uniform(-1.0, 1.0) if ordinary else self._random.choice(_FLOATS)
            if name == "float" and math.isfinite(value):
                value = max(-_LARGEST_FLOAT32, min(_LARGEST_FLOAT32, value))
                return array.array("f", [value])[0]  # what the wire can carry
            return value
        bits = _INTEGER_BITS[name]
        signed = name.startswith("int")
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        usual = (0, 1, 2, 3, 5, 7, 10, 100, 1000, -1, low, high, high - 1, high // 3 + 1)
        value = min(max(self._random.choice(usual), low), high)
        return bytes([value]) if name == "octet" else value


def _class_of(slot: NamespacedType) -> Any:
    """The class of a message inside another one, such as the feedback of an action."""
    name, kind = "/".join(slot.namespaced_name()), slot.namespaces[-1]
    owner, _, part = name.rpartition("_")
    if kind == "action" and owner:
        return getattr(find_type(owner, kind), part)
    return find_type(name, kind)


def _capacity(slot: Any) -> int:
    return slot.maximum_size if isinstance(slot, BoundedSequence) else 2**31


@dataclass
class FuzzReport:
    """What became of a run.

    Attributes:
        name: Of the service, action or topic.
        sent: Messages sent.
        answered: Answers that came.
        codes: How often each status came; "answer" where the answer has no status.
        unanswered: Numbers of those without an answer.
        sentences: The first message of each INTERNAL_ERROR, with the number of its request.
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
        status: Any = getattr(answer, "status", None)
        if not hasattr(status, "code"):
            self.codes["answer"] += 1
            return
        name = status_text(status.code)
        self.codes[name] += 1
        if name == "INTERNAL_ERROR" and len(self.sentences) < 20:
            self.sentences.setdefault(status.message[:200], number)

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
        if not client.spin_until(caller.service_is_ready, 20.0, stop):
            return FuzzReport(service, sent=count, unanswered=list(range(count)))
        report = FuzzReport(service)
        return _pump(client, report, send, count, in_flight, patience, stop)
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
    from rclpy.action import ActionClient

    fuzzer = Fuzzer(seed, words=words)
    caller = ActionClient(client.node, kind, action)
    try:
        if not client.spin_until(caller.server_is_ready, 20.0, stop):
            return FuzzReport(action, sent=count, unanswered=list(range(count)))
        report = FuzzReport(action)

        def send(number: int) -> Any:
            return _goal(caller, fuzzer.request(kind.Goal, number, examples), number % 3 == 2)

        return _pump(client, report, send, count, 2, patience, stop)
    finally:
        caller.destroy()


def _goal(caller: Any, goal: Any, cancel: bool) -> Any:
    """A future of the result of a goal."""
    from rclpy.task import Future

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
    send: Callable[[int], Any],
    count: int,
    in_flight: int,
    patience: float,
    stop: Callable[[], bool],
) -> FuzzReport:
    """Keep some requests open until all are sent and answered, or given up."""
    waiting: dict[int, tuple[Any, float]] = {}

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
    from rcl_interfaces.srv import (
        DescribeParameters,
        GetParameters,
        ListParameters,
        SetParameters,
    )

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
        client.spin_until(caller.service_is_ready, 20.0, stop)
        _pump(client, report, send, count, 2, patience, stop)
        usual = [
            _parameter(descriptor.name, value)
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


def _parameter(name: str, value: Any) -> Any:
    from rcl_interfaces.msg import Parameter

    return Parameter(name=name, value=value)


class ParameterDraw:
    """Draws values for declared parameters; the same seed draws the same ones.

    Args:
        seed: Decides everything.
        descriptors: What the node says of its parameters.
    """

    def __init__(self, seed: int, descriptors: Sequence[Any]) -> None:
        self._seed = seed
        self._descriptors = descriptors
        self._random = random.Random(seed)  # noqa: S311
        self._texts = Fuzzer(seed)

    def changes(self, number: int) -> list[Any]:
        """The parameters of the request with a given number; each in turn gets its share."""
        self._random = random.Random(f"{self._seed} parameters {number}")  # noqa: S311
        self._texts._random = self._random
        chosen = [self._descriptors[number % len(self._descriptors)]]
        while self._random.random() < 0.3:
            chosen.append(self._random.choice(self._descriptors))
        made = [_parameter(one.name, self._value(one)) for one in chosen]
        if self._random.random() < 0.05:
            made.append(_parameter(self._texts._text(0), self._value(chosen[0])))  # a name of none
        return made

    def _value(self, descriptor: Any) -> Any:
        from rcl_interfaces.msg import ParameterType, ParameterValue

        kinds = ParameterType
        kind = descriptor.type
        if self._random.random() < 0.3:  # another type, or one that does not exist
            kind = self._random.choice((*range(10), 10, 200, 255))
        value = ParameterValue(type=kind)
        ends = descriptor.floating_point_range or descriptor.integer_range
        low, high = (ends[0].from_value, ends[0].to_value) if ends else (-10.0, 10.0)
        inside = self._random.random() < 0.5
        if kind == kinds.PARAMETER_BOOL:
            value.bool_value = self._random.random() < 0.5
        elif kind in (kinds.PARAMETER_INTEGER, kinds.PARAMETER_INTEGER_ARRAY):
            drawn = [self._integer(low, high, inside) for _ in range(self._count())]
            value.integer_value, value.integer_array_value = drawn[0], drawn
        elif kind in (kinds.PARAMETER_DOUBLE, kinds.PARAMETER_DOUBLE_ARRAY):
            reals = [self._real(low, high, inside) for _ in range(self._count())]
            value.double_value, value.double_array_value = reals[0], reals
        elif kind in (kinds.PARAMETER_STRING, kinds.PARAMETER_STRING_ARRAY):
            allowed = descriptor.additional_constraints.removeprefix("one of: ").split(", ")
            texts = [
                self._random.choice(allowed) if inside else self._texts._text(0)
                for _ in range(min(self._count(), 20))
            ]
            value.string_value, value.string_array_value = texts[0], texts
        elif kind == kinds.PARAMETER_BOOL_ARRAY:
            value.bool_array_value = [True] * self._count()
        elif kind == kinds.PARAMETER_BYTE_ARRAY:
            value.byte_array_value = [b"x"] * self._count()
        return value

    def _count(self) -> int:
        return self._random.choice((1, 1, 2, 3, 4, 6, 7, 100, 20_000))

    def _integer(self, low: float, high: float, inside: bool) -> int:
        if inside and math.isfinite(low) and math.isfinite(high):
            # Near the lower end as often as far: a million threads or blocks are no test.
            top = int(min(high, low + self._random.choice((1, 10, 100))))
            return self._random.randint(int(low), max(int(low), top))
        return self._random.choice((0, -1, 1, 2**31, -(2**31), 2**63 - 1, -(2**63)))

    def _real(self, low: float, high: float, inside: bool) -> float:
        if inside and math.isfinite(low) and math.isfinite(high):
            return self._random.uniform(low, high)
        return self._random.choice(_FLOATS)


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
    from rclpy._rclpy_pybind11 import RCLError
    from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
    from rclpy.serialization import serialize_message

    fuzzer = Fuzzer(seed, largest=10_000)
    known = list(examples)
    # What suits every subscription, whatever it asks for.
    qos = QoSProfile(
        depth=every,
        reliability=ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.TRANSIENT_LOCAL,
    )
    publisher = client.node.create_publisher(kind, topic, qos)
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
