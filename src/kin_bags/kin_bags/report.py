"""What a person reads after a regression: a text, and a plot of expected against got."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kin_bags.compare import Verdict

__all__ = ["plot", "text"]

_SHOWN = 10


def text(verdict: Verdict, problems: Sequence[str] = ()) -> str:
    """The verdict in words: what was compared, the first and the worst difference."""
    lines = []
    bad = dict.fromkeys(verdict.compared, 0)
    for difference in verdict.differences:
        bad[difference.topic] = bad.get(difference.topic, 0) + 1
    for topic, count in verdict.compared.items():
        state = "as expected" if not bad[topic] else f"{bad[topic]} differences"
        lines.append(f"  {topic}: {count} messages, {state}")
    lines += [f"  {problem}" for problem in problems]
    if verdict.first is not None and verdict.worst is not None:
        lines += ["first difference:", f"  {verdict.first}", "worst difference:"]
        lines.append(f"  {verdict.worst}")
        rest = [d for d in verdict.differences if d not in (verdict.first, verdict.worst)]
        if rest:
            lines.append("others:")
            lines += [f"  {difference}" for difference in rest[:_SHOWN]]
            if len(rest) > _SHOWN:
                lines.append(f"  ... and {len(rest) - _SHOWN} more")
    good = verdict.good and not problems
    if not verdict.compared:
        lines.append("  nothing was compared")
    lines.append("verdict: " + ("as expected" if good else "CHANGED"))
    return "\n".join(lines)


def _field(path: str) -> str:
    """The name of a field from the path of a difference."""
    out, depth = "", 0
    for character in path.split(" (")[0]:
        depth += {"[": 1, "]": -1}.get(character, 0)
        if depth == 0 and character != "]":
            out += character
    return out


def plot(verdict: Verdict, file: Path) -> bool:
    """Draw expected against got of the field that differs most, or else that varies most.

    Returns:
        False if there is no number to draw.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    key = None
    if verdict.worst is not None:
        key = (verdict.worst.topic, _field(verdict.worst.path))
    if key not in verdict.series:
        spreads = {k: float(np.ptp(old)) for k, (old, _) in verdict.series.items() if old}
        if not spreads:
            return False
        key = max(spreads, key=lambda k: spreads[k] if np.isfinite(spreads[k]) else -1.0)
    old, new = (np.asarray(values) for values in verdict.series[key])
    figure, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(8, 6), layout="constrained")
    top.plot(old, label="expected", linewidth=2, alpha=0.6)
    top.plot(new, label="got", linewidth=1, linestyle="--")
    top.set_title(f"{key[0]}  {key[1]}")
    top.set_ylabel("value")
    top.legend()
    bottom.plot(new - old, color="tab:red", linewidth=1)
    bottom.set_ylabel("got - expected")
    bottom.set_xlabel("value number, over all messages")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120)
    plt.close(figure)
    return True
