"""Joints that do not follow, and positions that are frozen; and no false alarm."""

import numpy as np
import pytest

from ft_controller import Arm, ArmError
from ft_controller.motion_watch import Finding, MotionWatch

ARM = Arm.four_link()
Q = np.array([0.3, 0.4, 0.5, 0.6])
ZERO = np.zeros(4)
FREE = np.zeros(4, bool)
DT = 0.01


def look(watch, q=Q, v=ZERO, desired=Q, locked=FREE, new=True, dt=DT):
    return watch.look(dt, np.asarray(q), np.asarray(v), np.asarray(desired), locked, new)


def test_a_joint_too_far_from_its_motion_is_named():
    watch = MotionWatch(ARM, following_error=[0.3, 0.2, 0.1, 0.0])
    assert look(watch) is None
    assert look(watch, Q + 0.01, desired=Q + np.array([0.2, 0.2, 0.1, 3.0])) is None
    assert look(watch, Q, desired=Q + np.array([0.2, 0.25, 0.1, 0.0])) == Finding(
        False, 1, pytest.approx(0.25)
    )
    locked = np.array([False, True, False, False])
    assert look(watch, Q + 0.01, desired=Q + np.array([0.2, 0.9, 0.0, 0.0]), locked=locked) is None


def test_a_position_that_stands_while_it_is_told_to_move_is_frozen():
    watch = MotionWatch(ARM)
    found = None
    ticks = 0
    while found is None:
        ticks += 1
        moved = Q + np.array([0.001 * ticks, 0.0, 0.001 * ticks, 0.001 * ticks])
        found = look(watch, moved, desired=Q + 0.001 * ticks)
        assert ticks < 100
    assert found.frozen and found.joint == 1 and found.value == pytest.approx(0.05, abs=0.002)


def test_a_velocity_without_a_motion_is_frozen():
    watch = MotionWatch(ARM)
    results = [look(watch, v=[0.0, 0.0, -0.5, 0.0]) for _ in range(12)]
    assert results[9] is None and results[-1] == Finding(True, 2, pytest.approx(0.055))


def test_a_torque_without_a_motion_is_frozen():
    watch = MotionWatch(ARM)
    torque = ARM.inverse_dynamics(Q, ZERO, [10.0, 0.0, 0.0, 0.0])
    ticks = 0
    found = None
    while found is None:
        found = look(watch)
        watch.gave(torque)
        ticks += 1
        assert ticks < 30
    assert found.frozen and found.joint == 0  # the others are held where they are by that torque
    assert ticks * DT == pytest.approx(np.sqrt(2 * 0.05 / 10.0), abs=0.04)


def test_what_may_stand_still_is_not_frozen():
    # At rest, for hours; with a torque that friction may take; locked; and between two messages.
    watch = MotionWatch(ARM)
    watch.gave(ARM.inverse_dynamics(Q, ZERO, [4.0, -4.0, 4.0, 4.0]))
    assert all(look(watch, dt=1.0) is None for _ in range(5000))
    watch = MotionWatch(ARM)
    locked = np.array([False, True, False, False])
    for k in range(200):
        moved = Q + 0.001 * k * ~locked
        assert look(watch, moved, desired=Q + 0.001 * k, locked=locked) is None
    watch = MotionWatch(ARM, following_error=1.0)
    for k in range(100):
        desired = Q + 0.01 * k
        assert look(watch, Q + 0.01 * (k // 10) * 10, desired=desired, new=k % 10 == 0) is None


def test_a_coarse_encoder_is_not_frozen():
    """Steps of 0.01 rad, slow and fast motions."""
    for speed in (0.01, 0.1, 1.0, 5.0):
        watch = MotionWatch(ARM)
        for k in range(2000):
            desired = Q + speed * DT * k
            seen = np.round(desired / 0.01) * 0.01
            assert look(watch, seen, v=np.full(4, speed), desired=desired) is None


def test_it_begins_anew_and_can_be_switched_off():
    watch = MotionWatch(ARM)
    for k in range(200):
        if k % 4 == 0:
            watch.forget()
        assert look(watch, desired=Q + 0.001 * k) is None
    watch = MotionWatch(ARM, following_error=0.0, frozen_motion=0.0)
    assert all(look(watch, desired=Q + 0.1 * k) is None for k in range(200))


@pytest.mark.parametrize(
    "field, changes",
    [
        ("following_error", {"following_error": [0.1, 0.2]}),
        ("following_error", {"following_error": -0.1}),
        ("frozen_motion", {"frozen_motion": -1.0}),
        ("standstill", {"standstill": np.nan}),
    ],
)
def test_senseless_settings_are_refused(field, changes):
    with pytest.raises(ArmError, match=field):
        MotionWatch(ARM, **changes)
