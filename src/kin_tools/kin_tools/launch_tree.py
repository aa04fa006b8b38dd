"""Launch files as trees of elements that know their line, checked against what is supported.

Only reading and checking happens here; :mod:`kin_tools.launch_xml` gives the elements a meaning.
"""

from __future__ import annotations

import xml.sax
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from xml.sax.handler import ContentHandler
from xml.sax.xmlreader import AttributesImpl, Locator

import defusedxml.sax
from defusedxml.common import DefusedXmlException

from kin_tools.errors import LaunchError

__all__ = ["Element", "read_launch_file"]

_LIMIT_BYTES = 4 * 1024 * 1024
_LIMIT_DEPTH = 64

_CONDITIONS = {"if", "unless"}
_PROCESS = {"name", "output", "respawn", "respawn_delay", *_CONDITIONS}
_ACTIONS = {
    "arg",
    "executable",
    "group",
    "include",
    "let",
    "node",
    "push_ros_namespace",
}


@dataclass(frozen=True)
class _Rule:
    """What an element may hold."""

    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    children: frozenset[str] = frozenset()


def _rule(required: str = "", optional: set[str] | None = None, children: str = "") -> _Rule:
    return _Rule(
        frozenset(required.split()), frozenset(optional or set()), frozenset(children.split())
    )


_PARAM = _rule(optional={"name", "value", "from"}, children="param")
_ENV = _rule("name value")

#: The rule of each element; "parent/child" where it differs from the element elsewhere.
_RULES = {
    "launch": _rule(children=" ".join(_ACTIONS)),
    "group": _rule(optional=_CONDITIONS, children=" ".join(_ACTIONS)),
    "arg": _rule("name", {"default", "description", *_CONDITIONS}),
    "let": _rule("name value", _CONDITIONS),
    "push_ros_namespace": _rule("namespace", _CONDITIONS),
    "include": _rule("file", _CONDITIONS, "arg"),
    "include/arg": _rule("name value"),
    "node": _rule("exec", {"pkg", "namespace", "args", *_PROCESS}, "param remap env"),
    "node/param": _PARAM,
    "param/param": _PARAM,
    "node/remap": _rule("from to"),
    "node/env": _ENV,
    "executable": _rule("cmd", _PROCESS, "env"),
    "executable/env": _ENV,
}


@dataclass
class Element:
    """One element of a launch file."""

    tag: str
    attributes: dict[str, str]
    file: Path
    line: int
    children: list[Element] = field(default_factory=list)

    def error(self, problem: str) -> LaunchError:
        """An error that points at this element."""
        return LaunchError(self.file, self.line, f"<{self.tag}>: {problem}")

    def all(self, tag: str) -> list[Element]:
        """The children with that tag, in the order of the file."""
        return [child for child in self.children if child.tag == tag]


class _Builder(ContentHandler):
    """Builds the tree, checking each element as it opens, while its line is known."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file
        self.root: Element | None = None
        self.stack: list[Element] = []
        self.locator: Locator | None = None

    def setDocumentLocator(self, locator: Locator) -> None:
        self.locator = locator

    @property
    def line(self) -> int:
        return (self.locator.getLineNumber() or 0) if self.locator else 0

    def startElement(self, name: str, attrs: AttributesImpl) -> None:
        element = Element(name, dict(attrs.items()), self.file, self.line)
        if len(self.stack) >= _LIMIT_DEPTH:
            raise element.error(f"elements nest deeper than {_LIMIT_DEPTH} levels")
        if self.stack:
            parent = self.stack[-1]
            _check_child(parent, element)
            parent.children.append(element)
        else:
            if name != "launch":
                raise element.error("the root element of a launch file is <launch>")
            self.root = element
        _check_attributes(self.stack[-1] if self.stack else None, element)
        self.stack.append(element)

    def endElement(self, name: str) -> None:
        self.stack.pop()

    def characters(self, content: str) -> None:
        if content.strip():
            tag = self.stack[-1].tag if self.stack else "launch"
            raise LaunchError(
                self.file, self.line, f"text inside <{tag}>: {content.strip()[:40]!r}"
            )


def _find_rule(parent: Element | None, element: Element) -> _Rule:
    nested = f"{parent.tag}/{element.tag}" if parent else ""
    return _RULES.get(nested) or _RULES[element.tag]


def _check_child(parent: Element, element: Element) -> None:
    allowed = {name.split("/")[1] for name in _RULES if name.startswith(parent.tag + "/")}
    if parent.tag in ("launch", "group"):
        allowed = _ACTIONS
    if element.tag in allowed:
        return
    known = f" (allowed: {', '.join(sorted(allowed))})" if allowed else " (it takes no elements)"
    close = get_close_matches(element.tag.replace("-", "_"), allowed, 1)
    hint = f"; did you mean <{close[0]}>?" if close else ""
    raise element.error(f"is not supported inside <{parent.tag}>{hint}{known}")


def _check_attributes(parent: Element | None, element: Element) -> None:
    rule = _find_rule(parent, element)
    allowed = rule.required | rule.optional
    for name in element.attributes:
        if name not in allowed:
            close = get_close_matches(name, allowed, 1)
            hint = f"; did you mean '{close[0]}'?" if close else ""
            known = f"allowed: {', '.join(sorted(allowed))}" if allowed else "it takes none"
            raise element.error(f"attribute '{name}' is not supported{hint} ({known})")
    for name in sorted(rule.required):
        if name not in element.attributes:
            raise element.error(f"attribute '{name}' is missing")
    if element.attributes.keys() >= _CONDITIONS:
        raise element.error("'if' and 'unless' cannot stand together")
    if element.tag == "param":
        _check_param(parent, element)


def _check_param(parent: Element | None, element: Element) -> None:
    given = element.attributes.keys()
    if "from" in given:
        if parent and parent.tag == "param":
            raise element.error("'from' cannot be used in a nested param")
        if given != {"from"}:
            raise element.error("'from' cannot stand together with name or value")
    elif "name" not in given:
        raise element.error("attribute 'name' or 'from' is missing")


def _check_nested_params(element: Element) -> None:
    for child in element.children:
        _check_nested_params(child)
    if element.tag != "param":
        return
    if element.children and not element.attributes.keys() <= {"name"}:
        raise element.error("nested params cannot stand together with value or from")
    if not element.children and not {"value", "from"} & element.attributes.keys():
        raise element.error("needs a value, a from, or nested params")


def read_launch_file(file: Path) -> Element:
    """Read and check one launch file, without looking into the files it includes.

    Raises:
        LaunchError: It cannot be read, is not XML, or holds something that is not supported; with
            the line.
    """
    try:
        if not file.is_file():
            raise LaunchError(file, 0, "there is no such file")
        if file.stat().st_size > _LIMIT_BYTES:
            raise LaunchError(file, 0, f"is larger than {_LIMIT_BYTES} bytes")
        content = file.read_bytes()
    except OSError as error:
        raise LaunchError(file, 0, f"cannot be read ({error.strerror})") from None
    builder = _Builder(file)
    try:
        defusedxml.sax.parseString(content, builder, forbid_dtd=True)
    except xml.sax.SAXParseException as error:
        raise LaunchError(
            file, error.getLineNumber() or 0, f"is not valid XML ({error.getMessage()})"
        ) from None
    except DefusedXmlException as error:
        raise LaunchError(
            file, builder.line, f"document types and entities are not allowed ({error})"
        ) from None
    except (LookupError, ValueError) as error:
        raise LaunchError(file, builder.line, f"cannot be decoded ({error})") from None
    if builder.root is None:
        raise LaunchError(file, 0, "holds no element")
    _check_nested_params(builder.root)
    return builder.root
