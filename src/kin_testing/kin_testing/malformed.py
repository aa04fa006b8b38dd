"""Malformed messages of any type, made from the interface definitions alone.

A message class knows the types of its fields, so one generator serves all interfaces, also those
that are yet to be written: numbers that are NaN, infinite or huge, arrays that are empty, oversized
or do not fit their counts, names of a million characters, texts that are garbage, bombs or paths.
Half of the messages are a valid one with a few wounds, which get further into a node than pure
noise does. All of it follows from a seed: :meth:`Fuzzer.request` makes each message again.
"""

from __future__ import annotations

import array
import copy
import math
import random
from collections.abc import Sequence
from typing import Any

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

__all__ = ["FLOATS", "Fuzzer"]

FLOATS = (
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
    *("{", "[[[[", "- - - -", "a: b: c", "\t\t:", "[" * 5000, "{a: " * 2000, "&a [*a]", "-- \n--"),
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

    def begin(self, number: object) -> None:
        """Draw from the seed and this number alone from here on."""
        self._random = random.Random(f"{self._seed} {number}")  # noqa: S311

    def request(self, kind: Any, number: int, examples: Sequence[Any] = ()) -> Any:
        """The message with a given number: a wild one, or a wounded example.

        Args:
            kind: Message class.
            number: Which of them; each is made from the seed and this number alone.
            examples: Valid messages of this class.
        """
        self.begin(number)
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
            text = self.text(depth)
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
        code = _CODES.get(getattr(slot.value_type, "typename", ""))
        return array.array(code, items) if code and isinstance(slot, AbstractSequence) else items

    def text(self, depth: int = 0) -> str:
        """A text: a known word, garbage, or a name that is too long; shorter inside of lists."""
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
            value = self._random.uniform(-1.0, 1.0) if ordinary else self._random.choice(FLOATS)
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
