"""Arrays of callers: what kind they are, what layout they have, and arrays of the same kind out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gpu_kinematics.call import Array, Group
from gpu_kinematics.errors import DeltaInput

__all__ = ["LAYOUTS", "Batch", "check_dtype", "check_out", "is_device_array", "open_batch"]

LAYOUTS = ("soa", "aos")
_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
_CPU_DEVICES = (1, 3, 11, 13)  # DLPack: kDLCPU, kDLCUDAHost, kDLROCMHost, kDLCUDAManaged
_CUDA_DEVICE = 2


def check_dtype(field: str, dtype: DTypeLike) -> np.dtype[Any]:
    """Return the dtype if the kernels take it."""
    found = np.dtype(dtype)
    if found not in _FLOATS or not found.isnative:
        raise DeltaInput(field, f"dtype {found} is not supported; use float64 or float32")
    return found


def is_device_array(x: Array) -> bool:
    """Whether an object lives on a CUDA device."""
    if isinstance(x, np.ndarray):
        return False
    if hasattr(x, "__cuda_array_interface__"):
        return True
    if hasattr(x, "__dlpack_device__"):
        return int(x.__dlpack_device__()[0]) == _CUDA_DEVICE
    return False


def host_array(field: str, x: Array) -> NDArray[Any]:
    """A caller's host object as a numpy array, without a copy where that can be."""
    if type(x) is np.ndarray:
        return x
    if isinstance(x, np.ndarray):
        if isinstance(x, np.ma.MaskedArray):
            raise DeltaInput(field, "masked arrays are not supported; fill them first")
        return x.view(np.ndarray)
    if hasattr(x, "__dlpack__"):
        device = int(x.__dlpack_device__()[0])
        if device not in _CPU_DEVICES:
            raise DeltaInput(field, f"lives on DLPack device type {device}, not on CPU or CUDA")
        return np.from_dlpack(x)
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise DeltaInput(field, f"is not an array ({error})") from None
    if isinstance(x, (list, tuple, int, float)) and array.dtype.kind in "iu":
        array = array.astype(np.float64)
    return array


class Batch:
    """A caller's array seen as rows x robots.

    Attributes:
        array: The array.
        shape: Shape of the batch, without the axis of the rows.
        count: Number of robots.
        group: The strides.
    """

    __slots__ = ("array", "count", "group", "shape")

    def __init__(self, array: Array, shape: tuple[int, ...], count: int, group: Group) -> None:
        self.array, self.shape, self.count, self.group = array, shape, count, group


def _collapse(shape: tuple[int, ...], strides: tuple[int, ...]) -> int | None:
    """Step that walks a batch of any dimensions in C order; None if there is no one step."""
    step: int | None = None
    span = 1
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if n == 1:
            continue
        if step is None:
            step = stride
        elif stride != span * step:
            return None
        span *= n
    return 0 if step is None else step


def open_batch(field: str, x: Array, rows: int, layout: str, *, writing: bool = False) -> Batch:
    """See an array as ``rows`` rows of robots.

    Args:
        field: Name of the argument, for messages.
        x: numpy or cupy array.
        rows: Length of the axis of components.
        layout: "soa" has that axis first, "aos" last.
        writing: Whether results go into it; then it is never copied.
    """
    dtype = x.dtype
    if dtype not in _FLOATS or not dtype.isnative:
        check_dtype(field, dtype)
    shape = x.shape
    axis = 0 if layout == "soa" else -1
    if not shape or shape[axis] != rows:
        want = f"({rows}, ...)" if layout == "soa" else f"(..., {rows})"
        hint = ""
        if shape and shape[-1 - axis] == rows:
            hint = f"; pass layout={'aos' if layout == 'soa' else 'soa'!r}?"
        raise DeltaInput(
            field, f"must have the shape {want} for layout {layout!r}, got {shape}{hint}"
        )
    batch = shape[1:] if layout == "soa" else shape[:-1]
    count = math.prod(batch)
    size = dtype.itemsize
    strides = x.strides
    inner = strides[1:] if layout == "soa" else strides[:-1]
    step = _collapse(batch, inner)
    misplaced = step is None or step % size or strides[axis] % size or _unaligned(x)
    if misplaced:
        if writing:
            raise DeltaInput(
                field, "has strides that results cannot be written to; make it contiguous"
            )
        x = x.copy()
        strides = x.strides
        inner = strides[1:] if layout == "soa" else strides[:-1]
        step = _collapse(batch, inner)
    return Batch(
        x, batch, count, Group(x, strides[axis] // size, (step or 0) // size if count > 1 else 1)
    )


def _unaligned(x: Array) -> bool:
    flags = getattr(x, "flags", None)
    return isinstance(x, np.ndarray) and flags is not None and not flags.aligned


def check_out(
    field: str, out: Array, like: Batch, shape: tuple[int, ...], dtype: DTypeLike
) -> None:
    """Refuse an ``out`` array that does not fit, cannot be written or overlaps the input."""
    if type(out) is not type(like.array):
        raise DeltaInput(
            field,
            f"must be of the same kind as the input, {type(like.array).__name__}, "
            f"got {type(out).__name__}",
        )
    if out.dtype != dtype or out.shape != shape:
        raise DeltaInput(
            field, f"must have shape {shape} and dtype {dtype}, got {out.shape} and {out.dtype}"
        )
    if isinstance(out, np.ndarray):
        if not out.flags.writeable:
            raise DeltaInput(field, "is read-only")
        same = (
            out.__array_interface__["data"][0] == like.array.__array_interface__["data"][0]
            and out.strides == like.array.strides
        )
        if not same and np.may_share_memory(out, like.array):
            raise DeltaInput(field, "overlaps the input without being the same array")
