"""Table 1 of the paper as operation counts on the critical path.

The times of a 16 MHz 80386 cannot be had again, but what its processors had to do can be counted.
The equations are carried out with numbers that count (:class:`Tally`), once for each controller and
number of failed processors; a controller takes as long as its busiest processor.

The paper leaves open what an addition, a sine or a comparison cost, and which processors failed.
The costs of a sine, of a comparison in shared memory and of the torque code (relative to an
addition; a multiplication is set to 1.5) are fitted to the seven published ratios, and of all
single and adjacent pairs of failed processors those that fit best are taken. Three numbers and a
choice for seven figures: that is "consistent with", not a proof.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

__all__ = ["PUBLISHED", "Fit", "Tally", "count", "fit"]

N = 4
MULTIPLICATION = 1.5

PUBLISHED: dict[tuple[str, int], float] = {
    ("parallel", 0): 0.395,
    ("high_tolerance", 0): 1.337,
    ("high_tolerance", 1): 1.467,
    ("high_tolerance", 2): 1.536,
    ("lower_tolerance", 0): 0.670,
    ("lower_tolerance", 1): 0.832,
    ("lower_tolerance", 2): 1.170,
}
"""Relative execution times on the 16 MHz 80386; serial is 1."""


@dataclass
class Tally:
    """Operations of one processor: additions, multiplications, sines, comparisons; torque code."""

    add: int = 0
    mul: int = 0
    trig: int = 0
    compare: int = 0
    torque_add: int = 0
    torque_mul: int = 0
    _pairs: set[tuple[str, int, int]] = field(default_factory=set)

    def vector(self) -> NDArray[np.float64]:
        """(plain work, sines, comparisons, torque code), in additions where nothing is fitted."""
        return np.array(
            [
                self.add + MULTIPLICATION * self.mul,
                self.trig,
                self.compare,
                self.torque_add + MULTIPLICATION * self.torque_mul,
            ]
        )

    def angles(self) -> None:
        """Absolute angles and rates, and the squares of the rates."""
        self.add += 2 * (N - 1)
        self.mul += N

    def _pair(self, name: str, a: int, b: int) -> None:
        """h_ab times the cosine or sine of phi_a - phi_b; once for each pair."""
        key = (name, min(a, b), max(a, b))
        if a != b and key not in self._pairs:
            self._pairs.add(key)
            self.add += 1
            self.trig += 1
            self.mul += 1

    def inertia_row(self, i: int) -> None:
        """Row i of M from its diagonal on: each element is A_ij and two running sums."""
        for j in range(i, N):
            self._pair("cos", i, j)
            self.add += 2

    def diagonal(self) -> None:
        """The diagonal of M alone, from the tip inwards: a chain that needs N - 1 neighbours."""
        for i in range(N - 1):
            self._pair("cos", i, i + 1)
            self.add += 2
            self.mul += 1

    def bias(self, i: int) -> None:
        """N_i with h_ij sin(phi_i - phi_j) rate_j^2, and its share in the N_j of outer links."""
        for j in range(i + 1, N):
            self._pair("sin", i, j)
            self.mul += 2
            self.add += 2

    def torque(self) -> None:
        """PD compensator of one joint, its row of M times the accelerations, plus N_i."""
        self.torque_add += 4 + N
        self.torque_mul += 2 + N

    def vote(self, elements: int) -> None:
        """Compare with the three others."""
        self.compare += elements * (N - 1)


def count(controller: str, failed: tuple[int, ...] = ()) -> list[Tally]:
    """Operations of every working processor; the failed ones' rows go to the left neighbour."""
    if controller == "serial":
        one = Tally()
        one.angles()
        for i in range(N):
            one.inertia_row(i)
            one.bias(i)
            one.torque()
        return [one]
    out = []
    for k in range(N):
        if k in failed:
            continue
        mine = [k]
        while (mine[-1] + 1) % N in failed and len(mine) <= len(failed):
            mine.append((mine[-1] + 1) % N)
        one = Tally()
        one.angles()
        if controller == "high_tolerance":
            for i in range(N):
                one.inertia_row(i)
                one.bias(i)
            one.vote(N * N)
        elif controller == "lower_tolerance":
            one.diagonal()
            one.vote(N)
        for i in mine:
            if controller != "high_tolerance":
                one.inertia_row(i)
                one.bias(i)
            one.torque()
        out.append(one)
    return out


@dataclass(frozen=True)
class Fit:
    """The table next to the counts.

    Attributes:
        weights: Fitted costs of a sine, a comparison and the torque code, in additions.
        failed: The failed processors that fit best, by number of failures.
        rows: ((controller, failures), published, from counts).
    """

    weights: NDArray[np.float64]
    failed: dict[int, tuple[int, ...]]
    rows: list[tuple[tuple[str, int], float, float]]

    @property
    def max_error(self) -> float:
        """Largest difference from a published ratio."""
        return max(abs(there - here) for _, there, here in self.rows)

    def describe(self) -> str:
        """The weights for people."""
        sine, compare, torque = self.weights
        return (
            f"(add 1, mul 1.5, sine {sine:.3g}, compare {compare:.3g}, torque code x {torque:.3g}; "
            f"failed {list(self.failed[1])} and {list(self.failed[2])})"
        )


def _ratios(
    weights: NDArray[np.float64], failed: dict[int, tuple[int, ...]]
) -> dict[tuple[str, int], float]:
    costs = np.concatenate([[1.0], weights])
    serial = float(count("serial")[0].vector() @ costs)
    return {
        (name, k): max(float(t.vector() @ costs) for t in count(name, failed[k])) / serial
        for name, k in PUBLISHED
    }


def fit() -> Fit:
    """Fit the costs to the published ratios."""
    best: tuple[float, NDArray[np.float64], dict[int, tuple[int, ...]]] | None = None
    for one in range(N):
        for first in range(N):
            failed = {0: (), 1: (one,), 2: (first, (first + 1) % N)}

            def miss(
                logs: NDArray[np.float64], failed: dict[int, tuple[int, ...]] = failed
            ) -> list[float]:
                ratios = _ratios(np.exp(logs), failed)
                return [ratios[key] - there for key, there in PUBLISHED.items()]

            found = least_squares(miss, np.log([3.0, 3.0, 1.0]), bounds=(-3.0, 5.0))
            if best is None or found.cost < best[0]:
                best = (float(found.cost), np.exp(found.x), failed)
    if best is None:
        raise RuntimeError("nothing was fitted")
    _, weights, failed = best
    ratios = _ratios(weights, failed)
    return Fit(weights, failed, [(key, there, ratios[key]) for key, there in PUBLISHED.items()])
