"""Turns the kernel text of ``kernels.py`` into numba modules and CUDA C.

The renderings are files of the package, so that numba can cache what it compiles from them and
people can read them. ``python -m gpu_kinematics.render`` writes them again; a test holds that they
are what the text says. Nothing is compiled or executed here.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from pathlib import Path

import numpy as np

from gpu_kinematics import kernels

__all__ = ["BLOCK", "MODES", "PRECISIONS", "files", "group_names", "render_c", "render_numba"]

#: Robots per block of scratch on the CPU: in float64 the rows of FK and IK stay in the L1 cache.
BLOCK = 256
#: name -> (numpy type, C type, column of the tables in kernels.py)
PRECISIONS = {"f64": ("float64", "double", 0), "f32": ("float32", "float", 1)}
#: name -> LLVM flags. "strict" rounds every operation and so gives the same bits everywhere.
MODES: dict[str, tuple[str, ...]] = {"strict": (), "fast": ("arcp", "contract", "nsz")}
_SCALAR_CALLS = {"sqrt", "rint", "fabs", "select"}
_BOOL_CALLS = {"both", "either"}
_OPERATORS: dict[type, str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARE: dict[type, str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
}


class Refused(ValueError):
    """The kernel text uses something outside its small language."""


def _refuse(node: ast.AST, what: str) -> Refused:
    return Refused(f"kernels.py: {what}: {ast.unparse(node)}")


@functools.cache
def _functions() -> dict[str, ast.FunctionDef]:
    """The syntax trees of the kernel text, by name, in order."""
    tree = ast.parse(Path(inspect.getfile(kernels)).read_text(encoding="utf-8"))
    found = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    return {f.__name__: found[f.__name__] for f in kernels.FUNCTIONS}


def group_names(op: str) -> list[tuple[str, tuple[str, ...]]]:
    """Input groups of an op in calling order: geometry, options, then its own."""
    return [
        ("geometry", kernels.GEOMETRY),
        ("options", kernels.OPTIONS),
        *kernels.OPS[op].inputs.items(),
    ]


class _Writer:
    """Writes the functions of the text in one language; subclasses say how."""

    def __init__(self, precision: str) -> None:
        self.dtype, self.ctype, self.column = PRECISIONS[precision]
        self.functions = _functions()

    # -- expressions

    def number(self, value: float) -> str:
        raise NotImplementedError

    def constant(self, name: str) -> str:
        return self.number(kernels.CONSTANTS[name][self.column])

    def horner(self, u: str, name: str) -> str:
        first, *rest = reversed(kernels.POLYNOMIALS[name][self.column])
        text = self.number(first)
        for c in rest:
            text = f"({text} * {u} + {self.number(c)})"
        return text

    def expression(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            return self.number(node.value)
        if isinstance(node, ast.Name):
            return self.constant(node.id) if node.id in kernels.CONSTANTS else node.id
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            sign = _OPERATORS[type(node.op)]
            return f"({self.expression(node.left)} {sign} {self.expression(node.right)})"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            if isinstance(node.operand, ast.Constant) and isinstance(node.operand.value, float):
                return self.number(-node.operand.value)
            return f"(-{self.expression(node.operand)})"
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARE:
            sign = _COMPARE[type(node.ops[0])]
            return f"({self.expression(node.left)} {sign} {self.expression(node.comparators[0])})"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self.call(node, node.func.id)
        raise _refuse(node, "not in the kernel language")

    def arguments(self, node: ast.Call) -> list[str]:
        flat: list[ast.expr] = []
        for item in node.args:
            if isinstance(item, ast.Starred):
                if not isinstance(item.value, ast.Tuple):
                    raise _refuse(item, "only a written-out tuple may be starred")
                flat += item.value.elts
            else:
                flat.append(item)
        return [self.expression(item) for item in flat]

    def call(self, node: ast.Call, name: str) -> str:
        if name == "poly":
            table = node.args[1]
            if not isinstance(table, ast.Name):
                raise _refuse(node, "poly needs the name of a table")
            return self.horner(self.expression(node.args[0]), table.id)
        if name in _SCALAR_CALLS | _BOOL_CALLS or self.returns(name) == 1:
            return self.invoke(name, self.arguments(node))
        raise _refuse(node, "a call with several results must stand alone")

    def invoke(self, name: str, arguments: list[str]) -> str:
        return f"{name}({', '.join(arguments)})"

    def returns(self, name: str) -> int:
        """Number of results of a function of the text."""
        if name not in self.functions:
            raise Refused(f"kernels.py: unknown function {name}")
        value = self.functions[name].body[-1]
        if not isinstance(value, ast.Return) or value.value is None:
            raise _refuse(value, "a function must end with its one return")
        return len(value.value.elts) if isinstance(value.value, ast.Tuple) else 1

    def is_condition(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Compare) or (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in _BOOL_CALLS
        )

    # -- statements

    def body(self, function: ast.FunctionDef) -> list[ast.stmt]:
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


class _Python(_Writer):
    """Functions as Python for numba, every literal in its precision."""

    def number(self, value: float) -> str:
        return f"T({float(np.dtype(self.dtype).type(value))!r})"

    def function(self, name: str) -> str:
        node = self.functions[name]
        lines = ["@inlined", f"def {name}({', '.join(a.arg for a in node.args.args)}):"]
        for statement in self.body(node):
            if isinstance(statement, ast.Return) and statement.value is not None:
                values = (
                    statement.value.elts
                    if isinstance(statement.value, ast.Tuple)
                    else [statement.value]
                )
                lines.append(f"    return {', '.join(self.expression(v) for v in values)}")
            elif isinstance(statement, ast.Assign):
                target = statement.targets[0]
                if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Call):
                    right = self.invoke(
                        ast.unparse(statement.value.func), self.arguments(statement.value)
                    )
                    left = ", ".join(ast.unparse(item) for item in target.elts)
                    lines.append(f"    {left} = {right}")
                else:
                    lines.append(f"    {ast.unparse(target)} = {self.expression(statement.value)}")
            else:
                raise _refuse(statement, "not in the kernel language")
        return "\n".join(lines)


class _C(_Writer):
    """Functions as C++ that both nvrtc and a host compiler take."""

    def number(self, value: float) -> str:
        text = repr(float(np.dtype(self.dtype).type(value)))
        if self.column == 1:
            text = str(np.float32(value))
        if not any(mark in text for mark in ".e"):
            text += ".0"
        text += "f" if self.column == 1 else ""
        return f"({text})" if text.startswith("-") else text

    def invoke(self, name: str, arguments: list[str]) -> str:
        if name == "select":
            return f"({arguments[0]} ? {arguments[1]} : {arguments[2]})"
        if name == "both":
            return f"({arguments[0]} & {arguments[1]})"
        if name == "either":
            return f"({arguments[0]} | {arguments[1]})"
        if name in self.functions:
            name = f"k_{name}"
        return super().invoke(name, arguments)

    def function(self, name: str) -> str:
        node = self.functions[name]
        results = self.returns(name)
        parameters = [
            f"{'bool' if ast.unparse(a.annotation or a) == 'bool' else 'T'} {a.arg}"
            for a in node.args.args
        ]
        known = {a.arg for a in node.args.args}
        if results > 1:
            parameters += [f"T& r{i}" for i in range(results)]
        kind = "T" if results == 1 else "void"
        lines = [f"KERNEL_FUNCTION {kind} k_{name}({', '.join(parameters)}) {{"]
        for statement in self.body(node):
            lines += ["  " + line for line in self.statement(statement, known, results)]
        return "\n".join([*lines, "}"])

    def statement(self, node: ast.stmt, known: set[str], results: int) -> list[str]:
        if isinstance(node, ast.Return) and node.value is not None:
            if results == 1:
                return [f"return {self.expression(node.value)};"]
            values = node.value.elts if isinstance(node.value, ast.Tuple) else []
            return [f"r{i} = {self.expression(v)};" for i, v in enumerate(values)]
        if not isinstance(node, ast.Assign):
            raise _refuse(node, "not in the kernel language")
        target = node.targets[0]
        if isinstance(target, ast.Name):
            kind = "bool" if self.is_condition(node.value) else "T"
            declare = "" if target.id in known else f"{kind} "
            known.add(target.id)
            return [f"{declare}{target.id} = {self.expression(node.value)};"]
        if not (isinstance(target, ast.Tuple) and isinstance(node.value, ast.Call)):
            raise _refuse(node, "not in the kernel language")
        # Results pass through fresh names: a target may also be an argument of the same call.
        names = [ast.unparse(item) for item in target.elts]
        call = self.invoke(
            ast.unparse(node.value.func),
            self.arguments(node.value) + [f"n_{name}" for name in names],
        )
        fresh = [name for name in names if name not in known]
        known.update(names)
        lines = [f"T {', '.join(fresh)};"] if fresh else []
        moves = " ".join(f"{name} = n_{name};" for name in names)
        inner = ", ".join("n_" + name for name in names)
        return [*lines, f"{{ T {inner}; {call}; {moves} }}"]


def _parameters(op: str) -> list[str]:
    return [a.arg for a in _functions()[op].args.args]


def _rows(op: str) -> dict[str, tuple[int, int]]:
    """Parameter name -> (group number, row)."""
    places: dict[str, tuple[int, int]] = {}
    for number, (_, rows) in enumerate(group_names(op)):
        for row, name in enumerate(rows):
            places.setdefault(name, (number, row))
    return places


_HEADER = "Rendered from kernels.py by render.py; do not edit: python -m gpu_kinematics.render"


def render_numba(precision: str, mode: str) -> str:
    """The numba module of one precision and mode, as text."""
    writer = _Python(precision)
    flags = ", ".join(f'"{flag}"' for flag in MODES[mode])
    parts = [
        f'"""{_HEADER}."""\n\n# ruff: noqa\n# fmt: off\n# mypy: ignore-errors\n'
        "import numpy as np\nfrom numba import njit\n\n"
        "from gpu_kinematics.intrinsics import (\n"
        "    address, both, either, fabs, get, hold, put, rint, select, sqrt, to_mask,\n)\n\n"
        f"T = np.float{64 if precision == 'f64' else 32}\nU = np.uint16\n"
        "I = np.int64  # for numbers that are not to be literals: each would compile anew\n"
        f"SIZE = {8 if precision == 'f64' else 4}\nBLOCK = {BLOCK}\n"
        f"FLAGS = {{{flags}}}\n"
        'inlined = njit(forceinline=True, error_model="numpy", fastmath=FLAGS)\n'
        'shared = njit(error_model="numpy")\n'
        'compiled = njit(nogil=True, cache=True, error_model="numpy", fastmath=FLAGS)\n'
        "\n\n"
        "@shared\ndef load(where, row, step, rows, count, scratch, first):\n"
        "    source = address(T, where)\n"
        "    for r in range(rows):\n"
        "        for i in range(count):\n"
        "            put(scratch, (first + r) * BLOCK + i, get(source, r * row + i * step))\n"
        "\n\n"
        "@shared\ndef store(where, row, step, rows, count, scratch, first):\n"
        "    target = address(T, where)\n"
        "    for r in range(rows):\n"
        "        for i in range(count):\n"
        "            put(target, r * row + i * step, get(scratch, (first + r) * BLOCK + i))\n"
    ]
    parts += [writer.function(name) for name in writer.functions]
    for op in kernels.OPS:
        parts.append(_numba_general(op))
        if kernels.OPS[op].fast:
            parts += [_numba_plain(op, status=False), _numba_plain(op, status=True)]
    return "\n\n\n".join(parts) + "\n"


def _numba_plain(op: str, status: bool) -> str:
    """Loop over plain rows (unit stride), one geometry and one set of options for all."""
    spec = kernels.OPS[op]
    places, groups = _rows(op), group_names(op)
    own = [name for name, _ in groups[2:]]
    arguments = ["count", "geometry", "options"]
    arguments += [f"{g}{part}" for g in own for part in ("", "_row")]
    arguments += [f"out_{g}{part}" for g in spec.outputs for part in ("", "_row")]
    arguments += ["mask"] if status else []
    name = f"{op}_plain" + ("_status" if status else "")
    lines = ["@compiled", f"def {name}({', '.join(arguments)}):"]
    lines += ["    geometry_at = address(T, geometry)", "    options_at = address(T, options)"]
    for number, (group, rows) in enumerate(groups):
        for row, parameter in enumerate(rows):
            if parameter not in _parameters(op) or places[parameter] != (number, row):
                continue
            if number < 2:
                lines.append(f"    {parameter} = get({group}_at, {row})")
            else:
                lines.append(
                    f"    {parameter}_at = address(T, {group} + SIZE * {row} * {group}_row)"
                )
    results: list[str] = []
    for group, number in spec.outputs.items():
        for row in range(number):
            lines.append(
                f"    {group}_{row}_at = address(T, out_{group} + SIZE * {row} * out_{group}_row)"
            )
            results.append(f"{group}_{row}")
    lines += ["    mask_at = address(U, mask)"] if status else []
    lines.append("    for i in range(count):")
    values = [p if places[p][0] < 2 else f"get({p}_at, i)" for p in _parameters(op)]
    lines.append(f"        {', '.join(results)}, state = {op}({', '.join(values)})")
    lines += [f"        put({r}_at, i, {r})" for r in results]
    lines += ["        put(mask_at, i, to_mask(state))"] if status else []
    return "\n".join(lines)


def _numba_general(op: str) -> str:
    """Any strides, through a scratch of BLOCK robots; outer x count robots.

    Groups that do not change along the outer axis are loaded once per block; a group with
    both strides zero once per call.
    """
    spec = kernels.OPS[op]
    places, groups = _rows(op), group_names(op)
    arguments = ["outer", "count"]
    arguments += [f"{g}{part}" for g, _ in groups for part in ("", "_row", "_step", "_outer")]
    arguments += [
        f"out_{g}{part}" for g in spec.outputs for part in ("", "_row", "_step", "_outer")
    ]
    arguments += ["mask", "mask_step", "mask_outer"] if spec.status else []
    first, start = {}, 0
    for group, rows in groups:
        first[group] = start
        start += len(rows)
    for group, number in spec.outputs.items():
        first["out_" + group] = start
        start += number
    state_row = start
    total = start + 1
    lines = [
        "@compiled",
        f"def {op}_general({', '.join(arguments)}):",
        f"    memory = np.empty({total} * BLOCK, dtype=T)",
        "    scratch = address(T, memory.ctypes.data)",
        "    for begin in range(0, count, BLOCK):",
        "        size = min(BLOCK, count - begin)",
    ]
    lines.append("        for turn in range(outer):")
    for group, rows in groups:
        again = f"{group}_outer != 0"
        first_turn = f"turn == 0 and ({group}_step != 0 or begin == 0)"
        where = f"{group} + SIZE * (begin * {group}_step + turn * {group}_outer)"
        size = f"BLOCK if {group}_step == 0 else size"
        lines += [
            f"            if {again} or ({first_turn}):",
            f"                load({where}, {group}_row, {group}_step, I({len(rows)}), {size},"
            f" scratch, I({first[group]}))",
        ]
    names = list(dict(groups))
    values = []
    for p in _parameters(op):
        number, row = places[p]
        values.append(f"get(scratch, {first[names[number]] + row} * BLOCK + i)")
    results = [f"{g}_{r}" for g, number in spec.outputs.items() for r in range(number)]
    left = ", ".join([*results, *(["state"] if spec.status else [])])
    lines += [
        "            for i in range(size):",
        f"                {left} = {op}({', '.join(values)})",
    ]
    for group, number in spec.outputs.items():
        lines += [
            f"                put(scratch, {first['out_' + group] + r} * BLOCK + i, {group}_{r})"
            for r in range(number)
        ]
    if spec.status:
        lines.append(f"                put(scratch, {state_row} * BLOCK + i, state)")
    for group, number in spec.outputs.items():
        g = f"out_{group}"
        lines += [
            f"            if {g} != 0:",
            f"                store({g} + SIZE * (begin * {g}_step + turn * {g}_outer),"
            f" {g}_row, {g}_step, I({number}), size, scratch, I({first[g]}))",
        ]
    if spec.status:
        lines += [
            "            if mask != 0:",
            "                mask_at = address("
            "U, mask + 2 * (begin * mask_step + turn * mask_outer))",
            "                for i in range(size):",
            "                    put(mask_at, i * mask_step,"
            f" to_mask(get(scratch, {state_row} * BLOCK + i)))",
        ]
    lines.append("    hold(memory)")
    return "\n".join(lines)


def render_c(precision: str) -> str:
    """The CUDA C text of one precision; a host compiler takes it too, with a prelude."""
    writer = _C(precision)
    parts = [
        f"// {_HEADER}\n"
        "#ifndef KERNEL_FUNCTION\n"
        "#define KERNEL_FUNCTION static __device__ __forceinline__\n"
        '#define KERNEL extern "C" __global__ void __launch_bounds__(128, 1)\n'
        "#endif\n"
        f"typedef {writer.ctype} T;\n"
        "typedef long long I;\n"
        "typedef unsigned short U;"
    ]
    parts += [writer.function(name) for name in writer.functions]
    parts += [_c_kernel(op) for op in kernels.OPS]
    return "\n\n".join(parts) + "\n"


def _c_kernel(op: str) -> str:
    """Grid-stride kernel with 64-bit indices over outer x count robots, any strides."""
    spec = kernels.OPS[op]
    places, groups = _rows(op), group_names(op)
    arguments = ["I outer", "I count"]
    for g, _ in groups:
        arguments.append(f"const T* {g}, I {g}_row, I {g}_step, I {g}_outer")
    for g in spec.outputs:
        arguments.append(f"T* out_{g}, I out_{g}_row, I out_{g}_step, I out_{g}_outer")
    arguments += ["U* mask, I mask_step, I mask_outer"] if spec.status else []
    lines = [
        f"KERNEL delta_{op}(" + ",\n    ".join(arguments) + ") {",
        "  const I jump = (I)gridDim.x * blockDim.x;",
        "  for (I turn = blockIdx.y; turn < outer; turn += gridDim.y)",
        "  for (I i = (I)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += jump) {",
    ]
    names = list(dict(groups))
    used = {places[p][0] for p in _parameters(op)}
    lines += [
        f"    const I {g}_i = i * {g}_step + turn * {g}_outer;"
        for number, g in enumerate(names)
        if number in used
    ]
    for p in _parameters(op):
        number, row = places[p]
        g = names[number]
        lines.append(f"    const T {p} = {g}[{row} * {g}_row + {g}_i];")
    results = [f"o_{g}_{r}" for g, number in spec.outputs.items() for r in range(number)]
    results += ["o_state"] if spec.status else []
    lines.append(f"    T {', '.join(results)};")
    lines.append(f"    k_{op}({', '.join(_parameters(op) + results)});")
    for g, number in spec.outputs.items():
        lines.append(f"    if (out_{g}) {{")
        lines.append(f"      const I at = i * out_{g}_step + turn * out_{g}_outer;")
        lines += [f"      out_{g}[{r} * out_{g}_row + at] = o_{g}_{r};" for r in range(number)]
        lines.append("    }")
    if spec.status:
        lines.append("    if (mask) mask[i * mask_step + turn * mask_outer] = (U)(int)o_state;")
    return "\n".join([*lines, "  }", "}"])


def files() -> dict[str, str]:
    """File name in ``rendered/`` -> text."""
    result = {"__init__.py": f'"""{_HEADER}."""\n'}
    for precision in PRECISIONS:
        for mode in MODES:
            result[f"cpu_{precision}_{mode}.py"] = render_numba(precision, mode)
        result[f"delta_{precision}.cu"] = render_c(precision)
    return result


def main() -> int:
    """Write the renderings into the package."""
    folder = Path(__file__).parent / "rendered"
    folder.mkdir(exist_ok=True)
    for name, text in files().items():
        (folder / name).write_text(text, encoding="utf-8")
        sys.stdout.write(f"wrote rendered/{name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
