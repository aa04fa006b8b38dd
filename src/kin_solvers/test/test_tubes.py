"""Steps that are proven: what they rest on, compared with the functions themselves."""

import math

import numpy as np
from reference_ik import ARMS

from benchmarks.baselines.cuik_paths import cases
from kin_core.rotations import exp_so3, log_so3
from kin_solvers import solve_path, straight_line
from kin_solvers.equations import evaluate
from kin_solvers.follower import Follower
from kin_solvers.system import System
from kin_solvers.tubes import CUBIC, _close

PUMA = ARMS[0]


def ways(count, seed):
    return [
        Follower.of(case.arm(), case.poses)
        for _, case in zip(range(count), cases(seed, 6), strict=False)
    ]


def at(way, part, s, x):
    """Residuals and Jacobian at a place."""
    tables = way.tables._replace(C=way.tables.C.copy())
    _close(way.line, part, s, tables.C[-1])
    F, J = np.empty(6), np.empty((6, 6))
    evaluate(tables, x, F, J)
    return F, J


def test_the_loop_is_closed_at_each_pose_as_the_solver_closes_it():
    for way in ways(12, 1):
        for k, pose in enumerate(way.poses):
            system = System.of(way.arm.with_target(pose))
            for part, s in ((k, 0.0), (k - 1, 1.0)):
                if 0 <= part < len(way.poses) - 1:
                    C = np.zeros(16)
                    _close(way.line, part, s, C)
                    C[3:12:4] *= system.length / System.of(way.arm).length
                    np.testing.assert_allclose(C[:12], system.C[-1, :12], atol=1e-13)


def test_between_two_poses_the_tip_is_on_a_line_and_turns_about_one_axis():
    for way in ways(6, 2):
        a, b = way.poses[:2]
        turn = log_so3(np.ascontiguousarray(a[:3, :3].T @ b[:3, :3]))
        for s in (0.0, 0.3, 0.77, 1.0):
            pose = np.eye(4)
            pose[:3, 3] = (1.0 - s) * a[:3, 3] + s * b[:3, 3]
            pose[:3, :3] = a[:3, :3] @ exp_so3(s * turn)
            system = System.of(way.arm.with_target(pose))
            C = np.zeros(16)
            _close(way.line, 0, s, C)
            C[3:12:4] *= system.length / System.of(way.arm).length
            np.testing.assert_allclose(C[:12], system.C[-1, :12], atol=1e-13)


def test_residuals_and_jacobians_on_a_curve_are_as_near_to_their_interpolation_as_is_said():
    """At any quadratic curve, not only at one through solutions."""
    rng = np.random.default_rng(0)
    largest = 0.0
    for way in ways(30, 3):
        bounds = way.bounds
        for _ in range(6):
            x = rng.uniform(-2.5, 2.5, 6)
            line, bend = rng.normal(size=(2, 6)) * 10.0 ** rng.uniform(-3.0, -1.0, (2, 1))
            part = int(rng.integers(len(way.poses) - 1))
            middle, half = 0.5, 0.5 * rng.uniform()

            def curve(t, way=way, part=part, x=x, line=line, bend=bend, middle=middle, half=half):
                return at(way, part, middle + t * half, x + t * line + t * t * bend)

            speed = half * way.line.speed[part]
            V = speed + bounds.uses @ (np.abs(line) + 2.0 * np.abs(bend))
            A = bounds.uses @ (2.0 * np.abs(bend))
            most = CUBIC * bounds.bend * (V**3 + 3.0 * V * A)
            (Fa, Ja), (Fm, Jm), (Fb, Jb) = curve(-1.0), curve(0.0), curve(1.0)
            for t in np.linspace(-1.0, 1.0, 21):
                F, J = curve(t)
                weights = 0.5 * t * (t - 1.0), 1.0 - t * t, 0.5 * t * (t + 1.0)
                off = np.abs(F - weights[0] * Fa - weights[1] * Fm - weights[2] * Fb)
                assert np.all(off <= most + 3.0 * bounds.value)
                slip = np.abs(J - weights[0] * Ja - weights[1] * Jm - weights[2] * Jb)
                assert np.all(slip <= most[:, None] * bounds.uses + 3.0 * bounds.slope)
                largest = max(largest, float((off / (most + 3.0 * bounds.value)).max()))
    assert largest > 0.02  # the bound is not much larger than it must be


def test_two_postures_that_are_near_each_other_stay_apart():
    """The wrist of a PUMA beside its singularity: half a turn in a step, and both are followed."""
    q = np.array([0.7, -1.1, 0.4, 0.3, 1e-3, -0.8])
    pose = PUMA.pose(q)
    rng = np.random.default_rng(4)
    way = rng.normal(size=3)
    ends = [pose.copy(), pose.copy()]
    for T, sign in zip(ends, (-1.0, 1.0), strict=True):
        T[:3, 3] += sign * 0.03 * way / np.linalg.norm(way)
    tree = solve_path(PUMA.mechanism(q), straight_line(*ends, 21))
    assert len(tree.whole) == 8
    turned = [np.abs(np.diff(tree.branches[k].positions[:, 3])).max() for k in tree.whole]
    assert max(turned) > 1.0  # the fast turn of the fourth joint is there
    last = np.array([tree.branches[k].positions[-1] for k in tree.whole])
    gaps = np.abs(last[:, None] - last[None])
    gaps -= 2.0 * math.pi * np.round(gaps / (2.0 * math.pi))
    assert np.abs(gaps).max(axis=2)[~np.eye(8, dtype=bool)].min() > 1e-3
