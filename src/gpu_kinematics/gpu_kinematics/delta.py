"""Delta robots in batches: the kinematics, on whatever backend there is.

``Delta`` takes numpy arrays, CuPy arrays, or any array that speaks DLPack or the CUDA array
interface, and gives arrays of the same kind. Layout "soa" has the components first, (3, N); "aos"
has them last, (N, 3). A single robot is an array of shape (3,).
"""

from __future__ import annotations

import logging
import math
import threading
from typing import Any, NamedTuple

import numpy as np

from gpu_kinematics.arrays import (
    LAYOUTS,
    Batch,
    check_dtype,
    check_out,
    host_array,
    is_device_array,
    open_batch,
)
from gpu_kinematics.call import Call, Group, rows_of
from gpu_kinematics.cpu import CpuBackend, addresses, kernel
from gpu_kinematics.cuda import CudaBackend
from gpu_kinematics.errors import BackendError, DeltaInput
from gpu_kinematics.geometry import Geometry, Limits
from gpu_kinematics.kernels import OPS
from kin_core import checks

__all__ = [
    "BACKENDS",
    "Control",
    "Delta",
    "Forward",
    "ForwardMotion",
    "Inverse",
    "InverseMotion",
    "Jacobian",
    "Measures",
]

BACKENDS = ("auto", "cuda", "cpu")
_log = logging.getLogger(__name__)
_said = threading.Event()
_NONE = Group(None)
_MASK = np.dtype(np.uint16)
#: Values in a batch that is small enough for the shortest way.
_QUICK = 3 * 4096
#: Singularity tolerance on unit determinants, by precision.
_TOLERANCE = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-5}
_ZERO = {dtype: np.zeros(1, dtype) for dtype in _TOLERANCE}


class Forward(NamedTuple):
    """Forward kinematics: positions [m] and status masks (None if not asked for)."""

    position: Any
    status: Any


class Inverse(NamedTuple):
    """Inverse kinematics: angles [rad] and status masks (None if not asked for)."""

    angle: Any
    status: Any


class Jacobian(NamedTuple):
    """Positions [m], Jacobians dp/da [m/rad] of shape (3, 3, N) or (N, 3, 3), status masks."""

    position: Any
    jacobian: Any
    status: Any


class Measures(NamedTuple):
    """How far each robot is from singular.

    Attributes:
        condition: 2-norm condition number of J = J_x^-1 J_q; infinite at a singularity.
        sigma_min: Smallest singular value of J [m/rad].
        sigma_max: Largest singular value of J [m/rad].
        det_x: det J_x, rows p - c_i [m^3]; 0 at a type 2 (parallel) singularity.
        det_q: det J_q = prod (p - c_i).dc_i/da [m^6/rad^3]; 0 at a type 1 (serial) singularity.
        det: det J = det J_q / det J_x [m^3/rad^3].
        parallel: det J_x of unit rods, -1..1.
        serial: det J_q / (La Lb)^3, -1..1.
        status: Status masks.
    """

    condition: Any
    sigma_min: Any
    sigma_max: Any
    det_x: Any
    det_q: Any
    det: Any
    parallel: Any
    serial: Any
    status: Any


class ForwardMotion(NamedTuple):
    """Positions [m], velocities [m/s], accelerations [m/s^2] and status masks."""

    position: Any
    velocity: Any
    acceleration: Any
    status: Any


class InverseMotion(NamedTuple):
    """Angles [rad], rates [rad/s], accelerations [rad/s^2] and status masks."""

    angle: Any
    rate: Any
    rate2: Any
    status: Any


class Control(NamedTuple):
    """Joint rates to command [rad/s], distance to the target [m] and status masks."""

    rate: Any
    error: Any
    status: Any


class Delta:
    """Kinematics of a batch of delta robots.

    Attributes:
        geometry: Dimensions.
        limits: Joint limits, marked in the status masks.
        layout: "soa" or "aos", unless a call says otherwise.
        cpu: The CPU backend.
        cuda: The CUDA backend, or None.
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
                GPU if there is one, and says once why not if there is none.
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
        self.cuda: CudaBackend | None = cuda
        self.fallback = ""
        self._singular = singular
        self._options: dict[Any, Any] = {}
        self._shortcuts: dict[Any, Any] = {}
        if backend != "cpu" and cuda is None:
            try:
                self.cuda = CudaBackend(mode)
            except BackendError as error:
                if backend == "cuda":
                    raise
                self.fallback = str(error)
                if not _said.is_set():
                    _said.set()
                    _log.warning("backend 'auto' uses the CPU: %s", error)
        elif backend == "cpu":
            self.cuda = None

    @property
    def backend(self) -> str:
        """What computes host arrays: "cuda" or "cpu"."""
        return "cpu" if self.cuda is None else "cuda"

    # -- positions

    def fk(
        self,
        angle: Any,
        *,
        platform: str = "down",
        layout: str | None = None,
        out: Any = None,
        status: Any = True,
    ) -> Forward:
        """Forward kinematics.

        Args:
            angle: Joint angles [rad], shape (3, ...) or (..., 3).
            platform: "down" for the platform below the elbows, "up" for the mirror solution.
            layout: "soa" or "aos"; the instance's by default.
            out: Array for the positions, of the kind and shape of ``angle``; may be ``angle``.
            status: False for no masks, or a uint16 array of the batch's shape for them.

        Returns:
            Positions [m], NaN where there is none, and status masks.
        """
        if out is None and (quick := self._quick("fk", angle, layout, status, (0, platform))):
            return Forward(*quick)
        batch, where, order = self._open("angle", angle, 3, layout)
        (position,), masks = self._compute(
            "fk", where, batch, [batch.group], order, [("out", out, 3)], status, (0, platform)
        )
        return Forward(self._same_kind(angle, position), self._same_kind(angle, masks))

    def ik(
        self,
        position: Any,
        *,
        elbows: int = 0,
        layout: str | None = None,
        out: Any = None,
        status: Any = True,
    ) -> Inverse:
        """Inverse kinematics.

        Args:
            position: Platform positions [m], shape (3, ...) or (..., 3).
            elbows: Bit i set takes the inward elbow of arm i; 0 = all outward, 7 = all inward.
            layout: "soa" or "aos"; the instance's by default.
            out: Array for the angles, of the kind and shape of ``position``; may be ``position``.
            status: False for no masks, or a uint16 array of the batch's shape for them.

        Returns:
            Angles [rad] in [-pi, pi], NaN for an arm that cannot reach, and status masks.
        """
        if out is None and (quick := self._quick("ik", position, layout, status, (elbows, "down"))):
            return Inverse(*quick)
        batch, where, order = self._open("position", position, 3, layout)
        (angle,), masks = self._compute(
            "ik", where, batch, [batch.group], order, [("out", out, 3)], status, (elbows, "down")
        )
        return Inverse(self._same_kind(position, angle), self._same_kind(position, masks))

    def fk_both(self, angle: Any, *, layout: str | None = None) -> Forward:
        """Both assemblies: the result of ``fk`` down and up, stacked along a new first axis."""
        parts = [self.fk(angle, platform=side, layout=layout) for side in ("down", "up")]
        return Forward(*(self._stack([p[i] for p in parts]) for i in range(2)))

    def ik_all(self, position: Any, *, layout: str | None = None) -> Inverse:
        """All eight elbow choices, stacked along a new first axis in the order of ``elbows``."""
        parts = [self.ik(position, elbows=elbows, layout=layout) for elbows in range(8)]
        return Inverse(*(self._stack([p[i] for p in parts]) for i in range(2)))

    # -- velocities

    def jacobian(
        self, angle: Any, *, platform: str = "down", layout: str | None = None
    ) -> Jacobian:
        """Positions and Jacobians dp/da at joint angles [rad]."""
        batch, where, order = self._open("angle", angle, 3, layout)
        (position, matrix), masks = self._compute(
            "jacobian",
            *(where, batch, [batch.group], order),
            [("out", None, 3), ("jacobian", None, 9)],
            *(True, (0, platform)),
        )
        shape = (3, 3, *batch.shape) if order == "soa" else (*batch.shape, 3, 3)
        kind = self._same_kind
        return Jacobian(
            kind(angle, position), kind(angle, matrix.reshape(shape)), kind(angle, masks)
        )

    def measures(
        self, angle: Any, *, platform: str = "down", layout: str | None = None
    ) -> Measures:
        """Condition number and determinants at joint angles [rad]."""
        return self._measures("measures", "angle", angle, (0, platform), layout)

    def dexterity(self, position: Any, *, elbows: int = 0, layout: str | None = None) -> Measures:
        """Condition number and determinants at platform positions [m]."""
        return self._measures("dexterity", "position", position, (elbows, "down"), layout)

    def _measures(
        self, op: str, field: str, values: Any, branch: tuple[Any, Any], layout: str | None
    ) -> Measures:
        batch, where, _order = self._open(field, values, 3, layout)
        # Measures are rows of their own in either layout.
        (rows,), masks = self._compute(
            op, where, batch, [batch.group], "soa", [("measure", None, 8)], True, branch
        )
        kind = self._same_kind
        return Measures(*[kind(values, row) for row in (*rows, masks)])

    def forward_motion(
        self,
        angle: Any,
        rate: Any = None,
        rate2: Any = None,
        *,
        platform: str = "down",
        layout: str | None = None,
    ) -> ForwardMotion:
        """Platform motion from joint motion.

        Args:
            angle: Joint angles [rad].
            rate: Joint rates [rad/s]; None for zero.
            rate2: Joint accelerations [rad/s^2]; None for zero.
            platform: "down" or "up".
            layout: "soa" or "aos".
        """
        batch, where, order = self._open("angle", angle, 3, layout)
        groups = [batch.group]
        groups += [
            self._beside(name, value, 3, batch, where, order)
            for name, value in (("rate", rate), ("rate2", rate2))
        ]
        outs = [(name, None, 3) for name in ("position", "velocity", "acceleration")]
        arrays, masks = self._compute(
            "fk_motion", where, batch, groups, order, outs, True, (0, platform)
        )
        return ForwardMotion(*(self._same_kind(angle, a) for a in (*arrays, masks)))

    def inverse_motion(
        self,
        position: Any,
        velocity: Any = None,
        acceleration: Any = None,
        *,
        elbows: int = 0,
        layout: str | None = None,
    ) -> InverseMotion:
        """Joint motion from platform motion.

        Args:
            position: Platform positions [m].
            velocity: Platform velocities [m/s]; None for zero.
            acceleration: Platform accelerations [m/s^2]; None for zero.
            elbows: As in ``ik``.
            layout: "soa" or "aos".
        """
        batch, where, order = self._open("position", position, 3, layout)
        groups = [batch.group]
        groups += [
            self._beside(name, value, 3, batch, where, order)
            for name, value in (("velocity", velocity), ("acceleration", acceleration))
        ]
        outs = [(name, None, 3) for name in ("angle", "rate", "rate2")]
        arrays, masks = self._compute(
            "ik_motion", where, batch, groups, order, outs, True, (elbows, "down")
        )
        return InverseMotion(*(self._same_kind(position, a) for a in (*arrays, masks)))

    def control(
        self,
        angle: Any,
        target: Any,
        feedforward: Any = None,
        *,
        gain: float,
        max_rate: float,
        layout: str | None = None,
        out: Any = None,
    ) -> Control:
        """Computed velocity control: joint rates that bring each platform to its target.

        Args:
            angle: Measured joint angles [rad].
            target: Positions to reach [m].
            feedforward: Velocities of the targets [m/s]; None for zero.
            gain: Rate at which the position error decays [1/s].
            max_rate: Largest joint rate [rad/s]; all three are scaled together.
            layout: "soa" or "aos".
            out: Array for the rates.

        Returns:
            Joint rates [rad/s]: zero for a robot with bad input or no pose, and never such that
            a joint limit is passed (with steps shorter than 1 / gain).
        """
        batch, where, order = self._open("angle", angle, 3, layout)
        law = (checks.positive("gain", gain), checks.positive("max_rate", max_rate))
        groups = [
            batch.group,
            self._beside("target", target, 3, batch, where, order),
            self._beside("feedforward", feedforward, 3, batch, where, order),
            Group(self._constant(law, batch.array.dtype, where), 1, 0),
        ]
        (rate, error), masks = self._compute(
            "control",
            *(where, batch, groups, order),
            [("out", out, 3), ("error", None, 1)],
            *(True, (0, "down")),
        )
        kind = self._same_kind
        return Control(
            kind(angle, rate), kind(angle, error.reshape(batch.shape)), kind(angle, masks)
        )

    # -- how a call is put together

    def _quick(
        self, op: str, x: Any, layout: str | None, status: Any, branch: tuple[Any, Any]
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

    def _shortcut(self, op: str, branch: tuple[Any, Any], dtype: Any, status: bool) -> Any:
        """The kernel of a small batch, compiled, and the addresses of what it always reads."""
        dtype = check_dtype("input", dtype)
        geometry = self.geometry.prepared(dtype)
        options = self._setting(branch, dtype)
        function = kernel(f"{op}_plain" + ("_status" if status else ""), dtype, self.cpu.mode)
        function(*[0] * (8 if status else 7))  # no robots: this only compiles
        found = (function.function, geometry.ctypes.data, options.ctypes.data, geometry, options)
        self._shortcuts[op, branch, dtype, status] = found
        return found

    def _open(self, field: str, x: Any, rows: int, layout: str | None) -> tuple[Batch, Any, str]:
        """A caller's array, the backend that computes it, and its layout."""
        order = self.layout if layout is None else checks.one_of("layout", layout, LAYOUTS)
        if type(x) is np.ndarray:
            return open_batch(field, x, rows, order), self.cuda or self.cpu, order
        if is_device_array(x):
            if self.cuda is None:
                why = self.fallback or "backend is 'cpu'"
                raise BackendError(f"{field} is on a CUDA device, but {why}")
            return open_batch(field, self.cuda.adopt(x), rows, order), self.cuda, order
        return open_batch(field, host_array(field, x), rows, order), self.cuda or self.cpu, order

    def _beside(self, field: str, x: Any, rows: int, batch: Batch, where: Any, order: str) -> Group:
        """A second input of the same batch; None stands for zeros."""
        dtype = batch.array.dtype
        if x is None:
            zero = _ZERO[dtype]
            return Group(zero if isinstance(batch.array, np.ndarray) else where.put(zero), 0, 0)
        if is_device_array(x) != (not isinstance(batch.array, np.ndarray)):
            raise DeltaInput(field, "must be on the same side, host or device, as the first array")
        array = where.adopt(x) if is_device_array(x) else host_array(field, x)
        if array.dtype != dtype:
            check_dtype(field, array.dtype)
            raise DeltaInput(field, f"has dtype {array.dtype}, but the first array {dtype}")
        other = open_batch(field, array, rows, order)
        if other.shape != batch.shape:
            raise DeltaInput(field, f"has the shape {array.shape}, but the batch is {batch.shape}")
        return other.group

    def _constant(self, values: tuple[float, ...], dtype: np.dtype[Any], where: Any) -> Any:
        """A few numbers as an array where the kernels read it."""
        key = (values, dtype)
        if key not in self._options:
            if len(self._options) > 256:
                self._options.clear()
            self._options[key] = np.array(values, dtype)
        return self._options[key]

    def _setting(self, branch: tuple[Any, Any], dtype: np.dtype[Any]) -> Any:
        """The options row of a branch choice."""
        found = self._options.get((branch, dtype))
        if found is None:
            elbows, platform = branch
            if isinstance(elbows, bool) or not isinstance(elbows, (int, np.integer)):
                raise DeltaInput("elbows", f"must be an integer, got {elbows!r}")
            if not 0 <= elbows <= 7:
                raise DeltaInput("elbows", f"must be between 0 and 7, got {elbows}")
            checks.one_of("platform", platform, ("down", "up"))
            signs = [-1.0 if elbows >> i & 1 else 1.0 for i in range(3)]
            tolerance = _TOLERANCE[dtype] if self._singular is None else self._singular
            rows = [*signs, 1.0 if platform == "down" else -1.0]
            rows += [*self.limits.lower, *self.limits.upper, tolerance]
            found = np.array(rows, dtype)
            self._options[branch, dtype] = found
        return found

    def _compute(
        self,
        op: str,
        where: Any,
        batch: Batch,
        groups: list[Group],
        order: str,
        outs: list[tuple[str, Any, int]],
        status: Any,
        branch: tuple[Any, Any],
    ) -> tuple[list[Any], Any]:
        """Allocate what is missing, run the kernel, give the arrays."""
        array = batch.array
        dtype = array.dtype
        on_host = isinstance(array, np.ndarray)
        xp: Any = np if on_host else where.cp
        put = None if on_host else where.put
        geometry = self.geometry.prepared(dtype, put)
        n = geometry.shape[1]
        if n != 1 and n != batch.count:
            raise DeltaInput("geometry", f"is for {n} robots, but the batch has {batch.count}")
        options: Any = self._setting(branch, dtype)
        if not on_host:
            options = self._on_device(options, where)
            groups = [
                g._replace(array=self._on_device(g.array, where))
                if isinstance(g.array, np.ndarray)
                else g
                for g in groups
            ]
        arrays, targets = [], []
        for name, out, rows in outs:
            shape = (rows, *batch.shape) if order == "soa" else (*batch.shape, rows)
            if out is None:
                made = xp.empty(shape, dtype)
            else:
                check_out(name, out, batch, shape, dtype)
                made = out
            arrays.append(made)
            targets.append(open_batch(name, made, rows, order, writing=True).group)
        masks, mask = self._masks(status, batch, xp)
        call = Call(
            op,
            dtype,
            1,
            batch.count,
            (Group(geometry, n, 0 if n == 1 else 1), Group(options, 1, 0), *groups),
            tuple(targets),
            mask if OPS[op].status else _NONE,
        )
        if on_host and self.cuda is not None:
            self.cuda.run_host(call)
        else:
            where.run(call)
        return arrays, masks

    def _on_device(self, host: Any, where: Any) -> Any:
        """A small constant on the device, uploaded once."""
        key = ("device", host.tobytes(), host.dtype)
        if key not in self._options:
            self._options[key] = where.put(host)
        return self._options[key]

    @staticmethod
    def _masks(status: Any, batch: Batch, xp: Any) -> tuple[Any, Group]:
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

    def _stack(self, parts: list[Any]) -> Any:
        if isinstance(parts[0], np.ndarray):
            return np.stack(parts)
        if self.cuda is not None and isinstance(parts[0], self.cuda.cp.ndarray):
            return self.cuda.cp.stack(parts)
        return parts[0].__array_namespace__().stack(parts)

    def _same_kind(self, caller: Any, result: Any) -> Any:
        """The result as an array of the caller's library."""
        if (
            result is None
            or type(caller) is type(result)
            or isinstance(caller, np.ndarray)
            or not hasattr(caller, "__array_namespace__")
        ):
            return result
        return caller.__array_namespace__().from_dlpack(result)

    def warm(self, ops: tuple[str, ...] = ("fk", "ik"), dtype: Any = np.float64) -> None:
        """Compile kernels now instead of on first use."""
        for op in ops:
            in_rows, out_rows = rows_of(op)
            kind = np.dtype(dtype)
            for plain in (True, False) if OPS[op].fast else (False,):
                for masked in (True, False) if plain else (True,):
                    zero = np.zeros(64, kind)
                    outputs = tuple(Group(np.zeros(64, kind), 1, 1) for _ in out_rows)
                    mask = Group(np.zeros(64, np.uint16), 0, 1) if masked else _NONE
                    step = 1 if plain else 2
                    own = tuple(Group(zero, 1, step) for _ in in_rows[2:])
                    base = Group(zero, 1, 0)
                    self.cpu.run(Call(op, kind, 1, 1, (base, base, *own), outputs, mask))
