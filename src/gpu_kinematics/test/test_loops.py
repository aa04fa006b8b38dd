"""Kernels work in memory that they own for as long as they work."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from delta_oracles import run_both

from gpu_kinematics.cpu import CpuBackend
from gpu_kinematics.kernels import OPS

#: Memory of more than a page goes back to the system as soon as it is released, where a touch ends
#: the process, and what is smaller is written over.
STRICT = {"MALLOC_MMAP_THRESHOLD_": "4096", "MALLOC_PERTURB_": "165"}


def digests(dtype):
    """What every kernel makes of the same inputs, in a layout that needs scratch memory."""
    found = []
    for op in OPS:
        backend = CpuBackend()
        arrays, _ = run_both(op, dtype, 600, np.random.default_rng(11), backend, backend)
        data = b"".join(np.nan_to_num(array).tobytes() for array in arrays)
        found.append(f"{op} {hashlib.sha256(data).hexdigest()}")
    return found


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_kernels_touch_no_memory_that_they_have_released(dtype):
    done = subprocess.run(
        [sys.executable, __file__, dtype],
        env={**os.environ, **STRICT},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:-1] == digests(dtype)


if __name__ == "__main__":
    print("\n".join(digests(sys.argv[1])))
