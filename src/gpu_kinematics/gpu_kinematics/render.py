"""Turns the kernel text into CUDA C and into numba modules, kept where numba finds them.

A module is written when it is first used: numba caches what it compiles from a file. It goes into
numba's cache folder (NUMBA_CACHE_DIR), the user's cache folder if there is none, or a folder for
this process alone if neither can be written to. Its name holds a digest of what it is made from,
so a file that exists is the right one, whichever process wrote it.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numba

from gpu_kinematics.kernels import OPS
from gpu_kinematics.loops import BLOCK, cuda_kernel, numba_general, numba_plain
from gpu_kinematics.writer import CWriter, NumbaWriter

__all__ = ["MODES", "numba_module", "render_c", "render_numba"]

#: name -> LLVM flags. "strict" rounds every operation and so gives the same bits everywhere.
MODES: dict[str, tuple[str, ...]] = {"strict": (), "fast": ("arcp", "contract", "nsz")}

_NUMBA_HEAD = '''"""Rendered from gpu_kinematics.kernels; written again when it is not there."""

import numpy as np
from numba import njit

from gpu_kinematics.intrinsics import (
    address, both, either, fabs, get, hold, put, rint, select, sqrt, to_mask,
)

T = np.float{bits}
U = np.uint16
I = np.int64  # for numbers that are not to be literals: each would compile anew
SIZE = {size}
BLOCK = {block}
FLAGS = {{{flags}}}
inlined = njit(forceinline=True, error_model="numpy", fastmath=FLAGS)
shared = njit(error_model="numpy")
compiled = njit(nogil=True, cache=True, error_model="numpy", fastmath=FLAGS)


@shared
def load(where, row, step, rows, count, scratch, first):
    source = address(T, where)
    for r in range(rows):
        for i in range(count):
            put(scratch, (first + r) * BLOCK + i, get(source, r * row + i * step))


@shared
def store(where, row, step, rows, count, scratch, first):
    target = address(T, where)
    for r in range(rows):
        for i in range(count):
            put(target, r * row + i * step, get(scratch, (first + r) * BLOCK + i))
'''

_C_HEAD = """// Rendered from gpu_kinematics.kernels.
#ifndef KERNEL_FUNCTION
#define KERNEL_FUNCTION static __device__ __forceinline__
#define KERNEL extern "C" __global__ void __launch_bounds__(128, 1)
#endif
typedef {type} T;
typedef long long I;
typedef unsigned short U;"""


def render_numba(precision: str, mode: str) -> str:
    """The numba module of one precision ("f64", "f32") and mode, as text."""
    writer = NumbaWriter(precision)
    flags = ", ".join(f'"{flag}"' for flag in MODES[mode])
    size = 8 if precision == "f64" else 4
    parts = [_NUMBA_HEAD.format(bits=8 * size, size=size, block=BLOCK, flags=flags)]
    parts += [writer.function(name) for name in writer.functions]
    for op, spec in OPS.items():
        parts.append(numba_general(op))
        if spec.fast:
            parts += [numba_plain(op, status=False), numba_plain(op, status=True)]
    return "\n\n\n".join(parts) + "\n"


def render_c(precision: str) -> str:
    """The CUDA C text of one precision; a host compiler takes it too, with a prelude."""
    writer = CWriter(precision)
    parts = [_C_HEAD.format(type=writer.ctype)]
    parts += [writer.function(name) for name in writer.functions]
    parts += [cuda_kernel(op) for op in OPS]
    return "\n\n".join(parts) + "\n"


@functools.cache
def _digest() -> str:
    """Of everything that a rendered module is made from, and of what is compiled into it."""
    here = Path(__file__).parent
    sha = hashlib.sha256()
    for name in ("intrinsics.py", "loops.py", "render.py", "writer.py"):
        sha.update((here / name).read_bytes())
    for path in sorted((here / "kernels").glob("*.py")):
        sha.update(path.read_bytes())
    return sha.hexdigest()[:16]


def _folders() -> Iterator[Path]:
    """Where rendered modules may be kept, the best first."""
    # Named like the package: set-up removes what numba made from a package that has changed.
    if numba.config.CACHE_DIR:
        yield Path(numba.config.CACHE_DIR, "rendered", "gpu_kinematics")
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    yield Path(home, "gpu_kinematics")
    own = tempfile.mkdtemp(prefix="gpu_kinematics_")
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    yield Path(own)


def _write(path: Path, text: str) -> None:
    """Make a file at once, so that processes that start together see all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    number, draft = tempfile.mkstemp(dir=path.parent, suffix=".new")
    with open(number, "w", encoding="utf-8") as file:
        file.write(text)
    os.utime(draft, (0, 0))  # numba compiles a file anew whose time has changed
    Path(draft).replace(path)


@functools.cache
def numba_module(precision: str, mode: str) -> ModuleType:
    """The numba module of one precision ("f64", "f32") and mode, rendered if it never was."""
    name = f"cpu_{precision}_{mode}_{_digest()}"
    for folder in _folders():
        path = folder / f"{name}.py"
        try:
            if not path.exists():
                _write(path, render_numba(precision, mode))
            # What numba has cached names the module, and is looked up by that name.
            full = f"gpu_kinematics.rendered.{name}"
            spec = importlib.util.spec_from_file_location(full, path)
            assert spec is not None and spec.loader is not None  # noqa: S101
            module = importlib.util.module_from_spec(spec)
            sys.modules[full] = module
            spec.loader.exec_module(module)
        except OSError:
            continue
        return module
    raise OSError("no folder can be written to, not even a temporary one")


def main() -> int:
    """Print a rendering: ``python -m gpu_kinematics.render f64 strict``, or ``... f64 cuda``."""
    precision, mode = sys.argv[1:]
    print(render_c(precision) if mode == "cuda" else render_numba(precision, mode))
    return 0


if __name__ == "__main__":
    sys.exit(main())
