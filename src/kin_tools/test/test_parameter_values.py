"""The type of an inline parameter is that of its YAML, as ``ros2 launch`` has it."""

from pathlib import Path

import pytest

from kin_tools.parameter_values import ValueProblem, read_value
from kin_tools.substitution import Scope

SCOPE = Scope({"three": "3", "word": "abc", "list": "[1, 2]", "bad": "[1", "null": "~"}, Path("/"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("3.0", 3.0),
        ("true", True),
        ("'3'", "3"),
        ("abc", "abc"),
        ("", ""),
        ("[1, 2]", [1, 2]),
        ("[a, 'b']", ["a", "b"]),
        ("$(var three)", 3),
        ("'$(var three)'", 3),
        ("$(var word)", "abc"),
        ("$(var list)", [1, 2]),
        ("[$(var three), 4]", [3, 4]),
        ("-9223372036854775808", -(2**63)),
    ],
)
def test_values(text, value):
    found = read_value(text, SCOPE)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "text",
    ["[1, 2.0]", "[1, a]", "[[1]]", "~", "{a: 1}", "9223372036854775808", "$(var bad)",
     "$(var null)", "[$(var word), 1]", "2026-11-18"],
)  # fmt: skip
def test_what_no_parameter_can_hold(text):
    with pytest.raises(ValueProblem):
        read_value(text, SCOPE)
