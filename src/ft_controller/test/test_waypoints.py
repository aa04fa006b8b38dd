"""From waypoints to a motion: from where the arm is, without what is past, joints that stay."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ft_controller import ArmError
from ft_controller.waypoints import Waypoints

JOINTS = ("a", "b", "c")
ALL = np.ones(3, np.bool_)
STATE = np.array([[0.1, 0.2, 0.3], [0.5, -0.4, 0.3], [1.0, 0.0, -1.0]])
RESTING = np.array([STATE[0], np.zeros(3), np.zeros(3)])
BRAKING = 4.0


def waypoints(times, positions, velocities=None, accelerations=None, named=ALL):
    """Points, None where nothing is given."""

    def rows(values):
        none = [np.nan] * 3
        given = [None] * len(times) if values is None else values
        return np.array([none if row is None else row for row in given], dtype=float)

    return Waypoints(
        np.array(times, dtype=float),
        np.array(positions, dtype=float),
        rows(velocities),
        rows(accelerations),
        np.array(named),
        JOINTS,
    )


P1, P2, P3 = [1.0, 1.0, 1.0], [2.0, 0.0, 1.0], [3.0, -1.0, 1.0]
STILL = [0.0, 0.0, 0.0]


def test_the_motion_begins_where_the_arm_is_and_passes_the_points():
    route = waypoints([1.0, 2.0, 4.0], [P1, P2, P3]).route(RESTING, 0.0, BRAKING)
    made = route.trajectory
    assert route.first == 0 and made.duration == 4.0
    assert made.sample(0.0)[0].tolist() == STATE[0].tolist()
    for t, p in ((1.0, P1), (2.0, P2), (4.0, P3), (9.0, P3)):
        assert made.sample(t)[0] == pytest.approx(p)
    assert made.sample(0.5)[0] == pytest.approx(0.5 * (STATE[0] + P1))  # straight lines


def test_the_first_piece_continues_the_state_by_what_the_first_point_holds():
    cubic = waypoints([1.0, 2.0], [P1, P2], [P1, STILL]).route(STATE, 0.0, BRAKING).trajectory
    assert cubic.sample(0.0)[:2] == pytest.approx(STATE[:2])
    assert cubic.sample(1.0)[1] == pytest.approx(P1)
    quintic = waypoints([1.0], [P1], [STILL], [STILL]).route(STATE, 0.0, BRAKING).trajectory
    assert quintic.sample(0.0) == pytest.approx(STATE)


def test_a_point_at_the_very_beginning_is_where_it_starts():
    route = waypoints([0.0, 2.0], [P1, P2]).route(RESTING, 0.0, BRAKING)
    assert route.first == 1
    assert route.trajectory.sample(0.0)[0].tolist() == P1


def test_what_is_past_is_left_out():
    points = waypoints([1.0, 2.0, 4.0], [P1, P2, P3])
    route = points.route(RESTING, 1.5, BRAKING)
    assert route.first == 1 and route.trajectory.duration == pytest.approx(2.5)
    assert route.trajectory.sample(0.0)[0].tolist() == STATE[0].tolist()
    assert route.trajectory.sample(0.5)[0] == pytest.approx(P2)
    assert route.trajectory.sample(0.25)[0] == pytest.approx(0.5 * (STATE[0] + P2))
    # A point of now is past as well, unless it is the beginning of all.
    assert points.route(RESTING, 2.0, BRAKING).first == 2
    for past in (4.0, 4.5, 1e9):
        with pytest.raises(ArmError, match=r"header.stamp: the trajectory ended .* s ago"):
            points.route(RESTING, past, BRAKING)


def test_smooth_positions_have_continuous_velocities_and_accelerations():
    points = waypoints([1.0, 2.0, 4.0], [P1, P2, P3])
    made = points.route(STATE, 0.0, BRAKING, smooth=True).trajectory
    assert made.sample(0.0)[1] == pytest.approx(STATE[1])
    assert made.sample(4.0)[1] == pytest.approx(STILL, abs=1e-12)
    for t in (1.0, 2.0):
        before, after = made.sample(t - 1e-9), made.sample(t)
        assert before == pytest.approx(after, abs=1e-6)
    with_speeds = waypoints([1.0, 2.0], [P1, P2], [P3, STILL])
    assert with_speeds.route(STATE, 0.0, BRAKING, True).trajectory.sample(1.0)[1] == (
        pytest.approx(P3)
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_joints_that_are_not_named_come_to_rest_and_stay(seed):
    random = np.random.default_rng(seed)
    named = random.random(3) < 0.5
    named[random.integers(3)] = True
    state = np.array([random.uniform(-1, 1, 3), random.uniform(-2, 2, 3), np.zeros(3)])
    times = np.cumsum(10.0 ** random.uniform(-2.0, 0.5, random.integers(1, 5)))
    positions = random.uniform(-1.0, 1.0, (times.size, 3))
    rows = None if random.random() < 0.5 else [STILL] * times.size
    points = waypoints(times, positions, rows, None, named)
    made = points.route(state, 0.0, BRAKING).trajectory
    alone = waypoints(times, positions, rows).route(state, 0.0, BRAKING).trajectory
    others = ~named
    grid = np.linspace(0.0, made.duration, 400)
    path = np.array([made.sample(t) for t in grid])
    for t, row in zip(grid, path, strict=True):
        assert row[0, named] == pytest.approx(alone.sample(t)[0][named], abs=1e-9)
    if others.any():
        start = path[0][:, others]
        assert start[:2] == pytest.approx(state[:2, others], abs=1e-12)
        assert np.abs(path[:, 2][:, others]).max() <= max(BRAKING, 15.0 * 2.0) + 1e-9
        assert np.abs(path[:, 1][:, others]).max() <= np.abs(state[1, others]).max() + 1e-9
        assert made.sample(made.duration + 1.0)[1] == pytest.approx(STILL)
        # One way only: nobody turns back.
        assert (path[:, 1][:, others] * np.sign(state[1, others]) >= -1e-9).all()
    assert made.sample(1e9)[0][named] == pytest.approx(positions[-1][named])


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"times": [1.0, 1.0]}, "must rise: point 0 is at 1 s, point 1 at 1 s"),
        ({"times": [2.0, 1.0]}, "must rise: point 0 is at 2 s, point 1 at 1 s"),
        ({"times": [-1.0, 1.0]}, "point 0 is at -1 s"),
        ({"positions": [P1, [0.0, np.nan, 0.0]]}, "positions: point 1, b: must be finite, got nan"),
        ({"positions": [[np.inf, 0.0, 0.0], P1]}, "point 0, a: must be finite, got inf"),
        ({"velocities": [[0.0, 0.0, np.nan], STILL]}, "velocities: point 0, c: must be finite"),
        ({"accelerations": [STILL, STILL]}, "accelerations: point 0 needs velocities as well"),
        ({"velocities": [STILL, [0.0, 0.0, 0.1]]}, "last point must be at rest, c has 0.1"),
    ],
)
def test_senseless_points_are_refused_with_the_point_and_the_joint(change, sentence):
    with pytest.raises(ArmError, match=sentence.replace("(", r"\(")):
        waypoints(**({"times": [1.0, 2.0], "positions": [P1, P2]} | change))
