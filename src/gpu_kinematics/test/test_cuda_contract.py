"""The CuPy call layer against the CuPy interface, with the CUDA C text compiled for the host."""

import inspect
import shutil
from itertools import pairwise

import cupy_stand_in as stand_in
import numpy as np
import pytest
from delta_oracles import MM, same_bits

from gpu_kinematics import BackendError, CudaBackend, Delta, DeltaInput, Geometry
from gpu_kinematics.cuda import THREADS

pytestmark = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="no C++ compiler"
)
ANGLES = np.random.default_rng(0).uniform(-0.8, 1.4, (3, 1000))


def robot(geometry=MM, **settings):
    chunk = settings.pop("chunk", 1 << 20)
    return Delta(geometry, cuda=CudaBackend(cp=stand_in, chunk=chunk), **settings)


def cpu(geometry=MM, **settings):
    return Delta(geometry, backend="cpu", **settings)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("layout", ["soa", "aos"])
def test_device_arrays_in_device_arrays_out(dtype, layout):
    angles = np.ascontiguousarray((ANGLES if layout == "soa" else ANGLES.T), dtype)
    on_device = stand_in.asarray(angles)
    gpu, host = robot(layout=layout), cpu(layout=layout)
    for name in ("fk", "ik", "jacobian", "measures", "forward_motion"):
        for a, b in zip(getattr(gpu, name)(on_device), getattr(host, name)(angles), strict=True):
            assert isinstance(a, stand_in.ndarray)
            assert same_bits(a.host, b), name


def test_a_call_is_one_launch_on_the_current_stream_and_waits_for_nothing():
    gpu, on_device = robot(), stand_in.asarray(ANGLES)
    gpu.fk(on_device)  # the first call uploads geometry and options
    stream = stand_in.Stream(non_blocking=True)
    with stand_in.recording() as events, stream:
        gpu.fk(on_device)
    assert events == [("launch", stream, "delta_fk")]


def test_grid_is_smaller_than_the_batch():
    many = np.random.default_rng(1).uniform(-0.6, 1.2, (3, 40_000))
    gpu = robot()
    import gpu_kinematics.cuda as module

    old, module.MOST_BLOCKS = module.MOST_BLOCKS, 3
    try:
        found = gpu.fk(stand_in.asarray(many)).position.host
    finally:
        module.MOST_BLOCKS = old
    assert many.shape[1] > 3 * THREADS
    assert same_bits(found, cpu().fk(many).position)


def test_out_and_strides_without_copies():
    gpu = robot(layout="aos")
    wide = np.zeros((1000, 5))
    wide[:, 1:4] = ANGLES.T
    view = stand_in.ndarray(wide[::2, 1:4])
    out = stand_in.empty((500, 3))
    result = gpu.fk(view, out=out)
    assert result.position is out
    assert same_bits(out.host, cpu(layout="aos").fk(ANGLES.T[::2]).position)
    with pytest.raises(DeltaInput, match="same kind"):
        gpu.fk(view, out=np.zeros((500, 3)))


class Foreign:
    """An array of another library: CUDA array interface, or DLPack on a CUDA device."""

    def __init__(self, owner, dlpack):
        self.owner = owner
        if dlpack:
            self.__dlpack__ = lambda **_: None
            self.__dlpack_device__ = lambda: (2, 0)
        else:
            self.__cuda_array_interface__ = owner.__cuda_array_interface__


@pytest.mark.parametrize(("dlpack", "event"), [(True, "dlpack"), (False, "adopt")])
def test_other_libraries_arrays(dlpack, event):
    foreign = Foreign(stand_in.asarray(ANGLES), dlpack)
    with stand_in.recording() as events:
        position = robot().fk(foreign).position
    assert event in [name for name, *_ in events]
    assert same_bits(position.host, cpu().fk(ANGLES).position)


@pytest.mark.parametrize("chunk", [1 << 20, 333, 1])
def test_host_batches_are_streamed_through_two_pinned_buffers(chunk):
    angles = ANGLES[:, :1000] if chunk > 1 else ANGLES[:, :5]
    with stand_in.recording() as events:
        position, status = robot(chunk=chunk).fk(angles)
    reference = cpu().fk(np.ascontiguousarray(angles))
    assert isinstance(position, np.ndarray) and same_bits(position, reference.position)
    assert (status == reference.status).all()
    streams = [stream for name, stream, _ in events if name == "stream"]
    launches = [stream for name, stream, _ in events if name == "launch"]
    chunks = -(-angles.shape[1] // chunk)
    assert len(streams) == min(2, chunks) and len(launches) == chunks
    # Neighbouring chunks are on different streams, and nothing blocks but a slot on itself.
    assert all(a is not b for a, b in pairwise(launches))
    assert all(blocking is False for name, _, blocking in events if name == "get")
    names = [name for name, *_ in events]
    if chunks > 1:
        first_wait = names.index("synchronize")
        assert names[:first_wait].count("launch") == 2


def test_streaming_per_robot_geometry_and_aos():
    n = 700
    geometry = Geometry(np.linspace(8, 12, n), 40.0, np.linspace(66, 70, n))
    angles = np.ascontiguousarray(ANGLES[:, :n].T)
    found = robot(geometry, chunk=128, layout="aos").ik(
        cpu(geometry, layout="aos").fk(angles).position
    )
    reference = cpu(geometry, layout="aos").ik(cpu(geometry, layout="aos").fk(angles).position)
    assert same_bits(found.angle, reference.angle)


def test_trajectories_and_maps_through_the_device():
    from gpu_kinematics import Fleet, Move, map_workspace

    move = Move(max_velocity=500.0, max_acceleration=8000.0, max_jerk=4e5, height=10.0, overlap=0.5)
    start, goal = (
        np.array([[0.0, 5], [0, 1], [-60, -65]]),
        np.array([[9.0, -5], [4, 3], [-62, -60]]),
    )
    motions = [
        Fleet(d, start, goal, move).sample(np.linspace(0, 0.2, 50))
        for d in (robot(chunk=60), cpu())
    ]
    for name in ("position", "angle", "rate2", "status"):
        assert same_bits(getattr(motions[0], name), getattr(motions[1], name))
    maps = [map_workspace(d, [-50, -50, -100], [50, 50, -30], [9, 9, 9]) for d in (robot(), cpu())]
    assert (maps[0].status == maps[1].status).all()


def test_device_array_without_a_device():
    with pytest.raises(BackendError, match="CUDA device"):
        cpu().fk(stand_in.asarray(ANGLES))


def test_backend_cuda_raises_and_auto_falls_back_with_one_message(caplog, monkeypatch):
    reason = "CuPy sees no CUDA device in this test; check nvidia-smi, or use backend='cpu'"

    def none():
        raise BackendError(reason)

    monkeypatch.setattr("gpu_kinematics.cuda.find_cupy", none)
    with pytest.raises(BackendError, match="nvidia-smi"):
        Delta(MM, backend="cuda")
    with caplog.at_level("INFO"):
        for _ in range(3):
            robot = Delta(MM, backend="auto")
            assert robot.backend == "cpu" and robot.fallback == reason
    said = [record for record in caplog.records if reason in record.message]
    # No warning: a program that asks for "auto" takes either, and its screen stays quiet.
    assert [record.levelname for record in said] == ["INFO"]


# -- the stand-in keeps to the real interface

CALLS = ["RawModule", "asarray", "empty", "from_dlpack", "stack"]


def test_stand_in_takes_what_the_real_cupy_takes():
    cp = pytest.importorskip("cupy", reason="CuPy is not installed")
    for name in CALLS:
        ours, real = getattr(stand_in, name), getattr(cp, name)
        documented = (real.__doc__ or "") + str(_signature(real))
        for parameter in inspect.signature(ours).parameters:
            assert parameter in documented, f"cupy.{name} has no {parameter}"
    for name, words in {
        "get": ("stream", "out", "blocking"),
        "set": ("arr", "stream"),
    }.items():
        text = getattr(cp.ndarray, name).__doc__
        assert all(word in text for word in words)
    assert "non_blocking" in cp.cuda.Stream.__doc__ + str(_signature(cp.cuda.Stream))
    assert callable(cp.cuda.alloc_pinned_memory) and callable(cp.cuda.runtime.getDevice)
    assert hasattr(cp.RawModule, "get_function") and callable(cp.RawKernel)


def _signature(thing):
    try:
        return inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
