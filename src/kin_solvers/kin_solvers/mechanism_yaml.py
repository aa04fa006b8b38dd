"""Mechanisms from YAML. The format is described in docs/cuik.md."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kin_core import checks
from kin_core.checks import shown
from kin_core.errors import InvalidInput
from kin_core.rotations import inverse_transform, quaternion_to_matrix, rpy_to_matrix
from kin_core.yamls import load_yaml
from kin_solvers.errors import MechanismError, SizeError, own_errors
from kin_solvers.mechanism import (
    AXES,
    MAX_LOOPS,
    MAX_VARIABLES,
    Constant,
    Loop,
    Mechanism,
    Motion,
    Variable,
    rotation,
    translation,
)

__all__ = ["load_mechanism"]

Matrix = NDArray[np.float64]
LIMIT_BYTES = 1 << 20

_STEPS = tuple(f"{verb}_{axis}" for verb in ("rotate", "translate") for axis in AXES)


def load_mechanism(source: str | Path, *, name: str = "") -> Mechanism:
    """Read a mechanism file.

    Args:
        source: The YAML text, or a Path to a file.
        name: What to call the text in errors.

    Raises:
        MechanismError: With the file and the field that is wrong.
    """
    with own_errors(MechanismError):
        checks.text("name", name, 4096)
        if not isinstance(source, (str, Path)):
            raise MechanismError("source", f"must be a text or a Path, got {shown(source)}")
    label = name or (str(source) if isinstance(source, Path) else "mechanism")
    try:
        data = load_yaml(source, name=label, limit_bytes=LIMIT_BYTES)
        return _Reader(label).mechanism(data)
    except MechanismError as error:
        if error.field.startswith(label):
            raise
        raise MechanismError(f"{label}: {error.field}", error.problem) from None
    except InvalidInput as error:
        field = error.field if error.field.startswith(label) else f"{label}: {error.field}"
        raise MechanismError(field, error.problem) from None


def _count(where: str, size: int, most: int) -> None:
    """Refuse large lists before anything is made of them."""
    if size > most:
        raise SizeError(f"{where}: {size} is more than the limit of {most}")


class _Reader:
    """Reads one document; every error names the field."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.degrees = False
        self.names: list[str] = []
        self.kinds: list[str] = []

    def mechanism(self, data: Any) -> Mechanism:
        table = self._table(
            "", data, {"name", "angles", "variables", "loops"}, {"variables", "loops"}
        )
        if "angles" in table:
            unit = checks.one_of("angles", table["angles"], ("degrees", "radians"))
            self.degrees = unit == "degrees"
        if not isinstance(table["variables"], dict) or not table["variables"]:
            raise MechanismError("variables", "must map names to {type, range}")
        _count("variables", len(table["variables"]), MAX_VARIABLES)
        variables = tuple(
            self._variable(checks.title("variables", k), v) for k, v in table["variables"].items()
        )
        self.names = [v.name for v in variables]
        self.kinds = [v.kind for v in variables]
        if not isinstance(table["loops"], list) or not table["loops"]:
            raise MechanismError("loops", "must be a list of loops")
        _count("loops", len(table["loops"]), MAX_LOOPS)
        target: Matrix | None = None
        loops = []
        for k, item in enumerate(table["loops"]):
            loop, pose = self._loop(f"loops[{k}]", item)
            loops.append(loop)
            target = pose if k == 0 else target
        if len(loops) > 1:
            target = None
        name = checks.title("name", table.get("name", "mechanism"))
        return Mechanism(name, variables, tuple(loops), target=target)

    def _variable(self, name: str, data: Any) -> Variable:
        where = f"variables.{name}"
        table = self._table(where, {} if data is None else data, {"type", "range"}, set())
        kind = table.get("type", "rotation")
        if not isinstance(kind, str) or kind not in ("rotation", "translation"):
            raise MechanismError(
                f"{where}.type", f"must be rotation or translation, got {shown(kind)}"
            )
        if "range" not in table:
            if kind == "translation":
                raise MechanismError(f"{where}.range", "is missing; a translation needs one")
            return Variable(name)
        lower, upper = self._vector(f"{where}.range", table["range"], 2)
        if kind == "rotation":
            lower, upper = self._angle(lower), self._angle(upper)
        return Variable(name, kind, lower, upper)

    def _loop(self, where: str, data: Any) -> tuple[Loop, Matrix | None]:
        table = self._table(where, data, {"name", "closure", "chain", "dh", "target"}, set())
        if ("chain" in table) == ("dh" in table):
            raise MechanismError(where, "needs either chain or dh")
        closure = table.get("closure", "pose")
        if not isinstance(closure, str) or closure not in ("pose", "point"):
            raise MechanismError(f"{where}.closure", f"must be pose or point, got {shown(closure)}")
        key = "chain" if "chain" in table else "dh"
        steps = table[key]
        if not isinstance(steps, list) or not steps:
            raise MechanismError(f"{where}.{key}", "must be a list")
        _count(f"{where}.{key}", len(steps), 200)
        factors: list[Constant | Motion] = []
        for k, step in enumerate(steps):
            place = f"{where}.{key}[{k}]"
            factors += self._step(place, step) if key == "chain" else self._dh_row(place, step)
        target = None
        if "target" in table:
            target = self._transform(f"{where}.target", table["target"])
            factors.append(Constant(inverse_transform(target)))
        name = checks.title(f"{where}.name", table.get("name", where))
        return Loop(tuple(factors), closure, name), target

    def _step(self, where: str, step: Any) -> list[Constant | Motion]:
        if not isinstance(step, dict) or len(step) != 1:
            raise MechanismError(where, f"must be one of {', '.join(_STEPS)}, transform: value")
        key, value = next(iter(step.items()))
        if key == "transform":
            return [Constant(self._transform(f"{where}.transform", value))]
        if key not in _STEPS:
            checks.one_of(where, key, (*_STEPS, "transform"))
        verb, axis = key.split("_")
        kind = "rotation" if verb == "rotate" else "translation"
        return [self._factor(f"{where}.{key}", value, AXES.index(axis), kind)]

    def _dh_row(self, where: str, row: Any) -> list[Constant | Motion]:
        table = self._table(where, row, {"theta", "d", "a", "alpha"}, set())
        return [
            self._factor(f"{where}.{key}", table.get(key, 0.0), axis, kind)
            for key, axis, kind in (
                ("theta", 2, "rotation"),
                ("d", 2, "translation"),
                ("a", 0, "translation"),
                ("alpha", 0, "rotation"),
            )
        ]

    def _factor(self, where: str, value: Any, axis: int, kind: str) -> Constant | Motion:
        """A number, or the name of a variable with its sign, as a factor."""
        if not isinstance(value, str):
            amount = checks.number(where, value)
            if kind == "rotation":
                return Constant(rotation(axis, self._angle(amount)))
            return Constant(translation(axis, amount))
        sign, name = (-1, value[1:].strip()) if value.startswith("-") else (1, value.strip())
        checks.one_of(where, name, self.names)
        index = self.names.index(name)
        if self.kinds[index] != kind:
            raise MechanismError(where, f"{name} is a {self.kinds[index]}, not a {kind}")
        return Motion(index, axis, sign)

    def _transform(self, where: str, data: Any) -> Matrix:
        if isinstance(data, list):
            return checks.shape(where, data, (4, 4))
        table = self._table(where, data, {"xyz", "rpy", "quaternion"}, set())
        if "rpy" in table and "quaternion" in table:
            raise MechanismError(where, "give rpy or quaternion, not both")
        result = np.eye(4)
        result[:3, 3] = self._vector(f"{where}.xyz", table.get("xyz", [0.0, 0.0, 0.0]), 3)
        if "rpy" in table:
            r, p, y = (self._angle(x) for x in self._vector(f"{where}.rpy", table["rpy"], 3))
            result[:3, :3] = rpy_to_matrix(r, p, y)
        elif "quaternion" in table:
            q = self._vector(f"{where}.quaternion", table["quaternion"], 4)
            result[:3, :3] = quaternion_to_matrix(checks.quaternion(f"{where}.quaternion", q))
        return result

    def _angle(self, value: float) -> float:
        return math.radians(value) if self.degrees else value

    @staticmethod
    def _vector(where: str, data: Any, size: int) -> list[float]:
        if not isinstance(data, list) or len(data) != size:
            raise MechanismError(where, f"must be a list of {size} numbers, got {shown(data)}")
        return [checks.number(f"{where}[{k}]", x) for k, x in enumerate(data)]

    @staticmethod
    def _table(where: str, data: Any, known: set[str], needed: set[str]) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise MechanismError(
                where or "document", f"must be a mapping, got {type(data).__name__}"
            )
        for key in data:
            if key not in known:
                place = key if isinstance(key, str) else shown(key)
                checks.one_of(f"{where}.{place}".lstrip("."), key, sorted(known))
        for key in sorted(needed):
            if key not in data:
                raise MechanismError(f"{where}.{key}".lstrip("."), "is missing")
        return data
