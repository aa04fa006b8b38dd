"""What every benchmark shares: interleaved runs, medians, a table for people, JSON, charts.

Timings on a shared machine drift by tens of per cent within a minute. So variants that are to be
compared run in turn (a, b, a, b, ...), and what is reported is the median of the ratios of
neighbours.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.metadata
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kin_core.texts import lined_up

__all__ = ["Bench", "Result", "Sample", "machine", "peer_python", "plain_environment"]

_PACKAGES = ("numpy", "numba", "scipy", "ros-rclpy", "cupy-cuda13x", "pin")


@dataclass(frozen=True)
class Sample:
    """Times of one variant in the order in which they were measured.

    Attributes:
        times: One time per round [s], the same rounds for all variants of one call.
    """

    times: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median time [s]."""
        return statistics.median(self.times)

    @property
    def low(self) -> float:
        """First decile [s]."""
        return float(np.quantile(self.times, 0.1))

    @property
    def high(self) -> float:
        """Ninth decile [s]."""
        return float(np.quantile(self.times, 0.9))

    def ratio(self, other: Sample) -> float:
        """Return how many times faster this is than ``other``: the median of the paired ratios."""
        pairs = zip(self.times, other.times, strict=True)
        return statistics.median(theirs / ours for ours, theirs in pairs)


@dataclass(frozen=True)
class Result:
    """One figure of the JSON answer."""

    key: str
    value: float
    unit: str
    note: str


def machine() -> dict[str, Any]:
    """Return what the figures were measured on."""
    versions = {}
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
        "packages": versions,
    }


def _cpu() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


@dataclass
class Bench:
    """One run of one benchmark: collects figures, prints tables, draws charts.

    Attributes:
        name: Name of the benchmark.
        quick: Fewer repetitions, for a look; the figures are not to be quoted.
        peers: Whether to measure other people's programs too.
        folder: Where charts are written.
        out: Stream for people; JSON goes elsewhere.
    """

    name: str
    quick: bool = False
    peers: bool = False
    folder: Path = Path("bench-results")
    out: Any = field(default_factory=lambda: sys.stdout)
    results: list[Result] = field(default_factory=list)

    def interleave(
        self,
        variants: Mapping[str, Callable[[], Any]],
        repeats: int = 9,
        warmup: int = 1,
    ) -> dict[str, Sample]:
        """Time each variant once per round.

        Args:
            variants: Name and function; the function is the unit of work that is timed.
            repeats: Rounds that count.
            warmup: Rounds before them that do not.
        """
        repeats = max(3, repeats // 3) if self.quick else repeats
        times: dict[str, list[float]] = {name: [] for name in variants}
        collecting = gc.isenabled()
        gc.disable()
        try:
            for k in range(warmup + repeats):
                for name, run in variants.items():
                    start = time.perf_counter()
                    run()
                    took = time.perf_counter() - start
                    if k >= warmup:
                        times[name].append(took)
                gc.collect()
        finally:
            if collecting:
                gc.enable()
        return {name: Sample(tuple(seen)) for name, seen in times.items()}

    def result(self, key: str, value: float, unit: str = "", note: str = "") -> None:
        """Add one figure to the answer.

        Raises:
            ValueError: The key was used before, or the value is no finite number.
        """
        value = float(value)
        if not math.isfinite(value):
            raise ValueError(f"{key} must be a finite number, got {value}")
        if any(known.key == key for known in self.results):
            raise ValueError(f"{key} was reported twice")
        self.results.append(Result(key, value, unit, note))

    def say(self, text: str) -> None:
        """Tell the person who waits what is going on."""
        print(text, file=self.out, flush=True)

    def table(self, title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Print a table."""
        lines = lined_up(header, [[_cell(c) for c in row] for row in rows])
        self.say("\n".join(["", title, *lines]))

    @contextlib.contextmanager
    def chart(self, name: str, **subplots: Any) -> Iterator[Any]:
        """Give an axes (or an array of them) to draw on; writes PNG and SVG at the end."""
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(figsize=subplots.pop("figsize", (8.0, 5.0)), **subplots)
        try:
            yield axes
            self.folder.mkdir(parents=True, exist_ok=True)
            figure.tight_layout()
            for suffix in ("png", "svg"):
                figure.savefig(self.folder / f"{self.name}_{name}.{suffix}", dpi=120)
            self.say(f"chart: {self.folder / f'{self.name}_{name}.png'}")
        finally:
            plt.close(figure)

    def summary(self) -> None:
        """Print every figure of the answer."""
        rows = [(r.key, r.value, r.unit, r.note) for r in self.results]
        self.table(f"{self.name}: results", ("key", "value", "unit", "note"), rows)

    def json_line(self) -> str:
        """Return the answer as one line of JSON."""
        results = {r.key: r.value for r in self.results}
        answer = {"bench": self.name, "machine": machine(), "results": results}
        return json.dumps(answer, allow_nan=False)


def peer_python(bench: Bench, name: str, packages: Sequence[str]) -> Path:
    """The Python of .peers/NAME, which has other people's packages; made at the first use."""
    place = Path(__file__).resolve().parent.parent / ".peers" / name
    python = place / "bin" / "python"
    if not (place / ".ready").exists():
        bench.say(f"making .peers/{name} ({', '.join(packages)}) ...")
        venv.EnvBuilder(with_pip=True, clear=True).create(place)
        install = [str(python), "-m", "pip", "install", "--quiet", *packages]
        subprocess.run(install, check=True, env=plain_environment())
        (place / ".ready").touch()
    return python


def plain_environment() -> dict[str, str]:
    """Ours without what would bring our packages into theirs, and with one BLAS thread."""
    ours = ("PYTHONPATH", "LD_LIBRARY_PATH", "AMENT_PREFIX_PATH", "VIRTUAL_ENV")
    kept = {key: value for key, value in os.environ.items() if key not in ours}
    return kept | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)
