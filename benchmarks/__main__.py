"""The command behind ``./kinstack bench``."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path

_HERE = Path(__file__).parent


def names() -> list[str]:
    """Return the benchmarks that there are."""
    return sorted(path.stem.removeprefix("bench_") for path in _HERE.glob("bench_*.py"))


def main(arguments: list[str] | None = None) -> int:
    """Run one benchmark or all; return the exit code."""
    parser = argparse.ArgumentParser(prog="./kinstack bench", description=__doc__)
    parser.add_argument("name", help=f"all, {', '.join(names())}")
    parser.add_argument("--json", metavar="FILE", help="write one JSON object; - for the last line")
    parser.add_argument("--peers", action="store_true", help="measure other programs too")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, rough figures")
    parser.add_argument("--out", type=Path, default=Path("bench-results"), help="folder of charts")
    chosen = parser.parse_args(arguments)
    if chosen.name != "all" and chosen.name not in names():
        known = ", ".join(names())
        print(
            f"kinstack: there is no benchmark {chosen.name!r}; known: all, {known}", file=sys.stderr
        )
        return 2
    from benchmarks.harness import Bench  # not for --help: nothing may be installed yet

    wanted = names() if chosen.name == "all" else [chosen.name]
    lines = []
    for name in wanted:
        # With --json - the last line of standard output is the answer; people read the rest.
        bench = Bench(name, quick=chosen.quick, peers=chosen.peers, folder=chosen.out)
        bench.say(f"== {name} ==")
        start = time.monotonic()
        importlib.import_module(f"benchmarks.bench_{name}").main(bench)
        bench.summary()
        bench.say(f"{name}: {time.monotonic() - start:.0f} s")
        lines.append(bench.json_line())
    text = "\n".join(lines)
    if chosen.json == "-":
        print(text)
    elif chosen.json:
        Path(chosen.json).write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
