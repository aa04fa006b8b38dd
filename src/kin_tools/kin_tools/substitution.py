r"""Substitutions in launch files: ``$(var x)``, ``$(env X default)`` and their kin.

The grammar is that of the ROS 2 launch front end. Outside of a substitution everything is text;
``\`` takes the meaning from the character after it, so ``\$(`` is text. Inside, arguments stand
one space apart, may be quoted with ``'`` or ``"`` and may hold substitutions themselves.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from kin_core.texts import did_you_mean

__all__ = ["Call", "Scope", "SubstitutionError", "Template", "parse", "parse_command", "perform"]

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_ESCAPE = re.compile(r"\\(.)")
_NESTING = 32
#: Name of each substitution, with the fewest and the most arguments it takes.
_KNOWN = {"var": (1, 2), "env": (1, 2), "find-pkg-share": (1, 1), "dirname": (0, 0)}


class SubstitutionError(ValueError):
    """A substitution that cannot be read, or has no value here."""


@dataclass(frozen=True)
class Call:
    """One ``$(name argument argument)``."""

    name: str
    arguments: tuple[Template, ...]


#: Texts, with escapes resolved, and what is to be replaced between them.
Template: TypeAlias = "tuple[str | Call, ...]"


def find_share(package: str) -> str:
    """The share folder of a package.

    Raises:
        SubstitutionError: It is not installed.
    """
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
        directory: Folder of the launch file that is being read.
        read: Names of configurations that were looked up.
    """

    configurations: dict[str, str]
    directory: Path
    read: set[str] = field(default_factory=set)


class _Parser:
    """A recursive descent over the grammar; ``quote`` is the quote character we are inside of."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    @property
    def rest(self) -> str:
        return self.text[self.position :]

    def at_call(self, start: int) -> bool:
        """A ``$(`` begins here, unless the character before it is a backslash inside the text."""
        escaped = self.position > start and self.text[self.position - 1] == "\\"
        return self.text.startswith("$(", self.position) and not escaped

    def template(self, quote: str, depth: int) -> Template:
        """The whole text, or what is in quotes."""
        parts = self.parts(quote, quote, depth)
        if quote and not self.rest:
            raise SubstitutionError(f"a {quote} is not closed in '{self.text}'")
        return parts

    def parts(self, stop: str, quote: str, depth: int) -> Template:
        """Texts and substitutions up to an unescaped character of ``stop``."""
        found: list[str | Call] = []
        while self.rest:
            if self.at_call(self.position):
                found.append(self.call(quote, depth + 1))
            elif self.text[self.position] in stop:
                break
            else:
                found.append(self.run(stop))
        return tuple(found)

    def run(self, stop: str) -> str:
        """Text up to the next substitution or an unescaped character of ``stop``."""
        start = self.position
        while self.rest and not self.at_call(start):
            character = self.text[self.position]
            if stop and character == "\\" and len(self.rest) > 1:
                self.position += 1  # what follows loses its meaning, but a space still separates
                if self.text[self.position] in stop.replace(" ", "") + "$":
                    self.position += 1
                continue
            if character in stop:
                break
            self.position += 1
        return _ESCAPE.sub(r"\1", self.text[start : self.position])

    def call(self, quote: str, depth: int) -> Call:
        if depth > _NESTING:
            raise SubstitutionError(f"substitutions nest deeper than {_NESTING} levels")
        match = _IDENTIFIER.match(self.text, self.position + 2)
        if not match:
            raise SubstitutionError(f"no name after $( in '{self.text}'")
        self.position = match.end()
        arguments: list[Template] = []
        while self.rest.startswith(" "):
            self.position += 1
            arguments.append(self.argument(quote, depth))
        if not self.rest.startswith(")"):
            raise SubstitutionError(f"$({match.group()} is not closed by ) in '{self.text}'")
        self.position += 1
        return _checked(match.group(), tuple(arguments))

    def argument(self, quote: str, depth: int) -> Template:
        if not quote and self.rest.startswith(("'", '"')):
            self.position += 1
            inside = self.template(self.text[self.position - 1], depth)
            self.position += 1
            return inside
        parts = self.parts(" ()" + (quote or "'\""), quote, depth)
        if not parts:
            raise SubstitutionError(f"an empty argument in '{self.text}'")
        return parts


def _checked(name: str, arguments: tuple[Template, ...]) -> Call:
    if name not in _KNOWN:
        hint = did_you_mean(name, _KNOWN, "$({} ...)")
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
    return _Parser(text).template("", 0)


def parse_command(text: str) -> list[Template]:
    """Read a command line: split at spaces as a shell would, but never inside a substitution.

    Text before and after a substitution without a space between them belongs to the same word.
    """
    words: list[Template] = []
    word: Template = ()
    for part in parse(text):
        if isinstance(part, Call):
            word += (part,)
            continue
        try:
            tokens = shlex.split(part)
        except ValueError as error:
            raise SubstitutionError(f"{error} in '{text}'") from None
        # As ros2 launch has it, a blank ends a word even if there is none.
        if not tokens or (word and part[0].isspace()):
            words.append(word)
            word = ()
        for number, token in enumerate(tokens):
            if number:
                words.append(word)
                word = ()
            word += (token,)
        if tokens and part[-1].isspace():
            words.append(word)
            word = ()
    return [*words, word] if word else words


def perform(template: Template, scope: Scope) -> str:
    """Replace all substitutions by their values.

    Raises:
        SubstitutionError: Something has no value here.
    """
    return "".join(
        part if isinstance(part, str) else _perform_call(part, scope) for part in template
    )


def _perform_call(call: Call, scope: Scope) -> str:
    if call.name == "dirname":
        return str(scope.directory)
    name, *default = [perform(argument, scope) for argument in call.arguments]
    if call.name == "find-pkg-share":
        return find_share(name)
    if call.name == "env":
        missing = f"environment variable '{name}' is not set"
        missing += f" (a default would be $(env {name} DEFAULT))"
        found = os.environ.get(name)
    else:
        scope.read.add(name)
        hint = did_you_mean(name, scope.configurations)
        missing = f"'{name}' is neither an argument nor set by let{hint}"
        found = scope.configurations.get(name)
    if found is None and not default:
        raise SubstitutionError(missing)
    return default[0] if found is None else found
