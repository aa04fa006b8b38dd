"""Stands in for CuPy where there is no GPU: same names and calls, kernels compiled for the host.

It exists for the contract test only. Device arrays are host arrays of a type that refuses to be
read as numpy, so that a forgotten transfer or hidden synchronisation fails. Every call is recorded
with the stream it went to. ``test_cuda_contract`` holds its signatures against the real CuPy.
"""

import contextlib
import types

import numpy as np

from benchmarks.baselines.cuda_on_host import CudaOnHost


class Recorder:
    def __init__(self):
        self.events = []
        self.libraries = {}


RECORD = Recorder()


class ndarray:
    def __init__(self, host):
        self.host = host

    dtype = property(lambda self: self.host.dtype)
    shape = property(lambda self: self.host.shape)
    strides = property(lambda self: self.host.strides)
    ndim = property(lambda self: self.host.ndim)
    flags = property(lambda self: types.SimpleNamespace(c_contiguous=self.host.flags.c_contiguous))

    @property
    def __cuda_array_interface__(self):
        return {
            "shape": self.shape,
            "typestr": self.host.dtype.str,
            "version": 3,
            "data": (self.host.ctypes.data, False),
            "strides": self.strides,
        }

    def __array__(self, *_, **__):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def reshape(self, *shape):
        return ndarray(self.host.reshape(*shape))

    def copy(self):
        return ndarray(self.host.copy())

    def __getitem__(self, key):
        return ndarray(self.host[key])

    def __iter__(self):
        return (ndarray(np.asarray(row)) for row in self.host)

    def get(self, stream=None, order="C", out=None, blocking=True):
        RECORD.events.append(("get", stream, blocking))
        if out is None:
            return self.host.copy()
        assert out.shape == self.shape and out.dtype == self.dtype
        out[...] = self.host
        return out

    def set(self, arr, stream=None):
        assert arr.shape == self.shape and arr.dtype == self.dtype and arr.flags.c_contiguous
        RECORD.events.append(("set", stream, None))
        self.host[...] = arr


class Stream:
    current = None

    def __init__(self, null=False, non_blocking=False, ptds=False):
        assert non_blocking
        RECORD.events.append(("stream", self, None))

    def __enter__(self):
        Stream.current = self
        return self

    def __exit__(self, *_):
        Stream.current = None

    def synchronize(self):
        RECORD.events.append(("synchronize", self, None))


class RawModule:
    def __init__(
        self,
        *,
        code=None,
        path=None,
        options=(),
        backend="nvrtc",
        translate_cucomplex=False,
        enable_cooperative_groups=False,
        name_expressions=None,
        jitify=False,
    ):
        self.dtype = "float32" if "typedef float T" in code else "float64"
        self.options = options
        if self.dtype not in RECORD.libraries:
            RECORD.libraries[self.dtype] = CudaOnHost(self.dtype)

    def get_function(self, name):
        library = RECORD.libraries[self.dtype]

        def launch(grid, block, args, *, shared_mem=0):
            assert len(grid) == 3 and len(block) == 3 and isinstance(args, tuple)
            words = []
            for a in args:
                # RawKernel packs arrays as pointers and numpy scalars by their own size.
                assert isinstance(a, (ndarray, np.int64, np.uint64)), type(a)
                words.append(a.host.ctypes.data if isinstance(a, ndarray) else int(a))
            RECORD.events.append(("launch", Stream.current, name))
            library.launch(name.removeprefix("delta_"), grid[:2], block[0], words)

        return launch


def empty(shape, dtype=float, order="C"):
    host = np.full(shape, 77, dtype)
    return ndarray(host)


def asarray(a, dtype=None, order=None, *, blocking=False):
    if isinstance(a, np.ndarray):
        RECORD.events.append(("upload", Stream.current, a.size))
        return ndarray(np.array(a, dtype))
    if isinstance(a, ndarray):
        return a
    RECORD.events.append(("adopt", None, None))
    return ndarray(a.owner.host)


def from_dlpack(x, *, device=None, copy=None):
    RECORD.events.append(("dlpack", None, None))
    return ndarray(x.owner.host)


def stack(tup, axis=0):
    return ndarray(np.stack([p.host for p in tup], axis))


class Pinned:
    """Memory with the buffer interface, as alloc_pinned_memory gives."""

    def __new__(cls, size):
        RECORD.events.append(("pinned", None, size))
        return memoryview(bytearray(size))


cuda = types.SimpleNamespace(
    Stream=Stream,
    alloc_pinned_memory=lambda size: Pinned(size),
    runtime=types.SimpleNamespace(getDevice=lambda: 0),
    is_available=lambda: True,
)


@contextlib.contextmanager
def recording():
    RECORD.events.clear()
    yield RECORD.events
