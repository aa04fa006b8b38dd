"""NVRTC compiles every kernel for the GPU, without a GPU: no local memory, nothing fused."""

import re

import pytest

from gpu_kinematics.cuda import options, source
from gpu_kinematics.kernels import OPS

nvrtc = pytest.importorskip("cupy_backends.cuda.libs.nvrtc", reason="CuPy is not installed")
ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_120")


def compile_for(arch, dtype, mode):
    """PTX, cubin and the assembler's log."""
    program = nvrtc.createProgram(source(dtype), "delta.cu", [], [])
    try:
        flags = [f"--gpu-architecture={arch}", "--ptxas-options=-v", *options(mode)]
        nvrtc.compileProgram(program, flags)
        return (
            nvrtc.getPTX(program).decode(),
            nvrtc.getCUBIN(program),
            nvrtc.getProgramLog(program),
        )
    finally:
        nvrtc.destroyProgram(program)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_strict_kernels(arch, dtype):
    ptx, cubin, log = compile_for(arch, dtype, "strict")
    assert cubin[:4] == b"\x7fELF"
    entries = set(re.findall(r"\.entry (\w+)", ptx))
    assert entries == {f"delta_{op}" for op in OPS}
    assert ".local" not in ptx
    assert not re.search(r"\b(fma|mad)\.(rn|f32|f64)", ptx)
    kind = "f64" if dtype == "float64" else "f32"
    assert f"div.rn.{kind}" in ptx and f"sqrt.rn.{kind}" in ptx
    other = "f32" if kind == "f64" else "f64"
    assert not re.search(rf"\b(add|sub|mul|div)\.(rn\.)?{other}\b", ptx)
    frames = re.findall(
        r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", log
    )
    # One entry per kernel; further ones are the compiler's own division and root routines.
    assert len(frames) >= len(OPS)
    assert all(frame == ("0", "0", "0") for frame in frames)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_fast_mode_does_fuse(dtype):
    ptx, _, _ = compile_for("sm_90", dtype, "fast")
    assert re.search(r"\bfma\.rn", ptx)
