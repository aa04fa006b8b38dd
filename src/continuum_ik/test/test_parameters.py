"""Parameters of the node that belong together."""

import pytest

from continuum_ik.parameters import ContinuumParameters
from kin_core.errors import InvalidInput


def test_the_defaults_are_a_robot():
    parameters = ContinuumParameters()
    parameters.check()
    assert parameters.joint_names == ("leg_0", "leg_1", "leg_2", "leg_3", "leg_4", "leg_5")
    assert not parameters.detours
    assert not parameters.allow_unstable


@pytest.mark.parametrize("names", [("a",) * 6, tuple("abcde"), tuple("abcdefg"), ()])
def test_legs_have_six_different_names(names):
    with pytest.raises(InvalidInput, match="joint_names"):
        ContinuumParameters(joint_names=names).check()
