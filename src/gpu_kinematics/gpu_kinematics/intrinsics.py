"""The few operations that numba does not give as bare LLVM instructions.

``math.sqrt`` and ``np.rint`` compile to library calls, which stops LLVM from vectorising a loop; a
conditional expression compiles to a branch. The functions here are one instruction each. Arrays
are reached through raw addresses, so that one compiled function serves every layout.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = [
    "address",
    "both",
    "either",
    "fabs",
    "get",
    "hold",
    "put",
    "rint",
    "select",
    "sqrt",
    "to_mask",
]


def _unary(name: str) -> Any:
    """Intrinsic for a one-argument LLVM function on floats, such as llvm.sqrt."""

    def typed(typingctx: Any, x: Any) -> Any:
        if not isinstance(x, types.Float):
            return None

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            function = builder.module.declare_intrinsic(name, [args[0].type])
            return builder.call(function, args)

        return x(x), codegen

    typed.__name__ = typed.__qualname__ = name.replace(".", "_")
    return intrinsic(typed)


sqrt = _unary("llvm.sqrt")
rint = _unary("llvm.rint")
fabs = _unary("llvm.fabs")


@intrinsic
def select(typingctx: Any, condition: Any, yes: Any, no: Any) -> Any:
    """One of two values, without a branch."""
    if yes != no:
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(args[0], args[1], args[2])

    return yes(types.boolean, yes, no), codegen


@intrinsic
def both(typingctx: Any, p: Any, q: Any) -> Any:
    """Logical and of two conditions, without a branch."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.and_(args[0], args[1])

    return types.boolean(types.boolean, types.boolean), codegen


@intrinsic
def either(typingctx: Any, p: Any, q: Any) -> Any:
    """Logical or of two conditions, without a branch."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.or_(args[0], args[1])

    return types.boolean(types.boolean, types.boolean), codegen


@intrinsic
def address(typingctx: Any, kind: Any, where: Any) -> Any:
    """Pointer to elements of the type ``kind`` at an integer address."""
    element = kind.dtype if isinstance(kind, types.NumberClass) else kind
    pointer = types.CPointer(element)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[1], context.get_value_type(pointer))

    return pointer(kind, types.int64), codegen


@intrinsic
def hold(typingctx: Any, array: Any) -> Any:
    """Nothing; but an array that is reached through its address lives until here.

    numba releases an array after the last line that names it, and knows nothing of addresses.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.get_dummy_value()

    return types.none(array), codegen


@intrinsic
def get(typingctx: Any, pointer: Any, index: Any) -> Any:
    """``pointer[index]`` with no check and no wrap-around."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(cgutils.gep_inbounds(builder, args[0], args[1]))

    return pointer.dtype(pointer, types.int64), codegen


@intrinsic
def put(typingctx: Any, pointer: Any, index: Any, value: Any) -> Any:
    """``pointer[index] = value`` with no check and no wrap-around."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], cgutils.gep_inbounds(builder, args[0], args[1]))
        return context.get_dummy_value()

    return types.none(pointer, types.int64, pointer.dtype), codegen


@intrinsic
def to_mask(typingctx: Any, x: Any) -> Any:
    """Status value, a whole number held in a float, as uint16."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = builder.fptosi(args[0], ir.IntType(32))
        return builder.trunc(wide, ir.IntType(16))

    return types.uint16(x), codegen
