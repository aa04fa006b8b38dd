r"""Substitutions in launch files: ``$(var x)``, ``$(env X default)`` and their kin.

The grammar is that of the ROS 2 launch front end. Outside of a substitution everything is text;
``\`` takes the meaning from the character after it, so ``\$(`` is text. Inside, arguments stand
one space apart, may be quoted with ``'`` or ``"`` and may hold substitutions themselves.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TypeAlias

__all__ = [
    "Call",
    "Scope",
    "SubstitutionError",
    "Template",
    "Text",
    "describe",
    "parse",
    "parse_command",
    "perform",
]

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_ESCAPE = re.compile(r"\\(.)")
_NESTING = 32


class SubstitutionError(ValueError):
    """A substitution that cannot be read, or has no value here."""


@dataclass(frozen=True)
class Text:
    """Plain text, escapes already resolved."""

    text: str


@dataclass(frozen=True)
class Call:
    """One ``$(name argument argument)``."""

    name: str
    arguments: tuple[Template, ...]


Template: TypeAlias = "tuple[Text | Call, ...]"


def find_share(package: str) -> str:
    from ament_index_python.packages import PackageNotFoundError, get_package_share_directory

    try:
        return str(get_package_share_directory(package))
    except PackageNotFoundError:
        raise SubstitutionError(
            f"package '{package}' is not installed; is the workspace built and sourced?"
        ) from None
    except ValueError as error:
        raise SubstitutionError(str(error)) from None


@dataclass
class Scope:
    """What substitutions are looked up in.

    Attributes:
        configurations: Launch configurations: arguments and what ``let`` has set.
        environment: Environment variables of the runner.
        directory: Folder of the launch file that is being read.
        find_share: Finds the share folder of a package.
        read: Names of configurations that were looked up.
    """

    configurations: dict[str, str]
    environment: Mapping[str, str]
    directory: Path
    find_share: Callable[[str], str] = find_share
    read: set[str] = field(default_factory=set)


class _Parser:
    """A recursive descent over the grammar; ``quote`` is the quote character we are inside of."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def at(self, token: str) -> bool:
        return self.text.startswith(token, self.position)

    def at_call(self, start: int) -> bool:
        """A ``$(`` begins here, unless the character before it is a backslash inside the text."""
        return self.text.startswith("$(", self.position) and not (
            self.position > start and self.text[self.position - 1] == "\\"
        )

    def template(self, quote: str, depth: int) -> Template:
        fragments: list[Text | Call] = []
        while self.position < len(self.text):
            if quote and self.at(quote):
                return tuple(fragments)
            if self.at_call(self.position):
                fragments.append(self.call(quote, depth + 1))
            else:
                fragments.append(Text(self.run(stop=quote)))
        if quote:
            raise SubstitutionError(f"a {quote} is not closed in '{self.text}'")
        return tuple(fragments)

    def run(self, stop: str) -> str:
        """Text up to the next substitution or an unescaped character of ``stop``."""
        start = self.position
        while self.position < len(self.text) and not self.at_call(start):
            character = self.text[self.position]
            if stop and character == "\\" and self.position + 1 < len(self.text):
                self.position += 1  # what follows loses its meaning, but a space still separates
                if self.text[self.position] in stop.replace(" ", "") + "$":
                    self.position += 1
                continue
            if stop and character in stop:
                break
            self.position += 1
        return _ESCAPE.sub(r"\1", self.text[start : self.position])

    def call(self, quote: str, depth: int) -> Call:
        if depth > _NESTING:
            raise SubstitutionError(f"substitutions nest deeper than {_NESTING} levels")
        self.position += 2
        match = _IDENTIFIER.match(self.text, self.position)
        if not match:
            raise SubstitutionError(f"no name after $( in '{self.text}'")
        self.position = match.end()
        arguments: list[Template] = []
        while self.at(" "):
            self.position += 1
            arguments.append(self.value(quote, depth))
        if not self.at(")"):
            raise SubstitutionError(f"$({match.group()} is not closed by ) in '{self.text}'")
        self.position += 1
        return _checked(match.group(), tuple(arguments))

    def value(self, quote: str, depth: int) -> Template:
        if not quote and self.position < len(self.text) and self.text[self.position] in "'\"":
            mark = self.text[self.position]
            self.position += 1
            inside = self.template(mark, depth)
            self.position += 1
            return inside or (Text(""),)
        stop = " ()" + (quote or "'\"")
        parts: list[Text | Call] = []
        while self.position < len(self.text):
            if self.at_call(self.position):
                parts.append(self.call(quote, depth + 1))
                continue
            if self.text[self.position] in stop:
                break
            parts.append(Text(self.run(stop)))
        if not parts:
            raise SubstitutionError(f"an empty argument in '{self.text}'")
        return tuple(parts)


#: Name of each substitution, with the fewest and the most arguments it takes.
_KNOWN = {"var": (1, 2), "env": (1, 2), "find-pkg-share": (1, 1), "dirname": (0, 0)}


def _checked(name: str, arguments: tuple[Template, ...]) -> Call:
    if name not in _KNOWN:
        close = get_close_matches(name, _KNOWN, 1)
        hint = f"; did you mean $({close[0]} ...)?" if close else ""
        raise SubstitutionError(
            f"unknown substitution $({name} ...){hint} (known: {', '.join(sorted(_KNOWN))})"
        )
    fewest, most = _KNOWN[name]
    if not fewest <= len(arguments) <= most:
        wants = str(fewest) if fewest == most else f"{fewest} or {most}"
        raise SubstitutionError(f"$({name} ...) takes {wants} arguments, got {len(arguments)}")
    return Call(name, arguments)


def parse(text: str) -> Template:
    """Read a text with substitutions.

    Raises:
        SubstitutionError: The text is not well formed, or names an unknown substitution.
    """
    return _Parser(text).template("", 0) or (Text(""),)


def parse_command(text: str) -> list[Template]:
    """Read a command line: split at spaces as a shell would, but never inside a substitution.

    Text before and after a substitution without a space between them belongs to the same word.
    """
    words: list[Template] = []
    word: list[Text | Call] = []

    def close() -> None:
        nonlocal word
        words.append(tuple(word))
        word = []

    for part in parse(text):
        if isinstance(part, Call):
            word.append(part)
            continue
        try:
            tokens = shlex.split(part.text)
        except ValueError as error:
            raise SubstitutionError(f"{error} in '{text}'") from None
        if not tokens:
            close()
            continue
        if part.text[0].isspace() and word:
            close()
        word.append(Text(tokens[0]))
        if len(tokens) > 1:
            close()
            words.extend((Text(token),) for token in tokens[1:-1])
            word.append(Text(tokens[-1]))
        if part.text[-1].isspace():
            close()
    if word:
        words.append(tuple(word))
    return words


def perform(template: Template, scope: Scope) -> str:
    """Replace all substitutions by their values.

    Raises:
        SubstitutionError: Something has no value here.
    """
    return "".join(
        part.text if isinstance(part, Text) else _perform_call(part, scope) for part in template
    )


def _perform_call(call: Call, scope: Scope) -> str:
    arguments = [perform(argument, scope) for argument in call.arguments]
    match call.name:
        case "var":
            return _look_up(arguments, scope)
        case "env":
            value = scope.environment.get(arguments[0])
            if value is None and len(arguments) == 2:
                return arguments[1]
            if value is None:
                raise SubstitutionError(
                    f"environment variable '{arguments[0]}' is not set "
                    f"(a default would be $(env {arguments[0]} DEFAULT))"
                )
            return value
        case "find-pkg-share":
            return scope.find_share(arguments[0])
        case _:
            return str(scope.directory)


def _look_up(arguments: list[str], scope: Scope) -> str:
    name = arguments[0]
    scope.read.add(name)
    if name in scope.configurations:
        return scope.configurations[name]
    if len(arguments) == 2:
        return arguments[1]
    close = get_close_matches(name, scope.configurations, 1)
    hint = f"; did you mean '{close[0]}'?" if close else ""
    raise SubstitutionError(f"'{name}' is neither an argument nor set by let{hint}")


def describe(template: Template) -> str:
    """The template as a person would write it, for lists of arguments."""
    out = ""
    for part in template:
        if isinstance(part, Text):
            out += part.text
        else:
            out += "$(" + " ".join([part.name, *map(describe, part.arguments)]) + ")"
    return out
