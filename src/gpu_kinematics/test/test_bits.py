"""One text, several compilers: the same bits from numba strict and from the C text on the host."""

import shutil

import numpy as np
import pytest
from delta_oracles import run_both, same_bits

from benchmarks.baselines.cuda_on_host import CudaOnHost
from gpu_kinematics.cpu import CpuBackend
from gpu_kinematics.kernels import OPS

needs_compiler = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="no C++ compiler"
)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cuda_on_host")
    return {dtype: CudaOnHost(dtype, folder) for dtype in ("float64", "float32")}


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("op", OPS)
def test_numba_strict_equals_the_cuda_text_on_the_host(op, dtype, libraries):
    n = 1_000_000 if op in ("fk", "ik") else 20_000
    ours, theirs = run_both(
        op, dtype, n, np.random.default_rng(7), CpuBackend(threads=2), libraries[dtype]
    )
    for a, b in zip(ours, theirs, strict=True):
        assert same_bits(a, b)
        # A comparison of NaN with NaN would prove nothing.
        assert a.dtype.kind != "f" or np.isfinite(a).mean() > 0.1
