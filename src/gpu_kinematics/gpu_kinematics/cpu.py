"""Runs kernel calls on the CPU, with the numba rendering.

A batch is split over threads of one pool; the kernels release the GIL. A thread gets at least
``GRAIN`` robots, so that small batches pay nothing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import njit

from gpu_kinematics.call import Call, Group
from gpu_kinematics.errors import DeltaInput
from gpu_kinematics.kernels import OPS
from gpu_kinematics.loops import BLOCK
from gpu_kinematics.render import MODES, numba_module

__all__ = ["GRAIN", "CpuBackend", "addresses", "kernel"]

GRAIN = 64 * BLOCK
_PRECISION = {np.dtype(np.float64): "f64", np.dtype(np.float32): "f32"}
_loaded: dict[tuple[str, Any, str], _Once] = {}
_lock = threading.Lock()
_pools: dict[int, ThreadPoolExecutor] = {}


@njit(cache=True)
def addresses(a: Any, b: Any, c: Any) -> Any:
    """Where three arrays lie; numpy's own way of telling takes a microsecond for each."""
    return a.ctypes.data, b.ctypes.data, c.ctypes.data


def kernel(name: str, dtype: np.dtype[Any], mode: str) -> _Once:
    """A function of the rendered module of a precision and mode; compiled on first call."""
    key = (name, dtype, mode)
    found = _loaded.get(key)
    if found is None:
        with _lock:
            module = numba_module(_PRECISION[dtype], mode)
        found = _Once(getattr(module, name))
        _loaded[key] = found
    return found


class _Once:
    """A compiled function whose first call, which compiles, is made by one thread at a time."""

    __slots__ = ("function", "warm")

    def __init__(self, function: Callable[..., None]) -> None:
        self.function = function
        self.warm = False

    def __call__(self, *arguments: int) -> None:
        if self.warm:
            self.function(*arguments)
            return
        with _lock:
            self.function(*arguments)
            self.warm = True


def _pool(threads: int) -> ThreadPoolExecutor:
    with _lock:
        if threads not in _pools:
            _pools[threads] = ThreadPoolExecutor(threads, thread_name_prefix="delta")
        return _pools[threads]


def _shift(group: Group, turns: int, robots: int, size: int) -> int:
    """Address of a group from a robot and turn on; 0 for an output that is not wanted."""
    if group.array is None:
        return 0
    base: int = group.array.ctypes.data
    return base + size * (turns * group.outer + robots * group.step)


class CpuBackend:
    """numba on the CPU.

    Attributes:
        name: "cpu".
        mode: "strict" (every operation rounded, same bits as the GPU) or "fast" (fused operations).
        threads: Threads for large batches.
    """

    name = "cpu"

    def __init__(self, mode: str = "strict", threads: int = 1) -> None:
        if mode not in MODES:
            raise DeltaInput("mode", f"{mode!r} is not known; known: {', '.join(MODES)}")
        if not isinstance(threads, int) or isinstance(threads, bool) or not 0 <= threads <= 256:
            raise DeltaInput("threads", f"must be a number from 0 (all) to 256, got {threads!r}")
        self.mode = mode
        self.threads = threads or os.cpu_count() or 1

    def run(self, call: Call) -> None:
        """Compute a call on numpy arrays."""
        if call.count == 0 or call.outer == 0:
            return
        parts = min(self.threads, max(1, call.outer * call.count // GRAIN))
        if parts == 1:
            self._part(call, 0, call.outer, 0, call.count)
            return
        if call.count >= parts * BLOCK:
            size = -(-call.count // (parts * BLOCK)) * BLOCK
            pieces = [
                (0, call.outer, at, min(size, call.count - at)) for at in range(0, call.count, size)
            ]
        else:
            size = -(-call.outer // parts)
            pieces = [
                (at, min(size, call.outer - at), 0, call.count) for at in range(0, call.outer, size)
            ]
        # This thread takes the last piece itself.
        pool = _pool(self.threads)
        futures = [pool.submit(self._part, call, *piece) for piece in pieces[:-1]]
        self._part(call, *pieces[-1])
        for future in futures:
            future.result()

    def _part(self, call: Call, turn: int, turns: int, at: int, count: int) -> None:
        size = call.dtype.itemsize
        groups = (*call.inputs, *call.outputs)
        if OPS[call.op].fast and turns == 1 and self._plain(call):
            geometry, options, *own = call.inputs
            arguments = [
                count,
                _shift(geometry, turn, 0, size),
                _shift(options, turn, 0, size),
            ]
            for group in (*own, *call.outputs):
                arguments += (_shift(group, turn, at, size), group.row)
            if call.mask.array is None:
                kernel(f"{call.op}_plain", call.dtype, self.mode)(*arguments)
            else:
                arguments.append(_shift(call.mask, turn, at, 2))
                kernel(f"{call.op}_plain_status", call.dtype, self.mode)(*arguments)
            return
        arguments = [turns, count]
        for group in groups:
            arguments += (_shift(group, turn, at, size), group.row, group.step, group.outer)
        if OPS[call.op].status:
            arguments += (_shift(call.mask, turn, at, 2), call.mask.step, call.mask.outer)
        kernel(f"{call.op}_general", call.dtype, self.mode)(*arguments)

    @staticmethod
    def _plain(call: Call) -> bool:
        """Whether every robot's data lie side by side, with one geometry and options for all."""
        geometry, options, *own = call.inputs
        return (
            geometry.step == 0
            and options.step == 0
            and geometry.row == 1
            and options.row == 1
            and all(g.step == 1 for g in own)
            and all(g.step == 1 and g.array is not None for g in call.outputs)
            and (call.mask.array is None or call.mask.step == 1)
        )
