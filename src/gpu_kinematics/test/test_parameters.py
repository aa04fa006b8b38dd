"""The node's parameters."""

import pytest

from gpu_kinematics import DeltaInput
from gpu_kinematics.parameters import GpuKinematicsParameters


def test_defaults_make_a_robot():
    GpuKinematicsParameters().check()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"theta": (0.0, 1.0)}, "theta"),
        ({"angle_lower": 1.0, "angle_upper": 1.0}, "angle_lower"),
    ],
)
def test_what_makes_no_robot_is_refused(changes, field):
    with pytest.raises(DeltaInput, match=field):
        GpuKinematicsParameters(**changes).check()
