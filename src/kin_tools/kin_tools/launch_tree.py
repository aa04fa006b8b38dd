"""Launch files as trees of elements that know their line, checked against what is supported.

Only reading and checking happens here; :mod:`kin_tools.launch_xml` gives the elements a meaning.
"""

from __future__ import annotations

import xml.sax
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.handler import ContentHandler
from xml.sax.xmlreader import AttributesImpl, Locator

import defusedxml.sax
from defusedxml.common import DefusedXmlException

from kin_core.texts import did_you_mean
from kin_tools.errors import LaunchError

__all__ = ["Element", "read_launch_file"]

_LIMIT_BYTES = 4 * 1024 * 1024
_LIMIT_DEPTH = 64

_CONDITIONS = "if? unless?"
_PROCESS = f"name? output? respawn? respawn_delay? {_CONDITIONS}"
_PARAM = "name? value? from?"
_ACTIONS = {
    "arg": f"name default? description? {_CONDITIONS}",
    "executable": f"cmd {_PROCESS}",
    "group": _CONDITIONS,
    "include": f"file {_CONDITIONS}",
    "let": f"name value {_CONDITIONS}",
    "node": f"exec pkg? namespace? args? {_PROCESS}",
    "push_ros_namespace": f"namespace {_CONDITIONS}",
}
#: Elements by the element they stand in, with their attributes; those with ? may be left out.
_CHILDREN = {
    "": {"launch": ""},
    "launch": _ACTIONS,
    "group": _ACTIONS,
    "include": {"arg": "name value"},
    "node": {"param": _PARAM, "remap": "from to", "env": "name value"},
    "param": {"param": _PARAM},
    "executable": {"env": "name value"},
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
        parent = self.stack[-1] if self.stack else None
        if parent is None and name != "launch":
            raise element.error("the root element of a launch file is <launch>")
        _check(parent.tag if parent else "", element)
        if parent:
            parent.children.append(element)
        else:
            self.root = element
        self.stack.append(element)

    def endElement(self, name: str) -> None:
        element = self.stack.pop()
        given = element.attributes.keys()
        if name == "param" and element.children and not given <= {"name"}:
            raise element.error("nested params cannot stand together with value or from")
        if name == "param" and not element.children and not {"value", "from"} & given:
            raise element.error("needs a value, a from, or nested params")

    def characters(self, content: str) -> None:
        if content.strip():
            tag = self.stack[-1].tag if self.stack else "launch"
            raise LaunchError(
                self.file, self.line, f"text inside <{tag}>: {content.strip()[:40]!r}"
            )


def _check(parent: str, element: Element) -> None:
    """Refuse an element that may not stand there, and attributes that it cannot have."""
    allowed = _CHILDREN.get(parent, {})
    if element.tag not in allowed:
        known = f"allowed: {', '.join(sorted(allowed))}" if allowed else "it takes no elements"
        hint = did_you_mean(element.tag.replace("-", "_"), allowed, "<{}>")
        raise element.error(f"is not supported inside <{parent}>{hint} ({known})")
    words = allowed[element.tag].split()
    names = {word.rstrip("?") for word in words}
    for name in element.attributes.keys() - names:
        hint = did_you_mean(name, names)
        known = f"allowed: {', '.join(sorted(names))}" if names else "it takes none"
        raise element.error(f"attribute '{name}' is not supported{hint} ({known})")
    for name in words:
        if not name.endswith("?") and name not in element.attributes:
            raise element.error(f"attribute '{name}' is missing")
    given = element.attributes.keys()
    if given >= {"if", "unless"}:
        raise element.error("'if' and 'unless' cannot stand together")
    if element.tag == "param" and "from" in given:
        if parent == "param":
            raise element.error("'from' cannot be used in a nested param")
        if given != {"from"}:
            raise element.error("'from' cannot stand together with name or value")
    elif element.tag == "param" and "name" not in given:
        raise element.error("attribute 'name' or 'from' is missing")


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
    return builder.root
