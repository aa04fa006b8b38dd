"""Reading YAML from outside: safe, bounded, and with errors that name file and line.

Taken are mappings, lists, texts, numbers, booleans and nulls. Anchors and aliases are taken as long
as the document does not grow much by them; an alias becomes a copy, so that nobody who changes what
was read changes it elsewhere. What YAML 1.1 reads into plain words is refused: 1:30 is no number,
2026-11-18 no date; in quotes both are texts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from kin_core.checks import LONGEST_NAME
from kin_core.errors import InvalidInput
from kin_core.texts import read_bounded

__all__ = ["LIMIT_BYTES", "LIMIT_EXPANSION", "load_yaml"]

#: Largest document that is read [bytes].
LIMIT_BYTES = 16 * 1024 * 1024
#: Nodes that aliases may add to a document.
LIMIT_EXPANSION = 20_000
_LIMIT_DEPTH = 64
#: Whole numbers are of 64 bits, signed or unsigned.
_LIMIT_WHOLE = 1 << 64
_MERGE = "tag:yaml.org,2002:merge"


def _refusal(node: Any, problem: str) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


class _Loader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]
    """A safe loader that refuses what the ordinary one reads in a surprising way."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == _MERGE:
                continue
            key = self.construct_object(key_node, deep=True)
            try:
                known = key in seen
            except TypeError:
                raise _refusal(key_node, "a key must be a plain value") from None
            if known:
                raise _refusal(key_node, f"the key {key!r} is duplicated")
            if isinstance(key, str) and len(key) > LONGEST_NAME:
                raise _refusal(
                    key_node,
                    f"a key of {len(key)} characters, more than the limit of {LONGEST_NAME}",
                )
            seen.add(key)
        return super().construct_mapping(node, deep)

    def construct_whole(self, node: Any) -> int:
        """A whole number, which the ordinary loader also reads from 1:30 (to the base of 60)."""
        self._refuse_colons(node)
        if len(node.value) > 100:
            raise _refusal(node, f"a whole number of {len(node.value)} digits is too large")
        value = int(self.construct_yaml_int(node))
        if not -_LIMIT_WHOLE < value < _LIMIT_WHOLE:
            raise _refusal(node, f"a whole number of {len(node.value)} digits is too large")
        return value

    def construct_real(self, node: Any) -> float:
        """A number."""
        self._refuse_colons(node)
        return float(self.construct_yaml_float(node))

    def refuse(self, node: Any) -> Any:
        """What is no mapping, list, text, number, boolean or null."""
        kind = str(node.tag).rsplit(":", 1)[-1]
        hint = "; write it in quotes" if kind == "timestamp" else ""
        raise _refusal(node, f"a value of the type {kind} is not allowed{hint}")

    @staticmethod
    def _refuse_colons(node: Any) -> None:
        if ":" in node.value:
            raise _refusal(
                node, f"{node.value[:40]!r} is no number; write it in quotes if it is a text"
            )


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_whole)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_real)
for _kind in ("binary", "timestamp", "set", "omap", "pairs"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _Loader.refuse)


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
    data, name = read_bounded(source, limit_bytes, name, "YAML")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(name, "is not a UTF-8 text") from None
    shared = _refuse_bombs(text, name, longest_word)
    try:
        content = yaml.load(text, Loader=_Loader)  # noqa: S506 (a subclass of the safe loader)
        return _unshared(content) if shared else content
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        raise InvalidInput(f"{name}{line}", str(error.problem or error.context)) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidInput(name, f"is not valid YAML ({error})") from None


def _refuse_bombs(text: str, name: str, longest_word: int) -> bool:
    """Refuse what is small to send and large to build; returns whether there are aliases."""
    count = _Count(name, longest_word)
    try:
        for event in yaml.parse(text, Loader=_Loader):
            count.take(event)
    except yaml.YAMLError:
        pass  # the loader says it better
    return count.expansion > 0


class _Count:
    """Counts nodes and levels of a document as they are when every alias is written out."""

    def __init__(self, name: str, longest_word: int) -> None:
        self.name = name
        self.longest_word = longest_word
        self.expansion = 0
        #: Nodes and levels of what each anchor stands for.
        self._anchors: dict[str, tuple[int, int]] = {}
        #: Anchor, nodes and levels of every collection that is open.
        self._open: list[list[Any]] = []

    def take(self, event: Any) -> None:
        """Count one event of the parser."""
        if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            self._open.append([event.anchor, 1, 1])
            self._check_depth(len(self._open), event)
            if event.anchor is not None:
                self._anchors.pop(event.anchor, None)  # its own name inside it is a cycle
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            anchor, nodes, levels = self._open.pop()
            self._add(anchor, nodes, levels)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                if any(anchor == event.anchor for anchor, _, _ in self._open):
                    raise self._refused(event, f"the alias {event.anchor!r} stands within itself")
                return  # unknown: the loader says so
            nodes, levels = self._anchors[event.anchor]
            self.expansion += nodes
            if self.expansion > LIMIT_EXPANSION:
                raise self._refused(
                    event, f"aliases add more than {LIMIT_EXPANSION} values to the document"
                )
            self._check_depth(len(self._open) + levels, event)
            self._add(None, nodes, levels)
        elif isinstance(event, yaml.ScalarEvent):
            # Names and numbers; a text of several lines is written as a block.
            length = len(event.value)
            if length > self.longest_word and event.style not in ("|", ">"):
                raise self._refused(
                    event, f"holds a word of {length} characters; {self.longest_word} are taken"
                )
            self._add(event.anchor, 1, 0)

    def _add(self, anchor: str | None, nodes: int, levels: int) -> None:
        """A node is complete: it counts in the collection around it, and for its anchor."""
        if anchor is not None:
            self._anchors[anchor] = (nodes, levels)
        if self._open:
            around = self._open[-1]
            around[1] += nodes
            around[2] = max(around[2], levels + 1)

    def _check_depth(self, depth: int, event: Any) -> None:
        if depth > _LIMIT_DEPTH:
            raise self._refused(event, f"nests deeper than {_LIMIT_DEPTH} levels")

    def _refused(self, event: Any, problem: str) -> InvalidInput:
        return InvalidInput(f"{self.name}, line {event.start_mark.line + 1}", problem)


def _unshared(content: Any) -> Any:
    """The same content with a copy in place of every alias."""
    if isinstance(content, dict):
        return {key: _unshared(value) for key, value in content.items()}
    if isinstance(content, list):
        return [_unshared(value) for value in content]
    return content
