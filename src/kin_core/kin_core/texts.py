"""Texts of others, cut to a length that a log line, a status or a screen can take."""

from __future__ import annotations

__all__ = ["LONGEST_SENTENCE", "shortened"]

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
