"""One kernel call, described without saying where it runs.

A group of rows is an array with three strides, in elements: between rows, between robots and
between turns of the outer axis (samples, slices). A stride of zero repeats: one geometry for all
robots has step 0, a path that stays the same for all samples has outer 0.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gpu_kinematics.kernels import OPS, rows

__all__ = ["Array", "Backend", "Call", "Group", "HostArray", "rows_of"]

#: An array of a caller: of numpy, CuPy, or any library that speaks DLPack or the CUDA array
#: interface; on the host also what numpy makes an array of.
Array = Any
#: Numbers of either precision on the host.
HostArray = NDArray[np.floating[Any]]


class Group(NamedTuple):
    """Rows of one array; ``array`` is None for an output that is not wanted."""

    array: Array
    row: int = 0
    step: int = 0
    outer: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """One kernel over outer x count robots.

    Attributes:
        op: Name of the kernel.
        dtype: float64 or float32.
        outer: Length of the outer axis, 1 for plain batches.
        count: Number of robots.
        inputs: Geometry, options, then the op's own groups, in the order of ``OPS``.
        outputs: Groups in the order of ``OPS``.
        mask: The status masks, uint16; row is not used.
    """

    op: str
    dtype: np.dtype[Any]
    outer: int
    count: int
    inputs: tuple[Group, ...]
    outputs: tuple[Group, ...]
    mask: Group


@functools.cache
def rows_of(op: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Number of rows of each input and output group of a kernel."""
    inputs, outputs = OPS[op].inputs, OPS[op].outputs
    return tuple(rows(kind) for kind in inputs.values()), tuple(map(rows, outputs.values()))


class Backend(Protocol):
    """Where kernels run."""

    name: str

    def run(self, call: Call) -> None:
        """Compute a call whose arrays belong to this backend."""
