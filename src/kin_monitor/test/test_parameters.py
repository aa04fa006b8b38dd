"""The parameters of the stack monitor against each other."""

import dataclasses

import pytest

from kin_core.errors import InvalidInput
from kin_monitor.parameters import MonitorParameters
from kin_ros.parameters import describe


def test_the_defaults_agree_with_each_other():
    MonitorParameters().check()


@pytest.mark.parametrize(("silence", "period"), [(0.25, 0.25), (0.1, 1.0)])
def test_silence_must_be_longer_than_the_time_between_two_questions(silence, period):
    parameters = dataclasses.replace(MonitorParameters(), silence=silence, period=period)
    with pytest.raises(InvalidInput, match="silence: must be longer than the period"):
        parameters.check()


@pytest.mark.parametrize(("name", "value"), [("period", 0.0), ("silence", -1.0), ("expected", "a")])
def test_what_is_out_of_range_is_refused(name, value):
    with pytest.raises(InvalidInput, match=name):
        describe(MonitorParameters)[name].convert(value)
