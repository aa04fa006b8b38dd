"""Right and wrong values for the parameters that a node declares."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue

from kin_testing.malformed import FLOATS, Fuzzer

__all__ = ["ParameterDraw"]

#: Ranges that are wider bound nothing: values are drawn near zero, or near the lower end.
_UNBOUNDED = 1e12


class ParameterDraw:
    """Draws values for declared parameters; the same seed draws the same ones.

    Args:
        seed: Decides everything.
        descriptors: What the node says of its parameters.
    """

    def __init__(self, seed: int, descriptors: Sequence[Any]) -> None:
        self._seed = seed
        self._descriptors = descriptors
        self._random = random.Random(seed)  # noqa: S311
        self._texts = Fuzzer(seed)

    def changes(self, number: int) -> list[Any]:
        """The parameters of the request with a given number; each in turn gets its share."""
        self._random = random.Random(f"{self._seed} parameters {number}")  # noqa: S311
        self._texts.begin(f"texts {number}")
        chosen = [self._descriptors[number % len(self._descriptors)]]
        while self._random.random() < 0.3:
            chosen.append(self._random.choice(self._descriptors))
        made = [Parameter(name=one.name, value=self._value(one)) for one in chosen]
        if self._random.random() < 0.05:
            name = self._texts.text()  # a name of none
            made.append(Parameter(name=name, value=self._value(chosen[0])))
        return made

    def _value(self, descriptor: Any) -> Any:
        kinds = ParameterType
        kind = descriptor.type
        if self._random.random() < 0.3:  # another type, or one that does not exist
            kind = self._random.choice((*range(10), 10, 200, 255))
        value = ParameterValue(type=kind)
        ends = descriptor.floating_point_range or descriptor.integer_range
        low, high = (ends[0].from_value, ends[0].to_value) if ends else (-10.0, 10.0)
        if high - low > _UNBOUNDED:
            low, high = max(low, -10.0), min(high, max(low, -10.0) + 20.0)
        inside = self._random.random() < 0.5
        if kind == kinds.PARAMETER_BOOL:
            value.bool_value = self._random.random() < 0.5
        elif kind in (kinds.PARAMETER_INTEGER, kinds.PARAMETER_INTEGER_ARRAY):
            drawn = [self._integer(low, high, inside) for _ in range(self._count())]
            value.integer_value, value.integer_array_value = drawn[0], drawn
        elif kind in (kinds.PARAMETER_DOUBLE, kinds.PARAMETER_DOUBLE_ARRAY):
            reals = [self._real(low, high, inside) for _ in range(self._count())]
            value.double_value, value.double_array_value = reals[0], reals
        elif kind in (kinds.PARAMETER_STRING, kinds.PARAMETER_STRING_ARRAY):
            allowed = descriptor.additional_constraints.removeprefix("one of: ").split(", ")
            texts = [
                self._random.choice(allowed) if inside else self._texts.text()
                for _ in range(min(self._count(), 20))
            ]
            value.string_value, value.string_array_value = texts[0], texts
        elif kind == kinds.PARAMETER_BOOL_ARRAY:
            value.bool_array_value = [True] * self._count()
        elif kind == kinds.PARAMETER_BYTE_ARRAY:
            value.byte_array_value = [b"x"] * self._count()
        return value

    def _count(self) -> int:
        return self._random.choice((1, 1, 2, 3, 4, 6, 7, 100, 20_000))

    def _integer(self, low: float, high: float, inside: bool) -> int:
        if inside and math.isfinite(low) and math.isfinite(high):
            # Near the lower end as often as far: a million threads or blocks are no test.
            top = int(min(high, low + self._random.choice((1, 10, 100))))
            return self._random.randint(int(low), max(int(low), top))
        return self._random.choice((0, -1, 1, 2**31, -(2**31), 2**63 - 1, -(2**63)))

    def _real(self, low: float, high: float, inside: bool) -> float:
        if inside and math.isfinite(low) and math.isfinite(high):
            return self._random.uniform(low, high)
        return self._random.choice(FLOATS)
