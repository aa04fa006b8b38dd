"""The parameters of the stack monitor."""

from __future__ import annotations

from dataclasses import dataclass

from kin_core.errors import InvalidInput
from kin_ros.parameters import ParameterSet, parameter

__all__ = ["MonitorParameters"]


@dataclass(frozen=True, kw_only=True)
class MonitorParameters(ParameterSet):
    """Parameters of the stack monitor."""

    worker_threads: int = parameter(
        16,
        "readiness requests that may wait at the same time",
        minimum=1,
        maximum=64,
        read_only=True,
    )
    expected: tuple[str, ...] = parameter(
        (),
        "nodes that must be there, absolute or relative to the namespace; empty, beside the "
        "monitor itself: every one that has a lifecycle",
        read_only=True,
    )
    period: float = parameter(
        0.25, "time between two looks at the graph [s]", minimum=0.02, maximum=10.0, read_only=True
    )
    silence: float = parameter(
        1.5, "longest time without a sign of life [s]", minimum=0.1, maximum=3600.0, read_only=True
    )
    state_file: str = parameter(
        "",
        "file that says in one line whether the stack is ready, written once a second or more, for "
        "health checks; empty: no file",
        read_only=True,
    )

    def check(self) -> None:
        """The silence must be longer than the time between two questions."""
        if self.silence <= self.period:
            raise InvalidInput("silence", f"must be longer than the period of {self.period} s")
