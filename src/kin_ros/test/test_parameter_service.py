"""Parameter services over real DDS: every request is answered."""

import pytest
from echo_node import Echo
from rcl_interfaces.msg import ParameterValue
from rcl_interfaces.srv import DescribeParameters, SetParametersAtomically

pytestmark = pytest.mark.node


def test_every_parameter_request_is_answered(ros):
    """rclpy itself lets these fall: the caller would wait for ever."""
    from rcl_interfaces.msg import Parameter as ParameterMessage
    from rcl_interfaces.srv import SetParameters

    node = ros.add(Echo)
    before = node.parameters
    absurd = ParameterMessage(name="default_timeout", value=ParameterValue(type=200))
    good = ParameterMessage(
        name="default_timeout", value=ParameterValue(type=3, double_value=before.default_timeout)
    )
    answer = ros.call(
        SetParameters, "/echo/set_parameters", SetParameters.Request(parameters=[absurd, good])
    )
    assert [result.successful for result in answer.results] == [False, True]
    assert "default_timeout" in answer.results[0].reason
    together = SetParametersAtomically.Request(parameters=[good, absurd])
    answer = ros.call(SetParametersAtomically, "/echo/set_parameters_atomically", together)
    assert not answer.result.successful
    unknown = DescribeParameters.Request(names=["\u202e", ""])
    assert not ros.call(DescribeParameters, "/echo/describe_parameters", unknown).descriptors
    assert node.parameters == before
