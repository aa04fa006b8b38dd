"""Right and wrong values of parameters."""

import math

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    ParameterType,
)

from kin_testing.malformed_parameters import ParameterDraw


def descriptors():
    return [
        ParameterDescriptor(
            name="gain",
            type=ParameterType.PARAMETER_DOUBLE,
            floating_point_range=[FloatingPointRange(from_value=0.0, to_value=2.0)],
        ),
        ParameterDescriptor(
            name="mode",
            type=ParameterType.PARAMETER_STRING,
            additional_constraints="one of: plain, fancy",
        ),
        ParameterDescriptor(name="names", type=ParameterType.PARAMETER_STRING_ARRAY),
        ParameterDescriptor(
            name="steps",
            type=ParameterType.PARAMETER_INTEGER,
            integer_range=[IntegerRange(from_value=1, to_value=9)],
        ),
    ]


def test_every_parameter_gets_right_and_wrong_values():
    draw = ParameterDraw(1, descriptors())
    made = [one for number in range(400) for one in draw.changes(number)]
    assert repr(made) == repr(
        [one for number in range(400) for one in ParameterDraw(1, descriptors()).changes(number)]
    )
    assert {"gain", "mode", "names", "steps"} < {one.name for one in made}
    gains = [one.value for one in made if one.name == "gain"]
    assert any(v.type == 3 and 0.0 <= v.double_value <= 2.0 for v in gains)
    assert any(v.type == 3 and math.isnan(v.double_value) for v in gains)
    assert {1, 2, 3, 4, 200} <= {v.type for v in gains}
    modes = {one.value.string_value for one in made if one.name == "mode"}
    assert {"plain", "fancy"} <= modes
    assert any(len(mode) > 1000 for mode in modes)
    assert any(1 <= one.value.integer_value <= 9 for one in made if one.name == "steps")
    assert any(one.value.integer_value == 2**63 - 1 for one in made if one.name == "steps")
