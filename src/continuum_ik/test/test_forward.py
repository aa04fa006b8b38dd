"""Forward kinematics, stiffness, shapes, batches."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from continuum_ik import (
    ContinuumRobot,
    ContinuumSolver,
    Limits,
    Load,
    make_pose,
    run_streams,
)
from continuum_ik.analysis import analyse
from continuum_ik.demo import demo_path
from continuum_ik.equations import (
    aim,
    eliminate,
    evaluate,
    make_jacobian,
    solve_linear,
    tangents,
)
from continuum_ik.forward import forward_run
from continuum_ik.layout import OUTCOME, duplicate
from continuum_ik.path import load
from continuum_ik.rod import LENGTH, RODS
from kin_core.errors import Cancelled, InvalidInput, LimitExceeded, StatusCode
from kin_core.task import Task

START = make_pose((0.0, 0.02, 0.48))


def random_poses(rng, n, tilt=0.2, reach=0.06):
    poses = np.empty((n, 12))
    for k in range(n):
        position = rng.uniform([-reach, -reach, 0.38], [reach, reach, 0.6])
        poses[k] = make_pose(
            position, Rotation.from_rotvec(rng.uniform(-tilt, tilt, 3)).as_matrix()
        )
    return poses


def pose_error(a, b):
    R = a[3:].reshape(3, 3) @ b[3:].reshape(3, 3).T
    return np.abs(a[:3] - b[:3]).max(), np.linalg.norm(Rotation.from_matrix(R).as_rotvec())


@pytest.mark.campaign
def test_forward_of_inverse_is_the_pose_over_hundreds(tight, campaign, record_property):
    """Random tilted poses, found again from their lengths alone and a pose 3 mm away."""
    rng = np.random.default_rng(4)
    poses = random_poses(rng, campaign(800, 2000))
    batch = tight.solve_many(poses, independent=True, threads=2)
    reachable = np.flatnonzero(batch.codes == StatusCode.SUCCESS)
    assert len(reachable) > campaign(700, 1800)
    compared = 0
    out, flag = np.empty(1, OUTCOME), np.zeros(1, dtype=np.int64)
    for k in reachable:
        near = poses[k].copy()
        near[:3] += rng.uniform(-0.003, 0.003, 3)
        one = tight.copy()
        if one.track(poses[k]) != 0 or one.track(near) != 0:
            continue  # the pose 3 mm away lies beyond a fold
        if k % 20 == 0:
            result = one.forward(batch.lengths[k]).check()
            found, residual = result.pose, result.residual
        else:  # what ``forward`` calls, without the question whether the start is stable
            forward_run(one.state, batch.lengths[k][None], True, out, flag)
            assert out["code"] == StatusCode.SUCCESS
            found, residual = out["pose"].reshape(12), out["sum_squares"]
        position, rotation = pose_error(found, poses[k])
        assert position < 1e-7
        assert rotation < 1e-6
        assert residual <= 1e-12
        R = found[3:].reshape(3, 3)
        assert np.abs(R.T @ R - np.eye(3)).max() < 1e-12
        compared += 1
    assert compared > campaign(700, 1800)
    record_property("cases", compared)


def test_forward_from_home(tight):
    """Knowing only the lengths: nearly always the pose; else another equilibrium, or a snap."""
    poses = random_poses(np.random.default_rng(4), 1000)
    batch = tight.solve_many(poses, independent=True, threads=2)
    reachable = batch.codes == StatusCode.SUCCESS
    lengths = batch.lengths[reachable]
    found = tight.forward_many(lengths, independent=True, threads=2)
    solved = found.codes == StatusCode.SUCCESS
    assert solved.mean() > 0.98
    assert found.residuals[solved].max() <= 1e-12
    assert found.stable
    right = np.abs(found.poses[:, :3] - poses[reachable][:, :3]).max(axis=1) < 1e-7
    assert right.mean() > 0.98


def test_forward_follows_a_path_and_takes_a_guess(loose):
    loose.solve(START).check()
    lengths, codes = loose.run(demo_path()[:50])
    assert not codes.any()
    found = loose.forward_many(lengths)
    assert not found.codes.any()
    np.testing.assert_allclose(found.poses[:, :3], demo_path()[:50, :3], rtol=0, atol=3e-4)
    result = loose.forward(lengths[10], guess=demo_path()[8]).check()
    assert pose_error(result.pose, demo_path()[10])[0] < 3e-4


@pytest.mark.parametrize(
    ("lengths", "code", "words"),
    [
        ([0.4, 0.4, np.nan, 0.4, 0.4, 0.4], StatusCode.INVALID_INPUT, "finite"),
        ([0.4, 0.4, -0.1, 0.4, 0.4, 0.4], StatusCode.UNREACHABLE, "leg 2"),
        ([0.4, 0.4, 0.4, 0.4, 0.4, 9.0], StatusCode.UNREACHABLE, "leg 5"),
        ([0.1, 1.1, 0.1, 1.1, 0.1, 1.1], StatusCode.UNREACHABLE, "gives way"),
    ],
)
def test_forward_refuses(loose, lengths, code, words):
    result = loose.forward(lengths)
    assert result.code == code
    assert words in result.reason
    assert loose.forward(loose.home_lengths).success


def plain_newton(w, lengths, steps=48):
    """Full Newton steps in forces, moments and pose at given lengths, without the solver's rules.

    Returns the size of all moves of the pose, or None.
    """
    total = 0.0
    for _ in range(12):
        w.rods.y[LENGTH, :RODS] = lengths
        w.steps = steps
        evaluate(w)
        rows = w.residual.copy()
        if not np.isfinite(rows).all():
            return None
        make_jacobian(w, steps)
        if not eliminate(w):
            return None
        tangents(w)
        w.residual = rows
        solve_linear(w)
        T = w.tangent
        move = np.linalg.solve(T[:, LENGTH, :RODS].T, w.delta[LENGTH, :RODS])
        size = np.abs(move).max()
        if not size < 0.03:
            return None
        w.rods.y[:] += np.tensordot(move, T, 1) - w.delta
        w.pose[0] += move[:3]
        w.pose[1:] = Rotation.from_rotvec(move[3:]).as_matrix() @ w.pose[1:]
        aim(w)
        total += size
        if size < 1e-10:
            return total
    return None


def fine_continuation(solver, lengths, parts=150):
    """Move the lengths in many small steps, plain Newton each; None where that ends or leaps."""
    solver = solver.copy()
    w = solver.named[()]
    load(w, w.answer)
    start = solver.lengths.copy()
    before = None
    for part in np.linspace(0.0, 1.0, parts + 1)[1:]:
        moved = plain_newton(w, start + part * (lengths - start))
        if moved is None or (before is not None and moved > 3.0 * before + 1e-7):
            return None
        before = moved
    return w.pose.reshape(12).copy()


@pytest.mark.parametrize("tilted", [False, True])
def test_forward_never_arrives_at_a_wrong_branch(tight, tilted):
    """Legs moved by up to 12 cm in any combination: fine continuation arrives at the same pose.

    What was found is stable by its own conjugate points and stiffness, as the start is.
    """
    tilt = Rotation.from_rotvec([0.1, -0.15, 0.1]).as_matrix() if tilted else None
    tight.solve(make_pose((0.01, 0.02, 0.48), tilt)).check()
    rng = np.random.default_rng(21 + tilted)
    solved = refused = compared = 0
    for k in range(24):
        change = rng.uniform(-1.0, 1.0, 6) * (0.12 if k % 2 else 0.03)
        wanted = tight.lengths + change
        result = tight.forward(wanted)
        if not result.success:
            refused += 1
            assert result.code == StatusCode.UNREACHABLE
            assert result.reason
            assert 0.0 <= result.reached < 1.0
            assert not result.stable
            continue
        solved += 1
        assert result.stable
        assert result.residual <= 1e-12
        expected = fine_continuation(tight, wanted)
        if expected is not None:
            compared += 1
            position, rotation = pose_error(result.pose, expected)
            assert position < 1e-8
            assert rotation < 1e-7
        state = duplicate(tight.state)
        out, flag = np.empty(1, OUTCOME), np.zeros(1, dtype=np.int64)
        forward_run(state, wanted[None], True, out, flag)
        assert analyse(state, "answer").stable
    assert solved > 10
    assert compared > 0.8 * solved
    assert refused > 1


def test_forward_says_that_an_equilibrium_is_not_stable(tight):
    """The symmetric branch beyond the buckling of a rod exists, but no platform stays there."""
    tight.allow_unstable = True
    tight.solve(make_pose((0.18, 0.0, 0.45))).check()
    wanted = tight.lengths + 1e-6
    result = tight.forward(wanted).check()
    assert not result.stable
    assert "stable" in result.reason
    batch = tight.forward_many(np.stack([wanted, wanted]), independent=True)
    assert not batch.stable
    assert "stable" in batch.message(1)
    # The verdict belongs to the start, and is made anew when that moves.
    tight.solve(make_pose((0.0, 0.0, 0.45))).check()
    result = tight.forward(tight.lengths + 1e-6).check()
    assert result.stable
    assert result.reason == ""


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(curvature=2.0), "curvature"),
        (Limits(force=1.0), "force"),
        (Limits(height=0.46), "height"),
    ],
)
def test_forward_keeps_the_limits(tight, limits, words):
    """Lengths of a pose that breaks a limit: refused with the limit, the rod and how far it got."""
    solver = ContinuumSolver(ContinuumRobot(limits=limits, home_height=0.48), 1e-12)
    lengths = tight.solve(make_pose((0.0, 0.1, 0.44 if words == "height" else 0.5))).check().lengths
    result = solver.forward(lengths)
    assert result.code == StatusCode.UNREACHABLE
    assert words in result.reason
    assert 0 <= result.limiting_leg < 6
    assert result.reached < 1.0
    batch = solver.forward_many(np.stack([lengths, solver.home_lengths]), independent=True)
    assert list(batch.codes) == [StatusCode.UNREACHABLE, StatusCode.SUCCESS]
    assert words in batch.message(0)
    assert batch.message(1) == ""


def test_forward_refuses_wrong_shapes_and_guesses(loose):
    with pytest.raises(InvalidInput, match="six"):
        loose.forward([0.4] * 5)
    with pytest.raises(InvalidInput, match="guess"):
        loose.forward([0.4] * 6, guess=make_pose((0, 0, -1)))


def test_stiffness_is_what_loads_do():
    """Small loads, lengths held: forward kinematics moves the platform by the compliance."""
    pose = make_pose((0.02, 0.03, 0.45), Rotation.from_rotvec([0.1, -0.1, 0.05]).as_matrix())
    load = Load(force=(0.2, 0.1, -2.0), moment=(0.01, 0.0, 0.02), point=(0.01, 0.0, 0.03))
    robot = ContinuumRobot(load=load)
    solver = ContinuumSolver(robot, 1e-18)
    lengths = solver.solve(pose).check().lengths
    found = solver.analyse()
    np.testing.assert_allclose(found.stiffness @ found.compliance, np.eye(6), atol=1e-6)
    for j, h in ((0, 5e-3), (2, 5e-2), (4, 2e-4), (5, 1e-4)):
        moved = []
        for sign in (-1.0, 1.0):
            F, M = np.array(load.force), np.array(load.moment)
            (F if j < 3 else M)[j % 3] += sign * h
            pushed = ContinuumSolver(robot.with_load(Load(tuple(F), tuple(M), load.point)), 1e-18)
            moved.append(pushed.forward(lengths, guess=pose).check().pose)
        R = moved[1][3:].reshape(3, 3) @ moved[0][3:].reshape(3, 3).T
        change = np.concatenate(
            [moved[1][:3] - moved[0][:3], Rotation.from_matrix(R).as_rotvec()]
        ) / (2.0 * h)
        wrench = np.eye(6)[j]
        # The force acts at its point, so that it also turns the platform.
        wrench[3:] += np.cross(pose[3:].reshape(3, 3) @ load.point, wrench[:3])
        expected = found.compliance @ wrench
        scale = np.abs(expected).max()
        np.testing.assert_allclose(change, expected, rtol=0, atol=1e-3 * scale)


def test_stiffness_is_symmetric_without_load_and_positive_at_home(tight):
    tight.solve(make_pose((0.02, 0.03, 0.45))).check()
    found = tight.analyse()
    np.testing.assert_allclose(
        found.stiffness, found.stiffness.T, rtol=0, atol=1e-6 * np.abs(found.stiffness).max()
    )
    assert found.stable
    assert np.linalg.eigvalsh(found.stiffness)[0] > 0.0


def test_length_jacobian_predicts_small_moves(tight):
    tight.tolerance = 1e-18
    pose = make_pose((0.02, 0.03, 0.45), Rotation.from_rotvec([0.1, -0.1, 0.05]).as_matrix())
    tight.solve(pose).check()
    J = tight.analyse().length_jacobian
    h = 1e-4
    for j in range(6):
        twist = np.zeros(6)
        twist[j] = h
        both = []
        for sign in (-1.0, 1.0):
            R = Rotation.from_rotvec(sign * twist[3:]).as_matrix() @ pose[3:].reshape(3, 3)
            both.append(tight.solve(make_pose(pose[:3] + sign * twist[:3], R)).check().lengths)
        np.testing.assert_allclose((both[1] - both[0]) / (2 * h), J[:, j], rtol=0, atol=2e-5)


def test_buckled_rods_are_called_unstable(tight):
    """Beyond the inner surface where a rod buckles the equilibrium is no minimum of energy."""
    tight.solve(make_pose((0.0, 0.0, 0.45))).check()
    assert tight.analyse().stable
    tight.allow_unstable = True
    tight.solve(make_pose((0.18, 0.0, 0.45))).check()
    found = tight.analyse()
    assert not found.stable
    assert sum(found.conjugate_points) > 0


def test_shapes_end_at_the_platform_and_have_the_length(tight):
    pose = make_pose((0.02, 0.05, 0.45), Rotation.from_rotvec([0.1, 0.1, 0.0]).as_matrix())
    result = tight.solve(pose).check()
    shapes = tight.shapes(101)
    np.testing.assert_allclose(shapes[:, 0], tight.robot.base, atol=1e-12)
    tips = tight.robot.platform @ pose[3:].reshape(3, 3).T + pose[:3]
    np.testing.assert_allclose(shapes[:, -1], tips, atol=1e-6)
    arcs = np.linalg.norm(np.diff(shapes, axis=1), axis=2).sum(axis=1)
    np.testing.assert_allclose(arcs, result.lengths, rtol=2e-4)
    # Upright at the base, along the platform's normal at the end.
    normal = pose[3:].reshape(3, 3)[:, 2]
    for rod in shapes:
        first, last = rod[1] - rod[0], rod[-1] - rod[-2]
        assert first[2] / np.linalg.norm(first) > 0.9995
        assert last @ normal / np.linalg.norm(last) > 0.9995
    with pytest.raises(InvalidInput):
        tight.shapes(1)


def test_batches_over_threads_are_what_single_calls_are(loose):
    loose.solve(START).check()
    poses = random_poses(np.random.default_rng(8), 60)
    poses[7, 0] = np.nan
    poses[20] = make_pose((0, 0, -0.3))
    one = loose.solve_many(poses, independent=True, threads=1)
    two = loose.solve_many(poses, independent=True, threads=3)
    np.testing.assert_array_equal(one.codes, two.codes)
    np.testing.assert_array_equal(one.lengths, two.lengths)
    assert one.codes[7] == StatusCode.INVALID_INPUT
    assert one.codes[20] == StatusCode.UNREACHABLE
    assert "finite" in one.message(7)
    # The solver itself has not moved.
    np.testing.assert_allclose(loose.pose, START)
    for k in (0, 30, 59):
        single = loose.copy().solve(poses[k])
        assert single.code == one.codes[k]
        np.testing.assert_array_equal(single.lengths, one.lengths[k])


def test_streams_of_many_robots(loose):
    loose.solve(START).check()
    path = demo_path()
    solvers = [loose.copy() for _ in range(4)]
    answers = run_streams(solvers, [path] * 4, threads=2)
    for lengths, codes in answers:
        assert not codes.any()
        np.testing.assert_array_equal(lengths, answers[0][0])
    expected, _ = loose.run(path)
    np.testing.assert_array_equal(expected, answers[0][0])


def test_batch_limits_and_cancel(loose):
    with pytest.raises(LimitExceeded):
        loose.run(np.broadcast_to(START, (1_000_001, 12)))
    with pytest.raises(InvalidInput):
        loose.run(np.zeros((3, 5)))
    task = Task()
    task.cancel()
    with pytest.raises(Cancelled):
        loose.solve_many(demo_path(), task=task)
