"""Four neighbouring numbers as one vector, for the kernels: the compiler does not find these alone.

The functions take addresses (``address(array)`` plus a number of bytes), so the caller must hold
the arrays: take addresses of arguments only, never of local arrays. Rows are of 16 numbers: the
conformal matrix of a rigid motion, R, t, 2 t'R and |t|^2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

#: Bytes of one vector, and of a row of 16 numbers.
VECTOR, ROW = 32, 128

FOUR = ir.VectorType(ir.DoubleType(), 4)
_DOUBLE = ir.DoubleType()
_WORD = ir.IntType(64)
_FUSED = ("contract", "nnan", "nsz")


def _at(builder: Any, address: Any, index: int = 0) -> Any:
    place = builder.add(address, ir.Constant(_WORD, VECTOR * index)) if index else address
    return builder.inttoptr(place, ir.PointerType(FOUR))


def get(builder: Any, address: Any, index: int = 0) -> Any:
    """Vector number ``index`` from an address."""
    return builder.load(_at(builder, address, index), align=8)


def put(builder: Any, value: Any, address: Any, index: int = 0) -> None:
    """Write a vector."""
    builder.store(value, _at(builder, address, index), align=8)


def lane(builder: Any, vector: Any, index: int) -> Any:
    """A vector with one number of another in all places."""
    places = ir.Constant(ir.VectorType(ir.IntType(32), 4), [index] * 4)
    return builder.shuffle_vector(vector, ir.Constant(FOUR, ir.Undefined), places)


def least(builder: Any, x: Any, y: Any) -> Any:
    """Smaller of two vectors, place by place."""
    return builder.select(builder.fcmp_ordered("<", x, y), x, y)


def most(builder: Any, x: Any, y: Any) -> Any:
    """Larger of two vectors, place by place."""
    return builder.select(builder.fcmp_ordered(">", x, y), x, y)


def _all(builder: Any, number: Any) -> Any:
    first = builder.insert_element(
        ir.Constant(FOUR, ir.Undefined), number, ir.Constant(ir.IntType(32), 0)
    )
    return lane(builder, first, 0)


def _constant(*values: float) -> Any:
    return ir.Constant(FOUR, list(values))


def _pick(builder: Any, x: Any, y: Any, places: list[int]) -> Any:
    index = ir.Constant(ir.VectorType(ir.IntType(32), 4), places)
    return builder.shuffle_vector(x, y, index)


def _times(builder: Any, x: Any, y: Any) -> Any:
    return builder.fmul(x, y, flags=_FUSED)


def _plus(builder: Any, x: Any, y: Any) -> Any:
    return builder.fadd(x, y, flags=_FUSED)


def _minus(builder: Any, x: Any, y: Any) -> Any:
    return builder.fsub(x, y, flags=_FUSED)


def _sum(builder: Any, x: Any) -> Any:
    halves = _plus(builder, x, _pick(builder, x, x, [2, 3, 0, 1]))
    total = _plus(builder, halves, _pick(builder, halves, halves, [1, 0, 3, 2]))
    return builder.extract_element(total, ir.Constant(ir.IntType(32), 0))


@intrinsic
def address(typing: Any, array: Any) -> Any:
    """Address of the first number of an array that the caller owns."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.ptrtoint(data, _WORD)

    return types.intp(array), generate


@intrinsic
def fused(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """The number a b + c, rounded once, whether or not the compiler would fuse it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(*[types.float64] * 3), generate


@intrinsic
def multiply(typing: Any, out: Any, M: Any, G: Any, unit: Any) -> Any:
    """Row of the product of two conformal matrices, given as rows; may be written over either.

    ``unit`` is the middle entry of M: 1, or 0 for a derivative.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, M, G, unit = arguments
        g = [get(builder, G, k) for k in range(4)]
        m = [get(builder, M, k) for k in range(4)]
        result = []
        for r in range(4):
            x = _times(builder, m[r], _constant(0.0, 0.0, 0.0, 1.0))
            for k in range(3):
                x = _plus(builder, x, _times(builder, lane(builder, m[r], k), g[k]))
            if r == 3:
                x = _plus(builder, x, _times(builder, _all(builder, unit), g[3]))
            result.append(x)
        for r in range(4):
            put(builder, result[r], out, r)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp, types.float64), generate


@intrinsic
def multiply_derivative(typing: Any, out: Any, M: Any, G: Any) -> Any:
    """The same with G the derivative of a conformal matrix."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, M, G = arguments
        g = [get(builder, G, k) for k in range(4)]
        m = [get(builder, M, k) for k in range(4)]
        result = []
        for r in range(4):
            x = g[3] if r == 3 else None
            for k in range(3):
                term = _times(builder, lane(builder, m[r], k), g[k])
                x = term if x is None else _plus(builder, x, term)
            result.append(x)
        for r in range(4):
            put(builder, result[r], out, r)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp), generate


@intrinsic
def turn_rows(typing: Any, out: Any, C: Any, y: Any, z: Any) -> Any:
    """Row of Z C with Z the rotation about z by the angle with cosine y and sine z."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, C, y, z = arguments
        c = [get(builder, C, k) for k in range(4)]
        y, z = _all(builder, y), _all(builder, z)
        first = _minus(builder, _times(builder, y, c[0]), _times(builder, z, c[1]))
        second = _plus(builder, _times(builder, z, c[0]), _times(builder, y, c[1]))
        for k, x in enumerate((first, second, c[2], c[3])):
            put(builder, x, out, k)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.float64, types.float64), generate


@intrinsic
def turn_columns(typing: Any, out: Any, C: Any, y: Any, z: Any) -> Any:
    """Row of C Z^-1 with Z as in ``turn_rows``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, C, y, z = arguments
        ones = _constant(1.0, 1.0, 1.0, 1.0)
        zeros = _constant(0.0, 0.0, 0.0, 0.0)
        cosines = _pick(builder, _all(builder, y), ones, [0, 1, 4, 5])
        sines = _times(builder, _all(builder, z), _constant(-1.0, 1.0, 0.0, 0.0))
        sines = _pick(builder, sines, zeros, [0, 1, 4, 5])
        for r in range(4):
            c = get(builder, C, r)
            swapped = _pick(builder, c, c, [1, 0, 2, 3])
            x = _plus(builder, _times(builder, c, cosines), _times(builder, swapped, sines))
            put(builder, x, out, r)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.float64, types.float64), generate


@intrinsic
def combine(typing: Any, out: Any, a: Any, x: Any, b: Any, y: Any) -> Any:
    """Row out = x a + y b; may be written over either."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, a, x, b, y = arguments
        x, y = _all(builder, x), _all(builder, y)
        for r in range(4):
            left = _times(builder, x, get(builder, a, r))
            put(builder, _plus(builder, left, _times(builder, y, get(builder, b, r))), out, r)
        return context.get_dummy_value()

    p, x = types.intp, types.float64
    return types.void(p, p, x, p, x), generate


@intrinsic
def dot(typing: Any, a: Any, b: Any) -> Any:
    """Scalar product of two rows."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        a, b = arguments
        total = None
        for r in range(4):
            term = _times(builder, get(builder, a, r), get(builder, b, r))
            total = term if total is None else _plus(builder, total, term)
        return _sum(builder, total)

    return types.float64(types.intp, types.intp), generate


@intrinsic
def four_dots(typing: Any, out: Any, row: Any, weights: Any) -> Any:
    """Vector of the products of a row with four columns of weights, stored as 16 vectors."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, row, weights = arguments
        sums: list[Any] = [None, None]
        for r in range(16):
            part = lane(builder, get(builder, row, r // 4), r % 4)
            term = _times(builder, part, get(builder, weights, r))
            k = r % 2
            sums[k] = term if sums[k] is None else _plus(builder, sums[k], term)
        put(builder, _plus(builder, sums[0], sums[1]), out)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp), generate


@intrinsic
def columns(typing: Any, out: Any, a: Any, b: Any, c: Any, d: Any, bounds: Any, norms: Any) -> Any:
    """Four rows as 16 vectors of weights, and the vector of their sums |weight| bound."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, *rows, bounds, norms = arguments
        total = None
        for r in range(4):
            w, x, y, z = (get(builder, row, r) for row in rows)
            bound = get(builder, bounds, r)
            p = _pick(builder, w, x, [0, 4, 2, 6])
            q = _pick(builder, w, x, [1, 5, 3, 7])
            s = _pick(builder, y, z, [0, 4, 2, 6])
            t = _pick(builder, y, z, [1, 5, 3, 7])
            vectors = (
                _pick(builder, p, s, [0, 1, 4, 5]),
                _pick(builder, q, t, [0, 1, 4, 5]),
                _pick(builder, p, s, [2, 3, 6, 7]),
                _pick(builder, q, t, [2, 3, 6, 7]),
            )
            for k, vector in enumerate(vectors):
                put(builder, vector, out, 4 * r + k)
                size = most(builder, vector, builder.fneg(vector))
                part = _times(builder, size, lane(builder, bound, k))
                total = part if total is None else _plus(builder, total, part)
        put(builder, total, norms)
        return context.get_dummy_value()

    p = types.intp
    return types.void(p, p, p, p, p, p, p), generate


def _fold(blocks: int, single: bool) -> Callable[..., Any]:
    """A fold of ``blocks`` blocks of ``count`` vectors each, ``step`` bytes apart.

    Reads the extremes of the blocks (or, if ``single``, values) at ``source_low``, ``source_high``;
    writes the extremes over all blocks, vector by vector, to ``low`` and ``high`` (which may be the
    first block itself), and those over each whole block to ``block_low`` and ``block_high``,
    ``block_step`` bytes apart.
    """

    def fold(
        typing: Any,
        source_low: Any,
        source_high: Any,
        count: Any,
        step: Any,
        low: Any,
        high: Any,
        block_low: Any,
        block_high: Any,
        block_step: Any,
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            from_low, from_high, count, step, low, high, out_low, out_high, out_step = arguments
            lows = [cgutils.alloca_once(builder, FOUR) for _ in range(blocks)]
            highs = [cgutils.alloca_once(builder, FOUR) for _ in range(blocks)]
            length = builder.mul(count, step)
            starts = [
                builder.add(from_low, builder.mul(length, ir.Constant(_WORD, i)))
                for i in range(blocks)
            ]
            tops = starts
            if not single:
                tops = [
                    builder.add(from_high, builder.mul(length, ir.Constant(_WORD, i)))
                    for i in range(blocks)
                ]
            for i in range(blocks):
                builder.store(get(builder, starts[i]), lows[i])
                builder.store(get(builder, tops[i]), highs[i])
            with cgutils.for_range(builder, count) as loop:
                shift = builder.mul(loop.index, step)
                smallest = largest = None
                for i in range(blocks):
                    x = get(builder, builder.add(starts[i], shift))
                    y = x if single else get(builder, builder.add(tops[i], shift))
                    builder.store(least(builder, x, builder.load(lows[i])), lows[i])
                    builder.store(most(builder, y, builder.load(highs[i])), highs[i])
                    smallest = x if smallest is None else least(builder, x, smallest)
                    largest = y if largest is None else most(builder, y, largest)
                put(builder, smallest, builder.add(low, shift))
                put(builder, largest, builder.add(high, shift))
            for i in range(blocks):
                move = builder.mul(out_step, ir.Constant(_WORD, i))
                put(builder, builder.load(lows[i]), builder.add(out_low, move))
                put(builder, builder.load(highs[i]), builder.add(out_high, move))
            return context.get_dummy_value()

        return types.void(*[types.intp] * 9), generate

    return fold


fold_2 = intrinsic(_fold(2, False))
fold_3 = intrinsic(_fold(3, False))
fold_4 = intrinsic(_fold(4, False))
fold_values_2 = intrinsic(_fold(2, True))
fold_values_3 = intrinsic(_fold(3, True))
fold_values_4 = intrinsic(_fold(4, True))
