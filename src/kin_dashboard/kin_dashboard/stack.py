"""The stack's state and diagnostics, which stay visible whatever panel is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from diagnostic_msgs.msg import DiagnosticStatus
from kin_interfaces.msg import NodeState

from kin_dashboard.style import GOOD, IDLE, WARN, WRONG, chips

__all__ = ["diagnostics_html", "state_html", "summary_html"]

_HEALTH = {
    NodeState.HEALTHY: (GOOD, "ready"),
    NodeState.STARTING: (WARN, "starting"),
    NodeState.UNHEALTHY: (WRONG, "unhealthy"),
    NodeState.SILENT: (WRONG, "silent"),
    NodeState.MISSING: (WRONG, "missing"),
}
_LEVELS = {
    DiagnosticStatus.OK: (GOOD, "ok"),
    DiagnosticStatus.WARN: (WARN, "warning"),
    DiagnosticStatus.ERROR: (WRONG, "error"),
    DiagnosticStatus.STALE: (IDLE, "stale"),
}
#: Nodes that are tools of people, not parts of the stack.
_OWN = ("dashboard",)


def state_html(message: str, nodes: Sequence[NodeState], absent: Sequence[str]) -> str:
    """One sentence and a chip per node.

    Args:
        message: The stack monitor's sentence; empty if it is not heard.
        nodes: The nodes as the monitor sees them.
        absent: Systems that are not in the graph.
    """
    seen = {node.name.split("/")[-1] for node in nodes}
    items = []
    for node in nodes:
        name = node.name.split("/")[-1]
        if not node.expected and name in _OWN:
            continue
        colour, word = _HEALTH.get(node.health, (IDLE, "unknown"))
        text = name if colour == GOOD else f"{name}: {word}"
        items.append((text, colour, f"{word}. {node.message}"))
    items += [(f"{name}: off", IDLE, "not started") for name in absent if name not in seen]
    sentence = message or "The stack monitor is not heard."
    return (
        f'<div role="status" aria-live="polite" style="padding:.3em .6em .1em;font-weight:600;'
        f'font-size:.9em">{escape(sentence)}</div>{chips(items)}'
    )


def summary_html(diagnoses: Mapping[str, DiagnosticStatus]) -> str:
    """One line: how many nodes are well, and what the others say."""
    if not diagnoses:
        return ""
    well = sum(status.level == DiagnosticStatus.OK for status in diagnoses.values())
    ill = [
        f'<span style="color:{_text(status.level)}"><b>{escape(name)}</b>: '
        f"{escape(status.message[:120])}</span>"
        for name, status in sorted(diagnoses.items())
        if status.level != DiagnosticStatus.OK
    ]
    said = "; ".join(ill) or "nothing to report"
    return (
        '<div style="padding:0 .7em .2em;font-size:.78em;line-height:1.3;overflow-wrap:anywhere">'
        f"Diagnostics: {well} of {len(diagnoses)} ok. {said}</div>"
    )


def _text(level: bytes) -> str:
    """Colour of a level, dark enough to be read as text."""
    return "#A34700" if level != DiagnosticStatus.STALE else "#5A5F68"


def diagnostics_html(diagnoses: Mapping[str, DiagnosticStatus]) -> str:
    """One line per node: level, sentence, and its most telling figures."""
    if not diagnoses:
        return '<div style="padding:.1em .6em;font-size:.82em">No diagnostics heard yet.</div>'
    rows = []
    for name in sorted(diagnoses):
        status = diagnoses[name]
        colour, word = _LEVELS.get(status.level, (IDLE, "unknown"))
        figures = ", ".join(f"{item.key} {item.value}" for item in status.values)
        rows.append(
            f'<tr style="border-bottom:1px solid #8883"><td style="padding:.2em .5em .2em 0;'
            f'vertical-align:top;white-space:nowrap"><b style="border-bottom:3px solid {colour}">'
            f"{escape(word)}</b><br>{escape(name)}</td>"
            f'<td style="padding:.2em 0;overflow-wrap:anywhere">{escape(status.message)}'
            f'<div style="opacity:.7;font-size:.92em">{escape(figures[:220])}</div></td></tr>'
        )
    return (
        '<div style="padding:0 .6em;font-size:.76em"><table style="width:100%;'
        f'border-collapse:collapse">{"".join(rows)}</table></div>'
    )
