"""Moves of fleets: limits kept, ends met, corners rounded, cycles closed."""

import numpy as np
import pytest

from gpu_kinematics import PUBLISHED_GEOMETRY, Delta, DeltaInput, DeltaLimit, Fleet, Move
from gpu_kinematics.trajectory import sample_times

ROBOT = Delta(PUBLISHED_GEOMETRY, backend="cpu")
V, A, J = 0.5, 8.0, 400.0


def move(**changes):
    settings = {"max_velocity": V, "max_acceleration": A, "max_jerk": J, "height": 0.01, **changes}
    return Move(**settings)


def ends(n=400, seed=0):
    rng = np.random.default_rng(seed)
    low, high = [[-0.02], [-0.02], [-0.07]], [[0.02], [0.02], [-0.055]]
    # Some moves are so short that neither speed nor acceleration reaches its limit.
    start = rng.uniform(low, high, (3, n))
    goal = start + (rng.uniform(low, high, (3, n)) - start) * np.logspace(-6, 0, n)
    return start, goal


def motion_of(kind, dtype=np.float64, **changes):
    start, goal = (a.astype(dtype) for a in ends())
    fleet = Fleet(ROBOT, start, goal, move(kind=kind, **changes))
    share = np.linspace(0.0, 1.0, 501, dtype=dtype)
    return fleet, fleet.sample(share[:, None] * fleet.duration[None, :]), start, goal


@pytest.mark.parametrize("kind", ["straight", "pick_and_place"])
@pytest.mark.parametrize("overlap", [0.0, 1.0])
def test_ends_limits_and_derivatives(kind, overlap):
    fleet, motion, start, goal = motion_of(kind, overlap=overlap)
    np.testing.assert_allclose(motion.position[:, 0], start, atol=1e-15)
    np.testing.assert_allclose(motion.position[:, -1], goal, atol=1e-15)
    assert np.abs(motion.velocity[:, [0, -1]]).max() < 1e-12
    # Legs are limited one by one; where two overlap they are at right angles.
    blend = np.sqrt(2.0) if overlap else 1.0
    assert np.linalg.norm(motion.velocity, axis=0).max() <= blend * V * (1 + 1e-9)
    assert np.linalg.norm(motion.acceleration, axis=0).max() <= blend * A * (1 + 1e-9)
    dt = fleet.duration / 500
    jerk = np.diff(motion.acceleration, axis=1) / dt
    assert np.linalg.norm(jerk, axis=0).max() <= blend * J * (1 + 1e-6)
    slope = np.gradient(motion.position, axis=1)[:, 1:-1] / dt
    assert np.abs(slope - motion.velocity[:, 1:-1]).max() < J * dt.max() ** 2
    assert not motion.status.any()


def test_straight_moves_stay_on_their_line():
    _, motion, start, goal = motion_of("straight")
    way = goal - start
    off = np.cross((motion.position - start[:, None]).T, way.T[:, None])
    assert np.abs(off).max() < 1e-17


def test_joint_motion_belongs_to_the_path():
    _, motion, _, _ = motion_of("pick_and_place", overlap=0.5)
    flat = [a.reshape(3, -1) for a in (motion.angle, motion.rate, motion.rate2)]
    forward = ROBOT.forward_motion(*flat)
    np.testing.assert_allclose(forward.position, motion.position.reshape(3, -1), atol=1e-14)
    np.testing.assert_allclose(forward.velocity, motion.velocity.reshape(3, -1), atol=1e-12)
    np.testing.assert_allclose(forward.acceleration, motion.acceleration.reshape(3, -1), atol=1e-10)


def test_time_of_a_long_move_is_the_textbook_one():
    # Cruise reached: T = L/V + V/A + A/J.
    start, goal = np.array([[-0.04], [0.0], [-0.06]]), np.array([[0.04], [0.0], [-0.06]])
    fleet = Fleet(ROBOT, start, goal, move(kind="straight", max_velocity=0.2))
    assert fleet.duration[0] == pytest.approx(0.08 / 0.2 + 0.2 / A + A / J, rel=1e-14)
    # So short that only the jerk limits it: T = 4 (L / 2J)^(1/3).
    fleet = Fleet(ROBOT, start, start + np.array([[1e-6], [0], [0]]), move(kind="straight"))
    assert fleet.duration[0] == pytest.approx(4 * (1e-6 / (2 * J)) ** (1 / 3), rel=1e-9)


def test_pick_and_place_goes_over_the_top_and_overlap_saves_time():
    slow, motion, start, goal = motion_of("pick_and_place", overlap=0.0)
    top = np.maximum(start[2], goal[2]) + 0.01
    np.testing.assert_allclose(motion.position[2].max(axis=0), top, atol=1e-4)
    fast, _, _, _ = motion_of("pick_and_place", overlap=1.0)
    assert (fast.duration < slow.duration).all()


def test_adept_cycle_comes_back_and_repeats():
    fleet, motion, start, goal = motion_of("adept_cycle", overlap=0.6, dwell=0.05)
    np.testing.assert_allclose(motion.position[:, -1], start, atol=1e-15)
    np.testing.assert_allclose(motion.position[:, 250], goal, atol=1e-9)
    later = fleet.sample(fleet.duration[None, :] * 7.3)
    now = fleet.sample(fleet.duration[None, :] * 0.3)
    np.testing.assert_allclose(later.position, now.position, atol=1e-12)
    np.testing.assert_allclose(later.velocity, now.velocity, atol=1e-9)


def test_slowing_keeps_joint_limits():
    start, goal = ends()
    fleet = Fleet(ROBOT, start, goal, move())
    slowed = fleet.slowed(4.0, 150.0)
    rate, rate2 = slowed.peaks(400)
    assert rate.max() <= 4.0 * 1.01 and rate2.max() <= 150.0 * 1.02
    before = np.maximum(*(p / limit for p, limit in zip(fleet.peaks(), (4.0, 150.0), strict=True)))
    assert ((slowed.time_scale > 1.0) == (before > 1.0)).all()


def test_leaving_the_workspace_is_marked():
    start = np.array([[0.0], [0.0], [-0.06]])
    motion = Fleet(ROBOT, start, start + np.array([[0.2], [0], [0]]), move(kind="straight")).sample(
        [0.0, 9.0]
    )
    assert motion.status[0, 0] == 0 and motion.status[1, 0] != 0


def test_start_equal_to_goal_stays():
    start = np.array([[0.0], [0.0], [-0.06]])
    for kind in ("straight", "pick_and_place", "adept_cycle"):
        fleet = Fleet(ROBOT, start, start, move(kind=kind, height=0.0))
        motion = fleet.sample([0.0, 0.1, 5.0])
        assert (motion.position == start[:, None]).all() and (motion.rate == 0).all()


def test_float32_and_shared_times():
    fleet, motion, _start, goal = motion_of("pick_and_place", np.float32, overlap=0.3)
    assert motion.angle.dtype == np.float32
    np.testing.assert_allclose(motion.position[:, -1], goal, atol=2e-8)
    shared = fleet.sample([0.0, 0.01])
    single = fleet.sample(np.full((1, fleet.count), 0.01, np.float32))
    assert (shared.angle[:, 1] == single.angle[:, 0]).all()


def test_times_of_samples():
    fleet = Fleet(ROBOT, *ends(10), move())
    longest = fleet.duration.max()
    spread = sample_times(fleet, 0.0, 5, 100)
    assert spread[0] == 0.0 and spread[-1] == longest and len(spread) == 5
    regular = sample_times(fleet, 0.01, 0, 10_000)
    assert regular[-2] < longest <= regular[-1]
    np.testing.assert_allclose(np.diff(regular), 0.01)
    assert len(sample_times(fleet, 0.01, 7, 70)) == 7
    for period, samples in ((-1.0, 5), (np.nan, 5), (0.0, 1)):
        with pytest.raises(DeltaInput):
            sample_times(fleet, period, samples, 100)
    for period, samples in ((0.0, 11), (1e-9, 0)):
        with pytest.raises(DeltaLimit, match="max_samples = 100"):
            sample_times(fleet, period, samples, 100)


def test_moves_that_never_end_are_refused():
    start, goal = ends(3)
    Fleet(ROBOT, start, goal, move()).check()
    goal[0, 1] = 1e308
    with pytest.raises(DeltaInput, match="goal"):
        Fleet(ROBOT, start, goal, move()).check()
