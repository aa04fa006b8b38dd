"""Reading YAML from outside: safe, bounded, and with errors that name file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from kin_common.checks import LONGEST_NAME
from kin_common.errors import InvalidInput

__all__ = ["LIMIT_BYTES", "load_yaml"]

#: Largest document that is read [bytes].
LIMIT_BYTES = 16 * 1024 * 1024
_LIMIT_DEPTH = 64


class _Loader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]
    """A safe loader that refuses duplicate keys, of which the ordinary one keeps the second."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            try:
                known = key in seen
            except TypeError:
                raise yaml.constructor.ConstructorError(
                    None, None, "a key must be a plain value", key_node.start_mark
                ) from None
            if known:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} stands here twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def load_yaml(
    source: str | Path,
    *,
    name: str = "",
    limit_bytes: int = LIMIT_BYTES,
    longest_word: int = LONGEST_NAME,
) -> Any:
    """Read one YAML document.

    Args:
        source: The text itself, or a Path to a file.
        name: What to call the text in errors; the file's name for a Path.
        limit_bytes: Largest size that is read [bytes].
        longest_word: Most characters of a key or value that is not written as a block.

    Raises:
        InvalidInput: The file cannot be read, is too large, or is not valid YAML; the message holds
            the name and the line.
    """
    if isinstance(source, Path):
        name = name or str(source)
        try:
            if source.stat().st_size > limit_bytes:
                raise InvalidInput(name, f"is larger than {limit_bytes} bytes")
            text = source.read_text(encoding="utf-8")
        except OSError as error:
            raise InvalidInput(name, f"cannot be read ({error.strerror})") from None
        except UnicodeDecodeError:
            raise InvalidInput(name, "is not a UTF-8 text") from None
    else:
        text = source
        name = name or "YAML"
        if len(text) > limit_bytes:
            raise InvalidInput(name, f"is larger than {limit_bytes} bytes")
    _refuse_bombs(text, name, longest_word)
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 (a subclass of the safe loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        raise InvalidInput(f"{name}{line}", str(error.problem or error.context)) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidInput(name, f"is not valid YAML ({error})") from None


def _refuse_bombs(text: str, name: str, longest_word: int) -> None:
    """Refuse what is small to send and large to build: aliases, and nesting without end."""
    depth = 0
    try:
        for event in yaml.parse(text, Loader=_Loader):
            where = f"{name}, line {event.start_mark.line + 1}"
            if isinstance(event, yaml.AliasEvent):
                raise InvalidInput(where, "aliases are not allowed")
            if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
                depth += 1
                if depth > _LIMIT_DEPTH:
                    raise InvalidInput(where, f"nests deeper than {_LIMIT_DEPTH} levels")
            elif isinstance(event, yaml.ScalarEvent):
                # Names and numbers; a text of several lines is written as a block.
                length = len(event.value)
                if length > longest_word and event.style not in ("|", ">"):
                    raise InvalidInput(
                        where, f"holds a word of {length} characters; {longest_word} are taken"
                    )
            elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                depth -= 1
    except yaml.YAMLError:
        return  # the loader says it better
