"""What can go wrong with a processor, and when: faults, and schedules of faults from a file.

The paper fails one element of the redundant data between a start and an end time, so permanent and
intermittent failures can both be had. The same is done here with more kinds of failure. A processor
carries its fault out itself, on its own data, just before it publishes them; ``sigkill`` and
``sigstop`` are done to it from outside.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

from ft_controller.errors import ScheduleError, raising
from ft_controller.messages import MAX_PROCESSORS
from kin_core import checks
from kin_core.errors import InvalidInput
from kin_core.yamls import load_yaml

__all__ = ["KINDS", "MAX_FAULTS", "SIGNALS", "Fault", "FaultKind", "FaultTable", "load_schedule"]


class FaultKind(IntEnum):
    """What a processor can do wrong by itself; the names in lower case are those of users."""

    NONE = 0
    WRONG_ELEMENT = 1
    NAN = 2
    STUCK = 3
    SLOW = 4
    SILENT = 5
    CRASH = 6
    TWO_FACED = 7
    COLLUDING = 8
    CORRUPTED_MEMORY = 9
    LYING_VOTE = 10
    WILD_WRITE = 11


KINDS = tuple(kind.name.lower() for kind in FaultKind)
SIGNALS = ("sigkill", "sigstop")

MAX_FAULTS = 10_000
_FIELDS = {"processor", "processors", "kind", "start", "end", "element", "magnitude", "seed"}


@dataclass(frozen=True)
class Fault:
    """One failure of one or more processors.

    Attributes:
        processors: Who fails.
        kind: One of ``KINDS`` (but none) or ``SIGNALS``.
        start: When it begins, from the start of the schedule [s].
        end: When it ends; infinite for a permanent failure [s].
        element: Index into M row by row, N, tau; -1: drawn from the seed.
        magnitude: Added to the element; 0 flips its lowest bit. Seconds for ``slow``, where 0
            stands for longer than the deadline.
        seed: Decides all that is not said above: which bit, which round of the tick, which peer.
    """

    processors: tuple[int, ...]
    kind: str
    start: float = 0.0
    end: float = math.inf
    element: int = -1
    magnitude: float = 0.0
    seed: int = 0

    @raising(ScheduleError)
    def __post_init__(self) -> None:
        checks.one_of("kind", self.kind, {*KINDS[1:], *SIGNALS})
        if not self.processors:
            raise ScheduleError("processors", "needs at least one processor")
        for k in self.processors:
            _whole("processors", k, 0, MAX_PROCESSORS - 1)
        if len(set(self.processors)) != len(self.processors):
            raise ScheduleError("processors", f"names one twice: {list(self.processors)}")
        if self.kind == "colluding" and len(self.processors) < 2:
            raise ScheduleError("processors", "colluding needs at least two processors")
        checks.within("start", self.start, 0.0, 1e9)
        if self.end != math.inf and not checks.number("end", self.end) > self.start:
            raise ScheduleError("end", f"must be after start ({self.start:g}), got {self.end:g}")
        _whole("element", self.element, -1, 2**31 - 1)
        largest = (0.0, 60.0) if self.kind == "slow" else (-math.inf, math.inf)
        checks.within("magnitude", self.magnitude, *largest)
        _whole("seed", self.seed, 0, 2**32 - 1)

    def check(self, p: int, n: int) -> None:
        """Refuse a processor or an element that the replica group does not have."""
        worst = max(self.processors)
        if worst >= p:
            raise ScheduleError(
                "processors", f"there are {p} processors, 0 to {p - 1}, got {worst}"
            )
        if self.element >= n * n + 2 * n:
            raise ScheduleError(
                "element", f"M, N and tau have {n * n + 2 * n} elements, got {self.element}"
            )


class FaultTable:
    """Which fault each processor has now.

    Several faults may be planned for a processor; while they overlap, the one that began last
    rules.
    """

    def __init__(self, p: int, n: int) -> None:
        self._p, self._n = p, n
        self._faults: list[tuple[float, Fault]] = []

    def __len__(self) -> int:
        return len(self._faults)

    def add(self, faults: Sequence[Fault], now: float) -> None:
        """Plan faults; their times count from ``now`` [s]. All of them are checked first."""
        for fault in faults:
            fault.check(self._p, self._n)
        if len(self._faults) + len(faults) > MAX_FAULTS:
            raise ScheduleError("faults", f"more than {MAX_FAULTS} faults are planned")
        self._faults += [(now, fault) for fault in faults]

    def clear(self) -> None:
        """End all faults and forget those to come."""
        self._faults.clear()

    def active(self, now: float) -> dict[int, tuple[float, Fault]]:
        """The ruling fault of each faulty processor with its time of onset; drops what is over."""
        self._faults = [(t, f) for t, f in self._faults if t + f.end > now]
        ruling: dict[int, tuple[float, Fault]] = {}
        for base, fault in self._faults:
            onset = base + fault.start
            if onset <= now:
                for k in fault.processors:
                    if k not in ruling or onset >= ruling[k][0]:
                        ruling[k] = (onset, fault)
        return ruling


def load_schedule(source: str | Path) -> list[Fault]:
    """Read a schedule: a YAML list of faults, from text or from a file.

    Each entry gives ``processor`` (or ``processors``), ``start`` and, unless it is permanent,
    ``end`` [s]; ``kind`` is wrong_element, as in the paper, unless it is given::

        - {processor: 2, start: 0.5, end: 1.0}
        - {processors: [0, 3], kind: silent, start: 1.5}

    Raises:
        ScheduleError: Names the entry and the field that is wrong.
    """
    with raising(ScheduleError):
        data = load_yaml(source, limit_bytes=1_000_000)
    if isinstance(data, Mapping):
        if set(data) != {"faults"}:
            raise ScheduleError(
                "schedule", "must be a list of faults, or a mapping with the key faults"
            )
        data = data["faults"]
    if not isinstance(data, list):
        raise ScheduleError("schedule", f"must be a list of faults, got {type(data).__name__}")
    if len(data) > MAX_FAULTS:
        raise ScheduleError("schedule", f"has {len(data)} faults, more than {MAX_FAULTS}")
    faults = []
    for i, entry in enumerate(data):
        where = f"faults[{i}]"
        if not isinstance(entry, Mapping):
            raise ScheduleError(where, f"must be a mapping, got {entry!r}")
        with raising(ScheduleError, f"{where}."):
            faults.append(_fault(dict(entry)))
    return faults


def _fault(entry: dict[Any, Any]) -> Fault:
    """One entry of a schedule; :class:`Fault` checks the values."""
    for key in sorted(map(str, set(entry) - _FIELDS)):
        checks.one_of("field", key, _FIELDS)
    if ("processor" in entry) == ("processors" in entry):
        raise InvalidInput("processor", "give either processor or processors")
    processors = [entry.pop("processor")] if "processor" in entry else entry.pop("processors")
    if not isinstance(processors, list):
        raise InvalidInput("processors", f"must be a list, got {processors!r}")
    if "start" not in entry:
        raise InvalidInput("start", "is missing")
    if entry.get("end") is None:
        entry["end"] = math.inf
    else:
        checks.number("end", entry["end"])
    return Fault(**{"kind": "wrong_element", **entry, "processors": tuple(processors)})


def _whole(name: str, value: Any, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(name, f"must be a whole number, got {value!r}")
    return int(checks.within(name, value, low, high))
