"""Four neighbouring numbers as one vector, for the kernels: the compiler does not find these alone.

The functions take addresses (``address(array)`` plus a number of bytes), so the caller must hold
the arrays: take addresses of arguments only, never of local arrays. Rows are of 16 numbers: the
conformal matrix of a rigid motion, R, t, 2 t'R and |t|^2.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from llvmlite.ir import Constant, DoubleType, IntType, IRBuilder, PointerType, Undefined, Value
from llvmlite.ir import VectorType as Vector
from numba import types
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.core.typing import Signature
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

#: Bytes of one vector, and of a row of 16 numbers.
VECTOR, ROW = 32, 128

FOUR = Vector(DoubleType(), 4)
_WORD, _HALF_WORD = IntType(64), IntType(32)
_FUSED = ("contract", "nnan", "nsz")
#: What instructions take: addresses, and numbers.
PLACE, NUMBER = types.intp, types.float64
#: What defines a function for kernels: its types, and what writes it.
Definition = tuple[Signature, Callable[..., Value]]


def instruction(
    *arguments: types.Type, returns: types.Type = types.void
) -> Callable[[Callable[..., Value | None]], Callable[..., float]]:
    """A function for kernels out of one that writes it with a builder of LLVM."""

    def decorate(write: Callable[..., Value | None]) -> Callable[..., float]:
        @wraps(write)  # numba asks it for its arguments
        def define(_typing: BaseContext, *_types: types.Type) -> Definition:
            def generate(
                context: BaseContext, builder: IRBuilder, _: Signature, values: list[Value]
            ) -> Value:
                result = write(builder, *values)
                return context.get_dummy_value() if result is None else result

            return returns(*arguments), generate

        return intrinsic(define)

    return decorate


def _at(builder: IRBuilder, address: Value, index: int = 0) -> Value:
    place = builder.add(address, Constant(_WORD, VECTOR * index)) if index else address
    return builder.inttoptr(place, PointerType(FOUR))


def get(builder: IRBuilder, address: Value, index: int = 0) -> Value:
    """Vector number ``index`` from an address."""
    return builder.load(_at(builder, address, index), align=8)


def put(builder: IRBuilder, value: Value, address: Value, index: int = 0) -> None:
    """Write a vector."""
    builder.store(value, _at(builder, address, index), align=8)


def lane(builder: IRBuilder, vector: Value, index: int) -> Value:
    """A vector with one number of another in all places."""
    return _pick(builder, vector, Constant(FOUR, Undefined), [index] * 4)


def least(builder: IRBuilder, x: Value, y: Value) -> Value:
    """Smaller of two vectors, place by place."""
    return builder.select(builder.fcmp_ordered("<", x, y), x, y)


def most(builder: IRBuilder, x: Value, y: Value) -> Value:
    """Larger of two vectors, place by place."""
    return builder.select(builder.fcmp_ordered(">", x, y), x, y)


def _all(builder: IRBuilder, number: Value) -> Value:
    first = builder.insert_element(Constant(FOUR, Undefined), number, Constant(_HALF_WORD, 0))
    return lane(builder, first, 0)


def _constant(*values: float) -> Value:
    return Constant(FOUR, list(values))


def _pick(builder: IRBuilder, x: Value, y: Value, places: list[int]) -> Value:
    return builder.shuffle_vector(x, y, Constant(Vector(_HALF_WORD, 4), places))


def _times(builder: IRBuilder, x: Value, y: Value) -> Value:
    return builder.fmul(x, y, flags=_FUSED)


def _plus(builder: IRBuilder, x: Value, y: Value) -> Value:
    return builder.fadd(x, y, flags=_FUSED)


def _minus(builder: IRBuilder, x: Value, y: Value) -> Value:
    return builder.fsub(x, y, flags=_FUSED)


def _total(builder: IRBuilder, terms: list[Value]) -> Value:
    """Sum of vectors, from left to right."""
    total = terms[0]
    for term in terms[1:]:
        total = _plus(builder, total, term)
    return total


def _sum(builder: IRBuilder, x: Value) -> Value:
    halves = _plus(builder, x, _pick(builder, x, x, [2, 3, 0, 1]))
    total = _plus(builder, halves, _pick(builder, halves, halves, [1, 0, 3, 2]))
    return builder.extract_element(total, Constant(_HALF_WORD, 0))


@intrinsic
def address(_typing: BaseContext, array: types.Array) -> Definition:
    """Address of the first number of an array that the caller owns."""

    def generate(
        context: BaseContext, builder: IRBuilder, signature: Signature, arguments: list[Value]
    ) -> Value:
        data = make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.ptrtoint(data, _WORD)

    return types.intp(array), generate


@instruction(NUMBER, NUMBER, NUMBER, returns=NUMBER)
def fused(builder: IRBuilder, a: Value, b: Value, c: Value) -> Value:
    """The number a b + c, rounded once, whether or not the compiler would fuse it."""
    return builder.fma(a, b, c)


@instruction(PLACE, PLACE, PLACE, NUMBER)
def multiply(builder: IRBuilder, out: Value, M: Value, G: Value, unit: Value) -> None:
    """Row of the product of two conformal matrices, given as rows; may be written over either.

    ``unit`` is the middle entry of M: 1, or 0 for a derivative.
    """
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


@instruction(PLACE, PLACE, PLACE)
def multiply_derivative(builder: IRBuilder, out: Value, M: Value, G: Value) -> None:
    """The same with G the derivative of a conformal matrix."""
    g = [get(builder, G, k) for k in range(4)]
    m = [get(builder, M, k) for k in range(4)]
    result = []
    for r in range(4):
        terms = [_times(builder, lane(builder, m[r], k), g[k]) for k in range(3)]
        result.append(_total(builder, [g[3], *terms] if r == 3 else terms))
    for r in range(4):
        put(builder, result[r], out, r)


@instruction(PLACE, PLACE, NUMBER, NUMBER)
def turn_rows(builder: IRBuilder, out: Value, C: Value, y: Value, z: Value) -> None:
    """Row of Z C with Z the rotation about z by the angle with cosine y and sine z."""
    c = [get(builder, C, k) for k in range(4)]
    y, z = _all(builder, y), _all(builder, z)
    first = _minus(builder, _times(builder, y, c[0]), _times(builder, z, c[1]))
    second = _plus(builder, _times(builder, z, c[0]), _times(builder, y, c[1]))
    for k, x in enumerate((first, second, c[2], c[3])):
        put(builder, x, out, k)


@instruction(PLACE, PLACE, NUMBER, NUMBER)
def turn_columns(builder: IRBuilder, out: Value, C: Value, y: Value, z: Value) -> None:
    """Row of C Z^-1 with Z as in ``turn_rows``."""
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


@instruction(PLACE, PLACE, NUMBER, PLACE, NUMBER)
def combine(builder: IRBuilder, out: Value, a: Value, x: Value, b: Value, y: Value) -> None:
    """Row out = x a + y b; may be written over either."""
    x, y = _all(builder, x), _all(builder, y)
    for r in range(4):
        left = _times(builder, x, get(builder, a, r))
        put(builder, _plus(builder, left, _times(builder, y, get(builder, b, r))), out, r)


@instruction(PLACE, PLACE, returns=NUMBER)
def dot(builder: IRBuilder, a: Value, b: Value) -> Value:
    """Scalar product of two rows."""
    terms = [_times(builder, get(builder, a, r), get(builder, b, r)) for r in range(4)]
    return _sum(builder, _total(builder, terms))


@instruction(PLACE, PLACE, PLACE)
def four_dots(builder: IRBuilder, out: Value, row: Value, weights: Value) -> None:
    """Vector of the products of a row with four columns of weights, stored as 16 vectors."""
    terms = [
        _times(builder, lane(builder, get(builder, row, r // 4), r % 4), get(builder, weights, r))
        for r in range(16)
    ]
    sums = [_total(builder, terms[k::2]) for k in range(2)]
    put(builder, _plus(builder, sums[0], sums[1]), out)


@instruction(*[PLACE] * 7)
def columns(
    builder: IRBuilder,
    out: Value,
    a: Value,
    b: Value,
    c: Value,
    d: Value,
    bounds: Value,
    norms: Value,
) -> None:
    """Four rows as 16 vectors of weights, and the vector of their sums |weight| bound."""
    parts = []
    for r in range(4):
        w, x, y, z = (get(builder, row, r) for row in (a, b, c, d))
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
            parts.append(_times(builder, size, lane(builder, bound, k)))
    put(builder, _total(builder, parts), norms)


def _fold(blocks: int, single: bool) -> Callable[..., float]:
    """A fold of ``blocks`` blocks of ``count`` vectors each, ``step`` bytes apart.

    Reads the extremes of the blocks (or, if ``single``, values) at ``from_low``, ``from_high``;
    writes the extremes over all blocks, vector by vector, to ``low`` and ``high`` (which may be the
    first block itself), and those over each whole block to ``out_low`` and ``out_high``,
    ``out_step`` bytes apart.
    """

    @instruction(*[PLACE] * 9)
    def fold(
        builder: IRBuilder,
        from_low: Value,
        from_high: Value,
        count: Value,
        step: Value,
        low: Value,
        high: Value,
        out_low: Value,
        out_high: Value,
        out_step: Value,
    ) -> None:
        lows = [cgutils.alloca_once(builder, FOUR) for _ in range(blocks)]
        highs = [cgutils.alloca_once(builder, FOUR) for _ in range(blocks)]
        length = builder.mul(count, step)
        starts = [
            builder.add(from_low, builder.mul(length, Constant(_WORD, i))) for i in range(blocks)
        ]
        tops = starts
        if not single:
            tops = [
                builder.add(from_high, builder.mul(length, Constant(_WORD, i)))
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
            move = builder.mul(out_step, Constant(_WORD, i))
            put(builder, builder.load(lows[i]), builder.add(out_low, move))
            put(builder, builder.load(highs[i]), builder.add(out_high, move))

    return fold


fold_2 = _fold(2, False)
fold_3 = _fold(3, False)
fold_4 = _fold(4, False)
fold_values_2 = _fold(2, True)
fold_values_3 = _fold(3, True)
fold_values_4 = _fold(4, True)
