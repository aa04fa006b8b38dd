"""Goals of small and large mechanisms against scipy: no reachable one is called unreachable.

Half of the goals are reachable by construction; of the others, those that the solver calls
unreachable are given to scipy's least_squares, from the same start and from random ones.

    ./kinstack shell python src/hier_ik/test/reach_campaign.py --goals 1000
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from hier_ik import Solver
from kin_core.errors import StatusCode

sys.path.insert(0, str(Path(__file__).parent))
from oracle import Oracle, length, scaled
from small_mechanisms import mechanism, random_case


def random_goal(rng):
    """A mechanism whose goal is moved by some share of its size; it may be out of reach."""
    l = mechanism(rng)
    goal = l.goals["g"]
    target = goal.target.copy()
    target[:3, 3] += rng.normal(scale=float(rng.choice([0.1, 0.4, 1.0])) * length(l), size=3)
    if l.name in ("arm", "four bars", "five bars", "3rrr"):
        target[2, 3] = goal.target[2, 3]
    l.set_goal("g", target)
    s = float(10.0 ** rng.uniform(-2, 2))
    return scaled(l, s), s


def campaign(goals: int, seed: int = 7, first: int = 0) -> tuple[Counter[str], list[str]]:
    """Solve them; counts by code, and a line for each answer that is false."""
    count: Counter[str] = Counter()
    false = []
    for k in range(first, first + goals):
        rng = np.random.default_rng([seed, k])
        known = k % 2 == 0
        l, s = random_case(rng) if known else random_goal(rng)
        result = Solver(l).solve(tolerance=1e-9 * s, max_iterations=300)
        oracle = Oracle(l)
        sizes = oracle.residuals(result.values, goals=result.success)
        kind = "reachable" if known else "random"
        count[f"{kind}: {result.code.name}"] += 1
        where = f"{k} {l.name} {s:.3g} m: {result.message}"
        if max(sizes.values(), default=0.0) > 1e-8 * s:
            false.append(f"open or missed by {max(sizes.values()):.2g}: {where}")
        if result.code == StatusCode.UNREACHABLE and (
            known or oracle.reachable(rng, oracle.vector(l.values), starts=5)
        ):
            false.append(f"reachable: {where}")
    return count, false


def main() -> int:
    """Run it and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--goals", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--first", type=int, default=0, help="number of the first goal")
    options = parser.parse_args()
    count, false = campaign(options.goals, options.seed, options.first)
    for name, n in sorted(count.items()):
        print(f"{n:6d}  {name}")
    print(f"{len(false):6d}  false answers")
    for line in false:
        print(line)
    return 1 if false else 0


if __name__ == "__main__":
    sys.exit(main())
