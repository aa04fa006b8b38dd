"""Types of inline parameters: YAML decides, as in ``ros2 launch``.

``3`` is an integer, ``3.0`` a double, ``true`` a boolean, ``[1, 2]`` a list; ``'3'`` with quotes
inside is a string. Lists hold one type only. A value with substitutions gets its type after they
are replaced.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import yaml

from kin_tools.substitution import Scope, parse, perform

__all__ = ["ParameterValue", "ValueProblem", "read_value"]

ParameterValue: TypeAlias = "bool | int | float | str | list[Any]"
_SCALARS = (bool, int, float, str)
_INTEGER_LIMIT = 2**63


class ValueProblem(ValueError):
    """A value that no ROS parameter can hold."""


def _kind(value: Any) -> str:
    return "null" if value is None else type(value).__name__


def _from_yaml(text: str, *, substitutions: bool) -> ParameterValue:
    """The YAML value of a text, which may be a string whenever ``substitutions`` may follow."""
    if not text:
        return text
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        if substitutions:
            return text
        raise ValueProblem(f"'{text}' is not valid YAML; quote it to make it a string") from None
    _check(value, strings_pass=substitutions)
    return value  # type: ignore[no-any-return]


def _check(value: Any, *, strings_pass: bool) -> None:
    if isinstance(value, list):
        member = next((type(item) for item in value if type(item) is not str), str)
        if member not in _SCALARS:
            raise ValueProblem(f"a list cannot hold a {member.__name__}")
        for item in value:
            if not isinstance(item, member) and not (strings_pass and isinstance(item, str)):
                raise ValueProblem(
                    f"a list holds one type only, this one has {member.__name__} and {_kind(item)}"
                )
        return
    if not isinstance(value, _SCALARS):
        raise ValueProblem(f"a parameter cannot be a {_kind(value)}; quote it to make it a string")


def read_value(text: str, scope: Scope) -> ParameterValue:
    """The value of a ``value`` attribute, substitutions replaced.

    Raises:
        ValueProblem: No parameter can hold it.
        SubstitutionError: A substitution in it is wrong, or has no value.
    """
    value: Any = _from_yaml(text, substitutions=True)
    if isinstance(value, list):
        kinds = sorted({type(item).__name__ for item in value if not _is_open(item)})
        if len(kinds) > 1:
            raise ValueProblem(f"a list holds one type only, this one has {' and '.join(kinds)}")
        value = [_replaced(item, scope) for item in value]
    else:
        value = _replaced(value, scope)
    _check(value, strings_pass=False)
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, int) and not -_INTEGER_LIMIT <= item < _INTEGER_LIMIT:
            raise ValueProblem(f"{item} does not fit in 64 bits")
    return value  # type: ignore[no-any-return]


def _is_open(item: Any) -> bool:
    """Whether it is a text that still has substitutions in it."""
    return isinstance(item, str) and any(not isinstance(part, str) for part in parse(item))


def _replaced(item: Any, scope: Scope) -> Any:
    """What a text becomes; only one that had substitutions is YAML once more."""
    if not isinstance(item, str):
        return item
    text = perform(parse(item), scope)
    return _from_yaml(text, substitutions=False) if _is_open(item) else text
