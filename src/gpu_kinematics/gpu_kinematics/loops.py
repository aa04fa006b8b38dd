"""The loops around the kernels: over robots in any layout, as numba and as CUDA C."""

from __future__ import annotations

import itertools

from gpu_kinematics.kernels import OPS, leaves, rows

__all__ = ["BLOCK", "cuda_kernel", "numba_general", "numba_plain"]

#: Robots per block of scratch on the CPU: in float64 the rows of FK and IK stay in the L1 cache.
BLOCK = 256


def _reads(op: str) -> dict[str, list[str]]:
    """The numbers of each input group that the kernel reads, in its order of parameters."""
    function = OPS[op].function
    taken = function.__code__.co_varnames[: function.__code__.co_argcount]
    inputs = OPS[op].inputs
    return {group: list(leaves(inputs[group], group)) for group in taken}


def _results(op: str) -> dict[str, list[str]]:
    """Names for the numbers of each output group."""
    return {
        group: [f"o_{group}_{row}" for row in range(rows(kind))]
        for group, kind in OPS[op].outputs.items()
    }


def _flat(names: dict[str, list[str]]) -> list[str]:
    return [name for group in names.values() for name in group]


def numba_plain(op: str, status: bool) -> str:
    """Loop over plain rows (unit stride), one geometry and one set of options for all."""
    reads, results = _reads(op), _results(op)
    own = [group for group in OPS[op].inputs if group not in ("robot", "options")]
    arguments = ["count", "robot", "options"]
    arguments += [f"{g}{part}" for g in own for part in ("", "_row")]
    arguments += [f"out_{g}{part}" for g in results for part in ("", "_row")]
    arguments += ["mask"] if status else []
    name = f"{op}_plain" + ("_status" if status else "")
    lines = ["@compiled", f"def {name}({', '.join(arguments)}):"]
    values = []
    for group, numbers in reads.items():
        if group not in own:
            lines.append(f"    {group}_at = address(T, {group})")
        for row, number in enumerate(numbers):
            if group in own:
                lines.append(f"    {number}_at = address(T, {group} + SIZE * {row} * {group}_row)")
                values.append(f"get({number}_at, i)")
            else:
                lines.append(f"    {number} = get({group}_at, {row})")
                values.append(number)
    for group, numbers in results.items():
        for row, number in enumerate(numbers):
            where = f"out_{group} + SIZE * {row} * out_{group}_row"
            lines.append(f"    {number}_at = address(T, {where})")
    lines += ["    mask_at = address(U, mask)"] if status else []
    lines.append("    for i in range(count):")
    lines.append(f"        {', '.join(_flat(results))}, state = {op}({', '.join(values)})")
    lines += [f"        put({r}_at, i, {r})" for r in _flat(results)]
    lines += ["        put(mask_at, i, to_mask(state))"] if status else []
    return "\n".join(lines)


def _at(group: str) -> str:
    """Address of a group at the beginning of a block in a turn of the outer axis."""
    return f"{group} + SIZE * (begin * {group}_step + turn * {group}_outer)"


def numba_general(op: str) -> str:
    """Any strides, through a scratch of BLOCK robots; outer x count robots.

    Groups that do not change along the outer axis are loaded once per block; a group with
    both strides zero once per call.
    """
    spec = OPS[op]
    reads, results = _reads(op), _results(op)
    sizes = {group: rows(kind) for group, kind in spec.inputs.items()}
    sizes |= {f"out_{group}": len(numbers) for group, numbers in results.items()}
    first = dict(zip(sizes, itertools.accumulate(sizes.values(), initial=0), strict=False))
    state = sum(sizes.values())
    arguments = ["outer", "count"]
    arguments += [f"{g}{part}" for g in sizes for part in ("", "_row", "_step", "_outer")]
    arguments += ["mask", "mask_step", "mask_outer"] if spec.status else []
    found = [*_flat(results), *(["state"] if spec.status else [])]
    values = [
        f"get(scratch, {first[group] + row} * BLOCK + i)"
        for group, numbers in reads.items()
        for row in range(len(numbers))
    ]
    lines = [
        "@compiled",
        f"def {op}_general({', '.join(arguments)}):",
        f"    memory = np.empty({state + 1} * BLOCK, dtype=T)",
        "    scratch = address(T, memory.ctypes.data)",
        "    for begin in range(0, count, BLOCK):",
        "        size = min(BLOCK, count - begin)",
        "        for turn in range(outer):",
    ]
    for g in spec.inputs:
        first_turn = f"turn == 0 and ({g}_step != 0 or begin == 0)"
        count = f"BLOCK if {g}_step == 0 else size"
        lines += [
            f"            if {g}_outer != 0 or ({first_turn}):",
            f"                load({_at(g)}, {g}_row, {g}_step, I({sizes[g]}), {count},"
            f" scratch, I({first[g]}))",
        ]
    lines += [
        "            for i in range(size):",
        f"                {', '.join(found)} = {op}({', '.join(values)})",
    ]
    # The outputs and the status follow one another in the scratch, in this order.
    lines += [
        f"                put(scratch, {place} * BLOCK + i, {number})"
        for place, number in enumerate(found, state - len(_flat(results)))
    ]
    for g in (f"out_{group}" for group in results):
        lines += [
            f"            if {g} != 0:",
            f"                store({_at(g)}, {g}_row, {g}_step, I({sizes[g]}), size,"
            f" scratch, I({first[g]}))",
        ]
    if spec.status:
        lines += [
            "            if mask != 0:",
            "                mask_at = address("
            "U, mask + 2 * (begin * mask_step + turn * mask_outer))",
            "                for i in range(size):",
            "                    put(mask_at, i * mask_step,"
            f" to_mask(get(scratch, {state} * BLOCK + i)))",
        ]
    return "\n".join([*lines, "    hold(memory)"])


def cuda_kernel(op: str) -> str:
    """Grid-stride kernel with 64-bit indices over outer x count robots, any strides."""
    spec = OPS[op]
    reads, results = _reads(op), _results(op)
    arguments = ["I outer", "I count"]
    for g in spec.inputs:
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
    for g, numbers in reads.items():
        lines.append(f"    const T* {g}_at = {g} + i * {g}_step + turn * {g}_outer;")
        # A group of one number has the same name as it.
        lines += [f"    const T i_{n} = {g}_at[{row} * {g}_row];" for row, n in enumerate(numbers)]
    found = [*_flat(results), *(["o_state"] if spec.status else [])]
    lines.append(f"    T {', '.join(found)};")
    lines.append(f"    k_{op}({', '.join([f'i_{n}' for n in _flat(reads)] + found)});")
    for g, numbers in results.items():
        lines.append(f"    if (out_{g}) {{")
        lines.append(f"      T* at = out_{g} + i * out_{g}_step + turn * out_{g}_outer;")
        lines += [f"      at[{row} * out_{g}_row] = {n};" for row, n in enumerate(numbers)]
        lines.append("    }")
    if spec.status:
        lines.append("    if (mask) mask[i * mask_step + turn * mask_outer] = (U)(int)o_state;")
    return "\n".join([*lines, "  }", "}"])
