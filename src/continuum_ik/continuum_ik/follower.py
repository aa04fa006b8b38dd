"""A solver that follows a stream of targets: no leaps, and the rates of the legs."""

from __future__ import annotations

import math

import numpy as np

from continuum_ik.rod import Array
from continuum_ik.solver import ContinuumSolver, IKResult

__all__ = ["Follower"]


class Follower:
    """Follows targets with one solver. Not for several threads at once.

    Attributes:
        solver: The solver; its last solution is that of the last target that was accepted.
        rates: Rates of the lengths at that target, (6) [m/s].
    """

    def __init__(self, solver: ContinuumSolver) -> None:
        self.solver = solver
        self.rates = np.zeros(6)
        self._accepted = -math.inf
        self._previous: tuple[float, Array] | None = None

    def follow(
        self, pose: Array, stamp: float, now: float, *, rate_limit: float, longest: float
    ) -> tuple[IKResult, str]:
        """Solve for the next target.

        Args:
            pose: The target, 12 or 7 numbers.
            stamp: The time that it is meant for [s].
            now: When it is taken, by a clock that does not jump [s].
            rate_limit: Largest rate of a leg since the last target [m/s]; 0 for any.
            longest: Largest time between two targets that belong together [s].

        Returns:
            The answer, and why it was not accepted, empty if it was. A target that was not accepted
            leaves no trace.
        """
        before = self.solver.copy() if rate_limit > 0.0 and self.solver.solved else None
        result = self.solver.result(self.solver.track(pose))
        reason = result.reason
        if result.success and before is not None:
            # By when targets are taken, not by their stamps; a long wait makes no leap slow.
            passed = min(now - self._accepted, longest)
            reason = _too_fast(before.lengths, result.lengths, passed, rate_limit)
            if reason:
                self.solver = before
        if not reason:
            self._accepted = now
            self.rates = self._rates(stamp, result.lengths, longest)
        return result, reason

    def hold(self) -> None:
        """Take it that the legs are at rest: the next target has no rate."""
        self._previous = None

    def _rates(self, stamp: float, lengths: Array, longest: float) -> Array:
        """Rates of the lengths between this target's stamp and the one before [m/s]."""
        before, self._previous = self._previous, (stamp, lengths)
        if before is None or not 0.0 < stamp - before[0] <= longest:
            return np.zeros(6)
        return (lengths - before[1]) / (stamp - before[0])


def _too_fast(before: Array, after: Array, passed: float, limit: float) -> str:
    """Name the leg that would have to move faster than ``limit`` [m/s]; empty if none would."""
    moved = np.abs(after - before)
    leg = int(moved.argmax())
    if moved[leg] <= limit * passed:
        return ""
    return (
        f"leg {leg} would move {1e3 * moved[leg]:.1f} mm in {1e3 * passed:.0f} ms, "
        f"faster than leg_rate_limit, {limit:g} m/s"
    )
