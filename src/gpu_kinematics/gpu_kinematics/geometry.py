"""Dimensions and joint limits of delta robots, one for all or one per robot."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpu_kinematics.call import Array
from gpu_kinematics.errors import DeltaInput
from gpu_kinematics.kernels import rows as rows_in
from gpu_kinematics.kernels.records import Robot

__all__ = ["PUBLISHED_GEOMETRY", "THETA", "Geometry", "Limits"]

#: Directions of the arms unless told otherwise [rad].
THETA = (0.0, 2.0 * math.pi / 3.0, 4.0 * math.pi / 3.0)
#: Range of lengths in which no product in the kernels leaves the range of float32.
_SHORTEST, _LONGEST = 1e-4, 1e4


def _host(field: str, values: Any) -> NDArray[np.float64]:
    """Numbers as a float64 array on the host; a device array is fetched, once."""
    if hasattr(values, "get") and hasattr(values, "__cuda_array_interface__"):
        values = values.get()
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "iuf":
            raise TypeError(f"dtype {array.dtype}")
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DeltaInput(field, f"must hold real numbers ({error})") from None


class Geometry:
    """Dimensions of the robots of a batch.

    Attributes:
        radius: R = R_A - R_B, base radius less platform radius [m], shape () or (N,). May be
            zero or negative.
        upper: L_A, length of the driven arm [m], shape () or (N,).
        lower: L_B, length of the rods [m], shape () or (N,).
        theta: Directions of the arms [rad], shape (3,) or (3, N).
        count: Number of robots, or None if one geometry serves all.
        rows: What the kernels read, shape (13, 1) or (13, N), float64.
    """

    __slots__ = ("_cache", "count", "lower", "radius", "rows", "theta", "upper")

    def __init__(
        self,
        radius: ArrayLike,
        upper: ArrayLike,
        lower: ArrayLike,
        theta: ArrayLike = THETA,
        *,
        on_bad: str = "raise",
    ) -> None:
        """Check the dimensions and prepare what the kernels read.

        Args:
            radius: R [m], a number or one per robot.
            upper: L_A [m], a number or one per robot.
            lower: L_B [m], a number or one per robot.
            theta: Directions of the arms [rad], shape (3,) or (3, N).
            on_bad: "raise" refuses a bad dimension; "mask" computes NaN and the status
                BAD_GEOMETRY for that robot and goes on.
        """
        if on_bad not in ("raise", "mask"):
            raise DeltaInput("on_bad", f"must be 'raise' or 'mask', got {on_bad!r}")
        lengths = {
            name: _host(name, values)
            for name, values in (("radius", radius), ("upper", upper), ("lower", lower))
        }
        angles = _host("theta", theta)
        for name, array in lengths.items():
            if array.ndim > 1:
                raise DeltaInput(name, f"must be a number or have shape (N,), got {array.shape}")
        if angles.ndim not in (1, 2) or angles.shape[0] != 3:
            raise DeltaInput("theta", f"must have the shape (3,) or (3, N), got {angles.shape}")
        sizes = {
            name: array.shape[-1]
            for name, array in (*lengths.items(), ("theta", angles))
            if array.ndim == (2 if name == "theta" else 1)
        }
        if len(set(sizes.values())) > 1:
            raise DeltaInput("geometry", f"lengths differ: {sizes}")
        self.count: int | None = next(iter(sizes.values()), None)
        bad = self._bad(lengths, angles, on_bad)
        n = 1 if self.count is None else self.count
        R, La, Lb = (np.broadcast_to(array, (n,)) for array in lengths.values())
        th = np.broadcast_to(angles if angles.ndim == 2 else angles[:, None], (3, n))
        rows = np.empty((rows_in(Robot), n))
        with np.errstate(all="ignore"):
            rows[:7] = (
                *(R, La, Lb, 1.0 / La, R / La),
                *((Lb * Lb - La * La - R * R) / La, Lb * Lb),
            )
            rows[7::2], rows[8::2] = np.cos(th), np.sin(th)
        rows[:, bad] = np.nan
        rows.flags.writeable = False
        self.radius, self.upper, self.lower = lengths.values()
        self.theta, self.rows = angles, rows
        self._cache: dict[Any, Any] = {}

    @staticmethod
    def _bad(
        lengths: dict[str, NDArray[np.float64]], theta: NDArray[np.float64], on_bad: str
    ) -> NDArray[np.bool_]:
        """Which robots have unusable dimensions; the first is refused with its reason."""
        bad: NDArray[np.bool_] = np.zeros(1, dtype=bool)
        for name, array in lengths.items():
            low = 0.0 if name == "radius" else _SHORTEST
            size = np.abs(array) if name == "radius" else array
            wrong = ~((size >= low) & (size <= _LONGEST))
            if wrong.any() and on_bad == "raise":
                index = tuple(np.argwhere(wrong)[0])
                where = f" of robot {index[0]}" if index else ""
                want = (
                    f"be at most {_LONGEST:g} m in size"
                    if name == "radius"
                    else f"be between {_SHORTEST:g} and {_LONGEST:g} m"
                )
                raise DeltaInput(name, f"must {want}, got {array[index]}{where}")
            bad = bad | np.atleast_1d(wrong)
        turned = np.atleast_1d(~(np.abs(theta) <= 1e3).all(axis=0))
        if turned.any() and on_bad == "raise":
            raise DeltaInput("theta", "must be finite and at most 1000 rad in size")
        return bad | turned

    def prepared(
        self, dtype: np.dtype[Any], put: Callable[[NDArray[Any]], Array] | None = None
    ) -> Array:
        """The rows in a precision, kept; ``put`` moves them to a device on first use."""
        key = (dtype, put)
        if key not in self._cache:
            host = np.ascontiguousarray(self.rows, dtype=dtype)
            self._cache[key] = host if put is None else put(host)
        return self._cache[key]

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__ if name != "_cache"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._cache = {}

    def __repr__(self) -> str:
        if self.count is None:
            return (
                f"Geometry(radius={float(self.radius):g}, upper={float(self.upper):g}, "
                f"lower={float(self.lower):g})"
            )
        return f"Geometry({self.count} robots)"


#: The robot of Zhakypov, Pehlivan, Kocagil and Ince, as their printed sample determines it [m].
PUBLISHED_GEOMETRY = Geometry(0.0105, 0.040, 0.068)


class Limits:
    """Joint limits.

    Attributes:
        lower: Lower limits [rad], shape (3,).
        upper: Upper limits [rad], shape (3,).
    """

    __slots__ = ("lower", "upper")

    def __init__(self, lower: ArrayLike = -math.pi, upper: ArrayLike = math.pi) -> None:
        """Check the limits; a number stands for all three arms."""
        bounds = []
        for name, values in (("lower", lower), ("upper", upper)):
            array = _host(f"limits.{name}", values)
            if array.shape not in ((), (3,)) or np.isnan(array).any():
                raise DeltaInput(f"limits.{name}", "must be one number or three, and not NaN")
            bounds.append(np.broadcast_to(array, (3,)).copy())
        self.lower, self.upper = bounds
        if (self.lower > self.upper).any():
            raise DeltaInput("limits", f"lower {self.lower} is above upper {self.upper}")

    def __repr__(self) -> str:
        return f"Limits({self.lower.tolist()}, {self.upper.tolist()})"
