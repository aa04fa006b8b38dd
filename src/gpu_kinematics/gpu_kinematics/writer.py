"""Writes the functions of the kernel text in another language, records spread into numbers.

A record ``p`` with the fields x, y, z becomes the numbers ``p_x``, ``p_y``, ``p_z``, as parameter,
local name or result. Nothing is compiled or executed here.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np

from gpu_kinematics.kernels import OPS, language, leaves

__all__ = ["PRECISIONS", "CWriter", "NumbaWriter", "Refused", "Writer"]

#: name -> (numpy type, C type, column of the tables of the kernel language)
PRECISIONS = {"f64": ("float64", "double", 0), "f32": ("float32", "float", 1)}
_OPERATORS: dict[type, str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARE: dict[type, str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
}
#: Operations of the language that a rendering has of its own, and their results.
_OPERATIONS: dict[str, type] = {
    **dict.fromkeys(("sqrt", "rint", "fabs", "select"), float),
    **dict.fromkeys(("both", "either"), bool),
}


class Refused(ValueError):
    """The kernel text uses something outside its small language."""


def _refuse(node: ast.AST, what: str) -> Refused:
    return Refused(f"kernel text: {what}: {ast.unparse(node)}")


@dataclass(frozen=True)
class Function:
    """One function of the text.

    Attributes:
        node: Its syntax tree.
        parameters: Name to type.
        results: Types of what it returns.
        names: What the names in it stand for.
    """

    node: ast.FunctionDef
    parameters: dict[str, type]
    results: tuple[type, ...]
    names: dict[str, Any]

    def calls(self) -> Iterator[Callable[..., Any]]:
        """The functions of the text that it calls."""
        for inner in ast.walk(self.node):
            if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name):
                called = self.names.get(inner.func.id)
                if inspect.isfunction(called) and called.__module__ != language.__name__:
                    yield called


@functools.cache
def _tree(module: ModuleType | None) -> dict[str, ast.FunctionDef]:
    if module is None:
        raise Refused("kernel text: a function without a module")
    found = ast.parse(inspect.getsource(module)).body
    return {node.name: node for node in found if isinstance(node, ast.FunctionDef)}


@functools.cache
def functions() -> dict[str, Function]:
    """Every function that the kernels call, callees first."""
    found: dict[str, Function] = {}

    def add(called: Callable[..., Any]) -> None:
        name = called.__name__
        if name in found:
            return
        hints = get_type_hints(called)
        result = hints.pop("return")
        results = get_args(result) if get_origin(result) is tuple else (result,)
        node = _tree(inspect.getmodule(called))[name]
        function = Function(node, hints, results, inspect.unwrap(called).__globals__)
        for inner in function.calls():
            add(inner)
        found[name] = function

    for op in OPS.values():
        add(op.function)
    return found


class Value(NamedTuple):
    """An expression: its type, and the text of each of its numbers."""

    kind: type
    texts: list[str]


class Writer:
    """Writes the functions of the text; subclasses say how a language looks."""

    def __init__(self, precision: str) -> None:
        self.dtype, self.ctype, self.column = PRECISIONS[precision]
        self.functions = functions()
        self._lines: list[str] = []
        self._known: dict[str, type] = {}
        self._names: dict[str, Any] = {}
        self._temporaries = 0

    # -- what a language has to say

    def number(self, value: float) -> str:
        """A literal."""
        raise NotImplementedError

    def invoke(self, name: str, arguments: list[str]) -> str:
        """A call with one number as its result."""
        return f"{name}({', '.join(arguments)})"

    def assign(self, targets: dict[str, type], texts: list[str]) -> Iterator[str]:
        """Lines that give numbers to names, all at once."""
        raise NotImplementedError

    def assign_call(self, targets: dict[str, type], name: str, arguments: list[str]) -> str:
        """A line that gives the several results of a function to names."""
        raise NotImplementedError

    def function(self, name: str) -> str:
        """A function of the text."""
        raise NotImplementedError

    # -- functions

    def parameters(self, name: str) -> dict[str, type]:
        """The numbers that a function takes."""
        found: dict[str, type] = {}
        for parameter, kind in self.functions[name].parameters.items():
            found |= leaves(kind, parameter)
        return found

    def results(self, name: str) -> list[type]:
        """The types of the numbers that a function returns."""
        kinds = self.functions[name].results
        return [number for kind in kinds for number in leaves(kind, "").values()]

    def body(self, name: str) -> tuple[list[str], list[str]]:
        """The lines of a function, and the texts of what it returns."""
        function = self.functions[name]
        self._lines, self._known, self._temporaries = [], dict(function.parameters), 0
        self._names = function.names
        *statements, last = self._statements(function.node)
        for statement in statements:
            if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
                raise _refuse(statement, "not in the kernel language")
            self._assignment(statement.targets[0], statement.value)
        if not isinstance(last, ast.Return) or last.value is None:
            raise _refuse(last, "a function must end with its one return")
        items = last.value.elts if isinstance(last.value, ast.Tuple) else [last.value]
        values = [self.value(item) for item in items]
        if tuple(value.kind for value in values) != function.results:
            raise _refuse(last, "not what the annotation says")
        return self._lines, [text for value in values for text in value.texts]

    def _statements(self, function: ast.FunctionDef) -> list[ast.stmt]:
        """The statements without the docstring, fixed loops unrolled, ``if SINGLE`` decided."""
        flat: list[ast.stmt] = []
        for node in function.body[1:]:
            if isinstance(node, ast.For):
                if not (isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func) == "range"):
                    raise _refuse(node, "only loops over a fixed range")
                (times,) = node.iter.args
                if not (isinstance(times, ast.Constant) and isinstance(times.value, int)):
                    raise _refuse(node, "only loops of a fixed length")
                flat += node.body * times.value
            elif isinstance(node, ast.If):
                if ast.unparse(node.test) != "SINGLE" or node.orelse:
                    raise _refuse(node, "only `if SINGLE:` without else")
                flat += node.body if self.column == 1 else []
            else:
                flat.append(node)
        return flat

    def _assignment(self, target: ast.expr, source: ast.expr) -> None:
        names = [
            ast.unparse(item)
            for item in (target.elts if isinstance(target, ast.Tuple) else [target])
        ]
        for name in names:
            if "_" in name:  # it could be the number of a record
                raise _refuse(target, "no underscores in names")
        called = self._called(source)
        if called:
            arguments = self.arguments(source)
            kinds = self.functions[called].results
            if isinstance(target, ast.Tuple) and len(kinds) == 1:
                kinds = tuple(get_type_hints(kinds[0]).values())
            targets = self._declare(names, kinds, target)
            self._lines.append(self.assign_call(targets, called, arguments))
            return
        value = self.value(source)
        targets = self._declare(names, (value.kind,), target)
        self._lines += self.assign(targets, value.texts)

    def _called(self, node: ast.expr) -> str:
        """The function of the text with several numbers as its result that a node calls, if any."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = node.func.id
            if name in self.functions and len(self.results(name)) > 1:
                return name
        return ""

    def _declare(
        self, names: list[str], kinds: tuple[type, ...], node: ast.expr
    ) -> dict[str, type]:
        """The numbers of names that a statement gives values to."""
        if len(names) != len(kinds):
            raise _refuse(node, f"stands for {len(kinds)} values")
        found: dict[str, type] = {}
        for name, kind in zip(names, kinds, strict=True):
            if self._known.get(name, kind) is not kind:
                raise _refuse(node, f"{name} changes its type")
            self._known[name] = kind
            found |= leaves(kind, name)
        return found

    # -- expressions

    def value(self, node: ast.expr) -> Value:
        """Any expression."""
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            return Value(float, [self.number(node.value)])
        if isinstance(node, ast.Name) and node.id in language.CONSTANTS:
            return Value(float, [self.number(language.CONSTANTS[node.id][self.column])])
        if isinstance(node, (ast.Name, ast.Attribute)):
            kind, name = self._name(node)
            return Value(kind, list(leaves(kind, name)))
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            sign = _OPERATORS[type(node.op)]
            return Value(float, [f"({self.scalar(node.left)} {sign} {self.scalar(node.right)})"])
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            if isinstance(node.operand, ast.Constant) and isinstance(node.operand.value, float):
                return Value(float, [self.number(-node.operand.value)])
            return Value(float, [f"(-{self.scalar(node.operand)})"])
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARE:
            sign = _COMPARE[type(node.ops[0])]
            left, right = self.scalar(node.left), self.scalar(node.comparators[0])
            return Value(bool, [f"({left} {sign} {right})"])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self._call(node, node.func.id)
        raise _refuse(node, "not in the kernel language")

    def scalar(self, node: ast.expr) -> str:
        """An expression that is one number."""
        value = self.value(node)
        if len(value.texts) != 1:
            raise _refuse(node, "is not a number")
        return value.texts[0]

    def arguments(self, node: ast.expr) -> list[str]:
        """The numbers that a call is given."""
        if not isinstance(node, ast.Call) or node.keywords:
            raise _refuse(node, "arguments by position only")
        return [text for item in node.args for text in self.value(item).texts]

    def _name(self, node: ast.expr) -> tuple[type, str]:
        """Type and name of a variable or of a field of one."""
        if isinstance(node, ast.Name) and node.id in self._known:
            return self._known[node.id], node.id
        if isinstance(node, ast.Attribute):
            kind, name = self._name(node.value)
            return get_type_hints(kind)[node.attr], f"{name}_{node.attr}"
        raise _refuse(node, "unknown name")

    def _call(self, node: ast.Call, name: str) -> Value:
        if name == "poly":
            u, table = self.scalar(node.args[0]), ast.unparse(node.args[1])
            return Value(float, [self._horner(u, language.POLYNOMIALS[table][self.column])])
        if name in _OPERATIONS:
            return Value(_OPERATIONS[name], [self.invoke(name, self.arguments(node))])
        if name in self.functions:
            (kind,) = self.functions[name].results
            if len(self.results(name)) == 1:
                return Value(kind, [self.invoke(name, self.arguments(node))])
            arguments = self.arguments(node)
            self._temporaries += 1
            made = leaves(kind, f"t_{self._temporaries}")
            self._lines.append(self.assign_call(made, name, arguments))
            return Value(kind, list(made))
        record = self._names.get(name)
        if isinstance(record, type) and issubclass(record, tuple):
            wanted = list(get_type_hints(record).values())
            values = [self.value(item) for item in node.args]
            if [value.kind for value in values] != wanted:
                raise _refuse(node, f"not the fields of {name}")
            return Value(record, [text for value in values for text in value.texts])
        raise _refuse(node, "unknown function")

    def _horner(self, u: str, coefficients: tuple[float, ...]) -> str:
        first, *rest = reversed(coefficients)
        text = self.number(first)
        for c in rest:
            text = f"({text} * {u} + {self.number(c)})"
        return text


class NumbaWriter(Writer):
    """Functions as Python for numba, every literal in its precision."""

    def number(self, value: float) -> str:
        """A literal of the numpy type."""
        return f"T({float(np.dtype(self.dtype).type(value))!r})"

    def assign(self, targets: dict[str, type], texts: list[str]) -> Iterator[str]:
        """One assignment of a tuple."""
        yield f"{', '.join(targets)} = {', '.join(texts)}"

    def assign_call(self, targets: dict[str, type], name: str, arguments: list[str]) -> str:
        """One assignment of a tuple."""
        return f"{', '.join(targets)} = {self.invoke(name, arguments)}"

    def function(self, name: str) -> str:
        """A function that numba inlines."""
        lines, results = self.body(name)
        head = f"@inlined\ndef {name}({', '.join(self.parameters(name))}):"
        return "\n    ".join([head, *lines, f"return {', '.join(results)}"])


class CWriter(Writer):
    """Functions as C++ that both nvrtc and a host compiler take."""

    def number(self, value: float) -> str:
        """A literal of the C type."""
        text = repr(float(np.dtype(self.dtype).type(value)))
        if self.column == 1:
            text = str(np.float32(value))
        if not any(mark in text for mark in ".e"):
            text += ".0"
        text += "f" if self.column == 1 else ""
        return f"({text})" if text.startswith("-") else text

    def invoke(self, name: str, arguments: list[str]) -> str:
        """A call, or the operator that stands for it."""
        if name == "select":
            return f"({arguments[0]} ? {arguments[1]} : {arguments[2]})"
        if name in ("both", "either"):
            return f"({arguments[0]} {'&' if name == 'both' else '|'} {arguments[1]})"
        return super().invoke(f"k_{name}" if name in self.functions else name, arguments)

    def assign(self, targets: dict[str, type], texts: list[str]) -> Iterator[str]:
        """Declarations of new names; known ones pass through others, as all change at once."""
        if not self._declared.isdisjoint(targets):
            made = " ".join(
                f"const {_C_TYPES[kind]} n_{name} = {text};"
                for (name, kind), text in zip(targets.items(), texts, strict=True)
            )
            yield f"{{ {made} {' '.join(f'{name} = n_{name};' for name in targets)} }}"
            return
        self._declared.update(targets)
        for (name, kind), text in zip(targets.items(), texts, strict=True):
            yield f"{_C_TYPES[kind]} {name} = {text};"

    def assign_call(self, targets: dict[str, type], name: str, arguments: list[str]) -> str:
        """Results pass through fresh names: a target may also be an argument of the same call."""
        fresh = [target for target in targets if target not in self._declared]
        self._declared.update(targets)
        inner = [f"n_{target}" for target in targets]
        call = self.invoke(name, arguments + inner)
        moves = " ".join(f"{target} = n_{target};" for target in targets)
        declare = f"T {', '.join(fresh)}; " if fresh else ""
        return f"{declare}{{ T {', '.join(inner)}; {call}; {moves} }}"

    def function(self, name: str) -> str:
        """A function with one result, or one that writes its results."""
        parameters = self.parameters(name)
        self._declared = set(parameters)
        lines, values = self.body(name)
        arguments = [f"{_C_TYPES[kind]} {parameter}" for parameter, kind in parameters.items()]
        results = self.results(name)
        if len(results) == 1:
            head, last = _C_TYPES[results[0]], [f"return {values[0]};"]
        else:
            arguments += [f"T& r{i}" for i in range(len(results))]
            head, last = "void", [f"r{i} = {value};" for i, value in enumerate(values)]
        first = f"KERNEL_FUNCTION {head} k_{name}({', '.join(arguments)}) {{"
        return "\n  ".join([first, *lines, *last]) + "\n}"


_C_TYPES: dict[type, str] = {float: "T", bool: "bool"}
