"""Exact priorities: what a level asks for cannot disturb those above it, to first order."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from hier_ik import Linkage, Solver, frame
from hier_ik.priorities import solve_priorities
from hier_ik.tables import PRIORITIES
from kin_core.rotations import exp_so3

sys.path.insert(0, str(Path(__file__).parent))
from random_linkages import random_frame


def three_levels(rng):
    """A long arm with a small loop in it, and two goals of different levels, all nearly met."""
    linkage = Linkage("levels")
    linkage.add_link("l0")
    for i in range(9):
        linkage.add_link(f"l{i + 1}")
        linkage.add_joint(
            f"j{i}", "revolute", f"l{i}", f"l{i + 1}", origin=random_frame(rng), closure=False,
            value=rng.uniform(-0.3, 0.3),
        )  # fmt: skip
    poses = linkage.link_poses()
    linkage.add_joint(
        "loop", "point_plane", "l1", "l5", origin=np.linalg.inv(poses["l1"]) @ poses["l5"],
        closure=True,
    )  # fmt: skip
    near = frame(rng.normal(scale=1e-3, size=3), rotation=exp_so3(rng.normal(scale=1e-3, size=3)))
    linkage.add_goal("first", "l9", "position", target=poses["l9"], priority=3)
    linkage.add_goal("second", "l9", "pose", target=poses["l9"] @ near, priority=4)
    for name in linkage.values:
        linkage.values[name] = linkage.values[name] + rng.normal(scale=1e-3)
    return linkage


def test_lower_levels_move_in_the_null_space_of_higher_ones():
    for seed in range(20):
        solver = Solver(three_levels(np.random.default_rng(seed)))
        t = solver.tables
        c = t.components[0]
        assert c["kind"] == PRIORITIES
        q = t.freedoms["q"].copy()
        solve_priorities(
            t.bodies, t.freedoms, t.closures, t.chain, t.parts, t.index, t.work, c
        )  # fmt: skip
        n = int(c["columns"])
        dq = t.work[c["dq"] : c["dq"] + n]
        parts = t.parts[c["block_begin"] : c["level_end"]]
        assert len(parts) >= 3
        stack = np.zeros((0, n))
        for part in parts:
            width = int(part["column_end"] - part["column_begin"])
            J = np.zeros((int(part["rows"]), n))
            begin, size = int(part["matrix"]), int(part["rows"]) * width
            columns = slice(int(part["column_begin"]), int(part["column_end"]))
            J[:, columns] = t.work[begin : begin + size].reshape(-1, width)
            e = t.work[c["e"] + part["row"] : c["e"] + part["row"] + part["rows"]]
            # Of what higher levels leave free, the level takes all it can: its residual in the
            # linear model is perpendicular to what it could still move.
            null = np.eye(n)
            if len(stack):
                null = np.linalg.svd(stack)[2][np.linalg.matrix_rank(stack, 1e-9) :]
            reach = J @ null.T
            rest = e + J @ dq
            share = np.linalg.norm(reach.T @ rest) / max(np.linalg.norm(reach.T @ e), 1e-12)
            assert share < 2e-3, (seed, share)
            stack = np.vstack([stack, J])
        assert np.abs(t.freedoms["q"] - q).max() <= 0.3 + 1e-12
