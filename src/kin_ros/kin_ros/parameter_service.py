"""rclpy's parameter services, with an answer also to requests that rclpy lets fall.

A value of a type that does not exist, or one that the checks of rclpy trip over, raises in rclpy's
own callback: the caller then waits for ever. Here it is told why it is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter_service import ParameterService

from kin_ros.bets import Bet

__all__ = ["AnsweringParameterService"]

_BET = Bet(
    name="parameter services that always answer",
    otherwise="a request that rclpy cannot read is not answered",
)
_CALLBACKS = tuple(
    f"_{verb}_callback"
    for verb in (
        *("describe_parameters", "get_parameters", "get_parameter_types", "list_parameters"),
        *("set_parameters", "set_parameters_atomically"),
    )
)


class AnsweringParameterService(ParameterService):
    """The six parameter services of a node; every request gets an answer."""

    def __init__(self, node: Node) -> None:
        _BET.holds((ParameterService, *_CALLBACKS))
        super().__init__(node)

    def _set_parameters_callback(self, request: Any, response: Any) -> Any:
        for one in request.parameters:
            single = type(request)(parameters=[one])
            try:
                answer = super()._set_parameters_callback(single, type(response)())
                response.results.extend(answer.results)
            except Exception as error:
                response.results.append(_refusal(one.name, error))
        return response

    def _set_parameters_atomically_callback(self, request: Any, response: Any) -> Any:
        try:
            return super()._set_parameters_atomically_callback(request, response)
        except Exception as error:
            names = ", ".join(one.name for one in request.parameters[:5])
            response.result = _refusal(names, error)
            return response

    def _describe_parameters_callback(self, request: Any, response: Any) -> Any:
        return _or_empty(super()._describe_parameters_callback, request, response)

    def _get_parameters_callback(self, request: Any, response: Any) -> Any:
        return _or_empty(super()._get_parameters_callback, request, response)

    def _get_parameter_types_callback(self, request: Any, response: Any) -> Any:
        return _or_empty(super()._get_parameter_types_callback, request, response)

    def _list_parameters_callback(self, request: Any, response: Any) -> Any:
        return _or_empty(super()._list_parameters_callback, request, response)


def _refusal(names: str, error: Exception) -> SetParametersResult:
    return SetParametersResult(successful=False, reason=f"{names[:100]}: {error}"[:500])


def _or_empty(callback: Callable[[Any, Any], Any], request: Any, response: Any) -> Any:
    """An empty list is how these services say that a name is unknown."""
    try:
        return callback(request, response)
    except Exception:
        return type(response)()
