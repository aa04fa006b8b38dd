"""Message definitions for bags: read from the installed packages, and from bags themselves.

Requests and answers of services and actions are messages too. They keep their ROS names, such as
``kin_interfaces/srv/CheckReady_Request``.
"""

from __future__ import annotations

import json
import os
import re
import struct
from pathlib import Path
from typing import Any

from rosbags.interfaces.typing import Typesdict
from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore
from rosbags.typesys.base import TypesysError

from kin_core.errors import InvalidInput

__all__ = ["TypeRegistry", "definitions", "is_hidden"]

#: Bytes that may stand behind a message: some for each empty array at its end.
_SPARE = 512
_PART = re.compile(r"_(Request|Response|Goal|Result|Feedback|FeedbackMessage|Event)$")
#: Which part of a .srv or .action file holds the fields of which message.
_PARTS = {"Request": 0, "Response": 1, "Goal": 0, "Result": 1, "Feedback": 2}
#: What stands on hidden topics is made of these, with the name of the service or action before it.
#: The library has names for messages alone: inside, the parts are ``PACKAGE/msg/NAME_PART``.
_HIDDEN = {
    "FeedbackMessage": "unique_identifier_msgs/UUID goal_id\n{0}_Feedback feedback\n",
    "Event": (
        "service_msgs/ServiceEventInfo info\n{0}_Request[<=1] request\n{0}_Response[<=1] response\n"
    ),
}


def is_hidden(name: str) -> bool:
    """Whether a type is one of hidden topics."""
    match = _PART.search(name)
    return match is not None and match[1] in _HIDDEN


def definitions(text: str, name: str) -> dict[str, Any]:
    """Parse a definition, with those it depends on appended as in bags, under its ROS name."""
    package, _, base = _parts(name)
    # The parser looks for short names beside the type, and messages are where they are.
    plain = f"{package}/msg/{base}"
    found = dict(get_types_from_msg(text, plain))
    if plain != name:
        found[name] = found.pop(plain)
    return found


def _parts(name: str) -> tuple[str, str, str]:
    """Package, kind and base of the name of a type; early ROS 2 left ``msg`` out.

    Raises:
        InvalidInput: It is no name of a type.
    """
    match name.split("/"):
        case [package, kind, base]:
            return package, kind, base
        case [package, base]:
            return package, "msg", base
    raise InvalidInput(name, "is no name of a type")


def _installed(name: str, ending: str = "") -> tuple[Path | None, str]:
    """The file of an installed package that tells of a type, and which part of it, if any.

    Args:
        name: Of the type.
        ending: Of the file's name; empty for the definition itself.
    """
    package, kind, base = _parts(name)
    match = _PART.search(base)
    owner, part = (base[: match.start()], match[1]) if match else (base, "")
    kinds = ("srv", "action") if part and kind == "msg" else (kind,)
    for prefix in filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)):
        for each in kinds:
            file = Path(prefix, "share", package, each, f"{owner}.{ending or each}")
            if file.is_file():
                return file, part
    return None, part


def _field_types(parsed: dict[str, Any]) -> list[str]:
    """Names of the message types among the fields of parsed definitions."""
    found: list[str] = []

    def visit(node: Any) -> None:
        if isinstance(node, str) and node.count("/") == 2:
            found.append(node)
        elif isinstance(node, (list, tuple)):
            for item in node:
                visit(item)

    for _, fields in parsed.values():
        visit([kind for _, kind in fields])
    return found


class TypeRegistry:
    """A rosbags type store that learns types by name from the installed packages."""

    def __init__(self) -> None:
        self.store = get_typestore(Stores.ROS2_JAZZY)
        self._hashes: dict[str, str] = {}

    def learn(self, name: str) -> None:
        """Make a type and all it depends on known.

        Raises:
            InvalidInput: No installed package has it.
        """
        if name in self.store.fielddefs:
            return
        text = self._text(name)
        parsed = definitions(text, name)
        self.store.register(parsed)
        for inner in _field_types(parsed):
            self.learn(inner)

    def _text(self, name: str) -> str:
        file, part = _installed(name)
        if file is None:
            raise InvalidInput(name, "no installed package defines this type")
        text = file.read_text(encoding="utf-8")
        if part in _HIDDEN:
            return _HIDDEN[part].format(_parts(name)[2].removesuffix(f"_{part}"))
        if part:
            text = re.split(r"^---\s*$", text, flags=re.MULTILINE)[_PARTS[part]]
        return text

    def definition(self, name: str) -> str:
        """The definition as it stands in a bag: the type, and all that it depends on."""
        self.learn(name)
        return str(self.store.generate_msgdef(name, ros_version=2)[0])

    def digest(self, name: str) -> str:
        """The type hash: that of the installed package if it has one, else computed."""
        if name not in self._hashes:
            self._hashes[name] = self._installed_digest(name) or self.store.hash_rihs01(name)
        return self._hashes[name]

    def _installed_digest(self, name: str) -> str | None:
        file, _ = _installed(name, "json")
        if file is None:
            return None
        for entry in json.loads(file.read_text(encoding="utf-8")).get("type_hashes", []):
            if entry.get("type_name") == name:
                return str(entry["hash_string"])
        return None

    def learn_from_bag(self, name: str, text: str, *, idl: bool = False) -> None:
        """Make the types of a definition that a bag holds known.

        Args:
            name: Of the type.
            text: The definition.
            idl: Whether it is written in IDL.

        Raises:
            InvalidInput: It cannot be understood, as those of ``ros2 bag`` for the events of
                services.
        """
        if name in self.store.fielddefs:
            return
        try:
            parsed: Typesdict = get_types_from_idl(text) if idl else definitions(text, name)
        except (TypesysError, ValueError, KeyError) as error:
            first = str(error).partition("\n")[0]
            raise InvalidInput(name, f"its definition cannot be understood ({first})") from None
        self.store.register({k: v for k, v in parsed.items() if k not in self.store.fielddefs})

    def decode(self, name: str, raw: bytes) -> Any:
        """A message as an object with one attribute per field; arrays are numpy arrays.

        Fast DDS leaves room behind a message that ends in empty arrays of doubles, more than the
        type store's own method accepts.

        Raises:
            InvalidInput: The bytes are not a message of that type.
        """
        if len(raw) < 4 or bytes(raw[:2]) not in (b"\x00\x00", b"\x00\x01"):
            raise InvalidInput(name, "is not encoded as plain CDR")
        if name not in self.store.fielddefs:
            raise InvalidInput(name, "is a type that neither the bag nor a package here defines")
        layout = self.store.get_msgdef(name)
        decode = layout.deserialize_cdr_le if raw[1] else layout.deserialize_cdr_be
        try:
            message, used = decode(raw[4:], 0, layout.cls, self.store)
        except (struct.error, UnicodeDecodeError, ValueError, IndexError) as error:
            raise InvalidInput(name, f"cannot be decoded ({error})") from None
        if used + 4 + _SPARE < len(raw):
            raise InvalidInput(name, f"has {len(raw) - 4 - used} bytes too many")
        return message
