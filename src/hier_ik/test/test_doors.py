"""Inverse and forward kinematics of the running linkage for MoveIt's clients."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from hier_ik import Solver, tower
from hier_ik.doors import Doors, Running, coordinate_names
from kin_core.errors import KinError, Unreachable
from kin_core.task import Task
from kin_ros.moveit import FkRequest, IkRequest

sys.path.insert(0, str(Path(__file__).parent))
from mechanisms import stewart
from oracle import Oracle


def doors_of(linkage):
    live = Solver(linkage)

    def edition():
        return live, len(live.linkage.journal)

    return live, Doors(lambda: Running(*edition(), live.copy()), edition, lambda: 1e-9)


def ask(links, targets, seed=(), limits=()):
    return IkRequest(tuple(links), np.array(targets), dict(seed), dict(limits))


def by_joint(linkage, positions):
    """Positions by coordinate as coordinates by joint."""
    out = {n: np.zeros(j.dof) for n, j in linkage.joints.items()}
    for name, (joint, k) in coordinate_names(linkage).items():
        out[joint][k] = positions[name]
    return out


def test_answers_put_the_link_there_with_every_loop_closed():
    live, doors = doors_of(stewart()[0])
    linkage, link = live.linkage, "platform"
    rng = np.random.default_rng(0)
    before = live.q
    start = live.poses([link])[link]
    for _ in range(5):
        target = start.copy()
        target[:3, 3] += rng.uniform(-0.05, 0.05, 3)
        found = doors.ik(ask([link], [target]), Task())
        values = by_joint(linkage, found)
        oracle = Oracle(linkage)
        assert max(oracle.residuals(values, goals=False).values()) < 1e-8
        np.testing.assert_allclose(oracle.poses(values)[link], target, atol=1e-8)
        poses = doors.fk(FkRequest((link,), found), Task())
        np.testing.assert_allclose(poses[link], target, atol=1e-8)
    np.testing.assert_array_equal(live.q, before)


def test_a_pose_that_is_out_of_reach_is_said_to_be():
    _, doors = doors_of(tower(2))
    far = np.eye(4)
    far[0, 3] = 40.0
    with pytest.raises(Unreachable, match="away"):
        doors.ik(ask(["P2"], [far]), Task())
    with pytest.raises(KinError, match="root"):
        doors.ik(ask(["P0"], [far]), Task())


def test_goals_of_the_running_state_do_not_count_and_limits_of_a_request_do():
    live, doors = doors_of(tower(3))
    live.set_goal("drag", (5.0, 0.0, 1.0))  # not met, and not asked about
    target = live.poses(["P3"])["P3"]
    target[:3, 3] += (0.05, 0.0, -0.05)
    seed = {"C1.tilt": 0.02}
    free = doors.ik(ask(["P3"], [target], seed), Task())
    high = min(free["C1.tilt"], 0.0) - 0.01
    narrow = doors.ik(ask(["P3"], [target], seed, {"C1.tilt": (-1.0, high)}), Task())
    assert narrow["C1.tilt"] <= high + 1e-12 < free["C1.tilt"]
    with pytest.raises(Unreachable, match="leaves nothing"):
        doors.ik(ask(["P3"], [target], (), {"C1.tilt": (2.0, 3.0)}), Task())


def test_some_positions_close_the_loops_with_the_others():
    live, doors = doors_of(tower(1))
    poses = doors.fk(FkRequest(("P1",), {"C1.tilt": 0.1, "C1.expand": 0.7, "unknown": 3.0}), Task())
    np.testing.assert_allclose(
        poses["P1"][:3, 3], (0.7 * np.sin(0.1), 0.0, 0.7 * np.cos(0.1)), atol=1e-9
    )
    middle = doors.fk(FkRequest(("A1L.m",), {"C1.tilt": 0.1, "C1.expand": 0.7}), Task())["A1L.m"]
    still = live.poses(["A1L.m"])["A1L.m"]
    assert np.abs(middle - still).max() > 1e-3  # the leg has followed


def test_an_edit_is_noticed_and_else_nothing_is_built(monkeypatch):
    live, doors = doors_of(tower(2))
    target = live.poses(["P2"])["P2"]
    doors.ik(ask(["P2"], [target]), Task())
    assert doors.robot("world") is doors.robot("world")
    with monkeypatch.context() as patch:
        patch.setattr("hier_ik.solver.compile_linkage", lambda *a, **k: pytest.fail("built"))
        doors.ik(ask(["P2"], [target]), Task())
    live.edit([{"op": "add_link", "name": "mast"},
               {"op": "add_joint", "name": "mast", "type": "revolute", "parent": "P2",
                "child": "mast", "role": "tree"}])  # fmt: skip
    assert "mast" in doors.robot("world").links
    assert "mast" in doors.ik(ask(["P2"], [target]), Task())
