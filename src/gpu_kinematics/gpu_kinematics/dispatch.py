"""Puts kernel calls together and runs them where the caller's arrays are."""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from gpu_kinematics.arrays import (
    LAYOUTS,
    Batch,
    check_dtype,
    check_out,
    host_array,
    is_device_array,
    open_batch,
)
from gpu_kinematics.call import Array, Call, Group, HostArray, rows_of
from gpu_kinematics.cpu import CpuBackend, addresses, kernel
from gpu_kinematics.cuda import CudaBackend
from gpu_kinematics.errors import BackendError, DeltaInput
from gpu_kinematics.geometry import Geometry, Limits
from gpu_kinematics.kernels import OPS
from kin_core import checks

__all__ = ["BACKENDS", "Branch", "Dispatcher", "Opened"]

BACKENDS = ("auto", "cuda", "cpu")
#: Elbows of the inverse, assembly of the forward kinematics.
Branch = tuple[int, str]

_log = logging.getLogger(__name__)
_NONE = Group(None)
_MASK = np.dtype(np.uint16)
#: Values in a batch that is small enough for the shortest way.
_QUICK = 3 * 4096
#: Singularity tolerance on unit determinants, by precision.
_TOLERANCE = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-5}
_ZERO = {dtype: np.zeros(1, dtype) for dtype in _TOLERANCE}


@functools.cache
def _say_once(reason: str) -> None:
    _log.info("backend 'auto' uses the CPU: %s", reason)


class Opened(NamedTuple):
    """A caller's array.

    Attributes:
        batch: The array as rows x robots.
        where: The backend that computes it.
        order: Its layout.
    """

    batch: Batch
    where: Any
    order: str


class _Shortcut(NamedTuple):
    """The compiled kernel of small batches, and what it always reads, with its addresses."""

    function: Callable[..., None]
    geometry_at: int
    options_at: int
    geometry: HostArray
    options: HostArray


class Dispatcher:
    """The robots of a batch, and the backends that compute them.

    Attributes:
        geometry: Dimensions.
        limits: Joint limits, marked in the status masks.
        layout: "soa" or "aos", unless a call says otherwise.
        cpu: The CPU backend.
        cuda: The CUDA backend, or None.
        fallback: Why the backend "auto" uses the CPU; empty if it does not.
    """

    def __init__(
        self,
        geometry: Geometry,
        limits: Limits | None = None,
        *,
        backend: str = "auto",
        mode: str = "strict",
        layout: str = "soa",
        threads: int = 1,
        singular: float | None = None,
        cuda: CudaBackend | None = None,
    ) -> None:
        """Choose a backend.

        Args:
            geometry: Dimensions, one for all or one per robot.
            limits: Joint limits; none by default.
            backend: "cuda" uses the GPU or raises; "cpu" never looks for one; "auto" uses the
                GPU if there is one; if there is none, ``fallback`` and the log say why.
            mode: "strict" gives the same bits on every backend, "fast" allows fused operations.
            layout: Default layout of 3-vectors.
            threads: CPU threads for large batches, 0 = all.
            singular: Unit determinant below which a pose counts as singular; 1e-9 in float64
                and 1e-5 in float32 by default.
            cuda: A CUDA backend to use instead of making one.
        """
        if not isinstance(geometry, Geometry):
            raise DeltaInput("geometry", f"must be a Geometry, got {type(geometry).__name__}")
        checks.one_of("backend", backend, BACKENDS)
        checks.one_of("layout", layout, LAYOUTS)
        if singular is not None:
            checks.within("singular", singular, 0.0, 1.0)
        self.geometry = geometry
        self.limits = limits if limits is not None else Limits(-math.inf, math.inf)
        self.layout = layout
        self.cpu = CpuBackend(mode, threads)
        self.cuda = None if backend == "cpu" else cuda
        self.fallback = ""
        self._singular = singular
        self._constants: dict[Any, Any] = {}
        self._shortcuts: dict[Any, _Shortcut] = {}
        if backend != "cpu" and cuda is None:
            try:
                self.cuda = CudaBackend(mode)
            except BackendError as error:
                if backend == "cuda":
                    raise
                self.fallback = str(error)
                _say_once(self.fallback)

    @property
    def backend(self) -> str:
        """What computes host arrays: "cuda" or "cpu"."""
        return "cpu" if self.cuda is None else "cuda"

    def warm(self, ops: tuple[str, ...] = ("fk", "ik"), dtype: DTypeLike = np.float64) -> None:
        """Compile kernels now instead of on first use."""
        kind = np.dtype(dtype)
        for op in ops:
            in_rows, out_rows = rows_of(op)
            ways = [(2, True), *([(1, True), (1, False)] if OPS[op].fast else [])]
            for step, masked in ways:
                zero = np.zeros(64, kind)
                outputs = tuple(Group(np.zeros(64, kind), 1, 1) for _ in out_rows)
                mask = Group(np.zeros(64, np.uint16), 0, 1) if masked else _NONE
                own = tuple(Group(zero, 1, step) for _ in in_rows[2:])
                base = Group(zero, 1, 0)
                self.cpu.run(Call(op, kind, 1, 1, (base, base, *own), outputs, mask))

    # -- for those who put calls together themselves

    def head(
        self, dtype: np.dtype[Any], count: int, branch: Branch = (0, "down"), where: Any = None
    ) -> tuple[Group, Group]:
        """The first two groups of every call: dimensions and options.

        Args:
            dtype: Precision.
            count: Number of robots.
            branch: Elbows and assembly.
            where: The CUDA backend if the other arrays are on its device.
        """
        geometry = self.geometry.prepared(dtype, None if where is None else where.put)
        n = geometry.shape[1]
        if n != 1 and n != count:
            raise DeltaInput("geometry", f"is for {n} robots, but the batch has {count}")
        options = self._setting(branch, dtype)
        if where is not None:
            options = self._on_device(options, where)
        return Group(geometry, n, 0 if n == 1 else 1), Group(options, 1, 0)

    def run(self, call: Call, where: Any = None) -> None:
        """Compute a call on arrays of the host, or on those of the device of a CUDA backend."""
        if where is not None:
            where.run(call)
        elif self.cuda is not None:
            self.cuda.run_host(call)
        else:
            self.cpu.run(call)

    # -- callers' arrays

    def _open(self, field: str, x: Array, layout: str | None) -> Opened:
        """A caller's array of 3-vectors, and where it is computed."""
        order = self.layout if layout is None else checks.one_of("layout", layout, LAYOUTS)
        if type(x) is np.ndarray:
            return Opened(open_batch(field, x, 3, order), self.cuda or self.cpu, order)
        if is_device_array(x):
            if self.cuda is None:
                why = self.fallback or "backend is 'cpu'"
                raise BackendError(f"{field} is on a CUDA device, but {why}")
            return Opened(open_batch(field, self.cuda.adopt(x), 3, order), self.cuda, order)
        batch = open_batch(field, host_array(field, x), 3, order)
        return Opened(batch, self.cuda or self.cpu, order)

    def _beside(self, field: str, x: Array, first: Opened) -> Group:
        """Further 3-vectors of the same batch; None stands for zeros."""
        batch, where, order = first
        dtype = batch.array.dtype
        on_host = isinstance(batch.array, np.ndarray)
        if x is None:
            zero = _ZERO[dtype]
            return Group(zero if on_host else where.put(zero), 0, 0)
        if is_device_array(x) == on_host:
            raise DeltaInput(field, "must be on the same side, host or device, as the first array")
        array = host_array(field, x) if on_host else where.adopt(x)
        if array.dtype != dtype:
            check_dtype(field, array.dtype)
            raise DeltaInput(field, f"has dtype {array.dtype}, but the first array {dtype}")
        other = open_batch(field, array, 3, order)
        if other.shape != batch.shape:
            raise DeltaInput(field, f"has the shape {array.shape}, but the batch is {batch.shape}")
        return other.group

    def _stack(self, parts: list[Array]) -> Array:
        if isinstance(parts[0], np.ndarray):
            return np.stack(parts)
        if self.cuda is not None and isinstance(parts[0], self.cuda.cp.ndarray):
            return self.cuda.cp.stack(parts)
        return parts[0].__array_namespace__().stack(parts)

    @staticmethod
    def _like(caller: Array, results: list[Array]) -> list[Array]:
        """Results as arrays of the caller's library."""
        if isinstance(caller, np.ndarray) or not hasattr(caller, "__array_namespace__"):
            return results
        adopt = caller.__array_namespace__().from_dlpack
        return [r if r is None or type(r) is type(caller) else adopt(r) for r in results]

    # -- settings

    def _kept(self, key: Any, make: Callable[[], Any]) -> Any:
        """A small constant that is made once."""
        if key not in self._constants:
            if len(self._constants) > 256:
                self._constants.clear()
            self._constants[key] = make()
        return self._constants[key]

    def _constant(self, values: tuple[float, ...], dtype: np.dtype[Any]) -> Any:
        """A few numbers as an array where the kernels read it."""
        return self._kept((values, dtype), lambda: np.array(values, dtype))

    def _on_device(self, host: HostArray, where: Any) -> Any:
        """A small constant on the device, uploaded once."""
        return self._kept(("device", host.tobytes(), host.dtype), lambda: where.put(host))

    def _setting(self, branch: Branch, dtype: np.dtype[Any]) -> HostArray:
        """The options of a branch choice."""
        return self._kept((branch, dtype), lambda: self._options(branch, dtype))

    def _options(self, branch: Branch, dtype: np.dtype[Any]) -> HostArray:
        elbows, platform = branch
        if isinstance(elbows, bool) or not isinstance(elbows, (int, np.integer)):
            raise DeltaInput("elbows", f"must be an integer, got {elbows!r}")
        if not 0 <= elbows <= 7:
            raise DeltaInput("elbows", f"must be between 0 and 7, got {elbows}")
        checks.one_of("platform", platform, ("down", "up"))
        signs = [-1.0 if elbows >> i & 1 else 1.0 for i in range(3)]
        down = 1.0 if platform == "down" else -1.0
        tolerance = _TOLERANCE[dtype] if self._singular is None else self._singular
        # The rows of gpu_kinematics.kernels.records.Options.
        return np.array([*signs, down, *self.limits.lower, *self.limits.upper, tolerance], dtype)

    # -- calls

    def _quick(
        self, op: str, x: Array, layout: str | None, status: Any, branch: Branch
    ) -> tuple[Any, Any] | None:
        """The shortest way for small plain numpy batches; None if the batch is not one.

        It calls the same kernel as the general way, so the results are the same bits.
        """
        if type(x) is not np.ndarray or self.cuda is not None or self.geometry.count is not None:
            return None
        shape, flags = x.shape, x.flags
        if (
            not 0 < x.size < _QUICK
            or not shape
            or shape[0] != 3
            or len(shape) > 2
            or (len(shape) == 2 and (layout or self.layout) != "soa")
            or not flags.c_contiguous
            or not flags.aligned
            or (status is not True and status is not False)
        ):
            return None
        if layout is not None and layout not in LAYOUTS:
            checks.one_of("layout", layout, LAYOUTS)
        dtype = x.dtype
        found = self._shortcuts.get((op, branch, dtype, status))
        if found is None:
            found = self._shortcut(op, branch, dtype, status)
        function, geometry, options = found[:3]
        out = np.empty(shape, dtype)
        n = x.size // 3
        if not status:
            source, target, _ = addresses(x, out, out)
            function(n, geometry, options, source, n, target, n)
            return out, None
        masks = np.empty(shape[1:], _MASK)
        source, target, mask = addresses(x, out, masks)
        function(n, geometry, options, source, n, target, n, mask)
        return out, masks

    def _shortcut(self, op: str, branch: Branch, dtype: Any, status: bool) -> _Shortcut:
        dtype = check_dtype("input", dtype)
        geometry = self.geometry.prepared(dtype)
        options = self._setting(branch, dtype)
        compiled = kernel(f"{op}_plain" + ("_status" if status else ""), dtype, self.cpu.mode)
        compiled(*[0] * (8 if status else 7))  # no robots: this only compiles
        found = _Shortcut(
            compiled.function, geometry.ctypes.data, options.ctypes.data, geometry, options
        )
        self._shortcuts[op, branch, dtype, status] = found
        return found

    def _compute(
        self,
        op: str,
        opened: Opened,
        groups: list[Group],
        outs: dict[str, Array],
        status: Any,
        branch: Branch,
    ) -> list[Array]:
        """Allocate what is missing, run the kernel, give the arrays and the masks.

        Args:
            op: The kernel.
            opened: The first array of the batch.
            groups: What the kernel reads.
            outs: Output arrays by the name of their argument, in the order of the kernel; None
                for one that is to be made.
            status: Whether masks are wanted, or the array for them.
            branch: Elbows and assembly.
        """
        batch, where, order = opened
        dtype = batch.array.dtype
        device = None if isinstance(batch.array, np.ndarray) else where
        xp: Any = np if device is None else where.cp
        if device is not None:
            groups = [
                g._replace(array=self._on_device(g.array, where))
                if isinstance(g.array, np.ndarray)
                else g
                for g in groups
            ]
        arrays, targets = [], []
        for (name, out), rows in zip(outs.items(), rows_of(op)[1], strict=True):
            shape = (rows, *batch.shape) if order == "soa" else (*batch.shape, rows)
            if out is not None:
                check_out(name, out, batch, shape, dtype)
            arrays.append(xp.empty(shape, dtype) if out is None else out)
            targets.append(open_batch(name, arrays[-1], rows, order, writing=True).group)
        masks, mask = self._masks(status, batch, xp)
        inputs = (*self.head(dtype, batch.count, branch, device), *groups)
        mask = mask if OPS[op].status else _NONE
        self.run(Call(op, dtype, 1, batch.count, inputs, tuple(targets), mask), device)
        return [*arrays, masks]

    @staticmethod
    def _masks(status: Any, batch: Batch, xp: Any) -> tuple[Array, Group]:
        if status is False or status is None:
            return None, _NONE
        if status is True:
            masks = xp.empty(batch.shape, np.uint16)
            return masks, Group(masks, 0, 1)
        if type(status) is not type(batch.array):
            raise DeltaInput("status", "must be True, False or an array of the input's kind")
        if status.dtype != np.uint16 or status.shape != batch.shape:
            raise DeltaInput("status", f"must have shape {batch.shape} and dtype uint16")
        if not status.flags.c_contiguous or not getattr(status.flags, "writeable", True):
            raise DeltaInput("status", "must be contiguous and writable")
        return status, Group(status, 0, 1)
