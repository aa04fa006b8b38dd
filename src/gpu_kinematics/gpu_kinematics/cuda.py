"""Runs kernel calls on an NVIDIA GPU through CuPy, with the CUDA C rendering.

Arrays that are on the device stay there: a call is one kernel launch on the caller's current
stream, and nothing waits for it. Arrays on the host are streamed: two sets of pinned buffers, each
with a stream of its own, so that upload, kernel and download of neighbouring chunks overlap and
the batch may be larger than the device.

None of this has been run on a GPU. It has been compiled by NVRTC for four architectures, and its
call layer is exercised against the CuPy interface with the kernels compiled for the host.
"""

from __future__ import annotations

import importlib
import threading
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gpu_kinematics.call import Array, Call, Group, rows_of
from gpu_kinematics.errors import BackendError, DeltaInput
from gpu_kinematics.kernels import OPS
from gpu_kinematics.render import MODES, render_c

__all__ = ["THREADS", "CudaBackend", "find_cupy", "options", "source"]

#: Threads per block; the kernels are compiled with this bound.
THREADS = 128
#: Blocks in flight at most: enough to fill any device, the grid-stride loop does the rest.
MOST_BLOCKS = 65535
#: Robots per chunk when a batch on the host is streamed.
CHUNK = 1 << 20
_PRECISION = {np.dtype(np.float64): "f64", np.dtype(np.float32): "f32"}


def source(dtype: DTypeLike) -> str:
    """CUDA C of all kernels in a precision."""
    return render_c(_PRECISION[np.dtype(dtype)])


def options(mode: str) -> tuple[str, ...]:
    """NVRTC options. Strict: no fused operations, so that every backend gives the same bits."""
    return ("--fmad=false",) if mode == "strict" else ("--fmad=true",)


def find_cupy() -> Any:
    """CuPy, if it is installed and sees a device; BackendError with the reason and the fix."""
    try:
        cp = importlib.import_module("cupy")
    except ImportError as error:
        raise BackendError(
            f"CuPy is not installed ({error}); install cupy-cuda13x, or use backend='cpu'"
        ) from None
    try:
        available = bool(cp.cuda.is_available())
        reason = "" if available else "CuPy sees no CUDA device"
    except Exception as error:  # a driver that is broken fails in its own ways
        available, reason = False, f"CuPy cannot ask for devices ({error})"
    if not available:
        raise BackendError(
            f"{reason}; check nvidia-smi and the NVIDIA driver (in Docker: --gpus all), "
            "or use backend='cpu'"
        )
    return cp


class CudaBackend:
    """CUDA through CuPy.

    Attributes:
        name: "cuda".
        mode: "strict" or "fast", as on the CPU.
        cp: The CuPy module.
    """

    name = "cuda"

    def __init__(self, mode: str = "strict", cp: Any = None, chunk: int = CHUNK) -> None:
        if mode not in MODES:
            raise DeltaInput("mode", f"{mode!r} is not known; known: {', '.join(MODES)}")
        self.mode = mode
        self.cp = cp if cp is not None else find_cupy()
        self.chunk = chunk
        self._modules: dict[tuple[int, Any], Any] = {}
        self._lock = threading.Lock()

    # -- arrays

    def adopt(self, x: Array) -> Array:
        """A device array of any library as a CuPy array, without a copy."""
        if isinstance(x, self.cp.ndarray):
            return x
        if hasattr(x, "__cuda_array_interface__"):
            return self.cp.asarray(x)
        return self.cp.from_dlpack(x)

    def put(self, host: NDArray[Any]) -> Array:
        """A host array on the current device."""
        return self.cp.asarray(host)

    # -- kernels

    def function(self, op: str, dtype: np.dtype[Any]) -> Any:
        """Kernel of an op; the module is compiled on first use and kept for each device."""
        key = (int(self.cp.cuda.runtime.getDevice()), dtype)
        with self._lock:
            if key not in self._modules:
                self._modules[key] = self.cp.RawModule(
                    code=source(dtype), options=options(self.mode)
                )
            return self._modules[key].get_function(f"delta_{op}")

    def run(self, call: Call) -> None:
        """Launch a call on CuPy arrays, on the current stream, without waiting for it."""
        if call.count == 0 or call.outer == 0:
            return
        arguments: list[Any] = [np.int64(call.outer), np.int64(call.count)]
        for group in (*call.inputs, *call.outputs):
            arguments += self._group(group)
        if OPS[call.op].status:
            pointer, _, step, outer = self._group(call.mask)
            arguments += (pointer, step, outer)
        blocks = min(-(-call.count // THREADS), MOST_BLOCKS)
        grid = (blocks, min(call.outer, MOST_BLOCKS), 1)
        self.function(call.op, call.dtype)(grid, (THREADS, 1, 1), tuple(arguments))

    @staticmethod
    def _group(group: Group) -> tuple[Array, np.int64, np.int64, np.int64]:
        pointer = np.uint64(0) if group.array is None else group.array
        return pointer, np.int64(group.row), np.int64(group.step), np.int64(group.outer)

    # -- batches on the host

    def run_host(self, call: Call) -> None:
        """Compute a call on numpy arrays by streaming it through the device in chunks.

        Returns when the results are in place. At most two chunks are on the device at a time.
        """
        if call.count == 0 or call.outer == 0:
            return
        size = min(max(1, self.chunk // call.outer), call.count)
        slots = [_Slot(self, call, size) for _ in range(2 if call.count > size else 1)]
        for number, at in enumerate(range(0, call.count, size)):
            slot = slots[number % len(slots)]
            slot.finish()
            slot.begin(at, min(size, call.count - at))
        for slot in slots:
            slot.finish()


def _view(group: Group, rows: int, call: Call) -> NDArray[Any]:
    """A host group as an array of rows x outer x count, repeats included."""
    size = group.array.itemsize
    return np.lib.stride_tricks.as_strided(
        group.array,
        shape=(rows, call.outer if group.outer else 1, call.count if group.step else 1),
        strides=(group.row * size, group.outer * size, group.step * size),
    )


class _Slot:
    """One set of pinned and device buffers with its stream: a chunk that is under way."""

    def __init__(self, backend: CudaBackend, call: Call, size: int) -> None:
        self.backend, self.call = backend, call
        cp = backend.cp
        self.stream = cp.cuda.Stream(non_blocking=True)
        in_rows, out_rows = rows_of(call.op)
        self.sources = [_view(g, n, call) for g, n in zip(call.inputs, in_rows, strict=True)]
        wanted = [
            None if g.array is None else _view(g, n, call)
            for g, n in zip(call.outputs, out_rows, strict=True)
        ]
        mask = None if call.mask.array is None else _view(call.mask, 1, call)
        self.targets = [*wanted, mask]
        self.pinned_in = [self._pinned(view, size) for view in self.sources]
        self.pinned_out = [None if v is None else self._pinned(v, size) for v in self.targets]
        self.device_in = [cp.empty(host.shape, host.dtype) for host in self.pinned_in]
        self.device_out = [
            None if host is None else cp.empty(host.shape, host.dtype) for host in self.pinned_out
        ]
        # What is the same for all robots goes up once; the stream orders it before the kernel.
        for view, host, device in zip(self.sources, self.pinned_in, self.device_in, strict=True):
            if view.shape[2] == 1:
                np.copyto(host, view)
                device.set(host, stream=self.stream)
        self.at, self.count = 0, 0

    def _pinned(self, view: NDArray[Any], size: int) -> NDArray[Any]:
        shape = (view.shape[0], view.shape[1], min(size, view.shape[2]))
        number = int(np.prod(shape))
        memory = self.backend.cp.cuda.alloc_pinned_memory(max(1, number) * view.itemsize)
        return np.frombuffer(memory, dtype=view.dtype, count=number).reshape(shape)

    def begin(self, at: int, count: int) -> None:
        """Send a chunk up, compute it and ask for it back; returns at once."""
        self.at, self.count = at, count
        call = self.call
        inputs = []
        for view, host, device in zip(self.sources, self.pinned_in, self.device_in, strict=True):
            uniform = view.shape[2] == 1
            if not uniform:
                np.copyto(host[:, :, :count], view[:, :, at : at + count])
                device.set(host, stream=self.stream)
            inputs.append(_dense(device, 0 if uniform else 1))
        outputs = [Group(None) if d is None else _dense(d, 1) for d in self.device_out]
        chunk = Call(
            call.op,
            call.dtype,
            call.outer,
            count,
            tuple(inputs),
            tuple(outputs[:-1]),
            outputs[-1],
        )
        with self.stream:
            self.backend.run(chunk)
            for answer, device in zip(self.pinned_out, self.device_out, strict=True):
                if device is not None:
                    device.get(stream=self.stream, out=answer, blocking=False)

    def finish(self) -> None:
        """Wait for the chunk of this slot and hand its results over."""
        if self.count == 0:
            return
        self.stream.synchronize()
        for view, host in zip(self.targets, self.pinned_out, strict=True):
            if view is not None and host is not None:
                view[:, :, self.at : self.at + self.count] = host[:, :, : self.count]
        self.count = 0


def _dense(device: Array, step: int) -> Group:
    """A device buffer of rows x outer x count as a group."""
    _rows, outer, count = device.shape
    return Group(device, outer * count, step, count if outer > 1 else 0)
