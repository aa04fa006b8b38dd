"""Messages whose type is known only by name: find the type, fill it from YAML, show it as YAML."""

from __future__ import annotations

import array
import importlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import yaml
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

from kin_core.errors import InvalidInput
from kin_core.texts import did_you_mean

__all__ = ["ARRAY_CODES", "INTEGERS", "fill", "find_message", "find_type", "show", "to_plain"]

#: Least and largest value of each type of whole numbers.
INTEGERS = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32, 64)},
    "octet": (0, 255),
    "char": (0, 255),
}
#: What rclpy uses for sequences of numbers.
ARRAY_CODES = dict(zip(("float", "double", *list(INTEGERS)[:-2]), "fdbhiqBHIQ", strict=True))
_LARGEST_FLOAT = 3.4028234663852886e38
_LONGEST_SHOWN = 12
_LONGEST_TEXT = 400


def find_type(name: str, kind: str) -> Any:
    """The class of an interface.

    Args:
        name: Such as ``std_srvs/srv/Trigger``; ``std_srvs/Trigger`` means the same.
        kind: ``msg``, ``srv`` or ``action``.

    Raises:
        InvalidInput: There is no such type; the message says what there is.
    """
    parts = name.split("/")
    if len(parts) == 2:
        parts.insert(1, kind)
    if len(parts) != 3 or not all(part.isidentifier() for part in parts) or parts[1] != kind:
        raise InvalidInput("", f"'{name}' is not a type; expected PACKAGE/{kind}/NAME")
    package, _, interface = parts
    try:
        importlib.import_module(package)
    except ImportError:
        raise InvalidInput("", f"there is no package '{package}' with interfaces") from None
    try:
        module = importlib.import_module(f"{package}.{kind}")
    except ImportError:
        raise InvalidInput("", f"package '{package}' has no {kind} interfaces") from None
    found = getattr(module, interface, None)
    if not isinstance(found, type):
        known = [n for n, v in vars(module).items() if isinstance(v, type) and "_" not in n]
        hint = did_you_mean(interface, known, "{}")
        listing = ", ".join(sorted(known))
        raise InvalidInput(
            "", f"package '{package}' has no {kind} '{interface}'{hint} (it has {listing})"
        )
    return found


def find_message(name: str) -> Any:
    """The class of a topic's type, also on hidden topics: feedback of actions, events of services.

    Raises:
        InvalidInput: There is none.
    """
    owner, _, part = name.rpartition("_")
    if part == "FeedbackMessage":
        return find_type(owner, "action").Impl.FeedbackMessage
    if part == "Event":
        return find_type(owner, "srv").Event
    return find_type(name, "msg")


def _kind(value: Any) -> str:
    names = {dict: "a mapping", list: "a list", str: "a text", type(None): "nothing"}
    return names.get(type(value), repr(value))


def fill(message: Any, values: Any, path: str = "") -> Any:
    """Set fields of a message from plain values, checking types, ranges and sizes.

    Args:
        message: The message; changed in place and returned.
        values: A mapping from field names to values; fields that it does not name stay as they are.
        path: Name of the message in errors.

    Raises:
        InvalidInput: The message names the field.
    """
    if values is None:
        return message
    if not isinstance(values, Mapping):
        raise InvalidInput(path or "request", f"expected a mapping of fields, got {_kind(values)}")
    types = dict(zip(message.get_fields_and_field_types(), message.SLOT_TYPES, strict=True))
    for name, value in values.items():
        where = f"{path}.{name}" if path else str(name)
        if name not in types:
            known = ", ".join(types) or "none"
            hint = did_you_mean(str(name), types, "{}")
            raise InvalidInput(where, f"there is no such field{hint} (fields: {known})")
        setattr(message, name, _convert(value, types[name], where))
    return message


def _convert(value: Any, kind: Any, path: str) -> Any:
    if isinstance(kind, AbstractNestedType):
        return _convert_many(value, kind, path)
    if isinstance(kind, NamespacedType):
        inner = find_type("/".join(kind.namespaced_name()), kind.namespaces[-1])
        return fill(inner(), value, path)
    if isinstance(kind, (AbstractString, AbstractWString)):
        if not isinstance(value, str):
            raise InvalidInput(path, f"expected a text, got {_kind(value)}; quote it")
        if isinstance(kind, BoundedString) and len(value) > kind.maximum_size:
            raise InvalidInput(path, f"is longer than {kind.maximum_size} characters")
        return value
    return _convert_basic(value, kind, path)


def _convert_basic(value: Any, kind: BasicType, path: str) -> Any:
    name = kind.typename
    if name == "boolean":
        if not isinstance(value, bool):
            raise InvalidInput(path, f"expected true or false, got {_kind(value)}")
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidInput(path, f"expected a number, got {_kind(value)}{_number_hint(value)}")
    if name in ("float", "double", "long double"):
        number = float(value)
        if name == "float" and math.isfinite(number) and abs(number) > _LARGEST_FLOAT:
            raise InvalidInput(path, f"{number:g} does not fit in a float32")
        return number
    low, high = INTEGERS[name]
    if not isinstance(value, int):
        raise InvalidInput(path, f"expected a whole number, got {value!r}")
    if not low <= value <= high:
        raise InvalidInput(path, f"{value} is not between {low} and {high} ({name})")
    return bytes([value]) if name == "octet" else value


def _number_hint(value: Any) -> str:
    """YAML 1.1 takes ``1e-5`` for a text."""
    if isinstance(value, str):
        try:
            return f" ({value} is a text in YAML; write {float(value)!r})"
        except ValueError:
            return f" '{value[:40]}'"
    return ""


def _convert_many(value: Any, kind: Any, path: str) -> Any:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Sequence):
        raise InvalidInput(path, f"expected a list, got {_kind(value)}")
    if isinstance(kind, Array) and len(value) != kind.size:
        raise InvalidInput(path, f"expected {kind.size} values, got {len(value)}")
    if isinstance(kind, BoundedSequence) and len(value) > kind.maximum_size:
        raise InvalidInput(path, f"expected at most {kind.maximum_size} values, got {len(value)}")
    inner = kind.value_type
    items = [_convert(item, inner, f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(kind, AbstractSequence) and isinstance(inner, BasicType):
        code = ARRAY_CODES.get(inner.typename)
        if code:
            return array.array(code, items)
    return items


class _Flow(list[Any]):
    """A list that is written on one line."""


class _Dumper(yaml.SafeDumper):
    """Writes short lists on one line and never breaks a line."""


_Dumper.add_representer(
    _Flow,
    lambda dumper, data: dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True),
)


def to_plain(message: Any, longest: int | None = None) -> Any:
    """A message as dictionaries, lists and scalars.

    Args:
        message: A message, or a value of a field.
        longest: Lists with more values are cut, with a note of how many there are; None: no limit.
    """
    if hasattr(message, "get_fields_and_field_types"):
        return {
            name: to_plain(getattr(message, name), longest)
            for name in message.get_fields_and_field_types()
        }
    if isinstance(message, bytes):
        return message[0] if len(message) == 1 else list(message)
    if isinstance(message, str):
        if longest is not None and len(message) > _LONGEST_TEXT:
            return f"{message[:_LONGEST_TEXT]}... ({len(message)} characters in all)"
        return message
    if hasattr(message, "tolist"):
        message = message.tolist()
    if isinstance(message, (list, tuple, set, frozenset)):
        items = list(message)
        cut = longest is not None and len(items) > longest
        shown = [to_plain(item, longest) for item in (items[:longest] if cut else items)]
        if cut:
            shown.append(f"... ({len(items)} in all)")
        simple = all(not isinstance(item, (dict, list)) for item in shown)
        return _Flow(shown) if simple else shown
    return message


def show(message: Any, *, full: bool = False) -> str:
    """A message as YAML for people; long arrays are cut unless ``full``."""
    plain = to_plain(message, None if full else _LONGEST_SHOWN)
    text = yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**6)
    return text.rstrip("\n")
