"""Computed velocity control."""

import numpy as np
import pytest
from delta_oracles import MM, joint_motion, poses

from gpu_kinematics import Delta, Limits, Status

ROBOT = Delta(MM, backend="cpu")


def test_control_brings_thousands_of_robots_to_their_targets():
    angle, target = poses(2000, 1), ROBOT.fk(poses(2000, 2)).position
    for _ in range(400):
        rate, error, status = ROBOT.control(angle, target, gain=20.0, max_rate=30.0)
        assert np.abs(rate).max() <= 30.0 * (1 + 1e-12)
        angle = angle + 0.005 * rate
    assert not status.any()
    assert error.max() < 1e-8


def test_control_with_feedforward_follows_a_moving_target():
    t = np.linspace(0, 3, 601)
    angle = joint_motion(t[:1])[0]
    worst = []
    for k in range(600):
        motion = ROBOT.forward_motion(*joint_motion(t[k : k + 1]))
        result = ROBOT.control(angle, motion.position, motion.velocity, gain=50.0, max_rate=50.0)
        angle = angle + (t[1] - t[0]) * result.rate
        worst.append(result.error[0])
    still = ROBOT.control(angle, motion.position, gain=50.0, max_rate=50.0)
    assert max(worst[50:]) < 0.05 < np.abs(still.rate).max() + 1.0


def test_control_keeps_joint_limits():
    robot = Delta(MM, Limits(-0.2, 0.6), backend="cpu")
    angle = np.full((3, 1), 0.5)
    target = ROBOT.fk(np.array([[1.0], [0.3], [0.2]])).position
    for _ in range(500):
        angle = angle + 0.01 * robot.control(angle, target, gain=20.0, max_rate=30.0).rate
        assert angle.max() <= 0.6 + 1e-12 and angle.min() >= -0.2 - 1e-12


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_control_stops_on_bad_input(bad):
    angle = np.array([[0.1, bad], [0.2, 0.2], [0.3, 0.3]])
    target = np.array([[0.0, 0.0], [bad, 0.0], [-60.0, -60.0]])
    rate, _, status = ROBOT.control(angle, target, gain=10.0, max_rate=30.0)
    assert (rate == 0).all() and (status & Status.INVALID).all()
