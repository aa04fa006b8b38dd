"""Types of inline parameters: YAML decides, as in ``ros2 launch``.

``3`` is an integer, ``3.0`` a double, ``true`` a boolean, ``[1, 2]`` a list; ``'3'`` with quotes
inside is a string. Lists hold one type only. A value with substitutions gets its type after they
are replaced.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import yaml

from kin_tools.substitution import Scope, Template, Text, parse, perform

__all__ = ["ParameterValue", "ValueProblem", "parse_value", "perform_value"]

ParameterValue: TypeAlias = "bool | int | float | str | list[Any]"
_SCALARS = (bool, int, float, str)
_INTEGER_LIMIT = 2**63


class ValueProblem(ValueError):
    """A value that no ROS parameter can hold."""


class _Pending:
    """A value that still has substitutions in it."""

    def __init__(self, template: Template) -> None:
        self.template = template


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


def parse_value(text: str) -> Any:
    """Read a ``value`` attribute; give the result to :func:`perform_value`.

    Raises:
        ValueProblem: No parameter can hold it.
        SubstitutionError: A substitution in it is wrong.
    """
    value = _from_yaml(text, substitutions=True)
    if isinstance(value, str):
        return _pending_or_text(value)
    if isinstance(value, list):
        items = [_pending_or_text(item) if isinstance(item, str) else item for item in value]
        kinds = {type(item) for item in items if not isinstance(item, _Pending)}
        if len(kinds) > 1:
            names = sorted(kind.__name__ for kind in kinds)
            raise ValueProblem(f"a list holds one type only, this one has {' and '.join(names)}")
        return items
    return value


def _pending_or_text(text: str) -> str | _Pending:
    template = parse(text)
    if len(template) == 1 and isinstance(template[0], Text):
        return template[0].text
    return _Pending(template)


def perform_value(value: Any, scope: Scope) -> ParameterValue:
    """Replace what :func:`parse_value` left open.

    Raises:
        ValueProblem: No parameter can hold the result.
        SubstitutionError: A substitution has no value.
    """
    if isinstance(value, list):
        items = [_perform_item(item, scope) for item in value]
        _check(items, strings_pass=False)
        result: Any = items
    else:
        result = _perform_item(value, scope)
    for item in result if isinstance(result, list) else [result]:
        if isinstance(item, int) and not -_INTEGER_LIMIT <= item < _INTEGER_LIMIT:
            raise ValueProblem(f"{item} does not fit in 64 bits")
    return result  # type: ignore[no-any-return]


def _perform_item(item: Any, scope: Scope) -> Any:
    if isinstance(item, _Pending):
        return _from_yaml(perform(item.template, scope), substitutions=False)
    return item
