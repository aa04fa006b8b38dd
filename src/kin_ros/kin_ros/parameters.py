"""Typed parameters: one frozen class per node says name, type, default, range and meaning.

    @dataclass(frozen=True, kw_only=True)
    class ArmParameters(ParameterSet):
        rate: float = parameter(1000.0, "control rate [Hz]", minimum=1.0, maximum=10000.0)

A value outside its range, of the wrong type, or at odds with another one is refused with a
sentence, and the node keeps what it had.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import sys
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.exceptions import ParameterUninitializedException
from rclpy.node import Node
from rclpy.parameter import Parameter

from kin_core.errors import InvalidInput
from kin_core.texts import shortened
from kin_ros.bets import Bet

__all__ = ["Field", "ParameterListener", "ParameterSet", "describe", "parameter"]

_META = "kin_ros.parameter"

_BET = Bet(
    name="parameters in their declared types",
    otherwise="5 given for 5.0, or an empty list, may get another type than the declared one",
)

#: Most characters of a text, and most elements of a list.
LONGEST_TEXT = 4096
LONGEST_LIST = 10_000
_LARGEST = sys.float_info.max

_SCALARS = {
    bool: Parameter.Type.BOOL,
    int: Parameter.Type.INTEGER,
    float: Parameter.Type.DOUBLE,
    str: Parameter.Type.STRING,
}
_TUPLES = {
    bool: Parameter.Type.BOOL_ARRAY,
    int: Parameter.Type.INTEGER_ARRAY,
    float: Parameter.Type.DOUBLE_ARRAY,
    str: Parameter.Type.STRING_ARRAY,
}
_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


@dataclass(frozen=True)
class _Spec:
    description: str
    minimum: float | None
    maximum: float | None
    choices: tuple[str, ...]
    read_only: bool
    longest: int


def parameter(
    default: Any,
    description: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: Sequence[str] = (),
    read_only: bool = False,
    longest: int = LONGEST_TEXT,
) -> Any:
    """Declare one parameter as a dataclass field.

    Args:
        default: Value when none is given.
        description: What it means, with its unit in brackets.
        minimum: Smallest value allowed, for numbers and for each element of a tuple of numbers.
        maximum: Largest value allowed.
        choices: The texts allowed; empty for any.
        read_only: Whether it can be set only at the start. What names a file or a folder must be:
            otherwise any client could have the node open any file.
        longest: Most characters of a text.
    """
    spec = _Spec(description, minimum, maximum, tuple(choices), read_only, longest)
    return dataclasses.field(default=default, metadata={_META: spec})


@dataclass(frozen=True, kw_only=True)
class ParameterSet:
    """Base of the parameter class of a node; holds what every node has."""

    autostart: bool = parameter(
        True, "configure and activate without being told to", read_only=True
    )
    hardware_id: str = parameter(
        "",
        "what the node stands for in /diagnostics, such as the serial number of a robot; empty: the"
        " name of this machine",
        read_only=True,
    )
    default_timeout: float = parameter(
        10.0, "time allowed to a request that does not name one [s]", minimum=1e-3, maximum=86400.0
    )
    max_timeout: float = parameter(
        600.0,
        "longest time that a request may allow itself; longer ones are refused [s]",
        minimum=1e-3,
        maximum=86400.0,
    )
    worker_threads: int = parameter(
        2, "threads that solve requests", minimum=1, maximum=64, read_only=True
    )
    queue_limit: int = parameter(
        64, "requests that may wait for a thread; more are refused", minimum=1, maximum=100000
    )

    def check(self) -> None:
        """Check values against each other; raise InvalidInput with a sentence."""


P = TypeVar("P", bound=ParameterSet)


@dataclass(frozen=True)
class Field:
    """One parameter: what the node checks, and what the documentation shows.

    Attributes:
        name: Its name.
        element: Its type, or that of its elements.
        is_tuple: Whether it is a list.
        default: Its value when none is given.
        spec: What was declared of it.
    """

    name: str
    element: type[Any]
    is_tuple: bool
    default: Any
    spec: _Spec

    @property
    def allowed(self) -> str:
        """The values that are taken, for people."""
        spec = self.spec
        words = ", ".join(spec.choices) or _WORDS[self.element]
        if spec.minimum is not None or spec.maximum is not None:
            words = f"{words} {_range_words(spec.minimum, spec.maximum)}"
        return f"list, each {words}" if self.is_tuple else words

    @property
    def ros_type(self) -> Parameter.Type:
        """Its type as ROS has it."""
        return (_TUPLES if self.is_tuple else _SCALARS)[self.element]

    def convert(self, value: Any) -> Any:
        """Return ``value`` in the field's own type, or raise InvalidInput."""
        if not self.is_tuple:
            return self._element(value, self.name)
        if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
            raise InvalidInput(self.name, f"must be a list, got {shortened(repr(value), 200)}")
        if len(value) > LONGEST_LIST:
            raise InvalidInput(
                self.name, f"must have at most {LONGEST_LIST} elements, got {len(value)}"
            )
        return tuple(self._element(v, f"{self.name}[{i}]") for i, v in enumerate(value))

    def _element(self, value: Any, name: str) -> Any:
        if self.element is float and type(value) is int:
            value = float(value)
        # An exact type: True is an int to isinstance, and to nobody else.
        if not isinstance(value, self.element) or isinstance(value, bool) > (self.element is bool):
            raise InvalidInput(
                name, f"must be {_WORDS[self.element]}, got {shortened(repr(value), 200)}"
            )
        if self.element is str and len(value) > self.spec.longest:
            raise InvalidInput(
                name, f"must have at most {self.spec.longest} characters, got {len(value)}"
            )
        if self.element is float and not math.isfinite(value):
            raise InvalidInput(name, f"must be finite, got {value}")
        if self.element is float and abs(value) < sys.float_info.min:
            value = 0.0  # the reader of parameter files takes a subnormal number for a text
        low, high = self.spec.minimum, self.spec.maximum
        if self.element in (int, float) and (
            (low is not None and value < low) or (high is not None and value > high)
        ):
            raise InvalidInput(name, f"must be {_range_words(low, high)}, got {value:g}")
        if self.spec.choices and value not in self.spec.choices:
            raise InvalidInput(
                name,
                f"must be one of {', '.join(self.spec.choices)}, got {shortened(repr(value), 200)}",
            )
        return value

    def as_parameter(self, value: Any) -> Parameter:
        """A converted value as a ROS parameter of the declared type."""
        return Parameter(self.name, self.ros_type, list(value) if self.is_tuple else value)

    def descriptor(self) -> ParameterDescriptor:
        """What ``ros2 param describe`` shows of it."""
        spec = self.spec
        described = ParameterDescriptor(
            name=self.name,
            type=self.ros_type.value,
            description=spec.description,
            read_only=spec.read_only,
            # The type is ours to check, with a sentence; "5" for a double is then no mistake.
            dynamic_typing=True,
        )
        if spec.choices:
            described.additional_constraints = "one of: " + ", ".join(spec.choices)
        low, high = spec.minimum, spec.maximum
        if self.element is float:  # without a range of its own: whatever is finite
            described.floating_point_range = [
                FloatingPointRange(
                    from_value=-_LARGEST if low is None else float(low),
                    to_value=_LARGEST if high is None else float(high),
                )
            ]
        if self.element is int:
            described.integer_range = [
                IntegerRange(
                    from_value=-(2**63) if low is None else int(low),
                    to_value=2**63 - 1 if high is None else int(high),
                )
            ]
        return described


def _range_words(low: float | None, high: float | None) -> str:
    if low is None:
        return f"at most {high:g}"
    if high is None:
        return f"at least {low:g}"
    return f"between {low:g} and {high:g}"


def describe(cls: type[ParameterSet]) -> dict[str, Field]:
    """Every parameter of a class by its name, in the order of declaration."""
    hints = typing.get_type_hints(cls)
    found = {}
    for item in dataclasses.fields(cls):
        spec = item.metadata.get(_META)
        if spec is None:
            raise TypeError(f"{cls.__name__}.{item.name} must be declared with parameter(...)")
        hint = hints[item.name]
        is_tuple = typing.get_origin(hint) is tuple
        element = typing.get_args(hint)[0] if is_tuple else hint
        if isinstance(element, types.GenericAlias) or element not in _SCALARS:
            raise TypeError(f"{cls.__name__}.{item.name}: parameters cannot be of type {hint}")
        found[item.name] = Field(item.name, element, is_tuple, item.default, spec)
    return found


class ParameterListener(typing.Generic[P]):
    """Declares the parameters of a class on a node and keeps the current frozen instance."""

    def __init__(
        self,
        node: Node,
        cls: type[P],
        changed: typing.Callable[[P, P], None] | None = None,
    ) -> None:
        """Declare every parameter, taking overrides from files and the command line.

        Raises:
            InvalidInput: An override is of the wrong type, out of range or contradicts another.
        """
        self._adjusts = _BET.holds((node, "_parameter_overrides", "_parameters"))
        self._node = node
        self._cls = cls
        self._fields = describe(cls)
        self._changed = changed
        values = {name: self._declare(field) for name, field in self._fields.items()}
        self.current: P = self._build(values)
        node.add_pre_set_parameters_callback(self._own_types)
        node.add_on_set_parameters_callback(self._on_set)
        node.add_post_set_parameters_callback(self._after_set)

    def _declare(self, field: Field) -> Any:
        default = list(field.default) if field.is_tuple else field.default
        overrides = self._node._parameter_overrides if self._adjusts else {}
        given = overrides.get(field.name)
        if given is not None and given.type_ is not Parameter.Type.NOT_SET:
            # Checked by us first: rclpy's own refusal does not say what would be right. Stored in
            # the declared type: "5" for a double would be an integer to every other client.
            overrides[field.name] = field.as_parameter(field.convert(given.value))
        initial = Parameter(field.name, field.ros_type, default)
        try:
            self._node.declare_parameter(field.name, initial.value, field.descriptor())
        except ParameterUninitializedException:  # an empty list in a file has no type
            pass
        except Exception as error:
            raise InvalidInput(field.name, str(error)) from error
        value = self._node.get_parameter(field.name).value
        converted = field.convert(default if value is None else value)
        if self._adjusts and self._node.get_parameter(field.name).type_ is not field.ros_type:
            # rclpy takes an empty list for one of bytes, whatever was declared.
            self._node._parameters[field.name] = field.as_parameter(converted)
        return converted

    def _build(self, values: dict[str, Any]) -> P:
        built = self._cls(**values)
        if built.default_timeout > built.max_timeout:
            raise InvalidInput(
                "default_timeout",
                f"must be at most max_timeout = {built.max_timeout:g}, got"
                f" {built.default_timeout:g}",
            )
        built.check()
        return built

    def _candidate(self, changes: Sequence[Parameter]) -> P:
        values = {name: getattr(self.current, name) for name in self._fields}
        for change in changes:
            field = self._fields.get(change.name)
            if field is not None:
                if change.type_ is Parameter.Type.NOT_SET:
                    raise InvalidInput(change.name, "cannot be removed")
                values[change.name] = field.convert(change.value)
        return self._build(values)

    def _own_types(self, changes: list[Parameter]) -> list[Parameter]:
        """Store what is kept: in the declared type (5 for 5.0, an empty list) and as converted."""
        converted = []
        for change in changes:
            field = self._fields.get(change.name)
            if field is not None and change.type_ is not Parameter.Type.NOT_SET:
                with contextlib.suppress(InvalidInput):  # it is refused with a sentence below
                    change = field.as_parameter(field.convert(change.value))
            converted.append(change)
        return converted

    def _on_set(self, changes: list[Parameter]) -> SetParametersResult:
        try:
            self._candidate(changes)
        except InvalidInput as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _after_set(self, changes: list[Parameter]) -> None:
        old, new = self.current, self._candidate(changes)
        if new != old:
            self.current = new
            if self._changed is not None:
                self._changed(old, new)
