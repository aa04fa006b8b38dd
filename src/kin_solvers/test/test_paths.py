"""Paths over all branches, against a finer tracer of other origin and against laws."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from reference_ik import ARMS

from benchmarks.baselines import cuik_paths
from benchmarks.baselines.cuik_paths import Verdict, cases, compare
from kin_core.errors import Cancelled
from kin_core.rotations import exp_so3, transform
from kin_core.task import Task
from kin_solvers import RequestError, follow_path, library, solve_path, straight_line
from kin_solvers.equations import Equations
from kin_solvers.lines import along_poses
from kin_solvers.system import System

PUMA = ARMS[0]


def line_of(rng, arm, poses=20, reach=0.3):
    """A line through the pose of a random configuration."""
    start = arm.pose(rng.uniform(-2.5, 2.5, 6))
    move = transform(exp_so3(rng.normal(size=3) * 0.3), reach * rng.normal(size=3))
    goal = start.copy()
    goal[:3, 3] += move[:3, 3]
    goal[:3, :3] = start[:3, :3] @ move[:3, :3]
    return straight_line(start, goal, poses)


def same_turn(a, b):
    """Configurations, the angles of b some turns away so that both begin together."""
    return np.abs(a - b - 2.0 * math.pi * np.round((a[0] - b[0]) / (2.0 * math.pi))).max()


def test_no_branch_jumps_and_none_is_given_up_without_a_reason():
    verdict = cuik_paths.run(40, seed=3, poses=20, finer=20, look=20)
    assert (verdict.jumps, verdict.outside, verdict.given_up) == (0, 0, 0)
    assert verdict.branches > 80
    assert verdict.whole > 30
    assert {"path", "limit", "meets", "singular"} <= set(verdict.ends)


def test_the_comparison_notices_jumps():
    """Newton's method from pose to pose, as it is often done, jumps on the same lines."""
    verdict = Verdict()
    for case in itertools.takewhile(lambda _: verdict.jumps == 0, cases(5, 12)):
        tree = solve_path(case.arm(), case.poses, look=20)
        stepped = tuple(by_newton(case, b) for b in tree.branches if b.begins.kind == "path")
        compare(case, replace(tree, branches=stepped), verdict, 50)
        assert verdict.lines < 60


def by_newton(case, branch):
    """A branch whose configurations each come from the one before by Newton's method alone."""
    rows, arm = [branch.positions[0]], case.arm()
    for pose in case.poses[1 : len(branch.positions)]:
        q = Equations.of(System.of(arm.with_target(pose))).newton(rows[-1])
        if q is None:
            break
        rows.append(q)
    rest = branch.positions[len(rows) :]
    return replace(branch, positions=np.concatenate([np.array(rows), rest]))


@pytest.mark.parametrize("arm", ARMS[:6], ids=lambda arm: arm.name)
def test_the_way_back_has_the_same_branches(arm):
    rng = np.random.default_rng(len(arm.name))
    for _ in range(2):
        poses = line_of(rng, arm)
        mechanism = arm.mechanism(np.zeros(6))
        there = solve_path(mechanism, poses, look=1)
        back = solve_path(mechanism, poses[::-1], look=1)
        assert len(there.branches) == len(back.branches)
        for branch in there.branches:
            twin = min(
                (b for b in back.branches if b.first == len(poses) - 1 - branch.last),
                key=lambda b: same_turn(b.positions[::-1][:1], branch.positions[:1]),
            )
            assert same_turn(twin.positions[::-1], branch.positions) < 1e-6
            assert abs(len(poses) - 1 - twin.begins.place - branch.ends.place) < 1e-4


def test_more_poses_on_the_same_line_change_nothing():
    rng = np.random.default_rng(8)
    for arm in ARMS[:3]:
        poses = line_of(rng, arm, 11)
        finer, given = along_poses(poses, 0.01, 1.0)
        mechanism = arm.mechanism(np.zeros(6))
        coarse, fine = solve_path(mechanism, poses, look=10), solve_path(mechanism, finer)
        ways = [b.positions[given] for b in (fine.branches[k] for k in fine.whole)]
        assert len(ways) == len(coarse.whole)
        for number in coarse.whole:
            mine = coarse.branches[number].positions
            assert min(same_turn(way, mine) for way in ways) < 1e-8


def test_branches_that_are_born_meet_and_leave_limits_are_told():
    """Through the outer border of the workspace: elbows meet there, in pairs."""
    arm = library.get("puma560")
    q = np.array([0.3, -0.7, 0.9, 0.4, 0.8, -0.5])
    start = arm.target
    goal = start.copy()
    goal[:3, 3] *= 3.0
    tree = solve_path(arm, straight_line(start, goal, 60))
    assert tree.complete
    assert not tree.whole
    ends = [b.ends for b in tree.branches]
    assert {e.kind for e in ends} == {"meets"}
    for number, end in enumerate(ends):
        assert ends[end.partner].partner == number
        assert abs(ends[end.partner].place - end.place) < 1e-4
    best = tree.best(q)
    assert not best.whole
    assert 0.0 < best.fraction < 1.0
    assert "no path goes all the way" in best.message
    np.testing.assert_allclose(best.positions[0], q, atol=1e-8)
    # The same the other way round: what met is born.
    born = solve_path(arm, straight_line(goal, start, 60))
    assert not born.best().positions.size
    assert "proven" in born.best().message
    assert {b.begins.kind for b in born.branches} == {"meets"}
    # With a limit on the elbow no branch comes to where they meet.
    elbow = tree.branches[best.branch].positions[:, 2]
    limit = float(0.5 * (elbow[0] + elbow[-1]))
    ends = sorted((limit, float(elbow[0] + np.sign(elbow[0] - limit))))
    limited = solve_path(
        arm.with_ranges({arm.names[2]: tuple(ends)}), straight_line(start, goal, 60)
    )
    assert any(b.ends.kind == "limit" and b.ends.joint == arm.names[2] for b in limited.branches)
    for branch in limited.branches:
        assert branch.lower[2] >= ends[0] - 1e-8
        assert branch.upper[2] <= ends[1] + 1e-8


def test_the_best_path_is_the_nearest_and_keeps_turns_within_limits():
    rng = np.random.default_rng(2)
    arm = library.get("ur5")  # six joints of two turns
    poses = straight_line(
        arm.target, transform(np.eye(3), np.array([0.05, 0.02, -0.03])) @ arm.target, 15
    )
    tree = solve_path(arm, poses)
    assert tree.whole
    lower, upper = np.array([(v.lower, v.upper) for v in arm.variables]).T
    for seed in rng.uniform(lower, upper, (8, 6)):
        best = tree.best(seed)
        assert best.whole
        assert np.all((best.positions >= lower - 1e-9) & (best.positions <= upper + 1e-9))
        costs = []
        for number in tree.whole:
            way = tree.branches[number].positions
            for turns in np.ndindex(*[3] * 6):
                moved = way + 2.0 * math.pi * (np.array(turns) - 1)
                if moved.min() >= lower[0] and moved.max() <= upper[0]:
                    costs.append(np.linalg.norm(moved[0] - seed) + tree.branches[number].length)
        assert best.cost == pytest.approx(min(costs))
        for pose, q in zip(poses[::5], best.positions[::5], strict=True):
            assert arm.with_target(pose).residual(q) < 1e-9
    wide = arm.with_ranges(dict.fromkeys(arm.names, (-3.3, 3.3)))
    far = transform(exp_so3(np.array([0.0, 0.0, 2.0])), np.zeros(3)) @ arm.target
    best = solve_path(wide, straight_line(arm.target, far, 40)).best()
    assert np.all(np.abs(best.positions) <= 3.3 + 1e-8)


def test_one_configuration_is_followed_and_its_end_is_told():
    arm = library.get("puma560")
    q = np.array([0.3, -0.7, 0.9, 0.4, 0.8, -0.5])
    goal = arm.target.copy()
    goal[:3, 3] += [-0.05, 0.0, -0.02]
    poses = straight_line(arm.target, goal, 30)
    found = follow_path(arm, poses, q)
    assert found.whole
    assert found.fraction == 1.0
    np.testing.assert_allclose(found.positions[0], q, atol=1e-9)
    assert arm.with_target(goal).residual(found.positions[-1]) < 1e-10
    last = found.positions[-1]
    k = int(np.abs(last - q).argmax())
    ends = sorted((q[k] + 0.5 * (last - q)[k], q[k] - 1.0 * np.sign(last - q)[k]))
    cut = follow_path(arm.with_ranges({arm.names[k]: tuple(ends)}), poses, q)
    assert cut.ends.kind == "limit"
    assert cut.ends.joint == arm.names[k]
    assert 0.0 < cut.fraction < 1.0
    assert len(cut.positions) == int(cut.ends.place) + 1


def test_a_path_that_ends_at_once_and_what_is_refused():
    arm = library.get("puma560")
    q = np.array([0.3, -0.7, 0.9, 0.4, 0.8, -0.5])
    poses = straight_line(arm.target, arm.target, 3)
    outside = arm.with_ranges({arm.names[0]: (0.4, 1.0)})
    assert follow_path(outside, poses, q).fraction == 0.0
    with pytest.raises(RequestError, match="start"):
        follow_path(arm, poses, q + 0.1)
    with pytest.raises(RequestError, match="poses"):
        solve_path(arm, poses[:1])
    with pytest.raises(RequestError, match="six joints"):
        solve_path(library.get("iiwa7"), poses)
    half = arm.target.copy()
    half[:3, :3] = half[:3, :3] @ exp_so3(np.array([math.pi, 0.0, 0.0]))
    with pytest.raises(RequestError, match="half turn"):
        solve_path(arm, [arm.target, half])
    task = Task()
    task.cancel()
    with pytest.raises(Cancelled):
        solve_path(arm, poses, task=task)


def test_poses_between_waypoints_are_near_enough_and_hold_them():
    rng = np.random.default_rng(1)
    given = np.array([transform(exp_so3(rng.normal(size=3)), rng.normal(size=3)) for _ in range(4)])
    poses, which = along_poses(given, 0.05, 0.1)
    np.testing.assert_array_equal(poses[which], given)
    steps = np.linalg.norm(np.diff(poses[:, :3, 3], axis=0), axis=1)
    assert steps.max() <= 0.05 + 1e-12
    for a, b in itertools.pairwise(poses):
        cosine = 0.5 * (np.trace(a[:3, :3].T @ b[:3, :3]) - 1.0)
        assert math.acos(min(1.0, cosine)) <= 0.1 + 1e-6
    with pytest.raises(Exception, match="more than"):
        along_poses(given, 1e-6, 1.0)
