"""Memory order, clock, sleep and yield for compiled loops that share memory between processes.

The C library's functions are taken by name, so the kernels stay cacheable on disk.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from ft_controller.records import Words

__all__ = [
    "checksum",
    "combine",
    "exit_now",
    "fence",
    "load_acquire",
    "now_ns",
    "pause",
    "sleep_until",
    "store_release",
]


_sched_yield = types.ExternalFunction("sched_yield", types.int32())
_clock_gettime = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.intp))
_clock_nanosleep = types.ExternalFunction(
    "clock_nanosleep", types.int32(types.int32, types.int32, types.intp, types.intp)
)
_exit = types.ExternalFunction("_exit", types.void(types.int32))

_MONOTONIC = 1
_ABSOLUTE = 1


def _pointer(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind, index = signature.args[:2]
    array = context.make_array(kind)(context, builder, args[0])
    where = (
        cgutils.unpack_tuple(builder, args[1]) if isinstance(index, types.UniTuple) else [args[1]]
    )
    return cgutils.get_item_pointer(context, builder, kind, array, where)


def _index(index: Any) -> Any:
    return (
        types.UniTuple(types.intp, len(index)) if isinstance(index, types.BaseTuple) else types.intp
    )


@intrinsic  # type: ignore[misc]
def load_acquire(typingctx: Any, array: Any, index: Any) -> Any:
    """``array[index]`` of an int64 array; nothing later is read before it."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_pointer(context, builder, signature, args), "acquire", 8)

    return types.int64(array, _index(index)), codegen


@intrinsic  # type: ignore[misc]
def store_release(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """``array[index] = value`` of an int64 array, after everything earlier."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[2], _pointer(context, builder, signature, args), "release", 8)
        return context.get_dummy_value()

    return types.void(array, _index(index), types.int64), codegen


@intrinsic  # type: ignore[misc]
def fence(typingctx: Any) -> Any:
    """Nothing is moved across, in either direction."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), codegen


@njit(cache=True, nogil=True)
def now_ns(clock: Words) -> int:
    """Monotonic time [ns]; ``clock`` is a scratch array of two words."""
    _clock_gettime(_MONOTONIC, clock.ctypes.data)
    return clock[0] * 1_000_000_000 + clock[1]


@njit(cache=True, nogil=True)
def sleep_until(clock: Words, time_ns: int) -> None:
    """Sleep until a monotonic time [ns]."""
    clock[0] = time_ns // 1_000_000_000
    clock[1] = time_ns % 1_000_000_000
    _clock_nanosleep(_MONOTONIC, _ABSOLUTE, clock.ctypes.data, 0)


@njit(cache=True, nogil=True)
def pause(clock: Words, waited_ns: int) -> None:
    """Give the core away: yield at first, sleep when the wait grows long; never a pure spin."""
    if waited_ns < 200_000:
        _sched_yield()
    elif waited_ns < 20_000_000:
        sleep_until(clock, now_ns(clock) + 20_000)
    else:
        sleep_until(clock, now_ns(clock) + 500_000)


@njit(cache=True, nogil=True)
def exit_now(code: int) -> None:
    """End the process at once, as a crash does: nothing is flushed, nothing is cleaned up."""
    _exit(code)


@njit(cache=True, nogil=True)
def checksum(words: Words, count: int, seed: int) -> int:
    """A 64-bit check of the first ``count`` words.

    Each step is a bijection of the state and of the word, so a change confined to one word is
    always found; a change of several words is missed with a probability of 2^-64.
    """
    state = np.uint64(seed) ^ np.uint64(0x9E3779B97F4A7C15)
    for k in range(count):
        state = (state ^ np.uint64(words[k])) * np.uint64(0xFF51AFD7ED558CCD)
        state ^= state >> np.uint64(32)
    # 0 stands for "nothing read" in the echo round.
    return np.int64(state) if state != 0 else np.int64(1)  # type: ignore[return-value]


@njit(cache=True, nogil=True)
def combine(first: int, second: int) -> int:
    """One 64-bit check of two, never 0; a change of either alone changes it."""
    state = np.uint64(first) * np.uint64(0xC4CEB9FE1A85EC53) ^ np.uint64(second)
    state *= np.uint64(0xFF51AFD7ED558CCD)
    state ^= state >> np.uint64(32)
    return np.int64(state) if state != 0 else np.int64(1)  # type: ignore[return-value]
