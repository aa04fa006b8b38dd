"""The CUDA C rendering, compiled by the host's C++ compiler.

The text is the one that goes to the GPU, behind a prelude that stands in for the few CUDA words it
uses; blocks and threads become loops. It shows that another compiler makes the same bits of the
same text, and it lets the grid-stride loops and argument lists be tested without a GPU.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from gpu_kinematics.call import Call, Group
from gpu_kinematics.cuda import source
from gpu_kinematics.errors import BackendError
from gpu_kinematics.kernels import OPS

__all__ = ["CudaOnHost"]

_PRELUDE = """
#include <cmath>
using std::sqrt; using std::rint; using std::fabs;
struct Index { unsigned x, y, z; };
static thread_local Index threadIdx, blockIdx, blockDim, gridDim;
#define KERNEL_FUNCTION static inline
#define KERNEL extern "C" void
"""

_ENTRY = """
extern "C" void place(unsigned gx, unsigned gy, unsigned bx, unsigned tx, unsigned ty, unsigned t) {
  gridDim = {gx, gy, 1}; blockDim = {bx, 1, 1}; blockIdx = {tx, ty, 0}; threadIdx = {t, 0, 0};
}
"""


def _launcher(op: str) -> str:
    """C entry of one kernel: arguments as 64-bit words, looped over the grid."""
    words: list[str] = ["a[0]", "a[1]"]
    kinds = ["const T*"] * len(OPS[op].inputs) + ["T*"] * len(OPS[op].outputs)
    for kind in kinds:
        at = len(words)
        words += [f"({kind})a[{at}]", *(f"a[{at + i}]" for i in (1, 2, 3))]
    if OPS[op].status:
        at = len(words)
        words += [f"(U*)a[{at}]", f"a[{at + 1}]", f"a[{at + 2}]"]
    return (
        f'extern "C" void launch_delta_{op}(unsigned gx, unsigned gy, unsigned bx, const I* a) {{\n'
        "  for (unsigned y = 0; y < gy; ++y) for (unsigned x = 0; x < gx; ++x)\n"
        "  for (unsigned t = 0; t < bx; ++t) {\n"
        f"    place(gx, gy, bx, x, y, t); delta_{op}({', '.join(words)});\n  }}\n}}\n"
    )


class CudaOnHost:
    """The kernels of one precision in a shared library made by g++ or clang++."""

    def __init__(self, dtype: Any, folder: Path | None = None) -> None:
        """Compile, or take what was compiled before.

        Args:
            dtype: float64 or float32.
            folder: Where the library is kept; a temporary folder by default.
        """
        compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
        if not compiler:
            raise BackendError("no C++ compiler (g++ or clang++) on the PATH")
        self.dtype = np.dtype(dtype)
        text = _PRELUDE + source(self.dtype) + _ENTRY + "".join(_launcher(op) for op in OPS)
        where = folder or Path(tempfile.mkdtemp(prefix="delta_on_host_"))
        where.mkdir(parents=True, exist_ok=True)
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        library = where / f"delta_{self.dtype.name}_{name}.so"
        if not library.exists():
            code = library.with_suffix(".cpp")
            code.write_text(text, encoding="utf-8")
            flags = ["-O2", "-std=c++17", "-ffp-contract=off", "-fPIC", "-shared", "-w"]
            done = subprocess.run(
                [compiler, *flags, "-o", str(library), str(code)],
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            if done.returncode:
                raise BackendError(f"{compiler} failed: {done.stderr[-2000:]}")
        self._library = ctypes.CDLL(str(library))

    def launch(self, op: str, grid: tuple[int, int], block: int, words: list[int]) -> None:
        """Run a kernel over a grid; words are its arguments in order."""
        packed = (ctypes.c_longlong * len(words))(*words)
        function = getattr(self._library, f"launch_delta_{op}")
        function.restype = None
        function(*(ctypes.c_uint(n) for n in (*grid, block)), packed)

    def run(self, call: Call, block: int = 128) -> None:
        """Compute a call on numpy arrays, with one thread per robot."""
        words = [call.outer, call.count]
        for group in (*call.inputs, *call.outputs):
            words += (_pointer(group), group.row, group.step, group.outer)
        if OPS[call.op].status:
            words += (_pointer(call.mask), call.mask.step, call.mask.outer)
        self.launch(call.op, (-(-call.count // block), call.outer), block, words)


def _pointer(group: Group) -> int:
    return 0 if group.array is None else int(group.array.ctypes.data)
