"""One damped step of a component with one level, against its plain statement in numpy."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from hier_ik import Linkage, Solver
from hier_ik.single import solve_single
from hier_ik.steps import FLOOR
from hier_ik.tables import SINGLE

sys.path.insert(0, str(Path(__file__).parent))
from random_linkages import random_frame


def arm(rng, joints, kind, limits):
    linkage = Linkage("arm")
    linkage.add_link("l0")
    for i in range(joints):
        linkage.add_link(f"l{i + 1}")
        linkage.add_joint(
            f"j{i}", "revolute", f"l{i}", f"l{i + 1}", origin=random_frame(rng), closure=False,
            value=rng.uniform(-0.35, 0.35),
        )  # fmt: skip
    linkage.add_goal("g", f"l{joints}", kind, target=linkage.link_poses()[f"l{joints}"])
    for name in linkage.values:
        linkage.values[name] = linkage.values[name] + rng.normal(scale=0.02)
        if limits:
            q = linkage.values[name]
            linkage.set_limits(name, q - 0.01, q + 0.01)
    return linkage


@pytest.mark.parametrize("limits", [False, True])
@pytest.mark.parametrize(
    ("joints", "kind"), [(4, "pose"), (6, "pose"), (8, "pose"), (5, "position")]
)
def test_a_step_is_damped_least_squares_within_the_limits(joints, kind, limits):
    """dq = -(J'J + mu)^-1 J'e over what is not held; a coordinate that would leave is put there."""
    held_some = compared = 0
    for seed in range(12):
        linkage = arm(np.random.default_rng(seed), joints, kind, limits)
        t = Solver(linkage).tables
        c = t.components[0]
        assert c["kind"] == SINGLE
        f = t.freedoms
        columns = t.index[c["freedom_begin"] : c["freedom_end"]]
        q, damping = f["q"][columns].copy(), float(c["damping"])
        low, high = f["low"][columns], f["high"][columns]
        cost = solve_single(t.bodies, f, t.closures, t.chain, t.index, t.work, c)
        m, n = int(c["rows"]), int(c["columns"])
        J = t.work[c["matrix"] : c["matrix"] + m * n].reshape(m, n)
        e = t.work[c["e"] : c["e"] + m].copy()
        assert cost == pytest.approx(e @ e)
        if c["damping"] > damping:
            continue  # the first step was refused, and another was taken
        dq, free = np.zeros(n), np.ones(n, bool)
        while free.any():
            Jf = J[:, free]
            diagonal = np.sum(Jf * Jf, axis=0 if n <= m else 1)
            mu = (damping * min(cost, 1.0) + FLOOR) * diagonal.max()
            rhs = -(e + J[:, ~free] @ dq[~free])
            damped = np.vstack([Jf, np.sqrt(mu) * np.eye(free.sum())])
            dq[free] = np.linalg.lstsq(damped, np.append(rhs, np.zeros(free.sum())))[0]
            dq[free] *= min(1.0, 0.3 / np.abs(dq[free]).max(initial=1e-300))
            out = free & ((q + dq > high) | (q + dq < low))
            if not out.any():
                break
            dq[out] = np.clip(q + dq, low, high)[out] - q[out]
            free &= ~out
            held_some += 1
        np.testing.assert_allclose(f["q"][columns], q + dq, atol=1e-7)
        compared += 1
    assert bool(held_some) == limits
    assert compared >= 6
