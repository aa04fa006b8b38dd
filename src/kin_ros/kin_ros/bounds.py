"""Bounds on the texts of a message, whatever its type: names are short, documents are not endless.

One place for all services, actions and topics, also those that are yet to be written.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rosidl_parser.definition import (
    AbstractGenericString,
    AbstractNestedType,
    NamespacedType,
)

from kin_core.checks import LONGEST_NAME
from kin_core.errors import LimitExceeded
from kin_core.yamls import LIMIT_BYTES

__all__ = ["DOCUMENTS", "check_texts"]

#: Fields that hold a whole text, such as a robot description; every other one holds a name.
DOCUMENTS = frozenset(
    {"closures", "data", "edits", "mechanism", "mjcf", "schedule", "urdf", "yaml"}
)

#: Messages whose texts are only shown; those who show them shorten them.
_SHOWN = ("diagnostic_msgs", "visualization_msgs")


class _Field(NamedTuple):
    name: str
    limit: int  # characters; 0 for a field that is itself a message
    several: bool


#: What was found in each message class.
_FOUND: dict[Any, tuple[_Field, ...]] = {}


def _text_fields(kind: Any) -> tuple[_Field, ...]:
    """The fields of a message class in which there are texts, at any depth."""
    if kind not in _FOUND:
        _FOUND[kind] = _look_for_texts(kind)
    return _FOUND[kind]


def _look_for_texts(kind: Any) -> tuple[_Field, ...]:
    if kind.__module__.startswith(_SHOWN):
        return ()
    found = []
    sample = kind()
    for name, slot in zip(sample.get_fields_and_field_types(), kind.SLOT_TYPES, strict=True):
        several = isinstance(slot, AbstractNestedType)
        inner = slot.value_type if several else slot
        if isinstance(inner, AbstractGenericString):
            found.append(_Field(name, LIMIT_BYTES if name in DOCUMENTS else LONGEST_NAME, several))
        elif isinstance(inner, NamespacedType) and (
            # What a list of messages holds shows only in its first element.
            several or _text_fields(type(getattr(sample, name)))
        ):
            found.append(_Field(name, 0, several))
    return tuple(found)


def check_texts(message: Any, path: str = "") -> None:
    """Refuse a message that holds a name or a text that is too long.

    Args:
        message: Any ROS message.
        path: Where it stands in the request, for the error.

    Raises:
        LimitExceeded: Names the field, the length and the limit.
    """
    for name, limit, several in _text_fields(type(message)):
        value = getattr(message, name)
        if limit == 0:
            if not several:
                check_texts(value, f"{path}{name}.")
            elif value and _text_fields(type(value[0])):
                for i, one in enumerate(value):
                    check_texts(one, f"{path}{name}[{i}].")
            continue
        length = max(map(len, value), default=0) if several else len(value)
        if length > limit:
            raise LimitExceeded(
                f"{path}{name}: a text of {length} characters; at most {limit} are taken"
            )
