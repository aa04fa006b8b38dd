"""What only a GPU can show. Skipped, with the reason, where there is none."""

import numpy as np
import pytest
from delta_oracles import MM, same_bits

from gpu_kinematics import BackendError, CudaBackend, Delta
from gpu_kinematics.cuda import find_cupy

try:
    cp = find_cupy()
    REASON = ""
except BackendError as error:
    cp, REASON = None, str(error)

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(cp is None, reason=REASON or "a GPU is there")]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("layout", ["soa", "aos"])
def test_same_bits_as_the_cpu(dtype, layout):
    shape = (3, 1_000_000) if layout == "soa" else (1_000_000, 3)
    angles = np.random.default_rng(0).uniform(-0.8, 1.4, shape).astype(dtype)
    cpu = Delta(MM, backend="cpu", layout=layout).fk(angles)
    gpu = Delta(MM, backend="cuda", layout=layout).fk(cp.asarray(angles))
    assert isinstance(gpu.position, cp.ndarray)
    assert same_bits(cpu.position, gpu.position.get())
    assert (cpu.status == gpu.status.get()).all()


def test_current_stream_is_used():
    robot = Delta(MM, backend="cuda")
    angles = cp.full((3, 1 << 20), 0.2)
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        robot.fk(angles)
    stream.synchronize()


def test_streaming_of_host_batches():
    angles = np.random.default_rng(0).uniform(-0.6, 1.2, (3, 1_000_000))
    robot = Delta(MM, backend="cuda", cuda=CudaBackend(chunk=100_003))
    assert same_bits(robot.fk(angles).position, Delta(MM, backend="cpu").fk(angles).position)
