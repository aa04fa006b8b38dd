"""Deadlines of a tick."""

from __future__ import annotations

from dataclasses import dataclass

from kin_core import checks
from kin_core.errors import InvalidInput

__all__ = ["Timing"]


@dataclass(frozen=True)
class Timing:
    """Deadlines, all from the release of a tick [s].

    Attributes:
        grace: With a quorum present, processors wait so long for the rest.
        hard: Without a quorum, processors and voter wait so long.
        late: Whoever has not answered by then has missed the tick.
        probe: The voter waits so long after its vote for processors that were late before.
        stall: Late for so long, and at least ``late_ticks`` times in a row: out of the working set.
        late_ticks: See stall.
    """

    grace: float
    hard: float
    late: float
    probe: float
    stall: float
    late_ticks: int = 2

    def __post_init__(self) -> None:
        for name in ("grace", "hard", "late", "probe", "stall"):
            checks.within(name, getattr(self, name), 0.0, 60.0)
        checks.within("late_ticks", self.late_ticks, 1, 10_000)
        if self.grace > self.hard:
            raise InvalidInput("grace", f"must not be beyond hard ({self.hard:g} s)")

    @classmethod
    def realtime(cls, rate: float, stall: float = 0.02, patience: float = 0.0) -> Timing:
        """Deadlines of a loop that runs at ``rate`` [Hz].

        Args:
            rate: Ticks per second [Hz].
            stall: See the class.
            patience: Wait at least so long for a quorum, even if later ticks are skipped for it: on
                a busy machine a late torque is better than none [s].
        """
        period = 1.0 / checks.positive("rate", rate)
        hard = max(0.65 * period, patience)
        return cls(0.25 * period, hard, hard + 0.05 * period, 0.7 * period, stall)

    @classmethod
    def lockstep(cls) -> Timing:
        """Deadlines of a simulation whose time waits for the controller."""
        return cls(grace=0.02, hard=2.0, late=0.03, probe=0.0005, stall=0.0)

    @classmethod
    def patient(cls) -> Timing:
        """Deadlines that a busy machine meets too: what comes out depends on the inputs alone."""
        return cls(grace=0.5, hard=5.0, late=1.0, probe=0.5, stall=20.0)
