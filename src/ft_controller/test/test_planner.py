import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ft_controller import Arm, ArmError, GoalError, Trajectory, plan

ARM = Arm.four_link()
START = np.array([0.3, 0.4, 0.5, 0.6])


def test_follows_the_straight_line_within_the_limits():
    goal = np.array([0.6, 0.8])
    result = plan(ARM, START, goal, speed=1.5, acceleration=4.0)
    assert result.straight and result.residual < 1e-6
    begin = ARM.end_effector(START)[:2]
    along = (goal - begin) / np.linalg.norm(goal - begin)
    previous = None
    for t in np.linspace(0.0, result.trajectory.duration, 400):
        q, v, a = result.trajectory.sample(float(t))
        off = ARM.end_effector(q)[:2] - begin
        assert abs(off[0] * along[1] - off[1] * along[0]) < 2e-3
        assert np.abs(v).max() <= 1.5 + 1e-6 and np.abs(a).max() <= 4.0 * 1.03
        if previous is not None:
            assert np.abs(q - previous).max() < 0.05
        previous = q
    q, v, a = result.trajectory.sample(result.trajectory.duration)
    assert ARM.end_effector(q)[:2] == pytest.approx(goal, abs=1e-6)
    assert np.abs(v).max() < 1e-9 and np.abs(a).max() < 1e-6


def test_angle_duration_and_locked_joints():
    result = plan(ARM, START, [0.7, 0.7], angle=1.0, duration=5.0)
    end = result.trajectory.sample(5.0)[0]
    tip = ARM.end_effector(end)
    assert tip[:2] == pytest.approx([0.7, 0.7], abs=1e-6)
    assert math.remainder(tip[2] - 1.0, 2 * math.pi) == pytest.approx(0.0, abs=1e-6)
    assert result.trajectory.duration == 5.0
    result = plan(ARM, START, [0.7, 0.7], locked=[False, True, False, False])
    for t in np.linspace(0.0, result.trajectory.duration, 50):
        assert result.trajectory.sample(float(t))[0][1] == pytest.approx(START[1], abs=1e-12)


def test_out_of_a_singular_posture_and_to_one():
    stretched = np.zeros(4)
    result = plan(ARM, stretched, [1.0, 0.3])
    assert result.residual < 1e-6
    result = plan(ARM, START, [1.39, 0.0])
    assert result.residual < 1e-6
    folded = np.array([0.0, math.pi, 0.0, 0.0]) * 0.99
    assert plan(ARM, folded, [0.5, 0.5], lower=-3.2, upper=3.2).residual < 1e-6


@pytest.mark.parametrize("goal", [(1.5, 0.0), (0.0, -3.0), (100.0, 100.0)])
def test_out_of_reach_is_said_with_the_distance_left(goal):
    with pytest.raises(GoalError, match="cannot be reached") as error:
        plan(ARM, START, goal)
    assert error.value.residual == pytest.approx(math.hypot(*goal) - ARM.reach, abs=0.01)


def test_limits_make_goals_unreachable():
    with pytest.raises(GoalError, match="limits"):
        plan(ARM, START, [-1.2, 0.0], lower=0.0, upper=0.7)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 100_000), st.integers(2, 9))
def test_any_reachable_goal_is_reached_within_the_limits(seed, n):
    """Goals that some posture within the limits has: found, or honestly refused."""
    random = np.random.default_rng(seed)
    arm = Arm.rods(n)
    low, high = -2.0, 2.0
    start, end = random.uniform(low, high, (2, n)) * 0.9
    goal = arm.end_effector(end)[:2]
    assume(np.linalg.norm(goal) > 0.05)
    try:
        result = plan(arm, start, goal, lower=low, upper=high)
    except GoalError as error:
        assert n <= 3 and error.residual > 1e-6
        return
    for t in np.linspace(0.0, result.trajectory.duration, 60):
        q, v, _ = result.trajectory.sample(float(t))
        assert q.min() >= low - 1e-6 and q.max() <= high + 1e-6
        assert np.abs(v).max() <= 2.0 + 1e-6
    q = result.trajectory.sample(result.trajectory.duration)[0]
    assert arm.end_effector(q)[:2] == pytest.approx(goal, abs=2e-6)


@pytest.mark.parametrize(
    "field, change",
    [
        ("q", {"q": [0.0]}),
        ("goal", {"goal": [np.nan, 0.0]}),
        ("goal", {"goal": [0.0, 0.0, 0.0]}),
        ("goal", {"goal": [1e300, 0.0]}),
        ("angle", {"angle": np.inf}),
        ("speed", {"speed": 0.0}),
        ("lower", {"lower": 1.0, "upper": -1.0}),
        ("duration", {"duration": -1.0}),
        ("duration", {"duration": 1e-3}),
        ("locked", {"locked": [True]}),
    ],
)
def test_senseless_requests_are_refused_by_field(field, change):
    with pytest.raises(ArmError, match=field):
        plan(**({"arm": ARM, "q": START, "goal": [0.6, 0.8]} | change))


def test_trajectories_pass_through_their_points():
    times = [0.0, 0.5, 1.5]
    p = np.array([[0.0, 1.0], [0.5, 0.0], [1.0, -1.0]])
    v = np.array([[0.0, 0.0], [1.0, -1.0], [0.0, 0.0]])
    a = np.array([[0.0, 0.0], [0.5, 0.5], [0.0, 0.0]])
    for args in ((p,), (p, v), (p, v, a)):
        trajectory = Trajectory.through(times, *args)
        for k, t in enumerate(times):
            q, qdot, qddot = trajectory.sample(t)
            assert q == pytest.approx(p[k], abs=1e-12)
            if len(args) > 1:
                assert qdot == pytest.approx(v[k], abs=1e-12)
            if len(args) > 2:
                assert qddot == pytest.approx(a[k], abs=1e-9)
        # Continuous, and the velocity is the derivative of the position.
        for t in (0.2, 0.5, 0.9):
            before, after = trajectory.sample(t - 1e-6), trajectory.sample(t + 1e-6)
            assert (after[0] - before[0]) / 2e-6 == pytest.approx(trajectory.sample(t)[1], abs=1e-4)
        assert (trajectory.sample(-1.0)[0] == p[0]).all()
        assert (trajectory.sample(9.0)[1:] == 0.0).all()


@pytest.mark.parametrize(
    "field, args",
    [
        ("points", ([], np.zeros((0, 2)))),
        ("times", ([0.0, 0.0], np.zeros((2, 2)))),
        ("times", ([-1.0, 0.0], np.zeros((2, 2)))),
        ("times", ([0.0, np.nan], np.zeros((2, 2)))),
        ("positions", ([0.0], [[np.inf]])),
        ("positions", ([0.0, 1.0], [[0.0]])),
        ("velocities", ([0.0], [[0.0]], [[0.0, 0.0]])),
        ("accelerations", ([0.0], [[0.0]], None, [[0.0]])),
    ],
)
def test_senseless_trajectories_are_refused_by_field(field, args):
    with pytest.raises(ArmError, match=field):
        Trajectory.through(*args)


def test_a_trajectory_that_leaves_the_limits_between_its_points_is_found():
    trajectory = Trajectory.through([0.0, 1.0], [[0.0], [0.0]], [[5.0], [0.0]])
    big = np.array([100.0])
    trajectory.check(-big, big, big)
    with pytest.raises(ArmError, match="positions"):
        trajectory.check(np.array([-0.5]), np.array([0.5]), big)
    with pytest.raises(ArmError, match="velocities"):
        trajectory.check(-big, big, np.array([1.0]))
