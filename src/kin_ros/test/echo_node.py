"""A node for tests that records what happens to it and can be told to fail."""

import threading
from dataclasses import dataclass

from kin_interfaces.srv import CheckReady
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.msg import Parameter as ParameterMsg
from rcl_interfaces.msg import ParameterType, ParameterValue
from rcl_interfaces.srv import SetParametersAtomically
from std_msgs.msg import Float64

from kin_core.errors import InvalidInput
from kin_ros.node import KinNode
from kin_ros.parameters import ParameterSet, parameter


@dataclass(frozen=True, kw_only=True)
class EchoParameters(ParameterSet):
    gain: float = parameter(1.0, "factor [-]", minimum=0.0, maximum=10.0)
    offset: float = parameter(0.0, "added [m]", minimum=-5.0, maximum=5.0)
    steps: int = parameter(3, "steps", minimum=1, maximum=9)
    mode: str = parameter("plain", "how", choices=("plain", "fancy"))
    names: tuple[str, ...] = parameter((), "names")
    device: str = parameter("a", "fixed at the start", read_only=True)

    def check(self) -> None:
        if self.gain + self.offset > 12.0:
            raise InvalidInput("gain", "gain + offset must be at most 12")


class Echo(KinNode[EchoParameters]):
    """A node that records what happens to it and can be told to fail."""

    def __init__(self, **arguments):
        super().__init__("echo", EchoParameters, **arguments)
        self.calls = []
        self.fail_in = ""
        self.failure = RuntimeError("broken on purpose")
        self.release = threading.Event()
        self.handler = lambda request, task: CheckReady.Response()
        self.ticks = 0
        self.heard = []

    def _hook(self, name):
        self.calls.append(name)
        if self.fail_in == name:
            raise self.failure

    def configure(self):
        self.serve(CheckReady, "~/work", lambda request, task: self.handler(request, task))
        self.serve(
            CheckReady, "~/inline", lambda request, task: self.handler(request, task), inline=True
        )
        self.output = self.publish_to(Float64, "output")
        self.listen(Float64, "input", self._heard)
        self.every(0.01, self._tick, steady=True)
        self._hook("configure")

    def _heard(self, message):
        if message.data < 0:
            raise InvalidInput("data", "must not be negative")
        self.heard.append(message.data)
        self.output.publish(Float64(data=message.data * self.parameters.gain))

    def _tick(self):
        self.ticks += 1

    def activate(self):
        self._hook("activate")

    def deactivate(self):
        self._hook("deactivate")

    def cleanup(self):
        self._hook("cleanup")


def change(ros, transition):
    request = ChangeState.Request(transition=Transition(id=transition))
    return ros.call(ChangeState, "/echo/change_state", request).success


def state(ros):
    return ros.call(GetState, "/echo/get_state", GetState.Request()).current_state.label


def set_parameter(ros, name, value, kind):
    fields = {
        ParameterType.PARAMETER_DOUBLE: "double_value",
        ParameterType.PARAMETER_INTEGER: "integer_value",
        ParameterType.PARAMETER_STRING: "string_value",
        ParameterType.PARAMETER_STRING_ARRAY: "string_array_value",
        ParameterType.PARAMETER_BOOL: "bool_value",
    }
    content = ParameterValue(type=kind, **{fields[kind]: value})
    request = SetParametersAtomically.Request(parameters=[ParameterMsg(name=name, value=content)])
    return ros.call(SetParametersAtomically, "/echo/set_parameters_atomically", request).result
