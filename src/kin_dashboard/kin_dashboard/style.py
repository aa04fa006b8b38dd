"""Colours and pieces of HTML, the same on every panel.

The colours are those of the markers; every state also has a sign and a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from kin_ros.markers import BLUE, GREEN, ORANGE, SERIES, VERMILION, rgb

__all__ = [
    "BLUE",
    "GOOD",
    "IDLE",
    "SERIES",
    "WARN",
    "WRONG",
    "bar",
    "chip",
    "chips",
    "chosen",
    "legend",
    "notice",
    "rgb",
    "table",
]

GOOD = GREEN
WARN = ORANGE
WRONG = VERMILION
IDLE = "#8A8F98"

_DOT = "\u2022"
_SIGNS = {GOOD: "\u2713", WARN: "!", WRONG: "\u2715", IDLE: "\u2013"}


def chip(text: str, colour: str, title: str = "") -> str:
    """A rounded label: sign, word, and a coloured edge."""
    return (
        f'<span role="listitem" title="{escape(title, quote=True)}" style="display:inline-flex;'
        f"align-items:center;gap:.35em;margin:0 .3em .3em 0;padding:.1em .55em .1em .4em;"
        f'border:1.5px solid {colour};border-radius:1em;white-space:nowrap">'
        f'<b aria-hidden="true" style="color:#fff;background:{colour};border-radius:50%;'
        f"width:1.25em;height:1.25em;line-height:1.25em;text-align:center;"
        f'font-size:.85em">{_SIGNS.get(colour, _DOT)}</b>'
        f"{escape(text)}</span>"
    )


def chips(items: Iterable[tuple[str, str, str]]) -> str:
    """A row of chips from (text, colour, title)."""
    inner = "".join(chip(*item) for item in items)
    return f'<div role="list" style="font-size:.8em;padding:.2em .5em">{inner}</div>'


def legend(items: Iterable[tuple[str, str, str]]) -> str:
    """What colours mean, from (text, colour, title); no signs, which are for states."""
    inner = "".join(
        f'<span title="{escape(title, quote=True)}" style="display:inline-flex;align-items:center;'
        f'gap:.35em;margin:0 .7em .3em 0;white-space:nowrap"><span aria-hidden="true" style="width:'
        f'.8em;height:.8em;border-radius:.15em;background:{colour}"></span>{escape(text)}</span>'
        for text, colour, title in items
    )
    return f'<div style="font-size:.8em;padding:.2em .5em">{inner}</div>'


def notice(text: str, colour: str = IDLE) -> str:
    """A sentence with a coloured edge; nothing for an empty text."""
    if not text:
        return ""
    return (
        f'<div role="status" style="border-left:4px solid {colour};padding:.3em .6em;'
        f'margin:.1em .5em;font-size:.82em;line-height:1.35;overflow-wrap:anywhere">'
        f"{escape(text)}</div>"
    )


def table(rows: Sequence[tuple[str, str]], header: str = "") -> str:
    """Two columns: a name, and a figure in digits of equal width."""
    body = "".join(
        f'<tr><td style="padding:.12em .5em .12em 0;opacity:.75">{escape(name)}</td>'
        f'<td style="text-align:right;font-variant-numeric:tabular-nums">{escape(value)}</td></tr>'
        for name, value in rows
    )
    title = (
        f'<div style="font-weight:600;margin-bottom:.15em">{escape(header)}</div>' if header else ""
    )
    return (
        f'<div style="padding:.1em .6em;font-size:.82em">{title}'
        f'<table style="width:100%;border-collapse:collapse">{body}</table></div>'
    )


def chosen(told: Mapping[str, str], *wanted: tuple[str, str]) -> list[tuple[str, str]]:
    """Rows of a table: those (key, name) of a node's diagnostics that it has told."""
    return [(name, told[key]) for key, name in wanted if key in told]


def bar(fraction: float, text: str, colour: str = BLUE) -> str:
    """A horizontal bar, 0 to 1, with its text beside it."""
    share = max(0.0, min(1.0, fraction)) * 100.0
    return (
        f'<div style="padding:.1em .6em;font-size:.82em"><div style="display:flex;gap:.6em;'
        f'align-items:center"><div style="flex:1;height:.6em;border-radius:.3em;background:#8885">'
        f'<div style="width:{share:.1f}%;height:100%;border-radius:.3em;background:{colour}">'
        f"</div></div>"
        f'<span style="font-variant-numeric:tabular-nums">{escape(text)}</span></div></div>'
    )
