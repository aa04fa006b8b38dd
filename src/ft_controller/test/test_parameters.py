import dataclasses

import numpy as np
import pytest

pytest.importorskip("rclpy")

from ft_controller import Arm, Timing
from ft_controller.parameters import FtParameters, SimulatorParameters
from kin_core.errors import InvalidInput


def test_controller_and_simulator_have_the_same_arm_the_default_one():
    for parameters in (FtParameters(), SimulatorParameters()):
        parameters.check()
        for name in ("mass", "length", "com", "inertia", "friction"):
            expected = getattr(Arm.four_link(), name)
            assert getattr(parameters.arm(), name) == pytest.approx(expected)


@pytest.mark.parametrize("cls", [FtParameters, SimulatorParameters])
@pytest.mark.parametrize(
    "field, value",
    [
        ("joints", ()),
        ("joints", ("a", "b", "c", "a")),
        ("joints", ("a", "b", "c", "")),
        ("mass", (1.0, 1.0)),
        ("mass", (1.0, 1.0, 0.0, 1.0)),
        ("inertia", (1.0, 1.0, -1.0, 1.0)),
        ("friction", (0.0,)),
        ("lower", (0.0, 0.0, 0.0, 3.0)),
        ("upper", (1.0, 1.0, 1.0)),
    ],
)
def test_what_does_not_fit_together_is_refused_by_name(cls, field, value):
    with pytest.raises(InvalidInput, match=field):
        dataclasses.replace(cls(), **{field: value}).check()


@pytest.mark.parametrize(
    "cls, field, value",
    [
        (FtParameters, "kp", (1.0, 2.0)),
        (FtParameters, "following_error", ()),
        (FtParameters, "torque_limit", (1.0, 1.0, 1.0)),
        (FtParameters, "torque_limit", (1.0, 1.0, 1.0, 0.0)),
        (FtParameters, "payload_com", (0.0, 0.0)),
        (SimulatorParameters, "engine", "mujoco"),
        (SimulatorParameters, "start", (0.0, 0.0)),
        (SimulatorParameters, "start", (0.0, 0.0, 0.0, 9.0)),
    ],
)
def test_what_one_node_alone_has_is_checked_too(cls, field, value):
    with pytest.raises(InvalidInput, match=field):
        dataclasses.replace(cls(), **{field: value}).check()


def test_limits_deadlines_and_gains_are_those_of_the_parameters():
    now = FtParameters(speed_limit=3.0, hold_time=0.7, pause_time=0.4, kp=(50.0,), clean_ticks=9)
    limits = now.limits(np.full(4, -1.0), np.full(4, 2.0))
    assert (limits.speed == 3.0).all() and (limits.hold, limits.pause) == (0.7, 0.4)
    assert (limits.lower == -1.0).all() and (limits.upper == 2.0).all()
    assert limits.torque.tolist() == list(now.torque_limit)
    assert now.timing() == Timing.realtime(now.control_rate, now.stall_time, 0.0)
    assert dataclasses.replace(now, pace="states").timing() == Timing.patient()
    assert (now.entry().speed, now.entry().acceleration) == (now.plan_speed, now.plan_acceleration)
    group = now.replica_group()
    assert (group.p, group.controller) == (4, "echo") and group.alive == 0  # nothing is started
