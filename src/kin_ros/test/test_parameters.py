"""Parameters: what is refused, what changes while a node runs, what the documentation shows."""

from dataclasses import dataclass

import pytest
from echo_node import Echo, set_parameter
from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import DescribeParameters, GetParameters

from kin_core.errors import InvalidInput
from kin_ros.parameters import ParameterSet, describe, parameter
from kin_testing.fixtures import wait_until


@dataclass(frozen=True, kw_only=True)
class Some(ParameterSet):
    gain: float = parameter(1.0, "factor [-]", minimum=0.0, maximum=10.0)
    steps: int = parameter(3, "steps", minimum=1)
    mode: str = parameter("plain", "how", choices=("plain", "fancy"), read_only=True)
    names: tuple[str, ...] = parameter((), "names")
    free: bool = parameter(True, "or not")


def test_parameters_are_described():
    rows = describe(Some)
    assert list(rows)[-5:] == ["gain", "steps", "mode", "names", "free"]
    assert rows["gain"].allowed == "a number between 0 and 10"
    assert rows["steps"].allowed == "a whole number at least 1"
    assert rows["mode"].allowed == "plain, fancy"
    assert rows["names"].allowed == "list, each a text"
    assert rows["free"].allowed == "true or false"
    assert rows["gain"].spec.description == "factor [-]"
    assert (rows["gain"].spec.read_only, rows["mode"].spec.read_only) == (False, True)
    assert rows["names"].default == ()
    assert "autostart" in rows


@pytest.mark.node
@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"gain": 11.0}, "gain: must be between 0 and 10, got 11"),
        ({"gain": "much"}, "gain: must be a number, got 'much'"),
        ({"gain": float("nan")}, "gain: must be finite"),
        ({"steps": 2.5}, "steps: must be a whole number, got 2.5"),
        ({"steps": True}, "steps: must be a whole number"),
        ({"mode": "odd"}, "mode: must be one of plain, fancy, got 'odd'"),
        ({"names": "x"}, "names: must be a list, got 'x'"),
        ({"gain": 9.0, "offset": 4.0}, "gain: gain + offset must be at most 12"),
    ],
)
def test_bad_overrides_are_refused_with_a_sentence(ros, overrides, sentence):
    with pytest.raises(InvalidInput) as refusal:
        ros.add(Echo, overrides)
    assert sentence in str(refusal.value)
    # The node that was refused is gone from the graph.
    wait_until(lambda: "echo" not in ros.node.get_node_names())


@pytest.mark.node
def test_parameters_while_running(ros):
    node = ros.add(Echo, {"names": ["x", "y"], "gain": 5})
    assert node.parameters.names == ("x", "y")
    assert node.parameters.gain == 5.0
    double, integer = ParameterType.PARAMETER_DOUBLE, ParameterType.PARAMETER_INTEGER
    text = ParameterType.PARAMETER_STRING
    assert set_parameter(ros, "gain", 7.5, double).successful
    assert node.parameters.gain == 7.5
    assert set_parameter(ros, "gain", 8, integer).successful
    assert node.parameters.gain == 8.0
    for name, value, kind, sentence in [
        ("gain", 12.0, double, "Max: 10.0"),
        ("gain", "a", text, "must be a number"),
        ("offset", 4.5, double, "at most 12"),
        ("mode", "odd", text, "plain, fancy"),
        ("device", "b", text, "read-only"),
        ("steps", 0, integer, "Max: 9"),
    ]:
        result = set_parameter(ros, name, value, kind)
        assert not result.successful
        assert sentence in result.reason, (name, result.reason)
    assert node.parameters.gain == 8.0
    request = DescribeParameters.Request(names=["gain"])
    described = ros.call(DescribeParameters, "/echo/describe_parameters", request).descriptors[0]
    assert described.description == "factor [-]"
    assert described.floating_point_range[0].to_value == 10.0


@pytest.mark.node
def test_a_whole_number_for_a_double_does_not_change_its_type(ros):
    ros.add(Echo, {"gain": 5, "names": []})
    double, integer = ParameterType.PARAMETER_DOUBLE, ParameterType.PARAMETER_INTEGER

    def value(name):
        request = GetParameters.Request(names=[name])
        return ros.call(GetParameters, "/echo/get_parameters", request).values[0]

    assert (value("gain").type, value("gain").double_value) == (double, 5.0)
    assert set_parameter(ros, "gain", 8, integer).successful
    assert (value("gain").type, value("gain").double_value) == (double, 8.0)
    assert value("names").type == ParameterType.PARAMETER_STRING_ARRAY
    assert set_parameter(ros, "names", ["a"], ParameterType.PARAMETER_STRING_ARRAY).successful
    assert not set_parameter(ros, "steps", 2.5, double).successful
    assert value("steps").type == integer


@pytest.mark.node
def test_texts_and_lists_of_parameters_are_bounded(ros):
    node = ros.add(Echo)
    texts = ParameterType.PARAMETER_STRING_ARRAY
    result = set_parameter(ros, "names", ["x" * 5000], texts)
    assert not result.successful
    assert "at most 4096 characters" in result.reason
    result = set_parameter(ros, "names", ["x"] * 10_001, texts)
    assert not result.successful
    assert "at most 10000 elements" in result.reason
    result = set_parameter(ros, "mode", "x" * 10**6, ParameterType.PARAMETER_STRING)
    assert not result.successful
    assert len(result.reason) < 1000
    assert node.parameters.names == ()
