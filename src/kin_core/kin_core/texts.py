"""Texts of others: read up to a size, cut to what a screen can take, and what they may mean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from kin_core.errors import InvalidInput

__all__ = ["LONGEST_SENTENCE", "did_you_mean", "lined_up", "read_bounded", "shortened"]

#: Longest sentence in a status, a log line or a diagnostic message [characters].
LONGEST_SENTENCE = 1000


def shortened(text: str, limit: int = LONGEST_SENTENCE) -> str:
    """Return a text of at most ``limit`` characters: its beginning, its end, and what is left out.

    Args:
        text: Any text, also one that a client sent.
        limit: Most characters of the result, at least 40.
    """
    if len(text) <= limit:
        return text
    note = f" ... ({len(text)} characters) ... "
    kept = max(0, limit - len(note))
    tail = kept // 4
    return text[: kept - tail] + note + (text[-tail:] if tail else "")


def lined_up(header: Sequence[str], rows: Iterable[Sequence[str]], right: int = -1) -> list[str]:
    """Return the lines of a table, its header and a rule first.

    Args:
        header: Names of the columns.
        rows: The cells.
        right: The column whose cells end in line; -1 for none.
    """
    table = [header, *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if column == right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


def did_you_mean(word: str, known: Iterable[str], form: str = "{!r}") -> str:
    """Return the known word that is nearest to one that is not, as the end of a sentence.

    Args:
        word: What was written.
        known: What can be meant.
        form: How the known word is shown.
    """
    # Nearness takes the product of the lengths: only for what a person may have mistyped.
    names = list(known)[:1000] if len(word) <= 1000 else []
    near = get_close_matches(word, names, n=1)
    return f"; did you mean {form.format(near[0])}?" if near else ""


def read_bounded(source: Any, limit: int, name: str, kind: str) -> tuple[bytes, str]:
    """Return what a text or a file holds, and what to call it in errors.

    Args:
        source: The text itself, or a Path to a file.
        limit: Largest size that is taken [bytes].
        name: What to call it; empty for the name of the file, or else ``kind``.
        kind: What it should be, such as "YAML".

    Raises:
        InvalidInput: It is neither, is too large, or cannot be read.
    """
    name = name or (str(source) if isinstance(source, Path) else kind)
    if isinstance(source, Path):
        try:
            size = source.stat().st_size
            data = source.read_bytes() if size <= limit else b""
        except OSError as error:
            raise InvalidInput(name, f"cannot be read ({error.strerror})") from None
    elif isinstance(source, str):
        data = source.encode("utf-8", "surrogatepass")
        size = len(data)
    else:
        raise InvalidInput(name, f"must be a text or a Path, not of type {type(source).__name__}")
    if max(size, len(data)) > limit:
        raise InvalidInput(name, f"is larger than {limit} bytes")
    return data, name
